"""What names mean at a statement: registers, special registers, variables, arguments and where a lane is.

Knows scopes, frames and memories; does not know expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from ...base.errors import OperandError
from ...isa.layouts.tensor_memory import COLUMNS, LANES
from ...isa.tensor_maps.tensor_map import decode
from ...isa.warps import WARP
from ...machine.bind.scope import LabelName, RegisterName, Scope, Variable
from ...machine.host.tensor_maps import ArrayMap, BufferMap, first_byte, whole
from ...machine.opcodes.special_registers import REGISTERS
from ...machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ...machine.run.barriers.waits import waiting_record
from ...machine.run.wave import Record, Wave
from ...machine.state.lanes import DivergentPath, Frame
from ...machine.state.spaces import DEVICE_BASE
from ...ptx.symbols import matching, shown_variable
from .areas import CELL, memory_of
from .values import TYPES, Array, Value, type_of

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
_AXES = ("cta.x", "cta.y", "cta.z", "ctaid.x", "ctaid.y", "ctaid.z")
_BEGINNINGS = ("smem", "shared", "local", "tmem")  # of memories, at address 0
CUDA_NAMES = {
    f"{name}.{axis}": f"%{register}.{axis}"
    for name, register in (
        ("threadIdx", "tid"),
        ("blockIdx", "ctaid"),
        ("blockDim", "ntid"),
        ("gridDim", "nctaid"),
    )
    for axis in "xyz"
}


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

    ``arguments`` are the addresses or words of the kernel's parameters, by their names; ``plain`` are the
    statements of the module without what observes them.
    """

    wave: Wave
    frame: Frame
    record: Record
    time: int = 0
    arguments: Mapping[str, Value] = field(default_factory=dict)
    plain: Sequence[Record] = ()
    shapes: Mapping[int, tuple[tuple[int, ...], np.dtype[Any]]] = field(default_factory=dict)

    def named(self, name: str) -> Value:
        """Return a register, place, variable or argument in every lane. Raises OperandError."""
        name = CUDA_NAMES.get(name, name)
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
        if space == "tmem":
            return self._cell(addresses, type_name)
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

    def element(self, name: str, places: list[Array]) -> Value:
        """Return an element of an array in every lane; those outside of the array are missing."""
        shape = self.shapes.get(int(name.removeprefix("arg")))
        if shape is None or name not in self.arguments:
            known = ", ".join(f"arg{index}" for index in self.shapes) or "none"
            raise OperandError(f"{name} is not an array; arrays are {known}")
        extents, dtype = shape
        if len(places) != len(extents):
            raise OperandError(f"{name} has the shape {extents}: expected {len(extents)} numbers in brackets")
        index = [np.broadcast_to(place, (self.wave.lanes,)) for place in places]
        outside = np.zeros(self.wave.lanes, np.bool_)
        for place, extent in zip(index, extents, strict=True):
            outside |= (place < 0) | (place >= extent)
        offsets = np.ravel_multi_index([np.where(outside, 0, place) for place in index], extents)
        base = self.arguments[name].integers()
        found = self.word("global", base + offsets * dtype.itemsize, type_of(dtype))
        missing = outside if found.missing is None else outside | found.missing
        return Value(found.words, found.type, missing)

    def _cell(self, addresses: Array, type_name: str) -> Value:
        """Return the cells of tensor memory at addresses, of the CTA of each lane."""
        if TYPES[type_name].itemsize != CELL:
            raise OperandError(f".{type_name}: cells of tensor memory have 32 bits")
        memory = TENSOR_MEMORY.of(self.wave)
        where = np.broadcast_to(addresses, (self.wave.lanes,)).astype(np.int64)
        lanes, columns = where >> 16, where & 0xFFFF
        outside = (lanes < 0) | (lanes >= LANES) | (columns >= COLUMNS)
        cells = self.wave.cta, np.where(outside, 0, lanes), np.where(outside, 0, columns)
        return Value(memory.cells[cells], type_name, outside | ~memory.written[cells])

    # --- names ---

    def _place(self, name: str) -> Array | None:
        wave = self.wave
        axis = "xyz".find(name[-1]) if name[-2:-1] == "." else -1
        if name in ("tid.x", "tid.y", "tid.z"):
            return np.asarray(REGISTERS[f"%{name}"].value(wave))
        if name in _AXES:
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
        return 0 if name in _BEGINNINGS else None

    def _near(self, name: str) -> str:
        return near_names(name, self.wave.entry, self.record.scope, self.arguments)


