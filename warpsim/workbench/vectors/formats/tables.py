"""CSV and JSON lines: cases as rows of words.

CSV has a row for every lane of every case, a column for each register, for spreadsheets and data frames.
Words are hexadecimal digits. The data of a case as a whole (descriptors, shared memory as bytes, immediates
that differ) is in the row of lane 0. Comment lines begin with ``#`` (pandas: ``comment="#"``).

The first line of JSON lines is the manifest; every other line is a case: its number, its label, if any, and
every array as nested lists of hexadecimal strings, lanes then registers; bytes of shared memory as a single
string, immediates that differ as integers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ....base.errors import Location
from ..parted import Array, SetInParts
from .manifest import Manifest, manifest_of
from .text_format import Arrays, Field, Lines, TextFormat, cases_of, empty_arrays, fields_of

# --- CSV -------------------------------------------------------------------------------------------


def _header(fields: Sequence[Field]) -> list[str]:
    columns = ["case", "lane"]
    for field in fields:
        count = field.shape[1] if len(field.shape) == 2 else 0
        columns += [f"{field.name}{index}" for index in range(count)] or [field.name]
    return columns


def _render_csv(vectors: SetInParts, stem: str) -> Iterator[str]:
    fields = fields_of(vectors.specs())
    yield ",".join(_header(fields))
    for number, _, arrays in cases_of(vectors):
        rows = [field.rows(arrays[field.name]) for field in fields]
        for lane in range(vectors.instruction.lanes):
            cells = (each[lane] if lane < len(each) else [""] * len(each[0]) for each in rows)
            yield ",".join([str(number), str(lane), *(cell for row in cells for cell in row)])


def _parse_csv(lines: Lines, manifest: Manifest) -> Arrays:
    arrays = empty_arrays(manifest)
    fields = fields_of({name: entry.spec for name, entry in manifest.arrays.items()})
    header = _header(fields)
    if lines.following("the names of the columns") != ",".join(header):
        lines.wrong(f"expected the columns {','.join(header)}")
    for case in range(manifest.cases):
        for lane in range(manifest.instruction.lanes):
            cells = lines.following(f"lane {lane} of case {case}").split(",")
            if len(cells) != len(header):
                lines.wrong(f"{len(cells)} cells, expected {len(header)}")
            if cells[:2] != [str(case), str(lane)]:
                lines.wrong(f"expected case {case}, lane {lane}")
            at = 2
            for field in fields:
                count = field.shape[1] if len(field.shape) == 2 else 1
                _fill(lines, field, arrays[field.name][case : case + 1], cells[at : at + count], lane)
                at += count
    return arrays


def _fill(lines: Lines, field: Field, part: Array, cells: list[str], lane: int) -> None:
    """Put the cells of a field in a row into its array of one case."""
    if len(field.shape) == 2 and lane < field.shape[0]:
        part[0, lane] = field.read(cells, lines)
    elif lane:
        if any(cells):
            lines.wrong("what belongs to a case stands in the row of lane 0", "".join(cells))
    else:
        found = field.read(cells, lines)
        if found.size != part.size:
            lines.wrong(f"{found.size} bytes of shared memory, expected {part.size}")
        part[...] = found.reshape(part.shape)


CSV = TextFormat(
    name="csv",
    suffixes=(".csv",),
    summary="a row a lane, a column a register",
    opening=("# warpsim vector set: a row for every lane of every case, words in hexadecimal",),
    prefix="# ",
    render=_render_csv,
    parse=_parse_csv,
)


# --- JSON lines --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _JsonLines(TextFormat):
    def head(self, vectors: SetInParts) -> Iterator[str]:
        """Yield the manifest."""
        yield json.dumps(manifest_of(vectors))

    def manifest_text(self, lines: Lines) -> tuple[str, Location]:
        """Read the manifest."""
        return lines.following("the manifest"), lines.place()


def _render_json(vectors: SetInParts, stem: str) -> Iterator[str]:
    fields = fields_of(vectors.specs())
    for number, label, arrays in cases_of(vectors):
        values = {field.name: _value(field, arrays[field.name]) for field in fields}
        yield json.dumps({"case": number, **({"label": label} if vectors.labels else {}), **values})


def _value(field: Field, case: Array) -> Any:
    if field.is_integer:
        return int(case)
    rows = field.rows(case)
    return rows if len(field.shape) == 2 else rows[0][0]


def _parse_json(lines: Lines, manifest: Manifest) -> Arrays:
    arrays = empty_arrays(manifest)
    fields = fields_of({name: entry.spec for name, entry in manifest.arrays.items()})
    for case in range(manifest.cases):
        document = _object(lines, case, manifest)
        for field in fields:
            arrays[field.name][case] = _elements(lines, field, document[field.name])
    return arrays


def _object(lines: Lines, case: int, manifest: Manifest) -> dict[str, Any]:
    """Return the object of a case, with the required keys."""
    try:
        document = json.loads(lines.following(f"case {case}"))
    except (ValueError, RecursionError) as error:
        lines.wrong(f"no JSON: {error}")
    label = {"label"} if manifest.labels else set()
    keys = {"case", *label, *manifest.arrays}
    if not isinstance(document, dict) or document.keys() != keys:
        lines.wrong(f"expected an object of {', '.join(sorted(keys))}")
    if document["case"] != case:
        lines.wrong(f"expected case {case}")
    if label and document["label"] != manifest.labels[case]:
        lines.wrong("the label is not the one of the manifest")
    return document


def _elements(lines: Lines, field: Field, value: Any) -> Array:
    """Return the elements of a case."""
    if field.is_integer:
        if type(value) is not int:
            lines.wrong(f"{field.name} is a small integer")
        value = str(value)
    rows = value if len(field.shape) == 2 else [[value]]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        lines.wrong(f"{field.name} is a list of lanes, each a list of registers")
    words = [word for row in rows for word in row]
    if not all(isinstance(word, str) for word in words):
        lines.wrong(f"the words of {field.name} are strings of hexadecimal digits")
    found = field.read(words, lines)
    counts = {len(row) for row in rows} if len(field.shape) == 2 else set(field.shape[-1:])
    if found.size != prod(field.shape) or counts != set(field.shape[-1:]):
        lines.wrong(f"{field.name} has the shape {list(field.shape)} in every case")
    return found.reshape(field.shape)


JSON_LINES = _JsonLines(
    name="jsonl",
    suffixes=(".jsonl",),
    summary="JSON lines, an object a case",
    prefix="",
    render=_render_json,
    parse=_parse_json,
)
