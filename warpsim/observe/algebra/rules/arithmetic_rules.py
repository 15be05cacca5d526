"""Rules of arithmetic: sums, products, quotients, functions, choices, signs, conversions."""

from __future__ import annotations

import re

import numpy as np

from ..keys.constant_keys import integer_keys
from ..keys.finite_fields import ZERO, Keys, add, exp2, fma, hashed, inv, mul, neg, sub
from ..keys.key_cells import PAIRED, Cells
from ..keys.key_reading import range_of
from .keyed_statements import Element, element_of
from .rule_calls import (
    FAR,
    Call,
    Outcome,
    Rule,
    Values,
    chosen,
    clamped,
    function_keys,
    magnitude,
    named_function,
    split,
    wrapped,
)

_U = np.uint64


def _finished(
    call: Call, keys: Keys | None, exact: Values, name: str, operands: tuple[Keys, ...]
) -> Outcome | None:
    """Return a result whose exact value is known: integers wrap, floats may saturate."""
    if keys is None:
        return None
    if call.element.kind in ("s", "u"):
        if call.has("sat"):
            low, high = -(1 << 31), (1 << 31) - 1
            return Outcome(clamped(keys, exact, low, high), None, name, operands)
        found = wrapped(call, keys, exact)
        return None if found is None else Outcome(found, None, name, operands)
    if call.has("sat"):
        keys = clamped(keys, exact, 0, 1)
    if call.has("relu"):
        keys = clamped(keys, exact, 0, np.inf)
    return Outcome(keys, None, name, operands)


def _sum(call: Call) -> Outcome | None:
    opcode = call.statement.opcode
    a, x = call.keys(0), call.values(0).astype(np.float64)
    if opcode == "neg":
        return _finished(call, neg(a), -x, "neg", (a,))
    b, y = call.keys(1), call.values(1).astype(np.float64)
    with np.errstate(all="ignore"):
        if opcode == "sub":
            return _finished(call, sub(a, b), x - y, "-", (a, b))
        return _finished(call, add(a, b), x + y, "+", (a, b))


def _product(call: Call) -> Outcome | None:
    """mul, mad and fma; the upper half of an integer product is not a formula."""
    if call.has("hi"):
        return None
    a, b = call.keys(0), call.keys(1)
    x, y = call.values(0).astype(np.float64), call.values(1).astype(np.float64)
    with np.errstate(all="ignore"):
        if len(call.types) == 2:
            return _finished(call, mul(a, b), x * y, "*", (a, b))
        c = call.keys(2)
        z = call.values(2).astype(np.float64)
        return _finished(call, fma(a, b, c), x * y + z, "fma", (a, b, c))


def _quotient(call: Call) -> Outcome | None:
    a = call.keys(0)
    if call.statement.opcode == "rcp":
        return Outcome(inv(a), None, "rcp", (a,))
    b = call.keys(1)
    if call.element.kind in ("s", "u"):
        return Outcome(hashed("//", a, b), None, "//", (a, b))
    if call.cells[1] is None:
        divisor = call.reader.constants.inverses(call.values(1), call.element.kind)
        return Outcome(mul(a, divisor), None, "/", (a, b))
    return Outcome(mul(a, inv(b)), None, "/", (a, b))


def _remainder(call: Call) -> Outcome:
    a, b = call.keys(0), call.keys(1)
    return Outcome(hashed("%", a, b), None, "%", (a, b))


