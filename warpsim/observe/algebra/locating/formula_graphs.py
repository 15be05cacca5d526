"""The formulas of both sides as graphs of keys: what made a key, of which keys.

    ReferenceGraph   what the reference computes: names of keys, and their operations
    KernelGraph      what statements compute, and a formula evaluated again with some values changed

Knows keys and provenance; does not compare.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from ..keys.constant_keys import LOG2E, dyadic
from ..keys.finite_fields import NONE, Keys, P, Q, exp2, hashed, inv, mul
from ..keys.key_index import Index, KeyIndex
from ..provenance import Product, Provenance, Step, Stores
from ..rules.rule_calls import function_keys
from ..shadow_arrays import Operation, Shadow, Trace

_U = np.uint64
_LOW, _HIGH_NONE = (1 << 32) - 1, NONE << 32
ONE = 1 << 32 | 1


class Value(NamedTuple):
    """How a key was made: an operation of ``operands``, plus products ``terms`` of matrix instructions.

    ``pc`` is the statement of a kernel, ``number`` the operation of a reference.
    """

    name: str
    operands: tuple[int, ...]
    terms: tuple[tuple[int, int], ...] = ()
    pc: int = -1
    number: int = -1

    @property
    def every(self) -> Iterator[int]:
        """The keys of operands and of terms."""
        yield from self.operands
        for pair in self.terms:
            yield from pair


class Name(NamedTuple):
    """What a key is to the reference: an element of an argument, of an operation's result, or a constant."""

    array: str
    place: Index
    number: int = -1  # of the operation, -1 for arguments and constants

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.place))}]" if self.place else self.array


# --- arithmetic of single keys, Python integers: a tenth of the time that arrays of one element take ---


def _partial(p: int) -> int:
    """Return the key of a lower half alone: the upper half of an operand is NONE."""
    return p | _HIGH_NONE if p else 0


def plus(a: int, b: int) -> int:
    """Return a + b."""
    p = ((a & _LOW) + (b & _LOW)) % P
    return _partial(p) if (a | b) & _HIGH_NONE else ((a >> 32) + (b >> 32)) % Q << 32 | p


def minus(a: int, b: int) -> int:
    """Return a - b."""
    p = ((a & _LOW) - (b & _LOW)) % P
    return _partial(p) if (a | b) & _HIGH_NONE else ((a >> 32) - (b >> 32)) % Q << 32 | p


def times(a: int, b: int) -> int:
    """Return a * b."""
    p = (a & _LOW) * (b & _LOW) % P
    return _partial(p) if (a | b) & _HIGH_NONE else (a >> 32) * (b >> 32) % Q << 32 | p


def inverse(a: int) -> int:
    """Return 1 / a, 0 for 0."""
    q, p = a >> 32, a & _LOW
    p = pow(p, -1, P) if p else 0
    return _partial(p) if a & _HIGH_NONE else (pow(q, -1, Q) if q % Q else 0) << 32 | p


_MODULUS = P * Q
_OF_Q, _OF_P = P * pow(P, -1, Q), Q * pow(Q, -1, P)  # of the integer with both remainders


@lru_cache(1 << 16)  # an element asks for numbers that those before it have asked for
def rational(key: int) -> float | None:
    """Return the number of a key that is a float of few bits; None for others."""
    q, p = key >> 32, key & 0xFFFFFFFF
    if q >= NONE:
        return None
    value = (q * _OF_Q + p * _OF_P) % _MODULUS
    for shift in range(48):
        whole = value - _MODULUS if value > _MODULUS // 2 else value
        if -(1 << 26) < whole < 1 << 26:
            return whole / (1 << shift)
        value = value * 2 % _MODULUS
    return None


def product_of(factors: Sequence[int]) -> int:
    """Return the product of keys."""
    found = ONE
    for each in factors:
        found = times(found, each)
    return found


_SHORT: dict[str, Callable[..., int]] = {
    "+": plus,
    "-": minus,
    "*": times,
    "/": lambda a, b: times(a, inverse(b)),
    "fma": lambda a, b, c: plus(times(a, b), c),
    "neg": lambda a: minus(0, a),
    "rcp": inverse,
}
_LAWS: dict[str, Callable[..., Keys]] = {
    "ex2": exp2,
    "exp": lambda a: exp2(mul(a, LOG2E)),
    "rsqrt": lambda a: inv(function_keys("sqrt", a)),
    "%": lambda a, b: hashed("%", a, b),
    "//": lambda a, b: hashed("//", a, b),
}
_CHOICES = ("max", "min", "abs", "copysign", "where")


