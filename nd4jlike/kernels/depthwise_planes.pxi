# float32 and halves whose columns lie side by side, as in NCHW: each channel a plane, vectors of neighbouring columns, in place (taps.h).
#
# Rows outside the image are left out; columns outside are lanes that are masked to 0, so weights that are not finite go through bands instead.

cdef extern from "taps.h" nogil:
    ctypedef void (*PlaneTile)(
        const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks,
    ) noexcept nogil
    PlaneTile plane_tiles[4]

cdef enum:
    PLANE_TAPS = 16
    PLANE_STRIDES = 2
    # Pieces of a row that are cut at a time, and those of them with masks.
    PIECES = 32
    MASKED_PIECES = 4
    # Tiles of a plane that are placed at a time.
    ROW_TILES = 16


# Neighbouring output columns: one vector or two. Masks: the index of their first, -1 where every input is inside the image.
cdef struct Piece:
    Py_ssize_t column, lanes
    int vectors, masks


cdef struct Pieces:
    int count
    Piece piece[PIECES]
    vi32 masks[MASKED_PIECES * PLANE_TAPS * PLANE_STRIDES]


cdef bint in_planes(const Problem *problem) noexcept nogil:
    return (
        problem.element != FLOAT64 and plane_tiles[problem.element] != NULL
        and (problem.x_strides[2] == 1 or problem.width == 1) and (problem.y_strides[2] == 1 or problem.out_width == 1)
        and problem.kernel_width <= PLANE_TAPS and problem.stride_width <= PLANE_STRIDES
    )


cdef Py_ssize_t cut_pieces(const Problem *problem, Pieces *pieces, Py_ssize_t column) noexcept nogil:
    """The pieces of a row from an output column on; returns the column after them."""
    cdef Py_ssize_t stride = problem.stride_width, position, ahead, tap, i, lane, source
    cdef int masked = 0, bits
    cdef int *mask
    cdef Piece *piece
    pieces.count = 0
    while column < problem.out_width and pieces.count < PIECES and masked < MASKED_PIECES:
        piece = &pieces.piece[pieces.count]
        position = column * stride - problem.pad_left
        # Columns of the image that the last tap may load.
        ahead = problem.width - (position + (problem.kernel_width - 1) * problem.dilation_width) if position >= 0 else 0
        piece.column = column
        piece.vectors = 2 if ahead >= 2 * stride * LANES and problem.out_width - column >= 2 * LANES else 1
        piece.lanes = min(LANES, problem.out_width - column)
        piece.masks = -1
        if ahead < stride * LANES or piece.lanes < LANES:
            piece.masks = <int> (masked * PLANE_TAPS * PLANE_STRIDES)
            masked += 1
            for tap in range(problem.kernel_width):
                for i in range(stride):
                    mask = <int *> &pieces.masks[piece.masks + tap * stride + i]
                    for lane in range(LANES):
                        source = position + tap * problem.dilation_width + i * LANES + lane
                        bits = 0 <= source < problem.width and (i * LANES + lane) // stride < piece.lanes
                        mask[lane] = -bits
        column += piece.vectors * LANES
        pieces.count += 1
    return column


cdef void run_planes(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height; weights are packed as for bands."""
    cdef const float *blocks = <const float *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Py_ssize_t block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width
    cdef Py_ssize_t itemsize = item_bytes(problem.element), column = 0, next_column, image, row, rows, position, channel, output, phase, first
    cdef Py_ssize_t x_rows[ROW_TILES]
    cdef Py_ssize_t y_rows[ROW_TILES]
    cdef Tile tiles[ROW_TILES]
    cdef const char *x_plane
    cdef char *y_plane
    cdef const Piece *piece
    cdef vf32 limits[2]
    cdef Pieces pieces
    cdef int i, tile, count
    cdef Line down = line_of(
        problem.out_height, problem.height, problem.stride_height, problem.pad_top, problem.kernel_height, problem.dilation_height,
        problem.x_strides[1], problem.y_strides[1], itemsize,
    )
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    while column < problem.out_width:
        next_column = cut_pieces(problem, &pieces, column)
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
                    tiles[count].y_row = down.phases * down.y
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
                                plane_tiles[problem.element](
                                    &tiles[tile], limits, blocks + output // LANES * block_vectors * LANES + output % LANES,
                                    <int> problem.kernel_width, <int> problem.stride_width, piece.vectors,
                                    x_plane + x_rows[tile] + piece.column * problem.stride_width * itemsize, y_plane + y_rows[tile] + piece.column * itemsize,
                                    NULL if piece.masks < 0 else &pieces.masks[piece.masks],
                                )
                        y_plane += problem.y_strides[3] * itemsize
                    x_plane += problem.x_strides[3] * itemsize
            position += rows
        column = next_column
