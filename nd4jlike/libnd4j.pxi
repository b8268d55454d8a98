# What is libnd4j's: the scan of strides that `validate` makes, and shapeInfo, read and written (ADR 0001).

# Property bits of libnd4j's `extra` word. Bit 25 means "has a padded buffer" and nothing else.
cdef enum:
    FLAG_EMPTY = 1 << 3
    FLAG_PADDED = 1 << 25
    # Sparse, compressed, ragged, complex: contents that strides do not describe.
    FLAGS_FOREIGN = (1 << 1) | (1 << 2) | (1 << 4) | (1 << 9)

cdef dict ORDER_CODES = {"c": 99, "f": 102}  # the letters' ASCII codes, as libnd4j stores them


cdef tuple scan(const Layout *layout, bint skip_units):
    """libnd4j's rule over outer blocks: the first broken neighbour in words (or None), and the element-wise stride that it expects."""
    cdef Py_ssize_t reach = 0, first = 0, extent, inner_extent = 0
    cdef bint started = False, even = True
    cdef int i, axis, inner = 0
    for i in range(layout.rank - 1, -1, -1):
        axis = layout.axes[i]
        extent = layout.padded_shape[axis] // block_product(layout, axis)
        if skip_units and extent == 1:
            continue
        if not started:
            first = layout.strides[axis]
            if layout.block_count and first < inner_run(layout):
                return f"axis {axis} has stride {first}, its inner blocks are a run of {inner_run(layout)}", 0
        elif layout.strides[axis] < reach:
            return f"axis {axis} has stride {layout.strides[axis]}, axis {inner} spans {layout.strides[inner]} * {inner_extent} = {reach}", 0
        elif layout.strides[axis] != reach:
            even = False
        started = True
        inner = axis
        inner_extent = extent
        reach = layout.strides[axis] * extent
    if layout.block_count:
        return None, 0
    if is_padded_layout(layout) or not started:
        return None, element_wise_stride(layout)
    return None, first if even else 0


cdef ShapeDescriptor read_shape_info(object sequence, object dtype):
    cdef tuple numbers = as_sizes(sequence, "shapeInfo") or ()
    if not numbers or not 0 <= numbers[0] <= MAX_RANK or len(numbers) != 2 * numbers[0] + 4:
        raise LayoutError(
            f"shapeInfo is [rank, shape.., strides.., extra, ews, order], 0 <= rank <= {MAX_RANK}; these are {len(numbers)} numbers: {numbers[:3]}..",
            ShapeStatus.INCORRECT_RANK,
        )
    rank = numbers[0]
    sizes, steps = checked_shape(numbers[1:1 + rank]), numbers[1 + rank:1 + 2 * rank]
    extra, ews, code = numbers[-3], numbers[-2], numbers[-1]
    if code not in (99, 102):
        raise LayoutError(f"shapeInfo's order is {code}, it must be 99 (c) or 102 (f): {numbers}", ShapeStatus.INCORRECT_SHAPE)
    if extra & FLAGS_FOREIGN:
        raise UnsupportedLayoutError(f"shapeInfo's flags {extra:#x} mean a sparse, compressed, ragged or complex array; strides describe dense ones only")
    row = dtypes.by_libnd4j_flags(extra)
    letter = "c" if code == 99 else "f"
    axes, none = letter_axes(letter, rank), (0,) * rank
    element = dtypes.dtype(dtype) if row is None else row.dtype
    cdef ShapeDescriptor plain = make_descriptor(element, letter, axes, sizes, steps, ews, 0, none, none, ())
    # Of axes at one distance, those of one element are the inner ones.
    sorted_axes = tuple([axis for _, _, axis in sorted([(-abs(steps[axis]), sizes[axis] == 1, axis) for axis in range(rank)])])
    permuted = sorted_axes not in (letter_axes("c", rank), letter_axes("f", rank))
    if extra & FLAG_PADDED:
        total = recovered_paddings(axes, sizes, steps)
        if total is None and permuted:
            axes, total = sorted_axes, recovered_paddings(sorted_axes, sizes, steps)
        if total is not None:
            # Where only the slowest axis was padded, what is read is a plain layout, with that one's `ews`.
            return make_descriptor(element, letter, axes, sizes, steps, ews if ews or any(total) else None, 0, total, none, ())
        if 0 not in sizes:  # of arrays without elements strides may be anything
            raise LayoutError(
                f"shapeInfo has the flag of a padded buffer, and its strides are no whole multiples of each other that reach over the extents: {numbers}",
                ShapeStatus.INCORRECT_STRIDES,
            )
    if not plain.validate() & ShapeStatus.INCORRECT_STRIDES or not permuted:
        return plain  # strides of the other order contradict the letter; they are no permutation
    made = make_descriptor(element, letter, sorted_axes, sizes, steps, ews, 0, none, none, ())
    return plain if made.validate() & ShapeStatus.INCORRECT_STRIDES else made


cdef tuple recovered_paddings(tuple axes, tuple sizes, tuple steps):
    """Paddings that the strides of a padded buffer tell: of every axis but the slowest; None where the strides are no such buffer's."""
    cdef list total = [0] * len(sizes)
    for outer, axis in zip(axes, axes[1:]):
        extent, rest = divmod(steps[outer], steps[axis]) if steps[axis] > 0 else (0, 1)
        if rest or extent < sizes[axis]:
            return None
        total[axis] = extent - sizes[axis]
    return tuple(total)


cdef list written_shape_info(ShapeDescriptor self):
    if self.inner_blocks:
        raise UnsupportedLayoutError(f"libnd4j's shapeInfo has strides only, the layout {self.tag or self.inner_blocks} has inner blocks")
    extra, ews = dtypes.codes(self.dtype).libnd4j_flags, self.ews
    if self.is_empty:
        extra |= FLAG_EMPTY
    if self.has_padded_buffer:
        if self.is_empty or self.tag is not None:
            extra |= FLAG_PADDED
        else:  # a part; libnd4j's have no such flag either
            none = (0,) * self.layout.rank
            ews = make_descriptor(self.dtype, self.order, self.axes, self.shape, self.strides, None, self.layout.offset, none, none, ()).ews
    return [self.layout.rank, *self.shape, *self.strides, extra, ews, ORDER_CODES[self.order]]
