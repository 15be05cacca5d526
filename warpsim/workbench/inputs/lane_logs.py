"""Logs of registers that a kernel prints: the step, warp and lane of each line, among other lines.

Rewrites them as register_text reads them: tile after tile, a line for each register. Of operands it
knows the names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from ...base.errors import TraceError

_LANE = re.compile(
    r"(?<![A-Za-z_])(?:lane(?:_?id)?|thread(?:Idx\.x|_?id|\s*\(|)|tid(?:\.x)?|t)\s*+[=:#\[(]?\s*+(\d{1,7})"
    r"(?:\s*+,\s*+\d++\s*+,\s*+\d++)?[\])]*",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"(?<![A-Za-z_])(?:k_?step|step|k_?tile|kt|iter(?:ation)?|k_?iter|mma|k)\s*+[=:#\[]?\s*+(\d{1,6})\b\]?",
    re.IGNORECASE,
)
_WARP = re.compile(r"(?<![A-Za-z_])warp(?:_?id)?\s*+[=:#\[]?\s*+(\d{1,6})", re.IGNORECASE)
_VALUE = r"[+-]?(?:0x[0-9a-fA-F]+|\d[\w.+-]*|\.\d[\w.+-]*|inf|nan|[0-9a-fA-F]{8})"
_WORD = re.compile(_VALUE, re.IGNORECASE)
_VECTOR = re.compile(r"\b([A-Za-z_]\w{0,63})\.([xyzw])(?=\s*+[=:])")  # of float4: d.x is d[0]
_NAME = re.compile(r"%?\b([A-Za-z_]\w*)\s*+[\[(]?(\d{1,6})?[\])]?\s*+[=:](?!=)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s,;{}\[\]()|]+")
ALIASES = {
    **dict.fromkeys(
        ("acc", "accum", "accumulator", "accumulators", "frag_d", "d_frag", "rd", "dreg", "tdr"), "d"
    ),
    **dict.fromkeys(("frag_a", "a_frag", "afrag", "fraga", "ra", "areg", "a_reg", "rega"), "a"),
    **dict.fromkeys(("frag_b", "b_frag", "bfrag", "fragb", "rb", "breg", "b_reg", "regb"), "b"),
    **dict.fromkeys(("frag_c", "c_frag", "cfrag", "fragc", "rc", "creg", "c_reg", "regc"), "c"),
    **dict.fromkeys(("meta", "metadata", "frag_e", "e_reg", "re"), "e"),
}


class Cell(NamedTuple):
    """A word of a log: its step, lane, name and register, where they are printed, and its line."""

    step: int
    lane: int
    name: str
    register: int | None
    word: str
    line: int = 0


_HEADING = 80  # characters
_MOST_THREADS = 1024  # of a CTA
_TRAILING = re.compile(r"(?<=\S)\s+(?:#|//).*")
_COMMENT = re.compile(r"^\s*(?:#|//)")


def lane_lines(cells: Iterable[Cell]) -> str:
    """Return words as register_text reads them: steps in order, lane after lane."""
    lines: list[str] = []
    before: tuple[int, int, str] | None = None
    for cell in sorted(cells, key=lambda each: (each.step, each.lane)):
        key = cell.step, cell.lane, cell.name
        if cell.register is not None:
            lines.append(f"lane {cell.lane}: {cell.name or 'reg'}[{cell.register}] = {cell.word}")
            before = None
        elif key == before:
            lines[-1] += f" {cell.word}"
        else:
            named = f"{cell.name} = " if cell.name else ""
            lines.append(f"lane {cell.lane}: {named}{cell.word}")
            before = key
    return "\n".join(lines)


def lane_log(text: str, lanes: int) -> str | None:
    """Return the registers of a log, step after step; None where no line has a lane.

    Raises TraceError, naming lines, for several warps of a form of 32 lanes, for steps that are missing, or
    that an operand lacks between others, and for lanes without all words of an operand that most have.
    """
    if not _is_log(text, lanes):
        return None
    cells = list(cells_of(text))
    if not cells:
        return None
    placed = [each._replace(lane=lane) for each, lane in _cells_by_lane(cells, lanes)]
    _check_steps(placed, "the log")
    for name in "abcde":
        if own := [each for each in placed if each.name == name]:
            _check_steps(own, name)
            _check_lanes(own, lanes)
    return lane_lines(placed)


def _check_steps(cells: list[Cell], what: str) -> None:
    """Refuse a log with a step missing between others."""
    first: dict[int, int] = {}
    for each in cells:
        first[each.step] = min(each.line, first.get(each.step, each.line))
    low, high = min(first), max(first)
    missing = next((step for step in range(low, high) if step not in first), None)
    if missing is None:
        return
    before, after = missing - 1, min(step for step in first if step > missing)
    raise TraceError(
        f"step {missing} is missing: {what} has steps {low} to {high} without it, step {before} from line "
        f"{first[before]} and step {after} from line {first[after]} on"
    )


def _check_lanes(cells: list[Cell], lanes: int) -> None:
    """Refuse a step in which some lanes have fewer words than most lanes."""
    counts: dict[int, Counter[int]] = {}
    lines: dict[int, int] = {}
    for each in cells:
        counts.setdefault(each.step, Counter())[each.lane] += 1
        lines[each.step] = min(each.line, lines.get(each.step, each.line))
    for step, held in counts.items():
        usual, lanes_with = Counter(held.values()).most_common(1)[0]
        short = next((lane for lane in range(lanes) if held[lane] < usual), None)
        if short is not None and 2 * lanes_with > lanes:
            raise TraceError(
                f"step {step}, from line {lines[step]} on: lane {short} has {held[short]} words of "
                f"{cells[0].name}, but {lanes_with} lanes have {usual}"
            )


def _is_log(text: str, count: int) -> bool:
    """Return whether a text has lanes, and lines that register_text does not take: without a lane, with a
    step, with the lane further on, or with threads of several warps.
    """
    lanes = other = False
    for line in text.splitlines():
        if not line.strip() or _COMMENT.match(line):
            continue
        found = _LANE.search(line)
        lanes |= found is not None
        plain = (
            found is not None
            and not line[: found.start()].strip(" \t([<%")
            and found[0][:7].lower() != "threadi"
        )
        other |= not plain or (found is not None and count <= int(found[1]) < _MOST_THREADS)
        other |= found is not None and ("." in found[0] or _VECTOR.search(line) is not None)
    return lanes and other


def _cells_by_lane(cells: list[Cell], lanes: int) -> Iterator[tuple[Cell, int]]:
    """Yield cells with their lane in the warp, or warpgroup."""
    first: dict[int, int] = {}
    for each in cells:
        first.setdefault(each.lane // lanes, each.line)
    groups = sorted(first)
    if len(groups) > 1:
        kind = "warp" if lanes == 32 else "warpgroup"
        where = ", ".join(f"{kind} {each} from line {first[each]} on" for each in groups[:4])
        raise TraceError(
            f"the log has threads of {kind}s {', '.join(map(str, groups[:4]))}: give the lines of one {kind} "
            f"({where})"
        )
    yield from ((each, each.lane - groups[0] * lanes) for each in cells)


def cells_of(text: str) -> Iterator[Cell]:
    """Yield the words of each line with a lane, under the step of the line or of the heading before it."""
    step = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = _TRAILING.sub("", line)
        found = _LANE.search(line)
        before = line[: found.start()] if found else line
        if (heading := _STEP.search(before)) and (found or _is_heading(line)):
            step = int(heading[1])
        if found is None:
            continue
        warp = _WARP.search(before)
        lane = int(found[1]) + (32 * int(warp[1]) if warp and int(found[1]) < 32 else 0)
        yield from _words(line[found.end() :], Cell(step, lane, "", None, "", number))


def _is_heading(line: str) -> bool:
    return len(line) < _HEADING and bool(re.fullmatch(r"[\s#/=\-*\[]*\w+[\s=:#\[]*\d+[\s:\]=\-*]*", line))


def _words(rest: str, at: Cell) -> Iterator[Cell]:
    """Yield the words after each name, or all words where there is none; nothing of a line of prose."""
    rest = _VECTOR.sub(lambda match: f"{match[1]}[{'xyzw'.index(match[2])}]", rest)
    names = list(_NAME.finditer(rest))
    if not names:
        words = [word for word in _SEPARATORS.split(rest.strip(" :=\t")) if word]
        if all(map(_WORD.fullmatch, words)):
            yield from (at._replace(word=word) for word in words)
        return
    for name, following in zip(names, [*names[1:], None], strict=True):
        part = rest[name.end() : following.start() if following else None]
        words = [word for word in _SEPARATORS.split(part) if word]
        held = list(takewhile(_WORD.fullmatch, words))
        operand, register = _name_and_number(name[1], name[2])
        if len(held) == 1:
            yield at._replace(name=operand, register=register, word=held[0])
        else:
            yield from (at._replace(name=operand, word=word) for word in held)


def _name_and_number(name: str, register: str | None) -> tuple[str, int | None]:
    """Return the operand's own name, and the number that may be at its end."""
    stem, digits = name.lower(), register or ""
    if not digits:
        stem = name.lower().rstrip("0123456789")
        digits = name[len(stem) :]
    return ALIASES.get(stem, stem), int(digits) if digits else None
