"""The report of a run of host programs, as text: launches by kernel, findings once each, how exact it was.

Knows a tally; prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...base.text_columns import words
from ...programs.exec.serving.suites import ProgramResult
from ...programs.exec.tally import Finding, KernelTally, Tally
from ...programs.launch.fidelity import LABELS, SCHEDULED

_LONGEST = 60  # characters of a kernel's name
_MOST_OPERATORS = 6  # of PyTorch that are named
_SEVERITIES = ("error", "warning", "note")


def summary_lines(tally: Tally, chip: str) -> Iterator[str]:
    """Yield the lines of the report."""
    kernels = list(tally.kernels.values())
    launches = sum(kernel.launches for kernel in kernels)
    counts = f"{_count_text(launches, 'launch')} of {_count_text(len(kernels), 'kernel')}"
    yield f"warpsim exec: {tally.program} on {chip}: {counts}"
    if tally.calls_nothing:
        yield "no function of CUDA was called: the program does not use CUDA, or not by its shared libraries"
    if kernels:
        yield from _table(kernels)
        yield from _fidelity(kernels)
    if tally.on_cpu:
        yield from _computed_on_cpu(tally)
    found = [
        _count_text(sum(finding.severity == severity for finding in tally.findings.values()), severity)
        for severity in _SEVERITIES
    ]
    yield f"findings: {', '.join(found)}"
    for severity in _SEVERITIES:
        for key, finding in tally.findings.items():
            if finding.severity == severity:
                yield from _finding(finding, tally.times[key])
    if tally.missing:
        yield f"not there: {', '.join(tally.missing)}"


def suite_lines(results: Sequence[ProgramResult], chip: str) -> Iterator[str]:
    """Yield the lines of the report of a folder."""
    failed = sum(result.code != 0 for result in results)
    yield f"warpsim exec: {_count_text(len(results), 'program')} on {chip}, {failed} failed"
    head = ("program", "exit code", "launches", "errors", "warnings", "seconds")
    rows: list[tuple[str, ...]] = [head]
    for result in results:
        counts = (result.launches, result.count("error"), result.count("warning"))
        rows.append((result.name, result.ending, *map(str, counts), f"{result.seconds:.1f}"))
    yield from (f"  {line}" for line in words(rows))


def _count_text(number: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{number} {what}{plural if number != 1 else ''}"


def shortened(name: str) -> str:
    """Return the name of a kernel, its end cut off where it is long."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def _table(kernels: list[KernelTally]) -> Iterator[str]:
    rows = [("kernel", "launches", "statements", "seconds")]
    for kernel in sorted(kernels, key=lambda kernel: -kernel.seconds):
        rows.append(
            (shortened(kernel.name), str(kernel.launches), f"{kernel.statements:,}", f"{kernel.seconds:.2f}")
        )
    yield from (f"  {line}" for line in words(rows))


def _fidelity(kernels: list[KernelTally]) -> Iterator[str]:
    totals = {label: sum(kernel.fidelity[label] for kernel in kernels) for label in LABELS}
    shown = (f"{count:,} {label}" for label, count in totals.items() if count or label != SCHEDULED)
    yield f"fidelity: {', '.join(shown)}"
    notes = {name: note for kernel in kernels for name, note in kernel.inferred.items()}
    yield from (f"  {name}: {note}" for name, note in notes.items())


def _computed_on_cpu(tally: Tally) -> Iterator[str]:
    """Yield what the chip has not computed, the most frequent first."""
    counts = [f"{name} {times}" for name, times in tally.on_cpu.most_common(_MOST_OPERATORS)]
    more = len(tally.on_cpu) - len(counts)
    rest = f", and {more} others" if more else ""
    total = _count_text(tally.on_cpu.total(), "operator")
    yield f"computed by PyTorch on the CPU, not by the chip: {total}: {', '.join(counts)}{rest}"


def _finding(finding: Finding, times: int) -> Iterator[str]:
    often = f"{times} times" if times > 1 else ""
    where = ", ".join(filter(None, (shortened(finding.kernel), finding.place, often)))
    yield f"{finding.severity}: {finding.kind}: {where}"
    yield from (f"  {line}" for line in finding.text.splitlines())
