"""Gradients of a depthwise convolution: by its input, its weights and its bias (ADR 0018)."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from nd4jlike.buffer cimport Buffer, allocate
from nd4jlike.descriptor cimport ShapeDescriptor
from nd4jlike.kernels.gradients cimport GradientTable
from nd4jlike.kernels.problem cimport FLOAT32, Family, KernelTable, Problem, Requantization
from nd4jlike.ndarray cimport NdArray, as_ndarray, as_output, unwritten
from nd4jlike.workers cimport MAX_PARTS, share_work

from collections import namedtuple

import numpy as np

from nd4jlike import geometry
from nd4jlike.descriptor import ShapeDescriptor as DescriptorType
from nd4jlike.errors import DTypeError, LayoutError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.kernels import dispatch
from nd4jlike.reorder import reorder

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)

__all__ = ["DepthwiseGradients", "depthwise_conv2d_backward"]

cdef enum:
    ALIGNMENT = 64  # one cache line, and the widest vector a kernel loads
    # Multiply-adds that are worth another thread.
    WORK_PER_THREAD = 1 << 20
    # What all phases read and write before the next rows: it stays in a second-level cache.
    BAND_BYTES = 256 << 10
    CELL = 4
    CACHED = 64

cdef object SINGLE = np.dtype("float32")
cdef tuple NAMES = ("input", "weights", "bias")

# Cython looks methods of a cimported class up in its .pxd, which has only the compiled ones.
cdef object from_tag = DescriptorType.from_tag

DepthwiseGradients = namedtuple("DepthwiseGradients", NAMES, module=__name__)
DepthwiseGradients.__doc__ = """What `depthwise_conv2d_backward` computes; None in place of what was not asked for.

Attributes
----------
input : NdArray or None
    Gradient by the input, in its shape.
weights : NdArray or None
    Gradient by the weights, in their shape and format.
bias : NdArray or None
    Gradient by the bias, a number for each output channel.

Examples
--------
>>> import nd4jlike as nd
>>> nd.DepthwiseGradients._fields
('input', 'weights', 'bias')
"""


# Pixels row, row + step, .. of the result get their gradients from the same taps: a convolution of their own, with a stride of 1.
cdef struct Phase:
    Problem problem
    # Elements from the first pixel of gradient and result to those of the phase; between its rows and columns in the result.
    Py_ssize_t x_offset, y_offset, row, column


# The gradient by the input.
cdef struct ByInput:
    Phase *phases
    int count
    const Family *family
    const GradientTable *table
    const char *grad
    char *result
    # Of the result; strides by batch, height, width, channel.
    Py_ssize_t batch, height, width, channels, multiplier
    Py_ssize_t strides[4]
    # Rows from one of a phase to the next, and how many such steps there are.
    Py_ssize_t step, steps
    # Whether some pixels are in no phase.
    bint blank
    # Steps that all phases take before the next ones.
    Py_ssize_t band
    # Scratch of a thread: output channels before they are summed, and what the convolution asks for.
    char *scratch
    Py_ssize_t sum_bytes, scratch_bytes


cdef void clear(const ByInput *job, float *pixel) noexcept nogil:
    """A row of zeros."""
    cdef Py_ssize_t channel
    for _ in range(job.width):
        if job.strides[3] == 1:
            memset(pixel, 0, job.channels * CELL)
        else:
            for channel in range(job.channels):
                pixel[channel * job.strides[3]] = 0
        pixel += job.strides[2]


cdef void run_band(const ByInput *job, char *scratch, Py_ssize_t image, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Steps first to last of an image."""
    cdef const Phase *phase
    cdef const Problem *problem
    cdef const char *x
    cdef char *y
    cdef Py_ssize_t i, row, rows, line, base
    if job.blank:
        for row in range(first * job.step, min(job.height, last * job.step)):
            clear(job, <float *> job.result + image * job.strides[0] + row * job.strides[1])
    for i in range(job.count):
        phase = &job.phases[i]
        problem = &phase.problem
        rows = min(last, problem.out_height)
        if first >= rows:
            continue
        base = image * problem.out_height
        x = job.grad + phase.x_offset * CELL
        y = job.result + phase.y_offset * CELL
        if job.multiplier == 1:
            job.family.run(problem, x, y, scratch, base + first, base + rows)
            continue
        line = problem.y_strides[1]
        job.family.run(problem, x, scratch - first * line * CELL, scratch + job.sum_bytes, base + first, base + rows)
        for row in range(first, rows):
            job.table.sum_groups(
                <const float *> scratch + (row - first) * line, <float *> y + image * job.strides[0] + row * phase.row, problem.out_width,
                phase.column, job.channels, job.strides[3], job.multiplier,
            )


