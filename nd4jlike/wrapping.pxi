# What others hand over as arrays: memory that is wrapped where it lies, by NumPy, the buffer protocol or DLPack (ADR 0002, 0012).

cdef enum:
    WRAPPED = 64
cdef list wrapped = [None] * WRAPPED


cdef ShapeDescriptor descriptor_of_wrapped(const Layout *figures, object dtype):
    """Of the rank, shape, strides and offset in `figures`, without padding and blocks."""
    cdef ShapeDescriptor found
    cdef Layout *layout
    cdef size_t place = <size_t> figures.rank, extents = <size_t> figures.rank * sizeof(Py_ssize_t)
    cdef int i
    for i in range(figures.rank):
        place = (place * 31 + <size_t> figures.shape[i]) * 31 + <size_t> figures.strides[i]
    place = (place ^ place >> 32 ^ place >> 7) % WRAPPED
    found = wrapped[place]
    if (
        found is not None and found.dtype is dtype and found.layout.rank == figures.rank and found.layout.offset == figures.offset
        and memcmp(found.layout.shape, figures.shape, extents) == 0 and memcmp(found.layout.strides, figures.strides, extents) == 0
    ):
        return found
    found = ShapeDescriptor.__new__(ShapeDescriptor)
    layout = &found.layout
    layout.rank, layout.block_count, layout.offset = figures.rank, 0, figures.offset
    for i in range(figures.rank):
        layout.shape[i], layout.strides[i] = figures.shape[i], figures.strides[i]
        layout.paddings[i], layout.padding_offsets[i] = 0, 0
    order_by_strides(layout)
    derive(found, dtype, "c")
    wrapped[place] = found
    return found


cdef bint speaks_dlpack(object x):
    """Whether it is another library's array."""
    return hasattr(type(x), "__dlpack__") and hasattr(type(x), "__dlpack_device__")


cdef object read_by_numpy(object x):
    try:
        found = AS_NUMPY(x)
        if found.dtype.kind == "O" and not isinstance(x, NDARRAY) and speaks_dlpack(x):
            raise TypeError("NumPy reads no numbers")
        return found
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise LayoutError(f"no array can be made of a {type(x).__name__}, it must hold numbers, as many at each place: {error}") from None


cdef NdArray handed_over(object x, object error):
    """The array that DLPack makes of what NumPy cannot read, as its `error` says."""
    name = type(x).__name__
    words = str(error)
    if isinstance(error, TypeError):  # of torch's bfloat16; other errors are about elements that a capsule may be silent about
        try:
            return _from_dlpack(x)
        except DTypeError as refused:
            raise DTypeError(f"no array can be made of a {name}, NumPy has no such elements, and by DLPack: {refused}; {words}") from error
        except (BufferError, RuntimeError, TypeError, ValueError) as refused:
            words = f"{words}; by DLPack: {refused}"
    raise UnsupportedLayoutError(f"a {name} does not hand over its elements, which an array shares or copies: {words}") from error


cdef object taken(object x):
    """`x`, but as NumPy or DLPack reads it where it is another library's array: what NumPy cannot read is an array of ours."""
    if isinstance(x, (NdArray, NDARRAY, GENERIC)) or not speaks_dlpack(x):
        return x
    try:
        return read_by_numpy(x)
    except (TypeError, RuntimeError) as error:
        return handed_over(x, error)


cdef NdArray as_ndarray(object x):
    cdef NdArray made
    cdef Buffer buffer
    cdef Layout layout
    cdef Py_buffer *view
    cdef Py_ssize_t low = 0, high = 0, reach
    cdef bint empty = False
    cdef int i
    if isinstance(x, NdArray):
        return x
    try:
        array = x if type(x) is NDARRAY else read_by_numpy(x)
    except (TypeError, RuntimeError) as error:
        if not speaks_dlpack(x):
            raise
        return handed_over(x, error)
    dtype = NUMPY_TYPES.get(array.dtype)
    if dtype is None:
        dtype = dtypes.dtype(array.dtype)
    if dtype is BFLOAT16:
        array = array.view(np.uint16)  # NumPy exports no buffer of the types that others register
    buffer = Buffer.__new__(Buffer)
    view = &buffer.export
    PyObject_GetBuffer(array, view, PyBUF_FULL_RO)
    if view.ndim > MAX_RANK:
        raise LayoutError(f"rank {view.ndim} is beyond {MAX_RANK}", ShapeStatus.INCORRECT_RANK)
    layout.rank = view.ndim
    for i in range(view.ndim):
        if view.strides[i] % view.itemsize and view.shape[i] > 1:
            raise UnsupportedLayoutError(
                f"axis {i} has a stride of {view.strides[i]} bytes, no whole number of elements of {view.itemsize} bytes; nd4jlike.array copies it"
            )
        layout.shape[i], layout.strides[i] = view.shape[i], view.strides[i] // view.itemsize
        empty |= view.shape[i] == 0
        reach = (view.shape[i] - 1) * view.strides[i]
        if reach < 0:
            low += reach
        else:
            high += reach
    if empty:
        low, high = 0, -view.itemsize
    if <uintptr_t> view.buf % <size_t> view.itemsize:
        raise LayoutError(
            f"the memory at {<uintptr_t> view.buf:#x} is misaligned: {dtype.name} elements lie on multiples of {view.itemsize} bytes; nd4jlike.array copies it"
        )
    layout.offset = -low // view.itemsize
    lend(buffer, array, <char *> view.buf + low, high - low + view.itemsize, view.readonly)
    made = NdArray.__new__(NdArray)
    made.descriptor = descriptor_of_wrapped(&layout, dtype)
    made.buffer = buffer
    made.readonly = buffer.readonly or cells_may_be_shared(&made.descriptor.layout)
    return made


cdef NdArray as_output(str name, object out):
    if isinstance(out, NdArray) or PyObject_CheckBuffer(out):
        return as_ndarray(out)
    if not speaks_dlpack(out):
        raise LayoutError(f"{name} must be an NdArray, export a buffer or speak DLPack: a {type(out).__name__}")
    return shared(out)


cdef NdArray shared(object x):
    """The memory of what speaks DLPack and exports no buffer, unless its elements are not as they lie there."""
    taken(x)  # raises it: the capsule of a tensor that torch negates is silent about it
    return _from_dlpack(x)


cdef Buffer dense_memory(object exporter):
    """What exports one contiguous run of bytes, by the buffer protocol or by DLPack."""
    cdef NdArray made
    if isinstance(exporter, Buffer) or PyObject_CheckBuffer(exporter) or not speaks_dlpack(exporter):
        return wrap(exporter)
    made = shared(exporter)
    if made.buffer.nbytes != made.descriptor.layout.length * made.descriptor.layout.itemsize:
        raise UnsupportedLayoutError(
            f"a {type(exporter).__name__} does not export one contiguous run of bytes: shape {made.shape}, strides {made.strides} of {made.descriptor.dtype}"
        )
    return made.buffer
