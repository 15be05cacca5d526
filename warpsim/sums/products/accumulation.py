"""The order of a product's instructions along k: a single chain, or several whose results are added.

One chain, runs that are added afterwards (``split_k``), or chains that are promoted to f32 on the way
(``promote_every``). Does not know how operands are given, nor which process computes which part of D.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa.products import Codes
from .arguments import Request
from .instruction_chains import chained_uncompiled
from .partial_results import Matrix, added, number, rounded


@dataclass(frozen=True, kw_only=True)
class Chain:
    """How the instructions along k hang together; see warpsim.gemm."""

    split_k: int = 1
    promote_every: int | None = None

    def __post_init__(self) -> None:
        if min(self.split_k, 1 if self.promote_every is None else self.promote_every) < 1:
            raise OperandError("split_k and promote_every are at least 1")


@in_default_environment
def accumulated(request: Request, chain: Chain, threads: int, *, compiled: bool = True) -> Codes:
    """Return codes of D; each element depends on its own row and column alone, and not on the number of
    threads, nor on whether kernels compute it or NumPy alone.
    """
    chained = _chain_kernel() if compiled else chained_uncompiled
    promote_every = chain.promote_every
    if chain.split_k == 1:
        return chained(request, promote_every, threads)
    form = request.instruction
    each = -(-request.instructions // chain.split_k)
    total: Matrix | None = None
    for first in range(0, request.instructions, each):
        part = request.part(first, min(first + each, request.instructions))
        value = number(chained(part, promote_every, threads), form.d)
        total = value if total is None else added(total, value, form)
    if total is None:
        total = number(np.zeros(request.shape, form.d.code_dtype), form.d)
    if request.c is not None:
        total = added(total, number(request.c, form.c), form)
    return rounded(total, form.d)


def _chain_kernel() -> Callable[[Request, int | None, int], Codes]:
    """Return what computes a chain by kernels: late, for Numba alone takes a fifth of a second to import."""
    from .compiled_chains import chained

    return chained
