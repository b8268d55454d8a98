# float32, float64 and halves whose channels lie side by side in input and output: read in place, in tiles of 2 rows and more that share their inputs (taps.h).
#
# What is outside the image is left out, whatever the padding holds: no halo is read, no non-finite weight meets a zero. With a dilation or a stride
# beyond the tiles', outputs whose taps fall on the same pixels are a *phase*; each phase is an undilated convolution of its own.
# Here is what a call is computed by; depthwise_rows.pxi walks, or depthwise_walks.pxi.

from libc.stdint cimport uintptr_t

cdef extern from "variants.h" nogil:
    const int NARROW_TILE
    const int SPLIT_TILE
    const int WIDE_TILE
    const int GENERAL_TILE
    const int TILE_INPUTS
    const int TILE_TAPS
    const int TILE_STRIDES
    ctypedef struct Range:
        int begin, end
    enum:
        MOST_REACHED
    ctypedef struct Reached:
        Py_ssize_t tap, held, y
        bint begins, ends
    ctypedef struct Running:
        const vf32 *first
        char *sums
        Py_ssize_t next
        int count
        Reached rows[MOST_REACHED]
    ctypedef struct Walk:
        Py_ssize_t x[4]
        Py_ssize_t y[4]
        unsigned long long outside[4]
        int places, rows, extent, above
    ctypedef struct Tile
    ctypedef void (*OneTile)(const Tile *tile, const vf32 *block, const char *x, char *y, Py_ssize_t lanes, Py_ssize_t count) noexcept nogil
    ctypedef struct Tile:
        Py_ssize_t x_row, x_column, y_row, y_column, x_output
        Range upper, both, lower
        int step, rows, stored, cut, taps, stride
        unsigned long long outside
        Py_ssize_t whole_blocks, block_vectors, x_block, y_block, x_tail, y_tail, tail_lanes, back, ahead, first_lanes, whole_lanes, period
        bint spread
        const vf32 *limits
        int above, below
        Py_ssize_t next_x, next_y
        int new_rows, new_columns, next_rows, next_columns, touches
        const vi32 *picked
        const Running *running
        const Walk *walk
        Py_ssize_t begins[3]
        Py_ssize_t ends[3]
        OneTile eight
        Py_ssize_t eight_bytes, eight_block
    const int SPREAD_INDEX
    const int SPREAD_SOURCE
    const int SPREAD_VECTORS
    const int INSIDE
    const int EDGES
    const int ANYWHERE
    const int SPREAD
    const int SPREAD_WHOLE
    const int WHOLE_TILE
    const int TALL_TILE
    const int SPLIT_TALL_TILE
    int TALL_ROWS(int columns)
    const OneTile pixel_tiles[4][8][13]
    const int RESIDENT_TAPS
    const int COLUMN_LINE
    const int UPRIGHT_ROWS
    const int SPLIT_LINE
    const int SQUARE
    const OneTile line_tiles[4][3][8][2]
    const OneTile row_tiles[4][8][8]
    const OneTile tiles_table[4][8][3][2][13]
    const OneTile image_tiles[4][8][8]
    const OneTile beside_tiles[2][2]
    const OneTile small_tiles[8][3][2]
    const OneTile words_tiles[3][2]
    const int EIGHT
    const int EIGHT_TAPS
    const OneTile eight_tiles[4][3][2]
    const OneTile eight_ends[4][8][3][2][2]
    const OneTile running_tiles[8][3][8]
    const int WINOGRAD_ROWS
    int WINOGRAD_VECTORS(Py_ssize_t taps)
    const OneTile winograd_tiles[8]
    const bint DOUBLES
    const int DELAYED_PERIOD
    const OneTile general_tiles[4][2][13]
    int where_of(const Tile *tile, int columns)
    void run_tiles(
        Tile *tile, OneTile one, const vf32 *blocks, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t count, int columns, const char *x, char *y)
    void run_row(const Tile *tile, const vf32 *blocks, Py_ssize_t begin, Py_ssize_t end, const char *x, char *y)
    const int LONG_TILE
    void run_long(const Tile *tile, const vf32 *blocks, Py_ssize_t first, Py_ssize_t end, const char *x, char *y)

