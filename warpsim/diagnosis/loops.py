"""Loops along k: which mistake of a kernel that issues one instruction after the other explains its D.

Given whole matrices A ``(m, k)``, B ``(k, n)``, C and D. A candidate is first judged by what it would add to
D in ordinary numbers, on one tile; those that come near are computed exactly, on all tiles. Knows steps and
tiles; the mistakes within a step are those of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..environment import in_default_environment
from ..errors import OperandError
from ..execution.interface import pack_metadata
from ..files.decimals import Printed
from ..isa.codes import codes_of, integers, magnitudes, matrix_of, values_of
from ..isa.fragments import codes_from, registers_of
from ..isa.instruction import Codes, Instruction
from ..isa.sparsity import compress
from ..products.gemm import gemm
from ..ptx.decode import Form, resolved
from .arithmetic import Arithmetic
from .closeness import closeness
from .grids import Registers, Setting
from .library import mistakes
from .local import local_mistakes
from .mistake import Mistake
from .remarks import Seen, remarks

Matrix = npt.NDArray[np.float64]
_BATCH = 1 << 21  # products of one call
_ALL_LOCAL = 16  # steps, up to which mistakes of one lane or row are tried in single steps too
_VERIFIED = 12  # candidates that are computed exactly
_NEAR = 2.0**-10  # of D's size: what rounding may come to


@dataclass(frozen=True, kw_only=True)
class LoopCause:
    """A mistake and where it is made; ``fraction`` of D's elements are exact, all within rounding if not."""

    name: str
    advice: str
    fraction: float
    closeness: float

    def __str__(self) -> str:
        return f"{self.name}: {self.advice}" if self.advice else self.name


