"""What D itself tells, without knowing which mistake was made: it is a permutation of what was expected, a
multiple of it, rounded, cut off at zero, or off by something that depends on C, on the column or on the row.

Works on matrices of values, of one instruction or of a whole product. Says nothing that needs lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import erf

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ...environment import in_default_environment
from .result_permutations import permutations

Matrix = npt.NDArray[np.float64]
_TIGHT = 2.0**-20  # what one rounding may come to, or two
_SMALL = 2.0**-18  # of the size of the values: what roundings of some steps may come to


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Values ``(m, n)``: D as expected and as it came out, C, and the sums of B's columns and A's rows.

    ``exact`` tells that nothing is rounded: integers.
    """

    expected: Matrix
    actual: Matrix
    c: Matrix
    column_sums: Matrix | None = None
    row_sums: Matrix | None = None
    exact: bool = False
    k: int = 0

    @property
    def products(self) -> Matrix:
        """A·B."""
        return self.expected - self.c

    def same(self, x: Matrix, y: Matrix, factor: float = _SMALL) -> bool:
        """Whether two matrices are equal but for rounding."""
        size = max(float(np.abs(self.expected).max()), float(np.abs(self.c).max()), 1e-300)
        return bool((np.abs(x - y) <= (0 if self.exact else factor * size)).all())


@in_default_environment
def remarks(seen: Seen) -> tuple[str, ...]:
    """What can be said of D for certain; the first that holds comes first."""
    values = (seen.expected, seen.actual, seen.c)
    if not all(np.isfinite(each).all() for each in values) or (seen.expected == seen.actual).all():
        return ()
    with np.errstate(all="ignore"):
        return tuple(text for tell in _TELLS for text in tell(seen))[:3]


def is_certain(remark: str) -> bool:
    """Whether a remark says how D came about, so that nothing else has to be looked for."""
    return not remark.startswith(_VAGUE)


_VAGUE = ("D - A·B has nothing to do with C", "D is a permutation")


# --- D by itself ---------------------------------------------------------------------------------------


def _permuted(seen: Seen) -> Iterator[str]:
    size = float(np.abs(seen.expected).max())
    yield from permutations(seen.expected, seen.actual, 0.0 if seen.exact else _TIGHT * size)


def _activated(seen: Seen) -> Iterator[str]:
    x = seen.expected
    for name, function in _ACTIVATIONS:
        wanted = function(x)
        if not seen.same(wanted, x) and seen.same(wanted, seen.actual):
            yield f"D is the expected one {name}"
            return


def _normal(x: Matrix) -> Matrix:
    """The share of a normal distribution below x."""
    below: Matrix = np.vectorize(erf, otypes=[np.float64])(x / np.sqrt(2))
    return 0.5 * (1 + below)