cdef enum:
    # Blocks up to which 3x3 filters have the last 8 channels as a block of their own.
    END_BLOCKS = 5
    # Output columns of a large image.
    LARGE = 28
    # From pixel to pixel, from memory: from where on Zen 4 fetches ahead for tiles of 3x3, by steps of 2, of one row, and of others.
    FETCHED_SPLIT = 384
    FETCHED_BY_TWO = 192
    FETCHED_ROWS = 256
    FETCHED_TALL = 128
    # From pixel to pixel: from here on the inputs and outputs of a tile of 3 rows and 7 columns lie in more pages than a first-level TLB has.
    CROWDED_BYTES = 2048
    # From here on two pixels are as long a run as prefetchers need. On Zen 4, by 3x3 without a step, tiles are split from SPLIT_LONG on where inputs and
    # outputs are less than SPLIT_LARGE in all.
    SPLIT_BYTES = 256
    SPLIT_LONG = 704
    SPLIT_LARGE = 14 << 20
    # Of a first-level cache: numbers that are a multiple of it apart fall into one set.
    WAY_BYTES = 4096
    BESIDE_BYTES = 1280
    LINE_BYTES = 64
    # Of a first-level cache that is `roomy`, and where half a vector takes half of its time.
    ROOMY_WAYS = 12
    HALVING_WAYS = 8
    # Pixels that are walked one by one by few taps of one row as well.
    LONG_BYTES = 1536
    # Channels of a pixel, in bytes, from which on they are walked pixel by pixel where no inputs are shared; with vectors of 32 bytes and more from two
    # blocks on.
    PIXEL_BYTES = 256
    # Inputs of a row of outputs that a last block of fewer channels finds again in a first-level cache.
    TWICE_BYTES = 16 << 10
    # Blocks of channels from which on one more pays where it makes loads and stores of whole vectors cross no lines (depthwise_aligned.pxi).
    ALIGNED_BLOCKS = 8
    # Inputs that rows of tiles share, and weights: they stay in a second-level cache. In memory, which long runs suit better, inputs may leave it.
    SHARED_BYTES = 768 << 10
    # Channels of a pixel, in bytes, of which a tile finds what it shares with the one before in a first-level cache; and products that pay for calls, fewer
    # where that cache has 12 ways and is AMD's, but for pixels that share two sets of it, and on Zen 4 by 3x3 by steps of 2, and by 5x5.
    TOGETHER_BYTES = 384
    # The same of which rows of 3x3 by 2 find what they share there, where it has few ways, of up to so many pixels; half of those do so without.
    FEW_TOGETHER_BYTES = 256
    ROWS_STAY = 32
    TOGETHER_PRODUCTS = 900
    TOGETHER_FEW = 100
    TOGETHER_TALL = 600
    # Beyond the second-level cache so do those of pixels of so many bytes, where a first-level one of 12 ways is AMD's, or rows stay.
    PARTED_BYTES = 640
    PARTED_LARGE_BYTES = 832
    PARTED_SPLIT_BYTES = 1024
    # Weights that one output after another finds there.
    ALONE_BYTES = 10 << 10
    # Channels of a pixel, in bytes, from which on outputs of undilated filters, in AMD's first-level cache of 12 ways, come one after the other even so.
    ALONE_PIXEL_BYTES = 1024
    # Images of one block that are read side by side: more streams are slower, fewer make too many calls; and at the edge of the last-level cache.
    BLOCKS_TOGETHER = 4
    BLOCKS_AT_EDGE = 2
    # For each number that moves, input or output, that make one more pass over them pay.
    WIDENED_PRODUCTS = 8
    # Outputs for which a second plan pays: where parts of vectors are stored by masks, and elsewhere.
    FOLLOWED_BY_MASKS = 64
    FOLLOWED = 512
    # Blocks of channels that one row of inputs after another adds to, whose sums, of MOST_REACHED rows of outputs, stay in a first-level cache; those of a row
    # begin behind those of the row before, in the same places of a page: far enough for the loads of one not to wait for the stores of the other.
    RUNNING_BLOCKS = 8
    # The fewest columns of such a tile; of a phase, which other tiles of 4 fit as well, one more.
    LEAST_RUNNING = 4
    PAGE_BYTES = 4096
    RUNNING_PITCH = PAGE_BYTES + 192
    # Rows of outputs for which three columns are better two tiles of two.
    MANY_ROWS = 8
    # Taps of a row from which on a filter may be a long one, and from which on they are many, of a filter of one row; outputs in a row of one block of
    # channels that come before the next block.
    LONG_TAPS = 6
    MANY_TAPS = 12
    MANY_IN_ROW = 11
    LONG_OUTPUTS = 64
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
    # Rows and columns have changed places, of an image of one column; no table has tiles of this width and step.
    bint swapped, general
    # Inputs are spread over the lanes: a depth multiplier, or fewer channels than lanes.
    bint spread
    # Where all vectors have 8 lanes, of one input channel, whole tiles, and tall ones; NULL: they have not. Those of the last 8 channels, and whether they
    # are a block of their own, besides.
    const OneTile *eights
    const OneTile *end_tiles
    bint ends
    # The last block ends with the last channel, rather than starting after the block before.
    bint overlapped
    # Whether tiles have 7 columns, and whole ones 2 rows of 2 each, which the first-level cache has room for.
    bint wide, small
    # Whether whole tiles may be tall, and are split; whether tiles fetch what the next ones add; whether a part of the channels of all tiles comes before the
    # next part.
    bint tall, split, fetches, parted
    # Whether those are the tall ones of a filter of one column.
    bint upright
    # Of a whole image; NULL: none.
    OneTile image
    # Whether tiles touch what the next block of channels reads, in streams that prefetchers do not follow.
    bint touches
    # Whether those parts are so small that rows of tiles share inputs in the first-level cache.
    bint rows_stay
    # Whether there are tiles for the last SPLIT_TILE columns, and of no more rows than others, for rows of fewer outputs than a tile's.
    bint narrows, halves
    # Whether outputs of dilated filters are computed in twos, side by side; or in fours of two rows; whether those tiles fetch what the next ones add.
    bint beside, flat, fetches_beside
    # Whether an output, its channels in a row, is a tile; whether a row of outputs is, of which few channels at a time; whether tiles have one row.
    bint pixel, resident, single
    # Whether a filter is so long that outputs take the taps that each has inside.
    bint lengthy
    # Rows of inputs one by one, with sums that wait, by columns of a tile; NULL: none. Or all of a block of channels before the next block (D17), and how many
    # columns its tiles have; NULL: none.
    const OneTile *running
    OneTile walking
    Py_ssize_t walked
    # Rows of outputs in pairs, by fewer products (winograd.h); tall tiles of bfloat16, or whole ones by steps of 2, that move words; NULL: none.
    OneTile pairs, words
    # Whole tiles of filters of one column, or that the table lacks, or of one row where they are split; of one row, by columns; NULL: none.
    const OneTile *line
    const OneTile *one_row
    # Whether those have the widths that fit a row, no row or column of outputs being without inputs but as a centred filter's are.
    bint fits
    int columns
    const OneTile *tiles
    # Blocks that come before the next tile; what all tiles have in common.
    Py_ssize_t chunk
    Tile tile


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
    cdef Py_ssize_t outputs = line.outputs // line.phases, narrow
    if VECTOR_BYTES == 16 or outputs < WIDE_TILE or not is_centred(line):
        return False
    if outputs > LARGE and (line.taps <= 3 or line.step > 1):
        return False
    if VECTOR_BYTES == 32:
        # Wide tiles have no registers for 7 weights (taps.h): only where they compute fewer columns.
        if line.taps == 7 and line.step == 1 and divide_up(outputs, NARROW_TILE) * NARROW_TILE <= divide_up(outputs, WIDE_TILE) * WIDE_TILE:
            return False
    narrow = divide_up(outputs, NARROW_TILE) * (NARROW_TILE + 1)
    if 0 < outputs % NARROW_TILE <= SPLIT_TILE and line.taps < TILE_TAPS and line.step < TILE_STRIDES and small_tiles[line.taps][line.step][INSIDE] != NULL:
        narrow -= NARROW_TILE - SPLIT_TILE
    return divide_up(outputs, WIDE_TILE) * (WIDE_TILE + 1) < narrow


