# int8 by quads: four input rows interleaved, so that one multiplication of a lane covers four taps of a filter's column.
#
# A strip is a few output columns of one tile of output rows. Its input rows, in groups of four, go through the registers once into cells on the
# stack: one cell of a channel holds the bytes of the four rows of a group. All columns of the filter and all rows of the tile read these cells.
# Rows and columns outside the image become zero points there, so nothing after it knows a border.
# Where few channels lie side by side without a gap (`flat`), a row is one run of bytes and a vector covers several columns; else each column has
# the cells of one vector of channels. In a flat run the lanes of a vector *pick* their cells where a stride, or several filters for a channel, make them
# others than the next ones: the index is packed with the weights. The stack holds the same few cells whatever the channels or the image; nothing is
# allocated.

cdef enum:
    # Output rows of a tile, at most.
    TILE_ROWS = 2
    # Output vectors of a tile of one row whose lanes pick their cells.
    WIDE_COLUMNS = 6
    # Sums that are accumulated at a time.
    PAIR = 2
    # Bytes of cells on the stack, and what a strip aims at, which leaves a first-level cache room for the weights.
    CELL_BYTES = VECTOR_BYTES * CELL_PLANES << 11
    STRIP_BYTES = 18 << 10
    # Products of a sum from which on those outside the image are left out.
    MANY_PRODUCTS = 24
    # Groups of the tallest filter that is computed here.
    MAX_GROUPS = 16
    # Bytes of the sets of weights of a flat row that take as much time as all lanes (VNNI).
    FLAT_BYTES = 40 << 10
    # Channels from which on a column of its own is worth a vector.
    MIN_CHANNELS = 12

# How sums are rescaled, besides TWICE, ONCE and PLAIN: as ONCE, where no product comes near the limits; by a line through all of them, by a line each above
# and below zero (ADR 0006).
cdef enum:
    SMALL = 16
    LINE
    SPLIT
    # Channels of a layer that goes by lines, at most.
    LINES = 4096

# Vectors of each of the QUADS sums before the weights of a block.
cdef enum:
    QUADS_BIAS
    QUADS_MULTIPLIER
    QUADS_LEFT
    QUADS_RIGHT
    QUADS_SCALE
    QUADS_STEP
    # Which of the cells from the offset on a lane picks.
    QUADS_INDEX
    # In the first lane: the products of a block; in the second: bytes from the strip's cells to those of a sum's first lane.
    QUADS_TAPS
    QUADS_CONSTANTS
    # Of two lines: the first bits that are not below zero, what is added to those below, and their offset.
    QUADS_ZERO = QUADS_MULTIPLIER
    QUADS_MOVED = QUADS_LEFT
    QUADS_BELOW = QUADS_RIGHT

# Which cells lanes take: the next ones, those of a vector in any order, of two vectors, of three.
cdef enum:
    NEXT
    NEAR
    FAR
    FARTHER


