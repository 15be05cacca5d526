"""Findings as users see them: by pairs of stretches of code or by lines of the source, with their number.

A race of two unrolled loops is one mistake, though many pairs of statements meet in it, and so is a line of
the source that reads unwritten bytes, though a compiler has unrolled it. A stretch is what stands between
labels and branches. Knows places in a text; does not know what findings mean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...base.errors import Location
from ...machine.load.program import Module
from ...observe.checks.findings import LaunchFinding
from ...ptx.statements import Block, InstructionStatement, Label, Statement

_ENDS = frozenset({"bra", "brx", "ret", "exit"})
_ALONE = frozenset({"uninitialised"})  # kinds of one statement
Place = tuple[int, int]


def grouped(found: Sequence[LaunchFinding], module: Module) -> tuple[LaunchFinding, ...]:
    """Return the first finding of each kind and place, with the places of the others."""
    if len(found) < 2:
        return tuple(found)
    pairs = sum(finding.other is not None for finding in found)
    kernels = [function.kernel for function in module.functions.values()] if pairs > 1 else []
    starts = sorted(start for kernel in kernels for start in _starts(kernel.body or ()))
    groups: dict[Any, list[LaunchFinding]] = {}
    for finding in found:
        groups.setdefault(_key(finding, starts), []).append(finding)
    return tuple(
        replace(first, others=tuple((other.location, other.other) for other in others))
        for first, *others in groups.values()
    )


def _key(finding: LaunchFinding, starts: Sequence[Place]) -> Any:
    """Return what findings of one mistake have in common."""
    if finding.other is not None and starts:
        here, there = (bisect_right(starts, _place(at)) for at in (finding.location, finding.other))
        return finding.kind, finding.severity, here, there
    if finding.kind in _ALONE and (finding.fix or finding.source is not None):
        return finding.kind, finding.severity, finding.fix or finding.source  # the fix names a variable
    return id(finding)


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
