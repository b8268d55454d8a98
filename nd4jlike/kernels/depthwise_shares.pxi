# Planes in strips as calls and threads share them; and halves that have no strips, which become float32 a few planes at a time.

cdef enum:
    # Of float32 that halves become at a time, with the outputs. With fewer rows of a plane than these, most are rows around.
    WIDENED_BYTES = 64 << 10
    WIDENED_ROWS = 4
    # Planes for each thread, of fewer they share the rows; of others the planes: those of so many rows of outputs one by one, else a vector of many at a
    # time, or some.
    PLANES_EACH = 4
    TALL_PLANE = 64
    MANY_PLANES = 4 * LANES
    PLANES_TOGETHER = 4


# Halves that are float32 at a time: input channels, output rows, and bytes.
cdef struct Widened:
    Py_ssize_t channels, rows, x_bytes, y_bytes


cdef inline Py_ssize_t rows_below(const Problem *problem, Py_ssize_t rows) noexcept nogil:
    """Rows from the first to the last one that so many output rows read."""
    return (rows - 1) * problem.stride_height + (problem.kernel_height - 1) * problem.dilation_height + 1


# One axis of a part: where the image begins in it, how much of that there is, and what is outside before.
cdef struct Part:
    Py_ssize_t first, extent, pad


cdef inline Part part_of(Py_ssize_t position, Py_ssize_t reach, Py_ssize_t extent) noexcept nogil:
    """Of an image so long, what is there of `reach` rows or columns from a position on."""
    cdef Py_ssize_t last = max(min(extent, position + reach), 0)
    cdef Py_ssize_t first = min(max(position, 0), last)
    return Part(first, last - first, -min(position, 0))


cdef inline Part rows_of(const Problem *problem, Py_ssize_t top, Py_ssize_t rows) noexcept nogil:
    """What is there of the rows that so many output rows read, from one on."""
    return part_of(top * problem.stride_height - problem.pad_top, rows_below(problem, rows), problem.height)


