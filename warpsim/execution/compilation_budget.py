"""The first, small calls of a product use a NumPy implementation with identical results.

Loading Numba and the kernels of a product takes half a second, compiling them several seconds; NumPy alone
needs half a millisecond for an instruction. A budget records what NumPy has computed of each product: up to
about as long as it takes to load kernels. Later calls and larger products use compiled kernels. Knows no
arithmetic.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..isa.products import Product

CALL = 1 << 15  # multiplications that take as long as all other work of a call


@dataclass(kw_only=True, eq=False)
class CompilationBudget:
    """The multiplications of each product that NumPy has computed, out of ``limit``.

    ``compiled`` holds the products that kernels compute from now on. ``small`` are the multiplications of
    calls too small for a kernel of their own, by that kernel: ``many`` are worth its compilation, as a launch
    computes instruction by instruction.
    """

    limit: int = 1 << 23
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


PROCESS = CompilationBudget()  # of all calls that name no other
