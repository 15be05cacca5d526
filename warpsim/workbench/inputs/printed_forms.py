"""Texts as programs print arrays, rewritten as register_text reads them: rows, or a line for each lane.

Knows what PyTorch, NumPy, pandas, MATLAB, Julia, R, JSON, C, cuda-gdb and printf make of an array.
A text with two readings is refused, with both; a text that nothing here knows is returned as it is.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from ...base.errors import TraceError
from .foreign_numbers import in_plain_notation
from .lane_logs import Cell, lane_lines, lane_log

_VALUE = (
    r"[+-]?(?:0x[0-9a-fA-F.]{1,40}(?:p[+-]?\d{1,6})?|(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,6})?[fF]?"
    r"|inf|nan)"
)
_NUMBER = re.compile(_VALUE, re.IGNORECASE)
_ELEMENT = re.compile(
    r"\b([A-Za-z_]\w{0,63})\s*+[\[(]\s*+(\d{1,6})\s*+(?:\]\s*+\[|,)\s*+(\d{1,6})\s*+[\])]"
    rf"\s*+(?:=|:|->)\s*+({_VALUE})",
    re.IGNORECASE,
)
_ROW_COLUMN = re.compile(
    rf"\brow\s*+[=:]?\s*+(\d{{1,6}})[\s,;]++col(?:umn)?\s*+[=:]?\s*+(\d{{1,6}})\s*+[=:,]?\s*+({_VALUE})",
    re.IGNORECASE,
)
_CALL = re.compile(r"\b(?:tensor|array|matrix|DeviceArray|Array|ndarray)\s*+\(")
_LIST = re.compile(  # [1, 2], D = [1 2], tensor([1., 2.], device='cuda:0')
    rf"\s*+(?:\w++\s*+=\s*+)?(?:\w++\()?\[((?:\s*+{_VALUE}\.?\s*+,?|\s*+\.\.\.,?)++)\s*+\](?:,[^\[\]]*)?\)?;?\s*+",
    re.IGNORECASE,
)
_REPEATS = re.compile(rf"({_VALUE})\s*+<repeats (\d{{1,6}}) times>", re.IGNORECASE)
_COLUMNS = re.compile(r"^[ \t]*+Columns? \d+(?: (?:through|and) \d+)?:?[ \t]*+$", re.MULTILINE)
_FACTOR = re.compile(r"^[ \t]*+(\d+(?:\.\d+)?e[+-]?\d+)[ \t]*+\*[ \t]*+$", re.MULTILINE | re.IGNORECASE)
_REGISTER_ROW = re.compile(r"\s*+%?(?:[a-z]{1,4})\s*+\[?(\d{1,6})\]?\s*+[:=]", re.IGNORECASE)
_NUMBERED = re.compile(r"\s*+(?:\[(\d{1,6}),?\]|(\d{1,6})\s*+:)\s")
_LANE_NAMES = {"lane", "tid", "thread", "laneid", "lane_id", "threadidx.x"}
_REGISTER_NAMES = {"reg", "register", "r", "regid", "slot"}
_ROW_NAMES = {"row", "i", "m", "y"}
_COLUMN_NAMES = {"col", "column", "j", "n", "x"}
_VALUE_NAMES = {"value", "val", "v", "hex", "word", "data"}
_SPLIT = re.compile(r"[,;\t|]\s*|\s+")
_FLAT = re.compile(
    rf"\b([A-Za-z_]\w{{0,63}})\s*+\[\s*+(\d{{1,7}})\s*+\]\s*+(?:=|:|->)\s*+({_VALUE})", re.IGNORECASE
)
_DOTS = re.compile(r"\.\.\.|[\u2026\u22ee\u22ef\u22f1]")  # and Julia's, vertical, horizontal and diagonal
ORDERS = ("row-major", "column-major")  # of numbers without rows
_MOST = 1 << 23  # characters of a text that is read in another form


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a text is to be: operand ``name``, capital for a matrix of ``rows`` x ``columns`` or larger, else
    registers of ``lanes`` with ``values`` elements each. ``order`` is that of numbers without rows, if given;
    ``whole``: the rows and columns are those of the whole matrix.
    """

    name: str
    rows: int
    columns: int
    lanes: int
    values: int
    order: str = ""
    whole: bool = False

    @property
    def is_matrix(self) -> bool:
        """Whether rows and columns are wanted, and not registers."""
        return self.name.isupper()


