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


# Rows and columns of output vectors that share their taps: the whole filter, or the rectangle of it that lies inside the image.
cdef struct Patch:
    Py_ssize_t rows, columns
    Py_ssize_t x_row, x_column, y_row, y_column
    Py_ssize_t tap_rows, tap_columns
    Py_ssize_t tap_row, tap_column
    # Weight vectors from one row of the whole filter to the next.
    Py_ssize_t pitch
    # Elements stored of each output vector.
    Py_ssize_t lanes


cdef inline void finish(const Problem *problem, const vector *block, vector total, char *y, Py_ssize_t lanes) noexcept nogil:
    """From sums to stored outputs: clamp, or requantize, clamp and narrow."""
    if vector is vf32:
        store_f32(<float *> y, at_most_f32(at_least_f32(total, splat_f32(problem.float_min)), splat_f32(problem.float_max)), lanes)
    else:
        # The zero point is added to what is clamped already: no sum can overflow.
        low = problem.quantized_min - problem.output_zero_point
        high = problem.quantized_max - problem.output_zero_point
        if problem.rounding == 0:
            total = requantize_tflite(total, block[MULTIPLIER], block[LEFT], block[RIGHT])
            total = min_i32(max_i32(total, splat_i32(low)), splat_i32(high))
        else:
            total = requantize_float(total, (<const vf32 *> (block + SCALE))[0], splat_f32(low), splat_f32(high))
        store_i8(<signed char *> y, total + splat_i32(problem.output_zero_point), lanes)


cdef inline void tile(
    const Problem *problem, const Patch *patch, const vector *block, const vector *weights,
    const char *x, Py_ssize_t x_step, char *y, Py_ssize_t y_step, const int outputs,
) noexcept nogil:
    """`outputs` output vectors, a constant wherever this is called. `x` and `weights` are at the first tap."""
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
                if vector is vf32:
                    total[i] = total[i] + (<const vector *> (cell + i * x_step))[0] * weight
                else:
                    total[i] = dot_i16(total[i], (<const vector *> (cell + i * x_step))[0], weight)
            cell += patch.tap_column
        x += patch.tap_row
        weights += patch.pitch
    for i in range(outputs):
        finish(problem, block, total[i], y + i * y_step, patch.lanes)


cdef void line(
    const Problem *problem, const Patch *patch, const vector *block, const vector *weights,
    const char *x, Py_ssize_t x_step, char *y, Py_ssize_t y_step, Py_ssize_t outputs,
) noexcept nogil:
    """Output vectors at equal distances. The last tile may compute some of them again, which is cheaper than one by one."""
    cdef Py_ssize_t done = 0
    while outputs - done >= WIDE:
        tile(problem, patch, block, weights, x + done * x_step, x_step, y + done * y_step, y_step, WIDE)
        done += WIDE
    while outputs >= NARROW and done < outputs:
        done = min(done, outputs - NARROW)
        tile(problem, patch, block, weights, x + done * x_step, x_step, y + done * y_step, y_step, NARROW)
        done += NARROW
    while done < outputs:
        tile(problem, patch, block, weights, x + done * x_step, x_step, y + done * y_step, y_step, 1)
        done += 1


cdef void patch_any(const Problem *problem, const Patch *patch, const vector *block, const vector *weights, const char *x, char *y) noexcept nogil:
    """Any filter: line by line, down the columns where the rows are too short to fill a tile."""
    cdef Py_ssize_t i
    if patch.columns < NARROW and patch.rows > patch.columns:
        for i in range(patch.columns):
            line(problem, patch, block, weights, x + i * patch.x_column, patch.x_row, y + i * patch.y_column, patch.y_row, patch.rows)
    else:
        for i in range(patch.rows):
            line(problem, patch, block, weights, x + i * patch.x_row, patch.x_column, y + i * patch.y_row, patch.y_column, patch.columns)


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


cdef void patch_3x3(const Problem *problem, const Patch *patch, const vf32 *block, const vf32 *weights, const char *x, char *y) noexcept nogil:
    """Neighbouring outputs of a 3x3 filter share their inputs: tiles of 2 rows and 4 columns load each input once, the weights stay."""
    cdef vf32 upper[NARROW]
    cdef vf32 lower[NARROW]
    cdef vf32 w[9]
    cdef vf32 x0, x1, x2, x3, x4, x5
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
                upper[i] = lower[i] = block[BIAS]
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
                finish(problem, block, upper[i], out + i * patch.y_column, patch.lanes)
                finish(problem, block, lower[i], out + i * patch.y_column + patch.y_row, patch.lanes)
            column += NARROW
        row += 2


cdef void patch_outputs(const Problem *problem, const Patch *patch, const vector *block, const vector *weights, const char *x, char *y) noexcept nogil:
    """Every output of a patch, by the fastest tile that fits it."""
    if vector is vf32:
        if (
            patch.tap_rows == 3 and patch.tap_columns == 3 and patch.rows >= 2 and patch.columns >= NARROW
            and patch.x_row == patch.tap_row and patch.x_column == patch.tap_column
        ):
            patch_3x3(problem, patch, block, weights, x, y)
            return
    patch_any(problem, patch, block, weights, x, y)
