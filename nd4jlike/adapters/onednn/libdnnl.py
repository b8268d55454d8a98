"""libdnnl through ctypes: found, loaded, its calls checked, its objects destroyed once (ADR 0013, D7, D8, D14)."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import os
import threading
import weakref
from typing import Any

from nd4jlike.adapters.onednn.memory_desc import MAX_NDIMS, MemoryDesc
from nd4jlike.dtypes import by_onednn
from nd4jlike.errors import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError, UnsupportedLayoutError

__all__ = ["Argument", "Handle", "Library", "OneDnnError", "find_library", "load", "lock"]

PACKAGE = "onednn-cpu-gomp"
VARIABLE = "ND4JLIKE_ONEDNN"

# The library. Codes are those of oneapi/dnnl/dnnl_types.h of version 3.

CPU, IN_ORDER = 1, 1  # dnnl_cpu, dnnl_stream_in_order
FORWARD_INFERENCE, CONVOLUTION_DIRECT, SCRATCHPAD_USER = 96, 1, 1
BLOCKED, ANY = 2, 1  # dnnl_format_kind_t, dnnl_format_tag_t
SRC, DST, WEIGHTS, BIAS, SCRATCHPAD = 1, 17, 33, 41, 80  # DNNL_ARG_..
SCALES, ZERO_POINTS = 4096, 8192  # DNNL_ARG_ATTR_.., added to an argument
PER_CHANNEL = 0b11  # mask of scales along C and M of weights
QUERY_IMPLEMENTATION, QUERY_STRIDES = 8, 14
QUERY_SRC, QUERY_WEIGHTS, QUERY_DST, QUERY_SCRATCHPAD = 129, 131, 133, 136
QUERY_NDIMS, QUERY_DIMS, QUERY_DATA_TYPE, QUERY_OFFSET, QUERY_PADDED, QUERY_PADDED_OFFSETS = range(256, 262)
QUERY_FORMAT_KIND, QUERY_INNER_NBLKS, QUERY_INNER_BLKS, QUERY_INNER_IDXS = range(262, 266)

# dnnl_status_t: name, words, error.
_STATUSES: dict[int, tuple[str, str, type[Exception]]] = {
    1: ("out_of_memory", "there is not enough memory", MemoryError),
    2: ("invalid_arguments", "the arguments contradict each other or the library's rules", LayoutError),
    3: ("unimplemented", "this build has no implementation for these layouts and data types", UnsupportedLayoutError),
    4: ("last_impl_reached", "there is no further implementation", UnsupportedLayoutError),
}
_FAILURES = {5: ("runtime_error", "the primitive or the engine failed"), 6: ("not_required", "the primitive needs no such thing")}

_Pointer = ctypes.c_void_p
Dims = ctypes.c_int64 * MAX_NDIMS
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "engine_create": (_Pointer, ctypes.c_int, ctypes.c_size_t),
    "stream_create": (_Pointer, _Pointer, ctypes.c_uint),
    "stream_wait": (_Pointer,),
    "memory_desc_create_with_tag": (_Pointer, ctypes.c_int, _Pointer, ctypes.c_int, ctypes.c_int),
    "memory_desc_create_with_string_tag": (_Pointer, ctypes.c_int, _Pointer, ctypes.c_int, ctypes.c_char_p),
    "memory_desc_create_with_strides": (_Pointer, ctypes.c_int, _Pointer, ctypes.c_int, _Pointer),
    "memory_desc_create_submemory": (_Pointer, _Pointer, _Pointer, _Pointer),
    "memory_desc_query": (_Pointer, ctypes.c_int, _Pointer),
    "memory_create": (_Pointer, _Pointer, _Pointer, _Pointer),
    "primitive_attr_create": (_Pointer,),
    "primitive_attr_set_scratchpad_mode": (_Pointer, ctypes.c_int),
    "primitive_attr_set_scales_mask": (_Pointer, ctypes.c_int, ctypes.c_int),
    "primitive_attr_set_zero_points_mask": (_Pointer, ctypes.c_int, ctypes.c_int),
    "reorder_primitive_desc_create": (_Pointer,) * 6,
    "convolution_forward_primitive_desc_create": (_Pointer, _Pointer, ctypes.c_int, ctypes.c_int, *(_Pointer,) * 9),
    "primitive_desc_query": (_Pointer, ctypes.c_int, ctypes.c_int, _Pointer),
    "primitive_create": (_Pointer, _Pointer),
    "primitive_execute": (_Pointer, _Pointer, ctypes.c_int, _Pointer),
    **{f"{kind}_destroy": (_Pointer,) for kind in ("engine", "stream", "memory", "memory_desc", "primitive", "primitive_desc", "primitive_attr")},
}


class OneDnnError(Nd4jLikeError, RuntimeError):
    """A call of the library that failed for another reason than its arguments."""


class Argument(ctypes.Structure):
    """`dnnl_exec_arg_t`: what a memory is to a primitive."""

    arg: int
    memory: int | None
    _fields_ = (("arg", ctypes.c_int), ("memory", _Pointer))


def find_library() -> str | None:
    """Path of the libdnnl that `Engine` loads; None where there is none. Loads nothing.

    Returns
    -------
    str or None
        The environment variable ``ND4JLIKE_ONEDNN`` if it is set and not empty; else the file of the package ``onednn-cpu-gomp``
        (extra ``onednn``); else what the system's linker finds.

    Examples
    --------
    >>> from nd4jlike.adapters.onednn import find_library
    >>> path = find_library()
    """
    named = os.environ.get(VARIABLE)
    if named:
        return named
    try:
        files = importlib.metadata.files(PACKAGE) or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.name == "libdnnl.so.3":
            return os.path.realpath(str(file.locate()))
    return ctypes.util.find_library("dnnl")


class Library:
    """A loaded libdnnl: checked calls, by name without ``dnnl_``."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._calls = ctypes.CDLL(path)
            version = self._calls.dnnl_version
            version.restype = ctypes.POINTER(ctypes.c_int)
            major, minor, patch = version()[:3]
            self.version = f"{major}.{minor}.{patch}"
            if major != 3:
                raise MissingLibraryError(f"{path} is oneDNN {self.version}, this adapter speaks version 3; {_install()}")
            for name, arguments in _SIGNATURES.items():
                getattr(self._calls, f"dnnl_{name}").argtypes = arguments
            self._calls.dnnl_memory_desc_get_size.argtypes = (_Pointer,)
            self._calls.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
            self._calls.dnnl_primitive_desc_query_md.argtypes = (_Pointer, ctypes.c_int, ctypes.c_int)
            self._calls.dnnl_primitive_desc_query_md.restype = _Pointer
        except (OSError, AttributeError) as error:
            raise MissingLibraryError(f"{path} is no oneDNN 3 that can be loaded: {error}; {_install()}") from error

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``dnnl_<name>``; every status but success is an error."""
        status = getattr(self._calls, f"dnnl_{name}")(*arguments)
        if status == 0:
            return
        if status in _STATUSES:
            word, reason, error = _STATUSES[status]
            raise error(f"dnnl_{name}: {word}, {reason} (oneDNN {self.version})")
        word, reason = _FAILURES.get(status, (f"status {status}", "the library gives no reason"))
        raise OneDnnError(f"dnnl_{name}: {word}, {reason} (oneDNN {self.version})")

    def make(self, kind: str, create: str, *arguments: Any, needs: tuple[Any, ...] = ()) -> Handle:
        """Call ``dnnl_<create>``, whose first argument receives the new object of `kind`; `needs` outlive it."""
        made = _Pointer()
        self.call(create, ctypes.byref(made), *arguments)
        return Handle(getattr(self._calls, f"dnnl_{kind}_destroy"), made.value, needs)

    def size(self, md: Any) -> int:
        """Bytes of a memory descriptor."""
        return int(self._calls.dnnl_memory_desc_get_size(md))

    def query_md(self, primitive_desc: Handle, what: int) -> Any:
        """Memory descriptor of a primitive; the primitive descriptor owns it."""
        return self._calls.dnnl_primitive_desc_query_md(primitive_desc, what, 0)

    def query(self, md: Any, what: int, result: Any) -> Any:
        """One figure of a memory descriptor."""
        self.call("memory_desc_query", md, what, ctypes.byref(result))
        return result

    def offset(self, md: Any) -> int:
        """Elements before the first one of a memory descriptor."""
        return int(self.query(md, QUERY_OFFSET, ctypes.c_int64()).value)

    def describe(self, md: Any) -> MemoryDesc:
        """Read a memory descriptor back; what fields do not tell is refused."""
        kind = self.query(md, QUERY_FORMAT_KIND, ctypes.c_int()).value
        if kind != BLOCKED:
            raise UnsupportedLayoutError(f"the library's layout is of its format kind {kind}, which has no strides")
        ndims = self.query(md, QUERY_NDIMS, ctypes.c_int()).value
        nblks = self.query(md, QUERY_INNER_NBLKS, ctypes.c_int()).value
        code = self.query(md, QUERY_DATA_TYPE, ctypes.c_int()).value

        def listed(what: int, count: int) -> tuple[int, ...]:
            return tuple(self.query(md, what, ctypes.POINTER(ctypes.c_int64)())[:count])

        if any(listed(QUERY_PADDED_OFFSETS, ndims)):
            raise UnsupportedLayoutError(f"the library's layout has padded_offsets {listed(QUERY_PADDED_OFFSETS, ndims)}")
        desc = MemoryDesc(
            listed(QUERY_DIMS, ndims), _data_type(code), listed(QUERY_PADDED, ndims), listed(QUERY_STRIDES, ndims),
            listed(QUERY_INNER_BLKS, nblks), listed(QUERY_INNER_IDXS, nblks), self.offset(md),
        )  # fmt: skip
        # Sizes differ by what no query tells: sums of weights behind the elements. (3.2 gives 0 for a submemory with an offset.)
        if desc.submemory_offset == 0 and self.size(md) != desc.size:
            raise UnsupportedLayoutError(f"the library keeps {self.size(md) - desc.size} bytes of its own behind the elements of {desc}")
        return desc


class Handle:
    """An object of the library's. It is destroyed once, when nothing holds it any more, and before what it needs."""

    def __init__(self, destroy: Any, pointer: int | None, needs: tuple[Any, ...]) -> None:
        self._as_parameter_ = pointer
        weakref.finalize(self, _destroy, destroy, pointer, needs).atexit = False


def _destroy(destroy: Any, pointer: int | None, needs: tuple[Any, ...]) -> None:
    destroy(pointer)
    del needs  # kept until here


def _install() -> str:
    return f"pip install 'nd4jlike[onednn]' (the package {PACKAGE}) installs one, or name the file of your own in {VARIABLE}"


def _data_type(code: int) -> str:
    for name, row in TYPES.items():
        if row == code:
            return name
    raise DTypeError(f"no element type for oneDNN's data type {code}: it must be one of {', '.join(TYPES)}")


TYPES = {name: by_onednn(name).onednn_code or 0 for name in ("f16", "bf16", "f32", "s32", "s8", "u8", "f64")}  # dnnl_data_type_t
lock = threading.RLock()
_libraries: dict[str, Library] = {}


def load() -> Library:
    """Load the library that `find_library` names, each file once."""
    path = find_library()
    if path is None:
        raise MissingLibraryError(f"oneDNN (libdnnl.so.3) is not installed; {_install()}")
    with lock:
        if path not in _libraries:
            _libraries[path] = Library(path)
        return _libraries[path]
