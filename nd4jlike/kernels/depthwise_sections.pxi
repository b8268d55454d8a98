# Sections of an image, some rows of all channels, or of some, that are computed in scratch as float32. Halves whose channels lie side by side and that have no
# tiles become float32 there and the results halves again: the same bits as a float32 plan's, rounded. float32 is copied there and back where pixels share few
# sets of a first-level cache: runs of a pixel are as fast as of other pixels, single vectors of many pixels two to four times as slow.

cdef enum:
    # Of float32 that halves become at a time, with the outputs, and of a pixel of it; output columns at least, most of whose inputs are their own.
    HALVES_BYTES = 256 << 10
    HALVES_PIXEL = 256
    HALVES_COLUMNS = 32
    # The same of float32.
    COPIED_BYTES = 192 << 10
    COPIED_PIXEL = 1024
    # The same of inputs alone.
    COPIED_INPUTS = 512
    # Bytes of a section at most (ADR 0005, D25).
    LARGEST_SECTION = 8 << 20


cdef struct Sections:
    # Output rows, columns and input channels at a time; bytes of their inputs and outputs.
    Py_ssize_t rows, columns, channels, x_bytes, y_bytes
    # That as float32; whether pixels of a few channels are a plane.
    Problem wide
    bint mixed


cdef inline bint copies_inputs(const Problem *problem) noexcept nogil:
    """Whether float32 is written where it belongs: the outputs of a tile have room in two sets, without its inputs."""
    return problem.element == FLOAT32 and problem.sets == 2


cdef inline Py_ssize_t columns_below(const Problem *problem, Py_ssize_t columns) noexcept nogil:
    """As rows_below."""
    return (columns - 1) * problem.stride_width + (problem.kernel_width - 1) * problem.dilation_width + 1


cdef void size_sections(Sections *job, const Problem *problem, Py_ssize_t channels) noexcept nogil:
    """As many input channels at a time. Pixels as the input has them are one run; else they are whole vectors."""
    cdef Problem *wide = &job.wide
    cdef Py_ssize_t outputs = channels * problem.multiplier, x_pitch = channels, y_pitch = outputs
    if not job.mixed:
        x_pitch = divide_up(channels, LANES) * LANES
        y_pitch = divide_up(outputs, LANES) * LANES
        if problem.element == FLOAT32:
            # One line more: neither do these pixels share sets.
            x_pitch += LINE_BYTES // 4
            y_pitch += LINE_BYTES // 4
        elif channels == problem.channels and channels <= problem.x_strides[2] <= channels + problem.channel_room:
            x_pitch = problem.x_strides[2]
        if problem.element != FLOAT32 and channels == problem.channels and problem.y_strides[2] == outputs:
            y_pitch = outputs
    job.channels = channels
    wide.channels = channels
    wide.channel_room = x_pitch - channels
    wide.x_strides = [0, min(problem.width, columns_below(problem, job.columns)) * x_pitch, x_pitch, 1]
    wide.y_strides = [0, job.columns * y_pitch, y_pitch, 1]
    # The last vector is written whole, and of sums read whole.
    job.x_bytes = divide_up(min(problem.height, rows_below(problem, job.rows)) * wide.x_strides[1] * 4 + VECTOR_BYTES, VECTOR_BYTES) * VECTOR_BYTES
    job.y_bytes = job.rows * wide.y_strides[1] * 4 + VECTOR_BYTES
    if VECTOR_BYTES < 64:
        if copies_inputs(problem):
            wide.y_strides = [0, problem.y_strides[1], problem.y_strides[2], 1]
            job.y_bytes = 0


