"""Constants and constant expressions (PTX ISA 9.1, section 4.5).

    immediate  = hexadecimal f32 | expression
    expression = binary [ "?" expression ":" expression ]
    binary     = unary { operator unary }                            operators and precedence as in C
    unary      = { "+" | "-" | "!" | "~" | "(.s64)" | "(.u64)" } primary
    primary    = "(" expression ")" | integer | float | "WARP_SZ"

Integers have 64 bits and wrap. A literal is signed where it fits, unless it ends in U. An operation is
unsigned as soon as one operand is; ``%`` and ``~`` always are; a shift has the type of its left side, and its
count is taken modulo 64; comparisons, ``!``, ``&&`` and ``||`` give a signed 0 or 1. Floats are binary64 and
never mix with integers. Where the manual is silent or ptxas 13.0 differs from it, this follows ptxas: a
hexadecimal f32 literal is no part of an expression; ``?:`` takes integers only and gives the chosen operand
unconverted; both its branches are evaluated; ``7%3`` is ``7`` and a register ``%3`` (write ``7 % 3``).

This module knows values. It does not know which operand may be a constant, or how many bits of it count.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Literal, NamedTuple

from ..base.environment import in_default_environment
from ..base.errors import PtxError
from .source import Cursor

__all__ = ["INTEGER", "Immediate", "read_immediate", "read_integer"]

# No literal runs into a letter, a digit or a dot: "08", "1u", "0f3F8" and "1.5f" are mistakes.
INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)U?(?![\w$.])", re.ASCII)

_F32 = re.compile(r"0[fF][0-9a-fA-F]{8}(?![\w$.])", re.ASCII)
_F64 = re.compile(r"0[dD][0-9a-fA-F]{16}(?![\w$.])", re.ASCII)
_DECIMAL = re.compile(
    r"(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)(?![\w$.])", re.ASCII
)
# What is nearly a constant, and what it should be.
_NEARLY = (
    (re.compile(r"0[fF][0-9a-fA-F]*(?![\w$.])", re.ASCII), "an f32 in hexadecimal is 0f and 8 digits"),
    (re.compile(r"0[dD][0-9a-fA-F]*(?![\w$.])", re.ASCII), "an f64 in hexadecimal is 0d and 16 digits"),
    (
        re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fF](?![\w$.])", re.ASCII),
        "a number has no suffix here: decimals are of 64 bits, an f32 is 0f and 8 hexadecimal digits",
    ),
    (re.compile(r"0[0-9]*[89][0-9]*U?(?![\w$.])", re.ASCII), "a 0 in front is of octal digits"),
    (re.compile(r"[0-9]+u(?![\w$.])", re.ASCII), "the suffix of unsigned integers is U"),
)
_WARP_THREADS = 32
_WARP_SZ = re.compile(r"WARP_SZ(?![\w$])", re.ASCII)
_PREFIX = re.compile(r"[-+!~]|\([ \t]*\.[su]64[ \t]*\)")
_OPERATOR = re.compile(r"<<|>>|[<>=!]=|&&|\|\||[-+*/<>&|^]|%(?![\w$])", re.ASCII)

_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
_PRECEDENCE = {symbol: level for level, symbols in enumerate(_LEVELS) for symbol in symbols.split()}
_DEEPEST = 32  # nested parentheses and conditionals; deeper text would exhaust Python's stack


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant operand: the integer's value (-2^63 .. 2^64-1), or the bit pattern of an f32 or f64."""

    value: int
    kind: Literal["integer", "f32", "f64"] = "integer"

    def __str__(self) -> str:
        if self.kind == "integer":
            return str(self.value)
        return f"0f{self.value:08X}" if self.kind == "f32" else f"0d{self.value:016X}"


_Type = Literal["s64", "u64", "f64"]
_Operation = Callable[[Any, Any], Any]


class _Constant(NamedTuple):
    """A value in mid-expression, with the type that PTX gives it."""

    type: _Type
    value: Any  # int, or float for f64


@in_default_environment
def read_immediate(cursor: Cursor) -> Immediate:
    """Return the value of the constant expression at the cursor. Raises PtxError."""
    if bits := cursor.take(_F32):
        return Immediate(int(bits[2:], 16), "f32")
    constant = _expression(cursor, 0)
    if constant.type == "f64":
        return Immediate(int.from_bytes(struct.pack("<d", constant.value), "little"), "f64")
    return Immediate(constant.value)


def read_integer(cursor: Cursor) -> int:
    """Return the value of the integer literal at the cursor, or of WARP_SZ. Raises PtxError where another
    token stands.
    """
    if cursor.take(_WARP_SZ):
        return _WARP_THREADS
    with cursor.blamed():
        return int(_integer(cursor.expect(INTEGER, "an integer")).value)


def _expression(cursor: Cursor, depth: int) -> _Constant:
    start = cursor.position
    if depth > _DEEPEST:
        raise cursor.error(f"this constant expression is nested more than {_DEEPEST} deep", start)
    condition = _binary(cursor, 0, depth)
    if not cursor.accept("?"):
        return condition
    chosen = _expression(cursor, depth + 1)
    cursor.require(":")
    other = _expression(cursor, depth + 1)
    if "f64" in (condition.type, chosen.type, other.type):
        raise cursor.error("the operator '?:' takes integers only", start, cursor.end)
    return chosen if condition.value else other


def _binary(cursor: Cursor, lowest: int, depth: int) -> _Constant:
    start, left = cursor.position, _unary(cursor, depth)
    while (symbol := cursor.peek(_OPERATOR)) and _PRECEDENCE[symbol] >= lowest:
        cursor.take(_OPERATOR)
        right = _binary(cursor, _PRECEDENCE[symbol] + 1, depth)
        with cursor.blamed(start):
            left = _apply_operator(symbol, left, right)
    return left


