"""What this machine can run."""

__all__ = ["supported"]

cdef extern from "cpu.h" nogil:
    const int CPU_LEVELS
    const char *cpu_levels[]
    bint cpu_supports(int level)
    long second_level_bytes()
    long last_level_bytes()


def levels():
    """Name the instruction sets that are known for this processor family.

    Returns
    -------
    tuple of str
        Slowest first, each a superset of the one before.

    Examples
    --------
    >>> from nd4jlike.kernels import cpu
    >>> cpu.levels()[0]
    'baseline'
    """
    return tuple([cpu_levels[level].decode("ascii") for level in range(CPU_LEVELS)])


def supported():
    """Name the instruction sets that this machine and its operating system run.

    Returns
    -------
    tuple of str
        Slowest first; "baseline" is always there.

    Examples
    --------
    >>> from nd4jlike.kernels import cpu
    >>> set(cpu.supported()) <= set(cpu.levels())
    True
    """
    return tuple([cpu_levels[level].decode("ascii") for level in range(CPU_LEVELS) if cpu_supports(level)])


def caches():
    """Tell how large the caches beyond the first are.

    Returns
    -------
    (int, int)
        Bytes of the second-level and of the last-level cache that one core reaches; 256 KiB and 4 MiB where nobody tells, or tells less.

    Examples
    --------
    >>> from nd4jlike.kernels import cpu
    >>> second, last = cpu.caches()
    >>> second >= 1 << 18, last >= 1 << 22
    (True, True)
    """
    return second_level_bytes(), last_level_bytes()
