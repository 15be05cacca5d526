"""What the steps of a loop multiplied, solved from D, and D computed from that again.

Weights of steps and of C, steps and tiles whose operands are those of others, for all operands of a row or
column of tiles together, and for metadata, scales and values alone. Every solution is computed again by the
engine, whose bits decide. Does not know rearrangements within a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.products import Codes
from ..dumps.dump_comparison import numbers
from ..library.mistake import SPELLED
from .product_loops import Loop, Matrix, Step, View, scaled_matrices
from .step_tiles import Mixture, Tiles, mixture, ordered, simple, weights
from .step_words import k_text, line_text, order_text, orders, weights_text
from .views import NOTHING

Index = npt.NDArray[np.intp]
Run = Callable[[], Codes]
_ROWS = ("a", "e", "scale_a")  # operands along the rows of D
_LARGEST = 64  # steps, up to which operands are solved apart
_TILES = 16  # rows or columns of tiles, up to which an operand of other tiles is looked for
_BIASED = 64.0  # errors of an offset that is larger than what it is added to
_NEAR = 2.0**-5  # of D's size: with larger roundings nothing is solved
_STEPS_ADVICE = "check the bounds of the loop along k, and what each step adds"
_SOURCE_ADVICE = "check the stage of the pipeline: what is read is not what was loaded for this step"
_ADVANCE_ADVICE = (
    "advance the address along k in every step: a descriptor's start address, or the byte id of scales"
)
_TILE_ADVICE = "check the index of the tile in the addresses"


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What was solved: its ``kind`` with ``facts``, in words, and functions that compute D from it.

    ``also`` are other causes of the same D. ``within_rounding``: it holds in every element, whatever the bits
    are.
    """

    text: str
    advice: str
    kind: str = "lines"
    facts: Mapping[str, Any] = field(default_factory=dict)
    computed: tuple[Run, ...] = ()
    also: tuple[str, ...] = ()
    within_rounding: bool = False


