"""Tensor maps that a kernel changes in global memory: copies use them behind a fence only.

A change is made by tensormap.replace, which both fences must follow, or by tensormap.cp_fenceproxy, which
releases itself. Stores to a map are found in another way: the map is none any more. Does not know which map
an acquire names, and takes an acquire by any lane of the CTA that uses the map. PTX ISA 9.1, section 9.7.13.4
"fence.proxy.tensormap".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...machine.run.events import Observer
from ...machine.state.lanes import DivergentPath, Lanes
from .finding_catalogue import Site, report
from .findings import Findings

if TYPE_CHECKING:
    from ...machine.run.wave import Wave

_PROXY, _FENCE = "tensormap::generic", "fence.proxy.tensormap::generic"


@dataclass
class _Change:
    """A change of a map: by which statement, in which CTA, and which fences have come since."""

    pc: int
    cta: int
    released: bool
    acquired: set[int] = field(default_factory=set)  # by CTAs


class MapFences(Observer):
    """Reports copies through maps that have been changed without the fences that make it visible."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._changes: dict[int, _Change] = {}  # the latest, by address

    def map_changed(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, address: int, released: bool
    ) -> None:
        """Record that a lane changes the map at an address of global memory."""
        self._changes[address] = _Change(path.pc, int(wave.cta[lanes.index[0]]), released)

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """Record a fence of the proxy by which copies read maps."""
        if _PROXY not in words or not self._changes:
            return
        ctas = set(wave.cta[lanes.index].tolist())
        for change in self._changes.values():
            if "release" in words and change.cta in ctas:
                change.released = True
            if "acquire" in words and change.released:
                change.acquired |= ctas

    def map_used(self, wave: Wave, path: DivergentPath, lanes: Lanes, address: int) -> None:
        """Check that a copy of a lane may read the map at an address."""
        change = self._changes.get(address)
        lane = int(lanes.index[0])
        if change is None or int(wave.cta[lane]) in change.acquired:
            return
        acquire = f"{_FENCE}.acquire.gpu [map], 128"
        fences = acquire if change.released else f"{_FENCE}.release.gpu, then {acquire},"
        report(
            self.findings, "changed map", Site(wave, path.pc, lane, change.pc), address=address, fences=fences
        )
