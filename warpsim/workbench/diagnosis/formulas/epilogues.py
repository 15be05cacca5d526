"""What is computed behind a product: factors, addends and an activation, solved from the expected values.

An activation is inverted where it can be; there the expected values are a linear function of product and
arguments, whose coefficients least squares give. Coefficients are arguments or numbers of few bits within the
precision of the values, or stay as they are. Knows terms and values; does not know kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ....observe.algebra.builtin_references import gelu, relu, silu
from .formula_terms import Array, Term, number, sigmoid

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
