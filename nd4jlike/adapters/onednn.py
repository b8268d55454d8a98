"""oneDNN: its memory descriptors as a translation of ours, and the library itself on our memory (ADR 0013).

Names are the library's own; dims, strides, blocks and offsets count elements, `MemoryDesc.size` counts bytes, as they do there.
Dimensions are in the library's logical order, which is that of NdArray: axis 0 first. `MemoryDesc` needs no library; everything
else finds libdnnl at first use (extra ``onednn``). The rules are those of versions 3.2 to 3.13, as the library itself answered.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.metadata
import itertools
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nd4jlike import tags
from nd4jlike.creation import asarray
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import bfloat16_to_float32, bits_dtype, by_onednn, codes
from nd4jlike.errors import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError, OutOfRangeError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.geometry import AXES, WEIGHT_AXES, Window, choice, pair, sides, weight_readings
from nd4jlike.ndarray import NdArray

if TYPE_CHECKING:
    import numpy.typing as npt

    from nd4jlike.quantization import Quantization

    _Tail = Literal["check", "zero", "trust"]

__all__ = ["DepthwiseConv2d", "Engine", "Memory", "MemoryDesc", "OneDnnError", "depthwise_conv2d", "find_library", "reorder"]

MAX_NDIMS = 12  # DNNL_MAX_NDIMS; of inner blocks, too
PACKAGE = "onednn-cpu-gomp"
VARIABLE = "ND4JLIKE_ONEDNN"

_WORD_MAX = 2**63 - 1  # dnnl_dim_t
_CACHED = 256  # descriptors that are remembered


def _sizes(values: Iterable[Any], what: str, signed: bool = False) -> tuple[int, ...]:
    """Tuple of integers, of 0 or more unless `signed`."""
    listed = tuple(values)
    try:
        sizes = tuple(map(as_index, listed))
    except TypeError:
        raise LayoutError(f"{what} must be integers: {listed}") from None
    if not signed and any(size < 0 for size in sizes):
        raise LayoutError(f"{what} must be 0 or more: {listed}", ShapeStatus.INCORRECT_SHAPE)
    return sizes


@dataclass(frozen=True)
class MemoryDesc:
    """Where the elements of a oneDNN memory live: what `dnnl_memory_desc_query` tells of a blocked descriptor.

    Parameters
    ----------
    dims : tuple of int
        Logical extents; 1 to 12 of them.
    data_type : str
        ``"f32"``, ``"f16"``, ``"bf16"``, ``"f64"``, ``"s32"``, ``"s8"`` or ``"u8"``.
    padded_dims : tuple of int
        Extents with the tail of the blocks; the library expects zeros in the cells beyond `dims`.
    strides : tuple of int
        Elements between neighbours, on a blocked axis between outer blocks.
    inner_blks, inner_idxs : tuple of int, optional
        Size and axis of each inner block, outermost first; together they are one dense run.
    submemory_offset : int, optional
        Of element (0, .., 0) from the start of the buffer, in elements.

    Raises
    ------
    LayoutError
        For another number of dimensions or inner blocks, lengths that differ, negative figures, blocks of 0 or of an axis that
        is none, ``padded_dims < dims``, and figures beyond the signed machine word.
    DTypeError
        For an unknown data type, or one of less than a byte.

    See Also
    --------
    ShapeDescriptor : the same, with the paddings around the elements.

    Notes
    -----
    Source: `dnnl_memory_desc_t` of oneDNN 3, oneapi/dnnl/dnnl.h. `from_tag`, `from_strides` and `from_descriptor` make what the
    library can make; the constructor takes what it may answer.

    Examples
    --------
    >>> from nd4jlike.adapters.onednn import MemoryDesc
    >>> desc = MemoryDesc.from_tag((1, 17, 5, 4), "nChw8c")
    >>> desc.padded_dims, desc.strides, desc.inner_nblks, desc.inner_blks, desc.inner_idxs, desc.size
    ((1, 24, 5, 4), (480, 160, 32, 8), 1, (8,), (1,), 1920)
    """

    dims: tuple[int, ...]
    data_type: str
    padded_dims: tuple[int, ...]
    strides: tuple[int, ...]
    inner_blks: tuple[int, ...] = ()
    inner_idxs: tuple[int, ...] = ()
    submemory_offset: int = 0

    def __post_init__(self) -> None:
        for name in ("dims", "padded_dims", "strides", "inner_blks", "inner_idxs"):
            object.__setattr__(self, name, _sizes(getattr(self, name), name, signed=name == "strides"))
        (offset,) = _sizes((self.submemory_offset,), "submemory_offset")
        object.__setattr__(self, "submemory_offset", offset)
        itemsize = by_onednn(self.data_type).itemsize
        _check_ndims(self.dims)
        if not len(self.dims) == len(self.padded_dims) == len(self.strides):
            raise LayoutError(
                f"dims, padded_dims and strides have one figure for each dimension: dims={self.dims}, padded_dims={self.padded_dims}, strides={self.strides}",
                ShapeStatus.INCORRECT_RANK,
            )
        if any(padded < extent for padded, extent in zip(self.padded_dims, self.dims, strict=True)):
            raise LayoutError(f"padded_dims hold dims: dims={self.dims}, padded_dims={self.padded_dims}", ShapeStatus.INCORRECT_PADDING)
        if (
            len(self.inner_blks) != len(self.inner_idxs)
            or len(self.inner_blks) > MAX_NDIMS
            or 0 in self.inner_blks
            or max(self.inner_idxs, default=0) >= self.ndims
        ):
            raise LayoutError(
                f"inner blocks have a size of 1 or more and one of {self.ndims} axes each, and are {MAX_NDIMS} at most: "
                f"inner_blks={self.inner_blks}, inner_idxs={self.inner_idxs}",
                ShapeStatus.INCORRECT_BLOCKS,
            )
        for axis, (stride, count) in enumerate(zip(self.strides, self._counts(), strict=True)):
            if stride < 0 and count > 1 and 0 not in self.dims:
                raise LayoutError(
                    f"axis {axis} has stride {stride}, oneDNN has no negative strides: dims={self.dims}, strides={self.strides}", ShapeStatus.NEGATIVE_STRIDE
                )
        if (self.submemory_offset + max(self._reach(), self._size())) * itemsize > _WORD_MAX:
            raise LayoutError(f"the memory outgrows the signed machine word in bytes: {self}", ShapeStatus.OVERFLOW)

    @classmethod
    def from_tag(cls, dims: Sequence[int], tag: str, data_type: str = "f32") -> MemoryDesc:
        """Describe a dense memory by its format tag (`dnnl_memory_desc_create_with_tag`).

        Parameters
        ----------
        dims : sequence of int
            Logical extents.
        tag : str
            Any tag or alias of the library, or another of its grammar: ``"nhwc"``, ``"nChw8c"``, ``"aBcd8b"``.
        data_type : str, optional
            Name of the data type.

        Returns
        -------
        MemoryDesc

        Raises
        ------
        LayoutError
            For a tag that breaks the grammar or has another rank than `dims`, naming the position.
        DTypeError
            For an unknown data type.

        Examples
        --------
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> MemoryDesc.from_tag((2, 3, 5, 5), "nhwc", "s8").strides
        (75, 1, 15, 3)
        """
        return cls.from_descriptor(ShapeDescriptor.from_tag(dims, tag, by_onednn(data_type).dtype))

    @classmethod
    def from_strides(cls, dims: Sequence[int], strides: Sequence[int] | None = None, data_type: str = "f32") -> MemoryDesc:
        """Describe a memory without blocks by its strides (`dnnl_memory_desc_create_with_strides`).

        Parameters
        ----------
        dims : sequence of int
            Logical extents.
        strides : sequence of int, optional
            Elements between neighbours; 0 repeats an element. Default: dense, the last axis the fastest.
        data_type : str, optional
            Name of the data type.

        Returns
        -------
        MemoryDesc

        Raises
        ------
        LayoutError
            For negative strides, and where the library refuses: sorted by size, each stride other than 0 must reach over the axis
            before it. Axes of extent 1 are not looked at.
        DTypeError
            For an unknown data type.

        Examples
        --------
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> MemoryDesc.from_strides((2, 3, 4), (16, 5, 1)).size  # bytes, whole strides: the last element ends at byte 120
        128
        """
        extents = _sizes(dims, "dims")
        steps = tuple(strides) if strides is not None else tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))
        desc = cls(extents, data_type, extents, steps)
        axis = desc._unreached()
        if axis is not None:
            raise LayoutError(
                f"axis {axis} has stride {steps[axis]}, which does not reach over the next faster axis: dims={extents}, strides={steps}",
                ShapeStatus.INCORRECT_STRIDES,
            )
        return desc

    @classmethod
    def from_descriptor(cls, descriptor: ShapeDescriptor) -> MemoryDesc:
        """Describe a layout of ours: every element at the same offset.

        The library knows no paddings around the elements: they become strides and `submemory_offset`, and it never touches them.
        The tail of blocks becomes `padded_dims`.

        Parameters
        ----------
        descriptor : ShapeDescriptor
            The layout, that of a view included.

        Returns
        -------
        MemoryDesc

        Raises
        ------
        UnsupportedLayoutError
            For no axes and for more than 12, negative strides, and elements that overlap other than by stride 0.
        DTypeError
            For element types that the library lacks.
        TypeError
            When `descriptor` is no ShapeDescriptor.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (1, 2, 3, 3), (0, 0, 2, 2), (0, 0, 1, 1))
        >>> desc = MemoryDesc.from_descriptor(d)
        >>> desc.padded_dims, desc.strides, desc.submemory_offset
        ((1, 2, 3, 3), (50, 25, 5, 1), 6)
        """
        if not isinstance(descriptor, ShapeDescriptor):
            raise TypeError(f"from_descriptor takes a ShapeDescriptor, not {type(descriptor).__name__}; that of an NdArray is its `descriptor`")
        row = codes(descriptor.dtype)
        if row.onednn is None:
            raise DTypeError(f"oneDNN has no data type for {row.name} elements")
        if not 1 <= descriptor.rank <= MAX_NDIMS:
            raise UnsupportedLayoutError(f"{descriptor.rank} axes, oneDNN has 1 to {MAX_NDIMS}: shape {descriptor.shape}")
        blocks = [(axis, size) for axis, size in descriptor.inner_blocks if size > 1]
        if len(blocks) > MAX_NDIMS:
            raise UnsupportedLayoutError(f"{len(blocks)} inner blocks, oneDNN has {MAX_NDIMS} at most: {descriptor!r}")
        products = _products(descriptor.rank, blocks)
        padded = tuple(-(-extent // product) * product for extent, product in zip(descriptor.shape, products, strict=True))
        for axis, stride in enumerate(descriptor.strides):
            if stride < 0 and padded[axis] > products[axis] and 0 not in padded:
                raise UnsupportedLayoutError(f"axis {axis} has stride {stride}, oneDNN has no negative strides: {descriptor!r}; copy the view first")
        idxs, sizes = tuple(axis for axis, _ in blocks), tuple(size for _, size in blocks)
        desc = cls(descriptor.shape, row.onednn, padded, descriptor.strides, sizes, idxs, descriptor.offset)
        unreached = desc._unreached()
        if unreached is not None:
            raise UnsupportedLayoutError(
                f"axis {unreached} has stride {desc.strides[unreached]}, its elements overlap those of the next faster axis, which oneDNN refuses: "
                f"{descriptor!r}; copy the view first"
            )
        return desc

    def to_descriptor(self) -> ShapeDescriptor:
        """Our description of the same layout, which `NdArray` can allocate or lay over memory.

        Returns
        -------
        ShapeDescriptor
            Strided, with offset and inner blocks. The memory order is that of the strides, among equals that of the axes.

        Raises
        ------
        UnsupportedLayoutError
            For a submemory that ends inside a block: the rest of that block holds elements of its parent, in a descriptor of ours it is padding.

        Examples
        --------
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> MemoryDesc.from_tag((1, 17, 5, 4), "nChw8c", "bf16").to_descriptor()
        ShapeDescriptor.from_tag((1, 17, 5, 4), 'aBcd8b', 'bfloat16')
        """
        for axis, (extent, padded, product) in enumerate(zip(self.dims, self.padded_dims, self._products(), strict=True)):
            if padded != -(-extent // product) * product:
                raise UnsupportedLayoutError(
                    f"axis {axis} is {padded} of {extent} elements in blocks of {product}: padded_dims that are not dims rounded up to whole blocks have no "
                    f"descriptor, because the rest of the block is not padding; dims={self.dims}, padded_dims={self.padded_dims}"
                )
        return ShapeDescriptor(
            by_onednn(self.data_type).dtype,
            "c",
            self.dims,
            self.strides,
            offset=self.submemory_offset,
            axes=self._order(),
            inner_blocks=tuple(zip(self.inner_idxs, self.inner_blks, strict=True)),
        )

    @property
    def ndims(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def inner_nblks(self) -> int:
        """Number of inner blocks."""
        return len(self.inner_blks)

    @property
    def size(self) -> int:
        """Bytes of the memory (`dnnl_memory_desc_get_size`): whole strides from element (0, .., 0) on, `submemory_offset` not included.

        That is not the end of the last element: strides (16, 5, 1) on dims (2, 3, 4) give 32 elements where the last lies at 29.
        """
        return self._size() * by_onednn(self.data_type).itemsize

    @property
    def tag(self) -> str | None:
        """Letter tag (``"aBcd8b"``) of a dense memory, else None."""
        name = tags.canonical(self._order(), tuple(zip(self.inner_idxs, self.inner_blks, strict=True)))
        dense = None if name is None else MemoryDesc.from_tag(self.dims, name, self.data_type)
        return name if dense and (dense.strides, dense.padded_dims) == (self.strides, self.padded_dims) else None

    def offset_of(self, index: Sequence[int]) -> int:
        """Offset of an element from the start of the buffer.

        Parameters
        ----------
        index : sequence of int
            One index for each dimension, not negative.

        Returns
        -------
        int
            In elements; `submemory_offset` is included.

        Raises
        ------
        OutOfRangeError
            Unless ``0 <= index < dims`` on every axis.

        Examples
        --------
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> MemoryDesc.from_tag((1, 17, 5, 4), "nChw8c").offset_of((0, 9, 2, 1))
        233
        """
        rest = list(map(as_index, index))
        if len(rest) != self.ndims or any(not 0 <= i < extent for i, extent in zip(rest, self.dims, strict=False)):
            raise OutOfRangeError(f"index {tuple(index)} is outside the dims {self.dims}: one index 0 <= i < extent for each axis")
        offset, step = self.submemory_offset, 1
        for axis, size in reversed(list(zip(self.inner_idxs, self.inner_blks, strict=True))):
            rest[axis], within = divmod(rest[axis], size)
            offset += within * step
            step *= size
        return offset + sum(i * stride for i, stride in zip(rest, self.strides, strict=True))

    def submemory(self, dims: Sequence[int], offsets: Sequence[int]) -> MemoryDesc:
        """Describe a part of this memory (`dnnl_memory_desc_create_submemory`).

        Parameters
        ----------
        dims : sequence of int
            Extents of the part.
        offsets : sequence of int
            Index of its first element.

        Returns
        -------
        MemoryDesc
            In the same buffer. A part that reaches the end of an axis keeps the tail of its last block; one that ends inside a
            block has no tail, and `to_descriptor` refuses it.

        Raises
        ------
        LayoutError
            For a part that is not inside `dims`.
        UnsupportedLayoutError
            Where the library has no answer: offsets inside a block, and parts of more than a block that end inside one.

        Examples
        --------
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> part = MemoryDesc.from_tag((2, 17, 5, 4), "nChw8c").submemory((2, 1, 5, 4), (0, 16, 0, 0))
        >>> part.padded_dims, part.submemory_offset
        ((2, 8, 5, 4), 320)
        """
        extents, starts = _sizes(dims, "dims"), _sizes(offsets, "offsets")
        if not len(extents) == len(starts) == self.ndims or any(s + n > whole for s, n, whole in zip(starts, extents, self.dims, strict=True)):
            raise LayoutError(
                f"a submemory lies inside its parent: dims={extents}, offsets={starts}, dims of the parent {self.dims}", ShapeStatus.OUT_OF_BUFFER
            )
        padded, offset = [], self.submemory_offset
        for axis, (start, extent, product) in enumerate(zip(starts, extents, self._products(), strict=True)):
            at_end = start + extent == self.dims[axis]
            if start % product or (not at_end and extent % product and extent > product):
                raise UnsupportedLayoutError(
                    f"axis {axis} has blocks of {product}: a submemory starts with a block and ends with one, with the axis, or inside its only block; "
                    f"it starts at {start} and has {extent} of {self.dims[axis]} elements"
                )
            padded.append(self.padded_dims[axis] - start if at_end else extent)
            offset += start // product * self.strides[axis]
        return MemoryDesc(extents, self.data_type, tuple(padded), self.strides, self.inner_blks, self.inner_idxs, offset)

    def permute_axes(self, permutation: Sequence[int]) -> MemoryDesc:
        """Describe the same memory with its dimensions in another order (`dnnl_memory_desc_permute_axes`).

        Parameters
        ----------
        permutation : sequence of int
            Dimension i of this becomes dimension ``permutation[i]`` of the result: the inverse of what `ShapeDescriptor.permute` takes.

        Returns
        -------
        MemoryDesc

        Raises
        ------
        LayoutError
            If `permutation` is none.

        Examples
        --------
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> MemoryDesc.from_tag((2, 5, 4, 3), "abcd").permute_axes((0, 2, 3, 1)) == MemoryDesc.from_tag((2, 3, 5, 4), "nhwc")
        True
        """
        new = tuple(permutation)
        if sorted(new) != list(range(self.ndims)):
            raise LayoutError(f"{new} is no permutation of the axes 0 to {self.ndims - 1}", ShapeStatus.INCORRECT_RANK)
        old = sorted(range(self.ndims), key=new.__getitem__)

        def turned(values: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(values[axis] for axis in old)

        return MemoryDesc(
            turned(self.dims), self.data_type, turned(self.padded_dims), turned(self.strides), self.inner_blks,
            tuple(new[axis] for axis in self.inner_idxs), self.submemory_offset,
        )  # fmt: skip

    def reshape(self, dims: Sequence[int]) -> MemoryDesc:
        """Describe the same memory with other dimensions (`dnnl_memory_desc_reshape`).

        Parameters
        ----------
        dims : sequence of int
            New extents, of the same number of elements.

        Returns
        -------
        MemoryDesc

        Raises
        ------
        LayoutError
            For another number of elements, for axes that would have to be joined or split and are blocked or not dense, and for
            a blocked axis of extent 1 that would go.

        Notes
        -----
        The library matches axes from the last to the first: extents of 1 come and go, equal axes keep their blocks, and the
        smallest runs of axes with equal products are laid out anew.

        Examples
        --------
        >>> from nd4jlike.adapters.onednn import MemoryDesc
        >>> desc = MemoryDesc.from_tag((2, 17, 5, 4), "nChw8c").reshape((2, 17, 20))
        >>> desc.padded_dims, desc.strides, desc.inner_idxs
        ((2, 24, 20), (480, 160, 8), (1,))
        """
        extents = _sizes(dims, "dims")
        _check_ndims(extents)
        if math.prod(max(extent, 1) for extent in extents) != math.prod(max(extent, 1) for extent in self.dims):
            raise LayoutError(f"a reshape keeps the number of elements: {self.dims} to {extents}", ShapeStatus.INCORRECT_SHAPE)
        products, run = self._products(), math.prod(self.inner_blks)
        padded, strides, place = list(extents), [0] * len(extents), {}

        def refuse(reason: str) -> LayoutError:
            return LayoutError(f"{reason}: dims {self.dims} to {extents}, padded_dims={self.padded_dims}, strides={self.strides}, blocks of {products}")

        old, new = self.ndims, len(extents)  # axes that are still to be matched
        while old or new:
            if old and self.padded_dims[old - 1] == 1:
                if products[old - 1] > 1:
                    raise refuse(f"axis {old - 1} is a part of a block of {products[old - 1]}")
                old -= 1
                continue
            if new and extents[new - 1] == 1 and not (old and self.dims[old - 1] == 1):
                new -= 1
                strides[new] = run if old == self.ndims else self.strides[old] * self.dims[old] // products[old]
                continue
            if not old or not new:
                raise refuse(f"axis {old - 1} has no place in the new dims" if old else f"axis {new - 1} of the new dims has no elements")
            first, begin = old - 1, new - 1
            have, want = self.dims[first], extents[begin]
            while have != want:
                if (first if have < want else begin) == 0:
                    raise refuse("axes of equal products are matched from the last to the first, these have none")
                if have < want:
                    first -= 1
                    have *= self.dims[first]
                else:
                    begin -= 1
                    want *= extents[begin]
                if not have or not want:
                    raise refuse("an axis of extent 0 is neither joined nor split")
            if (first, begin) == (old - 1, new - 1):
                padded[begin], strides[begin], place[first] = self.padded_dims[first], self.strides[first], begin
            else:
                for axis in range(first, old):
                    if products[axis] > 1 or self.padded_dims[axis] != self.dims[axis]:
                        raise refuse(f"axis {axis} has blocks of {products[axis]}, only axes without blocks are joined or split")
                    if axis > first and self.strides[axis - 1] != self.strides[axis] * self.dims[axis]:
                        raise refuse(f"axes {axis - 1} and {axis} are not dense, only dense axes are joined or split")
                stride = self.strides[old - 1]
                for axis in range(new - 1, begin - 1, -1):
                    strides[axis] = stride
                    stride *= extents[axis]
            old, new = first, begin
        idxs = tuple(place[axis] for axis in self.inner_idxs)
        return MemoryDesc(extents, self.data_type, tuple(padded), tuple(strides), self.inner_blks, idxs, self.submemory_offset)

    def _products(self) -> list[int]:
        """Elements of one block along each axis."""
        return _products(self.ndims, zip(self.inner_idxs, self.inner_blks, strict=True))

    def _counts(self) -> list[int]:
        """Blocks along each axis, a part of one included."""
        return [-(-padded // product) for padded, product in zip(self.padded_dims, self._products(), strict=True)]

    def _reach(self) -> int:
        """Elements from the first to the end of the last cell, tail included."""
        if 0 in self.dims:
            return 0
        return sum((count - 1) * stride for count, stride in zip(self._counts(), self.strides, strict=True)) + math.prod(self.inner_blks)

    def _size(self) -> int:
        """`size` in elements, by the library's rule: the largest whole stride of an axis of more than one block."""
        if 0 in self.dims:
            return 0
        whole = [padded // product for padded, product in zip(self.padded_dims, self._products(), strict=True)]
        size = max(count * (stride if count != 1 else 1) for count, stride in zip(whole, self.strides, strict=True))
        return math.prod(self.inner_blks) if size == 1 else size

    def _order(self) -> tuple[int, ...]:
        """Axes in memory order, slowest first; among equal strides the axes of one block come last."""
        counts = self._counts()
        return tuple(sorted(range(self.ndims), key=lambda axis: (-self.strides[axis], self.strides[axis] > 0 and counts[axis] == 1, axis)))

    def _unreached(self) -> int | None:
        """First axis, by stride, that does not reach over the one before it: the library's check, which passes stride 0."""
        reach = math.prod(self.inner_blks)
        for stride, count, axis in sorted(zip(self.strides, self._counts(), range(self.ndims), strict=True)):
            if count > 1 and stride and 0 not in self.dims:
                if stride < reach:
                    return axis
                reach = stride * count
        return None


def _check_ndims(dims: tuple[int, ...]) -> None:
    if not 1 <= len(dims) <= MAX_NDIMS:
        raise LayoutError(f"{len(dims)} dimensions, oneDNN has 1 to {MAX_NDIMS}: dims={dims}", ShapeStatus.INCORRECT_RANK)


def _products(ndims: int, blocks: Iterable[tuple[int, int]]) -> list[int]:
    """Product of the block sizes of each axis, from (axis, size) pairs."""
    products = [1] * ndims
    for axis, size in blocks:
        products[axis] *= size
    return products


# The library. Codes are those of oneapi/dnnl/dnnl_types.h of version 3.

_CPU, _IN_ORDER = 1, 1  # dnnl_cpu, dnnl_stream_in_order
_FORWARD_INFERENCE, _CONVOLUTION_DIRECT, _SCRATCHPAD_USER = 96, 1, 1
_BLOCKED, _ANY = 2, 1  # dnnl_format_kind_t, dnnl_format_tag_t
_SRC, _DST, _WEIGHTS, _BIAS, _SCRATCHPAD = 1, 17, 33, 41, 80  # DNNL_ARG_..
_SCALES, _ZERO_POINTS = 4096, 8192  # DNNL_ARG_ATTR_.., added to an argument
_PER_CHANNEL = 0b11  # mask of scales along C and M of weights
_QUERY_IMPLEMENTATION, _QUERY_STRIDES = 8, 14
_QUERY_SRC, _QUERY_WEIGHTS, _QUERY_DST, _QUERY_SCRATCHPAD = 129, 131, 133, 136
_QUERY_NDIMS, _QUERY_DIMS, _QUERY_DATA_TYPE, _QUERY_OFFSET, _QUERY_PADDED, _QUERY_PADDED_OFFSETS = range(256, 262)
_QUERY_FORMAT_KIND, _QUERY_INNER_NBLKS, _QUERY_INNER_BLKS, _QUERY_INNER_IDXS = range(262, 266)

# dnnl_status_t: name, words, error.
_STATUSES: dict[int, tuple[str, str, type[Exception]]] = {
    1: ("out_of_memory", "there is not enough memory", MemoryError),
    2: ("invalid_arguments", "the arguments contradict each other or the library's rules", LayoutError),
    3: ("unimplemented", "this build has no implementation for these layouts and data types", UnsupportedLayoutError),
    4: ("last_impl_reached", "there is no further implementation", UnsupportedLayoutError),
}
_FAILURES = {5: ("runtime_error", "the primitive or the engine failed"), 6: ("not_required", "the primitive needs no such thing")}

_Pointer = ctypes.c_void_p
_Dims = ctypes.c_int64 * MAX_NDIMS
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "engine_create": (_Pointer, ctypes.c_int, ctypes.c_size_t),
    "stream_create": (_Pointer, _Pointer, ctypes.c_uint),
    "stream_wait": (_Pointer,),
    "memory_desc_create_with_tag": (_Pointer, ctypes.c_int, _Pointer, ctypes.c_int, ctypes.c_int),
    "memory_desc_create_with_string_tag": (_Pointer, ctypes.c_int, _Pointer, ctypes.c_int, ctypes.c_char_p),
    "memory_desc_create_with_strides": (_Pointer, ctypes.c_int, _Pointer, ctypes.c_int, _Pointer),
    "memory_desc_create_submemory": (_Pointer, _Pointer, _Pointer, _Pointer),
    "memory_desc_query": (_Pointer, ctypes.c_int, _Pointer),
    "memory_create": (_Pointer, _Pointer, _Pointer, _Pointer),
    "primitive_attr_create": (_Pointer,),
    "primitive_attr_set_scratchpad_mode": (_Pointer, ctypes.c_int),
    "primitive_attr_set_scales_mask": (_Pointer, ctypes.c_int, ctypes.c_int),
    "primitive_attr_set_zero_points_mask": (_Pointer, ctypes.c_int, ctypes.c_int),
    "reorder_primitive_desc_create": (_Pointer,) * 6,
    "convolution_forward_primitive_desc_create": (_Pointer, _Pointer, ctypes.c_int, ctypes.c_int, *(_Pointer,) * 9),
    "primitive_desc_query": (_Pointer, ctypes.c_int, ctypes.c_int, _Pointer),
    "primitive_create": (_Pointer, _Pointer),
    "primitive_execute": (_Pointer, _Pointer, ctypes.c_int, _Pointer),
    **{f"{kind}_destroy": (_Pointer,) for kind in ("engine", "stream", "memory", "memory_desc", "primitive", "primitive_desc", "primitive_attr")},
}


