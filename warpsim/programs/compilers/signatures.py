"""The types that Triton gives to the arguments of a kernel, and the values that it compiles into it.

Knows Triton's names of types and its rules of specialisation (``triton.runtime.jit``): the integer 1 and None
become constants; addresses and integers that are multiples of 16 are marked so. Does not import Triton.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...base.errors import OperandError
from ...isa.arrays import as_array
from ...machine.state.device import Buffer, BufferPlace

_ALIGNMENT = 16
_DIVISIBLE = [["tt.divisibility", _ALIGNMENT]]
_ELEMENTS = {  # dtype -> Triton's name for it
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2": "fp8e5",
    "float8_e5m2fnuz": "fp8e5b16",
}
_INTEGERS = {
    f"{sign}{bits}": f"{kind}{bits}"
    for sign, kind in (("i", "int"), ("u", "uint"))
    for bits in (8, 16, 32, 64)
}
_SCALARS = {  # scalar type of Triton -> dtype of the parameter
    **_INTEGERS,
    "i1": "uint8",
    "u1": "uint8",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
}


@dataclass(kw_only=True)
class Signature:
    """The input of a compilation: types and constants by parameter, attributes by position; remaining
    arguments.
    """

    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    attributes: dict[tuple[int], list[list[Any]]] = field(default_factory=dict)
    arguments: list[Any] = field(default_factory=list)


def signature_of(
    parameters: Sequence[Any], args: Sequence[Any], constants: Mapping[str, Any], *, specialise: bool = True
) -> Signature:
    """Return the signature of a call; ``parameters`` are Triton's (name, is_constexpr, annotation_type,
    default, …).

    ``args`` go to the parameters that are not ``tl.constexpr``, in order; ``constants`` to the others, which
    keep their defaults where no value is given. Raises OperandError for a missing argument, too many
    arguments, or an argument without a type.
    """
    given = list(args)
    names = {item.name for item in parameters if item.is_constexpr}
    if unknown := sorted(set(constants) - names):
        raise OperandError(f"the kernel has no tl.constexpr parameter {unknown[0]}: it has {_listed(names)}")
    wanted = [item.name for item in parameters if not item.is_constexpr]
    needed = len([item for item in parameters if not item.is_constexpr and not item.has_default])
    if not needed <= len(given) <= len(wanted):
        raise OperandError(f"{len(given)} arguments, but the kernel takes {_listed(wanted)}")
    found = Signature()
    for place, parameter in enumerate(parameters):
        if parameter.is_constexpr:
            value = _constant(parameter, constants)
            _add_constant(found, parameter.name, value)
        else:
            value = given.pop(0) if given else parameter.default
            _add(found, place, parameter, value, specialise and not parameter.do_not_specialize)
    return found


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"


def _constant(parameter: Any, constants: Mapping[str, Any]) -> Any:
    if parameter.name in constants:
        return constants[parameter.name]
    if not parameter.has_default:
        raise OperandError(f"the tl.constexpr parameter {parameter.name} has no value: give it in constants")
    return parameter.default


def _add_constant(found: Signature, name: str, value: Any) -> None:
    found.types[name] = "constexpr"
    found.constants[name] = value


def _add(found: Signature, place: int, parameter: Any, value: Any, specialise: bool) -> None:
    """Add an argument to the signature; it stays an argument where its value is not compiled in."""
    kind = _type(parameter, value)
    is_one = specialise and kind in _INTEGERS and value == 1
    if kind == "constexpr" or is_one:
        _add_constant(found, parameter.name, 1 if is_one else value)
        return
    found.types[parameter.name] = kind
    if specialise and not parameter.do_not_specialize_on_alignment and _divisible(kind, value):
        found.attributes[(place,)] = _DIVISIBLE
    found.arguments.append(value if kind[0] == "*" else np.asarray(value).astype(_SCALARS[kind])[()])


def _type(parameter: Any, value: Any) -> str:
    """Return Triton's type of an argument: its annotation, or the type of its value."""
    if parameter.annotation_type:
        return str(parameter.annotation_type)
    if value is None:
        return "constexpr"
    if isinstance(value, bool | np.bool_):
        return "u1"
    if isinstance(value, int | np.integer):
        return _integer(parameter.name, int(value))
    if isinstance(value, float | np.floating):
        return "fp32"
    element = _element(value)
    if element not in _ELEMENTS:
        raise OperandError(
            f"argument {parameter.name}: Triton has no type for {type(value).__name__} {element}"
        )
    return f"*{'k' * bool(parameter.is_const)}{_ELEMENTS[element]}"


def _integer(name: str, value: int) -> str:
    for kind, least, most in (
        ("i32", -(1 << 31), 1 << 31),
        ("i64", -(1 << 63), 1 << 63),
        ("u64", 0, 1 << 64),
    ):
        if least <= value < most:
            return kind
    raise OperandError(f"argument {name}: {value} does not fit in 64 bits")


def _element(value: Any) -> str:
    if isinstance(value, BufferPlace):
        value = value.buffer
    if isinstance(value, Buffer):
        return value.dtype.name
    try:
        array = as_array(value)
    except (TypeError, ValueError):
        return ""
    return array.dtype.name if array.ndim else ""


def _divisible(kind: str, value: Any) -> bool:
    """Return whether an address or integer is a multiple of 16; arrays are copied to aligned addresses."""
    if kind[0] == "*":
        return not isinstance(value, BufferPlace) or value.address % _ALIGNMENT == 0
    return kind in _INTEGERS and int(value) % _ALIGNMENT == 0
