"""The steps of an element of D: what the program of its rule computes, with every term and its dropped bits.

Each rounded operation of the program ends a step. Names of terms follow from the operations that make them.
``steps_of`` checks the last code against the reference, which shares no arithmetic with programs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from ...isa.formats import FORMATS
from ...isa.instruction import Instruction
from ...isa.rules import Output, Rule
from ...sums.arithmetic.reference import Dot, Kind, Number, dot, inputs_of
from ...sums.rule_programs.rule_interpreter import Number as Traced
from ...sums.rule_programs.rule_interpreter import run
from ...sums.rule_programs.rule_operations import Operation, Program
from ...sums.rule_programs.rule_templates import LOWEST, program_of
from .records import Step, Term

ROUNDING_NAMES = {"rn": "to nearest even", "rz": "toward zero", "rm": "down", "rp": "up"}


class Summation(NamedTuple):
    """The factors; the products as their steps take them, in stored order; and the steps."""

    factors: Dot
    numbers: list[Number]
    steps: list[Step]


def steps_of(rule: Rule, instruction: Instruction, codes: Mapping[str, Sequence[int]]) -> Summation:
    """Return the steps of an element of D; the last code is that of reference.dot.

    ``codes`` are those of a and b in stored order, of c, and a scale_a and scale_b for each product.
    """
    form = instruction.product
    program = program_of(rule.bare, form)
    scales = list(zip(codes.get("scale_a", ()), codes.get("scale_b", ()), strict=True))
    factors = inputs_of(form, codes["a"], codes["b"], codes["c"][0], scales)
    reading = _Reading(program, run(program, codes), instruction, rule)
    steps = [reading.step(at) for at in program.named("round", "ieee", "wrap")]
    expected = dot(rule, form, factors)
    if steps[-1].code != expected:
        raise AssertionError(f"{instruction}: steps end in {steps[-1].code:#x}, not {expected:#x}")
    numbers = reading.values[_products(program)]
    return Summation(factors, [_number(each) for each in numbers], steps)


def program_document(rule: Rule, instruction: Instruction) -> dict[str, Any]:
    """Return the program of a rule for a page that interprets it, with the names of its terms."""
    program = program_of(rule.bare, instruction.product)
    labels = labels_of(program)
    added = {name for at in program.named("cut", "ieee") for name in at.values[:1]}
    return {
        "operations": [_plain(_operation_document(at)) for at in program.operations],
        "labels": {name: [_plain(each._asdict()) for each in labels[name]] for name in sorted(added)},
        "products": _products(program),
        "fraction_bits": getattr(rule, "fraction_bits", 0),
        "lowest": LOWEST,
    }


def _operation_document(at: Operation) -> dict[str, Any]:
    given = [asdict(each) if isinstance(each, Output) else each for each in at.given]
    return {"result": at.result, "name": at.name, "values": at.values, "given": given}


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with lists where it has tuples, as JSON has them."""
    found: dict[str, Any] = json.loads(json.dumps(document))
    return found


def _products(program: Program) -> str:
    """Return the products as their steps take them: scaled, but where groups of them are."""
    scaled = "PS" in program.by_result and not any(program.named("sum"))
    return "PS" if scaled else "P"


def output_text(output: Output) -> str:
    """Return how a fused sum is rounded, such as ``24 bits, toward zero``."""
    return f"{output.precision} bits, {'to nearest even' if output.nearest else 'toward zero'}"


def _number(traced: Traced) -> Number:
    return Number(Kind(traced.kind), *traced[1:5])


class Label(NamedTuple):
    """The name of a term, and the products in it."""

    name: str
    positions: tuple[int, ...] = ()


