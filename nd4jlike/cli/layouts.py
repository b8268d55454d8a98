"""``describe``: where each element of a layout lives."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nd4jlike import NdArray, ShapeDescriptor
from nd4jlike.cli.output import FINE, MISMATCH, print_json
from nd4jlike.errors import LayoutError, Nd4jLikeError
from nd4jlike.show import cell_at, describe, locate

if TYPE_CHECKING:
    import argparse

__all__ = ["run_describe"]


def _bytes_of(path: str, count: int) -> bytes:
    """Read so many bytes of a file, all that it has, or of a device without end."""
    found = bytearray()
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size > count:
            raise LayoutError(f"{path} has {status.st_size} bytes, this layout {count}")
        while len(found) < count and (more := file.read(min(count - len(found), 1 << 24))):
            found += more
    return bytes(found)


def run_describe(arguments: argparse.Namespace) -> int:
    """Run ``describe``."""
    descriptor = _descriptor(arguments)
    if arguments.svg == "-" and (arguments.json or {arguments.find, arguments.at, arguments.at_byte} != {None}):
        raise Nd4jLikeError("--svg - takes standard output for the picture: --json, --find, --at and --at-byte have no place there")
    if arguments.fill is not None and arguments.memory is None:
        raise Nd4jLikeError(f"--fill {arguments.fill} says what the padding in --memory FILE should hold: there is no --memory")
    described = describe(descriptor)
    described |= {"dtype": str(descriptor.dtype), "itemsize": descriptor.itemsize, "order": descriptor.order, "axes": descriptor.axes}
    if arguments.find is not None:
        described["find"] = _place(descriptor, arguments.find)
    if arguments.at is not None or arguments.at_byte is not None:
        cell = cell_at(descriptor, arguments.at if arguments.at is not None else arguments.at_byte // descriptor.itemsize)
        described["at"] = {"offset": cell.offset, "byte_offset": cell.offset * descriptor.itemsize, "kind": cell.kind, "index": cell.index}
        if arguments.at_byte is not None:
            described["at"]["byte"] = arguments.at_byte
    report = None
    if arguments.memory is not None:
        memory = _bytes_of(arguments.memory, descriptor.allocLength() * descriptor.itemsize)
        report = NdArray(descriptor, memory).check_padding(0 if arguments.fill is None else arguments.fill)
        described["dirty"] = [{"index": index, "offset": offset, "value": value.item(), "kind": kind} for index, offset, value, kind in report]
    drawing = descriptor.show(padding=report)
    code = FINE if report is None or report else MISMATCH
    if arguments.svg == "-":
        print(drawing.svg(), end="")
        return code
    if arguments.svg is not None:
        drawing.save(arguments.svg)
    if arguments.json:
        print_json(described)
        return code
    print(drawing)
    if code == MISMATCH:
        print(report)
    if arguments.find is not None:
        print(_found(descriptor, described["find"]))
    if "at" in described:
        print(_lies(described["at"]))
    return code


def _place(descriptor: ShapeDescriptor, index: tuple[int, ...]) -> dict[str, Any]:
    """Tell where an element or a padding cell lies: in the hosting buffer each is an element."""
    offset = descriptor.offset_of(index, padding=True)
    hosting = descriptor.hosting()
    return locate(hosting, next(hosting.indices_at(offset))) | {"index": index, "kind": cell_at(descriptor, offset).kind}


def _found(descriptor: ShapeDescriptor, found: dict[str, Any]) -> str:
    what = "block tail" if found["kind"] == "tail" else found["kind"]
    where = f"{what} {found['index']} is at offset {found['offset']}, byte {found['byte_offset']}"
    if descriptor.inner_blocks:
        return f"{where}: block {found['block']}, cell {found['cell']} of {tuple(size for _, size in descriptor.inner_blocks)}"
    return f"{where}: cell {found['block']} of {descriptor.padded_shape}"


def _lies(at: dict[str, Any]) -> str:
    words = {
        "element": "element {}",
        "halo": "halo, beside the elements at {}",
        "tail": "block tail, beyond the elements at {}",
        "gap": "gap, no cell of this layout",
    }
    inside = f"byte {at['byte']} is in the cell " if at.get("byte", at["byte_offset"]) != at["byte_offset"] else ""
    return f"{inside}at offset {at['offset']}, byte {at['byte_offset']}: {words[at['kind']].format(at['index'])}"


def _descriptor(arguments: argparse.Namespace) -> ShapeDescriptor:
    if arguments.layout in ("c", "f"):
        paddings = arguments.paddings or (0,) * len(arguments.shape)
        return ShapeDescriptor.paddedBufferDescriptor(arguments.dtype, arguments.layout, arguments.shape, paddings, arguments.padding_offsets)
    return ShapeDescriptor.from_tag(arguments.shape, arguments.layout, arguments.dtype, arguments.paddings, arguments.padding_offsets)
