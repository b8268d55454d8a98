# What the caches of this machine mean for a layer: where its inputs and outputs lie, which pixels crowd each other out, and which vectors begin on lines
# (ADR 0017).

cdef extern from "cpu.h" nogil:
    long second_level_bytes()
    long last_level_bytes()
    ctypedef struct Cache:
        long ways, bytes
        int amd
    Cache first_level()

# Of Problem.distance, as `explain` says it.
DISTANCES = {
    IN_CACHE: "in caches", BEYOND_SECOND_LEVEL: "beyond the second-level cache", CACHE_EDGE: "at the edge of the last-level cache", IN_MEMORY: "in memory",
}

cdef enum:
    # A last-level cache of 100 MB is shared by many: no more of it counts, at its edge and beyond.
    EDGE_BYTES = 6720 << 10
    MEMORY_BYTES = 35 << 20
    # Behind a smaller second-level cache than that, pixels of less than so many bytes are not fetched ahead.
    DEEP_BYTES = 2 << 20
    NARROW_BYTES = 512
    # A first-level cache of so many ways has no room for a tile of pixels that share its sets; one of 12 has, but for AMD's, where stores to a set that is
    # full of lines to be written back take 34 cycles each.
    FEW_WAYS = 8


cdef Cache nearest_cache = first_level()
cdef Py_ssize_t second_level = second_level_bytes()
cdef int assumed_distance = -1  # none


cdef int distance_of(Py_ssize_t nbytes) noexcept:
    """Where so many bytes of inputs and outputs lie; others want a part of the last-level cache, too, and pages fall unevenly into the second-level one."""
    if assumed_distance >= 0:
        return assumed_distance
    if nbytes > min(last_level_bytes() // 3, EDGE_BYTES):
        return IN_MEMORY if nbytes > min(last_level_bytes() // 3 * 2, MEMORY_BYTES) else CACHE_EDGE
    return BEYOND_SECOND_LEVEL if nbytes > second_level // 2 else IN_CACHE


def _assume_caches(long ways, bint amd=False, int distance=-1, Py_ssize_t second=0):
    """For tests of what other machines run: another number of ways of the first-level cache, whose it is, where all arrays lie, and the bytes of the
    second-level cache, if not 0; those before."""
    global nearest_cache, assumed_distance, second_level
    before = nearest_cache.ways, nearest_cache.amd, assumed_distance, second_level
    assumed_distance, second_level = distance, second or second_level
    nearest_cache = Cache(ways, nearest_cache.bytes // nearest_cache.ways * ways, amd)
    return before


cdef inline bint crowds() noexcept:
    """Whether pixels that share sets of the first-level cache crowd each other out."""
    return nearest_cache.ways <= FEW_WAYS or nearest_cache.amd


cdef int sets_of(Py_ssize_t pitch) noexcept:
    """Problem.sets of pixels so many bytes apart: a way of 4 KiB has one place for a channel of pixels that are 4 KiB apart, two where they are 2."""
    cdef Py_ssize_t way = nearest_cache.bytes // nearest_cache.ways
    return <int> (way // min(way, pitch & -pitch)) if pitch and crowds() else 0


cdef void place_in_caches(Problem *problem, Py_ssize_t nbytes, Py_ssize_t itemsize) noexcept:
    """What the caches mean for a problem whose strides are known, of so many bytes of inputs and outputs."""
    problem.distance = distance_of(nbytes)
    problem.fetched_pixel = 0 if second_level >= DEEP_BYTES else NARROW_BYTES
    problem.sets, problem.roomy = sets_of(problem.x_strides[2] * itemsize), crowds() and nearest_cache.ways > FEW_WAYS
    problem.halving = nearest_cache.amd and nearest_cache.ways <= FEW_WAYS


cdef Py_ssize_t lead_of(const Family *family, int aligns, Py_ssize_t itemsize, const char *x, const char *y) noexcept:
    """Channels before the first whole vector in memory; negative where both have as many and that makes a difference."""
    cdef Py_ssize_t found, last = family.lanes * itemsize - 1
    if aligns == ALIGNS_NONE:
        return 0
    found = <int> (-<Py_ssize_t> (x if aligns & ALIGNS_INPUT else y) & last) // itemsize
    if (<Py_ssize_t> x - <Py_ssize_t> y) & last == 0:
        return -found if aligns & ALIGNS_BOTH else found
    if aligns & ALIGNS_SAME:
        return 0
    if aligns & ALIGNS_ALIKE:
        # Of `x` whole vectors stay within lines; of `out`, which masks cut, they need not.
        return -found if aligns & ALIGNS_INPUT else 0
    return found
