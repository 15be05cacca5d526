"""Each rule of architectures.py as a list of steps, with every term and its dropped bits.

The sums are those of reference.py, which decides every bit; this module only keeps the intermediate values
that reference.dot drops. ``steps_of`` checks its last code against reference.dot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...isa.formats import FORMATS, Format
from ...isa.instruction import Instruction
from ...isa.rules import (
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Output,
    Rule,
    ScaledGroups,
    ScaledQuads,
    SoftwareQuad,
)
from ...sums.arithmetic.reference import (
    NEAREST_EVEN,
    ROUNDINGS,
    ZERO,
    Dot,
    Kind,
    Number,
    Rounding,
    dot,
    exact_sum,
    fuse,
    fused_chain,
    ieee,
    ieee_sum,
    product,
    quads_step,
)
from ...sums.arithmetic.reference import Step as Fused
from .records import Step, Term

F16, F32 = FORMATS["f16"], FORMATS["f32"]

_ROUNDING_NAMES = {
    "": "to nearest even",
    "rn": "to nearest even",
    "rz": "toward zero",
    "rm": "down",
    "rp": "up",
}


class Summation(NamedTuple):
    """The products as their steps take them, in stored order, and the steps."""

    numbers: list[Number]
    steps: list[Step]


def steps_of(rule: Rule, instruction: Instruction, inputs: Dot) -> Summation:
    """Return the steps of an element of D; the last code is reference.dot's."""
    found: Summation = RULES[type(rule)](rule, instruction, inputs)
    expected = dot(rule, instruction.product, inputs)
    if found.steps[-1].code != expected:
        raise AssertionError(f"{instruction}: steps end in {found.steps[-1].code:#x}, not {expected:#x}")
    return found


def output_text(output: Output) -> str:
    """Return how a fused sum is rounded, such as ``24 bits, toward zero``."""
    return f"{output.precision} bits, {'to nearest even' if output.nearest else 'toward zero'}"


# --- fused sums ------------------------------------------------------------------------------------


class Label(NamedTuple):
    """The name of a term, the products in it, and whether its exponent takes part in the maximum."""

    name: str
    positions: tuple[int, ...]
    aligns: bool


def _fused_step(found: Fused, rule: FusedSum | ScaledGroups | ScaledQuads, labels: Sequence[Label]) -> Step:
    """Return a step of reference.py with its terms named."""
    terms = tuple(
        Term(**label._asdict(), number=number, kept=kept, unit=found.unit)
        for label, number, kept in zip(labels, found.terms, found.kept, strict=True)
    )
    return Step(
        operation="fused sum",
        terms=terms,
        exponent=found.exponent,
        unit=found.unit,
        code=found.code,
        format=FORMATS[rule.output.format],
        rounding=output_text(rule.output),
        precision=rule.output.precision,
    )


def _chain(
    rule: FusedSum, chosen: Sequence[tuple[int, Number]], start: tuple[str, Number], before: int = 0
) -> list[Step]:
    """Return the fused chain over the chosen (position, product) pairs, accumulating onto a named number.

    ``before`` are the earlier steps.
    """
    name, number = start
    steps: list[Step] = []
    chain = fused_chain(rule, [term for _, term in chosen], number)
    for index, found in enumerate(chain):
        members = chosen[index * rule.length : (index + 1) * rule.length]
        labels = [Label(f"product {place}", (place,), bool(term.significand)) for place, term in members]
        labels.append(Label(name, (), bool(found.terms[-1].significand)))
        steps.append(_fused_step(found, rule, labels))
        name = f"step {before + index}"
    return steps


def _fused_sum(rule: FusedSum, instruction: Instruction, inputs: Dot) -> Summation:
    numbers = inputs.products
    if inputs.scales:
        numbers = [product(x, scale) for x, scale in zip(numbers, inputs.scales, strict=True)]
    return Summation(numbers, _chain(rule, list(enumerate(numbers)), ("c", inputs.c)))


