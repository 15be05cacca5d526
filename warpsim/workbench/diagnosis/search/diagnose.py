"""Diagnosis: what made D come out as it did. The entrance, and what it returns.

Given what an instruction should have read and the D that came out (or the other way round: what it
read, and the D that was expected), finds the mistakes that turn the first D into the second bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import present
from ....isa.displayed import Displayed
from ....isa.fragments import codes_from, gathered_columns
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.registers import Words
from ....ptx.decode import Form, resolved
from ....sums.execution.inputs import inputs_by_name
from ...inputs.decimals import Printed
from ..dumps.closeness import closeness
from ..dumps.dump_comparison import DumpComparison, classes, places_of
from ..dumps.remark import Remark
from ..dumps.wrong_elements import Wrong, wrong_elements
from ..library.all_mistakes import mistakes
from ..library.local_mistakes import local_mistakes, other_tiles
from ..library.mistake import Mistake
from ..library.store_mistakes import stored_mistakes
from .cases import case_of, probe
from .mistake_search import Case, Score, Scores, elements_of, outcome, pairs, singles
from .remarks import remarks_of

Watch = Callable[[int, int], None]
_CLOSEST = 5  # explanations shown where none is exact
_CHANCE = 1 / 16  # of D's bits: an explanation must come so much closer than none does to be shown
_ROUNDING = 0.85  # a single mistake that comes so close is right; the rest is rounding
_FAR = 0.3  # explanations that come so much less close than the best are not shown
_PROBE_TILES = 4


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One mistake, or two together, and how much of D they give.

    ``fraction`` counts elements of D over all tiles; 1.0 is every bit. ``closeness`` is less with every bit
    that elements are off, in ulps. ``wrong`` is what is left over, and ``left`` how far that is off.
    """

    mistakes: tuple[Mistake, ...]
    fraction: float
    closeness: float
    wrong: Wrong
    left: DumpComparison
    furthest: float = 0.0  # of D's elements, in ulps

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the mistakes."""
        return tuple(mistake.name for mistake in self.mistakes)

    @property
    def remainder(self) -> str:
        """What is left to explain."""
        if not self.wrong.count:
            return "nothing"
        rounding = self.left.format.is_float and self.closeness > _ROUNDING
        off = f"at most {self.furthest:,.0f} ulps off" if self.left.format.is_float else f"{self.left}"
        return f"{self.wrong}; {off}{', which is rounding' if rounding else ''}"

    @property
    def advice(self) -> str:
        """What to change."""
        return "; and ".join(mistake.advice for mistake in self.mistakes)

    def __str__(self) -> str:
        return f"{' + '.join(self.names)}: {self.advice}"


@dataclass(frozen=True, kw_only=True)
class Match:
    """Explanations that give every bit of D and say the same.

    Either they agree on all data (tried on random data), or all of them change metadata alone, and
    to the same here.
    """

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
class Diagnosis(Displayed):
    """The result of a search.

    ``classes`` compares D with what should have come out, ``wrong`` says where they differ. ``matches``
    are the exact explanations with the fewest mistakes; without any, ``closest`` are the best of the
    others. ``remarks`` say what is regular about D. ``simulated`` counts the explanations that were tried.
    """

    instruction: Instruction
    classes: DumpComparison
    wrong: Wrong
    matches: tuple[Match, ...]
    closest: tuple[Cause, ...]
    simulated: int
    printed: Printed | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def as_expected(self) -> bool:
        """Whether D is right already."""
        return self.classes.equal

    @property
    def found(self) -> bool:
        """Whether some explanation is exact."""
        return bool(self.matches)

    def __repr__(self) -> str:
        found = str(self).partition("\n")
        return f"<diagnosis of {self.instruction.mnemonic}: {found[0]}{'; ...' * bool(found[2])}>"

    @in_default_environment
    def __str__(self) -> str:
        if self.as_expected:
            return "D is as expected, bit for bit"
        lines = [f"D differs: {self.classes}; {self.wrong}", *map(str, self.matches)]
        lines += map(str, self.remarks)
        if not self.found:
            lines.append(
                f"none of {self.simulated} explanations gives every bit{'; closest:' * bool(self.closest)}"
            )
            lines += [
                f"{cause.fraction:.1%} of D: {cause}; left: {cause.remainder}" for cause in self.closest
            ]
        return "\n".join(lines)


# --- the entrance --------------------------------------------------------------------------------------


@in_default_environment
def diagnose(
    instruction: Form,
    *,
    d: npt.ArrayLike,
    target: str | None = None,
    most: int = 2,
    printed: Printed | None = None,
    watch: Watch | None = None,
    **operands: Any,
) -> Diagnosis:
    """Return why D came out as ``d``: the fewest mistakes, at most ``most`` (1 or 2), that explain every bit.

    ``operands`` are the keyword arguments of warpsim.execute, leading axes being tiles that suffer from the
    same mistake; C left out is zero. ``d`` is registers or matrices ``(..., m, n)`` (m8n8k4 f16:
    ``(..., 4, m, n)``); ``printed`` says how its numbers were printed, where they are known no
    better. Metadata that PTX leaves undefined is read literally. ``watch`` is called with the explanations
    tried so far, and 0 for the whole. Raises what warpsim.execute raises, and OperandError for wgmma with
    descriptors that differ between tiles.
    """
    return diagnose_inputs(
        resolved(instruction, target), inputs_by_name(operands), d, most=most, printed=printed, watch=watch
    )


@in_default_environment
def diagnose_inputs(
    instruction: Instruction,
    inputs: Inputs,
    d: npt.ArrayLike,
    *,
    most: int = 2,
    printed: Printed | None = None,
    watch: Watch | None = None,
) -> Diagnosis:
    """Return the same from the record of everything that the instruction reads."""
    return _searched(replace(case_of(instruction, inputs, d), printed=printed), most, watch)


# --- the search ----------------------------------------------------------------------------------------


def _searched(case: Case, most: int, watch: Watch | None) -> Diagnosis:
    """Search singles, then pairs, on the tile with most wrong elements; confirm hits on all tiles."""
    expected = outcome(case.setting, case.registers, ())
    equal = _explained(case, ())
    if equal.all():
        return _diagnosis(case, expected)
    library, screened = mistakes(case.setting), case.screened(_equal_matrices(case, expected))
    alone: Scores = []
    scores = singles(screened, library)
    simulated, matches = len(scores), _confirmed(case, library, scores)
    if not matches or all(_moves_c_and_d(match) for match in matches):
        more = local_mistakes(case.setting)
        library, found = (*more, *library), singles(screened, more)
        simulated, matches = simulated + len(found), (*_confirmed(case, library, found), *matches)
        alone = found
    if not matches and len(case.actual) > 1:
        matches = _of_all_tiles(case, other_tiles(case.setting))
    if not matches:
        matches = _of_stored(case, expected)
    found_in_d = remarks_of(case, expected) if not matches else ()
    if not matches and most > 1 and not any(remark.explains_values for remark in found_in_d):
        best = {id(score.names[0]): score.closeness for score in scores}
        for found in pairs(screened, mistakes(case.setting)):
            simulated += len(found)
            if watch is not None:
                watch(simulated, 0)
            scores += _improved(found, best)
        matches = _confirmed(case, library, [score for score in scores if len(score.names) == 2])
    closest = () if matches else _closest(case, [*scores, *alone], _explanation(case, ()).closeness)
    return _diagnosis(case, expected, matches, closest, simulated)


def _moves_c_and_d(match: Match) -> bool:
    return any(mistake.moves_c_and_d for mistake in match.simplest.mistakes)


def _of_all_tiles(case: Case, library: Iterable[Mistake]) -> tuple[Match, ...]:
    """Return an operand of every tile taken from the next, the previous or the first tile."""
    found = (mistake for mistake in library if _explained(case, (mistake,)).all())
    return tuple(Match(equivalent=(_explanation(case, (mistake,)),)) for mistake in found)


def _of_stored(case: Case, expected: Words) -> tuple[Match, ...]:
    """Return the right D, stored wrongly: explanations that agree here are merged."""
    form = case.setting.instruction
    actual = elements_of(case.actual, form)
    causes = []
    for mistake in stored_mistakes(case.setting):
        d = elements_of(present(mistake.read, "reading")(expected), form)
        if (case.settled(d, actual) == actual).all():
            causes.append(_explanation(case, (mistake,)))
    return (Match(equivalent=tuple(causes)),) if causes else ()


def _equal_matrices(case: Case, expected: Words) -> npt.NDArray[np.bool_]:
    """Return ``(tiles, m, n)``: which elements of D are as expected."""
    x, y = (codes_from(words, case.setting.instruction, "d") for words in (expected, case.actual))
    equal: npt.NDArray[np.bool_] = case.settled(x, y) == y
    return equal


def _improved(scores: Scores, best: dict[int, float]) -> Scores:
    """Return pairs that come closer than either of their mistakes alone, or give all of the part compared."""
    return [
        score
        for score in scores
        if score.fraction == 1.0 or score.closeness > max(best[id(name)] for name in score.names)
    ]


def _confirmed(case: Case, library: Sequence[Mistake], scores: Scores) -> tuple[Match, ...]:
    """Return explanations exact on all tiles, grouped by equal effect or equal metadata here."""
    rank = {id(mistake): index for index, mistake in enumerate(library)}
    exact = [score.names for score in scores if score.fraction == 1.0 and _explained(case, score.names).all()]
    exact.sort(key=lambda names: sum(rank[id(mistake)] for mistake in names))
    registers = probe(case.setting, _PROBE_TILES, seed=0)
    known: dict[bytes, list[Cause]] = {}
    groups: list[list[Cause]] = []
    for names in exact:
        keys = [outcome(case.setting, registers, names).tobytes(), *_metadata_read(case, names)]
        group = next((known[key] for key in keys if key in known), None)
        if group is None:
            groups.append(group := [])
        known |= dict.fromkeys(keys, group)
        group.append(_explanation(case, names))
    return tuple(Match(equivalent=tuple(group)) for group in groups)


def _metadata_read(case: Case, names: Sequence[Mistake]) -> tuple[bytes, ...]:
    """Return the columns that A's elements get, where that is all that an explanation changes."""
    if any(mistake.operands != ("e",) or mistake.change is None for mistake in names):
        return ()
    registers = dict(case.registers)
    for mistake in names:
        registers |= mistake.change(registers) if mistake.change else {}
    setting = case.setting
    inputs = Inputs(registers=registers, selector=setting.selector, literal=True)
    columns = present(gathered_columns(setting.instruction, inputs), "columns")
    return (b"columns" + columns.tobytes(),)


