"""``warpsim lint``: find undefined, ignored or probably wrong values in metadata and sparse operands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from .options import Json, Operands, Select, Target
from .output import EXPECTED, MISMATCH, perform, print_json, say
from .sources import (
    check_unselected,
    decoded,
    executed,
    is_file,
    is_recording,
    is_vectors,
    open_set,
    recorded,
)
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...observe.recording.selection import Selection
    from ...workbench.diagnosis.linting.subject import Alike
    from ...workbench.vectors.parted import SetInParts

_TAKEN = {"a", "b", "e", "A", "selector"}
_LOOK = "warpsim launch --origins with --fragment LINE:OPERAND shows every element"


@verb
def lint(
    source: Annotated[str, Option(metavar="TRACE|VECTORS|RECORDING|MNEMONIC")],
    operands: Operands = (),
    *,
    target: Annotated[Target, "Of a mnemonic: the chip, such as sm_90a."],
    selection: Select,
    as_json: Json,
) -> int:
    """Look for mistakes in sparse operands without executing anything.

    Operands of a MNEMONIC are registers e, a and b, the selector, and logical A as a matrix, any of them:
    e=e.txt selector=1 A=a.npy. Of a TRACE, VECTORS or RECORDING every sparse instruction is
    looked at; of a RECORDING with --origins also where operands come from. Exit code 1: an error was found.
    """
    if is_file(source) and (operands or target):
        raise click.UsageError("operands and --target go with a mnemonic: a trace or vector set has its own")
    check_unselected(source, selection)
    path = Path(source) if is_file(source) else Path("OPERANDS")
    found = perform(_linted, path, source, operands, target, selection, as_json)
    _report(found, as_json)
    errors = any(each.severity == "error" for _, findings in found for each in findings)
    return MISMATCH if errors else EXPECTED


def _report(found: list[tuple[str, list[Alike]]], as_json: bool) -> None:
    from ...workbench.diagnosis.linting.lint import by_tile
    from ..views.findings import finding_document, finding_lines

    if as_json:
        subjects = [
            {"subject": title, "findings": [finding_document(finding) for finding in by_tile(findings)]}
            for title, findings in found
        ]
        print_json({"subjects": subjects, "errors": []})
        return
    for title, findings in found:
        say("\n".join([title, *(f"  {line}" for line in finding_lines(findings))]))
    if not found:
        say("no sparse instruction")


def _linted(
    _: Path,
    source: str,
    operands: tuple[str, ...],
    target: str | None,
    selection: Selection | None,
    all_findings: bool,
) -> list[tuple[str, list[Alike]]]:
    """Return the subjects, and the findings on each: all of them, or as many as are listed."""
    from ...workbench.diagnosis.linting.lint import alike
    from ..views.findings import ALIKE

    most = None if all_findings else ALIKE
    if is_recording(source):
        return _of_recording(source, selection, most)
    if is_file(source):
        return _of_set(open_set(source), source, most) if is_vectors(source) else _of_trace(source, most)
    form, given = decoded(source, target, operands)
    taken = {"matrix" if name == "A" else name: given[name] for name in _TAKEN & given.keys()}
    if not taken.keys() & {"a", "b", "e", "matrix"}:
        raise click.UsageError(
            "give what is to be looked at: e=FILE, a=FILE, b=FILE, A=FILE, or a dump of them"
        )
    return [(form.mnemonic, alike(form, **taken, most=most))]


def _of_recording(
    source: str, selection: Selection | None, most: int | None
) -> list[tuple[str, list[Alike]]]:
    """Return the executions of each statement as tiles of one subject."""
    from ...workbench.diagnosis.linting.subject import Finding, alone

    recording = recorded(source, selection)
    found: list[tuple[str, list[Alike]]] = []
    for item in recording.sets():
        found += _of_set(item.vectors, item.title, most)
        notes = [
            Finding(severity="error", rule=f"origin-{note.kind}", message=str(note), fix=_LOOK)
            for note in recording.notes_of(item.statement.location().line)
        ]
        found += [(f"{item.title}: where its operands come from", [*map(alone, notes)])] * bool(notes)
    return found


def _of_set(vectors: SetInParts, source: str, most: int | None) -> list[tuple[str, list[Alike]]]:
    """Return cases of equal selectors as tiles of one subject."""
    import numpy as np

    from ...workbench.diagnosis.linting.lint import alike, joined

    if not vectors.instruction.sparse:
        return []
    found: dict[int, list[Alike]] = {}
    start = 0
    for some in vectors.parts():
        numbers = np.arange(start, start + len(some))
        for part in some.inputs():
            selector = part.arguments.get("selector", 0)
            given = {name: part.arguments[name] for name in ("a", "b", "e") if name in part.arguments}
            cases = numbers[part.cases]
            more = alike(vectors.instruction, **given, selector=selector, most=most, cases=cases)
            found[selector] = (
                [*found.get(selector, ()), *more]
                if most is None
                else joined([*found.get(selector, ()), *more], most)
            )
        start += len(some)
    return [(f"{source}: selector {selector}", findings) for selector, findings in found.items()]


def _of_trace(source: str, most: int | None) -> list[tuple[str, list[Alike]]]:
    from ...workbench.diagnosis.linting.lint import alike

    found = []
    for number, event in enumerate(executed(source, literal=True).events):
        if not event.instruction.sparse:
            continue
        place = event.statement.location()
        for first, inputs, _ in event.executions():
            given: dict[str, Any] = {name: words for name, words in inputs.registers.items() if name in "abe"}
            warp = f", warp {first // 32}" if len(event.d) > event.instruction.lanes else ""
            title = f"{place.file}:{place.line}: event {number}{warp}: {event.instruction.mnemonic}"
            findings = alike(event.instruction, **given, selector=inputs.selector, most=most)
            found.append((title, findings))
    return found