def _emulated_f8(rule: EmulatedF8, instruction: Instruction, inputs: Dot) -> Summation:
    """Return the steps of operands converted to f16: both halves are summed from zero, then C is added as
    IEEE does.
    """
    as_f16 = Dot([ieee(F16, x) for x in inputs.a], [ieee(F16, x) for x in inputs.b], inputs.c)
    numbers = as_f16.products
    steps: list[Step] = []
    partial = ("zero", ZERO)
    for halves in ((0, 1), (2, 3)):
        chosen = [(place, term) for place, term in enumerate(numbers) if place % 4 in halves]
        steps += _chain(rule.step, chosen, partial, before=len(steps))
        partial = (f"step {len(steps) - 1}", steps[-1].number)
    addition = _ieee_step("add", [("c", inputs.c, ()), (*partial, ())], instruction.d)
    return Summation(numbers, [*steps, addition])


def _scaled_groups(rule: ScaledGroups, instruction: Instruction, inputs: Dot) -> Summation:
    """Return a step over whole groups: a group's products add exactly and have its scales' exponent."""
    numbers = inputs.products
    terms: list[Number] = []
    labels: list[Label] = []
    for start in range(0, len(numbers), rule.group):
        members, scale = numbers[start : start + rule.group], inputs.scales[start]
        total, unit = exact_sum(members)
        terms.append(product(Number(Kind.FINITE, total < 0, abs(total), unit, exponent=0), scale))
        counts = bool(scale.significand) and any(member.significand for member in members)
        labels.append(Label(f"group {len(labels)}", tuple(range(start, start + rule.group)), counts))
    terms.append(inputs.c)
    labels.append(Label("c", (), bool(inputs.c.significand)))
    exponents = [term.exponent for term, label in zip(terms, labels, strict=True) if label.aligns]
    return Summation(numbers, [_fused_step(fuse(terms, exponents, rule), rule, labels)])


def _scaled_quads(rule: ScaledQuads, instruction: Instruction, inputs: Dot) -> Summation:
    """Return a step over groups of products with their scales, of so many as the step takes together."""
    numbers = inputs.products
    step = quads_step(rule, inputs)
    count = len(numbers) // (len(step.terms) - 1)
    labels = [
        Label(f"group {start // count}", tuple(range(start, start + count)), bool(term.significand))
        for start, term in zip(range(0, len(numbers), count), step.terms, strict=False)
    ]
    labels.append(Label("c", (), bool(inputs.c.significand)))
    return Summation(numbers, [_fused_step(step, rule, labels)])


# --- IEEE operations -------------------------------------------------------------------------------

Named = tuple[str, Number, tuple[int, ...]]  # a term's name, its number and the products in it


def _ieee_step(
    operation: str,
    terms: Sequence[Named],
    element: Format,
    rounding: Rounding = NEAREST_EVEN,
    rounding_name: str = "to nearest even",
) -> Step:
    """Return a sum rounded once: no term is truncated before."""
    numbers = [number for _, number, _ in terms]
    _, unit = exact_sum(numbers)
    return Step(
        operation=operation,
        terms=tuple(
            Term(
                name=name,
                number=number,
                kept=number.signed << (number.scale - unit),
                unit=unit,
                positions=positions,
            )
            for name, number, positions in terms
        ),
        exponent=None,
        unit=unit,
        code=ieee_sum(numbers, element, rounding),
        format=element,
        rounding=f"{element.fraction_bits + 1} bits, {rounding_name}",
        precision=element.fraction_bits + 1,
    )


def _fused_multiply_add(rule: FusedMultiplyAdd, instruction: Instruction, inputs: Dot) -> Summation:
    numbers = inputs.products
    rounding, name = ROUNDINGS[instruction.rounding], _ROUNDING_NAMES[instruction.rounding]
    steps: list[Step] = []
    before = ("c", inputs.c)
    for position, number in enumerate(numbers):
        terms: list[Named] = [(f"product {position}", number, (position,)), (*before, ())]
        steps.append(_ieee_step("fma", terms, instruction.d, rounding, name))
        before = (f"step {position}", steps[-1].number)
    return Summation(numbers, steps)


