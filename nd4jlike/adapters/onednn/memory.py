"""Our arrays as the library's memory, and its reorder on them (ADR 0013, D9 to D12)."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nd4jlike.adapters.onednn.engine import CACHED, Engine, engine_of, memory_over, primitive_of, run_once
from nd4jlike.adapters.onednn.libdnnl import DST, SRC
from nd4jlike.adapters.onednn.memory_desc import MemoryDesc
from nd4jlike.creation import asarray
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import bfloat16_to_float32, bits_dtype, by_onednn
from nd4jlike.errors import LayoutError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.geometry import choice, integer
from nd4jlike.ndarray import NdArray

if TYPE_CHECKING:
    import numpy.typing as npt

    _Tail = Literal["check", "zero", "trust"]

__all__ = ["Memory", "check_disjoint", "reorder"]


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
        around the elements these are the ones that are no part of a dense buffer.
    TypeError
        When `array` is no NdArray, or `engine` no Engine.
    MissingLibraryError
        See `Engine`.

    Notes
    -----
    Padding around the elements is neither read nor written by the library, but for padding within the last block of an axis, which is tail to
    it. `NdArray` has seen to it that the buffer holds the last cell
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
        alignment = integer("alignment", alignment, 0)
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
        self._engine = engine_of(engine)
        self._md = self._engine._native(self._desc)
        before = self._engine._library.offset(self._md) * array.itemsize if self._desc.inner_nblks else 0
        self._handle = memory_over(self._engine, self._md, self.address - before, array)

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
        """Address of element (0, .., 0)."""
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


_described = functools.lru_cache(CACHED)(MemoryDesc.from_descriptor)


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


def check_disjoint(reads: Iterable[Memory], writes: Memory) -> None:
    """Refuse a result that lies among what is read."""
    for read in reads:
        (start, end), (first, last) = ((m.address, m.address + m.desc._reach() * m.array.itemsize) for m in (read, writes))
        if start < last and first < end:
            raise LayoutError(f"the result overlaps what is read: bytes {first:#x} to {last:#x} and {start:#x} to {end:#x}")


def reorder(
    source: NdArray | npt.ArrayLike | Memory,
    destination: NdArray | npt.NDArray[Any] | Memory | ShapeDescriptor | str,
    *,
    engine: Engine | None = None,
    tail: _Tail = "check",
) -> NdArray:
    """Copy elements to another layout, by the library's reorder.

    Parameters
    ----------
    source : NdArray, array_like or Memory
        What is read.
    destination : NdArray, numpy.ndarray, Memory, ShapeDescriptor or str
        Of the same shape; of another element type, the library converts (rounding half to even, saturating integers). A descriptor:
        a new array. A layout tag, read over the axes of `source`: a new array of its element type. The tail of blocks is filled with
        zeros, padding within the last block of an axis included; other padding keeps what it holds.
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
        For a tag that does not fit the shape, shapes that differ, arrays that overlap, a destination that is read-only, and a dirty tail of the source.
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
    ...     y = onednn.reorder(x, "nChw8c")
    ...     assert y[0, 16, 4, 3] == 1 and y.check_padding()
    """
    read = Memory._of(source if isinstance(source, Memory) else asarray(source), engine, tail)
    if isinstance(destination, np.ndarray):
        destination = asarray(destination)
    if isinstance(destination, str):
        destination = ShapeDescriptor.from_tag(read.array.shape, destination, read.array.dtype)
    if isinstance(destination, ShapeDescriptor):
        destination = NdArray(destination)
    written = Memory._of(destination, read._engine, "trust")
    if read.desc.dims != written.desc.dims:
        raise LayoutError(f"a reorder keeps the shape: {read.desc.dims} to {written.desc.dims}", ShapeStatus.INCORRECT_SHAPE)
    check_disjoint((read,), written)
    handle = read._engine._handle
    try:
        primitive, _, scratch = primitive_of(read._engine, "reorder_primitive_desc_create", read._md, handle, written._md, handle)
    except UnsupportedLayoutError as error:
        raise UnsupportedLayoutError(f"no reorder from {read.desc} to {written.desc}: {error}") from error
    written._written()
    read._clean()
    if 0 not in read.desc.dims:  # version 3.2 divides by zero
        run_once(read._engine, primitive, scratch, {SRC: read._handle, DST: written._handle})
    return written.array
