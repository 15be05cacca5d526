"""Operands of a loop along k taken from elsewhere: another step, stage, byte of a word of scales, or tile.

Knows in which orders steps and tiles are confused. Does not know what is in the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, starmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..library.mistake import SPELLED
from .loop_candidates import Candidate, exactly
from .product_loops import Loop, Matrix, Step, View

Order = npt.NDArray[np.intp]
_STAGES = (2, 4, 8)  # steps of a stage of a pipeline, or of a word of scales
_ADVICE = "check the stage of the pipeline: what is read is not what was loaded for this step"
_ADVANCE = "advance the address along k in every step: a descriptor's start address, or the byte id of scales"
_SCALES = ("scale_a", "scale_b")
_ROWS = ("a", "e", "scale_a")  # operands that run along the rows of D


class Confusion(NamedTuple):
    """The step, or the tile, from which each step or tile reads; ``text`` has a place for the operands."""

    text: str
    order: Order
    advice: str = _ADVICE


class Sources:
    """Candidates of a loop, judged on one view."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view, self.each = loop, view, loop.contributions(view)
        self.held = list(loop.registers)

    def __iter__(self) -> Iterator[Candidate]:
        for names in self._together():
            for confusion in _orders(self.loop.steps, scales=names[0] in _SCALES):
                yield self._taken(confusion, names)
        for name in self.held:
            yield from self._of_tiles(name)

    def in_every_step(self) -> Iterator[tuple[str, Matrix, Callable[[], list[Step]]]]:
        """Yield the same mistakes of all steps, what the steps add with them, and those steps."""
        held = self.loop.registers
        for names in self._together():
            for confusion in _everywhere(self.loop.steps, scales=names[0] in _SCALES):
                if (confusion.order == np.arange(self.loop.steps)).all():
                    continue
                changed = {name: held[name][confusion.order, self.view.tile] for name in names}
                added = self.loop.contributions(self.view, **changed)
                text = confusion.text.format(_listed(names))
                yield text, added, lambda o=confusion.order, n=names: self._steps(o, n)  # type: ignore[misc]

    def _steps(self, order: Order, operands: Sequence[str]) -> list[Step]:
        """Return the steps, with operands of other steps."""
        held = self.loop.registers
        return [
            (registers | {operand: held[operand][order[at]] for operand in operands}, how)
            for at, (registers, how) in enumerate(self.loop.plain())
        ]

    def _together(self) -> Iterator[tuple[str, ...]]:
        """Yield operands that may be wrong together: each, the scales, everything of A, and all."""
        yield from ((name,) for name in self.held)
        yield from ((first, other) for first, other in combinations(self.held, 2) if first[:-1] == other[:-1])
        if len(self.held) > 2:
            yield tuple(name for name in self.held if name in _ROWS)
            yield tuple(self.held)

    def _taken(self, confusion: Confusion, operands: Sequence[str]) -> Candidate:
        """Take the operands of every step from another step."""
        loop, held, order = self.loop, self.loop.registers, confusion.order
        moved = np.flatnonzero(order != np.arange(len(order)))
        changed = {operand: held[operand][order[moved], self.view.tile] for operand in operands}
        change = loop.added(self.view, moved.tolist(), **changed) - self.each[moved].sum(axis=0)

        def run() -> Any:
            return exactly(loop, self._steps(order, operands))()

        name = confusion.text.format(_listed(operands))
        return Candidate(name=name, advice=confusion.advice, change=change, exact=run)

    def _of_tiles(self, name: str) -> Iterator[Candidate]:
        """Yield an operand of every tile from another tile of the same column or row of tiles."""
        loop, words = self.loop, self.loop.registers[name]
        down, spelled = name in _ROWS, SPELLED.get(name, name.upper())
        count = loop.rows if down else loop.columns
        place = np.arange(loop.rows * loop.columns).reshape(loop.rows, loop.columns)
        for text, order in _tile_orders(count):
            source = (place[order] if down else place[:, order]).reshape(-1)
            changed: Any = {name: words[:, source[self.view.tile]]}
            change = (loop.contributions(self.view, **changed) - self.each).sum(axis=0)
            yield Candidate(
                name=f"every tile reads {spelled} of {text} tile",
                advice=f"check the index of the tile in the addresses of {spelled}",
                change=change,
                exact=lambda source=source: exactly(  # type: ignore[misc]
                    loop,
                    [(registers | {name: registers[name][source]}, how) for registers, how in loop.plain()],
                )(),
            )


