"""The named registers of a warp: their types, the scopes that declare them, and their values lane by lane.

Knows which lanes of which register have been written; does not know instructions or statements. A
register holds one unsigned value a lane, or one bool for ``.pred``.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import IllegalInstruction, NotModelled, OperandError, UndefinedBehavior
from ..ptx.operand_types import REGISTER_BITS
from ..ptx.source import NAME

Lanes = npt.NDArray[Any]  # one value a lane: bool for .pred, otherwise unsigned
Mask = npt.NDArray[np.bool_]  # one truth value a lane

_NAME = re.compile(rf"{NAME}(?:\.[xyz])?", re.ASCII)
_NUMBERED = re.compile(r"(?P<stem>.*)<(?P<count>\d{1,9})>")
_MOST_NUMBERED = 4096  # registers that one name<n> may stand for

_WARP = 32
_NOT_MODELLED = re.compile(
    r"%(?:tid|ntid|n?ctaid|n?warpid|n?smid|gridid|n?clusterid)(?:\.[xyz])?"
    r"|%(?:lanemask_[a-z]+|clock|clock_hi|clock64|globaltimer|globaltimer_lo|globaltimer_hi)"
)


def type_bits(name: str) -> int:
    """Bits of one lane of a register of a PTX type; 1 for a predicate. Raises NotModelled beyond 64."""
    bits = REGISTER_BITS.get(name, 0)
    if not 1 <= bits <= 64:
        raise NotModelled(f"registers of type .{name} are not modelled")
    return bits


def bits_dtype(bits: int) -> np.dtype[Any]:
    """The dtype that holds one lane of that many bits: bool, uint8, uint16, uint32 or uint64."""
    return np.dtype(np.bool_) if bits == 1 else np.dtype(f"u{bits // 8}")


def dtype_bits(dtype: np.dtype[Any]) -> int:
    """The inverse of bits_dtype."""
    return 1 if dtype == np.bool_ else 8 * dtype.itemsize


def register_names(name: str) -> list[str]:
    """The registers that ``name`` stands for: itself, or ``%r0`` to ``%r3`` for ``%r<4>``.

    Raises OperandError where that is not the name of a register, or of at most 4096 of them.
    """
    match = _NUMBERED.fullmatch(name)
    count = int(match["count"]) if match else 1
    if not _NAME.fullmatch(match["stem"] if match else name) or not 1 <= count <= _MOST_NUMBERED:
        raise OperandError(f"{name!r}: expected a register, as '%r1', or up to {_MOST_NUMBERED}, as '%r<4>'")
    return [f"{match['stem']}{i}" for i in range(count)] if match else [name]


@dataclass(slots=True)
class _Held:
    """What one register holds, in which lanes, and what wrote it (None: nobody cares)."""

    value: Lanes
    written: Mask
    origin: Any = None


@dataclass(slots=True)
class _Scope:
    """Registers of one pair of braces: the types by name, and the values of those that were written."""

    number: int  # of the scopes so far; 0 is the outermost
    types: dict[str, str] = field(default_factory=dict)
    held: dict[str, _Held] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)  # those that PTX text declares; others were assigned


class RegisterFile:
    """Registers by name, in nested scopes, of ``lanes`` lanes.

    Names that nothing declares may be used as long as no scope around declares any: a register then
    gets the width of what is first written to it.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._all = np.ones(lanes, np.bool_)
        self._all.flags.writeable = False
        self._scopes = [_Scope(0)]
        self._blocks = 0
        self._special = _special_registers(lanes)
        self._special_types = dict.fromkeys(self._special, "u32")

    @property
    def everyone(self) -> Mask:
        """All lanes; always the same array, which write and read know without looking into it."""
        return self._all

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
        scopes = [self._scope_of(name) for name in names]
        return tuple(
            [None if scope is None else scope.types[name] for name, scope in zip(names, scopes, strict=True)]
        )

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
                has = _plural(type_bits(known))
                raise IllegalInstruction(f"{name} holds {has}, but is declared .{type_name}")
        scope.declared.update(names)
        scope.types.update(dict.fromkeys(names, type_name))

    def unique(self, name: str) -> str:
        """A name for the register that ``name`` means here, which no register of another scope shares."""
        scope = self._scope_of(name)
        return f"{name} (of block {scope.number})" if scope and scope.number else name

    def is_special(self, name: str) -> bool:
        """Whether the name, as visible here, is that of a special register."""
        return self._scope_of(name) is None and (name in self._special or bool(_NOT_MODELLED.fullmatch(name)))

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
        values, everyone = [], self._all
        for name in names:
            scope = self._scope_of(name) if isinstance(name, str) else None
            held = scope.held.get(name) if scope else None  # type: ignore[call-overload]
            if held is None or held.written is not everyone or held.value.dtype != dtype:
                return None
            values.append(held.value)
        if not values:
            return None
        return np.ascontiguousarray(np.concatenate(values).reshape(len(values), self.lanes).T)

    def read(self, name: str, lanes: Mask | None = None) -> Lanes:
        """The value of a register in all lanes; do not write to it.

        Raises UndefinedBehavior where nothing has been written to it in one of ``lanes`` (None: all),
        IllegalInstruction where it must be declared and is not, NotModelled for a special register.
        """
        scope = self._scope_of(name)
        held = scope.held.get(name) if scope else None
        if held is not None and held.written is self._all:
            return held.value
        if scope is None and name in self._special:
            return self._special[name]
        if scope is None and _NOT_MODELLED.fullmatch(name):
            raise NotModelled(f"the special register {name} is not modelled")
        if scope is None and self.strict:
            raise IllegalInstruction(f"register {name} is not declared")
        if held is None:
            raise UndefinedBehavior(f"register {name} is read, but nothing has been written to it")
        missing = (self._all if lanes is None else lanes) & ~held.written
        if missing.any():
            where = f"in lane {int(np.argmax(missing))}"
            raise UndefinedBehavior(f"register {name} is read, but nothing has been written to it {where}")
        return held.value

    def write(self, name: str, value: Lanes, lanes: Mask | None = None, origin: Any = None) -> None:
        """Write a register that writable() has allowed, in some lanes or in all; ``value`` has its dtype."""
        whole = lanes is None or lanes is self._all
        if lanes is not None and not (whole or lanes.any()):
            return
        scope = self._scope_of(name)
        if scope is None:
            scope = self._scopes[0]
            scope.types[name] = _bits_type(value.dtype)
        before = scope.held.get(name)
        if lanes is None or whole or lanes.all():
            scope.held[name] = _Held(value, self._all, origin)
        elif before is None:
            scope.held[name] = _Held(value, lanes)
        else:
            scope.held[name] = _Held(np.where(lanes, value, before.value), before.written | lanes)

    def origin(self, name: str) -> Any:
        """What wrote the whole register, as write was told; None if nobody said."""
        held = self._held(name)
        return held.origin if held else None

    def holds(self, name: str) -> bool:
        """Whether a register has been written in all lanes."""
        held = self._held(name)
        return held is not None and bool(held.written.all())

    def written(self) -> dict[str, Lanes]:
        """Every register that has been written in all lanes, by name; copies."""
        names = sorted(set().union(*(scope.held for scope in self._scopes)))
        return {name: self.read(name).copy() for name in names if self.holds(name)}

    def _held(self, name: str) -> _Held | None:
        scope = self._scope_of(name)
        return scope.held.get(name) if scope else None

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
                scope.types[one] = _bits_type(lanes.dtype)
            scope.held[one] = _Held(np.broadcast_to(lanes, (self.lanes,)), self._all)

    def _assigned_dtype(self, name: str, array: npt.NDArray[Any], create: bool) -> np.dtype[Any]:
        scope = self._scope_of(name)
        if scope is None and (name in self._special or _NOT_MODELLED.fullmatch(name)):
            raise OperandError(f"the special register {name} is read-only")
        if scope is None and self.strict and not create:
            raise OperandError(f"register {name} is not declared")
        if scope is None or name not in scope.declared:
            return _natural_dtype(array)
        return bits_dtype(type_bits(scope.types[name]))


