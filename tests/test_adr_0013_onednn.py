"""ADR 0013: oneDNN's memory descriptors, and the library on our memory.

The descriptions are compared with what the library answered (conformance file) and, where libdnnl is installed, with what it answers.
"""

import ctypes
import dataclasses
import gc
import importlib.metadata
import itertools
import math
import random
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nd4jlike as nd
from guards import guarded
from nd4jlike import DTypeError, LayoutError, MissingLibraryError, NdArray, OutOfRangeError, ShapeDescriptor, UnsupportedLayoutError, tags
from nd4jlike.adapters import onednn
from nd4jlike.adapters.onednn import Engine, Memory, MemoryDesc, OneDnnError, libdnnl, memory_desc
from nd4jlike.adapters.onednn import engine as engines
from nd4jlike.dtypes import by_onednn, codes
from nd4jlike.kernels import dispatch
from shared import conformance
from small import all_indices, numbered
from strategies import descriptors, padded_descriptors

FILE = "onednn_memory_desc.json"
NAMES = ("f16", "bf16", "f32", "s32", "s8", "u8", "f64")
LANES = 16 if "avx512" in dispatch.supported() else 8  # channels in a block that the library has kernels for, which read whole blocks
REFUSALS = {"invalid_arguments": LayoutError, "unimplemented": UnsupportedLayoutError}
STATUSES = {0: None, 2: LayoutError, 3: UnsupportedLayoutError}


@pytest.fixture(scope="module")
def engine():
    if onednn.find_library() is None:
        pytest.skip("libdnnl is not installed (extra onednn)")
    return Engine()


def skip_without(engine, dtype):
    """Skip where the library has no convolution of this element type for this processor."""
    if dtype == "bfloat16":
        try:
            onednn.DepthwiseConv2d((1, 4, 4, 4), NdArray(ShapeDescriptor(dtype, "c", (3, 3, 4, 1))), dst_dtype="float32", engine=engine)
        except UnsupportedLayoutError:
            pytest.skip("this oneDNN has no convolution of bfloat16 for this processor")


# The answers of the library, from the file


def agrees(desc, case):
    """Compare every figure of a case, and the offset of every element that it lists."""
    for name in ("padded_dims", "strides", "inner_blks", "inner_idxs"):
        if name in case:
            assert getattr(desc, name) == tuple(case[name]), (name, case)
    assert desc.size == case["size_bytes"], case
    assert desc.submemory_offset == case.get("offset0", 0), case
    for index, offset in case.get("offsets", ()):
        assert desc.offset_of(index) == offset, (index, case)


def answers(make, case):
    """`make` gives the figures of a case, or its refusal."""
    if case.get("status", "success") != "success":
        with pytest.raises(REFUSALS[case["status"]]):
            make()
        return
    desc = make()
    agrees(desc, case)
    rounded = tuple(-(-n // product) * product for n, product in zip(desc.dims, desc._products(), strict=True))
    if desc.padded_dims != rounded:
        with pytest.raises(UnsupportedLayoutError, match="rest of the block"):
            desc.to_descriptor()
        return
    d = desc.to_descriptor()
    for index, offset in case.get("offsets", ()):
        assert d.offset_of(index) == offset, (index, case)
    assert MemoryDesc.from_descriptor(d) == desc


def test_d2_every_tag_of_the_library():
    """D2: Its figures and the offset of every element are those that the library answers, for every tag and alias."""
    for case in conformance(FILE)["vectors"]:
        desc = MemoryDesc.from_tag(case["dims"], case["tag"], case["data_type"])
        answers(lambda desc=desc: desc, case)
        assert desc == MemoryDesc.from_tag(case["dims"], case["letter_tag"], case["data_type"])
        assert MemoryDesc.from_tag(desc.dims, desc.tag, desc.data_type) == desc
        assert desc.inner_nblks == len(case["inner_blks"])
        d = ShapeDescriptor.from_tag(case["dims"], case["tag"], by_onednn(case["data_type"]).dtype)
        assert (d.padded_shape, d.strides, d.inner_blocks) == (desc.padded_dims, desc.strides, tuple(zip(desc.inner_idxs, desc.inner_blks, strict=True)))
        assert d.allocLength() * d.itemsize == desc.size
        assert [d.offset_of(index) for index, _ in case["offsets"]] == [offset for _, offset in case["offsets"]]


def test_d2_zero_dimensions():
    """D2: Its figures are those that the library answers, zero dimensions included."""
    for case in conformance(FILE)["zero_dims"]:
        answers(lambda case=case: MemoryDesc.from_tag(case["dims"], case["tag"]), case)
        d = ShapeDescriptor.from_tag(case["dims"], case["tag"])
        assert (d.padded_shape, d.strides, d.allocLength()) == (tuple(case["padded_dims"]), tuple(case["strides"]), 0)
        assert NdArray(d).size == 0


def test_d2_strides():
    """D2: Its figures and the offset of every element are those that the library answers, for every set of strides."""
    for case in conformance(FILE)["strided"]:
        answers(lambda case=case: MemoryDesc.from_strides(case["dims"], case["strides"], case["data_type"]), case)
        if "max_offset" in case:
            d = MemoryDesc.from_strides(case["dims"], case["strides"]).to_descriptor()
            assert d.span_length() == case["max_offset"] + 1


def test_d2_types_below_one_byte():
    """D2: Data types below one byte are refused."""
    for case in conformance(FILE)["subbyte"]:
        with pytest.raises(DTypeError, match=f"{case['data_type']}.*below one byte"):
            MemoryDesc.from_tag(case["dims"], case["tag"], case["data_type"])
    for name in ("s4", "int4", "f4_e2m1"):
        with pytest.raises(DTypeError, match=f"{name}.*below one byte"):
            ShapeDescriptor(name, "c", (2,))
    with pytest.raises(DTypeError, match="f8_e5m2") as raised:
        MemoryDesc.from_tag((2,), "a", "f8_e5m2")
    assert "below" not in str(raised.value)


def test_d3_submemory():
    """D3: `submemory` answers as the library does, refusals included; so does the view of an array where it is one."""
    for case in conformance(FILE)["submemory"]:
        parent = MemoryDesc.from_tag(case["parent_dims"], case["parent_tag"])
        answers(lambda case=case, parent=parent: parent.submemory(case["dims"], case["sub_offsets"]), case)
        key = tuple(slice(start, start + n) for start, n in zip(case["sub_offsets"], case["dims"], strict=True))
        try:
            view = ShapeDescriptor.from_tag(case["parent_dims"], case["parent_tag"]).subarray(key)
        except UnsupportedLayoutError:
            assert case["status"] != "success" or tuple(case["padded_dims"]) != tuple(case["dims"]), case
            continue
        if case["status"] != "success":
            continue  # a view that the library has no submemory for
        for index, offset in case["offsets"]:
            assert view.offset_of(index) == offset
        desc = MemoryDesc.from_descriptor(view)
        assert [desc.offset_of(index) for index, _ in case["offsets"]] == [offset for _, offset in case["offsets"]]
        if desc.inner_blks == tuple(case["inner_blks"]):  # else the part lies in one block, and strides alone describe it
            assert (desc.padded_dims, desc.strides, desc.submemory_offset) == (tuple(case["padded_dims"]), tuple(case["strides"]), case["offset0"])


def test_d3_permute_axes():
    """D3: `permute_axes` answers as the library does, and as `ShapeDescriptor.permute` of the inverse."""
    for case in conformance(FILE)["permute_axes"]:
        desc = MemoryDesc.from_tag(case["dims"], case["tag"])
        answers(lambda desc=desc, case=case: desc.permute_axes(case["permutation"]), case)
        assert desc.permute_axes(case["permutation"]).dims == tuple(case["out_dims"])
        turned = ShapeDescriptor.from_tag(case["dims"], case["tag"]).permute(np.argsort(case["permutation"]))
        for index, offset in case["offsets"]:
            assert turned.offset_of(index) == offset


def test_d3_reshape():
    """D3: `reshape` answers as the library does, refusals included; so does that of an array where it is one."""
    for case in conformance(FILE)["reshape"]:
        desc = MemoryDesc.from_tag(case["dims"], case["tag"])
        answers(lambda desc=desc, case=case: desc.reshape(case["new_dims"]), case)
        whole = NdArray(desc.to_descriptor())
        if case["status"] == "success":
            view = whole.reshape(case["new_dims"], copy=False)
            assert view.buffer is whole.buffer
            assert view.descriptor.padded_shape == tuple(case["padded_dims"])
            assert [view.descriptor.offset_of(index) for index, _ in case["offsets"]] == [offset for _, offset in case["offsets"]]
        else:
            with pytest.raises((LayoutError, UnsupportedLayoutError)):
                whole.reshape(case["new_dims"], copy=False)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda d: d.submemory((1, 17, 5), (0, 0, 0)), LayoutError, "inside its parent"),
        (lambda d: d.submemory((1, 17, 5, 4), (0, 1, 0, 0)), LayoutError, "inside its parent.*17"),
        (lambda d: d.submemory((1, -1, 5, 4), (0, 0, 0, 0)), LayoutError, "0 or more"),
        (lambda d: d.submemory((1, 12, 5, 4), (0, 0, 0, 0)), UnsupportedLayoutError, "axis 1 has blocks of 8.*12 of 17"),
        (lambda d: d.submemory((1, 8, 5, 4), (0, 4, 0, 0)), UnsupportedLayoutError, "starts at 4"),
        (lambda d: d.permute_axes((0, 1, 2)), LayoutError, "permutation"),
        (lambda d: d.permute_axes((0, 1, 1, 2)), LayoutError, "permutation"),
        (lambda d: d.permute_axes((0, 1, 2, "3")), LayoutError, "a permutation must be integers"),
        (lambda d: d.permute_axes(3), LayoutError, "a permutation must be integers: 3"),
        (lambda d: MemoryDesc.from_tag((0,), "a").reshape((1,)), LayoutError, "axis 0 has no place in the new dims"),
        (lambda d: MemoryDesc.from_tag((2, 0), "ab").reshape((0, 2)), LayoutError, "an axis of extent 0 is neither joined nor split"),
        (lambda d: MemoryDesc((2, 3), "f32", (3, 3), (3, 1)).reshape((6,)), LayoutError, "only axes without blocks"),
        (lambda d: d.offset_of(3), LayoutError, "an index must be integers: 3"),
        (lambda d: d.reshape((17, 21)), LayoutError, "number of elements"),
        (lambda d: d.reshape((85, 4)), LayoutError, "axis 1 has blocks of 8"),
        (lambda d: d.reshape((1,) * 12 + (340,)), LayoutError, "13 dimensions"),
        (lambda d: d.permute_axes((1, 0, 3, 2)).reshape((17, 1, 20)), LayoutError, "not dense"),
        (lambda d: d.offset_of((0, 17, 0, 0)), OutOfRangeError, "17"),
        (lambda d: d.offset_of((0, 0, 0)), OutOfRangeError, "one index"),
    ],
)
def test_d3_refusals_say_why(act, error, message):
    """D3: `LayoutError` where it says invalid arguments, `UnsupportedLayoutError` where it says unimplemented."""
    desc = MemoryDesc.from_tag((1, 17, 5, 4), "nChw8c")
    with pytest.raises(error, match=message):
        act(desc)


