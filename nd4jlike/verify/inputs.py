"""What a model is run on: random numbers, and files."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.errors import DTypeError, LayoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from nd4jlike.verify.formats import Model, ModelInput

    _Array = npt.NDArray[Any]

__all__ = ["common_shapes", "feeds_from_files", "random_feeds", "random_values", "read_input"]

# Of images, where a model leaves them open.
_OPEN_EXTENT = 64


def random_values(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Array:
    """All values of the narrow integer types, [-1, 1) of the floats, 0 and 1 of the others, which may be indices."""
    try:
        if dtype.kind == "f":
            return random.uniform(-1, 1, shape).astype(dtype)
        if dtype.kind in "iu" and dtype.itemsize <= 2:
            limits = np.iinfo(dtype)
            return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        return random.integers(0, 2, shape).astype(dtype)
    except ValueError as error:  # beyond the machine word in bytes, or of too many axes
        raise LayoutError(f"no array of shape {shape} and {dtype} can be an input: {error}") from error


def random_feeds(model: Model, runs: int, seed: int) -> list[list[_Array]]:
    """For each run a value of each input; what a file leaves open is 1 on the first axis, channels are those of a layer that reads it."""
    random = np.random.default_rng(seed)
    entries: Sequence[ModelInput] = model.inputs
    channels = {layer.input: layer.channels for layer in model.layers if layer.data_format == "NCHW"}
    shapes = []
    for entry in entries:
        if entry.shape is None:
            raise LayoutError(f"model input {entry.name} has no shape in the file, not even a number of axes: random numbers need one, give input files")
        usual = {0: 1, 1: channels.get(entry.name, _OPEN_EXTENT)}
        shapes.append(tuple(usual.get(axis, _OPEN_EXTENT) if extent < 0 else extent for axis, extent in enumerate(entry.shape)))
    return [[random_values(random, shape, entry.dtype) for shape, entry in zip(shapes, entries, strict=True)] for _ in range(runs)]


def feeds_from_files(model: Model, paths: Sequence[str | os.PathLike[str]]) -> list[list[_Array]]:
    """Read one file for each input, run after run."""
    entries: Sequence[ModelInput] = model.inputs
    count = len(entries)
    if count == 0 or len(paths) % count:
        raise LayoutError(f"{len(paths)} input files for a model of {count} inputs: as many for each run")
    return [[read_input(path, entry) for path, entry in zip(paths[i : i + count], entries, strict=True)] for i in range(0, len(paths), count)]


def common_shapes(model: Model, feeds: Sequence[Sequence[_Array]]) -> dict[str, tuple[int, ...]]:
    """Shapes of the inputs that a file leaves open; -1 where runs differ."""
    shapes = {}
    for entry, *values in zip(model.inputs, *feeds, strict=True):
        if (entry.shape is None or min(entry.shape, default=0) < 0) and len({value.ndim for value in values}) == 1:
            shapes[entry.name] = tuple(extents[0] if len(set(extents)) == 1 else -1 for extents in zip(*(value.shape for value in values), strict=True))
    return shapes


def read_input(path: str | os.PathLike[str], entry: ModelInput) -> _Array:
    """Read a file as one input of a model.

    Parameters
    ----------
    path : str or path-like
        An ``.npy`` file of the input's element type, or an uncompressed 8-bit grey ``.bmp`` image for int8 (pixel - 128) and uint8.
    entry : ModelInput
        The input.

    Returns
    -------
    numpy.ndarray
        Of the input's shape and element type.

    Raises
    ------
    LayoutError
        For another kind of file, and for another number of elements.
    DTypeError
        For another element type.
    OSError
        For a file that cannot be read.
    """
    content = Path(path).read_bytes()
    if content[:2] == b"BM":
        values = _grey_bitmap(content, os.fspath(path))
        if entry.dtype == np.int8:
            values = (values.astype(np.int16) - 128).astype(np.int8)
    elif content[:6] == b"\x93NUMPY":
        try:
            values = np.load(path, allow_pickle=False)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # of a damaged header: whatever Python's tokenizer and parser raise, too
            raise LayoutError(f"{os.fspath(path)}: {error}") from error
    else:
        raise LayoutError(f"{os.fspath(path)}: an input is an .npy file or an 8-bit grey .bmp image; this begins with {content[:6]!r}")
    if values.dtype != entry.dtype:
        raise DTypeError(f"{os.fspath(path)}: {values.dtype} for model input {entry.name} of {entry.dtype}")
    shape = values.shape if entry.shape is None else entry.shape
    if min(shape, default=0) < 0 and len(shape) == values.ndim:
        shape = tuple(there if extent < 0 else extent for extent, there in zip(shape, values.shape, strict=True))
    if values.size != math.prod(shape) or min(shape, default=0) < 0:
        raise LayoutError(f"{os.fspath(path)}: shape {values.shape} for model input {entry.name} of shape {entry.shape}")
    return np.ascontiguousarray(values).reshape(shape)


def _grey_bitmap(content: bytes, path: str) -> npt.NDArray[np.uint8]:
    """Rows from the top of an uncompressed image of 8 bits a pixel whose palette is grey."""
    try:
        start, header, width, height, _, bits, compression, colours = struct.unpack_from("<10xIIiiHHI12xI", content)
        if bits != 8 or compression != 0 or width < 1 or height == 0:
            raise LayoutError(f"{path}: {bits} bits a pixel, compression {compression}, {width} x {height}; uncompressed 8-bit images only")
        palette = np.frombuffer(content, np.uint8, 4 * (colours or 256), 14 + header).reshape(-1, 4)
        if (palette[:, 0] != palette[:, 1]).any() or (palette[:, 1] != palette[:, 2]).any():
            raise LayoutError(f"{path}: the palette has colours; grey images only")
        pitch = (width + 3) // 4 * 4
        rows = np.frombuffer(content, np.uint8, pitch * abs(height), start).reshape(abs(height), pitch)[:, :width]
        pixels: npt.NDArray[np.uint8] = palette[rows, 0]
    except (struct.error, ValueError, IndexError) as error:
        raise error if isinstance(error, LayoutError) else LayoutError(f"{path}: damaged image of {len(content)} bytes: {error}") from error
    return pixels if height < 0 else pixels[::-1]
