"""Exceptions and status codes. Every error says what is wrong, the rule and the values."""

from __future__ import annotations

from enum import IntFlag

__all__ = [
    "DTypeError",
    "IsaError",
    "LayoutError",
    "MissingLibraryError",
    "Nd4jLikeError",
    "OutOfRangeError",
    "ShapeStatus",
    "UnsupportedLayoutError",
]


class ShapeStatus(IntFlag):
    """What is wrong with a shape descriptor; 0 when nothing is.

    The first three bits are libnd4j's (ADR 0001), the others are ours.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor, ShapeStatus
    >>> status = ShapeDescriptor("float32", "c", (3, 4), (3, 1)).validate()
    >>> status == ShapeStatus.INCORRECT_STRIDES
    True
    >>> print(status.explain())
    INCORRECT_STRIDES: each stride must reach over its inner neighbour, stride[i-1] >= stride[i] * extent[i]; axis 0 has stride 3, axis 1 spans 1 * 4 = 4
    """

    OK = 0
    INCORRECT_STRIDES = 1
    INCORRECT_EWS = 2
    INCORRECT_RANK = 4
    ZERO_STRIDE = 8
    NEGATIVE_STRIDE = 16
    OUT_OF_BUFFER = 32
    INCORRECT_SHAPE = 64
    INCORRECT_PADDING = 128
    INCORRECT_BLOCKS = 256
    OVERFLOW = 512
    INCORRECT_TAG = 1024

    @classmethod
    def with_details(cls, details: dict[ShapeStatus, str]) -> ShapeStatus:
        """Join the bits that are the keys of `details`, remembering the values that broke each rule.

        Parameters
        ----------
        details : dict of ShapeStatus to str
            For each broken rule the values that broke it.

        Returns
        -------
        ShapeStatus
            `ShapeStatus.OK` for no details.

        Examples
        --------
        >>> from nd4jlike import ShapeStatus
        >>> status = ShapeStatus.with_details({ShapeStatus.INCORRECT_SHAPE: "shape=(-1,)"})
        >>> status == ShapeStatus.INCORRECT_SHAPE, status.explain()
        (True, 'INCORRECT_SHAPE: extents are 0 or more; shape=(-1,)')
        """
        if not details:
            return cls.OK
        value = 0
        for bit in details:
            value |= int(bit)
        known = cls(value)
        # Flags are singletons; one that carries values is an equal twin of its own.
        status = int.__new__(cls, value)
        status._value_ = value
        status._name_ = known._name_
        status._details = dict(details)  # type: ignore[attr-defined]
        return status

    def explain(self) -> str:
        """Say in words what is wrong, the rule and, for the result of a validation, the values.

        Returns
        -------
        str
            One line for each broken rule.

        Examples
        --------
        >>> from nd4jlike import ShapeStatus
        >>> ShapeStatus(0).explain(), ShapeStatus.INCORRECT_SHAPE.explain()
        ('OK: no rule is broken', 'INCORRECT_SHAPE: extents are 0 or more')
        """
        details: dict[ShapeStatus, str] = getattr(self, "_details", {})
        lines = []
        for bit, rule in _RULES.items():
            if self & bit:
                values = details.get(bit)
                lines.append(f"{bit.name}: {rule}" + (f"; {values}" if values else ""))
        return "\n".join(lines) or "OK: no rule is broken"


_RULES = {
    ShapeStatus.INCORRECT_STRIDES: "each stride must reach over its inner neighbour, stride[i-1] >= stride[i] * extent[i]",
    ShapeStatus.INCORRECT_EWS: "the element-wise stride is the fastest stride if all elements are equally spaced in c (or f) order, else 0",
    ShapeStatus.INCORRECT_RANK: "at most 32 axes, and one stride for each",
    ShapeStatus.ZERO_STRIDE: "an axis of more than one element needs a stride other than 0 to own its elements",
    ShapeStatus.NEGATIVE_STRIDE: "strides of an allocation are positive; negative ones belong to views",
    ShapeStatus.OUT_OF_BUFFER: "no element may lie before the start of the buffer",
    ShapeStatus.INCORRECT_SHAPE: "extents are 0 or more",
    ShapeStatus.INCORRECT_PADDING: "0 <= padding offset <= padding on every axis, and no more of them than axes",
    ShapeStatus.INCORRECT_BLOCKS: "a block has an axis of the shape and a size of 1 or more",
    ShapeStatus.OVERFLOW: "sizes, strides and offsets fit a signed machine word, in bytes too",
    ShapeStatus.INCORRECT_TAG: "a tag names each axis once, slowest first, then its inner blocks as number and letter",
}


