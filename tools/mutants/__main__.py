"""Inject faults into the numerics and count those that the corner vectors catch.

    python -m tools.mutants [--only TEXT] [--json FILE]

Exit code 1 if a fault survives.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from .faults import FAULTS
from .trial import Verdict, try_fault


@click.command()
@click.option("--only", default="", help="Faults whose names contain this.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the verdicts there too.")
def main(only: str, file: Path | None) -> None:
    """Try every fault and print what caught it."""
    start, verdicts = time.perf_counter(), []
    for fault in FAULTS:
        if only in fault.name:
            verdicts.append(try_fault(fault))
            click.echo(_line(verdicts[-1]))
    caught = sum(verdict.caught for verdict in verdicts)
    click.echo(f"{caught} of {len(verdicts)} faults caught in {time.perf_counter() - start:.0f} s")
    if file:
        file.write_text(json.dumps([_document(one) for one in verdicts], indent=1), encoding="utf-8")
    sys.exit(caught < len(verdicts))


def _line(verdict: Verdict) -> str:
    what = f"caught by {verdict.theme!r}, case {verdict.case}" if verdict.caught else "SURVIVES"
    return f"{verdict.fault.name:45} {what}"


def _document(verdict: Verdict) -> dict[str, object]:
    fault = verdict.fault
    return {
        "fault": fault.name,
        "form": fault.form,
        "target": fault.target,
        "case": verdict.case,
        "theme": verdict.theme,
        "outputs": verdict.outputs,
    }


if __name__ == "__main__":
    main()