class OneDnnError(Nd4jLikeError, RuntimeError):
    """A call of the library that failed for another reason than its arguments."""


class _Argument(ctypes.Structure):
    arg: int
    memory: int | None
    _fields_ = (("arg", ctypes.c_int), ("memory", _Pointer))


def find_library() -> str | None:
    """Path of the libdnnl that `Engine` loads; None where there is none. Loads nothing.

    Returns
    -------
    str or None
        The environment variable ``ND4JLIKE_ONEDNN`` if it is set and not empty; else the file of the package ``onednn-cpu-gomp``
        (extra ``onednn``); else what the system's linker finds.

    Examples
    --------
    >>> from nd4jlike.adapters.onednn import find_library
    >>> path = find_library()
    """
    named = os.environ.get(VARIABLE)
    if named:
        return named
    try:
        files = importlib.metadata.files(PACKAGE) or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.name == "libdnnl.so.3":
            return os.path.realpath(str(file.locate()))
    return ctypes.util.find_library("dnnl")


class _Library:
    """A loaded libdnnl: checked calls, by name without ``dnnl_``."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._calls = ctypes.CDLL(path)
            version = self._calls.dnnl_version
            version.restype = ctypes.POINTER(ctypes.c_int)
            major, minor, patch = version()[:3]
            self.version = f"{major}.{minor}.{patch}"
            if major != 3:
                raise MissingLibraryError(f"{path} is oneDNN {self.version}, this adapter speaks version 3; {_install()}")
            for name, arguments in _SIGNATURES.items():
                getattr(self._calls, f"dnnl_{name}").argtypes = arguments
            self._calls.dnnl_memory_desc_get_size.argtypes = (_Pointer,)
            self._calls.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
            self._calls.dnnl_primitive_desc_query_md.argtypes = (_Pointer, ctypes.c_int, ctypes.c_int)
            self._calls.dnnl_primitive_desc_query_md.restype = _Pointer
        except (OSError, AttributeError) as error:
            raise MissingLibraryError(f"{path} is no oneDNN 3 that can be loaded: {error}; {_install()}") from error

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``dnnl_<name>``; every status but success is an error."""
        status = getattr(self._calls, f"dnnl_{name}")(*arguments)
        if status == 0:
            return
        if status in _STATUSES:
            word, reason, error = _STATUSES[status]
            raise error(f"dnnl_{name}: {word}, {reason} (oneDNN {self.version})")
        word, reason = _FAILURES.get(status, (f"status {status}", "the library gives no reason"))
        raise OneDnnError(f"dnnl_{name}: {word}, {reason} (oneDNN {self.version})")

    def make(self, kind: str, create: str, *arguments: Any, needs: tuple[Any, ...] = ()) -> _Handle:
        """Call ``dnnl_<create>``, whose first argument receives the new object of `kind`; `needs` outlive it."""
        made = _Pointer()
        self.call(create, ctypes.byref(made), *arguments)
        return _Handle(getattr(self._calls, f"dnnl_{kind}_destroy"), made.value, needs)

    def size(self, md: Any) -> int:
        """Bytes of a memory descriptor."""
        return int(self._calls.dnnl_memory_desc_get_size(md))

    def query_md(self, primitive_desc: _Handle, what: int) -> Any:
        """Memory descriptor of a primitive; the primitive descriptor owns it."""
        return self._calls.dnnl_primitive_desc_query_md(primitive_desc, what, 0)

    def query(self, md: Any, what: int, result: Any) -> Any:
        """One figure of a memory descriptor."""
        self.call("memory_desc_query", md, what, ctypes.byref(result))
        return result

    def describe(self, md: Any) -> MemoryDesc:
        """Read a memory descriptor back; what fields do not tell is refused."""
        kind = self.query(md, _QUERY_FORMAT_KIND, ctypes.c_int()).value
        if kind != _BLOCKED:
            raise UnsupportedLayoutError(f"the library's layout is of its format kind {kind}, which has no strides")
        ndims = self.query(md, _QUERY_NDIMS, ctypes.c_int()).value
        nblks = self.query(md, _QUERY_INNER_NBLKS, ctypes.c_int()).value
        code = self.query(md, _QUERY_DATA_TYPE, ctypes.c_int()).value

        def listed(what: int, count: int) -> tuple[int, ...]:
            return tuple(self.query(md, what, ctypes.POINTER(ctypes.c_int64)())[:count])

        if any(listed(_QUERY_PADDED_OFFSETS, ndims)):
            raise UnsupportedLayoutError(f"the library's layout has padded_offsets {listed(_QUERY_PADDED_OFFSETS, ndims)}")
        desc = MemoryDesc(
            listed(_QUERY_DIMS, ndims), _data_type(code), listed(_QUERY_PADDED, ndims), listed(_QUERY_STRIDES, ndims),
            listed(_QUERY_INNER_BLKS, nblks), listed(_QUERY_INNER_IDXS, nblks), self.query(md, _QUERY_OFFSET, ctypes.c_int64()).value,
        )  # fmt: skip
        # Sizes differ by what no query tells: sums of weights behind the elements. (3.2 gives 0 for a submemory with an offset.)
        if desc.submemory_offset == 0 and self.size(md) != desc.size:
            raise UnsupportedLayoutError(f"the library keeps {self.size(md) - desc.size} bytes of its own behind the elements of {desc}")
        return desc


