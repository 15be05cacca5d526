"""The evidence table: what is known of every form on every target, and how.

A line is an operation of a family with its type of D, and the targets on which the same evidence holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..isa.architectures import ARCHITECTURES, targets_text
from ..isa.comparisons import Evidence
from ..isa.instruction import Instruction
from .information import Document, rule_on
from .text_columns import words


@dataclass(frozen=True, kw_only=True)
class Row:
    """The evidence for the forms of one operation with one type of D on one target."""

    family: str
    operation: str
    d: str
    target: str
    evidence: Evidence
    mnemonics: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """Family, operation and type of D."""
        return self.family, self.operation, self.d

    @property
    def differences(self) -> int | None:
        """Outputs of chips that the model does not reproduce; None where none were compared."""
        return 0 if self.evidence.outputs else None


def evidence_rows(forms: Iterable[Instruction]) -> list[Row]:
    """Return rows for the forms, each on its own target, or on all that it is legal on."""
    found: dict[tuple[str, str, str, str], list[Instruction]] = {}
    for form in forms:
        for target in [form.target] if form.target else form.targets:
            key = (form.family.name, form.operation, form.d.name, target)
            found.setdefault(key, []).append(form)
    order = list(ARCHITECTURES)
    return [
        Row(
            family=family,
            operation=operation,
            d=d,
            target=target,
            evidence=rule_on(members[0], target).evidence,
            mnemonics=tuple(form.mnemonic for form in members),
        )
        for (family, operation, d, target), members in sorted(
            found.items(), key=lambda item: (*item[0][:3], order.index(item[0][3]))
        )
    ]


def evidence_lines(forms: Iterable[Instruction]) -> list[str]:
    """Return the table as text, targets with the same evidence on one line."""
    header = ["family", "operation", "D", "evidence", "outputs", "differ", "chips", "targets"]
    return words([header, *_cells(evidence_rows(forms))])


def _cells(rows: Iterable[Row]) -> Iterator[list[str]]:
    grouped: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        known = row.evidence
        outputs = f"{known.outputs:,}" if known.outputs else "-"
        differences = "-" if row.differences is None else str(row.differences)
        cells: tuple[str, ...] = (*row.key, known.label, outputs, differences, known.chips or "-")
        grouped.setdefault(cells, []).append(row.target)
    for cells, targets in grouped.items():
        yield [*cells, targets_text(targets)]


def evidence_documents(forms: Iterable[Instruction]) -> list[Document]:
    """Return the table as JSON-ready data: an object for every operation and target, with its forms."""
    return [
        {
            "family": row.family,
            "operation": row.operation,
            "d": row.d,
            "target": row.target,
            "label": row.evidence.label,
            "detail": row.evidence.detail,
            "chips": row.evidence.chips,
            "outputs": row.evidence.outputs,
            "differences": row.differences,
            "forms": list(row.mnemonics),
        }
        for row in evidence_rows(forms)
    ]
