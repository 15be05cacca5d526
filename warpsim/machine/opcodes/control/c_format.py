"""Text that C's printf makes of a format and the words of its arguments.

The conversions are those of the C standard (ISO C17, section 7.21.6.1), as device printf hands them to the
host (CUDA C++ Programming Guide, "Formatted Output"). Arguments lie in memory as the compiler packs them for
vprintf: integers below 32 bits as 32, float as double, each at a multiple of its size.
Knows formats and words; does not know lanes or memories.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

_CONVERSION = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXcspeEfFgGaA%])"
)
_LONG = frozenset({"l", "ll", "j", "z", "t"})  # 64 bits, as in CUDA's model of Linux
_WIDEST = 4096  # characters of a width or precision; larger values are a mistake of the kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One conversion of a format; ``width`` and ``precision`` are None where absent, "*" for an argument."""

    kind: str
    flags: str = ""
    width: int | str | None = None
    precision: int | str | None = None
    length: str = ""

    @property
    def bytes(self) -> int:
        """The size of its argument in memory."""
        return 8 if self.kind in "spaAeEfFgG" or self.length in _LONG else 4


@lru_cache(maxsize=256)
def pieces_of(text: bytes) -> tuple[bytes | Conversion, ...]:
    """Split a format into literal text and conversions; a "%" that begins none is literal text."""
    found, end = list[bytes | Conversion](), 0
    for match in _CONVERSION.finditer(text):
        found += [text[end : match.start()]] if match.start() > end else []
        found.append(b"%" if match["kind"] == b"%" else _conversion(match))
        end = match.end()
    return (*found, text[end:]) if end < len(text) else tuple(found)


def _conversion(match: re.Match[bytes]) -> Conversion:
    return Conversion(
        kind=match["kind"].decode(),
        flags=match["flags"].decode(),
        width=_number(match["width"]),
        precision=0 if match["precision"] == b"" else _number(match["precision"]),
        length=(match["length"] or b"").decode(),
    )


def _number(text: bytes | None) -> int | str | None:
    return None if text is None else "*" if text == b"*" else min(int(text), _WIDEST)


