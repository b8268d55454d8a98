# Register tiles: a few output vectors that stay in registers while the taps of the filter are walked.
#
# Steps are in bytes, so that all element types share the text; a cell is 4 bytes of input, or a float64: one lane of a vector.
# A block is what one vector of output channels needs: its constants, then one weight vector for each cell of the filter.

cdef enum:
    # Outputs of a tile: enough independent sums to hide the latency of a multiply-add.
    WIDE = 8
    NARROW = 4

# How sums are rescaled; the packed header tells. PLAIN gives TensorFlow Lite's bits at less cost, where shifts and sums allow.
cdef enum:
    TWICE
    ONCE
    PLAIN
    # int16, where shifts and sums allow; and whatever has sums of 64 bits, one lane at a time.
    SHORT
    LONG
    # Not at all, and to float32.
    AS_IS
    REAL

cdef enum:
    # Before the first packed block: whether all weights are finite, how sums are rescaled, whether quads or pairs compute it, of repeated channels; behind
    # how many bytes, in numbers twice as long, a call on rows is prepared, 0: it is none.
    HEADER_BYTES = 64
    FINITE_FLAG = 0
    RESCALING = 1
    QUADS_FLAG = 2
    PAIRS_FLAG = 3
    REPEATED_FLAG = 4
    ROWS_BEHIND = 3
    # Right shifts up to which, with sums below PLAIN_SUM, the plain rescaling is exact.
    PLAIN_SHIFT = 23
    PLAIN_SUM = 1 << 30
    # Beyond any sum that SHORT takes; cells of int16 inputs and int8 weights that never reach it.
    SHORT_SUM = 0x7FFFFFFF
    LONG_CELLS = 128

# Vectors of a block before its weights. Floats have the bias only.
cdef enum:
    BIAS
    MULTIPLIER
    # Where the rescaling is PLAIN: half of 2**right.
    LEFT
    RIGHT
    SCALE
    # LONG: the bias, two vectors of 64-bit lanes.
    LONG_BIAS
    CONSTANTS_S8 = LONG_BIAS + 2
    CONSTANTS_FLOAT = 1

# Vectors that all blocks share: the bounds of an output (int8: before the zero point is added, float32 numbers if the scale is), the zero point.
cdef enum:
    LOW
    HIGH
    ZERO_POINT
    LIMITS


# Rows and columns of output vectors that share their taps: the whole filter, or the rectangle of it that lies inside the image.
cdef struct Patch:
    Py_ssize_t rows, columns
    Py_ssize_t x_row, x_column, y_row, y_column
    Py_ssize_t tap_rows, tap_columns
    Py_ssize_t tap_row, tap_column
    # Weight vectors from one row of the whole filter to the next.
    Py_ssize_t pitch
    # Elements stored of each output vector, and their type.
    Py_ssize_t lanes
    int element
    int rescaling
    const Problem *problem


cdef inline bint plain_suffices(int shift, long long products, int bias) noexcept nogil:
    """Whether the plain rescaling is exact for sums of at most `products` plus the bias, rescaled by `shift`."""
    return -PLAIN_SHIFT <= shift <= -1 and products + (bias if bias > 0 else -<long long> bias) < PLAIN_SUM


# Where the inputs and outputs of a tile start, in bytes.
cdef struct Places:
    Py_ssize_t x[WIDE]
    Py_ssize_t y[WIDE]


cdef inline void store_clamped(char *y, float_vector value, float_vector low, float_vector high, const Patch *patch) noexcept nogil:
    """A vector of outputs."""
    if float_vector is vf32:
        store_from_f32(y, at_most_f32(at_least_f32(value, low), high), patch.lanes, patch.element)
    else:
        store_f64(<double *> y, at_most_f64(at_least_f64(value, low), high), patch.lanes)


cdef void finish_integers(
    const vi32 *limits, const Patch *patch, const vi32 *block, const vi32 *total, char *y, const Places *places, int outputs,
) noexcept nogil:
    """Sums to what is stored; one text for tiles of any size, which is small. The zero point is added to what is clamped already: no sum can overflow."""
    cdef vi32 low = limits[LOW], high = limits[HIGH], zero_point = limits[ZERO_POINT], rescaled
    cdef vi32 multiplier = block[MULTIPLIER], left = block[LEFT], right = block[RIGHT]
    cdef vf32 scale = (<const vf32 *> (block + SCALE))[0]
    cdef int i, flip = flip_of(patch.element)
    if patch.rescaling == SHORT:
        for i in range(outputs):
            store_i16(<short *> (y + places.y[i]), min_i32(max_i32(high_multiply(total[i], multiplier), low), high), patch.lanes)
    elif patch.rescaling == AS_IS:
        for i in range(outputs):
            store_i32(<int *> (y + places.y[i]), total[i], patch.lanes)
    elif patch.rescaling == REAL:
        for i in range(outputs):
            store_f32(<float *> (y + places.y[i]), at_most_f32(at_least_f32(scaled(total[i], scale), (<vf32 *> &low)[0]), (<vf32 *> &high)[0]), patch.lanes)
    else:
        for i in range(outputs):
            if patch.rescaling == PLAIN:
                rescaled = min_i32(max_i32(requantize_plain(total[i], multiplier, left, right), low), high)
            elif patch.rescaling == TWICE:
                rescaled = min_i32(max_i32(requantize_tflite(total[i], multiplier, left, right), low), high)
            else:
                rescaled = requantize_float(total[i], scale, (<vf32 *> &low)[0], (<vf32 *> &high)[0])
            store_i8(<signed char *> (y + places.y[i]), rescaled + zero_point, flip, patch.lanes)


