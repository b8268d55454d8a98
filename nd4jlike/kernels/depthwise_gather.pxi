# int8 and uint8 with a step along the row over pixels of few channels: `gather.h` has the kernel and says how it works; this is the plan of a call and the walk
# over the image, beside those of pairs, whose constants and rescaling these are. The QUADS sums of a block are those of four places along the row, of the same
# channels: a block is a vector of the channels of a pixel, or of `together` pixels.

cdef enum:
    # Bytes of rows that a call keeps, what it aims at; rows.
    GATHER_ROOM = 64 << 10
    GATHER_AIM = 16 << 10
    GATHER_ROWS = 64

cdef extern from "gather.h" nogil:
    enum:
        GATHERS
        GATHER_TAPS
        GATHER_BLOCKS
        GATHER_LEAST
        GATHER_WIDTH
    bint gather_order(int lanes, int outputs, int multiplier, int first, Py_ssize_t step, Py_ssize_t apart, Py_ssize_t taps, signed char *how)
    PairsKernel gather_kernel(int rescaling, int few, int beside)
    void gather_copy(signed char *target, const signed char *source, Py_ssize_t count, int flip)


cdef inline Py_ssize_t gathered_first(const Problem *problem, Py_ssize_t block) noexcept nogil:
    """The first output channel of a block; the last one overlaps the one before."""
    return max(0, min(block * LANES, problem.channels * problem.multiplier - LANES))


cdef inline Py_ssize_t gathered_channel(const Problem *problem, Py_ssize_t block, Py_ssize_t lane) noexcept nogil:
    return (gathered_first(problem, block) + lane) % (problem.channels * problem.multiplier)


cdef bint gather_block(const Pairs *job, const Problem *problem, Py_ssize_t block, signed char *how) noexcept nogil:
    """How lanes of a block take their taps, and whether they can."""
    cdef Py_ssize_t outputs = problem.channels * problem.multiplier, pixel = problem.x_strides[2]
    return gather_order(
        <int> min(LANES, job.together * outputs), <int> outputs, <int> problem.multiplier, <int> gathered_first(problem, block),
        problem.stride_width * pixel, problem.dilation_width * pixel, job.taps, how)


cdef inline Py_ssize_t gathered_width(const Pairs *job, const Problem *problem, Py_ssize_t columns) noexcept nogil:
    """Bytes of a row; four vectors at a time may reach beyond the last column, and cells beyond the last tap."""
    cdef Py_ssize_t reach = (columns + 4 * job.together) * problem.stride_width + (problem.kernel_width + GATHER_TAPS) * problem.dilation_width
    return divide_up(reach * problem.x_strides[2] + 2 * VECTOR_BYTES, 64) * 64


cdef inline Py_ssize_t gathered_room(const Pairs *job, const Problem *problem, Py_ssize_t columns) noexcept nogil:
    """Bytes of all rows: those that a filter reaches, one outside the image, one of results."""
    cdef Py_ssize_t outputs = problem.channels * problem.multiplier
    return (job.pairs + 1) * gathered_width(job, problem, columns) + (columns + 4 * job.together) * outputs + VECTOR_BYTES


