"""Findings as users see them: by pairs of stretches of code, with the number of pairs of statements.

A race of two unrolled loops is one mistake, though many pairs of statements meet in it. A stretch is what
stands between labels and branches. Knows places in a text; does not know what findings mean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..checks.findings import LaunchFinding
from ..errors import Location
from ..machine.load.program import Module
from ..ptx.statements import Block, InstructionStatement, Label, Statement

_ENDS = frozenset({"bra", "brx", "ret", "exit"})
Place = tuple[int, int]


def grouped(found: Sequence[LaunchFinding], module: Module) -> tuple[LaunchFinding, ...]:
    """Return the first finding of each kind and pair of stretches, with the places of the others."""
    pairs = [finding for finding in found if finding.other is not None]
    if len(pairs) < 2:
        return tuple(found)
    kernels = (function.kernel for function in module.functions.values())
    starts = sorted(start for kernel in kernels for start in _starts(kernel.body or ()))
    groups: dict[Any, list[LaunchFinding]] = {}
    for finding in found:
        key: Any = id(finding)
        if finding.other is not None:
            here, there = (bisect_right(starts, _place(at)) for at in (finding.location, finding.other))
            key = finding.kind, finding.severity, here, there
        groups.setdefault(key, []).append(finding)
    return tuple(replace(first, others=tuple(map(_both, others))) for first, *others in groups.values())


def _both(finding: LaunchFinding) -> tuple[Location, Location]:
    assert finding.other is not None
    return finding.location, finding.other


def _place(location: Location) -> Place:
    return location.line, location.column


def _starts(statements: Iterable[Statement]) -> list[Place]:
    """Return where stretches begin."""
    found, fresh = list[Place](), True
    for statement in _flat(statements):
        if isinstance(statement, Label):
            fresh = True
        elif isinstance(statement, InstructionStatement):
            if fresh:
                found.append(_place(statement.location()))
            fresh = statement.opcode in _ENDS
    return found


def _flat(statements: Iterable[Statement]) -> Iterable[Statement]:
    for statement in statements:
        if isinstance(statement, Block):
            yield from _flat(statement.statements)
        else:
            yield statement