ctypedef void (*StripKernel)(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil


# What is decided when the weights are packed; it lies before them.
cdef struct Quads:
    # Computes PASS_ROWS rows of output vectors, and one.
    StripKernel pass_of_rows, single_row
    int rescaling
    # Whether a row of outputs is one run of bytes.
    bint flat
    # How lanes pick cells.
    int picks
    # Whether cells have the order of the channels; else that of the unpack instructions, which the pack instructions undo.
    bint ordered
    # Output channels; the input channels that a column has in the cells: the ones of a vector, or all there are.
    Py_ssize_t channels, pixel
    # Columns of the filter, groups of rows, output rows of a tile.
    Py_ssize_t taps, groups, rows
    # Products that a block has room for: one for each tap of a group, two where weights are wider than a product takes.
    Py_ssize_t room
    # Sets of weights: blocks of channels, or what vectors of a flat row differ in.
    Py_ssize_t blocks, block_vectors
    # Bytes of a flat row that they take together; of one set whole pixels, while its vectors compute all their lanes.
    Py_ssize_t run
    # Output columns of a strip.
    Py_ssize_t columns
    # Columns of the input are split by the step along the row, where that is not 1, into so many runs, of so many bytes.
    Py_ssize_t phases, phase
    # Bytes from one plane of cells to the next: a group has CELL_PLANES; from the cells of an output vector to those of the next one of its block.
    Py_ssize_t plane, cell_step
    # From the start of the packed bytes to a vector of zero points, and to the first block.
    Py_ssize_t padding, weights


# Where a tile reads and writes; steps in bytes.
cdef struct Strip:
    const Problem *problem
    const char *cells
    char *y
    Py_ssize_t y_step, y_row
    # Bytes that the first vector may store, at most a vector of them, and how much less the next may.
    Py_ssize_t room, room_step
    # Sums that hold any channel.
    Py_ssize_t quads
    # Whether taps outside the image add nothing and are left out; the groups that have others, and the columns inside, counted from the first output's.
    bint zeros
    Py_ssize_t first_group, end_group, first_column, end_column
    # Products of a tile: runs of so many, 0 for all there are, from the first one to where they end.
    Py_ssize_t first, run, end
    vi16 zero_point
    vbytes low, high, order, flip


cdef inline const Py_ssize_t *tap_offsets(const Quads *job) noexcept nogil:
    """Bytes from the cells of an output's first tap to those of each."""
    return <const Py_ssize_t *> (job + 1)


cdef inline Py_ssize_t columns_read(const Problem *problem, Py_ssize_t columns) noexcept nogil:
    return (columns - 1) * problem.stride_width + (problem.kernel_width - 1) * problem.dilation_width + 1


cdef Py_ssize_t strip_bytes(const Problem *problem, const Quads *job, Py_ssize_t columns) noexcept nogil:
    """Bytes of a plane of cells for that many output columns; the last vector may reach beyond the last cell."""
    return (columns_read(problem, columns + divide_up(VECTOR_BYTES, job.channels)) * job.pixel + 2 * VECTOR_BYTES) * CELL


cdef inline Py_ssize_t first_cell(const Quads *job, const Problem *problem, Py_ssize_t place) noexcept nogil:
    """The cell of the first tap of the output at a place of a flat run."""
    cdef Py_ssize_t step = 1 if job.phases > 1 else problem.stride_width
    return place // job.channels * step * job.pixel + place % job.channels // problem.multiplier


cdef int picks_of(const Quads *job, const Problem *problem) noexcept nogil:
    """How lanes of a flat run pick their cells."""
    cdef Py_ssize_t place, reach = 0
    if problem.multiplier == 1 and (problem.stride_width == 1 or job.phases > 1):
        return NEXT
    for place in range(job.channels * QUADS):
        reach = max(reach, first_cell(job, problem, place * LANES + LANES - 1) - first_cell(job, problem, place * LANES))
    return NEAR + <int> min(reach // LANES, FARTHER + 1)


cdef inline Py_ssize_t time_of_vectors(Py_ssize_t count) noexcept nogil:
    """What quads_tiles takes for so many vectors of one set, in fifths of a tile: a vector by itself takes three, a set two."""
    cdef Py_ssize_t left = count % TILE_COLUMNS
    return 2 + count // TILE_COLUMNS * 5 + (3 * left if left * 2 <= TILE_COLUMNS or count < TILE_COLUMNS else 5)


cdef bint one_set_pays(const Quads *job) noexcept nogil:
    """Whether a flat row takes less time with one set of weights, for vectors that overlap by what they hold of another pixel."""
    cdef Py_ssize_t bytes_of_row = job.columns * job.channels, vectors = divide_up(bytes_of_row, VECTOR_BYTES)
    cdef Py_ssize_t each = vectors // job.blocks, more = vectors % job.blocks
    # Where vectors are short a tile is no faster than its vectors one by one.
    if VECTOR_BYTES == 16 or job.blocks == 1 or job.channels > VECTOR_BYTES:
        return False
    return time_of_vectors(divide_up(bytes_of_row, VECTOR_BYTES // job.channels * job.channels)) < (
        more * time_of_vectors(each + 1) + (job.blocks - more) * time_of_vectors(each))


cdef inline float scale_of(int multiplier, int shift) noexcept nogil:
    """multiplier * 2**(shift - 31)."""
    return <float> (multiplier / <double> (1LL << (31 - shift)))


cdef bint prepare_quads(Quads *job, const Problem *problem) noexcept nogil:
    """Whether a problem is computed here, and how."""
    cdef Py_ssize_t planes, sets, aim, channels = problem.channels * problem.multiplier
    # Two bytes add up to no more than 254.
    if problem.result != QUANTIZED or (CELL_PLANES == 1 and problem.widest_weight > 254):
        return False
    if (problem.x_strides[3] != 1 and problem.channels > 1) or (problem.y_strides[3] != 1 and channels > 1) or channels < 1 or problem.out_width < 1:
        return False
    job.channels = channels
    job.taps = problem.kernel_width
    job.groups = divide_up(problem.kernel_height, GROUP)
    job.rows = TILE_ROWS if divide_up(problem.kernel_height + problem.stride_height, GROUP) == job.groups else 1
    job.room = job.groups * job.taps * (2 if CELL_PLANES == 1 and problem.widest_weight > 127 else 1)
    job.block_vectors = QUADS * (QUADS_CONSTANTS + job.room * job.rows * CELL_PLANES)
    job.flat = channels < 2 * VECTOR_BYTES and problem.out_width > 1 and problem.y_strides[2] == channels
    if problem.multiplier == 1 and (problem.x_strides[2] != channels or problem.stride_width > 1):
        job.flat = job.flat and channels < VECTOR_BYTES * 3 // 4
    elif problem.multiplier == 1:
        # With VNNI many sets of weights take longer than lanes that are idle.
        sets = channels // common_divisor(channels, VECTOR_BYTES) * job.block_vectors * LANES * CELL
        job.flat = job.flat and channels % VECTOR_BYTES > 0 and (
            not WINDOWS or divide_up(channels, VECTOR_BYTES) * VECTOR_BYTES * FLAT_BYTES > channels * (FLAT_BYTES + sets))
    job.pixel = problem.channels
    job.phases = 1
    job.picks = picks_of(job, problem)
    if job.picks >= FARTHER:
        # Of more channels, a column of its own is worth a vector.
        job.flat = job.flat and (problem.multiplier > 1 or channels < MIN_CHANNELS)
        if SPLITS and problem.stride_width > 1 and (job.picks > FARTHER or not PICKS_FARTHER):
            job.phases = problem.stride_width
            job.picks = picks_of(job, problem)
        job.flat = job.flat and (job.picks < FARTHER or (job.picks == FARTHER and PICKS_FARTHER))
    if not job.flat:
        if problem.multiplier > 1 or (channels < MIN_CHANNELS and problem.out_width > 1):
            return False
        # Pixels side by side are one run of bytes all the same, whose cells are made faster than those of each pixel.
        if problem.x_strides[2] != channels or channels > VECTOR_BYTES * 3 // 4:
            job.pixel = VECTOR_BYTES
        job.picks = NEXT
        job.phases = 1
    job.ordered = not UNORDERED or job.pixel < VECTOR_BYTES or channels % VECTOR_BYTES > 0
    job.blocks = channels // common_divisor(channels, VECTOR_BYTES) if job.flat else divide_up(channels, VECTOR_BYTES)
    job.run = job.blocks * VECTOR_BYTES
    planes = job.groups * CELL_PLANES
    if job.groups > MAX_GROUPS or strip_bytes(problem, job, 1) * planes > CELL_BYTES:
        return False
    job.columns = problem.out_width
    # Columns that one output reaches should be less than half of those that are made.
    aim = STRIP_BYTES if job.phases > 1 else max(STRIP_BYTES, min(CELL_BYTES, 2 * planes * strip_bytes(problem, job, 1)))
    while job.columns > 1 and strip_bytes(problem, job, job.columns) * planes > aim:
        # Whole tiles, of nearly equal strips.
        job.columns = divide_up(job.columns // 2, TILE_COLUMNS) * TILE_COLUMNS if job.columns > 2 * TILE_COLUMNS else job.columns // 2
    job.plane = divide_up(strip_bytes(problem, job, job.columns), 64) * 64
    job.phase = divide_up(columns_read(problem, job.columns), job.phases) * job.pixel
    if job.phases > 1 and job.plane > STRIP_BYTES:
        return False
    if job.flat and one_set_pays(job):
        job.blocks = 1
        job.run = VECTOR_BYTES // channels * channels
    job.cell_step = (first_cell(job, problem, job.run) if job.flat else problem.stride_width * job.pixel) * CELL
    job.padding = HEADER_BYTES + divide_up(sizeof(Quads) + job.room * sizeof(Py_ssize_t), 64) * 64
    job.weights = job.padding + 64
    return True


cdef Py_ssize_t packed_bytes_quads(const Quads *job) noexcept nogil:
    return job.weights + job.blocks * job.block_vectors * LANES * CELL


cdef bint has_wide_tap(const Quads *job, const Problem *problem, const short *weights, Py_ssize_t group, Py_ssize_t column) noexcept nogil:
    """Whether a weight of that column of the filter, in a group of rows, is beyond int8."""
    cdef Py_ssize_t channel, row
    cdef int weight
    for row in range(max(0, group * GROUP - (job.rows - 1) * problem.stride_height), min(problem.kernel_height, (group + 1) * GROUP)):
        for channel in range(job.channels):
            weight = weights[(row * problem.kernel_width + column) * job.channels + channel]
            if not -128 <= weight <= 127:
                return True
    return False


cdef inline Py_ssize_t quads_channel(const Quads *job, Py_ssize_t lane) noexcept nogil:
    """The output channel of a lane of the packed constants; -1: none."""
    if job.flat:
        return lane % job.channels
    if not job.ordered:
        lane = lane - lane % VECTOR_BYTES + lane % LANES // 4 * 16 + lane % VECTOR_BYTES // LANES * 4 + lane % 4
    return lane if lane < job.channels else -1


cdef void pack_quads(
    Quads *job, const Problem *problem, const short *weights, const int *bias, const Requantization *requantization, char *packed,
) noexcept nogil:
    cdef int *vectors
    cdef int *cells
    cdef int *cell
    cdef int *products
    cdef Py_ssize_t *offsets = <Py_ssize_t *> (packed + HEADER_BYTES + sizeof(Quads))
    cdef Py_ssize_t lane, channel, group, column, row, quad, tap, step, i, index, extra, taps = job.groups * job.taps, products_of_all = taps
    cdef int folded, shift, count, plain = True
    cdef Fit lines[LINES]
    cdef Fit below[LINES]
    cdef Fit *line
    cdef int w[4]
    cdef int rest[4]
    cdef long long reach, least, largest
    cdef bint small = True, by_line = FUSED and job.channels <= LINES, split = False
    memset(packed, 0, job.weights)
    (<int *> packed)[QUADS_FLAG] = True
    memset(packed + job.padding, (problem.input_zero_point ^ flip_of(problem.element)) & 0xFF, 64)
    for group in range(job.groups):
        for column in range(job.taps):
            i = column * problem.dilation_width
            offsets[group * job.taps + column] = group * CELL_PLANES * job.plane + (i % job.phases * job.phase + i // job.phases * job.pixel) * CELL
            # What is left of wide weights is another product of the same cells.
            if job.room > taps and has_wide_tap(job, problem, weights, group, column):
                offsets[products_of_all] = offsets[group * job.taps + column]
                products_of_all += 1
    for i in range(job.blocks * QUADS):
        products = <int *> (packed + job.weights) + (i // QUADS * job.block_vectors + QUADS * QUADS_TAPS + i % QUADS) * LANES
        products[0] = taps
        products[1] = (first_cell(job, problem, i * LANES) if job.flat else i % QUADS * LANES) * CELL
    for lane in range(job.blocks * VECTOR_BYTES):
        quad = lane % VECTOR_BYTES // LANES
        vectors = <int *> (packed + job.weights) + (lane // VECTOR_BYTES * job.block_vectors + quad) * LANES + lane % LANES
        channel = quads_channel(job, lane)
        if job.flat:
            vectors[QUADS * QUADS_INDEX * LANES] = first_cell(job, problem, lane) - first_cell(job, problem, lane - lane % LANES)
        folded = shift = 0
        reach = 0
        if channel >= 0 and bias != NULL:
            folded = bias[channel]
        least = largest = folded
        cells = <int *> (packed + job.weights) + (lane // VECTOR_BYTES * job.block_vectors + QUADS * QUADS_CONSTANTS) * LANES + lane % LANES
        cells += (quad // PAIR * job.room * PAIR + quad % PAIR) * job.rows * CELL_PLANES * LANES
        extra = taps
        for group in range(job.groups):
            for column in range(job.taps):
                index = group * job.taps + column
                cell = cells + index * PAIR * job.rows * CELL_PLANES * LANES
                for row in range(job.rows):
                    for i in range(GROUP):
                        # The filter lies `row` steps lower in the group for the next output row.
                        tap = group * GROUP + i - row * problem.stride_height
                        w[i] = 0
                        if channel >= 0 and 0 <= tap < problem.kernel_height:
                            w[i] = weights[(tap * problem.kernel_width + column) * job.channels + channel]
                        if row == 0:
                            reach += 128 * (w[i] if w[i] > 0 else -w[i])
                            least += w[i] * ((-128 if w[i] > 0 else 127) - problem.input_zero_point)
                            largest += w[i] * ((127 if w[i] > 0 else -128) - problem.input_zero_point)
                            # Zero point and offset of the inputs go into the bias: every tap is there, with the zero point outside the image.
                            folded = wrapping_add(folded, wrapping_multiply(-problem.input_zero_point - INPUT_OFFSET, w[i]))
                        rest[i] = 0
                        if job.room > taps:
                            rest[i] = w[i]
                            w[i] = min(max(w[i], -128), 127)
                            rest[i] -= w[i]
                    put_weights(cell + row * CELL_PLANES * LANES, LANES, w[0], w[1], w[2], w[3])
                    if extra < products_of_all and offsets[extra] == offsets[index]:
                        put_weights(
                            cells + (extra * PAIR * job.rows + row) * CELL_PLANES * LANES, LANES, rest[0], rest[1], rest[2], rest[3])
                        if rest[0] or rest[1] or rest[2] or rest[3]:
                            for i in range(QUADS):
                                products = <int *> (packed + job.weights) + (
                                    lane // VECTOR_BYTES * job.block_vectors + QUADS * QUADS_TAPS + i) * LANES
                                products[0] = max(products[0], <int> extra + 1)
                if extra < products_of_all and offsets[extra] == offsets[index]:
                    extra += 1
        vectors[QUADS * QUADS_BIAS * LANES] = folded
        if channel < 0:
            continue
        if requantization.multipliers != NULL:
            vectors[QUADS * QUADS_MULTIPLIER * LANES] = requantization.multipliers[channel]
            shift = requantization.shifts[channel]
        # The inputs may be offset by another 128.
        plain = plain and plain_suffices(shift, 2 * reach, folded)
        vectors[QUADS * QUADS_LEFT * LANES] = max(shift, 0)
        vectors[QUADS * QUADS_RIGHT * LANES] = max(-shift, 0)
        if problem.rounding == 1:
            (<float *> vectors)[QUADS * QUADS_SCALE * LANES] = requantization.scales[channel] if requantization.scales != NULL else 0
            small = small and (2 * reach + (folded if folded > 0 else -<long long> folded)) * (<float *> vectors)[QUADS * QUADS_SCALE * LANES] < PLAIN_SUM
        else:
            (<float *> vectors)[QUADS * QUADS_SCALE * LANES] = scale_of(vectors[QUADS * QUADS_MULTIPLIER * LANES], shift)
            (<float *> vectors)[QUADS * QUADS_STEP * LANES] = scale_of(1 << 30, shift)
        # Channels come again in a flat run.
        if by_line and (lane == channel or not job.flat):
            count = fit_lines(
                &lines[channel], &below[channel], problem, vectors[QUADS * QUADS_MULTIPLIER * LANES], shift,
                (<float *> vectors)[QUADS * QUADS_SCALE * LANES], least, largest, problem.rounding == 0,
                MAX_WIDE_RESULT if problem.rounding == 0 else MAX_RESULT)
            by_line = count > 0
            # Those who know two lines know results of more than 16 bits, too.
            split = split or count > 1 or max(-least, largest) * (<float *> vectors)[QUADS * QUADS_SCALE * LANES] > MAX_RESULT
    job.rescaling = SPLIT if by_line and split else LINE if by_line else (SMALL if small else ONCE) if problem.rounding == 1 else PLAIN if plain else TWICE
    for lane in range(job.blocks * VECTOR_BYTES if by_line else 0):
        vectors = <int *> (packed + job.weights) + (lane // VECTOR_BYTES * job.block_vectors + lane % VECTOR_BYTES // LANES) * LANES + lane % LANES
        channel = quads_channel(job, lane)
        line = &lines[max(channel, 0)]
        vectors[QUADS * QUADS_BIAS * LANES] = wrapping_add(wrapping_add(vectors[QUADS * QUADS_BIAS * LANES], FLOAT_BITS), line.shift)
        (<float *> vectors)[QUADS * QUADS_SCALE * LANES] = line.scale
        (<float *> vectors)[QUADS * QUADS_STEP * LANES] = line.offset
        if split:
            (<float *> vectors)[QUADS * QUADS_ZERO * LANES] = 8388608 + line.shift + line.first
            (<float *> vectors)[QUADS * QUADS_MOVED * LANES] = below[max(channel, 0)].shift - line.shift
            (<float *> vectors)[QUADS * QUADS_BELOW * LANES] = below[max(channel, 0)].offset
    if job.rescaling == LINE:
        job.single_row = row_near if VECTOR_BYTES == 64 and job.picks == NEAR else row_line
        job.pass_of_rows = rows_line
    elif job.rescaling == SMALL:
        job.single_row = row_small
        job.pass_of_rows = rows_small
    elif job.rescaling == (SPLIT if FUSED else PLAIN):
        job.single_row = row_twice
        job.pass_of_rows = rows_twice
    else:
        job.single_row = row_exact
        job.pass_of_rows = rows_exact
    memcpy(packed + HEADER_BYTES, job, sizeof(Quads))


# The loops below are short, none within another, and their bounds are constants where the functions are called: so a compiler keeps the arrays in
# registers.

cdef inline void add_products(
    const char *cells, Py_ssize_t cell_step, const vi32 *weights, vi32 *upper, vi32 *lower, int picks, vi32 index, const int rows, const int columns,
) noexcept nogil:
    """One plane of one tap on `columns` outputs of one row or two."""
    cdef vi32 cell[WIDE_COLUMNS]
    cdef int i
    if picks == NEXT:
        for i in range(columns):
            cell[i] = (<const vi32 *> (cells + i * cell_step))[0]
    elif picks == NEAR or LANES == 4:
        for i in range(columns):
            cell[i] = pick_near(cells + i * cell_step, index)
    elif PICKS_FARTHER and picks == FARTHER:
        for i in range(columns):
            cell[i] = pick_farther(cells + i * cell_step, index)
    else:
        for i in range(columns):
            cell[i] = pick_far(cells + i * cell_step, index)
    for i in range(columns):
        upper[i] = dot_cells(upper[i], cell[i], weights[0])
    if rows == 2:
        for i in range(columns):
            lower[i] = dot_cells(lower[i], cell[i], weights[CELL_PLANES])


cdef inline void add_taps(
    const Quads *job, const Strip *strip, const vi32 *block, const vi32 *weights, const char *cells, Py_ssize_t cell_step, vi32 *upper, vi32 *lower,
    vi32 *upper_next, vi32 *lower_next, const int rows, const int columns, const int picks,
) noexcept nogil:
    """The sums of two quads: `upper` and `lower` row of one, and of the next."""
    cdef const Py_ssize_t *taps = tap_offsets(job)
    cdef const int *counts = <const int *> (block + QUADS * QUADS_TAPS)
    cdef Py_ssize_t tap = strip.first, count = tap + strip.run if strip.run else counts[0], plane = job.plane
    cdef Py_ssize_t next_weights = job.rows * CELL_PLANES, apart = counts[LANES + 1] - counts[1]
    cdef const char *cell
    cdef vi32 index = block[QUADS * QUADS_INDEX], index_next = block[QUADS * QUADS_INDEX + 1]
    cdef int i
    cells += counts[1]
    weights += tap * PAIR * next_weights
    for i in range(columns):
        upper[i] = lower[i] = block[QUADS * QUADS_BIAS]
    for i in range(columns):
        upper_next[i] = lower_next[i] = block[QUADS * QUADS_BIAS + 1]
    # There is a first tap: a loop that might not run would cost copies of all sums.
    while True:
        cell = cells + taps[tap]
        add_products(cell, cell_step, weights, upper, lower, picks, index, rows, columns)
        if CELL_PLANES == 2:
            add_products(cell + plane, cell_step, weights + 1, upper, lower, picks, index, rows, columns)
        cell += apart
        weights += next_weights
        add_products(cell, cell_step, weights, upper_next, lower_next, picks, index_next, rows, columns)
        if CELL_PLANES == 2:
            add_products(cell + plane, cell_step, weights + 1, upper_next, lower_next, picks, index_next, rows, columns)
        weights += next_weights
        tap += 1
        if tap < count:
            continue
        if count >= strip.end:
            break
        tap += job.taps - strip.run
        weights += (job.taps - strip.run) * PAIR * next_weights
        count += job.taps


cdef void exact_words(const Quads *job, const vi32 *block, vi32 *sums, vi32 *next_sums, vi16 *words, int columns) noexcept nogil:
    """What rescale and words_of make of the sums of two quads, for any constants."""
    cdef vi32 *quads[PAIR]
    cdef int i, q
    quads[0] = sums
    quads[1] = next_sums
    for q in range(PAIR):
        for i in range(columns):
            if job.rescaling == ONCE:
                quads[q][i] = round_scaled(quads[q][i], (<const vf32 *> block)[QUADS * QUADS_SCALE + q])
            else:
                quads[q][i] = requantize_tflite(
                    quads[q][i], block[QUADS * QUADS_MULTIPLIER + q], block[QUADS * QUADS_LEFT + q], block[QUADS * QUADS_RIGHT + q])
    for i in range(columns):
        words[i] = pack_i32(sums[i], next_sums[i])


cdef void exact_pair(
    const Quads *job, const Strip *strip, const vi32 *block, const vi32 *weights, const char *cells, Py_ssize_t cell_step, vi16 *words, int columns,
) noexcept nogil:
    """What pair_of_rows computes of one row, for any constants, one output vector at a time."""
    cdef vi32 total[PAIR]
    cdef vi32 unused[PAIR]
    cdef int i
    for i in range(columns):
        add_taps(job, strip, block, weights, cells + i * cell_step, 0, total, unused, total + 1, unused + 1, 1, 1, job.picks)
        exact_words(job, block, total, total + 1, words + i, 1)


cdef inline void rescale(vi32 *sums, const vf32 *constants, vf32 *worst, const int columns, const int rescaling) noexcept nogil:
    cdef vf32 scale = constants[QUADS * QUADS_SCALE], step = constants[QUADS * QUADS_STEP]
    cdef int i
    if rescaling == SPLIT:
        for i in range(columns):
            sums[i] = bits_on_two_lines(
                sums[i], scale, step, constants[QUADS * QUADS_ZERO], constants[QUADS * QUADS_MOVED], constants[QUADS * QUADS_BELOW])
    elif rescaling == LINE:
        for i in range(columns):
            sums[i] = bits_on_line(sums[i], scale, step)
    elif rescaling == SMALL:
        for i in range(columns):
            sums[i] = round_small(sums[i], scale)
    else:
        for i in range(columns):
            sums[i] = round_twice(sums[i], scale, step, worst)


cdef inline vi16 words_of(vi32 sums, vi32 next_sums, const int rescaling) noexcept nogil:
    """Two vectors of rescaled sums, narrowed: the bits of a line's results fit."""
    if rescaling == LINE:
        return low_words(sums, next_sums)
    if rescaling == SPLIT:
        return pack_i32(whole_of_bits(sums), whole_of_bits(next_sums))
    return pack_i32(sums, next_sums)


cdef inline void pair_of_rows(
    const Quads *job, const Strip *strip, const vi32 *block, const vi32 *weights, const char *cells, Py_ssize_t cell_step, vi16 *above, vi16 *below,
    const int rows, const int columns, const int rescaling, const int picks,
) noexcept nogil:
    """Two of the quads of `columns` output vectors of one row or two, rescaled and narrowed to int16."""
    cdef vi32 upper[WIDE_COLUMNS]
    cdef vi32 lower[WIDE_COLUMNS]
    cdef vi32 upper_next[WIDE_COLUMNS]
    cdef vi32 lower_next[WIDE_COLUMNS]
    cdef vi16 exact[WIDE_COLUMNS]
    cdef const vf32 *constants = <const vf32 *> block
    cdef vf32 worst = splat_f32(0)
    cdef int i
    add_taps(job, strip, block, weights, cells, cell_step, upper, lower, upper_next, lower_next, rows, columns, picks)
    if rescaling == TWICE:
        exact_words(job, block, upper, upper_next, above, columns)
        if rows == 2:
            exact_words(job, block, lower, lower_next, below, columns)
        return
    rescale(upper, constants, &worst, columns, rescaling)
    rescale(upper_next, constants + 1, &worst, columns, rescaling)
    for i in range(columns):
        above[i] = words_of(upper[i], upper_next[i], rescaling)
    if rows == 2:
        rescale(lower, constants, &worst, columns, rescaling)
        rescale(lower_next, constants + 1, &worst, columns, rescaling)
        for i in range(columns):
            below[i] = words_of(lower[i], lower_next[i], rescaling)
    if rescaling != PLAIN or not near_a_tie(worst):
        return
    exact_pair(job, strip, block, weights, cells, cell_step, exact, columns)
    for i in range(columns):
        above[i] = exact[i]
    if rows == 2:
        exact_pair(job, strip, block, weights + CELL_PLANES, cells, cell_step, exact, columns)
        for i in range(columns):
            below[i] = exact[i]


cdef inline void store_row(
    const Strip *strip, char *y, Py_ssize_t room, const vi16 *first, const vi16 *second, const int columns, const int rescaling,
) noexcept nogil:
    """The bytes of `columns` output vectors."""
    cdef vbytes bytes[WIDE_COLUMNS]
    cdef Py_ssize_t y_step = strip.y_step, room_step = strip.room_step
    cdef int i
    if rescaling == SPLIT:
        for i in range(columns):
            bytes[i] = changed(in_order(clamp_i8(pack_i16(first[i], second[i]), strip.low, strip.high), strip.order), strip.flip)
    elif rescaling == LINE:
        for i in range(columns):
            bytes[i] = changed(clamp_i8(in_order(in_fours(pack_i16(first[i], second[i])), strip.order), strip.low, strip.high), strip.flip)
    else:
        for i in range(columns):
            bytes[i] = changed(channels_of(first[i], second[i], strip.zero_point, strip.low, strip.high, strip.order), strip.flip)
    if room - (columns - 1) * room_step >= VECTOR_BYTES:
        for i in range(columns):
            store_bytes(<signed char *> y + i * y_step, bytes[i], VECTOR_BYTES)
    else:
        for i in range(columns):
            store_bytes(<signed char *> y + i * y_step, bytes[i], room - i * room_step)


cdef inline void quads_tile(
    const Quads *job, const vi32 *block, const Strip *strip, const char *cells, char *y, Py_ssize_t room, int row, const int rows, const int columns,
    const int rescaling, const int picks,
) noexcept nogil:
    """rows x columns output vectors from row `row` of the tile on; what is const is a constant wherever this is called."""
    cdef vi16 above[2 * WIDE_COLUMNS]
    cdef vi16 below[2 * WIDE_COLUMNS]
    cdef const vi32 *weights = block + (QUADS * QUADS_CONSTANTS + row * CELL_PLANES)
    # Where the second pair's sums hold no channel, the first's stand for them.
    cdef Py_ssize_t pair, next_pair = columns if strip.quads > PAIR else 0
    for pair in range(2 if next_pair else 1):
        pair_of_rows(job, strip, block, weights, cells, job.cell_step, above + pair * columns, below + pair * columns, rows, columns, rescaling, picks)
        block += PAIR
        weights += job.room * PAIR * job.rows * CELL_PLANES
    store_row(strip, y, room, above, above + next_pair, columns, rescaling)
    if rows == 2:
        store_row(strip, y + strip.y_row, room, below, below + next_pair, columns, rescaling)


cdef void leave_out(const Quads *job, Strip *strip, Py_ssize_t column, Py_ssize_t columns) noexcept nogil:
    """The taps that any of `columns` outputs from `column` on has inside the image; at least one."""
    cdef const Problem *problem = strip.problem
    cdef Py_ssize_t step = problem.stride_width, dilation = problem.dilation_width, at = column * step
    cdef Py_ssize_t first = min(steps_to(strip.first_column - at - (columns - 1) * step, dilation), job.taps - 1)
    cdef Py_ssize_t end = max(min(job.taps, steps_to(strip.end_column - at, dilation)), first + 1)
    strip.first = strip.first_group * job.taps + first
    strip.run = end - first
    strip.end = (strip.end_group - 1) * job.taps + end


cdef inline void quads_tiles(
    const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row, const int rows, const int rescaling, const int picks,
) noexcept nogil:
    """`count` output vectors of each of `rows` rows. The last tile may compute one of them again."""
    cdef Py_ssize_t first = 0
    cdef char *y = strip.y + row * strip.y_row
    while first < count:
        if count < TILE_COLUMNS or (count - first) * 2 <= TILE_COLUMNS:
            if strip.zeros and not job.flat:
                leave_out(job, strip, first, TILE_COLUMNS // 2)
            if rows == 1 and rescaling == LINE and count - first == 2:
                quads_tile(
                    job, block, strip, strip.cells + first * job.cell_step, y + first * strip.y_step, strip.room - first * strip.room_step,
                    row, rows, 2, rescaling, picks)
                break
            quads_tile(
                job, block, strip, strip.cells + first * job.cell_step, y + first * strip.y_step, strip.room - first * strip.room_step,
                row, rows, 1, rescaling, picks)
            first += 1
            continue
        first = min(first, count - TILE_COLUMNS)
        if strip.zeros and not job.flat:
            leave_out(job, strip, first, TILE_COLUMNS)
        quads_tile(
            job, block, strip, strip.cells + first * job.cell_step, y + first * strip.y_step, strip.room - first * strip.room_step,
            row, rows, TILE_COLUMNS, rescaling, picks)
        first += TILE_COLUMNS


# One function for each rule: a compiler that sees two of them together runs out of registers.

cdef void rows_small(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    quads_tiles(job, block, strip, count, row, PASS_ROWS, SMALL, job.picks)


cdef void rows_twice(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    """Rounded twice: on two lines, or in float32 where there is no multiplication that adds."""
    quads_tiles(job, block, strip, count, row, PASS_ROWS, SPLIT if FUSED else PLAIN, job.picks)


cdef void rows_line(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    quads_tiles(job, block, strip, count, row, PASS_ROWS, LINE, job.picks)


cdef void row_line(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    quads_tiles(job, block, strip, count, row, 1, LINE, job.picks)


cdef void row_small(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    quads_tiles(job, block, strip, count, row, 1, SMALL, job.picks)


cdef void row_twice(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    quads_tiles(job, block, strip, count, row, 1, SPLIT if FUSED else PLAIN, job.picks)


cdef void row_near(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    """As row_line, in wider tiles where fewer vectors are computed again."""
    cdef Py_ssize_t first = 0
    if divide_up(count, WIDE_COLUMNS) * WIDE_COLUMNS > divide_up(count, TILE_COLUMNS) * TILE_COLUMNS or count < WIDE_COLUMNS:
        row_line(job, block, strip, count, row)
        return
    while first < count:
        first = min(first, count - WIDE_COLUMNS)
        quads_tile(
            job, block, strip, strip.cells + first * job.cell_step, strip.y + row * strip.y_row + first * strip.y_step,
            strip.room - first * strip.room_step, row, 1, WIDE_COLUMNS, LINE, NEAR)
        first += WIDE_COLUMNS


cdef void row_exact(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    quads_tiles(job, block, strip, count, row, 1, TWICE, job.picks)


cdef void rows_exact(const Quads *job, const vi32 *block, Strip *strip, Py_ssize_t count, int row) noexcept nogil:
    quads_tiles(job, block, strip, count, row, PASS_ROWS, TWICE, job.picks)


cdef inline void run_strip(
    const Quads *job, const Problem *problem, char *cells, const char *image, char *y, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column,
    Py_ssize_t columns, Strip *strip, vi32 blank,
) noexcept nogil:
    """`columns` output columns from `column` on, of output row `row` and, where `rows` is 2, the one a dilation below."""
    cdef const vi32 *block = <const vi32 *> (<const char *> problem.packed + job.weights)
    cdef int i
    cdef Py_ssize_t index, count = columns, vectors = 0, bytes_of_row = columns * job.channels, readable = columns_read(problem, columns)
    cdef Py_ssize_t x_row = row * problem.stride_height - problem.pad_top, x_column = column * problem.stride_width - problem.pad_left
    y += row * problem.y_strides[1] + column * problem.y_strides[2]
    strip.y_row = problem.dilation_height * problem.y_strides[1]
    strip.quads = QUADS
    strip.first = strip.run = strip.end = strip.first_group = 0
    strip.end_group = job.groups
    if strip.zeros:
        strip.first_group = min(steps_to(-problem.halo[0] - x_row, problem.dilation_height) // GROUP, job.groups - 1)
        strip.end_group = divide_up(steps_to(problem.height + problem.halo[1] - x_row, problem.dilation_height), GROUP)
        strip.end_group = max(min(strip.end_group, job.groups), strip.first_group + 1)
        strip.first_column = -problem.halo[2] - x_column
        strip.end_column = problem.width + problem.halo[3] - x_column
        if job.flat:
            strip.first = strip.first_group * job.taps
            strip.run = (strip.end_group - strip.first_group) * job.taps
    if job.flat:
        fill_cells(job, problem, strip, cells, image, x_row, x_column, readable, problem.channels + problem.channel_room, blank)
        strip.y_step = strip.room_step = job.run
        # Narrow numbers are divided faster.
        vectors = divide_up(bytes_of_row, min(job.run, VECTOR_BYTES))
        count = <unsigned int> vectors // <unsigned int> job.blocks + 1
        vectors -= (count - 1) * job.blocks
    else:
        strip.y_step = problem.y_strides[2]
        strip.room_step = 0
    for index in range(job.blocks):
        strip.cells = cells
        strip.y = y + index * VECTOR_BYTES
        if job.flat:
            strip.room = bytes_of_row - index * VECTOR_BYTES
            if index == vectors:
                count -= 1
            if count == 0:
                return
        else:
            strip.room = problem.channels - index * VECTOR_BYTES
            strip.quads = min(QUADS, divide_up(strip.room, LANES))
            fill_cells(job, problem, strip, cells, image + index * VECTOR_BYTES, x_row, x_column, readable, strip.room + problem.channel_room, blank)
        if rows == PASS_ROWS:
            job.pass_of_rows(job, block, strip, count, 0)
        else:
            for i in range(rows):
                job.single_row(job, block, strip, count, i)
        block += job.block_vectors


cdef void run_quads(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef char memory[CELL_BYTES + 64]
    cdef char *cells = memory + (-<Py_ssize_t> memory & 63)
    cdef const Quads *job = <const Quads *> (<const char *> problem.packed + HEADER_BYTES)
    cdef vi32 blank = blank_cells(problem.input_zero_point)
    cdef Strip strip
    cdef Py_ssize_t image = begin // problem.out_height, row = begin - image * problem.out_height, last, step, phase, column
    strip.zero_point = splat_i16(problem.output_zero_point)
    strip.low = splat_i8(problem.quantized_min)
    strip.high = splat_i8(problem.quantized_max)
    strip.flip = splat_i8(flip_of(problem.element))
    strip.order = order_of(job.ordered)
    strip.problem = problem
    strip.zeros = problem.input_zero_point == -INPUT_OFFSET and job.groups * job.taps >= MANY_PRODUCTS and job.room == job.groups * job.taps
    step = problem.dilation_height
    while begin < end:
        last = min(problem.out_height, row + end - begin)
        begin += last - row
        while row < last:
            # The rows of a tile lie a dilation apart: so they share the rows of a group.
            for phase in range(row, min(row + step, last)):
                column = 0
                while column < problem.out_width:
                    run_strip(
                        job, problem, cells, x + image * problem.x_strides[0], y + image * problem.y_strides[0], phase,
                        2 if job.rows == 2 and phase + step < last else 1, column, min(job.columns, problem.out_width - column), &strip, blank,
                    )
                    column += job.columns
            row += step * job.rows
        row = 0
        image += 1
