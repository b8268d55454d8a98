# The elements of one layout to the places of another, on pointers and without the GIL (ADR 0009).

from nd4jlike.descriptor cimport MAX_RANK, Layout
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


# The kernels of the instruction set that is chosen now; the pointer stays valid.
cdef const MoveTable *kernels() except NULL

# Those of instruction set `isa`.
cdef const MoveTable *kernels_of(str isa) except NULL

# Elements of a whole block of an axis; 1 where it is not blocked.
cdef Py_ssize_t block_of(const Layout *layout, int axis) noexcept nogil

cdef Py_ssize_t round_up(Py_ssize_t count, Py_ssize_t step) noexcept nogil

cdef void fill_with(Fill *fill, unsigned long long bits, Py_ssize_t itemsize) noexcept nogil

# All of them.
cdef void all_of(Box *box, const Layout *layout) noexcept nogil

# Move the elements of `box` from one layout to another of the same shape. `source` and `target` are the first bytes of the buffers, which
# do not overlap. `fill`: what the cells of the last blocks beyond the box hold afterwards, where the box ends with the shape; NULL leaves them
# alone. Item sizes differ where `change` converts, which is NULL for bits that stay. Elements of `target` have cells of their own.
cdef void move(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
               const Fill *fill, const Change *change) noexcept nogil
