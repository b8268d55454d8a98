"""What `NdArray.check_padding` found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PaddingReport"]

_SHOWN = 10  # dirty cells that the text names; all are in the fields


@dataclass(frozen=True, eq=False, repr=False)
class PaddingReport:
    """Every padding cell that does not hold the expected value; true when there is none.

    Iterating gives (index, offset, value, kind) of each.

    Attributes
    ----------
    expected : scalar
        What clean padding holds.
    where : str
        Which cells were looked at: ``"all"``, ``"halo"`` or ``"tail"``.
    cells : int
        How many these are.
    kinds : tuple of str
        Of each dirty cell: ``"tail"`` where only rounding up to whole blocks adds it, else ``"halo"``.
    indices : tuple of tuple of int
        Index of each dirty cell, counted from element (0, .., 0): negative before it, beyond the extent after the last.
    offsets : numpy.ndarray of int
        Offset of each dirty cell from the start of the buffer, in elements, ascending.
    values : numpy.ndarray
        What each dirty cell holds.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> x = nd.create((2, 2), paddings=(0, 1))
    >>> x.hosting_array()[0, 2] = 5
    >>> report = x.check_padding()
    >>> bool(report), len(report), report.indices
    (False, 1, ((0, 2),))
    """

    expected: Any
    where: str
    cells: int
    kinds: tuple[str, ...]
    indices: tuple[tuple[int, ...], ...]
    offsets: npt.NDArray[np.intp]
    values: npt.NDArray[Any]

    def __bool__(self) -> bool:
        return len(self.indices) == 0

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], int, Any, str]]:
        """Yield (index, offset, value, kind) of each dirty cell."""
        return zip(self.indices, self.offsets.tolist(), self.values, self.kinds, strict=True)

    def __repr__(self) -> str:
        return f"<PaddingReport: {self}>"

    def __str__(self) -> str:
        if not self.cells:
            return f"there are no {'padding' if self.where == 'all' else self.where} cells"
        looked_at = f"{self.cells} {'padding' if self.where == 'all' else self.where} cells"
        if self:
            return f"all {looked_at} hold {self.expected}"
        dirty = [f"{index} at offset {offset} holds {value} ({kind})" for index, offset, value, kind in islice(self, _SHOWN)]
        more = f", and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
        return f"{len(self)} of {looked_at} do not hold {self.expected}: {', '.join(dirty)}{more}"
