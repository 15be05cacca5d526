"""What device code prints, and what is said of its heap when a launch has ended.

Knows findings and texts; does not know kernels.
"""

from __future__ import annotations

import sys

from ...base.errors import Location
from ...machine.state.device_runtime import DeviceRuntime
from ...observe.checks.findings import Findings, LaunchFinding


def to_stdout(text: str) -> None:
    """Write a text where Python's own print writes; characters that stdout cannot encode are escaped."""
    stream = sys.stdout
    if stream is None:  # a process without a terminal, such as pythonw
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def note_runtime(findings: Findings, runtime: DeviceRuntime, *, temporary: bool) -> None:
    """Add notes on calls of printf that lack arguments, and on blocks that were not freed.

    A later launch may free the blocks of a device that lives on: leaks are those of a ``temporary`` device.
    """
    for location, message in runtime.remarks:
        _note(findings, "printf", message, location)
    leaks = dict[Location, list[int]]()
    for block in runtime.heap.blocks.values() if temporary else ():
        leaks.setdefault(block.location, []).append(block.allocation.size)
    for location, sizes in leaks.items():
        blocks = f"{len(sizes)} block{'s'[: len(sizes) != 1]}, {sum(sizes)} bytes"
        message = f"malloc: {blocks}, not freed at the end of the launch"
        _note(findings, "leak", message, location)


def _note(findings: Findings, kind: str, message: str, location: Location) -> None:
    finding = LaunchFinding(kind=kind, severity="note", message=message, location=location)
    findings.add((kind, location, message), finding)
