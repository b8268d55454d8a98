# The depthwise kernels: one text, compiled once for each instruction set (ADR 0004).
from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, NAN, ceil, floor
from libc.string cimport memcpy, memmove, memset

from nd4jlike.kernels.problem cimport (
    ALIGNS_ALIKE, ALIGNS_BOTH, ALIGNS_INPUT, ALIGNS_NONE, ALIGNS_OUTPUT, ALIGNS_SAME, BEYOND_SECOND_LEVEL, BFLOAT16, CACHE_EDGE, DIRECT, FLOAT16, FLOAT32,
    FLOAT64, IN_CACHE, IN_MEMORY, INT8, INT16, QUANTIZED, REALS, SUMS, UINT8, WINOGRAD, Family, KernelTable, Problem, Requantization)

include "simd.pxi"
include "bytes.pxi"
include "depthwise_tile.pxi"
include "depthwise_band.pxi"
include "depthwise_fit.pxi"
include "depthwise_quads.pxi"
include "depthwise_cells.pxi"
include "depthwise_pairs.pxi"
include "depthwise_pairs_weights.pxi"
include "depthwise_pairs_walk.pxi"
include "depthwise_lines.pxi"
include "depthwise_spread.pxi"
include "depthwise_gather.pxi"
include "depthwise_float.pxi"
include "depthwise_aligned.pxi"
include "depthwise_rows.pxi"
include "depthwise_walks.pxi"
include "depthwise_pieces.pxi"
include "depthwise_stacks.pxi"
include "depthwise_planes.pxi"
include "depthwise_shares.pxi"
include "depthwise_repeated.pxi"
include "depthwise_staged.pxi"
include "depthwise_sections.pxi"
include "depthwise_as_pixels.pxi"
include "depthwise_driver.pxi"