Rows = list[list[str]]


def plain_text(text: str, wanted: Wanted) -> str:
    """Return a text in a form that register_text reads, with the same numbers.

    Raises TraceError for a text with two readings, or whose numbers are not all there.
    """
    if len(text) > _MOST:
        return text
    text = in_plain_notation(text, wanted.columns if wanted.is_matrix else wanted.values)
    for reader in _READERS:
        found = reader(text, wanted)
        if found is not None:
            return found
    return text


def _spelled(rows: Rows) -> str:
    return "\n".join(" ".join(row) for row in rows)


# --- cells by two indices ---------------------------------------------------------------------------------


def _placed(cells: dict[tuple[int, int], str], wanted: Wanted, what: str) -> str:
    """Return cells by row and column, or by lane and value; indices may begin with 1."""
    tops = tuple(max(key[side] for key in cells) for side in (0, 1))
    own = (wanted.rows, wanted.columns) if wanted.is_matrix else (wanted.lanes, wanted.values)
    least = min(key[0] for key in cells), min(key[1] for key in cells)
    first = 1 if least == (1, 1) and (0 not in {i for key in cells for i in key}) else 0
    size = tops[0] + 1 - first, tops[1] + 1 - first
    other = (wanted.lanes, wanted.values) if wanted.is_matrix else (wanted.rows, wanted.columns)
    if size == other != own:
        _ask(wanted, f"{what} up to ({tops[0]}, {tops[1]})")
    missing = next(
        ((r, c) for r in range(size[0]) for c in range(size[1]) if (r + first, c + first) not in cells), None
    )
    if missing is not None:
        raise TraceError(f"{what}: element ({missing[0] + first}, {missing[1] + first}) is missing")
    rows = [[cells[r + first, c + first] for c in range(size[1])] for r in range(size[0])]
    return _spelled(rows) if wanted.is_matrix else _lane_rows(rows)


def _lane_rows(rows: Rows) -> str:
    return lane_lines(
        Cell(0, lane, "", register, word)
        for lane, row in enumerate(rows)
        for register, word in enumerate(row)
    )


def _ask(wanted: Wanted, what: str) -> None:
    """Refuse a text that may be the matrix or the registers."""
    small, large = wanted.name.lower(), wanted.name.upper()
    raise TraceError(
        f"{what}: there are two readings. As rows and columns of the matrix give {large}=FILE; "
        f"as lanes and registers ({wanted.lanes} lanes of {wanted.values}) give {small}=FILE with 'lane N:' "
        "before each line"
    )


def _read_elements(text: str, wanted: Wanted) -> str | None:
    """Read ``D[i][j] = v``, ``D(i, j) = v`` and ``row i col j: v``."""
    found = [(name.lower(), int(r), int(c), value) for name, r, c, value in _ELEMENT.findall(text)]
    if found:
        names = {name for name, *_ in found}
        own = wanted.name.lower()
        if len(names) > 1 and own not in names:
            return None
        found = [each for each in found if len(names) == 1 or each[0] == own]
        what = "elements such as " + (_ELEMENT.search(text) or [""])[0]
    else:
        found = [("", int(r), int(c), value) for r, c, value in _ROW_COLUMN.findall(text)]
        what = "rows and columns"
    if len(found) < 2:
        return None
    return _placed({(row, column): value for _, row, column, value in found}, wanted, what)


# --- JSON and Python ---------------------------------------------------------------------------------------


def _read_json(text: str, wanted: Wanted) -> str | None:
    """Read JSON objects, lists of objects, a line for each, and dictionaries of Python."""
    bare = text.strip()
    if bare[:1] not in "{[" or not bare:
        return None
    value = _loaded(bare)
    if isinstance(value, dict):
        if value and all(isinstance(key, tuple) and len(key) == 2 for key in value):
            return _placed({key: repr(item) for key, item in value.items()}, wanted, "pairs of indices")
        value = _member(value, wanted)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return _read_records([{str(k).lower(): str(v) for k, v in item.items()} for item in value], wanted)
    rows = _rows_of(value)
    return None if rows is None else _checked_rows(rows, wanted)


