# The short ways of ufuncs: the commonest calls without the general rules, on views, on whole buffers, or in one layout (ADR 0010).

cdef object _rules = None


cdef object elementwise_rules():
    """The module of NumPy's two dispatch protocols; it is loaded by the first operation that needs it."""
    global _rules
    if _rules is None:
        from nd4jlike import elementwise
        _rules = elementwise
    return _rules


# NumPy 2.4.6 skips or misplaces elements of these where its innermost loop writes results that do not lie side by side (of floats
# from 16 elements on; `negative` where one of four elements of 32 bits or one of eight of 64 is taken): dense copies serve them.
NEEDS_DENSE = frozenset((np.negative, np.isnan, np.isinf, np.isfinite, np.signbit))

# Of numbers, these give the same bits whichever way NumPy takes: rounded as IEEE 754 has it, or integers.
EXACT = frozenset((np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.absolute, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert))

# And so do these.
ANY_WAY = EXACT | {np.true_divide, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or}

cdef enum:
    MANY = 4096  # elements
    FAR = 32  # bytes
    RUN_COST = 1024  # bytes that NumPy computes while it begins a run of elements

cdef object ADD = np.add, SUBTRACT = np.subtract, MULTIPLY = np.multiply, DIVIDE = np.true_divide, POWER = np.power, GENERIC = np.generic

cdef dict _padding_results = {}
cdef dict _results = {}  # ufunc and types of its operands: the element type of the result


cdef object plain_call(object ufunc, tuple inputs, object out):
    """The commonest calls without the general rules: one output, arrays of one shape and equal blocks, plain ones also beside
    what NumPy broadcasts to them, numbers. NotImplemented: another call."""
    cdef bint tailed, spread = False, moves = len(inputs) > 1 and ufunc in ANY_WAY
    cdef list far = []
    cdef NdArray model = None, target
    cdef list views = [], types = [ufunc]
    if ufunc.nout != 1 or ufunc.signature is not None:
        return NotImplemented
    for x in inputs:
        if isinstance(x, NdArray) and (model is None or outgrows(&(<NdArray> x).descriptor.layout, &model.descriptor.layout)):
            model = x
    for x in inputs:
        if isinstance(x, NdArray):
            if moves and x is not model and is_better_brought(x, model):
                far.append(len(views))
            elif not is_simple(x, model):
                if not is_simple(x, None) or (<NdArray> x).descriptor.layout.block_count or not is_broadcast(x.shape, &model.descriptor.layout):
                    return NotImplemented
                spread = True
            types.append((<NdArray> x).descriptor.dtype)
            views.append(elements(x))
        elif type(x) is int or type(x) is float:
            types.append(type(x))
            views.append(x)
        elif isinstance(x, GENERIC) or (type(x) is NDARRAY and model is not None and is_broadcast(x.shape, &model.descriptor.layout)):
            types.append(x.dtype)
            views.append(x)
        else:
            return NotImplemented
    if ufunc in NEEDS_DENSE and not (is_run(&model.descriptor.layout, False) and out is None):
        written = model if out is None else out
        if len(views) > 1 or not isinstance(written, NdArray) or not is_simple(written, model):
            return NotImplemented
        if not elementwise_rules().writes_in_runs(views[0], elements(written)):
            return NotImplemented
    dtype = None
    if out is not None:
        if not isinstance(out, NdArray) or not is_simple(out, model) or (<NdArray> out).readonly:
            return NotImplemented
        target = out
    elif model.descriptor.layout.block_count and not is_whole(&model.descriptor.layout):
        return NotImplemented  # its result is plain
    else:
        key = tuple(types)
        dtype = _results.get(key)
        if dtype is None:
            try:
                dtype = dtypes.dtype(ufunc(*[np.empty(0, view.dtype) if type(view) is NDARRAY else view for view in views]).dtype)
            except DTypeError:  # NumPy's own types are for NumPy's arrays
                return NotImplemented
            if len(_results) >= 1000:
                _results.clear()
            _results[key] = dtype
        if dtype is BFLOAT16:
            return NotImplemented
    if far:
        inputs = tuple([brought(x, model) if i in far else x for i, x in enumerate(inputs)])
        for i in far:
            views[i] = elements(inputs[i])
    tailed = has_tail(&model.descriptor.layout)
    if tailed or (not spread and is_cheaper_whole(&model.descriptor.layout)):
        found = computed_through(ufunc, inputs, model, out, dtype)
        if tailed or found is not NotImplemented:
            return found
    if out is None:
        target = laid_out_like(model, dtype, True, False)
    ufunc(*views, out=elements(target))
    return target


