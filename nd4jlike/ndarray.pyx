"""NdArray: a buffer seen through a descriptor (ADR 0002)."""

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_C_CONTIGUOUS,
    PyBUF_F_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_FULL_RO,
    PyBUF_ND,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from nd4jlike.buffer cimport Buffer, allocate, hold, wrap
from nd4jlike.descriptor cimport Layout, ShapeDescriptor, make_descriptor
from nd4jlike.kernels.patch cimport MoveTable
from nd4jlike.moves cimport Box, all_of, kernels, move

import numpy as np

from nd4jlike import dtypes
from nd4jlike.errors import DTypeError, LayoutError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.padding import PaddingReport

__all__ = ["NdArray", "wrap_array"]

cdef enum:
    ALIGNMENT = 64  # one cache line, and the widest vector we load


cdef bint cells_may_be_shared(const Layout *layout):
    """Whether strides let two elements share a cell, so that writing to one would write to another."""
    cdef Py_ssize_t reach = 1
    cdef int i
    outer = [layout.padded_shape[i] for i in range(layout.rank)]
    for i in range(layout.block_count):
        outer[layout.block_axes[i]] //= layout.block_sizes[i]
        reach *= layout.block_sizes[i]
    for stride, extent in sorted([(abs(layout.strides[i]), outer[i]) for i in range(layout.rank) if outer[i] > 1]):
        if stride < reach:
            return True
        reach = stride * extent
    return False


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


cdef void fill_run(char *cell, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t itemsize, uint64_t bits) noexcept nogil:
    """Write `bits` to `count` cells that are `stride` bytes apart."""
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(cell + i * stride, &bits, <size_t> itemsize)


cdef bint run_holds(const char *cell, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t itemsize, uint64_t bits) noexcept nogil:
    """Whether `count` cells that are `stride` bytes apart hold `bits`."""
    cdef uint64_t wrong = 0
    cdef Py_ssize_t i
    if itemsize == 1:
        for i in range(count):
            wrong |= (<const uint8_t *> (cell + i * stride))[0] ^ <uint8_t> bits
    elif itemsize == 2:
        for i in range(count):
            wrong |= (<const uint16_t *> (cell + i * stride))[0] ^ <uint16_t> bits
    elif itemsize == 4:
        for i in range(count):
            wrong |= (<const uint32_t *> (cell + i * stride))[0] ^ <uint32_t> bits
    else:
        for i in range(count):
            wrong |= (<const uint64_t *> (cell + i * stride))[0] ^ bits
    return wrong == 0


cdef bint visit_padding(const Layout *layout, int level, char *cell, bint outside, bint fill, uint64_t bits) noexcept nogil:
    """Fill, or look at, the padding cells below `level` of the memory order, `cell` being the first of them.

    Plain layouts. `outside` says that an outer axis is in its padding already, so that all cells below are.
    """
    cdef Py_ssize_t i, first, last, stride
    cdef int axis
    if level == layout.rank:
        if outside and fill:
            fill_run(cell, 1, 0, layout.itemsize, bits)
        return fill or not outside or run_holds(cell, 1, 0, layout.itemsize, bits)
    axis = layout.axes[level]
    stride = layout.strides[axis] * layout.itemsize
    first = layout.padding_offsets[axis]
    last = first + layout.shape[axis]
    if level == layout.rank - 1:
        if outside:
            first = last = layout.padded_shape[axis]
        if fill:
            fill_run(cell, first, stride, layout.itemsize, bits)
            fill_run(cell + last * stride, layout.padded_shape[axis] - last, stride, layout.itemsize, bits)
            return True
        return (run_holds(cell, first, stride, layout.itemsize, bits)
                and run_holds(cell + last * stride, layout.padded_shape[axis] - last, stride, layout.itemsize, bits))
    for i in range(layout.padded_shape[axis]):
        if not visit_padding(layout, level + 1, cell + i * stride, outside or not first <= i < last, fill, bits):
            return False
    return True


