"""ADR 0012: torch, JAX and Dask by their adapters."""

import gc
import operator
import pickle
import subprocess
import sys

import numpy as np
import pytest

import nd4jlike as nd
from nd4jlike import DTypeError, LayoutError, MissingLibraryError, ShapeDescriptor, UnsupportedLayoutError
from nd4jlike.adapters import arm_compute
from nd4jlike.adapters.dask import from_dask, to_dask
from nd4jlike.adapters.jax import from_jax, to_jax
from nd4jlike.adapters.torch import from_torch, to_torch


def numbered(descriptor):
    x = nd.NdArray(descriptor)
    x[...] = np.arange(x.size).reshape(x.shape)
    return x


LAYOUTS = [
    ShapeDescriptor("float32", "c", (2, 3, 4, 5)),
    ShapeDescriptor.from_tag((2, 3, 4, 5), "nhwc", "int32"),
    ShapeDescriptor.from_tag((2, 3, 4, 5), "nhwc", "float32", (0, 5, 2, 2), (0, 0, 1, 1)),
    ShapeDescriptor("float64", "f", (2, 3)),
    ShapeDescriptor("int8", "c", ()),
    ShapeDescriptor("float32", "c", (0, 3)),
]


def test_d8_d9_d10_imports_are_light():
    """D8, D9, D10: importing an adapter imports no foreign library."""
    code = "import sys; from nd4jlike.adapters import dask, jax, torch; print([name for name in ('torch', 'jax', 'dask') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("module", "call", "package"),
    [
        ("torch", to_torch, "torch"), ("torch", from_torch, "torch"), ("jax.numpy", to_jax, "jax"), ("jax.numpy", from_jax, "jax"),
        ("dask.array", to_dask, r"'dask\[array\]'"), ("dask.array", from_dask, r"'dask\[array\]'"),
    ],
)  # fmt: skip
def test_d8_d9_d10_missing(module, call, package, monkeypatch):
    """D8, D9, D10: `MissingLibraryError` says what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingLibraryError, match=f"is not installed: pip install {package}"):
        call(nd.zeros((2,)))


@pytest.mark.parametrize("d", LAYOUTS, ids=str)
def test_d8_torch(d):
    """D8: `to_torch(x)` and `from_torch(tensor)` share memory and keep strides, channels last included."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = numbered(d)
    tensor = to_torch(x)
    assert tuple(tensor.shape) == x.shape
    assert np.array_equal(tensor.numpy(), x.to_numpy())
    back = from_torch(tensor)
    if x.size > 1:
        assert tensor.stride() == x.strides == back.strides
        assert tensor.data_ptr() == x.data_ptr() == x.to_numpy(copy=False).ctypes.data == back.data_ptr()
        assert (d.tag == "acdb" and not any(d.paddings)) <= tensor.is_contiguous(memory_format=torch.channels_last if d.rank == 4 else torch.contiguous_format)
        back[(0,) * d.rank] = 7
        assert tensor.flatten()[0] == x[(0,) * d.rank] == 7
    twin = to_torch(x, copy=True)
    assert not x.size or twin.data_ptr() != tensor.data_ptr()
    assert torch.equal(twin, tensor)


