# int8 read in place: for every output pixel the addresses of its taps, then all channels, a vector of bytes at a time.
#
# A tap outside the image has the address of a row of zero points, so no border is special. Four taps are interleaved and multiplied at once.
# Where few channels fill a vector evenly and columns lie side by side, a row of outputs is one run of bytes: the columns are more channels.
# Nothing is copied and nothing is allocated; what a call costs before its first product is a few hundred instructions.

cdef enum:
    # Taps whose addresses fit beside the sums in the first-level cache; larger filters go through bands.
    MAX_TAPS = 512
    # Channels a vector of bytes must hold at least, in sixteenths of it; fewer pay where there are no neighbouring columns for a band to share.
    MIN_FILL = 11
    MIN_CHANNELS = 24

# Vectors of each of the QUADS sums before the weights of a block.
cdef enum:
    BYTES_BIAS
    BYTES_MULTIPLIER
    # Where the rescaling is PLAIN: half of 2**right.
    BYTES_LEFT
    BYTES_RIGHT
    BYTES_SCALE
    BYTES_CONSTANTS


# The taps of one output pixel.
cdef struct Taps:
    # Channel 0 of each.
    const char *at[MAX_TAPS]
    # Bytes from the first tap to each, where all lie inside.
    Py_ssize_t offset[MAX_TAPS]


# What one call works out first.
cdef struct Bytes:
    const Problem *problem
    Py_ssize_t channels, taps, groups, blocks, block_vectors
    # Whether a row of outputs is one run of bytes.
    bint flat
    # Zero points, as many as a tap may read.
    const char *padding
    const vi32 *packed
    int rescaling
    # Output rows and columns whose windows lie inside the image and its halo, from `first` to before `end`.
    Py_ssize_t first_row, end_row, first_column, end_column


cdef inline bint is_flat(const Problem *problem) noexcept nogil:
    """Whether neighbouring outputs, and their inputs, are neighbours in memory, and a whole number of pixels fills a vector."""
    return (
        0 < problem.channels < VECTOR_BYTES and VECTOR_BYTES % problem.channels == 0 and problem.out_width > 1 and problem.stride_width == 1
        and problem.x_strides[2] == problem.channels and problem.y_strides[2] == problem.channels
    )


cdef inline bint in_bytes(const Problem *problem) noexcept nogil:
    """Whether a problem is computed here."""
    cdef Py_ssize_t least = MIN_CHANNELS
    if problem.multiplier != 1 or problem.x_strides[3] != 1 or problem.y_strides[3] != 1:
        return False
    if problem.kernel_height * problem.kernel_width > MAX_TAPS - 4:
        return False
    if problem.out_width > 1:
        least = divide_up(problem.channels, VECTOR_BYTES) * VECTOR_BYTES * MIN_FILL // 16
    return problem.channels >= least or is_flat(problem)


cdef Py_ssize_t padding_bytes(const Problem *problem) noexcept nogil:
    return divide_up(problem.channels * (problem.out_width if is_flat(problem) else 1), 64) * 64 + 64


