"""Matrix products of one instruction: logical matrices in, D out, without lanes.

Enters the general path at ``Operands``. Does not know PTX text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.codes import codes_of, matrix_of, scale_codes_of, zero_ranks
from ...isa.fragments import columns_of, fields_of, shaped, signed
from ...isa.instruction import Instruction
from ...isa.products import Codes, Operands
from ...isa.sparsity import compress, stored_columns
from .code_engines import Engine
from .pipeline import Undefined, execute_operands, is_literal, rule_for


@dataclass(frozen=True)
class Matrices:
    """Matrices of a product as callers give them: a sparse A may be (values, indices), C None is zero."""

    a: Any
    b: npt.ArrayLike
    c: npt.ArrayLike | None = None
    scale_a: npt.ArrayLike | None = None
    scale_b: npt.ArrayLike | None = None


def matmul_matrices(
    instruction: Instruction,
    matrices: Matrices,
    *,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """Return D ``(..., m, n)`` of logical matrices, in D's dtype; see warpsim.matmul.

    For m8n8k4 f16 this is one of the four products.
    """
    rule = rule_for(instruction)
    operands = matrix_operands(instruction, matrices, literal=is_literal(undefined))
    return matrix_of(execute_operands(operands, rule, engine, threads, products=1), instruction.d)


def matrix_operands(instruction: Instruction, matrices: Matrices, *, literal: bool) -> Operands:
    """Return the operands of logical matrices, leading axes not yet merged; raises OperandError."""
    shape, c = instruction.shape, matrices.c
    stored, columns = _multiplicand(instruction, matrices.a, literal)
    zero = np.zeros((shape.m, shape.n), instruction.c.code_dtype)
    b = shaped(codes_of(matrices.b, instruction.b, "B"), (shape.k, shape.n), "B")
    return Operands(
        product=instruction.product,
        a=signed(stored, instruction.a, instruction.product.negated[0]),
        columns=columns,
        b=signed(b, instruction.b, instruction.product.negated[1]),
        c=zero if c is None else shaped(codes_of(c, instruction.c, "C"), (shape.m, shape.n), "C"),
        scale_a=_scale_codes(instruction, matrices.scale_a, "scale_a", (shape.m, instruction.scale_chunks)),
        scale_b=_scale_codes(instruction, matrices.scale_b, "scale_b", (instruction.scale_chunks, shape.n)),
    )


def stored_pair(a: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return values and indices of a sparse A that is given as it is stored; raises OperandError."""
    if len(a) != 2:
        raise OperandError(f"a sparse A is one matrix, or (values, indices), not a tuple of {len(a)}")
    return a[0], a[1]


def _multiplicand(
    instruction: Instruction, a: Any, literal: bool
) -> tuple[Codes, npt.NDArray[np.intp] | None]:
    """Return codes of A as stored, and their logical columns where A is sparse."""
    rows, stored = instruction.matrix_shape("a")
    if instruction.pattern is None:
        return shaped(codes_of(a, instruction.a, "A"), (rows, stored), "A"), None
    if isinstance(a, tuple):
        values, indices = stored_pair(a)
        codes = shaped(codes_of(values, instruction.a, "A"), (rows, stored), "A's stored values")
        return codes, columns_of(instruction, fields_of(instruction, indices), None, literal=literal)
    codes = shaped(codes_of(a, instruction.a, "A"), (rows, instruction.shape.k), "A")
    ranks = zero_ranks(matrix_of(codes, instruction.a), instruction.a)
    kept, units = compress(codes, ranks, instruction.pattern)
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
