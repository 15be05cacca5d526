"""bar and barrier: the threads of a CTA, or of a warp, that wait for each other (PTX ISA 9.1, 9.7.13.1).

Lanes of a warp may arrive at different times, .aligned or not: where PTX demands that a warp arrives as a
whole, it does so here when its lanes have converged. bar.warp.sync waits for members that have not exited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ....isa.warps import WARP
from ....ptx.constants import Immediate
from ...run.barriers.cta_barriers import Barriers
from ...run.barriers.waits import BarrierWait
from ...run.convergence import meet
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes, Mask, Values
from ...state.side_tables import SideTable
from ..effect import Effect
from ..statement_binder import Reader, StatementBinder

_MOST = 16  # barriers of a CTA

Place = tuple[int, "int | None"]  # number of a barrier, and threads
Arrival = Callable[[Wave, DivergentPath, Lanes], Place]
Arrive = Callable[[Wave, DivergentPath, Lanes, int, int | None], bool]  # true where paths have changed


def _parts(
    wave: Wave, path: DivergentPath, lanes: Lanes, operands: Sequence[tuple[Reader, str]]
) -> list[Lanes]:
    """Return the lanes whose operands agree, mostly all; raises Fault where lanes of one warp do not."""
    columns = [np.broadcast_to(read(wave, path), (wave.lanes,))[lanes.index] for read, _ in operands]
    if all((column == column[0]).all() for column in columns):
        return [lanes]
    warps = lanes.index // WARP
    for column, (_, what) in zip(columns, operands, strict=True):
        own = column[np.searchsorted(warps, warps)]  # what the first lane of the warp has
        if (column != own).any():
            lane = int(lanes.index[int((column != own).argmax())])
            raise wave.fault(wave.code[path.pc], lane, f"{what} differs between lanes of a warp")
    together = columns[0].astype(np.uint64)
    for column in columns[1:]:
        together = together << np.uint64(32) | column
    found = list[Lanes]()
    for value in np.unique(together):
        mask = np.zeros(wave.lanes, np.bool_)
        mask[lanes.index[together == value]] = True
        found.append(Lanes(mask))
    return found


def _check_constants(binder: StatementBinder, number: int, threads: int | None, arrives: bool) -> None:
    """Check constant operands; raises IllegalInstruction."""
    if "cta" in binder.statement.modifiers[1:]:
        raise binder.illegal(f".cta stands next to {binder.statement.opcode}")
    which = binder.operands[number]
    if isinstance(which, Immediate) and which.kind == "integer" and not 0 <= which.value < _MOST:
        raise binder.illegal(f"barrier {which}: there are 0 to 15", number)
    if threads is None:
        return
    count = binder.operands[threads]
    if isinstance(count, Immediate) and (count.value % 32 or (arrives and count.value == 0)):
        raise binder.illegal(f"a barrier of {count} threads: expected a multiple of 32", threads)


def _arriving(
    binder: StatementBinder, number: int, threads: int | None, arrive: Arrive, arrives: bool = False
) -> Step:
    """Return lanes arrive with the operands ``a`` and ``b``, which have these places; raises Fault for
    what no barrier takes. Warps that name different barriers arrive in turn.

    No thread count, or 0 where lanes wait, stands for all of the CTA.
    """
    _check_constants(binder, number, threads, arrives)
    operands = [(binder.reader(binder.operands[number], "u32", number), "the number of the barrier")]
    if threads is not None:
        operands.append((binder.reader(binder.operands[threads], "u32", threads), "the number of threads"))
    place = _place(operands, arrives)
    varies = any(
        not isinstance(operand, Immediate) for operand in binder.operands[number : number + len(operands)]
    )

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        parts = _parts(wave, path, lanes, operands) if varies else [lanes]
        if len(parts) == 1:
            return arrive(wave, path, lanes, *place(wave, path, lanes))
        places = [place(wave, path, part) for part in parts]
        for piece, (which, count) in zip(wave.scheduler.split(path, parts), places, strict=True):
            piece.pc += not arrive(wave, piece, piece.lanes, which, count)
        return True

    return step


def _place(operands: Sequence[tuple[Reader, str]], arrives: bool) -> Arrival:
    """Return which barrier lanes mean that agree; raises Fault for what none is."""

    def place(wave: Wave, path: DivergentPath, lanes: Lanes) -> Place:
        first = int(lanes.index[0])
        values = [int(np.broadcast_to(read(wave, path), (wave.lanes,))[first]) for read, _ in operands]
        which = values[0]
        if which >= _MOST:
            raise wave.fault(wave.code[path.pc], first, f"barrier {which}: there are 0 to 15")
        if len(values) == 1:
            return which, None
        count = values[1]
        if count == 0 and not arrives:
            return which, None
        if count == 0 or count % 32:
            message = f"a barrier of {count} threads: expected a multiple of 32"
            raise wave.fault(wave.code[path.pc], first, message)
        return which, count

    return place


def _barrier(binder: StatementBinder, level: str, kind: str, aligned: str = "") -> Step:
    arrives = kind == "arrive"
    count = binder.count(2) if arrives else binder.count(1, 2)

    def arrive(wave: Wave, path: DivergentPath, lanes: Lanes, number: int, threads: int | None) -> bool:
        reason = BarrierWait(number=number, threads=threads)
        return Barriers.of(wave).arrive(wave, path, lanes, reason, waits=not arrives)

    return _arriving(binder, 0, 1 if count == 2 else None, arrive, arrives)


# --- reductions ------------------------------------------------------------------------------------


# By number of a barrier: lanes that have voted, and those that voted yes.
_BALLOTS = SideTable[dict[int, tuple[Mask, Mask]]](lambda _: {})


def _ballots(wave: Wave, number: int) -> tuple[Mask, Mask]:
    """Return the lanes that have voted at a barrier, and those that voted yes; to be changed in place."""
    ballots = _BALLOTS.of(wave)
    if number not in ballots:
        ballots[number] = np.zeros(wave.lanes, np.bool_), np.zeros(wave.lanes, np.bool_)
    return ballots[number]


# (votes of yes in each CTA, votes in each CTA) -> the result in each CTA
_RESULTS: dict[str, Callable[[Values, Values], Values]] = {
    "popc": lambda yes, voted: yes.astype(np.uint32),
    "and": lambda yes, voted: yes == voted,
    "or": lambda yes, voted: yes > 0,
}


def _reduction(
    binder: StatementBinder, level: str, red: str, name: str, aligned: str, type_name: str
) -> Step:
    """bar.red: all that arrive vote, and get the result when the barrier is complete."""
    count = binder.count(3, 4)
    write = binder.writer(binder.operands[0], type_name, 0)
    read, result = binder.reader(binder.operands[-1], "pred", count - 1), _RESULTS[name]

    def deliver(wave: Wave, path: DivergentPath, lanes: Lanes, number: int) -> None:
        yes, voted = (wave.count_of(Lanes(mask)) for mask in reversed(_ballots(wave, number)))
        write(wave, path, lanes, result(yes, voted)[wave.cta])

    def arrive(wave: Wave, path: DivergentPath, lanes: Lanes, number: int, threads: int | None) -> bool:
        voted, yes = _ballots(wave, number)
        _clear(wave, number, voted)
        voted |= lanes.mask
        np.copyto(yes, read(wave, path), where=lanes.mask)
        reason = BarrierWait(number=number, threads=threads, deliver=deliver)
        if Barriers.of(wave).arrive(wave, path, lanes, reason, waits=True):
            return True
        deliver(wave, path, lanes, number)
        return False

    return _arriving(binder, 1, 2 if count == 4 else None, arrive)


def _clear(wave: Wave, number: int, voted: Mask) -> None:
    """Forget the votes of barriers that are complete: no lane waits there any more."""
    there = Barriers.of(wave).arrived[number] > 0
    voted &= there[wave.cta]
    _ballots(wave, number)[1][~voted] = False


def _warp(binder: StatementBinder, warp: str, sync: str) -> Step:
    binder.count(1)
    members = binder.reader(binder.operands[0], "u32", 0)
    return lambda wave, path, lanes: meet(wave, path, lanes, members(wave, path))


_KINDS, _ALIGNED, _RED = ("sync", "arrive"), ("", "aligned"), ("red",)
_REDUCTIONS = ((("and", "or"), ("pred",)), (("popc",), ("u32",)))
_Version = tuple[int, int]


def _rows(opcode: str, aligned: tuple[str, ...], since: _Version) -> Iterator[Effect]:
    """Yield forms of an opcode, and those with .cta, which came with PTX 7.8."""
    for level, first in ((("",), since), (("cta",), (7, 8))):
        yield Effect(opcode=opcode, slots=(level, _KINDS, aligned), bind=_barrier, since=first)
        for names, types in _REDUCTIONS:
            slots = (level, _RED, names, aligned, types)
            yield Effect(opcode=opcode, slots=slots, bind=_reduction, since=first)


ROWS: tuple[Effect, ...] = (
    *_rows("bar", ("",), (2, 0)),
    Effect(opcode="bar", slots=(("warp",), ("sync",)), bind=_warp, since=(6, 0)),
    *_rows("barrier", _ALIGNED, (6, 0)),
)
