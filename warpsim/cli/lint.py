"""``warpsim lint``: what is undefined, ignored or probably not meant in metadata and sparse operands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .operands import OPERANDS
from .options import json_option
from .output import CONTEXT, EXPECTED, MISMATCH, Failure, attempt, check_target, fail, print_json, say
from .sources import decoded, executed, is_file, is_vectors, read_set

_TAKEN = {"a", "b", "e", "A", "selector"}


@click.command(context_settings=CONTEXT)
@click.argument("source", metavar="TRACE|VECTORS|MNEMONIC")
@OPERANDS
@click.option(
    "--target", metavar="SM", callback=check_target, help="Of a mnemonic: the chip, such as sm_90a."
)
@json_option
def lint(source: str, operands: tuple[str, ...], target: str | None, as_json: bool) -> int:
    """Look for mistakes in sparse operands without executing anything.

    Operands of a MNEMONIC are registers e, a and b, the selector, and logical A as a matrix, any of them:
    e=e.txt selector=1 A=a.npy. Of a TRACE or VECTORS every sparse instruction is looked at. Exit code 1: an
    error was found.
    """
    if is_file(source) and (operands or target):
        raise click.UsageError("operands and --target go with a mnemonic: a trace or vector set has its own")
    found = attempt(_linted, Path(source) if is_file(source) else Path("OPERANDS"), source, operands, target)
    if isinstance(found, Failure):
        return fail(found, as_json)
    _report(found, as_json)
    errors = any(finding.severity == "error" for _, findings in found for finding in findings)
    return MISMATCH if errors else EXPECTED


def _report(found: list[tuple[str, Any]], as_json: bool) -> None:
    from ..views.findings import finding_document, finding_lines

    if as_json:
        subjects = [
            {"subject": title, "findings": [finding_document(finding) for finding in findings]}
            for title, findings in found
        ]
        print_json({"subjects": subjects, "errors": []})
        return
    for title, findings in found:
        say("\n".join([title, *(f"  {line}" for line in finding_lines(findings))]))
    if not found:
        say("no sparse instruction")


def _linted(_: Path, source: str, operands: tuple[str, ...], target: str | None) -> list[tuple[str, Any]]:
    """What was looked at, and the findings on it."""
    from ..linting.lint import lint

    if is_file(source):
        return _of_vectors(source) if is_vectors(source) else _of_trace(source)
    form, given = decoded(source, target, operands)
    taken = {"matrix" if name == "A" else name: given[name] for name in _TAKEN & given.keys()}
    if not taken.keys() & {"a", "b", "e", "matrix"}:
        raise click.UsageError(
            "give what is to be looked at: e=FILE, a=FILE, b=FILE, A=FILE, or a dump of them"
        )
    return [(form.mnemonic, lint(form, **taken))]


def _of_vectors(source: str) -> list[tuple[str, Any]]:
    """Cases of equal immediates are tiles of one subject."""
    from ..linting.lint import lint

    vectors = read_set(source)
    if not vectors.instruction.sparse:
        return []
    found = []
    for part in vectors.inputs():
        given = {name: part.arguments[name] for name in ("a", "b", "e", "selector") if name in part.arguments}
        findings = lint(vectors.instruction, **given)
        found.append((f"{source}: selector {given.get('selector', 0)}", findings))
    return found


def _of_trace(source: str) -> list[tuple[str, Any]]:
    from ..linting.lint import lint

    found = []
    for number, event in enumerate(executed(source, literal=True).events):
        if not event.instruction.sparse:
            continue
        place = event.statement.location()
        for first, inputs, _ in event.executions():
            given: dict[str, Any] = {name: words for name, words in inputs.registers.items() if name in "abe"}
            warp = f", warp {first // 32}" if len(event.d) > event.instruction.family.lanes else ""
            title = f"{place.file}:{place.line}: event {number}{warp}: {event.instruction.mnemonic}"
            found.append((title, lint(event.instruction, **given, selector=inputs.selector)))
    return found