def _loaded(text: str) -> Any:
    for load in (json.loads, _json_lines, ast.literal_eval):
        try:
            return load(text)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _json_lines(text: str) -> Any:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _member(value: dict[Any, Any], wanted: Wanted) -> Any:
    """Return the array of an object: that of the operand's name, or the only array of rows."""
    for name in (wanted.name, wanted.name.upper(), wanted.name.lower()):
        if name in value:
            return value[name]
    arrays = [item for item in value.values() if _rows_of(item) is not None]
    if len(arrays) > 1:
        known = ", ".join(str(key) for key, item in value.items() if _rows_of(item) is not None)
        raise TraceError(f"an object with several arrays, {known}: none of them is called {wanted.name}")
    return arrays[0] if arrays else None


def _rows_of(value: Any) -> Rows | None:
    """Return rows of a nested list of numbers."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) for row in value):
        return None
    flat = [cell for row in value for cell in row]
    if not flat or not all(isinstance(cell, int | float | str) for cell in flat):
        return None
    return [[cell if isinstance(cell, str) else repr(cell) for cell in row] for row in value]


def _checked_rows(rows: Rows, wanted: Wanted) -> str:
    """Return rows as the matrix, or as registers if each is that of a lane."""
    size = len(rows), len(rows[0])
    shape, held = (wanted.rows, wanted.columns), (wanted.lanes, wanted.values)
    if size in (shape, held) and shape != held and (size == shape) != wanted.is_matrix:
        _ask(wanted, f"{size[0]} rows of {size[1]} numbers")
    return _spelled(rows) if wanted.is_matrix else _lane_rows(rows)


# --- brackets ----------------------------------------------------------------------------------------------


def _read_brackets(text: str, wanted: Wanted) -> str | None:
    """Read ``tensor([[…]])``, ``array([[…]])``, ``D = [[…]]``, ``{{…}}`` of C and cuda-gdb."""
    if not (named := re.search(r"[\[{]\s*[\[{]", text)):
        return _read_lists(text, wanted)
    _check_whole(text)
    before = text[: named.start()]
    inner = _balanced(text, named.start())
    after = text[named.start() + len(inner) :]
    if not inner or (not _CALL.search(before) and "=" not in before and before.strip()):
        return None
    if re.search(r"[\[{]\s*[\[{]", after):
        return _read_named_brackets(text, wanted)
    body = _REPEATS.sub(lambda match: ", ".join([match[1]] * int(match[2])), inner[1:-1])
    rows = [_NUMBER.findall(part) for part in re.split(r"[\]}]", body)]
    rows = [row for row in rows if row]
    return _checked_rows(rows, wanted) if len({len(row) for row in rows}) == 1 else None


def _check_whole(text: str) -> None:
    """Refuse a text that leaves numbers out."""
    if found := _DOTS.search(text):
        raise TraceError(
            f"the text is a summary: numbers are left out where it has '{found[0]}'. Print all of it: "
            "torch.set_printoptions(profile='full'), numpy.set_printoptions(threshold=sys.maxsize), "
            'show(stdout, "text/plain", D) in Julia'
        )


def _read_named_brackets(text: str, wanted: Wanted) -> str | None:
    """Read that of several ``NAME = [[…]]`` which has the operand's name."""
    own = [match for match in re.finditer(r"\b(\w+)\s*+=\s*+\w*\(?[\[{]", text) if match[1] == wanted.name]
    if len(own) != 1:
        return None
    inner = _balanced(text, own[0].end() - 1)
    return _read_brackets(f"{wanted.name} = {inner}", wanted) if inner else None


def _balanced(text: str, start: int) -> str:
    """Return the bracketed text from a place on."""
    depth = 0
    for match in re.compile(r"[\[\]{}]").finditer(text, start):
        depth += 1 if match[0] in "[{" else -1
        if depth == 0:
            return text[start : match.end()]
    return ""


def _read_lists(text: str, wanted: Wanted) -> str | None:
    """Read ``$1 = {1, 2}`` of a debugger, line after line, and ``D = [1 2; 3 4]`` of MATLAB."""
    listed = re.findall(r"^\$\d+ = \{([^{}]*)\}", text, re.MULTILINE)
    if listed:
        repeated = (_REPEATS.sub(lambda m: ", ".join([m[1]] * int(m[2])), each) for each in listed)
        rows = [_NUMBER.findall(each) for each in repeated]
        return _checked_rows(rows, wanted) if len({len(row) for row in rows}) == 1 else None
    matlab = re.fullmatch(r"\s*+(?:\w++\s*+=\s*+)?\w*+\[([^\[\]]*+)\]\s*+;?\s*+", text)
    if matlab and ";" in matlab[1]:
        rows = [row for row in (_NUMBER.findall(part) for part in matlab[1].split(";")) if row]
        return _checked_rows(rows, wanted) if len({len(row) for row in rows}) == 1 else None
    if match := _LIST.fullmatch(text):
        _check_whole(match[1])
        return _in_memory(_NUMBER.findall(match[1]), wanted)
    return None


