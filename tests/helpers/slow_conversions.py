"""cvt one lane at a time, in Python's integers: an oracle that shares nothing with warpsim.

Numbers are sign, magnitude and power of two; a rounding is one floor division of signed integers. What PTX
does not document is written down here a second time, from the machine code that ptxas makes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

FIELDS = {  # exponent bits, fraction bits, what the top codes are
    "f64": (11, 52, "ieee"), "f32": (8, 23, "ieee"), "tf32": (8, 10, "ieee"), "f16": (5, 10, "ieee"),
    "bf16": (8, 7, "ieee"), "e5m2": (5, 2, "ieee"), "e4m3": (4, 3, "fn"), "e3m2": (3, 2, "finite"),
    "e2m3": (2, 3, "finite"), "e2m1": (2, 1, "finite"),
}  # fmt: skip
PLACES = {"e3m2": 8, "e2m3": 8}
INTEGERS = frozenset(f"{kind}{bits}" for kind in "us" for bits in (8, 16, 32, 64))
ROUNDINGS = {"rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi"}
NAN, INFINITE = "nan", "infinite"
Number = tuple[int, int | str, int]  # sign, magnitude, exponent of two
Elements = tuple[str, int, int]  # of what kind, how many bits apart, how many
NO_BITS = Fraction(0)


@cache
def width(name: str) -> int:
    if name == "ue8m0":
        return 8
    return 1 + FIELDS[name][0] + FIELDS[name][1] if name in FIELDS else int(name[1:])


@cache
def limits(name: str) -> tuple[int, int, int]:
    """Bias, exponent of the smallest normal number's last place, code of the largest finite number."""
    exponent, fraction, kind = FIELDS[name]
    bias = 2 ** (exponent - 1) - 1
    ones = 2 ** (exponent + fraction) - 1
    largest = {"ieee": ones - 2**fraction, "fn": ones - 1, "finite": ones}[kind]
    return bias, 1 - bias - fraction, largest


def number(code: int, name: str) -> Number:
    if name == "ue8m0":
        return (1, NAN, 0) if code == 255 else (1, 1, code - 127)
    _, fraction, kind = FIELDS[name]
    _, last, largest = limits(name)
    sign = -1 if code >> (width(name) - 1) else 1
    code %= 1 << (width(name) - 1)
    if code > largest:
        return sign, INFINITE if kind == "ieee" and code == largest + 1 else NAN, 0
    field, rest = divmod(code, 1 << fraction)
    return (sign, rest + (1 << fraction), last + field - 1) if field else (sign, rest, last)


def whole(value: int, shift: int, rounding: str, random: Fraction = NO_BITS) -> int:
    """value / 2**shift rounded to an integer."""
    if shift <= 0:
        return value << -shift
    down, rest = divmod(value, 1 << shift)
    if not rest:
        return down
    half = 1 << (shift - 1)
    toward_zero = down + (value < 0)
    if rounding == "rs":
        lost = Fraction(rest if value > 0 else (1 << shift) - rest, 1 << shift)
        return toward_zero + (1 if value > 0 else -1) * (lost + random >= 1)
    if rounding == "rn":
        return down + (rest > half or (rest == half and down % 2 == 1))
    if rounding == "rna":
        return down + (rest > half or (rest == half and value > 0))
    return {"rz": toward_zero, "rm": down, "rp": down + 1}[rounding]


def code_of(value: Number, name: str, rounding: str, satfinite: bool, random: Fraction = NO_BITS) -> int:
    """The code of a number that is not a NaN."""
    if name == "ue8m0":
        return scale_of(value, rounding, satfinite)
    sign, magnitude, exponent = value
    _, fraction, kind = FIELDS[name]
    _, smallest, largest = limits(name)
    bit = (sign < 0) << (width(name) - 1)
    infinity = largest if satfinite or kind == "finite" else largest + 1
    if magnitude == INFINITE:
        return bit | infinity
    assert isinstance(magnitude, int)
    if magnitude == 0:
        return bit
    last = max(exponent + magnitude.bit_length() - 1 - fraction, smallest)
    rounded = abs(whole(sign * magnitude, last - exponent, rounding, random))
    if rounded == 2 << fraction:
        rounded, last = 1 << fraction, last + 1
    code = rounded if rounded < 1 << fraction else ((last - smallest) << fraction) + rounded
    if code > largest:
        inward = rounding == "rz" or (rounding == "rm" and sign > 0) or (rounding == "rp" and sign < 0)
        code = largest if inward else infinity
    return bit | code


