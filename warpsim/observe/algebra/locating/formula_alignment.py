"""A value of the kernel beside the value of the reference that belongs there: which operands differ, and
where.

From the result down: an operand is replaced by what the operation needs there to give the right result, as
long as the reference has that. Where it does not, sums are compared as multisets of terms, products as
multisets of factors. What is left over are edits: an operand with another name, another operation, one too
many or too few. Hypotheses come from the reference's own uses of the same operands. Every edit changes a
value by a delta, so that all of them can be put into the graph, and it be evaluated again.

Knows the two graphs; does not know outputs, lanes or texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, permutations
from typing import Any

from ..keys.constant_keys import LOG2E
from ..keys.finite_fields import equal
from .expansions import PRODUCTS, SUMS, Expansion, Term, TermPairs, total_of
from .formula_graphs import ONE, KernelGraph, ReferenceGraph, Value, inverse, minus, plus, product_of, times
from .value_edits import Edit, Kind, cost, deltas_of, loss

_SINGLE, _SHORT = 1.2015, 1.25  # costs: of one missing operation at one place, and at several
_DEEP, _MOST_VALUES, _MOST_PAIRS = 24, 64, 1600


_WRAPPED = [  # what integers of 8 and 16 bits wrap by
    sign(0, (often << bits) * ONE) for often in (1, 2, 3) for bits in (8, 16) for sign in (plus, minus)
]


class Aligner:
    """Compares values of a kernel with values of a reference, for one output element."""

    def __init__(self, kernel: KernelGraph, reference: ReferenceGraph, root: int, wanted: int) -> None:
        self.kernel, self.reference, self.slice = kernel, reference, reference.cone(wanted)
        self.root, self.wanted = root, wanted
        self._inverses = dict[int, int]()
        sides = (kernel, self.slice.has), (reference, lambda key: kernel.value(key) is not None)
        split = reference.split
        self.fine = [Expansion(graph, self._inverses, split=split) for graph, _ in sides]
        self.coarse, self.flat = (
            [Expansion(graph, self._inverses, whole, split, SUMS, flat=flat) for graph, whole in sides]
            for flat in (False, True)
        )
        self._done = dict[tuple[int, int], list[Edit]]()
        self.pairs = TermPairs(kernel, reference, self._inverses)
        self._arrays = Counter[tuple[str, str]]()  # of elements that stand for others, in the sums so far
        self._left, self._depth = _MOST_PAIRS, 0

    def known(self, key: int) -> bool:
        """Return whether a key belongs to this output, as a value of the reference or a constant."""
        return self.slice.has(key) or self.reference.constant(key) is not None

    def edits(self, value: int, wanted: int) -> list[Edit]:
        """Return what differs between a value and the wanted key; none for equal keys."""
        if value == wanted:
            return []
        if value in self._inverses and wanted in self._inverses:
            return self.edits(self._inverses[value], self._inverses[wanted])
        pair = value, wanted
        if pair not in self._done:
            self._left -= 1
            self._done[pair] = [self._edit("unknown", value, wanted)]  # of a pair within itself
            if self._left > 0 and self._depth < _DEEP:
                self._depth += 1
                self._done[pair] = self._best(value, wanted)
                self._depth -= 1
        return self._done[pair]

    def proves(self, edits: Sequence[Edit], value: int, wanted: int) -> bool:
        """Return whether a value has the wanted key with all edits in the graph."""
        return bool(equal(self.kernel.evaluate(value, deltas_of(edits)), wanted))

    def _edit(self, kind: Kind, value: int, right: int, *more: Any) -> Edit:
        """Return the edit that gives a value its right key; ``more`` are found, wanted, partner, detail."""
        made, more = self.kernel.value(value), more or (value, right)
        return Edit(kind, value, minus(right, value), -1 if made is None else made.pc, *more)

    def _best(self, value: int, wanted: int) -> list[Edit]:
        """Return the edits that explain most. Slow ways are tried where quick ways explain too little:
        a factor of the whole value before factors of many terms.
        """
        found = self._done[value, wanted]
        ways = (
            (self._here, 0.0), (self._by_needed, 1.01), (self._too_late, 1.01),
            (self._by_structure, 1.01), (self._by_factor, _SINGLE), (self._by_expansion, 1.3),
            (self._by_shared, 2.7),
        )  # fmt: skip
        for way, enough in ways:
            if loss(found, value) > enough:
                for edits in way(value, wanted):
                    better = edits and loss(edits, value) < loss(found, value)
                    if better and self.proves(edits, value, wanted):
                        found = edits
                    if loss(found, value) <= enough:
                        break
        if all(edit.kind == "missing term" for edit in found):
            part = self._in_uses(value, wanted, part=True)
            if part:
                return part
        use = self._in_uses(value, wanted) if cost(found) > 1.0 else []
        if use and not self.proves(found, self.root, self.wanted):
            missing = len(found) == 1 and found[0].kind == "missing" and found[0].value == value
            here = use[0]
            return [found[0]._replace(value=here.value, delta=here.delta, pc=here.pc)] if missing else use
        return self._of_number(found, value, wanted)

    def _of_number(self, edits: list[Edit], value: int, wanted: int) -> list[Edit]:
        """Return that a number in a sum is another, where the reference has the sum with a number more."""
        number = edits[0].partner
        sums = len(edits) == 1 and edits[0].kind in ("missing", "extra") and edits[0].detail in ("+", "-")
        if not sums or edits[0].value != value or not self.pairs.is_number(number):
            return edits
        for key in reversed(self._computed_below(value)):
            for delta in (number, minus(0, number)):
                edit = self._other_number(key, delta)
                if edit is not None and self.proves([edit], value, wanted):
                    return [edit]
        return edits

    def _other_number(self, key: int, delta: int) -> Edit | None:
        """Return the edit of a number in a sum, by which the sum is larger by ``delta``."""
        made = self.kernel.value(key)
        if made is None or made.name not in ("+", "-", "fma"):
            return None
        for place, found in enumerate(made.operands):
            number = self.pairs.is_number(found) and self.kernel.value(found) is None
            if number and (made.name != "fma" or place == 2):
                right, other = plus(key, delta), _other(made.operands, found)
                wanted = (minus if made.name == "-" and place else plus)(found, delta)
                if wanted == 0:
                    sign = "-" if made.name == "-" else "+"
                    return self._edit("extra", key, right, other, right, found, sign)
                return self._edit("operand", key, right, found, wanted, other)
        return None

    def _in_uses(self, value: int, wanted: int, *, part: bool = False) -> list[Edit]:
        """Return that a value, right in itself, stands in place of another in one of its uses: to change that
        puts the whole formula right. Or a ``part`` of a sum in place of the sum, which its thread has, too.
        """
        if not self.slice.has(wanted) or not (part or self.slice.has(value)):
            return []
        users = self.kernel.cone(self.root).users.get(value, [])
        if part:
            users = [user for user in users if self.kernel.in_thread(user, wanted)]
        for user in users if part or len(users) > 1 else ():
            right, made = self.kernel.again(user, {value: wanted}), self.kernel.value(user)
            partner = _other(made.operands, value) if made else 0
            edit = self._edit("operand", user, right, value, wanted, partner)
            if self.proves([edit], self.root, self.wanted):
                return [edit]
        return []

    # --- what is wrong with this statement ---

    def _here(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        yield from self._by_choice(value, wanted)
        made, right = self.kernel.value(value), self.reference.value(wanted)
        direct = made is None or self.reference.known(value) or not made.terms
        if right is not None and value in right.operands and direct:
            other = _other(right.operands, value)
            yield [self._edit("missing", value, wanted, value, wanted, other, right.name)]
        if made is None:
            yield from self._scaled(value, wanted)
            return
        for place, found in enumerate(made.operands):
            others = [each for other, each in enumerate(made.operands) if other != place]
            other = _other(made.operands, found)
            if found == wanted and made.name not in ("max", "min") and not self._cut_off(other):
                yield [self._edit("extra", value, wanted, found, wanted, other, made.name)]
            needed = self.needed(made, place, wanted)
            known = needed not in (None, found) and all(map(self.known, others))
            if known and self._stands_for(found, needed):
                yield [self._edit("operand", value, wanted, found, needed, others[0] if others else 0)]
        if right is not None and made.name != right.name and made.operands and not right.terms:
            same = len(made.operands) == len(right.operands) and set(right.operands) <= set(made.operands)
            yield [self._edit("operation", value, wanted, value, wanted, 0, right.name)] if same else []
        yield from self._by_sign(value, made, wanted)

    def _by_sign(self, value: int, made: Value, wanted: int) -> Iterator[list[Edit]]:
        """Yield that a sum should be a difference, or the reverse; and exp2 where the reference has exp."""
        right = self.reference.value(wanted)
        if made.name == "ex2" and right is not None and right.operands == (times(made.operands[0], LOG2E),):
            yield [self._edit("operation", value, wanted, made.operands[0], wanted, 0, "exp")]
        if made.name not in ("+", "-", "fma"):
            return
        first = times(*made.operands[:2]) if made.name == "fma" else made.operands[0]
        second = made.operands[-1]
        apart = minus(first, second)
        if wanted in ((plus(first, second),) if made.name == "-" else (apart, minus(0, apart))):
            sign = "+" if made.name == "-" else "-"
            yield [self._edit("operation", value, wanted, first, second, 0, sign)]

    def _by_choice(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield a maximum or minimum that one side alone has, that is the other's opposite, or that comes
        before a sum.
        """
        mine, theirs = [*self.kernel.choices(value, wanted)], [*self.reference.choices(wanted, value)]
        for pc, name in mine:
            other = next((each for each in theirs if each != name), "")
            edit = self._edit("operation", value, wanted, value, wanted, 0, other)
            if not theirs:
                edit = self._edit("extra", value, wanted, wanted, wanted, value, name)
            yield [edit._replace(pc=pc)] if other or not theirs else []
        for name in theirs if not mine else ():
            yield [self._edit("missing", value, wanted, value, wanted, wanted, name)]
        if self.pairs.is_number(wanted):
            yield from self._by_bound(value, wanted)
        lost = minus(wanted, value)
        leaf = self.kernel.value(value) is None and self.reference.name(value) is not None
        if leaf and lost in self.slice.order:
            for pc, name in self.kernel.choices(0, lost):
                yield [self._edit("order", value, wanted, value, wanted, lost, name)._replace(pc=pc)]

    def _by_bound(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield another bound of a clamp, and a clamp that is missing, so that integers wrap."""
        for pc, name, other in self.kernel.bounds(value):
            if name in self.reference.choices(wanted, other):
                yield [self._edit("operand", value, wanted, value, wanted, other)._replace(pc=pc)]
        for wrapped in _WRAPPED:
            for name in self.reference.choices(wanted, plus(value, wrapped)):
                yield [self._edit("missing", value, wanted, plus(value, wrapped), wanted, wanted, name)]

    def _scaled(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield the wrong factor of a product that a matrix instruction computed, as with a block scale."""
        right = self.reference.value(wanted)
        if right is None or right.name != "*" or self.reference.known(value):
            return
        for place, each in enumerate(right.operands):
            other = times(value, inverse(each)) if each else 0
            if self.reference.name(other) is not None:
                yield [self._edit("operand", value, wanted, other, right.operands[1 - place], each)]

    def _stands_for(self, found: int, needed: int | None) -> bool:
        """Return whether an operand with a name stands in place of another named value."""
        numbers = needed is not None and self.pairs.is_number(needed) and self.pairs.is_number(found)
        if needed is None or not (self.slice.has(needed) or numbers) or not self.reference.known(needed):
            return False
        return needed != ONE if numbers else self.kernel.value(found) is None

    def _by_factor(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield a factor or an addend of the reference, or of the kernel, that stands on one side alone."""
        if value == 0 or wanted == 0 or self.kernel.value(value) is None:
            return
        ratio, apart = times(wanted, inverse(value)), minus(wanted, value)
        for key, word in ((ratio, "*"), (apart, "+"), (minus(0, apart), "-"), (inverse(ratio), "/")):
            number = self.reference.constant(key)
            if word in "+-" and self._cut_off(key):
                continue
            if self.known(key) and (number is None or abs(number) != 1 or word in "+-"):
                yield [self._edit("missing", value, wanted, value, wanted, key, word)]
            elif self.reference.name(key) is not None:
                kind: Kind = "missing" if word in "+*" else "extra"
                yield [self._edit(kind, value, wanted, value, wanted, key, word)]

    def _cut_off(self, key: int) -> bool:
        """Return whether the reference has 0 in place of a value, as a ReLU leaves it."""
        return any(self.reference.choices(0, key))

    def needed(self, made: Value, place: int, wanted: int) -> int | None:
        """Return what an operand would have to be for a result; None where no operand gives it alone."""
        o = made.operands
        if made.terms or any(each == o[place] for other, each in enumerate(o) if other != place):
            return None
        match made.name:
            case "+":
                return minus(wanted, o[1 - place])
            case "-":
                return plus(wanted, o[1]) if place == 0 else minus(o[0], wanted)
            case "*":
                return times(wanted, inverse(o[1 - place])) if o[1 - place] else None
            case "/" if wanted and all(o):
                return times(wanted, o[1]) if place == 0 else times(o[0], inverse(wanted))
            case "fma":
                if place == 2:
                    return minus(wanted, times(o[0], o[1]))
                return times(minus(wanted, o[2]), inverse(o[1 - place])) if o[1 - place] else None
            case "neg":
                return minus(0, wanted)
            case "rcp":
                return inverse(wanted)
        right = self.reference.value(wanted)
        same = right is not None and len(right.operands) == 1 and right.name == made.name and len(o) == 1
        return right.operands[0] if right is not None and same else None

    # --- operands ---

    def _by_needed(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield edits of one operand, where the reference has what it has to be."""
        made = self.kernel.value(value)
        if made is None:
            return
        for place, found in enumerate(made.operands):
            needed = self.needed(made, place, wanted)
            if needed is None or needed in (found, value):
                continue
            defined = self.reference.value(needed) is not None and self.reference.name(needed) is None
            if not self.slice.has(needed) and not defined and (needed or not self._cut_off(found)):
                continue
            edits = self.edits(found, needed)  # of its own statement, or it is the wrong one here
            if self.kernel.value(found) is None or (self._other_element(found, needed) and cost(edits) > 1):
                other, alone = _other(made.operands, found), len(edits) == 1 and edits[0].kind == "missing"
                here = self._edit("operand", value, wanted, found, needed, other)
                edits = [edits[0]._replace(value=value, delta=here.delta, pc=here.pc) if alone else here]
            yield edits

    def _other_element(self, found: int, needed: int) -> bool:
        names = self.reference.name(found), self.reference.name(needed)
        return names[0] is not None and names[1] is not None and names[0].array == names[1].array

    def _by_shared(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield edits of a value that is used more than once, replaced everywhere by one of the reference."""
        if self.reference.value(wanted) is None or self.kernel.value(value) is None:
            return
        below, order = self._computed_below(value), reversed(self.reference.cone(wanted).order)
        uses = Counter(each for key in below for each in (self.kernel.value(key) or Value("", ())).operands)
        candidates = [key for key in order if key != wanted and self.reference.value(key)][:_MOST_VALUES]
        for key in (each for each in below if uses[each] > 1):
            for other in candidates:
                if self.kernel.evaluate(value, {key: minus(other, key)}) == wanted:
                    yield self.edits(key, other)

    def _computed_below(self, value: int) -> list[int]:
        """Return computed values that lead to one, without those in terms of matrix instructions."""
        found, todo = list[int](), [value]
        while todo and len(found) < _MOST_VALUES:
            key = todo.pop(0)
            made = self.kernel.value(key)
            if made is not None and key not in found:
                found.append(key)
                todo += made.operands
        return found

    def _too_late(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield an operation that comes too late: the reference has it at an operand further down."""
        made = self.kernel.value(value)
        if made is None or made.name not in ("+", "*", "-") or len(set(made.operands)) != 2:
            return
        below = self._computed_below(value)
        for late, rest in (made.operands, made.operands[::-1]):
            for inner in below if self.known(late) else ():
                for key in self.slice.users.get(inner, ()):
                    right = self.reference.value(key)
                    earlier = right is not None and inner in right.operands and late in right.operands
                    if earlier and self.kernel.evaluate(rest, {inner: minus(key, inner)}) == wanted:
                        assert right is not None
                        yield [self._edit("order", value, wanted, late, key, inner, right.name)]

    # --- structure ---

    def _by_structure(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        made, right = self.kernel.value(value), self.reference.value(wanted)
        if made is None or right is None:
            return
        if made.name in SUMS or right.name in SUMS:
            yield self._of_sums(value, wanted, self.coarse)
        if made.name in PRODUCTS or right.name in PRODUCTS:
            yield from self._of_factors([value], [wanted])
        if made.name == right.name and len(made.operands) == len(right.operands) == 1:
            yield self.edits(made.operands[0], right.operands[0])

    def _by_expansion(self, value: int, wanted: int) -> Iterator[list[Edit]]:
        """Yield edits of sums with sums that both sides have expanded, too."""
        made, right = self.kernel.value(value), self.reference.value(wanted)
        if made is not None and right is not None and (made.name in SUMS or right.name in SUMS):
            for sides in (self.fine, self.flat):
                yield self._of_sums(value, wanted, sides)

    def _of_factors(self, left: list[int], right: list[int]) -> Iterator[list[Edit]]:
        """Yield edits of factors of factors: of the first alone, which may put all right, then of more."""
        mine = Counter(f for each in left for f in self.fine[0].factors(each) if abs(f) != ONE)
        theirs = Counter(f for each in right for f in self.fine[1].factors(each) if abs(f) != ONE)
        here, there = list((mine - theirs).elements()), list((theirs - mine).elements())
        whole = len(left) == 1 and here == left  # no factors: not to be compared with itself again
        if whole or len(here) != len(there) or len(here) > 3:
            return
        for order in permutations(there):
            edits = list[Edit]()
            for a, b in zip(here, order, strict=True):
                if self.kernel.value(abs(a)) is None:
                    break
                belongs = abs(b) if (a < 0) == (b < 0) else inverse(abs(b))  # where either alone divides
                edits = edits + self.edits(abs(a), belongs)
                yield edits

    # --- sums ---

    def _of_sums(self, value: int, wanted: int, sides: Sequence[Expansion]) -> list[Edit]:
        made = self.kernel.value(value)
        mine, theirs = (side.terms(key) for side, key in zip(sides, (value, wanted), strict=True))
        self.kernel.evaluated += len(mine) + len(theirs)
        expected, found = Counter(t.key for t in theirs), Counter(t.key for t in mine)
        lacking, extra = self.pairs.uneven(_left(theirs, found), _left(mine, expected))
        if not lacking and not extra:
            return []
        if len(mine) < 2 and len(theirs) < 2 and not (mine and mine[0].pc >= 0 and len(mine[0].factors) > 1):
            return []
        lacking = self.pairs.divided(lacking, extra)
        edits = self._of_pairs(extra, lacking)
        if not edits and len(extra) == len(mine) and len(lacking) == len(theirs):
            return []  # nothing in common: another sum
        if total_of(extra) == total_of(lacking):
            return edits
        for term in extra:
            kind: Kind = "double term" if term.key in expected else "extra term"
            first, partner = self.pairs.shown(term)
            edits.append(Edit(kind, term.value or value, term.delta(0), term.pc, first, 0, partner))
        for term in lacking:
            first, partner = self.pairs.shown(term)
            pc = -1 if made is None else made.pc
            edits.append(Edit("missing term", value, term.key, pc, 0, first, partner))
        return list(dict.fromkeys(edits))

    def _of_pairs(self, extra: list[Term], lacking: list[Term]) -> list[Edit]:
        """Return edits of terms that stand for others, which are taken out of both lists.

        Terms are paired by a factor that both have. Where the first and the last factor would do, as k of A
        beside another k of B, arrays stand for each other as in other sums, or the operand whose elements are
        in no order is wrong.
        """
        found: list[tuple[float, int, int, int, list[Edit], set[int], set[int]]] = []
        for last in (True, False):
            pairs = self.pairs.pairs(extra, lacking, last=last)
            edits = [edit for term, other in pairs for edit in self._of_terms(term, other)]
            left = {id(a) for a, _ in pairs}, {id(b) for _, b in pairs}
            loss = round(cost(edits), 1) + len(extra) + len(lacking) - 2 * len(pairs)
            again = sum(self._arrays[self._arrays_of(edit)] > 0 for edit in edits)
            names = [name for edit in edits if (name := self.reference.name(edit.found)) is not None]
            descents = sum(a.place > b.place for a, b in pairwise(names))
            arguments = sum(name.number < 0 for name in names)  # these are loaded, other values computed
            found.append((loss, -again, -descents, -arguments, edits, *left))
        *_, edits, first, second = min(found, key=lambda each: each[:4])
        self._arrays.update(map(self._arrays_of, edits))
        extra[:] = [t for t in extra if id(t) not in first]
        lacking[:] = [t for t in lacking if id(t) not in second]
        return edits

    def _arrays_of(self, edit: Edit) -> tuple[str, str]:
        """Return the array that stands in place of another, and that; "" for values without a name."""
        names = self.reference.name(edit.found), self.reference.name(edit.wanted)
        return tuple("" if name is None else name.array for name in names)  # type: ignore[return-value]

    def _of_terms(self, term: Term, other: Term) -> list[Edit]:
        mine, theirs = Counter(term.factors), Counter(other.factors)
        left, right = (self.pairs.folded(list(each.elements())) for each in (mine - theirs, theirs - mine))
        same = Counter(left) & Counter(right)  # of numbers that are divided among other factors
        left, right = (list((Counter(each) - same).elements()) for each in (left, right))
        both = [f for f in (mine & theirs).elements() if f not in self._inverses]
        shared = next((f for f in both if not self.pairs.is_number(f)), 0)
        delta = term.delta(other.key)
        if len(left) == len(right) == 1:
            computed = not self.reference.known(left[0]) or self.kernel.value(left[0]) is not None
            inner = self.edits(left[0], right[0]) if computed else []
            whole = Edit("operand", term.value, delta, term.statement(left[0]), left[0], right[0], shared)
            if not inner or (cost(inner) > _SHORT and self.reference.known(left[0])):
                return [whole]
            own = [edit._replace(value=term.value, delta=delta, pc=term.pc) for edit in inner]
            return [edit if edit.pc >= 0 else here for edit, here in zip(inner, own, strict=True)]
        inner = self._of_several(term, left, right) if len(left) == len(right) else []
        if inner:
            return inner
        found, wanted = product_of(left) if left else ONE, product_of(right) if right else ONE
        kind: Kind = "missing" if not left else "extra" if not right else "unknown"
        partner = wanted if kind == "missing" else found
        pc = term.statement(left[0]) if left else term.pc
        return [Edit(kind, term.value, delta, pc, found, wanted, partner, "*")]

    def _of_several(self, term: Term, left: list[int], right: list[int]) -> list[Edit]:
        """Return edits of factors: of computed values, then of elements in place of others of their array."""
        leaves = [f for f in left if self.kernel.value(self._inverses.get(f, f)) is None]
        pairs = [(f, next((g for g in right if self._other_element(f, g)), 0)) for f in leaves]
        mine = [f for f in left if f not in leaves]
        theirs = [g for g in right if g not in dict(pairs).values()]
        if not all(g for _, g in pairs) or len(mine) != len(theirs):
            return []
        ways: Iterable[list[Edit]] = self._of_factors(mine, theirs)
        if len(mine) == 1:
            ways = [self.edits(mine[0], theirs[0])]
        edits = next((each for each in ways if self._makes(each, mine, theirs)), [])
        key = times(term.key, times(product_of(theirs), inverse(product_of(mine))))
        for f, g in pairs if edits or not mine else ():
            right_key = times(key, times(g, inverse(f)))
            delta = term.delta(plus(term.key, minus(right_key, key)))
            edits = [*edits, Edit("operand", term.value, delta, term.pc, f, g, _other(left, f))]
            key = right_key
        return edits

    def _makes(self, edits: Sequence[Edit], factors: Sequence[int], wanted: Sequence[int]) -> bool:
        deltas, found = deltas_of(edits), ONE
        for each in factors:
            divides = self._inverses.get(each)
            key = self.kernel.evaluate(each if divides is None else divides, deltas)
            found = times(found, key if divides is None else inverse(key))
        return bool(equal(found, product_of(wanted)))


def _other(operands: Sequence[int], key: int) -> int:
    return next((each for each in operands if each != key), 0)


def _left(terms: list[Term], others: Counter[int]) -> list[Term]:
    """Return the terms that are not among others, as often as they are not."""
    seen, found = Counter[int](), list[Term]()
    for term in terms:
        seen[term.key] += 1
        if seen[term.key] > others[term.key] and term.key:
            found.append(term)
    return found
