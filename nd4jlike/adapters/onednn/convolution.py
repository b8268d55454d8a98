"""The library's depthwise convolution on our arrays (ADR 0013, D13, D15, D16)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nd4jlike.adapters.onednn import libdnnl
from nd4jlike.adapters.onednn.engine import Engine, bound, engine_of, memory_over, primitive_of, run_once
from nd4jlike.adapters.onednn.libdnnl import Dims, Handle, Library
from nd4jlike.adapters.onednn.memory import Memory, check_disjoint
from nd4jlike.adapters.onednn.memory_desc import MemoryDesc
from nd4jlike.creation import asarray
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import bits_dtype, by_onednn, codes, untyped
from nd4jlike.errors import DTypeError, LayoutError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.geometry import AXES, WEIGHT_AXES, Window, choice, integers, pair, sides, weight_readings
from nd4jlike.ndarray import NdArray
from nd4jlike.quantization import Quantization

if TYPE_CHECKING:
    import numpy.typing as npt

    from nd4jlike.adapters.onednn.memory import _Tail

__all__ = ["DepthwiseConv2d", "depthwise_conv2d"]


class DepthwiseConv2d:
    """The library's depthwise convolution, configured once: layouts chosen, weights reordered.

    Parameters
    ----------
    src : ShapeDescriptor or tuple of int
        Layout of the input, axes named by `data_format`; a shape alone leaves the layout to the library (its ``any``).
    weights : NdArray or array_like
        Axes named by `weights_format`, as `nd4jlike.DepthwiseConv2d` has them. Copied.
    bias : NdArray or array_like, optional
        One number for each output channel, of a type that the library takes: float32, or int32 with int32 results; Python's numbers become
        that. Copied.
    dst : ShapeDescriptor, optional
        Layout of the result. Default: the layout tag of `src` where it has one, else the library's choice. (Left to choose for a blocked
        input, it chooses a plain result and its slowest kernel.)
    dtype, dst_dtype : dtype, optional
        Elements of an input and of a result whose layout the library chooses. Default: those of the weights, and those of the input or,
        for bytes, int32: the sums as they are. Nothing is scaled.
    stride, dilation : int or (int, int), optional
        Steps of the window and of its taps: (height, width).
    padding : {"same", "valid"}, int, (int, int) or ((int, int), (int, int)), optional
        Zeros around the image, as `nd4jlike.DepthwiseConv2d` has them.
    data_format : {"NHWC", "NCHW"}, optional
        Names of the axes of input and result, not their memory order.
    weights_format : {"HWCM", "MCHW", "MHWC", "C1HW"}, optional
        Names of the axes of the weights.
    quantization : Quantization, optional
        For bytes: the library scales its sums, adds the zero point and rounds; the result has the type of the input, or int8 or uint8 as `dst` or
        `dst_dtype` says, which decides the range of its zero point. `bias` is int32, as ours is; weights are int8 and have no zero point.
        It rounds floats once, half to even: elements may differ from `rounding="xnnpack"` by one where the exact value is near one half.
    engine : Engine, optional
        Default: one that all calls share.

    Raises
    ------
    LayoutError
        For shapes that do not fit each other, and a quantization that is not from bytes to bytes or has a zero point of the weights.
    UnsupportedLayoutError
        Where the library has no implementation for these layouts and element types.
    DTypeError
        For element types that the library lacks, or that contradict `src` and `dst`, and with `quantization` for weights other than int8 and
        a bias other than int32.
    TypeError
        When `dst`, `quantization` or `engine` is something else.
    MissingLibraryError
        See `Engine`.

    Notes
    -----
    Source: `dnnl_convolution_forward_primitive_desc_create` with as many groups as channels.

    Examples
    --------
    >>> import numpy as np
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters import onednn
    >>> if onednn.find_library():
    ...     plan = onednn.DepthwiseConv2d((1, 5, 5, 17), np.ones((3, 3, 17, 1), np.float32))
    ...     x = nd.NdArray(plan.src_descriptor)  # what the library's ``any`` became
    ...     x[...] = 1
    ...     assert plan(x)[0, 2, 2, 16] == 9
    """

    def __init__(
        self,
        src: ShapeDescriptor | Sequence[int],
        weights: NdArray | npt.ArrayLike,
        bias: NdArray | npt.ArrayLike | None = None,
        *,
        dst: ShapeDescriptor | None = None,
        dtype: Any = None,
        dst_dtype: Any = None,
        stride: int | tuple[int, int] = 1,
        dilation: int | tuple[int, int] = 1,
        padding: Any = "same",
        data_format: Literal["NHWC", "NCHW"] = "NHWC",
        weights_format: Literal["HWCM", "MCHW", "MHWC", "C1HW"] = "HWCM",
        quantization: Quantization | None = None,
        engine: Engine | None = None,
    ) -> None:
        for name, value, kind in (("dst", dst, ShapeDescriptor), ("quantization", quantization, Quantization)):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} is a {kind.__name__} or None, not {type(value).__name__}")
        self._engine = engine_of(engine)
        batch, height, width, channel = AXES[choice("data_format", data_format, tuple(AXES))]
        self._axes = (batch, channel, height, width)
        self._back = tuple(sorted(range(4), key=self._axes.__getitem__))
        numbers, weights_type = _plain(weights)
        shape = src.shape if isinstance(src, ShapeDescriptor) else integers(src, "the shape of src")
        if len(shape) != 4:
            raise LayoutError(f"src has the four axes {data_format}: shape {shape}")
        dims = tuple(shape[axis] for axis in self._axes)
        readings = weight_readings(numbers, choice("weights_format", weights_format, tuple(WEIGHT_AXES)))
        kernels = next((reading.weights for reading in readings if reading.fits(dims[1])), None)
        if kernels is None:
            raise LayoutError(f"weights {WEIGHT_AXES[weights_format]} of shape {numbers.shape} are not for {dims[1]} channels: src {shape}, {data_format}")
        kh, kw, outputs = kernels.shape
        window = Window((kh, kw), pair("stride", stride, 1), pair("dilation", dilation, 1), sides(padding))
        walk = window.over((dims[2], dims[3]))
        dst_dims = (dims[0], outputs, *walk.out)

        src_type = _agreed("src", src, dtype) or weights_type
        sums = {"s8": "s32", "u8": "s32"} if quantization is None else {}
        dst_type = _agreed("dst", dst, dst_dtype) or sums.get(src_type, src_type)
        if dst is not None and tuple(dst.shape[axis] for axis in self._axes if axis < dst.rank) != dst_dims:
            raise LayoutError(f"dst has shape {dst.shape}, the result {tuple(dst_dims[axis] for axis in self._back)}")
        src_md, dst_md = self._asked(src, dims, src_type), self._asked(dst or self._twin(src, dst_dims, dst_type), dst_dims, dst_type)
        grouped = (dims[1], outputs // dims[1], 1, kh, kw)
        if bias is not None and not hasattr(bias, "dtype"):
            bias = untyped(bias, asarray(bias).to_numpy(), "float32" if quantization is None and dst_type != "s32" else "int32")
        numbers_bias, bias_type = (None, "") if bias is None else _plain(bias)
        if numbers_bias is not None and numbers_bias.shape != (outputs,):
            raise LayoutError(f"bias has one number for each of {outputs} output channels: shape {numbers_bias.shape}")
        constants: dict[int, npt.NDArray[Any]] = {}
        if quantization is not None:
            if {src_type, dst_type} - {"s8", "u8"} or not isinstance(quantization.output, tuple):
                raise LayoutError(f"quantization scales bytes to bytes: src {src_type}, dst {dst_type}, output {quantization.output}")
            quantization.check(by_onednn(src_type).name, outputs, by_onednn(dst_type).name)
            if quantization.weights_zero_point:
                raise LayoutError(f"the weights zero point must be 0, the library's weights are int8: {quantization.weights_zero_point}")
            if weights_type != "s8":
                raise DTypeError(f"weights must be int8 with quantization: {by_onednn(weights_type).name}")
            if numbers_bias is not None and bias_type != "s32":
                raise DTypeError(f"bias must be int32 with quantization: {by_onednn(bias_type).name}")
            (scale, zero_point), (dst_scale, dst_zero_point) = quantization.input, quantization.output
            scales = np.broadcast_to(np.asarray(quantization.weights, np.float32), outputs)
            constants = {
                argument | libdnnl.SCALES: np.array(values, np.float32)
                for argument, values in ((libdnnl.SRC, [scale]), (libdnnl.WEIGHTS, scales), (libdnnl.DST, [dst_scale]))
            }
            constants |= {
                argument | libdnnl.ZERO_POINTS: np.array([value], np.int32)
                for argument, value in ((libdnnl.SRC, zero_point), (libdnnl.DST, dst_zero_point))
                if value
            }
            if numbers_bias is not None:
                numbers_bias, bias_type = (numbers_bias * (scale * scales.astype(np.float64))).astype(np.float32), "f32"
        bias_md = None if numbers_bias is None else self._engine._native(MemoryDesc.from_strides((outputs,), None, bias_type))

        library = self._engine._library
        spatial = (window.stride, tuple(step - 1 for step in window.dilation), walk.before, tuple(after for _, after in walk.reach))
        try:
            self._primitive, self._pd, self._scratch = primitive_of(
                self._engine, "convolution_forward_primitive_desc_create", self._engine._handle, libdnnl.FORWARD_INFERENCE, libdnnl.CONVOLUTION_DIRECT,
                src_md, _any(library, grouped, weights_type), bias_md, dst_md, *(Dims(*figures) for figures in spatial),
                masks={argument: libdnnl.PER_CHANNEL if argument == libdnnl.WEIGHTS | libdnnl.SCALES else 0 for argument in constants},
            )  # fmt: skip
        except (LayoutError, UnsupportedLayoutError) as error:
            raise UnsupportedLayoutError(
                f"no depthwise convolution of {src_type} {src} by {weights_type} weights (C, M, 1, kH, kW) = {grouped} to {dst_type} {dst or dst_dims}, "
                f"stride {window.stride}, dilation {window.dilation}: {error}"
            ) from error
        self._src, self._dst = (library.describe(library.query_md(self._pd, what)) for what in (libdnnl.QUERY_SRC, libdnnl.QUERY_DST))
        self._dst_descriptor = dst or self._dst.to_descriptor().permute(self._back)
        self._src_descriptor = src if isinstance(src, ShapeDescriptor) else self._src.to_descriptor().permute(self._back)
        self._constants = {libdnnl.WEIGHTS: self._packed(kernels, grouped, weights_type)}
        if numbers_bias is not None:
            self._constants[libdnnl.BIAS] = memory_over(self._engine, bias_md, numbers_bias.ctypes.data, numbers_bias)
        for argument, numbers in constants.items():
            md = self._engine._native(MemoryDesc.from_strides(numbers.shape, None, _name(numbers.dtype)))
            self._constants[argument] = memory_over(self._engine, md, numbers.ctypes.data, numbers)

    def _twin(self, src: ShapeDescriptor | Sequence[int], dims: tuple[int, ...], data_type: str) -> ShapeDescriptor | None:
        """Lay the result out by the tag that `src` has."""
        tag = src.permute(self._axes).tag if isinstance(src, ShapeDescriptor) else None
        return None if tag is None else ShapeDescriptor.from_tag(dims, tag, by_onednn(data_type).dtype).permute(self._back)

    def _asked(self, descriptor: ShapeDescriptor | Sequence[int] | None, dims: tuple[int, ...], data_type: str) -> Handle:
        """Layout that is given, or ``any``."""
        if isinstance(descriptor, ShapeDescriptor):
            return self._engine._native(MemoryDesc.from_descriptor(descriptor.permute(self._axes)))
        return _any(self._engine._library, dims, data_type)

    def _packed(self, kernels: npt.NDArray[Any], grouped: tuple[int, ...], data_type: str) -> Handle:
        """Reorder the weights to the layout that the library chose, in memory of our own."""
        library, engine = self._engine._library, self._engine
        channels, multiplier, _, _, kw = grouped
        plain = engine._native(MemoryDesc.from_strides(grouped, (multiplier, 1, 1, kw * channels * multiplier, channels * multiplier), data_type))
        given = memory_over(engine, plain, kernels.ctypes.data, kernels)
        wanted = library.query_md(self._pd, libdnnl.QUERY_WEIGHTS)
        room = NdArray(ShapeDescriptor("uint8", "c", (library.size(wanted),)))
        packed = memory_over(engine, wanted, room.buffer.address, room)
        primitive, _, scratch = primitive_of(engine, "reorder_primitive_desc_create", plain, engine._handle, wanted, engine._handle)
        run_once(engine, primitive, scratch, {libdnnl.SRC: given, libdnnl.DST: packed})
        return packed

    @property
    def src_descriptor(self) -> ShapeDescriptor:
        """Layout of the input; what ``any`` became."""
        return self._src_descriptor

    @property
    def dst_descriptor(self) -> ShapeDescriptor:
        """Layout of the result; what ``any`` became."""
        return self._dst_descriptor

    @property
    def weights_desc(self) -> MemoryDesc:
        """Layout of the packed weights, dimensions (C, M, 1, kH, kW).

        Raises
        ------
        UnsupportedLayoutError
            Where the library keeps sums behind them, as it does for signed bytes.
        """
        return self._engine._library.describe(self._engine._library.query_md(self._pd, libdnnl.QUERY_WEIGHTS))

    @property
    def implementation(self) -> str:
        """The library's name for the kernel that it chose, such as ``"jit_dw:avx512_core"``."""
        name = ctypes.c_char_p()
        self._engine._library.call("primitive_desc_query", self._pd, libdnnl.QUERY_IMPLEMENTATION, 0, ctypes.byref(name))
        return (name.value or b"").decode()

    def __call__(self, x: NdArray | Memory, out: NdArray | None = None, *, tail: _Tail = "check") -> NdArray:
        """Convolve.

        Parameters
        ----------
        x : NdArray or Memory
            An array with the layout `src_descriptor` says; a memory of its view with axes (N, C, H, W).
        out : NdArray, optional
            An array with the layout of `dst_descriptor`. Default: a new one.
        tail : {"check", "zero", "trust"}, optional
            For an `x` that is an array; see `Memory`.

        Returns
        -------
        NdArray
            `out`, or the new array.

        Raises
        ------
        LayoutError
            For another layout than the configured one (`reorder` makes it), a dirty tail of `x`, an `out` that is read-only or overlaps `x`.
        """
        result = NdArray(self._dst_descriptor) if out is None else out
        self.bind(x, result, tail=tail)()
        return result

    def bind(self, x: NdArray | Memory, out: NdArray, *, tail: _Tail = "check") -> Callable[[], None]:
        """Check two arrays once, for calls that check nothing any more.

        Parameters
        ----------
        x, out, tail
            As a call has them. The tail of `x` is looked at now, and not again.

        Returns
        -------
        callable
            Convolves the present elements of `x` into `out`; takes and returns nothing. It keeps both arrays alive, and has one scratch
            memory: not for two threads at a time.

        Raises
        ------
        LayoutError
            As a call does.

        Examples
        --------
        >>> import numpy as np
        >>> import nd4jlike as nd
        >>> from nd4jlike.adapters import onednn
        >>> if onednn.find_library():
        ...     plan = onednn.DepthwiseConv2d((1, 5, 5, 16), np.ones((3, 3, 16, 1), np.float32))
        ...     x, y = nd.NdArray(plan.src_descriptor), nd.NdArray(plan.dst_descriptor)
        ...     convolve = plan.bind(x, y)
        ...     x[...] = 1
        ...     convolve()
        ...     assert y[0, 2, 2, 15] == 9
        """
        read = x if isinstance(x, Memory) else Memory._of(_four(x, "x").permute(self._axes), self._engine, tail)
        written = Memory._of(_four(out, "out").permute(self._axes), self._engine, "trust")
        for name, memory, desc in (("x", read, self._src), ("out", written, self._dst)):
            if not _alike(memory.desc, desc):
                raise LayoutError(
                    f"{name} has another layout than the configured one: {memory.desc}, not {desc}; reorder it first", ShapeStatus.INCORRECT_STRIDES
                )
        check_disjoint((read,), written)
        written._written()
        read._clean()
        if 0 in written.desc.dims:
            return lambda: None
        return bound(self._engine, self._primitive, self._scratch, {libdnnl.SRC: read._handle, libdnnl.DST: written._handle, **self._constants})

    def __repr__(self) -> str:
        return f"<DepthwiseConv2d of oneDNN {self._engine.version}, {self.implementation}: {self._src_descriptor!r} to {self._dst_descriptor!r}>"


