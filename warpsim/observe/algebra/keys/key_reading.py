"""The keys of numbers that bytes with keys hold, read as a type.

All bytes of one number of the type: its key. Bytes without keys: the constant of their bits. A part of a
wider integer, or several narrow integers: by their bits. A float made of integer bits below a constant
exponent: 2^e times (1 + the bits). bf16 is the upper half of an f32. An integer read as a float, as an array
of uint16 that holds bf16, is ``cast``: a function of the integer that the type names; which types arrays are
read as is kept. Whatever else is a hash of all bytes, which no reference has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import values_of
from ....isa.formats import FORMATS, Format
from .constant_keys import ConstantKeys, integer_keys, two_to
from .finite_fields import ONE, ZERO, Keys, add, hashed, mul, neg, sub
from .key_bits import BitTable, constant_rows, weighted
from .key_cells import NAMES, PAIRED, Cells, Mask, tag_of

_U, _T = np.uint64, np.uint16
Values = npt.NDArray[Any]
_FIELDS = {"f16": (10, 5), "bf16": (7, 8), "f32": (23, 8)}  # bits of fraction and exponent


def numbers(bits: Values, kind: str, size: int = 0) -> Values:
    """Return the numbers that unsigned bits hold: float64 of floats, (u)int64 of integers of ``size``
    bytes.
    """
    if kind in ("s", "u"):
        words = bits.astype(f"u{size}")
        return words.view(f"i{size}").astype(np.int64) if kind == "s" else words
    element = FORMATS[kind]
    return values_of(bits.astype(element.code_dtype) & element.code_dtype.type(element.mask), element)


def range_of(kind: str, size: int) -> tuple[float, float]:
    """Return the least and the largest finite number of a format, or of integers of ``size`` bytes."""
    if kind in ("s", "u"):
        span = np.iinfo(np.dtype(f"{'i' if kind == 's' else 'u'}{size}"))
        return float(span.min), float(span.max)
    element = FORMATS[kind]
    most = float(values_of(np.array([element.largest_finite], element.code_dtype), element)[0])
    return (-most if element.signed else 0.0), most


def bits_of(values: Values, kind: str, size: int) -> Values:
    """Return the unsigned bits that hold numbers, rounded to the nearest that is finite and of their sign:
    the inverse of ``numbers``.
    """
    low, high = range_of(kind, size)
    kept = np.clip(values, low, high)
    if kind in ("s", "u"):
        whole = np.rint(kept)
        wide = np.where(whole >= 2.0**63, whole - 2.0**64, whole) if kind == "u" else whole
        bits: Values = np.clip(wide, -(2.0**63), np.nextafter(2.0**63, 0)).astype(np.int64).astype(f"u{size}")
        return bits
    codes = kept.astype(FORMATS[kind].dtype).view(FORMATS[kind].code_dtype)
    none = (kept != 0) & (numbers(codes, kind) == 0)
    return np.where(none, codes | codes.dtype.type(1), codes)


class KeyReader:
    """What is known of keys in a run: constants, bits, and the types that integers were cast to."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.constants = ConstantKeys()
        self.bits = BitTable()
        self.casts = dict[str, set[int]]()  # some keys of integers that were read as others, by how
        self.unread = set[int]()  # of integers of which floats were made that have no law
        self.misread = dict[tuple[str, str], None]()  # floats of a format that were read as another
        self._pairs = dict[int, tuple[int, int]]()  # numbers of 4 bits that share a byte

    def constant(self, bits: Values, kind: str, size: int) -> Keys:
        """Return the keys of bits without keys."""
        values = numbers(bits, kind, size)
        return integer_keys(values) if kind in ("s", "u") else self.constants.keys(values, kind)

    def read(self, cells: Cells | None, bits: Values, kind: str, size: int, place: int = 0) -> Keys:
        """Return ``(lanes,)``: the keys of numbers of ``size`` bytes from byte ``place`` of a register on.

        ``bits (lanes,)`` is the content of the register.
        """
        kind = "f32" if kind == "tf32" else kind
        own = bits >> bits.dtype.type(8 * place) if place else bits
        if cells is None:
            return self.constant(own, kind, size)
        whole = self._whole(cells, kind, size) if place % size == 0 else None
        if whole is not None:
            found: Keys = whole[place // size]
            if cells.there is not None:
                found, none = found.copy(), ~cells.there
                found[none] = self.constant(own[none], kind, size)
            return found
        keys, tags = cells.keys[place : place + size], cells.tags[place : place + size]
        whole = tags[0] == tag_of(kind, size)
        for byte in range(1, size):
            whole &= (tags[byte] == tag_of(kind, size) + byte) & (keys[byte] == keys[0])
        if whole.all():
            return np.asarray(keys[0])
        found = np.asarray(keys[0]).copy()
        none = (tags == 0).all(0)
        if none.any():
            found[none] = self.constant(own[none], kind, size)
        odd = np.flatnonzero(~whole & ~none)
        if odd.size:
            found[odd] = self._odd(_Piece(self, keys[:, odd], tags[:, odd], own[odd], kind, size))
        return found

    def _whole(self, cells: Cells, kind: str, size: int) -> Keys | None:
        """Return ``(count, lanes)``: the keys of numbers side by side that are of a type, or elements of an
        array of integers of its size that are read as floats; None for others.
        """
        if cells.size != size:
            return None
        if cells.kind == kind:
            return cells.numbers
        cast = kind not in ("s", "u") and cells.kind in ("s", "u") and cells.there is None
        if cast and self.bits.of_leaf(cells.numbers[0, :1]).all():
            return self.cast(cells.numbers, f"as {kind}")
        return None

    def _odd(self, piece: _Piece) -> Keys:
        """Return the keys of numbers whose bytes are not a whole number of the type."""
        if (piece.tags == piece.tags[:, :1]).all():  # as most are: sorting them takes long
            return piece.number(tuple(piece.tags[:, 0].tolist()))
        found = np.zeros(piece.keys.shape[1], _U)
        patterns, inverse = np.unique(piece.tags, axis=1, return_inverse=True)
        inverse = inverse.reshape(-1)
        for number in range(patterns.shape[1]):
            chosen = inverse == number
            found[chosen] = piece.of_lanes(chosen).number(tuple(patterns[:, number].tolist()))
        return found

    def rows(self, cells: Cells | None, bits: Values, width: int) -> tuple[Keys, Mask]:
        """Return ``(lanes, 8 * width)`` bits of a register, and in which lanes all of them are known."""
        lanes = len(bits)
        if cells is None:
            return constant_rows(bits, 8 * width), np.ones(lanes, np.bool_)
        if cells.number is not None and cells.kind in ("s", "u") and cells.size == width <= 4:
            rows, known = self.bits.rows(cells.number)
            return rows[:, : 8 * width], known
        found, known = constant_rows(bits, 8 * width), np.ones(lanes, np.bool_)
        for byte in range(width):
            for tag, some, keys in cells.tagged(byte):
                found[some, 8 * byte : 8 * byte + 8], have = self._byte(keys, tag)
                known[some] &= have
        return found, known

    def _byte(self, keys: Keys, tag: int) -> tuple[Keys, Mask]:
        """Return ``(n, 8)`` bits of bytes with a tag, and which of them are known."""
        place = tag & 15
        if NAMES[tag >> 8] not in ("s", "u") or place > 3:
            return np.zeros((len(keys), 8), _U), np.zeros(len(keys), np.bool_)
        rows, known = self.bits.rows(keys)
        return rows[:, 8 * place : 8 * place + 8], known

    def cast(self, keys: Keys, name: str) -> Keys:
        """Return the keys of the floats that bits of integers are read as, in words such as "as bf16"."""
        self.casts.setdefault(name, set()).update(_some(keys))
        return hashed(name, keys)

    def elements(self, cells: Cells | None, bits: Values, element: Format, count: int) -> Keys:
        """Return ``(count, lanes)``: the elements of a matrix in words, the lowest first."""
        kind = element.name if element.is_float else element.name[0]
        if element.bits == 1:
            rows, known = self.rows(cells, bits, -(-count // 8))
            return np.where(known[:, None], rows, hashed("bits", rows)).T
        if element.bits == 4:
            pairs = [self.nibbles(cells, bits, kind, byte) for byte in range(-(-count // 2))]
            return np.concatenate(pairs)
        kind, size = "f32" if kind == "tf32" else kind, element.code_dtype.itemsize
        whole = None if cells is None or cells.there is not None else self._whole(cells, kind, size)
        if whole is not None:
            return whole
        other = {"s": "u", "u": "s"}.get(kind)
        for place in range(0, size * count, size):  # integers of the other sign are casts
            if cells is not None and other is not None and cells.kind in ("", other):
                some = cells.tags[place] == tag_of(other, size)
                self.casts.setdefault(f"as {kind}{8 * size}", set()).update(_some(cells.keys[place][some]))
        return np.stack([self.read(cells, bits, kind, size, size * place) for place in range(count)])

    # --- two numbers in a byte ---

    def paired(self, low: Keys, high: Keys) -> Keys:
        """Return the keys of bytes that hold two numbers of 4 bits, which ``nibbles`` takes apart."""
        keys = hashed("pair", low, high)
        self._pairs.update(zip(keys.tolist(), zip(low.tolist(), high.tolist(), strict=True), strict=True))
        return keys

    def nibbles(self, cells: Cells | None, bits: Values, kind: str, byte: int) -> Keys:
        """Return ``(2, lanes)``: the keys of both numbers of 4 bits, "s", "u" or e2m1, in a byte of a
        register.
        """
        own = bits >> bits.dtype.type(8 * byte)
        halves = [own & bits.dtype.type(15), own >> bits.dtype.type(4) & bits.dtype.type(15)]
        if kind == "s":
            found = np.stack([integer_keys((half.astype(np.int64) ^ 8) - 8) for half in halves])
        else:
            found = np.stack([self.constant(half.astype(np.uint8), kind, 1) for half in halves])
        for tag, some, keys in () if cells is None else cells.tagged(byte):
            found[:, some] = self._nibbles_of(keys, tag, kind)
        return found

    def _nibbles_of(self, keys: Keys, tag: int, kind: str) -> Keys:
        """Return ``(2, n)`` of bytes with a tag."""
        held, place = NAMES[tag >> 8], tag & 15
        if held == kind == PAIRED:
            return np.array([self._pairs[key] for key in keys.tolist()], _U).T
        rows, known = self._byte(keys, tag)
        if kind in ("s", "u") and known.all():
            halves = rows[:, :4], rows[:, 4:]
            return np.stack([self.bits.number(half, signed=kind == "s") for half in halves])
        if held in ("s", "u"):
            return np.stack([self.cast(keys, f"nibble {2 * place + half} as {kind}") for half in (0, 1)])
        return np.stack([hashed(f"nibble {half} of {tag} as {kind}", keys) for half in (0, 1)])


class _Piece:
    """Bytes ``(size, lanes)`` that are read as a type; ``bits`` begin with them."""

    def __init__(
        self, reader: KeyReader, keys: Keys, tags: npt.NDArray[np.uint16], bits: Values, kind: str, size: int
    ) -> None:
        self.reader, self.keys, self.tags, self.bits = reader, keys, tags, bits
        self.kind, self.size = kind, size

    def of_lanes(self, chosen: Any) -> _Piece:
        """Return the piece of some lanes."""
        keys, tags, bits = self.keys[:, chosen], self.tags[:, chosen], self.bits[chosen]
        return _Piece(self.reader, keys, tags, bits, self.kind, self.size)

    def number(self, tags: tuple[int, ...]) -> Keys:
        """Return the keys; ``tags`` are those of all lanes."""
        kinds = {NAMES[tag >> 8] for tag in tags if tag}
        if not kinds <= {"s", "u"}:
            return self._hash(tags) if self.kind in ("s", "u") else self._shortened(tags, kinds)
        return self._integer(tags) if self.kind in ("s", "u") else self._float_of_bits(tags)

    def _one(self, tags: tuple[int, ...]) -> bool:
        """Return whether the first bytes are neighbours in one number."""
        in_row = all(tag == tags[0] + byte for byte, tag in enumerate(tags)) and tags[0] != 0
        return in_row and bool((self.keys[: len(tags)] == self.keys[0]).all())

    def _integer(self, tags: tuple[int, ...]) -> Keys:
        rows, known = self.reader.rows(Cells(self.keys, self.tags), self.bits, self.size)
        signed, size, held = self.kind == "s", tags[0] >> 4 & 15, NAMES.get(tags[0] >> 8, "")
        first = tags[0] & 15 == 0
        whole, narrow = first and self._one(tags), self.size <= 4 and bool(known.all())
        if whole and size == self.size and (not narrow or self.reader.bits.of_leaf(self.keys[0]).all()):
            found = self._turned(held, size)
            if narrow:
                self.reader.bits.keep(found, rows[:, : 8 * size], signed=signed)
            return found
        if narrow:
            return self.reader.bits.number(rows, signed=signed)
        extends = 0 < size < self.size and first and not any(tags[size:]) and self._one(tags[:size])
        return self._turned(held, size) if whole or extends else self._hash(tags)

    def _turned(self, kind: str, size: int) -> Keys:
        """Return the keys of integers as those of another sign or width: theirs, and what the numbers differ
        by; low bytes, where that is more than a multiple of 2^bits for the sign.
        """
        low = hashed(f"low {self.size} bytes", self.keys[0])
        if size > self.size and self.bits.dtype.itemsize < size:
            return low
        held, own = numbers(self.bits, kind, size), numbers(self.bits, self.kind, self.size)
        found = add(self.keys[0], sub(integer_keys(own), integer_keys(held)))
        near = np.abs(held.astype(np.float64) - own.astype(np.float64)) <= 2.0 ** (8 * self.size)
        return np.where(near | (size <= self.size), found, low)

    def _float_of_bits(self, tags: tuple[int, ...]) -> Keys:
        if self.kind == "f32" and (lengthened := self._lengthened()) is not None:
            return lengthened
        known = np.zeros(1, np.bool_)
        if self.kind in _FIELDS and self._may_be_made():
            rows, known = self.reader.rows(Cells(self.keys, self.tags), self.bits, self.size)
        if known.all():
            made, good = _of_fields(rows, *_FIELDS[self.kind])
            if good.all():
                return made
        if self._one(tags):
            size, place = tags[0] >> 4 & 15, tags[0] & 15
            part = "" if size == self.size else f"bytes {place} to {place + self.size - 1} "
            return self.reader.cast(self.keys[0], f"{part}as {self.kind}")
        self.reader.unread.update(_some(self.keys))
        return self._hash(tags)

    def _lengthened(self) -> Keys | None:
        """Return bf16 above 16 zeros, as f32, where the upper half are elements of an array of integers."""
        found: Keys | None = None
        for lanes in (slice(0, 1), slice(None)):
            cells = Cells(self.keys[:, lanes], self.tags[:, lanes])
            rows, known = self.reader.rows(cells, self.bits[lanes], self.size)
            if not known.all() or rows[:, :16].any():
                return None
            halves = [weighted(rows[:, 16:], signed=signed) for signed in (False, True)]
            found = next((each for each in halves if self.reader.bits.of_leaf(each).all()), None)
            if found is None:
                return None
        return None if found is None else self.reader.cast(found, "as bf16")

    def _may_be_made(self) -> bool:
        """Return whether the first lane's float has a sign and an exponent of constant bits."""
        rows, known = self.reader.rows(Cells(self.keys[:, :1], self.tags[:, :1]), self.bits[:1], self.size)
        return bool(known[0]) and bool(_exponents(rows, *_FIELDS[self.kind])[1][0])

    def _shortened(self, tags: tuple[int, ...], kinds: set[str]) -> Keys:
        """Return bf16 as the upper half of an f32, and the other way round."""
        half = tag_of("bf16", 2)
        if self.kind == "f32" and tags == (0, 0, half, half + 1):
            low = self.bits & self.bits.dtype.type(0xFFFF)
            if (self.keys[2] == self.keys[3]).all() and not low.any():
                return np.asarray(self.keys[2])
        if self.kind == "bf16" and kinds == {"f32"} and self._one(tags) and tags[0] & 15 == 2:
            return np.asarray(self.keys[0])
        return self._hash(tags)

    def _hash(self, tags: tuple[int, ...]) -> Keys:
        held = NAMES.get(tags[0] >> 8, "")
        floats = held in FORMATS and self.kind in FORMATS
        if floats and tags[0] == tag_of(held, self.size) and self._one(tags):
            self.reader.misread[held, self.kind] = None
        concrete = self.bits if 0 in tags else np.zeros(len(self.bits), _U)
        return hashed(f"bytes {self.kind} {tags}", *self.keys, concrete.astype(_U))


def _some(keys: Keys) -> list[int]:
    found: list[int] = keys.reshape(-1)[:: max(keys.size // _SAMPLES, 1)].tolist()
    return found


_SAMPLES = 32


def _of_fields(rows: Keys, fraction: int, exponent: int) -> tuple[Keys, Mask]:
    """Return the keys of floats of bits whose sign and exponent are constants, and of which lanes they
    are.
    """
    field, good = _exponents(rows, fraction, exponent)
    power = np.maximum(field, 1) - (1 << exponent - 1) + 1 - fraction
    significand = weighted(np.concatenate([rows[:, :fraction], ((field > 0) * _U(ONE))[:, None]], axis=1))
    found = mul(significand, two_to(power))
    negative = rows[:, fraction + exponent] == _U(ONE)
    return np.where(negative, neg(found), found), good


def _exponents(rows: Keys, fraction: int, exponent: int) -> tuple[npt.NDArray[np.int64], Mask]:
    """Return the fields of exponents, and where sign and exponent are constants of a finite number."""
    top = rows[:, fraction : fraction + exponent + 1]
    constant = ((top == ZERO) | (top == _U(ONE))).all(1)
    field = ((top[:, :exponent] == _U(ONE)) * (1 << np.arange(exponent))).sum(1)
    return field, constant & (field < (1 << exponent) - 1)