_ACTIVATIONS: tuple[tuple[str, Callable[[Matrix], Matrix]], ...] = (
    ("with negative values set to zero (ReLU)", lambda x: np.maximum(x, 0)),
    ("through GELU (tanh)", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    ("through GELU (erf)", lambda x: x * _normal(x)),
    ("through SiLU (x times sigmoid)", lambda x: x / (1 + np.exp(-x))),
    ("through GELU (x times sigmoid of 1.702 x)", lambda x: x / (1 + np.exp(-1.702 * x))),
    ("through a sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ("through tanh", np.tanh),
    ("through a leaky ReLU of 0.01", lambda x: np.where(x < 0, 0.01 * x, x)),
    ("with its absolute values", np.abs),
    ("squared where positive (ReLU squared)", lambda x: np.maximum(x, 0) ** 2),
    ("with values limited to 0..6 (ReLU6)", lambda x: np.clip(x, 0, 6)),
)


def _narrowed(seen: Seen) -> Iterator[str]:
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        if np.array_equal(seen.expected.astype(dtype).astype(np.float64), seen.actual) and not seen.exact:
            yield f"D is the expected one rounded to {name} on its way"


def _multiple(seen: Seen) -> Iterator[str]:
    factor = _factor(seen.expected, seen.actual)
    if factor is not None and factor not in (0, 1) and seen.same(factor * seen.expected, seen.actual, _SMALL):
        yield f"D is {_text(factor)} times what was expected (D times {_text(factor)}): alpha, or a scale"
        return
    factor = _factor(seen.products, seen.actual)
    if seen.c.any() and factor not in (None, 0, 1) and seen.same(factor * seen.products, seen.actual):
        yield f"D is {_text(factor)} times A·B, without C: alpha, or a scale"


def _scaled_along(seen: Seen) -> Iterator[str]:
    """Each row, or each column, is its own multiple of what was expected, or of the products."""
    parts = (
        ("D", seen.expected, seen.actual),
        ("A·B in D", seen.products, seen.actual - seen.c),
        ("D without C", seen.products, seen.actual),
    )
    for what, x, y in parts:
        for axis, name in ((1, "row"), (0, "column")):
            size = (x * x).sum(axis=axis, keepdims=True)
            if not size.all() or x.shape[axis] < 3:
                continue
            factor = (x * y).sum(axis=axis, keepdims=True) / size
            uneven = np.ptp(factor) > 2.0**-10 * np.abs(factor).max()
            if uneven and np.mean(np.abs(factor - 1) > 2.0**-10) > _MOST and seen.same(factor * x, y):
                yield (
                    f"{what} is off by a factor of its own in each {name}: a scale per {name}, from "
                    f"{_text(float(factor.min()))} to {_text(float(factor.max()))}"
                )
                return


# --- D without A·B -------------------------------------------------------------------------------------


def _of_c(seen: Seen) -> Iterator[str]:
    rest = seen.actual - seen.products
    factor = _factor(seen.c, rest)
    if factor is not None and factor != 1 and seen.same(factor * seen.c, rest):
        text = "C was not added" if factor == 0 else f"D - A·B is C times {_text(factor)} (beta)"
        yield text
        return
    level = float(np.round(rest.mean(), 5))
    if seen.c.any() and seen.same(rest, np.full_like(rest, level)):
        yield f"D - A·B is {_text(level)} everywhere: not what was passed, as if C were {_text(level)}"


def _rounded(seen: Seen) -> Iterator[str]:
    off = np.abs(seen.actual - seen.expected)
    if not seen.exact and seen.same(seen.actual, seen.expected, _TIGHT):
        count = int((off > 0).sum())
        yield (
            f"D is right but for roundings: {count} of {off.size} elements are off, by at most "
            f"{_text(float(off.max() / max(np.abs(seen.expected).max(), 1e-300)))} of the largest"
        )


def _both_zero_points(seen: Seen) -> Iterator[str]:
    """(A + a)·(B + b): a times the sums of B's columns, b times those of A's rows, and k·a·b."""
    if seen.column_sums is None or seen.row_sums is None or not seen.k:
        return
    rest = seen.actual - seen.expected
    m, n = rest.shape
    sides = [np.broadcast_to(seen.column_sums, (m, n)), np.broadcast_to(seen.row_sums[:, None], (m, n))]
    system = np.stack([*(one.reshape(-1) for one in sides), np.ones(m * n)], axis=1)
    found, _, rank, _ = np.linalg.lstsq(system, rest.reshape(-1), rcond=None)
    a, b, level = (float(np.round(one, 6)) for one in found)
    fits = rank == 3 and a and b and seen.same((system @ np.array([a, b, level])).reshape(m, n), rest)
    if fits and abs(level - seen.k * a * b) <= 2.0**-10 * abs(level):
        yield f"A and B: zero points: A is {_text(a)} more, and B {_text(b)} more than was passed"


def _along(seen: Seen) -> Iterator[str]:
    rest = seen.actual - seen.expected
    if min(rest.shape) < 2 or seen.same(rest, np.zeros_like(rest)):
        return
    columns, rows = rest.mean(axis=0, keepdims=True), rest.mean(axis=1, keepdims=True)
    by_column, by_row = seen.same(rest, columns), seen.same(rest, rows)
    if by_column and by_row:
        yield f"D is {_text(float(rest.mean()))} more than expected everywhere: a bias"
        return
    for flag, part, sums, name, operand in (
        (by_column, columns, seen.column_sums, "column", "A"),
        (by_row, rows, seen.row_sums, "row", "B"),
    ):
        if not flag:
            continue
        factor = None if sums is None else _factor(sums.reshape(part.shape), part)
        if sums is not None and factor and seen.same(factor * sums.reshape(part.shape), part):
            yield f"{operand}: zero point: every element of {operand} is {_text(factor)} more than was passed"
        else:
            yield f"D differs from the expected by the same in each {name}: a bias per {name}"


def _other_c(seen: Seen) -> Iterator[str]:
    """The products are there, but what is added to them is not C."""
    rest, products = seen.actual - seen.products, seen.products
    if not seen.c.any() or not rest.std():
        return
    related = [abs(_correlation(rest, other)) for other in (seen.c, products)]
    level = np.full_like(rest, rest.mean())
    if max(related) < _UNRELATED and not seen.same(rest, level):
        yield (
            "D - A·B has nothing to do with C: what is added to the products is something else (garbage in "
            "the accumulators, or C from elsewhere)"
        )


_UNRELATED = 0.25
_MOST = 0.5  # rows or columns must have a factor of their own


def _correlation(x: Matrix, y: Matrix) -> float:
    a, b = x - x.mean(), y - y.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size else 0.0


def _factor(x: Matrix, y: Matrix) -> float | None:
    """The number that y is times x, by least squares, near a simple fraction; None where x is zero."""
    size = float((x * x).sum())
    if not size:
        return None
    factor = float((x * y).sum()) / size
    simple = float(Fraction(factor).limit_denominator(64))
    return simple if abs(simple - factor) < 2.0**-12 * max(abs(factor), 2.0**-4) else factor


def _text(number: float) -> str:
    return f"{number:.6g}"


_TELLS: tuple[Callable[[Seen], Iterator[str]], ...] = (
    _permuted,
    _activated,
    _narrowed,
    _rounded,
    _multiple,
    _of_c,
    _along,
    _both_zero_points,
    _scaled_along,
    _other_c,
)