def _unary(cursor: Cursor, depth: int) -> _Constant:
    start, prefixes = cursor.position, []
    while symbol := cursor.take(_PREFIX):
        prefixes.append(symbol)
    value = _primary(cursor, depth)
    for symbol in reversed(prefixes):
        with cursor.blamed(start):
            value = _apply_prefix(symbol, value)
    return value


def _primary(cursor: Cursor, depth: int) -> _Constant:
    if cursor.accept("("):
        value = _expression(cursor, depth + 1)
        cursor.require(")")
        return value
    if cursor.take(_WARP_SZ):
        return _Constant("s64", _WARP_THREADS)
    if text := cursor.take(_F64):
        return _Constant("f64", struct.unpack(">d", bytes.fromhex(text[2:]))[0])
    with cursor.blamed():
        if text := cursor.take(_DECIMAL):
            return _decimal(text)
        text = cursor.take(INTEGER)
        return _integer(cursor.expect(INTEGER, _expected_text(cursor)) if text is None else text)


def _expected_text(cursor: Cursor) -> str:
    """Return what is expected at the cursor: a constant, and how it is written if it is nearly there."""
    said = next((text for rule, text in _NEARLY if cursor.peek(rule)), "")
    return f"a constant ({said})" if said else "a constant"


def _integer(text: str) -> _Constant:
    digits = text.removesuffix("U").lower()
    base = {"0x": 16, "0b": 2}.get(digits[:2], 8 if digits.startswith("0") else 10)
    significant = digits[2 if base in (2, 16) else 0 :].lstrip("0") or "0"
    # Python refuses to convert thousands of digits, so their number is judged first.
    value = int(significant, base) if len(significant) <= 64 else 1 << 64
    if value >> 64:
        raise PtxError(f"the integer {_shorten(text)} does not fit in 64 bits")
    return _Constant("u64" if text.endswith("U") or value >> 63 else "s64", value)


def _decimal(text: str) -> _Constant:
    value = float(text)
    if value == float("inf"):
        raise PtxError(f"the number {_shorten(text)} is too large for a 64-bit float")
    if value < _LEAST and not _is_kept(text, value):
        raise PtxError(
            f"the number {_shorten(text)} is subnormal as a 64-bit float, which ptxas does not take: write "
            f"0d{struct.pack('>d', value).hex().upper()}"
        )
    return _Constant("f64", value)


_LEAST = 2.3e-308  # above the smallest normal float
_DIGITS = Context(prec=1200)
# What is less has a rounded significand below 2**-1022.
_TINY = _DIGITS.subtract(_DIGITS.power(2, -1022), _DIGITS.power(2, -1076))


def _is_kept(text: str, value: float) -> bool:
    """Return whether ptxas takes a small number: it is not subnormal before its digits are cut, or exact."""
    if not value:
        return not re.search("[1-9]", text.lower().partition("e")[0])
    given = Decimal(text)
    return given >= _TINY or given == Decimal(value)


def _shorten(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}..."


def _apply_prefix(symbol: str, operand: _Constant) -> _Constant:
    if symbol in "+-":
        return _wrap(operand.type, -operand.value if symbol == "-" else operand.value)
    if operand.type == "f64":
        raise PtxError(f"the operator '{symbol}' takes an integer")
    if symbol == "!":
        return _Constant("s64", int(not operand.value))
    if symbol == "~":
        return _wrap("u64", ~operand.value)
    return _wrap("u64" if "u" in symbol else "s64", operand.value)


def _apply_operator(symbol: str, left: _Constant, right: _Constant) -> _Constant:
    if (left.type == "f64") != (right.type == "f64"):
        raise PtxError(f"the operator '{symbol}' cannot mix an integer and a float")
    if left.type == "f64" and symbol not in _FLOAT_OPERATORS:
        raise PtxError(f"the operator '{symbol}' takes integers only")
    if symbol in ("<<", ">>"):
        return _wrap(left.type, _SHIFT[symbol](left.value, right.value & 63))
    kind: _Type = "u64" if symbol == "%" or "u64" in (left.type, right.type) else left.type
    first, second = _wrap(kind, left.value).value, _wrap(kind, right.value).value
    if symbol in _ARITHMETIC:
        return _wrap(kind, _ARITHMETIC[symbol](first, second))
    return _Constant("s64", int(_TRUTH[symbol](first, second)))


def _quotient(dividend: Any, divisor: Any) -> Any:
    """Return the quotient rounded toward zero; a float for floats."""
    if not divisor:
        raise PtxError("division by zero in a constant expression")
    if isinstance(dividend, float):
        return dividend / divisor
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend < 0) == (divisor < 0) else -magnitude


_SHIFT: dict[str, _Operation] = {"<<": operator.lshift, ">>": operator.rshift}
_ARITHMETIC: dict[str, _Operation] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda dividend, divisor: dividend - divisor * _quotient(dividend, divisor),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_TRUTH: dict[str, _Operation] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "&&": lambda left, right: bool(left and right),
    "||": lambda left, right: bool(left or right),
}
_FLOAT_OPERATORS = set("+-*/") | set(_TRUTH) - {"&&", "||"}


def _wrap(kind: _Type, value: Any) -> _Constant:
    """Return ``value`` as a constant of this type: integers modulo 2^64."""
    if kind == "f64":
        return _Constant(kind, value)
    value &= (1 << 64) - 1
    return _Constant(kind, value - (1 << 64) if kind == "s64" and value >> 63 else value)
