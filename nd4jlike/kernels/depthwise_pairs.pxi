# int8 and uint8 by pairs: filters by steps of 1 or 2 whose channels lie side by side, one output channel each. `pairs.h` has the tile and says how it works;
# this is the plan of a call, the walk over the image and the packed weights. Where products are of bytes, filters are 5x5, 7x7 and, by steps of 2, 4x4, and
# those of 3x3 are windows (`window.h`) on this walk.
# Filters of one row or one column are lines (`depthwise_lines.pxi`); by wider steps, where outputs share few inputs, they are computed one by one (`apart.h`).
#
# A block is a vector of channels. What is left of at most half a vector is a block of the last channels, of which some may have been computed before: its lanes
# hold two parts, the left and the right half of the columns; of a quarter of a vector, windows have four parts, and elsewhere so have fewer channels than half
# a vector. What is left of more than half a vector may be a block of two halves that overlap, and what has no two parts a vector that overlaps the one before
# (OVERLAPS): parts of vectors take long to load and to store.

cdef enum:
    # Bytes of the pairs that a filter reaches at a time: with the weights they stay in a first-level cache. Where images are large and filters are not,
    # long runs of columns are worth more: they suit the prefetchers.
    RING_BYTES = 18 << 10
    LONG_RING_BYTES = 72 << 10
    LARGE_IMAGE = 2 << 20
    # Input rows that one block after another reads: they stay in a second-level cache.
    BLOCK_ROWS_BYTES = 256 << 10
    # The same where outputs are computed one by one: in a first-level cache, as blocks share cache lines.
    APART_ROWS_BYTES = 20 << 10
    # Output columns from which on outputs one by one, of more taps than a cell's, take less time than quads.
    APART_COLUMNS = 8
    # Pixels of pairs of rows for which a block is begun, at least.
    BLOCK_PIXELS = 448
    # Inputs and outputs that a second-level cache does not hold: windows of several blocks fetch their next rows ahead. Zen 5 does so by itself as long as the
    # last-level cache has room.
    FAR_BYTES = 1300 << 10
    # Output columns from which on four quarters of them take less time than one of the lanes.
    QUARTERS_PAY = 8

cdef extern from "window.h" nogil:
    enum:
        PAIRS
        PAIR_BYTES
        PAIRS_COLUMNS
        SLIDES
        SLIDE_COLUMNS
        BY_LINE
        BY_SCALE
        BY_SPLIT
        OTHERWISE
        PAIRS_BIAS
        PAIRS_SCALE
        PAIRS_OFFSET
        PAIRS_MULTIPLIER
        PAIRS_LEFT
        PAIRS_RIGHT
        PAIRS_CONSTANTS
        PAIRS_SCALED
        PAIRS_ADDED
        PAIRS_ROUNDED
        ROUNDED
        PAIRS_ZERO
        PAIRS_MOVED
        PAIRS_BELOW
        PAIRS_TWICE
        PAIRS_ONCE
        PAIRS_PLAIN
        PAIRS_SMALL
    ctypedef struct PairsStrip:
        const signed char *x
        Py_ssize_t x_row, x_column, x_apart
        Py_ssize_t first_row, end_row
        Py_ssize_t first[4]
        Py_ssize_t end[4]
        # The columns that exist in all parts.
        Py_ssize_t begin "from"
        Py_ssize_t to, least_first, largest_end, readable
        const signed char *blank
        char *pairs[16]
        Py_ssize_t width, cells, cells_of_one, stride, taps_down, taps_across, stride_down, count, lower, weights
        const char **entries
        Py_ssize_t less
        const vbytes *twos
        Py_ssize_t between
        const vi32 *block
        signed char *y
        Py_ssize_t y_row, y_column, y_apart, columns, stored
        int parts, skips, rescaling, zeros, edges, wide, bounded, flip
        vi16 zero_point
        vbytes y_flip, low, high, order
    ctypedef void (*PairsKernel)(PairsStrip *strip, Py_ssize_t count) noexcept nogil
    int pairs_entries(int taps)
    PairsKernel pairs_kernel(int rescaling, int taps, int rows, int stride)
    enum:
        WHOLE
        HALVES
        PART
        QUARTERS
    PairsKernel window_kernel(int rescaling, int stride, int kind, int ahead)

cdef extern from "apart.h" nogil:
    enum:
        APART_TAPS
    PairsKernel apart_kernel(int rescaling)

# What is decided when the weights are packed; it lies before them, and after it the function of each block, and that for images far away.
cdef struct Pairs:
    Py_ssize_t taps, stride, rows, pairs
    # Rows of outputs of a tile, where taps are a loop, whose weights lie side by side.
    Py_ssize_t output_rows
    # Weights of one sum and output row, in cells.
    Py_ssize_t entries
    # Of lines, the same: rows of cells that LINE_OUTPUTS outputs reach; else 0. Whether they go along the rows.
    Py_ssize_t cells
    bint down
    # Whether 3x3 windows slide over the columns, and have weights beyond int8; whether outputs are computed one by one.
    bint window, wide, apart
    # Whether rows are columns, and columns rows.
    bint turned
    # Whether taps of a row are gathered (depthwise_gather.pxi), and whether from bytes side by side.
    bint gathered, beside
    # Of several filters for a channel (depthwise_spread.pxi): whether lanes repeat four cells, else they pick them; whether outputs are one run; cells of an
    # output in a row; columns whose cells are made together.
    bint spread, fours, flat
    Py_ssize_t groups, together
    int rescaling
    Py_ssize_t blocks, block_vectors
    # Parts of the columns in the last block; output columns of a strip: of a block, and of each part.
    Py_ssize_t parts, columns
    # Where the last block's lanes hold two halves of the channels that are left, bytes from one to the other; else 0.
    Py_ssize_t between
    # From the start of the packed bytes to a vector of zero points, and to the first block.
    Py_ssize_t padding, weights


