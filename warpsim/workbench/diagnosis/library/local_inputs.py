"""Mistakes in metadata words, in some rows or k of a tile in shared memory, and in the scales of some rows.

Words shifted, halved, spread or in the order of memory. Rows that are zero, repeat others or are rotated,
16-byte chunks that did not arrive, k in the order of accumulators. Scales that are another row's, or off by a
power of two. Does not know descriptors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ....base.errors import present
from ....isa.fragments import metadata_map
from ....isa.registers import Words
from .grids import Index, Rearrangement, Setting, grid_of
from .mistake import Mistake, in_operand

Made = Iterator[Mistake]
_CORE = 8  # rows of a core matrix
_CHUNK = 16  # bytes that one copy brings


# --- tiles ---------------------------------------------------------------------------------------------


def tile_mistakes(setting: Setting, operand: str) -> Made:
    """Yield mistakes in an operand in shared memory, whose grid is (row along M or N, k)."""
    grid = grid_of(setting, operand)
    row, k = np.arange(grid.lanes), np.arange(grid.registers)
    yield from _zero_rows(operand, row)
    for by in (*range(2, _CORE), 32, -32):
        if abs(by) < len(row):
            name = f"rows of the tile rotated by {by}: row r holds r + {by} (mod {len(row)})"
            yield in_operand(name, operand, "check where rows are written", _rows((row + by) % len(row)))
    yield from _along_k(setting, operand, k)


def _zero_rows(operand: str, row: Index) -> Made:
    """Yield rows and groups of eight rows that are zero or hold others."""
    advice = "these rows do not arrive in shared memory: check the bounds of the copy"
    for at in row.tolist():
        yield in_operand(f"row {at} of the tile is zero", operand, advice, _cleared(row == at))
        for other in (at - 1, at + 1):
            if 0 <= other < len(row):
                name = f"row {at} of the tile holds row {other}"
                yield in_operand(name, operand, advice, _rows(np.where(row == at, other, row)))
    for first in range(0, len(row), _CORE):
        inside = row // _CORE * _CORE == first
        name = f"rows {first}-{first + _CORE - 1} of the tile"
        yield in_operand(f"{name} are zero", operand, advice, _cleared(inside))
        for by in (-_CORE, _CORE):
            if 0 <= first + by < len(row):
                other = f"{name} hold rows {first + by}-{first + by + _CORE - 1}"
                yield in_operand(other, operand, advice, _rows(np.where(inside, row + by, row)))
    for size in (16, 32, 64, 128):
        for first in range(0, len(row) if size < len(row) else 0, size):
            name = f"rows {first}-{first + size - 1} of the tile are zero"
            yield in_operand(name, operand, advice, _cleared(row // size * size == first))


def _along_k(setting: Setting, operand: str, k: Index) -> Made:
    """Yield chunks of 16 bytes that are zero or exchanged, rotations of k, and k as accumulators hold it."""
    bits = setting.instruction.format(operand).bits
    chunk = max(1, 8 * _CHUNK // bits)
    for first in range(0, len(k), chunk):
        name = f"k {first}-{min(first + chunk, len(k)) - 1} of the tile is zero"
        keep = k // chunk * chunk != first
        yield in_operand(name, operand, "16 bytes of every row do not arrive", _kept(keep))
    for by in (*range(1, chunk + 1), -1):
        name = f"k of the tile rotated by {by}: place j holds j + {by} (mod {len(k)})"
        yield in_operand(name, operand, "check the columns that are written", _columns((k + by) % len(k)))
    if len(k) % 16 == 0:
        pairs = k % 4 // 2 * 8 + k // 4 % 4 * 2 + k % 2 + k // 16 * 16
        name = "k in the order of accumulators (FlashAttention's P for 8-bit types)"
        advice = "permute k of the other operand alike, or exchange bytes between the lanes of a quad"
        yield in_operand(name, operand, advice, _columns(pairs))
        yield in_operand(f"{name}, undone", operand, advice, _columns(np.argsort(pairs)))


def _cleared(where: Index) -> Callable[[Words], Words]:
    return lambda tile: tile * (~where)[:, None].astype(tile.dtype)


def _kept(where: Index) -> Callable[[Words], Words]:
    return lambda tile: tile * where.astype(tile.dtype)


def _rows(source: Index) -> Callable[[Words], Words]:
    return lambda tile: tile[..., source, :]


def _columns(source: Index) -> Callable[[Words], Words]:
    return lambda tile: tile[..., source]


# --- scales --------------------------------------------------------------------------------------------


def scale_mistakes(setting: Setting, operand: str) -> Made:
    """Yield scales of another row of A or column of B, and scales off by a power of two."""
    lane = np.arange(grid_of(setting, operand).lanes)
    axis, row = ("row", lane // 4 + 8 * (lane % 2)) if operand == "scale_a" else ("column", lane // 4)
    size = int(row.max()) + 1
    lane_of = np.array([int(np.flatnonzero(row == line)[0]) for line in range(size)])
    thread = lane - lane_of[row]  # of the quad, beyond the first that holds the row
    for line in range(size):
        advice = f"load the scales of every {axis}"
        yield in_operand(f"{axis} {line}'s for all {axis}s", operand, advice, _rows(lane * 0 + lane_of[line]))
        yield in_operand(f"{axis} {line}'s are zero", operand, advice, _cleared(row == line))
        for other in range(size):
            if other != line:
                name = f"{axis} {line} has those of {axis} {other}"
                source = np.where(row == line, lane_of[other] + thread, lane)
                yield in_operand(name, operand, advice, _rows(source))
    scale = present(setting.instruction.scale, "scale")
    for by in (1, -1, 2, -2, 3, -3):
        text = f"{2**by}" if by > 0 else f"1/{2**-by}"
        advice = (
            f"the exponents of the scales are {abs(by)} too {'high' if by > 0 else 'low'}: check their bias"
        )
        step = (by << scale.fraction_bits) & 0xFF
        yield in_operand(f"times {text} (factor {2.0**by:g})", operand, advice, _bytes_plus(step))


def _bytes_plus(step: int) -> Callable[[Words], Words]:
    """Return every byte of the words more by a number, without carries."""

    def change(words: Words) -> Words:
        values = np.ascontiguousarray(words, "<u4").view(np.uint8) + np.uint8(step)
        return values.view("<u4").astype(words.dtype)

    return change


# --- metadata ------------------------------------------------------------------------------------------


def metadata_mistakes(setting: Setting) -> Made:
    """Yield words shifted, halved, or in the order of memory."""
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
    """Return the lower four fields of a word, each in a byte."""
    parts = [(e >> np.uint32(4 * i) & np.uint32(0xF)) << np.uint32(8 * i) for i in range(4)]
    return np.asarray(parts[0] | parts[1] | parts[2] | parts[3], e.dtype)


def _memory_order(setting: Setting, undo: bool) -> Rearrangement:
    """Return the i-th lane that is read has the i-th word of E, row after row; ``undo``: the inverse."""
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
