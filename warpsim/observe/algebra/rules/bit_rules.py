"""Rules of bits: logic, shifts, fields and bytes, on bytes that move and on integers whose bits have keys.

Logic with constants moves whole numbers, clears them, or changes the sign of a float. Other integers are rows
of bits. What is neither is left to the uninterpreted function.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..keys.finite_fields import Keys, hashed, key_of, mul, neg
from ..keys.key_bits import TABLES, chosen_by_table, shifted
from ..keys.key_cells import KINDS, NAMES, PAIRED, Cells, Mask
from ..keys.key_reading import numbers
from .keyed_statements import Element
from .rule_calls import Call, Outcome, Rule, Values, magnitude

_U, _T = np.uint64, np.uint16


def _rows(call: Call, index: int) -> tuple[Keys, Mask]:
    bits = call.bits[index]
    return call.reader.rows(call.cells[index], bits, bits.dtype.itemsize)


def _known_rows(call: Call, count: int) -> list[Keys] | None:
    """Return the bits of the first sources; None where those of some lane are not known."""
    if any(call.bits[place].dtype.itemsize > 4 for place in range(count)):
        return None
    found = [_rows(call, place) for place in range(count)]
    if not all(known.all() for _, known in found):
        return None
    return [rows for rows, _ in found]


def _number(call: Call, rows: Keys, name: str, *, signed: bool = False) -> Outcome:
    """Return the integers that rows of bits are."""
    size = call.after.dtype.itemsize
    keys = call.reader.bits.number(rows, signed=signed)
    operands = tuple(cells.keys[0] for cells in call.cells if cells is not None)
    return Outcome(keys[None], None, name, operands, Element("s" if signed else "u", size, 1))


# --- logic -------------------------------------------------------------------------------------------

Function = Callable[[list[Values]], Values]


def _logic(call: Call) -> Outcome | None:
    opcode = call.statement.opcode
    count = {"not": 1, "lop3": 3}.get(opcode, 2)
    if call.after.dtype == np.bool_:
        return None
    table = int(call.bits[3].flat[0]) & 255 if opcode == "lop3" else TABLES[opcode]
    whole = _whole_integer(call, count)
    if whole is not None:
        return whole if whole.cells is not None else None
    moved = _moved(call, count, table)
    if moved is not None:
        return Outcome(None, moved)
    rows = _known_rows(call, count)
    if rows is None:
        return None
    return _number(call, chosen_by_table(table, rows), opcode)


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
    """Return a function of bits of up to three words."""
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
    width = call.after.dtype.itemsize
    dtype = call.after.dtype
    tags = [
        np.zeros((width, call.lanes), _T) if cells is None else cells.tags for cells in call.cells[:count]
    ]
    keyed = np.stack([each != 0 for each in tags])
    if (keyed.sum(0) > 1).any():
        return None
    found = Cells.empty(width, call.lanes)
    for place in range(count):
        cells = call.cells[place]
        if cells is None or not keyed[place].any():
            continue
        words = [call.bits[other].astype(dtype) for other in range(count)]
        words[place] = np.zeros(call.lanes, dtype)
        low = _applied(table, words)
        words[place] = ~words[place]
        high = _applied(table, words)
        part = _kept(call, cells, low, high, place)
        if part is None:
            return None
        mask = keyed[place]
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
    tags = np.where(gone, _T(0), cells.tags)
    keys = np.where(gone, _U(0), cells.keys)
    odd = (cells.tags != 0) & ~gone & (keep != 255)
    if not odd.any():
        return Cells(keys, tags, cells.writer)
    return _signed(call, Cells(keys, tags, cells.writer), (keep, flip, odd), place)


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
    return Cells(keys, cells.tags, cells.writer)


_TRUNCATING = (0x00, 0x80, 0xC0, 0xE0, 0xF0, 0xF8)  # masks of low bytes of an f32 that cut it to fewer bits


# --- shifts ------------------------------------------------------------------------------------------


def _shift(call: Call) -> Outcome | None:
    if call.statement.opcode == "shf":
        return _funnel(call)
    width = 8 * call.after.dtype.itemsize
    amounts = np.minimum(call.bits[1].astype(np.int64), width)
    amount = int(amounts[0])
    if (amounts != amount).any():
        return _shifted_apart(call, amounts)
    left = call.statement.opcode == "shl"
    signed = not left and call.result_type[0] == "s"
    cells = call.cells[0]
    if cells is None:
        return None
    if amount == width and not signed:
        return Outcome(None, Cells.empty(width // 8, call.lanes))
    if (
        amount % 8 == 0
        and not (cells.kind in ("s", "u") and cells.number is not None and width <= 32)
        and not signed
    ):
        return Outcome(None, _byte_shifted(cells, amount // 8, left=left))
    rows = _known_rows(call, 1)
    moved = None if rows is None else shifted(rows[0], amounts, left=left, signed=signed)
    scaled = _scaled(call, amount, left=left) if left or moved is None else None
    if moved is None:
        return scaled
    if scaled is None or scaled.keys is None:
        return _number(call, moved, call.statement.opcode, signed=signed)
    call.reader.bits.keep(
        scaled.keys[0], moved, signed=scaled.element is not None and scaled.element.kind == "s"
    )
    return scaled


def _byte_shifted(cells: Cells, count: int, *, left: bool) -> Cells:
    found = Cells.empty(cells.width, cells.keys.shape[1])
    kept = cells.width - count
    to, of = (slice(count, None), slice(0, kept)) if left else (slice(0, kept), slice(count, None))
    found.keys[to], found.tags[to] = cells.keys[of], cells.tags[of]
    return Cells(found.keys, found.tags, cells.writer)


def _shifted_apart(call: Call, amounts: npt.NDArray[np.int64]) -> Outcome | None:
    """Return integers that lanes shift by amounts of their own."""
    rows = _known_rows(call, 1)
    if rows is None:
        return None
    left = call.statement.opcode == "shl"
    signed = not left and call.result_type[0] == "s"
    found = shifted(rows[0], amounts, left=left, signed=signed)
    return _number(call, found, call.statement.opcode, signed=signed)


def _scaled(call: Call, amount: int, *, left: bool) -> Outcome | None:
    """Return integers times a power of two, where no bit is lost; their quotient is rounded down."""
    kind = "s" if call.result_type[0] == "s" else "u"
    size = call.after.dtype.itemsize
    element = Element(kind, size, 1)
    keys, values = call.keys(0, element), call.values(0, element)
    if not left:
        power = np.asarray(key_of(1 << amount), _U)
        return Outcome(hashed("//", keys, power), None, "//", (keys[0],), element)
    exact = values.astype(np.float64) * 2.0**amount
    if (exact != call.results(element).astype(np.float64)).any():
        signed = Element("s", size, 1)
        keys, values = call.keys(0, signed), call.values(0, signed)
        exact = values.astype(np.float64) * 2.0**amount
        element = signed
        if (exact != call.results(signed).astype(np.float64)).any():
            return None
    return Outcome(mul(keys, key_of(1 << amount)), None, "shl", (keys[0],), element)


def _funnel(call: Call) -> Outcome | None:
    """shf: 32 of the 64 bits of b and a."""
    amounts = call.bits[2].astype(np.int64)
    amounts = amounts & 31 if call.has("wrap") else np.minimum(amounts, 32)
    amount = int(amounts[0])
    if (amounts != amount).any():
        return None
    start = 32 - amount if call.has("l") else amount
    cells = [each if each is not None else Cells.empty(4, call.lanes) for each in call.cells[:2]]
    if start % 8 == 0:
        return Outcome(None, Cells.joined(cells).part(start // 8, 4))
    rows = _known_rows(call, 2)
    if rows is None:
        return None
    both = np.concatenate(rows, axis=1)
    return _number(call, both[:, start : start + 32], "shf")


# --- fields and bytes --------------------------------------------------------------------------------


def _field(call: Call) -> Outcome | None:
    opcode = call.statement.opcode
    rows = _known_rows(call, 2 if opcode == "bfi" else 1)
    if rows is None:
        return None
    if opcode == "brev":
        return _number(call, rows[0][:, ::-1], opcode)
    if opcode == "szext":
        return None
    places = [call.bits[place].astype(np.int64) & 255 for place in ((2, 3) if opcode == "bfi" else (1, 2))]
    signed = opcode == "bfe" and call.result_type[0] == "s"
    found = np.zeros((call.lanes, rows[-1].shape[1]), _U)
    for first, count in np.unique(np.stack(places, axis=1), axis=0).tolist():
        some = (places[0] == first) & (places[1] == count)
        own = [each[some] for each in rows]
        found[some] = (
            _inserted(own, first, count) if opcode == "bfi" else _extracted(own[0], first, count, signed)
        )
    return _number(call, found, opcode, signed=signed)


def _inserted(rows: list[Keys], first: int, count: int) -> Keys:
    """bfi: ``count`` low bits of a, at a place in b."""
    a, b = rows
    past = min(first + count, b.shape[1])
    found = b.copy()
    if first < past:
        found[:, first:past] = a[:, : past - first]
    return found


def _extracted(rows: Keys, first: int, count: int, signed: bool) -> Keys:
    """bfe: bits of a field, extended."""
    width = rows.shape[1]
    found = np.zeros_like(rows)
    past = min(first + count, width)
    if count == 0:
        return found
    if first < past:
        found[:, : past - first] = rows[:, first:past]
    if signed:
        found[:, max(past - first, 0) :] = rows[:, min(past, width) - 1][:, None]
    return found


def _bytes(call: Call) -> Outcome | None:
    """prmt: bytes of two registers in the order of a selector, or eight copies of a byte's sign."""
    if len(call.modifiers) > 1:
        return None
    sources = [each if each is not None else Cells.empty(4, call.lanes) for each in call.cells[:2]]
    whole = Cells.joined(sources)
    selector = call.bits[2].astype(np.int64)
    chosen = np.stack([selector >> 4 * place & 7 for place in range(4)])
    lanes = np.arange(call.lanes)
    signs = np.stack([selector >> 4 * place & 8 for place in range(4)]) != 0
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
