# The walk over rows of pixels that depthwise_float.pxi has chosen tiles for: where tiles lie, which of them may reach outside the image, in what order the
# blocks of channels follow; and the weights as tiles read them.

cdef void place_rows(const Line *line, Tile *tile, Py_ssize_t row, bint two) noexcept nogil:
    """Which input rows inside the image an output row, and the next of its phase, reach."""
    cdef Py_ssize_t position = row * line.stride - line.pad
    cdef int taps = <int> line.taps, begin = <int> divide_up(-position, line.dilation), end = <int> divide_up(line.extent - position, line.dilation)
    tile.rows = 2 if two else 1
    tile.step = <int> line.step if two else 0
    if not two:
        tile.upper = Range(begin, min(taps, end))
        tile.both = tile.lower = Range(0, 0)
        return
    tile.upper = Range(begin, min(min(taps, tile.step), end))
    tile.both = Range(max(begin, tile.step), min(taps, end))
    tile.lower = Range(max(begin, max(taps, tile.step)), min(taps + tile.step, end))


cdef inline bint whole_rows(const Line *line, Tile *tile, Py_ssize_t row, Py_ssize_t count, Py_ssize_t end) noexcept nogil:
    """Whether `count` output rows of a phase, from `row` on, are there, and all input rows that they reach but as many as a centred filter does not."""
    cdef Py_ssize_t first = row * line.stride - line.pad, last = first + ((count - 1) * line.step + line.taps - 1) * line.dilation
    tile.above, tile.below = <int> divide_up(-first, line.dilation), <int> divide_up(last - line.extent + 1, line.dilation)
    return row + (count - 1) * line.phases < end and max(tile.above, tile.below) <= line.taps // 2


cdef inline unsigned long long first_bits(Py_ssize_t count) noexcept nogil:
    return (<unsigned long long> 1 << count) - 1


cdef inline unsigned long long columns_outside(const Line *across, Py_ssize_t column, Py_ssize_t columns) noexcept nogil:
    """Input columns outside the image, of those that so many outputs of a phase reach from an output on."""
    cdef Py_ssize_t position = column * across.stride - across.pad, reach = (columns - 1) * across.step + across.taps
    cdef Py_ssize_t begin = min(reach, divide_up(-position, across.dilation))
    cdef Py_ssize_t end = min(reach, divide_up(across.extent - position, across.dilation))
    return (first_bits(begin) | ~first_bits(end)) & first_bits(reach)


# Tiles side by side that leave out the same input columns.
cdef struct Place:
    # From the first pixel of a row of inputs and of outputs, in bytes.
    Py_ssize_t x, y
    Py_ssize_t count
    unsigned long long outside
    int stored, columns
    # For one row or two; for two, and for a tall tile's, where `whole_rows`.
    OneTile some, whole, tall
    # Of the last 8 channels.
    OneTile end, tall_end
    # Instead of a whole tile, or of a tall one, where SPLIT_TILE columns suffice; NULL: none.
    OneTile less
    bint less_tall
    Py_ssize_t less_x, less_y
    unsigned long long less_outside


cdef void find_less(const Rows *job, const Tile *tile, Place *place, Py_ssize_t column) noexcept nogil:
    """The tile of the last SPLIT_TILE columns."""
    cdef const Line *across = &job.across
    cdef Tile less = tile[0]
    cdef int where
    less.outside, less.stored = columns_outside(across, column, SPLIT_TILE), SPLIT_TILE
    where = where_of(&less, SPLIT_TILE)
    if where < ANYWHERE:
        place.less = small_tiles[across.taps][across.step][where]
        place.less_tall = place.less == NULL
        if place.less_tall:
            place.less = job.tiles[SPLIT_TALL_TILE + where]
        place.less_x, place.less_y, place.less_outside = (column * across.stride - across.pad) * across.x, column * across.y, less.outside


cdef Py_ssize_t fit_columns(const Rows *job, Py_ssize_t outputs, Py_ssize_t rest, Py_ssize_t *most) noexcept nogil:
    """Columns of the next tile, `rest` of a row's outputs having none yet, and how many such tiles may follow. Those that fit rows have 7
    and 6, after as few of 4 as let them: 9 are fewer tiles of 7 and 4."""
    cdef Py_ssize_t parts = divide_up(rest, WIDE_TILE), wide = rest - GENERAL_TILE * parts
    most[0] = rest
    if not job.fits or outputs < NARROW_TILE:
        return job.columns
    if wide == 0:
        return GENERAL_TILE
    most[0] = max(1, wide)
    return WIDE_TILE if wide > 0 or rest == WIDE_TILE + SPLIT_TILE else NARROW_TILE