# --- tables ------------------------------------------------------------------------------------------------


def _cells_of(line: str) -> list[str]:
    bare = line.strip()
    if bare.startswith("|"):
        bare = bare.strip("|")
    separator = next((each for each in "|,;" if each in bare), None)
    return [cell.strip().strip("*`") for cell in bare.split(separator)]


def _read_tables(text: str, wanted: Wanted) -> str | None:
    """Read tables with headers and an index: CSV, pandas, R and Markdown."""
    lines = [line for line in text.splitlines() if line.strip() and not re.fullmatch(r"[\s|:+-]+", line)]
    if len(lines) < 3:
        return None
    if re.match(r"\s*(?:\[,\d+\]\s*)+$", lines[0]):
        lines = [re.sub(r"\[,?(\d+),?\]", r" \1 ", line) for line in lines]
    rows = [_cells_of(line) for line in lines]
    header, body = rows[0], rows[1:]
    if len({len(row) for row in body}) != 1:
        return None
    names = [name.strip("\"' ").lower() for name in header]
    if len(names) == len(body[0]) and (_LANE_NAMES | _ROW_NAMES) & set(names):
        named = _read_records([dict(zip(names, row, strict=True)) for row in body], wanted)
        if named is not None:
            return named
    return _indexed(names, body, wanted)


def _indexed(names: Sequence[str], body: Rows, wanted: Wanted) -> str | None:
    """Read a table whose first column counts its rows, with a header of as many names, or less by one."""
    width = len(body[0])
    if len(names) not in (width, width - 1) or width < 2:
        return None
    counted = [row[0] for row in body]
    if not all(cell.isdigit() for cell in counted):
        return None
    numbers = [int(cell) for cell in counted]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] > 1:
        return None
    heading = list(names[-(width - 1) :])
    plain = all(name.isdigit() for name in heading) and [int(n) for n in heading] in (
        list(range(width - 1)),
        list(range(1, width)),
    )
    if not plain and any(_NUMBER.fullmatch(name) for name in heading):
        return None
    return _checked_rows([row[1:] for row in body], wanted)


def _key(record: dict[str, str], names: set[str]) -> str | None:
    return next((name for name in record if name in names), None)


def _read_records(records: list[dict[str, str]], wanted: Wanted) -> str | None:
    """Read records with a value and two indices, or with a lane and the values of its registers."""
    first = records[0]
    value, lane = _key(first, _VALUE_NAMES), _key(first, _LANE_NAMES)
    register, row, column = (_key(first, names) for names in (_REGISTER_NAMES, _ROW_NAMES, _COLUMN_NAMES))
    try:
        if value and lane and register:
            what, pair = "lane and register", (lane, register)
        elif value and row and column:
            what, pair = "row and column", (row, column)
        elif lane and not value:
            return _wide(records, lane, wanted)
        else:
            return None
        cells = {(int(each[pair[0]]), int(each[pair[1]])): each[value].strip() for each in records}
    except (ValueError, KeyError):
        return None
    if (what == "lane and register") == wanted.is_matrix:
        small, large = wanted.name.lower(), wanted.name.upper()
        raise TraceError(f"the table has a {what}: give it as {small if wanted.is_matrix else large}=FILE")
    return _placed(cells, wanted, what)


def _wide(records: list[dict[str, str]], lane: str, wanted: Wanted) -> str | None:
    """Read a lane and the values of its registers, in the order of the header."""
    own = [
        name for name in records[0] if re.fullmatch(rf"(?:{wanted.name.lower()}|reg|r|acc)\W*\d+\W*", name)
    ]
    if wanted.is_matrix or len(own) != wanted.values:
        return None
    rows = {int(each[lane]): [each[name].strip() for name in own] for each in records}
    if sorted(rows) != list(range(wanted.lanes)):
        return None
    return _lane_rows([rows[at] for at in sorted(rows)])


# --- rows of numbers ----------------------------------------------------------------------------------------


