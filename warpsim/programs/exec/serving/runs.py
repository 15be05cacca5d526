"""A run: what is asked of it, and what is seen."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..settings import Settings
from ..tally import Tally

if TYPE_CHECKING:
    from ..clients.client_modules import Modules

SOCKET_NAME = "socket"
LONGEST_PATH = 107  # bytes of the name of a socket on Linux


def has_short_name(folder: Path) -> bool:
    """Return whether Linux takes the name of a socket in a folder."""
    return len(os.fsencode(folder / SOCKET_NAME)) <= LONGEST_PATH


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Programs that are served together: what is asked for, what is seen of them, and what shows calls.

    ``registered`` are modules by the name of the process, for its children.
    """

    settings: Settings
    tally: Tally
    trace: Callable[[str], object]
    registered: dict[int, Modules] = field(default_factory=dict)
