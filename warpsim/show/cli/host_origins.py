"""``warpsim exec --origins``: find which allocation each element of matrix instructions comes from.

Before a launch executes it is executed with keys beside its data, as ``launch --origins`` does, and memory is
restored. Knows the options; which launches there are, and what fills memory, the program decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ...isa.numerals import whole_number
from .origins import chosen, names_of

if TYPE_CHECKING:
    from ...machine.state.spaces import Allocation
    from ...programs.exec.fills import WrittenAllocations
    from ...programs.exec.host_launch import HostLaunch
    from ...workbench.diagnosis.origins.element_origins import Origins

_ALL = "all"
_MATRIX = frozenset({"mma", "wgmma", "wmma", "tcgen05"})
_WORD = 8


@dataclass(kw_only=True)
class HostOrigins:
    """``names`` has the numbers of allocations by name, nothing for those that the parameters name."""

    names: Mapping[str, int]
    fragment: str | None
    once: bool  # a kernel is looked at in its first launch only
    documents: list[dict[str, Any]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _writers: list[tuple[HostLaunch, WrittenAllocations]] = field(default_factory=list)

    @classmethod
    def given(cls, names: str | None, fragment: str | None, *, once: bool) -> HostOrigins | None:
        """Return what the options ask for, None for nothing. Raises UsageError."""
        if names is None:
            if fragment is not None:
                raise click.UsageError("--fragment goes with --origins")
            return None
        numbers = {} if names == _ALL else {name: _number(name, key) for name, key in names_of(names).items()}
        shown = {name if name != str(number) else f"#{number}": number for name, number in numbers.items()}
        return cls(names=shown, fragment=fragment, once=once)

    def watch(self, launch: HostLaunch, number: int) -> WrittenAllocations:
        """Find the origins of a launch that is about to begin, where ``number`` is not 0; return what notes
        what it writes.
        """
        from ...programs.exec.fills import WrittenAllocations

        self._note_writes()
        signature = launch.kernel.signature
        if number and self._multiplies(launch) and not (self.once and signature in self._seen):
            self._seen.add(signature)
            self._trace(launch, number)
        writes = WrittenAllocations()
        self._writers.append((launch, writes))
        return writes

    def lines(self) -> Iterator[str]:
        """Yield what was found, launch by launch."""
        yield from self._lines
        if not self._lines:
            yield "origins: no launch that was observed multiplies matrices"

    def _note_writes(self) -> None:
        """Keep what earlier launches have written."""
        for launch, writes in self._writers:
            for allocation, (first, past) in writes.stretches.items():
                launch.fills.note(allocation, f"kernel {launch.kernel.signature}", first, past - first)
        self._writers.clear()

    @staticmethod
    def _multiplies(launch: HostLaunch) -> bool:
        """Return whether a kernel has matrix instructions."""
        return any(record.statement.opcode in _MATRIX for record in launch.kernel.entry.code)

    def _trace(self, launch: HostLaunch, number: int) -> None:
        """Find the origins of a launch, and keep them as text and as data."""
        from ...base.errors import WarpsimError
        from ...workbench.diagnosis.origins.element_origins import find_allocation_origins, without_unused
        from ..views.host_programs import shortened

        place = f"launch {number}, {shortened(launch.kernel.signature)}"
        try:
            allocations = self._allocations(launch)
            found = find_allocation_origins(
                launch.kernel,
                (launch.grid, launch.block, launch.cluster),
                launch.parameters,
                allocations,
                launch.device,
                launch.shared_bytes,
            )
            found = found if self.names else without_unused(found)
            self._keep(found, launch, place)
        except (WarpsimError, click.UsageError) as error:  # the program goes on
            self._lines.append(f"origins: {place}: {error.message}")
            self.documents.append({"launch": place, "error": error.message})

    def _keep(self, found: Origins, launch: HostLaunch, place: str) -> None:
        from ..views.origins import fragment_document, fragment_lines, origin_lines, origins_document

        fills = {
            buffer.name: launch.fills.text(buffer.allocation)
            for buffer in found.buffers
            if buffer.allocation is not None
        }
        self._lines += [f"origins: {place}", *(f"  {line}" for line in origin_lines(found, fills))]
        self.documents.append({"launch": place, **origins_document(found), "filled": fills})
        if self.fragment is None:
            return
        try:
            shown = chosen(found, self.fragment)
        except click.UsageError as error:
            self._lines.append(f"  {error.message}")
            return
        if shown is not None:
            self._lines += [f"  {line}" for line in fragment_lines(*shown)]
            self.documents[-1]["fragment"] = fragment_document(*shown)

    def _allocations(self, launch: HostLaunch) -> dict[str, Allocation]:
        """Return the allocations that are asked for, or those that parameters name. Raises UsageError."""
        memory = launch.device.memory
        if self.names:
            by_number = {_number_of(each): each for each in memory.allocations}
            missing = [f"#{number}" for number in self.names.values() if number not in by_number]
            if missing:
                there = ", ".join(f"#{number}" for number in by_number if number)
                raise click.UsageError(f"{', '.join(missing)} is not an allocation now: there are {there}")
            return {name: by_number[number] for name, number in self.names.items()}
        found: dict[str, Allocation] = {}
        for content in launch.parameters:
            for place in range(0, len(content) - _WORD + 1, _WORD):
                address = int.from_bytes(content[place : place + _WORD], "little")
                allocation = memory.find(address)
                if allocation is not None:
                    number = _number_of(allocation)
                    found[allocation.name if number is None else f"#{number}"] = allocation
        if not found:
            raise click.UsageError("no parameter has the address of an allocation")
        return found


def _number_of(allocation: Allocation) -> int | None:
    """Return the number in the name of an allocation of a client."""
    return whole_number(allocation.name.rpartition("#")[2])


def _number(name: str, key: str) -> int:
    number = whole_number(key.removeprefix("#"))
    if not number:
        raise click.UsageError(f"--origins {name}={key}: expected the number of an allocation, from 1 on")
    return number