def scale_of(value: Number, rounding: str, satfinite: bool) -> int:
    _, magnitude, exponent = value
    top = 254 if satfinite else 255
    if magnitude == INFINITE:
        return top
    assert isinstance(magnitude, int)
    if magnitude == 0:
        return 0
    power = magnitude.bit_length() - 1
    up = rounding == "rp" and magnitude != 1 << power
    return min(max(exponent + power + up + 127, 0), top)


# --- whole forms -----------------------------------------------------------------------------------


def signed_value(bits: int, name: str) -> int:
    size = int(name[1:])
    bits %= 1 << size
    return bits - (1 << size) if name[0] == "s" and bits >> (size - 1) else bits


@cache
def span(name: str) -> tuple[int, int]:
    size = int(name[1:])
    return (-(1 << (size - 1)), (1 << (size - 1)) - 1) if name[0] == "s" else (0, (1 << size) - 1)


def flushed(code: int, name: str) -> int:
    return code & 0x8000_0000 if name == "f32" and not code & 0x7F80_0000 else code


@cache
def rounding_of(flags: frozenset[str]) -> str:
    return next((x for x in flags if x in ROUNDINGS), "")


def element(code: int, result: str, source: str, flags: frozenset[str], random: Fraction = NO_BITS) -> int:
    """One element under any modifiers."""
    rounding = rounding_of(flags)
    if source in INTEGERS:
        return from_integer(signed_value(code, source), result, rounding, flags)
    code %= 1 << width(source)
    before = code
    if "ftz" in flags:
        code = flushed(code, source)
    value = number(code, source)
    if result in INTEGERS:
        return to_integer(value, result, source, rounding)
    if value[1] == NAN:
        return nan_of(before, result, source, rounding, flags)
    made = rounded_code(value, result, source, rounding, flags, random)
    return clamped(made, result, flags)


def rounded_code(
    value: Number, result: str, source: str, rounding: str, flags: frozenset[str], random: Fraction
) -> int:
    sign, magnitude, exponent = value
    if rounding.endswith("i") and isinstance(magnitude, int):
        value = sign, abs(whole(sign * magnitude, -exponent, rounding[:2])), 0
        rounding = "rz"
    made = code_of(value, result, rounding or "rn", "satfinite" in flags, random)
    if "ftz" in flags and source == "f64":
        return made & 0x8000_0000 if tiny(value, rounding) else made
    return flushed(made, result) if "ftz" in flags else made


def tiny(value: Number, rounding: str) -> bool:
    """Whether f64 to f32 flushes: one comparison with a constant, strict, as in the code that ptxas makes."""
    sign, magnitude, exponent = value
    if not isinstance(magnitude, int):
        return False
    outward = (rounding, sign) in (("rp", 1), ("rm", -1))
    below = Fraction(1, 2**151) if rounding == "rn" else Fraction(1, 2**150) if outward else Fraction(0)
    return magnitude * Fraction(2) ** exponent < Fraction(1, 2**126) - below


def clamped(code: int, name: str, flags: frozenset[str]) -> int:
    if name == "ue8m0" or not flags & {"sat", "relu"}:
        return code
    if code >> (width(name) - 1):
        return 0
    bias = limits(name)[0]
    return min(code, bias << FIELDS[name][1]) if "sat" in flags else code


def nan_of(code: int, result: str, source: str, rounding: str, flags: frozenset[str]) -> int:
    """What a NaN becomes."""
    if "sat" in flags:
        return 0
    if source == result in ("f32", "f64") and not rounding and "ftz" not in flags:
        return code
    if (result, source) == ("f32", "bf16") and "ftz" not in flags:
        return code << 16
    if (result, source) == ("f64", "f32") and "ftz" in flags:
        return 0x7FFF_FFFF_E000_0000
    if "f64" in (result, source):
        return quiet(code, result, source)
    return (1 << (width(result) - (result != "ue8m0"))) - 1