def applied(name: str, operands: Sequence[int], before: Sequence[int] = (), result: int = 0) -> int:
    """Return an operation of keys; a choice takes the operand that it took ``before``, with ``result``."""
    if name in _SHORT:
        return _SHORT[name](*operands)
    keys = [np.array([each], _U) for each in operands]
    if name in _LAWS:
        return int(_LAWS[name](*keys)[0])
    if name in _CHOICES or len(keys) != 1:
        for old, new in zip(before, operands, strict=False):
            if result in (old, minus(0, old)):
                return new if result == old else minus(0, new)
        return result
    return int(function_keys(name, keys[0])[0])


# --- graphs ------------------------------------------------------------------------------------------


class Cone(NamedTuple):
    """What a key is made of: places in the order of evaluation, and the values that use each key."""

    order: dict[int, int]
    users: Mapping[int, list[int]]

    def has(self, key: int) -> bool:
        """Return whether a key is among them, or the integer of a float made of bits."""
        return any(each in self.order for each in with_and_without(key))


_MOST_CONES = 512


class Graph:
    """What made keys, of which keys."""

    def __init__(self) -> None:
        self.evaluated = 0  # values so far
        self._values = dict[int, Value | None]()
        self._cones = dict[int, Cone]()

    def value(self, key: int) -> Value | None:
        """Return how a key is made first; None for arguments and constants."""
        if key not in self._values:
            self._values[key] = self._made(key)
        return self._values[key]

    def _made(self, key: int) -> Value | None:
        raise NotImplementedError

    def below(self, root: int) -> Iterator[int]:
        """Yield the keys that a key is made of, operands first, and the key itself."""
        seen, stack = set[int](), [(root, False)]
        while stack:
            key, done = stack.pop()
            if done:
                yield key
            elif key not in seen:
                seen.add(key)
                stack.append((key, True))
                value = self.value(key)
                stack += [(each, False) for each in (value.every if value is not None else ())]

    def cone(self, root: int) -> Cone:
        """Return what a key is made of."""
        found = self._cones.get(root)
        if found is None:
            if len(self._cones) > _MOST_CONES:
                self._cones.clear()
            order, users = dict[int, int](), defaultdict[int, list[int]](list)
            for key in self.below(root):
                order[key], value = len(order), self.value(key)
                for each in {*value.every} if value is not None else ():
                    users[each].append(key)
            self.evaluated += len(order)
            found = self._cones[root] = Cone(order, users)
        return found


