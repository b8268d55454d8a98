from typing import Literal, NamedTuple

import numpy.typing as npt

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.ndarray import NdArray

__all__ = ["DepthwiseGradients", "depthwise_conv2d_backward"]

_Pair = int | tuple[int, int]
_Padding = Literal["same", "valid"] | int | tuple[int, int] | tuple[tuple[int, int], tuple[int, int]]
_Name = Literal["input", "weights", "bias"]
_Array = NdArray | npt.ArrayLike

class DepthwiseGradients(NamedTuple):
    input: NdArray | None
    weights: NdArray | None
    bias: NdArray | None

def depthwise_conv2d_backward(
    grad: _Array,
    x: _Array | ShapeDescriptor,
    weights: _Array,
    *,
    stride: _Pair = 1,
    dilation: _Pair = 1,
    padding: _Padding = "same",
    data_format: Literal["NHWC", "NCHW"] = "NHWC",
    weights_format: Literal["HWCM", "MCHW", "MHWC", "C1HW"] = "HWCM",
    needs: _Name | tuple[_Name, ...] = ("input", "weights", "bias"),
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    threads: int = 1,
    isa: str | None = None,
) -> DepthwiseGradients: ...
