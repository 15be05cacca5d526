"""Operands of a whole product that were read from elsewhere: A, B, C and D of a loop along k.

A and B are solved line by line where D has enough elements, else every map is tried on few elements of D.
C is D without the products, D is the right result: both are known by value. The engine decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....base.errors import OperandError
from ....isa.codes import codes_of, matrix_of, values_of
from ....isa.fragments import registers_of
from ....isa.instruction import Instruction
from ....isa.products import Codes
from ....sums.execution.pipeline import rule_for
from ....sums.products.gemm import gemm
from ..dumps.dump_comparison import numbers
from ..dumps.wrong_elements import ranges
from ..library.mistake import SPELLED
from .fitting import Block, Fit, Piece, Values, fit
from .linear_operands import Operand, Tile, selecting_operands
from .map_words import Speaker, conditions
from .naming import advice, phrase, spoken, unit_words, valued, words
from .product_loops import Loop, scale_matrices, scaled_matrices
from .solving import Explanation, single_causes
from .step_causes import Solution
from .step_tiles import Solved, least_squares
from .value_functions import value_functions
from .views import NOTHING, Index, Numbers, matrix_views, whole_views

_LARGEST = 1 << 16  # elements of an operand
_ADVICE = {
    "A": "compare with the addresses and the order in which A is loaded",
    "B": "compare with the addresses and the order in which B is loaded",
    "C": "check the addresses from which C is loaded",
    "D": "the product is right: store it at the addresses from which it is read",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Whole(Operand):
    """An operand of a product: a matrix of whole tiles, whose lines meet D with the same weights.

    These are ``other (J, E)``, of scaled forms times ``scale (L, J)``.
    """

    shape: tuple[int, int]
    other: Numbers
    scale: Numbers | None = None

    @property
    def held(self) -> Values:
        """The values as sources of all places."""
        return Values(views=self.views, sources=self.sources, values=self.values, places=np.arange(self.size))

    def parts(self, sources: Index, line: int, element: int) -> Numbers:
        """Return ``(..., J)``: what the places of a line add to an element of D with these sources."""
        scale = 1.0 if self.scale is None else self.scale[line]
        return np.asarray(self.values[sources] * (self.other[:, element] * scale))

    def sums(self, table: Index) -> Numbers:
        """Return ``(L, E)``: what a table of all places gives."""
        scale = 1.0 if self.scale is None else self.scale
        return np.asarray((self.values[table[self.where]] * scale) @ self.other)

    def matrix(self, table: Index) -> Codes:
        """Return the codes of the matrix that a table reads."""
        flat = np.append(self.codes, self.codes.dtype.type(0))
        return np.asarray(flat[table].reshape(self.shape))

    def solution(self, found: Fit, run: Callable[[], Codes] | None) -> Solution:
        """Return a fit in words, with the function that computes D of it."""
        capital = self.name.upper()
        speaker = Speaker(self.name, self.setting.instruction.format(self.name).bits)
        pieces = [
            replace(piece, atom=spoken(piece.atom, self.atoms, operand=self.name)[0])
            for piece in found.pieces
        ]
        text = unit_words(found.units, speaker) if found.units else _text(pieces, speaker)
        first = pieces[0] if pieces else None
        moved = first is None or first.atom.kind != "unchanged"
        facts: dict[str, Any] = {"operand": capital, "map": found.kind, "table": found.table}
        if first is not None:
            facts["map"] = first.atom.kind if moved else first.source.kind
            facts |= {**first.source.facts, **first.atom.facts, "values": first.source.kind}
            facts["where"] = [each.facts for each in first.within if each.inside]
        return Solution(
            text=f"{capital}: {text}",
            advice=advice(first, first.atom, speaker) if first else _ADVICE[capital],
            kind={"C": "c", "D": "result"}.get(capital, "operand" if moved else "values"),
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


class LoopOperands:
    """Solutions of a product: codes of the right D and of D ``(m, n)``; ``near``: how far roundings reach."""

    def __init__(self, loop: Loop, codes: tuple[Codes, Codes], near: Numbers) -> None:
        self.loop, (self.expected, self.wanted) = loop, codes
        form, (m, n) = loop.form, loop.shape
        rows, columns = loop.c.shape
        self.pad = [(0, rows - m), (0, columns - n)]
        self.d, self.right = (np.pad(numbers(x, form.d), self.pad) for x in (self.wanted, self.expected))
        self.near = np.pad(near, self.pad)
        self.tried = 0

    def __iter__(self) -> Iterator[Solution]:
        if self.d.size > _LARGEST:
            return
        with np.errstate(all="ignore"):
            # the right D, or D without C, in other places
            loop, form = self.loop, self.loop.form
            more = []
            if loop.c.any():
                plain = codes_of(gemm(form, loop.given.A, loop.given.B, **loop.given.scales), form.d, "D")
                more.append((Block(1, "without C", {}), np.pad(plain, self.pad)))
            whole = self._whole("d", np.pad(self.expected, self.pad), self.d, more=more)
            for found in self._fitted(whole):
                if _is_moved(found):  # functions of its values, and masks, are seen in D
                    codes = whole.matrix(found.table)
                    yield whole.solution(found, lambda codes=codes: loop.tiles_of(codes))  # type: ignore[misc]
            yield from self._of_c()
            for name in "ab":
                yield from self._of_factor(name)
            yield from self._of_both()

    def _whole(
        self,
        name: str,
        codes: Codes,
        target: Numbers,
        near: Any = 0.0,
        more: Sequence[tuple[Block, Codes]] = (),
    ) -> Whole:
        """Return an operand that D says by value, of codes of whole tiles; ``more`` are other sources."""
        loop, form = self.loop, self.loop.form
        shape, flat, count = (codes.shape[0], codes.shape[1]), codes.reshape(-1), codes.size
        every = [(Block(0, "own", {}), flat), *more]
        every += [(each, each.change(flat)) for each in value_functions(form.format(name))]
        stacked = np.concatenate([np.asarray(each, codes.dtype).reshape(-1) for _, each in every])
        views = whole_views(form, "d" if name == "c" else name, shape)
        if form.sparse and name == "a":  # registers hold a half of it
            views = tuple(matrix_views(shape, form.storage(name).bits))
        return Whole(
            name=name,
            setting=loop.setting,
            views=views,
            sources=tuple(block for block, _ in every),
            codes=stacked,
            values=np.append(numbers(stacked, form.format(name)), 0.0),
            where=np.arange(count)[:, None],
            T=target.reshape(-1, 1),
            near=np.broadcast_to(np.asarray(near).reshape(-1, 1), (count, 1)),
            wraps=not form.d.is_float,
            shape=shape,
            other=np.ones((1, 1)),
        )

    # --- known by value ---

    def _of_c(self) -> Iterator[Solution]:
        loop = self.loop
        if not loop.c.any():
            return
        rest = self.d - self.right + numbers(loop.c, loop.form.c)
        whole = self._whole("c", loop.c, rest, self.near)
        for found in self._fitted(whole):
            c = loop.accumulators_of(whole.matrix(found.table))
            yield whole.solution(found, lambda c=c: loop.chain(loop.plain(), c))  # type: ignore[misc]

    def _fitted(self, whole: Whole, solved: Solved | None = None) -> list[Fit]:
        """Return what the values of an operand are, as D says them or as they were solved."""
        values, bound = solved or (whole.T.reshape(-1), whole.near.reshape(-1))
        answer = fit(whole.held, values, bound, located=False)
        self.tried += answer.tried
        return [found for found in answer.fits if found.certain and not len(found.rest) and found.cost > 0]

    # --- A and B ---

    def _of_factor(self, name: str) -> Iterator[Solution]:
        """Yield A or B from other places: of solved values, else of maps that D does not contradict."""
        loop = self.loop
        if (loop.a if name == "a" else loop.b).size > _LARGEST:
            return
        whole = self._factor(name)
        solved = None if whole.scale is not None else least_squares(whole.other, whole.T, whole.near)
        if solved is not None:
            values, bound = np.zeros((2, whole.size))
            values[whole.where], bound[whole.where] = solved
            solved = Solved(values, bound)
        for found in self._screened(whole) if solved is None else self._fitted(whole, solved):
            made = whole.solution(found, lambda found=found: self._with(whole, found.table))  # type: ignore[misc]
            yield replace(made, also=tuple(self._of_scales(whole, found.table)))

    def _factor(self, name: str) -> Whole:
        """Return A or B with the problem that D poses for it."""
        loop, d = self.loop, self.d - numbers(self.loop.c, self.loop.form.c)
        d = np.where(np.isfinite(d), d, np.nan)
        (scaled_a, scaled_b), (of_a, of_b) = scaled_matrices(loop), scale_matrices(loop)
        codes, other, scale, near = loop.a, scaled_b, of_a, self.near
        where = np.arange(codes.size).reshape(codes.shape)
        if name == "b":
            codes, other, scale, near, d = loop.b, scaled_a.T, of_b.T, near.T, d.T
            where = np.arange(codes.size).reshape(codes.shape).T
        whole = self._whole(name, codes, np.zeros(codes.size))
        scaled = loop.form.scale is not None
        return replace(whole, where=where, T=d, near=near, other=other, scale=scale if scaled else None)

    def _screened(self, whole: Whole) -> list[Fit]:
        """Return the cheapest maps that give D but for rounding: of all places, or of a predicate."""
        wrong = np.asarray(self.d != self.right, np.bool_)
        if (np.abs(self.d - self.right) <= self.near).all():  # roundings, which every map agrees with
            return []
        found, tried = single_causes(whole, wrong if whole.name == "a" else wrong.T, partly=True)
        self.tried += tried
        lowest, rest = min((each.cost for each in found if each.cost > 0), default=0.0), np.zeros(0, np.intp)
        return [
            Fit(
                table=each.table,
                cost=each.cost,
                pieces=(Piece(each.atom, each.source, each.within),),
                rest=rest,
                others=rest,
            )
            for each in found
            if each.cost == lowest > 0
        ]

    def _of_scales(self, whole: Whole, table: Index) -> Iterator[str]:
        """Yield scales that are zero, where whole lines of an operand that are zero give the same."""
        form, zero = self.loop.form, table == NOTHING
        if form.scale is None or values_of(np.zeros(1, np.uint8), form.scale).any():  # ue8m0 has no zero
            return
        lines = zero[whole.where]
        left_out = lines.all(axis=1)
        if (left_out == lines.any(axis=1)).all() and (zero | (table == np.arange(len(table)))).all():
            name = "rows" if whole.name == "a" else "columns"
            yield f"scales of {whole.name.upper()} of {name} {ranges(np.flatnonzero(left_out).tolist())} zero"

    def _of_both(self) -> Iterator[Solution]:
        """Yield A and B that are changed by the same function of their values, or taken for each other."""
        loop, form, given = self.loop, self.loop.form, self.loop.given
        if form.scale is not None or form.sparse:
            return
        a, b = (codes_of(M, x, "A or B") for M, x in ((given.A, form.a), (given.B, form.b)))
        both: list[tuple[Block, Codes, Codes]] = []
        if a.shape == b.shape and form.a == form.b and a.shape[0] == a.shape[1]:
            both.append((Block(2, "exchanged", {}), b, a))
        for each, other in zip(value_functions(form.a), value_functions(form.b), strict=False):
            if (each.kind, each.facts) == (other.kind, other.facts):
                both.append((each, each.change(a), other.change(b)))
        (m, n), c = loop.shape, numbers(loop.c, form.c)
        for block, new_a, new_b in both:
            self.tried += 1
            made = numbers(new_a, form.a) @ numbers(new_b, form.b) + c[:m, :n]
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
        loop, given = self.loop, self.loop.given
        d = gemm(loop.form, read["A"], read["B"], given.C, **given.scales)
        return loop.tiles_of(codes_of(d, loop.form.d, "D"))

    def _with(self, whole: Whole, table: Index) -> Codes:
        loop, (m, n) = self.loop, self.loop.shape
        k = np.asarray(loop.given.A).shape[1]
        codes = whole.matrix(table)
        codes = codes[:m, :k] if whole.name == "a" else codes[:k, :n]
        read: dict[str, Any] = {"A": loop.given.A, "B": loop.given.B}
        read[whole.name.upper()] = matrix_of(np.ascontiguousarray(codes), loop.form.format(whole.name))
        try:
            return self._product(read)
        except OperandError:  # a sparse A that breaks the pattern
            return np.zeros_like(loop.tiles_of(self.wanted))


def unit_of(form: Instruction) -> float:
    """Return the unit in the last place of a sum, as a share of its largest term."""
    if not form.d.is_float:
        return 0.0
    bits = getattr(rule_for(form).bare, "fraction_bits", form.d.fraction_bits)
    return float(2.0 ** -min(form.d.fraction_bits, bits))


_MIXED = np.uint64(0x9E3779B97F4A7C15)  # an odd number, by which codes of steps are mixed


@dataclass(frozen=True, eq=False, kw_only=True)
class InSteps(Operand):
    """One operand of all steps, which the same table moves."""

    steps: tuple[Operand, ...]

    def parts(self, sources: Index, line: int, element: int) -> Numbers:
        """Return ``(..., J)``: what the places of a line add to an element of D in all steps."""
        return np.asarray(sum(step.parts(sources, line, element) for step in self.steps))

    def sums(self, table: Index) -> Numbers:
        """Return ``(L, E)``: what all steps add to D."""
        return np.asarray(sum(step.sums(table) for step in self.steps))


def moved_in_every_step(
    loop: Loop, codes: tuple[Codes, Codes], near: Numbers, tile: int
) -> tuple[list[Solution], int]:
    """Return maps of metadata and scales that explain D of a tile, the simplest first, and how many
    were tried.

    ``codes (tiles, m, n)`` are D as expected and as it came out; ``near (m, n)`` is how far roundings reach.
    """
    form, tried = loop.form, 0
    if form.pattern is None and form.scale is None:
        return [], 0
    c = numbers(loop.tiles_of(loop.c)[tile], form.c)
    rest: Any = numbers(codes[1][tile], form.d) - c
    wrong: Any = codes[0][tile] != codes[1][tile]
    found = list[Explanation]()
    with np.errstate(all="ignore"):
        for steps in zip(*(_operands(loop, step, tile) for step in range(loop.steps)), strict=True):
            target, flags, bound = rest, wrong, near
            if steps[0].name == "scale_b":
                target, flags, bound = rest.T, wrong.T, near.T
            more, count = single_causes(_joined(steps, target, bound), flags, partly=True)
            found, tried = found + more, tried + count
    found.sort(key=lambda each: each.cost)
    return [_solution(loop, each) for each in found], tried


def _operands(loop: Loop, step: int, tile: int) -> Iterator[Operand]:
    registers = {name: held[step, tile][None] for name, held in loop.registers.items()}
    registers["c"] = np.zeros_like(loop.accumulators[:1])
    d = registers_of(np.zeros((1, *loop.form.matrix_shape("d")), loop.form.d.code_dtype), loop.form, "d")
    yield from selecting_operands(Tile(loop.setting, registers, (d, d), 0))


def _joined(steps: tuple[Operand, ...], target: Numbers, near: Numbers) -> InSteps:
    first = steps[0]
    codes = np.zeros(len(first.codes), np.uint64)
    for step in steps:
        codes = codes * _MIXED + step.codes.astype(np.uint64)
    return InSteps(
        name=first.name,
        setting=first.setting,
        views=first.views,
        sources=first.sources,
        codes=codes,
        values=np.asarray(sum(np.abs(step.values) for step in steps)),
        where=first.where,
        T=target,
        near=near,
        wraps=first.wraps,
        steps=steps,
    )


def _solution(loop: Loop, found: Explanation) -> Solution:
    """Return an explanation in words, with the function that computes D of all tiles."""
    name, named = found.operand.name, words(found)

    def run() -> Codes:
        changed: dict[str, Any] = {name: found.operand.changed(found.table, loop.registers)}
        steps = [
            (registers | {name: changed[name][at]}, how) for at, (registers, how) in enumerate(loop.plain())
        ]
        return loop.chain(steps, loop.accumulators)

    return Solution(
        text=named.headline,
        advice=named.advice,
        kind="operand",
        facts={"operand": SPELLED[name], "map": found.kind, **found.facts},
        also=named.also,
        computed=(run,),
    )
