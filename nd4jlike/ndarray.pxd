# A buffer seen through a descriptor.

from nd4jlike.buffer cimport Buffer
from nd4jlike.descriptor cimport ShapeDescriptor


cdef class _Operators:
    pass


cdef class NdArray(_Operators):
    cdef readonly ShapeDescriptor descriptor
    # The bytes. Shared with every view and every export; freed when the last of them is gone.
    cdef readonly Buffer buffer
    cdef readonly bint readonly
    # NumPy's view of the elements, once an operation has made one; None until then, and where memory has an owner that might own the array.
    cdef object shown
    cdef object __weakref__

    # Address of element (0, .., 0).
    cdef char *data(self) noexcept
    # Whether every padding cell holds the element whose bits are `bits`: remembered, or looked at where others may have written.
    cdef bint padding_holds(self, unsigned long long bits) noexcept
    # Others have an address from now on, and may write the padding.
    cdef void hand_out(self) noexcept
    # Whether all cells of the buffer are the array's, be it as padding.
    cdef bint fills_buffer(self) noexcept
    # Blocks have been written whole, or padding of a view: tails, and what of it may be halo of the buffer's array.
    cdef void forget_tails(self, unsigned long long bits) noexcept


# A view of `base` under another descriptor of the same buffer; the caller has checked that it fits.
cdef NdArray view_of(NdArray base, ShapeDescriptor descriptor)

# A new array for whoever writes all its elements: they hold anything, its padding is zero (ADR 0002).
cdef NdArray unwritten(ShapeDescriptor descriptor)

# NdArray as it is; anything that exports a buffer wrapped zero-copy. Others, and copies, are for `nd4jlike.asarray`.
cdef NdArray as_ndarray(object x)

# What is read beside arrays: another library's as NumPy or DLPack reads them, anything else as it is.
cdef object taken(object x)

# Memory of the caller to write to, `name` in what is said of it; a copy would be written in its place.
cdef NdArray as_output(str name, object out)

# The bits of one element that holds `value`, zero-extended.
cdef unsigned long long element_bits(object dtype, object value) except? 0xFFFFFFFFFFFFFFFF
