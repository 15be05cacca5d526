"""Causes by algebra: the formula of expected values is found, and the statement that leaves it is located.

What is proven is a cause; the findings of origins on the same operand say how it is arranged. Where a launch
computes the formula, its values differ by rounding, range or an approximation alone. Knows references and
origins; does not try repairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Location, WarpsimError
from ....isa.formats import FORMATS
from ....observe.algebra.equivalence import Equivalence
from ....observe.algebra.keys.finite_fields import equal
from ....observe.algebra.locating.located_record import Located
from ....programs.launch.launching import load_text
from ....programs.launch.located_launches import answer_of
from ....programs.launch.reference_runs import Reference, equivalence_of
from ....ptx.decode import decode
from ..formulas.found_formulas import FoundFormula, found_formula
from .launch_causes import Cause
from .repeated_launch import RepeatedLaunch

COPIED = "the operand comes this way"
_ORDERS = ("earliest", "latest")


@dataclass(kw_only=True)
class Formulas:
    """The formulas of expected outputs, as one reference."""

    found: Sequence[FoundFormula]
    __name__: str = ""

    def __post_init__(self) -> None:
        self.__name__ = " and ".join(map(str, self.found))

    def __call__(self, *given: Any) -> dict[int, Any]:
        """Return outputs by argument."""
        return {each.output: each(*given) for each in self.found}

    def values(self, args: Sequence[Any]) -> dict[int, npt.NDArray[Any]]:
        """Return expected outputs of other arguments."""
        return {each.output: each.values(args) for each in self.found}

    @property
    def other_kind(self) -> tuple[int, str] | None:
        """An argument that the kernel reads as another type, and the type that a formula has."""
        return next((each.other_kind for each in self.found if each.other_kind is not None), None)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What algebra says of a launch: whether it computes a reference, and where it leaves it.

    ``formulas`` are those of the expected values, None of a user's reference. ``causes`` are proven,
    ``hints`` are not.
    """

    reference: str | Reference
    formulas: Formulas | None = None
    equivalence: Equivalence | None = None
    located: Located | None = None
    causes: tuple[Cause, ...] = ()
    hints: tuple[Cause, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the launch computes the formulas: roundings alone may differ."""
        return self.equivalence is not None and self.equivalence.answer == "equal"

    @property
    def nearest(self) -> str:
        """The answer in a line."""
        return "" if self.equivalence is None else str(self.equivalence).splitlines()[0]


def answered(
    launch: RepeatedLaunch, expected: Mapping[int, npt.ArrayLike], tolerance: float
) -> Answered | None:
    """Return what algebra says of outputs whose formulas are found; None where none is."""
    given = launch.formula_arguments()
    found = [found_formula(given, at, np.asarray(value), tolerance) for at, value in expected.items()]
    formulas = Formulas(found=[each for each in found if each is not None])
    if not formulas.found:
        return None
    try:
        equivalence, place = answer_of(launch, formulas)
    except WarpsimError:
        causes = () if formulas.other_kind is None else (_of_type(launch, *formulas.other_kind),)
        return Answered(reference=formulas, formulas=formulas, causes=causes)
    types = tuple(_of_types(launch, equivalence, formulas))
    own = of_answer(formulas, equivalence, None if types else place)
    return replace(own, formulas=formulas, causes=types or own.causes)


def of_answer(reference: str | Reference, equivalence: Equivalence, place: Located | None) -> Answered:
    """Return the causes in an answer: what is proven, and as a hint what is located or near to it."""
    proven = (cause_of(place),) if place is not None and place.proven else ()
    hints = (
        (cause_of(place),) if place is not None and not place.proven and place.location is not None else ()
    )
    causes = (*proven, *_out_of_range(equivalence))
    return Answered(reference=reference, equivalence=equivalence, located=place, causes=causes, hints=hints)


def _out_of_range(equivalence: Equivalence) -> Iterator[Cause]:
    """Yield the first statement whose result is out of range, where that alone makes wrong values."""
    if equivalence.answer == "equal" and not equivalence.close:
        for parted in equivalence.parted[:1]:
            yield Cause(
                kind="range",
                message=str(parted),
                location=parted.location,
                evidence=f"proven: with the values of {equivalence.reference} the formulas are equal",
                fix="use a type that holds the value",
            )


def cause_of(place: Located) -> Cause:
    """Return the statement that leaves a reference as a cause."""
    at = place.loaded or place.location
    operand = f"operand {place.operand} of the matrix instruction: " if place.operand else ""
    return Cause(
        kind=place.kind,
        message=f"{operand}{place.message}",
        location=at,
        evidence=place.evidence,
        operand=place.operand,
        fix=place.fix,
        also=tuple((COPIED, copy) for copy in place.copies if copy != at),
    )


def computes(launch: RepeatedLaunch, reference: str | Reference) -> bool:
    """Return whether a launch computes a reference, element by element."""
    try:
        return equivalence_of(launch, reference).equivalence.answer == "equal"
    except WarpsimError:
        return False


def in_any_order(launch: RepeatedLaunch, reference: str | Reference) -> bool:
    """Return whether a launch computes the same formulas under further schedules: then no missing barrier or
    wait has made its values.
    """
    runs = []
    for schedule in (launch.options.get("schedule", "program"), *_ORDERS):
        try:
            options = {**launch.options, "schedule": schedule}
            runs.append(equivalence_of(replace(launch, options=options), reference).equivalence.outputs)
        except WarpsimError:
            return False
    first, *others = runs
    return all(equal(x.kernel, y.kernel).all() for run in others for x, y in zip(first, run, strict=True))


_COPY = re.compile(r"(\bcp\.async\.c[ag]\b[^;]*;)")


def wrong_if_waited(launch: RepeatedLaunch, reference: str | Reference) -> bool:
    """Return whether a mistake is proven of the launch with a wait behind each cp.async, too: then no missing
    wait has made it.
    """
    module = launch.kernel.module
    source = module.program.source
    text = _COPY.sub(r"\1 cp.async.wait_all;", source.text)
    if text == source.text:
        return False
    try:
        kernel = load_text(text, source.file, module.target)[launch.kernel.entry.name]
        place = answer_of(replace(launch, kernel=kernel), reference).located
    except WarpsimError:
        return False
    return place is not None and place.proven


# --- types -----------------------------------------------------------------------------------------------


def _of_types(launch: RepeatedLaunch, found: Equivalence, formulas: Formulas) -> Iterator[Cause]:
    used = sorted({index for each in formulas.found for index in each.term.kinds})
    for held, _ in found.misread:
        for index in used:
            if held in FORMATS and launch.initial(index).dtype == np.dtype(FORMATS[held].dtype):
                yield _of_type(launch, index, held)


def _of_type(launch: RepeatedLaunch, argument: int, wanted: str) -> Cause:
    """Return that an argument is read as another type than the expected values take it as."""
    name, (role, read, place) = launch.name(argument), _reader(launch, wanted)
    what = f", but is read as {read}" if read else ""
    return Cause(
        kind="type",
        message=f"operand {role or '?'} of the matrix instruction: {name} holds {wanted}{what}",
        location=place,
        evidence=f"by value: the expected values take {name} as {wanted}; the kernel does not",
        operand=role,
        fix=f"use the instruction with {wanted} for this operand, or convert {name}",
    )


def _reader(launch: RepeatedLaunch, wanted: str) -> tuple[str, str, Location | None]:
    """Return operand, type and place of the first matrix instruction that reads another type of this size."""
    bits = FORMATS[wanted].bits if wanted in FORMATS else 8 * np.dtype(wanted).itemsize
    for record in launch.kernel.entry.code:
        try:
            form = decode(record.statement.mnemonic, target=launch.kernel.module.target)
        except WarpsimError:
            continue
        for role in "ab":
            own = form.format(role)
            if own.bits == bits and wanted not in (own.name, str(np.dtype(own.dtype))):
                return role, own.name, record.statement.location()
    return "", "", None
