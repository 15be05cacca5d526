"""Dot products of a bench in C: the rule's program, whose steps are looked at, and wrong programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...isa.formats import FORMATS
from ...sums.rule_programs.rule_operations import Operation, Program
from ..generation.sums.limits import Limits
from .c_dot import DotProduct, Field
from .c_parts import ieee_sum


class WrongDot(DotProduct):
    """A wrong program: a function of its own, with the intermediates of the rule where it has the same."""

    def __init__(self, name: str, function: str, program: Program, right: Sequence[Field]) -> None:
        super().__init__(name, program, bounded=False)
        self.function = function
        if [_kind(each) for each in self.fields] != [_kind(each) for each in right]:
            self.fields = ()

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        return f"static {super().prototype.replace(f'{self.name}_dot(', f'{self.function}(')}"

    def _ending(self) -> Iterator[str]:
        read = {value for at in self.program.operations for value in at.values}
        unread = [each.name for each in self.program.inputs if each.name not in read]
        yield from (f"  (void){name};" for name in (*unread, *([] if self.fields else ["trace"])))
        if self.fields:
            yield from super()._ending()


def _kind(field: Field) -> tuple[str, str, int]:
    return field.type, field.name, field.count


class SeenDot(DotProduct):
    """The rule's program with a look at each step, which notes the bins that are hit."""

    def __init__(self, name: str, program: Program, limits: Limits, bins: Mapping[str, int]) -> None:
        super().__init__(name, program)
        self.limits, self.bins = limits, bins
        self._steps = 0

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        return f"static {super().prototype.replace(f'{self.name}_dot(', 'seen_dot(').rpartition(',')[0]})"

    def _ending(self) -> Iterator[str]:
        form = self.limits.instruction
        sides = [("a", "A"), ("b", "B"), ("c", "C")]
        sides += [("scale_a", "SA"), ("scale_b", "SB")] if form.scale else []
        for name, numbers in sides:
            if self.ranges.count(numbers) > 1:
                yield f"  {self._loop(numbers)} see_{name}({name}[i], {numbers}[i].kind);"
            else:
                yield f"  see_{name}({name}, {numbers}[0].kind);"
        if form.a.is_float:
            scaled = "SA, SB, " if form.scale else ""
            names = [at.result for at in self.program.named("mul")]
            products = "PS" if "PS" in names else "P"
            yield f"  see_dot(A, B, C, {scaled}{products}, (uint64_t){self.program.result});"

    def _round(self, at: Operation, total: str, unit: str, numbers: str) -> Iterator[str]:
        yield from super()._round(at, total, unit, numbers)
        output, element = at.given[0], FORMATS[at.given[0].format]
        aligned = self.limits.step is not None
        top = self.program.by_result[unit].values[0] if aligned else unit
        kept = self.program.by_result[total].values[0] if aligned else "0"
        yield from self._terms(numbers, f"!special_{at.result}")
        yield f"now.top = {top}, now.unit = {unit}, now.kept = {kept}, now.total = {total};"
        how = f"{output.precision}, {int(output.nearest)}, {element.fraction_bits}, {element.exponent_bits}"
        yield f"look_at_rounding(&now, {how});"
        if aligned:
            yield "look_at_terms(&now);"
        yield self._asked("aligned" if aligned else "ieee", at)

    def _ieee(self, at: Operation, numbers: str) -> Iterator[str]:
        for line in super()._ieee(at, numbers):
            yield line.replace("= ieee(", "= ieee_seen(")
        finite = f"!special({numbers}, {self.ranges.count(numbers)})"
        yield from self._terms(numbers, finite)
        yield self._asked("ieee", at)

    def _wrap(self, at: Operation, total: str) -> Iterator[str]:
        yield from super()._wrap(at, total)
        kept = self.program.by_result[total].values[0]
        yield from self._terms(self.program.by_result[kept].values[0], "1")
        yield f"now.kept = {kept}, now.total = {total};"
        yield self._asked("integer", at)

    def _terms(self, numbers: str, finite: str) -> Iterator[str]:
        fraction = [part.fraction for part in self.ranges.parts[numbers] for _ in range(part.count)]
        yield "{"
        yield f"  static const int fraction[{len(fraction)}] = {{{', '.join(map(str, fraction))}}};"
        yield "  now.fraction = fraction;"
        yield "}"
        yield f"now.x = {numbers}, now.count = {len(fraction)}, now.finite = {finite};"

    def _asked(self, kind: str, at: Operation) -> str:
        return f"see_{kind}(&now, {int(at.result == self.program.result)});"

    @property
    def uses_ieee(self) -> bool:
        """Whether a step is an IEEE operation."""
        return any(self.program.named("ieee"))


def seen_ieee(*, wide: bool) -> str:
    """Return the function ``ieee``, which notes what its rounding did."""
    text = ieee_sum(wide=wide)
    text = text[text.index("/* The exact sum of one or two numbers") :]
    for line, notes in _NOTES.items():
        if line not in text:
            raise AssertionError(f"ieee has no line {line!r}")
        text = text.replace(line, "\n".join([*notes, line]))
    return text.replace("static uint64_t ieee(", "static uint64_t ieee_seen(")


_NOTES = {  # before lines of ieee
    "  if (found == 3) return nan;": (
        "  now.zero = now.tail = now.overflow = now.subnormal = now.vanished = now.carried = 0;",
    ),
    "  if ((sum.h | sum.l) == 0) return": (
        "  now.negative = negative;",
        "  now.zero = (sum.h | sum.l) == 0;",
    ),
    "  if (place + s < low) s = low - place;": ("  now.subnormal = place + s < low;",),
    "  kept += (uint64_t)away;": (
        "  now.tail = (int)rest;",
        "  now.odd = (int)(kept & 1);",
        "  now.carried = kept > 0 && ((kept + (uint64_t)away) & kept) == 0;",
        "  now.vanished = kept + (uint64_t)away == 0;",
    ),
    "  if (code >= infinity) {": ("  now.overflow = code >= infinity;",),
}
