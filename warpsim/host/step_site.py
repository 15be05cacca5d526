"""Bind statements of a warp or warpgroup: a StatementBinder whose names are those of a register file.

A name that nothing declares becomes a register when it is first written, as wide as what is written to it.
Knows which names and memories a machine without a launch has; does not know opcodes, or values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ..errors import IllegalInstruction, NotModelled, UndefinedBehavior
from ..isa.warps import WARP
from ..machine.bind.scope import Meaning, Scope, Variable
from ..machine.bind.statement_binder import Reader, StatementBinder, Writer
from ..machine.load.entries import Record
from ..machine.load.program import Module
from ..machine.opcodes import bind
from ..machine.opcodes.operation import bits_of
from ..machine.state import special
from ..ptx.operands import Address, Operand, Register, Sink
from ..ptx.statements import InstructionStatement, operand_names
from .register_file import RegisterFile

_SPACES = frozenset({"shared", "shared::cta", "shared::cluster", "generic"})
_SPECIAL = frozenset({"%laneid", "%warpid", *(f"%tid.{axis}" for axis in "xyzw")}) | {
    f"%lanemask_{one}" for one in ("eq", "le", "lt", "ge", "gt")
}
_COLLECTIVE = frozenset({"shfl", "vote", "match", "redux", "elect", "bar", "barrier"})
_LAUNCHED = "a launched kernel may execute it"
# How statements begin that have a meaning only where there are program counters, several CTAs or a device.
ELSEWHERE = {
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit"), "statements are executed one after the other"),
    **dict.fromkeys(("trap", "brkpt"), "there is nobody to stop"),
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), "there is no stack"),
    **dict.fromkeys(("mapa", "getctarank", "barrier.cluster", "clusterlaunchcontrol"), "there is no cluster"),
    **dict.fromkeys(("st.async", "red.async"), "there is no cluster"),
    **dict.fromkeys(("cp.async.bulk", "cp.reduce", "tensormap"), "there is no device"),
    **dict.fromkeys(("griddepcontrol", "multimem"), "there is no device"),
    "setmaxnreg": "there is one group of warps",
}


@dataclass(frozen=True)
class StepModule:
    """What a module is to a statement by itself: a target and a version."""

    target: str
    version: tuple[int, int]

    def function_number(self, name: str) -> int:
        """There are no functions."""
        raise AssertionError(f"{name} is a function of nothing")


class StepScope(Scope):
    """The names of a register file, and the variables in shared memory."""

    def __init__(self, file: RegisterFile, addresses: Mapping[str, int]) -> None:
        super().__init__()
        self.file = file
        self.addresses = addresses

    def find(self, name: str) -> Meaning | None:
        """The register or variable that a name stands for."""
        found = self.file.find(name)
        if found is not None or name not in self.addresses:
            return found
        return Variable(name=name, space="shared", size=0, alignment=1, offset=self.addresses[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStatement:
    """What a statement does, as the one record of a program.

    ``reads`` and ``writes`` are the registers that it names; it is ``collective`` where lanes may wait.
    """

    record: Record
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    collective: bool


class StepBinder(StatementBinder):
    """One statement on a register file."""

    def __init__(self, statement: InstructionStatement, scope: StepScope, module: StepModule) -> None:
        super().__init__(statement, scope, cast(Module, module), 0)
        self.file = scope.file
        self.created: list[str] = []

    def bound(self, name: str) -> BoundStatement:
        """What the statement does on a machine of that name; what it creates is taken back if it is refused.

        Raises IllegalInstruction, NotModelled and UndefinedBehavior that point at what is wrong.
        """
        self._check_opcode(name)
        try:
            step = bind(self).step
        except BaseException:
            self.file.forget(self.created)
            raise
        flow, names = self.flow(), [name for one in self.operands for name in operand_names(one)]
        numbers = {one: found.number for one in names if (found := self.file.find(one)) is not None}
        read = flow.values | flow.addresses
        return BoundStatement(
            record=Record(step=step, statement=self.statement),
            reads=tuple(dict.fromkeys(one for one in names if numbers.get(one) in read)),
            writes=tuple(dict.fromkeys(one for one in names if numbers.get(one) in flow.written)),
            collective=self.statement.opcode in _COLLECTIVE,
        )

    def _check_opcode(self, name: str) -> None:
        mnemonic, modifiers = self.statement.mnemonic, self.statement.modifiers
        if self.statement.opcode == "wgmma" and self.file.lanes == WARP:
            raise NotModelled(f"'{mnemonic}' is not modelled here: a warpgroup executes it, and not a {name}")
        for start, reason in ELSEWHERE.items():
            if f"{mnemonic}.".startswith(f"{start}."):
                raise NotModelled(f"'{mnemonic}' is not modelled in a {name}: {reason}; {_LAUNCHED}")
        if "b128" in modifiers:
            place = self.statement.modifier_location(modifiers.index("b128"))
            raise NotModelled(f"{mnemonic} is not modelled here: registers have up to 64 bits", place)

    # --- names ---

    def meaning(self, name: str, operand: int, element: int | None = None) -> Meaning:
        """What a name stands for; raises the error of a register that is not there."""
        found = self.scope.find(name)
        if found is None:
            raise self.at(self.file.unknown(name), operand, element)
        return found

    def writer(
        self, operand: Operand, type_name: str, index: int, element: int | None = None, *, wide: bool = False
    ) -> Writer:
        """Writes a register of a type, which comes into being if nothing is declared, and only once."""
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

    def _special(self, name: str, type_name: str, index: int, element: int | None) -> Reader:
        """A special register that does not depend on a launch, in a mov or cvt of its own width."""
        opcode, known = self.statement.opcode, special.type_of(name)
        if opcode not in ("mov", "cvt"):
            message = f"{opcode} does not take special registers: copy {name} with mov first"
            raise self.illegal(message, index, element)
        if name not in _SPECIAL or (name == "%warpid" and self.file.special(name) is None):
            raise self.at(NotModelled(f"the special register {name} is not modelled"), index, element)
        if known is not None and (type_name[0] == "f" or bits_of(known) != bits_of(type_name)):
            message = f"{self.statement.mnemonic} does not take {name}, which is .{known}"
            raise self.illegal(message, index, element)
        return super()._special(name, type_name, index, element)

    # --- sources ---

    def reader(
        self, operand: Operand, type_name: str, index: int, element: int | None = None, *, wide: bool = False
    ) -> Reader:
        """Reads an operand as a type; ``_`` has no bits."""
        if isinstance(operand, Sink) and self.statement.opcode == "mov":
            raise self.at(UndefinedBehavior("'_' is read here: PTX does not define its bits"), index, element)
        return super().reader(operand, type_name, index, element, wide=wide)

    # --- addresses ---

    def address(self, index: int, space: str, *, box: bool = False) -> Reader:
        """Addresses in shared memory, the one that there is."""
        operand = self.operands[index]
        if space not in _SPACES:
            message = f"{self.statement.mnemonic} is not modelled here: there is no .{space} memory"
            raise self.not_modelled(f"{message} outside a launched kernel, only .shared", index)
        base = operand.base if isinstance(operand, Address) else None
        if isinstance(operand, Address) and base is None:
            message = "an address in shared memory is a register or a variable, not a number"
            raise self.illegal(message, index)
        if base is not None and self.scope.find(base.name) is None and special.is_special(base.name):
            raise self.illegal(f"{base} is a special register, and no address: copy it with mov first", index)
        return super().address(index, space, box=box)
