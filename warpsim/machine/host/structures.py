"""Structures of C as arguments: ``structure(Params, A=array, map=tensor_map(...), n=64)``.

Fields that point take arrays, buffers and tensor maps, which get addresses when a launch puts them on a
device; a field of 128 bytes takes a tensor map itself. Knows the layout of ctypes; does not know devices.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import OperandError
from ...isa.arrays import as_array
from .tensor_maps import ArrayMap, BufferMap

__all__ = ["Field", "Structure", "structure", "structure_of"]

_Kind = type[Any]  # of ctypes
_ADDRESS = 8  # bytes
_INTEGERS = (ctypes.c_uint64, ctypes.c_int64)
_POINTED: _Kind = type(ctypes.pointer(ctypes.c_int())).__mro__[1]  # the base of all POINTER(...)


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """``size`` bytes from ``offset`` on that a launch gives: the address of ``value``, or its bytes."""

    name: str
    offset: int
    size: int
    value: Any
    points: bool


class Structure:
    """A structure of ctypes and what its fields refer to: an argument of a launch.

    It is passed by value where the parameter has its size, and otherwise by its address; then what the
    kernel leaves in it comes back to ``value``, but for the fields that a launch gives.
    """

    def __init__(self, value: ctypes.Structure, fields: tuple[Field, ...] = ()) -> None:
        self.value = value
        self.fields = fields

    def content(self, given: Callable[[Field], bytes]) -> bytes:
        """Return the bytes on the device, where ``given`` returns those of a field."""
        content = bytearray(bytes(self.value))
        for each in self.fields:
            content[each.offset : each.offset + each.size] = given(each)
        return bytes(content)

    def written(self, content: bytes) -> None:
        """Take over bytes from the device, but not those of fields that a launch gives."""
        kept, own = bytearray(content), bytes(self.value)
        for each in self.fields:
            kept[each.offset : each.offset + each.size] = own[each.offset : each.offset + each.size]
        ctypes.memmove(ctypes.addressof(self.value), bytes(kept), len(kept))

    def __repr__(self) -> str:
        return f"<structure {type(self.value).__name__} of {ctypes.sizeof(self.value)} bytes>"


def structure(kind: type[ctypes.Structure] | ctypes.Structure, /, **fields: Any) -> Structure:
    """Return a structure as an argument of a launch: of a ctypes class, or an instance with its values.

    A field that is a pointer or an integer of 64 bits takes an array, a buffer or a tensor map, of which it
    gets the address; a list of such things fills an array of pointers. A field of 128 bytes takes a tensor
    map. Arrays and lists of numbers fill arrays of numbers, mappings fill structures. Arrays come back as
    they do when they are arguments themselves. Raises OperandError, naming the field.
    """
    if isinstance(kind, ctypes.Structure):
        value = kind
    elif isinstance(kind, type) and issubclass(kind, ctypes.Structure):
        value = kind()
    else:
        raise OperandError(f"a structure is made of a class of ctypes.Structure, not of {kind!r}")
    return Structure(value, tuple(_fill_fields(value, fields, "", 0)))


def structure_of(value: Any) -> Structure | None:
    """Return what is a structure, or points to a structure as ctypes has it; None for anything else."""
    value = getattr(value, "_obj", value)  # of byref
    if isinstance(value, _POINTED) and value and isinstance(value.contents, ctypes.Structure):
        value = value.contents
    return Structure(value) if isinstance(value, ctypes.Structure) else None


class _FieldError(OperandError):
    """An error that names its field."""


def _fill_fields(
    value: ctypes.Structure, fields: Mapping[str, Any], prefix: str, start: int
) -> Iterator[Field]:
    """Write values into a structure that lies at ``start``; yield the fields that a launch gives."""
    kinds = dict(_kinds(type(value)))
    for name, given in fields.items():
        path = f"{prefix}{name}"
        if name not in kinds:
            raise _FieldError(f"{path}: {type(value).__name__} has no such field: it has {', '.join(kinds)}")
        place = start + getattr(type(value), name).offset
        try:
            yield from _field(value, name, kinds[name], given, path, place)
        except _FieldError:
            raise
        except (TypeError, ValueError, IndexError) as error:
            raise _FieldError(f"{path}: {error}") from None


def _kinds(kind: _Kind) -> Iterator[tuple[str, _Kind]]:
    """Yield names and types of the fields, those of base classes first."""
    for base in reversed(kind.__mro__):
        yield from ((name, field) for name, field, *_ in vars(base).get("_fields_", ()))


def _field(
    value: ctypes.Structure, name: str, kind: _Kind, given: Any, path: str, place: int
) -> Iterator[Field]:
    """Write one field, or yield what a launch has to give."""
    if isinstance(given, Mapping) and issubclass(kind, ctypes.Structure):
        yield from _fill_fields(getattr(value, name), given, f"{path}.", place)
    elif isinstance(given, list | tuple) and _has_pointers(kind):
        count = ctypes.sizeof(kind) // _ADDRESS
        if len(given) > count:
            raise OperandError(f"{len(given)} values for {count} pointers")
        for index, each in enumerate(given):
            offset = place + _ADDRESS * index
            yield Field(name=f"{path}[{index}]", offset=offset, size=_ADDRESS, value=each, points=True)
    elif _refers(given, kind):
        yield Field(name=path, offset=place, size=ctypes.sizeof(kind), value=given, points=_is_pointer(kind))
    elif issubclass(kind, ctypes.Array):
        _write_elements(getattr(value, name), given)
    else:
        setattr(value, name, given)


def _has_pointers(kind: Any) -> bool:
    return issubclass(kind, ctypes.Array) and _is_pointer(kind._type_)


def _is_pointer(kind: Any) -> bool:
    return issubclass(kind, (ctypes.c_void_p, _POINTED, *_INTEGERS))


def _refers(given: Any, kind: _Kind) -> bool:
    """Return whether a value has an address or bytes on a device only."""
    if issubclass(kind, ctypes.Array | ctypes.Structure):
        return isinstance(given, ArrayMap | BufferMap)  # which has no bytes yet
    if isinstance(given, int | np.integer | bytes) or given is None:
        return False
    return _is_pointer(kind) and not isinstance(given, ctypes._SimpleCData | _POINTED)


def _write_elements(array: Any, given: Any) -> None:
    """Copy numbers to an array of ctypes, at most as many as it has. Raises OperandError."""
    if isinstance(given, bytes | type(array)):
        content = bytes(given)
    else:
        target = np.ctypeslib.as_array(array)
        values = as_array(given)
        if values.size > target.size:
            raise OperandError(f"{values.size} values for {target.size} elements")
        content = values.astype(target.dtype, casting="same_kind").tobytes()
    if len(content) > ctypes.sizeof(array):
        raise OperandError(f"{len(content)} bytes for {ctypes.sizeof(array)}")
    ctypes.memmove(array, content, len(content))
