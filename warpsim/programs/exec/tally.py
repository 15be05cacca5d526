"""What a run has seen: launches by kernel, findings by kernel and source line, calls that are not there.

Knows counts and findings; does not know how they are shown (views).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...base.errors import WarpsimError
from ...observe.checks.findings import LaunchFinding
from .messages import check_document

if TYPE_CHECKING:
    from ...observe.recording.compared_copies import Copies, Spread
    from ..launch.launching import LaunchReport
    from .error_codes import CudaError
    from .streams import Conflict

_FINDING = dict.fromkeys(("kind", "severity", "message", "text", "kernel", "place"), str)
_KERNEL = {
    "kernel": str,
    "launches": int,
    "statements": int,
    "seconds": float,
    "fidelity": {str: int},
    "not_exact": {str: str},
}
_DOCUMENT = {
    "kernels": [_KERNEL],
    "findings": [{**_FINDING, "times": int}],
    "calls": {str: int},
    "not_there": [str],
    "notices": [str],
    "processes": int,
    "computed_on_cpu": {str: int},
    "copies": {"found": bool, "made": [(str, str, str, {str: [int]}, int, bool)]},
}


def _no_copies() -> Copies:
    from ...observe.recording.compared_copies import (
        Copies,  # with NumPy, which a program that launches nothing does not need
    )

    return Copies()


@dataclass
class KernelTally:
    """The launches of one kernel."""

    name: str
    launches: int = 0
    statements: int = 0
    seconds: float = 0.0
    fidelity: Counter[str] = field(default_factory=Counter)
    inferred: dict[str, str] = field(default_factory=dict)  # mnemonics, and why they are not exact


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong with the program: ``kind`` and ``severity`` as for launches; ``text`` says all.

    ``kernel`` and ``place`` are "" for findings of the host's calls.
    """

    kind: str
    severity: str
    message: str
    text: str
    kernel: str = ""
    place: str = ""


