"""sin, cos, lg2, ex2 and tanh where the last bits of float64 decide: as sums of fractions, with any NumPy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest

from tests.helpers.slow_floats import KINDS, encode
from warpsim.machine.opcodes.floating import approximate
from warpsim.machine.opcodes.floating.approximate import ROWS

_CUT = 1 << 400  # terms and results are cut to so many parts

# --- the functions as sums of fractions ---------------------------------------------------------------


def series(term: Callable[[int], Fraction]) -> Fraction:
    total = Fraction(0)
    for n in count():
        step = term(n)
        total = Fraction(int((total + step) * _CUT), _CUT)
        if n > 8 and abs(step) < Fraction(8, _CUT):
            return total
    raise AssertionError


@cache
def factorial(n: int) -> int:
    return n * factorial(n - 1) if n else 1


def exponential(x: Fraction) -> Fraction:
    return series(lambda n: x**n / factorial(n))


def natural(x: Fraction) -> Fraction:
    """ln, by twice the area tangent, of 1/2 to 2."""
    small = (x - 1) / (x + 1)
    return 2 * series(lambda n: small ** (2 * n + 1) / (2 * n + 1))


LN2 = natural(Fraction(2))


def binary_logarithm(x: Fraction) -> Fraction:
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent + natural(x / Fraction(2) ** exponent) / LN2


def tangent(x: Fraction) -> Fraction:
    square = exponential(2 * x)
    return (square - 1) / (square + 1)


FUNCTIONS: dict[str, Callable[[Fraction], Fraction]] = {
    "sin": lambda x: series(lambda n: (-1) ** n * x ** (2 * n + 1) / factorial(2 * n + 1)),
    "cos": lambda x: series(lambda n: (-1) ** n * x ** (2 * n) / factorial(2 * n)),
    "lg2": binary_logarithm,
    "ex2": lambda x: exponential(x * LN2) if x.denominator > 1 else Fraction(2) ** int(x),
    "tanh": tangent,
}

# Sources whose results lie within 8 units of float64's last place of where the rounding to f32 turns.
HARD = [
    ("sin", 0x3DCF5597), ("sin", 0x3FA0FA4E), ("sin", 0x3EF3830F),
    ("cos", 0x3E5FA70E), ("cos", 0x4010A4BF), ("cos", 0x3FAA2672),
    ("lg2", 0x4E554996), ("tanh", 0x40ACB4D0), ("ex2", 0xC3160000),
]  # fmt: skip
ORDINARY = (0x3F800001, 0x3EAAAAAB, 0x40490FDB, 0x3C23D70A)


def operation(name: str, type_name: str) -> Any:
    row = next(row for row in ROWS if row.opcode == name and type_name in row.slots[-1])
    return row.build("approx", "", type_name).compute


@pytest.mark.parametrize(("name", "source"), [*HARD, *((x, y) for x in FUNCTIONS for y in ORDINARY)])
def test_results_are_the_nearest(name: str, source: int) -> None:
    bits = np.array(source, np.uint32)
    exact = FUNCTIONS[name](Fraction(float(bits.view(np.float32))))
    assert int(operation(name, "f32")(bits)[0]) == encode(exact, KINDS["f32"], "rn")
    assert operation(name, "f32")(bits[None])[0].shape == (1,)


def other_cpu(function: Callable[[Any], Any], units: int) -> Callable[[Any], Any]:
    """A function whose results are so many units of the last place off."""
    return lambda x: function(x) * (1 + units * 2.0**-53)


@pytest.mark.parametrize("units", [-7, 7])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_do_not_hang_on_the_last_bits(name: str, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"f32"} if name in ("sin", "cos", "lg2") else {"f32", "f16", "bf16"}
    sources = {kind: np.arange(1 << 16, dtype=np.uint16) for kind in kinds}
    random = np.random.default_rng(3).integers(0, 1 << 32, 20_000, np.uint32)
    hard = np.array([source for one, source in HARD if one == name], np.uint32)
    sources["f32"] = np.concatenate([hard, random])
    before = {kind: operation(name, kind)(sources[kind])[0] for kind in kinds}
    function = approximate._FUNCTIONS[name]
    monkeypatch.setitem(approximate._FUNCTIONS, name, other_cpu(function, units))
    for kind in kinds:
        assert np.array_equal(operation(name, kind)(sources[kind])[0], before[kind]), kind


@pytest.mark.parametrize(("name", "angle"), [("sin", 0x7F7FFFFF), ("cos", 0x7F7FFFFF), ("sin", 0x5A0D1B71)])
def test_large_angles_are_reduced(name: str, angle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides, asked of every source, says the same as NumPy where that is certain."""
    bits = np.array([angle], np.uint32)
    expected = operation(name, "f32")(bits)[0]
    monkeypatch.setattr(approximate.transcendental, "_ABOVE", 1.001)
    assert np.array_equal(operation(name, "f32")(bits)[0], expected)
