"""Which work is done without compiled kernels: the first of an instruction, as long as it is little.

To load Numba and a kernel takes half a second, to compile one seconds; NumPy alone needs half a millisecond
for an instruction (numerics.compute_uncompiled). So the first products of a mnemonic are NumPy's; once a
process has asked for more of it than a twentieth of a second or two compute, or asks for more at once,
kernels do the rest. The bits are the same either way. Knows no arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..isa.instruction import Instruction
from ..isa.registers import Words

LIMIT = 1 << 21  # products of a mnemonic that NumPy computes
_CALL = 1 << 15  # products that take as long as all else that there is to do in a call

done: dict[str, int] = {}  # products by mnemonic, so far
beyond: set[str] = set()  # mnemonics that kernels compute from now on


def is_first(instruction: Instruction, registers: Mapping[str, Words]) -> bool:
    """Whether what these registers need is within the limit."""
    if instruction.mnemonic in beyond:
        return False
    counts, lanes = instruction.registers, instruction.family.lanes
    sizes = [array.size // (lanes * counts[name]) for name, array in registers.items() if name in counts]
    return _within(instruction, products_of(instruction, max(sizes, default=1)))


def takes(instruction: Instruction, products: int) -> bool:
    """Whether so many products are within the limit; if they are, they count from now on."""
    if instruction.mnemonic in beyond or not _within(instruction, products):
        return False
    done[instruction.mnemonic] = done.get(instruction.mnemonic, 0) + products + _CALL
    return True


def products_of(instruction: Instruction, executions: int) -> int:
    """Products that executions of an instruction sum."""
    shape = instruction.shape
    return executions * instruction.products * shape.m * shape.n * instruction.stored_k


def _within(instruction: Instruction, products: int) -> bool:
    if done.get(instruction.mnemonic, 0) + products + _CALL <= LIMIT:
        return True
    beyond.add(instruction.mnemonic)
    return False