def _dot(call: Call) -> Outcome | None:
    """dp4a and dp2a: products of parts of a and b, and c."""
    kinds = [word for word in call.modifiers if re.fullmatch(r"[su]32", word)]
    wide = 1 if call.statement.opcode == "dp4a" else 2
    first = 2 if call.has("hi") else 0
    a = call.keys(0, Element(kinds[0][0], wide, 4 // wide))
    b = call.keys(1, Element(kinds[1][0], 1, 4))[first : first + 4 // wide]
    x = call.values(0, Element(kinds[0][0], wide, 4 // wide)).astype(np.float64)
    y = call.values(1, Element(kinds[1][0], 1, 4))[first : first + 4 // wide].astype(np.float64)
    c, exact = call.keys(2), call.values(2).astype(np.float64)
    keys = c
    for place in range(len(a)):
        keys, exact = fma(a[place], b[place], keys), exact + x[place] * y[place]
    return _finished(call, keys, exact, call.statement.opcode, (*a, *b, c))


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
    return Outcome(named_function(name, a), None, name, (a,))


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
        keys = function_keys(name, keys)
        values = function(values)
    if to.kind in ("s", "u"):
        result = split(call.after.astype(f"u{to.size}"), to)
        return name, call.in_range(values, result, keys, integer_keys(result))
    if call.has("sat"):
        keys = clamped(keys, values, 0, 1)
    if call.has("relu"):
        keys = clamped(keys, values, 0, np.inf)
    if call.has("satfinite"):
        _, most = range_of(to.kind, to.size)
        bound = call.reader.constants.keys(np.sign(values) * most, "f64")
        keys = call.in_range(values, np.clip(values, -most, most), keys, bound)
    return name, keys


def _integers(call: Call, to: Element, of: Element) -> Outcome:
    """Return integers of another width or sign: the number where it fits, its low bytes where not."""
    if call.unbounded and call.cells[0] is not None and call.cells[0].number is not None:
        return Outcome(call.cells[0].number[None], None, "", (), to)
    source, values = call.keys(0, of), call.values(0, of)
    bits = call.after.astype(f"u{to.size}")
    result = split(bits, to)
    if call.has("sat"):
        return Outcome(call.in_range(values, result, source, integer_keys(result)), None, "", (), to)
    if to.size <= of.size:
        return Outcome(
            call.reader.read(call.cells[0], call.bits[0], to.kind, to.size)[None], None, "", (), to
        )
    apart = result.astype(np.float64) - values.astype(np.float64)
    moved = np.where(apart != 0, integer_keys(np.where(apart != 0, np.int64(2), np.int64(0))), _U(0))
    return Outcome(
        add(source, mul(moved, integer_keys(np.array(1 << 8 * to.size - 1, _U)))), None, "", (), to
    )


def _pack(call: Call) -> Outcome | None:
    """cvt.pack: two clamped integers below the low bits of a third."""
    kind, bits = call.modifiers[2][0], int(call.modifiers[2][1:])
    if bits < 8:
        return None
    size, width = bits // 8, 4
    a, b = call.keys(0), call.keys(1)
    parts = split(call.after, Element(kind, size, width // size))
    low = [
        call.in_range(call.values(1 - place)[0], parts[place], keys[0], integer_keys(parts[place]))
        for place, keys in enumerate((b, a))
    ]
    cells = [Cells.of(keys, kind, size) for keys in low]
    if len(call.types) > 2:
        above = call.cells[2]
        rest = width - 2 * size
        cells.append(Cells.empty(rest, call.lanes) if above is None else above.part(0, rest))
    return Outcome(None, Cells.joined(cells), "pack", (a[0], b[0]))


def _nibbles(call: Call, to: Element, of: Element) -> Outcome | None:
    """Two e2m1 share a byte: a pair of keys, that reading takes apart."""
    if to.kind == PAIRED:
        keys = call.keys(0, of) if of.parts > 1 else np.concatenate([call.keys(1, of), call.keys(0, of)])
        if to.parts != 2:
            return None
        return Outcome(call.reader.paired(keys[0], keys[1])[None], None, "", (), Element(PAIRED, 1, 1))
    cells = call.cells[0]
    keys = call.reader.nibbles(cells, call.bits[0], PAIRED, 0)
    return Outcome(keys, None, "", (), Element(to.kind, to.size, 2))


RULES: dict[str, Rule] = {
    "sum": _sum,
    "product": _product,
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
