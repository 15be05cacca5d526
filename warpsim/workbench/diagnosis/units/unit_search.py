"""The search for the fault of a unit: rewritten rules, relations of results, then two faults at once.

A sample of outputs, of wrong cases first, screens: a fault that is a whole explanation gives every output of
any sample, so no sample hides it. What remains is compared with all known outputs of the set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ....base.environment import in_default_environment
from ....base.errors import OperandError
from ....isa.instruction import Instruction
from ....isa.products import Codes
from ....isa.registers import Words
from ...generation.sums.limits import limits_of
from ...vectors.sets import VectorSet
from .result_relations import relations, transitions
from .shared_traits import Trait, shared_traits
from .unit_sample import TERMS, Array, Slice, matrix_codes, slices
from .wrong_units import WrongUnit, wrong_units

_SCREENED = 4  # slices of the screen
_OUTPUTS = 400  # wrong outputs of a slice of the screen, and as many that are right
_TRAITS = 16  # slices that traits are counted over
_PARTIAL = 5  # faults that are kept though they do not explain everything
_PAIRED = 12  # faults that are tried beside others
_BESIDE = 8  # of these, for each
_SHOWN = 3
_LEAST = 0.05  # of the wrong outputs that a partial explanation gives
_AGAINST = 20  # times as many wrong outputs as right outputs that a partial explanation would change

Watch = Callable[[int, int], None]  # called with the explanations compared so far, and 0 for the whole


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A fault, the wrong outputs that it gives, and the right outputs that it would make wrong."""

    name: str
    explained: int
    contradicted: int
    of: int

    @property
    def complete(self) -> bool:
        """Whether it gives every known output, wrong and right."""
        return self.explained == self.of and not self.contradicted

    @property
    def is_likely(self) -> bool:
        """Whether it gives some wrong outputs, and next to no right output speaks against it."""
        return self.explained >= _LEAST * self.of and self.explained >= _AGAINST * self.contradicted

    def __str__(self) -> str:
        against = f", but {self.contradicted:,} right outputs would differ" if self.contradicted else ""
        return f"{self.name} ({self.explained:,} of {self.of:,} wrong outputs{against})"


@dataclass(frozen=True, kw_only=True)
class UnitDiagnosis:
    """How a unit's D differs from a set's, and why.

    ``explanations`` give every known bit of D, wrong and right; without any, ``partial`` are the best of the
    others. ``first`` is the first wrong output: case, row and column, the right code and the unit's.
    """

    instruction: Instruction
    cases: int
    wrong_cases: int
    outputs: int
    wrong_outputs: int
    unknown_outputs: int
    first: tuple[int, int, int, int, int] | None
    distances: tuple[tuple[str, int], ...]
    transitions: tuple[tuple[str, int], ...]
    traits: tuple[Trait, ...]
    explanations: tuple[Explanation, ...]
    partial: tuple[Explanation, ...]
    tried: int

    @property
    def as_expected(self) -> bool:
        """Whether every known output is right."""
        return not self.wrong_outputs


@in_default_environment
def diagnose_unit(
    vectors: VectorSet, d: Words, known: Words | None = None, watch: Watch | None = None
) -> UnitDiagnosis:
    """Return why a unit's D ``(cases, lanes, registers)`` differs from the D that a set expects.

    ``known`` is a mask of the bits of D that are known; all are where it is left out. Raises OperandError for
    arrays of another shape or dtype than the set's D.
    """
    known = np.full_like(vectors.d, np.iinfo(vectors.d.dtype).max) if known is None else known
    for name, array in (("d", d), ("known", known)):
        if array.shape != vectors.d.shape or array.dtype != vectors.d.dtype:
            own = f"{vectors.d.dtype} {vectors.d.shape}"
            raise OperandError(f"{name} is {array.dtype} {array.shape}, but D of the set is {own}")
    right, given, certain = (matrix_codes(vectors, words) for words in (vectors.d, d, known))
    certain = certain == vectors.instruction.d.mask
    wrong = certain & (right != given)
    by_case = wrong.reshape(len(vectors), -1).any(1)
    found = _Search(vectors, d, known, by_case, watch) if wrong.any() else None
    return UnitDiagnosis(
        instruction=vectors.instruction,
        cases=len(vectors),
        wrong_cases=int(by_case.sum()),
        outputs=int(certain.sum()),
        wrong_outputs=int(wrong.sum()),
        unknown_outputs=int((~certain).sum()),
        first=_first(vectors.instruction, wrong, right, given),
        distances=_distances(vectors.instruction, right[wrong], given[wrong]),
        transitions=tuple(transitions(right[wrong], given[wrong], vectors.instruction.d)),
        traits=tuple(found.traits()) if found else (),
        explanations=found.complete if found else (),
        partial=found.partial if found else (),
        tried=found.tried if found else 0,
    )


