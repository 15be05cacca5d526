"""A wave that executes statements one by one, on the registers and the shared memory of a machine.

All lanes are one CTA. What a launch reports or leaves open is an error here: a register that was not written,
lanes that wait for others that do not come, lanes that store different values at one address. Knows paths
and bytes; does not know text, names beyond those in errors, or what opcodes do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..environment import in_default_environment
from ..errors import Location, OperandError, UndefinedBehavior, located
from ..isa.memory import check_places
from ..isa.warps import WARP
from ..machine.load.directives import Tuning
from ..machine.load.entries import Entry
from ..machine.run.clusters import RANK_BYTES
from ..machine.run.events import Observer, Observers
from ..machine.run.waits import BarrierWait
from ..machine.run.wave import Wave
from ..machine.state import spaces
from ..machine.state.lanes import DivergentPath, Lanes, Mask, Values
from ..machine.state.memory_access import MemoryAccess
from ..machine.state.spaces import Bytes, DeviceMemory, Offsets
from ..ptx.operands import Address, Vector
from ..ptx.statements import InstructionStatement, operand_names
from .register_file import RegisterFile
from .shared_memory import SharedMemory
from .step_site import BoundStatement

_VERBS = {"ld": "loads", "ldmatrix": "loads", "st": "stores", "stmatrix": "stores"}


def _entry(file: RegisterFile, shared_bytes: int) -> Entry:
    """What a wave asks of its kernel, of which there is none."""
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


class StepWave(Wave):
    """The lanes of a register file with a shared memory.

    ``observers`` are told as those of a launch are; ``literal`` lets the last lane win where several store
    different values at one address, and takes 0 for results that PTX leaves open.
    """

    def __init__(
        self, file: RegisterFile, memory: SharedMemory, observers: Sequence[Observer], literal: bool
    ) -> None:
        super().__init__(
            _entry(file, len(memory)),
            ctas=np.zeros((1, 3), np.int64),
            grid=(1, 1, 1),
            block=(file.lanes, 1, 1),
            memory=DeviceMemory(),
            parameters=spaces.padded(0),
            shared_bytes=len(memory),
        )
        self.file = file
        self.frame = file.frame
        self.shared = memory.words
        self.shared_memory = memory
        self.observers = Observers(observers if literal else (_Strict(), *observers))
        self._front = DivergentPath(0, self.frame, file.whole)

    @in_default_environment
    def execute(self, bound: BoundStatement, lanes: Lanes) -> None:
        """Do what a statement does in some lanes, or nothing at all.

        Raises UndefinedBehavior, OperandError and what its step raises.
        """
        path = self._front
        path.lanes, path.pc = lanes, 0
        self.code = (bound.record,)
        self.paths = [path]
        self.statements += 1
        if not bound.collective and lanes is self.file.whole:
            bound.record.step(self, path, lanes)
            return
        before = self.frame.values.copy(), self.frame.partial.copy()
        bound.record.step(self, path, lanes)
        if self.waiting:
            self.frame.values[:], self.frame.partial = before
            raise self._alone(bound.record.statement)

    def _alone(self, statement: InstructionStatement) -> UndefinedBehavior:
        """The error of lanes that wait, who wait no longer."""
        first, what = self.waiting[0], "which do not all come with it"
        for one in self.waiting:
            if isinstance(one.waits, BarrierWait):
                self.barriers.withdraw(self, one.lanes, one.waits.number)
                what = "to which not all threads come"
        self.waiting = []
        message = f"waits for {first.waits}, {what} [{self.describe_lanes(first.lanes)}]"
        return UndefinedBehavior(f"{statement.mnemonic} {message}", statement.location())

    def describe_lane(self, lane: int) -> str:
        """A lane in words; there is one CTA."""
        warp = f"warp {lane // WARP}, " if self.warps > 1 else ""
        return f"{warp}lane {lane % WARP}"

    # --- registers ---

    def read(self, path: DivergentPath, register: int) -> Values:
        """A register in all lanes; raises UndefinedBehavior where it was not written in some that execute."""
        value = self.frame.values[register]
        if value is None or register in self.frame.partial:
            self._check_written(register, path.lanes.mask)
        assert value is not None
        return value

    def _check_written(self, register: int, lanes: Mask) -> None:
        statement = self.code[0].statement
        found = ((name, self.file.find(name)) for name in statement.names)
        name = next(name for name, one in found if one is not None and one.number == register)
        with located(lambda: _source_place(statement, name)):
            self.file.check_written(name, register, lanes)

    # --- memory ---

    def locate(self, space: str, lanes: Lanes, addresses: Values, size: int) -> tuple[Bytes, Offsets]:
        """Words in shared memory; raises OperandError for those outside, or not aligned."""
        where = spaces.integers_of(np.broadcast_to(addresses, (lanes.count,)))
        statement = self.code[0].statement
        verb = _VERBS.get(statement.opcode, "accesses")
        with located(lambda: address_place(statement)):
            if space == "generic":
                where = _in_shared(where, lanes, f"{verb} {size} bytes")
            if where.max() >= RANK_BYTES:  # of the cluster, where the one CTA has rank 0
                where = np.where(where // RANK_BYTES == 1, where % RANK_BYTES, where)
            if where.min() < -spaces.WINDOW_BYTES:  # of 64 bits without a sign, and not below a variable
                where = where.view(np.uint64)
            check_places(self.shared_memory.peek(), where, size, lanes.index, verb)
        if verb != "loads":
            self.shared_memory.written()
        return self.shared, where


def _in_shared(where: Offsets, lanes: Lanes, done: str) -> Offsets:
    """Addresses in shared memory of generic ones; raises OperandError."""
    outside = spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW)
    if outside.any():
        first = int(outside.argmax())
        what = f"lane {lanes.index[first]} {done} at the generic address {int(where[first]):#x}"
        raise OperandError(f"{what}, which is not in shared memory: cvta.shared makes those that are")
    return where - spaces.SHARED_WINDOW


class _Strict(Observer):
    """The first observer: what has no meaning is an error."""

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Words are about to be stored; lanes must not store different ones at one address."""
        if access.words is not None:
            _check_clash(wave, access.lanes, access.offsets, access.words)

    def unspecified(self, wave: Wave, path: DivergentPath, lanes: Lanes, what: str) -> None:
        """Lanes get a result that PTX leaves open."""
        statement = wave.code[0].statement
        message = f"{statement.mnemonic}: {wave.describe_lanes(lanes)} {what}, which PTX leaves undefined"
        raise UndefinedBehavior(message, statement.location())


