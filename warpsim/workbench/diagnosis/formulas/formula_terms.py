"""Array expressions of a kernel's arguments: Python text, and values.

The text is executed on keys later (found_formulas.py); the values are compared now. Knows NumPy; does not
know kernels.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ....observe.algebra.builtin_references import causal, gelu, relu, silu, softmax

Array = npt.NDArray[Any]
_TIGHTER = ("*", "@")  # than +


@dataclass(frozen=True, kw_only=True, eq=False)
class Term:
    """An expression: its ``text``, behind assignments in ``lines``, and its ``values``.

    ``kinds`` are the formats that arguments are read as, by their index, "" as their dtype says. ``sign`` is
    the operator of the text, "" for a name or a call.
    """

    text: str
    values: Array
    lines: tuple[str, ...] = ()
    kinds: Mapping[int, str] = field(default_factory=dict)
    sign: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def inner(self) -> str:
        """The text as an operand."""
        return self.text if not self.sign else f"({self.text})"

    def mapped(self, text: str, function: Callable[[Array], Array]) -> Term:
        """Return a function of the values, with its text."""
        with np.errstate(all="ignore"):
            return replace(self, text=text, values=np.asarray(function(self.values)), sign="")

    def called(self, function: Callable[..., Any], *more: object) -> Term:
        """Return a function of the term."""
        text = f"{function.__name__}({', '.join(map(str, (self, *more)))})"
        return self.mapped(text, lambda x: function(x, *more))

    def bound(self, name: str) -> Term:
        """Return the term with a name of its own, in a line of its own."""
        if self.text.isidentifier():
            return self
        return replace(self, text=name, lines=(*self.lines, f"{name} = {self.text}"), sign="")

    def _joined(self, other: Term, sign: str, function: Callable[[Any, Any], Any]) -> Term:
        with np.errstate(all="ignore"):
            values = function(self.values, other.values)
        left = self.text if sign in ("+", self.sign) else self.inner
        right = other.text if sign == "+" and other.sign in _TIGHTER else other.inner
        return Term(
            text=f"{left} {sign} {right}",
            values=values,
            lines=tuple(dict.fromkeys((*self.lines, *other.lines))),
            kinds={**self.kinds, **other.kinds},
            sign=sign,
        )

    def __matmul__(self, other: Term) -> Term:
        return self._joined(other, "@", operator.matmul)

    def __mul__(self, other: Term) -> Term:
        return self._joined(other, "*", operator.mul)

    def __add__(self, other: Term) -> Term:
        return self._joined(other, "+", operator.add)

    def __sub__(self, other: Term) -> Term:
        return self._joined(other, "-", operator.sub)

    @property
    def transposed(self) -> Term:
        """The term with its last two axes exchanged."""
        if self.values.ndim == 2:
            return self.mapped(f"{self.inner}.T", np.transpose)
        return self.called(transposed)


def number(value: float, text: str = "") -> Term:
    """Return a constant, or an argument that is a number."""
    return Term(text=text or f"{value:.9g}", values=np.asarray(value, np.float64))


NIBBLE = 4  # bits


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def transposed(x: Any) -> Any:
    """Return an array with its last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


def blocks(x: Any, rows: int, columns: int) -> Any:
    """Return a matrix each element of which is repeated along both axes."""
    return np.repeat(np.repeat(x, rows, axis=0), columns, axis=1)


def nibbles(x: Any, count: int, axis: int = -1, signed: bool = False) -> Any:
    """Return the ``count`` numbers of 4 bits of each element along an axis, the lowest bits first."""
    parts = [x >> NIBBLE * part & 15 for part in range(count)]
    if signed:
        parts = [(part ^ 8) - 8 for part in parts]
    shape = [*x.shape]
    shape[axis] *= count
    return np.stack(parts, len(shape) if axis == -1 else axis + 1).reshape(shape)


FUNCTIONS = {
    each.__name__: each for each in (softmax, causal, relu, gelu, silu, sigmoid, transposed, blocks, nibbles)
}


_SMALL, _LARGE = 1e-9, 24.0  # an activation that has no inverse is inverted between these
_STEPS = 60  # of a bisection
_LEAST = 4  # elements that an activation can be inverted at
_FEW, _ROWS = 128, 4096  # elements that coefficients are solved from: first few, then more


@dataclass(frozen=True, kw_only=True)
class Activation:
    """A function, and its inverse, if any; else it grows for positive arguments, and is inverted
    there.
    """

    apply: Callable[[Any], Any]
    inverse: Callable[[Array], Array] | None = None

    def before(self, values: Array) -> tuple[Array, Array]:
        """Return which values have one argument, and these arguments."""
        if self.inverse is not None:
            with np.errstate(all="ignore"):
                found = self.inverse(values)
            return np.isfinite(found), found
        inside = (values > _SMALL) & (values < self.apply(np.float64(_LARGE)))
        left, right = np.zeros(values.shape), np.full(values.shape, _LARGE)
        for _ in range(_STEPS):
            middle = (left + right) / 2
            below = self.apply(middle) < values
            left, right = np.where(below, middle, left), np.where(below, right, middle)
        return inside, left


