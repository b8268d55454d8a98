# Which planes (NCHW) become pixels, in scratch: those that have no kernels where they lie, or slower ones (ADR 0004).

cdef enum:
    # Channels, the least, that planes become pixels of; and for which that pays where strips are the other way, by how much there is to gain; taps, and those
    # of filters of one column, up to which float32 planes stay where they are.
    PIXEL_CHANNELS = 8
    SOME_CHANNELS = 24
    MANY_CHANNELS = 48
    MORE_CHANNELS = 64
    MOST_CHANNELS = 96
    FEW_TAPS = 2
    FEW_ROWS = 5
    # Columns of planes up to which filters of one row are faster as pixels.
    TURNED_COLUMNS = 160
    # What stacks, strips, or rows of planes take for a lane beside what pixels do, with what it costs to turn them, in percent: stacks of up to 3x3, 5x5 and
    # 7x7; strips of 5x5, and by 2, and 7x7; filters without strips, and by steps.
    STACKS_3 = 55
    STACKS_5 = 75
    STACKS_7 = 90
    STRIPS_5 = 80
    STRIPS_5_BY_2 = 62
    STRIPS_7 = 95
    # More of images of few rows, and by steps where two planes share a vector.
    LOW_STRIPS = 20
    SHARED_STRIPS = 16
    ROWS_OF_PLANES = 110
    STEPS_OF_PLANES = 140


cdef inline bint lies_apart(const Problem *problem) noexcept nogil:
    return not (problem.x_block or problem.y_block) and (
        (problem.channels > 1 and problem.x_strides[3] != 1) or (problem.channels * problem.multiplier > 1 and problem.y_strides[3] != 1)
    )


cdef bint fills_better(const Problem *problem, Py_ssize_t vector, Py_ssize_t share) noexcept nogil:
    """Whether planes, which take `share` percent for a lane, take more for all lanes of a row of outputs than pixels do for those of their channels."""
    cdef Py_ssize_t row = divide_up(problem.out_width, vector) * vector, pixel = divide_up(problem.channels, LANES) * LANES
    return share * row * problem.channels > 100 * problem.out_width * pixel


cdef bint idles_in_stacks(const Problem *problem) noexcept nogil:
    """Of float32 in stacks, whether so many of their lanes and rows are idle, or computed again, that pixels are faster."""
    cdef Py_ssize_t taps = problem.kernel_width, phases = min(problem.dilation_height, problem.out_height), rows = divide_up(problem.out_height, phases)
    cdef Py_ssize_t share = STACKS_3 if taps <= 3 else STACKS_5 if taps == 5 else STACKS_7
    return problem.channels >= (SOME_CHANNELS if taps > 3 else MANY_CHANNELS) and (
        rows < LOW_STACK or fills_better(problem, LANES, share * phases * rows_of_stacks(rows) // problem.out_height))


cdef bint idles_in_strips(const Problem *problem) noexcept nogil:
    """Of float32 in strips, whether so many of their lanes are idle that pixels are faster with what it costs to turn them; few planes do not pay for that."""
    cdef Py_ssize_t taps = min(problem.kernel_height, problem.kernel_width), vector = LANES, share
    cdef bint steps = problem.stride_width > 1
    # Rows of few outputs.
    if problem.multiplier == 1 and problem.out_width + problem.stride_width <= problem.kernel_width + 2:
        return problem.channels >= (MOST_CHANNELS if taps <= 3 else MANY_CHANNELS if steps else MORE_CHANNELS)
    # Of rows of one vector several filters for a channel move more than they gain.
    if taps <= 3 or is_turned(problem) or (problem.multiplier > 1 and problem.out_width <= LANES):
        return False
    if has_narrow_strips(problem) or has_halved_strips(problem):
        vector = LANES // 2
    if taps == 5 and problem.channels < MANY_CHANNELS and problem.out_width <= LANES:
        return False
    share = STRIPS_7 if taps == STRIP_TAPS else STRIPS_5_BY_2 if steps else STRIPS_5
    if steps and taps == 5 and has_narrow_strips(problem):
        share += SHARED_STRIPS
    # A strip reads rows beside those of its outputs, which weigh more where these are few.
    if not steps and problem.out_height <= 2 * taps + 2:
        share += LOW_STRIPS
    return fills_better(problem, vector, share)


cdef bint as_pixels_float(const Problem *problem) noexcept nogil:
    """Vectors of channels must be filled well. float32 does not pay where strips or a few taps are fast."""
    # Four lanes of five, of halves, whose planes would be widened, three of four.
    cdef Py_ssize_t lanes = divide_up(problem.channels, LANES) * LANES
    cdef bint filled = 5 * problem.channels >= 4 * lanes or (problem.element != FLOAT32 and 4 * problem.channels >= 3 * lanes)
    if not lies_apart(problem) or problem.element == FLOAT64:
        return lies_apart(problem)
    if problem.channels < PIXEL_CHANNELS or (VECTOR_BYTES == 16 and problem.element == FLOAT16):
        return False
    if problem.element != FLOAT32:
        return filled and (not (in_strips(problem) and has_strips(problem)) or (
            2 * problem.out_width <= LANES and not (4 * problem.out_width > LANES and has_narrow_strips(problem))))
    if not in_planes(problem):
        return filled
    if by_lines(problem):
        return False
    if is_column(problem):
        return problem.channels >= 2 * PIXEL_CHANNELS
    if in_strips(problem):
        return filled and idles_in_stacks(problem) if stacks_of(problem) != NULL else idles_in_strips(problem)
    if problem.kernel_width == 1:
        return problem.kernel_height > FEW_ROWS and filled
    return (
        problem.kernel_height * problem.kernel_width > FEW_TAPS
        and (problem.kernel_height > 1 or (problem.width <= TURNED_COLUMNS and (VECTOR_BYTES < 64 or problem.channels >= 2 * LANES)))
        and (filled if VECTOR_BYTES < 64 else fills_better(problem, LANES, STEPS_OF_PLANES if problem.stride_width > 1 else ROWS_OF_PLANES))
    )


cdef bint as_pixels_integer(const Problem *problem) noexcept nogil:
    return lies_apart(problem)
