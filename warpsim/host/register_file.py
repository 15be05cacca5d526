"""The named registers of a warp: their types, the scopes that declare them, and their values lane by lane.

Names stand for numbers in a Frame, in which the rows of opcodes/ find the values. Knows which lanes of which
register have been written; does not know instructions or statements. A register holds one unsigned value a
lane, or one bool for ``.pred``.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import IllegalInstruction, NotModelled, OperandError, UndefinedBehavior, WarpsimError
from ..isa.warps import WARP
from ..machine.bind.register_arrays import (
    Lanes,
    bits_dtype,
    bits_type,
    converted,
    counted_bits,
    natural_dtype,
    register_names,
    split,
    type_bits,
)
from ..machine.bind.scope import RegisterName
from ..machine.state.lanes import Frame
from ..machine.state.lanes import Lanes as FrameLanes

Mask = npt.NDArray[np.bool_]  # one truth value a lane

_MOST_ORIGINS = 1024  # kept besides two for each register, before those of values that are gone are dropped
_NOT_MODELLED = re.compile(
    r"%(?:tid|ntid|n?ctaid|n?warpid|n?smid|gridid|n?clusterid)(?:\.[xyz])?"
    r"|%(?:lanemask_[a-z]+|clock|clock_hi|clock64|globaltimer|globaltimer_lo|globaltimer_hi)"
)


@dataclass(slots=True)
class _Scope:
    """Registers of one pair of braces: types, and what stands for them in the frame, by name."""

    number: int  # of the scopes so far; 0 is the outermost
    types: dict[str, str] = field(default_factory=dict)
    names: dict[str, RegisterName] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)  # those that PTX text declares; others were assigned

    def numbers(self) -> list[int]:
        """Those of the registers."""
        return [one.number for one in self.names.values()]


class RegisterFile:
    """Registers by name, in nested scopes, of ``lanes`` lanes; their values are in ``frame``, by number.

    Names that nothing declares may be used as long as no scope around declares any: a register then
    gets the width of what is first written to it.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.frame = Frame(0)
        self._everyone = FrameLanes(np.ones(lanes, np.bool_))
        self._all = self._everyone.mask
        self._all.flags.writeable = False
        self._scopes = [_Scope(0)]
        self._blocks = 0
        self._free: list[int] = []  # numbers of registers that are gone
        self._origins: dict[int, tuple[Lanes, Any]] = {}  # by id of an array: itself, and what wrote it
        self._special = _special_registers(lanes)
        self._special_types = dict.fromkeys(self._special, "u32")

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_origins": list(self._origins.values())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        origins = {id(value): (value, origin) for value, origin in state["_origins"]}
        vars(self).update(state, _origins=origins)

    @property
    def everyone(self) -> Mask:
        """All lanes; always the same array, which write and read know without looking into it."""
        return self._all

    @property
    def whole(self) -> FrameLanes:
        """All lanes."""
        return self._everyone

    # --- names and types ---

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block whose declarations end with it, however it ends."""
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
        """Whether a name must be declared to be used here."""
        return any(scope.declared for scope in self._scopes)

    def types(self) -> Mapping[str, str]:
        """Types by name, as visible here; those of special registers included."""
        return ChainMap(*(scope.types for scope in reversed(self._scopes)), self._special_types)

    def kinds(self, names: Sequence[str]) -> tuple[str | None, ...]:
        """The type of each register that is visible here under a name, None where there is none."""
        if len(self._scopes) == 1:
            return tuple(map(self._scopes[0].types.get, names))
        return tuple([None if known is None else known.type for known in map(self.find, names)])

    def meanings(self, names: Sequence[str]) -> tuple[RegisterName | None, ...]:
        """What each name stands for here; equal meanings are one object."""
        if len(self._scopes) == 1:
            return tuple(map(self._scopes[0].names.get, names))
        return tuple(map(self.find, names))

    def find(self, name: str) -> RegisterName | None:
        """Number and type of the register that is visible here under a name."""
        if len(self._scopes) == 1:
            return self._scopes[0].names.get(name)
        scope = self._scope_of(name)
        return scope.names[name] if scope else None

    def declare(self, names: tuple[str, ...], type_name: str) -> None:
        """Declare registers in the innermost scope; those that already are keep their values.

        Raises IllegalInstruction where one has another type or width here, NotModelled for the type.
        """
        bits, scope = type_bits(type_name), self._scopes[-1]
        for name in sorted(scope.types.keys() & set(names)):
            known = scope.types[name]
            if name in scope.declared and known != type_name:
                raise IllegalInstruction(f"{name} is already declared .{known}")
            if type_bits(known) != bits:
                has = counted_bits(type_bits(known))
                raise IllegalInstruction(f"{name} holds {has}, but is declared .{type_name}")
        scope.declared.update(names)
        for name in names:
            self._name(scope, name, type_name)

    def provide(self, name: str, type_name: str) -> RegisterName:
        """A register for a name that nothing declares, in the outermost scope."""
        return self._name(self._scopes[0], name, type_name)

    def forget(self, names: Iterable[str]) -> None:
        """Take back what provide gave."""
        scope = self._scopes[0]
        for name in names:
            self._release([scope.names.pop(name).number])
            del scope.types[name]

    def _name(self, scope: _Scope, name: str, type_name: str) -> RegisterName:
        """Give a name a type in a scope; a register that is as wide keeps its number."""
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
        """Registers end; their numbers are given to others, the lowest first."""
        for number in numbers:
            self.frame.values[number] = None
            self.frame.partial.pop(number, None)
            heappush(self._free, number)

    def unique(self, name: str) -> str:
        """A name for the register that ``name`` means here, which no register of another scope shares."""
        scope = self._scope_of(name)
        return f"{name} (of block {scope.number})" if scope and scope.number else name

    def is_special(self, name: str) -> bool:
        """Whether the name, as visible here, is that of a special register."""
        return self._scope_of(name) is None and (name in self._special or bool(_NOT_MODELLED.fullmatch(name)))

    def special(self, name: str) -> Lanes | None:
        """The value of a special register, None for one that is not modelled here."""
        return self._special.get(name)

    def writable(self, name: str) -> str | None:
        """The type of a register that may be written, None where the first write chooses its width.

        Raises IllegalInstruction for a special register, and for one that must be declared and is not.
        """
        scope = self._scope_of(name)
        if scope is not None:
            return scope.types[name]
        if name in self._special or _NOT_MODELLED.fullmatch(name):
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

    def columns(self, names: Sequence[object], dtype: np.dtype[Any]) -> Lanes | None:
        """Registers ``(lanes, n)`` that have been written in all lanes and have the dtype.

        None where there is more to say: a name is that of no register, or one has not been written, or has
        another dtype. Then read them one by one.
        """
        known, held, partial, values = self._scopes[0].names, self.frame.values, self.frame.partial, []
        nested = len(self._scopes) > 1
        for name in names:
            if not isinstance(name, str):
                return None
            found = self.find(name) if nested else known.get(name)
            value = None if found is None or found.number in partial else held[found.number]
            if value is None or value.dtype != dtype:
                return None
            values.append(value)
        if not values:
            return None
        return np.ascontiguousarray(np.concatenate(values).reshape(len(values), self.lanes).T)

    def read(self, name: str, lanes: Mask | None = None) -> Lanes:
        """The value of a register in all lanes; do not write to it.

        Raises UndefinedBehavior where nothing has been written to it in one of ``lanes`` (None: all),
        IllegalInstruction where it must be declared and is not, NotModelled for a special register.
        """
        found = self.find(name)
        if found is None:
            return self._unknown(name)
        value = self.frame.values[found.number]
        if value is None or found.number in self.frame.partial:
            self.check_written(name, found.number, self._all if lanes is None else lanes)
        assert value is not None
        return value

    def check_written(self, name: str, number: int, lanes: Mask) -> None:
        """Raise UndefinedBehavior where nothing has been written to a register in one of some lanes."""
        if self.frame.values[number] is None:
            raise UndefinedBehavior(f"register {name} is read, but nothing has been written to it")
        written = self.frame.partial.get(number, self._all)
        if written.all():
            self.frame.partial.pop(number, None)
            return
        missing = lanes & ~written
        if missing.any():
            where = f"in lane {int(np.argmax(missing))}"
            raise UndefinedBehavior(f"register {name} is read, but nothing has been written to it {where}")

    def _unknown(self, name: str) -> Lanes:
        """A register that nothing declares, and nobody has written: it may be special."""
        if name in self._special:
            return self._special[name]
        raise self.unknown(name)

    def unknown(self, name: str) -> WarpsimError:
        """What is wrong with reading a register that nothing declares, and nobody has written."""
        if _NOT_MODELLED.fullmatch(name):
            return NotModelled(f"the special register {name} is not modelled")
        if self.strict:
            return IllegalInstruction(f"register {name} is not declared")
        return UndefinedBehavior(f"register {name} is read, but nothing has been written to it")

    def write(self, name: str, value: Lanes, lanes: Mask | None = None) -> None:
        """Write a register that writable() has allowed, in some lanes or in all; ``value`` has its dtype."""
        whole = lanes is None or lanes is self._all or bool(lanes.all())
        if not whole and lanes is not None and not lanes.any():
            return
        found = self.find(name) or self.provide(name, bits_type(value.dtype))
        if whole:
            self.frame.values[found.number] = value
            self.frame.partial.pop(found.number, None)
        else:
            assert lanes is not None
            self.frame.write(found.number, value, FrameLanes(lanes), everyone=False)

    def write_results(self, names: Sequence[str | None], columns: Sequence[Lanes], what: Any) -> None:
        """Write registers in all lanes, which ``origin`` then says come from places of ``what``.

        None is for a result that nobody wants.
        """
        self._forget_origins()
        values, partial, origins = self.frame.values, self.frame.partial, self._origins
        for place, (name, column) in enumerate(zip(names, columns, strict=True)):
            if name is not None:
                found = self.find(name) or self.provide(name, bits_type(column.dtype))
                values[found.number] = column
                if partial:
                    partial.pop(found.number, None)
                origins[id(column)] = column, (what, place)

    def _forget_origins(self) -> None:
        """Those of values that are gone, if they are many."""
        if len(self._origins) > _MOST_ORIGINS + 2 * len(self.frame.values):
            live = {id(one) for one in self.frame.values if one is not None}
            self._origins = {key: known for key, known in self._origins.items() if key in live}

    def origin(self, name: str) -> Any:
        """What wrote the whole register, and its place there, as write_results was told; None if nobody said.

        An array is never changed, so that a copy of a register has the origin of what it copies.
        """
        found = self.find(name)
        value = None if found is None else self.frame.values[found.number]
        known = self._origins.get(id(value))
        return known[1] if known and known[0] is value else None

    def holds(self, name: str) -> bool:
        """Whether a register has been written in all lanes."""
        found = self.find(name)
        if found is None or self.frame.values[found.number] is None:
            return False
        written = self.frame.partial.get(found.number)
        return written is None or bool(written.all())

    def written(self) -> dict[str, Lanes]:
        """Every register that has been written in all lanes, by name; copies."""
        names = sorted(set().union(*(scope.names for scope in self._scopes)))
        return {name: self.read(name).copy() for name in names if self.holds(name)}

    # --- from arrays ---

    def assign(self, name: str, value: npt.ArrayLike, *, create: bool = True) -> None:
        """Give a register, or the registers ``name<n>``, the bits of an array; all of them or none.

        A scalar goes to every lane and register. With ``create`` registers that nothing declares come
        into being, of the array's own width; without, that is an error where others are declared.
        Raises OperandError.
        """
        names, array = register_names(name), np.asarray(value)
        values = [
            converted(one, part, self._assigned_dtype(one, part, create))
            for one, part in zip(names, split(name, array, self.lanes), strict=True)
        ]
        for one, lanes in zip(names, values, strict=True):
            scope = self._scope_of(one) or self._scopes[0]
            if one not in scope.declared:
                self._name(scope, one, bits_type(lanes.dtype))
            number = scope.names[one].number
            self.frame.values[number] = np.array(np.broadcast_to(lanes, (self.lanes,)))
            self.frame.partial.pop(number, None)

    def _assigned_dtype(self, name: str, array: npt.NDArray[Any], create: bool) -> np.dtype[Any]:
        scope = self._scope_of(name)
        if scope is None and (name in self._special or _NOT_MODELLED.fullmatch(name)):
            raise OperandError(f"the special register {name} is read-only")
        if scope is None and self.strict and not create:
            raise OperandError(f"register {name} is not declared")
        if scope is None or name not in scope.declared:
            return natural_dtype(array)
        return bits_dtype(type_bits(scope.types[name]))


@cache
def _register(number: int, type_name: str) -> RegisterName:
    """Number and type; equal ones are one object, which makes them quick to compare."""
    return RegisterName(number, type_name)


def _special_registers(lanes: int) -> dict[str, Lanes]:
    """What a thread block of that many lanes sees; a single warp has no number worth knowing."""
    lane = np.arange(lanes, dtype=np.uint32)
    special = {"%laneid": lane % WARP, "%tid.x": lane, "%tid.y": 0 * lane, "%tid.z": 0 * lane}
    return special | {"%warpid": lane // WARP} if lanes > WARP else special
