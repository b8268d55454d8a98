# What moves cells, as numbers and pointers: all that a kernel of a reorder knows (ADR 0004, 0009). All distances are in bytes.


# A tile that changes rows into columns: cell (r, c) lies at source + r*row + c*width and goes to target + c*column + r*width.
cdef struct Patch:
    const char *source
    char *target
    Py_ssize_t rows, columns
    # `row` may have any sign; `column` is at least rows*width.
    Py_ssize_t row, column
    # Rows to write: those from `rows` on are filled with the cell that FILL_BYTES bytes from `fill` on hold, over and over.
    Py_ssize_t room
    const char *fill
    # Bytes in front of it, from the first cell on, may be read.
    const char *end
    # Whether to store past the caches, where a column is a run of whole cache lines.
    bint stream
    # Whether what is stored past the caches is read by way of a second-level cache.
    bint far
    # How far ahead of a square, a line of a line of rows, to fetch into the caches what is read and what is written; 0: not at all.
    Py_ssize_t ahead_source, ahead_target
    # From row to row, and from line to line, of what is fetched to be written.
    Py_ssize_t ahead_row, ahead_step
    # Lines that squares fetch into a second-level cache, one after the other, a line for each of their rows; NULL: none.
    const char *next
    # How far away the source and the target of another patch are that squares of blocks go by turns with, if their columns are whole lines; 0: there is none.
    Py_ssize_t other_source, other_target


# Runs of `bytes` bytes: run (i, j) lies at source + i*source_outer + j*source_inner.
cdef struct Runs:
    const char *source
    char *target
    Py_ssize_t bytes, outer, inner
    Py_ssize_t source_outer, source_inner, target_outer, target_inner
    # Bytes of the target to write: those from `bytes` on, up to FILL_BYTES of them, come from `fill`.
    Py_ssize_t room
    const char *fill
    # Whether to fetch ahead; whether to store past the caches, where groups of RUNS_AT_ONCE outer runs are whole cache lines.
    bint ahead, stream
    # Whether what is stored past the caches is read by way of a second-level cache.
    bint far


# Conversions, all between float32 and something narrower, there (even) and back (odd); those of codes, int8, uint8 and int16, come last.
cdef enum:
    TO_HALF
    FROM_HALF
    TO_BRAIN
    FROM_BRAIN
    TO_CODES
    FROM_CODES
    TO_UNSIGNED
    FROM_UNSIGNED
    TO_SHORTS
    FROM_SHORTS
    CONVERSIONS


cdef enum:
    # Columns of a patch with room beyond its rows.
    FILLED_COLUMNS = 256
    FILL_BYTES = FILLED_COLUMNS * 8 + 64
    WIDTHS = 4
    RUNS_AT_ONCE = 4


# Exported by every _reorder_<isa> module as a capsule named KERNEL_TABLE.
cdef struct MoveTable:
    const char *isa
    int vector_bytes
    # By the logarithm of the width of a cell: 1, 2, 4, 8 bytes.
    void (*turn[WIDTHS])(const Patch *patch) noexcept nogil
    void (*copy)(const Runs *runs) noexcept nogil
    # Before others may see what was stored past the caches.
    void (*settle)() noexcept nogil
    # Runs of numbers, `bytes` of the target; without fill. code = round(number / scale) + zero_point.
    void (*convert)(const Runs *runs, int conversion, float scale, int zero_point) noexcept nogil
