"""PyTorch: tensors on our memory and arrays on theirs, strides as they are (ADR 0012)."""

from __future__ import annotations

import importlib
from typing import Any

from nd4jlike.creation import from_dlpack
from nd4jlike.errors import DTypeError, MissingLibraryError, Nd4jLikeError, UnsupportedLayoutError
from nd4jlike.ndarray import NdArray

__all__ = ["from_torch", "to_torch"]


def to_torch(x: NdArray, *, copy: bool = False) -> Any:
    """Make a tensor of an array.

    Parameters
    ----------
    x : NdArray
        The array.
    copy : bool
        False: the tensor is on the memory of `x`, with its strides: channels last stays channels last, padding is left out. True: it is on
        memory of its own, laid out as `x` is, but for blocked arrays, which torch has no strides for: these become dense tensors, in c order.

    Returns
    -------
    torch.Tensor
        Of the shape of `x`.

    Raises
    ------
    UnsupportedLayoutError
        Without `copy` for blocked arrays (``x.exploded()`` shows their cells), negative strides and read-only arrays.
    DTypeError
        For an element type that torch does not have.
    MissingLibraryError
        Without torch.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters.torch import to_torch
    >>> x = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 3, 4, 4), "nhwc"))
    >>> to_torch(x).is_contiguous(memory_format=torch.channels_last)  # doctest: +SKIP
    True
    """
    torch = _torch()
    if not isinstance(x, NdArray):
        raise UnsupportedLayoutError(f"to_torch takes an NdArray, not a {type(x).__name__}: nd4jlike.asarray wraps others")
    try:
        return torch.from_dlpack((x.reshape(x.shape, copy=True) if x.descriptor.inner_blocks else x.copy()) if copy else x)
    except Nd4jLikeError:
        raise
    except (BufferError, RuntimeError, ValueError) as error:
        raise DTypeError(f"torch takes no array of {x.dtype} and shape {x.shape}: {error}") from error


def from_torch(tensor: Any, *, copy: bool = False) -> NdArray:
    """Make an array of a tensor.

    Parameters
    ----------
    tensor : torch.Tensor
        On the CPU, strided.
    copy : bool
        False: the array is on the memory of `tensor`, with its strides.

    Returns
    -------
    NdArray
        Of the shape of `tensor`.

    Raises
    ------
    UnsupportedLayoutError
        For what is no tensor, and for tensors that are elsewhere, sparse, quantized, conjugate, negated (take ``tensor.resolve_neg()``),
        or need a gradient (take ``tensor.detach()``).
    DTypeError
        For complex tensors (take ``torch.view_as_real(tensor)``) and others of an element type that arrays do not have.
    MissingLibraryError
        Without torch.

    Examples
    --------
    >>> from nd4jlike.adapters.torch import from_torch
    >>> from_torch(torch.zeros(2, 3)[:, 1:]).strides  # doctest: +SKIP
    (3, 1)
    """
    torch = _torch()
    if not isinstance(tensor, torch.Tensor):
        raise UnsupportedLayoutError(f"from_torch takes a torch.Tensor, not a {type(tensor).__name__}")
    if tensor.is_neg():  # its DLPack capsule is silent about it
        raise UnsupportedLayoutError("torch negates this tensor when it is read, which a layout cannot say: take tensor.resolve_neg()")
    try:
        return from_dlpack(tensor, copy=copy)
    except DTypeError as error:
        parts = ", torch.view_as_real(tensor) has the real and imaginary parts" if tensor.is_complex() else ""
        raise DTypeError(f"no array can be made of a tensor of {tensor.dtype}{parts}: {error}") from error
    except Nd4jLikeError:
        raise
    except (BufferError, RuntimeError, ValueError) as error:
        raise UnsupportedLayoutError(f"torch does not hand over this tensor of {tensor.dtype}: {error}") from error


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingLibraryError("torch is not installed: pip install torch") from error
