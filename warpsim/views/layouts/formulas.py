"""Closed formulas of fragments, metadata and scales, with the section of the PTX manual they restate.

Text for people, in the manual's names: ``groupID``, ``threadID_in_group``, ``i`` for the element ``ai``
of a lane, ``/`` for integer division. The constants are those of the form at hand. Nothing is computed
from these texts; the tests evaluate them against the layouts at every point.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import present
from ...isa.fragments import check_selector
from ...isa.instruction import Instruction
from ...isa.places import check_operand

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

_WARP_NAMES = ("groupID = %laneid >> 2", "threadID_in_group = %laneid % 4")
_WARPGROUP_NAMES = (
    "warp = lane / 32",
    "groupID = lane % 32 >> 2",
    "threadID_in_group = lane % 4",
)
_QUAD_NAMES = ("product = %laneid % 16 / 4",)


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
        """The formula as lines of text."""
        width = max(len(name) for name, _ in self.results)
        title = f"{self.operand}: {self.domain} (PTX ISA, section {self.section})"
        results = (f"  {name.ljust(width)} = {text}" for name, text in self.results)
        return [title, *(f"  {name}" for name in self.names), *results]


def section(instruction: Instruction, operand: str) -> str:
    """The section of PTX ISA 9.1 that describes an operand's layout."""
    if operand.startswith("scale_"):
        return _SCALES
    bits = instruction.storage("a").bits
    if instruction.family.lanes > 32:
        return _WARPGROUP[instruction.stored_k]
    if instruction.sparse:
        return _SPARSE[instruction.shape.k, bits]
    if instruction.products > 1:
        return _QUADS
    if str(instruction.shape) == "m16n8k16" and bits == 8:
        return _DENSE_K16_BYTES
    return _DENSE[str(instruction.shape)]


def formula(instruction: Instruction, operand: str, selector: int = 0) -> Formula:
    """The closed formula of one operand of an instruction.

    Raises OperandError for an operand that does not lie in registers, UndefinedBehavior for a selector.
    """
    check_operand(instruction, operand)
    if operand == "e":
        check_selector(instruction, selector)
        return _metadata(instruction, selector)
    if operand.startswith("scale_"):
        return _scales(instruction, operand)
    return _fragment(instruction, operand)


# --- fragments -------------------------------------------------------------------------------------


def _fragment(instruction: Instruction, operand: str) -> Formula:
    layout = instruction.family.fragment(instruction, operand)
    names: tuple[str, ...] = _WARP_NAMES if instruction.family.lanes == 32 else _WARPGROUP_NAMES
    if instruction.products > 1:
        names, results = _QUAD_NAMES, _quad(instruction, operand)
    else:
        results = {"a": _a, "b": _b}.get(operand, _accumulator)(instruction, layout.values)
    if operand == "a" and instruction.sparse:
        results += (("chunk", _logical_chunk(instruction)),)
    return Formula(
        operand=operand.upper(),
        section=section(instruction, operand),
        domain=f"{operand}i, i = 0..{layout.values - 1}",
        names=names,
        results=results,
    )


Results = tuple[tuple[str, str], ...]


def _sum(*terms: str) -> str:
    return " + ".join(term for term in terms if term)


def _group_row(instruction: Instruction) -> str:
    return "16 * warp + groupID" if instruction.family.lanes > 32 else "groupID"


def _along_k(width: int) -> str:
    """The place along k of a lane's elements in its first register: ``width`` of them side by side."""
    return "threadID_in_group" if width == 1 else f"threadID_in_group * {width} + i % {width}"


def _slots(instruction: Instruction, operand: str) -> int:
    return instruction.register_bits // instruction.storage(operand).bits