@dataclass(frozen=True, kw_only=True)
class LoopDiagnosis:
    """What makes a product come out as it did: exact ``matches``, else those that are ``near``, but for bits.

    ``different`` of ``total`` elements are not as expected; ``where`` tells which tiles; ``remarks`` what D
    itself tells.
    """

    instruction: Instruction
    steps: int
    different: int
    total: int
    where: str
    matches: tuple[LoopCause, ...]
    near: tuple[LoopCause, ...]
    remarks: tuple[str, ...]
    tried: int
    printed: Printed | None = None

    @property
    def as_expected(self) -> bool:
        """Whether D is right already."""
        return not self.different


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mistake of a loop: what it changes in the tile ``(m, n)``, roughly, and D of all tiles, exactly."""

    name: str
    advice: str
    change: Matrix
    exact: Callable[[], Codes]


class Loop:
    """A product cut into steps of one instruction and tiles of D, everything as registers."""

    def __init__(self, form: Instruction, A: Any, B: Any, C: Any) -> None:
        self.form = form
        m, n, k = form.shape.m, form.shape.n, form.shape.k
        a, b = codes_of(A, form.a, "A"), codes_of(B, form.b, "B")
        self.shape = a.shape[0], b.shape[1]
        c = np.zeros(self.shape, form.c.code_dtype) if C is None else codes_of(C, form.c, "C")
        self.tail = a.shape[1] % k
        self.a, self.b, self.c = _padded(a, m, k), _padded(b, k, n), _padded(c, m, n)
        self.steps, self.rows, self.columns = self.a.shape[1] // k, len(self.a) // m, self.b.shape[1] // n
        self.setting = Setting(instruction=form)

    @cached_property
    def registers(self) -> Registers:
        """``(steps, tiles, lanes, registers)`` of a, b and e; tiles row after row. C is ``(tiles, …)``."""
        form = self.form
        a = _blocks(self.a, self.rows, self.steps).swapaxes(0, 1)[:, :, None]
        b = _blocks(self.b, self.steps, self.columns)[:, None]
        shape = self.steps, self.rows, self.columns
        found: Registers = {}
        if form.pattern is not None:
            weight = magnitudes(matrix_of(a, form.a), form.a)
            a, indices = compress(a, weight, form.pattern)
            words = pack_metadata(form, indices, 0)
            found["e"] = np.broadcast_to(words, (*shape, *words.shape[3:]))
        for name, matrix in (("a", a), ("b", b)):
            words = registers_of(matrix, form, name)
            found[name] = np.broadcast_to(words, (*shape, *words.shape[3:]))
        whole = self.steps, self.rows * self.columns
        return {name: words.reshape(*whole, *words.shape[3:]) for name, words in found.items()}

    @cached_property
    def accumulators(self) -> Any:
        """``(tiles, lanes, registers)`` of C."""
        blocks = _blocks(self.c, self.rows, self.columns)
        words = registers_of(blocks, self.form, "c")
        return words.reshape(-1, *words.shape[2:])

    def tiles_of(self, codes: Codes) -> Codes:
        """``(tiles, m, n)`` of a matrix like D."""
        form = self.form
        blocks = _blocks(_padded(codes, form.shape.m, form.shape.n), self.rows, self.columns)
        return blocks.reshape(-1, form.shape.m, form.shape.n)

    def chain(
        self,
        steps: Sequence[tuple[Registers, Arithmetic]],
        c: Any,
    ) -> Codes:
        """Codes ``(..., tiles, m, n)`` of D of these steps, one after the other, from registers of C."""
        for registers, arithmetic in steps:
            codes = arithmetic.simulate(self.setting, {**registers, "c": c})
            c = registers_of(codes, self.form, "d")
        return codes_from(c, self.form, "d")

    def step(self, at: int) -> Registers:
        """The registers of one step, of all tiles."""
        return {name: words[at] for name, words in self.registers.items()}


def _padded(codes: Codes, rows: int, columns: int) -> Codes:
    return np.pad(codes, [(0, -codes.shape[0] % rows), (0, -codes.shape[1] % columns)])


def _blocks(codes: Codes, rows: int, columns: int) -> Codes:
    """``(rows, columns, height, width)`` of a matrix in so many blocks."""
    height, width = codes.shape[0] // rows, codes.shape[1] // columns
    return codes.reshape(rows, height, columns, width).swapaxes(1, 2)


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
    printed: Printed | None = None,
) -> LoopDiagnosis:
    """Why a kernel's D ``(m, n)`` of A ``(m, k)``, B ``(k, n)`` and C came out as it did.

    The kernel issues the instruction along ascending k; a sparse A obeys the pattern. Raises what gemm
    raises, and OperandError for families that this is not for (wgmma, block scales, m8n8k4 f16).
    """
    form = resolved(instruction, target)
    if form.family.lanes != 32 or form.scale or form.products > 1 or form.c != form.d:
        raise OperandError(f"{form}: products are searched for mma and mma.sp without block scales")
    wanted = codes_of(D, form.d, "D")
    expected = codes_of(gemm(form, A, B, C), form.d, "D")
    if wanted.shape != expected.shape:
        raise OperandError(f"D has shape {wanted.shape}, but A and B make {expected.shape}")
    loop = Loop(form, np.asarray(A), np.asarray(B), C)
    return _Search(loop, expected, wanted, printed, (A, B, C)).diagnosis()


class _Search:
    """One search: the tile on which candidates are judged, and what they come to."""

    def __init__(
        self, loop: Loop, expected: Codes, wanted: Codes, printed: Printed | None, given: tuple[Any, Any, Any]
    ) -> None:
        self.loop, self.printed, self.given = loop, printed, given
        self.expected, self.wanted = self.settled(expected, wanted, loop.form), wanted
        self.wanted_tiles = loop.tiles_of(wanted)
        wrong = (loop.tiles_of(self.expected) != self.wanted_tiles).reshape(len(self.wanted_tiles), -1)
        self.wrong = wrong.sum(axis=1)
        self.tile = int(self.wrong.argmax())
        self.tried = 0

    def settled(self, codes: Codes, wanted: Codes, form: Instruction) -> Codes:
        """Codes, those that print as the wanted ones being these."""
        return codes if self.printed is None else self.printed.settled(codes, wanted, form.d)

    def diagnosis(self) -> LoopDiagnosis:
        """The result; candidates that add the right thing to D are computed exactly."""
        matches: tuple[LoopCause, ...] = ()
        near: tuple[LoopCause, ...] = ()
        different = int((self.expected != self.wanted).sum())
        if different:
            causes = [self._cause(one) for one in self._best()]
            matches = tuple(one for one in causes if one.fraction == 1)
            near = tuple(sorted(causes, key=lambda one: -one.closeness))[:3] if not matches else ()
        return LoopDiagnosis(
            instruction=self.loop.form,
            steps=self.loop.steps,
            different=different,
            total=self.wanted.size,
            where=self._where(),
            matches=matches[:5],
            near=near,
            remarks=() if matches or not different else self._remarks(),
            tried=self.tried,
            printed=self.printed,
        )

    def _where(self) -> str:
        """Which tiles are wrong; those that hold what belongs in others are named."""
        loop, count = self.loop, int((self.wrong > 0).sum())
        if loop.rows * loop.columns == 1 or not count:
            return ""
        text = f"{count} of {len(self.wrong)} tiles of {loop.form.shape.m} x {loop.form.shape.n}"
        known = {tile.tobytes(): at for at, tile in enumerate(loop.tiles_of(self.expected))}
        moved = []
        for at in np.flatnonzero(self.wrong).tolist():
            other = known.get(self.wanted_tiles[at].tobytes())
            if other is not None:
                moved.append(f"tile {self._named(at)} holds what belongs in tile {self._named(other)}")
        more = f", and {len(moved) - 4} more" if len(moved) > 4 else ""
        return "; ".join([text, *moved[:4]]) + more

    def _named(self, at: int) -> str:
        return f"({at // self.loop.columns}, {at % self.loop.columns})"

    def _rearranged(self) -> Iterator[str]:
        """Rows of A's tiles, or columns of B's, that are those of other tiles: D without C tells."""
        loop, form = self.loop, self.loop.form
        A, B, _ = self.given
        products = _values(loop.tiles_of(codes_of(gemm(form, A, B), form.d, "D")), form.d)
        rest = _values(self.wanted_tiles, form.d) - _values(loop.tiles_of(loop.c), form.c)
        shape = loop.rows, loop.columns, form.shape.m, form.shape.n
        products, rest = products.reshape(shape), rest.reshape(shape)
        size = _NEAR * max(float(np.abs(products).max()), 1e-300)
        for name, axis in (("rows of A", 0), ("columns of B", 1)):
            x, y = (np.moveaxis(each, axis, 0) for each in (products, rest))
            off = np.stack([np.abs(y - one).reshape(len(y), -1).max(axis=1) for one in x], axis=1)
            order = off.argmin(axis=1)
            if (off.min(axis=1) <= size).all() and (order != np.arange(len(order))).any():
                places = tuple(order.tolist())
                yield f"{name} are those of other tiles: tile i has what belongs in {places}[i]"

    def _remarks(self) -> tuple[str, ...]:
        if moved := tuple(self._rearranged()):
            return moved
        form = self.loop.form
        A, B, C = self.loop.a, self.loop.b, self.loop.c[: self.wanted.shape[0], : self.wanted.shape[1]]
        return remarks(
            Seen(
                expected=_values(self.expected, form.d),
                actual=_values(self.wanted, form.d),
                c=_values(C, form.c),
                column_sums=_values(B, form.b).sum(axis=0)[: self.wanted.shape[1]],
                row_sums=_values(A, form.a).sum(axis=1)[: self.wanted.shape[0]],
                exact=not form.d.is_float,
            )
        )

    # --- candidates ---

    def _best(self) -> list[Candidate]:
        """Candidates whose change is what D has more than expected, the nearest first."""
        form = self.loop.form
        tile = self.wanted_tiles[self.tile]
        rest = _values(tile, form.d) - _values(self.loop.tiles_of(self.expected)[self.tile], form.d)
        size = max(float(np.abs(_values(tile, form.d)).max()), float(np.abs(rest).max()), 1e-300)
        found: list[tuple[float, int, Candidate]] = []
        for candidate in self._candidates():
            self.tried += 1
            with np.errstate(all="ignore"):
                off = float(np.abs(rest - candidate.change).max()) / size
            if off < _NEAR * max(1, self.loop.steps) + self._spread(size):
                found.append((off, len(found), candidate))
        return [one for _, _, one in sorted(found, key=lambda each: each[:2])[:_VERIFIED]]

    def _spread(self, size: float) -> float:
        """What printing may have cut off."""
        if self.printed is None or self.printed.decimals is None:
            return 0.0
        return float(10.0**-self.printed.decimals / size)

    def _cause(self, candidate: Candidate) -> LoopCause:
        exact = candidate.exact()
        codes = self.settled(exact, self.wanted_tiles, self.loop.form)
        return LoopCause(
            name=candidate.name,
            advice=candidate.advice,
            fraction=float((codes == self.wanted_tiles).mean()),
            closeness=float(closeness(codes, self.wanted_tiles, self.loop.form.d).mean()),
        )

    def _candidates(self) -> Iterator[Candidate]:
        contributions = self._contributions()
        yield from self._of_steps(contributions)
        yield from self._of_accumulators(contributions)
        yield from self._of_order()
        yield from self._within_steps(contributions)

    def _plain(self) -> list[tuple[Registers, Arithmetic]]:
        return [(self.loop.step(at), Arithmetic(instruction=self.loop.form)) for at in range(self.loop.steps)]

    def _contributions(self) -> Matrix:
        """``(steps, m, n)``: what every step adds to the tile."""
        form = self.loop.form
        registers = {name: words[:, self.tile] for name, words in self.loop.registers.items()}
        zero = np.zeros_like(self.loop.accumulators[:1])
        codes = Arithmetic(instruction=form).simulate(self.loop.setting, {**registers, "c": zero})
        return _values(codes, form.d)

    def _exactly(
        self,
        steps: list[tuple[Registers, Arithmetic]],
        c: Any = None,
        after: Callable[[Any], Any] | None = None,
    ) -> Callable[[], Codes]:
        def run() -> Codes:
            start = self.loop.accumulators if c is None else c
            codes = self.loop.chain(steps, start)
            return codes if after is None else after(codes)

        return run

    def _of_steps(self, each: Matrix) -> Iterator[Candidate]:
        """Steps left out, doubled, with operands of others."""
        plain, count = self._plain(), self.loop.steps
        for at in range(count):
            for name, steps, change in (
                (f"step {at} left out (missing)", plain[:at] + plain[at + 1 :], -each[at]),
                (f"step {at} twice", plain[: at + 1] + plain[at:], each[at]),
            ):
                yield self._candidate(name, "check the bounds of the loop along k", change, steps)
            if 0 < at < count - 1:
                name = f"steps {at} to {count - 1} left out (missing): the loop ends early"
                yield self._candidate(
                    name, "check the bounds of the loop", -each[at:].sum(axis=0), plain[:at]
                )
                name = f"steps 0 to {at} left out (missing): the loop starts late"
                yield self._candidate(
                    name, "check the bounds of the loop", -each[: at + 1].sum(axis=0), plain[at + 1 :]
                )
        if self.loop.tail:
            k = self.loop.form.shape.k
            name = f"the tail left out: k from {(count - 1) * k} on, step {count - 1}"
            yield self._candidate(
                name, "k is no multiple of the instruction's: add its rest", -each[-1], plain[:-1]
            )
        yield from self._of_neighbours()

    def _of_neighbours(self) -> Iterator[Candidate]:
        """Operands of one step, or of all, taken from another step."""
        count, held = self.loop.steps, self.loop.registers
        advice = "check the stage of the pipeline: what is read is not what was loaded for this step"
        for name in held:
            spelled = "metadata" if name == "e" else name.upper()
            for step in (1, -1):
                order = np.clip(np.arange(count) + step, 0, count - 1)
                around = (np.arange(count) + step) % count
                which = "next" if step > 0 else "previous"
                for text, taken in (
                    (f"of the {which} step", order),
                    (f"of the {which} step, around the end", around),
                ):
                    yield self._taken(f"every step reads {spelled} {text}", advice, name, taken)
                for at in range(count):
                    if 0 <= at + step < count:
                        one = np.arange(count)
                        one[at] = at + step
                        yield self._taken(f"step {at} reads {spelled} of step {at + step}", advice, name, one)
            first = np.zeros(count, np.intp)
            yield self._taken(f"every step reads {spelled} of step 0", advice, name, first)

    def _taken(self, name: str, advice: str, operand: str, order: npt.NDArray[Any]) -> Candidate:
        """An operand of every step from the step in ``order``."""
        plain, words = self._plain(), self.loop.registers[operand]
        steps = [(registers | {operand: words[order[at]]}, how) for at, (registers, how) in enumerate(plain)]
        moved = np.flatnonzero(order != np.arange(len(order)))
        change = self._added([steps[at] for at in moved]) - self._added([plain[at] for at in moved])
        return self._candidate(name, advice, change, steps)

    def _added(self, steps: Sequence[tuple[Registers, Arithmetic]]) -> Matrix:
        """What steps add to the tile, together."""
        form = self.loop.form
        if not steps:
            return np.zeros((form.shape.m, form.shape.n))
        stacked = {
            name: np.stack([registers[name][self.tile] for registers, _ in steps]) for name in steps[0][0]
        }
        zero = np.zeros_like(self.loop.accumulators[:1])
        codes = steps[0][1].simulate(self.loop.setting, {**stacked, "c": zero})
        total: Matrix = _values(codes, form.d).sum(axis=0)
        return total

    def _candidate(
        self, name: str, advice: str, change: Matrix, steps: list[tuple[Registers, Arithmetic]], c: Any = None
    ) -> Candidate:
        return Candidate(name=name, advice=advice, change=change, exact=self._exactly(steps, c))

    def _of_accumulators(self, each: Matrix) -> Iterator[Candidate]:
        """C forgotten, twice, scaled; accumulators cleared on the way."""
        form, plain = self.loop.form, self._plain()
        c = _values(codes_from(self.loop.accumulators, form, "c"), form.c)
        zero = np.zeros_like(self.loop.accumulators)
        tile = c[self.tile]
        if c.any():
            yield self._candidate(
                "C not added (forgotten)", "start from C, or add it in the end", -tile, plain, zero
            )
            for factor, text in ((2.0, "C twice"), (0.5, "C times 0.5 (beta)"), (-1.0, "C times -1 (beta)")):
                scaled = registers_of(codes_of((c * factor).astype(form.c.dtype), form.c, "C"), form, "c")
                advice = "C enters once, with a factor of one"
                yield self._candidate(text, advice, (factor - 1) * tile, plain, scaled)
                yield Candidate(
                    name=f"{text}, added in the end",
                    advice=advice,
                    change=(factor - 1) * tile,
                    exact=self._exactly(plain, zero, lambda d, f=factor: self._plus(d, c, f)),  # type: ignore[misc]
                )
            yield Candidate(
                name="C twice: once in the beginning and once in the end",
                advice="C enters once",
                change=tile,
                exact=self._exactly(plain, None, lambda d: self._plus(d, c, 1.0)),
            )
        for at in range(1, len(plain)):
            name = f"accumulators cleared (reset) before step {at}"
            change = -each[:at].sum(axis=0) - tile
            yield self._candidate(name, "clear them once, before the loop", change, plain[at:], zero)
            name = f"accumulators start from C again at step {at}"
            yield self._candidate(name, "load C once, before the loop", change + tile, plain[at:])

    def _plus(self, codes: Codes, c: Matrix, factor: float) -> Codes:
        element = self.loop.form.d
        with np.errstate(all="ignore"):
            total = matrix_of(codes, element) + (c * factor).astype(element.dtype)
            return codes_of(np.asarray(total, element.dtype), element, "D")

    def _of_order(self) -> Iterator[Candidate]:
        """The same sums in another order, which changes roundings only."""
        form, (A, B, C) = self.loop.form, self.given
        nothing = np.zeros((form.shape.m, form.shape.n))
        if not form.d.is_float:
            return
        advice = "the sums are right, and in another order: warpsim.gemm computes this one too"
        plain = self._plain()
        yield self._candidate("steps in descending order of k (reverse)", advice, nothing, plain[::-1])
        zero, c = (
            np.zeros_like(self.loop.accumulators),
            _values(codes_from(self.loop.accumulators, form, "c"), form.c),
        )
        yield Candidate(
            name="C added in the end (epilogue), not in the beginning",
            advice=advice,
            change=nothing,
            exact=self._exactly(plain, zero, lambda d: self._plus(d, c, 1.0)),
        )
        for option in (
            {"split_k": 2},
            {"split_k": 4},
            {"split_k": 8},
            {"promote_every": 1},
            {"promote_every": 4},
        ):
            (name, number), *_ = option.items()
            yield Candidate(
                name=f"{name}={number}" + (f": split in {number} runs along k" if name == "split_k" else ""),
                advice=advice,
                change=nothing,
                exact=lambda more=option: self.loop.tiles_of(  # type: ignore[misc]
                    codes_of(gemm(form, A, B, C, **more), form.d, "D")
                ),
            )

    # --- mistakes within steps ---

    def _within_steps(self, each: Matrix) -> Iterator[Candidate]:
        """Every mistake of the library in all steps, and in one; local ones too where there are few steps."""
        setting, count = self.loop.setting, self.loop.steps
        local = local_mistakes(setting) if count <= _ALL_LOCAL else ()
        for mistake in (*mistakes(setting), *local):
            how = mistake.arithmetic or Arithmetic(instruction=self.loop.form)
            if mistake.arithmetic is None and (mistake.change is None or "c" in mistake.operands):
                continue
            wrong = self._wrong(mistake, how)
            change = wrong - each
            steps = self._changed(mistake, how)
            name = f"in every step (all steps): {mistake.name}"
            yield Candidate(
                name=name,
                advice=mistake.advice,
                change=change.sum(axis=0),
                exact=self._run(steps, range(count)),
            )
            for at in range(count if count > 1 else 0):
                yield Candidate(
                    name=f"in step {at} only: {mistake.name}",
                    advice=mistake.advice,
                    change=change[at],
                    exact=self._run(steps, (at,)),
                )

    def _wrong(self, mistake: Mistake, how: Arithmetic) -> Matrix:
        """``(steps, m, n)``: what the steps add with the mistake."""
        registers = {name: words[:, self.tile] for name, words in self.loop.registers.items()}
        registers["c"] = np.zeros(
            (self.loop.steps, *self.loop.accumulators.shape[1:]), self.loop.accumulators.dtype
        )
        if mistake.change:
            registers |= mistake.change(registers)
        return _values(how.simulate(self.loop.setting, registers), self.loop.form.d)

    def _changed(self, mistake: Mistake, how: Arithmetic) -> Callable[[int], tuple[Registers, Arithmetic]]:
        def step(at: int) -> tuple[Registers, Arithmetic]:
            registers = self.loop.step(at)
            return registers | (mistake.change(registers) if mistake.change else {}), how

        return step

    def _run(
        self, changed: Callable[[int], tuple[Registers, Arithmetic]], where: Sequence[int]
    ) -> Callable[[], Codes]:
        def run() -> Codes:
            steps = self._plain()
            for at in where:
                steps[at] = changed(at)
            return self.loop.chain(steps, self.loop.accumulators)

        return run


def _values(codes: Codes, element: Any) -> Matrix:
    return values_of(codes, element) if element.is_float else integers(codes, element).astype(np.float64)
