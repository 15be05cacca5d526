"""Words that a B200 gave for tcgen05.mma, as others published them, reproduced bit for bit.

sf-tensor/tcgen05 (MIT), tcgen05_model/validation.py, commit 6f19f22: inputs and D of single elements. They
are not part of this repository: where they are not found beside it, these tests are skipped.
"""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.base.errors import OperandError
from warpsim.isa.descriptors.instruction_descriptor import InstructionDescriptor
from warpsim.isa.families.tcgen05 import with_numerics
from warpsim.isa.products import Operands
from warpsim.sums.execution.logical_matrices import Matrices, matrix_operands
from warpsim.sums.execution.pipeline import execute_operands, rule_for
from warpsim.workbench.explanation.explain import explain_matrices
from warpsim.workbench.generation.sums.summing import summed

BESIDE = Path(__file__).resolve().parents[3].parent / "shared" / "hw"
WORDS = Path(os.environ.get("WARPSIM_CHIP_OUTPUTS", BESIDE)) / "B200_tcgen05.json"
VECTORS = json.loads(WORDS.read_text())["vectors"] if WORDS.exists() else []
F8F6F4 = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
FORMS: dict[
    str, tuple[str, dict[str, int]]
] = {  # by kind: mnemonic behind the CTAs, fields of the descriptor
    "tf32": ("kind::tf32", {"a_type": 2, "b_type": 2, "d_type": 1}),
    "bf16": ("kind::f16", {"a_type": 1, "b_type": 1, "d_type": 1}),
    "f16": ("kind::f16", {"d_type": 1}),
    **{
        name: ("kind::f8f6f4", {"a_type": code, "b_type": code, "d_type": 1}) for name, code in F8F6F4.items()
    },
    "mx-e2m1": ("kind::mxf8f6f4.block_scale", {"a_type": 5, "b_type": 5, "scale_type": 1}),
    "mxf4": ("kind::mxf4.block_scale.block32", {"a_type": 1, "b_type": 1, "scale_type": 1}),
    "mxf4nvf4-2x": ("kind::mxf4nvf4.block_scale.block32", {"a_type": 1, "b_type": 1, "scale_type": 1}),
    "mxf4nvf4-4x": ("kind::mxf4nvf4.block_scale.block16", {"a_type": 1, "b_type": 1, "scale_type": 1}),
    "nvfp4": ("kind::mxf4nvf4.block_scale.block16", {"a_type": 1, "b_type": 1, "scale_type": 0}),
}


def form_of(vector: dict[str, Any]) -> Any:
    signs = {"u8": 0, "s8": 1}
    modifiers, fields = FORMS.get(vector["kind"], ("kind::i8", {}))
    if vector["kind"] == "i8":
        types = {"a_type": signs[vector["at"]], "b_type": signs[vector["bt"]]}
        fields = {**types, "d_type": 2, "saturate": vector["sat"]}
    kind = modifiers.split(".")[0].removeprefix("kind::")
    word = InstructionDescriptor(kind=kind, m=128, n=8, **fields).encode()
    return warpsim.decode(f"tcgen05.mma.cta_group::1.{modifiers}", target="sm_100a", idesc=word)


def operands_of(vector: dict[str, Any], form: Any) -> Operands:
    """One row of A, one column of B, one element of C."""
    shift = 16 if vector["kind"] == "bf16" else 0

    def codes(name: str, dtype: Any) -> Any:
        return (np.array(vector[name], np.uint32) >> np.uint32(shift * (name in "ab"))).astype(dtype)

    scales = {}
    if form.scale is not None:
        scales = {
            "scale_a": codes("sa", np.uint8)[None, None],
            "scale_b": codes("sb", np.uint8)[None, :, None],
        }
    return Operands(
        product=form.product,
        a=codes("a", form.a.code_dtype)[None, None],
        b=codes("b", form.b.code_dtype)[None, :, None],
        c=codes("c", np.uint32)[None, None, None].astype(form.c.code_dtype),
        **scales,
    )


@pytest.mark.skipif(not VECTORS, reason="the published words are not here")
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_published_words(engine: Any) -> None:
    different = []
    for vector in VECTORS:
        form = form_of(vector)
        d = execute_operands(operands_of(vector, form), rule_for(form), engine)
        if int(d.ravel()[0]) != vector["d"]:
            different.append(vector["name"])
    assert (len(VECTORS), different) == (58, [])


@pytest.mark.skipif(not VECTORS, reason="the published words are not here")
def test_published_words_of_nvfp4_tell_no_groups_apart() -> None:
    """Groups of 4 give all four words too, that of a carry among them."""
    chosen = [vector for vector in VECTORS if vector["kind"] == "nvfp4"]
    assert len(chosen) == 4
    for vector in chosen:
        form = with_numerics(form_of(vector), "groups_of_4")
        d = execute_operands(operands_of(vector, form), rule_for(form))
        assert int(d.ravel()[0]) == vector["d"], vector["name"]


# --- nvfp4: groups of 16 or of 4 ---------------------------------------------------------------------

NVFP4 = ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", 0x08020480)  # 128 x 8, ue4m3


def decoded(numerics: str | None = None) -> Any:
    return warpsim.decode(NVFP4[0], target="sm_100a", idesc=NVFP4[1], numerics=numerics)


