"""Lines of a simulation that hold a place and a value, whatever stands around them.

The generated bench prints ``case 3, lane 5, register d1: expected 3f800000, got 3f800001``; other benches
have other words, as ``# UVM_ERROR @ 40: vec=3 lane=5 D[1]=3f800001 (ref 3f800000)``, or an element of the
matrix in place of a lane's register. JSON objects, each on a line, have the same names. Knows the words for
a place and for a value; a line without a place or without a value is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..sets import VectorSet
from .unit_results import Collector, Line, UnitResults, digits_of, element_places, wrong

NAMES: Mapping[str, tuple[str, ...]] = {  # the words of others for the parts of a result
    "case": ("case", "vector", "vec", "test", "tc", "testcase", "index", "idx", "case_id"),
    "lane": ("lane", "thread", "tid", "threadid", "t"),
    "register": ("register", "reg", "r", "d"),
    "row": ("row", "m"),
    "column": ("column", "col", "n"),
    "value": ("got", "actual", "act", "value", "dut", "result", "rtl", "observed", "out", "output"),
    "expected": ("expected", "expect", "exp", "reference", "ref", "golden", "gold", "want", "model"),
}
_NUMBERS = r"\s*(?:[:=#]|is)?\s*\[?\s*(?:0*)(\d{1,9})(?![\da-fA-Fx'])"
_VALUES = r"\s*(?:[:=]|is|value)?\s*((?:\d{1,4}'[hHbB]|0[xX])?[0-9a-fA-FxXzZ_]{2,80})(?![\w.])"
_ELEMENT = re.compile(r"\bD\s*[\[(]\s*(\d{1,6})\s*(?:,|\]\s*\[|\)\s*\()\s*(\d{1,6})\s*[\])]", re.IGNORECASE)
_REGISTER = re.compile(r"(?<![\w.%])%?(?:register |reg )?d\s*\[?\s*(\d{1,3})\]?(?!\w)")
_BARE_VALUE = re.compile(r"(?:=|:|\bis\b)\s*((?:\d{1,4}'[hHbB]|0[xX])?[0-9a-fA-FxXzZ_]{2,80})\s*(?![\w.,\]])")
_MORE = re.compile(r"\band \d+ more\b")
_FAILED = re.compile(r"FAILED: \d+ of \d+ registers of D differ, in \d+ of (\d+) cases")
_PASSED = re.compile(r"passed: (\d+) cases, \d+ registers of D as expected")


def _pattern(part: str, rest: str) -> re.Pattern[str]:
    words = "|".join(sorted(NAMES[part], key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z_])(?:{words})(?:_?(?:id|number|no))?{rest}", re.IGNORECASE)


_NUMBER = {part: _pattern(part, _NUMBERS) for part in ("case", "lane", "register", "row", "column")}
_VALUE = {part: _pattern(part, _VALUES) for part in ("value", "expected")}


def read_simulator(path: Path, lines: Sequence[str], vectors: VectorSet) -> UnitResults:
    """Return the results in lines. Raises TraceError with the line."""
    collector, bench = Collector(vectors=vectors), _Bench()
    for number, text in enumerate(lines, 1):
        line = Line(str(path), number, text)
        bench.note(text)
        place = _object(collector, line) if text.lstrip().startswith("{") else _prose(collector, line)
        bench.lists(place)
    if not collector.seen and bench.cases is None:
        raise wrong(
            Line(str(path), 1, lines[0]),
            "no line has a result: expected a place and a value, as in 'case 3, lane 5, register d1: "
            "expected 3f800000, got 3f800001', a table with a header, or words alone",
        )
    return bench.completed(collector)


class _Bench:
    """What the end of the bench's output says of the results that it does not list."""

    def __init__(self) -> None:
        self.cases: int | None = None  # that the device answered
        self.more = False  # differ and are not listed
        self.last: tuple[int, int, int] | None = None
        self.own = True  # each listed register is of the bench's own form, in its order

    def note(self, text: str) -> None:
        """Take a line of the summary."""
        self.more |= bool(_MORE.search(text))
        if found := _FAILED.search(text) or _PASSED.search(text):
            self.cases = int(found[1])

    def lists(self, place: tuple[int, int, int] | None) -> None:
        """Take the place of a register that differs."""
        if place is not None:
            self.own &= self.last is None or place > self.last
            self.last = place

    def completed(self, collector: Collector) -> UnitResults:
        """Return the results with what the summary implies: a register that is not listed is right."""
        if self.cases is None:
            return collector.results(*_partial(collector))
        if not self.own:
            return collector.results(
                "the lines are not in the order of one run: what they leave out is unknown"
            )
        end = (self.cases, 0, 0)
        notes = []
        if self.more and self.last is not None:
            end = self.last
            notes = [
                "the bench lists the first differences alone (+show=N): the registers after them are unknown"
            ]
        elif self.more:
            return collector.results("the bench lists no difference (+show=0)")
        lanes, registers = collector.d.shape[1:]
        stop = (end[0] * lanes + end[1]) * registers + end[2]
        d, known = collector.d.reshape(-1), collector.known.reshape(-1)
        silent = known[:stop] == 0
        d[:stop][silent] = collector.vectors.d.reshape(-1)[:stop][silent]
        known[:stop][silent] = known.dtype.type(-1 & ((1 << 8 * known.itemsize) - 1))
        if self.cases < len(collector.vectors):
            notes.append(f"the device answered {self.cases} of {len(collector.vectors)} cases")
        return collector.results(*notes)


