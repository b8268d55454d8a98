# int8 and uint8 with several filters for a channel: some rows of the input go to scratch, where a channel is there for each of its filters. So it is a
# convolution of one filter for each channel, by pairs, windows or quads, where no kernel of several filters is there.

cdef extern from "repeat.h" nogil:
    void repeat_bytes(
        unsigned char *target, const unsigned char *source, Py_ssize_t rows, Py_ssize_t row, Py_ssize_t runs, Py_ssize_t run, Py_ssize_t count, int times)

cdef enum:
    # What the rows in scratch aim at, and have at most (ADR 0005, D25); outputs, the least, that they are for.
    REPEATED_BYTES = 256 << 10
    MOST_REPEATED = 4 << 20
    REPEATED_ROWS = 4


cdef struct Repeated:
    # One filter for each channel; the whole image.
    Problem wide
    # Output rows at a time; bytes of a row of the input, and of all.
    Py_ssize_t rows, row, room


cdef bint prepare_repeated(Repeated *job, const Problem *problem) noexcept nogil:
    """Whether a problem can be computed here, if pairs or quads compute the wide one, and how."""
    if problem.multiplier == 1 or problem.result != QUANTIZED:
        return False
    if (problem.channels > 1 and problem.x_strides[3] != 1) or problem.y_strides[3] != 1:
        return False
    job.wide = problem[0]
    job.wide.batch = 1
    job.wide.channels *= problem.multiplier
    job.wide.multiplier = 1
    job.wide.channel_room = 0
    job.wide.halo = [0, 0, 0, 0]
    job.row = problem.width * job.wide.channels
    job.wide.x_strides = [0, job.row, job.wide.channels, 1]
    job.rows = (REPEATED_BYTES // max(1, job.row) - rows_below(problem, 1)) // problem.stride_height + 1
    job.rows = min(max(job.rows, REPEATED_ROWS), problem.out_height)
    # Scratch is aligned, and what follows it.
    job.room = divide_up(min(problem.height, rows_below(problem, job.rows)) * job.row, 64) * 64
    return job.room <= MOST_REPEATED


cdef inline bint rather_repeated(const Problem *problem) noexcept nogil:
    """Whether that takes less time than quads: pairs of 16 bits do, from half a vector of outputs on, but of few channels."""
    if WINDOWS or problem.multiplier == 1 or problem.channels < 2 * problem.stride_width:
        return False
    return problem.channels * problem.multiplier >= VECTOR_BYTES // 2


cdef void run_repeated(const Problem *problem, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Repeated job
    cdef Problem *wide = &job.wide
    cdef Py_ssize_t image, last_image = -1, top, rows, last, have_first = 0, have_last = 0
    cdef Part down
    prepare_repeated(&job, problem)
    while begin < end:
        image, top = begin // problem.out_height, begin % problem.out_height
        rows = min(min(job.rows, problem.out_height - top), end - begin)
        down = rows_of(problem, top, rows)
        wide.height, wide.pad_top, wide.out_height = down.extent, down.pad, rows
        last = down.first + down.extent
        if image != last_image or down.first >= have_last:
            have_last = down.first
        else:
            memmove(scratch, scratch + (down.first - have_first) * job.row, (have_last - down.first) * job.row)
        repeat_bytes(
            <unsigned char *> scratch + (have_last - down.first) * job.row,
            <const unsigned char *> x + image * problem.x_strides[0] + have_last * problem.x_strides[1], last - have_last, problem.x_strides[1],
            1 if problem.x_strides[2] == problem.channels else problem.width, problem.x_strides[2],
            problem.channels * (problem.width if problem.x_strides[2] == problem.channels else 1), <int> problem.multiplier,
        )
        last_image, have_first, have_last = image, down.first, last
        run_s8(wide, scratch, y + image * problem.y_strides[0] + top * problem.y_strides[1], NULL, 0, rows)
        begin += rows
