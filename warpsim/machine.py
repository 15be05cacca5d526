"""A warp that executes PTX statements one by one on named registers.

Knows the register file, scopes, guards, ``mov`` and the matrix instructions; does not know files. An
instruction that fails leaves every register as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .architectures import ARCHITECTURES
from .errors import IllegalInstruction, NotModelled, OperandError, UndefinedBehavior, WarpsimError
from .instruction import Inputs, Instruction, ScaleSelectors
from .pipeline import Engine, Undefined, execute_inputs, is_literal
from .ptx.binding import Bound
from .ptx.constants import Immediate
from .ptx.decode import OPCODES, bind_statement, parse_version
from .ptx.operands import Operand, Register, Sink, Vector
from .ptx.parser import parse
from .ptx.qualifiers import PTX_VERSION, check_target
from .ptx.statements import (
    Binding,
    Block,
    Directive,
    InstructionStatement,
    Label,
    RegisterDeclaration,
    Statement,
)

LANES = 32
Lanes = npt.NDArray[Any]  # one value a lane: bool for .pred, otherwise unsigned

_RANGE = re.compile(r"(?P<stem>.*)<(?P<count>\d+)>")
_WIDTH = re.compile(r"[a-z]+(\d+)(x2)?")


def type_dtype(name: str) -> np.dtype[Any]:
    """The dtype that holds one lane of a register of a PTX type: bool, uint8, uint16, uint32 or uint64."""
    if name == "pred":
        return np.dtype(np.bool_)
    match = _WIDTH.fullmatch(name)
    bits = int(match[1]) * (2 if match[2] else 1) if match else 0
    if bits not in (8, 16, 32, 64):
        raise NotModelled(f"registers of type .{name} are not modelled")
    return np.dtype(f"u{bits // 8}")


@dataclass(frozen=True, kw_only=True)
class Event:
    """One executed matrix instruction: where it stood, what it was, and the names of its operands."""

    statement: InstructionStatement
    bound: Bound

    @property
    def instruction(self) -> Instruction:
        """The instruction on the warp's target."""
        return self.bound.instruction


