"""Memory that ends (or starts) where the process may not read: one byte too far is a fault, not a wrong number."""

import ctypes
import mmap

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PROT_NONE = 0

SIDES = ("start", "end")


def guarded(nbytes, side):
    """`nbytes` writable bytes, exported by the buffer protocol, with an unreadable page right at `side` and one near the other."""
    page = mmap.PAGESIZE
    room = -(-max(nbytes, 1) // page) * page
    area = mmap.mmap(-1, room + 2 * page)
    anchor = ctypes.c_char.from_buffer(area)
    base = ctypes.addressof(anchor)
    for address in (base, base + page + room):
        if _libc.mprotect(address, page, _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = base + page + (room - nbytes if side == "end" else 0)
    memory = (ctypes.c_char * nbytes).from_address(start)
    memory.keeps = (area, anchor)
    return memory


def guarded_array(values, side):
    """Copy `values` to guarded memory, c order."""
    values = np.asarray(values)
    copy = np.frombuffer(guarded(values.nbytes, side), values.dtype, values.size).reshape(values.shape)
    copy[...] = values
    return copy