cdef bint prepare_sections(Sections *job, const Problem *problem) noexcept nogil:
    """Plan a call of what prepare_rows leaves; whether a problem is computed here. The weights are packed for `packing_of`."""
    cdef Problem *wide = &job.wide
    cdef Py_ssize_t channels = problem.channels, least, most = HALVES_BYTES, pixel = HALVES_PIXEL
    cdef Rows plain
    if problem.element == FLOAT32:
        most, pixel = COPIED_BYTES, COPIED_PIXEL
        if VECTOR_BYTES < 64:
            if copies_inputs(problem):
                pixel = COPIED_INPUTS
        if not shares_sets(problem):
            return False
    if (
        problem.element == FLOAT64 or mixed_lanes(problem) or problem.x_block or problem.y_block
        or (channels > 1 and problem.x_strides[3] != 1) or (channels * problem.multiplier > 1 and problem.y_strides[3] != 1)
    ):
        return False
    wide[0] = problem[0]
    # Which rows are pairs must not depend on where threads part.
    wide.element, wide.batch, wide.distance, wide.sets, wide.algorithm = FLOAT32, 1, IN_CACHE, 0, DIRECT
    job.rows, job.columns = problem.out_height, problem.out_width
    job.mixed = True
    size_sections(job, problem, channels)
    job.mixed = mixed_lanes(wide) != 0
    # Bands hold few channels as densely, and lose against float32 only where there is a step, or strips.
    if job.mixed and problem.stride_width == 1 and not (has_mixed_strips(wide) or is_line(wide)):
        return False
    if job.mixed and problem.packed != NULL and not (<const int *> problem.packed)[FINITE_FLAG]:
        return False
    if not job.mixed:
        if problem.multiplier == 1 and channels * 4 > pixel:
            channels = divide_up(divide_up(channels, divide_up(channels * 4, pixel)), LANES) * LANES
        size_sections(job, problem, channels)
        if not prepare_rows(&plain, wide):
            return False
    # Output rows, half of whose inputs are their own.
    least = max(2, divide_up(divide_up((problem.kernel_height - 1) * problem.dilation_height, problem.stride_height), 2) * 2)
    while job.x_bytes + job.y_bytes > most and (job.rows > least or job.columns > HALVES_COLUMNS):
        if job.rows > least:
            job.rows = divide_up(job.rows // 2, least) * least
        else:
            job.columns = (job.columns + 1) // 2
        size_sections(job, problem, channels)
    # What lies between outputs that are far apart is not worth a copy.
    return job.x_bytes + job.y_bytes <= LARGEST_SECTION


cdef Problem packing_of(const Sections *job, const Problem *problem) noexcept nogil:
    """All channels as float32. Of a part of them, blocks are whole vectors."""
    cdef Problem wide = job.wide
    if job.channels < problem.channels:
        wide.channels, wide.channel_room = problem.channels, LANES
    return wide


cdef void run_sections(const Sections *given, const Problem *problem, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Output rows begin to end of batch*out_height."""
    cdef Problem wide = given.wide
    cdef Rows job
    cdef Py_ssize_t image, top, column, channel, row, count, itemsize = item_bytes(problem.element)
    cdef const Py_ssize_t *x_strides = &problem.x_strides[0]
    cdef const Py_ssize_t *y_strides = &problem.y_strides[0]
    cdef char *sums = scratch + given.x_bytes
    cdef const char *source
    cdef char *target
    cdef Part down, across
    while begin < end:
        image = begin // problem.out_height
        top = begin % problem.out_height
        wide.out_height = min(min(given.rows, problem.out_height - top), end - begin)
        down = rows_of(problem, top, wide.out_height)
        wide.height, wide.pad_top = down.extent, down.pad
        column = 0
        while column < problem.out_width:
            wide.out_width = min(given.columns, problem.out_width - column)
            # A column alone may be computed otherwise.
            wide.out_width -= problem.out_width - column - wide.out_width == 1
            across = part_of(column * problem.stride_width - problem.pad_left, columns_below(problem, wide.out_width), problem.width)
            wide.width, wide.pad_left = across.extent, across.pad
            channel = 0
            while channel < problem.channels:
                wide.channels = min(given.channels, problem.channels - channel)
                wide.channel_room = wide.x_strides[2] - wide.channels
                # With what may be read behind the last channel.
                count = wide.x_strides[2] if problem.channels + problem.channel_room - channel >= wide.x_strides[2] else wide.channels
                source = x + (image * x_strides[0] + down.first * x_strides[1] + across.first * x_strides[2] + channel) * itemsize
                target = y + (image * y_strides[0] + top * y_strides[1] + column * y_strides[2] + channel * problem.multiplier) * itemsize
                for row in range(wide.height):
                    widen_runs(
                        <float *> scratch + row * wide.x_strides[1], wide.x_strides[2], source + row * x_strides[1] * itemsize, x_strides[2] * itemsize,
                        wide.width, count, problem.element,
                    )
                if VECTOR_BYTES < 64:
                    if copies_inputs(problem):
                        sums = target
                if given.mixed:
                    run_mixed(&wide, scratch, sums, 0, wide.out_height)
                else:
                    prepare_rows(&job, &wide)
                    wide.packed = <const char *> problem.packed + channel // LANES * job.block_vectors * VECTOR_BYTES
                    run_rows(&job, &wide, scratch, sums, 0, wide.out_height)
                if VECTOR_BYTES < 64:
                    if copies_inputs(problem):
                        channel += wide.channels
                        continue
                for row in range(wide.out_height):
                    narrow_runs(
                        target + row * y_strides[1] * itemsize, y_strides[2] * itemsize, <const float *> sums + row * wide.y_strides[1], wide.y_strides[2],
                        wide.out_width, wide.channels * problem.multiplier, problem.element,
                    )
                channel += wide.channels
            column += wide.out_width
        begin += wide.out_height