def _read_columns(text: str, wanted: Wanted) -> str | None:
    """Read MATLAB's blocks of columns, and a common factor in front."""
    factor = _FACTOR.search(text)
    blocks = _COLUMNS.split(text)
    if not wanted.is_matrix or (factor is None and len(blocks) == 1):
        return None
    rows: Rows = []
    for block in blocks:
        part = [row for row in map(_numeric, block.splitlines()) if row]
        if part and rows and len(part) != len(rows):
            return None
        rows = (
            [[*left, *right] for left, right in zip(rows, part, strict=True)]
            if part and rows
            else rows or part
        )
    if factor is not None:
        rows = [[_scaled(cell, factor[1]) for cell in row] for row in rows]
    return _spelled(rows) if rows else None


def _scaled(cell: str, factor: str) -> str:
    """Return a number times a power of ten, digit for digit."""
    try:
        return f"{Decimal(cell) * Decimal(factor).normalize():f}"
    except InvalidOperation:
        return cell


def _numeric(line: str) -> list[str]:
    """Return the cells of a line of numbers alone."""
    cells = [cell.strip("\"'") for cell in _SPLIT.split(line.strip().strip(",;")) if cell]
    return cells if cells and all(_NUMBER.fullmatch(cell) for cell in cells) else []


def _read_rows(text: str, wanted: Wanted) -> str | None:
    """Read rows of numbers with other lines around them; refuse what may be the matrix or the registers."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [_numeric(line) for line in lines]
    numbers = [row for row in rows if row]
    if not numbers or len({len(row) for row in numbers}) != 1:
        return None
    width = len(numbers[0])
    if len(numbers) == wanted.rows + 1 and wanted.is_matrix and _counts(numbers[0]):
        return _spelled(numbers[1:])  # a heading
    if wanted.is_matrix and any('"' in line or "'" in line for line in lines) and len(numbers) == wanted.rows:
        return _spelled(numbers)
    for line, row in zip(lines, rows, strict=True):
        if not row and _DOTS.fullmatch(line.split()[0]):
            _check_whole(text)
    if 1 in (width, len(numbers)) and (flat := _in_memory([cell for row in numbers for cell in row], wanted)):
        return flat
    if wanted.is_matrix and (width, len(numbers)) == (wanted.rows, wanted.columns) != (
        wanted.columns,
        wanted.rows,
    ):
        return _transposed(numbers, wanted)
    if width == 3 and (found := _read_triples(numbers, wanted)):
        return found
    size, shape, held = (len(numbers), width), (wanted.rows, wanted.columns), (wanted.lanes, wanted.values)
    decimal = not any("0x" in cell.lower() for cell in numbers[0])
    if decimal and shape != held and size == (held if wanted.is_matrix else shape):
        _ask(wanted, f"{size[0]} lines of {size[1]} numbers")
    plain = all(
        re.search(r"[A-Za-z]{2}", line) and "#" not in line and "//" not in line
        for line, row in zip(lines, rows, strict=True)
        if not row
    )
    if wanted.is_matrix and len(numbers) < len(rows) and plain and width == wanted.columns:
        return _spelled(numbers)
    return None


def _counts(cells: list[str]) -> bool:
    """Return whether cells are 0, 1, 2 … or 1, 2, 3 …"""
    return any(cells == [str(first + at) for at in range(len(cells))] for first in (0, 1))


def _in_memory(cells: list[str], wanted: Wanted) -> str | None:
    """Return numbers without rows, as many as the matrix has, in the order that was given; ask for it."""
    rows, columns = wanted.rows, wanted.columns
    if not wanted.is_matrix or min(rows, columns) < 2:
        return None
    if len(cells) != rows * columns:
        if not wanted.whole or len(cells) < 2 * max(rows, columns):
            return None
        raise TraceError(
            f"{len(cells)} numbers without rows, but {wanted.name} of A and B is {rows} x {columns}: "
            f"{rows * columns} numbers"
        )
    if not wanted.order:
        raise TraceError(
            f"{len(cells)} numbers without rows: there are two readings. Row after row: --format row-major; "
            f"column after column (Fortran, MATLAB, Julia): --format column-major"
        )
    across = wanted.order == ORDERS[0]
    return _spelled(
        [[cells[r * columns + c if across else c * rows + r] for c in range(columns)] for r in range(rows)]
    )


def _transposed(numbers: Rows, wanted: Wanted) -> str:
    """Return lines that are columns, if the order says so; ask for it."""
    if not wanted.order:
        size = f"{len(numbers)} lines of {len(numbers[0])} numbers"
        size += f", but {wanted.name} is {wanted.rows} x {wanted.columns}"
        raise TraceError(
            f"{size}: there are two readings. The lines are columns (transposed): --format column-major; "
            "or they are the memory of the matrix, row after row: --format row-major"
        )
    if wanted.order == ORDERS[0]:
        return _in_memory([cell for row in numbers for cell in row], wanted) or ""
    return _spelled([list(row) for row in zip(*numbers, strict=True)])


def _read_flat(text: str, wanted: Wanted) -> str | None:
    """Read ``D[17] = v``: an index in memory, row after row if no other order is given."""
    found = [(name.lower(), int(at), value) for name, at, value in _FLAT.findall(text)]
    found = [each for each in found if each[0] == wanted.name.lower()] or found
    cells = {at: value for _, at, value in found}
    count = wanted.rows * wanted.columns
    own = len({name for name, *_ in found}) == 1 and len(found) == len(cells)
    if (
        not wanted.is_matrix
        or not own
        or len(cells) < min(count, 4)
        or max(cells) < max(wanted.lanes, wanted.values)
    ):
        return None
    missing = next((at for at in range(count) if at not in cells), None)
    if missing is not None or len(cells) != count:
        what = f"element {missing} is missing" if missing is not None else f"there are {len(cells)} elements"
        example = (_FLAT.search(text) or [""])[0]
        raise TraceError(f"elements such as {example}: {what}; {wanted.name} has {count}")
    order = wanted.order or ORDERS[0]
    return _in_memory([cells[at] for at in range(count)], replace(wanted, order=order))


def _read_numbered_rows(text: str, wanted: Wanted) -> str | None:
    """Read rows that begin with their number, ``0:`` or ``[0]``."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = [_NUMBERED.match(line) for line in lines]
    if not wanted.is_matrix or not lines or not all(found):
        return None
    numbers = [int(match[1] or match[2]) for match in found if match]
    rows = [_numeric(line[match.end() :]) for line, match in zip(lines, found, strict=True) if match]
    if numbers != list(range(numbers[0], numbers[0] + len(rows))) or {len(row) for row in rows} != {
        len(rows[0])
    }:
        return None
    return _checked_rows(rows, wanted) if rows[0] else None