cdef bint narrow_pays(const Line *line, const Problem *problem) noexcept nogil:
    """Whether 3x3 takes tiles of 4 columns where those of 7 fit as well, with AMD's first-level cache of 12 ways: it has no room for 9 columns of inputs that
    share two sets; and 4 rows of 28 outputs read fewer rows for each than 3."""
    cdef Py_ssize_t outputs = line.outputs // line.phases
    return problem.roomy and problem.element == FLOAT32 and line.taps == 3 and line.step == 1 and (
        outputs >= LARGE or (0 < problem.sets <= 2 * lowest_bit(line.dilation) and outputs >= 2 * WIDE_TILE))


cdef bint is_image(const Line *line) noexcept nogil:
    return line.outputs == line.extent and line.pad == line.taps // 2 and line.stride == 1 and line.dilation == 1


cdef bint is_square(const Rows *job, int columns) noexcept nogil:
    """Whether taps and steps are the same down and across, as in tall tiles, and there are outputs for one."""
    return job.down.taps == job.across.taps and job.down.step == job.across.step and divide(job.down.outputs, job.down.phases) >= TALL_ROWS(columns)


cdef inline const OneTile *square_of_tiles(const Rows *job, int element) noexcept nogil:
    """Whole tiles of a square filter that the table lacks; NULL: none."""
    cdef Py_ssize_t taps = job.down.taps
    if taps != job.across.taps or taps >= TILE_TAPS or job.down.step * job.across.step > 1 or line_tiles[element][SQUARE][taps][INSIDE] == NULL:
        return NULL
    return &line_tiles[element][SQUARE][taps][0]


cdef const OneTile *line_of_tiles(const Rows *job, const Problem *problem) noexcept nogil:
    """Whole tiles of a filter of one column, of one that the table lacks, or, in memory, of one row where tiles are split; NULL: none. Three products for each
    input that is fetched, and, by tiles of 2 rows, of any from beyond the second-level cache, leave a column to other tiles."""
    cdef Py_ssize_t taps = max(job.down.taps, job.across.taps)
    cdef int element = problem.element
    if job.down.step * job.across.step > 1 or taps >= TILE_TAPS:
        return NULL
    if min(job.down.taps, job.across.taps) > 1:
        return square_of_tiles(job, element)
    if job.down.taps == 1:
        return &line_tiles[element][SPLIT_LINE][taps][0] if job.split and line_tiles[element][SPLIT_LINE][taps][INSIDE] != NULL else NULL
    if line_tiles[element][COLUMN_LINE][taps][INSIDE] == NULL or divide(job.down.outputs, job.down.phases) < UPRIGHT_ROWS or (
        taps <= 3 and (job.fetches if VECTOR_BYTES == 64 else problem.distance >= BEYOND_SECOND_LEVEL)
    ):
        return NULL
    return &line_tiles[element][COLUMN_LINE][taps][0]


cdef const OneTile *row_of_tiles(const Rows *job, const Problem *problem) noexcept nogil:
    """Tiles of one row of a filter of one row; NULL: none. In memory three products for each input leave it to tiles that read longer runs."""
    cdef Py_ssize_t taps = job.across.taps
    if (
        job.down.taps > 1 or job.down.step * job.across.step > 1 or taps >= TILE_TAPS or row_tiles[problem.element][taps][GENERAL_TILE] == NULL
        or (problem.distance == IN_MEMORY and taps <= 3 and job.across.x >= SPLIT_BYTES)
    ):
        return NULL
    return &row_tiles[problem.element][taps][0]


cdef inline Py_ssize_t lowest_bit(Py_ssize_t number) noexcept nogil:
    return number & -number


cdef inline bint is_far(const Problem *problem) noexcept nogil:
    """Whether pixels that share sets lie too far for anything but tiles."""
    return problem.distance >= (CACHE_EDGE if problem.roomy else IN_MEMORY)