def _listed(names: Sequence[str]) -> str:
    *others, last = (SPELLED.get(name, name.upper()) for name in names)
    return f"{', '.join(others)} and {last}" if others else last


def _tile_orders(count: int) -> Iterator[tuple[str, Order]]:
    """Yield which tile along one side, and the tiles that are read instead."""
    place = np.arange(count)
    if count < 2:
        return
    if count % 2 == 0:
        yield "the other (of every two)", place ^ 1
    if count > 2:
        yield "the next", np.minimum(place + 1, count - 1)
        yield "the previous", np.maximum(place - 1, 0)
        yield "the next (around the end)", (place + 1) % count
        yield "the previous (around the end)", (place - 1) % count
    yield "the first", place * 0


# --- orders of steps -----------------------------------------------------------------------------------


def _orders(count: int, scales: bool) -> Iterator[Confusion]:
    """Yield each order of steps once."""
    seen = {np.arange(count).tobytes()}
    for confusion in (*_everywhere(count, scales), *_somewhere(count)):
        if confusion.order.tobytes() not in seen:
            seen.add(confusion.order.tobytes())
            yield confusion


def _everywhere(count: int, scales: bool) -> Iterator[Confusion]:
    step = np.arange(count)
    for by, which in ((1, "next"), (-1, "previous")):
        yield Confusion(f"every step reads {{}} of the {which} step", np.clip(step + by, 0, count - 1))
        yield Confusion(f"every step reads {{}} of the {which} step, around the end", (step + by) % count)
    yield Confusion("every step reads {} of step 0", step * 0)
    yield Confusion(f"every step reads {{}} of step {count - 1}", step * 0 + count - 1)
    for size in _STAGES:
        if size < count:
            yield from _of_stages(step, size, "word" if scales else "stage")
    yield Confusion("steps read {} in reverse order", step[::-1])


def _of_stages(step: Order, size: int, what: str) -> Iterator[Confusion]:
    """Yield steps and stages of so many steps confused; four chunks of scales are a word."""
    count, first, within = len(step), step // size * size, step % size
    of = f"its {what} of {size} steps"
    orders = (
        (f"every step reads {{}} of the first step of {of} (not advanced)", first, _ADVANCE),
        (f"every step reads {{}} of the last step of {of}", first + size - 1),
        (f"every step reads {{}} of {of} in reverse", first + size - 1 - within),
        (f"every step reads {{}} of the next step of {of}, around its end", first + (within + 1) % size),
        (f"every step reads {{}} of the previous step of {of}, around its end", first + (within - 1) % size),
        (f"every step reads {{}} advanced twice as far within {of}", first + 2 * within % size),
        (f"every step reads {{}} of the other {what} (two {what}s of {size} steps exchanged)", step ^ size),
        (f"every step reads {{}} of the previous {what}, {size} steps before", _behind(step, size)),
        (f"every step reads {{}} of the next {what}, {size} steps after", _ahead(step, size)),
        (f"every {what} of {size} steps reads {{}} of the first {what}", within),
    )
    yield from (confusion for confusion in starmap(Confusion, orders) if confusion.order.max() < count)
    for start in range(size, count, size):
        order = step.copy()
        order[start : start + size] -= size
        steps = f"steps {start} to {min(start + size, count) - 1}"
        yield Confusion(f"{what} of {steps} reads {{}} of the previous {what}", order)


def _behind(step: Order, size: int) -> Order:
    return np.where(step < size, step, step - size)


def _ahead(step: Order, size: int) -> Order:
    return np.where(step + size < len(step), step + size, step)


def _somewhere(count: int) -> Iterator[Confusion]:
    """Yield one step that takes another's."""
    for at in range(count):
        for by in (1, -1, 2, -2):
            if 0 <= at + by < count:
                order = np.arange(count)
                order[at] += by
                yield Confusion(f"step {at} reads {{}} of step {at + by}", order)
    for at in range(count - 1):
        order = np.arange(count)
        order[[at, at + 1]] = at + 1, at
        yield Confusion(f"steps {at} and {at + 1} read each other's {{}}", order)