# A tap of the filter; outside it there is none.
cdef struct Tap:
    Py_ssize_t row, column


cdef inline Py_ssize_t tile_of(const Pairs *job) noexcept nogil:
    """Columns of a tile."""
    if job.window or job.apart or (WINDOWS and job.taps == 7 and job.stride == 2):
        return 1
    return PAIRS_COLUMNS if WINDOWS or job.output_rows == 2 else 2 * PAIRS_COLUMNS


cdef inline Py_ssize_t columns_of_part(Py_ssize_t columns, Py_ssize_t parts) noexcept nogil:
    """Parts, one, two or four, lie at equal distances and cover all columns, some of them twice where they have to. By constants: divisions take long."""
    cdef Py_ssize_t part = divide_up(columns, 4)
    if parts < 4:
        return columns if parts == 1 else divide_up(columns, 2)
    while (columns - part) % 3:
        part += 1
    return part


cdef inline Py_ssize_t between_of(const Problem *problem) noexcept nogil:
    """Between the halves of the channels that are left."""
    return max(0, problem.channels % VECTOR_BYTES - VECTOR_BYTES // 2) if OVERLAPS else 0


cdef inline bint overlaps(const Pairs *job, Py_ssize_t block) noexcept nogil:
    return OVERLAPS and job.between > 0 and block == job.blocks - 1


cdef inline Py_ssize_t parts_of(const Pairs *job, const Problem *problem, Py_ssize_t block) noexcept nogil:
    """Of the columns. Where there are two blocks of a quarter of a vector, that is all there is."""
    return job.parts if block == job.blocks - 1 or problem.channels < VECTOR_BYTES // 2 else 1


cdef inline Py_ssize_t channel_of_block(const Pairs *job, const Problem *problem, Py_ssize_t block) noexcept nogil:
    if block < job.blocks - 1 or (job.parts == 1 and (not OVERLAPS or job.between > 0 or problem.channels < VECTOR_BYTES)):
        return block * VECTOR_BYTES
    return problem.channels - VECTOR_BYTES // job.parts


cdef inline Py_ssize_t phases_of(const Pairs *job, const Problem *problem) noexcept nogil:
    """Rows of outputs from one to the next of a strip."""
    return 2 if job.window and problem.stride_height < job.stride else problem.dilation_height


cdef inline Py_ssize_t pairs_columns_read(const Pairs *job, Py_ssize_t columns) noexcept nogil:
    return (columns - 1) * job.stride + job.taps


cdef inline void lay_out_pairs(Pairs *job, const Problem *problem) noexcept nogil:
    if not job.spread and not job.gathered:
        job.blocks = 2 if job.parts > 2 and VECTOR_BYTES // 4 < problem.channels < VECTOR_BYTES // 2 else divide_up(problem.channels, VECTOR_BYTES)
    job.block_vectors = QUADS * (PAIRS_CONSTANTS + job.entries * job.rows * CELL_PLANES * (2 if job.wide else 1)) + (1 if job.wide else 0)
    job.padding = HEADER_BYTES + divide_up(sizeof(Pairs) + 2 * job.blocks * sizeof(PairsKernel), 64) * 64
    job.weights = job.padding + 64


cdef inline Py_ssize_t columns_of_ring(const Pairs *job, const Problem *problem) noexcept nogil:
    """Output columns whose pairs stay in cache."""
    cdef Py_ssize_t most = LONG_RING_BYTES if job.taps == 3 and problem.height * problem.width * problem.channels > LARGE_IMAGE else RING_BYTES
    return (most // (job.pairs * PAIR_BYTES) - job.taps) // job.stride + 1


cdef void lay_out_columns(Pairs *job, const Problem *problem, Py_ssize_t most) noexcept nogil:
    """Strips of at most so many output columns, and what follows."""
    cdef Py_ssize_t parts = 1 if problem.channels >= VECTOR_BYTES else job.parts, outputs, strips
    if parts > 2:
        # One may have two columns more than another strip's.
        most -= 2
    outputs = columns_of_part(divide_up(problem.out_width, problem.dilation_width), parts)
    strips = divide_up(outputs, max(most // tile_of(job), 1) * tile_of(job))
    job.columns = divide_up(divide_up(outputs, strips), tile_of(job)) * tile_of(job)
    # A tile of each part.
    if parts == 1 and columns_of_part(min(job.columns, problem.out_width // problem.dilation_width), job.parts) < tile_of(job):
        job.columns = tile_of(job) * job.parts
    lay_out_pairs(job, problem)


cdef void prepare_parts(Pairs *job, const Problem *problem) noexcept nogil:
    """How what is left of the channels is computed."""
    cdef Py_ssize_t rest = problem.channels % VECTOR_BYTES, outputs = problem.out_width // problem.dilation_width, beyond
    job.parts = 1
    job.between = between_of(problem)
    if rest and rest <= VECTOR_BYTES // 2 <= problem.channels and columns_of_part(outputs, 2) >= (1 if OVERLAPS else tile_of(job)):
        job.parts = 2
    if not WINDOWS:
        if VECTOR_BYTES // 4 <= problem.channels < VECTOR_BYTES // 2 and outputs >= 3 * PAIRS_COLUMNS:
            job.parts = 4
        return
    if not rest:
        return
    # On the right, the last part alone may reach beyond the image.
    beyond = (problem.out_width - 1) * job.stride - problem.pad_left + 2 * problem.dilation_width - (problem.width - 1)
    beyond = divide_up(beyond, problem.dilation_width) if job.window else 0
    if beyond > 8 or (job.parts == 2 and (outputs - columns_of_part(outputs, 2)) * job.stride < beyond):
        job.parts = 1
    if beyond > 8 or outputs < max(QUARTERS_PAY, 4 * tile_of(job)) or problem.channels < VECTOR_BYTES // 4:
        return
    if (outputs - columns_of_part(outputs, 4)) // 3 * job.stride < beyond:
        return
    # Quads, which leave no lane of two quarters idle, are slow with steps, and with many sets of weights.
    if rest <= VECTOR_BYTES // 4 or (problem.channels < VECTOR_BYTES // 2 and (job.stride == 2 or (job.window and problem.channels % 8))):
        job.parts = 4


cdef inline bint shares_little(const Problem *problem) noexcept nogil:
    """Whether outputs share so few inputs that they take less time one by one."""
    cdef Py_ssize_t taps = problem.kernel_height * problem.kernel_width
    if problem.channels < VECTOR_BYTES // 2:
        return False
    if problem.kernel_height == 1 and taps <= GROUP and problem.out_height < LINE_ROWS:
        return True
    if min(problem.stride_height, problem.stride_width) < 2 or (taps > GROUP and problem.out_width < APART_COLUMNS):
        return False
    return taps <= 2 * problem.stride_height * problem.stride_width


cdef bint prepare_apart(Pairs *job, const Problem *problem) noexcept nogil:
    """As prepare_pairs, where outputs share few inputs."""
    cdef Py_ssize_t outputs = problem.out_width // problem.dilation_width, rest = problem.channels % VECTOR_BYTES
    if (problem.stride_height > 1 and problem.dilation_height > 1) or (problem.stride_width > 1 and problem.dilation_width > 1) or outputs < 1:
        return False
    if not WINDOWS and (problem.dilation_height > 1 or problem.dilation_width > 1 or problem.channels < VECTOR_BYTES // 2):
        return False
    job.entries = divide_up(problem.kernel_height * problem.kernel_width, GROUP)
    if job.entries * GROUP > APART_TAPS or problem.kernel_width > 62:
        return False
    job.apart = True
    job.window = False
    job.rows = 1
    job.pairs = 0
    job.parts = 2 if 0 < rest <= VECTOR_BYTES // 2 <= problem.channels and (OVERLAPS or outputs > 1) else 1
    job.between = between_of(problem)
    job.columns = outputs if problem.channels >= VECTOR_BYTES else columns_of_part(outputs, job.parts)
    lay_out_pairs(job, problem)
    return True


cdef bint prepare_loops(Pairs *job, const Problem *problem) noexcept nogil:
    """As prepare_pairs, where a pair is a cell, and filters have any size."""
    cdef Py_ssize_t outputs = problem.out_width // problem.dilation_width, most
    job.output_rows = 2 if problem.stride_height == 1 else 1
    job.pairs = (problem.kernel_height + job.output_rows) // 2
    # Of others of one row or column, lines share more.
    if max(problem.stride_height, job.stride) > 2 or job.pairs > PAIRS:
        return problem.kernel_width > 1 and prepare_apart(job, problem)
    if max(problem.stride_height, job.stride) > 1 and (problem.dilation_height > 1 or problem.dilation_width > 1):
        return False
    prepare_parts(job, problem)
    # Of fewer channels than that, quads leave no lane idle.
    if (problem.channels <= VECTOR_BYTES // 2 and job.parts == 1) or columns_of_part(outputs, job.parts) < 2:
        return False
    most = columns_of_ring(job, problem)
    if most < tile_of(job):
        return problem.kernel_width > 1 and prepare_apart(job, problem)
    job.rows = 1
    job.entries = divide_up(job.pairs * job.taps * job.output_rows, CELL_PLANES)
    lay_out_columns(job, problem, most)
    return True


cdef bint prepare_pairs(Pairs *job, const Problem *problem) noexcept nogil:
    """Whether a problem is computed here, and how."""
    # First of all: a build without pairs leaves their code out.
    if not BY_PAIRS or (problem.element != INT8 and problem.element != UINT8) or problem.result != QUANTIZED:
        return False
    cdef Problem turned
    job.turned = not WINDOWS and problem.kernel_height == 1 and problem.kernel_width > 1
    if job.turned:
        # Where a pair is a cell, a filter of one row is one of a column.
        turned = turned_of(problem)
        if prepare_side_by_side(job, &turned):
            return True
        job.turned = False
    return prepare_side_by_side(job, problem) or prepare_gathered(job, problem)


cdef inline Problem turned_of(const Problem *problem) noexcept nogil:
    """Of a filter of one row: rows and columns change places."""
    cdef Problem turned = problem[0]
    turned.height, turned.width = problem.width, problem.height
    turned.out_height, turned.out_width = problem.out_width, problem.out_height
    turned.kernel_height, turned.kernel_width = problem.kernel_width, 1
    turned.stride_height, turned.stride_width = problem.stride_width, problem.stride_height
    turned.dilation_height, turned.dilation_width = problem.dilation_width, 1
    turned.pad_top, turned.pad_left = problem.pad_left, problem.pad_top
    turned.x_strides[1], turned.x_strides[2] = problem.x_strides[2], problem.x_strides[1]
    turned.y_strides[1], turned.y_strides[2] = problem.y_strides[2], problem.y_strides[1]
    turned.halo[0], turned.halo[1], turned.halo[2], turned.halo[3] = problem.halo[2], problem.halo[3], problem.halo[0], problem.halo[1]
    turned.batch = 1
    return turned


cdef bint prepare_side_by_side(Pairs *job, const Problem *problem) noexcept nogil:
    """As prepare_pairs, where lanes are channels."""
    cdef Py_ssize_t outputs = problem.out_width // problem.dilation_width, most
    # Two bytes add up to no more than 254.
    job.wide = WINDOWS and problem.widest_weight > 127
    if job.wide and (problem.multiplier > 1 or problem.widest_weight > 254):
        return False
    job.cells = 0
    job.spread = job.apart = job.gathered = False
    job.between = 0
    job.taps = problem.kernel_width
    job.stride = problem.stride_width
    job.rows = 2 if job.stride == 1 else 1
    job.window = WINDOWS and job.taps == 3
    # A window keeps the older one of two.
    job.pairs = 1 if job.window else (job.taps + 1) // 2
    if problem.multiplier > 1:
        return prepare_spread(job, problem)
    if problem.x_strides[3] != 1 or problem.y_strides[3] != 1:
        return False
    if WINDOWS and shares_little(problem):
        return prepare_apart(job, problem)
    if job.wide and not (problem.kernel_height == 3 and problem.kernel_width == 3):
        return False
    if not WINDOWS and (problem.kernel_height > 1 or problem.kernel_width == 1) and prepare_loops(job, problem):
        return True
    if problem.kernel_height == 1 or problem.kernel_width == 1:
        return not job.turned and prepare_lines(job, problem)
    if not WINDOWS:
        return False
    # Windows that step by 2 down and by 1 along a row leave out every other row of outputs; by 1 down and by 2, rows of outputs are computed by turns.
    if problem.kernel_height != job.taps or (problem.stride_height != job.stride and not (job.window and problem.stride_height <= 2)):
        return False
    if job.stride > 2 or (not 3 <= job.taps <= 5 and job.taps != 7) or (job.taps == 4 and job.stride == 1):
        return False
    if max(problem.stride_height, job.stride) > 1 and (problem.dilation_height > 1 or problem.dilation_width > 1):
        return False
    prepare_parts(job, problem)
    # Of fewer channels than that, quads leave no lane idle, and take longer all the same.
    if (problem.channels <= VECTOR_BYTES // 2 and job.parts == 1) or outputs < 2 - job.window:
        return False
    # Windows look for columns on the left of the image where an output that reaches it begins.
    if job.window and problem.pad_left - problem.halo[2] > (3 - job.stride) * problem.dilation_width:
        return False
    most = columns_of_ring(job, problem)
    if job.taps == 7 and job.stride == 2:
        most = min(most, SLIDE_COLUMNS)
    job.entries = pairs_entries(<int> job.taps)
    lay_out_columns(job, problem, most)
    return True


cdef Py_ssize_t packed_bytes_pairs(const Pairs *job) noexcept nogil:
    return job.weights + job.blocks * job.block_vectors * LANES * CELL


cdef inline int tap_weight(const Problem *problem, const short *weights, Py_ssize_t row, Py_ssize_t column, Py_ssize_t channel) noexcept nogil:
    """0 outside the filter, and for no channel."""
    if channel < 0 or not (0 <= row < problem.kernel_height and 0 <= column < problem.kernel_width):
        return 0
    return weights[(row * problem.kernel_width + column) * problem.channels * problem.multiplier + channel]


cdef inline Tap tap_of_window(const Pairs *job, Py_ssize_t entry, Py_ssize_t row, Py_ssize_t tap, Py_ssize_t quad) noexcept nogil:
    """The tap of the filter whose weight is number `tap` of a cell, for one of the rows of outputs that share it; here of 3x3 windows."""
    if job.stride == 1:
        # The newer pair first.
        return Tap(tap % 2 - row + (2 if tap < 2 else 0), entry)
    # See WINDOW_TWO: the second column of two has words of even and of odd channels, and lends its lowest row to the first one.
    if entry == 1:
        return Tap(1 - tap % 2 if tap // 2 == quad % 2 else -1, 1)
    return Tap(2 if tap > 1 else 1 - tap, entry + 1 if tap == 3 else entry)


cdef inline Tap tap_of_tile(const Pairs *job, Py_ssize_t entry, Py_ssize_t row, Py_ssize_t tap) noexcept nogil:
    """The same of pairs that are joined. Of 5x5, all taps of the two newer pairs, then those of the oldest one, two columns to a cell."""
    if job.taps != 5:
        return Tap(entry // job.taps * GROUP - row + tap, entry % job.taps)
    return Tap(2 - row + tap, entry) if entry < 5 else Tap(tap % 2 - row, (entry - 5) * 2 + tap // 2)


cdef inline Tap tap_of_loop(const Pairs *job, Py_ssize_t entry, Py_ssize_t tap) noexcept nogil:
    """The same of pairs that are cells: their planes are the two rows of outputs, or the next tap."""
    cdef Py_ssize_t place = entry if job.output_rows == 2 else entry * CELL_PLANES + tap // 2
    return Tap(place // job.taps * 2 + tap % 2 - (tap // 2 if job.output_rows == 2 else 0), place % job.taps)


cdef inline Tap tap_of_output(const Pairs *job, Py_ssize_t entry, Py_ssize_t tap) noexcept nogil:
    """The same of outputs one by one."""
    return Tap((entry * GROUP + tap) // job.taps, (entry * GROUP + tap) % job.taps)


cdef inline Tap tap_of(const Pairs *job, Py_ssize_t entry, Py_ssize_t row, Py_ssize_t tap, Py_ssize_t quad) noexcept nogil:
    """The same of any of them."""
    if job.cells:
        return tap_of_line(job, entry, row, tap)
    if job.spread or job.gathered:
        return tap_of_spread(job, entry, tap)
    if job.apart:
        return tap_of_output(job, entry, tap)
    if not WINDOWS:
        return tap_of_loop(job, entry, tap)
    return tap_of_window(job, entry, row, tap, quad) if job.window else tap_of_tile(job, entry, row, tap)


cdef void pack_pairs(
    Pairs *job, const Problem *problem, const short *weights, const int *bias, const Requantization *requantization, char *packed,
) noexcept nogil:
    cdef PairsKernel *kernels = <PairsKernel *> (packed + HEADER_BYTES + sizeof(Pairs))
    cdef Fit lines[64]
    cdef Fit below[64]
    # Of channels, or lanes: their lines; whether there is one, 2: none.
    cdef Fit known[SPREAD_BLOCKS * VECTOR_BYTES]
    cdef signed char tried[SPREAD_BLOCKS * VECTOR_BYTES]
    cdef int *block
    cdef int *vectors
    cdef int *cell
    cdef Py_ssize_t index, lane, place, quad, channel, entry, row, column, tap, outputs = problem.channels * problem.multiplier
    cdef Tap at
    cdef int taps[4]
    cdef int rest[4]
    cdef int folded, shift, w, how, kind, scaled, wide, square = <int> job.taps if problem.kernel_height == job.taps else 0
    cdef long long reach, least, largest
    cdef float scale
    # Weights of all sums lie together for each entry, of each plane where outputs are computed one by one, or those of all entries for each sum.
    cdef bint plain = True, small = True, by_scale, rounded, split, by_entry = job.cells > 0 or job.spread or job.gathered
    # What inputs are more than int8 (bytes.h).
    cdef int offset = INPUT_OFFSET if WINDOWS or job.gathered else -flip_of(problem.element)
    cdef Py_ssize_t pitch = QUADS * LANES if job.apart else LANES
    memset(packed, 0, job.weights)
    memset(tried, 0, sizeof(tried))
    (<int *> packed)[PAIRS_FLAG] = True
    memset(packed + job.padding, (problem.input_zero_point ^ flip_of(problem.element)) & 0xFF, 64)
    if job.spread:
        pack_spread(job, problem, packed)
    for index in range(job.blocks if GATHERS and job.gathered else 0):
        gather_block(job, problem, index, <signed char *> (packed + job.weights + ((index + 1) * job.block_vectors - 2) * VECTOR_BYTES))
    for index in range(job.blocks):
        block = <int *> (packed + job.weights) + index * job.block_vectors * LANES
        scaled = 0 if FUSED else -1
        wide = 0
        # Windows alone know it.
        rounded = problem.output_zero_point > -128 and job.window
        split = FUSED and problem.rounding == 0
        by_scale = FUSED and problem.rounding == 1 and problem.quantized_min == -128 and (rounded or problem.output_zero_point == -128)
        for lane in range(VECTOR_BYTES):
            quad = lane // LANES
            place = unpacked_channel(quad, lane % LANES)
            if job.window:
                place = lane % LANES // 4 * 16 + quad // 2 * 8 + lane % 4 * 2 + quad % 2
            if job.spread:
                place = spread_place(job, problem, quad, lane % LANES)
            elif overlaps(job, index):
                place -= VECTOR_BYTES // 2 - job.between if place >= VECTOR_BYTES // 2 else 0
            else:
                place %= VECTOR_BYTES // parts_of(job, problem, index)
            channel = (index * VECTOR_BYTES if job.spread else channel_of_block(job, problem, index)) + place
            if job.gathered:
                channel = gathered_channel(problem, index, lane % LANES)
            if job.spread and job.flat:
                channel %= outputs
            if channel >= outputs:
                channel = -1
            vectors = block + quad * LANES + lane % LANES
            entry = 1 if by_entry else job.entries
            cell = block + (QUADS * PAIRS_CONSTANTS + quad * (1 if job.apart else entry * job.rows * CELL_PLANES)) * LANES + lane % LANES
            for entry in range(job.entries):
                if by_entry and entry:
                    cell += (QUADS - 1) * job.rows * CELL_PLANES * LANES
                for row in range(job.rows):
                    for tap in range(GROUP):
                        at = tap_of(job, entry, row, tap, quad)
                        if job.turned:
                            at = Tap(at.column, at.row)
                        w = tap_weight(problem, weights, at.row, at.column, channel)
                        taps[tap] = min(max(w, -128), 127) if WINDOWS else w
                        rest[tap] = w - taps[tap]
                        if rest[tap]:
                            wide |= 1 << quad
                    put_weights(cell, pitch, taps[0], taps[1], taps[2], taps[3])
                    if job.wide:
                        put_weights(cell + QUADS * job.entries * job.rows * LANES, LANES, rest[0], rest[1], rest[2], rest[3])
                    cell += CELL_PLANES * pitch
            lines[lane] = below[lane] = Fit(0, 12582912, 0)
            if channel < 0:
                continue
            folded = bias[channel] if bias != NULL else 0
            reach = 0
            least = largest = folded
            for tap in range(problem.kernel_height):
                for column in range(problem.kernel_width):
                    w = tap_weight(problem, weights, tap, column, channel)
                    reach += 255 * (w if w > 0 else -w)
                    least += w * ((-128 if w > 0 else 127) - problem.input_zero_point)
                    largest += w * ((127 if w > 0 else -128) - problem.input_zero_point)
                    # Zero point and offset of the inputs go into the bias: every tap is there, with the zero point outside the image.
                    folded = wrapping_add(folded, wrapping_multiply(-problem.input_zero_point - offset, w))
            vectors[QUADS * PAIRS_BIAS * LANES] = folded
            shift = 0
            if requantization.multipliers != NULL:
                shift = requantization.shifts[channel]
                vectors[QUADS * PAIRS_MULTIPLIER * LANES] = requantization.multipliers[channel]
            vectors[QUADS * PAIRS_LEFT * LANES] = max(shift, 0)
            vectors[QUADS * PAIRS_RIGHT * LANES] = max(-shift, 0)
            plain = plain and plain_suffices(shift, reach, bias[channel] if bias != NULL else 0)
            if problem.rounding == 1:
                scale = requantization.scales[channel] if requantization.scales != NULL else 0
                small = small and max(-least, largest) * scale < PLAIN_SUM
                by_scale = by_scale and max(-least, largest) * scale < MAX_RESULT and max(-least, largest) < 1 << (22 if rounded else 23)
            else:
                scale = scale_of(vectors[QUADS * PAIRS_MULTIPLIER * LANES], shift)
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = scale_of(1 << 30, shift)
            (<float *> vectors)[QUADS * PAIRS_SCALE * LANES] = scale
            w = vectors[QUADS * PAIRS_MULTIPLIER * LANES]
            # Gathered, channels come again.
            place = lane % LANES % outputs if outputs < LANES else lane % LANES
            if job.gathered and place < lane:
                lines[lane] = lines[place]
                below[lane] = below[place]
                scaled |= (scaled & 1) << quad
            elif split and problem.output_zero_point > -128 and fit_split(&lines[lane], &below[lane], problem, w, shift, scale, least, largest):
                scaled |= 1 << quad
            elif split or not scaled & 1 << quad:
                # In a run of outputs channels come again.
                place = channel if job.spread and job.flat else lane
                if not (job.spread and job.flat and tried[place]):
                    tried[place] = 1 if fit_line(&known[place], problem, w, shift, scale, least, largest, least, 0, FIT_TRIALS) else 2
                if tried[place] == 1:
                    lines[lane] = below[lane] = known[place]
                else:
                    scaled |= 1 << quad
                    split = False
        if job.wide:
            block[(job.block_vectors - 1) * LANES] = wide
        how = BY_LINE if scaled == 0 else BY_SPLIT if split else BY_SCALE if by_scale else OTHERWISE
        place = parts_of(job, problem, index)
        kind = HALVES if place == 2 else QUARTERS if place == 4 else WHOLE if (index + 1) * VECTOR_BYTES <= problem.channels else PART
        for row in range(2):
            if job.gathered:
                kernels[index + row * job.blocks] = gather_kernel(how, 2 < job.taps <= GROUP, job.beside)
            elif job.spread:
                kernels[index + row * job.blocks] = spread_kernel(how, job.fours, job.entries)
            elif job.cells:
                kernels[index + row * job.blocks] = lines_kernel(how)
            elif job.apart:
                kernels[index + row * job.blocks] = apart_kernel(how)
            elif job.window:
                kernels[index + row * job.blocks] = window_kernel(how, <int> job.stride, kind, <int> row)
            else:
                kernels[index + row * job.blocks] = pairs_kernel(how, square, <int> job.output_rows, <int> job.stride)
        if how == OTHERWISE:
            continue
        for lane in range(VECTOR_BYTES):
            vectors = block + lane
            if how == BY_SPLIT:
                (<float *> vectors)[QUADS * PAIRS_ZERO * LANES] = 8388608 + lines[lane].shift
                (<float *> vectors)[QUADS * PAIRS_MOVED * LANES] = below[lane].shift - lines[lane].shift
                (<float *> vectors)[QUADS * PAIRS_BELOW * LANES] = below[lane].offset
            else:
                vectors[QUADS * PAIRS_SCALED * LANES] = problem.output_zero_point if lane >= LANES else scaled * ROUNDED if rounded else scaled
                (<float *> vectors)[QUADS * PAIRS_ADDED * LANES] = 12582912 if rounded else scale_bits()
                (<float *> vectors)[QUADS * PAIRS_ROUNDED * LANES] = (<float *> vectors)[QUADS * PAIRS_SCALE * LANES]
            vectors[QUADS * PAIRS_BIAS * LANES] = wrapping_add(vectors[QUADS * PAIRS_BIAS * LANES], FLOAT_BITS)
            if how == BY_SCALE and scaled & 1 << lane // LANES and rounded:
                vectors[QUADS * PAIRS_BIAS * LANES] = wrapping_add(vectors[QUADS * PAIRS_BIAS * LANES], 1 << 22)
                (<float *> vectors)[QUADS * PAIRS_SCALE * LANES] = 1
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = -12582912
            elif how == BY_SCALE and scaled & 1 << lane // LANES:
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = -8388608 * (<float *> vectors)[QUADS * PAIRS_SCALE * LANES]
            else:
                vectors[QUADS * PAIRS_BIAS * LANES] = wrapping_add(vectors[QUADS * PAIRS_BIAS * LANES], lines[lane].shift)
                (<float *> vectors)[QUADS * PAIRS_SCALE * LANES] = lines[lane].scale
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = lines[lane].offset
    job.rescaling = (PAIRS_SMALL if small else PAIRS_ONCE) if problem.rounding == 1 else PAIRS_PLAIN if plain else PAIRS_TWICE
    memcpy(packed + HEADER_BYTES, job, sizeof(Pairs))


cdef inline Py_ssize_t steps_to(Py_ssize_t distance, Py_ssize_t step) noexcept nogil:
    """How many steps, almost always of 1, reach a distance: divisions would take as long as a short strip."""
    return max(0, distance) if step == 1 else divide_up(max(0, distance), step)


cdef void lay_strip(
    const Pairs *job, const Problem *problem, PairsStrip *strip, const char *x, char *y, Py_ssize_t row, Py_ssize_t column, Py_ssize_t columns,
    Py_ssize_t block,
) noexcept nogil:
    """The strip of one block: output rows from `row` on and `columns` columns from `column` on, a dilation apart."""
    cdef Py_ssize_t channel = channel_of_block(job, problem, block), i, at, apart = 0, x_row = row * problem.stride_height - problem.pad_top
    cdef Py_ssize_t x_column = column * job.stride - problem.pad_left, down = problem.dilation_height, across = problem.dilation_width
    cdef Py_ssize_t parts = parts_of(job, problem, block)
    strip.columns = columns
    if parts > 1:
        strip.columns = columns_of_part(columns, parts)
        apart = columns - strip.columns if parts == 2 else (columns - strip.columns) // 3
    elif overlaps(job, block):
        parts = 2
    strip.parts = <int> parts
    # An image may be narrower than a tile.
    strip.width = pairs_columns_read(job, max(strip.columns, tile_of(job)))
    strip.first_row = steps_to(-problem.halo[0] - x_row, down)
    strip.end_row = steps_to(problem.height + problem.halo[1] - x_row, down)
    for i in range(parts):
        at = x_column + i * apart * job.stride * across
        strip.first[i] = steps_to(-problem.halo[2] - at, across)
        strip.end[i] = steps_to(problem.width + problem.halo[3] - at, across)
    strip.begin = strip.first[0]
    strip.to = strip.end[parts - 1]
    # Parts further to the right begin inside sooner.
    strip.least_first = strip.first[parts - 1]
    strip.largest_end = strip.end[0]
    strip.stored = problem.channels - channel
    strip.readable = strip.stored + problem.channel_room
    strip.block = <const vi32 *> (<const char *> problem.packed + job.weights) + block * job.block_vectors
    strip.x = <const signed char *> x + x_row * problem.x_strides[1] + x_column * problem.x_strides[2] + channel
    strip.x_row = down * problem.x_strides[1]
    strip.x_column = across * problem.x_strides[2]
    strip.x_apart = apart * job.stride * strip.x_column + (job.between if overlaps(job, block) else 0)
    strip.y = <signed char *> y + row * problem.y_strides[1] + column * problem.y_strides[2] + channel
    strip.y_row = phases_of(job, problem) * problem.y_strides[1]
    strip.y_column = across * problem.y_strides[2]
    strip.y_apart = apart * strip.y_column + (job.between if overlaps(job, block) else 0)


cdef void run_pairs(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef const Pairs *job = <const Pairs *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Problem turned
    cdef Py_ssize_t image, row, rows
    if WINDOWS or not job.turned:
        walk_pairs(problem, x, y, begin, end)
        return
    turned = turned_of(problem)
    while begin < end:
        image = begin // problem.out_height
        row = begin - image * problem.out_height
        rows = turned.out_width = min(LINE_ROWS, min(problem.out_height - row, end - begin))
        turned.pad_left = problem.pad_top - row * problem.stride_height
        walk_pairs(&turned, x + image * problem.x_strides[0], y + image * problem.y_strides[0] + row * problem.y_strides[1], 0, turned.out_height)
        begin += rows


cdef void walk_pairs(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows begin to end of all images."""
    cdef char memory[LONG_RING_BYTES + 64]
    cdef char *ring = memory + (-<Py_ssize_t> memory & 63)
    cdef const Pairs *job = <const Pairs *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Py_ssize_t size = problem.batch * (problem.height * problem.width + problem.out_height * problem.out_width) * problem.channels
    cdef bint far = problem.distance >= CACHE_EDGE if problem.roomy else size > FAR_BYTES
    cdef const PairsKernel *kernels = <const PairsKernel *> (job + 1) + (job.blocks if far else 0)
    cdef PairsStrip strip
    cdef Py_ssize_t phases = phases_of(job, problem), tile = 1 if job.apart else PAIRS_COLUMNS, image, row, last, down, across, outputs, column, columns
    cdef Py_ssize_t block, chunk, i
    # Output columns of a strip with all its lanes.
    cdef Py_ssize_t all_columns = job.columns * job.parts if problem.channels < VECTOR_BYTES else job.columns
    strip.blank = <const signed char *> problem.packed + job.padding
    strip.rescaling = job.rescaling
    strip.skips = problem.stride_height > job.stride
    strip.zeros = problem.input_zero_point == -INPUT_OFFSET
    strip.edges = 0
    strip.wide = job.wide
    strip.flip = flip_of(problem.element)
    strip.y_flip = splat_i8(strip.flip)
    strip.bounded = strip.flip or problem.quantized_max < 127
    strip.zero_point = splat_i16(problem.output_zero_point)
    strip.low = splat_i8(problem.quantized_min)
    strip.high = splat_i8(problem.quantized_max)
    strip.order = order_of(not UNPACKED or (job.spread and not UNORDERED))
    for block in range(4):
        strip.pairs[block] = ring
    if GATHERS and job.gathered:
        strip.order = order_of(True)
        run_gathered(problem, &strip, ring, x, y, begin, end)
        return
    if job.spread:
        run_spread(problem, &strip, ring, x, y, begin, end)
        return
    strip.taps_across = job.taps
    strip.count = job.pairs
    strip.lower = job.pairs if problem.kernel_height % 2 or job.output_rows == 1 else job.pairs - 1
    strip.weights = job.entries * CELL_PLANES
    if job.apart:
        strip.cells = job.entries
        strip.stride = job.stride
        strip.taps_down = problem.kernel_height
        strip.stride_down = problem.stride_height
    if job.cells:
        run_lines(problem, &strip, x, y, begin, end)
        return
    # Divisions would take as long as a tiny image.
    chunk = problem.out_height
    if job.apart and job.blocks > 1:
        chunk = max(1, (BLOCK_ROWS_BYTES if WINDOWS else APART_ROWS_BYTES) // (problem.width * problem.channels * problem.stride_height))
    elif job.blocks > 1 and problem.height * problem.width * problem.channels > BLOCK_ROWS_BYTES:
        chunk = BLOCK_ROWS_BYTES // max(1, problem.width * problem.channels * problem.stride_height) // (2 * phases)
        chunk = max(max(1, BLOCK_PIXELS // problem.width), chunk) * 2 * phases
    while begin < end:
        image = begin // problem.out_height if problem.batch > 1 else 0
        row = begin - image * problem.out_height
        last = min(min(problem.out_height, row + end - begin), row + chunk)
        begin += last - row
        for down in range(min(phases, last - row)):
            for across in range(problem.dilation_width):
                outputs = steps_to(problem.out_width - across, problem.dilation_width)
                column = 0
                while column < outputs:
                    # A last strip is as narrow as its tiles, but for parts side by side.
                    columns = min(all_columns, outputs if WINDOWS else divide_up(outputs - column, tile) * tile, outputs)
                    column = min(column, outputs - columns)
                    for block in range(job.blocks):
                        if block == 0 or parts_of(job, problem, block) > 1 or (OVERLAPS and block == job.blocks - 1):
                            lay_strip(
                                job, problem, &strip, x + image * problem.x_strides[0], y + image * problem.y_strides[0], row + down,
                                across + column * problem.dilation_width, columns, block,
                            )
                        else:
                            strip.x += VECTOR_BYTES
                            strip.y += VECTOR_BYTES
                            strip.block += job.block_vectors
                            strip.stored -= VECTOR_BYTES
                            strip.readable -= VECTOR_BYTES
                        for i in range(job.pairs):
                            strip.pairs[i] = ring + i * strip.width * PAIR_BYTES
                        kernels[block](&strip, steps_to(last - row - down, phases))
                    column += columns