def quiet(code: int, result: str, source: str) -> int:
    sign, (exponent, fraction, _) = code >> (width(source) - 1), FIELDS[result]
    own = FIELDS[source][1]
    payload = Fraction(code % (1 << own), 1 << own)
    top = ((sign << exponent) | ((1 << exponent) - 1)) << fraction
    return top | 1 << (fraction - 1) | int(payload * (1 << fraction))


def from_integer(value: int, result: str, rounding: str, flags: frozenset[str]) -> int:
    if result in INTEGERS:
        low, high = span(result)
        return (min(max(value, low), high) if "sat" in flags else value) % (1 << int(result[1:]))
    made = code_of((-1 if value < 0 else 1, abs(value), 0), result, rounding, False)
    return clamped(made, result, flags)


def to_integer(value: Number, result: str, source: str, rounding: str) -> int:
    sign, magnitude, exponent = value
    low, high = span(result)
    size = int(result[1:])
    if magnitude == NAN:
        return 1 << (size - 1) if source == "f64" or size == 64 else 0
    if magnitude == INFINITE:
        return (high if sign > 0 else low) % (1 << size)
    assert isinstance(magnitude, int)
    near = whole(sign * magnitude, -min(exponent, 80), rounding[:2])  # beyond 2**80 all is clamped
    return min(max(near, low), high) % (1 << size)


def away_tf32(code: int, flags: frozenset[str]) -> int:
    """cvt.rna.tf32.f32 is a handful of integer instructions."""
    sign, magnitude = code & 0x8000_0000, code & 0x7FFF_FFFF
    if magnitude < 0x7F80_0000:
        magnitude += 0x1000
    magnitude -= magnitude % 0x2000
    if "satfinite" in flags and magnitude >= 0x7F80_0000:
        magnitude -= 0x2000
    return sign | magnitude


def random_fractions(rbits: int, result: str) -> list[Fraction]:
    """The random bits of each element, uppermost first, as fractions of a unit in its last place."""
    text = f"{rbits:032b}"
    if result == "f16x2":
        return [Fraction(int(x, 2), 1 << 13) for x in (text[3:16], text[19:32])]
    if result == "bf16x2":
        return [Fraction(int(x, 2), 1 << 16) for x in (text[:16], text[16:])]
    halves = [text[:16], text[16:]]
    if result == "e2m1x4":
        halves = [text[0:8] + text[16:24], text[8:16] + text[24:32]]
    shares = [halves[0][::-1], halves[0], halves[1][::-1], halves[1]]
    return [Fraction(int(x, 2), 1 << 16) for x in shares]


def packed_name(name: str) -> tuple[str, int]:
    return (name[:-2], int(name[-1])) if name[-2:] in ("x2", "x4") else (name, 1)


def expected(modifiers: tuple[str, ...], sources: tuple[int, ...]) -> int:
    """The result of any cvt, as bits."""
    if modifiers[0] == "pack":
        return packed_integers(modifiers[2], sources)
    flags, (name, place, count), (source, own, from_count) = parts(modifiers)
    if name == "tf32" and "rna" in flags:
        return away_tf32(sources[0], flags)
    if name == "tf32":
        return element(sources[0], name, source, flags) << 13
    if count == 1:
        return element(sources[0], name, source, flags)
    if from_count > 1:
        codes = [sources[0] >> own * (from_count - 1 - i) for i in range(from_count)]
    else:
        codes = list(sources[:count])
    random = random_fractions(sources[-1], modifiers[-2]) if "rs" in flags else [NO_BITS] * count
    total = 0
    for code, bits in zip(codes, random, strict=True):
        total = total << place | element(code, name, source, flags, bits)
    return total


@cache
def parts(modifiers: tuple[str, ...]) -> tuple[frozenset[str], Elements, Elements]:
    """The flags, the elements of the result and those of the source."""
    result, source = (
        (name, PLACES.get(name, width(name)), count) for name, count in map(packed_name, modifiers[-2:])
    )
    return frozenset(modifiers[:-2]), result, source


def packed_integers(name: str, sources: tuple[int, ...]) -> int:
    size = int(name[1:])
    low, high = span(name)
    fields = [min(max(signed_value(x, "s32"), low), high) % (1 << size) for x in sources[:2]]
    rest = sources[2] << 2 * size if len(sources) > 2 else 0
    return (rest | fields[0] << size | fields[1]) % (1 << 32)
