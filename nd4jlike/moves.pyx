"""Moves: the elements of one layout to the places of another (ADR 0009). For the floors above; nothing here is public.

A blocked axis is several loops, its digits: a box of elements becomes nests of plain loops, one for each whole or partial block at its ends.
A nest is simplified (loops that run on are one), and its two loops that matter, the fastest of the source and the fastest of the target, are
handed to a kernel: a tile that changes rows into columns, or a copy of runs.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t, uintptr_t
from libc.string cimport memcpy

from nd4jlike.descriptor cimport MAX_BLOCKS, MAX_RANK, Layout, axis_offset, block_product
from nd4jlike.kernels.patch cimport FILL_BYTES, FILLED_COLUMNS, FROM_CODES, RUNS_AT_ONCE, MoveTable, Patch, Runs

from nd4jlike.kernels import dispatch

__all__ = []

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "cpu.h" nogil:
    const char *forced_isa()
    long second_level_bytes()
    long last_level_bytes()

cdef enum:
    MAX_LEVELS = 2 * MAX_BLOCKS + 1
    LINE = 64
    # Narrow elements, between their conversion and their move: they, and what is read or written with them, stay in a near cache.
    SCRATCH_BYTES = 1 << 16
    # What is written, or read, in one go and comes back in the next: it stays in a second-level cache.
    STRIP_BYTES = 1 << 18
    # A part of a second-level cache, with which it has room for what is fetched meanwhile; a half or a quarter of it for columns of less, or more, than 1 KB.
    THIN_BYTES = 1 << 16
    SHORT_BYTES = 1 << 10
    # Steps of so many bytes, or as many as that of short ones, are gone over several times.
    SHARED_BYTES = 1 << 14
    # Half a second-level cache that has room for two strips of each end; half of one that has room for a part of one.
    DEEP_BYTES = 1 << 20
    SMALL_BYTES = 1 << 18
    # Both ends are beyond a first-level cache.
    SCATTERED_BYTES = 1 << 16
    # A part of a first-level cache.
    BIT_BYTES = 1 << 13
    # Runs that are converted past the caches, which begin and end anywhere.
    LONG_BYTES = 1 << 12
    # Lines so many bytes apart share a set of a first-level cache, which has places for eight or twelve.
    PAGE = 1 << 12
    # Such rows, or columns, go by way of a strip on the stack, so many bytes of each at a time.
    STAGED_BYTES = 1 << 9
    # A line of each of so many rows stays in a first-level cache, twice.
    SHARED_ROWS = 256

# What is best on one machine and not on another. Decided once, by the sizes of its caches; nothing else asks for these.
cdef struct Choices:
    # Up to this many bytes both ends are in a second-level cache, and fetching ahead costs more than it brings; the same of squares of bytes, which have four
    # times as many lines: a smaller cache is flooded with what is fetched for them.
    Py_ssize_t near, near_bytes
    # Targets beyond this many bytes are stored past the caches: with their sources they fill most of the last one, and what is written first would be gone
    # before anyone reads it.
    Py_ssize_t streamed
    # Squares go through strips of either end: a second-level cache has room for two of each.
    bint strips
    # Beyond this many bytes so do squares of lines that rows or columns share, four lines at a time.
    Py_ssize_t shared_strips
    # Rows of whole lines, nhwc to nchw, go through strips from so many bytes on.
    Py_ssize_t strip_row
    # A second-level cache is so far away that what is there is fetched, too.
    bint fetches_near
    # A cache has few places for lines at equal distances: nothing is fetched for squares that are far apart at both ends.
    bint few_places
    # But for the next ones of whole lines; beyond this many bytes through strips, of cells of four bytes and more, and both ends.
    bint next_places
    Py_ssize_t next_strips
    # Beyond this many bytes, twice as many of whole lines of narrow cells, squares that are far apart at both ends go through strips of rows, or of
    # columns (THIN_BYTES), while the next strip, of both ends, is fetched into a second-level cache.
    Py_ssize_t thin_strips
    # Up to this many bytes, twice as many of narrow cells, rows or columns that share sets of a first-level cache go by way of a strip.
    Py_ssize_t staged
    # Squares of cells of so many bytes and more are stored past the caches.
    Py_ssize_t streamed_width
    # Past the caches go single lines, not pairs, of cells up to so many bytes: nchw to nhwc; back, and runs.
    Py_ssize_t single_columns, single_rows
    # Runs are fetched ahead where they lie farther apart than this.
    Py_ssize_t followed
    # Columns that share lines are written so many lines of rows at a time.
    int shared_lines
    # Two blocks of 8 rows of whole lines are written by turns.
    bint two_blocks


cdef Choices choices


cdef void choose(Py_ssize_t near, Py_ssize_t streamed):
    """Second-level caches of 2 MB (Sapphire Rapids), 1 MB (Zen 4) and 512 KB (Zen 3) were measured."""
    cdef bint deep = near >= DEEP_BYTES, small = near <= SMALL_BYTES
    choices.near, choices.near_bytes, choices.streamed = near, near if deep else 4 * near, streamed
    choices.strips = choices.fetches_near = deep
    choices.shared_strips = streamed // 3 if small else PY_SSIZE_T_MAX
    choices.strip_row = (4 if small else 16) * LINE
    choices.few_places = not deep
    choices.next_places = small
    choices.next_strips = streamed // 3 if small else PY_SSIZE_T_MAX
    choices.thin_strips = PY_SSIZE_T_MAX if deep or small else streamed // 3
    choices.staged = 0 if deep or small else streamed // 3
    choices.streamed_width = 2 if deep or small else 1
    choices.single_rows = 0 if deep else 8
    choices.single_columns = 2 if small else choices.single_rows
    choices.followed = -1 if deep or small else 4 * LINE
    choices.shared_lines = 1 if deep else 4
    choices.two_blocks = not deep and not small


choose(<Py_ssize_t> second_level_bytes() // 2, <Py_ssize_t> last_level_bytes() // 8 * 3)


def _assume_caches(Py_ssize_t near, Py_ssize_t streamed):
    """For tests of what other machines run: other limits, in bytes; those before."""
    before = choices.near, choices.streamed
    choose(near, streamed)
    return before


# What is fetched into a second-level cache, line after line in the order in which it lies, while squares are turned: nothing; the rows that are read next;
# the columns that are written next. Hardware that prefetches goes along with that, and with few places at once only.
cdef enum Next:
    NOTHING
    ROWS
    COLUMNS


# How squares follow each other: so many rows and columns at a time; down the rows first.
cdef struct Squares:
    Py_ssize_t rows, columns
    bint downwards
    Next next
    # Whether what is written is fetched beside that; whether the next square is, though it is far away at both ends; whether it is into that cache, too.
    bint targets, follows, thin


# What nests are run on.
cdef struct Ends:
    const MoveTable *table
    const char *source
    char *target
    const Fill *fill
    # Of the elements that are moved.
    Py_ssize_t bytes
    # What they become; read where the widths of a nest differ.
    const Change *change


cdef struct Job:
    const Layout *source
    const Layout *target
    const Box *box
    bint fills
    # Where nests are run, or else where they are kept.
    const Ends *ends
    Plan *plan
    # Of each axis: the elements of one step of each digit, fastest first, and whether the slowest digit has equal strides all the way.
    int levels[MAX_RANK]
    Py_ssize_t steps[MAX_RANK][MAX_LEVELS]
    bint even[MAX_RANK]


cdef dict tables = {}
# Of the best instruction set here.
cdef const MoveTable *best = NULL


cdef const MoveTable *kernels() except NULL:
    cdef const char *forced = forced_isa()
    global best
    if forced[0] == 0:
        if best is NULL:
            best = kernels_of("")
        return best
    return kernels_of(forced.decode())


cdef const MoveTable *kernels_of(str isa) except NULL:
    table = tables.get(isa)
    if table is None:
        table = tables[isa] = dispatch.load("reorder", isa or None)
    return <const MoveTable *> PyCapsule_GetPointer(table, "nd4jlike.kernels.MoveTable")


cdef void fill_with(Fill *fill, unsigned long long bits, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t done = itemsize
    memcpy(fill.cells, &bits, <size_t> itemsize)
    while done < FILL_BYTES:
        memcpy(fill.cells + done, fill.cells, <size_t> min(done, FILL_BYTES - done))
        done *= 2


cdef void all_of(Box *box, const Layout *layout) noexcept nogil:
    cdef int axis
    for axis in range(layout.rank):
        box.first[axis] = 0
        box.end[axis] = layout.shape[axis]


cdef Py_ssize_t whole_blocks(const Layout *layout) noexcept nogil:
    """Elements, and those that whole blocks have room for."""
    cdef Py_ssize_t product = 1
    cdef int axis
    for axis in range(layout.rank):
        product *= round_up(layout.shape[axis], block_product(layout, axis))
    return product


cdef Py_ssize_t size_of(Py_ssize_t distance) noexcept nogil:
    return -distance if distance < 0 else distance


cdef Py_ssize_t gcd(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    while b:
        a, b = b, a % b
    return a


cdef Py_ssize_t round_up(Py_ssize_t count, Py_ssize_t step) noexcept nogil:
    return (count + step - 1) // step * step


cdef void split_axis(Job *job, int axis) noexcept nogil:
    """Find the digits of an axis: steps that divide each other, and that neither layout's blocks cut."""
    cdef const Layout *layouts[2]
    cdef Py_ssize_t products[MAX_LEVELS]
    cdef Py_ssize_t *steps = job.steps[axis]
    cdef Py_ssize_t product, common
    cdef int i, k, place, count = 0, top = 0
    layouts[0], layouts[1] = job.source, job.target
    for k in range(2):
        product = 1
        for i in range(layouts[k].block_count - 1, -1, -1):
            if layouts[k].block_axes[i] == axis:
                product *= layouts[k].block_sizes[i]
                place = count
                while place > 0 and products[place - 1] > product:
                    products[place] = products[place - 1]
                    place -= 1
                products[place] = product
                count += 1
    steps[0] = 1
    job.even[axis] = True
    for i in range(count):
        if products[i] % steps[top] == 0:
            if products[i] > steps[top]:
                top += 1
                steps[top] = products[i]
        else:
            # Blocks that cut each other: no further than their common divisor, and from there on one step at a time.
            common = gcd(products[i], steps[top])
            while common % steps[top]:
                common = gcd(common, steps[top])
                top -= 1
            if common > steps[top]:
                top += 1
                steps[top] = common
            job.even[axis] = False
            break
    job.levels[axis] = top + 1


