"""Threads that share the work of one call."""

import os

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_attr_t:
        pass
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_attr_init(pthread_attr_t *attributes)
    int pthread_attr_destroy(pthread_attr_t *attributes)
    int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t nbytes)
    int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *) noexcept nogil, void *argument)
    int pthread_detach(pthread_t thread)
    int pthread_atfork(void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil, void (*child)() noexcept nogil)
    int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *mutex)
    int pthread_mutex_unlock(pthread_mutex_t *mutex)
    int pthread_cond_init(pthread_cond_t *condition, const void *attributes)
    int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
    int pthread_cond_signal(pthread_cond_t *condition)
    int pthread_cond_broadcast(pthread_cond_t *condition)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec, tv_nsec
    int CLOCK_MONOTONIC
    int clock_gettime(int clock, timespec *now)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int SIG_SETMASK
    int sigfillset(sigset_t *signals)
    int pthread_sigmask(int how, const sigset_t *signals, sigset_t *before)

cdef extern from *:
    """
    #if defined(__x86_64__) || defined(__i386__)
    #define relax() __builtin_ia32_pause()
    #elif defined(__aarch64__)
    #define relax() __asm__ volatile("isb" ::: "memory")
    #else
    #define relax() __asm__ volatile("" ::: "memory")
    #endif
    """
    void relax() noexcept nogil
    int ACQUIRE "__ATOMIC_ACQUIRE"
    int RELEASE "__ATOMIC_RELEASE"
    int ACQ_REL "__ATOMIC_ACQ_REL"
    unsigned long long load_range "__atomic_load_n"(unsigned long long *address, int order) noexcept nogil
    bint swap_range "__atomic_compare_exchange_n"(
        unsigned long long *address, unsigned long long *expected, unsigned long long desired, bint weak, int success, int failure) noexcept nogil
    int load "__atomic_load_n"(int *address, int order) noexcept nogil
    void store "__atomic_store_n"(int *address, int value, int order) noexcept nogil

__all__ = ["share"]

cdef enum:
    # How long a thread looks for work before it sleeps: layers of a network follow each other, and waking up takes 5 to 25 us.
    LOOKING_NANOSECONDS = 100000
    # A kernel takes 64 KiB (ADR 0004).
    STACK_BYTES = 1 << 20
    LOWER = 0xFFFFFFFF


# A call that is being shared; it lives on the stack of its caller, who leaves when nobody works on it any more.
cdef struct Job:
    Work work
    const void *context
    Py_ssize_t count, step
    int parts
    # Threads that came, and those that work; the caller is not counted among the latter.
    int joined, working
    Job *next
    # Steps of each part that nobody has taken: the first in the upper half of the word, the one past the last in the lower.
    unsigned long long ranges[MAX_PARTS]


# Guards all below, and the threads that join a job or leave it.
cdef pthread_mutex_t lock
cdef pthread_cond_t posted, finished
# Jobs that more threads may join.
cdef Job *jobs = NULL
cdef int threads = 0, processors = 1
# Counts the jobs: a look at it tells a thread that there is a new one.
cdef int posts = 0
# Callers that sleep until their last part is finished.
cdef int waiting = 0


cdef void start_afresh() noexcept nogil:
    """Nothing is shared and there are no threads: at import, and in a forked child, which has none but the one that forked."""
    global jobs, threads, waiting
    pthread_mutex_init(&lock, NULL)
    pthread_cond_init(&posted, NULL)
    pthread_cond_init(&finished, NULL)
    jobs, threads, waiting = NULL, 0, 0


