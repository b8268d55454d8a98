"""Arm Compute Library: its tensor descriptions and tensors as a translation of ours (ADR 0007, D5 to D21).

Names are the library's own. So are its order and unit: dimensions are listed fastest first (x, y, z, ..), strides, offsets and
sizes are in bytes; paddings are in elements. `shape` and `index` always mean NdArray order, slowest axis first, and elements.
The rules are those of version 20.08, as the library itself printed them; no library is needed here.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import by_arm_compute, codes
from nd4jlike.errors import DTypeError, LayoutError, MissingLibraryError, OutOfRangeError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.ndarray import NdArray

if TYPE_CHECKING:
    from nd4jlike.dtypes import DType

__all__ = ["PaddingSize", "Tensor", "TensorBuffer", "TensorInfo", "require_library"]

MAX_DIMENSIONS = 6  # arm_compute::Dimensions::num_max_dimensions
DATA_LAYOUTS = ("UNKNOWN", "NCHW", "NHWC")

_UINT32_MAX = 2**32 - 1  # the library's strides
_INT32_MAX = 2**31 - 1  # what its offset_element_in_bytes returns


def _integers(values: Iterable[Any], what: str, signed: bool = False) -> tuple[int, ...]:
    """Tuple of `values`, all integers, and of 0 or more unless `signed`."""
    listed = tuple(values)
    try:
        integers = tuple(map(operator.index, listed))
    except TypeError:
        raise LayoutError(f"{what} must be integers: {listed}") from None
    if not signed and any(value < 0 for value in integers):
        raise LayoutError(f"{what} must be 0 or more: {listed}")
    return integers


def _corrected(tensor_shape: Sequence[int]) -> tuple[int, ...]:
    """`tensor_shape` without the size-1 dimensions at its slow end, down to one dimension."""
    count = len(tensor_shape)
    while count > 1 and tensor_shape[count - 1] == 1:
        count -= 1
    return tuple(tensor_shape[:count]) or (1,)


@dataclass(frozen=True, slots=True)
class PaddingSize:
    """Elements around the x and y dimensions of a tensor, in the library's order of sides.

    Parameters
    ----------
    top, bottom : int, optional
        Rows before and after dimension y, the last axis but one of an NdArray shape.
    right, left : int, optional
        Elements after and before dimension x, the last axis.

    Raises
    ------
    LayoutError
        For sides that are negative or no integers.

    Notes
    -----
    Source: `arm_compute::BorderSize`, arm_compute/core/Types.h.

    Examples
    --------
    >>> from nd4jlike.adapters.arm_compute import PaddingSize
    >>> PaddingSize(1, 2, 3, 4)
    PaddingSize(top=1, right=2, bottom=3, left=4)
    >>> PaddingSize().empty, PaddingSize(2, 2, 2, 2).uniform
    (True, True)
    """

    top: int = 0
    right: int = 0
    bottom: int = 0
    left: int = 0

    def __post_init__(self) -> None:
        sides = _integers((getattr(self, field.name) for field in fields(self)), "padding (top, right, bottom, left)")
        for field, side in zip(fields(self), sides, strict=True):
            object.__setattr__(self, field.name, side)

    @property
    def empty(self) -> bool:
        """Whether no side has padding."""
        return not (self.top or self.right or self.bottom or self.left)

    @property
    def uniform(self) -> bool:
        """Whether all sides have the same padding."""
        return self.top == self.right == self.bottom == self.left

    def extended(self, other: PaddingSize) -> PaddingSize:
        """Each side's maximum of this padding and `other`.

        Parameters
        ----------
        other : PaddingSize
            The padding to make room for.

        Returns
        -------
        PaddingSize
            Equal to this one where nothing grew.

        Raises
        ------
        LayoutError
            When `other` is no PaddingSize.

        Examples
        --------
        >>> PaddingSize(left=1, bottom=3).extended(PaddingSize(1, 2, 1, 0))
        PaddingSize(top=1, right=2, bottom=3, left=1)
        """
        if not isinstance(other, PaddingSize):
            raise LayoutError(f"padding must be a PaddingSize(top, right, bottom, left): {other!r}")
        return PaddingSize(max(self.top, other.top), max(self.right, other.right), max(self.bottom, other.bottom), max(self.left, other.left))


class _Geometry(NamedTuple):
    """Where elements are, in bytes; strides in the library's order."""

    strides_in_bytes: tuple[int, ...]
    offset_first_element_in_bytes: int
    total_size: int


def _padded_geometry(tensor_shape: tuple[int, ...], element_size: int, padding: PaddingSize, strict: bool) -> _Geometry:
    """Where the library puts the elements of a padded tensor (its calculate_padding_requirements)."""
    width, height, *higher = (*tensor_shape, 1)[: max(2, len(tensor_shape))]
    stride_y = (padding.left + width + padding.right) * element_size
    stride_z = (padding.top + height + padding.bottom) * stride_y

    strides = [element_size, stride_y]
    stride = stride_z
    for extent in higher:
        strides.append(stride)
        stride *= extent
    offset = padding.left * element_size + padding.top * stride_y
    total_size = stride

    if strict:
        _refuse_wrap(strides, total_size, f"shape {tensor_shape} of {element_size}-byte elements with {padding}")
    else:
        strides = [stride & _UINT32_MAX for stride in strides]
        total_size = tensor_shape[-1] * strides[-1] if higher else stride_z
    return _Geometry(tuple(strides), offset, total_size)


def _refuse_wrap(strides_in_bytes: Sequence[int], total_size: int, what: str) -> None:
    """Raise for strides and sizes that the library's integers would silently cut."""
    for dimension, stride in enumerate(strides_in_bytes):
        if stride > _UINT32_MAX:
            raise UnsupportedLayoutError(
                f"stride of {stride} bytes in dimension {dimension}: arm_compute keeps strides in 32 bits and would wrap it to {stride & _UINT32_MAX}; {what}"
            )
    if total_size > np.iinfo(np.intp).max:
        raise LayoutError(f"total size of {total_size} bytes does not fit a signed machine word: {what}", ShapeStatus.OVERFLOW)


