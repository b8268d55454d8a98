"""Numbers and pointers: the kernels, and the choice among their builds. ADR 0004 has a map of the files."""
