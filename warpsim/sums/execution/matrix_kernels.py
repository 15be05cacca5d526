"""Compiled kernels from ``Operands`` to codes of D, in threads over the batch.

Knows rules and sizes; no lanes, no registers. The results are those of numerics.compute, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...isa.products import Codes, Operands
from ...isa.rules import Rule
from ..arithmetic import numerics
from ..arithmetic.cores import thread_count
from ..arithmetic.kernels._jit import interpreted
from ..arithmetic.kernels.batches import COLUMNS, matrix_kernel
from ..arithmetic.kernels.variants import Variant
from ..arithmetic.planes import read_only
from ..arithmetic.plans import Plan, applies, coding_of
from .compilation_budget import PROCESS, CompilationBudget
from .recipes import narrow_plan

Table = npt.NDArray[Any]

LARGE = 1 << 21  # multiplications of a call from which on a kernel of its own is worth its compilation
_SHARED = 1 << 26  # multiplications of a call from which on threads are worth their start: 5 ms and more


@in_default_environment
def computed(
    operands: Operands, rule: Rule, threads: int | None = 1, budget: CompilationBudget = PROCESS
) -> Codes:
    """Return codes of D by the fastest kernel, in threads over the batch if there is enough to do."""
    kernel, count = _kernel_of(operands, rule, budget), operands.a.shape[0]
    workers = thread_count(threads) if _multiplications(operands) >= _SHARED else 1
    if workers == 1:
        return kernel(operands, rule)
    share = -(-count // (4 * workers))
    parts = [numerics.cases(operands, slice(first, first + share)) for first in range(0, count, share)]
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(lambda part: kernel(part, rule), parts)))


def _kernel_of(
    operands: Operands, rule: Rule, budget: CompilationBudget
) -> Callable[[Operands, Rule], Codes]:
    """Return the function whose kernel is fastest for these operands."""
    if interpreted() and not numerics.needs_compiler(rule):
        return numerics.compute_uncompiled
    served = has_matrix_kernel(operands, rule) and (_is_large(operands) or _are_many(operands, rule, budget))
    return compute_matrices if served else numerics.compute


def _are_many(operands: Operands, rule: Rule, budget: CompilationBudget) -> bool:
    """Count a small call; return whether such calls are worth a kernel by now."""
    variant = narrow_plan(operands.product, rule, operands.b.shape[2]).variant
    return budget.earns(variant, operands.a.size * operands.b.shape[2])


def _is_large(operands: Operands) -> bool:
    return _multiplications(operands) >= LARGE


def _multiplications(operands: Operands) -> int:
    return int(operands.a.size * operands.b.shape[2])


def has_matrix_kernel(operands: Operands, rule: Rule) -> bool:
    """Return whether ``compute_matrices`` handles these operands, under this interpreter."""
    product = operands.product
    whole = operands.b.shape[2] % COLUMNS == 0 and product.products == 1
    return whole and not interpreted() and applies(product, rule)


@in_default_environment
def compute_matrices(operands: Operands, rule: Rule) -> Codes:
    """Return codes of D for operands that ``has_matrix_kernel`` accepts, by the kernel of many matrices."""
    product = operands.product
    count, m, _ = operands.a.shape
    n = operands.b.shape[2]
    plan = narrow_plan(product, rule, n)
    results = np.empty(operands.c.shape, product.d.code_dtype)
    if not results.size:
        return results
    scale = product.scale
    scales = [_flat(codes, np.uint8) for codes in (operands.scale_a, operands.scale_b)]
    depth = np.arange(plan.depth) if plan.variant.sparse else plan.order
    matrices = (_flat(x) for x in (operands.a, operands.b, operands.c))
    _matrix_kernel(plan.variant)(
        (*matrices, _flat(operands.columns, np.int64), results.reshape(-1)),
        (*scales, np.array([scale.bias, scale.canonical_nan] if scale else [0, 0])),
        (count, m, plan.passes(1), n),
        (plan.order, depth),
        tuple(_coding(plan, name) for name in "abc"),
        plan.numbers,
    )
    return results


@cache
def _matrix_kernel(variant: Variant) -> Callable[..., None]:
    return matrix_kernel(variant)


def _coding(plan: Plan, operand: str) -> tuple[int, ...]:
    emulated = plan.variant.emulated and operand != "c"
    return coding_of(plan.product.format(operand), as_half=emulated)


def _flat(array: Table | None, dtype: npt.DTypeLike | None = None) -> Table:
    """Return the array as kernels take it: contiguous, read-only, one axis."""
    return read_only(np.zeros(1, dtype) if array is None else np.ascontiguousarray(array, dtype).reshape(-1))
