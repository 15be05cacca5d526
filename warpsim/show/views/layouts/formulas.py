"""Closed formulas of fragments, metadata and scales, with the section of the PTX manual that has them.

Derived from the extents and strides of isa/layouts, in the manual's names: ``groupID``,
``threadID_in_group``, ``i`` for the element ``ai`` of a lane, ``/`` for integer division.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....base.errors import present
from ....isa.fragments import check_selector, metadata_layout
from ....isa.instruction import Instruction
from ....isa.layouts.field_layout import BIT, LANE, FieldLayout
from ....isa.layouts.fragment_layout import separated
from ....isa.layouts.strides import Digit, Modes, placed
from ....isa.layouts.tensor_memory import BIT as CELL_BIT
from ....isa.layouts.tensor_memory import COLUMN, CTA
from ....isa.layouts.tensor_memory import LANE as CELL_LANE
from ....isa.operand_places.places import check_operand, tensor_cells

# Sections of PTX ISA 9.1. Dense mma by shape; floating point and integers part at m8n8k4 and m16n8k16.
_DENSE = {
    "m8n8k4": "9.7.14.5.2",
    "m8n8k16": "9.7.14.5.3",
    "m8n8k32": "9.7.14.5.4",
    "m8n8k128": "9.7.14.5.5",
    "m16n8k4": "9.7.14.5.6",
    "m16n8k8": "9.7.14.5.7",
    "m16n8k16": "9.7.14.5.8",
    "m16n8k32": "9.7.14.5.10",
    "m16n8k64": "9.7.14.5.11",
    "m16n8k128": "9.7.14.5.12",
    "m16n8k256": "9.7.14.5.13",
}
_QUADS, _DENSE_K16_BYTES = "9.7.14.5.1", "9.7.14.5.9"
_SPARSE = {  # by k and the bits of an element of A in a register
    (16, 16): "9.7.14.6.2.1",
    (32, 16): "9.7.14.6.2.2",
    (16, 32): "9.7.14.6.2.3",
    (8, 32): "9.7.14.6.2.4",
    (32, 8): "9.7.14.6.2.5",
    (64, 8): "9.7.14.6.2.6",
    (64, 4): "9.7.14.6.2.7",
    (128, 4): "9.7.14.6.2.8",
}
_WARPGROUP = {16: "9.7.15.5.1.1.1", 8: "9.7.15.5.1.1.2", 32: "9.7.15.5.1.1.3", 256: "9.7.15.5.1.1.4"}
_SCALES = "9.7.14.3"

_TENSOR_MEMORY = {  # of PTX ISA 9.3
    **dict.fromkeys("acd", "9.7.17.10.5"),
    "e": "9.7.17.10.6",
    **dict.fromkeys(("scale_a", "scale_b"), "9.7.17.10.7"),
}

_ANY_DENSE, _ANY_SPARSE, _ANY_WARPGROUP = "9.7.14.5", "9.7.14.6", "9.7.15.5.1.1"  # of a new shape

# Names of the manual for the digits of a lane: extents -> variable, place value -> (name, definition).
_LANES: dict[tuple[int, ...], tuple[str, dict[int, tuple[str, str]]]] = {
    (4, 8): (
        "%laneid",
        {4: ("groupID", "%laneid >> 2"), 1: ("threadID_in_group", "%laneid % 4")},
    ),
    (4, 8, 4): (
        "lane",
        {
            32: ("warp", "lane / 32"),
            4: ("groupID", "lane % 32 >> 2"),
            1: ("threadID_in_group", "lane % 4"),
        },
    ),
}
_PRODUCT, _ROW, _COLUMN = 0, 1, 2  # coordinates of separated modes
_INDICES = {"e": ("row", "chunk"), "scale_a": ("row", "chunk"), "scale_b": ("col", "chunk")}


@dataclass(frozen=True, kw_only=True)
class Formula:
    """The formulas of one operand: ``names`` are defined first, ``results`` are what they give.

    ``domain`` says over which ``i``, rows and chunks they hold.
    """

    operand: str
    section: str
    domain: str
    names: tuple[str, ...]
    results: tuple[tuple[str, str], ...]

    def lines(self) -> list[str]:
        """Return the formula as lines of text."""
        width = max(len(name) for name, _ in self.results)
        title = f"{self.operand}: {self.domain} (PTX ISA, section {self.section})"
        results = (f"  {name.ljust(width)} = {text}" for name, text in self.results)
        return [title, *(f"  {name}" for name in self.names), *results]


def section(instruction: Instruction, operand: str) -> str:
    """Return the section of PTX ISA 9.1 that describes an operand, or its chapter for a new shape."""
    if instruction.descriptor is not None:
        return _TENSOR_MEMORY[operand]
    if operand.startswith("scale_"):
        return _SCALES
    bits = instruction.storage("a").bits
    if instruction.lanes > 32:
        return _WARPGROUP.get(instruction.stored_k, _ANY_WARPGROUP)
    if instruction.sparse:
        return _SPARSE.get((instruction.shape.k, bits), _ANY_SPARSE)
    if instruction.products > 1:
        return _QUADS
    if str(instruction.shape) == "m16n8k16" and bits == 8:
        return _DENSE_K16_BYTES
    return _DENSE.get(str(instruction.shape), _ANY_DENSE)


def formula(instruction: Instruction, operand: str, selector: int = 0) -> Formula:
    """Return the closed formula of one operand of an instruction.

    Raises OperandError for an operand that does not lie in registers, UndefinedBehavior for a selector.
    """
    check_operand(instruction, operand)
    if instruction.descriptor is not None:
        return _cells(instruction, operand)
    if operand == "e":
        return _metadata(instruction, selector)
    if operand.startswith("scale_"):
        return _scales(instruction, operand)
    return _fragment(instruction, operand)


# --- digits as text --------------------------------------------------------------------------------


def _sum(terms: Iterable[str]) -> str:
    return " + ".join(terms) or "0"


def _terms(variable: str, digits: Modes, coordinate: int) -> Iterator[str]:
    """Yield what the digits of a variable add to a coordinate."""
    for digit in placed(digits):
        step = digit.mode.along(coordinate)
        if step:
            yield _term(variable, digit, step)


def _term(variable: str, digit: Digit, step: int) -> str:
    """Return ``8 * (i / 2 % 2)``, or ``(i & 2)`` for a binary digit that keeps its place value."""
    if step == digit.value > 1 and _is_binary(digit):
        return f"({variable} & {(digit.mode.extent - 1) * digit.value})"
    text = _digit(variable, digit)
    if step == 1:
        return text
    return f"{step} * ({text})" if " " in text else f"{step} * {text}"


def _digit(variable: str, digit: Digit) -> str:
    divided = variable if digit.value == 1 else f"{variable} / {digit.value}"
    return divided if digit.slowest else f"{divided} % {digit.mode.extent}"


def _is_binary(digit: Digit) -> bool:
    return all(number & (number - 1) == 0 for number in (digit.value, digit.mode.extent))


# --- fragments -------------------------------------------------------------------------------------


def _fragment(instruction: Instruction, operand: str) -> Formula:
    layout = instruction.in_registers(operand).layout
    lanes, values = separated(layout, layout.lane_modes), separated(layout, layout.value_modes)
    names = tuple(_lane_names(lanes))
    results = tuple(
        (name, _sum([*_lane_terms(lanes, coordinate), *_terms("i", values, coordinate)]))
        for name, coordinate in (("row", _ROW), ("col", _COLUMN))
    )
    if operand == "a" and instruction.sparse:
        stored = present(instruction.pattern, "pattern").stored
        results += (("chunk", f"col / {stored}" if stored > 1 else "col"),)
    return Formula(
        operand=operand.upper(),
        section=section(instruction, operand),
        domain=f"{operand}i, i = 0..{layout.values - 1}",
        names=names,
        results=results,
    )


def _named(lanes: Modes) -> tuple[str, dict[int, tuple[str, str]]]:
    return _LANES.get(tuple(mode.extent for mode in lanes), ("%laneid", {}))


def _lane_names(lanes: Modes) -> Iterator[str]:
    """Yield the definitions of the names that the results use, and of the product."""
    variable, named = _named(lanes)
    yield from (f"{name} = {text}" for name, text in named.values())
    product = list(_terms(variable, lanes, _PRODUCT))
    if product:
        yield f"product = {_sum(product)}"


def _lane_terms(lanes: Modes, coordinate: int) -> Iterator[str]:
    variable, named = _named(lanes)
    if not named:
        yield from _terms(variable, lanes, coordinate)
        return
    for digit in placed(lanes):
        step, (name, _) = digit.mode.along(coordinate), named[digit.value]
        if step:
            yield name if step == 1 else f"{name} * {step}"


# --- tensor memory ---------------------------------------------------------------------------------


def _cells(instruction: Instruction, operand: str) -> Formula:
    """Return lane, column and lowest bit of an element, of a pair the CTA too."""
    held = tensor_cells(instruction, operand)
    layout, (rows, columns) = held.layout, held.layout.shape
    line, across = _INDICES.get(operand, ("row", "col"))
    counted = f"({across} + {layout.first})" if layout.first else across
    digits = ((line, layout.rows), (counted, layout.columns))
    first = {COLUMN: held.first_column, CELL_BIT: held.low_bit}

    def value(coordinate: int) -> str:
        terms = [term for name, modes in digits for term in _terms(name, modes, coordinate)]
        own = first.get(coordinate, 0)
        return _sum([*terms, *([str(own)] if own else [])])

    named = [("CTA", CTA)] * (layout.ctas > 1) + [("lane", CELL_LANE), ("column", COLUMN)]
    copies = ", ".join(f"+{copy}" for copy in layout.copies[1:])
    repeated = (("lanes of copies", copies),) if copies else ()
    letter = f"layout {layout.letter}, " if layout.letter else ""
    return Formula(
        operand=operand.upper() if operand in "acd" else operand,
        section=section(instruction, operand),
        domain=f"{letter}{line} 0..{rows - 1}, {across} 0..{columns - 1}",
        names=(),
        results=(*((name, value(at)) for name, at in named), ("lowest bit", value(CELL_BIT)), *repeated),
    )


# --- metadata and scales ---------------------------------------------------------------------------


def _metadata(instruction: Instruction, selector: int) -> Formula:
    check_selector(instruction, selector)
    pattern = present(instruction.pattern, "pattern")
    layout = metadata_layout(instruction, selector)
    rows, chunks = layout.shape
    return Formula(
        operand="metadata",
        section=section(instruction, "e"),
        domain=f"rows 0..{rows - 1}, chunks 0..{chunks - 1} of {pattern.chunk} columns, selector {selector}",
        names=(),
        results=_field_results(layout),
    )


def _scales(instruction: Instruction, operand: str) -> Formula:
    layout = instruction.scales(operand.removeprefix("scale_")).layout
    lines = "rows" if operand == "scale_a" else "columns"
    return Formula(
        operand=operand,
        section=_SCALES,
        domain=f"{lines} 0..{layout.shape[0] - 1}, chunks 0..{layout.shape[1] - 1}",
        names=(),
        results=_field_results(layout),
    )


def _field_results(layout: FieldLayout) -> tuple[tuple[str, str], ...]:
    lane, bit = (
        [term for name, digits in layout.inputs for term in _terms(name, digits, coordinate)]
        for coordinate in (LANE, BIT)
    )
    first = [str(layout.first_lane)] if layout.first_lane else []
    return (("lane", _sum(lane + first)), ("lowest bit", _sum(bit)))


def logical_column_lines(instruction: Instruction) -> list[str]:
    """Return how the metadata maps a stored column of A to a logical column; nothing for dense forms."""
    pattern = instruction.pattern
    if pattern is None:
        return []
    field = "field >> 1 & 1" if pattern.kept == 1 else "field & 3 of the first unit, field >> 2 of the second"
    unit = f" in units of {pattern.unit} elements" if pattern.unit > 1 else ""
    place = f"{pattern.chunk} * chunk + {pattern.unit} * index + col % {pattern.unit}"
    simple = f"{pattern.chunk} * chunk + index"
    return [
        f"sparsity {pattern}{unit}: k = {place if pattern.unit > 1 else simple}, index = {field}",
    ]
