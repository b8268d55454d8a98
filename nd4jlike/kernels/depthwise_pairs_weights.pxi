# The weights of pairs, windows, lines, spread rows, gathered taps and outputs one by one, packed (ADR 0004, 0006): which tap of the filter each lane of a cell
# multiplies, and by which words the sums of a block become bytes.


# A tap of the filter; outside it there is none.
cdef struct Tap:
    Py_ssize_t row, column


cdef inline int tap_weight(const Problem *problem, const short *weights, Py_ssize_t row, Py_ssize_t column, Py_ssize_t channel) noexcept nogil:
    """0 outside the filter, and for no channel."""
    if channel < 0 or not (0 <= row < problem.kernel_height and 0 <= column < problem.kernel_width):
        return 0
    return weights[(row * problem.kernel_width + column) * problem.channels * problem.multiplier + channel]


cdef inline Tap tap_of_window(const Pairs *job, Py_ssize_t entry, Py_ssize_t row, Py_ssize_t tap, Py_ssize_t quad) noexcept nogil:
    """The tap of the filter whose weight is number `tap` of a cell, for one of the rows of outputs that share it; here of 3x3 windows."""
    if job.stride == 1:
        # The newer pair first.
        return Tap(tap % 2 - row + (2 if tap < 2 else 0), entry)
    # See WINDOW_TWO: the second column of two has words of even and of odd channels, and lends its lowest row to the first one.
    if entry == 1:
        return Tap(1 - tap % 2 if tap // 2 == quad % 2 else -1, 1)
    return Tap(2 if tap > 1 else 1 - tap, entry + 1 if tap == 3 else entry)


cdef inline Tap tap_of_tile(const Pairs *job, Py_ssize_t entry, Py_ssize_t row, Py_ssize_t tap) noexcept nogil:
    """The same of pairs that are joined. Of 5x5, all taps of the two newer pairs, then those of the oldest one, two columns to a cell."""
    if job.taps != 5:
        return Tap(entry // job.taps * GROUP - row + tap, entry % job.taps)
    return Tap(2 - row + tap, entry) if entry < 5 else Tap(tap % 2 - row, (entry - 5) * 2 + tap // 2)


cdef inline Tap tap_of_loop(const Pairs *job, Py_ssize_t entry, Py_ssize_t tap) noexcept nogil:
    """The same of pairs that are cells: their planes are the two rows of outputs, or the next tap."""
    cdef Py_ssize_t place = entry if job.output_rows == 2 else entry * CELL_PLANES + tap // 2
    return Tap(place // job.taps * 2 + tap % 2 - (tap // 2 if job.output_rows == 2 else 0), place % job.taps)


cdef inline Tap tap_of_output(const Pairs *job, Py_ssize_t entry, Py_ssize_t tap) noexcept nogil:
    """The same of outputs one by one."""
    return Tap((entry * GROUP + tap) // job.taps, (entry * GROUP + tap) % job.taps)


cdef inline Tap tap_of(const Pairs *job, Py_ssize_t entry, Py_ssize_t row, Py_ssize_t tap, Py_ssize_t quad) noexcept nogil:
    """The same of any of them."""
    if job.cells:
        return tap_of_line(job, entry, row, tap)
    if job.spread or job.gathered:
        return tap_of_spread(job, entry, tap)
    if job.apart:
        return tap_of_output(job, entry, tap)
    if not WINDOWS:
        return tap_of_loop(job, entry, tap)
    return tap_of_window(job, entry, row, tap, quad) if job.window else tap_of_tile(job, entry, row, tap)


cdef void pack_pairs(
    Pairs *job, const Problem *problem, const short *weights, const int *bias, const Requantization *requantization, char *packed,
) noexcept nogil:
    cdef PairsKernel *kernels = <PairsKernel *> (packed + HEADER_BYTES + sizeof(Pairs))
    cdef Fit lines[64]
    cdef Fit below[64]
    # Of channels, or lanes: their lines, and how many.
    cdef Fit known[SPREAD_BLOCKS * VECTOR_BYTES]
    cdef Fit known_below[SPREAD_BLOCKS * VECTOR_BYTES]
    cdef signed char fitted[SPREAD_BLOCKS * VECTOR_BYTES]
    cdef int *block
    cdef int *vectors
    cdef int *cell
    cdef Py_ssize_t index, lane, place, quad, channel, entry, row, column, tap, outputs = problem.channels * problem.multiplier
    cdef Tap at
    cdef int taps[4]
    cdef int rest[4]
    cdef int folded, shift, w, how, kind, scaled, wide, square = <int> job.taps if job.framed or problem.kernel_height == job.taps else 0
    cdef long long reach, least, largest
    cdef float scale
    # Weights of all sums lie together for each entry, of each plane where outputs are computed one by one, or those of all entries for each sum.
    cdef bint plain = True, small = True, by_scale, rounded, split, by_entry = job.cells > 0 or job.spread or job.gathered
    # What inputs are more than int8 (bytes.h).
    cdef int offset = INPUT_OFFSET if WINDOWS or job.gathered else -flip_of(problem.element)
    cdef Py_ssize_t pitch = QUADS * LANES if job.apart else LANES
    memset(packed, 0, job.weights)
    (<int *> packed)[PAIRS_FLAG] = True
    memset(packed + job.padding, (problem.input_zero_point ^ flip_of(problem.element)) & 0xFF, 64)
    if job.spread:
        pack_spread(job, problem, packed)
    for index in range(job.blocks if GATHERS and job.gathered else 0):
        gather_block(job, problem, index, <signed char *> (packed + job.weights + ((index + 1) * job.block_vectors - 2) * VECTOR_BYTES))
    for index in range(job.blocks):
        block = <int *> (packed + job.weights) + index * job.block_vectors * LANES
        scaled = 0 if FUSED else -1
        wide = 0
        if index == 0 or not (job.spread and job.flat):
            memset(fitted, 0, sizeof(fitted))
        # Windows alone know it.
        rounded = problem.output_zero_point > -128 and job.window
        by_scale = FUSED and problem.rounding == 1 and (rounded or problem.output_zero_point == -128 == problem.quantized_min)
        split = FUSED and not by_scale
        for lane in range(VECTOR_BYTES):
            quad = lane // LANES
            place = unpacked_channel(quad, lane % LANES)
            if job.window:
                place = lane % LANES // 4 * 16 + quad // 2 * 8 + lane % 4 * 2 + quad % 2
            if job.spread:
                place = spread_place(job, problem, quad, lane % LANES)
            elif overlaps(job, index):
                place -= VECTOR_BYTES // 2 - job.between if place >= VECTOR_BYTES // 2 else 0
            else:
                place %= VECTOR_BYTES // parts_of(job, problem, index)
            channel = (index * VECTOR_BYTES if job.spread else channel_of_block(job, problem, index)) + place
            if job.gathered:
                channel = gathered_channel(problem, index, lane % LANES)
            if job.spread and job.flat:
                channel %= outputs
            if channel >= outputs:
                channel = -1
            vectors = block + quad * LANES + lane % LANES
            entry = 1 if by_entry else job.entries
            cell = block + (QUADS * PAIRS_CONSTANTS + quad * (1 if job.apart else entry * job.rows * CELL_PLANES)) * LANES + lane % LANES
            for entry in range(job.entries):
                if by_entry and entry:
                    cell += (QUADS - 1) * job.rows * CELL_PLANES * LANES
                for row in range(job.rows):
                    for tap in range(GROUP):
                        at = tap_of(job, entry, row, tap, quad)
                        if job.turned:
                            at = Tap(at.column, at.row)
                        w = tap_weight(problem, weights, at.row - job.above, at.column - job.left, channel)
                        taps[tap] = min(max(w, -128), 127) if WINDOWS else w
                        rest[tap] = w - taps[tap]
                        if rest[tap]:
                            wide |= 1 << quad
                    put_weights(cell, pitch, taps[0], taps[1], taps[2], taps[3])
                    if job.wide:
                        put_weights(cell + QUADS * job.entries * job.rows * LANES, LANES, rest[0], rest[1], rest[2], rest[3])
                    cell += CELL_PLANES * pitch
            lines[lane] = below[lane] = Fit(0, 12582912, 0, 0)
            if channel < 0:
                continue
            folded = bias[channel] if bias != NULL else 0
            reach = 0
            least = largest = folded
            for tap in range(problem.kernel_height):
                for column in range(problem.kernel_width):
                    w = tap_weight(problem, weights, tap, column, channel)
                    reach += 255 * (w if w > 0 else -w)
                    least += w * ((-128 if w > 0 else 127) - problem.input_zero_point)
                    largest += w * ((127 if w > 0 else -128) - problem.input_zero_point)
                    # Zero point and offset of the inputs go into the bias: every tap is there, with the zero point outside the image.
                    folded = wrapping_add(folded, wrapping_multiply(-problem.input_zero_point - offset, w))
            vectors[QUADS * PAIRS_BIAS * LANES] = folded
            shift = 0
            if requantization.multipliers != NULL:
                shift = requantization.shifts[channel]
                vectors[QUADS * PAIRS_MULTIPLIER * LANES] = requantization.multipliers[channel]
            vectors[QUADS * PAIRS_LEFT * LANES] = max(shift, 0)
            vectors[QUADS * PAIRS_RIGHT * LANES] = max(-shift, 0)
            plain = plain and plain_suffices(shift, reach, bias[channel] if bias != NULL else 0)
            if problem.rounding == 1:
                scale = requantization.scales[channel] if requantization.scales != NULL else 0
                small = small and max(-least, largest) * scale < PLAIN_SUM
                by_scale = by_scale and max(-least, largest) * scale < MAX_RESULT and max(-least, largest) < 1 << (22 if rounded else 23)
            else:
                scale = scale_of(vectors[QUADS * PAIRS_MULTIPLIER * LANES], shift)
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = scale_of(1 << 30, shift)
            (<float *> vectors)[QUADS * PAIRS_SCALE * LANES] = scale
            w = vectors[QUADS * PAIRS_MULTIPLIER * LANES]
            if split or not scaled & 1 << quad:
                # Gathered, and in a run of outputs, channels come again.
                place = lane
                if job.gathered:
                    place = lane % LANES % outputs if outputs < LANES else lane % LANES
                elif job.spread and job.flat:
                    place = channel
                if not fitted[place]:
                    fitted[place] = fit_lines(&known[place], &known_below[place], problem, w, shift, scale, least, largest, split, MAX_RESULT)
                if fitted[place] == 0:
                    split = False
                if fitted[place] != 1:
                    scaled |= 1 << quad
                lines[lane] = known[place]
                below[lane] = known_below[place]
        if job.wide:
            block[(job.block_vectors - 1) * LANES] = wide
        how = BY_LINE if scaled == 0 else BY_SPLIT if split else BY_SCALE if by_scale else OTHERWISE
        place = parts_of(job, problem, index)
        kind = HALVES if place == 2 else QUARTERS if place == 4 else WHOLE if (index + 1) * VECTOR_BYTES <= problem.channels else PART
        for row in range(2):
            if job.gathered:
                kernels[index + row * job.blocks] = gather_kernel(how, 2 < job.taps <= GROUP, job.beside)
            elif job.spread:
                kernels[index + row * job.blocks] = spread_kernel(how, job.fours, job.entries)
            elif job.cells:
                kernels[index + row * job.blocks] = lines_kernel(how, job.taps <= FEW_LINE_TAPS and job.stride == 1 and parts_of(job, problem, index) == 1)
            elif job.apart:
                kernels[index + row * job.blocks] = apart_kernel(how)
            elif job.window:
                kernels[index + row * job.blocks] = window_kernel(how, <int> job.stride, kind, <int> row)
            else:
                kernels[index + row * job.blocks] = pairs_kernel(how, square, <int> job.output_rows, <int> job.stride)
        if how == OTHERWISE:
            continue
        for lane in range(VECTOR_BYTES):
            vectors = block + lane
            if how == BY_SPLIT:
                (<float *> vectors)[QUADS * PAIRS_ZERO * LANES] = 8388608 + lines[lane].shift + lines[lane].first
                (<float *> vectors)[QUADS * PAIRS_MOVED * LANES] = below[lane].shift - lines[lane].shift
                (<float *> vectors)[QUADS * PAIRS_BELOW * LANES] = below[lane].offset
            else:
                vectors[QUADS * PAIRS_SCALED * LANES] = problem.output_zero_point if lane >= LANES else scaled * ROUNDED if rounded else scaled
                (<float *> vectors)[QUADS * PAIRS_ADDED * LANES] = 12582912 if rounded else scale_bits()
                (<float *> vectors)[QUADS * PAIRS_ROUNDED * LANES] = (<float *> vectors)[QUADS * PAIRS_SCALE * LANES]
            vectors[QUADS * PAIRS_BIAS * LANES] = wrapping_add(vectors[QUADS * PAIRS_BIAS * LANES], FLOAT_BITS)
            if how == BY_SCALE and scaled & 1 << lane // LANES and rounded:
                vectors[QUADS * PAIRS_BIAS * LANES] = wrapping_add(vectors[QUADS * PAIRS_BIAS * LANES], 1 << 22)
                (<float *> vectors)[QUADS * PAIRS_SCALE * LANES] = 1
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = -12582912
            elif how == BY_SCALE and scaled & 1 << lane // LANES:
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = -8388608 * (<float *> vectors)[QUADS * PAIRS_SCALE * LANES]
            else:
                vectors[QUADS * PAIRS_BIAS * LANES] = wrapping_add(vectors[QUADS * PAIRS_BIAS * LANES], lines[lane].shift)
                (<float *> vectors)[QUADS * PAIRS_SCALE * LANES] = lines[lane].scale
                (<float *> vectors)[QUADS * PAIRS_OFFSET * LANES] = lines[lane].offset
    job.rescaling = (PAIRS_SMALL if small else PAIRS_ONCE) if problem.rounding == 1 else PAIRS_PLAIN if plain else PAIRS_TWICE
    memcpy(packed + HEADER_BYTES, job, sizeof(Pairs))
