"""NdArray: a buffer seen through a descriptor (ADR 0002)."""

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_C_CONTIGUOUS,
    PyBUF_F_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_FULL_RO,
    PyBUF_ND,
    PyBUF_READ,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyBUF_WRITE,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from nd4jlike.buffer cimport Buffer, allocate, lend, wrap
from nd4jlike.dlpack cimport make_capsule, open_capsule
from nd4jlike.descriptor cimport (
    MAX_BLOCKS, MAX_RANK, Layout, ShapeDescriptor, axis_offset, block_product, derive, extents_for, inner_run, make_descriptor, offset_of_index,
    order_by_strides, reshaped, select,
)
from nd4jlike.kernels.patch cimport FROM_BRAIN, TO_BRAIN, MoveTable
from nd4jlike.moves cimport Box, Change, all_of, kernels, move

import operator
import pickle

import numpy as np

from nd4jlike import dtypes
from nd4jlike.errors import DTypeError, LayoutError, OutOfRangeError, ShapeStatus, UnsupportedLayoutError, _NoAxisError, _NoInterfaceError, _NoNumberError
from nd4jlike.padding import PaddingReport

__all__ = ["NdArray", "wrap_array"]

cdef enum:
    ALIGNMENT = 64  # one cache line, and the widest vector we load
    LARGE = 1 << 17  # bytes: from here on allocators give new pages
    FEW = 2048  # elements that NumPy's loops have copied before ours have begun
    BITS = -1  # no conversion: the bits stay
    NONE = -2  # no conversion does it

cdef ShapeDescriptor NOTHING = ShapeDescriptor("float32", "c", (0,))
cdef Buffer NO_BYTES = allocate(0, 0, ALIGNMENT, True)
cdef object FLOAT32 = np.dtype(np.float32), BOOL = np.dtype(np.bool_), BFLOAT16 = dtypes.bfloat16, NDARRAY = np.ndarray, AS_NUMPY = np.asarray
cdef dict NUMPY_TYPES = dtypes.NUMPY_TYPES


cdef bint is_run(const Layout *layout, bint fortran) noexcept nogil:
    """Whether the elements are one dense run in c (or f) order of the axes."""
    cdef Py_ssize_t expected = 1
    cdef int i, axis
    if layout.length == 0:
        return True
    for i in range(layout.rank):
        axis = i if fortran else layout.rank - 1 - i
        if layout.shape[axis] != 1:
            if layout.strides[axis] != expected:
                return False
            expected *= layout.shape[axis]
    return True


cdef bint cells_may_be_shared(const Layout *given) noexcept nogil:
    """Whether strides let two elements share a cell, so that writing to one would write to another."""
    cdef Layout layout
    cdef Py_ssize_t last = inner_run(given) - 1, extent, stride  # `last`: offset of the last cell of the faster axes
    cdef int i
    if is_run(given, False):
        return False
    layout = given[0]
    order_by_strides(&layout)
    for i in range(layout.rank - 1, -1, -1):
        extent = layout.padded_shape[layout.axes[i]] // block_product(&layout, layout.axes[i])
        if extent > 1:
            stride = layout.strides[layout.axes[i]]
            stride = -stride if stride < 0 else stride
            if stride <= last:
                return True
            last += stride * (extent - 1)
    return False


include "padding_cells.pxi"
include "elements.pxi"
include "short_ways.pxi"
include "operators.pxi"


cdef bint is_whole(const Layout *layout) noexcept nogil:
    """Whether the layout is that of a buffer of its own: the hosting buffer is dense and starts at offset 0, as tags describe it."""
    cdef Py_ssize_t expected = inner_run(layout), start = 0, extent, product
    cdef int i, axis
    if layout.length == 0:
        return True
    for i in range(layout.rank - 1, -1, -1):
        axis = layout.axes[i]
        product = block_product(layout, axis)
        extent = layout.padded_shape[axis] // product
        if extent != 1:
            if layout.strides[axis] != expected:
                return False
            start += layout.padding_offsets[axis] // product * expected
            expected *= extent
    return layout.offset == start


cdef int export_buffer(Buffer buffer, ShapeDescriptor descriptor, bint readonly, Py_buffer *view, int flags, const char *format) except -1:
    """Fill in a PEP 3118 view of the logical elements."""
    cdef const Layout *layout = &descriptor.layout
    cdef Py_ssize_t *numbers
    cdef bint c_run, f_run
    cdef int i
    view.obj = None
    if layout.block_count:
        raise UnsupportedLayoutError(f"the buffer protocol carries strides, not inner blocks {descriptor.inner_blocks}; reorder to a plain layout first")
    if flags & PyBUF_WRITABLE and readonly:
        raise BufferError("the array is read-only")
    c_run, f_run = is_run(layout, False), is_run(layout, True)
    if (
        (not c_run and (flags & PyBUF_C_CONTIGUOUS == PyBUF_C_CONTIGUOUS or flags & PyBUF_STRIDES != PyBUF_STRIDES))
        or (not f_run and flags & PyBUF_F_CONTIGUOUS == PyBUF_F_CONTIGUOUS)
        or (not c_run and not f_run and flags & PyBUF_ANY_CONTIGUOUS == PyBUF_ANY_CONTIGUOUS)
    ):
        raise UnsupportedLayoutError(
            f"a contiguous export was asked for, the elements are not: shape={descriptor.shape}, strides={descriptor.strides}; reorder to a dense layout first"
        )

    numbers = <Py_ssize_t *> malloc(<size_t> (2 * layout.rank + 1) * sizeof(Py_ssize_t))
    if numbers is NULL:
        raise MemoryError
    for i in range(layout.rank):
        numbers[i] = layout.shape[i]
        # Nothing is reached through the strides of an empty array; consumers take these for contiguous.
        numbers[layout.rank + i] = layout.strides[i] * layout.itemsize if layout.length else layout.itemsize
    view.buf = buffer.data + layout.offset * layout.itemsize
    view.itemsize = layout.itemsize
    view.len = layout.length * layout.itemsize
    view.readonly = readonly
    view.ndim = layout.rank if flags & PyBUF_ND else 1  # without a shape they are bytes in a row
    view.format = <char *> format if flags & PyBUF_FORMAT else NULL
    view.shape = numbers if flags & PyBUF_ND else NULL
    view.strides = numbers + layout.rank if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
    view.suboffsets = NULL
    view.internal = numbers
    return 0


