"""``warpsim view``, ``warpsim explore``: write a page of a trace or a recording, or of all layouts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from .options import InputFile, MnemonicOrNone, NeededOut, Out, Select, Target, Undefined
from .output import EXPECTED, MISMATCH, deliver, perform
from .sources import check_unselected, is_recording, recorded
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...observe.recording.selection import Selection
    from ..report import Report
    from ..report.explorer import Explorer


@verb
def view(
    trace: Annotated[InputFile, Option(metavar="TRACE|RECORDING|VECTORS")],
    *,
    out: Annotated[
        Out,
        Option(metavar="FILE.html"),
        "Where to write the report.  [default: the trace's name, in this directory]",
    ],
    target: Annotated[Target, "Run on this chip instead of the trace's own."],
    undefined: Undefined,
    selection: Select,
) -> int:
    """Run a trace, or take the recording of a launch or a vector set, and write an interactive report: one
    HTML file that loads nothing.

    Matrices, registers, metadata and scales light up where they belong together; every element of D has
    its explanation. Broken ordering rules of wgmma are listed in it. Of a launch it has the timeline, and
    all instructions at a glance; of a vector set the cases whose D is not as computed here.
    """
    check_unselected(str(trace), selection)
    if is_recording(str(trace)) and (target or undefined == "fallback"):
        raise click.UsageError("--target and --allow-undefined go with a trace: a recording is not run")
    out = out or Path(f"{trace.stem}.html")
    report = perform(_report, trace, target, undefined, selection)
    perform(report.save, out)
    summary = _summary(trace, out, report)
    line = _sentence(summary, report.document["launch"] is not None)
    return deliver(summary, line, EXPECTED if report.document["passed"] else MISMATCH)


def _report(path: Path, target: str | None, undefined: Undefined, selection: Selection | None) -> Report:
    from ..report import is_set
    from ..report import view as report_of

    if is_recording(str(path)):
        report = report_of(recorded(str(path), selection))
        _ = report.data  # raises where it is too large
        return report
    if target and is_set(path):
        raise click.UsageError("--target goes with a trace: a vector set has its own")
    return report_of(path, target=target, undefined=undefined)


def _summary(trace: Path, out: Path, report: Report) -> dict[str, Any]:
    document = report.document
    return {
        "trace": trace.as_posix(),
        "report": out.as_posix(),
        "bytes": out.stat().st_size,
        "target": document["target"],
        "instructions": len(document["instructions"]),
        "passed": document["passed"],
        "checks": len(document["checks"]),
        "failed_checks": sum(check["different"] > 0 for check in document["checks"]),
        **_counts(document["cases"]),
    }


def _counts(cases: dict[str, Any] | None) -> dict[str, int]:
    """Return how many cases a vector set has, and how many of them differ."""
    return {} if cases is None else {"cases": cases["count"], "different_cases": cases["different"]}


def _sentence(summary: dict[str, Any], recorded_only: bool) -> str:
    if "cases" in summary:
        which = f"{summary['different_cases']:,} of {summary['cases']:,} cases differ"
        shown, size = summary["instructions"], summary["bytes"] / 1e6
        return f"{summary['report']}: {which}, {shown} shown, {size:.1f} MB"
    checks, failed = summary["checks"], summary["failed_checks"]
    verdict = f"{failed} of {checks} checks failed" if failed else f"{checks} checks passed"
    count, size = summary["instructions"], summary["bytes"] / 1e6
    middle = "" if recorded_only else f", {verdict}"
    return f"{summary['report']}: {count} instructions{middle}, {size:.1f} MB"


# --- layouts ----------------------------------------------------------------------------------------


@verb
def explore(
    mnemonic: MnemonicOrNone = None,
    *,
    out: Annotated[NeededOut, Option(metavar="FILE.html"), "Where to write the page."] = Path(
        "explorer.html"
    ),
) -> int:
    """Write a page with the layouts of every form of every target: one HTML file that loads nothing.

    B above D and A beside it, metadata, scales and shared tiles, from element to lane and back; PTX, CuTe
    layouts and C code to copy; figures as text, CSV, Markdown and LaTeX. It opens at MNEMONIC.
    """
    made = perform(_explorer, Path("MNEMONIC"), mnemonic)
    perform(made.save, out)
    size = out.stat().st_size
    document = {"page": out.as_posix(), "bytes": size, "forms": made.forms, "opens_at": made.form}
    return deliver(document, f"{out.as_posix()}: {made.forms:,} forms, {size / 1e6:.1f} MB")


def _explorer(_: Path, mnemonic: str | None) -> Explorer:
    from ..report.explorer import explore as explorer_of

    return explorer_of(mnemonic) if mnemonic else explorer_of()
