"""Operands of a whole product that were read from elsewhere: A, B, C and D of a loop along k.

A and B are solved line by line where D has enough elements, else every map is tried on few elements of D.
C is D without the products, D is the right result: both are known by value. The engine decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ....base.errors import OperandError
from ....isa.codes import codes_of, matrix_of, values_of
from ....isa.formats import Format
from ....isa.instruction import Instruction
from ....isa.products import Codes
from ....sums.execution.pipeline import rule_for
from ....sums.products.gemm import gemm
from ..dumps.wrong_elements import ranges
from .atoms import Flags
from .fitting import Fit, Piece, Where, Zero, fit
from .held_values import Block, Values, whole_views
from .lines import Lines, Numbers, least_squares
from .naming import advice, phrase, spoken, unit_words, valued
from .place_words import Speaker, conditions
from .product_loops import Loop, scale_matrices, scaled_matrices
from .step_causes import Solution
from .value_functions import decoded, value_functions
from .views import NOTHING, Index, View, matrix_views

_LARGEST = 1 << 16  # elements of an operand
_PROBES = 3, 2  # elements of D that are wrong, and right
_CHUNK = 1 << 22  # numbers at once
_CACHED = 1 << 16  # numbers at once that are read again at once
_SURVIVORS = 256  # maps that are judged on all of D
_PARTLY = 4.0  # cost of maps that are tried where a predicate holds
_ADVICE = {
    "A": "compare with the addresses and the order in which A is loaded",
    "B": "compare with the addresses and the order in which B is loaded",
    "C": "check the addresses from which C is loaded",
    "D": "the product is right: store it at the addresses from which it is read",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Whole:
    """An operand: its values as sources, the codes ``(S, N)`` of these, and the shape of its matrix."""

    name: str
    element: Format
    held: Values
    codes: Codes
    shape: tuple[int, int]

    def matrix(self, table: Index) -> Codes:
        """Return the codes of the matrix that a table reads."""
        flat = np.append(self.codes.reshape(-1), self.codes.dtype.type(0))
        return np.asarray(flat[table].reshape(self.shape))

    def _spoken(self, piece: Piece) -> Piece:
        """Return a piece with the atom of its table that is said first."""
        return replace(piece, atom=spoken(piece.atom, self.held.atoms, operand=self.name.lower())[0])

    def solution(self, found: Fit, run: Callable[[], Codes] | None) -> Solution:
        """Return a fit in words, with the function that computes D of it."""
        speaker = Speaker(self.name.lower(), self.element.bits)
        pieces = [self._spoken(piece) for piece in found.pieces]
        text = unit_words(found.units, speaker) if found.units else _text(pieces, speaker)
        first = pieces[0] if pieces else None
        moved = first is None or first.atom.kind != "unchanged"
        facts: dict[str, Any] = {"operand": self.name, "map": found.kind, "table": found.table}
        if first is not None:
            facts["map"] = first.atom.kind if moved else first.source.kind
            facts |= {**first.source.facts, **first.atom.facts, "values": first.source.kind}
            facts["where"] = [each.facts for each in first.within if each.inside]
        return Solution(
            text=f"{self.name}: {text}",
            advice=advice(first, first.atom, speaker) if first else _ADVICE[self.name],
            kind={"C": "c", "D": "result"}.get(self.name, "operand" if moved else "values"),
            facts=facts,
            computed=() if run is None else (run,),
        )


def _is_moved(found: Fit) -> bool:
    """Return whether places hold those of others, or a value that is no function of what belongs there."""
    kinds = ("own", "zero")
    return not found.pieces or any(
        piece.atom.kind != "unchanged" or piece.source.kind == "without C"
        for piece in found.pieces
        if piece.source.kind not in kinds or piece.atom.kind != "unchanged"
    )


def _text(pieces: Sequence[Piece], speaker: Speaker) -> str:
    """Return pieces in words; places that are as they should be are an exception of the others."""
    first, *rest = pieces
    if rest and not phrase(replace(first, within=()), first.atom, speaker):
        other = replace(rest[0], within=())
        return f"{phrase(other, other.atom, speaker)}, except where {conditions(first.within, speaker)}"
    texts = [phrase(first, first.atom, speaker)]
    texts += [phrase(replace(each, within=()), each.atom, speaker) for each in rest]
    return "; elsewhere ".join(text for text in texts if text)


def _whole(loop: Loop, name: str, codes: Codes, more: Sequence[tuple[Block, Codes]] = ()) -> Whole:
    """Return an operand whose codes are a matrix of whole tiles; ``more`` are other sources."""
    operand, form = name.lower(), loop.form
    element = form.format(operand)
    views = _views(loop, "d" if operand == "c" else operand, codes.shape)
    flat = codes.reshape(-1)
    every = [(Block(0, "own"), flat), *more]
    every += [
        (Block(each.cost, each.kind, each.facts), each.change(flat)) for each in value_functions(element)
    ]
    stacked = np.stack([np.asarray(each, codes.dtype).reshape(-1) for _, each in every])
    values = np.append(decoded(stacked, element).reshape(-1), 0.0)
    places = np.arange(codes.size)
    held = Values(views=views, sources=[block for block, _ in every], values=values, places=places)
    return Whole(name=name, element=element, held=held, codes=stacked, shape=(codes.shape[0], codes.shape[1]))


def _views(loop: Loop, operand: str, shape: tuple[int, ...]) -> tuple[View, ...]:
    """Return the views of an operand; of a sparse A, of which registers hold a half, those of the matrix."""
    size = shape[0], shape[1]
    if loop.form.sparse and operand == "a":
        return tuple(matrix_views(size, loop.form.storage(operand).bits))
    return whole_views(loop.form, operand, size)


class LoopOperands:
    """Solutions of a product: codes of the right D and of D ``(m, n)``; ``near``: how far roundings reach."""

    def __init__(self, loop: Loop, codes: tuple[Codes, Codes], near: Numbers) -> None:
        self.loop, (self.expected, self.wanted) = loop, codes
        form, (m, n) = loop.form, loop.shape
        rows, columns = loop.c.shape
        pad = [(0, rows - m), (0, columns - n)]
        self.d, self.right = (np.pad(decoded(x, form.d), pad) for x in (self.wanted, self.expected))
        self.near = np.pad(near, pad)
        self.tried = 0

    def __iter__(self) -> Iterator[Solution]:
        if self.d.size > _LARGEST:
            return
        with np.errstate(all="ignore"):
            yield from self._of_result()
            yield from self._of_c()
            for name in "AB":
                yield from self._of_factor(name)
            yield from self._of_both()

    # --- known by value ---

    def _of_result(self) -> Iterator[Solution]:
        """Yield the right D, or D without C, in other places."""
        loop, form = self.loop, self.loop.form
        rows, columns = loop.c.shape
        pad = [(0, rows - len(self.expected)), (0, columns - self.expected.shape[1])]
        more = []
        if loop.c.any():
            plain = codes_of(gemm(form, loop.given.A, loop.given.B, **loop.given.scales), form.d, "D")
            more.append((Block(1, "without C"), np.pad(plain, pad)))
        whole = _whole(loop, "D", np.pad(self.expected, pad), more)
        moved = (found for found in self._fitted(whole, self.d, 0.0) if _is_moved(found))
        for found in moved:  # functions of its values, and masks, are seen in D
            codes = whole.matrix(found.table)
            yield whole.solution(found, lambda codes=codes: loop.tiles_of(codes))  # type: ignore[misc]

    def _of_c(self) -> Iterator[Solution]:
        """Yield C from other places."""
        loop = self.loop
        if not loop.c.any():
            return
        whole = _whole(loop, "C", loop.c)
        rest = self.d - self.right + decoded(loop.c, loop.form.c)
        for found in self._fitted(whole, rest, self.near.reshape(-1)):
            codes = whole.matrix(found.table)

            def run(codes: Codes = codes) -> Codes:
                return loop.chain(loop.plain(), loop.accumulators_of(codes))

            yield whole.solution(found, run)

    def _fitted(self, whole: Whole, values: Numbers, bound: Any) -> list[Fit]:
        answer = fit(whole.held, values.reshape(-1), bound, located=False)
        self.tried += answer.tried
        return [found for found in answer.fits if found.certain and not len(found.rest) and found.cost > 0]

    # --- A and B ---

    def _of_factor(self, name: str) -> Iterator[Solution]:
        """Yield A or B from other places: of solved values, else of maps that D does not contradict."""
        loop = self.loop
        codes = loop.a if name == "A" else loop.b
        if codes.size > _LARGEST:
            return
        whole = _whole(loop, name, codes)
        problem = _Problem(loop, name, self.d, self.near)
        solved = least_squares(problem.lines) if problem.solvable else None
        if solved is not None:
            fits: Sequence[Fit] = self._fitted(whole, *solved)
        else:
            screen = _Screen(whole, problem, self._wrong(name))
            fits = screen.fits()
            self.tried += screen.tried
        for found in fits:
            made = whole.solution(found, lambda found=found: self._with(whole, found.table))  # type: ignore[misc]
            yield replace(made, also=tuple(self._of_scales(whole, found.table)))

    def _of_scales(self, whole: Whole, table: Index) -> Iterator[str]:
        """Yield scales that are zero, where whole lines of an operand that are zero give the same."""
        form, zero = self.loop.form, table == NOTHING
        if form.scale is None or values_of(np.zeros(1, np.uint8), form.scale).any():  # ue8m0 has no zero
            return
        lines = zero.reshape(whole.shape) if whole.name == "A" else zero.reshape(whole.shape).T
        left_out = lines.all(axis=1)
        if (left_out == lines.any(axis=1)).all() and (zero | (table == np.arange(len(table)))).all():
            name = "rows" if whole.name == "A" else "columns"
            yield f"scales of {whole.name} of {name} {ranges(np.flatnonzero(left_out).tolist())} zero"

    def _of_both(self) -> Iterator[Solution]:
        """Yield A and B that are changed by the same function of their values, or taken for each other."""
        loop, form, given = self.loop, self.loop.form, self.loop.given
        if form.scale is not None or form.sparse:
            return
        a, b = (codes_of(M, x, "A or B") for M, x in ((given.A, form.a), (given.B, form.b)))
        both: list[tuple[Block, Codes, Codes]] = []
        if a.shape == b.shape and form.a == form.b and a.shape[0] == a.shape[1]:
            both.append((Block(2, "exchanged"), b, a))
        for each, other in zip(value_functions(form.a), value_functions(form.b), strict=False):
            if (each.kind, each.facts) == (other.kind, other.facts):
                both.append((Block(each.cost, each.kind, each.facts), each.change(a), other.change(b)))
        (m, n), c = loop.shape, decoded(loop.c, form.c)
        for block, new_a, new_b in both:
            self.tried += 1
            made = decoded(new_a, form.a) @ decoded(new_b, form.b) + c[:m, :n]
            if (np.abs(made - self.d[:m, :n]) > self.near[:m, :n]).any():
                continue
            changed = {"A": matrix_of(new_a, form.a), "B": matrix_of(new_b, form.b)}
            text = "A and B are exchanged: D is B·A" if block.kind == "exchanged" else valued(block, form.a)
            yield Solution(
                text=text if block.kind == "exchanged" else f"A and B: {text}",
                advice="pass A and B in the order of the product, in their own types",
                kind="values",
                facts={"operand": "A and B", "values": block.kind, **block.facts},
                computed=(lambda read=changed: self._product(read),),  # type: ignore[misc]
            )

    def _product(self, read: dict[str, Any]) -> Codes:
        """Return D of all tiles with other matrices."""
        loop, given = self.loop, self.loop.given
        d = gemm(loop.form, read["A"], read["B"], given.C, **given.scales)
        return loop.tiles_of(codes_of(d, loop.form.d, "D"))

    def _wrong(self, name: str) -> Flags:
        wrong = np.asarray(self.d != self.right, np.bool_)
        return wrong if name == "A" else wrong.T

    def _with(self, whole: Whole, table: Index) -> Codes:
        """Return D of all tiles with an operand as a table reads it."""
        loop, (m, n) = self.loop, self.loop.shape
        k = np.asarray(loop.given.A).shape[1]
        codes = whole.matrix(table)
        codes = codes[:m, :k] if whole.name == "A" else codes[:k, :n]
        read: dict[str, Any] = {"A": loop.given.A, "B": loop.given.B}
        read[whole.name] = matrix_of(np.ascontiguousarray(codes), whole.element)
        try:
            return self._product(read)
        except OperandError:  # a sparse A that breaks the pattern
            return np.zeros_like(loop.tiles_of(self.wanted))


class _Problem:
    """The lines of A, or of B, as D poses them: ``T (L, E)``, ``near (L, E)``, weights of each line."""

    def __init__(self, loop: Loop, name: str, d: Numbers, near: Numbers) -> None:
        form = loop.form
        (scaled_a, scaled_b), (of_a, of_b) = scaled_matrices(loop), scale_matrices(loop)
        rest = d - decoded(loop.c, form.c)
        if name == "A":
            self.T, self.near, self.other, self.scale = rest, near, scaled_b, of_a
            self.where = np.arange(loop.a.size).reshape(loop.a.shape)
        else:
            self.T, self.near, self.other, self.scale = rest.T, near.T, scaled_a.T, of_b.T
            self.where = np.arange(loop.b.size).reshape(loop.b.shape).T
        self.scaled = form.scale is not None
        self.unit = unit_of(form)
        own = decoded(loop.a if name == "A" else loop.b, form.format(name.lower()))
        self.largest = float(np.abs(own[np.isfinite(own)]).max(initial=0))

    def slack(self, values: Numbers) -> float:
        """Return how much larger sources are than what belongs there: roundings grow with them."""
        finite = np.abs(values[np.isfinite(values)])
        return max(0.0, float(finite.max(initial=0)) - self.largest) * self.unit

    @property
    def solvable(self) -> bool:
        """Whether lines have as many elements as places, and the same weights."""
        return not self.scaled and self.T.shape[1] >= self.other.shape[0]

    @cached_property
    def lines(self) -> Lines:
        """The problem of all lines."""
        return replace(Lines.of(self.other, self.T, self.near), where=self.where)

    def weights(self, line: int) -> Numbers:
        """Return the weights ``(J, E)`` of a line."""
        return np.asarray(self.scale[line, :, None] * self.other) if self.scaled else self.other

    def agrees(self, values: Numbers) -> bool:
        """Return whether values ``(L, J)`` give all of D, but for rounding."""
        made = (values * self.scale if self.scaled else values) @ self.other
        apart = np.abs(made - self.T)
        near = self.near + self.slack(values) * np.abs(self.other).sum(axis=0)
        return bool(((apart <= near) | ~np.isfinite(self.T)).all())


def unit_of(form: Instruction) -> float:
    """Return the unit in the last place of a sum, as a share of its largest term."""
    if not form.d.is_float:
        return 0.0
    bits = getattr(rule_for(form).bare, "fraction_bits", form.d.fraction_bits)
    return float(2.0 ** -min(form.d.fraction_bits, bits))


class _Screen:
    """All maps of an operand, judged on few elements of D, then on all."""

    def __init__(self, whole: Whole, problem: _Problem, wrong: Flags) -> None:
        self.whole, self.problem, self.wrong = whole, problem, wrong
        self.held, self.size = whole.held, len(whole.held.places)
        self.blocks, self.count = len(whole.held.sources), len(whole.held.atoms)
        self.tried = self.blocks * self.count

    def fits(self) -> list[Fit]:
        """Return the cheapest maps that give D but for rounding: of all places, else of a predicate."""
        probes = self._probes()
        if not probes:
            return []
        live = self._everywhere(probes)
        found = self._cheapest(
            ((self._table(number), (Piece(*self._parts(number)),), cost) for number, cost in live)
        )
        return found or self._cheapest(self._partly(probes))

    def _probes(self) -> list[tuple[int, int]]:
        """Return elements of D by line: wrong elements of several lines, then right elements."""
        known = np.isfinite(self.problem.T)
        found: list[tuple[int, int]] = []
        for flags, count in zip((self.wrong & known, ~self.wrong & known), _PROBES, strict=True):
            lines = np.flatnonzero(flags.any(axis=1))
            for line in (
                lines[np.unique(np.linspace(0, len(lines) - 1, count).astype(int))] if len(lines) else ()
            ):
                found.append((int(line), int(np.flatnonzero(flags[line])[0])))
        return found

    @cached_property
    def _slack(self) -> Numbers:
        """``(S,)``: the slack of every block."""
        blocks = self.held.values[:-1].reshape(self.blocks, -1)
        return np.array([self.problem.slack(values) for values in blocks])

    def _costs(self) -> Numbers:
        return np.concatenate([each.cost + self.held.atoms.cost for each in self.held.sources])

    def _parts(self, number: int) -> tuple[Any, Any]:
        block, at = divmod(number, self.count)
        return self.held.atoms[at], self.held.sources[block]

    def _table(self, number: int) -> Index:
        block, at = divmod(number, self.count)
        table = self.held.atoms.at(self.held.places, np.array([at]))[0]
        return np.where(table < 0, NOTHING, table + block * self.size)

    def _everywhere(self, probes: Sequence[tuple[int, int]]) -> list[tuple[int, float]]:
        """Return the maps that agree with every probe, the cheapest first."""
        live = np.arange(self.blocks * self.count)
        for line, element in probes:
            weights = self.problem.weights(line)[:, element]
            apart = np.abs(self._sums(live, line, weights) - self.problem.T[line, element])
            near = self.problem.near[line, element] + self._slack[live // self.count] * np.abs(weights).sum()
            live = live[apart <= near]
        cost = self._costs()[live]
        order = np.argsort(cost, kind="stable")[:_SURVIVORS]
        return [(int(live[at]), float(cost[at])) for at in order.tolist() if cost[at] > 0]

    def _sums(self, numbers: Index, line: int, weights: Numbers) -> Numbers:
        """Return an element of D as maps, given by block and atom, make it."""
        blocks, atoms = np.divmod(numbers, self.count)
        found = np.zeros(len(numbers))
        which, inverse = np.unique(atoms, return_inverse=True)
        table = self.held.atoms.at(self.problem.where[line], which)
        for block in np.unique(blocks).tolist():
            own = np.flatnonzero(blocks == block)
            values = np.append(self.held.values[block * self.size : (block + 1) * self.size], 0.0)  # at -1
            rows = np.arange(len(which)) if len(own) == len(which) else inverse[own]
            step = max(1, _CACHED // len(weights))
            for at in range(0, len(own), step):
                found[own[at : at + step]] = values.take(table[rows[at : at + step]]) @ weights
        return found

    def _partly(self, probes: Sequence[tuple[int, int]]) -> Iterator[tuple[Index, tuple[Piece, ...], float]]:
        """Yield maps, functions and zero in the places of a predicate, all else as it should be."""
        cost, atoms = self._costs(), self.held.atoms
        numbers = np.flatnonzero(cost <= _PARTLY)
        numbers = numbers[(numbers < self.count) | (numbers % self.count == 0)]
        known = self.held.predicates
        rows, columns = np.arange(len(numbers) + 1), np.arange(len(known))  # the last row: zero
        live = np.ones((len(rows), len(columns)), np.bool_)
        for line, element in probes:
            where = self.problem.where[line]
            weights = self.problem.weights(line)[:, element]
            weighted = known.masks[np.ix_(columns, where)].T * weights[:, None]
            block, at = np.divmod(numbers[rows[rows < len(numbers)]], self.count)
            table = atoms.at(where, at)
            table = np.where(table < 0, NOTHING, table + block[:, None] * self.size)
            table = np.concatenate([table, np.full((len(rows) - len(table), len(where)), NOTHING)])
            own = self.held.values[where]
            target, near = self.problem.T[line, element], self.problem.near[line, element]
            step = max(1, _CACHED // max(1, len(columns)))
            for first in range(0, len(rows), step):
                sums = (self.held.values.take(table[first : first + step]) - own) @ weighted + own @ weights
                live[first : first + step] &= np.abs(sums - target) <= near
            some = live.any(axis=1), live.any(axis=0)
            rows, columns, live = rows[some[0]], columns[some[1]], live[np.ix_(*some)]
        self.tried += (len(numbers) + 1) * len(known)
        pairs = np.argwhere(live)
        pairs = np.stack([rows[pairs[:, 0]], columns[pairs[:, 1]]], axis=1)
        total = np.append(cost[numbers], Zero.cost)[pairs[:, 0]] + known.cost[pairs[:, 1]]
        for at in np.argsort(total, kind="stable")[:_SURVIVORS].tolist():
            first, predicate = pairs[at].tolist()
            zero = first == len(numbers)
            moved = np.full(self.size, NOTHING) if zero else self._table(int(numbers[first]))
            parts: tuple[Any, Any] = (atoms[0], Zero())
            parts = parts if zero else self._parts(int(numbers[first]))
            where = Where(known.views[predicate], known.facts[predicate], known.masks[predicate])
            piece = Piece(*parts, within=(where,))
            yield np.where(known.masks[predicate], moved, np.arange(self.size)), (piece,), float(total[at])

    def _cheapest(self, candidates: Any) -> list[Fit]:
        """Return the cheapest candidates that give all of D but for rounding, equal values once."""
        found: dict[bytes, Fit] = {}
        lowest = np.inf
        for table, pieces, cost in candidates:
            if cost > lowest:
                break
            values = self.held.values[table]
            if not self.problem.agrees(values[self.problem.where]):
                continue
            lowest = cost
            rest = np.zeros(0, np.intp)
            found.setdefault(
                values.tobytes(), Fit(table=table, cost=cost, pieces=pieces, rest=rest, others=rest)
            )
        return list(found.values())
