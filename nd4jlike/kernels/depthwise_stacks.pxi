# float32 planes by square filters with 16 registers: stacks of outputs (stacks.h), all those of some rows of a plane before the rows below.

cdef extern from "stacks.h" nogil:
    enum:
        STRIP_TAPS
        STACK_ROWS
        LOW_STACK
        PAIR_ROWS
        PAIR_ACROSS
        WINDOW_BYTES
    Py_ssize_t window_pitch(Py_ssize_t taps, Py_ssize_t x_tap)
    ctypedef struct StackColumns:
        Py_ssize_t x, y, lanes
        const vi32 *masks
        unsigned int masked
    ctypedef struct Stacks:
        Py_ssize_t planes, lead, multiplier, x_plane, y_plane, rows, pad, height, high, taps, x_tap, x_row, y_row, x_bytes
        const float *blocks
        Py_ssize_t block_vectors
        int count, fetches
        StackColumns columns[COLUMNS_ACROSS]
    ctypedef void (*PlaneStacks)(const Stacks *stacks, const vf32 *limits, const char *x, char *y) noexcept nogil
    const PlaneStacks plane_stacks[8][3]
    const PlaneStacks mixed_stacks[8]

cdef enum:
    # Columns of the image from which on the rows below are fetched from beyond the second-level cache: those of less lie side by side, as prefetchers read.
    FETCHED_COLUMNS = 48


cdef inline PlaneStacks stacks_of(const Problem *problem) noexcept nogil:
    """Of a filter; NULL where there are none."""
    cdef Py_ssize_t taps = problem.kernel_width, stride = problem.stride_width
    if VECTOR_BYTES != 32 or problem.kernel_height != taps or taps > STRIP_TAPS or problem.stride_height != stride or stride > PLANE_STRIDES:
        return NULL
    return plane_stacks[taps][stride]


cdef inline PlaneStacks mixed_stacks_of(const Problem *problem) noexcept nogil:
    """The same of pixels that share a vector."""
    cdef Py_ssize_t high = problem.kernel_height, taps = problem.kernel_width
    if VECTOR_BYTES != 32 or problem.element != FLOAT32 or max(problem.stride_height, problem.stride_width) > 1:
        return NULL
    if (PAIR_ROWS - 1 + high) * window_pitch(taps, problem.dilation_width * problem.channels * 4) > WINDOW_BYTES or min(high, taps) == 1:
        return NULL
    return mixed_stacks[taps if high == taps <= STRIP_TAPS and mixed_stacks[taps] != NULL else 0]


cdef inline Py_ssize_t rows_of_stacks(Py_ssize_t rows) noexcept nogil:
    """Rows that are computed for so many."""
    cdef Py_ssize_t whole = rows // STACK_ROWS * STACK_ROWS, rest = rows - whole
    if rows < STACK_ROWS:
        return divide_up(rows, LOW_STACK) * LOW_STACK
    return whole + (0 if rest == 0 else LOW_STACK if rest <= LOW_STACK else STACK_ROWS)


cdef void run_stacks(
    const Problem *problem, Py_ssize_t lead, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t mixed,
) noexcept nogil:
    """Output rows begin to end of batch*out_height of all planes; the weights are those of planes from `lead` on, packed as for bands.

    `mixed`: lanes of the whole pixels of a vector, where they are one plane; else 0.
    """
    cdef PlaneStacks run = mixed_stacks_of(problem) if mixed else stacks_of(problem)
    cdef Py_ssize_t phases = problem.dilation_height, column = 0, next_column, row, top, last, phase, position
    cdef const char *image
    cdef char *out_image
    cdef const Piece *piece
    cdef StackColumns *columns
    cdef int i, tap
    cdef vf32 limits[2]
    cdef Phase rows
    cdef Pieces pieces
    cdef Stacks stacks
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    stacks.planes, stacks.lead, stacks.multiplier = problem.channels * problem.multiplier, lead, problem.multiplier
    stacks.x_plane, stacks.y_plane = problem.x_strides[3] * 4, problem.y_strides[3] * 4
    stacks.x_row, stacks.y_row = phases * problem.x_strides[1] * 4, phases * problem.y_strides[1] * 4
    stacks.high, stacks.taps, stacks.x_tap, stacks.x_bytes = problem.kernel_height, problem.kernel_width, problem.dilation_width * 4, problem.width * 4
    stacks.blocks = <const float *> (<const char *> problem.packed + HEADER_BYTES)
    stacks.block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width
    stacks.fetches = problem.distance >= BEYOND_SECOND_LEVEL and problem.width >= FETCHED_COLUMNS
    while column < problem.out_width:
        next_column = cut_pieces(problem, &pieces, column, mixed if mixed else LANES, False, False, True)
        stacks.count = pieces.count
        for i in range(pieces.count):
            piece = &pieces.piece[i]
            columns = &stacks.columns[i]
            position = piece.column * problem.stride_width - problem.pad_left
            # What a vector of fewer pixels has behind them the next one stores.
            columns.x, columns.y, columns.lanes = position * 4, piece.column * 4, LANES if mixed and i + 1 < pieces.count else piece.lanes
            columns.masks, columns.masked = &pieces.masks[piece.masks], 0
            for tap in range(problem.kernel_width):
                if position < 0 or position + LANES * problem.stride_width > problem.width:
                    columns.masked |= 1 << min(tap, STRIP_TAPS)
                position += problem.dilation_width
        while mixed and stacks.count < PAIR_ACROSS:
            stacks.columns[stacks.count] = stacks.columns[stacks.count - 1]
            stacks.count += 1
        row = begin
        while row < end:
            image = x + row // problem.out_height * problem.x_strides[0] * 4
            out_image = y + row // problem.out_height * problem.y_strides[0] * 4
            top = row % problem.out_height
            last = top + min(problem.out_height - top, end - row)
            row += last - top
            for phase in range(min(phases, last - top)):
                rows = phase_from(problem, top + phase)
                stacks.pad, stacks.height = rows.pad, rows.height
                stacks.rows = divide_up(last - top - phase, phases)
                run(&stacks, limits, image + rows.first * problem.x_strides[1] * 4, out_image + (top + phase) * problem.y_strides[1] * 4)
        column = next_column
