# Bands: the inputs of a few output rows, copied into scratch in the order in which a tile reads them.
#
# A band takes any layout in: strides of either sign, channels apart, repeated for a depth multiplier, widened from int8, or from
# uint8 as the int8 that is 128 less. Its size depends on neither the height of the image nor the number of channels. An entry is one cell for
# each channel of a block; a folded entry has cells only for the channels there are, so that one vector covers several neighbouring output columns.

cdef enum:
    # Bytes of a cell: one float32, or the int16 of two taps. A float64 takes twice as many.
    CELL = 4


# One axis of the image and the filter. Coordinates are those of the image, 0 its first pixel.
cdef struct Axis:
    Py_ssize_t outputs, stride, pad
    # Cells of the filter, and the pixels from one to the next.
    Py_ssize_t taps, dilation
    # The image from low to before high, with the halo where that is of use.
    Py_ssize_t low, high


# The coordinates that a band keeps of an axis: `runs` arithmetic sequences of `count` entries each.
cdef struct Cut:
    Py_ssize_t runs, count
    Py_ssize_t first, spacing, advance
    # Entries from one output, and from one tap, to the next.
    Py_ssize_t step, tap_step


# Pixels at equal distances, in bytes, from the first channel that is wanted on.
cdef struct Source:
    const char *start
    Py_ssize_t pixel, channel


# What one call of run works out first.
cdef struct Job:
    const Problem *problem
    Axis rows, columns
    # The element type and its bytes, and those of an output; bytes of a cell, and the cells of a vector.
    int element
    Py_ssize_t itemsize, y_itemsize, cell, lanes
    # In bytes: batch, height, width, channel.
    Py_ssize_t x_strides[4]
    Py_ssize_t y_strides[4]
    # Output channels; output columns that share one vector (1: not folded); blocks, and the vectors of one.
    Py_ssize_t channels, fold, blocks, block_vectors
    # Pixels from the first to the second tap of a cell.
    Py_ssize_t second_row, second_column
    # Input channels lie side by side, one for each output channel; they may be read as whole vectors, past the last.
    bint unit, roomy
    # Blocks that have a whole vector to read need no band. Outputs are stored where they belong, with no tile between.
    bint in_place, direct
    # One column only: the axes and their strides are exchanged, so that what is long is a row.
    bint swapped
    # Taps outside of the axes' low and high are left out; else the band has a padding value for each.
    bint skip
    # Output rows and columns at a time; bytes of one entry of a band; bytes of a band, before the tile of outputs.
    Py_ssize_t tile_rows, tile_columns, entry_bytes, band_bytes


cdef inline Py_ssize_t item_bytes(int element) noexcept nogil:
    return 8 if element == FLOAT64 else 4 if element == FLOAT32 else 1 if element == INT8 or element == UINT8 else 2


