# Threads that share the work of one call. They know no Python: what they run holds no lock of the interpreter.

# Does items [begin, end) in one of `parts` places; what is done in a place is done one after another.
ctypedef void (*Work)(const void *context, Py_ssize_t begin, Py_ssize_t end, int place) noexcept nogil

cdef enum:
    # More parts than these are not made of one call.
    MAX_PARTS = 64

# Have items [0, count) done by up to `parts` threads, the caller one of them. They are taken some at a time, as multiples of `step` where possible;
# the last ones first where `band`, which is a multiple of `step`, is not 0: about so many at a time.
cdef void share_work(Work work, const void *context, Py_ssize_t count, Py_ssize_t step, int parts, Py_ssize_t band) noexcept nogil

# Whether calls are not shared, because this process was forked.
cdef bint computes_alone() noexcept nogil