def test_d4_answers_that_lose_blocks():
    """D4: we refuse a reshape that joins a blocked axis to another or drops a part of a block; `size` does not depend on the offset."""
    with pytest.raises(LayoutError, match="axis 1 has blocks of 3"):
        MemoryDesc((5, 2), "f32", (5, 2), (6, 3), (3,), (1,)).reshape((10,))
    for size in (2, 4):
        with pytest.raises(LayoutError, match=f"part of a block of {size}"):
            MemoryDesc.from_tag((5, 2), f"Ab{size}a").submemory((1, 2), (0, 0)).reshape((2,))
    whole = MemoryDesc.from_tag((4, 5), "ab")
    assert whole.submemory((2, 5), (2, 0)).size == whole.submemory((2, 5), (0, 0)).size == 40


# The value


def test_d1_fields_and_names():
    """D1: `MemoryDesc` has the library's field names, logical order and units, is a value, and needs no library."""
    desc = MemoryDesc.from_tag((1, 17, 5, 4), "nChw8c", "bf16")
    assert desc == MemoryDesc((1, 17, 5, 4), "bf16", (1, 24, 5, 4), (480, 160, 32, 8), (8,), (1,), 0)
    assert (desc.ndims, desc.inner_nblks, desc.inner_blks, desc.inner_idxs, desc.submemory_offset, desc.size) == (4, 1, (8,), (1,), 0, 960)
    assert len({desc, MemoryDesc.from_tag(np.array([1, 17, 5, 4]), "aBcd8b", "bf16")}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        desc.dims = ()
    code = (
        "import sys; import nd4jlike; before = set(sys.modules); from nd4jlike.adapters.onednn import MemoryDesc; "
        "MemoryDesc.from_tag((1, 17, 5, 4), 'nChw8c'); assert 'libdnnl' not in open('/proc/self/maps').read(); "
        "assert {name.partition('.')[0] for name in set(sys.modules) - before} <= {'nd4jlike', *sys.stdlib_module_names}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((), "f32", (), ()), LayoutError, "0 dimensions"),
        (((1,) * 13, "f32", (1,) * 13, (1,) * 13), LayoutError, "13 dimensions"),
        (((2, 3), "f32", (2,), (3, 1)), LayoutError, "one figure for each dimension"),
        (((2, 3), "f32", (2, 2), (3, 1)), LayoutError, "padded_dims hold dims"),
        (((2, -3), "f32", (2, 3), (3, 1)), LayoutError, "0 or more"),
        (((2, 2.5), "f32", (2, 3), (3, 1)), LayoutError, "integers"),
        (((2, 3), "f32", (2, 3), (-3, 1)), LayoutError, "axis 0 has stride -3"),
        (((2, 3), "f32", (2, 3), (3, 1), (0,), (1,)), LayoutError, "size of 1 or more"),
        (((2, 3), "f32", (2, 3), (3, 1), (4,), (2,)), LayoutError, "one of 2 axes"),
        (((2, 3), "f32", (2, 3), (3, 1), (4,), ()), LayoutError, "inner_idxs"),
        (((2, 3), "f32", (2, 3), (3, 1), (1,) * 13, (0,) * 13), LayoutError, "12 at most"),
        (((2, 3), "f32", (2, 3), (3, 1), (), (), -1), LayoutError, "submemory_offset"),
        (((2**61, 4), "f32", (2**61, 4), (4, 1)), LayoutError, "machine word"),
        (((2**61,), "f32", (2**61,), (1,)), LayoutError, "machine word"),
        (((2**61 - 1,), "f32", (2**61 - 1,), (1,), (), (), 1), LayoutError, "machine word"),
        (((2, 3), "q7", (2, 3), (3, 1)), DTypeError, "q7"),
        (((2, 3), ["f32"], (2, 3), (3, 1)), DTypeError, "f32"),
        ((2, "f32", (2,), (1,)), LayoutError, "dims must be integers: 2"),
        (((2,), "f32", (2,), 1), LayoutError, "strides must be integers: 1"),
    ],
)
def test_d1_a_value_is_checked(arguments, error, message):
    """D1: `MemoryDesc` is a value: one that describes nothing does not come to be."""
    with pytest.raises(error, match=message):
        MemoryDesc(*arguments)


def test_d1_the_largest_memory():
    """D1: `MemoryDesc` is a value: of as many bytes as the machine word counts, no more."""
    assert MemoryDesc((2**61 - 1,), "f32", (2**61 - 1,), (1,)).size == 2**63 - 4
    assert MemoryDesc((2**63 - 1,), "s8", (2**63 - 1,), (1,)).size == 2**63 - 1


@given(descriptors)
def test_d5_every_element_keeps_its_offset(d):
    """D5: `from_descriptor` keeps the offset of every element; paddings become strides and `submemory_offset`, the tail `padded_dims`."""
    if d.rank == 0 or codes(d.dtype).onednn is None:
        with pytest.raises((UnsupportedLayoutError, DTypeError)):
            MemoryDesc.from_descriptor(d)
        return
    desc = MemoryDesc.from_descriptor(d)
    assert (desc.dims, desc.data_type, desc.submemory_offset) == (d.shape, codes(d.dtype).onednn, d.offset)
    back = desc.to_descriptor()
    for index in itertools.islice(all_indices(d.shape), 200):
        assert desc.offset_of(index) == d.offset_of(index) == back.offset_of(index)
    assert all(n <= padded < n + product for n, padded, product in zip(desc.dims, desc.padded_dims, desc._products(), strict=True))
    assert back.allocLength() <= d.allocLength()
    assert back.validate() == 0


@pytest.mark.parametrize(
    ("descriptor", "error", "message"),
    [
        (ShapeDescriptor("float32", "c", ()), UnsupportedLayoutError, "0 axes"),
        (ShapeDescriptor("float32", "c", (1,) * 13), UnsupportedLayoutError, "13 axes"),
        (ShapeDescriptor("int16", "c", (2, 3)), DTypeError, "int16"),
        (ShapeDescriptor("bool", "c", (2, 3)), DTypeError, "bool"),
        (nd.asarray(np.zeros((4, 5), np.float32)[:, ::-1]).descriptor, UnsupportedLayoutError, "axis 1 has stride -1"),
        (ShapeDescriptor("float32", "c", (4, 5), (2, 1)), UnsupportedLayoutError, "axis 0 has stride 2.*overlap"),
    ],
)
def test_d5_refusals(descriptor, error, message):
    """D5: It refuses, with the axis, negative strides and overlapping elements, and element types and ranks that the library lacks."""
    with pytest.raises(error, match=message):
        MemoryDesc.from_descriptor(descriptor)
    with pytest.raises(TypeError, match="descriptor"):
        MemoryDesc.from_descriptor(NdArray(ShapeDescriptor("float32", "c", (2,))))


def test_d5_what_contributes_to_no_address():
    """D5: `from_descriptor` keeps the offset of every element: strides of axes of extent 1 and of empty shapes are as they are, 0 repeats."""
    once = np.zeros((4, 5), np.float32)[:1, ::-1][:, :1]
    assert MemoryDesc.from_descriptor(nd.asarray(once).descriptor).dims == (1, 1)
    assert MemoryDesc.from_descriptor(ShapeDescriptor("float32", "c", (0, 3), (-1, -1))).size == 0
    assert MemoryDesc.from_descriptor(nd.asarray(np.broadcast_to(np.float32(1), (3, 4))).descriptor).strides == (0, 0)


@given(st.data())
def test_d6_there_and_back(data):
    """D6: `to_descriptor` is its inverse but for paddings and the order of axes of equal strides, which the library does not know."""
    d = data.draw(descriptors.filter(lambda d: d.rank > 0 and codes(d.dtype).onednn and 1 not in d.shape))
    back = MemoryDesc.from_descriptor(d).to_descriptor()
    blocks = tuple(block for block in d.inner_blocks if block[1] > 1)
    axes = d.axes if len(set(d.strides)) == d.rank else back.axes
    assert back == ShapeDescriptor(d.dtype, "c", d.shape, d.strides, offset=d.offset, axes=axes, inner_blocks=blocks)
    assert MemoryDesc.from_descriptor(back) == MemoryDesc.from_descriptor(d)


def test_d6_a_part_of_a_block():
    """D6: it refuses a part that ends inside a block, the rest of which is another's elements."""
    part = MemoryDesc.from_tag((2, 17, 5, 4), "nChw8c").submemory((2, 5, 5, 4), (0, 8, 0, 0))
    assert part.padded_dims == (2, 5, 5, 4)
    with pytest.raises(UnsupportedLayoutError, match="axis 1 is 5 of 5 elements in blocks of 8"):
        part.to_descriptor()


# The library itself: descriptions


class Native:
    """The library's own descriptors, by its own functions."""

    def __init__(self, engine):
        self.native = engine._library
        pointer, calls = ctypes.c_void_p, engine._library._calls
        calls.dnnl_memory_desc_permute_axes.argtypes = (pointer, pointer, pointer)
        calls.dnnl_memory_desc_reshape.argtypes = (pointer, pointer, ctypes.c_int, pointer)

    def __call__(self, create, *arguments):
        """Status and new descriptor."""
        made = ctypes.c_void_p()
        status = getattr(self.native._calls, f"dnnl_memory_desc_{create}")(ctypes.byref(made), *arguments)
        return status, libdnnl.Handle(self.native._calls.dnnl_memory_desc_destroy, made.value, ())

    def agrees(self, md, desc):
        """Whether every figure is the same; 3.2 gives a submemory with an offset the size 0."""
        if desc.submemory_offset == 0:
            assert self.native.size(md) == desc.size, desc
        return self.native.describe(md) == desc


