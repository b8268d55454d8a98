# How elements are read, written and converted: as NumPy's views where strides can say it, by the reorder's moves where they cannot (ADR 0002, 0010).


@cython.final
@cython.no_gc_clear
cdef class _Elements:
    """Exports the elements of an array whatever their type; bfloat16 as its bits. Keeps the bytes alive, not the array."""

    cdef Buffer buffer
    cdef ShapeDescriptor descriptor
    cdef bint readonly

    def __getbuffer__(self, Py_buffer *view, int flags):
        dtype = self.descriptor.dtype
        export_buffer(self.buffer, self.descriptor, self.readonly, view, flags, b"H" if dtype is BFLOAT16 else FORMATS[dtype.char])
        view.obj = self

    def __releasebuffer__(self, Py_buffer *view):
        free(view.internal)


cdef object elements(NdArray array):
    """NumPy view of the logical elements, of a blocked layout as `exploded`; bfloat16 as its bits. Who hands it out makes a view of it."""
    cdef _Elements exporter
    with cython.critical_section(array):
        shown = array.shown
    if shown is not None:
        return shown
    exporter = _Elements.__new__(_Elements)
    exporter.buffer = array.buffer
    exporter.descriptor = array.descriptor.exploded() if array.descriptor.layout.block_count else array.descriptor
    exporter.readonly = array.readonly
    shown = AS_NUMPY(exporter)
    owner = array.buffer.owner
    # A cycle through an owner must stay in sight of the garbage collector, which NumPy's views are not, nor those whose owner is one of NumPy's arrays.
    if owner is None or type(owner) is NDARRAY or type(owner) is bytearray:
        with cython.critical_section(array):
            array.shown = shown
    return shown


cdef object seen_by_numpy(NdArray array, object copy):
    """`NdArray.to_numpy` for the library itself: no address leaves it."""
    cdef bint blocked = array.descriptor.layout.block_count > 0
    carrier = dtypes.numpy_dtype(array.descriptor.dtype) if array.descriptor.dtype is BFLOAT16 else None
    if blocked and copy is False:
        raise UnsupportedLayoutError(f"NumPy has no view of the blocked layout {array.descriptor!r}; reorder to a plain layout, or copy")
    found = np.ascontiguousarray(gathered(array)).reshape(array.descriptor.shape) if blocked or copy else elements(array).view()
    return found if carrier is None else found.view(carrier)


cdef object flat_cells(NdArray array):
    """NumPy view of the whole buffer, one entry a cell; bfloat16 as its bits."""
    cdef Py_ssize_t count = array.descriptor.allocLength()
    whole = view_of(array, make_descriptor(array.descriptor.dtype, "c", (0,), (count,), (1,), None, 0, (0,), (0,), ()))
    return elements(whole)


cdef object selected_cells(ShapeDescriptor descriptor, object key):
    """Offset of every element that `key` selects, as an array of the shape of the selection."""
    cdef int axis = 0
    select(ShapeDescriptor(descriptor.dtype, "c", descriptor.shape), key)  # says what is wrong with a key, if anything is
    keys = key if isinstance(key, tuple) else (key,)
    rest = [slice(None)] * (descriptor.layout.rank - len([k for k in keys if k is not None and k is not Ellipsis]))
    places = np.array(descriptor.offset)
    for k in keys if any([k is Ellipsis for k in keys]) else (*keys, Ellipsis):
        for part in rest if k is Ellipsis else (k,):
            if part is None:
                places = places[..., None]
                continue
            chosen = range(descriptor.layout.shape[axis])[part]
            if isinstance(chosen, range):
                places = places[..., None] + np.array([axis_offset(&descriptor.layout, axis, i) for i in chosen], np.intp)
            else:
                places = places + axis_offset(&descriptor.layout, axis, chosen)
            axis += 1
    return places


cdef bint is_selection(object key):
    """Whether a key has a mask, an array or another sequence: NumPy's advanced indexing."""
    for k in <tuple> key if isinstance(key, tuple) else (key,):
        kind = type(k)
        if kind is int or kind is slice or k is None or k is Ellipsis:
            continue
        if kind is list or kind is tuple or kind is range or kind is bool or getattr(k, "ndim", 0) or getattr(k, "dtype", None) == np.bool_:
            return True
    return False


