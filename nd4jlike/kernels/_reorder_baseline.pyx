include "reorder.pxi"

KERNEL_TABLE = export(b"baseline")
