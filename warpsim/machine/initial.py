"""The initial bytes of variables (PTX ISA 9.1, section 5.4.4 "Initializers")."""

from __future__ import annotations

import re

import numpy as np

from ..errors import IllegalInstruction, NotModelled, PtxError
from ..ptx.constants import Immediate, read_immediate
from ..ptx.source import Cursor, Source
from ..ptx.statements import VariableDeclaration

_TOKEN = re.compile(r"[{}]|[^{},]+")


def element_bytes(type_name: str) -> int:
    """Bytes of one element of a fundamental type."""
    digits = re.sub(r"\D", "", type_name.partition("x")[0])
    return int(digits) // 8 * (2 if type_name.endswith("x2") else 1)


def initial_bytes(statement: VariableDeclaration) -> bytes:
    """The bytes that a variable starts with, as many as it has; none where nothing is said.

    Raises IllegalInstruction for too many values, NotModelled for addresses of other variables.
    """
    if statement.initializer is None:
        return b""
    size = element_bytes(statement.type)
    values = [one.strip() for one in _TOKEN.findall(statement.initializer) if one.strip(" \t\r\n{}")]
    content = b"".join(_bytes(statement, one, size) for one in values)
    if len(content) > statement.size:
        message = f"{statement.name} has {statement.size} bytes, but {len(values)} values of {size} are given"
        raise IllegalInstruction(message, statement.location())
    return content.ljust(statement.size, b"\0")


def _bytes(statement: VariableDeclaration, text: str, size: int) -> bytes:
    try:
        value = read_immediate(Cursor(Source(text, statement.source.file)))
    except PtxError:
        message = f"the initial value '{text}' of {statement.name} is not modelled: it is no constant"
        raise NotModelled(message, statement.location()) from None
    return _encoded(value, statement.type, size)


def _encoded(value: Immediate, type_name: str, size: int) -> bytes:
    if value.kind == "integer":
        if type_name[0] == "f":
            return np.array(float(value.value), f"<f{size}").tobytes()
        return (value.value & (1 << 8 * size) - 1).to_bytes(size, "little")
    own = 4 if value.kind == "f32" else 8
    number = np.array(value.value, f"<u{own}").view(f"<f{own}")
    with np.errstate(all="ignore"):
        return number.astype(f"<f{size}").tobytes() if type_name[0] == "f" else number.tobytes()[:size]
