# float32, float64 and halves whose channels lie side by side in input and output: read in place, in tiles of 2 rows and more that share their inputs (taps.h).
#
# What is outside the image is left out, whatever the padding holds: no halo is read, no non-finite weight meets a zero. With a dilation or a stride
# beyond the tiles', outputs whose taps fall on the same pixels are a *phase*; each phase is an undilated convolution of its own.

cdef extern from "taps.h" nogil:
    const int NARROW_TILE
    const int SPLIT_TILE
    const int WIDE_TILE
    const int GENERAL_TILE
    const int TILE_INPUTS
    const int TILE_TAPS
    const int TILE_STRIDES
    ctypedef struct Range:
        int begin, end
    ctypedef struct Tile:
        Py_ssize_t x_row, x_column, y_row, y_column, x_output
        Range upper, both, lower
        int step, rows, stored, taps, stride
        unsigned long long outside
        Py_ssize_t whole_blocks, block_vectors, x_block, y_block, x_tail, y_tail, tail_lanes, back, ahead, first_lanes, whole_lanes, period
        bint spread
        const vf32 *limits
        int above, below
        Py_ssize_t next_x, next_y
        int new_rows, new_columns, next_rows, next_columns
        const vi32 *picked
    const int SPREAD_INDEX
    const int SPREAD_SOURCE
    const int SPREAD_VECTORS
    ctypedef void (*OneTile)(const Tile *tile, const vf32 *block, const char *x, char *y, Py_ssize_t lanes, Py_ssize_t count) noexcept nogil
    const int INSIDE
    const int EDGES
    const int ANYWHERE
    const int SPREAD
    const int SPREAD_WHOLE
    const int WHOLE_TILE
    const int TALL_TILE
    const int SPLIT_TALL_TILE
    int TALL_ROWS(int columns)
    const OneTile pixel_tiles[8][13]
    const int ROW_LINE
    const int COLUMN_LINE
    const int SPLIT_LINE
    const int SQUARE
    const OneTile line_tiles[4][4][8][2]
    const OneTile tiles_table[4][8][3][2][13]
    const OneTile image_tiles[8]
    const OneTile beside_tiles[2]
    const OneTile small_tiles[2]
    const bint DOUBLES
    const int PAGE
    const int DELAYED_PERIOD
    const OneTile general_tiles[4][2][13]
    int where_of(const Tile *tile, int columns)
    void run_tiles(
        Tile *tile, OneTile one, const vf32 *blocks, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t count, int columns, const char *x, char *y)

cdef enum:
    # Output columns of a large image.
    LARGE = 28
    # From pixel to pixel: from here on the inputs and outputs of a tile of 3 rows and 7 columns lie in more pages than a first-level TLB has.
    CROWDED_BYTES = 2048
    # From here on two pixels are as long a run as prefetchers need, and from here on one is.
    SPLIT_BYTES = 256
    BESIDE_BYTES = 1280
    LINE_BYTES = 64
    # Channels of a pixel, in bytes, from which on they are walked pixel by pixel where no inputs are shared; with vectors of 32 bytes and more from two
    # blocks on.
    PIXEL_BYTES = 256
    # Inputs of a row of outputs that a last block of fewer channels finds again in a first-level cache.
    TWICE_BYTES = 16 << 10
    # Blocks of channels from which on one more pays where it makes loads and stores of whole vectors cross no lines; and where those decide: vectors are
    # lines, there are so few products, and tiles share inputs.
    ALIGNED_BLOCKS = 8
    ALIGNED_LINES = 4
    ALIGNED_PRODUCTS = 9
    # Inputs that rows of tiles share, and weights: they stay in a second-level cache. In memory, which long runs suit better, inputs may leave it.
    SHARED_BYTES = 768 << 10
    # Channels of a pixel, in bytes, of which a tile finds what it shares with the one before in a first-level cache; and products that pay for calls.
    TOGETHER_BYTES = 384
    TOGETHER_PRODUCTS = 900
    # Channels of a pixel, in bytes, whose weights one output after another finds there: nine times as much.
    ALONE_BYTES = 1024
    # Images of one block that are read side by side: more streams are slower, fewer make too many calls.
    BLOCKS_TOGETHER = 4
    # For each number that moves, input or output, that make one more pass over them pay.
    WIDENED_PRODUCTS = 8
    # Outputs for which a second plan pays: where parts of vectors are stored by masks, and elsewhere.
    FOLLOWED_BY_MASKS = 64
    FOLLOWED = 512
    # Places of tiles along a row that are found before its rows are walked.
    PLACES = 16


# One axis: outputs p, p + phases, .. are a phase; `step` is the stride within it, in steps of the dilation.
cdef struct Line:
    Py_ssize_t outputs, extent, stride, pad, taps, dilation
    Py_ssize_t phases, step
    # Bytes.
    Py_ssize_t x, y