class _Handle:
    """An object of the library's. It is destroyed once, when nothing holds it any more, and before what it needs."""

    def __init__(self, destroy: Any, pointer: int | None, needs: tuple[Any, ...]) -> None:
        self._as_parameter_ = pointer
        weakref.finalize(self, _destroy, destroy, pointer, needs).atexit = False


def _destroy(destroy: Any, pointer: int | None, needs: tuple[Any, ...]) -> None:
    destroy(pointer)
    del needs  # kept until here


def _install() -> str:
    return f"pip install 'nd4jlike[onednn]' (the package {PACKAGE}) installs one, or name the file of your own in {VARIABLE}"


def _data_type(code: int) -> str:
    for name, row in _TYPES.items():
        if row == code:
            return name
    raise DTypeError(f"no element type for oneDNN's data type {code}: it must be one of {', '.join(_TYPES)}")


_TYPES = {name: by_onednn(name).onednn_code or 0 for name in ("f16", "bf16", "f32", "s32", "s8", "u8", "f64")}  # dnnl_data_type_t
_lock = threading.RLock()
_libraries: dict[str, _Library] = {}


def _load() -> _Library:
    path = find_library()
    if path is None:
        raise MissingLibraryError(f"oneDNN (libdnnl.so.3) is not installed; {_install()}")
    with _lock:
        if path not in _libraries:
            _libraries[path] = _Library(path)
        return _libraries[path]


