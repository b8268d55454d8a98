"""Reorder: the same elements in another layout (ADR 0009)."""

cimport cython

from nd4jlike.descriptor cimport Layout, ShapeDescriptor, axis_offset, block_product
from nd4jlike.kernels.patch cimport FROM_UNSIGNED, TO_CODES, TO_SHORTS, TO_UNSIGNED, MoveTable
from nd4jlike.moves cimport PLANNED_NESTS, Box, Change, Fill, Plan, all_of, fill_with, follow, kernels, kernels_of, move, plan_all, round_up
from nd4jlike.ndarray cimport NdArray, as_ndarray, as_output, element_bits, unwritten
from nd4jlike.workers cimport MAX_PARTS, share_work

import operator

from nd4jlike import dtypes, tags
from nd4jlike.descriptor import ShapeDescriptor as DescriptorType
from nd4jlike.errors import DTypeError, LayoutError
from nd4jlike.kernels import dispatch

__all__ = ["reorder"]

cdef enum:
    # Bytes of a target that are worth another thread: waking one costs some 30 us.
    BYTES_PER_THREAD = 1 << 19
    CACHED_CALLS = 16
    ALIGNMENT = 64  # as every array has it

cdef float LARGEST_FLOAT = 3.4028235e38

# Cython looks methods of a cimported class up in its .pxd, which has only the compiled ones.
cdef object from_tag = DescriptorType.from_tag

# Bits of zero, everywhere.
cdef Fill zeros
# The last calls, by the addresses of their layouts: most are like one of the calls before.
cdef frozenset FIXED = frozenset((type(None), int, float))
cdef list calls = [None] * CACHED_CALLS
# What float32 becomes, and becomes float32, in the order of the conversions.
cdef tuple NARROWER = ("float16", "bfloat16", "int8", "uint8", "int16")


