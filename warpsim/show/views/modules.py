"""What was found in a module: as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ptx.symbols import shown
from ...workbench.diagnosis.linting.lint import ModuleCheck
from ...workbench.diagnosis.linting.pipelines import PipelineFinding
from ...workbench.explanation.information import version_text
from .report import error_document

Document = dict[str, Any]


def check_lines(file: str, found: ModuleCheck) -> Iterator[str]:
    """Yield every problem with its caret, then one line of counts."""
    for error in (*found.illegal, *found.unmodelled):
        yield error.render()
    for warning in found.warnings:
        yield warning.render()
    kernels = ", ".join(map(shown, found.entries)) or "no kernels"
    counts = (
        _count_text(len(found.illegal), "error"),
        f"{len(found.unmodelled)} not modelled" if found.unmodelled else "",
        _count_text(len(found.warnings), "warning"),
    )
    verdict = ", ".join(filter(None, counts)) or "nothing found"
    where = f"{found.target}, PTX {version_text(found.version)}"
    yield f"{file}: {where}: {kernels}; {_count_text(found.statements, 'statement')}: {verdict}"


def _count_text(count: int, what: str) -> str:
    return f"{count} {what}{'s'[: count != 1]}" if count else ""


def check_document(file: str, found: ModuleCheck) -> Document:
    """Return the same as JSON-ready data."""
    return {
        "file": file,
        "target": found.target,
        "version": version_text(found.version),
        "kernels": list(found.entries),
        "statements": found.statements,
        "illegal": [error_document(item, file) for item in found.illegal],
        "unmodelled": [error_document(entry, file) for entry in found.unmodelled],
        "warnings": [_slow_document(element) for element in found.warnings],
        "errors": [],
    }


def _slow_document(finding: PipelineFinding) -> Document:
    return {
        "rule": finding.rule,
        "message": finding.message,
        "fix": finding.fix,
        "line": finding.location.line,
        "column": finding.location.column,
    }
