"""The grammar of layout tags: ``outer inner*`` (ADR 0001).

`outer` names the axes from the slowest to the fastest, one letter each; `inner` is a number and a letter for each inner
block, outermost first. Letter tags (``aBcd8b``) count the axes of the shape from ``a``; named tags (``nChw8c``) use the
names that oneDNN gives them. Upper case marks an axis that has inner blocks and carries no information.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nd4jlike.errors import LayoutError, ShapeStatus

__all__ = ["MAX_TAG_AXES", "ParsedTag", "canonical", "parse"]

MAX_TAG_AXES = 12  # oneDNN's DNNL_MAX_NDIMS; its letters end with l
_DIGITS = 18  # of a block size
_LETTERS = "abcdefghijkl"

# Which names a tag uses, told by the first of these letters that occurs in it; each row is in the order of the logical axes.
_NAMES = (
    ("l", "ldnigoc"),  # recurrent weights: layers, directions, input channels, gates, output channels
    ("t", "tnc"),  # sequences
    ("n", "ncdhw"),  # activations
    ("", "goidhw"),  # convolution weights
)

# Two names of oneDNN's contradict the layout that they stand for: the outer order is g, o, i.
_ANOMALIES = {"giohw2i8o16i2o": "goihw2i8o16i2o", "giodhw2i8o16i2o": "goidhw2i8o16i2o"}


class ParsedTag(NamedTuple):
    """A tag as numbers."""

    axes: tuple[int, ...]  # slowest first
    blocks: tuple[tuple[int, int], ...]  # (axis, size), outermost first


# Tags that were read: the same few come again and again.
_PARSED: dict[str, ParsedTag] = {}
_MOST_PARSED = 256


def parse(tag: str) -> ParsedTag:
    """Read a tag.

    Parameters
    ----------
    tag : str
        For example ``"nhwc"``, ``"nChw8c"``, ``"aBcd8b"`` or ``"OIhw4i16o4i"``.

    Returns
    -------
    ParsedTag
        Axes from the slowest to the fastest, and blocks from the outermost to the innermost.

    Raises
    ------
    LayoutError
        Naming the position of the first character that breaks the grammar.

    Examples
    --------
    >>> from nd4jlike.tags import parse
    >>> parse("nChw8c")
    ParsedTag(axes=(0, 1, 2, 3), blocks=((1, 8),))
    """
    if not isinstance(tag, str):
        raise LayoutError(f"a layout tag is a str such as 'nhwc', not {tag!r}")
    found = _PARSED.get(tag)
    if found is None:
        found = _read(tag)
        if len(_PARSED) < _MOST_PARSED:
            _PARSED[tag] = found
    return found


def _read(tag: str) -> ParsedTag:
    # Only ASCII letters change their case and nothing else: other alphabets have letters whose lower case is longer, or one of ours.
    lower = "".join(letter.lower() if letter.isascii() else letter for letter in tag)
    lower = _ANOMALIES.get(lower, lower)
    split = re.match(r"[^0-9]*", lower)
    outer = split.group() if split else ""
    if not outer:
        raise _error(tag, 0, "a tag starts with the letters of its axes, slowest first")

    names = _LETTERS[: len(outer)] if "a" in outer else next(order for mark, order in _NAMES if mark in outer)
    if outer == "x":
        names = outer  # one axis
    used = [name for name in names if name in outer]
    for position, letter in enumerate(outer):
        if position >= MAX_TAG_AXES:
            raise _error(tag, position, f"a tag has at most {MAX_TAG_AXES} axes")
        if letter not in names:
            if lower == "any":
                raise _error(tag, position, "'any' is no layout, it asks oneDNN for one: see adapters.onednn")
            others = "" if set(names) != set(_NAMES[-1][1]) else f"; letters are a to l, or {'; '.join(', '.join(order) for _, order in _NAMES[:-1])}"
            raise _error(tag, position, f"letter {tag[position]!r} is none of {', '.join(names)}{others}")
        if letter in outer[:position]:
            raise _error(tag, position, f"letter {tag[position]!r} stands twice in the outer part")

    blocks = []
    position = len(outer)
    while position < len(lower):
        found = re.compile(r"([0-9]+)([a-z]?)").match(lower, position)
        if found is None:
            raise _error(tag, position, "an inner block is a number and a letter")
        size, letter = found.groups()
        if not letter:
            raise _error(tag, found.end(), f"block {size} has no letter")
        if letter not in used:
            raise _error(tag, found.end() - 1, f"letter {letter!r} of a block is none of the axes {', '.join(used)}")
        if len(size) > _DIGITS or int(size) < 1:
            raise _error(tag, position, f"block size {size} is not 1 or more, in {_DIGITS} digits at most")
        blocks.append((used.index(letter), int(size)))
        position = found.end()
    return ParsedTag(tuple(used.index(letter) for letter in outer), tuple(blocks))


def canonical(axes: tuple[int, ...], blocks: tuple[tuple[int, int], ...]) -> str | None:
    """Letter tag of a layout.

    Parameters
    ----------
    axes : tuple of int
        From the slowest to the fastest.
    blocks : tuple of (int, int)
        Axis and size, outermost first.

    Returns
    -------
    str or None
        None for rank 0, and for more axes or larger blocks than a tag can name.

    Examples
    --------
    >>> from nd4jlike.tags import canonical
    >>> canonical((0, 1, 2, 3), ((1, 8),))
    'aBcd8b'
    """
    if not 0 < len(axes) <= MAX_TAG_AXES or any(size >= 10**_DIGITS for _, size in blocks):
        return None
    blocked = {axis for axis, _ in blocks}
    outer = "".join(_LETTERS[axis].upper() if axis in blocked else _LETTERS[axis] for axis in axes)
    return outer + "".join(f"{size}{_LETTERS[axis]}" for axis, size in blocks)


def _error(tag: str, position: int, what: str) -> LayoutError:
    return LayoutError(f"tag {tag!r}, position {position}: {what}", ShapeStatus.INCORRECT_TAG)
