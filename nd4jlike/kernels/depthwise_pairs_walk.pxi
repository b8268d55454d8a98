# The walk over images by pairs, windows and outputs one by one: strips of columns, one block of channels after the other. Lines, spread rows and gathered taps
# go on from here by walks of their own (ADR 0004).

cdef enum:
    # Input rows that one block after another reads: they stay in a second-level cache.
    BLOCK_ROWS_BYTES = 256 << 10
    # The same where outputs are computed one by one: in a first-level cache, as blocks share cache lines.
    APART_ROWS_BYTES = 20 << 10
    # Pixels of pairs of rows for which a block is begun, at least.
    BLOCK_PIXELS = 448
    # Inputs and outputs that a second-level cache does not hold: windows of several blocks fetch their next rows ahead. All but Zen 4 do so by themselves as
    # long as the last-level cache has room.
    FAR_BYTES = 1300 << 10


cdef inline Py_ssize_t steps_to(Py_ssize_t distance, Py_ssize_t step) noexcept nogil:
    """How many steps, almost always of 1, reach a distance: divisions would take as long as a short strip."""
    return max(0, distance) if step == 1 else divide_up(max(0, distance), step)


cdef void lay_strip(
    const Pairs *job, const Problem *problem, PairsStrip *strip, const char *x, char *y, Py_ssize_t row, Py_ssize_t column, Py_ssize_t columns,
    Py_ssize_t block,
) noexcept nogil:
    """The strip of one block: output rows from `row` on and `columns` columns from `column` on, a dilation apart."""
    cdef Py_ssize_t channel = channel_of_block(job, problem, block), i, at, apart = 0, x_row = row * problem.stride_height - problem.pad_top
    cdef Py_ssize_t x_column = column * job.stride - problem.pad_left, down = problem.dilation_height, across = problem.dilation_width
    cdef Py_ssize_t parts = parts_of(job, problem, block)
    strip.columns = columns
    if parts > 1:
        strip.columns = columns_of_part(columns, parts)
        apart = columns - strip.columns if parts == 2 else (columns - strip.columns) // 3
    elif overlaps(job, block):
        parts = 2
    strip.parts = <int> parts
    # An image may be narrower than a tile.
    strip.width = pairs_columns_read(job, max(strip.columns, tile_of(job)))
    strip.first_row = steps_to(-problem.halo[0] - x_row, down)
    strip.end_row = steps_to(problem.height + problem.halo[1] - x_row, down)
    for i in range(parts):
        at = x_column + i * apart * job.stride * across
        strip.first[i] = steps_to(-problem.halo[2] - at, across)
        strip.end[i] = steps_to(problem.width + problem.halo[3] - at, across)
    strip.begin = strip.first[0]
    strip.to = strip.end[parts - 1]
    # Parts further to the right begin inside sooner.
    strip.least_first = strip.first[parts - 1]
    strip.largest_end = strip.end[0]
    strip.stored = problem.channels - channel
    strip.readable = strip.stored + problem.channel_room
    strip.block = <const vi32 *> (<const char *> problem.packed + job.weights) + block * job.block_vectors
    strip.x = <const signed char *> x + x_row * problem.x_strides[1] + x_column * problem.x_strides[2] + channel
    strip.x_row = down * problem.x_strides[1]
    strip.x_column = across * problem.x_strides[2]
    strip.x_apart = apart * job.stride * strip.x_column + (job.between if overlaps(job, block) else 0)
    strip.y = <signed char *> y + row * problem.y_strides[1] + column * problem.y_strides[2] + channel
    strip.y_row = phases_of(job, problem) * problem.y_strides[1]
    strip.y_column = across * problem.y_strides[2]
    strip.y_apart = apart * strip.y_column + (job.between if overlaps(job, block) else 0)


