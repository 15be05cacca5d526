"""Engines: what turns ``Operands`` into codes of D, and which engine serves a call.

Knows rules and sizes; no lanes, no registers. Every engine gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ...base.errors import OperandError
from ...isa.products import Codes, Operands, Product
from ...isa.rules import Rule
from .compilation_budget import PROCESS, CompilationBudget

Engine = Literal["kernel", "reference"]
Selected = Literal["kernel", "numpy", "reference"]


def engine_of(
    product: Product,
    multiplications: int,
    rule: Rule,
    engine: Engine = "kernel",
    budget: CompilationBudget = PROCESS,
) -> Selected:
    """Return the engine of a call that sums so many multiplications; they count as spent in the budget.

    A fused multiply-add has no implementation in NumPy. Raises OperandError for an unknown engine.
    """
    if engine not in ("kernel", "reference"):
        raise OperandError(f"engine {engine!r}: expected 'kernel' or 'reference'")
    from ..arithmetic.numerics import needs_compiler  # late: start-up imports no arithmetic

    if engine == "reference" or needs_compiler(rule):
        return engine
    return "numpy" if budget.spend(product, multiplications) else "kernel"


def computed(
    operands: Operands,
    rule: Rule,
    engine: Selected,
    threads: int | None,
    budget: CompilationBudget = PROCESS,
) -> Codes:
    """Return codes of D ``(batch, m, n)`` by an engine; the budget counts what kernels are asked for."""
    return _ENGINES[engine](operands, rule, threads, budget)


def _by_numpy(operands: Operands, rule: Rule, threads: int | None, budget: CompilationBudget) -> Codes:
    from ..arithmetic.numerics import compute_uncompiled

    return compute_uncompiled(operands, rule)


def _by_reference(operands: Operands, rule: Rule, threads: int | None, budget: CompilationBudget) -> Codes:
    from ..arithmetic.reference import compute

    return compute(operands, rule)


def _by_kernels(operands: Operands, rule: Rule, threads: int | None, budget: CompilationBudget) -> Codes:
    from .matrix_kernels import computed  # late: Numba alone takes a fifth of a second to import

    return computed(operands, rule, threads, budget)


_ENGINES: dict[Selected, Callable[[Operands, Rule, int | None, CompilationBudget], Codes]] = {
    "kernel": _by_kernels,
    "numpy": _by_numpy,
    "reference": _by_reference,
}
