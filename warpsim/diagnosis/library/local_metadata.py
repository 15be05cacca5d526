"""Metadata whose words are shifted, halved, spread or in the order of memory.

Knows words and the fields in them. Does not know lanes and rearrangements that other operands can have too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...isa.fragments import metadata_map
from ...isa.registers import Words
from .grids import Rearrangement, Setting, grid_of
from .mistake import Mistake, in_operand

Made = Iterator[Mistake]


def metadata_mistakes(setting: Setting) -> Made:
    """Words shifted, halved, or in the order of memory."""
    for bits in (2, 4, 8, 16):
        advice = f"fields are four bits from bit 0 on: the words are off by {bits} bits"
        yield in_operand(f"shifted left by {bits} bits", "e", advice, lambda e, n=bits: e << np.uint32(n))  # type: ignore[misc]
        yield in_operand(f"shifted right by {bits} bits", "e", advice, lambda e, n=bits: e >> np.uint32(n))  # type: ignore[misc]
    low, high, half = np.uint32(0xFFFF), np.uint32(0xFFFF0000), np.uint32(16)
    advice = "a word has 32 bits of metadata: load both half-words"
    yield in_operand("lower half-word only, the upper is zero", "e", advice, lambda e: e & low)
    yield in_operand("upper half-word only, the lower is zero", "e", advice, lambda e: e & high)
    yield in_operand("lower half-word in both halves", "e", advice, lambda e: e & low | e << half)
    yield in_operand("upper half-word in both halves", "e", advice, lambda e: e & high | e >> half)
    yield in_operand("fields of 4 bits spread to 8 (one field a byte)", "e", advice, _spread_fields)
    advice = "reorder E as the instruction reads it: the words come row by row, as in memory"
    for undo in (False, True):
        name = f"in memory order, not reordered{', undone (reordered twice)' if undo else ''}"
        yield in_operand(name, "e", advice, _memory_order(setting, undo))


def _spread_fields(e: Words) -> Words:
    """The lower four fields of a word, one a byte."""
    parts = [(e >> np.uint32(4 * i) & np.uint32(0xF)) << np.uint32(8 * i) for i in range(4)]
    return np.asarray(parts[0] | parts[1] | parts[2] | parts[3], e.dtype)


def _memory_order(setting: Setting, undo: bool) -> Rearrangement:
    """The i-th lane that is read has the i-th word of E, row after row; ``undo``: the inverse."""
    own = metadata_map(setting.instruction, setting.selector)
    lanes = np.unique(own[:, 0])
    order = np.lexsort((own[:, 3] * 0 + own[:, 4], own[:, 3]))
    grid = grid_of(setting, "e")
    source = np.arange(grid.lanes * grid.registers * grid.slots)
    size = int(own[0, 2])  # bits of a field
    each = 32 * len(lanes) // len(own)
    for place, field in enumerate(order.tolist()):
        memory = lanes[place * each // 32] * 16 + place * each % 32 // 2
        mine = own[field, 0] * 16 + own[field, 1] // 2
        for slot in range(size // 2):
            here, there = (mine, memory) if undo else (memory, mine)
            source[here + slot] = there + slot
    return Rearrangement(grid=grid, source=source)
