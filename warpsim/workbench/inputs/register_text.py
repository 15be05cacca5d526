"""Registers and matrices as text: words as printf prints them, codes and values in rows.

Reads text that users paste: with or without a line for each lane; labels such as ``lane 5:``, ``T5 a0 =`` or
``lane 0 reg 0 =``; words with ``0x``, or of full width without it, or as integers; values of elements as
decimals. A format describes any other text. Knows no instruction and no files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import TraceError, WarpsimError
from ...isa.formats import Format
from ...isa.numerals import whole_number
from ...isa.products import Storage
from ...isa.registers import Words, packed
from .decimals import Printed, is_integer, nearest, number_of, printed_of

_COMMENT = re.compile(r"(#|//).*")
_LABEL = re.compile(r"\W*\b(?:lane|thread|tid|t)[\s=:#\[(]*+(\d++)[\])]?\s*+[:,=]?", re.IGNORECASE)
# A name has "=" or ":" behind it, or is that of an operand: "a 3c003c00", "a0 0x1", "a[0] 3c003c00".
_WORD_NEXT = r"(?=(?:0x[0-9a-f]{1,16}|[0-9a-f]{8}|[0-9a-f]{16})\b)"
_BARE = rf"(?:(?<=\b[a-e]\s)|(?<=\b[a-e]\d\s)|(?<=\b[a-e]\[\d\]\s)){_WORD_NEXT}"
_NAME = re.compile(rf"%?\b([a-z_]\w*+)\s*+[\[(]?(\d++)?[\])]?\s*+(?:[=:]|{_BARE})", re.IGNORECASE)
_LINE = re.compile(r"\S[^\r\n]*")
_REGISTERS = {"reg", "register", "r"}  # names that only introduce a number
_NUMBER = re.compile(r"[+-]?[\d.]")
_HEADING = re.compile(r"\s*+[a-z_ ]++\d{0,6}+\s*+:?\s*+$", re.IGNORECASE)  # "mma 0:", which begins a step
_FIELDS = {
    "lane": r"\s*\d+",
    "name": r"%?[a-z_]+?",
    "reg": r"\d+",
    "hex": r"(?:0x)?[0-9a-f]+",
    "value": r"[-+.\w]+",
    "step": r"\d+",
}
_SEPARATORS = re.compile(r"[\s,;{}\[\]()|]+")
_WORD = re.compile(r"0x([0-9a-f]{1,16})|([0-9a-f]{8}|[0-9a-f]{16})", re.IGNORECASE)
_PLAIN = re.compile(r"(?:0x[0-9a-f]++\s*+)++", re.IGNORECASE)  # words in hexadecimal alone: no name, no label
_CELL = re.compile(r"[+-]?(?:\d|inf|nan|[0-9a-f]{8})", re.IGNORECASE)  # not a word of a sentence
_CODE = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)
_ROW = re.compile(r"^\s*+row\s*+\d++\s*+[:=]", re.IGNORECASE)
_COLUMN_NAME = re.compile(r"(?!nan$|inf$)\W*+[a-z_]\w*+\W*+", re.IGNORECASE)
_MOST_WORDS = 1 << 18  # characters of text; the text takes a hundred times the memory of its array
_SHORT = 24  # characters of a word that an error message quotes

# --- registers -------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """The words of a line, the lane at its beginning, and the name and number before them, if any."""

    line: int
    lane: int | None
    name: str
    register: int | None
    words: list[str]


class Reading(NamedTuple):
    """Words ``(lanes, registers)`` or ``(tiles, lanes, registers)``, and how they were printed."""

    words: Words
    printed: Printed | None = None


def words_from(text: str, lanes: int, registers: int, bits: int = 32, operand: str = "") -> Words:
    """Return ``(lanes, registers)`` words, or ``(tiles, lanes, registers)`` where there are several tiles.

    Lines that begin with a lane's number may come in any order; otherwise lane 0 comes first with all its
    registers. A single word fills all registers of all lanes. Where some words have the operand's name before
    them, as in ``a0 = 0x3c003c00``, only those count. ``#`` and ``//`` begin comments. Raises TraceError,
    naming the line.
    """
    return reading_from(text, lanes, registers, bits, operand).words


def reading_from(
    text: str,
    lanes: int,
    registers: int,
    bits: int = 32,
    operand: str = "",
    element: Format | None = None,
) -> Reading:
    """Return words as words_from does; with an ``element`` also words as integers, elements as decimals or
    integers.

    Integers of elements narrower than a word, or too large for a value, are words. Raises as words_from does,
    and OperandError for integers that the element does not have.
    """
    pieces = _operand_words(text, operand)
    cells = [(word, piece.line) for piece in pieces for word in piece.words]
    whole = all(_WORD.fullmatch(word) for word, _ in cells)
    integers = not whole and all(is_integer(word) for word, _ in cells)
    if integers and element is None:
        return Reading(_placed(pieces, lanes, registers, lambda word, line: _decimal(word, line, bits), bits))
    if whole or element is None or any("0x" in word.lower() and "p" not in word.lower() for word, _ in cells):
        return Reading(_placed(pieces, lanes, registers, lambda word, line: _word(word, line, bits), bits))
    spelled = [word for word, _ in cells]
    if integers and _are_words(spelled, element, bits):
        return Reading(_placed(pieces, lanes, registers, lambda word, _: int(word) % (1 << bits), bits))
    return _words_of_values(pieces, lanes, registers, bits, element)


def has_digits_alone(text: str, operand: str = "") -> bool:
    """Return whether words are eight decimal digits without 0x, so that each may be hexadecimal or decimal.

    %u leaves out leading zeros; a zero in front is of a hexadecimal word.
    """
    words = [word for piece in _operand_words(text, operand) for word in piece.words]
    return all(len(word) == 8 and word.isdecimal() and word[0] != "0" for word in words)


def printed_as(text: str, operand: str = "") -> Printed | None:
    """Return how the numbers of a text, or of an operand in it, are printed; None where they are exact."""
    pieces = _operand_words(text, operand)
    cells = [word for piece in pieces for word in piece.words if not _WORD.fullmatch(word)]
    return printed_of([cell for cell in cells if _NUMBER.match(cell)])


def _operand_words(text: str, operand: str) -> list[_Piece]:
    """Return the words of an operand, all words where it has no name; without headings and sentences."""
    pieces = [piece for piece in _pieces(text) if not _is_heading(piece)]
    pieces = [piece for piece in pieces if operand and piece.name == operand] or pieces
    if all(piece.lane is None for piece in pieces):
        return pieces
    return [piece for piece in pieces if piece.lane is not None or all(map(_CELL.match, piece.words))]


def _is_heading(piece: _Piece) -> bool:
    """Return the label ``mma 0:``, which begins a step."""
    text = " ".join(piece.words)
    return not _WORD.fullmatch(text) and bool(_HEADING.fullmatch(text))


def _are_words(cells: list[str], element: Format, bits: int) -> bool:
    """Return whether integers are registers and not elements."""
    largest = max(abs(int(cell)) for cell in cells)
    return (element.bits < bits and largest >> element.bits > 0) or (element.is_float and largest >> 24 > 0)


def _words_of_values(pieces: list[_Piece], lanes: int, registers: int, bits: int, element: Format) -> Reading:
    """Return the words that hold the elements, as many elements per register as fit."""
    each = bits // element.bits
    codes = _placed(
        pieces, lanes, registers * each, lambda word, line: _code(word, line, element), element.bits
    )
    words = packed(codes.astype(element.code_dtype), Storage(bits=element.bits), bits)
    return Reading(words, printed_of([word for piece in pieces for word in piece.words]))


def _code(cell: str, line: int, element: Format) -> int:
    try:
        return int(nearest(np.array([number_of(cell)]), element)[0])
    except WarpsimError as error:
        raise TraceError(f"line {line}: {error.message}") from None


def _placed(
    pieces: list[_Piece], lanes: int, registers: int, code: Callable[[str, int], int], bits: int
) -> Words:
    """Return the words or elements of all lanes, sorted by lane where every line has a lane number."""
    numbered = all(piece.register is not None and len(piece.words) == 1 for piece in pieces)
    order: Iterable[_Piece] = _by_number(pieces) if numbered else pieces
    labelled: dict[int, list[int]] = {}
    plain: list[int] = []
    for piece in order:
        words = [code(word, piece.line) for word in piece.words]
        (plain if piece.lane is None else labelled.setdefault(piece.lane, [])).extend(words)
    if labelled and plain:
        raise TraceError("some lines begin with the number of a lane and others do not")
    flat = _by_lane(labelled, lanes, registers) if labelled else _in_order(plain, lanes, registers)
    array: Words = flat.astype(f"u{max(bits, 8) // 8}").reshape(-1, lanes, registers)
    return array[0] if len(array) == 1 else array


def _by_number(pieces: list[_Piece]) -> list[_Piece]:
    """Return, by lane, the registers with the number of times that each has come before, and its number."""
    times: Counter[tuple[int | None, int | None]] = Counter()
    placed = []
    for piece in pieces:
        key = piece.lane, piece.register
        placed.append((times[key], piece))
        times[key] += 1
    return [piece for _, piece in sorted(placed, key=lambda pair: (pair[0], pair[1].register or 0))]


def spelled_out(text: str, format: str) -> str:
    """Rewrite text in a user's format, such as ``lane {lane} {name}[{reg}] = {hex}``, as this module reads
    it.

    The fields are lane, name, reg, step, and hex (a word, with 0x or without) or value (a number). Raises
    TraceError for other fields, and where nothing in the text has that form.
    """
    pattern = _pattern(format)
    lines = []
    for match in pattern.finditer(text):
        found = match.groupdict()
        value = found.get("value") or f"0x{found['hex'].lower().removeprefix('0x')}"
        lane = f"lane {found['lane'].strip()}: " if "lane" in found else ""
        lane = f"step {found['step']} {lane}" if lane and "step" in found else lane
        name = found.get("name", "" if "reg" not in found else "reg")
        register = f"{name}[{found['reg']}] = " if "reg" in found else f"{name} = " if name else ""
        lines.append(f"{lane}{register}{value}")
    if not lines:
        raise TraceError(f"nothing in the text has the form {format!r}")
    return "\n".join(lines)


def _pattern(format: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", format)
    fields = parts[1::2]
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown or len(set(fields) & {"hex", "value"}) != 1 or len(set(fields)) != len(fields):
        raise TraceError(
            f"format {format!r}: it has {{hex}} or {{value}}, and perhaps each of "
            f"{', '.join(f'{{{name}}}' for name in _FIELDS if name not in ('hex', 'value'))} once"
        )
    pieces = [
        f"(?P<{part}>{_FIELDS[part]})" if place % 2 else r"\s+".join(map(re.escape, re.split(r"\s+", part)))
        for place, part in enumerate(parts)
    ]
    return re.compile("".join(pieces), re.IGNORECASE)


def dump_from(text: str) -> Words:
    """Return ``(lanes, words)`` of text whose lanes and registers are not known, in the order of lines or
    labels.

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
    """Return the names before words, without the numbers at their ends and without repetition."""
    return tuple(dict.fromkeys(piece.name for piece in _pieces(text) if piece.name))


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the words of every line, split where a name stands between them."""
    count = 0
    for number, line in _lines(text):
        if _PLAIN.fullmatch(line):  # most lines of large dumps
            words = line.split()
            count = _check_count(count + len(words), number)
            yield _Piece(number, None, "", None, words)
            continue
        content = _COMMENT.sub("", line)
        label = _LABEL.match(content)
        content = content[label.end() :] if label else content
        lane = _lane(label[1], number) if label else None
        start, name, register = 0, "", None
        for match in (*_NAME.finditer(content), None):
            part = content[start : match.start() if match else None]
            if words := [word for word in _SEPARATORS.split(part) if word]:
                count = _check_count(count + len(words), number)
                yield _Piece(number, lane, name, register, words)
            if match:
                start = match.end()
                name, register = _name_and_number(match[1].lower(), match[2])


def _name_and_number(name: str, number: str | None) -> tuple[str, int | None]:
    """Return a name and the number of a register, which may be at the end of the name."""
    if not number:
        stem = name.rstrip("0123456789")
        name, number = stem, name[len(stem) :]
    return "" if name in _REGISTERS else name, whole_number(number, _MOST_WORDS)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, and their numbers."""
    number, counted = 1, 0
    for match in _LINE.finditer(text):
        number += text.count("\n", counted, match.start())
        counted = match.start()
        yield number, match[0]


