"""A wave of one CTA that executes statements one by one, on the registers and shared memory of a machine.

What a launch reports as a finding or leaves open is an error here: a register that was not written, lanes
that wait for lanes that never come, lanes that store different values at one address. Knows divergent paths
and bytes; does not know text, names beyond those in errors, or what opcodes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import (
    Location,
    NotModelled,
    OperandError,
    UndefinedBehavior,
    WarpsimError,
    located,
    present,
)
from ...isa.instruction import Instruction
from ...isa.memory import check_places
from ...isa.operand_places.placements import Inputs, part_of
from ...isa.warps import WARP
from ...machine.bind.tuning import Tuning
from ...machine.bind.value_types import dtype_of
from ...machine.opcodes.special_registers import REGISTERS
from ...machine.run.barriers.cta_barriers import Barriers
from ...machine.run.barriers.waits import BarrierWait
from ...machine.run.clusters import FIRST, RANK_BYTES
from ...machine.run.engines import Engine, EngineName, Undefined, executions_of, modes_of
from ...machine.run.events import MatrixExecution, Observer, Observers, observe
from ...machine.run.geometry import Geometry
from ...machine.run.memories import Memories
from ...machine.run.wave import Entry, Record, Wave
from ...machine.run.windows import PLACES
from ...machine.state import spaces
from ...machine.state.lanes import DivergentPath, Lanes, Mask, Values
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import Bytes, DeviceMemory, InvalidAccess, Offsets
from ...observe.recording.matrix_events import Event
from ...ptx.decode import bind_operands
from ...ptx.operands import Address, Vector
from ...ptx.statements import InstructionStatement, operand_names
from .interactive_binder import BoundStatement
from .register_file import RegisterFile
from .shared_memory import SharedMemory

_VERBS = {"ld": "loads", "ldmatrix": "loads", "st": "stores", "stmatrix": "stores"}


def _entry(shared_bytes: int) -> Entry:
    """Return the entry of a kernel whose text is not known yet."""
    return Entry(
        name="",
        code=[],
        start=0,
        registers=0,
        dtypes=[],
        parameters=(),
        parameter_bytes=0,
        static_shared_bytes=shared_bytes,
        shared=(),
        dynamic_shared=False,
        local_bytes=0,
        tuning=Tuning(),
    )


class InteractiveWave(Wave):
    """The lanes of a register file with a shared memory, as one CTA.

    ``observers`` are notified as those of a launch are; where there are any, the code grows with the
    statements, for findings about earlier statements. With ``undefined`` "fallback" the last lane wins where
    several store different values at one address, and results that PTX leaves open are 0.
    """

    def __init__(
        self,
        file: RegisterFile,
        memory: SharedMemory,
        observers: Sequence[Observer],
        engine: EngineName | Engine,
        undefined: Undefined,
    ) -> None:
        geometry = Geometry(np.zeros((1, 3), np.int64), (1, 1, 1), (file.lanes, 1, 1))
        memories = Memories(geometry, DeviceMemory(), spaces.padded(0), len(memory))
        super().__init__(_entry(len(memory)), geometry, memories, PLACES)
        self.modes = modes_of(engine, undefined)
        if callable(engine):
            single = partial(_single, self.modes.engine, file.lanes, len(memory))
            self.modes = replace(self.modes, engine=single)
        self.file = file
        self.frame = file.frame
        self.memories.shared = memory.words
        self.shared_memory = memory
        self.products = Products(file, memory)
        strict = (_Strict(),) if undefined == "error" else ()
        observe(self, Observers((*strict, *observers, self.products)))
        self._front = DivergentPath(0, self.frame, file.whole)
        self._records: list[Record] | None = [] if observers else None
        self._numbers: dict[int, int] = {}  # places in the code, by identity of a record

    @in_default_environment
    def execute(self, bound: BoundStatement, lanes: Lanes) -> None:
        """Execute a statement in some lanes, or change nothing at all.

        Raises UndefinedBehavior, OperandError, Fault and what its step raises.
        """
        path = self._front
        path.lanes, path.pc = lanes, self._place_of(bound.record)
        self.scheduler.paths = [path]
        self.scheduler.statements += 1
        if not bound.collective and lanes is self.file.whole:
            self._step(bound.record, path, lanes)
            return
        before = self.frame.values.copy(), self.frame.partial.copy()
        self._step(bound.record, path, lanes)
        if self.scheduler.waiting:
            self.frame.values[:], self.frame.partial = before
            raise self._waits_in_vain(bound.record.statement)

    def _step(self, record: Record, path: DivergentPath, lanes: Lanes) -> None:
        try:
            record.step(self, path, lanes)
        except InvalidAccess as invalid:
            raise self.trespass(record, invalid) from None

    def _place_of(self, record: Record) -> int:
        """Return the place of a statement in the code, which has all that were executed if any check asks."""
        if self._records is None:
            self.code = (record,)
            return 0
        known = self._numbers.get(id(record))
        if known is None:
            known = self._numbers[id(record)] = len(self._records)
            self._records.append(record)
            self.code = self._records
        return known

    def _waits_in_vain(self, statement: InstructionStatement) -> UndefinedBehavior:
        """Return the error of lanes that wait, which no longer do."""
        first, what = self.scheduler.waiting[0], "which do not all come with it"
        for halted in self.scheduler.waiting:
            if isinstance(halted.waits, BarrierWait):
                Barriers.of(self).withdraw(self, halted.lanes, halted.waits.number)
                what = "to which not all threads come"
        self.scheduler.waiting = []
        message = f"waits for {first.waits}, {what} [{self.describe_lanes(first.lanes)}]"
        return UndefinedBehavior(f"{statement.mnemonic} {message}", statement.location())

    # --- words ---

    def describe_lane(self, lane: int) -> str:
        """Return a lane in words; there is one CTA."""
        warp = f"warp {lane // WARP}, " if self.warps > 1 else ""
        return f"{warp}lane {lane % WARP}"

    def name_execution(self, error: WarpsimError, warp: int, lanes: int) -> None:
        """Name in the message of an error the warp that it is about, where there are several."""
        if lanes < self.lanes:
            error.message = f"warp {warp}: {error.message}"

    def operand_error(self, error: WarpsimError, where: str) -> WarpsimError:
        """Return the error of the value of an operand as it is: the value may come from Python."""
        return error

    # --- registers ---

    def read(self, path: DivergentPath, register: int) -> Values:
        """Return a register in all lanes; raise UndefinedBehavior where an executing lane lacks it."""
        value = self.frame.values[register]
        if value is None or register in self.frame.partial:
            self._check_written(register, path.lanes.mask)
        assert value is not None
        return value

    def special_register(self, name: str) -> Values:
        """Return a special register in all lanes; raise NotModelled."""
        known = REGISTERS.get(name)
        if known is None:
            raise NotModelled(f"the special register {name} is not modelled")
        return np.broadcast_to(known.value(self).astype(dtype_of(known.type)), self.lanes)

    def _check_written(self, register: int, lanes: Mask) -> None:
        statement = self.code[self._front.pc].statement
        found = ((name, self.file.find(name)) for name in statement.names)
        name = next(name for name, known in found if known is not None and known.number == register)
        with located(lambda: _source_place(statement, name)):
            self.file.check_written(name, register, lanes)

    # --- memory ---

    def locate(self, space: str, lanes: Lanes, addresses: Values, size: int) -> tuple[Bytes, Offsets]:
        """Return shared or local memory and offsets of words; raise OperandError for those outside."""
        where = spaces.integers_of(np.broadcast_to(addresses, (lanes.count,)))
        if space == "local" or (space == "generic" and _is_local(where)):
            return super().locate(space, lanes, addresses, size)
        statement = self.code[self._front.pc].statement
        verb = _VERBS.get(statement.opcode, "accesses")
        with located(lambda: address_place(statement)):
            if space == "generic":
                where = _in_shared(where, lanes, f"{verb} {size} bytes")
            if where.max() >= RANK_BYTES:  # of the cluster, where the one CTA has rank 0
                where = np.where(where // RANK_BYTES == FIRST, where % RANK_BYTES, where)
            if where.min() < -spaces.WINDOW_BYTES:  # of 64 bits without a sign, and not below a variable
                where = where.view(np.uint64)
            check_places(self.shared_memory.peek(), where, size, lanes.index, verb)
        if verb != "loads":
            self.shared_memory.written()
        return self.memories.shared, where


def _is_local(where: Offsets) -> bool:
    """Return whether generic addresses are those of local memory."""
    return bool((spaces.window_of(where) == spaces.window_of(spaces.LOCAL_WINDOW)).all())


def _in_shared(where: Offsets, lanes: Lanes, done: str) -> Offsets:
    """Return addresses in shared memory for generic addresses; raise OperandError for others."""
    outside = spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW)
    if outside.any():
        first = int(outside.argmax())
        what = f"lane {lanes.index[first]} {done} at the generic address {int(where[first]):#x}"
        raise OperandError(f"{what}, which is not in shared memory: cvta.shared makes those that are")
    return where - spaces.SHARED_WINDOW


class _Strict(Observer):
    """An observer that makes an error of what has no meaning."""

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Check that lanes store no different values at one address."""
        if access.words is not None:
            _check_clash(access, wave.code[access.path.pc].statement)

    def unspecified(self, wave: Wave, path: DivergentPath, lanes: Lanes, what: str) -> None:
        """Raise UndefinedBehavior: lanes get a result that PTX leaves open."""
        statement = wave.code[path.pc].statement
        message = f"{statement.mnemonic}: {wave.describe_lanes(lanes)} {what}, which PTX leaves undefined"
        raise UndefinedBehavior(message, statement.location())


