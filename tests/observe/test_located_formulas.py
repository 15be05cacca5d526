"""Mistakes of formulas are located: kind, certainty and line of each that was written down before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.families import each_of, sample
from tests.helpers.formula_mistakes import LAUNCHES, MISTAKES, Mistake, has_compiler, launch_of
from warpsim.base.errors import SourceLine
from warpsim.observe.algebra.keys import finite_fields
from warpsim.observe.algebra.locating import formula_graphs
from warpsim.observe.algebra.locating.located_record import Located
from warpsim.observe.algebra.locating.output_maps import index_map
from warpsim.programs.launch.located_launches import answer_of
from warpsim.workbench.diagnosis.verdicts.why import verdict_of

compiled = pytest.mark.skipif(not has_compiler(), reason="nvcc is not installed")

# name -> certainty, kind, where the line that is to change stands: at the "line" named, at a "call" that it
# was inlined at, in the "copies" of the operand, or nowhere: "effect"
OUTCOMES = {
    "bias of the next tile": ("proven", "operand", "line"),
    "bias behind relu": ("proven", "order", "call"),
    "constant of gelu": ("proven", "operand", "line"),
    "square for cube": ("proven", "missing", "line"),
    "gelu without one half": ("proven", "missing", "line"),
    "minimum for maximum": ("proven", "operation", "line"),
    "rows of D": ("proven", "moved", "line"),
    "bias left out in odd columns": ("proven", "missing", "call"),
    "ldmatrix of A by half a row": ("proven", "operand", "copies"),
    "ldmatrix of B from the other pair": ("proven", "moved", "copies"),
    "chunk of A in the copy": ("proven", "operand", "copies"),
    "step of B in the copy": ("proven", "operand", "line"),
    "last step left out": ("proven", "missing term", "call"),
    "rows of the store": ("proven", "moved", "line"),
    "stores in place of atomics": ("proven", "stored twice", "line"),
    "share rounded down": ("proven", "missing term", "effect"),
    "shares overlap": ("proven", "double term", "effect"),
    "zero point of the next group": ("proven", "operand", "line"),
    "scale of the neighbour": ("proven", "operand", "line"),
    "group of 64": ("proven", "operand", "line"),
    "zero point left out": ("proven", "missing", "line"),
    "zero point and one": ("proven", "missing", "line"),
    "nibbles exchanged": ("proven", "operand", "call"),
    "scale before the zero point": ("proven", "order", "line"),
    "powers of two": ("proven", "operation", "line"),
    "half of the lanes": ("proven", "missing term", "line"),
    "maximum of a lane": ("located", "rescaling", "effect"),
    "sums are not rescaled": ("proven", "rescaling", "line"),
    "total is not rescaled": ("proven", "rescaling", "line"),
    "scale left out": ("proven", "missing", "line"),
    "mask by one": ("located", "extra", "effect"),
    "row of V": ("proven", "operand", "line"),
    "no quotient": ("proven", "missing", "line"),
    "metadata of the first step": ("proven", "operand", "line"),
    "tile of sparse B": ("proven", "moved", "copies"),
    "box of B": ("proven", "operand", "line"),
    "box of D": ("proven", "moved", "line"),
    "descriptor of B": ("proven", "operand", "call"),
    "scales of the first step": ("proven", "operand", "line"),
}


def _lines(source: SourceLine | None) -> Iterator[str]:
    """Yield the text of a line, and of the calls that it was inlined at."""
    while source is not None:
        yield Path(source.file).read_text().splitlines()[source.line - 1]
        source = source.inlined_at


def _where(found: Located, part: str) -> str:
    lines = list(_lines(found.source))
    if lines and part in lines[0]:
        return "line"
    if any(part in line for line in lines):
        return "call"
    if any(part in line for copy in found.copies for line in _lines(copy.source)):
        return "copies"
    return "effect"


@compiled
@each_of(sample(MISTAKES, 5), parts=2)
def test_mistakes_are_located(mistake: Mistake) -> None:
    answer = answer_of(launch_of(mistake.entry, mistake), LAUNCHES[mistake.entry].reference)
    assert answer.equivalence.answer == "other"
    found = answer.located
    assert found is not None
    assert (found.certainty, found.kind, _where(found, mistake.line)) == OUTCOMES[mistake.name]
    assert found.proven == (0 < found.checked == found.tried)
    assert found.location is not None


@compiled
@each_of(sample(LAUNCHES, 2))
def test_nothing_is_claimed_of_intact_kernels(entry: str) -> None:
    answer = answer_of(launch_of(entry), LAUNCHES[entry].reference)
    assert (answer.equivalence.answer, answer.located) == ("equal", None)


def test_every_mistake_has_an_outcome() -> None:
    assert [mistake.name for mistake in MISTAKES] == list(OUTCOMES)


def _mistake(name: str) -> Mistake:
    return next(mistake for mistake in MISTAKES if mistake.name == name)


def _located(name: str) -> Located:
    mistake = _mistake(name)
    found = answer_of(launch_of(mistake.entry, mistake), LAUNCHES[mistake.entry].reference).located
    assert found is not None
    return found


@compiled
def test_operands_have_names_and_a_map() -> None:
    found = _located("zero point of the next group")
    assert found.found.startswith("zeros[")
    assert found.wanted.startswith("zeros[")
    assert (found.map, found.output, found.elements) == ("index 0: xor 1", "d", 256)
    assert found.fix == f"load zeros with the index of {found.wanted}"


@compiled
def test_a_verdict_has_the_answer_then_the_place() -> None:
    mistake = _mistake("constant of gelu")
    verdict = verdict_of(launch_of(mistake.entry, mistake), {}, 0.0, LAUNCHES[mistake.entry].reference)
    lines = list(verdict.lines())
    assert lines[0].startswith("formula: 2,048 of 2,048 elements")
    assert lines[1].startswith("verdict: ")
    assert "0.44715 stands where the reference has 0.044715" in lines[1]
    assert verdict.located is not None
    assert verdict.located.proven
    assert verdict.kind == "operand"
    assert not verdict.as_expected


# --- parts -------------------------------------------------------------------------------------------


def test_single_keys_are_computed_as_arrays_are() -> None:
    keys = finite_fields.random_keys(3, "x", np.arange(24))
    keys[::3] = finite_fields.exp2(keys[::3])
    keys[5] = 0
    for a in keys:
        assert formula_graphs.inverse(int(a)) == int(finite_fields.inv(np.array([a]))[0])
        for b in keys:
            for one, many in (
                (formula_graphs.plus, finite_fields.add),
                (formula_graphs.minus, finite_fields.sub),
                (formula_graphs.times, finite_fields.mul),
            ):
                assert one(int(a), int(b)) == int(many(a, b))


@each_of(
    [
        ([(1, 0), (3, 2)], [(0, 0), (2, 2)], "index 0: +1"),
        ([(0, 1), (1, 0)], [(0, 0), (1, 1)], "index 1: xor 1"),
        ([(2, 5), (3, 7)], [(5, 2), (7, 3)], "transposed"),
        ([(0, 4), (0, 5)], [(1, 4), (2, 5)], "index 0: always 0"),
        ([(0,), (1,), (1,)], [(1,), (2,), (3,)], "index 0: divided by 2"),
        ([(0,), (7,), (2,)], [(3,), (1,), (9,)], ""),
    ]
)
def test_maps_of_indices(found: list[tuple[int, ...]], wanted: list[tuple[int, ...]], words: str) -> None:
    assert index_map(list(zip(found, wanted, strict=True))) == words


@each_of([0.44715, -3.0, 0.3125, 2.0**-20])
def test_numbers_of_few_bits_have_names(value: float) -> None:
    from warpsim.observe.algebra.keys.constant_keys import dyadic

    number = float(np.float32(value))
    assert formula_graphs.rational(int(dyadic(np.array(number)))) == number
