"""Depthwise convolution: checks, geometry, a plan, one kernel call (ADR 0005, 0006)."""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memmove, memset, strcmp

from nd4jlike.buffer cimport Buffer, allocate
from nd4jlike.descriptor cimport Layout, ShapeDescriptor
from nd4jlike.kernels.problem cimport (
    ALIGNS_ALIKE, ALIGNS_BOTH, ALIGNS_INPUT, ALIGNS_NONE, ALIGNS_SAME, BEYOND_SECOND_LEVEL, BFLOAT16, CACHE_EDGE, DIRECT, FLOAT16, FLOAT32, FLOAT64, IN_CACHE,
    IN_MEMORY, INT8, INT16, QUANTIZED, REALS, SUMS, UINT8, WINOGRAD, Family, KernelTable, Problem, Requantization)
from nd4jlike.moves cimport Box, MoveTable, all_of, kernels_of, move
from nd4jlike.ndarray cimport NdArray, as_ndarray, as_output, taken, unwritten
from nd4jlike.workers cimport MAX_PARTS, Work, computes_alone, share_work

from math import gcd

import numpy as np

from nd4jlike import dtypes, geometry
from nd4jlike.descriptor import ShapeDescriptor as DescriptorType
from nd4jlike.errors import DTypeError, LayoutError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.kernels import dispatch
from nd4jlike.quantization import ACTIVATIONS, ROUNDINGS, Quantization, quantized_activation_range

cdef extern from "cpu.h" nogil:
    const char *forced_isa()

__all__ = ["DepthwiseConv2d", "depthwise_conv2d"]

# Why the padding of an input is left alone.
cdef str NOT_FINITE = "some weights are not finite"

cdef enum:
    ALIGNMENT = 64  # one cache line, and the widest vector a kernel loads
    CACHED_LAUNCHES = 64
    # Estimated time that is worth another thread: one that sleeps takes up to 25 us to come (ADR 0015).
    NANOSECONDS_PER_THREAD = 20000
    # Below this, releasing the lock of the interpreter, some 80 ns, is not worth it: nobody waits that long.
    NANOSECONDS_TO_RELEASE = 700
    # From here on each thread takes several pieces; where each begins costs less than waiting for one that is late.
    NANOSECONDS_TO_CUT = 100000
    # Parts of the channels of planes, for each thread, from which on they are shared whole.
    PARTS_EACH = 4
    # Output rows that kernels compute together, of a phase: those of a dilated filter share inputs with every so many-th one.
    ROWS_TOGETHER = 2
    # Of a second-level cache that rows come in from the last one on, and such steps at least, but of planes computed as pixels: each band begins anew.
    BANDS = 4
    STEPS_OF_BAND = 4

# Pixels of a few float32 channels share vectors by these, at step 1: room would keep them apart.
cdef tuple MIXED_FILTERS = ((3, 3), (5, 5), (7, 7))

# Cython looks methods of a cimported class up in its .pxd, which has only the compiled ones.
cdef object from_tag = DescriptorType.from_tag


include "layer_arguments.pxi"
include "layer_caches.pxi"
include "pixels.pxi"
include "signals.pxi"
include "launches.pxi"


