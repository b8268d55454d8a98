# Bytes with an owner (ADR 0002). A buffer knows size, alignment and who frees it, and no shapes.


cdef class Buffer:
    # First byte. Valid as long as this object lives.
    cdef char *data
    cdef readonly Py_ssize_t nbytes
    cdef readonly bint readonly
    # Who else keeps the bytes alive: the exporter of wrapped memory; None for memory of our own.
    cdef readonly object owner
    # What keeps a wrapped export open, and shows the owner to the garbage collector: an object, or the export itself.
    cdef object held
    cdef Py_buffer export
    # Memory of our own, as malloc gave it, freed with this object; NULL when wrapped.
    cdef void *allocation
    # True once the padding can be written by others: wrapped, or exported whole. It never becomes false again, so threads only ever write true.
    cdef bint shared_with_others
    # What every padding cell of a kind holds while `shared_with_others` is false: the bits of one element, when known.
    cdef bint halo_known, tail_known
    cdef unsigned long long halo_bits, tail_bits


# Bytes, zeroed if `cleared`; byte `aligned_at` of them lies on a multiple of `alignment` (a power of two).
cdef Buffer allocate(Py_ssize_t nbytes, Py_ssize_t aligned_at, Py_ssize_t alignment, bint cleared)

# The bytes of an object that exports one contiguous run of them, zero-copy.
cdef Buffer wrap(object exporter)

# The bytes from `data` on that `owner` keeps alive by the export that `made` holds already.
cdef void lend(Buffer made, object owner, char *data, Py_ssize_t nbytes, bint readonly) noexcept

# The bytes from `data` on that `held`, of `owner`, keeps alive.
cdef Buffer hold(object owner, object held, char *data, Py_ssize_t nbytes, bint readonly)
