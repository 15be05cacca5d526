"""Registers and matrices as text: words as a printf prints them, codes and values in rows.

Reads what people paste: a line for each lane, or not; labels such as ``lane 5:`` or ``T5 a0 =``; words with
``0x``, or of full width without. Knows no instruction and no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..environment import in_default_environment
from ..errors import TraceError
from ..isa.formats import Format
from ..isa.numerals import whole_number
from ..isa.registers import Words

_COMMENT = re.compile(r"(#|//).*")
_LABEL = re.compile(r"\W*\b(?:lane|thread|tid|t)[\s=:#\[(]*+(\d++)[\])]?\s*+[:,=]?", re.IGNORECASE)
_NAME = re.compile(r"%?\b([a-z_]\w*+)(?:\[\d++\])?\s*+[=:]", re.IGNORECASE)
_LINE = re.compile(r"\S[^\r\n]*")
_SEPARATORS = re.compile(r"[\s,;{}\[\]()|]+")
_WORD = re.compile(r"0x([0-9a-f]{1,16})|([0-9a-f]{8}|[0-9a-f]{16})", re.IGNORECASE)
_CODE = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)
_MOST_WORDS = 1 << 18  # of text, which takes a hundred times the memory of the array it becomes
_SHORT = 24  # characters of a word that an error message quotes

# --- registers -------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """Words of a line, the lane that begins it and the name before them, where there is one."""

    line: int
    lane: int | None
    name: str
    words: list[str]


def words_from(text: str, lanes: int, registers: int, bits: int = 32, operand: str = "") -> Words:
    """``(lanes, registers)`` words, or ``(tiles, lanes, registers)`` where there are several tiles.

    Lines that begin with a lane's number may come in any order; otherwise lane 0 comes first with all its
    registers. A single word fills all registers of all lanes. Where some words have the operand's name before
    them, as in ``a0 = 0x3c003c00``, only those count. ``#`` and ``//`` begin comments. Raises TraceError,
    naming the line.
    """
    pieces = list(_pieces(text))
    pieces = [piece for piece in pieces if operand and piece.name == operand] or pieces
    labelled: dict[int, list[int]] = {}
    plain: list[int] = []
    for piece in pieces:
        words = [_word(word, piece.line, bits) for word in piece.words]
        (plain if piece.lane is None else labelled.setdefault(piece.lane, [])).extend(words)
    if labelled and plain:
        raise TraceError("some lines begin with the number of a lane and others do not")
    flat = _by_lane(labelled, lanes, registers) if labelled else _in_order(plain, lanes, registers)
    array: Words = flat.astype(f"u{bits // 8}").reshape(-1, lanes, registers)
    return array[0] if len(array) == 1 else array


def dump_from(text: str) -> Words:
    """``(lanes, words)`` of text whose lanes and registers are not known, in the order of lines or labels.

    Raises TraceError, naming the line.
    """
    rows: dict[int, list[int]] = {}
    for piece in _pieces(text):
        words = [_word(word, piece.line, 32) for word in piece.words]
        rows.setdefault(piece.line if piece.lane is None else piece.lane, []).extend(words)
    if len({len(words) for words in rows.values()}) != 1:
        raise TraceError("the lines have different numbers of words" if rows else "there are no words")
    return np.array([words for _, words in sorted(rows.items())], np.uint32)


def names_in(text: str) -> tuple[str, ...]:
    """The names before words, without the numbers at their ends, each once."""
    return tuple(dict.fromkeys(piece.name for piece in _pieces(text) if piece.name))


def _pieces(text: str) -> Iterator[_Piece]:
    """The words of every line, apart where a name stands between them. Raises TraceError."""
    count = 0
    for number, line in _lines(text):
        content = _COMMENT.sub("", line)
        label = _LABEL.match(content)
        content = content[label.end() :] if label else content
        lane = _lane(label[1], number) if label else None
        start, name = 0, ""
        for match in (*_NAME.finditer(content), None):
            part = content[start : match.start() if match else None]
            if words := [word for word in _SEPARATORS.split(part) if word]:
                count = _counted(count + len(words), number)
                yield _Piece(number, lane, name, words)
            if match:
                start, name = match.end(), match[1].lower().rstrip("0123456789")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, and their numbers."""
    number, counted = 1, 0
    for match in _LINE.finditer(text):
        number += text.count("\n", counted, match.start())
        counted = match.start()
        yield number, match[0]


def _counted(words: int, line: int) -> int:
    """The number of words so far, if it is not too large."""
    if words > _MOST_WORDS:
        raise TraceError(f"line {line}: more than {_MOST_WORDS:,} words of text: give an .npy file")
    return words


def _lane(text: str, line: int) -> int:
    lane = whole_number(text, _MOST_WORDS)
    if lane is None:
        raise TraceError(
            f"line {line}: lane {text[:_SHORT]} is none: lanes are 0 to 31, of a warpgroup to 127"
        )
    return lane


def _word(text: str, line: int, bits: int) -> int:
    match = _WORD.fullmatch(text)
    value = int(match[1] or match[2], 16) if match else 1 << bits
    if value >> bits:
        raise TraceError(
            f"line {line}: {text[:_SHORT]!r} is no hexadecimal word of {bits} bits: print registers "
            f"with 0x%0{bits // 4}x"
        )
    return value