cdef NdArray view_of(NdArray base, ShapeDescriptor descriptor):
    cdef NdArray made = NdArray.__new__(NdArray)
    made.descriptor = descriptor
    made.buffer = base.buffer
    made.readonly = base.readonly
    return made


cdef Buffer memory_for(ShapeDescriptor descriptor, bint cleared):
    """New memory; `cleared`: its elements are zero, as its padding always is."""
    cdef Py_ssize_t cells = descriptor.allocLength(), itemsize = descriptor.layout.itemsize
    cdef bint padded = cells != descriptor.layout.length
    # Pages that the kernel clears cost more than a walk over the padding.
    cdef bint walked = padded and not cleared and cells * itemsize >= LARGE
    cdef Buffer made = allocate(cells * itemsize, descriptor.layout.offset * itemsize, ALIGNMENT, cleared or (padded and not walked))
    cdef Walk walk
    if walked:
        walk_padding(&walk, &descriptor.layout, made.data, FILL, HALO | TAIL, 0)
    return made


cdef NdArray unwritten(ShapeDescriptor descriptor):
    cdef NdArray made
    if not is_whole(&descriptor.layout):
        return NdArray(descriptor)
    made = NdArray.__new__(NdArray)
    made.descriptor = descriptor
    made.buffer = memory_for(descriptor, False)
    return made


cdef NdArray laid_out_like(NdArray x, object dtype, bint keep_fill, bint cleared):
    """An array in the layout of `x`, or dense where `x` is a part of a buffer; `keep_fill`: the padding holds what that of `x` is known to."""
    cdef NdArray made = NdArray.__new__(NdArray)
    cdef ShapeDescriptor layout = x.descriptor
    cdef Walk walk
    if not is_whole(&layout.layout):
        layout = ShapeDescriptor(dtype, "c", layout.shape)
    elif layout.dtype is not dtype:
        layout = layout.astype(dtype)
    made.descriptor = layout
    made.buffer = memory_for(layout, cleared)
    if keep_fill and not x.buffer.shared_with_others and layout.dtype is x.descriptor.dtype:
        made.buffer.halo_bits = x.buffer.halo_bits if x.buffer.halo_known else 0
        made.buffer.tail_bits = x.buffer.tail_bits if x.buffer.tail_known else 0
        if made.buffer.halo_bits == made.buffer.tail_bits != 0:
            walk_padding(&walk, &layout.layout, made.buffer.data, FILL, HALO | TAIL, made.buffer.halo_bits)
        elif made.buffer.halo_bits != made.buffer.tail_bits:
            walk_padding(&walk, &layout.layout, made.buffer.data, FILL, HALO, made.buffer.halo_bits)
            walk_padding(&walk, &layout.layout, made.buffer.data, FILL, TAIL, made.buffer.tail_bits)
    return made


# Descriptors of arrays that were wrapped, the last ones: making one takes longer than all the rest.
include "wrapping.pxi"


cdef int kinds_of(object where) except -1:
    if where == "all":
        return HALO | TAIL
    if where == "halo":
        return HALO
    if where == "tail":
        return TAIL
    raise LayoutError(f"where is {where!r}, it must be 'all', 'halo' or 'tail'")


cdef tuple pair_of(str name, object value, str meaning):
    """Two integers of an argument of `__dlpack__`, or None."""
    if value is None:
        return None
    try:
        first, second = value
        return operator.index(first), operator.index(second)
    except (TypeError, ValueError):
        raise LayoutError(f"{name} is {value!r}, it must be None or two integers: {meaning}") from None