cdef bint prepare_gathered(Pairs *job, const Problem *problem) noexcept nogil:
    """Whether a problem is computed here, and how."""
    cdef Py_ssize_t outputs = problem.channels * problem.multiplier, block
    cdef Py_ssize_t taps = problem.kernel_height if problem.kernel_width == 1 else problem.kernel_width
    cdef signed char how[128]
    if not GATHERS or (WINDOWS and job.wide) or problem.stride_width < 2 or problem.out_width < 1 or problem.channels < 1:
        return False
    if (problem.x_strides[3] != 1 and problem.channels > 1) or (problem.y_strides[3] != 1 and outputs > 1) or problem.x_strides[2] < problem.channels:
        return False
    job.pairs = (problem.kernel_height - 1) * problem.dilation_height + 1
    job.blocks = divide_up(outputs, LANES)
    if job.pairs > GATHER_ROWS or job.blocks > GATHER_BLOCKS or problem.x_strides[2] > 4 * VECTOR_BYTES or not GATHER_LEAST <= taps <= GATHER_WIDTH:
        return False
    job.gathered = True
    job.spread = job.apart = job.window = job.beside = False
    job.flat = True
    job.cells = job.between = 0
    job.rows = job.parts = 1
    job.taps = problem.kernel_width
    job.groups = divide_up(problem.kernel_width, GROUP)
    job.entries = problem.kernel_height * job.groups
    job.together = max(1, LANES // outputs)
    for block in range(job.blocks):
        while not gather_block(job, problem, block, how):
            if job.together == 1:
                if WINDOWS or problem.multiplier > 1:
                    return False
                job.beside = True
                break
            job.together -= 1
    job.columns = problem.out_width
    while job.columns > 4 * job.together and gathered_room(job, problem, job.columns) > GATHER_AIM:
        job.columns = divide_up(divide_up(job.columns, 2), 4 * job.together) * 4 * job.together
    if gathered_room(job, problem, job.columns) > GATHER_ROOM:
        return False
    lay_out_pairs(job, problem)
    job.block_vectors += 2
    return True


cdef void run_gathered(const Problem *problem, PairsStrip *strip, char *memory, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where taps of a row are gathered; what is the same for all strips is there."""
    cdef const Pairs *job = <const Pairs *> (<const char *> problem.packed + HEADER_BYTES)
    cdef const PairsKernel *kernels = <const PairsKernel *> (job + 1)
    cdef Py_ssize_t outputs = problem.channels * problem.multiplier, pixel = problem.x_strides[2], width = gathered_width(job, problem, job.columns)
    cdef Py_ssize_t image, row, last, column, columns, x_column, low, high, inside, x_row, tap, slot, block, i
    cdef const char *entries[GATHER_ROWS]
    # The input row of each row of bytes.
    cdef Py_ssize_t made[GATHER_ROWS]
    cdef signed char *rows = <signed char *> memory
    cdef signed char *outside = rows + job.pairs * width
    cdef char *results = <char *> outside + width
    cdef char *target
    cdef int blank = strip.blank[0] ^ INPUT_OFFSET ^ strip.flip
    strip.entries = entries
    strip.wide = job.beside
    strip.taps_across = divide_up(problem.kernel_width, GATHER_TAPS)
    strip.cells = job.groups * QUADS * CELL_PLANES
    strip.weights = job.entries * QUADS * CELL_PLANES
    strip.x_column = problem.dilation_width * pixel
    strip.x_apart = job.together * problem.stride_width * pixel
    strip.y_apart = job.together * outputs
    while begin < end:
        image = begin // problem.out_height
        row = begin - image * problem.out_height
        last = min(problem.out_height, row + end - begin)
        begin += last - row
        column = 0
        while column < problem.out_width:
            columns = min(job.columns, problem.out_width - column)
            strip.columns = divide_up(columns, job.together)
            x_column = column * problem.stride_width - problem.pad_left
            high = (columns - 1) * problem.stride_width + (problem.kernel_width - 1) * problem.dilation_width + 1
            low = min(max(0, -x_column), high)
            high = min(high, problem.width - x_column)
            inside = (high - low - 1) * pixel + problem.channels if high > low else 0
            # What is outside the image stays as it is.
            memset(rows, blank, (job.pairs + 1) * width)
            memset(made, -1, sizeof(made))
            for i in range(row, last):
                x_row = i * problem.stride_height - problem.pad_top
                for tap in range(problem.kernel_height):
                    entries[tap] = <const char *> outside
                    if 0 <= x_row < problem.height:
                        slot = <unsigned int> x_row % <unsigned int> job.pairs
                        entries[tap] = <const char *> rows + slot * width
                        if made[slot] != x_row:
                            made[slot] = x_row
                            gather_copy(
                                rows + slot * width + low * pixel,
                                <const signed char *> x + image * problem.x_strides[0] + x_row * problem.x_strides[1] + (x_column + low) * pixel, inside,
                                strip.flip)
                    x_row += problem.dilation_height
                strip.block = <const vi32 *> (<const char *> problem.packed + job.weights)
                for block in range(job.blocks):
                    strip.y = <signed char *> results + gathered_first(problem, block)
                    strip.between = gathered_first(problem, block) // problem.multiplier
                    kernels[block](strip, problem.kernel_height)
                    strip.block += job.block_vectors
                target = y + image * problem.y_strides[0] + i * problem.y_strides[1] + column * problem.y_strides[2]
                if problem.y_strides[2] == outputs:
                    memcpy(target, results, columns * outputs)
                else:
                    for tap in range(columns):
                        memcpy(target + tap * problem.y_strides[2], results + tap * outputs, outputs)
            column += columns
