# Views of a layout: what basic indexing selects, and the same elements under another shape (ADR 0001, 0010). No element is touched.


cdef bint evenly_spaced(const Layout *layout, int axis, Py_ssize_t start, Py_ssize_t count, Py_ssize_t step, Py_ssize_t *stride) noexcept nogil:
    """Whether `count` elements of one axis, `step` apart, are evenly spaced in memory, too; how far apart."""
    cdef Py_ssize_t weights[MAX_BLOCKS + 1]  # elements of the axis in one step of each level: outer blocks, then its inner blocks
    cdef Py_ssize_t distances[MAX_BLOCKS + 1]  # and how far apart these steps are
    cdef Py_ssize_t last = start + (count - 1) * step, run = inner_run(layout)
    cdef int i, levels = 1, top = 0
    weights[0] = block_product(layout, axis)
    distances[0] = layout.strides[axis]
    for i in range(layout.block_count):
        run //= layout.block_sizes[i]
        if layout.block_axes[i] == axis:
            weights[levels] = weights[levels - 1] // layout.block_sizes[i]
            distances[levels] = run
            levels += 1
    stride[0] = distances[0]
    if count < 2:
        return True
    while start // weights[top] == last // weights[top]:
        top += 1
    i = top
    while step % weights[i]:
        i += 1
        if distances[top] * weights[i] != distances[i] * weights[top]:
            while step % weights[i]:
                i += 1
            return few_are_even(layout, axis, start, count, step, weights[i - 1], stride)
    stride[0] = step // weights[i] * distances[i]
    return True


cdef bint few_are_even(const Layout *layout, int axis, Py_ssize_t start, Py_ssize_t count, Py_ssize_t step, Py_ssize_t block,
                       Py_ssize_t *stride) noexcept nogil:
    """Whether elements that blocks space unevenly are too few to show it, as any two are; steps inside one `block` are alike."""
    cdef Py_ssize_t i = 0, here, inside
    stride[0] = axis_offset(layout, axis, start + step) - axis_offset(layout, axis, start)
    while i < count - 1:
        here = start + i * step
        if axis_offset(layout, axis, here + step) - axis_offset(layout, axis, here) != stride[0]:
            return False
        inside = (block - 1 - here % block) // step if step > 0 else here % block // -step
        i += max(inside, 1)
    return True


cdef bint remains_a_run(const Layout *layout, const bint *stays) noexcept nogil:
    """Whether the inner blocks of the axes that stay blocked are one dense run without those of the others."""
    cdef bint begun = False
    cdef int i
    for i in range(layout.block_count):
        if layout.block_sizes[i] > 1:
            if stays[layout.block_axes[i]]:
                begun = True
            elif begun:
                return False
    return True


