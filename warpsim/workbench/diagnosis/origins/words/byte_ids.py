"""Findings on scales that a byte id reads by mistake, folded: one sentence for all statements and operands.

One word of scales serves several k steps by byte id; a byte id that is not changed is one mistake in as many
statements. Knows findings; does not look for any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..packing_checks import OtherByte, PackingFinding
from .word_places import NAMES


def folded_byte_ids(found: Sequence[PackingFinding]) -> list[PackingFinding]:
    """Return findings in their order, with the same sentence for all steps that read one byte of words in
    which other bytes are theirs; for A and B alike where the same is true of both.
    """
    groups: dict[tuple[str, int, int], set[tuple[int, int]]] = {}
    for finding in found:
        if byte := finding.byte:
            groups.setdefault((finding.operand, *_held(byte)), set()).add((byte.used, byte.own))
    return [
        replace(finding, message=_message(finding.operand, finding.byte, groups))
        if finding.byte is not None
        else finding
        for finding in found
    ]


def _held(byte: OtherByte) -> tuple[int, int]:
    return byte.held, byte.read


def _message(operand: str, byte: OtherByte, groups: dict[tuple[str, int, int], set[tuple[int, int]]]) -> str:
    """Return the sentence of all steps that hold the same."""
    own = groups[operand, *_held(byte)]
    both = all(groups.get((role, *_held(byte))) == own for role in ("scale_a", "scale_b"))
    name = "scales of A and B" if both else NAMES[operand]
    steps, ids = sorted({used for used, _ in own}), sorted({at for _, at in own})
    verb = "has" if len(ids) == 1 else "have"
    return (
        f"{name} of k step {byte.held} are used in k step{_several(steps)}: byte id {byte.read} is read, "
        f"where byte id{_several(ids)} of the same words {verb} the right scales"
    )


def _several(numbers: Sequence[int]) -> str:
    return "s"[: len(numbers) > 1] + " " + ", ".join(map(str, numbers))
