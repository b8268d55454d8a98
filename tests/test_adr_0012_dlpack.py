"""ADR 0012: DLPack."""

import ctypes
import gc
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given

import nd4jlike as nd
from nd4jlike import NdArray, ShapeDescriptor, UnsupportedLayoutError
from small import numbered
from strategies import DTYPES, padded_descriptors, tagged_descriptors


class Device(ctypes.Structure):
    """DLDevice."""

    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class DataType(ctypes.Structure):
    """DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )  # fmt: skip


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype = ctypes.c_void_p
pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype = ctypes.c_char_p
name_of.argtypes = (ctypes.py_object,)


class Producer:
    """A library of its own: makes capsules of `values`, with whatever lies the keywords tell."""

    def __init__(self, values, versioned=True, strides=True, **lies):
        self.values = values
        self.released = 0
        self.managed = Versioned() if versioned else Managed()
        tensor = self.managed.tensor
        code = {"f": 2, "i": 0, "u": 1, "b": 6}[values.dtype.kind]
        tensor.data, tensor.device, tensor.ndim = values.ctypes.data, Device(1, 0), values.ndim
        tensor.dtype = DataType(code, 8 * values.itemsize, 1)
        self.shape = (ctypes.c_int64 * max(1, values.ndim))(*values.shape)
        self.strides = (ctypes.c_int64 * max(1, values.ndim))(*(s // values.itemsize for s in values.strides))
        tensor.shape = self.shape
        if strides:
            tensor.strides = self.strides
        if versioned:
            self.managed.major = 1
        self.deleter = DELETER(self.release)
        self.managed.deleter = self.deleter
        self.kind = b"dltensor_versioned" if versioned else b"dltensor"
        for key, value in lies.items():
            if key in ("major", "flags"):
                setattr(self.managed, key, value)
            elif key == "shape" and value:
                self.shape[:] = value
            elif key == "strides_":
                self.strides[:] = value
            else:
                setattr(tensor, key, value)

    def release(self, _):
        """Count: the consumer has let go."""
        self.released += 1

    def __dlpack_device__(self):
        device = self.managed.tensor.device
        return device.device_type, device.device_id

    def __dlpack__(self, **_):
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.kind, None)
        return self.capsule


def opened(capsule):
    """Read the structure in a capsule of ours."""
    kind = name_of(capsule)
    managed = (Versioned if kind == b"dltensor_versioned" else Managed).from_address(pointer_of(capsule, kind))
    return managed, managed.tensor


@given(padded_descriptors())
def test_d1_capsules(d):
    """D1: `x.__dlpack__` shows the logical elements, zero-copy: a versioned capsule for a `max_version` of 1 or later, else a legacy one."""
    x = NdArray(d)
    for version, kind in (
        (None, b"dltensor"),
        ((0, 8), b"dltensor"),
        ((1, 0), b"dltensor_versioned"),
        ((1, 3), b"dltensor_versioned"),
        ((2, 0), b"dltensor_versioned"),
    ):
        capsule = x.__dlpack__(max_version=version)
        assert name_of(capsule) == kind
        managed, tensor = opened(capsule)
        if kind == b"dltensor_versioned":
            assert (managed.major, managed.minor, managed.flags) == (1, 0, 0)
        assert (tensor.device.device_type, tensor.device.device_id, tensor.byte_offset) == (1, 0, 0)
        assert tuple(tensor.shape[: tensor.ndim]) == d.shape
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (*nd.dtypes.codes(d.dtype).dlpack, 1)
        for stride, own, n in zip(tensor.strides[: tensor.ndim], d.strides, d.shape, strict=True):
            assert stride == own or n == 1
        assert tensor.data == x.buffer.address + d.offset * d.itemsize
    assert x.__dlpack_device__() == (1, 0)


@given(padded_descriptors(tuple(name for name in DTYPES if name != "bfloat16")))
def test_d1_d4_there_and_back(d):
    """D1, D4: NumPy sees our elements and we see NumPy's, zero-copy."""
    x = NdArray(d)
    x[...] = np.ones(d.shape, d.dtype)
    seen = np.from_dlpack(x)
    assert np.array_equal(seen, x.to_numpy())
    assert not x.size or np.shares_memory(seen, x.to_numpy())
    again = nd.from_dlpack(seen)
    assert np.array_equal(again.to_numpy(), seen)
    assert not x.size or np.shares_memory(again.to_numpy(), seen)
    mine = nd.from_dlpack(x)
    assert np.array_equal(mine.to_numpy(), seen)
    if x.size:
        mine[...] = 0
        assert not x.to_numpy().any()


