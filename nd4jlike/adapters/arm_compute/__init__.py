"""Arm Compute Library: its tensor descriptions and tensors as a translation of ours (ADR 0007, D5 to D21).

Names are the library's own. So are its order and unit: dimensions are listed fastest first (x, y, z, ..), strides, offsets and
sizes are in bytes; paddings are in elements. `shape` and `index` always mean NdArray order, slowest axis first, and elements.
The rules are those of version 20.08, as the library itself printed them; no library is needed here.
"""

from typing import NoReturn

from nd4jlike.adapters.arm_compute.padding import PaddingSize
from nd4jlike.adapters.arm_compute.tensor import Tensor, TensorBuffer
from nd4jlike.adapters.arm_compute.tensor_info import TensorInfo
from nd4jlike.errors import MissingLibraryError

__all__ = ["PaddingSize", "Tensor", "TensorBuffer", "TensorInfo", "require_library"]


def require_library() -> NoReturn:
    """Raise: this version binds no Arm Compute Library.

    Raises
    ------
    MissingLibraryError
        Always; says what to do instead.

    Examples
    --------
    >>> from nd4jlike.adapters.arm_compute import require_library
    >>> require_library()
    Traceback (most recent call last):
        ...
    nd4jlike.errors.MissingLibraryError: nd4jlike has no binding of the Arm Compute Library ...
    """
    raise MissingLibraryError(
        "nd4jlike has no binding of the Arm Compute Library (C++, Arm processors; Debian: apt install libarm-compute-dev): "
        "call it from a module of your own with the fields of TensorInfo and the address of Tensor.buffer"
    )
