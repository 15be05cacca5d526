"""What is said of races in shared memory: both statements, the byte, and what would order them.

Knows wording; which accesses are in a race is found in shared_races.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..isa.warps import WARP
from ..machine.run.clusters import in_shared, named
from ..machine.run.convergence import in_words, warp_words
from .findings import LaunchFinding, Severity
from .shadow import places, whose

if TYPE_CHECKING:
    from .order import Order
    from .shared_races import Reach

Verbs = tuple[str, str]  # what is done now, and what has been done before
Keyed = tuple[tuple[object, ...], LaunchFinding]


def between_warps(reach: Reach, row: int, byte: int, old: int, verbs: Verbs) -> Keyed:
    """Two warps of a CTA."""
    wave, lane, (now, before) = reach.wave, int(reach.lanes[row, 0]), verbs
    statement, other = (wave.code[pc].statement for pc in (reach.pc, int(places(old))))
    message = (
        f"race: {statement.mnemonic} {now} byte {in_shared(wave, lane, byte)}, "
        f"which another warp has {before} at line {other.location().line} "
        f"without a barrier in between [{wave.describe_lane(lane)}]"
    )
    return ("race", reach.pc, int(places(old)), before), _race(reach, message, old)


def between_lanes(reach: Reach, row: int, byte: int, old: int, verbs: Verbs) -> Keyed:
    """Two lanes of a warp, on different paths."""
    wave, lane, (now, before) = reach.wave, int(reach.lanes[row, 0]), verbs
    statement, other = (wave.code[pc].statement for pc in (reach.pc, int(places(old))))
    here = in_words(int(warp_words(reach.access.path.lanes.mask)[lane // WARP]))
    place = wave.describe_lane(lane).rpartition(",")[0]
    message = (
        f"race: {statement.mnemonic} {now} byte {in_shared(wave, lane, byte)}, which lane "
        f"{whose(old) % WARP} of the same warp has {before} at line {other.location().line} on a way of its "
        f"own: no bar.warp.sync has come between [{place}, lanes {here}]"
    )
    return ("race", reach.pc, int(places(old)), verbs), _race(reach, message, old)


def between_ctas(reach: Reach, order: Order, row: int, byte: int, old: int, verbs: Verbs) -> Keyed:
    """Two CTAs of a cluster."""
    wave, lane, (now, before) = reach.wave, int(reach.lanes[row, 0]), verbs
    statement, first = (wave.code[pc].statement for pc in (reach.pc, int(places(old))))
    cta = int(wave.cta[lane]) // wave.cluster.count * wave.cluster.count + whose(old) // WARP // wave.warps
    line, relaxed = first.location().line, order.relaxed.get(cta)
    fix = f"put barrier.cluster.arrive behind line {line}, and barrier.cluster.wait before this"
    if relaxed is not None:
        arrival = wave.code[relaxed].statement.location().line
        fix = f"barrier.cluster.arrive.relaxed at line {arrival} orders nothing: leave out .relaxed"
    message = (
        f"race: {statement.mnemonic} {now} byte {in_shared(wave, lane, byte)}, which "
        f"{named(wave, cta)}, has {before} at line {line}, and nothing orders the two: {fix} "
        f"[{wave.describe_lane(lane)}]"
    )
    return ("cluster race", reach.pc, int(places(old)), before), _race(reach, message, old)


def _race(reach: Reach, message: str, old: int, severity: Severity = "error") -> LaunchFinding:
    code = reach.wave.code
    return LaunchFinding(
        kind="race",
        severity=severity,
        message=message,
        location=code[reach.pc].statement.location(),
        other=code[int(places(old))].statement.location(),
    )
