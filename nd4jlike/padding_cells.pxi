# Walks over the padding cells of a buffer (ADR 0010): fills them, looks at them, or lists the dirty ones.
# A blocked layout is walked as a plain one of more axes: outer blocks in memory order, then the inner blocks.

cdef enum:
    HALO = 1
    TAIL = 2
    LINE = 64  # bytes: from here on a call costs less than it saves

ctypedef enum Deed:
    FILL, LOOK, LIST

cdef struct Level:
    int axis
    Py_ssize_t count
    Py_ssize_t stride  # bytes
    Py_ssize_t weight  # elements of the axis in one step


cdef struct Walk:
    const Layout *layout
    const char *base
    uint64_t bits
    Deed deed
    int wanted  # HALO, TAIL or both
    int level_count
    Level levels[MAX_RANK + MAX_BLOCKS]
    Py_ssize_t at[MAX_RANK]  # index of the present cell, counted from element (0, .., 0)
    Py_ssize_t declared[MAX_RANK]  # the first index of each axis beyond shape and paddings: the tail
    Py_ssize_t spans[MAX_RANK + MAX_BLOCKS]  # bytes of the levels from each one on where these are one run of cells, else 0
    uint64_t clean  # bit of each axis that has no padding
    Py_ssize_t seen
    # Of each dirty cell: offset, kind, index. Only with LIST.
    Py_ssize_t *found
    Py_ssize_t found_count
    Py_ssize_t room


cdef Py_ssize_t spread(uint64_t *bits, Py_ssize_t itemsize) noexcept nogil:
    """Cells that 8 bytes hold, and `bits` as so many; dividing would cost more than a short run."""
    cdef Py_ssize_t together = 1
    if itemsize == 1:
        bits[0] |= bits[0] << 8
        together = 8
    if itemsize <= 2:
        bits[0] |= bits[0] << 16
        together = max(4, together)
    if itemsize <= 4:
        bits[0] |= bits[0] << 32
        together = max(2, together)
    return together


cdef void fill_run(char *cell, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t itemsize, uint64_t bits) noexcept nogil:
    """Write `bits` to `count` cells that are `stride` bytes apart."""
    cdef Py_ssize_t together = spread(&bits, itemsize), i
    if stride == itemsize:
        if bits == 0 and count * itemsize >= LINE:
            memset(cell, 0, <size_t> (count * itemsize))
            return
        while count >= together:
            memcpy(cell, &bits, 8)
            cell += 8
            count -= together
    if itemsize == 1:
        for i in range(count):
            (<uint8_t *> (cell + i * stride))[0] = <uint8_t> bits
    elif itemsize == 2:
        for i in range(count):
            (<uint16_t *> (cell + i * stride))[0] = <uint16_t> bits
    elif itemsize == 4:
        for i in range(count):
            (<uint32_t *> (cell + i * stride))[0] = <uint32_t> bits
    else:
        for i in range(count):
            (<uint64_t *> (cell + i * stride))[0] = bits


cdef bint run_holds(const char *cell, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t itemsize, uint64_t bits) noexcept nogil:
    """Whether `count` cells that are `stride` bytes apart hold `bits`."""
    cdef uint64_t wrong = 0, cells
    cdef Py_ssize_t together = spread(&bits, itemsize), i
    if stride == itemsize:
        while count >= together:
            memcpy(&cells, cell, 8)
            wrong |= cells ^ bits
            cell += 8
            count -= together
    if itemsize == 1:
        for i in range(count):
            wrong |= (<const uint8_t *> (cell + i * stride))[0] ^ <uint8_t> bits
    elif itemsize == 2:
        for i in range(count):
            wrong |= (<const uint16_t *> (cell + i * stride))[0] ^ <uint16_t> bits
    elif itemsize == 4:
        for i in range(count):
            wrong |= (<const uint32_t *> (cell + i * stride))[0] ^ <uint32_t> bits
    else:
        for i in range(count):
            wrong |= (<const uint64_t *> (cell + i * stride))[0] ^ bits
    return wrong == 0


