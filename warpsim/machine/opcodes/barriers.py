"""bar and barrier: the threads of a CTA, or of a warp, that wait for each other (PTX ISA 9.1, 9.7.13.1).

Lanes of a warp may arrive one after the other, .aligned or not: where PTX demands that a warp arrives as one,
it does so here when its lanes have come together. bar.warp.sync waits for members that have not exited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...ptx.constants import Immediate
from ..lanes import Front, Lanes, Mask, Values
from ..together import meet
from .effect import Effect

if TYPE_CHECKING:
    from ..site import Reader, Site
    from ..wave import Step, Wave

_MOST = 16  # barriers of a CTA

Arrival = Callable[["Wave", Front, Lanes], tuple[int, "int | None"]]  # number of the barrier, and threads


def _uniform(read: Reader, wave: Wave, front: Front, lanes: Lanes, what: str) -> int:
    """A value that all lanes share; raises Fault where they do not."""
    values = lanes.of(read(wave, front))
    first = int(values.flat[0])
    if values.size > 1 and (values != first).any():
        lane = int(lanes.index[int((values != first).argmax())])
        raise wave.fault(wave.code[front.pc], lane, f"{what} differs between lanes")
    return first


def _check_constants(site: Site, number: int, threads: int | None, arrives: bool) -> None:
    """What is wrong whatever runs; raises IllegalInstruction."""
    if "cta" in site.statement.modifiers[1:]:
        raise site.illegal(f".cta stands next to {site.statement.opcode}")
    which = site.operands[number]
    if isinstance(which, Immediate) and which.kind == "integer" and not 0 <= which.value < _MOST:
        raise site.illegal(f"barrier {which}: there are 0 to 15", number)
    if threads is None:
        return
    count = site.operands[threads]
    if isinstance(count, Immediate) and (count.value % 32 or (arrives and count.value == 0)):
        raise site.illegal(f"a barrier of {count} threads: expected a multiple of 32", threads)


def _arrival(site: Site, number: int, threads: int | None, arrives: bool = False) -> Arrival:
    """Reads the operands ``a`` and ``b``, which have these places; raises Fault for what no barrier takes.

    No thread count, or 0 where lanes wait, stands for all of the CTA.
    """
    _check_constants(site, number, threads, arrives)
    read = site.reader(site.operands[number], "b32", number)
    most = None if threads is None else site.reader(site.operands[threads], "b32", threads)

    def arrival(wave: Wave, front: Front, lanes: Lanes) -> tuple[int, int | None]:
        which = _uniform(read, wave, front, lanes, "the number of the barrier")
        if which >= _MOST:
            raise wave.fault(wave.code[front.pc], int(lanes.index[0]), f"barrier {which}: there are 0 to 15")
        if most is None:
            return which, None
        count = _uniform(most, wave, front, lanes, "the number of threads")
        if count == 0 and not arrives:
            return which, None
        if count == 0 or count % 32:
            message = f"a barrier of {count} threads: expected a multiple of 32"
            raise wave.fault(wave.code[front.pc], int(lanes.index[0]), message)
        return which, count

    return arrival


def _barrier(site: Site, level: str, kind: str, aligned: str = "") -> Step:
    arrives = kind == "arrive"
    count = site.count(2) if arrives else site.count(1, 2)
    arrival = _arrival(site, 0, 1 if count == 2 else None, arrives)

    def step(wave: Wave, front: Front, lanes: Lanes) -> bool:
        return wave.barrier(front, lanes, *arrival(wave, front, lanes), waits=not arrives)

    return step


# --- reductions ------------------------------------------------------------------------------------


def _ballots(wave: Wave, number: int) -> tuple[Mask, Mask]:
    """Who has voted at a barrier, and who said yes; to be changed in place."""
    ballots: dict[int, tuple[Mask, Mask]] = wave.kept.setdefault("ballots", {})
    if number not in ballots:
        ballots[number] = np.zeros(wave.lanes, np.bool_), np.zeros(wave.lanes, np.bool_)
    return ballots[number]


# (votes of yes in each CTA, votes in each CTA) -> the result in each CTA
_RESULTS: dict[str, Callable[[Values, Values], Values]] = {
    "popc": lambda yes, voted: yes.astype(np.uint32),
    "and": lambda yes, voted: yes == voted,
    "or": lambda yes, voted: yes > 0,
}


def _reduction(site: Site, level: str, red: str, name: str, aligned: str, type_name: str) -> Step:
    """bar.red: all that arrive vote, and get the result when the barrier is complete."""
    count = site.count(3, 4)
    write = site.writer(site.operands[0], type_name, 0)
    arrival = _arrival(site, 1, 2 if count == 4 else None)
    read, result = site.reader(site.operands[-1], "pred", count - 1), _RESULTS[name]

    def deliver(wave: Wave, front: Front, lanes: Lanes, number: int) -> None:
        yes, voted = (wave.count_of(Lanes(one)) for one in reversed(_ballots(wave, number)))
        write(wave, front, lanes, result(yes, voted)[wave.cta])

    def step(wave: Wave, front: Front, lanes: Lanes) -> bool:
        number, threads = arrival(wave, front, lanes)
        voted, yes = _ballots(wave, number)
        _clear(wave, number, voted)
        voted |= lanes.mask
        np.copyto(yes, read(wave, front), where=lanes.mask)
        if wave.barrier(front, lanes, number, threads, deliver=deliver):
            return True
        deliver(wave, front, lanes, number)
        return False

    return step


def _clear(wave: Wave, number: int, voted: Mask) -> None:
    """Forget the votes of barriers that are complete: nobody is there any more."""
    there = wave.arrived[number] > 0
    voted &= there[wave.cta]
    _ballots(wave, number)[1][~voted] = False


def _warp(site: Site, warp: str, sync: str) -> Step:
    site.count(1)
    members = site.reader(site.operands[0], "u32", 0)
    return lambda wave, front, lanes: meet(wave, front, lanes, members(wave, front))


_KINDS, _ALIGNED, _RED = ("sync", "arrive"), ("", "aligned"), ("red",)
_REDUCTIONS = ((("and", "or"), ("pred",)), (("popc",), ("u32",)))
_Version = tuple[int, int]


def _rows(opcode: str, aligned: tuple[str, ...], since: _Version, chip: int) -> Iterator[Effect]:
    """Forms of an opcode, and those with .cta, which came with PTX 7.8."""
    for level, first in ((("",), since), (("cta",), (7, 8))):
        yield Effect(opcode=opcode, slots=(level, _KINDS, aligned), bind=_barrier, since=first, chip=chip)
        for names, types in _REDUCTIONS:
            slots = (level, _RED, names, aligned, types)
            yield Effect(opcode=opcode, slots=slots, bind=_reduction, since=first, chip=chip)


ROWS: tuple[Effect, ...] = (
    *_rows("bar", ("",), (2, 0), 20),
    Effect(opcode="bar", slots=(("warp",), ("sync",)), bind=_warp, since=(6, 0), chip=30),
    *_rows("barrier", _ALIGNED, (6, 0), 30),
)