cdef Widened widened_of(const Problem *problem) noexcept nogil:
    cdef Widened size = Widened(1, problem.out_height, 0, 0)
    # Strips take two planes at a time.
    cdef Py_ssize_t together = 2 if problem.channels > 1 else 1
    while True:
        size.x_bytes = min(problem.height, rows_below(problem, size.rows)) * problem.width * 4
        size.y_bytes = problem.multiplier * size.rows * problem.out_width * 4
        if together * (size.x_bytes + size.y_bytes) <= WIDENED_BYTES or size.rows <= WIDENED_ROWS:
            break
        size.rows = (size.rows + 1) // 2
    size.channels = max(1, min(problem.channels, WIDENED_BYTES // (size.x_bytes + size.y_bytes)))
    if 1 < size.channels < problem.channels:
        size.channels -= size.channels % (LANES if size.channels > LANES else together)
    size.x_bytes = divide_up(size.x_bytes * size.channels, VECTOR_BYTES) * VECTOR_BYTES
    size.y_bytes *= size.channels
    return size


cdef void widen(
    char *target, const char *source, Py_ssize_t planes, Py_ssize_t plane, Py_ssize_t rows, Py_ssize_t row, Py_ssize_t width, int element,
) noexcept nogil:
    """Halves, planes and rows so many bytes apart, to float32 side by side; the last vector is written whole."""
    cdef Py_ssize_t i
    if row == 2 * width:
        width, rows = width * rows, 1
    if rows == 1:
        planes, rows, row = 1, planes, plane
    for i in range(planes):
        widen_runs(<float *> target + i * rows * width, width, source + i * plane, row, rows, width, element)


cdef void narrow(
    char *target, const char *source, Py_ssize_t planes, Py_ssize_t plane, Py_ssize_t rows, Py_ssize_t row, Py_ssize_t width, int element,
) noexcept nogil:
    """And back."""
    cdef Py_ssize_t i
    if row == 2 * width:
        width, rows = width * rows, 1
    if rows == 1:
        planes, rows, row = 1, planes, plane
    for i in range(planes):
        narrow_runs(target + i * plane, row, <const float *> source + i * rows * width, width, rows, width, element)


cdef void run_widened(
    const Problem *problem, const Problem *all, Py_ssize_t lead, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    """As run_strips, of halves: some planes, or rows of one, become float32 and the results halves again. There is scratch for as many as all planes have at
    a time: three of them may be more than two."""
    cdef Widened size = widened_of(all)
    cdef Problem wide = problem[0]
    cdef Py_ssize_t image, top, rows, channel, count
    cdef Part down
    cdef const Py_ssize_t *x_strides = &problem.x_strides[0]
    cdef const Py_ssize_t *y_strides = &problem.y_strides[0]
    wide.element = FLOAT32
    wide.batch = 1
    wide.x_strides = [0, problem.width, 1, 0]
    wide.y_strides = [0, problem.out_width, 1, 0]
    while begin < end:
        image = begin // problem.out_height
        top = begin % problem.out_height
        rows = min(min(size.rows, problem.out_height - top), end - begin)
        down = rows_of(problem, top, rows)
        wide.height, wide.pad_top, wide.out_height = down.extent, down.pad, rows
        wide.x_strides[3] = wide.height * problem.width
        wide.y_strides[3] = rows * problem.out_width
        channel = 0
        while channel < problem.channels:
            count = min(size.channels, problem.channels - channel)
            wide.channels = count
            widen(
                scratch, x + (image * x_strides[0] + down.first * x_strides[1] + channel * x_strides[3]) * 2,
                count, x_strides[3] * 2, wide.height, x_strides[1] * 2, problem.width, problem.element,
            )
            run_strips_or_turned(&wide, lead + channel * problem.multiplier, scratch, scratch + size.x_bytes, 0, rows)
            narrow(
                y + (image * y_strides[0] + top * y_strides[1] + channel * problem.multiplier * y_strides[3]) * 2, scratch + size.x_bytes,
                count * problem.multiplier, y_strides[3] * 2, rows, y_strides[1] * 2, problem.out_width, problem.element,
            )
            channel += count
        begin += rows


cdef void run_some_planes(
    const Problem *problem, const Problem *all, Py_ssize_t lead, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    if has_strips(problem):
        run_strips_or_turned(problem, lead, x, y, begin, end)
    else:
        run_widened(problem, all, lead, x, y, scratch, begin, end)


cdef Py_ssize_t plane_at(const Problem *problem, Py_ssize_t row) noexcept nogil:
    """The first plane that threads do who begin at an output row, in their share of the planes."""
    cdef Py_ssize_t together = 1 if problem.out_height >= TALL_PLANE else PLANES_TOGETHER
    if is_turned(problem) or (together > 1 and problem.channels >= MANY_PLANES):
        together = LANES
    return problem.channels if row == problem.out_height else problem.channels * row // problem.out_height // together * together


cdef void run_share(const Problem *problem, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """As run_strips, or of halves that are widened: where there are many planes all rows of some of them, as strips begin anew with each plane."""
    cdef Py_ssize_t itemsize = item_bytes(problem.element), image, row, last, first
    cdef Problem some = problem[0]
    if not problem.shared or problem.channels < PLANES_EACH * problem.shared:
        run_some_planes(problem, problem, 0, x, y, scratch, begin, end)
        return
    while begin < end:
        image, row = begin // problem.out_height, begin % problem.out_height
        last = min(problem.out_height, row + end - begin)
        first = plane_at(problem, row)
        some.channels = plane_at(problem, last) - first
        if some.channels:
            run_some_planes(
                &some, problem, first * problem.multiplier, x + first * problem.x_strides[3] * itemsize,
                y + first * problem.multiplier * problem.y_strides[3] * itemsize, scratch, image * problem.out_height, (image + 1) * problem.out_height,
            )
        begin += last - row
