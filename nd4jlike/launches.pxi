# Calls of a kernel: all that is decided once for two descriptors, the bytes that calls touch, and how one runs, on several threads (ADR 0005, 0015).

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)


# The last call of a thread beyond its second-level cache: what it read and wrote, and whether its last rows came first.
cdef extern from *:
    """
    typedef struct {
        const char *x, *y;
        int back;
    } Passage;
    static _Thread_local Passage passage;
    """
    ctypedef struct Passage:
        const char *x
        const char *y
        bint back
    Passage passage


# What the threads of one call need to know.
cdef struct Call:
    const Problem *problem
    const Family *family
    const Planes *planes
    const char *x
    char *y
    char *scratch
    Py_ssize_t scratch_bytes


cdef void run_rows(const void *context, Py_ssize_t begin, Py_ssize_t end, int place) noexcept nogil:
    """Rows [begin, end) of a call, with the scratch of one thread."""
    cdef const Call *call = <const Call *> context
    call.family.run(call.problem, call.x, call.y, call.scratch + place * call.scratch_bytes, begin, end)


cdef void run_sections(const void *context, Py_ssize_t begin, Py_ssize_t end, int place) noexcept nogil:
    """The same of planes."""
    cdef const Call *call = <const Call *> context
    run_planes(call.planes, call.problem, call.family, call.x, call.y, call.scratch + place * call.scratch_bytes, begin, end)


@cython.final
cdef class _Launch:
    """A kernel call all but the addresses: what is decided once for two descriptors."""
    # Of a section, where planes are computed as pixels; NULL: they are not.
    cdef Problem problem
    cdef Planes *planes
    cdef const Family *family
    # The table that the family is of, and its instruction set.
    cdef object table
    cdef str isa
    # Whether rows and columns have changed places in the problem (signals.pxi).
    cdef bint turned
    cdef Buffer packed
    cdef Py_ssize_t scratch_bytes
    # Scratch of a call that is over, for the next one.
    cdef void *spare
    # Output rows, how many of them stay together, and among how many threads they are shared.
    cdef Py_ssize_t rows, step
    cdef int parts
    # Rows that are taken together where the last ones come first, 0: they never do; and whether they did.
    cdef Py_ssize_t band
    cdef bint back
    # Too little work to release the lock of the interpreter for.
    cdef bint brief
    # Whether a look at the padding of x decides between two launches, and whether this one reads it.
    cdef bint looks_at_padding
    cdef bint reads_padding
    # Whose addresses choose among launches that differ in the lead of the channels; and the lead of this one, as `lead` gives it.
    cdef int aligns
    cdef Py_ssize_t placed
    cdef int itemsize
    # First byte and one past the last that a call may touch, from element (0, .., 0).
    cdef Py_ssize_t x_begin
    cdef Py_ssize_t x_end
    cdef Py_ssize_t y_begin
    cdef Py_ssize_t y_end

    cdef Py_ssize_t lead(self, const char *x, const char *y) noexcept:
        return lead_of(self.family, self.aligns, self.itemsize, x, y)

    cdef int run(self, const char *x, char *y) except -1:
        cdef Call call = Call(&self.problem, self.family, self.planes, x, y, NULL, self.scratch_bytes)
        cdef Work work = run_rows if self.planes == NULL else run_sections
        cdef void *scratch = NULL
        cdef bint back = False
        if self.scratch_bytes:
            with cython.critical_section(self):
                scratch, self.spare = self.spare, NULL
            if scratch is NULL and posix_memalign(&scratch, ALIGNMENT, self.scratch_bytes * self.parts):
                raise MemoryError(f"cannot allocate {self.scratch_bytes} bytes of scratch for each of {self.parts} threads")
        call.scratch = <char *> scratch

        if self.band:
            # What was touched last is where the last call ended, or at the end, where most others do.
            back = not (passage.back and (x == passage.x or x == passage.y))
            passage.x, passage.y, passage.back = x, y, back
            self.back = back
        if self.brief:
            work(&call, 0, self.rows, 0)
        else:
            with nogil:
                share_work(work, &call, self.rows, self.step, self.parts, self.band if back else 0)

        if self.scratch_bytes:
            with cython.critical_section(self):
                scratch, self.spare = self.spare, scratch
            free(scratch)
        return 0

    def __dealloc__(self):
        free(self.spare)
        free(self.planes)


cdef bint same_layout(ShapeDescriptor known, ShapeDescriptor other) noexcept:
    """Whether a launch for one descriptor serves the other: all but where element (0, .., 0) lies. Arrays that are wrapped anew
    have new descriptors with every call; others keep theirs, and the first comparison is enough."""
    cdef const Layout *a
    cdef const Layout *b
    cdef Py_ssize_t extents = 4 * sizeof(Py_ssize_t)
    if known is other or known is None:
        return known is not None
    a, b = &known.layout, &other.layout
    return (
        known.dtype is other.dtype
        and a.rank == b.rank
        and a.block_count == b.block_count
        and memcmp(a.block_sizes, b.block_sizes, a.block_count * sizeof(Py_ssize_t)) == 0
        and memcmp(a.block_axes, b.block_axes, a.block_count * sizeof(int)) == 0
        and memcmp(a.shape, b.shape, extents) == 0
        and memcmp(a.strides, b.strides, extents) == 0
        and memcmp(a.paddings, b.paddings, extents) == 0
        and memcmp(a.padding_offsets, b.padding_offsets, extents) == 0
    )


cdef void span(const Py_ssize_t *strides, const Py_ssize_t *extents, const Py_ssize_t *halo, Py_ssize_t itemsize,
               Py_ssize_t *begin, Py_ssize_t *end) noexcept:
    """First byte and one past the last that lie within extents and halo, from element (0, .., 0)."""
    cdef Py_ssize_t first, last
    cdef int i
    begin[0] = end[0] = 0
    for i in range(4):
        if extents[i] == 0:  # empty arrays touch nothing
            begin[0] = end[0] = 0
            return
        first, last = 0, extents[i] - 1
        if halo is not NULL and i in (1, 2):
            first, last = -halo[2 * i - 2], last + halo[2 * i - 1]
        begin[0] += min(first * strides[i], last * strides[i])
        end[0] += max(first * strides[i], last * strides[i])
    begin[0] *= itemsize
    end[0] = (end[0] + 1) * itemsize


cdef void add_blocks(Py_ssize_t channels, Py_ssize_t block, Py_ssize_t step, Py_ssize_t *begin, Py_ssize_t *end) noexcept:
    """Widen the bytes of one block of channels to those of all."""
    cdef Py_ssize_t reach
    if block and begin[0] < end[0]:
        reach = (channels - 1) // block * step
        begin[0] += min(reach, 0)
        end[0] += max(reach, 0)
