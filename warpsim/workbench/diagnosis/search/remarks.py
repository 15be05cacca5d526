"""Remarks on the values of D: a permutation of the expected values, a multiple of them, rounded, cut off at
zero, or off by something that depends on C, on the column or on the row.

Works on matrices of values, of one instruction or of a whole product; does not know mistakes. ``remarks_of``
adds what the lanes and registers of the wrong rows and columns have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....isa.formats import FORMATS
from ....isa.fragments import codes_from
from ....isa.registers import Words
from ..dumps.dump_comparison import TYPES, numbers
from ..dumps.wrong_elements import Remark, RemarkKind, remark, shared_causes
from .cases import Case

Matrix = npt.NDArray[np.float64]
_TIGHT = 2.0**-20  # of the size of the values: one or two roundings
_ALONE = {RemarkKind.ROUNDINGS, RemarkKind.TRUNCATED}  # what comes after these is a part of them
_EQUATIONS = 16  # elements of D, from which two factors are solved
_SMALL = 2.0**-18  # of the size of the values: roundings of some steps


@dataclass(frozen=True, kw_only=True)
class ResultComparison:
    """Values ``(m, n)`` of D as expected and as it came out, of C, and the sums of B's columns and A's rows.

    ``exact``: nothing is rounded, as with integers.
    """

    expected: Matrix
    actual: Matrix
    c: Matrix
    column_sums: Matrix | None = None
    row_sums: Matrix | None = None
    exact: bool = False
    k: int = 0
    spread: Matrix | None = None  # how far each value of D is known

    @property
    def products(self) -> Matrix:
        """A·B."""
        return self.expected - self.c

    def same(self, x: Matrix, y: Matrix, factor: float = _SMALL) -> bool:
        """Return whether two matrices are equal but for rounding."""
        size = max(float(np.abs(self.expected).max()), float(np.abs(self.c).max()), 1e-300)
        near = (0 if self.exact else factor * size) + (0.0 if self.spread is None else self.spread)
        return bool((np.abs(x - y) <= near).all())


@in_default_environment
def remarks(seen: ResultComparison) -> tuple[Remark, ...]:
    """Return at most three remarks on D; the first check that holds comes first."""
    values = (seen.expected, seen.actual, seen.c)
    if not all(np.isfinite(each).all() for each in values) or (seen.expected == seen.actual).all():
        return ()
    with np.errstate(all="ignore"):
        found: list[Remark] = []
        for check in _CHECKS:
            found += check(seen)
            if any(each.kind in _ALONE for each in found):
                break  # factors and biases of so little mean nothing
        return tuple(found)[:3]


def remarks_of(case: Case) -> tuple[Remark, ...]:
    """Return remarks on D of the first tile that differs, and on what its wrong rows and columns share."""
    form = case.setting.instruction
    different = np.flatnonzero((case.expected != case.actual).any(axis=(1, 2)))
    if not len(different):
        return ()
    at = int(different[0])

    def values(operand: str, words: Words) -> Matrix:
        return numbers(codes_from(words[at], form, operand), form.format(operand))

    same = case.equal[at]
    wanted, got, c = values("d", case.expected), values("d", case.actual), values("c", case.registers["c"])
    shape = -1, got.shape[-1]
    seen = ResultComparison(
        expected=np.where(same, got, wanted).reshape(shape),
        actual=got.reshape(shape),
        c=c.reshape(shape),
        exact=not form.d.is_float,
        k=form.shape.k,
        **_sums(case, at),
    )
    return (*remarks(seen), *shared_causes(case.setting, ~same.reshape(shape)))


def _sums(case: Case, at: int) -> dict[str, Matrix]:
    setting, form = case.setting, case.setting.instruction
    if form.products > 1 or form.scale or setting.tiles is not None:
        return {}
    a, b = (codes_from(case.registers[name][at], form, name) for name in "ab")
    return {"column_sums": numbers(b, form.b).sum(axis=0), "row_sums": numbers(a, form.a).sum(axis=1)}


# --- D by itself ---------------------------------------------------------------------------------------


def _permuted(seen: ResultComparison) -> Iterator[Remark]:
    size = float(np.abs(seen.expected).max())
    yield from permutations(seen.expected, seen.actual, 0.0 if seen.exact else _TIGHT * size)


def _activated(seen: ResultComparison) -> Iterator[Remark]:
    """Yield an activation of D, and of A·B alone with C added after it."""
    plain = (RemarkKind.FUNCTION, seen.expected, np.zeros_like(seen.c))
    first = (RemarkKind.FUNCTION_FIRST, seen.products, seen.c)
    for kind, x, c in (plain, first) if seen.c.any() else (plain,):
        for name, function in ACTIVATIONS:
            wanted = function(x) + c
            if not seen.same(wanted, seen.expected) and seen.same(wanted, seen.actual):
                yield remark(kind, function=name)
                break


def _function_of_values(seen: ResultComparison) -> Iterator[Remark]:
    x, y = seen.expected, seen.actual
    if seen.exact or not is_function(x, y):
        return
    name = named_function(x, y, seen.spread)
    if name:
        yield remark(RemarkKind.FUNCTION, function=name)
    else:
        yield remark(RemarkKind.FUNCTION_UNKNOWN, pairs=sampled(x, y))


def _stored(seen: ResultComparison) -> Iterator[Remark]:
    """Yield types to which D was rounded, to nearest or toward zero."""
    for name in () if seen.exact else TYPES[::-1]:
        element = FORMATS[name]
        nearest = seen.expected.astype(element.dtype)
        codes, wide = nearest.view(element.code_dtype), nearest.astype(np.float64)
        beyond = np.abs(wide) > np.abs(seen.expected)
        cut = np.where(beyond, codes - element.code_dtype.type(1), codes).view(element.dtype)
        if np.array_equal(wide, seen.actual):
            yield remark(RemarkKind.NARROWED, format=name)
        elif np.array_equal(cut.astype(np.float64), seen.actual):
            yield remark(RemarkKind.TRUNCATED, format=name)


def _multiple(seen: ResultComparison) -> Iterator[Remark]:
    near = 2.0**-12 if seen.spread is None else 2.0**-9
    factor = _factor(seen.expected, seen.actual, near)
    if factor not in (None, 0, 1) and seen.same(factor * seen.expected, seen.actual):
        yield remark(RemarkKind.MULTIPLE, factor=factor)
        return
    factor = _factor(seen.products, seen.actual)
    if seen.c.any() and factor not in (None, 0, 1) and seen.same(factor * seen.products, seen.actual):
        yield remark(RemarkKind.PRODUCTS_MULTIPLE, factor=factor)


def _scaled_along(seen: ResultComparison) -> Iterator[Remark]:
    """Yield each row, or each column, is its own multiple of what was expected, or of the products."""
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
            if seen.spread is not None and seen.same(float((x * y).sum() / size.sum()) * x, y):
                return  # a single factor
            uneven = np.ptp(factor) > 2.0**-10 * np.abs(factor).max()
            if uneven and np.mean(np.abs(factor - 1) > 2.0**-10) > _MOST and seen.same(factor * x, y):
                low, high = float(factor.min()), float(factor.max())
                yield remark(RemarkKind.FACTORS, what=what, axis=name, low=low, high=high)
                return


# --- D without A·B -------------------------------------------------------------------------------------


def _of_c(seen: ResultComparison) -> Iterator[Remark]:
    rest = seen.actual - seen.products
    factor = _factor(seen.c, rest)
    if factor is not None and factor != 1 and seen.same(factor * seen.c, rest):
        yield remark(RemarkKind.C_MULTIPLE if factor else RemarkKind.C_MISSING, factor=factor)
        return
    level = float(np.round(rest.mean(), 5))
    if seen.c.any() and seen.same(rest, np.full_like(rest, level)):
        yield remark(RemarkKind.C_CONSTANT, level=level)


def _alpha_beta(seen: ResultComparison) -> Iterator[Remark]:
    if not seen.c.any() or seen.actual.size < _EQUATIONS:
        return
    system = np.stack([seen.products.reshape(-1), seen.c.reshape(-1)], axis=1)
    found, _, rank, _ = np.linalg.lstsq(system, seen.actual.reshape(-1), rcond=None)
    alpha, beta = (_near_simple(float(x), 2.0**-12) for x in found)
    if rank < 2 or alpha in (0, 1) or beta in (0, 1) or alpha == beta:
        return  # what others say
    if seen.same(alpha * seen.products + beta * seen.c, seen.actual):
        yield remark(RemarkKind.ALPHA_BETA, alpha=alpha, beta=beta)


def _rounded(seen: ResultComparison) -> Iterator[Remark]:
    off = np.abs(seen.actual - seen.expected)
    if not seen.exact and seen.same(seen.actual, seen.expected, _TIGHT):
        count = int((off > 0).sum())
        most = float(off.max() / max(np.abs(seen.expected).max(), 1e-300))
        yield remark(RemarkKind.ROUNDINGS, count=count, total=off.size, most=most)


def _both_zero_points(seen: ResultComparison) -> Iterator[Remark]:
    """Yield (A + a)·(B + b): a times the sums of B's columns, b times those of A's rows, and k·a·b."""
    if seen.column_sums is None or seen.row_sums is None or not seen.k:
        return
    if not (np.isfinite(seen.column_sums).all() and np.isfinite(seen.row_sums).all()):
        return  # of rows that metadata never select
    rest = seen.actual - seen.expected
    m, n = rest.shape
    sides = [np.broadcast_to(seen.column_sums, (m, n)), np.broadcast_to(seen.row_sums[:, None], (m, n))]
    system = np.stack([*(side.reshape(-1) for side in sides), np.ones(m * n)], axis=1)
    found, _, rank, _ = np.linalg.lstsq(system, rest.reshape(-1), rcond=None)
    a, b, level = (float(np.round(number, 6)) for number in found)
    fits = rank == 3 and a and b and seen.same((system @ np.array([a, b, level])).reshape(m, n), rest)
    if fits and abs(level - seen.k * a * b) <= 2.0**-10 * abs(level):
        yield remark(RemarkKind.ZERO_POINTS, a=a, b=b)


def _along(seen: ResultComparison) -> Iterator[Remark]:
    rest = seen.actual - seen.expected
    if min(rest.shape) < 2 or seen.same(rest, np.zeros_like(rest)):
        return
    weight = None if seen.spread is None else seen.spread**-2.0  # what is known best counts most
    columns, rows = (np.average(rest, axis=axis, weights=weight, keepdims=True) for axis in (0, 1))
    by_column, by_row = seen.same(rest, columns), seen.same(rest, rows)
    if by_column and by_row:
        yield remark(RemarkKind.BIAS, level=float(rest.mean()))
        return
    for flag, part, sums, name, operand in (
        (by_column, columns, seen.column_sums, "column", "A"),
        (by_row, rows, seen.row_sums, "row", "B"),
    ):
        if not flag:
            continue
        factor = None if sums is None else _factor(sums.reshape(part.shape), part)
        if sums is not None and factor and seen.same(factor * sums.reshape(part.shape), part):
            yield remark(RemarkKind.ZERO_POINT, operand=operand, level=factor)
        else:
            yield remark(RemarkKind.BIASES, axis=name)


def _other_c(seen: ResultComparison) -> Iterator[Remark]:
    """Yield the products are right, but the values added to them are not C."""
    rest = seen.actual - seen.products
    if not seen.c.any() or not rest.std() or is_function(seen.expected, seen.actual):
        return
    related = max(abs(_correlation(rest, other)) for other in (seen.c, seen.products))
    if related < _UNRELATED and not seen.same(rest, np.full_like(rest, rest.mean())):
        yield remark(RemarkKind.C_UNRELATED)


_UNRELATED = 0.25
_MOST = 0.5  # rows or columns must have a factor of their own


def _correlation(x: Matrix, y: Matrix) -> float:
    a, b = x - x.mean(), y - y.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size else 0.0


def _factor(x: Matrix, y: Matrix, near: float = 2.0**-12) -> float | None:
    """Return the number that y is times x, by least squares, near a simple fraction; None where x is zero."""
    size = float((x * x).sum())
    if not size:
        return None
    return _near_simple(float((x * y).sum()) / size, near)


def _near_simple(factor: float, near: float) -> float:
    simple = float(Fraction(factor).limit_denominator(64))
    return simple if abs(simple - factor) < near * max(abs(factor), 2.0**-4) else factor


_CHECKS: tuple[Callable[[ResultComparison], Iterator[Remark]], ...] = (
    _permuted,
    _activated,
    _stored,
    _rounded,
    _multiple,
    _of_c,
    _alpha_beta,
    _along,
    _both_zero_points,
    _scaled_along,
    _function_of_values,
    _other_c,
)


_FEWEST = 8  # elements beyond the diagonal


def masked(expected: Matrix, actual: Matrix, same: npt.NDArray[np.bool_]) -> Iterator[Remark]:
    """Yield that all elements above, or below, a diagonal are one value; ``same``: where D is right."""
    wrong = ~same
    row, column = np.nonzero(wrong)
    if len(row) < _FEWEST or same.sum() < _FEWEST:
        return
    apart = np.subtract.outer(np.arange(expected.shape[0]), np.arange(expected.shape[1]))
    for side, beyond, most in (
        ("above", -apart, (column - row).min()),
        ("below", apart, (row - column).min()),
    ):
        where: Any = beyond >= most
        values = np.unique(actual[where])
        if len(values) == 1 and (wrong <= where).all() and wrong[where].mean() > 0.5:
            first = f" from {most} on" if most > 1 else ", and on it" if most == 0 else ""
            yield remark(RemarkKind.MASKED, value=float(values[0]), side=side, first=first)
            return


_LISTED = 16  # places of a permutation
_FIRST = 4  # elements that are elsewhere


def permutations(x: Matrix, y: Matrix, tolerance: float = 0.0) -> Iterator[Remark]:
    """Yield how y holds the values of x; nothing if it does not, or if too many values are equal."""
    ranks = np.argsort(x, axis=None, kind="stable"), np.argsort(y, axis=None, kind="stable")
    same = np.abs(x.reshape(-1)[ranks[0]] - y.reshape(-1)[ranks[1]]) <= tolerance
    if len(np.unique(x)) < x.size // 2 or not same.all() or (np.abs(x - y) <= tolerance).all():
        return
    rows, columns = _order(x, y), _order(x.T, y.T)
    if rows and columns and np.array_equal(x[rows][:, columns], y):
        for kind, order in ((RemarkKind.ROWS, rows), (RemarkKind.COLUMNS, columns)):
            if moved := sum(i != j for i, j in enumerate(order)):
                yield remark(kind, order=_listed(order), moved=moved, count=len(order))
    else:
        source = np.empty(x.size, np.intp)
        source[ranks[1]] = ranks[0]
        yield _of_elements(source, x.shape)


def _order(x: Matrix, y: Matrix) -> list[int]:
    """Return which row of x has the values of each row of y, in any order; empty where some has none."""
    known = {row.tobytes(): at for at, row in enumerate(np.sort(x, axis=1))}
    found = [known.get(row.tobytes(), -1) for row in np.sort(y, axis=1)]
    return found if sorted(found) == list(range(len(x))) else []


def _listed(order: list[int]) -> str:
    return f"({', '.join(map(str, order[:_LISTED]))}{', …' if len(order) > _LISTED else ''})"


def _of_elements(source: npt.NDArray[np.intp], shape: tuple[int, ...]) -> Remark:
    moved = np.flatnonzero(source != np.arange(source.size))
    pairs = [(divmod(at, shape[1]), divmod(int(source[at]), shape[1])) for at in moved[:_FIRST].tolist()]
    first = ", ".join(f"D{list(at)} holds {list(origin)}" for at, origin in pairs)
    count = f", {len(moved)} of {source.size} of them elsewhere" if len(moved) < source.size else ""
    return remark(RemarkKind.ELEMENTS, count=count, first=first)


_ENOUGH = 64  # elements, from which a function is seen
_SMOOTH = 0.02  # of the deviation: how far an element may be from its neighbours by value
_BETTER = 0.5  # than a line through all elements, which a factor and a bias explain
_SAMPLE = 256  # elements, on which pairs of functions are judged first
_NEAR = 2.0**-18  # of an element, and of the largest: roundings of the function, and of the sums


def _normal(x: Matrix) -> Matrix:
    """Return the share of a normal distribution below x."""
    below: Matrix = np.vectorize(erf, otypes=[np.float64])(x / np.sqrt(2))
    return 0.5 * (1 + below)


ACTIVATIONS: tuple[tuple[str, Callable[[Matrix], Matrix]], ...] = (
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
_OTHERS: tuple[tuple[str, Callable[[Matrix], Matrix]], ...] = (
    ("squared", np.square),
    ("through exp", np.exp),
    ("through exp2", np.exp2),
    ("truncated to integers", np.trunc),
    ("rounded to integers", np.round),
    ("rounded down to integers", np.floor),
    ("through a softplus", lambda x: np.logaddexp(0, x)),
)


def is_function(x: Matrix, y: Matrix) -> bool:
    """Return whether elements of y follow from those of x, whatever their place, and not as a line does.

    Expected values that are neighbours in size have results that are neighbours: a function that is smooth
    nearly everywhere. What is noise around a line is none.
    """
    if x.size < _ENOUGH or not (np.isfinite(x).all() and np.isfinite(y).all()) or not np.ptp(x):
        return False
    order = np.argsort(x, axis=None, kind="stable")
    across, results = x.reshape(-1)[order], y.reshape(-1)[order]
    between = across[2:] - across[:-2]
    share = np.where(between > 0, across[1:-1] - across[:-2], 0.5) / np.where(between > 0, between, 1)
    apart = np.abs(results[1:-1] - (1 - share) * results[:-2] - share * results[2:]).mean()
    line = np.polynomial.Polynomial.fit(across, results, 1)
    off = float(np.abs(results - line(across)).mean())
    return bool(off > _NEAR * results.std() and apart < min(_SMOOTH * results.std(), _BETTER * off))


def named_function(x: Matrix, y: Matrix, spread: Matrix | None) -> str:
    """Return the function that y is of x, or two after each other; empty where none gives y.

    ``spread`` is how far each value of y is known.
    """
    known = np.zeros_like(y) if spread is None else spread
    every = np.linspace(0, x.size - 1, min(x.size, _SAMPLE)).astype(np.intp)
    sample = tuple(each.reshape(-1)[every] for each in (x, y, known))
    with np.errstate(all="ignore"):
        for name, function in _chains():
            if _gives(function, *sample) and _gives(function, x, y, known):
                return name
    return ""


def _gives(function: Callable[[Matrix], Matrix], x: Matrix, y: Matrix, known: Matrix) -> bool:
    made = function(x)
    step = _NEAR * np.abs(x).max()  # roundings of sums whose terms cancel
    stepped = np.abs(function(x + step) - made) + np.abs(function(x - step) - made)
    return bool((np.abs(made - y) <= known + _NEAR * np.abs(y) + stepped).all())


def _chains() -> Iterator[tuple[str, Callable[[Matrix], Matrix]]]:
    """Yield single functions, each of them twice, and two of them."""
    each = (*ACTIVATIONS, *_OTHERS)
    yield from each
    for name, function in each:
        yield f"{name}, twice", lambda x, f=function: f(f(x))  # type: ignore[misc]
    for first, f in each:
        for then, g in each:
            if f is not g:
                yield f"{first}, then {then}", lambda x, f=f, g=g: g(f(x))  # type: ignore[misc]


def sampled(x: Matrix, y: Matrix) -> str:
    """Return some pairs of expected and real values, from the smallest expected value to the largest."""
    order = np.argsort(x, axis=None, kind="stable")
    chosen = order[np.linspace(0, x.size - 1, 5).astype(np.intp)]
    return ", ".join(f"{x.reshape(-1)[at]:.4g} became {y.reshape(-1)[at]:.4g}" for at in chosen.tolist())
