"""Executing one instruction: gather, compute, scatter.

The pipeline, and the two ways into it: from registers (``execute``) and from plain matrices
(``matmul``). Does not know PTX text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .architectures import Evidence, Rule, rule_of
from .encoding import codes_of, magnitudes, matrix_of
from .errors import IllegalInstruction, OperandError
from .formats import Format
from .fragments import (
    Fields,
    check_fields,
    check_selector,
    checked_registers,
    codes_from,
    fields_of,
    indices_of,
    read_fields,
    read_scales,
    registers_of,
    shaped,
)
from .instruction import Codes, Instruction, Operands
from .registers import Words
from .sparsity import compress, stored_columns

Engine = Literal["kernel", "reference"]
Undefined = Literal["error", "fallback"]


def rule_for(instruction: Instruction) -> Rule:
    """The rule of an instruction on its target; raises IllegalInstruction without a target."""
    if instruction.target is None:
        raise IllegalInstruction(
            f"{instruction} has no target, and the result depends on it: decode it with target='sm_…'"
        )
    return rule_of(
        instruction.target,
        instruction.family.rules,
        instruction.operation,
        instruction.d.name,
        sparse=instruction.sparse,
    )


def evidence(instruction: Instruction) -> Evidence:
    """Why the result of an instruction on its target is believed."""
    return rule_for(instruction).evidence


def _engine(name: str) -> Callable[[Operands, Rule], Codes]:
    """The engines are imported when first used: Numba alone takes a fifth of a second."""
    if name == "kernel":
        from .numerics import compute
    elif name == "reference":
        from .reference import compute
    else:
        raise OperandError(f"engine {name!r}: it is 'kernel' or 'reference'")
    return compute


@dataclass(frozen=True, slots=True)
class ScaleSelectors:
    """Which byte and which thread of a quad supply the block scales of A and B."""

    byte_id_a: int = 0
    thread_id_a: int = 0
    byte_id_b: int = 0
    thread_id_b: int = 0


def execute_registers(
    instruction: Instruction,
    registers: dict[str, npt.ArrayLike],
    *,
    selector: int = 0,
    scale_selectors: ScaleSelectors = ScaleSelectors(),
    engine: Engine = "kernel",
    undefined: Undefined = "error",
) -> Words:
    """D registers ``(..., lanes, registers)`` of registers ``a b c [e] [scale_a scale_b]``."""
    rule = rule_for(instruction)
    words = _checked_words(instruction, registers)
    batch = np.broadcast_shapes(*(array.shape[:-2] for array in words.values()))
    operands = _gather(instruction, words, selector, scale_selectors, undefined)
    codes = _engine(engine)(_flattened(operands, batch, instruction.products), rule)
    rows, columns = instruction.matrix_shape("d")
    products = (instruction.products,) if instruction.products > 1 else ()
    return registers_of(codes.reshape(*batch, *products, rows, columns), instruction, "d")


def _checked_words(instruction: Instruction, registers: dict[str, npt.ArrayLike]) -> dict[str, Words]:
    wanted = [name for name in instruction.registers if name != "d"]
    for name in wanted:
        if registers.get(name) is None:
            raise OperandError(f"{instruction} needs registers {', '.join(wanted)}; {name} is missing")
    for name, value in registers.items():
        if value is not None and name not in wanted:
            raise OperandError(f"{instruction} has no operand {name}; it takes {', '.join(wanted)}")
    return {name: checked_registers(registers[name], instruction, name) for name in wanted}


def _gather(
    instruction: Instruction,
    words: dict[str, Words],
    selector: int,
    scales: ScaleSelectors,
    undefined: Undefined,
) -> Operands:
    columns = scale_a = scale_b = None
    if instruction.sparse:
        check_selector(instruction, selector)
        fields = read_fields(instruction, words["e"], selector)
        columns = _columns_of(instruction, fields, selector, undefined)
    if instruction.scale:
        ids = scales
        scale_a = read_scales(instruction, words["scale_a"], "a", ids.byte_id_a, ids.thread_id_a)
        scale_b = read_scales(instruction, words["scale_b"], "b", ids.byte_id_b, ids.thread_id_b)
    a, b, c = (codes_from(words[name], instruction, name) for name in "abc")
    return Operands(instruction=instruction, a=a, b=b, c=c, columns=columns, scale_a=scale_a, scale_b=scale_b)


def _columns_of(
    instruction: Instruction, fields: Fields, selector: int | None, undefined: Undefined
) -> npt.NDArray[np.intp]:
    """Logical columns of stored elements; undefined metadata is an error unless a fallback is asked for."""
    if undefined == "error":
        check_fields(instruction, fields, selector, unknown=True)
    elif undefined != "fallback":
        raise OperandError(f"undefined={undefined!r}: it is 'error' or 'fallback'")
    assert instruction.pattern is not None
    return stored_columns(indices_of(instruction, fields), instruction.pattern)


def _flattened(operands: Operands, batch: tuple[int, ...], products: int) -> Operands:
    """Every array broadcast to the batch, and the leading axes merged into one."""
    lead = (*batch, products) if products > 1 else batch

    def merge(array: Codes | None) -> Codes | None:
        if array is None:
            return None
        full = np.broadcast_to(array, (*lead, *array.shape[-2:]))
        return np.ascontiguousarray(full).reshape(prod(lead), *array.shape[-2:])

    merged = {name: merge(getattr(operands, name)) for name in _ARRAYS}
    return Operands(instruction=operands.instruction, **merged)  # type: ignore[arg-type]


_ARRAYS = ("a", "b", "c", "columns", "scale_a", "scale_b")


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
) -> npt.NDArray[Any]:
    """D ``(..., m, n)`` of logical matrices, in D's dtype; see warpsim.matmul."""
    rule = rule_for(instruction)
    shape = instruction.shape
    stored, columns = _multiplicand(instruction, a, undefined)
    zero = np.zeros((shape.m, shape.n), instruction.c.code_dtype)
    operands = Operands(
        instruction=instruction,
        a=stored,
        columns=columns,
        b=shaped(codes_of(b, instruction.b, "B"), (shape.k, shape.n), "B"),
        c=zero if c is None else shaped(codes_of(c, instruction.c, "C"), (shape.m, shape.n), "C"),
        scale_a=_scale_codes(instruction, scale_a, "scale_a", (shape.m, instruction.scale_chunks)),
        scale_b=_scale_codes(instruction, scale_b, "scale_b", (instruction.scale_chunks, shape.n)),
    )
    arrays = [getattr(operands, name) for name in _ARRAYS]
    batch = np.broadcast_shapes(*(array.shape[:-2] for array in arrays if array is not None))
    codes = _engine(engine)(_flattened(operands, batch, 1), rule)
    return matrix_of(codes, instruction.d).reshape(*batch, shape.m, shape.n)


def _multiplicand(
    instruction: Instruction, a: Any, undefined: Undefined
) -> tuple[Codes, npt.NDArray[np.intp] | None]:
    """Codes of A as stored, and their logical columns where A is sparse."""
    rows, stored = instruction.matrix_shape("a")
    if instruction.pattern is None:
        return shaped(codes_of(a, instruction.a, "A"), (rows, stored), "A"), None
    if isinstance(a, tuple):
        values, indices = a
        codes = shaped(codes_of(values, instruction.a, "A"), (rows, stored), "A's stored values")
        return codes, _columns_of(instruction, fields_of(instruction, indices), None, undefined)
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
    return shaped(_byte_codes(np.asarray(scale), instruction.scale, what), expected, what)


def _byte_codes(scale: npt.NDArray[Any], element: Format, what: str) -> Codes:
    """Scale codes; the top bit of a ue4m3 byte is not part of its code."""
    if scale.dtype == np.uint8:
        return scale & np.uint8(element.mask)
    return codes_of(scale, element, what)
