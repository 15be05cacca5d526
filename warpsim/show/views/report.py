"""What a run of a trace did: as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base import errors
from ...base.errors import WarpsimError
from ...base.text_columns import numbers
from ...isa.codes import matrix_of
from ...isa.fragments import codes_from
from ...observe.checks.wgmma.hazard import Hazard
from ...observe.recording.matrix_events import Event
from ...observe.recording.recorder import LaunchEvent
from ...sums.execution.pipeline import evidence
from ...workbench.explanation.information import Document, evidence_document
from ...workbench.traces.checks import ByteDifference, Check, Difference
from ...workbench.traces.running import Run

# --- text ------------------------------------------------------------------------------------------


def run_lines(run: Run, show: str) -> Iterator[str]:
    """Yield the instructions whose D is shown (``last``, ``all``, ``none``), then every check."""
    count = len(run.events)
    yield f"{run.trace.path}: {run.machine.target}, {count} matrix instruction{'s'[: count != 1]}"
    for event in {"all": run.events, "last": run.events[-1:], "none": []}[show]:
        yield from event_lines(event)
    for hazard in run.hazards:
        yield from (f"  {line}" for line in hazard.render().splitlines())
    for check in run.checks:
        yield from _check_lines(check)
    compared = sum(check.compared for check in run.checks)
    verdict = "passed" if run.passed else "FAILED"
    plural = "s"[: len(run.checks) != 1]
    yield f"  {verdict}: {len(run.checks)} check{plural}, {compared} words compared bit by bit"


def event_lines(event: Event) -> Iterator[str]:
    """Line, mnemonic, evidence and D of an executed instruction."""
    form = event.instruction
    yield f"  {event.location.short}: {form.mnemonic}"
    yield f"  {evidence(form, with_c=event.inputs.scale_d)}"
    for index, matrix in enumerate(result_matrices(event)):
        product = f" of product {index % form.products}" if form.products > 1 else ""
        product += f" of warp {index // form.products}" if len(event.d) > form.lanes else ""
        yield f"  D{product} ({form.shape.m} x {form.shape.n}, {form.d}):"
        yield from (f" {line}" for line in matrix_lines(matrix))


def _check_lines(check: Check) -> Iterator[str]:
    place = f"  line {check.location.line}: {check.registers}"
    if check.first is None:
        yield f"{place}: {check.compared} words as expected"
    else:
        yield f"{place}: {check.different} of {check.compared} words differ"
        yield f"    first: {check.first}"


def result_matrices(event: Event) -> npt.NDArray[Any]:
    """D of an executed instruction, ``(warps and products, m, n)`` in its format's dtype.

    There are several warps where each warp of a warpgroup executes ``mma`` by itself.
    """
    form = event.instruction
    words = event.d.reshape(-1, form.lanes, event.d.shape[-1])
    matrix = matrix_of(codes_from(words, form, "d"), form.d)
    return matrix.reshape(-1, form.shape.m, form.shape.n)


def names_of(event: Event) -> dict[str, list[str]]:
    """Return the registers as the statement names them, by operand; a wgmma accumulates onto its D."""
    found: dict[str, list[str]] = {}
    for role in ("a", "b", "c", "d", "e", "scale_a", "scale_b"):
        names = getattr(event.bound, role, None)
        if names is not None:
            listed = (names,) if isinstance(names, str) else names
            found[role] = ["_" if name is None else str(name) for name in listed]
    return {"c": found["d"]} | found


def word_names(event: Event) -> dict[str, list[str]]:
    """Return the names of the words of each operand: registers, or columns of tensor memory."""
    found = names_of(event)
    for operand, address in addresses_of(event).items():
        first, words = address & 0xFFFF, event.instruction.held(operand).words
        found[operand] = [f"C{first + word}" for word in range(words)]
    return found


def addresses_of(event: Event) -> dict[str, int]:
    """Return the addresses of operands in tensor memory; D is accumulated onto itself."""
    known = dict(event.addresses) if isinstance(event, LaunchEvent) else {}
    return known | ({"c": known["d"]} if "d" in known else {})


def matrix_lines(matrix: npt.NDArray[Any]) -> list[str]:
    """Return a matrix with its row and column numbers: six significant digits, integers whole."""
    if matrix.dtype.kind in "iub":
        cells = [[str(int(value)) for value in row] for row in matrix]
    else:
        with np.errstate(invalid="ignore"):  # signaling NaN
            cells = [[f"{float(value):.6g}" for value in row] for row in matrix.astype(np.float64)]
    header = ["", *map(str, range(matrix.shape[1]))]
    return numbers([header, *([str(index), *row] for index, row in enumerate(cells))])


# --- data ------------------------------------------------------------------------------------------


def run_document(run: Run) -> Document:
    """Return a run as JSON-ready data: settings, instructions with their evidence and D, checks."""
    return {
        "trace": PurePath(run.trace.path).as_posix(),
        "target": run.machine.target,
        "engine": run.machine.engine_name,
        "passed": run.passed,
        "instructions": [_event_document(event) for event in run.events],
        "checks": [_check_document(check) for check in run.checks],
    } | ({"hazards": [_hazard_document(hazard) for hazard in run.hazards]} if run.hazards else {})


def error_document(error: WarpsimError, file: str) -> Document:
    """Return an error as JSON-ready data: where it is, as far as that is known, and what is wrong."""
    place = error.location
    return {
        "file": place.file if place else file,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "kind": next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__),
        "message": error.message,
    }


def _event_document(event: Event) -> Document:
    form = event.instruction
    return {
        "line": event.statement.location().line,
        "mnemonic": form.mnemonic,
        "evidence": evidence_document(evidence(form, with_c=event.inputs.scale_d)),
        "d": list(event.bound.d),
        "words": [[f"{word:#0{2 + form.register_bits // 4}x}" for word in lane] for lane in event.d.tolist()],
    }


def _hazard_document(hazard: Hazard) -> Document:
    return {
        "severity": hazard.severity,
        "rule": hazard.rule,
        "line": hazard.second.line,
        "after_line": hazard.first.line if hazard.first else None,
        "message": hazard.message,
        "fix": hazard.fix,
    }


def _check_document(check: Check) -> Document:
    return {
        "line": check.location.line,
        "registers": check.registers,
        "compared": check.compared,
        "different": check.different,
        "first": difference_document(check.first) if check.first else None,
    }


def difference_document(difference: Difference | ByteDifference) -> Document:
    """Return a difference as JSON-ready data: where it is, what was expected and what came out."""
    expected, actual = difference.words()
    if isinstance(difference, ByteDifference):
        return {"address": difference.address, "expected": expected, "actual": actual}
    document: Document = {
        "lane": difference.lane,
        "register": difference.register,
        "expected": expected,
        "actual": actual,
    }
    if element := difference.element:
        document |= {"row": element.row, "column": element.column}
        document |= {"expected_value": element.expected, "actual_value": element.actual}
        if element.product is not None:
            document["product"] = element.product
        if element.warp is not None:
            document["warp"] = element.warp
    return document