class Words:
    """The arguments of one call, taken in order from ``read(offset, size)``, which gives None at the end."""

    def __init__(self, read: Callable[[int, int], int | None]) -> None:
        self._read = read
        self._offset = 0
        self.taken = 0
        self.missing = 0

    def take(self, size: int) -> int:
        """Return the next word of 4 or 8 bytes; 0 where memory has no more, counted in ``missing``."""
        offset = -(-self._offset // size) * size
        self._offset = offset + size
        found = self._read(offset, size)
        self.taken += 1
        self.missing += found is None
        return found or 0


def formatted(text: bytes, words: Words, string: Callable[[int], bytes | None]) -> bytes:
    """Return the text of one call. ``string`` gives the bytes at an address up to the NUL, None for no
    memory.
    """
    parts = (
        piece if isinstance(piece, bytes) else _converted(piece, words, string) for piece in pieces_of(text)
    )
    return b"".join(parts)


def _converted(conversion: Conversion, words: Words, string: Callable[[int], bytes | None]) -> bytes:
    flags, width = conversion.flags, _format_argument(conversion.width, words)
    if width is not None and width < 0:  # a negative width is the flag "-" and a width
        flags, width = flags + "-", -width
    precision = _format_argument(conversion.precision, words)
    if precision is not None and precision < 0:
        precision = None
    word = words.take(conversion.bytes)
    if conversion.kind == "s":
        body = _string(word, string)
        return _padded(body if precision is None else body[:precision], flags.replace("0", ""), width, b"")
    if conversion.kind == "c":
        return _padded(bytes([word & 0xFF]), flags.replace("0", ""), width, b"")
    if conversion.kind == "p":
        return _padded(b"(nil)" if word == 0 else b"0x%x" % word, flags.replace("0", ""), width, b"")
    if conversion.kind in "diouxX":
        return _integer(conversion, word, flags, width, precision)
    return _floating(conversion.kind, word, flags, width, precision)


def _format_argument(value: int | str | None, words: Words) -> int | None:
    if value != "*":
        return value if isinstance(value, int) else None
    number = _signed(words.take(4), 32)
    return max(-_WIDEST, min(number, _WIDEST))


def _string(address: int, string: Callable[[int], bytes | None]) -> bytes:
    if address == 0:
        return b"(null)"
    found = string(address)
    return b"<no string at %#x>" % address if found is None else found


_BITS = {"hh": 8, "h": 16, "": 32}


def _signed(word: int, bits: int) -> int:
    word &= (1 << bits) - 1
    return word - (1 << bits) if word >> (bits - 1) else word


def _integer(
    conversion: Conversion, word: int, flags: str, width: int | None, precision: int | None
) -> bytes:
    bits = _BITS.get(conversion.length, 64)
    value = _signed(word, bits) if conversion.kind in "di" else word & ((1 << bits) - 1)
    base = {"o": "o", "x": "x", "X": "X"}.get(conversion.kind, "d")
    digits = format(abs(value), base)
    if precision is not None:
        digits = "" if precision == 0 and value == 0 else digits.rjust(precision, "0")
        flags = flags.replace("0", "")  # the flag has no effect beside a precision
    if "#" in flags and conversion.kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    prefix = f"0{conversion.kind}" if "#" in flags and conversion.kind in "xX" and value else ""
    sign = _sign(value < 0, flags) if conversion.kind in "di" else ""
    return _padded(digits.encode(), flags, width, (sign + prefix).encode())


def _floating(kind: str, word: int, flags: str, width: int | None, precision: int | None) -> bytes:
    value = struct.unpack("<d", word.to_bytes(8, "little"))[0]
    sign = _sign(bool(word >> 63), flags)
    magnitude = abs(value)
    if magnitude != magnitude or magnitude == float("inf"):
        body = "nan" if magnitude != magnitude else "inf"
        text = body.upper() if kind.isupper() else body
        return _padded(text.encode(), flags.replace("0", ""), width, sign.encode())
    if kind in "aA":
        text = _hexadecimal(word, precision, "#" in flags)
        prefix, text = (sign + "0X", text.upper()) if kind == "A" else (sign + "0x", text)
        return _padded(text.encode(), flags, width, prefix.encode())
    alternate = "#" if "#" in flags else ""
    text = f"%{alternate}.{6 if precision is None else precision}{kind}" % magnitude
    return _padded(text.encode(), flags, width, sign.encode())


def _hexadecimal(word: int, precision: int | None, point: bool) -> str:
    """Return the digits of %a behind 0x, as glibc writes them: 1 before the point, subnormal numbers with
    0.
    """
    exponent, fraction = word >> 52 & 0x7FF, word & ((1 << 52) - 1)
    significand = fraction | (bool(exponent) << 52)
    power = (exponent or 1) - 1023 if significand else 0
    if precision is not None and precision < 13:  # round to nearest even
        cut = 52 - 4 * precision
        rest, half = significand & ((1 << cut) - 1), 1 << (cut - 1)
        significand >>= cut
        significand += rest > half or (rest == half and significand & 1)
        significand <<= cut
    digits = f"{significand & ((1 << 52) - 1):013x}"
    digits = digits.rstrip("0") if precision is None else digits[:precision].ljust(precision, "0")
    return f"{significand >> 52}{'.' if digits or point else ''}{digits}p{power:+d}"


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _padded(body: bytes, flags: str, width: int | None, prefix: bytes) -> bytes:
    """Fill up to a width: at the right with "-", with zeros behind the prefix with "0", else at the left."""
    missing = (width or 0) - len(prefix) - len(body)
    if "-" in flags:
        return prefix + body + b" " * missing
    if "0" in flags:
        return prefix + b"0" * missing + body
    return b" " * missing + prefix + body
