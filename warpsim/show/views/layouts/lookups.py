"""Single questions about a layout, answered in lines of text.

Element to lane, register and bits; lane or register to elements; and everything that one element of D
is computed from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base.text_columns import words
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleSelectors
from ....isa.operand_places.places import NO_SCALES, Place, element_place, feeds, lane_places
from .figures import place_document

Document = dict[str, Any]


def element_lines(
    instruction: Instruction, operand: str, row: int, column: int, product: int = 0
) -> list[str]:
    """Return where element (row, column) of an operand lies: lane, register and bits."""
    place = element_place(instruction, operand, row, column, product)
    return [f"{_coordinates(instruction, place)}: {place.where}"]


def lane_lines(
    instruction: Instruction,
    operand: str,
    lane: int,
    register: int | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> list[str]:
    """Return what a lane, or one of its registers, holds of an operand, lowest bits first."""
    held = lane_places(instruction, operand, lane, register, selector=selector, scales=scales)
    if not held:
        return [f"{_holder(instruction, lane)} %{operand}: not read"]
    ordered = sorted(held, key=lambda place: (place.register, place.low_bit))
    return words([[str(place), _coordinates(instruction, place)] for place in ordered])


def _holder(instruction: Instruction, lane: int) -> str:
    return f"L{lane}" if instruction.descriptor is not None else f"T{lane}"


def feeds_lines(
    instruction: Instruction,
    row: int,
    column: int,
    *,
    product: int = 0,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> list[str]:
    """Return the lanes and registers that D[row, column] is computed from, a line a group of registers."""
    found = feeds(instruction, row, column, product=product, selector=selector, scales=scales)
    rows = [[f"D[{row},{column}]", str(found.d)], ["C", str(found.c)]]
    for name, held in (("A stored" if instruction.sparse else "A", found.a), ("B", found.b)):
        rows += [[f"{name} {_extent(part)}", _places_text(part)] for part in _by_register(held)]
        if not held:
            rows.append([name, "in shared memory"])
    for name, held in (
        ("metadata", found.metadata),
        ("scale_a", found.scale_a),
        ("scale_b", found.scale_b),
    ):
        rows += [[f"{name} {_extent(part)}", _places_text(part)] for part in _by_register(held)]
    return words(rows)


def element_document(
    instruction: Instruction, operand: str, row: int, column: int, *, selector: int = 0
) -> Document:
    """Return where an element lies, and of d all that feeds it, as JSON-ready data."""
    place = place_document(element_place(instruction, operand, row, column))
    document: Document = {"mnemonic": instruction.mnemonic, "operand": operand, "place": place}
    if operand == "d":
        found = feeds(instruction, row, column, selector=selector)
        names = ("a", "b", "metadata", "scale_a", "scale_b")
        document["feeds"] = {"c": place_document(found.c)} | {
            name: [place_document(item) for item in getattr(found, name)] for name in names
        }
    return document


def _by_register(held: Sequence[Place]) -> list[list[Place]]:
    """Return neighbours in one register of one lane, together."""
    parts: list[list[Place]] = []
    for place in held:
        if parts and (parts[-1][-1].lane, parts[-1][-1].register) == (place.lane, place.register):
            parts[-1].append(place)
        else:
            parts.append([place])
    return parts


def _places_text(part: Sequence[Place]) -> str:
    low, high = min(place.low_bit for place in part), max(place.high_bit for place in part)
    return f"{part[0].holder} {part[0].register_name}[{high}..{low}]"


def _extent(part: Sequence[Place]) -> str:
    """Return rows and columns of a part, chunks for metadata and scales: ``[3][0..1]``."""
    rows, columns = ({place.row for place in part}, {place.column for place in part})
    return "".join(
        f"[{min(numbers)}..{max(numbers)}]" if len(numbers) > 1 else f"[{min(numbers)}]"
        for numbers in (rows, columns)
    )


def _coordinates(instruction: Instruction, place: Place) -> str:
    if place.operand == "e":
        return f"metadata of row {place.row}, chunk {place.column}"
    if place.operand == "scale_a":
        return f"scale of row {place.row}, chunk {place.column}"
    if place.operand == "scale_b":
        return f"scale of chunk {place.row}, column {place.column}"
    product = f" of product {place.product}" if place.product else ""
    text = f"{place.operand.upper()}[{place.row},{place.column}]{product}"
    if place.operand != "a" or instruction.pattern is None:
        return text
    width, chunk = instruction.pattern.chunk, place.column // instruction.pattern.stored
    return f"{text} as stored, from columns {width * chunk}..{width * (chunk + 1) - 1}"