cdef inline Py_ssize_t divide(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """a / b rounded down; a >= 0, b > 0. Nearly always b is 1, and a division takes as long as the taps of an output."""
    return a if b == 1 else a // b


cdef inline Py_ssize_t divide_up(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """a / b rounded up, but 0 for a negative a; b > 0."""
    return divide(a + b - 1, b) if a > 0 else 0


cdef inline Py_ssize_t common_divisor(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """The greatest of a >= 0 and b > 0."""
    while a > 0 and b > 1:
        a, b = b, a % b
    return b if b > 0 else a


cdef Cut cut_axis(const Axis *axis, Py_ssize_t begin, Py_ssize_t outputs, bint neighbours) noexcept nogil:
    """The entries for outputs begin to begin+outputs: one run shared by all taps, or one run for each tap where that is smaller.

    `neighbours`: neighbouring outputs must read neighbouring entries.
    """
    cdef Cut cut
    cut.first = begin * axis.stride - axis.pad
    cut.advance = axis.dilation
    cut.runs = 1
    if outputs == 1:
        cut.spacing = axis.dilation
        cut.count = axis.taps
        cut.step = cut.tap_step = 1
        return cut
    cut.spacing = common_divisor(axis.dilation if axis.taps > 1 else 0, axis.stride)
    cut.step = divide(axis.stride, cut.spacing)
    cut.tap_step = divide(axis.dilation, cut.spacing)
    cut.count = (outputs - 1) * cut.step + (axis.taps - 1) * cut.tap_step + 1
    if cut.count > outputs * axis.taps or (neighbours and cut.step > 1):
        cut.runs = axis.taps
        cut.count = outputs
        cut.spacing = axis.stride
        cut.step = 1
        cut.tap_step = outputs
    return cut


cdef inline Py_ssize_t line_bytes(const Job *job, const Cut *columns) noexcept nogil:
    """Bytes of a line of a band; its last vector takes what `fill` writes past the last entry."""
    return columns.runs * columns.count * job.entry_bytes + VECTOR_BYTES


cdef inline int flip_of(int element) noexcept nogil:
    """The bits that make an int8, less by 128, of a uint8."""
    return -128 if element == UINT8 else 0


cdef inline void put_cells(vector *entry, const char *first, const char *second, Py_ssize_t lanes, int element) noexcept nogil:
    """The cells of `lanes` neighbouring channels. `second` is the second tap of an integer cell."""
    if vector is vf32:
        entry[0] = load_as_f32(first, lanes, element)
    elif vector is vf64:
        entry[0] = load_f64(<const double *> first, lanes)
    elif element == INT16:
        entry[0] = load_cells_i16(<const short *> first, <const short *> second, lanes)
    else:
        entry[0] = load_cells(<const signed char *> first, <const signed char *> second, flip_of(element), lanes)


cdef inline int integer_cell(const char *first, const char *second, int element) noexcept nogil:
    if element == INT16:
        return cell_i32(lone_i16(first), lone_i16(second))
    return cell_i32((<const signed char *> first)[0] ^ flip_of(element), (<const signed char *> second)[0] ^ flip_of(element))


cdef inline float as_float(const char *source, int element) noexcept nogil:
    """One element; float64 is none of them."""
    cdef vf32 value
    if element == FLOAT32:
        return (<const float *> source)[0]
    value = load_as_f32(source, 1, element)
    return (<const float *> &value)[0]


cdef inline void put_splat(vector *entry, const char *first, const char *second, int element) noexcept nogil:
    """The cell of one channel in all lanes."""
    if vector is vf32:
        entry[0] = splat_f32(as_float(first, element))
    elif vector is vf64:
        entry[0] = splat_f64((<const double *> first)[0])
    else:
        entry[0] = splat_i32(integer_cell(first, second, element))


cdef inline void put_one(vector *entry, const char *first, const char *second, int element) noexcept nogil:
    """The cell of one channel in the first lane."""
    if vector is vf32:
        (<float *> entry)[0] = as_float(first, element)
    elif vector is vf64:
        (<double *> entry)[0] = (<const double *> first)[0]
    else:
        (<int *> entry)[0] = integer_cell(first, second, element)


cdef inline vector *advance(vector *entry, Py_ssize_t byte_count) noexcept nogil:
    return <vector *> (<char *> entry + byte_count)


cdef void fill_repeated(
    const Job *job, vector *entry, Source first, Source second, Py_ssize_t count, Py_ssize_t lead, Py_ssize_t channels,
) noexcept nogil:
    """Entries whose input channels are each repeated for `multiplier` output channels; the first one has `lead` of them behind it."""
    cdef Py_ssize_t done, end, i
    cdef const char *a
    cdef const char *b
    if channels <= min(job.lanes, job.problem.multiplier - lead):
        # One vector of one channel: the first layer of many a model.
        for i in range(count):
            put_splat(advance(entry, i * job.entry_bytes), first.start + i * first.pixel, second.start + i * second.pixel, job.element)
        return
    for _ in range(count):
        a = first.start
        b = second.start
        done = 0
        end = job.problem.multiplier - lead
        while done < channels:
            # Writes past `end`; the next channel or entry overwrites that.
            while done < min(end, channels):
                put_splat(advance(entry, done * job.cell), a, b, job.element)
                done += job.lanes
            done = end
            end += job.problem.multiplier
            a += first.channel
            b += second.channel
        entry = advance(entry, job.entry_bytes)
        first.start += first.pixel
        second.start += second.pixel


cdef void fill_strided(const Job *job, vector *entry, Source first, Source second, Py_ssize_t count, Py_ssize_t channels) noexcept nogil:
    """Entries of channels that lie apart."""
    cdef Py_ssize_t i, lane
    for lane in range(channels):
        for i in range(count):
            put_one(
                advance(entry, i * job.entry_bytes + lane * job.cell),
                first.start + lane * first.channel + i * first.pixel,
                second.start + lane * second.channel + i * second.pixel,
                job.element,
            )


cdef void fill_unit(const Job *job, vector *entry, Source first, Source second, Py_ssize_t count, Py_ssize_t lanes) noexcept nogil:
    """Entries of neighbouring channels."""
    cdef Py_ssize_t i
    if job.fold > 1 and first.pixel == job.channels * job.itemsize and second.pixel == first.pixel:
        # Neighbouring pixels too: one run of cells.
        count *= job.channels
        i = 0
        while i < count:
            put_cells(advance(entry, i * job.cell), first.start + i * job.itemsize, second.start + i * job.itemsize, count - i, job.element)
            i += job.lanes
        return
    if vector is vi32 and lanes < (3 if LANES == 16 else LANES):
        fill_strided(job, entry, first, second, count, lanes)
        return
    for i in range(count):
        put_cells(advance(entry, i * job.entry_bytes), first.start + i * first.pixel, second.start + i * second.pixel, lanes, job.element)


cdef void fill(
    const Job *job, vector *entry, Source first, Source second, Py_ssize_t count, Py_ssize_t lead, Py_ssize_t channels,
) noexcept nogil:
    """`count` entries of `channels` output channels. May write up to one vector past the last entry."""
    if job.problem.multiplier > 1:
        fill_repeated(job, entry, first, second, count, lead, channels)
    elif job.unit:
        fill_unit(job, entry, first, second, count, job.lanes if job.roomy else channels)
    else:
        fill_strided(job, entry, first, second, count, channels)


# What stands for pixels outside the image, a vector each: as elements that a cell is made of, and as cells.
cdef enum:
    BLANK_ELEMENTS
    BLANK_CELLS
    BLANKS


cdef inline void fill_blank(const Job *job, vector *entry, const vector *blank, Py_ssize_t count) noexcept nogil:
    """`count` entries outside the image. May write up to one vector past the last entry."""
    for _ in range(count):
        entry[0] = blank[BLANK_CELLS]
        entry = advance(entry, job.entry_bytes)


cdef inline Source source(const Job *job, const char *line, const vector *blank, Py_ssize_t column, Py_ssize_t spacing) noexcept nogil:
    """Pixels from `column` on in a line of the image; the padding if there is no such line or column."""
    if line == NULL or column < job.columns.low or column >= job.columns.high:
        return Source(<const char *> (blank + BLANK_ELEMENTS), 0, job.itemsize)
    return Source(line + column * job.x_strides[2], spacing * job.x_strides[2], job.x_strides[3])


# The entries of a run, begin to end, whose sources are inside the image: one after another they need no test.
cdef struct Inside:
    Py_ssize_t begin, end


cdef Inside inside(const Job *job, const Cut *cut, Py_ssize_t column) noexcept nogil:
    cdef Py_ssize_t other = column + job.second_column
    cdef Inside area
    area.begin = divide_up(job.columns.low - column, cut.spacing)
    area.end = divide_up(job.columns.high - column, cut.spacing)
    if other != column:
        area.begin = max(area.begin, divide_up(job.columns.low - other, cut.spacing))
        area.end = min(area.end, divide_up(job.columns.high - other, cut.spacing))
    area.begin = min(area.begin, cut.count)
    area.end = min(area.end, cut.count)
    area.end = max(area.begin, area.end)
    return area


cdef void fill_run(
    const Job *job, vector *entry, const char *first, const char *second, const vector *blank, Py_ssize_t column, const Cut *cut,
    const Inside *area, Py_ssize_t lead, Py_ssize_t channels,
) noexcept nogil:
    """One run of columns from two lines of the image, each NULL if it is outside."""
    cdef Py_ssize_t i = area.begin if job.skip else 0, end = area.end if job.skip else cut.count, next_i
    if first == NULL and second == NULL:
        fill_blank(job, entry, blank, cut.count)
        return
    while i < end:
        next_i = area.begin if i < area.begin else area.end if i < area.end else cut.count
        if i != area.begin or i == area.end:
            if job.second_column == 0:
                fill_blank(job, advance(entry, i * job.entry_bytes), blank, next_i - i)
                i = next_i
                continue
            # Here the two taps of a cell leave the image one after the other.
            next_i = i + 1
        fill(
            job, advance(entry, i * job.entry_bytes),
            source(job, first, blank, column + i * cut.spacing, cut.spacing),
            source(job, second, blank, column + job.second_column + i * cut.spacing, cut.spacing),
            next_i - i, lead, channels,
        )
        i = next_i


cdef inline const char *image_line(const Job *job, const char *image, Py_ssize_t row) noexcept nogil:
    """A row of the image, NULL if it is outside."""
    if row < job.rows.low or row >= job.rows.high:
        return NULL
    return image + row * job.x_strides[1]


cdef void fill_band(
    const Job *job, vector *band, const char *image, const vector *blank, const Cut *rows, const Cut *columns, Py_ssize_t channel, Py_ssize_t channels,
) noexcept nogil:
    """All entries of a band."""
    cdef Py_ssize_t run, row_run, column, row, lead = 0
    cdef const char *first
    cdef vector *entry
    cdef Inside area
    if job.problem.multiplier > 1:
        lead = channel % job.problem.multiplier
        channel //= job.problem.multiplier
    image += channel * job.x_strides[3]
    for run in range(columns.runs):
        column = columns.first + run * columns.advance
        area = inside(job, columns, column)
        entry = advance(band, run * columns.count * job.entry_bytes)
        for row_run in range(rows.runs):
            row = rows.first + row_run * rows.advance
            for _ in range(rows.count):
                first = image_line(job, image, row)
                if first != NULL or not job.skip:
                    fill_run(job, entry, first, image_line(job, image, row + job.second_row), blank, column, columns, &area, lead, channels)
                entry = advance(entry, line_bytes(job, columns))
                row += rows.spacing
