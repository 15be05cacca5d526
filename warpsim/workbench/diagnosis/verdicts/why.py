"""Why a launch is wrong: what is asked, in which order, and the verdict.

First the launch itself: an error, a race or a deadlock is the cause, under the schedule that says most of it.
Then outputs are compared; where some are wrong, other schedules, the origins of all operands and the whole
product are asked. What has no evidence is not claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import Location, OperandError, SourceLine, UndefinedBehavior, WarpsimError
from ....isa.displayed import Displayed
from ....isa.families import OPCODES
from ....observe.algebra.equivalence import Equivalence, tolerance_of
from ....observe.algebra.locating.located_record import Located
from ....observe.checks.findings import LaunchFinding
from ....programs.launch.array_agreement import Agreement, agreement
from ....programs.launch.launching import LaunchableKernel
from ....programs.launch.located_launches import Answer, answer_of
from ....programs.launch.reference_runs import Reference
from ..origins.element_origins import Origins
from .budget import Budget
from .computed.computed_causes import computed_causes
from .descriptor_causes import descriptor_causes, suspected
from .epilogue_causes import epilogue_causes
from .launch_causes import (
    Cause,
    broken_rules,
    elsewhere,
    order_cause,
    product_causes,
    schedule_cause,
    traced,
    unused_causes,
    unwritten_causes,
)
from .missing_steps import missing_steps
from .output_errors import OutputError, output_error
from .output_relations import relations
from .repeated_launch import Attempt, RepeatedLaunch
from .retried.argument_causes import exchanged_causes, transposed_causes
from .retried.restated_causes import restated_causes
from .retried.uncovered_outputs import uncovered_causes
from .retried.undone_mistakes import undone_causes
from .stored_places import measured, stored_causes
from .tensor_causes import tensor_causes
from .tried_causes import Trial, located_causes, tried_causes
from .type_causes import type_causes

Expected = Mapping[int | str, npt.ArrayLike]
_SYMPTOMS = 4  # that are listed
_BOUNDS = ("setp", "set")  # opcodes that guard stores
_ALSO = 4  # statements on the way of the data that are listed
_COPIED = "the operand comes this way"
_AS_EXPECTED = (
    "under this schedule the outputs are as expected all the same: another order may show it, unless what is "
    "read is never used, as in a load ahead in the last step"
)


@dataclass(frozen=True, kw_only=True)
class Verdict(Displayed):
    """Why a launch is wrong: the cause with the best evidence, the others, and what is wrong with outputs.

    ``causes`` is empty where nothing was found; where outputs are as expected all the same, they are what PTX
    leaves undefined. ``agreements`` are how outputs compare, by name. str() is what ``launch --why`` prints.
    """

    causes: tuple[Cause, ...]
    errors: tuple[OutputError, ...]
    agreements: Mapping[str, Agreement] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    equivalence: Equivalence | None = None  # with a reference
    located: Located | None = None  # where the kernel leaves it

    @property
    def compared(self) -> int:
        """How many outputs were compared."""
        return len(self.agreements)

    @property
    def outputs_as_expected(self) -> bool:
        """Whether outputs were compared, and all are as expected."""
        return bool(self.agreements) and not self.errors

    @property
    def as_expected(self) -> bool:
        """Whether nothing is wrong: no error, nothing that PTX leaves undefined, no output that differs, and
        no formula that is not the reference's."""
        equal = self.equivalence is None or (self.equivalence.answer == "equal" and self.equivalence.close)
        return equal and not self.causes and not self.errors

    @property
    def cause(self) -> str:
        """What is wrong, in a sentence; empty where it is not known."""
        return self.causes[0].message if self.causes else ""

    @property
    def kind(self) -> str:
        """The kind of the cause: of a finding, of what is wrong with an operand, "schedule", "product"."""
        return self.causes[0].kind if self.causes else ""

    @property
    def location(self) -> Location | None:
        """The place of the statement at fault in the PTX."""
        return self.causes[0].location if self.causes else None

    @property
    def source(self) -> SourceLine | None:
        """The line at fault of the CUDA, C++ or Python source, where the PTX names it."""
        return None if self.location is None else self.location.source

    @property
    def operand(self) -> str:
        """The operand of the matrix instruction that is wrong: a, b, c, e, scale_a or scale_b; else empty."""
        return self.causes[0].operand if self.causes else ""

    @property
    def fix(self) -> str:
        """What to do; empty where nothing can be said."""
        return self.causes[0].fix if self.causes else ""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<{next(self.lines())}>"

    def lines(self) -> Iterator[str]:
        """Yield the verdict first, then what the outputs show, then what else was found."""
        if self.equivalence is not None:
            yield from self._formula_lines(self.equivalence)
        elif self.as_expected:
            outputs = "1 output is" if self.compared == 1 else f"{self.compared} outputs are"
            yield "verdict: nothing is wrong" + f"; {outputs} as expected" * bool(self.compared)
        elif not self.causes:
            yield "verdict: outputs are wrong; no cause was found"
        for cause in self.causes[:1]:
            yield from _cause_lines(cause, "outputs as expected, but " * self.outputs_as_expected)
        yield from (f"output {error}" for error in self.errors)
        right = {name: found for name, found in self.agreements.items() if not found.different}
        yield from (f"output {name}: {found}" for name, found in right.items() if found.within)
        for cause in self.causes[1 : 1 + _SYMPTOMS]:
            place = "" if cause.location is None else f"{cause.location}: "
            yield f"also: {place}{cause.message}"
        if len(self.causes) > 1 + _SYMPTOMS:
            yield f"also: {len(self.causes) - 1 - _SYMPTOMS} more"
        yield from (f"note: {note}" for note in self.notes)

    def _formula_lines(self, equivalence: Equivalence) -> Iterator[str]:
        """Yield the answer of a reference: the verdict, or beside a cause the formula."""
        yield f"{'formula' if self.causes else 'verdict'}: {equivalence}"

    def document(self) -> dict[str, Any]:
        """Return the same as JSON-ready data."""
        formula = {} if self.equivalence is None else {"equivalence": self.equivalence.document()}
        return {
            **formula,
            "as_expected": self.as_expected,
            "outputs_as_expected": self.outputs_as_expected,
            "compared": [{"name": name, **found.document()} for name, found in self.agreements.items()],
            "causes": [_cause_document(cause) for cause in self.causes],
            "outputs": [_error_document(error) for error in self.errors],
            "notes": list(self.notes),
        }


