"""Bind statements that come one by one: a statement binder whose names are those of a register file.

An undeclared name becomes a register when it is first written, as wide as the value. Knows which names and
memories there are without a launch; does not know opcodes, or values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ...base.errors import IllegalInstruction, NotModelled, UndefinedBehavior
from ...isa.families import lanes_of
from ...machine.bind.scope import Meaning, Scope, Variable
from ...machine.bind.value_types import bits_of
from ...machine.load.program import Module
from ...machine.opcodes import bind, special_registers
from ...machine.opcodes.statement_binder import Reader, StatementBinder, Writer
from ...machine.run.wave import Execution, Record
from ...ptx.operands import Address, Operand, Register, Sink
from ...ptx.statements import InstructionStatement, operand_names
from .register_file import RegisterFile

_SPACES = frozenset({"shared", "shared::cta", "shared::cluster", "generic", "local"})
_COLLECTIVE = frozenset({"shfl", "vote", "match", "redux", "elect", "bar", "barrier"})
_IN_TURN = "statements are executed in order"
ELSEWHERE = dict.fromkeys(
    ("bra", "brx", "call", "ret", "exit"), _IN_TURN
)  # opcodes that need program counters


@dataclass(frozen=True)
class TextModule:
    """The module of a statement that comes by itself: a target and a version."""

    target: str
    version: tuple[int, int]

    def function_number(self, name: str) -> int:
        """Fail: there are no functions."""
        raise AssertionError(f"{name} is a function of nothing")


class InteractiveScope(Scope):
    """The names of a register file, and the variables in shared memory."""

    def __init__(self, file: RegisterFile, addresses: Mapping[str, int]) -> None:
        super().__init__()
        self.file = file
        self.addresses = addresses

    def find(self, name: str) -> Meaning | None:
        """Return the register or variable that a name stands for."""
        found = self.file.find(name)
        if found is not None or name not in self.addresses:
            return found
        return Variable(name=name, space="shared", size=0, alignment=1, offset=self.addresses[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStatement:
    """A statement as a record.

    ``reads`` and ``writes`` are the registers that it accesses at once: those of D, A and metadata of a wgmma
    are not among them. Lanes may wait at a ``collective`` statement.
    """

    record: Record
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    collective: bool


class InteractiveBinder(StatementBinder):
    """One statement on a register file; ``created`` are the registers that it creates."""

    def __init__(self, statement: InstructionStatement, scope: InteractiveScope, module: TextModule) -> None:
        super().__init__(statement, scope, cast(Module, module))
        self.file = scope.file
        self.created: list[str] = []

    @property
    def declared(self) -> bool:  # type: ignore[override]
        """Whether registers must be declared: their types are then checked."""
        return self.file.strict

    def bound(self, machine: str) -> BoundStatement:
        """Bind the statement on a machine of that name; registers it created are removed if it is refused.

        Raises IllegalInstruction, NotModelled and UndefinedBehavior that point at the operand at fault.
        """
        self._check_opcode(machine)
        try:
            row = bind(self)
        except BaseException:
            self.file.forget(self.created)
            raise
        reads, writes = self._accessed()
        execution = Execution(row.step, self.flow(), self.matrix)
        record = Record(statement=self.statement, bind=lambda record: execution, scope=self.scope)
        collective = self.statement.opcode in _COLLECTIVE
        return BoundStatement(record=record, reads=reads, writes=writes, collective=collective)

    def _accessed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the registers that the statement reads and writes before the next statement, by name."""
        if self.matrix is not None and self.matrix.instruction.reads_tiles:
            return (), ()
        flow = self.flow()
        read = flow.values | flow.addresses
        names = dict.fromkeys(name for operand in self.operands for name in operand_names(operand))
        numbers = {name: found.number for name in names if (found := self.file.find(name)) is not None}
        return (
            tuple(name for name, number in numbers.items() if number in read),
            tuple(name for name, number in numbers.items() if number in flow.written),
        )

    def _check_opcode(self, machine: str) -> None:
        mnemonic, modifiers = self.statement.mnemonic, self.statement.modifiers
        if lanes_of(self.statement.opcode) > self.file.lanes:
            raise NotModelled(
                f"'{mnemonic}' is not modelled here: a warpgroup executes it, and not a {machine}"
            )
        if self.statement.opcode in ELSEWHERE:
            reason = f"{ELSEWHERE[self.statement.opcode]}; a launched kernel may execute it"
            raise NotModelled(f"'{mnemonic}' is not modelled in a {machine}: {reason}")
        if "b128" in modifiers:
            place = self.statement.modifier_location(modifiers.index("b128"))
            raise NotModelled(f"{mnemonic} is not modelled here: registers have up to 64 bits", place)

    # --- names ---

    def meaning(self, name: str, operand: int, element: int | None = None) -> Meaning:
        """Return what a name stands for; raise the error of an unknown register."""
        found = self.scope.find(name)
        if found is not None:
            return found
        if special_registers.is_special(name):
            message = f"{self.statement.opcode} does not take special registers: mov reads {name}"
            raise self.illegal(message, operand, element)
        raise self.at(self.file.unknown(name), operand, element)

    def writer(
        self, operand: Operand, type_name: str, index: int, element: int | None = None, *, wide: bool = False
    ) -> Writer:
        """Return a writer of a register of a type, which is created if nothing is declared; once each."""
        if isinstance(operand, Register):
            self._check_target(operand.name, type_name, index, element)
        elif not isinstance(operand, Sink):
            message = f"{self.statement.mnemonic} writes a register, not '{operand}'"
            raise self.illegal(message, index, element)
        return super().writer(operand, type_name, index, element, wide=wide)

    def _check_target(self, name: str, type_name: str, index: int, element: int | None) -> None:
        found = self.file.find(name)
        if found is None:
            try:
                self.file.writable(name)
            except IllegalInstruction as error:
                raise self.at(error, index, element) from None
            self.file.provide(name, "pred" if type_name == "pred" else f"b{bits_of(type_name)}")
            self.created.append(name)
        elif found.number in self._written:
            message = f"{self.statement.opcode} writes {name} twice: PTX does not define which value stays"
            raise self.at(UndefinedBehavior(message), index, element)

    # --- sources ---

    def reader(
        self, operand: Operand, type_name: str, index: int, element: int | None = None, *, wide: bool = False
    ) -> Reader:
        """Return a reader of an operand as a type; ``_`` has no bits."""
        if isinstance(operand, Sink) and self.statement.opcode == "mov":
            raise self.at(UndefinedBehavior("'_' is read here: PTX does not define its bits"), index, element)
        return super().reader(operand, type_name, index, element, wide=wide)

    # --- addresses ---

    def address(self, index: int, space: str, *, box: bool = False) -> Reader:
        """Return a reader of addresses in shared or local memory: there is no device."""
        operand = self.operands[index]
        if space not in _SPACES:
            message = f"{self.statement.mnemonic} is not modelled here: there is no .{space} memory"
            raise self.not_modelled(f"{message} outside a launched kernel, only .shared and .local", index)
        if isinstance(operand, Address) and operand.base is None and space != "local":
            message = "an address in shared memory is a register or a variable, not a number"
            raise self.illegal(message, index)
        base = operand.base if isinstance(operand, Address) else None
        if base is not None and not self.scope.find(base.name) and special_registers.is_special(base.name):
            raise self.illegal(f"{base} is a special register, and no address: copy it with mov first", index)
        return super().address(index, space, box=box)
