# Capsules of other libraries from a pointer and a layout, and back (ADR 0012).

from nd4jlike.buffer cimport Buffer
from nd4jlike.descriptor cimport Layout


# A capsule of the plain layout `layout` at `data`, which `owner` keeps alive until the consumer lets go of it.
cdef object make_capsule(object owner, char *data, const Layout *layout, object dtype, bint versioned, bint copied)

# The memory that a capsule shows, and (element type, shape, strides, offset of the first element in it); the capsule is used up, or
# left as it was when it is refused.
cdef Buffer open_capsule(object producer, object capsule, list figures)