class Engine:
    """The library, loaded, and its CPU engine.

    Raises
    ------
    MissingLibraryError
        Where no libdnnl of version 3 is found; says what to install.

    Notes
    -----
    The library is found by `find_library` when the first engine is made. It runs as many threads as OpenMP gives it
    (``OMP_NUM_THREADS``). Engines, memories and primitives do not change once made: several threads may use one at a time, as long as
    nobody writes an array that another reads. There is nothing to close; what holds an object of the library's holds all that it needs.

    Examples
    --------
    >>> from nd4jlike.adapters.onednn import Engine, find_library
    >>> if find_library():
    ...     engine = Engine()
    """

    def __init__(self) -> None:
        self._library = _load()
        self._handle = self._library.make("engine", "engine_create", _CPU, 0)
        self._natives: dict[MemoryDesc, _Handle] = {}

    @property
    def version(self) -> str:
        """Version of the library, such as ``"3.2.0"``."""
        return self._library.version

    @property
    def path(self) -> str:
        """The library's file."""
        return self._library.path

    def __repr__(self) -> str:
        return f"<Engine of oneDNN {self.version}: {self.path}>"

    def _native(self, desc: MemoryDesc) -> _Handle:
        """Get the library's own descriptor of `desc`, but for the offset, which goes into the address."""
        found = self._natives.get(desc)
        if found is None:
            if len(self._natives) >= _CACHED:
                self._natives.clear()
            found = self._natives[desc] = self._made(desc)
        return found

    def _made(self, desc: MemoryDesc) -> _Handle:
        library, ndims, dims, code = self._library, desc.ndims, _Dims(*desc.dims), _TYPES[desc.data_type]
        if not desc.inner_nblks or 0 in desc.dims:
            return library.make("memory_desc", "memory_desc_create_with_strides", ndims, dims, code, _Dims(*desc.strides))
        tag, room = (desc.tag, desc.dims) if desc.tag else _hosting_tag(desc)
        whole = library.make("memory_desc", "memory_desc_create_with_string_tag", ndims, _Dims(*room), code, str(tag).encode())
        return whole if room == desc.dims else library.make("memory_desc", "memory_desc_create_submemory", whole, dims, _Dims())