ACTIVATIONS = (
    Activation(apply=relu, inverse=lambda y: np.where(y > 0, y, np.nan)),
    Activation(apply=gelu),
    Activation(apply=silu),
    Activation(
        apply=sigmoid, inverse=lambda y: np.where((y > 0.01) & (y < 0.99), np.log(y / (1 - y)), np.nan)
    ),
    Activation(apply=np.tanh, inverse=lambda y: np.where(np.abs(y) < 0.99, np.arctanh(y), np.nan)),
    Activation(apply=np.exp, inverse=lambda y: np.where(y > 0, np.log(y), np.nan)),
)


def with_epilogue(
    products: Sequence[Term], addends: Sequence[Term], numbers: Sequence[Term], expected: Array, near: float
) -> list[Term]:
    """Return formulas of each product that give the expected values within ``near`` of their scale; with an
    activation, behind all or of the product alone, only where none is without.
    """
    given = addends, numbers, near

    def sums(terms: Sequence[Term]) -> list[Term]:
        plain = [found for each in terms if (found := _linear(each, *given, expected)) is not None]
        return [each for each in plain if fits(each.values, expected, near)]

    right = sums(products)
    if right:
        return right
    for activation in ACTIVATIONS:
        inside, before = activation.before(expected)
        if inside.sum() < _LEAST:
            continue
        before = np.where(inside, before, np.nan)
        inner = [found for each in products if (found := _linear(each, *given, before)) is not None]
        bent = [_activated(each, activation) for each in inner]
        right += [each for each in bent if fits(each.values, expected, near)]
    if addends and not right:
        right = sums([_activated(each, activation) for each in products for activation in ACTIVATIONS])
    return right


def _activated(term: Term, activation: Activation) -> Term:
    name, x = activation.apply.__name__, term.bound("x")
    return x.mapped(f"{'np.' * (name in ('tanh', 'exp'))}{name}({x})", activation.apply)


def fits(values: Array, expected: Array, near: float) -> bool:
    """Return whether all values are within ``near``, relative to the larger of value and scale."""
    with np.errstate(invalid="ignore"):
        close = np.abs(values - expected) <= near * np.maximum(np.abs(expected), _scale(expected))
    return bool((close | (np.isnan(values) & np.isnan(expected)) | (values == expected)).all())


def _scale(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(np.square(finite)))) or 1.0 if finite.size else 1.0


def _linear(
    product: Term, addends: Sequence[Term], numbers: Sequence[Term], near: float, wanted: Array
) -> Term | None:
    """Return ``by * product + ...`` of all addends with a coefficient; None where no fit is near.

    Elements that are not finite are left out.
    """
    places = np.flatnonzero(np.isfinite(wanted))
    others = [each for each in addends if each.text != product.text or each.kinds != product.kinds]
    for chosen in ([], others) if others else ([],):
        terms = [product, *chosen]
        solved = None
        for most in (_FEW, _ROWS):
            sample = places[:: max(len(places) // most, 1)]
            solved = None if len(places) < 2 * len(terms) else _solved(terms, sample, wanted, near)
            if solved is None:
                break
        if solved is not None:
            return _said(terms, *solved, numbers, near)
    return None


def _solved(terms: Sequence[Term], sample: Array, before: Array, near: float) -> tuple[Array, Array] | None:
    """Return the coefficients of terms at some elements, and the sizes of terms; None without a fit."""
    columns = [np.broadcast_to(each.values, before.shape).reshape(-1)[sample] for each in terms]
    matrix, wanted = np.stack(columns, 1).astype(np.float64), before.reshape(-1)[sample]
    if not np.isfinite(matrix).all() or not np.isfinite(wanted).all():
        return None
    found, *_ = np.linalg.lstsq(matrix, wanted, rcond=None)
    close = np.abs(matrix @ found - wanted) <= 4 * near * np.maximum(np.abs(wanted), _scale(wanted))
    return (found, np.sqrt(np.mean(np.square(matrix), axis=0))) if close.all() else None


def _said(
    terms: Sequence[Term], by: Array, sizes: Array, numbers: Sequence[Term], near: float
) -> Term | None:
    """Return the sum of terms that count, with coefficients that are arguments or short numbers."""
    sizes = np.abs(by) * sizes
    total: Term | None = None
    for term, factor, size in zip(terms, by.tolist(), sizes.tolist(), strict=True):
        if size <= near * sizes.max():
            continue
        chosen = coefficient(factor, numbers, near * sizes.max() / size)
        named = term.bound("product") if term is terms[0] and (len(terms) > 1 or chosen) else term
        scaled = named if chosen is None else chosen * named
        total = scaled if total is None else total + scaled
    return total


def coefficient(value: float, numbers: Sequence[Term], near: float) -> Term | None:
    """Return a factor: the argument that it is, a number of few bits, or itself; None for 1."""
    within = min(near, 2.0**-4) * abs(value)
    if abs(value - 1) <= within:
        return None
    for each in numbers:
        if abs(float(each.values) - value) <= within:
            return each
    for least in (16, 256, 4096):
        short = Fraction(value).limit_denominator(least)
        if short and abs(float(short) - value) <= within / 16:
            return number(float(short))
    return number(value)