def _cause_lines(cause: Cause, outputs: str) -> Iterator[str]:
    place = "" if cause.location is None else f"{cause.location}: "
    yield f"verdict: {outputs}{place}{cause.message}"
    if cause.location is not None:
        yield cause.location.excerpt()
    yield f"  evidence: {cause.evidence}"
    if cause.fix:
        yield f"  fix: {cause.fix}"
    for what, where in cause.also[:_ALSO]:
        yield f"  {where}: {what}"
        yield where.excerpt()
    for symptom in cause.symptoms[:_SYMPTOMS]:
        yield f"  with it: {symptom}"


def _cause_document(cause: Cause) -> dict[str, Any]:
    place = cause.location
    source = None if place is None or place.source is None else str(place.source)
    return {
        "kind": cause.kind,
        "message": cause.message,
        "location": None if place is None else str(place),
        "source": source,
        "operand": cause.operand,
        "evidence": cause.evidence,
        "fix": cause.fix,
        "also": [{"what": what, "location": str(where)} for what, where in cause.also],
        "symptoms": list(cause.symptoms),
    }


def _error_document(error: OutputError) -> dict[str, Any]:
    return {
        "argument": error.argument,
        "name": error.name,
        "different": error.count,
        "of": int(error.wrong.size),
        "where": error.pattern,
        "first": list(error.first),
    }


# --- the search ------------------------------------------------------------------------------------


_SIZES: Mapping[str, Any] = {"shared_bytes": 0, "cluster": None, "cooperative": False, "resident": 1}
_MODES: Mapping[str, Any] = {"schedule": "program", "most_statements": None, "progress": None}


