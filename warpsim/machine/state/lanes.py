"""Lanes that execute together, the frame of registers that they work in, and the place where they stand.

Knows values, masks and program counters; does not know statements, memories or schedules. Arrays of values
are never changed in place: a masked write makes a new array, so that registers may share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP

Values = npt.NDArray[Any]  # one unsigned value a lane of the wave
Mask = npt.NDArray[np.bool_]


class Lanes:
    """Some lanes of a wave: ``mask`` (lanes,) bool, how many, and their numbers ``index`` on demand.

    ``whole`` says that it is every lane there is, padding and those that have exited included.
    """

    __slots__ = ("_first", "_index", "_joined", "_warps", "_within", "count", "mask", "whole")

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.whole = self.count == mask.size
        self._index: npt.NDArray[np.intp] | None = None
        self._warps: npt.NDArray[np.intp] | None = None
        self._first: dict[int, Lanes] = {}
        self._within: dict[int, Mask] = {}  # masks that all of them are known to be in, by identity
        self._joined: dict[int, tuple[Mask, Mask]] = {}  # by identity: masks, and what they are with these

    @property
    def index(self) -> npt.NDArray[np.intp]:
        """Return the numbers of these lanes, ascending."""
        if self._index is None:
            self._index = np.flatnonzero(self.mask)
        return self._index

    @property
    def warps(self) -> npt.NDArray[np.intp]:
        """The numbers of their warps, all lanes of which are among them."""
        if self._warps is None:
            self._warps = self.mask[::WARP].nonzero()[0]
        return self._warps

    def first_of_warps(self, count: int) -> Lanes:
        """Return those of them that are among the first lanes of their warps: the same each time."""
        if count >= WARP:
            return self
        if count not in self._first:
            self._first[count] = Lanes(self.mask & (np.arange(self.mask.size) % WARP < count))
        return self._first[count]

    def within(self, mask: Mask) -> bool:
        """Return whether all of them are in a mask, which must not change; that they are is remembered."""
        if id(mask) not in self._within:
            if (self.mask > mask).any():
                return False
            self._within[id(mask)] = mask
        return True

    def joined(self, mask: Mask) -> Mask:
        """Return a mask, which must not change, and these lanes: the same array each time, for ``within``."""
        if id(mask) not in self._joined:
            self._joined[id(mask)] = mask, mask | self.mask
        return self._joined[id(mask)][1]

    def of(self, values: Values) -> Values:
        """Return their part of an array with a value a lane, or of shape () as it is."""
        return values if self.whole or not values.ndim else values[self.index]

    def spread(self, part: Values) -> Values:
        """Invert ``of``: return one value for each lane of the wave, 0 in the others."""
        if self.whole:
            return part
        values = np.zeros((self.mask.size, *part.shape[1:]), part.dtype)
        values[self.index] = part
        return values


def _blend(mask: Mask, values: Values, old: Values) -> Values:
    """Return values where the mask is set, old values elsewhere: in half the time of np.where."""
    if values.dtype != old.dtype:
        return np.where(mask, values, old)
    result = old.copy()
    np.copyto(result, values, where=mask)
    return result


def for_each(values: Values, lanes: int) -> Values:
    """Return ``(lanes,)`` values of so many, or of a single value, shape ()."""
    return values if values.ndim else np.broadcast_to(values, (lanes,))


class Frame:
    """The registers of one activation of a function, and where to go on afterwards.

    ``values`` by number, None where nothing has been written; ``partial`` has the mask of those that were
    written in some lanes only. ``local`` is the first byte of this activation in the local memory of each
    lane, ``top`` (lanes,) the first one behind what its alloca took, None for nothing; ``leave`` is called
    with the wave and the lanes that return, before they do; ``function`` is what runs, None for the kernel.
    ``lanes`` counts those that were called and have not returned; ``entered`` refers to the latest frame of
    each call that was made here, by its place and function, while lanes are in it; ``kept`` are the bytes of
    the registers of all callers.
    """

    __slots__ = (
        *("__weakref__", "caller", "depth", "entered", "function", "kept", "lanes", "leave"),
        *("local", "partial", "resume", "top", "values"),
    )

    def __init__(self, registers: int, caller: Frame | None = None, resume: int = -1, local: int = 0) -> None:
        self.values: list[Values | None] = [None] * registers
        self.partial: dict[int, Mask] = {}
        self.caller = caller
        self.resume = resume
        self.depth: int = 0 if caller is None else caller.depth + 1
        self.function: Any = None
        self.leave: Callable[[Any, Lanes], None] | None = None
        self.local = local
        self.top: Values | None = None
        self.lanes = self.kept = 0
        self.entered: dict[tuple[int, str], ref[Frame]] = {}

    def write(self, register: int, values: Values, lanes: Lanes, all_alive: bool) -> None:
        """Write a register in some lanes; ``all_alive``: no other lane will ever read it."""
        if not values.ndim:
            values = np.full(lanes.mask.size, values)
        old = self.values[register]
        if all_alive:
            self.values[register] = values
            if register in self.partial:
                del self.partial[register]
        elif old is None:
            self.values[register] = np.where(lanes.mask, values, values.dtype.type(0))
            self.partial[register] = lanes.mask
        else:
            self.replace(register, _blend(lanes.mask, values, old), lanes)

    def replace(self, register: int, values: Values, lanes: Lanes) -> None:
        """Let a register hold values that differ from those before in some lanes, which have written it."""
        self.values[register] = values
        before = self.partial.get(register)
        if before is not None and not lanes.within(before):
            self._add_written(register, lanes.joined(before))

    def replace_several(self, registers: Sequence[int | None], rows: Values, lanes: Lanes) -> None:
        """Replace a register by each row of values; None is a sink. Most were written in the same lanes."""
        covered: Mask | None = None
        for register, row in zip(registers, rows, strict=True):
            if register is None:
                continue
            self.values[register] = row
            before = self.partial.get(register)
            if before is None or before is covered:
                continue
            if lanes.within(before):
                covered = before
            else:
                self._add_written(register, lanes.joined(before))

    def _add_written(self, register: int, written: Mask) -> None:
        """Mark a register that was written in some lanes as written in more."""
        if written.all():
            del self.partial[register]
        else:
            self.partial[register] = written

    def missing(self, register: int, lanes: Lanes) -> Mask:
        """Return those of the lanes in which a register has never been written."""
        if self.values[register] is None:
            return lanes.mask
        written = self.partial.get(register)
        return np.zeros_like(lanes.mask) if written is None else lanes.mask & ~written


class DivergentPath:
    """Lanes that stand at one program counter of one frame, and how long they have gone round in a loop."""

    __slots__ = ("frame", "lanes", "pc", "turns", "waits")

    def __init__(self, pc: int, frame: Frame, lanes: Lanes, turns: int = 0) -> None:
        self.pc = pc
        self.frame = frame
        self.lanes = lanes
        self.turns = turns  # kept by lanes that part, wait and are woken: a loop may have barriers in it
        self.waits: object | None = None  # what for, where it does not run
