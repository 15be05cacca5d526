"""Functions of each element of D: activations by name, one or two, and that there is such a function.

Works on matrices of values; does not know products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erf

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
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
