# Planes of float32 and of halves, as in NCHW, by any filter with any step: rows of a plane are copied into scratch with zeros around, as float32, their columns
# split by the step along the row (staged.h). Weights that are not finite go through bands instead.

cdef extern from "staged.h" nogil:
    enum:
        STAGED_VECTORS
        STAGED_ROWS
    ctypedef struct StagedTile:
        Py_ssize_t taps_down, taps_across
        const Py_ssize_t *offsets
        Py_ssize_t x_tap, x_row, y_row, step, rows, lanes
    ctypedef void (*RunStaged)(const StagedTile *tile, const vf32 *limits, const float *block, const char *x, char *y) noexcept nogil
    ctypedef struct StagedChoice:
        Py_ssize_t rows
        RunStaged run
    StagedChoice staged_for(Py_ssize_t vectors, Py_ssize_t rows)
    enum:
        PICKED_STEPS
    void stage_rows(
        char *target, Py_ssize_t row, const char *x, Py_ssize_t x_row, Py_ssize_t rows, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t count, Py_ssize_t step,
        const vi32 *picks)

cdef enum:
    # Output columns at a time, and what the scratch of some rows of them aims at.
    STAGED_COLUMNS = 512
    STAGED_BYTES = 64 << 10


cdef struct Stage:
    # Output rows and columns at a time.
    Py_ssize_t rows, columns
    # Columns apart by the step lie side by side: columns of the image modulo the step that there are, each `pitch` floats; bytes of a row of all.
    Py_ssize_t phases, pitch, row_bytes
    # Bytes: rows of inputs; of halves, rows of the image as float32, and outputs.
    Py_ssize_t x_bytes, line_bytes, y_bytes
    Py_ssize_t phase[STAGED_TAPS]
    Py_ssize_t offsets[STAGED_TAPS]


