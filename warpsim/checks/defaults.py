"""The checks that a launch has.

Knows which there are, and in which order they look; does not know what they find.
"""

from __future__ import annotations

from ..machine.run.events import Observer
from .barrier_reuse import BarrierReuse
from .cluster_memory import ClusterMemory
from .copy_order import CopyOrder
from .divergent_barriers import DivergentBarriers
from .findings import Findings
from .live_barriers import LiveBarriers
from .map_fences import MapFences
from .memory_checks import CopiesInFlight, UninitialisedReads
from .order import Order
from .shared_races import Races
from .tile_reads import TileReads
from .warpgroup_order import WarpgroupOrder


def checks_of(findings: Findings, *, clusters: bool = False) -> list[Observer]:
    """The observers of a wave; none where checks are off. ``clusters`` says that CTAs share memory.

    Rules look first, then ``Order`` learns what an event orders, and ``Races`` notes accesses last.
    """
    if findings.mode == "off":
        return []
    order = Order(findings)
    reads, copies, flying = UninitialisedReads(findings), CopyOrder(findings, order), CopiesInFlight(findings)
    far = [ClusterMemory(findings, order)] if clusters else []
    tiles: list[Observer] = [TileReads(findings, reads, flying, order), WarpgroupOrder(findings)]
    barriers: list[Observer] = [
        DivergentBarriers(findings),
        BarrierReuse(findings, order),
        LiveBarriers(findings),
    ]
    return [
        *(reads, flying, *tiles, *barriers, *far),
        *(copies, MapFences(findings), order, Races(findings, order)),
    ]
