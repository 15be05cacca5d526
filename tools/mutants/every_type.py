"""Try every fault on one form of each pair of types, with the default corner sets.

    python -m tools.mutants.every_type [--only TEXT] [--form TEXT] [--every-format] [--jobs N]
                                       [--json FILE] [--before FILE] [--page FILE]

Prints a line a form. Exit code 1 if a fault survives, or one that is proven to be none is caught.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from .page import page, totals
from .trials_of_types import BEHAVIOURS, FormVerdicts, every_form, forms


@click.command()
@click.option("--only", default="", help="Faults whose names contain this.")
@click.option("--form", "text", default="", help="Forms whose target and mnemonic contain this.")
@click.option("--every-format", is_flag=True, help="Forms of every format of C and D.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write the verdicts there, a line a form."
)
@click.option("--before", type=click.Path(path_type=Path), help="Verdicts of another time, to compare with.")
@click.option("--page", "markdown", type=click.Path(path_type=Path), help="Write the table there.")
def main(
    only: str,
    text: str,
    every_format: bool,
    jobs: int,
    file: Path | None,
    before: Path | None,
    markdown: Path | None,
) -> None:
    """Try the faults, print what becomes of them, and count."""
    start, verdicts = time.perf_counter(), []
    chosen = [form for form in forms(every=every_format) if text in f"{form.target} {form}"]
    for one in every_form(chosen, only, jobs):
        verdicts.append(vars(one))
        click.echo(_line(one))
    caught, proven, survived = totals(verdicts)
    click.echo(
        f"{len(BEHAVIOURS)} faults, {len(verdicts)} forms: {caught} caught, {proven} proven to be none, "
        f"{survived} survive, in {time.perf_counter() - start:.0f} s"
    )
    _write(verdicts, file, before, markdown)
    sys.exit(survived > 0 or any(one["contradicted"] for one in verdicts))


def _write(
    verdicts: list[dict[str, Any]], file: Path | None, before: Path | None, markdown: Path | None
) -> None:
    if file:
        file.write_text("".join(json.dumps(one) + "\n" for one in verdicts), encoding="utf-8")
    if markdown:
        old = [json.loads(line) for line in before.read_text(encoding="utf-8").splitlines()] if before else []
        markdown.write_text(page(verdicts, old, "python -m tools.mutants.every_type"), encoding="utf-8")


def _line(one: FormVerdicts) -> str:
    lines = [
        f"{one.target} {one.mnemonic}: {len(one.caught)} caught, {len(one.proven)} proven to be none, "
        f"{len(one.survived)} survive, {one.cases} cases, {one.seconds:.1f} s"
    ]
    lines += [f"  SURVIVES {name}" for name in one.survived]
    lines += [f"  CAUGHT THOUGH PROVEN {name}: {one.proven.get(name, '')}" for name in one.contradicted]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
