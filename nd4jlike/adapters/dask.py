"""Dask: arrays cut into blocks that are views, and blocks computed into one array of any layout (ADR 0012)."""

from __future__ import annotations

import importlib
import itertools
import math
import uuid
from typing import TYPE_CHECKING, Any

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import numpy_dtype
from nd4jlike.errors import LayoutError, MissingLibraryError, UnsupportedLayoutError
from nd4jlike.ndarray import NdArray

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["from_dask", "to_dask"]


def to_dask(x: NdArray, chunks: int | str | Sequence[Any] = "auto") -> Any:
    """Cut an array into a Dask array.

    Parameters
    ----------
    x : NdArray
        The array, of any layout that can be indexed.
    chunks : int, str or sequence
        As in `dask.array.from_array`.

    Returns
    -------
    dask.array.Array
        Its blocks are NdArray views of `x`: no element is copied, and what is written to `x` later is seen. It mixes with NdArrays.

    Raises
    ------
    LayoutError
        For chunks that do not cut the shape.
    UnsupportedLayoutError
        For what is no NdArray, and parts of blocked arrays that are no views.
    MissingLibraryError
        Without Dask, and of bfloat16 without `ml_dtypes`.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters.dask import to_dask
    >>> to_dask(nd.ones((4, 6)), chunks=(2, 6)).sum().compute()  # doctest: +SKIP
    np.float32(24.0)
    """
    dask = _dask()
    if not isinstance(x, NdArray):
        raise UnsupportedLayoutError(f"to_dask takes an NdArray, not a {type(x).__name__}")
    dtype = numpy_dtype(x.dtype)
    try:
        sizes = dask.core.normalize_chunks(chunks, x.shape, dtype=dtype)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise LayoutError(f"chunks must cut the shape {x.shape}: {chunks!r}: {error}") from error
    if any(extent < 0 for along in sizes for extent in along):
        raise LayoutError(f"chunks must cut the shape {x.shape}: {chunks!r}: a chunk has 0 elements or more")
    # Dask's own from_array would copy. No token of the contents is the name: they may change.
    name = f"nd4jlike-{uuid.uuid4().hex}"
    places = itertools.product(*(range(len(along)) for along in sizes))
    blocks = {(name, *place): x[(*part, ...)] for place, part in zip(places, dask.core.slices_from_chunks(sizes), strict=True)}
    return dask.Array(blocks, name, sizes, dtype=dtype)


def from_dask(array: Any, layout: str | ShapeDescriptor | None = None) -> NdArray:
    """Compute a Dask array into one array.

    Parameters
    ----------
    array : dask.array.Array
        All its extents are known.
    layout : str or ShapeDescriptor, optional
        A tag, or where each element shall lie, padding and blocks included. Default: dense, last axis fastest.

    Returns
    -------
    NdArray
        Each block was written where it belongs as soon as it was computed. Under schedulers that may compute elsewhere (all but threads and the
        synchronous one) all blocks come back first: memory for twice the elements.

    Raises
    ------
    LayoutError
        For unknown extents, and for a layout of another shape.
    UnsupportedLayoutError
        For what is no Dask array.
    MissingLibraryError
        Without Dask.

    Examples
    --------
    >>> import dask.array  # doctest: +SKIP
    >>> from nd4jlike.adapters.dask import from_dask
    >>> from_dask(dask.array.ones((1, 16, 4, 4), chunks=2), "nChw8c").descriptor.tag  # doctest: +SKIP
    'aBcd8b'
    """
    dask = _dask()
    if not isinstance(array, dask.Array):
        raise UnsupportedLayoutError(f"from_dask takes a dask.array.Array, not a {type(array).__name__}")
    if any(math.isnan(extent) for extent in array.shape):
        raise LayoutError(f"all extents must be known: shape {array.shape}; compute_chunk_sizes() finds them")
    if layout is not None and not isinstance(layout, ShapeDescriptor):
        layout = ShapeDescriptor.from_tag(array.shape, layout, array.dtype)
    descriptor = ShapeDescriptor(array.dtype, "c", array.shape) if layout is None else layout
    if descriptor.shape != array.shape:
        raise LayoutError(f"the layout must have the shape of the Dask array, {array.shape}: {descriptor.shape}")
    out = NdArray(descriptor)
    if not out.size:
        return out
    core = importlib.import_module("dask")
    if core.base.get_scheduler(collections=[array]) in (core.threaded.get, core.local.get_sync):
        dask.store(array, out, lock=False)
    else:  # what other processes write, they write to a copy
        blocks = core.compute(*array.to_delayed().ravel())
        for part, block in zip(dask.core.slices_from_chunks(array.chunks), blocks, strict=True):
            out[part] = block
    return out


def _dask() -> Any:
    """Import Dask, which then knows NdArray."""
    try:
        dask = importlib.import_module("dask.array")
    except ImportError as error:
        raise MissingLibraryError("dask is not installed: pip install 'dask[array]'") from error
    if not dask.chunk_types.is_valid_chunk_type(NdArray):
        percentiles = dask.dispatch.percentile_lookup
        percentiles.register(NdArray, lambda x, *args, **kwargs: percentiles(x.to_numpy(), *args, **kwargs))
        dask.register_chunk_type(NdArray)
    return dask
