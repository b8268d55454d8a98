"""What this machine can run."""

cdef extern from "cpu.h" nogil:
    const int CPU_LEVELS
    const char *cpu_levels[]
    bint cpu_supports(int level)


def supported():
    """Name the instruction sets that this machine and its operating system run.

    Returns
    -------
    tuple of str
        Slowest first; "baseline" is always there.

    Examples
    --------
    >>> from nd4jlike.kernels import cpu
    >>> cpu.supported()[0]
    'baseline'
    """
    return tuple([cpu_levels[level].decode("ascii") for level in range(CPU_LEVELS) if cpu_supports(level)])
