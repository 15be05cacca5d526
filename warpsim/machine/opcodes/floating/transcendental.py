"""sin, cos, lg2, ex2 and tanh, rounded once and the same on every machine.

NumPy computes them in float64 with what the CPU has, and on another CPU the last bits are others: of ex2 for
one source in twenty, by up to three units for tanh. That changes a result only where a rounding to f32, f16
or bf16 is decided by those bits. There Python's decimal arithmetic decides.

Does not know formats, nor how results are rounded. Relies, as its callers, on float64 to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from functools import cache
from math import inf, nextafter

import numpy as np

from ..operation import Values

_ABOVE, _BELOW = 1 + 2.0**-48, 1 - 2.0**-48  # 16 units of float64's last place: NumPy promises 4
_DIGITS = 130  # 2**-150 has 105, and the largest f32 has 39 before the point

Exact = Callable[[Decimal], Decimal]


def settled(value: Values, source: Values, exact: Exact, rounded: Callable[[Values], Values]) -> Values:
    """Return bits of a function: what ``rounded`` makes of ``value``, or where in doubt of the ``exact``
    value.
    """
    above, below = rounded(np.asarray(value * _ABOVE)), rounded(np.asarray(value * _BELOW))
    undecided = np.asarray(above != below)
    if not undecided.any():
        return above
    sources = np.broadcast_to(source, undecided.shape)[undecided]
    bits = np.array(above)
    bits[undecided] = rounded(np.array([to_odd(exact, float(value)) for value in sources]))
    return bits


def to_odd(exact: Exact, source: float) -> float:
    """Return the function's value as float64: itself, or whichever of its two neighbours has its last bit
    set.
    """
    with localcontext(Context(prec=_DIGITS)):
        value = exact(Decimal(source))
    near = float(value)
    if value == Decimal(near) or np.float64(near).view(np.int64) & 1:
        return near
    return nextafter(near, inf if value > Decimal(near) else -inf)


# --- the functions, in the context of their caller --------------------------------------------------------


@cache
def _pi() -> Decimal:
    """pi = 16 arctan 1/5 - 4 arctan 1/239 (Machin), to a few digits more than sources need."""
    with localcontext(Context(prec=2 * _DIGITS)):
        return 16 * _arctan_of_inverse(5) - 4 * _arctan_of_inverse(239)


def _arctan_of_inverse(number: int) -> Decimal:
    return sum(
        (Decimal((-1) ** n) / ((2 * n + 1) * Decimal(number) ** (2 * n + 1)) for n in range(2 * _DIGITS)),
        Decimal(0),
    )


def _series(angle: Decimal, first: int) -> Decimal:
    """Return the sum of (-1)**i angle**n / n! over n = first, first + 2, ..., of an angle of at most pi."""
    term = angle**first if first else Decimal(1)
    total, n = term, first
    while abs(term) > Decimal(10) ** -_DIGITS * abs(total):
        term *= -angle * angle / ((n + 1) * (n + 2))
        total, n = total + term, n + 2
    return total


def _reduced(angle: Decimal) -> Decimal:
    """Return the angle less a multiple of 2 pi."""
    with localcontext(Context(prec=2 * _DIGITS)):
        turns = (angle / (2 * _pi())).to_integral_value()
        return angle - turns * 2 * _pi()


def sine(angle: Decimal) -> Decimal:
    """sin of a finite angle other than 0."""
    return _series(_reduced(angle), 1)


def cosine(angle: Decimal) -> Decimal:
    """Return cos of a finite angle."""
    return _series(_reduced(angle), 0)


def logarithm(number: Decimal) -> Decimal:
    """log2 of a positive number; of a power of two not exactly."""
    return number.ln() / Decimal(2).ln()


def power(exponent: Decimal) -> Decimal:
    """2 to a power that float64 holds."""
    return Decimal(2) ** exponent


def hyperbolic_tangent(number: Decimal) -> Decimal:
    """tanh of a finite number."""
    square = (2 * number).exp()
    return (square - 1) / (square + 1)