cdef void run_steps(const void *context, Py_ssize_t begin, Py_ssize_t end, int place) noexcept nogil:
    """Steps begin to end, counted through all images."""
    cdef const ByInput *job = <const ByInput *> context
    cdef Py_ssize_t image, first, last
    while begin < end:
        image, first = begin // job.steps, begin % job.steps
        last = min(min(job.steps, first + job.band), first + end - begin)
        run_band(job, job.scratch + place * (job.sum_bytes + job.scratch_bytes), image, first, last)
        begin += last - first


# The gradients by weights and bias.
cdef struct Sums:
    Problem problem
    const GradientTable *table
    const float *x
    const float *grad
    float *weights
    float *bias
    char *scratch
    # Of a thread.
    Py_ssize_t scratch_bytes


cdef void run_blocks(const void *context, Py_ssize_t begin, Py_ssize_t end, int place) noexcept nogil:
    """Channels of blocks begin to end."""
    cdef const Sums *job = <const Sums *> context
    job.table.sum(&job.problem, job.x, job.grad, job.weights, job.bias, job.scratch + place * job.scratch_bytes, begin, end)


cdef int parts_of(Py_ssize_t threads, Py_ssize_t count, Py_ssize_t work) noexcept:
    """Among how many threads to share."""
    return <int> max(1, min(min(threads, MAX_PARTS), min(count, work // WORK_PER_THREAD)))


def depthwise_conv2d_backward(grad not None, x not None, weights not None, *, stride=1, dilation=1, padding="same", data_format="NHWC",
                              weights_format="HWCM", needs=NAMES, out=None, threads=1, isa=None):
    """Differentiate a depthwise convolution by its input, its weights and its bias.

    Parameters
    ----------
    grad : NdArray or array_like
        Gradient by the result of the convolution, before its activation: (N, OH, OW, C*M) or (N, C*M, OH, OW), as `data_format` says; float32, any
        layout but a blocked one. Behind a fused ``"relu"`` whose result is y, that is ``grad * (y > 0)``.
    x : NdArray, array_like or ShapeDescriptor
        What was convolved. Where `needs` has no ``"weights"`` its descriptor is enough.
    weights : array_like
        What it was convolved with.
    stride, dilation, padding, data_format, weights_format, isa
        Those of the convolution: see `DepthwiseConv2d`.
    needs : str or tuple of str
        What to compute: any of ``"input"``, ``"weights"`` and ``"bias"``.
    out : tuple of three, optional
        For each of input, weights and bias an NdArray or writable buffer that receives the gradient, or None for a new array. None may overlap another,
        `grad` or `x`; padding of the one for the input stays as it is.
    threads : int
        How many threads may share the work. The result has the same bits for any number.

    Returns
    -------
    DepthwiseGradients
        A named tuple of input (in the shape of `x`, dense in its memory order), weights (in the shape and format of `weights`) and bias, of shape
        (C*M,); None for what is not in `needs`.

    Raises
    ------
    LayoutError
        For shapes and arguments that break a rule; the message has the rule and the values.
    DTypeError
        For element types other than float32.
    UnsupportedLayoutError
        For blocked layouts.
    IsaError
        For an instruction set that this machine or build does not have.

    See Also
    --------
    depthwise_conv2d : the convolution.

    Notes
    -----
    The gradient by the input is a convolution of `grad` with the filter turned by 180 degrees, one for each pixel of a stride. Those by weights and bias
    read `grad` and `x` in place where their channels lie side by side, and copies of them in that order where not. Scratch for a thread is at most
    12 * (kH * kW + 1) bytes for a channel (rounded up to vectors), or 256 KiB and a row of the result (ADR 0018).

    Examples
    --------
    >>> import numpy as np, nd4jlike as nd
    >>> x = np.arange(9, dtype="float32").reshape(1, 3, 3, 1)
    >>> weights = np.array([1, 2, 3, 4], "float32").reshape(2, 2, 1, 1)
    >>> grads = nd.depthwise_conv2d_backward(np.ones((1, 2, 2, 1), "float32"), x, weights, padding="valid")
    >>> grads.input.to_numpy()[0, :, :, 0]
    array([[ 1.,  3.,  2.],
           [ 4., 10.,  6.],
           [ 3.,  7.,  4.]], dtype=float32)
    >>> grads.weights.to_numpy()[:, :, 0, 0]
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    >>> grads.bias.to_numpy()
    array([4.], dtype=float32)
    """
    cdef NdArray source = as_ndarray(grad)
    cdef NdArray image = None if isinstance(x, ShapeDescriptor) else as_ndarray(x)
    cdef ShapeDescriptor layout = x if image is None else image.descriptor
    cdef NdArray by_input, by_weights, by_bias
    cdef NdArray sums_weights, sums_bias
    axes = geometry.AXES[geometry.choice("data_format", data_format, tuple(geometry.AXES))]
    geometry.choice("weights_format", weights_format, tuple(geometry.WEIGHT_AXES))
    threads = geometry.integer("threads", threads, 1)
    needs = names_of(needs)
    if image is None and "weights" in needs:
        raise LayoutError(f"the gradient by the weights needs the elements of x: a ShapeDescriptor, needs={needs}")
    check_plain("grad", source.descriptor, 4)
    check_plain("x", layout, 4)
    weights = as_weights(weights)
    filters = filters_that_fit(geometry.weight_readings(weights, weights_format), layout.shape[axes[3]], source.shape[axes[3]])
    walk = walk_of((
        filters.shape[:2], geometry.pair("stride", stride, 1), geometry.pair("dilation", dilation, 1), geometry.sides(padding),
        (layout.shape[axes[1]], layout.shape[axes[2]]),
    ))
    figures = dict(zip(axes, (layout.shape[axes[0]], *walk.out, filters.shape[2])))
    expected = tuple([figures[axis] for axis in range(4)])
    if source.shape != expected:
        raise LayoutError(f"grad must have the shape of the result, {expected} for x of shape {layout.shape}: {source.shape}")
    shapes = (layout.shape, weights.shape, (filters.shape[2],))
    by_input, by_weights, by_bias = outputs(out, needs, shapes, [("grad", source)] if image is None else [("grad", source), ("x", image)])
    families = tables(isa)
    if by_weights is None and "weights" in needs:
        by_weights = unwritten(DescriptorType(SINGLE, "c", shapes[1]))
    if by_bias is None and "bias" in needs:
        by_bias = unwritten(DescriptorType(SINGLE, "c", shapes[2]))
    if by_input is None and "input" in needs:
        by_input = unwritten(dense_in_order(layout))

    if "weights" in needs or "bias" in needs:
        in_place = by_weights is not None and weights_format == "HWCM" and np.asarray(by_weights).flags.c_contiguous
        sums_weights = by_weights if in_place else unwritten(DescriptorType(SINGLE, "c", filters.shape if "weights" in needs else shapes[2]))
        sums_bias = by_bias if by_bias is None or np.asarray(by_bias).flags.c_contiguous else unwritten(DescriptorType(SINGLE, "c", shapes[2]))
        if "weights" in needs:
            sum_products(source, image, axes, filters.shape, walk, families, sums_weights, sums_bias, threads)
        else:  # those of a filter of one tap on the gradient itself
            one = walk_of(((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), walk.out))
            sum_products(source, source, axes, (1, 1, filters.shape[2]), one, families, sums_weights, sums_bias, threads)
        if "weights" in needs and not in_place:
            by_weights[...] = in_format(np.asarray(sums_weights), weights.shape, weights_format)
        if sums_bias is not by_bias:
            by_bias[...] = sums_bias
    if "input" in needs and layout.layout.length:
        convolve_back(source, by_input, axes, filters, walk, families, threads)
    return DepthwiseGradients(*[
        array if out is None or out[i] is None else out[i] for i, array in enumerate((by_input, by_weights, by_bias))
    ])


# How a window walks, and where it comes back from, and descriptors of results: what is needed again and again, oldest first.
cdef dict walks = {}
cdef dict results = {}
cdef dict loaded = {}
_BackwardWalk = namedtuple("_BackwardWalk", ("out", "before", "stride", "dilation", "down", "across"))


cdef object walk_of(tuple key):
    """Walk and phases of (kernel, stride, dilation, sides, size)."""
    found = walks.get(key)
    if found is None:
        window = geometry.Window(*key[:4])
        walk = window.over(key[4])
        found = _BackwardWalk(walk.out, walk.before, window.stride, window.dilation, window.phases(0, key[4][0], walk), window.phases(1, key[4][1], walk))
        keep(walks, key, found)
    return found


cdef ShapeDescriptor dense_in_order(ShapeDescriptor x):
    """The dense layout of the shape and memory order of `x`."""
    found = results.get(x)
    if found is None:
        found = from_tag(x.shape, letters(x.axes), SINGLE)
        keep(results, x, found)
    return found


cdef int keep(dict cache, object key, object value) except -1:
    """Put it in, the oldest out."""
    if len(cache) >= CACHED:
        cache.pop(next(iter(cache)), None)
    cache[key] = value
    return 0


cdef tuple tables(object isa):
    """The kernels' tables of an instruction set: of convolutions, of gradients."""
    name = dispatch.chosen() if isa is None else isa
    found = loaded.get(name) if isinstance(name, str) else None
    if found is None:
        # A build may leave float32 to that of the next slower instruction set.
        for level in dispatch.downwards(name):
            convolutions = dispatch.load("depthwise", level)
            if (<const KernelTable *> PyCapsule_GetPointer(convolutions, "nd4jlike.kernels.KernelTable")).families[FLOAT32].run != NULL:
                break
        found = loaded[name] = convolutions, dispatch.load("gradients", name)
    return found


cdef int convolve_back(NdArray grad, NdArray result, tuple axes, object filters, object walk, tuple families, Py_ssize_t threads) except -1:
    """The gradient by the input."""
    cdef ByInput job
    cdef const KernelTable *depthwise = <const KernelTable *> PyCapsule_GetPointer(families[0], "nd4jlike.kernels.KernelTable")
    cdef Requantization none
    cdef Problem *problem
    cdef Buffer memory, taps, packed
    cdef list keeps = []
    cdef Py_ssize_t count = grad.descriptor.shape[axes[3]], steps_across = walk.stride[1], row, i, axis, widest = 0
    cdef int parts
    memset(&job, 0, sizeof(ByInput))
    none.multipliers, none.shifts, none.scales = NULL, NULL, NULL
    job.family = &depthwise.families[FLOAT32]
    job.table = <const GradientTable *> PyCapsule_GetPointer(families[1], "nd4jlike.kernels.GradientTable")
    job.grad, job.result = grad.data(), result.data()
    job.batch, job.height, job.width, job.channels = [result.descriptor.shape[axis] for axis in axes]
    job.multiplier = count // job.channels
    for i, axis in enumerate(axes):
        job.strides[i] = result.descriptor.layout.strides[axis]
    job.step = walk.stride[0]
    job.steps = (job.height + job.step - 1) // job.step
    job.blank = len(walk.down) * len(walk.across) < min(job.step, job.height) * min(steps_across, job.width)
    memory = allocate(max(1, len(walk.down) * len(walk.across)) * <Py_ssize_t> sizeof(Phase), 0, ALIGNMENT, True)
    job.phases = <Phase *> memory.data
    taps = allocate(filters.nbytes, 0, ALIGNMENT, False)

    for down in walk.down:
        for across in walk.across:
            problem = &job.phases[job.count].problem
            problem.element = FLOAT32
            problem.batch, problem.channels, problem.multiplier = job.batch, count, 1
            problem.height, problem.width = down.extent, across.extent
            problem.out_height, problem.out_width = down.pixels, across.pixels
            problem.kernel_height, problem.kernel_width = turned(filters, down.taps, across.taps, <float *> taps.data)
            problem.stride_height = problem.stride_width = 1
            problem.dilation_height, problem.dilation_width = down.dilation, across.dilation
            problem.pad_top, problem.pad_left = down.pad, across.pad
            problem.float_min, problem.float_max = -INFINITY, INFINITY
            for i, axis in enumerate(axes):
                problem.x_strides[i] = grad.descriptor.layout.strides[axis]
            job.phases[job.count].x_offset = down.skip * problem.x_strides[1] + across.skip * problem.x_strides[2]
            job.phases[job.count].y_offset = down.first * job.strides[1] + across.first * job.strides[2]
            job.phases[job.count].row, job.phases[job.count].column = job.strides[1] * job.step, job.strides[2] * steps_across
            problem.y_strides[0], problem.y_strides[3] = job.strides[0], job.strides[3]
            problem.y_strides[1], problem.y_strides[2] = job.phases[job.count].row, job.phases[job.count].column
            if job.multiplier > 1:
                problem.y_strides[0], problem.y_strides[1], problem.y_strides[2], problem.y_strides[3] = 0, problem.out_width * count, count, 1
                widest = max(widest, problem.out_width * count)
            packed = allocate(job.family.packed_bytes(problem), 0, ALIGNMENT, True)
            keeps.append(packed)
            job.family.pack(problem, taps.data, NULL, &none, packed.data)
            problem.packed = packed.data
            job.scratch_bytes = max(job.scratch_bytes, job.family.scratch_bytes(problem))
            job.count += 1

    job.band = job.steps
    if job.count > 1 or job.blank or job.multiplier > 1:
        row = (grad.descriptor.shape[axes[2]] * count + job.step * job.width * job.channels + widest) * CELL
        job.band = max(1, BAND_BYTES // row // 2 * 2)  # rows are walked in pairs
    job.band = min(job.band, job.steps)
    job.sum_bytes = (job.band * widest * CELL + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    job.scratch_bytes = (job.scratch_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    parts = parts_of(threads, job.batch * job.steps, grad.descriptor.layout.length * filters.shape[0] * filters.shape[1])
    job.scratch = allocate_scratch((job.sum_bytes + job.scratch_bytes) * parts)

    with nogil:
        share_work(run_steps, &job, job.batch * job.steps, 2, parts)

    free(job.scratch)
    return 0


cdef tuple turned(const float[:, :, ::1] filters, object rows, object columns, float *target):
    """Taps in slices of the filter's rows and columns, turned by 180 degrees, one after the other; returns how many rows and columns they are."""
    cdef Py_ssize_t first_row = rows.start, row_step = rows.step, first_column = columns.start, column_step = columns.step
    cdef Py_ssize_t height = (filters.shape[0] - first_row + row_step - 1) // row_step
    cdef Py_ssize_t width = (filters.shape[1] - first_column + column_step - 1) // column_step
    cdef Py_ssize_t row, column, channels = filters.shape[2]
    for row in range(height):
        for column in range(width):
            memcpy(
                target + ((height - 1 - row) * width + width - 1 - column) * channels,
                &filters[first_row + row * row_step, first_column + column * column_step, 0], channels * CELL,
            )
    return height, width


cdef int sum_products(NdArray grad, NdArray x, tuple axes, tuple filters, object walk, tuple families, NdArray weights, NdArray bias,
                      Py_ssize_t threads) except -1:
    """The gradients by weights and bias, of filters of shape (kH, kW, C*M), dense in this order."""
    cdef Sums job
    cdef Problem *problem = &job.problem
    cdef Py_ssize_t i, axis, blocks, share
    cdef int parts
    memset(&job, 0, sizeof(Sums))
    grad, x = channels_last(grad, axes), channels_last(x, axes)
    job.table = <const GradientTable *> PyCapsule_GetPointer(families[1], "nd4jlike.kernels.GradientTable")
    job.x, job.grad, job.weights = <const float *> x.data(), <const float *> grad.data(), <float *> weights.data()
    job.bias = NULL if bias is None else <float *> bias.data()
    for i, axis in enumerate(axes):
        problem.x_strides[i], problem.y_strides[i] = x.descriptor.layout.strides[axis], grad.descriptor.layout.strides[axis]
    problem.batch, problem.height, problem.width, problem.channels = [x.descriptor.shape[axis] for axis in axes]
    problem.multiplier = filters[2] // problem.channels
    problem.out_height, problem.out_width = walk.out
    problem.kernel_height, problem.kernel_width = filters[:2]
    problem.stride_height, problem.stride_width = walk.stride
    problem.dilation_height, problem.dilation_width = walk.dilation
    problem.pad_top, problem.pad_left = walk.before
    blocks = job.table.blocks(problem)
    parts = parts_of(threads, blocks, grad.descriptor.layout.length * problem.kernel_height * problem.kernel_width)
    share = (blocks + parts - 1) // parts
    job.scratch_bytes = job.table.scratch_bytes(problem, share)
    job.scratch = allocate_scratch(job.scratch_bytes * parts)

    with nogil:
        share_work(run_blocks, &job, blocks, share, parts)  # each part reads all pixels: it is done in one go

    free(job.scratch)
    return 0


cdef char *allocate_scratch(Py_ssize_t nbytes) except? NULL:
    cdef void *scratch = NULL
    if nbytes and posix_memalign(&scratch, ALIGNMENT, nbytes):
        raise MemoryError(f"cannot allocate {nbytes} bytes of scratch")
    return <char *> scratch


cdef NdArray channels_last(NdArray x, tuple axes):
    """`x` where its channels lie side by side, else a copy in that order."""
    cdef Py_ssize_t channel = axes[3]
    if x.descriptor.layout.strides[channel] == 1 or x.descriptor.layout.shape[channel] == 1:
        return x
    return reorder(x, letters(axes))


cdef str letters(tuple axes):
    """The tag of a memory order."""
    return "".join(["abcd"[axis] for axis in axes])


cdef object in_format(object weights, tuple shape, str weights_format):
    """(kH, kW, C*M) as the weights were given."""
    if weights_format == "C1HW":
        return weights.transpose(2, 0, 1).reshape(shape)
    if weights_format == "HWCM":  # or TensorFlow Lite's
        return weights.reshape(shape)
    channels, multiplier = (shape[1], shape[0]) if weights_format == "MCHW" else (shape[3], shape[0])
    weights = weights.reshape(*weights.shape[:2], channels, multiplier)
    return weights.transpose((3, 2, 0, 1) if weights_format == "MCHW" else (3, 0, 1, 2))


cdef tuple names_of(object needs):
    """What is asked for."""
    names = (needs,) if isinstance(needs, str) else needs
    if not isinstance(names, (tuple, list)) or not names:
        raise LayoutError(f"needs must be a tuple of {', '.join(map(repr, NAMES))}, and not empty: {needs!r}")
    return tuple([geometry.choice("needs", name, NAMES) for name in names])


cdef object as_weights(object weights):
    """Weights as NumPy has them."""
    if isinstance(weights, NdArray) and weights.dtype != SINGLE:  # bfloat16 is none of NumPy's
        raise no_kernel("weights", weights.dtype)
    try:
        weights = np.asarray(weights)
    except ValueError:  # ragged
        raise LayoutError(f"weights must be one array of numbers: {weights!r}") from None
    if weights.dtype != SINGLE:
        raise no_kernel("weights", weights.dtype)
    return weights


cdef object no_kernel(str name, object dtype):
    return DTypeError(f"no kernel for gradients with {name} of {dtype}: there is float32, in native byte order")


cdef int check_plain(str name, ShapeDescriptor descriptor, int rank) except -1:
    """Rank, element type, no blocks."""
    if descriptor.layout.rank != rank:
        raise LayoutError(f"{name} must have {rank} axes: shape {descriptor.shape}", ShapeStatus.INCORRECT_RANK)
    if descriptor.dtype != SINGLE:
        raise no_kernel(name, descriptor.dtype)
    if descriptor.layout.block_count:
        raise UnsupportedLayoutError(f"{name} has inner blocks {descriptor.inner_blocks}, which no kernel reads yet: reorder makes it plain")
    return 0


cdef object filters_that_fit(list readings, Py_ssize_t channels, Py_ssize_t count):
    """(kH, kW, C*M) of the first reading that fits the channels of x and of the gradient."""
    for reading in readings:
        if reading.fits(channels) and reading.weights.shape[2] == count:
            return reading.weights
    counts = " or ".join([f"{r.channels or 'a divisor'} and {r.weights.shape[2]}" for r in readings])
    raise LayoutError(f"x and grad must have the input and output channels of the weights, {counts}: {channels} and {count}")


cdef list outputs(object out, tuple needs, tuple shapes, list inputs):
    """What was given to write to, checked, for each of NAMES; `inputs`: what that may not overlap."""
    cdef list taken = [(name, *address_range(array)) for name, array in inputs]
    if out is None:
        return [None, None, None]
    if not isinstance(out, tuple) or len(out) != 3:
        raise LayoutError(f"out must be a tuple of three, for input, weights and bias: {out!r}")
    found = []
    for name, given, shape in zip(NAMES, out, shapes):
        if given is None:
            found.append(None)
            continue
        if name not in needs:
            raise LayoutError(f"out must be None for what is not needed: {name}, needs={needs}")
        array = as_output(f"out for {name}", given)
        check_plain(f"out for {name}", array.descriptor, len(shape))
        if array.shape != shape:
            raise LayoutError(f"out for {name} must have its shape, {shape}: {array.shape}")
        if array.readonly:
            raise LayoutError(f"out for {name} must be writable: it is read-only")
        begin, end = address_range(array)
        for other, first, last in taken:
            if begin < last and first < end:
                raise LayoutError(f"out for {name} must not overlap {other}: bytes {begin:#x} to {end:#x} and {first:#x} to {last:#x}")
        taken.append((name, begin, end))
        found.append(array)
    return found


cdef tuple address_range(NdArray x):
    """Address of the first byte of any element, and one past the last."""
    cdef Py_ssize_t begin = <Py_ssize_t> x.data(), end = begin + CELL, reach
    cdef int axis
    if x.descriptor.layout.length == 0:
        return begin, begin
    for axis in range(x.descriptor.layout.rank):
        reach = (x.descriptor.layout.shape[axis] - 1) * x.descriptor.layout.strides[axis] * CELL
        begin, end = begin + min(reach, 0), end + max(reach, 0)
    return begin, end