def _hosting_tag(desc: MemoryDesc) -> tuple[str | None, tuple[int, ...]]:
    """Tag and dims of a dense buffer of which `desc` is the part at index (0, .., 0): the way to blocks with padding around them."""
    products, counts, run = desc._products(), desc._counts(), math.prod(desc.inner_blks)
    # Axes of one block lie anywhere: their strides contribute to no address.
    walked = [axis for axis in desc._order() if counts[axis] > 1]
    order = [axis for axis in range(desc.ndims) if counts[axis] == 1] + walked
    room = list(desc.dims)
    if walked and desc.strides[walked[-1]] != run:
        raise UnsupportedLayoutError(
            f"axis {walked[-1]} has stride {desc.strides[walked[-1]]}, oneDNN's blocked layouts have no gaps between blocks of {run}: {desc}"
        )
    for slow, fast in itertools.pairwise(walked):
        count, rest = divmod(desc.strides[slow], desc.strides[fast])
        if rest:
            raise UnsupportedLayoutError(
                f"axis {slow} has stride {desc.strides[slow]}, no whole multiple of stride {desc.strides[fast]} of axis {fast}: oneDNN's blocked layouts are "
                f"parts of dense buffers; {desc}"
            )
        if count > counts[fast]:
            if desc.dims[fast] % products[fast]:
                raise UnsupportedLayoutError(
                    f"axis {fast} has {desc.dims[fast]} elements in blocks of {products[fast]} and padding of whole blocks behind: oneDNN keeps a tail "
                    f"of zeros only at the end of a buffer's axis; {desc}; reorder to a layout without padding on this axis"
                )
            room[fast] = count * products[fast]
    return tags.canonical(tuple(order), tuple(zip(desc.inner_idxs, desc.inner_blks, strict=True))), tuple(room)


class Memory:
    """An array as the library sees it: its own memory, nothing is copied.

    Parameters
    ----------
    array : NdArray
        Any array whose layout `MemoryDesc` can describe; kept alive by this object.
    engine : Engine, optional
        Default: one that all calls share.
    tail : {"check", "zero", "trust"}, optional
        What to do about cells that fill up the blocks. The library computes with them and expects zeros. ``"check"``: look at them, now and each
        time that the memory is read. ``"zero"``: write zeros instead. ``"trust"``: neither; a NaN there spreads.
    alignment : int, optional
        Bytes of which the address of element (0, .., 0) must be a multiple. Elements always lie on multiples of their size, which is
        all that the library needs; new arrays lie on multiples of 64.

    Raises
    ------
    LayoutError
        For a dirty tail, naming the first dirty cell, misaligned memory, and ``tail="zero"`` on a read-only array.
    UnsupportedLayoutError, DTypeError
        For layouts and element types that the library cannot express; see `MemoryDesc.from_descriptor`. Of the blocked layouts with padding
        around the elements these are the ones that are no part of a dense buffer, and tails that do not end their buffer's axis.
    TypeError
        When `array` is no NdArray.
    MissingLibraryError
        See `Engine`.

    Notes
    -----
    Padding around the elements is neither read nor written by the library. `NdArray` has seen to it that the buffer holds the last cell
    of the layout. Source: `dnnl_memory_create`, which takes an address and believes the rest.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters import onednn
    >>> x = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c"))
    >>> if onednn.find_library():
    ...     memory = onednn.Memory(x)
    ...     assert memory.address == x.buffer.address
    """

    def __init__(self, array: NdArray, *, engine: Engine | None = None, tail: _Tail = "check", alignment: int = 0) -> None:
        self._lay(array, engine, tail)
        if alignment and self.address % alignment:
            raise LayoutError(f"misaligned memory: {alignment} bytes asked for, element (0, .., 0) lies at address {self.address:#x}")
        self._clean()

    @classmethod
    def _of(cls, x: NdArray | Memory, engine: Engine | None, tail: _Tail) -> Memory:
        """Make a memory of `x` whose tail is not looked at before it is read."""
        if isinstance(x, Memory):
            return x
        made = cls.__new__(cls)
        made._lay(x, engine, tail)
        return made

    def _lay(self, array: NdArray, engine: Engine | None, tail: _Tail) -> None:
        if not isinstance(array, NdArray):
            raise TypeError(f"Memory takes an NdArray, not {type(array).__name__}: wrap others by nd4jlike.asarray")
        self._array = array
        self._tail = choice("tail", tail, ("check", "zero", "trust"))
        self._desc = _described(array.descriptor)
        self._engine = engine or _shared_engine()
        self._md = self._engine._native(self._desc)
        self._handle = _memory(self._engine, self._md, self.address, array)

    @property
    def array(self) -> NdArray:
        """The array."""
        return self._array

    @property
    def desc(self) -> MemoryDesc:
        """Its layout in the library's words."""
        return self._desc

    @property
    def address(self) -> int:
        """Address of element (0, .., 0), which is what the library gets."""
        return self._array.buffer.address + self._desc.submemory_offset * self._array.itemsize

    def _clean(self) -> None:
        """See to it that the tail holds what the library expects."""
        if self._tail == "trust" or self._desc.padded_dims == self._desc.dims:
            return
        if self._tail == "zero":
            self._written()
        for axis, view, mask in _tails(self._desc, self._array):
            if self._tail == "zero":
                view[..., mask] = 0
            elif view[..., mask].any():
                raise LayoutError(_dirt(self._desc, axis, view, mask), ShapeStatus.INCORRECT_PADDING)

    def _written(self) -> None:
        """Refuse read-only memory; what was known about padding is not known any more where the library writes it."""
        if self._array.readonly and 0 not in self._desc.dims:
            raise LayoutError(f"the array is read-only: {self._array.descriptor!r}")
        if self._desc.padded_dims != self._desc.dims:
            self._array.hosting_array()  # from here on the array looks at its padding

    def __repr__(self) -> str:
        return f"<Memory at {self.address:#x}, tail={self._tail!r}, of {self._desc}>"


_described = functools.lru_cache(_CACHED)(MemoryDesc.from_descriptor)


