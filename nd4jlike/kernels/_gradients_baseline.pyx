include "gradients.pxi"

KERNEL_TABLE = export(b"baseline")