def test_d8_blocked_arrays_are_copied():
    """D8: `copy=True` of a blocked array is a dense tensor; a tensor of bfloat16 is taken wherever an array is."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in ("float32", "bfloat16", "int8"):
        x = numbered(ShapeDescriptor.from_tag((2, 17, 3, 2), "nChw8c", dtype, (0, 0, 2, 0), (0, 0, 1, 0)))
        tensor = to_torch(x, copy=True)
        assert tensor.is_contiguous()
        assert tensor.tolist() == x.tolist()
        x[...] = 0
        assert tensor.any()
    for tensor in (torch.arange(24, dtype=torch.bfloat16).reshape(2, 3, 4).permute(2, 0, 1), torch.zeros(0, 3, dtype=torch.bfloat16)):
        x = nd.asarray(tensor)
        assert (x.dtype.name, x.shape, x.tolist()) == ("bfloat16", tuple(tensor.shape), tensor.tolist())
        assert not x.size or x.data_ptr() == tensor.data_ptr()
        assert nd.reorder(tensor, "a" + "bc"[: tensor.ndim - 1]).tolist() == tensor.tolist()


def test_d8_torch_refused():
    """D8: what torch does not hand over (tensors that need a gradient, are sparse, conjugate, elsewhere) is refused in its words."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for tensor, words in (
        (torch.zeros(3, requires_grad=True), "detach"),
        (torch.zeros(3, 3).to_sparse(), "layout other than torch.strided"),
        (torch.zeros(3, dtype=torch.complex64).conj(), "conjugate"),
        (torch.ones(3, dtype=torch.complex64).conj().imag, "resolve_neg"),
        (torch.zeros(3, device="meta"), "meta"),
        (np.zeros(3), "not a ndarray"),
    ):
        with pytest.raises(UnsupportedLayoutError, match=words):
            from_torch(tensor)
    for dtype, words in (
        ("complex64", r"torch\.complex64.*view_as_real"), ("complex128", "torch.complex128"), ("float8_e4m3fn", "torch.float8_e4m3fn"),
    ):  # fmt: skip
        with pytest.raises(nd.DTypeError, match=f"{words}.*it must be one of float32, float64") as refused:
            from_torch(torch.zeros(3, dtype=getattr(torch, dtype)))
        assert ("view_as_real" in str(refused.value)) == dtype.startswith("complex")
    for asks in (nd.asarray, nd.array):
        with pytest.raises(DTypeError, match=r"(?i)it must be one of float32, .*float8"):
            asks(torch.zeros(3, dtype=torch.float8_e4m3fn))
    for x in (nd.zeros((4,))[::-1], numbered(ShapeDescriptor.from_tag((1, 8, 2, 2), "nChw8c"))):
        with pytest.raises(UnsupportedLayoutError):
            to_torch(x)
    assert to_torch(nd.arange(4)[::-1], copy=True).tolist() == [3, 2, 1, 0]


BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul, divmod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    np.add, np.maximum, np.array_equal, np.allclose, np.dot, np.may_share_memory,
    lambda a, b: np.where(np.asarray(a == b), a, b), lambda a, b: np.concatenate([a, b]), lambda a, b: np.clip(a, b, b), lambda a, b: np.add.outer(a, b),
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_d12_tensors_are_operands(dtype):
    """D12: What speaks DLPack is an operand wherever an array is: of operators, NumPy's functions and ufuncs; results are ours."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    tensor = torch.tensor([[1.0, 2.5], [-3.0, 4.0]]).to(getattr(torch, dtype))
    same = nd.asarray(tensor)
    for a in (nd.array(tensor), nd.full((2, 2), 2, "float32"), nd.reorder(np.full((2, 2), 3, np.float32), "aB4b")):
        for call in BINARY:
            for given, wanted in (((a, tensor), (a, same)), ((tensor, a), (same, a))):
                found, want = call(*given), call(*wanted)
                assert type(found) is type(want), call
                np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(want, np.float32))
    assert (same == tensor).all()
    assert (tensor == same).all()
    assert not (same != tensor).any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_d12_tensors_are_written(dtype):
    """D12: What speaks DLPack is an operand wherever an array is: of assignments."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.tensor([[1.0, 2.5], [-3.0, 4.0]]).to(getattr(torch, dtype))
    for target in ("float32", "bfloat16"):
        for x in (nd.zeros((2, 2), target), nd.reorder(nd.zeros((2, 2), target), "aB4b"), nd.zeros((2, 2), target, paddings=(1, 1))):
            for key, values in ((Ellipsis, tensor), (np.ones((2, 2), bool), tensor.reshape(4)), ((slice(None), 0), tensor[:, 0])):
                x[...] = 0
                x[key] = values
                assert x[:, 0].tolist() == tensor[:, 0].tolist()
    x = nd.zeros((2, 2))
    np.copyto(x, tensor)
    assert x.tolist() == tensor.tolist()
    x += tensor
    assert x.tolist() == (2 * tensor).tolist()
    for made in (nd.full((2, 2), tensor, dtype), nd.full_like(x, tensor)):
        assert made.tolist() == tensor.tolist()
    assert nd.create((1, 1), paddings=(0, 1), padding_value=tensor[0, 1]).hosting_array().tolist() == [[0, 2.5]]
    with pytest.raises(DTypeError, match="only casts within a kind"):
        nd.zeros((2, 2), "int8")[...] = tensor


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_d12_tensors_are_weights(dtype):
    """D12: What speaks DLPack is an operand wherever an array is: of layers and adapters."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, weights, bias = [torch.arange(torch.Size(shape).numel()).reshape(shape).to(getattr(torch, dtype)) for shape in ((1, 4, 4, 2), (3, 3, 2, 1), (2,))]
    want = nd.depthwise_conv2d(nd.asarray(x), nd.asarray(weights), nd.asarray(bias))
    assert nd.depthwise_conv2d(x, weights, bias).tolist() == nd.DepthwiseConv2d(weights, bias)(x).tolist() == want.tolist()
    tensor = arm_compute.Tensor(arm_compute.TensorInfo.from_shape((4, 4, 2), {"float32": "F32", "bfloat16": "BFLOAT16"}[dtype]))
    tensor.allocate()
    tensor.copy_from(x[0])
    assert tensor.copy_to().tolist() == x[0].tolist()


def test_d12_what_is_not_handed_over():
    """D12: What neither hands over is refused, in the words of its library; never is it just unequal."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a = nd.ones((2, 2))
    plan = nd.DepthwiseConv2d(np.ones((1, 1, 2, 1), np.float32))
    asks = (nd.asarray, nd.array, plan, lambda t: a + t, lambda t: a == t, lambda t: np.where(a, a, t), lambda t: a.__setitem__(Ellipsis, t))
    for of in (torch.float32, torch.bfloat16):
        ones = torch.ones(2, 2, dtype=of)
        for tensor, words in (
            (torch.ones(2, 2, dtype=of, requires_grad=True), "detach"), (ones.to_sparse(), "to_dense"), (ones.to("meta"), "meta"),
            (torch._neg_view(ones), "resolve_neg"),
        ):  # fmt: skip
            for ask in asks:
                with pytest.raises(UnsupportedLayoutError, match=rf"a (Tensor|Parameter) does not hand over its elements.*{words}"):
                    ask(tensor)
    for ask in asks:
        with pytest.raises(DTypeError, match=r"no array can be made of a Tensor.*it must be one of float32"):
            ask(torch.ones(2, 2, dtype=torch.float8_e4m3fn))
    with pytest.raises(DTypeError, match="it must be one of float32"):
        nd.asarray(torch.ones(2, 2, dtype=torch.float8_e4m3fn), dtype="float32")


