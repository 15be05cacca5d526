"""Programs of rules in Python integers: every intermediate of a dot product, by its name.

Shares no arithmetic with the reference, the oracle of this: codes are rounded to by search among the codes of
the format, whose values grow with them. Does not know rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...isa.formats import FORMATS, Format, Specials
from .rule_operations import Program

FINITE, INFINITE, NAN = range(3)
_ROUNDS_AWAY: dict[
    str, Callable[[bool, int, int], bool]
] = {  # negative, twice the rest minus a unit, last bit
    "rn": lambda negative, over, odd: over + odd > 0,
    "rz": lambda negative, over, odd: False,
    "rm": lambda negative, over, odd: negative,
    "rp": lambda negative, over, odd: not negative,
    "ra": lambda negative, over, odd: over >= 0,
    "away": lambda negative, over, odd: True,
}
CUTS = {  # modes of a cut as those of rounding
    "zero": "rz",
    "down": "rm",
    "up": "rp",
    "nearest": "rn",
    "halves up": "ra",
    "away": "away",
}
TO_NEAREST = ("rn", "ra")  # of which too large is Inf


class Number(NamedTuple):
    """``(-1)**negative * significand * 2**scale``, an Inf or a NaN.

    ``exponent`` is that by which it is aligned: of the exponent field, or the sum of the factors'. ``live``
    says that it takes part in the alignment: a group that cancels is zero, and live.
    """

    kind: int
    negative: bool
    significand: int
    scale: int
    exponent: int
    live: bool

    @property
    def signed(self) -> int:
        """The significand with its sign."""
        return -self.significand if self.negative else self.significand


def run(program: Program, inputs: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the value of every operation by its name, of codes by the names of the program's inputs.

    Numbers are lists of Number, units lists of integers, everything else is an integer.
    """
    values: dict[str, Any] = {each.name: list(inputs[each.name]) for each in program.inputs}
    for each in program.operations:
        values[each.result] = _OPERATIONS[each.name](*(values[name] for name in each.values), *each.given)
    return values


# --- codes and numbers -----------------------------------------------------------------------------


def number_of(code: int, element: Format) -> Number:
    """Return the number of a code; bits beyond the format, and those the multiplier ignores, are dropped."""
    code &= element.mask
    if not element.is_float:
        value = code - (1 << element.bits) if code & element.sign_bit else code
        return Number(FINITE, value < 0, abs(value), 0, 0, value != 0)
    negative, magnitude = bool(code & element.sign_bit), (code & ~element.sign_bit) >> element.ignored_bits
    significand, exponent = _fields(magnitude, element)
    kind = _kind(magnitude, element)
    return Number(kind, negative, significand, exponent - element.fraction_bits, exponent, significand != 0)


def _fields(magnitude: int, element: Format) -> tuple[int, int]:
    """Return significand and exponent of a magnitude's code, as if all were finite."""
    field, fraction = divmod(magnitude, 1 << element.fraction_bits)
    if element.has_zero and field == 0:
        return fraction, element.minimum_exponent
    return fraction + (1 << element.fraction_bits), field - element.bias


def _kind(magnitude: int, element: Format) -> int:
    largest = (1 << element.exponent_bits + element.fraction_bits) - 1
    if element.specials is Specials.ONE_NAN:
        return NAN if magnitude == largest else FINITE
    if element.specials is Specials.NONE:
        return FINITE
    infinity = largest - (1 << element.fraction_bits) + 1
    return FINITE if magnitude < infinity else INFINITE if magnitude == infinity else NAN


