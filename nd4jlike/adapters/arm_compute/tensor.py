"""An info and memory that is laid out as it says: the library's tensor (ADR 0007)."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from nd4jlike.adapters.arm_compute.tensor_info import TensorInfo, corrected, data_type_name
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import codes
from nd4jlike.errors import LayoutError, ShapeStatus
from nd4jlike.geometry import integers
from nd4jlike.ndarray import NdArray
from nd4jlike.ndarray import _taken as taken

__all__ = ["Tensor", "TensorBuffer"]


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
        (multiple,) = integers((alignment,), "alignment in bytes")
        if multiple and address % multiple:
            raise LayoutError(f"misaligned memory: {multiple} bytes asked for, the buffer begins at address {address:#x}")
        if array.readonly and not readonly:
            raise LayoutError("read-only memory: the library may write it, its padding too; readonly=True says that it does not")
        foreign = {} if gaps else _foreign_padding(self.info, array.descriptor)
        if foreign:
            raise LayoutError(
                f"the info pads {foreign} elements more than the array, and the library may write there: shape {array.shape}, {self.info.padding}, paddings "
                f"{array.descriptor.paddings} and strides {array.strides} of the array; declare the padding in its descriptor, "
                "or say gaps=True where these cells are free"
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
        >>> from nd4jlike.adapters.arm_compute import PaddingSize
        >>> tensor = Tensor(TensorInfo.from_shape((2, 3), "F32", padding=PaddingSize(right=5)))
        >>> tensor.allocate()
        >>> tensor.copy_from(nd4jlike.ones((2, 3)))
        """
        own = self._require_memory("copy_from")
        array = taken(array)
        source = array if isinstance(array, NdArray) else np.asarray(array)
        self._check_same(source)
        own[...] = source  # leading size-1 axes are no matter

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
        TypeError
            When `out` is no NdArray.

        Examples
        --------
        >>> from nd4jlike.adapters.arm_compute import PaddingSize
        >>> tensor = Tensor(TensorInfo.from_shape((2, 3), "S8", padding=PaddingSize(1, 1, 1, 1)))
        >>> tensor.allocate()
        >>> tensor.copy_to().to_numpy()
        array([[0, 0, 0],
               [0, 0, 0]], dtype=int8)
        """
        own = self._require_memory("copy_to")
        if out is not None and not isinstance(out, (NdArray, np.ndarray)):
            raise TypeError(f"copy_to takes an NdArray, not {type(out).__name__}: nd4jlike.asarray wraps other memory")
        target = NdArray(ShapeDescriptor(own.descriptor.dtype, "c", own.shape)) if out is None else out
        self._check_same(target)
        target[...] = own
        return target

    def _require_memory(self, call: str) -> NdArray:
        if self._array is None:
            raise LayoutError(f"{call} on a tensor without memory: allocate() or import_memory() first")
        return self._array

    def _check_same(self, array: NdArray | np.ndarray[Any, Any]) -> None:
        info = self.info
        data_type_name(codes(array.dtype).dtype, info.data_type)
        if corrected(array.shape[::-1]) != info.tensor_shape:
            raise LayoutError(f"shape {array.shape} is not the tensor shape {info.tensor_shape} reversed, with or without leading axes of size 1")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a Tensor is not copied or pickled, as the library's is not: Tensor(tensor.info) makes another, its copy_from() takes the elements")

    def __repr__(self) -> str:
        buffer = self.buffer
        return f"<Tensor {'without memory' if buffer is None else f'{buffer.nbytes} bytes at {buffer.address:#x}'} of {self.info!r}>"


def _start_of(info: TensorInfo, array: NdArray) -> int:
    """Byte of the buffer of `array` where the library's buffer begins, if the array is laid out as `info` says."""
    if not isinstance(array, NdArray):
        raise TypeError(f"import_memory takes an NdArray, not {type(array).__name__}: wrap the buffer by NdArray(info.to_descriptor(), buffer)")
    actual = array.descriptor
    data_type_name(actual.dtype, info.data_type)
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
    # Without elements there is no first one: the memory begins with the buffer.
    first = actual.offset * info.element_size if actual.length else info.offset_first_element_in_bytes
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


def _foreign_padding(info: TensorInfo, descriptor: ShapeDescriptor) -> dict[str, int]:
    """Sides on which the info's padding exceeds that of the descriptor's last two axes, and by how many elements."""
    padding = info.padding
    rows, columns = (0, 0, *descriptor.paddings)[-2:]
    top, left = (0, 0, *descriptor.padding_offsets)[-2:]
    if descriptor.length and not padding.empty:
        # The stride of an axis of one element was not compared: padding at another distance is not where the info has it.
        (height, width), (pitch, step) = (1, 1, *descriptor.shape)[-2:], (0, 0, *descriptor.strides)[-2:]
        if height == 1 and pitch * descriptor.itemsize != info.strides_in_bytes[1]:
            rows = top = 0
        if width == 1 and step != 1:
            columns = left = 0
    own = {"top": top, "right": columns - left, "bottom": rows - top, "left": left}
    return {side: getattr(padding, side) - size for side, size in own.items() if getattr(padding, side) > size}
