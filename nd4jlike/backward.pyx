"""Gradients of a depthwise convolution: by its input, its weights and its bias (ADR 0018)."""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from nd4jlike.buffer cimport Buffer, allocate
from nd4jlike.depthwise cimport lead_of, place_in_caches
from nd4jlike.descriptor cimport ShapeDescriptor
from nd4jlike.kernels.gradients cimport GradientTable
from nd4jlike.kernels.problem cimport FLOAT32, Family, KernelTable, Problem, Requantization
from nd4jlike.ndarray cimport NdArray, as_ndarray, as_output, taken, unwritten
from nd4jlike.workers cimport MAX_PARTS, share_work

from collections import namedtuple

import numpy as np

from nd4jlike import geometry
from nd4jlike.descriptor import ShapeDescriptor as DescriptorType
from nd4jlike.errors import DTypeError, LayoutError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.kernels import dispatch
from nd4jlike.reorder import reorder

cdef extern from "cpu.h" nogil:
    const char *forced_isa()

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)

__all__ = ["DepthwiseGradients", "depthwise_conv2d_backward"]

cdef enum:
    ALIGNMENT = 64  # one cache line, and the widest vector a kernel loads
    # Multiply-adds that are worth another thread.
    WORK_PER_THREAD = 1 << 20
    # Pixels of the result from which zeros between those of the gradient cost less than phases.
    SPREAD_PIXELS = 8192
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
    # Which taps of the filter's rows and columns: the first, and from one to the next; where they lie, packed.
    Py_ssize_t taps[2]
    Py_ssize_t tap_steps[2]
    Py_ssize_t packed_offset


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
        For each of input, weights and bias an NdArray or writable buffer or tensor that receives the gradient, or None for a new array. None may overlap
        another, `grad`, `x` or `weights`; padding of the one for the input stays as it is.
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
    12 * (kH * kW + 1) bytes for a channel (rounded up to vectors, and one of them more), or 256 KiB and a row of the result (ADR 0018).

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
    cdef NdArray by_input, by_weights, by_bias, pixels
    cdef NdArray sums_weights, sums_bias
    cdef tuple key
    cdef _Call call
    cdef _Back back
    geometry.choice("data_format", data_format, tuple(geometry.AXES))
    geometry.choice("weights_format", weights_format, tuple(geometry.WEIGHT_AXES))
    threads = geometry.integer("threads", threads, 1)
    needs = names_of(needs)
    if image is None and "weights" in needs:
        raise LayoutError(f"the gradient by the weights needs the elements of x: a ShapeDescriptor, needs={needs}")
    weights = as_weights(weights)
    key = (
        source.descriptor, layout, weights.shape, geometry.pair("stride", stride, 1), geometry.pair("dilation", dilation, 1), geometry.sides(padding),
        data_format, weights_format, isa if type(isa) is str else forced_isa().decode() if isa is None else dispatch.downwards(isa)[0],
    )
    call = calls.get(key)
    if call is None:
        call = checked(key, weights)
        if len(calls) >= CACHED:
            calls.clear()
        calls[key] = call
    by_input, by_weights, by_bias = outputs(out, needs, call.shapes, {"grad": source, "x": image, "weights": as_ndarray(weights)})
    if by_weights is None and "weights" in needs:
        by_weights = unwritten(call.results[1])
    if by_bias is None and "bias" in needs:
        by_bias = unwritten(call.results[2])
    if by_input is None and "input" in needs:
        by_input = unwritten(call.results[0])
    pixels = by_input
    if "input" in needs and as_pixels(source, by_input, call):
        pixels, source = unwritten(from_tag(layout.shape, letters(call.axes), SINGLE)), channels_last(source, call.axes)

    if "weights" in needs or "bias" in needs:
        in_place = by_weights is not None and weights_format == "HWCM" and np.asarray(by_weights).flags.c_contiguous
        sums_weights = by_weights if in_place else unwritten(DescriptorType(SINGLE, "c", call.filters if "weights" in needs else call.shapes[2]))
        sums_bias = by_bias if by_bias is None or np.asarray(by_bias).flags.c_contiguous else unwritten(call.results[2])
        if "weights" in needs:
            sum_products(source, image, call.axes, call.filters, call.walk, call.table, sums_weights, sums_bias, threads)
        else:  # those of a filter of one tap on the gradient itself
            window = geometry.Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)))
            sum_products(source, source, call.axes, (1, 1, call.filters[2]), walk_of(window, call.walk.out), call.table, sums_weights, sums_bias, threads)
        if "weights" in needs and not in_place:
            by_weights[...] = in_format(np.asarray(sums_weights), weights.shape, weights_format)
        if sums_bias is not by_bias:
            by_bias[...] = sums_bias
    if "input" in needs and layout.layout.length:
        walk = call.walk
        if call.spread is not None and pixels.descriptor.layout.strides[call.axes[3]] == 1 and np.isfinite(weights).all():
            source, walk = spread_out(source, call), call.spread
        with cython.critical_section(call):
            back = call.back
        if (
            back is None or back.result != pixels.descriptor or back.walk is not walk
            or back.places[0] != <uintptr_t> source.data() % ALIGNMENT or back.places[1] != <uintptr_t> pixels.data() % ALIGNMENT
        ):
            back = back_to(pixels, source, call, walk)
            with cython.critical_section(call):
                call.back = back
        if not (weights_format == "HWCM" and weights.flags.c_contiguous):
            weights = reading_that_fits(geometry.weight_readings(weights, weights_format), layout.shape[call.axes[3]], source.shape[call.axes[3]]).weights
        convolve_back(back, source, pixels, as_ndarray(weights), threads)
        if pixels is not by_input:
            by_input[...] = pixels
    return DepthwiseGradients(*[
        array if out is None or out[i] is None else out[i] for i, array in enumerate((by_input, by_weights, by_bias))
    ])


