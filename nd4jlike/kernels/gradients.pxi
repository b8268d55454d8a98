# The kernels of gradients by weights: one text, compiled once for each instruction set (ADR 0004, 0018).
#
# The sums of a vector of channels (a *block*) stay in registers along a run of outputs (gradients.h), then in scratch as float32; after MOST_TERMS
# outputs at most they are added to sums in double precision, so the error does not grow with the image or the batch.
from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memset

from nd4jlike.kernels.gradients cimport GradientTable
from nd4jlike.kernels.problem cimport Problem

cdef extern from "simd.h" nogil:
    ctypedef float vf32
    ctypedef int vi32
    const int LANES

cdef extern from "gradients.h" nogil:
    const int PART_TAPS
    const int PART_STRIDES
    ctypedef struct Strip:
        Py_ssize_t x_row, x_column, grad_column, sums_row
        vf32 *total
        int begin, end
        Py_ssize_t outputs, low, high, first_whole, end_whole
        vi32 index
        Py_ssize_t sources, lanes
    ctypedef void (*Adder)(const Strip *strip, vf32 *memory, const char *x, const char *grad) noexcept nogil
    Adder adders[8][3][2][2]
    int part_rows[8]
    void move_sums(double *target, float *source, Py_ssize_t count)
    void sum_groups_f32(const float *source, float *target, Py_ssize_t pixels, Py_ssize_t step, Py_ssize_t count, Py_ssize_t pitch, Py_ssize_t group)

cdef enum:
    CELL = 4
    # Products that are added in float32 at most.
    MOST_TERMS = 256
    # Vectors of a pixel from which on one more pays, where all but the first and the last are lines then (D13); of filters of so few taps that loads decide.
    ALIGNED_BLOCKS = 16
    ALIGNED_FEW = 4
    LOADED_TAPS = 9
    # Rows of inputs that the next rows of outputs need again: they stay in a second-level cache.
    BAND_BYTES = 256 << 10


# Taps `first` to first + taps of a row of the filter, on outputs p, p + phases, ..; `step` in steps of the dilation.
cdef struct Across:
    Py_ssize_t first, taps, dilation, phases, step


cdef struct Job:
    const Problem *problem
    Py_ssize_t channels, taps
    # Channels before the second block, if fewer than a vector has; 0: they are as many.
    Py_ssize_t lead
    # Whether inputs are spread over the lanes: a depth multiplier, or fewer channels than lanes.
    bint spread
    # Whether the gradients themselves are summed, too.
    bint biased