cdef object picked(object values, object key, shape):
    """The entries of a NumPy array that `key`, which may be an array of ours, selects."""
    keys = [seen_by_numpy(k, None) if isinstance(k, NdArray) else k for k in (key if isinstance(key, tuple) else (key,))]
    try:
        return values[tuple(keys)]
    except (IndexError, TypeError, ValueError) as error:  # of lists that are no arrays, too
        raise OutOfRangeError(f"no elements of an array of shape {shape} are selected so: {error}") from None


cdef object encoded(object dtype, object value):
    """`value` as NumPy can write it into `elements`: bfloat16 rounded to its bits."""
    value = taken(value)
    if isinstance(value, NdArray):
        value = seen_by_numpy(value, None) if (<NdArray> value).descriptor.dtype is not BFLOAT16 else decoded(value)
    if dtype is BFLOAT16:
        values = np.asarray(value)
        if values.dtype.name == "bfloat16":
            return values.view(np.uint16)
        if values.dtype.kind not in "fiub" and not dtypes.are_large_integers(values):
            raise DTypeError(f"cannot write {values.dtype} values to an array of bfloat16")
        return dtypes.float32_to_bfloat16(values.astype(np.float32))
    if isinstance(value, np.integer):
        value = int(value)
    if dtype.kind in "iuf" and isinstance(value, (list, tuple, range)):
        # Integers are each written by itself: by way of the type that NumPy takes for all of them they could be others.
        try:
            values = np.asarray(value)
        except ValueError as error:
            raise LayoutError(f"these values are no array: {error}") from None
        if values.dtype.kind in "iu" and dtype.kind in "iu" or values.dtype.kind in "fO" and dtypes.are_large_integers(np.array(value, object)):
            return np.array(value, dtype)
    if dtype.kind == "b" and not isinstance(value, (bool, np.bool_)):
        values = np.asarray(value)
        if values.dtype.kind in "iu" and ((values == 0) | (values == 1)).all():
            return values.astype(np.bool_)
    return value


cdef object decoded(NdArray array):
    """The elements of a bfloat16 array as float32, in a new NumPy array."""
    return dtypes.bfloat16_to_float32(gathered(array))


cdef object gathered(NdArray array):
    """The elements in a new, dense NumPy array; bfloat16 as its bits."""
    if array.descriptor.layout.block_count == 0 and array.descriptor.layout.length < FEW:
        return elements(array).copy()
    made = np.empty(array.descriptor.shape, dtypes.bits_dtype(array.descriptor.dtype))
    transfer(array, as_ndarray(made), BITS)
    return made


cdef int transfer(NdArray source, NdArray target, int conversion) except -1:
    """Move all elements; shapes are equal, the memory is not shared."""
    cdef const MoveTable *table = kernels()
    cdef Change change
    cdef Box box
    change.conversion, change.scale, change.zero_point = conversion, 1, 0
    all_of(&box, &target.descriptor.layout)
    with nogil:
        move(table, &source.descriptor.layout, source.buffer.data, &target.descriptor.layout, target.buffer.data, &box, NULL,
             &change if conversion >= 0 else NULL)
    return 0


cdef int conversion_on_the_way(object source, object target):
    """What turns elements of one type into those of another on their way: `BITS` where nothing does, `NONE` where nothing can."""
    if source is target:
        return BITS
    if source is FLOAT32 and target is BFLOAT16:
        return TO_BRAIN
    return FROM_BRAIN if source is BFLOAT16 and target is FLOAT32 else NONE


cdef int convert(NdArray source, NdArray target) except -1:
    """Cast all elements as NumPy does, to and from bfloat16 by way of float32; shapes are equal, the memory is not shared."""
    cdef NdArray between
    cdef object from_type = source.descriptor.dtype, to_type = target.descriptor.dtype
    cdef int conversion = conversion_on_the_way(from_type, to_type)
    if conversion != NONE:
        transfer(source, target, conversion)
    elif from_type is BFLOAT16 or to_type is BFLOAT16:
        between = laid_out_like(source, FLOAT32, False, False)
        convert(source, between)
        convert(between, target)
    elif source.descriptor.inner_blocks == target.descriptor.inner_blocks and source.descriptor.exploded().layout.length == source.descriptor.layout.length:
        elements(target)[...] = elements(source)
    else:
        transfer(as_ndarray(gathered(source).astype(to_type)), target, BITS)
    return 0