cdef void simplify(Nest *nest, const Nest *given) noexcept nogil:
    """Sort the loops by their distance in the target, slowest first, and join those that run on; loops of one cell go."""
    cdef Loop loops[MAX_LOOPS]
    cdef Loop loop
    cdef int depth = 0, place, i
    for i in range(given.depth):
        loop = given.loops[i]
        if nest.filling:
            loop.source = 0
        if loop.room == 1:
            continue
        if loop.target < 0:
            nest.source += (loop.extent - 1) * loop.source
            nest.target += (loop.extent - 1) * loop.target
            loop.source, loop.target = -loop.source, -loop.target
        place = depth
        while place > 0 and loops[place - 1].target < loop.target:
            loops[place] = loops[place - 1]
            place -= 1
        loops[place] = loop
        depth += 1
    nest.depth = 0
    for i in range(depth):
        loop = loops[i]
        if nest.depth > 0 and loop.room == loop.extent:
            place = nest.depth - 1
            if (nest.loops[place].target == loop.extent * loop.target and nest.loops[place].source == loop.extent * loop.source
                    and nest.loops[place].room == nest.loops[place].extent):
                loop.extent *= nest.loops[place].extent
                loop.room = loop.extent
                nest.depth = place
        nest.loops[nest.depth] = loop
        nest.depth += 1


