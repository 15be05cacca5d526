"""Tensor memory: 128 lanes of 512 columns of 32 bits a CTA, which columns are allocated, which cells are
written.

Contents after an allocation are undefined: a mask says which cells a kernel has written. An allocator may put
an allocation at any multiple of its size, so that no kernel passes only because its columns begin at 0. CTAs
that a multiprocessor has at a time share its columns; each has cells of its own, as it reaches no others.
Knows cells and columns; does not know statements. PTX ISA 9.3, section 9.7.17.1 "Tensor memory".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...isa.layouts.tensor_memory import COLUMNS, LANES
from .side_tables import SideTable

Cells = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]
Choose = Callable[[int, Sequence[int]], int]  # number of the allocation, free columns -> a column
SIZES = (32, 64, 128, 256, 512)  # columns of an allocation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Cells that a statement touches: lanes and columns of a CTA of the wave, and which operand they are.

    ``mask`` (columns, lanes) says which of them; None for all.
    """

    name: str
    cta: int
    lanes: slice
    columns: slice
    mask: npt.NDArray[np.bool_] | None = None


class Misuse(Exception):
    """What no kernel may do with tensor memory, and why."""


@dataclass(eq=False)
class Turn:
    """What both CTAs of a pair do together, again and again: how often a CTA has, and whether it is there."""

    done: int = 0
    here: bool = False

    def meets(self, peer: Turn) -> bool:
        """Come, and return whether the other CTA has, too; a CTA alone meets itself."""
        self.here = True
        return peer.here or peer.done > self.done

    def leave(self) -> None:
        """Go on."""
        self.done, self.here = self.done + 1, False


@dataclass(eq=False)
class Columns:
    """The columns of one CTA: ``held`` are allocations by first column; ``latest`` is the size of the last.

    ``lines`` are those of their statements by first column, and ``freed`` of what freed it last.
    """

    held: dict[int, int] = field(default_factory=dict)
    neighbours: Sequence[Columns] = ()  # of the other CTAs of the multiprocessor
    promised: tuple[int, int] | None = None  # first column and size of what the other CTA of a pair has taken
    lines: dict[int, int] = field(default_factory=dict)
    freed: dict[int, int] = field(default_factory=dict)
    count: int = 0
    latest: int = COLUMNS
    latest_line: int = 0
    relinquished: int = 0  # the line at which a thread of the CTA did so, 0 for none
    allocating: Turn = field(default_factory=Turn)
    freeing: Turn = field(default_factory=Turn)

    def room(self, size: int) -> list[int]:
        """Return the columns at which an allocation of a size fits."""
        taken = np.zeros(COLUMNS, np.bool_)
        for columns in (self, *self.neighbours):
            for first, held in (*columns.held.items(), *filter(None, [columns.promised])):
                taken[first : first + held] = True
        return [first for first in range(0, COLUMNS, size) if not taken[first : first + size].any()]

    def check(self, size: int) -> None:
        """Raise Misuse for an allocation that is not legal now."""
        if size not in SIZES:
            raise Misuse(f"an allocation of {size} columns: expected {', '.join(map(str, SIZES))}")
        if self.relinquished:
            raise Misuse(
                f"a thread of the CTA has relinquished the right to allocate at line {self.relinquished}: "
                "put tcgen05.relinquish_alloc_permit behind the last allocation"
            )
        if size > self.latest:
            raise Misuse(
                f"an allocation of {size} columns after that of {self.latest} at line {self.latest_line}: "
                "sizes do not grow; allocate the largest first"
            )

    def take(self, size: int, choose: Choose, peer: Columns, line: int = 0) -> int | None:
        """Allocate columns by the statement of a line and return the first; None where there is no room.

        ``peer`` is the other CTA of a pair, where as many are kept at the same place; else these themselves.
        """
        if self.promised is not None and self.promised[1] == size:
            first = self.promised[0]
        else:
            others = set(peer.room(size))
            room = [first for first in self.room(size) if first in others]
            if not room:
                return None
            first = choose(self.count, room)
            if peer is not self:
                peer.promised = first, size
        self.promised = None
        self.held[first], self.latest, self.count = size, size, self.count + 1
        self.lines[first] = self.latest_line = line
        return first

    def check_held(self, first: int, size: int) -> None:
        """Raise Misuse for columns that are not an allocation."""
        if first not in self.held:
            before = f", and line {self.freed[first]} has freed it" if first in self.freed else ""
            raise Misuse(
                f"column {first} is not an address that an allocation returned ({self.named()}){before}"
            )
        if self.held[first] != size:
            raise Misuse(
                f"the allocation at column {first} has {self.held[first]} columns, not {size} "
                f"({self.named()})"
            )

    def give_back(self, first: int, line: int = 0) -> None:
        """Free an allocation by the statement of a line."""
        del self.held[first]
        self.freed[first] = line

    def outside(self, first: int, past: int) -> int | None:
        """Return the first column of a stretch that is in no allocation, None where all are allocated."""
        for start, size in sorted(self.held.items()):
            if start <= first < start + size:
                if past <= start + size:
                    return None
                first = start + size
        return first if first < past else None

    def named(self) -> str:
        """Return the allocations in words."""
        return f"allocated: {self.stretches()}" if self.held else "no columns are allocated"

    def stretches(self) -> str:
        """Return the columns of the allocations, and the lines of their statements."""
        held = sorted(self.held.items())
        named = (f"{first}..{first + size - 1} at line {self.lines[first]}" for first, size in held)
        return f"columns {', '.join(named)}"


class TensorMemory:
    """The tensor memories of the CTAs of a wave; ``resident`` clusters share multiprocessors."""

    def __init__(self, ctas: int, cluster: int = 1, resident: int = 1) -> None:
        self.cells: Cells = np.zeros((ctas, LANES, COLUMNS), np.uint32)
        self.written = np.zeros((ctas, LANES, COLUMNS), np.bool_)
        self.columns = [Columns() for _ in range(ctas)]
        for place, columns in enumerate(self.columns if resident > 1 else ()):
            first = place // (cluster * resident) * cluster * resident + place % cluster
            shared = self.columns[first : first + cluster * resident : cluster]
            columns.neighbours = [other for other in shared if other is not columns]

    def forget(self, cta: int, first: int, size: int) -> None:
        """Leave the contents of columns undefined again."""
        self.written[cta, :, first : first + size] = False


def byte_places(cta: int, lanes: Places, columns: Places) -> Places:
    """Return ``(..., 4)``: the bytes of cells among all bytes of ``TensorMemory.cells``."""
    cell = (cta * LANES + np.asarray(lanes)) * COLUMNS + np.asarray(columns)
    return np.asarray(cell)[..., None] * 4 + np.arange(4)


def _alone(owner: object) -> int:
    return 1


RESIDENT = SideTable(_alone)  # of a wave: CTAs that a multiprocessor has at a time