class TensorInfo:
    """Where the elements of an arm_compute tensor live.

    Padding exists only around dimensions x and y; a call that cannot be answered truthfully raises and changes nothing.

    Parameters
    ----------
    tensor_shape : sequence of int
        Elements in each dimension, **library order**, fastest first; 1 to 6 of them. Size-1 dimensions at the slow end are
        dropped down to one dimension, as the library does. `from_shape` takes NdArray order.
    data_type : str
        Name of an `arm_compute::DataType`: ``"F32"``, ``"QASYMM8_SIGNED"``, ..
    padding : PaddingSize, optional
        Padding in elements.
    data_layout : {"UNKNOWN", "NCHW", "NHWC"}, optional
        What the dimensions mean; carried along, never guessed.
    biases : bool, optional
        True for the biases of a depthwise convolution: left and top padding are refused, because the library reads biases from
        the start of the buffer, whatever the offset says.
    strict : bool, optional
        False: answer as the library does, also where its integers wrap, where it drops explicit strides and where an info
        stops to describe the memory of its tensor.

    Raises
    ------
    LayoutError
        For more than 6 dimensions, negative extents, an unknown data layout.
    DTypeError
        For an unknown data type.
    UnsupportedLayoutError
        For strides beyond 32 bits, and for biases with left or top padding.

    See Also
    --------
    ShapeDescriptor : the same, in elements and NdArray order.

    Notes
    -----
    Source: `arm_compute::TensorInfo`, arm_compute/core/TensorInfo.h of version 20.08.
    Infos are equal when they describe the same tensor: shape, data type, data layout, padding, strides, offset and total size.

    Examples
    --------
    >>> from nd4jlike.adapters.arm_compute import PaddingSize, TensorInfo
    >>> info = TensorInfo((5, 5, 2, 2), "F32")
    >>> info.extend_padding(PaddingSize(right=1, bottom=1))
    True
    >>> info.strides_in_bytes, info.total_size
    ((4, 24, 144, 288), 576)
    """

    __slots__ = ("_biases", "_data_layout", "_data_type", "_explicit", "_geometry", "_is_resizable", "_padding", "_strict", "_tensor_shape")
    __hash__ = None  # type: ignore[assignment]  # mutable, as the library's is

    def __init__(
        self,
        tensor_shape: Sequence[int],
        data_type: str,
        *,
        padding: PaddingSize = PaddingSize(),
        data_layout: str = "UNKNOWN",
        biases: bool = False,
        strict: bool = True,
    ) -> None:
        extents = _integers(tensor_shape, "extents of a tensor shape")
        if len(extents) > MAX_DIMENSIONS:
            raise LayoutError(f"{len(extents)} dimensions, arm_compute has at most {MAX_DIMENSIONS}: tensor shape {extents}", ShapeStatus.INCORRECT_RANK)
        if data_layout not in DATA_LAYOUTS:
            raise LayoutError(f"no data layout {data_layout!r}: it must be one of {', '.join(DATA_LAYOUTS)}")
        self._tensor_shape = _corrected(extents)
        self._data_type = data_type
        self._data_layout = data_layout
        self._biases = bool(biases)
        self._strict = bool(strict)
        self._explicit = False
        self._is_resizable = True
        self._set_padding(PaddingSize().extended(padding))

    @classmethod
    def from_shape(
        cls,
        shape: Sequence[int],
        data_type: str,
        *,
        padding: PaddingSize = PaddingSize(),
        data_layout: str = "UNKNOWN",
        biases: bool = False,
        strict: bool = True,
    ) -> TensorInfo:
        """Describe a tensor of a shape in NdArray order.

        Parameters
        ----------
        shape : sequence of int
            Extents, slowest axis first; at most 6. The empty shape of a scalar becomes one dimension of 1.
        data_type, padding, data_layout, biases, strict
            See `TensorInfo`.

        Returns
        -------
        TensorInfo
            The info.

        Raises
        ------
        LayoutError, DTypeError, UnsupportedLayoutError
            See `TensorInfo`.

        Examples
        --------
        >>> TensorInfo.from_shape((1, 3, 1, 5), "U8").tensor_shape
        (5, 1, 3)
        """
        return cls(tuple(shape)[::-1], data_type, padding=padding, data_layout=data_layout, biases=biases, strict=strict)

    @classmethod
    def from_descriptor(
        cls,
        descriptor: ShapeDescriptor,
        data_type: str | None = None,
        data_layout: str = "UNKNOWN",
        *,
        rebase: bool = False,
        explicit_strides: bool = False,
        biases: bool = False,
    ) -> TensorInfo:
        """Describe the layout of `descriptor`: padding where it has padding, and no copy of anything.

        Gaps after the rows and after the planes of a strided descriptor become right and bottom padding; they reach every
        element at the same offset.

        Parameters
        ----------
        descriptor : ShapeDescriptor
            A c-order layout with padding on its last two axes only.
        data_type : str, optional
            Name of the data type; the plain one of ``descriptor.dtype`` unless given (``"QASYMM8"`` instead of ``"U8"``).
        data_layout : {"UNKNOWN", "NCHW", "NHWC"}, optional
            What the axes mean.
        rebase : bool, optional
            True: an offset that padding does not explain is left out, as in a view of a bigger array. The library must then be
            given the address of the first element minus `offset_first_element_in_bytes`; `Tensor.import_memory` does so.
        explicit_strides : bool, optional
            True: keep strides and offset as they are by `init`, instead of as padding. Any order and any gaps can be said so, but
            the library drops them as soon as one of its functions asks for padding.
        biases : bool, optional
            See `TensorInfo`.

        Returns
        -------
        TensorInfo
            The info, resizable.

        Raises
        ------
        UnsupportedLayoutError
            For a layout that the library cannot express: blocks, more than 6 axes, an order that is not c, padding on another axis,
            gaps within rows, strides beyond 32 bits. Says which axis and why.
        DTypeError
            For an element type that the library lacks, or a `data_type` that is another element type.
        LayoutError
            For an unknown data layout.
        TypeError
            When `descriptor` is no ShapeDescriptor.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> d = ShapeDescriptor.paddedBufferDescriptor("int8", "c", (3, 5, 7), (0, 7, 3), (0, 3, 1))
        >>> info = TensorInfo.from_descriptor(d, data_type="QASYMM8_SIGNED", data_layout="NCHW")
        >>> info.padding, info.offset_first_element_in_bytes
        (PaddingSize(top=3, right=2, bottom=4, left=1), 31)
        """
        if not isinstance(descriptor, ShapeDescriptor):
            raise TypeError(f"from_descriptor takes a ShapeDescriptor, not {type(descriptor).__name__}; that of an NdArray is its `descriptor`")
        name = _data_type_name(descriptor.dtype, data_type)
        if descriptor.inner_blocks:
            raise UnsupportedLayoutError(f"inner blocks {descriptor.inner_blocks}: arm_compute has plain layouts only; reorder to a plain one")
        if descriptor.rank > MAX_DIMENSIONS:
            raise UnsupportedLayoutError(f"{descriptor.rank} axes, arm_compute has at most {MAX_DIMENSIONS} dimensions: shape {descriptor.shape}")
        padding = PaddingSize() if explicit_strides else _padding_of(descriptor, rebase)
        info = cls.from_shape(descriptor.shape, name, padding=padding, data_layout=data_layout, biases=biases)
        if explicit_strides:
            itemsize = info.element_size
            strides = [stride * itemsize for stride in descriptor.strides[::-1][: info.num_dimensions]] or [itemsize]
            info.init(strides, descriptor.offset * itemsize, descriptor.allocLength() * itemsize)
        return info

    def to_descriptor(self, shape: Sequence[int] | None = None) -> ShapeDescriptor:
        """Our description of the same layout.

        Parameters
        ----------
        shape : sequence of int, optional
            The NdArray shape to use, to get back leading size-1 axes that the library dropped. Unless given: `tensor_shape`
            reversed, with one leading axis more where a one-dimensional tensor has top or bottom padding.

        Returns
        -------
        ShapeDescriptor
            c order, with the padding declared; for explicit strides a strided descriptor.

        Raises
        ------
        LayoutError
            When `shape` is another shape, or when the info has wrapped (``strict=False``) and describes no layout.

        Examples
        --------
        >>> info = TensorInfo.from_shape((1, 3, 5), "F32", padding=PaddingSize(1, 1, 1, 1))
        >>> info.to_descriptor().shape, info.to_descriptor(shape=(1, 3, 5)).paddings
        ((3, 5), (0, 2, 2))
        """
        padding = self._padding
        rows = padding.top + padding.bottom
        if shape is None:
            extents = (*((1,) if rows and self.num_dimensions == 1 else ()), *self._tensor_shape[::-1])
        else:
            extents = _integers(shape, "extents of a shape")
            if _corrected(extents[::-1]) != self._tensor_shape:
                raise LayoutError(f"shape {extents} is not the tensor shape {self._tensor_shape} reversed, with or without leading axes of size 1")
        rank = len(extents)
        if (rank < 1 and not padding.empty) or (rank < 2 and rows):
            raise LayoutError(f"{padding} needs {2 if rows else 1} axes: shape {extents}")

        if self._explicit:
            return self._strided_descriptor(extents)
        paddings = (*(0,) * (rank - 2), rows, padding.left + padding.right)[-rank:] if rank else ()
        padding_offsets = (*(0,) * (rank - 2), padding.top, padding.left)[-rank:] if rank else ()
        if _padded_geometry(self._tensor_shape, self.element_size, padding, strict=True) != self._geometry:
            raise LayoutError(f"{self!r} describes no layout: its strides are not those of its shape and padding")
        return ShapeDescriptor.paddedBufferDescriptor(by_arm_compute(self._data_type).dtype, "c", extents, paddings, padding_offsets)

    def _strided_descriptor(self, extents: tuple[int, ...]) -> ShapeDescriptor:
        itemsize = self.element_size
        if any(value % itemsize for value in (*self.strides_in_bytes, self.offset_first_element_in_bytes)):
            raise LayoutError(f"{self!r} describes no layout: strides and offset must be multiples of the element size, {itemsize} bytes")
        strides = [stride // itemsize for stride in self.strides_in_bytes[: self.num_dimensions]][: len(extents)]
        outermost = max((stride * extent for stride, extent in zip(strides, self._tensor_shape, strict=False)), default=1)
        strides += [outermost] * (len(extents) - len(strides))
        axes = tuple(sorted(range(len(extents)), key=lambda axis: (-strides[::-1][axis], axis)))
        return ShapeDescriptor(
            by_arm_compute(self._data_type).dtype,
            "c",
            extents,
            tuple(strides[::-1]),
            offset=self.offset_first_element_in_bytes // itemsize,
            axes=axes,
        )

    # What it says, by the library's names.

    @property
    def tensor_shape(self) -> tuple[int, ...]:
        """Elements in each dimension, library order (x first), `num_dimensions` of them."""
        return self._tensor_shape

    @property
    def num_dimensions(self) -> int:
        """Number of dimensions, 1 to 6; size-1 dimensions at the slow end do not count."""
        return len(self._tensor_shape)

    @property
    def strides_in_bytes(self) -> tuple[int, ...]:
        """Bytes between neighbours along each dimension, library order; at least 2 of them unless given explicitly."""
        return self._geometry.strides_in_bytes

    @property
    def offset_first_element_in_bytes(self) -> int:
        """Bytes from the start of the buffer to element (0, .., 0)."""
        return self._geometry.offset_first_element_in_bytes

    @property
    def total_size(self) -> int:
        """Bytes of the whole buffer, padding included."""
        return self._geometry.total_size

    @property
    def padding(self) -> PaddingSize:
        """Padding in elements; none for explicit strides, whatever their gaps."""
        return self._padding

    @property
    def has_padding(self) -> bool:
        """Whether any side has padding."""
        return not self._padding.empty

    @property
    def is_resizable(self) -> bool:
        """Whether the padding may still change; False from allocation or import on."""
        return self._is_resizable

    @property
    def data_type(self) -> str:
        """Name of the `arm_compute::DataType`."""
        return self._data_type

    @property
    def data_layout(self) -> str:
        """What the dimensions mean: ``"UNKNOWN"``, ``"NCHW"`` or ``"NHWC"``."""
        return self._data_layout

    @property
    def element_size(self) -> int:
        """Bytes of an element."""
        return by_arm_compute(self._data_type).itemsize

    @property
    def num_channels(self) -> int:
        """Channels within an element: always 1."""
        return 1

    def dimension(self, index: int) -> int:
        """Elements in dimension `index`.

        Parameters
        ----------
        index : int
            0 (x) to 5; dimensions beyond `num_dimensions` have 1 element.

        Returns
        -------
        int
            The extent.

        Raises
        ------
        OutOfRangeError
            For other indices.

        Examples
        --------
        >>> TensorInfo((5, 4), "F32").dimension(1), TensorInfo((5, 4), "F32").dimension(3)
        (4, 1)
        """
        (number,) = _integers((index,), "a dimension", signed=True)
        if not 0 <= number < MAX_DIMENSIONS:
            raise OutOfRangeError(f"dimension {number}: arm_compute numbers its dimensions 0 to {MAX_DIMENSIONS - 1}")
        return self._tensor_shape[number] if number < self.num_dimensions else 1

    def offset_element_in_bytes(self, coordinates: Sequence[int]) -> int:
        """Bytes from the start of the buffer to an element, or to a cell of the padding.

        Parameters
        ----------
        coordinates : sequence of int
            Library order, x first; missing ones are 0. From ``-left`` to below ``width + right`` in x, likewise in y.

        Returns
        -------
        int
            The offset in bytes.

        Raises
        ------
        OutOfRangeError
            For coordinates outside the tensor and its padding.
        LayoutError
            For coordinates that are no integers.
        UnsupportedLayoutError
            When the offset is 2 GiB or more: the library would return a wrapped, negative one.

        Examples
        --------
        >>> info = TensorInfo((5, 5), "F32", padding=PaddingSize(top=1, right=2, bottom=3, left=4))
        >>> info.offset_element_in_bytes((0, 0)), info.offset_element_in_bytes((-4, -1))
        (60, 0)
        """
        place = _integers(coordinates, "coordinates", signed=True)
        offset = self.offset_first_element_in_bytes
        offset += sum(coordinate * stride for coordinate, stride in zip(place, self.strides_in_bytes[: self.num_dimensions], strict=False))
        if not self._strict:
            return (offset + 2**31) % 2**32 - 2**31

        before = (self._padding.left, self._padding.top, 0, 0, 0, 0)
        after = (self._padding.right, self._padding.bottom, 0, 0, 0, 0)
        for dimension, coordinate in enumerate(place):
            first, stop = (-before[dimension], self._tensor_shape[dimension] + after[dimension]) if dimension < self.num_dimensions else (0, 1)
            if not first <= coordinate < stop:
                raise OutOfRangeError(f"coordinate {coordinate} in dimension {dimension}, from {first} to below {stop} with padding: {place} in {self!r}")
        if offset > _INT32_MAX:
            raise UnsupportedLayoutError(
                f"offset of {offset} bytes at {place}: arm_compute returns it in 32 signed bits, as {(offset + 2**31) % 2**32 - 2**31}; {self!r}"
            )
        return offset

    def byte_offset_of(self, index: Sequence[int]) -> int:
        """Bytes from the start of the buffer to an element, by its index in NdArray order.

        Parameters
        ----------
        index : sequence of int
            Slowest axis first, with or without leading size-1 axes; negative values reach the padding, not the end.

        Returns
        -------
        int
            The offset in bytes.

        Raises
        ------
        OutOfRangeError, LayoutError, UnsupportedLayoutError
            See `offset_element_in_bytes`.

        Examples
        --------
        >>> TensorInfo.from_shape((2, 2, 5, 5), "F32").byte_offset_of((1, 1, 4, 4))
        396
        """
        return self.offset_element_in_bytes(tuple(index)[::-1])

    # What changes it.

    def extend_padding(self, padding: PaddingSize) -> bool:
        """Make room for `padding`: each side keeps its maximum.

        Parameters
        ----------
        padding : PaddingSize
            The padding asked for, in elements.

        Returns
        -------
        bool
            Whether a side grew.

        Raises
        ------
        LayoutError
            When it would change the info of a tensor that has memory, or drop explicit strides (even where nothing grows).
        UnsupportedLayoutError
            For strides beyond 32 bits, and for biases with left or top padding.

        Examples
        --------
        >>> info = TensorInfo((4, 3), "F32", padding=PaddingSize(left=1, bottom=3))
        >>> info.extend_padding(PaddingSize(top=1, right=2, bottom=1)), info.extend_padding(PaddingSize(right=2))
        (True, False)
        >>> info.padding
        PaddingSize(top=1, right=2, bottom=3, left=1)
        """
        before = self._padding
        self._change_padding("extend_padding", before.extended(padding))
        return self._padding != before

    def auto_padding(self) -> bool:
        """Make room for what any of the library's own kernels may read: 4 left, 36 right, and 4 rows above and below.

        Returns
        -------
        bool
            Whether a side grew.

        Raises
        ------
        LayoutError, UnsupportedLayoutError
            See `extend_padding`.

        Notes
        -----
        A one-dimensional tensor gets no rows.

        Examples
        --------
        >>> info = TensorInfo((5,), "F32")
        >>> info.auto_padding(), info.padding
        (True, PaddingSize(top=0, right=36, bottom=0, left=4))
        """
        rows = 4 if self.num_dimensions > 1 else 0
        before = self._padding
        self._change_padding("auto_padding", before.extended(PaddingSize(rows, 4 + 32, rows, 4)))
        return self._padding != before

    def reset_padding(self) -> None:
        """Drop all padding.

        Raises
        ------
        LayoutError
            When it would change the info of a tensor that has memory, or drop explicit strides.

        Examples
        --------
        >>> info = TensorInfo((6, 4), "F32", padding=PaddingSize(2, 2, 2, 2))
        >>> info.reset_padding()
        >>> info.total_size
        96
        """
        self._change_padding("reset_padding", PaddingSize())

    def init(self, strides_in_bytes: Sequence[int], offset_first_element_in_bytes: int, total_size: int) -> None:
        """Take strides, offset and size as given, instead of from shape and padding.

        Any later change of the padding is refused: the library would silently drop what was given here. `from_descriptor`
        says layouts by padding, which it keeps.

        Parameters
        ----------
        strides_in_bytes : sequence of int
            Library order, x first; one a dimension at least, 6 at most.
        offset_first_element_in_bytes : int
            Bytes from the start of the buffer to element (0, .., 0).
        total_size : int
            Bytes of the whole buffer.

        Raises
        ------
        LayoutError
            For a wrong number of strides, strides of 0, strides or an offset that are no multiples of the element size, a total
            size that the last element exceeds, an info with padding, or an info of a tensor that has memory.
        UnsupportedLayoutError
            For strides beyond 32 bits, and for biases with an offset.

        Examples
        --------
        >>> info = TensorInfo.from_shape((4, 3), "F32")
        >>> info.init((4, 64), 0, 256)
        >>> info.byte_offset_of((3, 2)), info.has_padding
        (200, False)
        """
        strides = _integers(strides_in_bytes, "strides in bytes")
        offset, size = _integers((offset_first_element_in_bytes, total_size), "offset and total size in bytes")
        if not self.num_dimensions <= len(strides) <= MAX_DIMENSIONS:
            raise LayoutError(f"{len(strides)} strides for {self.num_dimensions} dimensions: {strides}", ShapeStatus.INCORRECT_RANK)
        if self._strict:
            self._check_init(strides, offset, size)
        else:
            strides = tuple(stride & _UINT32_MAX for stride in strides)
        self._geometry = _Geometry(strides, offset, size)
        self._explicit = True

    def _check_init(self, strides: tuple[int, ...], offset: int, size: int) -> None:
        what = f"strides {strides}, offset {offset}, total size {size} bytes for shape {self._tensor_shape} of {self._data_type}"
        if not self._is_resizable:
            raise LayoutError(f"init on the info of a tensor that has memory: it would describe that memory no longer; free() it first; {what}")
        if self.has_padding:
            raise LayoutError(f"init on an info with {self._padding}: explicit strides have none, reset_padding() first; {what}")
        _refuse_wrap(strides, size, what)
        if self._biases and offset:
            self._refuse_biases(f"an offset of {offset} bytes")
        if any(value % self.element_size for value in (*strides, offset)):
            raise LayoutError(f"strides and offset must be multiples of the element size, {self.element_size} bytes: {what}")
        if 0 in self._tensor_shape:
            return
        for dimension, (stride, extent) in enumerate(zip(strides, self._tensor_shape, strict=False)):
            if stride == 0 and extent > 1:
                raise LayoutError(f"stride 0 in dimension {dimension} of {extent} elements, each must have its own place: {what}", ShapeStatus.ZERO_STRIDE)
        last = offset + sum(stride * (extent - 1) for stride, extent in zip(strides, self._tensor_shape, strict=False))
        if last + self.element_size > size:
            raise LayoutError(f"the last element ends at byte {last + self.element_size}, beyond the total size: {what}", ShapeStatus.OUT_OF_BUFFER)

    def _change_padding(self, call: str, padding: PaddingSize) -> None:
        """Set `padding` on behalf of the method `call`, unless the library would then tell an untruth."""
        if self._strict and self._explicit:
            raise LayoutError(
                f"{call} would drop the explicit strides {self.strides_in_bytes} and offset {self.offset_first_element_in_bytes} bytes, "
                "as arm_compute silently does; describe the layout by padding (TensorInfo.from_descriptor)"
            )
        if self._strict and not self._is_resizable and padding != self._padding:
            raise LayoutError(
                f"{call} from {self._padding} to {padding} on a tensor that has memory: the info would describe that memory no longer; "
                "free() it first, or copy_from() it into a new Tensor"
            )
        self._set_padding(padding)

    def _set_padding(self, padding: PaddingSize) -> None:
        if self._biases and (padding.left or padding.top):
            self._refuse_biases(str(padding))
        self._geometry = _padded_geometry(self._tensor_shape, self.element_size, padding, self._strict)
        self._padding = padding
        self._explicit = False

    def _refuse_biases(self, what: str) -> NoReturn:
        raise UnsupportedLayoutError(f"biases with {what}: arm_compute reads biases from the start of the buffer; pad them right or bottom, or not at all")

    def copy(self) -> TensorInfo:
        """Copy this info, resizable or not as it is.

        Returns
        -------
        TensorInfo
            A new info, which changes alone.

        Examples
        --------
        >>> info = TensorInfo((5,), "F32")
        >>> info.copy() == info
        True
        """
        twin = object.__new__(type(self))
        for name in TensorInfo.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    __copy__ = copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorInfo):
            return NotImplemented
        return self._described() == other._described()

    def _described(self) -> tuple[object, ...]:
        return (self._tensor_shape, self._data_type, self._data_layout, self._padding, self._geometry)

    def __repr__(self) -> str:
        return (
            f"<TensorInfo {self._data_type} {self._data_layout} tensor_shape={self._tensor_shape} strides_in_bytes={self.strides_in_bytes} "
            f"offset={self.offset_first_element_in_bytes} total_size={self.total_size} {self._padding}>"
        )