def depthwise_conv2d(
    x: NdArray | npt.ArrayLike,
    weights: NdArray | npt.ArrayLike,
    bias: NdArray | npt.ArrayLike | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    dilation: int | tuple[int, int] = 1,
    padding: Any = "same",
    data_format: Literal["NHWC", "NCHW"] = "NHWC",
    weights_format: Literal["HWCM", "MCHW", "MHWC", "C1HW"] = "HWCM",
    dst_dtype: Any = None,
    quantization: Quantization | None = None,
    out: NdArray | None = None,
    engine: Engine | None = None,
    tail: _Tail = "check",
) -> NdArray:
    """Depthwise convolution by the library, on the memory of `x` as it lies.

    Parameters
    ----------
    x : NdArray or array_like
        Input, axes named by `data_format`.
    weights, bias, stride, dilation, padding, data_format, weights_format, dst_dtype, quantization, engine
        See `DepthwiseConv2d`.
    out : NdArray, optional
        Result of any layout that the library writes. Default: a new array of the layout that it chooses.
    tail : {"check", "zero", "trust"}, optional
        What to do about the tail of the blocks of `x`; see `Memory`.

    Returns
    -------
    NdArray
        `out`, or the new array.

    Raises
    ------
    LayoutError, UnsupportedLayoutError, DTypeError, MissingLibraryError
        See `DepthwiseConv2d` and its call.

    Examples
    --------
    >>> import numpy as np
    >>> import nd4jlike as nd
    >>> from nd4jlike.adapters import onednn
    >>> x = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 17, 5, 5), "nChw16c"))
    >>> x[...] = 1
    >>> if onednn.find_library():
    ...     y = onednn.depthwise_conv2d(x, np.ones((3, 3, 17, 1), np.float32), data_format="NCHW")
    ...     assert y[0, 16, 2, 2] == 9
    """
    array = asarray(x)
    plan = DepthwiseConv2d(
        array.descriptor, weights, bias, dst=None if out is None else _four(out, "out").descriptor, dst_dtype=dst_dtype, stride=stride, dilation=dilation,
        padding=padding, data_format=data_format, weights_format=weights_format, quantization=quantization, engine=engine,
    )  # fmt: skip
    return plan(array, out, tail=tail)


