"""What is exact and what is inferred, statement by statement: the labels of the tables, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.machine.opcodes import exactness, forms_of
from warpsim.machine.opcodes.floating import approximate

LABELS = {
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16": "exact",
    "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16": "exact",
    "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8": "inferred",
    "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32": "exact",
    "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16": "exact",
    "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8": "inferred",
    "movmatrix.sync.aligned.m8n8.trans.b16": "exact",
    "add.rn.ftz.f16": "exact",
    "sub.ftz.f16x2": "exact",
    "mul.rn.f16": "exact",
    "mul.rn.ftz.f16": "inferred",
    "fma.rn.ftz.f16": "inferred",
    "fma.rn.oob.f16": "inferred",
    "sqrt.rn.ftz.f32": "exact",
    "div.rn.f32": "exact",
    "div.rn.ftz.f32": "inferred",
    "rcp.rn.f64": "inferred",
    "ex2.approx.f32": "approximate",
}


@pytest.mark.parametrize("mnemonic", LABELS)
def test_labels(mnemonic: str) -> None:
    opcode, *modifiers = mnemonic.split(".")
    labels = {exactness(row, choice)[0] for row, choice in forms_of(opcode, tuple(modifiers))}
    assert labels == {LABELS[mnemonic]}


@pytest.mark.parametrize(
    ("exact", "upper"),
    [
        (0x3FF00001_80000000, 0x3FF00002),  # ties go to the even one
        (0x3FF00002_80000000, 0x3FF00002),
        (0x3FF00002_80000001, 0x3FF00003),
        (0x3FF00001_7FFFFFFF, 0x3FF00001),
    ],
)
def test_upper_words_are_rounded_to_nearest_even(exact: int, upper: int) -> None:
    compute = approximate._upper_word(lambda values: np.full_like(values, np.uint64(exact).view(np.float64)))
    assert compute(np.zeros(2, np.uint64)).tolist() == [upper << 32] * 2
