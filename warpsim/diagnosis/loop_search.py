"""Why a whole product came out as it did: the entrance, the search, and what it returns.

Given matrices A ``(m, k)``, B ``(k, n)``, C and D. A candidate is first judged by what it would add to D in
ordinary numbers, on one tile; those that come near are computed exactly, on all tiles. Does not
know the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..environment import in_default_environment
from ..errors import OperandError
from ..files.decimals import Printed
from ..isa.codes import codes_of
from ..isa.instruction import Codes, Instruction
from ..products.gemm import gemm
from ..ptx.decode import Form, resolved
from .closeness import closeness
from .loop_candidates import Candidate, Candidates
from .loop_mistakes import within_steps
from .loops import Loop, numbers
from .remarks import Seen, remarks

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
        products = numbers(loop.tiles_of(codes_of(gemm(form, A, B), form.d, "D")), form.d)
        rest = numbers(self.wanted_tiles, form.d) - numbers(loop.tiles_of(loop.c), form.c)
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
                expected=numbers(self.expected, form.d),
                actual=numbers(self.wanted, form.d),
                c=numbers(C, form.c),
                column_sums=numbers(B, form.b).sum(axis=0)[: self.wanted.shape[1]],
                row_sums=numbers(A, form.a).sum(axis=1)[: self.wanted.shape[0]],
                exact=not form.d.is_float,
            )
        )

    # --- candidates ---

    def _best(self) -> list[Candidate]:
        """Candidates whose change is what D has more than expected, the nearest first."""
        form = self.loop.form
        tile = self.wanted_tiles[self.tile]
        rest = numbers(tile, form.d) - numbers(self.loop.tiles_of(self.expected)[self.tile], form.d)
        size = max(float(np.abs(numbers(tile, form.d)).max()), float(np.abs(rest).max()), 1e-300)
        found: list[tuple[float, int, Candidate]] = []
        for candidate in chain(
            Candidates(self.loop, self.tile, self.given), within_steps(self.loop, self.tile)
        ):
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
