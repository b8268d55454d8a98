# Conversions between float32 and something narrower.

cdef extern from "conversions.h" nogil:
    ctypedef unsigned short vhalves
    vhalves half_of_f32(vf32 value)
    vf32 f32_of_half(vhalves half)
    vhalves brain_of_f32(vf32 value)
    vf32 f32_of_brain(vhalves brain)
    vi16 splat_i16(int value)
    vbytes order_of(int steps)
    const int DIVIDES, MULTIPLIES, CORRECTS
    const bint MAY_CORRECT
    vbytes quantized(const float *source, vf32 scale, vf32 inverse, const int how, vi16 zero_point, vbytes order, vbytes flip)
    void narrowed_brains(const float *source, vhalves *target)
    void dequantize(const signed char *source, float *target, vf32 scale, vi32 zero_point, vi32 mask)
    void quantize_shorts(const float *source, short *target, vf32 scale, vi32 zero_point)
    void dequantize_shorts(const short *source, float *target, vf32 scale, vi32 zero_point)

cdef enum:
    # Short runs are collected, and what goes past the caches is converted, so many numbers at a time.
    TOGETHER = 512

# What float32 is converted to and from: bits of float16, bits of bfloat16, codes of 8 and of 16 bits.
ctypedef unsigned short half
ctypedef short brain
ctypedef signed char code
cdef struct long_code:
    short bits

ctypedef fused narrower:
    half
    brain
    code
    long_code

cdef struct Scale:
    # And one over it, and how numbers are divided by it.
    vf32 step, inverse
    int how
    vi32 zero_point
    vi16 zero_words
    vbytes order
    # Of bytes without sign: the bit that they have otherwise than those with one, and all that they have.
    vbytes flip
    vi32 mask


