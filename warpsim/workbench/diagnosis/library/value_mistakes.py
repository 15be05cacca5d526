"""Mistakes that change values and not places: operands zeroed, rounded, shifted, scaled, exchanged whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ....base.errors import present
from ....isa.formats import FORMATS, floats_of
from ....isa.registers import Words
from .arithmetic_mistakes import value_sum
from .grids import Index, Setting, grid_of
from .mistake import Change, Mistake


@dataclass(frozen=True, kw_only=True)
class ValueRow:
    """A mistake that changes values; the change, and what mends it if nothing is lost, are made for an
    instruction.
    """

    name: str
    advice: str
    operands: tuple[str, ...]
    applies: Callable[[Setting], bool]
    change: Callable[[Setting], Change]
    mend: Callable[[Setting], Change] | None = None


def value_mistakes(setting: Setting) -> Iterator[Mistake]:
    """Yield the rows that apply to a setting, for operands that it has."""
    present = {*setting.instruction.registers, *(name for name in "ab" if setting.in_shared(name))}
    for row in _VALUE_ROWS:
        if present.issuperset(row.operands) and row.applies(setting):
            yield Mistake(
                name=row.name,
                advice=row.advice,
                operands=row.operands,
                change=row.change(setting),
                mend=None if row.mend is None else row.mend(setting),
            )


def _first_elements(setting: Setting, operand: str) -> tuple[Index, Index]:
    """Return row and column of the first element of every register, or of every element of a tile."""
    grid, instruction = grid_of(setting, operand), setting.instruction
    if setting.in_shared(operand):
        mn, k = np.indices((grid.lanes, grid.registers))
        return (mn, k) if operand == "a" else (k, mn)
    layout, (rows, _) = instruction.in_registers(operand).layout, instruction.matrix_shape(operand)
    elements = (grid.lanes, grid.registers, -1)
    row, column = (index.reshape(elements)[..., 0] for index in (layout.row_index, layout.column_index))
    return row % rows, column


def _zeroed(operand: str, axis: int, upper: bool) -> Callable[[Setting], Change]:
    """Return the upper or lower half set to zero: of k, or (axis 0 of A) of every 16 rows."""

    def build(setting: Setting) -> Change:
        size = 16 if (operand, axis) == ("a", 0) else setting.instruction.matrix_shape(operand)[axis]
        keep = (_first_elements(setting, operand)[axis] % size >= size // 2) != upper
        return lambda given: {operand: given[operand] * keep.astype(given[operand].dtype)}

    return build


def _has_rows(m: int) -> Callable[[Setting], bool]:
    return lambda setting: setting.instruction.shape.m == m


def _accumulates_not(setting: Setting) -> bool:
    return setting.tiles is not None and not setting.tiles.scale_d


def _negated(setting: Setting) -> Change:
    sign = setting.instruction.b.sign_bit
    return lambda given: {"b": given["b"] ^ given["b"].dtype.type(sign)}


def _has_signs(setting: Setting) -> bool:
    return setting.tiles is not None and setting.instruction.b.is_float


def _rounded_tf32(operands: str, to_even: bool) -> Callable[[Setting], Change]:
    """Return f32 rounded to tf32: to nearest, ties away from zero (cvt.rna) or to even (cvt.rn)."""

    def rounded(words: Words) -> Words:
        half = np.uint32(0xFFF) + (words >> np.uint32(13) & np.uint32(1)) if to_even else np.uint32(0x1000)
        finite = words & np.uint32(0x7F800000) != np.uint32(0x7F800000)
        return np.where(finite, words + half & np.uint32(0xFFFFE000), words)

    return lambda _: lambda given: {name: rounded(given[name]) for name in operands}


def _exchanged(first: str, second: str) -> Callable[[Setting], Change]:
    return lambda _: lambda given: {first: given[second], second: given[first]}


def _filled(operand: str) -> Callable[[Setting], Change]:
    """Return scales of 1."""

    def build(setting: Setting) -> Change:
        scale = present(setting.instruction.scale, "scale")
        unit = np.uint32((scale.bias << scale.fraction_bits) * 0x01010101)
        return lambda given: {operand: np.full_like(given[operand], unit)}

    return build


def _has_container(operand: str) -> Callable[[Setting], bool]:
    """Return whether elements do not sit in the lowest bits of their bytes: e2m1 under f8f6f4 kinds."""
    return lambda setting: setting.instruction.storage(operand).shift > 0


def _has_room_above(operand: str) -> Callable[[Setting], bool]:
    """Return whether elements have a byte each and leave its highest bits free: fp6 and fp4 there."""

    def applies(setting: Setting) -> bool:
        element, storage = setting.instruction.format(operand), setting.instruction.storage(operand)
        return storage.bits == 8 and element.is_float and element.bits < 8

    return applies


def _at_the_top(operand: str, *, back: bool) -> Callable[[Setting], Change]:
    """Return elements moved to the highest bits of their bytes, or back from there."""

    def build(setting: Setting) -> Change:
        element, storage = setting.instruction.format(operand), setting.instruction.storage(operand)
        step = np.uint32(8 - element.bits - storage.shift)
        inside = np.uint32(((1 << element.bits) - 1) << storage.shift) * np.uint32(0x01010101)
        if back:
            return lambda given: {operand: given[operand] >> step & inside}
        return lambda given: {operand: (given[operand] & inside) << step}

    return build


def _shifted(operand: str, step: int) -> Callable[[Setting], Change]:
    """Return four bits of every byte shifted up or down."""

    def moved(words: Words) -> Words:
        if step > 0:
            return (words & np.uint32(0x0F0F0F0F)) << np.uint32(step)
        return (words & np.uint32(0x3C3C3C3C)) >> np.uint32(-step)

    return lambda _: lambda given: {operand: moved(given[operand])}


def _as_indices(setting: Setting) -> Change:
    """Return fields of 1:2 sparsity written as the indices 0 and 1: 0b0100 as 0, 0b1110 as 1."""
    ones = np.uint32(0x11111111)
    return lambda given: {"e": given["e"] >> np.uint32(3) & ones}


def _as_fields(_: Setting) -> Change:
    """Return the indices 0 and 1 of 1:2 sparsity written as fields: 0b0100 and 0b1110."""
    ones = np.uint32(0x11111111)
    return lambda given: {"e": (given["e"] & ones) * np.uint32(10) + ones * np.uint32(4)}


def _one_of_two(setting: Setting) -> bool:
    pattern = setting.instruction.pattern
    return pattern is not None and pattern.kept == 1


def _doubled(setting: Setting) -> Change:
    return lambda given: {"c": value_sum(given["c"], setting.instruction.c)}


def _is_wider(name: str) -> Callable[[Setting], bool]:
    return lambda setting: setting.instruction.c.is_float and setting.instruction.c.bits > FORMATS[name].bits


def _narrowed_c(name: str) -> Callable[[Setting], Change]:
    """Return C rounded to a narrower type."""

    def build(setting: Setting) -> Change:
        element = setting.instruction.c

        def change(words: Words) -> Words:
            values = np.ascontiguousarray(words).view(element.dtype)
            with np.errstate(all="ignore"):
                narrow = values.astype(FORMATS[name].dtype).astype(element.dtype)
            return narrow.view(words.dtype)

        return lambda given: {"c": change(given["c"])}

    return build


def _always(setting: Setting) -> bool:
    return True


def _is_tf32(setting: Setting) -> bool:
    return setting.instruction.a.ignored_bits > 0


def _is_scaled(setting: Setting) -> bool:
    return setting.instruction.scale is not None


def _equal_fragments(setting: Setting) -> bool:
    registers = setting.instruction.registers
    return registers["a"] == registers.get("b")


_TRUNCATED = (
    "the multiplier drops the low 13 bits of each register: round f32 to tf32 with cvt.rna (or cvt.rn) "
    "before packing {operands}"
)

_VALUE_ROWS = (
    ValueRow(
        name="metadata: indices 0 and 1 written as fields",
        advice="1:2 metadata has four bits a field, 0b0100 for the first of two and 0b1110 for the second: "
        "not 0 and 1",
        operands=("e",),
        applies=_one_of_two,
        change=_as_indices,
        mend=_as_fields,
    ),
    ValueRow(
        name="metadata: every word is zero",
        advice="no metadata arrives in the lanes that the selector reads: load e, or choose the selector of "
        "the lanes that have it",
        operands=("e",),
        applies=lambda setting: setting.instruction.sparse,
        change=lambda _: lambda given: {"e": np.zeros_like(given["e"])},
    ),
    ValueRow(
        name="accumulator not added",
        advice="the result has no C in it: pass C as the accumulator, or do not clear it",
        operands=("c",),
        applies=_always,
        change=lambda _: lambda given: {"c": np.zeros_like(given["c"])},
    ),
    ValueRow(
        name="accumulator added twice",
        advice="the result has C in it twice: load the accumulator once",
        operands=("c",),
        applies=_always,
        change=_doubled,
    ),
    *(
        ValueRow(
            name=f"C: rounded to {name}",
            advice=f"the accumulators go through {name} before this instruction: keep them in their own type",
            operands=("c",),
            applies=_is_wider(name),
            change=_narrowed_c(name),
        )
        for name in floats_of(16)
    ),
    ValueRow(
        name="accumulator added in spite of scale-d",
        advice="the result has in it what D held before: scale-d is true where it should be false",
        operands=("c",),
        applies=_accumulates_not,
        change=lambda _: lambda given: {"c": given["before"]},
    ),
    ValueRow(
        name="products negated",
        advice="the products have the other sign: check imm-scale-a and imm-scale-b",
        operands=("b",),
        applies=_has_signs,
        change=_negated,
    ),
    *(
        ValueRow(
            name=f"{operand.upper()}: {half} half of k is zero",
            advice=f"the {half} half of k of {operand.upper()} does not arrive: k is cut short, or half of "
            "the registers is not loaded",
            operands=(operand,),
            applies=_always,
            change=_zeroed(operand, axis, upper=half == "second"),
        )
        for operand, axis in (("a", 1), ("b", 0))
        for half in ("second", "first")
    ),
    *(
        ValueRow(
            name=f"A: {rows} are zero",
            advice=f"A's {rows} do not arrive: load their registers",
            operands=("a",),
            applies=applies,
            change=_zeroed("a", 0, upper=upper),
        )
        for rows, upper, applies in (
            ("rows 8-15", True, _has_rows(16)),
            ("rows 0-7", False, _has_rows(16)),
            ("rows 8-15 of every warp", True, _has_rows(64)),
            ("rows 0-7 of every warp", False, _has_rows(64)),
        )
    ),
    *(
        ValueRow(
            name=f"{' and '.join(operands.upper())}: f32 not rounded to tf32 ({how})",
            advice=_TRUNCATED.format(operands=" and ".join(operands.upper())),
            operands=tuple(operands),
            applies=_is_tf32,
            change=_rounded_tf32(operands, to_even=how == "cvt.rn"),
            mend=_rounded_tf32(operands, to_even=how == "cvt.rn"),
        )
        for operands in ("ab", "a", "b")
        for how in ("cvt.rna", "cvt.rn")
    ),
    *(
        ValueRow(
            name=f"{operand.upper()}: e2m1 in bits {place} of its byte",
            advice=f"e2m1 of {operand.upper()} belongs in bits 5..2 of its byte: shift the words left by 2",
            operands=(operand,),
            applies=_has_container(operand),
            change=_shifted(operand, step),
            mend=_shifted(operand, -step),
        )
        for operand in "ab"
        for place, step in (("3..0", -2), ("5..2, dumped in bits 3..0", 2))
    ),
    *(
        ValueRow(
            name=f"{operand.upper()}: elements in the highest bits of their bytes",
            advice=f"fp6 belongs in bits 5..0 of a byte of {operand.upper()}, fp4 in bits 5..2: "
            "shift the words right by 2",
            operands=(operand,),
            applies=_has_room_above(operand),
            change=_at_the_top(operand, back=False),
            mend=_at_the_top(operand, back=True),
        )
        for operand in "ab"
    ),
    ValueRow(
        name="A and B registers exchanged",
        advice="exchange the registers of A and B",
        operands=("a", "b"),
        applies=_equal_fragments,
        change=_exchanged("a", "b"),
        mend=_exchanged("a", "b"),
    ),
    ValueRow(
        name="scales of A and B exchanged",
        advice="exchange the registers of the scales of A and B",
        operands=("scale_a", "scale_b"),
        applies=_is_scaled,
        change=_exchanged("scale_a", "scale_b"),
        mend=_exchanged("scale_a", "scale_b"),
    ),
    *(
        ValueRow(
            name=f"scales of {operand[-1].upper()} ignored",
            advice=f"the scales of {operand[-1].upper()} act as 1.0: check that their register is loaded",
            operands=(operand,),
            applies=_is_scaled,
            change=_filled(operand),
        )
        for operand in ("scale_a", "scale_b")
    ),
)
