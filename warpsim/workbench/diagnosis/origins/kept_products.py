"""Executions of matrix instructions, kept with the bytes of arrays that their operands are.

D is computed, since it may decide what follows; metadata without a meaning is no error, but makes zeros of D.
The key of D says that it is a result. Knows instructions and operands; does not know statements that move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Location, NotModelled, UndefinedBehavior, present
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs, ScaleSelectors
from ....isa.warps import WARP
from ....machine.opcodes.matrix.wmma import product
from ....machine.opcodes.tensor.tensor_products import Given as TensorGiven
from ....machine.opcodes.tensor.tensor_products import Multiplication
from ....machine.run.engines import executions_of
from ....machine.run.events import MatrixExecution
from ....machine.run.wave import Record, Wave
from ....machine.state.lanes import Frame, Lanes, Values
from ....observe.algebra.fragment_keys import Fragments, operands_of
from ....observe.algebra.key_store import KeyStore, Turn
from ....observe.algebra.keys.finite_fields import Keys
from ....observe.algebra.keys.key_cells import Cells
from ....observe.algebra.matrix_keys import Matrices, MatrixOperands
from ....observe.algebra.rules.keyed_statements import Statement
from ....sums.execution.pipeline import execute_inputs, execute_operands, rule_for
from .byte_keys import ByteKeys, Bytes, Indices, OperandBytes, SourceBytes

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
        _, *held = operands_of(statement, self.store.target)
        return {
            role: self.operands.of_fragment(wave, frame, statement.numbers(index), held[index - 1], warps)
            for index, role in enumerate("abc", 1)
        }

    def descriptors(self, pc: int, role: str, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return descriptors as they are."""
        return words

    def tensor_operands(self, wave: Wave, pc: int, lane: int, given: TensorGiven) -> TensorGiven:
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


_SAMPLED = 8  # places of each axis but the last by which arrays are looked up
_LOOKED_AT = 8  # arrays with the same in these places


@dataclass(frozen=True, kw_only=True)
class Event:
    """One statement executed by some warps, ``number`` in the order of execution.

    ``tiles`` are operands that are given as matrices: in shared memory, or fragments of wmma. ``memory`` are
    the bytes of shared memory where they are kept, ``words`` the descriptors.
    """

    pc: int
    record: Record
    instruction: Instruction
    selector: int
    scale_selectors: ScaleSelectors
    ignores_c: bool
    places: Indices
    seen: dict[str, SourceBytes]
    tiles: frozenset[str]
    number: int
    memory: Bytes | None = None
    words: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The bytes of shared memory in execution ``event`` of a statement, and its descriptors."""

    event: int
    memory: Bytes
    words: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What one matrix statement was given in all its executions.

    ``places`` (n, 5): x, y, z of the CTA, its warp, and the how many-th time; ``bytes`` by operand
    (n, lanes, registers, bytes of a register): indices as ``ByteKeys.indices`` has them. Of operands among
    ``tiles``, which lie in shared memory, (n, rows along m or n, k, bytes of an element). ``computed`` has
    the keys of operands of which something is computed. ``times (n,)`` order the executions of all
    statements; ``ignores_c (n,)`` marks those with scale-d false.
    """

    record: Record
    instruction: Instruction
    selector: int
    scale_selectors: ScaleSelectors
    places: Indices
    bytes: dict[str, Bytes]
    computed: dict[str, Keys]
    times: Indices
    ignores_c: npt.NDArray[np.bool_]
    tiles: frozenset[str] = frozenset()
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def location(self) -> Location:
        """The place of the statement in the text."""
        return self.record.statement.location()


