"""Programs of a bench as tables of C: the rule's, and for each mistake the operations that it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...isa.formats import FORMATS, Specials
from ...isa.instruction import Instruction
from ...isa.rules import Rule
from ...sums.rule_programs.program_rewrites import lengths_of, rewrites, rewritten
from ...sums.rule_programs.rule_interpreter import TO_NEAREST
from ...sums.rule_programs.rule_operations import RESULTS, Operation, Program, Value
from ...sums.rule_programs.value_ranges import Part, ranges_of
from ..generation.sums.limits import Limits
from ..generation.sums.rewrite_words import rewrite_words
from .c_parts import constant

_WIDEST = 48  # fraction bits of a wrong program
_MOST = 1 << 62  # of an exact sum of neighbours
_SUBNORMALS = {"": "as_stored", "zero": "as_zero", "leading": "as_leading", "raised": "as_raised"}
_PRODUCTS = {"": "by_exponents", "leading": "by_leading_bit", "carried": "by_carries"}
_ZEROS = {"": "no_zeros", "all": "all_zeros", "negative": "negative_zeros"}
_CUTS = {
    "zero": "cut_toward_zero",
    "down": "cut_down",
    "up": "cut_up",
    "nearest": "cut_to_nearest",
    "halves up": "cut_halves_up",
    "away": "cut_away",
    "sticky": "cut_sticky",
    "coarse": "cut_coarse",
}
_SPECIALS = {Specials.NONE: 0, Specials.ONE_NAN: 1, Specials.INFINITIES: 2}
_SHOWN = (Value.EXPONENT, Value.UNITS, Value.TOTAL, Value.CODE)


def wrong_programs(limits: Limits, rule: Rule, form: Instruction) -> list[tuple[str, Program]]:
    """Return the programs with one step rewritten that C computes, the simplest first, with their words."""
    found = list[tuple[str, Program]]()
    for each in rewrites(rule.bare, form.product):
        program = rewritten(rule.bare, form.product, each)
        if all(at.given[0] >= -_WIDEST for at in program.named("add")) and _sums_fit(program):
            found.append((rewrite_words(limits, each), program))
    return found


def _sums_fit(program: Program) -> bool:
    return all(_sum_part(program, at.result).most < _MOST for at in program.named("sum"))


def _sum_part(program: Program, name: str) -> Part:
    """Return the range of exact sums; how their products are aligned does not change it."""
    exact = program.rewritten(lambda each: (replace(each, given=()) if each.name == "mul" else each,))
    return ranges_of(exact, bounded=False).parts[name][0]


class Tables:
    """Tables of the programs of a bench, and the names and sizes that they need."""

    def __init__(self, rule: Program, wrong: Sequence[tuple[str, Program]], form: Instruction) -> None:
        self.rule, self.wrong, self.form = rule, wrong, form
        every = [rule, *(program for _, program in wrong)]
        results = (each.result for program in every for each in program.operations)
        self.values = list(dict.fromkeys([*(each.name for each in rule.inputs), *results]))
        formats = [each.format for each in rule.inputs]
        formats += [form.d.name, *(name for program in every for name in _formats(program))]
        self.formats = list(dict.fromkeys(formats))
        self.places: list[int] = []
        self._changed: list[str] = []
        self._mistakes = [self._mistake(name, program) for name, program in wrong]
        self._rule = [self._row(each, rule) for each in rule.operations]
        self.terms = _terms(rule) + max(_terms(program) for program in every)
        self.operations = max(len(program.operations) for program in every)

    def lines(self) -> Iterator[str]:
        """Yield the tables."""
        yield ""
        yield "enum {"
        yield from _wrapped([f"v_{name}" for name in self.values])
        yield "};"
        products = next((name for name in ("PS", "P") if name in self.rule.by_result), "")
        if products:
            yield f"#define v_PRODUCTS v_{products}"
        yield f"enum {{ {', '.join(f'f_{name}' for name in self.formats)} }};"
        yield "static const format formats[] = {"
        yield from (f"  {{{_fields(name)}}}, /* {name} */" for name in self.formats)
        yield "};"
        inputs = self.rule.inputs
        for name, numbers in {
            "count": [str(each.count) for each in inputs],
            "format": [f"f_{each.format}" for each in inputs],
            "numbers": [f"v_{_numbers_of(self.rule, each.name)}" for each in inputs],
        }.items():
            yield f"static const int input_{name}[INPUTS] = {{{', '.join(numbers)}}};"
        yield f"static const operation rule[RULE] = {{ /* of {self.form.target} */"
        yield from (f"  {row}," for row in self._rule)
        yield "};"
        yield "static const operation changed[] = {"
        yield from _wrapped(self._changed)
        yield "};"
        yield "static const int places[] = {"
        yield from _wrapped([*map(str, self.places), "0"])
        yield "};"
        yield "static const mistake_program mistakes[MISTAKES] = {"
        yield from (f"  {row}," for row in self._mistakes)
        yield "};"

    def _mistake(self, name: str, program: Program) -> str:
        changes = _changes(self.rule, program)
        rows = [self._row(each, program) for each in (program.operations if changes is None else changes)]
        first, traced = len(self._changed), _shown(program) == _shown(self.rule)
        self._changed += rows
        return f'{{"{name}", {first}, {len(rows)}, {int(changes is None)}, {int(traced)}}}'

    def _row(self, each: Operation, program: Program) -> str:
        values = ", ".join(f"v_{name}" for name in each.values) or "0"
        given = ", ".join(map(str, self._given(each, program))) or "0"
        return f"{{op_{each.name}, v_{each.result}, {{{values}}}, {{{given}}}}}"

    def _given(self, each: Operation, program: Program) -> list[Any]:
        """Return what an operation of C is given: see programs.c."""
        given, length = each.given, lengths_of(program).get(each.values[0], 1) if each.values else 1
        match each.name:
            case "take":
                return [self._place(given[0]), len(given[0])]
            case "join":
                return [len(each.values)]
            case "sum":
                part = _sum_part(program, each.result)
                return [given[0], part.low - part.fraction]
            case "top":
                zeros, places = given[1] if given[1:] else "", given[2] if given[2:] else None
                places = places or range(length)
                return [given[0], _ZEROS[zeros], places[0], places[-1]]
            case "cut":
                other, place = given[1] if given[1:] else given[0], given[2] if given[2:] else -1
                return [_CUTS[given[0]], _CUTS[other], place]
            case name if name in _GIVEN:
                return _GIVEN[name](*given)
            case _:
                return [int(x) for x in given]

    def _place(self, places: Sequence[int]) -> int:
        """Return where places stand in the table of all."""
        count = len(places)
        for at in range(len(self.places) - count + 1):
            if self.places[at : at + count] == list(places):
                return at
        self.places += places
        return len(self.places) - count


def _read(element: str, subnormals: str = "") -> list[Any]:
    return [f"f_{element}", _SUBNORMALS[subnormals]]


def _round(output: Any, rounding: str = "", flushes: bool = False) -> list[Any]:
    mode = rounding or ("rn" if output.nearest else "rz")
    overflows = rounding in ("", *TO_NEAREST)
    return [f"f_{output.format}", output.precision, f"round_{mode}", int(overflows), int(flushes)]


def _ieee(element: str, rounding: str, flushes: bool = False) -> list[Any]:
    return [f"f_{element}", f"round_{rounding}", int(flushes)]


def _convert(element: str, rounding: str = "") -> list[Any]:
    """Return what a conversion is given; that of a rule is to a format that has all of the numbers."""
    return [f"f_{element}", f"round_{rounding or 'rn'}", int(not rounding)]


_GIVEN: dict[str, Callable[..., list[Any]]] = {
    "read": _read,
    "mul": lambda aligned="": [_PRODUCTS[aligned]],
    "bits": lambda operation: [int(operation == "xor")],
    "convert": _convert,
    "round": _round,
    "ieee": _ieee,
}


def _changes(rule: Program, program: Program) -> list[Operation] | None:
    """Return the operations that replace those of a rule; None where the others are not the rule's."""
    found, group, place = list[Operation](), list[Operation](), 0
    for each in program.operations:
        group.append(each)
        if each.result not in rule.by_result:
            continue
        if place == len(rule.operations) or rule.operations[place].result != each.result:
            return None
        found += group if group != [rule.operations[place]] else []
        group, place = [], place + 1
    return found if place == len(rule.operations) and not group else None


