"""oneDNN's memory descriptors as a translation of ours (ADR 0013, D1 to D6). Needs no library.

Names are the library's own; dims, strides, blocks and offsets count elements, `MemoryDesc.size` counts bytes, as they do there.
Dimensions are in the library's logical order, which is that of NdArray: axis 0 first. The rules are those of versions 3.2 to 3.13, as
the library itself answered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nd4jlike import tags
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import by_onednn, codes
from nd4jlike.errors import DTypeError, LayoutError, OutOfRangeError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.geometry import integers

__all__ = ["MAX_NDIMS", "MemoryDesc", "block_products"]

MAX_NDIMS = 12  # DNNL_MAX_NDIMS; of inner blocks, too
_WORD_MAX = 2**63 - 1  # dnnl_dim_t


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
            object.__setattr__(self, name, integers(getattr(self, name), name, signed=name == "strides"))
        (offset,) = integers((self.submemory_offset,), "submemory_offset")
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
        extents = integers(dims, "dims")
        steps = integers(strides, "strides", signed=True) if strides is not None else tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))
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
        products = block_products(descriptor.rank, blocks)
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
        rest = list(integers(index, "an index", signed=True))
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
        extents, starts = integers(dims, "dims"), integers(offsets, "offsets")
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
        new = integers(permutation, "a permutation")
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
        extents = integers(dims, "dims")
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
        return block_products(self.ndims, zip(self.inner_idxs, self.inner_blks, strict=True))

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


def block_products(ndims: int, blocks: Iterable[tuple[int, int]]) -> list[int]:
    """Product of the block sizes of each axis, from (axis, size) pairs."""
    products = [1] * ndims
    for axis, size in blocks:
        products[axis] *= size
    return products