cdef ShapeDescriptor select(ShapeDescriptor self, object key):
    cdef tuple keys = key if type(key) is tuple else tuple(key) if isinstance(key, tuple) else (key,)
    cdef const Layout *layout = &self.layout
    cdef ShapeDescriptor made = ShapeDescriptor.__new__(ShapeDescriptor)
    cdef Layout *part = &made.layout
    cdef int origin[MAX_RANK]  # axis of this descriptor behind each axis of the part, -1 for a new one
    cdef int place_of[MAX_RANK]  # axis of the part that each axis of this descriptor becomes, -1 for none
    cdef bint stays[MAX_RANK]  # whether an axis keeps its blocks
    cdef bint even[MAX_RANK]  # whether strides alone can describe it
    cdef Py_ssize_t plain_strides[MAX_RANK]
    cdef Py_ssize_t start, stop, step, count, product, n
    cdef int wanted = 0, axis = 0, rank = 0, i, place, later
    cdef bint ellipsis = False, empty = layout.length == 0, reading
    for k in keys:
        if k is Ellipsis:
            if ellipsis:
                wanted = MAX_RANK + 1
            ellipsis = True
        elif k is not None:
            wanted += 1
    if wanted > layout.rank:
        wanted = len([k for k in keys if k is not None and k is not Ellipsis])
        raise OutOfRangeError(f"{wanted} indices for {layout.rank} axes, and at most one Ellipsis: key={key!r}, shape={self.shape}")
    if not ellipsis and wanted < layout.rank:
        keys += (Ellipsis,)

    part.offset = layout.offset
    for k in keys:
        if rank == MAX_RANK and (k is None or isinstance(k, slice)):
            raise LayoutError(f"the part has more than {MAX_RANK} axes: key={key!r}, shape={self.shape}", ShapeStatus.INCORRECT_RANK)
        if k is None:
            origin[rank] = -1
            part.shape[rank], part.strides[rank], part.paddings[rank], part.padding_offsets[rank] = 1, 0, 0, 0
            rank += 1
        elif k is Ellipsis:
            for _ in range(layout.rank - wanted):
                if rank == MAX_RANK:
                    raise LayoutError(f"the part has more than {MAX_RANK} axes: key={key!r}, shape={self.shape}", ShapeStatus.INCORRECT_RANK)
                origin[rank], place_of[axis], stays[axis] = axis, rank, True
                n = layout.shape[axis]
                even[axis] = evenly_spaced(layout, axis, 0, n, 1, &plain_strides[axis])
                part.shape[rank], part.strides[rank] = n, layout.strides[axis]
                part.paddings[rank], part.padding_offsets[rank] = layout.paddings[axis], layout.padding_offsets[axis]
                rank += 1
                axis += 1
        elif isinstance(k, slice):
            n = layout.shape[axis]
            PySlice_Unpack(k, &start, &stop, &step)
            count = PySlice_AdjustIndices(n, &start, &stop, step)
            product = block_product(layout, axis)
            origin[rank], place_of[axis] = axis, rank
            part.shape[rank], part.strides[rank] = count, layout.strides[axis]
            if count == n and (step == 1 or n <= 1):
                part.paddings[rank], part.padding_offsets[rank] = layout.paddings[axis], layout.padding_offsets[axis]
                stays[axis], even[axis] = True, evenly_spaced(layout, axis, 0, n, 1, &plain_strides[axis])
            else:
                part.paddings[rank], part.padding_offsets[rank] = 0, 0
                if product == 1:
                    if count < 2 and mul_overflows(layout.strides[axis], step, &product):
                        step = 1  # reaches nothing
                    part.strides[rank] *= step
                    stays[axis] = even[axis] = True
                    plain_strides[axis] = part.strides[rank]
                else:
                    stays[axis] = count == 0 or (step == 1 and start % product == 0 and (stop % product == 0 or stop == n))
                    even[axis] = evenly_spaced(layout, axis, start, count, step, &plain_strides[axis])
                if count:
                    part.offset += axis_offset(layout, axis, start)
            empty = empty or count == 0
            rank += 1
            axis += 1
        else:
            n = layout.shape[axis]
            try:
                k = operator.index(k)
                start = k if -n <= k < n else n
            except TypeError:
                raise OutOfRangeError(f"index {k!r} of axis {axis} is neither an integer, a slice, Ellipsis nor None, as basic indexing has it") from None
            if start == n:
                raise OutOfRangeError(f"index {k} is outside axis {axis} of extent {n}: shape={self.shape}")
            place_of[axis], stays[axis], even[axis] = -1, False, True
            part.offset += axis_offset(layout, axis, start + n if start < 0 else start)
            axis += 1
    part.rank = rank
    for axis in range(layout.rank):
        if empty and not even[axis]:
            even[axis], plain_strides[axis] = True, 0  # any stride says where no elements are
        if not stays[axis] and not even[axis]:
            raise not_in_place(self, axis, key)

    # Blocks stay where they can; else strides must do.
    part.block_count = 0
    if layout.block_count:
        if not remains_a_run(layout, stays):
            for axis in range(layout.rank):
                stays[axis] = not even[axis]  # what cannot stay is even
            if not remains_a_run(layout, stays):
                axis = 0
                while not stays[axis]:
                    axis += 1
                raise not_in_place(self, axis, key)
        for i in range(layout.block_count):
            axis = layout.block_axes[i]
            if stays[axis]:
                part.block_axes[part.block_count], part.block_sizes[part.block_count] = place_of[axis], layout.block_sizes[i]
                part.block_count += 1
            elif place_of[axis] >= 0:
                place = place_of[axis]
                part.strides[place], part.paddings[place], part.padding_offsets[place] = plain_strides[axis], 0, 0

    i = 0
    for place in range(layout.rank):
        if place_of[layout.axes[place]] >= 0:
            part.axes[i] = place_of[layout.axes[place]]
            i += 1
    for axis in range(rank):
        if origin[axis] < 0:
            # A new axis joins its neighbour on the fast side; its stride never contributes to an address.
            reading = self.order == "f"
            place = i
            for later in range(i):
                if part.axes[later] == axis - 1 if reading else part.axes[later] > axis and (place == i or part.axes[later] < part.axes[place]):
                    place = later
            part.strides[axis] = inner_run(part)
            if place < i and not mul_overflows(part.strides[part.axes[place]], part.shape[part.axes[place]], &n):
                part.strides[axis] = max(1, abs(n))
            for later in range(i, place, -1):
                part.axes[later] = part.axes[later - 1]
            part.axes[place] = axis
            i += 1
    derive(made, self.dtype, self.order)
    return made