cdef bint is_better_brought(NdArray x, NdArray model) noexcept:
    """Whether elements of the model's shape lie in other blocks, or many far apart along its rows: a reorder costs less than NumPy's way through both."""
    cdef const Layout *a = &x.descriptor.layout
    cdef const Layout *b = &model.descriptor.layout
    cdef int i
    if a.rank != b.rank or not is_whole(b) or x.descriptor.dtype is BFLOAT16:
        return False
    for i in range(a.rank):
        if a.shape[i] != b.shape[i] or (a.strides[i] == 0 and a.shape[i] > 1):
            return False
    if not same_extents(a, b):
        return True
    i = b.axes[b.rank - 1]
    return not b.block_count and a.length >= MANY and abs(a.strides[i]) * a.itemsize >= FAR


cdef NdArray brought(NdArray x, NdArray model):
    """The elements in a layout like that of the model."""
    cdef NdArray made = laid_out_like(model, x.descriptor.dtype, True, False)
    made[...] = x
    return made


cdef bint has_tail(const Layout *layout) noexcept:
    """Whether the last blocks are not whole."""
    cdef int i
    for i in range(layout.block_count):
        if layout.shape[layout.block_axes[i]] % block_product(layout, layout.block_axes[i]):
            return True
    return False


cdef bint is_cheaper_whole(const Layout *layout) noexcept:
    """Whether padding cuts the elements into runs, and what begins them all costs more than the padding does."""
    cdef Py_ssize_t run = inner_run(layout), cells = 1
    cdef int i, axis
    if layout.length < MANY:
        return False
    for axis in range(layout.rank):
        cells *= layout.padded_shape[axis]
    if cells == layout.length:
        return False
    for i in range(layout.rank - 1, -1, -1):
        axis = layout.axes[i]
        run *= layout.shape[axis] // block_product(layout, axis)
        if layout.padded_shape[axis] != layout.shape[axis]:
            break
    return (cells - layout.length) * layout.itemsize < layout.length // run * RUN_COST


cdef bint holds_one_value(Buffer buffer) noexcept:
    return buffer.halo_known and buffer.tail_known and buffer.halo_bits == buffer.tail_bits


cdef bint is_twin(NdArray x, const Layout *model) noexcept:
    """Whether an array has cells where `model`, a layout of equal extents, has them, and padding that holds one value, known or looked for."""
    cdef const Layout *layout = &x.descriptor.layout
    cdef int i
    for i in range(layout.rank):
        if layout.strides[i] != model.strides[i] or layout.paddings[i] != model.paddings[i] or layout.padding_offsets[i] != model.padding_offsets[i]:
            return False
    return layout.offset == model.offset and holds_one_value(x.buffer) and x.padding_holds(x.buffer.halo_bits)


cdef object all_cells(NdArray x, int flags):
    """NumPy view of the whole buffer, for as long as `x` lives."""
    return np.frombuffer(PyMemoryView_FromMemory(x.buffer.data, x.descriptor.allocLength() * x.descriptor.layout.itemsize, flags), x.descriptor.dtype)


cdef object padding_cell(NdArray x):
    """What each padding cell holds, as an array."""
    return np.frombuffer((<object> x.buffer.halo_bits).to_bytes(8, "little"), x.descriptor.dtype, 1)


