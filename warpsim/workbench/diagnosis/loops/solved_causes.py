"""What D says by itself: weights along k, weights of steps in each row, and operands as they were read.

Each is solved as linear equations of D, and computed again exactly, which decides whether it gives every bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....isa.codes import codes_of, matrix_of
from ....isa.formats import Format
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..dumps.closeness import numbers
from ..dumps.stored_types import Known
from ..locate.changed_lines import described, nearest_codes
from .product_loops import Loop, Matrix, View
from .solved_weights import Equations, Weights, numbers_near, of_lines, solve

_LARGEST = 1 << 25  # elements of what all steps add
_SIGNIFICANT = 1 << 20  # elements of D
_LARGEST_OPERAND = 1 << 20  # elements


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What was solved, in words, and a function that computes D from it again, where that is possible."""

    text: str
    advice: str
    computed: Callable[[], Codes] | None = None
    within_rounding: bool = False  # it holds in every element, whatever the bits are
    is_rule: bool = True  # and not only a list of what is wrong


class SolvedCauses:
    """The equations of one product; D is ``wanted``, and should be ``expected``, both codes ``(m, n)``."""

    def __init__(self, loop: Loop, expected: Codes, wanted: Codes, printed: Known | None) -> None:
        self.loop, (m, n) = loop, loop.shape
        form, k = loop.form, np.asarray(loop.given.A).shape[1]
        self.k = k
        d, right = numbers(wanted, form.d), numbers(expected, form.d)
        a, b = numbers(loop.a[:m, :k], form.a), numbers(loop.b[:k, :n], form.b)
        c = numbers(loop.c[:m, :n], form.c)
        with np.errstate(all="ignore"):
            near = numbers_near(right, a @ b + c, d, None if printed is None else printed.spread(d))
        self.given = Equations(a=a, b=b, c=c, d=d, near=near)
        self.printed = printed

    def __iter__(self) -> Iterator[Solution]:
        """Yield what D is solved to be; nothing for scaled forms, and D that are too large."""
        if self.loop.form.scale is not None or self.given.d.size > _SIGNIFICANT or self.k < 2:
            return
        weights = solve(self.given)
        if weights is not None and (text := weights.text(self.loop.form.shape.k)):
            yield Solution(
                text=text,
                advice="check what each step adds",
                computed=lambda: self._weighed(weights),
                within_rounding=True,
            )
            return
        if text := self._of_lines():
            yield Solution(text=text, advice="check what accumulators are multiplied with between steps")
            return
        if self.printed is None and not self.loop.form.sparse:
            yield from self._operands()

    def _weighed(self, weights: Weights) -> Codes:
        """Return D of all tiles with A and C times their weights."""
        loop, form, given = self.loop, self.loop.form, self.given
        with np.errstate(all="ignore"):
            A = (given.a * weights.k).astype(form.a.dtype)
            C = (given.c * weights.c).astype(form.c.dtype)
        return loop.tiles_of(codes_of(gemm(form, A, loop.given.B, C), form.d, "D"))

    def _of_lines(self) -> str:
        loop, (m, n) = self.loop, self.loop.shape
        tiles = loop.rows * loop.columns
        if loop.steps < 2 or loop.steps * self.given.d.size > _LARGEST:
            return ""
        each = np.stack([loop.contributions(View(tile=at)) for at in range(tiles)], axis=1)
        shape = loop.form.shape
        whole = each.reshape(loop.steps, loop.rows, loop.columns, shape.m, shape.n).swapaxes(2, 3)
        parts: Matrix = whole.reshape(loop.steps, loop.rows * shape.m, -1)[:, :m, :n]
        return of_lines(parts, self.given.c, self.given.d, self.given.near)

    def _operands(self) -> Iterator[Solution]:
        form, given = self.loop.form, self.given
        if not all(np.isfinite(x).all() for x in (given.a, given.b, given.c, given.d)):
            return
        near, rest = float(given.near.max()), given.d - given.c
        own = {"A": self.loop.a[: len(given.a), : self.k], "B": self.loop.b[: self.k, : given.b.shape[1]].T}
        for name, other, lines, element in (
            ("A", given.b, rest, form.a),
            ("B", given.a.T, rest.T, form.b),
        ):
            solved = solve_lines(other, lines, near, (own[name], element))
            if solved is not None:
                text, rule = described(name, np.ascontiguousarray(own[name]), solved, element)
                advice = f"compare with the addresses and the order in which {name} is loaded"
                yield Solution(
                    text=text,
                    advice=advice,
                    computed=lambda n=name, x=solved: self._with(n, x),  # type: ignore[misc]
                    is_rule=rule,
                )

    def _with(self, name: str, codes: Codes) -> Codes:
        """Return D of all tiles with this operand in the place of the right operand."""
        loop, form, given = self.loop, self.loop.form, self.loop.given
        read: dict[str, Any] = {"A": given.A, "B": given.B}
        lines = codes if name == "A" else np.ascontiguousarray(codes.T)
        read[name] = matrix_of(lines, form.a if name == "A" else form.b)
        return loop.tiles_of(codes_of(gemm(form, read["A"], read["B"], given.C), form.d, "D"))


# --- an operand as it was read ------------------------------------------------------------------------


def solve_lines(other: Matrix, rest: Matrix, near: float, right: tuple[Codes, Format]) -> Codes | None:
    """Return codes X ``(lines, k)`` with X times ``other (k, elements)`` = ``rest (lines, elements)``.

    ``near`` is how far roundings may take an element of ``rest``; ``right`` are the codes that X should be,
    to which those of X are likely to belong. None where there is no such X.
    The caller computes D of it again, whose bits decide. With n > k each row of D has more elements than A
    has unknowns (with m > k the same holds for B).
    """
    k, size = other.shape
    element = right[1]
    if size < k or rest.shape[0] * k > _LARGEST_OPERAND or element.bits > 16:
        return None
    if not (np.isfinite(other).all() and np.isfinite(rest).all()):
        return None
    inverse = np.linalg.pinv(other)
    values = rest @ inverse
    off = near * float(np.sqrt((inverse * inverse).sum(axis=0)).max())
    codes = _settled(values, off, right)
    snapped = matrix_of(codes, element).astype(np.float64)
    if not np.isfinite(snapped).all() or (np.abs(snapped @ other - rest) > 4 * near * max(1, k / 16)).any():
        return None
    return codes


def _settled(values: Matrix, off: float, right: tuple[Codes, Format]) -> Codes:
    """Return the codes nearest to values; of the right matrix where its value is within the error."""
    known, element = right
    numbers = matrix_of(np.unique(known), element).astype(np.float64)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    at = np.searchsorted(numbers, values).clip(1, len(numbers) - 1)
    below, above = numbers[at - 1], numbers[at]
    near = np.where(values - below < above - values, below, above)
    return nearest_codes(np.where(np.abs(near - values) <= off, near, values), element)
