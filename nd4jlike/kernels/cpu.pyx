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


def second_level():
    """Tell how large the second-level cache is.

    Returns
    -------
    int
        Bytes; 256 KiB where the system does not tell, or tells less.

    Examples
    --------
    >>> from nd4jlike.kernels import cpu
    >>> cpu.second_level() >= 1 << 18
    True
    """
    return second_level_bytes()


def last_level():
    """Tell how large the last-level cache is.

    Returns
    -------
    int
        Bytes; 4 MiB where the system does not tell, or tells less.

    Examples
    --------
    >>> from nd4jlike.kernels import cpu
    >>> cpu.last_level() >= 1 << 22
    True
    """
    return last_level_bytes()