cdef inline Py_ssize_t end_inside(
    Py_ssize_t outputs, Py_ssize_t extent, Py_ssize_t taps, Py_ssize_t dilation, Py_ssize_t pad, Py_ssize_t stride,
) noexcept nogil:
    """One past the last output whose taps all lie before `extent`."""
    cdef Py_ssize_t last = extent - 1 - (taps - 1) * dilation + pad
    return 0 if last < 0 else min(outputs, last // stride + 1)


cdef void prepare_bytes(Bytes *job, const Problem *problem) noexcept nogil:
    job.problem = problem
    job.channels = problem.channels
    job.flat = is_flat(problem)
    job.taps = problem.kernel_height * problem.kernel_width
    job.groups = divide_up(job.taps, 4)
    job.blocks = divide_up(job.channels, VECTOR_BYTES)
    job.block_vectors = QUADS * (BYTES_CONSTANTS + job.groups * WEIGHT_VECTORS)
    job.padding = <const char *> problem.packed + HEADER_BYTES
    job.packed = <const vi32 *> (job.padding + padding_bytes(problem))
    job.first_row = divide_up(problem.pad_top - problem.halo[0], problem.stride_height)
    job.end_row = end_inside(
        problem.out_height, problem.height + problem.halo[1], problem.kernel_height, problem.dilation_height, problem.pad_top, problem.stride_height)
    job.first_column = divide_up(problem.pad_left - problem.halo[2], problem.stride_width)
    job.end_column = end_inside(
        problem.out_width, problem.width + problem.halo[3], problem.kernel_width, problem.dilation_width, problem.pad_left, problem.stride_width)


cdef Py_ssize_t packed_bytes_bytes(const Problem *problem) noexcept nogil:
    cdef Bytes job
    prepare_bytes(&job, problem)
    return HEADER_BYTES + padding_bytes(problem) + job.blocks * job.block_vectors * LANES * <Py_ssize_t> sizeof(int)


cdef void pack_bytes(const Problem *problem, const void *weights, const void *bias, const Requantization *requantization, void *packed) noexcept nogil:
    cdef Bytes job
    cdef Problem known = problem[0]
    cdef const signed char *source = <const signed char *> weights
    cdef int *vectors
    cdef Py_ssize_t block, quad, lane, channel, group, tap, i
    cdef int folded, shift, plain = True
    cdef int w[4]
    cdef long long reach
    known.packed = packed
    prepare_bytes(&job, &known)
    memset(packed, 0, HEADER_BYTES)
    memset(<void *> job.padding, problem.input_zero_point & 0xFF, padding_bytes(problem))
    for block in range(job.blocks):
        for quad in range(QUADS):
            for lane in range(LANES):
                vectors = <int *> job.packed + (block * job.block_vectors + quad) * LANES + lane
                # The order in which quads_of leaves the channels.
                channel = block * VECTOR_BYTES + lane // 4 * 16 + quad * 4 + lane % 4
                folded = 0
                shift = 0
                reach = 0
                if job.flat:
                    channel %= job.channels
                if channel >= job.channels:
                    channel = -1
                if channel >= 0 and bias != NULL:
                    folded = (<const int *> bias)[channel]
                for group in range(job.groups):
                    for i in range(4):
                        tap = group * 4 + i
                        w[i] = source[tap * job.channels + channel] if tap < job.taps and channel >= 0 else 0
                        # Zero point and offset of the inputs go into the bias: every tap is there, with the zero point outside the image.
                        reach += 128 * (w[i] if w[i] > 0 else -w[i])
                        folded = wrapping_add(folded, wrapping_multiply(-problem.input_zero_point - INPUT_OFFSET, w[i]))
                    put_weights(vectors + QUADS * (BYTES_CONSTANTS + group * WEIGHT_VECTORS) * LANES, QUADS * LANES, w[0], w[1], w[2], w[3])
                vectors[QUADS * BYTES_BIAS * LANES] = folded
                if channel < 0:
                    continue
                if requantization.multipliers != NULL:
                    vectors[QUADS * BYTES_MULTIPLIER * LANES] = requantization.multipliers[channel]
                    shift = requantization.shifts[channel]
                # The inputs may be offset by another 128.
                plain = plain and plain_suffices(shift, 2 * reach, folded)
                vectors[QUADS * BYTES_LEFT * LANES] = max(shift, 0)
                vectors[QUADS * BYTES_RIGHT * LANES] = max(-shift, 0)
                if requantization.scales != NULL:
                    (<float *> vectors)[QUADS * BYTES_SCALE * LANES] = requantization.scales[channel]
    (<int *> packed)[PLAIN_FLAG] = plain
    if plain:
        for block in range(job.blocks):
            vectors = <int *> job.packed + block * job.block_vectors * LANES
            for lane in range(QUADS * LANES):
                vectors[QUADS * BYTES_LEFT * LANES + lane] = (1 << vectors[QUADS * BYTES_RIGHT * LANES + lane]) >> 1


cdef inline void bytes_tile(
    const Bytes *job, const vi32 *block, const Taps *taps, Py_ssize_t channel, Py_ssize_t readable, char *y, Py_ssize_t writable,
    vi16 zero_point, vi16 low, vi16 high, vf32 float_low, vf32 float_high, const int rescaling,
) noexcept nogil:
    """One pixel, one vector of channels. `readable` and `writable` count the bytes from `channel` on; constant where they cover a vector."""
    cdef vi32 sums[4]
    cdef vi32 quads[4]
    cdef vbytes a, b, c, d
    cdef const vi32 *weights = block + QUADS * BYTES_CONSTANTS
    cdef const vi32 *multiplier = block + QUADS * BYTES_MULTIPLIER
    cdef const vi32 *left = block + QUADS * BYTES_LEFT
    cdef const vi32 *right = block + QUADS * BYTES_RIGHT
    cdef const vf32 *scale = <const vf32 *> (block + QUADS * BYTES_SCALE)
    cdef Py_ssize_t group
    cdef int i
    for i in range(QUADS):
        sums[i] = block[i]
    for group in range(job.groups):
        a = load_bytes(<const signed char *> taps.at[4 * group] + channel, readable)
        b = load_bytes(<const signed char *> taps.at[4 * group + 1] + channel, readable)
        c = load_bytes(<const signed char *> taps.at[4 * group + 2] + channel, readable)
        d = load_bytes(<const signed char *> taps.at[4 * group + 3] + channel, readable)
        quads_of(quads, a, b, c, d)
        for i in range(QUADS):
            sums[i] = dot_quads(sums[i], quads[i], weights + i, QUADS)
        weights += QUADS * WEIGHT_VECTORS
    for i in range(QUADS):
        if rescaling == PLAIN:
            sums[i] = requantize_plain(sums[i], multiplier[i], left[i], right[i])
        elif rescaling == TWICE:
            sums[i] = requantize_tflite(sums[i], multiplier[i], left[i], right[i])
        else:
            sums[i] = requantize_float(sums[i], scale[i], float_low, float_high)
    store_bytes(<signed char *> y + channel, bytes_of(sums[0], sums[1], sums[2], sums[3], zero_point, low, high), writable)


cdef inline void bytes_pixel(
    const Bytes *job, const Taps *taps, char *y, vi16 zero_point, vi16 low, vi16 high, vf32 float_low, vf32 float_high, const int rescaling,
) noexcept nogil:
    """All channels of one output pixel."""
    cdef const vi32 *block = job.packed
    cdef Py_ssize_t channel = 0, rest
    while channel + VECTOR_BYTES <= job.channels:
        bytes_tile(job, block, taps, channel, VECTOR_BYTES, y, VECTOR_BYTES, zero_point, low, high, float_low, float_high, rescaling)
        block += job.block_vectors
        channel += VECTOR_BYTES
    rest = job.channels - channel
    if rest:
        if rest + job.problem.channel_room >= VECTOR_BYTES:
            bytes_tile(job, block, taps, channel, VECTOR_BYTES, y, rest, zero_point, low, high, float_low, float_high, rescaling)
        else:
            bytes_tile(job, block, taps, channel, rest, y, rest, zero_point, low, high, float_low, float_high, rescaling)


cdef inline void bytes_run(
    const Bytes *job, const Taps *taps, char *y, Py_ssize_t count, vi16 zero_point, vi16 low, vi16 high, vf32 float_low, vf32 float_high,
    const int rescaling,
) noexcept nogil:
    """`count` bytes of a flat row."""
    cdef Py_ssize_t done = 0
    while done + VECTOR_BYTES <= count:
        bytes_tile(job, job.packed, taps, done, VECTOR_BYTES, y, VECTOR_BYTES, zero_point, low, high, float_low, float_high, rescaling)
        done += VECTOR_BYTES
    if done < count:
        bytes_tile(job, job.packed, taps, done, count - done, y, count - done, zero_point, low, high, float_low, float_high, rescaling)


cdef void find_offsets(const Bytes *job, Taps *taps) noexcept nogil:
    """What all pixels share; the taps that fill the last group have no weight, and the row of zero points for an address."""
    cdef const Problem *problem = job.problem
    cdef Py_ssize_t i, k, tap = 0
    for i in range(problem.kernel_height):
        for k in range(problem.kernel_width):
            taps.offset[tap] = i * problem.dilation_height * problem.x_strides[1] + k * problem.dilation_width * problem.x_strides[2]
            tap += 1
    while tap < job.groups * 4:
        taps.at[tap] = job.padding
        tap += 1


cdef void place_at_border(const Bytes *job, Taps *taps, const char *image, Py_ssize_t y, Py_ssize_t x) noexcept nogil:
    """The taps of an output pixel whose window starts at image row y and column x, some of them outside."""
    cdef const Problem *problem = job.problem
    cdef Py_ssize_t i, k, column, tap = 0
    for i in range(problem.kernel_height):
        column = x
        for k in range(problem.kernel_width):
            if -problem.halo[0] <= y < problem.height + problem.halo[1] and -problem.halo[2] <= column < problem.width + problem.halo[3]:
                taps.at[tap] = image + y * problem.x_strides[1] + column * problem.x_strides[2]
            else:
                taps.at[tap] = job.padding
            tap += 1
            column += problem.dilation_width
        y += problem.dilation_height


cdef void run_bytes(const Problem *problem, const char *x, char *y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Bytes job
    cdef Taps taps
    cdef Py_ssize_t image, row, column, tap, count, window_row, window_column
    cdef const char *first
    cdef char *target
    cdef vi16 zero_point = splat_i16(problem.output_zero_point)
    cdef vi16 low = splat_i16(problem.quantized_min), high = splat_i16(problem.quantized_max)
    cdef vf32 float_low = splat_f32(problem.quantized_min - problem.output_zero_point)
    cdef vf32 float_high = splat_f32(problem.quantized_max - problem.output_zero_point)
    prepare_bytes(&job, problem)
    job.rescaling = rescaling_of(problem)
    find_offsets(&job, &taps)
    image = begin // problem.out_height
    row = begin - image * problem.out_height
    while begin < end:
        target = y + image * problem.y_strides[0] + row * problem.y_strides[1]
        window_row = row * problem.stride_height - problem.pad_top
        window_column = -problem.pad_left
        column = 0
        while column < problem.out_width:
            if job.flat and job.first_column <= column < job.end_column:
                place_at_border(&job, &taps, x + image * problem.x_strides[0], window_row, window_column)
                count = (job.end_column - column) * job.channels
                if job.rescaling == PLAIN:
                    bytes_run(&job, &taps, target, count, zero_point, low, high, float_low, float_high, PLAIN)
                elif job.rescaling == ONCE:
                    bytes_run(&job, &taps, target, count, zero_point, low, high, float_low, float_high, ONCE)
                else:
                    bytes_run(&job, &taps, target, count, zero_point, low, high, float_low, float_high, TWICE)
                target += count
                window_column += job.end_column - column
                column = job.end_column
                continue
            if job.first_row <= row < job.end_row and job.first_column <= column < job.end_column:
                first = x + (image * problem.x_strides[0] + window_row * problem.x_strides[1] + window_column * problem.x_strides[2])
                for tap in range(job.taps):
                    taps.at[tap] = first + taps.offset[tap]
            else:
                place_at_border(&job, &taps, x + image * problem.x_strides[0], window_row, window_column)
            if job.rescaling == PLAIN:
                bytes_pixel(&job, &taps, target, zero_point, low, high, float_low, float_high, PLAIN)
            elif job.rescaling == ONCE:
                bytes_pixel(&job, &taps, target, zero_point, low, high, float_low, float_high, ONCE)
            else:
                bytes_pixel(&job, &taps, target, zero_point, low, high, float_low, float_high, TWICE)
            target += problem.y_strides[2]
            window_column += problem.stride_width
            column += 1
        begin += 1
        row += 1
        if row == problem.out_height:
            row = 0
            image += 1
