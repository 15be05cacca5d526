"""The dot product of a golden model in C99: a program of a rule, operation by operation.

Every intermediate is a field of the trace, by the name that the program gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...isa.formats import FORMATS
from ...sums.rule_programs.rule_operations import Operation, Program, Value
from ...sums.rule_programs.rule_templates import LOWEST
from ...sums.rule_programs.value_ranges import Part, ranges_of
from .c_parts import (
    CUT,
    LENGTH,
    SPECIAL,
    c_int,
    constant,
    ieee_sum,
    multiplication,
    number_type,
    reading,
    rounding,
    rounding_name,
)

_MOST = 1 << 62  # of a sum in int64_t
_MODES = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}


@dataclass(frozen=True)
class Field:
    """An intermediate: its C type, its name, its count, where the dot product has it, and its unit."""

    type: str
    name: str
    count: int
    source: str
    unit: str = ""


class DotProduct:
    """The C of one program: ``functions`` and ``body`` of NAME.c, ``fields`` of NAME_trace in NAME.h.

    ``word`` is the C type of a code. Raises OverflowError where a sum needs more than 63 bits.
    """

    def __init__(self, name: str, program: Program) -> None:
        self.name, self.program, self.ranges = name, program, ranges_of(program)
        for at in program.named("cut", "total"):
            _check_width(at.result, self.ranges.units[at.result])
        for at in program.named("sum"):
            _check_width(at.result, self.ranges.parts[at.result][0].most)
        products = [self.ranges.parts[at.result][0] for at in program.named("mul")]
        self.wide = any(each.most >= 1 << 63 for each in products)
        bits = max(FORMATS[each.format].bits for each in program.inputs)
        self.word = "uint64_t" if bits > 32 else "uint32_t"
        self.fields = tuple(self._fields())

    @property
    def prototype(self) -> str:
        """The declaration of NAME_dot."""
        given = ", ".join(
            f"const {self.word} *{each.name}" if each.count > 1 else f"{self.word} {each.name}"
            for each in self.program.inputs
        )
        return f"{self.word} {self.name}_dot({given}, {self.name}_trace *trace)"

    def _fields(self) -> Iterator[Field]:
        for at in self.program.operations:
            kind = self.program.kind(at.result)
            if at.name == "mul":
                yield from self._product_fields(at.result)
            elif kind is Value.EXPONENT and at.name != "int":
                yield Field("int32_t", at.result, 1, at.result)
            elif kind is Value.UNITS:
                yield Field("int64_t", at.result, self.ranges.count(at.values[0]), f"{at.result}[i]")
            elif kind is Value.TOTAL:
                yield Field("int64_t", at.result, 1, at.result)
            elif kind is Value.CODE:
                if at.name == "round":
                    yield Field("int32_t", f"special_{at.result}", 1, f"special_{at.result}")
                yield Field("uint64_t", at.result, 1, at.result)

    def _product_fields(self, name: str) -> Iterator[Field]:
        (part,) = self.ranges.parts[name]
        unit = f"in units of 2**({name}_exponent - {part.fraction})"
        if self.wide:
            yield Field("uint64_t", f"{name}_high", part.count, f"{name}[i].h", "high half of the magnitude")
            yield Field("uint64_t", f"{name}_low", part.count, f"{name}[i].m", unit)
            yield Field("int32_t", f"{name}_negative", part.count, f"{name}[i].negative")
        else:
            yield Field("int64_t", f"{name}_value", part.count, f"signed_of({name}[i])", unit)
        yield Field("int32_t", f"{name}_exponent", part.count, f"{name}[i].e")

    # --- functions ---

    def functions(self) -> Iterator[str]:
        """Yield what the dot product calls."""
        names = {at.name for at in self.program.operations}
        yield number_type(wide=self.wide)
        for element in dict.fromkeys(self._elements()):
            yield "\n".join(reading(FORMATS[element], wide=self.wide))
        if "mul" in names:
            yield multiplication(wide=self.wide)
        if any(field.name.endswith("_value") for field in self.fields):
            yield "static int64_t signed_of(number n) { return n.negative ? -(int64_t)n.m : (int64_t)n.m; }"
        if any(self.program.named("cut")):
            yield CUT
        rounded, added = "round" in names, self._adds()
        if rounded or added:
            yield SPECIAL
            yield LENGTH
        for output in dict.fromkeys(at.given[0] for at in self.program.named("round")):
            yield "\n".join(rounding(output, FORMATS[output.format]))
        if added:
            yield ieee_sum(wide=self.wide)

    def _elements(self) -> Iterator[str]:
        for at in self.program.named("read", "convert"):
            if at.name == "read" or not self._is_exact(at):
                yield at.given[0]

    def _adds(self) -> bool:
        return any(
            at.name == "ieee" or not self._is_exact(at) for at in self.program.named("ieee", "convert")
        )

    def _is_exact(self, at: Operation) -> bool:
        """Return whether a format has every number that is converted to it."""
        if at.name != "convert":
            return False
        element, (part,) = FORMATS[at.given[0]], self.ranges.parts[at.values[0]]
        least = element.minimum_exponent - element.fraction_bits
        return (
            part.fraction <= element.fraction_bits
            and part.low - part.fraction >= least
            and part.high <= element.bias
        )

    # --- the body ---

    def body(self) -> Iterator[str]:
        """Yield the function NAME_dot."""
        yield f"{self.prototype} {{"
        for name, value in self._constants().items():
            yield f"  const int32_t {name} = {value};"
        for declared in self._declarations():
            yield f"  {declared};"
        for at in self.program.operations:
            yield f"  /* {at.result}: {_WORDS[at.name].format(*at.given)} */"
            yield from (f"  {line}" for line in getattr(self, f"_{at.name}")(at, *at.values))
        yield from self._ending()
        yield f"  return ({self.word}){self.program.result};"
        yield "}"

    def _ending(self) -> Iterator[str]:
        """Yield what fills the trace."""
        yield "  if (trace) {"
        for field in self.fields:
            if field.count > 1 or "[i]" in field.source:
                goal = f"trace->{field.name}[i]" if field.count > 1 else f"trace->{field.name}"
                yield f"    for (i = 0; i < {field.count}; i++) {goal} = {field.source};"
            else:
                yield f"    trace->{field.name} = {field.source};"
        yield "  }"

    def _declarations(self) -> Iterator[str]:
        yield f"int i{', j' if any(self.program.named('sum')) else ''}"
        for at in self.program.operations:
            kind = self.program.kind(at.result)
            if kind is Value.NUMBERS:
                yield f"number {at.result}[{self.ranges.count(at.result)}]"
            elif kind is Value.UNITS:
                yield f"int64_t {at.result}[{self.ranges.count(at.values[0])}]"
            else:
                types = {Value.EXPONENT: "int32_t", Value.TOTAL: "int64_t", Value.CODE: "uint64_t"}
                yield f"{types[kind]} {at.result}"
            if at.name == "round":
                yield f"int32_t special_{at.result}"

    def _constants(self) -> dict[str, int]:
        """Return the numbers of the rule, by name."""
        found = dict[str, int]()
        for at in self.program.named("top", "add"):
            if name := self._constant_name(at):
                found[name] = abs(at.given[0]) if at.name == "add" else at.given[0]
        return found

    def _constant_name(self, at: Operation) -> str:
        """Return the name of the number that an operation is given; "" where it has no meaning."""
        if at.name == "top":
            return "exponent_floor" if at.given[0] > LOWEST else ""
        values = {each.given[0]: None for each in self.program.named("add")}
        place = list(values).index(at.given[0])
        return f"kept_bits{f'_{place}' if len(values) > 1 else ''}"

    def _loop(self, name: str) -> str:
        return f"for (i = 0; i < {self.ranges.count(name)}; i++)"

    def _read(self, at: Operation, codes: str) -> Iterator[str]:
        place = "[i]" if any(each.name == codes and each.count > 1 for each in self.program.inputs) else ""
        yield f"{self._loop(at.result)} {at.result}[i] = read_{at.given[0]}({codes}{place});"

    def _zero(self, at: Operation) -> Iterator[str]:
        fields = ("m", *(("h",) if self.wide else ()), "e", "negative", "kind", "live")
        yield from (f"{at.result}[0].{each} = 0;" for each in fields)

    def _mul(self, at: Operation, left: str, right: str) -> Iterator[str]:
        yield f"{self._loop(at.result)} {at.result}[i] = mul({left}[i], {right}[i]);"

    def _bits(self, at: Operation, left: str, right: str) -> Iterator[str]:
        sign = "^" if at.given[0] == "xor" else "&"
        yield f"{self._loop(at.result)} {{"
        yield f"  {at.result}[i] = {left}[i];"
        yield f"  {at.result}[i].m = {left}[i].m {sign} {right}[i].m;"
        yield f"  {at.result}[i].live = {at.result}[i].m != 0;"
        yield "}"

    def _convert(self, at: Operation, numbers: str) -> Iterator[str]:
        element, (part,), to = FORMATS[at.given[0]], self.ranges.parts[numbers], f"{at.result}[i]"
        yield f"{self._loop(at.result)} {{"
        if self._is_exact(at):
            yield f"  {to} = {numbers}[i]; /* exact: {element} has all of these numbers */"
            yield f"  {to}.m <<= {element.fraction_bits - part.fraction};"
            smaller = f"{to}.m && {to}.m < {constant(1 << element.fraction_bits)}"
            yield f"  while ({smaller} && {to}.e > {c_int(element.minimum_exponent)}) {{"
            yield f"    {to}.m <<= 1;"
            yield f"    {to}.e--;"
            yield "  }"
            yield f"  if ({to}.m == 0) {to}.e = {element.minimum_exponent};"
        else:
            yield f"  const int scale = {part.fraction};"
            rounded = f"ieee({numbers} + i, &scale, 1, 0, {_ieee_arguments(element.name)})"
            yield f"  {to} = read_{element}({rounded});"
        yield "}"

    def _sum(self, at: Operation, numbers: str) -> Iterator[str]:
        (part,), count, to = self.ranges.parts[numbers], at.given[0], f"{at.result}[i]"
        yield f"{self._loop(at.result)} {{"
        yield "  int64_t sum = 0;"
        yield f"  {to}.e = 0;"
        yield f"  {to}.kind = 0;"
        yield f"  {to}.live = 0;"
        within = f" && j < {part.count}" if part.count % count else ""
        yield f"  for (j = {count} * i; j < {count} * i + {count}{within}; j++) {{"
        yield f"    int64_t term = (int64_t)({numbers}[j].m << ({numbers}[j].e - {c_int(part.low)}));"
        yield f"    sum += {numbers}[j].negative ? -term : term;"
        yield f"    if ({numbers}[j].kind > {to}.kind) {to}.kind = {numbers}[j].kind;"
        yield f"    {to}.live |= {numbers}[j].live;"
        yield "  }"
        yield f"  {to}.negative = sum < 0;"
        yield f"  {to}.m = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;"
        yield "}"

    def _take(self, at: Operation, numbers: str) -> Iterator[str]:
        if place := _place(at.given[0]):
            yield f"{self._loop(at.result)} {at.result}[i] = {numbers}[{place}];"
            return
        yield "{"
        yield f"  static const int places[] = {{{', '.join(map(str, at.given[0]))}}};"
        yield f"  {self._loop(at.result)} {at.result}[i] = {numbers}[places[i]];"
        yield "}"

    def _join(self, at: Operation, *lists: str) -> Iterator[str]:
        first = 0
        for name in lists:
            count = self.ranges.count(name)
            if count == 1:
                yield f"{at.result}[{first}] = {name}[0];"
            else:
                place = f"{first} + i" if first else "i"
                yield f"for (i = 0; i < {count}; i++) {at.result}[{place}] = {name}[i];"
            first += count

    def _top(self, at: Operation, numbers: str, of: str) -> Iterator[str]:
        yield f"{at.result} = {self._constant_name(at) or c_int(at.given[0])};"
        larger = f"{of}[i].live && {numbers}[i].e > {at.result}"
        yield f"{self._loop(numbers)} if ({larger}) {at.result} = {numbers}[i].e;"

    def _int(self, at: Operation) -> Iterator[str]:
        yield f"{at.result} = {at.given[0]};"

    def _add(self, at: Operation, exponent: str) -> Iterator[str]:
        yield f"{at.result} = {exponent} {'-' if at.given[0] <= 0 else '+'} {self._constant_name(at)};"

    def _max(self, at: Operation, x: str, y: str) -> Iterator[str]:
        yield f"{at.result} = {x} > {y} ? {x} : {y};"

    def _ge(self, at: Operation, x: str, y: str) -> Iterator[str]:
        yield f"{at.result} = {x} >= {y};"

    def _pick(self, at: Operation, condition: str, x: str, y: str) -> Iterator[str]:
        yield f"{at.result} = {condition} ? {x} : {y};"

    def _cut(self, at: Operation, numbers: str, unit: str) -> Iterator[str]:
        first = 0
        for fraction, count in _runs(self.ranges.parts[numbers]):
            last = first + count
            given = f"({numbers}[i], {unit} - {numbers}[i].e + {c_int(fraction)})"
            value = f"cut_{at.given[0]}{given}"
            yield f"for (i = {first}; i < {last}; i++) {at.result}[i] = {value};"
            first = last

    def _total(self, at: Operation, units: str) -> Iterator[str]:
        count = self.ranges.count(self.program.by_result[units].values[0])
        yield f"{at.result} = 0;"
        yield f"for (i = 0; i < {count}; i++) {at.result} += {units}[i];"

    def _round(self, at: Operation, total: str, unit: str, numbers: str) -> Iterator[str]:
        yield f"special_{at.result} = special({numbers}, {self.ranges.count(numbers)});"
        yield f"{at.result} = {rounding_name(at.given[0])}({total}, {unit}, special_{at.result});"

    def _ieee(self, at: Operation, numbers: str) -> Iterator[str]:
        scales = [part.fraction for part in self.ranges.parts[numbers] for _ in range(part.count)]
        yield "{"
        yield f"  const int scale[{len(scales)}] = {{{', '.join(map(str, scales))}}};"
        given = f"{len(scales)}, {_MODES[at.given[1]]}, {_ieee_arguments(at.given[0])}"
        yield f"  {at.result} = ieee({numbers}, scale, {given});"
        yield "}"

    def _wrap(self, at: Operation, total: str) -> Iterator[str]:
        bits, clamps = at.given
        most = (1 << bits - 1) - 1
        clamped = f"{total} > {most} ? {most} : {total} < -{most} - 1 ? -{most} - 1 : {total}"
        yield f"{at.result} = (uint64_t)({clamped if clamps else total});"
        yield f"{at.result} &= {constant((1 << bits) - 1)};"


_WORDS = {
    "read": "numbers of codes of {}",
    "zero": "+0, which takes no part in the alignment",
    "mul": "exact products, not normalised",
    "bits": "{}, bit by bit",
    "convert": "numbers of {}",
    "sum": "exact sums of {} neighbours",
    "take": "these of them",
    "join": "all that is added",
    "top": "largest exponent of numbers that take part in the alignment",
    "int": "the unit is 1",
    "add": "exponent of the last bit that is kept",
    "max": "the larger",
    "ge": "whether the first is as large",
    "pick": "one of two",
    "cut": "in units of 2**unit, cut: {}",
    "total": "exact sum",
    "round": "rounded once",
    "ieee": "exact sum rounded once to {}, {}",
    "wrap": "the lowest {} bits",
}


def _check_width(name: str, most: int) -> None:
    if most >= _MOST:
        raise OverflowError(f"{name} needs {most.bit_length() + 1} bits: expected at most 63")


def _ieee_arguments(element: str) -> str:
    found = FORMATS[element]
    return f"{found.fraction_bits}, {found.exponent_bits}, {constant(found.canonical_nan)}"


def _runs(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """Yield (fraction bits, count) of consecutive numbers of one scale."""
    fraction, count = parts[0].fraction, 0
    for part in parts:
        if part.fraction != fraction:
            yield fraction, count
            fraction, count = part.fraction, 0
        count += part.count
    yield fraction, count


def _place(places: Sequence[int]) -> str:
    """Return the place of element i: an arithmetic progression, or pairs of each four; "" for others."""
    first = places[0]
    if len(places) == 1:
        return str(first)
    steps = {y - x for x, y in pairwise(places)}
    if len(steps) == 1 and (step := steps.pop()) > 0:
        scaled = f"{step} * i" if step > 1 else "i"
        return f"{first} + {scaled}" if first else scaled
    if tuple(places) != tuple(first + 4 * (i // 2) + i % 2 for i in range(len(places))):
        return ""
    return f"{first} + 4 * (i / 2) + i % 2" if first else "4 * (i / 2) + i % 2"
