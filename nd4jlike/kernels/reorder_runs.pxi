# Runs that stay as they are: cells, pieces of a line, anything longer, and runs with fill after them.

cdef extern from "tiles.h" nogil:
    void copy_halves(char *target, Py_ssize_t column, const char *source, Py_ssize_t row)
    void copy_quarters(char *target, Py_ssize_t column, const char *source, Py_ssize_t row)
    void stream_parts(int bytes, char *target, Py_ssize_t column, const char *source, Py_ssize_t row, Py_ssize_t ahead)
    void copy_filled(char *target, const char *source, Py_ssize_t bytes, const char *fill, int room)

cdef extern from "masked.h" nogil:
    void copy_wide(
        char *target, Py_ssize_t column, const char *source, Py_ssize_t row, Py_ssize_t count, Py_ssize_t bytes, const char *fill, int room,
        Py_ssize_t ahead,
    )


cdef inline void copy_cells(const Runs *runs, const cell *kind) noexcept nogil:
    """Runs that are cells; `kind` is not read."""
    cdef Py_ssize_t si = runs.source_inner, ti = runs.target_inner, i, j
    cdef const char *source
    cdef char *target
    cdef cell value
    for i in range(runs.outer):
        source = runs.source + i * runs.source_outer
        target = runs.target + i * runs.target_outer
        if si == 0 and ti == sizeof(cell):
            memcpy(&value, source, sizeof(cell))
            for j in range(runs.inner):
                memcpy(target + j * <Py_ssize_t> sizeof(cell), &value, sizeof(cell))
        elif ti == sizeof(cell):
            for j in range(runs.inner):
                memcpy(target + j * <Py_ssize_t> sizeof(cell), source + j * si, sizeof(cell))
        else:
            j = 0
            while j + 4 <= runs.inner:
                memcpy(target, source, sizeof(cell))
                memcpy(target + ti, source + si, sizeof(cell))
                memcpy(target + 2 * ti, source + 2 * si, sizeof(cell))
                memcpy(target + 3 * ti, source + 3 * si, sizeof(cell))
                source += 4 * si
                target += 4 * ti
                j += 4
            while j < runs.inner:
                memcpy(target, source, sizeof(cell))
                source += si
                target += ti
                j += 1


cdef inline void copy_streams(const Runs *runs, Py_ssize_t outer, int count, int steps, int piece, bint two, bint stream) noexcept nogil:
    """Runs of `count` outer places at once, `steps` of each, each run one piece, or two that may overlap."""
    cdef Py_ssize_t so = runs.source_outer, to = runs.target_outer, si = runs.source_inner, ti = runs.target_inner, rest = runs.bytes - piece, j = 0
    cdef const char *source = runs.source + outer * so
    cdef char *target = runs.target + outer * to
    cdef bint ahead = runs.ahead
    cdef int k, i
    while j + steps <= runs.inner:
        if ahead:
            for k in range(count):
                touch(source + k * so + RUNS_AHEAD * si)
                if not stream:
                    touch(target + k * to + RUNS_AHEAD * ti)
        for k in range(count):
            for i in range(steps):
                copy_piece(target + k * to + i * ti, source + k * so + i * si, piece, stream)
                if two:
                    copy_piece(target + k * to + i * ti + rest, source + k * so + i * si + rest, piece, False)
        source += steps * si
        target += steps * ti
        j += steps
    if steps > 1 and j < runs.inner:
        for k in range(count):
            copy_piece(target + k * to, source + k * so, piece, False)


cdef inline bint apart(Py_ssize_t streams, Py_ssize_t distance) noexcept nogil:
    """Whether there are twice RUNS_AT_ONCE, which do not share the sets of a first-level cache."""
    return streams >= 2 * RUNS_AT_ONCE and LINE_BYTES <= distance % SETS_BYTES <= SETS_BYTES - LINE_BYTES


