"""Operations of a trace as instructions of LLVM: the same bits that NumPy's functions give, lane by lane.

A table for each kind of type names the instruction of each operation of NumPy; an operation that no table has
raises Untraceable, and its row is executed as it is. Knows NumPy's rules of shifts, divisions by zero, casts
and comparisons; does not know registers, memories or loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .traced import Node, Untraceable

Make = Callable[..., str]  # of the code, a node and the names of its arguments
_TYPES = {"f2": "half", "f4": "float", "f8": "double", "b1": "i1"}


def type_of(dtype: np.dtype[Any]) -> str:
    """Return LLVM's type of the values of a type."""
    name = f"{dtype.kind}{dtype.itemsize}"
    return _TYPES.get(name) or f"i{8 * dtype.itemsize}"


class Instructions:
    """Lines of a function, one instruction each, and the intrinsic functions that they call.

    ``sources`` are the values that the operations take: names of LLVM values.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: dict[str, None] = {}
        self.sources: list[str] = []
        self.tables: list[np.ndarray[Any, Any]] = []  # whose pointers are %table0, %table1 and so on
        self._names: dict[int, str] = {}  # of nodes, by identity
        self._kept: list[Node] = []  # which their identities belong to
        self._count = 0

    def add(self, text: str) -> str:
        """Add an instruction; return the name of its result."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def do(self, text: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(f"  {text}")

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Add a call of an intrinsic function with arguments (type, name)."""
        self.declared[f"declare {result} @{name}({', '.join(kind for kind, _ in arguments)})"] = None
        return self.add(f"call {result} @{name}({', '.join(' '.join(pair) for pair in arguments)})")

    def results(self, nodes: tuple[Node, ...], sources: list[str]) -> list[str]:
        """Return the names of the values of nodes for sources; raises Untraceable."""
        self.sources, self._names, self._kept = sources, {}, []
        return [self.value(node) for node in nodes]

    def value(self, node: Node) -> str:
        """Return the name of a node's value; raises Untraceable."""
        found = self._names.get(id(node))
        if found is None:
            pending = [node]
            while pending:  # without recursion: rows may be long
                top = pending[-1]
                missing = [item for item in top.arguments if id(item) not in self._names]
                pending += missing
                if not missing:
                    pending.pop()
                    if id(top) not in self._names:
                        self._names[id(top)] = self._emit(top)
                        self._kept.append(top)
            found = self._names[id(node)]
        return found

    def _emit(self, node: Node) -> str:
        if node.name == "source":
            return self.sources[int(node.value)]
        if node.name == "constant":
            return self.constant(node.value, node.dtype)
        arguments = [self._names[id(argument)] for argument in node.arguments]
        special = _SPECIAL.get(node.name)
        make = special or _BY_KIND[node.takes.kind].get(node.name)
        if make is None:
            raise Untraceable(f"{node.name} of {node.takes}")
        if isinstance(make, str):
            return self._binary(make, node, arguments)
        made: str = make(self, node, *arguments)
        return made

    def _binary(self, instruction: str, node: Node, arguments: list[str]) -> str:
        return self.add(f"{instruction} {type_of(node.takes)} {', '.join(arguments)}")

    def constant(self, value: Any, dtype: np.dtype[Any]) -> str:
        """Return a constant; a float by its bits, since LLVM's decimals are doubles."""
        if dtype.kind != "f":
            return str(int(value))
        bits = int(np.asarray(value, dtype).view(f"u{dtype.itemsize}"))
        return self.add(f"bitcast i{8 * dtype.itemsize} {bits} to {type_of(dtype)}")


# --- choices and casts --------------------------------------------------------------------------------------


def _emit_where(code: Instructions, node: Node, condition: str, first: str, second: str) -> str:
    kind = type_of(node.dtype)
    return code.add(f"select i1 {condition}, {kind} {first}, {kind} {second}")


def _table_lookup(code: Instructions, node: Node, place: str) -> str:
    known = [number for number, table in enumerate(code.tables) if table is node.value]
    code.tables += [] if known else [node.value]
    kind, number = type_of(node.dtype), known[0] if known else len(code.tables) - 1
    where = code.add(f"getelementptr {kind}, ptr %table{number}, i64 {place}")
    return code.add(f"load {kind}, ptr {where}")


def _bits(code: Instructions, node: Node, value: str) -> str:
    before, after = type_of(node.takes), type_of(node.dtype)
    return value if before == after else code.add(f"bitcast {before} {value} to {after}")


def _cast(code: Instructions, node: Node, value: str) -> str:
    before, after = node.takes, node.dtype
    if after.kind == "b":
        return _is_set(code, before, value)
    if (
        before.str[1:] == "f2" and after.str[1:] != "f4"
    ):  # processors convert halves from and to singles alone
        value, before = _convert_float(code, before, _SINGLE, value), _SINGLE
    if after.str[1:] == "f2" and before != _SINGLE:
        raise Untraceable(f"{before} rounded to {after}")
    return _CASTS[before.kind == "f", after.kind == "f"](code, before, after, value)


