"""Instructions of a trace, a recording or a vector set that differ, each with its diagnosis; for ``warpsim
diff``.

Instructions that add to each other's D are diagnosed together. Knows events and sets; diff.py prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .progress import Watch
from .sources import executed

if TYPE_CHECKING:
    from ...workbench.vectors.parted import SetInParts
    from ...workbench.vectors.recordings import Recording
    from ...workbench.vectors.sets import VectorSet
    from ...workbench.vectors.unit_logs import UnitResults

Found = tuple[str, Any]  # name of the subject, and the functions that make lines and a document

_MISPLACED = 4  # wrong cases of a unit that misplaced operands are searched in


def of_trace(source: str, most: int) -> Iterator[Found]:
    """Yield instructions whose D differs from a check's expectation; those that add to each other's D
    together.
    """
    from ...workbench.diagnosis.recordings.event_chains import predecessors
    from ..report.expectations import expectations
    from ..views.recordings import Followed

    run = executed(source, literal=True)
    wanted: dict[int, Any] = {}
    checked: dict[int, set[int]] = {}
    for expectation in expectations(run):
        d = wanted.setdefault(expectation.event, run.events[expectation.event].d.copy())
        d[:, expectation.register] = expectation.words
        checked.setdefault(expectation.event, set()).add(expectation.register)
    whole = {at: d for at, d in wanted.items() if len(checked[at]) == d.shape[1]}
    before, followed = predecessors(run.events), 0
    for number, d in sorted(wanted.items()):
        if (d == run.events[number].d).all():
            continue
        found = list(_of_event(run.events, before, number, d, whole, most))
        followed += not found
        yield from found
    if followed:
        yield "", Followed(followed)


def _of_event(
    events: Any, before: Any, number: int, d: Any, known: dict[int, Any], most: int
) -> Iterator[Found]:
    """Yield why a D differs from its expectation; nothing where this follows from an earlier difference."""
    from ...workbench.diagnosis.recordings.event_chains import chain_before, diagnose_chain, reproduces_d
    from ...workbench.diagnosis.search.tensor_search import diagnose_executions

    event = events[number]
    place = event.statement.location()
    found = chain_before(events, before, number, known)
    start = before[found.events[0]]
    if start in known and reproduces_d(events, found, d):
        return
    moved = start in known and (known[start] != events[start].d).any()
    after = f", after the D expected of event {start}" if moved else ""
    loop = diagnose_chain(events, found, d)
    if loop is not None:
        which = f"events {found.events[0]} to {number}, which add to one D{after}"
        yield f"{place.file}:{place.line}: {which}: the expected D against what was read", loop
    if loop is not None and loop.matches:
        return
    for first, inputs, computed in event.executions():
        part = d[first : first + len(computed)]
        if (part != computed).any():
            warp = f", warp {first // 32}" if len(event.d) > len(computed) else ""
            if start in known and len(found.events) == 1 and not warp:
                inputs = found.inputs
            which = f"event {number}{warp}{after}"
            title = f"{place.file}:{place.line}: {which}: the expected D against what was read"
            yield title, diagnose_executions(event.instruction, inputs, part, most=most)


def of_recording(recording: Recording, most: int) -> Iterator[Found]:
    """Yield the executions of each statement that differ from the model, together."""
    for item in recording.sets():
        yield from of_set(item.vectors, item.title, most)
        yield from misplaced(recording, item.statement.location().line, item.title)


def of_unit(
    vectors: VectorSet, source: str, operand: str, order: str, most: int, watch: Watch | None = None
) -> Iterator[Found]:
    """Yield why the D of a unit under test, in the file of ``d=FILE``, differs from a set's D.

    Where no fault of arithmetic gives all of it, also the search for misplaced operands on some wrong cases.
    """
    from ...base.errors import OperandError, TraceError
    from ...workbench.diagnosis.units import diagnose_unit
    from ...workbench.vectors.unit_logs import read_unit_results
    from ..views.units import UnitReport

    name, equals, file = operand.partition("=")
    if name != "d" or not equals or not file:
        raise OperandError(f"{operand!r}: of a vector set give the results of a unit: d=FILE")
    try:
        results = read_unit_results(Path(file), vectors, order)
    except OSError as error:
        raise TraceError(f"{file}: {error.strerror}") from None
    found = diagnose_unit(vectors, results.d, results.known, watch)
    yield f"{file} against {source}", UnitReport(found, vectors, results.notes)
    if not found.as_expected and not found.explanations:
        yield from _of_wrong_cases(vectors, results, file, most, watch)


def _of_wrong_cases(
    vectors: VectorSet, results: UnitResults, file: str, most: int, watch: Watch | None
) -> Iterator[Found]:
    """Yield the search for misplaced operands, where it explains every bit of some wrong cases."""
    import numpy as np

    from ...workbench.diagnosis import diagnose

    whole = (results.known == np.iinfo(results.known.dtype).max).all(axis=(1, 2))
    wrong = (results.d != vectors.d).any(axis=(1, 2)) & whole
    for part in vectors.inputs():
        chosen = wrong[part.cases] & (np.cumsum(wrong[part.cases]) <= _MISPLACED)
        if not chosen.any():
            continue
        arrays = {name: x[chosen] if hasattr(x, "shape") else x for name, x in part.arguments.items()}
        d = results.d[part.cases][chosen]
        found = diagnose(vectors.instruction, d=d, most=most, watch=watch, **arrays)
        if found.found:
            yield f"{file}: the first {int(chosen.sum())} wrong cases", found
        return


def misplaced(recording: Recording, line: int, title: str) -> Iterator[Found]:
    """Yield the findings of origins on the operands of a statement, where they were
    checked and do not fit.
    """
    from ..views.recordings import Misplaced

    if notes := recording.notes_of(line):
        yield f"{title}: where its operands come from", Misplaced(notes)


def against_expected(recording: Recording, form: Any, d: Any, most: int) -> Iterator[Found]:
    """Yield the events whose D differs from the expected: their operands, with the expected C of the previous
    event.
    """
    from ...workbench.diagnosis.recordings.event_chains import chain_before, predecessors, reproduces_d
    from ...workbench.diagnosis.search.tensor_search import diagnose_executions
    from ..views.recordings import Followed

    each = _tiles(d, len(recording.events))
    before, known, followed = predecessors(recording.events), dict(enumerate(each)), 0
    for number, (event, wanted) in enumerate(zip(recording.events, each, strict=True)):
        if (wanted == event.d).all():
            continue
        found = chain_before(recording.events, before, number, known)
        if before[number] is not None and reproduces_d(recording.events, found, wanted):
            followed += 1
            continue
        place = event.statement.location()
        title = f"{place.file}:{place.line}: {event.place}: the expected D against what was read"
        yield title, diagnose_executions(form, found.inputs, wanted, most=most)
    if followed:
        yield "", Followed(followed)
    for line in dict.fromkeys(event.line for event in recording.events):
        yield from misplaced(recording, line, f"{recording.file}:{line}: {form.mnemonic}")


def _tiles(d: Any, events: int) -> Any:
    """Return ``(events, lanes, registers)``."""
    from ...base.errors import OperandError

    found = d if d.ndim == 3 else d[None]
    if len(found) != events:
        raise OperandError(f"D has {len(found)} tiles, but {events} events are selected: expected one each")
    return found


class _WrongCases:
    """Cases of equal immediates: how many there are and how many differ, and the first that do."""

    def __init__(self, most: int) -> None:
        self.most, self.cases, self.wrong, self.kept = most, 0, 0, 0
        self._parts = list[dict[str, Any]]()

    def add(self, arrays: dict[str, Any], differ: Any) -> None:
        """Take cases, ``differ`` a mask of those that differ."""
        self.cases += len(differ)
        self.wrong += int(differ.sum())
        at = differ.nonzero()[0][: self.most - self.kept]
        if len(at):
            self.kept += len(at)
            self._parts.append({name: array[at] for name, array in arrays.items()})

    def arrays(self) -> dict[str, Any]:
        """Return the arrays of the cases that are kept."""
        import numpy as np

        return {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}

    def __str__(self) -> str:
        rest = f"; explained are the first {self.kept}" if self.kept < self.wrong else ""
        return f"{self.wrong} of {self.cases} cases differ{rest}"


def of_set(vectors: SetInParts, source: str, most: int) -> Iterator[Found]:
    """Yield the cases of equal immediates that differ from the model, together; the set is read in parts."""
    from ...sums.execution.inputs import inputs_by_name
    from ...workbench.diagnosis.search.tensor_search import diagnose_executions
    from ...workbench.vectors.sets import expected, part_cases

    groups, at_most = dict[Any, _WrongCases](), part_cases(vectors.specs())
    for piece in vectors.parts():
        differ = (expected(piece, undefined="fallback") != piece.d).any(axis=(1, 2))
        for part in piece.inputs():
            arrays = {name: x for name, x in part.arguments.items() if hasattr(x, "shape")}
            immediates = tuple((name, x) for name, x in part.arguments.items() if name not in arrays)
            group = groups.setdefault(immediates, _WrongCases(at_most))
            group.add(arrays | {"d": piece.d[part.cases]}, differ[part.cases])
    for immediates, group in groups.items():
        if group.wrong:
            arrays = group.arrays()
            d, inputs = arrays.pop("d"), inputs_by_name(arrays | dict(immediates))
            yield f"{source}: {group}", diagnose_executions(vectors.instruction, inputs, d, most=most)
