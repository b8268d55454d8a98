# Signals: images of one row or one column, with channels side by side. Kernels walk both, but not as fast: rows and columns change places (ADR 0005, D26).
# So they do in tall images of a few columns, which vectors and tiles of columns are too wide for (D28).

cdef enum:
    STAYS
    TURNS
    TURNS_IN_SCRATCH
    # Times as high as wide; output columns, of most kernels and of those that gain most; products of a column that pay for two moves.
    TALL = 4
    NARROW = 20
    WIDE = 40
    WORTH_MOVING = 300
    # Bytes in a row that a vector of taps may come from: beyond, kernels of rows, or of columns, are others.
    REACH = 63
    # Taps and filters of a channel from which columns of integers of many channels are faster, and rows of halves.
    MANY_TAPS = 17
    # Elements of the planes of one column that one thread computes as soon as several.
    SHORT_SIGNALS = 64 << 10


cdef bint is_faster_as_row(const Problem *problem, Py_ssize_t taps, Py_ssize_t step, int lanes) noexcept:
    """Whether a signal of so many taps and such a step is faster as a row than as a column; the measured times are in ADR 0005."""
    cdef bint reaches = taps + 5 * step <= REACH, many = taps + problem.multiplier >= MANY_TAPS
    if problem.element == INT8 or problem.element == UINT8:
        return taps <= REACH + 1 and (problem.channels <= lanes if problem.multiplier == 1 else lanes == 16)
    if problem.multiplier == 1 and problem.channels <= (lanes // 4 if problem.element == FLOAT32 else 4):
        return reaches or step == 1
    if problem.multiplier == 1 and problem.channels <= (lanes // 3 if problem.element == FLOAT32 else lanes - 1):
        return True
    return not reaches or many and problem.element != FLOAT32


cdef bint is_faster_as_column(const Problem *problem, int lanes, int threads) noexcept:
    """The same of one row: a column has, besides, rows of outputs for threads to share."""
    cdef Py_ssize_t taps = problem.kernel_width
    if is_faster_as_row(problem, taps, problem.stride_width, lanes):
        return False
    if problem.element == INT8 or problem.element == UINT8:
        return taps + problem.multiplier >= MANY_TAPS
    return taps + 5 * problem.stride_width > REACH or threads > 1 and problem.element == FLOAT32


cdef bint turns_signal(const Problem *problem, int lanes, int threads) noexcept:
    """Whether rows and columns of a problem, which is that of an image, change places."""
    cdef bint single = problem.channels * problem.multiplier == 1, beside = problem.x_strides[3] == problem.y_strides[3] == 1
    cdef bint column = problem.width == 1 and problem.out_width == 1 and problem.kernel_width == 1 and problem.pad_left == 0 and problem.out_height > 1
    if problem.element == FLOAT64 or problem.element == INT16:
        return False
    if not (single or beside):
        # Planes of one column lie as rows do, which have strips; but threads share no row.
        return (
            column and problem.element == FLOAT32 and lanes == 16 and problem.stride_height == 1 and problem.x_strides[1] == problem.y_strides[1] == 1
            and (threads == 1 or problem.out_height * problem.channels <= SHORT_SIGNALS)
        )
    if column:
        return is_faster_as_row(problem, problem.kernel_height, problem.stride_height, lanes)
    if problem.height == 1 and problem.out_height == 1 and problem.kernel_height == 1 and problem.pad_top == 0 and problem.out_width > 1:
        return is_faster_as_column(problem, lanes, threads)
    return False


cdef void turn_image(Problem *problem) noexcept:
    """Rows and columns change places; the weights are for whoever packs them."""
    problem.height, problem.width = problem.width, problem.height
    problem.out_height, problem.out_width = problem.out_width, problem.out_height
    problem.kernel_height, problem.kernel_width = problem.kernel_width, problem.kernel_height
    problem.stride_height, problem.stride_width = problem.stride_width, problem.stride_height
    problem.dilation_height, problem.dilation_width = problem.dilation_width, problem.dilation_height
    problem.pad_top, problem.pad_left = problem.pad_left, problem.pad_top
    problem.x_strides[1], problem.x_strides[2] = problem.x_strides[2], problem.x_strides[1]
    problem.y_strides[1], problem.y_strides[2] = problem.y_strides[2], problem.y_strides[1]


cdef int turns_narrow(const Problem *problem, int lanes) noexcept:
    """Whether rows and columns of a tall narrow image change places: where it lies, or, as a few channels want their columns side by side, in scratch."""
    cdef bint small = problem.element == INT8 or problem.element == UINT8
    cdef Py_ssize_t width = problem.out_width, channels = problem.channels, most
    cdef Py_ssize_t products = problem.out_height * problem.kernel_height * problem.kernel_width
    if problem.multiplier > 1 or not (small or problem.element == FLOAT32) or problem.out_height < TALL * width:
        return STAYS
    if channels > 1 and not (problem.x_strides[3] == problem.y_strides[3] == 1):
        return STAYS
    if not small:
        if channels >= 8:
            return TURNS if width <= 2 else STAYS
        if width > 1 and (channels > 1 or lanes < 16 or width > 8 or problem.out_height < 2 * TALL * width):
            return STAYS
        return TURNS_IN_SCRATCH if products >= 2 * WORTH_MOVING else STAYS
    if width == 1 and channels < 64 and (channels > 8 or problem.kernel_width <= 3):
        return TURNS
    if channels <= 8 and channels < lanes:
        # Pixels of 1, 2, 4 and 8 bytes are moved together.
        most = 8 if channels & (channels - 1) else 16 if channels == 8 else WIDE
        return TURNS_IN_SCRATCH if width <= most and products >= WORTH_MOVING else STAYS
    return TURNS if width <= (NARROW if channels <= 16 else 4) and channels < 64 else STAYS
