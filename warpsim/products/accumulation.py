"""The order of a product's instructions along k, and which way of computing them is fast for which rule.

One chain, runs that are added afterwards (``split_k``), or chains that are promoted to f32 on the way
(``promote_every``). Does not know how operands are given, nor which process computes which part of D.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arithmetic.chains import applies as follow_on
from ..arithmetic.integers import IntegerProblem, integer_product
from ..arithmetic.numerics import compute
from ..arithmetic.panels import Problem, canonical, multiply
from ..arithmetic.plans import applies, plan_of
from ..environment import in_default_environment
from ..errors import OperandError, present
from ..isa.formats import Format
from ..isa.instruction import Instruction
from ..isa.products import Codes, Operands
from ..isa.rules import BitCount, IntegerSum
from ..isa.sparsity import stored_columns
from .arguments import Request, padded

Matrix = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Chain:
    """How the instructions along k hang together; see warpsim.gemm."""

    split_k: int = 1
    promote_every: int | None = None

    def __post_init__(self) -> None:
        if min(self.split_k, 1 if self.promote_every is None else self.promote_every) < 1:
            raise OperandError("split_k and promote_every are at least 1")


@in_default_environment
def accumulated(request: Request, chain: Chain, threads: int) -> Codes:
    """Return codes of D; each element depends on its own row and column alone, and not on the number of
    threads.
    """
    promote_every = chain.promote_every
    if chain.split_k == 1:
        return _chained(request, promote_every, threads)
    form = request.instruction
    each = -(-request.instructions // chain.split_k)
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
    """Return codes as numbers of the arithmetic that adds partial results."""
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
    """Return codes of numbers, rounded to nearest; every NaN is canonical."""
    if not element.is_float:
        return value.view(np.uint32)
    with np.errstate(all="ignore"):
        codes = value.astype(element.dtype).view(element.code_dtype)
    codes[np.isnan(value)] = element.canonical_nan
    return codes


def _chained(request: Request, promote_every: int | None, threads: int) -> Codes:
    if applies(request.instruction.product, request.rule):
        return _panels(request, promote_every, threads)
    if promote_every:
        return _promoted(request, promote_every, threads)
    if isinstance(request.rule, (IntegerSum, BitCount)) and not _repeats(request):
        form, c = request.instruction, request.c
        return integer_product(
            IntegerProblem(product=form.product, a=request.a, b=request.b, c=c, indices=request.indices),
            threads,
        )
    return _one_by_one(request, threads)


def _repeats(request: Request) -> bool:
    """Return whether units of a chunk have equal indices (metadata read literally): no plain matrix is
    like that.
    """
    pattern = request.instruction.pattern
    if pattern is None or request.indices is None or pattern.kept == 1:
        return False
    units = request.indices.reshape(-1, pattern.kept)
    return bool((units[:, 0] == units[:, 1]).any())


def _promoted(request: Request, every: int, threads: int) -> Codes:
    """promote_every for rules without a kernel of their own."""
    form = request.instruction
    main = _number(np.zeros(request.shape, form.d.code_dtype) if request.c is None else request.c, form.d)
    for first in range(0, request.instructions, every):
        part = request.part(first, min(first + every, request.instructions))
        with np.errstate(all="ignore"):
            main = main + _number(_chained(part, None, threads), form.d)
    return _rounded(main, form.d)


# --- rules with panels -------------------------------------------------------------------------------


def _panels(request: Request, promote_every: int | None, threads: int) -> Codes:
    form = request.instruction
    plan = plan_of(form.product, request.rule)
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


_SIDE = 256  # rows and columns of D that are worked on together, which bounds what their planes take


def _one_by_one(request: Request, threads: int) -> Codes:
    """Return the chain of instructions, each over a tile of D."""
    rows, columns = request.shape
    d = np.zeros(request.shape, request.instruction.d.code_dtype)
    tiles = [
        (slice(i, i + _SIDE), slice(j, j + _SIDE))
        for i in range(0, rows, _SIDE)
        for j in range(0, columns, _SIDE)
    ]

    def run(tile: tuple[slice, slice]) -> None:
        d[tile] = _chain_of(request.tile(*tile))

    with ThreadPoolExecutor(threads) as pool:
        for _ in map(run, tiles) if threads == 1 else pool.map(run, tiles):
            pass
    return d


def _chain_of(request: Request) -> Codes:
    form = request.instruction
    c = np.zeros(request.shape, form.c.code_dtype) if request.c is None else request.c
    each = request.instructions if follow_on(form.product, request.rule) else 1
    for i in range(0, request.instructions, max(each, 1)):
        c = compute(_operands(request.part(i, i + each), c), request.rule)[0]
    return c


def _operands(part: Request, c: Codes) -> Operands:
    """Return instructions along k as a batch of 1, filled with zeros."""
    form = part.instruction
    stored = part.instructions * form.stored_k
    columns = None
    if form.pattern is not None:
        indices = present(part.indices, "indices")
        missing = stored // form.pattern.unit - indices.shape[1]
        filler = np.tile(np.arange(form.pattern.kept, dtype=np.uint8), missing // form.pattern.kept)
        indices = np.concatenate([indices, np.tile(filler, (len(indices), 1))], axis=1)
        columns = stored_columns(indices, form.pattern)[None]
    unit = form.scale.bias if form.scale else 0
    chunks = max(form.scale_chunks, 1)
    return Operands(
        product=form.product,
        a=padded(part.a, 1, form.stored_k)[None],
        b=padded(part.b, 0, form.shape.k)[None],
        c=c[None],
        columns=columns,
        scale_a=None if part.scale_a is None else padded(part.scale_a, 1, chunks, unit)[None],
        scale_b=None if part.scale_b is None else padded(part.scale_b, 0, chunks, unit)[None],
    )
