"""Where the elements of a tensor live: the library's tensor info (ADR 0007)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from nd4jlike.adapters.arm_compute.padding import NO_PADDING, Geometry, PaddingSize, padded_geometry, padding_of, refuse_wrap
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import by_arm_compute, codes
from nd4jlike.errors import DTypeError, LayoutError, OutOfRangeError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.geometry import integers

if TYPE_CHECKING:
    from nd4jlike.dtypes import DType

__all__ = ["TensorInfo", "corrected", "data_type_name"]

MAX_DIMENSIONS = 6  # arm_compute::Dimensions::num_max_dimensions
DATA_LAYOUTS = ("UNKNOWN", "NCHW", "NHWC")

_UINT32_MAX = 2**32 - 1  # the library's strides
_INT32_MAX = 2**31 - 1  # what its offset_element_in_bytes returns


def corrected(tensor_shape: Sequence[int]) -> tuple[int, ...]:
    """`tensor_shape` without the size-1 dimensions at its slow end, down to one dimension."""
    count = len(tensor_shape)
    while count > 1 and tensor_shape[count - 1] == 1:
        count -= 1
    return tuple(tensor_shape[:count]) or (1,)


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
        padding: PaddingSize = NO_PADDING,
        data_layout: str = "UNKNOWN",
        biases: bool = False,
        strict: bool = True,
    ) -> None:
        extents = integers(tensor_shape, "extents of a tensor shape")
        if len(extents) > MAX_DIMENSIONS:
            raise LayoutError(f"{len(extents)} dimensions, arm_compute has at most {MAX_DIMENSIONS}: tensor shape {extents}", ShapeStatus.INCORRECT_RANK)
        if data_layout not in DATA_LAYOUTS:
            raise LayoutError(f"no data layout {data_layout!r}: it must be one of {', '.join(DATA_LAYOUTS)}")
        self._tensor_shape = corrected(extents)
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
        padding: PaddingSize = NO_PADDING,
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
        return cls(integers(shape, "extents of a shape")[::-1], data_type, padding=padding, data_layout=data_layout, biases=biases, strict=strict)

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
            gaps within rows, strides beyond 32 bits; with `explicit_strides` strides that are negative or 0. Says which axis and why.
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
        name = data_type_name(descriptor.dtype, data_type)
        if descriptor.inner_blocks:
            raise UnsupportedLayoutError(f"inner blocks {descriptor.inner_blocks}: arm_compute has plain layouts only; reorder to a plain one")
        if descriptor.rank > MAX_DIMENSIONS:
            raise UnsupportedLayoutError(f"{descriptor.rank} axes, arm_compute has at most {MAX_DIMENSIONS} dimensions: shape {descriptor.shape}")
        padding = PaddingSize() if explicit_strides else padding_of(descriptor, rebase)
        info = cls.from_shape(descriptor.shape, name, padding=padding, data_layout=data_layout, biases=biases)
        if explicit_strides:
            for axis, (extent, stride) in enumerate(zip(descriptor.shape, descriptor.strides, strict=True)):
                if stride < 0 or (stride == 0 and extent > 1 and descriptor.length):
                    raise UnsupportedLayoutError(
                        f"axis {axis}: stride {stride} for {extent} elements, arm_compute's strides are positive; shape {descriptor.shape}, "
                        f"strides {descriptor.strides}"
                    )
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
            When `shape` is another shape, or explicit strides are no whole elements.
        UnsupportedLayoutError
            When the info has wrapped (``strict=False``) and describes no layout.

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
            extents = integers(shape, "extents of a shape")
            if corrected(extents[::-1]) != self._tensor_shape:
                raise LayoutError(f"shape {extents} is not the tensor shape {self._tensor_shape} reversed, with or without leading axes of size 1")
        rank = len(extents)
        if (rank < 1 and not padding.empty) or (rank < 2 and rows):
            raise LayoutError(f"{padding} needs {2 if rows else 1} axes: shape {extents}")

        if self._explicit:
            return self._strided_descriptor(extents)
        paddings = (*(0,) * (rank - 2), rows, padding.left + padding.right)[-rank:] if rank else ()
        padding_offsets = (*(0,) * (rank - 2), padding.top, padding.left)[-rank:] if rank else ()
        padded_geometry(self._tensor_shape, self.element_size, padding, strict=True)  # refuses what has wrapped
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
        (number,) = integers((index,), "a dimension", signed=True)
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
        place = integers(coordinates, "coordinates", signed=True)
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
        return self.offset_element_in_bytes(integers(index, "an index", signed=True)[::-1])

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
        strides = integers(strides_in_bytes, "strides in bytes")
        offset, size = integers((offset_first_element_in_bytes, total_size), "offset and total size in bytes")
        if not self.num_dimensions <= len(strides) <= MAX_DIMENSIONS:
            raise LayoutError(f"{len(strides)} strides for {self.num_dimensions} dimensions: {strides}", ShapeStatus.INCORRECT_RANK)
        if self._strict:
            self._check_init(strides, offset, size)
        else:
            strides = tuple(stride & _UINT32_MAX for stride in strides)
        self._geometry = Geometry(strides, offset, size)
        self._explicit = True

    def _check_init(self, strides: tuple[int, ...], offset: int, size: int) -> None:
        what = f"strides {strides}, offset {offset}, total size {size} bytes for shape {self._tensor_shape} of {self._data_type}"
        if not self._is_resizable:
            raise LayoutError(f"init on the info of a tensor that has memory: it would describe that memory no longer; free() it first; {what}")
        if self.has_padding:
            raise LayoutError(f"init on an info with {self._padding}: explicit strides have none, reset_padding() first; {what}")
        refuse_wrap(strides, size, what)
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
        self._geometry = padded_geometry(self._tensor_shape, self.element_size, padding, self._strict)
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


def data_type_name(dtype: DType, data_type: str | None) -> str:
    """Name of the data type of elements of `dtype`: `data_type` if it fits them, the plain one if None."""
    row = codes(dtype)
    if not row.arm_compute:
        raise DTypeError(f"arm_compute has no data type for {row.name} elements")
    if data_type is None:
        return row.arm_compute[0]
    if data_type not in row.arm_compute:
        raise DTypeError(f"{data_type!r} is no data type of {row.name} elements: it must be one of {', '.join(row.arm_compute)}")
    return data_type
