"""Asynchronous work of one thread: in the order in which it issues mma, cp and shift of one CTA group.

The manual lists the pairs that keep their order; kernels rely on more (a cp after the mma whose scales it
overwrites), so all do here. A commit arrives when everything before it is complete. PTX ISA 9.3, section
9.7.17.6 "Memory consistency model".
"""

from __future__ import annotations

from ...run.asynchronous import issue
from ...run.pending import Action, Pending, Stretches
from ...run.wave import Wave
from ...state.lanes import DivergentPath
from ...state.slots import Slot


def _nothing_issued(wave: Wave) -> dict[tuple[int, int], Pending]:
    return {}


_LATEST = Slot(_nothing_issued)  # by lane and CTAs of the group: what it has issued last


def issue_in_order(
    wave: Wave,
    path: DivergentPath,
    key: tuple[int, int],
    kind: str,
    complete: Action,
    reads: tuple[Stretches, ...] = (),
) -> None:
    """Issue the work of ``key``, a lane and the CTAs of its group, behind what the lane has issued before."""
    latest = _LATEST.of(wave)
    before = latest.get(key)
    pending = latest[key] = Pending(
        record=wave.code[path.pc],
        lane=key[0],
        kind=kind,
        complete=complete,
        reads=reads,
        after=() if before is None or before.done else (before,),
    )
    issue(wave, path, pending)


def _nothing(wave: Wave) -> None:
    pass


def issue_arrival(wave: Wave, path: DivergentPath, key: tuple[int, int], barriers: tuple[int, ...]) -> None:
    """Issue an arrival at mbarriers, as offsets in shared memory, when all that came before is complete."""
    before = _LATEST.of(wave).get(key)
    pending = Pending(
        record=wave.code[path.pc],
        lane=key[0],
        kind="commit",
        complete=_nothing,
        arrivals=barriers,
        after=() if before is None or before.done else (before,),
    )
    issue(wave, path, pending)