def _check_count(words: int, line: int) -> int:
    """Return the number of words so far, if it is within the limit."""
    if words > _MOST_WORDS:
        raise TraceError(f"line {line}: more than {_MOST_WORDS:,} words of text: give an .npy file")
    return words


def _lane(text: str, line: int) -> int:
    lane = whole_number(text, _MOST_WORDS)
    if lane is None:
        raise TraceError(
            f"line {line}: lane {text[:_SHORT]} does not exist: lanes are 0 to 31, of a warpgroup to 127"
        )
    return lane


def _word(text: str, line: int, bits: int) -> int:
    match = _WORD.fullmatch(text)
    value = int(match[1] or match[2], 16) if match else 1 << bits
    if value >> bits:
        raise TraceError(
            f"line {line}: {text[:_SHORT]!r} is not a hexadecimal word of {bits} bits: print registers "
            f"with 0x%0{bits // 4}x"
        )
    return value


def _decimal(text: str, line: int, bits: int) -> int:
    """Return a word that was printed as an integer, with %u or %d."""
    value = int(text)
    if not -1 << (bits - 1) <= value < 1 << bits:
        raise TraceError(f"line {line}: {text[:_SHORT]} is not an integer of {bits} bits")
    return value % (1 << bits)


def _by_lane(labelled: dict[int, list[int]], lanes: int, registers: int) -> npt.NDArray[np.uint64]:
    """Return the words of labelled lines, tile after tile."""
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
    """Return the words of lines without labels."""
    if len(words) == 1:
        return np.full((1, lanes, registers), words[0], np.uint64)
    if not words or len(words) % (lanes * registers):
        raise TraceError(
            f"{len(words)} words, but {registers} in each of {lanes} lanes are {lanes * registers}"
        )
    return np.array(words, np.uint64)


