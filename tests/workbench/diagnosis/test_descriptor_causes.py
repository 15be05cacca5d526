"""Wrong fields of matrix descriptors, named by the value that makes the output right."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.mistakes.launches.kernels import KERNELS, compiled
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.verdicts.descriptor_causes import _candidates

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


EXCHANGED = "LBO and SBO of the descriptor are exchanged"


@needs_nvcc
@pytest.mark.parametrize(
    ("mistake", "operand", "told"),
    [  # two stages of k: in 1 bit 14 of the second start address is lost; in 8 the second wgmma of the
        # text is executed only with another descriptor
        (8, "b", "the swizzle of the descriptor is 128B where none fits"),
        (1, "a", "the start address in the descriptor is in bytes, not in units of 16: >> 4 is missing"),
        (
            5,
            "b",
            "LBO and SBO of the descriptor are exchanged: LBO 1024, SBO 128 where LBO 128, SBO 1024 fit",
        ),
        (6, "b", "SBO of the descriptor is 512 where 1024 fits"),
    ],
)
def test_the_field_is_named(mistake: int, operand: str, told: str) -> None:
    prepared = KERNELS["warpgroup"]()
    kernel = load_text(compiled("warpgroup", mistake), "warpgroup.ptx")["warpgroup"]
    arguments: list[Any] = [np.ascontiguousarray(matrix[:64, :128]) for matrix in prepared.arguments[:2]]
    D = arguments[0].astype(np.float32) @ arguments[1].astype(np.float32).T
    arguments += [np.zeros((64, 64), np.float32), 64, 128]
    found = warpsim.why(kernel, 1, 128, arguments, {2: D}, 1e-2)
    which = "operands a and b" if mistake == 1 else f"operand {operand}"
    assert found.cause == f"{which} of the matrix instruction: {told}"
    assert found.operand == operand
    assert found.location is not None
    assert found.location.quoted().startswith("%rd")


def test_candidates_change_a_field_and_nothing_else() -> None:
    word = Descriptor(start_address=0x400, leading_byte_offset=128, stride_byte_offset=512).encode()
    seen = {}
    for candidate in _candidates({7: word, 9: word + 2}):
        changed = candidate.change(9, word + 2, 0)
        assert changed != word + 2 or "in bytes" in candidate.message, candidate.message  # 0x420 is none
        seen[candidate.message] = Descriptor.decode(changed)
    assert (
        str(seen["SBO of the descriptor is 512 where 1024 fits"])
        == "start 0x0420, LBO 128, SBO 1024, swizzle none"
    )
    (steps,) = (value for message, value in seen.items() if "to step where 64 fit" in message)
    assert steps.start_address == 0x440
