# The cells of quads (`depthwise_quads.pxi`) made of pixels: the same columns of a few input rows side by side, as they follow each other or split by the step.


cdef void blank_out(char *target, vi32 blank, Py_ssize_t count, Py_ssize_t plane) noexcept nogil:
    """Cells of `count` channels, in whole vectors."""
    cdef Py_ssize_t done = 0
    cdef int i
    while done < count:
        for i in range(CELL_PLANES):
            (<vi32 *> (target + done * CELL + i * plane))[0] = blank
        done += LANES


cdef void fill_group(
    const Quads *job, const Problem *problem, char *cells, const char *image, Py_ssize_t tap, Py_ssize_t row, Py_ssize_t column, Py_ssize_t columns,
    Py_ssize_t channels, vi32 blank,
) noexcept nogil:
    """The cells of input columns `column` on of the group that starts at row `tap` of the filter, input row `row`; `channels` of a pixel are
    read."""
    cdef Py_ssize_t low = max(0, -problem.halo[2] - column), high = max(0, min(columns, problem.width + problem.halo[3] - column))
    cdef Py_ssize_t i, done, rest, plane = job.plane, pixel = job.pixel, move = problem.x_strides[2]
    cdef Py_ssize_t reach = problem.kernel_height + (job.rows - 1) * problem.stride_height
    cdef const signed char *at[4]
    cdef Py_ssize_t moves[4]
    cdef int flip = flip_of(problem.element)
    # Side by side, pixels are one run of bytes.
    cdef bint run = job.ordered and pixel == move and pixel <= channels
    low = min(low, high)
    if run:
        move = VECTOR_BYTES
    for i in range(GROUP):
        at[i] = <const signed char *> problem.packed + job.padding
        moves[i] = 0
        if tap < reach and -problem.halo[0] <= row < problem.height + problem.halo[1]:
            at[i] = <const signed char *> image + row * problem.x_strides[1] + (column + low) * problem.x_strides[2]
            moves[i] = move
        row += problem.dilation_height
        tap += 1
    blank_out(cells, blank, low * pixel, plane)
    if run:
        rest = (high - low) * pixel
        done = low * pixel
        while rest > 0:
            interleave(cells + done * CELL, plane, at[0], at[1], at[2], at[3], flip, rest, True)
            for i in range(GROUP):
                at[i] += moves[i]
            rest -= VECTOR_BYTES
            done += VECTOR_BYTES
    elif not job.ordered:
        for done in range(low, high):
            interleave(cells + done * VECTOR_BYTES * CELL, plane, at[0], at[1], at[2], at[3], flip, VECTOR_BYTES, False)
            for i in range(GROUP):
                at[i] += moves[i]
    else:
        for done in range(low, high):
            interleave(cells + done * pixel * CELL, plane, at[0], at[1], at[2], at[3], flip, channels, True)
            for i in range(GROUP):
                at[i] += moves[i]
    blank_out(cells + high * pixel * CELL, blank, (columns - high) * pixel, plane)


cdef inline void copy_pixels(
    char *target, const char *source, Py_ssize_t pixel, Py_ssize_t move, Py_ssize_t count, const Py_ssize_t size,
) noexcept nogil:
    """Pixels `move` bytes apart, side by side; `size` bytes of each are copied, of which the next one covers what is too much."""
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(target, source, size)
        target += pixel
        source += move


cdef void split_row(
    const Quads *job, const Problem *problem, char *target, const char *source, Py_ssize_t low, Py_ssize_t high, Py_ssize_t columns,
) noexcept nogil:
    """A row of the input, from its first column on, as one run of every column that the step divides, one of those after them, and so on. Columns before
    `low` and from `high` on are outside the image."""
    cdef Py_ssize_t phase, first, end, all, whole, pixel = job.pixel, move = problem.x_strides[2], step = job.phases
    cdef int outside = (<const unsigned char *> problem.packed + job.padding)[0]
    cdef Py_ssize_t size = 8 if pixel <= 8 else 16 if pixel <= 16 else pixel
    # Columns from which on as many bytes do not end before the row does.
    cdef Py_ssize_t fast = high - divide_up(size - pixel, move) if move >= pixel else 0
    for phase in range(step):
        all = divide_up(columns - phase, step)
        first = min(all, divide_up(max(low - phase, 0), step))
        end = max(first, divide_up(max(high - phase, 0), step))
        whole = min(end, max(first, divide_up(max(fast - phase, 0), step)))
        memset(target, outside, first * pixel)
        source += (phase + first * step) * move
        target += first * pixel
        if size == 8:
            copy_pixels(target, source, pixel, step * move, whole - first, 8)
        elif size == 16:
            copy_pixels(target, source, pixel, step * move, whole - first, 16)
        else:
            whole = first
        target += (whole - first) * pixel
        copy_pixels(target, source + (whole - first) * step * move, pixel, step * move, end - whole, pixel)
        source -= (phase + first * step) * move
        target += (end - whole) * pixel
        memset(target, outside, (all - end) * pixel)
        target += job.phase - end * pixel


cdef void split_group(
    const Quads *job, const Problem *problem, char *cells, const char *image, Py_ssize_t tap, Py_ssize_t row, Py_ssize_t column, Py_ssize_t columns,
) noexcept nogil:
    """What fill_group does, of columns split by the step."""
    cdef char memory[STRIP_BYTES + 64]
    cdef Py_ssize_t low = max(0, -problem.halo[2] - column), high = max(0, min(columns, problem.width + problem.halo[3] - column))
    cdef Py_ssize_t i, done = 0, plane = job.plane, pitch = plane // CELL
    cdef Py_ssize_t reach = problem.kernel_height + (job.rows - 1) * problem.stride_height
    cdef int flip = flip_of(problem.element)
    cdef const signed char *rows = <const signed char *> memory
    for i in range(GROUP):
        if tap < reach and -problem.halo[0] <= row < problem.height + problem.halo[1] and low < high:
            split_row(
                job, problem, memory + i * pitch, image + row * problem.x_strides[1] + column * problem.x_strides[2], low, high, columns)
        else:
            memset(memory + i * pitch, (<const unsigned char *> problem.packed + job.padding)[0], pitch)
        row += problem.dilation_height
        tap += 1
    while done < job.phases * job.phase:
        interleave(
            cells + done * CELL, plane, rows + done, rows + pitch + done, rows + 2 * pitch + done, rows + 3 * pitch + done, flip, VECTOR_BYTES, True)
        done += VECTOR_BYTES


cdef void fill_cells(
    const Quads *job, const Problem *problem, const Strip *strip, char *cells, const char *image, Py_ssize_t row, Py_ssize_t column, Py_ssize_t columns,
    Py_ssize_t channels, vi32 blank,
) noexcept nogil:
    """The cells of input columns `column` on of a strip's groups; the first of all starts at input row `row`; `channels` of a pixel are read."""
    cdef Py_ssize_t group
    row += strip.first_group * GROUP * problem.dilation_height
    for group in range(strip.first_group, strip.end_group):
        if SPLITS and job.phases > 1:
            split_group(job, problem, cells + group * CELL_PLANES * job.plane, image, group * GROUP, row, column, columns)
        else:
            fill_group(job, problem, cells + group * CELL_PLANES * job.plane, image, group * GROUP, row, column, columns, channels, blank)
        row += GROUP * problem.dilation_height