def _first(
    form: Instruction, wrong: Array, right: Codes, given: Codes
) -> tuple[int, int, int, int, int] | None:
    """Return case, row, column, right code and the unit's code of the first wrong output."""
    if not wrong.any():
        return None
    tile, row, column = map(int, np.argwhere(wrong)[0])
    codes = (int(array[tile, row, column]) for array in (right, given))
    return (tile // form.products, row, column, *codes)  # type: ignore[return-value]


def _distances(form: Instruction, right: Codes, given: Codes) -> tuple[tuple[str, int], ...]:
    """Return how far wrong outputs are off, in units of the last place of D, the most frequent first."""
    if not len(right):
        return ()
    sign, mask = form.d.sign_bit, form.d.mask

    def ordered(codes: Codes) -> list[int]:
        if not form.d.is_float:
            return [code - ((code & sign) << 1) for code in codes.tolist()]
        return [-(code & ~sign & mask) if code & sign else code for code in codes.tolist()]

    steps = [y - x for x, y in zip(ordered(right), ordered(given), strict=True)]
    unit = "ulp" if form.d.is_float else ""
    names = [f"{step:+d} {unit}".strip() if abs(step) <= 2 else "more" for step in steps]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return tuple(sorted(counts.items(), key=lambda item: -item[1]))


class _Search:
    """Faults and relations against the outputs of a unit."""

    def __init__(
        self, vectors: VectorSet, d: Words, known: Words, by_case: Array, watch: Watch | None
    ) -> None:
        self.watch, self.compared = watch, 0
        self.vectors, self.d, self.known, self.by_case = vectors, d, known, by_case
        self.units = wrong_units(limits_of(vectors.instruction))
        self.sample = [*slices(vectors, d, known, self._cases(_SCREENED))]
        self.tried = len(self.units)
        self.complete: tuple[Explanation, ...] = ()
        self.partial: tuple[Explanation, ...] = ()
        self._run()

    def _cases(self, count: int) -> Array:
        """Return wrong cases, spread over the set, and right cases, that make so many slices."""
        form = self.vectors.instruction
        per = form.shape.m * form.shape.n * form.stored_k * form.products
        room = max(2, count * TERMS // per)
        wrong, right = np.flatnonzero(self.by_case), np.flatnonzero(~self.by_case)
        some = wrong if len(wrong) <= room else wrong[np.linspace(0, len(wrong) - 1, room).astype(int)]
        left = max(room - len(some), room // 4)
        others = right if len(right) <= left else right[np.linspace(0, len(right) - 1, left).astype(int)]
        return np.sort(np.concatenate([some, others]))

    def traits(self) -> list[Trait]:
        """Return what wrong outputs have in common."""
        return shared_traits(self.vectors, [*slices(self.vectors, self.d, self.known, self._cases(_TRAITS))])

    def _run(self) -> None:
        likely = [unit for unit in self.units if self._concerns(unit)]
        scores = [self._score(self.sample, unit, _OUTPUTS) for unit in likely]
        whole = [unit for unit, score in zip(likely, scores, strict=True) if score.complete]
        found = [*map(self._verified, whole), *self._related()]
        self.complete = tuple(each for each in found if each.complete)
        useful = [pair for pair in zip(likely, scores, strict=True) if pair[1].explained]
        useful.sort(key=lambda pair: pair[1].misfits)
        if not self.complete:
            self._pairs(useful)
        if self.complete:
            return
        best = [self._verified(unit) for unit, _ in useful[:_PARTIAL]]
        near = [each for each in (*best, *found) if each.is_likely]
        self.partial = tuple(sorted(near, key=lambda each: each.contradicted - each.explained)[:_SHOWN])

    def _score(self, parts: Sequence[Slice], unit: WrongUnit, most: int | None = None) -> _Score:
        """Compare a unit with outputs: in each part ``most`` that are wrong and as many right; None: all."""
        self.compared += 1
        if self.watch is not None:
            self.watch(self.compared, 0)
        fits, wrong = [], []
        for part in parts:
            at = part.outputs(most)
            fits.append(unit.codes(part.operands, at) == part.given.reshape(-1)[at])
            wrong.append(part.wrong.reshape(-1)[at])
        return _Score(np.concatenate(fits), np.concatenate(wrong))

    def _concerns(self, unit: WrongUnit) -> bool:
        """Return whether a fault can reach half of the wrong outputs of the sample: two faults share them."""
        if unit.reading is None:
            return True
        wrong = sum(int(part.wrong.sum()) for part in self.sample)
        reached = sum(int((part.wrong & unit.reading.concerns(part.operands)).sum()) for part in self.sample)
        return 2 * reached >= wrong

    def _verified(self, unit: WrongUnit) -> Explanation:
        """Return an explanation with its counts over the whole set."""
        score = self._score([*slices(self.vectors, self.d, self.known)], unit)
        wrong = int(score.wrong.sum())
        against = score.misfits - (wrong - score.explained)
        return Explanation(name=unit.name, explained=score.explained, contradicted=against, of=wrong)

    def _related(self) -> list[Explanation]:
        """Return relations between right codes and the unit's, which need no operands."""
        parts = [*slices(self.vectors, self.d, self.known)]
        right, given = (
            np.concatenate([getattr(part, name)[part.known] for part in parts]) for name in ("right", "given")
        )
        wrong, found = right != given, []
        for relation in relations(right, given, self.vectors.instruction.d):
            made = relation.codes(right)
            self.tried += 1
            explained, against = int((made == given)[wrong].sum()), int((made != given)[~wrong].sum())
            found.append(
                Explanation(
                    name=relation.name, explained=explained, contradicted=against, of=int(wrong.sum())
                )
            )
        return found

    def _pairs(self, useful: Sequence[tuple[WrongUnit, _Score]]) -> None:
        """Try two faults at once: each of the best, and those that give most of what it does not."""
        found, seen = [], set[frozenset[int]]()
        for first, score in useful[:_PAIRED]:
            others = sorted(useful, key=lambda pair: -int((pair[1].given & ~score.given).sum()))
            for second, _ in others[:_BESIDE]:
                both, key = first.beside(second), frozenset({id(first), id(second)})
                if both is None or key in seen:
                    continue
                seen.add(key)
                self.tried += 1
                if self._score(self.sample, both, _OUTPUTS).complete:
                    found.append(self._verified(both))
        self.complete = tuple(each for each in found if each.complete)


@dataclass(frozen=True, eq=False)
class _Score:
    """Which compared outputs a unit gives, and which of them are wrong."""

    fits: Array
    wrong: Array

    @property
    def given(self) -> Array:
        """The wrong outputs that it gives."""
        return np.asarray(self.fits & self.wrong)

    @property
    def explained(self) -> int:
        """How many wrong outputs it gives."""
        return int(self.given.sum())

    @property
    def misfits(self) -> int:
        """How many outputs it does not give."""
        return int((~self.fits).sum())

    @property
    def complete(self) -> bool:
        """Whether it gives all."""
        return bool(self.fits.all())