@in_default_environment
def why(
    kernel: LaunchableKernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    expected: Expected | None = None,
    tolerance: float = 0.0,
    reference: str | Reference | None = None,
    **launch: Any,
) -> Verdict:
    """Return why a launch is wrong; nothing is written back to ``args``.

    ``expected`` has the right content of arrays by argument, a number or the name of a parameter; bits are
    compared, or values within ``tolerance``, relative. ``reference`` is a NumPy function of the kernel's
    arguments, "FILE.py:FUNCTION" or the name of a built-in reference: its formula and its values
    are compared. ``launch`` are ``shared_bytes``, ``cluster``, ``cooperative``,
    ``resident``, ``schedule``, ``most_statements`` and ``progress`` as a launch has them.
    Further executions run ``budget.STATEMENTS`` statements together; a note names searches that they cut.
    Variables of the module keep what launches leave in them; device buffers are put back. Raises OperandError
    for arguments.
    """
    for name in launch:
        if name not in (*_SIZES, *_MODES):
            raise OperandError(f"{name}: expected one of {', '.join((*_SIZES, *_MODES))}")
    sizes = {"grid": grid, "block": block} | {name: launch.get(name, value) for name, value in _SIZES.items()}
    options = {name: launch.get(name, value) for name, value in _MODES.items()}
    repeated = RepeatedLaunch(kernel=kernel, sizes=sizes, args=args, options=options, before={})
    return verdict_of(repeated, expected or {}, tolerance, reference)


@in_default_environment
def verdict_of(
    launch: RepeatedLaunch,
    expected: Expected,
    tolerance: float,
    reference: str | Reference | None = None,
) -> Verdict:
    """Return why a launch that can be repeated is wrong. Raises OperandError."""
    launch = replace(launch, budget=Budget())
    if reference is not None:
        return _of_reference(launch, expected, tolerance, reference)
    wanted = {_argument(launch, key): value for key, value in expected.items()}
    if not 0 <= tolerance < 1:
        raise OperandError(f"tolerance={tolerance}: expected a number from 0 to below 1")
    first = launch.attempt(checks="warn")
    ordered = cause = order_cause(launch, first)
    if first.error is not None:
        trial = Trial(launch=launch, expected=wanted, tolerance=tolerance)
        described = _of_error(trial, first.error) if wanted else []
        causes = [*described, *([cause] if cause else [])]
        return Verdict(causes=tuple(causes), errors=(), notes=tuple(launch.budget.notes()))
    found = [
        output_error(index, launch.name(index), first.arrays[index], value, tolerance)
        for index, value in wanted.items()
    ]
    errors = tuple(error for error in found if error is not None)
    causes = [cause] if cause is not None else []
    if errors:
        causes = [*_exchanged(launch, wanted, tolerance), *causes]
    if not causes:
        cause = schedule_cause(launch, first, wanted, tolerance)
        causes = [cause] if cause is not None else []
    if errors and not causes:
        causes = _of_wrong_outputs(launch, errors, wanted, tolerance) or [*unwritten_causes(first)]
    broken = [] if errors or causes else [*broken_rules(first)]
    causes = causes or broken
    open_ends = (*(_untraced(launch) if errors and not causes else ()), *launch.budget.notes())
    harmless = () if ordered is None or errors or not wanted else (_AS_EXPECTED,)
    notes = (*harmless, *_seen(launch, errors), *_warnings(first, causes, broken=bool(broken)), *open_ends)
    agreements = _agreements(launch, first, wanted, tolerance)
    return Verdict(causes=tuple(causes), errors=errors, agreements=agreements, notes=notes)