class ReferenceGraph(Graph):
    """What the reference computes, by key."""

    def __init__(self, trace: Trace, given: Sequence[Shadow | None], names: Sequence[str]) -> None:
        super().__init__()
        self.operations = trace.operations
        self._names = dict[int, Name | None]()
        self._constants = dict[int, float]()
        self._splits = dict[int, tuple[int, int, int] | None]()
        pairs = zip(names, given, strict=True)
        tables = [(name, each.keys, -1) for name, each in pairs if each is not None]
        lines = [(each.line.file, each.line.number) for each in self.operations]
        last = {line: number for number, line in enumerate(lines)}
        for number, (line, each) in enumerate(zip(lines, self.operations, strict=True)):
            tables.append((_title(each, last=last[line] == number), each.result.keys, number))
        self._tables, self._index = tables, KeyIndex([keys for _, keys, _ in tables])
        for x in (operand for operation in self.operations for operand in operation.operands):
            if x.size == 1 or (x.keys.strides and not any(x.keys.strides)):
                self._constants.setdefault(int(x.keys.flat[0]), float(x.values.flat[0]))

    def constant(self, key: int) -> float | None:
        """Return the number of a key that is a small or a reference's constant; None for others."""
        if key in self._constants and self.name(key) is None:
            return self._constants[key]
        return _SMALL.get(key)

    def name(self, key: int) -> Name | None:
        """Return the first array that has a key, arguments first; a float made of bits is named by them."""
        if key not in self._names:
            self._names[key] = next(filter(None, map(self._named, with_and_without(key))), None)
        return self._names[key]

    def _named(self, key: int) -> Name | None:
        found = None if key == 0 or key in _SMALL else self._index.find(key)
        return found and Name(self._tables[found[0]][0], found[1], self._tables[found[0]][2])

    def known(self, key: int) -> bool:
        """Return whether the reference has a key, or it is a constant."""
        return self.name(key) is not None or self.constant(key) is not None

    def split(self, key: int) -> tuple[int, int, int] | None:
        """Return the integer, its weight and the rest of a float that is made of bits, as 0x6400 | q << 4 is
        1024 + 16 q; None where no integer of the reference is in it.
        """
        if key not in self._splits:
            exact = key & _HIGH_NONE or self._named(key) is not None or rational(key) is not None
            self._splits[key] = None if exact else next(self._splits_of(key), None)
        return self._splits[key]

    def _splits_of(self, key: int) -> Iterator[tuple[int, int, int]]:
        for bit in _IMPLICIT:
            for shift in range(12):
                integer = times(minus(key, bit), inverse((1 << shift) * ONE))
                if self._named(integer) is not None:
                    yield integer, (1 << shift) * ONE, bit

    def define(self, key: int, value: Value) -> int:
        """Know how a key is made that the reference has not as such: the exponent of 2 of an exp."""
        if self._values.get(key) is None and self.name(key) is None:
            self._values[key] = value
        return key

    def _made(self, key: int) -> Value | None:
        name = self.name(key)
        if name is None or name.number < 0:
            return None
        operation, index = self.operations[name.number], name.place
        given = operation.operands
        if operation.name == "@":
            a, b = (np.broadcast_to(x.keys, (*operation.result.shape[:-2], *x.shape[-2:])) for x in given)
            rows, columns = a[index[:-1]], b[index[:-2]][:, index[-1]]
            pairs = zip(rows.tolist(), columns.tolist(), strict=True)
            return Value("@", (), tuple((x, y) for x, y in pairs if x and y), number=name.number)
        if operation.name == "sum":
            flat = int(np.ravel_multi_index(index, operation.result.shape)) if index else 0
            rows = [each.keys.reshape(operation.result.size, -1)[flat].tolist() for each in given]
            return Value("sum", tuple(*rows), number=name.number)
        if operation.name in ("max", "min") and len(given) == 1:
            return None
        operands = tuple(int(np.broadcast_to(each.keys, operation.result.shape)[index]) for each in given)
        if operation.name == "exp":
            power = Value("*", (operands[0], LOG2E), number=name.number)
            return Value("ex2", (self.define(times(operands[0], LOG2E), power),), number=name.number)
        if operation.name == "**":
            exponent = float(given[1].values.flat[0]) if len(given) > 1 else 2.0
            if exponent in (2.0, 3.0):
                return Value("*", operands[:1] * int(exponent), number=name.number)
            if abs(exponent) == 0.5:
                root = Value("sqrt", operands[:1], number=name.number)
                inner = (self.define(applied("sqrt", operands[:1]), root),)
                return root if exponent > 0 else Value("rcp", inner, number=name.number)
        return Value(operation.name, operands, number=name.number)

    def choices(self, chosen: int, other: int) -> Iterator[str]:
        """Yield the names, max or min, of operations that have chosen one of two keys."""
        for operation in self.operations:
            if operation.name in ("max", "min"):
                picked = operation.result.keys == _U(chosen)
                others = [each.keys == _U(other) for each in operation.operands]
                along = len(others) == 1  # an axis
                if picked.any() and any((each if along else picked & each).any() for each in others):
                    yield operation.name

    def alternatives(self, chosen: int) -> Iterator[int]:
        """Yield what a selection, a maximum or a minimum would have been, had the data decided otherwise."""
        for operation in self.operations:
            if operation.name in ("where", "max", "min") and len(operation.operands) > 1:
                picked = operation.result.keys == _U(chosen)
                others = [np.broadcast_to(each.keys, picked.shape)[picked] for each in operation.operands]
                yield from {int(key) for each in others for key in each if key != chosen}


def with_and_without(key: int) -> Iterator[int]:
    """Yield a key, and the integers in floats made of bits: 1024 less for f16, as in 0x6400 | q."""
    yield key
    if key & _HIGH_NONE == 0 and key:
        for bit in _IMPLICIT:
            yield minus(key, bit)


_IMPLICIT = [(1 << fraction) * ONE for fraction in (10, 7, 23)]  # bits of f16, bf16 and f32


def _title(operation: Operation, *, last: bool) -> str:
    text = operation.line.text.removeprefix("return ").strip()
    assigned = re.match(r"(\w+) = ", text)
    if last and assigned:
        return assigned[1]
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"({operation.name} of `{short}`)"


_LONGEST = 48  # characters of a line in a name
_NUMBERS = [*range(-256, 257), *(2.0**-i for i in range(1, 12)), 1.5, 2.5]
_SMALL = dict(zip(dyadic(np.array(_NUMBERS)).tolist(), map(float, _NUMBERS), strict=True))
_NOTHING: Mapping[int, int] = {}


# --- the kernel --------------------------------------------------------------------------------------