class Warp:
    """32 lanes with named registers.

    ``warp["%r1"]`` is a register, one unsigned value a lane; ``warp["%r<4>"]`` is ``%r0`` to ``%r3`` as
    an array ``(32, 4)``, ready for warpsim.unpack. Assigning declares the register if need be; scalars
    are broadcast, floats give their bits. Registers of PTX text may be left undeclared as long as the
    text declares none at all: they then have the right types.

    ``target`` is the chip; ``engine`` and ``undefined`` are those of warpsim.execute. Raises
    IllegalInstruction for an unknown target.
    """

    def __init__(self, target: str, *, engine: Engine = "kernel", undefined: Undefined = "error") -> None:
        check_target(target)
        self.target = ARCHITECTURES[target].name
        self.engine: Engine = engine
        self.undefined: Undefined = undefined
        self.version = PTX_VERSION
        self._values: dict[str, Lanes] = {}
        self._types: dict[str, str] = {}
        self._declared = False

    # --- registers ---

    def __getitem__(self, name: str) -> Lanes:
        """A register ``(32,)``, or ``(32, n)`` for ``name<n>``; raises UndefinedBehavior if never written."""
        match = _RANGE.fullmatch(name)
        if match is None:
            return self._read(name).copy()
        return np.stack([self._read(one) for one in _names(match)], axis=-1)

    def __setitem__(self, name: str, value: npt.ArrayLike) -> None:
        match = _RANGE.fullmatch(name)
        if match is None:
            self._write(name, self._as_lanes(name, np.asarray(value)))
            return
        names, array = _names(match), np.asarray(value)
        if array.shape != (LANES, len(names)):
            raise OperandError(f"{name} takes an array ({LANES}, {len(names)}), not {array.shape}")
        for i, one in enumerate(names):
            self._write(one, self._as_lanes(one, array[:, i]))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def registers(self) -> dict[str, Lanes]:
        """Every register that has been written, by name; copies."""
        return {name: value.copy() for name, value in self._values.items()}

    def _as_lanes(self, name: str, array: npt.NDArray[Any]) -> Lanes:
        if array.dtype.kind == "f":
            array = array.view(f"u{array.dtype.itemsize}")
        dtype = type_dtype(self._types[name]) if name in self._types else _natural_dtype(array)
        if array.shape not in ((), (LANES,)):
            raise OperandError(f"{name} takes a scalar or {LANES} values, one a lane, not {array.shape}")
        if array.dtype.kind not in "iub":
            raise OperandError(f"{name} takes integers (bits), floats or bools, not {array.dtype}")
        if dtype != np.bool_ and array.size:
            low, high = int(array.min()), int(array.max())
            bits = 8 * dtype.itemsize
            if low < -(1 << (bits - 1)) or high >= 1 << bits:
                raise OperandError(f"{name} holds {bits} bits; {low if low < 0 else high} does not fit")
        return np.broadcast_to(array, (LANES,)).astype(dtype)

    def _read(self, name: str) -> Lanes:
        if name in _SPECIAL:
            return _SPECIAL[name]
        if name not in self._values:
            raise UndefinedBehavior(f"register {name} is read, but nothing has been written to it")
        return self._values[name]

    def _write(self, name: str, value: Lanes, lanes: npt.NDArray[np.bool_] | None = None) -> None:
        if lanes is not None and not lanes.all():
            value = np.where(lanes, value, self._read(name))
        self._values[name] = value

    # --- statements ---

    def run(self, text: str, file: str = "<string>") -> list[Event]:
        """Execute PTX statements; return what matrix instructions were executed, in order.

        Raises PtxError, IllegalInstruction, NotModelled, UndefinedBehavior or OperandError, pointing at
        the statement; what ran before it stays done.
        """
        return self.run_statements(parse(text, file).statements)

    def run_statements(self, statements: Iterable[Statement]) -> list[Event]:
        """Execute parsed statements, as run does."""
        events: list[Event] = []
        for statement in statements:
            try:
                _HANDLERS.get(type(statement), Warp._refuse)(self, statement, events)
            except WarpsimError as error:
                if error.location is None:
                    error.at(statement.location())
                raise
        return events

    def _refuse(self, statement: Statement, events: list[Event]) -> None:
        raise NotModelled(f"a {type(statement).__name__.lower()} cannot be executed by a warp here")

    def _skip(self, statement: Statement, events: list[Event]) -> None:
        pass

    def _direct(self, statement: Directive, events: list[Event]) -> None:
        if statement.name == "version":
            self.version = parse_version(statement.text.strip())

    def _declare(self, statement: RegisterDeclaration, events: list[Event]) -> None:
        dtype = type_dtype(statement.type)
        for name in statement.names:
            held = self._values.get(name)
            if held is not None and held.dtype != dtype:
                raise IllegalInstruction(
                    f"{name} holds {held.dtype} values, but is declared .{statement.type}"
                )
        self._declared = True
        self._types.update(dict.fromkeys(statement.names, statement.type))

    def _block(self, statement: Block, events: list[Event]) -> None:
        """Registers that the block declares are its own; they end with it."""
        outer_values, outer_types = dict(self._values), dict(self._types)
        local: set[str] = set()
        for inner in statement.statements:
            if isinstance(inner, RegisterDeclaration):
                local.update(inner.names)
                for name in inner.names:
                    self._values.pop(name, None)
            events.extend(self.run_statements([inner]))
        for name in local:
            _restore(self._values, outer_values, name)
            _restore(self._types, outer_types, name)

    def _instruction(self, statement: InstructionStatement, events: list[Event]) -> None:
        lanes = self._guard(statement)
        if statement.opcode in OPCODES:
            if lanes.any() and not lanes.all():
                raise UndefinedBehavior(
                    f"the guard of {statement.opcode} differs between lanes; all lanes must execute it"
                )
            bound = bind_statement(statement, self.target, self.version, self._known_types())
            if lanes.all():
                self._multiply(bound)
                events.append(Event(statement=statement, bound=bound))
        elif statement.opcode == "mov":
            self._move(statement, lanes)
        else:
            raise NotModelled(f"'{statement.opcode}' is not modelled; a warp executes mma, mma.sp and mov")

    def _known_types(self) -> dict[str, str] | None:
        if not self._declared:
            return None
        assigned = {name: _DTYPE_NAMES[value.dtype] for name, value in self._values.items()}
        return assigned | self._types

    def _guard(self, statement: InstructionStatement) -> npt.NDArray[np.bool_]:
        if statement.guard is None:
            return np.ones(LANES, np.bool_)
        negated, name = statement.guard
        value = self._read(name)
        if value.dtype != np.bool_:
            raise IllegalInstruction(f"guard {name} is not a predicate")
        return value ^ negated

    # --- matrix instructions ---

    def _multiply(self, bound: Bound) -> None:
        form = bound.instruction
        registers = {role: self._gathered(getattr(bound, role), form) for role in "abc"}
        singles = {"e": bound.e, "scale_a": bound.scale_a, "scale_b": bound.scale_b}
        for role, name in singles.items():
            if name is not None:
                registers[role] = self._read(name).astype(np.uint32)[:, None]
        inputs = Inputs(
            registers=registers,
            selector=bound.selector,
            scale_selectors=self._scale_selectors(bound),
            literal=is_literal(self.undefined),
        )
        d = execute_inputs(form, inputs, self.engine)
        for i, name in enumerate(bound.d):
            if name is not None:
                self._write(name, np.ascontiguousarray(d[:, i]))

    def _gathered(self, sources: tuple[str | Immediate, ...], form: Instruction) -> npt.NDArray[Any]:
        word = np.dtype(f"u{form.register_bits // 8}")
        columns = [
            np.full(LANES, _constant(one, form.register_bits), word)
            if isinstance(one, Immediate)
            else self._read(one)
            for one in sources
        ]
        return np.stack(columns, axis=-1).astype(word)

    def _scale_selectors(self, bound: Bound) -> ScaleSelectors:
        return ScaleSelectors(*(self._uniform(one) for one in bound.ids))

    def _uniform(self, value: str | int) -> int:
        if isinstance(value, int):
            return value
        lanes = self._read(value)
        if (lanes != lanes[0]).any():
            raise NotModelled(f"{value} differs between lanes; scale selectors are modelled where all agree")
        return int(lanes[0])

    # --- mov ---

    def _move(self, statement: InstructionStatement, lanes: npt.NDArray[np.bool_]) -> None:
        operands = statement.operands or ()
        if len(statement.modifiers) != 1 or len(operands) != 2:
            raise IllegalInstruction("mov takes one type and two operands, as in 'mov.b32 %r1, %r2;'")
        dtype = type_dtype(statement.modifiers[0])
        target, source = operands
        value = self._joined(source, dtype) if isinstance(source, Vector) else self._source(source, dtype)
        if isinstance(target, Vector):
            self._split(target, value, lanes)
        else:
            self._assign(target, value, lanes)

    def _source(self, operand: Operand, dtype: np.dtype[Any]) -> Lanes:
        if isinstance(operand, Immediate):
            return np.full(LANES, _constant(operand, _bits(dtype)), np.uint64).astype(dtype)
        if not isinstance(operand, Register):
            raise IllegalInstruction(f"mov reads a register or a constant, not '{operand}'")
        value = self._read(operand.name)
        if value.dtype != dtype:
            raise IllegalInstruction(f"mov of {_bits(dtype)} bits, but {operand} has {_bits(value.dtype)}")
        return value

    def _joined(self, vector: Vector, dtype: np.dtype[Any]) -> Lanes:
        part = self._part(vector, dtype)
        parts = [self._source(element, part).astype(dtype) for element in vector.elements]
        shifts = [dtype.type(i * _bits(part)) for i in range(len(parts))]
        joined: Lanes = np.bitwise_or.reduce([x << s for x, s in zip(parts, shifts, strict=True)])
        return joined

    def _split(self, vector: Vector, value: Lanes, lanes: npt.NDArray[np.bool_]) -> None:
        part = self._part(vector, value.dtype)
        for i, element in enumerate(vector.elements):
            if not isinstance(element, Sink):
                self._assign(element, (value >> value.dtype.type(i * _bits(part))).astype(part), lanes)

    def _part(self, vector: Vector, whole: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of one element of a packed register: the first element is the lowest."""
        size = whole.itemsize // len(vector.elements)
        if len(vector.elements) not in (2, 4) or size == 0 or whole == np.bool_:
            raise IllegalInstruction(
                f"mov of {_bits(whole)} bits does not take {len(vector.elements)} elements"
            )
        return np.dtype(f"u{size}")

    def _assign(self, target: Operand, value: Lanes, lanes: npt.NDArray[np.bool_]) -> None:
        if not isinstance(target, Register):
            raise IllegalInstruction(f"mov writes a register, not '{target}'")
        declared = self._types.get(target.name)
        if declared is None and self._declared and target.name not in self._values:
            raise IllegalInstruction(f"register {target} is not declared")
        if declared is not None and type_dtype(declared) != value.dtype:
            raise IllegalInstruction(f"mov of {_bits(value.dtype)} bits, but {target} is .{declared}")
        self._write(target.name, value, lanes)


_HANDLERS: dict[type[Statement], Callable[[Warp, Any, list[Event]], None]] = {
    Binding: Warp._skip,
    Label: Warp._skip,
    Directive: Warp._direct,
    RegisterDeclaration: Warp._declare,
    Block: Warp._block,
    InstructionStatement: Warp._instruction,
}

_SPECIAL: dict[str, Lanes] = {
    "%laneid": np.arange(LANES, dtype=np.uint32),
    "%tid.x": np.arange(LANES, dtype=np.uint32),
    "WARP_SZ": np.full(LANES, LANES, np.uint32),
}

_DTYPE_NAMES = {
    np.dtype(np.bool_): "pred",
    np.dtype(np.uint8): "b8",
    np.dtype(np.uint16): "b16",
    np.dtype(np.uint32): "b32",
    np.dtype(np.uint64): "b64",
}


def _names(match: re.Match[str]) -> list[str]:
    return [f"{match['stem']}{i}" for i in range(int(match["count"]))]


def _natural_dtype(array: npt.NDArray[Any]) -> np.dtype[Any]:
    """The dtype of an undeclared register: that of its first value; Python integers are 32 bits wide."""
    if array.dtype == np.bool_:
        return array.dtype
    if array.dtype == np.int64:
        return np.dtype(np.uint32)
    return np.dtype(f"u{array.dtype.itemsize}")


def _bits(dtype: np.dtype[Any]) -> int:
    return 1 if dtype == np.bool_ else 8 * dtype.itemsize


def _constant(immediate: Immediate, bits: int) -> int:
    """The bits of a constant in a register of that width; a decimal fraction becomes f32 or f64."""
    if immediate.kind == "f64" and bits == 32:
        value = np.array(immediate.value, np.uint64).view(np.float64).astype(np.float32)
        return int(value.view(np.uint32))
    return immediate.value & (1 << bits) - 1


def _restore(current: dict[str, Any], outer: dict[str, Any], name: str) -> None:
    if name in outer:
        current[name] = outer[name]
    else:
        current.pop(name, None)