# Whole blocks of VECTOR_BYTES numbers, the last one over others: as many numbers as that, or more.
ctypedef void (*Converter)(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil

cdef Converter converters[CONVERSIONS]


cdef inline void convert_block(const char *source, char *target, const Scale *scale, bint widens, int how, const narrower *kind) noexcept nogil:
    """VECTOR_BYTES numbers; `kind` is not read."""
    cdef int i
    if narrower is code:
        if widens:
            dequantize(<const signed char *> source, <float *> target, scale.step, scale.zero_point, scale.mask)
        else:
            (<vbytes *> target)[0] = quantized(<const float *> source, scale.step, scale.inverse, how, scale.zero_words, scale.order, scale.flip)
    elif narrower is long_code:
        if widens:
            dequantize_shorts(<const short *> source, <float *> target, scale.step, scale.zero_point)
        else:
            quantize_shorts(<const float *> source, <short *> target, scale.step, scale.zero_point)
    elif narrower is half:
        for i in range(4):
            if widens:
                store_f32(<float *> target + i * LANES, f32_of_half((<const vhalves *> source)[i]), LANES)
            else:
                (<vhalves *> target)[i] = half_of_f32(load_f32(<const float *> source + i * LANES, LANES))
    elif widens:
        for i in range(4):
            store_f32(<float *> target + i * LANES, f32_of_brain((<const vhalves *> source)[i]), LANES)
    else:
        narrowed_brains(<const float *> source, <vhalves *> target)


cdef inline void convert_blocks(
    const char *source, char *target, Py_ssize_t count, const Scale *scale, bint widens, int how, const narrower *kind,
) noexcept nogil:
    """`kind` is not read."""
    cdef Py_ssize_t i = 0, k
    cdef Scale held = scale[0]
    while i < count:
        k = min(i, count - VECTOR_BYTES)
        convert_block(source + k * <Py_ssize_t> (sizeof(narrower) if widens else sizeof(float)),
                      target + k * <Py_ssize_t> (sizeof(float) if widens else sizeof(narrower)), &held, widens, how, kind)
        i += VECTOR_BYTES


cdef void gather(char *target, Py_ssize_t to, const char *source, Py_ssize_t step, Py_ssize_t bytes, Py_ssize_t count) noexcept nogil:
    """Runs, from one distance to another."""
    cdef Runs runs
    runs.source, runs.target, runs.bytes, runs.outer, runs.inner = source, target, bytes, 1, count
    runs.source_outer = runs.target_outer = runs.room = 0
    runs.source_inner, runs.target_inner = step, to
    runs.fill = NULL
    runs.ahead = runs.stream = runs.far = False
    copy(&runs)


cdef void convert(const Runs *runs, int conversion, float step, int zero_point) noexcept nogil:
    """Long runs where they are, short ones collected."""
    cdef Converter blocks = converters[conversion]
    cdef bint widens = conversion & 1
    cdef bint without_sign = conversion in (TO_UNSIGNED, FROM_UNSIGNED)
    cdef Py_ssize_t narrow = 1 if without_sign or conversion in (TO_CODES, FROM_CODES) else 2
    cdef char before[TOGETHER * 4]
    cdef char room[TOGETHER * 4 + LINE_BYTES]
    cdef char *after = room + (LINE_BYTES - <uintptr_t> room % LINE_BYTES)
    cdef Py_ssize_t read = narrow if widens else sizeof(float), written = sizeof(float) if widens else narrow
    cdef Py_ssize_t count = runs.bytes // written, all, some, at, i, j, k, together = 1
    cdef const char *source
    cdef const char *numbers
    cdef char *target
    cdef char *place
    cdef bint stream
    cdef Scale scale
    cdef uint32_t bits
    memcpy(&bits, &step, sizeof(step))
    scale.how = DIVIDES
    if 1e-27 < step < 1e27 and (bits & 0x7FFFFF == 0 or MAY_CORRECT):
        scale.how = CORRECTS if bits & 0x7FFFFF else MULTIPLIES
    scale.inverse = splat_f32(1 / step)
    scale.step, scale.zero_point, scale.order = splat_f32(step), splat_i32(zero_point), order_of(1)
    scale.zero_words, scale.mask = splat_i16(zero_point - 128 * without_sign), splat_i32(0xFF if without_sign else -1)
    memset(&scale.flip, 0x80 * without_sign, sizeof(scale.flip))
    for i in range(runs.outer):
        j = 0
        while j < runs.inner:
            source = numbers = runs.source + i * runs.source_outer + j * runs.source_inner
            target = runs.target + i * runs.target_outer + j * runs.target_inner
            some = all = count
            stream = runs.stream and <uintptr_t> target % <size_t> written == 0
            if count < VECTOR_BYTES:
                together = min(TOGETHER // count, runs.inner - j)
                some = all = (together * count + VECTOR_BYTES - 1) // VECTOR_BYTES * VECTOR_BYTES
                memset(before + together * count * read, 0, <size_t> ((all - together * count) * read))
                gather(before, count * read, source, runs.source_inner, count * read, together)
                numbers = before
            elif runs.ahead and count <= TOGETHER:
                at = 0
                while at < count * 4:
                    touch((source + RUNS_AHEAD * runs.source_inner if not widens else target + RUNS_AHEAD * runs.target_inner) + at)
                    at += LINE_BYTES
            elif stream:
                # To where lines are whole.
                some = TOGETHER + <Py_ssize_t> (-<uintptr_t> target % LINE_BYTES // <size_t> written)
            at = 0
            while at < all:
                place = after if count < VECTOR_BYTES or (stream and at > 0 and some == TOGETHER) else target + at * written
                if some < VECTOR_BYTES:
                    # The rest of a long run.
                    blocks(numbers + (all - VECTOR_BYTES) * read, target + (all - VECTOR_BYTES) * written, VECTOR_BYTES, &scale)
                else:
                    blocks(numbers + at * read, place, some, &scale)
                if count >= VECTOR_BYTES and place == after:
                    k = 0
                    while k < TOGETHER * written:
                        copy_piece(target + at * written + k, after + k, LINE_BYTES, True)
                        k += LINE_BYTES
                at += some
                some = min(TOGETHER, all - at)
            if count < VECTOR_BYTES:
                gather(target, runs.target_inner, after, count * written, count * written, together)
            j += together


cdef void to_half(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    convert_blocks[half](source, target, count, scale, False, 0, NULL)


cdef void from_half(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    convert_blocks[half](source, target, count, scale, True, 0, NULL)


cdef void to_brain(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    convert_blocks[brain](source, target, count, scale, False, 0, NULL)


cdef void from_brain(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    convert_blocks[brain](source, target, count, scale, True, 0, NULL)


cdef void to_codes(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    if scale.how == MULTIPLIES:
        convert_blocks[code](source, target, count, scale, False, MULTIPLIES, NULL)
    elif MAY_CORRECT and scale.how == CORRECTS:
        convert_blocks[code](source, target, count, scale, False, CORRECTS, NULL)
    else:
        convert_blocks[code](source, target, count, scale, False, DIVIDES, NULL)


cdef void from_codes(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    convert_blocks[code](source, target, count, scale, True, 0, NULL)


cdef void to_shorts(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    convert_blocks[long_code](source, target, count, scale, False, 0, NULL)


cdef void from_shorts(const char *source, char *target, Py_ssize_t count, const Scale *scale) noexcept nogil:
    convert_blocks[long_code](source, target, count, scale, True, 0, NULL)
