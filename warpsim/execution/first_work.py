"""Which work is done without compiled kernels: the first of an instruction, as long as it is little.

To load Numba and a kernel takes half a second, to compile one seconds; NumPy alone needs half a millisecond
for an instruction (numerics.compute_uncompiled). So the first products of a mnemonic are NumPy's; once a
process has asked for more of it than a twentieth of a second or two compute, or asks for more at once,
kernels do the rest. The bits are the same either way. Knows no arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..isa.instruction import Instruction
from ..isa.products import Product
from ..isa.registers import Words

LIMIT = 1 << 21  # products of a mnemonic that NumPy computes
_CALL = 1 << 15  # products that take as long as all else that there is to do in a call

done: dict[Product, int] = {}  # multiplications by product, so far
beyond: set[Product] = set()  # products that kernels compute from now on


def is_first(instruction: Instruction, registers: Mapping[str, Words]) -> bool:
    """Whether what these registers need is within the limit."""
    if instruction.product in beyond:
        return False
    counts, lanes = instruction.registers, instruction.lanes
    sizes = [array.size // (lanes * counts[name]) for name, array in registers.items() if name in counts]
    return _within(instruction.product, instruction.product.multiplications * max(sizes, default=1))


def takes(product: Product, count: int) -> bool:
    """Whether so many multiplications are within the limit; if they are, they count from now on."""
    if product in beyond or not _within(product, count):
        return False
    done[product] = done.get(product, 0) + count + _CALL
    return True


def _within(product: Product, count: int) -> bool:
    if done.get(product, 0) + count + _CALL <= LIMIT:
        return True
    beyond.add(product)
    return False
