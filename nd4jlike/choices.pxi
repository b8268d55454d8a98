# What is best for moves on one machine and not on another. Decided once, by the sizes of its caches; nothing else asks for these (ADR 0009).

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "cpu.h" nogil:
    long second_level_bytes()
    long last_level_bytes()

cdef enum:
    # Half a second-level cache that has room for two strips of each end; half of one that has room for a part of one.
    DEEP_BYTES = 1 << 20
    SMALL_BYTES = 1 << 18


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
