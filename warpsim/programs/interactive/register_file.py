"""The named registers of a Warp or Warpgroup: types, the scopes that declare them, and values lane by lane.

A name stands for a number in a Frame, where the steps of statements find the values. Knows which lanes of
which register have been written; does not know instructions or statements. A register holds one unsigned
value per lane, or one bool for ``.pred``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import IllegalInstruction, OperandError, UndefinedBehavior, WarpsimError
from ...machine.bind.register_arrays import (
    bits_dtype,
    bits_text,
    bits_type,
    converted,
    natural_dtype,
    register_names,
    split,
    type_bits,
)
from ...machine.bind.scope import RegisterName
from ...machine.opcodes.special_registers import is_special
from ...machine.state.lanes import Frame, Lanes, Mask, Values

_MOST_NOTED = 64  # events whose results are kept until the origins of dead values are dropped


@dataclass(slots=True)
class _Scope:
    """The registers of one pair of braces: their types, and their numbers in the frame, by name."""

    number: int  # of the scopes so far; 0 is the outermost
    types: dict[str, str] = field(default_factory=dict)
    names: dict[str, RegisterName] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)  # the names that PTX text declares; others were assigned

    def numbers(self) -> list[int]:
        """Return the numbers of the registers."""
        return [name.number for name in self.names.values()]


class RegisterFile:
    """Registers by name, in nested scopes, of ``lanes`` lanes; their values are in ``frame``, by number.

    Undeclared names may be used as long as no scope around declares any: a register then gets the width of
    the first value that is written to it.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.frame = Frame(0)
        self.whole = Lanes(np.ones(lanes, np.bool_))  # all lanes: always the same object
        self.whole.mask.flags.writeable = False
        self._scopes = [_Scope(0)]
        self._blocks = 0
        self._free: list[int] = []  # numbers of registers that have ended
        self._origins: dict[int, tuple[Values, Any]] = {}  # by id of an array: itself, and what wrote it
        self._noted: list[tuple[Values, Any]] = []  # the columns of D, and the event, until they are needed

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_origins": list(self._live_origins().values()), "_noted": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        origins = {id(value): (value, origin) for value, origin in state["_origins"]}
        vars(self).update(state, _origins=origins)

    # --- names and types ---

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a block whose declarations end with it, however it ends."""
        depth = len(self._scopes)
        self._blocks += 1
        self._scopes.append(_Scope(self._blocks))
        try:
            yield
        finally:
            for scope in self._scopes[depth:]:
                self._release(scope.numbers())
            del self._scopes[depth:]

    @property
    def strict(self) -> bool:
        """Whether a name must be declared to be used here: any is declared."""
        return any(scope.declared for scope in self._scopes)

    def meanings(self, names: Sequence[str]) -> tuple[RegisterName | None, ...]:
        """Return what each name stands for here; equal meanings are one object."""
        if len(self._scopes) == 1:
            return tuple(map(self._scopes[0].names.get, names))
        return tuple(map(self.find, names))

    def find(self, name: str) -> RegisterName | None:
        """Return number and type of the register that is visible here under a name."""
        if len(self._scopes) == 1:
            return self._scopes[0].names.get(name)
        scope = self._scope_of(name)
        return scope.names[name] if scope else None

    def declare(self, names: Sequence[str], type_name: str) -> None:
        """Declare registers in the innermost scope; declared registers keep their values.

        Raises IllegalInstruction for another type or width than before, NotModelled for the type.
        """
        bits, scope = type_bits(type_name), self._scopes[-1]
        for name in sorted(scope.types.keys() & set(names)):
            known = scope.types[name]
            if name in scope.declared and known != type_name:
                raise IllegalInstruction(f"{name} is already declared .{known}")
            if type_bits(known) != bits:
                has = bits_text(type_bits(known))
                raise IllegalInstruction(f"{name} holds {has}, but is declared .{type_name}")
        scope.declared.update(names)
        for name in names:
            self._name(scope, name, type_name)

    def provide(self, name: str, type_name: str) -> RegisterName:
        """Create a register for an undeclared name, in the outermost scope."""
        return self._name(self._scopes[0], name, type_name)

    def forget(self, names: Iterable[str]) -> None:
        """Remove registers that provide created."""
        scope = self._scopes[0]
        for name in names:
            self._release([scope.names.pop(name).number])
            del scope.types[name]

    def _name(self, scope: _Scope, name: str, type_name: str) -> RegisterName:
        """Give a name a type in a scope; a register of the same width keeps its number."""
        known = scope.names.get(name)
        if known is not None and type_bits(known.type) == type_bits(type_name):
            number = known.number
        else:
            if known is not None:
                self._release([known.number])
            number = heappop(self._free) if self._free else self._new()
        scope.types[name] = type_name
        scope.names[name] = _register(number, type_name)
        return scope.names[name]

    def _new(self) -> int:
        self.frame.values.append(None)
        return len(self.frame.values) - 1

    def _release(self, numbers: Iterable[int]) -> None:
        """End registers; their numbers are reused, the lowest first."""
        for number in numbers:
            self.frame.values[number] = None
            self.frame.partial.pop(number, None)
            heappush(self._free, number)

    def unique(self, name: str) -> str:
        """Return a name for the register that ``name`` means here, unique among all scopes."""
        if len(self._scopes) == 1:
            return name
        scope = self._scope_of(name)
        return f"{name} (of block {scope.number})" if scope and scope.number else name

    def is_special(self, name: str) -> bool:
        """Return whether the name, as visible here, is that of a special register."""
        return self._scope_of(name) is None and is_special(name)

    def writable(self, name: str) -> str | None:
        """Return the type of a register that may be written, None where the first write chooses its width.

        Raises IllegalInstruction for a special register, and for an undeclared name where any is declared.
        """
        scope = self._scope_of(name)
        if scope is not None:
            return scope.types[name]
        if is_special(name):
            raise IllegalInstruction(f"the special register {name} is read-only")
        if self.strict:
            raise IllegalInstruction(f"register {name} is not declared")
        return None

    def _scope_of(self, name: str) -> _Scope | None:
        if len(self._scopes) == 1:
            return self._scopes[0] if name in self._scopes[0].types else None
        for scope in reversed(self._scopes):
            if name in scope.types:
                return scope
        return None

    # --- values ---

    def read(self, name: str) -> Values:
        """Return the value of a register in all lanes; do not write to it.

        Raises UndefinedBehavior where it has not been written in every lane, IllegalInstruction where it must
        be declared and is not.
        """
        found = self.find(name)
        if found is None:
            raise self.unknown(name)
        value = self.frame.values[found.number]
        if value is None or found.number in self.frame.partial:
            self.check_written(name, found.number, self.whole.mask)
        assert value is not None
        return value

    def check_written(self, name: str, number: int, lanes: Mask) -> None:
        """Raise UndefinedBehavior where a register has not been written in some of the lanes."""
        if self.frame.values[number] is None:
            raise UndefinedBehavior(f"register {name} is read, but nothing has been written to it")
        written = self.frame.partial.get(number, self.whole.mask)
        if written.all():
            self.frame.partial.pop(number, None)
            return
        missing = lanes & ~written
        if missing.any():
            where = f"in lane {int(np.argmax(missing))}"
            raise UndefinedBehavior(f"register {name} is read, but nothing has been written to it {where}")

    def unknown(self, name: str) -> WarpsimError:
        """Return the error of reading a register that is neither declared nor written."""
        if self.strict:
            return IllegalInstruction(f"register {name} is not declared")
        return UndefinedBehavior(f"register {name} is read, but nothing has been written to it")

    def note_origin(self, names: Sequence[str | None], event: Any) -> None:
        """Note that registers hold the results of an event, in this order; None is a sink.

        Their values are the rows of one array: which rows is found when an origin is asked for.
        """
        found = self.find(next((name for name in names if name is not None), "_"))
        value = None if found is None else self.frame.values[found.number]
        if value is not None and value.base is not None:
            self._noted.append((value.base, event))
        if len(self._noted) > _MOST_NOTED:
            self._live_origins()

    def _live_origins(self) -> dict[int, tuple[Values, Any]]:
        """Return the origins of the values that registers hold now, by id."""
        live = {id(value): value for value in self.frame.values if value is not None}
        kept = {key: known for key, known in self._origins.items() if key in live}
        noted = {id(columns): (columns, event) for columns, event in self._noted}
        for key, value in live.items():
            columns, event = noted.get(id(value.base), (None, None))
            if columns is not None and key not in kept and value.dtype == columns.dtype:
                kept[key] = value, (event, (_address(value) - _address(columns)) // columns.strides[0])
        self._origins, self._noted = kept, []
        return kept

    def origin(self, name: str) -> Any:
        """Return the event whose result a register holds, and its place there; None where there is none.

        An array is never changed, so a copy of a register has the origin of its source.
        """
        found = self.find(name)
        value = None if found is None else self.frame.values[found.number]
        known = self._live_origins().get(id(value))
        return known[1] if known and known[0] is value else None

    def holds(self, name: str) -> bool:
        """Return whether a register has been written in all lanes."""
        found = self.find(name)
        if found is None or self.frame.values[found.number] is None:
            return False
        written = self.frame.partial.get(found.number)
        return written is None or bool(written.all())

    def written(self) -> dict[str, Values]:
        """Return copies of all registers that have been written in all lanes, by name."""
        names = sorted(set().union(*(scope.names for scope in self._scopes)))
        return {name: self.read(name).copy() for name in names if self.holds(name)}

    # --- from arrays ---

    def assign(self, name: str, given: npt.ArrayLike, *, create: bool = True) -> None:
        """Give a register, or the registers ``name<n>``, the bits of an array; all of them or none.

        A scalar goes to every lane and register. With ``create`` undeclared registers are created, as wide
        as the array's elements; without, they are an error where others are declared. Raises OperandError.
        """
        names, array = register_names(name), np.asarray(given)
        values = [
            converted(register, part, self._assigned_dtype(register, part, create))
            for register, part in zip(names, split(name, array, self.lanes), strict=True)
        ]
        for register, value in zip(names, values, strict=True):
            scope = self._scope_of(register) or self._scopes[0]
            if register not in scope.declared:
                self._name(scope, register, bits_type(value.dtype))
            number = scope.names[register].number
            self.frame.values[number] = np.array(np.broadcast_to(value, (self.lanes,)))
            self.frame.partial.pop(number, None)

    def _assigned_dtype(self, name: str, array: npt.NDArray[Any], create: bool) -> np.dtype[Any]:
        scope = self._scope_of(name)
        if scope is None and is_special(name):
            raise OperandError(f"the special register {name} is read-only")
        if scope is None and self.strict and not create:
            raise OperandError(f"register {name} is not declared")
        if scope is None or name not in scope.declared:
            return natural_dtype(array)
        return bits_dtype(type_bits(scope.types[name]))


def _address(array: Values) -> int:
    """Return where an array begins in the memory of the process."""
    address: int = array.__array_interface__["data"][0]
    return address


@cache
def _register(number: int, type_name: str) -> RegisterName:
    """Return number and type; equal results are one object, which makes them quick to compare."""
    return RegisterName(number, type_name)
