# int8 and uint8 with several filters for each of a few channels: `spread.h` has the kernel and says how it works; this is the plan of a call and the walk over
# the image, beside those of pairs, whose constants and rescaling these are.
#
# Rows of cells are kept as long as a filter reaches them, in the order of the outputs: cell j*channels + c has the taps that output column j has in
# channel c. A block is 64 outputs, with cells of their own: outputs without a gap are one run, and blocks repeat; else each column has blocks.

cdef enum:
    # Bytes of cells that a call keeps; what it aims at.
    SPREAD_BYTES = 72 << 10
    SPREAD_AIM = 18 << 10
    # Cells of one output; rows of cells; rows of outputs that are computed together, after all their cells: what was just written cannot be read at once.
    SPREAD_ENTRIES = 64
    SPREAD_ROWS = 64
    SPREAD_TOGETHER = 4
    # Of runs: blocks before they repeat.
    SPREAD_BLOCKS = 8
    # Of columns: output channels from which on a block is worth it.
    SPREAD_CHANNELS = VECTOR_BYTES * 5 // 8

cdef extern from "spread.h" nogil:
    void spread_cells(
        const signed char *row, Py_ssize_t at, Py_ssize_t bytes, Py_ssize_t count, Py_ssize_t x_step, Py_ssize_t step, const vbytes *constants, int flip,
        char *target)
    PairsKernel spread_kernel(int rescaling, int fours, Py_ssize_t entries)


