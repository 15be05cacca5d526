"""Why lanes do not go on: a barrier of the CTA, or lanes of their own warp that have not come.

Knows reasons and their words; does not know when a reason is gone (see cta_barriers.py, convergence.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...state.lanes import DivergentPath, Lanes
from ..wave import Record, Wave

Deliver = Callable[[Wave, DivergentPath, Lanes, int], None]  # the last is the number of a barrier


@dataclass(frozen=True, kw_only=True)
class BarrierWait:
    """What lanes at a barrier wait for: its number, and threads, None for all of the CTA.

    ``deliver`` is called with lanes whose barrier is complete, before they go on.
    """

    number: int
    threads: int | None
    deliver: Deliver | None = None

    def __str__(self) -> str:
        return f"barrier {self.number}" + (f" of {self.threads} threads" if self.threads else "")


@dataclass(frozen=True, kw_only=True)
class LaneWait:
    """What lanes at a statement of the whole warp wait for: the lanes that it names.

    They repeat the statement, unless those may meet them ``anywhere``: then they go on behind it. ``explain``
    says in more words what the lanes of a path wait for in a deadlock.
    """

    names: str
    anywhere: bool = False
    explain: Callable[[Wave, DivergentPath], str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.names


def waiting_record(wave: Wave, path: DivergentPath) -> Record:
    """Return the statement that lanes wait at: they continue behind it, or repeat it."""
    return wave.code[path.pc if isinstance(path.waits, LaneWait) else path.pc - 1]
