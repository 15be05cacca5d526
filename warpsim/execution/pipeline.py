"""Executing one instruction: gather, compute, scatter.

The pipeline, and the two ways into it: from what an instruction reads (``execute_inputs``) and from
plain matrices (``matmul_matrices``). Does not know PTX text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..arithmetic.cores import thread_count
from ..errors import IllegalInstruction, OperandError
from ..isa.architectures import rule_of
from ..isa.codes import codes_of, magnitudes, matrix_of, scale_codes_of
from ..isa.comparisons import Evidence
from ..isa.fragments import checked_registers, columns_of, fields_of, gather, registers_of, shaped
from ..isa.instruction import Codes, Inputs, Instruction, Operands, ScaleSelectors
from ..isa.registers import Words
from ..isa.rules import Rule
from ..isa.sparsity import compress, stored_columns
from . import first_work

Engine = Literal["kernel", "reference"]
Undefined = Literal["error", "fallback"]

_ARRAYS = ("a", "b", "c", "columns", "scale_a", "scale_b")


def rule_for(instruction: Instruction) -> Rule:
    """The rule of an instruction on its target; raises IllegalInstruction without a target."""
    if instruction.target is None:
        raise IllegalInstruction(
            f"{instruction} has no target, and the result depends on it: give target='sm_…' (--target sm_…)"
        )
    return rule_of(
        instruction.target,
        instruction.family.rules,
        instruction.operation,
        instruction.d.name,
        sparse=instruction.sparse,
        types=(instruction.a.name, instruction.b.name),
    )


def evidence(instruction: Instruction) -> Evidence:
    """Why the result of an instruction on its target is believed."""
    return rule_for(instruction).evidence


def is_literal(undefined: str) -> bool:
    """Whether undefined metadata is to be read literally; raises OperandError for an unknown mode."""
    if undefined not in ("error", "fallback"):
        raise OperandError(f"undefined={undefined!r}: it is 'error' or 'fallback'")
    return undefined == "fallback"


@cache
def _batches() -> ModuleType:
    """The compiled engine for many cases, imported when first used: Numba alone takes a fifth of a second."""
    from . import batches

    return batches


def _computed(operands: Operands, rule: Rule, engine: Engine, threads: int | None) -> Codes:
    """Result codes of an engine."""
    if engine == "kernel":
        return _by_kernel(operands, rule, threads)
    if engine == "reference":
        from ..arithmetic.reference import compute

        return compute(operands, rule)
    raise OperandError(f"engine {engine!r}: it is 'kernel' or 'reference'")


def _by_kernel(operands: Operands, rule: Rule, threads: int | None) -> Codes:
    """Result codes of a compiled kernel, or of NumPy alone where it is not worth to compile one."""
    from ..arithmetic import numerics

    products = operands.a.size * operands.b.shape[2]
    if not numerics.needs_compiler(rule) and first_work.takes(operands.product, products):
        return numerics.compute_uncompiled(operands, rule)
    codes: Codes = _batches().computed(operands, rule, threads)
    return codes


# --- from registers --------------------------------------------------------------------------------


def execute_inputs(
    instruction: Instruction, inputs: Inputs, engine: Engine = "kernel", threads: int | None = None
) -> Words:
    """D registers ``(..., lanes, registers)`` of what an instruction reads."""
    if threads is not None:
        thread_count(threads)  # refused for a single case too
    compiled = engine == "kernel" and not first_work.is_first(instruction, inputs.registers)
    d: Words | None = _batches().execute(instruction, inputs, threads) if compiled else None
    if d is not None:
        return d
    rule = rule_for(instruction)
    checked = checked_inputs(instruction, inputs)
    if compiled and any(checked.registers[name] is not x for name, x in inputs.registers.items()):
        d = _batches().execute(instruction, checked, threads)  # which takes only registers as they should be
        if d is not None:
            return d
    operands = gather(instruction, checked)
    return registers_of(execute_operands(operands, rule, engine, threads), instruction, "d")


def execute_operands(
    operands: Operands, rule: Rule, engine: Engine = "kernel", threads: int | None = None
) -> Codes:
    """Codes of D ``(..., m, n)``, of m8n8k4 f16 ``(..., 4, m, n)``; operands may be some rows and columns."""
    product = operands.product
    batch = _batch_of(operands, product.products)
    merged = _flattened(operands, batch, product.products)
    codes = _computed(merged, rule, engine, threads)
    products = (product.products,) if product.products > 1 else ()
    return codes.reshape(*batch, *products, *codes.shape[-2:])


def checked_inputs(instruction: Instruction, inputs: Inputs) -> Inputs:
    """The inputs with every register array checked; raises OperandError for missing or foreign ones."""
    _check_settings(instruction, inputs)
    wanted = [name for name in instruction.registers if name != "d"]
    given = inputs.registers
    optional = {"a"} if inputs.a_descriptor is not None else set()
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
    """Raise OperandError for what the instruction has not: it would be passed over in silence."""
    if not instruction.reads_tiles and not inputs.warp_level:
        raise OperandError(
            f"{instruction} takes no descriptors, shared memory, scale_d, imm_scale or imm_trans: wgmma does"
        )
    if inputs.selector and not instruction.sparse:
        raise OperandError(f"{instruction} is dense: it takes no selector")
    if inputs.scale_selectors != ScaleSelectors() and instruction.scale is None:
        raise OperandError(f"{instruction} has no block scales: it takes no byte or thread ids")


def _batch_of(operands: Operands, products: int = 1) -> tuple[int, ...]:
    """The leading axes of all operands, broadcast together."""
    inner = 3 if products > 1 else 2
    arrays = [getattr(operands, name) for name in _ARRAYS]
    shapes = [array.shape[:-inner] for array in arrays if array is not None]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(str(shape) for shape in shapes)
        raise OperandError(f"the leading (batch) axes do not broadcast together: {given}") from None


def _flattened(operands: Operands, batch: tuple[int, ...], products: int = 1) -> Operands:
    """Every array broadcast to the batch, and the leading axes merged into one."""
    lead = (*batch, products) if products > 1 else batch

    def merge(array: Codes | None) -> Codes | None:
        if array is None:
            return None
        full = np.broadcast_to(array, (*lead, *array.shape[-2:]))
        return np.ascontiguousarray(full).reshape(prod(lead), *array.shape[-2:])

    merged = {name: merge(getattr(operands, name)) for name in _ARRAYS}
    return Operands(product=operands.product, **merged)  # type: ignore[arg-type]


# --- from matrices ---------------------------------------------------------------------------------


def matmul_matrices(
    instruction: Instruction,
    a: Any,
    b: npt.ArrayLike,
    c: npt.ArrayLike | None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    *,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """D ``(..., m, n)`` of logical matrices, in D's dtype; see warpsim.matmul."""
    rule, shape = rule_for(instruction), instruction.shape
    operands = matrix_operands(instruction, a, b, c, scale_a, scale_b, literal=is_literal(undefined))
    batch = _batch_of(operands)
    codes = _computed(_flattened(operands, batch), rule, engine, threads)
    return matrix_of(codes, instruction.d).reshape(*batch, shape.m, shape.n)


