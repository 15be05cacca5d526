"""A slow oracle of floating-point operations: fractions, and one function that rounds.

Knows PTX's semantics of every exact operation on f16, bf16, f32 and f64 as bits of one lane. Shares nothing
with what it judges: no NumPy, no floating point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import isqrt


@dataclass(frozen=True, eq=False)  # each is itself alone: quick to look up
class Kind:
    bits: int
    precision: int  # with the leading bit
    nan: int

    @cached_property
    def sign(self) -> int:
        return 1 << self.bits - 1

    @cached_property
    def infinity(self) -> int:
        return self.sign - (1 << self.precision - 1)

    @cached_property
    def bias(self) -> int:
        return (1 << self.bits - self.precision - 1) - 1

    @cached_property
    def lowest(self) -> int:
        """Exponent of the last bit of a subnormal number."""
        return 2 - self.bias - self.precision


KINDS = {
    "f16": Kind(16, 11, 0x7FFF),
    "bf16": Kind(16, 8, 0x7FFF),
    "f32": Kind(32, 24, 0x7FFFFFFF),
    "f64": Kind(64, 53, 0xFFF8000000000000),
}
NAN = "nan"
Value = Fraction | str  # a number, or NAN, "+inf", "-inf", "+0", "-0"


@cache
def power(exponent: int) -> Fraction:
    """Two to the power of it."""
    return Fraction(2) ** exponent


@lru_cache(1 << 17)  # forms share their sources
def decode(bits: int, kind: Kind) -> Value:
    sign, magnitude = bits & kind.sign, bits & (kind.sign - 1)
    if magnitude > kind.infinity:
        return NAN
    if magnitude == kind.infinity:
        return "-inf" if sign else "+inf"
    if not magnitude:
        return "-0" if sign else "+0"
    field, fraction = divmod(magnitude, 1 << kind.precision - 1)
    significand = fraction + (1 << kind.precision - 1 if field else 0)
    number = Fraction(significand) * power(max(field, 1) - 1 + kind.lowest)
    return -number if sign else number


def floor_log2(number: Fraction) -> int:
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if number >= power(guess) else guess - 1


def to_integer(number: Fraction, exponent: int, mode: str) -> int:
    """``number`` / 2**``exponent``, rounded."""
    over, under = number.numerator << max(-exponent, 0), number.denominator << max(exponent, 0)
    below, rest = divmod(over, under)
    if mode == "rn":
        up = 2 * rest > under or (2 * rest == under and below % 2 == 1)
    else:
        up = (rest > 0 and mode == "rp") or (rest > 0 and mode == "rz" and over < 0)
    return below + up


def encode(value: Value, kind: Kind, mode: str, ftz: bool = False) -> int:
    names = {
        NAN: kind.nan,
        "+0": 0,
        "-0": kind.sign,
        "+inf": kind.infinity,
        "-inf": kind.sign | kind.infinity,
    }
    if isinstance(value, str):
        return names[value]
    sign = kind.sign if value < 0 else 0
    unit = floor_log2(abs(value)) - kind.precision + 1
    if ftz and unit + abs(to_integer(value, unit, mode)).bit_length() <= 1 - kind.bias:
        return sign
    last = max(unit, kind.lowest)
    steps = abs(to_integer(value, last, mode))
    if not steps:
        return sign
    exponent = last + steps.bit_length() - 1
    if exponent > kind.bias:  # rounding toward a side stops at the largest number
        finite = mode == "rz" or mode == ("rm" if value > 0 else "rp")
        return sign | (kind.infinity - finite)
    if exponent < 1 - kind.bias:
        return sign | steps
    fraction = (steps << kind.precision - 1 >> steps.bit_length() - 1) - (1 << kind.precision - 1)
    return sign | exponent + kind.bias << kind.precision - 1 | fraction


def is_negative(value: Value) -> bool:
    return value[0] == "-" if isinstance(value, str) else value < 0


def number(value: Value) -> Fraction:
    return Fraction(0) if isinstance(value, str) else value


def add(a: Value, b: Value, mode: str) -> Value:
    if NAN in (a, b) or {a, b} == {"+inf", "-inf"}:
        return NAN
    for infinite in ("+inf", "-inf"):
        if infinite in (a, b):
            return infinite
    total = number(a) + number(b)
    if total:
        return total
    if is_negative(a) == is_negative(b):
        return "-0" if is_negative(a) else "+0"
    return "-0" if mode == "rm" else "+0"


def signed(negative: bool, name: str) -> str:
    return ("-" if negative else "+") + name


def mul(a: Value, b: Value) -> Value:
    if NAN in (a, b):
        return NAN
    negative = is_negative(a) != is_negative(b)
    infinite = any(str(value).endswith("inf") for value in (a, b))
    zero = any(str(value) in ("+0", "-0") for value in (a, b))
    if infinite:
        return NAN if zero else signed(negative, "inf")
    return signed(negative, "0") if zero else number(a) * number(b)


def div(a: Value, b: Value) -> Value:
    if NAN in (a, b):
        return NAN
    negative = is_negative(a) != is_negative(b)
    infinite = [str(value).endswith("inf") for value in (a, b)]
    zero = [str(value) in ("+0", "-0") for value in (a, b)]
    if all(infinite) or all(zero):
        return NAN
    if infinite[0] or zero[1]:
        return signed(negative, "inf")
    if infinite[1] or zero[0]:
        return signed(negative, "0")
    return number(a) / number(b)


def root(a: Value) -> Value:
    if a in (NAN, "+0", "-0", "+inf"):
        return a
    if is_negative(a):
        return NAN
    a = number(a)
    scale = 1 << 1400
    near = isqrt(a.numerator * scale * scale // a.denominator)
    if Fraction(near, scale) ** 2 == a:
        return Fraction(near, scale)
    return Fraction(2 * near + 1, 2 * scale)  # on the right side of every number of few bits


EXACT: dict[str, Callable[..., Value]] = {
    "add": add,
    "sub": lambda a, b, mode: add(a, mul(b, Fraction(-1)), mode),
    "mul": lambda a, b, mode: mul(a, b),
    "fma": lambda a, b, c, mode: add(mul(a, b), c, mode),
    "mad": lambda a, b, c, mode: add(mul(a, b), c, mode),
    "div": lambda a, b, mode: div(a, b),
    "rcp": lambda a, mode: div(Fraction(1), a),
    "sqrt": lambda a, mode: root(a),
}


def flush(bits: int, kind: Kind) -> int:
    return bits & kind.sign if not bits & kind.infinity else bits


def evaluate(
    opcode: str,
    bits: list[int],
    kinds: list[str],
    result: str,
    mode: str = "rn",
    ftz: bool = False,
    clamp: str = "",
) -> int:
    """Bits of the result of an exact operation."""
    kind = KINDS[result]
    if ftz:
        bits = [flush(word, KINDS[name]) for word, name in zip(bits, kinds, strict=True)]
    values = [decode(word, KINDS[name]) for word, name in zip(bits, kinds, strict=True)]
    value = EXACT[opcode](*values, mode)
    if value == NAN and result == "f64":
        return next((word | 1 << 51 for word, one in zip(bits, values, strict=True) if one == NAN), kind.nan)
    found = encode(value, kind, mode, ftz)
    return clamped(found, kind, clamp)


def clamped(bits: int, kind: Kind, clamp: str) -> int:
    value = decode(bits, kind)
    if clamp == "sat":
        if value == NAN or is_negative(value):
            return 0
        return encode(Fraction(1), kind, "rn") if value == "+inf" or number(value) > 1 else bits
    return 0 if clamp == "relu" and value != NAN and is_negative(value) else bits


def order(value: Value) -> tuple[Fraction, int]:
    if str(value).endswith("inf"):
        return Fraction(-1 if value == "-inf" else 1) * power(2000), 0
    return number(value), value != "-0"


def extremum(opcode: str, bits: list[int], name: str, modifiers: set[str]) -> int:
    """Bits of min or max."""
    kind = KINDS[name]
    if "ftz" in modifiers:
        bits = [flush(word, kind) for word in bits]
    sign = (bits[0] ^ bits[1]) & kind.sign if "xorsign" in modifiers else 0
    if "abs" in modifiers:
        bits = [word & ~kind.sign for word in bits]
    numbers = [word for word in bits if decode(word, kind) != NAN]
    if not numbers or ("NaN" in modifiers and len(numbers) < len(bits)):
        return bits[1] | 1 << 51 if name == "f64" else kind.nan
    pick = min if opcode == "min" else max
    return pick(numbers, key=lambda word: order(decode(word, kind))) | sign