def test_d4_by_name():
    """D4: `from_dlpack(obj, device=None, copy=None)`: by these names."""
    assert nd.from_dlpack(obj=np.zeros(3)).shape == (3,)


def test_d1_bfloat16():
    """D1: shows the logical elements, bfloat16 too."""
    x = nd.full((2, 3), 1.5, dtype="bfloat16")
    y = nd.from_dlpack(x)
    assert y.dtype == nd.bfloat16
    assert (y.buffer.address, y.shape) == (x.buffer.address, x.shape)


def test_d2_refused():
    """D2: blocked layouts, negative strides, read-only arrays, other devices and streams are refused; `copy=True` exports a copy."""
    blocked = NdArray(ShapeDescriptor.from_tag((1, 17, 2, 2), "nChw8c"))
    plain = nd.arange(6).reshape(2, 3)
    locked = nd.asarray(np.frombuffer(bytes(16), np.float32))
    for x, why in ((blocked, "exploded"), (plain[::-1], "negative"), (locked, "read-only")):
        with pytest.raises(UnsupportedLayoutError, match=why):
            x.__dlpack__(max_version=(1, 0))
        with pytest.raises(UnsupportedLayoutError, match=why):
            x.__dlpack__(copy=False)
    assert np.array_equal(np.from_dlpack(plain[::-1], copy=True), plain.to_numpy()[::-1])
    assert np.array_equal(np.from_dlpack(locked, copy=True), locked.to_numpy())
    managed, tensor = opened(plain.__dlpack__(max_version=(1, 0), copy=True))
    assert managed.flags == 2
    assert tensor.data != plain.buffer.address
    with pytest.raises(UnsupportedLayoutError, match="exploded"):
        blocked.__dlpack__(copy=True)
    assert np.from_dlpack(blocked.exploded()).shape == (1, 3, 2, 2, 8)
    for wrong in ({"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(UnsupportedLayoutError):
            plain.__dlpack__(**wrong)
    assert plain.__dlpack__(dl_device=(1, 0)) is not None


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("max_version", value) for value in ((), 1, (1,), (1, 0, 0), "10", "1.0", ("1", 0), (None, 0), (1.5, 0), {1: 0}, np.zeros(2))),
        *(("dl_device", value) for value in ((), 1, (1,), "cpu", "10", (1, None), np.zeros(2))),
        *(("copy", value) for value in ("never", 2, (), np.zeros(2))),
    ],
)
def test_d2_malformed_arguments(name, wrong):
    """D2: Arguments that the protocol does not have are a `LayoutError` that says what they must be."""
    rule = {"max_version": r"two integers: \(major, minor\)", "dl_device": r"two integers: \(type, number\)", "copy": "a bool"}[name]
    with pytest.raises(nd.LayoutError, match=f"^{name} is {re.escape(repr(wrong))}, it must be None or {rule}$"):
        nd.zeros(3).__dlpack__(**{name: wrong})


def test_d2_arguments_of_other_classes():
    """D2: Arguments are what they are worth: integers and bools of NumPy, lists."""
    x = nd.zeros(3)
    assert name_of(x.__dlpack__(max_version=[np.int8(1), 0], dl_device=np.array([1, 0]), copy=np.False_)) == b"dltensor_versioned"
    with pytest.raises(UnsupportedLayoutError, match=r"stream='s', dl_device=None"):
        x.__dlpack__(stream="s")


