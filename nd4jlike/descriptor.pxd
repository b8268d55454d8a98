# Where each element lives: integers, counted in elements (ADR 0001).

cdef enum:
    MAX_RANK = 32
    MAX_BLOCKS = 32


cdef struct Layout:
    int rank
    int block_count
    Py_ssize_t itemsize
    Py_ssize_t length
    Py_ssize_t shape[MAX_RANK]
    # Distance between neighbours along each axis; between outer blocks where the axis is blocked.
    Py_ssize_t strides[MAX_RANK]
    # Total padding of each axis and the part of it before the first element.
    Py_ssize_t paddings[MAX_RANK]
    Py_ssize_t padding_offsets[MAX_RANK]
    # Extents of the hosting buffer, in elements: shape and padding, rounded up to whole blocks.
    Py_ssize_t padded_shape[MAX_RANK]
    # Of element (0, .., 0), from the start of the buffer.
    Py_ssize_t offset
    # Axes in memory order, slowest first.
    int axes[MAX_RANK]
    # Outermost block first; together the inner blocks are one dense run.
    Py_ssize_t block_sizes[MAX_BLOCKS]
    int block_axes[MAX_BLOCKS]


cdef class ShapeDescriptor:
    cdef Layout layout
    cdef readonly object dtype
    cdef readonly str order
    cdef readonly tuple shape
    cdef readonly tuple strides
    cdef readonly tuple paddings
    cdef readonly tuple padding_offsets
    cdef readonly tuple padded_shape
    cdef readonly tuple inner_blocks
    cdef readonly tuple axes
    cdef readonly Py_ssize_t ews
    cdef Py_hash_t _hash
    # Read and written in critical sections alone: without the lock of the interpreter another thread may replace, and free, what is about to be held.
    cdef ShapeDescriptor _plain  # what `exploded` made
    cdef ShapeDescriptor _typed  # what `astype` made last

    cdef tuple key(self)
    cpdef Py_ssize_t allocLength(self) except -1
    cpdef ShapeDescriptor exploded(self)


# The part of a layout that basic indexing selects.
cdef ShapeDescriptor select(ShapeDescriptor self, object key)

# The extents that `shape`, which may hold one -1, stands for: as many elements as there are, or LayoutError.
cdef tuple extents_for(ShapeDescriptor self, object shape)

# The same elements, in c order of their indices, under another shape of as many; None where neither strides nor blocks describe it.
cdef ShapeDescriptor reshaped(ShapeDescriptor self, tuple extents)

# Memory order as strides tell it, among equals c order.
cdef void order_by_strides(Layout *layout) noexcept nogil

# Physical offset of the logical index `index`, blocks included; nothing is checked.
cdef Py_ssize_t offset_of_index(const Layout *layout, const Py_ssize_t *index) noexcept nogil

# What one index of one axis adds to the offset, blocks included; nothing is checked.
cdef Py_ssize_t axis_offset(const Layout *layout, int axis, Py_ssize_t index) noexcept nogil

# Elements of a whole block of an axis; 1 where it is not blocked.
cdef Py_ssize_t block_product(const Layout *layout, int axis) noexcept nogil
cdef Py_ssize_t inner_run(const Layout *layout) noexcept nogil

# All that follows from rank, shape, strides, axes, paddings, their offsets, blocks and offset in `self.layout`; raises as the door below does.
cdef int derive(ShapeDescriptor self, object dtype, str order) except -1

# The one door: checks what must be true, raises LayoutError with the broken rules.
# `order` counts for rank 0 and 1, beyond it follows from `axes`; axes None: as strides tell them; ews None: computed.
cdef ShapeDescriptor make_descriptor(object dtype, str order, tuple axes, tuple shape, tuple strides, object ews, Py_ssize_t offset,
                                     tuple paddings, tuple padding_offsets, tuple inner_blocks)