@cython.final
cdef class DepthwiseConv2d:
    """DepthwiseConv2d(weights, bias=None, *, stride=1, dilation=1, padding='same', data_format='NHWC', weights_format='HWCM', \
activation=None, quantization=None, rounding='tflite', threads=1, isa=None, dtype=None, algorithm='direct')\n--\n\n\
A depthwise convolution, configured once and run many times.

    Weights are checked, copied and packed for the kernel; a pair of layouts is checked when it is first seen. Then a call is
    one kernel call.

    Parameters
    ----------
    weights : array_like
        Four axes, named by `weights_format`; float32, float64, float16, bfloat16, or int8 or uint8 with `quantization`: the element type of
        input and output, but see `dtype` and `Quantization.output`. Any strides; copied.
    bias : array_like, optional
        One number for each output channel, of the type of the weights; float32 as well for float16 and bfloat16 (they are summed in
        float32 and rounded once), int32 for int8 and uint8, int64 or int32 for int16 inputs. Shape (C*M,) or (1, C*M).
    stride, dilation : int or (int, int)
        Steps between windows, and between the taps of one, in pixels: (height, width).
    padding : {"same", "valid"}, int, (int, int) or ((int, int), (int, int))
        Implied pixels around the image: TensorFlow Lite's rule, none, or explicit: both axes, (height, width), or
        ((top, bottom), (left, right)). They stand for 0, which is the input zero point of quantized types.
    data_format : {"NHWC", "NCHW"}
        The axes of input and output. Where the elements lie is up to the descriptors.
    weights_format : {"HWCM", "MCHW", "MHWC", "C1HW"}
        The axes of `weights`: H, W of the kernel, input channel C, multiplier M. ``"HWCM"`` may be TensorFlow Lite's
        (1, kH, kW, C*M) where that alone fits the input; ``"C1HW"`` is (C*M, 1, kH, kW).
    activation : {None, "relu", "relu6", "relu_n1_to_1"}
        Clamp of the result.
    quantization : Quantization, optional
        Required for int8 and uint8 weights, refused for floats. Its `output` may make the result accumulators or float32.
    rounding : {"tflite", "xnnpack"}
        Whose bits a quantized result has (ADR 0006); XNNPACK has no int16.
    threads : int
        How many threads may share the rows of one call. Work below some 40 us stays on one (ADR 0015).
    isa : str, optional
        Instruction set of the kernel, one of ``dispatch.available()``. None: the one that ``nd4jlike info`` shows, and a narrower
        one for 8 channels (ADR 0017, D9).
    dtype : dtype, optional
        Element type of the input: that of the weights, or int16 for int8 weights. None: int16 where the bias of int8 weights is int64;
        else that of the weights, and int8 weights with zero points of 0 take int16 inputs as well.
    algorithm : {"direct", "winograd"}
        How float32 outputs are summed: the products as they are, or, by 5x5 and 7x7 without steps, fewer products of sums, with a larger
        error (ADR 0019), where `explain` says so.

    Attributes
    ----------
    dtype : dtype
        Element type of the input.
    output_dtype : dtype
        Element type of the output.
    isa, data_format, rounding, algorithm : str
        As chosen; a rounding is of quantized results only.
    stride, dilation : (int, int)
        (height, width).
    padding : "same" or ((int, int), (int, int))
        ((top, bottom), (left, right)), of zeros for ``"valid"``.
    activation : str or None
        As given.
    quantization : Quantization or None
        As given.
    threads : int
        As given.

    Raises
    ------
    LayoutError
        For weights, bias, scales or an argument that break a rule; the message has the rule and the values.
    DTypeError
        For element types that there is no kernel for.
    IsaError
        For an instruction set that this machine or build does not have.

    See Also
    --------
    depthwise_conv2d : the same for one call.

    Notes
    -----
    ``plan(x, out=None)`` runs it. `x` is an NdArray or array_like of the axes in `data_format` and any layout, wrapped without
    a copy; of blocked ones those with blocks of channels (ADR 0017). `out`, an NdArray or writable buffer, receives the result
    and comes back; its padding stays as it is, and it must not overlap `x`. Without `out` the result is a new array, dense with
    axes and blocks as in `x`, or on `output_descriptor` where `x` has padding. It raises LayoutError for a shape that no window or
    weight fits, and for an `out` of another shape, read-only, with elements that share cells or that overlap `x`; DTypeError for other
    element types than the plan's; UnsupportedLayoutError for blocks that no kernel takes. Then nothing has been written.

    Output channel of input channel c and multiplier index m is ``c*M + m``. A plan may be shared by threads.

    Examples
    --------
    >>> import numpy as np, nd4jlike as nd
    >>> plan = nd.DepthwiseConv2d(np.ones((3, 3, 2, 1), "float32"), activation="relu6")
    >>> x = nd.NdArray(plan.input_descriptor((1, 4, 5, 2)))
    >>> x[...] = 1
    >>> plan(x).to_numpy()[0, :, :, 0]
    array([[4., 6., 6., 6., 4.],
           [6., 6., 6., 6., 6.],
           [6., 6., 6., 6., 6.],
           [4., 6., 6., 6., 4.]], dtype=float32)
    """
    cdef readonly object dtype
    cdef readonly object output_dtype
    cdef readonly str isa
    # That of the kernel on plain layouts.
    cdef bint _may_narrow
    cdef readonly str data_format
    cdef readonly Py_ssize_t threads
    cdef tuple _axes
    cdef list _readings
    cdef object _bias
    cdef readonly tuple stride
    cdef readonly tuple dilation
    cdef readonly object padding
    cdef readonly object quantization
    cdef readonly str activation
    cdef readonly str rounding
    cdef readonly str algorithm
    # Why padding around an image is of no use to this plan; empty where it is.
    cdef str _ignores_padding
    # What made this plan, its weights as they are packed and their own element type; and the plan for int16 inputs, once they came to one for int8.
    cdef tuple _arguments
    cdef object _weights_dtype
    cdef DepthwiseConv2d _int16
    cdef int _widest_weight
    # The bits of the element that padding stands for.
    cdef unsigned long long _padding_bits
    # Keeps _family alive.
    cdef object _table
    cdef int _element
    cdef const Family *_family
    # By (descriptor of x, descriptor of out, whether the padding of x is read, lead of the channels).
    cdef dict _launches
    cdef object __weakref__
    # Height, width and channels of the image that was looked at last, and what `_walk` found.
    cdef tuple _walked
    # By descriptor of x: that of the result where no out is given.
    cdef dict _results
    # The last call: most calls are like the one before, and a comparison of layouts is all they need.
    cdef ShapeDescriptor _last_x
    cdef ShapeDescriptor _last_y
    cdef _Launch _last

    def __cinit__(self, weights, bias=None, *, stride=1, dilation=1, padding="same", data_format="NHWC", weights_format="HWCM",
                  activation=None, quantization=None, rounding="tflite", threads=1, isa=None, dtype=None, algorithm="direct",
                  **unknown):
        cdef const KernelTable *table
        if unknown:  # Cython would name __cinit__
            raise TypeError(f"DepthwiseConv2d() got an unexpected keyword argument {[*unknown][0]!r}")
        self.data_format = geometry.choice("data_format", data_format, tuple(geometry.AXES))
        self._axes = geometry.AXES[data_format]
        self.activation = geometry.choice("activation", activation, tuple(ACTIVATIONS))
        self.rounding = geometry.choice("rounding", rounding, ROUNDINGS)
        self.algorithm = geometry.choice("algorithm", algorithm, geometry.ALGORITHMS)
        geometry.choice("weights_format", weights_format, tuple(geometry.WEIGHT_AXES))
        self.threads = geometry.integer("threads", threads, 1)
        self.stride = geometry.pair("stride", stride, 1)
        self.dilation = geometry.pair("dilation", dilation, 1)
        self.padding = geometry.sides(padding)

        given_dtype, weights = numbers(weights, "weights")
        self.dtype = input_dtype(given_dtype, bias, dtype)
        self._element, packed_from, bias_types = AVAILABLE[dtypes.codes(self.dtype).name]
        weights = np.array(weights, packed_from)
        if (quantization is not None) != (given_dtype in (np.int8, np.uint8)):
            raise LayoutError(f"quantization belongs to int8 and uint8 weights, and they need one: weights of {given_dtype}, quantization={quantization!r}")
        if quantization is not None and not isinstance(quantization, Quantization):
            raise LayoutError(f"quantization must be a Quantization: {quantization!r}")
        self.quantization = quantization
        self.output_dtype = self.dtype
        if quantization is not None and weights.size == 0:
            raise LayoutError(f"weights must have elements: shape {weights.shape}", ShapeStatus.INCORRECT_SHAPE)
        if quantization is not None:
            self._widest_weight = max(int(weights.max()) - quantization.weights_zero_point, quantization.weights_zero_point - int(weights.min()) - 1)
        if quantization is not None and not isinstance(quantization.output, tuple):
            self.output_dtype = np.dtype(quantization.output or ("int64" if self.dtype == np.int16 else "int32"))
            if quantization.output is None and self.activation is not None:
                raise LayoutError(f"an activation needs the scale of an output, which accumulators have not: activation={activation!r}")
        if self.dtype == np.int16 and rounding == "xnnpack":
            raise LayoutError("rounding must be 'tflite' for int16 inputs: XNNPACK has none")
        self._bias = None if bias is None else checked_bias(bias, bias_types)
        options = dict(stride=self.stride, dilation=self.dilation, padding=self.padding, data_format=data_format, weights_format=weights_format,
                       activation=activation, quantization=quantization, rounding=rounding, threads=self.threads, isa=isa, dtype=dtype, algorithm=algorithm)
        self._arguments, self._weights_dtype = (weights, self._bias, options), given_dtype
        self._readings = readings_that_fit(geometry.weight_readings(weights, weights_format), self._bias, quantization, self.dtype)
        if self.algorithm == "winograd":
            geometry.check_winograd(self.dtype, self._readings, self.stride, self.dilation)
        self._ignores_padding = ""
        if self.padding == ((0, 0), (0, 0)):
            self._ignores_padding = "no window reaches beyond the image"
        elif not np.isfinite(weights).all():  # zero times infinity is NaN, which no implied pixel would give
            self._ignores_padding = NOT_FINITE
        self._padding_bits = 0 if quantization is None else <unsigned char> <int> quantization.input[1]

        self.isa = dispatch.downwards(isa)[0]
        self._may_narrow = isa is None and not forced_isa()[0] and self._element in (FLOAT32, FLOAT16, BFLOAT16)
        for level in dispatch.downwards(self.isa):
            self._table = dispatch.load("depthwise", level)
            table = <const KernelTable *> PyCapsule_GetPointer(self._table, "nd4jlike.kernels.KernelTable")
            self._family = &table.families[self._element]
            # A build may leave an element type to that of the next slower instruction set.
            if self._family.run != NULL:
                break
        self._launches = {}
        self._results = {}

    # Documented in the stub and in the class: a compiled class keeps no docstring of a special method.
    def __call__(self, x not None, out=None):
        cdef NdArray source = x if type(x) is NdArray else as_ndarray(x)
        cdef NdArray target
        if out is None:
            target = out = unwritten(self._result_descriptor(source.descriptor))
        else:
            target = out if type(out) is NdArray else as_output("out", out)
        cdef _Launch launch = self._launch_of(source, target)
        cdef const char *x_data = source.data()
        cdef char *y_data = target.data()
        if target.readonly:
            raise LayoutError("out must be writable: it is read-only")
        if x_data + launch.x_begin < y_data + launch.y_end and y_data + launch.y_begin < x_data + launch.x_end:
            raise LayoutError(
                f"out must not overlap the input: bytes {<size_t> (y_data + launch.y_begin):#x} to {<size_t> (y_data + launch.y_end):#x} "
                f"and {<size_t> (x_data + launch.x_begin):#x} to {<size_t> (x_data + launch.x_end):#x}"
            )

        if launch.rows:
            launch.run(x_data, y_data)

        return out

    def __reduce__(self):
        weights, bias, options = self._arguments
        return _configured, (as_ndarray(weights).astype(self._weights_dtype), bias, options)

    def input_descriptor(self, shape):
        """Layout that this plan reads fastest.

        Parameters
        ----------
        shape : (int, int, int, int)
            Shape of the input, as `data_format` says.

        Returns
        -------
        ShapeDescriptor
            Channels fastest, padded to pixels on whole cache lines where that pays, and by what the windows reach beyond the image where the
            kernel reads it in place (ADR 0005, D10 and D11). Then it must hold 0, or the input zero point, to be used: new
            arrays are zeroed, `NdArray.fill_padding` sets it.

        Raises
        ------
        LayoutError
            For a shape that no window fits, or channels other than the weights'.

        Notes
        -----
        Planes of 3 to 8 float32 channels, plain or as the transposed view that this plan takes, are faster still: 0.5 to 0.8 of the time.

        Examples
        --------
        >>> import numpy as np, nd4jlike as nd
        >>> plan = nd.DepthwiseConv2d(np.ones((3, 3, 17, 1), "float32"), stride=2)
        >>> d = plan.input_descriptor((1, 8, 8, 17))
        >>> d.padded_shape, plan.output_descriptor(d).padded_shape
        ((1, 8, 8, 32), (1, 4, 4, 32))
        """
        cdef _Launch launch = _Launch()
        cdef Problem *problem = &launch.problem
        cdef ShapeDescriptor x, y
        shape = four_extents(shape)
        height, width, channels = [shape[axis] for axis in self._axes[1:]]
        reading, walk = self._walk(height, width, channels)
        (top, bottom), (left, right) = walk.reach
        room = self._room(shape, self.dtype)
        x = self._channels_last(shape, self.dtype, self._by_axis((0, 0, 0, room)), None)
        y = self.output_descriptor(x)
        self._state(problem, x, y, reading, walk)
        self._choose(launch, x, y)
        # Beyond that nearly all windows are beside the image.
        near = max(top, bottom) <= 2 * ((problem.kernel_height - 1) * problem.dilation_height + 1)
        near = near and max(left, right) <= 2 * ((problem.kernel_width - 1) * problem.dilation_width + 1)
        if self._ignores_padding or not near or not launch.family.reads_halo(problem):
            return x
        return self._channels_last(shape, self.dtype, self._by_axis((0, top + bottom, left + right, room)), self._by_axis((0, top, left, 0)))

    def output_descriptor(self, x_or_descriptor, paddings=None, padding_offsets=None):
        """Layout that this plan writes fastest.

        Parameters
        ----------
        x_or_descriptor : NdArray, ShapeDescriptor, array_like or (int, int, int, int)
            The input, or where its elements lie; a shape stands for `input_descriptor` of it.
        paddings, padding_offsets : tuple of int, optional
            Total padding of each axis and the part of it before the first element, as in
            `ShapeDescriptor.paddedBufferDescriptor`: those of the next layer's `input_descriptor`, for instance. Default:
            channels padded to whole cache lines as `input_descriptor` does it.

        Returns
        -------
        ShapeDescriptor
            Channels fastest.

        Raises
        ------
        LayoutError, DTypeError, UnsupportedLayoutError
            For an input that a call would refuse; for paddings that break a rule.

        Examples
        --------
        >>> import numpy as np, nd4jlike as nd
        >>> plan = nd.DepthwiseConv2d(np.ones((3, 3, 4, 2), "float32"), stride=2)
        >>> plan.output_descriptor(plan.input_descriptor((1, 8, 8, 4)), paddings=(0, 2, 2), padding_offsets=(0, 1, 1)).padded_shape
        (1, 6, 6, 8)
        """
        given = self._on_own_layout(x_or_descriptor)
        cdef ShapeDescriptor x = given if isinstance(given, ShapeDescriptor) else as_ndarray(given).descriptor
        if self._leaves_to_int16(x):
            return self._int16.output_descriptor(x, paddings, padding_offsets)
        shape = self._output_shape(x)
        if paddings is None and padding_offsets is None:
            paddings = self._by_axis((0, 0, 0, self._room(shape, self.output_dtype)))
        return self._channels_last(shape, self.output_dtype, paddings, padding_offsets)

    def explain(self, x_or_descriptor=None):
        """Tell which kernel runs on which layout, and why.

        Parameters
        ----------
        x_or_descriptor : NdArray, ShapeDescriptor, array_like or (int, int, int, int), optional
            The input to explain, in a call without `out`; a shape stands for `input_descriptor` of it. Default: the last call.

        Returns
        -------
        str
            A line for each topic.

        Raises
        ------
        LayoutError, DTypeError, UnsupportedLayoutError
            For an input that a call would refuse.

        Examples
        --------
        >>> import numpy as np, nd4jlike as nd
        >>> plan = nd.DepthwiseConv2d(np.ones((3, 3, 64, 1), "float32"), isa="baseline")
        >>> print(plan.explain(plan.input_descriptor((1, 56, 56, 64))).splitlines()[1])
        kernel    baseline, 4 channels a step, in place, tiles of 2 rows and 4 columns
        """
        cdef _Launch launch
        cdef ShapeDescriptor x, y
        cdef NdArray given
        with cython.critical_section(self):
            x, y, launch = self._last_x, self._last_y, self._last
        x_or_descriptor = self._on_own_layout(x_or_descriptor)
        if x_or_descriptor is not None:
            given = None if isinstance(x_or_descriptor, ShapeDescriptor) else as_ndarray(x_or_descriptor)
            x = x_or_descriptor if given is None else given.descriptor
            if self._leaves_to_int16(x):
                return self._int16.explain(x_or_descriptor)
            y = self._result_descriptor(x)
            launch = self._fitting(x, y, given, NULL)  # NULL: as aligned as new memory
        sums = ", sums in float32" if self._element == FLOAT16 or self._element == BFLOAT16 else ""
        lines = [
            f"depthwise {self.dtype if x is None else x.dtype} {self.data_format}, stride {self.stride}, dilation {self.dilation}, padding {self.padding}, "
            f"activation {self.activation}" + (f", rounding {self.rounding}" if self.quantization else "")
            + (f", algorithm {self.algorithm}" if self.algorithm != "direct" else ""),
            f"kernel    {self.isa}, {self._family.lanes} channels a step{sums}" if launch is None else
            f"kernel    {launch.isa}, {launch.family.lanes} channels a step{sums}, "
            f"{'' if launch.turned or launch.planes == NULL else 'plane by plane: ' if launch.planes.one_by_one else 'planes as pixels: '}"
            f"{'' if not launch.turned else 'rows as columns: ' if launch.planes == NULL else 'rows as columns, in scratch: '}"
            f"{launch.family.kernel(&launch.problem).decode()}",
        ]
        if launch is None:
            return "\n".join([*lines, "no input seen yet: explain(x) tells what would happen"])
        return "\n".join(lines + self._explained(launch, x, y))

    def __repr__(self):
        kh, kw, channels = self._readings[0].weights.shape
        return f"<nd4jlike.DepthwiseConv2d {kh}x{kw}, {channels} output channels, {self.dtype}, {self.data_format}, {self.isa}>"

    cdef object _on_own_layout(self, object given):
        """`input_descriptor` of a shape; what is none stays as it is."""
        if type(given) is tuple and len(given) == 4 and all([hasattr(extent, "__index__") and not isinstance(extent, np.ndarray) for extent in given]):
            return self.input_descriptor(given)
        return given

    cdef _Launch _launch_of(self, NdArray source, NdArray target):
        cdef ShapeDescriptor x = source.descriptor
        cdef ShapeDescriptor y = target.descriptor
        cdef _Launch launch = None
        # Another thread may replace the last launch; without the lock it could be freed between the look and the hold.
        with cython.critical_section(self):
            if same_layout(self._last_x, x) and same_layout(self._last_y, y):
                launch = self._last
        if (
            launch is not None
            and (not launch.looks_at_padding or launch.reads_padding == source.padding_holds(self._padding_bits))
            and (launch.aligns == ALIGNS_NONE or launch.placed == launch.lead(source.data(), target.data()))
        ):
            return launch
        return self._find(source, target)

    cdef _Launch _find(self, NdArray source, NdArray target):
        cdef ShapeDescriptor x = source.descriptor
        cdef ShapeDescriptor y = target.descriptor
        cdef _Launch launch = self._fitting(x, y, source, target.data())
        with cython.critical_section(self):
            self._last_x, self._last_y, self._last = x, y, launch
        return launch

    cdef _Launch _fitting(self, ShapeDescriptor x, ShapeDescriptor y, NdArray source, const char *target):
        """The launch for the padding and the addresses of two arrays; without `source` for clean, aligned memory."""
        cdef bint reads = not self._ignores_padding and has_halo(x, self._axes) and (source is None or source.padding_holds(self._padding_bits))
        cdef _Launch launch = self._cached(x, y, reads, 0)
        cdef Py_ssize_t lead = 0 if source is None else launch.lead(source.data(), target)
        return self._cached(x, y, reads, lead) if lead else launch

    cdef _Launch _cached(self, ShapeDescriptor x, ShapeDescriptor y, bint reads_padding, Py_ssize_t lead):
        cdef tuple key = (x, y, reads_padding, lead)
        cdef _Launch launch = self._launches.get(key)
        if launch is None:
            launch = (self._int16 if self._leaves_to_int16(x) else self)._built(x, y, reads_padding, lead)
            if len(self._launches) >= CACHED_LAUNCHES:
                self._launches.clear()
            self._launches[key] = launch
        return launch

    cdef _Launch _built(self, ShapeDescriptor x, ShapeDescriptor y, bint reads_padding, Py_ssize_t lead):
        """Check two descriptors and decide everything about the calls on them, in memory of which `_Launch.lead` is `lead`."""
        cdef _Launch launch = _Launch.__new__(_Launch)
        cdef Problem *problem = &launch.problem
        cdef const Layout *source = &x.layout
        cdef const Layout *target = &y.layout
        cdef Py_ssize_t extents[4]
        cdef Py_ssize_t nbytes, estimate, share
        cdef int h, w, c, i
        _, h, w, c = self._axes
        expected = self._output_shape(x)
        # Blocks are for kernels that write what they read.
        check_layout("out", y, self.output_dtype, c if self.output_dtype == self.dtype else -1)
        if y.shape != expected:
            raise LayoutError(f"out must have shape {expected} for an input of shape {x.shape}: {y.shape}")
        for i in range(4):
            if target.shape[i] > 1 and target.strides[i] == 0 and target.length:
                raise LayoutError(f"out must have a cell for each element: strides {y.strides} of shape {y.shape}", ShapeStatus.ZERO_STRIDE)
        reading, walk = self._walk(x.shape[h], x.shape[w], x.shape[c])

        launch.turned = self._state(problem, x, y, reading, walk)
        self._choose(launch, x, y)
        pixels = source.length and target.length and self._ignores_padding != NOT_FINITE
        turns = pixels and launch.family.as_pixels(problem) and not skims(problem, source.itemsize, target.itemsize)
        if not (launch.turned or source.block_count or target.block_count):
            narrow = turns_narrow(problem, launch.family.lanes) if pixels and not turns else STAYS
            if narrow != STAYS:
                turn_image(problem)
                problem.sets = sets_of(problem.x_strides[2] * source.itemsize)
                launch.turned, turns = True, narrow == TURNS_IN_SCRATCH and not skims(problem, source.itemsize, target.itemsize)
        if launch.turned:
            h, w = w, h
        # Rows of planes have parts.
        if not turns:
            problem.algorithm = WINOGRAD if self.algorithm == "winograd" else DIRECT
        problem.lead, problem.agrees, launch.placed, launch.itemsize = abs(lead), lead < 0, lead, source.itemsize
        launch.aligns = launch.family.aligns(problem) if launch.family.aligns != NULL else ALIGNS_NONE
        launch.looks_at_padding = not (self._ignores_padding or turns) and has_halo(x, self._axes) and launch.family.reads_halo(problem)
        launch.reads_padding = launch.looks_at_padding and reads_padding
        if launch.reads_padding:
            problem.halo[0], problem.halo[1] = source.padding_offsets[h], source.paddings[h] - source.padding_offsets[h]
            problem.halo[2], problem.halo[3] = source.padding_offsets[w], source.paddings[w] - source.padding_offsets[w]
        launch.rows = problem.batch * problem.out_height
        extents = [problem.batch, problem.height, problem.width, problem.channels + problem.channel_room]
        extents[3] = problem.x_block or extents[3]
        span(problem.x_strides, extents, problem.halo, source.itemsize, &launch.x_begin, &launch.x_end)
        add_blocks(problem.channels, problem.x_block, problem.x_block_step * source.itemsize, &launch.x_begin, &launch.x_end)
        extents = [problem.batch, problem.out_height, problem.out_width, problem.channels * problem.multiplier]
        extents[3] = problem.y_block or extents[3]
        span(problem.y_strides, extents, NULL, target.itemsize, &launch.y_begin, &launch.y_end)
        add_blocks(problem.channels * problem.multiplier, problem.y_block, problem.y_block_step * target.itemsize, &launch.y_begin, &launch.y_end)
        if turns:
            self._turn(launch, source, target)
        self._pack(launch, np.ascontiguousarray(reading.weights.transpose(1, 0, 2)) if launch.turned else reading.weights)

        launch.scratch_bytes = launch.family.scratch_bytes(problem)
        phases = problem.dilation_height // gcd(problem.dilation_height, problem.stride_height) if problem.kernel_height > 1 else 1
        launch.step = min(problem.out_height, ROWS_TOGETHER * (phases if self.threads == 1 or ROWS_TOGETHER * phases * self.threads <= launch.rows else 1))
        if turns:
            launch.rows *= parts_of(launch.planes)
            launch.step = min(launch.planes.outputs, max(launch.step, launch.planes.window))
            if launch.planes.rest.channels:
                launch.scratch_bytes = max(launch.scratch_bytes, launch.family.scratch_bytes(&launch.planes.rest))
            launch.scratch_bytes += launch.planes.x_bytes + launch.planes.y_bytes
        estimate = target.length * problem.kernel_height * problem.kernel_width // (3 * launch.family.lanes)
        if source.itemsize == 1:
            estimate = estimate * 2 // 5
        nbytes = source.length * source.itemsize + target.length * target.itemsize
        estimate += nbytes // (15 if turns else 40)
        launch.parts = max(1, min(self.threads, MAX_PARTS, launch.rows // launch.step, estimate // NANOSECONDS_PER_THREAD))
        share = (launch.rows + launch.parts - 1) // launch.parts
        if estimate < NANOSECONDS_TO_CUT:
            if launch.parts > 1:
                launch.step = max(launch.step, share)
        elif turns and not launch.planes.one_by_one:
            # Rows around a piece are brought once more.
            if launch.rows >= PARTS_EACH * launch.parts * launch.planes.out_height:
                launch.step = launch.planes.out_height
            else:
                count_last_rows(launch.planes)
                launch.rows = source.shape[self._axes[0]] * rows_of_image(launch.planes)
                launch.step = max(launch.step, (launch.rows + launch.parts - 1) // launch.parts)
        # Planes of two bytes, some of which become float32 or pixels at a time, have no bands.
        if IN_CACHE < distance_of(nbytes // launch.parts) < IN_MEMORY and (source.itemsize != 2 or problem.channels == 1 or problem.x_strides[3] == 1):
            launch.band = max(1 if turns else STEPS_OF_BAND, second_level // BANDS * launch.rows // max(1, nbytes) // launch.step) * launch.step
            launch.band = launch.band if launch.band * launch.parts < launch.rows else 0
            launch.back = launch.band > 0
        problem.shared = launch.parts if (launch.parts > 1 or launch.band) and not turns else 0
        launch.brief = estimate < NANOSECONDS_TO_RELEASE
        return launch

    cdef bint _state(self, Problem *problem, ShapeDescriptor x, ShapeDescriptor y, object reading, object walk) except -1:
        """Write two descriptors down as a problem without halo and constants; whether rows and columns change places there."""
        cdef const Layout *source = &x.layout
        cdef const Layout *target = &y.layout
        cdef int n, h, w, c, i
        n, h, w, c = self._axes
        memset(problem, 0, sizeof(Problem))
        problem.element = self._element
        if self.quantization is not None:
            problem.result = SUMS if self.quantization.output is None else REALS if self.quantization.output == "float32" else QUANTIZED
            problem.widest_weight = self._widest_weight
        problem.batch, problem.height, problem.width, problem.channels = source.shape[n], source.shape[h], source.shape[w], source.shape[c]
        problem.kernel_height, problem.kernel_width = reading.weights.shape[0], reading.weights.shape[1]
        problem.multiplier = reading.weights.shape[2] // source.shape[c]
        problem.out_height, problem.out_width = walk.out
        problem.pad_top, problem.pad_left = walk.before
        problem.stride_height, problem.stride_width = self.stride
        problem.dilation_height = self.dilation[0] if problem.kernel_height > 1 else 1
        problem.dilation_width = self.dilation[1] if problem.kernel_width > 1 else 1
        # From a single row or column of outputs no step is taken: kernels make room for none that is longer than the window.
        if problem.out_height == 1:
            problem.stride_height = min(problem.stride_height, (problem.kernel_height - 1) * problem.dilation_height + 1)
        if problem.out_width == 1:
            problem.stride_width = min(problem.stride_width, (problem.kernel_width - 1) * problem.dilation_width + 1)
        for i, axis in enumerate(self._axes):
            problem.x_strides[i] = source.strides[axis]
            problem.y_strides[i] = target.strides[axis]
        turned = not (source.block_count or target.block_count) and turns_signal(problem, self._family.lanes, self.threads)
        if turned:
            turn_image(problem)
        place_in_caches(problem, source.length * source.itemsize + target.length * target.itemsize, source.itemsize)
        if source.block_count:
            problem.x_block, problem.x_block_step, problem.x_strides[3] = source.block_sizes[0], source.strides[c], 1
            problem.channel_room = (problem.x_block - problem.channels % problem.x_block) % problem.x_block
        elif source.strides[c] == 1:
            problem.channel_room = source.paddings[c] - source.padding_offsets[c]
        if target.block_count:
            problem.y_block, problem.y_block_step, problem.y_strides[3] = target.block_sizes[0], target.strides[c], 1
        return turned

    cdef int _choose(self, _Launch launch, ShapeDescriptor x, ShapeDescriptor y) except -1:
        """The kernels for a pair of layouts: blocks of channels need vectors that fill them, half a vector of channels side by side a narrower one."""
        cdef const KernelTable *table
        cdef const Problem *problem = &launch.problem
        cdef bint blocked = x.layout.block_count or y.layout.block_count
        cdef bint half = not blocked and self._may_narrow and problem.channels == 8 and problem.multiplier == 1
        half = half and problem.x_strides[3] == 1 and problem.y_strides[3] == 1
        # Two pixels of halves share a vector as they are widened and narrowed; by 7x7 that pays less than tiles do.
        if half and self._element != FLOAT32 and problem.stride_height == problem.stride_width == 1 and problem.x_strides[2] == problem.y_strides[2] == 8:
            half = problem.kernel_height != problem.kernel_width or problem.kernel_width not in (3, 5)
        launch.table, launch.isa, launch.family = self._table, self.isa, self._family
        if not (blocked or half):
            return 0
        for isa in dispatch.downwards(self.isa):
            launch.table, launch.isa = dispatch.load("depthwise", isa), isa
            table = <const KernelTable *> PyCapsule_GetPointer(launch.table, "nd4jlike.kernels.KernelTable")
            launch.family = &table.families[self._element]
            if launch.family.run != NULL and (launch.family.lanes < 16 if half else launch.family.packed_bytes(problem)):
                launch.isa = self.isa if launch.family == self._family else isa
                return 0
        raise UnsupportedLayoutError(
            f"no kernel for this convolution from inner blocks {x.inner_blocks} to {y.inner_blocks}: {why_not_blocked(problem, launch.family.lanes)}; "
            f"reorder both to channels last, {'abcd' if self._axes[3] == 3 else 'acdb'!r}"
        )

    cdef int _turn(self, _Launch launch, const Layout *x, const Layout *y) except -1:
        """Have planes computed as pixels, or one by one."""
        cdef Problem *problem = &launch.problem
        cdef Py_ssize_t together = channels_together(problem, x.itemsize, y.itemsize)
        cdef tuple axes = self._axes
        if launch.turned:
            axes = (axes[0], axes[2], axes[1], axes[3])
        cdef Py_ssize_t x_pitches[2]
        cdef Py_ssize_t y_pitches[2]
        for i, count in enumerate((together, problem.channels % together or together)):
            x_pitches[i] = geometry.pixel_pitch(1, count, x.itemsize, second_level)
            y_pitches[i] = geometry.pixel_pitch(1, count * problem.multiplier, y.itemsize, second_level)
        launch.planes = <Planes *> calloc(2, sizeof(Planes))
        if launch.planes == NULL:
            raise MemoryError("cannot allocate a plan")
        launch.planes.moves, launch.planes.outside = kernels_of(launch.isa), <int> self._padding_bits
        if goes_one_by_one(problem):
            part_planes(launch.planes, problem, x, y, axes)
        else:
            cut_sections(launch.planes, problem, x, y, axes, together, x_pitches, y_pitches)
        return 0

    cdef int _pack(self, _Launch launch, object weights) except -1:
        """Complete the problem by its constants, and have the kernel pack them."""
        cdef Problem *problem = &launch.problem
        cdef Requantization requantization
        cdef NdArray values, bias, multipliers, shifts, scales
        requantization.multipliers, requantization.shifts, requantization.scales = NULL, NULL, NULL
        problem.float_min, problem.float_max = ACTIVATIONS[self.activation]
        if self.quantization is not None:
            quantization, count = self.quantization, weights.shape[2]
            weights = weights - np.int16(quantization.weights_zero_point)
            multipliers, shifts = [as_ndarray(column) for column in quantization.multipliers_and_shifts(count, self.dtype)]
            scales = as_ndarray(quantization.float_scales(count))
            requantization.multipliers, requantization.shifts = <const int *> multipliers.data(), <const int *> shifts.data()
            requantization.scales = <const float *> scales.data()
            less = 128 if self.dtype == np.uint8 else 0
            problem.input_zero_point = quantization.input[1] - less
            problem.rounding = ROUNDINGS.index(self.rounding)
            if problem.result == QUANTIZED:
                lowest, highest = quantized_activation_range(self.activation, quantization.output, self.dtype, self.rounding)
                problem.quantized_min, problem.quantized_max = lowest - less, highest - less
                problem.output_zero_point = quantization.output[1] - less
        bias = None if self._bias is None else as_ndarray(self._bias)
        if launch.planes == NULL:
            values = as_ndarray(weights)
            launch.packed = allocate(launch.family.packed_bytes(problem), 0, ALIGNMENT, True)
            launch.family.pack(problem, values.data(), NULL if bias is None else bias.data(), &requantization, launch.packed.data)
        else:
            self._pack_parts(launch, weights, bias, requantization)
        problem.packed = launch.packed.data
        return 0

    cdef int _pack_parts(self, _Launch launch, object weights, NdArray bias, Requantization requantization) except -1:
        """The constants of one section's channels after those of another."""
        cdef Planes *planes = launch.planes
        cdef const Problem *part
        cdef NdArray values
        cdef const char *bias_at = NULL if bias is None else bias.data()
        cdef Py_ssize_t channel = 0, outputs
        name_rest(planes, &launch.problem)
        planes.packed_bytes = max(launch.family.packed_bytes(&launch.problem), launch.family.packed_bytes(&planes.rest) if planes.rest.channels else 0)
        planes.packed_bytes = (planes.packed_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        launch.packed = allocate(parts_of(planes) * planes.packed_bytes, 0, ALIGNMENT, True)
        while channel < planes.channels:
            part = part_at(planes, &launch.problem, channel)
            outputs = part.channels * part.multiplier
            values = as_ndarray(np.ascontiguousarray(weights[:, :, channel * part.multiplier : channel * part.multiplier + outputs]))
            launch.family.pack(part, values.data(), bias_at, &requantization, launch.packed.data + channel // planes.together * planes.packed_bytes)
            if bias is not None:
                bias_at += outputs * bias.descriptor.layout.itemsize
            if requantization.scales != NULL:
                requantization.multipliers, requantization.shifts = requantization.multipliers + outputs, requantization.shifts + outputs
                requantization.scales += outputs
            channel += planes.together
        return 0

    cdef tuple _walk(self, object height, object width, object channels):
        """How the windows walk over such an image, and the weights they carry: of taps that reach it."""
        cdef tuple size = (height, width, channels), last
        with cython.critical_section(self):
            last = self._walked
        if last is not None and last[0] == size:
            return last[1]
        reading = self._reading(channels)
        window = geometry.Window(reading.weights.shape[:2], self.stride, self.dilation, self.padding)
        taps, walk = window.reaching(size[:2], window.over(size[:2]))
        if reading.weights[taps].shape != reading.weights.shape:
            reading = reading._replace(weights=np.ascontiguousarray(reading.weights[taps]))
        last = size, (reading, walk)
        with cython.critical_section(self):
            self._walked = last
        return last[1]

    cdef object _reading(self, object channels):
        """The weights as they are read for so many channels."""
        for reading in self._readings:
            if reading.fits(channels):
                return reading
        counts = " or ".join([f"a divisor of {r.weights.shape[2]}" if r.channels is None else str(r.channels) for r in self._readings])
        raise LayoutError(f"the input must have the channels of the weights, {counts}: {channels}")

    cdef bint _leaves_to_int16(self, ShapeDescriptor x) except -1:
        """Whether `_int16` is the plan for x."""
        if x.dtype != np.int16 or self.dtype != np.int8 or self._arguments[2]["dtype"] is not None:
            return False
        if self._int16 is None:
            weights, bias, options = self._arguments
            made = DepthwiseConv2d(weights.astype(np.int8), bias, **options | {"dtype": "int16"})
            with cython.critical_section(self):  # the first one stays
                if self._int16 is None:
                    self._int16 = made
        return True

    cdef tuple _output_shape(self, ShapeDescriptor x):
        """Shape of the result, after a check of the input."""
        if x.layout.rank == 4 and x.dtype != self.dtype:
            raise wrong_input(x.dtype, self._weights_dtype, self.dtype, self._arguments[2]["dtype"])
        check_layout("input", x, self.dtype, self._axes[3])
        n, h, w, c = self._axes
        reading, walk = self._walk(x.shape[h], x.shape[w], x.shape[c])
        return self._by_axis((x.shape[n], *walk.out, reading.weights.shape[2]))

    cdef ShapeDescriptor _result_descriptor(self, ShapeDescriptor x):
        found = self._results.get(x)
        if found is None:
            if self._leaves_to_int16(x):
                return self._int16._result_descriptor(x)
            shape = self._output_shape(x)
            if x.layout.block_count:
                ((axis, size),) = x.inner_blocks
                tag = "".join(["abcd"[a].upper() if a == axis else "abcd"[a] for a in x.axes])
                found = from_tag(shape, f"{tag}{size}{'abcd'[axis]}", self.output_dtype)
            elif any(x.paddings):
                found = self.output_descriptor(x)
            else:
                found = from_tag(shape, "".join(["abcd"[axis] for axis in x.axes]), self.output_dtype)
            if len(self._results) >= CACHED_LAUNCHES:
                self._results.clear()
            self._results[x] = found
        return found

    cdef ShapeDescriptor _channels_last(self, object shape, object dtype, object paddings, object padding_offsets):
        """Descriptor with channels fastest; figures by axis of `shape`."""
        tag = "".join(["abcd"[axis] for axis in self._axes])
        return from_tag(shape, tag, dtype, paddings, padding_offsets)

    cdef object _room(self, object shape, object dtype):
        """Channels that pixels are padded by."""
        batch, height, width, channels = [shape[axis] for axis in self._axes]
        taps = self._readings[0].weights.shape
        if self._element == FLOAT32 and 2 * channels < self._family.lanes and taps[2] == channels and self.stride == (1, 1) and taps[:2] in MIXED_FILTERS:
            return 0
        # Of several filters for a channel, bytes are fastest where pixels follow each other.
        if (self._element == INT8 or self._element == UINT8) and not self._readings[0].fits(taps[2]):
            return 0
        apart = self.dilation[1] if crowds() else 1
        return geometry.pixel_pitch(batch * height * width, channels, dtype.itemsize, second_level, dtype.kind, taps[0], apart) - channels

    cdef tuple _by_axis(self, tuple figures):
        """(batch, height, width, channel) in the order of `data_format`."""
        cdef dict by_axis = dict(zip(self._axes, figures))
        return tuple([by_axis[axis] for axis in range(4)])

    cdef list _explained(self, _Launch launch, ShapeDescriptor x, ShapeDescriptor y):
        cdef Problem *problem = &launch.problem
        sides = ("left", "right", "top", "bottom") if launch.turned else ("top", "bottom", "left", "right")
        if launch.reads_padding:
            halo = "read in place: " + ", ".join([f"{side} {problem.halo[i]}" for i, side in enumerate(sides)])
        elif not self._ignores_padding and not launch.family.reads_halo(problem):
            halo = "implied: this kernel leaves taps outside the image out"
        else:
            halo = "implied, " + (self._ignores_padding or ("the padding of x held other values" if launch.looks_at_padding else "x has no padding there"))
        apart, parts, rows = "", "", launch.rows
        if launch.planes != NULL:
            count = parts_of(launch.planes)
            rows, parts = x.shape[self._axes[0]] * launch.planes.out_height, f" of {count} parts of the channels" if count > 1 else ""
            apart = f"apart, {launch.planes.outputs} rows of outputs of {launch.planes.together} at a time side by side in scratch: "
            apart = "" if launch.turned else "apart: " if launch.planes.one_by_one else apart
        weights = self._reading(x.shape[self._axes[3]]).weights
        reaching = (problem.kernel_width, problem.kernel_height) if launch.turned else (problem.kernel_height, problem.kernel_width)
        shared = f"{rows} row{'s' if rows != 1 else ''}"
        if launch.turned and min(problem.out_height, problem.out_width) > 1:
            shared = f"{rows} columns"
        elif launch.turned:
            lines = "column" if problem.out_height == 1 else "row"
            lines = f"{problem.batch} {lines}{'s' if problem.batch != 1 else ''}"
            shared = f"{lines} of {problem.out_width} outputs, each for one thread" if problem.out_height == 1 else f"{problem.out_height} outputs of {lines}"
        kernel, reaching = ["%dx%d" % extents for extents in (weights.shape[:2], reaching)]
        if kernel != reaching:
            kernel += f", of which {reaching} reach the image"
        return [
            f"window    {kernel}, {x.shape[self._axes[3]]} channels, multiplier {problem.multiplier}: {x.shape} to {y.shape}",
            f"halo      {halo}",
            f"channels  {apart}{problem.channel_room} cells of room; a pixel of x every {problem.x_strides[2] * x.itemsize} bytes, "
            f"of out every {problem.y_strides[2] * y.itemsize} bytes" + (f"; vectors from {problem.lead} on" if problem.lead else ""),
            f"threads   {1 if computes_alone() else launch.parts} of {self.threads}, {shared}{parts}",
            f"memory    {launch.packed.nbytes} bytes of packed weights, {launch.scratch_bytes} bytes of scratch a thread"
            + (f", from the {'last' if launch.back else 'first'} row on; " if launch.band else "; ")
            # Of the call: that of a problem of planes is of a section.
            + f"inputs and outputs {DISTANCES[distance_of(x.layout.length * x.itemsize + y.layout.length * y.itemsize)]}",
        ]


cdef bint has_halo(ShapeDescriptor x, tuple axes) noexcept:
    """Whether there is padding around the images."""
    cdef int h = axes[1], w = axes[2]
    return x.layout.paddings[h] > 0 or x.layout.paddings[w] > 0


def _configured(weights, bias, options):
    """Unpickle."""
    return DepthwiseConv2d(weights, bias, **options)


include "single_calls.pxi"


def depthwise_conv2d(x not None, weights, bias=None, *, stride=1, dilation=1, padding="same", data_format="NHWC", weights_format="HWCM",
                     activation=None, quantization=None, rounding="tflite", out=None, threads=1, isa=None, dtype=None,
                     algorithm="direct"):
    """Convolve each channel with its own filters.

    Parameters
    ----------
    x : NdArray or array_like
        (N, H, W, C) or (N, C, H, W), as `data_format` says; any layout; blocks as in ADR 0017.
    weights, bias, stride, dilation, padding, data_format, weights_format, activation, quantization, rounding, threads, isa, dtype, \
algorithm
        See `DepthwiseConv2d`, which is what to use for more than one call.
    out : NdArray or writable buffer or tensor, optional
        Receives the result; its padding stays as it is. Must not overlap `x`.

    Returns
    -------
    NdArray
        `out` where it is given; else a new array, (N, OH, OW, C*M) or (N, C*M, OH, OW).

    Raises
    ------
    LayoutError, DTypeError, UnsupportedLayoutError, IsaError
        See `DepthwiseConv2d`.

    Examples
    --------
    >>> import numpy as np, nd4jlike as nd
    >>> x = np.arange(9, dtype="float32").reshape(1, 3, 3, 1)
    >>> nd.depthwise_conv2d(x, np.ones((2, 2, 1, 1), "float32"), padding="valid").to_numpy()[0, :, :, 0]
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    """
    cdef tuple arguments = (stride, dilation, padding, data_format, weights_format, activation, quantization, rounding, threads, isa, dtype, algorithm)
    cdef DepthwiseConv2d plan = recalled(arguments, weights, bias)
    if plan is None:
        plan = DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, padding=padding, data_format=data_format, weights_format=weights_format,
                               activation=activation, quantization=quantization, rounding=rounding, threads=threads, isa=isa, dtype=dtype,
                               algorithm=algorithm)
        remember(plan, arguments, weights, bias)
    return plan(x, out)
