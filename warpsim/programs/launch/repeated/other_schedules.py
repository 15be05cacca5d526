"""A launch again under other schedules: between which bounds sums of floats lie, and what else is another.

Sums by several threads in an order that PTX leaves open are worth a note with their bounds, and floats that
may come of such sums a warning; anything else that another schedule leaves otherwise is an error. Knows
launches and their buffers; does not know which schedules there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ....base.errors import Location, OperandError, Stopped, WarpsimError
from ....isa.arrays import as_integer
from ....machine.run.addition_orders import AdditionOrders, place_of
from ....machine.run.events import Observer
from ....machine.run.schedules import Schedule, other_schedules
from ....machine.state.device import Buffer
from ....machine.state.spaces import DEVICE_BASE, Allocation, Bytes
from ....observe.checks.findings import FindingError, Findings, LaunchFinding, Severity
from ....observe.recording.compared_copies import OPEN, Copies, Copy, Spread, as_floats, spread_of
from .repetition import Repetition

KIND = "schedule"
_MOST = 64


def number_of_schedules(given: int, scheduler: object) -> int:
    """Return how many schedules a launch has, its own among them. Raises OperandError."""
    count = as_integer(given, "schedules")
    if not 1 <= count <= _MOST:
        raise OperandError(f"schedules={count}: expected 1 to {_MOST}, the schedule of the launch among them")
    if count > 1 and scheduler is not None:
        raise OperandError(f"schedules={count} with a scheduler: a launch that is spread has one schedule")
    return count


@dataclass(kw_only=True)
class OtherSchedules:
    """A launch that has been executed under the schedule ``own``, and what others leave in its memory.

    ``checks`` returns the observers of a wave, with the findings that they add to; ``buffers`` are those of
    the parameters, by name.
    """

    repetition: Repetition
    own: str
    findings: Findings
    checks: Callable[[Findings], Sequence[Observer]]
    buffers: Sequence[tuple[str, Buffer]]
    _open: bool = False  # whether the order of any additions is open
    _spreads: dict[int, Spread] = field(default_factory=dict)  # by the number of the allocation
    _reached: set[int] = field(default_factory=set)  # allocations with more than sums that is another

    def judge(self, count: int) -> None:
        """Launch under ``count - 1`` other schedules, and add what they show to the findings.

        Raises the first error in mode "error".
        """
        launch = self.repetition.launch
        if self.repetition.data is None:
            self._add("", "note", "the memory is too large for launches under other schedules")
            return
        others = other_schedules(count - 1, self.own)
        first = self._copies(launch.device.memory.data, launch.additions)
        for schedule in others:
            for place, (copy, other) in enumerate(zip(first, self._again(schedule), strict=False)):
                if copy.digest != other.digest:
                    self._compare(place, copy, other, schedule)
        self._note([self.own, *others])

    def _again(self, schedule: str) -> list[Copy]:
        """Return the buffers after a launch under another schedule; none after an error, which is found."""
        repetition, additions = self.repetition, AdditionOrders()
        findings = Findings(mode=self.findings.mode, known=dict(self.findings.known))
        changed = {
            "schedule": Schedule(schedule),
            "observers": lambda: self.checks(findings),
            "additions": additions,
        }
        try:
            device, _, _ = repetition.again(repetition.copy(), repetition.fresh_copy(), **changed)
        except (Stopped, FindingError):
            raise
        except WarpsimError as error:
            message = f"under schedule {schedule} the launch ends with an error: {error.message}"
            self._add(schedule, "error", message, error.location)
            return []
        self.findings.known |= findings.known
        self.findings.found += findings.found
        return self._copies(device.memory.data, additions)

    def _copies(self, memory: Bytes, additions: AdditionOrders) -> list[Copy]:
        """Return the allocations of the launch, with the sums in them."""
        self._open = self._open or bool(additions.sums())
        copies = Copies(keeps_all=True)
        copies.launched(additions.open_words(), memory)
        for allocation in self.repetition.allocations:
            start = allocation.address - DEVICE_BASE
            copies.add(self._name(allocation), memory[start : start + allocation.size], start)
        return copies.made

    def _name(self, allocation: Allocation) -> str:
        named = {buffer.address: name for name, buffer in self.buffers}
        return named.get(allocation.address) or str(allocation)

    def _compare(self, place: int, copy: Copy, other: Copy, schedule: str) -> None:
        """Widen the bounds of the sums of a buffer; an error for what is another without them."""
        spread = spread_of(copy, other)
        if spread is None and self._open:
            spread = spread_of(*(as_floats(each, self._type(place)) for each in (copy, other)))
            self._reached.add(place)
        if spread is None:
            message = f"{copy.call} is another under schedule {schedule} than under {self.own}: the result "
            reason = ", or on sums of floats in an order that PTX leaves open" if self._open else ""
            self._add(copy.call, "error", f"{message}depends on an order that nothing makes{reason}")
            return
        known = self._spreads.get(place)
        self._spreads[place] = spread if known is None else known.widen(spread)

    def _type(self, place: int) -> np.dtype[np.generic]:
        """Return the type of the elements of a buffer; bytes where none is known."""
        address = self.repetition.allocations[place].address
        return next(
            (buffer.dtype for _, buffer in self.buffers if buffer.address == address), np.dtype(np.uint8)
        )

    def _note(self, schedules: Sequence[str]) -> None:
        """Add a note of the bounds of every buffer, or that the sums had the same bits everywhere."""
        names, under = list(map(self._name, self.repetition.allocations)), ", ".join(schedules)
        for place, spread in self._spreads.items():
            message = f"{names[place]} has other bits under other schedules ({under}): {spread}; {OPEN}"
            if place in self._reached:
                self._add(names[place], "warning", f"{message}; these are no such sums, but may come of them")
            else:
                self._add(names[place], "note", message)
        if self.repetition.launch.additions.open_words() and not self._spreads:
            self._add("same", "note", f"{OPEN}; their sums have the same bits under {under}")

    def _add(self, key: str, severity: Severity, message: str, location: Location | None = None) -> None:
        place = location or self._place()
        finding = LaunchFinding(
            kind=KIND, severity=severity, message=message, location=place, legal=severity != "error"
        )
        self.findings.add((KIND, key), finding)

    def _place(self) -> Location:
        """Return where the first addition stands whose order is open, else where the kernel does."""
        launch = self.repetition.launch
        found = launch.additions.sums()
        for record in launch.entry.code if found else ():
            if place_of(record.statement) in found:
                return record.statement.location()
        return launch.module.functions[launch.entry.name].kernel.location()
