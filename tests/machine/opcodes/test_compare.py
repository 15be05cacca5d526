"""Comparisons and choices against Python's fractions, and against C's."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache

import ml_dtypes
import numpy as np
import pytest

from tests.helpers.c_programs import CASES as C_CASES
from tests.helpers.c_programs import compiled
from tests.helpers.families import usual
from tests.helpers.opcode_values import Reference, check_operation, lanes_of, number, operations
from warpsim.machine.bind.value_types import bits_of
from warpsim.machine.opcodes.integer import compare

FORMS = {
    f"{opcode}.{'.'.join(words)}": (opcode, words, operation)
    for opcode, words, operation in operations(compare.ROWS)
}

# --- references: floating numbers as fractions, NaN as None --------------------------------------------

_FRACTION_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


@lru_cache(1 << 17)  # forms share their nasty values
def _real(bits: int, type_name: str, flush: bool) -> Fraction | float | None:
    """The number of a code: exact, an infinity, or None for a NaN."""
    if type_name not in _FRACTION_BITS:
        return Fraction(number(bits, type_name))
    fraction_bits, width = _FRACTION_BITS[type_name], bits_of(type_name)
    digits = f"{bits:0{width}b}"
    sign, exponent, fraction = digits[0] == "1", digits[1:-fraction_bits], int(digits[-fraction_bits:], 2)
    if "0" not in exponent:
        return None if fraction else (-math.inf if sign else math.inf)
    if "1" not in exponent and flush:
        fraction = 0
    bias = (1 << (len(exponent) - 1)) - 1
    hidden = int("1" in exponent)
    magnitude = Fraction(fraction + (hidden << fraction_bits), 1 << fraction_bits)
    magnitude *= Fraction(2) ** (max(int(exponent, 2), 1) - bias)
    return -magnitude if sign else magnitude


# For less, equal, greater, unordered.
_TRUTH = {
    "eq": "0100", "ne": "1010", "lt": "1000", "le": "1100", "gt": "0010", "ge": "0110",
    "lo": "1000", "ls": "1100", "hi": "0010", "hs": "0110",
    "equ": "0101", "neu": "1011", "ltu": "1001", "leu": "1101", "gtu": "0011", "geu": "0111",
    "num": "1110", "nan": "0001",
}  # fmt: skip
_COMBINE = {"and": "0001", "or": "0111", "xor": "0110"}


def _compared(words: tuple[str, ...], a: int, b: int) -> bool:
    type_name = words[-1].removesuffix("x2")
    left, right = (_real(value, type_name, "ftz" in words) for value in (a, b))
    return _TRUTH[words[0]][_relation(left, right)] == "1"


def _relation(left: Fraction | float | None, right: Fraction | float | None) -> int:
    """0 to 3: less, equal, greater, unordered."""
    if left is None or right is None:
        return 3
    return 1 + (left > right) - (left < right)


def _combined(words: tuple[str, ...], result: bool, source: tuple[int, ...]) -> bool:
    return _COMBINE[words[1]][2 * result + source[0]] == "1" if source else result


def _predicates(words: tuple[str, ...]) -> Reference:
    def reference(a: int, b: int, *source: int) -> tuple[int, ...]:
        if words[-1].endswith("x2"):
            both = [_compared(words, x, y) for x, y in ((a % 65536, b % 65536), (a >> 16, b >> 16))]
        else:
            both = [_compared(words, a, b), not _compared(words, a, b)]
        kept = both[:1] if words[-1] in ("f16", "bf16") else both
        return tuple(_combined(words, result, source) for result in kept)

    return reference


@cache
def _true(result_type: str) -> int:
    """1.0, as other programs encode it, or all ones."""
    ones = {"f32": np.float32(1).view(np.uint32), "f16": np.float16(1).view(np.uint16)}
    ones["bf16"] = np.array(1, ml_dtypes.bfloat16).view(np.uint16)[()]
    return int(ones.get(result_type, 2 ** bits_of(result_type) - 1))


def _set(words: tuple[str, ...]) -> Reference:
    result_type = words[-2]

    def reference(a: int, b: int, *source: int) -> tuple[int]:
        if not words[-1].endswith("x2"):
            return (_true(result_type) * _combined(words, _compared(words, a, b), source),)
        true = _true(result_type.removesuffix("x2")) % 65536
        low = _combined(words, _compared(words, a % 65536, b % 65536), source)
        return (true * low + (true * _combined(words, _compared(words, a >> 16, b >> 16), source) << 16),)

    return reference


def _chosen(words: tuple[str, ...]) -> Reference:
    def reference(a: int, b: int, c: int) -> tuple[int]:
        condition = _real(c, words[-1], "ftz" in words)
        return (a if condition is not None and condition >= 0 else b,)

    return reference


def _class(words: tuple[str, ...]) -> Reference:
    name, type_name = words
    least = np.finfo({"f32": np.float32, "f64": np.float64}[type_name]).smallest_normal

    def reference(a: int) -> tuple[int]:
        real = _real(a, type_name, False)
        finite = isinstance(real, Fraction)
        large = finite and (real == 0 or abs(real) >= Fraction(float(least)))
        return (
            {
                "finite": finite,
                "infinite": isinstance(real, float),
                "number": real is not None,
                "notanumber": real is None,
                "normal": large,
                "subnormal": finite and not large,
            }[name],
        )

    return reference


def _signed(words: tuple[str, ...]) -> Reference:
    top = 2 ** (bits_of(words[0]) - 1)
    return lambda a, b: (b % top + (top if a >= top else 0),)


_REFERENCES: dict[str, Callable[[tuple[str, ...]], Reference]] = {
    "setp": _predicates,
    "set": _set,
    "selp": lambda words: lambda a, b, p: (a if p else b,),
    "slct": _chosen,
    "testp": _class,
    "copysign": _signed,
}

# Forms that differ in their comparison alone share a test: there are thousands.
GROUPS: dict[tuple[str, tuple[str, ...]], list[str]] = {}
for form, (opcode, words, _) in FORMS.items():
    group = words[1:] if opcode in ("setp", "set") else words[:1]
    GROUPS.setdefault((opcode, tuple(word for word in group if word not in _COMBINE)), []).append(form)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: ".".join((group[0], *group[1])))
def test_as_python_computes(group: tuple[str, tuple[str, ...]]) -> None:
    for name in GROUPS[group]:
        opcode, words, operation = FORMS[name]
        lanes = lanes_of(operation, name, usual(25, 120) if opcode in ("setp", "set") else usual(150, 600))
        check_operation(operation, _REFERENCES[opcode](words), lanes)


@pytest.mark.parametrize("name", [name for name in C_CASES if name in FORMS])
def test_as_c_computes(name: str) -> None:
    operation = FORMS[name][2]
    check_operation(operation, compiled(name, operation), lanes_of(operation, f"C {name}"))


@pytest.mark.parametrize("type_name", ["f16", "bf16"])
@pytest.mark.parametrize("flush", ["", "ftz"])
def test_every_narrow_code_against_some(type_name: str, flush: str) -> None:
    """All 65,536 codes beside a few, by every comparison."""
    if flush and type_name == "bf16":
        return
    codes = np.arange(65536, dtype=np.uint16)
    exact = [_real(code, type_name, bool(flush)) for code in range(65536)]
    reals = [None if real is None else float(real) for real in exact]
    assert reals == exact
    for other in (0x0000, 0x8001, 0x0400, 0x7E00):
        relations = np.array([_relation(real, reals[other]) for real in reals])
        for name, truth in _TRUTH.items():
            if name in ("lo", "ls", "hi", "hs"):
                continue
            operation = FORMS[".".join(filter(None, ("setp", name, flush, type_name)))][2]
            (found,) = operation.compute(codes, np.array(other, np.uint16))
            assert np.array_equal(found, np.array([one == "1" for one in truth])[relations])
