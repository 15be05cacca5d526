"""Addresses as commands write them: shared+0x400, global 0x2000..., local 16, arg2[3,5], u16 shared+4,
tmem[3,5] (lane and column of tensor memory).

Knows spaces and arrays; does not know what is done with the bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...base.errors import OperandError
from ...isa.layouts.tensor_memory import COLUMNS, LANES
from ...machine.state.spaces import DEVICE_BASE
from ...observe.stops.areas import CELL, Area
from ...observe.stops.expressions import SPACES, parse_expression
from ...observe.stops.values import TYPES, type_of

if TYPE_CHECKING:
    from .travel import Travel

_CELL = re.compile(r"tmem\s*\[\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\]")
_ELEMENT = re.compile(r"arg(?P<index>[0-9]{1,4})\s*\[(?P<place>[^\]]*)\]")


@dataclass(frozen=True, kw_only=True)
class Address:
    """An address in a space; ``type`` is the word that lies there, "" where it is not known. Addresses of
    "tmem" have the lane in their upper 16 bits and the column in the lower.
    """

    space: str
    address: int
    type: str = ""


def address_of(session: Travel, text: str) -> Address:
    """Return the address that a text names, at the lane of the focus. Raises OperandError."""
    words = text.split(maxsplit=1)
    kind = ""
    if len(words) == 2 and words[0] in TYPES:
        kind, text = words[0], words[1]
    match = _ELEMENT.fullmatch(text.strip())
    if match is not None:
        found = _element(session, int(match["index"]), match["place"])
        return Address(space="global", address=found.address, type=kind or found.type)
    cell = _CELL.fullmatch(text.strip())
    if cell is not None:
        return Address(space="tmem", address=int(cell[1]) << 16 | int(cell[2]), type=kind)
    space, rest = _space(text.strip())
    value, lane = session.evaluate(parse_expression(rest))
    if value.missing is not None and value.missing[lane]:
        raise OperandError(f"{rest} has never been written in this lane")
    numbers = value.integers()
    address = int(numbers if not numbers.ndim else numbers[lane])
    if not space:
        space = "global" if address >= DEVICE_BASE else "shared"
    return Address(space=space, address=address, type=kind)


def _space(text: str) -> tuple[str, str]:
    """Return the space that a text begins with, "" for none, and the address in it."""
    for space in SPACES:
        rest = text.removeprefix(space).lstrip()
        if rest != text and (not rest or rest[0] in "+-" or text[len(space)] in " \t"):
            return space, f"0{rest}" if rest[:1] in ("+", "-") else rest or "0"
    return "", text


def _element(session: Travel, index: int, text: str) -> Address:
    """Return the address of an element of an array among the arguments."""
    shape = session.shapes.get(index)
    if shape is None:
        known = ", ".join(f"arg{each}" for each in session.shapes) or "none"
        raise OperandError(f"argument {index} is not an array; arrays are {known}")
    extents, dtype = shape
    try:
        place = tuple(int(part, 0) for part in text.split(","))
    except ValueError:
        raise OperandError(f"arg{index}[{text}]: expected numbers, as in arg{index}[3,5]") from None
    inside = len(place) == len(extents) and all(
        0 <= part < extent for part, extent in zip(place, extents, strict=True)
    )
    if not inside:
        raise OperandError(f"arg{index}[{text}] is outside of an array of shape {extents}")
    base = session.argument_address(index)
    if base is None:
        raise OperandError(f"argument {index} is not a pointer, or the kernel is not running")
    offset = int(np.ravel_multi_index(place, extents)) * dtype.itemsize
    return Address(space="global", address=base + offset, type=type_of(dtype))


def offset_of(session: Travel, given: Address, size: int) -> int:
    """Return the offset of bytes in the memory that holds them. Raises OperandError for those outside."""
    _, wave, lane = session.wave()
    memories, address = wave.memories, given.address
    if given.space == "tmem":
        return _cell_offset(address, int(wave.cta[lane]), size)
    if given.space == "global":
        if memories.device.find(address, size) is None:
            raise OperandError(f"{address:#x} {memories.device.describe(address)}")
        return address - DEVICE_BASE
    limit = memories.shared_bytes if given.space == "shared" else memories.local_bytes
    if not 0 <= address <= limit - size:
        raise OperandError(f"{given.space} {address:#x}: {given.space} memory has {limit} bytes")
    first = memories.shared_base[lane] if given.space == "shared" else lane * memories.local_stride
    return int(first) + address


def _cell_offset(address: int, cta: int, size: int) -> int:
    """Return the offset of cells that follow each other in a lane of the tensor memory of a CTA."""
    lane, column = address >> 16, address & 0xFFFF
    if size % CELL:
        raise OperandError("cells of tensor memory have 32 bits")
    if not 0 <= lane < LANES or column + size // CELL > COLUMNS:
        last = column + size // CELL - 1
        what = f"column {column}" if last == column else f"columns {column}..{last}"
        raise OperandError(f"lane {lane}, {what}: tensor memory has {LANES} lanes of {COLUMNS} columns")
    return ((cta * LANES + lane) * COLUMNS + column) * CELL


def area_of(session: Travel, text: str) -> tuple[Area, str]:
    """Return the bytes that a text names, and the type of their words; 32 bits where it says none."""
    given = address_of(session, text)
    kind = given.type or "b32"
    size = TYPES[kind].itemsize
    number, _, _ = session.wave()
    wave = -1 if given.space == "global" else number
    return Area(space=given.space, first=offset_of(session, given, size), size=size, wave=wave), kind
