"""Moves: the elements of one layout to the places of another (ADR 0009). For the floors above; nothing here is public.

A blocked axis is several loops, its digits: a box of elements becomes nests of plain loops, one for each whole or partial block at its ends.
A nest is simplified (loops that run on are one), and its two loops that matter, the fastest of the source and the fastest of the target, are
handed to a kernel: a tile that changes rows into columns, or a copy of runs.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t, uintptr_t
from libc.string cimport memcpy

from nd4jlike.descriptor cimport MAX_BLOCKS, MAX_RANK, Layout, axis_offset, block_product
from nd4jlike.kernels.patch cimport FILL_BYTES, FILLED_COLUMNS, RUNS_AT_ONCE, MoveTable, Patch, Runs

from nd4jlike.kernels import dispatch

__all__ = []

cdef extern from "cpu.h" nogil:
    const char *forced_isa()

cdef enum:
    MAX_LEVELS = 2 * MAX_BLOCKS + 1
    LINE = 64
    # What is written, or read, in one go and comes back in the next: it stays in a second-level cache.
    STRIP_BYTES = 1 << 18
    # Steps of so many bytes, or as many as that of short ones, are gone over several times.
    SHARED_BYTES = 1 << 14
    # Both ends are beyond a first-level cache.
    SCATTERED_BYTES = 1 << 16
    # A part of a first-level cache.
    BIT_BYTES = 1 << 13
    # Runs that are converted past the caches, which begin and end anywhere.
    LONG_BYTES = 1 << 12


include "choices.pxi"


# What nests are run on.
cdef struct Ends:
    const MoveTable *table
    const char *source
    char *target
    const Fill *fill
    # Of the elements that are moved.
    Py_ssize_t bytes
    # What they become; read where the widths of a nest differ.
    const Change *change


cdef struct Job:
    const Layout *source
    const Layout *target
    const Box *box
    bint fills
    # Where nests are run, or else where they are kept.
    const Ends *ends
    Plan *plan
    # Of each axis: the elements of one step of each digit, fastest first, and whether the slowest digit has equal strides all the way.
    int levels[MAX_RANK]
    Py_ssize_t steps[MAX_RANK][MAX_LEVELS]
    bint even[MAX_RANK]


cdef dict tables = {}
# Of the best instruction set here.
cdef const MoveTable *best = NULL


cdef const MoveTable *kernels() except NULL:
    cdef const char *forced = forced_isa()
    global best
    if forced[0] == 0:
        if best is NULL:
            best = kernels_of("")
        return best
    return kernels_of(forced.decode())


cdef const MoveTable *kernels_of(str isa) except NULL:
    table = tables.get(isa)
    if table is None:
        table = tables[isa] = dispatch.load("reorder", isa or None)
    return <const MoveTable *> PyCapsule_GetPointer(table, "nd4jlike.kernels.MoveTable")


cdef void fill_with(Fill *fill, unsigned long long bits, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t done = itemsize
    memcpy(fill.cells, &bits, <size_t> itemsize)
    while done < FILL_BYTES:
        memcpy(fill.cells + done, fill.cells, <size_t> min(done, FILL_BYTES - done))
        done *= 2


cdef void all_of(Box *box, const Layout *layout) noexcept nogil:
    cdef int axis
    for axis in range(layout.rank):
        box.first[axis] = 0
        box.end[axis] = layout.shape[axis]


cdef Py_ssize_t whole_blocks(const Layout *layout) noexcept nogil:
    """Elements, and those that whole blocks have room for."""
    cdef Py_ssize_t product = 1
    cdef int axis
    for axis in range(layout.rank):
        product *= round_up(layout.shape[axis], block_product(layout, axis))
    return product


cdef Py_ssize_t size_of(Py_ssize_t distance) noexcept nogil:
    return -distance if distance < 0 else distance


cdef Py_ssize_t gcd(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    while b:
        a, b = b, a % b
    return a


cdef Py_ssize_t round_up(Py_ssize_t count, Py_ssize_t step) noexcept nogil:
    return (count + step - 1) // step * step


cdef void split_axis(Job *job, int axis) noexcept nogil:
    """Find the digits of an axis: steps that divide each other, and that neither layout's blocks cut."""
    cdef const Layout *layouts[2]
    cdef Py_ssize_t products[MAX_LEVELS]
    cdef Py_ssize_t *steps = job.steps[axis]
    cdef Py_ssize_t product, common
    cdef int i, k, place, count = 0, top = 0
    layouts[0], layouts[1] = job.source, job.target
    for k in range(2):
        product = 1
        for i in range(layouts[k].block_count - 1, -1, -1):
            if layouts[k].block_axes[i] == axis:
                product *= layouts[k].block_sizes[i]
                place = count
                while place > 0 and products[place - 1] > product:
                    products[place] = products[place - 1]
                    place -= 1
                products[place] = product
                count += 1
    steps[0] = 1
    job.even[axis] = True
    for i in range(count):
        if products[i] % steps[top] == 0:
            if products[i] > steps[top]:
                top += 1
                steps[top] = products[i]
        else:
            # Blocks that cut each other: no further than their common divisor, and from there on one step at a time.
            common = gcd(products[i], steps[top])
            while common % steps[top]:
                common = gcd(common, steps[top])
                top -= 1
            if common > steps[top]:
                top += 1
                steps[top] = common
            job.even[axis] = False
            break
    job.levels[axis] = top + 1