@cython.final
cdef class _Call:
    """What follows from two layouts, the shape of the weights and the arguments: all but memory."""
    # Positions of batch, height, width and channel; extents of the filter and its output channels; of input, weights and bias.
    cdef tuple axes
    cdef tuple filters
    cdef tuple shapes
    # Descriptors of new arrays for them.
    cdef tuple results
    cdef object walk
    cdef const KernelTable *convolutions
    cdef const GradientTable *table
    # Keeps the tables alive.
    cdef tuple capsules
    # The walk by steps of 1 over a gradient with zeros between its pixels, where that is faster than phases; else None.
    cdef object spread
    # For the last layout that the gradient by the input had.
    cdef _Back back


# By all that they follow from.
cdef dict calls = {}
_BackwardWalk = namedtuple("_BackwardWalk", ("out", "before", "stride", "dilation", "down", "across"))


cdef _Call checked(tuple key, object weights):
    """Check all but the memory, and decide everything."""
    cdef ShapeDescriptor grad, x
    cdef _Call call = _Call.__new__(_Call)
    grad, x, _, stride, dilation, padding, data_format, weights_format, isa = key
    call.axes = geometry.AXES[data_format]
    check_plain("grad", grad, 4)
    check_plain("x", x, 4)
    filters = reading_that_fits(geometry.weight_readings(weights, weights_format), x.shape[call.axes[3]], grad.shape[call.axes[3]]).weights
    call.filters = filters.shape
    call.walk = walk_of(geometry.Window(filters.shape[:2], stride, dilation, padding), (x.shape[call.axes[1]], x.shape[call.axes[2]]))
    figures = dict(zip(call.axes, (x.shape[call.axes[0]], *call.walk.out, filters.shape[2])))
    expected = tuple([figures[axis] for axis in range(4)])
    if grad.shape != expected:
        raise LayoutError(f"grad must have the shape of the result, {expected} for x of shape {x.shape}: {grad.shape}")
    call.shapes = x.shape, weights.shape, (filters.shape[2],)
    call.results = from_tag(x.shape, letters(x.axes), SINGLE), DescriptorType(SINGLE, "c", call.shapes[1]), DescriptorType(SINGLE, "c", call.shapes[2])
    for level in dispatch.downwards(isa or None):
        # A build may leave float32 to that of the next slower instruction set.
        convolutions = dispatch.load("depthwise", level)
        call.convolutions = <const KernelTable *> PyCapsule_GetPointer(convolutions, "nd4jlike.kernels.KernelTable")
        if call.convolutions.families[FLOAT32].run != NULL:
            break
    gradients = dispatch.load("gradients", isa or None)
    call.table = <const GradientTable *> PyCapsule_GetPointer(gradients, "nd4jlike.kernels.GradientTable")
    call.capsules = convolutions, gradients
    call.spread = spread_walk(filters.shape, stride, dilation, call, x.shape[call.axes[3]])
    return call