class Bare:
    """What speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_d12_dlpack_alone():
    """D12: What speaks DLPack is an operand wherever an array is: by its capsule where NumPy cannot read it."""
    x = numbered(ShapeDescriptor("float32", "c", (2, 3)))
    given = Bare(x)
    assert nd.asarray(given).data_ptr() == x.data_ptr()
    assert (x + given).tolist() == (x + x).tolist()
    assert (x == given).all()
    x[...] = Bare(x + 1)
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_d13_tensors_are_memory_to_write(dtype):
    """D13: It is memory to write to as well, zero-copy and kept alive: an `out` of plans, gradients and `reorder`, and the buffer of an `NdArray`."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    of = getattr(torch, dtype)
    x = torch.arange(32).reshape(1, 4, 4, 2).to(of)
    weights = torch.ones(3, 3, 2, 1).to(of)
    want = nd.depthwise_conv2d(x, weights)
    out = torch.zeros(1, 2, 4, 4, dtype=of).permute(0, 2, 3, 1)
    assert nd.DepthwiseConv2d(weights)(x, out).data_ptr() == out.data_ptr()
    assert out.tolist() == want.tolist()
    assert nd.depthwise_conv2d(x, weights, out=torch.zeros(1, 4, 4, 2, dtype=of)).tolist() == want.tolist()
    assert nd.reorder(x, out=out).data_ptr() == out.data_ptr()
    assert out.tolist() == x.tolist()
    tensor = torch.zeros(4, 8, dtype=of)
    y = nd.NdArray(ShapeDescriptor(dtype, "c", (2, 16)), tensor)
    y[1, 15] = 7
    assert tensor[3, 7] == 7
    alive = sys.getrefcount(tensor)
    del y
    gc.collect()
    assert sys.getrefcount(tensor) < alive
    with pytest.raises(UnsupportedLayoutError, match="one contiguous run of bytes"):
        nd.NdArray(ShapeDescriptor(dtype, "c", (2, 2)), tensor[:, ::2])
    plan = nd.DepthwiseConv2d(weights)
    for refused, words in (
        (torch.zeros(1, 4, 4, 2, dtype=of, requires_grad=True), "detach"),
        (torch._neg_view(torch.zeros(1, 4, 4, 2, dtype=of)), "resolve_neg"),
    ):
        for write in (lambda out: plan(x, out), lambda out: nd.reorder(x, out=out), lambda out: nd.NdArray(ShapeDescriptor(dtype, "c", (2, 2)), out)):
            with pytest.raises(UnsupportedLayoutError, match=words):
                write(refused)
    if dtype == "float32":
        grad, by_bias = torch.ones(1, 4, 4, 2), torch.zeros(2)
        nd.depthwise_conv2d_backward(grad, x, weights, needs="bias", out=(None, None, by_bias))
        assert by_bias.tolist() == [16, 16]


def test_d13_memory_that_only_reads():
    """D13: It is memory to write to as well: not where the capsule says that it only reads, or is too old to say it."""
    x = numbered(ShapeDescriptor("float32", "c", (2, 3)))

    class Legacy(Bare):
        def __dlpack__(self, **options):
            return self.array.__dlpack__()

    with pytest.raises(LayoutError, match="read-only"):
        nd.reorder(x, out=Legacy(x.copy()))


