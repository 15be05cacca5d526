"""A way to compute that no experiment lists, and what a trial makes of a device that computes so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpsim.machine.run.engines import Engine as Arithmetic


@dataclass(frozen=True, kw_only=True)
class Variation:
    """A name, an arithmetic as candidates have one, and a key.

    Two variations of one form with equal keys give the same bits for all inputs; so do a variation and a
    candidate. Keys that differ say nothing.
    """

    name: str
    arithmetic: Arithmetic
    key: Any