cdef object not_in_place(ShapeDescriptor self, int axis, object key):
    return UnsupportedLayoutError(
        f"no view: axis {axis} is blocked by {block_product(&self.layout, axis)}, and this part of it is neither whole blocks in one run nor evenly "
        f"spaced: key={key!r}, shape={self.shape}, inner_blocks={self.inner_blocks}; reorder to a plain layout first"
    )


cdef tuple extents_for(ShapeDescriptor self, object shape):
    cdef tuple sizes = as_shape(shape)
    cdef object count = 1, length = self.layout.length
    cdef int open = -1, axis
    for axis in range(len(sizes)):
        size = sizes[axis]
        if size >= 0:
            count *= size
        elif size == -1 and open < 0:
            open = axis
        else:
            raise LayoutError(f"cannot reshape {self.shape} to {sizes}: extents are 0 or more, and one may be -1", ShapeStatus.INCORRECT_SHAPE)
    if open >= 0 and count == 0:
        raise LayoutError(f"cannot reshape {self.shape} to {sizes}: beside an extent of 0, -1 may stand for any", ShapeStatus.INCORRECT_SHAPE)
    if open >= 0:
        sizes = (*sizes[:open], length // count, *sizes[open + 1 :])
        count *= length // count
    if count != length:
        raise LayoutError(f"cannot reshape {self.shape} to {sizes}: the number of elements, {length}, stays as it is", ShapeStatus.INCORRECT_SHAPE)
    return sizes


cdef ShapeDescriptor reshaped(ShapeDescriptor self, tuple extents):
    cdef const Layout *layout = &self.layout
    cdef ShapeDescriptor made = ShapeDescriptor.__new__(ShapeDescriptor)
    cdef Layout *new = &made.layout
    cdef int place_of[MAX_RANK]  # axis of the result that each axis becomes, -1 for none
    cdef Py_ssize_t have, want, stride, run
    cdef int old = layout.rank, fresh = len(extents), first, begin, axis, i  # `old`, `fresh`: axes that are still to be matched
    if layout.length == 0:
        lay_densely(new, "c", extents)
        derive(made, self.dtype, self.order)
        return made
    new.rank, new.offset, new.block_count = fresh, layout.offset, layout.block_count
    for i in range(fresh):
        new.shape[i], new.paddings[i], new.padding_offsets[i] = extents[i], 0, 0
    for i in range(old):
        place_of[i] = -1

    # From the last to the first, the smallest runs of axes with equal products.
    while old or fresh:
        if old and layout.shape[old - 1] == 1 and not (fresh and new.shape[fresh - 1] == 1):
            old -= 1
            continue
        if fresh and new.shape[fresh - 1] == 1 and not (old and layout.shape[old - 1] == 1):
            fresh -= 1
            new.strides[fresh] = inner_run(layout)
            if fresh + 1 < new.rank and mul_overflows(new.strides[fresh + 1], new.shape[fresh + 1] + new.paddings[fresh + 1], &new.strides[fresh]):
                new.strides[fresh] = 1  # reaches nothing
            continue
        first, begin = old - 1, fresh - 1
        have, want = layout.shape[first], new.shape[begin]
        while have != want:
            if have < want:
                first -= 1
                have *= layout.shape[first]
            else:
                begin -= 1
                want *= new.shape[begin]
        if old - first == 1 and fresh - begin == 1:
            new.strides[begin], new.paddings[begin], new.padding_offsets[begin] = layout.strides[first], layout.paddings[first], layout.padding_offsets[first]
            place_of[first] = begin
        else:
            run, stride, i = 0, 1, -1
            for axis in range(old - 1, first - 1, -1):
                if layout.shape[axis] == 1:
                    continue
                if block_product(layout, axis) > 1 or (i >= 0 and layout.strides[axis] != run):
                    return None
                if i < 0:
                    stride = layout.strides[axis]
                i = axis
                run = layout.strides[axis] * layout.shape[axis]
            run = stride
            for axis in range(fresh - 1, begin - 1, -1):
                new.strides[axis] = run
                run *= new.shape[axis]
        old, fresh = first, begin
    for i in range(layout.block_count):
        if place_of[layout.block_axes[i]] < 0:
            return None
        new.block_axes[i], new.block_sizes[i] = place_of[layout.block_axes[i]], layout.block_sizes[i]
    order_by_strides(new)
    derive(made, self.dtype, self.order)
    return made
