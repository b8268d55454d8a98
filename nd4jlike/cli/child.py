"""The process that does the work: foreign code may end it in many ways, and the one that started it says which, and where (ADR 0008, D9, D21)."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nd4jlike.cli.output import BAD_INPUT, complain
from nd4jlike.workers import threads_are_new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["INTERRUPTED", "cautious", "doing", "interruption", "note", "supervised"]

INTERRUPTED = 130
# What ends the command: the terminal sends most to the child too, everybody else to the parent alone.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
# Foreign code need not hear of an interrupt.
SECONDS_TO_STOP = 2.0

# What a child tells, whatever becomes of it: whether it came to its end, whether it can do without what it does, and who is at work.
# Shared with the parent where there is one.
_BYTES = 4096
_board: Any = bytearray(_BYTES)
# Whether what one can do without ended a child before this one.
_cautious = False
# Whether this process, a child, was interrupted.
_interrupted = False


def note(who: str, spare: bool = False) -> None:
    """Note who is at work, and whether one can do without."""
    _board[1] = spare
    _board[2:] = who.encode(errors="replace")[: _BYTES - 2].ljust(_BYTES - 2, b"\0")


def _noted() -> str:
    return bytes(_board[2:]).rstrip(b"\0").decode(errors="ignore")


def cautious() -> bool:
    """Tell whether to leave out what one can do without."""
    return _cautious


@contextmanager
def doing(who: str, spare: bool = False) -> Iterator[None]:
    """Note who is at work meanwhile, and where that was interrupted."""
    note(who, spare)
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        note("")
        raise
    note("")


def interruption() -> str:
    """Say that the work was interrupted, and whose."""
    return " at ".join(filter(None, ["interrupted", _noted()]))


def supervised(work: Callable[[], int], suspect: str, crash: str, hint: str) -> int:
    """Do `work` in a child: foreign code may crash, on valid models too.

    That is a line, `crash` of who did it, by default `suspect`, and what that was, and a code like any other error; a `hint` follows where it
    was a signal. Where one can do without what ended it, another child does.
    """
    global _board, _cautious
    _board = mmap.mmap(-1, _BYTES)
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
            _board[0] = 1
            os._exit(code)

    gave_up = False

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
        if number == signal.SIGINT:
            signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_STOP)

    def give_up(*_: object) -> None:
        nonlocal gave_up
        gave_up = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    for number in ends:
        signal.signal(number, pass_on)
    signal.signal(signal.SIGALRM, give_up)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.setitimer(signal.ITIMER_REAL, 0)
    if gave_up:
        return complain(interruption(), INTERRUPTED)
    if code == -signal.SIGKILL:  # which the system sends where memory ends
        return complain("ended by SIGKILL: not enough memory?", BAD_INPUT)
    crashed = -code in CRASHES
    if crashed or (code >= 0 and not _board[0]):
        who, what = _noted() or suspect, f"crashed ({signal.Signals(-code).name})" if crashed else f"ended the process (exit code {code})"
        if _board[1] and not _cautious:
            complain(f"{who} {what}; again without that", BAD_INPUT)
            _cautious = True
            return supervised(work, suspect, crash, hint)
        return complain(crash.format(who=who, what=what) + hint * crashed, BAD_INPUT)
    return code if code >= 0 else 128 - code


def _interrupt_once(*_: object) -> None:
    """Interrupt; what comes while that is said is the same interrupt, from the terminal and from the parent."""
    global _interrupted
    if not _interrupted:  # SIG_IGN would do, but Python writes a traceback of a signal that came just before it
        _interrupted = True
        raise KeyboardInterrupt
