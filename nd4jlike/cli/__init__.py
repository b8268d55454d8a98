"""The command ``nd4jlike``: verify a real model, describe a layout, measure, say what this machine offers."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nd4jlike.cli.arguments import parse
from nd4jlike.cli.output import BAD_INPUT, complain
from nd4jlike.errors import Nd4jLikeError
from nd4jlike.workers import threads_are_new

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

__all__ = ["main"]

INTERRUPTED, BROKEN_PIPE = 130, 141
# What ends the command: the terminal sends most to the child too, everybody else to the parent alone.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Its arguments; those of the process by default.

    Returns
    -------
    int
        0 fine, 1 a mismatch was found, 2 bad usage or input, 130 interrupted, 141 nobody reads the output.

    Raises
    ------
    SystemExit
        From ``--help`` and ``--version`` (0), and for bad usage (2).

    Examples
    --------
    >>> from nd4jlike.cli import main
    >>> main(["describe", "c", "2,3", "--paddings", "0,1", "--dtype", "int8"])
    ShapeDescriptor.paddedBufferDescriptor('int8', 'c', (2, 3), (0, 1))
    layout  ab
    plain   (2,4):(4,1)
    buffer  8 cells, 8 bytes: 6 elements, 2 padding
    first   element (0, 0) at offset 0, byte 0
    <BLANKLINE>
    axis  extent  before  after  tail  stride  bytes
    a          2       0      0     0       4      4
    b          3       0      1     0       1      1
    <BLANKLINE>
    0: >0,0  0,1  0,2    .
    4:  1,0  1,1  1,2    .
    > first element   . padding (halo)
    0
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed; what follows writes to it
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files and layers may have letters that the terminal has not
    arguments = parse(sys.argv[1:] if argv is None else argv)
    if argv is None and arguments.crash:
        return _supervised(lambda: _run(arguments), arguments.crash)
    return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    """Run one command; its errors become a line and a code."""
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes standard output once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED)
    except MemoryError as error:
        return complain(": ".join(filter(None, ["not enough memory", str(error)])), BAD_INPUT)
    except OSError as error:
        return complain(f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
    except Nd4jLikeError as error:
        return complain(str(error), BAD_INPUT)


def _supervised(work: Callable[[], int], crash: str) -> int:
    """Do `work` in a child: foreign code may crash, on valid models too, and that is a line, `crash` with the signal, and a code like any other error."""
    # Whoever started the command may have it ignore some of them, as nohup does.
    ends = [number for number in ENDS if signal.getsignal(number) is not signal.SIG_IGN]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # until both know what to do with them
    child = os.fork()
    if child == 0:
        code = BAD_INPUT
        try:
            threads_are_new()  # nothing was computed before
            if signal.SIGINT in ends:
                signal.signal(signal.SIGINT, _interrupt_once)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            code = work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in ends:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGKILL:  # which the system sends where memory ends
        return complain("ended by SIGKILL: not enough memory?", BAD_INPUT)
    if -code in CRASHES:
        return complain(crash.format(signal.Signals(-code).name), BAD_INPUT)
    return code if code >= 0 else 128 - code


def _interrupt_once(*_: object) -> None:
    """Interrupt; what comes while that is said is the same interrupt, from the terminal and from the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