cdef object spread_walk(tuple filters, tuple stride, tuple dilation, _Call call, Py_ssize_t channels):
    """Where a few channels share vectors by steps of 1 (ADR 0004), and not in the phases of a stride: the walk over a gradient of zeros but for its pixels."""
    cdef Py_ssize_t lanes = call.convolutions.families[FLOAT32].lanes
    cdef tuple size = (call.shapes[0][call.axes[1]], call.shapes[0][call.axes[2]])
    if stride not in ((1, 2), (2, 1), (2, 2)) or filters != (3, 3, channels) or not 1 < channels <= lanes // 4 or size[0] * size[1] < SPREAD_PIXELS:
        return None
    sides = []
    for i in range(2):
        reach = (filters[i] - 1) * dilation[i]
        extent = max((call.walk.out[i] - 1) * stride[i] + 1, size[i] + call.walk.before[i] - reach)
        sides.append((call.walk.before[i], extent + reach - size[i] - call.walk.before[i]))
    return walk_of(geometry.Window(filters[:2], (1, 1), dilation, tuple(sides)), size)


cdef NdArray spread_out(NdArray grad, _Call call):
    """A gradient with zeros between its pixels, channels side by side."""
    cdef int n, h, w, c
    n, h, w, c = call.axes
    figures = dict(zip(call.axes, (grad.shape[n], *call.spread.out, grad.shape[c])))
    made = NdArray(from_tag(tuple([figures[axis] for axis in range(4)]), letters(call.axes), SINGLE))
    steps = {h: call.walk.stride[0], w: call.walk.stride[1]}
    made[tuple([slice(0, (grad.shape[axis] - 1) * steps.get(axis, 1) + 1, steps.get(axis, 1)) for axis in range(4)])] = grad
    return made


cdef object walk_of(object window, tuple size):
    """How a window walks over an image, and its phases."""
    walk = window.over(size)
    return _BackwardWalk(walk.out, walk.before, window.stride, window.dilation, window.phases(0, size[0], walk), window.phases(1, size[1], walk))


@cython.final
cdef class _Back:
    """The gradient by the input in one layout, all but its memory."""
    cdef ByInput job
    cdef ShapeDescriptor result
    cdef object walk
    # Keeps the tables of kernels alive.
    cdef tuple capsules
    cdef Buffer phases
    # Bytes from the lines before them to the gradient and to the result.
    cdef uintptr_t places[2]
    # Extents of the filter, and its output channels; elements of the gradient.
    cdef Py_ssize_t kernel_height, kernel_width, count, length
    # Bytes: of the packed taps of all phases, and of the taps of one.
    cdef Py_ssize_t packed_bytes, taps_bytes


