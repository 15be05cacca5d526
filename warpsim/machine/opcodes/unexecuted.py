"""Statements of PTX that are not executed here: what they need, as ptxas 13.0 has it.

What a target or version lacks is illegal; only what it has is not modelled. Knows how statements begin;
does not know their forms.
"""

from __future__ import annotations

from typing import NamedTuple

from ...isa.features import Feature


class Unexecuted(NamedTuple):
    """Statements with one beginning: the first PTX version, what they need, and why they are not executed."""

    start: str
    since: tuple[int, int]
    feature: Feature
    reason: str


_ROWS = (Unexecuted("multimem", (8, 1), Feature.MULTIMEM, "several devices are not simulated"),)
REFUSED = {row.start: row.reason for row in _ROWS}


def unexecuted(mnemonic: str) -> Unexecuted | None:
    """Return the row of a statement that is known not to be executed, None for any other."""
    return next((row for row in _ROWS if f"{mnemonic}.".startswith(f"{row.start}.")), None)