def _check_clash(wave: Wave, lanes: Lanes, addresses: Offsets, words: Values) -> None:
    """Raise UndefinedBehavior where lanes store different values at one address."""
    order = np.argsort(addresses, kind="stable")
    same = addresses[order][1:] == addresses[order][:-1]
    if not same.any():
        return
    clash = same & (words[order][1:] != words[order][:-1]).any(axis=1)
    if clash.any():
        first, second = order[int(np.argmax(clash)) :][:2]
        raise UndefinedBehavior(
            f"lanes {lanes.index[first]} and {lanes.index[second]} store different values at address "
            f"{int(addresses[first]):#x}: PTX does not define which stays",
            address_place(wave.code[0].statement),
        )


# --- places in the text ----------------------------------------------------------------------------


def address_place(statement: InstructionStatement) -> Location:
    """Where the address of a statement stands."""
    operands = statement.operands or ()
    index = next((place for place, one in enumerate(operands) if isinstance(one, Address)), None)
    return statement.location() if index is None else statement.operand_location(index)


def _source_place(statement: InstructionStatement, name: str) -> Location:
    """Where a statement reads a register: behind the first operand, if it stands there at all."""
    operands = list(enumerate(statement.operands or ()))
    for index, operand in (*operands[1:], *operands[:1]):
        if name in operand_names(operand):
            elements = operand.elements if isinstance(operand, Vector) else ()
            place = next((at for at, one in enumerate(elements) if name in operand_names(one)), None)
            return statement.operand_location(index, place)
    return statement.location()
