# float32 whose columns lie side by side, as in NCHW: each channel a plane, vectors of neighbouring columns, in place (planes.h, plane_strips.h).
#
# Rows outside the image are left out; columns outside are lanes that are masked to 0, so weights that are not finite go through bands instead.

cdef extern from "plane_lines.h" nogil:
    ctypedef struct PlaneLine:
        Py_ssize_t rows, y_row, first, taps, tap, pad, dilation, width, lanes
    const int COLUMN_ROWS
    ctypedef void (*OneLine)(
        const PlaneLine *line, const vf32 *limits, const float *weights, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    const OneLine line_kernels[2]

cdef extern from "planes.h" nogil:
    enum:
        MIXED_CHANNELS
        PICKED_CHANNELS
    ctypedef void (*PlaneTile)(
        const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks,
    ) noexcept nogil
    void plane_tile(
        const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks,
    ) noexcept nogil
    PlaneTile mixed_tiles[4]
    void widen_runs(float *target, Py_ssize_t pitch, const char *source, Py_ssize_t step, Py_ssize_t runs, Py_ssize_t count, int element)
    void narrow_runs(char *target, Py_ssize_t step, const float *source, Py_ssize_t pitch, Py_ssize_t runs, Py_ssize_t count, int element)
    void turn_planes(const char *planes, Py_ssize_t plane, char *pixels, Py_ssize_t count)
    void turn_pixels(const char *pixels, char *planes, Py_ssize_t plane, Py_ssize_t count)

cdef extern from "plane_strips.h" nogil:
    enum:
        STRIPS_ACROSS
        SHIFTED_ACROSS
        NARROW_STRIPS
        PICKED_STRIPS
        SHIFTED_STRIPS
        STRIP_KINDS
        MIXED_STRIP_CHANNELS
    ctypedef struct PlaneStrip:
        Py_ssize_t first_plane, end_plane, lead, multiplier, x_plane, y_plane, dilation, begin, end, pad, height, x_row, y_row, lanes, width, ahead
        const vi32 *masks[STRIPS_ACROSS]
        int before, after
        const vi32 *index
        const float *blocks
        Py_ssize_t block_vectors, step
    ctypedef void (*PlaneStrips)(const PlaneStrip *strip, const vf32 *limits, const char *x, char *y) noexcept nogil
    const PlaneStrips plane_strips[4][8][3][7]
    const PlaneStrips halved_strips[8][3][4]
    const PlaneStrips line_strips[2][8][7]
    const PlaneStrips mixed_strips[4][8][4]
    const PlaneStrips mixed_columns[8][4]
    const PlaneStrips doubled_strips[4]

cdef enum:
    # Of a row that is staged, at most.
    STAGED_TAPS = 64
    # Scratch for a few rows, at most: what huge steps leave out would be most of more.
    LARGEST_STAGE = 16 << 20
    # Tiles of a plane that are placed at a time.
    ROW_TILES = 16
    # Rows of a strip, at least, before the columns beside it; and rows that it fetches ahead from beyond the second-level cache.
    ROWS_TOGETHER = 16
    ROWS_AHEAD = 16
    # Of the input of a plane, that pieces side by side are computed from before the rows below.
    NEAR_BYTES = 16 << 10
    # With fewer rows than these, long runs along them suit the caches better.
    NEAR_ROWS = 9
    # Of planes of so few, runs of several ones follow each other.
    LOW_ROWS = 4
    # Of one that are computed by twos though one has none beside it, at least.
    DOUBLED_VECTORS = 7
    # Where a filter has one row or column, columns from which on rows are computed one by one; taps of a row up to which; columns for each that pay for edges.
    LINE_COLUMNS = 64
    LINE_TAPS = 128
    EDGE_COLUMNS = 8
    # Of planes that are turned.
    TURNED_PIXELS = 256


cdef bint is_line(const Problem *problem) noexcept nogil:
    """Whether float32 is filtered by one row or column, without a step along rows, which are some vectors, of a plane or of pixels of few channels."""
    return (
        line_kernels[0] != NULL and problem.element == FLOAT32 and problem.stride_width == 1 and min(problem.kernel_height, problem.kernel_width) == 1
        and problem.out_width * problem.channels >= LINE_COLUMNS and problem.kernel_width <= LINE_TAPS
    )


cdef Py_ssize_t mixed_lanes(const Problem *problem) noexcept nogil:
    """Lanes of the whole pixels of a vector, where rows of pixels of a few channels are computed as planes are; else 0."""
    cdef Py_ssize_t channels = problem.channels, step = channels * problem.stride_width, pixels = LANES // channels if channels else 0, most
    if not (
        mixed_tiles[problem.element] != NULL and problem.multiplier == 1 and problem.out_width > 1 and (problem.kernel_width <= PLANE_TAPS or is_line(problem))
        and (channels == 1 or problem.x_strides[3] == problem.y_strides[3] == 1) and problem.x_strides[2] == problem.y_strides[2] == channels
        and not (problem.x_block or problem.y_block)
    ):
        return 0
    if problem.stride_width == 1:
        # Bands hold few channels of halves as densely as tiles do.
        most = MIXED_STRIP_CHANNELS if has_mixed_strips(problem) or is_line(problem) else MIXED_CHANNELS if problem.element == FLOAT32 else 0
        return pixels * channels if 1 < channels <= most else 0
    if channels > PICKED_CHANNELS or step + channels > 2 * LANES or (channels == 1 and problem.stride_width <= PLANE_STRIDES):
        return 0
    # Inputs come from two vectors. Two pixels pay where a band is the other way.
    pixels = min(pixels, (2 * LANES - channels) // step + 1)
    return pixels * channels if pixels > 2 or (pixels == 2 and channels * FOLD_PAYS <= LANES) else 0


cdef const PlaneStrips *mixed_strips_of(const Problem *problem) noexcept nogil:
    """Of pixels that share a vector, at step 1, the strips of a filter, the first of them NULL where there are none: square ones, and float32 by one column."""
    cdef Py_ssize_t high = problem.kernel_height, taps = problem.kernel_width
    if high > STRIP_TAPS or problem.stride_width != 1 or problem.stride_height != 1 or taps not in (1, high):
        return &mixed_strips[problem.element][0][0]
    return &mixed_columns[high][0] if taps < high and problem.element == FLOAT32 else &mixed_strips[problem.element][taps][0]


cdef bint has_mixed_strips(const Problem *problem) noexcept nogil:
    """Of problems with mixed lanes, those by filters that are common."""
    return (VECTOR_BYTES == 64 and mixed_strips_of(problem)[0] != NULL) or mixed_stacks_of(problem) != NULL


cdef Problem as_one_plane(const Problem *problem) noexcept nogil:
    """Rows of pixels, a column for each channel of each pixel."""
    cdef Problem flat = problem[0]
    flat.width *= problem.channels
    flat.out_width *= problem.channels
    flat.pad_left *= problem.channels
    flat.dilation_width *= problem.channels
    flat.channels = 1
    return flat


cdef bint has_small_stage(const Problem *problem) noexcept nogil:
    """Whether the least that is staged (prepare_stage) is not too large; in numbers that hold any product of sizes."""
    cdef double columns = min(problem.out_width, STAGED_COLUMNS) + 2 * LANES + (problem.kernel_width - 1) * problem.dilation_width // problem.stride_width
    cdef double rows = rows_below(problem, STAGED_ROWS)
    cdef double steps = min(problem.stride_width, problem.kernel_width) + (problem.stride_width if problem.element != FLOAT32 else 0)
    return rows * columns * steps * 4 <= LARGEST_STAGE


cdef bint by_lines(const Problem *problem) noexcept nogil:
    """Of such filters on planes, those of rows of some vectors: along a row many, as vectors at the edges have masks, where pixels are the other way."""
    return is_line(problem) and problem.out_width >= LINE_COLUMNS and not in_strips(problem) and (
        problem.kernel_width == 1 or problem.width > TURNED_COLUMNS or problem.channels < PIXEL_CHANNELS
        or (VECTOR_BYTES == 32 and EDGE_COLUMNS * (problem.kernel_width - 1) <= problem.out_width)
    )


cdef bint in_planes(const Problem *problem) noexcept nogil:
    cdef Problem row
    if mixed_lanes(problem):
        return True
    if is_column(problem):
        row = laid_down(problem, 0, problem.out_height)
        if not has_small_stage(&row):
            return False
    return (
        problem.element != FLOAT64
        and (problem.x_strides[2] == 1 or problem.width == 1) and (problem.y_strides[2] == 1 or problem.out_width == 1)
        and (by_lines(problem) or (
            problem.kernel_width <= STAGED_TAPS and (in_strips(problem) or is_column(problem) or by_rows(problem) or has_small_stage(problem))))
    )


cdef const PlaneStrips *strips_of(const Problem *problem, int element) noexcept nogil:
    """The strips of a filter, the first of them NULL where there are none: square ones, and lines of float32 without a step, on more than one column."""
    cdef Py_ssize_t high = problem.kernel_height, taps = problem.kernel_width, stride = problem.stride_width
    if max(high, taps) > STRIP_TAPS or stride > PLANE_STRIDES or problem.stride_height != stride or (high != taps and min(high, taps) > 1):
        return &plane_strips[element][0][0][0]
    if high == taps:
        return &plane_strips[element][taps][stride][0]
    return &line_strips[taps == 1][max(high, taps)][0] if element == FLOAT32 and stride == 1 and problem.width > 1 else &plane_strips[element][0][0][0]


cdef bint in_strips(const Problem *problem) noexcept nogil:
    """Filters that are common, with a dilation or a stride, and images that are not wide, or have strips of several vectors."""
    cdef const PlaneStrips *strips
    if problem.element == FLOAT64 or mixed_lanes(problem):
        return False
    if problem.stride_width > 1 and max(problem.dilation_height, problem.dilation_width) > 1:
        return False
    strips = strips_of(problem, FLOAT32)
    return stacks_of(problem) != NULL or (
        strips[0] != NULL
        and (4 * problem.width * NEAR_ROWS <= NEAR_BYTES or strips[1] != NULL or (problem.dilation_width == 1 and strips[SHIFTED_STRIPS] != NULL))
    )


cdef bint has_strips(const Problem *problem) noexcept nogil:
    """Of problems in strips, those whose elements are read as they are; others are widened."""
    return strips_of(problem, problem.element)[0] != NULL or (problem.element == FLOAT32 and stacks_of(problem) != NULL)


cdef inline Py_ssize_t whole_rows_of(const Problem *problem) noexcept nogil:
    """Columns of whole rows that registers hold: one without a stride, else two."""
    return LANES if problem.stride_width == 1 else 2 * LANES


cdef bint has_narrow_strips(const Problem *problem) noexcept nogil:
    """Of problems in strips, those of which a register holds rows of two planes."""
    return (
        2 * problem.width <= whole_rows_of(problem) and 2 * problem.out_width <= LANES
        and strips_of(problem, problem.element)[NARROW_STRIPS] != NULL
    )


cdef inline bint has_halved_strips(const Problem *problem) noexcept nogil:
    """Of problems in strips, those of whose last vector of columns a half is computed, where that takes half of its time."""
    return (
        problem.halving and problem.element == FLOAT32 and problem.kernel_height == problem.kernel_width and problem.stride_height == problem.stride_width
        and problem.out_width > LANES and 0 < problem.out_width % LANES <= LANES // 2 and halved_strips[problem.kernel_width][problem.stride_width][1] != NULL
    )


cdef inline bint turning_pays(const Problem *problem) noexcept nogil:
    """Whether so few columns leave so many lanes of strips idle that products of whole vectors of planes pay for turning them."""
    cdef Py_ssize_t taps = problem.kernel_width, high = problem.kernel_height, columns = problem.out_width
    if problem.stride_width == 1:
        return 5 <= columns <= 6 if high == taps == 3 else min(high, taps) > 3 and columns <= (12 if high == taps == 5 else 2 * taps - 2)
    return problem.stride_width == problem.stride_height == 2 and high == taps and (
        columns == 6 if taps == 5 else taps == 3 and columns == 4 and problem.out_height >= 4)


cdef bint is_turned(const Problem *problem) noexcept nogil:
    """Of problems in strips, those on dense planes of few columns, a vector of which is faster turned; halves where they are widened for strips."""
    return (
        VECTOR_BYTES == 64 and problem.channels >= LANES and problem.multiplier == 1 and turning_pays(problem)
        and (problem.element == FLOAT32 or not has_strips(problem))
        and (problem.x_strides[1] == problem.width or problem.height == 1) and (problem.y_strides[1] == problem.out_width or problem.out_height == 1)
        and 4 <= problem.height * problem.width <= TURNED_PIXELS and problem.out_height * problem.out_width <= TURNED_PIXELS
    )


cdef void run_turned(const Problem *problem, Py_ssize_t lead, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """As run_strips, whole vectors of planes: they become pixels of LANES channels on the stack, are computed as rows, and become planes again."""
    cdef const vf32 *blocks = <const vf32 *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Problem turned = problem[0]
    cdef Rows job
    cdef vf32 limits[2]
    cdef vf32 few[LANES]
    cdef vf32 memory[2 * TURNED_PIXELS + LANES + 1]
    cdef Py_ssize_t top, last, block, plane, pixels
    cdef char *inputs = <char *> memory + (-<Py_ssize_t> memory & VECTOR_BYTES - 1)
    cdef char *outputs = inputs + problem.height * problem.width * VECTOR_BYTES
    cdef const char *planes
    cdef char *to
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    turned.channels = turned.x_strides[2] = turned.y_strides[2] = LANES
    turned.x_strides[1], turned.y_strides[1] = problem.width * LANES, problem.out_width * LANES
    turned.x_strides[3] = turned.y_strides[3] = 1
    turned.distance = IN_CACHE
    prepare_rows(&job, &turned)
    while begin < end:
        top = begin % problem.out_height
        last = min(problem.out_height, top + end - begin)
        planes = x + begin // problem.out_height * problem.x_strides[0] * 4
        to = y + (begin // problem.out_height * problem.y_strides[0] + top * problem.out_width) * 4
        pixels = (last - top) * problem.out_width
        for block in range(problem.channels // LANES):
            turn_planes(planes, problem.x_strides[3] * 4, inputs, problem.height * problem.width)
            run_image(&job, limits, blocks + (lead // LANES + block) * job.block_vectors, inputs, outputs, top, last, 0, problem.out_width)
            if pixels >= LANES:
                turn_pixels(outputs + top * problem.out_width * VECTOR_BYTES, to, problem.y_strides[3] * 4, pixels)
            else:
                turn_pixels(outputs + top * problem.out_width * VECTOR_BYTES, <char *> few, VECTOR_BYTES, LANES)
                for plane in range(LANES):
                    memcpy(to + plane * problem.y_strides[3] * 4, &few[plane], pixels * 4)
            planes += LANES * problem.x_strides[3] * 4
            to += LANES * problem.y_strides[3] * 4
        begin += last - top


cdef void run_planes(const Problem *given, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height; weights are packed as for bands."""
    cdef Problem flat = given[0]
    cdef const Problem *problem = &flat
    cdef const float *blocks = <const float *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Py_ssize_t block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width
    cdef Py_ssize_t itemsize = item_bytes(given.element), column = 0, next_column, image, row, rows, position, channel, output, phase, first
    cdef Py_ssize_t x_rows[ROW_TILES]
    cdef Py_ssize_t y_rows[ROW_TILES]
    cdef Tile tiles[ROW_TILES]
    cdef const char *x_plane
    cdef char *y_plane
    cdef const Piece *piece
    cdef vf32 limits[2]
    cdef vi32 picked
    cdef Pieces pieces
    cdef Py_ssize_t mixed = mixed_lanes(given), lanes = mixed if mixed else LANES
    cdef PlaneTile run_tile = mixed_tiles[given.element] if mixed else plane_tile
    cdef int i, tile, count
    cdef Line down = line_of(
        problem.out_height, problem.height, problem.stride_height, problem.pad_top, problem.kernel_height, problem.dilation_height,
        problem.x_strides[1], problem.y_strides[1], itemsize,
    )
    if mixed:
        flat = as_one_plane(given)
        for i in range(LANES):
            (<int *> &picked)[i] = <int> (i // given.channels * given.channels * given.stride_width + i % given.channels if i < lanes else 0)
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    while column < problem.out_width:
        next_column = cut_pieces(problem, &pieces, column, lanes, True, not mixed, False)
        position = begin
        while position < end:
            image = position // problem.out_height
            first = position % problem.out_height
            rows = min(problem.out_height - first, end - position)
            phase = 0
            row = first
            while phase < min(down.phases, rows):
                # Some tiles of each plane before the next plane: long runs of memory, placed once for all planes.
                count = 0
                while count < ROW_TILES and phase < min(down.phases, rows):
                    place_rows(&down, &tiles[count], row, row + down.phases < first + rows)
                    tiles[count].x_row = down.dilation * down.x
                    tiles[count].x_column = problem.dilation_width * itemsize
                    tiles[count].y_row, tiles[count].y_column = down.phases * down.y, lanes * itemsize
                    tiles[count].x_output, tiles[count].picked = problem.stride_width * lanes * itemsize, &picked
                    x_rows[count] = (row * down.stride - down.pad) * down.x - problem.pad_left * itemsize
                    y_rows[count] = row * down.y
                    count += 1
                    row += 2 * down.phases
                    if row >= first + rows:
                        phase += 1
                        row = first + phase
                x_plane = x + image * problem.x_strides[0] * itemsize
                y_plane = y + image * problem.y_strides[0] * itemsize
                for channel in range(problem.channels):
                    for output in range(channel * problem.multiplier, (channel + 1) * problem.multiplier):
                        for tile in range(count):
                            for i in range(pieces.count):
                                piece = &pieces.piece[i]
                                tiles[tile].tail_lanes = piece.lanes
                                run_tile(
                                    &tiles[tile], limits, blocks + output // LANES * block_vectors * LANES + output % LANES,
                                    <int> problem.kernel_width, <int> problem.stride_width, piece.vectors,
                                    x_plane + x_rows[tile] + piece.column * problem.stride_width * itemsize, y_plane + y_rows[tile] + piece.column * itemsize,
                                    NULL if piece.masks < 0 else &pieces.masks[piece.masks],
                                )
                        y_plane += problem.y_strides[3] * itemsize
                    x_plane += problem.x_strides[3] * itemsize
            position += rows
        column = next_column


cdef void run_row_by_row(const Problem *given, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height of a filter of one row or column; weights are packed as for bands."""
    cdef Problem flat = given[0]
    cdef const Problem *problem = &flat
    cdef const float *blocks = <const float *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Py_ssize_t mixed = mixed_lanes(given), column, chunk, image, first, rows, row, position, plane, pitch
    cdef Py_ssize_t taps = problem.kernel_height
    cdef bint together = problem.stride_height == 1 and problem.dilation_height == 1
    cdef Py_ssize_t block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width
    cdef const float *weights
    cdef const char *from_plane
    cdef char *to_plane
    cdef OneLine one = line_kernels[mixed > 0]
    cdef PlaneLine line
    cdef vf32 limits[2]
    if mixed:
        flat = as_one_plane(given)
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    line.lanes = mixed if mixed else LANES
    line.pad, line.dilation, line.width = problem.pad_left, problem.dilation_width if problem.kernel_width > 1 else 0, problem.width
    line.y_row, pitch = problem.y_strides[1] * 4, problem.x_strides[1] * 4
    chunk = problem.out_width
    if problem.kernel_width == 1:
        # Rows that outputs share stay in a second-level cache; shorter runs suit no prefetcher.
        chunk = max(1, SHARED_BYTES // 3 // (4 * LANES * problem.kernel_height)) * line.lanes
    while begin < end:
        image = begin // problem.out_height
        first = begin % problem.out_height
        rows = min(problem.out_height - first, end - begin)
        for plane in range(problem.channels * problem.multiplier):
            weights = blocks + plane // LANES * block_vectors * LANES + plane % LANES
            from_plane = x + (image * problem.x_strides[0] + plane // problem.multiplier * problem.x_strides[3]) * 4
            to_plane = y + (image * problem.y_strides[0] + plane * problem.y_strides[3]) * 4
            column = 0
            while column < problem.out_width:
                row = first
                while row < first + rows:
                    position = row * problem.stride_height - problem.pad_top
                    line.rows, line.first, line.taps, line.tap = 1, 0, problem.kernel_width, line.dilation * 4
                    if problem.kernel_width == 1:
                        line.first = min(problem.kernel_height, max(0, divide_up(-position, problem.dilation_height)))
                        line.taps = max(0, min(problem.kernel_height, divide_up(problem.height - position, problem.dilation_height)) - line.first)
                        line.tap = problem.dilation_height * pitch
                        if together and row + COLUMN_ROWS <= first + rows and line.taps == taps and position + COLUMN_ROWS - 1 + taps <= problem.height:
                            line.rows = COLUMN_ROWS
                        position += line.first * problem.dilation_height
                    elif not 0 <= position < problem.height:
                        line.taps = 0
                    one(
                        &line, limits, weights, from_plane + position * pitch, to_plane + row * line.y_row, column, min(column + chunk, problem.out_width))
                    row += line.rows
                column += chunk
        begin += rows


cdef inline void place_picked(const Problem *problem, const int lanes, vi32 *masks, vi32 *index) noexcept nogil:
    """Planes of so many lanes of a vector: for each tap, the lanes that take a column inside the image, and where it is in the two registers, or in the one."""
    cdef Py_ssize_t tap, lane, column, source
    cdef int bits, next_plane = lanes if problem.stride_width == 1 else LANES
    cdef int *mask
    cdef int *place
    for tap in range(problem.kernel_width):
        mask = <int *> &masks[tap]
        place = <int *> &index[tap]
        for lane in range(LANES):
            column = lane & (lanes - 1)
            source = column * problem.stride_width - problem.pad_left + tap * problem.dilation_width
            bits = 0 <= source < problem.width and column < problem.out_width
            mask[lane] = -bits
            place[lane] = <int> (bits * (source + (next_plane if lane >= lanes else 0)))


cdef void run_strips(
    const Problem *problem, Py_ssize_t lead, Py_ssize_t first, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t mixed,
) noexcept nogil:
    """Output rows begin to end of batch*out_height of planes from the first on; the weights are those of planes from `lead` on, packed as for bands.

    `mixed`: lanes of the whole pixels of a vector, where they are one plane; else 0.
    """
    cdef Py_ssize_t itemsize = item_bytes(problem.element), column = 0, next_column, row, rows, top, last, planes = problem.channels * problem.multiplier
    cdef Py_ssize_t together, chunk
    cdef Py_ssize_t phases = problem.dilation_height, phase
    cdef Py_ssize_t lanes = mixed if mixed else LANES
    cdef const PlaneStrips *strips = strips_of(problem, problem.element)
    cdef bint narrow = VECTOR_BYTES == 64 and not mixed and has_narrow_strips(problem)
    cdef bint picked = (narrow and (problem.stride_width == 1 or problem.element != FLOAT32)) or (
        VECTOR_BYTES == 64 and not mixed and problem.width <= whole_rows_of(problem) and problem.out_width <= LANES and strips[PICKED_STRIPS] != NULL)
    # Every second column of twice as many: the last of few vectors is not worth two. Halves side by side are inside the image or outside together.
    cdef Py_ssize_t vectors = divide_up(problem.out_width, LANES)
    cdef bint doubled = (
        VECTOR_BYTES == 64 and problem.element == BFLOAT16 and not mixed and problem.kernel_width == 3 and problem.stride_width == 1
        and problem.dilation_width == 1 and (vectors % 2 == 0 or vectors >= DOUBLED_VECTORS)
        and problem.pad_left % 2 == 1 and (problem.width | problem.out_width) % 2 == 0
    )
    cdef bint shifted = (
        VECTOR_BYTES == 64 and not (mixed or picked) and problem.dilation_width == 1 and problem.out_width > LANES and strips[SHIFTED_STRIPS] != NULL
    )
    cdef bint halved = VECTOR_BYTES == 64 and not mixed and has_halved_strips(problem)
    # Strips of two vectors beside those of one vector of two planes.
    cdef bint twos = VECTOR_BYTES == 64 and problem.stride_height > 1 and problem.kernel_height > 3
    cdef int across = STRIPS_ACROSS, runs, run, place, part, count
    cdef PlaneStrips one
    cdef Py_ssize_t source
    cdef vi32 around[SHIFTED_ACROSS + 2]
    cdef vi32 doubles[STRIPS_ACROSS][3]
    cdef const char *image
    cdef const char *x_phase
    cdef char *out_image
    cdef char *y_phase
    cdef vi32 index[STRIP_TAPS]
    cdef vf32 limits[2]
    cdef Phase inside
    cdef Pieces pieces
    cdef PlaneStrip strip
    if mixed:
        strips = mixed_strips_of(problem)
    if doubled:
        strips, lanes = &doubled_strips[0], 2 * LANES
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    strip.lead = lead
    strip.multiplier = problem.multiplier
    strip.x_plane = problem.x_strides[3] * itemsize
    strip.y_plane = problem.y_strides[3] * itemsize
    strip.x_row = phases * problem.x_strides[1] * itemsize
    strip.y_row = phases * problem.y_strides[1] * itemsize
    strip.dilation = problem.dilation_width
    strip.width = problem.width
    strip.index = index
    strip.ahead = ROWS_AHEAD if problem.distance >= BEYOND_SECOND_LEVEL else 0
    strip.blocks = <const float *> (<const char *> problem.packed + HEADER_BYTES)
    strip.block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width
    strip.step = itemsize * lanes
    while strips[across - 1] == NULL:
        across -= 1
    if shifted:
        across = SHIFTED_ACROSS
    while column < problem.out_width:
        next_column = cut_pieces(problem, &pieces, column, lanes, False, False, False)
        if picked:
            if narrow:
                place_picked(problem, LANES // 2, pieces.masks, index)
            else:
                place_picked(problem, LANES, pieces.masks, index)
            pieces.piece[0].masks = 0
        # One run of vectors, no phases: all rows of all planes. Else so many rows of the planes that a kernel has at a time that their inputs stay near.
        runs = (pieces.count + across - 1) // across
        together = planes if runs == 1 and phases == 1 else 4 if pieces.count == 1 else 1 if across > 1 and not (shifted or twos) else 2
        if problem.out_height <= LOW_ROWS:
            together = max(together, NEAR_BYTES // (4 * max(1, problem.height * problem.width)))
        chunk = problem.out_height if runs == 1 else max(ROWS_TOGETHER, NEAR_BYTES // (4 * max(1, problem.width) * problem.stride_height))
        row = begin
        while row < end:
            image = x + row // problem.out_height * problem.x_strides[0] * itemsize
            out_image = y + row // problem.out_height * problem.y_strides[0] * itemsize
            top = row % problem.out_height
            last = top + min(problem.out_height - top, end - row)
            row += last - top
            strip.first_plane = first
            while strip.first_plane < planes:
                strip.end_plane = min(strip.first_plane + together, planes)
                for phase in range(min(phases, last - top)):
                    inside = phase_from(problem, top + phase)
                    strip.pad, strip.height = inside.pad, inside.height
                    x_phase = image + inside.first * problem.x_strides[1] * itemsize
                    y_phase = out_image + (top + phase) * problem.y_strides[1] * itemsize
                    rows = divide_up(last - top - phase, phases)
                    strip.begin = 0
                    while strip.begin < rows:
                        strip.end = min(strip.begin + chunk, rows)
                        for run in range(runs):
                            place = pieces.count * run // runs
                            count = pieces.count * (run + 1) // runs - place
                            for part in range(count * 3 if doubled else 0):
                                source = pieces.piece[place + part // 3].column - problem.pad_left - 1 + part % 3 * 2
                                doubles[part // 3][part % 3] = lanes_between(-source // 2, (problem.width - source) // 2)
                            for part in range(count):
                                strip.masks[part] = &doubles[part][0] if doubled else &pieces.masks[pieces.piece[place + part].masks]
                            strip.lanes = pieces.piece[place + count - 1].lanes
                            source = 0 if picked else pieces.piece[place].column * problem.stride_width - problem.pad_left
                            one = strips[NARROW_STRIPS if narrow else PICKED_STRIPS if picked else count - 1]
                            if shifted and count == SHIFTED_ACROSS:
                                one = strips[SHIFTED_STRIPS]
                                source += problem.kernel_width // 2
                                for part in range(SHIFTED_ACROSS + 2):
                                    around[part] = lanes_between((1 - part) * LANES - source, problem.width - source - (part - 1) * LANES)
                                strip.masks[0], strip.before, strip.after = around, source > 0, source + SHIFTED_ACROSS * LANES < problem.width
                            if halved and strip.lanes <= LANES // 2 and count > 1:
                                one = halved_strips[problem.kernel_width][problem.stride_width][count - 1]
                            one(&strip, limits, x_phase + source * itemsize, y_phase + strip.begin * strip.y_row + pieces.piece[place].column * itemsize)
                        strip.begin = strip.end
                strip.first_plane = strip.end_plane
        column = next_column


cdef void run_strips_or_turned(const Problem *problem, Py_ssize_t lead, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """As run_strips, all planes."""
    cdef Py_ssize_t turned = 0
    if VECTOR_BYTES == 32:
        run_stacks(problem, lead, x, y, begin, end, 0)
        return
    if is_turned(problem):
        turned = problem.channels // LANES * LANES
        run_turned(problem, lead, x, y, begin, end)
    if turned < problem.channels:
        run_strips(problem, lead, turned, x, y, begin, end, 0)


cdef void run_mixed(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The same of pixels that share a vector, in strips, row by row or in tiles."""
    cdef Problem flat = as_one_plane(problem)
    if mixed_stacks_of(problem) != NULL:
        run_stacks(&flat, 0, x, y, begin, end, mixed_lanes(problem))
    elif VECTOR_BYTES == 64 and has_mixed_strips(problem):
        run_strips(&flat, 0, 0, x, y, begin, end, mixed_lanes(problem))
    elif is_line(problem):
        run_row_by_row(problem, x, y, begin, end)
    else:
        run_planes(problem, x, y, begin, end)
