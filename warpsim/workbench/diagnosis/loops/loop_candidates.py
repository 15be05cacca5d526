"""The sums of a loop in another order.

A candidate knows what it would change in one tile, roughly, and D of all tiles, exactly. Steps and operands
are solved elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....isa.codes import codes_of, matrix_of
from ....isa.fragments import codes_from
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..dumps.dump_comparison import numbers
from ..solving.product_loops import Loop, Matrix, Step, View


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mistake of a loop: what it changes in the view of D, roughly, and D of all tiles, exactly."""

    name: str
    advice: str
    change: Matrix
    exact: Callable[[], Codes]
    rounds_otherwise: bool = False  # its sums are computed in another arithmetic
    whole: bool = False  # a matrix, or all tiles: it is no explanation of some tiles only
    kind: str = "candidate"
    reach: float = 0.0  # the largest sum on the way to its D, if values are changed
    described: Callable[[], tuple[str, str]] | None = None  # name and advice, where finding these takes long

    @property
    def words(self) -> tuple[str, str]:
        """Name and advice."""
        return (self.name, self.advice) if self.described is None else self.described()


def exactly(
    loop: Loop, steps: Sequence[Step], c: Any = None, after: Callable[[Any], Any] | None = None
) -> Callable[[], Codes]:
    """Return a function that computes D of all tiles, from registers of C, with ``after`` applied."""

    def run() -> Codes:
        codes = loop.chain(steps, loop.accumulators if c is None else c)
        return codes if after is None else after(codes)

    return run


class Candidates:
    """Those of the order of sums, judged on one view."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view, self.each = loop, view, loop.contributions(view)

    def __iter__(self) -> Iterator[Candidate]:
        yield from self._of_order()

    def _candidate(
        self, name: str, advice: str, change: Matrix, steps: list[Step], c: Any = None
    ) -> Candidate:
        return Candidate(
            kind="sums", name=name, advice=advice, change=change, exact=exactly(self.loop, steps, c)
        )

    def _plus(self, codes: Codes, c: Matrix, factor: float) -> Codes:
        element = self.loop.form.d
        with np.errstate(all="ignore"):
            total = matrix_of(codes, element) + (c * factor).astype(element.dtype)
            return codes_of(np.asarray(total, element.dtype), element, "D")

    # --- order ---

    def _of_order(self) -> Iterator[Candidate]:
        """Yield the same sums in another order, which changes roundings only."""
        loop, form = self.loop, self.loop.form
        if not form.d.is_float:
            return
        nothing = np.zeros_like(self.each[0])
        advice = "the sums are right, and in another order: warpsim.gemm computes this order too"
        plain = loop.plain()
        yield self._candidate("steps in descending order of k (reverse)", advice, nothing, plain[::-1])
        zero = np.zeros_like(loop.accumulators)
        c = numbers(codes_from(loop.accumulators, form, "c"), form.c)
        yield Candidate(
            kind="sums",
            name="C added in the end (epilogue), not in the beginning",
            advice=advice,
            change=nothing,
            exact=exactly(loop, plain, zero, lambda d: self._plus(d, c, 1.0)),
        )
        yield from self._interleaved(nothing, advice)
        for option, number, text in _ORDERS:
            yield Candidate(
                kind="sums",
                name=f"{option}={number}{text.format(number)}",
                advice=advice,
                change=nothing,
                exact=lambda more={option: number}: self._computed(more),  # type: ignore[misc]
            )

    def _interleaved(self, nothing: Matrix, advice: str) -> Iterator[Candidate]:
        """Yield several accumulators that take turns, added in the end."""
        loop = self.loop
        for count in (2, 4):
            if count < loop.steps:
                for first, text in ((True, "C in the first"), (False, "C added last")):
                    yield Candidate(
                        kind="sums",
                        name=f"{count} accumulators take turns, {text}",
                        advice=advice,
                        change=nothing,
                        exact=lambda n=count, c=first: self._in_turns(n, c),  # type: ignore[misc]
                    )

    def _in_turns(self, count: int, c_first: bool) -> Codes:
        loop, plain = self.loop, self.loop.plain()
        zero = np.zeros_like(loop.accumulators)
        total = loop.chain(plain[::count], loop.accumulators if c_first else zero)
        for at in range(1, count):
            part = loop.chain(plain[at::count], zero)
            total = self._plus(total, numbers(part, loop.form.d), 1.0)
        c = numbers(codes_from(loop.accumulators, loop.form, "c"), loop.form.c)
        return total if c_first else self._plus(total, c, 1.0)

    def _computed(self, options: dict[str, int]) -> Codes:
        loop, given = self.loop, self.loop.given
        d = gemm(loop.form, given.A, given.B, given.C, **given.scales, **options)  # type: ignore[arg-type]
        return loop.tiles_of(codes_of(d, loop.form.d, "D"))


_ORDERS = (
    ("split_k", 2, ": split in {} runs along k"),
    ("split_k", 4, ": split in {} runs along k"),
    ("split_k", 8, ": split in {} runs along k"),
    ("promote_every", 1, ""),
    ("promote_every", 2, ""),
    ("promote_every", 4, ""),
    ("promote_every", 8, ""),
)