class KernelGraph(Graph):
    """What statements compute, by key."""

    def __init__(self, provenance: Provenance) -> None:
        super().__init__()
        self.provenance = provenance

    def _made(self, key: int) -> Value | None:
        origin = self.provenance.origin(key) if key else None
        if origin is None:
            return None
        step, at = origin
        if isinstance(step, Step):
            operands = tuple(int(each[at[0]]) for each in step.operands)
            if step.name == "rsqrt":  # 1 / sqrt, as references write it
                root = applied("sqrt", operands)
                self._values[root] = Value("sqrt", operands, pc=step.pc)
                return Value("rcp", (root,), pc=step.pc)
            if step.name not in ("dp4a", "dp2a"):
                return None if key in operands else Value(step.name, operands, pc=step.pc)
            *pairs, before = operands
            terms = tuple(zip(pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :], strict=True))
        else:
            rows, columns = step.a[at[:-1]], step.b[at[:-2]][:, at[-1]]
            both = (rows != 0) & (columns != 0)
            terms = tuple(zip(rows[both].tolist(), columns[both].tolist(), strict=True))
            before = int(step.c[at])
        return Value("@", (before,) if before else (), terms, pc=step.pc)

    def user(self, key: int) -> int:
        """Return the first statement that computes another key of a key, or multiplies it, -1 for none."""
        for each in self.provenance.order:
            multiplied = isinstance(each, Product) and any((x == _U(key)).any() for x in (each.a, each.b))
            if multiplied or (isinstance(each, Step) and (_any(each, key) & (each.made != key)).any()):
                return each.pc
        return -1

    def in_thread(self, value: int, other: int) -> bool:
        """Return whether the thread that computes a value computes another, too."""
        user = self.provenance.origin(value)
        if user is None or not isinstance(user.step, Step) or self.provenance.origin(other) is None:
            return False
        lane, wave = user.step.lanes[user.at[0]], user.step.wave
        mine = (each for each in self.provenance.steps if each.wave is wave)
        return any(((each.made == _U(other)) & (each.lanes == lane)).any() for each in mine)

    def in_other_thread(self, value: int, found: int, wanted: int) -> bool:
        """Return whether a thread computes a value of ``found``, its own element of a product, and uses
        or stores ``wanted``, another element, nowhere: the layout of D gives that to another thread.
        """
        user, *made = (self.provenance.origin(key) for key in (value, found, wanted))
        if user is None or not isinstance(user.step, Step):
            return False
        if not all(each is not None and isinstance(each.step, Product) for each in made):
            return False
        lane, wave = user.step.lanes[user.at[0]], user.step.wave
        uses: list[tuple[Any, Step | Stores]] = [(_any(each, wanted), each) for each in self.provenance.steps]
        uses += [((each.keys == _U(wanted)).any(1), each) for each in self.provenance.stores]
        return not any(each.wave is wave and (mask & (each.lanes == lane)).any() for mask, each in uses)

    def choices(self, chosen: int, other: int) -> Iterator[tuple[int, str]]:
        """Yield statements that have chosen one of two keys, and their names: max or min."""
        for step in self.provenance.steps:
            if (
                step.name in ("max", "min")
                and ((step.made == chosen) & _any(step, chosen) & _any(step, other)).any()
            ):
                yield step.pc, step.name

    def bounds(self, chosen: int) -> Iterator[tuple[int, str, int]]:
        """Yield statements that have chosen a key, their names, max or min, and what they have not chosen."""
        for step in self.provenance.steps:
            if step.name in ("max", "min") and len(step.operands) == 2:
                for mine, other in (step.operands, step.operands[::-1]):
                    picked = (step.made == chosen) & (mine == chosen)
                    yield from ((step.pc, step.name, int(key)) for key in np.unique(other[picked]))

    def evaluate(self, root: int, deltas: Mapping[int, int], fixed: Mapping[int, int] = _NOTHING) -> int:
        """Return the key of a formula again, with ``deltas`` added to some values, and others ``fixed``.

        Only what depends on these is evaluated.
        """
        new, (order, users) = dict[int, int](), self.cone(root)
        todo = sorted(order[key] for key in {*deltas, *fixed} if key in order)
        keys = {order[key]: key for key in {*deltas, *fixed} if key in order}
        while todo:
            key = keys.pop(heappop(todo), None)
            if key is None:
                continue  # evaluated already
            self.evaluated += 1
            found = fixed.get(key, self.again(key, new))
            if key in deltas:
                found = plus(found, deltas[key])
            if found != key:
                new[key] = found
                for user in users[key]:
                    keys[order[user]] = user
                    heappush(todo, order[user])
        return new.get(root, root)

    def again(self, key: int, new: Mapping[int, int]) -> int:
        """Return the key of a value whose operands have ``new`` keys."""
        value = self.value(key)
        if value is None:
            return key
        operands = [new.get(each, each) for each in value.operands]
        if value.name != "@":
            same = operands == list(value.operands)
            return key if same else applied(value.name, operands, value.operands, key)
        found = plus(key, minus(operands[0], value.operands[0])) if operands else key
        for x, y in value.terms:
            if x in new or y in new:
                found = plus(found, minus(times(new.get(x, x), new.get(y, y)), times(x, y)))
        return found


def _any(step: Step, key: int) -> Any:
    return np.logical_or.reduce([each == _U(key) for each in step.operands])
