"""The matrix instructions of a launch as they were executed: one event for each execution by a warp.

Knows the events of a wave; computes nothing. Memory is bounded: a launch that would record more ends in an
error that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...base.errors import Location, OperandError, SourceLine, present
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs, arrays_of, part_of
from ...isa.warps import WARP
from ...machine.run.events import MatrixExecution, Observer
from ...ptx.binding import Bound
from ...ptx.decode import bind_operands
from .matrix_events import Event
from .selection import EVERYTHING, Executions, Selection, Warps

if TYPE_CHECKING:
    from ...machine.bind.tuning import Dimensions
    from ...machine.run.wave import Record, Wave

_WHOLE = 128  # bytes of which recorded shared memory is a multiple
RECORDED_BYTES = 1 << 28  # of the registers of all events of a launch


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchEvent(Event):
    """One execution of a matrix instruction in a launch: an Event of one warp, and where it was.

    ``inputs`` and ``d`` are those of the warp (of a wgmma: of the four warps), ``(lanes, registers)``.
    ``cta`` are the coordinates of the CTA, ``warp`` is the (first) warp in it, ``index`` says which execution
    of the statement by this warp it is, from 0; ``pc`` is the place of the statement in the module, ``time``
    how many statements its CTAs had executed. ``addresses`` are those of operands in tensor memory, by
    operand.
    """

    cta: Dimensions
    warp: int
    index: int
    pc: int
    time: int
    source: SourceLine | None = None  # that the statement comes from
    addresses: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.instruction!r} at {self.where}>".replace("<<", "<").replace("> at", " at")

    @property
    def location(self) -> Location:
        """The place of the statement, and the line of the source that it comes from."""
        return replace(self.statement.location(), source=self.source)

    @property
    def line(self) -> int:
        """The line of the statement."""
        return self.statement.location().line

    @property
    def where(self) -> str:
        """Line and place, in words."""
        return f"{self.location.short}, {self.place}"

    @property
    def lane0(self) -> int:
        """The thread of the CTA that is its first lane."""
        return WARP * self.warp

    @property
    def own_warps(self) -> range:
        """The warps of the CTA that execute it: the four of a warpgroup, or a warp, perhaps by a thread."""
        return range(self.warp, self.warp + self.instruction.warps)

    @property
    def place(self) -> str:
        """CTA, warp and execution, in words."""
        own = self.own_warps
        which = f"warp {self.warp}" if len(own) == 1 else f"warps {own[0]} to {own[-1]}"
        return f"CTA ({', '.join(map(str, self.cta))}), {which}, step {self.index}"

    def __str__(self) -> str:
        return f"{self.where}: {self.instruction.mnemonic}"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Batch:
    """Executions of one statement at one time; arrays have an axis of them in front."""

    record: Record
    pc: int
    bound: Bound
    inputs: Inputs
    d: npt.NDArray[Any]
    ctas: npt.NDArray[np.int64]  # (executions, 3)
    warps: Warps  # in their CTA
    indices: npt.NDArray[np.int64]
    time: int
    order: npt.NDArray[np.int64]  # of their CTAs in the grid
    addresses: Mapping[str, int]

    def events(self) -> Iterator[tuple[tuple[int, int, int], LaunchEvent]]:
        """Yield each event with its sort key: CTA, time, warp."""
        source = self.record.statement.location().source
        for number, (cta, warp, index) in enumerate(
            zip(self.ctas.tolist(), self.warps.tolist(), self.indices.tolist(), strict=True)
        ):
            event = LaunchEvent(
                statement=self.record.statement,
                source=source,
                bound=self.bound,
                inputs=part_of(self.inputs, number),
                d=self.d[number],
                warps=(0,),
                cta=(cta[0], cta[1], cta[2]),
                warp=warp,
                index=index,
                pc=self.pc,
                time=self.time,
                addresses=self.addresses,
            )
            yield (int(self.order[number]), self.time, warp), event


class Recorder(Observer):
    """An observer that keeps the matrix instructions of a launch that are selected.

    ``limit_bytes`` bounds what is kept; more raises OperandError, which says how to record less.
    """

    def __init__(self, selection: Selection = EVERYTHING, limit_bytes: int = RECORDED_BYTES) -> None:
        self.selection = selection
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self._batches: list[_Batch] = []
        self._executions = Executions()
        self._bound: dict[tuple[int, int | None], Bound] = {}  # by statement and instruction descriptor
        self._lines: dict[int, int] = {}

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Keep what a matrix instruction read and computed, of the warps that are selected."""
        pc, warps, instruction = execution.pc, execution.warps, execution.instruction
        numbers = self._executions.numbers(wave, pc, warps)
        key = pc, instruction.descriptor
        if key not in self._bound:
            self._lines[pc] = execution.record.statement.location().line
            self._bound[key] = bind_operands(instruction, execution.record.statement, None)
        chosen = self.selection.chosen(wave, self._lines[pc], warps, numbers, instruction.warps)
        if not chosen.any():
            return
        ctas = wave.ctas[warps[chosen] // wave.warps]
        batch = _Batch(
            record=execution.record,
            pc=pc,
            bound=self._bound[key],
            inputs=part_of(_trimmed(instruction, execution.inputs), chosen),
            d=execution.d[chosen],
            ctas=ctas,
            warps=warps[chosen] % wave.warps,
            indices=numbers[chosen],
            time=wave.scheduler.statements,
            order=ctas @ np.array([1, wave.grid[0], wave.grid[0] * wave.grid[1]]),
            addresses=execution.addresses,
        )
        self._keep(batch)

    def _keep(self, batch: _Batch) -> None:
        """Keep a batch; raises OperandError where that would be too much."""
        self.bytes += batch.d.nbytes + sum(array.nbytes for array in arrays_of(batch.inputs))
        if self.bytes > self.limit_bytes:
            count = sum(len(batch.warps) for batch in self._batches)
            raise OperandError(
                f"the recording has more than {self.limit_bytes:,} bytes after {count:,} matrix "
                f"instructions: select fewer, by cta=, warp=, line= or step=",
                batch.record.statement.location(),
            )
        self._batches.append(batch)

    def events(self) -> tuple[LaunchEvent, ...]:
        """Return what was recorded: CTA by CTA, in the order of time, warp by warp."""
        found = [entry for batch in self._batches for entry in batch.events()]
        return tuple(event for _, event in sorted(found, key=lambda entry: entry[0]))


def _trimmed(instruction: Instruction, inputs: Inputs) -> Inputs:
    """Return the inputs without what lies in the shared memory of each CTA behind the last byte read."""
    tiles = instruction.tiles(inputs)
    if inputs.shared is None or not tiles:
        return inputs
    words = ((tile, present(inputs.descriptor(operand), operand)) for operand, tile in tiles.items())
    reads = ((tile, word) for tile, each in words for word in np.unique(each).tolist())
    end = max(tile.last_byte(word, inputs, instruction.product) for tile, word in reads)
    ctas = max(tile.ctas for tile in tiles.values())
    memories = inputs.shared.reshape(*inputs.shared.shape[:-1], ctas, -1)
    kept = memories[..., : -(-end // _WHOLE) * _WHOLE]
    return replace(inputs, shared=kept.reshape(*inputs.shared.shape[:-1], -1))