cdef char *first_cell(const Layout *layout, char *base) noexcept nogil:
    """The first cell of the hosting buffer of a plain layout."""
    cdef Py_ssize_t offset = layout.offset
    cdef int i
    for i in range(layout.rank):
        offset -= layout.padding_offsets[i] * layout.strides[i]
    return base + offset * layout.itemsize


cdef int export_buffer(NdArray array, Py_buffer *view, int flags, const char *format) except -1:
    """Fill in a PEP 3118 view of the logical elements."""
    cdef const Layout *layout = &array.descriptor.layout
    cdef Py_ssize_t *numbers
    cdef bint c_run, f_run
    cdef int i
    view.obj = None
    if layout.block_count:
        raise UnsupportedLayoutError(f"the buffer protocol carries strides, not the inner blocks of {array.descriptor!r}; reorder to a plain layout first")
    if flags & PyBUF_WRITABLE and array.readonly:
        raise BufferError("the array is read-only")
    c_run, f_run = is_run(layout, False), is_run(layout, True)
    if (
        (not c_run and (flags & PyBUF_C_CONTIGUOUS == PyBUF_C_CONTIGUOUS or flags & PyBUF_STRIDES != PyBUF_STRIDES))
        or (not f_run and flags & PyBUF_F_CONTIGUOUS == PyBUF_F_CONTIGUOUS)
        or (not c_run and not f_run and flags & PyBUF_ANY_CONTIGUOUS == PyBUF_ANY_CONTIGUOUS)
    ):
        raise UnsupportedLayoutError(f"a contiguous export was asked for, the elements are not: {array.descriptor!r}; reorder to a dense layout first")

    numbers = <Py_ssize_t *> malloc(<size_t> (2 * layout.rank + 1) * sizeof(Py_ssize_t))
    if numbers is NULL:
        raise MemoryError
    for i in range(layout.rank):
        numbers[i] = layout.shape[i]
        # Nothing is reached through the strides of an empty array; consumers take these for contiguous.
        numbers[layout.rank + i] = layout.strides[i] * layout.itemsize if layout.length else layout.itemsize
    view.buf = array.data()
    view.itemsize = layout.itemsize
    view.len = layout.length * layout.itemsize
    view.readonly = array.readonly
    view.ndim = layout.rank
    view.format = <char *> format if flags & PyBUF_FORMAT else NULL
    view.shape = numbers if flags & PyBUF_ND else NULL
    view.strides = numbers + layout.rank if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
    view.suboffsets = NULL
    view.internal = numbers
    return 0


@cython.final
@cython.no_gc_clear
cdef class _Elements:
    """Exports the elements of an array whatever their type; bfloat16 as its bits."""

    # Keeps the bytes alive as long as an export of them lives.
    cdef NdArray array
    cdef bytes format

    def __getbuffer__(self, Py_buffer *view, int flags):
        export_buffer(self.array, view, flags, self.format)
        view.obj = self

    def __releasebuffer__(self, Py_buffer *view):
        free(view.internal)


cdef object elements(NdArray array):
    """NumPy view of the logical elements of a plain layout; bfloat16 as its bits."""
    cdef _Elements exporter = _Elements.__new__(_Elements)
    exporter.array = array
    exporter.format = dtypes.bits_dtype(array.descriptor.dtype).char.encode()
    return np.asarray(exporter)


cdef object flat_cells(NdArray array):
    """NumPy view of the whole buffer, one entry a cell; bfloat16 as its bits."""
    cdef Py_ssize_t count = array.descriptor.allocLength()
    whole = view_of(array, make_descriptor(array.descriptor.dtype, "c", (0,), (count,), (1,), None, 0, (0,), (0,), ()))
    return elements(whole)


