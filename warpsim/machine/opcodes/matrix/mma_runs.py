"""Batches of mma: consecutive, independent statements of the same form, executed as one batch.

Kernels multiply a fragment of A by many fragments of B in a row. A batch has the bits of separate execution.
A statement that may need a message (metadata, unwritten registers, observers) is executed separately. Knows
how registers become the inputs of a batch; does not know paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ....base.errors import Location, NotModelled, UndefinedBehavior
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.warps import WARP
from ....ptx.binding import WarpBound
from ...bind.members import Member
from ...run.convergence import EVERYONE
from ...run.events import Observer, observers_of
from ...run.wave import Wave
from ...state.lanes import DivergentPath, Frame, Values
from ...state.undefined_metadata import UNDEFINED_METADATA, MetadataOperand
from .warpwide import Roles

_MOST = 1 << 15  # lanes of a batch: more are slower, as operands leave the cache


class _Given(NamedTuple):
    """What a member has of its own: the registers of its sources side by side, and of D; and what returns
    where its metadata stands.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    metadata: Callable[[], Location]


class _Kind(NamedTuple):
    """What members have in common."""

    form: Instruction
    selector: int


def member_of(
    bound: WarpBound, sources: Roles, targets: Sequence[int | None], metadata: Callable[[], Location]
) -> Member | None:
    """Return a statement as a member of runs; None where it has constants, or a sink among its registers."""
    written = [target for target in targets if target is not None]
    if bound.ids or not sources.numbers or len(written) < len(targets):
        return None
    kind, given = _Kind(bound.instruction, bound.selector), _Given(sources.numbers, (*written,), metadata)
    execute = partial(_execute_batch, kind, sources)
    return Member(kind, frozenset(sources.numbers), frozenset(written), given, execute)


def _execute_batch(
    kind: _Kind, sources: Roles, wave: Wave, path: DivergentPath, members: Sequence[Member]
) -> bool:
    """Execute members at once, as many as a batch holds; false, with nothing changed, where it cannot be."""
    frame, lanes = path.frame, path.lanes
    if not lanes.whole or lanes.count != wave.alive or wave.scheduler.waiting:
        return False
    if frame.partial and not all(frame.partial.keys().isdisjoint(member.reads) for member in members):
        return False
    if wave.modes.given or wave.modes.interposed or observers_of(wave).hear(Observer.matrix):
        return False
    each, found = max(_MOST // lanes.count, 1), list[Values]()
    for first in range(0, len(members), each):
        part = members[first : first + each]
        inputs = _inputs(wave, kind, sources, frame, part)
        d = None if inputs is None else _compute(wave, kind, inputs)
        if inputs is None or d is None:
            return False
        found.append(_record_flow(wave, kind.form, inputs, part, path.pc + first, d))
    for _ in members:
        observers_of(wave).met(wave, lanes, EVERYONE, False)
    for place, d in enumerate(found):
        _write(frame, members[place * each : (place + 1) * each], d)
    return True


def _inputs(
    wave: Wave, kind: _Kind, sources: Roles, frame: Frame, members: Sequence[Member]
) -> Inputs | None:
    """Return the operands of members, ``(members * warps, 32, registers)``; None where some are unwritten."""
    columns = zip(*(each.given.sources for each in members), strict=True)
    held = [frame.values[number] for column in columns for number in column]
    if any(value is None for value in held):
        return None
    words = np.concatenate(held, axis=None, dtype=sources.dtype, casting="unsafe")
    parts = sources.parts_of(words.reshape(len(sources.numbers), -1, WARP).transpose(1, 2, 0))
    return Inputs.plain(parts, kind.selector, wave.modes.literal)


def _compute(wave: Wave, kind: _Kind, inputs: Inputs) -> Values | None:
    """Return D of a batch; None where something has to be said of one of its executions."""
    try:
        return wave.modes.engine(kind.form, inputs)
    except (UndefinedBehavior, NotModelled):
        return None


def _record_flow(
    wave: Wave, form: Instruction, inputs: Inputs, members: Sequence[Member], pc: int, d: Values
) -> Values:
    """Return D, once metadata that PTX leaves undefined has been noted, of the first member at ``pc``."""
    if not form.sparse or not inputs.literal:
        return d
    operands = [MetadataOperand(pc + place, member.given.metadata) for place, member in enumerate(members)]
    warps = np.arange(len(d) // len(members))
    return UNDEFINED_METADATA.of(wave).follow_registers(wave, form, inputs, warps, operands, d)


def _write(frame: Frame, members: Sequence[Member], d: Values) -> None:
    """Write D ``(members * warps, 32, registers)`` to the registers of each member."""
    columns = np.ascontiguousarray(d.transpose(2, 0, 1)).reshape(d.shape[2], len(members), -1)
    for place, member in enumerate(members):
        for number, column in zip(member.given.targets, columns, strict=True):
            frame.values[number] = column[place]
            frame.partial.pop(number, None)
