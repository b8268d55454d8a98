"""Layouts one can see: as text, as SVG, and where two of them differ (ADR 0011)."""

from nd4jlike.show.cells import Cell, cell_at, describe, locate
from nd4jlike.show.differences import diff
from nd4jlike.show.drawing import Drawing
from nd4jlike.show.text import show

__all__ = ["Cell", "Drawing", "cell_at", "describe", "diff", "locate", "show"]