def _memory(engine: Engine, md: Any, address: int, owner: Any) -> _Handle:
    """Make the library's memory object over bytes that `owner` keeps alive."""
    return engine._library.make("memory", "memory_create", md, engine._handle, address, needs=(engine._handle, owner))


def _tails(desc: MemoryDesc, array: NdArray) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[np.bool_]]]:
    """For each axis that does not fill its last block: the cells of its last blocks as bits, and which of the inner cells are beyond the axis."""
    if 0 in desc.dims:
        return
    itemsize, products, counts = array.itemsize, desc._products(), desc._counts()
    raw: Any = (ctypes.c_char * array.buffer.nbytes).from_address(array.buffer.address)
    inner_strides = [math.prod(desc.inner_blks[level + 1 :]) for level in range(desc.inner_nblks)]
    for axis, product in enumerate(products):
        last = counts[axis] - 1
        if desc.padded_dims[axis] == desc.dims[axis]:
            continue
        outer = [count for other, count in enumerate(counts) if other != axis]
        steps = [stride for other, stride in enumerate(desc.strides) if other != axis]
        view: npt.NDArray[Any] = np.ndarray(
            (*outer, *desc.inner_blks), f"u{itemsize}", raw, (desc.submemory_offset + last * desc.strides[axis]) * itemsize,
            [step * itemsize for step in (*steps, *inner_strides)],
        )  # fmt: skip
        yield axis, view, _within(desc, axis) >= desc.dims[axis] - last * product


def _within(desc: MemoryDesc, axis: int) -> npt.NDArray[np.intp]:
    """Position along `axis` of each cell of an inner block."""
    position = np.zeros(desc.inner_blks, np.intp)
    step = 1
    for level in reversed(range(desc.inner_nblks)):
        if desc.inner_idxs[level] == axis:
            shape = [1] * desc.inner_nblks
            shape[level] = -1
            position += np.arange(desc.inner_blks[level]).reshape(shape) * step
            step *= desc.inner_blks[level]
    return position


