"""Other ways in which a chip might compute: what experiments decide between, and a simulated chip may do.

A candidate is a function from an instruction and what it reads to D registers, as the model itself is. Knows
operands and rules; does not know inputs that tell candidates apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.base.errors import WarpsimError
from warpsim.isa.fragments import gather, registers_of
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Operands
from warpsim.isa.registers import Words
from warpsim.isa.rules import Rule
from warpsim.machine.run.engines import Engine as Arithmetic
from warpsim.ptx.qualifiers import on_target
from warpsim.sums.execution.inputs import inputs_by_name
from warpsim.sums.execution.pipeline import checked_inputs, execute_inputs, rule_for
from warpsim.workbench.vectors.sets import VectorSet

from .operands import ENGINE

Array = npt.NDArray[Any]
Change = Callable[[Operands], Operands]
Compute = Callable[[Operands, Rule], Array]  # codes (batch, m, n)

_ARRAYS = ("a", "b", "c", "columns", "scale_a", "scale_b")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to compute, in a word, and in words."""

    name: str
    meaning: str
    arithmetic: Arithmetic


def predicted(vectors: VectorSet, arithmetic: Arithmetic) -> Words:
    """Return D ``(cases, lanes, registers)`` of a set, computed that way."""
    d = np.empty_like(vectors.d)
    for part in vectors.inputs():
        d[part.cases] = arithmetic(
            vectors.instruction, inputs_by_name({**part.arguments, "undefined": "fallback"})
        )
    return d


# --- building blocks -------------------------------------------------------------------------------


def model(instruction: Instruction, inputs: Inputs) -> Words:
    """Return the model itself."""
    return execute_inputs(instruction, inputs, ENGINE)


def rule_compute(operands: Operands, rule: Rule) -> Array:
    """Return the model's arithmetic for a rule."""
    if ENGINE == "kernel":
        from warpsim.sums.arithmetic.numerics import compute
    else:
        from warpsim.sums.arithmetic.reference import compute
    return compute(operands, rule)


def computing(
    compute: Compute = rule_compute, rule: Rule | None = None, change: Change | None = None
) -> Arithmetic:
    """Return an arithmetic: the operands, changed first, computed by a rule (the model's where None)."""

    def arithmetic(instruction: Instruction, inputs: Inputs) -> Words:
        operands, batch = gathered(instruction, inputs)
        codes = compute(change(operands) if change else operands, rule or rule_for(instruction))
        products = (instruction.products,) if instruction.products > 1 else ()
        return registers_of(
            codes.reshape(*batch, *products, *instruction.matrix_shape("d")), instruction, "d"
        )

    def multiply(operands: Operands, usual: Rule) -> Array:
        return compute(change(operands) if change else operands, rule or usual)

    arithmetic.multiply = multiply  # type: ignore[attr-defined]
    return arithmetic


def gathered(instruction: Instruction, inputs: Inputs) -> tuple[Operands, tuple[int, ...]]:
    """Return the operands with one leading axis, and the axes that it stands for."""
    operands = gather(instruction, checked_inputs(instruction, inputs))
    inner = 3 if instruction.products > 1 else 2
    arrays = {name: getattr(operands, name) for name in _ARRAYS if getattr(operands, name) is not None}
    lead = np.broadcast_shapes(*(array.shape[:-inner] for array in arrays.values()))
    full = (*lead, instruction.products) if instruction.products > 1 else lead
    flat: dict[str, Any] = {
        name: np.ascontiguousarray(np.broadcast_to(array, (*full, *array.shape[-2:]))).reshape(
            prod(full), *array.shape[-2:]
        )
        for name, array in arrays.items()
    }
    return replace(operands, **flat), lead


def columns_of(operands: Operands) -> Array:
    """Return ``(batch, m, s)``: the logical column of every stored element."""
    if operands.columns is not None:
        return operands.columns
    return np.broadcast_to(np.arange(operands.a.shape[2]), operands.a.shape).copy()


def reordered(order: Array) -> Change:
    """Return the stored columns in another order, which decides what is summed with what."""

    def change(operands: Operands) -> Operands:
        columns = columns_of(operands)[..., order]
        return replace(
            operands, a=np.ascontiguousarray(operands.a[..., order]), columns=np.ascontiguousarray(columns)
        )

    return change


def paired(operands: Operands, values: Array) -> Array:
    """Return ``(batch, m, s, n)``: the row of ``values (batch, k, n)`` that every stored element
    multiplies.
    """
    batch = np.arange(len(values))[:, None, None]
    return values[batch, columns_of(operands)]


# --- by name ---------------------------------------------------------------------------------------


def as_target(target: str) -> Arithmetic:
    """Return the rules of another target; its model has to have the form."""

    def arithmetic(instruction: Instruction, inputs: Inputs) -> Words:
        try:
            other = on_target(replace(instruction, target=None), target)
            return execute_inputs(other, inputs, ENGINE)
        except WarpsimError:
            return model(instruction, inputs)  # what the other target does not have stays as it is

    return arithmetic
