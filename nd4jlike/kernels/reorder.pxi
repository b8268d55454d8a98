# The kernels of a reorder: one text, compiled once for each instruction set (ADR 0004, 0009). What all share, and the table.
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from nd4jlike.kernels.patch cimport (
    CONVERSIONS, FROM_BRAIN, FROM_CODES, FROM_HALF, FROM_SHORTS, FROM_UNSIGNED, RUNS_AT_ONCE, TO_BRAIN, TO_CODES, TO_HALF, TO_SHORTS, TO_UNSIGNED,
    MoveTable, Patch, Runs,
)

include "simd.pxi"

cdef extern from "tiles.h" nogil:
    const int PIECE
    void copy_piece(char *target, const char *source, int bytes, bint stream)
    void copy_run(char *target, const char *source, Py_ssize_t bytes)
    void touch(const char *line)
    void touch_far(const char *line)
    void stream_end()

cdef enum:
    LINE_BYTES = 64
    RUNS_AHEAD = 8
    # Half of what goes over all sets of a first-level cache: of eight streams so far apart, four have the same one.
    SETS_BYTES = 2048

ctypedef fused cell:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

include "reorder_turns.pxi"
include "reorder_runs.pxi"
include "reorder_conversions.pxi"

cdef MoveTable table


cdef void settle() noexcept nogil:
    stream_end()


cdef object export(const char *isa):
    """The capsule of this module's table; `isa` is a literal."""
    table.isa, table.vector_bytes = isa, VECTOR_BYTES
    table.turn[0], table.turn[1], table.turn[2], table.turn[3] = turn_1, turn_2, turn_4, turn_8
    table.copy, table.settle, table.convert = copy, settle, convert
    converters[TO_HALF], converters[FROM_HALF] = to_half, from_half
    converters[TO_BRAIN], converters[FROM_BRAIN] = to_brain, from_brain
    converters[TO_CODES] = converters[TO_UNSIGNED] = to_codes
    converters[FROM_CODES] = converters[FROM_UNSIGNED] = from_codes
    converters[TO_SHORTS], converters[FROM_SHORTS] = to_shorts, from_shorts
    return PyCapsule_New(&table, "nd4jlike.kernels.MoveTable", NULL)