def reorder(x not None, layout=None, *, out=None, dtype=None, scale=None, zero_point=None, padding_value=None, threads=1, isa=None):
    """Copy an array into another layout, converting the elements where their type differs.

    Parameters
    ----------
    x : NdArray or array_like
        Any layout: padded, blocked, permuted; strides may be negative or zero.
    layout : str or ShapeDescriptor, optional
        A layout tag such as ``"nhwc"`` or ``"nChw16c"``, read over the axes of `x`, or a descriptor of the same shape. Default: that of `out`.
    out : NdArray or writable buffer or tensor, optional
        Receives the elements and comes back. Its axes lie in memory as `layout` says, those of one block anywhere; its strides
        and padding are its own. It must not overlap `x`.
    dtype : dtype, optional
        Element type of the result for a tag. Default: that of `x`, or of `out`. A descriptor has its own.
    scale : float, optional
        Step of codes; only for conversions between float32 and int8, uint8 or int16, which need it.
    zero_point : int, optional
        Code of the number 0; default 0. ``code = round(number / scale) + zero_point``, halves to even, saturated; NaN becomes
        the zero point. ``number = (code - zero_point) * scale``.
    padding_value : scalar, optional
        What padding holds afterwards: all of it in a new array; in `out` the tails of blocks that hold elements, and nothing
        else. Default: what `fill_padding` wrote to `out`, or it was made with, else the zero point of codes that are made here, else 0.
    threads : int, optional
        How many threads may share the work; small arrays stay on one.
    isa : str, optional
        Instruction set of the kernels, one of ``dispatch.available()``. Default: the one that ``nd4jlike info`` shows.

    Returns
    -------
    NdArray
        `out` where it is given; else a new array, never a view.

    Raises
    ------
    LayoutError
        For a tag or descriptor that does not fit the shape; for an `out` of another shape, memory order or blocks, one that
        is read-only or overlaps `x`; for a scale or zero point that is no such thing.
    DTypeError
        For an `out` of another element type than asked for, and for conversions other than float32 to and from float16,
        bfloat16, int8, uint8 and int16.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> x = nd.arange(6).reshape(1, 3, 1, 2)
    >>> y = nd.reorder(x, "nChw4c")
    >>> y.descriptor.padded_shape, y.to_numpy()[0, 2, 0].tolist()
    ((1, 4, 1, 2), [4.0, 5.0])
    >>> nd.reorder(x, "nchw", dtype="int8", scale=0.5, zero_point=-1).to_numpy().ravel()
    array([-1,  1,  3,  5,  7,  9], dtype=int8)
    """
    cdef NdArray source = x if type(x) is NdArray else as_ndarray(x)
    cdef NdArray target = None if out is None else out if type(out) is NdArray else as_output("out", out)
    cdef ShapeDescriptor given = None if out is None else target.descriptor
    if layout is None:
        if given is None:
            raise LayoutError("a reorder needs a layout, or an out that has one: layout=None, out=None")
        layout = given
    cdef size_t place = (<size_t> <void *> source.descriptor ^ <size_t> <void *> given ^ <size_t> <void *> layout) // 16 % CACHED_CALLS
    cdef _Call call = calls[place]
    cdef unsigned long long bits
    cdef Py_ssize_t count = 1
    if call is None or not (
        call.x is source.descriptor and call.out is given and call.layout is layout and call.dtype is dtype
        and call.scale is scale and call.zero_point is zero_point and call.padding_value is padding_value
    ):
        call = planned(source.descriptor, given, layout, dtype, scale, zero_point, padding_value)
        # What may change while it is the same object is looked at each time.
        if type(scale) in FIXED and type(zero_point) in FIXED and type(padding_value) in FIXED:
            calls[place] = call
    if type(threads) is not int or threads != 1:
        if isinstance(threads, bool):
            raise LayoutError(f"threads must be an integer: {threads}")
        count = min(number("threads", threads, operator.index), 1 << 30)
        if count < 1:
            raise LayoutError(f"threads must be at least 1: {count}")

    bits = call.bits
    if given is not None:
        check_memory(call, source, target)
        if padding_value is None and target.buffer.tail_known:
            bits = target.buffer.tail_bits
        target.forget_tails(bits)
    else:
        target = out = unwritten(call.target)
        if bits:
            target.fill_padding(call.fill_value)

    cdef const MoveTable *table = kernels() if isa is None else kernels_of(dispatch.downwards(isa)[0])
    cdef Fill cells
    cdef Share job = Share(table, &source.descriptor.layout, &target.descriptor.layout, source.buffer.data, target.buffer.data, &zeros, &call.change, 0, 1)
    cdef Py_ssize_t blocks, parts = min(count, call.target.layout.length * call.target.layout.itemsize // BYTES_PER_THREAD)
    if bits:
        fill_with(&cells, bits, call.target.layout.itemsize)
        job.fill = &cells
    if parts <= 1 and call.plans:

        with nogil:
            follow(&call.plan, table, job.source, job.target, job.fill, job.change)

    else:
        blocks = choose_axis(&job, parts)

        with nogil:
            share_work(move_blocks, &job, blocks, 1, <int> min(parts, MAX_PARTS), 0)

    return out


@cython.final
cdef class _Call:
    """What follows from the arguments but for the memory of the arrays; it never changes."""
    cdef ShapeDescriptor x
    cdef ShapeDescriptor out
    cdef object layout
    cdef object dtype
    cdef object scale
    cdef object zero_point
    cdef object padding_value
    # Of the result.
    cdef ShapeDescriptor target
    cdef Change change
    # What padding holds: the value, None for zero bits, and the bits, where what `out` is known to hold does not count.
    cdef object fill_value
    cdef unsigned long long bits
    # First byte and one past the last of both, from the starts of their buffers.
    cdef Py_ssize_t x_span[2]
    cdef Py_ssize_t out_span[2]
    # Whether there is a plan for all elements in one go.
    cdef bint plans
    cdef Plan plan


cdef _Call planned(ShapeDescriptor x, ShapeDescriptor out, object layout, object dtype, object scale, object zero_point, object padding_value):
    """Check all but the memory, and decide everything."""
    cdef _Call call = _Call.__new__(_Call)
    cdef ShapeDescriptor wanted
    element = (x if out is None else out).dtype if dtype is None else dtypes.dtype(dtype)
    if isinstance(layout, ShapeDescriptor):
        wanted = layout
        if dtype is not None and wanted.dtype != element:
            raise DTypeError(f"dtype is {element}, the layout is one of {wanted.dtype}")
        element = wanted.dtype
        if wanted.shape != x.shape:
            raise LayoutError(f"a reorder keeps the shape: x has {x.shape}, the layout {wanted.shape}")
        axes, blocks = wanted.axes, wanted.inner_blocks
    else:
        axes, blocks = tags.parse(layout)
        wanted = None
    call.change.conversion = conversion_of(x.dtype, element)
    read_quantization(&call.change, scale, zero_point)
    if out is not None:
        check_out(x, out, element, layout, axes, blocks)
        call.target = out
    else:
        call.target = from_tag(x.shape, layout, element) if wanted is None else wanted
    call.fill_value = padding_value
    if padding_value is None and not call.change.conversion & 1:  # to something narrower
        call.fill_value = call.change.zero_point
    call.bits = 0 if call.fill_value is None else element_bits(element, call.fill_value)
    call.x, call.out, call.layout, call.dtype = x, out, layout, dtype
    call.scale, call.zero_point, call.padding_value = scale, zero_point, padding_value
    span(x, call.x_span)
    span(call.target, call.out_span)
    plan_all(&call.plan, &x.layout, &call.target.layout)
    call.plans = call.plan.count <= PLANNED_NESTS and not call.plan.turns
    return call


# A reorder all but the part of it that one thread does.
cdef struct Share:
    const MoveTable *table
    const Layout *source_layout
    const Layout *target_layout
    const char *source
    char *target
    const Fill *fill
    const Change *change
    # The axis that threads share, and how many of its elements belong together.
    int axis
    Py_ssize_t block


cdef Py_ssize_t choose_axis(Share *job, Py_ssize_t parts) noexcept:
    """The slowest axis of the target that has a whole block for each part, else the one that has most; how many blocks it has."""
    cdef const Layout *layout = job.target_layout
    cdef Py_ssize_t most = 0, blocks, block
    cdef int i
    for i in range(layout.rank):
        block = block_product(layout, layout.axes[i])
        blocks = (layout.shape[layout.axes[i]] + block - 1) // block
        if blocks > most:
            most, job.axis, job.block = blocks, layout.axes[i], block
        if most >= parts:
            break
    return most


cdef void move_blocks(const void *context, Py_ssize_t begin, Py_ssize_t end, int _) noexcept nogil:
    """Move blocks [begin, end) of the shared axis."""
    cdef const Share *job = <const Share *> context
    cdef Box box
    all_of(&box, job.target_layout)
    box.first[job.axis] = begin * job.block
    box.end[job.axis] = min(box.end[job.axis], end * job.block)
    move(job.table, job.source_layout, job.source, job.target_layout, job.target, &box, job.fill if job.target_layout.block_count else NULL,
         job.change if job.change.conversion >= 0 else NULL)


cdef int conversion_of(object source, object target) except -2:
    if source is target or source == target:
        return -1
    cdef bint widens = target == "float32"
    narrower = str(source if widens else target)
    if narrower not in NARROWER or not (widens or source == "float32"):
        raise DTypeError(f"a reorder converts between float32 and one of {', '.join(NARROWER)}, not from {source} to {target}; astype converts others")
    return 2 * NARROWER.index(narrower) + widens


cdef int read_quantization(Change *change, object scale, object zero_point) except -1:
    """Step and zero point of codes, given where there are some and nowhere else."""
    cdef int least = 0 if change.conversion in (TO_UNSIGNED, FROM_UNSIGNED) else -128 if change.conversion < TO_SHORTS else -32768
    change.scale, change.zero_point = 1, 0
    if change.conversion < TO_CODES:
        if scale is not None or zero_point is not None:
            raise LayoutError(f"scale and zero_point belong to conversions between float32 and codes: scale={scale!r}, zero_point={zero_point!r}")
        return 0
    step = number("scale", scale, float) if scale is not None else 0.0
    if not 0 < step < LARGEST_FLOAT or <float> step == 0:
        raise LayoutError(f"codes need a scale, a positive float32 number: scale={scale!r}")
    zero = 0 if zero_point is None else number("zero_point", zero_point, operator.index)
    most = least + (255 if change.conversion < TO_SHORTS else 65535)
    if not least <= zero <= most:
        raise LayoutError(f"zero_point is an {NARROWER[change.conversion // 2]} code, {least} to {most}: {zero}")
    change.scale, change.zero_point = step, zero
    return 0


cdef object number(str name, object value, object convert):
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise LayoutError(f"{name} must be a number{' without fraction' if convert is operator.index else ''}: {value!r}") from None


cdef bint same_order(const Layout *layout, tuple axes, tuple blocks):
    """Whether a layout has its axes and blocks in this order; axes of one block lie anywhere."""
    cdef int i, axis, place = 0
    if len(blocks) != layout.block_count:
        return False
    for i, (block_axis, size) in enumerate(blocks):
        if layout.block_axes[i] != block_axis or layout.block_sizes[i] != size:
            return False
    for i in range(layout.rank):
        axis = axes[i]
        if layout.shape[axis] > block_product(layout, axis):
            while layout.shape[layout.axes[place]] <= block_product(layout, layout.axes[place]):
                place += 1
            if layout.axes[place] != axis:
                return False
            place += 1
    return True


cdef bint same_places(const Layout *one, const Layout *other) noexcept:
    """Whether two layouts of one shape have each element as far from the first; what they are after a block of both, they stay."""
    cdef Py_ssize_t i, count
    cdef double period
    cdef int axis
    for axis in range(one.rank if one.length else 0):
        period = <double> block_product(one, axis) * <double> block_product(other, axis)
        count = one.shape[axis] if period >= one.shape[axis] else <Py_ssize_t> period + 1
        for i in range(count):
            if axis_offset(one, axis, i) != axis_offset(other, axis, i):
                return False
    return True


cdef void span(ShapeDescriptor descriptor, Py_ssize_t *ends) noexcept:
    """The bytes from the first to the last cell that is read or written, whole blocks; counted from the start of the buffer."""
    cdef const Layout *layout = &descriptor.layout
    cdef Py_ssize_t low = 0, high = 0, reach, run = 1
    cdef int i
    for i in range(layout.block_count):
        run *= layout.block_sizes[i]
    for i in range(layout.rank):
        reach = (round_up(layout.shape[i], block_product(layout, i)) // block_product(layout, i) - 1) * layout.strides[i]
        low += min(reach, 0)
        high += max(reach, 0)
    ends[0] = (layout.offset + low) * layout.itemsize
    ends[1] = (layout.offset + high + run) * layout.itemsize
    if layout.length == 0:
        ends[1] = ends[0]


cdef int check_out(ShapeDescriptor x, ShapeDescriptor out, object dtype, object layout, tuple axes, tuple blocks) except -1:
    """Whether `out` can take the elements of `x`."""
    cdef ShapeDescriptor wanted
    if out.shape != x.shape:
        raise LayoutError(f"out must have the shape of x: {out.shape} and {x.shape}")
    if out.dtype != dtype:
        raise DTypeError(f"out must have the element type of the result, {dtype}: {out.dtype}")
    if len(axes) == out.layout.rank:
        if same_order(&out.layout, axes, blocks):
            return 0
        wanted = layout if isinstance(layout, ShapeDescriptor) else from_tag(x.shape, layout, dtype)
        if same_places(&wanted.layout, &out.layout):
            return 0
    raise LayoutError(f"out must lie in memory as the layout says, {layout!r}: {out!r}")


cdef int check_memory(_Call call, NdArray x, NdArray out) except -1:
    """Whether the memory of `out` can be written without a change of `x`; nothing is written if not."""
    cdef const char *x_first = x.buffer.data + call.x_span[0]
    cdef const char *x_end = x.buffer.data + call.x_span[1]
    cdef const char *out_first = out.buffer.data + call.out_span[0]
    cdef const char *out_end = out.buffer.data + call.out_span[1]
    if out.readonly:
        raise LayoutError("out must be writable: it is read-only")
    if x_first < out_end and out_first < x_end:
        raise LayoutError(
            f"out must not overlap x: bytes {<size_t> out_first:#x} to {<size_t> out_end:#x} and {<size_t> x_first:#x} to {<size_t> x_end:#x}"
        )
    return 0
