include "reorder.pxi"

KERNEL_TABLE = export(b"avx2")