cdef void simplify(Nest *nest, const Nest *given) noexcept nogil:
    """Sort the loops by their distance in the target, slowest first, and join those that run on; loops of one cell go."""
    cdef Loop loops[MAX_LOOPS]
    cdef Loop loop
    cdef int depth = 0, place, i
    for i in range(given.depth):
        loop = given.loops[i]
        if nest.filling:
            loop.source = 0
        if loop.room == 1:
            continue
        if loop.target < 0:
            nest.source += (loop.extent - 1) * loop.source
            nest.target += (loop.extent - 1) * loop.target
            loop.source, loop.target = -loop.source, -loop.target
        place = depth
        while place > 0 and loops[place - 1].target < loop.target:
            loops[place] = loops[place - 1]
            place -= 1
        loops[place] = loop
        depth += 1
    nest.depth = 0
    for i in range(depth):
        loop = loops[i]
        if nest.depth > 0 and loop.room == loop.extent:
            place = nest.depth - 1
            if (nest.loops[place].target == loop.extent * loop.target and nest.loops[place].source == loop.extent * loop.source
                    and nest.loops[place].room == nest.loops[place].extent):
                loop.extent *= nest.loops[place].extent
                loop.room = loop.extent
                nest.depth = place
        nest.loops[nest.depth] = loop
        nest.depth += 1


cdef void run(const Job *job, const Nest *given) noexcept nogil:
    """Move, or fill, what a nest of loops goes over."""
    cdef Nest nest
    cdef Loop loop
    cdef bint converts
    cdef int i, last
    nest.filling = given.filling
    nest.source, nest.target = 0 if given.filling else given.source, given.target
    nest.width = job.target.itemsize
    nest.read = nest.width if given.filling else job.source.itemsize
    converts = nest.read != nest.width
    nest.fast = -1
    simplify(&nest, given)
    last = nest.depth - 1
    nest.room = 0
    if last >= 0:
        loop = nest.loops[last]
        if loop.room > loop.extent and not converts:
            nest.fast = dense_source(&nest, last)
            if nest.fast < 0 and (loop.source == nest.width or loop.extent == 1) and loop.target == nest.width and loop.room - loop.extent <= FILLED_COLUMNS:
                # A run, and after it the fill.
                nest.room = loop.room * nest.width
                nest.width *= loop.extent
                nest.read = nest.width
                last -= 1
        elif loop.source == nest.read and loop.target == nest.width:
            if loop.room > loop.extent:
                fill_rest(job, &nest, last)
            # Cells that stay side by side are one, wider.
            nest.width *= loop.extent
            nest.read *= loop.extent
            last -= 1
    nest.depth = last + 1
    if converts and job.plan is not NULL and nest.width < LINE * job.target.itemsize:
        # Short runs that go on where elements are wide.
        for i in range(nest.depth):
            if (nest.loops[i].source == nest.read) if nest.read > nest.width else (nest.loops[i].target == nest.width):
                job.plan.turns = True
    elif last >= 0 and nest.loops[last].target == nest.width and nest.room == 0 and not converts:
        nest.fast = dense_source(&nest, last)
    for i in range(nest.depth):
        if nest.loops[i].room > nest.loops[i].extent and (nest.fast < 0 or i < last):
            fill_rest(job, &nest, i)
            nest.loops[i].room = nest.loops[i].extent
    play(job, &nest)