@pytest.mark.parametrize(
    ("x", "strides"),
    [
        (nd.zeros((1, 4, 5))[:, 1:2], (5, 5, 1)),
        (nd.zeros((3, 4))[:, None, ::2], (4, 2, 2)),
        (nd.zeros((3, 0, 4)), (4, 4, 1)),
        (nd.zeros((2, 3)).T[:1], (2, 3)),
    ],
)
def test_d3_axes_of_one_element(x, strides):
    """D3: Axes of one element, and all axes of an empty array, have the strides of a dense array."""
    _, tensor = opened(x.__dlpack__())
    assert tuple(tensor.strides[: x.ndim]) == strides


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[::2, 1:], lambda a: a[::-1], lambda a: a.T, lambda a: a[:0], lambda a: a[1, 1:2, ...]])
def test_d4_import(versioned, view):
    """D4: `from_dlpack` wraps the memory of any producer on the CPU, zero-copy; `copy=True` copies."""
    values = view(numbered((4, 5), np.int32))
    producer = Producer(values, versioned)
    x = nd.from_dlpack(producer)
    assert np.array_equal(x.to_numpy(), values)
    assert not values.size or np.shares_memory(x.to_numpy(), values)
    assert name_of(producer.capsule) == b"used_" + producer.kind
    copied = nd.from_dlpack(Producer(values, versioned), copy=True)
    assert not copied.readonly
    assert not np.shares_memory(copied.to_numpy(), values)
    dense = np.ascontiguousarray(values)
    assert np.array_equal(nd.from_dlpack(Producer(dense, versioned, strides=False)).to_numpy(), dense)
    shifted = Producer(numbered((10,), np.int32), versioned, byte_offset=8, shape=[8])
    assert nd.from_dlpack(shifted).to_numpy().tolist() == list(range(3, 11))


class Old:
    """A producer of the first days: no keywords."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, stream=None):
        return self.inner.__dlpack__()


def test_d4_old_producers_and_none():
    """D4: it asks for version 1.0 and takes what older producers give."""
    assert nd.from_dlpack(Old(Producer(numbered((3,)), False))).to_numpy().tolist() == [1, 2, 3]
    with pytest.raises(UnsupportedLayoutError, match="__dlpack__"):
        nd.from_dlpack([1, 2])
    with pytest.raises(UnsupportedLayoutError, match="device"):
        nd.from_dlpack(nd.zeros(3), device="cuda")
    assert nd.from_dlpack(nd.zeros(3), device="cpu").shape == (3,)


def test_d5_read_only():
    """D5: Memory is read-only where its capsule says so, where it is a legacy capsule, and where strides let elements share cells."""
    values = numbered((4,))
    assert not nd.from_dlpack(Producer(values)).readonly
    assert nd.from_dlpack(Producer(values, flags=1)).readonly
    assert nd.from_dlpack(Producer(values, False)).readonly
    assert nd.from_dlpack(Producer(np.broadcast_to(values, (3, 4)))).readonly


HOSTILE = {
    "version": {"major": 9},
    "device": {"device": Device(2, 0)},
    "lanes": {"dtype": DataType(2, 32, 4)},
    "bits": {"dtype": DataType(0, 3, 1)},
    "code": {"dtype": DataType(5, 64, 1)},
    "complex": {"dtype": DataType(5, 128, 1)},
    "fewer axes": {"ndim": -1},
    "more axes": {"ndim": 33},
    "most axes": {"ndim": 2**31 - 1},
    "no extents": {"shape": None},
    "negative extent": {"shape": [-1, 2]},
    "size": {"shape": [2**40, 2**40]},
    "bytes": {"shape": [2**61, 1]},
    "reach": {"strides_": [2**62, 1]},
    "negative reach": {"strides_": [-(2**62), 1]},
    "below memory": {"strides_": [-(2**50), 1]},
    "above memory": {"data": 2**64 - 64, "shape": [1000, 2]},
    "offset": {"byte_offset": 2**63},
    "wrapping offset": {"byte_offset": 2**64 - 4},
    "NULL": {"data": None},
    "misaligned": {"byte_offset": 2},
}


@pytest.mark.parametrize(("lie", "versioned"), [(lie, versioned) for lie in HOSTILE for versioned in (True, False) if versioned or lie != "version"])
def test_d6_hostile_producers(lie, versioned):
    """D6: Refused before anything is read: whatever cannot be true."""
    producer = Producer(numbered((2, 2)), versioned, **HOSTILE[lie])
    with pytest.raises(nd.Nd4jLikeError):
        nd.from_dlpack(producer)
    assert producer.released == 0
    assert name_of(producer.capsule) == producer.kind if hasattr(producer, "capsule") else lie == "device"


def test_d6_consumed_capsules():
    """D6: capsules that were consumed, and what is no capsule, are refused."""

    class Again(Producer):
        def __dlpack__(self, **_):
            if not hasattr(self, "capsule"):
                super().__dlpack__()
            return self.capsule

    producer = Again(numbered((3,)))
    x = nd.from_dlpack(producer)
    with pytest.raises(UnsupportedLayoutError, match="capsule"):
        nd.from_dlpack(producer)
    assert x.size == 3

    class Liar(Old):
        def __dlpack__(self, **_):
            return 5

    with pytest.raises(UnsupportedLayoutError, match="capsule"):
        nd.from_dlpack(Liar(None))


class Memory(bytearray):
    """Memory with weak references."""


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_d7_exports(version):
    """D7: The bytes live as long as a capsule that nobody consumed, or its consumer."""
    memory = Memory(64)
    gone = weakref.ref(memory)
    x = NdArray(ShapeDescriptor("int32", "c", (2, 3)), memory)
    capsule = x.__dlpack__(max_version=version)
    del memory, x
    gc.collect()
    assert gone() is not None
    del capsule
    gc.collect()
    assert gone() is None

    memory = Memory(64)
    gone = weakref.ref(memory)
    seen = np.from_dlpack(NdArray(ShapeDescriptor("int32", "c", (2, 3)), memory))
    del memory
    gc.collect()
    assert gone() is not None
    part = seen[1:]
    del seen
    assert part.sum() == 0
    thread = threading.Thread(target=lambda held: held.clear(), args=([part],))
    del part
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("versioned", [True, False])
def test_d7_imports(versioned):
    """D7: any view of what was imported; the producer's deleter is called once."""
    producer = Producer(numbered((3, 4)), versioned)
    x = nd.from_dlpack(producer)
    part = x[1:]
    del x
    gc.collect()
    assert producer.released == 0
    seen = part.to_numpy()
    del part
    assert producer.released == 0
    assert seen[0, 0] == 5
    del seen
    gc.collect()
    assert producer.released == 1
    none = Producer(numbered((3,)), versioned)
    none.managed.deleter = DELETER()
    del none.deleter
    assert nd.from_dlpack(none).size == 3


