# Rows that become columns: how many of them at a time, a square, what is fetched ahead meanwhile, and whether they go by way of a strip (ADR 0009).

cdef enum:
    # A part of a second-level cache, with which it has room for what is fetched meanwhile; a half or a quarter of it for columns of less, or more, than 1 KB.
    THIN_BYTES = 1 << 16
    SHORT_BYTES = 1 << 10
    # Lines so many bytes apart share a set of a first-level cache, which has places for eight or twelve.
    PAGE = 1 << 12
    # Such rows, or columns, go by way of a strip on the stack, so many bytes of each at a time.
    STAGED_BYTES = 1 << 9
    # A line of each of so many rows stays in a first-level cache, twice.
    SHARED_ROWS = 256


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


cdef inline bint share_sets(Py_ssize_t distance, Py_ssize_t pages, Py_ssize_t slack) noexcept nogil:
    """Whether neighbours lie whole `pages` apart, up to so many bytes: those of a square fall into a few sets."""
    return (size_of(distance) + slack) % pages <= 2 * slack


cdef void turn(const Ends *ends, const Nest *nest) noexcept nogil:
    """Rows into columns: the last loop is dense in the target, loop `fast` in the source."""
    cdef const Loop *down = &nest.loops[nest.depth - 1]
    cdef const Loop *across = &nest.loops[nest.fast]
    cdef Py_ssize_t index[MAX_LOOPS]
    cdef Py_ssize_t row, column, slack, line = LINE // nest.width
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
    slack = 8 if ends.table.vector_bytes > 16 else 4
    reads = share_sets(down.source, PAGE // 2 if nest.width < 4 else PAGE, slack) and down.source != 0 and across.extent > 2 * line
    writes = share_sets(across.target, PAGE, 2 * slack) and down.extent > 2 * line and not reads
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
