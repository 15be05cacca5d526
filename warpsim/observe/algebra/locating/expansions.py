"""A value as a sum of terms, and as a product of factors: what is compared where the order of operations
differs.

Knows a graph; does not know which of the two sides it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from .formula_graphs import Value, inverse, minus, product_of, times

SUMS = ("+", "-", "fma", "@", "sum", "neg")
PRODUCTS = ("*", "/", "rcp", "neg")
ONE = 1 << 32 | 1
_DEEP, _MOST = 24, 20000  # nested factors; terms


class Graph(Protocol):
    """What made keys, of which keys."""

    def value(self, key: int) -> Value | None:
        """Return how a key is made; None for arguments and constants."""


class Term(NamedTuple):
    """A term of a sum: its factors, and the value of the kernel that adds it, which ``scale`` multiplies."""

    key: int
    factors: tuple[int, ...]
    value: int
    pc: int
    scale: int

    def delta(self, other: int) -> int:
        """Return what is added to the value for another term."""
        apart = minus(other, self.key)
        return apart if self.scale == ONE else times(apart, inverse(self.scale))


class _Part(NamedTuple):
    """A summand that is still to be expanded, what multiplies it, and the value that adds it."""

    key: int
    scale: tuple[int, ...]
    value: int
    pc: int


class Expansion:
    """Values of a graph as sums and products. ``inverses`` has, by key, what a factor is the inverse of."""

    def __init__(self, graph: Graph, inverses: dict[int, int]) -> None:
        self.graph, self.inverses = graph, inverses

    def inverted(self, key: int) -> int:
        """Return the factor that divides by a key."""
        found = inverse(key)
        self.inverses[found] = key
        return found

    def factors(self, key: int, *, inverted: bool = False, depth: int = 0) -> Iterator[int]:
        """Yield the factors of a value; those that divide are negative."""
        if key in self.inverses:
            key, inverted = self.inverses[key], not inverted
        made = self.graph.value(key)
        if made is None or made.name not in ("*", "/", "rcp") or depth > _DEEP:
            yield -key if inverted else key
            return
        for place, each in enumerate(made.operands):
            divides = made.name == "rcp" or (made.name == "/" and place == 1)
            yield from self.factors(each, inverted=inverted != divides, depth=depth + 1)

    def terms(self, key: int) -> list[Term]:
        """Return the terms of a sum, in the order of its additions; a factor of a sum is one of its terms."""
        found, todo = list[Term](), [_Part(key, (), 0, -1)]
        while todo and len(found) < _MOST:
            part = todo.pop()
            made = self.graph.value(part.key)
            if made is None or (part.key != key and self._is_atom(made)):
                if part.key:
                    own = made.operands if made is not None and made.name == "*" else (part.key,)
                    found.append(self._term(part, own))
                continue
            here = part._replace(value=part.key, pc=made.pc)
            todo += self._parts(made, here)
            found += [self._term(here, factors) for factors in self._products(part.key, made)]
        return found[::-1]

    def _products(self, key: int, made: Value) -> Iterator[Sequence[int]]:
        """Yield the factors of products that a value adds, or is."""
        yield from reversed(made.terms)
        if made.name == "fma" and not self._sum_among(made.operands[:2]):
            yield made.operands[:2]
        elif made.name in ("*", "/") and not self._sum_among(made.operands):
            yield [f if f > 0 else self.inverted(-f) for f in self.factors(key)]

    def _parts(self, made: Value, here: _Part) -> list[_Part]:
        """Return the summands of a value that may be sums themselves."""
        if made.name in ("+", "@", "sum"):
            return [here._replace(key=each) for each in made.operands]
        if made.name in ("-", "neg"):
            first = [here._replace(key=each) for each in made.operands[:-1]]
            return [*first, here._replace(key=made.operands[-1], scale=(*here.scale, minus(0, ONE)))]
        multiplied = made.operands[:2]
        rest = [here._replace(key=made.operands[2])] if made.name == "fma" else []
        inner = self._sum_among(multiplied)
        if inner:
            others = list(multiplied)
            others.remove(inner)
            more = [self.inverted(each) for each in others] if made.name == "/" else others
            rest.insert(0, here._replace(key=inner, scale=(*here.scale, *more)))
        return rest

    def _sum_among(self, operands: Sequence[int], depth: int = 0) -> int:
        """Return the operand of a product that is a sum, which factors are distributed over; 0 for none."""
        for each in operands:
            made = self.graph.value(each)
            if made is not None and depth < 4:
                if made.name in ("@", "sum", "fma", "+"):
                    return each
                if made.name == "*" and self._sum_among(made.operands, depth + 1):
                    return each
        return 0

    def _is_atom(self, made: Value) -> bool:
        if made.name in ("*", "/"):
            return not self._sum_among(made.operands[: 2 if made.name == "*" else 1])
        return made.name not in SUMS

    def _term(self, part: _Part, own: Sequence[int]) -> Term:
        factors = (*part.scale, *(factor for each in own for factor in self._of_quotient(each)))
        named = tuple(f for f in factors if f != ONE) or (ONE,)
        return Term(product_of(factors), named, part.value, part.pc, product_of(part.scale))

    def _of_quotient(self, key: int) -> tuple[int, ...]:
        made = self.graph.value(key)
        return (
            (key,)
            if made is None or made.name != "/"
            else (made.operands[0], self.inverted(made.operands[1]))
        )
