"""What names mean at a statement: registers, special registers, variables, arguments and where a lane is.

Knows scopes, frames and memories; does not know expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..errors import OperandError
from ..isa.warps import WARP
from ..machine.bind.scope import LabelName, RegisterName, Scope, Variable
from ..machine.opcodes.special_registers import REGISTERS
from ..machine.run.barriers.waits import waiting_record
from ..machine.run.wave import Record, Wave
from ..machine.state.lanes import DivergentPath, Frame
from ..machine.state.spaces import DEVICE_BASE
from ..ptx.symbols import matching, shown_variable
from .words_shown import TYPES, Array, Value
from .written import memory_of

PLACES = (
    "lane",
    "warp",
    "thread",
    "time",
    "tid",
    "cta",
    "tid.x",
    "tid.y",
    "tid.z",
    "cta.x",
    "cta.y",
    "cta.z",
)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A lane and the statement that it stands at: ``waits`` says what for, None where it runs."""

    wave: Wave
    lane: int
    frame: Frame
    record: Record
    path: DivergentPath
    waits: object | None


def standing(wave: Wave, lane: int) -> Standing | None:
    """Return where a lane of a wave stands; None of a lane that has exited or was never started."""
    for path in (*wave.scheduler.paths, *wave.scheduler.waiting):
        if path.lanes.mask[lane]:
            record = wave.code[path.pc] if path.waits is None else waiting_record(wave, path)
            return Standing(
                wave=wave, lane=lane, frame=path.frame, record=record, path=path, waits=path.waits
            )
    return None


@dataclass(frozen=True, kw_only=True)
class At:
    """A statement of a wave, where expressions are evaluated for all lanes.

    ``arguments`` are the addresses or words of the kernel's parameters, by their names.
    """

    wave: Wave
    frame: Frame
    record: Record
    time: int
    arguments: Mapping[str, Value]

    def named(self, name: str) -> Value:
        """Return a register, place, variable or argument in every lane. Raises OperandError."""
        place = self._place(name)
        if place is not None:
            return Value.of(place)
        if name in REGISTERS:
            register = REGISTERS[name]
            words = np.broadcast_to(register.value(self.wave), (self.wave.lanes,))
            dtype = TYPES.get(register.type)
            return Value(words.astype(f"u{dtype.itemsize}") if dtype else words, register.type)
        meaning = self.record.scope.find(name) if self.record.scope else None
        if isinstance(meaning, RegisterName):
            return self.register(meaning)
        if name in self.arguments:
            return self.arguments[name]
        if isinstance(meaning, Variable):
            return Value.of(np.asarray(self._address(meaning)))
        address = self._variable(name)
        if address is None:
            raise OperandError(f"nothing is named {name} here{self._near(name)}")
        return Value.of(np.asarray(address))

    def register(self, meaning: RegisterName) -> Value:
        """Return a register of the frame."""
        words, written = self.frame.values[meaning.number], self.frame.partial.get(meaning.number)
        if words is None:
            dtypes = self.wave.entry.dtypes if self.frame.function is None else self.frame.function.dtypes
            words = np.zeros(self.wave.lanes, dtypes[meaning.number])
            return Value(words, meaning.type, np.ones(self.wave.lanes, np.bool_))
        return Value(words, meaning.type, None if written is None else ~written)

    def word(self, space: str, addresses: Array, type_name: str) -> Value:
        """Return the word at an address of each lane; those outside of the memory are missing."""
        memories, size = self.wave.memories, TYPES[type_name].itemsize
        where = np.broadcast_to(addresses, (self.wave.lanes,)).astype(np.int64)
        limit = {"shared": memories.shared_bytes, "local": memories.local_bytes}.get(space, 1 << 62)
        memory = memory_of(self.wave, space)
        first = {
            "shared": memories.shared_base,
            "local": np.arange(self.wave.lanes) * memories.local_stride,
        }.get(space, -DEVICE_BASE)
        missing = (where < 0) | (where + size > limit)
        offsets = where + first
        missing |= (offsets < 0) | (offsets + size > memory.size)
        cells = np.where(missing, 0, offsets)[:, None] + np.arange(size)
        content = memory[cells % max(memory.size, 1)] if memory.size else np.zeros(cells.shape, np.uint8)
        words = np.ascontiguousarray(content).view(f"u{size}")[:, 0]
        return Value(words, type_name, missing)

    # --- names ---

    def _place(self, name: str) -> Array | None:
        wave = self.wave
        axis = "xyz".find(name[-1]) if name[-2:-1] == "." else -1
        if name in ("tid.x", "tid.y", "tid.z"):
            return np.asarray(REGISTERS[f"%{name}"].value(wave))
        if name in ("cta.x", "cta.y", "cta.z", "ctaid.x", "ctaid.y", "ctaid.z"):
            return np.asarray(wave.ctas[wave.cta, axis])
        x, y, _ = wave.grid
        match name:
            case "lane":
                return wave.thread % WARP
            case "warp":
                return wave.thread // WARP
            case "thread" | "tid":
                return wave.thread
            case "time":
                return np.asarray(self.time)
            case "cta":
                return np.asarray((wave.ctas @ np.array([1, x, x * y]))[wave.cta])
        return None

    def _address(self, variable: Variable) -> int:
        if variable.space in ("shared", "param"):
            return variable.offset
        if variable.space == "local" or variable.framed:
            return self.frame.local + variable.offset
        return self.wave.symbols[variable.name]

    def _variable(self, name: str) -> int | None:
        """Return the address of a variable by its name in C++; "smem" and "shared" are where shared memory
        begins.
        """
        own = {variable.name: variable.offset for variable in self.wave.entry.shared}
        for addresses in (own, self.wave.symbols):
            found = matching(name, addresses)
            if len(found) == 1:
                return addresses[found[0]]
        return 0 if name in ("smem", "shared", "local") else None

    def _near(self, name: str) -> str:
        """Return names that are spelled alike, in words."""
        known = {*PLACES, *REGISTERS, *self.arguments, *names_in(self.record.scope)}
        known |= {shown_variable(variable.name) for variable in self.wave.entry.shared}
        found = get_close_matches(name, sorted(known), 3, 0.6)
        return f"; near to it are {', '.join(found)}" if found else ""


