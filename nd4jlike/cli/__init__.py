"""The command ``nd4jlike``: verify a real model, describe a layout, measure, say what this machine offers."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nd4jlike.cli.arguments import parse
from nd4jlike.cli.child import INTERRUPTED, interruption, note, supervised
from nd4jlike.cli.output import BAD_INPUT, complain
from nd4jlike.errors import Nd4jLikeError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

__all__ = ["main"]

BROKEN_PIPE = 141


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
        return supervised(lambda: _run(arguments), *arguments.crash)
    return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    """Run one command; its errors become a line and a code."""
    note("")
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes standard output once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return complain(interruption(), INTERRUPTED)
    except MemoryError as error:
        return complain(": ".join(filter(None, ["not enough memory", str(error)])), BAD_INPUT)
    except OSError as error:
        return complain(f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
    except Nd4jLikeError as error:
        return complain(str(error), BAD_INPUT)
