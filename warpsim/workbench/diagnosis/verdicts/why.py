"""Why a launch is wrong: what is asked, in which order, and the verdict.

First the launch itself: an error, a race or a deadlock is the cause, under the schedule that says most of it.
Then outputs are compared; where some are wrong, other schedules, the formula and the origins of all operands
are asked. What has no evidence is not claimed.
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
from ....observe.algebra.equivalence import Equivalence, tolerance_of
from ....observe.algebra.locating.located_record import Located
from ....observe.checks.findings import LaunchFinding
from ....programs.launch.array_agreement import Agreement, Mask, agreement
from ....programs.launch.launching import LaunchableKernel
from ....programs.launch.located_launches import answer_of
from ....programs.launch.reference_runs import Reference
from ..origins.element_origins import Origins
from .counterfactuals.argument_causes import exchanged_causes, unstored_elements
from .counterfactuals.opcode_variants import opcode_variants, other_comparisons
from .counterfactuals.reverted_mistakes import reverted_mistakes
from .descriptor_causes import descriptor_causes, suspected
from .formula_causes import Answered, answered, computes, in_any_order, of_answer, wrong_if_waited
from .launch_causes import (
    BY_TAGS,
    Cause,
    broken_rules,
    elsewhere,
    order_cause,
    origin_causes,
    schedule_cause,
    traced,
    unwritten_causes,
)
from .output_errors import OutputError, output_error, rounding_only
from .repeated_launch import Attempt, Budget, RepeatedLaunch
from .tensor_causes import tensor_causes
from .tried_repairs import Trial

Expected = Mapping[int | str, npt.ArrayLike]
_SYMPTOMS = 4  # that are listed
_BOUNDS = ("setp", "set")  # opcodes that guard stores
_ALSO = 4  # statements on the way of the data that are listed
_LOCATED = f"{BY_TAGS}; located: the fix was not tested"
_ARRANGED = ("registers", "transposed", "ldmatrix row", "swizzle", "stride")  # of one operand alone
_BY_ADDRESS = ("race", "in flight", "uninitialised", "out of bounds", "proxy fence")
_NO_FORMULA = (
    "the expected values match no tried product, attention or function of the arguments: give the "
    "formula as --reference FILE.py:FUNCTION (reference=function)"
)
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
    formula: str = ""  # of the expected values, where it was found
    equivalence: Equivalence | None = None  # with a reference
    located: Located | None = None  # where the kernel leaves it

    @property
    def compared(self) -> int:
        """How many outputs were compared."""
        return len(self.agreements)

    @property
    def outputs_as_expected(self) -> bool:
        """Whether outputs were compared, and all are as expected."""
        close = self.equivalence is not None and self.equivalence.close
        return bool(self.agreements or close) and not self.errors

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
        """The kind of the cause: of a finding, of what is wrong with an operand, "schedule"."""
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
            yield f"{'formula' if self.causes else 'verdict'}: {self.equivalence}"
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
        if self.formula:
            yield f"expected values: {self.formula}"
        for cause in self.causes[1 : 1 + _SYMPTOMS]:
            place = "" if cause.location is None else f"{cause.location}: "
            yield f"also: {place}{cause.message}"
        if len(self.causes) > 1 + _SYMPTOMS:
            yield f"also: {len(self.causes) - 1 - _SYMPTOMS} more"
        yield from (f"note: {note}" for note in self.notes)

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
            "formula": self.formula,
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
    return _of_launch(launch, wanted, tolerance)


def _of_reference(
    launch: RepeatedLaunch, expected: Expected, tolerance: float, reference: str | Reference
) -> Verdict:
    """Return the verdict of a launch whose formula is known: its answer, and what values show besides."""
    wanted = {_argument(launch, key): value for key, value in expected.items()}
    try:
        equivalence, place = answer_of(launch, reference, tolerance or None)
    except WarpsimError as error:
        if error.location is None:
            raise
        return _of_launch(launch, wanted, tolerance)
    most = max((tolerance_of(output.kind) for output in equivalence.outputs), default=0.0)
    values = {
        output.argument: value for output in equivalence.outputs if (value := output.values()) is not None
    }
    far = {output.argument: output.far for output in equivalence.outputs if output.argument not in wanted}
    wanted = {**({} if equivalence.close else values), **wanted}
    algebra = of_answer(reference, equivalence, place)
    found = _of_launch(launch, wanted, tolerance or min(most, 0.5), algebra, far)
    return replace(found, equivalence=equivalence, located=place)


def _of_launch(
    launch: RepeatedLaunch,
    wanted: Mapping[int, npt.ArrayLike],
    tolerance: float,
    algebra: Answered | None = None,
    far: Mapping[int, Mask] = {},
) -> Verdict:
    """Return the verdict of a launch, by the ladder of evidence; ``far`` are elements of outputs that a
    reference calls wrong.
    """
    first = launch.attempt(checks="warn")
    ordered = order_cause(launch, first)
    if first.error is not None:
        trial = Trial(launch=launch, expected=wanted, tolerance=tolerance)
        described = _of_error(trial, first.error) if wanted else []
        causes = [*described, *([ordered] if ordered else [])]
        return Verdict(causes=tuple(causes), errors=(), notes=tuple(launch.budget.notes()))
    compared = [
        _error(launch, first, index, value, tolerance, far.get(index)) for index, value in wanted.items()
    ]
    errors = tuple(error for error in compared if error is not None)
    search = _Search(launch, wanted, tolerance, errors, algebra)
    causes = search.causes(first, ordered)
    broken = [] if errors or causes else [*broken_rules(first)]
    harmless = () if ordered is None or errors or not wanted else (_AS_EXPECTED,)
    warned = _warnings(first, causes or broken, broken=bool(broken))
    notes = (*harmless, *search.notes(found=bool(causes)), *warned, *launch.budget.notes())
    return Verdict(
        causes=tuple(causes or broken),
        errors=errors,
        agreements=_agreements(launch, first, wanted, tolerance),
        notes=notes,
        formula=str(search.algebra.formulas.__name__) if search.algebra and search.algebra.formulas else "",
    )


def _error(
    launch: RepeatedLaunch,
    first: Attempt,
    index: int,
    value: npt.ArrayLike,
    tolerance: float,
    far: Mask | None,
) -> OutputError | None:
    """Return what is wrong with an output; of a reference, the elements that its answer calls far."""
    found = output_error(index, launch.name(index), first.arrays[index], value, tolerance)
    if found is None or far is None or far.shape != found.wrong.shape:
        return found
    return replace(found, wrong=far) if far.any() else None


def _agreements(
    launch: RepeatedLaunch, first: Attempt, wanted: Mapping[int, npt.ArrayLike], tolerance: float
) -> dict[str, Agreement]:
    return {launch.name(at): agreement(first.arrays[at], value, tolerance) for at, value in wanted.items()}


def _of_error(trial: Trial, error: WarpsimError) -> list[Cause]:
    return (
        _described(trial, error)
        or exchanged_causes(trial)
        or (reverted_mistakes(trial) if isinstance(error, UndefinedBehavior) else [])
    )


def _described(trial: Trial, error: WarpsimError) -> list[Cause]:
    text = "" if error.location is None else error.location.text
    if "tcgen05.mma" in text:
        return tensor_causes(trial)
    return descriptor_causes(trial) if "wgmma" in text else []


class _Search:
    """The search for causes of wrong outputs: what is proven by algebra, then what is tried."""

    def __init__(
        self,
        launch: RepeatedLaunch,
        wanted: Mapping[int, npt.ArrayLike],
        tolerance: float,
        errors: Sequence[OutputError],
        algebra: Answered | None,
    ) -> None:
        self.launch, self.errors, self.algebra = launch, errors, algebra
        self.trial = Trial(launch=launch, expected=wanted, tolerance=tolerance)
        self.given = wanted, tolerance
        self.origins: Origins | None = None

    def causes(self, first: Attempt, ordered: Cause | None) -> list[Cause]:
        """Return the causes; ``ordered`` is a finding under the launch's own order."""
        known = self.algebra
        if known is None and self.errors and (swapped := exchanged_causes(self.trial)):
            return swapped if ordered is None else [*swapped, ordered]
        if known is None or not known.causes:
            ordered = ordered or schedule_cause(self.launch, first, *self.given)
        if not self.errors and (known is None or not (*known.causes, *known.hints)):
            return [] if ordered is None else [ordered]
        if ordered is not None and ordered.kind not in _BY_ADDRESS:
            return [ordered, *(() if known is None else known.causes)]
        if known is None:
            self.algebra = answered(self.launch, *self.given)
        if ordered is not None:
            return self._beside(ordered)
        hints = () if self.algebra is None else self.algebra.hints
        compared = self._compared()
        causes = [*compared, *self._proven()] or self._tried() or [*unwritten_causes(first)]
        explained = {each.operand for each in causes if each.operand}
        return [*causes, *(each for each in hints if each.operand not in explained)]

    def _beside(self, ordered: Cause) -> list[Cause]:
        """Return a finding of order, or what makes it: an operand that is wrong in any order."""
        if self.algebra is None or not self.algebra.causes:
            return [ordered]
        if ordered.kind == "in flight":
            sure = wrong_if_waited(self.launch, self.algebra.reference)
        else:
            sure = in_any_order(self.launch, self.algebra.reference)
        if not sure:
            return [ordered, *(() if self.algebra.formulas is not None else self.algebra.causes)]
        first, *others = self._proven()
        consequence = f"{ordered.location}: {ordered.message}"
        return [replace(first, symptoms=(*first.symptoms, consequence)), *others]

    def _proven(self) -> list[Cause]:
        """Return what algebra proves, in the words of descriptors and origins where they have any."""
        if self.algebra is None or not self.algebra.causes:
            return []
        own, place = self.algebra.causes[0], self.algebra.located
        self._trace()
        if self.origins is None:
            return [*self.algebra.causes]
        trial, roles = self._trial(), sorted({*suspected(self.origins), *own.operand})
        fields = tensor_causes(trial, self.origins) or descriptor_causes(trial, roles)
        if fields or place is None:
            return [*fields, *self.algebra.causes]
        arranged = [*origin_causes(self.launch, self.origins, own.evidence)]
        if not place.operand and place.kind != "moved":
            beside = arranged if place.kind.endswith("term") else []
            return [own, *(replace(each, evidence=_LOCATED) for each in beside if each.kind in _ARRANGED)]
        mine = [each for each in arranged if each.operand == place.operand or not place.operand]
        mine = [each for each in mine if each.kind != "unused" or place.kind == "moved"]
        mine = [replace(each, symptoms=(own.message,)) for each in mine]
        besides = [replace(each, evidence=_LOCATED) for each in arranged if each.kind in _ARRANGED]
        return [*(mine or [own]), *(each for each in besides if each.operand != place.operand and mine)]

    def _compared(self) -> list[Cause]:
        """Return a comparison, of a mask or the end of a loop, that decides which terms a sum has."""
        place, known = None if self.algebra is None else self.algebra.located, self.algebra
        if known is None or place is None or not self.errors:
            return []
        of_terms = place.kind.endswith("term") or place.operation == "+"
        if place.proven and not of_terms and place.kind != "never stored":
            return []
        return other_comparisons(self._trial(), lambda launch: computes(launch, known.reference))

    def _tried(self) -> list[Cause]:
        trial = self._trial()
        self._trace()
        if self.origins is None:
            return self._unstored_elements() or opcode_variants(trial, self.errors) or self._rounded()
        return (
            self._unstored_elements()
            or tensor_causes(trial, self.origins)
            or descriptor_causes(trial, suspected(self.origins))
            or ([] if self._is_located() else reverted_mistakes(trial) or opcode_variants(trial, self.errors))
            or self._rounded()
            or [*origin_causes(self.launch, self.origins, _LOCATED)]
        )

    def _trial(self) -> Trial:
        formulas = None if self.algebra is None else self.algebra.formulas
        return self.trial if formulas is None else self.trial.with_formulas(formulas)

    def _trace(self) -> None:
        equivalence = None if self.algebra is None else self.algebra.equivalence
        outputs = [] if equivalence is None else [each.argument for each in equivalence.outputs]
        self.origins = traced(self.launch, [*(each.argument for each in self.errors), *outputs])

    def _is_located(self) -> bool:
        """Return whether findings say more than that elements are in no order: packed fragments are in
        none.
        """
        return self.origins is not None and any(each.kind != "scattered" for each in self.origins.findings)

    def _unstored_elements(self) -> list[Cause]:
        """Return that elements are never stored, and before it the comparison that leaves them out."""
        found = unstored_elements(self.trial, self.errors)
        return [*opcode_variants(self.trial, self.errors, _BOUNDS), *found] if found else []

    def _rounded(self) -> list[Cause]:
        """Return that outputs differ by rounding alone, where the launch computes the expected formulas."""
        if self.algebra is None or not self.algebra.equal:
            return []
        return [
            Cause(
                kind="rounding",
                message=text,
                location=None,
                evidence=f"proven: {self.algebra.nearest}",
                fix="compare with a tolerance",
            )
            for error in self.errors
            if (text := rounding_only(error))
        ]

    def notes(self, *, found: bool) -> Iterator[str]:
        """Yield coverage of arrays, and where nothing was found what was excluded and what to do next."""
        if self.origins is not None:
            yield from self.origins.unexplained
        if not self.errors or found:
            return
        if self.algebra is None:
            yield _NO_FORMULA
        elif self.algebra.formulas is not None and self.algebra.nearest:
            yield f"nearest: {self.algebra.nearest}"


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
    """Return the number of an argument. Raises OperandError for what is not an array of the launch."""
    names = {launch.name(index): index for index in range(len(launch.args))}
    index = names.get(key, -1) if isinstance(key, str) else key
    if index not in launch.arrays:
        known = ", ".join(f"{at} {launch.name(at)}" for at in launch.arrays)
        raise OperandError(f"expected[{key!r}]: no array argument; they are {known or 'none'}")
    first = np.asarray(launch.arrays[index])
    assert first.ndim
    return index
