"""Numbers and pointers: the depthwise kernels, and the choice among their builds (ADR 0004)."""
