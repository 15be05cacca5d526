"""A run: what is asked of it, and what is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..settings import Settings
from ..tally import Tally

if TYPE_CHECKING:
    from ..clients.client_modules import Modules

SOCKET_NAME = "socket"


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Programs that are served together: what is asked for, what is seen of them, and what shows calls.

    ``registered`` are modules by the name of the process, for its children.
    """

    settings: Settings
    tally: Tally
    trace: Callable[[str], object]
    registered: dict[int, Modules] = field(default_factory=dict)