def operands(seed: int, scales: tuple[int, ...], c_exponents: tuple[int, int]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    exponent = rng.integers(*c_exponents, (128, 8)) + 127
    c = rng.integers(0, 1 << 23, (128, 8)) | exponent << 23 | rng.integers(0, 2, (128, 8)) << 31
    return {
        "A": rng.integers(0, 16, (128, 64)).astype(np.uint8),
        "B": rng.integers(0, 16, (64, 8)).astype(np.uint8),
        "C": c.astype(np.uint32),
        "scale_a": rng.choice(scales, (128, 4)).astype(np.uint8),
        "scale_b": rng.choice(scales, (4, 8)).astype(np.uint8),
    }


def by_fractions(given: dict[str, Any], row: int, column: int, *, group: int) -> int:
    """D by exact fractions: groups of 4 as the model of sf-tensor/tcgen05 states them (MODEL.md, 5)."""

    def e2m1(code: int) -> tuple[Fraction, int]:
        exponent = max(code >> 1 & 3, 1) - 1
        magnitude = Fraction(code & 1 | (2 if code >> 1 & 3 else 0), 2) * Fraction(2) ** exponent
        return (-magnitude if code & 8 else magnitude), exponent

    def ue4m3(code: int) -> tuple[Fraction, int]:
        exponent = max(code >> 3 & 15, 1) - 7
        return Fraction(code & 7 | (8 if code >> 3 & 15 else 0), 8) * Fraction(2) ** exponent, exponent

    word = int(given["C"][row, column])
    c = Fraction(struct.unpack("<f", struct.pack("<I", word))[0])
    of_c = (word >> 23 & 255) - 127
    terms, tops, pairs = [], [], []
    for k in range(64):
        factors = [e2m1(int(given["A"][row, k])), e2m1(int(given["B"][k, column]))]
        scales = [ue4m3(int(given["scale_a"][row, k // 16])), ue4m3(int(given["scale_b"][k // 16, column]))]
        value = math.prod(part for part, _ in factors + scales)
        terms.append(value)
        if value:
            pairs.append(sum(exponent for _, exponent in scales))
            tops.append(pairs[-1] + sum(exponent for _, exponent in factors))
    if not tops or of_c >= max(tops):
        unit, group = of_c - 35, 16
    else:
        unit = max(max(*tops, of_c) - 39, max(pairs) - 35)
    parts = [c, *(sum(terms[first : first + group], Fraction(0)) for first in range(0, 64, group))]
    total = sum(math.trunc(part / Fraction(2) ** unit) for part in parts) * Fraction(2) ** unit
    nearest = np.float32(float(total))  # exact: fewer than 53 bits
    if abs(Fraction(float(nearest))) > abs(total):
        nearest = np.nextafter(nearest, np.float32(0))
    return int(nearest.view(np.uint32)) if nearest else 0


@pytest.mark.parametrize("c_exponents", [(-40, 20), (-4, 3), (18, 24)])
def test_groups_of_4_by_fractions(c_exponents: tuple[int, int]) -> None:
    given = operands(1, (1, 2, 3, 8, 0x70, 0x7E, 0x38), c_exponents)
    d = warpsim.matmul(decoded("groups_of_4"), *given.values()).view(np.uint32)
    slow = warpsim.matmul(decoded("groups_of_4"), *given.values(), engine="reference").view(np.uint32)
    np.testing.assert_array_equal(d, slow)
    for row in range(0, 128, 5):
        for column in range(8):
            assert int(d[row, column]) == by_fractions(given, row, column, group=4), (row, column)


def test_the_separating_experiment() -> None:
    """Half of the scales tiny, half huge, and sums that cancel: some outputs part; moderate scales never."""
    ours, theirs = decoded(), decoded("groups_of_4")
    assert warpsim.evidence(theirs).label == "inferred"
    parted = {"extreme": 0, "moderate": 0}
    scales = {"extreme": (1, 2, 3, 0x79, 0x7C, 0x7E), "moderate": tuple(range(0x28, 0x50))}
    for name, chosen in scales.items():
        for seed in range(40):
            given = operands(seed, chosen, (-30, 3))
            d, e = (warpsim.matmul(form, *given.values()).view(np.uint32) for form in (ours, theirs))
            parted[name] += int((d != e).sum())
    assert parted["moderate"] == 0
    assert parted["extreme"] > 0


def test_other_instructions_have_their_usual_numerics() -> None:
    with pytest.raises(OperandError, match="has none but the usual"):
        warpsim.decode(NVFP4[0], idesc=NVFP4[1] | 1 << 23, numerics="groups_of_4")
    with pytest.raises(OperandError, match="has one rule, its usual"):
        warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", numerics="groups_of_4")


@pytest.mark.parametrize("c_exponents", [(-40, 20), (-4, 3), (18, 24)])
def test_the_sums_of_coverage_and_the_explanation_agree(c_exponents: tuple[int, int]) -> None:
    form = decoded("groups_of_4")
    given = operands(9, (1, 2, 3, 8, 0x70, 0x7E, 0x38), c_exponents)
    whole = matrix_operands(form, Matrices(*given.values()), literal=False)
    arrays = ("a", "b", "c", "scale_a", "scale_b")
    batch = replace(whole, **{name: getattr(whole, name)[None] for name in arrays})
    d = warpsim.matmul(form, *given.values()).view(np.uint32)
    np.testing.assert_array_equal(summed(batch, rule_for(form)).code[0].astype(np.uint32), d)
    explained = explain_matrices(form, 77, 5, *given.values())
    assert explained.steps[-1].code == int(d[77, 5])
    given["C"][77, 5] = 0x7F800000
    assert explain_matrices(form, 77, 5, *given.values()).steps[-1].code == 0x7F800000
