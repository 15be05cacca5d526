"""Executing one instruction: the choice of a path, and the general path.

The general path gathers the operands where the inputs give them, computes the codes of D, and scatters them.
Does not know PTX text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...base.errors import IllegalInstruction, OperandError
from ...isa.architectures import rule_of
from ...isa.comparisons import Evidence
from ...isa.fragments import checked_registers, gather, written_words
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import NO_TENSOR_SETTINGS, Inputs, ScaleSelectors
from ...isa.products import Codes, Operands
from ...isa.registers import Words, with_registers
from ...isa.rules import Rule
from ..arithmetic.cores import thread_count
from .code_engines import Engine as Engine
from .code_engines import Selected, computed, engine_of
from .compilation_budget import PROCESS, CompilationBudget

if TYPE_CHECKING:
    from types import ModuleType

    from .fused_registers import FusedCall

Undefined = Literal["error", "fallback"]
_ARRAYS = ("a", "b", "c", "columns", "scale_a", "scale_b")


def rule_for(instruction: Instruction, *, with_c: bool = True) -> Rule:
    """Return the rule of an instruction on its target, with the evidence of it with or without C.

    Raises IllegalInstruction without a target.
    """
    if instruction.target is None:
        raise IllegalInstruction(
            f"{instruction} has no target, and the result depends on it: give target='sm_…' (--target sm_…)"
        )
    product, words = instruction.product, instruction.issue
    return rule_of(instruction.target, instruction.family.rules, product, with_c=with_c, words=words)


def evidence(instruction: Instruction, *, with_c: bool = True) -> Evidence:
    """Return why the result of an instruction on its target is believed, where C is added or (scale-d of
    wgmma, enable-input-d of tcgen05) is not.
    """
    return rule_for(instruction, with_c=with_c).evidence


def is_literal(undefined: str) -> bool:
    """Return whether undefined metadata is read literally; raises OperandError for an unknown mode."""
    if undefined not in ("error", "fallback"):
        raise OperandError(f"undefined={undefined!r}: expected 'error' or 'fallback'")
    return undefined == "fallback"


# --- one call ----------------------------------------------------------------------------------------


def execute_inputs(
    instruction: Instruction,
    inputs: Inputs,
    engine: Engine = "kernel",
    threads: int | None = None,
    budget: CompilationBudget = PROCESS,
) -> Words:
    """Return D registers ``(..., lanes, registers)`` of what an instruction reads.

    Raises as warpsim.execute does. The bits depend neither on the path nor on ``threads`` and ``budget``.
    """
    if threads is not None:
        thread_count(threads)  # raises for a single execution too
    arranged = instruction.family.arranged
    inputs = inputs if arranged is None else arranged(instruction, inputs)
    path = path_of(instruction, inputs, engine, budget)
    if not isinstance(path, str):
        d: Words | None = _shortcut().run(path, threads)
        if d is not None:
            return d
        path = "kernel"  # metadata without a meaning: gathering reports it
    inputs = checked_inputs(instruction, inputs)
    operands = gather(instruction, inputs)
    codes = _codes(operands, rule_for(instruction), path, threads, instruction.products, budget)
    return written_words(codes, instruction, inputs)


def execute_plain(
    instruction: Instruction, registers: tuple[Any, ...], selector: int, undefined: Undefined
) -> Words | None:
    """Return D of one execution by compiled kernels, whose a, b, c and metadata are as these take them;
    None for all others.
    """
    if instruction.product not in PROCESS.compiled or instruction.family.arranged is not None:
        return None
    literal = undefined != "error" and is_literal(undefined)
    d: Words | None = _shortcut().straight(instruction, registers, selector, literal)
    return d


def path_of(
    instruction: Instruction, inputs: Inputs, engine: Engine, budget: CompilationBudget
) -> FusedCall | Selected:
    """Return the path of one call: the shortcut, ready to run, or the engine of the general path.

    The shortcut serves kernels where a recipe reads the registers as they are given, or once they are
    checked and converted. Raises what rule_for and checked_inputs raise.
    """
    if engine != "kernel" or instruction.product not in budget.compiled:
        count = instruction.product.multiplications * _executions(instruction, inputs)
        selected = engine_of(instruction.product, count, rule_for(instruction), engine, budget)
        if selected != "kernel":
            return selected
    fused_call = _shortcut().fused_call
    call: FusedCall | None = fused_call(instruction, inputs)
    if call is not None:
        return call
    rule_for(instruction)
    checked = checked_inputs(instruction, inputs)
    same = all(checked.registers[name] is words for name, words in inputs.registers.items())
    return (None if same else fused_call(instruction, checked)) or "kernel"


@cache
def _shortcut() -> ModuleType:
    """Return the shortcut, imported when first used: Numba alone takes a fifth of a second."""
    from . import fused_registers

    return fused_registers


def _executions(instruction: Instruction, inputs: Inputs) -> int:
    """Return how many executions the inputs hold; 1 where their batch axes do not broadcast together."""
    counts, lanes = instruction.registers, instruction.lanes
    known = [(words, counts[name]) for name, words in inputs.registers.items() if name in counts]
    leads = [with_registers(words, lanes, count).shape[:-2] for words, count in known]
    leads += [np.shape(words) for words in (inputs.a_descriptor, inputs.b_descriptor) if words is not None]
    leads += [inputs.shared.shape[:-1]] if inputs.shared is not None else []
    leads += [codes.shape[:-2] for codes in inputs.matrices.values()]
    try:
        return prod(np.broadcast_shapes(*leads))
    except ValueError:
        return 1  # an error, which gathering reports


def execute_operands(
    operands: Operands,
    rule: Rule,
    engine: Engine = "kernel",
    threads: int | None = None,
    products: int | None = None,
) -> Codes:
    """Return codes of D ``(..., m, n)``, of m8n8k4 f16 ``(..., 4, m, n)``, from gathered operands.

    Operands may be a part of the rows and columns of the product. ``products`` is the number of
    independent products in them, None for all that the instruction has.
    """
    products = operands.product.products if products is None else products
    each = prod(operands.a.shape[-2:]) * operands.b.shape[-1]
    count = prod(batch_of(operands, products)) * products * each
    return _codes(operands, rule, engine_of(operands.product, count, rule, engine), threads, products)


def _codes(
    operands: Operands,
    rule: Rule,
    engine: Selected,
    threads: int | None,
    products: int,
    budget: CompilationBudget = PROCESS,
) -> Codes:
    batch = batch_of(operands, products)
    codes = computed(_flatten(operands, batch, products), rule, engine, threads, budget)
    return codes.reshape(*batch, *((products,) if products > 1 else ()), *codes.shape[-2:])


def checked_inputs(instruction: Instruction, inputs: Inputs) -> Inputs:
    """Return the inputs with checked registers; raises OperandError for missing or foreign registers."""
    arranged = instruction.family.arranged
    inputs = inputs if arranged is None else arranged(instruction, inputs)
    _check_settings(instruction, inputs)
    wanted = [name for name in instruction.registers if name != "d"]
    given = inputs.registers
    optional = {"a"} if inputs.a_descriptor is not None else set()
    optional |= inputs.matrices.keys()
    optional |= set() if inputs.scale_d else {"c"}
    for name in wanted:
        if name not in given and name not in optional:
            raise OperandError(f"{instruction} needs registers {', '.join(wanted)}; {name} is missing")
    for name in given:
        if name not in wanted:
            raise OperandError(f"{instruction} has no operand {name}; it takes {', '.join(wanted)}")
    words = {name: checked_registers(given[name], instruction, name) for name in given}
    return replace(inputs, registers=words)


def _check_settings(instruction: Instruction, inputs: Inputs) -> None:
    """Raise OperandError for a setting that the instruction does not have: it would have no effect."""
    if inputs.tensor != NO_TENSOR_SETTINGS and instruction.descriptor is None:
        raise OperandError(
            f"{instruction} takes no scale_input_d, disable_output_lane or zero_column_mask: tcgen05.mma does"
        )
    if not instruction.reads_tiles and not inputs.warp_level:
        raise OperandError(
            f"{instruction} takes no descriptors, shared memory, scale_d, imm_scale or imm_trans: wgmma does"
        )
    if inputs.selector and not instruction.sparse:
        raise OperandError(f"{instruction} is dense: it takes no selector")
    if inputs.scale_selectors != ScaleSelectors() and instruction.scale is None:
        raise OperandError(f"{instruction} has no block scales: it takes no byte or thread ids")


def batch_of(operands: Operands, products: int = 1) -> tuple[int, ...]:
    """Return the leading axes of all operands, broadcast together; raises OperandError."""
    inner = 3 if products > 1 else 2
    arrays = [getattr(operands, name) for name in _ARRAYS]
    shapes = [array.shape[:-inner] for array in arrays if array is not None]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(str(shape) for shape in shapes)
        raise OperandError(f"the leading (batch) axes do not broadcast together: {given}") from None


def _flatten(operands: Operands, batch: tuple[int, ...], products: int = 1) -> Operands:
    """Return the operands with every array broadcast to the batch and the leading axes merged into a single
    axis.
    """
    lead = (*batch, products) if products > 1 else batch

    def merge(array: Codes | None) -> Codes | None:
        if array is None:
            return None
        full = np.broadcast_to(array, (*lead, *array.shape[-2:]))
        return np.ascontiguousarray(full).reshape(prod(lead), *array.shape[-2:])

    merged = {name: merge(getattr(operands, name)) for name in _ARRAYS}
    return Operands(product=operands.product, **merged)  # type: ignore[arg-type]