def _any(library: Library, dims: Sequence[int], data_type: str) -> Handle:
    """Ask for a memory descriptor whose layout the library chooses."""
    return library.make("memory_desc", "memory_desc_create_with_tag", len(dims), Dims(*dims), libdnnl.TYPES[data_type], libdnnl.ANY)


def _agreed(what: str, layout: ShapeDescriptor | Sequence[int] | None, dtype: Any) -> str:
    """Name the element type of a layout, which a `dtype` beside it must not contradict; empty where neither tells."""
    if dtype is None and not isinstance(layout, ShapeDescriptor):
        return ""
    name = _name(layout.dtype if isinstance(layout, ShapeDescriptor) else dtype)
    if dtype is not None and _name(dtype) != name:
        raise DTypeError(f"{what} has elements of {by_onednn(name).name}, asked for are {codes(dtype).name}")
    return name


def _name(dtype: Any) -> str:
    """Name an element type as the library does."""
    row = codes(dtype)
    if row.onednn is None:
        raise DTypeError(f"oneDNN has no data type for {row.name} elements")
    return row.onednn


def _plain(x: NdArray | npt.ArrayLike) -> tuple[npt.NDArray[Any], str]:
    """Dense copy of the elements as NumPy can carry them (bfloat16 as its bits), and the library's name of their type."""
    array = asarray(x)
    dense = NdArray(ShapeDescriptor(array.descriptor.dtype, "c", array.shape))
    dense[...] = array
    bits = NdArray(ShapeDescriptor(bits_dtype(array.descriptor.dtype), "c", array.shape), dense.buffer)
    return bits.to_numpy(), _name(array.descriptor.dtype)


def _four(x: Any, name: str) -> NdArray:
    if not isinstance(x, NdArray) or x.ndim != 4:
        raise LayoutError(f"{name} must be an NdArray of four axes: {type(x).__name__} of shape {getattr(x, 'shape', None)}")
    return x


def _alike(one: MemoryDesc, other: MemoryDesc) -> bool:
    """Whether elements lie alike; strides of axes of one block contribute to no address, nor do any where there are no elements."""
    if one == other or (0 in one.dims and (one.dims, one.data_type) == (other.dims, other.data_type)):
        return True
    fixed = [(d.dims, d.data_type, d.padded_dims, d.inner_blks, d.inner_idxs) for d in (one, other)]
    return fixed[0] == fixed[1] and all(a == b or count <= 1 for a, b, count in zip(one.strides, other.strides, one._counts(), strict=True))
