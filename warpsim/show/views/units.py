"""Why a unit under test differs from a vector set: as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ...workbench.diagnosis.units import UnitDiagnosis
from ...workbench.vectors.sets import VectorSet

_KINDS = 3  # of transitions that are listed
_NAMES = 3  # of faults that give the same bits


@dataclass(frozen=True)
class UnitReport:
    """A diagnosis, the set, and how the unit's results were read."""

    found: UnitDiagnosis
    vectors: VectorSet
    notes: tuple[str, ...]

    @property
    def as_expected(self) -> bool:
        """Whether every known output is right."""
        return self.found.as_expected

    def lines(self) -> Iterator[str]:
        """Yield the verdict first, then what wrong outputs have in common and the first of them."""
        found, form = self.found, self.found.instruction
        yield f"{form.mnemonic} on {form.target}"
        yield from (f"  {note}" for note in self.notes)
        if found.unknown_outputs:
            yield f"  {found.unknown_outputs:,} outputs are not known"
        if found.as_expected:
            yield f"  all {found.outputs:,} known outputs are as expected, bit for bit"
            return
        yield (
            f"  {found.wrong_outputs:,} of {found.outputs:,} outputs differ, in {found.wrong_cases:,} of "
            f"{found.cases:,} cases"
        )
        yield from self._verdict()
        yield from self._remark_lines()

    def _verdict(self) -> Iterator[str]:
        found, names = self.found, [each.name for each in self.found.explanations]
        if len(names) == 1:
            yield f"  explained, every known output, wrong and right: {names[0]}"
        elif names:
            more = f"; and {len(names) - _NAMES} more" * (len(names) > _NAMES)
            yield f"  {len(names)} faults give every known output; these results do not separate them:"
            yield f"    {'; '.join(names[:_NAMES])}{more}"
        else:
            yield f"  none of {found.tried:,} faults gives every output"
        yield from (f"  gives a part: {each}" for each in found.partial)

    def _remark_lines(self) -> Iterator[str]:
        found = self.found
        yield "  off by: " + ", ".join(f"{name} ({count:,})" for name, count in found.distances)
        if found.transitions:
            kinds = found.transitions[:_KINDS]
            yield "  kinds: " + ", ".join(f"{name} ({count:,})" for name, count in kinds)
        if found.traits:
            yield "  wrong outputs have in common, in the cases examined:"
            yield from (f"    {trait}" for trait in found.traits)
        if found.first is not None:
            case, row, column, right, given = found.first
            width = found.instruction.d.bits // 4
            label = f" ({self.vectors.labels[case]})" if self.vectors.labels else ""
            codes = f"expected {right:0{width}x}, got {given:0{width}x}"
            yield f"  first: case {case}{label}, D[{row}, {column}]: {codes}"

    def document(self) -> dict[str, Any]:
        """Return the same as JSON-ready data."""
        found = self.found
        counts = ("cases", "wrong_cases", "outputs", "wrong_outputs", "unknown_outputs", "tried")
        first = dict(zip(("case", "row", "column", "expected", "got"), found.first or (), strict=False))
        return {
            "instruction": found.instruction.mnemonic,
            "target": found.instruction.target,
            "notes": list(self.notes),
            **{name: getattr(found, name) for name in counts},
            "explanations": [asdict(each) for each in found.explanations],
            "partial": [asdict(each) for each in found.partial],
            "traits": [asdict(each) for each in found.traits],
            "distances": dict(found.distances),
            "kinds": dict(found.transitions),
            "first": first or None,
        }