@cython.final
@cython.no_gc_clear  # array, buffer and owner form no cycle by themselves; whoever closes one can be cleared
cdef class NdArray(_Operators):
    """NdArray(descriptor, buffer=None)\n--\n\nA buffer seen through a descriptor.

    Parameters
    ----------
    descriptor : ShapeDescriptor
        Where each element lives.
    buffer : object, optional
        Memory to wrap, zero-copy: anything that exports one contiguous run of bytes, such as `bytearray`, `mmap`, a dense
        NumPy array or tensor, or the `buffer` of another array. Default: new memory, zeroed, aligned to 64 bytes at element (0, .., 0).

    Attributes
    ----------
    descriptor : ShapeDescriptor
        Where each element lives.
    buffer : Buffer
        The whole allocation, which views share.
    readonly : bool
        Whether writing elements is refused.

    Raises
    ------
    LayoutError
        If the descriptor cannot belong to an allocation (its `status` names the rule), the buffer is smaller than
        `ShapeDescriptor.allocLength`, or the elements would be misaligned.
    UnsupportedLayoutError
        If `buffer` exports no contiguous run of bytes.
    MemoryError
        If there is not enough memory.

    Notes
    -----
    Operations touch logical elements only; padding is written by `fill_padding` and `hosting_array` alone (ADR 0002).

    Examples
    --------
    >>> import nd4jlike as nd
    >>> x = nd.NdArray(nd.ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 3), (0, 1)))
    >>> x[...] = [[1, 2, 3], [4, 5, 6]]
    >>> x
    NdArray([[1., 2., 3.],
             [4., 5., 6.]], shape=(2, 3), dtype=float32, layout='ab', paddings=(0, 1))
    >>> x.hosting_array().to_numpy()
    array([[1., 2., 3., 0.],
           [4., 5., 6., 0.]], dtype=float32)
    """

    def __cinit__(self):
        # Whoever forgets `__init__` has an array without elements.
        self.descriptor, self.buffer = NOTHING, NO_BYTES

    def __init__(self, ShapeDescriptor descriptor not None, buffer=None):
        cdef Buffer memory
        cdef Py_ssize_t itemsize = descriptor.layout.itemsize
        if self.descriptor is not NOTHING:
            raise AttributeError("an NdArray keeps its descriptor and buffer; make a new one")
        needed = descriptor.allocLength() * itemsize
        if buffer is None:
            if not is_whole(&descriptor.layout):
                status = descriptor.validate()
                if status & ~ShapeStatus.INCORRECT_EWS:
                    raise LayoutError(f"no memory can be laid out so: {status.explain()}", status)
            memory = memory_for(descriptor, True)
        else:
            memory = dense_memory(buffer)
            dtypes.refuse_references(memory.held)
            if memory.nbytes < needed:
                raise LayoutError(f"the buffer has {memory.nbytes} bytes, the layout needs {needed}: {descriptor!r}")
            if <uintptr_t> memory.data % <size_t> itemsize:
                raise LayoutError(f"the buffer at {<uintptr_t> memory.data:#x} is misaligned: {descriptor.dtype} elements lie on multiples of {itemsize} bytes")
        self.descriptor = descriptor
        self.buffer = memory
        self.readonly = memory.readonly or cells_may_be_shared(&descriptor.layout)

    __array_priority__ = 0.0  # Dask asks for it

    cdef char *data(self) noexcept:
        return self.buffer.data + self.descriptor.layout.offset * self.descriptor.layout.itemsize

    cdef bint padding_holds(self, unsigned long long bits) noexcept:
        cdef const Layout *layout = &self.descriptor.layout
        cdef Walk walk
        if not self.buffer.shared_with_others and self.buffer.halo_known and self.buffer.tail_known:
            return self.buffer.halo_bits == bits == self.buffer.tail_bits
        return walk_padding(&walk, layout, self.buffer.data, LOOK, HALO | TAIL, bits)

    cdef void hand_out(self) noexcept:
        if not self.readonly:
            self.buffer.shared_with_others = True

    cdef bint fills_buffer(self) noexcept:
        cdef const Layout *layout = &self.descriptor.layout
        cdef Py_ssize_t nbytes = layout.itemsize
        cdef int i
        for i in range(layout.rank):
            nbytes *= layout.padded_shape[i]
        return nbytes == self.buffer.nbytes

    cdef void forget_tails(self, unsigned long long bits) noexcept:
        cdef const Layout *layout = &self.descriptor.layout
        cdef bint beyond = not self.fills_buffer()
        cdef int i
        for i in range(layout.rank):
            # A block that is not whole has halo before its tail.
            beyond = beyond or (layout.paddings[i] and block_product(layout, i) > 1)
        if self.buffer.tail_bits != bits:
            self.buffer.tail_known = False
        if beyond and self.buffer.halo_bits != bits:
            self.buffer.halo_known = False

    @property
    def shape(self):
        """Logical extents."""
        return self.descriptor.shape

    @property
    def strides(self):
        """Distance between neighbours along each axis, in elements (not bytes)."""
        return self.descriptor.strides

    @property
    def dtype(self):
        """Element type: a NumPy dtype, or `bfloat16`."""
        return self.descriptor.dtype

    @property
    def ndim(self):
        """Number of axes."""
        return self.descriptor.layout.rank

    @property
    def size(self):
        """Number of logical elements."""
        return self.descriptor.layout.length

    @property
    def itemsize(self):
        """Bytes of one element."""
        return self.descriptor.layout.itemsize

    @property
    def nbytes(self):
        """Bytes of the logical elements; `buffer.nbytes` is the size of the allocation."""
        return self.descriptor.layout.length * self.descriptor.layout.itemsize

    @property
    def T(self):  # noqa: N802
        """The view with all axes reversed."""
        return view_of(self, self.descriptor.permute(tuple(range(self.descriptor.layout.rank - 1, -1, -1))))

    @property
    def mT(self):  # noqa: N802
        """The view with the last two axes exchanged, as the array API standard has it; a `LayoutError` below two axes."""
        if self.ndim < 2:
            raise LayoutError(f"a matrix has two axes at least: shape={self.descriptor.shape}")
        return self.swapaxes(-1, -2)

    @property
    def device(self):
        """Where the memory is: ``"cpu"``, as the array API standard and NumPy have it."""
        return "cpu"

    def to_device(self, device, *, stream=None):
        """Give the array itself: there is no other device.

        Parameters
        ----------
        device : str
            ``"cpu"``.
        stream : None
            There are none.

        Returns
        -------
        NdArray

        Raises
        ------
        UnsupportedLayoutError
            For another device than ``"cpu"``, or a stream.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.zeros(2).to_device("cpu").device
        'cpu'
        """
        if device != "cpu" or stream is not None:
            raise UnsupportedLayoutError(f"the memory is on the CPU, which has no streams: device={device!r}, stream={stream!r}")
        return self

    def __array_namespace__(self, *, api_version=None):
        return np.empty(0).__array_namespace__(api_version=api_version)

    def hosting_array(self):
        """Show the padded buffer itself as an array, padding included.

        Returns
        -------
        NdArray
            A view of shape `ShapeDescriptor.padded_shape`. Writing to it may change the padding, so its value is looked
            at from now on instead of remembered (ADR 0002).

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.ones((1, 2), paddings=(2, 2), padding_offsets=(1, 1)).hosting_array().to_numpy()
        array([[0., 0., 0., 0.],
               [0., 1., 1., 0.],
               [0., 0., 0., 0.]], dtype=float32)
        """
        self.hand_out()
        return view_of(self, self.descriptor.hosting())

    def exploded(self):
        """Show the cells of a blocked array as a plain array of more axes, which NumPy can view.

        Returns
        -------
        NdArray
            A view. Its axes count outer blocks, in the order of this array; the inner blocks follow, outermost first. The
            tail of the last block is visible in it: writing to it is writing to padding, whose value is looked at from then
            on instead of remembered. Whole blocks of padding stay padding. A plain array is its own.

        Raises
        ------
        LayoutError
            For more than 32 axes.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c"))
        >>> x.exploded().to_numpy(copy=False).shape
        (1, 3, 5, 4, 8)
        """
        cdef ShapeDescriptor plain = self.descriptor.exploded()
        if plain.layout.length != self.descriptor.layout.length:
            self.hand_out()
        return view_of(self, plain)

    def data_ptr(self):
        """Tell the address of element (0, .., 0), for C: torch's name for it.

        Returns
        -------
        int
            In bytes. Valid as long as this array, a view or an export of it lives, which the number does not see to.

        Notes
        -----
        The next element along an axis lies ``strides[axis] * itemsize`` bytes further on, between outer blocks on a blocked axis; `descriptor`
        has the padding around the elements, in elements too. Who has the address may write to the padding, so its value is looked at from now
        on instead of remembered (ADR 0002). Where the array is read-only, C must not write.

        Examples
        --------
        >>> import ctypes
        >>> import nd4jlike as nd
        >>> x = nd.create((2, 3), dtype="int8", paddings=(0, 5))
        >>> row = x.data_ptr() + 1 * x.strides[0] * x.itemsize
        >>> ctypes.memset(row, 7, x.shape[1]) == row  # of the C library
        True
        >>> x.hosting_array().tolist()
        [[0, 0, 0, 0, 0, 0, 0, 0], [7, 7, 7, 0, 0, 0, 0, 0]]
        """
        self.hand_out()
        return <uintptr_t> self.data()

    @property
    def ctypes(self):
        """NumPy's object for C functions: ``x.ctypes.data``, ``x.ctypes.data_as(..)``, ``x.ctypes.shape``, ``x.ctypes.strides`` (bytes).

        Raises
        ------
        UnsupportedLayoutError
            For a blocked layout, whose blocks no strides describe: `data_ptr` is its address.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.create((2, 3), paddings=(0, 5))
        >>> list(x.ctypes.strides), x.ctypes.data == x.data_ptr()
        ([32, 4], True)
        """
        return self.to_numpy(False).ctypes

    def fill_padding(self, value, where="all"):
        """Write `value` to every padding cell: around the elements, and in the tail of blocks.

        Parameters
        ----------
        value : scalar
            Convertible to the element type within its kind.
        where : {'all', 'halo', 'tail'}
            Which cells. Tail: those that only rounding up to whole blocks adds. Halo: all others.

        Raises
        ------
        DTypeError
            If `value` is no element; nothing is written then.
        LayoutError
            If the array is read-only, or `where` is none of the three.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.create((1, 2), dtype="int8", paddings=(0, 2))
        >>> x.fill_padding(-128)
        >>> x.hosting_array().to_numpy()
        array([[   0,    0, -128, -128]], dtype=int8)
        """
        cdef const Layout *layout = &self.descriptor.layout
        cdef uint64_t bits = element_bits(self.descriptor.dtype, value)
        cdef int wanted = kinds_of(where)
        cdef char *base = self.buffer.data
        cdef Walk walk
        if self.readonly:
            raise LayoutError(f"the array is read-only: {self.descriptor!r}")
        with nogil:
            walk_padding(&walk, layout, base, FILL, wanted, bits)

        if not self.fills_buffer():
            if walk.seen:
                self.forget_tails(bits)
            return
        if walk.seen == self.buffer.nbytes // layout.itemsize - layout.length:
            wanted = HALO | TAIL  # there is no other kind
        if wanted & HALO:
            self.buffer.halo_known, self.buffer.halo_bits = True, bits
        if wanted & TAIL:
            self.buffer.tail_known, self.buffer.tail_bits = True, bits

    def check_padding(self, value=0, where="all"):
        """Report every padding cell that does not hold `value`.

        Parameters
        ----------
        value : scalar, optional
            What clean padding holds; compared bit by bit.
        where : {'all', 'halo', 'tail'}
            Which cells are looked at, as for `fill_padding`.

        Returns
        -------
        PaddingReport
            True when clean; else it lists the kind, the index, the offset and the value of each dirty cell.

        Raises
        ------
        DTypeError
            If `value` is no element.
        LayoutError
            If `where` is none of the three.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.create((2, 2), paddings=(0, 1))
        >>> bool(x.check_padding())
        True
        >>> x.hosting_array()[1, 2] = 7
        >>> print(x.check_padding())
        1 of 2 padding cells do not hold 0.0: (1, 2) at offset 5 holds 7.0 (halo)
        """
        cdef uint64_t bits = element_bits(self.descriptor.dtype, value)
        cdef const Layout *layout = &self.descriptor.layout
        cdef char *base = self.buffer.data
        cdef int wanted = kinds_of(where)
        cdef bint done
        cdef Walk walk
        with nogil:
            # Most padding is clean, and looked at faster than listed.
            done = walk_padding(&walk, layout, base, LOOK, wanted, bits) or walk_padding(&walk, layout, base, LIST, wanted, bits)
        try:
            if not done:
                raise MemoryError(f"no memory for a list of {walk.found_count} dirty cells")
            rows = np.frombuffer((<const char *> walk.found)[:walk.found_count * (layout.rank + 2) * <Py_ssize_t> sizeof(Py_ssize_t)], np.intp)
        finally:
            free(walk.found)
        dtype = self.descriptor.dtype
        unit = dtypes.bits_dtype(dtype)
        expected = np.frombuffer((<object> bits).to_bytes(8, "little"), unit, 1)
        if walk.found_count and (not wanted & HALO or bits == self.buffer.halo_bits) and (not wanted & TAIL or bits == self.buffer.tail_bits):
            # Somebody wrote there, and may again.
            self.buffer.shared_with_others = True
        if not walk.found_count and dtype is not BFLOAT16:
            return PaddingReport(expected[0], where, walk.seen, (), (), rows, expected[:0])
        rows = rows.reshape(-1, layout.rank + 2)
        rows = rows[np.argsort(rows[:, 0])]
        values = flat_cells(self)[rows[:, 0]] if len(rows) else np.empty(0, unit)
        if dtype is BFLOAT16:
            expected, values = dtypes.bfloat16_to_float32(expected), dtypes.bfloat16_to_float32(values)
        kinds = tuple(["tail" if kind == TAIL else "halo" for kind in rows[:, 1].tolist()])
        return PaddingReport(expected[0], where, walk.seen, kinds, tuple(map(tuple, rows[:, 2:].tolist())), rows[:, 0], values)

    def to_numpy(self, copy=None):
        """Hand the logical elements to NumPy.

        Parameters
        ----------
        copy : bool, optional
            False: a view or an error. True: always a copy, dense in c order. None: a copy only where NumPy has no view of
            the layout (blocked layouts).

        Returns
        -------
        numpy.ndarray
            A view keeps the memory alive, and is read-only where the array is. Who has one has an address, and may write around the
            elements, so the value of the padding is looked at from now on instead of remembered (ADR 0002).

        Raises
        ------
        UnsupportedLayoutError
            For ``copy=False`` and a blocked layout.
        MissingLibraryError
            For bfloat16 where `ml_dtypes` is not installed.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(3).to_numpy()
        array([0., 1., 2.], dtype=float32)
        """
        found = seen_by_numpy(self, copy)
        if not (copy or self.descriptor.layout.block_count):
            self.hand_out()
        return found

    def __array__(self, dtype=None, copy=None):
        wanted = None if dtype is None else np.dtype(dtype)
        if wanted is None or (wanted.name == "bfloat16" if self.descriptor.dtype is BFLOAT16 else wanted == self.descriptor.dtype):
            found = self.to_numpy(copy)
            if copy is None and self.descriptor.layout.block_count:
                found.flags.writeable = False  # what is written to a copy that nobody asked for would be lost
            return found
        if copy is False:
            raise ValueError(f"a conversion from {self.descriptor.dtype} to {wanted} needs a copy, and copy=False forbids it")
        return decoded(self).astype(wanted) if self.descriptor.dtype is BFLOAT16 else seen_by_numpy(self, None).astype(wanted)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        outs = kwargs.get("out", (None,))
        if method == "__call__" and len(kwargs) == ("out" in kwargs) and len(outs) == 1:
            found = plain_call(ufunc, inputs, outs[0])
            if found is not NotImplemented:
                return found
        return elementwise_rules().apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return elementwise_rules().apply_function(func, types, args, kwargs)

    @property
    def __array_interface__(self):
        """NumPy's description of the elements; layouts and element types that it cannot express are refused."""
        cdef ShapeDescriptor layout = self.descriptor
        if layout.layout.block_count or not isinstance(layout.dtype, np.dtype):
            raise _NoInterfaceError(
                f"__array_interface__ carries strides and NumPy's element types, not inner blocks {layout.inner_blocks} of {layout.dtype}: "
                "reorder to a plain layout, take exploded(), or convert"
            )
        self.hand_out()
        return {
            "version": 3,
            "shape": layout.shape,
            "typestr": layout.dtype.str,
            "data": (<uintptr_t> self.data(), self.readonly),
            "strides": tuple([stride * layout.layout.itemsize for stride in layout.strides]),
        }

    def __dlpack_device__(self):
        return 1, 0  # the CPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef NdArray shown = self
        cdef const Layout *layout = &self.descriptor.layout
        cdef bint negative = False
        cdef int i
        version = pair_of("max_version", max_version, "(major, minor)")
        device = pair_of("dl_device", dl_device, "(type, number)")
        _check_copy(copy)
        if stream is not None or device not in (None, (1, 0)):
            raise UnsupportedLayoutError(f"the memory is on the CPU, device (1, 0), which has no streams: stream={stream!r}, dl_device={dl_device!r}")
        if layout.block_count:
            raise UnsupportedLayoutError(f"DLPack carries strides, not the inner blocks of {self.descriptor!r}; hand over exploded(), or reorder first")
        for i in range(layout.rank):
            negative |= layout.strides[i] < 0 and layout.shape[i] > 1 and layout.length > 0
        if copy:
            shown = self.copy()
        elif negative or self.readonly:
            what = "negative strides" if negative else "read-only memory"
            raise UnsupportedLayoutError(f"consumers of DLPack abort on negative strides and write to read-only memory; this is {what}: ask for copy=True")
        shown.hand_out()
        return make_capsule(shown, shown.data(), &shown.descriptor.layout, self.descriptor.dtype, version is not None and version[0] >= 1, bool(copy))

    def __reduce_ex__(self, protocol):
        cdef const Layout *layout = &self.descriptor.layout
        cdef NdArray whole = self
        if not is_whole(layout) or self.buffer.nbytes != self.descriptor.allocLength() * layout.itemsize:
            whole = self.copy()
        fill = None
        if whole.buffer.halo_known and whole.buffer.tail_known and not whole.buffer.shared_with_others:
            fill = whole.buffer.halo_bits, whole.buffer.tail_bits
        # Who gets the buffer out of band may write to it: that makes its padding one that is looked at.
        memory = pickle.PickleBuffer(whole.buffer) if protocol >= 5 else (<const char *> whole.buffer.data)[:whole.buffer.nbytes]
        return _unpickled, (whole.descriptor, memory, self.readonly, fill)

    def __dask_tokenize__(self):
        import hashlib
        values = gathered(self) if self.descriptor.layout.block_count else elements(self)
        return "nd4jlike.NdArray", repr(self.descriptor), hashlib.blake2b(np.ascontiguousarray(values)).hexdigest()

    def __getbuffer__(self, Py_buffer *view, int flags):
        row = dtypes.codes(self.descriptor.dtype)
        if row.pep3118 is None:
            view.obj = None
            raise UnsupportedLayoutError(f"the buffer protocol has no format character for {row.name}; convert the elements first")
        export_buffer(self.buffer, self.descriptor, self.readonly, view, flags, FORMATS[row.pep3118])
        self.hand_out()
        view.obj = self

    def __releasebuffer__(self, Py_buffer *view):
        free(view.internal)

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("an array without axes has no length")
        return self.descriptor.shape[0]

    def __contains__(self, value):
        found = self == value
        return found is not False and bool(found.any())

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("an array without axes cannot be iterated over")
        return (self[i] for i in range(self.descriptor.shape[0]))

    def __getitem__(self, key):
        cdef const Layout *layout = &self.descriptor.layout
        cdef Py_ssize_t index[MAX_RANK]
        cdef NdArray part
        cdef int axis = 0
        if type(key) is int:
            key = (key,)
        if type(key) is tuple and len(<tuple> key) == layout.rank:
            for k in <tuple> key:
                if type(k) is not int or not -layout.shape[axis] <= k < layout.shape[axis]:
                    break
                index[axis] = k
                index[axis] += layout.shape[axis] if index[axis] < 0 else 0
                axis += 1
            else:
                if layout.block_count or self.descriptor.dtype is BFLOAT16:
                    return scalar_at(self, offset_of_index(layout, index))
                return elements(self)[key]
        if key is Ellipsis:
            return view_of(self, self.descriptor)
        if is_selection(key):
            values = gathered(self) if layout.block_count else elements(self)
            values = picked(values, key, self.descriptor.shape)
            part = unwritten(ShapeDescriptor(self.descriptor.dtype, "c", values.shape))
            elements(part)[...] = values
            return part
        part = view_of(self, select(self.descriptor, key))
        if part.descriptor.layout.rank or (isinstance(key, tuple) and any([k is Ellipsis for k in key])):
            return part
        return scalar_at(part, part.descriptor.layout.offset)

    def __setitem__(self, key, value):
        cdef ShapeDescriptor part = None
        kind = self.descriptor.dtype.kind
        if not self.readonly and not self.descriptor.layout.block_count and (
            type(value) is int and kind in "iuf" or type(value) is float and kind == "f"
            or type(value) is NDARRAY and value.dtype is self.descriptor.dtype and (
                value.base is None and self.buffer.owner is None or value.ndim == 0 or value.size > value.shape[-1])  # more than a row, see `apart_from`
        ):
            try:
                elements(self)[key] = value  # NumPy casts these as `assign` does
                return
            except (IndexError, ValueError):
                pass  # what is wrong with the key is told below
            except OverflowError:  # of an index, which is told below, or of the value
                if not is_selection(key):
                    select(self.descriptor, key)
                raise
        if is_selection(key):
            assign(self, value, picked(selected_cells(self.descriptor, Ellipsis), key, self.descriptor.shape))
            return
        if key is Ellipsis:
            assign(self, value)
            return
        try:
            part = select(self.descriptor, key)
        except UnsupportedLayoutError:
            pass
        if part is None:
            assign(self, value, selected_cells(self.descriptor, key))
        else:
            assign(view_of(self, part), value)

    def __delitem__(self, key):
        raise LayoutError("elements of an array cannot be deleted: it has all that its shape says")

    def permute(self, axes, *more):
        """View the array with its axes in another order.

        Parameters
        ----------
        axes : tuple of int, or int
            Axis i of the view is axis ``axes[i]`` of the array.
        *more : int
            The other axes, where they are not in a tuple.

        Returns
        -------
        NdArray

        Raises
        ------
        LayoutError
            If `axes` is no permutation.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.zeros((1, 5, 4, 17)).permute((0, 3, 1, 2)).descriptor.tag
        'acdb'
        """
        return view_of(self, self.descriptor.permute((axes, *more) if more or isinstance(axes, int) else axes))

    def transpose(self, *axes):
        """View the array with its axes permuted, or reversed when none are given, as NumPy has it.

        Parameters
        ----------
        *axes : int, or one tuple of int
            As for `permute`; negative ones count from the end.

        Returns
        -------
        NdArray

        Raises
        ------
        LayoutError
            If the axes are no permutation.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.zeros((2, 3)).transpose().shape
        (3, 2)
        """
        if not axes or (len(axes) == 1 and axes[0] is None):
            return self.T
        if len(axes) == 1 and isinstance(axes[0], (tuple, list, NDARRAY)):
            axes = tuple(axes[0])
        try:
            axes = tuple([axis + self.ndim if axis < 0 else axis for axis in map(operator.index, axes)])
        except TypeError:  # which `permute` says in words
            pass
        return self.permute(axes)

    def swapaxes(self, axis1, axis2):
        """Exchange two axes, as a view.

        Parameters
        ----------
        axis1, axis2 : int
            Negative ones count from the end.

        Returns
        -------
        NdArray

        Raises
        ------
        OutOfRangeError
            For axes that are none.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.zeros((2, 3, 4)).swapaxes(0, -1).shape
        (4, 3, 2)
        """
        cdef list axes = list(range(self.ndim))
        try:
            axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
        except (IndexError, TypeError):
            raise _NoAxisError(f"there are {self.ndim} axes, none to exchange are {axis1!r} and {axis2!r}: shape={self.descriptor.shape}") from None
        return self.permute(axes)

    def squeeze(self, axis=None):
        """View the array without axes of extent 1.

        Parameters
        ----------
        axis : int or tuple of int, optional
            Which; default all of them.

        Returns
        -------
        NdArray

        Raises
        ------
        LayoutError
            For an axis whose extent is not 1.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.zeros((1, 3, 1)).squeeze().shape
        (3,)
        """
        if axis is None:
            gone = [i for i, n in enumerate(self.descriptor.shape) if n == 1]
        else:
            try:
                gone = [operator.index(i) for i in (axis if isinstance(axis, tuple) else (axis,))]
                gone = [i + self.ndim if i < 0 else i for i in gone]
            except TypeError:
                gone = [-1]
            if any([not 0 <= i < self.ndim for i in gone]):
                raise _NoAxisError(f"there are {self.ndim} axes, none to squeeze is {axis!r}: shape={self.descriptor.shape}")
            if any([self.descriptor.shape[i] != 1 for i in gone]) or len(set(gone)) < len(gone):
                raise LayoutError(f"only axes of extent 1 can be squeezed, each once: axis={axis!r}, shape={self.descriptor.shape}")
        return self[tuple([0 if i in gone else slice(None) for i in range(self.ndim)]) + (Ellipsis,)]

    def reshape(self, *shape, order="C", copy=None):
        """View the elements, in c order of their indices, under another shape.

        Parameters
        ----------
        *shape : int, or one tuple of int
            One extent may be -1.
        order : {'C', 'F', 'A'}
            In which order indices count, as `numpy.reshape` has it.
        copy : bool, optional
            False: a view or an error. True: always a new, dense array. None: a new array only where strides cannot express it.

        Returns
        -------
        NdArray

        Raises
        ------
        LayoutError
            If the number of elements differs.
        UnsupportedLayoutError
            For ``copy=False`` where a copy is needed.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(6).reshape(2, -1).shape
        (2, 3)
        """
        cdef tuple extents = extents_for(self.descriptor, shape[0] if len(shape) == 1 else shape)
        if order != "C":
            return np.reshape(self, extents, order, copy=copy)
        cdef ShapeDescriptor found = None if copy is True else reshaped(self.descriptor, extents)
        cdef NdArray made
        if found is not None:
            return view_of(self, found)
        if copy is False:
            raise UnsupportedLayoutError(f"no view, and copy=False forbids another: neither strides nor blocks describe shape {extents} of {self.descriptor!r}")
        made = unwritten(ShapeDescriptor(self.dtype, "c", extents))
        transfer(self, view_of(made, ShapeDescriptor(self.dtype, "c", self.descriptor.shape)), BITS)
        return made

    def ravel(self, order="C"):
        """Give the elements, by default in c order, along one axis: a view where strides allow, else a dense copy, as ``reshape(-1)``.

        Parameters
        ----------
        order : {'C', 'F', 'A', 'K'}
            In which order, as `numpy.ravel` has it.

        Returns
        -------
        NdArray
            Of shape ``(size,)``.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(4).reshape(2, 2).T.ravel().tolist()
        [0.0, 2.0, 1.0, 3.0]
        """
        return self.reshape(-1) if order == "C" else np.ravel(self, order)

    def flatten(self, order="C"):
        """Copy the elements, by default in c order, along one axis.

        Parameters
        ----------
        order : {'C', 'F', 'A', 'K'}
            In which order, as `numpy.ndarray.flatten` has it.

        Returns
        -------
        NdArray
            Of shape ``(size,)``, dense.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.create((2, 2), paddings=(0, 3)).flatten().descriptor
        ShapeDescriptor('float32', 'c', (4,))
        """
        return self.reshape(-1, copy=True) if order == "C" else as_ndarray(seen_by_numpy(self, None).flatten(order))

    def copy(self, order="K"):
        """Copy the array: a new buffer of the same layout, elements and padding alike; with an `order` other than 'K' dense.

        Parameters
        ----------
        order : {'K', 'C', 'F', 'A'}
            Memory order of the copy, as `numpy.copy` has it; 'K' keeps the layout.

        Returns
        -------
        NdArray
            Views become arrays of their own: the layout is kept where memory can be laid out so, else it is dense.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.create((2, 3), paddings=(0, 1))
        >>> x.copy().descriptor == x.descriptor
        True
        """
        cdef ShapeDescriptor mine = self.descriptor
        cdef NdArray made
        if order != "K":
            return np.copy(self, order)
        if not is_whole(&mine.layout):
            made = laid_out_like(self, mine.dtype, False, False)
            assign(made, self)
            return made
        made = NdArray.__new__(NdArray)
        made.descriptor = mine
        made.buffer = allocate(mine.allocLength() * mine.layout.itemsize, mine.layout.offset * mine.layout.itemsize, ALIGNMENT, False)
        memcpy(made.buffer.data, self.buffer.data, <size_t> made.buffer.nbytes)
        made.buffer.halo_known = not self.buffer.shared_with_others and self.buffer.halo_known
        made.buffer.tail_known = not self.buffer.shared_with_others and self.buffer.tail_known
        made.buffer.halo_bits, made.buffer.tail_bits = self.buffer.halo_bits, self.buffer.tail_bits
        return made

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def astype(self, dtype, *, casting="unsafe", copy=True):
        """Convert the elements to another type, in a new array of the same layout.

        Parameters
        ----------
        dtype : dtype
            Anything `numpy.dtype` takes, or ``"bfloat16"``; values are cast as NumPy casts them, to bfloat16 half to even.
        casting : {"unsafe", "same_kind", "safe", "equiv", "no"}
            What may change, as `numpy.can_cast` has it; bfloat16 counts as a float16 there.
        copy : bool
            False: the array itself where it has that type.

        Returns
        -------
        NdArray
            Its padding is zero, unless it is the array itself.

        Raises
        ------
        DTypeError
            If `casting` does not allow it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(3).astype("int8").dtype
        dtype('int8')
        """
        to_type = dtypes.dtype(dtype)
        from_type = self.descriptor.dtype
        if casting != "unsafe" and not np.can_cast(*[np.float16 if one is BFLOAT16 else one for one in (from_type, to_type)], casting):
            raise DTypeError(f"casting={casting!r} does not take {from_type} to {to_type}")
        if not copy and to_type == from_type:
            return self
        made = laid_out_like(self, to_type, False, False)
        convert(self, made)
        return made

    def view(self, dtype=None):
        """Read the bits of the same memory, padding included, as another element type of as many bytes.

        Parameters
        ----------
        dtype : dtype, optional
            Default: that of the array.

        Returns
        -------
        NdArray

        Raises
        ------
        DTypeError
            For an element type of another size.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.full((2,), -1, "int8").view("uint8").tolist()
        [255, 255]
        """
        to_type = self.descriptor.dtype if dtype is None else dtypes.dtype(dtype)
        if to_type.itemsize != self.descriptor.layout.itemsize:
            raise DTypeError(f"a view has elements of as many bytes: {self.descriptor.dtype} as {to_type}")
        return view_of(self, self.descriptor.astype(to_type))

    def item(self, *index):
        """Return one element as a Python number.

        Parameters
        ----------
        *index : int or tuple of int, optional
            Which one: an index for every axis, or one number that counts elements in c order. Without it the only element.

        Returns
        -------
        int, float or bool

        Raises
        ------
        LayoutError
            Without an index, unless the array has one element.
        OutOfRangeError
            For an index outside the shape, or of another number of axes.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.arange(6).reshape(2, 3)
        >>> x.item(1, 0), x.item(3), x[0, :1].item()
        (3.0, 3.0, 0.0)
        """
        shape = self.descriptor.shape
        if not self.descriptor.layout.block_count and self.descriptor.dtype is not BFLOAT16:
            try:
                return elements(self).item(*index)
            except (IndexError, TypeError, ValueError):
                pass  # what is wrong with the index is told below
        key = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
        if not key and self.size != 1:
            raise _NoNumberError(f"an array of {self.size} elements is not one number: shape={shape}")
        try:
            key = tuple([operator.index(i) for i in key or (0,)])
            if len(key) == 1 != self.ndim and -self.size <= key[0] < self.size:
                key = tuple([int(i) for i in np.unravel_index(key[0] % self.size, shape)])
        except TypeError as error:
            raise OutOfRangeError(f"{index} is no index of one element: {error}") from None
        if len(key) != self.ndim:
            raise OutOfRangeError(f"{index} is no index of one element: shape={shape}, size={self.size}")
        return self[key].item()

    def tolist(self):
        """Return the elements as nested lists of Python numbers.

        Returns
        -------
        list, or a number for an array without axes
            bfloat16 as floats.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.reorder(nd.arange(4).reshape(2, 2), "Ba8b").tolist()
        [[0.0, 1.0], [2.0, 3.0]]
        """
        return (decoded(self) if self.descriptor.dtype is BFLOAT16 else gathered(self)).tolist()

    def tobytes(self, order="C"):
        """Return the bytes of the elements, by default in c order, without padding.

        Parameters
        ----------
        order : {'C', 'F', 'A'}
            In which order, as `numpy.ndarray.tobytes` has it.

        Returns
        -------
        bytes
            `nbytes` of them; `buffer` is the whole allocation, padding included.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.create((2, 1), dtype="int8", paddings=(0, 7)).tobytes()
        b'\\x00\\x00'
        """
        return (gathered(self) if self.descriptor.layout.block_count else elements(self)).tobytes(order)

    def tofile(self, fid):
        """Write the bytes of the elements to a file, in c order, without padding.

        Parameters
        ----------
        fid : path or file
            As `numpy.ndarray.tofile` has it.

        Examples
        --------
        >>> import tempfile
        >>> import nd4jlike as nd
        >>> with tempfile.TemporaryFile() as file:
        ...     nd.create((2, 1), dtype="int8", paddings=(0, 7)).tofile(file)
        ...     file.tell()
        2
        """
        (gathered(self) if self.descriptor.layout.block_count else elements(self)).tofile(fid)

    def fill(self, value):
        """Write one value to all elements; padding stays as it is.

        Parameters
        ----------
        value : scalar
            Cast within its kind, as ``x[...] = value``.

        Raises
        ------
        LayoutError
            For an array as value, and if the array is read-only.
        DTypeError
            For a value of another kind.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.create((2,), paddings=(1,))
        >>> x.fill(3)
        >>> x.hosting_array().tolist()
        [3.0, 3.0, 0.0]
        """
        if np.ndim(value):
            raise LayoutError(f"one value fills an array, not an array of shape {np.shape(value)}")
        assign(self, value)

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.descriptor.layout.rank or self.descriptor.dtype.kind not in "iu":
            raise DTypeError(f"only an integer without axes is an index: shape {self.descriptor.shape}, dtype {self.descriptor.dtype}")
        return int(self)

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth of an array of {self.size} elements is ambiguous: shape={self.descriptor.shape}")
        return bool(self.item())

    def __format__(self, spec):
        return object.__format__(self, spec) if self.descriptor.layout.rank else format(self[()], spec)

    def __repr__(self):
        cdef ShapeDescriptor layout = self.descriptor
        values = decoded(self) if layout.dtype is BFLOAT16 else gathered(self)
        parts = [np.array2string(values, separator=", ", prefix="NdArray(", threshold=100), f"shape={layout.shape}", f"dtype={layout.dtype}"]
        if layout.rank:
            parts.append(f"layout={layout.tag!r}" if layout.tag is not None else f"strides={layout.strides}")
        if layout.has_padded_buffer:
            parts.append(f"paddings={layout.paddings}")
        if any(layout.padding_offsets):
            parts.append(f"padding_offsets={layout.padding_offsets}")
        if self.readonly:
            parts.append("readonly")
        return f"NdArray({', '.join(parts)})"

    def show(self, *, padding=None, width=80, rows=32):
        """Draw which element lies in which cell of the buffer, and which padding is dirty, as text and as SVG.

        Parameters
        ----------
        padding : scalar, optional
            What clean padding holds. Default: what `fill_padding` wrote to all of it, else 0.
        width, rows : int, optional
            As `ShapeDescriptor.show` has them.

        Returns
        -------
        nd4jlike.show.Drawing

        Raises
        ------
        DTypeError
            If `padding` is no element.
        LayoutError
            For less than 1 row or column.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.create((2, 2), dtype="int8", paddings=(0, 1))
        >>> x.hosting_array()[1, 2] = 7
        >>> print("\\n".join(x.show().splitlines()[-3:]))
        0: >0,0  0,1    .
        3:  1,0  1,1   !.
        > first element   . padding (halo)   ! dirty: does not hold 0
        """
        if padding is None:
            padding = 0
            if holds_one_value(self.buffer):
                cell = np.frombuffer((<object> self.buffer.halo_bits).to_bytes(8, "little"), dtypes.bits_dtype(self.descriptor.dtype), 1)
                padding = (dtypes.bfloat16_to_float32(cell) if self.descriptor.dtype is BFLOAT16 else cell)[0]
        return self.descriptor.show(padding=self.check_padding(padding), width=width, rows=rows)

    def _repr_svg_(self):
        return self.show().svg()

    def _repr_html_(self):
        return self.show().html(repr(self))


