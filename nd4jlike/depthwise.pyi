from typing import Any, Literal, TypeVar, final, overload

import numpy as np
import numpy.typing as npt

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.ndarray import NdArray
from nd4jlike.quantization import Quantization

__all__ = ["DepthwiseConv2d", "depthwise_conv2d"]

_Out = TypeVar("_Out")
_Pair = int | tuple[int, int]
_Padding = Literal["same", "valid"] | int | tuple[int, int] | tuple[tuple[int, int], tuple[int, int]]
_DataFormat = Literal["NHWC", "NCHW"]
_WeightsFormat = Literal["HWCM", "MCHW", "MHWC", "C1HW"]
_Activation = Literal["relu", "relu6", "relu_n1_to_1"] | None
_Rounding = Literal["tflite", "xnnpack"]
_Algorithm = Literal["direct", "winograd"]

@final
class DepthwiseConv2d:
    def __new__(
        cls,
        weights: NdArray | npt.ArrayLike,
        bias: NdArray | npt.ArrayLike | None = None,
        *,
        stride: _Pair = 1,
        dilation: _Pair = 1,
        padding: _Padding = "same",
        data_format: _DataFormat = "NHWC",
        weights_format: _WeightsFormat = "HWCM",
        activation: _Activation = None,
        quantization: Quantization | None = None,
        rounding: _Rounding = "tflite",
        threads: int = 1,
        isa: str | None = None,
        dtype: npt.DTypeLike | None = None,
        algorithm: _Algorithm = "direct",
    ) -> DepthwiseConv2d: ...
    @overload
    def __call__(self, x: NdArray | npt.ArrayLike, out: None = None) -> NdArray: ...
    @overload
    def __call__(self, x: NdArray | npt.ArrayLike, out: _Out) -> _Out: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def output_dtype(self) -> np.dtype[Any]: ...
    @property
    def isa(self) -> str: ...
    @property
    def data_format(self) -> str: ...
    @property
    def stride(self) -> tuple[int, int]: ...
    @property
    def dilation(self) -> tuple[int, int]: ...
    @property
    def padding(self) -> Literal["same"] | tuple[tuple[int, int], tuple[int, int]]: ...
    @property
    def activation(self) -> _Activation: ...
    @property
    def quantization(self) -> Quantization | None: ...
    @property
    def rounding(self) -> _Rounding: ...
    @property
    def algorithm(self) -> _Algorithm: ...
    @property
    def threads(self) -> int: ...
    def input_descriptor(self, shape: tuple[int, int, int, int]) -> ShapeDescriptor: ...
    def output_descriptor(
        self,
        x_or_descriptor: NdArray | ShapeDescriptor | npt.ArrayLike,
        paddings: tuple[int, ...] | None = None,
        padding_offsets: tuple[int, ...] | None = None,
    ) -> ShapeDescriptor: ...
    def explain(self, x_or_descriptor: NdArray | ShapeDescriptor | npt.ArrayLike | None = None) -> str: ...

@overload
def depthwise_conv2d(
    x: NdArray | npt.ArrayLike,
    weights: NdArray | npt.ArrayLike,
    bias: NdArray | npt.ArrayLike | None = None,
    *,
    stride: _Pair = 1,
    dilation: _Pair = 1,
    padding: _Padding = "same",
    data_format: _DataFormat = "NHWC",
    weights_format: _WeightsFormat = "HWCM",
    activation: _Activation = None,
    quantization: Quantization | None = None,
    rounding: _Rounding = "tflite",
    out: None = None,
    threads: int = 1,
    isa: str | None = None,
    dtype: npt.DTypeLike | None = None,
    algorithm: _Algorithm = "direct",
) -> NdArray: ...
@overload
def depthwise_conv2d(
    x: NdArray | npt.ArrayLike,
    weights: NdArray | npt.ArrayLike,
    bias: NdArray | npt.ArrayLike | None = None,
    *,
    stride: _Pair = 1,
    dilation: _Pair = 1,
    padding: _Padding = "same",
    data_format: _DataFormat = "NHWC",
    weights_format: _WeightsFormat = "HWCM",
    activation: _Activation = None,
    quantization: Quantization | None = None,
    rounding: _Rounding = "tflite",
    out: _Out,
    threads: int = 1,
    isa: str | None = None,
    dtype: npt.DTypeLike | None = None,
    algorithm: _Algorithm = "direct",
) -> _Out: ...