def _shown(program: Program) -> list[tuple[str, str, int]]:
    """Return the intermediates of a program: operation, name, length."""
    lengths = lengths_of(program)
    return [
        (each.name, each.result, lengths.get(each.values[0], 1) if each.name in ("mul", "cut") else 1)
        for each in program.operations
        if each.name == "mul" or (program.kind(each.result) in _SHOWN and each.name != "int")
    ]


def _terms(program: Program) -> int:
    """Return how many numbers the lists of a program have together."""
    lengths = lengths_of(program)
    return sum(lengths[each.result] for each in program.operations if RESULTS[each.name] is Value.NUMBERS)


def _formats(program: Program) -> Iterator[str]:
    for each in program.named("read", "convert", "ieee"):
        yield each.given[0]
    for each in program.named("round"):
        yield each.given[0].format


def _fields(name: str) -> str:
    each = FORMATS[name]
    numbers = (each.bits, each.exponent_bits, each.fraction_bits, each.ignored_bits, int(each.signed))
    nan = constant(each.canonical_nan) if each.has_infinity else "0"
    return f"{', '.join(map(str, numbers))}, {_SPECIALS[each.specials]}, {nan}"


def _numbers_of(program: Program, name: str) -> str:
    return next(each.result for each in program.named("read") if each.values == (name,))


def _wrapped(items: Sequence[str], width: int = 118) -> Iterator[str]:
    """Yield items with commas, as many in a line as fit."""
    line = " "
    for each in items:
        if len(line) + len(each) + 2 > width:
            yield line
            line = " "
        line += f" {each},"
    yield line


def wrapped_names(names: Mapping[str, int], ending: str) -> Iterator[str]:
    """Yield the rows of bins."""
    yield from _wrapped([f'{{"{name}", 0, 0}}' for name in (*names, ending)])
