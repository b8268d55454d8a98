# Whose vectors begin on lines, those of the inputs or those of the outputs, of a call that depthwise_float.pxi has planned (ADR 0017, D7).

cdef enum:
    # Blocks of channels from which on one more pays, as ALIGNED_BLOCKS, where loads and stores across lines decide: vectors are lines, there are so few
    # products, and tiles share inputs.
    ALIGNED_LINES = 4
    ALIGNED_PRODUCTS = 9
    # The same of filters of one row or column, without a step, and of one tap; and of long ones in AMD's caches of 12 ways.
    ALIGNED_ROWS = 3
    # The same of other filters where a pixel's ends are whole vectors of inputs, too: all, and by steps.
    ALIKE_BLOCKS = 6
    ALIKE_STEPS = 3
    # Taps up to which stores that cross lines cost more than loads that do: by steps of 2 and in one row; in a row of more.
    FEW_LOADS = 7
    WIDE_LOADS = 5
    # Where half a vector takes half of its time: vectors from which on one more is little beside all of so many products; sets that pixels share up to which
    # loads across lines cost more than that.
    ALIGNED_MANY = 32
    ALIGNED_SETS = 4


cdef inline Py_ssize_t enough_vectors(const Rows *job, const Problem *problem, bint *alike) noexcept nogil:
    """Of a pixel, from which on one more is little beside all; and whether fewer than ALIGNED_BLOCKS are enough only if both ends of a pixel are whole ones."""
    cdef Py_ssize_t taps = job.down.taps * job.across.taps
    cdef bint real = problem.element == FLOAT32, line = min(job.down.taps, job.across.taps) == 1
    alike[0] = False
    if VECTOR_BYTES < 64 or job.across.outputs <= WIDE_TILE:
        return ALIGNED_BLOCKS
    if not line and taps <= ALIGNED_PRODUCTS and job.down.step == job.across.step < (TILE_STRIDES if real else 2):
        # By steps of 2 there is less to compute for what is loaded.
        return ALIGNED_LINES // job.across.step
    if real and line and (max(job.down.step, job.across.step) == 1 or taps == 1):
        return ALIGNED_ROWS
    if not real or job.channels >= ALIGNED_BLOCKS * job.lanes:
        return ALIGNED_BLOCKS
    alike[0] = True
    if min(job.down.step, job.across.step) > 1:
        return ALIKE_STEPS
    return ALIKE_BLOCKS if not problem.roomy else ALIGNED_ROWS if job.lengthy else ALIGNED_BLOCKS


cdef inline bint is_plain_square(const Rows *job) noexcept nogil:
    """Square filters without a step or a dilation that have tiles: where a vector more costs as much as what it saves."""
    return not job.lengthy and 1 < job.down.taps == job.across.taps and max(job.down.step * job.down.phases, job.across.step * job.across.phases) == 1


cdef inline bint is_plain_line(const Rows *job) noexcept nogil:
    """Filters of one row or column without a step: of few vectors one more is much beside what it saves."""
    return min(job.down.taps, job.across.taps) == 1 and max(job.down.taps, job.across.taps) > 1 and max(job.down.step, job.across.step) == 1


cdef int rows_align(const Rows *job, const Problem *problem) noexcept nogil:
    """Whose vectors should begin on boundaries: where all pixels agree on them, and a block more is little beside all (ADR 0017, D7)."""
    cdef Py_ssize_t pitches = 0
    cdef bint few, alike
    cdef int i
    for i in range(3):
        pitches |= problem.x_strides[i] | problem.y_strides[i]
    if VECTOR_BYTES == 16 or job.spread or problem.x_block or problem.y_block or pitches % job.lanes:
        return ALIGNS_NONE
    # Output by output the first block and the last one would be calls of their own.
    if job.channels < enough_vectors(job, problem, &alike) * job.lanes or (VECTOR_BYTES == 32 and job.pixel):
        return ALIGNS_NONE
    if VECTOR_BYTES == 32:
        return ALIGNS_INPUT if job.across.step > 1 or problem.sets > 0 else ALIGNS_OUTPUT
    if problem.halving and not 0 < problem.sets <= ALIGNED_SETS * lowest_bit(job.across.dilation):
        if problem.element != FLOAT32 and problem.element != FLOAT64:
            return ALIGNS_NONE
        if problem.element == FLOAT32 and (is_plain_square(job) or (is_plain_line(job) and job.channels < ALIGNED_BLOCKS * job.lanes)):
            if not is_plain_line(job) and job.down.taps * job.across.taps > ALIGNED_PRODUCTS and job.channels < ALIGNED_MANY * job.lanes:
                return ALIGNS_NONE
            return ALIGNS_INPUT + ALIGNS_BOTH + ALIGNS_SAME
    if job.across.step == 1:
        few = job.across.taps <= (FEW_LOADS if job.down.taps == 1 else WIDE_LOADS)
    else:
        few = job.across.step == 2 and not job.pixel and job.down.taps * job.across.taps <= FEW_LOADS
    if problem.roomy and problem.element == FLOAT32:
        # Stores that cross lines cost less than vectors more, and those are a larger part of few.
        few = few and job.across.step == 1 and job.channels < ALIKE_BLOCKS * job.lanes and not job.lengthy
        return (ALIGNS_OUTPUT if few else ALIGNS_INPUT) + ALIGNS_BOTH + ALIGNS_ALIKE
    few = few and not (job.resident or problem.sets > 0)
    return (ALIGNS_OUTPUT if few else ALIGNS_INPUT) + (ALIGNS_BOTH if problem.element != FLOAT64 else 0) + (ALIGNS_ALIKE if alike else 0)