def _of_reference(
    launch: RepeatedLaunch, expected: Expected, tolerance: float, reference: str | Reference
) -> Verdict:
    """Return the verdict of a launch whose formula is known: its answer, and what values show besides.

    Where the formulas are others, the statement that leaves the reference is the cause, with the proof;
    findings of the checks come before it. Causes of wrong values are searched where nothing is proven.
    """
    try:
        answer = answer_of(launch, reference, tolerance or None)
    except WarpsimError as error:
        if error.location is None:
            raise
        return verdict_of(launch, expected, tolerance)
    equivalence, place = answer
    most = max((tolerance_of(output.kind) for output in equivalence.outputs), default=0.0)
    tolerance = tolerance or min(most, 0.5)
    wanted = dict(expected) | ({} if equivalence.close else _values(answer))
    if place is None:
        found = verdict_of(launch, wanted, tolerance)
    else:
        found = _of_place(launch, wanted, tolerance, place)
    return replace(found, equivalence=equivalence, located=place)


def _of_place(launch: RepeatedLaunch, expected: Expected, tolerance: float, place: Located) -> Verdict:
    """Return the verdict of a launch that leaves its reference at a place: findings of the checks, then the
    place where it is sure, then what the search finds; what is suspected alone comes last."""
    found = _checked(launch, expected, tolerance)
    own = Cause(
        kind=place.kind,
        message=place.message,
        location=place.loaded or place.location,
        evidence=place.evidence,
        fix=place.fix,
        also=tuple((_COPIED, copy) for copy in place.copies if copy != place.loaded),
    )
    if place.proven or found.causes:
        return replace(found, causes=(*found.causes, own))
    found = verdict_of(launch, expected, tolerance)
    order = (*found.causes, own) if place.certainty == "suspected" else (own, *found.causes)
    return replace(found, causes=order)


def _values(answer: Answer) -> dict[int | str, npt.ArrayLike]:
    """Return the values of a reference, by argument."""
    outputs = answer.equivalence.outputs
    return {output.argument: values for output in outputs if (values := output.values()) is not None}


def _checked(launch: RepeatedLaunch, expected: Expected, tolerance: float) -> Verdict:
    """Return what the checks find, and what is wrong with outputs, without a search for causes."""
    first = launch.attempt(checks="warn")
    cause = order_cause(launch, first)
    wanted = {_argument(launch, key): value for key, value in expected.items()}
    found = [
        output_error(index, launch.name(index), first.arrays[index], value, tolerance)
        for index, value in wanted.items()
    ]
    errors = tuple(error for error in found if error is not None)
    agreements = _agreements(launch, first, wanted, tolerance)
    causes, notes = () if cause is None else (cause,), tuple(launch.budget.notes())
    return Verdict(causes=causes, errors=errors, agreements=agreements, notes=notes)


def _agreements(
    launch: RepeatedLaunch, first: Attempt, wanted: Mapping[int, npt.ArrayLike], tolerance: float
) -> dict[str, Agreement]:
    """Return how outputs agree with what is expected, by the name of the argument."""
    return {launch.name(at): agreement(first.arrays[at], value, tolerance) for at, value in wanted.items()}


def _of_error(trial: Trial, error: WarpsimError) -> list[Cause]:
    """Return what is wrong where a launch ends with an error, and would be right without it."""
    return (
        _described(trial, error)
        or _exchanged(trial.launch, trial.expected, trial.tolerance)
        or (undone_causes(trial) if isinstance(error, UndefinedBehavior) else [])
    )


def _described(trial: Trial, error: WarpsimError) -> list[Cause]:
    """Return which descriptor is wrong where an error is of a tile behind a descriptor."""
    text = "" if error.location is None else error.location.text
    if "tcgen05.mma" in text:
        return tensor_causes(trial)
    return descriptor_causes(trial) if "wgmma" in text else []


def _exchanged(launch: RepeatedLaunch, wanted: Mapping[int, npt.ArrayLike], tolerance: float) -> list[Cause]:
    """Return arguments, or axes of the grid, that are exchanged."""
    return exchanged_causes(Trial(launch=launch, expected=wanted, tolerance=tolerance))


