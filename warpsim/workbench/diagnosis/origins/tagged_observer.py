"""An observer of a run on tags: operands of matrix instructions, hashes of which thread executes what.

Knows waves and lanes; does not know what tags say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.warps import WARP
from ....machine.opcodes.tensor.tensor_products import Given, Multiplication
from ....machine.run.engines import DEFAULT_MODES, Modes
from ....machine.run.events import MatrixExecution, Observer, helper
from ....machine.run.wave import Record, Step, Wave
from ....machine.state.lanes import DivergentPath, Lanes
from ....machine.state.memory_access import MemoryAccess
from ....machine.state.side_tables import SideTable
from .tensor_tags import places_of_tiles, settings_of, tags_of

Words = npt.NDArray[Any]
Numbers = npt.NDArray[np.intp]
Sums = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SALT = np.uint64(0xD1B54A32D192ED03)
_KEPT = 32  # executions of tcgen05.mma of which the shared memory is kept, the first
_SAMPLED = 8  # places of each axis but the last by which words are looked up
_LOOKED_AT = 8  # arrays of words with the same in these places
_BYTE = 8  # bits: elements of fewer have no tag of their own


@dataclass
class Event:
    """One statement executed by some warps."""

    pc: int
    record: Record
    instruction: Instruction
    inputs: Inputs
    places: npt.NDArray[np.int64]
    tiles: frozenset[str]  # operands that are given as matrices: in shared memory, or fragments of wmma
    number: int  # in the order of execution


@dataclass
class Watch(Observer):
    """An observer of one run: matrix instructions, and hashes of which thread executed what where.

    ``executed`` and ``accessed``, by statement, add up hashes, so that the order of CTAs does not count.
    """

    result: int
    executed: list[int]
    accessed: list[int]
    events: list[Event] = field(default_factory=list)
    last: Lanes | None = None  # many consecutive statements are executed by the same lanes
    last_sum: int = 0
    pc: int = -1  # what is being executed
    given: dict[object, list[Words]] = field(default_factory=dict)  # to any statement, each once
    stood: tuple[Wave, Numbers, npt.NDArray[np.int64]] | None = None  # the last places, and whose they are

    @helper
    def registers(self, wave: Wave, warps: Numbers, instruction: Instruction, inputs: Inputs) -> Words:
        """Keep an executed mma; return a D of tags: nothing is computed."""
        if instruction.lanes == WARP:
            self._keep(wave, warps, self._now(wave), instruction, inputs, frozenset())
        read = inputs.registers.get("a", inputs.b_descriptor)
        count = present(read, "A or B").shape[0]
        word, (lanes, size) = np.dtype(f"u{instruction.register_bits // 8}"), instruction.held("d").shape
        return np.full((size, count, lanes), self._byte(word), word).transpose(1, 2, 0)

    @helper
    def fragments(
        self, wave: Wave, warps: Numbers, instruction: Instruction, codes: Mapping[str, Words]
    ) -> Words:
        """Keep an executed wmma, whose fragments are matrices; return a D of tags."""
        if min(instruction.a.bits, instruction.b.bits) >= _BYTE:
            given = Inputs(registers=dict(codes))
            self._keep(wave, warps, self._now(wave), instruction, given, frozenset(codes))
        return np.full_like(codes["c"], self._byte(codes["c"].dtype))

    def descriptors(self, pc: int, role: str, words: Words) -> Words:
        """Return descriptors as they are."""
        return words

    @helper
    def tensor_operands(self, wave: Wave, pc: int, lane: int, given: Given) -> Given:
        """Return the operands of tcgen05.mma as they are."""
        return given

    @helper
    def tensor_product(self, wave: Wave, work: Multiplication) -> Words:
        """Keep an executed tcgen05.mma, whose operands are matrices and cells; return a D of tags."""
        form = work.made.instruction
        tags = {role: words[None] for role, words in tags_of(wave, work).items()}
        kept = replace(settings_of(work), registers=tags)
        if len(self.events) < _KEPT and (work.a is not None or work.b is not None):
            kept = replace(kept, **places_of_tiles(wave, work))
        warps, tiles = np.array([work.lane // WARP]), frozenset("abc") & frozenset(tags)
        self._keep(wave, warps, (work.pc, work.record), form, kept, tiles)
        return np.full(form.product.matrix_shape("d"), self._byte(form.d.code_dtype), form.d.code_dtype)

    def _byte(self, word: np.dtype[Any]) -> int:
        """Return a word of tags of D."""
        return int(self.result) * int(0x0101010101010101 & (1 << 8 * word.itemsize) - 1)

    def step(self, pc: int, before: Step) -> Step:
        """Return a step that is noted, and then done as before."""

        def noted(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            if wave.modes is DEFAULT_MODES:
                wave.modes = Modes(interposed=self)
            self.pc = pc
            if lanes is not self.last:
                self.last, self.last_sum = lanes, _sum_of(_threads(wave, lanes))
            self.executed[pc] += self.last_sum
            return before(wave, path, lanes)

        return noted

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes read or write: where counts."""
        inner = wave.memories.shared_base[access.lanes.index] if access.memory is wave.memories.shared else 0
        if np.size(access.offsets) == access.lanes.count:
            where = np.asarray(access.offsets - inner, np.uint64) * _SALT
            self.accessed[access.path.pc] += _sum_of(_threads(wave, access.lanes) + where)

    store = atomic = load

    def _now(self, wave: Wave) -> tuple[int, Record]:
        return self.pc, wave.code[self.pc]

    def _keep(
        self,
        wave: Wave,
        warps: Numbers,
        statement: tuple[int, Record],
        form: Instruction,
        inputs: Inputs,
        tiles: frozenset[str],
    ) -> None:
        if self.stood is None or self.stood[0] is not wave or not np.array_equal(self.stood[1], warps):
            self.stood = wave, warps, places_of(wave, warps)
        own = inputs.with_words({role: self._own(words) for role, words in inputs.registers.items()})
        self.events.append(Event(*statement, form, own, self.stood[2], tiles, len(self.events)))

    def _own(self, words: Words) -> Words:
        """Return words ``(executions, lanes, registers)`` to keep: those of before, where they are equal.

        They lie in memory as they are given.
        """
        sample = words[:: max(len(words) // _SAMPLED, 1), ::_SAMPLED]
        alike = self.given.setdefault((words.shape, words.dtype, sample.tobytes()), [])
        for known in alike[-_LOOKED_AT:]:
            if np.array_equal(known, words):
                return known
        alike.append(words.copy(order="K"))
        return alike[-1]


class GroupWatch(Watch):
    """The same for a module with wgmma, whose tiles lie in shared memory."""

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Keep an executed wgmma; tiles in shared memory are kept as registers would be."""
        if execution.record.statement.opcode != "wgmma":
            return
        inputs = execution.inputs
        tiles = dict(_tiles(execution.instruction, inputs))
        kept = replace(inputs, registers=inputs.registers | tiles, shared=None)
        statement = execution.pc, execution.record
        self._keep(wave, execution.warps, statement, execution.instruction, kept, frozenset(tiles))


def places_of(wave: Wave, warps: Numbers) -> npt.NDArray[np.int64]:
    """Return ``(executions, 4)``: x, y, z of the CTA, and the warp in it."""
    lanes = warps * WARP
    return np.column_stack([wave.ctas[wave.cta[lanes]], wave.thread[lanes] // WARP])


def _tiles(instruction: Instruction, inputs: Inputs) -> Iterator[tuple[str, Words]]:
    """Yield A and B ``(executions, rows along m or n, k)`` as far as they lie in shared memory."""
    for operand in instruction.tiles(inputs):
        codes = instruction.gathered_tile(operand, inputs)
        yield operand, np.swapaxes(codes, -1, -2) if operand == "b" else codes


def _threads(wave: Wave, lanes: Lanes) -> Sums:
    """Return ``(lanes,)``: a number for each thread of the grid."""
    return _THREAD_NUMBERS.of(wave)[lanes.index]


def _numbers_of_threads(wave: Wave) -> Sums:
    x, y, z = wave.ctas[wave.cta].T
    cta = x + wave.grid[0] * (y + wave.grid[1] * z)
    numbers: Sums = (cta * 1024 + wave.thread + 1).astype(np.uint64)
    return numbers


_THREAD_NUMBERS = SideTable(_numbers_of_threads)


def _sum_of(numbers: Sums) -> int:
    """Return a sum that differs for other numbers."""
    mixed: Sums = numbers * _ODD
    mixed ^= mixed >> np.uint64(29)
    mixed *= _SALT
    return int((mixed ^ mixed >> np.uint64(32)).sum(dtype=np.uint64))