def _by_lane(labelled: dict[int, list[int]], lanes: int, registers: int) -> npt.NDArray[np.uint64]:
    """The words of lines with labels, tile after tile."""
    foreign = [lane for lane in labelled if lane >= lanes]
    missing = [lane for lane in range(lanes) if lane not in labelled]
    if foreign or missing:
        what = f"lane {foreign[0]} is there" if foreign else f"lane {missing[0]} is missing"
        raise TraceError(f"{what}, but the lanes are 0 to {lanes - 1}")
    for lane, words in sorted(labelled.items()):
        if len(words) % registers or len(words) != len(labelled[0]):
            raise TraceError(f"lane {lane} has {len(words)} words, but each lane has {registers}")
    array = np.array([labelled[lane] for lane in range(lanes)], np.uint64)
    return array.reshape(lanes, -1, registers).swapaxes(0, 1)


def _in_order(words: list[int], lanes: int, registers: int) -> npt.NDArray[np.uint64]:
    """The words of lines without labels."""
    if len(words) == 1:
        return np.full((1, lanes, registers), words[0], np.uint64)
    if not words or len(words) % (lanes * registers):
        raise TraceError(
            f"{len(words)} words, but {registers} in each of {lanes} lanes are {lanes * registers}"
        )
    return np.array(words, np.uint64)


def word_lines(**operands: Words) -> Iterator[str]:
    """A line for each lane with the words of each operand ``(..., lanes, registers)``, tile after tile.

    The names of the operands are printed where there are several.
    """
    lead = np.broadcast_shapes(*(words.shape[:-2] for words in operands.values()))
    full = {name: np.broadcast_to(x, (*lead, *x.shape[-2:])) for name, x in operands.items()}
    for tile in np.ndindex(lead):
        if lead:
            yield f"# tile {', '.join(map(str, tile))}"
        lanes = len(next(iter(full.values()))[tile])
        for lane in range(lanes):
            parts = [_lane_text(name, x[tile][lane], named=len(full) > 1) for name, x in full.items()]
            yield f"lane {lane:{len(str(lanes - 1))}}: {'  '.join(parts)}"


def _lane_text(name: str, words: Words, *, named: bool) -> str:
    text = " ".join(f"{int(word):#0{2 + 2 * words.itemsize}x}" for word in words)
    return f"{name} = {text}" if named else text


# --- matrices --------------------------------------------------------------------------------------


@in_default_environment
def matrix_from(text: str, columns: int) -> npt.NDArray[Any]:
    """``(rows, columns)`` of codes (all with 0x: unsigned integers) or of values (integers, or floats).

    Raises TraceError, naming the line.
    """
    cells: list[str] = []
    for number, line in _lines(text):
        row = list(filter(None, _SEPARATORS.split(_COMMENT.sub("", line))))
        if len(row) % columns:
            raise TraceError(f"line {number}: {len(row)} elements, but a row has {columns}")
        cells += row
        _counted(len(cells), number)
    if not cells:
        raise TraceError("there are no elements")
    if all(_CODE.fullmatch(cell) for cell in cells):
        return np.array([int(cell, 16) for cell in cells], np.uint64).reshape(-1, columns)
    return np.array([_value(cell) for cell in cells]).reshape(-1, columns)


def _value(cell: str) -> int | float:
    try:
        return float(cell) if not re.fullmatch(r"[+-]?\d{1,18}", cell) else int(cell)
    except ValueError:
        raise TraceError(f"{cell[:_SHORT]!r} is neither a value nor a code with 0x") from None


@in_default_environment
def elements_from(array: npt.NDArray[Any], element: Format, what: str) -> npt.NDArray[Any]:
    """An array in the format's dtype or as codes; other numbers are converted if that changes none.

    Raises TraceError for a number that the format does not have: rounding is left to the caller.
    """
    if array.dtype == element.dtype or array.dtype.kind in "ub" or not element.is_float:
        return array
    if array.dtype.kind not in "if":
        raise TraceError(f"{what} has dtype {array.dtype}, but {element} elements come as numbers or codes")
    with np.errstate(all="ignore"):
        made: npt.NDArray[Any] = array.astype(element.dtype)
        wide, back = array.astype(np.float64), made.astype(np.float64)
    changed = (wide != back) & ~(np.isnan(wide) & np.isnan(back))
    if changed.any():
        place = tuple(int(i) for i in np.argwhere(changed)[0])
        raise TraceError(
            f"{what}{list(place)} is {array[place]}, which {element} does not have: round it first"
        )
    return made


def code_lines(codes: npt.NDArray[Any], bits: int) -> Iterator[str]:
    """A line for each row of a matrix of codes ``(..., rows, columns)``, tile after tile."""
    for tile in np.ndindex(codes.shape[:-2]):
        if tile:
            yield f"# tile {', '.join(map(str, tile))}"
        for row in codes[tile]:
            yield " ".join(f"{int(code):#0{2 + -(-bits // 4)}x}" for code in row)