cdef dict FORMATS = {character: character.encode() for character in "?bBhHiIlLqQefd"}


def _unpickled(ShapeDescriptor descriptor not None, memory, bint readonly, fill):
    """Unpickle: on the memory that came along, or, where that cannot be written, on new memory that holds the same."""
    cdef Buffer given = wrap(memory)
    cdef NdArray made
    # A part of a message may begin anywhere.
    if <uintptr_t> given.data % <size_t> descriptor.layout.itemsize == 0 and (type(memory) is not bytes or readonly):
        made = NdArray(descriptor, memory)
        made.readonly = made.readonly or readonly
        return made
    made = unwritten(descriptor)
    if given.nbytes < made.buffer.nbytes:
        raise LayoutError(f"the buffer has {given.nbytes} bytes, the layout needs {made.buffer.nbytes}: {descriptor!r}")
    memcpy(made.buffer.data, given.data, <size_t> made.buffer.nbytes)
    made.buffer.halo_known = made.buffer.tail_known = fill is not None
    made.buffer.halo_bits, made.buffer.tail_bits = fill or (0, 0)
    made.readonly = readonly or (given.readonly and type(memory) is not bytes)
    return made


def _from_dlpack(x):
    """The array that a fresh capsule of `x` shows."""
    cdef list figures = []
    cdef Buffer buffer
    cdef NdArray made = NdArray.__new__(NdArray)
    kind, number = x.__dlpack_device__()
    if kind != 1:
        raise UnsupportedLayoutError(f"the memory of a {type(x).__name__} is on device ({int(kind)}, {number}), only that of the CPU, (1, 0), can be reached")
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # producers from before version 1.0
        capsule = x.__dlpack__()
    buffer = open_capsule(x, capsule, figures)
    dtype, shape, strides, offset = figures
    none = (0,) * len(shape)
    made.descriptor = make_descriptor(dtype, "c", None, shape, strides, None, offset, none, none, ())
    made.buffer = buffer
    made.readonly = buffer.readonly or cells_may_be_shared(&made.descriptor.layout)
    return made