def _data_type_name(dtype: DType, data_type: str | None) -> str:
    """Name of the data type of elements of `dtype`: `data_type` if it fits them, the plain one if None."""
    row = codes(dtype)
    if not row.arm_compute:
        raise DTypeError(f"arm_compute has no data type for {row.name} elements")
    if data_type is None:
        return row.arm_compute[0]
    if data_type not in row.arm_compute:
        raise DTypeError(f"{data_type!r} is no data type of {row.name} elements: it must be one of {', '.join(row.arm_compute)}")
    return data_type


def _padding_of(descriptor: ShapeDescriptor, rebase: bool) -> PaddingSize:
    """Find the padding that puts every element where `descriptor` has it."""

    def refuse(axis: int, reason: str) -> NoReturn:
        order = descriptor.axes
        hint = ""
        if order != tuple(range(rank)):
            hint = f"; its axes lie in memory as {order}: permute them to that order, or reorder to order 'c'"
        raise UnsupportedLayoutError(f"axis {axis}: {reason}; shape {descriptor.shape}, strides {descriptor.strides}, paddings {descriptor.paddings}{hint}")

    rank = descriptor.rank
    x, y = rank - 1, rank - 2
    for axis, total in enumerate(descriptor.paddings[: max(0, y)]):
        if total:
            refuse(axis, f"{total} elements of padding, arm_compute pads only the last two axes (y, x)")

    # Missing axes have one element.
    missing = max(0, 2 - rank)
    shape = (1,) * missing + descriptor.shape
    strides = (0,) * missing + descriptor.strides
    (rows_padded, columns_padded) = ((0,) * missing + descriptor.paddings)[-2:]
    top, left = ((0,) * missing + descriptor.padding_offsets)[-2:]
    if descriptor.length == 0:
        return PaddingSize(top, columns_padded - left, rows_padded - top, left)

    # In elements: `columns` from row to row, `rows` from plane to plane, paddings and gaps included.
    height, width = shape[-2:]
    columns, rows = width + columns_padded, height + rows_padded
    plane_axis = next((axis for axis in reversed(range(len(shape) - 2)) if shape[axis] > 1), None)
    if width > 1 and strides[-1] != 1:
        refuse(x, f"stride {strides[-1]}, in arm_compute neighbours in a row are adjacent (stride 1)")
    if height > 1:
        if strides[-2] < columns:
            refuse(y, f"stride {strides[-2]}, a row needs {columns} elements")
        columns = strides[-2]
    if plane_axis is not None:
        plane = strides[plane_axis]
        if height == 1 and plane % rows == 0:
            columns = max(columns, plane // rows)
        if plane < rows * columns or plane % columns:
            refuse(plane_axis, f"stride {plane}, a plane is a whole number of rows of {columns} elements, {rows} at least")
        rows = plane // columns

    stride = rows * columns
    for axis in reversed(range(len(shape) - 2)):
        if shape[axis] > 1 and strides[axis] != stride:
            refuse(axis, f"stride {strides[axis]}, arm_compute's is {stride}: only rows and planes may be followed by a gap")
        stride *= shape[axis]

    if not rebase and descriptor.offset != top * columns + left:
        raise UnsupportedLayoutError(
            f"the first element is at offset {descriptor.offset}, shape and padding put it at {top * columns + left}: declare the elements before it "
            f"as padding_offsets, or leave them out (rebase=True); shape {descriptor.shape}, paddings {descriptor.paddings}"
        )
    return PaddingSize(top, columns - left - width, rows - top - height, left)


class TensorBuffer(NamedTuple):
    """The memory that the library sees."""

    address: int  # of its first byte
    nbytes: int


class Tensor:
    """An info and memory that is laid out as it says.

    Parameters
    ----------
    info : TensorInfo
        Copied, as the library's allocator does.

    Attributes
    ----------
    info : TensorInfo
        The tensor's own info.

    Notes
    -----
    Source: `arm_compute::Tensor` and its `TensorAllocator`.

    Examples
    --------
    >>> import numpy as np
    >>> from nd4jlike.adapters.arm_compute import PaddingSize, Tensor, TensorInfo
    >>> tensor = Tensor(TensorInfo.from_shape((2, 3), "F32"))
    >>> tensor.info.extend_padding(PaddingSize(1, 1, 1, 1))
    True
    >>> tensor.allocate()
    >>> tensor.copy_from(np.ones((2, 3), np.float32))
    >>> tensor.buffer.nbytes, tensor.ndarray.hosting_array().to_numpy().sum()
    (80, np.float32(6.0))
    """

    __slots__ = ("_array", "_start", "info")

    def __init__(self, info: TensorInfo) -> None:
        if not isinstance(info, TensorInfo):
            raise TypeError(f"a Tensor is made of a TensorInfo, not {type(info).__name__}; from_array makes one of an NdArray")
        self.info = info.copy()
        self.info._is_resizable = True
        self._array: NdArray | None = None
        self._start = 0

    @classmethod
    def from_array(cls, array: NdArray, data_type: str | None = None, data_layout: str = "UNKNOWN", *, readonly: bool = False, gaps: bool = False) -> Tensor:
        """Wrap an array: the info of its layout, and its memory, zero-copy.

        Parameters
        ----------
        array : NdArray
            An array, or a view of one, whose layout the library can express.
        data_type, data_layout
            See `TensorInfo.from_descriptor`.
        readonly, gaps : bool, optional
            See `import_memory`.

        Returns
        -------
        Tensor
            The tensor; it keeps `array`.

        Raises
        ------
        UnsupportedLayoutError, LayoutError, DTypeError
            See `TensorInfo.from_descriptor` and `import_memory`.

        Examples
        --------
        >>> import nd4jlike
        >>> x = nd4jlike.create((2, 3, 5), paddings=(0, 2, 4), padding_offsets=(0, 1, 2))
        >>> Tensor.from_array(x).info.padding
        PaddingSize(top=1, right=2, bottom=1, left=2)
        """
        if not isinstance(array, NdArray):
            raise TypeError(f"from_array takes an NdArray, not {type(array).__name__}: nd4jlike.asarray wraps other memory")
        tensor = cls(TensorInfo.from_descriptor(array.descriptor, data_type, data_layout, rebase=True))
        tensor.import_memory(array, readonly=readonly, gaps=gaps)
        return tensor

    @property
    def ndarray(self) -> NdArray | None:
        """The elements, as an array over the tensor's memory; None without memory."""
        return self._array

    @property
    def buffer(self) -> TensorBuffer | None:
        """Address and bytes of the memory as the library sees it, from the first byte of padding; None without memory."""
        if self._array is None:
            return None
        return TensorBuffer(self._array.buffer.address + self._start, self.info.total_size)

    def allocate(self) -> None:
        """Get zeroed memory of `TensorInfo.total_size` bytes; the info can then be resized no more.

        Raises
        ------
        LayoutError
            When the tensor has memory, or its info describes no layout.

        Examples
        --------
        >>> tensor = Tensor(TensorInfo((5, 5), "F32"))
        >>> tensor.allocate()
        >>> tensor.info.is_resizable
        False
        """
        if self._array is not None:
            raise LayoutError(f"the tensor has memory ({self._array.buffer.nbytes} bytes): free() it first")
        descriptor = self.info.to_descriptor()
        total_size = self.info.total_size
        if descriptor.allocLength() * descriptor.itemsize >= total_size:
            array = NdArray(descriptor)
        else:
            array = NdArray(descriptor, NdArray(ShapeDescriptor("uint8", "c", (total_size,))))
        self._hold(array, 0)

    def import_memory(self, array: NdArray, *, alignment: int = 0, readonly: bool = False, gaps: bool = False) -> None:
        """Use the memory of `array`, zero-copy; the info can then be resized no more.

        The library takes an address and believes the rest; here the layout, the room around it, the element type and the
        alignment are checked. Memory that was imported before is given back.

        Parameters
        ----------
        array : NdArray
            Every element at the distance from the first one that `info` says; `total_size` bytes from
            `offset_first_element_in_bytes` before the first element. Kept alive by the tensor.
        alignment : int, optional
            Bytes of which the address of the first byte must be a multiple; elements of an NdArray always lie on multiples of
            their size.
        readonly : bool, optional
            True: accept a read-only array, for a tensor that the library never writes. It does write the padding of inputs.
        gaps : bool, optional
            True: accept padding of the info where the array has no padding of its own but a gap between rows or planes, or the
            elements around a view. The library may write there.

        Raises
        ------
        LayoutError
            When the layout is not that of the info, the buffer too small, the info's padding not padding of the array, or the
            memory misaligned or read-only.
        DTypeError
            When the elements are of another type.
        TypeError
            When `array` is no NdArray.

        Notes
        -----
        Source: `arm_compute::TensorAllocator::import_memory`. It checks the alignment only.

        Examples
        --------
        >>> import nd4jlike
        >>> tensor = Tensor(TensorInfo.from_shape((2, 3), "F32"))
        >>> x = nd4jlike.ones((2, 3))
        >>> tensor.import_memory(x)
        >>> tensor.ndarray is x
        True
        """
        start = _start_of(self.info, array)
        address = array.buffer.address + start
        (multiple,) = _integers((alignment,), "alignment in bytes")
        if multiple and address % multiple:
            raise LayoutError(f"misaligned memory: {multiple} bytes asked for, the buffer begins at address {address:#x}")
        if array.readonly and not readonly:
            raise LayoutError("read-only memory: the library may write it, its padding too; readonly=True says that it does not")
        foreign = {} if gaps else _foreign_padding(self.info.padding, array.descriptor)
        if foreign:
            raise LayoutError(
                f"the info pads {foreign} elements more than the array, and the library may write there: shape {array.shape}, {self.info.padding}, paddings "
                f"{array.descriptor.paddings} of the array; declare the padding in its descriptor, or say gaps=True where these cells are free"
            )
        self._hold(array, start)

    def _hold(self, array: NdArray, start: int) -> None:
        self._array = array
        self._start = start
        self.info._is_resizable = False

    def free(self) -> None:
        """Give the memory back; the info can then be resized again.

        Examples
        --------
        >>> tensor = Tensor(TensorInfo((5,), "F32"))
        >>> tensor.allocate()
        >>> tensor.free()
        >>> tensor.buffer is None, tensor.info.auto_padding()
        (True, True)
        """
        self._array = None
        self._start = 0
        self.info._is_resizable = True

    def copy_from(self, array: Any) -> None:
        """Copy the elements of `array`, of any layout, into this tensor; padding keeps what it holds.

        Parameters
        ----------
        array : NdArray or array_like
            The same shape, but for leading size-1 axes, and the same element type.

        Raises
        ------
        LayoutError
            When the tensor has no memory, or `array` another shape.
        DTypeError
            When the elements are of another type: nothing is converted.

        Examples
        --------
        A configure step has asked for padding that the data does not have yet:

        >>> import nd4jlike
        >>> tensor = Tensor(TensorInfo.from_shape((2, 3), "F32", padding=PaddingSize(right=5)))
        >>> tensor.allocate()
        >>> tensor.copy_from(nd4jlike.ones((2, 3)))
        """
        own = self._require_memory("copy_from")
        source = array if isinstance(array, NdArray) else np.asarray(array)
        self._check_same(source)
        _assign(own, source)

    def copy_to(self, out: NdArray | None = None) -> NdArray:
        """Copy the elements of this tensor into an array of any layout; padding of `out` keeps what it holds.

        Parameters
        ----------
        out : NdArray, optional
            The same shape, but for leading size-1 axes, and the same element type. None: a new c-order array without padding.

        Returns
        -------
        NdArray
            `out`, or the new array.

        Raises
        ------
        LayoutError
            When the tensor has no memory, or `out` another shape.
        DTypeError
            When the elements of `out` are of another type: nothing is converted.

        Examples
        --------
        >>> tensor = Tensor(TensorInfo.from_shape((2, 3), "S8", padding=PaddingSize(1, 1, 1, 1)))
        >>> tensor.allocate()
        >>> tensor.copy_to().to_numpy()
        array([[0, 0, 0],
               [0, 0, 0]], dtype=int8)
        """
        own = self._require_memory("copy_to")
        target = NdArray(ShapeDescriptor(own.descriptor.dtype, "c", own.shape)) if out is None else out
        self._check_same(target)
        _assign(target, own)
        return target

    def _require_memory(self, call: str) -> NdArray:
        if self._array is None:
            raise LayoutError(f"{call} on a tensor without memory: allocate() or import_memory() first")
        return self._array

    def _check_same(self, array: NdArray | np.ndarray[Any, Any]) -> None:
        info = self.info
        _data_type_name(codes(array.dtype).dtype, info.data_type)
        if _corrected(array.shape[::-1]) != info.tensor_shape:
            raise LayoutError(f"shape {array.shape} is not the tensor shape {info.tensor_shape} reversed, with or without leading axes of size 1")

    def __repr__(self) -> str:
        buffer = self.buffer
        return f"<Tensor {'without memory' if buffer is None else f'{buffer.nbytes} bytes at {buffer.address:#x}'} of {self.info!r}>"


def _start_of(info: TensorInfo, array: NdArray) -> int:
    """Byte of the buffer of `array` where the library's buffer begins, if the array is laid out as `info` says."""
    if not isinstance(array, NdArray):
        raise TypeError(f"import_memory takes an NdArray, not {type(array).__name__}: wrap the buffer by NdArray(info.to_descriptor(), buffer)")
    actual = array.descriptor
    _data_type_name(actual.dtype, info.data_type)
    expected = info.to_descriptor(actual.shape)
    if actual.inner_blocks:
        raise LayoutError(f"the array has inner blocks {actual.inner_blocks}, arm_compute has plain layouts only: reorder to a plain one")
    differing = [axis for axis in range(actual.rank) if actual.shape[axis] > 1 and actual.strides[axis] != expected.strides[axis]]
    if differing and actual.length:
        raise LayoutError(
            f"the array has strides {actual.strides}, the info says {expected.strides} (elements; axes {differing} differ): "
            f"shape {actual.shape}, {info.padding}; copy_from() copies between layouts",
            ShapeStatus.INCORRECT_STRIDES,
        )
    first = actual.offset * info.element_size
    start = first - info.offset_first_element_in_bytes
    if start < 0:
        raise LayoutError(
            f"the buffer has {first} bytes before the first element, the info says {info.offset_first_element_in_bytes}: "
            f"buffer of {array.buffer.nbytes} bytes, {info.padding}",
            ShapeStatus.OUT_OF_BUFFER,
        )
    if start + info.total_size > array.buffer.nbytes:
        raise LayoutError(
            f"the buffer has {array.buffer.nbytes - start} bytes from {info.offset_first_element_in_bytes} before the first element, "
            f"the info's total size is {info.total_size}: buffer of {array.buffer.nbytes} bytes, {info.padding}",
            ShapeStatus.OUT_OF_BUFFER,
        )
    return start


def _foreign_padding(padding: PaddingSize, descriptor: ShapeDescriptor) -> dict[str, int]:
    """Sides on which `padding` exceeds the padding of the descriptor's last two axes, and by how many elements."""
    rows, columns = (0, 0, *descriptor.paddings)[-2:]
    top, left = (0, 0, *descriptor.padding_offsets)[-2:]
    own = {"top": top, "right": columns - left, "bottom": rows - top, "left": left}
    return {side: getattr(padding, side) - size for side, size in own.items() if getattr(padding, side) > size}


def _assign(target: NdArray, source: NdArray | np.ndarray[Any, Any]) -> None:
    """Copy elements between arrays whose shapes differ by leading size-1 axes at most."""
    surplus = len(source.shape) - len(target.shape)
    target[...] = source[(0,) * surplus] if surplus > 0 else source


def require_library() -> NoReturn:
    """Raise: this version binds no Arm Compute Library.

    Raises
    ------
    MissingLibraryError
        Always; says what to do instead.

    Examples
    --------
    >>> from nd4jlike.adapters.arm_compute import require_library
    >>> require_library()
    Traceback (most recent call last):
        ...
    nd4jlike.errors.MissingLibraryError: nd4jlike has no binding of the Arm Compute Library ...
    """
    raise MissingLibraryError(
        "nd4jlike has no binding of the Arm Compute Library (C++, Arm processors; Debian: apt install libarm-compute-dev): "
        "call it from a module of your own with the fields of TensorInfo and the address of Tensor.buffer"
    )
