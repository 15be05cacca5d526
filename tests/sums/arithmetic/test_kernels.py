"""The compiled kernels on their own: against Python's exact numbers, and against themselves without the JIT.

Whole rules are compared with the reference in test_numerics.py.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import nasty
from warpsim.sums.arithmetic import numerics
from warpsim.sums.arithmetic.kernels.scalar.binary64 import (
    DOWN,
    NAN,
    NEAREST,
    TOWARD_ZERO,
    UP,
    fused_multiply_add,
)
from warpsim.sums.arithmetic.kernels.scalar.compiled import integer_sum
from warpsim.sums.arithmetic.kernels.scalar.rounding import bit_length, packed, rounded, shifted
from warpsim.sums.execution.pipeline import rule_for

ROOT = Path(__file__).resolve().parents[3]

# --- rounding --------------------------------------------------------------------------------------


@given(st.integers(0, 2**62 - 1))
@settings(deadline=None)
def test_bit_length_is_pythons(magnitude: int) -> None:
    assert bit_length(magnitude) == magnitude.bit_length()


def test_bit_length_at_every_power_of_two() -> None:
    for length in range(62):
        assert bit_length(1 << length) == length + 1
        assert bit_length((1 << length) - 1) == length


@given(st.integers(0, 2**40), st.integers(-200, 20))
@settings(deadline=None)
def test_shifted_cuts_toward_zero(magnitude: int, shift: int) -> None:
    assert shifted(magnitude, shift) == (magnitude << shift if shift >= 0 else magnitude >> -shift)


# precision, fraction bits, smallest and largest exponent, to nearest
F16 = (11, 10, -14, 15, True)
F32_CUT = (24, 23, -126, 127, False)
E8M13_CUT = (14, 23, -126, 127, False)


def code_of(total: int, lsb: int, output: tuple[int, int, int, int, bool]) -> int:
    """What the kernels make of ``total * 2**lsb``."""
    return int(packed(rounded(total, lsb, output), output))


def around_ties(precision: int, rng: nasty.Rng) -> list[int]:
    """Integers of all lengths below 2**40, many one off a tie or a representable number."""
    totals = []
    for _ in range(400):
        kept = int(rng.integers(1 << (precision - 1), 1 << precision))
        cut = int(rng.integers(0, 40 - precision))
        totals += [(kept << cut) + offset for offset in (-1, 0, 1, (1 << cut) // 2, (1 << cut) // 2 + 1)]
    totals += [int(total) for total in rng.integers(0, 2**20, 200)]
    return [total if rng.random() < 0.5 else -total for total in totals]


def test_f16_results_round_to_nearest_as_in_numpy() -> None:
    """The totals are exact in float64, which NumPy converts to f16 with one rounding."""
    rng = np.random.default_rng(16)
    totals = around_ties(11, rng)
    scales = [int(lsb) for lsb in rng.integers(-64, 10, len(totals))]
    with np.errstate(over="ignore"):
        values = np.array([float(total) * 2.0**lsb for total, lsb in zip(totals, scales, strict=True)])
        expected = values.astype(np.float16).view(np.uint16)
    expected = np.where(expected == 0x8000, 0, expected)  # tensor cores know no negative zero
    found = [code_of(total, lsb, F16) for total, lsb in zip(totals, scales, strict=True)]
    assert found == expected.tolist()
    assert {0, 0x7C00, 0xFC00} < set(found)


def unit_of(magnitude: Fraction, precision: int, smallest: int) -> Fraction:
    """The weight of the last of ``precision`` bits, at least ``2**smallest``."""
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    return Fraction(2) ** max(exponent - precision + 1, smallest)


def cut_toward_zero(total: int, lsb: int, precision: int) -> int:
    """The f32 code of ``total * 2**lsb`` cut to ``precision`` bits, in plain fractions."""
    magnitude = abs(total) * Fraction(2) ** lsb
    unit = unit_of(magnitude, precision, -126 - (precision - 1))
    magnitude = magnitude // unit * unit
    if magnitude >= Fraction(2) ** 128:
        return 0xFF800000 if total < 0 else 0x7F800000
    code: int = struct.unpack("<I", struct.pack("<f", float(magnitude)))[0]
    return code | 0x80000000 if total < 0 and magnitude else code


@pytest.mark.parametrize("output", [F32_CUT, E8M13_CUT], ids=["24 bits", "14 bits"])
def test_f32_results_are_cut_toward_zero(output: tuple[int, int, int, int, bool]) -> None:
    rng = np.random.default_rng(output[0])
    totals = around_ties(output[0], rng)
    scales = [int(rng.integers(*rng.choice([(-190, -110), (-10, 10), (80, 127)]))) for _ in totals]
    found = [code_of(total, lsb, output) for total, lsb in zip(totals, scales, strict=True)]
    assert found == [cut_toward_zero(t, lsb, output[0]) for t, lsb in zip(totals, scales, strict=True)]
    assert {0, 0x7F800000, 0xFF800000} < set(found)


@pytest.mark.parametrize(
    ("special", "sign", "code"),
    [(1, 1, 0x7C00), (1, -1, 0xFC00), (2, 0, 0x7FFF), (2, 1, 0x7FFF), (2, -1, 0x7FFF)],
)
def test_special_numbers_are_packed_without_payload(special: int, sign: int, code: int) -> None:
    assert packed((sign, 15, special), F16) == code


# --- fused multiply-add ----------------------------------------------------------------------------

ONE, MAX, INF, SIGN = 0x3FF << 52, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF << 52, 1 << 63


def fma(a: int, b: int, c: int, mode: int) -> int:
    """The kernel on unsigned codes."""
    signed = [code - (1 << 64) if code >> 63 else code for code in (a, b, c)]
    return int(fused_multiply_add(*signed, mode, np.zeros(8, np.int64))) % (1 << 64)


def number(code: int) -> Fraction:
    return Fraction(struct.unpack("<d", struct.pack("<Q", code))[0])


def exact_fma(a: int, b: int, c: int, mode: int) -> int:
    """The code of ``a * b + c``, not zero, rounded as IEEE 754 says, in plain fractions."""
    exact = number(a) * number(b) + number(c)
    negative, magnitude = exact < 0, abs(exact)
    unit = unit_of(magnitude, 53, -1074)
    kept, rest = divmod(magnitude, unit)
    away = {
        NEAREST: rest * 2 > unit or (rest * 2 == unit and kept % 2 == 1),
        TOWARD_ZERO: False,
        DOWN: negative and rest > 0,
        UP: not negative and rest > 0,
    }[mode]
    magnitude = (kept + away) * unit
    if magnitude >= Fraction(2) ** 1024:
        infinite = mode == NEAREST or (mode == DOWN and negative) or (mode == UP and not negative)
        code = INF if infinite else MAX
    else:
        code = struct.unpack("<Q", struct.pack("<d", float(magnitude)))[0]
    return code | SIGN if negative else code


def cases_at(distance: int, rng: nasty.Rng) -> list[tuple[int, int, int]]:
    """Factors near 1 and an addend ``2**distance`` as large, fractions empty, full or random."""

    def code(exponent: int) -> int:
        fraction = rng.choice([0, 1, 2**52 - 1, int(rng.integers(0, 2**52))])
        return int(rng.integers(0, 2)) << 63 | exponent + 1023 << 52 | int(fraction)

    return [(code(0), code(0), code(distance)) for _ in range(8)]


@pytest.mark.parametrize("mode", [NEAREST, TOWARD_ZERO, DOWN, UP])
def test_fma_is_exact_at_every_distance_of_the_addend(mode: int) -> None:
    rng = np.random.default_rng(mode)
    for distance in (*range(-135, 136), -1022, 1023):
        for a, b, c in cases_at(distance, rng):
            if number(a) * number(b) + number(c):
                assert fma(a, b, c, mode) == exact_fma(a, b, c, mode), (distance, hex(a), hex(b), hex(c))


RANGES = {  # exponent fields of the factors and of the addend
    "everything": ((0, 2046), (0, 2046)),
    "subnormal results": ((0, 1100), (0, 60)),
    "subnormal addends": ((450, 560), (0, 1)),
    "tiny products": ((1, 500), (0, 120)),
    "overflow": ((1500, 1560), (2000, 2046)),
    "huge products": ((1800, 2046), (0, 2046)),
}


@pytest.mark.parametrize("mode", [NEAREST, TOWARD_ZERO, DOWN, UP])
@pytest.mark.parametrize("ranges", RANGES.values(), ids=RANGES)
def test_fma_of_random_codes_is_exact(ranges: tuple[tuple[int, int], ...], mode: int) -> None:
    rng = np.random.default_rng(mode)

    def code(low: int, high: int) -> int:
        field = int(rng.integers(low, high, endpoint=True))
        return int(rng.integers(0, 2)) << 63 | field << 52 | int(rng.integers(0, 2**52))

    for _ in range(200):
        a, b, c = code(*ranges[0]), code(*ranges[0]), code(*ranges[1])
        if number(a) * number(b) + number(c):
            assert fma(a, b, c, mode) == exact_fma(a, b, c, mode), (hex(a), hex(b), hex(c))


@pytest.mark.parametrize(
    ("a", "b", "c", "results"),  # to nearest, toward zero, down, up
    [
        (ONE, ONE, SIGN | ONE, (0, 0, SIGN, 0)),
        (0, ONE, SIGN, (0, 0, SIGN, 0)),
        (SIGN, ONE, SIGN, (SIGN,) * 4),
        (SIGN, ONE, ONE, (ONE,) * 4),
        (MAX, MAX, 0, (INF, MAX, MAX, INF)),
        (MAX, SIGN | MAX, ONE, (SIGN | INF, SIGN | MAX, SIGN | INF, SIGN | MAX)),
        (1, 1, 0, (0, 0, 0, 1)),
        (1, SIGN | 1, 0, (SIGN, SIGN, SIGN | 1, SIGN)),
        (INF, ONE, SIGN | MAX, (INF,) * 4),
        (ONE, ONE, SIGN | INF, (SIGN | INF,) * 4),
        (INF, SIGN | ONE, INF, (NAN,) * 4),
        (INF, 0, ONE, (NAN,) * 4),
        (INF + 1, 0, 0, (NAN,) * 4),
        (0, 0, SIGN | (INF + 1), (NAN,) * 4),
    ],
)
def test_fma_of_zeros_and_special_numbers(a: int, b: int, c: int, results: tuple[int, ...]) -> None:
    assert tuple(fma(a, b, c, mode) for mode in (NEAREST, TOWARD_ZERO, DOWN, UP)) == results
    assert tuple(fma(b, a, c, mode) for mode in (NEAREST, TOWARD_ZERO, DOWN, UP)) == results


# --- integers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_integer_sums_follow_their_columns(saturate: bool, exclusive: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 128, (3, 4, 6)), rng.integers(0, 128, (3, 12, 5))
    c = rng.choice([2**31 - 1000, -(2**31), 0], (3, 4, 5))
    columns = rng.permuted(np.tile(np.arange(12), (3, 4, 1)), axis=-1)[..., :6].copy()
    result = np.empty((3, 4, 5), np.int64)
    integer_sum((a, b, c, columns), saturate, exclusive, result)
    for batch, i, j in np.ndindex(3, 4, 5):
        pairs = [(int(x), int(b[batch, k, j])) for x, k in zip(a[batch, i], columns[batch, i], strict=True)]
        total = int(c[batch, i, j]) + sum(x ^ y if exclusive else x * y for x, y in pairs)
        clamped = max(-(2**31), min(total, 2**31 - 1)) if saturate else total
        assert result[batch, i, j] == clamped % 2**32


# --- without the JIT -------------------------------------------------------------------------------

MODULES = ("binary64", "compiled", "rounding")
DOTS = 12


def one_of_each_rule() -> list[Any]:
    """The shortest arithmetic of each rule and result, dense and sparse, with each f64 rounding."""
    found: dict[Any, Any] = {}
    for form in sorted(nasty.arithmetics(), key=lambda form: form.stored_k):
        rule = type(rule_for(form)).__name__
        key = (rule, nasty.output(form), bool(form.scale), form.rounding, form.satfinite, form.bit_operation)
        found.setdefault((*key, form.sparse), form)
    return list(found.values())


def results() -> list[list[int]]:
    """Codes of some nasty dots of each rule."""
    codes = []
    for form in one_of_each_rule():
        for make in nasty.makers(form):
            rng = np.random.default_rng(7)
            operands = nasty.operands(form, make(form, DOTS, rng), rng)
            codes.append(numerics.compute(operands, rule_for(form)).reshape(-1).tolist())
    return codes


# Runs in a process of its own, and says which functions of the kernels it went through.
SCRIPT = """
import json, sys
from importlib import import_module
from tests.sums.arithmetic import test_kernels

modules = [import_module("warpsim.sums.arithmetic.kernels.scalar." + name) for name in test_kernels.MODULES]
files = {module.__file__ for module in modules}
called = set()
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename in files:
        called.add(frame.f_code.co_name)
sys.setprofile(note)
codes = test_kernels.results()
sys.setprofile(None)
there = {name for module in modules for name, value in vars(module).items()
         if getattr(value, "__module__", "") == module.__name__ and callable(value)}
print(json.dumps({"codes": codes, "missed": sorted(there - called), "called": len(called)}))
"""


def test_kernels_give_the_same_bits_without_the_jit() -> None:
    """Plain Python integers and NumPy scalars: any overflow or unsigned surprise would show, or warn."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["missed"] == []
    assert report["called"] > 15
    assert report["codes"] == results()
