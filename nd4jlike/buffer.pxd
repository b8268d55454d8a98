# Bytes with an owner (ADR 0002). A buffer knows size, alignment and who frees it, and no shapes.


cdef class Buffer:
    # First byte. Valid as long as this object lives.
    cdef char *data
    cdef readonly Py_ssize_t nbytes
    cdef readonly bint readonly
    # Who else keeps the bytes alive: the exporter of a wrapped buffer; None for memory of our own.
    cdef readonly object owner
    # Memory of our own, as malloc gave it; NULL when wrapped.
    cdef void *allocation
    # The export that a wrapped buffer holds, released with this object.
    cdef Py_buffer view
    cdef bint holds_view
    # True once the padding can be written by others: wrapped, or exported whole. It never becomes false again.
    cdef bint shared
    # What every padding cell holds while `shared` is false: the bits of one element, when `fill_known`.
    cdef bint fill_known
    cdef unsigned long long fill_bits


# Zeroed bytes; byte `aligned_at` of them lies on a multiple of `alignment` (a power of two).
cdef Buffer allocate(Py_ssize_t nbytes, Py_ssize_t aligned_at, Py_ssize_t alignment)

# The bytes of a buffer-protocol object, zero-copy.
cdef Buffer wrap(object exporter)
