# Which elements lie at an offset: the digits of their indices, searched from the farthest apart on (ADR 0001).


def _indices_at(ShapeDescriptor self, object offset):
    """Yield the logical index of each element at `offset`."""
    cdef list terms = []  # (distance, extent, axis, elements of the axis in one step, whether the stride is negative), farthest first
    cdef list steps = [block_product(&self.layout, axis) for axis in range(self.layout.rank)]
    cdef list index = [0] * self.layout.rank
    if self.layout.length == 0:
        return
    rest = offset - self.layout.offset
    for axis, (extent, stride, step) in enumerate(zip(self.shape, self.strides, steps)):
        terms.append((abs(stride), -(-extent // step), axis, step, stride < 0))
        if stride < 0:
            rest -= (terms[-1][1] - 1) * stride
    run = inner_run(&self.layout)
    for axis, size in self.inner_blocks:
        run //= size
        steps[axis] //= size
        terms.append((run, size, axis, steps[axis], False))
    terms = sorted([term for term in terms if term[1] > 1], key=lambda term: (-term[0], term[2]))
    # What the terms from each one on can reach, and what divides all that they reach.
    reaches = [0, *itertools.accumulate(distance * (extent - 1) for distance, extent, *_ in reversed(terms))][::-1]
    divisors = [0, *itertools.accumulate((term[0] for term in reversed(terms)), math.gcd)][::-1]
    for digits in _solutions(terms, reaches, divisors, rest, 0):
        for axis in range(self.layout.rank):
            index[axis] = 0
        for (_, extent, axis, step, backwards), digit in zip(terms, digits):
            index[axis] += (extent - 1 - digit if backwards else digit) * step
        if all([i < n for i, n in zip(index, self.shape)]):
            yield tuple(index)


def _solutions(list terms, list reaches, list divisors, object rest, int level):
    """Yield the digits, one for each term from `level` on, whose distances add up to `rest`."""
    if level == len(terms):
        if rest == 0:
            yield ()
        return
    if not 0 <= rest <= reaches[level] or (rest % divisors[level] if divisors[level] else rest):
        return
    distance, extent = terms[level][:2]
    if distance:
        digits = range(max(0, -((reaches[level + 1] - rest) // distance)), min(extent - 1, rest // distance) + 1)
    else:
        digits = range(extent)
    for digit in digits:
        for more in _solutions(terms, reaches, divisors, rest - digit * distance, level + 1):
            yield (digit, *more)
