# Register tiles: a few output vectors that stay in registers while the taps of the filter are walked.
#
# Steps are in bytes, so that float32 and int8 share the text; a cell is 4 bytes of input, one lane of a vector.
# A block is what one vector of output channels needs: its constants, then one weight vector for each cell of the filter.

cdef enum:
    # Outputs of a tile: enough independent sums to hide the latency of a multiply-add.
    WIDE = 8
    NARROW = 4

# Vectors of a block before its weights. float32 has the bias only.
cdef enum:
    BIAS
    MULTIPLIER
    LEFT
    RIGHT
    SCALE
    CONSTANTS_S8
    CONSTANTS_F32 = 1

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
    # Elements stored of each output vector; how int8 sums are rounded, as in Problem.
    Py_ssize_t lanes
    int rounding


cdef inline void tile(
    const vector *limits, const Patch *patch, const vector *block, const vector *weights,
    const char *x, Py_ssize_t x_step, char *y, Py_ssize_t y_step, const int outputs,
) noexcept nogil:
    """`outputs` output vectors, a constant wherever this is called. `x` and `weights` are at the first tap."""
    cdef vector total[WIDE]
    cdef vector weight, rescaled, low, high, zero_point, multiplier, left, right
    cdef vf32 scale
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
                if vector is vf32:
                    total[i] = total[i] + (<const vector *> (cell + i * x_step))[0] * weight
                else:
                    total[i] = dot_i16(total[i], (<const vector *> (cell + i * x_step))[0], weight)
            cell += patch.tap_column
        x += patch.tap_row
        weights += patch.pitch

    low = limits[LOW]
    high = limits[HIGH]
    if vector is vf32:
        for i in range(outputs):
            store_f32(<float *> (y + i * y_step), at_most_f32(at_least_f32(total[i], low), high), patch.lanes)
    else:
        # The zero point is added to what is clamped already: no sum can overflow.
        zero_point = limits[ZERO_POINT]
        if patch.rounding == 0:
            multiplier = block[MULTIPLIER]
            left = block[LEFT]
            right = block[RIGHT]
            for i in range(outputs):
                rescaled = requantize_tflite(total[i], multiplier, left, right)
                store_i8(<signed char *> (y + i * y_step), min_i32(max_i32(rescaled, low), high) + zero_point, patch.lanes)
        else:
            scale = (<const vf32 *> (block + SCALE))[0]
            for i in range(outputs):
                rescaled = requantize_float(total[i], scale, (<vf32 *> &low)[0], (<vf32 *> &high)[0])
                store_i8(<signed char *> (y + i * y_step), rescaled + zero_point, patch.lanes)


cdef void line(
    const vector *limits, const Patch *patch, const vector *block, const vector *weights,
    const char *x, Py_ssize_t x_step, char *y, Py_ssize_t y_step, Py_ssize_t outputs,
) noexcept nogil:
    """Output vectors at equal distances. The last tile may compute some of them again, which is cheaper than one by one."""
    cdef Py_ssize_t done = 0
    while outputs - done >= WIDE:
        tile(limits, patch, block, weights, x + done * x_step, x_step, y + done * y_step, y_step, WIDE)
        done += WIDE
    while outputs >= NARROW and done < outputs:
        done = min(done, outputs - NARROW)
        tile(limits, patch, block, weights, x + done * x_step, x_step, y + done * y_step, y_step, NARROW)
        done += NARROW
    while done < outputs:
        tile(limits, patch, block, weights, x + done * x_step, x_step, y + done * y_step, y_step, 1)
        done += 1


cdef void patch_any(const vector *limits, const Patch *patch, const vector *block, const vector *weights, const char *x, char *y) noexcept nogil:
    """Any filter: line by line, down the columns where the rows are too short to fill a tile."""
    cdef Py_ssize_t i
    if patch.columns < NARROW and patch.rows > patch.columns:
        for i in range(patch.columns):
            line(limits, patch, block, weights, x + i * patch.x_column, patch.x_row, y + i * patch.y_column, patch.y_row, patch.rows)
    else:
        for i in range(patch.rows):
            line(limits, patch, block, weights, x + i * patch.x_row, patch.x_column, y + i * patch.y_row, patch.y_column, patch.columns)


cdef inline void row_of_three(vf32 *total, vf32 w0, vf32 w1, vf32 w2, vf32 x0, vf32 x1, vf32 x2, vf32 x3, vf32 x4, vf32 x5) noexcept nogil:
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


cdef void patch_3x3(const vf32 *limits, const Patch *patch, const vf32 *block, const vf32 *weights, const char *x, char *y) noexcept nogil:
    """Neighbouring outputs of a 3x3 filter share their inputs: tiles of 2 rows and 4 columns load each input once, the weights stay."""
    cdef vf32 upper[NARROW]
    cdef vf32 lower[NARROW]
    cdef vf32 w[9]
    cdef vf32 x0, x1, x2, x3, x4, x5
    cdef vf32 low = limits[LOW], high = limits[HIGH], bias = block[BIAS]
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
                x0 = (<const vf32 *> cell)[0]
                x1 = (<const vf32 *> (cell + patch.x_column))[0]
                x2 = (<const vf32 *> (cell + 2 * patch.x_column))[0]
                x3 = (<const vf32 *> (cell + 3 * patch.x_column))[0]
                x4 = (<const vf32 *> (cell + 4 * patch.x_column))[0]
                x5 = (<const vf32 *> (cell + 5 * patch.x_column))[0]
                if i < 3:
                    row_of_three(upper, w[3 * i], w[3 * i + 1], w[3 * i + 2], x0, x1, x2, x3, x4, x5)
                if i > 0:
                    row_of_three(lower, w[3 * i - 3], w[3 * i - 2], w[3 * i - 1], x0, x1, x2, x3, x4, x5)
                cell += patch.x_row
            for i in range(NARROW):
                store_f32(<float *> (out + i * patch.y_column), at_most_f32(at_least_f32(upper[i], low), high), patch.lanes)
                store_f32(<float *> (out + i * patch.y_column + patch.y_row), at_most_f32(at_least_f32(lower[i], low), high), patch.lanes)
            column += NARROW
        row += 2


cdef void patch_outputs(const vector *limits, const Patch *patch, const vector *block, const vector *weights, const char *x, char *y) noexcept nogil:
    """Every output of a patch, by the fastest tile that fits it."""
    if vector is vf32:
        if (
            patch.tap_rows == 3 and patch.tap_columns == 3 and patch.rows >= 2 and patch.columns >= NARROW
            and patch.x_row == patch.tap_row and patch.x_column == patch.tap_column
        ):
            patch_3x3(limits, patch, block, weights, x, y)
            return
    patch_any(limits, patch, block, weights, x, y)
