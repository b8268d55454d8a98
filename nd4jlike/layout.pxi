# What follows from a Layout by arithmetic: offsets, how far a buffer reaches, in what order and how evenly elements lie (ADR 0001). No Python object.


cdef Py_ssize_t offset_of_index(const Layout *layout, const Py_ssize_t *index) noexcept nogil:
    cdef Py_ssize_t offset = layout.offset
    cdef Py_ssize_t step = 1
    cdef Py_ssize_t rest[MAX_RANK]
    cdef int i, axis
    for i in range(layout.rank):
        rest[i] = index[i]
    # Padding before the first element is inside `offset`, except within a block, where positions count from the block's start.
    for i in range(layout.block_count - 1, -1, -1):
        axis = layout.block_axes[i]
        offset += (rest[axis] % layout.block_sizes[i]) * step
        rest[axis] //= layout.block_sizes[i]
        step *= layout.block_sizes[i]
    for i in range(layout.rank):
        offset += rest[i] * layout.strides[i]
    return offset


cdef Py_ssize_t axis_offset(const Layout *layout, int axis, Py_ssize_t index) noexcept nogil:
    """What `index` of one axis adds to the offset, blocks included."""
    cdef Py_ssize_t step = 1, offset = 0
    cdef int i
    for i in range(layout.block_count - 1, -1, -1):
        if layout.block_axes[i] == axis:
            offset += (index % layout.block_sizes[i]) * step
            index //= layout.block_sizes[i]
        step *= layout.block_sizes[i]
    return offset + index * layout.strides[axis]


cdef Py_ssize_t block_product(const Layout *layout, int axis) noexcept nogil:
    cdef Py_ssize_t product = 1
    cdef int i
    for i in range(layout.block_count):
        if layout.block_axes[i] == axis:
            product *= layout.block_sizes[i]
    return product


cdef Py_ssize_t whole_number(Py_ssize_t extent, Py_ssize_t block) noexcept nogil:
    """Blocks that hold `extent` elements, the last one perhaps in part."""
    return extent // block + (extent % block != 0)


cdef Py_ssize_t inner_run(const Layout *layout) noexcept nogil:
    """Elements of one inner block of all axes together; 1 for plain layouts."""
    cdef Py_ssize_t product = 1
    cdef int i
    for i in range(layout.block_count):
        product *= layout.block_sizes[i]
    return product


cdef bint hosting_reach(const Layout *layout, Py_ssize_t *low, Py_ssize_t *high) noexcept nogil:
    """Offsets of the first and last cell of the hosting buffer; False on overflow."""
    cdef Py_ssize_t reach
    cdef int i
    low[0] = layout.offset
    for i in range(layout.rank):
        if mul_overflows(layout.padding_offsets[i] // block_product(layout, i), layout.strides[i], &reach) or add_overflows(low[0], -reach, low):
            return False
    high[0] = low[0]
    if add_overflows(high[0], inner_run(layout) - 1, high):
        return False
    for i in range(layout.rank):
        if mul_overflows(max(layout.padded_shape[i] // block_product(layout, i) - 1, 0), layout.strides[i], &reach):
            return False
        if add_overflows(high[0], reach, high) if reach > 0 else add_overflows(low[0], reach, low):
            return False
    return True


cdef bint is_padded_layout(const Layout *layout) noexcept nogil:
    cdef int i
    for i in range(layout.rank):
        if layout.paddings[i]:
            return True
    return False


cdef bint is_reversed(const Layout *layout) noexcept nogil:
    """Whether the memory order is that of 'f' and not that of 'c' too."""
    cdef int i
    for i in range(layout.rank):
        if layout.axes[i] != layout.rank - 1 - i:
            return False
    return layout.rank > 1


cdef Py_ssize_t even_stride(const Layout *layout, const int *axes) noexcept nogil:
    """The stride that visits all elements in the order of `axes`, 0 if none does; axes of one element do not decide."""
    cdef Py_ssize_t ews = 0, expected = 0
    cdef bint begun = False
    cdef int i, axis
    if layout.block_count > 0 or layout.length == 0:
        return 0
    for i in range(layout.rank - 1, -1, -1):
        axis = axes[i]
        if layout.shape[axis] == 1:
            continue
        if not begun:
            ews, begun = layout.strides[axis], True
        elif layout.strides[axis] != expected:
            return 0
        expected = layout.strides[axis] * layout.shape[axis]
    if not begun:
        return layout.strides[axes[layout.rank - 1]] if layout.rank > 0 else 1
    return ews


cdef Py_ssize_t element_wise_stride(const Layout *layout) noexcept nogil:
    """The `ews` that is stored unless one is given: along 'c' or 'f', 0 for every padded buffer, as libnd4j has it."""
    cdef int natural[MAX_RANK]
    cdef int i
    cdef bint fortran = is_reversed(layout)
    if is_padded_layout(layout):
        return 0
    for i in range(layout.rank):
        natural[i] = layout.rank - 1 - i if fortran else i
    return even_stride(layout, natural)


cdef Py_ssize_t distance(const Layout *layout, int axis) noexcept nogil:
    return -layout.strides[axis] if layout.strides[axis] < 0 else layout.strides[axis]


cdef void order_by_strides(Layout *layout) noexcept nogil:
    cdef int axis, place
    for axis in range(layout.rank):
        place = axis
        while place > 0 and distance(layout, layout.axes[place - 1]) < distance(layout, axis):
            layout.axes[place] = layout.axes[place - 1]
            place -= 1
        layout.axes[place] = axis