cdef bint list_run(Walk *walk, int kind, const char *cell, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    """Append the dirty ones of `count` cells along the last level, the first of them at index `first`; False without memory."""
    cdef const Level *level = &walk.levels[walk.level_count - 1]
    cdef int rank = walk.layout.rank, axis
    cdef Py_ssize_t i
    cdef Py_ssize_t *row
    cdef void *more
    for i in range(count):
        if run_holds(cell + i * level.stride, 1, 0, walk.layout.itemsize, walk.bits):
            continue
        if walk.found_count == walk.room:
            walk.room = 2 * walk.room + 64
            more = realloc(walk.found, <size_t> (walk.room * (rank + 2)) * sizeof(Py_ssize_t))
            if more is NULL:
                return False
            walk.found = <Py_ssize_t *> more
        row = walk.found + walk.found_count * (rank + 2)
        row[0] = (cell + i * level.stride - walk.base) // walk.layout.itemsize
        row[1] = kind
        for axis in range(rank):
            row[2 + axis] = walk.at[axis]
        row[2 + level.axis] = first + i
        walk.found_count += 1
    return True


cdef bint do_run(Walk *walk, int kind, char *cell, Py_ssize_t first, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Do the deed on the cells `begin` to `end` of the last level, cell 0 being `cell`, at index `first`."""
    cdef Py_ssize_t stride = walk.levels[walk.level_count - 1].stride
    if begin >= end or not walk.wanted & kind:
        return True
    walk.seen += end - begin
    cell += begin * stride
    if walk.deed == FILL:
        fill_run(cell, end - begin, stride, walk.layout.itemsize, walk.bits)
        return True
    if run_holds(cell, end - begin, stride, walk.layout.itemsize, walk.bits):
        return True
    return walk.deed == LIST and list_run(walk, kind, cell, first + begin, end - begin)


cdef bint do_cells(Walk *walk, char *cell, Py_ssize_t count, Py_ssize_t stride) noexcept nogil:
    """Fill cells, or look at them, of whichever kind."""
    walk.seen += count
    if walk.deed == FILL:
        fill_run(cell, count, stride, walk.layout.itemsize, walk.bits)
        return True
    return run_holds(cell, count, stride, walk.layout.itemsize, walk.bits)


cdef void fill_runs(char *cell, Py_ssize_t runs, Py_ssize_t pitch, Py_ssize_t nbytes, Py_ssize_t itemsize, uint64_t bits) noexcept nogil:
    """`fill_run` of whole cells without gaps, so many times, `pitch` bytes apart: most are shorter than a call is worth."""
    cdef Py_ssize_t i, at
    if nbytes >= 8:
        spread(&bits, itemsize)
        for i in range(runs):
            at = 0
            while at < nbytes - 8:
                memcpy(cell + at, &bits, 8)
                at += 8
            memcpy(cell + nbytes - 8, &bits, 8)
            cell += pitch
        return
    for at in range(nbytes // itemsize):
        fill_run(cell + at * itemsize, runs, pitch, itemsize, bits)


cdef bint runs_hold(const char *cell, Py_ssize_t runs, Py_ssize_t pitch, Py_ssize_t nbytes, Py_ssize_t itemsize, uint64_t bits) noexcept nogil:
    """`run_holds` in the same way."""
    cdef uint64_t wrong = 0, cells
    cdef Py_ssize_t i, at
    if nbytes >= 8:
        spread(&bits, itemsize)
        for i in range(runs):
            at = 0
            while at < nbytes - 8:
                memcpy(&cells, cell + at, 8)
                wrong |= cells ^ bits
                at += 8
            memcpy(&cells, cell + nbytes - 8, 8)
            wrong |= cells ^ bits
            if wrong:
                return False
            cell += pitch
        return True
    for at in range(nbytes // itemsize):
        if not run_holds(cell + at * itemsize, runs, pitch, itemsize, bits):
            return False
    return True


cdef bint do_runs(Walk *walk, char *cell, Py_ssize_t runs, Py_ssize_t pitch, Py_ssize_t count, Py_ssize_t stride) noexcept nogil:
    """`do_cells` on `runs` runs of `count` cells, `pitch` bytes apart."""
    cdef Py_ssize_t itemsize = walk.layout.itemsize, i
    if count == 0 or runs == 0:
        return True
    if stride != itemsize:
        for i in range(runs):
            if not do_cells(walk, cell + i * pitch, count, stride):
                return False
        return True
    walk.seen += runs * count
    if walk.deed == FILL:
        fill_runs(cell, runs, pitch, count * itemsize, itemsize, walk.bits)
        return True
    return runs_hold(cell, runs, pitch, count * itemsize, itemsize, walk.bits)


cdef bint walk_rows(Walk *walk, const Level *level, const Level *row, char *cell, int kind) noexcept nogil:
    """The last two levels, of two axes, whichever kind cells are."""
    cdef Py_ssize_t first = walk.at[level.axis], extent = walk.layout.shape[level.axis], count = level.count
    cdef Py_ssize_t inside = max(0, min(-walk.at[row.axis], row.count)), outside = max(0, min(walk.layout.shape[row.axis] - walk.at[row.axis], row.count))
    cdef Py_ssize_t begin = count if kind else max(0, min(-first, count)), end = count if kind else max(begin, min(extent - first, count))
    cdef char *within = cell + begin * level.stride
    return (do_runs(walk, cell, begin, level.stride, row.count, row.stride)
            and do_runs(walk, within, end - begin, level.stride, inside, row.stride)
            and do_runs(walk, within + outside * row.stride, end - begin, level.stride, row.count - outside, row.stride)
            and do_runs(walk, cell + end * level.stride, count - end, level.stride, row.count, row.stride))


cdef bint walk_level(Walk *walk, int number, char *cell, int kind, uint64_t clean) noexcept nogil:
    """Walk the cells from `number` levels on; `kind` is 0, HALO or TAIL as the levels before have it. False: stop.

    `clean` has a bit for each axis that is known to be inside: nothing below is padding once all are.
    """
    cdef const Level *level = &walk.levels[number]
    cdef int axis = level.axis, below
    cdef Py_ssize_t first = walk.at[axis], extent = walk.layout.shape[axis], at, i, inside, outside, tail
    cdef uint64_t known
    cdef bint together
    if number == walk.level_count - 1:
        tail = max(0, min(walk.declared[axis] - first, level.count))
        if kind == TAIL:
            return do_run(walk, TAIL, cell, first, 0, level.count)
        inside, outside = max(0, min(-first, level.count)), max(0, min(extent - first, level.count))
        if kind == HALO:
            outside = inside
        return (do_run(walk, HALO, cell, first, 0, inside) and do_run(walk, HALO, cell, first, outside, tail)
                and do_run(walk, TAIL, cell, first, tail, level.count))
    together = walk.deed != LIST and walk.wanted == HALO | TAIL
    if together and number == walk.level_count - 2 and level[1].axis != axis:
        return walk_rows(walk, level, level + 1, cell, kind)
    for i in range(level.count):
        at = first + i * level.weight
        below, known = kind, clean
        if at >= 0 and at + level.weight <= extent:
            known |= <uint64_t> 1 << axis
            if known == walk.clean and kind == 0:
                continue
        elif level.weight == 1 or at >= walk.declared[axis]:
            below = max(kind, TAIL if at >= walk.declared[axis] else HALO)
        if below and together and walk.spans[number + 1]:
            if not do_cells(walk, cell + i * level.stride, walk.spans[number + 1] // walk.layout.itemsize, walk.layout.itemsize):
                return False
            continue
        walk.at[axis] = at
        if not walk_level(walk, number + 1, cell + i * level.stride, below, known):
            return False
    walk.at[axis] = first
    return True


cdef bint walk_padding(Walk *walk, const Layout *layout, char *base, Deed deed, int wanted, uint64_t bits) noexcept nogil:
    """Do the deed on every wanted padding cell; False if LOOK met a dirty one, or LIST ran out of memory."""
    cdef Py_ssize_t weight, run = 1, offset = layout.offset
    cdef Py_ssize_t products[MAX_RANK]
    cdef uint64_t clean = 0
    cdef int i, axis
    walk.layout, walk.base, walk.deed, walk.wanted, walk.bits = layout, base, deed, wanted, bits
    walk.found, walk.found_count, walk.room, walk.seen, walk.clean = NULL, 0, 0, 0, 0
    walk.level_count = layout.rank + layout.block_count
    for axis in range(layout.rank):
        products[axis] = 1
    for i in range(layout.block_count):
        products[layout.block_axes[i]] *= layout.block_sizes[i]
        run *= layout.block_sizes[i]
    for i in range(layout.rank):
        axis = layout.axes[i]
        weight = products[axis]
        walk.levels[i] = Level(axis, layout.padded_shape[axis] // weight, layout.strides[axis] * layout.itemsize, weight)
        walk.at[axis] = -layout.padding_offsets[axis]
        walk.declared[axis] = layout.shape[axis] + layout.paddings[axis] - layout.padding_offsets[axis]
        offset -= layout.padding_offsets[axis] // weight * layout.strides[axis]
        walk.clean |= <uint64_t> 1 << axis
        if layout.padded_shape[axis] == layout.shape[axis]:
            clean |= <uint64_t> 1 << axis
    for i in range(layout.block_count):
        axis = layout.block_axes[i]
        products[axis] //= layout.block_sizes[i]
        run //= layout.block_sizes[i]
        walk.levels[layout.rank + i] = Level(axis, layout.block_sizes[i], run * layout.itemsize, products[axis])
    run = layout.itemsize
    for i in range(walk.level_count - 1, -1, -1):
        run = run * walk.levels[i].count if walk.levels[i].stride == run else 0
        walk.spans[i] = run
    if layout.length == 0 or clean == walk.clean:  # no memory, however much padding is declared; or no padding
        return True
    return walk_level(walk, 0, base + offset * layout.itemsize, 0, clean)