cdef object cell_offsets(ShapeDescriptor descriptor):
    """Offset of every logical element, as an array of the shape of the descriptor; for layouts that strides do not describe."""
    cdef list products = [1] * descriptor.layout.rank
    offsets = np.full((1,) * descriptor.layout.rank, descriptor.layout.offset, np.intp)
    rest = [np.arange(n, dtype=np.intp) for n in descriptor.shape]
    step = 1
    within = [np.zeros(n, np.intp) for n in descriptor.shape]
    for axis, size in reversed(descriptor.inner_blocks):
        within[axis] = within[axis] + rest[axis] % size * step
        rest[axis] = rest[axis] // size
        products[axis] *= size
        step *= size
    for axis in range(descriptor.layout.rank):
        one = [1] * descriptor.layout.rank
        one[axis] = -1
        offsets = offsets + (within[axis] + rest[axis] * descriptor.strides[axis]).reshape(one)
    return np.broadcast_to(offsets, descriptor.shape)


cdef object encoded(object dtype, object value):
    """`value` as NumPy can write it into `elements`: bfloat16 rounded to its bits."""
    if isinstance(value, NdArray):
        value = (<NdArray> value).to_numpy() if not isinstance((<NdArray> value).descriptor.dtype, dtypes.BFloat16) else decoded(value)
    if isinstance(dtype, dtypes.BFloat16):
        values = np.asarray(value)
        if values.dtype.name == "bfloat16":
            return values.view(np.uint16)
        if values.dtype.kind not in "fiub":
            raise DTypeError(f"cannot write {values.dtype} values to a bfloat16 array")
        return dtypes.float32_to_bfloat16(values.astype(np.float32))
    if dtype == np.bool_ and not isinstance(value, (bool, np.bool_)):
        values = np.asarray(value)
        if values.dtype.kind in "iu" and ((values == 0) | (values == 1)).all():
            return values.astype(np.bool_)
    return value


cdef object decoded(NdArray array):
    """The elements of a bfloat16 array as float32, in a new NumPy array."""
    return dtypes.bfloat16_to_float32(gathered(array))


cdef object gathered(NdArray array):
    """The elements in a new, dense NumPy array; bfloat16 as its bits."""
    if array.descriptor.layout.block_count:
        made = np.empty(array.descriptor.shape, dtypes.bits_dtype(array.descriptor.dtype))
        transfer(array, as_ndarray(made))
        return made
    return elements(array).copy()


cdef int transfer(NdArray source, NdArray target) except -1:
    """Move the bits of all elements; shapes and item sizes are equal, the memory is not shared."""
    cdef const MoveTable *table = kernels()
    cdef Box box
    all_of(&box, &target.descriptor.layout)
    with nogil:
        move(table, &source.descriptor.layout, source.buffer.data, &target.descriptor.layout, target.buffer.data, &box, NULL, NULL)
    return 0


cdef int assign(NdArray array, object value) except -1:
    """Write `value`, broadcast, to the logical elements; nothing is written when it does not fit."""
    if array.readonly:
        raise LayoutError(f"the array is read-only: {array.descriptor!r}")
    dtype = array.descriptor.dtype
    values = encoded(dtype, value)
    try:
        if array.descriptor.layout.block_count:
            target = np.empty(array.descriptor.shape, dtypes.bits_dtype(dtype))
            np.copyto(target, values, casting="same_kind")
            transfer(as_ndarray(target), array)
        else:
            np.copyto(elements(array), values, casting="same_kind")
    except TypeError as error:
        raise DTypeError(f"cannot write these values to a {dtype} array, only casts within a kind are made: {error}") from None
    except ValueError as error:
        raise LayoutError(f"cannot write these values to an array of shape {array.descriptor.shape}: {error}") from None
    return 0


cdef unsigned long long element_bits(object dtype, object value) except? 0xFFFFFFFFFFFFFFFF:
    cell = np.zeros((), dtypes.bits_dtype(dtype))
    try:
        np.copyto(cell, encoded(dtype, value), casting="same_kind")
    except (TypeError, ValueError) as error:
        raise DTypeError(f"padding value {value!r} is no {dtype}: {error}") from None
    return int.from_bytes(cell.tobytes(), "little")


cdef NdArray view_of(NdArray base, ShapeDescriptor descriptor):
    cdef NdArray made = NdArray.__new__(NdArray)
    made.descriptor = descriptor
    made.buffer = base.buffer
    made.readonly = base.readonly
    return made