def dims(values):
    return libdnnl.Dims(*values)


def drawn_dims(rng, rank, blocks):
    """Extents around the blocks: one, fewer and more than one block, whole ones and not."""
    products = memory_desc.block_products(rank, blocks)
    return [rng.choice((1, rng.randint(1, 5), rng.randint(1, 2 * product + 3), product, product + 1)) for product in products]


def test_d2_the_library_knows_the_tags_so(engine):
    """D2: Its figures are those that the library answers, for every tag: each that it names, on a random shape."""
    native, calls, rng = Native(engine), engine._library._calls, random.Random(1)
    calls.dnnl_fmt_tag2str.restype = ctypes.c_char_p
    seen = 0
    for value in range(2, 2000):
        name = calls.dnnl_fmt_tag2str(value).decode()
        if not name.isalnum() or name == "undef":
            break  # behind the last tag
        axes, blocks = tags.parse(name)
        assert tags.canonical(axes, blocks) == name
        extents = drawn_dims(rng, len(axes), blocks)
        if seen % 8 == 0:
            extents[rng.randrange(len(axes))] = 0
        data_type = rng.choice(NAMES)
        status, md = native("create_with_tag", len(axes), dims(extents), libdnnl.TYPES[data_type], value)
        assert status == 0
        assert native.agrees(md, MemoryDesc.from_tag(extents, name, data_type)), (name, extents)
        seen += 1
    assert seen > 700


def test_d2_the_library_blocks_so(engine):
    """D2: Its figures are those that the library answers, for every user blocking and every set of strides: random ones."""
    native, rng = Native(engine), random.Random(2)
    refused = 0
    for _ in range(400):
        rank = rng.randint(1, 6)
        blocks = [(rng.randrange(rank), rng.randint(2, 7)) for _ in range(rng.choice((0, 1, 1, 2, 3, 4)))]
        tag = tags.canonical(tuple(rng.sample(range(rank), rank)), tuple(blocks))
        extents = drawn_dims(rng, rank, blocks)
        status, md = native("create_with_string_tag", rank, dims(extents), 3, tag.encode())
        assert status == 0
        assert native.agrees(md, MemoryDesc.from_tag(extents, tag)), (tag, extents)

        strides, reach = [0] * rank, 1
        for axis in rng.sample(range(rank), rank):
            strides[axis] = rng.choice((reach, reach, 2 * reach, reach + 1, rng.randint(-1, 9)))
            reach = max(1, strides[axis] * extents[axis])
        status, md = native("create_with_strides", rank, dims(extents), 3, dims(strides))
        if STATUSES[status]:
            refused += 1
            with pytest.raises(STATUSES[status]):
                MemoryDesc.from_strides(extents, strides)
        else:
            assert native.agrees(md, MemoryDesc.from_strides(extents, strides)), (extents, strides)
    assert 20 < refused < 300