cdef void play(const Job *job, const Nest *nest) noexcept nogil:
    if job.plan is NULL:
        perform(job.ends, nest)
    else:
        if job.plan.count < PLANNED_NESTS:
            job.plan.nests[job.plan.count] = nest[0]
        job.plan.count += 1


cdef void perform(const Ends *ends, const Nest *nest) noexcept nogil:
    if nest.fast >= 0:
        turn(ends, nest)
    else:
        copy(ends, nest)


cdef int dense_source(const Nest *nest, int last) noexcept nogil:
    """The loop in front of `last` whose cells, of a width that kernels turn, are neighbours in the source; -1 where there is none."""
    cdef int i
    if nest.width in (1, 2, 4, 8):
        for i in range(last):
            if nest.loops[i].source == nest.width:
                return i
    return -1


cdef void fill_rest(const Job *job, const Nest *nest, int at) noexcept nogil:
    """Fill what loop `at` has room for beyond its extent."""
    cdef Nest rest = nest[0]
    cdef int i
    rest.filling = True
    rest.room = 0
    rest.source = 0
    rest.read = rest.width
    rest.fast = -1
    rest.target += rest.loops[at].extent * rest.loops[at].target
    rest.loops[at].extent = rest.loops[at].room = rest.loops[at].room - rest.loops[at].extent
    for i in range(rest.depth):
        rest.loops[i].source = 0
    play(job, &rest)


cdef bint advance(const Nest *nest, Py_ssize_t *index, int a, int b, const char **source, char **target) noexcept nogil:
    """To the next place of all loops but `a` and `b`; False when there is none."""
    cdef const Loop *loop
    cdef int i
    for i in range(nest.depth - 1, -1, -1):
        if i == a or i == b:
            continue
        loop = &nest.loops[i]
        index[i] += 1
        source[0] += loop.source
        target[0] += loop.target
        if index[i] < loop.extent:
            return True
        source[0] -= loop.extent * loop.source
        target[0] -= loop.extent * loop.target
        index[i] = 0
    return False


include "squares.pxi"


