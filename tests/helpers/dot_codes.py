"""Dot products as programs of rules take them, and every arithmetic: also one that is in no list of forms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import warpsim
from tests.helpers import nasty
from warpsim.isa.instruction import Instruction

# A rule that must be asked for is in no list of forms: nvfp4 of tcgen05, 128 x 8, in groups of 4.
QUADS = warpsim.decode(
    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16",
    target="sm_100a",
    idesc=0x08020480,
    numerics="groups_of_4",
)
ARITHMETICS = (*nasty.arithmetics(), QUADS)


def codes_of(instruction: Instruction, dots: nasty.Dots) -> Iterator[dict[str, list[int]]]:
    """Dot by dot: codes in stored order, each scale for the stored columns of its chunk."""
    width = instruction.stored_k // instruction.scale_chunks if instruction.scale else 0
    for at in range(len(dots)):
        codes = {"a": dots.a[at].tolist(), "b": dots.b[at].tolist(), "c": [int(dots.c[at])]}
        for side in "ab" if width else "":
            codes[f"scale_{side}"] = np.repeat(getattr(dots, f"scale_{side}")[at], width).tolist()
        yield codes