def _dirt(desc: MemoryDesc, axis: int, view: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> str:
    """Say where the first dirty cell of an axis lies and what it holds."""
    dirty = (view != 0) & mask
    place = [int(i) for i in np.argwhere(dirty)[0]]
    outer, inner = place[: desc.ndims - 1], place[desc.ndims - 1 :]
    outer.insert(axis, desc._counts()[axis] - 1)
    index = tuple(o * product + int(_within(desc, a)[tuple(inner)]) for a, (o, product) in enumerate(zip(outer, desc._products(), strict=True)))
    bits = view[tuple(place)].reshape(1)
    value = bfloat16_to_float32(bits)[0] if desc.data_type == "bf16" else bits.view(bits_dtype(by_onednn(desc.data_type).dtype))[0]
    return (
        f"the tail of axis {axis} must hold zeros, {int(dirty.sum())} of {int(view[..., mask].size)} cells do not: {index} holds {value}; "
        f"dims={desc.dims}, padded_dims={desc.padded_dims}; tail='zero' writes zeros, tail='trust' does not look"
    )


_engines: dict[str, Engine] = {}


def _shared_engine() -> Engine:
    """One engine for all calls that name none."""
    with _lock:
        path = _load().path
        if path not in _engines:
            _engines[path] = Engine()
        return _engines[path]


def _bound(engine: Engine, primitive: _Handle, scratch: int, arguments: dict[int, _Handle]) -> Callable[[], None]:
    """Make the call that executes a primitive and waits; it keeps all that it needs."""
    library = engine._library
    stream = library.make("stream", "stream_create", engine._handle, _IN_ORDER, needs=(engine._handle,))
    if scratch:
        room = NdArray(ShapeDescriptor("uint8", "c", (scratch,)))
        arguments = {**arguments, _SCRATCHPAD: _memory(engine, engine._native(MemoryDesc.from_strides((scratch,), data_type="u8")), room.buffer.address, room)}
    listed = (_Argument * len(arguments))(*(_Argument(arg, handle._as_parameter_) for arg, handle in arguments.items()))
    kept = (primitive, arguments)

    def run() -> None:
        library.call("primitive_execute", kept[0], stream, len(listed), listed)
        library.call("stream_wait", stream)

    return run


def _run(engine: Engine, primitive: _Handle, scratch: int, arguments: dict[int, _Handle]) -> None:
    """Execute a primitive once. Scratch memory is that of this call, so calls in several threads do not meet."""
    _bound(engine, primitive, scratch, arguments)()


def _primitive(engine: Engine, create: str, *arguments: Any, masks: dict[int, int] | None = None) -> tuple[_Handle, _Handle, int]:
    """Primitive, its descriptor and the bytes of scratch memory that a call needs. `masks` of scales and zero points, by argument."""
    library = engine._library
    attributes = library.make("primitive_attr", "primitive_attr_create")
    library.call("primitive_attr_set_scratchpad_mode", attributes, _SCRATCHPAD_USER)
    for argument, mask in (masks or {}).items():
        what = "scales" if argument & _SCALES else "zero_points"
        library.call(f"primitive_attr_set_{what}_mask", attributes, argument & ~(_SCALES | _ZERO_POINTS), mask)
    desc = library.make("primitive_desc", create, *arguments, attributes, needs=(engine._handle,))
    primitive = library.make("primitive", "primitive_create", desc, needs=(engine._handle,))
    return primitive, desc, library.size(library.query_md(desc, _QUERY_SCRATCHPAD))


def _disjoint(reads: Iterable[Memory], writes: Memory) -> None:
    """Refuse a result that lies among what is read."""
    for read in reads:
        (start, end), (first, last) = ((m.address, m.address + m.desc._reach() * m.array.itemsize) for m in (read, writes))
        if start < last and first < end:
            raise LayoutError(f"the result overlaps what is read: bytes {first:#x} to {last:#x} and {start:#x} to {end:#x}")


def reorder(source: NdArray | Memory, destination: NdArray | Memory | ShapeDescriptor, *, engine: Engine | None = None, tail: _Tail = "check") -> NdArray:
    """Copy elements to another layout, by the library's reorder.

    Parameters
    ----------
    source : NdArray or Memory
        What is read.
    destination : NdArray, Memory or ShapeDescriptor
        Of the same shape; of another element type, the library converts (rounding half to even, saturating integers). A descriptor:
        a new array. The tail of its blocks is filled with zeros, padding around its elements keeps what it holds.
    engine : Engine, optional
        Default: one that all calls share.
    tail : {"check", "zero", "trust"}, optional
        For a `source` that is an array; see `Memory`.

    Returns
    -------
    NdArray
        The destination.

    Raises
    ------
    LayoutError
        For shapes that differ, arrays that overlap, a destination that is read-only, and a dirty tail of the source.
    UnsupportedLayoutError, DTypeError
        For layouts and element types that the library cannot express or convert.
    MissingLibraryError
        See `Engine`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters import onednn
    >>> x = nd.ones((1, 17, 5, 4))
    >>> if onednn.find_library():
    ...     y = onednn.reorder(x, nd.ShapeDescriptor.from_tag(x.shape, "nChw8c"))
    ...     assert y[0, 16, 4, 3] == 1 and y.check_padding()
    """
    read = Memory._of(source, engine, tail)
    if isinstance(destination, ShapeDescriptor):
        destination = NdArray(destination)
    written = Memory._of(destination, read._engine, "trust")
    if read.desc.dims != written.desc.dims:
        raise LayoutError(f"a reorder keeps the shape: {read.desc.dims} to {written.desc.dims}", ShapeStatus.INCORRECT_SHAPE)
    _disjoint((read,), written)
    handle = read._engine._handle
    try:
        primitive, _, scratch = _primitive(read._engine, "reorder_primitive_desc_create", read._md, handle, written._md, handle)
    except UnsupportedLayoutError as error:
        raise UnsupportedLayoutError(f"no reorder from {read.desc} to {written.desc}: {error}") from error
    written._written()
    read._clean()
    _run(read._engine, primitive, scratch, {_SRC: read._handle, _DST: written._handle})
    return written.array


class DepthwiseConv2d:
    """The library's depthwise convolution, configured once: layouts chosen, weights reordered.

    Parameters
    ----------
    src : ShapeDescriptor or tuple of int
        Layout of the input, axes named by `data_format`; a shape alone leaves the layout to the library (its ``any``).
    weights : NdArray or array_like
        Axes named by `weights_format`, as `nd4jlike.DepthwiseConv2d` has them. Copied.
    bias : NdArray or array_like, optional
        One number for each output channel, of a type that the library takes: float32, or int32 with int32 results. Copied.
    dst : ShapeDescriptor, optional
        Layout of the result. Default: the layout tag of `src` where it has one, else the library's choice. (Left to choose for a blocked
        input, it chooses a plain result and its slowest kernel.)
    dtype, dst_dtype : dtype, optional
        Elements of an input and of a result whose layout the library chooses. Default: those of the weights, and those of the input or,
        for bytes, int32: the sums as they are. Nothing is scaled.
    stride, dilation : int or (int, int), optional
        Steps of the window and of its taps: (height, width).
    padding : {"same", "valid"}, int, (int, int) or ((int, int), (int, int)), optional
        Zeros around the image, as `nd4jlike.DepthwiseConv2d` has them.
    data_format : {"NHWC", "NCHW"}, optional
        Names of the axes of input and result, not their memory order.
    weights_format : {"HWCM", "MCHW", "MHWC", "C1HW"}, optional
        Names of the axes of the weights.
    quantization : Quantization, optional
        For bytes: the library scales its sums, adds the zero point and rounds; the result has the type of the input. `bias` is int32, as ours is.
        It rounds floats once, half to even: elements may differ from `rounding="xnnpack"` by one where the exact value is near one half.
    engine : Engine, optional
        Default: one that all calls share.

    Raises
    ------
    LayoutError
        For shapes that do not fit each other.
    UnsupportedLayoutError
        Where the library has no implementation for these layouts and element types.
    DTypeError
        For element types that the library lacks.
    MissingLibraryError
        See `Engine`.

    Notes
    -----
    Source: `dnnl_convolution_forward_primitive_desc_create` with as many groups as channels.

    Examples
    --------
    >>> import numpy as np
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters import onednn
    >>> if onednn.find_library():
    ...     plan = onednn.DepthwiseConv2d((1, 5, 5, 17), np.ones((3, 3, 17, 1), np.float32))
    ...     x = nd.NdArray(plan.src_descriptor)  # what the library's ``any`` became
    ...     x[...] = 1
    ...     assert plan(x)[0, 2, 2, 16] == 9
    """

    def __init__(
        self,
        src: ShapeDescriptor | Sequence[int],
        weights: NdArray | npt.ArrayLike,
        bias: NdArray | npt.ArrayLike | None = None,
        *,
        dst: ShapeDescriptor | None = None,
        dtype: Any = None,
        dst_dtype: Any = None,
        stride: int | tuple[int, int] = 1,
        dilation: int | tuple[int, int] = 1,
        padding: Any = "same",
        data_format: Literal["NHWC", "NCHW"] = "NHWC",
        weights_format: Literal["HWCM", "MCHW", "MHWC", "C1HW"] = "HWCM",
        quantization: Quantization | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._engine = engine or _shared_engine()
        batch, height, width, channel = AXES[choice("data_format", data_format, tuple(AXES))]
        self._axes = (batch, channel, height, width)
        self._back = tuple(sorted(range(4), key=self._axes.__getitem__))
        numbers, weights_type = _plain(weights)
        shape = src.shape if isinstance(src, ShapeDescriptor) else _sizes(src, "the shape of src")
        if len(shape) != 4:
            raise LayoutError(f"src has the four axes {data_format}: shape {shape}")
        dims = tuple(shape[axis] for axis in self._axes)
        readings = weight_readings(numbers, choice("weights_format", weights_format, tuple(WEIGHT_AXES)))
        kernels = next((reading.weights for reading in readings if reading.fits(dims[1])), None)
        if kernels is None:
            raise LayoutError(f"weights {WEIGHT_AXES[weights_format]} of shape {numbers.shape} are not for {dims[1]} channels: src {shape}, {data_format}")
        kh, kw, outputs = kernels.shape
        window = Window((kh, kw), pair("stride", stride, 1), pair("dilation", dilation, 1), sides(padding))
        walk = window.over((dims[2], dims[3]))
        dst_dims = (dims[0], outputs, *walk.out)

        src_type = _name(src.dtype if isinstance(src, ShapeDescriptor) else dtype) if dtype is not None or isinstance(src, ShapeDescriptor) else weights_type
        sums = {"s8": "s32", "u8": "s32"} if quantization is None else {}
        dst_type = _name(dst.dtype if dst else dst_dtype) if dst or dst_dtype is not None else sums.get(src_type, src_type)
        if dst is not None and tuple(dst.shape[axis] for axis in self._axes if axis < dst.rank) != dst_dims:
            raise LayoutError(f"dst has shape {dst.shape}, the result {tuple(dst_dims[axis] for axis in self._back)}")
        src_md, dst_md = self._asked(src, dims, src_type), self._asked(dst or self._twin(src, dst_dims, dst_type), dst_dims, dst_type)
        grouped = (dims[1], outputs // dims[1], 1, kh, kw)
        numbers_bias, bias_type = (None, "") if bias is None else _plain(bias)
        if numbers_bias is not None and numbers_bias.shape != (outputs,):
            raise LayoutError(f"bias has one number for each of {outputs} output channels: shape {numbers_bias.shape}")
        constants: dict[int, npt.NDArray[Any]] = {}
        if quantization is not None:
            if {src_type, dst_type} - {"s8", "u8"}:
                raise LayoutError(f"quantization scales bytes to bytes: src {src_type}, dst {dst_type}")
            quantization.check("int8" if src_type == "s8" else "uint8", outputs)
            (scale, zero_point), (dst_scale, dst_zero_point) = quantization.input, quantization.output
            scales = np.broadcast_to(np.asarray(quantization.weights, np.float32), outputs)
            constants = {argument | _SCALES: np.array(values, np.float32) for argument, values in ((_SRC, [scale]), (_WEIGHTS, scales), (_DST, [dst_scale]))}
            constants |= {argument | _ZERO_POINTS: np.array([value], np.int32) for argument, value in ((_SRC, zero_point), (_DST, dst_zero_point)) if value}
            if numbers_bias is not None:
                numbers_bias, bias_type = (numbers_bias * (scale * scales.astype(np.float64))).astype(np.float32), "f32"
        bias_md = None if numbers_bias is None else self._engine._native(MemoryDesc.from_strides((outputs,), None, bias_type))

        library = self._engine._library
        spatial = (window.stride, tuple(step - 1 for step in window.dilation), walk.before, tuple(after for _, after in walk.reach))
        try:
            self._primitive, self._pd, self._scratch = _primitive(
                self._engine, "convolution_forward_primitive_desc_create", self._engine._handle, _FORWARD_INFERENCE, _CONVOLUTION_DIRECT,
                src_md, _any(library, grouped, weights_type), bias_md, dst_md, *(_Dims(*figures) for figures in spatial),
                masks={argument: _PER_CHANNEL if argument == _WEIGHTS | _SCALES else 0 for argument in constants},
            )  # fmt: skip
        except (LayoutError, UnsupportedLayoutError) as error:
            raise UnsupportedLayoutError(
                f"no depthwise convolution of {src_type} {src} by {weights_type} weights (C, M, 1, kH, kW) = {grouped} to {dst_type} {dst or dst_dims}, "
                f"stride {window.stride}, dilation {window.dilation}: {error}"
            ) from error
        self._src, self._dst = (library.describe(library.query_md(self._pd, what)) for what in (_QUERY_SRC, _QUERY_DST))
        self._dst_descriptor = dst or self._dst.to_descriptor().permute(self._back)
        self._src_descriptor = src if isinstance(src, ShapeDescriptor) else self._src.to_descriptor().permute(self._back)
        self._constants = {_WEIGHTS: self._packed(kernels, grouped, weights_type)}
        if numbers_bias is not None:
            self._constants[_BIAS] = _memory(self._engine, bias_md, numbers_bias.ctypes.data, numbers_bias)
        for argument, numbers in constants.items():
            md = self._engine._native(MemoryDesc.from_strides(numbers.shape, None, _name(numbers.dtype)))
            self._constants[argument] = _memory(self._engine, md, numbers.ctypes.data, numbers)

    def _twin(self, src: ShapeDescriptor | Sequence[int], dims: tuple[int, ...], data_type: str) -> ShapeDescriptor | None:
        """Lay the result out by the tag that `src` has."""
        tag = src.permute(self._axes).tag if isinstance(src, ShapeDescriptor) else None
        return None if tag is None else ShapeDescriptor.from_tag(dims, tag, by_onednn(data_type).dtype).permute(self._back)

    def _asked(self, descriptor: ShapeDescriptor | Sequence[int] | None, dims: tuple[int, ...], data_type: str) -> _Handle:
        """Layout that is given, or ``any``."""
        if isinstance(descriptor, ShapeDescriptor):
            return self._engine._native(MemoryDesc.from_descriptor(descriptor.permute(self._axes)))
        return _any(self._engine._library, dims, data_type)

    def _packed(self, kernels: npt.NDArray[Any], grouped: tuple[int, ...], data_type: str) -> _Handle:
        """Reorder the weights to the layout that the library chose, in memory of our own."""
        library, engine = self._engine._library, self._engine
        channels, multiplier, _, _, kw = grouped
        plain = engine._native(MemoryDesc.from_strides(grouped, (multiplier, 1, 1, kw * channels * multiplier, channels * multiplier), data_type))
        given = _memory(engine, plain, kernels.ctypes.data, kernels)
        wanted = library.query_md(self._pd, _QUERY_WEIGHTS)
        room = NdArray(ShapeDescriptor("uint8", "c", (library.size(wanted),)))
        packed = _memory(engine, wanted, room.buffer.address, room)
        primitive, _, scratch = _primitive(engine, "reorder_primitive_desc_create", plain, engine._handle, wanted, engine._handle)
        _run(engine, primitive, scratch, {_SRC: given, _DST: packed})
        return packed

    @property
    def src_descriptor(self) -> ShapeDescriptor:
        """Layout of the input; what ``any`` became."""
        return self._src_descriptor

    @property
    def dst_descriptor(self) -> ShapeDescriptor:
        """Layout of the result; what ``any`` became."""
        return self._dst_descriptor

    @property
    def weights_desc(self) -> MemoryDesc:
        """Layout of the packed weights, dimensions (C, M, 1, kH, kW).

        Raises
        ------
        UnsupportedLayoutError
            Where the library keeps sums behind them, as it does for signed bytes.
        """
        return self._engine._library.describe(self._engine._library.query_md(self._pd, _QUERY_WEIGHTS))

    @property
    def implementation(self) -> str:
        """The library's name for the kernel that it chose, such as ``"jit_dw:avx512_core"``."""
        name = ctypes.c_char_p()
        self._engine._library.call("primitive_desc_query", self._pd, _QUERY_IMPLEMENTATION, 0, ctypes.byref(name))
        return (name.value or b"").decode()

    def __call__(self, x: NdArray | Memory, out: NdArray | None = None, *, tail: _Tail = "check") -> NdArray:
        """Convolve.

        Parameters
        ----------
        x : NdArray or Memory
            An array with the layout `src_descriptor` says; a memory of its view with axes (N, C, H, W).
        out : NdArray, optional
            An array with the layout of `dst_descriptor`. Default: a new one.
        tail : {"check", "zero", "trust"}, optional
            For an `x` that is an array; see `Memory`.

        Returns
        -------
        NdArray
            `out`, or the new array.

        Raises
        ------
        LayoutError
            For another layout than the configured one (`reorder` makes it), a dirty tail of `x`, an `out` that is read-only or overlaps `x`.
        """
        result = NdArray(self._dst_descriptor) if out is None else out
        self.bind(x, result, tail=tail)()
        return result

    def bind(self, x: NdArray | Memory, out: NdArray, *, tail: _Tail = "check") -> Callable[[], None]:
        """Check two arrays once, for calls that check nothing any more.

        Parameters
        ----------
        x, out, tail
            As a call has them. The tail of `x` is looked at now, and not again.

        Returns
        -------
        callable
            Convolves the present elements of `x` into `out`; takes and returns nothing. It keeps both arrays alive, and has one scratch
            memory: not for two threads at a time.

        Raises
        ------
        LayoutError
            As a call does.

        Examples
        --------
        >>> import numpy as np
        >>> import nd4jlike as nd
        >>> from nd4jlike.adapters import onednn
        >>> if onednn.find_library():
        ...     plan = onednn.DepthwiseConv2d((1, 5, 5, 16), np.ones((3, 3, 16, 1), np.float32))
        ...     x, y = nd.NdArray(plan.src_descriptor), nd.NdArray(plan.dst_descriptor)
        ...     convolve = plan.bind(x, y)
        ...     x[...] = 1
        ...     convolve()
        ...     assert y[0, 2, 2, 15] == 9
        """
        read = x if isinstance(x, Memory) else Memory._of(_four(x, "x").permute(self._axes), self._engine, tail)
        written = Memory._of(_four(out, "out").permute(self._axes), self._engine, "trust")
        for name, memory, desc in (("x", read, self._src), ("out", written, self._dst)):
            if not _alike(memory.desc, desc):
                raise LayoutError(
                    f"{name} has another layout than the configured one: {memory.desc}, not {desc}; reorder it first", ShapeStatus.INCORRECT_STRIDES
                )
        _disjoint((read,), written)
        written._written()
        read._clean()
        return _bound(self._engine, self._primitive, self._scratch, {_SRC: read._handle, _DST: written._handle, **self._constants})

    def __repr__(self) -> str:
        return f"<DepthwiseConv2d of oneDNN {self._engine.version}, {self.implementation}: {self._src_descriptor!r} to {self._dst_descriptor!r}>"


def depthwise_conv2d(
    x: NdArray | npt.ArrayLike,
    weights: NdArray | npt.ArrayLike,
    bias: NdArray | npt.ArrayLike | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    dilation: int | tuple[int, int] = 1,
    padding: Any = "same",
    data_format: Literal["NHWC", "NCHW"] = "NHWC",
    weights_format: Literal["HWCM", "MCHW", "MHWC", "C1HW"] = "HWCM",
    dst_dtype: Any = None,
    out: NdArray | None = None,
    engine: Engine | None = None,
    tail: _Tail = "check",
) -> NdArray:
    """Depthwise convolution by the library, on the memory of `x` as it lies.

    Parameters
    ----------
    x : NdArray or array_like
        Input, axes named by `data_format`.
    weights, bias, stride, dilation, padding, data_format, weights_format, dst_dtype, engine
        See `DepthwiseConv2d`.
    out : NdArray, optional
        Result of any layout that the library writes. Default: a new array of the layout that it chooses.
    tail : {"check", "zero", "trust"}, optional
        What to do about the tail of the blocks of `x`; see `Memory`.

    Returns
    -------
    NdArray
        `out`, or the new array.

    Raises
    ------
    LayoutError, UnsupportedLayoutError, DTypeError, MissingLibraryError
        See `DepthwiseConv2d` and its call.

    Examples
    --------
    >>> import numpy as np
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters import onednn
    >>> x = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 17, 5, 5), "nChw16c"))
    >>> x[...] = 1
    >>> if onednn.find_library():
    ...     y = onednn.depthwise_conv2d(x, np.ones((3, 3, 17, 1), np.float32), data_format="NCHW")
    ...     assert y[0, 16, 2, 2] == 9
    """
    array = asarray(x)
    plan = DepthwiseConv2d(
        array.descriptor, weights, bias, dst=None if out is None else _four(out, "out").descriptor, dst_dtype=dst_dtype, stride=stride, dilation=dilation,
        padding=padding, data_format=data_format, weights_format=weights_format, engine=engine,
    )  # fmt: skip
    return plan(array, out, tail=tail)


def _any(library: _Library, dims: Sequence[int], data_type: str) -> _Handle:
    """Ask for a memory descriptor whose layout the library chooses."""
    return library.make("memory_desc", "memory_desc_create_with_tag", len(dims), _Dims(*dims), _TYPES[data_type], _ANY)


def _name(dtype: Any) -> str:
    """Name an element type as the library does."""
    row = codes(dtype)
    if row.onednn is None:
        raise DTypeError(f"oneDNN has no data type for {row.name} elements")
    return row.onednn


def _plain(x: NdArray | npt.ArrayLike) -> tuple[npt.NDArray[Any], str]:
    """Dense copy of the elements as NumPy can carry them (bfloat16 as its bits), and the library's name of their type."""
    array = asarray(x)
    dense = NdArray(ShapeDescriptor(array.descriptor.dtype, "c", array.shape))
    dense[...] = array
    bits = NdArray(ShapeDescriptor(bits_dtype(array.descriptor.dtype), "c", array.shape), dense.buffer)
    return bits.to_numpy(), _name(array.descriptor.dtype)


def _four(x: Any, name: str) -> NdArray:
    if not isinstance(x, NdArray) or x.ndim != 4:
        raise LayoutError(f"{name} must be an NdArray of four axes: {type(x).__name__} of shape {getattr(x, 'shape', None)}")
    return x


def _alike(one: MemoryDesc, other: MemoryDesc) -> bool:
    """Whether elements lie alike; strides of axes of one block contribute to no address."""
    if one == other:
        return True
    fixed = [(d.dims, d.data_type, d.padded_dims, d.inner_blks, d.inner_idxs) for d in (one, other)]
    return fixed[0] == fixed[1] and all(a == b or count <= 1 for a, b, count in zip(one.strides, other.strides, one._counts(), strict=True))