@pytest.mark.parametrize(("version", "name", "deleter"), [("(1, 0)", "dltensor_versioned", 16), ("None", "dltensor", 56)])
def test_d7_consumers_that_outlive_the_interpreter(version, name, deleter):
    """D7: the producer's deleter is called on whatever thread lets go, and after the interpreter has ended, too."""
    program = f"""
import ctypes
import nd4jlike as nd
leave = getattr(ctypes.CDLL(None), "__cxa_atexit", None)
if leave is None:
    raise SystemExit("the C library has no __cxa_atexit")
x = nd.zeros(4)
capsule = x.__dlpack__(max_version={version})
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
tensor = pointer_of(capsule, b"{name}")
rename(capsule, b"used")
leave(ctypes.c_void_p(ctypes.c_void_p.from_address(tensor + {deleter}).value), ctypes.c_void_p(tensor), None)
del capsule, x
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if "no __cxa_atexit" in done.stderr:
        pytest.skip("the C library has no __cxa_atexit")
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


@pytest.mark.parametrize("versioned", [True, False])
def test_d7_the_buffer_of_what_was_imported(versioned):
    """D7: The bytes live as long as any view of what was imported: an array made of its buffer is one."""
    producer = Producer(numbered((3, 4)), versioned)
    x = nd.from_dlpack(producer)
    again = NdArray(x.descriptor, x.buffer)
    assert np.array_equal(again.to_numpy(), numbered((3, 4)))
    del x
    gc.collect()
    assert producer.released == 0
    del again
    gc.collect()
    assert producer.released == 1


@given(tagged_descriptors(("float32", "int8")))
def test_d7_round_trips_leave_nothing_behind(d):
    """D7: the deleter is called once: there and back leaves no reference."""
    x = NdArray(d).exploded()
    before = sys.getrefcount(x)
    for _ in range(3):
        nd.from_dlpack(x)
        x.__dlpack__()
        np.from_dlpack(x)
    assert sys.getrefcount(x) == before


def test_d4_torch():
    """D4: any producer: torch, both ways."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = nd.create((2, 3), paddings=(0, 2))
    seen = torch.from_dlpack(x)
    seen[1, 2] = 5
    assert x[1, 2] == 5
    assert nd.from_dlpack(torch.arange(6).reshape(2, 3)[:, 1:]).to_numpy().tolist() == [[1, 2], [4, 5]]