def names_in(scope: Scope | None) -> Iterator[str]:
    """Yield the names of registers and variables that a scope knows, the innermost first."""
    while scope is not None:
        yield from (name for name, meaning in scope.names.items() if not isinstance(meaning, LabelName))
        for stem, group in scope.numbered.items():
            yield from (f"{stem}{number}" for number in range(group.size))
        scope = scope.around


def registers_of(record: Record) -> Iterator[str]:
    """Yield the registers that a statement names."""
    for name in record.statement.names:
        if record.scope is not None and isinstance(record.scope.find(name), RegisterName):
            yield name


def parameter_values(entry: Any, content: Array) -> dict[str, Value]:
    """Return the parameters of the kernel that are words: by name, and as arg0, arg1, ..."""
    found: dict[str, Value] = {}
    for parameter in entry.parameters:
        if parameter.bytes not in (1, 2, 4, 8):
            continue
        part = content[parameter.offset : parameter.offset + parameter.bytes]
        word = np.ascontiguousarray(part).view(f"u{parameter.bytes}")[0]
        value = Value(
            np.asarray(word), parameter.kind if parameter.kind in TYPES else f"b{8 * parameter.bytes}"
        )
        found[parameter.name] = found[f"arg{parameter.index}"] = value
    return found


def shapes_of(args: Sequence[Any]) -> dict[int, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shape and dtype of the arrays and buffers among arguments, by their numbers."""
    found = {}
    for index, given in enumerate(args):
        if hasattr(given, "shape") and hasattr(given, "dtype") and len(given.shape):
            found[index] = (tuple(given.shape), np.dtype(str(given.dtype).removeprefix("torch.")))
    return found