def test_d8_a_plan_on_tensors():
    """D8: channels last stays channels last: torch's convolution on our padded memory."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    random = np.random.default_rng(0)
    weights = random.standard_normal((6, 1, 3, 3)).astype("float32")
    plan = nd.DepthwiseConv2d(weights, padding=1, data_format="NCHW", weights_format="C1HW")
    x = nd.NdArray(plan.input_descriptor((1, 6, 9, 8)))
    x[...] = random.standard_normal(x.shape)
    theirs = torch.nn.functional.conv2d(to_torch(x), torch.from_numpy(weights), padding=1, groups=6)
    assert np.allclose(from_torch(theirs).to_numpy(), plan(x).to_numpy(), atol=1e-5)


@pytest.mark.parametrize("d", LAYOUTS, ids=str)
def test_d9_jax(d):
    """D9: `to_jax(x)` shares memory at multiples of 64 bytes without padding and gaps, in any order of axes; `copy=True` copies; `from_jax` only reads."""
    jax = pytest.importorskip("jax", reason="jax is not installed")
    x = numbered(d)
    if d.dtype == "float64":
        for copy in (False, True):
            with pytest.raises(DTypeError, match="JAX makes float32 of float64 unless"):
                to_jax(x, copy=copy)
    jax.config.update("jax_enable_x64", d.dtype == "float64")
    if any(d.paddings):
        with pytest.raises(UnsupportedLayoutError, match="without padding and gaps"):
            to_jax(x)
    else:
        shared = to_jax(x)
        assert not x.size or shared.unsafe_buffer_pointer() == x.to_numpy(copy=False).ctypes.data
        assert np.array_equal(np.asarray(shared), x.to_numpy())
    array = to_jax(x, copy=True)
    assert np.array_equal(np.asarray(array), x.to_numpy())
    back = from_jax(array)
    assert back.readonly
    assert np.array_equal(back.to_numpy(), x.to_numpy())


def test_d9_jax_refused():
    """D9: other layouts are refused, and what is no JAX array."""
    pytest.importorskip("jax", reason="jax is not installed")
    for x in (nd.zeros((4,))[::-1], nd.zeros((4, 6))[:, ::2], numbered(ShapeDescriptor.from_tag((1, 8, 2, 2), "nChw8c"))):
        with pytest.raises(UnsupportedLayoutError):
            to_jax(x)
        assert np.array_equal(np.asarray(to_jax(x, copy=True)), x.to_numpy())
    part = nd.arange(20, dtype="float32")[1:5]
    with pytest.raises(UnsupportedLayoutError, match=r"a multiple of 64 bytes.*this begins 4 bytes beyond one"):
        to_jax(part)
    assert to_jax(part, copy=True).tolist() == [1, 2, 3, 4]
    with pytest.raises(UnsupportedLayoutError, match="not a ndarray"):
        from_jax(np.zeros(3))
    for wrong in (None, "abc", [1.0], np.zeros(3, "float32")):
        for copy in (False, True):
            with pytest.raises(UnsupportedLayoutError, match="to_jax takes an NdArray, not a"):
                to_jax(wrong, copy=copy)


@pytest.mark.parametrize("d", [*LAYOUTS[:4], ShapeDescriptor.from_tag((2, 16, 3, 5), "nChw8c", "float32", (0, 0, 2, 0), (0, 0, 1, 0))], ids=str)
def test_d10_dask(d):
    """D10: the blocks of `to_dask(x, chunks)` are views of `x`; `from_dask(array, layout)` writes each block where it belongs in any layout."""
    pytest.importorskip("dask.array", reason="dask is not installed")
    x = numbered(d)
    lazy = to_dask(x, chunks=(1, 8, *d.shape[2:])[: d.rank])
    blocks = []
    lazy.map_blocks(lambda block: blocks.append(block) or block, meta=np.empty((0,) * d.rank, d.dtype)).sum().compute()
    assert len(blocks) == lazy.npartitions > 1
    assert all(type(block) is nd.NdArray and block.buffer is x.buffer for block in blocks)
    for layout in (d, None, "".join("abcd"[: d.rank])):
        out = from_dask(lazy + 1, layout)
        assert np.array_equal(out.to_numpy(), x.to_numpy() + 1)
        assert out.check_padding()
        assert out.descriptor == (d if layout is d else ShapeDescriptor(d.dtype, "c", d.shape))


def test_d10_dask_refused():
    """D10: `from_dask(array, layout)`: an array whose extents are unknown, a layout of another shape, and what is no Dask array are refused."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    lazy = da.ones((4, 4), chunks=2)
    with pytest.raises(LayoutError, match="all extents must be known"):
        from_dask(lazy[lazy > 0])
    with pytest.raises(LayoutError, match=r"the shape of the Dask array, \(4, 4\): \(4, 5\)"):
        from_dask(lazy, ShapeDescriptor("float64", "c", (4, 5)))
    with pytest.raises(LayoutError, match="tag"):
        from_dask(lazy, 3)
    with pytest.raises(UnsupportedLayoutError, match="not a ndarray"):
        from_dask(np.zeros(3))
    assert from_dask(da.ones((0, 4))).shape == (0, 4)
    with pytest.raises(UnsupportedLayoutError, match="not a ndarray"):
        to_dask(np.zeros(3))
    for chunks in (0, "many", (2,), ((1, 2), (4,)), -5, (3, -4), ((5, -1), (4,)), object()):
        with pytest.raises(LayoutError, match=r"chunks must cut the shape \(4, 4\)"):
            to_dask(nd.zeros((4, 4)), chunks)