cdef _Back back_to(NdArray pixels, NdArray source, _Call call, object walk):
    """Decide about all phases."""
    cdef _Back back = _Back.__new__(_Back)
    cdef ShapeDescriptor result = pixels.descriptor
    cdef ShapeDescriptor grad = source.descriptor
    cdef ByInput *job = &back.job
    cdef Phase *phase
    cdef Problem *problem
    cdef Py_ssize_t steps_across = walk.stride[1], row, i, axis, lead, widest = 0
    back.kernel_height, back.kernel_width, back.count = call.filters
    back.result, back.walk, back.capsules, back.length = result, walk, call.capsules, grad.layout.length
    back.places[0], back.places[1] = <uintptr_t> source.data() % ALIGNMENT, <uintptr_t> pixels.data() % ALIGNMENT
    job.family, job.table = <const Family *> &call.convolutions.families[FLOAT32], call.table
    job.batch, job.height, job.width, job.channels = [result.shape[axis] for axis in call.axes]
    job.multiplier = back.count // job.channels
    for i, axis in enumerate(call.axes):
        job.strides[i] = result.layout.strides[axis]
    job.step = walk.stride[0]
    job.steps = (job.height + job.step - 1) // job.step
    job.blank = len(walk.down) * len(walk.across) < min(job.step, job.height) * min(steps_across, job.width)
    back.phases = allocate(max(1, len(walk.down) * len(walk.across)) * <Py_ssize_t> sizeof(Phase), 0, ALIGNMENT, True)
    job.phases = <Phase *> back.phases.data

    for down in walk.down:
        for across in walk.across:
            phase = &job.phases[job.count]
            problem = &phase.problem
            problem.element = FLOAT32
            problem.batch, problem.channels, problem.multiplier = job.batch, back.count, 1
            problem.height, problem.width = down.extent, across.extent
            problem.out_height, problem.out_width = down.pixels, across.pixels
            phase.taps[0], phase.taps[1] = down.taps.start, across.taps.start
            phase.tap_steps[0], phase.tap_steps[1] = down.taps.step, across.taps.step
            problem.kernel_height = (back.kernel_height - phase.taps[0] + phase.tap_steps[0] - 1) // phase.tap_steps[0]
            problem.kernel_width = (back.kernel_width - phase.taps[1] + phase.tap_steps[1] - 1) // phase.tap_steps[1]
            problem.stride_height = problem.stride_width = 1
            problem.dilation_height, problem.dilation_width = down.dilation, across.dilation
            problem.pad_top, problem.pad_left = down.pad, across.pad
            problem.float_min, problem.float_max = -INFINITY, INFINITY
            for i, axis in enumerate(call.axes):
                problem.x_strides[i] = grad.layout.strides[axis]
            phase.x_offset = down.skip * problem.x_strides[1] + across.skip * problem.x_strides[2]
            phase.y_offset = down.first * job.strides[1] + across.first * job.strides[2]
            phase.row, phase.column = job.strides[1] * job.step, job.strides[2] * steps_across
            problem.y_strides[0], problem.y_strides[3] = job.strides[0], job.strides[3]
            problem.y_strides[1], problem.y_strides[2] = phase.row, phase.column
            if job.multiplier > 1:
                problem.y_strides[0], problem.y_strides[1], problem.y_strides[2], problem.y_strides[3] = 0, problem.out_width * back.count, back.count, 1
                widest = max(widest, problem.out_width * back.count)
            place_in_caches(problem, (grad.layout.length + result.layout.length) * CELL, CELL)
            # Phases of few taps are not worth a vector more.
            if job.family.aligns != NULL and job.multiplier == len(walk.down) * len(walk.across) == 1:
                lead = lead_of(
                    job.family, job.family.aligns(problem), CELL, source.data() + phase.x_offset * CELL, pixels.data() + phase.y_offset * CELL)
                problem.lead, problem.agrees = abs(lead), lead < 0
            phase.packed_offset = back.packed_bytes
            back.packed_bytes += aligned(job.family.packed_bytes(problem))
            back.taps_bytes = max(back.taps_bytes, problem.kernel_height * problem.kernel_width * back.count * CELL)
            job.scratch_bytes = max(job.scratch_bytes, job.family.scratch_bytes(problem))
            job.count += 1

    job.band = job.steps
    if job.count > 1 or job.blank or job.multiplier > 1:
        row = (grad.shape[call.axes[2]] * back.count + job.step * job.width * job.channels + widest) * CELL
        job.band = max(1, BAND_BYTES // row // 2 * 2)  # rows are walked in pairs
    job.band = min(job.band, job.steps)
    job.sum_bytes, job.scratch_bytes = aligned(job.band * widest * CELL), aligned(job.scratch_bytes)
    return back


cdef Py_ssize_t aligned(Py_ssize_t nbytes) noexcept nogil:
    """Rounded up to whole lines."""
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


cdef int convolve_back(_Back back, NdArray grad, NdArray result, NdArray filters, Py_ssize_t threads) except -1:
    """The gradient by the input; `filters` are dense."""
    cdef ByInput job = back.job
    cdef Requantization none
    cdef Phase *phase
    cdef int i, parts = parts_of(threads, job.batch * job.steps, back.length * back.kernel_height * back.kernel_width)
    cdef Py_ssize_t phases_bytes = aligned(job.count * <Py_ssize_t> sizeof(Phase)), taps_bytes = aligned(back.taps_bytes)
    cdef char *memory = allocate_scratch(phases_bytes + taps_bytes + back.packed_bytes + (job.sum_bytes + job.scratch_bytes) * parts)
    cdef float *taps = <float *> (memory + phases_bytes)
    cdef char *packed = memory + phases_bytes + taps_bytes
    none.multipliers, none.shifts, none.scales = NULL, NULL, NULL
    job.grad, job.result, job.scratch = grad.data(), result.data(), packed + back.packed_bytes
    job.phases = <Phase *> memory
    memcpy(job.phases, back.job.phases, job.count * sizeof(Phase))
    memset(packed, 0, back.packed_bytes)
    for i in range(job.count):
        phase = &job.phases[i]
        turn_taps(phase, <const float *> filters.data(), back.kernel_width, back.count, taps)
        phase.problem.packed = packed + phase.packed_offset
        job.family.pack(&phase.problem, taps, NULL, &none, packed + phase.packed_offset)

    with nogil:
        share_work(run_steps, &job, job.batch * job.steps, 2, parts, 0)

    free(memory)
    return 0


cdef void turn_taps(const Phase *phase, const float *filters, Py_ssize_t kernel_width, Py_ssize_t count, float *target) noexcept nogil:
    """The taps of a phase, turned by 180 degrees, one after the other."""
    cdef Py_ssize_t height = phase.problem.kernel_height, width = phase.problem.kernel_width, row, column, tap
    for row in range(height):
        for column in range(width):
            tap = (phase.taps[0] + row * phase.tap_steps[0]) * kernel_width + phase.taps[1] + column * phase.tap_steps[1]
            memcpy(target + ((height - 1 - row) * width + width - 1 - column) * count, filters + tap * count, count * CELL)


cdef int sum_products(NdArray grad, NdArray x, tuple axes, tuple filters, object walk, const GradientTable *table, NdArray weights, NdArray bias,
                      Py_ssize_t threads) except -1:
    """The gradients by weights and bias, of filters of shape (kH, kW, C*M), dense in this order."""
    cdef Sums job
    cdef Problem *problem = &job.problem
    cdef Py_ssize_t i, axis, blocks, share
    cdef int parts
    memset(&job, 0, sizeof(Sums))
    grad, x = channels_last(grad, axes), channels_last(x, axes)
    job.table = table
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
    if (problem.x_strides[0] | problem.x_strides[1] | problem.x_strides[2]) % (ALIGNMENT // CELL) == 0:
        problem.lead = (ALIGNMENT - <uintptr_t> job.x % ALIGNMENT) % ALIGNMENT // CELL
    blocks = job.table.blocks(problem)
    parts = parts_of(threads, blocks, grad.descriptor.layout.length * problem.kernel_height * problem.kernel_width)
    share = (blocks + parts - 1) // parts
    job.scratch_bytes = job.table.scratch_bytes(problem, share)
    job.scratch = allocate_scratch(job.scratch_bytes * parts)

    with nogil:
        share_work(run_blocks, &job, blocks, share, parts, 0)  # each part reads all pixels: it is done in one go

    free(job.scratch)
    return 0


cdef char *allocate_scratch(Py_ssize_t nbytes) except? NULL:
    cdef void *scratch = NULL
    if nbytes and posix_memalign(&scratch, ALIGNMENT, nbytes):
        raise MemoryError(f"cannot allocate {nbytes} bytes of scratch")
    return <char *> scratch


cdef bint lies_apart(NdArray x, tuple axes):
    cdef Py_ssize_t channel = axes[3]
    return x.descriptor.layout.strides[channel] != 1 and x.descriptor.layout.shape[channel] != 1


cdef NdArray channels_last(NdArray x, tuple axes):
    """`x` where its channels lie side by side, else a copy in that order."""
    return reorder(x, letters(axes)) if lies_apart(x, axes) else x


cdef bint as_pixels(NdArray grad, NdArray result, _Call call):
    """Whether copies with channels side by side are the faster way to the gradient by the input: phases of a stride have columns apart."""
    cdef bint apart = lies_apart(grad, call.axes), result_apart = lies_apart(result, call.axes)
    channels, outputs = result.shape[call.axes[3]], grad.shape[call.axes[3]]
    return channels > 1 and (apart or result_apart) and (apart != result_apart or call.walk.stride != (1, 1) or channels != outputs)


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
    weights = taken(weights)
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


cdef object reading_that_fits(list readings, Py_ssize_t channels, Py_ssize_t count):
    """The first reading, (kH, kW, C*M), that fits the channels of x and of the gradient."""
    for reading in readings:
        if reading.fits(channels) and reading.weights.shape[2] == count:
            return reading
    counts = " or ".join([f"{r.channels or 'a divisor'} and {r.weights.shape[2]}" for r in readings])
    raise LayoutError(f"x and grad must have the input and output channels of the weights, {counts}: {channels} and {count}")


cdef list outputs(object out, tuple needs, tuple shapes, dict inputs):
    """What was given to write to, checked, for each of NAMES; `inputs`: what that may not overlap."""
    cdef list reached = [(name, *address_range(array)) for name, array in inputs.items() if array is not None]
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
        for other, first, last in reached:
            if begin < last and first < end:
                raise LayoutError(f"out for {name} must not overlap {other}: bytes {begin:#x} to {end:#x} and {first:#x} to {last:#x}")
        reached.append((name, begin, end))
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