class _Program:
    """The f32 operations in order, each result available by its step."""

    def __init__(self, numbers: Sequence[Number]) -> None:
        self.numbers = numbers
        self.steps: list[Step] = []

    def fma(self, position: int, addend: tuple[str, Number] | None = None) -> tuple[str, Number]:
        """Return ``a * b``, or ``a * b + addend``."""
        term: Named = (f"product {position}", self.numbers[position], (position,))
        return self._finish_step(
            "fma" if addend else "multiply", [term, (*addend, ())] if addend else [term], F32
        )

    def add(self, x: tuple[str, Number], y: tuple[str, Number], element: Format = F32) -> tuple[str, Number]:
        """Return ``x + y``."""
        return self._finish_step("add", [(*x, ()), (*y, ())], element)

    def convert(self, x: tuple[str, Number], element: Format) -> tuple[str, Number]:
        """Return the number in another format."""
        return self._finish_step(f"convert to {element}", [(*x, ())], element)

    def _finish_step(self, operation: str, terms: Sequence[Named], element: Format) -> tuple[str, Number]:
        self.steps.append(_ieee_step(operation, terms, element))
        return f"step {len(self.steps) - 1}", self.steps[-1].number


def _software_quad(rule: SoftwareQuad, instruction: Instruction, inputs: Dot) -> Summation:
    """Return the steps of ptxas's routine for m8n8k4 f16, an f32 operation each."""
    program = _Program(inputs.products)
    c = ("c", inputs.c)
    if instruction.d == F32:
        partial = ("zero", ZERO)
        for position in range(4):
            partial = program.fma(position, partial)
        program.add(c, partial)
    else:
        upper = program.add(c, program.fma(3, program.fma(2)))
        lower = program.fma(1, program.fma(0))
        program.convert(program.add(upper, lower), instruction.d)
    return Summation(inputs.products, program.steps)


# --- integers --------------------------------------------------------------------------------------


def _whole(instruction: Instruction, inputs: Dot, numbers: list[Number], operation: str) -> Summation:
    """Return an exact sum, wrapped or clamped to D's 32 bits."""
    named: list[Named] = [(f"product {place}", number, (place,)) for place, number in enumerate(numbers)]
    terms = tuple(
        Term(name=name, number=number, kept=number.signed, unit=0, positions=positions)
        for name, number, positions in [*named, ("c", inputs.c, ())]
    )
    total, limit = sum(term.kept for term in terms), instruction.d.sign_bit
    if instruction.satfinite:
        total, rounding = max(-limit, min(total, limit - 1)), "clamped to 32 bits"
    else:
        rounding = "modulo 2**32"
    step = Step(
        operation=operation,
        terms=terms,
        exponent=None,
        unit=0,
        code=total & instruction.d.mask,
        format=instruction.d,
        rounding=rounding,
    )
    return Summation(numbers, [step])


def _integer_sum(rule: IntegerSum, instruction: Instruction, inputs: Dot) -> Summation:
    return _whole(instruction, inputs, inputs.products, "integer sum")


_BIT_OPERATIONS: dict[str, Callable[[int, int], int]] = {"and": int.__and__, "xor": int.__xor__}


def _bit_count(rule: BitCount, instruction: Instruction, inputs: Dot) -> Summation:
    combine = _BIT_OPERATIONS[instruction.bit_operation]
    bits = [combine(x.significand, y.significand) for x, y in zip(inputs.a, inputs.b, strict=True)]
    numbers = [Number(Kind.FINITE, False, bit, 0, 0) for bit in bits]
    return _whole(instruction, inputs, numbers, f"{instruction.bit_operation} and count of ones")


RULES: dict[type[Rule], Callable[[Any, Instruction, Dot], Summation]] = {
    FusedSum: _fused_sum,
    EmulatedF8: _emulated_f8,
    ScaledGroups: _scaled_groups,
    ScaledQuads: _scaled_quads,
    FusedMultiplyAdd: _fused_multiply_add,
    SoftwareQuad: _software_quad,
    IntegerSum: _integer_sum,
    BitCount: _bit_count,
}
