"""The initial bytes of variables, and the addresses among them (PTX ISA 9.1, section 5.4.4 "Initializers").

Knows texts; does not know where variables and functions lie, which only a device says.
"""

from __future__ import annotations

import re

import numpy as np

from ...base.errors import IllegalInstruction, PtxError, located
from ...ptx.constants import Immediate, read_immediate
from ...ptx.parser import initial_items
from ...ptx.source import Cursor, Source
from ...ptx.statements import OPAQUE, VariableDeclaration
from ..bind.scope import InitialAddress

_TOKEN = re.compile(r"[{}]|[^{},]+")
_NAME = r"(?!WARP_SZ\b)[A-Za-z_$%][\w$]*"
_ADDRESS = re.compile(
    rf"(?:(?P<mask>0[xX][0-9a-fA-F]{{1,16}}|[1-9]\d*)\s*\()?"
    rf"(?:generic\s*\(\s*(?P<generic>{_NAME})\s*\)|(?P<name>{_NAME}))"
    r"\s*(?P<addend>\+(?:[^()]|\([^()]*\))*+)?\s*(?(mask)\))"
)


_OF_ADDRESSES = ("u32", "u64")  # types of variables that start with addresses
_OF_PARTS = ("u8", "u32", "u64")  # and with a byte of them
_MASKS = {0xFF << 8 * place for place in range(8)}
_TAKEN = {  # kinds of initial values by type, or by its first letter, as ptxas 13.0 takes them
    "b": ("integer", "f32", "f64"),
    "u": ("integer",),
    "s": ("integer",),
    "f": ("f32", "f64"),
    "f16": (),
    "f16x2": (),
}


def initial_addresses(statement: VariableDeclaration) -> tuple[InitialAddress, ...]:
    """Return the addresses among the initial values of a variable."""
    size = element_bytes(statement.type)
    values = _values(statement)
    matches = {value: _ADDRESS.fullmatch(value) for value in dict.fromkeys(values)}  # tables repeat values
    with located(statement.location):
        return tuple(
            _address(place * size, size, match)
            for place, value in enumerate(values)
            if (match := matches[value])
        )


def _address(place: int, size: int, match: re.Match[str]) -> InitialAddress:
    return InitialAddress(
        place=place,
        size=size,
        name=match["generic"] or match["name"],
        addend=_addend(match["addend"] or "0"),
        mask=int(match["mask"] or hex((1 << 64) - 1), 0),
        generic=match["generic"] is not None,
    )


def _addend(text: str) -> int:
    """Return the value of the constant expression behind a name. Raises IllegalInstruction."""
    cursor = Cursor(Source(text))
    try:
        value = read_immediate(cursor)
    except PtxError as error:
        raise IllegalInstruction(f"'{text}' behind a name in an initial value: {error.message}") from None
    if value.kind != "integer" or not cursor.at_end():
        raise IllegalInstruction(f"'{text}' behind a name in an initial value is not an integer expression")
    return value.value


def _values(statement: VariableDeclaration) -> list[str]:
    """Return the texts of the initial values, a text for each element."""
    tokens = (token.strip() for token in _TOKEN.findall(statement.initializer or ""))
    return [token for token in tokens if token not in ("", "{", "}")]


def element_bytes(type_name: str) -> int:
    """Return bytes of one element of a fundamental type."""
    if type_name in OPAQUE:
        return 8  # a handle
    digits = re.sub(r"\D", "", type_name.partition("x")[0])
    return int(digits) // 8 * (2 if type_name.endswith("x2") else 1)


def initial_bytes(statement: VariableDeclaration) -> bytes:
    """Return the bytes that a variable starts with, as many as it has; none where nothing is said.

    Addresses are 0 here. Raises IllegalInstruction for too many values, and for what is not a value.
    """
    if statement.initializer is None:
        return b""
    _check_shape(statement, statement.initializer, statement.extents)
    size = element_bytes(statement.type)
    values = _values(statement)
    known = {value: _bytes(statement, value, size) for value in dict.fromkeys(values)}  # tables repeat values
    content = b"".join(map(known.__getitem__, values))
    if len(content) > statement.size:
        message = f"{statement.name} has {statement.size} bytes, but {len(values)} values of {size} are given"
        raise IllegalInstruction(message, statement.location())
    return content.ljust(statement.size, b"\0")


def _check_shape(statement: VariableDeclaration, text: str, extents: tuple[int, ...]) -> None:
    """Braces are those of the array, with no more items than there is room for; raises IllegalInstruction.

    ptxas puts what is given in a row, also where inner braces are not full.
    """
    braces = text.strip().startswith("{")
    if not extents and not braces:
        return
    if braces != bool(extents):
        wanted = "braces around" if extents else "no braces around"
        message = f"{statement.name}: expected {wanted} the initial value '{text.strip()}'"
        raise IllegalInstruction(message, statement.location())
    items = initial_items(text)
    if not all(items):
        raise IllegalInstruction(f"{statement.name}: an initial value is missing", statement.location())
    if len(items) > extents[0]:
        message = f"{statement.name}: {len(items)} initial values where there is room for {extents[0]}"
        raise IllegalInstruction(message, statement.location())
    for item in items:
        _check_shape(statement, item, extents[1:])


def _bytes(statement: VariableDeclaration, text: str, size: int) -> bytes:
    if match := _ADDRESS.fullmatch(text):
        _check_address(statement, match)
        return bytes(size)
    cursor = Cursor(Source(text, statement.source.file))
    try:
        value = read_immediate(cursor)
        if not cursor.at_end():
            cursor.fail("the end of the value")
    except PtxError:
        message = (
            f"the initial value '{text}' of {statement.name} is neither a constant expression nor an address"
        )
        raise IllegalInstruction(message, statement.location()) from None
    if value.kind not in _TAKEN.get(statement.type, _TAKEN[statement.type[0]]):
        message = f"the initial value '{text}' of {statement.name} is of another type than .{statement.type}"
        raise IllegalInstruction(message, statement.location())
    return _encode(value, statement.type, size)


def _check_address(statement: VariableDeclaration, match: re.Match[str]) -> None:
    """Raise IllegalInstruction for an address in a type, or by a mask, that ptxas does not take."""
    types = _OF_PARTS if match["mask"] else _OF_ADDRESSES
    if statement.type not in types:
        named = " or ".join(f".{name}" for name in types)
        message = f"{statement.name} of .{statement.type} starts with an address: expected {named}"
        raise IllegalInstruction(message, statement.location())
    if match["mask"] and int(match["mask"], 0) not in _MASKS:
        message = f"the mask {match['mask']} of {statement.name}: expected 0xFF at one byte of eight"
        raise IllegalInstruction(message, statement.location())


def _encode(value: Immediate, type_name: str, size: int) -> bytes:
    if value.kind == "integer":
        if type_name[0] == "f":
            return np.array(float(value.value), f"<f{size}").tobytes()
        return (value.value & (1 << 8 * size) - 1).to_bytes(size, "little")
    own = 4 if value.kind == "f32" else 8
    number = np.array(value.value, f"<u{own}").view(f"<f{own}")
    with np.errstate(all="ignore"):
        return number.astype(f"<f{size}").tobytes() if type_name[0] == "f" else number.tobytes()[:size]
