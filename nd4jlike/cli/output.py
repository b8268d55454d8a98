"""How results and complaints are printed."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.util
import json
import math
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nd4jlike.errors import MissingLibraryError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

__all__ = ["BAD_INPUT", "FINE", "MISMATCH", "check_output", "complain", "foreign_output", "open_console", "or_dash", "print_json", "print_rich", "progress_bar"]

FINE, MISMATCH, BAD_INPUT = 0, 1, 2

# Of the widest table; narrower ones take what they need.
TABLE_WIDTH = 240


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON document."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """Write what JSON has no number for as text: inf, -inf, nan."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def open_console(**options: Any) -> Any:
    """Make what tables are printed with."""
    try:
        from rich.console import Console
    except ImportError as error:
        raise MissingLibraryError("tables need the rich package: pip install nd4jlike[cli]; --json works without") from error
    return Console(**options)


def print_rich(*renderables: Any) -> None:
    """Print tables whole, nothing cut or folded; a narrow terminal wraps their lines."""
    console = open_console(width=TABLE_WIDTH)
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable, soft_wrap=not hasattr(renderable, "columns"))
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Draw a bar on standard error while it is a terminal."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Drawn by the calling thread only: the interpreters' own messages are caught from standard error meanwhile.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=open_console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(name, total=None)

        def progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{name}: {what}", refresh=True)

        yield progress


def or_dash(value: float | None) -> str:
    """Write a number in two digits; what is not known as a dash."""
    return "-" if value is None else f"{value:.2g}" if isinstance(value, float) else str(value)


@contextmanager
def foreign_output() -> Iterator[None]:
    """Send what foreign code prints, from Python or C, to standard error: standard output is for results."""
    stdout, kept = sys.stdout, None
    stdout.flush()
    with contextlib.suppress(OSError):  # closed
        kept = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
        try:
            os.dup2(2, 1)
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            stdout.flush()
        ctypes.CDLL(None).fflush(None)
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def check_output(arguments: argparse.Namespace) -> None:
    """Fail before the work where the table could not be printed after it."""
    if not arguments.json:
        open_console()


def complain(message: str, code: int) -> int:
    """Print one line, whatever characters the names in a model are made of."""
    line = "".join(character if character.isprintable() else "?" for character in " ".join(message.split()))
    try:
        print(f"nd4jlike: {line}", file=sys.stderr, flush=True)
    except OSError:  # nobody can read it; the code says it
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    return code
