# int8 and uint8 by filters of one row or one column, *lines*: `lines.h` has the kernel and says how it works; this is the plan of a call and the walk along the
# filter, beside those of pairs, whose constants and rescaling these are.

cdef enum:
    # Rows of cells of the longest filter; rows of outputs that a line along the columns goes side by side.
    LINE_CELLS = 16
    # Taps of which a cell holds those of two outputs.
    FEW_LINE_TAPS = 3
    LINE_ROWS = 8

cdef extern from "lines.h" nogil:
    enum:
        LINE_OUTPUTS
        LINE_CELL_BYTES
    PairsKernel lines_kernel(int rescaling, int few)


cdef bint prepare_lines(Pairs *job, const Problem *problem) noexcept nogil:
    """As prepare_pairs, for a filter of one row or one column."""
    cdef bint down = problem.kernel_width == 1
    cdef Py_ssize_t across = problem.out_width if down else problem.out_height, most
    cdef Py_ssize_t last = (across - 1) * (problem.stride_width if down else problem.stride_height)
    cdef Py_ssize_t size = problem.width if down else problem.height
    job.down = down
    job.window = False
    job.parts = 1
    job.pairs = 0
    job.taps = problem.kernel_height if down else problem.kernel_width
    job.stride = problem.stride_height if down else problem.stride_width
    if job.taps < 2 or (problem.kernel_height > 1 and not down) or job.stride > LINE_OUTPUTS:
        return False
    # Of fewer channels quads have several columns in a vector, where there are several.
    if problem.channels < (VECTOR_BYTES // 2 if problem.out_width > 1 else VECTOR_BYTES // 4):
        return False
    if job.stride > 1 and (problem.dilation_height if down else problem.dilation_width) > 1:
        return False
    # Across, every output lies on the image.
    if (problem.pad_left if down else problem.pad_top) != 0 or last >= size:
        return False
    job.rows = LINE_OUTPUTS
    job.entries = job.cells = divide_up(job.taps + (LINE_OUTPUTS - 1) * job.stride, GROUP)
    if job.cells > LINE_CELLS:
        return False
    most = RING_BYTES // (LINE_CELL_BYTES * job.cells)
    if not down:
        most = min(most, LINE_ROWS)
    # Halves of the places side by side share the lanes of what is left of the channels.
    if across > 1 and problem.channels >= VECTOR_BYTES // 2 and 0 < problem.channels % VECTOR_BYTES <= VECTOR_BYTES // 2:
        job.parts = 2
    job.between = between_of(problem)
    if problem.channels < VECTOR_BYTES:
        most *= job.parts
    job.columns = divide_up(across, divide_up(across, most)) if across else 1
    lay_out_pairs(job, problem)
    return True


cdef inline Tap tap_of_line(const Pairs *job, Py_ssize_t entry, Py_ssize_t row, Py_ssize_t tap) noexcept nogil:
    """As tap_of_window."""
    cdef Py_ssize_t place = entry * GROUP - row * job.stride + tap
    return Tap(place, 0) if job.down else Tap(0, place)


cdef void run_lines(const Problem *problem, PairsStrip *strip, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where filters have one row or one column; what is the same for all strips is there."""
    cdef const Pairs *job = <const Pairs *> (<const char *> problem.packed + HEADER_BYTES)
    cdef const PairsKernel *kernels = <const PairsKernel *> (job + 1)
    cdef int along = 1 if job.down else 2
    cdef Py_ssize_t dilation = problem.dilation_height if job.down else problem.dilation_width
    cdef Py_ssize_t pad = problem.pad_top if job.down else problem.pad_left, size = problem.height if job.down else problem.width
    cdef Py_ssize_t image, row, last, first, outputs, across, phase, position, column, columns, block, chunk, again
    strip.x_apart = strip.y_apart = strip.between = 0
    strip.stride = job.stride
    strip.cells = job.cells
    strip.taps_across = job.taps
    strip.cells_of_one = divide_up(job.taps, GROUP)
    strip.x_row = dilation * problem.x_strides[along]
    strip.y_row = dilation * problem.y_strides[along]
    strip.x_column = problem.x_strides[3 - along] * (problem.stride_width if job.down else problem.stride_height)
    strip.y_column = problem.y_strides[3 - along]
    chunk = BLOCK_ROWS_BYTES // max(1, problem.width * problem.channels * problem.stride_height)
    if not job.down:
        chunk = min(job.columns, max(1, chunk))
    elif job.blocks > 1:
        chunk = max(max(1, BLOCK_PIXELS // problem.width), chunk // LINE_OUTPUTS * LINE_OUTPUTS) * dilation
    else:
        chunk = problem.out_height
    while begin < end:
        image = begin // problem.out_height
        row = begin - image * problem.out_height
        last = min(min(problem.out_height, row + end - begin), row + chunk)
        begin += last - row
        first = row if job.down else 0
        outputs = last - row if job.down else problem.out_width
        across = problem.out_width if job.down else last
        for phase in range(min(dilation, outputs)):
            position = (first + phase) * job.stride - pad
            strip.first_row = steps_to(-position, dilation)
            strip.end_row = steps_to(size - position, dilation)
            column = 0 if job.down else row
            while column < across:
                columns = strip.columns = min(job.columns, across - column)
                strip.width = columns * LINE_CELL_BYTES
                strip.parts = 1
                strip.between = 0
                strip.x = <const signed char *> x + image * problem.x_strides[0] + position * problem.x_strides[along] + column * strip.x_column
                strip.y = <signed char *> y + image * problem.y_strides[0] + (first + phase) * problem.y_strides[along] + column * strip.y_column
                strip.block = <const vi32 *> (<const char *> problem.packed + job.weights)
                strip.stored = problem.channels
                strip.readable = problem.channels + problem.channel_room
                for block in range(job.blocks):
                    if overlaps(job, block):
                        strip.parts = 2
                        strip.x_apart = 0
                        strip.y_apart = strip.between = job.between
                    elif job.parts > 1 and block == job.blocks - 1:
                        strip.parts = <int> job.parts
                        strip.columns = columns_of_part(columns, 2)
                        strip.width = strip.columns * LINE_CELL_BYTES
                        # Of places.
                        strip.x_apart = columns - strip.columns
                        strip.y_apart = (columns - strip.columns) * strip.y_column
                    again = block * VECTOR_BYTES - channel_of_block(job, problem, block)
                    strip.x -= again
                    strip.y -= again
                    strip.stored += again
                    strip.readable += again
                    kernels[block](strip, steps_to(outputs - phase, dilation))
                    strip.x += VECTOR_BYTES
                    strip.y += VECTOR_BYTES
                    strip.block += job.block_vectors
                    strip.stored -= VECTOR_BYTES
                    strip.readable -= VECTOR_BYTES
                column += columns
