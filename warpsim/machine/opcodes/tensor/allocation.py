"""tcgen05.alloc, dealloc and relinquish_alloc_permit: columns of tensor memory, for a CTA or a pair.

Each CTA of a pair allocates columns of its own, at the same place. A warp for which there is no room waits
for a dealloc. CTAs do not share the columns of a multiprocessor: each has all of them. PTX ISA 9.3, section
9.7.17.7 "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit".
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ....isa.features import Feature
from ....isa.warps import WARP
from ....ptx.constants import Immediate
from ...run.convergence import EVERYONE, together
from ...run.events import TensorColumns, observers_of
from ...run.waits import LaneWait
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ...state.tensor_cells import SIZES, Misuse
from ..effect import Effect
from ..memory.transfers import store
from ..statement_binder import Reader, StatementBinder
from .tensor_places import TENSOR_MEMORY, Place, chosen_column, common, misused

_ROOM = LaneWait(names="free columns of tensor memory")


def _line(wave: Wave, path: DivergentPath) -> int:
    return wave.code[path.pc].statement.location().line


def _size(binder: StatementBinder, index: int) -> Reader:
    """Return a count of columns; raises IllegalInstruction for a constant that is none."""
    operand = binder.operands[index]
    if isinstance(operand, Immediate) and operand.value not in SIZES:
        legal = ", ".join(map(str, SIZES))
        raise binder.illegal(f"an allocation of {operand} columns: it is {legal}", index)
    return binder.reader(operand, "u32", index)


def _allocate(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    space = "shared" if "shared::cta" in modifiers else "generic"
    target, size = binder.address(0, space), _size(binder, 1)

    def act(blocked: list[int], wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        for warp in lanes.warps.tolist():
            count = common(wave, path, size(wave, path), warp, "the number of columns")
            own = TENSOR_MEMORY.of(wave).columns[int(wave.cta[WARP * warp])]
            try:
                own.check(count)
            except Misuse as misuse:
                raise misused(wave, path, WARP * warp, str(misuse)) from None
            first = own.take(count, partial(chosen_column, wave), _line(wave, path))
            if first is None:
                blocked.append(warp)
                continue
            change = TensorColumns(path=path, lane=WARP * warp, first=first, size=count, allocates=True)
            observers_of(wave).tensor_columns(wave, change)
            mask = np.zeros(wave.lanes, np.bool_)
            mask[WARP * warp] = True
            where = np.broadcast_to(target(wave, path), (wave.lanes,))[WARP * warp : WARP * warp + 1]
            store(wave, path, Lanes(mask), space, where, np.array([[first]], np.uint32))

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        blocked: list[int] = []
        changed = together(wave, path, lanes, EVERYONE, partial(act, blocked), exited=False)
        if not blocked:
            return changed
        mask = np.zeros(wave.lanes, np.bool_).reshape(-1, WARP)
        mask[blocked] = True
        return wave.scheduler.wait(path, Lanes(mask.reshape(-1)), _ROOM, behind=False)

    return step


def _deallocate(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    address, size = binder.reader(binder.operands[0], "b32", 0), _size(binder, 1)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        memory = TENSOR_MEMORY.of(wave)
        for warp in lanes.warps.tolist():
            place = Place.of(common(wave, path, address(wave, path), warp, "the address"))
            count = common(wave, path, size(wave, path), warp, "the number of columns")
            cta = int(wave.cta[WARP * warp])
            try:
                if place.lane:
                    raise Misuse(f"{place} is no address that an allocation returned: its lane is 0")
                memory.columns[cta].check_held(place.column, count)
            except Misuse as misuse:
                raise misused(wave, path, WARP * warp, str(misuse)) from None
            change = TensorColumns(
                path=path, lane=WARP * warp, first=place.column, size=count, allocates=False
            )
            observers_of(wave).tensor_columns(wave, change)
            memory.columns[cta].give_back(place.column, _line(wave, path))
            memory.forget(cta, place.column, count)
            wave.scheduler.wake(_ROOM, wave.cta == cta)

    return lambda wave, path, lanes: together(wave, path, lanes, EVERYONE, act, exited=False)


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