def word_lines(**operands: Words) -> Iterator[str]:
    """Yield a line for each lane with the words of each operand ``(..., lanes, registers)``, tile after tile.

    The names of the operands are printed if there are several operands.
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
    """Return ``(rows, columns)`` of codes (all with 0x: unsigned integers) or of values (integers, or
    floats).

    Raises TraceError, naming the line.
    """
    return numbers_from(text, columns)[0]


@in_default_environment
def numbers_from(text: str, columns: int) -> tuple[npt.NDArray[Any], Printed | None]:
    """Return codes or values as numbers_from does, and how values were printed if they may be rounded.

    Rows may begin with ``row 3:``; a first line without numbers is a heading, as in CSV; in brackets, as
    NumPy and JSON print, rows may span lines.
    """
    cells = _cells(text, columns)
    if not cells:
        raise TraceError("there are no elements")
    if all(_CODE.fullmatch(cell) for cell in cells):
        return np.array([int(cell, 16) for cell in cells], np.uint64).reshape(-1, columns), None
    return np.array([number_of(cell) for cell in cells]).reshape(-1, columns), printed_of(cells)


def columns_in(text: str, least: int) -> int:
    """Return the number of columns of all rows if it is the same and at least that of one instruction."""
    rows = text.split("]") if "[" in text else [_ROW.sub("", line) for line in text.splitlines()]
    cells = [[cell for cell in _SEPARATORS.split(_COMMENT.sub("", row)) if cell] for row in rows]
    counts = {len(row) for row in cells if row and not all(map(_COLUMN_NAME.fullmatch, row))}
    (count, *others) = counts or {least}
    return count if not others and count >= least else least


def _cells(text: str, columns: int) -> list[str]:
    cells: list[str] = []
    bracketed = "[" in text
    for number, line in _lines(text):
        content = _ROW.sub("", _COMMENT.sub("", line))
        row = list(filter(None, _SEPARATORS.split(content)))
        if not cells and row and all(_COLUMN_NAME.fullmatch(cell) for cell in row):
            continue
        if not bracketed and len(row) % columns:
            raise TraceError(f"line {number}: {len(row)} elements, but a row has {columns}")
        cells += row
        _check_count(len(cells), number)
    if len(cells) % columns:
        raise TraceError(f"there are {len(cells)} elements, but a row has {columns}")
    return cells


@in_default_environment
def elements_from(array: npt.NDArray[Any], element: Format, what: str) -> npt.NDArray[Any]:
    """Return an array in the format's dtype or as codes; other numbers are converted if that is exact.

    Raises TraceError for a number that the format does not have: rounding is left to the caller.
    """
    if array.dtype.kind == "V" and array.dtype.itemsize == element.dtype.itemsize:
        return array.view(element.dtype)  # NumPy has no names for the dtypes that ml_dtypes saves
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
    """Yield a line for each row of a matrix of codes ``(..., rows, columns)``, tile after tile."""
    for tile in np.ndindex(codes.shape[:-2]):
        if tile:
            yield f"# tile {', '.join(map(str, tile))}"
        for row in codes[tile]:
            yield " ".join(f"{int(code):#0{2 + -(-bits // 4)}x}" for code in row)
