"""The checks that a launch has, and those that only some kernels and clusters have.

Knows which there are, and in which order they look; does not know what they find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...base.errors import Location, WarpsimError
from ...machine.run.clusters import PORTABLE
from ...machine.run.events import Observer
from ...machine.run.geometry import Cluster
from .barrier_checks import BarrierReuse, DivergentBarriers
from .bounds.pointer_bounds import PointerBounds
from .cluster_memory import ClusterMemory
from .copy_order import CopyOrder
from .fast_path.accesses import Accesses
from .findings import Findings, LaunchFinding
from .flags import FlagOrder
from .map_fences import MapFences
from .mbarrier_checks import LiveBarriers, SplitArrivals
from .memory_checks import CopiesInFlight, UninitialisedReads
from .order import Order
from .order_kinds import places_of
from .setmaxnreg_checks import SetmaxnregChecks
from .shared_races import Races
from .tensor_memory.collector_buffers import CollectorBuffers
from .tensor_memory.tensor_order import TensorOrder
from .wgmma.tile_reads import TileReads
from .wgmma.warpgroup_order import WarpgroupOrder

if TYPE_CHECKING:
    from ...machine.run.wave import Entry


def checks_of(findings: Findings, *, clusters: bool = False) -> list[Observer]:
    """Return the observers of a wave; none where checks are off. ``clusters`` says that CTAs share memory.

    Rules look first, then ``Order`` and ``FlagOrder`` learn what an event orders; ``Races`` notes accesses
    last.
    """
    if findings.mode == "off":
        return []
    order = Order(findings)
    accesses = Accesses(order)
    reads, flying = UninitialisedReads(findings, accesses), CopiesInFlight(findings, accesses)
    far = [ClusterMemory(findings, order)] if clusters else []
    tiles: list[Observer] = [TileReads(findings, order), WarpgroupOrder(findings, order)]
    barriers: list[Observer] = [
        DivergentBarriers(findings),
        BarrierReuse(findings, order),
        LiveBarriers(findings),
        SplitArrivals(findings),
    ]
    return [
        *(PointerBounds(findings), reads, flying, *tiles, *barriers, *far),
        *(
            CopyOrder(findings, order),
            MapFences(findings),
            CollectorBuffers(findings),
            TensorOrder(findings, order),
            order,
            FlagOrder(findings, order),
            Races(findings, accesses),
        ),
    ]


def kernel_checks(findings: Findings, entry: Entry) -> list[Callable[[Findings], Any]]:
    """Return what makes further observers of a wave: those that only kernels with setmaxnreg have."""
    if findings.mode != "off" and places_of(entry.code, "setmaxnreg"):
        return [SetmaxnregChecks]
    return []


def check_declared(findings: Findings, overrun: WarpsimError | None) -> None:
    """Raise, or find, that a kernel declares more shared memory than its target lets it."""
    if overrun is None or findings.mode == "off":
        return
    if findings.mode == "error":
        raise overrun
    assert overrun.location is not None
    kind, message, location = "shared memory", overrun.message, overrun.location
    finding = LaunchFinding(kind=kind, severity="error", message=message, location=location)
    findings.add((kind,), finding)


def check_portable(findings: Findings, cluster: Cluster, kernel: Location) -> None:
    """Warn of clusters that not every chip takes."""
    if findings.mode == "off" or cluster.count <= PORTABLE:
        return
    message = (
        f"a cluster of {cluster} CTAs has {cluster.count}: up to {PORTABLE} are portable, and more need "
        f"a chip and a host that allow it (cudaFuncAttributeNonPortableClusterSizeAllowed)"
    )
    finding = LaunchFinding(
        kind="not portable", severity="warning", message=message, location=kernel, legal=True
    )
    findings.add(("not portable",), finding)
