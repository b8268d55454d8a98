"""The library's CPU engine: descriptors, memory and primitives made and run on it (ADR 0013, D7, D14)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from nd4jlike import tags
from nd4jlike.adapters.onednn import libdnnl
from nd4jlike.adapters.onednn.libdnnl import Argument, Dims, Handle
from nd4jlike.adapters.onednn.memory_desc import MemoryDesc
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import UnsupportedLayoutError
from nd4jlike.ndarray import NdArray

__all__ = ["CACHED", "Engine", "bound", "engine_of", "memory_over", "primitive_of", "run_once", "shared_engine"]

CACHED = 256  # descriptors that are remembered


class Engine:
    """The library, loaded, and its CPU engine.

    Raises
    ------
    MissingLibraryError
        Where no libdnnl of version 3 is found; says what to install.

    Notes
    -----
    The library is found by `find_library` when the first engine is made. It runs as many threads as OpenMP gives it
    (``OMP_NUM_THREADS``). Engines, memories and primitives do not change once made: several threads may use one at a time, as long as
    nobody writes an array that another reads. There is nothing to close; what holds an object of the library's holds all that it needs.

    Examples
    --------
    >>> from nd4jlike.adapters.onednn import Engine, find_library
    >>> if find_library():
    ...     engine = Engine()
    """

    def __init__(self) -> None:
        self._library = libdnnl.load()
        self._handle = self._library.make("engine", "engine_create", libdnnl.CPU, 0)
        self._natives: dict[MemoryDesc, Handle] = {}

    @property
    def version(self) -> str:
        """Version of the library, such as ``"3.2.0"``."""
        return self._library.version

    @property
    def path(self) -> str:
        """The library's file."""
        return self._library.path

    def __repr__(self) -> str:
        return f"<Engine of oneDNN {self.version}: {self.path}>"

    def _native(self, desc: MemoryDesc) -> Handle:
        """Get the library's own descriptor of `desc`, but for the offset, which goes into the address."""
        found = self._natives.get(desc)
        if found is None:
            if len(self._natives) >= CACHED:
                self._natives.clear()
            found = self._natives[desc] = self._made(desc)
        return found

    def _made(self, desc: MemoryDesc) -> Handle:
        library, ndims, dims, code = self._library, desc.ndims, Dims(*desc.dims), libdnnl.TYPES[desc.data_type]
        if not desc.inner_nblks or 0 in desc.dims:
            return library.make("memory_desc", "memory_desc_create_with_strides", ndims, dims, code, Dims(*desc.strides))
        tag, room = (desc.tag, desc.dims) if desc.tag else _hosting_tag(desc)
        whole = library.make("memory_desc", "memory_desc_create_with_string_tag", ndims, Dims(*room), code, str(tag).encode())
        # At its end, where tails belong.
        start = (n - own for n, own in zip(room, desc.dims, strict=True))
        return whole if room == desc.dims else library.make("memory_desc", "memory_desc_create_submemory", whole, dims, Dims(*start))


def _hosting_tag(desc: MemoryDesc) -> tuple[str | None, tuple[int, ...]]:
    """Tag and dims of a dense buffer of which `desc` is the last part: the way to blocks with padding around them."""
    counts, order = desc._counts(), desc._order()
    single = [axis for axis in order if counts[axis] == 1]
    refusal = None
    # Axes of one block may lie anywhere: their strides contribute to no address. Or padding around them is a part of the others' strides.
    for left_out in itertools.chain([single], *(itertools.combinations(single, count) for count in range(len(single)))):
        try:
            return _walked_tag(desc, [axis for axis in order if axis not in left_out])
        except UnsupportedLayoutError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _walked_tag(desc: MemoryDesc, walked: list[int]) -> tuple[str | None, tuple[int, ...]]:
    """Take the strides of `walked`, slowest first, for those of the buffer."""
    products, counts, run = desc._products(), desc._counts(), math.prod(desc.inner_blks)
    order = [axis for axis in range(desc.ndims) if axis not in walked] + walked
    room = list(desc.dims)
    if walked and desc.strides[walked[-1]] != run:
        raise UnsupportedLayoutError(
            f"axis {walked[-1]} has stride {desc.strides[walked[-1]]}, oneDNN's blocked layouts have no gaps between blocks of {run}: {desc}"
        )
    for slow, fast in itertools.pairwise(walked):
        count, rest = divmod(desc.strides[slow], desc.strides[fast])
        if rest or count < counts[fast]:
            raise UnsupportedLayoutError(
                f"axis {slow} has stride {desc.strides[slow]}, no whole multiple of stride {desc.strides[fast]} of axis {fast} that has room for it: oneDNN's "
                f"blocked layouts are parts of dense buffers; {desc}"
            )
        room[fast] += (count - counts[fast]) * products[fast]
    return tags.canonical(tuple(order), tuple(zip(desc.inner_idxs, desc.inner_blks, strict=True))), tuple(room)


