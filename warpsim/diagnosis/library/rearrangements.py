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


_MULTIPLICANDS = ("a", "b")
_ACCUMULATORS = ("d", "cd", "c")
_FRAGMENTS = (*_MULTIPLICANDS, *_ACCUMULATORS)
_SCALES = ("scale_a", "scale_b")

# --- registers -----------------------------------------------------------------------------------------


_HALVES_ADVICE = "exchange the registers of rows g and g + 8 of {operand}"

_REGISTER_ROWS = (
    Row(
        name="{operand}: registers run along k first",
        operands=("a",),
        advice="A's registers run over rows g and g + 8 first, then along k: a1 is row g + 8, a2 the next k",
        applies=both,
        formula=k_first,
    ),
    Row(
        name="{operand}: registers run along k first, undone",
        operands=("a",),
        advice="A's registers run over rows g and g + 8 first, then along k: a1 is row g + 8, a2 the next k",
        applies=both,
        formula=rows_first,
    ),
    Row(
        name="{operand}: rows g and g + 8 exchanged",
        operands=("a", *_ACCUMULATORS),
        advice=_HALVES_ADVICE,
        applies=two_row_halves,
        formula=exchange_row_halves,
        exchanges_row_halves=True,
    ),
    Row(
        name="{operand}: rows g and g + 8 exchanged",
        operands=("e",),
        advice="exchange the fields of rows g and g + 8: halves of a word with 16- and 32-bit elements, "
        "lanes 2i and 2i + 1 with narrower elements",
        applies=always,
        formula=exchange_metadata_halves,
        exchanges_row_halves=True,
    ),
    Row(
        name="{operand}: k halves exchanged",
        operands=_MULTIPLICANDS,
        advice="exchange the lower and the upper half of {operand}'s registers: they are the halves of k",
        applies=several_k_blocks,
        formula=exchange_k_halves,
    ),
    Row(
        name="{operand}: registers in reverse order",
        operands=_FRAGMENTS,
        advice="reverse the order of {operand}'s registers",
        applies=lambda grid: grid.registers > 2,
        formula=reversed_registers,
    ),
    *(
        Row(
            name=f"{{operand}}: registers {first} and {second} exchanged",
            operands=_FRAGMENTS,
            advice=f"exchange registers {first} and {second} of {{operand}}",
            applies=lambda grid, second=second: grid.registers > second,  # type: ignore[misc]
            formula=exchange(first, second),
        )
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
    Row(
        name=f"{{operand}}: {what}",
        operands=operands,
        advice=f"element 0 of {{operand}} belongs in the lowest bits: found the {what}",
        applies=divides(mask),
        formula=flip(mask),
    )
    for mask, operands, what in _FLIPS
)

# --- lanes ---------------------------------------------------------------------------------------------


_ALL = (*_MULTIPLICANDS, *_ACCUMULATORS, "e", *_SCALES)
_LANE_FORMULAS: tuple[tuple[str, tuple[str, ...], Predicate, Callable[[Index], Index], str], ...] = (
    # name, operands, applies, source lane, advice
    *(
        (
            f"{what} {step:+d}",
            _ALL,
            always,
            source,
            f"correct the lane arithmetic of {{operand}}: each lane has what belongs in {owner}",
        )
        for what, step, owner, source in (
            ("lane group off by", 1, "lane + 4", lambda lane: (lane + 4) % 32),
            ("lane group off by", -1, "lane - 4", lambda lane: (lane - 4) % 32),
            ("thread in group off by", 1, "the next lane of the quad", next_thread(1)),
            ("thread in group off by", -1, "the previous lane of the quad", next_thread(-1)),
            ("lane off by", 1, "lane + 1", lambda lane: (lane + 1) % 32),
            ("lane off by", -1, "lane - 1", lambda lane: (lane - 1) % 32),
        )
    ),
    (
        "neighbouring lanes exchanged",
        _ALL,
        always,
        lambda lane: lane ^ 1,
        "exchange {operand} between lanes 2i and 2i + 1",
    ),
    (
        "lane pairs of each quad exchanged",
        _ALL,
        always,
        lambda lane: lane ^ 2,
        "exchange {operand} between lanes t and t xor 2 of each quad",
    ),
    (
        "group and thread confused",
        _ALL,
        always,
        lambda lane: lane % 8 * 4 + lane // 8,
        "lane = 4 * groupID + threadID_in_group, and not groupID + 8 * thread: rearrange {operand}",
    ),
    (
        "group and thread confused, undone",
        _ALL,
        always,
        lambda lane: lane % 4 * 8 + lane // 4,
        "lane = 4 * groupID + threadID_in_group, and not groupID + 8 * thread: rearrange {operand}",
    ),
    (
        "lane halves exchanged",
        _ALL,
        always,
        lambda lane: lane ^ 16,
        "exchange {operand} between lanes 0-15 and 16-31",
    ),
    (
        "row half and k half of the lane exchanged",
        ("e",),
        words_read(4),
        lambda lane: lane & ~3 | (lane & 1) << 1 | (lane & 2) >> 1,
        "lane bit 0 chooses the row half, lane bit 1 the k half: exchange lanes 1 and 2 of each quad",
    ),
    (
        "the first k half's words used for both",
        ("e",),
        words_read(4),
        lambda lane: lane & ~2,
        "lanes 2 and 3 of a quad hold the metadata of the upper k half: load all four lanes",
    ),
    (
        "the second k half's words used for both",
        ("e",),
        words_read(4),
        lambda lane: lane | 2,
        "lanes 0 and 1 of a quad hold the metadata of the lower k half: load all four lanes",
    ),
    (
        "even lane's word in both lanes of a pair",
        ("e",),
        words_read(2),
        lambda lane: lane & ~1,
        "both lanes of a pair hold metadata of their own: do not copy the even lane's word",
    ),
    (
        "odd lane's word in both lanes of a pair",
        ("e",),
        words_read(2),
        lambda lane: lane | 1,
        "both lanes of a pair hold metadata of their own: do not copy the odd lane's word",
    ),
    *(
        (
            f"lane {thread}'s word broadcast to its quad",
            ("e",),
            words_read(1),
            lambda lane, thread=thread: lane & ~3 | thread,
            "each lane that the selector reads has a word of its own: do not broadcast a word to the quad",
        )
        for thread in range(4)
    ),
)

_LANE_ROWS = tuple(
    Row(
        name=f"{{operand}}: {name}",
        operands=operands,
        advice=advice,
        applies=applies,
        formula=lanes(source),
    )
    for name, operands, applies, source, advice in _LANE_FORMULAS
)

_WARP_ROWS = (
    *(
        Row(
            name=f"{{operand}}: warp off by {step:+d}",
            operands=_ALL[:-2],
            advice=f"warp i holds rows 16 * i to 16 * i + 15 of {{operand}}: found those of warp i {step:+d}",
            applies=several_warps,
            formula=warps(lambda warp, step=step: warp + step),  # type: ignore[misc]
        )
        for step in (1, -1)
    ),
    *(
        Row(
            name=f"{{operand}}: {what} exchanged",
            operands=_ALL[:-2],
            advice="warp i holds rows 16 * i to 16 * i + 15 of {operand}: number the warps of the warpgroup "
            "in the order of their threads",
            applies=several_warps,
            formula=warps(lambda warp, mask=mask: warp ^ mask),  # type: ignore[misc]
        )
        for mask, what in ((1, "neighbouring warps"), (2, "warp pairs"))
    ),
    Row(
        name="{operand}: warp 0's registers in every warp",
        operands=("a", "c", "e"),
        advice="each warp holds 16 rows of {operand} of its own: add 16 * warp to the row",
        applies=several_warps,
        formula=warps(lambda warp: warp * 0),
    ),
)

# --- matrices ------------------------------------------------------------------------------------------


_CONTIGUOUS_ADVICE = (
    "a lane's registers of {operand} do not hold consecutive k: register r starts at k = w * (t + 4 * r)"
)

_MATRIX_ROWS = (
    Row(
        name="{operand}: transposed (rows read as columns)",
        operands=_FRAGMENTS,
        advice="change the storage order in which {operand} is read: row-major against column-major",
        applies=always,
        formula=by_element(read_across),
    ),
    Row(
        name="{operand}: transposed (columns read as rows)",
        operands=_FRAGMENTS,
        advice="change the storage order in which {operand} is read: row-major against column-major",
        applies=always,
        formula=by_element(written_across),
    ),
    Row(
        name="{operand}: 8 x 8 blocks transposed",
        operands=("b", "a", "d"),
        advice="transpose each 8 x 8 block of {operand}: .trans of ldmatrix, stmatrix or movmatrix is "
        "missing, or too much",
        applies=lambda grid: grid.bits <= 16 and one_product(grid),
        formula=transposed_blocks,
    ),
    Row(
        name="{operand}: consecutive k in each lane",
        operands=_MULTIPLICANDS,
        advice=_CONTIGUOUS_ADVICE,
        applies=several_k_blocks,
        formula=contiguous,
    ),
    Row(
        name="{operand}: consecutive k in each lane, undone",
        operands=_MULTIPLICANDS,
        advice=_CONTIGUOUS_ADVICE,
        applies=several_k_blocks,
        formula=spread,
    ),
)

# --- metadata and scales -------------------------------------------------------------------------------


_WIDTH_ADVICE = (
    "a word has four chunks of rows g and g + 8 with 16- and 32-bit elements, eight chunks of one row "
    "with narrower elements, where lane bit 0 chooses the row half: k64 is not k32 twice"
)


_METADATA_ROWS = (
    *(
        Row(
            name=f"{{operand}}: selector {value} meant",
            operands=("e",),
            advice=f"with sparsity selector {value}, or the metadata moved to the lanes that the selector "
            "reads, the result matches",
            applies=has_selector(value),
            formula=other_selector(value),
            chooses=True,
        )
        for value in range(4)
    ),
    *(
        Row(
            name=f"{{operand}}: arranged for elements of another width{', undone' if undo else ''}",
            operands=("e",),
            advice=_WIDTH_ADVICE,
            applies=words_read(2),
            formula=other_width(undo=undo),
        )
        for undo in (False, True)
    ),
    *(
        Row(
            name=f"{{operand}}: byte id off by {step}",
            operands=_SCALES,
            advice="the byte id names the first byte of the scales: it is off by "
            f"{step}, or the scales are {step} bytes too high",
            applies=lambda grid, step=step: step % grid.instruction.scale_chunks == 0,  # type: ignore[misc]
            formula=rotated_bytes(step),
        )
        for step in (1, 2, 3)
    ),
    *(
        Row(
            name=f"{{operand}}: thread id off by {step}",
            operands=("scale_a", "scale_b") if step == 2 else ("scale_b",),
            advice="the thread id names the lanes of each quad that supply the scales: A's row g from lane "
            "2 * id and row g + 8 from the next, B's column from lane id",
            applies=always,
            formula=lanes(next_thread(step)),
        )
        for step in (1, 2, 3)
    ),
    Row(
        name="{operand}: the first chunk's scale used for all",
        operands=_SCALES,
        advice="each chunk of k has a scale byte of its own: byte id + chunk",
        applies=lambda grid: grid.instruction.scale_chunks > 1,
        formula=first_chunk,
    ),
)

ROWS: tuple[Row, ...] = (
    *_METADATA_ROWS,
    *_REGISTER_ROWS,
    *_MATRIX_ROWS,
    *_SLOT_ROWS,
    *_LANE_ROWS,
    *_WARP_ROWS,
)
