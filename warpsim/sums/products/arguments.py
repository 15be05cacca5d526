"""Operands of a whole matrix product, checked and as codes.

Knows what shapes, dtypes and indices a product takes, and how a product is cut: along k, and into tiles of
D. Does not know arithmetic, nor in which order instructions are executed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa.arrays import as_array
from ...isa.codes import codes_of, matrix_of, scale_codes_of, zero_ranks
from ...isa.formats import Format
from ...isa.fragments import check_fields, signed
from ...isa.instruction import Instruction
from ...isa.products import Codes
from ...isa.rules import Rule
from ...isa.sparsity import compress
from ..execution.logical_matrices import Matrices, stored_pair
from ..execution.pipeline import Undefined, rule_for

RowsOfA = tuple[Codes, Codes | None, Codes | None]  # some rows of A: codes as stored, indices, scales
ColumnsOfB = tuple[Codes, Codes | None]  # some columns of B: codes, scales


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """Checked operands as codes; ``indices`` where A is sparse; ``instructions`` along k."""

    instruction: Instruction
    rule: Rule
    a: Codes
    b: Codes
    c: Codes | None
    indices: Codes | None
    scale_a: Codes | None
    scale_b: Codes | None
    instructions: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of D."""
        return self.a.shape[0], self.b.shape[1]

    def part(self, first: int, stop: int) -> Request:
        """Return instructions ``first`` up to ``stop`` along k, without C."""
        form = self.instruction
        stored, k, chunks = form.stored_k, form.shape.k, form.scale_chunks
        units = stored // form.pattern.unit if form.pattern else 0
        return replace(
            self,
            a=self.a[:, first * stored : stop * stored],
            b=self.b[first * k : stop * k],
            c=None,
            indices=None if self.indices is None else self.indices[:, first * units : stop * units],
            scale_a=None if self.scale_a is None else self.scale_a[:, first * chunks : stop * chunks],
            scale_b=None if self.scale_b is None else self.scale_b[first * chunks : stop * chunks],
            instructions=stop - first,
        )

    def left(self, rows: slice) -> RowsOfA:
        """Return what some rows of D take of A."""
        a, indices, scales = self.a, self.indices, self.scale_a
        return a[rows], None if indices is None else indices[rows], None if scales is None else scales[rows]

    def right(self, columns: slice) -> ColumnsOfB:
        """Return what some columns of D take of B."""
        return self.b[:, columns], None if self.scale_b is None else self.scale_b[:, columns]

    def tile(self, rows: slice, columns: slice) -> Request:
        """Return the request of some rows and columns of D."""
        c = None if self.c is None else self.c[rows, columns]
        return joined(self.instruction, self.left(rows), self.right(columns), c)


def joined(form: Instruction, left: RowsOfA, right: ColumnsOfB, c: Codes | None) -> Request:
    """Return the request of rows of A and columns of B that have been checked."""
    return Request(
        instruction=form,
        rule=rule_for(form),
        a=left[0],
        b=right[0],
        c=c,
        indices=left[1],
        scale_a=left[2],
        scale_b=right[1],
        instructions=_instructions(form, right[0]),
    )


