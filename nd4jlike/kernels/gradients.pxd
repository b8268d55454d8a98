# Gradients of a depthwise convolution as numbers and pointers: all that their kernels know (ADR 0004, 0018).

from nd4jlike.kernels.problem cimport Problem


# Exported by every _gradients_<isa> module as a capsule named KERNEL_TABLE. A problem is that of the convolution itself: its y is the gradient of the
# result. Channels lie side by side in both; padding and packed weights of the problem are not read.
cdef struct GradientTable:
    const char *isa
    # Vectors of output channels, the second of which may begin after `lead` of them: what threads share.
    Py_ssize_t (*blocks)(const Problem *problem) noexcept nogil
    # Bytes of scratch for `count` blocks. Alignment 64.
    Py_ssize_t (*scratch_bytes)(const Problem *problem, Py_ssize_t count) noexcept nogil
    # Gradients by weights, dense [kernel_height][kernel_width][channels*multiplier], and by bias, for the channels of blocks begin to end; bias may be
    # NULL.
    void (*sum)(
        const Problem *problem, const float *x, const float *grad, float *weights, float *bias, void *scratch, Py_ssize_t begin, Py_ssize_t end,
    ) noexcept nogil
    # A row of pixels `step` apart: target[i*pitch] = sum of the next `group` numbers of the source, `count` times for each pixel.
    void (*sum_groups)(
        const float *source, float *target, Py_ssize_t pixels, Py_ssize_t step, Py_ssize_t count, Py_ssize_t pitch, Py_ssize_t group,
    ) noexcept nogil
