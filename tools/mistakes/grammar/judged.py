"""Judge dumps by places and loops by kind: ``python -m tools.mistakes.grammar.judged [dumps] [loops]``.

Of dumps it counts rules, parts, none and wrong; of loops named, located, none and wrong.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from itertools import product
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import numbers
from tools.mistakes.grammar.dumps import DUMPS, Dump
from tools.mistakes.grammar.loops import LOOPS, Product
from tools.mistakes.users.loops import cut
from warpsim.isa.instruction import Instruction
from warpsim.workbench.diagnosis import LoopDiagnosis, diagnose_product
from warpsim.workbench.diagnosis.solving.fitting import Answer, Block, Fit, Values, fit
from warpsim.workbench.diagnosis.solving.views import tile_places, views_of, whole_views

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
    blocks, every = [Block(0, "own", {})], [matrix.reshape(-1)]
    for down, across in _other_tiles(shape, size):
        blocks.append(Block(2, "tile", {"down": down, "across": across}))
        every.append(np.roll(matrix, (-down, -across), axis=(0, 1)).reshape(-1))
    whole = np.append(np.concatenate(every), 0.0)
    held = Values(views=views, sources=blocks, values=whole, places=tile_places(shape, (0, 0), size))
    return held, values, element


def _other_tiles(shape: tuple[int, int], size: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the distances of other tiles, the nearest first."""
    firsts = (range(0, total, step) for total, step in zip(shape, size, strict=True))
    tiles = [(row, column) for row, column in product(*firsts) if row or column]
    return sorted(tiles, key=lambda at: sum(min(x, total - x) for x, total in zip(at, shape, strict=True)))


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


def diagnosed(row: Product, seed: int = 3) -> LoopDiagnosis:
    """Return what is said of the D of a loop."""
    mnemonic, target = row.form.split("@")
    form, rng = warpsim.decode(mnemonic, target=target), np.random.default_rng(seed)
    m, n, steps = row.size
    k = form.shape.k * steps
    A, B, C = numbers(rng, form.a, (m, k)), numbers(rng, form.b, (k, n)), numbers(rng, form.c, (m, n))
    return diagnose_product(form, A, B, row.made(form, A, B, C, cut(form, A, B)), C)


def loop_outcome(row: Product, found: LoopDiagnosis) -> str:
    """Return named, located, none or wrong."""
    if not found.matches:
        return "located" if found.remarks and row.kind else "none"
    first = found.matches[0]
    if row.kind != first.kind:
        return "wrong" if not row.kind else f"as {first.kind}"
    wanted = {name: value for name, value in row.facts.items() if name not in ("rows", "rank", "weight")}
    held = {name: first.facts.get(name) for name in wanted}
    equal = any(text.startswith(f"{row.facts.get('operand')}: ") for text in first.also)
    return "named" if held == wanted or equal else "wrong"


def _dumps() -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in DUMPS:
        held, values, element = brought(row)
        found = outcome(row, held, fit(held, values), values, element)
        counts[f"{row.expect}: {found}"] += 1
        print(f"{found:6} ({row.expect}) {row.name}")
    return counts


def _loops() -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in LOOPS:
        start = time.process_time()
        found = diagnosed(row)
        counts[loop_outcome(row, found)] += 1
        said = found.matches[0].name if found.matches else "; ".join(map(str, found.remarks))[:100]
        seconds = time.process_time() - start
        print(f"{loop_outcome(row, found):12} {seconds:5.1f} s  {row.name}: {said}", flush=True)
    return counts


def main() -> None:
    """Print a line for each row, and the counts."""
    parser = argparse.ArgumentParser(description="Unseen dumps and loops, judged by places and kinds.")
    parser.add_argument("groups", nargs="*", choices=["dumps", "loops", []], default=["dumps", "loops"])
    for group in parser.parse_args().groups:
        print(group, dict({"dumps": _dumps, "loops": _loops}[group]()))


if __name__ == "__main__":
    main()