@dataclass
class Shared:
    """Arrays that are kept, each once."""

    given: dict[object, list[Any]] = field(default_factory=dict)
    kept: dict[int, Any] = field(default_factory=dict)

    def own(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array to keep: that of before, where it is equal."""
        if id(array) in self.kept:
            return array
        sample = array[:: max(len(array) // _SAMPLED, 1), ::_SAMPLED]
        alike = self.given.setdefault((array.shape, sample.tobytes()), [])
        for known in alike[-_LOOKED_AT:]:
            if np.array_equal(known, array):
                return np.asarray(known)
        alike.append(array)
        self.kept[id(array)] = array
        return array


# --- statement by statement ----------------------------------------------------------------------------


@dataclass
class _Joined:
    """Arrays of several executions put together, ``known`` by the arrays that they are made of."""

    known: dict[object, Any] = field(default_factory=dict)
    places: list[Indices] = field(default_factory=list)

    def arrays(self, parts: Sequence[npt.NDArray[Any]], order: Numbers) -> npt.NDArray[Any]:
        """Return arrays one behind another in an order; the same array for the same arrays."""
        key = tuple(map(id, parts)), id(order)
        if key not in self.known:
            whole = np.concatenate(parts)
            self.known[key] = whole if bool((order[1:] > order[:-1]).all()) else whole[order]
        found: npt.NDArray[Any] = self.known[key]
        return found

    def ordered(self, events: Sequence[Event]) -> tuple[Indices, Numbers]:
        """Return places by CTA, warp and count of executions of the warp, and their order."""
        key = tuple(id(event.places) for event in events)
        if key not in self.known:
            self.known[key] = _ordered(events)
        found: tuple[Indices, Numbers] = self.known[key]
        return found

    def same_places(self, places: Indices) -> Indices:
        """Return places, the same array for equal places."""
        for known in self.places:
            if np.array_equal(known, places):
                return known
        self.places.append(places)
        return places


def given_of(events: Sequence[Event]) -> tuple[Given, ...]:
    """Return what each matrix statement was given, in the order of the text."""
    table: dict[int, list[Event]] = {}
    for event in events:
        table.setdefault(event.pc, []).append(event)
    joined = _Joined()
    return tuple(given for pc in sorted(table) for given in _of_statement(joined, table[pc]))


def _of_statement(joined: _Joined, events: Sequence[Event]) -> Iterator[Given]:
    """Yield what one statement was given, for each instruction that it was: a descriptor may state others."""
    places, order = joined.ordered(events)
    counts = [len(event.places) for event in events]
    number = {form: n for n, form in enumerate(dict.fromkeys(event.instruction for event in events))}
    which, times, ignores = (
        np.repeat(values, counts)[order]
        for values in (
            [number[event.instruction] for event in events],
            [event.number for event in events],
            [event.ignores_c for event in events],
        )
    )
    for form, own in number.items():
        chosen = which == own
        settings = places[chosen], times[chosen], ignores[chosen]
        yield _of_form(joined, [event for event in events if event.instruction == form], settings)


def _of_form(joined: _Joined, events: Sequence[Event], settings: tuple[Any, Any, Any]) -> Given:
    """Return what a statement was given as one instruction; ``settings`` are places, times and ignores_c."""
    first, (_, order) = events[0], joined.ordered(events)
    seen = {
        role: [event.seen[role] for event in events]
        for role in first.seen
        if all(role in event.seen for event in events)
    }
    return Given(
        record=first.record,
        instruction=first.instruction,
        selector=first.selector,
        scale_selectors=first.scale_selectors,
        places=joined.same_places(settings[0]),
        bytes={role: joined.arrays([part.bytes for part in parts], order) for role, parts in seen.items()},
        computed={
            role: _keys(parts)[order]
            for role, parts in seen.items()
            if any(part.keys is not None for part in parts)
        },
        times=settings[1],
        ignores_c=settings[2],
        tiles=first.tiles,
        snapshots=tuple(_snapshots(events, order)),
    )


def _keys(parts: Sequence[SourceBytes]) -> Keys:
    return np.concatenate(
        [np.zeros(part.bytes.shape, np.uint64) if part.keys is None else part.keys for part in parts]
    )


def _snapshots(events: Sequence[Event], order: Numbers) -> Iterator[Snapshot]:
    which = np.repeat(np.arange(len(events)), [len(event.places) for event in events])[order]
    for place, number in enumerate(which.tolist()):
        memory = events[number].memory
        if memory is not None:
            yield Snapshot(event=place, memory=memory, words=events[number].words)


def _ordered(events: Sequence[Event]) -> tuple[Indices, Numbers]:
    places = np.concatenate([event.places for event in events])
    order = np.lexsort(places.T[::-1])
    sorted_places = places[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (sorted_places[1:] != sorted_places[:-1]).any(axis=1)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    return np.column_stack([sorted_places, np.arange(len(order)) - first]), order
