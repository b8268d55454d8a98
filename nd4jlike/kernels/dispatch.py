"""Which instruction sets there are, and the kernels of one of them (ADR 0004)."""

from __future__ import annotations

import importlib
import os
import pkgutil

from nd4jlike import kernels
from nd4jlike.errors import IsaError
from nd4jlike.kernels import cpu

__all__ = ["available", "chosen", "compiled", "downwards", "load", "supported"]

ENVIRONMENT_VARIABLE = "ND4JLIKE_ISA"

# The folder of the kernels and the machine are looked at once: they do not change while Python runs.
_MODULES = {module.name for module in pkgutil.iter_modules(kernels.__path__)}
_COMPILED = tuple(isa for isa in cpu.levels() if f"_depthwise_{isa}" in _MODULES)
_SUPPORTED = cpu.supported()
# What is both compiled and supported.
_AVAILABLE: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
# What was loaded, by the kernel and the instruction sets that were usable.
_LOADED: dict[tuple[str, tuple[str, ...]], object] = {}


def compiled() -> tuple[str, ...]:
    """Name the instruction sets that this installation has kernels for.

    Returns
    -------
    tuple of str
        Slowest first.

    Examples
    --------
    >>> from nd4jlike.kernels import dispatch
    >>> "baseline" in dispatch.compiled()
    True
    """
    return _COMPILED


def supported() -> tuple[str, ...]:
    """Name the instruction sets that this machine and its operating system run.

    Returns
    -------
    tuple of str
        Slowest first.

    Examples
    --------
    >>> from nd4jlike.kernels import dispatch
    >>> "baseline" in dispatch.supported()
    True
    """
    return _SUPPORTED


def available() -> tuple[str, ...]:
    """Name the instruction sets that are both compiled and supported.

    Returns
    -------
    tuple of str
        Slowest first.

    Examples
    --------
    >>> from nd4jlike.kernels import dispatch
    >>> set(dispatch.available()) == set(dispatch.compiled()) & set(dispatch.supported())
    True
    """
    both = compiled(), supported()
    if both not in _AVAILABLE:
        _AVAILABLE[both] = tuple(isa for isa in both[0] if isa in both[1])
    return _AVAILABLE[both]


def chosen() -> str:
    """Name the instruction set that is used where none is asked for.

    Returns
    -------
    str
        The value of the environment variable ``ND4JLIKE_ISA`` if it is set and not empty, else the fastest one available.

    Raises
    ------
    IsaError
        If ``ND4JLIKE_ISA`` names an instruction set that cannot be used here.
    """
    forced = os.environ.get(ENVIRONMENT_VARIABLE, "")
    return _usable(forced, f"{ENVIRONMENT_VARIABLE}={forced}") if forced else available()[-1]


def downwards(isa: str | None = None) -> tuple[str, ...]:
    """Name an instruction set and those below it: what the build for one leaves out, the next one may have.

    Parameters
    ----------
    isa : str, optional
        Name of the instruction set; `chosen` by default.

    Returns
    -------
    tuple of str
        Fastest first.

    Raises
    ------
    IsaError
        If the instruction set is unknown, not compiled, or not supported by this machine.

    Examples
    --------
    >>> from nd4jlike.kernels import dispatch
    >>> dispatch.downwards("baseline")
    ('baseline',)
    """
    isa = chosen() if isa is None else _usable(isa, f"isa={isa!r}")
    return available()[available().index(isa) :: -1]


def load(kernel: str, isa: str | None = None) -> object:
    """Get the table of one kernel's functions.

    Parameters
    ----------
    kernel : str
        Name of the kernel, as in the modules ``_<kernel>_<isa>``.
    isa : str, optional
        Name of the instruction set; `chosen` by default.

    Returns
    -------
    capsule
        A ``KernelTable`` of ``problem.pxd``, under the name ``nd4jlike.kernels.KernelTable``; for ``"reorder"`` a ``MoveTable`` of
        ``patch.pxd``, for ``"gradients"`` a ``GradientTable`` of ``gradients.pxd``. A kernel without a build for the instruction set has that of
        the next slower one.

    Raises
    ------
    IsaError
        If there is no such kernel, or the instruction set is unknown, not compiled, or not supported by this machine.

    Examples
    --------
    >>> from nd4jlike.kernels import dispatch
    >>> type(dispatch.load("depthwise", "baseline")).__name__
    'PyCapsule'
    """
    usable = downwards(isa)
    if (kernel, usable) in _LOADED:
        return _LOADED[kernel, usable]
    build = next((name for level in usable if (name := f"_{kernel}_{level}") in _MODULES), None)
    if build is None:
        raise IsaError(f"kernel {kernel!r}: not compiled for {usable[0]}; available: depthwise, gradients and reorder for {', '.join(available())}")
    table = _LOADED[kernel, usable] = importlib.import_module(f"nd4jlike.kernels.{build}").KERNEL_TABLE
    return table


def _usable(isa: str, asked: str) -> str:
    """Return `isa`, or say why it cannot be used; `asked` is how the user put it."""
    if isa in available():
        return isa
    if isa not in cpu.levels():
        reason = "unknown"
    elif isa not in supported():
        reason = "not supported by this machine"
    else:
        reason = "not compiled"
    raise IsaError(f"{asked}: {reason}; available: {', '.join(available())}")
