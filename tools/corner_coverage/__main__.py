"""Generate corner vectors until they cover everything, for one form of each type on each target.

    python -m tools.corner_coverage [--target SM] [--only TEXT] [--jobs N] [--all-forms] [--json FILE]

Forms of different targets with the same arithmetic and settings have the same bins: they are covered once
and counted for each. Exit code 1 if a reachable bin was missed or an unreachable one hit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import warpsim
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.instruction import Instruction
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.generation.cases.placement import legal_fields
from warpsim.workbench.generation.generate import corner_vectors


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one arithmetic."""

    mnemonic: str
    target: str
    cases: int
    reachable: int
    unreachable: int
    missed: tuple[str, ...]
    wrong: tuple[str, ...]  # declared unreachable, and hit
    seconds: float


def forms_of(target: str, *, every: bool) -> Iterator[Instruction]:
    """Yield the forms of a target, the first of each combination of types unless ``every``."""
    seen = set()
    for form in warpsim.instructions(target):
        types = (form.family.name, form.a, form.b, form.c, form.d, form.kind, form.scale, form.bit_operation)
        if every or types not in seen:
            seen.add(types)
            yield form


def arithmetic(form: Instruction) -> tuple[Any, ...]:
    """Return all that the bins of a form depend on."""
    formats = (form.a, form.b, form.c, form.d, form.scale)
    modifiers = (form.scale_chunks, form.satfinite, form.rounding, form.bit_operation, form.kind)
    fields = tuple(legal_fields(form)) if form.sparse else ()
    place = (form.lanes, form.stored_k, form.selectors, fields, form.products, form.shape)
    return (rule_for(form).bare, *map(str, formats), *modifiers, *place)


def cover(mnemonic: str, target: str, seed: int = 0) -> Outcome:
    """Corner vectors of a form until everything is covered."""
    start = time.perf_counter()
    vectors, found = corner_vectors(mnemonic, target=target, seed=seed)
    return Outcome(
        mnemonic=mnemonic,
        target=target,
        cases=len(vectors),
        reachable=len(found.reachable),
        unreachable=len(found.unreachable),
        missed=tuple(found.missed),
        wrong=tuple(name for name in found.hits if found.bins[name]),
        seconds=time.perf_counter() - start,
    )


@click.command()
@click.option("--target", "targets", multiple=True, help="Only this target; may be given several times.")
@click.option("--only", default="", help="Forms whose mnemonics contain this.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option("--all-forms", is_flag=True, help="Every form, not one of each type.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the outcomes there too.")
def main(
    targets: tuple[str, ...], only: str, jobs: int, all_forms: bool, seed: int, file: Path | None
) -> None:
    """Cover every form asked for, print a line for each arithmetic, and count."""
    chosen: dict[tuple[Any, ...], Instruction] = {}
    count = 0
    for target in targets or ARCHITECTURES:
        for form in forms_of(target, every=all_forms):
            if only in form.mnemonic:
                chosen.setdefault(arithmetic(form), form)
                count += 1
    outcomes = []
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(cover, str(form), str(form.target), seed) for form in chosen.values()]
        for future in waiting:
            outcomes.append(future.result())
            click.echo(_line(outcomes[-1]))
    bad = [outcome for outcome in outcomes if outcome.missed or outcome.wrong]
    cases, bins = sum(outcome.cases for outcome in outcomes), sum(outcome.reachable for outcome in outcomes)
    click.echo(
        f"{count} forms and targets, {len(outcomes)} arithmetics: {len(outcomes) - len(bad)} fully covered, "
        f"{bins:,} reachable bins, {cases:,} cases"
    )
    if file:
        file.write_text(json.dumps([vars(outcome) for outcome in outcomes], indent=1), encoding="utf-8")
    sys.exit(bool(bad))


def _line(outcome: Outcome) -> str:
    text = (
        f"{outcome.target:8} {outcome.mnemonic}: {outcome.reachable - len(outcome.missed)} of "
        f"{outcome.reachable} bins, {outcome.unreachable} unreachable, {outcome.cases} cases, "
        f"{outcome.seconds:.1f} s"
    )
    for name in outcome.missed:
        text += f"\n  MISSED {name}"
    for name in outcome.wrong:
        text += f"\n  HIT THOUGH UNREACHABLE {name}"
    return text


if __name__ == "__main__":
    main()
