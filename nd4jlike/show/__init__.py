"""Layouts one can see: as text, as SVG, and where two of them or their values differ (ADR 0011)."""

from nd4jlike.show.cells import Cell, cell_at, describe, locate
from nd4jlike.show.differences import diff
from nd4jlike.show.drawing import Drawing
from nd4jlike.show.text import show
from nd4jlike.show.values import Mismatches, mismatches

__all__ = ["Cell", "Drawing", "Mismatches", "cell_at", "describe", "diff", "locate", "mismatches", "show"]
