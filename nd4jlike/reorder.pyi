from typing import Any, SupportsFloat, SupportsIndex, TypeVar, overload

import numpy.typing as npt

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.dtypes import BFloat16
from nd4jlike.ndarray import NdArray

__all__ = ["reorder"]

_Out = TypeVar("_Out")

@overload
def reorder(
    x: NdArray | npt.ArrayLike,
    layout: str | ShapeDescriptor,
    *,
    out: None = None,
    dtype: npt.DTypeLike | BFloat16 | None = None,
    scale: SupportsFloat | None = None,
    zero_point: SupportsIndex | None = None,
    padding_value: Any = None,
    threads: int = 1,
    isa: str | None = None,
) -> NdArray: ...
@overload
def reorder(
    x: NdArray | npt.ArrayLike,
    layout: str | ShapeDescriptor | None = None,
    *,
    out: _Out,
    dtype: npt.DTypeLike | BFloat16 | None = None,
    scale: SupportsFloat | None = None,
    zero_point: SupportsIndex | None = None,
    padding_value: Any = None,
    threads: int = 1,
    isa: str | None = None,
) -> _Out: ...
