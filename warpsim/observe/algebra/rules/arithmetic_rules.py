"""Rules of arithmetic: sums, products, quotients, functions, choices, signs, conversions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from ..keys.constant_keys import integer_keys
from ..keys.finite_fields import ZERO, Keys, add, exp2, fma, hashed, inv, key_of, mul, neg, sub
from ..keys.key_cells import PAIRED, Cells
from ..keys.key_reading import range_of
from .keyed_statements import Element, element_of
from .rule_calls import (
    FAR,
    Call,
    Outcome,
    Rule,
    Values,
    bounded,
    chosen,
    clamped,
    function_keys,
    magnitude,
    split,
    wrapped,
)

_U = np.uint64


def _finished(call: Call, keys: Keys, exact: Values, name: str, operands: Sequence[Keys]) -> Outcome | None:
    """Return a result whose exact value is known: integers wrap, floats may saturate."""
    if call.element.kind not in ("s", "u"):
        return Outcome(bounded(call, keys, exact), None, name, tuple(operands))
    found = clamped(keys, exact, -(1 << 31), (1 << 31) - 1) if call.has("sat") else wrapped(call, keys, exact)
    return None if found is None else Outcome(found, None, name, tuple(operands))


_RING: dict[str, tuple[str, Callable[..., Keys], Callable[..., Values]]] = {
    "neg": ("neg", neg, np.negative),
    "add": ("+", add, np.add),
    "sub": ("-", sub, np.subtract),
    "product": ("*", mul, np.multiply),
    "fused": ("fma", fma, lambda x, y, z: x * y + z),
}


def _ring(call: Call) -> Outcome | None:
    if call.has("hi"):
        return None  # the upper half of an integer product is not a formula
    opcode, count = call.statement.opcode, len(call.types)
    name, key, value = _RING[opcode if opcode in _RING else "fused" if count > 2 else "product"]
    keys = [call.keys(place) for place in range(count)]
    with np.errstate(all="ignore"):
        exact = value(*(call.values(place).astype(np.float64) for place in range(count)))
    return _finished(call, key(*keys), exact, name, keys)


def _quotient(call: Call) -> Outcome | None:
    a = call.keys(0)
    if call.statement.opcode == "rcp":
        return Outcome(inv(a), None, "rcp", (a,))
    b = call.keys(1)
    if call.element.kind in ("s", "u"):
        return Outcome(hashed("//", a, b), None, "//", (a, b))
    constant = call.cells[1] is None
    divisor = call.reader.constants.inverses(call.values(1), call.element.kind) if constant else inv(b)
    return Outcome(mul(a, divisor), None, "/", (a, b))


def _remainder(call: Call) -> Outcome:
    a, b = call.keys(0), call.keys(1)
    return Outcome(hashed("%", a, b), None, "%", (a, b))


def _dot(call: Call) -> Outcome | None:
    """dp4a and dp2a: products of parts of a and b, and c."""
    first, second = (word[0] for word in call.modifiers if re.fullmatch(r"[su]32", word))
    wide = 1 if call.statement.opcode == "dp4a" else 2
    elements, low = (Element(first, wide, 4 // wide), Element(second, 1, 4)), 2 if call.has("hi") else 0
    a, b = (call.keys(place, elements[place]) for place in (0, 1))
    x, y = (call.values(place, elements[place]).astype(np.float64) for place in (0, 1))
    keys, exact, b, y = call.keys(2), call.values(2).astype(np.float64), b[low:], y[low:]
    operands = (*a, *b[: len(a)], keys)
    for place in range(len(a)):
        keys, exact = fma(a[place], b[place], keys), exact + x[place] * y[place]
    return _finished(call, keys, exact, call.statement.opcode, operands)


def _differences(call: Call) -> Outcome | None:
    """sad and vabsdiff4: |a - b| of each part, and c."""
    element = element_of(call.types[0])
    if call.statement.opcode == "vabsdiff4":
        element = Element("s" if call.modifiers[1][0] == "s" else "u", 1, 4)
    x, y = (call.values(place, element).astype(np.float64) for place in (0, 1))
    apart = sub(call.keys(0, element), call.keys(1, element))
    keys, exact = call.keys(2), call.values(2).astype(np.float64)
    for place in range(element.parts):
        keys = add(keys, magnitude(apart[place], x[place] - y[place]))
        exact = exact + np.abs(x[place] - y[place])
    return _finished(call, keys, exact, call.statement.opcode, tuple(apart))


def _exponential(call: Call) -> Outcome:
    a = call.keys(0)
    return Outcome(np.where(call.values(0) < FAR, _U(ZERO), exp2(a)), None, "ex2", (a,))


def _function(call: Call) -> Outcome:
    a, name = call.keys(0), call.statement.opcode
    found = inv(function_keys("sqrt", a)) if name == "rsqrt" else function_keys(name, a)
    return Outcome(found, None, name, (a,))


def _choice(call: Call) -> Outcome | None:
    if call.has("xorsign"):
        return None
    pairs = [(call.keys(place), call.values(place)) for place in range(len(call.types))]
    if call.has("abs"):
        pairs = [(magnitude(keys, values), np.abs(values)) for keys, values in pairs]
    name = call.statement.opcode
    found = chosen(pairs, greatest=name == "max")
    if call.has("relu"):
        found = np.where(call.results() == 0, _U(ZERO), found)
    return Outcome(found, None, name, tuple(keys for keys, _ in pairs))


def _selection(call: Call) -> Outcome:
    """selp and slct: the cells of the operand that the predicate, or the sign of c, chooses."""
    decides = call.bits[2]
    first = decides.astype(np.bool_) if call.statement.opcode == "selp" else call.values(2)[0] >= 0
    width = call.after.dtype.itemsize
    a, b = (cells if cells is not None else Cells.empty(width, call.lanes) for cells in call.cells[:2])
    found = a.merged(first, b) or Cells.empty(width, call.lanes)
    if found.kind == "f32" and found.width == width == found.size and found.there is None:
        # A number, which may be a function by value: its branches meet here.
        return Outcome(found.numbers[:1], None, "", (), Element("f32", 4, 1))
    return Outcome(None, found)


def _sign(call: Call) -> Outcome:
    if call.statement.opcode == "abs":
        a = call.keys(0)
        return Outcome(magnitude(a, call.values(0)), None, "abs", (a,))
    sign, a = call.values(0), call.keys(1)
    other = np.signbit(sign) != np.signbit(call.values(1))
    return Outcome(np.where(other, neg(a), a), None, "copysign", (a,))


# --- conversions -------------------------------------------------------------------------------------

_ROUNDINGS = {
    "rni": ("rint", np.rint),
    "rzi": ("trunc", np.trunc),
    "rmi": ("floor", np.floor),
    "rpi": ("ceil", np.ceil),
}
_TYPE = re.compile(r"(?:[suf]|[bt]f)\d+(?:x\d+)?|u?e\d+m\d+(?:x\d+)?")


def _conversion(call: Call) -> Outcome | None:
    if call.has("pack"):
        return _pack(call)
    to, of = [element_of(word) for word in call.modifiers if _TYPE.fullmatch(word)]
    if to.kind == PAIRED or of.kind == PAIRED:
        return _nibbles(call, to, of)
    if to.parts > 1 and of.parts == 1:  # the first source is the upper part
        keys = np.concatenate([call.keys(place, of) for place in range(to.parts)][::-1])
        values = np.concatenate([call.values(place, of) for place in range(to.parts)][::-1])
    elif to.kind in ("s", "u") and of.kind in ("s", "u"):
        return _integers(call, to, of)
    else:
        keys, values = call.keys(0, of), call.values(0, of)
    name, found = _converted(call, keys, values, to, of)
    return Outcome(found, None, name, (keys[0],) if name else (), to)


def _converted(call: Call, keys: Keys, values: Values, to: Element, of: Element) -> tuple[str, Keys]:
    """Return the name of a conversion, "" where it rounds alone, and the keys."""
    name = ""
    rounding = next((word for word in call.modifiers if word in _ROUNDINGS), "")
    if rounding and of.kind not in ("s", "u"):
        name, function = _ROUNDINGS[rounding]
        keys, values = function_keys(name, keys), function(values)
    if to.kind in ("s", "u"):
        result = split(call.after.astype(f"u{to.size}"), to)
        return name, call.in_range(values, result, keys, integer_keys(result))
    keys = bounded(call, keys, values)
    if call.has("satfinite"):
        _, most = range_of(to.kind, to.size)
        bound = call.reader.constants.keys(np.sign(values) * most, "f64")
        keys = call.in_range(values, np.clip(values, -most, most), keys, bound)
    return name, keys


def _integers(call: Call, to: Element, of: Element) -> Outcome:
    """Return integers of another width or sign: the number where it fits, its low bytes where not."""
    cells, source, values = call.cells[0], call.keys(0, of), call.values(0, of)
    result = split(call.after.astype(f"u{to.size}"), to)
    if call.unbounded and cells is not None and cells.number is not None:
        keys = cells.number[None]
    elif call.has("sat"):
        keys = call.in_range(values, result, source, integer_keys(result))
    elif to.size <= of.size:
        keys = call.reader.read(cells, call.bits[0], to.kind, to.size)[None]
    else:
        keys = np.where(result != values, add(source, key_of(1 << 8 * to.size)), source)
    return Outcome(keys, None, "", (), to)


def _pack(call: Call) -> Outcome | None:
    """cvt.pack: two clamped integers below the low bits of a third."""
    kind, bits = call.modifiers[2][0], int(call.modifiers[2][1:])
    if bits < 8:
        return None
    size, width = bits // 8, 4
    a, b = call.keys(0), call.keys(1)
    parts, cells = split(call.after, Element(kind, size, width // size)), []
    for place, (keys, part) in enumerate(zip((b, a), parts, strict=False)):
        found = call.in_range(call.values(1 - place)[0], part, keys[0], integer_keys(part))
        cells.append(Cells.of(found, kind, size))
    if len(call.types) > 2:
        above, rest = call.cells[2], width - 2 * size
        cells.append(Cells.empty(rest, call.lanes) if above is None else above.part(0, rest))
    return Outcome(None, Cells.joined(cells), "pack", (a[0], b[0]))


def _nibbles(call: Call, to: Element, of: Element) -> Outcome | None:
    if to.kind != PAIRED:
        keys = call.reader.nibbles(call.cells[0], call.bits[0], PAIRED, 0)
        return Outcome(keys, None, "", (), Element(to.kind, to.size, 2))
    if to.parts != 2:
        return None
    keys = call.keys(0, of) if of.parts > 1 else np.concatenate([call.keys(1, of), call.keys(0, of)])
    return Outcome(call.reader.paired(keys[0], keys[1])[None], None, "", (), Element(PAIRED, 1, 1))


RULES: dict[str, Rule] = {
    "sum": _ring,
    "product": _ring,
    "quotient": _quotient,
    "remainder": _remainder,
    "sum of products": _dot,
    "sum of differences": _differences,
    "exponential": _exponential,
    "function": _function,
    "choice": _choice,
    "selection": _selection,
    "sign": _sign,
    "conversion": _conversion,
}