def _check_clash(access: MemoryAccess, statement: InstructionStatement) -> None:
    """Raise UndefinedBehavior where lanes store different values at one address."""
    addresses, words = access.offsets, present(access.words, "words")
    order = np.argsort(addresses, kind="stable")
    same = addresses[order][1:] == addresses[order][:-1]
    if not same.any():
        return
    clash = same & (words[order][1:] != words[order][:-1]).any(axis=1)
    if clash.any():
        first, second = order[int(np.argmax(clash)) :][:2]
        index = access.lanes.index
        raise UndefinedBehavior(
            f"lanes {index[first]} and {index[second]} store different values at address "
            f"{int(addresses[first]):#x}: PTX does not define which stays",
            address_place(statement),
        )


# --- matrix instructions -----------------------------------------------------------------------------


def _single(engine: Engine, lanes: int, shared_bytes: int, form: Instruction, inputs: Inputs) -> Values:
    """Return D of an engine of the user, which gets one execution by all lanes without a batch axis."""
    if form.lanes < lanes or not executions_of(inputs):
        return engine(form, inputs)
    inputs = part_of(inputs, 0)
    if inputs.shared is not None:
        inputs = replace(inputs, shared=inputs.shared[:shared_bytes])
    return engine(form, inputs)[None]


class Products(Observer):
    """An observer that makes an Event of each matrix instruction, and notes which registers hold its D."""

    def __init__(self, file: RegisterFile, memory: SharedMemory) -> None:
        self.file = file
        self.memory = memory
        self.events: list[Event] = []

    def taken(self) -> list[Event]:
        """Return the events since the last call."""
        events, self.events = self.events, []
        return events

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Keep what a matrix instruction read and computed, over all lanes of the machine."""
        record, inputs, warps = execution.record, execution.inputs, execution.warps
        form, bound = execution.instruction, record.matrix
        each = form.warps
        whole = form.family.one_thread or len(warps) * form.lanes == self.file.lanes
        spread = _merged if whole else partial(self._spread, warps)
        registers = {role: spread(words) for role, words in inputs.registers.items()}
        if inputs.shared is None:
            inputs = inputs.with_words(registers)
        else:  # computed from the memory itself: the event keeps a snapshot
            inputs = part_of(inputs, 0).with_words(registers, shared=self.memory.snapshot())
        event = Event(
            statement=record.statement,
            bound=bind_operands(form, record.statement, None) if bound is None else bound,
            inputs=inputs,
            d=spread(execution.d),
            warps=tuple(warps.tolist()) if each == 1 else tuple(range(each)),
        )
        self.events.append(event)
        if execution.whole:
            self.file.note_origin(event.bound.d, event)

    def _spread(self, warps: npt.NDArray[np.intp], words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``(lanes, registers)`` of words ``(executions, lanes, registers)``, 0 in other lanes."""
        _, lanes, registers = words.shape
        everything = np.zeros((self.file.lanes // lanes, lanes, registers), words.dtype)
        everything[warps] = words
        return _merged(everything)


def _merged(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``(lanes, registers)`` of words ``(executions, lanes, registers)`` of all lanes."""
    return words.reshape(-1, words.shape[2])


# --- places in the text ----------------------------------------------------------------------------


def address_place(statement: InstructionStatement) -> Location:
    """Return the place of the address in a statement."""
    operands = statement.operands or ()
    index = next((at for at, operand in enumerate(operands) if isinstance(operand, Address)), None)
    return statement.location() if index is None else statement.operand_location(index)


def _source_place(statement: InstructionStatement, name: str) -> Location:
    """Return where a statement reads a register: behind the first operand, if it stands there at all."""
    operands = list(enumerate(statement.operands or ()))
    for index, operand in (*operands[1:], *operands[:1]):
        if name in operand_names(operand):
            elements = operand.elements if isinstance(operand, Vector) else ()
            place = next((at for at, element in enumerate(elements) if name in operand_names(element)), None)
            return statement.operand_location(index, place)
    return statement.location()
