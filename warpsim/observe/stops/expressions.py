"""Expressions over registers and places: the conditions of breakpoints, and what ``print`` takes.

    or      = and (("||" | "or") and)*                 compare = bits (("==" | "!=" | "<" | ...) bits)?
    and     = not (("&&" | "and") not)*                bits    = sum (("&" | "|" | "^" | "<<" | ">>") sum)*
    not     = ("!" | "not") not | compare              sum     = term (("+" | "-") term)*
    term    = unary (("*" | "/" | "%") unary)*         unary   = ("-" | "~") unary | primary
    primary = number | %register | name | type "(" or ")" | space "[" or "]" | "(" or ")"
            | array "[" or ("," or)* "]"

Names are lane, warp, thread, tid, tid.x, threadIdx.x, cta, cta.x, time and labels of variables;
``space[address]`` is the 32-bit word there, ``shared.f16[...]`` another type, ``arg2[3,5]`` an element of an
array among the arguments. Values are those of all lanes of a wave; integers are 64
bits wide. Nothing is evaluated but this. Knows text and values; ``Context`` knows registers and memories.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...base.errors import Location, OperandError
from .values import TYPES, Value, typed

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|[0-9]+)"
    r"|(?P<name>%?[A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_]\w*)*)"
    r"|(?P<sign>\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%&|^~!<>()\[\],]))"
)
_LEVELS: tuple[tuple[str, ...], ...] = (  # of binary operators, the weakest first
    ("||", "or"),
    ("&&", "and"),
    ("==", "!=", "<=", ">=", "<", ">"),
    ("&", "|", "^", "<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_ARGUMENT = re.compile(r"arg[0-9]{1,4}")
_DEEPEST = 40  # parentheses and signs
Array = npt.NDArray[Any]
_OPERATORS: dict[str, Callable[[Any, Any], Array]] = {
    "||": np.logical_or,
    "or": np.logical_or,
    "&&": np.logical_and,
    "and": np.logical_and,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}
SPACES = ("shared", "global", "local", "tmem")


class Context(Protocol):
    """Where an expression is evaluated: one statement of a wave, for all its lanes."""

    def named(self, name: str) -> Value:
        """Return a register or another name in every lane. Raises OperandError."""

    def word(self, space: str, addresses: Array, type_name: str) -> Value:
        """Return the word at an address of each lane. Raises OperandError."""

    def element(self, name: str, places: list[Array]) -> Value:
        """Return an element of an array among the arguments in every lane. Raises OperandError."""


Node = Callable[[Context], Value]


@dataclass(frozen=True)
class Expression:
    """An expression: ``text`` as it was written, ``names`` those that it uses."""

    text: str
    node: Node
    names: tuple[str, ...] = ()

    def value(self, context: Context) -> Value:
        """Return its value in every lane. Raises OperandError."""
        with np.errstate(all="ignore"):
            return self.node(context)

    def holds(self, context: Context) -> Array:
        """Return ``(lanes,)``: where it is not 0."""
        return np.asarray(self.value(context).numbers() != 0)

    def __str__(self) -> str:
        return self.text


def parse_expression(text: str) -> Expression:
    """Return the expression that a text spells. Raises OperandError, which points at the mistake."""
    reader = _Reader(text)
    node = reader.binary(0)
    if reader.token == "[":
        example = "shared.f32[name + 4 * index], or of an array among the arguments arg0[3,5]"
        raise reader.wrong(f"a word of memory is read by space and address in bytes, as in {example}")
    if reader.token:
        raise reader.wrong("the expression ends before this")
    return Expression(text.strip(), node, tuple(dict.fromkeys(reader.names)))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self.depth = 0
        self.names: list[str] = []
        self.start, self.kind, self.token = 0, "", ""
        self.next()

    def wrong(self, message: str) -> OperandError:
        """Return the error of the token."""
        place = Location("expression", 1, self.start + 1, max(len(self.token), 1), self.text)
        return OperandError(message, place)

    def next(self) -> str:
        """Go on to the next token; return this token."""
        given = self.token
        match = _TOKEN.match(self.text, self.end)
        rest = self.text[self.end :]
        self.start = self.end + len(rest) - len(rest.lstrip())
        if match is None or match.lastgroup is None:
            self.kind, self.token = "", rest.strip()[:1]
            if self.token:
                raise self.wrong(f"{self.token!r} belongs to no expression")
            return given
        self.kind, self.token = match.lastgroup, match[match.lastgroup]
        self.start, self.end = match.start(match.lastgroup), match.end()
        return given

    def binary(self, level: int) -> Node:
        """Read operators of a level and all that bind stronger."""
        if level == len(_LEVELS):
            return self.unary()
        if level == 2 and self.token in ("!", "not"):
            self.next()
            inner = self.nested(lambda: self.binary(2))
            return lambda context: Value.of(inner(context).numbers() == 0)
        left = self.binary(level + 1)
        while self.token in _LEVELS[level]:
            left = _joined(self.next(), left, self.binary(level + 1))
        return left

    def nested(self, read: Callable[[], Node]) -> Node:
        """Read a part that is inside another."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.wrong(f"the expression is nested deeper than {_DEEPEST}")
        node = read()
        self.depth -= 1
        return node

    def unary(self) -> Node:
        if self.token not in ("-", "~"):
            return self.primary()
        sign = self.next()
        inner = self.nested(self.unary)
        if sign == "-":
            return lambda context: Value.of(-inner(context).numbers())
        return lambda context: Value.of(~inner(context).integers())

    def primary(self) -> Node:
        if self.kind == "number":
            number = self.next()
            value = Value.of(np.asarray(float(number) if "." in number else int(number, 0) & _MOST))
            return lambda context: value
        if self.token == "(":
            return self.inside(")")
        if self.kind != "name":
            raise self.wrong(
                "expected a number, a register or a name" if self.token else "something is missing"
            )
        name = self.next()
        if self.token == "(" and name in TYPES:
            inner = self.inside(")")
            return lambda context: typed(inner(context), name)
        space, _, type_name = name.partition(".")
        if self.token == "[" and space in SPACES:
            if type_name and type_name not in TYPES:
                raise self.wrong(f".{type_name} is not a type of a word: {', '.join(TYPES)}")
            address = self.inside("]")
            return lambda context: context.word(space, address(context).integers(), type_name or "b32")
        if self.token == "[" and _ARGUMENT.fullmatch(name):
            places = self.listed()
            return lambda context: context.element(name, [place(context).integers() for place in places])
        self.names.append(name)
        return lambda context: context.named(name)

    def listed(self) -> list[Node]:
        """Read expressions between brackets, with commas between them."""
        self.next()
        found = [self.nested(lambda: self.binary(0))]
        while self.token == ",":
            self.next()
            found.append(self.nested(lambda: self.binary(0)))
        if self.token != "]":
            raise self.wrong("']' is missing")
        self.next()
        return found

    def inside(self, closing: str) -> Node:
        """Read what stands in parentheses."""
        self.next()
        node = self.nested(lambda: self.binary(0))
        if self.token != closing:
            raise self.wrong(f"{closing!r} is missing")
        self.next()
        return node


_MOST = (1 << 63) - 1


def _joined(sign: str, left: Node, right: Node) -> Node:
    if sign in ("/", "%"):
        return lambda context: _divided(sign, left(context).numbers(), right(context).numbers())
    integers = sign in _LEVELS[3]

    def node(context: Context) -> Value:
        first, second = left(context), right(context)
        if integers:
            return Value.of(_OPERATORS[sign](first.integers(), second.integers()))
        return Value.of(_OPERATORS[sign](first.numbers(), second.numbers()))

    return node


def _divided(sign: str, left: Array, right: Array) -> Value:
    """Divide as C does; integers by 0 give 0."""
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        return Value.of(np.divide(left, right) if sign == "/" else np.fmod(left, right))
    safe = np.where(right == 0, 1, right)
    rest = np.where(right == 0, 0, np.fmod(left, safe))
    return Value.of(rest if sign == "%" else np.where(right == 0, 0, (left - rest) // safe))