def _partial(collector: Collector) -> Iterator[str]:
    known = int((collector.known != 0).sum())
    if known < collector.d.size:
        yield f"the log has {known:,} of {collector.d.size:,} registers of D; the others are unknown"


# --- one line --------------------------------------------------------------------------------------


def _object(collector: Collector, line: Line) -> tuple[int, int, int] | None:
    """Take a JSON object."""
    try:
        found = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        raise wrong(line, f"this is not a JSON object: {str(error).partition(':')[0]}") from None
    named = named_parts(found)
    if "case" not in named or "value" not in named:
        return None
    return take(collector, {name: str(value) for name, value in named.items()}, line)


def named_parts(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of an object or a row by the names of parts of a result."""
    by_word = {word: part for part, words in NAMES.items() for word in words}
    return {
        by_word[word]: value
        for key, value in found.items()
        if (word := key.strip().strip('"').lower()) in by_word and str(value).strip()
    }


def _prose(collector: Collector, line: Line) -> tuple[int, int, int] | None:
    """Take the place and the value of a line of text, if it has both."""
    found = {name: match[1] for name, pattern in _NUMBER.items() if (match := pattern.search(line.text))}
    if "case" not in found:
        return None
    found |= {name: match[1] for name, pattern in _VALUE.items() if (match := pattern.search(line.text))}
    if element := _ELEMENT.search(line.text):
        found |= {"row": element[1], "column": element[2]}
    elif register := _REGISTER.search(line.text):
        found["register"] = register[1]
    if "value" not in found and (bare := [*_BARE_VALUE.finditer(line.text)]):
        wide = [match[1] for match in bare if _is_word(collector, match[1])]
        found |= {"value": wide[-1]} if len(wide) == 1 else {}
    return take(collector, found, line) if "value" in found else None


def _is_word(collector: Collector, text: str) -> bool:
    digits = digits_of(text)
    return digits is not None and len(digits) * 4 in (collector.form.d.bits, 8 * collector.d.dtype.itemsize)


def take(collector: Collector, found: Mapping[str, str], line: Line) -> tuple[int, int, int] | None:
    """Take a result by the names of its parts, and return its case, lane and register."""
    digits = digits_of(found["value"].strip())
    if digits is None:
        raise wrong(
            line,
            f"{found['value']!r} is not a hexadecimal word: decimals do not show all bits",
            found["value"],
        )
    place = _place(collector, found, line)
    if place is None:
        return None
    wanted = digits_of(found.get("expected", "").strip())
    if wanted and "row" not in found and len(wanted) == len(digits) == 2 * collector.d.dtype.itemsize:
        collector.check_case(place[0], line)
        _expect(collector, place, wanted, line)
    if "row" in found:
        collector.put_element(place[0], int(found["row"]), int(found["column"]), digits, line)
    else:
        collector.put(*place, digits, line)
    return place


def _expect(collector: Collector, place: tuple[int, int, int], wanted: str, line: Line) -> None:
    if all(at in range(size) for at, size in zip(place, collector.d.shape, strict=True)):
        collector.expect(*place, wanted, line)


def _place(collector: Collector, found: Mapping[str, str], line: Line) -> tuple[int, int, int] | None:
    """Return case, lane and register of a result; None where the line has no place."""
    numbers = {}
    for name in ("case", "lane", "register", "row", "column"):
        if name in found:
            text = found[name].strip().lower().removeprefix("d")
            if not text.isdecimal() or len(text) > 9:
                raise wrong(line, f"{name} {found[name]!r} is not a number", found[name])
            numbers[name] = int(text)
    if {"row", "column"} <= numbers.keys():
        places = element_places(collector.form)
        lane, register, _ = places.get((numbers["row"], numbers["column"]), (0, 0, 0))
        return numbers["case"], lane, register
    if {"lane", "register"} <= numbers.keys():
        return numbers["case"], numbers["lane"], numbers["register"]
    if "lane" in numbers and collector.d.shape[2] == 1:
        return numbers["case"], numbers["lane"], 0
    return None
