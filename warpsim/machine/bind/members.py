"""Members of mma batches: matrix instructions that may be executed together with their neighbours.

Knows registers by number; does not know paths or waves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple


class Member(NamedTuple):
    """One statement: ``reads`` and ``writes`` are registers.

    ``execute`` takes a wave, a path and members of one ``kind``, of which none reads or writes what another
    has written: it executes all and returns True; or nothing, where each has to be executed by itself.
    ``given`` is for it.
    """

    kind: Hashable
    reads: frozenset[int]
    writes: frozenset[int]
    given: Any
    execute: Callable[[Any, Any, Sequence[Member]], bool]


def at_once(members: Sequence[Member]) -> int:
    """Return how many members, from the first on, are of one kind and do not depend on each other."""
    written = set[int]()
    for place, member in enumerate(members):
        if member.kind != members[0].kind or not written.isdisjoint(member.reads | member.writes):
            return place
        written |= member.writes
    return len(members)
