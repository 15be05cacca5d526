"""``warpsim layout``: the manual's figures of one form, as text, SVG, HTML and data.

Two notations: ``ptx``, the figures and formulas of the PTX manual, and ``cute``, shape:stride text.
Every function returns text or data. Where things lie is known to places.py, and
lookups.py answers single questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal
from xml.etree.ElementTree import Element

from ....base.errors import OperandError
from ....base.text_columns import words
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleSelectors
from ....isa.operand_places.places import NO_SCALES, check_operand, lane_places, places, register_operands
from ..drawings.drawing import escaped, figure_lines, figure_markup
from ..drawings.svg import boxed, element, figures_element, figures_svg, page
from .cells import cell_lines
from .cute import cute_texts
from .figures import Figure, figure_document, figures, place_document
from .formulas import formula, logical_column_lines

Document = dict[str, Any]
Notation = Literal["ptx", "cute"]


def shown_operands(instruction: Instruction, operand: str | None = None) -> tuple[str, ...]:
    """Return the operand asked for, or every operand in registers with a layout of its own: D only beside a C
    of another format."""
    if operand is not None:
        check_operand(instruction, operand)
        return (operand,)
    same = instruction.c == instruction.d
    return tuple(name for name in register_operands(instruction) if name != "d" or not same)


# --- text ------------------------------------------------------------------------------------------


def layout_lines(
    instruction: Instruction,
    operand: str | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
    notation: Notation = "ptx",
    width: int | None = None,
) -> list[str]:
    """Return the layout of one operand or of all as plain text; figures in panels no wider than ``width``.

    Raises OperandError, UndefinedBehavior (selector) or IllegalInstruction (byte and thread ids).
    """
    if notation == "cute":
        return [instruction.mnemonic, *cute_lines(instruction, operand, selector)]
    lines = [instruction.mnemonic]
    for name in shown_operands(instruction, operand):
        for figure in figures(instruction, name, selector, scales):
            lines += ["", *figure_lines(figure, width)]
        lines += ["", *notes(instruction, name, selector)]
    return lines


def layout_markup(
    instruction: Instruction,
    operand: str | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
    width: int | None = None,
) -> list[str]:
    """Return the figures and formulas of layout_lines in the markup of the rich library, coloured by lane."""
    lines = [f"[bold]{escaped(instruction.mnemonic)}[/]"]
    for name in shown_operands(instruction, operand):
        for figure in figures(instruction, name, selector, scales):
            lines += ["", *figure_markup(figure, width)]
        lines += ["", *map(escaped, notes(instruction, name, selector))]
    return lines


def notes(instruction: Instruction, operand: str, selector: int = 0) -> list[str]:
    """Return what belongs under the figures of an operand: its registers and its closed formula."""
    lines = formula(instruction, operand, selector).lines()
    if instruction.descriptor is not None:
        lines += [f"  {line}" for line in cell_lines(instruction, operand)]
    elif operand in "abcd":
        lines.insert(1, f"  registers, low bits first: {_registers_text(instruction, operand)}")
    elif operand == "e":
        lines.append("  other lanes' registers are not read" if instruction.metadata_words < 4 else "")
    if operand in ("a", "e"):
        lines += [f"  {line}" for line in logical_column_lines(instruction)]
    return [line for line in lines if line]


def _registers_text(instruction: Instruction, operand: str) -> str:
    held = lane_places(instruction, operand, 0)
    count = instruction.held(operand).words
    each = len(held) // count
    names = [
        f"%{operand}{register} = {_element_names(operand, register * each, each)}"
        for register in range(count)
    ]
    return ", ".join(names if count <= 8 else [*names[:3], "…", names[-1]])


def _element_names(operand: str, first: int, count: int) -> str:
    separator = {1: None, 2: ","}.get(count, "..")
    last = f"{separator}{operand}{first + count - 1}" if separator else ""
    return f"{{{operand}{first}{last}}}"


def cute_lines(instruction: Instruction, operand: str | None = None, selector: int = 0) -> list[str]:
    """Return one line for each layout in CuTe's notation; scales have none. Raises OperandError for those."""
    cells = instruction.descriptor is not None
    names = [name for name in shown_operands(instruction, operand) if cells or not name.startswith("scale_")]
    if not names:
        raise OperandError(f"{operand} has no layout in CuTe's notation: it is one word a lane")
    rows = []
    for name in names:
        rows += [[name.upper(), text] for text in cute_texts(instruction, name, selector)]
    return words(rows)


# --- SVG, HTML and data ----------------------------------------------------------------------------


def layout_figures(
    instruction: Instruction,
    operand: str | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> tuple[Figure, ...]:
    """Return all figures of one operand, or of every operand in registers."""
    names = shown_operands(instruction, operand)
    return tuple(figure for name in names for figure in figures(instruction, name, selector, scales))


def layout_svg(
    instruction: Instruction,
    operand: str | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> str:
    """Return the figures as one SVG document."""
    return figures_svg(layout_figures(instruction, operand, selector=selector, scales=scales))


def layout_page(
    instruction: Instruction,
    operand: str | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> str:
    """Return figures, formulas and CuTe layouts as a page of HTML that loads nothing from anywhere."""
    names = shown_operands(instruction, operand)
    return page(instruction.mnemonic, _page_parts(instruction, names, selector, scales))


def _page_parts(
    instruction: Instruction, names: Sequence[str], selector: int, scales: ScaleSelectors
) -> Iterator[Element]:
    for name in names:
        yield element("h2", f"Operand {name}")
        yield boxed(figures_element(figures(instruction, name, selector, scales)))
        lines = notes(instruction, name, selector)
        if instruction.descriptor is not None or not name.startswith("scale_"):
            lines += cute_lines(instruction, name, selector)
        yield element("pre", "\n".join(lines))


def layout_document(
    instruction: Instruction,
    operand: str | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> Document:
    """Return every element, field and scale with its lane, register and bits, as JSON-ready data."""
    return {
        "mnemonic": instruction.mnemonic,
        "lanes": instruction.lanes,
        "operands": {
            name: _operand_document(instruction, name, selector, scales)
            for name in shown_operands(instruction, operand)
        },
    }


def _operand_document(instruction: Instruction, name: str, selector: int, scales: ScaleSelectors) -> Document:
    rule = formula(instruction, name, selector)
    words = name.startswith("scale_") and instruction.descriptor is None
    cute = [] if words else cute_texts(instruction, name, selector)
    return {
        "registers": instruction.held(name).words,
        "section": rule.section,
        "formula": dict(rule.results),
        "cute": cute,
        "figures": [figure_document(figure) for figure in figures(instruction, name, selector, scales)],
        "places": [place_document(place) for place in places(instruction, name, selector, scales)],
    }