def test_d3_the_library_answers_so(engine):
    """D3: `submemory`, `permute_axes` and `reshape` answer as the library does: random ones, one after the other."""
    native, rng = Native(engine), random.Random(3)
    outcomes = {"submemory": [0, 0], "reshape": [0, 0]}

    def compared(what, status, md, make):
        outcomes[what][bool(status)] += 1
        if status:
            with pytest.raises(STATUSES[status]):
                make()
            return None
        desc = make()
        assert native.agrees(md, desc), (what, desc)
        return desc

    for _ in range(400):
        rank = rng.randint(1, 5)
        blocks = [(rng.randrange(rank), rng.randint(2, 5)) for _ in range(rng.choice((0, 0, 1, 2, 3)))]
        tag = tags.canonical(tuple(rng.sample(range(rank), rank)), tuple(blocks))
        extents = drawn_dims(rng, rank, blocks)
        desc = MemoryDesc.from_tag(extents, tag)
        _, md = native("create_with_string_tag", rank, dims(extents), 3, tag.encode())

        turn = rng.sample(range(rank), rank)
        status, turned = native("permute_axes", md, (ctypes.c_int * 12)(*turn))
        assert status == 0
        assert native.agrees(turned, desc.permute_axes(turn))

        starts = [rng.choice((0, rng.randint(0, n), rng.randint(0, n) // p * p)) for n, p in zip(extents, desc._products(), strict=True)]
        part = [rng.choice((n - s, rng.randint(0, n - s))) for n, s in zip(extents, starts, strict=True)]
        status, sub = native("create_submemory", md, dims(part), dims(starts))
        small = compared("submemory", status, sub, lambda desc=desc, part=part, starts=starts: desc.submemory(part, starts))

        for whole, whole_md in ((desc, md), (small, sub)):
            if whole is None or 0 in whole.dims:
                continue
            new = []
            for n in whole.dims:
                factor = next((f for f in range(2, n) if n % f == 0), None)
                action = rng.random()
                if action < 0.2 and new and whole.inner_nblks == 0:
                    new[-1] *= n
                elif action < 0.4 and factor:
                    new += [factor, n // factor]
                elif n > 1 or action < 0.7:
                    new += [1] * (action > 0.9) + [n]
            new = new or [1]
            if any(padded == 1 < product for padded, product in zip(whole.padded_dims, whole._products(), strict=True)):
                continue  # D4
            status, shaped = native("reshape", whole_md, len(new), dims(new))
            compared("reshape", status, shaped, lambda whole=whole, new=new: whole.reshape(new))
    assert all(count > 30 for counts in outcomes.values() for count in counts), outcomes


# Finding and loading it


def test_d7_where_it_is_looked_for(monkeypatch, tmp_path):
    """D7: libdnnl is looked for in the file that `ND4JLIKE_ONEDNN` names, the package of the extra `onednn`, the system's linker."""
    monkeypatch.setenv(libdnnl.VARIABLE, "/somewhere/libdnnl.so")
    assert onednn.find_library() == "/somewhere/libdnnl.so"
    monkeypatch.setenv(libdnnl.VARIABLE, "")

    class File(type(Path())):
        def locate(self):
            return tmp_path / "lib" / self.name

    asked = []
    monkeypatch.setattr("importlib.metadata.files", lambda name: asked.append(name) or [File("x/libdnnl.so"), File("../../libdnnl.so.3")])
    assert onednn.find_library() == str((tmp_path / "lib" / "libdnnl.so.3").resolve())
    assert asked == ["onednn-cpu-gomp"]

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.files", absent)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: f"lib{name}.so.9")
    assert onednn.find_library() == "libdnnl.so.9"


def test_d7_missing_library(monkeypatch):
    """D7: Where it is absent, or no such library, `MissingLibraryError` says what to install."""
    monkeypatch.setattr(libdnnl, "find_library", lambda: None)
    calls = (
        Engine,
        lambda: Memory(nd.zeros((2,))),
        lambda: onednn.reorder(nd.zeros((2,)), nd.zeros((2,))),
        lambda: onednn.depthwise_conv2d(nd.zeros((1, 3, 3, 2)), np.ones((3, 3, 2, 1), np.float32)),
    )
    for call in calls:
        with pytest.raises(MissingLibraryError, match=r"pip install 'nd4jlike\[onednn\]'"):
            call()
    for path, reason in (("/nowhere/libdnnl.so.3", "cannot open"), (ctypes.util.find_library("c"), "dnnl_version")):
        monkeypatch.setattr(libdnnl, "find_library", lambda path=path: path)
        with pytest.raises(MissingLibraryError, match=f"{reason}.*{libdnnl.VARIABLE}"):
            Engine()


def test_d7_another_major_version(engine, monkeypatch):
    """D7: Where it is of another major version, `MissingLibraryError` says what to install."""

    class Old:
        def __init__(self, path):
            self.dnnl_version = lambda: [2, 7, 1, 0, 0]

    monkeypatch.setattr("ctypes.CDLL", Old)
    with pytest.raises(MissingLibraryError, match=r"oneDNN 2\.7\.1, this adapter speaks version 3.*pip install"):
        libdnnl.Library("libdnnl.so.2")
    assert engine.version.startswith("3.")
    assert engine.path in repr(engine)


def test_d8_statuses(engine, monkeypatch):
    """D8: Every status that is not success becomes an error with the function, the status and its meaning."""
    library = engine._library
    with pytest.raises(LayoutError, match=r"dnnl_engine_create: invalid_arguments, .*oneDNN 3"):
        library.make("engine", "engine_create", 77, 0)
    with pytest.raises(UnsupportedLayoutError, match=r"no depthwise convolution of f32.*by s8 weights.*dnnl_convolution_forward.*: (invalid_arg|unimpl)"):
        onednn.DepthwiseConv2d((1, 5, 5, 4), np.ones((3, 3, 4, 1), np.int8), dtype="float32")
    for status, error, words in (
        (1, MemoryError, "out_of_memory, there is not enough memory"),
        (2, LayoutError, "invalid_arguments"),
        (3, UnsupportedLayoutError, "unimplemented"),
        (4, UnsupportedLayoutError, "last_impl_reached"),
        (5, OneDnnError, "runtime_error, the primitive or the engine failed"),
        (99, OneDnnError, "status 99, the library gives no reason"),
    ):
        monkeypatch.setattr(library, "_calls", type("Calls", (), {"dnnl_stream_wait": staticmethod(lambda stream, status=status: status)}))
        with pytest.raises(error, match=f"dnnl_stream_wait: {words}"):
            library.call("stream_wait", None)


# Memory


def filled(descriptor, values=None):
    x = NdArray(descriptor)
    x[...] = numbered(descriptor.shape, np.float32) % 97 - 40 if values is None else values
    return x


def cells(x):
    """Every cell of the buffer, as bits."""
    return np.frombuffer(memoryview(x.buffer), f"u{x.itemsize}")


def poison(x, index, value):
    """Write `value` into a cell of the tail, by its index as if the axis went on."""
    desc = MemoryDesc.from_descriptor(x.descriptor)
    offset = dataclasses.replace(desc, dims=desc.padded_dims).offset_of(index)
    NdArray(ShapeDescriptor(x.dtype, "c", (1,), offset=offset), x.buffer)[0] = value


def test_d9_our_address(engine):
    """D9: `Memory` hands our address to the library, and nothing is copied."""
    for x in (
        filled(ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")),
        filled(ShapeDescriptor.from_tag((2, 3, 5, 4), "nchw", "bfloat16", (0, 0, 2, 3), (0, 0, 1, 1))),
        nd.asarray(np.ones((4, 6), np.int8))[1:, ::2],
    ):
        memory = Memory(x, engine=engine)
        assert memory.array is x
        assert memory.address == x.buffer.address + x.descriptor.offset * x.itemsize
        handle = ctypes.c_void_p()
        assert engine._library._calls.dnnl_memory_get_data_handle(ctypes.c_void_p(memory._handle._as_parameter_), ctypes.byref(handle)) == 0
        assert handle.value == memory.address
        assert memory.desc == MemoryDesc.from_descriptor(x.descriptor)
        assert f"{memory.address:#x}" in repr(memory)


def test_d9_size_and_alignment(engine):
    """D9: Misaligned arrays and arrays that are too small do not come to be; `alignment` asks for more."""
    d = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")
    with pytest.raises(LayoutError, match="1916 bytes, the layout needs 1920"):
        Memory(NdArray(d, bytearray(1916)), engine=engine)
    with pytest.raises(LayoutError, match="misaligned"):
        Memory(NdArray(d, memoryview(bytearray(2000))[1:1921]), engine=engine)
    x = NdArray(ShapeDescriptor("float32", "c", (4, 5), offset=1), bytearray(200))
    Memory(x, engine=engine, alignment=4)
    with pytest.raises(LayoutError, match="alignment must be an integer: 'a'"):
        Memory(x, engine=engine, alignment="a")
    aligned = Memory(NdArray(d), engine=engine, alignment=64)
    assert aligned.address % 64 == 0
    with pytest.raises(LayoutError, match="misaligned memory: 64 bytes asked for"):
        Memory(aligned.array[:, :, 1:, 1:], engine=engine, alignment=64)
    with pytest.raises(TypeError, match="asarray"):
        Memory(np.zeros(3), engine=engine)
    for wrong in ("cpu", 0, False):
        with pytest.raises(TypeError, match="engine is an Engine or None"):
            Memory(NdArray(d), engine=wrong)
    with pytest.raises(LayoutError, match="tail must be one of"):
        Memory(NdArray(d), engine=engine, tail="ignore")


@pytest.mark.parametrize("side", ["start", "end"])
def test_d9_nothing_beyond_the_last_cell(engine, side):
    """D9: The library reads and writes elements and the tail of blocks: pages before the first and behind the last cell are not readable."""
    strided = ShapeDescriptor("float32", "c", (2, 3, 4), (16, 5, 1))
    assert MemoryDesc.from_descriptor(strided).size > strided.allocLength() * 4
    for d in (strided, ShapeDescriptor.from_tag((2, 3, 4), "aBc8b"), ShapeDescriptor("float32", "c", (2, 3, 4)), ShapeDescriptor.from_tag((2, 3, 4), "acb")):
        x = NdArray(d, guarded(d.allocLength() * 4, side))
        x[...] = numbered(d.shape)
        dense = onednn.reorder(x, ShapeDescriptor("float32", "c", d.shape), engine=engine)
        assert np.array_equal(dense.to_numpy(), numbered(d.shape))
        again = NdArray(d, guarded(d.allocLength() * 4, side))
        onednn.reorder(dense, again, engine=engine)
        assert np.array_equal(again.to_numpy(), numbered(d.shape))


def test_d9_padding_is_not_touched(engine):
    """D9: The library reads and writes elements and the tail of blocks, not the padding around them."""
    for tag in ("nchw", "nhwc", "nChw8c"):
        d = ShapeDescriptor.from_tag((2, 17, 5, 4), tag, "float32", (1, 0, 3, 2), (1, 0, 1, 1))
        x = NdArray(d)
        x.fill_padding(np.nan)
        values = numbered(d.shape)
        before = cells(x).copy()
        onednn.reorder(nd.asarray(values), x, engine=engine)
        assert np.array_equal(x.to_numpy(), values)
        changed = np.flatnonzero(cells(x) != before)
        own = MemoryDesc.from_descriptor(d)
        whole = dataclasses.replace(own, dims=own.padded_dims)
        assert set(changed) == {whole.offset_of(index) for index in all_indices(whole.dims)}
        assert np.array_equal(onednn.reorder(x, ShapeDescriptor("float32", "c", d.shape), engine=engine).to_numpy(), values)


@pytest.mark.parametrize("padding", [2, 20])
def test_d9_padding_within_the_last_block_is_tail(engine, padding):
    """D9: not the padding around them; padding within the last block of an axis is tail to it."""
    x = NdArray(ShapeDescriptor.from_tag((5,), "A16a", paddings=(padding,)))
    x.fill_padding(7, "halo")
    with pytest.raises(LayoutError, match=rf"{min(padding, 11)} of 11 cells do not: \(5,\) holds 7"):
        Memory(x, engine=engine)
    onednn.reorder(nd.ones((5,)), x, engine=engine)
    hosted = x.hosting_array().to_numpy()
    assert hosted[:5].tolist() == [1] * 5
    assert not hosted[5:16].any()
    assert hosted[16:25].tolist() == [7] * max(0, padding - 11)
    Memory(x, engine=engine)


# The tail

TAGS = ("nChw8c", "nChw16c", "NChw4n8c", "nCHw2c4h4c", "ABcd2b8a4b", "hCwn16c")
TYPES = ("float32", "bfloat16", "float16", "int8", "uint8", "int32", "float64")


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("dtype", TYPES)
def test_d10_a_dirty_cell_is_found(engine, tag, dtype):
    """D10: `tail="check"` looks at the cells of the tail and names the first dirty cell, wherever it is."""
    d = ShapeDescriptor.from_tag((3, 17, 5, 2), tag, dtype, (1, 0, 0, 2), (0, 0, 0, 1) if tag != "NChw4n8c" else None)
    desc = MemoryDesc.from_descriptor(d)
    value = 3 if dtype in ("int8", "uint8", "int32") else np.nan
    around = dataclasses.replace(desc, dims=desc.padded_dims)
    tail = [index for index in all_indices(around.dims) if any(i >= n for i, n in zip(index, d.shape, strict=True))]
    for index in [*random.Random(tag).sample(tail, 12), tail[0], tail[-1]]:
        x = NdArray(d)
        Memory(x, engine=engine)
        poison(x, index, value)
        with pytest.raises(LayoutError, match=r"the tail of axis \d must hold zeros") as caught:
            Memory(x, engine=engine)
        assert f"{index} holds {value if value == 3 else 'nan'}" in str(caught.value)
        Memory(x, engine=engine, tail="trust")
        Memory(x, engine=engine, tail="zero")
        assert not cells(x).any()


@given(padded_descriptors(dtypes=("float32",)).filter(lambda d: d.rank > 0))
def test_d10_padding_around_is_no_tail(d):
    """D10: Cells of the tail must be zero; padding around the elements may hold anything."""
    if onednn.find_library() is None:
        pytest.skip("libdnnl is not installed (extra onednn)")
    x = NdArray(d)
    x.fill_padding(np.nan)
    Memory(x)


def dense_convolution(engine, x, outputs):
    """Sum over channels, as the library's dense convolution: a kernel of one element, all weights 1."""
    rows, channels, height, width = x.desc.dims
    weights = filled(ShapeDescriptor.from_tag((outputs, channels, 1, 1), f"OIhw{LANES}i{LANES}o"), 1)
    bound = Memory(weights, engine=engine)
    y = NdArray(ShapeDescriptor.from_tag((rows, outputs, height, width), f"nChw{LANES}c"))
    written = Memory(y, engine=engine)
    one, none = dims((1, 1)), dims((0, 0))
    primitive, _, scratch = engines.primitive_of(
        engine, "convolution_forward_primitive_desc_create", engine._handle, 96, 1, x._md, bound._md, None, written._md, one, none, none, none
    )
    x._clean()
    engines.run_once(engine, primitive, scratch, {1: x._handle, 33: bound._handle, 17: written._handle})
    return y


def test_d10_dirt_is_found_before_it_poisons_results(engine):
    """D10: `tail="check"` finds what `"trust"` lets poison every element of a dense convolution, and `"zero"` cleans it."""
    d = ShapeDescriptor.from_tag((1, 17, 3, 3), f"nChw{LANES}c")
    x = filled(d, 1)
    clean = Memory(x, engine=engine)
    assert np.array_equal(dense_convolution(engine, clean, 16).to_numpy(), np.full((1, 16, 3, 3), 17))
    for h, w in itertools.product(range(3), range(3)):
        poison(x, (0, 22, h, w), np.nan)
    assert np.isnan(dense_convolution(engine, Memory(x, engine=engine, tail="trust"), 16).to_numpy()).all()
    with pytest.raises(LayoutError, match=r"tail of axis 1.*\(0, 22, 0, 0\) holds nan"):
        Memory(x, engine=engine)
    with pytest.raises(LayoutError, match="holds nan"):  # made before, read now
        dense_convolution(engine, clean, 16)
    assert np.array_equal(dense_convolution(engine, Memory(x, engine=engine, tail="zero"), 16).to_numpy(), np.full((1, 16, 3, 3), 17))


def test_d10_each_reading_looks(engine):
    """D10: `tail="check"` looks each time that the memory is read: reorders and depthwise convolutions, arrays and memories."""
    x = filled(ShapeDescriptor.from_tag((1, 17, 6, 6), f"nChw{LANES}c"))
    kept = Memory(x, engine=engine)
    plan = onednn.DepthwiseConv2d(x.descriptor, np.ones((3, 3, 17, 1), np.float32), data_format="NCHW", engine=engine)
    good = plan(kept).to_numpy()
    poison(x, (0, 20, 3, 3), np.inf)
    for reading in (
        lambda: plan(kept),
        lambda: plan(x),
        lambda: onednn.depthwise_conv2d(x, np.ones((3, 3, 17, 1), np.float32), data_format="NCHW", engine=engine),
        lambda: onednn.reorder(x, nd.zeros(x.shape), engine=engine),
        lambda: onednn.reorder(kept, nd.zeros(x.shape), engine=engine),
    ):
        with pytest.raises(LayoutError, match=r"\(0, 20, 3, 3\) holds inf"):
            reading()
    result = plan(x, tail="trust")
    assert np.array_equal(result.to_numpy(), good)  # the channels of a depthwise convolution do not meet
    with pytest.raises(LayoutError, match="tail"):
        Memory(result, engine=engine)  # but the next layer would
    assert np.array_equal(plan(x, tail="zero").to_numpy(), good)
    assert plan(kept) is not None


def test_d10_zero_on_read_only(engine):
    """D10: `"zero"` writes zeros, so read-only memory is refused; a clean one is only looked at."""
    d = ShapeDescriptor.from_tag((1, 5, 1, 1), "nChw8c")
    x = NdArray(d, bytes(32))
    Memory(x, engine=engine)
    with pytest.raises(LayoutError, match="read-only"):
        Memory(x, engine=engine, tail="zero")


def test_d10_what_was_known_about_the_padding(engine):
    """D10: zeros that the library writes into a tail are known to the array: it looks at its padding from then on."""
    x = NdArray(ShapeDescriptor.from_tag((1, 17, 2, 2), "nChw8c"))
    x.fill_padding(7)
    assert not x.buffer.shared
    onednn.reorder(nd.ones(x.shape), x, engine=engine)
    assert x.buffer.shared
    assert x.check_padding(0)


# What it cannot express


@pytest.mark.parametrize(
    ("tag", "paddings", "padding_offsets"),
    [
        ("nChw8c", (0, 0, 2, 2), (0, 0, 1, 1)),
        ("nChw8c", (3, 7, 2, 2), (1, 0, 1, 1)),
        ("nChw8c", (0, 8, 0, 0), (0, 0, 0, 0)),
        ("nChw8c", (0, 16, 2, 2), (0, 8, 1, 1)),
        ("nChw16c", (0, 0, 3, 0), (0, 0, 0, 0)),
        ("NChw4n8c", (0, 0, 2, 2), (0, 0, 1, 1)),
        ("NChw4n8c", (8, 16, 2, 2), (4, 8, 1, 1)),
        ("nhwc", (0, 9, 2, 2), (0, 3, 1, 1)),
        ("nchw", (1, 2, 3, 4), (1, 1, 1, 1)),
        ("whnc", (1, 2, 3, 4), (0, 1, 0, 1)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_d11_padding_around_the_elements(engine, tag, paddings, padding_offsets, dtype):
    """D11: What the library cannot express is refused, never copied; padding around the elements is passed as it is."""
    x = NdArray(ShapeDescriptor.from_tag((2, 17, 5, 4), tag, dtype, paddings, padding_offsets))
    values = numbered(x.shape, np.int64) % 100 - 50
    x[...] = values.astype("int8") if dtype == "int8" else values.astype(np.float32)
    assert Memory(x, engine=engine).desc == MemoryDesc.from_descriptor(x.descriptor)
    dense = onednn.reorder(x, ShapeDescriptor("float32", "c", x.shape), engine=engine)
    assert np.array_equal(dense.to_numpy(), values)
    # Written as well: elements, and zeros in the rest of their own blocks; nothing else.
    y = NdArray(x.descriptor)
    y.fill_padding(7)
    y[...] = 7
    onednn.reorder(dense, y, engine=engine)
    assert np.array_equal(onednn.reorder(y, ShapeDescriptor("float32", "c", x.shape), engine=engine).to_numpy(), values)
    sevens, zeros = ((cells(y) == cells(nd.full((1,), value, dtype=dtype))[0]).sum() for value in (7, 0))
    own = x.descriptor.length if not x.descriptor.inner_blocks else math.prod(MemoryDesc.from_descriptor(x.descriptor).padded_dims)
    assert sevens == y.descriptor.allocLength() - own + (values == 7).sum()
    assert zeros == own - x.descriptor.length + (values == 0).sum()


def test_d11_channels_from_the_second_block_on(engine):
    """D11: of blocked layouts with padding, parts of a dense buffer are passed as they are."""
    x = NdArray(ShapeDescriptor.from_tag((2, 17, 5, 4), "nChw8c"))
    values = numbered(x.shape, np.float32)
    x[...] = values
    for part in (slice(8, None), slice(16, None), slice(None, 16), slice(8, 16)):
        assert np.array_equal(onednn.reorder(x[:, part], nd.ShapeDescriptor("float32", "c", values[:, part].shape), engine=engine).to_numpy(), values[:, part])
    onednn.reorder(nd.asarray(-values[:, 8:]), x[:, 8:], engine=engine)
    assert np.array_equal(x.to_numpy(copy=True), np.concatenate([values[:, :8], -values[:, 8:]], 1))
    assert x.check_padding()


@pytest.mark.parametrize("paddings", [((0, 0, 2, 2), (0, 0, 1, 1)), ((0, 0, 0, 2), (0, 0, 0, 1)), ((1, 0, 3, 0), (0, 0, 1, 0))])
@pytest.mark.parametrize("shape", [(1, 17, 5, 1), (2, 8, 1, 3), (1, 8, 1, 1), (2, 17, 1, 1)])
def test_d11_axes_of_one_block_with_a_halo(engine, shape, paddings):
    """D11: of blocked layouts with padding, parts of a dense buffer are passed as they are: padding around an axis of extent 1 shows in the others' strides."""
    x = NdArray(ShapeDescriptor.from_tag(shape, "nChw8c", "float32", *paddings))
    x.fill_padding(9, where="halo")
    x[...] = numbered(shape, np.float32)
    assert np.array_equal(onednn.reorder(x, "nchw", engine=engine).to_numpy(), x.to_numpy())
    assert onednn.reorder(onednn.reorder(x, "nchw", engine=engine), x, engine=engine) is x
    assert x.check_padding(9, where="halo")


def test_d11_no_part_of_a_dense_buffer(engine):
    """D11: of blocked layouts with padding those that are no part of a dense buffer are refused."""
    for strides, message in (
        ((1000, 481, 32, 8), "axis 0 has stride 1000, no whole multiple of stride 481 of axis 1"),
        ((3000, 1000, 50, 10), "no gaps between blocks of 8"),
    ):
        d = ShapeDescriptor("float32", "c", (2, 16, 5, 4), strides, inner_blocks=((1, 8),))
        with pytest.raises(UnsupportedLayoutError, match=message):
            Memory(NdArray(d), engine=engine)


# Reorder


@pytest.mark.parametrize(("shape", "tags"), [((0, 3), "ba ab"), ((0,), "A4a a A8a"), ((0, 3, 1, 1), "abcd bcda aBcd8b"), ((2, 0, 3, 3), "nChw8c nhwc")])
def test_d12_nothing_to_move(engine, shape, tags):
    """D12: `reorder` puts each element where the destination's descriptor says, none where there is none."""
    for source, target in itertools.product(tags.split(), repeat=2):
        x = NdArray(ShapeDescriptor.from_tag(shape, source))
        assert onednn.reorder(x, ShapeDescriptor.from_tag(shape, target), engine=engine).shape == shape


@pytest.mark.parametrize("tag", ["nhwc", "nchw", "nChw8c", "nChw16c"])
def test_d13_an_empty_batch(engine, tag):
    """D13: `DepthwiseConv2d` runs on arrays as they lie; its results are those of ours: of no image, none."""
    x = NdArray(ShapeDescriptor.from_tag((0, 8, 5, 5), tag))
    y = onednn.depthwise_conv2d(x, np.ones((3, 3, 8, 1), np.float32), stride=2, data_format="NCHW", engine=engine)
    assert y.shape == (0, 8, 3, 3)


def test_d12_seventeen_channels_in_blocks_of_eight(engine):
    """D12: `reorder` puts each element where the destination's descriptor says and zeros into its tail: C = 17 into nChw8c."""
    for dtype in ("float32", "bfloat16", "float16", "int8", "uint8", "int32"):
        x = nd.create((1, 17, 5, 4), dtype=dtype)
        x[...] = (numbered(x.shape, np.int64) % 100 + 1).astype(np.float32 if "float" in dtype else dtype)
        y = NdArray(ShapeDescriptor.from_tag(x.shape, "nChw8c", dtype), bytearray(b"\xaa" * 480 * x.itemsize))
        assert onednn.reorder(x, y, engine=engine) is y
        memory, source = cells(y), cells(x)
        for n, c, h, w in all_indices(x.shape):
            # The rule in words: block of eight channels, row, column, channel in the block.
            assert memory[(((n * 3 + c // 8) * 5 + h) * 4 + w) * 8 + c % 8] == source[((n * 17 + c) * 5 + h) * 4 + w]
        tail = memory.reshape(3, 20, 8)[2, :, 1:]
        assert tail.size == 140
        assert not tail.any()
        assert y.check_padding()
        assert np.array_equal(cells(onednn.reorder(y, x.descriptor, engine=engine)), source)


def test_d12_as_ours(engine):
    """D12: `reorder` puts each element where the destination's descriptor says and zeros into its tail: bit by bit as our own `reorder` does."""
    rng = random.Random(21)
    for _ in range(60):
        shape = tuple(rng.choice((1, 2, 3, 7, 8, 17, 33)) for _ in range(4))
        names = ("nchw", "nhwc", "chwn", "nChw8c", "nChw16c", "NChw8n4c", "nCHw4h2c3h", "Abcd5a2a", "OIhw4i16o4i", "aBcd8b")
        dtype = rng.choice(("float32", "int8", "bfloat16", "int32", "float16"))
        x = NdArray(ShapeDescriptor.from_tag(shape, rng.choice(names), dtype))
        x[...] = np.random.default_rng(rng.randrange(99)).integers(-100, 100, shape).astype(np.float32 if "float" in dtype else dtype)
        target = ShapeDescriptor.from_tag(shape, rng.choice(names), dtype)
        made = onednn.reorder(x, target, engine=engine)
        assert np.array_equal(cells(nd.reorder(x, target)), cells(made)), (x.descriptor, target)
        # A tag is read over the axes of what is read, and keeps its element type.
        for source in (x, onednn.Memory(x, engine=engine)):
            tagged = onednn.reorder(source, target.tag, engine=engine)
            assert tagged.descriptor == target
            assert np.array_equal(cells(tagged), cells(made))


def test_d12_between_layouts_and_types(engine):
    """D12: `reorder` puts each element where the destination's descriptor says, and converts element types."""
    rng = random.Random(12)
    for _ in range(60):
        shape = tuple(rng.choice((1, 2, 3, 7, 8, 17)) for _ in range(4))
        tags_ = ("nchw", "nhwc", "chwn", "nChw8c", "nChw16c", "NChw8n4c", "nCHw4h2c3h", "Abcd5a2a")
        dtypes = rng.choice((("float32", "int8"), ("bfloat16", "float32"), ("float32", "int32"), ("int8", "int8"), ("bfloat16", "bfloat16")))
        layouts = [ShapeDescriptor.from_tag(shape, rng.choice(tags_), dtype) for dtype in rng.sample(dtypes, 2)]
        values = np.random.default_rng(rng.randrange(99)).integers(-100, 100, shape)
        x = NdArray(layouts[0])
        x[...] = values.astype(np.float32 if "float" in str(x.dtype) else str(x.dtype))
        y = NdArray(layouts[1])
        y.fill_padding(1)
        onednn.reorder(x, y, engine=engine)
        wide = NdArray(ShapeDescriptor("float32", "c", shape))
        onednn.reorder(y, wide, engine=engine)
        assert np.array_equal(wide.to_numpy(), values)
        assert y.check_padding(0)
    halves = nd.asarray(np.array([0.5, 1.5, 2.5, -0.5, 300, -300], np.float32))
    assert onednn.reorder(halves, ShapeDescriptor("int8", "c", (6,)), engine=engine).to_numpy().tolist() == [0, 2, 2, 0, 127, -128]


def test_d12_views_and_empties(engine):
    """D12: `reorder` puts each element where the destination's descriptor says: views, repeated elements, empty and odd-shaped arrays."""
    base = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    for view in (base[:, :, ::2, 1:4], base.T, base[:, 1], base[0, 0, 0, 0:1], np.broadcast_to(base[0, 0, 0], (3, 5)), base[:0], base[:, :, :1, :1]):
        y = onednn.reorder(nd.asarray(view), ShapeDescriptor("float32", "f", view.shape), engine=engine)
        assert np.array_equal(y.to_numpy(), view)
    blocked = ShapeDescriptor.from_tag((0, 17, 2, 2), "nChw8c")
    assert onednn.reorder(NdArray(blocked), blocked, engine=engine).size == 0


def test_d12_tags_that_are_none(engine):
    """D12: refuses tags that do not name the axes, and takes those that name them in other words."""
    x = nd.arange(12).reshape(1, 3, 2, 2)
    for tag, message in (("nhw", "the tag has 3 axes"), ("nh?c", "position 2"), ("", "position 0")):
        with pytest.raises(LayoutError, match=message):
            onednn.reorder(x, tag, engine=engine)
    assert onednn.reorder(x, "nhwc", engine=engine).descriptor == ShapeDescriptor.from_tag(x.shape, "acdb")
    with pytest.raises(TypeError, match="not tuple"):
        onednn.reorder(x, (1, 3, 2, 2), engine=engine)


def test_d12_refusals(engine):
    """D12: refuses shapes that differ, a read-only destination and memory that overlaps; nothing is written then."""
    x = nd.ones((4, 6))
    with pytest.raises(LayoutError, match=r"keeps the shape: \(4, 6\) to \(6, 4\)"):
        onednn.reorder(x, nd.zeros((6, 4)), engine=engine)
    with pytest.raises(LayoutError, match="read-only"):
        onednn.reorder(x, NdArray(ShapeDescriptor("float32", "c", (4, 6)), bytes(96)), engine=engine)
    with pytest.raises(LayoutError, match="overlaps"):
        onednn.reorder(x, x, engine=engine)
    with pytest.raises(LayoutError, match="overlaps"):
        onednn.reorder(x[:3], x[1:], engine=engine)
    with pytest.raises(DTypeError, match="int64"):
        onednn.reorder(nd.zeros((2,), dtype="int64"), nd.zeros((2,)), engine=engine)
    assert np.array_equal(x.to_numpy(), np.ones((4, 6)))
    onednn.reorder(x[:2], x[2:], engine=engine)


# Convolution

GEOMETRIES = (
    {"padding": "same"},
    {"padding": "valid"},
    {"padding": "same", "stride": 2},
    {"padding": ((1, 2), (0, 3)), "stride": (2, 1)},
    {"padding": 2, "dilation": 2},
)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("tag", ["nchw", "nhwc", "nChw8c", "nChw16c"])
def test_d13_results_are_ours(engine, tag, multiplier, geometry):
    """D13: its results are those of ours, compared by logical elements: float32, exact on small integers."""
    rng = np.random.default_rng(5)
    values = rng.integers(-9, 9, (2, 17, 9, 8)).astype(np.float32)
    weights = rng.integers(-4, 4, (3, 3, 17, multiplier)).astype(np.float32)
    bias = rng.integers(-9, 9, 17 * multiplier).astype(np.float32)
    expected = nd.depthwise_conv2d(values, weights, bias, data_format="NCHW", **geometry).to_numpy()
    x = filled(ShapeDescriptor.from_tag(values.shape, tag), values)
    plan = onednn.DepthwiseConv2d(x.descriptor, weights, bias, data_format="NCHW", engine=engine, **geometry)
    y = plan(x)
    assert np.array_equal(y.to_numpy(), expected)
    assert y.check_padding()
    assert y.descriptor == plan.dst_descriptor
    assert y.descriptor.tag == x.descriptor.tag
    again = onednn.depthwise_conv2d(x.permute((0, 2, 3, 1)), weights, bias, engine=engine, **geometry)
    assert np.array_equal(again.to_numpy(), expected.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "uint8"])
@pytest.mark.parametrize("tag", ["nhwc", "nChw16c", "nChw8c"])
def test_d13_other_element_types(engine, tag, dtype):
    """D13: its results are those of ours: bfloat16 and bytes, whose sums are exact in float32."""
    skip_without(engine, dtype)
    rng = np.random.default_rng(6)
    values = rng.integers(0 if dtype == "uint8" else -100, 100, (1, 17, 7, 6))
    weights = 2 * rng.integers(-50, 50, (3, 3, 17, 1))  # which the library may halve for int8 inputs
    bias = rng.integers(-100, 100, 17)
    expected = nd.depthwise_conv2d(values.astype(np.float32), weights.astype(np.float32), bias.astype(np.float32), data_format="NCHW").to_numpy()
    x = NdArray(ShapeDescriptor.from_tag(values.shape, tag, dtype))
    w = NdArray(ShapeDescriptor("bfloat16" if dtype == "bfloat16" else "int8", "c", weights.shape))
    x[...], w[...] = (v.astype(np.float32 if dtype == "bfloat16" else a.dtype) for v, a in ((values, x), (weights, w)))
    wide = "float32" if dtype == "bfloat16" else "int32"
    y = onednn.depthwise_conv2d(x, w, bias.astype(wide), data_format="NCHW", dst_dtype="float32" if dtype == "bfloat16" else None, engine=engine)
    assert str(y.dtype) == wide
    assert np.array_equal(y.to_numpy(), expected)


@pytest.mark.parametrize("tag", ["nhwc", "nChw16c"])
def test_d13_sums_of_bytes_are_ours(engine, tag):
    """D13: its results are those of ours: its int32 sums, scaled by XNNPACK's rule (ADR 0006 D6), are our int8 results."""
    rng = np.random.default_rng(10)
    values = rng.integers(-128, 128, (1, 17, 9, 8)).astype(np.int8)
    weights = (2 * rng.integers(-63, 64, (3, 3, 17, 1))).astype(np.int8)  # which the library may halve
    bias = rng.integers(-2000, 2000, 17).astype(np.int32)
    scales = rng.uniform(0.001, 0.02, 17).astype(np.float32)
    quantization = nd.Quantization(input=(0.04, 0), weights=scales, output=(0.15, -7))
    ours = nd.depthwise_conv2d(values, weights, bias, data_format="NCHW", quantization=quantization, rounding="xnnpack").to_numpy()
    sums = onednn.depthwise_conv2d(filled(ShapeDescriptor.from_tag(values.shape, tag, "int8"), values), weights, bias, data_format="NCHW", engine=engine)
    scale = (np.float32(0.04) * scales / np.float32(0.15)).reshape(1, 17, 1, 1)
    assert np.array_equal(np.clip(np.rint(sums.to_numpy().astype(np.float32) * scale) - 7, -128, 127), ours)
    assert len(np.unique(ours)) > 100


@pytest.mark.parametrize(("dtype", "zero"), [("int8", 0), ("int8", -3), ("uint8", 0), ("uint8", 131)])
@pytest.mark.parametrize("scales", [17, 1])
def test_d15_scaled_bytes(engine, dtype, zero, scales):
    """D15: With `quantization` the library scales, adds the zero points and rounds: its results are within one of ours."""
    rng = np.random.default_rng(11)
    values = rng.integers(0, 256, (2, 9, 8, 17)).astype(np.uint8).astype(dtype)
    weights, bias = (2 * rng.integers(-63, 64, (3, 3, 17, 1))).astype(np.int8), rng.integers(-2000, 2000, 17).astype(np.int32)
    weight_scales = rng.uniform(0.001, 0.02, scales).astype(np.float32)
    shift = 128 if dtype == "uint8" else 0
    quantization = nd.Quantization(input=(0.04, zero), weights=weight_scales, output=(0.15, shift - 7))
    plan = onednn.DepthwiseConv2d(values.shape, weights, bias, dtype=dtype, stride=2, quantization=quantization, engine=engine)
    result = plan(filled(plan.src_descriptor, values))
    assert result.dtype == dtype
    # In one call, on the elements as they lie, dense or in blocks, into a new array or one that is there.
    options = {"stride": 2, "quantization": quantization, "engine": engine}
    for tag in (None, "aCdb", "aBcd8b", "aBcd16b"):
        x = nd.asarray(values) if tag is None else nd.reorder(values.transpose(0, 3, 1, 2), tag).permute((0, 2, 3, 1))
        called = onednn.depthwise_conv2d(x, weights, bias, **options)
        assert called.dtype == dtype
        assert np.array_equal(called.to_numpy(), result.to_numpy()), tag
    out = nd.create(result.shape, dtype=dtype, paddings=(0, 1, 1, 0))
    assert onednn.depthwise_conv2d(values, weights, bias, out=out, **options) is out
    assert np.array_equal(out.to_numpy(), result.to_numpy())
    signed = nd.Quantization(input=(0.04, zero - shift), weights=weight_scales, output=(0.15, -7))
    ours = nd.depthwise_conv2d((values.astype(np.int16) - shift).astype(np.int8), weights, bias, stride=2, quantization=signed, rounding="xnnpack")
    difference = np.abs(result.to_numpy().astype(np.int16) - shift - ours.to_numpy())
    assert difference.max() <= 1
    assert (difference == 0).mean() > 0.99
    assert len(np.unique(ours.to_numpy())) > 100


def test_d15_quantization_is_for_bytes(engine):
    """D15: With `quantization` the library scales bytes; other types, zero points and numbers of scales are refused."""
    weights, quantization = np.ones((3, 3, 4, 1), np.int8), nd.Quantization((0.5, 0), [0.5] * 4, (0.5, 0))
    with pytest.raises(nd.LayoutError, match="scales bytes to bytes: src s8, dst s32"):
        onednn.DepthwiseConv2d((1, 4, 4, 4), weights, dst_dtype="int32", quantization=quantization, engine=engine)
    with pytest.raises(nd.LayoutError, match="zero point must be an uint8"):
        onednn.DepthwiseConv2d((1, 4, 4, 4), weights, dtype="uint8", quantization=nd.Quantization((0.5, -1), 0.5, (0.5, 0)), engine=engine)
    with pytest.raises(nd.LayoutError, match="3 scales for 4 channels"):
        onednn.DepthwiseConv2d((1, 4, 4, 4), weights, quantization=nd.Quantization((0.5, 0), [0.5] * 3, (0.5, 0)), engine=engine)


@pytest.mark.parametrize(("dtype", "dst_dtype", "zero_point"), [("int8", "uint8", 200), ("uint8", "int8", -100), ("int8", "int8", 100), ("uint8", None, 200)])
def test_d15_the_type_of_the_result(engine, dtype, dst_dtype, zero_point):
    """D15: The result has the type of the input unless `dst` or `dst_dtype` says another one of bytes, whose range is that of the output's zero point."""
    rng = np.random.default_rng(0)
    x, weights = rng.integers(0, 100, (1, 6, 5, 8)).astype(dtype), (2 * rng.integers(-9, 10, (3, 3, 8, 1))).astype(np.int8)
    quantization = nd.Quantization((0.05, 3), 0.25, (0.5, zero_point))
    found = onednn.depthwise_conv2d(x, weights, dst_dtype=dst_dtype, quantization=quantization, engine=engine)
    assert found.dtype == (dst_dtype or dtype)
    padded = np.pad(x.astype(np.int64) - 3, ((0, 0), (1, 1), (1, 1), (0, 0)))
    sums = sum(padded[:, i : i + 6, j : j + 5] * weights[i, j, :, 0] for i in range(3) for j in range(3))
    limits = np.iinfo(found.dtype)
    want = np.clip(np.rint(sums * (0.05 * 0.25 / 0.5)) + zero_point, limits.min, limits.max)
    assert np.abs(found.to_numpy() - want).max() <= 1
    asks = [{"dst_dtype": dst_dtype}]
    if dst_dtype:
        asks.append({"out": nd.zeros(x.shape, dst_dtype)})
        assert np.array_equal(onednn.depthwise_conv2d(x, weights, quantization=quantization, engine=engine, **asks[1]), found)
    beyond = nd.Quantization((0.05, 3), 0.25, (0.5, limits.max + 1))
    for ask in asks:
        with pytest.raises(LayoutError, match=f"output zero point must be an {limits.dtype}, {limits.min} to {limits.max}: {limits.max + 1}"):
            onednn.depthwise_conv2d(x, weights, quantization=beyond, engine=engine, **ask)


def test_d15_weights_of_int8(engine):
    """D15: The bias is int32, and the weights are int8 and have no zero point; others are refused."""
    quantization = nd.Quantization((0.05, 3), 0.25, (0.5, 7))
    for of in ("int8", "uint8"):
        for dtype in ("uint8", "float32"):
            with pytest.raises(DTypeError, match=f"weights must be int8 with quantization: {dtype}$"):
                onednn.depthwise_conv2d(np.ones((1, 4, 4, 8), of), np.ones((3, 3, 8, 1), dtype), quantization=quantization, engine=engine)


def test_d15_a_bias_of_int32_and_no_zero_point_of_weights(engine):
    """D15: The bias is int32, and the weights are int8 and have no zero point; others are refused."""
    shape, weights = (1, 4, 4, 8), np.ones((3, 3, 8, 1), np.int8)
    quantization = nd.Quantization((0.5, 0), 0.5, (0.5, 0))
    for bias in (np.ones(8, np.float32), np.ones(8, np.float16), np.ones(8, np.uint8), NdArray(ShapeDescriptor("bfloat16", "c", (8,))), [0.5] * 8):
        with pytest.raises(DTypeError, match=r"bias must be int32 with quantization: \w+$"):
            onednn.DepthwiseConv2d(shape, weights, bias, quantization=quantization, engine=engine)
    zero = nd.Quantization((0.5, 0), 0.5, (0.5, 0), weights_zero_point=3)
    for other in (weights, weights.view(np.uint8)):
        with pytest.raises(LayoutError, match=r"weights zero point must be 0.*: 3"):
            onednn.DepthwiseConv2d(shape, other, dtype="uint8", quantization=zero, engine=engine)
    for output in (None, "float32"):
        with pytest.raises(LayoutError, match="bytes to bytes"):
            onednn.DepthwiseConv2d(shape, weights, quantization=nd.Quantization((0.5, 0), 0.5, output), engine=engine)
    listed, given = (onednn.DepthwiseConv2d(shape, weights, bias, quantization=quantization, engine=engine) for bias in ([40] * 8, np.full(8, 40, np.int32)))
    x = nd.ones(shape, dtype="int8")
    assert np.array_equal(listed(filled(listed.src_descriptor, x)).to_numpy(), given(filled(given.src_descriptor, x)).to_numpy())


def test_d12_arrays_of_numpy(engine):
    """D12: It reads what `asarray` takes, and writes to NumPy's arrays, too."""
    values = np.arange(1 * 17 * 5 * 4, dtype=np.float32).reshape(1, 17, 5, 4)
    blocked = onednn.reorder(values, "nChw8c", engine=engine)
    assert blocked.tolist() == values.tolist()
    assert onednn.reorder(values[:, ::2], "nchw", engine=engine).tolist() == values[:, ::2].tolist()
    assert onednn.reorder(memoryview(values), "nhwc", engine=engine).tolist() == values.tolist()
    target = np.zeros_like(values)
    assert onednn.reorder(blocked, target, engine=engine).data_ptr() == target.ctypes.data
    assert np.array_equal(target, values)
    target.flags.writeable = False
    with pytest.raises(LayoutError, match="read-only"):
        onednn.reorder(blocked, target, engine=engine)


def test_d16_bind(engine):
    """D16: `bind` checks two arrays once and gives a call that checks nothing any more."""
    plan = onednn.DepthwiseConv2d((1, 6, 5, 17), np.ones((3, 3, 17, 1), np.float32), engine=engine)
    x, y = NdArray(plan.src_descriptor), NdArray(plan.dst_descriptor)
    convolve = plan.bind(x, y)
    for value in (1, 2):
        x[...] = value
        assert convolve() is None
        assert y[0, 2, 2, 16] == 9 * value
    with pytest.raises(nd.LayoutError, match="overlaps"):
        plan.bind(x, x)
    with pytest.raises(nd.LayoutError, match="another layout"):
        plan.bind(x, nd.zeros((1, 5, 6, 17)).permute((0, 2, 1, 3)))
    del x
    convolve()  # it keeps the arrays
    assert y[0, 0, 0, 0] == 8


def test_d13_padded_input_and_output(engine):
    """D13: `DepthwiseConv2d` runs on arrays as they lie: a halo around the image is neither read nor written."""
    rng = np.random.default_rng(7)
    values, weights = rng.standard_normal((1, 12, 11, 17), np.float32), rng.standard_normal((5, 5, 17, 1), np.float32)
    plan = nd.DepthwiseConv2d(weights)
    x = NdArray(plan.input_descriptor(values.shape))
    assert x.descriptor.has_padded_buffer
    x.fill_padding(np.nan)
    x[...] = values
    out = nd.create(values.shape, paddings=(0, 2, 2, 3), padding_offsets=(0, 1, 1, 0))
    out.fill_padding(5)
    assert onednn.depthwise_conv2d(x, weights, out=out, engine=engine) is out
    np.testing.assert_allclose(out.to_numpy(), plan(values).to_numpy(), rtol=1e-4, atol=1e-4)
    assert out.check_padding(5)


@pytest.mark.parametrize(
    ("data_format", "shape", "dtype"), [("NHWC", (2, 9, 9, 17), "float32"), ("NCHW", (1, 33, 8, 8), "float32"), ("NHWC", (1, 8, 8, 40), "bfloat16")]
)
def test_d13_any_is_a_descriptor(engine, data_format, shape, dtype):
    """D13: Layouts left to the library (its `any`) come back as descriptors that `NdArray` allocates."""
    skip_without(engine, dtype)
    rng = np.random.default_rng(8)
    channels = shape["NHWC".index("C") if data_format == "NHWC" else 1]
    values, weights = rng.integers(-5, 5, shape).astype(np.float32), rng.integers(-3, 3, (3, 3, channels, 1)).astype(np.float32)
    w = NdArray(ShapeDescriptor(dtype, "c", weights.shape))
    w[...] = weights
    plan = onednn.DepthwiseConv2d(shape, w, data_format=data_format, dst_dtype="float32", engine=engine)
    assert plan.src_descriptor.shape == shape
    assert plan.src_descriptor.validate() == 0
    x = filled(plan.src_descriptor, values)
    out = NdArray(plan.dst_descriptor)
    assert plan(x, out) is out
    assert np.array_equal(out.to_numpy(), nd.depthwise_conv2d(values, weights, data_format=data_format).to_numpy())
    assert plan.weights_desc.dims == (channels, 1, 1, 3, 3)
    assert plan.implementation
    assert plan.implementation in repr(plan)


def test_d13_any_of_bytes_is_a_descriptor(engine):
    """D13: Layouts left to the library (its `any`) come back as descriptors that `NdArray` allocates; its own bytes behind weights are told."""
    signed = onednn.DepthwiseConv2d((1, 8, 8, 17), np.ones((3, 3, 17, 1), np.int8), engine=engine)
    extra = engine._library.size(engine._library.query_md(signed._pd, 131)) - 17 * 9
    assert NdArray(signed.dst_descriptor).dtype == np.int32
    if "int8" in signed.implementation and extra > 15 * 9:
        with pytest.raises(UnsupportedLayoutError, match="bytes of its own behind"):
            assert signed.weights_desc


@pytest.mark.parametrize("weights_format", ["HWCM", "MCHW", "MHWC", "C1HW"])
def test_d13_weights(engine, weights_format):
    """D13: Weights are reordered once: later changes do not reach the results; every format is read as ours is."""
    rng = np.random.default_rng(9)
    values = rng.integers(-9, 9, (1, 6, 6, 5)).astype(np.float32)
    hwcm = rng.integers(-4, 4, (3, 2, 5, 2)).astype(np.float32)
    order = {"HWCM": (0, 1, 2, 3), "MCHW": (3, 2, 0, 1), "MHWC": (3, 0, 1, 2)}.get(weights_format)
    weights = hwcm.transpose(order).copy() if order else hwcm.transpose(2, 3, 0, 1).reshape(10, 1, 3, 2).copy()
    bias = np.arange(10, dtype=np.float32)
    expected = nd.depthwise_conv2d(values, weights, bias, weights_format=weights_format).to_numpy()
    plan = onednn.DepthwiseConv2d(values.shape, weights, bias, weights_format=weights_format, engine=engine)
    weights[...] = 0
    bias[...] = 0
    assert np.array_equal(plan(filled(plan.src_descriptor, values)).to_numpy(), expected)


def test_d13_refusals(engine):
    """D13: `DepthwiseConv2d` runs on arrays as they lie: another layout than the configured one is refused, not copied."""
    weights = np.ones((3, 3, 17, 1), np.float32)
    plan = onednn.DepthwiseConv2d(ShapeDescriptor("float32", "c", (1, 6, 6, 17)), weights, engine=engine)
    x = nd.ones((1, 6, 6, 17))
    for wrong in (
        nd.ones((1, 6, 6, 17), paddings=(0, 0, 0, 1)),
        NdArray(ShapeDescriptor.from_tag((1, 17, 6, 6), "nChw16c").permute((0, 2, 3, 1))),
        nd.ones((1, 6, 6, 17), dtype="float64"),
        nd.ones((2, 6, 6, 17)),
    ):
        with pytest.raises(LayoutError, match=r"another layout than the configured one.*reorder"):
            plan(wrong)
    with pytest.raises(LayoutError, match="out has another layout"):
        plan(x, nd.zeros((1, 6, 17, 6)))
    with pytest.raises(LayoutError, match="overlaps"):
        plan(x, x)
    with pytest.raises(LayoutError, match="read-only"):
        plan(x, NdArray(plan.dst_descriptor, bytes(plan.dst_descriptor.allocLength() * 4)))
    with pytest.raises(LayoutError, match="four axes"):
        plan(np.ones((1, 6, 6, 17), np.float32))
    for arguments, message in (
        (((1, 6, 6), weights), "four axes NHWC"),
        (((1, 6, 6, 16), weights), "not for 16 channels"),
        (((1, 6, 6, 17), weights, np.ones(16, np.float32)), "17 output channels"),
        (((1, 1, 1, 17), weights), "no window fits"),
    ):
        with pytest.raises(LayoutError, match=message):
            onednn.DepthwiseConv2d(*arguments, padding="valid", engine=engine)
    with pytest.raises(LayoutError, match=r"dst has shape \(1, 6, 6, 18\), the result \(1, 6, 6, 17\)"):
        onednn.DepthwiseConv2d((1, 6, 6, 17), weights, dst=ShapeDescriptor("float32", "c", (1, 6, 6, 18)), engine=engine)
    with pytest.raises(LayoutError, match="data_format"):
        onednn.DepthwiseConv2d((1, 6, 6, 17), weights, data_format="CHWN", engine=engine)
    for wrong in ({"engine": "cpu"}, {"engine": 0}, {"engine": False}, {"dst": "nhwc"}, {"dst": 0}, {"quantization": "no"}):
        (name, value), *_ = wrong.items()
        with pytest.raises(TypeError, match=rf"^{name} is an? \w+ or None, not {type(value).__name__}$"):
            onednn.DepthwiseConv2d((1, 6, 6, 17), weights, **{"engine": engine} | wrong)


def test_d13_element_types_that_contradict_layouts(engine):
    """D13: Element types beside layouts that contradict them are refused."""
    weights, d = np.ones((3, 3, 8, 1), np.float32), ShapeDescriptor("float32", "c", (1, 5, 5, 8))
    for arguments in ({"dtype": "int8"}, {"dst": d, "dst_dtype": "int32"}):
        with pytest.raises(DTypeError, match=r"has elements of float32, asked for are int\d+"):
            onednn.DepthwiseConv2d(d, weights, engine=engine, **arguments)
    with pytest.raises(DTypeError, match="dst has elements of float32"):
        onednn.depthwise_conv2d(NdArray(d), weights, dst_dtype="int32", out=NdArray(d), engine=engine)
    plan = onednn.DepthwiseConv2d(d, weights, dst=d, dtype="float32", dst_dtype=np.float32, engine=engine)
    assert plan(nd.ones((1, 5, 5, 8)))[0, 2, 2, 0] == 9


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_d13_a_bias_of_pythons_numbers(engine, dtype):
    """D13: its results are those of ours: with Python's numbers for a bias, too."""
    # Even: without VNNI oneDNN halves int8 weights.
    x, weights = np.ones((1, 5, 5, 8), dtype), np.full((3, 3, 8, 1), 2, dtype)
    for bias in ([2] * 8, [0.5] * 8) if dtype == "float32" else ([2] * 8,):
        result = onednn.depthwise_conv2d(x, weights, bias, engine=engine)
        assert np.array_equal(result.to_numpy(), onednn.depthwise_conv2d(x, weights, np.array(bias, result.dtype), engine=engine).to_numpy())
        assert result[0, 2, 2, 0] == 18 + bias[0]
    if dtype == "int8":
        with pytest.raises(DTypeError, match="no data type for int64 elements"):
            onednn.depthwise_conv2d(x, weights, [2**40] * 8, engine=engine)
        assert onednn.depthwise_conv2d(x, weights, [0.5] * 8, dst_dtype="float32", engine=engine)[0, 2, 2, 0] == 18.5


# Lifetimes and threads


def test_d14_a_memory_keeps_its_array(engine):
    """D14: a `Memory` keeps its array, and lets it go."""
    base = np.ones((2, 3, 4), np.float32)
    gone = weakref.ref(base)
    memory = Memory(nd.asarray(base)[:, 1:], engine=engine)
    del base
    gc.collect()
    assert gone() is not None
    assert onednn.reorder(memory, nd.zeros((2, 2, 4)), engine=engine).to_numpy().sum() == 16
    del memory
    gc.collect()
    assert gone() is None


def test_d14_destroyed_once_in_order(engine, monkeypatch):
    """D14: An object of the library is destroyed once, after the last Python object that holds it and before what it needs."""
    log, made = [], []
    destroy, make = libdnnl._destroy, libdnnl.Library.make

    def watched(function, pointer, needs):
        log.append((function.__name__, pointer))
        destroy(function, pointer, needs)

    def making(self, kind, create, *arguments, needs=()):
        handle = make(self, kind, create, *arguments, needs=needs)
        made.append((f"dnnl_{kind}_destroy", handle._as_parameter_))
        return handle

    monkeypatch.setattr(libdnnl, "_destroy", watched)
    monkeypatch.setattr(libdnnl.Library, "make", making)
    own = Engine()
    x = filled(ShapeDescriptor.from_tag((1, 17, 5, 5), "nChw16c"))
    plan = onednn.DepthwiseConv2d(x.descriptor, np.ones((3, 3, 17, 1), np.float32), np.ones(17, np.float32), data_format="NCHW", engine=own)
    memory = Memory(x, engine=own)
    plan(memory)
    engine_pointer = ("dnnl_engine_destroy", own._handle._as_parameter_)
    # A cycle of all of them: the collector may take them in any order.
    cycle = {"engine": own, "plan": plan, "memory": memory}
    cycle["itself"] = cycle
    own.cycle = plan.cycle = memory.cycle = cycle
    del own, plan, memory, cycle
    gc.collect()
    assert len(made) > 10
    assert sorted(log) == sorted(made)
    assert log[-1] == engine_pointer or all(name == "dnnl_memory_desc_destroy" for name, _ in log[log.index(engine_pointer) + 1 :])


def test_d14_several_threads(engine):
    """D14: Several threads may use one engine, memory or convolution at a time."""
    weights = np.arange(9 * 33, dtype=np.float32).reshape(3, 3, 33, 1) % 7 - 3
    plan = onednn.DepthwiseConv2d(ShapeDescriptor.from_tag((1, 33, 9, 9), "nChw16c"), weights, data_format="NCHW", engine=engine)
    inputs = [filled(plan.src_descriptor, (numbered(plan.src_descriptor.shape) * (i + 1)) % 11) for i in range(4)]
    memories = [Memory(x, engine=engine) for x in inputs]
    expected = [plan(x).to_numpy() for x in inputs]
    wrong = []

    def work(which):
        for _ in range(15):
            blocked = plan(memories[which % 4] if which % 2 else inputs[which % 4])
            plain = onednn.reorder(blocked, ShapeDescriptor("float32", "c", blocked.shape), engine=engine)
            if not np.array_equal(plain.to_numpy(), expected[which % 4]):
                wrong.append(which)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_d14_many_times_no_more_memory(engine):
    """D14: An object of the library is destroyed: a thousand memories leave the process as large as it was."""

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1])

    x = nd.ones((1, 8, 64, 64))
    y = nd.zeros((1, 8, 64, 64))

    def rounds(count):
        for _ in range(count):
            onednn.reorder(Memory(x, engine=engine), Memory(y, engine=engine))

    def growth():
        before = resident()
        rounds(500)
        return (resident() - before) * 4096

    rounds(200)
    # What is lost is lost each time; what else the process does with its memory is not.
    assert min(growth() for _ in range(4)) < 2**20
    assert math.prod(x.shape) == y.to_numpy().sum()


def test_d17_rooms():
    """D17: The adapter is a package: `memory_desc` imports no `ctypes`; the others follow, each importing only those before it."""
    order = ("memory_desc", "libdnnl", "engine", "memory", "convolution", "__init__")
    home = Path(onednn.__file__).parent
    assert {path.stem for path in home.glob("*.py")} == set(order)
    for place, name in enumerate(order):
        text = (home / f"{name}.py").read_text()
        used = set(re.findall(r"^from nd4jlike\.adapters\.onednn(?: import |\.)(\w+)", text, re.MULTILINE))
        assert used <= set(order[:place]), (name, used)
        assert name != "memory_desc" or "ctypes" not in text
