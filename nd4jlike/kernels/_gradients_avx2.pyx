include "gradients.pxi"

KERNEL_TABLE = export(b"avx2")
