"""Mistakes in loops along k, found or not: ``python -m tools.mistakes.grammar.injected_loops [--each N]``.

Makes N mistakes that the search knows, drawn at random, in a product of every sampled form, alone, and
counts: a hit is a match that acts like the mistake on another product too, a false match is one that does
not. Mistakes that leave this D as it is do not count.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.grammar.injected import sampled_forms
from warpsim.isa.codes import matrix_of
from warpsim.isa.instruction import Instruction
from warpsim.workbench.diagnosis import diagnose_product
from warpsim.workbench.diagnosis.loops.loop_mistakes import Candidate, WithinSteps
from warpsim.workbench.diagnosis.loops.loop_search import stages
from warpsim.workbench.diagnosis.solving.product_loops import Given, Loop, View

STEPS = 5


def products(only: str = "") -> list[Instruction]:
    """Return the forms of which there are loops."""
    forms = sampled_forms().values()
    return [form for form in forms if form.products == 1 and form.c == form.d and only in form.mnemonic]


def numbers(form: Instruction, operand: str, shape: tuple[int, int], rng: np.random.Generator) -> Any:
    """Return normal numbers, or any integers, in the form's type."""
    element = form.format(operand)
    if element.is_float:
        return rng.standard_normal(shape).astype(element.dtype)
    wide = rng.integers(0, 1 << min(element.bits, 7), shape).astype(np.uint64)
    return matrix_of(wide.astype(element.code_dtype), element)


def random_given(form: Instruction, seed: int, rows: int = 1, columns: int = 1) -> Given:
    """Return a product of so many tiles."""
    rng = np.random.default_rng(seed)
    m, n, k = form.shape.m * rows, form.shape.n * columns, form.shape.k * STEPS
    A = numbers(form, "a", (m, k), rng)
    scales = {}
    if form.scale is not None:
        low, high = (122, 132) if form.scale.fraction_bits == 0 else (40, 72)
        chunks = STEPS * form.scale_chunks
        scales["scale_a"] = rng.integers(low, high, (m, chunks)).astype(np.uint8)
        scales["scale_b"] = rng.integers(low, high, (chunks, n)).astype(np.uint8)
    return Given(
        A=warpsim.prune(A, form) if form.sparse else A,
        B=numbers(form, "b", (k, n), rng),
        C=numbers(form, "c", (m, n), rng),
        **scales,
    )


def candidates(loop: Loop) -> Iterator[Candidate]:
    """Yield everything that the search knows, judged on the first tile."""
    for stage in stages(WithinSteps(loop, View(tile=0))):
        yield from stage


def expected(form: Instruction, given: Given) -> Any:
    """Return D as it should be."""
    return warpsim.gemm(form, given.A, given.B, given.C, **given.scales)


def trial(form: Instruction, name: str, given: Given, other: dict[str, Candidate]) -> str:
    """Make one mistake; whether it shows, is found, and is all that is found."""
    made = {candidate.name: candidate for candidate in candidates(Loop(form, given))}[name]
    D = matrix_of(made.exact()[0], form.d)
    found = diagnose_product(form, given.A, given.B, D, given.C, **given.scales)
    if found.as_expected:
        return "no effect"
    meant = other[name].exact()
    if found.matches and found.matches[0].kind != "candidate":
        return "found"  # solved from D, and no name of the search
    names = [known for finding in found.matches for known in (finding.name, *finding.also) if known in other]
    effects = [np.array_equal(other[known].exact(), meant) for known in names]
    if not any(effects):
        return "missed"
    return "found" if all(effects) else "found, and a false match"


def trials(form: Instruction, each: int, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Yield mistakes drawn from those of a form, and their outcomes."""
    given = random_given(form, int(rng.integers(1 << 30)))
    other = {
        candidate.name: candidate
        for candidate in candidates(Loop(form, random_given(form, int(rng.integers(1 << 30)))))
    }
    for name in rng.choice(sorted(other), min(each, len(other)), replace=False).tolist():
        yield name, trial(form, name, given, other)


def kind(form: Instruction) -> tuple[str, str]:
    """Return what the counts are kept by."""
    return form.family.name + " scaled" * bool(form.scale), "float" if form.d.is_float else "integer"


def main() -> None:
    """Print a line for each family and kind of D."""
    parser = argparse.ArgumentParser(description="Hit rate and false matches of loops along k.")
    parser.add_argument("--each", type=int, default=5, help="mistakes of each form")
    parser.add_argument("--only", default="", help="forms with this in their mnemonic")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for form in products(options.only):
        for name, outcome in trials(form, options.each, rng):
            counts.setdefault(kind(form), Counter())[outcome] += 1
            if outcome not in ("found", "no effect"):
                print(f"{outcome}: {form.mnemonic}: {name}", flush=True)
    for (family, of), outcomes in sorted(counts.items()):
        shown = sum(outcomes.values()) - outcomes["no effect"]
        false = outcomes["found, and a false match"]
        print(f"{family:<14} {of:<8} shown {shown:>5} found {outcomes['found'] + false:>5} false {false:>4}")


if __name__ == "__main__":
    main()