cdef void run(const Job *job, const Nest *given) noexcept nogil:
    """Move, or fill, what a nest of loops goes over."""
    cdef Nest nest
    cdef Loop loop
    cdef bint converts
    cdef int i, last
    nest.filling = given.filling
    nest.source, nest.target = 0 if given.filling else given.source, given.target
    nest.width = job.target.itemsize
    nest.read = nest.width if given.filling else job.source.itemsize
    converts = nest.read != nest.width
    nest.fast = -1
    simplify(&nest, given)
    last = nest.depth - 1
    nest.room = 0
    if last >= 0:
        loop = nest.loops[last]
        if loop.room > loop.extent and not converts:
            nest.fast = dense_source(&nest, last)
            if nest.fast < 0 and (loop.source == nest.width or loop.extent == 1) and loop.target == nest.width and loop.room - loop.extent <= FILLED_COLUMNS:
                # A run, and after it the fill.
                nest.room = loop.room * nest.width
                nest.width *= loop.extent
                nest.read = nest.width
                last -= 1
        elif loop.source == nest.read and loop.target == nest.width:
            if loop.room > loop.extent:
                fill_rest(job, &nest, last)
            # Cells that stay side by side are one, wider.
            nest.width *= loop.extent
            nest.read *= loop.extent
            last -= 1
    nest.depth = last + 1
    if converts and job.plan is not NULL and nest.width < LINE * job.target.itemsize:
        # Short runs that go on where elements are wide.
        for i in range(nest.depth):
            if (nest.loops[i].source == nest.read) if nest.read > nest.width else (nest.loops[i].target == nest.width):
                job.plan.turns = True
    elif last >= 0 and nest.loops[last].target == nest.width and nest.room == 0 and not converts:
        nest.fast = dense_source(&nest, last)
    for i in range(nest.depth):
        if nest.loops[i].room > nest.loops[i].extent and (nest.fast < 0 or i < last):
            fill_rest(job, &nest, i)
            nest.loops[i].room = nest.loops[i].extent
    play(job, &nest)


cdef void play(const Job *job, const Nest *nest) noexcept nogil:
    if job.plan is NULL:
        perform(job.ends, nest)
    else:
        if job.plan.count < PLANNED_NESTS:
            job.plan.nests[job.plan.count] = nest[0]
        job.plan.count += 1


cdef void perform(const Ends *ends, const Nest *nest) noexcept nogil:
    if nest.fast >= 0:
        turn(ends, nest)
    else:
        copy(ends, nest)


cdef int dense_source(const Nest *nest, int last) noexcept nogil:
    """The loop in front of `last` whose cells, of a width that kernels turn, are neighbours in the source; -1 where there is none."""
    cdef int i
    if nest.width in (1, 2, 4, 8):
        for i in range(last):
            if nest.loops[i].source == nest.width:
                return i
    return -1


cdef void fill_rest(const Job *job, const Nest *nest, int at) noexcept nogil:
    """Fill what loop `at` has room for beyond its extent."""
    cdef Nest rest = nest[0]
    cdef int i
    rest.filling = True
    rest.room = 0
    rest.source = 0
    rest.read = rest.width
    rest.fast = -1
    rest.target += rest.loops[at].extent * rest.loops[at].target
    rest.loops[at].extent = rest.loops[at].room = rest.loops[at].room - rest.loops[at].extent
    for i in range(rest.depth):
        rest.loops[i].source = 0
    play(job, &rest)


cdef bint advance(const Nest *nest, Py_ssize_t *index, int a, int b, const char **source, char **target) noexcept nogil:
    """To the next place of all loops but `a` and `b`; False when there is none."""
    cdef const Loop *loop
    cdef int i
    for i in range(nest.depth - 1, -1, -1):
        if i == a or i == b:
            continue
        loop = &nest.loops[i]
        index[i] += 1
        source[0] += loop.source
        target[0] += loop.target
        if index[i] < loop.extent:
            return True
        source[0] -= loop.extent * loop.source
        target[0] -= loop.extent * loop.target
        index[i] = 0
    return False


