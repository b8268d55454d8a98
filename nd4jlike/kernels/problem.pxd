# One depthwise convolution as numbers and pointers: all that a kernel knows (ADR 0004).
#
# Counts and strides are in elements. Four-axis fields are in the order batch, height, width, channel,
# whatever the order in memory is. Output channel of input channel c and multiplier index m: c*multiplier + m.

cdef extern from "elements.h":
    enum:
        FLOAT32
        FLOAT64
        FLOAT16
        BFLOAT16
        INT8
        UINT8
        INT16
        ELEMENTS


# Of integers: the result has the element type of the input, is the sums as they are (32 bits, 64 of int16), or float32.
cdef enum:
    QUANTIZED
    SUMS
    REALS


# Of float32: products of weights as they are, or of their transforms, fewer, where a kernel has those (ADR 0019).
cdef enum:
    DIRECT
    WINOGRAD


# Where inputs and outputs of a call lie, if those of one call stay for the next: in the first two caches, beyond them, at the edge of the last one, in memory.
cdef enum:
    IN_CACHE
    BEYOND_SECOND_LEVEL
    CACHE_EDGE
    IN_MEMORY


cdef struct Problem:
    # Of the input, and of the output where the result is QUANTIZED.
    int element
    int result
    Py_ssize_t batch, height, width, channels, multiplier
    Py_ssize_t out_height, out_width
    Py_ssize_t kernel_height, kernel_width
    Py_ssize_t stride_height, stride_width
    Py_ssize_t dilation_height, dilation_width
    # Implied rows above and columns left of the image, or, below 0, where the first window begins in it; what lies below and right follows from the output
    # extents.
    Py_ssize_t pad_top, pad_left

    # Any sign, any size: a unit channel stride is the fast case, not a condition.
    Py_ssize_t x_strides[4]
    Py_ssize_t y_strides[4]
    # Channels in blocks: that many side by side, and elements from one block to the next; the channel stride is 1 then. 0: no blocks.
    Py_ssize_t x_block, x_block_step, y_block, y_block_step

    # Cells around every image (top, bottom, left, right) that may be read in place and hold the padding value:
    # 0, or the input zero point. 0 cells: nothing outside the image may be read.
    Py_ssize_t halo[4]
    # Cells after the last input channel of every pixel, the halo's too, that may be read (their values never reach an output).
    Py_ssize_t channel_room
    # Channels before the first vector of whole ones in memory, for kernels that begin there; 0: vectors begin with the first channel.
    Py_ssize_t lead
    # Whether those of `x` and those of `out` do so after as many channels.
    bint agrees
    # DIRECT or WINOGRAD.
    int algorithm
    # Threads whose calls, of disjoint ranges of rows, make up all of them, so that each may compute another part of an image that is as large; 0: one thread,
    # or others' rows.
    int shared

    # IN_CACHE to IN_MEMORY. Decides on the order of work, not on results.
    int distance
    # Where that is in memory, shorter pixels are not fetched ahead, bytes: prefetchers follow them.
    Py_ssize_t fetched_pixel

    # Sets of the first-level cache into which one channel of all pixels of x falls, where pixels that share them crowd each other out; 0: they do not. Whether
    # they do in more than 8 ways (Zen 5). As little as `distance`.
    int sets
    bint roomy
    # Whether half a vector of 64 bytes takes half of its time, and what a second-level cache lacks is better fetched ahead by hand (Zen 4). As little as
    # `distance`.
    bint halving

    # Written by Family.pack.
    const void *packed

    # Clamp of the fused activation: on the float result, or on the quantized one (zero point added).
    float float_min, float_max
    # uint8 numbers are less by 128 here: zero points and clamp are those of the int8 whose bits differ in the first one.
    int quantized_min, quantized_max
    int input_zero_point, output_zero_point
    # 0: TensorFlow Lite's double rounding, 1: XNNPACK's float scale (ADR 0006).
    int rounding
    # Of integers without zero point: w or -w - 1, the largest of all. 127 and less fit int8.
    int widest_weight


# Per output channel; all NULL for float kernels. `multipliers` and `shifts` (positive: left) are TensorFlow Lite's
# fixed-point form of input_scale * weight_scale / output_scale, `scales` is its float32 form. Multipliers are 0 or more,
# shifts -31 to 31; what the rounding does not use may be NULL.
cdef struct Requantization:
    const int *multipliers
    const int *shifts
    const float *scales


# Whose vectors a kernel would have begin where whole ones do in memory.
cdef enum:
    ALIGNS_NONE
    ALIGNS_INPUT
    ALIGNS_OUTPUT
    # Added to these: what Problem.agrees tells makes a difference.
    ALIGNS_BOTH = 4
    # Added to them: by the address of `out` only where both say the same, by that of `x` as if both did.
    ALIGNS_ALIKE = 8
    # Added to them: only where both say the same.
    ALIGNS_SAME = 16


# What one instruction set offers for one element type, that of input and output.
cdef struct Family:
    # Channels in one vector step; buffers whose channel room covers a multiple of it need no tail code.
    Py_ssize_t lanes
    # Bytes of the packed weights, bias and requantization constants; alignment 64. 0: nothing here computes this problem.
    Py_ssize_t (*packed_bytes)(const Problem *problem) noexcept nogil
    # The format may depend on everything but addresses, batch and halo: one packing serves one launch.
    # weights: dense [kernel_height][kernel_width][channels*multiplier]; bias: [channels*multiplier] or NULL.
    # Weights are float32 for float16 and bfloat16, int16 for integers, -255 to 255, their zero point subtracted; else of the element type.
    # The bias is int32 for int8 and uint8, int64 for int16, float32 for float16 and bfloat16; else of the element type.
    void (*pack)(const Problem *problem, const void *weights, const void *bias, const Requantization *requantization, void *packed) noexcept nogil
    # Bytes of scratch one call of run needs; 0 when it reads and writes in place. Alignment 64.
    Py_ssize_t (*scratch_bytes)(const Problem *problem) noexcept nogil
    # What runs, for people; and whether it reads cells around the image where Problem.halo allows it.
    const char *(*kernel)(const Problem *problem) noexcept nogil
    bint (*reads_halo)(const Problem *problem) noexcept nogil
    # Whether channels lie apart that are computed faster, or only, side by side: they are brought to scratch then, and given as another problem.
    bint (*as_pixels)(const Problem *problem) noexcept nogil
    # Whose addresses decide on Problem.lead; NULL: nobody's.
    int (*aligns)(const Problem *problem) noexcept nogil
    # Computes output rows [begin, end) of batch*out_height, or what stands for them (Problem.shared); disjoint ranges may run at the same time, each with
    # its own scratch.
    void (*run)(const Problem *problem, const void *x, void *y, void *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil


# Exported by every _depthwise_<isa> module as a capsule named KERNEL_TABLE.
cdef struct KernelTable:
    const char *isa
    # By element type.
    Family families[ELEMENTS]
