"""``warpsim view``: an interactive report of a trace, one HTML file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import json_option, undefined_option
from .output import CONTEXT, EXPECTED, MISMATCH, Failure, attempt, check_target, print_json, say

if TYPE_CHECKING:
    from ..execution.pipeline import Undefined
    from ..report import Report


@click.command(context_settings=CONTEXT)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Where to write the report.  [default: the trace's name, in this directory]",
)
@click.option(
    "--target", metavar="SM", callback=check_target, help="Run on this chip instead of the trace's own."
)
@undefined_option
@json_option
def view(trace: Path, out: Path | None, target: str | None, allow_undefined: bool, as_json: bool) -> int:
    """Run a trace and write an interactive report: one HTML file that loads nothing.

    Matrices, registers, metadata and scales light up where they belong together; every element of D has
    its explanation. Broken ordering rules of wgmma are listed in it.
    """
    if find_spec("jinja2") is None:
        raise click.UsageError("a report needs jinja2: pip install 'warpsim[report]'")
    out = out or Path(f"{trace.stem}.html")
    report = attempt(_report, trace, target, "fallback" if allow_undefined else "error")
    if isinstance(report, Failure):
        return report.code()
    if failure := attempt(_write, out, report):
        return failure.code()
    summary = _summary(trace, out, report)
    if as_json:
        print_json(summary)
    else:
        say(_sentence(summary))
    return EXPECTED if report.run.passed else MISMATCH


def _report(path: Path, target: str | None, undefined: Undefined) -> Report:
    from ..report import view as report_of

    return report_of(path, target=target, undefined=undefined)


def _write(out: Path, report: Report) -> None:
    report.save(out)


def _summary(trace: Path, out: Path, report: Report) -> dict[str, Any]:
    run = report.run
    return {
        "trace": trace.as_posix(),
        "report": out.as_posix(),
        "bytes": out.stat().st_size,
        "target": run.machine.target,
        "instructions": len(report.document["instructions"]),
        "passed": run.passed,
        "checks": len(run.checks),
        "failed_checks": sum(not check.passed for check in run.checks),
    }


def _sentence(summary: dict[str, Any]) -> str:
    checks, failed = summary["checks"], summary["failed_checks"]
    verdict = f"{failed} of {checks} checks failed" if failed else f"{checks} checks passed"
    count, size = summary["instructions"], summary["bytes"] / 1e6
    return f"{summary['report']}: {count} instructions, {verdict}, {size:.1f} MB"
