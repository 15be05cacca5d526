"""Statements that PTX has and nobody executes here: what they need, as ptxas 13.0 has it.

What a target or version lacks is illegal, and only what it has is not modelled. Knows how statements begin;
does not know their forms.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_HOPPER, _BLACKWELL = r"sm_(9\d|1\d\d)[af]?", r"sm_1\d\d[af]?"


class _Needs(NamedTuple):
    """What statements need that begin so: the first PTX version, and targets, as a pattern and in words."""

    start: str
    since: tuple[int, int]
    targets: str
    words: str


_NEEDS = (
    _Needs("tcgen05", (8, 6), r"sm_1[01]\d[af]", "sm_100a, or another of sm_10xa and sm_11xa"),
    _Needs("multimem", (8, 1), _HOPPER, "sm_90 or higher"),
    _Needs("clusterlaunchcontrol", (8, 6), _BLACKWELL, "sm_100 or higher"),
    _Needs("st.bulk", (8, 6), _BLACKWELL, "sm_100 or higher"),
)


def lacking(mnemonic: str, target: str, version: tuple[int, int]) -> str | None:
    """What a target or PTX version lacks for a statement that nobody executes; None for nothing."""
    for one in _NEEDS:
        if not f"{mnemonic}.".startswith(f"{one.start}."):
            continue
        if not re.fullmatch(one.targets, target):
            return f"{mnemonic} is not on {target}: it needs {one.words}"
        if version < one.since:
            needed, given = (".".join(map(str, each)) for each in (one.since, version))
            return f"{mnemonic} needs PTX {needed}, but the version is {given}"
    return None
