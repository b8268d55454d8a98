"""Element types: one table of the codes that every library gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nd4jlike.errors import DTypeError, MissingLibraryError, UnsupportedLayoutError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "BFloat16",
    "DType",
    "DTypeCodes",
    "are_large_integers",
    "bfloat16",
    "bfloat16_to_float32",
    "bits_dtype",
    "by_arm_compute",
    "by_dlpack",
    "by_libnd4j_flags",
    "by_onednn",
    "codes",
    "dtype",
    "float32_to_bfloat16",
    "numpy_dtype",
    "refuse_references",
    "untyped",
]


class BFloat16:
    """The element type that NumPy lacks: the upper half of a float32. One instance, `bfloat16`.

    Equal to the string ``"bfloat16"`` and to the dtype of that name of the `ml_dtypes` package.
    """

    name = "bfloat16"
    itemsize = 2
    kind = "V"

    def __repr__(self) -> str:
        return "nd4jlike.bfloat16"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return other is self or getattr(other, "name", other) == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> str:
        return "bfloat16"


bfloat16 = BFloat16()
DType = np.dtype[Any] | BFloat16


class DTypeCodes(NamedTuple):
    """One row of the table: an element type and its codes elsewhere; None where a library lacks it."""

    dtype: DType
    name: str
    itemsize: int
    libnd4j: str
    libnd4j_flags: int
    arm_compute: tuple[str, ...]  # the first is what a plain array becomes
    onednn: str | None
    onednn_code: int | None
    dlpack: tuple[int, int]  # type code, bits
    pep3118: str | None


_UNSIGNED = 1 << 23


def _row(
    name: str,
    libnd4j: str,
    flags: int,
    arm: tuple[str, ...],
    onednn: tuple[str, int] | None,
    dlpack: int,
    pep3118: str | None,
) -> DTypeCodes:
    dt: DType = bfloat16 if name == "bfloat16" else np.dtype(name)
    one_name, one_code = onednn if onednn else (None, None)
    return DTypeCodes(dt, name, dt.itemsize, libnd4j, flags, arm, one_name, one_code, (dlpack, 8 * dt.itemsize), pep3118)


# DLPack type codes: 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool.
_TABLE = (
    _row("float32", "FLOAT32", 1 << 13, ("F32",), ("f32", 3), 2, "f"),
    _row("float64", "DOUBLE", 1 << 14, ("F64",), ("f64", 7), 2, "d"),
    _row("float16", "HALF", 1 << 12, ("F16",), ("f16", 1), 2, "e"),
    _row("bfloat16", "BFLOAT16", 1 << 11, ("BFLOAT16",), ("bf16", 2), 4, None),
    _row("int8", "INT8", 1 << 15, ("S8", "QASYMM8_SIGNED", "QSYMM8", "QSYMM8_PER_CHANNEL"), ("s8", 5), 0, "b"),
    _row("int16", "INT16", 1 << 16, ("S16", "QSYMM16"), None, 0, "h"),
    _row("int32", "INT32", 1 << 17, ("S32",), ("s32", 4), 0, "i"),
    _row("int64", "INT64", 1 << 18, ("S64",), None, 0, "q"),
    _row("uint8", "UINT8", _UNSIGNED | 1 << 15, ("U8", "QASYMM8"), ("u8", 6), 1, "B"),
    _row("uint16", "UINT16", _UNSIGNED | 1 << 16, ("U16", "QASYMM16"), None, 1, "H"),
    _row("uint32", "UINT32", _UNSIGNED | 1 << 17, ("U32",), None, 1, "I"),
    _row("uint64", "UINT64", _UNSIGNED | 1 << 18, ("U64", "SIZET"), None, 1, "Q"),
    _row("bool", "BOOL", 1 << 19, (), None, 6, "?"),
)

_BY_NAME = {row.name: row for row in _TABLE}
# What is asked for most, found without NumPy's help: names, NumPy's dtypes and scalar types.
_KNOWN: dict[Any, DTypeCodes] = {key: row for row in _TABLE for key in (row.name, row.libnd4j, row.dtype, getattr(row.dtype, "type", row.dtype))}
# NumPy's own of them, each by every dtype that equals it, for whoever cannot afford a call.
NUMPY_TYPES = {row.dtype: row.dtype for row in _TABLE if isinstance(row.dtype, np.dtype)}
_BY_FLAGS = {row.libnd4j_flags: row for row in _TABLE}
_BY_ARM = {name: row for row in _TABLE for name in row.arm_compute}
_BY_ONEDNN = {row.onednn: row for row in _TABLE if row.onednn}
_BY_DLPACK = {row.dlpack: row for row in _TABLE}
_DTYPE_MASK = sum({bit for row in _TABLE for bit in (row.libnd4j_flags & ~_UNSIGNED, _UNSIGNED)})


def codes(spec: npt.DTypeLike | BFloat16) -> DTypeCodes:
    """Find the row of an element type.

    Parameters
    ----------
    spec : dtype, str or type
        Anything `numpy.dtype` takes (``"u4"`` has four bytes there), `bfloat16`, or a libnd4j name such as ``"HALF"``.

    Returns
    -------
    DTypeCodes
        The row; `DTypeCodes.dtype` is the canonical element type.

    Raises
    ------
    DTypeError
        For a type that no row has, and for byte orders other than the machine's.
    """
    try:
        row = _KNOWN.get(spec)
    except (TypeError, ValueError):  # not hashable
        row = None
    if row is None and spec is not None:
        try:
            found = np.dtype(spec)  # type: ignore[arg-type]
        except (TypeError, ValueError, SyntaxError):  # NumPy reads some texts as Python
            pass
        else:
            row = _BY_NAME.get(found.name) if found.isnative else None
    if row is not None:
        return row
    raise DTypeError(f"no element type {spec!r}: it must be one of {', '.join(_BY_NAME)}, in native byte order{_why(spec)}")


def _why(name: object) -> str:
    """Say what is wrong with types of less than a byte: `s4`, `int4`, `f4_e2m1`; and with a number where a type should be: `zeros(2, 3)`."""
    if isinstance(name, int):
        return "; a shape is one tuple, as (2, 3)"
    return "; types below one byte are not addressable" if isinstance(name, str) and re.match(r"(s|u|f|int|uint|float)[1-7](_|$)", name) else ""


def dtype(spec: npt.DTypeLike | BFloat16) -> DType:
    """Canonical element type of `spec`: a NumPy dtype, or `bfloat16`.

    Parameters
    ----------
    spec : dtype, str or type
        See `codes`.

    Returns
    -------
    numpy.dtype or BFloat16
        The element type.

    Raises
    ------
    DTypeError
        For a type that is not in the table.

    Examples
    --------
    >>> from nd4jlike.dtypes import dtype
    >>> dtype("HALF"), dtype("bfloat16").itemsize
    (dtype('float16'), 2)
    """
    return codes(spec).dtype


def by_libnd4j_flags(extra: int) -> DTypeCodes | None:
    """Row of the data type bits in libnd4j's `extra` word; None when it has none."""
    flags = extra & _DTYPE_MASK
    if flags == 0:
        return None
    row = _BY_FLAGS.get(flags)
    if row is None:
        raise DTypeError(f"no element type has libnd4j's flags {flags:#x} (in extra {extra:#x})")
    return row