# Characters of a message, and how many of a longer one's beginning and end are kept.
_LONGEST, _KEPT = 1000, (700, 250)


class Nd4jLikeError(Exception):
    """Base of every error that this library raises on purpose: its message has 1,000 characters at most.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> try:
    ...     nd.zeros((2, 3))[0, 3]
    ... except nd.Nd4jLikeError as error:
    ...     print(type(error).__name__)
    OutOfRangeError
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*map(_shortened, args))


class LayoutError(Nd4jLikeError, ValueError):
    """A shape, stride, padding, tag or buffer size that breaks a rule.

    Parameters
    ----------
    message : str
        What is wrong, the rule and the values.
    status : ShapeStatus, optional
        The broken rules of ADR 0001.

    Attributes
    ----------
    status : ShapeStatus
        The broken rules, `ShapeStatus.OK` where the rule is none of a descriptor's.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> try:
    ...     nd.zeros((-1,))
    ... except nd.LayoutError as error:
    ...     print(error.status.name, "-", error)
    INCORRECT_SHAPE - axis 0 has extent -1, extents are 0 or more: shape=(-1,)
    """

    def __init__(self, message: str, status: ShapeStatus = ShapeStatus.OK) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[LayoutError], tuple[str, ShapeStatus]]:
        return (type(self), (str(self), ShapeStatus(int(self.status))))


class OutOfRangeError(Nd4jLikeError, IndexError):
    """An index outside the shape.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.ShapeDescriptor("int8", "c", (2, 3)).offset_of((0, 3))
    Traceback (most recent call last):
    nd4jlike.errors.OutOfRangeError: index (0, 3) is outside the shape (2, 3): one index 0 <= i < extent for each axis
    """


class UnsupportedLayoutError(Nd4jLikeError, BufferError):
    """A layout that a protocol or library cannot express without a copy.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> memoryview(nd.reorder(nd.zeros((1, 8)), "aB8b"))
    Traceback (most recent call last):
    nd4jlike.errors.UnsupportedLayoutError: the buffer protocol carries strides, not inner blocks ((1, 8),); reorder to a plain layout first
    """


class DTypeError(Nd4jLikeError, TypeError):
    """An element type that is unknown here, or that the operation does not take.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> nd.zeros(2, "complex64")
    Traceback (most recent call last):
    nd4jlike.errors.DTypeError: no element type 'complex64': it must be one of ...
    """


class IsaError(Nd4jLikeError, RuntimeError):
    """An instruction set that was asked for and cannot be used; names what can.

    Examples
    --------
    >>> import nd4jlike as nd, numpy as np
    >>> nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), "float32"), isa="mmx")
    Traceback (most recent call last):
    nd4jlike.errors.IsaError: isa='mmx': unknown; available: ...
    """


class MissingLibraryError(Nd4jLikeError, ImportError):
    """An optional library that is not installed; says what to install.

    Examples
    --------
    >>> import nd4jlike as nd
    >>> issubclass(nd.MissingLibraryError, ImportError)
    True
    """


def _shortened(said: object) -> object:
    """Leave the middle of a long message out: values are arrays and lists, what is wrong comes before and the last of them after."""
    if not isinstance(said, str) or len(said) <= _LONGEST:
        return said
    begin, end = _KEPT
    return f"{said[:begin]} ... {said[-end:]}"


class _NoInterfaceError(UnsupportedLayoutError, AttributeError):
    """A layout without `__array_interface__`: what probes for one goes on, who asks for it reads why there is none."""


class _NoAxisError(OutOfRangeError, LayoutError):
    """An axis that is none: NumPy's error for it is an IndexError and a ValueError."""


class _NoNumberError(LayoutError, TypeError):
    """An array that is asked to be a number, and has not one element: who calls `float` expects a TypeError, who calls `item` a ValueError."""