def _instructions(form: Instruction, b: Codes) -> int:
    """Return instructions along k."""
    return -(-int(b.shape[0]) // form.shape.k)


@in_default_environment
def checked(form: Instruction, given: Matrices, undefined: Undefined) -> Request:
    """Return the request of gemm's operands. Raises OperandError, UndefinedBehavior, NotModelled."""
    rule = rule_for(form)
    _check_depth(form, given)
    a, indices = _left_operand(form, given.a, undefined)
    b = _matrix(given.b, form.b, "B")
    shape = (a.shape[0], b.shape[1])
    c = None if given.c is None else _matrix(given.c, form.c, "C", shape)
    chunks = -(-b.shape[0] * form.scale_chunks // form.shape.k) if form.scale else 0
    return Request(
        instruction=form,
        rule=rule,
        a=signed(a, form.a, form.product.negated[0]),
        b=signed(b, form.b, form.product.negated[1]),
        c=c,
        indices=indices,
        scale_a=_scales(form, given.scale_a, "scale_a", (shape[0], chunks)),
        scale_b=_scales(form, given.scale_b, "scale_b", (chunks, shape[1])),
        instructions=_instructions(form, b),
    )


def _check_depth(form: Instruction, given: Matrices) -> None:
    """Raise OperandError unless B has as many rows as A columns; sparse A may end later in the same chunk.

    Elements, which may be many, are not read.
    """
    pattern = form.pattern
    slack = pattern.chunk if pattern else 1
    if pattern and isinstance(given.a, tuple):
        stored = _check_shape(stored_pair(given.a)[0], "A's stored values", None).shape[1]
        if stored % pattern.stored:
            raise OperandError(f"A's stored values have {stored} columns, not a multiple of {pattern.stored}")
        columns = stored // pattern.stored * slack
    else:
        columns = -(-_check_shape(given.a, "A", None).shape[1] // slack) * slack
    rows = _check_shape(given.b, "B", None).shape[0]
    if not columns - slack < rows <= columns:
        raise OperandError(f"A has {columns} columns, but B has {rows} rows")


def _left_operand(form: Instruction, A: Any, undefined: Undefined) -> tuple[Codes, Codes | None]:
    """Return codes of A as stored and, where it is sparse, the indices of its units."""
    if form.pattern is None:
        return _matrix(A, form.a, "A"), None
    pattern = form.pattern
    if not isinstance(A, tuple):
        codes = _matrix(A, form.a, "A")
        codes = padded(codes, 1, pattern.chunk)
        ranks = zero_ranks(matrix_of(codes, form.a), form.a)
        return compress(codes, ranks, pattern)
    values, indices = stored_pair(A)
    codes = _matrix(values, form.a, "A's stored values")
    units = as_array(indices)
    wanted = (codes.shape[0], codes.shape[1] // pattern.unit)
    if units.dtype.kind not in "iu" or units.shape != wanted:
        given = f"{units.dtype} of shape {units.shape}"
        raise OperandError(f"indices are integers of shape {wanted}, not {given}")
    if units.size and (units.min() < 0 or units.max() >= pattern.choices):
        raise OperandError(f"indices run from 0 to {pattern.choices - 1} in a {pattern} chunk")
    units = np.ascontiguousarray(units, np.uint8)
    if undefined == "error":
        check_fields(form, pattern.fields(units), unknown=True)
    elif undefined != "fallback":
        raise OperandError(f"undefined={undefined!r}: expected 'error' or 'fallback'")
    return codes, units


def _codes(matrix: Any, element: Format, what: str) -> Codes:
    """codes_of without a copy where the bits need no check."""
    array = as_array(matrix)
    if element.is_float and element.bits >= 8 and array.dtype in (element.dtype, element.code_dtype):
        return np.ascontiguousarray(array).view(element.code_dtype)
    if array.dtype == element.dtype and element.bits in (8, 32):
        return np.ascontiguousarray(array).view(element.code_dtype)
    return np.ascontiguousarray(codes_of(array, element, what))


def _matrix(given: Any, element: Format, what: str, shape: tuple[int, int] | None = None) -> Codes:
    """Return the codes of a matrix."""
    return _codes(_check_shape(given, what, shape), element, what)


def _check_shape(given: Any, what: str, shape: tuple[int, int] | None) -> Codes:
    """Return a matrix that has this shape; the elements, which may be many, are not read."""
    array = as_array(given)
    if array.ndim != 2 or (shape is not None and array.shape != shape):
        wanted = "rows and columns" if shape is None else f"shape {shape}"
        raise OperandError(f"{what} has shape {array.shape}, but gemm takes one matrix with {wanted}")
    return array


def _scales(form: Instruction, scales: Any, what: str, shape: tuple[int, int]) -> Codes | None:
    if form.scale is None:
        if scales is not None:
            raise OperandError(f"{form} has no block scales; {what} was given")
        return None
    if scales is None:
        raise OperandError(f"{form} needs scale_a and scale_b")
    return scale_codes_of(_check_shape(scales, what, shape), form.scale, what)


def padded(array: Codes, axis: int, multiple: int, fill: int = 0) -> Codes:
    """Return an array with its axis filled up to a multiple."""
    missing = -array.shape[axis] % multiple
    if not missing:
        return array
    pads = [(0, missing if i == axis else 0) for i in range(array.ndim)]
    return np.pad(array, pads, constant_values=fill)