cdef Py_ssize_t find_places(
    const Rows *job, Tile *tile, Place *places, Py_ssize_t first, Py_ssize_t last, Py_ssize_t *phase, Py_ssize_t *done,
) noexcept nogil:
    """The next places of a row of outputs first to last, at most PLACES; `phase` and `done`, 0 at first, tell how far they reach."""
    cdef const Line *across = &job.across
    cdef Py_ssize_t found = 0, outputs, width, most, columns, column, position, reach, begin, end
    cdef int where
    while phase[0] < min(across.phases, last - first) and found < PLACES:
        outputs = divide_up(last - first - phase[0], across.phases)
        # The last tile computes some outputs again, which is cheaper than a narrower one but for the narrowest.
        places.less = NULL
        width, most = job.columns, outputs
        if VECTOR_BYTES > 16:
            width = fit_columns(job, outputs, outputs - done[0], &most)
        columns = SPLIT_TILE if job.halves and SPLIT_TILE <= outputs < (width if job.down.outputs >= MANY_ROWS else SPLIT_TILE + 1) else width
        if done[0] + columns > outputs:
            if job.narrows and done[0] and outputs - done[0] <= SPLIT_TILE:
                find_less(job, tile, places, first + phase[0] + (outputs - SPLIT_TILE) * across.phases)
            done[0] = max(0, outputs - columns)
        if columns < width:
            find_less(job, tile, places, first + phase[0] + done[0] * across.phases)
        column = first + phase[0] + done[0] * across.phases
        position = column * across.stride - across.pad
        tile.stored = <int> min(outputs - done[0], columns)
        # Inputs behind those of a full tile are nobody's.
        reach = (tile.stored - 1) * across.step + across.taps
        begin = min(reach, divide_up(-position, across.dilation))
        end = max(begin, min(reach, divide_up(across.extent - position, across.dilation)))
        tile.outside = (first_bits(begin) | ~first_bits(end)) & first_bits((width - 1) * across.step + across.taps)
        where = where_of(tile, <int> width)
        places.x, places.y = position * across.x, column * across.y
        places.outside, places.stored, places.count = tile.outside, tile.stored, 1
        if job.pixel and begin < end:
            # Of the outputs from here on that leave out the same columns.
            reach = divide_up(across.extent - (end - 1) * across.dilation - position, across.stride)
            if begin:
                reach = min(reach, divide_up(-(position + (begin - 1) * across.dilation), across.stride))
            places.count = min(outputs - done[0], reach)
        elif where == INSIDE:
            # Of the outputs from here on that reach beyond nothing.
            end = divide_up(across.extent - (across.taps - 1) * across.dilation - position, across.stride * across.phases)
            places.count = min(most, min(outputs - done[0], end) // width)
        places.some = job.tiles[where + (SPREAD if job.spread else 0)]
        places.whole = places.tall = places.end = places.tall_end = NULL
        if where < ANYWHERE and job.split and job.line != NULL:
            places.tall = job.line[where]
        elif where < ANYWHERE and job.upright:
            places.tall = job.line[where]
        elif where < ANYWHERE and job.line != NULL:
            places.whole = job.line[where]
        elif where < ANYWHERE and job.one_row != NULL:
            places.whole = job.one_row[width]
        elif where < ANYWHERE and job.down.taps == across.taps and job.down.step == across.step:
            places.whole = job.eights[0] if job.eights != NULL else job.tiles[SPREAD_WHOLE if job.spread else WHOLE_TILE + where]
            if job.pairs != NULL:
                places.tall = job.pairs
            elif job.tall and job.eights != NULL:
                places.tall = job.eights[1]
            elif job.tall:
                places.tall = job.words if job.words != NULL else job.tiles[(SPLIT_TALL_TILE if job.split else TALL_TILE) + where]
            elif job.words != NULL and across.step > 1:
                places.whole = job.words
            if job.ends and columns == width and (across.taps > 3 or job.blocks <= END_BLOCKS):
                places.end, places.tall_end = job.end_tiles[0], job.end_tiles[1] if not job.split else NULL
        places.columns = <int> width
        done[0] += places.count * columns
        # All outputs of a place in one call, where a few channels are less work than one.
        if job.pixel and (VECTOR_BYTES == 32 or job.blocks < ALIGNED_BLOCKS):
            places.stored, places.count = <int> places.count, 1
        if done[0] >= outputs:
            phase[0] += 1
            done[0] = 0
        places += 1
        found += 1
    return found


cdef Py_ssize_t find_beside(const Rows *job, Place *places, Py_ssize_t columns) noexcept nogil:
    """The places of a row of outputs, so many columns side by side; at most 7, as what is outside on a side counts up or down."""
    cdef const Line *across = &job.across
    cdef Py_ssize_t found = 0, column = 0, position, i
    cdef unsigned long long outside
    cdef Place *place = places
    while column < across.outputs:
        # The last ones may be computed again.
        column = min(column, across.outputs - columns)
        outside = 0
        for i in range(columns + (across.taps - 1) * across.dilation if job.flat else columns * across.taps):
            position = column - across.pad + (i if job.flat else i % columns + i // columns * across.dilation)
            if not 0 <= position < across.extent:
                outside |= <unsigned long long> 1 << i
        if found == 0 or place.outside != outside or place.y + place.count * columns * across.y != column * across.y:
            place = &places[found]
            found += 1
            place.x, place.y = (column - across.pad) * across.x, column * across.y
            place.count, place.outside = 0, outside
            place.tall = beside_tiles[job.flat][outside != 0]
        place.count += 1
        column += columns
    return found


cdef inline Py_ssize_t block_shift(Py_ssize_t block, Py_ssize_t vectors, Py_ssize_t step, Py_ssize_t itemsize) noexcept nogil:
    """Bytes that a block of channels lies farther than if all channels were side by side."""
    return block // vectors * step - (block - block % vectors) * LANES * itemsize if vectors > 1 else 0


cdef Py_ssize_t run_beside(
    const Rows *job, const Tile *given, Py_ssize_t chunk, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    """Output rows from begin on, some columns side by side of some rows of a phase, all phases before the next rows; returns the row after them."""
    cdef const Line *down = &job.down
    cdef Py_ssize_t rows = 2 if job.flat else TALL_ROWS(NARROW_TILE), columns = NARROW_TILE if job.flat else SPLIT_TILE
    cdef Py_ssize_t stop = begin + (end - begin) // (rows * down.phases) * rows * down.phases
    cdef Py_ssize_t row, phase, found, block = 0, i
    cdef Place places[PLACES]
    cdef Tile tile = given[0]
    if begin == stop:
        return stop
    found = find_beside(job, places, columns)
    tile.stride, tile.stored = 0, <int> columns
    tile.x_output, tile.y_column = job.across.x, job.across.y
    if job.flat:
        tile.x_column = tile.x_output
    if job.fetches_beside:
        tile.new_rows = tile.next_rows = <int> rows
        tile.new_columns = tile.next_columns = <int> columns
        tile.next_x = (down.taps - 1) * tile.x_row + (columns + (job.across.taps - 1) * job.across.dilation) * tile.x_output
        tile.next_y = columns * tile.y_column
    while block < job.blocks:
        row = begin
        while row < stop:
            for phase in range(down.phases):
                whole_rows(down, &tile, row + phase, rows, stop)
                for i in range(found):
                    tile.outside = places[i].outside
                    run_tiles(
                        &tile, places[i].tall, blocks, block, min(block + chunk, job.blocks), places[i].count, <int> columns,
                        x + ((row + phase - down.pad) * down.x + places[i].x), y + ((row + phase) * down.y + places[i].y),
                    )
            row += rows * down.phases
        block += chunk
    return stop


cdef inline void find_reached(const Line *down, Running *running, Py_ssize_t row, Range rows, Py_ssize_t outputs, Py_ssize_t first) noexcept nogil:
    """Which of the outputs of a phase, from `first` on, an input row of it reaches; those inside are `rows`."""
    cdef Py_ssize_t output = row // down.step, tap = row % down.step, waiting = divide_up(down.taps, down.step)
    cdef Reached *reached = running.rows
    while tap < down.taps:
        if 0 <= output < outputs:
            reached.tap, reached.held, reached.y = tap, output % waiting * RUNNING_PITCH, (first + output * down.phases) * down.y
            reached.begins = row == rows.begin or tap == 0
            reached.ends = row == rows.end - 1 or tap == down.taps - 1
            reached += 1
        tap += down.step
        output -= 1
    running.count = <int> (reached - running.rows)


cdef void run_sums(const Rows *job, Tile *tile, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end, by rows of inputs."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Py_ssize_t block = 0, phase, part, parts, outputs, done, columns, column, row, output, position, below
    cdef unsigned long long outside
    cdef Range rows
    cdef const char *source
    # With room to begin where in a page the inputs of a chunk end.
    cdef char sums[PAGE_BYTES + MOST_REACHED * RUNNING_PITCH]
    cdef Running running
    running.next = RUNNING_BLOCKS * VECTOR_BYTES
    tile.running = &running
    while block < job.blocks:
        running.first = blocks + block * job.block_vectors
        for phase in range(across.phases):
            # As few tiles as hold the outputs, as even as they can be.
            outputs = divide_up(across.outputs - phase, across.phases)
            parts = divide_up(outputs, WIDE_TILE)
            for part in range(parts):
                done = divide(part * outputs, parts)
                columns = divide((part + 1) * outputs, parts) - done
                column = phase + done * across.phases
                outside = columns_outside(across, column, columns)
                source = x + (column * across.stride - across.pad) * across.x
                running.sums = &sums[0] + ((<uintptr_t> source + block * tile.x_block - tile.back + running.next - <uintptr_t> &sums[0]) & (PAGE_BYTES - 1))
                for output in range(begin, min(begin + down.phases, end)):
                    position, below = output * down.stride - down.pad, divide_up(end - output, down.phases)
                    rows.begin = <int> max(0, divide_up(-position, down.dilation))
                    rows.end = <int> min((below - 1) * down.step + down.taps, divide_up(down.extent - position, down.dilation))
                    for row in range(rows.begin, rows.end):
                        find_reached(down, &running, row, rows, below, output)
                        tile.outside = outside
                        run_tiles(
                            tile, job.running[columns], blocks, block, min(block + RUNNING_BLOCKS, job.blocks), 1, columns,
                            source + (position + row * down.dilation) * down.x, y + column * across.y,
                        )
        block += RUNNING_BLOCKS


cdef void run_resident(
    const Rows *job, Tile *tile, Py_ssize_t chunk, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    """Output rows begin to end, columns first to last, by rows of outputs whose weights stay in registers; those of a phase share inputs."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Py_ssize_t block = 0, tap, reach, phase, row
    tile.stored = <int> (last - first)
    for tap in range(across.taps):
        reach = across.pad - tap * across.dilation
        tile.begins[tap] = divide_up(reach, across.stride) - first
        tile.ends[tap] = divide_up(across.extent + reach, across.stride) - first
    x += (first * across.stride - across.pad) * across.x - down.pad * down.x
    y += first * across.y
    while block < job.blocks:
        for phase in range(min(down.phases, end - begin)):
            row = begin + phase
            while row < end:
                place_rows(down, tile, row, False)
                run_row(tile, blocks, block, min(block + chunk, job.blocks), x + row * down.stride * down.x, y + row * down.y)
                row += down.phases
        block += chunk


cdef void run_lengthy(
    const Rows *job, Tile *tile, Py_ssize_t chunk, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    """Output rows begin to end, columns first to last, by two rows of outputs of a phase, of one block of channels before the next."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Py_ssize_t block = 0, row_phase, row, phase, outputs, done, column, position
    tile.cut = down.taps == 1
    # What two rows of outputs add, of the columns that a tile adds.
    if job.fetches:
        tile.new_rows, tile.next_rows = <int> (2 * down.step), 2
    tile.new_columns = tile.next_columns = LONG_TILE
    tile.next_x = (down.taps - down.step) * tile.x_row + (across.taps - 1) * tile.x_column
    tile.next_y = 0
    while block < job.blocks:
        for row_phase in range(min(down.phases, end - begin)):
            row = begin + row_phase
            while row < end:
                place_rows(down, tile, row, row + down.phases < end)
                for phase in range(across.phases):
                    outputs, done = divide_up(last - first - phase, across.phases), 0
                    while done < outputs:
                        column = first + phase + max(0, min(done, outputs - LONG_TILE)) * across.phases
                        position = column * across.stride - across.pad
                        tile.stored = <int> min(outputs, max(LONG_TILE, min(LONG_OUTPUTS, outputs - done)))
                        tile.begins[0] = divide_up(-position, across.dilation)
                        tile.ends[0] = divide_up(across.extent - position, across.dilation)
                        run_long(
                            tile, blocks, block, min(block + chunk, job.blocks), x + position * across.x + (row * down.stride - down.pad) * down.x,
                            y + row * down.y + column * across.y,
                        )
                        done += tile.stored
                row += 2 * down.phases
        block += chunk


cdef inline Py_ssize_t stored_lanes(const Rows *job, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
    """Lanes first to end as tiles take them: a mask (simd.h), or how many there are, LANES being all of them, of doubles too."""
    if VECTOR_BYTES == 64 and job.itemsize < 8:
        return (1 << end) - (1 << first)
    return LANES if end == job.lanes else end


cdef inline Py_ssize_t period_of(const Rows *job) noexcept nogil:
    """Tile.period."""
    cdef Py_ssize_t period = lowest_bit(PAGE_BYTES | job.across.x | job.across.y | job.down.x | job.down.y)
    return period if period >= DELAYED_PERIOD and not (job.spread or job.x_vectors or job.y_vectors) else 0


cdef inline bint waits_for_itself(Py_ssize_t period, const char *x, const char *y) noexcept nogil:
    """Whether a block's loads wait for the stores of the same block (Tile.period): those are at their place, or within a line of it."""
    return period != 0 and ((y - x + LINE_BYTES - 1) & (period - 1)) < 2 * LINE_BYTES - 1


cdef inline Py_ssize_t blocks_together(const Rows *job, const Problem *problem) noexcept nogil:
    """Images of one block that are read side by side; from memory those of a line."""
    if job.y_vectors != 1 or problem.distance < CACHE_EDGE:
        return BLOCKS_TOGETHER
    return BLOCKS_AT_EDGE if problem.distance < IN_MEMORY else max(1, LINE_BYTES // (job.lanes * job.itemsize))


cdef void share_tile(Rows *job, const Problem *problem) noexcept nogil:
    """What all tiles of a call have in common, and how many blocks of channels come before the next tile."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Tile *tile = &job.tile
    cdef Py_ssize_t parts = 1, alone, shared = 2 * SHARED_BYTES if job.fetches else SHARED_BYTES
    # All channels of a tile before the next tile, which is the order in memory; unless they are elsewhere, and the next row of tiles would not find its inputs
    # in the cache, or the next tile in the first one.
    if problem.distance < IN_MEMORY or job.lengthy:
        parts = divide_up((down.taps + 2 * down.step) * across.extent * across.x + job.blocks * job.block_vectors * VECTOR_BYTES, shared)
    if job.parted:
        parts = max(parts, job.channels * job.itemsize // (FEW_TOGETHER_BYTES if job.rows_stay else TOGETHER_BYTES))
    elif job.pixel and not job.resident and (VECTOR_BYTES == 64 or (VECTOR_BYTES == 32 and across.dilation == 1 and across.taps > across.step)):
        alone = job.blocks * job.block_vectors * VECTOR_BYTES // ALONE_BYTES
        # Outputs side by side find little of what they share where pixels share sets.
        parts = max(parts, min(alone, 2) if VECTOR_BYTES == 32 and lowest_bit(across.x) >= ALONE_PIXEL_BYTES else alone)
    job.chunk = divide_up(job.blocks, max(1, parts))
    tile.x_row = down.dilation * down.x
    tile.x_column = across.dilation * across.x
    tile.x_output = across.phases * across.stride * across.x
    tile.y_row = down.phases * down.y
    tile.y_column = across.phases * across.y
    tile.block_vectors = job.block_vectors
    tile.whole_blocks = (job.channels + job.back) // job.lanes
    tile.back = job.back * job.itemsize
    tile.x_block = tile.y_block = job.lanes * job.itemsize
    tile.x_tail = tile.y_tail = first_channel(job, job.blocks - 1) * job.itemsize
    # Blocks of one vector are that far apart, larger ones are images of their own.
    if job.x_vectors == 1:
        tile.x_block, tile.x_tail = job.x_step, (job.blocks - 1) * job.x_step
        job.chunk = blocks_together(job, problem)
    elif job.x_vectors:
        job.chunk = job.x_vectors
    if job.y_vectors == 1:
        tile.y_block, tile.y_tail = job.y_step, (job.blocks - 1) * job.y_step
    elif job.y_vectors:
        job.chunk = common_divisor(job.y_vectors, job.x_vectors)
    tile.tail_lanes = stored_lanes(job, 0, job.lanes if job.overlapped else (job.channels + job.back) % job.lanes)
    tile.first_lanes = tile.whole_lanes = stored_lanes(job, 0, job.lanes)
    tile.ahead = 0
    if job.lined:
        tile.ahead, tile.first_lanes = tile.back, stored_lanes(job, job.back, job.lanes)
    tile.spread = job.spread
    tile.period = period_of(job)
    # Pixels of a place leave out the same columns.
    tile.taps, tile.stride = <int> across.taps, <int> (0 if job.pixel else across.step)
    tile.new_rows = tile.next_rows = 0
    tile.touches = job.touches
    tile.eight = NULL
    tile.eight_bytes, tile.eight_block = (job.channels - EIGHT) * job.itemsize, job.blocks
    if job.fetches:
        tile.new_columns, tile.next_columns = job.columns * tile.stride, job.columns
        tile.next_x = (down.taps - down.step) * tile.x_row + (tile.new_columns + across.taps - across.step) * tile.x_column
        tile.next_y = job.columns * tile.y_column


cdef void run_image(
    const Rows *job, const vf32 *limits, const vf32 *blocks, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Output rows begin to end, columns first to last."""
    cdef const Line *down = &job.down
    cdef const Line *across = &job.across
    cdef Py_ssize_t chunk = job.chunk, block = 0, row_phase, row, rows, found, phase, done, x_shift, y_shift, i, parts
    cdef bint whole, tall, paired
    cdef Range pairs
    cdef Py_ssize_t stop
    cdef const char *x_row
    cdef char *y_row
    cdef Place places[PLACES]
    cdef OneTile one
    cdef Tile tile = job.tile
    tile.limits = limits
    if VECTOR_BYTES == 64:
        if job.running != NULL:
            run_sums(job, &tile, blocks, x, y, begin, end)
            return
        if job.resident:
            run_resident(job, &tile, chunk, blocks, x, y, begin, end, first, last)
            return
        if job.lengthy:
            run_lengthy(job, &tile, chunk, blocks, x, y, begin, end, first, last)
            return
    if VECTOR_BYTES > 16:
        if job.walking != NULL:
            run_walking(job, &tile, blocks, x, y, begin, end)
            return
    # Up to 3 rows are all computed before any is stored.
    if job.image != NULL and end - begin == down.outputs and (down.outputs <= 3 or not waits_for_itself(tile.period, x, y)):
        x -= down.pad * down.x + across.pad * across.x
        while block < job.blocks:
            run_tiles(
                &tile, job.image, blocks, block, min(block + chunk, job.blocks), 1, job.columns,
                x + block_shift(block, job.x_vectors, job.x_step, job.itemsize), y + block_shift(block, job.y_vectors, job.y_step, job.itemsize),
            )
            block += chunk
        return
    if VECTOR_BYTES > 16:
        if job.beside:
            begin = run_beside(job, &tile, chunk, blocks, x, y, begin, end)
            if begin == end:
                return
    phase = done = 0
    while True:
        found = find_places(job, &tile, places, first, last, &phase, &done)
        if found == 0:
            break
        tall = True
        for i in range(found):
            tall = tall and places[i].tall != NULL
        pairs = paired_rows(down) if tall and job.pairs != NULL else Range(0, 0)
        block = 0
        while block < job.blocks:
            x_shift = block_shift(block, job.x_vectors, job.x_step, job.itemsize)
            y_shift = block_shift(block, job.y_vectors, job.y_step, job.itemsize)
            for row_phase in range(min(down.phases, end - begin)):
                row = begin + row_phase
                while row < end:
                    # Fewer columns than a tile's have whole ones of two rows alone: one of them is computed again.
                    if places[0].stored == SPLIT_TILE and places[0].less != NULL and row - down.phases >= begin and row + down.phases >= end:
                        row -= down.phases
                    # Nor have filters of one column: the last three rows are four.
                    if job.upright and row - down.phases >= begin and divide_up(end - row, down.phases) == 3:
                        row -= down.phases
                    # Two and two rather than three and one.
                    rows = TALL_ROWS(job.columns)
                    stop = pairs.begin if row < pairs.begin < end else end
                    paired = pairs.begin <= row < pairs.end
                    whole = paired or (
                        tall and job.pairs == NULL and (rows == 4 or divide_up(end - row, down.phases) != 4) and whole_rows(down, &tile, row, rows, end))
                    if paired:
                        # Pairs are the same wherever threads part.
                        tile.cut = (row - pairs.begin) & 1
                        row -= tile.cut
                        rows = min(WINOGRAD_ROWS, pairs.end - row, (end - row + 1) // 2 * 2)
                        tile.rows = <int> rows
                        tile.cut |= (row + rows > end) << 1
                    elif job.single:
                        rows = 1
                        whole = whole_rows(down, &tile, row, 1, end)
                        place_rows(down, &tile, row, False)
                    elif not whole:
                        rows = 2
                        whole = whole_rows(down, &tile, row, 2, stop)
                        place_rows(down, &tile, row, row + down.phases < stop)
                        if job.pairs != NULL and row + 1 == stop:
                            rows = 1
                    if job.fetches:
                        tile.new_rows, tile.next_rows = <int> (rows * down.step), <int> rows
                    x_row = x + ((row * down.stride - down.pad) * down.x + x_shift)
                    y_row = y + (row * down.y + y_shift)
                    for i in range(found):
                        tile.outside, tile.stored = places[i].outside, places[i].stored
                        if places[i].less != NULL and whole and (rows > 2) == places[i].less_tall:
                            tile.outside, tile.stored, tile.eight = places[i].less_outside, SPLIT_TILE, NULL
                            run_tiles(
                                &tile, places[i].less, blocks, block, min(block + chunk, job.blocks), 1, SPLIT_TILE,
                                x_row + places[i].less_x, y_row + places[i].less_y,
                            )
                            continue
                        parts = places[i].columns // SPLIT_TILE if job.split and rows > 2 else 1
                        if VECTOR_BYTES > 16:
                            if whole and job.line == &small_tiles[3][2][0] and places[i].whole != NULL:
                                parts = job.columns // SPLIT_TILE
                        one, tile.eight = places[i].some, NULL
                        if paired or rows > 2:
                            one, tile.eight = places[i].tall, places[i].tall_end
                        elif whole and places[i].whole != NULL:
                            one, tile.eight = places[i].whole, places[i].end
                        run_tiles(
                            &tile, one, blocks, block, min(block + chunk, job.blocks), places[i].count * parts, places[i].columns // parts,
                            x_row + places[i].x, y_row + places[i].y,
                        )
                    row += rows * down.phases
            block += chunk


cdef inline Py_ssize_t followed_rows(const Line *down) noexcept nogil:
    """Output rows that do not reach the last row of inputs."""
    cdef Py_ssize_t room = down.extent - 1 + down.pad - (down.taps - 1) * down.dilation
    return min(divide_up(room, down.stride), down.outputs)


cdef void run_rows(const Rows *job, const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height."""
    cdef const vf32 *blocks = <const vf32 *> (<const char *> problem.packed + HEADER_BYTES)
    cdef vf32 limits[2]
    cdef const vf32 *clamp = limits if problem.float_min > -INFINITY or problem.float_max < INFINITY else NULL
    cdef Py_ssize_t image, row, rows, followed = 0
    cdef Rows roomy
    cdef Problem lent
    cdef const Rows *one
    # Behind the pixels of all rows but the last one lies memory of this image: whole vectors may be read there, if not written.
    if job.spread and problem.multiplier == 1 and not job.swapped and problem.x_strides[1] >= LANES - job.channels:
        followed = followed_rows(&job.down)
    if followed * problem.out_width < (FOLLOWED_BY_MASKS if VECTOR_BYTES == 64 else FOLLOWED):
        followed = 0
    else:
        lent = problem[0]
        # The packed weights are those of spread inputs.
        lent.channel_room, lent.algorithm = LANES - job.channels, DIRECT
        prepare_rows(&roomy, &lent)
        roomy.block_vectors = roomy.tile.block_vectors = job.block_vectors
    limits[LOW] = splat_f32(problem.float_min)
    limits[HIGH] = splat_f32(problem.float_max)
    if problem.element == FLOAT64:
        (<vf64 *> limits)[LOW] = splat_f64(problem.float_min)
        (<vf64 *> limits)[HIGH] = splat_f64(problem.float_max)
    while begin < end:
        image = begin // problem.out_height
        row = begin % problem.out_height
        rows = min(problem.out_height - row, end - begin)
        one = job
        if row < followed:
            rows = min(rows, followed - row)
            one = &roomy
        if job.swapped:
            run_image(
                job, clamp, blocks, x + image * problem.x_strides[0] * job.itemsize, y + image * problem.y_strides[0] * job.itemsize,
                0, 1, row, row + rows,
            )
        else:
            run_image(
                one, clamp, blocks, x + image * problem.x_strides[0] * job.itemsize, y + image * problem.y_strides[0] * job.itemsize,
                row, row + rows, 0, problem.out_width,
            )
        begin += rows


# What weights are packed as.
ctypedef fused real:
    float
    double


cdef void pack_pairs_of_rows(float *block, Py_ssize_t taps) noexcept nogil:
    """Behind the weights of a block those of pairs of rows, as winograd.h reads them; halves of sums are exact in double."""
    cdef Py_ssize_t lane, column, row, pitch = taps * LANES
    cdef const float *weight
    cdef float *middle
    cdef float *ends
    for column in range(taps):
        for lane in range(LANES):
            weight = block + (CONSTANTS_FLOAT + column) * LANES + lane
            middle = block + (CONSTANTS_FLOAT + taps * taps + column) * LANES + lane
            ends = middle + (taps // 2 + 1) * pitch
            middle[0] = <float> ((<double> weight[0] + weight[pitch] + weight[2 * pitch]) / 2)
            middle[pitch] = <float> ((<double> weight[0] - weight[pitch] + weight[2 * pitch]) / 2)
            ends[0], ends[pitch] = weight[0], -weight[2 * pitch]
            for row in range(3, taps, 2):
                weight += (3 if row == 3 else 2) * pitch
                middle += (2 if row == 3 else 1) * pitch
                ends += 2 * pitch
                middle[0] = <float> (<double> weight[0] + weight[pitch])
                ends[0], ends[pitch] = weight[0], -weight[pitch]


cdef inline Py_ssize_t place_of_lane(const Rows *job, Py_ssize_t block, Py_ssize_t lane, int element) noexcept nogil:
    """Which channel of its block a lane has. Vectors of 8 lanes are in order; those of all lanes, whose order may be another, store no more than these."""
    return lane if (job.eights != NULL or block == job.blocks) and lane < EIGHT else row_lane(<int> lane, element)


cdef void pack_rows(const Rows *job, const Problem *problem, const real *weights, const real *bias, void *packed) noexcept nogil:
    cdef real *target
    cdef real *row
    cdef int *index
    cdef Py_ssize_t block, lane, tap, channel, first, last, before, valid, taps = problem.kernel_height * problem.kernel_width
    cdef Py_ssize_t room = LANES if job.eights != NULL else job.lanes
    memset(packed, 0, HEADER_BYTES)
    for block in range(job.blocks + job.ends):
        target = <real *> (<char *> packed + HEADER_BYTES) + block * job.block_vectors * room
        index = <int *> target + (job.block_vectors - SPREAD_VECTORS) * LANES
        first = first_channel(job, block) // problem.multiplier
        last = min(first_channel(job, block) + job.lanes, job.channels) - 1
        for lane in range(room):
            channel = first_channel(job, block) + place_of_lane(job, block, lane, problem.element)
            target[lane] = bias[channel] if bias != NULL and 0 <= channel < job.channels else 0
            if target[lane] != target[lane]:
                target[lane] = NAN  # with no bits that a half lacks
            if job.spread:
                index[SPREAD_INDEX * LANES + lane] = <int> (min(channel, last) // problem.multiplier - first)
                index[SPREAD_SOURCE * LANES + lane] = 0
        for tap in range(taps):
            row = target + (CONSTANTS_FLOAT + tap) * room
            if problem.element != BFLOAT16:
                channel = first_channel(job, block)
                before = max(0, -channel)
                valid = min(job.lanes, job.channels - channel)
                memset(row, 0, room * sizeof(real))
                memcpy(row + before, weights + tap * job.channels + (channel + before), (valid - before) * sizeof(real))
                continue
            for lane in range(room):
                channel = first_channel(job, block) + place_of_lane(job, block, lane, problem.element)
                row[lane] = weights[tap * job.channels + channel] if 0 <= channel < job.channels else 0
        if VECTOR_BYTES == 64:
            if job.pairs != NULL:
                pack_pairs_of_rows(<float *> target, problem.kernel_width)
        if job.spread:
            index[SPREAD_SOURCE * LANES] = <int> first
            index[SPREAD_SOURCE * LANES + 1] = index[SPREAD_INDEX * LANES + LANES - 1] + 1