cdef void prepare_stage(Stage *stage, const Problem *problem) noexcept nogil:
    cdef Py_ssize_t step = problem.stride_width, tap, place, column
    stage.columns = min(problem.out_width, STAGED_COLUMNS)
    stage.pitch = divide_up(divide_up(stage.columns, LANES) * LANES + (problem.kernel_width - 1) * problem.dilation_width // step, LANES) * LANES
    stage.phases = 0
    for tap in range(problem.kernel_width):
        column = tap * problem.dilation_width
        place = 0
        while place < stage.phases and stage.phase[place] != column % step:
            place += 1
        if place == stage.phases:
            stage.phase[place] = column % step
            stage.phases += 1
        stage.offsets[tap] = (place * stage.pitch + column // step) * 4
    stage.row_bytes = stage.phases * stage.pitch * 4
    stage.rows = divide_up(problem.out_height, STAGED_ROWS) * STAGED_ROWS
    while True:
        stage.x_bytes = rows_below(problem, stage.rows) * stage.row_bytes
        stage.line_bytes = rows_below(problem, stage.rows) * stage.pitch * step * 4 + VECTOR_BYTES if problem.element != FLOAT32 else 0
        stage.y_bytes = stage.rows * stage.pitch * 4 if problem.element != FLOAT32 else 0
        if stage.x_bytes + stage.line_bytes + stage.y_bytes <= STAGED_BYTES or stage.rows == STAGED_ROWS:
            break
        stage.rows = divide_up(stage.rows // 2, STAGED_ROWS) * STAGED_ROWS


cdef Py_ssize_t scratch_bytes_staged(const Problem *problem) noexcept nogil:
    cdef Stage stage
    prepare_stage(&stage, problem)
    return stage.x_bytes + stage.line_bytes + stage.y_bytes


cdef void stage_plane(
    const Stage *stage, const Problem *problem, const vi32 *picks, char *target, char *lines, const char *plane, Py_ssize_t first, Py_ssize_t rows,
    Py_ssize_t position,
) noexcept nogil:
    """Rows of a plane from a row and a column on, which may be outside."""
    cdef Py_ssize_t step = problem.stride_width, line = stage.pitch * step, top = min(max(-first, 0), rows), last = min(rows, problem.height - first)
    cdef Py_ssize_t begin = max(-position, 0), end = min(problem.width - position, line), x_row = problem.x_strides[1] * 4, place, row, i, low, high
    cdef const char *x
    cdef const float *cells
    cdef float *split
    if begin >= end or top >= last:
        top = last = rows
    memset(target, 0, top * stage.row_bytes)
    memset(target + last * stage.row_bytes, 0, (rows - last) * stage.row_bytes)
    target += top * stage.row_bytes
    x = plane + ((first + top) * problem.x_strides[1] + position) * item_bytes(problem.element)
    if problem.element != FLOAT32:
        x_row = line * 4
        widen_runs(<float *> lines + begin, line, x + begin * 2, problem.x_strides[1] * 2, last - top, end - begin, problem.element)
        x = lines
    for place in range(stage.phases):
        if step <= PICKED_STEPS:
            stage_rows(
                target + place * stage.pitch * 4, stage.row_bytes, x + stage.phase[place] * 4, x_row, last - top, begin - stage.phase[place],
                end - stage.phase[place], stage.pitch, step, picks,
            )
            continue
        low = divide_up(begin - stage.phase[place], step)
        high = min(stage.pitch, divide_up(end - stage.phase[place], step))
        for row in range(last - top):
            split = <float *> (target + row * stage.row_bytes) + place * stage.pitch
            cells = <const float *> (x + row * x_row) + stage.phase[place]
            memset(split, 0, stage.pitch * 4)
            for i in range(low, high):
                split[i] = cells[i * step]


cdef void run_staged(const Problem *problem, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height; weights are packed as for bands."""
    cdef const float *blocks = <const float *> (<const char *> problem.packed + HEADER_BYTES)
    cdef const float *block
    cdef Py_ssize_t block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width
    cdef Py_ssize_t itemsize = item_bytes(problem.element), step = problem.stride_width
    cdef Py_ssize_t image, top, rows, column, columns, channel, output, first, row, done, vectors, together, i, k, source
    cdef char *sums
    cdef char *target
    cdef const char *plane
    cdef vf32 limits[2]
    cdef vi32 picks[PICKED_STEPS]
    cdef Stage stage
    cdef StagedTile tile
    cdef StagedChoice choice
    prepare_stage(&stage, problem)
    sums = scratch + stage.x_bytes + stage.line_bytes
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    # Each vector behind the first adds the lanes whose column it holds.
    for k in range(1, step if step <= PICKED_STEPS else 1):
        for i in range(LANES):
            source = i * step - k * LANES
            (<int *> &picks[k])[i] = <int> (LANES + source if 0 <= source < LANES else i * step if k == 1 and source < 0 else i)
    tile.taps_down, tile.taps_across, tile.offsets = problem.kernel_height, problem.kernel_width, stage.offsets
    tile.x_tap, tile.x_row = problem.dilation_height * stage.row_bytes, problem.stride_height * stage.row_bytes
    tile.step = 0 if problem.stride_height % problem.dilation_height else problem.stride_height // problem.dilation_height
    tile.y_row = problem.y_strides[1] * 4 if problem.element == FLOAT32 else stage.pitch * 4
    while begin < end:
        image = begin // problem.out_height
        top = begin % problem.out_height
        rows = min(min(stage.rows, problem.out_height - top), end - begin)
        first = top * problem.stride_height - problem.pad_top
        column = 0
        while column < problem.out_width:
            columns = min(stage.columns, problem.out_width - column)
            # The last tile of a row has the fewest vectors, and so the most rows.
            together = staged_for((divide_up(columns, LANES) - 1) % STAGED_VECTORS + 1, rows).rows
            for channel in range(problem.channels):
                plane = x + (image * problem.x_strides[0] + channel * problem.x_strides[3]) * itemsize
                stage_plane(
                    &stage, problem, picks, scratch, scratch + stage.x_bytes, plane, first, rows_below(problem, divide_up(rows, together) * together),
                    column * step - problem.pad_left,
                )
                for output in range(channel * problem.multiplier, (channel + 1) * problem.multiplier):
                    block = blocks + output // LANES * block_vectors * LANES + output % LANES
                    target = y + (image * problem.y_strides[0] + top * problem.y_strides[1] + column + output * problem.y_strides[3]) * itemsize
                    done = 0
                    while done < columns:
                        vectors = min(divide_up(columns - done, LANES), STAGED_VECTORS)
                        tile.lanes = min(LANES, columns - done - (vectors - 1) * LANES)
                        choice = staged_for(vectors, rows)
                        row = 0
                        while row < rows:
                            tile.rows = rows - row
                            choice.run(
                                &tile, limits, block, scratch + row * tile.x_row + done * 4,
                                (target if problem.element == FLOAT32 else sums) + row * tile.y_row + done * 4,
                            )
                            row += choice.rows
                        done += vectors * LANES
                    if problem.element != FLOAT32:
                        narrow_runs(target, problem.y_strides[1] * 2, <const float *> sums, stage.pitch, rows, columns, problem.element)
            column += columns
        begin += rows


cdef bint is_column(const Problem *problem) noexcept nogil:
    """Planes of one column, whose rows lie side by side."""
    return (
        problem.width == problem.out_width == problem.kernel_width == 1 and problem.pad_left == 0 and problem.kernel_height <= STAGED_TAPS
        and problem.x_strides[1] == problem.y_strides[1] == 1
    )


cdef Problem laid_down(const Problem *problem, Py_ssize_t first, Py_ssize_t outputs) noexcept nogil:
    """Some outputs of a column as a row."""
    cdef Problem row = problem[0]
    row.batch = row.height = row.out_height = row.kernel_height = row.stride_height = row.dilation_height = 1
    row.width, row.out_width, row.kernel_width = problem.height, outputs, problem.kernel_height
    row.stride_width, row.dilation_width = problem.stride_height, problem.dilation_height
    row.pad_top, row.pad_left = 0, problem.pad_top - first * problem.stride_height
    row.x_strides[2] = row.y_strides[2] = 1
    return row


cdef void run_columns(const Problem *problem, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t itemsize = item_bytes(problem.element), image, first, count
    cdef Problem row
    while begin < end:
        image = begin // problem.out_height
        first = begin % problem.out_height
        count = min(problem.out_height - first, end - begin)
        row = laid_down(problem, first, count)
        run_staged(&row, x + image * problem.x_strides[0] * itemsize, y + (image * problem.y_strides[0] + first) * itemsize, scratch, 0, 1)
        begin += count


cdef bint by_rows(const Problem *problem) noexcept nogil:
    """Of problems of float32 that are not in strips, those that gain nothing by a copy: usual filters on wide images, and filters mostly outside of theirs."""
    cdef bint usual = problem.kernel_width == 3 or problem.kernel_width == 5 or problem.kernel_width == 7
    return (
        VECTOR_BYTES > 16 and problem.element == FLOAT32 and problem.kernel_width <= PLANE_TAPS and problem.stride_width <= PLANE_STRIDES
        and (problem.kernel_height >= problem.height or (usual and 4 * problem.width * NEAR_ROWS > NEAR_BYTES))
    )


# How problems in planes are computed.
cdef enum:
    BY_TILES
    BY_MIXED_STRIPS
    BY_STRIPS
    BY_WIDENED_STRIPS
    BY_STAGES
    BY_LINES
    AS_ROWS


cdef int plane_kernel(const Problem *problem) noexcept nogil:
    """Whichever is fastest, in_planes."""
    if is_column(problem):
        return AS_ROWS
    if mixed_lanes(problem):
        return BY_MIXED_STRIPS if has_mixed_strips(problem) else BY_LINES if is_line(problem) else BY_TILES
    if by_lines(problem):
        return BY_LINES
    if in_strips(problem):
        return BY_STRIPS if has_strips(problem) else BY_WIDENED_STRIPS
    return BY_TILES if by_rows(problem) else BY_STAGES


cdef void run_in_planes(const Problem *problem, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef int kernel = plane_kernel(problem)
    if kernel == BY_TILES:
        run_planes(problem, x, y, begin, end)
    elif kernel == BY_LINES:
        run_row_by_row(problem, x, y, begin, end)
    elif kernel == BY_MIXED_STRIPS:
        run_mixed(problem, x, y, begin, end)
    elif kernel == BY_STRIPS or kernel == BY_WIDENED_STRIPS:
        run_share(problem, x, y, scratch, begin, end)
    elif kernel == BY_STAGES:
        run_staged(problem, x, y, scratch, begin, end)
    else:
        run_columns(problem, x, y, scratch, begin, end)


cdef Py_ssize_t scratch_bytes_planes(const Problem *problem) noexcept nogil:
    cdef int kernel = plane_kernel(problem)
    cdef Widened size
    cdef Problem row
    if kernel == BY_WIDENED_STRIPS:
        size = widened_of(problem)
        return size.x_bytes + size.y_bytes + VECTOR_BYTES
    if kernel == BY_STAGES:
        return scratch_bytes_staged(problem)
    if kernel == AS_ROWS:
        row = laid_down(problem, 0, problem.out_height)
        return scratch_bytes_staged(&row)
    return 0


cdef const char *kernel_planes(const Problem *problem) noexcept nogil:
    cdef int kernel = plane_kernel(problem)
    if kernel == BY_STRIPS and stacks_of(problem) != NULL:
        return b"in place, plane by plane, stacks of rows"
    if kernel == BY_STRIPS:
        return b"in place, a vector of planes at a time turned into pixels" if is_turned(problem) else b"in place, columns of planes from top to bottom"
    if kernel == BY_MIXED_STRIPS:
        return b"in place, pixels side by side in a vector, from top to bottom"
    if kernel == BY_LINES:
        return b"in place, pixels side by side in a vector, row by row" if mixed_lanes(problem) else b"in place, plane by plane, row by row"
    if kernel == BY_WIDENED_STRIPS:
        return b"plane by plane, widened to float32"
    if kernel == BY_TILES:
        return b"in place, pixels side by side in a vector, tiles of 2 rows" if mixed_lanes(problem) else b"in place, plane by plane, tiles of 2 rows"
    return b"plane by plane, rows with zeros around"
