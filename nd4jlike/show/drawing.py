"""What `show` and `diff` give: text that can be a picture (ADR 0011)."""

from __future__ import annotations

import errno
import html
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.show.svg import svg_of

if TYPE_CHECKING:
    from nd4jlike.padding import PaddingReport

__all__ = ["Drawing"]


class Drawing(str):
    """Text that shows itself, with the picture of the same layouts.

    Attributes
    ----------
    descriptors : tuple of ShapeDescriptor
        The layout, or the two that are compared.
    padding : PaddingReport or None
        What the padding of an array held.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> drawing = ShapeDescriptor("int8", "c", (2, 3)).show()
    >>> drawing.svg().partition(" ")[0]
    '<svg'
    """

    descriptors: tuple[ShapeDescriptor, ...]
    padding: PaddingReport | None

    def __new__(cls, text: str, *descriptors: ShapeDescriptor, padding: PaddingReport | None = None) -> Drawing:
        """Make one of its text and layouts."""
        made = super().__new__(cls, text)
        made.descriptors = descriptors
        made.padding = padding
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (str(self), *self.descriptors)

    def __repr__(self) -> str:
        return str(self)

    def svg(self) -> str:
        """Draw the picture.

        Returns
        -------
        str
            A self-contained SVG document, the same for equal layouts and reports of padding.
        """
        return svg_of(self.descriptors, self.padding)

    def html(self, text: str | None = None) -> str:
        """Draw the picture below a text.

        Parameters
        ----------
        text : str, optional
            Default: the descriptors.

        Returns
        -------
        str
            A fragment of HTML.
        """
        words = "\n".join(map(repr, self.descriptors)) if text is None else text
        return f"<div><pre>{html.escape(words)}</pre>\n{self.svg()}</div>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file: all of it or nothing.

        Parameters
        ----------
        path : path-like
            A file there is replaced; a device or pipe is written to.

        Raises
        ------
        OSError
            Where the place cannot be written; what was there stays.
        """
        _write(Path(path), self.svg())

    def _repr_svg_(self) -> str:
        return self.svg()


def _write(path: Path, content: str) -> None:
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        try:
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        return
    target = path.resolve()
    unfinished = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(content)
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