_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


def _is_set(code: Instructions, dtype: np.dtype[Any], value: str) -> str:
    if dtype.kind == "b":
        return value
    if dtype.kind == "f":
        return code.add(f"fcmp une {type_of(dtype)} {value}, 0.0")
    return code.add(f"icmp ne {type_of(dtype)} {value}, 0")


def _resize(code: Instructions, before: np.dtype[Any], after: np.dtype[Any], value: str) -> str:
    narrow, wide = type_of(before), type_of(after)
    if narrow == wide:
        return value
    if before.kind != "b" and before.itemsize > after.itemsize:
        return code.add(f"trunc {narrow} {value} to {wide}")
    return code.add(f"{'sext' if before.kind == 'i' else 'zext'} {narrow} {value} to {wide}")


def _to_float(code: Instructions, before: np.dtype[Any], after: np.dtype[Any], value: str) -> str:
    instruction = "sitofp" if before.kind == "i" else "uitofp"
    return code.add(f"{instruction} {type_of(before)} {value} to {type_of(after)}")


def _from_float(code: Instructions, before: np.dtype[Any], after: np.dtype[Any], value: str) -> str:
    name = f"llvm.fpto{'si' if after.kind == 'i' else 'ui'}.sat.{type_of(after)}.f{8 * before.itemsize}"
    return code.call(name, type_of(after), (type_of(before), value))


def _convert_float(code: Instructions, before: np.dtype[Any], after: np.dtype[Any], value: str) -> str:
    instruction = "fpext" if before.itemsize < after.itemsize else "fptrunc"
    return code.add(f"{instruction} {type_of(before)} {value} to {type_of(after)}")


_CASTS: dict[tuple[bool, bool], Make] = {  # whether of a float, whether to one
    (False, False): _resize,
    (False, True): _to_float,
    (True, False): _from_float,
    (True, True): _convert_float,
}


def _logical(instruction: str) -> Make:
    def make(code: Instructions, node: Node, first: str, second: str) -> str:
        both = [_is_set(code, node.takes, value) for value in (first, second)]
        return code.add(f"{instruction} i1 {', '.join(both)}")

    return make


def _logical_not(code: Instructions, node: Node, value: str) -> str:
    return code.add(f"xor i1 {_is_set(code, node.takes, value)}, true")


_SPECIAL: dict[str, Make] = {
    "where": _emit_where,
    "take": _table_lookup,
    "bits": _bits,
    "cast": _cast,
    "logical_and": _logical("and"),
    "logical_or": _logical("or"),
    "logical_xor": _logical("xor"),
    "logical_not": _logical_not,
}


# --- integers -----------------------------------------------------------------------------------------------


def _bits_of(node: Node) -> int:
    return 8 * node.takes.itemsize


def _comparison(condition: str) -> Make:
    def make(code: Instructions, node: Node, first: str, second: str) -> str:
        sign = "" if condition in ("eq", "ne") else "s" if node.takes.kind == "i" else "u"
        return code.add(f"icmp {sign}{condition} {type_of(node.takes)} {first}, {second}")

    return make


def _extreme(condition: str) -> Make:
    compare = _comparison(condition)

    def make(code: Instructions, node: Node, first: str, second: str) -> str:
        kind = type_of(node.takes)
        return code.add(f"select i1 {compare(code, node, first, second)}, {kind} {first}, {kind} {second}")

    return make


def _shift(code: Instructions, node: Node, value: str, amount: str) -> str:
    """Shift: by as many bits as the type has, and more, nothing is left but the sign of signed numbers."""
    kind, bits = type_of(node.takes), _bits_of(node)
    left, signed = node.name == "left_shift", node.takes.kind == "i"
    instruction = "shl" if left else "ashr" if signed else "lshr"
    if amount.isdigit() and int(amount) < bits:
        return code.add(f"{instruction} {kind} {value}, {amount}")
    within = code.add(f"icmp ult {kind} {amount}, {bits}")
    least = code.add(f"select i1 {within}, {kind} {amount}, {kind} {bits - 1}")
    moved = code.add(f"{instruction} {kind} {value}, {least}")
    return moved if signed and not left else code.add(f"select i1 {within}, {kind} {moved}, {kind} 0")


def _division(instruction: str) -> Make:
    def make(code: Instructions, node: Node, first: str, second: str) -> str:
        """Divide unsigned numbers; by zero NumPy gives zero."""
        kind = type_of(node.takes)
        zero = code.add(f"icmp eq {kind} {second}, 0")
        divisor = code.add(f"select i1 {zero}, {kind} 1, {kind} {second}")
        found = code.add(f"{instruction} {kind} {first}, {divisor}")
        return code.add(f"select i1 {zero}, {kind} 0, {kind} {found}")

    return make


def _absolute(code: Instructions, node: Node, value: str) -> str:
    kind = type_of(node.takes)
    negative = code.add(f"icmp slt {kind} {value}, 0")
    return code.add(f"select i1 {negative}, {kind} {_negative(code, node, value)}, {kind} {value}")