cdef void copy(const Ends *ends, const Nest *nest) noexcept nogil:
    """Runs that stay as they are, or whose elements are converted."""
    cdef Py_ssize_t index[MAX_LOOPS]
    cdef const char *source = (<const char *> ends.fill.cells if nest.filling else ends.source) + nest.source
    cdef char *target = ends.target + nest.target
    cdef Loop one = Loop(1, 0, 0, 1)
    cdef const Loop *along = &one
    cdef const Loop *across = &one
    cdef Py_ssize_t strip, wide, at
    cdef bint stream, shares, converts = nest.read != nest.width
    cdef Runs runs
    cdef int i, outer = -1, inner = nest.depth - 1
    if nest.depth == 0 and nest.room == 0 and not converts:
        memcpy(target, source, <size_t> nest.width)
        return
    # The loop that is fastest in the source, and the one that is fastest in the target. Streams that are far apart at both ends are no faster than one.
    for i in range(inner):
        if min(size_of(nest.loops[i].source), nest.loops[i].target) < SHARED_BYTES:
            if outer < 0 or size_of(nest.loops[i].source) <= size_of(nest.loops[outer].source):
                outer = i
    for i in range(nest.depth):
        index[i] = 0
    if inner >= 0:
        along = &nest.loops[inner]
    if outer >= 0:
        across = &nest.loops[outer]
        # The one whose runs are farther apart at either end goes around the other: a few of its places at once are as many streams.
        if nest.width > 8 and max(size_of(along.source), along.target) > max(size_of(across.source), across.target):
            along, across = across, along
    # Whole lines of runs. Lines that several blocks fill come again with the next ones: where fetching pays so near, from the nearest cache.
    shares = choices.fetches_near and not converts and across.target == nest.width < LINE and across.extent >= RUNS_AT_ONCE
    strip = max(16, (BIT_BYTES if shares else STRIP_BYTES) // max(LINE, max(size_of(along.source), along.target)) // 16 * 16)
    runs.bytes, runs.outer = nest.width, across.extent
    runs.source_outer, runs.source_inner, runs.target_outer, runs.target_inner = across.source, along.source, across.target, along.target
    runs.room = nest.room
    runs.fill = <const char *> ends.fill.cells if nest.room else NULL
    # Of shorter runs there are several in a line.
    wide = max(nest.width, nest.room)
    runs.far = choices.single_rows > 0 and size_of(along.source) > 4 * LINE
    # What lies near is read, or written, in the order of memory, which prefetchers follow.
    runs.ahead = ends.bytes > 2 * choices.near and wide >= LINE // 4 and max(size_of(along.source), along.target) > choices.followed
    if choices.fetches_near and ends.bytes > SCATTERED_BYTES and wide >= LINE // 4:
        if across.target > along.target:
            # Stores to several places at once wait for lines of larger caches, too.
            runs.ahead = runs.ahead or wide >= LINE // 2 or (<uintptr_t> target | <size_t> across.target) % LINE != 0
        elif wide >= LINE // 2:
            runs.ahead = runs.ahead or ends.bytes > choices.near // 2 or (along.target % LINE == 0 and along.target <= 8 * LINE)
    # What is read here and there and written in one place goes past the caches, and so do lines that are read in order.
    stream = ends.bytes > choices.streamed
    if converts:
        stream = stream and nest.width >= LONG_BYTES
    elif along.target == nest.width and nest.width in (LINE // 4, LINE // 2, LINE):
        stream = stream and across.source == nest.width and across.target % LINE == 0 and across.extent * nest.width % LINE == 0
    else:
        stream = stream and along.target % LINE == 0 and across.target == nest.width and nest.width * RUNS_AT_ONCE % LINE == 0
    while True:
        at = 0
        while at < along.extent:
            runs.source, runs.target = source + at * along.source, target + at * along.target
            runs.inner = min(strip, along.extent - at)
            # Other loops may lead anywhere.
            runs.stream = stream and (converts or <uintptr_t> runs.target % LINE == 0)
            if converts:
                ends.table.convert(&runs, ends.change.conversion, ends.change.scale, ends.change.zero_point)
            else:
                ends.table.copy(&runs)
            at += strip
        if not advance(nest, index, outer, inner, &source, &target):
            break
    if stream:
        ends.table.settle()


cdef void walk(const Job *job, Nest *nest, int axis, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
    """Cut the box along `axis` and those after it into nests, and run them; `source` and `target` are where the box starts."""
    cdef const Py_ssize_t *steps = job.steps[axis]
    cdef Py_ssize_t at, end, edge, block, limit, count, room
    cdef int depth = nest.depth, level, digit
    cdef bint filling = nest.filling
    cdef Loop *loop
    if axis == job.target.rank:
        nest.source, nest.target = source, target
        run(job, nest)
        return
    at = job.box.first[axis]
    end = edge = job.box.end[axis]
    block = 1
    if job.fills and end == job.target.shape[axis] and job.target.block_count:
        edge = round_up(end, block_product(job.target, axis))
        if job.target.block_axes[job.target.block_count - 1] == axis:
            block = job.target.block_sizes[job.target.block_count - 1]
    while at < edge:
        nest.filling = filling or at >= end
        limit = end if at < end else edge
        level = job.levels[axis] - 1
        while at % steps[level] or at + steps[level] > limit:
            level -= 1
        count = (limit - at) // steps[level]
        if level < job.levels[axis] - 1:
            count = min(count, (steps[level + 1] - at % steps[level + 1]) // steps[level])
        elif not job.even[axis]:
            count = 1
        room = count
        if level == 0 and at + count == end and end < edge:
            # The rest of the innermost block is filled in the same go.
            room = max(count, round_up(end, block) - at)
        for digit in range(level + 1):
            loop = &nest.loops[nest.depth]
            loop.extent = count if digit == level else steps[digit + 1] // steps[digit]
            loop.room = room if digit == level else loop.extent
            loop.source = axis_offset(job.source, axis, steps[digit]) * job.source.itemsize
            loop.target = axis_offset(job.target, axis, steps[digit]) * job.target.itemsize
            nest.depth += 1
        walk(job, nest, axis + 1, source + axis_offset(job.source, axis, at) * job.source.itemsize,
             target + axis_offset(job.target, axis, at) * job.target.itemsize)
        nest.depth = depth
        at += room if room > count else count * steps[level]
    nest.filling = filling


cdef void walk_all(Job *job) noexcept nogil:
    """Every nest of a box whose ends are known."""
    cdef Nest nest
    cdef int axis
    for axis in range(job.target.rank):
        if job.box.first[axis] >= job.box.end[axis]:
            return
        split_axis(job, axis)
    nest.depth = 0
    nest.filling = False
    walk(job, &nest, 0, job.source.offset * job.source.itemsize, job.target.offset * job.target.itemsize)


cdef void move_box(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
                   const Fill *fill, Py_ssize_t bytes, const Change *change) noexcept nogil:
    """What `move` does where the bits stay, or where elements are converted that are in the same order at both ends. `bytes`: of the elements."""
    cdef Ends ends = Ends(table, source, target, fill, bytes, change)
    cdef Job job
    job.source, job.target, job.box, job.fills, job.ends, job.plan = source_layout, target_layout, box, fill is not NULL, &ends, NULL
    walk_all(&job)


cdef bint tails(const Layout *layout) noexcept nogil:
    """Whether the last blocks of an axis are not whole."""
    cdef int axis
    for axis in range(layout.rank):
        if layout.shape[axis] % block_product(layout, axis):
            return True
    return False


cdef void plan_box(Plan *plan, const Layout *source_layout, const Layout *target_layout, const Box *box, bint fills) noexcept nogil:
    cdef Job job
    job.source, job.target, job.box, job.fills, job.ends, job.plan = source_layout, target_layout, box, fills, NULL, plan
    plan.count = 0
    plan.turns = False
    plan.bytes = max(whole_blocks(source_layout), whole_blocks(target_layout)) * max(source_layout.itemsize, target_layout.itemsize)
    walk_all(&job)
    if source_layout.itemsize != target_layout.itemsize and tails(source_layout if source_layout.itemsize > target_layout.itemsize else target_layout):
        plan.turns = True


cdef void plan_all(Plan *plan, const Layout *source_layout, const Layout *target_layout) noexcept nogil:
    cdef Box box
    all_of(&box, target_layout)
    plan_box(plan, source_layout, target_layout, &box, target_layout.block_count > 0)


cdef bint shared_loop(const Plan *plan, bint short_steps, int *places) noexcept nogil:
    """Find the loop of the largest steps that all nests have, and in whose steps they lie between each other: where it is in each of them."""
    cdef const Nest *first = &plan.nests[0]
    cdef const Nest *nest
    cdef const Loop *loop
    cdef const Loop *other
    cdef int found[PLANNED_NESTS]
    cdef Py_ssize_t largest = 0, step
    cdef int place, i, k
    for place in range(first.depth):
        loop = &first.loops[place]
        step = max(size_of(loop.source), loop.target)
        if step <= largest or loop.extent == 1 or loop.room > loop.extent:
            continue
        # Shorter cells, and steps of more lines, gain less than it costs.
        if step < SHARED_BYTES and (step > 2 * LINE or first.width < LINE // 2 or not short_steps):
            continue
        found[0] = place
        for i in range(1, plan.count):
            nest = &plan.nests[i]
            found[i] = -1
            for k in range(nest.depth):
                other = &nest.loops[k]
                if (other.extent == loop.extent == other.room and other.target == loop.target and (other.source == loop.source or nest.filling)
                        and (size_of(nest.target - first.target) < loop.target
                             or (not nest.filling and size_of(nest.source - first.source) < size_of(loop.source)))):
                    found[i] = k
            if found[i] < 0:
                break
        else:
            largest = step
            for i in range(plan.count):
                places[i] = found[i]
    return largest > 0


cdef void together(const Ends *ends, Plan *plan) noexcept nogil:
    """Run all nests, a part of the steps they share at a time: what one of them leaves in the caches the next one finds there."""
    cdef int places[PLANNED_NESTS]
    cdef Loop loop
    cdef Nest *nest
    cdef Py_ssize_t done = 0, each, count
    cdef int i
    # With vectors of 16 bytes it costs a tenth.
    if not shared_loop(plan, ends.table.vector_bytes > 16, places):
        for i in range(plan.count):
            perform(ends, &plan.nests[i])
        return
    loop = plan.nests[0].loops[places[0]]
    each = max(1, SHARED_BYTES // max(size_of(loop.source), loop.target) // 16 * 16)
    while done < loop.extent:
        count = min(each, loop.extent - done)
        for i in range(plan.count):
            plan.nests[i].loops[places[i]].extent = plan.nests[i].loops[places[i]].room = count
        if count == 1:
            together(ends, plan)
        else:
            for i in range(plan.count):
                perform(ends, &plan.nests[i])
        for i in range(plan.count):
            nest = &plan.nests[i]
            nest.source += count * nest.loops[places[i]].source
            nest.target += count * loop.target
        done += count
    for i in range(plan.count):
        nest = &plan.nests[i]
        nest.source -= loop.extent * nest.loops[places[i]].source
        nest.target -= loop.extent * loop.target
        nest.loops[places[i]].extent = nest.loops[places[i]].room = loop.extent


cdef void follow(const Plan *plan, const MoveTable *table, const char *source, char *target, const Fill *fill, const Change *change) noexcept nogil:
    cdef Ends ends = Ends(table, source, target, fill, plan.bytes, change)
    cdef Plan parts
    cdef int i
    if plan.count > 1 and plan.bytes > SCATTERED_BYTES:
        parts = plan[0]
        together(&ends, &parts)
    else:
        for i in range(plan.count):
            perform(&ends, &plan.nests[i])


cdef void move(const MoveTable *table, const Layout *source_layout, const char *source, const Layout *target_layout, char *target, const Box *box,
               const Fill *fill, const Change *change) noexcept nogil:
    cdef Py_ssize_t bytes = max(source_layout.itemsize, target_layout.itemsize)
    cdef int axis
    cdef Plan plan
    for axis in range(target_layout.rank):
        bytes *= box.end[axis] - box.first[axis]
    plan.turns = False
    if change is not NULL:
        plan_box(&plan, source_layout, target_layout, box, False)
    if plan.turns:
        convert(table, source_layout, source, target_layout, target, box, fill, bytes, change)
    else:
        move_box(table, source_layout, source, target_layout, target, box, fill, bytes, change)


include "converted_parts.pxi"