cdef inline unsigned long long range_of(Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    return <unsigned long long> begin << 32 | <unsigned long long> end


cdef bint take(Job *job, int part, bint own, Py_ssize_t *begin, Py_ssize_t *end) noexcept nogil:
    """Take half of the steps that are left of a part: from its front if it is one's own, else from its back."""
    cdef unsigned long long left = load_range(&job.ranges[part], ACQUIRE), rest
    cdef Py_ssize_t first, last, cut
    while True:
        first = left >> 32
        last = left & LOWER
        if first >= last:
            return False
        cut = first + (last - first + own) // 2
        begin[0] = first if own else cut
        end[0] = cut if own else last
        rest = range_of(cut, last) if own else range_of(first, cut)
        if swap_range(&job.ranges[part], &left, rest, False, ACQ_REL, ACQUIRE):
            return True


cdef void work_on(Job *job, int place) noexcept nogil:
    """Do one's own part, then help with the others."""
    cdef Py_ssize_t begin = 0, end = 0
    cdef int i, part
    for i in range(job.parts):
        part = (place + i) % job.parts
        while take(job, part, i == 0, &begin, &end):
            job.work(job.context, begin * job.step, min(end * job.step, job.count), place)


cdef long long nanoseconds() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1000000000LL + now.tv_nsec


cdef bint await_change(int *value, int seen) noexcept nogil:
    """Look at a value for a while, unless others need the processor; whether it changed."""
    cdef long long end
    if threads >= processors:
        return False
    end = nanoseconds() + LOOKING_NANOSECONDS
    while nanoseconds() < end:
        if load(value, ACQUIRE) != seen:
            return True
        relax()
    return False


cdef void *serve(void *_) noexcept nogil:
    """A thread: looks for jobs, sleeps when there has been none for a while."""
    cdef int seen, place
    cdef Job *job
    pthread_mutex_lock(&lock)
    while True:
        if jobs == NULL:
            seen = posts
            pthread_mutex_unlock(&lock)
            await_change(&posts, seen)
            pthread_mutex_lock(&lock)
            while jobs == NULL:
                pthread_cond_wait(&posted, &lock)
        job = jobs
        place = job.joined
        job.joined += 1
        job.working += 1
        if job.joined == job.parts:
            withdraw(job)
        pthread_mutex_unlock(&lock)
        work_on(job, place)
        pthread_mutex_lock(&lock)
        # The caller may be gone after this.
        store(&job.working, job.working - 1, RELEASE)
        if waiting:
            pthread_cond_broadcast(&finished)


cdef void withdraw(Job *job) noexcept nogil:
    """Nobody joins any more."""
    cdef Job **at = &jobs
    while at[0] != NULL:
        if at[0] == job:
            at[0] = job.next
            return
        at = &at[0].next


cdef bint new_thread() noexcept nogil:
    """One more thread, which gets no signals: these are for Python's."""
    cdef pthread_attr_t attributes
    cdef sigset_t signals, before
    cdef pthread_t thread
    cdef int refused
    sigfillset(&signals)
    pthread_sigmask(SIG_SETMASK, &signals, &before)
    pthread_attr_init(&attributes)
    pthread_attr_setstacksize(&attributes, STACK_BYTES)
    refused = pthread_create(&thread, &attributes, serve, NULL)
    if not refused:
        pthread_detach(thread)
    pthread_attr_destroy(&attributes)
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    return not refused


cdef void share_work(Work work, const void *context, Py_ssize_t count, Py_ssize_t step, int parts) noexcept nogil:
    global jobs, threads, waiting
    cdef Job job
    cdef Py_ssize_t steps = (count + step - 1) // step
    cdef int i, working
    job.work, job.context, job.count, job.step = work, context, count, step
    job.parts = <int> min(min(parts, MAX_PARTS), steps)
    if job.parts < 2 or steps > 0x7FFFFFFF:
        work(context, 0, count, 0)
        return
    for i in range(job.parts):
        job.ranges[i] = range_of(steps * i // job.parts, steps * (i + 1) // job.parts)
    job.joined, job.working = 1, 0

    pthread_mutex_lock(&lock)
    while threads < job.parts - 1 and new_thread():
        threads += 1
    job.next = jobs
    jobs = &job
    store(&posts, posts + 1, RELEASE)
    for _ in range(1, job.parts):
        pthread_cond_signal(&posted)
    pthread_mutex_unlock(&lock)

    work_on(&job, 0)

    pthread_mutex_lock(&lock)
    withdraw(&job)
    pthread_mutex_unlock(&lock)
    working = load(&job.working, ACQUIRE)
    while working > 0 and await_change(&job.working, working):
        working = load(&job.working, ACQUIRE)
    if working == 0:
        return
    pthread_mutex_lock(&lock)
    waiting += 1
    while job.working > 0:
        pthread_cond_wait(&finished, &lock)
    waiting -= 1
    pthread_mutex_unlock(&lock)


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


def share(work, count, parts):
    """Call ``work(begin, end)`` for consecutive parts of ``range(count)``, several at the same time.

    Parameters
    ----------
    work : callable
        Releases the lock of the interpreter while it works.
    count, parts : int
        Items, and how many threads share them at most; the caller is one of them.

    Examples
    --------
    >>> from nd4jlike.workers import share
    >>> done = []
    >>> share(lambda begin, end: done.append((begin, end)), 10, 2)
    >>> sum(end - begin for begin, end in done)
    10
    """
    cdef Py_ssize_t items = count
    cdef int places = parts
    cdef list errors = []
    cdef PythonWork python
    python.work, python.errors = <void *> work, <void *> errors
    with nogil:
        share_work(call_python, &python, items, max(1, items // places), places)
    if errors:
        raise errors[0]


processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
start_afresh()
pthread_atfork(NULL, NULL, start_afresh)
