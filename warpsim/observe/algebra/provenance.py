"""Which statement made a key, of which keys: the graph of values of a run, kept as arrays by execution.

    Step      a statement executed by some lanes: the keys that it made, and those of its operands
    Product   a matrix instruction: A, B, C and D, of each execution
    Stores    keys that were stored in global memory, and where

Copies make no keys: ``Copy`` has those that were moved. Knows keys and statements; does not know what either
means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...machine.state.side_tables import SideTable
from .keys.finite_fields import Keys
from .keys.key_index import Index, KeyIndex

Lanes = npt.NDArray[np.intp]
_WAVES = SideTable(lambda wave: object())
identity_of = _WAVES.of  # of a wave, which the graph does not keep


class Step(NamedTuple):
    """One execution of a statement: ``made (n,)`` of ``operands``, each ``(n,)``, in ``lanes (n,)``.

    ``name`` is the operation: "+", "-", "*", "/", "fma", "ex2", the name of a function or of an opcode, or
    of a function that was recognised by value.
    """

    pc: int
    name: str
    made: Keys
    operands: tuple[Keys, ...]
    lanes: Lanes
    wave: object


class Product(NamedTuple):
    """Executions of a matrix instruction: made = a @ b + c, ``(executions, m, k)``, ``(…, k, n)``, ``(…, m,
    n)``. A that is sparse has its zeros. Block scales are in a and b.
    """

    pc: int
    a: Keys
    b: Keys
    c: Keys
    made: Keys


class Stores(NamedTuple):
    """Keys that lanes stored at offsets in the device's memory, ``(words, size)``."""

    pc: int
    offsets: npt.NDArray[np.int64]
    keys: Keys
    lanes: Lanes
    wave: object


class Copy(NamedTuple):
    """Keys that a statement moved: ``kind`` is "device" for reads of the device's memory, "write" and
    "read" for shared memory."""

    pc: int
    kind: str
    keys: Keys


class Origin(NamedTuple):
    """Where a key was first made: a step and the number in it, or a product and (execution, row, column)."""

    step: Step | Product
    at: Index


@dataclass
class Provenance:
    """All steps and products in their ``order``, stores and copies of a run."""

    order: list[Step | Product] = field(default_factory=list)
    stores: list[Stores] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    _index: tuple[int, KeyIndex] | None = field(default=None, repr=False)  # of so many

    @property
    def steps(self) -> list[Step]:
        """All steps."""
        return [each for each in self.order if isinstance(each, Step)]

    @property
    def products(self) -> list[Product]:
        """All products."""
        return [each for each in self.order if isinstance(each, Product)]

    def origin(self, key: int) -> Origin | None:
        """Return where a key was first made; None for leaves and constants."""
        if self._index is None or self._index[0] != len(self.order):
            self._index = len(self.order), KeyIndex([each.made for each in self.order])
        found = self._index[1].find(key)
        return None if found is None else Origin(self.order[found[0]], found[1])
