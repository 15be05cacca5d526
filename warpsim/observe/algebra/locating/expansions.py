"""A value as a sum of terms, and as a product of factors: what is compared where the order of operations
differs.

Knows a graph; does not know which of the two sides it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .formula_graphs import ONE, Graph, Value, inverse, minus, product_of, times

SUMS = ("+", "-", "fma", "@", "sum", "neg")
PRODUCTS = ("*", "/", "rcp", "neg")
_DEEP, _MOST = 24, 4096  # nested factors; summands


class Term(NamedTuple):
    """A term of a sum: its factors, with the statement that multiplies by each, and the value of the kernel
    that adds it, which ``scale`` multiplies.
    """

    key: int
    factors: tuple[int, ...]
    value: int
    pc: int
    scale: int
    pcs: tuple[int, ...] = ()

    def statement(self, factor: int) -> int:
        """Return the statement that multiplies by a factor; for others, which adds the term."""
        return dict(zip(self.factors, self.pcs, strict=False)).get(factor, self.pc)

    def delta(self, other: int) -> int:
        """Return what is added to the value for another term."""
        apart = minus(other, self.key)
        return apart if self.scale == ONE else times(apart, inverse(self.scale))


class _Part(NamedTuple):
    """A summand that is still to be expanded, what multiplies it, and the value that adds it, which ``above``
    multiplies.
    """

    key: int
    scale: tuple[int, ...]
    value: int
    pc: int
    above: tuple[int, ...] = ()
    pcs: tuple[int, ...] = ()  # of scale


class Expansion:
    """Values of a graph as sums and products. ``inverses`` has, by key, what a factor is the inverse of.

    ``whole`` says which sums inside of others stay terms or factors as they are, and ``split`` gives the
    integer, its weight and the rest of a float that is made of bits. ``inside`` are sums that products are
    distributed over. ``flat`` takes factors of factors apart, too.
    """

    def __init__(
        self,
        graph: Graph,
        inverses: dict[int, int],
        whole: Callable[[int], bool] = lambda key: False,
        split: Callable[[int], tuple[int, int, int] | None] = lambda key: None,
        inside: Sequence[str] = ("@", "sum", "fma", "+"),
        *,
        flat: bool = False,
    ) -> None:
        self.flat = flat
        self.graph, self.inverses, self.whole, self.split, self.inside = graph, inverses, whole, split, inside

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
        found, todo, left = list[Term](), [_Part(key, (), 0, -1)], _MOST
        while todo and left:
            part, left = todo.pop(), left - 1
            made = self.graph.value(part.key)
            bits = self.split(part.key) if made is None else None
            if bits is not None:
                integer, weight, rest = bits
                todo += [self._scaled(part, integer, [weight], part.pc), part._replace(key=rest)]
            elif made is None or (part.key != key and self._is_atom(part.key, made)):
                own = made.operands if made is not None and made.name == "*" else (part.key,)
                found += [self._term(part, own)] if part.key else []
            else:
                here = part._replace(value=part.key, pc=made.pc, above=part.scale)
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
            return [*first, self._scaled(here, made.operands[-1], [minus(0, ONE)], made.pc)]
        multiplied = made.operands[:2]
        rest = [here._replace(key=made.operands[2])] if made.name == "fma" else []
        inner = self._sum_among(multiplied)
        if inner:
            others = list(multiplied)
            others.remove(inner)
            more = [self.inverted(each) for each in others] if made.name == "/" else others
            rest.insert(0, self._scaled(here, inner, more, made.pc))
        return rest

    def _sum_among(self, operands: Sequence[int], depth: int = 0) -> int:
        """Return the operand of a product that is a sum, which factors are distributed over; 0 for none."""
        for each in operands:
            made = None if self.whole(each) else self.graph.value(each)
            if made is not None and depth < 4:
                if made.name in self.inside:
                    return each
                if made.name == "*" and self._sum_among(made.operands, depth + 1):
                    return each
        return 0

    def _is_atom(self, key: int, made: Value) -> bool:
        if made.name in ("*", "/"):
            return self.whole(key) or not self._sum_among(made.operands[: 2 if made.name == "*" else 1])
        return made.name not in SUMS or self.whole(key)

    def _term(self, part: _Part, own: Sequence[int]) -> Term:
        given = zip((*part.scale, *own), (*part.pcs, *(part.pc for _ in own)), strict=True)
        every = [(factor, pc) for each, pc in given for factor in self._apart(each) if abs(factor) != ONE]
        named = tuple(f if f > 0 else self.inverted(-f) for f, _ in every) or (ONE,)
        pcs = tuple(pc for _, pc in every)
        return Term(product_of(named), named, part.value, part.pc, product_of(part.above), pcs)

    def _apart(self, key: int) -> Iterator[int]:
        """Yield the factors of a factor: of a quotient always, of a product where it is to be flat."""
        made = self.graph.value(key)
        if self.flat or (made is not None and made.name == "/"):
            yield from self.factors(key)
        else:
            yield key

    @staticmethod
    def _scaled(part: _Part, key: int, factors: Sequence[int], pc: int) -> _Part:
        """Return a summand of another that factors multiply at a statement."""
        pcs = (*part.pcs, *(pc for _ in factors))
        return part._replace(key=key, scale=(*part.scale, *factors), pcs=pcs)
