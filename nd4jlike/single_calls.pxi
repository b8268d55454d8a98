# Single calls of `depthwise_conv2d`: the plans of the last ones, found again by arguments and the bits of weights and bias (ADR 0005, D22).

cdef enum:
    # Plans that are remembered, and the most bytes of their weights.
    REMEMBERED = 16
    REMEMBERED_BYTES = 1 << 18

# Arguments that stay what they are, and arrays whose bytes can be compared.
cdef frozenset FIXED = frozenset((type(None), int, str, Quantization, type))
cdef frozenset ARRAYS = frozenset((NdArray, np.ndarray))
# The last plans of single calls; the place of the next one.
cdef list remembered = [None] * REMEMBERED
cdef int place_to_remember = 0


@cython.final
cdef class _Call:
    """A plan and what made it: arguments, weights and bias as `numbers_of` describes them, and the instruction set of the environment."""
    cdef DepthwiseConv2d plan
    cdef tuple arguments
    cdef tuple weights
    cdef tuple bias
    cdef bytes isa


cdef DepthwiseConv2d recalled(tuple arguments, object weights, object bias):
    """The plan of a call with the same arguments and the same numbers, or None."""
    cdef bytes isa = forced_isa()
    cdef _Call call
    cdef int i
    for i in range(REMEMBERED):
        call = remembered[i]
        if (
            call is not None and same_objects(call.arguments, arguments) and same_numbers(call.weights, weights) and same_numbers(call.bias, bias)
            and call.isa == isa
        ):
            return call.plan
    return None


cdef int remember(DepthwiseConv2d plan, tuple arguments, object weights, object bias) except -1:
    global place_to_remember
    cdef _Call call = _Call.__new__(_Call)
    for argument in arguments:
        if type(argument) is tuple:
            if not FIXED.issuperset(map(type, argument)):
                return 0
        elif type(argument) not in FIXED:
            return 0
    call.plan, call.arguments, call.weights, call.bias = plan, arguments, numbers_of(weights), numbers_of(bias)
    call.isa = forced_isa()
    if call.weights is not None and (bias is None or call.bias is not None):
        remembered[place_to_remember] = call
        place_to_remember = (place_to_remember + 1) % REMEMBERED
    return 0


cdef bint same_objects(tuple a, tuple b) noexcept:
    cdef Py_ssize_t i
    for i in range(len(a)):
        if a[i] is not b[i]:
            return False
    return True


cdef tuple numbers_of(object array):
    """Format, shape and bytes of a dense array; None for all else, and for many bytes."""
    cdef Py_buffer view
    if type(array) not in ARRAYS:
        return None
    try:
        PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    except (BufferError, ValueError):
        return None
    try:
        if view.len > REMEMBERED_BYTES:
            return None
        return (
            <bytes> view.format, PyBytes_FromStringAndSize(<char *> view.shape, view.ndim * sizeof(Py_ssize_t)),
            PyBytes_FromStringAndSize(<char *> view.buf, view.len),
        )
    finally:
        PyBuffer_Release(&view)


cdef bint same_numbers(tuple known, object array) except -1:
    """Whether `numbers_of` said the same of an array."""
    cdef Py_buffer view
    cdef bytes format, shape, values
    if known is None or type(array) not in ARRAYS:
        return known is array
    try:
        PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    except (BufferError, ValueError):
        return False
    format, shape, values = known
    same = (
        view.len == len(values) and view.ndim * <Py_ssize_t> sizeof(Py_ssize_t) == len(shape)
        and memcmp(view.shape, PyBytes_AsString(shape), len(shape)) == 0 and strcmp(view.format, PyBytes_AsString(format)) == 0
        and memcmp(view.buf, PyBytes_AsString(values), view.len) == 0
    )
    PyBuffer_Release(&view)
    return same
