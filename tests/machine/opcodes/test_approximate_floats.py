"""The approximate functions: the manual's special values, its errors, and all values of f16 and bf16."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.helpers.float_samples import random
from tests.helpers.slow_floats import KINDS, NAN, decode, encode, flush, number
from warpsim.machine.bind.value_types import dtype_of
from warpsim.machine.opcodes.floating.approximate import ROWS
from warpsim.machine.opcodes.operation import Operation

OPERATIONS = {
    ".".join([row.opcode, *filter(None, choice)]): row.build(*choice)
    for row in ROWS
    for choice in row.forms()
}
INF, NEGATIVE_INF, QUIET = "+inf", "-inf", NAN

# PTX ISA 9.0, sections 9.7.3.13 to 9.7.3.22, 9.7.4.9, 9.7.4.10: results for -Inf, -1.5, -0, +0, +Inf and NaN.
SPECIAL: dict[str, tuple[str | None, ...]] = {
    "rcp": ("-0", None, NEGATIVE_INF, INF, "+0", QUIET),
    "sqrt": (QUIET, QUIET, "-0", "+0", INF, QUIET),
    "rsqrt": (QUIET, QUIET, NEGATIVE_INF, INF, "+0", QUIET),
    "sin": (QUIET, None, "-0", "+0", QUIET, QUIET),
    "cos": (QUIET, None, "one", "one", QUIET, QUIET),
    "lg2": (QUIET, QUIET, NEGATIVE_INF, NEGATIVE_INF, INF, QUIET),
    "ex2": ("+0", None, "one", "one", INF, QUIET),
    "tanh": ("-one", None, "-0", "+0", "one", QUIET),
}


def compute(operation: Operation, bits: list[list[int]] | np.ndarray) -> list[int]:  # type: ignore[type-arg]
    """Results for rows of bits of the sources, the first half of each for x2 types."""
    columns = np.array(bits, np.uint64).reshape(-1, len(operation.sources)).T
    arrays = [column.astype(dtype_of(name)) for column, name in zip(columns, operation.sources, strict=True)]
    (result,) = operation.compute(*arrays)
    return result.tolist()


def bits_of_name(name: str, scalar: str) -> int:
    kind = KINDS[scalar]
    one = encode(Fraction(1), kind, "rn")
    return {"one": one, "-one": one | kind.sign}.get(name) or encode(name, kind, "rn")


def canonical_nan(name: str, scalar: str) -> int:
    return 0x7FFFFFFF00000000 if name.endswith("approx.ftz.f64") else KINDS[scalar].nan


@pytest.mark.parametrize(
    "name", [name for name in OPERATIONS if not name.startswith("div") and "x2" not in name]
)
def test_special_values(name: str) -> None:
    scalar = name.rpartition(".")[2]
    kind = KINDS[scalar]
    three_halves = encode(Fraction(-3, 2), kind, "rn")
    nan = kind.infinity | 1 << kind.precision - 2
    specials = [encode("-inf", kind, "rn"), three_halves, kind.sign, 0, kind.infinity, nan]
    found = compute(OPERATIONS[name], [[bits] for bits in specials])
    for source, have, want in zip(specials, found, SPECIAL[name.partition(".")[0]], strict=True):
        if want is not None:
            expected = bits_of_name(want, scalar) if want != NAN else canonical_nan(name, scalar)
            if scalar == "f64" and want == NAN and source == nan and "ftz" not in name:
                expected = nan
            assert have == expected, f"{source:#x}: {have:#x}"


@pytest.mark.parametrize(
    "name", [name for name in OPERATIONS if "ftz" in name and "x2" not in name and "div" not in name]
)
def test_ftz_takes_subnormal_sources_for_zero(name: str) -> None:
    scalar = name.rpartition(".")[2]
    kind = KINDS[scalar]
    subnormals = [1, kind.sign | 1, (1 << kind.precision - 1) - 1, kind.sign | 5 << kind.precision - 4]
    zeros = [flush(bits, kind) for bits in subnormals]
    assert compute(OPERATIONS[name], [[bits] for bits in subnormals]) == compute(
        OPERATIONS[name], [[bits] for bits in zeros]
    )


def exponential(value: float) -> float:
    return math.inf if value > 1100 else math.exp2(value) if hasattr(math, "exp2") else 2.0**value


REFERENCES: dict[str, Callable[[float], float]] = {
    "rcp": lambda x: 1 / x, "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "sin": math.sin,
    "cos": math.cos, "lg2": math.log2, "ex2": exponential, "tanh": math.tanh,
}  # fmt: skip


def references(name: str, bits: list[int], scalar: str) -> list[tuple[int, int, float]]:
    """Index, source, and the function's value by the math module, of finite sources in its domain."""
    function = REFERENCES[name.partition(".")[0]]
    positive = name.partition(".")[0] in ("sqrt", "rsqrt", "lg2")
    kept = []
    for index, word in enumerate(bits):
        value = decode(word, KINDS[scalar])
        if isinstance(value, Fraction) and not (positive and value < 0):
            kept.append((index, word, function(float(value))))
    return kept


