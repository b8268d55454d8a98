include "depthwise.pxi"

KERNEL_TABLE = export(b"baseline")
