"""Functions that make arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike import dtypes
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import DTypeError, LayoutError, UnsupportedLayoutError
from nd4jlike.ndarray import NdArray, wrap_array
from nd4jlike.ndarray import _check_copy as check_copy
from nd4jlike.ndarray import _from_dlpack as from_capsule
from nd4jlike.ndarray import _like as laid_out_like
from nd4jlike.ndarray import _unwritten as unwritten

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    _Shape = int | Iterable[int]
    _Sizes = int | Iterable[int] | None
    _DTypeLike = npt.DTypeLike | dtypes.BFloat16

__all__ = [
    "arange",
    "array",
    "asarray",
    "create",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


_SHARING = (NdArray, np.ndarray)  # types that share their memory
_NUMBERS = (list, tuple, range, int, float)
_FRESH = (list, tuple, range, int, float, complex, np.generic)  # NumPy's array of one of these is new; another's `__array__` may hand out its own


def create(
    shape: _Shape,
    *,
    dtype: _DTypeLike = "float32",
    order: str = "c",
    paddings: _Sizes = None,
    padding_offsets: _Sizes = None,
    padding_value: Any = None,
) -> NdArray:
    """Create an array of zeros, hosted in a padded buffer (libnd4j's ``NDArrayFactory::create``).

    Parameters
    ----------
    shape : int or sequence of int
        Logical extents.
    dtype : dtype, optional
        Element type.
    order : {'c', 'f'}, optional
        Memory order.
    paddings, padding_offsets : sequence of int, optional
        Padding of each axis in elements, in total and before the first element.
    padding_value : scalar, optional
        What padding holds, default 0; the zero point of a quantized tensor, for example. It is remembered, as that of `NdArray.fill_padding`.

    Returns
    -------
    NdArray
        Aligned to 64 bytes at element (0, .., 0); elements, and padding unless another value is given, are zero.

    Raises
    ------
    LayoutError
        See `ShapeDescriptor.paddedBufferDescriptor`.
    DTypeError
        For an unknown element type, and a `padding_value` that it does not hold.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> x = nd.create((2, 2, 5, 5), paddings=(0, 0, 1, 1))
    >>> x.buffer.nbytes, x.strides
    (576, (72, 36, 6, 1))
    >>> nd.create((1, 2), dtype="int8", paddings=(0, 2), padding_value=-128).hosting_array()
    NdArray([[   0,    0, -128, -128]], shape=(1, 4), dtype=int8, layout='ab')
    """
    return _padded(NdArray(_described(shape, dtype, order, paddings, padding_offsets)), padding_value)


def _described(shape: _Shape, dtype: _DTypeLike, order: str, paddings: _Sizes = None, padding_offsets: _Sizes = None) -> ShapeDescriptor:
    """Describe what the arguments of `create` ask for."""
    return ShapeDescriptor.paddedBufferDescriptor(dtype, order, shape, paddings, padding_offsets)


def _padded(made: NdArray, padding_value: Any) -> NdArray:
    """Fill the padding of a new array, where a value for it is given."""
    if padding_value is not None:
        made.fill_padding(padding_value)
    return made


def zeros(
    shape: _Shape,
    dtype: _DTypeLike = "float32",
    order: str = "c",
    *,
    paddings: _Sizes = None,
    padding_offsets: _Sizes = None,
    padding_value: Any = None,
) -> NdArray:
    """Create an array of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Logical extents.
    dtype : dtype, optional
        Element type.
    order : {'c', 'f'}, optional
        Memory order.
    paddings, padding_offsets : sequence of int, optional
        Padding of each axis in elements, in total and before the first element.
    padding_value : scalar, optional
        What padding holds, default 0; the zero point of a quantized tensor, for example. It is remembered, as that of `NdArray.fill_padding`.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError, DTypeError
        As for `create`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.zeros(2)
    NdArray([0., 0.], shape=(2,), dtype=float32, layout='a')
    """
    return _padded(NdArray(_described(shape, dtype, order, paddings, padding_offsets)), padding_value)


def empty(
    shape: _Shape,
    dtype: _DTypeLike = "float32",
    order: str = "c",
    *,
    paddings: _Sizes = None,
    padding_offsets: _Sizes = None,
    padding_value: Any = None,
) -> NdArray:
    """Create an array whose elements are yet to be written; its padding is zero by default.

    Parameters
    ----------
    shape : int or sequence of int
        Logical extents.
    dtype : dtype, optional
        Element type.
    order : {'c', 'f'}, optional
        Memory order.
    paddings, padding_offsets : sequence of int, optional
        Padding of each axis in elements, in total and before the first element.
    padding_value : scalar, optional
        What padding holds, default 0; the zero point of a quantized tensor, for example. It is remembered, as that of `NdArray.fill_padding`.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError, DTypeError
        As for `create`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.empty((2, 3)).shape
    (2, 3)
    """
    return _padded(unwritten(_described(shape, dtype, order, paddings, padding_offsets)), padding_value)


def full(
    shape: _Shape,
    fill_value: Any,
    dtype: _DTypeLike = "float32",
    order: str = "c",
    *,
    paddings: _Sizes = None,
    padding_offsets: _Sizes = None,
    padding_value: Any = None,
) -> NdArray:
    """Create an array of one value; its padding is zero by default.

    Parameters
    ----------
    shape : int or sequence of int
        Logical extents.
    fill_value : scalar
        The value of every element.
    dtype : dtype, optional
        Element type.
    order : {'c', 'f'}, optional
        Memory order.
    paddings, padding_offsets : sequence of int, optional
        Padding of each axis in elements, in total and before the first element.
    padding_value : scalar, optional
        What padding holds, default 0; the zero point of a quantized tensor, for example. It is remembered, as that of `NdArray.fill_padding`.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError
        As for `create`.
    DTypeError
        For an unknown element type, and a value of another kind.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.full(2, 7, "int8")
    NdArray([7, 7], shape=(2,), dtype=int8, layout='a')
    """
    made = empty(shape, dtype, order, paddings=paddings, padding_offsets=padding_offsets, padding_value=padding_value)
    made[...] = fill_value
    return made


def ones(
    shape: _Shape,
    dtype: _DTypeLike = "float32",
    order: str = "c",
    *,
    paddings: _Sizes = None,
    padding_offsets: _Sizes = None,
    padding_value: Any = None,
) -> NdArray:
    """Create an array of ones; its padding is zero by default.

    Parameters
    ----------
    shape : int or sequence of int
        Logical extents.
    dtype : dtype, optional
        Element type.
    order : {'c', 'f'}, optional
        Memory order.
    paddings, padding_offsets : sequence of int, optional
        Padding of each axis in elements, in total and before the first element.
    padding_value : scalar, optional
        What padding holds, default 0; the zero point of a quantized tensor, for example. It is remembered, as that of `NdArray.fill_padding`.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError, DTypeError
        As for `create`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.ones(2)
    NdArray([1., 1.], shape=(2,), dtype=float32, layout='a')
    """
    return full(shape, 1, dtype, order, paddings=paddings, padding_offsets=padding_offsets, padding_value=padding_value)


def arange(start: float | None = None, stop: float | None = None, step: float = 1, *, dtype: _DTypeLike = "float32") -> NdArray:
    """Create a vector of evenly spaced values.

    Parameters
    ----------
    start : float, optional
        The first value, default 0; alone it is `stop`, as `numpy.arange` has it.
    stop : float
        Where the values end, itself left out.
    step : float, optional
        From one to the next.
    dtype : dtype, optional
        Element type.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError
        Without an end, with a step of 0, and for ends and steps that are no real numbers, or not finite.
    OverflowError
        If `dtype` does not hold the first of integers.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.arange(1, 7, 2, dtype="int32")
    NdArray([1, 3, 5], shape=(3,), dtype=int32, layout='a')
    """
    if stop is None:
        start, stop = None, start
    ends: tuple[Any, ...] = (0 if start is None else start, stop, step)
    if any(
        isinstance(end, tuple | list) or np.ndim(end) or np.asarray(end).dtype.kind not in "biufO" for end in ends if not isinstance(end, int | float | None)
    ):
        raise LayoutError(f"start, stop and step must be real numbers: start={start!r}, stop={stop!r}, step={step!r}")
    if stop is None or step == 0:
        raise LayoutError(f"values need an end, and steps that reach it: start={start}, stop={stop}, step={step}")
    element = dtypes.dtype(dtype)
    exact = element.kind in "iu" and all(isinstance(end, int | np.integer) for end in ends)  # as floats, integers of 64 bits may be rounded
    try:
        values = np.arange(*ends, dtype=dtypes.bits_dtype(element)) if exact else np.arange(*ends)
    except (TypeError, ValueError) as error:
        raise LayoutError(f"these values cannot be counted: start={start!r}, stop={stop!r}, step={step!r} ({error})") from None
    made = empty(values.shape, element)
    made[...] = values.astype(np.float32) if isinstance(element, dtypes.BFloat16) else values.astype(element)
    return made


def _like(x: Any, dtype: _DTypeLike | None, padding_value: Any, cleared: bool) -> NdArray:
    """Make an array in the layout of `x`, dense where no memory can be laid out so; zeros if `cleared`."""
    x = asarray(x)
    return _padded(laid_out_like(x, x.dtype if dtype is None else dtype, cleared=cleared), padding_value)


def zeros_like(x: Any, dtype: _DTypeLike | None = None, *, padding_value: Any = None) -> NdArray:
    """Create zeros in the shape and layout of `x`.

    Parameters
    ----------
    x : array_like
        Gives shape, layout, padding and element type.
    dtype : dtype, optional
        Another element type.
    padding_value : scalar, optional
        What padding holds, as for `create`.

    Returns
    -------
    NdArray
        Dense where `x` is a part of a bigger buffer, reversed or broadcast.

    Raises
    ------
    LayoutError, DTypeError
        As for `asarray`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.zeros_like(nd.ones((1, 2), paddings=(0, 3))).descriptor.paddings
    (0, 3)
    """
    return _like(x, dtype, padding_value, cleared=True)


def empty_like(x: Any, dtype: _DTypeLike | None = None, *, padding_value: Any = None) -> NdArray:
    """Create an array in the shape and layout of `x` whose elements are yet to be written.

    Parameters
    ----------
    x : array_like
        Gives shape, layout, padding and element type.
    dtype : dtype, optional
        Another element type.
    padding_value : scalar, optional
        What padding holds, as for `create`.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError, DTypeError
        As for `asarray`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.empty_like(nd.ones((1, 2))).shape
    (1, 2)
    """
    return _like(x, dtype, padding_value, cleared=False)


def full_like(x: Any, fill_value: Any, dtype: _DTypeLike | None = None, *, padding_value: Any = None) -> NdArray:
    """Create an array of one value in the shape and layout of `x`.

    Parameters
    ----------
    x : array_like
        Gives shape, layout, padding and element type.
    fill_value : scalar
        The value of every element.
    dtype : dtype, optional
        Another element type.
    padding_value : scalar, optional
        What padding holds, as for `create`.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError
        As for `asarray`.
    DTypeError
        As for `asarray`, and for a value of another kind.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.full_like(nd.zeros(2), 5)
    NdArray([5., 5.], shape=(2,), dtype=float32, layout='a')
    """
    made = _like(x, dtype, padding_value, cleared=False)
    made[...] = fill_value
    return made


def ones_like(x: Any, dtype: _DTypeLike | None = None, *, padding_value: Any = None) -> NdArray:
    """Create ones in the shape and layout of `x`.

    Parameters
    ----------
    x : array_like
        Gives shape, layout, padding and element type.
    dtype : dtype, optional
        Another element type.
    padding_value : scalar, optional
        What padding holds, as for `create`.

    Returns
    -------
    NdArray

    Raises
    ------
    LayoutError, DTypeError
        As for `asarray`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.ones_like(nd.zeros(2))
    NdArray([1., 1.], shape=(2,), dtype=float32, layout='a')
    """
    return full_like(x, 1, dtype, padding_value=padding_value)


def asarray(obj: Any, copy: bool | None = None, dtype: _DTypeLike | None = None) -> NdArray:
    """Make an array of `obj`, zero-copy where it exports memory.

    Parameters
    ----------
    obj : array_like
        An NdArray, an object with the buffer or array protocol, or nested sequences of numbers. What NumPy cannot read, such as torch's
        bfloat16, comes by DLPack.
    copy : bool, optional
        True: always copy. False: share the memory or raise. None: copy only where there is no memory to share.
    dtype : dtype, optional
        Element type; a conversion is a copy.

    Returns
    -------
    NdArray
        An NdArray comes back as it is, unless it is copied or converted.

    Raises
    ------
    UnsupportedLayoutError
        For ``copy=False`` where a copy is needed, for memory that is to be shared and has strides of no whole elements, and for what another
        library does not hand over, such as torch's tensors that need a gradient.
    DTypeError
        For element types that are not in the table; with `dtype`, NumPy's other byte orders and its long double are converted.
    LayoutError
        For memory that is to be shared and not aligned to its element type, and for rows of different lengths.

    Examples
    --------
    >>> import numpy as np
    >>> import nd4jlike as nd
    >>> base = np.zeros((2, 3), np.float32)
    >>> x = nd.asarray(base)
    >>> x[1, 2] = 5
    >>> float(base[1, 2])
    5.0
    """
    check_copy(copy)
    if isinstance(obj, bytes):  # which NumPy takes for text
        obj = memoryview(obj)
    shares = isinstance(obj, _SHARING) or (not isinstance(obj, np.generic) and (hasattr(obj, "__array_interface__") or _exports_buffer(obj)))
    if copy is False and not shares:
        raise UnsupportedLayoutError(f"a {type(obj).__name__} exports no buffer to share, and copy=False forbids a copy; from_dlpack shares by capsule")
    try:
        found = wrap_array(obj)
    except DTypeError as unknown:
        if dtype is None or copy is False:
            raise
        try:
            values = np.asarray(obj)
        except TypeError:  # of another library's, which NumPy cannot read
            raise unknown from None
        if not (values.dtype.kind in "fiu" or dtypes.are_large_integers(values)):
            raise
        # NumPy converts its other byte orders and its long double.
        to_type = dtypes.dtype(dtype)
        return wrap_array(values.astype(np.float32 if isinstance(to_type, dtypes.BFloat16) else to_type)).astype(to_type, copy=False)
    except (LayoutError, UnsupportedLayoutError):
        if copy is False or not shares or not (copy or dtype is not None):
            raise
        try:
            found, copy = wrap_array(np.array(obj)), None  # a copy, which lies as it must
        except (ValueError, BufferError) as error:
            raise LayoutError(f"NumPy cannot copy the memory of a {type(obj).__name__}: {error}") from error
    if dtype is not None and found.dtype != (target := dtypes.dtype(dtype)):
        if copy is False:
            raise UnsupportedLayoutError(f"a conversion from {found.dtype} to {target} is a copy, and copy=False forbids it")
        if isinstance(obj, _NUMBERS) and not isinstance(target, dtypes.BFloat16):
            # Each number by itself: by way of the type that NumPy takes for all of them it could be another one.
            return wrap_array(np.array(obj, target))
        return found.astype(target)
    return found.copy() if copy and (shares or not isinstance(obj, _FRESH)) else found


def array(obj: Any, dtype: _DTypeLike | None = None) -> NdArray:
    """Make a new array with the elements of `obj`.

    Parameters
    ----------
    obj : array_like
        As for `asarray`.
    dtype : dtype, optional
        Element type; default that of `obj`.

    Returns
    -------
    NdArray
        It shares no memory with `obj`.

    Raises
    ------
    LayoutError, DTypeError
        As for `asarray`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.array([[1, 2], [3, 4]], dtype="int8").shape
    (2, 2)
    """
    return asarray(obj, copy=True, dtype=dtype)


def from_dlpack(obj: Any, *, device: Any = None, copy: bool | None = None) -> NdArray:
    """Make an array of the memory of another library, by its DLPack capsule.

    Parameters
    ----------
    obj : object
        With ``__dlpack__`` and ``__dlpack_device__``: arrays of NumPy, torch, JAX, ...; its memory is that of the CPU.
    device : {None, 'cpu'}, optional
        As in the array API standard.
    copy : bool, optional
        True: always copy. Otherwise the memory is shared.

    Returns
    -------
    NdArray
        Read-only where the producer says so, and where it is too old to say it.

    Raises
    ------
    UnsupportedLayoutError
        For objects without DLPack, other devices, other major versions, capsules that were consumed.
    LayoutError
        For extents, strides or addresses that cannot be true, and misaligned memory.
    DTypeError
        For element types that are not in the table.

    Examples
    --------
    >>> import numpy as np
    >>> import nd4jlike as nd
    >>> base = np.zeros((2, 3), np.float32)
    >>> nd.from_dlpack(base)[1, 2] = 5
    >>> float(base[1, 2])
    5.0
    """
    if device not in (None, "cpu"):
        raise UnsupportedLayoutError(f"arrays are on the CPU: device={device!r}")
    if not hasattr(obj, "__dlpack__") or not hasattr(obj, "__dlpack_device__"):
        raise UnsupportedLayoutError(f"a {type(obj).__name__} has no __dlpack__ and __dlpack_device__")
    check_copy(copy)
    found = from_capsule(obj)
    return found.copy() if copy else found


def _exports_buffer(obj: Any) -> bool:
    try:
        memoryview(obj).release()
    except (TypeError, BufferError, ValueError):
        return False
    return True