@dataclass
class Tally:
    """The whole run. ``notice`` and ``progress`` show a text at once."""

    program: str
    notice: Callable[[str], object]
    progress: Callable[[str], object]
    kernels: dict[str, KernelTally] = field(default_factory=dict)
    findings: dict[tuple[str, ...], Finding] = field(default_factory=dict)
    times: Counter[tuple[str, ...]] = field(default_factory=Counter)  # how often each was found
    calls: Counter[str] = field(default_factory=Counter)
    missing: dict[str, None] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    processes: int = 0
    on_cpu: Counter[str] = field(default_factory=Counter)  # operators of PyTorch that the CPU computed
    copies: Copies = field(default_factory=_no_copies)  # to the host
    spreads: dict[int, Spread] = field(default_factory=dict)  # of sums in them, by the number of the copy
    broken: int = 0  # calls that ended in a mistake of warpsim

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings.values())

    @property
    def calls_nothing(self) -> bool:
        """Whether no program has called a function of CUDA: there is nothing that could be wrong or right."""
        return not self.calls

    def launched(self, kernel: str, report: LaunchReport, seconds: float) -> None:
        """Count a launch."""
        tally = self.kernels.setdefault(kernel, KernelTally(kernel))
        tally.launches += 1
        tally.seconds += seconds
        tally.statements += sum(report.fidelity.counts.values())
        tally.fidelity.update(report.fidelity.counts)
        for kind in report.fidelity.classes:
            if kind.fidelity != "exact":
                tally.inferred.setdefault(f"{kind.mnemonic} ({kind.fidelity})", kind.note)
        self.hazards(kernel, report.hazards)

    def hazards(self, kernel: str, found: tuple[LaunchFinding, ...]) -> None:
        """Keep the findings of a launch, each kind and line of a kernel once."""
        for hazard in found:
            place = str(hazard.source or f"line {hazard.location.line} of the PTX")
            self.add(
                Finding(
                    kind=hazard.kind,
                    severity=hazard.severity,
                    message=hazard.message,
                    text=str(hazard),
                    kernel=kernel,
                    place=place,
                )
            )

    def fault(self, kernel: str, error: WarpsimError, name: str) -> None:
        """Keep an error that ended a launch, and what was found before it."""
        self.hazards(kernel, tuple(found for found in error.earlier if isinstance(found, LaunchFinding)))
        error.earlier = ()
        location = error.location
        place = "" if location is None else str(location.source or f"line {location.line} of the PTX")
        message = f"cudaError{name}: {error.message}"
        text = error.render() if location is None else f"{location}: error: {message}\n{location.excerpt()}"
        self.add(Finding(kind=name, severity="error", message=message, text=text, kernel=kernel, place=place))

    def call_failed(self, function: str, error: CudaError) -> None:
        """Keep an error of a call of the host that says why."""
        text = f"{function}: cudaError{error.name}: {error.why}"
        self.add(
            Finding(kind="call", severity="error", message=text, text=text, place=f"{function} {error.name}")
        )

    def host_finding(self, kind: str, severity: str, place: str, message: str) -> None:
        """Keep a finding of a call of the host."""
        self.add(Finding(kind=kind, severity=severity, message=message, text=message, place=place))

    def stream_race(self, conflict: Conflict, place: str) -> None:
        """Keep a race of two streams."""
        first, second = sorted((conflict.first.label, conflict.second.label))
        message = (
            f"{conflict.second.label} and {conflict.first.label} both access {place}; no event, "
            "synchronisation or stream order separates them"
        )
        self.host_finding("stream race", "error", f"{first} {second}", message)

    def add(self, finding: Finding) -> None:
        """Keep a finding, the first of its kind, kernel and place."""
        key = _key(finding)
        self.times[key] += 1
        if key not in self.findings:
            self.findings[key] = finding

    def compare(self, other: Tally, schedule: str) -> None:
        """Take the findings of the same program under another schedule, and what it left that differs."""
        for finding in other.findings.values():
            self.add(finding)
        from ...observe.recording.compared_copies import spread_of

        mine, others = self.copies.in_order(), other.copies.in_order()
        depends = set[bool]()
        for place, (first, second) in enumerate(zip(mine, others, strict=False), 1):
            if first.digest == second.digest:
                continue
            spread = spread_of(first, second)
            if spread is not None and not depends:
                self._note_spread(place, spread)
            elif spread is None and first.shared not in depends:
                depends.add(first.shared)  # what follows the first may follow from it
                self._depends(place, schedule)
        if not depends and len(mine) != len(others):
            message = f"{len(mine)} copies to the host, and {len(others)} under {schedule}"
            self.host_finding("schedule", "error", "number of copies to the host", message)

    def _depends(self, place: int, schedule: str) -> None:
        """Add the finding of a copy that has other bytes under another schedule."""
        message = (
            f"{self.copies.text(place)} gives other bytes under --schedule {schedule}: "
            "the result depends on an order that nothing makes"
        )
        if self.copies.found:
            message += ", or on sums of floats that several threads add to one address"
        shared = self.copies.in_order()[place - 1].shared
        where = "memory that the host reads" if shared else "copies to the host"
        self.host_finding("schedule", "error", where, message)

    def _note_spread(self, place: int, spread: Spread) -> None:
        """Note between which bounds the sums of a copy lie, over all schedules so far."""
        from ...observe.recording.compared_copies import OPEN

        self.spreads[place] = self.spreads[place].widen(spread) if place in self.spreads else spread
        message = (
            f"{self.copies.text(place)} depends on the order that the schedule chose in "
            f"{self.spreads[place]}: {OPEN}"
        )
        where = f"sums in copy {place}"
        self.findings.pop(("schedule", "note", "", where), None)
        self.host_finding("schedule", "note", where, message)

    def say(self, text: str) -> None:
        """Show a text at once, and only the first time."""
        if text not in self.notices:
            self.notices.append(text)
            self.notice(text)

    def lacking(self, function: str, why: str = "") -> None:
        """Note a function that is not there."""
        if function not in self.missing:
            self.missing[function] = None
            reason = f"; {why}" if why else ""
            self.say(f'{function} is not there: it returns "not supported"{reason}')

    def take(self, document: dict[str, Any]) -> None:
        """Take what another process has seen: its document, with ``copies``. Raises ValueError."""
        check_document(document, _DOCUMENT)
        for each in document["kernels"]:
            self.kernels[each["kernel"]] = KernelTally(
                name=each["kernel"],
                launches=each["launches"],
                statements=each["statements"],
                seconds=each["seconds"],
                fidelity=Counter(each["fidelity"]),
                inferred=each["not_exact"],
            )
        for each in document["findings"]:
            often = each["times"]
            finding = Finding(**{name: each[name] for name in _FINDING})
            self.add(finding)
            self.times[_key(finding)] = often
        self.calls.update(document["calls"])
        self.missing.update(dict.fromkeys(document["not_there"]))
        self.notices += document["notices"]
        self.processes += document["processes"]
        self.on_cpu.update(document["computed_on_cpu"])
        self.copies.take(document["copies"])

    def whole_document(self) -> dict[str, Any]:
        """Return what ``take`` takes."""
        return {**self.document(), "copies": self.copies.document()}

    def document(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        kernels = [
            {
                "kernel": tally.name,
                "launches": tally.launches,
                "statements": tally.statements,
                "seconds": round(tally.seconds, 4),
                "fidelity": dict(tally.fidelity),
                "not_exact": tally.inferred,
            }
            for tally in self.kernels.values()
        ]
        findings = [{**vars(finding), "times": self.times[key]} for key, finding in self.findings.items()]
        return {
            "program": self.program,
            "processes": self.processes,
            "computed_on_cpu": dict(self.on_cpu.most_common()),
            "kernels": kernels,
            "findings": findings,
            "calls": dict(self.calls.most_common()),
            "not_there": list(self.missing),
            "notices": self.notices,
        }


def _key(finding: Finding) -> tuple[str, ...]:
    """Return by what findings are the same."""
    return (finding.kind, finding.severity, finding.kernel, finding.place)