def _read_register_rows(text: str, wanted: Wanted) -> str | None:
    """Read a line for each register with a number for each lane; refuse such lines without names."""
    lines = [line for line in text.splitlines() if line.strip()]
    if wanted.is_matrix or wanted.lanes == wanted.values or len(lines) != wanted.values:
        return None
    named = [_REGISTER_ROW.match(line) for line in lines]
    rows = [_numeric(line[match.end() if match else 0 :]) for line, match in zip(lines, named, strict=True)]
    if any(len(row) != wanted.lanes for row in rows):
        return None
    if not all(named):
        raise TraceError(
            f"{len(rows)} lines of {wanted.lanes} numbers: there are two readings, a line for each register, "
            f"and lanes of {wanted.values} in order: print 'lane N:' before each lane, or "
            f"'{wanted.name}N:' before each register"
        )
    order = sorted((int(match[1]), row) for match, row in zip(named, rows, strict=True) if match)
    return _lane_rows([[row[lane] for _, row in order] for lane in range(wanted.lanes)])


def _read_triples(rows: Rows, wanted: Wanted) -> str | None:
    """Read two indices and a value in each line."""
    if (wanted.columns == 3 and wanted.is_matrix) or not all(a.isdigit() and b.isdigit() for a, b, _ in rows):
        return None
    cells = {(int(a), int(b)): value for a, b, value in rows}
    first, second = max(a for a, _ in cells) + 1, max(b for _, b in cells) + 1
    if len(cells) != len(rows) or len(cells) < max(first, second, 4):
        return None
    return _placed(cells, wanted, "two indices and a value in each line,")


def _read_lane_logs(text: str, wanted: Wanted) -> str | None:
    """Read a line for each lane, or register of it, among other lines."""
    return None if wanted.is_matrix else lane_log(text, wanted.lanes)


_READERS: tuple[Callable[[str, Wanted], str | None], ...] = (
    _read_json,
    _read_lane_logs,
    _read_elements,
    _read_flat,
    _read_brackets,
    _read_tables,
    _read_columns,
    _read_register_rows,
    _read_numbered_rows,
    _read_rows,
)
