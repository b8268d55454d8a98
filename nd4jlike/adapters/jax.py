"""JAX: arrays on our memory and on theirs (ADR 0012)."""

from __future__ import annotations

import importlib
from typing import Any

from nd4jlike.creation import from_dlpack
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import DTypeError, MissingLibraryError, Nd4jLikeError, UnsupportedLayoutError
from nd4jlike.ndarray import NdArray
from nd4jlike.reorder import reorder

__all__ = ["from_jax", "to_jax"]


def to_jax(x: NdArray, *, copy: bool = False) -> Any:
    """Make a JAX array of an array.

    Parameters
    ----------
    x : NdArray
        The array. JAX takes its arrays for immutable: do not write to `x` while the result is in use.
    copy : bool
        False: on the memory of `x`, which JAX wants at a multiple of 64 bytes and without padding and gaps, in any order of axes. True: on a
        dense copy.

    Returns
    -------
    jax.Array
        Of the shape of `x`.

    Raises
    ------
    UnsupportedLayoutError
        For what is no NdArray, and without `copy` for what JAX does not take as it lies.
    DTypeError
        For 64-bit types where JAX's option jax_enable_x64 is not set: it would convert them.
    MissingLibraryError
        Without JAX.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters.jax import to_jax
    >>> to_jax(nd.create((2, 3), paddings=(0, 1)), copy=True).shape  # doctest: +SKIP
    (2, 3)
    """
    numpy = _numpy()
    if not isinstance(x, NdArray):
        raise UnsupportedLayoutError(f"to_jax takes an NdArray, not a {type(x).__name__}: nd4jlike.asarray wraps others")
    try:
        result = numpy.from_dlpack(reorder(x, ShapeDescriptor(x.dtype, "c", x.shape)) if copy else x, copy=False)
    except Nd4jLikeError:
        raise
    except Exception as error:  # kinds of its own
        words = " ".join(str(error).split())
        beyond = (x.buffer.address + x.descriptor.offset * x.itemsize) % 64
        raise UnsupportedLayoutError(
            f"JAX takes memory that begins at a multiple of 64 bytes, without padding and gaps; this begins {beyond} bytes beyond one, shape {x.shape}, "
            f"strides {x.strides}; copy=True copies ({words:.120})"
        ) from error
    if str(result.dtype) != str(x.dtype):
        raise DTypeError(f"JAX makes {result.dtype} of {x.dtype} unless its option jax_enable_x64 is set")
    return result


def from_jax(array: Any) -> NdArray:
    """Make an array of a JAX array.

    Parameters
    ----------
    array : jax.Array
        On the CPU.

    Returns
    -------
    NdArray
        On its memory, read-only.

    Raises
    ------
    UnsupportedLayoutError
        For what is no JAX array, and for one on another device.
    MissingLibraryError
        Without JAX.

    Examples
    --------
    >>> from nd4jlike.adapters.jax import from_jax
    >>> from_jax(jax.numpy.zeros((2, 3))).readonly  # doctest: +SKIP
    True
    """
    _numpy()
    if not isinstance(array, importlib.import_module("jax").Array):
        raise UnsupportedLayoutError(f"from_jax takes a jax.Array, not a {type(array).__name__}")
    try:
        return from_dlpack(array)
    except Nd4jLikeError:
        raise
    except Exception as error:  # kinds of its own
        raise UnsupportedLayoutError(f"JAX does not hand over this array: {' '.join(str(error).split())}") from error


def _numpy() -> Any:
    try:
        return importlib.import_module("jax.numpy")
    except ImportError as error:
        raise MissingLibraryError("jax is not installed: pip install jax") from error
