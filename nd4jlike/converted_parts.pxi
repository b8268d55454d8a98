# Elements that are converted and come in another order in the target: a part at a time, whose narrow elements have room in scratch (ADR 0009).

cdef enum:
    # Narrow elements, between their conversion and their move: they, and what is read or written with them, stay in a near cache.
    SCRATCH_BYTES = 1 << 16


cdef bint begins_blocks(const Layout *layout, const Box *box) noexcept nogil:
    cdef int axis
    for axis in range(layout.rank):
        if box.first[axis] % block_product(layout, axis):
            return False
    return True


cdef Py_ssize_t room_for(const Layout *layout, const Box *box) noexcept nogil:
    """Cells of the blocks that a box lies in; of the box itself where it begins within one."""
    cdef bint whole = begins_blocks(layout, box)
    cdef Py_ssize_t product = 1
    cdef int axis
    for axis in range(layout.rank):
        product *= round_up(box.end[axis] - box.first[axis], block_product(layout, axis) if whole else 1)
    return product


cdef void dense(Layout *layout, const Layout *like, const Box *box, Py_ssize_t itemsize) noexcept nogil:
    """Lay the elements of a box out densely, axes in the memory order of `like`, as a layout of the whole shape; in its blocks where there is room for them."""
    cdef Py_ssize_t run = 1, block
    cdef bint whole = begins_blocks(like, box) and room_for(like, box) <= SCRATCH_BYTES // itemsize
    cdef int i, axis
    layout.rank = like.rank
    layout.itemsize = itemsize
    layout.offset = 0
    layout.block_count = like.block_count if whole else 0
    for i in range(layout.block_count):
        layout.block_axes[i], layout.block_sizes[i] = like.block_axes[i], like.block_sizes[i]
        run *= like.block_sizes[i]
    for i in range(like.rank - 1, -1, -1):
        axis = like.axes[i]
        block = block_product(layout, axis)
        layout.axes[i] = axis
        layout.shape[axis] = like.shape[axis]
        layout.strides[axis] = run
        layout.offset -= run * (box.first[axis] // block)
        run *= round_up(box.end[axis] - box.first[axis], block) // block


cdef Py_ssize_t larger_block(const Layout *one, const Layout *other, int axis) noexcept nogil:
    return max(block_product(one, axis), block_product(other, axis))


cdef int slowest(const Layout *layout, const Box *box, const Layout *other) noexcept nogil:
    """The slowest axis of which a box has more than a block of this layout and of another one; more than an element for NULL; -1 where there is none."""
    cdef int i, axis
    for i in range(layout.rank):
        axis = layout.axes[i]
        if box.end[axis] - box.first[axis] > (1 if other is NULL else larger_block(layout, other, axis)):
            return axis
    return -1


cdef Py_ssize_t run_of_half(const Layout *layout, const Box *box, int half) noexcept nogil:
    """Bytes that lie together, more or less, where a box is cut in the middle of axis `half`."""
    cdef Py_ssize_t run = layout.itemsize, block
    cdef int i, axis
    for i in range(layout.block_count):
        run *= layout.block_sizes[i]
    for i in range(layout.rank - 1, -1, -1):
        axis = layout.axes[i]
        block = block_product(layout, axis)
        run *= round_up(box.end[axis] - box.first[axis], block) // block
        if axis == half:
            break
    return run // 2


cdef void convert(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
                  const Fill *fill, Py_ssize_t bytes, const Change *change) noexcept nogil:
    """Halve a box until there is room for what is narrow in the order, and the blocks, of what is wide. What lies together stays so for as long as it can."""
    cdef bint widens = source_layout.itemsize < target_layout.itemsize
    cdef const Layout *wide = target_layout if widens else source_layout
    cdef Py_ssize_t itemsize = min(source_layout.itemsize, target_layout.itemsize), half, block
    cdef int axis, other
    cdef Box part = box[0]
    axis = slowest(source_layout, box, target_layout)
    other = slowest(target_layout, box, source_layout)
    if axis < 0 or (other >= 0 and run_of_half(source_layout, box, other) > run_of_half(target_layout, box, axis)):
        axis = other
    if axis < 0:
        axis = slowest(target_layout, box, NULL)
    if axis < 0 or room_for(wide, box) <= SCRATCH_BYTES // itemsize:
        convert_part(table, source_layout, source, target_layout, target, box, fill, bytes, change)
        return
    half = (box.end[axis] - box.first[axis] + 1) // 2
    block = larger_block(source_layout, target_layout, axis)
    if box.end[axis] - box.first[axis] > block:
        half = max(half, block)
    if half >= block:
        half -= (box.first[axis] + half) % block
    part.end[axis] = box.first[axis] + half
    convert(table, source_layout, source, target_layout, target, &part, fill, bytes, change)
    part.first[axis] = part.end[axis]
    part.end[axis] = box.end[axis]
    convert(table, source_layout, source, target_layout, target, &part, fill, bytes, change)


cdef void convert_part(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
                       const Fill *fill, Py_ssize_t bytes, const Change *change) noexcept nogil:
    """What is narrow goes by way of scratch: what is wide is read, or written, once, block tails together with the elements."""
    cdef char room[SCRATCH_BYTES + LINE]
    cdef char *scratch = room + (LINE - <uintptr_t> room % LINE)
    cdef Layout layout
    cdef Box whole = box[0]
    cdef Fill zeros
    cdef bint zero_tails = fill is not NULL and not (<const uint32_t *> fill.cells)[0]
    cdef int axis
    if source_layout.itemsize > target_layout.itemsize:
        dense(&layout, source_layout, box, target_layout.itemsize)
        for axis in range(layout.rank):
            whole.end[axis] = round_up(box.end[axis], block_product(&layout, axis))
        move_box(table, source_layout, source, &layout, scratch, &whole, NULL, bytes, change)
        move_box(table, &layout, scratch, target_layout, target, box, fill, 0, NULL)
        return
    dense(&layout, target_layout, box, source_layout.itemsize)
    zero_tails = zero_tails and layout.block_count == target_layout.block_count
    for axis in range(layout.rank):
        whole.end[axis] = round_up(box.end[axis], block_product(&layout, axis))
        zero_tails = zero_tails and (whole.end[axis] == box.end[axis] or box.end[axis] == layout.shape[axis])
    if zero_tails:
        # What becomes zero.
        fill_with(&zeros, <unsigned int> change.zero_point, layout.itemsize)
        move_box(table, source_layout, source, &layout, scratch, box, &zeros, 0, NULL)
        move_box(table, &layout, scratch, target_layout, target, &whole, NULL, bytes, change)
    else:
        move_box(table, source_layout, source, &layout, scratch, box, NULL, 0, NULL)
        move_box(table, &layout, scratch, target_layout, target, box, fill, bytes, change)
