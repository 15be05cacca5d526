"""The first, small calls of a product use a NumPy implementation with identical results.

Loading Numba and the kernels of a product takes a third of a second, compiling them one second and more;
NumPy alone needs 0.2 ms for an instruction. A budget records what NumPy has computed of each product: up to
about as long as it takes to load kernels, or half as long as to compile them where none were compiled before.
Later calls and larger products use compiled kernels. Knows no arithmetic.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path

from ...isa.products import Product

CALL = 1 << 17  # multiplications that take as long as all other work of a call
LOADED, COMPILED = 1 << 25, 1 << 28  # multiplications while kernels would be loaded, and half compiled
_CACHE = "NUMBA_CACHE_DIR"
_BESIDE = Path(__file__).parents[2] / "sums" / "arithmetic" / "kernels" / "__pycache__"


@dataclass(kw_only=True, eq=False)
class CompilationBudget:
    """The multiplications of each product that NumPy has computed, out of ``limit``.

    ``compiled`` holds the products that kernels compute from now on. ``small`` are the multiplications of
    calls too small for a kernel of their own, by that kernel: ``many`` are worth its compilation, as a launch
    computes instruction by instruction.
    """

    limit: int = LOADED
    spent: dict[Product, int] = field(default_factory=dict)
    compiled: set[Product] = field(default_factory=set)
    many: int = 1 << 23
    small: dict[Hashable, int] = field(default_factory=dict)

    def spend(self, product: Product, multiplications: int) -> bool:
        """Return whether the budget covers the multiplications, which then count as spent."""
        if product in self.compiled:
            return False
        total = self.spent.get(product, 0) + multiplications + CALL
        if total > self.limit:
            self.compiled.add(product)
            return False
        self.spent[product] = total
        return True

    def earns(self, kernel: Hashable, multiplications: int) -> bool:
        """Count the multiplications of a small call; return whether those of its kernel are many by now."""
        total = self.small.get(kernel, 0)
        if total < self.many:
            total = self.small[kernel] = total + multiplications
        return total >= self.many


def limit_here() -> int:
    """Return the multiplications that NumPy computes of a product, by whether Numba's cache holds kernels.

    Where they lie is Numba's choice: in NUMBA_CACHE_DIR, or beside the package; elsewhere, as on a disk that
    cannot be written, they count as not compiled. Bits are the same either way.
    """
    folder = os.environ.get(_CACHE)
    found = Path(folder).glob("*/*.nbi") if folder else _BESIDE.glob("*.nbi")
    return LOADED if any(True for _ in found) else COMPILED


PROCESS = CompilationBudget(limit=limit_here())  # of all calls that name no other