cdef int assign(NdArray array, object value, object places=None) except -1:
    """Write `value`, broadcast, to the logical elements or to the cells at `places`; nothing is written when it does not fit."""
    cdef NdArray source
    cdef int conversion
    if array.readonly:
        raise LayoutError(f"the array is read-only: {array.descriptor!r}")
    dtype = array.descriptor.dtype
    value = taken(value)
    if places is None and isinstance(value, NdArray):
        source = value
        conversion = conversion_on_the_way(source.descriptor.dtype, dtype)
        # Memory of our own is not shared by two buffers.
        if (conversion != NONE and source.descriptor.shape == array.descriptor.shape and source.buffer is not array.buffer
                and source.buffer.owner is None and array.buffer.owner is None):
            transfer(source, array, conversion)
            return 0
    values = encoded(dtype, value)
    try:
        if places is not None:
            target = np.empty(places.shape, dtypes.bits_dtype(dtype))
            np.copyto(target, values, casting="same_kind")
            flat_cells(array)[places] = target
        elif array.descriptor.layout.block_count:
            target = np.empty(array.descriptor.shape, dtypes.bits_dtype(dtype))
            np.copyto(target, values, casting="same_kind")
            transfer(as_ndarray(target), array, BITS)
        else:
            cells = elements(array)
            values = apart_from(cells, values)
            if type(values) is np.ndarray and values.dtype is cells.dtype:
                cells[...] = values
            else:
                np.copyto(cells, values, casting="same_kind")
    except TypeError as error:
        raise DTypeError(f"cannot write these values to an array of {dtype}, only casts within a kind are made: {error}") from None
    except ValueError as error:
        shape = array.descriptor.shape if places is None else places.shape
        raise LayoutError(f"cannot write these values to an array of shape {shape}: {error}") from None
    return 0


cdef object apart_from(object cells, object values):
    """`values`, or a copy where they overlap `cells` in a way that NumPy takes for the same order: one axis, steps of the same sign."""
    if isinstance(cells, NDARRAY) and isinstance(values, NDARRAY) and cells.ndim == 1 and values.ndim:
        # Of values of more axes, the others have one element.
        if cells.strides[0] != values.strides[values.ndim - 1] and np.may_share_memory(cells, values):
            return values.copy()
    return values


cdef object put(object cell, object dtype, object value):
    """Write `value` to an array without axes, cast within its kind; what is written, as NumPy can."""
    bits = encoded(dtype, value)
    np.copyto(cell, bits, casting="same_kind")
    return bits


cdef unsigned long long element_bits(object dtype, object value) except? 0xFFFFFFFFFFFFFFFF:
    cell = np.zeros((), dtypes.bits_dtype(dtype))
    cdef bint small = isinstance(value, (int, float)) and -65504 <= value <= 65504  # as all floats have it; asking NumPy not to warn takes as long as the rest
    try:
        if small:
            bits = put(cell, dtype, value)
        else:
            with np.errstate(over="ignore"):
                bits = put(cell, dtype, value)
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(f"padding value {value!r} is no {dtype}: {error}") from None
    if cell.dtype.kind in "iu" and cell != bits:
        raise DTypeError(f"padding value {value!r} is no {dtype}: it wraps to {cell}")
    if not small:
        held = dtypes.bfloat16_to_float32(cell) if dtype is BFLOAT16 else cell
        if held.dtype.kind == "f" and np.isinf(held) and held.item() != value:
            raise DTypeError(f"padding value {value!r} is no {dtype}: it overflows to {held}")
    return int.from_bytes(cell.tobytes(), "little")


cdef object scalar_at(NdArray array, Py_ssize_t offset):
    """One element as a NumPy scalar, bfloat16 as a float32."""
    cdef Py_ssize_t itemsize = array.descriptor.layout.itemsize
    cdef const char *cell = array.buffer.data + offset * itemsize
    cdef object dtype = array.descriptor.dtype
    cdef uint32_t bits
    cdef float value
    if dtype is BFLOAT16:
        bits = <uint32_t> (<const uint16_t *> cell)[0] << 16
        memcpy(&value, &bits, sizeof(value))
        return np.float32(value)
    return np.frombuffer(PyMemoryView_FromMemory(<char *> cell, itemsize, PyBUF_READ), dtype)[0]
