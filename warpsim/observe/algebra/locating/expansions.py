"""A value as a sum of terms, and as a product of factors: what is compared where the order of operations
differs. Terms of both sides are paired: equal but for numbers, or a term in place of another.

Knows graphs and names of keys; does not know edits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .formula_graphs import (
    ONE,
    Graph,
    KernelGraph,
    ReferenceGraph,
    Value,
    inverse,
    minus,
    plus,
    product_of,
    rational,
    times,
)

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


# --- terms of both sides ---------------------------------------------------------------------------------

Pairs = list[tuple[Term, Term]]
_MOST_TERMS, _MOST_KEYS = 20000, 2000
_LIKE = 0.25  # of the elements of arguments that two terms share at least


class TermPairs:
    """Pairs terms of a kernel with terms of a reference; ``inverses`` are those of their expansions."""

    def __init__(self, kernel: KernelGraph, reference: ReferenceGraph, inverses: dict[int, int]) -> None:
        self.kernel, self.reference, self.inverses = kernel, reference, inverses
        self._numbers = dict[int, bool]()
        self._leaves = dict[tuple[bool, int], frozenset[int]]()

    def is_number(self, key: int) -> bool:
        """Return whether a key is a number, or the inverse of a number."""
        if key not in self._numbers:
            own = (key, self.inverses.get(key, key))
            self._numbers[key] = any(
                self.reference.constant(k) is not None or rational(k) is not None for k in own
            )
        return self._numbers[key]

    def _variables(self, term: Term) -> tuple[int, ...]:
        return tuple(sorted(f for f in term.factors if not self.is_number(f)))

    def uneven(self, lacking: list[Term], extra: list[Term]) -> tuple[list[Term], list[Term]]:
        """Return terms without those that are the same in all but how constants are divided among them."""
        sums = defaultdict[tuple[int, ...], int](int)
        for terms, sign in ((lacking, plus), (extra, minus)):
            for term in terms:
                sums[self._variables(term)] = sign(sums[self._variables(term)], term.key)
        first, second = ([t for t in terms if sums[self._variables(t)]] for terms in (lacking, extra))
        return first, second

    def divided(self, lacking: list[Term], extra: list[Term]) -> list[Term]:
        """Return lacking terms in the parts in which the kernel adds them: terms in which one variable
        differs, and numbers that add up to the number of the term.
        """
        near, found = defaultdict[tuple[int, ...], list[Term]](list), list[Term]()
        for term in extra:
            for rest in _all_but_one(self._variables(term)):
                near[rest].append(term)
        for term in lacking:
            own = self._variables(term)
            ways = (self._parts(term, own, near.get(rest, [])) for rest in _all_but_one(own))
            found += next(filter(None, ways), [term])
        return found

    def _parts(self, term: Term, own: tuple[int, ...], like: list[Term]) -> list[Term]:
        """Return parts of a term with the numbers of other terms; none where these are another sum."""
        numbers = [tuple(f for f in each.factors if self.is_number(f)) for each in like]
        parts = [term._replace(key=product_of((*own, *few)), factors=(*own, *few), pcs=()) for few in numbers]
        return parts if len(parts) > 1 and total_of(parts) == term.key else []

    def folded(self, factors: list[int]) -> list[int]:
        """Return factors with their numbers multiplied, where there are several factors."""
        number = product_of([f for f in factors if self.is_number(f)])
        if len(factors) < 2:
            return factors
        return [f for f in factors if not self.is_number(f)] + [number] * (number != ONE)

    def shown(self, term: Term) -> tuple[int, int]:
        """Return the factors that name a term: none that divide; 0 for no second factor."""
        factors = [f for f in term.factors if f not in self.inverses] or list(term.factors)
        named = [f for f in factors if not self.is_number(f)]
        factors = named if len(named) > 1 else factors
        return factors[0], factors[-1] if len(factors) > 1 else 0

    def pairs(self, extra: list[Term], lacking: list[Term], *, last: bool) -> Pairs:
        """Return pairs of terms that share a factor, ``last`` or first, or most elements of arguments."""
        by_factor = defaultdict[int, list[Term]](list)
        for term in lacking:
            for factor in term.factors:
                by_factor[factor].append(term)
        used, first = set[int](), set[int]()
        pairs: Pairs = []
        for term in extra:
            near = [by_factor.get(f, []) for f in term.factors[:: -1 if last else 1]]
            for some in sorted(near, key=len):  # those first that few terms have
                free = [t for t in some if id(t) not in used]
                best = max(free, key=lambda t: _shared(t, term), default=None)
                if best is not None:
                    used.add(id(best))
                    first.add(id(term))
                    pairs.append((term, best))
                    break
        alone = [t for t in extra if id(t) not in first], [t for t in lacking if id(t) not in used]
        if all(len(terms) == 1 and self._variables(terms[0]) for terms in alone):
            return [*pairs, (alone[0][0], alone[1][0])]
        return pairs + self._by_leaves(*alone)

    def _by_leaves(self, extra: list[Term], lacking: list[Term]) -> Pairs:
        if not extra or len(extra) * len(lacking) > _MOST_TERMS:
            return []
        theirs = [(self._elements(self.reference, term), term) for term in lacking]
        pairs: Pairs = []
        for term in extra:
            mine = self._elements(self.kernel, term)
            near = [(len(mine & own) / max(len(mine | own), 1), -at) for at, (own, _) in enumerate(theirs)]
            share, place = max(near, default=(0.0, 0))
            if share > _LIKE:
                pairs.append((term, theirs.pop(-place)[1]))
        return pairs

    def _elements(self, graph: Graph, term: Term) -> frozenset[int]:
        """Return the elements of arguments that a term is made of."""
        memo = self._leaves.get((graph is self.kernel, term.key))
        if memo is not None:
            return memo
        found, seen, todo = set[int](), set[int](), list(term.factors)
        while todo and len(seen) < _MOST_KEYS:
            key = todo.pop()
            made, name = graph.value(key), self.reference.name(key)
            if key in seen:
                continue
            seen.add(key)
            if name is not None and name.number < 0:
                found.add(key)
            elif made is not None:
                todo += made.every
        return self._leaves.setdefault((graph is self.kernel, term.key), frozenset(found))


def total_of(terms: Sequence[Term]) -> int:
    """Return the sum of terms."""
    found = 0
    for term in terms:
        found = plus(found, term.key)
    return found


def _all_but_one(keys: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [keys[:place] + keys[place + 1 :] for place in range(len(keys))]


def _shared(a: Term, b: Term) -> int:
    return len(set(a.factors) & set(b.factors))
