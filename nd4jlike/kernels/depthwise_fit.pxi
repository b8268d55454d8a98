# The lines that give the bytes of int8 sums (ADR 0006, D12): pairs, lines, spread rows and quads look for them when they pack weights.

cdef enum:
    # Output channels' largest number of bounds between results.
    BOUNDS = 256
    # Scales that are tried for a line: the next ones on both sides.
    FIT_TRIALS = 13
    # Results before the clamp that 16 bits hold, whatever the zero point; and the mantissa of a float32.
    MAX_RESULT = 32000
    MAX_WIDE_RESULT = 1 << 21
    # What is added to a sum to make it the bits of a float32, 2**23 plus the sum.
    FLOAT_BITS = 0x4B000000

cdef extern from "math.h" nogil:
    float rintf(float value)
    float nextafterf(float value, float to)

# round(scale * (sum + shift)) + constant, rounded once. Of the upper one of two lines: the sum that it begins with; of one line the least.
cdef struct Fit:
    float scale, offset
    int shift, first


cdef inline long long rescaled_exactly(long long total, int multiplier, int right) noexcept nogil:
    """TensorFlow Lite's rounding twice."""
    cdef long long high = (total * multiplier + (1 << 30)) >> 31, mask = (1LL << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


cdef long long first_in_range(long long step, long long modulus, long long low, long long high) noexcept nogil:
    """The least i >= 0 with low <= i*step % modulus <= high; -1: none. 0 <= low <= high < modulus, 0 <= step < modulus."""
    cdef long long i
    if low == 0:
        return 0
    if step == 0:
        return -1
    i = (low + step - 1) // step
    if i * step <= high:
        return i
    i = first_in_range(modulus % step, step, (step - high % step) % step, (step - low % step) % step)
    return -1 if i < 0 else (low + modulus * i + step - 1) // step


cdef bint fit_line(
    Fit *line, const Problem *problem, int multiplier, int shift, float float_scale, long long least, long long largest, long long bottom, int first,
    int trials, double most,
) noexcept nogil:
    """Whether a line gives the results of all sums from least to largest, between the bounds; no sum is less than `bottom`, no result more than `most`.

    Results grow with the sum, on the line as in the rule: so it is enough to look at the sums where they change. Trials are of scales nearby."""
    cdef double scale = multiplier / <double> (1LL << 31) / <double> (1LL << max(-shift, 0)) if problem.rounding == 0 else float_scale
    cdef long long at[BOUNDS]
    cdef double bound[BOUNDS]
    cdef double low, high, best_low = 0, best_high = 0, tried, best = 0, top = 1e30
    cdef long long total, units, modulus, step, start, i, lowest, highest
    cdef int n, count = 0, trial, exponent
    cdef float candidate
    if not FUSED or (problem.rounding == 0 and shift > 0) or largest - least > 1 << 22 or not 1e-6 < scale < 1:
        return False
    # Beyond int32 sums wrap around.
    if max(-least, largest) >= 1 << 30:
        return False
    # A float32 holds no larger sum: the rule would take its steps elsewhere.
    if max(-least, largest) * scale > most or (problem.rounding == 1 and max(-least, largest) >= 1 << 24):
        return False
    for n in range(problem.quantized_min + 1 - problem.output_zero_point, problem.quantized_max - problem.output_zero_point + 1):
        # Either rule takes its step less than a sum before.
        total = <long long> floor((n - 0.5) / scale) - 1
        if total > largest:
            top = n - 0.5
            break
        while (rescaled_exactly(total, multiplier, -shift) if problem.rounding == 0 else <long long> rintf(<float> total * float_scale)) < n:
            total += 1
        at[count] = total
        bound[count] = n - 0.5
        count += 1
    candidate = <float> scale
    for trial in range(first, trials):
        # 0, 1, -1, 2, -2 .. units in the last place away.
        candidate = <float> scale
        for i in range((trial + 1) // 2):
            candidate = nextafterf(candidate, 1 if trial % 2 else 0)
        tried = candidate
        low = -1e30
        high = top - tried * largest
        for n in range(count):
            if at[n] <= largest:
                low = max(low, bound[n] - tried * max(at[n], least))
            if at[n] > least:
                high = min(high, bound[n] - tried * min(at[n] - 1, largest))
        # A bound on one side, or none for long, where all sums have one result.
        if low < -1e29:
            low = high - tried
        high = min(high, low + tried)
        if high - low > best:
            best = high - low
            best_low = low
            best_high = high
            line.scale = candidate
            if best > tried / 4096:
                break
    if best <= 0 or best_low < -1e29 or best_high > 1e29:
        return False
    # As integers: the scale is `step` of `modulus`; a shift of the sums has to bring the line between the two bounds, up to whole results.
    exponent = 0
    modulus = 1
    tried = line.scale
    while tried != <double> <long long> tried:
        tried *= 2
        modulus *= 2
        exponent += 1
    step = <long long> tried
    lowest = <long long> floor(best_low * modulus) + 1
    highest = <long long> ceil(best_high * modulus) - 1
    if exponent > 50 or lowest > highest or highest - lowest >= modulus:
        return False
    # Room on both sides of the sums.
    start = (1 << 23) + 1 - bottom
    units = (lowest - start * step) % modulus
    if units < 0:
        units += modulus
    i = 0 if units + (highest - lowest) >= modulus else first_in_range(step % modulus, modulus, units, units + (highest - lowest))
    if i < 0 or start + i + largest >= (1 << 24) - 1:
        return False
    line.shift = <int> (start + i - (1 << 23))
    # scale * (start + i) + whole lies between the bounds.
    units = lowest - (start + i) * step
    total = (highest - (start + i) * step) // modulus
    if (highest - (start + i) * step) % modulus < 0:
        total -= 1
    line.offset = <float> (12582912 + problem.output_zero_point + total)
    return total * modulus >= units


cdef bint fit_split(
    Fit *above, Fit *below, const Problem *problem, int multiplier, int shift, float float_scale, long long least, long long largest, long long first,
    double most,
) noexcept nogil:
    """Whether two lines of one scale do, one for the sums below `first`."""
    cdef int trial
    for trial in range(FIT_TRIALS if least < first <= largest else 0):
        if fit_line(above, problem, multiplier, shift, float_scale, first, largest, least, trial, trial + 1, most):
            if fit_line(below, problem, multiplier, shift, float_scale, least, first - 1, least, trial, trial + 1, most):
                above.first = <int> first
                return True
    return False


cdef long long middle_of(const Problem *problem, double scale, long long least, long long largest) noexcept nogil:
    """A sum in the middle of those that have results between the bounds."""
    cdef double low = max(<double> least, (problem.quantized_min - problem.output_zero_point) / scale)
    cdef double high = min(<double> largest, (problem.quantized_max - problem.output_zero_point) / scale)
    return <long long> ((min(low, <double> largest) + max(high, <double> least)) / 2)


cdef int fit_lines(
    Fit *above, Fit *below, const Problem *problem, int multiplier, int shift, float float_scale, long long least, long long largest, bint splits,
    double most,
) noexcept nogil:
    """How many lines give the results of all sums: one, `above` and `below` alike, or, where it `splits`, two; 0: no line does.

    `float_scale`: the scale of either rounding as a float32. `most`: as fit_line."""
    # Where both signs round half away from zero, no line goes through all.
    cdef bint signs = problem.rounding == 0 and problem.output_zero_point > -128
    above.first = below.first = 0
    if splits and signs and fit_split(above, below, problem, multiplier, shift, float_scale, least, largest, 0, most):
        return 2
    if fit_line(above, problem, multiplier, shift, float_scale, least, largest, least, 0, FIT_TRIALS, most):
        above.first = <int> least
        below[0] = above[0]
        return 1
    # Half of the steps are easier to fit.
    if splits and not signs and float_scale > 0 and fit_split(
            above, below, problem, multiplier, shift, float_scale, least, largest, middle_of(problem, float_scale, least, largest), most):
        return 2
    return 0
