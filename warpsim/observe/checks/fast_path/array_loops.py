"""The loop over what lanes store to arrays of a launch, compiled, as those of accesses are (loops.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....sums.arithmetic.kernels._jit import Array, kernel
from .access_tables import CLOSER, QUIET, SEVERAL, Words


class Owners(NamedTuple):
    """The writes to global memory, as ``ArrayUse`` has them: by unit of ``1 << shift`` bytes the number of
    the CTA, 0 for none, and the statement; by byte whether there was any; and the memory.
    """

    shift: int
    owner: Array
    statement: Array
    written: Array
    memory: Array


@kernel
def _may_own(owners: Owners, words: Words, numbers: Array, stored: Array) -> bool:
    """Return whether no bytes of another CTA become others."""
    turn, units = 0, words.size >> owners.shift
    for word in range(len(words.offsets)):
        number, offset = numbers[words.lanes[np.uint64(turn)]], words.offsets[word]
        for unit in range(units):
            before = owners.owner[np.uint64((offset >> owners.shift) + unit)]
            if before != 0 and before != number:
                for byte in range(unit << owners.shift, unit + 1 << owners.shift):
                    if owners.memory[np.uint64(offset + byte)] != stored[word, byte]:
                        return False
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return True


@kernel
def own(owners: Owners, words: Words, numbers: Array, stored: Array) -> int:
    """Note writes by lanes, ``numbers`` has the CTA of each; ``stored`` (words, size), or nothing where that
    is not known. Return CLOSER, QUIET or SEVERAL, as ``store`` does, for CTAs.
    """
    if len(stored) and not _may_own(owners, words, numbers, stored):
        return CLOSER
    turn, units, several = 0, words.size >> owners.shift, False
    for word in range(len(words.offsets)):
        number, offset = numbers[words.lanes[np.uint64(turn)]], words.offsets[word]
        for unit in range(offset >> owners.shift, (offset >> owners.shift) + units):
            before = owners.owner[np.uint64(unit)]
            several |= before != 0 and before != number and owners.statement[np.uint64(unit)] == words.place
            owners.owner[np.uint64(unit)] = number
            owners.statement[np.uint64(unit)] = words.place
        for byte in range(offset, offset + words.size):
            owners.written[np.uint64(byte)] = 1
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return SEVERAL if several else QUIET
