# From a problem to patches: the plan of one call, the borders of the image, the packed weights, and the table that is exported.

cdef enum:
    # What the scratch of one call aims at: it stays in a second-level cache.
    SCRATCH_BYTES = 96 << 10
    # Input rows that are read in place by all blocks before the next rows: they stay in a second-level cache.
    IN_PLACE_BYTES = 256 << 10
    # Output columns in a vector from which on the copy into a band pays where reading in place is possible.
    FOLD_PAYS = 4
    # Blocks of bands for each thread, twice as many of images of so many rows, from which on threads share them, some at a time; of fewer they share the rows.
    BLOCKS_EACH = 4
    TALL_IMAGE = 64
    BANDS_TOGETHER = 2


# How bytes are computed, and the plan of that; of repeated channels their own plan is another one.
cdef enum:
    BANDS
    IN_PAIRS
    IN_QUADS
    IN_REPEATED


cdef struct Bytes:
    Pairs pairs
    Quads quads
    Repeated repeated


cdef struct Need:
    # Bytes.
    Py_ssize_t band, tile


cdef Need scratch_for(const Job *job, bint any_band, Py_ssize_t rows, Py_ssize_t columns) noexcept nogil:
    """Scratch for rows x columns outputs; the tile of outputs starts on a cache line."""
    cdef Need need = Need(0, 0)
    cdef Cut row_cut, column_cut
    if any_band:
        row_cut = cut_axis(&job.rows, 0, rows, False)
        column_cut = cut_axis(&job.columns, 0, columns, job.fold > 1)
        need.band = divide_up(row_cut.runs * row_cut.count * line_bytes(job, &column_cut), 64) * 64
    if not job.direct:
        need.tile = rows * columns * (job.entry_bytes // job.cell) * job.y_itemsize
    return need


cdef Py_ssize_t fold_of(const Job *job) noexcept nogil:
    """Output columns that fit one vector."""
    return job.lanes // job.channels if 0 < job.channels <= job.lanes // 2 else 1


cdef Py_ssize_t prepare(Job *job, const Problem *problem, const vector *kind, bint finite) noexcept nogil:
    """Plan a call; returns the bytes of scratch it needs. `finite`: padding may be multiplied by the weights. `kind` is not read."""
    cdef Py_ssize_t constants, taps_down = 1, taps_across = 1, kernel_height = problem.kernel_height, kernel_width = problem.kernel_width
    cdef bint any_band
    cdef Need need
    cdef int i

    job.problem = problem
    job.channels = problem.channels * problem.multiplier
    job.element = problem.element
    job.itemsize = item_bytes(problem.element)
    job.y_itemsize = job.itemsize if problem.result == QUANTIZED else 8 if problem.result == SUMS and problem.element == INT16 else 4
    job.cell = 8 if vector is vf64 else CELL
    job.lanes = VECTOR_BYTES // job.cell
    if vector is not vi32:
        constants = CONSTANTS_FLOAT
    else:
        constants = CONSTANTS_S8
        # Two taps in a cell, above each other unless that leaves more cells half empty.
        if (kernel_height + 1) // 2 * kernel_width <= (kernel_width + 1) // 2 * kernel_height:
            taps_down = 2
        else:
            taps_across = 2
    for i in range(4):
        job.x_strides[i] = problem.x_strides[i] * job.itemsize
        job.y_strides[i] = problem.y_strides[i] * job.y_itemsize
    # The stride of one channel has no meaning.
    if problem.channels == 1:
        job.x_strides[3] = job.itemsize
    if job.channels == 1:
        job.y_strides[3] = job.y_itemsize

    job.rows = Axis(
        problem.out_height, problem.stride_height, problem.pad_top,
        divide_up(kernel_height, taps_down), problem.dilation_height * taps_down, -problem.halo[0], problem.height + problem.halo[1],
    )
    job.columns = Axis(
        problem.out_width, problem.stride_width, problem.pad_left,
        divide_up(kernel_width, taps_across), problem.dilation_width * taps_across, -problem.halo[2], problem.width + problem.halo[3],
    )
    job.second_row = problem.dilation_height if taps_down == 2 else 0
    job.second_column = problem.dilation_width if taps_across == 2 else 0
    job.block_vectors = constants + job.rows.taps * job.columns.taps
    job.swapped = problem.out_width == 1 and kernel_width == 1
    if job.swapped:
        job.rows, job.columns = job.columns, job.rows
        job.second_row, job.second_column = job.second_column, job.second_row
        job.x_strides[1], job.x_strides[2] = job.x_strides[2], job.x_strides[1]
        job.y_strides[1], job.y_strides[2] = job.y_strides[2], job.y_strides[1]

    job.unit = problem.multiplier == 1 and job.x_strides[3] == job.itemsize
    job.roomy = job.unit and problem.channel_room >= divide_up(job.channels, job.lanes) * job.lanes - job.channels
    job.fold = fold_of(job) if job.columns.outputs > 1 else 1
    job.in_place = False
    job.skip = False
    if vector is not vi32:
        if not finite or (job.unit and job.roomy and job.fold < FOLD_PAYS):
            job.fold = 1
        job.in_place = job.unit and job.fold == 1 and job.itemsize == job.cell
        job.skip = job.fold == 1
    job.blocks = divide_up(job.channels, job.lanes)
    job.entry_bytes = (job.channels if job.fold > 1 else job.lanes) * job.cell
    job.direct = job.y_strides[3] == job.y_itemsize and (job.fold == 1 or job.y_strides[2] == job.channels * job.y_itemsize)

    job.tile_rows = 1
    job.tile_columns = job.columns.outputs
    any_band = not job.in_place or not (job.roomy or job.channels % job.lanes == 0)
    if not any_band and job.direct:
        job.band_bytes = 0
        # Rows are walked in pairs.
        job.tile_rows = max(1, IN_PLACE_BYTES // max(1, 2 * problem.stride_height * problem.width * job.channels * job.itemsize)) * 2
        return 0
    need = scratch_for(job, any_band, 1, job.tile_columns)
    while job.tile_columns > job.fold and need.band + need.tile > SCRATCH_BYTES:
        job.tile_columns = divide_up(divide_up(job.tile_columns, 2), job.fold) * job.fold
        need = scratch_for(job, any_band, 1, job.tile_columns)
    while job.tile_rows < job.rows.outputs:
        more = scratch_for(job, any_band, job.tile_rows * 2, job.tile_columns)
        if more.band + more.tile > SCRATCH_BYTES:
            break
        job.tile_rows *= 2
        need = more
    job.band_bytes = need.band
    return need.band + need.tile


cdef Py_ssize_t span(const Axis *axis, Py_ssize_t begin, Py_ssize_t end, bint skip, Py_ssize_t *first, Py_ssize_t *count) noexcept nogil:
    """The end of a run of outputs from `begin` on that use the same taps, `count` of them from `first` on."""
    cdef Py_ssize_t position = begin * axis.stride - axis.pad, last
    first[0] = 0
    count[0] = axis.taps
    if not skip:
        return end
    first[0] = min(axis.taps, divide_up(axis.low - position, axis.dilation))
    last = min(axis.taps, divide_up(axis.high - position, axis.dilation))
    count[0] = max(0, last - first[0])
    if count[0] < axis.taps:
        return begin + 1
    return min(end, (axis.high - 1 - (axis.taps - 1) * axis.dilation + axis.pad) // axis.stride + 1)


cdef void patch_folded(
    const Job *job, const vector *limits, Patch *patch, const vector *block, const vector *weights, const char *x, char *y, Py_ssize_t columns,
) noexcept nogil:
    """A patch of `columns` output columns; where several share a vector, the last vector may hold fewer of them."""
    cdef Py_ssize_t rest
    if job.fold == 1:
        patch.columns = columns
        patch_outputs(limits, patch, block, weights, x, y)
        return
    patch.columns = columns // job.fold
    rest = columns % job.fold
    patch.x_column *= job.fold
    patch.y_column *= job.fold
    patch.lanes = job.fold * job.channels
    patch_outputs(limits, patch, block, weights, x, y)
    x += patch.columns * patch.x_column
    y += patch.columns * patch.y_column
    patch.columns = 1
    patch.lanes = rest * job.channels
    if rest:
        patch_outputs(limits, patch, block, weights, x, y)


cdef void scatter(const Job *job, const char *tile, char *y, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t channels) noexcept nogil:
    """From a dense tile of outputs to where they belong."""
    cdef Py_ssize_t row, column, channel, pitch = job.entry_bytes // job.cell * job.y_itemsize
    cdef const char *source
    cdef char *target
    for row in range(rows):
        for channel in range(channels):
            source = tile + row * columns * pitch + channel * job.y_itemsize
            target = y + row * job.y_strides[1] + channel * job.y_strides[3]
            for column in range(columns):
                if job.y_itemsize == 4:
                    memcpy(target + column * job.y_strides[2], source + column * pitch, 4)
                elif job.y_itemsize == 2:
                    memcpy(target + column * job.y_strides[2], source + column * pitch, 2)
                elif job.y_itemsize == 8:
                    memcpy(target + column * job.y_strides[2], source + column * pitch, 8)
                else:
                    (target + column * job.y_strides[2])[0] = (source + column * pitch)[0]


cdef void run_tile(
    const Job *job, const vector *limits, const vector *block, const char *image, char *y_image, char *scratch, const vector *blank,
    Py_ssize_t channel, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column, Py_ssize_t columns,
) noexcept nogil:
    """Output rows row to row+rows, columns column to column+columns, of one block of channels from `channel` on."""
    cdef Py_ssize_t channels = min(job.lanes, job.channels - channel)
    cdef Py_ssize_t done_rows, done_columns, end_row, end_column, first_row, first_column, x_row, x_column, origin = 0
    cdef const vector *weights = block + (job.block_vectors - job.rows.taps * job.columns.taps)
    cdef const char *x = scratch
    cdef char *y = scratch + job.band_bytes
    cdef char *y_target = y_image + row * job.y_strides[1] + column * job.y_strides[2] + channel * job.y_strides[3]
    cdef Cut row_cut, column_cut
    cdef Patch whole, patch

    whole.pitch = job.columns.taps
    whole.lanes = channels
    whole.element = job.element
    whole.rescaling = (<const int *> job.problem.packed)[RESCALING]
    whole.problem = job.problem
    if job.in_place and (channels == job.lanes or job.roomy):
        x = image
        origin = (row * job.rows.stride - job.rows.pad) * job.x_strides[1]
        origin += (column * job.columns.stride - job.columns.pad) * job.x_strides[2] + channel * job.itemsize
        whole.x_row = job.rows.stride * job.x_strides[1]
        whole.x_column = job.columns.stride * job.x_strides[2]
        whole.tap_row = job.rows.dilation * job.x_strides[1]
        whole.tap_column = job.columns.dilation * job.x_strides[2]
    else:
        row_cut = cut_axis(&job.rows, row, rows, False)
        column_cut = cut_axis(&job.columns, column, columns, job.fold > 1)
        fill_band(job, <vector *> scratch, image, blank, &row_cut, &column_cut, channel, channels)
        whole.x_column = column_cut.step * job.entry_bytes
        whole.tap_column = column_cut.tap_step * job.entry_bytes
        whole.x_row = row_cut.step * line_bytes(job, &column_cut)
        whole.tap_row = row_cut.tap_step * line_bytes(job, &column_cut)
    if job.direct:
        y = y_target
        whole.y_row = job.y_strides[1]
        whole.y_column = job.y_strides[2]
    else:
        whole.y_column = job.entry_bytes // job.cell * job.y_itemsize
        whole.y_row = columns * whole.y_column

    done_rows = 0
    while done_rows < rows:
        end_row = span(&job.rows, row + done_rows, row + rows, job.skip, &first_row, &whole.tap_rows) - row
        done_columns = 0
        while done_columns < columns:
            end_column = span(&job.columns, column + done_columns, column + columns, job.skip, &first_column, &whole.tap_columns) - column
            patch = whole
            patch.rows = end_row - done_rows
            patch_folded(
                job, limits, &patch, block, weights + first_row * whole.pitch + first_column,
                x + (origin + done_rows * whole.x_row + done_columns * whole.x_column + first_row * whole.tap_row + first_column * whole.tap_column),
                y + (done_rows * whole.y_row + done_columns * whole.y_column), end_column - done_columns,
            )
            done_columns = end_column
        done_rows = end_row
    if not job.direct:
        scatter(job, y, y_target, rows, columns, channels)


cdef Py_ssize_t block_at(const Job *job, Py_ssize_t row) noexcept nogil:
    """The first block that threads do who begin at an output row, in their share of the blocks."""
    return job.blocks if row == job.problem.out_height else job.blocks * row // job.problem.out_height // BANDS_TOGETHER * BANDS_TOGETHER


cdef void run(const Problem *problem, const vector *blocks, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height; `blocks` are those of problem.packed. A part of an image may be all rows of as many of its blocks:
    bands begin anew with each part."""
    cdef Job job
    cdef vector blank[BLANKS]
    cdef vector limits[LIMITS]
    cdef Py_ssize_t image, row, last, rows, column, columns, block, first_block, blocks_end
    cdef int low = problem.quantized_min - problem.output_zero_point, high = problem.quantized_max - problem.output_zero_point, two
    prepare(&job, problem, blocks, (<const int *> problem.packed)[FINITE_FLAG])
    if vector is vf32:
        blank[BLANK_ELEMENTS] = blank[BLANK_CELLS] = splat_f32(0)
        limits[LOW] = splat_f32(problem.float_min)
        limits[HIGH] = splat_f32(problem.float_max)
    elif vector is vf64:
        blank[BLANK_ELEMENTS] = blank[BLANK_CELLS] = splat_f64(0)
        limits[LOW] = splat_f64(problem.float_min)
        limits[HIGH] = splat_f64(problem.float_max)
    else:
        # int16 has the zero point 0.
        two = ((problem.input_zero_point ^ flip_of(problem.element)) & 0xFF) * 0x0101
        blank[BLANK_ELEMENTS] = splat_i32(cell_i32(two, two))
        blank[BLANK_CELLS] = splat_i32(cell_i32(problem.input_zero_point, problem.input_zero_point))
        limits[ZERO_POINT] = splat_i32(problem.output_zero_point)
        if problem.result == REALS:
            (<vf32 *> &limits[LOW])[0] = splat_f32(problem.float_min)
            (<vf32 *> &limits[HIGH])[0] = splat_f32(problem.float_max)
        elif problem.rounding == 0:
            limits[LOW] = splat_i32(low)
            limits[HIGH] = splat_i32(high)
        else:
            (<vf32 *> &limits[LOW])[0] = splat_f32(low)
            (<vf32 *> &limits[HIGH])[0] = splat_f32(high)
    while begin < end:
        image = begin // problem.out_height
        row = begin % problem.out_height
        last = min(problem.out_height, row + end - begin)
        begin += last - row
        first_block, blocks_end = 0, job.blocks
        if problem.shared and job.band_bytes and job.blocks >= (BLOCKS_EACH if problem.out_height < TALL_IMAGE else 2 * BLOCKS_EACH) * problem.shared:
            first_block, blocks_end = block_at(&job, row), block_at(&job, last)
            row, last = 0, problem.out_height
        while row < last:
            rows = min(job.tile_columns if job.swapped else job.tile_rows, last - row)
            column = 0
            while column < problem.out_width:
                columns = 1 if job.swapped else min(job.tile_columns, problem.out_width - column)
                for block in range(first_block, blocks_end):
                    run_tile(
                        &job, limits, blocks + block * job.block_vectors, x + image * job.x_strides[0], y + image * job.y_strides[0], scratch,
                        blank, block * job.lanes,
                        column if job.swapped else row, columns if job.swapped else rows, row if job.swapped else column, rows if job.swapped else columns,
                    )
                column += columns
            row += rows


cdef void run_float(const Problem *problem, const void *x, void *y, void *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef const char *blocks = <const char *> problem.packed + HEADER_BYTES
    cdef Py_ssize_t behind = (<const Py_ssize_t *> problem.packed)[ROWS_BEHIND]
    cdef Sections sections
    if behind:
        run_rows(<const Rows *> (<const char *> problem.packed + behind), problem, <const char *> x, <char *> y, begin, end)
    elif prepare_sections(&sections, problem):
        run_sections(&sections, problem, <const char *> x, <char *> y, <char *> scratch, begin, end)
    elif in_planes(problem) and (<const int *> problem.packed)[FINITE_FLAG]:
        run_in_planes(problem, <const char *> x, <char *> y, <char *> scratch, begin, end)
    elif problem.element == FLOAT64:
        run(problem, <const vf64 *> blocks, <const char *> x, <char *> y, <char *> scratch, begin, end)
    else:
        run(problem, <const vf32 *> blocks, <const char *> x, <char *> y, <char *> scratch, begin, end)


cdef int way_of_bytes(Bytes *plan, const Problem *problem) noexcept nogil:
    cdef const Problem *given = problem
    cdef int way = BANDS
    while True:
        # A build without pairs leaves their code out.
        if BY_PAIRS and prepare_pairs(&plan.pairs, problem):
            return max(way, IN_PAIRS)
        if not (BY_PAIRS and rather_repeated(problem)) and prepare_quads(&plan.quads, problem):
            return max(way, IN_QUADS)
        if not BY_PAIRS or not prepare_repeated(&plan.repeated, problem):
            return IN_QUADS if BY_PAIRS and prepare_quads(&plan.quads, given) else BANDS
        problem, way = &plan.repeated.wide, IN_REPEATED


cdef void run_s8(const Problem *problem, const void *x, void *y, void *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    if BY_PAIRS and problem.multiplier > 1 and (<const int *> problem.packed)[REPEATED_FLAG]:
        run_repeated(problem, <const char *> x, <char *> y, <char *> scratch, begin, end)
        return
    if BY_PAIRS and (<const int *> problem.packed)[PAIRS_FLAG]:
        run_pairs(problem, <const char *> x, <char *> y, begin, end)
        return
    if (<const int *> problem.packed)[QUADS_FLAG]:
        run_quads(problem, <const char *> x, <char *> y, begin, end)
        return
    run(problem, <const vi32 *> (<const char *> problem.packed + HEADER_BYTES), <const char *> x, <char *> y, <char *> scratch, begin, end)


cdef Py_ssize_t prepare_float(Job *job, const Problem *problem, bint finite) noexcept nogil:
    if problem.element == FLOAT64:
        return prepare(job, problem, <const vf64 *> NULL, finite)
    return prepare(job, problem, <const vf32 *> NULL, finite)


cdef Py_ssize_t scratch_bytes_float(const Problem *problem) noexcept nogil:
    """Enough for finite weights and for others: the packed weights may not be there yet."""
    cdef Job job
    cdef Rows rows
    cdef Sections sections
    cdef Py_ssize_t need = 0
    if prepare_rows(&rows, problem):
        return 0
    if prepare_sections(&sections, problem):
        need = sections.x_bytes + sections.y_bytes
        if not sections.mixed or (problem.packed != NULL and (<const int *> problem.packed)[FINITE_FLAG]):
            return need
    elif in_planes(problem):
        need = scratch_bytes_planes(problem)
        if problem.packed != NULL and (<const int *> problem.packed)[FINITE_FLAG]:
            return need
    return max(need, max(prepare_float(&job, problem, True), prepare_float(&job, problem, False)))


cdef Py_ssize_t scratch_bytes_s8(const Problem *problem) noexcept nogil:
    cdef Job job
    cdef Bytes plan
    cdef int way = way_of_bytes(&plan, problem)
    return prepare(&job, problem, <const vi32 *> NULL, True) if way == BANDS else plan.repeated.room if BY_PAIRS and way == IN_REPEATED else 0


cdef inline Py_ssize_t rows_behind(const Rows *rows) noexcept nogil:
    return HEADER_BYTES + (rows.blocks + rows.ends) * rows.block_vectors * VECTOR_BYTES


cdef Py_ssize_t packed_bytes_float(const Problem *problem) noexcept nogil:
    cdef Job job
    cdef Rows rows
    cdef Sections sections
    cdef Problem wide
    if prepare_rows(&rows, problem):
        return rows_behind(&rows) + <Py_ssize_t> sizeof(Rows)
    if prepare_sections(&sections, problem):
        wide = packing_of(&sections, problem)
        return packed_bytes_float(&wide)
    if problem.x_block or problem.y_block:
        return 0
    prepare_float(&job, problem, True)
    return HEADER_BYTES + job.blocks * job.block_vectors * VECTOR_BYTES


cdef Py_ssize_t packed_bytes_s8(const Problem *problem) noexcept nogil:
    cdef Job job
    cdef Bytes plan
    cdef int way = way_of_bytes(&plan, problem)
    if BY_PAIRS and way == IN_PAIRS:
        return packed_bytes_pairs(&plan.pairs)
    if way == IN_QUADS:
        return packed_bytes_quads(&plan.quads)
    if BY_PAIRS and way == IN_REPEATED:
        return packed_bytes_s8(&plan.repeated.wide)
    prepare(&job, problem, <const vi32 *> NULL, True)
    return HEADER_BYTES + job.blocks * job.block_vectors * LANES * CELL


cdef inline Py_ssize_t channel_of(const Job *job, Py_ssize_t lane) noexcept nogil:
    """The output channel of a lane of all blocks; -1 for a lane that has none. A few channels are repeated to fill their vector."""
    if lane < job.channels:
        return lane
    return lane % job.channels if lane < fold_of(job) * job.channels else -1


cdef void pack_blocks(const Problem *problem, const real *weights, const real *bias, void *packed) noexcept nogil:
    cdef Job job
    cdef real *target
    cdef real weight
    cdef Py_ssize_t lane, tap, channel, taps = problem.kernel_height * problem.kernel_width
    cdef int finite = 1
    prepare_float(&job, problem, True)
    for lane in range(job.blocks * job.lanes):
        channel = channel_of(&job, lane)
        target = <real *> (<char *> packed + HEADER_BYTES) + lane // job.lanes * job.block_vectors * job.lanes + lane % job.lanes
        target[BIAS * job.lanes] = bias[channel] if bias != NULL and channel >= 0 else 0
        if target[BIAS * job.lanes] != target[BIAS * job.lanes]:
            target[BIAS * job.lanes] = NAN  # with no bits that a half lacks
        for tap in range(taps):
            weight = weights[tap * job.channels + channel] if channel >= 0 else 0
            target[(CONSTANTS_FLOAT + tap) * job.lanes] = weight
            finite = finite and weight - weight == 0
    memset(packed, 0, HEADER_BYTES)
    (<int *> packed)[FINITE_FLAG] = finite


cdef void pack_float(const Problem *problem, const void *weights, const void *bias, const Requantization *requantization, void *packed) noexcept nogil:
    cdef Rows rows
    cdef Sections sections
    cdef Problem wide
    if prepare_rows(&rows, problem):
        if problem.element == FLOAT64:
            pack_rows(&rows, problem, <const double *> weights, <const double *> bias, packed)
        else:
            pack_rows(&rows, problem, <const float *> weights, <const float *> bias, packed)
        (<Py_ssize_t *> packed)[ROWS_BEHIND] = rows_behind(&rows)
        memcpy(<char *> packed + rows_behind(&rows), &rows, sizeof(Rows))
    elif prepare_sections(&sections, problem):
        wide = packing_of(&sections, problem)
        pack_float(&wide, weights, bias, requantization, packed)
        (<Py_ssize_t *> packed)[ROWS_BEHIND] = 0
    elif problem.element == FLOAT64:
        pack_blocks(problem, <const double *> weights, <const double *> bias, packed)
    else:
        pack_blocks(problem, <const float *> weights, <const float *> bias, packed)


cdef inline int weight_of(const Job *job, const short *weights, Py_ssize_t row, Py_ssize_t column, Py_ssize_t channel) noexcept nogil:
    """The weight at a row and column of the job's axes; 0 for the empty half of a cell."""
    if job.swapped:
        row, column = column, row
    if row >= job.problem.kernel_height or column >= job.problem.kernel_width or channel < 0:
        return 0
    return weights[(row * job.problem.kernel_width + column) * job.channels + channel]


cdef void pack_s8(const Problem *problem, const void *weights, const void *bias, const Requantization *requantization, void *packed) noexcept nogil:
    cdef Job job
    cdef int *block = <int *> (<char *> packed + HEADER_BYTES)
    cdef int *target
    cdef Py_ssize_t lane, channel, row, column, first_row, first_column
    cdef int folded, first, second, shift, plain = True
    cdef long long products
    cdef Bytes plan
    cdef int way = way_of_bytes(&plan, problem)
    if BY_PAIRS and way == IN_PAIRS:
        pack_pairs(&plan.pairs, problem, <const short *> weights, <const int *> bias, requantization, <char *> packed)
        return
    if way == IN_QUADS:
        pack_quads(&plan.quads, problem, <const short *> weights, <const int *> bias, requantization, <char *> packed)
        return
    if BY_PAIRS and way == IN_REPEATED:
        pack_s8(&plan.repeated.wide, weights, bias, requantization, packed)
        (<int *> packed)[REPEATED_FLAG] = True
        return
    prepare(&job, problem, <const vi32 *> NULL, True)
    for lane in range(job.blocks * LANES):
        channel = channel_of(&job, lane)
        target = block + lane // LANES * job.block_vectors * LANES + lane % LANES
        # The input zero point goes into the bias: every tap is there, with the zero point outside the image.
        folded = (<const int *> bias)[channel] if bias != NULL and channel >= 0 else 0
        products = 0
        for row in range(job.rows.taps):
            for column in range(job.columns.taps):
                first_row = row * (2 if job.second_row else 1)
                first_column = column * (2 if job.second_column else 1)
                first = weight_of(&job, <const short *> weights, first_row, first_column, channel)
                second = weight_of(&job, <const short *> weights, first_row + (job.second_row > 0), first_column + (job.second_column > 0), channel)
                target[(CONSTANTS_S8 + row * job.columns.taps + column) * LANES] = cell_i32(first, second)
                products += 128 * ((first if first > 0 else -first) + (second if second > 0 else -second))
                folded = wrapping_add(folded, wrapping_multiply(-problem.input_zero_point, first + second))
        shift = requantization.shifts[channel] if channel >= 0 and requantization.shifts != NULL else 0
        target[BIAS * LANES] = folded
        target[MULTIPLIER * LANES] = requantization.multipliers[channel] if channel >= 0 and requantization.multipliers != NULL else 0
        plain = plain and (channel < 0 or plain_suffices(shift, products, folded))
        target[LEFT * LANES] = max(shift, 0)
        target[RIGHT * LANES] = max(-shift, 0)
        (<float *> target)[SCALE * LANES] = requantization.scales[channel] if channel >= 0 and requantization.scales != NULL else 0
    memset(packed, 0, HEADER_BYTES)
    (<int *> packed)[FINITE_FLAG] = True
    (<int *> packed)[RESCALING] = (
        AS_IS if problem.result == SUMS else REAL if problem.result == REALS else ONCE if problem.rounding == 1 else PLAIN if plain else TWICE)
    if plain:
        for lane in range(job.blocks * LANES):
            target = block + lane // LANES * job.block_vectors * LANES + lane % LANES
            target[LEFT * LANES] = (1 << target[RIGHT * LANES]) >> 1


cdef void pack_s16(const Problem *problem, const void *weights, const void *bias, const Requantization *requantization, void *packed) noexcept nogil:
    """TensorFlow Lite's rescaling of int16: a multiplier of 15 bits, one rounding, a half going up."""
    cdef Job job
    cdef int *block = <int *> (<char *> packed + HEADER_BYTES)
    cdef int *target
    cdef Py_ssize_t lane, channel, row, column, first_row, first_column
    cdef int first, second, multiplier, right, short_suffices = problem.result != SUMS
    cdef long long products, offset
    prepare(&job, problem, <const vi32 *> NULL, True)
    for lane in range(job.blocks * LANES):
        channel = channel_of(&job, lane)
        target = block + lane // LANES * job.block_vectors * LANES
        (<long long *> (target + LONG_BIAS * LANES))[lane % LANES] = offset = (<const long long *> bias)[channel] if bias != NULL and channel >= 0 else 0
        target += lane % LANES
        products = 0
        for row in range(job.rows.taps):
            for column in range(job.columns.taps):
                first_row = row * (2 if job.second_row else 1)
                first_column = column * (2 if job.second_column else 1)
                first = weight_of(&job, <const short *> weights, first_row, first_column, channel)
                second = weight_of(&job, <const short *> weights, first_row + (job.second_row > 0), first_column + (job.second_column > 0), channel)
                target[(CONSTANTS_S8 + row * job.columns.taps + column) * LANES] = cell_i32(first, second)
                products += 32768 * ((first if first > 0 else -first) + (second if second > 0 else -second))
        target[BIAS * LANES] = <int> offset
        multiplier = right = 0
        if channel >= 0 and requantization.multipliers != NULL:
            multiplier = requantization.multipliers[channel]
            multiplier = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
            right = 15 - requantization.shifts[channel]
        target[MULTIPLIER * LANES] = multiplier
        target[LEFT * LANES] = 0
        target[RIGHT * LANES] = right
        (<float *> target)[SCALE * LANES] = requantization.scales[channel] if channel >= 0 and requantization.scales != NULL else 0
        # The sum fits 32 bits, and one doubling high multiplication rescales it.
        short_suffices = short_suffices and -SHORT_SUM < offset < SHORT_SUM and products + (offset if offset > 0 else -offset) < SHORT_SUM
        short_suffices = short_suffices and (channel < 0 or problem.result != QUANTIZED or 16 <= right <= 31)
    memset(packed, 0, HEADER_BYTES)
    (<int *> packed)[FINITE_FLAG] = True
    (<int *> packed)[RESCALING] = LONG if not short_suffices else REAL if problem.result == REALS else SHORT
    for lane in range(job.blocks * LANES if short_suffices and problem.result == QUANTIZED else 0):
        target = block + lane // LANES * job.block_vectors * LANES + lane % LANES
        target[MULTIPLIER * LANES] <<= 31 - target[RIGHT * LANES]


cdef Py_ssize_t scratch_bytes_s16(const Problem *problem) noexcept nogil:
    cdef Job job
    return prepare(&job, problem, <const vi32 *> NULL, True)


cdef Py_ssize_t packed_bytes_s16(const Problem *problem) noexcept nogil:
    cdef Job job
    prepare(&job, problem, <const vi32 *> NULL, True)
    return HEADER_BYTES + job.blocks * job.block_vectors * LANES * CELL


cdef void run_s16(const Problem *problem, const void *x, void *y, void *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    run(problem, <const vi32 *> (<const char *> problem.packed + HEADER_BYTES), <const char *> x, <char *> y, <char *> scratch, begin, end)


cdef bint reads_halo_s16(const Problem *problem) noexcept nogil:
    return True


cdef const char *kernel_s16(const Problem *problem) noexcept nogil:
    if problem.packed != NULL and (<const int *> problem.packed)[RESCALING] == LONG:
        return b"through bands, two taps a product, sums of 64 bits"
    return b"through bands, two taps a product"


cdef const char *kernel_float(const Problem *problem) noexcept nogil:
    cdef Rows rows
    cdef Sections sections
    if prepare_rows(&rows, problem):
        if VECTOR_BYTES == 64:
            if rows.pairs != NULL:
                return b"in place, pairs of rows by Winograd's F(2, 3) and F(2, 2)"
            if rows.lengthy:
                return b"in place, 2 rows of 8 outputs at a time"
        if rows.columns == GENERAL_TILE:
            return b"in place, tiles of 1 row and 4 to 7 columns" if rows.single else b"in place, tiles of 2 rows and 6 columns"
        if VECTOR_BYTES > 16:
            if rows.walking != NULL:
                return walked_names[rows.walked]
        if VECTOR_BYTES == 64:
            if rows.running != NULL:
                return b"in place, row of inputs by row of inputs"
            if rows.resident:
                return b"in place, row of outputs by row of outputs"
        if rows.pixel:
            return b"in place, output by output"
        if rows.image != NULL:
            return b"in place, a whole image at a time"
        if rows.flat and rows.beside:
            return b"in place, tiles of 2 rows and 4 columns"
        if rows.split or rows.beside:
            return b"in place, tiles of 4 rows and 2 columns"
        if VECTOR_BYTES > 16:
            if rows.line == &small_tiles[3][2][0]:
                return b"in place, tiles of 2 rows and 2 columns"
        if rows.tall:
            return b"in place, tiles of 3 rows and 7 columns" if rows.wide else b"in place, tiles of 4 rows and 4 columns"
        return b"in place, tiles of 2 rows and 7 columns" if rows.wide else b"in place, tiles of 2 rows and 4 columns"
    if prepare_sections(&sections, problem):
        return b"some rows at a time, copied into scratch" if problem.element == FLOAT32 else b"some rows at a time, widened to float32"
    if in_planes(problem) and (<const int *> problem.packed)[FINITE_FLAG]:
        return kernel_planes(problem)
    return b"through bands or pixel by pixel"


cdef bint reads_halo_float(const Problem *problem) noexcept nogil:
    """Before packing: with weights that are not finite the halo is not asked for."""
    cdef Rows rows
    cdef Sections sections
    return not prepare_rows(&rows, problem) and not prepare_sections(&sections, problem) and not in_planes(problem)


cdef int aligns_float(const Problem *problem) noexcept nogil:
    cdef Rows rows
    return rows_align(&rows, problem) if prepare_rows(&rows, problem) else ALIGNS_NONE


cdef const char *kernel_s8(const Problem *problem) noexcept nogil:
    cdef Bytes plan
    cdef const Pairs *pairs = &plan.pairs
    cdef int way = way_of_bytes(&plan, problem)
    if BY_PAIRS and way == IN_PAIRS:
        if pairs.spread:
            return b"four neighbours of a row a product, spread over the filters of a channel"
        if pairs.gathered:
            return b"taps of a row gathered, four a product" if WINDOWS else b"taps of a row gathered, two a product"
        if pairs.cells:
            return b"four neighbours along the filter a product"
        if pairs.apart:
            return b"outputs one by one, four taps a product" if WINDOWS else b"outputs one by one, two taps a product"
        if pairs.window:
            return b"windows of 3x3 that slide over the columns"
        if tile_of(pairs) == 1:
            return b"rows in pairs, cells that slide over the columns"
        return b"rows in pairs, tiles of 4 columns" if tile_of(pairs) == PAIRS_COLUMNS else b"rows in pairs, tiles of 8 columns"
    if way == IN_QUADS:
        return b"four rows interleaved, four taps a product"
    return b"channels repeated for their filters, in scratch" if way == IN_REPEATED else b"through bands, two taps a product"


cdef bint reads_halo_s8(const Problem *problem) noexcept nogil:
    """Quads and pairs would read it, but make their own as fast: less memory to read is what counts."""
    cdef Bytes plan
    return way_of_bytes(&plan, problem) == BANDS


cdef KernelTable table


cdef object export(const char *isa):
    """The capsule of this module's table; `isa` is a literal."""
    table.isa = isa
    cdef Family floats
    if FLOATS:
        floats = Family(
            LANES, packed_bytes_float, pack_float, scratch_bytes_float, kernel_float, reads_halo_float, as_pixels_float, aligns_float, run_float)
        table.families[FLOAT32] = table.families[FLOAT16] = table.families[BFLOAT16] = floats
        floats.lanes = LANES // 2
        table.families[FLOAT64] = floats
    table.families[INT8] = table.families[UINT8] = Family(
        LANES, packed_bytes_s8, pack_s8, scratch_bytes_s8, kernel_s8, reads_halo_s8, as_pixels_integer, NULL, run_s8)
    table.families[INT16] = Family(LANES, packed_bytes_s16, pack_s16, scratch_bytes_s16, kernel_s16, reads_halo_s16, as_pixels_integer, NULL, run_s16)
    return PyCapsule_New(&table, "nd4jlike.kernels.KernelTable", NULL)
