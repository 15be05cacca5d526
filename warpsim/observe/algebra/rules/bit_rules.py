"""Rules of bits: logic, shifts, fields and bytes, on bytes that move and on integers whose bits have keys.

Logic with constants moves whole numbers, clears them, or changes the sign of a float. Other integers are rows
of bits. What is neither is left to the uninterpreted function.
"""

from __future__ import annotations

import numpy as np

from ..keys.finite_fields import Keys, hashed, key_of, mul, neg
from ..keys.key_bits import TABLES, chosen_by_table, shifted
from ..keys.key_cells import KINDS, NAMES, PAIRED, Cells, Mask
from ..keys.key_reading import numbers
from .keyed_statements import Element
from .rule_calls import Call, Outcome, Rule, Values, magnitude

_U, _T = np.uint64, np.uint16


def _known_rows(call: Call, count: int) -> list[Keys] | None:
    """Return the bits of the first sources; None where those of some lane are not known."""
    sizes = [bits.dtype.itemsize for bits in call.bits[:count]]
    if max(sizes) > 4:
        return None
    found = [call.reader.rows(call.cells[i], call.bits[i], size) for i, size in enumerate(sizes)]
    return [rows for rows, _ in found] if all(known.all() for _, known in found) else None


def _number(call: Call, rows: Keys, name: str, *, signed: bool = False) -> Outcome:
    size = call.after.dtype.itemsize
    keys = call.reader.bits.number(rows, signed=signed)
    operands = tuple(cells.keys[0] for cells in call.cells if cells is not None)
    return Outcome(keys[None], None, name, operands, Element("s" if signed else "u", size, 1))


# --- logic -------------------------------------------------------------------------------------------


def _logic(call: Call) -> Outcome | None:
    opcode = call.statement.opcode
    count = {"not": 1, "lop3": 3}.get(opcode, 2)
    if call.after.dtype == np.bool_:
        return None
    table = int(call.bits[3].flat[0]) & 255 if opcode == "lop3" else TABLES[opcode]
    whole = _whole_integer(call, count)
    if whole is not None:
        return whole
    moved = _moved(call, count, table)
    if moved is not None:
        return Outcome(None, moved)
    rows = _known_rows(call, count)
    return None if rows is None else _number(call, chosen_by_table(table, rows), opcode)


def _whole_integer(call: Call, count: int) -> Outcome | None:
    """Return the one operand that has keys, an integer of unknown bits, where the result is the same; an
    empty outcome where it is not, None for other operands.
    """
    keyed = [place for place in range(count) if call.cells[place] is not None]
    cells = call.cells[keyed[0]] if len(keyed) == 1 else None
    if cells is None or cells.number is None or cells.kind not in ("s", "u"):
        return None
    if cells.size <= 4 and call.reader.bits.rows(cells.number)[1].all():
        return None
    same = bool((call.bits[keyed[0]] == call.after).all())
    return Outcome(None, cells) if same else Outcome()


def _applied(table: int, operands: list[Values]) -> Values:
    dtype = operands[0].dtype
    words = [*operands, *[np.zeros_like(operands[0])] * (3 - len(operands))]
    found = np.zeros_like(operands[0])
    for place in range(8):
        if table >> place & 1:
            term = np.full_like(found, np.iinfo(dtype).max)
            for word, shift in zip(words, (2, 1, 0), strict=True):
                term &= word if place >> shift & 1 else ~word
            found |= term
    return found


def _moved(call: Call, count: int, table: int) -> Cells | None:
    """Return the cells of a result in which each number of one operand stays, goes, or changes its sign.

    None where some number does neither, or where two operands have keys in one byte.
    """
    dtype, found = call.after.dtype, Cells.empty(call.after.dtype.itemsize, call.lanes)
    keyed = [(place, cells) for place, cells in enumerate(call.cells[:count]) if cells is not None]
    if len(keyed) > 1 and (np.sum([cells.tags != 0 for _, cells in keyed], axis=0) > 1).any():
        return None
    for place, cells in keyed:
        words = [bits.astype(dtype) for bits in call.bits[:count]]
        words[place] = np.zeros(call.lanes, dtype)
        low = _applied(table, words)
        words[place] = ~words[place]
        part = _kept(call, cells, low, _applied(table, words), place)
        if part is None:
            return None
        mask = cells.tags != 0
        found = Cells(np.where(mask, part.keys, found.keys), np.where(mask, part.tags, found.tags))
    return found


