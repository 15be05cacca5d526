"""Diagnosis: what made D come out as it did. The entrance, and what it returns.

Given what an instruction should have read and the D that came out (or the other way round: what it
read, and the D that was expected), finds the mistakes that turn the first D into the second bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import present
from ....isa.displayed import Displayed
from ....isa.fragments import codes_from, gathered_columns
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....ptx.decode import Form, resolved
from ....sums.execution.inputs import inputs_by_name
from ....sums.execution.pipeline import rule_for
from ....sums.rule_programs.program_rewrites import Rewrite, rewrites, rewritten
from ...generation.sums.limits import limits_of
from ...generation.sums.program_sums import inputs_of, program_codes
from ...generation.sums.rewrite_words import rewrite_words
from ...inputs.decimals import Printed
from ..dumps.dump_comparison import DumpComparison, classes, closeness, places_of
from ..dumps.wrong_elements import Remark, Wrong, wrong_elements
from ..library.arithmetic_mistakes import Arithmetic, as_tiles, gathered_operands, legal_ids
from ..library.mistake import Mistake
from ..solving.linear_operands import Tile
from ..solving.other_causes import bare_mistake, named_mistake, other_causes
from ..solving.solving import Explanation, partial, solve, solve_pairs
from .cases import Case, case_of, outcome, probe, reproduces
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
        """The first of them."""
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
                f"none of {self.simulated:,} explanations gives every bit{'; closest:' * bool(self.closest)}"
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
    if case.equal.all():
        return _diagnosis(case)
    matches, simulated = _solved(case)
    found_in_d = remarks_of(case) if not matches else ()
    if not matches and most > 1 and not any(remark.explains_values for remark in found_in_d):
        # the simplest two causes that give every bit, and how many were given to the engine
        tried, best, exact = 0, float("inf"), list[tuple[Mistake, ...]]()
        both = ((each.cost, each.explanations, ()) for each in solve_pairs(*_tile(case)))
        for cost, explanations, others in chain(both, joined_with_others(case)):
            tried += 1
            if watch is not None:
                watch(tried, 0)
            bare = (*others, *map(bare_mistake, explanations))
            if cost <= best and _is_exact(case, bare):
                exact = exact * (cost == best) + [(*others, *map(named_mistake, explanations))]
                best = cost
        matches, simulated = _confirmed(case, exact), simulated + tried
    closest = () if matches else _partly(case)
    return _diagnosis(case, matches, closest, simulated, () if matches else found_in_d)


def _partly(case: Case) -> tuple[Cause, ...]:
    tile, _, spread = _tile(case)
    mistakes = (*map(bare_mistake, partial(tile, spread)), *other_causes(case.setting))
    causes = [_explanation(case, (mistake,)) for mistake in mistakes]
    return tuple(
        replace(cause, mistakes=tuple(mistake.named for mistake in cause.mistakes))
        for cause in _closest(case, causes, _explanation(case, ()).closeness)
    )


def _solved(case: Case) -> tuple[tuple[Match, ...], int]:
    """Return the simplest single causes, and how many were tried: maps, other values, other arithmetic."""
    answer = solve(*_tile(case))
    causes = {each.cost: list[Mistake]() for each in answer.explanations}
    for mistake in other_causes(case.setting):
        causes.setdefault(mistake.cost, []).append(mistake)
    tried, screened = answer.tried + sum(map(len, causes.values())), case.screened
    for cost in sorted(causes):
        level = [each for each in answer.explanations if each.cost == cost]
        known = [mistake for mistake in causes[cost] if reproduces(screened, mistake)]
        known += [named_mistake(each) for each in level if _is_exact(case, (bare_mistake(each),))]
        if known:
            same = [named_mistake(each) for each in answer.explanations if _may_be_meant(each, cost)]
            found = _confirmed(case, [(mistake,) for mistake in (*known, *same)])
            if matches := tuple(each for each in found if each.simplest.mistakes[0] not in same):
                return matches, tried
    rules, more = rewritten_rules(case)
    costs = sorted({rule.cost for rule in rules})
    levels = (_confirmed(case, [(rule,) for rule in rules if rule.cost == cost]) for cost in costs)
    return next(filter(None, levels), ()), tried + more


def _may_be_meant(explanation: Explanation, cost: float) -> bool:
    """Return whether values that change in all places may be what a simpler cause comes to."""
    plain = explanation.atom.kind == "unchanged" and not explanation.within
    return plain and explanation.source.kind not in _PLACED and cost < explanation.cost <= cost + _CLOSE


_PLACED = ("own", "zero", "tile", "other operand")  # kinds of sources that are no function of the values
_CLOSE = 2.0  # costs of which both are said, where they agree on all data


Two = tuple[float, tuple[Explanation, ...], tuple[Mistake, ...]]  # cost, and what holds together


def joined_with_others(case: Case) -> Iterator[Two]:
    """Yield another arithmetic, or a cause of two operands, and a cause in an operand in all places."""
    setting, tried, (_, settled, spread) = case.setting, 0, _tile(case)
    others = [mistake for mistake in other_causes(setting) if mistake.cost <= _JOINED]
    for mistake in sorted(others, key=lambda mistake: mistake.cost):
        form = mistake.arithmetic.instruction if mistake.arithmetic else setting.instruction
        other = setting
        if (form.c, form.d) == (setting.instruction.c, setting.instruction.d):
            ids = legal_ids(setting.scale_selectors, form)
            other = replace(setting, instruction=form, scale_selectors=ids)
        changed = case.registers | (mistake.change(case.registers) if mistake.change else {})
        wrong = outcome(setting, case.registers, (mistake,))
        tile = Tile(other, changed, (case.actual, wrong), case.worst)
        answer = solve(tile, np.zeros_like(settled), spread, partly=False)
        for each in answer.explanations:
            yield each.cost + mistake.cost + 1, (each,), (mistake,)
        tried += answer.tried
        if tried > _BUDGET:
            return


def _tile(case: Case) -> tuple[Tile, npt.NDArray[np.bool_], npt.NDArray[np.float64] | None]:
    """Return the tile with most wrong elements, what of it is right, and how far D is known."""
    worst = case.worst
    tile = Tile(case.setting, case.registers, (case.actual, case.expected), worst)
    return tile, case.equal[worst], None if case.printed is None else case.printed.spread(tile.result)


_BUDGET = 1 << 18  # candidates that are tried together with other causes
_JOINED = 3.5  # cost of other causes that are tried together with a map


def _confirmed(case: Case, explanations: Sequence[tuple[Mistake, ...]]) -> tuple[Match, ...]:
    """Return explanations exact on all tiles, grouped by equal effect or equal metadata here."""
    exact = [names for names in explanations if _is_exact(case, names)]
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


def _is_exact(case: Case, explanation: Sequence[Mistake]) -> bool:
    return bool((case.made(explanation) == case.elements).all())


def _explanation(case: Case, names: tuple[Mistake, ...]) -> Cause:
    form, actual, d = case.setting.instruction, case.elements, case.made(names)
    return Cause(
        mistakes=names,
        fraction=float((d == actual).mean()),
        closeness=float(closeness(d, actual, form.d).mean()),
        wrong=wrong_elements(form, d != actual),
        left=DumpComparison(elements=classes(d, actual, form.d), format=form.d),
        furthest=float(np.abs(places_of(d, form.d).astype(np.float64) - places_of(actual, form.d)).max()),
    )


def _closest(case: Case, causes: Sequence[Cause], base: float) -> tuple[Cause, ...]:
    """Return the best causes that come closer than none does; those that give the same D are merged."""
    found: dict[bytes, Cause] = {}
    for cause in sorted(causes, key=lambda cause: (cause.closeness, cause.fraction), reverse=True):
        made = outcome(case.setting, case.registers, cause.mistakes)
        found.setdefault(made.tobytes(), cause)
    better = [cause for cause in found.values() if cause.closeness > base + _CHANCE]
    near = [cause for cause in better if cause.closeness > better[0].closeness - _FAR]
    return tuple(near[:_CLOSEST])


def _diagnosis(
    case: Case,
    matches: tuple[Match, ...] = (),
    closest: tuple[Cause, ...] = (),
    simulated: int = 1,
    found_in_d: tuple[Remark, ...] = (),
) -> Diagnosis:
    form, x, y = case.setting.instruction, case.made(()), case.elements
    return Diagnosis(
        instruction=form,
        printed=case.printed,
        classes=DumpComparison(elements=classes(x, y, form.d), format=form.d),
        wrong=wrong_elements(form, x != y),
        matches=matches,
        closest=closest,
        simulated=simulated,
        remarks=found_in_d,
    )


_EVIDENCE = 3  # wrong elements
_SCREENED = 48  # wrong elements, and as many right


def rewritten_rules(case: Case) -> tuple[list[Mistake], int]:
    """Return the rewrites that give some elements of D, the simplest first, and how many were tried."""
    form, equal = case.setting.instruction, case.equal
    if form.target is None or int((~equal).sum()) < _EVIDENCE:
        return [], 0
    rule = rule_for(form).bare
    operands = as_tiles(gathered_operands(case.setting, form, case.registers))
    kinds = [np.flatnonzero(flags) for flags in (~equal, equal)]
    spread = [np.linspace(0, len(at) - 1, min(_SCREENED, len(at))).astype(int) for at in kinds]
    at = np.concatenate([numbers[chosen] for numbers, chosen in zip(kinds, spread, strict=True)])
    inputs = inputs_of(operands, at)
    wanted = codes_from(case.actual, form, "d").reshape(-1)[at]
    every = rewrites(rule, form.product)
    found = list[Mistake]()
    for each in every:
        made = program_codes(rewritten(rule, form.product, each), inputs).astype(wanted.dtype)
        if (case.settled(made, wanted) == wanted).all():
            found.append(_mistake(form, each))
    return found, len(every)


def _mistake(form: Instruction, rewrite: Rewrite) -> Mistake:
    name = rewrite_words(limits_of(form), rewrite)
    return Mistake(
        name=f"arithmetic: {name}",
        advice=_advice(form, rewrite.kind, rewrite.facts),
        operands=(),
        records=((rewrite.kind, dict(rewrite.facts)),),
        cost=rewrite.cost + _MORE,
        arithmetic=Arithmetic(instruction=form, rewrite=rewrite),
    )


_MORE = 1.0  # than the cost of a rewrite: of saying that the arithmetic is another


def _advice(form: Instruction, kind: str, facts: Any) -> str:
    if kind == "step":
        shape = replace(form.shape, k=form.shape.k * facts["size"] // form.stored_k)
        return f"sums are rounded after every {facts['size']} products, as several of {shape} do in sequence"
    return "no chip sums so: compare with the arithmetic of the unit, or of the program, that computed D"
