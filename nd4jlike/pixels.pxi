# Planes as pixels: what lies with its channels apart (NCHW) and has no kernels there, or slower ones, is computed with channels side by side. Some channels
# of some rows of an image at a time are brought to scratch, and their results to where they belong. Few large planes are images of one channel, instead,
# where they lie (ADR 0004).

cdef enum:
    # What the inputs and outputs of a section aim at, at most: they stay in a second-level cache.
    SECTION_BYTES = 384 << 10
    # Channels at a time, so many times as many of images that are small, up to these bytes; and less where each has several filters, or until a section has
    # outputs of so many windows one above the other.
    SECTION_CHANNELS = 64
    SMALL_BYTES = 128 << 10
    FEW_CHANNELS = 16
    MANY_WINDOWS = 4
    # Up to so many planes, of outputs from so many on, are computed one by one.
    FEW_PLANES = 7
    LARGE_PLANE = 4096
    # The least section of planes of which little is read, by large steps or dilation, is at most this (ADR 0005, D25).
    SKIMMED_BYTES = 8 << 20


# Of two side by side, the second one is for the last channels, where these are fewer: its pixels are as far apart as suits so many.
cdef struct Planes:
    # How elements are moved.
    const MoveTable *moves
    # From element (0, .., 0) on: the arrays, and the pixels in scratch.
    Layout x, y, x_pixels, y_pixels
    int image_axis, row_axis, channel_axis
    # Channels of the input, and those of a section; where the last ones are fewer, their problem. Bytes of the packed weights of each.
    Py_ssize_t channels, together
    Problem rest
    Py_ssize_t packed_bytes
    # Rows of an image and of its outputs; outputs of a section; rows that the last part of the channels counts for where threads share parts.
    Py_ssize_t height, out_height, outputs, last_rows
    # Rows of an image above the first window, from a window to the next, and of a window. Sections that would have as many rows as the image, or more, have
    # those of the image, no others: `whole`.
    Py_ssize_t pad, step, window
    bint whole
    # Bytes of a row of pixels, and of a section; what lies outside the image holds such bytes.
    Py_ssize_t x_row, y_row, x_bytes, y_bytes
    int outside
    # Nothing is brought anywhere: sections are planes.
    bint one_by_one


