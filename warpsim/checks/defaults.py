"""The checks that every launch has by default.

Knows which there are; does not know what they find.
"""

from __future__ import annotations

from ..machine.run.events import Observer
from .barrier_reuse import BarrierReuse
from .copy_order import CopyOrder
from .divergent_barriers import DivergentBarriers
from .findings import Findings
from .lane_races import LaneRaces
from .live_barriers import LiveBarriers
from .map_fences import MapFences
from .memory_checks import CopiesInFlight, UninitialisedReads
from .tile_reads import TileReads
from .warp_races import Races
from .warpgroup_order import WarpgroupOrder


def checks_of(findings: Findings) -> list[Observer]:
    """The observers that a launch has by default; none where checks are off."""
    if findings.mode == "off":
        return []
    reads, copies, races = UninitialisedReads(findings), CopiesInFlight(findings), Races(findings)
    tiles = TileReads(findings, reads, copies, races)
    lanes = [LaneRaces(findings), DivergentBarriers(findings), BarrierReuse(findings)]
    others = [WarpgroupOrder(findings), CopyOrder(findings), MapFences(findings), LiveBarriers(findings)]
    return [reads, copies, races, tiles, *lanes, *others]
