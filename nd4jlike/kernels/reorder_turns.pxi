# Rows into columns: squares and what is left of them at the edges. `tiles.h` has the tiles.

cdef extern from "tiles.h" nogil:
    const int PIECES
    const int HALF_PIECES
    const bint CHOOSES
    void move_tile(int width, int groups, bint stream, const char *source, Py_ssize_t row, char *target, Py_ssize_t column,
                   Py_ssize_t columns)
    void move_some(int width, int groups, const char **rows, Py_ssize_t offset, const char *rest, char *target, Py_ssize_t column, Py_ssize_t bytes,
                   Py_ssize_t columns)
    void move_few(int width, int room, const char **rows, Py_ssize_t offset, const char *fill, char *target)
    void move_whole(int width, const char *source, Py_ssize_t row, char *target, Py_ssize_t column)
    void move_square(int width, int rows, int bytes, bint stream, const char *source, Py_ssize_t row, char *target, Py_ssize_t column)
    void move_streamed(
        int width, int bytes, int squares, const char *source, Py_ssize_t row, char *target, Py_ssize_t column, const char *ahead, Py_ssize_t step,
        bint far,
    )
    void move_short(int width, int together, const char *source, char *target, Py_ssize_t column)
    void part_three(int width, const char *source, char *target, Py_ssize_t column)
    void join_three(int width, const char *source, Py_ssize_t row, char *target)

cdef enum:
    ROWS = 64  # of the largest tile: bytes, in vectors of four pieces
    # So many rows, far apart, are read at once where what becomes of them is stored past the caches.
    STREAMED_ROWS = 32
    # Lines of a few rows that are stored past the caches are fetched so far ahead.
    STREAMED_AHEAD = 1 << 12