def code_of(value: int, unit: int, element: Format, precision: int, rounding: str, overflows: bool) -> int:
    """Return the code of the magnitude of ``value * 2**unit``, rounded once to ``precision`` bits.

    ``overflows`` makes Inf of a truncated magnitude that is too large.
    """
    step = element.fraction_bits + 1 - precision
    least = element.minimum_exponent - element.fraction_bits
    down = min(unit, least)  # the scale of all that is compared
    wanted = abs(value) << unit - down

    def at(place: int) -> int:
        significand, exponent = _fields(place << step, element)
        return significand << exponent - element.fraction_bits - down

    low, high = 0, element.infinity >> step
    if at(high) <= wanted:
        low = high
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle) <= wanted else (low, middle)
    if low << step < element.infinity and (rest := wanted - at(low)):
        over = 2 * rest - (at(low + 1) - at(low))
        low += _ROUNDS_AWAY[rounding](value < 0, over, low % 2)
    elif low << step == element.infinity and not overflows and not _ROUNDS_AWAY[rounding](value < 0, 1, 1):
        return element.infinity - 1
    return low << step


def _special(numbers: Sequence[Number], element: Format) -> int | None:
    """Return the code of a sum in which a number is an Inf or a NaN; None where all are finite."""
    signs = {each.negative for each in numbers if each.kind == INFINITE}
    if len(signs) > 1 or any(each.kind == NAN for each in numbers):
        return element.canonical_nan
    return (element.infinity | (element.sign_bit if signs.pop() else 0)) if signs else None


def _exact(numbers: Sequence[Number]) -> tuple[int, int]:
    """Return the sum of finite numbers, and its scale."""
    scale = min(each.scale for each in numbers)
    return sum(each.signed << each.scale - scale for each in numbers), scale


# --- operations ------------------------------------------------------------------------------------


def _read(codes: Any, element: str, subnormals: str = "") -> list[Number]:
    every = codes if isinstance(codes, list) else [codes]
    return [_as_read(number_of(code, FORMATS[element]), FORMATS[element], subnormals) for code in every]


def _as_read(number: Number, element: Format, subnormals: str) -> Number:
    """Return a subnormal number as zero, aligned by its leading bit, or the largest as the next number."""
    normal = 1 << element.fraction_bits
    if not subnormals or not 0 < number.significand < normal:
        return number
    if subnormals == "zero":
        return number._replace(significand=0, live=False)
    if subnormals == "leading":
        return number._replace(exponent=_leading(number))
    return number._replace(significand=number.significand + (number.significand == normal - 1))


def _leading(number: Number) -> int:
    """Return the exponent of the leading 1 bit; of zero, Inf and NaN its exponent."""
    finite = number.kind == FINITE and number.significand
    return number.scale + number.significand.bit_length() - 1 if finite else number.exponent


def _multiplied(left: Sequence[Number], right: Sequence[Number], aligned: str = "") -> list[Number]:
    found = list[Number]()
    for x, y in zip(left, right, strict=True):
        kind, significand = max(x.kind, y.kind), x.significand * y.significand
        if kind == INFINITE and not significand:
            kind = NAN
        exponent, live = x.exponent + y.exponent, x.live and y.live
        number = Number(kind, x.negative != y.negative, significand, x.scale + y.scale, exponent, live)
        if aligned:
            least = exponent if aligned == "carried" else _leading(number)
            number = number._replace(exponent=max(least, _leading(number)))
        found.append(number)
    return found


def _combined(left: Sequence[Number], right: Sequence[Number], operation: str) -> list[Number]:
    bits = [
        x.significand ^ y.significand if operation == "xor" else x.significand & y.significand
        for x, y in zip(left, right, strict=True)
    ]
    return [Number(FINITE, False, bit, 0, 0, bit != 0) for bit in bits]


def _converted(numbers: Sequence[Number], element: str, rounding: str = "rn") -> list[Number]:
    return [number_of(_ieee([each], element, rounding), FORMATS[element]) for each in numbers]


def _top(
    numbers: Sequence[Number],
    of: Sequence[Number],
    floor: int,
    zeros: str = "",
    places: Sequence[int] | None = None,
) -> int:
    """Return the largest exponent; zeros of some places count, too: "all", or "negative"."""
    counted = range(len(of)) if places is None else places
    live = [
        each.live or (zeros and at in counted and not each.significand and (zeros == "all" or each.negative))
        for at, each in enumerate(of)
    ]
    return max([floor, *(each.exponent for each, counts in zip(numbers, live, strict=True) if counts)])


