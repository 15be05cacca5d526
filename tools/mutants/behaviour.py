"""What a fault of a unit is, whom it concerns and where it is none: the vocabulary of the lists of faults.

A fault changes one of four things: the ``numbers`` of the rule's aligned sum, the ``operands`` as the unit
reads their codes, the ``inputs`` as it gathers them (immediates, selectors), or lines of the sums
(``edits``; summing.py, terms.py, factors.py and arithmetic.py of warpsim/workbench/generation, the vectorised
derivation beside kernels and reference.py). ``proof`` says for the limits of an instruction why no operands
whatever show the fault, or is empty: a fault that is proven equivalent and caught is an error of the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Operands
from warpsim.isa.rules import (
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Rule,
    ScaledGroups,
    SoftwareQuad,
)
from warpsim.workbench.generation.sums.limits import Limits

Where = Callable[[Limits], bool]
Proof = Callable[[Limits], str]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """``new`` in place of ``old``, which occurs once in a module of warpsim/workbench/generation/sums."""

    module: str
    old: str
    new: str


def everywhere(limits: Limits) -> bool:
    """Select every form."""
    return True


def never(limits: Limits) -> str:
    """Give no proof: some operands show the fault on every form that it concerns."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """One fault of a unit. ``where`` has the forms that have what is wrong, ``proof`` those where no operands
    show it."""

    name: str
    edits: tuple[Edit, ...] | Callable[[Limits], tuple[Edit, ...]] = ()
    numbers: Callable[[Limits], dict[str, Any]] | None = None
    operands: Callable[[Operands], Operands] | None = None
    inputs: Callable[[Instruction, Inputs], Inputs] | None = None
    where: Where = everywhere
    proof: Proof = field(default=never)


def of_rules(*classes: type[Rule]) -> Where:
    """Select the forms whose rule is of these classes."""
    return lambda limits: isinstance(limits.rule, classes)


aligned = of_rules(FusedSum, EmulatedF8, ScaledGroups)
chained = of_rules(FusedSum, EmulatedF8)
fused = of_rules(FusedSum)
emulated = of_rules(EmulatedF8)
groups = of_rules(ScaledGroups)
doubles = of_rules(FusedMultiplyAdd)
quads = of_rules(SoftwareQuad)
integers = of_rules(IntegerSum)
bits = of_rules(BitCount)


def floats(limits: Limits) -> bool:
    """Select floating-point forms."""
    return limits.instruction.a.is_float


def both(*conditions: Where) -> Where:
    """Select the forms for which all conditions hold."""
    return lambda limits: all(condition(limits) for condition in conditions)


def either(*conditions: Where) -> Where:
    """Select the forms for which at least one condition holds."""
    return lambda limits: any(condition(limits) for condition in conditions)


def first_of(*proofs: Proof) -> Proof:
    """Return the first of these proofs that holds."""
    return lambda limits: next((text for proof in proofs if (text := proof(limits))), "")