# A call on rows.
cdef struct Rows:
    Line down, across
    Py_ssize_t itemsize, lanes, channels, blocks, block_vectors
    # Channels that all blocks but the first, and a last overlapped one, begin earlier than at multiples of `lanes`; with `lined` these as well: the vectors
    # at both ends hold what lies beside the channels.
    Py_ssize_t back
    bint lined
    # Channels in blocks: vectors of one, and bytes to the next; 0 vectors: no blocks.
    Py_ssize_t x_vectors, x_step, y_vectors, y_step
    # Inputs are spread over the lanes: a depth multiplier, or fewer channels than lanes.
    bint spread
    # The last block ends with the last channel, rather than starting after the block before.
    bint overlapped
    bint wide
    # Whether whole tiles may be tall, and are split; whether an image is a tile; whether tiles fetch what the next ones add; whether a part of the channels of
    # all tiles comes before the next part.
    bint tall, split, image, fetches, parted
    # Whether outputs of dilated filters are computed in twos, side by side.
    bint beside
    # Whether an output, its channels in a row, is a tile; whether tiles have one row.
    bint pixel, single
    # Whole tiles of filters of one row or column, or that the table lacks; NULL: none.
    const OneTile *line
    int columns
    const OneTile *tiles


cdef inline Line line_of(
    Py_ssize_t outputs, Py_ssize_t extent, Py_ssize_t stride, Py_ssize_t pad, Py_ssize_t taps, Py_ssize_t dilation, Py_ssize_t x, Py_ssize_t y,
    Py_ssize_t itemsize,
) noexcept nogil:
    cdef Line line
    cdef Py_ssize_t common
    if taps == 1:
        dilation = stride
    common = common_divisor(dilation, stride)
    line.outputs, line.extent, line.stride, line.pad, line.taps, line.dilation = outputs, extent, stride, pad, taps, dilation
    line.phases = divide(dilation, common)
    line.step = divide(stride, common)
    line.x = x * itemsize
    line.y = y * itemsize
    return line


cdef bint is_centred(const Line *line) noexcept nogil:
    """Whether no more is outside at either end than a centred filter reaches."""
    cdef Py_ssize_t last = (line.outputs - 1) * line.stride - line.pad + (line.taps - 1) * line.dilation, edge = line.taps // 2 * line.dilation
    return line.pad <= edge and last - (line.extent - 1) <= edge


cdef bint wide_pays(const Line *line) noexcept nogil:
    """Whether to take tiles of 7 columns, which allow no padding but a centred filter's: where they fit better, as in most late layers, or save loads of
    weights. Tiles of 4 read fewer rows at a time, which suits the prefetchers of large images."""
    cdef Py_ssize_t outputs = line.outputs // line.phases
    if VECTOR_BYTES == 16 or outputs < WIDE_TILE or not is_centred(line):
        return False
    if outputs > LARGE and (line.taps <= 3 or line.step > 1):
        return False
    if VECTOR_BYTES == 32:
        # Wide tiles have no registers for 7 weights (taps.h).
        if line.taps == 7 and line.step == 1 and outputs % NARROW_TILE == 0:
            return False
    return divide_up(outputs, WIDE_TILE) * (WIDE_TILE + 1) < divide_up(outputs, NARROW_TILE) * (NARROW_TILE + 1)


cdef bint is_image(const Line *line) noexcept nogil:
    return line.outputs == WIDE_TILE and line.extent == WIDE_TILE and line.pad == line.taps // 2 and line.stride == 1 and line.dilation == 1


cdef bint is_square(const Rows *job, int columns) noexcept nogil:
    """Whether taps and steps are the same down and across, as in tall tiles, and there are outputs for one."""
    return job.down.taps == job.across.taps and job.down.step == job.across.step and divide(job.down.outputs, job.down.phases) >= TALL_ROWS(columns)


cdef inline const OneTile *square_of_tiles(const Rows *job, int element) noexcept nogil:
    """Whole tiles of a square filter that the table lacks; NULL: none."""
    cdef Py_ssize_t taps = job.down.taps
    if taps != job.across.taps or taps >= TILE_TAPS or job.down.step * job.across.step > 1 or line_tiles[element][SQUARE][taps][INSIDE] == NULL:
        return NULL
    return &line_tiles[element][SQUARE][taps][0]


cdef const OneTile *line_of_tiles(const Rows *job, int element, int distance) noexcept nogil:
    """Whole tiles of a filter of one row or column, or of one that the table lacks; NULL: none. Three products for each input from beyond the
    second-level cache leave it to other tiles."""
    cdef Py_ssize_t taps = max(job.down.taps, job.across.taps)
    cdef int kind
    if job.down.step * job.across.step > 1 or taps >= TILE_TAPS:
        return NULL
    if min(job.down.taps, job.across.taps) > 1:
        return square_of_tiles(job, element)
    if job.split and job.down.taps == 1 and line_tiles[element][SPLIT_LINE][taps][INSIDE] != NULL:
        return &line_tiles[element][SPLIT_LINE][taps][0]
    kind = COLUMN_LINE if job.across.taps == 1 else ROW_LINE
    if (taps <= 3 and distance >= BEYOND_SECOND_LEVEL) or line_tiles[element][kind][taps][INSIDE] == NULL:
        return NULL
    return &line_tiles[element][kind][taps][0]