cdef Squares squares_of(const Loop *down, const Loop *across, Py_ssize_t width, Py_ssize_t bytes, bint far, bint scattered, bint single) noexcept nogil:
    """Either few rows are read along, or few columns are written along: more places at once than a prefetch follows cost more than they bring.

    The lines at the other end, which the next rows or columns continue, stay in a second-level cache. What is streamed is written anywhere.
    """
    cdef Py_ssize_t line = LINE // width, row_bytes = across.extent * width, column_bytes = down.room * width, strip, lines
    cdef bint gathers = size_of(down.source) >= across.target, whole = (across.target % LINE if gathers else across.extent % line) == 0
    cdef bint deep, crowded, rows, thin
    cdef Squares squares = Squares(down.room, across.extent, False, NOTHING, False, False, False)
    cdef bint beyond = bytes > choices.next_strips
    cdef bint follows = choices.next_places and far and whole and (beyond or width > 2) and min(size_of(down.source), across.target) > LINE
    if down.room > down.extent:
        squares.columns = FILLED_COLUMNS
    if down.room > down.extent:
        return squares
    if scattered:
        if gathers and single:
            squares.rows = squares.columns = 4 * line
        elif not gathers and down.source == row_bytes and across.extent > 16:
            # Columns of a pair of lines.
            squares.rows, squares.next = max(2 * line, 8 * BIT_BYTES // row_bytes // (2 * line) * 2 * line), ROWS
        return squares
    thin = min(size_of(down.source), across.target) > LINE and min(down.extent, across.extent) >= 32
    if thin and bytes > choices.thin_strips * (2 if whole and width < 4 else 1):
        squares.follows = squares.thin = True
        if gathers:
            strip = THIN_BYTES // 4 if down.extent * width >= SHORT_BYTES else THIN_BYTES // 2
            squares.columns, squares.next = max(line, strip // (down.extent * width) // line * line), COLUMNS
        else:
            squares.rows, squares.next = max(line, THIN_BYTES // row_bytes // line * line), ROWS
        return squares
    # Lines that columns share, or that are read for a few columns more, are to be in a near cache when they come again.
    strip = STRIP_BYTES if whole else 8 * BIT_BYTES
    lines = 4 if whole else 8
    if choices.strips and whole and far:
        strip = 4 * BIT_BYTES
    elif choices.strips and gathers and not whole and width > 1:
        strip, lines = 2 * BIT_BYTES, 2
    crowded = not whole and width > (2 if gathers else 1) and bytes > choices.shared_strips
    deep = crowded or (choices.strips and far and (whole or bytes > 2 * choices.near))
    if gathers and (deep or (follows and beyond and width > 2)) and down.extent >= 3 * line // 2 and across.extent >= 4 * line:
        if follows:
            strip, squares.follows = 8 * BIT_BYTES, True
        squares.columns = 4 * line if crowded else max(lines, strip // (column_bytes * line)) * line
        squares.next = COLUMNS
    elif gathers and far and whole and choices.few_places:
        return squares
    elif gathers and across.target > 16 and down.extent <= SHARED_ROWS and not whole:
        # Columns that share lines are written one after the other.
        squares.columns = max(line, BIT_BYTES // across.target // line * line) if down.extent < 2 * line else choices.shared_lines * line
    elif gathers:
        squares.columns = max(FILLED_COLUMNS, STRIP_BYTES // column_bytes // LINE * LINE)
    else:
        squares.columns = line
        squares.rows = max(FILLED_COLUMNS if whole else LINE, strip // row_bytes // LINE * LINE)
        # Rows of 8 or 16 columns have loops of their own.
        rows = choices.strips or crowded or (far and whole and row_bytes >= choices.strip_row and not (follows and (width == 2 or not beyond)))
        if rows and across.extent >= 2 * line and across.extent > 16 and width > 1:
            strip = 4 * line if crowded else min(16, max(lines, (strip if choices.strips else 8 * BIT_BYTES) // (row_bytes * line))) * line
            if (deep or not choices.strips) and down.source == row_bytes and strip * row_bytes <= choices.near:
                squares.rows = strip
                squares.next = ROWS
                squares.targets = crowded
            elif whole:
                squares.columns = max(line, min(2 * line, 32))
        squares.downwards = squares.next == NOTHING
        squares.follows = follows
    return squares


cdef void stage(
    const MoveTable *table, const char *source, Py_ssize_t source_step, char *target, Py_ssize_t target_step, Py_ssize_t bytes, Py_ssize_t count,
) noexcept nogil:
    """Runs to a strip, or from it."""
    cdef Runs runs
    runs.source, runs.target, runs.bytes, runs.outer, runs.inner = source, target, bytes, 1, count
    runs.source_outer = runs.target_outer = runs.room = 0
    runs.source_inner, runs.target_inner = source_step, target_step
    runs.fill = NULL
    runs.ahead = runs.stream = runs.far = False
    table.copy(&runs)


cdef void turn_staged(const MoveTable *table, const Patch *patch, int size, bint reads) noexcept nogil:
    """Rows by way of a strip, or else columns: of either less than two lines of cells."""
    cdef char room[2 * LINE * STAGED_BYTES + LINE]
    cdef char *strip = room + (LINE - <uintptr_t> room % LINE)
    cdef Patch part = patch[0]
    if reads:
        stage(table, patch.source, patch.row, strip, STAGED_BYTES, patch.columns << size, patch.rows)
        part.source, part.row, part.end = strip, STAGED_BYTES, room + sizeof(room)
        table.turn[size](&part)
    else:
        part.target, part.column = strip, STAGED_BYTES
        table.turn[size](&part)
        stage(table, strip, STAGED_BYTES, patch.target, patch.column, patch.rows << size, patch.columns)


cdef void turn(const Ends *ends, const Nest *nest) noexcept nogil:
    """Rows into columns: the last loop is dense in the target, loop `fast` in the source."""
    cdef const Loop *down = &nest.loops[nest.depth - 1]
    cdef const Loop *across = &nest.loops[nest.fast]
    cdef Py_ssize_t index[MAX_LOOPS]
    cdef Py_ssize_t row, column, line = LINE // nest.width
    cdef Squares squares
    cdef const char *source = ends.source + nest.source
    cdef char *target = ends.target + nest.target
    cdef Patch patch
    cdef int i, size = 0, twos = -1
    cdef bint apart, scattered, single, far, fetches, reads, writes, staged, two
    while 1 << size < nest.width:
        size += 1
    for i in range(nest.depth):
        index[i] = 0
    patch.end = source + nest.width
    for i in range(nest.depth):
        patch.end += max(0, (nest.loops[i].extent - 1) * nest.loops[i].source)
    # Lines that are far apart at both ends are written twice as fast past the caches long before these are full; others, where reads are
    # fetched ahead, as fast as ever until then.
    apart = min(size_of(down.source), across.target) > LINE
    scattered = apart and nest.width >= choices.streamed_width and ends.bytes > choices.streamed // 3 * 2
    scattered = scattered and (<uintptr_t> target | <size_t> across.target) % LINE == 0
    single = scattered and nest.width <= (choices.single_columns if size_of(down.source) >= across.target else choices.single_rows)
    patch.stream = scattered or (nest.width > 1 and ends.bytes > choices.streamed and <uintptr_t> target % LINE == 0)
    patch.ahead_source = patch.ahead_target = 0
    far = ends.bytes > (choices.near_bytes if nest.width == 1 else choices.near)
    squares = squares_of(down, across, nest.width, ends.bytes, far, scattered, single)
    fetches = far
    if choices.fetches_near and nest.width > 1:
        # Rows of a block of 8 that begin within lines wait for twice as many.
        fetches = far or ends.bytes > choices.near // 2 or (ends.bytes > SCATTERED_BYTES and across.target == LINE // 2 and down.source % LINE != 0)
    patch.ahead_row, patch.ahead_step = nest.width, across.target
    # Where a smaller cache has few places for lines at equal distances, what is fetched for squares is in the way; prefetchers follow sixteen rows.
    if squares.follows:
        if squares.next == ROWS:
            patch.ahead_target = squares.rows * nest.width if squares.thin else 2 * LINE - 1
        else:
            patch.ahead_source = line * down.source if squares.downwards else squares.columns * nest.width if squares.thin else LINE
    elif not (scattered or (apart and choices.few_places and not squares.targets)) and (fetches or (<uintptr_t> target | <size_t> across.target) % LINE):
        # A store across two lines waits for both where the second one is not fetched.
        if squares.downwards:
            patch.ahead_target = 2 * LINE - 1
        else:
            # Of two lines that a store crosses, the first one is here since the row before.
            patch.ahead_target = line * across.target + (LINE - 1 if squares.next == ROWS and across.target % LINE else 0)
            if squares.next == NOTHING and across.target < down.room * nest.width + LINE:
                # One line after the other.
                patch.ahead_row = patch.ahead_step = LINE
        if fetches and squares.next != ROWS:
            patch.ahead_source = line * down.source if squares.downwards else LINE
    # Rows, or columns, that share the sets of a first-level cache.
    reads = down.source % (PAGE // 2 if nest.width < 4 else PAGE) == 0 and down.source != 0 and across.extent > 2 * line
    writes = across.target % PAGE == 0 and down.extent > 2 * line and not reads
    staged = (reads or writes) and not patch.stream and nest.width <= 4 and ends.bytes <= choices.staged * (1 if nest.width == 4 else 2)
    staged = staged and min(down.extent, across.extent) >= line and down.room == down.extent
    if staged:
        squares.rows, squares.columns = STAGED_BYTES // nest.width if writes else line, STAGED_BYTES // nest.width if reads else line
        squares.next, squares.downwards = NOTHING, writes
        patch.ahead_source = patch.ahead_target = 0
    patch.far = single or squares.thin
    if single and size_of(down.source) >= across.target:
        patch.ahead_source = 8 * LINE
    patch.row, patch.column = down.source, across.target
    patch.next = patch.fill = NULL
    if down.room > down.extent:
        patch.fill = <const char *> ends.fill.cells
    patch.other_source = patch.other_target = 0
    if choices.two_blocks and far and not patch.stream and nest.width == 4 and (down.source | across.extent * nest.width) % LINE == 0:
        # 16 rows, which must not share the sets of a first-level cache.
        if down.extent == down.room == 8 and across.target == 8 * nest.width and down.source % (PAGE // 2):
            for i in range(nest.depth - 1):
                if i != nest.fast:
                    twos = i
    while True:
        two = twos >= 0 and index[twos] + 1 < nest.loops[twos].extent
        if twos >= 0:
            patch.other_source = nest.loops[twos].source if two else 0
            patch.other_target = nest.loops[twos].target
        row = 0
        while row < down.extent:
            patch.rows = min(squares.rows, down.extent - row)
            if staged and reads and down.extent - row < 2 * line:
                patch.rows = down.extent - row
            patch.room = patch.rows if row + patch.rows < down.extent else down.room - row
            column = 0
            while column < across.extent:
                patch.columns = across.extent - column
                if patch.columns >= (2 * squares.columns if squares.downwards else squares.columns):
                    patch.columns = squares.columns
                patch.source = source + row * down.source + column * across.source
                patch.target = target + row * down.target + column * across.target
                if squares.next == ROWS:
                    patch.next = source + (row + squares.rows) * down.source + column * squares.rows * nest.width
                elif squares.next == COLUMNS and not (patch.stream and across.target % LINE == 0):
                    patch.next = target + (column + squares.columns) * across.target
                if staged:
                    turn_staged(ends.table, &patch, size, reads)
                else:
                    ends.table.turn[size](&patch)
                column += patch.columns
            row += patch.rows
        if two:
            advance(nest, index, nest.fast, nest.depth - 1, &source, &target)
        if not advance(nest, index, nest.fast, nest.depth - 1, &source, &target):
            break
    if patch.stream:
        ends.table.settle()


cdef void copy(const Ends *ends, const Nest *nest) noexcept nogil:
    """Runs that stay as they are, or whose elements are converted."""
    cdef Py_ssize_t index[MAX_LOOPS]
    cdef const char *source = (<const char *> ends.fill.cells if nest.filling else ends.source) + nest.source
    cdef char *target = ends.target + nest.target
    cdef Loop one = Loop(1, 0, 0, 1)
    cdef const Loop *along = &one
    cdef const Loop *across = &one
    cdef Py_ssize_t strip, wide, at
    cdef bint stream, shares, converts = nest.read != nest.width
    cdef Runs runs
    cdef int i, outer = -1, inner = nest.depth - 1
    if nest.depth == 0 and nest.room == 0 and not converts:
        memcpy(target, source, <size_t> nest.width)
        return
    # The loop that is fastest in the source, and the one that is fastest in the target. Streams that are far apart at both ends are no faster than one.
    for i in range(inner):
        if min(size_of(nest.loops[i].source), nest.loops[i].target) < SHARED_BYTES:
            if outer < 0 or size_of(nest.loops[i].source) <= size_of(nest.loops[outer].source):
                outer = i
    for i in range(nest.depth):
        index[i] = 0
    if inner >= 0:
        along = &nest.loops[inner]
    if outer >= 0:
        across = &nest.loops[outer]
        # The one whose runs are farther apart at either end goes around the other: a few of its places at once are as many streams.
        if nest.width > 8 and max(size_of(along.source), along.target) > max(size_of(across.source), across.target):
            along, across = across, along
    # Whole lines of runs. Lines that several blocks fill come again with the next ones: where fetching pays so near, from the nearest cache.
    shares = choices.fetches_near and not converts and across.target == nest.width < LINE and across.extent >= RUNS_AT_ONCE
    strip = max(16, (BIT_BYTES if shares else STRIP_BYTES) // max(LINE, max(size_of(along.source), along.target)) // 16 * 16)
    runs.bytes, runs.outer = nest.width, across.extent
    runs.source_outer, runs.source_inner, runs.target_outer, runs.target_inner = across.source, along.source, across.target, along.target
    runs.room = nest.room
    runs.fill = <const char *> ends.fill.cells if nest.room else NULL
    # Of shorter runs there are several in a line.
    wide = max(nest.width, nest.room)
    runs.far = choices.single_rows > 0 and size_of(along.source) > 4 * LINE
    # What lies near is read, or written, in the order of memory, which prefetchers follow.
    runs.ahead = ends.bytes > 2 * choices.near and wide >= LINE // 4 and max(size_of(along.source), along.target) > choices.followed
    if choices.fetches_near and ends.bytes > SCATTERED_BYTES and wide >= LINE // 4:
        if across.target > along.target:
            # Stores to several places at once wait for lines of larger caches, too.
            runs.ahead = runs.ahead or wide >= LINE // 2 or (<uintptr_t> target | <size_t> across.target) % LINE != 0
        elif wide >= LINE // 2:
            runs.ahead = runs.ahead or ends.bytes > choices.near // 2 or (along.target % LINE == 0 and along.target <= 8 * LINE)
    # What is read here and there and written in one place goes past the caches, and so do lines that are read in order.
    stream = ends.bytes > choices.streamed
    if converts:
        stream = stream and nest.width >= LONG_BYTES
    elif along.target == nest.width and nest.width in (LINE // 4, LINE // 2, LINE):
        stream = stream and across.source == nest.width and across.target % LINE == 0 and across.extent * nest.width % LINE == 0
    else:
        stream = stream and along.target % LINE == 0 and across.target == nest.width and nest.width * RUNS_AT_ONCE % LINE == 0
    while True:
        at = 0
        while at < along.extent:
            runs.source, runs.target = source + at * along.source, target + at * along.target
            runs.inner = min(strip, along.extent - at)
            # Other loops may lead anywhere.
            runs.stream = stream and (converts or <uintptr_t> runs.target % LINE == 0)
            if converts:
                ends.table.convert(&runs, ends.change.conversion, ends.change.scale, ends.change.zero_point)
            else:
                ends.table.copy(&runs)
            at += strip
        if not advance(nest, index, outer, inner, &source, &target):
            break
    if stream:
        ends.table.settle()


cdef void walk(const Job *job, Nest *nest, int axis, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
    """Cut the box along `axis` and those after it into nests, and run them; `source` and `target` are where the box starts."""
    cdef const Py_ssize_t *steps = job.steps[axis]
    cdef Py_ssize_t at, end, edge, block, limit, count, room
    cdef int depth = nest.depth, level, digit
    cdef bint filling = nest.filling
    cdef Loop *loop
    if axis == job.target.rank:
        nest.source, nest.target = source, target
        run(job, nest)
        return
    at = job.box.first[axis]
    end = edge = job.box.end[axis]
    block = 1
    if job.fills and end == job.target.shape[axis] and job.target.block_count:
        edge = round_up(end, block_product(job.target, axis))
        if job.target.block_axes[job.target.block_count - 1] == axis:
            block = job.target.block_sizes[job.target.block_count - 1]
    while at < edge:
        nest.filling = filling or at >= end
        limit = end if at < end else edge
        level = job.levels[axis] - 1
        while at % steps[level] or at + steps[level] > limit:
            level -= 1
        count = (limit - at) // steps[level]
        if level < job.levels[axis] - 1:
            count = min(count, (steps[level + 1] - at % steps[level + 1]) // steps[level])
        elif not job.even[axis]:
            count = 1
        room = count
        if level == 0 and at + count == end and end < edge:
            # The rest of the innermost block is filled in the same go.
            room = max(count, round_up(end, block) - at)
        for digit in range(level + 1):
            loop = &nest.loops[nest.depth]
            loop.extent = count if digit == level else steps[digit + 1] // steps[digit]
            loop.room = room if digit == level else loop.extent
            loop.source = axis_offset(job.source, axis, steps[digit]) * job.source.itemsize
            loop.target = axis_offset(job.target, axis, steps[digit]) * job.target.itemsize
            nest.depth += 1
        walk(job, nest, axis + 1, source + axis_offset(job.source, axis, at) * job.source.itemsize,
             target + axis_offset(job.target, axis, at) * job.target.itemsize)
        nest.depth = depth
        at += room if room > count else count * steps[level]
    nest.filling = filling


cdef void walk_all(Job *job) noexcept nogil:
    """Every nest of a box whose ends are known."""
    cdef Nest nest
    cdef int axis
    for axis in range(job.target.rank):
        if job.box.first[axis] >= job.box.end[axis]:
            return
        split_axis(job, axis)
    nest.depth = 0
    nest.filling = False
    walk(job, &nest, 0, job.source.offset * job.source.itemsize, job.target.offset * job.target.itemsize)


cdef void move_box(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
                   const Fill *fill, Py_ssize_t bytes, const Change *change) noexcept nogil:
    """What `move` does where the bits stay, or where elements are converted that are in the same order at both ends. `bytes`: of the elements."""
    cdef Ends ends = Ends(table, source, target, fill, bytes, change)
    cdef Job job
    job.source, job.target, job.box, job.fills, job.ends, job.plan = source_layout, target_layout, box, fill is not NULL, &ends, NULL
    walk_all(&job)


cdef bint tails(const Layout *layout) noexcept nogil:
    """Whether the last blocks of an axis are not whole."""
    cdef int axis
    for axis in range(layout.rank):
        if layout.shape[axis] % block_product(layout, axis):
            return True
    return False


cdef void plan_box(Plan *plan, const Layout *source_layout, const Layout *target_layout, const Box *box, bint fills) noexcept nogil:
    cdef Job job
    job.source, job.target, job.box, job.fills, job.ends, job.plan = source_layout, target_layout, box, fills, NULL, plan
    plan.count = 0
    plan.turns = False
    plan.bytes = max(whole_blocks(source_layout), whole_blocks(target_layout)) * max(source_layout.itemsize, target_layout.itemsize)
    walk_all(&job)
    if source_layout.itemsize != target_layout.itemsize and tails(source_layout if source_layout.itemsize > target_layout.itemsize else target_layout):
        plan.turns = True


cdef void plan_all(Plan *plan, const Layout *source_layout, const Layout *target_layout) noexcept nogil:
    cdef Box box
    all_of(&box, target_layout)
    plan_box(plan, source_layout, target_layout, &box, target_layout.block_count > 0)


cdef bint shared_loop(const Plan *plan, bint short_steps, int *places) noexcept nogil:
    """Find the loop of the largest steps that all nests have, and in whose steps they lie between each other: where it is in each of them."""
    cdef const Nest *first = &plan.nests[0]
    cdef const Nest *nest
    cdef const Loop *loop
    cdef const Loop *other
    cdef int found[PLANNED_NESTS]
    cdef Py_ssize_t largest = 0, step
    cdef int place, i, k
    for place in range(first.depth):
        loop = &first.loops[place]
        step = max(size_of(loop.source), loop.target)
        if step <= largest or loop.extent == 1 or loop.room > loop.extent:
            continue
        # Shorter cells, and steps of more lines, gain less than it costs.
        if step < SHARED_BYTES and (step > 2 * LINE or first.width < LINE // 2 or not short_steps):
            continue
        found[0] = place
        for i in range(1, plan.count):
            nest = &plan.nests[i]
            found[i] = -1
            for k in range(nest.depth):
                other = &nest.loops[k]
                if (other.extent == loop.extent == other.room and other.target == loop.target and (other.source == loop.source or nest.filling)
                        and (size_of(nest.target - first.target) < loop.target
                             or (not nest.filling and size_of(nest.source - first.source) < size_of(loop.source)))):
                    found[i] = k
            if found[i] < 0:
                break
        else:
            largest = step
            for i in range(plan.count):
                places[i] = found[i]
    return largest > 0


cdef void together(const Ends *ends, Plan *plan) noexcept nogil:
    """Run all nests, a part of the steps they share at a time: what one of them leaves in the caches the next one finds there."""
    cdef int places[PLANNED_NESTS]
    cdef Loop loop
    cdef Nest *nest
    cdef Py_ssize_t done = 0, each, count
    cdef int i
    # With vectors of 16 bytes it costs a tenth.
    if not shared_loop(plan, ends.table.vector_bytes > 16, places):
        for i in range(plan.count):
            perform(ends, &plan.nests[i])
        return
    loop = plan.nests[0].loops[places[0]]
    each = max(1, SHARED_BYTES // max(size_of(loop.source), loop.target) // 16 * 16)
    while done < loop.extent:
        count = min(each, loop.extent - done)
        for i in range(plan.count):
            plan.nests[i].loops[places[i]].extent = plan.nests[i].loops[places[i]].room = count
        if count == 1:
            together(ends, plan)
        else:
            for i in range(plan.count):
                perform(ends, &plan.nests[i])
        for i in range(plan.count):
            nest = &plan.nests[i]
            nest.source += count * nest.loops[places[i]].source
            nest.target += count * loop.target
        done += count
    for i in range(plan.count):
        nest = &plan.nests[i]
        nest.source -= loop.extent * nest.loops[places[i]].source
        nest.target -= loop.extent * loop.target
        nest.loops[places[i]].extent = nest.loops[places[i]].room = loop.extent


cdef void follow(const Plan *plan, const MoveTable *table, const char *source, char *target, const Fill *fill, const Change *change) noexcept nogil:
    cdef Ends ends = Ends(table, source, target, fill, plan.bytes, change)
    cdef Plan parts
    cdef int i
    if plan.count > 1 and plan.bytes > SCATTERED_BYTES:
        parts = plan[0]
        together(&ends, &parts)
    else:
        for i in range(plan.count):
            perform(&ends, &plan.nests[i])


cdef void move(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
               const Fill *fill, const Change *change) noexcept nogil:
    cdef Py_ssize_t bytes = max(source_layout.itemsize, target_layout.itemsize)
    cdef int axis
    cdef Plan plan
    for axis in range(target_layout.rank):
        bytes *= box.end[axis] - box.first[axis]
    plan.turns = False
    if change is not NULL:
        plan_box(&plan, source_layout, target_layout, box, False)
    if plan.turns:
        convert(table, source_layout, source, target_layout, target, box, fill, bytes, change)
    else:
        move_box(table, source_layout, source, target_layout, target, box, fill, bytes, change)


cdef bint begins_blocks(const Layout *layout, const Box *box) noexcept nogil:
    cdef int axis
    for axis in range(layout.rank):
        if box.first[axis] % block_product(layout, axis):
            return False
    return True


cdef Py_ssize_t room_for(const Layout *layout, const Box *box) noexcept nogil:
    """Cells of the blocks that a box lies in; of the box itself where it begins within one."""
    cdef bint whole = begins_blocks(layout, box)
    cdef Py_ssize_t product = 1
    cdef int axis
    for axis in range(layout.rank):
        product *= round_up(box.end[axis] - box.first[axis], block_product(layout, axis) if whole else 1)
    return product


cdef void dense(Layout *layout, const Layout *like, const Box *box, Py_ssize_t itemsize) noexcept nogil:
    """Lay the elements of a box out densely, axes in the memory order of `like`, as a layout of the whole shape; in its blocks where there is room for them."""
    cdef Py_ssize_t run = 1, block
    cdef bint whole = begins_blocks(like, box) and room_for(like, box) <= SCRATCH_BYTES // itemsize
    cdef int i, axis
    layout.rank = like.rank
    layout.itemsize = itemsize
    layout.offset = 0
    layout.block_count = like.block_count if whole else 0
    for i in range(layout.block_count):
        layout.block_axes[i], layout.block_sizes[i] = like.block_axes[i], like.block_sizes[i]
        run *= like.block_sizes[i]
    for i in range(like.rank - 1, -1, -1):
        axis = like.axes[i]
        block = block_product(layout, axis)
        layout.axes[i] = axis
        layout.shape[axis] = like.shape[axis]
        layout.strides[axis] = run
        layout.offset -= run * (box.first[axis] // block)
        run *= round_up(box.end[axis] - box.first[axis], block) // block


cdef Py_ssize_t larger_block(const Layout *one, const Layout *other, int axis) noexcept nogil:
    return max(block_product(one, axis), block_product(other, axis))


cdef int slowest(const Layout *layout, const Box *box, const Layout *other) noexcept nogil:
    """The slowest axis of which a box has more than a block of this layout and of another one; more than an element for NULL; -1 where there is none."""
    cdef int i, axis
    for i in range(layout.rank):
        axis = layout.axes[i]
        if box.end[axis] - box.first[axis] > (1 if other is NULL else larger_block(layout, other, axis)):
            return axis
    return -1


cdef Py_ssize_t run_of_half(const Layout *layout, const Box *box, int half) noexcept nogil:
    """Bytes that lie together, more or less, where a box is cut in the middle of axis `half`."""
    cdef Py_ssize_t run = layout.itemsize, block
    cdef int i, axis
    for i in range(layout.block_count):
        run *= layout.block_sizes[i]
    for i in range(layout.rank - 1, -1, -1):
        axis = layout.axes[i]
        block = block_product(layout, axis)
        run *= round_up(box.end[axis] - box.first[axis], block) // block
        if axis == half:
            break
    return run // 2


cdef void convert(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
                  const Fill *fill, Py_ssize_t bytes, const Change *change) noexcept nogil:
    """Halve a box until there is room for what is narrow in the order, and the blocks, of what is wide. What lies together stays so for as long as it can."""
    cdef bint widens = source_layout.itemsize < target_layout.itemsize
    cdef const Layout *wide = target_layout if widens else source_layout
    cdef Py_ssize_t itemsize = min(source_layout.itemsize, target_layout.itemsize), half, block
    cdef int axis, other
    cdef Box part = box[0]
    axis = slowest(source_layout, box, target_layout)
    other = slowest(target_layout, box, source_layout)
    if axis < 0 or (other >= 0 and run_of_half(source_layout, box, other) > run_of_half(target_layout, box, axis)):
        axis = other
    if axis < 0:
        axis = slowest(target_layout, box, NULL)
    if axis < 0 or room_for(wide, box) <= SCRATCH_BYTES // itemsize:
        convert_part(table, source_layout, source, target_layout, target, box, fill, bytes, change)
        return
    half = (box.end[axis] - box.first[axis] + 1) // 2
    block = larger_block(source_layout, target_layout, axis)
    if box.end[axis] - box.first[axis] > block:
        half = max(half, block)
    if half >= block:
        half -= (box.first[axis] + half) % block
    part.end[axis] = box.first[axis] + half
    convert(table, source_layout, source, target_layout, target, &part, fill, bytes, change)
    part.first[axis] = part.end[axis]
    part.end[axis] = box.end[axis]
    convert(table, source_layout, source, target_layout, target, &part, fill, bytes, change)


cdef void convert_part(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
                       const Fill *fill, Py_ssize_t bytes, const Change *change) noexcept nogil:
    """What is narrow goes by way of scratch: what is wide is read, or written, once, block tails together with the elements."""
    cdef char room[SCRATCH_BYTES + LINE]
    cdef char *scratch = room + (LINE - <uintptr_t> room % LINE)
    cdef Layout layout
    cdef Box whole = box[0]
    cdef Fill zeros
    cdef bint zero_tails = fill is not NULL and not (<const uint32_t *> fill.cells)[0]
    cdef int axis
    if source_layout.itemsize > target_layout.itemsize:
        dense(&layout, source_layout, box, target_layout.itemsize)
        for axis in range(layout.rank):
            whole.end[axis] = round_up(box.end[axis], block_product(&layout, axis))
        move_box(table, source_layout, source, &layout, scratch, &whole, NULL, bytes, change)
        move_box(table, &layout, scratch, target_layout, target, box, fill, 0, NULL)
        return
    dense(&layout, target_layout, box, source_layout.itemsize)
    zero_tails = zero_tails and layout.block_count == target_layout.block_count
    for axis in range(layout.rank):
        whole.end[axis] = round_up(box.end[axis], block_product(&layout, axis))
        zero_tails = zero_tails and (whole.end[axis] == box.end[axis] or box.end[axis] == layout.shape[axis])
    if zero_tails:
        # What becomes zero.
        fill_with(&zeros, <unsigned char> change.zero_point if change.conversion == FROM_CODES else 0, layout.itemsize)
        move_box(table, source_layout, source, &layout, scratch, box, &zeros, 0, NULL)
        move_box(table, &layout, scratch, target_layout, target, &whole, NULL, bytes, change)
    else:
        move_box(table, source_layout, source, &layout, scratch, box, NULL, 0, NULL)
        move_box(table, &layout, scratch, target_layout, target, box, fill, bytes, change)
