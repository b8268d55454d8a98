# All of an image, one block of channels after another (ADR 0017, D17), of a call on rows (depthwise_float.pxi): which calls, in tiles of how many columns, and
# the walk. `walks.h` has the tiles.

cdef extern from "walks.h" nogil:
    const int WALK_PLACES
    const OneTile walking_tiles[4][8][3][8]
    const OneTile touching_tiles[3]
    const char *walked_names[8]

cdef enum:
    # Inputs of a block of channels of an image that stay in a first-level cache of 48 KiB while those of the next block come there.
    WALKED_BYTES = 28 << 10
    # Outputs of a row up to which tiles that share it evenly are walked, and with vectors of 32 bytes those without a step; sets that pixels share at most for
    # blocks to have to stay then; those of a cache of 8 ways.
    EVEN_OUTPUTS = 24
    EVEN_HALVED = 18
    FEW_SETS = 4
    ALL_SETS = 64


cdef bint stays_while_walked(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether a block of channels of an image, or of a phase of one, stays in AMD's first-level cache while it is walked."""
    cdef Py_ssize_t pixels = divide_up(job.down.extent, job.down.dilation) * divide_up(job.across.extent, job.across.dilation)
    cdef Py_ssize_t ways = ROOMY_WAYS if problem.roomy else HALVING_WAYS
    return pixels * LINE_BYTES <= WALKED_BYTES and pixels * lowest_bit(job.across.dilation) <= problem.sets * ways


cdef bint touching_pays(const Rows *job, const Problem *problem) noexcept nogil:
    """Whether tiles of WIDE_TILE columns walk a block that stays while the next one comes."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Py_ssize_t outputs = divide_up(across.outputs, across.phases), computed = divide_up(outputs, WIDE_TILE) * WIDE_TILE
    if not (problem.roomy or problem.halving) or across.outputs < WIDE_TILE * across.phases or not stays_while_walked(job, problem):
        return False
    # A whole image comes to a smaller cache out of the second-level one.
    if problem.halving:
        return job.wide and (down.phases * down.step > 1 or down.extent * down.x + down.outputs * down.y <= SHARED_BYTES)
    # Where tiles of 4 columns would do, by steps of 2 and of the phases of dilated filters some columns are computed twice.
    return job.wide or (5 * computed <= 7 * outputs if across.step > 1 else across.phases > 1 and 7 * computed <= 9 * outputs)


cdef inline bint has_ends(const Rows *job) noexcept nogil:
    """Whether the last 8 channels, for which a walk has no tiles, gain more by themselves than most walks."""
    return job.ends and job.blocks <= END_BLOCKS and job.across.outputs >= WIDE_TILE and job.across.step == 1


cdef int columns_walked(const Rows *job, const Problem *problem) noexcept nogil:
    """Columns of tiles that share a row of outputs evenly, where a walk of them is faster than tiles of 4 and 7 columns, if a block stays or not; else 0."""
    cdef const Line *across = &job.across
    cdef Py_ssize_t places = divide_up(across.outputs, WIDE_TILE), columns = divide_up(across.outputs, places)
    cdef bint odd_ones = columns == 3 or columns == 5 or columns == 6, alone = across.x == LINE_BYTES, pays
    cdef bint fours = across.outputs % NARROW_TILE == 0
    if across.phases > 1 or job.down.phases > 1 or columns < 3 or (has_ends(job) and not (odd_ones and (across.taps == 5 or not fours))):
        return 0
    pays = places == 1 and odd_ones
    if not pays and problem.halving and problem.distance < IN_MEMORY and (problem.sets > FEW_SETS or stays_while_walked(job, problem)):
        if across.step == 2 and (VECTOR_BYTES == 64 or across.taps == 5):
            if across.taps == 5:
                pays = odd_ones
            elif problem.element == FLOAT32:
                pays = across.x % LINE_BYTES == 0 and across.y % LINE_BYTES == 0
            else:
                pays = odd_ones and not fours
            pays = pays and (across.outputs <= EVEN_OUTPUTS or alone)
        elif across.step == 1 and (VECTOR_BYTES == 64 or across.outputs <= EVEN_HALVED):
            # By sevens a block that stays is better touched ahead, wherever it begins in lines.
            pays = alone or (places * columns <= across.outputs + 1 and (
                odd_ones or (columns == WIDE_TILE and problem.sets >= ALL_SETS and not stays_while_walked(job, problem))))
    return <int> columns if pays else 0


cdef OneTile walking_pays(Rows *job, const Problem *problem) noexcept nogil:
    """The tile of a whole image, or of a phase of one, whose blocks of channels come one after another, and its columns; NULL: none."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    if (
        across.x < LINE_BYTES or job.fetches or job.spread or job.swapped or job.general or job.pixel
        or job.split or job.line != NULL or job.one_row != NULL or problem.element == FLOAT64 or job.image != NULL or job.running != NULL or job.pairs != NULL
        or job.x_vectors > 1 or job.y_vectors > 1 or divide_up(across.outputs, across.phases) > WALK_PLACES * WIDE_TILE
        or down.taps != across.taps or down.step != across.step or not (is_centred(down) and is_centred(across))
    ):
        return NULL
    job.walked = columns_walked(job, problem)
    if job.walked and walking_tiles[problem.element][across.taps][across.step][job.walked] != NULL:
        return walking_tiles[problem.element][across.taps][across.step][job.walked]
    job.walked = WIDE_TILE
    if VECTOR_BYTES < 64 or problem.element != FLOAT32 or across.x < 2 * LINE_BYTES or problem.x_block or problem.y_block or has_ends(job):
        return NULL
    return touching_tiles[across.step] if across.taps == 3 and touching_pays(job, problem) else NULL


cdef void run_walking(const Rows *job, Tile *tile, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end, all of a block of channels, in a phase, before the next block; the last tile of a row computes some outputs again."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Py_ssize_t row, phase, outputs, column, position, source
    cdef Walk walk
    tile.walk, tile.stored, tile.outside = &walk, <int> job.walked, 0
    for row in range(begin, min(begin + down.phases, end)):
        source = row * down.stride - down.pad
        walk.rows, walk.above = <int> divide_up(end - row, down.phases), <int> divide_up(-source, down.dilation)
        walk.extent = <int> divide_up(down.extent - source, down.dilation) - walk.above
        for phase in range(across.phases):
            outputs, walk.places = divide_up(across.outputs - phase, across.phases), 0
            while walk.places * job.walked < outputs:
                column = phase + min(walk.places * job.walked, outputs - job.walked) * across.phases
                position = column * across.stride - across.pad
                walk.x[walk.places], walk.y[walk.places] = position * across.x, column * across.y
                walk.outside[walk.places] = first_bits(max(0, divide_up(-position, across.dilation))) | ~first_bits(
                    min(divide_up(across.extent - position, across.dilation), TILE_INPUTS))
                walk.places += 1
            run_tiles(tile, job.walking, blocks, 0, job.blocks, 1, <int> job.walked, x + source * down.x, y + row * down.y)
