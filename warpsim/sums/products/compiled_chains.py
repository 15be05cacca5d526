"""Chains of instructions along k by compiled kernels, and which way is fast for which rule.

Does not know how operands are given, nor how chains are added.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...isa.products import Codes
from ...isa.rules import BitCount, IntegerSum
from ..arithmetic.chains import applies as follow_on
from ..arithmetic.integers import IntegerProblem, integer_product
from ..arithmetic.numerics import compute
from ..arithmetic.panels import Problem, canonical, halves, multiply
from ..arithmetic.plans import applies, plan_of
from .arguments import Request
from .instruction_chains import chain_of, promoted
from .partial_results import number, rounded


def chained(request: Request, promote_every: int | None, threads: int) -> Codes:
    """Return the result of a chain, which ``promote_every`` cuts into chains that are added in f32."""
    if applies(request.instruction.product, request.rule):
        return _panels(request, promote_every, threads)
    if promote_every:
        return promoted(request, promote_every, lambda part: chained(part, None, threads))
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


# --- rules with panels -------------------------------------------------------------------------------


def _panels(request: Request, promote_every: int | None, threads: int) -> Codes:
    form = request.instruction
    plan = plan_of(form.product, request.rule)
    count = request.instructions
    stops = range(promote_every, count, promote_every) if promote_every else ()
    bounds = np.array([plan.passes(i) for i in (0, *stops, count)])
    out = np.zeros(request.shape, np.float32)
    if request.c is not None:
        out[...] = number(request.c, form.c)
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
    return rounded(out, form.d) if promote_every else halves(out)


def _contiguous(codes: Codes | None) -> Codes | None:
    return None if codes is None else np.ascontiguousarray(codes)


# --- other rules -------------------------------------------------------------------------------------


_SIDE = 256  # rows and columns of D that are worked on together, which bounds what their planes take


def _one_by_one(request: Request, threads: int) -> Codes:
    """Return the chain of instructions, each over a tile of D."""
    rows, columns = request.shape
    at_once = follow_on(request.instruction.product, request.rule)
    each = request.instructions if at_once else 1
    d = np.zeros(request.shape, request.instruction.d.code_dtype)
    tiles = [
        (slice(i, i + _SIDE), slice(j, j + _SIDE))
        for i in range(0, rows, _SIDE)
        for j in range(0, columns, _SIDE)
    ]

    def run(tile: tuple[slice, slice]) -> None:
        d[tile] = chain_of(request.tile(*tile), each, compute)

    with ThreadPoolExecutor(threads) as pool:
        for _ in map(run, tiles) if threads == 1 else pool.map(run, tiles):
            pass
    return d
