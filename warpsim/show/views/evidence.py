"""The evidence table: what is known of every form on every target, and how.

Evidence is per operation, types, k, with or without C, and target: a row each. A line of the text has all
types, k and targets whose rows say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...base.text_columns import words
from ...isa.architectures import ARCHITECTURES, targets_text
from ...isa.comparisons import Evidence
from ...isa.instruction import Instruction
from ...workbench.explanation.information import Document, rule_on

RowKey = tuple[str, str, str, str, int, bool, bool, str]


@dataclass(frozen=True, kw_only=True)
class Row:
    """The evidence for the forms of one operation, with one choice of types and k, on one target.

    ``types`` are those of A, B and C, ``k`` the products that are summed. ``with_c`` is False for forms that
    can leave C out (scale-d of wgmma), where that has evidence of its own. ``shape`` is that of D where
    outputs of this shape alone are reported, else "".
    """

    family: str
    operation: str
    d: str
    types: str
    k: int
    saturated: bool
    with_c: bool
    shape: str
    target: str
    evidence: Evidence
    mnemonics: tuple[str, ...]

    @property
    def key(self) -> RowKey:
        """Everything but the target, and what follows from it."""
        modes = self.saturated, self.with_c, self.shape
        return self.family, self.operation, self.d, self.types, self.k, *modes

    @property
    def differences(self) -> int | None:
        """Outputs of chips that the model does not reproduce; None where none were compared."""
        return 0 if self.evidence.outputs else None


def evidence_rows(forms: Iterable[Instruction]) -> list[Row]:
    """Return rows for the forms, each on its own target, or on all that it is legal on."""
    found: dict[tuple[RowKey, str], list[Instruction]] = {}
    for form in forms:
        for target in [form.target] if form.target else form.targets:
            for with_c in modes_of_c(form, target):
                found.setdefault((_key(form, target, with_c), target), []).append(form)
    order = list(ARCHITECTURES)
    return [
        _row(key, target, members)
        for (key, target), members in sorted(
            found.items(), key=lambda item: (item[0][0], order.index(item[0][1]))
        )
    ]


def _row(key: RowKey, target: str, members: Sequence[Instruction]) -> Row:
    family, operation, d, types, k, saturated, with_c, shape = key
    return Row(
        family=family,
        operation=operation,
        d=d,
        types=types,
        k=k,
        saturated=saturated,
        with_c=with_c,
        shape=shape,
        target=target,
        evidence=rule_on(members[0], target, with_c=with_c).evidence,
        mnemonics=tuple(form.mnemonic for form in members),
    )


def _key(form: Instruction, target: str, with_c: bool) -> RowKey:
    types = f"{form.a.name}.{form.b.name}.{form.c.name}"
    of_shape = rule_on(form, target, with_c=with_c).evidence.label == "reported"
    modes = form.satfinite, with_c, f"m{form.shape.m}n{form.shape.n}" * of_shape
    return form.family.name, form.operation, form.d.name, types, form.stored_k, *modes


def modes_of_c(form: Instruction, target: str) -> tuple[bool, ...]:
    """Return whether C is added: both, where a form may leave it out and that has evidence of its own."""
    if form.has_registers("b") or form.descriptor is not None:
        return (True,)
    labels = {rule_on(form, target, with_c=with_c).evidence.label for with_c in (True, False)}
    return (True, False) if len(labels) > 1 else (True,)


def evidence_lines(forms: Iterable[Instruction]) -> list[str]:
    """Return the table as text: types, k and targets with the same evidence on one line."""
    header = ["family", "operation", "D", "A.B.C", "k", "evidence", "outputs", "differ", "chips", "targets"]
    return words([header, *_cells(evidence_rows(forms))])


def reason_lines(forms: Iterable[Instruction]) -> list[str]:
    """Return why each label is what it is, a line for all targets where it is the same."""
    found: dict[str, set[str]] = {}
    for row in evidence_rows(forms):
        without = "" if row.with_c else " without C"
        found.setdefault(f"{without}: {row.evidence}", set()).add(row.target)
    return [f"{targets_text(targets)}{why}" for why, targets in found.items()]


def _cells(rows: Iterable[Row]) -> Iterator[list[str]]:
    for group in alike(
        rows, lambda row: (row.family, row.operation, row.d, row.with_c, _evidence_cells(row.evidence))
    ):
        first = group[0]
        targets = targets_text({row.target for row in group})
        cells = [first.family, first.operation, first.d, types_text(group), products_text(group)]
        yield [*cells, *_evidence_cells(first.evidence), targets]


def types_text(rows: Iterable[Row]) -> str:
    """Return the types of A, B and C of rows, few by name, and what they leave out or saturate."""
    rows = list(rows)
    types = list(dict.fromkeys(row.types for row in rows))
    listed = ", ".join(types) if len(types) < 4 else f"{len(types)} choices"
    saturated = {row.saturated for row in rows}
    suffix = {False: "", True: " .satfinite"}[saturated.pop()] if len(saturated) == 1 else ""
    shapes = sorted({row.shape for row in rows} - {""})
    suffix += f" of {', '.join(shapes)}" * bool(shapes)
    return listed + suffix + ("" if rows[0].with_c else " without C")


def products_text(rows: Iterable[Row]) -> str:
    """Return how many products rows sum: ``8, 16``."""
    return ", ".join(str(k) for k in sorted({row.k for row in rows}))


def _evidence_cells(known: Evidence) -> tuple[str, str, str, str]:
    """Return the label, the outputs compared, those that differ, and the chips."""
    outputs = f"{known.outputs:,}" if known.outputs else "-"
    return known.label, outputs, "0" if known.outputs else "-", known.chips or "-"


def alike(rows: Iterable[Row], same: Callable[[Row], Hashable]) -> Iterator[list[Row]]:
    """Yield rows that are the same in what is asked, so that all their types, k and targets go together."""
    by_use: dict[Hashable, list[Row]] = {}
    for row in rows:
        by_use.setdefault((same(row), row.key), []).append(row)
    by_k: dict[Hashable, list[Row]] = {}
    for members in by_use.values():
        targets = tuple(row.target for row in members)
        first = members[0]
        by_k.setdefault((same(first), first.operation, first.d, first.types, targets), []).extend(members)
    found: dict[Hashable, list[Row]] = {}
    for members in by_k.values():
        targets = tuple(dict.fromkeys(row.target for row in members))
        products = tuple(dict.fromkeys((row.k, row.saturated) for row in members))
        first = members[0]
        found.setdefault((same(first), first.operation, first.d, products, targets), []).extend(members)
    yield from found.values()


def evidence_documents(forms: Iterable[Instruction]) -> list[Document]:
    """Return the table as JSON-ready data: an object for each operation, types, k and target, with forms."""
    return [
        {
            "family": row.family,
            "operation": row.operation,
            "d": row.d,
            "types": row.types,
            "k": row.k,
            "satfinite": row.saturated,
            "with_c": row.with_c,
            "shape": row.shape,
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
