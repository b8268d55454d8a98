"""Where two arrays hold other values, whatever their layouts (ADR 0011)."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.creation import asarray
from nd4jlike.dtypes import bfloat16
from nd4jlike.errors import LayoutError
from nd4jlike.geometry import integer
from nd4jlike.show.cells import index_text, plural
from nd4jlike.show.text import table_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from nd4jlike.ndarray import NdArray

    _Array = npt.NDArray[Any]

__all__ = ["Mismatches", "mismatches"]


# Elements that are compared at a time.
_CHUNK = 1 << 16


class Mismatches(str):
    """Text that shows itself: what `mismatches` found.

    Attributes
    ----------
    differing : int
        How many elements differ.
    largest : int or float
        The largest difference of them, 0 where there is none; NaN where one of two is NaN.
    """

    differing: int
    largest: float

    def __repr__(self) -> str:
        return str(self)


def mismatches(a: NdArray | npt.ArrayLike, b: NdArray | npt.ArrayLike, *, rtol: float = 0.0, atol: float = 0.0, rows: int = 32) -> Mismatches:
    """Show which elements of two arrays have other values, and where they lie in both buffers.

    Parameters
    ----------
    a, b : NdArray or array_like
        Of equal shape and any layouts.
    rtol, atol : float
        Of floats: elements up to ``atol + rtol * abs(b)`` apart do not differ. NaN does not differ from NaN, nor an infinity from itself.
    rows : int
        Elements to list, the first; the others are counted.

    Returns
    -------
    Mismatches
        How many elements differ, the largest difference and where that is, and a list of elements with both values and both offsets
        in elements.

    Raises
    ------
    LayoutError
        If the shapes differ; for tolerances that are no numbers or below 0, or of integers, which are compared exactly; for less than 1 row.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> from nd4jlike.show import mismatches
    >>> a = nd.create((2, 3), dtype="int8", paddings=(2, 2), padding_offsets=(1, 1))
    >>> a[1, 1:] = 7
    >>> mismatches(a, nd.array([[0, 0, 0], [0, 5, 11]], dtype="int8"))
    a  ShapeDescriptor.paddedBufferDescriptor('int8', 'c', (2, 3), (2, 2), (1, 1))
    b  ShapeDescriptor('int8', 'c', (2, 3))
    2 of 6 elements differ; the largest difference is 4, at 1,2
    <BLANKLINE>
    element  a   b  offset a  offset b
    1,1      7   5        12         4
    1,2      7  11        13         5
    """
    a, b = asarray(a), asarray(b)
    if a.shape != b.shape:
        raise LayoutError(f"arrays of equal shape can be compared, these have {a.shape} and {b.shape}")
    if not all(isinstance(tolerance, Real) and tolerance >= 0 for tolerance in (rtol, atol)):
        raise LayoutError(f"tolerances must be numbers of 0 or more: rtol={rtol!r}, atol={atol!r}")
    rows = integer("rows", rows, 1)
    here, there = (np.asarray(x.astype("float32") if x.dtype == bfloat16 else x) for x in (a, b))
    floats = "f" in here.dtype.kind + there.dtype.kind
    if not floats and (rtol or atol):
        raise LayoutError(f"integers are compared exactly, tolerances are of floats: rtol={rtol!r}, atol={atol!r} for {a.dtype} and {b.dtype}")
    differing = worst = start = 0
    largest: float = 0
    listed: list[int] = []
    for chunk_here, chunk_there in np.nditer([here, there], ["external_loop", "buffered", "zerosize_ok"], order="C", buffersize=_CHUNK):
        places = np.flatnonzero(_differ(*_comparable(chunk_here, chunk_there), rtol, atol))
        if len(places):
            distances = _distances(*_comparable(chunk_here[places], chunk_there[places]))
            farthest = int(np.argmax(distances))
            distance = float(distances[farthest]) if floats else int(distances[farthest])
            if not differing or distance > largest or (distance != distance and largest == largest):
                largest, worst = distance, start + int(places[farthest])
            listed += (start + places[: rows - len(listed)]).tolist()
            differing += len(places)
        start += len(chunk_here)
    indices = [tuple(int(i) for i in np.unravel_index(place, a.shape)) for place in listed]

    found = f"{differing} of {a.size} elements differ"
    if rtol or atol:
        found += f" by more than {atol:g} + {rtol:g} * |b|"
    if differing:
        where = index_text([int(i) for i in np.unravel_index(worst, a.shape)])
        found += f"; the largest difference is {largest:.9g}, at {where}" if floats else f"; the largest difference is {largest}, at {where}"
    lines = [f"a  {a.descriptor!r}", f"b  {b.descriptor!r}", found]
    if indices:
        table = [[index_text(i), str(here[i]), str(there[i]), str(a.descriptor.offset_of(i)), str(b.descriptor.offset_of(i)), ""] for i in indices]
        lines += ["", *table_of([["element", "a", "b", "offset a", "offset b", ""], *table])]
    if left_out := differing - len(indices):
        lines.append(f"... {left_out} {plural('element', left_out)}")
    made = Mismatches("\n".join(lines))
    made.differing, made.largest = differing, largest
    return made


def _comparable(here: _Array, there: _Array) -> tuple[_Array, _Array]:
    """Give both a type that holds the values of both: integers of 64 bits beside floats have none in NumPy's table."""
    kinds, bytes_of_integers = here.dtype.kind + there.dtype.kind, max(x.itemsize if x.dtype.kind != "f" else 0 for x in (here, there))
    return (here.astype(np.longdouble), there.astype(np.longdouble)) if "f" in kinds and bytes_of_integers == 8 else (here, there)


def _differ(here: _Array, there: _Array, rtol: float, atol: float) -> _Array:
    differ: _Array = (here != there) & ~((here != here) & (there != there))
    if rtol or atol:
        wide = np.result_type(here, there, np.float64)
        here, there = here.astype(wide), there.astype(wide)
        with np.errstate(invalid="ignore", over="ignore"):
            differ &= ~(np.isfinite(here) & np.isfinite(there) & (np.abs(here - there) <= atol + rtol * np.abs(there)))
    return differ


def _distances(here: _Array, there: _Array) -> _Array:
    distances: _Array
    if "f" in here.dtype.kind + there.dtype.kind:
        wide: Any = np.result_type(here, there, np.float64)
    elif max(here.itemsize, there.itemsize) < 8:
        wide = np.int64
    elif here.dtype == there.dtype:  # modulo 2**64, which no difference reaches
        distances = np.maximum(here, there).astype(np.uint64) - np.minimum(here, there).astype(np.uint64)
        return distances
    else:
        wide = np.object_
    with np.errstate(invalid="ignore", over="ignore"):
        distances = np.abs(here.astype(wide) - there.astype(wide))
    return distances