cdef inline void tile(
    const vector *limits, const Patch *patch, const vector *block, const vector *weights, const char *x, char *y, const Places *places, vector *sums,
    const int outputs,
) noexcept nogil:
    """`outputs` output vectors, a constant wherever this is called; of integers the sums. `x` and `weights` are at the first tap."""
    cdef vector total[WIDE]
    cdef vector weight
    cdef const char *cell
    cdef Py_ssize_t row, column
    cdef int i

    for i in range(outputs):
        total[i] = block[BIAS]
    for row in range(patch.tap_rows):
        cell = x
        for column in range(patch.tap_columns):
            weight = weights[column]
            for i in range(outputs):
                if vector is not vi32:
                    total[i] = total[i] + (<const vector *> (cell + places.x[i]))[0] * weight
                else:
                    total[i] = dot_i16(total[i], (<const vector *> (cell + places.x[i]))[0], weight)
            cell += patch.tap_column
        x += patch.tap_row
        weights += patch.pitch

    if vector is not vi32:
        for i in range(outputs):
            store_clamped(y + places.y[i], total[i], limits[LOW], limits[HIGH], patch)
    else:
        for i in range(outputs):
            sums[i] = total[i]


cdef void finish_long(const Patch *patch, const vi32 *block, const long long *sums, char *y) noexcept nogil:
    """One output vector of int16 inputs from sums of 64 bits."""
    cdef const Problem *problem = patch.problem
    cdef Py_ssize_t lane
    cdef long long total
    cdef float number
    cdef int value
    for lane in range(patch.lanes):
        total = wrapping_add_64(sums[lane], (<const long long *> (block + LONG_BIAS))[lane])
        if problem.result == SUMS:
            (<long long *> y)[lane] = total
        elif problem.result == REALS:
            number = <float> total * (<const float *> (block + SCALE))[lane]
            (<float *> y)[lane] = min(max(number, problem.float_min), problem.float_max)
        else:
            # MULTIPLIER has 15 bits, RIGHT is at least 1: one half goes up.
            total = wrapping_multiply_64(total, (<const int *> (block + MULTIPLIER))[lane])
            total = wrapping_add_64(total, 1LL << ((<const int *> (block + RIGHT))[lane] - 1))
            value = <int> (total >> (<const int *> (block + RIGHT))[lane])
            (<short *> y)[lane] = <short> min(max(value, problem.quantized_min), problem.quantized_max)


