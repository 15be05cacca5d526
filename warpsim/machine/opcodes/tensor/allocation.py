"""tcgen05.alloc, dealloc and relinquish_alloc_permit: columns of tensor memory, for a CTA or a pair.

A warp of each CTA of a pair must allocate and free, so each waits until the other has come; columns are at
the same place in both. A warp for which there is no room waits for a dealloc. A CTA has all columns of a
multiprocessor, unless a launch says that several CTAs are there at a time: these wait for each other. The
manual does not say which of them goes on first (the schedule chooses, and statements that waited count as
inferred), or whether a CTA that has not relinquished its permit keeps others from allocating: here it does
not. PTX ISA 9.3, section 9.7.17.7 "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....isa.features import Feature
from ....isa.warps import WARP
from ....ptx.constants import Immediate
from ...run.barriers.waits import LaneWait
from ...run.convergence import EVERYONE, together
from ...run.events import TensorColumns, observers_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ...state.tensor_cells import SIZES, Misuse
from ..effect import Effect
from ..memory.transfers import store
from ..statement_binder import Reader, StatementBinder
from .copies import check_pair, ctas_of
from .tensor_places import TENSOR_MEMORY, Place, chosen_column, common, misused

Attempt = Callable[[Wave, DivergentPath, int], LaneWait | None]  # of a warp: what it has to wait for
_ORDER = "PTX does not say which CTA of a multiprocessor gets free columns of tensor memory first"


def _holders(wave: Wave, path: DivergentPath) -> str:
    """Return what lanes wait for that find no room, and which CTAs have the columns."""
    memory, own = TENSOR_MEMORY.of(wave), int(wave.cta[path.lanes.index[0]])
    held = list[str]()
    for cta, columns in enumerate(memory.columns):
        if columns.held and (cta == own or columns in memory.columns[own].neighbours):
            ended = "" if wave.alive_of_cta[cta] else ", and has exited without tcgen05.dealloc"
            whose = f"CTA ({', '.join(map(str, wave.ctas[cta].tolist()))})"
            held.append(f"{whose}{' itself' if cta == own else ''} has {columns.stretches()}{ended}")
    return f"{_ROOM} ({'; '.join(held)})"


_ROOM = LaneWait(names="free columns of tensor memory", explain=_holders)
_PEER_ALLOCATES = LaneWait(names="tcgen05.alloc.cta_group::2 of the other CTA of the pair")
_PEER_FREES = LaneWait(names="tcgen05.dealloc.cta_group::2 of the other CTA of the pair")


def _line(wave: Wave, path: DivergentPath) -> int:
    return wave.code[path.pc].statement.location().line


def _size(binder: StatementBinder, index: int) -> Reader:
    """Return a count of columns; raises IllegalInstruction for a constant that is none."""
    operand = binder.operands[index]
    if isinstance(operand, Immediate) and operand.value not in SIZES:
        legal = ", ".join(map(str, SIZES))
        raise binder.illegal(f"an allocation of {operand} columns: expected {legal}", index)
    return binder.reader(operand, "u32", index)


def _attempted(attempt: Attempt) -> Step:
    """Return the step of warps that attempt a thing together, and wait for what an attempt returns."""

    def act(waiting: dict[int, LaneWait], wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        left = lanes.warps.tolist()
        while left:  # a warp may go on because of what one behind it has done
            outcomes = [(warp, attempt(wave, path, warp)) for warp in left]
            waiting.clear()
            waiting.update((warp, reason) for warp, reason in outcomes if reason is not None)
            left = list(waiting) if len(waiting) < len(left) else []

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        waiting, here = dict[int, LaneWait](), path.pc
        changed = together(wave, path, lanes, EVERYONE, partial(act, waiting), exited=False)
        for reason in dict.fromkeys(waiting.values()):
            mask = np.zeros(wave.lanes, np.bool_).reshape(-1, WARP)
            mask[[warp for warp, other in waiting.items() if other == reason]] = True
            path.pc = here  # lanes that do not wait for the reasons before are behind it by now
            changed = wave.scheduler.wait(path, Lanes(mask.reshape(-1)), reason, behind=False)
        return changed

    return step


def _pair(wave: Wave, path: DivergentPath, lane: int, count: int) -> tuple[int, int]:
    """Return the CTA of a lane and the other of its group, which is itself where the group is one CTA."""
    check_pair(wave, path, lane, count)
    own, ctas = int(wave.cta[lane]), ctas_of(wave, lane, count)
    return own, sum(ctas) - own if count == 2 else own


def _allocate(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    space = "shared" if "shared::cta" in modifiers else "generic"
    target, size = binder.address(0, space), _size(binder, 1)
    group = 2 if "cta_group::2" in modifiers else 1

    def attempt(wave: Wave, path: DivergentPath, warp: int) -> LaneWait | None:
        lane, columns = WARP * warp, TENSOR_MEMORY.of(wave).columns
        count = common(wave, path, size(wave, path), warp, "the number of columns")
        own, peer = _pair(wave, path, lane, group)
        try:
            columns[own].check(count)
        except Misuse as misuse:
            raise misused(wave, path, lane, str(misuse)) from None
        if not columns[own].allocating.meets(columns[peer].allocating):
            return _PEER_ALLOCATES
        first = columns[own].take(count, partial(chosen_column, wave), columns[peer], _line(wave, path))
        if first is None:
            if columns[own].neighbours:
                wave.infer(path.pc, _ORDER)
            return _ROOM
        columns[own].allocating.leave()
        wave.scheduler.wake(_PEER_ALLOCATES, wave.cta == peer)
        change = TensorColumns(path=path, lane=lane, first=first, size=count, allocates=True)
        observers_of(wave).tensor_columns(wave, change)
        every = Lanes(wave.alive_mask & (np.arange(wave.lanes) // WARP == lane // WARP))  # all store
        where = np.broadcast_to(target(wave, path), (wave.lanes,))[lane : lane + 1]
        store(
            wave, path, every, space, where.repeat(every.count), np.full((every.count, 1), first, np.uint32)
        )
        return None

    return _attempted(attempt)


def _deallocate(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    address, size = binder.reader(binder.operands[0], "b32", 0), _size(binder, 1)
    group = 2 if "cta_group::2" in modifiers else 1

    def attempt(wave: Wave, path: DivergentPath, warp: int) -> LaneWait | None:
        lane, memory = WARP * warp, TENSOR_MEMORY.of(wave)
        place = Place.of(common(wave, path, address(wave, path), warp, "the address"))
        count = common(wave, path, size(wave, path), warp, "the number of columns")
        cta, peer = _pair(wave, path, lane, group)
        try:
            if place.lane:
                raise Misuse(f"{place} is not an address that an allocation returned: its lane is 0")
            memory.columns[cta].check_held(place.column, count)
        except Misuse as misuse:
            raise misused(wave, path, lane, str(misuse)) from None
        if not memory.columns[cta].freeing.meets(memory.columns[peer].freeing):
            return _PEER_FREES
        memory.columns[cta].freeing.leave()
        wave.scheduler.wake(_PEER_FREES, wave.cta == peer)
        change = TensorColumns(path=path, lane=lane, first=place.column, size=count, allocates=False)
        observers_of(wave).tensor_columns(wave, change)
        memory.columns[cta].give_back(place.column, _line(wave, path))
        memory.forget(cta, place.column, count)
        wave.scheduler.wake(_ROOM, wave.alive_mask)
        return None

    return _attempted(attempt)


def _relinquish(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(0)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        for warp in lanes.warps.tolist():
            TENSOR_MEMORY.of(wave).columns[int(wave.cta[WARP * warp])].relinquished = _line(wave, path)

    return lambda wave, path, lanes: together(wave, path, lanes, EVERYONE, act, exited=False)


_GROUPS = ("cta_group::1", "cta_group::2")
_SYNC = (("sync",), ("aligned",))

ROWS: tuple[Effect, ...] = (
    Effect(
        opcode="tcgen05",
        slots=(("alloc",), _GROUPS, *_SYNC, ("", "shared::cta"), ("b32",)),
        bind=_allocate,
        since=(8, 6),
        feature=Feature.TCGEN05,
        together=WARP,
    ),
    Effect(
        opcode="tcgen05",
        slots=(("dealloc",), _GROUPS, *_SYNC, ("b32",)),
        bind=_deallocate,
        since=(8, 6),
        feature=Feature.TCGEN05,
        together=WARP,
    ),
    Effect(
        opcode="tcgen05",
        slots=(("relinquish_alloc_permit",), _GROUPS, *_SYNC),
        bind=_relinquish,
        since=(8, 6),
        feature=Feature.TCGEN05,
        together=WARP,
    ),
)