cdef inline void copy_squares(const Runs *runs, Py_ssize_t outer, int count, int piece, bint gathers) noexcept nogil:
    """Runs of half a line, or a quarter, of `count` outer places at once, side by side there in the target (`gathers`) or in the source, and along in
    the other one: as many inner places as make a line."""
    cdef Py_ssize_t so = runs.source_outer, to = runs.target_outer, si = runs.source_inner, ti = runs.target_inner, j = 0
    cdef const char *source = runs.source + outer * so
    cdef char *target = runs.target + outer * to
    cdef bint ahead = runs.ahead
    cdef int steps = LINE_BYTES // piece, k
    while j + steps <= runs.inner:
        if ahead:
            for k in range(count):
                touch(source + (k * so + RUNS_AHEAD * si if gathers else k // steps * LINE_BYTES + (RUNS_AHEAD + k % steps) * si))
                touch(target + (k // steps * LINE_BYTES + (RUNS_AHEAD + k % steps) * ti if gathers else k * to + RUNS_AHEAD * ti))
        for k in range(count // steps):
            if steps == 4:
                copy_quarters(target + k * 4 * to, ti if gathers else to, source + k * 4 * so, so if gathers else si)
            else:
                copy_halves(target + k * 2 * to, ti if gathers else to, source + k * 2 * so, so if gathers else si)
        source += steps * si
        target += steps * ti
        j += steps
    while j < runs.inner:
        for k in range(count):
            copy_piece(target + k * to, source + k * so, piece, False)
        source += si
        target += ti
        j += 1


cdef Py_ssize_t copy_two(const Runs *runs, Py_ssize_t outer) noexcept nogil:
    """Squares of two outer places, which gain nothing where their lines cross others; how many places are done."""
    if (<uintptr_t> runs.target | <size_t> runs.target_outer) % LINE_BYTES:
        return 0
    copy_squares(runs, outer, 2, LINE_BYTES // 2, False)
    return 2


cdef inline void copy_pairs(Runs *runs, int piece) noexcept nogil:
    """Runs of a line, or a half or a quarter, side by side in the target along the inner places, and in the source along the outer ones: pairs of lines past
    the caches, of all outer places. What is left are no such runs any more."""
    cdef Py_ssize_t so = runs.source_outer, si = runs.source_inner, to = runs.target_outer, i
    cdef int together = LINE_BYTES // piece
    while runs.inner >= 2 * together:
        i = 0
        while i < runs.outer:
            stream_parts(piece, runs.target + i * to, to, runs.source + i * so, si, max(RUNS_AHEAD, 2 * together) * si)
            i += together
        runs.source += 2 * together * si
        runs.target += 2 * LINE_BYTES
        runs.inner -= 2 * together
    runs.stream = False
    stream_end()


cdef inline void copy_far(const Runs *runs, int piece) noexcept nogil:
    """The same of a line or half of one, one outer place after the other, while what comes next is fetched into a second-level cache in the order of memory."""
    cdef Py_ssize_t si = runs.source_inner, i, j
    cdef const char *ahead = runs.source + runs.inner * si
    cdef const char *source
    cdef char *target
    for i in range(runs.outer):
        source, target = runs.source + i * runs.source_outer, runs.target + i * runs.target_outer
        for j in range(runs.inner):
            if piece == LINE_BYTES or j % 2 == 0:
                touch_far(ahead)
                ahead += LINE_BYTES
            copy_piece(target, source, piece, True)
            source += si
            target += piece


cdef inline void copy_pieces(const Runs *runs, int piece, bint two) noexcept nogil:
    """Runs of one piece, or of more than one and up to two; `piece` is a constant."""
    cdef Py_ssize_t i = 0
    # Twice as many squares of quarters take longer with vectors of two.
    cdef bint wide = piece == LINE_BYTES // 2 or PIECES != 2
    cdef Runs rest
    if piece >= LINE_BYTES // 2 and runs.stream and runs.far and runs.target_inner == piece and not two:
        copy_far(runs, piece)
        return
    if piece >= PIECE and runs.stream and runs.target_inner == piece and not two:
        rest = runs[0]
        copy_pairs(&rest, piece)
        runs = &rest
    if piece >= PIECE and runs.stream and not two:
        while i + RUNS_AT_ONCE <= runs.outer:
            copy_streams(runs, i, RUNS_AT_ONCE, 1, piece, two, piece >= PIECE and not two)
            i += RUNS_AT_ONCE
    if (piece == LINE_BYTES // 2 or piece == LINE_BYTES // 4) and not two:
        if runs.source_inner == piece == runs.target_outer and runs.target_inner % LINE_BYTES == 0:
            while i + RUNS_AT_ONCE <= runs.outer:
                if wide and apart(runs.outer - i, runs.source_outer):
                    copy_squares(runs, i, 2 * RUNS_AT_ONCE, piece, True)
                    i += 2 * RUNS_AT_ONCE
                else:
                    copy_squares(runs, i, RUNS_AT_ONCE, piece, True)
                    i += RUNS_AT_ONCE
        if runs.source_outer == piece == runs.target_inner:
            while i + RUNS_AT_ONCE <= runs.outer:
                if wide and apart(runs.outer - i, runs.target_outer):
                    copy_squares(runs, i, 2 * RUNS_AT_ONCE, piece, False)
                    i += 2 * RUNS_AT_ONCE
                else:
                    copy_squares(runs, i, RUNS_AT_ONCE, piece, False)
                    i += RUNS_AT_ONCE
            if piece == LINE_BYTES // 2 and i + 2 <= runs.outer:
                i += copy_two(runs, i)
        # Side by side in the target, where the last line of some and the first one of the next ones are one.
        while runs.target_outer == piece and apart(runs.outer - i, runs.source_outer):
            copy_streams(runs, i, 2 * RUNS_AT_ONCE, 1, piece, two, False)
            i += 2 * RUNS_AT_ONCE
    while i + RUNS_AT_ONCE <= runs.outer:
        copy_streams(runs, i, RUNS_AT_ONCE, 1, piece, two, False)
        i += RUNS_AT_ONCE
    if i + 2 <= runs.outer:
        copy_streams(runs, i, 2, 1, piece, two, False)
        i += 2
    while i < runs.outer:
        copy_streams(runs, i, 1, 1, piece, two, False)
        i += 1


cdef inline void copy_tails(const Runs *runs, int room) noexcept nogil:
    """Runs and their fill, `room` bytes in all, a constant."""
    cdef Py_ssize_t si = runs.source_inner, ti = runs.target_inner, bytes = runs.bytes, wide, count, i, j
    cdef const char *fill = runs.fill
    # Behind a run lie others, up to the last one.
    cdef const char *end = runs.source + max(0, (runs.outer - 1) * runs.source_outer) + max(0, (runs.inner - 1) * si) + bytes
    cdef const char *source
    cdef char *target
    cdef bint ahead = runs.ahead
    for i in range(runs.outer):
        source = runs.source + i * runs.source_outer
        target = runs.target + i * runs.target_outer
        count = 0
        if PIECES < 4 and si > 0:
            # Vectors that need no mask of the processor.
            wide = room if room < PIECES * PIECE else (bytes + PIECES * PIECE - 1) // (PIECES * PIECE) * (PIECES * PIECE)
            if source + wide <= end:
                count = min(runs.inner, (end - source - wide) // si + 1)
            copy_wide(target, ti, source, si, count, bytes, fill, room, RUNS_AHEAD if ahead else 0)
            source += count * si
            target += count * ti
        for j in range(count, runs.inner):
            if ahead:
                touch(source + RUNS_AHEAD * si)
                touch(target + RUNS_AHEAD * ti)
            copy_filled(target, source, bytes, fill, room)
            source += si
            target += ti


cdef inline void copy_lines(const Runs *runs, int lines) noexcept nogil:
    """Runs of so many lines, a constant."""
    cdef const char *source = runs.source
    cdef char *target = runs.target
    cdef Py_ssize_t j
    cdef int i
    for j in range(runs.inner):
        for i in range(lines):
            copy_piece(target + i * LINE_BYTES, source + i * LINE_BYTES, LINE_BYTES, False)
        source += runs.source_inner
        target += runs.target_inner


cdef void copy(const Runs *runs) noexcept nogil:
    cdef Py_ssize_t bytes = runs.bytes, i, j
    cdef char *target
    if runs.room > bytes:
        if runs.room == 64:
            copy_tails(runs, 64)
        elif runs.room == 32:
            copy_tails(runs, 32)
        elif runs.room == 16:
            copy_tails(runs, 16)
        elif runs.room == 8:
            copy_tails(runs, 8)
        else:
            for i in range(runs.outer):
                for j in range(runs.inner):
                    target = runs.target + i * runs.target_outer + j * runs.target_inner
                    copy_run(target, runs.source + i * runs.source_outer + j * runs.source_inner, bytes)
                    copy_run(target + bytes, runs.fill, runs.room - bytes)
    elif bytes == 4:
        copy_cells[uint32_t](runs, NULL)
    elif bytes == 1:
        copy_cells[uint8_t](runs, NULL)
    elif bytes == 2:
        copy_cells[uint16_t](runs, NULL)
    elif bytes == 8:
        copy_cells[uint64_t](runs, NULL)
    elif bytes == 16:
        copy_pieces(runs, 16, False)
    elif bytes == 32:
        copy_pieces(runs, 32, False)
    elif bytes == 64:
        copy_pieces(runs, 64, False)
    elif bytes < 4:
        copy_pieces(runs, 2, True)
    elif bytes < 8:
        copy_pieces(runs, 4, True)
    elif bytes < 16:
        copy_pieces(runs, 8, True)
    elif bytes < 32:
        copy_pieces(runs, 16, True)
    elif bytes < 64:
        copy_pieces(runs, 32, True)
    elif bytes <= 128:
        copy_pieces(runs, 64, True)
    elif bytes == 512 and runs.outer == 1:
        copy_lines(runs, 8)
    else:
        for i in range(runs.outer):
            for j in range(runs.inner):
                copy_run(runs.target + i * runs.target_outer + j * runs.target_inner, runs.source + i * runs.source_outer + j * runs.source_inner, bytes)
