"""The search for the mistakes behind a whole product: the entrance, the order of candidates, the result.

Given matrices A ``(m, k)``, B ``(k, n)``, C and D. A candidate is first judged by what it would add to D in
float64, on one tile; candidates that come near are computed exactly, on all tiles. Frequent and cheap
mistakes are tried first. Does not know what the candidates change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import OperandError
from ....isa.codes import codes_of
from ....isa.displayed import Displayed
from ....isa.instruction import Instruction
from ....isa.products import Codes
from ....ptx.decode import Form, resolved
from ....sums.products.gemm import gemm
from ..dumps.dump_comparison import Known, closeness, numbers, stored_as
from ..dumps.wrong_elements import Remark, RemarkKind, remark, shared_causes
from ..library.arithmetic_mistakes import WHOLE
from ..library.mistake import Mistake
from ..search.cases import spread_part
from ..search.remarks import ResultComparison, masked, remarks
from ..solving.loop_operands import LoopOperands, moved_in_every_step
from ..solving.other_causes import other_causes, simple_maps
from ..solving.product_loops import Given, Loop, View
from ..solving.step_causes import Solution, StepCauses, plain_sum
from .loop_memory import Memory, kept_accumulators, tails
from .loop_mistakes import Candidate, Screen, WithinSteps, orders

_VERIFIED = (12, 300)  # candidates of a stage that are computed exactly: at least, and at most
_PRODUCTS = 1 << 28  # multiplications that all of them may take together
_SHOWN = 8
_CLOSE = 0.25  # of D's bits: others are not shown as near
_NEARER = 1 / 32  # than the right D is
_ALIKE = 6  # that change the same, all of them computed
_SIDE = 16  # rows and columns of a large tile, on which candidates are judged
_CUT = 1 / 16  # of D's elements that are zero, and of the right elements that are negative
_CHEAP = 1  # stages that are tried whatever the remarks on D
_SIMPLE = 2.0  # cost of maps that are tried in single steps, before ReLU and beside weights of steps


Watch = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class LoopCause:
    """A mistake and where it is made; ``fraction`` of D's elements are exact, all within rounding if not.

    ``also`` are others that change the same.
    """

    name: str
    advice: str
    fraction: float = 1.0
    closeness: float = 1.0
    also: tuple[str, ...] = ()
    kind: str = "candidate"
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}: {self.advice}" if self.advice else self.name


@dataclass(frozen=True, kw_only=True)
class LoopDiagnosis(Displayed):
    """What makes a product come out as it did: exact ``matches``, else those that are ``near``, but for bits.

    ``different`` of ``total`` elements are not as expected; ``where`` names the tiles; ``remarks`` are those
    on D.
    """

    instruction: Instruction
    steps: int
    different: int
    total: int
    where: str
    matches: tuple[LoopCause, ...]
    near: tuple[LoopCause, ...]
    remarks: tuple[Remark, ...]
    tried: int
    printed: Known | None = None
    uncomputed: int = 0  # candidates that came near and were not computed: the search was cut
    stopped: bool = False  # the rest of the candidates were not tried, as a remark says how D came about

    def __repr__(self) -> str:
        names = [cause.name for cause in self.matches]
        found = "; ".join(names) or f"no cause of {self.tried:,} gives every bit"
        differ = f"{self.different:,} of {self.total:,} elements differ"
        return f"<diagnosis of a product by {self.instruction.mnemonic}: {differ}: {found}>"

    @property
    def as_expected(self) -> bool:
        """Whether D is right already."""
        return not self.different


# --- the entrance --------------------------------------------------------------------------------------


@in_default_environment
def diagnose_product(
    instruction: Form,
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    D: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    *,
    target: str | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    printed: Known | None = None,
    watch: Watch | None = None,
) -> LoopDiagnosis:
    """Return why a kernel's D ``(m, n)`` of A ``(m, k)``, B ``(k, n)`` and C came out as it did.

    The kernel issues the instruction along ascending k; a sparse A obeys the pattern. ``scale_a (m, chunks)``
    and ``scale_b (chunks, n)`` are those of gemm. Tiles of wgmma are supposed to lie K-major with rows of 128
    bytes, and others are tried. ``watch`` is called with the explanations tried so far, and 0 for the whole.
    Raises what gemm raises, and OperandError for m8n8k4 f16.
    """
    form = resolved(instruction, target)
    if form.products > 1 or form.c != form.d:
        raise OperandError(f"{form}: products are searched for forms whose D can be the C of the next")
    wanted = codes_of(D, form.d, "D")
    given = Given(A=np.asarray(A), B=np.asarray(B), C=C, scale_a=scale_a, scale_b=scale_b)
    expected = codes_of(gemm(form, given.A, given.B, C, **given.scales), form.d, "D")
    if wanted.shape != expected.shape:
        raise OperandError(f"D has shape {wanted.shape}, but A and B make {expected.shape}")
    if printed is None and (stored := stored_as(wanted, expected, form.d)) is not None:
        # a right D that was rounded stays a remark: the type was not given
        printed = None if (stored.rounded(expected, form.d) == wanted).all() else stored
    return _Search(Loop(form, given), (expected, wanted), printed, watch).diagnosis()


class _Search:
    """One search: the view on which candidates are judged, and what they come to."""

    def __init__(
        self, loop: Loop, codes: tuple[Codes, Codes], printed: Known | None, watch: Watch | None = None
    ) -> None:
        expected, wanted = codes
        self.loop, self.printed, self.cut, self.watch = loop, printed, False, watch
        self.whole = expected, wanted
        self.expected, self.wanted = self._settled(expected, wanted), wanted
        self.expected_tiles, self.wanted_tiles = loop.tiles_of(self.expected), loop.tiles_of(wanted)
        self.inside = loop.tiles_of(np.ones(wanted.shape, np.uint8)) == 1  # the rest is padding
        wrong = (self.expected_tiles != self.wanted_tiles) & self.inside
        self.wrong = wrong.reshape(len(wrong), -1).sum(axis=1)
        at = int(self.wrong.argmax())
        self.view = View(tile=at, part=spread_part(wrong[at], _SIDE, _SIDE) if not loop.form.scale else WHOLE)
        self.tried, self.uncomputed, self.stopped = 0, 0, False
        self.solved: list[Solution] = []
        self.screen = Screen(loop, self.view)

    def _settled(self, codes: Codes, wanted: Codes) -> Codes:
        if self.cut:
            negative = numbers(codes, self.loop.form.d) < 0
            codes = np.where(negative, codes.dtype.type(0), codes)
        return codes if self.printed is None else self.printed.settled(codes, wanted, self.loop.form.d)

    def diagnosis(self) -> LoopDiagnosis:
        """Return the result; candidates that add the right thing to D are computed exactly."""
        different = int((self.expected != self.wanted).sum())
        matches, near = self._causes() if different else ((), ())
        return LoopDiagnosis(
            instruction=self.loop.form,
            steps=self.loop.steps,
            different=different,
            total=self.wanted.size,
            where=self._where(),
            matches=matches,
            near=() if matches else near,
            remarks=() if matches or not different else self._remarks(),
            tried=self.tried,
            printed=self.printed,
            uncomputed=self.uncomputed,
            stopped=self.stopped,
        )

    def _causes(self) -> tuple[tuple[LoopCause, ...], tuple[LoopCause, ...]]:
        """Return exact causes of the first stage that has any; else the nearest of all."""
        seen: list[LoopCause] = []
        self.cut = False
        if exact := self._exact(self._steps) or self._exact(self._operands) or self._exact(self._selected()):
            return exact, ()
        seen += [self._near_cause(solution) for solution in self._operands[:_SHOWN]]
        for number, stage in enumerate(chain(self._stages(), ((),))):
            if number == _CHEAP and self._is_explained:
                break
            causes = [self._together(alike) for alike in self._best(stage)]
            if matches := [cause for cause in causes if cause.fraction == 1]:
                return tuple(matches[:_SHOWN]), ()
            seen += causes
        right = closeness(self.expected_tiles, self.wanted_tiles, self.loop.form.d)[self.inside].mean()
        near = (cause for cause in seen if cause.closeness > max(_CLOSE, float(right) + _NEARER))
        return self._before_relu(), tuple(sorted(near, key=lambda cause: -cause.closeness))[:3]

    @cached_property
    def _is_explained(self) -> bool:
        """Whether a remark, or weights of steps that hold but for bits, say how D came about."""
        certain = any(found.is_certain for found in self._seen_in_d)
        if not certain:
            self.solved = [each for each in self._steps if each.within_rounding or not each.computed]
        self.stopped = certain or bool(self.solved)
        return self.stopped

    def _exact(self, solutions: Iterable[Solution]) -> tuple[LoopCause, ...]:
        exact = [solution for solution in solutions if any(map(self._gives_d, solution.computed))]
        if not exact:
            return ()
        first = exact[0]
        return (replace(_named(first), also=(*first.also, *(other.text for other in exact[1:]))),)

    def _gives_d(self, computed: Callable[[], Codes]) -> bool:
        self._count()
        made = self._settled(computed(), self.wanted_tiles)
        return bool((made == self.wanted_tiles)[self.inside].all())

    @cached_property
    def _near(self) -> npt.NDArray[np.float64]:
        """``(m, n)``: how far roundings may take D: 8 times what they take the right D from its plain sum,
        and in proportion where D is larger.
        """
        loop, form = self.loop, self.loop.form
        plain = plain_sum(loop)
        right, d = (numbers(codes, form.d) for codes in self.whole)
        with np.errstate(all="ignore"):
            apart = np.abs(right - plain)
            size, other = (float(np.abs(x[np.isfinite(x)]).max(initial=0)) for x in (plain, d))
        most = float(apart[np.isfinite(apart)].max(initial=0))
        larger = max(1.0, other / max(size, 1e-300))
        near = np.full(plain.shape, (8 * most + 2.0**-40 * size) * larger)
        return near if self.printed is None else near + self.printed.spread(d)

    @cached_property
    def _operands(self) -> tuple[Solution, ...]:
        """A, B, C and D that were read from elsewhere, but for rounding."""
        operands = LoopOperands(self.loop, self.whole, self._near)
        found = tuple(operands)
        self.tried += operands.tried
        return found

    def _selected(self) -> list[Solution]:
        """Return metadata and scales that every step read from elsewhere, but for rounding."""
        at = self.view.tile
        tiles = self.expected_tiles, self.wanted_tiles
        found, tried = moved_in_every_step(self.loop, tiles, self.loop.tiles_of(self._near)[at], at)
        self.tried += tried
        return found[:_SHOWN]

    def _near_cause(self, solution: Solution) -> LoopCause:
        codes = self._settled(solution.computed[0](), self.wanted_tiles)
        return self._judged(_named(solution), codes, codes == self.wanted_tiles)

    def _judged(self, cause: LoopCause, codes: Codes, equal: npt.NDArray[np.bool_]) -> LoopCause:
        """Return a cause with how much of D its codes give, and how close they come to the rest."""
        near = closeness(codes, self.wanted_tiles, self.loop.form.d)[self.inside].mean()
        return replace(cause, fraction=float(equal[self.inside].mean()), closeness=float(near))

    @cached_property
    def _steps(self) -> tuple[Solution, ...]:
        wanted = self.whole[1]
        known = ~((numbers(wanted, self.loop.form.d) == 0) & self.cut)
        with np.errstate(all="ignore"):
            return tuple(StepCauses(self.loop, wanted, self._near, known, self.view))

    def _before_relu(self) -> tuple[LoopCause, ...]:
        """Return causes that give every bit of a D whose negative values were set to zero afterwards."""
        if any(found.is_certain for found in self._seen_in_d):
            return ()
        values, right = numbers(self.wanted, self.loop.form.d), numbers(self.expected, self.loop.form.d)
        zero = values == 0
        if (values < 0).any() or zero.mean() < _CUT or (right < 0).mean() < _CUT:
            return ()
        self.cut = True
        del self._steps  # zeros of D are not known now
        stage = chain.from_iterable(islice(self._stages(), _CHEAP))
        exact = [*self._exact(self._steps)]
        causes = [self._together(alike) for alike in self._best(stage)] if not exact else []
        exact += [cause for cause in causes if cause.fraction == 1]
        return tuple(
            replace(cause, name=f"{cause.name}, then ReLU (negative values are zero)") for cause in exact
        )

    # --- where ---

    def _where(self) -> str:
        """Return which tiles are wrong; those that hold what belongs in others are named."""
        loop, count = self.loop, int((self.wrong > 0).sum())
        if loop.rows * loop.columns == 1 or not count:
            return ""
        text = f"{count} of {len(self.wrong)} tiles of {loop.form.shape.m} x {loop.form.shape.n}"
        known = {tile.tobytes(): at for at, tile in enumerate(self.expected_tiles)}
        moved, wrong = [], np.flatnonzero(self.wrong).tolist()
        if empty := [at for at in wrong if not self.wanted_tiles[at].any()]:
            text += f"; tile{'s'[: len(empty) > 1]} {loop.named(empty)} all zero: not stored"
        for at in wrong:
            other = known.get(self.wanted_tiles[at].tobytes())
            if other is not None:
                moved.append(f"tile {loop.named([at])} holds what belongs in tile {loop.named([other])}")
        more = f", and {len(moved) - 4} more" if len(moved) > 4 else ""
        return "; ".join([text, *moved[:4]]) + more

    def _remarks(self) -> tuple[Remark, ...]:
        if self.solved:
            return tuple(remark(RemarkKind.SOLVED, what=solution.text) for solution in self.solved)
        expected, wanted = (numbers(codes, self.loop.form.d) for codes in self.whole)
        if hidden := tuple(masked(expected, wanted, self.whole[0] == self.whole[1])):
            return hidden
        at = self.view.tile
        where = f"in tile {self.loop.named([at])} " * (len(self.wrong) > 1)
        wrong = self.expected_tiles[at] != self.wanted_tiles[at]
        return (
            *self._seen_in_d,
            *(replace(found, place=where) for found in shared_causes(self.loop.setting, wrong)),
        )

    @cached_property
    def _seen_in_d(self) -> tuple[Remark, ...]:
        form, (m, n) = self.loop.form, self.wanted.shape
        sums: dict[str, Any] = {}
        if form.scale is None:
            sums["column_sums"] = numbers(self.loop.b, form.b).sum(axis=0)[:n]
            sums["row_sums"] = numbers(self.loop.a, form.a).sum(axis=1)[:m]
        seen = ResultComparison(
            expected=numbers(self.expected, form.d),
            actual=numbers(self.wanted, form.d),
            c=numbers(self.loop.c[:m, :n], form.c),
            exact=not form.d.is_float,
            k=self.loop.steps * form.shape.k,
            spread=None if self.printed is None else self.printed.spread(numbers(self.wanted, form.d)),
            **sums,
        )
        return remarks(seen)

    # --- candidates ---

    def _stages(self) -> Iterator[Iterator[Candidate]]:
        """Yield candidates by stage; a stage is tried if earlier stages explain nothing exactly."""
        loop, view = self.loop, self.view
        within = WithinSteps(loop, view)
        yield from stages(within)
        of_tile = (loop.tiles_of(x)[view.tile] for x in (self.whole[1], self._near))
        wanted, near = (view.part.of_result(x) for x in of_tile)
        yield within.weighted(_causes(loop), numbers(wanted, loop.form.d), near)

    def _best(self, candidates: Iterable[Candidate]) -> list[list[Candidate]]:
        """Return candidates that change what D has more than expected, the nearest first, equals together."""
        element, tile, part = self.loop.form.d, self.view.tile, self.view.part
        wanted, expected = (
            numbers(part.of_result(tiles[tile]), element)
            for tiles in (self.wanted_tiles, self.expected_tiles)
        )
        with np.errstate(all="ignore"):
            rest = wanted - expected
        known = np.isfinite(rest) & part.of_result(self.inside[tile]) & ~(self.cut & (wanted == 0))
        spread = np.zeros_like(rest) if self.printed is None else self.printed.spread(wanted)
        size = float(np.abs(np.stack([wanted, rest])[:, known]).max(initial=0))
        found: dict[bytes, tuple[float, list[Candidate]]] = {}
        order: dict[str, int] = {}  # of trying, which is that of reporting
        for candidate in candidates:
            self._count()
            order.setdefault(candidate.name, self.tried)
            off = self.screen.off(candidate, (rest, spread, known), size)
            if off < 1:
                key = candidate.change.tobytes() if candidate.change.any() else candidate.name.encode()
                found.setdefault(key, (off, []))[1].append(candidate)
        nearest = sorted(found.values(), key=lambda each: each[0])
        self.uncomputed += sum(len(alike) for _, alike in nearest[self._affordable :])
        nearest = nearest[: self._affordable]
        nearest.sort(key=lambda each: order[each[1][0].name])
        return [alike for _, alike in nearest]

    @property
    def _affordable(self) -> int:
        """Return how many candidates are computed exactly: a small product can afford all that come near."""
        shape, least_and_most = self.loop.form.shape, _VERIFIED
        each = len(self.wrong) * self.loop.steps * shape.m * shape.n * shape.k
        return int(np.clip(_PRODUCTS // each, *least_and_most))

    def _count(self) -> None:
        self.tried += 1
        if self.watch is not None:
            self.watch(self.tried, 0)

    def _together(self, alike: Sequence[Candidate]) -> LoopCause:
        """Return the first of those that come nearest; others are the same if they give the same bits."""
        if self.watch is not None:
            self.watch(self.tried, 0)
        causes = [self._cause(candidate) for candidate in alike[:_ALIKE]]
        best = max(causes, key=lambda cause: (cause.fraction, cause.closeness))
        same = (cause.name for cause in causes if cause.fraction == best.fraction and cause is not best)
        return replace(best, also=tuple(same) if best.fraction == 1 else ())

    def _cause(self, candidate: Candidate) -> LoopCause:
        codes = self._settled(candidate.exact(), self.wanted_tiles)
        (name, advice), equal = candidate.words, (codes == self.wanted_tiles) | ~self.inside
        partly = equal | (self.expected_tiles == self.wanted_tiles)
        if not candidate.whole and not equal.all() and partly.all() and (self.wrong == 0).any():
            wrong = np.flatnonzero(self.wrong).tolist()
            name, equal = f"{name}, in tiles {self.loop.named(wrong)} only", partly
        return self._judged(LoopCause(name=name, advice=advice, kind=candidate.kind), codes, equal)


def stages(within: WithinSteps) -> Iterator[Iterator[Candidate]]:
    """Yield the candidates of a loop that are known without its D, in the order in which they are tried."""
    loop, view = within.loop, within.view
    memory = kept_accumulators(loop, view), tails(loop, view)
    yield chain(orders(loop, view), within(_causes(loop)), *memory)
    if loop.setting.tiles is not None:
        yield Memory(loop, view).candidates(within)


def _causes(loop: Loop) -> tuple[Mistake, ...]:
    return *other_causes(loop.setting), *simple_maps(loop.setting, _SIMPLE)


def _named(solution: Solution) -> LoopCause:
    return LoopCause(name=solution.text, advice=solution.advice, kind=solution.kind, facts=solution.facts)
