"""Arrays whose memory layout you can see, choose, check and hand to anyone."""

from nd4jlike.backward import DepthwiseGradients, depthwise_conv2d_backward
from nd4jlike.buffer import Buffer
from nd4jlike.creation import arange, array, asarray, create, empty, empty_like, from_dlpack, full, full_like, ones, ones_like, zeros, zeros_like
from nd4jlike.depthwise import DepthwiseConv2d, depthwise_conv2d
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import bfloat16
from nd4jlike.errors import (
    DTypeError,
    IsaError,
    LayoutError,
    MissingLibraryError,
    Nd4jLikeError,
    OutOfRangeError,
    ShapeStatus,
    UnsupportedLayoutError,
)
from nd4jlike.ndarray import NdArray
from nd4jlike.padding import PaddingReport
from nd4jlike.quantization import Quantization
from nd4jlike.reorder import reorder

__version__ = "0.1.0"

__all__ = [
    "ShapeDescriptor",
    "ShapeStatus",
    "NdArray",
    "Buffer",
    "PaddingReport",
    "create",
    "empty",
    "zeros",
    "ones",
    "full",
    "arange",
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "array",
    "asarray",
    "from_dlpack",
    "reorder",
    "DepthwiseConv2d",
    "depthwise_conv2d",
    "depthwise_conv2d_backward",
    "DepthwiseGradients",
    "Quantization",
    "bfloat16",
    "Nd4jLikeError",
    "LayoutError",
    "UnsupportedLayoutError",
    "OutOfRangeError",
    "DTypeError",
    "IsaError",
    "MissingLibraryError",
]
