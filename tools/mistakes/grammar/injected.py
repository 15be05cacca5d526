"""How well ``warpsim diff`` finds mistakes of its grammar: ``python -m tools.mistakes.grammar.injected``.

Injects explanations drawn from the grammar of the solver, and every cause that is no map, into random correct
instructions of every family, and N random pairs of each form, and counts: a hit is a match that acts like the
injected mistakes on other random operands too, a false match is one that does not. Mistakes that leave this D
as it is do not count. Results are per kind of D, as integers that wrap hide more than floating point does.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs, ScaleSelectors
from warpsim.workbench.diagnosis import Mistake, diagnose_inputs
from warpsim.workbench.diagnosis.library.setting import Setting, SharedTiles
from warpsim.workbench.diagnosis.search.cases import outcome, probe
from warpsim.workbench.diagnosis.solving.linear_operands import unposed
from warpsim.workbench.diagnosis.solving.other_causes import named_mistake, other_causes
from warpsim.workbench.diagnosis.solving.screening import alternatives, costs
from warpsim.workbench.diagnosis.solving.solving import Explanation, explained

TARGETS = ("sm_75", "sm_80", "sm_89", "sm_120a", "sm_90a")
SWIZZLES = ("none", "32B", "64B", "128B")
DRAWN = 24  # explanations of each form
SIMPLE = 3.0  # cost of those that are drawn


def sampled_forms() -> dict[Any, Instruction]:
    """One form for each family, shape (of wgmma: two n), types, kind and variant, by what it stands for."""
    found: dict[Any, Instruction] = {}
    for target in TARGETS:
        for form in warpsim.instructions(target):
            if form.lanes == 128 and form.shape.n not in (8, 32):
                continue
            key = (
                form.family.name,
                form.shape,
                form.a,
                form.c,
                form.kind,
                form.bit_operation,
                form.scale_vector,
            )
            found[key] = form
    return found


def random_setting(form: Instruction, rng: np.random.Generator) -> Setting:
    """Random immediates, and packed tiles in shared memory with a random swizzle."""
    ids = ScaleSelectors()
    if form.scale:
        first = [int(x) for x in rng.choice(range(0, 4, form.scale_chunks), 2)]
        ids = ScaleSelectors(first[0], int(rng.integers(2)), first[1], int(rng.integers(4)))
    selector = int(rng.choice(form.selectors)) if form.sparse else 0
    tiles = shared_tiles(form, rng) if form.lanes == 128 else None
    return Setting(instruction=form, selector=selector, scale_selectors=ids, tiles=tiles)


def shared_tiles(form: Instruction, rng: np.random.Generator) -> SharedTiles:
    """Return B, and half the time A, in packed tiles of twice the k that one instruction reads."""
    words, start = [], 1024
    for operand in "ab":
        rows, columns = form.matrix_shape(operand)
        mn, k = (rows, columns) if operand == "a" else (columns, rows)
        bits = max(form.a.bits, 8)
        extent = 2 * k * form.a.bits // bits  # of bytes, for 1-bit elements
        fitting = [mode for mode in SWIZZLES if mode == "none" or extent * bits // 16 <= 8 * int(mode[:-1])]
        shape, swizzle = TileShape(mn=mn, k=extent, element_bits=bits, major="K"), rng.choice(fitting)
        words.append(canonical_descriptor(start, shape, swizzle=swizzle).encode())
        start += -(-canonical_bytes(shape, swizzle=swizzle) // 1024) * 1024
    in_shared = bool(rng.integers(2))
    return SharedTiles(a=words[0] if in_shared else None, b=words[1], memory_bytes=start)


def inputs_of(setting: Setting, registers: dict[str, Any]) -> Inputs:
    """Return what the instruction reads, from registers as probe makes them."""
    tiles = setting.tiles
    kept = {name: words for name, words in registers.items() if name in setting.instruction.registers}
    if tiles is None:
        return Inputs(registers=kept, selector=setting.selector, scale_selectors=setting.scale_selectors)
    return Inputs(
        registers={name: words for name, words in kept.items() if not setting.in_shared(name)},
        selector=setting.selector,
        shared=registers["shared"],
        a_descriptor=None if tiles.a is None else np.asarray(tiles.a, np.uint64),
        b_descriptor=np.asarray(tiles.b, np.uint64),
    )


def of_grammar(setting: Setting, rng: np.random.Generator, *, parts: bool = True) -> Mistake:
    """Draw a map, other values, or places that hold something else, of a random operand.

    With ``parts`` half of them hold in some places only.
    """
    names = [*setting.instruction.operands, *(() if setting.instruction.products > 1 else ("cd",))]
    operand = unposed(setting, str(rng.choice(names)))
    every = alternatives(operand)
    single = every.of(rng.choice(np.flatnonzero(costs(operand, every) <= SIMPLE), 1))
    if parts and operand.name != "cd" and rng.integers(2):
        single = single._replace(predicate=rng.choice(len(operand.predicates), 1))
    made = explained(operand, single, 0)
    return (
        named_mistake(made)
        if operand.name != "cd" or made.is_permutation
        else of_grammar(setting, rng, parts=parts)
    )


def made(setting: Setting, name: str, kind: str, **facts: Any) -> Mistake:
    """Return the map of an operand that has this kind and these facts; raises KeyError where none has."""
    operand = unposed(setting, name)
    atom = operand.atoms.named(kind, **facts)
    return named_mistake(
        Explanation(operand=operand, table=atom.table, cost=atom.cost, atom=atom, source=operand.sources[0])
    )


def trial(setting: Setting, explanation: Sequence[Mistake], seed: int, most: int) -> str:
    """Inject mistakes; whether they show, are found, and are all that is found."""
    registers = probe(setting, 1, seed)
    d = outcome(setting, registers, explanation)
    if np.array_equal(d, outcome(setting, registers, ())):
        return "no effect"
    found = diagnose_inputs(setting.instruction, inputs_of(setting, registers), d, most=most)
    other = probe(setting, 3, seed + 1)
    meant = outcome(setting, other, explanation).tobytes()
    effects = {outcome(setting, other, match.simplest.mistakes).tobytes() for match in found.matches}
    if meant not in effects:
        return "missed"
    return "found" if effects == {meant} else "found, and a false match"


def trials(form: Instruction, pairs: int, rng: np.random.Generator) -> Iterable[tuple[str, str]]:
    """Yield which sort of trial, and its outcome: single mistakes, then random pairs."""
    setting = random_setting(form, rng)
    library = [*other_causes(setting), *(of_grammar(setting, rng) for _ in range(DRAWN))]
    for mistake in library:
        yield "singles", trial(setting, [mistake], int(rng.integers(1 << 30)), 1)
    for _ in range(pairs):
        first, second = rng.choice(len(library), 2, replace=False)
        both = [library[first], library[second]]
        yield "pairs", trial(setting, both, int(rng.integers(1 << 30)), 2)


def report(counts: dict[tuple[str, str, str], Counter[str]]) -> str:
    """Return a line for each family, kind of D and sort of trial."""
    lines = [f"{'family':<10} {'D':<8} {'trials':<8} {'shown':>6} {'found':>7} {'hit rate':>9} {'false':>6}"]
    for (family, kind, sort), outcomes in sorted(counts.items()):
        shown = sum(outcomes.values()) - outcomes["no effect"]
        false = outcomes["found, and a false match"]
        found = outcomes["found"] + false
        rate = f"{found / max(shown, 1):9.2%}"
        lines.append(f"{family:<10} {kind:<8} {sort:<8} {shown:>6} {found:>7} {rate} {false:>6}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Print the rates; exit 1 below 99 % or with a false match on floating point."""
    parser = argparse.ArgumentParser(description="Hit rate and false matches of warpsim diff.")
    parser.add_argument("--forms", type=int, default=0, help="how many forms of each family; 0: all sampled")
    parser.add_argument("--pairs", type=int, default=0, help="random pairs of mistakes for each form")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    taken: Counter[str] = Counter()
    forms = list(sampled_forms().values())
    for index in rng.permutation(len(forms)):
        form = forms[index]
        taken[form.family.name] += 1
        if options.forms and taken[form.family.name] > options.forms:
            continue
        kind = "float" if form.d.is_float else "integer"
        for sort, result in trials(form, options.pairs, rng):
            counts.setdefault((form.family.name, kind, sort), Counter())[result] += 1
    print(report(counts))
    bad = [c for (_, kind, _), c in counts.items() if kind == "float" and c["found, and a false match"]]
    rates = [c["missed"] / max(1, sum(c.values()) - c["no effect"]) for c in counts.values()]
    sys.exit(1 if bad or max(rates) > 0.01 else 0)


if __name__ == "__main__":
    main()
