"""The parameters of the unit for one instruction on one target, or for sums that no chip has.

Knows which of warpsim's rules the unit implements and how they become SystemVerilog parameters. Does not
know simulators, nor how operands are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import warpsim
from warpsim.isa.formats import FORMATS, Format, Specials
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import FusedSum
from warpsim.isa.sparsity import TWO_OF_FOUR
from warpsim.sums.execution.pipeline import rule_for

SPECIALS = {Specials.INFINITIES: 1, Specials.ONE_NAN: 2}  # parameter SPECIALS of float_decode.sv
CHANGES = ("length", "fraction_bits", "exponent_floor", "precision", "nearest")


class NoSuchUnit(warpsim.WarpsimError):
    """The unit cannot do what was asked of it."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One build of the unit: the instruction whose sums it makes, and the rule it makes them by."""

    instruction: Instruction
    rule: FusedSum
    changes: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        changed = "".join(f", {name} {value}" for name, value in self.changes)
        return f"{self.instruction} on {self.instruction.target}{changed}"

    @property
    def name(self) -> str:
        """Short, for the heading of a column: target, types and what was changed."""
        form = self.instruction
        sparse = " 2:4" if form.sparse else ""
        changed = "*" if self.changes else ""
        return f"{form.target} {form.a}{sparse} {form.d}{changed}"

    @property
    def length(self) -> int:
        """Products a clock."""
        return min(self.rule.length, self.instruction.stored_k)

    @property
    def clocks(self) -> int:
        """Clocks of one dot product."""
        return self.instruction.stored_k // self.length

    @property
    def lowest_product(self) -> int:
        """The smallest exponent that a product is aligned by, which subnormal factors have."""
        return self.instruction.a.minimum_exponent + self.instruction.b.minimum_exponent

    @property
    def highest_product(self) -> int:
        """The largest exponent of a finite product."""
        return highest_exponent(self.instruction.a) + highest_exponent(self.instruction.b)

    @property
    def result(self) -> Format:
        """The format of C and D."""
        return self.instruction.d

    @cached_property
    def parameters(self) -> Mapping[str, int]:
        """Parameters of tensor_dot.sv."""
        form, rule = self.instruction, self.rule
        fields = {"A": form.a, "B": form.b, "D": form.d}
        return {
            "SPARSE": int(form.sparse),
            "L": self.length,
            "F": rule.fraction_bits,
            "EXPONENT_FLOOR": rule.exponent_floor,
            **{f"{name}_EXPONENT_BITS": element.exponent_bits for name, element in fields.items()},
            **{f"{name}_FRACTION_BITS": element.fraction_bits for name, element in fields.items()},
            "A_SPECIALS": SPECIALS[form.a.specials],
            "B_SPECIALS": SPECIALS[form.b.specials],
            "PRECISION": rule.output.precision,
            "NEAREST": int(rule.output.nearest),
        }

    @property
    def widths(self) -> Mapping[str, int]:
        """Bits of the ports that carry numbers, and of metadata."""
        a, b, d = (_bits(element) for element in (self.instruction.a, self.instruction.b, self.result))
        chunks = 2 if self.instruction.sparse else 1
        return {"a": self.length * a, "b": chunks * self.length * b, "metadata": 2 * self.length, "c": d}


def highest_exponent(element: Format) -> int:
    """Return the exponent of the largest finite number."""
    return (1 << element.exponent_bits) - 1 - int(element.has_infinity) - element.bias


def _bits(element: Format) -> int:
    return element.bits - element.ignored_bits


def configure(mnemonic: str, target: str | None = None, **changes: Any) -> Configuration:
    """Return the unit for an instruction on its target, with rule parameters (CHANGES) replaced by others.

    Raises NoSuchUnit where the unit has no such sum, and what warpsim.decode raises.
    """
    instruction = warpsim.decode(mnemonic, target=target)
    rule = rule_for(instruction)
    if not isinstance(rule, FusedSum):
        raise NoSuchUnit(f"the unit makes fused sums; {instruction} on {target} is a {type(rule).__name__}")
    _check_form(instruction)
    output = {name: changes[name] for name in ("precision", "nearest") if name in changes}
    sums = {name: value for name, value in changes.items() if name not in output}
    rule = replace(rule, output=replace(rule.output, **output), **sums)
    _check_rule(instruction, rule)
    return Configuration(instruction=instruction, rule=rule, changes=tuple(changes.items()))


def _check_form(form: Instruction) -> None:
    for element in (form.a, form.b):
        if element.specials not in SPECIALS:
            raise NoSuchUnit(f"the unit multiplies formats that have NaN; A or B of {form} is {element}")
    if form.scale is not None:
        raise NoSuchUnit(f"the unit has no block scales, which {form} applies")
    if form.pattern not in (None, TWO_OF_FOUR):
        raise NoSuchUnit(f"the unit selects 2 of 4 elements; {form} is {form.pattern} sparse")
    if form.c != form.d:
        raise NoSuchUnit(f"C and D of the unit have one format; those of {form} are {form.c} and {form.d}")


def _check_rule(form: Instruction, rule: FusedSum) -> None:
    length = min(rule.length, form.stored_k)
    if length < 2 or form.stored_k % length or length % 2:
        raise NoSuchUnit(f"length {rule.length}: an even divisor of the {form.stored_k} products of {form}")
    if not 1 <= rule.fraction_bits <= 40:
        raise NoSuchUnit(f"fraction_bits {rule.fraction_bits}: from 1 to 40")
    if not 2 <= rule.output.precision <= FORMATS[rule.output.format].fraction_bits + 1:
        raise NoSuchUnit(f"precision {rule.output.precision}: from 2 to all the bits of {rule.output.format}")
    widest = max(element.exponent_bits for element in (form.a, form.b, form.d))
    if abs(rule.exponent_floor) >= 1 << (widest + 1):
        raise NoSuchUnit(f"exponent_floor {rule.exponent_floor}: less than {1 << (widest + 1)} from zero")


# What a bare `python -m tools.rtl` builds: each generation's length, fraction bits and rounding, dense and
# sparse, and one unit that no chip has (more bits kept, f32 to nearest), which shows that parameters are.
STANDARD: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80", {}),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", "sm_80", {}),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "sm_90", {}),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89", {}),
    (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "sm_90",
        {"length": 8, "fraction_bits": 28, "nearest": True},
    ),
)


def standard() -> tuple[Configuration, ...]:
    """Return the configurations of STANDARD."""
    return tuple(configure(mnemonic, target, **changes) for mnemonic, target, changes in STANDARD)