def _special_registers(lanes: int) -> dict[str, Lanes]:
    """What a thread block of that many lanes sees; a single warp has no number worth knowing."""
    lane = np.arange(lanes, dtype=np.uint32)
    special = {"%laneid": lane % _WARP, "%tid.x": lane, "%tid.y": 0 * lane, "%tid.z": 0 * lane}
    return special | {"%warpid": lane // _WARP} if lanes > _WARP else special


def split(name: str, array: npt.NDArray[Any], lanes: int) -> list[npt.NDArray[Any]]:
    """The part of an array, a scalar or one value a lane, for each register of ``name``.

    Raises OperandError where the array is neither a scalar nor ``(lanes, registers)``.
    """
    count = len(register_names(name))
    if array.shape == ():
        return [array] * count
    if count == 1 and array.shape == (lanes,):
        return [array]
    if array.shape != (lanes, count):
        wanted = f"{lanes} values, one a lane" if count == 1 else f"an array ({lanes}, {count})"
        raise OperandError(f"{name} takes a scalar or {wanted}, not an array {array.shape}")
    return list(array.T)


def converted(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> Lanes:
    """The bits of an array in the dtype of the register ``name``; raises OperandError."""
    bits = dtype_bits(dtype)
    if _is_float(array):
        if dtype_bits(array.dtype) != bits:
            has = _plural(bits)
            raise OperandError(f"{name} holds {has}, but the values are {array.dtype}: convert them first")
        array = np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    if array.dtype.kind not in "iub":
        raise OperandError(f"{name} takes integers (bits), floats or bools, not {array.dtype}")
    low, high = int(array.min()), int(array.max())
    lowest = 0 if bits == 1 else -(1 << (bits - 1))
    if low < lowest or high >= 1 << bits:
        raise OperandError(f"{name} holds {_plural(bits)}; {low if low < lowest else high} does not fit")
    return array.astype(dtype)


def _natural_dtype(array: npt.NDArray[Any]) -> np.dtype[Any]:
    """The dtype of a register that nothing declares: as wide as its value; Python integers have 32 bits."""
    if array.dtype == np.int64:
        return np.dtype(np.uint32)
    numeric = array.dtype.kind in "iu" or _is_float(array)
    return np.dtype(f"u{array.dtype.itemsize}") if numeric else np.dtype(np.bool_)


def _is_float(array: npt.NDArray[Any]) -> bool:
    """Whether the dtype is a float as wide as some register; those of ml_dtypes pass for void ("V")."""
    extension = array.dtype.kind == "V" and array.dtype.names is None
    return (extension or array.dtype.kind == "f") and array.dtype.itemsize in (1, 2, 4, 8)


def _bits_type(dtype: np.dtype[Any]) -> str:
    bits = dtype_bits(dtype)
    return "pred" if bits == 1 else f"b{bits}"


def _plural(bits: int) -> str:
    return f"{bits} bit{'s'[: bits > 1]}"