cdef void patch_long(const Patch *patch, const vi32 *block, const vi32 *weights, const char *x, char *y) noexcept nogil:
    """int16 inputs one output vector at a time: sums of 32 bits move into 64 before they can overflow."""
    cdef long long sums[LANES]
    cdef vi32 total
    cdef Py_ssize_t output, row, column, last, lane
    cdef const char *first
    cdef const char *cell
    for output in range(patch.rows * patch.columns):
        first = x + output // patch.columns * patch.x_row + output % patch.columns * patch.x_column
        memset(sums, 0, sizeof(sums))
        for row in range(patch.tap_rows):
            cell = first + row * patch.tap_row
            column = 0
            while column < patch.tap_columns:
                last = min(column + LONG_CELLS, patch.tap_columns)
                total = splat_i32(0)
                while column < last:
                    total = dot_i16(total, (<const vi32 *> cell)[0], weights[row * patch.pitch + column])
                    cell += patch.tap_column
                    column += 1
                for lane in range(LANES):
                    sums[lane] += (<const int *> &total)[lane]
        finish_long(patch, block, sums, y + output // patch.columns * patch.y_row + output % patch.columns * patch.y_column)


cdef void patch_any(const vector *limits, const Patch *patch, const vector *block, const vector *weights, const char *x, char *y) noexcept nogil:
    """Any filter: outputs in reading order, a tile running on into the next row."""
    cdef Places places
    cdef vector sums[WIDE]
    cdef Py_ssize_t done = 0, total = patch.rows * patch.columns, row = 0, column = 0
    cdef int outputs, i
    while done < total:
        outputs = WIDE if total - done >= WIDE else NARROW if total >= NARROW else 1
        if done + outputs > total:
            # The last tile computes some outputs again, which is cheaper than one by one.
            done = total - outputs
            row = done // patch.columns
            column = done % patch.columns
        for i in range(outputs):
            places.x[i] = row * patch.x_row + column * patch.x_column
            places.y[i] = row * patch.y_row + column * patch.y_column
            column += 1
            if column == patch.columns:
                column = 0
                row += 1
        if outputs == WIDE:
            tile(limits, patch, block, weights, x, y, &places, sums, WIDE)
        elif outputs == NARROW:
            tile(limits, patch, block, weights, x, y, &places, sums, NARROW)
        else:
            tile(limits, patch, block, weights, x, y, &places, sums, 1)
        if vector is vi32:
            finish_integers(limits, patch, block, sums, y, &places, outputs)
        done += outputs


cdef inline void row_of_three(
    float_vector *total, float_vector w0, float_vector w1, float_vector w2,
    float_vector x0, float_vector x1, float_vector x2, float_vector x3, float_vector x4, float_vector x5,
) noexcept nogil:
    """One row of a 3x3 filter on four neighbouring outputs."""
    total[0] = total[0] + x0 * w0
    total[1] = total[1] + x1 * w0
    total[2] = total[2] + x2 * w0
    total[3] = total[3] + x3 * w0
    total[0] = total[0] + x1 * w1
    total[1] = total[1] + x2 * w1
    total[2] = total[2] + x3 * w1
    total[3] = total[3] + x4 * w1
    total[0] = total[0] + x2 * w2
    total[1] = total[1] + x3 * w2
    total[2] = total[2] + x4 * w2
    total[3] = total[3] + x5 * w2


cdef void patch_3x3(
    const float_vector *limits, const Patch *patch, const float_vector *block, const float_vector *weights, const char *x, char *y,
) noexcept nogil:
    """Neighbouring outputs of a 3x3 filter share their inputs: tiles of 2 rows and 4 columns load each input once, the weights stay."""
    cdef float_vector upper[NARROW]
    cdef float_vector lower[NARROW]
    cdef float_vector w[9]
    cdef float_vector x0, x1, x2, x3, x4, x5
    cdef float_vector low = limits[LOW], high = limits[HIGH], bias = block[BIAS]
    cdef const char *cell
    cdef char *out
    cdef Py_ssize_t row = 0, column
    cdef int i
    for i in range(3):
        w[i] = weights[i]
        w[i + 3] = weights[i + patch.pitch]
        w[i + 6] = weights[i + 2 * patch.pitch]
    while row < patch.rows:
        # The last tile of a row or column may compute some outputs again.
        row = min(row, patch.rows - 2)
        column = 0
        while column < patch.columns:
            column = min(column, patch.columns - NARROW)
            cell = x + (row * patch.x_row + column * patch.x_column)
            out = y + (row * patch.y_row + column * patch.y_column)
            for i in range(NARROW):
                upper[i] = lower[i] = bias
            for i in range(4):
                x0 = (<const float_vector *> cell)[0]
                x1 = (<const float_vector *> (cell + patch.x_column))[0]
                x2 = (<const float_vector *> (cell + 2 * patch.x_column))[0]
                x3 = (<const float_vector *> (cell + 3 * patch.x_column))[0]
                x4 = (<const float_vector *> (cell + 4 * patch.x_column))[0]
                x5 = (<const float_vector *> (cell + 5 * patch.x_column))[0]
                if i < 3:
                    row_of_three(upper, w[3 * i], w[3 * i + 1], w[3 * i + 2], x0, x1, x2, x3, x4, x5)
                if i > 0:
                    row_of_three(lower, w[3 * i - 3], w[3 * i - 2], w[3 * i - 1], x0, x1, x2, x3, x4, x5)
                cell += patch.x_row
            for i in range(NARROW):
                store_clamped(out + i * patch.y_column, upper[i], low, high, patch)
                store_clamped(out + i * patch.y_column + patch.y_row, lower[i], low, high, patch)
            column += NARROW
        row += 2


cdef void patch_outputs(const vector *limits, const Patch *patch, const vector *block, const vector *weights, const char *x, char *y) noexcept nogil:
    """Every output of a patch, by the fastest tile that fits it."""
    if vector is vi32:
        if patch.rescaling == LONG:
            patch_long(patch, block, weights, x, y)
            return
    else:
        if (
            patch.tap_rows == 3 and patch.tap_columns == 3 and patch.rows >= 2 and patch.columns >= NARROW
            and patch.x_row == patch.tap_row and patch.x_column == patch.tap_column
        ):
            patch_3x3(limits, patch, block, weights, x, y)
            return
    patch_any(limits, patch, block, weights, x, y)