class StepCauses:
    """Solutions of one product: ``wanted (m, n)`` are codes of D, ``near (m, n)`` is how far roundings reach.

    Elements where ``known (m, n)`` is not set may be anything.
    """

    def __init__(self, loop: Loop, wanted: Codes, near: Matrix, known: Any, view: View) -> None:
        self.loop, self.view = loop, view
        form = loop.form
        d = numbers(wanted, form.d)
        with np.errstate(all="ignore"):
            size = float(np.abs(d[np.isfinite(d)]).max(initial=0))
        self.d = np.where(known, d, np.nan)
        self.near = near
        bound = float(near[np.isfinite(near)].max(initial=0))
        self.solvable = size > 0 and bound <= _NEAR * size and loop.steps > 0

    def __iter__(self) -> Iterator[Solution]:
        if not self.solvable:
            return
        parts = (
            self._of_steps,
            self._of_operands,
            self._of_tiles,
            self._of_offsets,
            self._of_lines,
            self._of_every_k,
        )
        for part in parts:
            found = list(part())
            yield from found
            if found:
                return

    # --- all operands of a row or column of tiles ---

    @cached_property
    def tiles(self) -> Tiles:
        """The product in numbers."""
        loop, shape = self.loop, self.loop.form.shape
        a, b = scaled_matrices(loop)
        a = a.reshape(loop.rows, shape.m, loop.steps, shape.k).swapaxes(1, 2)
        b = b.reshape(loop.steps, shape.k, loop.columns, shape.n).swapaxes(1, 2)
        c = numbers(loop.c, loop.form.c)

        c, d, near = (
            np.pad(x, [(0, len(c) - len(x)), (0, c.shape[1] - x.shape[1])]).reshape(loop.rows, shape.m, -1)
            for x in (c, self.d, self.near)
        )
        return Tiles(a=a, b=b, c=c, d=d, near=near)

    def _of_steps(self) -> Iterator[Solution]:
        """Yield weights of steps, or the operands that each step multiplied, if they are not its own."""
        tiles = self.tiles
        found, turned = mixture(tiles), None
        if found is None or (found.own is None and found.sources is None):
            turned = mixture(tiles.turned)
        for mixed, tile_rows in ((found, True), (turned, False)):
            if mixed is not None:
                yield from self._of_mixture(mixed, tile_rows)
                return
        yield from self._of_single_tiles()

    def _of_mixture(self, found: Mixture, rows: bool) -> Iterator[Solution]:
        """Yield what a mixture says; ``rows``: of rows of tiles, else of columns."""
        own = found.own
        if own is not None:
            whole = np.broadcast_to(own[:, None], (len(own), self.loop.columns, self.loop.steps))
            of_c = np.broadcast_to(found.c[:, None], whole.shape[:2])
            if not rows:
                whole = np.broadcast_to(own[None], (self.loop.rows, len(own), self.loop.steps))
                of_c = np.broadcast_to(found.c[None], whole.shape[:2])
            if (whole != 1).any() or (of_c != 1).any():
                yield self._weighed(whole, of_c)
                if (whole == whole[0, 0]).all() and (of_c == 1).all():
                    yield from self._in_order(whole[0, 0])
            return
        if found.sources is not None:
            yield self._moved(found.sources, found.c, rows)
        if found.partners is not None and (found.partners == found.partners[0]).all():
            order = np.stack([np.zeros_like(found.partners[0]), found.partners[0]], axis=1)
            count = self.loop.columns if rows else self.loop.rows
            each = np.repeat(order[None], count, axis=0)
            each[:, :, 0] = np.where(each[:, :, 1] < 0, NOTHING, np.arange(count)[:, None])
            yield self._moved(each, np.full(count, found.c[0]), not rows)

    def _in_order(self, of_steps: Matrix) -> Iterator[Solution]:
        """Yield orders of steps, for all operands together, in which steps are as often as their weights."""
        tables, _ = orders(len(of_steps))
        names = tuple(self.loop.registers)
        for order in tables if of_steps.min() >= 0 and of_steps.sum() == len(of_steps) else ():
            counts = np.bincount(order[order >= 0], minlength=len(order))
            if order.min() >= 0 and (counts == of_steps).all():
                yield self._steps_of(names, order)

    def _of_single_tiles(self) -> Iterator[Solution]:
        tiles, n = self.tiles, self.loop.form.shape.n
        whole, of_c = [], []
        for column in range(self.loop.columns if self.loop.columns > 1 else 0):
            cut = slice(column * n, column * n + n)
            part = Tiles(
                a=tiles.a,
                b=tiles.b[:, column : column + 1],
                c=tiles.c[..., cut],
                d=tiles.d[..., cut],
                near=tiles.near[..., cut],
            )
            found = mixture(part, kinds=1)
            if found is None or found.own is None:
                break
            whole.append(found.own)
            of_c.append(found.c)
        else:
            if whole:
                yield self._weighed(np.stack(whole, axis=1), np.stack(of_c, axis=1))

    def _of_lines(self) -> Iterator[Solution]:
        """Yield weights of steps in each row of D, else in each column."""
        for tiles, name in ((self.tiles, "row"), (self.tiles.turned, "column")):
            found = mixture(tiles.of_lines, kinds=1)
            if found is None or found.own is None or (found.own == 0).all(axis=1).any():
                continue
            if (found.own != 1).any() and not ((found.own == found.own[:, :1]).all()):
                text = line_text(found.own, name)
                facts = {"weights": found.own, "by": name}
                advice = "check what accumulators are multiplied with between steps"
                yield Solution(text=text, advice=advice, kind="steps", facts=facts)
                return

    def _of_offsets(self) -> Iterator[Solution]:
        """Yield A, or B, with the same number added to every element: D has more by a sum along k."""
        loop, form = self.loop, self.loop.form
        if form.sparse or form.scale is not None:
            return
        (m, n), c = loop.shape, numbers(loop.c, form.c)
        k = np.asarray(loop.given.A).shape[1]
        a, b = numbers(loop.a, form.a)[:m, :k], numbers(loop.b, form.b)[:k, :n]
        rest = (self.d - a @ b - c[:m, :n]).reshape(-1)
        for name, sums in (
            ("A", np.ones((m, 1)) * b.sum(axis=0)),
            ("B", a.sum(axis=1)[:, None] * np.ones(n)),
        ):
            found = weights(sums.reshape(1, -1), rest, self.near.reshape(-1))
            if found is None or not found.theta[0]:
                continue
            by = simple(float(found.theta[0]), _BIASED * float(found.off[0]))
            values, element = (a, form.a) if name == "A" else (b, form.b)
            read = {name: (values + by).astype(element.dtype)}

            def run(read: dict[str, Any] = read) -> Codes:
                other = loop.with_matrices(**read)
                return other.chain(other.plain(), other.accumulators)

            yield Solution(
                text=f"every element of {name} is {by:g} more (an offset, or a zero point)",
                advice=f"subtract what the conversion of {name} adds: 0x6400 | x is 1024 + x",
                kind="values",
                facts={"operand": name, "values": "offset", "by": by},
                computed=(run,),
                within_rounding=True,
            )

    def _of_every_k(self) -> Iterator[Solution]:
        """Yield weights of every k, where these are not those of steps."""
        found = mixture(self.tiles.of_every_k, kinds=1)
        k = np.asarray(self.loop.given.A).shape[1]
        if found is None or found.own is None or (found.own[0, :k] == 1).all():
            return
        own = found.own[0, :k]
        kind = np.append(own, found.c[0])
        yield Solution(
            text="; ".join(filter(None, [k_text(own), weights_text([1], float(found.c[0]))])),
            advice=_STEPS_ADVICE,
            kind="k",
            facts={"weights": own},
            computed=(lambda: self._of_scaled(kind),),
            within_rounding=True,
        )

    # --- weights ---

    def _weighed(self, whole: Matrix, of_c: Matrix) -> Solution:
        """Return the solution of weights ``(rows, columns, steps)`` of the steps of every tile."""
        flat = np.concatenate([whole, of_c[..., None]], axis=2).reshape(-1, whole.shape[2] + 1)
        kinds, which = np.unique(flat, axis=0, return_inverse=True)
        wrong = [at for at, kind in enumerate(kinds) if (kind != 1).any()]
        texts = []
        for at in wrong:
            tiles = np.flatnonzero(which.reshape(-1) == at)
            text = weights_text(kinds[at, :-1].tolist(), float(kinds[at, -1]))
            only = f", in tiles {self.loop.named(tiles.tolist())} only" if len(kinds) > 1 else ""
            texts.append(text + only)
        first = kinds[wrong[0]]
        facts: dict[str, Any] = {"weights": tuple(first[:-1].tolist()), "c": float(first[-1])}
        if len(kinds) > 1:
            facts["tiles"] = tuple(np.flatnonzero(which.reshape(-1) == wrong[0]).tolist())
        return Solution(
            text="; ".join(texts),
            advice=_weights_advice(first[:-1]),
            kind="steps" if (first[:-1] != 1).any() else "c",
            facts=facts,
            computed=tuple(self._weighed_runs(kinds, which.reshape(-1))),
            also=self._also(first[:-1], float(first[-1])) if len(kinds) == 1 else (),
            within_rounding=True,
        )

    def _also(self, of_steps: Matrix, of_c: float) -> tuple[str, ...]:
        found, last = [], len(of_steps) - 1
        if self.loop.tail and of_c == 1 and of_steps[last] == 0 and (of_steps[:last] == 1).all():
            found.append(f"the tail left out: k from {last * self.loop.form.shape.k} on, step {last}")
        first = int(of_steps.argmax())
        if of_c == 1 and first and (of_steps[first:] == 1).all():
            found.append(f"accumulators start from C again at step {first}")
        return tuple(found)

    def _weighed_runs(self, kinds: Matrix, which: Index) -> Iterator[Run]:
        """Yield functions that compute D of weights; several where C may enter in several ways."""
        if (kinds[:, :-1] < 0).any() or (kinds[:, :-1] % 1).any() or len(kinds) > 4:
            if len(kinds) == 1:
                yield lambda: self._of_scaled(kinds[0])
            return
        for c_first in (True, False):

            def run(c_first: bool = c_first) -> Codes:
                each = np.stack([self._chained(kind, c_first) for kind in kinds])
                return np.asarray(each[which, np.arange(len(which))])

            yield run

    def _chained(self, kind: Matrix, c_first: bool) -> Codes:
        """Return D of all tiles: every step as often as its weight, C times its weight first or last."""
        loop, plain = self.loop, self.loop.plain()
        steps = [plain[at] for at, count in enumerate(kind[:-1].tolist()) for _ in range(int(count))]
        c, of_c = loop.accumulators, float(kind[-1])
        if c_first:
            return loop.chain(steps, loop.times_c(of_c))
        if of_c == 2:
            return loop.plus(loop.chain(steps, c), loop.c_values)
        return loop.plus(loop.chain(steps, np.zeros_like(c)), loop.c_values * of_c)

    def _of_scaled(self, kind: Matrix) -> Codes:
        """Return D with A of each step, and C, times their weights, as their types hold them."""
        loop, form = self.loop, self.loop.form
        k = np.asarray(loop.given.A).shape[1]
        with np.errstate(all="ignore"):
            of_k = kind[:-1] if len(kind) > k else np.repeat(kind[:-1], form.shape.k)[:k]
            a = numbers(loop.a, form.a)[: loop.shape[0], :k] * of_k
            other = loop.with_matrices(A=a.astype(form.a.dtype))
            return other.chain(other.plain(), loop.times_c(float(kind[-1])))

    # --- operands of other steps and tiles ---

    def _moved(self, sources: Index, of_c: Matrix, rows: bool) -> Solution:
        """Return the solution of ``sources (tiles, steps, 2)``: tile and step whose operands are read."""
        names = tuple(name for name in self.loop.registers if (name in _ROWS) == rows)
        what = "A" if rows else "B"
        tiles, steps = self._separate(sources)
        texts: list[str] = []
        facts: dict[str, Any] = {"operand": what}
        if steps is not None and (steps != np.arange(len(steps))).any():
            texts.append(order_text(steps.tolist(), what))
            facts["order"] = tuple(steps.tolist())
        if tiles is not None and (tiles != np.arange(len(tiles))).any():
            texts.append(order_text(tiles.tolist(), what, "tile"))
            facts["tiles"] = tuple(tiles.tolist())
        if steps is None or tiles is None:
            texts = [f"{what} is read from other steps and tiles, and not by one order of steps"]
            facts["sources"] = sources
        texts += [text for text in [weights_text([1], float(of_c[0]))] if text]
        alone = "order" in facts or "sources" in facts
        return Solution(
            text="; ".join(texts),
            advice=_source_advice(facts.get("order", ())) if alone else f"{_TILE_ADVICE} of {what}",
            kind="sources",
            facts=facts,
            computed=(lambda: self._with_sources(names, sources, rows, float(of_c[0])),),
            within_rounding=True,
        )

    @staticmethod
    def _separate(sources: Index) -> tuple[Index | None, Index | None]:
        """Return the order of tiles and that of steps, if every tile and step follows them."""
        read = (sources[:, :, 1] >= 0).any(axis=0)
        steps, tiles = sources[0, :, 1], sources[:, int(read.argmax()), 0]
        same = (sources[:, :, 1] == steps).all()
        alike = ((sources[:, :, 0] == tiles[:, None]) | (sources[:, :, 1] < 0)).all()
        return tiles if alike else None, steps if same else None

    def _with_sources(self, names: Sequence[str], sources: Index, rows: bool, of_c: float) -> Codes:
        loop, held = self.loop, self.loop.registers
        place = np.arange(loop.rows * loop.columns).reshape(loop.rows, loop.columns)
        steps: list[Step] = []
        for at, (registers, how) in enumerate(loop.plain()):
            tile, step = sources[:, at].T
            from_tiles = place[tile] if rows else place[:, tile]
            from_steps = np.broadcast_to(step[:, None] if rows else step, from_tiles.shape).reshape(-1)
            read = {name: held[name][from_steps, from_tiles.reshape(-1)] for name in names}
            nothing = from_steps < 0
            for words in read.values():
                words[nothing] = 0
            steps.append((registers | read, how))
        return loop.chain(steps, loop.times_c(of_c))

    # --- single operands ---

    def _of_operands(self) -> Iterator[Solution]:
        """Yield operands of other steps, the fewest at once: several may give the same sums."""
        if not 1 < self.loop.steps <= _LARGEST:
            return
        fewest = len(self.loop.registers)
        for names in self._together():
            if len(names) > fewest:
                return
            for order in self._solved_orders(names):
                fewest = len(names)
                yield self._steps_of(names, order)

    def _together(self) -> Iterator[tuple[str, ...]]:
        """Yield operands that may be wrong together: each, the scales, and everything of A, and of B."""
        held = list(self.loop.registers)
        yield from ((name,) for name in held)
        yield from (pair for pair in combinations(held, 2) if pair[0][:-1] == pair[1][:-1])
        for rows in (True, False):
            both = tuple(name for name in held if (name in _ROWS) == rows)
            if len(both) > 1:
                yield both
        if len(held) > 2:
            yield tuple(held)

    def _solved_orders(self, names: tuple[str, ...]) -> list[Index]:
        """Return the orders of steps in which operands of the view's tile were read."""
        loop, view = self.loop, self.view
        count, place = loop.steps, np.arange(loop.steps)
        each = []
        for by in range(count):
            changed = {name: loop.registers[name][(place + by) % count, view.tile] for name in names}
            each.append(loop.contributions(view, **changed).reshape(count, -1))
        parts = np.empty((count, count, each[0].shape[1]))
        for by, added in enumerate(each):
            parts[place, (place + by) % count] = added
        of_tile = [loop.tiles_of(x)[view.tile] for x in (self.d, numbers(loop.c, loop.form.c), self.near)]
        d, c, near = (view.part.of_result(x).reshape(-1) for x in of_tile)
        if (solved := weights(parts.reshape(count * count, -1), d - c, near)) is not None:
            theta = solved.theta.reshape(count, count)
            if np.isin(theta, (0, 1)).all() and (theta.sum(axis=1) == 1).all():
                return [theta.argmax(axis=1)]
            return []
        tables, _ = orders(count)
        return [tables[at] for at in ordered(parts, d - c, near, tables).tolist() if tables[at].min() >= 0]

    def _of_tiles(self) -> Iterator[Solution]:
        """Yield single operands of other rows, or columns, of tiles, without those beside them."""
        loop = self.loop
        for name in loop.registers:
            rows = name in _ROWS
            count = loop.rows if rows else loop.columns
            order = self._solved_tiles(name, rows, count) if 1 < count <= _TILES else None
            if order is None or (order == np.arange(count)).all():
                continue
            what = SPELLED.get(name, name.upper())
            sources = np.stack(np.broadcast_arrays(order[:, None], np.arange(loop.steps)), axis=2)

            def run(name: str = name, sources: Index = sources, rows: bool = rows) -> Codes:
                return self._with_sources((name,), sources, rows, 1.0)

            yield Solution(
                text=order_text(order.tolist(), what, "tile"),
                advice=f"{_TILE_ADVICE} of {what}",
                kind="sources",
                facts={"operand": what, "tiles": tuple(order.tolist())},
                computed=(run,),
            )

    def _solved_tiles(self, name: str, rows: bool, count: int) -> Index | None:
        """Return the row, or column, of tiles that each reads an operand of; None where none fits D."""
        loop, order = self.loop, []
        row, column = divmod(self.view.tile, loop.columns)
        tiles = np.arange(count) * loop.columns + column if rows else row * loop.columns + np.arange(count)
        whole = [loop.tiles_of(x) for x in (self.d, numbers(loop.c, loop.form.c), self.near)]
        for at, tile in enumerate(tiles.tolist()):
            view = View(tile=tile, part=self.view.part)
            d, c, near = (view.part.of_result(x[tile]) for x in whole)
            fits = []
            for source in tiles.tolist():
                read = loop.contributions(view, None, **{name: loop.registers[name][:, source]})
                fits.append(bool(((np.abs(d - c - read.sum(axis=0)) <= near) | ~np.isfinite(d)).all()))
            if not any(fits):
                return None
            order.append(at if fits[at] else fits.index(True))
        return np.array(order)

    def _steps_of(self, names: tuple[str, ...], order: Index) -> Solution:
        spelled = [SPELLED.get(name, name.upper()) for name in names]
        if names == tuple(self.loop.registers):
            spelled = ["A", "B"]
        what = f"{', '.join(spelled[:-1])} and {spelled[-1]}" if len(spelled) > 1 else spelled[0]
        held = self.loop.registers

        def run() -> Codes:
            steps = [
                (registers | {name: held[name][order[at]] for name in names}, how)
                for at, (registers, how) in enumerate(self.loop.plain())
            ]
            return self.loop.chain(steps, self.loop.accumulators)

        return Solution(
            text=order_text(order.tolist(), what),
            advice=_source_advice(order.tolist()),
            kind="sources",
            facts={"operand": what, "order": tuple(order.tolist())},
            computed=(run,),
        )


def _weights_advice(weights: Matrix) -> str:
    """Return what to look at where steps, or C, are not taken once."""
    if (weights == 1).all():
        return "C enters once, with a factor of 1"
    if (weights == weights[0]).all() and weights[0]:
        return "check alpha, and for wgmma imm-scale-a and imm-scale-b"
    return _STEPS_ADVICE


def _source_advice(order: Sequence[int]) -> str:
    """Return what to look at where steps read the operands of others: the address, if it stands still."""
    return _ADVANCE_ADVICE if any(a == b for a, b in pairwise(order)) else _SOURCE_ADVICE


def plain_sum(loop: Loop) -> Matrix:
    """Return ``(m, n)``: D in float64, without the instruction's roundings."""
    (m, n), c = loop.shape, numbers(loop.c, loop.form.c)
    with np.errstate(all="ignore"):
        a, b = scaled_matrices(loop)
        total: Matrix = a[:m] @ b[:, :n] + c[:m, :n]
    return total
