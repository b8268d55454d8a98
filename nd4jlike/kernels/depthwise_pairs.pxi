# int8 and uint8 by pairs: filters by steps of 1 or 2 whose channels lie side by side, one output channel each. `pairs.h` has the tile and says how it works;
# this is the plan of a call, `depthwise_pairs_weights.pxi` packs weights by it, `depthwise_pairs_walk.pxi` walks over the image. Where products are of bytes,
# filters are 5x5, 7x7 and, by steps of 2, 4x4, and those of 3x3 are windows (`window.h`) on this walk.
# Filters of one row or one column are lines (`depthwise_lines.pxi`); by wider steps, where outputs share few inputs, they are computed one by one (`apart.h`).
#
# A block is a vector of channels. What is left of at most half a vector is a block of the last channels, of which some may have been computed before: its lanes
# hold two parts, the left and the right half of the columns; of a quarter of a vector, four parts where products are of bytes. Fewer channels than that,
# without others, are the first lanes of such parts, where quads take longer. Elsewhere fewer channels than half a vector have four parts, too, what is left of
# more than half a vector may be a block of two halves that overlap, and what has no two parts a vector that overlaps the one before (OVERLAPS): parts of
# vectors take long to load and to store.

cdef enum:
    # Bytes of the pairs that a filter reaches at a time: with the weights they stay in a first-level cache. Where images are large and filters are not,
    # long runs of columns are worth more: they suit the prefetchers.
    RING_BYTES = 18 << 10
    LONG_RING_BYTES = 72 << 10
    LARGE_IMAGE = 2 << 20
    # Output columns from which on outputs one by one, of more taps than a cell's, take less time than quads.
    APART_COLUMNS = 8
    # Output columns from which on four quarters of them take less time than one of the lanes.
    QUARTERS_PAY = 8
    # Channels from which on halves of the columns do, most of whose lanes are idle, but for a quarter of a vector of them: windows that step by 2, others,
    # and pairs; columns of a half from which on those of 7x7 do that step by 2.
    LEAST_STEPPING = 9
    LEAST_WINDOW = 12
    LEAST_PAIRS = 13
    FEW_SLIDES = 3
    # Dilation from which on windows of two and a half columns a phase are too few.
    MANY_PHASES = 5

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
    # Whether rows are columns, and columns rows; whether zeros around the filter make a square of it, rows of them above it, columns on its left.
    bint turned, framed
    Py_ssize_t above, left
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
    return max(0, problem.channels - VECTOR_BYTES // job.parts)


cdef inline Py_ssize_t phases_of(const Pairs *job, const Problem *problem) noexcept nogil:
    """Rows of outputs from one to the next of a strip."""
    return 2 if WINDOWS and not job.apart and problem.stride_height < job.stride else problem.dilation_height


cdef inline Py_ssize_t pairs_columns_read(const Pairs *job, Py_ssize_t columns) noexcept nogil:
    return (columns - 1) * job.stride + job.taps


cdef inline void lay_out_pairs(Pairs *job, const Problem *problem) noexcept nogil:
    if not job.spread and not job.gathered:
        job.blocks = divide_up(problem.channels, VECTOR_BYTES)
        if not WINDOWS and job.parts > 2 and VECTOR_BYTES // 4 < problem.channels < VECTOR_BYTES // 2:
            job.blocks = 2
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


cdef inline bint halves_pay(const Pairs *job, const Problem *problem) noexcept nogil:
    """Whether two halves of the columns, some of whose lanes may be idle, take less time than quads."""
    cdef Py_ssize_t least = VECTOR_BYTES // 2
    if WINDOWS and problem.channels < least and not (job.taps == 7 and job.stride == 2 and columns_of_part(problem.out_width, 2) < FEW_SLIDES):
        least = LEAST_STEPPING if job.window and job.stride == 2 else LEAST_WINDOW if job.window else LEAST_PAIRS
    return problem.channels >= least and (not WINDOWS or problem.channels != VECTOR_BYTES // 4)


cdef void prepare_parts(Pairs *job, const Problem *problem) noexcept nogil:
    """How what is left of the channels is computed."""
    cdef Py_ssize_t rest = problem.channels % VECTOR_BYTES, outputs = problem.out_width // problem.dilation_width, beyond
    job.parts = 1
    job.between = between_of(problem)
    if 0 < rest <= VECTOR_BYTES // 2 and halves_pay(job, problem) and columns_of_part(outputs, 2) >= (1 if OVERLAPS else tile_of(job)):
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
    if beyond > 8 or outputs < max(QUARTERS_PAY, 4 * tile_of(job)) or problem.channels <= VECTOR_BYTES // 8:
        return
    if (outputs - columns_of_part(outputs, 4)) // 3 * job.stride < beyond:
        return
    if rest <= VECTOR_BYTES // 4:
        job.parts = 4


cdef inline bint shares_little(const Problem *problem) noexcept nogil:
    """Whether outputs share so few inputs that they take less time one by one."""
    cdef Py_ssize_t taps = problem.kernel_height * problem.kernel_width
    if problem.channels < VECTOR_BYTES // 2:
        return False
    if problem.kernel_height == 1 and taps <= GROUP and problem.out_height < LINE_ROWS:
        return taps > FEW_LINE_TAPS or problem.stride_width > 1 or problem.widest_weight > 127
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
    # Windows of many phases, whose rows have few columns each, begin more often than they slide.
    if (
        WINDOWS and problem.kernel_height == problem.kernel_width == 3 and problem.channels > VECTOR_BYTES // 2
        and problem.dilation_width >= MANY_PHASES and 2 * problem.out_width <= 5 * problem.dilation_width
    ):
        return False
    cdef Problem turned
    job.turned = not WINDOWS and problem.kernel_height == 1 and problem.kernel_width > 1
    if job.turned:
        # Where a pair is a cell, a filter of one row is one of a column.
        turned = turned_of(problem)
        if prepare_side_by_side(job, &turned):
            return True
        job.turned = False
    return prepare_side_by_side(job, problem) or (WINDOWS and prepare_framed(job, problem)) or prepare_gathered(job, problem)


cdef inline Py_ssize_t square_of(const Problem *problem) noexcept nogil:
    """The square of a filter that takes less time with zeros around it than by quads; 0: none."""
    cdef Py_ssize_t rows = problem.kernel_height, columns = problem.kernel_width
    cdef bint steps = max(problem.stride_height, problem.stride_width) > 1
    if problem.multiplier > 1 or min(rows, columns) < 2 or problem.channels <= VECTOR_BYTES // 4:
        return 0
    if max(rows, columns) <= 3:
        return 3
    if steps and (problem.channels < VECTOR_BYTES // 2 or problem.stride_height != problem.stride_width):
        return 0
    if max(rows, columns) <= 5:
        return 5 if min(rows, columns) > 3 or (rows == 5 and columns == 3 and not steps) else 0
    return 7 if max(rows, columns) <= 7 and rows > 4 and columns > 5 and not steps else 0


cdef inline Problem framed_of(const Problem *problem, Py_ssize_t square, Py_ssize_t above, Py_ssize_t left) noexcept nogil:
    """The same with a filter that has zeros around it: so many rows above it, so many columns on its left."""
    cdef Problem framed = problem[0]
    framed.kernel_height = framed.kernel_width = square
    framed.pad_top += above * problem.dilation_height
    framed.pad_left += left * problem.dilation_width
    return framed


cdef bint prepare_framed(Pairs *job, const Problem *problem) noexcept nogil:
    """As prepare_pairs, of a filter that is no square."""
    cdef Py_ssize_t square = square_of(problem), above = (square - problem.kernel_height) // 2, left = (square - problem.kernel_width) // 2
    cdef Problem framed
    if square == 0:
        return False
    framed = framed_of(problem, square, above, left)
    if not prepare_side_by_side(job, &framed):
        return False
    job.framed, job.above, job.left = True, above, left
    return True


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
    job.spread = job.apart = job.gathered = job.framed = False
    job.above = job.left = 0
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
    # By 1 down and by 2 along a row, rows of outputs are computed by turns; windows that step by 2 down and by 1 along a row leave out every other one.
    if problem.kernel_height != job.taps or (problem.stride_height > job.stride and not (job.window and problem.stride_height <= 2)):
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