cdef bint runs_sums(const Problem *problem) noexcept nogil:
    """Whether pixels of float32 fall into so few sets of a first-level cache of few ways that tiles find nothing there that they share, nor what is fetched
    ahead for the next block, and each input is better loaded once: those of a phase into one set, or two where there is a step."""
    cdef Line down, across
    cdef Py_ssize_t sets
    if VECTOR_BYTES < 64 or problem.sets == 0 or is_far(problem):
        return False
    down = line_of(problem.out_height, problem.height, problem.stride_height, problem.pad_top, problem.kernel_height, problem.dilation_height, 0, 0, 0)
    across = line_of(problem.out_width, problem.width, problem.stride_width, problem.pad_left, problem.kernel_width, problem.dilation_width, 0, 0, 0)
    sets = max(1, problem.sets // lowest_bit(across.dilation))
    return (
        problem.element == FLOAT32 and problem.multiplier == 1 and not (problem.x_block or problem.y_block)
        and sets <= (2 if across.step > 1 else 1)
        and problem.x_strides[3] == problem.y_strides[3] == 1 and problem.channels >= LANES
        and down.taps == across.taps < TILE_TAPS and down.step == across.step < TILE_STRIDES
        and running_tiles[across.taps][across.step][WIDE_TILE] != NULL
        and across.outputs >= (LEAST_RUNNING + (across.phases > 1)) * across.phases and is_centred(&down) and is_centred(&across)
    )


cdef bint goes_by_pixels(const Problem *problem) noexcept nogil:
    """Whether pixels that share sets are faster read one after another, by 3x3 with a step of 2, than by rows of inputs or through scratch."""
    return (
        VECTOR_BYTES == 64 and not problem.roomy and problem.kernel_height == problem.kernel_width == 3
        and problem.stride_height == problem.stride_width == 2 and problem.dilation_height == problem.dilation_width == 1 and not runs_sums(problem)
    )


cdef inline bint shares_sets(const Problem *problem) noexcept nogil:
    """Whether pixels of float32 fall into so few sets of a first-level cache of few ways that they are better computed in scratch (prepare_sections)."""
    cdef bint steps = problem.stride_height * problem.stride_width > 1
    return (
        ((problem.sets == 1 and not (problem.roomy and steps)) or (problem.sets == 2 and VECTOR_BYTES < 64 and not steps)) and not runs_sums(problem)
        and not goes_by_pixels(problem) and not (is_far(problem) and (VECTOR_BYTES == 64 or problem.roomy))
        and problem.element == FLOAT32 and problem.multiplier == 1 and not (problem.x_block or problem.y_block)
        and problem.x_strides[3] == problem.y_strides[3] == 1 and problem.dilation_height == problem.dilation_width == 1
        and min(problem.out_height, problem.out_width) > 1 and min(problem.kernel_height, problem.kernel_width) > 1
        # An input that is multiplied once is read in place as soon.
        and (problem.kernel_height > problem.stride_height or problem.kernel_width > problem.stride_width)
    )


cdef bint has_small_tiles(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether the sets of a first-level cache that a tile of 4 rows or columns falls into have no room for its inputs, but for those of one of 2: four sets, or
    rows in the same ones; of fewer sets not even for those. Or whether memory is better read in fewer streams."""
    cdef Py_ssize_t way = problem.sets * lowest_bit(job.across.x)
    if (
        problem.element != FLOAT32 or job.spread or not job.down.taps == job.across.taps == 3 or not job.down.step == job.across.step == 2
        or job.across.outputs <= NARROW_TILE
    ):
        return False
    return (VECTOR_BYTES == 64 and problem.halving and job.fetches) or (
        problem.sets > 2 and not problem.roomy and problem.distance < (CACHE_EDGE if problem.sets == 4 or job.across.x > PARTED_SPLIT_BYTES else IN_MEMORY)
        and (problem.sets == 4 or (job.split and job.down.x % way == 0))
    )


cdef Range paired_rows(const Line *line) noexcept nogil:
    """Output rows, an even number, all of whose inputs are there, from the first such row on."""
    cdef int first = <int> max(0, line.pad)
    return Range(first, first + <int> max(0, min(line.outputs, line.extent + line.pad - line.taps + 1) - first) // 2 * 2)


cdef bint pairs_pay(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether Winograd's pairs of rows are asked for, known, and faster: rows that have pairs, and of whose columns few are computed twice."""
    cdef Range rows = paired_rows(&job.down)
    cdef Py_ssize_t columns = divide_up(job.across.outputs, WIDE_TILE) * WIDE_TILE
    return (
        problem.algorithm == WINOGRAD and problem.element == FLOAT32 and not (job.spread or job.swapped or job.general)
        and job.down.taps == job.across.taps < TILE_TAPS and winograd_tiles[job.across.taps] != NULL
        and job.down.step == job.across.step == job.down.phases == job.across.phases == 1 and is_centred(&job.across)
        and rows.end - rows.begin >= WINOGRAD_ROWS and job.across.outputs >= WIDE_TILE and 10 * columns <= 11 * job.across.outputs
    )


cdef void name_lines(Rows *job, const Problem *problem) noexcept nogil:
    """Rows and columns, or columns and rows of an image of one column; whether the tables have tiles for them."""
    job.itemsize = item_bytes(problem.element)
    job.down = line_of(
        problem.out_height, problem.height, problem.stride_height, problem.pad_top, problem.kernel_height, problem.dilation_height,
        problem.x_strides[1], problem.y_strides[1], job.itemsize,
    )
    job.across = line_of(
        problem.out_width, problem.width, problem.stride_width, problem.pad_left, problem.kernel_width, problem.dilation_width,
        problem.x_strides[2], problem.y_strides[2], job.itemsize,
    )
    job.swapped = problem.out_width == 1 and problem.kernel_width == 1
    if job.swapped:
        job.down, job.across = job.across, job.down
    # Of float64 there may be wide tiles alone.
    job.general = (
        job.across.taps >= TILE_TAPS or job.across.step >= TILE_STRIDES
        or tiles_table[problem.element][job.across.taps][job.across.step][
            problem.element == FLOAT64 and not job.swapped and wide_pays(&job.across)][EDGES] == NULL
    )


cdef bint cut_channels(Rows *job, const Problem *problem) noexcept nogil:
    """Blocks of channels; whether vectors are filled well enough."""
    cdef bint parts
    job.lanes = LANES // 2 if problem.element == FLOAT64 else LANES
    job.channels = problem.channels * problem.multiplier
    job.eights = NULL
    if (
        problem.multiplier % EIGHT == 0 and job.down.taps == job.across.taps == EIGHT_TAPS and job.down.step == job.across.step < TILE_STRIDES
        and eight_tiles[problem.element][job.across.step][0] != NULL and (
            VECTOR_BYTES == 32 or (problem.halving and problem.element == FLOAT32)
            or (job.channels % LANES != 0 and (problem.halving or (problem.element == FLOAT32 and job.channels < 2 * LANES))))
    ):
        job.eights = &eight_tiles[problem.element][job.across.step][0]
        job.lanes = EIGHT
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
        # Where there are no masks, parts of vectors are stored through memory; blocks have nothing beside them that overlaps.
        parts = VECTOR_BYTES == 32 and job.channels > job.lanes and not (problem.x_block or problem.y_block)
        if job.spread or problem.channel_room < job.blocks * job.lanes - job.channels or parts:
            job.overlapped = job.channels > job.lanes
            job.spread = job.spread or not job.overlapped
        # Few channels and no room: several columns fill a vector of a band.
        if job.spread and job.channels * FOLD_PAYS <= job.lanes and problem.out_width > 1:
            return False
    job.ends = (
        VECTOR_BYTES == 64 and problem.halving and problem.element != FLOAT64 and job.channels > LANES and 0 < job.channels % LANES <= EIGHT
        and not (job.spread or job.swapped or job.general or problem.lead or problem.x_block or problem.y_block)
        and job.down.taps == job.across.taps and job.down.step == job.across.step
        and eight_ends[problem.element][job.across.taps][job.across.step][0][0] != NULL
    )
    job.block_vectors = CONSTANTS_FLOAT + problem.kernel_height * problem.kernel_width + (SPREAD_VECTORS if job.spread else 0)
    return True


cdef bint too_narrow(const Rows *job) noexcept nogil:
    """Of halves by large filters, whether so few columns have no tiles but general ones, and are more than a few rows."""
    cdef Py_ssize_t columns = divide(job.across.outputs, job.across.phases)
    return (
        VECTOR_BYTES == 64 and job.across.taps in (5, 7) and not job.swapped and columns < NARROW_TILE and job.down.outputs >= 5
        and (columns < 3 or job.across.taps > 5 or job.across.step > 1)
    )


cdef bint is_long(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether a filter reaches so far along a row that outputs take less time by the taps that each has inside than by tiles that ask for each input: its edges
    are three tenths of a row, or an eighth by many taps, and few columns are computed twice; or it reaches farther than tiles (ADR 0017, D16)."""
    cdef const Line *across = &job.across
    cdef Py_ssize_t taps = across.taps, edges = taps - 1, outputs = divide(across.outputs, across.phases)
    if (
        VECTOR_BYTES < 64 or problem.element != FLOAT32 or not job.general or job.spread or job.swapped or problem.x_block or problem.y_block
        or across.step > 1 or min(outputs, divide(across.extent, across.dilation)) < LONG_TILE - 1
    ):
        return False
    # Outputs without a tap inside have other tiles.
    if across.pad > edges * across.dilation or (across.outputs - 1) * across.stride - across.pad >= across.extent:
        return False
    if GENERAL_TILE - 1 + taps > TILE_INPUTS:
        return True
    if problem.halving and job.down.taps == 1:
        # A row alone has none beside it; rows of pixels that share sets have no room for what their outputs share.
        if 5 * edges < 2 * outputs if job.down.outputs == 1 else 0 < problem.sets <= 2 and across.extent > HALVING_WAYS * problem.sets:
            return False
    return (
        taps >= LONG_TAPS and (10 * edges >= 3 * outputs or (8 * edges >= outputs and taps >= (MANY_IN_ROW if job.down.taps == 1 else MANY_TAPS)))
        and 10 * LONG_TILE * divide_up(outputs, LONG_TILE) <= 11 * GENERAL_TILE * divide_up(outputs, GENERAL_TILE)
    )


cdef bint has_tiles(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether there are tiles for this element type, these channels and this filter, and nothing else is faster."""
    cdef bint blocked = problem.x_block or problem.y_block
    if job.general and (general_tiles[problem.element][0][ANYWHERE] == NULL or (GENERAL_TILE - 1) * job.across.step + job.across.taps > TILE_INPUTS):
        return is_long(job, problem)
    if blocked and (job.spread or job.overlapped or problem.x_block % LANES or problem.y_block % LANES):
        return False
    if problem.element == FLOAT64:
        return not (job.spread or blocked)
    if problem.element == FLOAT32:
        return True
    if VECTOR_BYTES == 32:
        # Wide tiles of 5x5 have too few registers to widen bfloat16 and sum as well.
        if (
            problem.element == BFLOAT16 and job.across.taps == job.down.taps == 5 and job.across.step == job.down.step == 1
            and job.across.outputs >= WIDE_TILE and problem.channels % LANES == 0 and not job.spread
        ):
            return False
    # Other halves are better widened once (prepare_sections), or have to be.
    if too_narrow(job):
        return False
    if job.general:
        return not job.spread and (
            problem.kernel_height * problem.kernel_width < WIDENED_PRODUCTS * (problem.stride_height * problem.stride_width + 1)
            or square_of_tiles(job, problem.element) != NULL
        )
    return not job.spread or (
        tiles_table[problem.element][job.across.taps][job.across.step][False][SPREAD] != NULL and (VECTOR_BYTES != 32 or problem.multiplier % LANES == 0))


cdef bint splits_pay(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether tiles of 2 columns, and more rows, suit the prefetchers of large images."""
    # By steps of 2 the run of two pixels is that of two and three; but 9 rows that share sets have no room in 8 ways.
    cdef Py_ssize_t run = SPLIT_BYTES
    if problem.element == FLOAT32 and job.across.step == 2 and job.across.taps == 3 and problem.sets > 0 and not problem.roomy:
        # Rows or columns of one place share all.
        if job.across.x and job.down.x % (problem.sets * lowest_bit(job.across.x)):
            run = SPLIT_BYTES // 2
    if problem.halving and problem.element == FLOAT32 and job.down.taps == job.across.taps == 3 and job.down.step == job.across.step:
        if problem.distance == IN_MEMORY:
            run = LINE_BYTES if VECTOR_BYTES == 32 or job.across.step > 1 else 2 * LINE_BYTES
        elif job.across.step == 1:
            # Rows whose pixels share the sets of one another leave the 6 of such a tile no room.
            if job.down.x % WAY_BYTES == 0:
                return False
            if VECTOR_BYTES == 64 and problem.batch * (job.down.extent * job.down.x + job.down.outputs * job.down.y) < SPLIT_LARGE:
                run = SPLIT_LONG
    # In 8 ways the 6 rows of a tile that is split have less room than those of a narrow one.
    if problem.stride_width == 1 and job.down.taps > 1 and (
        problem.roomy or (VECTOR_BYTES == 64 and problem.sets > 0 and (problem.sets <= 4 or job.across.outputs < 2 * LARGE))
    ):
        return False
    return (
        problem.distance >= (IN_MEMORY if job.down.taps == 1 else BEYOND_SECOND_LEVEL)
        and job.across.x >= run and divide(job.across.outputs, job.across.phases) >= LARGE
        and not (job.spread or job.swapped or job.general or problem.element == FLOAT64 or job.fetches)
    )


cdef inline bint can_stay(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether the weights of a filter stay in registers while a row of outputs is computed (resident_tile)."""
    return (
        VECTOR_BYTES == 64 and problem.element == FLOAT32 and 1 < job.down.taps == job.across.taps <= RESIDENT_TAPS
        and not (problem.x_block or problem.y_block))


cdef bint shares_few(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether outputs share so few inputs that tiles do not pay: how often each is multiplied is products over what a step moves (ADR 0017, D13). Tiles of any
    width and step load an input for every output that it reaches; those that the table has load it once, and lose beyond the second-level cache alone. A tile
    of a phase that has few columns computes nothing in the others (D14, D15)."""
    cdef Py_ssize_t products = job.down.taps * job.across.taps
    cdef Py_ssize_t moved = min(job.down.taps, job.down.step) * min(job.across.taps, job.across.step)
    cdef Py_ssize_t columns = GENERAL_TILE if job.general and job.across.step == 1 else NARROW_TILE
    cdef bint far = problem.distance >= BEYOND_SECOND_LEVEL, few = 2 * job.across.outputs <= 7 * job.across.phases
    if (
        (job.general or VECTOR_BYTES > 16) and job.across.phases > 1 and (VECTOR_BYTES != 32 or not far or job.down.outputs < 4 * job.down.phases)
        and 8 * job.across.outputs <= (4 if VECTOR_BYTES == 64 and far else 5) * columns * job.across.phases
    ):
        return True
    # Tiles of 4 columns compute 8 for 5 and for 6 outputs of a phase.
    if job.across.phases > 1 and can_stay(job, problem) and (few or 18 * job.across.phases <= 4 * job.across.outputs <= 23 * job.across.phases) and (
        job.across.x <= 2 * SPLIT_BYTES or (job.across.x <= LONG_BYTES and job.across.x > job.channels * job.itemsize) or (few and not far)
    ):
        return True
    if job.general:
        return 5 * products <= (12 if VECTOR_BYTES == 64 and not far else 15) * moved
    if VECTOR_BYTES > 16 and products == 1 and problem.halving and problem.distance == IN_MEMORY and problem.stride_height == problem.stride_width == 1:
        return True
    # On D12's machines pixels that share sets, and, from memory, columns and halves.
    return VECTOR_BYTES > 16 and far and 1 < products and 2 * products <= 3 * moved and (
        not problem.halving or 0 < problem.sets <= 2 or (problem.distance == IN_MEMORY and (job.across.taps == 1 or problem.element != FLOAT32)))


cdef bint pixels_pay(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether an output after another is faster: few inputs are shared, or they are not found again in the first-level cache, where all of it falls into two
    sets, or one of more ways, or comes from afar."""
    if (
        (problem.sets == 2 or (problem.sets == 1 and (problem.roomy or goes_by_pixels(problem)))) and problem.element == FLOAT32
        and job.down.step == job.across.step == 2 and job.down.taps == job.across.taps == 3
    ):
        return not (job.spread or job.swapped or problem.x_block or problem.y_block)
    return (
        shares_few(job, problem) and not (job.spread or job.swapped)
        and job.across.taps < TILE_TAPS and pixel_tiles[problem.element][job.across.taps][INSIDE] != NULL
        and (job.blocks > 1 if VECTOR_BYTES > 16 else job.channels * job.itemsize >= PIXEL_BYTES)
        and (VECTOR_BYTES < 64 or job.channels % LANES == 0 or job.blocks >= ALIGNED_BLOCKS or job.down.taps * job.across.extent * job.across.x <= TWICE_BYTES)
    )


cdef void choose_tiles(Rows *job, const Problem *problem) noexcept nogil:
    """Rows and columns of a tile, and which table they are from."""
    # Whether a machine reaches as many pages as a tile has, but for memory.
    cdef bint pages = problem.halving and problem.element == FLOAT32 and job.across.taps <= 3
    cdef bint crowded = (
        problem.element != FLOAT64 and problem.distance >= (IN_MEMORY if pages else CACHE_EDGE)
        and job.across.x >= (CROWDED_BYTES if job.across.taps <= 3 else 2 * CROWDED_BYTES))
    job.small = False
    job.split, job.line, job.one_row = splits_pay(job, problem), NULL, NULL
    if VECTOR_BYTES > 16:
        if not job.spread:
            job.line = line_of_tiles(job, problem)
            if job.line == NULL:
                job.one_row = row_of_tiles(job, problem)
        job.small = has_small_tiles(job, problem)
        if job.small:
            job.split, job.line = False, &small_tiles[3][2][0]
    if job.split and job.line != &line_tiles[problem.element][SPLIT_LINE][job.across.taps][0]:
        job.split = tiles_table[problem.element][job.across.taps][job.across.step][False][SPLIT_TALL_TILE] != NULL and is_square(job, NARROW_TILE)
    job.wide = (
        not (job.spread or job.swapped or job.general or crowded or job.split or job.line != NULL or job.one_row != NULL)
        and wide_pays(&job.across) and not narrow_pays(&job.across, problem)
        and tiles_table[problem.element][job.across.taps][job.across.step][True][EDGES] != NULL
    )
    job.end_tiles = &eight_ends[problem.element][job.across.taps][job.across.step][job.wide][0] if job.ends else NULL
    job.pixel = pixels_pay(job, problem)
    job.running = &running_tiles[job.across.taps][job.across.step][0] if runs_sums(problem) and not job.spread else NULL
    if job.running != NULL:
        job.pixel, job.wide = False, True
    job.resident = (
        job.pixel and can_stay(job, problem) and shares_few(job, problem)
        and not (problem.halving and problem.distance == IN_MEMORY and problem.dilation_width == 1 and job.across.x >= PIXEL_BYTES)
        and not (problem.dilation_width == 1 and (job.across.x >= ALONE_PIXEL_BYTES if problem.roomy else 0 < problem.sets <= 2)))
    if job.pixel:
        # Places are one column then, which no other tile is; outputs side by side follow each other, however far apart their taps are.
        job.wide, job.split, job.line, job.one_row = False, False, NULL, NULL
        job.across.phases = 1
        if not job.resident:
            job.down.phases = 1
    job.lengthy = not job.pixel and is_long(job, problem)
    if job.lengthy:
        job.line = job.one_row = NULL
        job.fetches = problem.distance >= BEYOND_SECOND_LEVEL
    job.fits = (
        job.one_row != NULL and job.one_row[WIDE_TILE] != NULL and not job.fetches and is_centred(&job.down) and is_centred(&job.across))
    job.single = job.pixel or job.one_row != NULL
    if job.pixel:
        job.columns, job.tiles = 1, &pixel_tiles[problem.element][job.across.taps][0]
    elif job.general or job.single:
        job.columns = GENERAL_TILE if job.single or job.across.step == 1 else NARROW_TILE
        job.tiles = &general_tiles[problem.element][job.across.step > 1][0]
    else:
        job.columns = WIDE_TILE if job.wide else NARROW_TILE
        job.tiles = &tiles_table[problem.element][job.across.taps][job.across.step][job.wide][0]
    job.upright = VECTOR_BYTES == 64 and job.line != NULL and job.across.taps == 1
    job.tall = job.split or job.upright or (job.eights != NULL and job.eights[1] != NULL and is_square(job, job.columns)) or (
        not (crowded and 2 * job.across.x >= 3 * CROWDED_BYTES) and not (job.fetches or job.spread) and job.tiles[TALL_TILE] != NULL
        and is_square(job, job.columns)
    )
    job.narrows = (
        problem.element == FLOAT32 and not (job.spread or job.wide or job.split or job.single or job.general or job.swapped or job.fetches)
        and (job.line == NULL or job.small)
        and job.down.taps == job.across.taps and job.down.step == job.across.step
        and (small_tiles[job.across.taps][job.across.step][INSIDE] != NULL or (VECTOR_BYTES > 16 and job.tall))
    )
    job.halves = job.narrows and small_tiles[job.across.taps][job.across.step][INSIDE] != NULL
    job.image = NULL
    if (
        problem.element != FLOAT64 and not (job.fetches or job.spread or job.general or job.pixel)
        and is_image(&job.down) and is_image(&job.across) and job.down.taps == job.across.taps and job.down.outputs == job.across.outputs
        and not (problem.roomy and problem.sets <= 2 and job.across.taps == 3 and job.across.outputs == WIDE_TILE)
    ):
        if job.across.taps < TILE_TAPS and job.across.outputs <= WIDE_TILE:
            job.image = image_tiles[problem.element][job.across.taps][job.across.outputs]
    # A tile of a phase would have inputs, twice as far apart, where all that fall into its sets have no room.
    job.flat = (
        VECTOR_BYTES == 32 and not problem.roomy and 1 < problem.sets <= 4 and job.across.dilation == 2 and NARROW_TILE <= job.across.outputs <= LARGE
        and problem.distance <= BEYOND_SECOND_LEVEL)
    job.beside = (
        VECTOR_BYTES > 16 and problem.element == FLOAT32 and problem.stride_height == problem.stride_width == 1
        and job.across.phases > 1 and job.down.taps == job.across.taps == 3
        and not (job.spread or job.swapped or problem.x_block or problem.y_block) and is_centred(&job.down) and is_centred(&job.across)
        and (job.flat or (
            problem.distance >= BEYOND_SECOND_LEVEL and 0 < job.across.x < BESIDE_BYTES and job.across.outputs > LARGE
            and (VECTOR_BYTES == 32 or problem.sets == 0 or problem.distance >= (IN_MEMORY if problem.halving else CACHE_EDGE))
        ))
    )
    job.touches = problem.roomy and job.across.x >= 2 * LINE_BYTES and not (problem.x_block or job.fetches)
    job.pairs = NULL
    if VECTOR_BYTES == 64:
        if pairs_pay(job, problem):
            job.pairs = winograd_tiles[job.across.taps]
            job.block_vectors += WINOGRAD_VECTORS(job.across.taps)
            job.wide, job.columns, job.tiles = True, WIDE_TILE, &tiles_table[FLOAT32][job.across.taps][1][True][0]
            job.tall = job.narrows = job.halves = job.ends = False
            job.image = NULL
    job.words = NULL
    if problem.halving and problem.element == BFLOAT16 and job.across.taps == 3 and not (job.spread or job.general or job.pixel):
        job.words = words_tiles[job.across.step][job.wide]
    job.walking = NULL
    if VECTOR_BYTES > 16:
        job.walking = walking_pays(job, problem)
        job.beside = job.beside and job.walking == NULL
    job.fetches_beside = problem.halving and problem.distance == IN_MEMORY and job.across.x >= FETCHED_SPLIT


cdef Py_ssize_t fetched_from(const Rows *job, const Problem *problem) noexcept nogil:
    """Bytes from pixel to pixel from which on tiles fetch: prefetchers follow shorter runs; in few rows, and by tiles of 2 columns, longer ones than else."""
    cdef Py_ssize_t down = job.down.taps, across = job.across.taps
    if not problem.halving or (down <= job.down.step and across <= job.across.step and across > 1):
        return problem.fetched_pixel
    if across == 3 and down == 3:
        return FETCHED_BY_TWO if job.across.step > 1 else FETCHED_SPLIT
    if down == 1:
        return FETCHED_SPLIT if across > 1 else FETCHED_ROWS
    return FETCHED_TALL


cdef bint fetching_pays(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether tiles fetch what the next ones add: from memory, in more streams than prefetchers follow."""
    if problem.distance != IN_MEMORY or job.spread or job.down.phases > 1 or job.across.phases > 1:
        return False
    if VECTOR_BYTES == 32:
        # Those of float32 are half a line: every other one fetches.
        return problem.element == FLOAT32 and not (
            problem.x_block or problem.y_block
            or (problem.halving and job.down.taps == job.across.taps == 3 and 0 <= job.across.x < fetched_from(job, problem))
        )
    # Blocks of a pixel that are less than a line would fetch each line several times.
    return not (0 <= job.across.x < fetched_from(job, problem)) and job.lanes * job.itemsize >= LINE_BYTES


cdef void choose_order(Rows *job, const Problem *problem) noexcept nogil:
    """Whether all channels of a tile come before the next tile."""
    cdef Py_ssize_t least = TOGETHER_PRODUCTS
    cdef bint parts
    job.rows_stay = (
        VECTOR_BYTES == 64 and problem.sets > 0 and not problem.roomy and problem.element == FLOAT32 and ROWS_STAY // 2 < job.across.extent <= ROWS_STAY
        and job.down.taps == job.across.taps == 3 and job.down.step == job.across.step == 2
    )
    parts = problem.distance == BEYOND_SECOND_LEVEL and (
        problem.roomy or job.rows_stay or (job.small and job.across.x > PARTED_SPLIT_BYTES)
    ) and job.across.x >= (
        PARTED_SPLIT_BYTES if job.split or job.rows_stay else PARTED_LARGE_BYTES if job.across.outputs >= LARGE * job.across.phases else PARTED_BYTES)
    if problem.roomy:
        least = TOGETHER_FEW if problem.sets != 2 else TOGETHER_PRODUCTS
    elif problem.halving and job.down.taps == job.across.taps == 3 and job.across.step > 1:
        least = TOGETHER_FEW
    elif problem.halving and job.down.taps == job.across.taps == 5:
        least = TOGETHER_TALL
    job.parted = (
        VECTOR_BYTES == 64 and (problem.distance == IN_CACHE or parts) and not (job.image != NULL or job.pixel)
        and problem.out_height * problem.out_width * problem.kernel_height * problem.kernel_width >= least
    )


cdef bint prepare_rows(Rows *job, const Problem *problem) noexcept nogil:
    """Plan a call; whether a problem is computed here. Depends on nothing but what packing may depend on."""
    if (problem.channels > 1 and problem.x_strides[3] != 1) or (problem.channels * problem.multiplier > 1 and problem.y_strides[3] != 1):
        return False
    if (problem.element == FLOAT64 and not DOUBLES) or mixed_lanes(problem) or shares_sets(problem):
        return False
    name_lines(job, problem)
    if not cut_channels(job, problem) or not has_tiles(job, problem):
        return False
    job.fetches = fetching_pays(job, problem)
    choose_tiles(job, problem)
    choose_order(job, problem)
    share_tile(job, problem)
    return True


cdef inline Py_ssize_t first_channel(const Rows *job, Py_ssize_t block) noexcept nogil:
    """The output channel in lane 0 of a block."""
    if job.ends and block == job.blocks:
        return job.channels - EIGHT
    if job.overlapped and block == job.blocks - 1:
        return job.channels - job.lanes
    return max(0 if not job.lined else -job.back, block * job.lanes - job.back)
