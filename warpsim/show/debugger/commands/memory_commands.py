"""``x``: memory as words, as in x/8xw shared+0x400."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....base.errors import OperandError
from ....machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ....workbench.debugger.addresses import address_of, offset_of
from ....workbench.debugger.value_formatting import TYPES, Array, check_format, shown
from ....workbench.debugger.written import CELL, memory_of

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel

_SPELLING = re.compile(r"/(?P<count>[0-9]{0,6})(?P<letters>.*)")
_SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}
_LINE = 16  # bytes in a line
_MOST = 4096  # words


def examine(session: Travel, text: str) -> str:
    """Print words of memory."""
    count, letters, size, place = _parse_examine(text)
    if not place:
        raise OperandError("x where? An address, as in x/8xw shared+0x400, or arg2[3,5]")
    given = address_of(session, place)
    kind = given.type or ""
    width = size or (TYPES[kind].itemsize if kind else 4)
    if kind and TYPES[kind].itemsize != width:
        kind = ""
    if given.space != "tmem" and given.address % width:
        raise OperandError(f"{given.space} {given.address:#x} is not a multiple of {width}")
    first = offset_of(session, given, width * count)
    _, wave, _ = session.wave()
    content = memory_of(wave, given.space)[first : first + width * count]
    words = content.copy().view(f"u{width}")
    letters = letters or ("" if kind else "x")
    texts = [shown(word, kind, letters) for word in words]
    if given.space == "tmem":
        known = TENSOR_MEMORY.of(wave).written.reshape(-1)[first // CELL :]
        texts = [text if written else "never written" for text, written in zip(texts, known, strict=False)]
    return "\n".join(_rows(given.space, given.address, words, texts))


def _parse_examine(text: str) -> tuple[int, str, int, str]:
    """Return count, format, size in bytes (0 for none) and address. Raises OperandError."""
    if not text.startswith("/"):
        return 1, "", 0, text
    spelled, _, rest = text.partition(" ")
    match = _SPELLING.fullmatch(spelled)
    assert match is not None
    count, letters = int(match["count"] or 1), match["letters"]
    if not 1 <= count <= _MOST:
        raise OperandError(f"{spelled}: from 1 to {_MOST} words")
    size = 0
    if letters[-1:] in _SIZES and letters not in ("h", "bf") and (len(letters) == 1 or letters[:-1]):
        size, letters = _SIZES[letters[-1]], letters[:-1]
    elif letters == "h":
        size, letters = 2, "f16"
    return count, check_format(letters), size, rest.strip()


def _rows(space: str, address: int, words: Array, texts: list[str]) -> Iterator[str]:
    size = words.dtype.itemsize
    width, in_line = max(map(len, texts)), max(_LINE // size, 1)
    for start in range(0, len(texts), in_line):
        row = "  ".join(f"{text:>{width}}" for text in texts[start : start + in_line])
        yield f"{_place(space, address, start * size)}:  {row}"


def _place(space: str, address: int, more: int) -> str:
    """Return the address that lies so many bytes behind another."""
    if space == "tmem":
        return f"tmem[{address >> 16},{(address & 0xFFFF) + more // CELL}]"
    return f"{space} {address + more:#x}"
