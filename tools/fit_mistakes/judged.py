"""Judge dumps by places: ``python -m tools.fit_mistakes.judged`` counts rules, parts, none and wrong."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

import warpsim
from tools.fit_mistakes.dumps import DUMPS, Dump
from warpsim.isa.instruction import Instruction
from warpsim.workbench.diagnosis.solving.fitting import Answer, Fit, fit
from warpsim.workbench.diagnosis.solving.held_values import Values, tile_places, whole_views, with_tiles
from warpsim.workbench.diagnosis.solving.views import views_of

Numbers = Any


def brought(row: Dump, seed: int = 5) -> tuple[Values, Numbers, Numbers]:
    """Return the matrix, the values of the dump by place, and the element that each place holds, or -1."""
    form, rng = instruction(row), np.random.default_rng(seed)
    size = form.matrix_shape(row.operand)
    shape = -(-row.size[0] // size[0]) * size[0], -(-row.size[1] // size[1]) * size[1]
    matrix = np.zeros(shape)
    matrix[: row.size[0], : row.size[1]] = _numbers(row, form, rng)
    row_of, column_of = np.divmod(np.arange(size[0] * size[1]), size[1])
    fields = views_of(form, row.operand)[0]
    of = {each.name: fields.coordinates[:, at] for at, each in enumerate(fields.fields)}
    lane = of["lane"] + 32 * of.get("warp", 0)
    nothing = np.zeros_like(row_of)
    taken = row.take(lane, of.get("register", nothing), of.get("slot", nothing), row_of, column_of)
    inside = (taken[0] >= 0) & (taken[0] < row.size[0]) & (taken[1] >= 0) & (taken[1] < row.size[1])
    element = np.where(inside, taken[0] * shape[1] + taken[1], -1)
    values = np.where(inside, matrix.reshape(-1)[np.where(inside, element, 0)], 0.0)
    views = whole_views(form, row.operand, shape)
    held = with_tiles(views, matrix.reshape(-1), shape, (size, tile_places(shape, (0, 0), size)))
    return held, values, element


def instruction(row: Dump) -> Instruction:
    """Return the form of a row."""
    mnemonic, target = row.form.split("@")
    return warpsim.decode(mnemonic, target=target)


def _numbers(row: Dump, form: Instruction, rng: np.random.Generator) -> Numbers:
    element = form.format(row.operand)
    if row.values == "few":
        return rng.integers(-2, 3, row.size).astype(float)
    if element.is_float:
        return rng.standard_normal(row.size).astype(element.dtype).astype(float)
    return rng.integers(-128, 128, row.size).astype(float)


def elements(held: Values, found: Fit, shape: tuple[int, int]) -> Numbers:
    """Return the element of the matrix that each place holds by a fit, -1 for zero."""
    count = shape[0] * shape[1]
    block, place = np.divmod(found.table, count)
    down, across = (
        np.array([*(each.facts.get(way, 0) for each in held.sources), 0])[block] for way in ("down", "across")
    )
    row, column = np.divmod(place, shape[1])
    read = (row + down) % shape[0] * shape[1] + (column + across) % shape[1]
    return np.where(found.table < 0, -1, read)


def outcome(row: Dump, held: Values, answer: Answer, values: Numbers, element: Numbers) -> str:
    """Return rule, parts, none or wrong; values that repeat make equal places right."""
    form = instruction(row)
    size = form.matrix_shape(row.operand)
    shape = -(-row.size[0] // size[0]) * size[0], -(-row.size[1] // size[1]) * size[1]
    if not answer.fits or not answer.fits[0].certain:
        return "none"
    first = answer.fits[0]
    follows = ~np.isin(held.places, first.rest)
    if (held.values[first.table] != values)[follows].any():
        return "wrong"
    places = elements(held, first, shape)
    if row.values != "few" and (places != element)[follows & (values != 0)].mean() > 1 / 16:
        return "wrong"  # a few values are equal by chance
    return "rule" if not len(first.rest) else "parts"


def main() -> None:
    """Print a line for each dump, and the counts."""
    counts: Counter[str] = Counter()
    start = time.process_time()
    for row in DUMPS:
        held, values, element = brought(row)
        found = outcome(row, held, fit(held, values), values, element)
        counts[f"{row.expect}: {found}"] += 1
        print(f"{found:6} ({row.expect}) {row.name}")
    print(dict(counts), f"{(time.process_time() - start) / len(DUMPS):.2f} s each")


if __name__ == "__main__":
    main()
