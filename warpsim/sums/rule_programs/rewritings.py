"""Wrong programs: each operation of a rule's program replaced by its neighbours.

A neighbour has another width, floor, cut, rounding, order or list of what it sees. All operations of a name that
are given the same are one part of a datapath, and change together. Names say which value is computed otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ...isa.formats import FORMATS
from .rule_operations import Operation, Program
from .rule_templates import LOWEST

_WIDTHS = (1, -1, 2, -2, 3, -3)
CUTS = {
    "down": "rounded down",
    "up": "rounded up",
    "nearest": "rounded to nearest even",
    "halves up": "rounded to nearest, ties away from zero",
    "away": "rounded away from zero",
    "sticky": "cut with a sticky bit",
}
_ROUNDINGS = ("rn", "rz", "rm", "rp")


class Rewriting(NamedTuple):
    """A wrong program, and what it does otherwise."""

    name: str
    program: Program


Neighbours = Iterator[tuple[str, Operation]]


def rewritings(program: Program) -> Iterator[Rewriting]:
    """Yield the programs in which operations of one kind are replaced by a neighbour, each program once."""
    seen = {program}
    for names in _alike(program):
        first = program.by_result[names[0]]
        for at, (text, _) in enumerate(_NEIGHBOURS[first.name](program, first)):
            changed = {
                name: [*_NEIGHBOURS[first.name](program, program.by_result[name])][at][1] for name in names
            }
            wrong = program.rewritten(lambda each, to=changed: to.get(each.result, each))  # type: ignore[misc]
            if wrong not in seen:
                seen.add(wrong)
                yield Rewriting(f"{first.result}: {text}", wrong)
    if len(turned := _turned(program)) > 1 and (wrong := _with_places(program, turned)) not in seen:
        yield Rewriting("steps in reversed order", wrong)


def _alike(program: Program) -> Iterator[list[str]]:
    """Yield the results of operations that are one part of a datapath."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for each in program.operations:
        if each.name in _NEIGHBOURS:
            own = each.result if each.name in ("read", "add") and each.values[0] in _inputs(program) else ""
            groups.setdefault((each.name, each.given, len(each.values), own), []).append(each.result)
    yield from groups.values()


def _inputs(program: Program) -> set[str]:
    return {each.name for each in program.inputs}


def _given(at: Operation, *given: Any) -> Operation:
    return replace(at, given=given)


def _of_add(program: Program, at: Operation) -> Neighbours:
    for more in _WIDTHS:
        bits = -at.given[0] + more
        yield f"{bits} bits are kept below the largest exponent, not {-at.given[0]}", _given(at, -bits)


def _of_top(program: Program, at: Operation) -> Neighbours:
    (floor, *_), joined = at.given, program.by_result.get(at.values[0])
    if joined is not None and joined.name == "join":
        for left_out in joined.values:
            others = tuple(each for each in joined.values if each != left_out)
            if len(others) == 1:
                yield f"{left_out} takes no part in the alignment", replace(at, values=others * 2)
    yield "zeros take part in the alignment", _given(at, floor, "all")
    if floor > LOWEST:
        yield "no exponent floor", _given(at, LOWEST)
        for other in (floor - 1, floor + 1):
            yield f"the exponent floor is {other}, not {floor}", _given(at, other)


def _of_cut(program: Program, at: Operation) -> Neighbours:
    if program.by_result[at.values[1]].name == "int":
        return  # nothing is cut of integers
    for mode, how in CUTS.items():
        if mode != at.given[0]:
            yield f"terms are {how}", _given(at, mode)


def _of_round(program: Program, at: Operation) -> Neighbours:
    (output,) = at.given
    way = "toward zero" if output.nearest else "to nearest even"
    yield f"rounded {way}", _given(at, replace(output, nearest=not output.nearest))
    yield "subnormal results are zero", _given(at, output, "", True)
    yield "rounded toward zero, too large is the largest finite number", _given(at, output, "rz")
    for bits in (output.precision - 1, output.precision + 1):
        if 1 <= bits <= FORMATS[output.format].fraction_bits + 1:
            yield (
                f"{bits} significant bits, not {output.precision}",
                _given(at, replace(output, precision=bits)),
            )


def _of_ieee(program: Program, at: Operation) -> Neighbours:
    element, rounding = at.given
    for other in _ROUNDINGS:
        if other != rounding:
            yield f"rounded {other}, not {rounding}", _given(at, element, other)


def _of_wrap(program: Program, at: Operation) -> Neighbours:
    bits, clamps = at.given
    yield "wraps" if clamps else "clamps", _given(at, bits, not clamps)


def _of_bits(program: Program, at: Operation) -> Neighbours:
    other = "and" if at.given[0] == "xor" else "xor"
    yield f"{other}, not {at.given[0]}", _given(at, other)


def _of_read(program: Program, at: Operation) -> Neighbours:
    element = FORMATS[at.given[0]]
    if element.is_float and element.fraction_bits:
        yield "subnormal numbers are zero", _given(at, element.name, "zero")


_NEIGHBOURS: dict[str, Callable[[Program, Operation], Neighbours]] = {
    "read": _of_read,
    "bits": _of_bits,
    "top": _of_top,
    "add": _of_add,
    "cut": _of_cut,
    "round": _of_round,
    "ieee": _of_ieee,
    "wrap": _of_wrap,
}


def _turned(program: Program) -> dict[str, tuple[int, ...]]:
    """Return the places that the steps take of the products, the last step's first."""
    steps = [each for each in program.named("take") if program.by_result[each.values[0]].name == "mul"]
    last_first = [each.given[0] for each in reversed(steps)]
    return {each.result: places for each, places in zip(steps, last_first, strict=True)}


def _with_places(program: Program, places: dict[str, tuple[int, ...]]) -> Program:
    return program.rewritten(
        lambda each: _given(each, places[each.result]) if each.result in places else each
    )