def _kept(call: Call, cells: Cells, low: Values, high: Values, place: int) -> Cells | None:
    """Return cells under a function that turns 0 bits into ``low`` and 1 bits into ``high``."""
    width, lanes = cells.width, call.lanes
    keep = np.ascontiguousarray(high & ~low).view(np.uint8).reshape(lanes, width).T
    flip = np.ascontiguousarray(low & ~high).view(np.uint8).reshape(lanes, width).T
    if ((keep == 255) | (cells.tags == 0)).all():
        return cells
    top = np.arange(width)[:, None] + (cells.tags >> 4 & 15) - 1 - (cells.tags & 15)
    stays = np.take_along_axis(keep, np.clip(top, 0, width - 1), 0) != 0
    gone = ((keep | flip) == 0) & ~(stays & (cells.tags >> 8 == KINDS["f32"]))
    found = Cells(np.where(gone, _U(0), cells.keys), np.where(gone, _T(0), cells.tags))
    odd = (cells.tags != 0) & ~gone & (keep != 255)
    return _signed(call, found, (keep, flip, odd), place) if odd.any() else found


def _signed(call: Call, cells: Cells, bits: tuple[Values, Values, Mask], place: int) -> Cells | None:
    """Return cells in which floats whose top bit alone changes have another sign; tf32 may lose low bits."""
    keep, flip, odd = bits
    keys = cells.keys.copy()
    alike = np.concatenate([cells.tags, keep.astype(_T), flip.astype(_T), odd.astype(_T)])
    patterns, inverse = np.unique(alike, axis=1, return_inverse=True)
    for number in range(patterns.shape[1]):
        tags, kept, flipped, odds = np.split(patterns[:, number], 4)
        some = np.flatnonzero(inverse.reshape(-1) == number)
        for byte in np.flatnonzero(odds).tolist():
            tag, own = int(tags[byte]), int(tags[byte]) & 15
            kind, size = NAMES[tag >> 8], tag >> 4 & 15
            if kind == "f32" and own < 2 and int(kept[byte]) in _TRUNCATING:
                continue
            if kind in ("s", "u", PAIRED) or own != size - 1 or (kept[byte] & 0x7F) != 0x7F:
                return None
            first = byte - own
            key = cells.keys[byte, some]
            if flipped[byte] & 0x80:
                key = neg(key)
            else:
                value = numbers(call.bits[place][some] >> call.bits[place].dtype.type(8 * first), kind, size)
                key = magnitude(key, value)
            keys[first : byte + 1, some] = key
    return Cells(keys, cells.tags)


_TRUNCATING = (0x00, 0x80, 0xC0, 0xE0, 0xF0, 0xF8)  # masks of low bytes of an f32 that cut it to fewer bits


# --- shifts ------------------------------------------------------------------------------------------


