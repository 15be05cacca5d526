"""The rearrangement mistakes of the library, a row each.

Rows with the same effect on a form become one mistake (see all_mistakes). The order is the order of
reporting: what happens most often comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from .element_sources import (
    Formula,
    Predicate,
    always,
    both,
    by_element,
    contiguous,
    divides,
    exchange,
    exchange_k_halves,
    exchange_metadata_halves,
    exchange_row_halves,
    first_chunk,
    flip,
    has_selector,
    k_first,
    lanes,
    next_thread,
    one_product,
    other_selector,
    other_width,
    read_across,
    reversed_registers,
    rotated_bytes,
    rows_first,
    several_k_blocks,
    several_warps,
    spread,
    transposed_blocks,
    two_row_halves,
    warps,
    words_read,
    written_across,
)
from .grids import Index


@dataclass(frozen=True, kw_only=True)
class Row:
    """A mistake in the arrangement of an operand.

    ``operands`` are those in which it is looked for; ``cd`` stands for C and D together. ``advice``
    says what to change; ``{operand}`` in it and in the name stands for the operand. ``chooses``: the
    instruction chooses other places, and nothing has moved.
    """

    name: str
    operands: tuple[str, ...]
    advice: str
    applies: Predicate
    formula: Formula
    chooses: bool = False
    exchanges_row_halves: bool = False


def _row(
    name: str, operands: tuple[str, ...], applies: Predicate, formula: Formula, advice: str, **flags: bool
) -> Row:
    return Row(name=name, operands=operands, applies=applies, formula=formula, advice=advice, **flags)


# fmt: off
_MULTIPLICANDS = ("a", "b")
_ACCUMULATORS = ("d", "cd", "c")
_FRAGMENTS = (*_MULTIPLICANDS, *_ACCUMULATORS)
_SCALES = ("scale_a", "scale_b")

# --- registers -----------------------------------------------------------------------------------------


_HALVES_ADVICE = "exchange the registers of rows g and g + 8 of {operand}"

_REGISTER_ROWS = (
    _row("{operand}: registers run along k first", ("a",), both, k_first,
         "A's registers run over rows g and g + 8 first, then along k: a1 is row g + 8, a2 the next k"),
    _row("{operand}: registers run along k first, undone", ("a",), both, rows_first,
         "A's registers run over rows g and g + 8 first, then along k: a1 is row g + 8, a2 the next k"),
    _row("{operand}: rows g and g + 8 exchanged", ("a", *_ACCUMULATORS), two_row_halves, exchange_row_halves,
         _HALVES_ADVICE, exchanges_row_halves=True),
    _row("{operand}: rows g and g + 8 exchanged", ("e",), always, exchange_metadata_halves,
         "exchange the fields of rows g and g + 8: halves of a word with 16- and 32-bit elements, "
         "lanes 2i and 2i + 1 with narrower elements", exchanges_row_halves=True),
    _row("{operand}: k halves exchanged", _MULTIPLICANDS, several_k_blocks, exchange_k_halves,
         "exchange the lower and the upper half of {operand}'s registers: they are the halves of k"),
    _row("{operand}: registers in reverse order", _FRAGMENTS, lambda grid: grid.registers > 2,
         reversed_registers, "reverse the order of {operand}'s registers"),
    *(
        _row(f"{{operand}}: registers {first} and {second} exchanged", _FRAGMENTS,
             lambda grid, second=second: grid.registers > second, exchange(first, second),  # type: ignore[misc]
             f"exchange registers {first} and {second} of {{operand}}")
        for first, second in combinations(range(8), 2)
    ),
)

# --- slots ---------------------------------------------------------------------------------------------


_EVERYWHERE = (*_FRAGMENTS, "e", *_SCALES)
_FLIPS = (
    #  xor of the bit position, operands, what is exchanged
    (16, _EVERYWHERE, "16-bit halves of each register exchanged"),
    (24, _EVERYWHERE, "bytes of each register reversed"),
    (8, _EVERYWHERE, "bytes of each 16-bit half exchanged"),
    (4, (*_MULTIPLICANDS, "e"), "nibbles of each byte exchanged"),
    (28, (*_MULTIPLICANDS, "e"), "nibbles of each register reversed"),
    (2, ("e",), "indices of each field exchanged"),
    (30, ("e",), "indices of each register reversed"),
    (7, _MULTIPLICANDS, "bits of each byte reversed"),
    (31, _MULTIPLICANDS, "bits of each register reversed"),
)

_SLOT_ROWS = tuple(
    _row(f"{{operand}}: {what}", operands, divides(mask), flip(mask),
         f"element 0 of {{operand}} belongs in the lowest bits: found the {what}")
    for mask, operands, what in _FLIPS
)

# --- lanes ---------------------------------------------------------------------------------------------


_ALL = (*_MULTIPLICANDS, *_ACCUMULATORS, "e", *_SCALES)
_LANE_FORMULAS: tuple[tuple[str, tuple[str, ...], Predicate, Callable[[Index], Index], str], ...] = (
    # name, operands, applies, source lane, advice
    *(
        (f"{what} {step:+d}", _ALL, always, source,
         f"correct the lane arithmetic of {{operand}}: each lane has what belongs in {owner}")
        for what, step, owner, source in (
            ("lane group off by", 1, "lane + 4", lambda lane: (lane + 4) % 32),
            ("lane group off by", -1, "lane - 4", lambda lane: (lane - 4) % 32),
            ("thread in group off by", 1, "the next lane of the quad", next_thread(1)),
            ("thread in group off by", -1, "the previous lane of the quad", next_thread(-1)),
            ("lane off by", 1, "lane + 1", lambda lane: (lane + 1) % 32),
            ("lane off by", -1, "lane - 1", lambda lane: (lane - 1) % 32),
        )
    ),
    ("neighbouring lanes exchanged", _ALL, always, lambda lane: lane ^ 1,
     "exchange {operand} between lanes 2i and 2i + 1"),
    ("lane pairs of each quad exchanged", _ALL, always, lambda lane: lane ^ 2,
     "exchange {operand} between lanes t and t xor 2 of each quad"),
    ("group and thread confused", _ALL, always, lambda lane: lane % 8 * 4 + lane // 8,
     "lane = 4 * groupID + threadID_in_group, and not groupID + 8 * thread: rearrange {operand}"),
    ("group and thread confused, undone", _ALL, always, lambda lane: lane % 4 * 8 + lane // 4,
     "lane = 4 * groupID + threadID_in_group, and not groupID + 8 * thread: rearrange {operand}"),
    *(
        (f"lanes l and l xor {mask} exchanged (rows {mask // 4} apart)", _ALL, always,
         lambda lane, mask=mask: lane ^ mask,
         f"exchange {{operand}} between lanes l and l xor {mask}: groups of lanes are in another order")
        for mask in (4, 8)
    ),
    ("lane halves exchanged", _ALL, always, lambda lane: lane ^ 16,
     "exchange {operand} between lanes 0-15 and 16-31"),
    ("row half and k half of the lane exchanged", ("e",), words_read(4),
     lambda lane: lane & ~3 | (lane & 1) << 1 | (lane & 2) >> 1,
     "lane bit 0 chooses the row half, lane bit 1 the k half: exchange lanes 1 and 2 of each quad"),
    ("the first k half's words used for both", ("e",), words_read(4), lambda lane: lane & ~2,
     "lanes 2 and 3 of a quad hold the metadata of the upper k half: load all four lanes"),
    ("the second k half's words used for both", ("e",), words_read(4), lambda lane: lane | 2,
     "lanes 0 and 1 of a quad hold the metadata of the lower k half: load all four lanes"),
    ("even lane's word in both lanes of a pair", ("e",), words_read(2), lambda lane: lane & ~1,
     "both lanes of a pair hold metadata of their own: do not copy the even lane's word"),
    ("odd lane's word in both lanes of a pair", ("e",), words_read(2), lambda lane: lane | 1,
     "both lanes of a pair hold metadata of their own: do not copy the odd lane's word"),
    *(
        (f"lane {thread}'s word broadcast to its quad", ("e",), words_read(1),
         lambda lane, thread=thread: lane & ~3 | thread,
         "each lane that the selector reads has a word of its own: do not broadcast a word to the quad")
        for thread in range(4)
    ),
)

_LANE_ROWS = tuple(
    _row(f"{{operand}}: {name}", operands, applies, lanes(source), advice)
    for name, operands, applies, source, advice in _LANE_FORMULAS
)

_WARP_ROWS = (
    *(
        _row(f"{{operand}}: warp off by {step:+d}", _ALL[:-2], several_warps,
             warps(lambda warp, step=step: warp + step),  # type: ignore[misc]
             f"warp i holds rows 16 * i to 16 * i + 15 of {{operand}}: found those of warp i {step:+d}")
        for step in (1, -1)
    ),
    *(
        _row(f"{{operand}}: {what} exchanged", _ALL[:-2], several_warps,
             warps(lambda warp, mask=mask: warp ^ mask),  # type: ignore[misc]
             "warp i holds rows 16 * i to 16 * i + 15 of {operand}: number the warps of the warpgroup "
             "in the order of their threads")
        for mask, what in ((1, "neighbouring warps"), (2, "warp pairs"))
    ),
    _row("{operand}: warp 0's registers in every warp", ("a", "c", "e"), several_warps,
         warps(lambda warp: warp * 0),
         "each warp holds 16 rows of {operand} of its own: add 16 * warp to the row"),
)

# --- matrices ------------------------------------------------------------------------------------------


_CONTIGUOUS_ADVICE = (
    "a lane's registers of {operand} do not hold consecutive k: register r starts at k = w * (t + 4 * r)"
)

_MATRIX_ROWS = (
    _row("{operand}: transposed (rows read as columns)", _FRAGMENTS, always, by_element(read_across),
         "change the storage order in which {operand} is read: row-major against column-major"),
    _row("{operand}: transposed (columns read as rows)", _FRAGMENTS, always, by_element(written_across),
         "change the storage order in which {operand} is read: row-major against column-major"),
    _row("{operand}: 8 x 8 blocks transposed", ("b", "a", "d"),
         lambda grid: grid.bits <= 16 and one_product(grid), transposed_blocks,
         "transpose each 8 x 8 block of {operand}: .trans of ldmatrix, stmatrix or movmatrix is "
         "missing, or too much"),
    _row("{operand}: consecutive k in each lane", _MULTIPLICANDS, several_k_blocks, contiguous,
         _CONTIGUOUS_ADVICE),
    _row("{operand}: consecutive k in each lane, undone", _MULTIPLICANDS, several_k_blocks, spread,
         _CONTIGUOUS_ADVICE),
)

# --- metadata and scales -------------------------------------------------------------------------------


_WIDTH_ADVICE = (
    "a word has four chunks of rows g and g + 8 with 16- and 32-bit elements, eight chunks of one row "
    "with narrower elements, where lane bit 0 chooses the row half: k64 metadata is not two k32 blocks"
)


_METADATA_ROWS = (
    *(
        _row(f"{{operand}}: selector {value} meant", ("e",), has_selector(value), other_selector(value),
             f"with sparsity selector {value}, or the metadata moved to the lanes that the selector "
             "reads, the result matches", chooses=True)
        for value in range(4)
    ),
    *(
        _row(f"{{operand}}: arranged for elements of another width{', undone' if undo else ''}", ("e",),
             words_read(2), other_width(undo=undo), _WIDTH_ADVICE)
        for undo in (False, True)
    ),
    *(
        _row(f"{{operand}}: byte id off by {step}", _SCALES,
             lambda grid, step=step: step % grid.instruction.scale_chunks == 0, rotated_bytes(step),  # type: ignore[misc]
             "the byte id names the first byte of the scales: it is off by "
             f"{step}, or the scales are {step} bytes too high")
        for step in (1, 2, 3)
    ),
    *(
        _row(f"{{operand}}: thread id off by {step}", ("scale_a", "scale_b") if step == 2 else ("scale_b",),
             always, lanes(next_thread(step)),
             "the thread id names the lanes of each quad that supply the scales: A's row g from lane "
             "2 * id and row g + 8 from the next, B's column from lane id")
        for step in (1, 2, 3)
    ),
    _row("{operand}: the first chunk's scale used for all", _SCALES,
         lambda grid: grid.instruction.scale_chunks > 1, first_chunk,
         "each chunk of k has a scale byte of its own: byte id + chunk"),
)

ROWS: tuple[Row, ...] = (
    *_METADATA_ROWS,
    *_REGISTER_ROWS,
    *_MATRIX_ROWS,
    *_SLOT_ROWS,
    *_LANE_ROWS,
    *_WARP_ROWS,
)
