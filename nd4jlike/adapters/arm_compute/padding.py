"""Padding around rows and planes, and what it makes of strides, offset and size (ADR 0007, D5 to D21)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, NoReturn

import numpy as np

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import LayoutError, ShapeStatus, UnsupportedLayoutError
from nd4jlike.geometry import integers

__all__ = ["NO_PADDING", "Geometry", "PaddingSize", "padded_geometry", "padding_of", "refuse_wrap"]

_UINT32_MAX = 2**32 - 1  # the library's strides


@dataclass(frozen=True, slots=True)
class PaddingSize:
    """Elements around the x and y dimensions of a tensor, in the library's order of sides.

    Parameters
    ----------
    top, bottom : int, optional
        Rows before and after dimension y, the last axis but one of an NdArray shape.
    right, left : int, optional
        Elements after and before dimension x, the last axis.

    Raises
    ------
    LayoutError
        For sides that are negative or no integers.

    Notes
    -----
    Source: `arm_compute::BorderSize`, arm_compute/core/Types.h.

    Examples
    --------
    >>> from nd4jlike.adapters.arm_compute import PaddingSize
    >>> PaddingSize(1, 2, 3, 4)
    PaddingSize(top=1, right=2, bottom=3, left=4)
    >>> PaddingSize().empty, PaddingSize(2, 2, 2, 2).uniform
    (True, True)
    """

    top: int = 0
    right: int = 0
    bottom: int = 0
    left: int = 0

    def __post_init__(self) -> None:
        sides = integers((getattr(self, field.name) for field in fields(self)), "padding (top, right, bottom, left)")
        for field, side in zip(fields(self), sides, strict=True):
            object.__setattr__(self, field.name, side)

    @property
    def empty(self) -> bool:
        """Whether no side has padding."""
        return not (self.top or self.right or self.bottom or self.left)

    @property
    def uniform(self) -> bool:
        """Whether all sides have the same padding."""
        return self.top == self.right == self.bottom == self.left

    def extended(self, other: PaddingSize) -> PaddingSize:
        """Each side's maximum of this padding and `other`.

        Parameters
        ----------
        other : PaddingSize
            The padding to make room for.

        Returns
        -------
        PaddingSize
            Equal to this one where nothing grew.

        Raises
        ------
        LayoutError
            When `other` is no PaddingSize.

        Examples
        --------
        >>> PaddingSize(left=1, bottom=3).extended(PaddingSize(1, 2, 1, 0))
        PaddingSize(top=1, right=2, bottom=3, left=1)
        """
        if not isinstance(other, PaddingSize):
            raise LayoutError(f"padding must be a PaddingSize(top, right, bottom, left): {other!r}")
        return PaddingSize(max(self.top, other.top), max(self.right, other.right), max(self.bottom, other.bottom), max(self.left, other.left))


NO_PADDING = PaddingSize()


class Geometry(NamedTuple):
    """Where elements are, in bytes; strides in the library's order."""

    strides_in_bytes: tuple[int, ...]
    offset_first_element_in_bytes: int
    total_size: int


def padded_geometry(tensor_shape: tuple[int, ...], element_size: int, padding: PaddingSize, strict: bool) -> Geometry:
    """Where the library puts the elements of a padded tensor (its calculate_padding_requirements)."""
    width, height, *higher = (*tensor_shape, 1)[: max(2, len(tensor_shape))]
    stride_y = (padding.left + width + padding.right) * element_size
    stride_z = (padding.top + height + padding.bottom) * stride_y

    strides = [element_size, stride_y]
    stride = stride_z
    for extent in higher:
        strides.append(stride)
        stride *= extent
    offset = padding.left * element_size + padding.top * stride_y
    total_size = stride

    if strict:
        refuse_wrap(strides, total_size, f"shape {tensor_shape} of {element_size}-byte elements with {padding}")
    else:
        strides = [stride & _UINT32_MAX for stride in strides]
        total_size = tensor_shape[-1] * strides[-1] if higher else stride_z
    return Geometry(tuple(strides), offset, total_size)


