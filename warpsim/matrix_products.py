"""Whole matrix products: the tile loop of a kernel that issues one instruction along k.

D ``(m, n)`` of A ``(m, k)``, B ``(k, n)`` and C for any m, n and k, equal bit for bit to executing the
instruction tile by tile, the accumulators being handed from one to the next. Ragged edges are filled up
with zeros, as a kernel does. Does not know lanes; which way is fast for which rule is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .architectures import BitCount, IntegerSum, Rule
from .encoding import codes_of, magnitudes, matrix_of
from .errors import OperandError
from .formats import Format
from .fragments import check_fields
from .instruction import Codes, Instruction, Operands
from .integers import IntegerProblem, integer_product
from .interface import Form, resolved
from .numerics import compute
from .panels import Problem, applies, canonical, multiply, plan_of
from .pipeline import Undefined, rule_for
from .sparsity import compress, stored_columns
from .threads import thread_count

Matrix = npt.NDArray[Any]
Order = Literal["k"]


def gemm(
    instruction: Form,
    A: Any,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    *,
    target: str | None = None,
    order: Order = "k",
    split_k: int = 1,
    promote_every: int | None = None,
    threads: int | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    undefined: Undefined = "error",
) -> Matrix:
    """D ``(m, n)`` of A ``(m, k)``, B ``(k, n)`` and C ``(m, n)``, in D's dtype; C None is zero.

    A, B and C take the dtypes that matmul takes; a sparse A obeys the instruction's pattern, or is
    ``(values, indices)`` as compress returns them. ``order="k"``: instructions along ascending k, each
    result being the next one's accumulator. ``scale_a (m, chunks)`` and ``scale_b (chunks, n)`` have the
    instruction's chunks for every instruction along k.

    ``promote_every=n``: after every n instructions, and after the last, the accumulator is added to a
    main accumulator in f32, round to nearest, and starts again from zero; the main one starts from C.
    ``split_k=s``: the instructions along k are cut into s runs of equal length (the last may be shorter,
    or some missing), each accumulated from zero; the results are added in ascending order and C last,
    in f32 round to nearest (f64 and integers: in their own arithmetic).

    ``threads`` None is all cores; the bits do not depend on it. Raises as matmul does.
    """
    form = resolved(instruction, target)
    if order != "k":
        raise OperandError(f"order {order!r}: it is 'k'")
    if min(split_k, 1 if promote_every is None else promote_every) < 1:
        raise OperandError("split_k and promote_every are at least 1")
    if form.c != form.d:
        raise OperandError(f"{form} has C of {form.c} and D of {form.d}: D cannot be the next one's C")
    request = _request(form, A, B, C, scale_a, scale_b, undefined)
    if promote_every and not form.d.is_float:
        raise OperandError(f"promote_every adds in f32, but D of {form} is {form.d}")
    codes = _split(request, split_k, promote_every, thread_count(threads))
    return matrix_of(codes, form.d)


def gemm_sparse(
    instruction: Form,
    values: npt.ArrayLike,
    indices: npt.ArrayLike,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    **options: Any,
) -> Matrix:
    """gemm with A as compress returns it: ``values (m, stored k)`` and ``indices (m, units)``."""
    return gemm(instruction, (values, indices), B, C, **options)


# --- operands ----------------------------------------------------------------------------------------


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
        """Instructions ``first`` up to ``stop`` along k, without C."""
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


def _request(
    form: Instruction, A: Any, B: Any, C: Any, scale_a: Any, scale_b: Any, undefined: Undefined
) -> Request:
    rule = rule_for(form)
    a, indices = _left(form, A, undefined)
    b = _matrix(_codes(B, form.b, "B"), "B")
    _check_depth(form, a.shape[1], b.shape[0])
    count = -(-b.shape[0] // form.shape.k)
    shape = (a.shape[0], b.shape[1])
    c = None if C is None else _matrix(_codes(C, form.c, "C"), "C", shape)
    chunks = -(-b.shape[0] * form.scale_chunks // form.shape.k) if form.scale else 0
    return Request(
        instruction=form,
        rule=rule,
        a=a,
        b=b,
        c=c,
        indices=indices,
        scale_a=_scales(form, scale_a, "scale_a", (shape[0], chunks)),
        scale_b=_scales(form, scale_b, "scale_b", (chunks, shape[1])),
        instructions=count,
    )


def _check_depth(form: Instruction, stored: int, rows: int) -> None:
    """Raise OperandError unless B has as many rows as A columns; sparse A may end later in the same chunk."""
    pattern = form.pattern
    columns = stored // pattern.stored * pattern.chunk if pattern else stored
    slack = pattern.chunk if pattern else 1
    if not columns - slack < rows <= columns:
        raise OperandError(f"A has {columns} columns, but B has {rows} rows")


def _left(form: Instruction, A: Any, undefined: Undefined) -> tuple[Codes, Codes | None]:
    """Codes of A as stored and, where it is sparse, the indices of its units."""
    if form.pattern is None:
        return _matrix(_codes(A, form.a, "A"), "A"), None
    pattern = form.pattern
    if not isinstance(A, tuple):
        codes = _matrix(_codes(A, form.a, "A"), "A")
        codes = _padded(codes, 1, pattern.chunk)
        weight = magnitudes(matrix_of(codes, form.a), form.a)
        return compress(codes, weight, pattern)
    values, indices = A
    codes = _matrix(_codes(values, form.a, "A's stored values"), "A's stored values")
    if codes.shape[1] % pattern.stored:
        columns = codes.shape[1]
        raise OperandError(f"A's stored values have {columns} columns, not a multiple of {pattern.stored}")
    units = np.asarray(indices)
    wanted = (codes.shape[0], codes.shape[1] // pattern.unit)
    if units.dtype.kind not in "iu" or units.shape != wanted:
        given = f"{units.dtype} of shape {units.shape}"
        raise OperandError(f"indices are integers of shape {wanted}, not {given}")
    if units.size and (units.min() < 0 or units.max() >= pattern.choices):
        raise OperandError(f"indices run from 0 to {pattern.choices - 1} in a {pattern} chunk")
    units = np.ascontiguousarray(units, np.uint8)
    if undefined == "error":
        chunks = units.reshape(units.shape[0], -1, pattern.kept)
        check_fields(form, pattern.encode_table[tuple(np.moveaxis(chunks, -1, 0))], unknown=True)
    elif undefined != "fallback":
        raise OperandError(f"undefined={undefined!r}: it is 'error' or 'fallback'")
    return codes, units


def _codes(matrix: Any, element: Format, what: str) -> Codes:
    """codes_of without a copy where the bits need no check."""
    array = np.asarray(matrix)
    if element.is_float and element.bits >= 8 and array.dtype in (element.dtype, element.code_dtype):
        return np.ascontiguousarray(array).view(element.code_dtype)
    if array.dtype == element.dtype and element.bits in (8, 32):
        return np.ascontiguousarray(array).view(element.code_dtype)
    return np.ascontiguousarray(codes_of(array, element, what))


def _matrix(codes: Codes, what: str, shape: tuple[int, int] | None = None) -> Codes:
    if codes.ndim != 2 or (shape is not None and codes.shape != shape):
        wanted = "rows and columns" if shape is None else f"shape {shape}"
        raise OperandError(f"{what} has shape {codes.shape}, but gemm takes one matrix with {wanted}")
    return codes


def _scales(form: Instruction, scales: Any, what: str, shape: tuple[int, int]) -> Codes | None:
    if form.scale is None:
        if scales is not None:
            raise OperandError(f"{form} has no block scales; {what} was given")
        return None
    if scales is None:
        raise OperandError(f"{form} needs scale_a and scale_b")
    return _matrix(_codes(scales, form.scale, what), what, shape)


def _padded(array: Codes, axis: int, multiple: int, fill: int = 0) -> Codes:
    """The array with its axis filled up to a multiple."""
    missing = -array.shape[axis] % multiple
    if not missing:
        return array
    pads = [(0, missing if i == axis else 0) for i in range(array.ndim)]
    return np.pad(array, pads, constant_values=fill)


# --- the order of instructions -----------------------------------------------------------------------


def _split(request: Request, parts: int, promote_every: int | None, threads: int) -> Codes:
    """Result codes; see gemm for what ``parts`` means."""
    if parts == 1:
        return _chained(request, promote_every, threads)
    form = request.instruction
    each = -(-request.instructions // parts)
    total: Matrix | None = None
    for first in range(0, request.instructions, each):
        part = request.part(first, min(first + each, request.instructions))
        value = _number(_chained(part, promote_every, threads), form.d)
        total = value if total is None else _sum(total, value, form)
    if total is None:
        total = _number(np.zeros(request.shape, form.d.code_dtype), form.d)
    if request.c is not None:
        total = _sum(total, _number(request.c, form.c), form)
    return _rounded(total, form.d)


def _number(codes: Codes, element: Format) -> Matrix:
    """Codes as numbers of the arithmetic that adds partial results."""
    if not element.is_float:
        return codes.view(np.int32)
    with np.errstate(invalid="ignore"):
        return codes.view(element.dtype).astype(np.float64 if element.bits == 64 else np.float32)


def _sum(x: Matrix, y: Matrix, form: Instruction) -> Matrix:
    if form.d.is_float:
        with np.errstate(all="ignore"):
            return x + y
    total = x.astype(np.int64) + y
    if form.satfinite:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.int32)


def _rounded(value: Matrix, element: Format) -> Codes:
    """Codes of numbers, rounded to nearest; every NaN is the canonical one."""
    if not element.is_float:
        return value.view(np.uint32)
    with np.errstate(all="ignore"):
        codes = value.astype(element.dtype).view(element.code_dtype)
    codes[np.isnan(value)] = element.canonical_nan if element.bits < 64 else 0x7FF8 << 48
    return codes


def _chained(request: Request, promote_every: int | None, threads: int) -> Codes:
    if applies(request.instruction, request.rule):
        return _panels(request, promote_every, threads)
    if promote_every:
        return _promoted(request, promote_every, threads)
    if isinstance(request.rule, (IntegerSum, BitCount)) and not _repeats(request):
        form, c = request.instruction, request.c
        return integer_product(
            IntegerProblem(instruction=form, a=request.a, b=request.b, c=c, indices=request.indices)
        )
    return _one_by_one(request)


def _repeats(request: Request) -> bool:
    """Whether units of a chunk have equal indices (metadata read literally): no plain matrix is like that."""
    pattern = request.instruction.pattern
    if pattern is None or request.indices is None or pattern.kept == 1:
        return False
    units = request.indices.reshape(-1, pattern.kept)
    return bool((units[:, 0] == units[:, 1]).any())


def _promoted(request: Request, every: int, threads: int) -> Codes:
    """promote_every for rules without a kernel of their own."""
    form = request.instruction
    main = _number(np.zeros(request.shape, form.d.code_dtype) if request.c is None else request.c, form.d)
    main = main.astype(np.float32)
    for first in range(0, request.instructions, every):
        part = request.part(first, min(first + every, request.instructions))
        with np.errstate(all="ignore"):
            main = main + _number(_chained(part, None, threads), form.d).astype(np.float32)
    return _rounded(main, form.d)


# --- rules with panels -------------------------------------------------------------------------------


def _panels(request: Request, promote_every: int | None, threads: int) -> Codes:
    form = request.instruction
    plan = plan_of(form, request.rule)
    count = request.instructions
    stops = range(promote_every, count, promote_every) if promote_every else ()
    bounds = np.array([plan.passes(i) for i in (0, *stops, count)])
    out = np.zeros(request.shape, np.float32)
    if request.c is not None:
        out[...] = _number(request.c, form.c)
    problem = Problem(
        plan=plan,
        a=np.ascontiguousarray(request.a),
        b=np.ascontiguousarray(request.b),
        out=out,
        bounds=bounds,
        promote=promote_every is not None,
        indices=_contiguous(request.indices),
        scale_a=_contiguous(request.scale_a),
        scale_b=_contiguous(request.scale_b),
    )
    multiply(problem, threads)
    if form.d.bits == 32:
        codes: Codes = out.view(np.uint32)
        return canonical(codes) if request.c is not None or promote_every else codes
    return _rounded(out, form.d)


def _contiguous(codes: Codes | None) -> Codes | None:
    return None if codes is None else np.ascontiguousarray(codes)


# --- other rules -------------------------------------------------------------------------------------


def _one_by_one(request: Request) -> Codes:
    """The chain of instructions, each over all of D."""
    form = request.instruction
    c = np.zeros(request.shape, form.c.code_dtype) if request.c is None else request.c
    for i in range(request.instructions):
        c = compute(_operands(request.part(i, i + 1), c), request.rule)[0]
    return c


def _operands(part: Request, c: Codes) -> Operands:
    """One instruction along k as a batch of one, zeros filling it up."""
    form = part.instruction
    columns = None
    if form.pattern is not None:
        assert part.indices is not None
        indices = part.indices
        missing = form.stored_k // form.pattern.unit - indices.shape[1]
        filler = np.tile(np.arange(form.pattern.kept, dtype=np.uint8), missing // form.pattern.kept)
        indices = np.concatenate([indices, np.tile(filler, (len(indices), 1))], axis=1)
        columns = stored_columns(indices, form.pattern)[None]
    one = form.scale.bias if form.scale else 0
    chunks = max(form.scale_chunks, 1)
    return Operands(
        instruction=form,
        a=_padded(part.a, 1, form.stored_k)[None],
        b=_padded(part.b, 0, form.shape.k)[None],
        c=c[None],
        columns=columns,
        scale_a=None if part.scale_a is None else _padded(part.scale_a, 1, chunks, one)[None],
        scale_b=None if part.scale_b is None else _padded(part.scale_b, 0, chunks, one)[None],
    )