def _explained(case: Case, explanation: Sequence[Mistake]) -> npt.NDArray[np.bool_]:
    """Return ``(tiles, elements)``: what of D an explanation gives."""
    form = case.setting.instruction
    d = outcome(case.setting, case.registers, explanation)
    actual = elements_of(case.actual, form)
    equal: npt.NDArray[np.bool_] = case.settled(elements_of(d, form), actual) == actual
    return equal


def _explanation(case: Case, names: tuple[Mistake, ...]) -> Cause:
    form = case.setting.instruction
    actual = elements_of(case.actual, form)
    d = case.settled(elements_of(outcome(case.setting, case.registers, names), form), actual)
    return Cause(
        mistakes=names,
        fraction=float((d == actual).mean()),
        closeness=float(closeness(d, actual, form.d).mean()),
        wrong=wrong_elements(form, d != actual),
        left=DumpComparison(elements=classes(d, actual, form.d), format=form.d),
        furthest=float(np.abs(places_of(d, form.d).astype(np.float64) - places_of(actual, form.d)).max()),
    )


def _closest(case: Case, scores: Scores, base: float) -> tuple[Cause, ...]:
    """Return the best explanations: those that come closest; a second mistake has to be worth its while."""
    best = sorted(scores, key=_merit, reverse=True)[: 4 * _CLOSEST]
    found: dict[bytes, Cause] = {}
    for score in best:  # explanations that give the same D are merged
        found.setdefault(
            outcome(case.setting, case.registers, score.names).tobytes(), _explanation(case, score.names)
        )
    better = [cause for cause in found.values() if cause.closeness > base + _CHANCE]
    better.sort(
        key=lambda cause: _merit(Score(cause.fraction, cause.closeness, cause.mistakes)), reverse=True
    )
    if better and len(better[0].mistakes) == 1 and better[0].closeness > _ROUNDING:
        better = [cause for cause in better if len(cause.mistakes) == 1]
    near = [cause for cause in better if cause.closeness > better[0].closeness - _FAR]
    return tuple(near[:_CLOSEST])


def _merit(score: Score) -> tuple[float, float]:
    """Return closeness, less the chance gain of a second mistake, and the share of equal elements."""
    return score.closeness - _CHANCE * (len(score.names) - 1), score.fraction


def _diagnosis(
    case: Case,
    expected: Words,
    matches: tuple[Match, ...] = (),
    closest: tuple[Cause, ...] = (),
    simulated: int = 1,
) -> Diagnosis:
    form = case.setting.instruction
    y = elements_of(case.actual, form)
    x = case.settled(elements_of(expected, form), y)
    return Diagnosis(
        instruction=form,
        printed=case.printed,
        classes=DumpComparison(elements=classes(x, y, form.d), format=form.d),
        wrong=wrong_elements(form, x != y),
        matches=matches,
        closest=closest,
        simulated=simulated,
        remarks=() if matches else remarks_of(case, expected),
    )