def test_d10_dask_of_turned_arrays_and_bfloat16():
    """D10: the blocks of `to_dask(x, chunks)` are views of `x`: Dask turns them by NumPy's functions, whatever their element type."""
    pytest.importorskip("dask.array", reason="dask is not installed")
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    x = nd.arange(24).reshape(4, 6)
    assert np.array_equal(to_dask(x, 2).T.compute(), x.to_numpy().T)
    assert to_dask(x.astype("bfloat16"), 2).sum().compute() == 276


def test_d10_dask_of_one_element():
    """D10: the blocks of `to_dask(x, chunks)` are views of `x`, of one without axes, too."""
    pytest.importorskip("dask.array", reason="dask is not installed")
    x = nd.full((), 3.0)
    lazy = to_dask(x)
    x[...] = 7
    assert lazy.compute() == from_dask(lazy) == 7


def test_d10_dask_of_other_processes():
    """D10: as soon as it is computed; blocks that other processes compute come back first: those would write to copies."""
    dask = pytest.importorskip("dask", reason="dask is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")

    def elsewhere(graph, keys, **kwargs):
        return dask.get(pickle.loads(cloudpickle.dumps(graph)), keys, **kwargs)

    lazy = da.arange(63, dtype="float32", chunks=10).reshape(7, 9)
    d = ShapeDescriptor.from_tag((7, 9), "Ba4b", "float32", (2, 0), (1, 0))
    for scheduler in (elsewhere, "threads", "sync"):
        with dask.config.set(scheduler=scheduler):
            out = from_dask(lazy, d)
            assert np.array_equal(out.to_numpy(), np.arange(63).reshape(7, 9))
            assert out.check_padding()
            assert from_dask(lazy.sum()) == 1953


def test_d11_dask_mixes():
    """D11: From the first call on Dask takes NdArrays for parts of its arrays: they mix with them, in operators and in NumPy's functions."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    x, v = nd.create((4, 6), paddings=(1, 2)), nd.arange(6)
    x[...] = np.arange(24).reshape(4, 6)
    lazy = to_dask(x, (2, 3))
    expected = x.to_numpy() + np.arange(6)
    for mixed in (lazy + v, v + lazy, np.add(lazy, v), np.add(v, lazy)):
        assert isinstance(mixed, da.Array)
        assert np.array_equal(mixed.compute(), expected)
    assert np.array_equal(np.where(lazy > 3, v, lazy).compute(), np.where(x.to_numpy() > 3, np.arange(6), x.to_numpy()))
    assert np.array_equal(np.concatenate([lazy, x]).compute(), np.concatenate([x.to_numpy()] * 2))
    registered = list(da.chunk_types._HANDLED_CHUNK_TYPES)
    from_dask(to_dask(x))
    assert registered == da.chunk_types._HANDLED_CHUNK_TYPES
    assert registered.count(nd.NdArray) == 1


def test_d11_dask_percentiles():
    """D11: in operators, in NumPy's functions and in percentiles."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    x = nd.arange(24, dtype="float32")
    for chunks in (24, 5):
        assert np.array_equal(
            da.percentile(to_dask(x, chunks), [0, 50, 100]).compute(), da.percentile(da.from_array(x.to_numpy(), chunks), [0, 50, 100]).compute()
        )


def test_d11_dask_products():
    """D11: they mix with them, in operators and in NumPy's functions: in sums of products, too."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    for d in (ShapeDescriptor.paddedBufferDescriptor("float32", "c", (6, 8), (1, 2)), ShapeDescriptor.from_tag((6, 8), "aB4b")):
        x = numbered(d)
        lazy, dense = to_dask(x, (2, 4)), da.from_array(x.to_numpy(), (2, 4))
        for act in (lambda a: da.tensordot(a, a, axes=((1,), (1,))), lambda a: da.dot(a, a.T), lambda a: da.vdot(a, a), da.cov, da.corrcoef):
            assert np.allclose(np.asarray(act(lazy).compute()), act(dense).compute())