cdef void turn_edge(const Patch *patch, Py_ssize_t row, Py_ssize_t column, Py_ssize_t end, int groups, const cell *kind) noexcept nogil:
    """Columns [column, end) of the tile of rows that starts at `row`: some rows or columns of it are missing. `kind` is not read."""
    cdef const char *rows[ROWS]
    cdef char copy[ROWS][LINE_BYTES]
    cdef Py_ssize_t width = sizeof(cell)
    cdef Py_ssize_t tile_rows = groups * PIECE // width
    cdef Py_ssize_t tile_columns = PIECES // groups * PIECE // width
    cdef Py_ssize_t valid = max(0, min(tile_rows, patch.rows - row)), bytes = min(tile_rows, patch.room - row) * width
    cdef Py_ssize_t count, offset, i
    cdef char *target = patch.target + row * width
    for i in range(valid):
        rows[i] = patch.source + (row + i) * patch.row
    for i in range(valid, tile_rows):
        rows[i] = patch.fill if patch.room > patch.rows else rows[0]

    while column < end:
        count = min(tile_columns, end - column)
        offset = column * width
        if count < tile_columns and valid and rows[valid - 1 if patch.row > 0 else 0] + offset + tile_columns * width > patch.end:
            for i in range(valid):
                memcpy(copy[i], rows[i] + offset, <size_t> (count * width))
                rows[i] = copy[i] - offset
            if patch.room <= patch.rows:
                for i in range(valid, tile_rows):
                    rows[i] = rows[0]
        if sizeof(cell) > 2 and groups == PIECES and valid * width <= PIECE and bytes == PIECES * PIECE:
            move_some(sizeof(cell), PIECES, rows, offset, patch.fill, target + column * patch.column, patch.column, PIECES * PIECE, count)
        elif groups == PIECES:
            move_some(sizeof(cell), PIECES, rows, offset, NULL, target + column * patch.column, patch.column, bytes, count)
        elif groups * 2 == PIECES:
            move_some(sizeof(cell), (PIECES + 1) // 2, rows, offset, NULL, target + column * patch.column, patch.column, bytes, count)
        else:
            move_some(sizeof(cell), (PIECES + 3) // 4, rows, offset, NULL, target + column * patch.column, patch.column, bytes, count)
        column += tile_columns


cdef inline void fetch_ahead(
    const Patch *patch, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column, Py_ssize_t columns, const char *source,
) noexcept nogil:
    """What the tile after the one at `row` and `column`, read from `source` on, will read and write."""
    cdef const char *target
    cdef Py_ssize_t i
    if patch.ahead_source:
        for i in range(rows):
            touch(source + i * patch.row + patch.ahead_source)
    # Vectors of one piece seldom cross lines.
    if patch.ahead_source or (patch.ahead_target and PIECES > 1):
        target = patch.target + row * patch.ahead_row + column * patch.column + patch.ahead_target
        for i in range(columns):
            touch(target + i * patch.ahead_step)


cdef void fetch_tile(const Patch *patch, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column, Py_ssize_t columns, const char *source) noexcept nogil:
    """Out of line: `turn_rows` is short of registers."""
    fetch_ahead(patch, row, rows, column, min(columns, patch.columns - column), source)


cdef void fetch_far(const Patch *patch, const char *source, const char *target, Py_ssize_t line) noexcept nogil:
    """Into a second-level cache: lines of 64 rows and columns, and as many ahead, are too many for a first-level one."""
    cdef Py_ssize_t i
    if patch.ahead_source:
        for i in range(line):
            touch_far(source + i * patch.row + patch.ahead_source)
    if patch.ahead_target:
        for i in range(line):
            touch_far(target + i * patch.column + patch.ahead_target)


cdef inline void turn_rows(const Patch *patch, Py_ssize_t row, Py_ssize_t column, int groups, int tiles, const cell *kind) noexcept nogil:
    """The columns from `column` on of `tiles` tiles of rows, all of the rows there; `kind` is not read."""
    cdef Py_ssize_t width = sizeof(cell), tile_rows = groups * PIECE // width, tile_columns = PIECES // groups * PIECE // width
    cdef Py_ssize_t farthest = max(0, (tile_rows - 1) * patch.row) + tile_columns * width, at
    cdef const char *source
    cdef int tile
    for tile in range(tiles):
        source = patch.source + row * patch.row + column * width
        at = column
        while at < patch.columns:
            if source + farthest > patch.end:
                turn_edge(patch, row, at, patch.columns, groups, kind)
                break
            if patch.ahead_source:
                fetch_tile(patch, row, tile_rows, at, tile_columns, source)
            move_tile(sizeof(cell), groups, False, source, patch.row, patch.target + at * patch.column + row * width, patch.column, patch.columns - at)
            source += tile_columns * width
            at += tile_columns
        row += tile_rows


cdef inline void turn_band(const Patch *patch, Py_ssize_t row, const cell *kind) noexcept nogil:
    """Squares of so many rows that a column is a line; `kind` is not read."""
    cdef Py_ssize_t width = sizeof(cell), line = LINE_BYTES // width, column = 0, i
    cdef const char *source = patch.source + row * patch.row
    cdef char *target = patch.target + row * width
    cdef const char *fetched = patch.next + row // line * (patch.columns // line) * line * LINE_BYTES if patch.next else NULL
    while column + line <= patch.columns:
        if fetched:
            for i in range(line):
                touch_far(fetched + i * LINE_BYTES)
            fetched += line * LINE_BYTES
        if sizeof(cell) > 1 and not patch.far:
            fetch_ahead(patch, row, line, column, line, source)
        else:
            fetch_far(patch, source, target, line)
        move_whole(sizeof(cell), source, patch.row, target, patch.column)
        source += LINE_BYTES
        target += line * patch.column
        column += line


cdef inline void stream_band(const Patch *patch, Py_ssize_t row, int squares, const cell *kind) noexcept nogil:
    """The same past the caches, of one square or two, one below the other."""
    cdef Py_ssize_t width = sizeof(cell), line = LINE_BYTES // width, column = 0, step = LINE_BYTES if patch.next else patch.row, i
    cdef const char *source = patch.source + row * patch.row
    cdef char *target = patch.target + row * width
    cdef const char *ahead = source + patch.ahead_source if patch.ahead_source else NULL
    if patch.next:
        ahead = patch.next + row // line * (patch.columns // line) * line * LINE_BYTES
    while column + line <= patch.columns:
        if squares == 1 and ahead and not patch.next and not patch.far:
            # Single lines, far apart at both ends, take 1.1 times as long where fetches lie between them.
            for i in range(line):
                touch(ahead + i * step)
            move_streamed(sizeof(cell), LINE_BYTES, 1, source, patch.row, target, patch.column, NULL, 0, False)
        else:
            move_streamed(sizeof(cell), LINE_BYTES, squares, source, patch.row, target, patch.column, ahead, step, patch.far)
        if ahead:
            ahead += squares * line * LINE_BYTES if patch.next else LINE_BYTES
        source += LINE_BYTES
        target += line * patch.column
        column += line


cdef inline void turn_one(const Patch *patch, Py_ssize_t row, const cell *kind) noexcept nogil:
    """All columns of one row; `kind` is not read."""
    cdef const char *source = patch.source + row * patch.row
    cdef char *target = patch.target + row * <Py_ssize_t> sizeof(cell)
    cdef Py_ssize_t column = patch.column, width = sizeof(cell), i = 0
    while i + 4 <= patch.columns:
        memcpy(target, source, sizeof(cell))
        memcpy(target + column, source + width, sizeof(cell))
        memcpy(target + 2 * column, source + 2 * width, sizeof(cell))
        memcpy(target + 3 * column, source + 3 * width, sizeof(cell))
        source += 4 * width
        target += 4 * column
        i += 4
    while i < patch.columns:
        memcpy(target, source, sizeof(cell))
        source += width
        target += column
        i += 1


cdef inline void turn_block(const Patch *patch, int rows, bint stream, const cell *kind) noexcept nogil:
    """All columns of so many rows, a constant, columns next to each other; `kind` is not read."""
    cdef Py_ssize_t width = sizeof(cell), line = LINE_BYTES // sizeof(cell), column = 0, row = 0
    cdef int groups = PIECES if rows * width > PIECE * HALF_PIECES else HALF_PIECES if rows * width > PIECE else 1, i
    cdef const char *source = patch.source
    cdef char *target = patch.target
    while column + line <= patch.columns:
        if sizeof(cell) == 4 and rows == 8 and not stream and patch.other_source:
            # Twice as many streams, which need no help.
            move_square(
                sizeof(cell), rows, LINE_BYTES, False, source + patch.other_source, patch.row, target + patch.other_target,
                rows * <Py_ssize_t> sizeof(cell),
            )
        elif patch.ahead_source:
            for i in range(rows):
                touch(source + i * patch.row + patch.ahead_source)
                if not stream:
                    touch(target + i * LINE_BYTES + patch.ahead_target)
        move_square(sizeof(cell), rows, LINE_BYTES, stream, source, patch.row, target, rows * <Py_ssize_t> sizeof(cell))
        source += LINE_BYTES
        target += rows * LINE_BYTES
        column += line
    while column < patch.columns and row < rows:
        turn_edge(patch, row, column, patch.columns, groups, kind)
        row += PIECE // width * groups


cdef inline void turn_few(const Patch *patch, int room, const cell *kind) noexcept nogil:
    """Up to a piece of rows, and fill after them: columns of `room` bytes, a constant, next to each other; `kind` is not read."""
    cdef const char *rows[PIECE]
    cdef Py_ssize_t width = sizeof(cell), step = PIECES * PIECE // width, column = 0, i
    for i in range(PIECE // width):
        rows[i] = patch.source + i * patch.row if i < patch.rows else patch.fill
    while column + step <= patch.columns and rows[patch.rows - 1 if patch.row > 0 else 0] + (column + step) * width <= patch.end:
        if patch.ahead_source:
            for i in range(step * room // LINE_BYTES):
                touch(patch.target + column * room + (i + RUNS_AHEAD) * LINE_BYTES)
        move_few(sizeof(cell), room, rows, column * width, patch.fill, patch.target + column * room)
        column += step
    i = 0
    while column < patch.columns and i < patch.room:
        turn_edge(patch, i, column, patch.columns, PIECES if room == LINE_BYTES else HALF_PIECES, kind)
        i += (PIECES if room == LINE_BYTES else HALF_PIECES) * PIECE // width


cdef inline void turn_filled(const Patch *patch, int room, const cell *kind) noexcept nogil:
    """Fewer rows of one or two bytes than a block has, `room`, a constant, and fill after them: columns next to each other, by way of a strip of a line of
    each of its rows; `kind` is not read."""
    cdef char lines[17 * LINE_BYTES]
    cdef char *strip = lines + (LINE_BYTES - <uintptr_t> lines % LINE_BYTES)
    cdef Py_ssize_t width = sizeof(cell), line = LINE_BYTES // sizeof(cell), column = 0, i
    for i in range(patch.rows, room):
        copy_piece(strip + i * LINE_BYTES, patch.fill, LINE_BYTES, False)
    while column + line <= patch.columns:
        for i in range(patch.rows):
            copy_piece(strip + i * LINE_BYTES, patch.source + i * patch.row + column * width, LINE_BYTES, False)
        move_square(sizeof(cell), room, LINE_BYTES, False, strip, LINE_BYTES, patch.target + column * patch.column, room * <Py_ssize_t> sizeof(cell))
        column += line
    if column < patch.columns:
        turn_edge(patch, 0, column, patch.columns, 1, kind)


cdef inline Py_ssize_t stream_short(const Patch *patch, const cell *kind) noexcept nogil:
    """Rows next to each other, of a line at most: as many as pairs of lines take, past the caches; `kind` is not read."""
    cdef Py_ssize_t bytes = patch.columns * <Py_ssize_t> sizeof(cell), step = 2 * LINE_BYTES // sizeof(cell), row = 0
    while row + step <= patch.rows:
        move_streamed(
            sizeof(cell), <int> bytes, 2, patch.source + row * bytes, bytes, patch.target + row * <Py_ssize_t> sizeof(cell), patch.column,
            patch.source + row * bytes + STREAMED_AHEAD, LINE_BYTES, False,
        )
        row += step
    return row


cdef inline Py_ssize_t turn_short(const Patch *patch, int columns, const cell *kind) noexcept nogil:
    """Rows of so many columns, a constant, next to each other: as many as whole lines take; `kind` is not read."""
    cdef Py_ssize_t line = LINE_BYTES // sizeof(cell), row = 0
    cdef int bytes = columns * <int> sizeof(cell), i
    cdef const char *source = patch.source
    cdef char *target = patch.target
    while row + line <= patch.rows:
        if patch.ahead_source:
            for i in range(columns):
                touch(source + i * LINE_BYTES + patch.ahead_source)
        fetch_ahead(patch, row, 0, 0, columns, source)
        if bytes > PIECE:
            move_square(sizeof(cell), LINE_BYTES // sizeof(cell), bytes, False, source, bytes, target, patch.column)
        else:
            for i in range(LINE_BYTES // PIECE // PIECES):
                move_short(sizeof(cell), max(1, PIECE // bytes), source + i * PIECES * PIECE * columns, target + i * PIECES * PIECE, patch.column)
        source += LINE_BYTES * columns
        target += LINE_BYTES
        row += line
    return row


cdef inline Py_ssize_t part_rows(const Patch *patch, const cell *kind) noexcept nogil:
    """Rows of three columns, next to each other: as many as whole vectors take; `kind` is not read."""
    cdef Py_ssize_t width = sizeof(cell), step = PIECES * PIECE // width, row = 0
    while row + step <= patch.rows:
        fetch_ahead(patch, row, 0, 0, 3, patch.source)
        part_three(sizeof(cell), patch.source + row * patch.row, patch.target + row * width, patch.column)
        row += step
    return row


cdef inline void join_rows(const Patch *patch, const cell *kind) noexcept nogil:
    """Columns of three rows, next to each other; `kind` is not read."""
    cdef Py_ssize_t width = sizeof(cell), step = PIECES * PIECE // width, column = 0
    while column + step <= patch.columns:
        join_three(sizeof(cell), patch.source + column * width, patch.row, patch.target + column * patch.column)
        column += step
    if column < patch.columns:
        turn_edge(patch, 0, column, patch.columns, 1, kind)


cdef void turn(const Patch *patch, const cell *kind) noexcept nogil:
    """Rows into columns; `kind` is not read.

    By cache lines: what is read of a row and what is written of a column are whole lines before the next ones are touched.
    """
    cdef Py_ssize_t piece = PIECE // sizeof(cell), line = LINE_BYTES // sizeof(cell), row = 0
    cdef int groups, squares
    cdef bint stream = patch.stream and (<uintptr_t> patch.target | <size_t> patch.column) % LINE_BYTES == 0
    cdef bint adjacent = patch.stream and <uintptr_t> patch.target % LINE_BYTES == 0
    cdef Py_ssize_t width = sizeof(cell)
    if (sizeof(cell) == 2 or sizeof(cell) == 4) and 0 < patch.rows < patch.room and patch.rows * width <= PIECE and patch.column == patch.room * width:
        if patch.column == LINE_BYTES:
            turn_few(patch, LINE_BYTES, kind)
            return
        if patch.column == LINE_BYTES // 2:
            turn_few(patch, LINE_BYTES // 2, kind)
            return
    if sizeof(cell) <= 2 and 0 < patch.rows < patch.room and patch.column == patch.room * width:
        if sizeof(cell) == 1 and patch.room == 16:
            turn_filled(patch, 16, kind)
            return
        if patch.room == 8:
            turn_filled(patch, 8, kind)
            return
    if patch.rows == patch.room and patch.column == patch.rows * width:
        if patch.rows == 8:
            if adjacent and width == 4:
                turn_block(patch, 8, True, kind)
            else:
                turn_block(patch, 8, False, kind)
            return
        if patch.rows == 16 and width <= 4:
            if adjacent and width == 4:
                turn_block(patch, 16, True, kind)
            else:
                turn_block(patch, 16, False, kind)
            return
        if patch.rows == 3 and CHOOSES and width <= 4:
            join_rows(patch, kind)
            return
    if patch.row == patch.columns * width:
        if stream and width == 4 and patch.columns in (8, 16):
            row = stream_short(patch, kind)
        elif patch.columns == 8:
            row = turn_short(patch, 8, kind)
        elif patch.columns == 16 and width <= 4:
            row = turn_short(patch, 16, kind)
        elif patch.columns == 3 and CHOOSES and width <= 4:
            row = part_rows(patch, kind)
    while row + line <= patch.rows:
        squares = 1
        if stream:
            if row + 2 * line <= patch.rows and (patch.next or 2 * line <= STREAMED_ROWS) and not patch.far:
                squares = 2
            stream_band(patch, row, squares, kind)
        else:
            turn_band(patch, row, kind)
        if patch.columns % line:
            turn_rows(patch, row, patch.columns - patch.columns % line, PIECES, squares * (LINE_BYTES // PIECE // PIECES), kind)
        row += squares * line
    if sizeof(cell) > 2 and row + line // 2 <= patch.rows:
        turn_rows(patch, row, 0, HALF_PIECES, LINE_BYTES // 2 // PIECE // HALF_PIECES, kind)
        row += line // 2
    # What is left: the largest tile that fits into the room, or the smallest one over the rest.
    while row < patch.room:
        if row + 1 == patch.rows == patch.room:
            turn_one(patch, row, kind)
            return
        groups = PIECES
        while groups > 1 and PIECES // groups < 4 and groups * piece > patch.room - row:
            groups //= 2
        if row + groups * piece > patch.rows == patch.room >= groups * piece:
            # Together with rows that are there already.
            row = patch.rows - groups * piece
        if row + groups * piece > patch.rows:
            # Each call with a constant.
            if groups == PIECES:
                turn_edge(patch, row, 0, patch.columns, PIECES, kind)
            elif groups == HALF_PIECES:
                turn_edge(patch, row, 0, patch.columns, HALF_PIECES, kind)
            else:
                turn_edge(patch, row, 0, patch.columns, 1, kind)
        else:
            groups = 1
            turn_rows(patch, row, 0, 1, 1, kind)
        row += groups * piece


cdef void turn_1(const Patch *patch) noexcept nogil:
    turn[uint8_t](patch, NULL)


cdef void turn_2(const Patch *patch) noexcept nogil:
    turn[uint16_t](patch, NULL)


cdef void turn_4(const Patch *patch) noexcept nogil:
    turn[uint32_t](patch, NULL)


cdef void turn_8(const Patch *patch) noexcept nogil:
    turn[uint64_t](patch, NULL)