def memory_over(engine: Engine, md: Any, address: int, owner: Any) -> Handle:
    """Make the library's memory object over bytes that `owner` keeps alive; a part of a larger one has the address where that would begin."""
    return engine._library.make("memory", "memory_create", md, engine._handle, address, needs=(engine._handle, owner))


_engines: dict[str, Engine] = {}


def shared_engine() -> Engine:
    """One engine for all calls that name none."""
    with libdnnl.lock:
        path = libdnnl.load().path
        if path not in _engines:
            _engines[path] = Engine()
        return _engines[path]


def engine_of(engine: Engine | None) -> Engine:
    """Get the engine that a caller names, or the one that all calls share."""
    if engine is None:
        return shared_engine()
    if not isinstance(engine, Engine):
        raise TypeError(f"engine is an Engine or None, not {type(engine).__name__}")
    return engine


def bound(engine: Engine, primitive: Handle, scratch: int, arguments: dict[int, Handle]) -> Callable[[], None]:
    """Make the call that executes a primitive and waits; it keeps all that it needs."""
    library = engine._library
    stream = library.make("stream", "stream_create", engine._handle, libdnnl.IN_ORDER, needs=(engine._handle,))
    if scratch:
        room, desc = NdArray(ShapeDescriptor("uint8", "c", (scratch,))), MemoryDesc.from_strides((scratch,), data_type="u8")
        arguments = {**arguments, libdnnl.SCRATCHPAD: memory_over(engine, engine._native(desc), room.buffer.address, room)}
    listed = (Argument * len(arguments))(*(Argument(arg, handle._as_parameter_) for arg, handle in arguments.items()))
    kept = (primitive, arguments)

    def run() -> None:
        library.call("primitive_execute", kept[0], stream, len(listed), listed)
        library.call("stream_wait", stream)

    return run


def run_once(engine: Engine, primitive: Handle, scratch: int, arguments: dict[int, Handle]) -> None:
    """Execute a primitive once. Scratch memory is that of this call, so calls in several threads do not meet."""
    bound(engine, primitive, scratch, arguments)()


def primitive_of(engine: Engine, create: str, *arguments: Any, masks: dict[int, int] | None = None) -> tuple[Handle, Handle, int]:
    """Primitive, its descriptor and the bytes of scratch memory that a call needs. `masks` of scales and zero points, by argument."""
    library = engine._library
    attributes = library.make("primitive_attr", "primitive_attr_create")
    library.call("primitive_attr_set_scratchpad_mode", attributes, libdnnl.SCRATCHPAD_USER)
    for argument, mask in (masks or {}).items():
        what = "scales" if argument & libdnnl.SCALES else "zero_points"
        library.call(f"primitive_attr_set_{what}_mask", attributes, argument & ~(libdnnl.SCALES | libdnnl.ZERO_POINTS), mask)
    desc = library.make("primitive_desc", create, *arguments, attributes, needs=(engine._handle,))
    primitive = library.make("primitive", "primitive_create", desc, needs=(engine._handle,))
    return primitive, desc, library.size(library.query_md(desc, libdnnl.QUERY_SCRATCHPAD))
