"""What ptxas makes of statements that touch registers of a wgmma in flight: it completes before them.

ptxas 12.9, 13.0 and 13.5 insert a wait before a statement that reads D (C7517), serialise the wgmma of the
function (C7513 to C7515, C7518), or move what is written to another register, as messages and SASS show. So
registers are those of a wgmma that completes where it is issued. Nothing is mended for another wgmma, nor for
shared memory. Matters only under schedules that let a wgmma complete later than it is issued.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from ....isa.families import multiplies_tiles
from ...run.asynchronous import ASYNCHRONY, finish_together
from ...run.convergence import Warpgroups
from ...run.pending import Pending
from ...run.wave import Record, Step, Wave
from ...state.lanes import DivergentPath, Lanes
from .wgmma import FAMILY, Completion
from .wgmma_operands import Multiplication

Numbers = frozenset[int]


def mended(code: Sequence[Record]) -> Sequence[Record]:
    """Return records of which those that touch registers of a wgmma complete it first."""
    used: dict[int, Numbers] = {}
    for record in code:
        if _multiplies(record):
            known = used.get(record.function, frozenset())
            used[record.function] = known | record.flow.values | record.flow.written
    nothing: Numbers = frozenset()
    return [_completing(record, used.get(record.function, nothing)) for record in code] if used else code


def _multiplies(record: Record) -> bool:
    return multiplies_tiles(record.statement.opcode, record.statement.modifiers)


def _completing(record: Record, used: Numbers) -> Record:
    flow = record.flow
    reads = used & (flow.values | flow.addresses | ({record.guard} if record.guard >= 0 else frozenset()))
    writes = used & flow.written
    if _multiplies(record) or not (reads or writes):
        return record
    return record.stepping(_after_wgmma(record.step, reads, writes))


def _after_wgmma(inner: Step, reads: Numbers, writes: Numbers) -> Step:
    touched = cache(partial(_touches, reads, writes))  # statements are few, and in flight many times

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
        if ASYNCHRONY.of(wave).flying:
            flying = [pending for pending in ASYNCHRONY.of(wave).flying if pending.group == FAMILY]
            touching = [pending for pending in flying if touched(_multiplication(pending))]
            if touching:
                places = Warpgroups.of(wave)
                here = (places.counts(lanes.mask) > 0).tolist()
                number = places.number
                finish_together(wave, [pending for pending in touching if here[number[pending.lane]]])
        return inner(wave, path, lanes)

    return step


def _multiplication(pending: Pending) -> Multiplication:
    assert isinstance(pending.complete, Completion)
    return pending.complete.later.wgmma


def _touches(reads: Numbers, writes: Numbers, wgmma: Multiplication) -> bool:
    """Return whether a statement reads D of a wgmma, or writes any of its registers."""
    registers = wgmma.registers
    return not reads.isdisjoint(registers["D"]) or any(
        not writes.isdisjoint(role) for role in registers.values()
    )
