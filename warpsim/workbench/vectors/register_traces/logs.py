"""Logs of register values: NVBit's ``record_reg_vals`` text and CUTracer's NDJSON.

Both record, for every executed instruction of a warp, the values of its register operands before it. NVBit's
text numbers the values by their place in the operand list, and names no registers; CUTracer's records may
name them (``regs_indices``) and keep the disassembly in a table (``kernel_metadata``). Sources: NVBit's
tools/record_reg_vals (NVIDIA) and github.com/facebookresearch/CUTracer. Does not know what values mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.errors import Location, TraceError
from ....base.files.archives import read_lines
from ..formats.text_format import Lines

LANES = 32

_NUMBER = r"\d{1,10}+"
_WARP = re.compile(rf"CTA (-?{_NUMBER},-?{_NUMBER},-?{_NUMBER}) - warp ({_NUMBER}) - ")
_VALUE = re.compile(r"Reg(\d{1,4})_T(\d{1,4}):\s*+0x([0-9a-fA-F]{1,8})\s*+")


class _Header(NamedTuple):
    """The line before the values of a record."""

    warp: tuple[str, ...]
    sass: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """An instruction as a warp executed it: its place, its text, and the values of its registers.

    ``values`` is ``(values, 32)``; ``numbers`` are the registers they belong to, None where none are named.
    """

    warp: tuple[str, ...]
    sass: str
    values: npt.NDArray[np.uint32]
    numbers: tuple[int, ...] | None
    line: int


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a log, in order; raises TraceError with the line, OSError."""
    lines = Lines(path, read_lines(path))
    first = next((line for line in lines if line.strip()), "")
    read = _json_records if first.startswith("{") else _text_records
    found = False
    for record in read(lines, chain([first], lines)):
        found = True
        yield record
    if not found:
        reason = "not an NVBit or CUTracer register log: it has no record"
        raise TraceError(reason, Location(str(path), 1))


# --- NVBit -----------------------------------------------------------------------------------------


def _text_records(lines: Lines, rest: Iterator[str]) -> Iterator[Record]:
    header: _Header | None = None
    place = 0
    values: list[list[int]] = []
    for line in rest:
        if found := _header(line.strip()):
            if header:
                yield _text_record(header, values, place)
            header, place, values = found, lines.number, []
        elif header and line.lstrip().startswith("* Reg"):
            values.append(_text_values(lines, line, len(values)))
    if header:
        yield _text_record(header, values, place)


def _header(line: str) -> _Header | None:
    """Return the fields of a line like ``CTX 0x.. - CTA 0,0,0 - warp 1 - HMMA.16816.F32
    R4, R8, R12, R4 ;:``.
    """
    match = _WARP.search(line) if line.endswith(":") else None
    if match is None:
        return None
    sass = line[match.end() : -1].rstrip().removesuffix(";").rstrip()
    return _Header((line[: match.start()].strip(" -"), match[1], match[2]), sass)


def _text_record(header: _Header, values: list[list[int]], line: int) -> Record:
    array = np.array(values, np.uint32).reshape(-1, LANES)
    return Record(warp=header.warp, sass=header.sass, values=array, numbers=None, line=line)


def _text_values(lines: Lines, line: str, index: int) -> list[int]:
    """Return the value of a register in every lane."""
    found = _VALUE.findall(line)
    places = [(int(register), int(lane)) for register, lane, _ in found]
    if places != [(index, lane) for lane in range(LANES)]:
        lines.wrong(f"expected the values of Reg{index} in lanes T0 to T31")
    return [int(value, 16) for _, _, value in found]


# --- CUTracer --------------------------------------------------------------------------------------


def _json_records(lines: Lines, rest: Iterator[str]) -> Iterator[Record]:
    table: dict[str, dict[str, Any]] = {}
    for line in rest:
        if not line.strip():
            continue
        document = _object(lines, line)
        if document.get("type") == "kernel_metadata":
            table = document.get("instructions", {})
        elif document.get("type") == "reg_trace":
            yield _json_record(lines, document, table)


def _object(lines: Lines, line: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        lines.wrong(f"no JSON: {error}")
    if not isinstance(document, dict):
        lines.wrong("expected a JSON object")
    return document


def _json_record(lines: Lines, document: dict[str, Any], table: dict[str, dict[str, Any]]) -> Record:
    try:
        known = table.get(str(document.get("opcode_id")), {})
        sass = document.get("sass") or known["sass"]
        numbers = document.get("regs_indices") or known.get("regs")
        launch = document.get("grid_launch_id", document.get("kernel_launch_id", ""))
        warp = (str(document.get("ctx", "")), str(launch), str(document["cta"]), str(document["warp"]))
        values = np.array(document.get("regs", []), np.uint32).reshape(-1, LANES)
        named = tuple(int(number) for number in numbers) if numbers else None
        if named and len(named) != len(values):
            raise TraceError(f"{len(values)} registers, but {len(named)} regs_indices")
        return Record(warp=warp, sass=str(sass), values=values, numbers=named, line=lines.number)
    except TraceError as error:
        raise error.at(lines.place()) from None
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        lines.wrong(f"this reg_trace record is not as CUTracer writes it: {type(error).__name__}: {error}")
