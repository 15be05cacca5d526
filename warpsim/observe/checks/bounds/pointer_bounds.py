"""Accesses through a pointer that leave the allocation it was computed from, for another allocation.

What ends in no allocation at all stops a launch (machine/state/spaces.py). An address belongs to an
allocation where a single term of it is a pointer, which lies there and is added once: all other addresses may
lie anywhere. A parameter that is the distance from the pointer to the other allocation, in bytes or elements,
explains that it is reached from there; so does a range of addresses in which a program has mapped both.

Knows allocations and the values of parameters; which terms an address has is pointer_terms.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....machine.run.events import Observer
from ....machine.run.pending import Pending
from ....machine.state.lanes import DivergentPath
from ....machine.state.memory_access import MemoryAccess
from ....machine.state.spaces import DEVICE_BASE, Allocation
from ..findings import Findings, LaunchFinding
from .pointer_terms import POINTER_TERMS, Key, Terms

if TYPE_CHECKING:
    from ....machine.run.wave import Wave

_ELEMENTS = (1, 2, 4, 8, 16)  # bytes of an element, of which a distance may be a number
_Home = tuple[int, int, int] | None  # the first byte and the one past in device memory; the pointer


class PointerBounds(Observer):
    """Reports accesses of global memory that leave the allocation of their pointer."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.homes: dict[int, _Home] = {}  # by statement

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Check what lanes read."""
        if access.memory is wave.memories.device.data:
            self._check(wave, access, "reads")

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Check what lanes write."""
        if access.memory is wave.memories.device.data:
            self._check(wave, access, "writes")

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Check what lanes change."""
        if access.memory is wave.memories.device.data:
            self._check(wave, access, "changes")

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Check bytes that a bulk copy reads or writes."""
        for verb, several in (("reads", pending.reads), ("writes", pending.writes)):
            for stretches in several:
                home = self._home(wave, path.pc) if stretches.space == "global" else None
                if home is None or not len(stretches.ranges):
                    continue
                outside = (stretches.ranges[:, 0] < home[0]) | (stretches.ranges[:, 1] > home[1])
                if outside.any():
                    first, past = stretches.ranges[int(outside.argmax())].tolist()
                    self._report_out_of_bounds(wave, path.pc, pending.lane, (first, past), verb)

    def _check(self, wave: Wave, access: MemoryAccess, verb: str) -> None:
        pc, offsets = access.path.pc, access.offsets
        home = self.homes[pc] if pc in self.homes else self._home(wave, pc)
        if home is None or not offsets.size:
            return
        if int(offsets.min()) >= home[0] and int(offsets.max()) + access.size <= home[1]:
            return
        word = int(((offsets < home[0]) | (offsets + access.size > home[1])).argmax())
        first = int(offsets[word])
        self._report_out_of_bounds(wave, pc, int(access.lane_of[word]), (first, first + access.size), verb)

    # --- where pointers belong ---

    def _home(self, wave: Wave, pc: int) -> _Home:
        """Return the allocation that the address of a statement belongs to, None where it may be any."""
        if pc not in self.homes:
            homes = [self._pointed_allocation(wave, terms) for terms in POINTER_TERMS.of(wave.entry).of(pc)]
            known = [home for home in homes if home is not None]
            self.homes[pc] = known[0] if len(known) == 1 else None
        return self.homes[pc]

    def _pointed_allocation(self, wave: Wave, terms: Terms) -> _Home:
        """Return the allocation of the one pointer among the terms of an address."""
        values = {key: _value(wave, key) for key in terms or ()}
        pointers = [key for key, value in values.items() if wave.memories.device.find(value) is not None]
        if terms is None or len(pointers) != 1 or not terms[pointers[0]]:
            return None
        value = values[pointers[0]]
        allocation = wave.memories.device.allocation_at(value)
        first = allocation.address - DEVICE_BASE
        return first, first + allocation.size, value

    # --- what is wrong ---

    def _report_out_of_bounds(self, wave: Wave, pc: int, lane: int, span: tuple[int, int], verb: str) -> None:
        """Report an access outside the allocation of its pointer, unless a parameter explains it."""
        home, device = self.homes[pc], wave.memories.device
        assert home is not None
        pointer = home[2]
        own, there = device.allocation_at(pointer), device.allocation_at(DEVICE_BASE + span[0])
        mapped = own.reserved != 0 and own.reserved == there.reserved
        if own is there or mapped or _is_distance(wave, pointer, there):
            self.homes[pc] = None
            return
        statement = wave.code[pc].statement
        place = DEVICE_BASE + span[0]
        past = place - own.address - own.size
        where = f"{past} bytes past its end" if past >= 0 else f"{own.address - place} bytes before it"
        message = (
            f"{statement.mnemonic} {verb} byte {place - there.address} of the {there} through a pointer to "
            f"the {own}, {where} [{wave.describe_lane(lane)}]"
        )
        finding = LaunchFinding(
            kind="out of bounds", severity="error", message=message, location=statement.location()
        )
        self.findings.add(("out of bounds", pc), finding)


def _value(wave: Wave, key: Key) -> int:
    """Return the word of a parameter, or the address of a variable."""
    if isinstance(key, str):
        return wave.symbols[key]
    word = wave.memories.parameters[key : key + 8]
    return int.from_bytes(word.tobytes(), "little")


def _is_distance(wave: Wave, pointer: int, there: Allocation) -> bool:
    """Return whether a number among the parameters leads from a pointer to an allocation.

    It is a word of 4 or 8 bytes, and is added or subtracted. Halves of pointers are no such numbers.
    """
    words, device = wave.memories.parameters.view("<i8"), wave.memories.device
    numbers = np.array([word for word in words.tolist() if device.find(word) is None], "<i8")
    distances = np.abs(np.r_[numbers, numbers.view("<i4")])
    return bool((distances[:, None] * np.array(_ELEMENTS) == abs(there.address - pointer)).any())