def _shift(call: Call) -> Outcome | None:
    if call.statement.opcode == "shf":
        return _funnel(call)
    width = 8 * call.after.dtype.itemsize
    amounts = np.minimum(call.bits[1].astype(np.int64), width)
    amount, cells = int(amounts[0]), call.cells[0]
    left, alike = call.statement.opcode == "shl", bool((amounts == amount).all())
    signed = not left and call.result_type[0] == "s"
    if cells is not None and alike and not signed:
        integer = cells.kind in ("s", "u") and cells.number is not None and width <= 32
        if amount == width:
            return Outcome(None, Cells.empty(width // 8, call.lanes))
        if amount % 8 == 0 and not integer:
            return Outcome(None, _byte_shifted(cells, amount // 8, left=left))
    rows = _known_rows(call, 1)
    scaled = _scaled(call, amount, left=left) if alike and (left or rows is None) else None
    if rows is None:
        return scaled
    moved = shifted(rows[0], amounts, left=left, signed=signed)
    if scaled is None or scaled.keys is None or scaled.element is None:
        return _number(call, moved, call.statement.opcode, signed=signed)
    call.reader.bits.keep(scaled.keys[0], moved, signed=scaled.element.kind == "s")
    return scaled


def _byte_shifted(cells: Cells, count: int, *, left: bool) -> Cells:
    found = Cells.empty(cells.width, cells.keys.shape[1])
    kept = cells.width - count
    to, of = (slice(count, None), slice(0, kept)) if left else (slice(0, kept), slice(count, None))
    found.keys[to], found.tags[to] = cells.keys[of], cells.tags[of]
    return found


def _scaled(call: Call, amount: int, *, left: bool) -> Outcome | None:
    """Return integers times a power of two, where no bit is lost; their quotient is rounded down."""
    own, size = "s" if call.result_type[0] == "s" else "u", call.after.dtype.itemsize
    power = key_of(1 << amount)
    for element in (Element(own, size, 1), Element("s", size, 1)):
        keys, exact = call.keys(0, element), call.values(0, element).astype(np.float64) * 2.0**amount
        if not left:
            return Outcome(hashed("//", keys, _U(power)), None, "//", (keys[0],), element)
        if (exact == call.results(element).astype(np.float64)).all():
            return Outcome(mul(keys, power), None, "shl", (keys[0],), element)
    return None


def _funnel(call: Call) -> Outcome | None:
    """shf: 32 of the 64 bits of b and a."""
    amounts = call.bits[2].astype(np.int64)
    amounts = amounts & 31 if call.has("wrap") else np.minimum(amounts, 32)
    amount = int(amounts[0])
    if (amounts != amount).any():
        return None
    start = 32 - amount if call.has("l") else amount
    cells = [each or Cells.empty(4, call.lanes) for each in call.cells[:2]]
    if start % 8 == 0:
        return Outcome(None, Cells.joined(cells).part(start // 8, 4))
    rows = _known_rows(call, 2)
    return None if rows is None else _number(call, np.hstack(rows)[:, start : start + 32], "shf")


# --- fields and bytes --------------------------------------------------------------------------------


def _field(call: Call) -> Outcome | None:
    opcode = call.statement.opcode
    rows = _known_rows(call, 2 if opcode == "bfi" else 1)
    if rows is None or opcode == "szext":
        return None
    if opcode == "brev":
        return _number(call, rows[0][:, ::-1], opcode)
    places = [call.bits[place].astype(np.int64) & 255 for place in ((2, 3) if opcode == "bfi" else (1, 2))]
    signed = opcode == "bfe" and call.result_type[0] == "s"
    found = np.zeros((call.lanes, rows[-1].shape[1]), _U)
    for first, count in np.unique(np.stack(places, axis=1), axis=0).tolist():
        some = (places[0] == first) & (places[1] == count)
        if opcode == "bfi":
            found[some] = _inserted(rows[0][some], rows[1][some], first, count)
        else:
            found[some] = _extracted(rows[0][some], first, count, signed)
    return _number(call, found, opcode, signed=signed)


def _inserted(a: Keys, b: Keys, first: int, count: int) -> Keys:
    """bfi: ``count`` low bits of a, at a place in b."""
    found, past = b.copy(), min(first + count, b.shape[1])
    if first < past:
        found[:, first:past] = a[:, : past - first]
    return found


def _extracted(rows: Keys, first: int, count: int, signed: bool) -> Keys:
    """bfe: bits of a field, extended."""
    found, width = np.zeros_like(rows), rows.shape[1]
    past = min(first + count, width)
    if count and first < past:
        found[:, : past - first] = rows[:, first:past]
    if count and signed:
        found[:, max(past - first, 0) :] = rows[:, past - 1][:, None]
    return found


def _bytes(call: Call) -> Outcome | None:
    """prmt: bytes of two registers in the order of a selector, or eight copies of a byte's sign."""
    if len(call.modifiers) > 1:
        return None
    whole = Cells.joined([each or Cells.empty(4, call.lanes) for each in call.cells[:2]])
    fields = call.bits[2].astype(np.int64) >> 4 * np.arange(4)[:, None]
    chosen, signs, lanes = fields & 7, fields & 8 != 0, np.arange(call.lanes)
    tags = whole.tags[chosen, lanes]
    if not (signs & (tags != 0)).any():
        return Outcome(None, Cells(np.where(tags != 0, whole.keys[chosen, lanes], _U(0)), tags))
    rows = _known_rows(call, 2)
    if rows is None:
        return None
    both = np.concatenate(rows, axis=1).reshape(call.lanes, 8, 8)
    found = both[lanes[:, None], chosen.T]
    found = np.where(signs.T[..., None], found[..., -1:], found)
    return _number(call, found.reshape(call.lanes, 32), "prmt")


RULES: dict[str, Rule] = {"logic": _logic, "shift": _shift, "field": _field, "bytes": _bytes}
