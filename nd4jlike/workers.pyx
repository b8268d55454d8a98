# distutils: extra_compile_args = -fopenmp
# distutils: extra_link_args = -fopenmp
"""Threads that share the work of one call: OpenMP's (ADR 0015)."""

from libc.string cimport memset

cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil, void (*child)() noexcept nogil)

# In C: around a parallel block of Cython's, Python before 3.13 takes the lock of the interpreter.
cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #endif
    #define TAKE_NEXT(counter) __atomic_fetch_add((counter), 1, __ATOMIC_RELAXED)

    /* Have `take(shared, place)` run by `parts` threads, places 0 to parts - 1, the caller one of them. */
    static void in_parallel(void (*take)(void *shared, int place), void *shared, int parts)
    {
    #ifdef _OPENMP
    #pragma omp parallel num_threads(parts)
        take(shared, omp_get_thread_num());
    #else
        (void)parts;
        take(shared, 0);
    #endif
    }
    """
    Py_ssize_t TAKE_NEXT(Py_ssize_t *counter) nogil
    void in_parallel(void (*take)(void *shared, int place) noexcept nogil, void *shared, int parts) nogil

__all__ = ["share", "threads_are_new"]

cdef enum:
    # Pieces for each thread: who wakes up late takes fewer of them.
    PIECES = 4
    # From counter to counter: each has a cache line of its own.
    COUNTER = 8


# A call, its steps in pieces, and how many pieces of each part were taken.
cdef struct Shared:
    Work work
    const void *context
    Py_ssize_t count, step, steps, pieces
    int parts
    bint back
    Py_ssize_t taken[MAX_PARTS * COUNTER]

# Whether this process was forked: the threads did not come along, and their library waits for them.
cdef bint forked = False


cdef void remember_the_fork() noexcept nogil:
    global forked
    forked = True


cdef bint computes_alone() noexcept nogil:
    return forked


def threads_are_new():
    """Let a forked process share its calls: for one whose parent has never computed with OpenMP's threads, so that none are missing.

    Examples
    --------
    >>> from nd4jlike.workers import threads_are_new
    >>> threads_are_new()
    """
    global forked
    forked = False


cdef void take_pieces(void *context, int place) noexcept nogil:
    """The pieces of this part, which the thread had in the call before, so that they may be in its caches; then those that others have not come to."""
    cdef Shared *shared = <Shared *> context
    cdef Py_ssize_t piece, first, end, pieces = shared.pieces, steps = shared.steps, step = shared.step
    cdef int i, part
    for i in range(shared.parts):
        part = (place + i) % shared.parts
        first, end = pieces * part // shared.parts, pieces * (part + 1) // shared.parts
        while True:
            piece = first + TAKE_NEXT(&shared.taken[part * COUNTER])
            if piece >= end:
                break
            if shared.back:
                piece = first + end - 1 - piece
            shared.work(shared.context, steps * piece // pieces * step, min(steps * (piece + 1) // pieces * step, shared.count), place)


cdef void share_work(Work work, const void *context, Py_ssize_t count, Py_ssize_t step, int parts, Py_ssize_t band) noexcept nogil:
    cdef Py_ssize_t steps = (count + step - 1) // step, pieces, begin
    cdef Shared shared
    parts = <int> min(min(parts, MAX_PARTS), steps)
    if parts < 2 or forked:
        while 0 < band < count:
            begin = (count - 1) // band * band
            work(context, begin, count, 0)
            count = begin
        work(context, 0, count, 0)
        return
    pieces = min(steps, PIECES * parts)
    if band:
        pieces = max(pieces, count // band)
    shared.back = band != 0
    shared.work, shared.context, shared.count, shared.step, shared.steps, shared.pieces, shared.parts = work, context, count, step, steps, pieces, parts
    memset(shared.taken, 0, parts * COUNTER * sizeof(Py_ssize_t))
    in_parallel(take_pieces, &shared, parts)


cdef struct PythonWork:
    void *work
    void *errors


cdef void call_python(const void *context, Py_ssize_t begin, Py_ssize_t end, int _) noexcept nogil:
    cdef const PythonWork *python = <const PythonWork *> context
    with gil:
        try:
            (<object> python.work)(begin, end)
        except BaseException as error:
            (<list> python.errors).append(error)


def share(work, count, parts, band=0):
    """Call ``work(begin, end)`` for consecutive parts of ``range(count)``, several at the same time.

    Parameters
    ----------
    work : callable
        Releases the lock of the interpreter while it works.
    count, parts : int
        Items, and how many threads share them at most; the caller is one of them.
    band : int, default 0
        If not 0, the last items come first, so many at a time (ADR 0015, D7).

    Examples
    --------
    >>> from nd4jlike.workers import share
    >>> done = []
    >>> share(lambda begin, end: done.append((begin, end)), 10, 2)
    >>> sum(end - begin for begin, end in done)
    10
    """
    cdef Py_ssize_t items = count, from_end = band
    cdef int places = max(1, min(parts, MAX_PARTS))
    cdef list errors = []
    cdef PythonWork python
    python.work, python.errors = <void *> work, <void *> errors
    with nogil:
        share_work(call_python, &python, items, 1, places, from_end)
    if errors:
        raise errors[0]


pthread_atfork(NULL, NULL, remember_the_fork)
