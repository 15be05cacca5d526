"""Executions of matrix instructions, kept with the bytes of arrays that their operands are.

D is computed, since it may decide what follows; metadata without a meaning is no error, but makes zeros of D.
The key of D says that it is a result. Knows instructions and operands; does not know statements that move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import NotModelled, UndefinedBehavior, present
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs, ScaleSelectors
from ....isa.warps import WARP
from ....machine.opcodes.matrix.wmma import product
from ....machine.opcodes.tensor.tensor_products import Given, Multiplication
from ....machine.run.engines import executions_of
from ....machine.run.events import MatrixExecution
from ....machine.run.wave import Record, Wave
from ....machine.state.lanes import Frame, Lanes, Values
from ....observe.algebra.fragment_keys import Fragments, operands_of
from ....observe.algebra.key_store import KeyStore, Turn
from ....observe.algebra.keys.key_cells import Cells
from ....observe.algebra.matrix_keys import Matrices, MatrixOperands
from ....observe.algebra.rules.keyed_statements import Statement
from ....sums.execution.pipeline import execute_inputs, execute_operands, rule_for
from .byte_keys import ByteKeys
from .given_operands import Event, Shared
from .operand_bytes import OperandBytes, SourceBytes

Numbers = npt.NDArray[np.intp]
_KEPT = 32  # executions of tcgen05.mma of which the shared memory is kept, the first
_BYTE = 8  # bits: elements of fewer are not looked up in fragments of wmma
_REFUSED = (UndefinedBehavior, NotModelled)


def places_of(wave: Wave, warps: Numbers) -> npt.NDArray[np.int64]:
    """Return ``(executions, 4)``: x, y, z of the CTA, and the warp in it."""
    lanes = warps * WARP
    return np.column_stack([wave.ctas[wave.cta[lanes]], wave.thread[lanes] // WARP])


class KeptProducts:
    """What computes the matrix instructions of a launch; ``events`` are all of them, in their order.

    ``now`` is the statement that is executed, and its frame.
    """

    def __init__(self, store: KeyStore, keys: ByteKeys) -> None:
        self.store, self.operands = store, OperandBytes(store, keys)
        self.result = int(keys.of(np.array([keys.result]))[0])
        self.events = list[Event]()
        self.now: tuple[int, Frame | None] = (-1, None)
        self._shared = Shared()
        self._results = dict[tuple[int, int], Cells]()
        self._stood: tuple[Wave, Numbers, npt.NDArray[np.int64]] | None = None  # the last places, and whose

    # --- what computes ---

    def registers(self, wave: Wave, warps: Numbers, form: Instruction, inputs: Inputs) -> Values:
        """Return D of mma and wgmma."""
        try:
            return execute_inputs(form, inputs)
        except _REFUSED:
            lanes, size = form.held("d").shape
            shape = size, *executions_of(inputs), lanes
            return np.zeros(shape, f"u{form.register_bits // 8}").transpose(1, 2, 0)

    def fragments(self, wave: Wave, warps: Numbers, form: Instruction, codes: Mapping[str, Values]) -> Values:
        """Keep an executed wmma; return codes of D."""
        if min(form.a.bits, form.b.bits) >= _BYTE:
            pc, frame = self.now
            statement, held = self.store.statement(wave, pc), present(frame, "a frame")
            seen = self._fragments(wave, held, statement, warps)
            if seen["c"].bytes.shape[-1] != codes["c"].dtype.itemsize:  # C is converted
                seen.pop("c")
            record = wave.code[pc]
            self.keep(wave, warps, (pc, record, form), Inputs(registers={}), seen, tiles=frozenset(seen))
        try:
            return product(execute_inputs, form, codes["a"], codes["b"], codes["c"])
        except _REFUSED:
            return np.zeros_like(codes["c"])

    def _fragments(
        self, wave: Wave, frame: Frame, statement: Statement, warps: Numbers
    ) -> dict[str, SourceBytes]:
        """Return A, B as its columns, and C of wmma."""
        _, *held = operands_of(statement, self.store.target)
        return {
            role: self.operands.of_fragment(wave, frame, statement.numbers(index), held[index - 1], warps)
            for index, role in enumerate("abc", 1)
        }

    def descriptors(self, pc: int, role: str, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return descriptors as they are."""
        return words

    def tensor_operands(self, wave: Wave, pc: int, lane: int, given: Given) -> Given:
        """Return the operands of tcgen05.mma as they are."""
        return given

    def tensor_product(self, wave: Wave, work: Multiplication) -> Values:
        """Keep an executed tcgen05.mma, whose operands are matrices and cells; return codes of D."""
        form, descriptor, given = work.made.instruction, work.made.descriptor, work.given
        ids = ScaleSelectors(byte_id_a=descriptor.scale_a_id, byte_id_b=descriptor.scale_b_id)
        settings = Inputs(
            registers={}, selector=descriptor.selector, scale_selectors=ids, scale_d=given.enabled
        )
        seen, more = self.operands.of_tensor(wave, work), dict[str, Any]()
        if len(self.events) < _KEPT:
            words = {"b": given.b} if given.a_in_memory else {"a": given.a, "b": given.b}
            more = {"memory": self.operands.shared(wave, work.ctas[0]), "words": words}
        tiles, warps = frozenset("abc") & frozenset(seen), np.array([work.lane // WARP])
        self.keep(wave, warps, (work.pc, work.record, form), settings, seen, tiles=tiles, **more)
        try:
            return execute_operands(work.operands(wave), rule_for(form))
        except _REFUSED:
            return np.zeros(form.product.matrix_shape("d"), form.d.code_dtype)

    # --- what is kept ---

    def keep(
        self,
        wave: Wave,
        warps: Numbers,
        statement: tuple[int, Record, Instruction],
        settings: Inputs,
        seen: Mapping[str, SourceBytes],
        **more: Any,
    ) -> None:
        """Keep an execution; ``settings`` are what the statement says besides operands."""
        if self._stood is None or self._stood[0] is not wave or not np.array_equal(self._stood[1], warps):
            self._stood = wave, warps, places_of(wave, warps)
        event = Event(
            pc=statement[0],
            record=statement[1],
            instruction=statement[2],
            selector=settings.selector,
            scale_selectors=settings.scale_selectors,
            ignores_c=not settings.scale_d,
            places=self._stood[2],
            seen={role: SourceBytes(self._shared.own(each.bytes), each.keys) for role, each in seen.items()},
            number=len(self.events),
            **more,
        )
        self.events.append(event)

    def write(self, turn: Turn, lanes: Lanes, numbers: Sequence[int], width: int) -> None:
        """Let registers hold D."""
        wave = turn.wave
        if (width, wave.lanes) not in self._results:
            self._results[width, wave.lanes] = Cells.of(
                np.full(wave.lanes, self.result, np.uint64), "u", width
            )
        for number in numbers:
            self.store.put(turn, number, self._results[width, wave.lanes], lanes)


class KeptMatrices(Matrices):
    """The matrix instructions of an observer, whose products have one key: that of a result."""

    def __init__(self, store: KeyStore, products: KeptProducts) -> None:
        super().__init__(store)
        self.products = products
        self.fragments = _Fragments(store, products)

    def multiplied(self, wave: Wave, execution: MatrixExecution) -> None:
        """Keep an execution of mma or wgmma, and write D."""
        work = MatrixOperands(self.algebra, self._turns[execution.pc], execution)
        form, products = execution.instruction, self.products
        if work.statement.opcode == "tcgen05":
            work.write(np.full((1, *form.product.matrix_shape("d")), products.result, np.uint64))
            return
        where = execution.pc, execution.record, form
        seen, tiles = products.operands.of_execution(work), frozenset(form.tiles(execution.inputs))
        products.keep(wave, execution.warps, where, execution.inputs, seen, tiles=tiles)
        width = form.register_bits // 8
        products.write(work.turn, work.lanes, work.numbers_of("d"), width)


class _Fragments(Fragments):
    """The statements of wmma of an observer."""

    def __init__(self, store: KeyStore, products: KeptProducts) -> None:
        super().__init__(store)
        self.products = products

    def _multiplied(self, turn: Turn, lanes: Lanes) -> None:
        numbers = turn.statement.numbers(0)
        value = next((turn.frame.values[number] for number in numbers if number >= 0), None)
        if value is not None:
            self.products.write(turn, lanes, numbers, value.dtype.itemsize)