cdef tuple axes_of(object strides):
    """Memory order as strides tell it, among equals c order."""
    cdef list axes = []
    cdef Py_ssize_t place
    for axis, stride in enumerate(strides):
        place = axis
        while place > 0 and abs(strides[axes[place - 1]]) < abs(stride):
            place -= 1
        axes.insert(place, axis)
    return tuple(axes)


cdef NdArray as_ndarray(object x):
    cdef NdArray made
    cdef Py_buffer view
    cdef Py_ssize_t low = 0, high = 0, reach
    cdef int i
    if isinstance(x, NdArray):
        return x
    array = x if type(x) is np.ndarray else np.asarray(x)
    row = dtypes.codes(array.dtype)
    if row.dtype is dtypes.bfloat16:
        array = array.view(np.uint16)  # NumPy exports no buffer of the types that others register
    held = memoryview(array)
    PyObject_GetBuffer(held, &view, PyBUF_FULL_RO)
    try:
        strides = []
        shape = []
        for i in range(view.ndim):
            if view.strides[i] % view.itemsize and view.shape[i] > 1:
                raise UnsupportedLayoutError(f"axis {i} has a stride of {view.strides[i]} bytes, no whole number of elements of {view.itemsize} bytes")
            shape.append(view.shape[i])
            strides.append(view.strides[i] // view.itemsize)
            reach = (view.shape[i] - 1) * view.strides[i]
            if reach < 0:
                low += reach
            else:
                high += reach
        if 0 in shape:
            low = high = 0
        if <uintptr_t> view.buf % <size_t> view.itemsize:
            raise LayoutError(f"the memory at {<uintptr_t> view.buf:#x} is misaligned: {row.name} elements lie on multiples of {view.itemsize} bytes")
        buffer = hold(array, held, <char *> view.buf + low, high - low + (0 if 0 in shape else view.itemsize), view.readonly)
    finally:
        PyBuffer_Release(&view)
    none = (0,) * len(shape)
    made = NdArray.__new__(NdArray)
    made.descriptor = make_descriptor(row.dtype, "c", axes_of(strides), tuple(shape), tuple(strides), None, -low // row.itemsize, none, none, ())
    made.buffer = buffer
    made.readonly = (<Buffer> buffer).readonly or cells_may_be_shared(&made.descriptor.layout)
    return made


@cython.final
@cython.no_gc_clear  # array, buffer and owner form no cycle by themselves; whoever closes one can be cleared
cdef class NdArray:
    """A buffer seen through a descriptor.

    Parameters
    ----------
    descriptor : ShapeDescriptor
        Where each element lives.
    buffer : object, optional
        Memory to wrap, zero-copy: anything that exports one contiguous run of bytes, such as `bytearray`, `mmap`, a dense
        NumPy array, or the `buffer` of another array. Default: new memory, zeroed, aligned to 64 bytes at element (0, .., 0).

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

    def __init__(self, ShapeDescriptor descriptor not None, buffer=None):
        cdef Buffer memory
        cdef Py_ssize_t itemsize = descriptor.layout.itemsize
        if self.descriptor is not None:
            raise AttributeError("an NdArray keeps its descriptor and buffer; make a new one")
        status = descriptor.validate()
        needed = descriptor.allocLength() * itemsize
        if buffer is None:
            if status & ~ShapeStatus.INCORRECT_EWS:
                raise LayoutError(f"no memory can be laid out so: {status.explain()}", status)
            memory = allocate(needed, descriptor.layout.offset * itemsize, ALIGNMENT)
        else:
            memory = wrap(buffer)
            if memory.nbytes < needed:
                raise LayoutError(f"the buffer has {memory.nbytes} bytes, the layout needs {needed}: {descriptor!r}")
            if <uintptr_t> memory.data % <size_t> itemsize:
                raise LayoutError(f"the buffer at {<uintptr_t> memory.data:#x} is misaligned: {descriptor.dtype} elements lie on multiples of {itemsize} bytes")
        self.descriptor = descriptor
        self.buffer = memory
        self.readonly = memory.readonly or cells_may_be_shared(&descriptor.layout)

    cdef char *data(self) noexcept:
        return self.buffer.data + self.descriptor.layout.offset * self.descriptor.layout.itemsize

    cdef bint padding_holds(self, unsigned long long bits) noexcept:
        cdef const Layout *layout = &self.descriptor.layout
        if not self.buffer.shared_with_others and self.buffer.fill_known:
            return self.buffer.fill_bits == bits
        if layout.block_count:
            return False
        return layout.length == 0 or visit_padding(layout, 0, first_cell(layout, self.buffer.data), False, False, bits)

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
        return self.permute(tuple(range(self.ndim - 1, -1, -1)))

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
        if not self.readonly:
            self.buffer.shared_with_others = True
        return view_of(self, self.descriptor.hosting())

    def fill_padding(self, value):
        """Write `value` to every padding cell: around the elements, and in the tail of blocks.

        Parameters
        ----------
        value : scalar
            Convertible to the element type within its kind.

        Raises
        ------
        DTypeError
            If `value` is no element; nothing is written then.
        LayoutError
            If the array is read-only.

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
        cdef Py_ssize_t cells = 1
        cdef char *start
        if self.readonly:
            raise LayoutError(f"the array is read-only: {self.descriptor!r}")
        if layout.length == 0:  # no memory, however much padding is declared
            return
        if layout.block_count:
            flat_cells(self)[self._padding_cells()] = np.frombuffer(int(bits).to_bytes(8, "little")[:layout.itemsize], dtypes.bits_dtype(self.dtype))[0]
        else:
            start = first_cell(layout, self.buffer.data)
            with nogil:
                visit_padding(layout, 0, start, False, True, bits)

        # A view owns a part of the padding, the rest may hold something else.
        for extent in self.descriptor.padded_shape:
            cells *= extent
        if cells * layout.itemsize == self.buffer.nbytes:
            self.buffer.fill_known = True
            self.buffer.fill_bits = bits
        elif self.buffer.fill_bits != bits:
            self.buffer.fill_known = False

    def check_padding(self, value=0):
        """Report every padding cell that does not hold `value`.

        Parameters
        ----------
        value : scalar, optional
            What clean padding holds; compared bit by bit.

        Returns
        -------
        PaddingReport
            True when clean; else it lists the index, the offset and the value of each dirty cell.

        Raises
        ------
        DTypeError
            If `value` is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.create((2, 2), paddings=(0, 1))
        >>> bool(x.check_padding())
        True
        >>> x.hosting_array()[1, 2] = 7
        >>> print(x.check_padding())
        1 of 2 padding cells do not hold 0.0: (1, 2) at offset 5 holds 7.0
        """
        bits = element_bits(self.descriptor.dtype, value)
        unit = dtypes.bits_dtype(self.descriptor.dtype)
        raw = np.dtype(f"u{unit.itemsize}")
        expected = np.array(bits, np.uint64).astype(raw)
        cells = self._padding_cells()
        if cells.size == 0:
            return PaddingReport(expected.view(unit)[()], 0, (), np.empty(0, np.intp), np.empty(0, unit))
        found = flat_cells(self).view(raw)[cells]
        dirty = found != expected
        offsets = cells[dirty]
        values = found[dirty].view(unit)
        if isinstance(self.descriptor.dtype, dtypes.BFloat16):
            values = dtypes.bfloat16_to_float32(values)
            shown = dtypes.bfloat16_to_float32(expected.reshape(1))[0]
        else:
            shown = expected.view(unit)[()]
        hosting = self.descriptor.hosting()
        index_of = {}
        if offsets.size:
            flat = cell_offsets(hosting)
            where = np.nonzero(np.isin(flat, offsets))
            before = self.descriptor.padding_offsets
            index_of = {int(flat[at]): tuple([int(i) - b for i, b in zip(at, before)]) for at in zip(*where)}
        return PaddingReport(shown, int(cells.size), tuple([index_of[int(o)] for o in offsets]), offsets, values)

    def _padding_cells(self):
        """Offsets of all padding cells, ascending."""
        if self.descriptor.layout.length == 0:
            return np.empty(0, np.intp)
        return np.setdiff1d(cell_offsets(self.descriptor.hosting()), cell_offsets(self.descriptor))

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
            A view keeps the memory alive, and is read-only where the array is.

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
        carrier = dtypes.numpy_dtype(self.descriptor.dtype)
        if self.descriptor.layout.block_count and copy is False:
            raise UnsupportedLayoutError(f"NumPy has no view of the blocked layout {self.descriptor!r}; reorder to a plain layout, or copy")
        if self.descriptor.layout.block_count or copy:
            return np.ascontiguousarray(gathered(self)).reshape(self.descriptor.shape).view(carrier)
        return elements(self).view(carrier)

    def __array__(self, dtype=None, copy=None):
        view = self.to_numpy(copy)
        if dtype is None or np.dtype(dtype) == view.dtype:
            return view
        if copy is False:
            raise ValueError(f"a conversion from {view.dtype} to {np.dtype(dtype)} needs a copy, and copy=False forbids it")
        return view.astype(dtype)

    def __getbuffer__(self, Py_buffer *view, int flags):
        row = dtypes.codes(self.descriptor.dtype)
        if row.pep3118 is None:
            view.obj = None
            raise UnsupportedLayoutError(f"the buffer protocol has no format character for {row.name}; convert the elements first")
        export_buffer(self, view, flags, FORMATS[row.pep3118])
        view.obj = self

    def __releasebuffer__(self, Py_buffer *view):
        free(view.internal)

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("an array without axes has no length")
        return self.descriptor.shape[0]

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("an array without axes cannot be iterated over")
        return iter([self[i] for i in range(self.descriptor.shape[0])])

    def __getitem__(self, key):
        cdef ShapeDescriptor part
        if self.descriptor.layout.block_count and self._is_element(key):
            cell = flat_cells(self)[self.descriptor.offset_of(self._wrapped(key))]
        else:
            part = self.descriptor.subarray(key)
            if part.layout.rank or not self._is_element(key):
                return view_of(self, part)
            cell = elements(view_of(self, part))[()]
        if isinstance(self.descriptor.dtype, dtypes.BFloat16):
            return dtypes.bfloat16_to_float32(np.array([cell]))[0]
        return cell

    def __setitem__(self, key, value):
        if self.descriptor.layout.block_count and self._is_element(key):
            position = self._wrapped(key)
            layout = make_descriptor(self.descriptor.dtype, "c", (), (), (), None, self.descriptor.offset_of(position), (), (), ())
            assign(view_of(self, layout), value)
        else:
            assign(view_of(self, self.descriptor.subarray(key)), value)

    def _is_element(self, key):
        """Whether `key` names one element: an integer for every axis."""
        keys = key if isinstance(key, tuple) else (key,)
        return len(keys) == self.ndim and all([k is not None and k is not Ellipsis and not isinstance(k, slice) for k in keys])

    def _wrapped(self, key):
        """`key` with negative indices counted from the end."""
        keys = key if isinstance(key, tuple) else (key,)
        return tuple([k + n if k < 0 else k for k, n in zip(keys, self.descriptor.shape)])

    def permute(self, axes):
        """View the array with its axes in another order.

        Parameters
        ----------
        axes : tuple of int
            Axis i of the view is axis ``axes[i]`` of the array.

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
        return view_of(self, self.descriptor.permute(axes))

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
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = () if axes[0] is None else tuple(axes[0])
        if not axes:
            return self.T
        return self.permute(tuple([axis + self.ndim if axis < 0 else axis for axis in axes]))

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
            gone = [i + self.ndim if i < 0 else i for i in (axis if isinstance(axis, tuple) else (axis,))]
            if any([not 0 <= i < self.ndim or self.descriptor.shape[i] != 1 for i in gone]):
                raise LayoutError(f"only axes of extent 1 can be squeezed: axis={axis}, shape={self.descriptor.shape}")
        return self[tuple([0 if i in gone else slice(None) for i in range(self.ndim)]) + (Ellipsis,)]

    def reshape(self, *shape, copy=None):
        """View the elements, in c order of their indices, under another shape.

        Parameters
        ----------
        *shape : int, or one tuple of int
            One extent may be -1.
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
        cdef bint blocked = self.descriptor.layout.block_count > 0
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        source = gathered(self) if blocked else elements(self)
        try:
            reshaped = np.reshape(source, wanted)
        except (ValueError, TypeError) as error:
            raise LayoutError(f"cannot reshape {self.descriptor.shape} to {wanted}: {error}") from None
        # NumPy makes a view wherever strides allow one.
        if copy is not True and not blocked and (reshaped.size == 0 or np.may_share_memory(reshaped, source)):
            strides = tuple([stride // self.itemsize for stride in reshaped.strides])
            axes = axes_of(strides)
            none = (0,) * reshaped.ndim
            start = self.descriptor.layout.offset
            return view_of(self, make_descriptor(self.dtype, self.descriptor.order, axes, reshaped.shape, strides, None, start, none, none, ()))
        if copy is False:
            raise UnsupportedLayoutError(f"no strides describe shape {wanted} of {self.descriptor!r}; a copy is needed, and copy=False forbids it")
        made = NdArray(ShapeDescriptor(self.dtype, "c", reshaped.shape))
        np.copyto(elements(made), reshaped)
        return made

    def copy(self):
        """Copy the array: a new buffer of the same layout, elements and padding alike.

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
        if mine.validate():
            made = NdArray(ShapeDescriptor(mine.dtype, "c", mine.shape))
        else:
            made = NdArray(mine)
        if mine.has_padded_buffer and made.descriptor == mine:
            np.copyto(elements(view_of(made, mine.hosting())), elements(view_of(self, mine.hosting())))
            (<NdArray> made).buffer.fill_known = not self.buffer.shared_with_others and self.buffer.fill_known
            (<NdArray> made).buffer.fill_bits = self.buffer.fill_bits
        else:
            assign(made, self)
        return made

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def astype(self, dtype):
        """Convert the elements to another type, in a new array of the same layout.

        Parameters
        ----------
        dtype : dtype
            Anything `numpy.dtype` takes, or ``"bfloat16"``; values are cast as NumPy casts them, to bfloat16 half to even.

        Returns
        -------
        NdArray
            Its padding is zero.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(3).astype("int8").dtype
        dtype('int8')
        """
        cdef ShapeDescriptor layout = self.descriptor
        made = NdArray((ShapeDescriptor(layout.dtype, "c", layout.shape) if layout.validate() else layout).astype(dtype))
        values = decoded(self) if isinstance(layout.dtype, dtypes.BFloat16) else gathered(self)
        if not isinstance(made.dtype, dtypes.BFloat16):
            values = values.astype(made.dtype)
        assign(made, values)
        return made

    def item(self):
        """Return the only element as a Python number.

        Raises
        ------
        LayoutError
            Unless the array has one element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.full((1, 1), 3).item()
        3.0
        """
        if self.size != 1:
            raise LayoutError(f"an array of {self.size} elements is not one number: shape={self.descriptor.shape}")
        return self[(0,) * self.ndim].item() if self.ndim else self[()].item()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth of an array of {self.size} elements is ambiguous: shape={self.descriptor.shape}")
        return bool(self.item())

    def __repr__(self):
        cdef ShapeDescriptor layout = self.descriptor
        values = decoded(self) if isinstance(layout.dtype, dtypes.BFloat16) else gathered(self)
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


cdef dict FORMATS = {character: character.encode() for character in "?bBhHiIqQefd"}


def wrap_array(x):
    """Wrap what exports a buffer, zero-copy; make an array of everything else NumPy can read (see `nd4jlike.asarray`)."""
    return as_ndarray(x)
