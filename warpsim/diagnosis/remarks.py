"""What D itself tells, without knowing which mistake was made: it is a permutation of what was expected, a
multiple of it, rounded, cut off at zero, or off by something that depends on C, on the column or on the row.

Works on matrices of values, of one instruction or of a whole product. Says nothing that needs lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..environment import in_default_environment

Matrix = npt.NDArray[np.float64]
_SMALL = 2.0**-18  # of the size of the values: what roundings of some steps may come to


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Values ``(m, n)``: D as expected and as it came out, C, and the sums of B's columns and A's rows.

    ``exact`` tells that nothing is rounded: integers.
    """

    expected: Matrix
    actual: Matrix
    c: Matrix
    column_sums: Matrix
    row_sums: Matrix
    exact: bool = False

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


# --- D by itself ---------------------------------------------------------------------------------------


def _permuted(seen: Seen) -> Iterator[str]:
    x, y = seen.expected, seen.actual
    if len(np.unique(x)) < x.size // 2 or not np.array_equal(np.sort(x, axis=None), np.sort(y, axis=None)):
        return
    rows, columns = _order(x, y), _order(x.T, y.T)
    if rows is not None:
        yield f"D's rows are permuted: row r holds what belongs in row {_listed(rows)}"
    elif columns is not None:
        yield f"D's columns are permuted: column j holds what belongs in column {_listed(columns)}"
    elif _quads(x, y):
        yield "D is stored as if lane l had elements 4 * l to 4 * l + 3 (addressed as lane * 4)"
    else:
        place = {value: divmod(at, x.shape[1]) for at, value in enumerate(x.reshape(-1).tolist())}
        found = [place[value] for value in y.reshape(-1)[:4].tolist()]
        first = [f"D{list(divmod(at, x.shape[1]))} holds {list(one)}" for at, one in enumerate(found)]
        yield f"D is a permutation of the expected values: {', '.join(first)}, …"


def _order(x: Matrix, y: Matrix) -> list[int] | None:
    """Which row of x each row of y is."""
    known = {row.tobytes(): at for at, row in enumerate(np.ascontiguousarray(x))}
    found = [known.get(row.tobytes(), -1) for row in np.ascontiguousarray(y)]
    return found if sorted(found) == list(range(len(x))) else None


def _quads(x: Matrix, y: Matrix) -> bool:
    """Whether y holds the fragments of x in the order of lanes, four elements each."""
    if x.shape != (16, 8):
        return False
    lane = np.arange(32)[:, None]
    row, column = lane // 4 + 8 * np.array([0, 0, 1, 1]), lane % 4 * 2 + np.array([0, 1, 0, 1])
    return bool((x[row, column].reshape(16, 8) == y).all())


def _listed(order: list[int]) -> str:
    shown = ", ".join(map(str, order[:16]))
    return f"({shown}{', …' if len(order) > 16 else ''})[{'r' if len(order) == 16 else 'i'}]"


def _clipped(seen: Seen) -> Iterator[str]:
    if (seen.expected < 0).any() and seen.same(np.maximum(seen.expected, 0), seen.actual):
        yield "D is the expected one with negative values set to zero (ReLU)"


def _narrowed(seen: Seen) -> Iterator[str]:
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        if np.array_equal(seen.expected.astype(dtype).astype(np.float64), seen.actual) and not seen.exact:
            yield f"D is the expected one rounded to {name} on its way"


def _multiple(seen: Seen) -> Iterator[str]:
    factor = _factor(seen.expected, seen.actual)
    if factor is not None and factor not in (0, 1) and seen.same(factor * seen.expected, seen.actual, _SMALL):
        yield f"D is {_text(factor)} times what was expected (D times {_text(factor)}): alpha, or a scale"


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
        yield f"D - A·B is {_text(level)} everywhere: C is not what was passed"


def _along(seen: Seen) -> Iterator[str]:
    rest = seen.actual - seen.expected
    if not rest.any() or min(rest.shape) < 2:
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
        factor = _factor(sums.reshape(part.shape), part)
        if factor is not None and factor and seen.same(factor * sums.reshape(part.shape), part):
            yield f"{operand}: zero point: every element of {operand} is {_text(factor)} more than was passed"
        else:
            yield f"D differs from the expected by the same in each {name}: a bias per {name}"


def _other_c(seen: Seen) -> Iterator[str]:
    """The products are there, but what is added to them is not C."""
    rest, products = seen.actual - seen.products, seen.products
    if not seen.c.any() or not rest.std():
        return
    related = [abs(_correlation(rest, other)) for other in (seen.c, products)]
    if max(related) < _UNRELATED:
        yield (
            "D - A·B has nothing to do with C: what is added to the products is something else (garbage in "
            "the accumulators, or C from elsewhere)"
        )


_UNRELATED = 0.25


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
    _clipped,
    _narrowed,
    _multiple,
    _of_c,
    _along,
    _other_c,
)
