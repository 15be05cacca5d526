"""Compare the fast engine with the reference on many dots of every rule with every formats it serves.

    python tools/soak [--dots N] [--jobs N] [--seed N] [--only TEXT] [--json FILE]

Runs the dot products of tests/helpers/nasty.py through both engines: for each rule and formats an equal share
of each kind and of each length, dense and sparse. A progress bar goes to stderr; to stdout goes the table,
and one dot of each kind that differs. The exit code is 0 where no result differs, otherwise 1. The reference
manages a few thousand dots a second and core: the default of 100,000 dots a rule takes an hour or more. The
same options give the same dots.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.helpers import nasty  # noqa: E402
from warpsim.isa.instruction import Instruction  # noqa: E402
from warpsim.isa.rules import EmulatedF8, FusedSum, Rule  # noqa: E402
from warpsim.sums.arithmetic import numerics, reference  # noqa: E402
from warpsim.sums.execution.pipeline import rule_for  # noqa: E402

BATCH = 500  # dots compared at once


@dataclass
class Result:
    """What was compared of one rule."""

    dots: int = 0
    differences: int = 0
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)

    def add(self, other: Result) -> None:
        """Take in another part."""
        self.dots += other.dots
        self.differences += other.differences
        self.seconds += other.seconds
        self.examples += other.examples


Group = dict[int, Instruction]  # arithmetics of one rule and formats, by their number


def groups() -> list[Group]:
    """Return all arithmetics, those together that differ in their length or sparsity only."""
    found: dict[tuple[object, ...], Group] = defaultdict(dict)
    for number, instruction in enumerate(nasty.arithmetics()):
        found[nasty.arithmetic(instruction)[:-2]][number] = instruction
    return list(found.values())


def compare(number: int, kind: int, dots: int, seed: int) -> Result:
    """Compare ``dots`` dots of one kind of the numbered arithmetic, batch by batch."""
    instruction = nasty.arithmetics()[number]
    make, rule = nasty.makers(instruction)[kind], rule_for(instruction)
    result, started = Result(), time.process_time()
    for batch, count in enumerate(shares(dots, -(-dots // BATCH))):
        rng = np.random.default_rng([seed, number, kind, batch])
        operands = nasty.operands(instruction, make(instruction, count, rng), rng)
        fast, slow = numerics.compute(operands, rule), reference.compute(operands, rule)
        result.dots += count
        result.differences += int((fast != slow).sum())
        text = nasty.difference(instruction, operands, fast, slow)
        if text and not result.examples:
            result.examples.append(f"{make.__name__}, generator {[seed, number, kind, batch]}\n{text}")
    result.seconds = time.process_time() - started
    return result


def shares(total: int, parts: int) -> list[int]:
    """Return ``total`` in ``parts`` nearly equal integers."""
    return [total // parts + (part < total % parts) for part in range(parts)]


def tasks(group: Group, dots: int) -> Iterator[tuple[int, int, int]]:
    """Yield (arithmetic, kind, dots) of everything to compare of one rule."""
    for (number, instruction), part in zip(group.items(), shares(dots, len(group)), strict=True):
        kinds = len(nasty.makers(instruction))
        for kind, share in enumerate(shares(part, kinds)):
            if share:
                yield number, kind, share


def summary(rule: Rule) -> str:
    """Return a rule in a few words."""
    name, step = type(rule).__name__, nasty.step_of(rule)
    if step is None:
        return name
    length = f"L{step.length}" if isinstance(step, FusedSum) else f"G{step.group}"
    length = "k/2" if isinstance(rule, EmulatedF8) else length
    rounding = f"{'RN' if step.output.nearest else 'RZ'}{step.output.precision}"
    return f"{name} {length} F{step.fraction_bits} {rounding} floor {step.exponent_floor}"


def formats(instruction: Instruction) -> str:
    """D.A.B.C, and whatever else distinguishes one arithmetic from another under the same rule."""
    form = instruction
    types = ".".join(str(form.format(operand)) for operand in "dabc")
    scale = f"{form.scale}x{form.scale_chunks}" if form.scale else ""
    more = (scale, form.rounding, "satfinite" if form.satfinite else "", form.bit_operation)
    return " ".join(part for part in (types, *more) if part)


def described(group: Group) -> tuple[str, str, str, str]:
    """First target, rule, formats and lengths (products of a dot) of a group."""
    first = next(iter(group.values()))
    dense, sparse = (
        " ".join(str(k) for k in sorted({form.stored_k for form in group.values() if form.sparse == kind}))
        for kind in (False, True)
    )
    text = ", ".join(part for part in (dense, sparse and f"sparse {sparse}") if part)
    return str(first.target), summary(rule_for(first)), formats(first), text


def table(chosen: list[Group], results: list[Result]) -> Table:
    """One line a rule, and the sum."""
    lines = Table("target", "rule", "formats", "products", box=None, pad_edge=False)
    for heading in ("dots", "differences", "CPU s"):
        lines.add_column(heading, justify="right")
    total = Result()
    for group, result in zip(chosen, results, strict=True):
        total.add(result)
        lines.add_row(*described(group), *numbers(result), style="red" if result.differences else None)
    lines.add_row("total", f"{len(chosen)} rules with formats", "", "", *numbers(total))
    return lines


def numbers(result: Result) -> tuple[str, str, str]:
    """Return dots, differences and seconds as text."""
    return f"{result.dots:,}", f"{result.differences:,}", f"{result.seconds:.0f}"


def run(chosen: list[Group], dots: int, jobs: int, seed: int) -> list[Result]:
    """Compare everything in ``jobs`` processes, showing progress on stderr."""
    results = [Result() for _ in chosen]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress, ProcessPoolExecutor(jobs) as pool:
        waiting: dict[Future[Result], int] = {}
        for place, group in enumerate(chosen):
            for task in tasks(group, dots):
                waiting[pool.submit(compare, *task, seed)] = place
        bar = progress.add_task("dots", total=dots * len(chosen))
        for done in as_completed(waiting):
            results[waiting[done]].add(done.result())
            progress.advance(bar, done.result().dots)
    return results


@click.command(help=__doc__)
@click.option("--dots", default=100_000, show_default=True, help="Dots of each rule with its formats.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--seed", default=0, show_default=True, help="Seed of all generators.")
@click.option("--only", default="", help="Only rules whose line of the table contains this text.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the numbers here as well.")
def main(dots: int, jobs: int, seed: int, only: str, path: Path | None) -> None:
    """Run the command."""
    chosen = [group for group in groups() if only in " ".join(described(group))]
    results = run(chosen, dots, jobs, seed)
    out = Console(width=140 if not sys.stdout.isatty() else None)
    out.print(table(chosen, results))
    for result in results:
        for example in result.examples:
            out.print(example, highlight=False, soft_wrap=True, style="red")
    if path is not None:
        headings = ("target", "rule", "formats", "products")
        rows = [
            {**dict(zip(headings, described(group), strict=True)), **vars(result)}
            for group, result in zip(chosen, results, strict=True)
        ]
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    sys.exit(any(result.differences for result in results))


if __name__ == "__main__":
    main()
