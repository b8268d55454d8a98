"""DLPack: strided memory handed from library to library as a capsule (ADR 0012)."""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from nd4jlike.buffer cimport Buffer, hold
from nd4jlike.descriptor cimport MAX_RANK, Layout

from nd4jlike import dtypes
from nd4jlike.errors import LayoutError, ShapeStatus, UnsupportedLayoutError

__all__ = []

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX
    bint Py_IsInitialized() noexcept nogil

cdef extern from *:
    bint mul_overflows "__builtin_mul_overflow"(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *result) noexcept nogil
    bint add_overflows "__builtin_add_overflow"(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *result) noexcept nogil

# The structures of dlpack.h, version 1.0.
cdef struct DLDevice:
    int32_t device_type
    int32_t device_id

cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct DLTensor:
    void *data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t *shape
    int64_t *strides
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void *manager_ctx
    void (*deleter)(DLManagedTensor *) noexcept nogil

cdef struct DLPackVersion:
    uint32_t major
    uint32_t minor

cdef struct DLManagedTensorVersioned:
    DLPackVersion version
    void *manager_ctx
    void (*deleter)(DLManagedTensorVersioned *) noexcept nogil
    uint64_t flags
    DLTensor dl_tensor

cdef enum:
    CPU = 1
    READ_ONLY = 1
    IS_COPIED = 2

cdef const char *LEGACY = "dltensor"
cdef const char *VERSIONED = "dltensor_versioned"


# One allocation: the managed tensor, then its extents and strides.
cdef struct Export:
    DLManagedTensor legacy
    int64_t numbers[2 * MAX_RANK]

cdef struct ExportVersioned:
    DLManagedTensorVersioned versioned
    int64_t numbers[2 * MAX_RANK]


# The consumer may let go without the GIL, on any thread, and after the interpreter has ended.
cdef void let_go(void *owner) noexcept nogil:
    if Py_IsInitialized():
        with gil:
            Py_DECREF(<object> owner)


cdef void delete_legacy(DLManagedTensor *tensor) noexcept nogil:
    let_go(tensor.manager_ctx)
    free(tensor)


cdef void delete_versioned(DLManagedTensorVersioned *tensor) noexcept nogil:
    let_go(tensor.manager_ctx)
    free(tensor)


# A capsule that nobody consumed.
cdef void drop_legacy(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, LEGACY):
        delete_legacy(<DLManagedTensor *> PyCapsule_GetPointer(capsule, LEGACY))


cdef void drop_versioned(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, VERSIONED):
        delete_versioned(<DLManagedTensorVersioned *> PyCapsule_GetPointer(capsule, VERSIONED))


cdef void describe(DLTensor *tensor, int64_t *numbers, char *data, const Layout *layout, int code, int bits) noexcept:
    cdef int64_t dense = 1
    cdef int i
    tensor.data = data if layout.length else NULL
    tensor.device = DLDevice(CPU, 0)
    tensor.ndim = layout.rank
    tensor.dtype = DLDataType(code, bits, 1)
    tensor.shape = numbers
    tensor.strides = numbers + layout.rank
    tensor.byte_offset = 0
    for i in range(layout.rank - 1, -1, -1):
        numbers[i] = layout.shape[i]
        # Nothing is reached through the stride of one element; consumers compare it with that of a dense array.
        numbers[layout.rank + i] = layout.strides[i] if layout.shape[i] > 1 and layout.length else dense
        dense *= max(1, layout.shape[i])


cdef object make_capsule(object owner, char *data, const Layout *layout, object dtype, bint versioned, bint copied):
    cdef Export *export
    cdef ExportVersioned *export_versioned
    cdef int code, bits
    code, bits = dtypes.codes(dtype).dlpack
    if versioned:
        export_versioned = <ExportVersioned *> malloc(sizeof(ExportVersioned))
        if export_versioned is NULL:
            raise MemoryError
        export_versioned.versioned.version = DLPackVersion(1, 0)
        export_versioned.versioned.manager_ctx = <void *> owner
        export_versioned.versioned.deleter = delete_versioned
        export_versioned.versioned.flags = IS_COPIED if copied else 0
        describe(&export_versioned.versioned.dl_tensor, &export_versioned.numbers[0], data, layout, code, bits)
        try:
            capsule = PyCapsule_New(export_versioned, VERSIONED, <void (*)(object) noexcept> drop_versioned)
        except BaseException:
            free(export_versioned)
            raise
    else:
        export = <Export *> malloc(sizeof(Export))
        if export is NULL:
            raise MemoryError
        export.legacy.manager_ctx = <void *> owner
        export.legacy.deleter = delete_legacy
        describe(&export.legacy.dl_tensor, &export.numbers[0], data, layout, code, bits)
        try:
            capsule = PyCapsule_New(export, LEGACY, <void (*)(object) noexcept> drop_legacy)
        except BaseException:
            free(export)
            raise
    Py_INCREF(owner)
    return capsule