def near_names(name: str, entry: Any, scope: Scope | None, arguments: Iterable[str]) -> str:
    """Return names at a statement that are spelled alike, in words."""
    known = {*PLACES, *CUDA_NAMES, *REGISTERS, *arguments, *names_in(scope)}
    known |= {shown_variable(variable.name) for variable in entry.shared}
    found = get_close_matches(name, sorted(known), 3, 0.6)
    return f"; near to it are {', '.join(found)}" if found else ""


def check_names(
    names: Iterable[str], scopes: Sequence[Scope | None], entry: Any, symbols: Iterable[str]
) -> None:
    """Raise OperandError for a name that has no meaning in any of some scopes of a kernel."""
    arguments = [*argument_names(entry)]
    fixed = {*PLACES, *CUDA_NAMES, *REGISTERS, *_BEGINNINGS, *_AXES, *arguments}
    variables = [*symbols, *(variable.name for variable in entry.shared)]
    for name in names:
        if name in fixed or any(
            scope is not None and isinstance(scope.find(name), (RegisterName, Variable)) for scope in scopes
        ):
            continue
        if not matching(name, variables):
            near = near_names(name, entry, scopes[0] if scopes else None, arguments)
            raise OperandError(f"nothing is named {name} there{near}")


def names_in(scope: Scope | None) -> Iterator[str]:
    """Yield the names of registers and variables that a scope knows, the innermost first."""
    while scope is not None:
        yield from (name for name, meaning in scope.names.items() if not isinstance(meaning, LabelName))
        for stem, group in scope.numbered.items():
            yield from (f"{stem}{number}" for number in range(group.size))
        scope = scope.around


def register_named(scope: Scope | None, name: str) -> RegisterName | None:
    """Return the register that a name stands for; None of other names."""
    found = None if scope is None else scope.find(name)
    return found if isinstance(found, RegisterName) else None


def registers_of(record: Record) -> Iterator[str]:
    """Yield the registers that a statement names."""
    return (name for name in record.statement.names if register_named(record.scope, name))


def written_registers(at: At, names: Iterable[str], lane: int) -> Iterator[tuple[str, str, Any]]:
    """Yield name, type and word of the registers that have been written in a lane."""
    for name in dict.fromkeys(names):
        meaning = register_named(at.record.scope, name)
        if meaning is not None:
            value = at.register(meaning)
            word = value.lane(lane)
            if word is not None:
                yield name, value.type, word


def argument_names(entry: Any) -> Iterator[str]:
    """Yield the names of the parameters of a kernel that are words."""
    for parameter in entry.parameters:
        if parameter.bytes in _WORDS:
            yield from (parameter.name, f"arg{parameter.index}")


_WORDS = (1, 2, 4, 8)  # bytes


def parameter_values(entry: Any, content: Array) -> dict[str, Value]:
    """Return the parameters of the kernel that are words: by name, and as arg0, arg1, ..."""
    found: dict[str, Value] = {}
    for parameter in entry.parameters:
        if parameter.bytes not in _WORDS:
            continue
        part = content[parameter.offset : parameter.offset + parameter.bytes]
        word = np.ascontiguousarray(part).view(f"u{parameter.bytes}")[0]
        value = Value(
            np.asarray(word), parameter.kind if parameter.kind in TYPES else f"b{8 * parameter.bytes}"
        )
        found[parameter.name] = found[f"arg{parameter.index}"] = value
    return found


def mapped(argument: Any) -> Any:
    """Return the array or buffer that a tensor map is of; any other argument as it is."""
    if isinstance(argument, BufferMap):
        return argument.buffer
    return whole(argument.array) if isinstance(argument, ArrayMap) else argument


def map_addresses(args: Sequence[Any], entry: Any, content: Array) -> dict[str, Value]:
    """Return where the arrays begin whose tensor maps are parameters, as arg0, arg1, ..."""
    found = {}
    for parameter, argument in zip(entry.parameters, args, strict=False):
        if isinstance(argument, BufferMap):
            address = argument.buffer.address
        elif isinstance(argument, ArrayMap) and parameter.bytes == _MAP:
            part = content[parameter.offset : parameter.offset + _MAP].tobytes()
            place = first_byte(argument.array) - first_byte(whole(argument.array))
            address = decode(part).address - place
        else:
            continue
        found[f"arg{parameter.index}"] = Value(np.asarray(np.uint64(address)), "u64")
    return found


_MAP = 128  # bytes of a tensor map


def shapes_of(args: Sequence[Any]) -> dict[int, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shape and dtype of the arrays and buffers among arguments, by their numbers; tensor maps are
    those of arrays.
    """
    found = {}
    for index, argument in enumerate(args):
        given = mapped(argument)
        if hasattr(given, "shape") and hasattr(given, "dtype") and len(given.shape):
            found[index] = (tuple(given.shape), np.dtype(str(given.dtype).removeprefix("torch.")))
    return found