def _of_wrong_outputs(
    launch: RepeatedLaunch,
    errors: Sequence[OutputError],
    wanted: Mapping[int, npt.ArrayLike],
    tolerance: float,
) -> list[Cause]:
    """Return causes of outputs that are wrong though no check found anything under any schedule."""
    origins = traced(launch, [error.argument for error in errors])
    trial = Trial(launch=launch, expected=wanted, tolerance=tolerance)
    if origins is None:
        return _uncovered(trial, errors) or restated_causes(trial, errors)
    retyped, of_other_types = type_causes(trial, origins)
    return (
        [*unused_causes(origins)]
        or retyped
        or [*missing_steps(trial, origins, errors)]
        or _uncovered(trial, errors)
        or tensor_causes(trial, origins)
        or descriptor_causes(trial, suspected(origins))
        or tried_causes(trial, origins)
        or transposed_causes(trial, origins)
        or computed_causes(trial, origins)
        or _stored(trial, origins, errors)
        or ([] if _is_located(origins) else undone_causes(trial) or restated_causes(trial, errors))
        or _located(trial, origins, of_other_types, errors)
    )


def _is_located(origins: Origins) -> bool:
    """Return whether findings say more than that elements are in no order: packed fragments are in none."""
    return any(finding.kind != "scattered" for finding in origins.findings)


def _uncovered(trial: Trial, errors: Sequence[OutputError]) -> list[Cause]:
    """Return that elements are never stored, and before it the comparison that leaves them out, if any."""
    found = uncovered_causes(trial, errors)
    return [*restated_causes(trial, errors, _BOUNDS), *found] if found else []


def _stored(trial: Trial, origins: Origins, errors: Sequence[OutputError]) -> list[Cause]:
    """Return what is wrong between the product and its output: its place, its factor or what is added."""
    seen = measured(trial, origins, errors)
    return [] if seen is None else stored_causes(trial, origins, seen) or epilogue_causes(trial, seen)


def _located(
    trial: Trial, origins: Origins, of_other_types: list[Cause], errors: Sequence[OutputError]
) -> list[Cause]:
    """Return what was located; that elements are unused only where no product says more."""
    located = located_causes(trial, origins)
    if any(cause.kind != "unused" for cause in located):
        return located
    return of_other_types or [*product_causes(trial.launch, origins, errors)] or located


def _untraced(launch: RepeatedLaunch) -> Iterator[str]:
    """Yield why the operands of matrix instructions say nothing, where they do not."""
    opcodes = {record.statement.opcode for record in launch.kernel._entry.code}
    if not opcodes & (OPCODES | {"wmma", "tcgen05"}):
        yield "which operand is wrong was not looked for: there is no matrix instruction"


def _seen(launch: RepeatedLaunch, errors: Sequence[OutputError]) -> Iterator[str]:
    """Yield what the wrong elements of outputs are, by value."""
    for error in errors:
        yield from relations(error, launch.initial(error.argument))


def _warnings(first: Attempt, causes: Sequence[Cause], *, broken: bool) -> tuple[str, ...]:
    """Return warnings of checks that are not causes, which may have to do with wrong outputs; ``broken`` says
    that the causes are all rules of PTX that the launch has broken. Where there is no cause, return notes
    of unwritten bytes, too, on which results depend as far as is known.

    A warning of several statements in the same words stands once, at the first.
    """
    known = {cause.message for cause in causes}
    hazards = first.report.hazards if first.report is not None else ()
    found: dict[str, list[LaunchFinding]] = {}
    for item in hazards:
        open_note = not causes and item.influence == "none seen"
        warned = item.severity == "warning" and item.message not in known and (item.legal or not broken)
        if warned or open_note:
            found.setdefault(item.message, []).append(item)
    return tuple(f"{items[0].location}: {text}{elsewhere(items)}" for text, items in found.items())


def _argument(launch: RepeatedLaunch, key: int | str) -> int:
    """Return the number of an argument. Raises OperandError for what is no array of the launch."""
    names = {launch.name(index): index for index in range(len(launch.args))}
    index = names.get(key, -1) if isinstance(key, str) else key
    if index not in launch.arrays:
        known = ", ".join(f"{at} {launch.name(at)}" for at in launch.arrays)
        raise OperandError(f"expected[{key!r}]: no array argument; they are {known or 'none'}")
    first = np.asarray(launch.arrays[index])
    assert first.ndim
    return index