def _a(instruction: Instruction, values: int) -> Results:
    width, halves = _slots(instruction, "a"), min(instruction.shape.m // 8, 2)
    lower = f"8 * (i / {width} % 2)" if halves == 2 else ""
    later = f"{4 * width} * (i / {halves * width})" if values > halves * width else ""
    return (("row", _sum(_group_row(instruction), lower)), ("col", _sum(_along_k(width), later)))


def _b(instruction: Instruction, values: int) -> Results:
    width = _slots(instruction, "b")
    later = f"{4 * width} * (i / {width})" if values > width else ""
    return (("row", _sum(_along_k(width), later)), ("col", "groupID"))


def _accumulator(instruction: Instruction, values: int) -> Results:
    lower = "8 * (i / 2 % 2)" if values > 2 else ""
    later = "8 * (i / 4)" if values > 4 else ""
    row = _sum(_group_row(instruction), lower)
    return (("row", row), ("col", _sum("threadID_in_group * 2 + i % 2", later)))


def _quad(instruction: Instruction, operand: str) -> Results:
    """m8n8k4 f16: lanes 0-15 and 16-31 hold the two halves of the rows, or of B's columns."""
    lane, own = "%laneid % 4 + 4 * (%laneid / 16)", "i + 4 * (%laneid / 16)"
    if operand == "a":
        row_major = instruction.a_layout == "row"
        return (("row", lane), ("col", "i")) if row_major else (("row", own), ("col", "%laneid % 4"))
    if operand == "b":
        column_major = instruction.b_layout == "col"
        return (("row", "i"), ("col", lane)) if column_major else (("row", "%laneid % 4"), ("col", own))
    if instruction.format(operand).name == "f16":
        return (("row", lane), ("col", "i"))
    row = "(%laneid & 1) + (i & 2) + 4 * (%laneid / 16)"
    return (("row", row), ("col", "(i & 4) + (%laneid & 2) + (i & 1)"))


def _logical_chunk(instruction: Instruction) -> str:
    """The chunk of a row of A that a stored column comes from, and its logical columns."""
    pattern = present(instruction.pattern, "pattern")
    return f"col / {pattern.stored}" if pattern.stored > 1 else "col"


# --- metadata and scales ---------------------------------------------------------------------------


def _metadata(instruction: Instruction, selector: int) -> Formula:
    pattern = present(instruction.pattern, "pattern")
    shape, words = instruction.shape, instruction.metadata_words
    first = f"{words * selector}" if selector else ""
    warp = "32 * (row / 16)" if instruction.family.lanes > 32 else ""
    lane = _sum(warp, "4 * (row % 8)", first)
    chunks = shape.k // pattern.chunk
    if instruction.storage("a").bits >= 16:
        lane = _sum(lane, "chunk / 4" if chunks > 4 else "")
        bit = "16 * (row / 8 % 2) + 4 * (chunk % 4)"
    else:
        lane = _sum(lane, "row / 8 % 2", "2 * (chunk / 8)" if chunks > 8 else "")
        bit = "4 * (chunk % 8)"
    return Formula(
        operand="metadata",
        section=section(instruction, "e"),
        domain=(
            f"rows 0..{shape.m - 1}, chunks 0..{chunks - 1} of {pattern.chunk} columns, selector {selector}"
        ),
        names=(),
        results=(("lane", lane), ("lowest bit", bit)),
    )


def _scales(instruction: Instruction, operand: str) -> Formula:
    side = operand.removeprefix("scale_")
    if side == "a":
        domain, lane = f"rows 0..{instruction.shape.m - 1}", "4 * (row % 8) + 2 * thread_id_a + row / 8"
    else:
        domain, lane = f"columns 0..{instruction.shape.n - 1}", "4 * col + thread_id_b"
    return Formula(
        operand=operand,
        section=_SCALES,
        domain=f"{domain}, chunks 0..{instruction.scale_chunks - 1}",
        names=(),
        results=(("lane", lane), ("lowest bit", f"8 * (byte_id_{side} + chunk)")),
    )


def logical_column_lines(instruction: Instruction) -> list[str]:
    """How the metadata turns a stored column of A into a logical one; nothing for dense forms."""
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
