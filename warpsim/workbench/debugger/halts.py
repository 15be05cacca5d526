"""Why a launch has stopped, and where: what every command that runs it returns.

Knows reasons; does not know how they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...base.errors import WarpsimError
from ...observe.checks.findings import LaunchFinding
from .points import Change, Hit

Kind = Literal["start", "end", "error", "breakpoint", "watch", "finding", "step", "interrupt", "time"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Stop:
    """``time`` statements have been executed; what else there is depends on the kind.

    A step that reaches the beginning of the launch or its end has the kind "start", "end" or "error".
    """

    kind: Kind
    time: int
    hit: Hit | None = None
    changes: tuple[Change, ...] = ()
    finding: LaunchFinding | None = None
    error: WarpsimError | None = None
    note: str = ""
