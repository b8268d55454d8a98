# The elements of one layout to the places of another, on pointers and without the GIL (ADR 0009).

from nd4jlike.descriptor cimport MAX_BLOCKS, MAX_RANK, Layout
from nd4jlike.kernels.patch cimport FILL_BYTES, MoveTable


# What an element becomes on its way.
cdef struct Change:
    # One of the conversions of patch.pxd, or -1: the bits stay.
    int conversion
    float scale
    int zero_point


# A part of the elements: indices [first, end) of each axis.
cdef struct Box:
    Py_ssize_t first[MAX_RANK]
    Py_ssize_t end[MAX_RANK]


# The cell that fills block tails, over and over.
cdef struct Fill:
    char cells[FILL_BYTES]


cdef enum:
    MAX_LOOPS = MAX_RANK + 2 * MAX_BLOCKS + 1
    PLANNED_NESTS = 4


# `extent` cells or runs, this many bytes apart.
cdef struct Loop:
    Py_ssize_t extent, source, target
    # Cells to write in all: those beyond `extent` are filled.
    Py_ssize_t room


cdef struct Nest:
    int depth
    # The loop whose cells are neighbours in the source and become a column; -1 for runs.
    int fast
    # Bytes of one cell, or run; of the same in the source, which are others where elements are converted.
    Py_ssize_t width, read
    # Where it starts, in bytes.
    Py_ssize_t source, target
    # Bytes to write for each run, where they are more: the others are filled.
    Py_ssize_t room
    # Whether all of it is filled, and nothing read.
    bint filling
    Loop loops[MAX_LOOPS]


# All nests of a move, to be run again; `count` is more than PLANNED_NESTS where they are too many.
cdef struct Plan:
    int count
    Py_ssize_t bytes
    # Whether elements are to be converted that are in another order in the target: `follow` does not do that.
    bint turns
    Nest nests[PLANNED_NESTS]


# The kernels of the instruction set that is chosen now; the pointer stays valid.
cdef const MoveTable *kernels() except NULL

# Those of instruction set `isa`.
cdef const MoveTable *kernels_of(str isa) except NULL

cdef Py_ssize_t round_up(Py_ssize_t count, Py_ssize_t step) noexcept nogil

cdef void fill_with(Fill *fill, unsigned long long bits, Py_ssize_t itemsize) noexcept nogil

# All of them.
cdef void all_of(Box *box, const Layout *layout) noexcept nogil

# Move the elements of `box` from one layout to another of the same shape. `source` and `target` are the first bytes of the buffers, which
# do not overlap. `fill`: what the cells of the last blocks beyond the box hold afterwards, where the box ends with the shape; NULL leaves them
# alone. Item sizes differ where `change` converts, which is NULL for bits that stay. Elements of `target` have cells of their own.
cdef void move(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
               const Fill *fill, const Change *change) noexcept nogil

# Plan the move of all elements between two layouts of one shape, and follow the plan: the same as `move` of all of them.
cdef void plan_all(Plan *plan, const Layout *source_layout, const Layout *target_layout) noexcept nogil
cdef void follow(const Plan *plan, const MoveTable *table, const char *source, char *target, const Fill *fill, const Change *change) noexcept nogil