@cython.final
@cython.no_gc
cdef class _Imported:
    """Keeps the memory of a consumed capsule; lets go of it at the end."""

    cdef DLManagedTensor *legacy
    cdef DLManagedTensorVersioned *versioned

    def __dealloc__(self):
        if self.legacy is not NULL and self.legacy.deleter is not NULL:
            self.legacy.deleter(self.legacy)
        if self.versioned is not NULL and self.versioned.deleter is not NULL:
            self.versioned.deleter(self.versioned)


cdef Buffer open_capsule(object producer, object capsule, list figures):
    cdef DLManagedTensor *legacy = NULL
    cdef DLManagedTensorVersioned *versioned = NULL
    cdef _Imported held
    cdef DLTensor *tensor
    cdef Py_ssize_t low = 0, high = 0, reach, itemsize, count = 1
    cdef uintptr_t address
    cdef bint readonly = True, fits
    cdef int i
    name = type(producer).__name__
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = <DLManagedTensorVersioned *> PyCapsule_GetPointer(capsule, VERSIONED)
        if versioned.version.major != 1:
            version = f"{versioned.version.major}.{versioned.version.minor}"
            raise UnsupportedLayoutError(f"the capsule of a {name} is DLPack {version}, this library reads 1.x and older")
        tensor = &versioned.dl_tensor
        readonly = versioned.flags & READ_ONLY != 0
    elif PyCapsule_IsValid(capsule, LEGACY):
        # Old capsules cannot say that their memory must not be written, so it is not.
        legacy = <DLManagedTensor *> PyCapsule_GetPointer(capsule, LEGACY)
        tensor = &legacy.dl_tensor
    else:
        raise UnsupportedLayoutError(f"a {name} gave no fresh DLPack capsule, but {capsule!r}")

    if tensor.device.device_type != CPU:
        raise UnsupportedLayoutError(f"the memory of a {name} is on device type {tensor.device.device_type}, only 1 (CPU) can be reached")
    row = dtypes.by_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    itemsize = row.itemsize
    if not 0 <= tensor.ndim <= MAX_RANK:
        raise LayoutError(f"a {name} has {tensor.ndim} axes, there are 0 to {MAX_RANK}", ShapeStatus.INCORRECT_RANK)
    if tensor.ndim and tensor.shape is NULL:
        raise LayoutError(f"a {name} has {tensor.ndim} axes and no extents", ShapeStatus.INCORRECT_SHAPE)
    shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
    if any([n < 0 for n in shape]):
        raise LayoutError(f"extents are 0 or more: a {name} has shape {shape}", ShapeStatus.INCORRECT_SHAPE)
    strides = [1] * tensor.ndim
    fits = True
    for i in range(tensor.ndim - 1, -1, -1):
        strides[i] = count if tensor.strides is NULL else tensor.strides[i]
        fits = fits and not mul_overflows(count, max(1, tensor.shape[i]), &count)
        fits = fits and not mul_overflows(max(0, tensor.shape[i] - 1), strides[i], &reach)
        if fits:
            fits = not (add_overflows(low, reach, &low) if reach < 0 else add_overflows(high, reach, &high))
    fits = fits and not mul_overflows(count, itemsize, &count) and not mul_overflows(low, itemsize, &low)
    fits = fits and not add_overflows(high, 1, &high) and not mul_overflows(high, itemsize, &high) and not add_overflows(high, -low, &count)
    if not fits:
        raise LayoutError(f"a {name} outgrows the signed machine word in bytes: shape={shape}, strides={tuple(strides)}", ShapeStatus.OVERFLOW)
    if 0 in shape:
        low = high = 0
    else:
        if tensor.data is NULL:
            raise LayoutError(f"a {name} of shape {shape} has no memory: its pointer is NULL")
        address = <uintptr_t> tensor.data
        if tensor.byte_offset > <uint64_t> PY_SSIZE_T_MAX or address + tensor.byte_offset < address or address + tensor.byte_offset < <uintptr_t> -low or (
            address + tensor.byte_offset + <uintptr_t> high < address + tensor.byte_offset
        ):
            raise LayoutError(f"a {name} outgrows memory: pointer {address:#x}, byte offset {tensor.byte_offset}", ShapeStatus.OVERFLOW)
        if (address + tensor.byte_offset) % <size_t> itemsize:
            raise LayoutError(f"the memory at {address + tensor.byte_offset:#x} is misaligned: {row.name} elements lie on multiples of {itemsize} bytes")

    held = _Imported.__new__(_Imported)
    if versioned is not NULL:
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        held.versioned = versioned
    else:
        PyCapsule_SetName(capsule, "used_dltensor")
        held.legacy = legacy
    figures.extend((row.dtype, shape, tuple(strides), -low // itemsize))
    return hold(producer, held, <char *> tensor.data + tensor.byte_offset + low, high - low, readonly)
