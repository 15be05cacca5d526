"""setmaxnreg: warps give registers to their CTA, and take them (PTX ISA 9.1, section 9.7.20.5).

setmaxnreg.dec.sync.aligned.u32  count;         setmaxnreg.inc.sync.aligned.u32  count;

No value depends on it: registers are as many as are declared. It decides when a warp waits: .inc waits until
the warps of its CTA have given enough back. The warps of a warpgroup execute the same statement. How many
registers a warp begins with follows from the directives and the largest .inc, by the rule of ptxas 13.0
(measured). Where the directives do not say, the statement "may have no effect": ptxas ignores it, but not
where a wgmma needs more registers than .maxntid leaves. Here it has none; observers are notified
(``setmaxnreg_ignored``, ``setmaxnreg`` of a warp that moves registers or does not, ``setmaxnreg_apart`` of
two warps that do so in other places).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....base.errors import UndefinedBehavior
from ....isa.architectures import Limits
from ....isa.features import Feature
from ....isa.warps import WARP
from ....ptx.constants import Immediate
from ...bind.tuning import Tuning
from ...run.barriers.mbarrier import undefined
from ...run.barriers.waits import LaneWait
from ...run.convergence import EVERYONE, together
from ...run.events import observers_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ...state.side_tables import SideTable
from ..effect import Effect
from ..statement_binder import StatementBinder

LEAST, MOST, STEP = 24, 256, 8
_WARPS = 4  # of a warpgroup; also the quarters of a multiprocessor, over which warps are dealt


def registers_at_entry(tuning: Tuning, increase: int, limits: Limits) -> int | None:
    """Return the registers of a lane at entry, as ptxas reports them; None where the directives do not say.

    ``increase`` is the largest count of any .inc of the kernel, or 0. Each quarter of the
    multiprocessor has its own registers, and its share of the warps of .minnctapersm CTAs.
    """
    bounds = [] if tuning.most_registers is None else [max(tuning.most_registers, LEAST)]
    threads = tuning.block[0] * tuning.block[1] * tuning.block[2] if tuning.block else tuning.most_threads
    ctas, most = tuning.least_ctas or 0, limits.multiprocessor_threads
    if threads and (ctas * threads > most or ctas > limits.multiprocessor_ctas):
        ctas = 0  # ptxas ignores the directive
    if threads and not bounds and not ctas:
        ctas = int(2 * threads > most)  # no second CTA fits
    if threads and ctas:
        warps = -(-ctas * -(-threads // WARP) // _WARPS)
        bounds.append(limits.registers // (_WARPS * WARP * warps) // STEP * STEP)
    return min(*bounds, increase or MOST, limits.thread_registers) if bounds else None


class _Asked(NamedTuple):
    """A statement that a warp has executed."""

    pc: int
    act: str
    registers: int


class Pool:
    """Registers of a wave: ``held`` (warps,) by each lane of a warp, ``free`` (ctas,) as many in the pool.

    ``done`` has, for each warp, the statements that it has executed, by their places and what they ask for.
    """

    def __init__(self, wave: Wave, begun: int) -> None:
        self.held = np.full(wave.lanes // WARP, begun)
        self.free = np.zeros(len(wave.ctas), np.int64)
        self.done: list[list[_Asked]] = [[] for _ in self.held]
        wave.leaving.append(self.left)

    @classmethod
    def of(cls, wave: Wave) -> Pool | None:
        """Return the pool of a wave; None where the registers with which its lanes begin are not known."""
        return _POOL.of(wave)

    def group(self, wave: Wave, warp: int) -> range:
        """Return the warps of the warpgroup of a warp."""
        first = warp - warp % wave.warps % _WARPS
        return range(first, min(first + _WARPS, warp - warp % wave.warps + wave.warps))

    def change(self, wave: Wave, path: DivergentPath, warp: int, act: str, count: int) -> bool:
        """Return a warp changes its registers; false where it has to wait. Raises UndefinedBehavior."""
        held, cta = int(self.held[warp]), warp // wave.warps
        if (count > held) if act == "dec" else (count < held):
            why = (
                f"the warp has {held} registers a lane: .{act} {'raises' if count > held else 'lowers'} them"
            )
            raise undefined(wave, path, warp * WARP, why)
        asked = _Asked(path.pc, act, count)
        self._check_order(wave, path, warp, asked, moves=count != held)
        if count - held > self.free[cta]:
            return False
        self.free[cta] -= count - held
        self.held[warp] = count
        self.done[warp].append(asked)
        observers_of(wave).setmaxnreg(wave, path, warp, count != held)
        return True

    def _check_order(self, wave: Wave, path: DivergentPath, warp: int, asked: _Asked, *, moves: bool) -> None:
        """Check that the warps of a warpgroup execute the same statements, in order; raises
        UndefinedBehavior.

        The checks report what has no effect on others: statements at other places that ask for the same or
        give registers back, and those that ask for the registers that a warp has, which ``moves`` none.
        """
        number = len(self.done[warp])
        for other in self.group(wave, warp):
            done = self.done[other]
            if len(done) > number and done[number] != asked:
                before = done[number]
                if before.act == asked.act and (before.registers == asked.registers or asked.act == "dec"):
                    observers_of(wave).setmaxnreg_apart(wave, path, warp, other, before.pc)
                    continue
                line = wave.code[before.pc].statement.location().line
                why = f"warp {other % wave.warps} of its warpgroup has executed that of line {line} instead"
                raise undefined(wave, path, warp * WARP, why)
            if moves and len(done) < number and wave.alive_mask[other * WARP : (other + 1) * WARP].any():
                line = wave.code[self.done[warp][-1].pc].statement.location().line
                why = f"warp {other % wave.warps} of its warpgroup has yet to execute that of line {line}: "
                raise undefined(wave, path, warp * WARP, why + "a barrier of the warpgroup is missing")

    def left(self, wave: Wave, lanes: Lanes) -> None:
        """Check that exited warps of a warpgroup executed equally many; raises UndefinedBehavior."""
        for warp in np.unique(lanes.index // WARP).tolist():
            group = self.group(wave, warp)
            if wave.alive_mask[group.start * WARP : group.stop * WARP].any():
                continue
            longest = max(group, key=lambda warp: len(self.done[warp]))
            for other in group:
                if len(self.done[other]) < len(self.done[longest]):
                    statement = wave.code[self.done[longest][len(self.done[other])].pc].statement
                    message = (
                        f"{statement.mnemonic}: warp {longest % wave.warps} has executed it, but warp "
                        f"{other % wave.warps} of its warpgroup has not [{wave.describe_lane(other * WARP)}]"
                    )
                    raise UndefinedBehavior(message, statement.location())


def _pool(wave: Wave) -> Pool | None:
    begun = wave.entry.lane_registers
    return None if begun is None else Pool(wave, -(-begun // STEP) * STEP)  # they are allocated in steps


_POOL = SideTable(_pool)


def _short(wave: Wave, path: DivergentPath) -> str:
    """Return what warps wait for that want registers."""
    pool = Pool.of(wave)
    assert pool is not None
    warp = int(path.lanes.index[0]) // WARP
    wanted = wave.code[path.pc].statement.operand_text
    free = int(pool.free[warp // wave.warps])
    return (
        f"{wanted} registers a lane: the warp has {pool.held[warp]}, and the CTA's warps have given back "
        f"{free} more for one warp"
    )


_REGISTERS = LaneWait(names="registers that other warps give back", explain=_short)


def _set(binder: StatementBinder, act: str, sync: str, aligned: str, kind: str) -> Step:
    count = _checked(binder)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        pool, short = Pool.of(wave), list[int]()

        def change(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
            if pool is None:
                observers_of(wave).setmaxnreg_ignored(wave, path, lanes)
                return
            warps = np.unique(lanes.index // WARP).tolist()
            short.extend(warp for warp in warps if not pool.change(wave, path, warp, act, count))
            if act == "dec":
                wave.scheduler.wake(_REGISTERS, np.ones(wave.lanes, np.bool_))

        if together(wave, path, lanes, EVERYONE, change):
            return True
        if not short:
            return False
        waiting = path.lanes.mask & np.isin(np.arange(wave.lanes) // WARP, short)
        return wave.scheduler.wait(path, Lanes(waiting), _REGISTERS, behind=False)

    return step


def _checked(binder: StatementBinder) -> int:
    """Return the number of registers; raises IllegalInstruction for what it cannot be."""
    binder.count(1)
    given = binder.operands[0]
    if not isinstance(given, Immediate) or given.kind != "integer":
        raise binder.illegal(f"expected a constant, not '{given}'", 0)
    count = given.value
    if not LEAST <= count <= MOST or count % STEP:
        message = f"a count of {given}: expected {LEAST} to {MOST} in steps of {STEP}"
        raise binder.illegal(message, 0)
    return count


ROWS: tuple[Effect, ...] = tuple(
    Effect(
        opcode="setmaxnreg",
        slots=((act,), ("sync",), ("aligned",), ("u32", "s32")),
        bind=_set,
        since=(8, 0),
        feature=Feature.SETMAXNREG,
    )
    for act in ("inc", "dec")
)
