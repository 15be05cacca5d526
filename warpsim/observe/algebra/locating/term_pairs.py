"""Terms of a sum beside those that belong there: which are the same but for numbers, which stand for which.

Knows the two graphs and names of keys; does not know edits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .expansions import Term
from .formula_graphs import ONE, Graph, KernelGraph, ReferenceGraph, minus, plus, product_of, rational

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
        """Return the factors of a term that are no numbers."""
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
    """Return tuples without one of their keys each."""
    return [keys[:place] + keys[place + 1 :] for place in range(len(keys))]


def _shared(a: Term, b: Term) -> int:
    return len(set(a.factors) & set(b.factors))
