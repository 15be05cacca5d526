"""What the text of a kernel does: its statements, one after the other, for one thread block.

Matrix instructions, shared memory and what orders them are executed by the machines of warpsim, which also
report what hardware would not: a register that nothing has written, a fence or a wait that is missing. The
statements around them, on addresses and global memory, are executed here; branches are not. Knows PTX text
only: nothing of how a kernel came to be.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.errors import NotModelled, OperandError, located
from warpsim.isa.instruction import Inputs, Instruction
from warpsim.isa.registers import Words
from warpsim.machine.machine import Event, Machine, Warp
from warpsim.machine.register_file import Mask
from warpsim.machine.warpgroup import Warpgroup
from warpsim.ptx.constants import Immediate
from warpsim.ptx.operands import Address, Operand, Register, Vector
from warpsim.ptx.statements import InstructionStatement, Kernel, Program, Statement, VariableDeclaration
from warpsim.ptx.warpgroup import WarpgroupBound

Arithmetic = Callable[[Instruction, Inputs], Words]  # D registers of what an instruction reads
Lanes = npt.NDArray[Any]

RESERVED_BYTES = 1024  # of shared memory, which a driver keeps for itself
_FIRST_ADDRESS = 0x7F00_0000_0000
_PAGE = 512


class GlobalMemory:
    """Memory of a device: allocations at addresses, and nothing between them."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._contents: dict[int, npt.NDArray[np.uint8]] = {}
        self._next = _FIRST_ADDRESS

    def allocate(self, size: int) -> int:
        """The address of new memory, which holds garbage."""
        address = self._next
        self._next += -(-size // _PAGE) * _PAGE + _PAGE
        self._contents[address] = np.full(size, 0xCD, np.uint8)
        bisect.insort(self._starts, address)
        return address

    def free(self, address: int) -> None:
        """Forget an allocation. Raises OperandError where there is none."""
        if self._contents.pop(address, None) is None:
            raise OperandError(f"{address:#x} is no allocation")
        self._starts.remove(address)

    def view(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        """The bytes at an address. Raises OperandError where not all of them are of one allocation."""
        place = bisect.bisect_right(self._starts, address) - 1
        start = self._starts[place] if place >= 0 else 0
        content = self._contents.get(start, np.empty(0, np.uint8))
        if place < 0 or address + size > start + content.size:
            raise OperandError(f"{size} bytes at {address:#x} are outside every allocation")
        return content[address - start : address - start + size]

    def load(self, addresses: Lanes, size: int) -> npt.NDArray[np.uint8]:
        """``(n, size)``: the bytes at each address, all of one allocation. Raises OperandError."""
        content, index = self._index(addresses, size)
        return content[index]

    def store(self, addresses: Lanes, rows: npt.NDArray[np.uint8]) -> None:
        """Write the bytes ``(n, size)`` at each address, all of one allocation. Raises OperandError."""
        content, index = self._index(addresses, rows.shape[1])
        content[index] = rows

    def _index(self, addresses: Lanes, size: int) -> tuple[npt.NDArray[np.uint8], Lanes]:
        low, high = int(addresses.min()), int(addresses.max())
        content = self.view(low, high - low + size)
        return content, (addresses - np.uint64(low)).astype(np.intp)[:, None] + np.arange(size)


# --- machines --------------------------------------------------------------------------------------


class _Chip(Machine):
    """A machine whose matrix instructions may compute otherwise than the model says."""

    arithmetic: Arithmetic | None = None

    def _keep(self, event: Event, lanes: Mask) -> None:
        if self.arithmetic is not None:
            event = replace(event, d=event.d.copy())
            for _, inputs, d in event.executions():
                d[:] = self.arithmetic(event.instruction, inputs)
        super()._keep(event, lanes)


class _ChipWarp(_Chip, Warp):
    pass


class _ChipWarpgroup(_Chip, Warpgroup):
    def _inputs(self, statement: InstructionStatement, bound: WarpgroupBound) -> Inputs:
        """D as it was before too, where the model does not read it: a chip might."""
        inputs = super()._inputs(statement, bound)
        if "c" in inputs.registers:
            return inputs
        operands = self._operands(statement, bound.instruction, self._file.everyone)
        before = operands.vector(bound.places["d"], "d", tuple(filter(None, bound.d)))
        return replace(inputs, registers={**inputs.registers, "c": before})


_MACHINES: Mapping[int, type[_ChipWarp] | type[_ChipWarpgroup]] = {32: _ChipWarp, 128: _ChipWarpgroup}


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A kernel with its parameters: what all blocks of a launch have in common."""

    program: Program
    kernel: Kernel
    target: str
    threads: int
    shared_bytes: int
    parameters: Mapping[str, int]
    memory: GlobalMemory
    arithmetic: Arithmetic | None

    def run(self, block: int) -> None:
        """Execute one block. Raises WarpsimError for what a chip would not do, or not defined."""
        machine = self._machine()
        run = _Block(self, machine, block)
        for statement in self.program.statements:
            if isinstance(statement, VariableDeclaration):
                list(machine.steps([statement]))
        for statement in self.kernel.body or ():
            with located(statement.location):  # asked for only where something is wrong
                run.step(statement)
        if not run.returned:
            raise NotModelled("the kernel ends without ret")
        machine.finish(self.kernel.location())

    def _machine(self) -> Machine:
        if self.threads not in _MACHINES:
            raise NotModelled(f"{self.threads} threads: a block has {' or '.join(map(str, _MACHINES))}")
        kind = _MACHINES[self.threads]
        if kind is _ChipWarp:
            machine: _Chip = _ChipWarp(self.target, undefined="fallback")
        else:
            machine = _ChipWarpgroup(
                self.target, RESERVED_BYTES + max(self.shared_bytes, 16), undefined="fallback"
            )
            machine.shared.data[:] = 0xA5  # nothing promises zeros
            machine.run(f".shared .align 1024 .b8 reserved[{RESERVED_BYTES}];")
        machine.arithmetic = self.arithmetic
        return machine


# --- statements ------------------------------------------------------------------------------------

_LOADS = {"8": np.uint8, "16": np.uint16, "32": np.uint32, "64": np.uint64}
_SPECIAL = {"%ctaid.x"}  # what only a launch knows


class _Block:
    """Executes the statements of one block in turn."""

    def __init__(self, launch: Launch, machine: Machine, number: int) -> None:
        self.launch = launch
        self.machine = machine
        self.number = number
        self.returned = False

    def step(self, statement: Statement) -> None:
        """One statement: here what concerns addresses and global memory, the others in the machine."""
        if self.returned:
            raise NotModelled("a statement after ret")
        handler = self._handler(statement)
        if handler is None:
            list(self.machine.steps([statement]))
        else:
            handler(statement, self._lanes(statement))  # type: ignore[arg-type]

    def _handler(self, statement: Statement) -> Callable[[InstructionStatement, Mask], None] | None:
        if not isinstance(statement, InstructionStatement):
            return None
        space = next((name for name in ("param", "global") if name in statement.modifiers), "")
        names = (statement.opcode, f"{statement.opcode}.{space}", ".".join(_head(statement)))
        if statement.opcode == "mov":
            source = (statement.operands or ())[-1]
            return self._block_number if str(source) in _SPECIAL else None
        if statement.opcode == "ret":
            return self._return
        memory = {"ld.param": self._parameter, "ld.global": self._load, "st.global": self._store}
        if names[1] in memory:
            return memory[names[1]]
        return self._compute if names[2] in _OPERATIONS else None

    def _lanes(self, statement: Statement) -> Mask:
        assert isinstance(statement, InstructionStatement)
        if statement.guard is None:
            return np.ones(self.machine.lanes, np.bool_)
        negated, name = statement.guard
        value: Mask = self.machine.read(name, Statement.location(statement)) ^ negated
        return value

    # --- values ---

    def _value(self, operand: Operand, statement: InstructionStatement) -> Lanes:
        """``(lanes,)`` uint64."""
        if isinstance(operand, Immediate):
            return np.full(self.machine.lanes, operand.value & (1 << 64) - 1, np.uint64)
        assert isinstance(operand, Register)
        return self.machine.read(operand.name, Statement.location(statement)).astype(np.uint64)

    def _write(self, name: str, value: Lanes, lanes: Mask, statement: InstructionStatement) -> None:
        if not lanes.all():
            before = (
                self.machine.read(name, Statement.location(statement)) if name in self.machine else value * 0
            )
            value = np.where(lanes, value, before)
        self.machine.load(name, value, Statement.location(statement))

    # --- what there is ---

    def _return(self, statement: InstructionStatement, lanes: Mask) -> None:
        if not lanes.all():
            raise NotModelled("ret in some lanes only")
        self.returned = True

    def _block_number(self, statement: InstructionStatement, lanes: Mask) -> None:
        target, _ = statement.operands or ()
        self._write(str(target), np.full(lanes.size, self.number, np.uint32), lanes, statement)

    def _parameter(self, statement: InstructionStatement, lanes: Mask) -> None:
        target, source = statement.operands or ()
        assert isinstance(source, Address)
        assert source.base is not None
        if source.base.name not in self.launch.parameters:
            raise OperandError(f"the kernel has no parameter {source.base}")
        value = np.full(lanes.size, self.launch.parameters[source.base.name], np.uint64)
        self._write(str(target), value, lanes, statement)

    def _compute(self, statement: InstructionStatement, lanes: Mask) -> None:
        target, *sources = statement.operands or ()
        result = _OPERATIONS[".".join(_head(statement))](*(self._value(one, statement) for one in sources))
        self._write(str(target), result, lanes, statement)

    # --- global memory ---

    def _addresses(self, address: Operand, size: int, lanes: Mask, statement: InstructionStatement) -> Lanes:
        assert isinstance(address, Address)
        assert address.base is not None
        places = self._value(address.base, statement) + np.uint64(address.offset)
        if (places[lanes] % np.uint64(size)).any():
            raise OperandError(f"{statement.mnemonic}: an address is no multiple of {size}")
        return places

    def _shape(self, statement: InstructionStatement) -> tuple[np.dtype[Any], int]:
        """The dtype of one element, and how many there are."""
        bits = statement.modifiers[-1].lstrip("busf")
        count = next((int(name[1]) for name in statement.modifiers if name in ("v2", "v4")), 1)
        return np.dtype(_LOADS[bits]), count

    def _load(self, statement: InstructionStatement, lanes: Mask) -> None:
        registers, address = statement.operands or ()
        dtype, count = self._shape(statement)
        size = dtype.itemsize * count
        places = self._addresses(address, size, lanes, statement)
        words = np.zeros((lanes.size, count), dtype)
        words[lanes] = self.launch.memory.load(places[lanes], size).view(dtype)
        for register, column in zip(_elements(registers), words.T, strict=True):
            self._write(str(register), column, lanes, statement)

    def _store(self, statement: InstructionStatement, lanes: Mask) -> None:
        address, registers = statement.operands or ()
        dtype, count = self._shape(statement)
        size = dtype.itemsize * count
        places = self._addresses(address, size, lanes, statement)
        columns = [self._value(one, statement).astype(dtype) for one in _elements(registers)]
        words = np.ascontiguousarray(np.stack(columns, axis=-1)[lanes])
        self.launch.memory.store(places[lanes], words.view(np.uint8).reshape(-1, size))


def _elements(operand: Operand) -> tuple[Any, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _head(statement: InstructionStatement) -> tuple[str, ...]:
    return (statement.opcode, *statement.modifiers)


_LOW = np.uint64(0xFFFF_FFFF)

# A statement's whole mnemonic -> what it computes of uint64 values, one a lane.
_OPERATIONS: Mapping[str, Callable[..., Lanes]] = {
    "cvta.to.global.u64": lambda x: x,
    "cvt.u64.u32": lambda x: x,
    "add.u64": lambda x, y: x + y,
    "and.b64": lambda x, y: x & y,
    "or.b64": lambda x, y: x | y,
    "shr.u64": lambda x, y: x >> y,
    "mad.wide.u32": lambda x, y, z: x * y + z,
    "mad.lo.u32": lambda x, y, z: (x * y + z) & _LOW,
    "setp.lt.u32": lambda x, y: x < y,
}