def refuse_wrap(strides_in_bytes: Sequence[int], total_size: int, what: str) -> None:
    """Raise for strides and sizes that the library's integers would silently cut."""
    for dimension, stride in enumerate(strides_in_bytes):
        if stride > _UINT32_MAX:
            raise UnsupportedLayoutError(
                f"stride of {stride} bytes in dimension {dimension}: arm_compute keeps strides in 32 bits and would wrap it to {stride & _UINT32_MAX}; {what}"
            )
    if total_size > np.iinfo(np.intp).max:
        raise LayoutError(f"total size of {total_size} bytes does not fit a signed machine word: {what}", ShapeStatus.OVERFLOW)


def padding_of(descriptor: ShapeDescriptor, rebase: bool) -> PaddingSize:
    """Find the padding that puts every element where `descriptor` has it."""

    def refuse(axis: int, reason: str) -> NoReturn:
        order = descriptor.axes
        hint = ""
        if order != tuple(range(rank)):
            hint = f"; its axes lie in memory as {order}: permute them to that order, or reorder to order 'c'"
        raise UnsupportedLayoutError(f"axis {axis}: {reason}; shape {descriptor.shape}, strides {descriptor.strides}, paddings {descriptor.paddings}{hint}")

    rank = descriptor.rank
    x, y = rank - 1, rank - 2
    for axis, total in enumerate(descriptor.paddings[: max(0, y)]):
        if total:
            refuse(axis, f"{total} elements of padding, arm_compute pads only the last two axes (y, x)")

    # Missing axes have one element.
    missing = max(0, 2 - rank)
    shape = (1,) * missing + descriptor.shape
    strides = (0,) * missing + descriptor.strides
    (rows_padded, columns_padded) = ((0,) * missing + descriptor.paddings)[-2:]
    top, left = ((0,) * missing + descriptor.padding_offsets)[-2:]
    if descriptor.length == 0:
        return PaddingSize(top, columns_padded - left, rows_padded - top, left)

    # In elements: `columns` from row to row, `rows` from plane to plane, paddings and gaps included.
    height, width = shape[-2:]
    columns, rows = width + columns_padded, height + rows_padded
    plane_axis = next((axis for axis in reversed(range(len(shape) - 2)) if shape[axis] > 1), None)
    if width > 1 and strides[-1] != 1:
        refuse(x, f"stride {strides[-1]}, in arm_compute neighbours in a row are adjacent (stride 1)")
    if height > 1:
        if strides[-2] < columns:
            refuse(y, f"stride {strides[-2]}, a row needs {columns} elements")
        columns = strides[-2]
    if plane_axis is not None:
        plane = strides[plane_axis]
        if height == 1:  # how wide rows are is told by those above the first element, else planes have no more rows than declared
            told = (descriptor.offset - left) // top if top and not rebase else plane // rows if plane % rows == 0 else 0
            columns = max(columns, told if told * rows <= plane else 0)
        if plane < rows * columns or plane % columns:
            refuse(plane_axis, f"stride {plane}, a plane is a whole number of rows of {columns} elements, {rows} at least")
        rows = plane // columns

    stride = rows * columns
    for axis in reversed(range(len(shape) - 2)):
        if shape[axis] > 1 and strides[axis] != stride:
            refuse(axis, f"stride {strides[axis]}, arm_compute's is {stride}: only rows and planes may be followed by a gap")
        stride *= shape[axis]

    if not rebase and descriptor.offset != top * columns + left:
        raise UnsupportedLayoutError(
            f"the first element is at offset {descriptor.offset}, shape and padding put it at {top * columns + left}: declare the elements before it "
            f"as padding_offsets, or leave them out (rebase=True); shape {descriptor.shape}, paddings {descriptor.paddings}"
        )
    return PaddingSize(top, columns - left - width, rows - top - height, left)