def by_arm_compute(name: str) -> DTypeCodes:
    """Row of an `arm_compute::DataType` name."""
    if not isinstance(name, str) or name not in _BY_ARM:
        known = _KNOWN.get(name) if isinstance(name, str | type | np.dtype) else None
        why = f"; {known.name} is {known.arm_compute[0]} there" if known is not None and known.arm_compute else ""
        raise DTypeError(f"no element type for arm_compute's {name!r}: it must be one of {', '.join(_BY_ARM)}{why}")
    return _BY_ARM[name]


def by_onednn(name: str) -> DTypeCodes:
    """Row of a oneDNN data type name."""
    if not isinstance(name, str) or name not in _BY_ONEDNN:
        raise DTypeError(f"no element type for oneDNN's {name!r}: it must be one of {', '.join(_BY_ONEDNN)}{_why(name)}")
    return _BY_ONEDNN[name]


def by_dlpack(code: int, bits: int, lanes: int) -> DTypeCodes:
    """Row of a DLPack data type."""
    row = _BY_DLPACK.get((code, bits)) if lanes == 1 else None
    if row is None:
        raise DTypeError(f"no element type for DLPack's code {code}, {bits} bits, {lanes} lanes: it must be one of {', '.join(_BY_NAME)}, 1 lane")
    return row


def numpy_dtype(spec: DType) -> np.dtype[Any]:
    """NumPy dtype that carries `spec` without a copy.

    Raises
    ------
    MissingLibraryError
        For bfloat16 where `ml_dtypes` is not installed.
    """
    if not isinstance(spec, BFloat16):
        return spec
    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingLibraryError("NumPy has no bfloat16; pip install ml_dtypes adds it") from error
    carrier: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return carrier


def bits_dtype(spec: DType) -> np.dtype[Any]:
    """NumPy dtype of the same size that only moves bits: bfloat16 as uint16, all others as they are."""
    return np.dtype(np.uint16) if isinstance(spec, BFloat16) else spec


def refuse_references(held: object) -> None:
    """Refuse memory whose elements hold references to Python objects, and the memory of a pointer, which is not what it points to."""
    if not isinstance(held, memoryview):  # our own memory, or that of a capsule, which says numbers
        return
    kind = held.format.lstrip("@=<>!")
    if kind.startswith(("&", "X{")) or kind in {"P", "z", "Z"}:
        raise UnsupportedLayoutError(
            f"a pointer's own bytes are not the memory that it points to: wrap that, numpy.ctypeslib.as_array(pointer, shape) has it; format {held.format!r}"
        )
    if "O" in "".join(held.format.split(":")[::2]):  # names of fields stand between colons
        raise UnsupportedLayoutError(f"memory of references to Python objects is not wrapped as bytes, which may be written: format {held.format!r}")


def untyped(given: Any, values: Any, spec: str) -> Any:
    """`values` of what was `given`: if that came without an element type, in that of `spec` where it holds them all, floats rounded."""
    if hasattr(given, "dtype") or not np.can_cast(values.dtype, spec, "same_kind"):
        return values
    with np.errstate(over="ignore"):
        found = values.astype(spec)
    holds = found == values if found.dtype.kind == "i" else np.isfinite(found) | ~np.isfinite(values)
    return found if holds.all() else values


def are_large_integers(values: Any) -> bool:
    """Whether an array is of Python's integers, as NumPy makes it where no type of its own holds them all."""
    return values.dtype.kind == "O" and all(isinstance(value, int) for value in values.flat)


def float32_to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Bits of `values` rounded to bfloat16, half to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def bfloat16_to_float32(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Widen bfloat16 bits to float32; exact."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
