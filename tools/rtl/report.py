"""The tables that a run prints, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .bins import BINS, NAMES
from .configuration import Configuration
from .coverage import Coverage, Tally, telling
from .faults import FAULTS, Fault


@dataclass(frozen=True, kw_only=True)
class Result:
    """One simulation: what was built, what came of it, and whether every reachable bin should be hit."""

    configuration: Configuration
    coverage: Coverage
    whole: bool

    def complaints(self) -> Iterator[str]:
        """Yield what is not as it should be: wrong sums, bins missed, bins that were called unreachable."""
        coverage, sound = self.coverage, self.coverage.tallies[0]
        if sound.wrong:
            yield f"{sound.wrong:,} of {coverage.clocks:,} sums are wrong, first {sound.first}"
        for place in BINS:
            reason = place.unreachable(self.configuration)
            if reason and coverage.bins[place.name]:
                yield f"bin {place.name!r} was hit, but is held to be unreachable: {reason}"
            if self.whole and not reason and not coverage.bins[place.name]:
                yield f"bin {place.name!r} was missed"
        for name, tally in zip(coverage.units[1:], coverage.tallies[1:], strict=True):
            if not tally.wrong:
                yield f"fault {name!r} was not caught"


def summary(result: Result) -> list[str]:
    """One configuration: its parameters and how it did."""
    configuration, coverage = result.configuration, result.coverage
    unreachable = sum(bool(place.unreachable(configuration)) for place in BINS)
    hit = sum(name in coverage.bins for name in NAMES)
    parameters = configuration.parameters
    numbers = ", ".join(
        f"{name} {parameters[name]}" for name in ("L", "F", "EXPONENT_FLOOR", "PRECISION", "NEAREST")
    )
    return [
        str(configuration),
        f"  {numbers}, {configuration.clocks} clock{'s' * (configuration.clocks > 1)} a dot product",
        f"  {coverage.clocks:,} sums, {coverage.tallies[0].wrong:,} wrong; "
        f"{hit} of {len(BINS) - unreachable} reachable bins hit, {unreachable} unreachable",
        *(f"  {complaint}" for complaint in result.complaints()),
    ]


def coverage_table(results: Sequence[Result]) -> list[str]:
    """Return sums in every bin, a column a configuration; the bins that one cannot reach, with the reason."""
    rows = [
        [place.name, *(_count(result, place.name) for result in results)]
        for place in BINS
        if not all(place.unreachable(result.configuration) for result in results)
    ]
    return [
        "coverage: sums in each bin (- is unreachable)",
        *_table(["", *_names(results)], rows),
        "",
        *_reasons(results),
    ]


def _count(result: Result, name: str) -> str:
    return "-" if NAMES[name].unreachable(result.configuration) else f"{result.coverage.bins[name]:,}"


def _reasons(results: Sequence[Result]) -> list[str]:
    lines = ["unreachable"]
    for result in results:
        grouped: dict[str, list[str]] = {}
        for place in BINS:
            if reason := place.unreachable(result.configuration):
                grouped.setdefault(reason, []).append(place.name)
        lines.append(f"  {result.configuration.name}")
        lines += [f"    {reason}: {_listed(names)}" for reason, names in grouped.items()]
    return lines


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names) if len(names) < 4 else f"{names[0]} and {len(names) - 1} more"


def fault_table(results: Sequence[Result]) -> list[str]:
    """In how many of the units that can show it each fault was caught, and the bin that tells it best."""
    rows = [_fault_row(fault, results) for fault in FAULTS]
    caught, shown = (sum(int(row[1].split(" of ")[place]) for row in rows) for place in (0, 1))
    head = f"faults: {caught} of {shown} caught ({len(FAULTS)} faults, where a unit can show them)"
    return [head, *(_padded(row, rows) for row in rows)]


def _fault_row(fault: Fault, results: Sequence[Result]) -> list[str]:
    showing = [result for result in results if not fault.unseen(result.configuration)]
    tallies = [(result, _tally_of(fault, result.coverage)) for result in showing]
    tellings = [(*telling(tally)[0], result) for result, tally in tallies if tally.wrong]
    if not tellings:
        return [fault.name, f"0 of {len(showing)}", ""]
    _, name, wrong, seen, result = max(tellings, key=lambda entry: entry[0])
    best = f"{name} ({wrong} of {seen} wrong, {result.configuration.name})"
    return [fault.name, f"{len(tellings)} of {len(showing)}", best]


def _tally_of(fault: Fault, coverage: Coverage) -> Tally:
    return coverage.tallies[coverage.units.index(fault.name)]


def _padded(row: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"  {row[0].ljust(max(len(other[0]) for other in rows))}  {row[1]}  {row[2]}".rstrip()


def _names(results: Sequence[Result]) -> list[str]:
    return [result.configuration.name for result in results]


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in (heading, *rows)) for place in range(len(heading))]
    return [
        "  "
        + "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in (heading, *rows)
    ]
