"""Where the elements of matrix instructions come from: as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...base.text_columns import words
from ...workbench.diagnosis.origins.element_origins import OperandOrigins, Origins
from ...workbench.diagnosis.origins.kept_products import Given
from ...workbench.diagnosis.origins.packing_checks import PackingFinding
from ...workbench.diagnosis.origins.traced_launch import TracedBuffer

Document = dict[str, Any]
_STATEMENTS = 4  # that are shown
_LINES = 6  # of one finding


def origin_lines(origins: Origins, fills: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield mismatches, dependences on the data, the arrays, and what each statement reads of them.

    ``fills`` says what has filled arrays, by name.
    """
    yield from _finding_lines(origins.findings, origins.unexplained)
    for dependence in origins.dependences:
        yield f"depends on the data: {dependence}"
    for buffer in origins.buffers:
        yield f"{buffer.name}: {_place(buffer)}, {origins.used(buffer):.1%} of it in matrix instructions"
        if fills and buffer.name in fills:
            yield f"  filled by {fills[buffer.name]}"
    for text in origins.unexplained:
        yield f"not explained: {text}"
    statements = _statements(origins.operands)
    for operands in statements[:_STATEMENTS]:
        yield from _statement_lines(operands)
    if len(statements) > _STATEMENTS:
        yield f"and {len(statements) - _STATEMENTS} more matrix statements"
    if not statements:
        yield "no matrix instruction was executed"


def _place(buffer: TracedBuffer) -> str:
    """Return which parameter a buffer is, or which allocation."""
    if buffer.parameter >= 0 or buffer.allocation is None:
        return f"parameter {buffer.parameter}, {buffer.dtype} {buffer.shape}"
    last = buffer.allocation.address + buffer.size - 1
    rows = f", {buffer.shape[0]} rows of {buffer.shape[1]} bytes" if len(buffer.shape) > 1 else ""
    return f"{buffer.allocation} to {last:#x}{rows}"


def _finding_lines(findings: Sequence[PackingFinding], unexplained: Sequence[str]) -> Iterator[str]:
    """Yield every sentence once, with the statements that it is true of."""
    alike: dict[str, list[PackingFinding]] = {}
    for finding in findings:
        alike.setdefault(finding.message, []).append(finding)
    if not alike:
        fit = "no inconsistency found in the operands"
        yield "no inconsistency found; some operands are untraced" if unexplained else fit
    for message, group in alike.items():
        numbers = [str(item.location.line) for item in group]
        more = ", ..." if len(numbers) > _LINES else ""
        lines = f"line{'s'[: len(numbers) != 1]} {', '.join(numbers[:_LINES])}{more}"
        place = f"{group[0].location.file}, {lines}"
        sources = dict.fromkeys(str(item.location.source) for item in group if item.location.source)
        if sources:
            place = f"{', '.join(list(sources)[:_LINES])} ({place})"
        yield f"{message} [{group[0].kind}]"
        yield f"  {place}: {group[0].where}"


def _statements(operands: Sequence[OperandOrigins]) -> list[list[OperandOrigins]]:
    """Return operands, those of one statement together."""
    found: dict[int, list[OperandOrigins]] = {}
    for operand in operands:
        found.setdefault(id(operand.operand.given), []).append(operand)
    return list(found.values())


def _statement_lines(operands: Sequence[OperandOrigins]) -> Iterator[str]:
    given = operands[0].operand.given
    count = len(given.places)
    unit = "warp" if given.instruction.lanes == 32 else "warpgroup"
    place, times = given.location, f"{count} execution{'s'[: count != 1]} of a {unit}"
    yield f"{place.line_name}: {_spelling(given)}, {times}"
    for operand in operands:
        yield f"  {operand.role}: {_operand_text(operand)}"


def _spelling(given: Given) -> str:
    """Return the matrix instruction as it is written; of wmma, a mma of the target computes it."""
    statement = given.record.statement
    return statement.mnemonic if statement.opcode == "wmma" else given.instruction.mnemonic


