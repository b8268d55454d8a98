"""oneDNN: its memory descriptors as a translation of ours, and the library itself on our memory (ADR 0013).

`MemoryDesc` needs no library; everything else finds libdnnl at first use (extra ``onednn``).
"""

from nd4jlike.adapters.onednn.convolution import DepthwiseConv2d, depthwise_conv2d
from nd4jlike.adapters.onednn.engine import Engine
from nd4jlike.adapters.onednn.libdnnl import OneDnnError, find_library
from nd4jlike.adapters.onednn.memory import Memory, reorder
from nd4jlike.adapters.onednn.memory_desc import MemoryDesc

__all__ = ["DepthwiseConv2d", "Engine", "Memory", "MemoryDesc", "OneDnnError", "depthwise_conv2d", "find_library", "reorder"]
