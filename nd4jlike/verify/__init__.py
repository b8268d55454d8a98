"""Every depthwise layer of a real model: run here and by a reference interpreter, compared output by output (ADR 0008)."""

from nd4jlike.verify.inputs import read_input
from nd4jlike.verify.kernels import KernelLayer
from nd4jlike.verify.model import ROUNDING_CHOICES, verify
from nd4jlike.verify.reports import LayerReport, Mismatch, ModelReport
from nd4jlike.verify.timing import TIMING

__all__ = ["ROUNDING_CHOICES", "TIMING", "KernelLayer", "LayerReport", "Mismatch", "ModelReport", "read_input", "verify"]
