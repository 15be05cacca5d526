"""Diagnosis: what made D come out as it did. The entrance, and what it returns.

Given what an instruction should have read and the D that came out (or the other way round: what it
read, and the D that was expected), finds the mistakes that turn one into the other bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..environment import in_default_environment
from ..execution.inputs import inputs_by_name
from ..isa.fragments import codes_from
from ..isa.instruction import Inputs, Instruction
from ..isa.registers import Words
from ..ptx.decode import Form, resolved
from .cases import case_of
from .dumps import DumpComparison, classes
from .library import mistakes
from .mistake import Mistake
from .probes import probe
from .search import Case, Scores, elements_of, outcome, pairs, singles
from .wrong import Wrong, wrong_elements

_CLOSEST = 5  # explanations shown where none is exact
_CHANCE = 1 / 16  # of D's elements: an explanation must give so much more than none does to be shown
_PROBE_TILES = 4


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One mistake, or two together, and how much of D they give.

    ``fraction`` counts elements of D over all tiles; 1.0 is every bit. ``wrong`` is what is left over.
    """

    mistakes: tuple[Mistake, ...]
    fraction: float
    wrong: Wrong

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the mistakes."""
        return tuple(mistake.name for mistake in self.mistakes)

    @property
    def advice(self) -> str:
        """What to change."""
        return "; and ".join(mistake.advice for mistake in self.mistakes)

    def __str__(self) -> str:
        return f"{' + '.join(self.names)}: {self.advice}"


@dataclass(frozen=True, kw_only=True)
class Match:
    """Explanations that give every bit of D and that no data can tell apart (found on random data)."""

    equivalent: tuple[Cause, ...]

    @property
    def simplest(self) -> Cause:
        """The first in the order of the library."""
        return self.equivalent[0]

    def __str__(self) -> str:
        others = len(self.equivalent) - 1
        more = f" (or {others} other{'s'[: others != 1]} of the same effect)" if others else ""
        return f"matches bit for bit: {self.simplest}{more}"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The result of a search.

    ``classes`` compares D with what should have come out, ``wrong`` says where they differ. ``matches``
    are the exact explanations with the fewest mistakes; without any, ``closest`` are the best of the
    others. ``simulated`` counts the explanations that were tried.
    """

    instruction: Instruction
    classes: DumpComparison
    wrong: Wrong
    matches: tuple[Match, ...]
    closest: tuple[Cause, ...]
    simulated: int

    @property
    def as_expected(self) -> bool:
        """Whether D is right already."""
        return self.classes.equal

    @property
    def found(self) -> bool:
        """Whether some explanation is exact."""
        return bool(self.matches)

    @in_default_environment
    def __str__(self) -> str:
        if self.as_expected:
            return "D is as expected, bit for bit"
        lines = [f"D differs: {self.classes}; {self.wrong}", *map(str, self.matches)]
        if not self.found:
            lines.append(
                f"none of {self.simulated} explanations gives every bit{'; closest:' * bool(self.closest)}"
            )
            lines += [f"{one.fraction:.1%} of D: {one}; left: {one.wrong}" for one in self.closest]
        return "\n".join(lines)


# --- the entrance --------------------------------------------------------------------------------------


@in_default_environment
def diagnose(
    instruction: Form,
    *,
    d: npt.ArrayLike,
    target: str | None = None,
    most: int = 2,
    **operands: Any,
) -> Diagnosis:
    """Why D came out as ``d``: the fewest mistakes, at most ``most`` (1 or 2), that explain every bit.

    ``operands`` are the keyword arguments of warpsim.execute, leading axes being tiles that suffer from the
    same mistake; C left out is zero. ``d`` is registers or matrices ``(..., m, n)`` (m8n8k4 f16:
    ``(..., 4, m, n)``). Metadata that PTX leaves undefined is read literally. Raises what warpsim.execute
    raises, and OperandError for wgmma with descriptors that differ between tiles.
    """
    return diagnose_inputs(resolved(instruction, target), inputs_by_name(operands), d, most=most)


@in_default_environment
def diagnose_inputs(
    instruction: Instruction, inputs: Inputs, d: npt.ArrayLike, *, most: int = 2
) -> Diagnosis:
    """The same from the record of everything that the instruction reads."""
    return _searched(case_of(instruction, inputs, d), most)