def _summed(numbers: Sequence[Number], count: int) -> list[Number]:
    found = list[Number]()
    for start in range(0, len(numbers), count):
        members = numbers[start : start + count]
        total, scale = _exact(members)
        kind, live = max(each.kind for each in members), any(each.live for each in members)
        found.append(Number(kind, total < 0, abs(total), scale, 0, live))
    return found


def _cut(numbers: Sequence[Number], unit: int, mode: str, other: str = "", place: int = -1) -> list[int]:
    modes = [mode] * len(numbers)
    modes[place] = other or mode
    return [_in_units(each, unit, own) for each, own in zip(numbers, modes, strict=True)]


def _in_units(number: Number, unit: int, mode: str) -> int:
    """Return a number in units of ``2**unit``, cut by a mode of CUTS.

    "sticky" sets the last bit where something is cut off, and "coarse" truncates to two units.
    """
    below = max(0, unit - number.scale)
    kept, rest = divmod(number.significand << max(0, number.scale - unit), 1 << below)
    if mode == "coarse":
        kept -= kept % 2
    elif mode == "sticky":
        kept |= rest > 0
    elif rest:
        kept += _ROUNDS_AWAY[CUTS[mode]](number.negative, 2 * rest - (1 << below), kept % 2)
    return -kept if number.negative else kept


def _summed_units(units: Sequence[int], vanishing: bool = False) -> int:
    total = sum(units)
    return 0 if vanishing and abs(total) == 1 else total


def _is_subnormal(total: int, unit: int, element: Format) -> bool:
    return total != 0 and abs(total).bit_length() + unit <= element.minimum_exponent


def _rounded(
    total: int, unit: int, numbers: Sequence[Number], output: Any, rounding: str = "", flushes: bool = False
) -> int:
    element = FORMATS[output.format]
    special = _special(numbers, element)
    if special is not None:
        return special
    if flushes and _is_subnormal(total, unit, element):
        return 0
    mode, overflows = rounding or ("rn" if output.nearest else "rz"), rounding in ("", *TO_NEAREST)
    code = code_of(total, unit, element, output.precision, mode, overflows)
    return code | element.sign_bit if total < 0 and code else code


def _ieee(numbers: Sequence[Number], element_name: str, rounding: str, flushes: bool = False) -> int:
    element = FORMATS[element_name]
    special = _special(numbers, element)
    if special is not None:
        return special
    total, scale = _exact(numbers)
    negative = total < 0
    if flushes and _is_subnormal(total, scale, element):
        return 0
    if not total:
        signs = {each.negative for each in numbers}
        negative = signs.pop() if len(signs) == 1 else rounding == "rm"
    code = code_of(total, scale, element, element.fraction_bits + 1, rounding, overflows=False)
    return code | element.sign_bit if negative else code


def _wrapped(total: int, bits: int, clamps: bool, width: int = 0) -> int:
    """Return the code of a sum in so many bits, sign extended to a width."""
    least = -1 << bits - 1
    kept = max(least, min(total, ~least)) if clamps else (total - least & (1 << bits) - 1) + least
    return kept & (1 << (width or bits)) - 1


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "read": _read,
    "zero": lambda: [Number(FINITE, False, 0, 0, 0, False)],
    "mul": _multiplied,
    "bits": _combined,
    "convert": _converted,
    "sum": _summed,
    "take": lambda numbers, places: [numbers[place] for place in places],
    "join": lambda *lists: [each for numbers in lists for each in numbers],
    "top": _top,
    "int": lambda value: value,
    "add": lambda exponent, addend: exponent + addend,
    "max": max,
    "ge": lambda x, y: int(x >= y),
    "pick": lambda condition, x, y: x if condition else y,
    "cut": _cut,
    "total": _summed_units,
    "round": _rounded,
    "ieee": _ieee,
    "wrap": _wrapped,
}
