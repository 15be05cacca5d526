"""What a run of a trace did, as plain data, and matrices as cells of text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from ..encoding import matrix_of
from ..fragments import codes_from
from ..instruction import Instruction
from ..machine import Event
from ..pipeline import evidence
from ..traces import Check, Run
from .information import Document, evidence_document


def result_matrices(event: Event, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """D of an executed instruction, ``(products, m, n)`` in its format's dtype."""
    form: Instruction = event.instruction
    matrix = matrix_of(codes_from(words, form, "d"), form.d)
    return matrix.reshape(-1, form.shape.m, form.shape.n)


def cells(matrix: npt.NDArray[Any]) -> list[list[str]]:
    """Every element as short text: up to six significant digits, integers whole."""
    if matrix.dtype.kind in "iub":
        return [[str(int(value)) for value in row] for row in matrix]
    return [[f"{float(value):.6g}" for value in row] for row in matrix.astype(np.float64)]


def run_document(run: Run) -> Document:
    """A run as JSON-ready data: settings, instructions with their evidence and D, checks."""
    return {
        "trace": PurePath(run.trace.path).as_posix(),
        "target": run.warp.target,
        "passed": run.passed,
        "instructions": [_event_document(event, words) for event, words in run.executed],
        "checks": [_check_document(check) for check in run.checks],
    }


def _event_document(event: Event, words: npt.NDArray[Any]) -> Document:
    return {
        "line": event.statement.location().line,
        "mnemonic": event.instruction.mnemonic,
        "evidence": evidence_document(evidence(event.instruction)),
        "d": list(event.bound.d),
        "words": [[f"{word:#0{2 + event.instruction.register_bits // 4}x}" for word in lane] for lane in words],
    }


def _check_document(check: Check) -> Document:
    return {
        "line": check.location.line,
        "registers": check.registers,
        "compared": check.compared,
        "different": check.different,
        "first": asdict(check.first) if check.first else None,
    }