# --- the search ----------------------------------------------------------------------------------------


def _searched(case: Case, most: int) -> Diagnosis:
    """Singles, then pairs, on the tile that is wrong in most places; hits are confirmed on all tiles."""
    expected = outcome(case.setting, case.registers, ())
    equal = _explained(case, ())
    if equal.all():
        return _diagnosis(case, expected)
    library, screened = mistakes(case.setting), case.screened(_equal_matrices(case, expected))
    scores = singles(screened, library)
    simulated, matches = len(scores), _confirmed(case, library, scores)
    if not matches and most > 1:
        best = {id(names[0]): fraction for fraction, names in scores}
        for found in pairs(screened, library):
            simulated += len(found)
            scores += _improved(found, best)
        matches = _confirmed(case, library, [one for one in scores if len(one[1]) == 2])
    closest = () if matches else _closest(case, scores, float(equal.mean()))
    return _diagnosis(case, expected, matches, closest, simulated)


def _equal_matrices(case: Case, expected: Words) -> npt.NDArray[np.bool_]:
    """``(tiles, m, n)``: which elements of D are as expected."""
    x, y = (codes_from(words, case.setting.instruction, "d") for words in (expected, case.actual))
    equal: npt.NDArray[np.bool_] = x == y
    return equal


def _improved(scores: Scores, best: dict[int, float]) -> Scores:
    """Pairs that explain more than either of their mistakes alone."""
    return [
        (fraction, names)
        for fraction, names in scores
        if fraction > max(best[id(names[0])], best[id(names[1])])
    ]


def _confirmed(case: Case, library: Sequence[Mistake], scores: Scores) -> tuple[Match, ...]:
    """Explanations exact on all tiles, those that act alike on random registers put together."""
    rank = {id(mistake): index for index, mistake in enumerate(library)}
    exact = [names for fraction, names in scores if fraction == 1.0 and _explained(case, names).all()]
    exact.sort(key=lambda names: sum(rank[id(mistake)] for mistake in names))
    registers = probe(case.setting, _PROBE_TILES, seed=0)
    groups: dict[bytes, list[Cause]] = {}
    for names in exact:
        groups.setdefault(outcome(case.setting, registers, names).tobytes(), []).append(
            _explanation(case, names)
        )
    return tuple(Match(equivalent=tuple(group)) for group in groups.values())


def _explained(case: Case, explanation: Sequence[Mistake]) -> npt.NDArray[np.bool_]:
    """``(tiles, elements)``: what of D an explanation gives."""
    form = case.setting.instruction
    d = outcome(case.setting, case.registers, explanation)
    equal: npt.NDArray[np.bool_] = elements_of(d, form) == elements_of(case.actual, form)
    return equal


def _explanation(case: Case, names: tuple[Mistake, ...]) -> Cause:
    equal = _explained(case, names)
    wrong = wrong_elements(case.setting.instruction, ~equal)
    return Cause(mistakes=names, fraction=float(equal.mean()), wrong=wrong)


def _closest(case: Case, scores: Scores, fraction: float) -> tuple[Cause, ...]:
    """The best explanations, fewest mistakes first among equals; what chance may give is left out."""
    best = sorted(scores, key=lambda one: (-one[0], len(one[1])))[: 4 * _CLOSEST]
    found = {frozenset(map(id, names)): _explanation(case, names) for _, names in reversed(best)}
    better = [one for one in found.values() if one.fraction > fraction + _CHANCE]
    better.sort(key=lambda one: (-one.fraction, len(one.mistakes)))
    return tuple(better[:_CLOSEST])


def _diagnosis(
    case: Case,
    expected: Words,
    matches: tuple[Match, ...] = (),
    closest: tuple[Cause, ...] = (),
    simulated: int = 1,
) -> Diagnosis:
    form = case.setting.instruction
    x, y = (elements_of(words, form) for words in (expected, case.actual))
    return Diagnosis(
        instruction=form,
        classes=DumpComparison(elements=classes(x, y, form.d), format=form.d),
        wrong=wrong_elements(form, x != y),
        matches=matches,
        closest=closest,
        simulated=simulated,
    )
