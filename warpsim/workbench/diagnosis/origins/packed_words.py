"""Words that are put together by sums: parts whose bits do not overlap, as (high << 16) + low.

A sum of such parts moves bits as a bitwise or does, and so does a product with a power of two. Knows calls of
scalar statements and their bits; does not know what the words are for.
"""

from __future__ import annotations

import numpy as np

from ....observe.algebra.keys.finite_fields import Keys
from ....observe.algebra.rules.rule_calls import Call, Outcome

_WIDEST = 4  # bytes of integers whose bits have keys
_SUMS = {"add": (0, 1), "mul": (0,), "mad": (0, 2)}  # by opcode: the operands that are terms
_SCALED = ("mul", "mad")  # the first term times the second operand


def packed(call: Call) -> Outcome | None:
    """Return the bits of a sum of integers that do not overlap; None for other statements and sums."""
    opcode, size = call.statement.opcode, call.after.dtype.itemsize
    if opcode not in _SUMS or call.element.kind not in ("s", "u") or size > _WIDEST:
        return None
    if {"sat", "hi", "wide", "cc"} & set(call.modifiers) or (opcode == "mul" and call.cells[0] is None):
        return None
    found = np.zeros((call.lanes, 8 * size), np.uint64)
    for place in _SUMS[opcode]:
        rows = _bits(call, place, size, scaled=opcode in _SCALED and place == 0)
        if rows is None or ((rows != 0) & (found != 0)).any():
            return None
        found = np.where(rows != 0, rows, found)
    return Outcome(call.reader.bits.number(found)[None])


def _bits(call: Call, place: int, size: int, *, scaled: bool) -> Keys | None:
    """Return the bits ``(lanes, bits)`` of a term; None where they are not known, or the factor is no power
    of two.
    """
    rows, known = call.reader.rows(call.cells[place], call.bits[place], size)
    if not known.all():
        return None
    if not scaled:
        return rows
    factor = int(call.bits[1][0])
    if call.cells[1] is not None or factor.bit_count() != 1 or (call.bits[1] != factor).any():
        return None
    shift = min(factor.bit_length() - 1, 8 * size)
    return np.pad(rows, ((0, 0), (shift, 0)))[:, : 8 * size]
