"""Bytes of two registers put together anew: prmt.

Knows PTX ISA 9.0, section 9.7.9, "prmt": the bytes of a are numbered 0 to 3, those of b 4 to 7.
"""

from __future__ import annotations

import numpy as np

from ..operation import Operation, Row, Values, looked_up

# Which byte goes where, for the selector's low two bits 0, 1, 2, 3; the most significant byte first.
_MODES = {
    "f4e":  ("3210", "4321", "5432", "6543"),
    "b4e":  ("5670", "6701", "7012", "0123"),
    "rc8":  ("0000", "1111", "2222", "3333"),
    "ecl":  ("3210", "3211", "3222", "3333"),
    "ecr":  ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}  # fmt: skip


def _permute(a: Values, b: Values, selectors: Values) -> Values:
    """Byte i is chosen by nibble i of the selectors; its bit 3 fills byte i with the chosen byte's sign.

    Selectors of shape (), as in most code, take a few shifts.
    """
    if selectors.ndim:
        return _permute_each(a, b, selectors)
    result: Values = np.zeros((), np.uint32)
    for place in range(0, 32, 8):
        selector = int(selectors) >> (place // 2) & 15
        word = b if selector & 4 else a
        result = result | _byte_moved(word, 8 * (selector & 3), place, signs=bool(selector & 8))
    return result


def _byte_moved(word: Values, source: int, place: int, signs: bool) -> Values:
    """Return the byte at bit ``source`` of the word, or its sign eight times, at bit ``place``; zeros
    elsewhere.
    """
    moved: Values
    if signs:
        moved = np.multiply((word >> (source + 7)) & 1, np.uint32(0xFF << place))
    else:
        moved = (word << (place - source) if place > source else word >> (source - place)) & (0xFF << place)
    return moved


def _permute_each(a: Values, b: Values, selectors: Values) -> Values:
    both = (b.astype(np.uint64) << 32) | a
    result: Values = np.zeros((), np.uint32)
    for place in range(0, 32, 8):
        selector = selectors >> (place // 2)
        byte = ((both >> ((selector & 7) << 3)) & 0xFF).astype(np.uint32)
        sign = np.where(byte > 0x7F, np.uint32(0xFF), np.uint32(0))
        result = result | (np.where((selector & 8) != 0, sign, byte) << place)
    return result


def _build(type_name: str, mode: str) -> Operation:
    if not mode:
        return Operation(results=("b32",), sources=("b32",) * 3, compute=lambda a, b, c: (_permute(a, b, c),))
    selectors = np.array([int(digits, 16) for digits in _MODES[mode]], np.uint32)
    return Operation(
        results=("b32",),
        sources=("b32",) * 3,
        compute=lambda a, b, c: (_permute(a, b, looked_up(selectors, c & 3)),),
    )


ROWS: tuple[Row, ...] = (Row(opcode="prmt", slots=(("b32",), ("", *_MODES)), build=_build, since=(2, 0)),)
