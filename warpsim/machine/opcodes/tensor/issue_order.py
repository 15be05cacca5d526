"""Asynchronous work of one thread: in the order in which it issues mma, cp and shift of one CTA group.

The manual lists the pairs that keep their order; kernels rely on more (a cp after the mma whose scales it
overwrites), so all do here. A commit arrives when everything before it is complete. PTX ISA 9.3, section
9.7.17.6 "Memory consistency model".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...run.asynchronous import ASYNCHRONY, commit, issue
from ...run.events import Observer, TensorAccess, observers_of
from ...run.pending import Action, Moved, Pending, Stretches
from ...run.wave import Wave
from ...state.lanes import DivergentPath
from ...state.side_tables import SideTable
from ...state.tensor_cells import Block
from ..asynchronous.tensor_boxes import single

# By lane and CTAs of the group: what it has issued last.
_LATEST = SideTable[dict[tuple[int, int], Pending]](lambda _: {})


def family_of(ctas: int) -> str:
    """Return the family of groups that commits of so many CTAs close."""
    return f"tcgen05.cta_group::{ctas}"


def notify(
    wave: Wave,
    path: DivergentPath,
    lane: int,
    family: str,
    touched: tuple[tuple[Block, ...], tuple[Block, ...]],
    *,
    in_order: bool = False,
) -> None:
    """Notify observers of cells that are ``touched``, read and written, by what is issued now."""
    number = int(ASYNCHRONY.of(wave).closed(wave, family)[lane])
    access = TensorAccess(
        path=path,
        lane=lane,
        family=family,
        number=number,
        reads=touched[0],
        writes=touched[1],
        in_order=in_order,
    )
    observers_of(wave).tensor_access(wave, access)


def notifies(wave: Wave) -> bool:
    """Return whether an observer wants to know of cells."""
    return observers_of(wave).hear(Observer.tensor_access)


class Work(NamedTuple):
    """What an operation does when it completes, what it reads, and where the bytes of a copy go."""

    complete: Action
    reads: tuple[Stretches, ...] = ()
    moved: Callable[[Wave], Moved] | None = None


def issue_in_order(wave: Wave, path: DivergentPath, key: tuple[int, int], kind: str, work: Work) -> None:
    """Issue the work of ``key``, a lane and the CTAs of its group, behind what the lane has issued before."""
    latest = _LATEST.of(wave)
    before = latest.get(key)
    pending = latest[key] = Pending(
        record=wave.code[path.pc],
        lane=key[0],
        kind=kind,
        complete=work.complete,
        reads=work.reads,
        moved=work.moved,
        group=family_of(key[1]),
        after=() if before is None or before.done else (before,),
    )
    issue(wave, path, pending)


def _nothing(wave: Wave) -> None:
    pass


def issue_arrival(wave: Wave, path: DivergentPath, key: tuple[int, int], barriers: tuple[int, ...]) -> None:
    """Issue an arrival at mbarriers, as offsets in shared memory, when all that came before is complete.

    It closes the group of what the lane has issued since the arrival before.
    """
    commit(wave, single(wave, key[0]), family_of(key[1]))
    before = _LATEST.of(wave).get(key)
    pending = Pending(
        record=wave.code[path.pc],
        lane=key[0],
        kind="commit",
        complete=_nothing,
        arrivals=barriers,
        group=family_of(key[1]),
        after=() if before is None or before.done else (before,),
    )
    issue(wave, path, pending)