cdef inline Py_ssize_t lowest_bit(Py_ssize_t number) noexcept nogil:
    return number & -number


cdef inline bint shares_sets(const Problem *problem) noexcept nogil:
    """Whether pixels of float32 fall into so few sets of a first-level cache of few ways that they are better computed in scratch (prepare_sections)."""
    cdef bint steps = problem.stride_height * problem.stride_width > 1, square = problem.kernel_height == problem.kernel_width == 3
    return (
        ((problem.sets == 1 and (VECTOR_BYTES < 64 or steps or not square or problem.out_width < 2 * WIDE_TILE))
         or (problem.sets == 2 and VECTOR_BYTES < 64 and not steps))
        and problem.element == FLOAT32 and problem.distance < CACHE_EDGE and problem.multiplier == 1 and not (problem.x_block or problem.y_block)
        and problem.x_strides[3] == problem.y_strides[3] == 1 and problem.dilation_height == problem.dilation_width == 1
        and min(problem.out_height, problem.out_width) > 1 and min(problem.kernel_height, problem.kernel_width) > 1
    )


cdef inline bint has_small_tiles(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether the sets of a first-level cache that a tile of 4 rows or columns falls into have no room for its inputs, but for those of one of 2: four sets, or
    rows in the same ones."""
    cdef Py_ssize_t way = problem.sets * lowest_bit(job.across.x)
    return (
        problem.sets > 0 and problem.element == FLOAT32 and problem.distance < CACHE_EDGE and not job.spread
        and job.down.taps == job.across.taps == 3 and job.down.step == job.across.step == 2 and job.across.outputs > NARROW_TILE
        and (problem.sets == 4 or (job.split and job.down.x % way == 0))
    )


cdef bint prepare_rows(Rows *job, const Problem *problem) noexcept nogil:
    """Plan a call; whether a problem is computed here. Depends on nothing but what packing may depend on."""
    cdef bint swapped = problem.out_width == 1 and problem.kernel_width == 1, double = problem.element == FLOAT64, general, crowded
    job.itemsize = item_bytes(problem.element)
    job.lanes = LANES // 2 if double else LANES
    job.channels = problem.channels * problem.multiplier
    if (problem.channels > 1 and problem.x_strides[3] != 1) or (job.channels > 1 and problem.y_strides[3] != 1) or (double and not DOUBLES):
        return False
    if mixed_lanes(problem) or shares_sets(problem):
        return False
    job.down = line_of(
        problem.out_height, problem.height, problem.stride_height, problem.pad_top, problem.kernel_height, problem.dilation_height,
        problem.x_strides[1], problem.y_strides[1], job.itemsize,
    )
    job.across = line_of(
        problem.out_width, problem.width, problem.stride_width, problem.pad_left, problem.kernel_width, problem.dilation_width,
        problem.x_strides[2], problem.y_strides[2], job.itemsize,
    )
    if swapped:
        job.down, job.across = job.across, job.down
    general = (
        job.across.taps >= TILE_TAPS or job.across.step >= TILE_STRIDES
        or tiles_table[problem.element][job.across.taps][job.across.step][double and not swapped and wide_pays(&job.across)][EDGES] == NULL
    )
    if general and (general_tiles[problem.element][0][ANYWHERE] == NULL or (GENERAL_TILE - 1) * job.across.step + job.across.taps > TILE_INPUTS):
        return False
    job.back = job.lanes - problem.lead if problem.lead else 0
    job.blocks = divide_up(job.channels + job.back, job.lanes)
    job.x_vectors, job.x_step = problem.x_block // LANES, problem.x_block_step * job.itemsize
    job.y_vectors, job.y_step = problem.y_block // LANES, problem.y_block_step * job.itemsize
    job.spread = problem.multiplier > 1
    job.overlapped = False
    job.lined = problem.lead > 0 and problem.agrees
    if problem.lead:
        job.overlapped = not job.lined and (job.channels + job.back) % job.lanes != 0
    elif job.channels % job.lanes:
        # Where there are no masks, parts of vectors are stored through memory.
        if job.spread or problem.channel_room < job.blocks * job.lanes - job.channels or (VECTOR_BYTES == 32 and job.channels > job.lanes):
            job.overlapped = job.channels > job.lanes
            job.spread = job.spread or not job.overlapped
        # Few channels and no room: several columns fill a vector of a band.
        if job.spread and job.channels * FOLD_PAYS <= job.lanes and problem.out_width > 1:
            return False
    if double and (job.spread or problem.x_block or problem.y_block):
        return False
    # Others are better widened once (prepare_sections), or have to be.
    if not (double or problem.element == FLOAT32) and (
        problem.kernel_height * problem.kernel_width >= WIDENED_PRODUCTS * (problem.stride_height * problem.stride_width + 1)
        and square_of_tiles(job, problem.element) == NULL if general
        else job.spread and (
            tiles_table[problem.element][job.across.taps][job.across.step][False][SPREAD] == NULL or (VECTOR_BYTES == 32 and problem.multiplier % LANES != 0))
    ):
        return False
    if general and job.spread and problem.element != FLOAT32:
        return False
    if (problem.x_block or problem.y_block) and (job.spread or job.overlapped or problem.x_block % LANES or problem.y_block % LANES):
        return False
    # Of float64 there may be wide tiles alone.
    crowded = not double and problem.distance >= CACHE_EDGE and job.across.x >= (CROWDED_BYTES if job.across.taps <= 3 else 2 * CROWDED_BYTES)
    # Blocks of a pixel that are less than a line would fetch each line several times.
    job.fetches = (
        problem.distance == IN_MEMORY and not (0 <= job.across.x < problem.fetched_pixel) and job.lanes * job.itemsize >= LINE_BYTES and not job.spread
        and job.down.phases == 1 and job.across.phases == 1
    )
    if VECTOR_BYTES == 32:
        # Those of float32 are half a line: every other one fetches.
        job.fetches = (
            problem.distance == IN_MEMORY and problem.element == FLOAT32 and not (problem.x_block or problem.y_block or job.spread)
            and job.down.phases == 1 and job.across.phases == 1
        )
    job.split = (
        problem.distance >= BEYOND_SECOND_LEVEL and job.across.x >= SPLIT_BYTES and divide(job.across.outputs, job.across.phases) >= LARGE
        and not (job.spread or swapped or general or double or job.fetches)
    )
    # In 8 ways the 6 rows of a tile that is split have less room than those of a narrow one.
    if VECTOR_BYTES == 64 and problem.stride_width == 1 and job.down.taps > 1 and problem.sets > 0 and (problem.sets <= 4 or job.across.outputs < 2 * LARGE):
        job.split = False
    job.line = line_of_tiles(job, problem.element, problem.distance) if not job.spread else NULL
    if VECTOR_BYTES > 16:
        if has_small_tiles(job, problem):
            job.split, job.line = False, &small_tiles[0]
    if job.split and job.line != &line_tiles[problem.element][SPLIT_LINE][job.across.taps][0]:
        job.split = tiles_table[problem.element][job.across.taps][job.across.step][False][SPLIT_TALL_TILE] != NULL and is_square(job, NARROW_TILE)
    job.wide = (
        not (job.spread or swapped or general or crowded or job.split or job.line != NULL) and wide_pays(&job.across)
        and tiles_table[problem.element][job.across.taps][job.across.step][True][EDGES] != NULL
    )
    job.single = job.line != NULL and job.down.taps == 1 and not job.split
    job.columns = WIDE_TILE if job.wide else GENERAL_TILE if job.single or (general and job.across.step == 1) else NARROW_TILE
    job.pixel = (
        general and problem.element == FLOAT32 and job.down.taps == job.across.taps <= min(job.down.step, job.across.step) and not (job.spread or swapped)
        and job.across.taps < TILE_TAPS and pixel_tiles[job.across.taps][INSIDE] != NULL
        and (job.blocks > 1 if VECTOR_BYTES > 16 else job.channels * job.itemsize >= PIXEL_BYTES)
        and (VECTOR_BYTES < 64 or job.channels % LANES == 0 or job.blocks >= ALIGNED_BLOCKS or job.down.taps * job.across.extent * job.across.x <= TWICE_BYTES)
    )
    # Nor do tiles find what they share in the first-level cache where all of it falls into two sets.
    if problem.sets == 2 and problem.element == FLOAT32 and job.down.step == job.across.step == 2 and job.down.taps == job.across.taps == 3:
        job.pixel = not (job.spread or swapped or problem.x_block or problem.y_block)
    if job.pixel:
        job.single, job.columns, job.tiles = True, 1, &pixel_tiles[job.across.taps][0]
    elif general or job.single:
        job.tiles = &general_tiles[problem.element][job.across.step > 1][0]
    else:
        job.tiles = &tiles_table[problem.element][job.across.taps][job.across.step][job.wide][0]
    job.tall = job.split or (
        not (crowded and 2 * job.across.x >= 3 * CROWDED_BYTES) and not (job.fetches or job.spread) and job.tiles[TALL_TILE] != NULL
        and is_square(job, job.columns)
    )
    job.image = (
        problem.element == FLOAT32 and job.wide and not job.fetches and job.across.taps < TILE_TAPS and image_tiles[job.across.taps] != NULL
        and is_image(&job.down) and is_image(&job.across) and job.down.taps == job.across.taps
    )
    job.beside = (
        VECTOR_BYTES > 16 and problem.element == FLOAT32 and problem.distance >= BEYOND_SECOND_LEVEL and problem.stride_height == problem.stride_width == 1
        and job.across.phases > 1 and 0 < job.across.x < BESIDE_BYTES and job.across.outputs > LARGE and job.down.taps == job.across.taps == 3
        and not (job.spread or swapped or problem.x_block or problem.y_block) and is_centred(&job.down) and is_centred(&job.across)
        and (VECTOR_BYTES == 32 or problem.sets == 0 or problem.distance >= CACHE_EDGE)
    )
    job.parted = (
        VECTOR_BYTES == 64 and problem.distance == IN_CACHE and not (job.image or job.pixel)
        and problem.out_height * problem.out_width * problem.kernel_height * problem.kernel_width >= TOGETHER_PRODUCTS
    )
    job.block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width + (SPREAD_VECTORS if job.spread else 0)
    return True


cdef inline Py_ssize_t first_channel(const Rows *job, Py_ssize_t block) noexcept nogil:
    """The output channel in lane 0 of a block."""
    if job.overlapped and block == job.blocks - 1:
        return job.channels - job.lanes
    return max(0 if not job.lined else -job.back, block * job.lanes - job.back)


cdef int rows_align(const Rows *job, const Problem *problem) noexcept nogil:
    """Whose vectors should begin on boundaries: where all pixels agree on them, and a block more is little beside all."""
    cdef Py_ssize_t pitches = 0, least = ALIGNED_BLOCKS
    cdef int i
    if (
        VECTOR_BYTES == 64 and min(job.down.taps, job.across.taps) > 1 and job.down.taps * job.across.taps <= ALIGNED_PRODUCTS
        and job.down.step == job.across.step == 1 and job.across.outputs > WIDE_TILE
    ):
        least = ALIGNED_LINES
    if VECTOR_BYTES == 32:
        # The first block and the last one would be calls of their own.
        if job.pixel:
            return ALIGNS_NONE
    for i in range(3):
        pitches |= problem.x_strides[i] | problem.y_strides[i]
    if VECTOR_BYTES == 16 or job.spread or problem.x_block or problem.y_block or pitches % job.lanes or job.channels < least * job.lanes:
        return ALIGNS_NONE
    if VECTOR_BYTES == 64:
        return (ALIGNS_INPUT if job.across.step > 1 or job.across.taps > 3 or problem.sets > 0 else ALIGNS_OUTPUT) + (
            ALIGNS_BOTH if problem.element != FLOAT64 else 0)
    return ALIGNS_INPUT if job.across.step > 1 else ALIGNS_OUTPUT


cdef void place_rows(const Line *line, Tile *tile, Py_ssize_t row, bint two) noexcept nogil:
    """Which input rows inside the image an output row, and the next of its phase, reach."""
    cdef Py_ssize_t position = row * line.stride - line.pad
    cdef int taps = <int> line.taps, begin = <int> divide_up(-position, line.dilation), end = <int> divide_up(line.extent - position, line.dilation)
    tile.rows = 2 if two else 1
    tile.step = <int> line.step if two else 0
    if not two:
        tile.upper = Range(begin, min(taps, end))
        tile.both = tile.lower = Range(0, 0)
        return
    tile.upper = Range(begin, min(min(taps, tile.step), end))
    tile.both = Range(max(begin, tile.step), min(taps, end))
    tile.lower = Range(max(begin, max(taps, tile.step)), min(taps + tile.step, end))


cdef inline bint whole_rows(const Line *line, Tile *tile, Py_ssize_t row, Py_ssize_t count, Py_ssize_t end) noexcept nogil:
    """Whether `count` output rows of a phase, from `row` on, are there, and all input rows that they reach but as many as a centred filter does not."""
    cdef Py_ssize_t first = row * line.stride - line.pad, last = first + ((count - 1) * line.step + line.taps - 1) * line.dilation
    tile.above, tile.below = <int> divide_up(-first, line.dilation), <int> divide_up(last - line.extent + 1, line.dilation)
    return row + (count - 1) * line.phases < end and max(tile.above, tile.below) <= line.taps // 2


cdef inline unsigned long long first_bits(Py_ssize_t count) noexcept nogil:
    return (<unsigned long long> 1 << count) - 1


# Tiles side by side that leave out the same input columns.
cdef struct Place:
    # From the first pixel of a row of inputs and of outputs, in bytes.
    Py_ssize_t x, y
    Py_ssize_t count
    unsigned long long outside
    int stored
    # For one row or two; for two, and for a tall tile's, where `whole_rows`.
    OneTile some, whole, tall


cdef Py_ssize_t find_places(
    const Rows *job, Tile *tile, Place *places, Py_ssize_t first, Py_ssize_t last, Py_ssize_t *phase, Py_ssize_t *done,
) noexcept nogil:
    """The next places of a row of outputs first to last, at most PLACES; `phase` and `done`, 0 at first, tell how far they reach."""
    cdef const Line *across = &job.across
    cdef Py_ssize_t found = 0, outputs, column, position, reach, begin, end
    cdef int where
    while phase[0] < min(across.phases, last - first) and found < PLACES:
        outputs = divide_up(last - first - phase[0], across.phases)
        # The last tile computes some outputs again, which is cheaper than a narrower one.
        if done[0] + job.columns > outputs:
            done[0] = max(0, outputs - job.columns)
        column = first + phase[0] + done[0] * across.phases
        position = column * across.stride - across.pad
        tile.stored = <int> min(outputs - done[0], job.columns)
        # Inputs behind those of a full tile are nobody's.
        reach = (tile.stored - 1) * across.step + across.taps
        begin = min(reach, divide_up(-position, across.dilation))
        end = max(begin, min(reach, divide_up(across.extent - position, across.dilation)))
        tile.outside = (first_bits(begin) | ~first_bits(end)) & first_bits((job.columns - 1) * across.step + across.taps)
        where = where_of(tile, job.columns)
        places.x, places.y = position * across.x, column * across.y
        places.outside, places.stored, places.count = tile.outside, tile.stored, 1
        if where == INSIDE:
            # Of the outputs from here on that reach beyond nothing.
            end = divide_up(across.extent - (across.taps - 1) * across.dilation - position, across.stride * across.phases)
            places.count = min(outputs - done[0], end) // job.columns
        places.some = job.tiles[where + (SPREAD if job.spread else 0)]
        places.whole = places.tall = NULL
        if where < ANYWHERE and job.split and job.line != NULL:
            places.tall = job.line[where]
        elif where < ANYWHERE and job.line != NULL:
            places.whole = job.line[where]
        elif where < ANYWHERE and job.down.taps == across.taps and job.down.step == across.step:
            places.whole = job.tiles[SPREAD_WHOLE if job.spread else WHOLE_TILE + where]
            if job.tall:
                places.tall = job.tiles[(SPLIT_TALL_TILE if job.split else TALL_TILE) + where]
        done[0] += places.count * job.columns
        # All outputs of a place in one call, where a few channels are less work than one.
        if job.pixel and (VECTOR_BYTES == 32 or job.blocks < ALIGNED_BLOCKS):
            places.stored, places.count = <int> places.count, 1
        if done[0] >= outputs:
            phase[0] += 1
            done[0] = 0
        places += 1
        found += 1
    return found


cdef Py_ssize_t find_beside(const Rows *job, Place *places) noexcept nogil:
    """The places of a row of outputs, two columns side by side; at most 7, as what is outside on a side counts up or down."""
    cdef const Line *across = &job.across
    cdef Py_ssize_t found = 0, column = 0, position, i
    cdef unsigned long long outside
    cdef Place *place = places
    while column < across.outputs:
        # The last two may be computed again.
        column = min(column, across.outputs - SPLIT_TILE)
        outside = 0
        for i in range(across.taps * SPLIT_TILE):
            position = column - across.pad + i % SPLIT_TILE + i // SPLIT_TILE * across.dilation
            if not 0 <= position < across.extent:
                outside |= <unsigned long long> 1 << i
        if found == 0 or place.outside != outside or place.y + place.count * SPLIT_TILE * across.y != column * across.y:
            place = &places[found]
            found += 1
            place.x, place.y = (column - across.pad) * across.x, column * across.y
            place.count, place.outside = 0, outside
            place.tall = beside_tiles[outside != 0]
        place.count += 1
        column += SPLIT_TILE
    return found


cdef inline Py_ssize_t block_shift(Py_ssize_t block, Py_ssize_t vectors, Py_ssize_t step, Py_ssize_t itemsize) noexcept nogil:
    """Bytes that a block of channels lies farther than if all channels were side by side."""
    return block // vectors * step - (block - block % vectors) * LANES * itemsize if vectors > 1 else 0


cdef Py_ssize_t run_beside(
    const Rows *job, const Tile *given, Py_ssize_t chunk, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    """Output rows from begin on, two columns side by side of TALL_ROWS rows of a phase, all phases before the next rows; returns the row after them."""
    cdef const Line *down = &job.down
    cdef Py_ssize_t rows = TALL_ROWS(NARROW_TILE), stop = begin + (end - begin) // (rows * down.phases) * rows * down.phases
    cdef Py_ssize_t row, phase, found, block = 0, i
    cdef Place places[PLACES]
    cdef Tile tile = given[0]
    if begin == stop:
        return stop
    found = find_beside(job, places)
    tile.stride, tile.stored = 0, SPLIT_TILE
    tile.x_output, tile.y_column = job.across.x, job.across.y
    while block < job.blocks:
        row = begin
        while row < stop:
            for phase in range(down.phases):
                whole_rows(down, &tile, row + phase, rows, stop)
                for i in range(found):
                    tile.outside = places[i].outside
                    run_tiles(
                        &tile, places[i].tall, blocks, block, min(block + chunk, job.blocks), places[i].count, SPLIT_TILE,
                        x + ((row + phase - down.pad) * down.x + places[i].x), y + ((row + phase) * down.y + places[i].y),
                    )
            row += rows * down.phases
        block += chunk
    return stop


cdef inline Py_ssize_t stored_lanes(const Rows *job, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
    """Lanes first to end as tiles take them: a mask (simd.h), or how many there are, LANES being all of them, of doubles too."""
    if VECTOR_BYTES == 64 and job.itemsize < 8:
        return (1 << end) - (1 << first)
    return LANES if end == job.lanes else end


cdef inline Py_ssize_t period_of(const Rows *job) noexcept nogil:
    """Tile.period."""
    cdef Py_ssize_t period = lowest_bit(PAGE | job.across.x | job.across.y | job.down.x | job.down.y)
    return period if period >= DELAYED_PERIOD and not (job.spread or job.x_vectors or job.y_vectors) else 0


cdef void run_image(
    const Rows *job, const vf32 *limits, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Output rows begin to end, columns first to last."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Py_ssize_t chunk, block = 0, row_phase, row, rows, found, phase, done, x_shift, y_shift, i, parts
    cdef Py_ssize_t shared = 2 * SHARED_BYTES if job.fetches else SHARED_BYTES
    cdef bint whole, tall
    cdef const char *x_row
    cdef char *y_row
    cdef Place places[PLACES]
    cdef Tile tile
    # All channels of a tile before the next tile, which is the order in memory; unless the next row of tiles would not find its inputs in the cache, or
    # the next tile in the first one.
    parts = divide_up((down.taps + 2 * down.step) * across.extent * across.x + job.blocks * job.block_vectors * VECTOR_BYTES, shared)
    if job.parted:
        parts = max(parts, job.channels * job.itemsize // TOGETHER_BYTES)
    elif job.pixel and VECTOR_BYTES == 64:
        parts = max(parts, job.channels * job.itemsize // ALONE_BYTES)
    chunk = divide_up(job.blocks, max(1, parts))
    tile.x_row = down.dilation * down.x
    tile.x_column = across.dilation * across.x
    tile.x_output = across.step * tile.x_column
    tile.y_row = down.phases * down.y
    tile.y_column = across.phases * across.y
    tile.block_vectors = job.block_vectors
    tile.whole_blocks = (job.channels + job.back) // job.lanes
    tile.back = job.back * job.itemsize
    tile.x_block = tile.y_block = job.lanes * job.itemsize
    tile.x_tail = tile.y_tail = first_channel(job, job.blocks - 1) * job.itemsize
    # Blocks of one vector are that far apart, larger ones are images of their own.
    if job.x_vectors == 1:
        tile.x_block, tile.x_tail = job.x_step, (job.blocks - 1) * job.x_step
        chunk = BLOCKS_TOGETHER
    elif job.x_vectors:
        chunk = job.x_vectors
    if job.y_vectors == 1:
        tile.y_block, tile.y_tail = job.y_step, (job.blocks - 1) * job.y_step
    elif job.y_vectors:
        chunk = common_divisor(job.y_vectors, job.x_vectors)
    tile.tail_lanes = stored_lanes(job, 0, job.lanes if job.overlapped else (job.channels + job.back) % job.lanes)
    tile.first_lanes = tile.whole_lanes = stored_lanes(job, 0, job.lanes)
    tile.ahead = 0
    if job.lined:
        tile.ahead, tile.first_lanes = tile.back, stored_lanes(job, job.back, job.lanes)
    tile.spread = job.spread
    tile.period = period_of(job)
    tile.taps, tile.stride = <int> across.taps, <int> across.step
    tile.limits = limits
    tile.new_rows = tile.next_rows = 0
    if job.fetches:
        tile.new_columns, tile.next_columns = job.columns * tile.stride, job.columns
        tile.next_x = (down.taps - down.step) * tile.x_row + (tile.new_columns + across.taps - across.step) * tile.x_column
        tile.next_y = job.columns * tile.y_column
    if job.image and end - begin == WIDE_TILE:
        x -= down.pad * down.x + across.pad * across.x
        while block < job.blocks:
            run_tiles(
                &tile, image_tiles[across.taps], blocks, block, min(block + chunk, job.blocks), 1, WIDE_TILE,
                x + block_shift(block, job.x_vectors, job.x_step, job.itemsize), y + block_shift(block, job.y_vectors, job.y_step, job.itemsize),
            )
            block += chunk
        return
    if job.beside:
        begin = run_beside(job, &tile, chunk, blocks, x, y, begin, end)
        if begin == end:
            return
    phase = done = 0
    while True:
        found = find_places(job, &tile, places, first, last, &phase, &done)
        if found == 0:
            break
        tall = True
        for i in range(found):
            tall = tall and places[i].tall != NULL
        block = 0
        while block < job.blocks:
            x_shift = block_shift(block, job.x_vectors, job.x_step, job.itemsize)
            y_shift = block_shift(block, job.y_vectors, job.y_step, job.itemsize)
            for row_phase in range(min(down.phases, end - begin)):
                row = begin + row_phase
                while row < end:
                    # Two and two rather than three and one.
                    rows = TALL_ROWS(job.columns)
                    whole = tall and (rows == 4 or divide_up(end - row, down.phases) != 4) and whole_rows(down, &tile, row, rows, end)
                    if job.single:
                        rows = 1
                        whole = whole_rows(down, &tile, row, 1, end)
                        place_rows(down, &tile, row, False)
                    elif not whole:
                        rows = 2
                        whole = whole_rows(down, &tile, row, 2, end)
                        place_rows(down, &tile, row, row + down.phases < end)
                    if job.fetches:
                        tile.new_rows, tile.next_rows = <int> (rows * down.step), <int> rows
                    x_row = x + ((row * down.stride - down.pad) * down.x + x_shift)
                    y_row = y + (row * down.y + y_shift)
                    for i in range(found):
                        tile.outside, tile.stored = places[i].outside, places[i].stored
                        parts = job.columns // SPLIT_TILE if job.split and rows > 2 else 1
                        if VECTOR_BYTES > 16:
                            if whole and job.line == &small_tiles[0] and places[i].whole != NULL:
                                parts = job.columns // SPLIT_TILE
                        run_tiles(
                            &tile, places[i].tall if rows > 2 else places[i].whole if whole and places[i].whole != NULL else places[i].some,
                            blocks, block, min(block + chunk, job.blocks), places[i].count * parts, job.columns // parts,
                            x_row + places[i].x, y_row + places[i].y,
                        )
                    row += rows * down.phases
            block += chunk


cdef inline Py_ssize_t followed_rows(const Line *down) noexcept nogil:
    """Output rows that do not reach the last row of inputs."""
    cdef Py_ssize_t room = down.extent - 1 + down.pad - (down.taps - 1) * down.dilation
    return min(divide_up(room, down.stride), down.outputs)


cdef void run_rows(const Rows *job, const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height."""
    cdef const vf32 *blocks = <const vf32 *> (<const char *> problem.packed + HEADER_BYTES)
    cdef vf32 limits[2]
    cdef const vf32 *clamp = limits if problem.float_min > -INFINITY or problem.float_max < INFINITY else NULL
    cdef Py_ssize_t image, row, rows, followed = 0
    cdef bint swapped = problem.out_width == 1 and problem.kernel_width == 1
    cdef Rows roomy
    cdef Problem lent
    cdef const Rows *one
    # Behind the pixels of all rows but the last one lies memory of this image: whole vectors may be read there, if not written.
    if job.spread and problem.multiplier == 1 and not swapped and problem.x_strides[1] >= LANES - job.channels:
        followed = followed_rows(&job.down)
    if followed * problem.out_width < (FOLLOWED_BY_MASKS if VECTOR_BYTES == 64 else FOLLOWED):
        followed = 0
    else:
        lent = problem[0]
        lent.channel_room = LANES - job.channels
        prepare_rows(&roomy, &lent)
        roomy.block_vectors = job.block_vectors
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    if problem.element == FLOAT64:
        (<vf64 *> limits)[LOW] = splat_f64(problem.float_min)
        (<vf64 *> limits)[HIGH] = splat_f64(problem.float_max)
    while begin < end:
        image = begin // problem.out_height
        row = begin % problem.out_height
        rows = min(problem.out_height - row, end - begin)
        one = job
        if row < followed:
            rows = min(rows, followed - row)
            one = &roomy
        if swapped:
            run_image(
                job, clamp, blocks, x + image * problem.x_strides[0] * job.itemsize, y + image * problem.y_strides[0] * job.itemsize,
                0, 1, row, row + rows,
            )
        else:
            run_image(
                one, clamp, blocks, x + image * problem.x_strides[0] * job.itemsize, y + image * problem.y_strides[0] * job.itemsize,
                row, row + rows, 0, problem.out_width,
            )
        begin += rows


# What weights are packed as.
ctypedef fused real:
    float
    double


cdef void pack_rows(const Rows *job, const Problem *problem, const real *weights, const real *bias, void *packed) noexcept nogil:
    cdef real *target
    cdef real *row
    cdef int *index
    cdef Py_ssize_t block, lane, tap, channel, first, before, valid, taps = problem.kernel_height * problem.kernel_width
    memset(packed, 0, HEADER_BYTES)
    for block in range(job.blocks):
        target = <real *> (<char *> packed + HEADER_BYTES) + block * job.block_vectors * job.lanes
        index = <int *> target + (job.block_vectors - SPREAD_VECTORS) * LANES
        first = first_channel(job, block) // problem.multiplier
        for lane in range(job.lanes):
            channel = first_channel(job, block) + row_lane(<int> lane, problem.element)
            target[lane] = bias[channel] if bias != NULL and 0 <= channel < job.channels else 0
            if target[lane] != target[lane]:
                target[lane] = NAN  # with no bits that a half lacks
            if job.spread:
                index[SPREAD_INDEX * LANES + lane] = <int> (min(channel, job.channels - 1) // problem.multiplier - first)
                index[SPREAD_SOURCE * LANES + lane] = 0
        for tap in range(taps):
            row = target + (CONSTANTS_FLOAT + tap) * job.lanes
            if problem.element != BFLOAT16:
                channel = first_channel(job, block)
                before = max(0, -channel)
                valid = min(job.lanes, job.channels - channel)
                memset(row, 0, job.lanes * sizeof(real))
                memcpy(row + before, weights + tap * job.channels + (channel + before), (valid - before) * sizeof(real))
                continue
            for lane in range(job.lanes):
                channel = first_channel(job, block) + row_lane(<int> lane, problem.element)
                row[lane] = weights[tap * job.channels + channel] if 0 <= channel < job.channels else 0
        if job.spread:
            index[SPREAD_SOURCE * LANES] = <int> first
            index[SPREAD_SOURCE * LANES + 1] = index[SPREAD_INDEX * LANES + LANES - 1] + 1