cdef object padding_result(object ufunc, tuple inputs):
    """What is computed from padding and numbers: type and bytes, nothing where these may depend on NumPy's way; None where it warns or fails."""
    key = (ufunc, *[((<NdArray> x).descriptor.dtype, (<NdArray> x).buffer.halo_bits) if isinstance(x, NdArray) else None for x in inputs])
    found = _padding_results.get(key) if None not in key else None
    if found is None:
        samples = [padding_cell(x) if isinstance(x, NdArray) else x for x in inputs]
        try:
            with np.errstate(all="raise"):
                sample = ufunc(*samples)
            found = (sample.dtype, sample.tobytes()) if ufunc in EXACT else ()
        except Exception:  # the elements may well raise it too, then for themselves
            return None
        if None not in key and len(_padding_results) < 1000:
            _padding_results[key] = found
    return found


cdef object computed_through(object ufunc, tuple inputs, NdArray model, NdArray out, object dtype):
    """Compute all cells of the buffers, padding too, where nobody can tell: its value is known, raises no warning, and comes out right or is filled in a
    new array. `dtype`: of the result where there is no `out`. NotImplemented: another call."""
    cdef NdArray target = out
    cdef Walk walk
    if not is_whole(&model.descriptor.layout) or (out is not None and out.buffer.shared_with_others):
        return NotImplemented  # others may write the padding of `out` meanwhile
    for x in inputs if out is None else (*inputs, out):
        if not isinstance(x, NdArray):
            if type(x) is NDARRAY:
                return NotImplemented
        elif not is_twin(x, &model.descriptor.layout):
            return NotImplemented
    left = padding_result(ufunc, inputs)
    if left is None:
        return NotImplemented
    if out is None:
        target = NdArray.__new__(NdArray)
        target.descriptor = model.descriptor if model.descriptor.dtype is dtype else model.descriptor.astype(dtype)
        target.buffer = allocate(target.descriptor.allocLength() * dtype.itemsize, target.descriptor.layout.offset * dtype.itemsize, ALIGNMENT, False)
        kept = model.descriptor.dtype is dtype and not model.buffer.shared_with_others
        target.buffer.halo_bits = target.buffer.tail_bits = model.buffer.halo_bits if kept else 0
    clean = left == (target.descriptor.dtype, padding_cell(target).tobytes())
    if out is not None and not clean:
        return NotImplemented  # filling it costs as much as leaving it out
    ufunc(*[all_cells(x, PyBUF_READ) if isinstance(x, NdArray) else x for x in inputs], out=all_cells(target, PyBUF_WRITE))
    if not clean:
        walk_padding(&walk, &target.descriptor.layout, target.buffer.data, FILL, HALO | TAIL, target.buffer.halo_bits)
    return target


cdef bint is_simple(NdArray x, NdArray model):
    """Whether NumPy has a view of the cells of `x`, and its shape and blocks are those of `model`, if there is one."""
    cdef ShapeDescriptor layout = x.descriptor
    if layout.layout.rank == 0 or layout.dtype is BFLOAT16:
        return False
    return model is None or x is model or same_extents(&layout.layout, &model.descriptor.layout)


cdef bint is_broadcast(tuple shape, const Layout *layout):
    """Whether an array of this shape, of one axis at least, is broadcast to that of a plain layout."""
    cdef Py_ssize_t lead = layout.rank - len(shape)
    cdef int i
    if layout.block_count or not shape or lead < 0:
        return False
    for i in range(len(shape)):
        if shape[i] != layout.shape[lead + i] and shape[i] != 1:
            return False
    return True


cdef bint outgrows(const Layout *a, const Layout *b) noexcept:
    """Whether a result can have the shape of `a` only, if it has one of the two."""
    return a.rank > b.rank or (a.rank == b.rank and a.length > b.length)


cdef bint same_extents(const Layout *a, const Layout *b) noexcept:
    """Whether shapes and inner blocks are equal."""
    cdef int i
    if a.rank != b.rank or a.block_count != b.block_count:
        return False
    for i in range(a.rank):
        if a.shape[i] != b.shape[i]:
            return False
    for i in range(a.block_count):
        if a.block_axes[i] != b.block_axes[i] or a.block_sizes[i] != b.block_sizes[i]:
            return False
    return True