def labels_of(program: Program) -> dict[str, list[Label]]:
    """Return names for the members of every list of numbers that is added."""
    found = dict[str, list[Label]]()
    steps = [at.result for at in program.named("round", "ieee", "wrap")]
    for at in program.operations:
        of = [found.get(each, []) for each in at.values]
        if at.name in ("mul", "bits"):
            count = program.inputs[0].count
            found[at.result] = of[0] or [Label(f"product {place}", (place,)) for place in range(count)]
        elif at.name == "sum":
            members = [of[0][start : start + at.given[0]] for start in range(0, len(of[0]), at.given[0])]
            found[at.result] = [
                Label(f"group {number}", tuple(place for each in group for place in each.positions))
                for number, group in enumerate(members)
            ]
        elif at.name == "take" and of[0]:
            found[at.result] = [of[0][place] for place in at.given[0]]
        elif at.name == "join":
            found[at.result] = [each for labels in of for each in labels]
        elif at.name == "zero" or at.result == "C":
            found[at.result] = [Label(at.result.lower())]
        elif at.name == "read" and at.values[0] in steps:
            found[at.result] = [Label(f"step {steps.index(at.values[0])}")]
    return found


class _Reading:
    """The values of a program, read as steps."""

    def __init__(self, program: Program, values: dict[str, Any], form: Instruction, rule: Rule) -> None:
        self.program, self.values, self.form, self.rule = program, values, form, rule
        self.labels = labels_of(program)

    def step(self, at: Operation) -> Step:
        """Return the step that a rounded operation ends."""
        return {"round": self._fused, "ieee": self._ieee, "wrap": self._exact}[at.name](at)

    def _terms(
        self, numbers: str, kept: Sequence[int], unit: int, *, aligned: bool = False
    ) -> tuple[Term, ...]:
        """Return the terms of a step; those of an alignment take part in it where they are live."""
        return tuple(
            Term(
                name=label.name,
                number=_number(number),
                kept=amount,
                unit=unit,
                aligns=number.live or not aligned,
                positions=label.positions,
            )
            for label, number, amount in zip(self.labels[numbers], self.values[numbers], kept, strict=True)
        )

    def _cut(self, total: str) -> Operation:
        """Return the operation whose units a total adds."""
        found = self.program.by_result[total]
        if found.name == "pick":
            return self._cut(found.values[1 if self.values[found.values[0]] else 2])
        return self.program.by_result[found.values[0]]

    def _fused(self, at: Operation) -> Step:
        output: Output = at.given[0]
        cut, unit = self._cut(at.values[0]), self.values[at.values[1]]
        above = self.program.by_result[at.values[1]]
        bits = -above.given[0] if above.name == "add" else getattr(self.rule, "fraction_bits", 0)
        if unit < LOWEST // 2:  # everything is zero
            unit = -bits
        return Step(
            operation="fused sum",
            terms=self._terms(cut.values[0], self.values[cut.result], unit, aligned=True),
            exponent=unit + bits,
            unit=unit,
            code=self.values[at.result],
            format=FORMATS[output.format],
            rounding=output_text(output),
            precision=output.precision,
        )

    def _ieee(self, at: Operation) -> Step:
        """Return a sum rounded once: no term is truncated before."""
        element, numbers = FORMATS[at.given[0]], self.values[at.values[0]]
        unit = min(each.scale for each in numbers)
        terms = self._terms(at.values[0], [each.signed << each.scale - unit for each in numbers], unit)
        precision = element.fraction_bits + 1
        return Step(
            operation=_operation(terms, element.name),
            terms=terms,
            exponent=None,
            unit=unit,
            code=self.values[at.result],
            format=element,
            rounding=f"{precision} bits, {ROUNDING_NAMES[at.given[1]]}",
            precision=precision,
        )

    def _exact(self, at: Operation) -> Step:
        """Return an exact sum, wrapped or clamped to the bits of D."""
        cut = self._cut(at.values[0])
        bits, clamps = at.given
        counted = self.form.bit_operation
        return Step(
            operation=f"{counted} and count of ones" if counted else "integer sum",
            terms=self._terms(cut.values[0], self.values[cut.result], 0),
            exponent=None,
            unit=0,
            code=self.values[at.result],
            format=self.form.d,
            rounding=f"clamped to {bits} bits" if clamps else f"modulo 2**{bits}",
        )


def _operation(terms: Sequence[Term], element: str) -> str:
    """Return the name of an IEEE operation on these terms."""
    multiplies = any(term.positions for term in terms)
    if len(terms) > 1:
        return "fma" if multiplies else "add"
    return "multiply" if multiplies else f"convert to {element}"