def _negative(code: Instructions, node: Node, value: str) -> str:
    return code.add(f"sub {type_of(node.takes)} 0, {value}")


def _invert(code: Instructions, node: Node, value: str) -> str:
    return code.add(f"xor {type_of(node.takes)} {value}, {'true' if node.takes.kind == 'b' else -1}")


def _popcount(code: Instructions, node: Node, value: str) -> str:
    kind = type_of(node.takes)
    found = code.call(f"llvm.ctpop.{kind}", kind, (kind, value))
    return _resize(code, node.takes, node.dtype, found)


def _emit_same(code: Instructions, node: Node, value: str) -> str:
    return value


_COMPARISONS: dict[str, str] = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le"}
_COMPARISONS |= {"greater": "gt", "greater_equal": "ge"}
_BITWISE: dict[str, str | Make] = {
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "invert": _invert,
}
_WHOLE: dict[str, str | Make] = {
    **{name: _comparison(condition) for name, condition in _COMPARISONS.items()},
    **_BITWISE,
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "negative": _negative,
    "left_shift": _shift,
    "right_shift": _shift,
    "minimum": _extreme("lt"),
    "maximum": _extreme("gt"),
}
_SIGNED: dict[str, str | Make] = {**_WHOLE, "absolute": _absolute}
_UNSIGNED: dict[str, str | Make] = {
    **_WHOLE,
    "absolute": _emit_same,
    "bitwise_count": _popcount,
    "floor_divide": _division("udiv"),
    "remainder": _division("urem"),
}
_BOOLEAN: dict[str, str | Make] = {
    **{name: _comparison(condition) for name, condition in _COMPARISONS.items()},
    **_BITWISE,
    "add": "or",
    "multiply": "and",
    "maximum": "or",
    "minimum": "and",
}


# --- floats -------------------------------------------------------------------------------------------------


def _float_compared(condition: str) -> Make:
    def make(code: Instructions, node: Node, first: str, second: str) -> str:
        return code.add(f"fcmp {condition} {type_of(node.takes)} {first}, {second}")

    return make


def _float_extreme(condition: str) -> Make:
    """Return the first that is a NaN, else the lesser or the greater, the first of equal values, as NumPy."""

    def make(code: Instructions, node: Node, first: str, second: str) -> str:
        kind = type_of(node.takes)
        before = code.add(f"fcmp {condition} {kind} {first}, {second}")
        chosen = code.add(f"or i1 {before}, {_not_a_number(code, node, first)}")
        return code.add(f"select i1 {chosen}, {kind} {first}, {kind} {second}")

    return make


def _unary_intrinsic(name: str) -> Make:
    def make(code: Instructions, node: Node, value: str) -> str:
        kind = type_of(node.takes)
        return code.call(f"llvm.{name}.f{_bits_of(node)}", kind, (kind, value))

    return make


def _with_sign(code: Instructions, node: Node, first: str, second: str) -> str:
    kind = type_of(node.takes)
    return code.call(f"llvm.copysign.f{_bits_of(node)}", kind, (kind, first), (kind, second))


def _not_a_number(code: Instructions, node: Node, value: str) -> str:
    return code.add(f"fcmp uno {type_of(node.takes)} {value}, {value}")


def _against_infinity(condition: str) -> Make:
    def make(code: Instructions, node: Node, value: str) -> str:
        kind, infinity = type_of(node.takes), code.constant(np.inf, node.takes)
        return code.add(f"fcmp {condition} {kind} {_unary_intrinsic('fabs')(code, node, value)}, {infinity}")

    return make


def _has_sign(code: Instructions, node: Node, value: str) -> str:
    bits = code.add(f"bitcast {type_of(node.takes)} {value} to i{_bits_of(node)}")
    return code.add(f"icmp slt i{_bits_of(node)} {bits}, 0")


def _float_negative(code: Instructions, node: Node, value: str) -> str:
    return code.add(f"fneg {type_of(node.takes)} {value}")


_FLOATING: dict[str, str | Make] = {
    **{name: _float_compared(f"o{condition}") for name, condition in _COMPARISONS.items()},
    "not_equal": _float_compared("une"),
    "add": "fadd",
    "subtract": "fsub",
    "multiply": "fmul",
    "divide": "fdiv",
    "negative": _float_negative,
    "absolute": _unary_intrinsic("fabs"),
    "copysign": _with_sign,
    "sqrt": _unary_intrinsic("sqrt"),
    "rint": _unary_intrinsic("rint"),
    "floor": _unary_intrinsic("floor"),
    "ceil": _unary_intrinsic("ceil"),
    "trunc": _unary_intrinsic("trunc"),
    "isnan": _not_a_number,
    "isinf": _against_infinity("oeq"),
    "isfinite": _against_infinity("olt"),
    "minimum": _float_extreme("ole"),
    "maximum": _float_extreme("oge"),
    "signbit": _has_sign,
}
_BY_KIND = {"b": _BOOLEAN, "u": _UNSIGNED, "i": _SIGNED, "f": _FLOATING}
