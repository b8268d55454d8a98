"""Buffer: bytes with an owner (ADR 0002)."""

cimport cython
from cpython.buffer cimport PyBUF_ANY_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc

from nd4jlike.errors import UnsupportedLayoutError

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "cpu.h" nogil:
    void want_large_pages(char *memory, size_t nbytes)

cdef enum:
    PAGE = 4096
    # Bytes from which on the place in a page matters.
    LARGE = 1 << 20
    # And the size of its pages.
    HUGE = 1 << 22

# The format of bytes.
cdef char *BYTES = "B"
# Large allocations so far, about: threads may count at the same time.
cdef unsigned int large_ones = 0

__all__ = ["Buffer"]


@cython.final
@cython.no_gc_clear  # the bytes outlive every cycle that this object is part of; `held` and `owner` break it elsewhere
cdef class Buffer:
    """The whole allocation behind an array, as bytes.

    Made by `nd4jlike.NdArray`; exports its bytes through the buffer protocol. A writable export, and the memory of others,
    may change the padding behind the array's back: from then on `shared` is true, and operations that rely on the value of
    the padding look at it instead of trusting it (ADR 0002).

    Attributes
    ----------
    nbytes : int
        Size.
    readonly : bool
        Whether writing is refused.
    owner : object
        The exporter of wrapped memory, None for memory of our own.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> x = nd.create((3, 4), paddings=(2, 4))
    >>> x.buffer.nbytes, x.buffer.readonly, x.buffer.owner
    (160, False, None)
    """

    def __init__(self):
        raise TypeError("a Buffer is made by NdArray(descriptor) or NdArray(descriptor, memory)")

    @property
    def address(self):
        """Address of the first byte; who has it can write the padding, so the buffer is `shared` from then on."""
        if not self.readonly:
            self.shared_with_others = True
        return <uintptr_t> self.data

    @property
    def shared(self):
        """Whether others can write the padding, so that its value is looked at and not remembered."""
        return self.shared_with_others

    def __len__(self):
        return self.nbytes

    def __getbuffer__(self, Py_buffer *view, int flags):
        if flags & PyBUF_WRITABLE and self.readonly:
            raise BufferError("the memory is read-only")
        if not self.readonly:
            self.shared_with_others = True
        # Not PyBuffer_FillInfo, which would forget the object that Cython has put there.
        view.obj = self
        view.buf, view.len, view.readonly, view.itemsize, view.ndim = self.data, self.nbytes, self.readonly, 1, 1
        view.format = BYTES if flags & PyBUF_FORMAT else NULL
        view.shape = &view.len if flags & PyBUF_ND else NULL
        view.strides = &view.itemsize if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL

    def __dealloc__(self):
        PyBuffer_Release(&self.export)
        free(self.allocation)

    def __repr__(self):
        kind = "read-only" if self.readonly else "writable"
        return f"<nd4jlike.Buffer of {self.nbytes} bytes, {kind}, {'our own' if self.owner is None else f'of a {type(self.owner).__name__}'}>"


cdef Buffer allocate(Py_ssize_t nbytes, Py_ssize_t aligned_at, Py_ssize_t alignment, bint cleared):
    global large_ones
    cdef Buffer made = Buffer.__new__(Buffer)
    cdef Py_ssize_t place = 0
    # A store makes loads wait whose addresses differ by whole pages, and allocators begin large blocks at one place of a page: so, by turns, at two.
    if nbytes >= LARGE:
        alignment = PAGE
        place = PAGE // 2 * (large_ones & 1)
        large_ones += 1
    # calloc asks the kernel for zeroed pages where it can, which no clearing of our own beats.
    if nbytes > PY_SSIZE_T_MAX - alignment:
        raise MemoryError(f"cannot allocate {nbytes} bytes")
    made.allocation = calloc(<size_t> (nbytes + alignment), 1) if cleared else malloc(<size_t> (nbytes + alignment))
    if made.allocation is NULL:
        raise MemoryError(f"cannot allocate {nbytes} bytes")
    if nbytes >= HUGE:
        want_large_pages(<char *> made.allocation, <size_t> (nbytes + alignment))
    made.data = <char *> made.allocation + (place - <Py_ssize_t> (<uintptr_t> made.allocation + <uintptr_t> aligned_at) & (alignment - 1))
    made.nbytes = nbytes
    made.halo_known = made.tail_known = True
    return made


cdef void lend(Buffer made, object owner, char *data, Py_ssize_t nbytes, bint readonly) noexcept:
    made.owner = owner
    made.data = data
    made.nbytes = nbytes
    made.readonly = readonly
    made.shared_with_others = True


cdef Buffer hold(object owner, object held, char *data, Py_ssize_t nbytes, bint readonly):
    cdef Buffer made = Buffer.__new__(Buffer)
    made.held = held
    lend(made, owner, data, nbytes, readonly)
    return made


cdef Buffer wrap(object exporter):
    cdef Buffer ours
    cdef Py_buffer view
    if isinstance(exporter, Buffer):
        ours = exporter
        if not ours.readonly:
            ours.shared_with_others = True
        return ours
    try:
        held = memoryview(exporter)
        PyObject_GetBuffer(held, &view, PyBUF_ANY_CONTIGUOUS)
    except TypeError:
        how = "; memory at an address is (ctypes.c_char * nbytes).from_address(address)" if isinstance(exporter, int) else ""
        raise UnsupportedLayoutError(f"{type(exporter).__name__} exports no buffer; wrapped memory needs the buffer protocol{how}") from None
    except (BufferError, ValueError) as error:
        raise UnsupportedLayoutError(f"a {type(exporter).__name__} does not export one contiguous run of bytes: {error}") from None
    # `held` keeps the bytes where they are after this look at them.
    try:
        return hold(exporter, held, <char *> view.buf, view.len, held.readonly)
    finally:
        PyBuffer_Release(&view)
