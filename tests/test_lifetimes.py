"""Who frees the bytes, and when (ADR 0002, D5)."""

import gc
import itertools
import os
import sys
import weakref

import numpy as np
import pytest

import nd4jlike as nd
from nd4jlike import NdArray, ShapeDescriptor


class Memory(bytearray):
    """Memory with weak references."""


class Traced(np.ndarray):
    """A NumPy array that can carry attributes."""


LAYOUT = ShapeDescriptor.paddedBufferDescriptor("int32", "c", (2, 3), (1, 1), (1, 0))

CHILDREN = {
    "view": lambda x: x[1:],
    "element row": lambda x: x[0],
    "permuted": lambda x: x.permute((1, 0)),
    "reshaped": lambda x: x[0].reshape(3, 1),
    "hosting": lambda x: x.hosting_array(),
    "numpy": lambda x: x.to_numpy(),
    "asarray": lambda x: np.asarray(x),
    "memoryview": lambda x: memoryview(x),
    "memoryview of a view": lambda x: memoryview(x[1]),
    "buffer": lambda x: x.buffer,
    "memoryview of the buffer": lambda x: memoryview(x.buffer),
    "array over the buffer": lambda x: NdArray(LAYOUT, x.buffer),
    "array over numpy": lambda x: nd.asarray(x.to_numpy()[1:]),
}


@pytest.mark.parametrize("kind", CHILDREN)
def test_d5_a_child_keeps_foreign_memory_alive(kind):
    """D5: The bytes live as long as any view, export or array of them; the last one lets the foreign owner go."""
    memory = Memory(64)
    gone = weakref.ref(memory)
    x = NdArray(LAYOUT, memory)
    x[...] = 7
    child = CHILDREN[kind](x)
    del memory, x
    gc.collect()
    assert gone() is not None
    if not isinstance(child, nd.Buffer):
        assert 7 in np.asarray(child).ravel().view(np.int32 if np.asarray(child).dtype == np.uint8 else np.asarray(child).dtype)
    del child
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", CHILDREN)
def test_d5_a_child_keeps_our_memory_alive(kind):
    """D5: The bytes live as long as any view, export or array of them: none of them is overwritten by later allocations."""
    x = NdArray(LAYOUT)
    x[...] = 7
    child = CHILDREN[kind](x)
    before = bytes(memoryview(child).cast("B")) if memoryview(child).c_contiguous else np.asarray(child).tobytes()
    del x
    gc.collect()
    other = [nd.full((4, 4), 3, "int32") for _ in range(100)]
    after = bytes(memoryview(child).cast("B")) if memoryview(child).c_contiguous else np.asarray(child).tobytes()
    assert before == after
    assert len(other) == 100


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_d5_in_any_order(order):
    """D5: the last one lets the foreign owner go, in whatever order they go."""
    memory = Memory(64)
    gone = weakref.ref(memory)
    x = NdArray(LAYOUT, memory)
    held = [x, x[1:], memoryview(x), x.to_numpy()]
    del memory, x
    for position, i in enumerate(order):
        held[i] = None
        gc.collect()
        assert (gone() is None) == (position == 3)


def test_d5_an_open_export_locks_the_owner():
    """D5: The bytes live as long as any view: the owner cannot move them meanwhile."""
    memory = bytearray(64)
    view = NdArray(LAYOUT, memory)[1:]
    with pytest.raises(BufferError):
        memory.extend(bytes(1 << 20))
    del view
    gc.collect()
    memory.extend(bytes(1))
    assert len(memory) == 65


def test_d5_cycles_are_collected():
    """D5: cycles included."""
    base = np.zeros(16, np.int32).view(Traced)
    gone = weakref.ref(base)
    for make in (nd.asarray, lambda a: NdArray(LAYOUT, a)):
        base = np.zeros(16, np.int32).view(Traced)
        gone = weakref.ref(base)
        base.me = make(base)
        assert base.me.buffer.nbytes == 64
        del base
        gc.collect()
        assert gone() is None


def test_d5_exports_hold_one_reference():
    """D5: The last one frees them: exporting and releasing leaves no reference behind."""
    x = NdArray(LAYOUT)
    before = sys.getrefcount(x), sys.getrefcount(x.buffer), sys.getrefcount(x.descriptor)
    for _ in range(100):
        memoryview(x).release()
        np.asarray(x)
        memoryview(x.buffer).release()
        x[1:]
        with pytest.raises(nd.UnsupportedLayoutError):
            bytes(NdArray(ShapeDescriptor.from_tag((1, 3), "aB2b")))
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(x.buffer), sys.getrefcount(x.descriptor)) == before


def test_d5_exports_of_the_buffer_hold_nothing_else():
    """D5: as long as any export: nothing else is held, `None` neither."""
    x = NdArray(LAYOUT)
    before = sys.getrefcount(None)
    for _ in range(500):
        memoryview(x.buffer).release()
        bytes(x.buffer)
    assert abs(sys.getrefcount(None) - before) < 100


def test_d5_no_leak():
    """D5: the last one frees them: making and dropping arrays, and failing to, does not grow the process."""
    if os.environ.get("ND4JLIKE_SANITIZED"):
        pytest.skip("the sanitizer holds freed memory back")

    def resident():
        with open("/proc/self/statm") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * 4096

    def work():
        for _ in range(200):
            x = nd.create((100, 100, 10), paddings=(1, 1, 1))
            memoryview(x[1:])
            x.copy()
            for bad in (lambda x: NdArray(x.descriptor, bytearray(8)), lambda x: x.reshape(7), lambda x: memoryview(x).cast("B")):
                with pytest.raises((ValueError, TypeError, BufferError)):
                    bad(x)

    work()
    gc.collect()
    first = resident()
    work()
    gc.collect()
    assert resident() - first < 20 * x_bytes()


def x_bytes():
    """Size of one array of the leak test; a leak of one a round would be two hundred of them."""
    return 101 * 101 * 11 * 4