def ulps(have: int, value: float, scalar: str) -> Fraction:
    """Distance of a result from the function's value, in units of the result's last place."""
    kind = KINDS[scalar]
    near = encode(Fraction(value), kind, "rn") if math.isfinite(value) and value else None
    if near is None or decode(have, kind) in ("+inf", "-inf"):
        return Fraction(0 if near is None or near == have else 99)
    exponent = max((near & (kind.sign - 1)) >> kind.precision - 1, 1) - 1 + kind.lowest
    return abs(number(decode(have, kind)) - Fraction(value)) / Fraction(2) ** exponent


@pytest.mark.parametrize(
    "name", [name for name in OPERATIONS if "x2" not in name and "div" not in name and "f64" not in name]
)
def test_within_one_unit_of_the_last_place(name: str) -> None:
    scalar = name.rpartition(".")[2]
    kind = KINDS[scalar]
    bits = (
        list(range(1 << 16)) if kind.bits == 16 else random(scalar, 4000, np.random.default_rng(3)).tolist()
    )
    if "ftz" in name:
        bits = [word for word in bits if flush(word, kind) == word]
    found = compute(OPERATIONS[name], [[word] for word in bits])
    for index, word, value in references(name, bits, scalar):
        tiny = abs(value) < 2.0 ** (1 - kind.bias)
        if "ftz" in name and tiny:
            assert found[index] & ~kind.sign in (0, 1 << kind.precision - 1), hex(word)
        else:
            assert ulps(found[index], value, scalar) <= Fraction(51, 100), hex(word)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.endswith("x2")])
def test_halves_are_computed_apart(name: str) -> None:
    low = np.arange(0, 1 << 16, 7, dtype=np.uint32)
    high = low[::-1]
    pairs = np.array(compute(OPERATIONS[name], (high << np.uint32(16) | low)[:, None]))
    alone = np.array(compute(OPERATIONS[name.removesuffix("x2")], low[:, None]))
    assert np.array_equal(pairs & 0xFFFF, alone)
    assert np.array_equal(pairs >> 16, alone[::-1])


@pytest.mark.parametrize("name", ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"])
def test_only_the_upper_word_is_computed(name: str) -> None:
    bits = [word for word in random("f64", 3000, np.random.default_rng(4)).tolist() if word & 0x7FF << 52]
    found = compute(OPERATIONS[name], [[word] for word in bits])
    assert not any(word & 0xFFFFFFFF for word in found)
    upper = [[word >> 32 << 32] for word in bits]
    assert compute(OPERATIONS[name], upper) == found
    for index, word, value in references(name, [word for (word,) in upper], "f64"):
        if 2.0**-1000 < abs(value) < 2.0**1000:
            have = number(decode(found[index], KINDS["f64"]))
            assert abs(have - Fraction(value)) <= abs(Fraction(value)) * Fraction(1, 1 << 20), hex(word)


def single(value: float | str) -> int:
    return encode(value if isinstance(value, str) else Fraction(value), KINDS["f32"], "rn")


@pytest.mark.parametrize(
    ("name", "a", "b", "wanted"),
    [
        ("div.approx.f32", 3.0, 2.0, 1.5),
        ("div.approx.f32", 3.0, 2.0**126, 3 * 2.0**-126),
        ("div.approx.f32", 3.0, 1.5 * 2.0**126, "+0"),
        ("div.approx.f32", -3.0, 2.0**127, "-0"),
        ("div.approx.f32", "+inf", -(2.0**127), NAN),
        ("div.approx.f32", "+inf", 2.0**126, "+inf"),
        ("div.approx.f32", 3.0, "-inf", "-0"),
        ("div.approx.f32", 3.0, 2.0**-140, "+inf"),
        ("div.approx.f32", 2.0**-140, 2.0**-140, 1.0),
        ("div.approx.ftz.f32", 2.0**-140, 2.0**-140, NAN),
        ("div.approx.ftz.f32", 1.0, 2.0**-140, "+inf"),
        ("div.full.f32", 2.0**127, 2.0**127, 1.0),
        ("div.full.f32", 2.0**-140, 2.0**-140, 1.0),
        ("div.full.f32", 1.0, 2.0**127, 2.0**-127),
        ("div.full.ftz.f32", -1.0, 2.0**127, "-0"),
        ("div.full.f32", "+0", "+0", NAN),
    ],
)
def test_division(name: str, a: float | str, b: float | str, wanted: float | str) -> None:
    (found,) = compute(OPERATIONS[name], [[single(a), single(b)]])
    assert found == single(wanted)


def test_every_operation_states_why_it_is_approximate() -> None:
    assert all(operation.fidelity == "approximate" and operation.note for operation in OPERATIONS.values())