def _like(NdArray x not None, dtype, *, bint keep_fill=False, bint cleared=True):
    """Zeros in the layout of `x`, or elements that hold anything; dense where no memory can be laid out so."""
    return laid_out_like(x, dtypes.dtype(dtype), keep_fill, cleared)


def _check_copy(copy):
    """Refuse what says neither whether to copy nor that it does not matter."""
    if copy is not None and not isinstance(copy, (bool, np.bool_)):
        hint = "; an element type is dtype=" if isinstance(copy, (type, np.dtype)) else ""
        raise LayoutError(f"copy is {copy!r}, it must be None or a bool{hint}")


def _unwritten(ShapeDescriptor descriptor not None):
    """An array whose elements hold anything; its padding is zero."""
    return unwritten(descriptor)


def _exploded(NdArray x not None):
    """NumPy view of `x.exploded()` for those who leave the tail alone."""
    return seen_by_numpy(view_of(x, x.descriptor.exploded()), False)


def _seen(NdArray x not None):
    """What `x.to_numpy()` gives, for those who write no padding and hand out nothing of it."""
    return seen_by_numpy(x, None)


def _apart_from(cells, values):
    """What NumPy may write to `cells` where `values` are to arrive as they were."""
    return apart_from(cells, values)


def _taken(x):
    """See `taken`."""
    return taken(x)


def wrap_array(x):
    """Wrap what exports a buffer, zero-copy; make an array of everything else NumPy can read (see `nd4jlike.asarray`)."""
    return as_ndarray(x)