cdef inline Py_ssize_t section_bytes() noexcept:
    return min(<Py_ssize_t> SECTION_BYTES, second_level // 8 * 3)


cdef inline Py_ssize_t window_rows(const Problem *problem) noexcept:
    return (problem.kernel_height - 1) * problem.dilation_height + 1


cdef Py_ssize_t rows_together(const Problem *problem, Py_ssize_t x_row, Py_ssize_t y_row) noexcept:
    """Output rows of a section, whose rows have so many bytes."""
    cdef Py_ssize_t room = section_bytes()
    if problem.height * x_row + problem.out_height * y_row <= room:
        return problem.out_height
    room = (room - window_rows(problem) * x_row) // (problem.stride_height * x_row + y_row) // ROWS_TOGETHER * ROWS_TOGETHER
    return min(max(room, ROWS_TOGETHER), problem.out_height)


cdef Py_ssize_t channels_together(const Problem *problem, Py_ssize_t x_itemsize, Py_ssize_t y_itemsize) noexcept:
    cdef Py_ssize_t x_row = problem.width * x_itemsize, y_row = problem.out_width * problem.multiplier * y_itemsize, count = SECTION_CHANNELS
    cdef Py_ssize_t image = (problem.height * x_row + problem.out_height * y_row) * count, many = MANY_WINDOWS * window_rows(problem), parts
    count = max(FEW_CHANNELS, count * max(1, SMALL_BYTES // image) // problem.multiplier)
    while count > FEW_CHANNELS and rows_together(problem, count * x_row, count * y_row) < min(problem.out_height, many):
        count = max(FEW_CHANNELS, count // 2)
    if count < problem.channels and x_itemsize > 1:
        # As many parts, of as many channels each: threads share them. Of bytes vectors have room for SECTION_CHANNELS.
        parts = (problem.channels + count - 1) // count
        count = min(count, (problem.channels + parts * FEW_CHANNELS - 1) // (parts * FEW_CHANNELS) * FEW_CHANNELS)
    return min(problem.channels, count)


cdef bint skims(const Problem *problem, Py_ssize_t itemsize, Py_ssize_t y_itemsize) noexcept:
    """Whether so many of the pixels that a section brings to scratch are not read that they are better not brought there."""
    cdef Py_ssize_t rows = min(problem.height, (min(problem.out_height, ROWS_TOGETHER) - 1) * problem.stride_height + window_rows(problem))
    cdef double brought = <double> rows * problem.width, columns = min(<double> problem.width, 2.0 * problem.out_width * problem.kernel_width)
    cdef bint rarely = brought > 2 * columns * min(rows, ROWS_TOGETHER * problem.kernel_height)
    # Halves may be widened to float32 beside.
    brought *= channels_together(problem, itemsize, y_itemsize) * (6 if problem.element == FLOAT16 or problem.element == BFLOAT16 else itemsize)
    return rarely and brought > SKIMMED_BYTES


cdef void lay_pixels(Layout *pixels, const Layout *layout, tuple axes, Py_ssize_t pitch) noexcept:
    """Pixels so many elements apart, for the elements of a layout; all images at one place."""
    cdef int n = axes[0], h = axes[1], w = axes[2], c = axes[3]
    pixels[0] = layout[0]
    pixels.strides[n], pixels.strides[h], pixels.strides[w], pixels.strides[c] = 0, layout.shape[w] * pitch, pitch, 1


cdef void lay_sections(Planes *planes, const Problem *problem, tuple axes, Py_ssize_t x_pitch, Py_ssize_t y_pitch) noexcept:
    lay_pixels(&planes.x_pixels, &planes.x, axes, x_pitch)
    lay_pixels(&planes.y_pixels, &planes.y, axes, y_pitch)
    planes.x_row = problem.width * x_pitch * planes.x.itemsize
    planes.y_row = problem.out_width * y_pitch * planes.y.itemsize


cdef void cut_sections(
    Planes *planes, Problem *problem, const Layout *x, const Layout *y, tuple axes, Py_ssize_t together, const Py_ssize_t *x_pitches,
    const Py_ssize_t *y_pitches,
) noexcept:
    """Plan the sections of a problem, which becomes that of one of them, of so many channels. Pixels in scratch are so many elements apart, and those of the
    last channels."""
    cdef Py_ssize_t rows = problem.height, x_pitch = x_pitches[0], y_pitch = y_pitches[0]
    planes.x, planes.y = x[0], y[0]
    planes.x.offset = planes.y.offset = 0
    planes.image_axis, planes.row_axis, planes.channel_axis = axes[0], axes[1], axes[3]
    planes.channels, planes.together = problem.channels, together
    planes.height, planes.out_height, planes.last_rows = problem.height, problem.out_height, problem.out_height
    planes.pad, planes.step = problem.pad_top, problem.stride_height
    planes.window = window_rows(problem)
    lay_sections(planes, problem, axes, x_pitch, y_pitch)
    planes.outputs = rows_together(problem, planes.x_row, planes.y_row)
    # What windows reach beside the image takes no more scratch than the image (ADR 0005, D25).
    planes.whole = (planes.outputs - 1) * planes.step + planes.window >= rows
    if not planes.whole:
        rows = (planes.outputs - 1) * planes.step + planes.window
        problem.height, problem.out_height, problem.pad_top = rows, planes.outputs, 0
    planes.x_bytes = (rows * planes.x_row + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    planes.y_bytes = (planes.outputs * planes.y_row + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    problem.batch, problem.distance, problem.sets = 1, IN_CACHE, 0
    problem.x_strides = [0, problem.width * x_pitch, x_pitch, 1]
    problem.y_strides = [0, problem.out_width * y_pitch, y_pitch, 1]
    problem.channels, problem.channel_room = planes.together, x_pitch - planes.together
    planes[1] = planes[0]
    lay_sections(&planes[1], problem, axes, x_pitches[1], y_pitches[1])


cdef bint goes_one_by_one(const Problem *problem) noexcept:
    """Whether the kernels of one channel, plane by plane, are faster than those of all with what is moved; what that gains is in benchmarks/measurements.md."""
    cdef bint small = problem.element == INT8 or problem.element == UINT8, even = problem.stride_width == 1
    if problem.channels > FEW_PLANES or problem.multiplier > 1 or problem.x_strides[2] != 1 or problem.y_strides[2] != 1:
        return False
    if not small and (not even or problem.kernel_height == 1):
        return False
    return problem.out_height * problem.out_width >= LARGE_PLANE or problem.channels == 2


cdef void part_planes(Planes *planes, Problem *problem, const Layout *x, const Layout *y, tuple axes) noexcept:
    """Plan planes one by one: a problem becomes that of one of them."""
    planes.x, planes.y, planes.one_by_one = x[0], y[0], True
    planes.image_axis, planes.row_axis, planes.channel_axis = axes[0], axes[1], axes[3]
    planes.channels, planes.together = problem.channels, 1
    planes.height, planes.out_height, planes.last_rows, planes.outputs = problem.height, problem.out_height, problem.out_height, ROWS_TOGETHER
    problem.batch, problem.channels, problem.channel_room, problem.sets = 1, 1, 0, 0
    problem.x_strides[3] = problem.y_strides[3] = 1


cdef void name_rest(Planes *planes, const Problem *problem) noexcept:
    """The problem of the last channels, once constants are known."""
    cdef Py_ssize_t x_row = planes[1].x_row // planes.x.itemsize, y_row = planes[1].y_row // planes.y.itemsize
    planes.rest = problem[0]
    planes.rest.channels = planes.channels % planes.together
    planes.rest.x_strides = [0, x_row, x_row // problem.width, 1]
    planes.rest.y_strides = [0, y_row, y_row // problem.out_width, 1]
    planes.rest.channel_room = x_row // problem.width - planes.rest.channels


cdef inline Py_ssize_t parts_of(const Planes *planes) noexcept nogil:
    """Of the channels."""
    return (planes.channels + planes.together - 1) // planes.together


cdef inline Py_ssize_t rows_of_image(const Planes *planes) noexcept nogil:
    """Output rows of all parts, as they count."""
    return (parts_of(planes) - 1) * planes.out_height + planes.last_rows


cdef void count_last_rows(Planes *planes) noexcept:
    """Fewer channels take as much less time; of bytes, more than half of a vector takes that of all."""
    cdef Py_ssize_t channels = (planes.rest.channels + FEW_CHANNELS - 1) // FEW_CHANNELS * FEW_CHANNELS
    if 0 < channels <= (planes.together // 2 if planes.x.itemsize == 1 else planes.together):
        planes.last_rows = max(1, planes.out_height * channels // planes.together)


cdef inline const Problem *part_at(const Planes *planes, const Problem *problem, Py_ssize_t channel) noexcept nogil:
    """That of the channels from this one on."""
    return problem if channel + planes.together <= planes.channels else &planes.rest


cdef void move_rows(
    const Planes *planes, const Layout *source, const char *x, const Layout *target, char *y, Py_ssize_t image, Py_ssize_t begin, Py_ssize_t end,
    Py_ssize_t channel, Py_ssize_t channels,
) noexcept nogil:
    """Some channels of rows of an image, from layout to layout."""
    cdef Box box
    if begin < end:
        all_of(&box, source)
        box.first[planes.image_axis], box.end[planes.image_axis] = image, image + 1
        box.first[planes.row_axis], box.end[planes.row_axis] = begin, end
        box.first[planes.channel_axis], box.end[planes.channel_axis] = channel, channel + channels
        move(planes.moves, source, x, target, y, &box, NULL, NULL)


cdef void run_part(
    const Planes *planes, const Problem *problem, const Family *family, const char *source, char *target, char *scratch,
    Py_ssize_t image, Py_ssize_t top, Py_ssize_t end, Py_ssize_t channel,
) noexcept nogil:
    """Output rows of an image, of the channels of `problem`, in sections."""
    cdef char *x = scratch
    cdef char *y
    cdef char *x_pixels
    cdef char *y_pixels
    cdef Py_ssize_t count, reach, first, low, high, skipped = 0, have_first = 0, have_end = -1
    if planes.one_by_one:
        source += (image * planes.x.strides[planes.image_axis] + channel * planes.x.strides[planes.channel_axis]) * planes.x.itemsize
        target += (image * planes.y.strides[planes.image_axis] + channel * planes.y.strides[planes.channel_axis]) * planes.y.itemsize
        family.run(problem, source, target, scratch, top, end)
        return
    y = scratch + planes.x_bytes
    x_pixels = x - channel * planes.x.itemsize
    y_pixels = y - channel * problem.multiplier * planes.y.itemsize
    while top < end:
        count = min(planes.outputs, end - top)
        # Rows of the image that windows reach, from `first` on, those of them that exist, and of those what is new. Those outside are there, unless all are.
        first = top * planes.step - planes.pad
        reach = (count - 1) * planes.step + planes.window
        low = max(first, 0)
        high = max(low, min(planes.height, first + reach))
        if planes.whole:
            first, reach = 0, 0
        if low >= have_end:
            have_end = low
        elif first > have_first:
            memmove(x + (low - first) * planes.x_row, x + (low - have_first) * planes.x_row, <size_t> ((min(have_end, high) - low) * planes.x_row))
        memset(x, planes.outside, <size_t> (min(low - first, reach) * planes.x_row))
        move_rows(
            planes, &planes.x, source, &planes.x_pixels, x_pixels - first * planes.x_row, image, min(have_end, high), high, channel, problem.channels)
        memset(x + (high - first) * planes.x_row, planes.outside, <size_t> (max(0, first + reach - high) * planes.x_row))
        have_first, have_end = first, high
        skipped = top if planes.whole else 0
        family.run(problem, x, y - skipped * planes.y_row, y + planes.y_bytes, skipped, skipped + count)
        move_rows(
            planes, &planes.y_pixels, y_pixels - top * planes.y_row, &planes.y, target, image, top, top + count,
            channel * problem.multiplier, problem.channels * problem.multiplier)
        top += count


cdef void run_planes(
    const Planes *planes, const Problem *problem, const Family *family, const char *x, char *y, char *scratch, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    """Output rows begin to end, as they count, of all parts of the channels of all images."""
    cdef Py_ssize_t image, index, top, rows, of
    cdef Problem part
    while begin < end:
        image, top = begin // rows_of_image(planes), begin % rows_of_image(planes)
        index = min(top // planes.out_height, parts_of(planes) - 1)
        top -= index * planes.out_height
        of = planes.last_rows if index == parts_of(planes) - 1 else planes.out_height
        rows = min(of - top, end - begin)
        part = part_at(planes, problem, index * planes.together)[0]
        part.packed = <const char *> problem.packed + index * planes.packed_bytes
        run_part(
            planes if part.channels == planes.together else &planes[1], &part, family, x, y, scratch, image,
            top * planes.out_height // of, (top + rows) * planes.out_height // of, index * planes.together,
        )
        begin += rows