cdef bint gather_cells(const Problem *problem, Py_ssize_t columns, int *words, signed char *taps) noexcept nogil:
    """Whether the cells of so many columns come out of one vector of bytes: those of four lanes out of four words. Which words, and which bytes of them."""
    cdef Py_ssize_t lane, tap, i, at, pixel = problem.x_strides[2], used = 0
    memset(words, 0, VECTOR_BYTES)
    for lane in range(LANES):
        if lane % 4 == 0:
            used = 0
        for tap in range(GROUP):
            taps[lane * GROUP + tap] = 0
            if lane >= columns * problem.channels or tap >= problem.kernel_width:
                continue
            at = (lane // problem.channels * problem.stride_width + tap * problem.dilation_width) * pixel + lane % problem.channels
            i = 0
            while i < used and words[lane // 4 * 4 + i] != at // 4:
                i += 1
            if i == 4 or at >= VECTOR_BYTES:
                return False
            words[lane // 4 * 4 + i] = <int> (at // 4)
            used = max(used, i + 1)
            taps[lane * GROUP + tap] = <signed char> (i * 4 + at % 4)
    return True


cdef inline Py_ssize_t spread_width(const Pairs *job, const Problem *problem, Py_ssize_t columns) noexcept nogil:
    """Bytes of a row of cells; lanes may read beyond the last one."""
    return divide_up(divide_up(columns, job.together) * job.together * problem.channels * CELL + 2 * VECTOR_BYTES, 64) * 64


cdef bint prepare_spread(Pairs *job, const Problem *problem) noexcept nogil:
    """Whether a problem is computed here, and how."""
    cdef Py_ssize_t outputs = problem.channels * problem.multiplier, unit = 1, rows
    cdef int words[64]
    cdef signed char taps[64]
    if not WINDOWS or problem.multiplier % 2 or problem.channels > LANES or problem.x_strides[2] < problem.channels or problem.out_width < 1:
        return False
    if (problem.x_strides[3] != 1 and problem.channels > 1) or problem.y_strides[3] != 1:
        return False
    job.spread = True
    job.fours = problem.multiplier == 8 or problem.multiplier == 16
    job.window = False
    job.rows = job.parts = 1
    job.groups = divide_up(problem.kernel_width, GROUP)
    job.entries = problem.kernel_height * job.groups
    job.pairs = (problem.kernel_height - 1) * problem.dilation_height + 1 + (SPREAD_TOGETHER - 1) * problem.stride_height
    if job.entries > SPREAD_ENTRIES or job.pairs >= SPREAD_ROWS:
        return False
    job.blocks = outputs // common_divisor(outputs, VECTOR_BYTES)
    job.flat = problem.y_strides[2] == outputs and job.blocks <= SPREAD_BLOCKS
    # Picked, quads share their cells between two rows of outputs.
    if job.flat and not job.fours and (problem.stride_width == 1 or job.groups > 1) and outputs < 2 * VECTOR_BYTES:
        return False
    if job.flat:
        unit = VECTOR_BYTES // common_divisor(outputs, VECTOR_BYTES)
    elif outputs < SPREAD_CHANNELS:
        return False
    else:
        job.blocks = divide_up(outputs, VECTOR_BYTES)
    job.together = LANES // problem.channels
    while not gather_cells(problem, job.together, words, taps):
        job.together -= 1
        if job.together == 0:
            return False
    job.columns = problem.out_width
    rows = job.pairs * job.groups + 1
    while job.columns > unit and spread_width(job, problem, job.columns) * rows > SPREAD_AIM:
        job.columns = divide_up(divide_up(job.columns, 2), unit) * unit
    lay_out_pairs(job, problem)
    # Which cells lanes pick, and where those of a block are; before the blocks, what makes cells, and the order of the outputs.
    job.block_vectors += 3
    job.weights += 3 * VECTOR_BYTES
    return spread_width(job, problem, job.columns) * rows <= SPREAD_BYTES


cdef inline Py_ssize_t spread_place(const Pairs *job, const Problem *problem, Py_ssize_t quad, Py_ssize_t lane) noexcept nogil:
    """The output of a block that a lane of one of the QUADS sums is; that of the next sum is the next one."""
    if not job.fours:
        return quad // 2 * 2 * LANES + lane * 2 + quad % 2
    if problem.multiplier == 8:
        return (quad // 2 * 4 + lane % 4) * 8 + lane // 4 * 2 + quad % 2
    return lane % 4 * 16 + lane // 4 * 4 + quad


cdef inline Tap tap_of_spread(const Pairs *job, Py_ssize_t entry, Py_ssize_t tap) noexcept nogil:
    """As tap_of_window."""
    return Tap(entry // job.groups, entry % job.groups * GROUP + tap)


cdef void pack_spread(const Pairs *job, const Problem *problem, char *packed) noexcept nogil:
    """What is beside the constants of pairs."""
    cdef int *picks
    cdef short *order = <short *> (packed + job.padding + 3 * VECTOR_BYTES)
    cdef Py_ssize_t index, quad, lane, place, first
    gather_cells(problem, job.together, <int *> (packed + job.padding + VECTOR_BYTES), <signed char *> (packed + job.padding + 2 * VECTOR_BYTES))
    for quad in range(0, QUADS, 2):
        for lane in range(LANES):
            order[spread_place(job, problem, quad, lane) // 2] = <short> (lane // 4 * 8 + quad // 2 * 4 + lane % 4)
    for index in range(job.blocks):
        picks = <int *> (packed + job.weights) + ((index + 1) * job.block_vectors - 3) * LANES
        first = 0
        for quad in range(0, QUADS, 2):
            # Where the first two of the QUADS pick, and how far from there the others.
            place = (index * VECTOR_BYTES + spread_place(job, problem, quad, 0)) // problem.multiplier
            picks[2 * LANES + quad // 2] = <int> ((place - first) * CELL)
            first = place
            for lane in range(LANES):
                picks[quad // 2 * LANES + lane] = <int> ((index * VECTOR_BYTES + spread_place(job, problem, quad, lane)) // problem.multiplier - place)


cdef void run_spread(const Problem *problem, PairsStrip *strip, char *cells, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where several filters read a channel; what is the same for all strips is there."""
    cdef const Pairs *job = <const Pairs *> (<const char *> problem.packed + HEADER_BYTES)
    cdef const PairsKernel *kernels = <const PairsKernel *> (job + 1)
    cdef const vbytes *constants = <const vbytes *> strip.blank
    cdef Py_ssize_t outputs = problem.channels * problem.multiplier, width = spread_width(job, problem, job.columns)
    cdef Py_ssize_t pixel = problem.x_strides[2], x_step = job.together * problem.stride_width * pixel, step = job.together * problem.channels * CELL
    cdef Py_ssize_t bytes_of_row = (problem.width - 1) * pixel + problem.channels
    cdef Py_ssize_t image, row, rows, first, last, column, columns, gathers, vectors, turns, tap, group, turn, next_row, x_row, at, slot, block
    cdef const char *entries[SPREAD_ENTRIES * SPREAD_TOGETHER]
    cdef const char **entry
    cdef char *target
    cdef bint exists
    # The input row of each row of cells.
    cdef Py_ssize_t made[SPREAD_ROWS]
    cdef char *outside = cells + job.pairs * job.groups * width
    strip.entries = entries
    strip.cells = job.entries
    strip.twos = constants + 3
    strip.width = job.blocks * VECTOR_BYTES // problem.multiplier * CELL if job.flat else problem.channels * CELL
    strip.y_row = problem.y_strides[1]
    strip.y_column = job.blocks * VECTOR_BYTES if job.flat else problem.y_strides[2]
    strip.less = strip.y_column if job.flat else 0
    spread_cells(<const signed char *> x, 0, 0, divide_up(job.columns, job.together), 0, step, constants, strip.flip, outside)
    while begin < end:
        image = begin // problem.out_height
        first = begin - image * problem.out_height
        last = min(problem.out_height, first + end - begin)
        begin += last - first
        column = 0
        while column < problem.out_width:
            columns = min(job.columns, problem.out_width - column)
            gathers = divide_up(columns, job.together)
            vectors = divide_up(columns * outputs, VECTOR_BYTES)
            turns = vectors // job.blocks
            for slot in range(job.pairs):
                made[slot] = -1
            row = first
            turn = 0
            while row < last:
                rows = min(SPREAD_TOGETHER, last - row)
                entry = entries
                for next_row in range(row, row + rows):
                    x_row = next_row * problem.stride_height - problem.pad_top
                    slot = turn
                    turn += problem.stride_height
                    if turn >= job.pairs:
                        turn -= job.pairs
                    for tap in range(problem.kernel_height):
                        exists = 0 <= x_row < problem.height
                        target = cells + slot * job.groups * width if exists else outside
                        for group in range(job.groups):
                            entry[0] = target
                            entry += 1
                            if not exists:
                                continue
                            if made[slot] != x_row:
                                at = column * problem.stride_width - problem.pad_left + group * GROUP * problem.dilation_width
                                spread_cells(
                                    <const signed char *> (x + image * problem.x_strides[0] + x_row * problem.x_strides[1]), at * pixel, bytes_of_row,
                                    gathers, x_step, step, constants, strip.flip, target)
                            target += width
                        if exists:
                            made[slot] = x_row
                        x_row += problem.dilation_height
                        slot += problem.dilation_height
                        if slot >= job.pairs:
                            slot -= job.pairs
                strip.block = <const vi32 *> (<const char *> problem.packed + job.weights)
                strip.y = <signed char *> y + image * problem.y_strides[0] + row * problem.y_strides[1] + column * problem.y_strides[2]
                strip.stored = columns * outputs if job.flat else outputs
                for block in range(job.blocks):
                    strip.columns = turns + (block < vectors - turns * job.blocks) if job.flat else columns
                    kernels[block](strip, rows)
                    strip.block += job.block_vectors
                    strip.y += VECTOR_BYTES
                    strip.stored -= VECTOR_BYTES
                row += rows
            column += columns