cdef inline Py_ssize_t divide_up(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Rounded to the right; b > 0."""
    return (a + b - 1) // b if a > 0 else -(-a // b)


cdef Job job_of(const Problem *problem) noexcept nogil:
    cdef Job job
    job.problem = problem
    job.channels = problem.channels * problem.multiplier
    job.taps = problem.kernel_height * problem.kernel_width
    job.spread = problem.multiplier > 1 or job.channels < LANES
    job.lead = problem.lead % LANES if not job.spread and job.channels >= (ALIGNED_FEW if job.taps <= LOADED_TAPS else ALIGNED_BLOCKS) * LANES else 0
    return job


cdef inline Py_ssize_t first_channel(const Job *job, Py_ssize_t block) noexcept nogil:
    """The output channel in lane 0: the last block ends with the last channel, and computes some again, as the second one does behind a `lead`."""
    if job.lead and block > 0:
        block -= 1
        return min(block * LANES + job.lead, job.channels - LANES)
    return max(0, min(block * LANES, job.channels - LANES))


cdef inline Py_ssize_t repeated_lanes(const Job *job, Py_ssize_t block) noexcept nogil:
    """Lanes whose channels are those of the block before."""
    return first_channel(job, block - 1) + LANES - first_channel(job, block) if block > 0 else 0


cdef Py_ssize_t blocks_of(const Problem *problem) noexcept nogil:
    cdef Job job = job_of(problem)
    return divide_up(job.channels - job.lead, LANES) + (job.lead > 0)


cdef Py_ssize_t scratch_bytes(const Problem *problem, Py_ssize_t count) noexcept nogil:
    """For each tap and the bias a float32 and a double, a lane each."""
    cdef Job job = job_of(problem)
    return count * (job.taps + 1) * LANES * <Py_ssize_t> (sizeof(float) + sizeof(double))


cdef Across across_of(const Problem *problem, Py_ssize_t first) noexcept nogil:
    """The widest part of a row of the filter from a tap on."""
    cdef Across across
    cdef Py_ssize_t a = problem.dilation_width, b = problem.stride_width
    while b:
        a, b = b, a % b
    across.first = first
    across.taps = min(problem.kernel_width - first, PART_TAPS - 1)
    across.dilation, across.phases, across.step = problem.dilation_width, problem.dilation_width // a, problem.stride_width // a
    while across.taps > 1 and (across.step >= PART_STRIDES or adders[across.taps][across.step][0][0] == NULL):
        across.taps -= 1
    if across.taps == 1:
        across.dilation, across.phases, across.step = problem.stride_width, 1, 1
    return across


cdef void spread_of(const Job *job, Strip *strip, Py_ssize_t first) noexcept nogil:
    """Which inputs the lanes of a block take."""
    cdef int *index = <int *> &strip.index
    cdef Py_ssize_t lane
    strip.lanes = min(LANES, job.channels)
    for lane in range(LANES):
        index[lane] = <int> (min(first + lane, job.channels - 1) // job.problem.multiplier - first // job.problem.multiplier)
    strip.sources = index[LANES - 1] + 1


cdef void add_band(
    const Job *job, Strip *strip, vf32 *sums, const char *x, const char *grad, Py_ssize_t row, Py_ssize_t last, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    """All taps at outputs begin to end, in columns, of rows `row` to `last`; x and grad are at the image, and the block."""
    cdef const Problem *problem = job.problem
    cdef Across across
    cdef Py_ssize_t phase, first, position
    strip.x_row = problem.dilation_height * problem.x_strides[1] * CELL
    strip.sums_row = problem.kernel_width
    across.first = across.taps = 0
    while across.first + across.taps < problem.kernel_width:
        across = across_of(problem, across.first + across.taps)
        strip.x_column = across.dilation * problem.x_strides[2] * CELL
        strip.grad_column = across.phases * problem.y_strides[2] * CELL
        for phase in range(across.phases):
            # Outputs of the phase within begin to end.
            first = divide_up(begin - phase, across.phases) * across.phases + phase
            strip.outputs = divide_up(end - first, across.phases)
            if strip.outputs <= 0:
                continue
            position = first * problem.stride_width - problem.pad_left + across.first * problem.dilation_width
            strip.low = divide_up(-position, across.dilation)
            strip.high = divide_up(problem.width - position, across.dilation)
            strip.first_whole = max(0, divide_up(strip.low, across.step))
            strip.end_whole = min(strip.outputs, divide_up(strip.high - across.taps + 1, across.step))
            add_rows(
                job, &across, strip, sums, x + position * problem.x_strides[2] * CELL, grad + first * problem.y_strides[2] * CELL, row, last,
            )


cdef void add_rows(
    const Job *job, const Across *across, Strip *strip, vf32 *sums, const char *x, const char *grad, Py_ssize_t row, Py_ssize_t last,
) noexcept nogil:
    """The taps of a part of the filter's columns at outputs of one phase; x and grad are at the first of them."""
    cdef const Problem *problem = job.problem
    cdef Py_ssize_t i, tap, top, begin, end, rows = part_rows[across.taps], dilation = problem.dilation_height
    for i in range(row, last):
        tap = 0
        while tap < problem.kernel_height:
            top = i * problem.stride_height - problem.pad_top + tap * dilation
            begin, end = -top, problem.height - top
            if dilation > 1:
                begin, end = divide_up(begin, dilation), divide_up(end, dilation)
            strip.begin = <int> min(rows, max(0, begin))
            strip.end = <int> max(strip.begin, min(min(rows, problem.kernel_height - tap), end))
            strip.total = sums + job.taps if job.biased and across.first == 0 and tap == 0 else NULL
            if strip.begin < strip.end or strip.total != NULL:
                adders[across.taps][across.step][strip.begin == 0 and strip.end == rows][job.spread](
                    strip, sums + tap * problem.kernel_width + across.first, x + top * problem.x_strides[1] * CELL, grad + i * problem.y_strides[1] * CELL,
                )
            tap += rows


cdef void sum_blocks(
    const Problem *problem, const float *x, const float *grad, float *weights, float *bias, void *scratch, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    cdef Job job = job_of(problem)
    cdef Py_ssize_t vectors = job.taps + 1, count = end - begin, image, row, rows, columns, column, last, block, band, lane, tap, first, terms = 0
    cdef float *sums = <float *> scratch
    cdef double *totals = <double *> (sums + count * vectors * LANES)
    cdef const char *x_image
    cdef const char *grad_image
    cdef Strip strip
    job.biased = bias != NULL
    memset(scratch, 0, scratch_bytes(problem, count))
    # A band is some rows, of MOST_TERMS outputs at most: a block after the other.
    columns = min(problem.out_width, MOST_TERMS)
    rows = max(1, min(MOST_TERMS // columns, BAND_BYTES // max(1, (problem.stride_height * problem.width + problem.out_width) * job.channels * CELL)))
    for image in range(problem.batch):
        row = 0
        while row < problem.out_height:
            last = min(problem.out_height, row + rows)
            column = 0
            while column < problem.out_width:
                band = (last - row) * min(columns, problem.out_width - column)
                for block in range(count):
                    first = first_channel(&job, begin + block)
                    if terms + band > MOST_TERMS:
                        move_sums(totals + block * vectors * LANES, sums + block * vectors * LANES, vectors * LANES)
                    if job.spread:
                        spread_of(&job, &strip, first)
                    x_image = <const char *> (x + image * problem.x_strides[0] + first // problem.multiplier)
                    grad_image = <const char *> (grad + image * problem.y_strides[0] + first)
                    add_band(
                        &job, &strip, <vf32 *> (sums + block * vectors * LANES), x_image, grad_image, row, last, column,
                        min(column + columns, problem.out_width),
                    )
                terms = band if terms + band > MOST_TERMS else terms + band
                column += columns
            row = last
    move_sums(totals, sums, count * vectors * LANES)
    for block in range(count):
        first = first_channel(&job, begin + block)
        # Channels of the block before are its own.
        for lane in range(repeated_lanes(&job, begin + block), min(LANES, job.channels)):
            for tap in range(job.taps):
                weights[tap * job.channels + first + lane] = <float> totals[(block * vectors + tap) * LANES + lane]
            if bias != NULL:
                bias[first + lane] = <float> totals[(block * vectors + job.taps) * LANES + lane]


cdef void sum_groups(
    const float *source, float *target, Py_ssize_t pixels, Py_ssize_t step, Py_ssize_t count, Py_ssize_t pitch, Py_ssize_t group,
) noexcept nogil:
    sum_groups_f32(source, target, pixels, step, count, pitch, group)


cdef GradientTable table


cdef object export(const char *isa):
    """The capsule of this module's table; `isa` is a literal."""
    table.isa, table.blocks, table.scratch_bytes, table.sum, table.sum_groups = isa, blocks_of, scratch_bytes, sum_blocks, sum_groups
    return PyCapsule_New(&table, "nd4jlike.kernels.GradientTable", NULL)