def _operand_text(traced: OperandOrigins) -> str:
    if traced.formulas and traced.buffer:
        rest = _counts_text(traced, [name for name in traced.counts if name != "moved"])
        return "; ".join([f"from {traced.buffer.name}, {traced.formulas[0]}", *([rest] if rest else [])])
    return _counts_text(traced, list(traced.counts))


def _counts_text(traced: OperandOrigins, names: Sequence[str]) -> str:
    source = f"from {traced.buffer.name}" if traced.buffer else "moved"
    unit = f" {traced.counted}"
    names_shown = {"moved": source}
    if traced.example:
        names_shown["computed"] = f"computed (such as {traced.example})"
    shown = [(traced.counts[name], names_shown.get(name, name)) for name in names if traced.counts[name]]
    return ", ".join(f"{count}{unit} {what}" for count, what in shown)


def fragment_lines(traced: OperandOrigins, execution: int) -> Iterator[str]:
    """Yield a table of one fragment: lane, register, bits and where they come from."""
    place = traced.operand.given.location
    x, y, z, warp, step = traced.operand.places[execution].tolist()
    yield (
        f"{traced.role} at {place.line_name}, execution {execution}: "
        f"CTA ({x}, {y}, {z}), warp {warp}, step {step}"
    )
    table = traced.table(execution)
    if traced.operand.is_matrix:
        tile = [(str(each.lane), str(each.register), each.source) for each in table]
        yield from (f"  {line}" for line in words([("nm"[traced.role == "a"], "k", "from"), *tile]))
        return
    rows = [
        (
            str(each.lane),
            f"{traced.role}{each.register}",
            f"{each.bits[0]}..{each.bits[1]}",
            each.source,
        )
        for each in table
    ]
    yield from (f"  {line}" for line in words([("lane", "register", "bits", "from"), *rows]))


# --- JSON ------------------------------------------------------------------------------------------


def origins_document(origins: Origins) -> Document:
    """Return findings, dependences, arrays and operands as JSON-ready data."""
    return {
        "findings": [_finding_document(finding) for finding in origins.findings],
        "unexplained": list(origins.unexplained),
        "dependences": [
            {
                "file": dependence.location.file,
                "line": dependence.location.line,
                "message": dependence.message,
            }
            for dependence in origins.dependences
        ],
        "buffers": [
            {
                "name": buffer.name,
                **_place_document(buffer),
                "shape": list(buffer.shape),
                "dtype": str(buffer.dtype),
                "used": origins.used(buffer),
            }
            for buffer in origins.buffers
        ],
        "operands": [_operand_document(operand) for operand in origins.operands],
    }


def _place_document(buffer: TracedBuffer) -> Document:
    """Return the parameter, or the allocation."""
    if buffer.parameter >= 0 or buffer.allocation is None:
        return {"parameter": buffer.parameter}
    return {"allocation": buffer.allocation.name, "address": buffer.allocation.address, "bytes": buffer.size}


def _finding_document(finding: PackingFinding) -> Document:
    return {
        "kind": finding.kind,
        "operand": finding.operand,
        "message": finding.message,
        "file": finding.location.file,
        "line": finding.location.line,
        "places": finding.places.tolist(),
    }


def _operand_document(traced: OperandOrigins) -> Document:
    given = traced.operand.given
    return {
        "file": given.location.file,
        "line": given.location.line,
        "mnemonic": given.instruction.mnemonic,
        "operand": traced.role,
        "buffer": traced.buffer.name if traced.buffer else None,
        "executions": len(given.places),
        "counts": traced.counts,
        "formulas": list(traced.formulas),
    }


def fragment_document(traced: OperandOrigins, execution: int) -> Document:
    """Return the table of one fragment as JSON-ready data."""
    return {
        "line": traced.operand.given.location.line,
        "operand": traced.role,
        "execution": execution,
        "place": traced.operand.places[execution].tolist(),
        "elements": [
            {
                "lane": element.lane,
                "register": element.register,
                "bits": list(element.bits),
                "from": element.source,
            }
            for element in traced.table(execution)
        ],
    }