def matrix_operands(
    instruction: Instruction,
    a: Any,
    b: npt.ArrayLike,
    c: npt.ArrayLike | None,
    scale_a: npt.ArrayLike | None,
    scale_b: npt.ArrayLike | None,
    *,
    literal: bool,
) -> Operands:
    """Operands of logical matrices, leading axes still apart; raises OperandError."""
    shape = instruction.shape
    stored, columns = _multiplicand(instruction, a, literal)
    zero = np.zeros((shape.m, shape.n), instruction.c.code_dtype)
    return Operands(
        product=instruction.product,
        a=stored,
        columns=columns,
        b=shaped(codes_of(b, instruction.b, "B"), (shape.k, shape.n), "B"),
        c=zero if c is None else shaped(codes_of(c, instruction.c, "C"), (shape.m, shape.n), "C"),
        scale_a=_scale_codes(instruction, scale_a, "scale_a", (shape.m, instruction.scale_chunks)),
        scale_b=_scale_codes(instruction, scale_b, "scale_b", (instruction.scale_chunks, shape.n)),
    )


def stored_pair(a: tuple[Any, ...]) -> tuple[Any, Any]:
    """The values and indices of a sparse A that is given as it is stored. Raises OperandError."""
    if len(a) != 2:
        raise OperandError(f"a sparse A is one matrix, or (values, indices), not a tuple of {len(a)}")
    return a[0], a[1]


def _multiplicand(
    instruction: Instruction, a: Any, literal: bool
) -> tuple[Codes, npt.NDArray[np.intp] | None]:
    """Codes of A as stored, and their logical columns where A is sparse."""
    rows, stored = instruction.matrix_shape("a")
    if instruction.pattern is None:
        return shaped(codes_of(a, instruction.a, "A"), (rows, stored), "A"), None
    if isinstance(a, tuple):
        values, indices = stored_pair(a)
        codes = shaped(codes_of(values, instruction.a, "A"), (rows, stored), "A's stored values")
        return codes, columns_of(instruction, fields_of(instruction, indices), None, literal=literal)
    codes = shaped(codes_of(a, instruction.a, "A"), (rows, instruction.shape.k), "A")
    weight = magnitudes(matrix_of(codes, instruction.a), instruction.a)
    kept, units = compress(codes, weight, instruction.pattern)
    return kept, stored_columns(units, instruction.pattern)


def _scale_codes(
    instruction: Instruction, scale: npt.ArrayLike | None, what: str, expected: tuple[int, int]
) -> Codes | None:
    if instruction.scale is None or scale is None:
        if (instruction.scale is None) != (scale is None):
            needs = "needs" if instruction.scale else "does not take"
            raise OperandError(f"{instruction} {needs} {what}")
        return None
    return shaped(scale_codes_of(scale, instruction.scale, what), expected, what)