cdef void run_pairs(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef const Pairs *job = <const Pairs *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Problem turned
    cdef Py_ssize_t image, row, rows
    if WINDOWS and job.framed:
        turned = framed_of(problem, job.taps, job.above, job.left)
        walk_pairs(&turned, x, y, begin, end)
        return
    if WINDOWS or not job.turned:
        walk_pairs(problem, x, y, begin, end)
        return
    turned = turned_of(problem)
    while begin < end:
        image = begin // problem.out_height
        row = begin - image * problem.out_height
        rows = turned.out_width = min(LINE_ROWS, min(problem.out_height - row, end - begin))
        turned.pad_left = problem.pad_top - row * problem.stride_height
        walk_pairs(&turned, x + image * problem.x_strides[0], y + image * problem.y_strides[0] + row * problem.y_strides[1], 0, turned.out_height)
        begin += rows


cdef void walk_pairs(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows begin to end of all images."""
    cdef char memory[LONG_RING_BYTES + 64]
    cdef char *ring = memory + (-<Py_ssize_t> memory & 63)
    cdef const Pairs *job = <const Pairs *> (<const char *> problem.packed + HEADER_BYTES)
    cdef Py_ssize_t size = problem.batch * (problem.height * problem.width + problem.out_height * problem.out_width) * problem.channels
    cdef bint far = size > FAR_BYTES if problem.halving else problem.distance >= CACHE_EDGE
    cdef const PairsKernel *kernels = <const PairsKernel *> (job + 1) + (job.blocks if far else 0)
    cdef PairsStrip strip
    cdef Py_ssize_t phases = phases_of(job, problem), tile = 1 if job.apart else PAIRS_COLUMNS, image, row, last, down, across, outputs, column, columns
    cdef Py_ssize_t block, chunk, i
    # Output columns of a strip with all its lanes.
    cdef Py_ssize_t all_columns = job.columns * job.parts if problem.channels < VECTOR_BYTES else job.columns
    strip.blank = <const signed char *> problem.packed + job.padding
    strip.rescaling = job.rescaling
    strip.skips = problem.stride_height > job.stride
    strip.zeros = problem.input_zero_point == -INPUT_OFFSET
    strip.edges = 0
    strip.wide = job.wide
    strip.flip = flip_of(problem.element)
    strip.y_flip = splat_i8(strip.flip)
    strip.bounded = strip.flip or problem.quantized_min > -128 or problem.quantized_max < 127
    strip.zero_point = splat_i16(problem.output_zero_point)
    strip.low = splat_i8(problem.quantized_min)
    strip.high = splat_i8(problem.quantized_max)
    strip.order = order_of(not UNPACKED or (job.spread and not UNORDERED))
    for block in range(4):
        strip.pairs[block] = ring
    if GATHERS and job.gathered:
        strip.order = order_of(True)
        run_gathered(problem, &strip, ring, x, y, begin, end)
        return
    if job.spread:
        run_spread(problem, &strip, ring, x, y, begin, end)
        return
    strip.taps_across = job.taps
    strip.count = job.pairs
    strip.lower = job.pairs if problem.kernel_height % 2 or job.output_rows == 1 else job.pairs - 1
    strip.weights = job.entries * CELL_PLANES
    if job.apart:
        strip.cells = job.entries
        strip.stride = job.stride
        strip.taps_down = problem.kernel_height
        strip.stride_down = problem.stride_height
    if job.cells:
        run_lines(problem, &strip, x, y, begin, end)
        return
    # Divisions would take as long as a tiny image.
    chunk = problem.out_height
    if job.apart and job.blocks > 1:
        chunk = max(1, (BLOCK_ROWS_BYTES if WINDOWS else APART_ROWS_BYTES) // (problem.width * problem.channels * problem.stride_height))
    elif job.blocks > 1 and problem.height * problem.width * problem.channels > BLOCK_ROWS_BYTES:
        chunk = BLOCK_ROWS_BYTES // max(1, problem.width * problem.channels * problem.stride_height) // (2 * phases)
        chunk = max(max(1, BLOCK_PIXELS // problem.width), chunk) * 2 * phases
    while begin < end:
        image = begin // problem.out_height if problem.batch > 1 else 0
        row = begin - image * problem.out_height
        last = min(min(problem.out_height, row + end - begin), row + chunk)
        begin += last - row
        for down in range(min(phases, last - row)):
            for across in range(problem.dilation_width):
                outputs = steps_to(problem.out_width - across, problem.dilation_width)
                column = 0
                while column < outputs:
                    # A last strip is as narrow as its tiles, but for parts side by side.
                    columns = min(all_columns, outputs if WINDOWS else divide_up(outputs - column, tile) * tile, outputs)
                    column = min(column, outputs - columns)
                    for block in range(job.blocks):
                        if block == 0 or parts_of(job, problem, block) > 1 or (OVERLAPS and block == job.blocks - 1):
                            lay_strip(
                                job, problem, &strip, x + image * problem.x_strides[0], y + image * problem.y_strides[0], row + down,
                                across + column * problem.dilation_width, columns, block,
                            )
                        else:
                            strip.x += VECTOR_BYTES
                            strip.y += VECTOR_BYTES
                            strip.block += job.block_vectors
                            strip.stored -= VECTOR_BYTES
                            strip.readable -= VECTOR_BYTES
                        for i in range(job.pairs):
                            strip.pairs[i] = ring + i * strip.width * PAIR_BYTES
                        kernels[block](&strip, steps_to(last - row - down, phases))
                    column += columns
