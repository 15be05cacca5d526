"""Which statement made a key, of which keys: the graph of values of a run, kept as arrays by execution.

    Step      a statement executed by some lanes: the keys that it made, and those of its operands
    Product   a matrix instruction: A, B, C and D, of each execution
    Stores    keys that were stored in global memory, and where

Copies make no keys, so they are not here: cells know their last writer (key_cells.py). Knows keys and
statements; does not know what either means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...machine.state.side_tables import SideTable
from .keys.finite_fields import Keys

Index = npt.NDArray[np.intp]


class Place(NamedTuple):
    """Threads of a launch: the CTA of each ``(lanes, 3)`` and the thread in it, by the lane of a wave."""

    ctas: npt.NDArray[np.int64]
    cta: npt.NDArray[np.int64]
    thread: npt.NDArray[np.int64]

    def describe(self, lane: int) -> tuple[tuple[int, ...], int]:
        """Return coordinates of the CTA, and the number of the thread, of a lane."""
        return tuple(self.ctas[self.cta[lane]].tolist()), int(self.thread[lane])


_PLACES = SideTable(lambda wave: Place(wave.ctas, wave.cta, wave.thread))
place_of_wave = _PLACES.of


class Step(NamedTuple):
    """One execution of a statement: ``made (n,)`` of ``operands``, each ``(n,)``, in ``lanes (n,)``.

    ``name`` is the operation: "+", "-", "*", "/", "fma", "ex2", the name of a function or of an opcode, or
    of a function that was recognised by value. ``by_value`` says that it was.
    """

    pc: int
    name: str
    made: Keys
    operands: tuple[Keys, ...]
    lanes: Index
    place: Place
    by_value: bool = False


class Product(NamedTuple):
    """Executions of a matrix instruction: d = a @ b + c, ``(executions, m, k)``, ``(…, k, n)``, ``(…, m,
    n)``.

    A that is sparse has its zeros. Block scales are in a and b; ``warps`` are the first of each execution.
    """

    pc: int
    a: Keys
    b: Keys
    c: Keys
    d: Keys
    warps: Index
    place: Place


class Stores(NamedTuple):
    """Keys that lanes stored at offsets in the device's memory, ``(words, size)``, and their tags."""

    pc: int
    offsets: npt.NDArray[np.int64]
    keys: Keys
    tags: npt.NDArray[np.uint16]
    lanes: Index
    place: Place


class Copy(NamedTuple):
    """Keys that a statement moved: ``kind`` is "device" for reads of the device's memory, "write" and
    "read" for shared memory."""

    pc: int
    kind: str
    keys: Keys


class Origin(NamedTuple):
    """Where a key was first made: a step and the number in it, or a product and (execution, row, column)."""

    step: Step | Product
    at: tuple[int, ...]


@dataclass
class Provenance:
    """All steps, products and stores of a run, in their order."""

    steps: list[Step] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    stores: list[Stores] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    order: list[Step | Product] = field(default_factory=list)
    _sorted: tuple[Any, ...] | None = field(default=None, repr=False)

    def step(self, step: Step) -> None:
        """Add a step."""
        self.steps.append(step)
        self.order.append(step)

    def product(self, product: Product) -> None:
        """Add a product."""
        self.products.append(product)
        self.order.append(product)

    def origin(self, key: int) -> Origin | None:
        """Return where a key was first made; None for leaves and constants."""
        keys, groups, starts = self._index()
        place = int(np.searchsorted(keys, np.uint64(key)))
        if place == len(keys) or int(keys[place]) != key:
            return None
        number = int(groups[place])
        group = int(np.searchsorted(starts, number, side="right")) - 1
        made = self.order[group]
        shape = made.made.shape if isinstance(made, Step) else made.d.shape
        return Origin(made, tuple(int(i) for i in np.unravel_index(number - int(starts[group]), shape)))

    def _index(self) -> tuple[Any, ...]:
        """Return all keys sorted, each once, the number of each, and the first number of each group."""
        if self._sorted is None or self._sorted[3] != len(self.order):
            made = [each.made if isinstance(each, Step) else each.d.reshape(-1) for each in self.order]
            every = np.concatenate(made) if made else np.zeros(0, np.uint64)
            keys, first = np.unique(every, return_index=True)
            starts = (
                np.concatenate([[0], np.cumsum([len(each) for each in made])[:-1]]) if made else np.zeros(1)
            )
            self._sorted = keys, first, starts.astype(np.int64), len(self.order)
        return self._sorted[:3]
