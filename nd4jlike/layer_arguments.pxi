# Arguments of a layer: which element types weights, bias, inputs and outputs have, and which rule one breaks (ADR 0005, 0006, 0016).

# What kernels there are, by the element type of the input: its number, what weights are packed from, and what a bias may be, the last of which it is
# packed from.
cdef dict AVAILABLE = {
    "float32": (FLOAT32, "float32", ("float32",)),
    "float64": (FLOAT64, "float64", ("float64",)),
    "float16": (FLOAT16, "float32", ("float16", "float32")),
    "bfloat16": (BFLOAT16, "float32", ("bfloat16", "float32")),
    "int8": (INT8, "int16", ("int32",)),
    "uint8": (UINT8, "int16", ("int32",)),
    "int16": (INT16, "int16", ("int32", "int64")),
}
# Those that may have their channels in blocks.
cdef tuple BLOCKED = ("float32",)
# Element types of weights.
cdef tuple WEIGHTS = tuple([name for name in AVAILABLE if name != "int16"])


cdef str why_not_blocked(const Problem *problem, Py_ssize_t lanes):
    """The first rule of ADR 0017 (D2, D6) that a pair of layouts, one with channels in blocks at least, breaks."""
    cdef Py_ssize_t stride = problem.y_strides[3] if problem.x_block else problem.x_strides[3]
    if problem.multiplier != 1:
        return f"the multiplier must be 1: {problem.multiplier}"
    for block in (problem.x_block, problem.y_block):
        if block % lanes:
            return f"blocks must be multiples of {lanes} channels: {block}"
    if problem.x_block and problem.y_block:
        return f"blocks of {problem.x_block} and of {problem.y_block} channels"
    if stride != 1:
        return f"beside blocks the channels of a plain layout must lie side by side, these are {stride} apart"
    return f"beside blocks a plain layout needs room for whole vectors, {problem.channels} channels have none behind them"


cdef int check_layout(str name, ShapeDescriptor descriptor, object dtype, int channel_axis) except -1:
    """What input and output have in common: rank, element type, no blocks but of channels."""
    if descriptor.layout.rank != 4:
        raise LayoutError(f"{name} must have four axes: shape {descriptor.shape}", ShapeStatus.INCORRECT_RANK)
    if descriptor.dtype != dtype:
        raise DTypeError(f"{name} must have the element type of the plan's {name}, {dtype}: {descriptor.dtype}")
    if descriptor.layout.block_count and not (
        dtype.name in BLOCKED and descriptor.layout.block_count == 1 and descriptor.layout.block_axes[0] == channel_axis
    ):
        raise UnsupportedLayoutError(
            f"{name} has inner blocks {descriptor.inner_blocks}, no kernel takes them: blocks of channels (axis {channel_axis}) "
            f"of {' or '.join(BLOCKED)} are taken as they are; reorder(x, 'nhwc') makes it plain"
        )
    return 0


cdef object wrong_input(object given, object weights, object dtype, object asked):
    """The error for an input of another element type than `dtype`, which is that of the weights or what the plan was asked for."""
    if asked is not None:
        takes = f"{dtype} inputs, as dtype says"
    elif dtype != weights:
        takes = f"{dtype} inputs beside an int64 bias, int8 inputs have a bias of int32"
    else:
        takes = "int8 inputs, or int16 where zero points are 0" if weights == np.int8 else f"{dtype} inputs"
        takes += as_uint8(weights, given)
        if getattr(weights, "kind", "f") == getattr(given, "kind", "f") == "f":
            takes += "; astype() converts either"
    return DTypeError(f"input and weights must have element types that go together: input of {given}, weights of {weights}, which take {takes}")


cdef str as_uint8(object weights, object given):
    """How int8 weights go with uint8 inputs, where it is these that are not taken."""
    if weights != np.int8 or given != np.uint8:
        return ""
    return "; uint8 inputs take uint8 weights, which have a zero point for negative taps: these plus 128, with Quantization(..., weights_zero_point=128)"


cdef tuple four_extents(object shape):
    try:
        shape = tuple(shape)
    except TypeError:
        shape = (shape,)
    if len(shape) != 4:
        raise LayoutError(f"the input must have four axes: shape {shape}", ShapeStatus.INCORRECT_RANK)
    return tuple([geometry.integer("an extent of shape", extent, 0) for extent in shape])


cdef object plain_numbers(object values, str name):
    """An NdArray as it is, anything else as NumPy reads it, or DLPack."""
    values = taken(values)
    if isinstance(values, NdArray):
        return values
    try:
        return np.asarray(values)
    except ValueError:  # ragged
        raise LayoutError(f"{name} must be one array of numbers: {values!r}") from None


cdef tuple numbers(object values, str name):
    """The element type, which has kernels, and the numbers as NumPy has them: bfloat16 as float32."""
    values = plain_numbers(values, name)
    row = row_of(values.dtype)
    if row is None or row.name not in WEIGHTS:
        raise no_kernel(name, values.dtype)
    return row.dtype, np.asarray(values.astype("float32") if row.name == "bfloat16" else values)


cdef object row_of(object dtype):
    """The row of an element type in the machine's byte order, or None; NumPy makes the name of one anew each time."""
    try:
        return dtypes.codes(dtype)
    except DTypeError:
        return None


cdef object no_kernel(str name, object dtype):
    return DTypeError(f"no kernel for {name} of {dtype}: there are {', '.join(WEIGHTS)}, in native byte order")


cdef object input_dtype(object weights, object bias, object dtype):
    """The element type of inputs."""
    if dtype is None:
        return np.dtype(np.int16) if weights == np.int8 and getattr(bias, "dtype", None) == np.int64 else weights
    found = dtypes.dtype(dtype)
    if found != weights and not (found == np.int16 and weights == np.int8):
        how = as_uint8(weights, found)
        raise DTypeError(f"dtype must be the element type of the weights, or int16 for int8 weights: {found} for weights of {weights}{how}")
    return found


cdef object checked_bias(object bias, tuple types):
    """A copy of one axis, of the last of `types`, all of which a bias may have."""
    bias = dtypes.untyped(bias, plain_numbers(bias, "bias"), types[-1])
    row = row_of(bias.dtype)
    if row is None or row.name not in types:
        raise DTypeError(f"bias must be {' or '.join(types)} for these weights: {bias.dtype}")
    bias = np.asarray(bias if bias.dtype == types[-1] else bias.astype(types[-1]))
    if bias.ndim not in (1, 2) or bias.size != bias.shape[bias.ndim - 1]:
        raise LayoutError(f"bias must be one number for each output channel, of shape (C*M,) or (1, C*M): shape {bias.shape}")
    return np.array(bias.ravel())


cdef list readings_that_fit(list readings, object bias, object quantization, object dtype):
    """The readings of weights that agree with bias and scales; the error of the first where none does."""
    errors = []
    fitting = []
    for reading in readings:
        count = reading.weights.shape[2]
        try:
            if bias is not None and bias.size != count:
                raise LayoutError(f"bias must be one number for each of {count} output channels, as weights_format reads the weights: {bias.size}")
            if quantization is not None:
                quantization.check(dtype, count)
            fitting.append(reading)
        except LayoutError as error:
            errors.append(error)
    if not fitting:
        raise errors[0]
    return fitting
