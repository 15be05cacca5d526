"""Fused sums with NumPy alone: every way to cut a batch into blocks, and metadata that is left to others.

Sums of every kind of dot are compared in test_numerics.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from warpsim.isa.formats import FORMATS, Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic import array_planes, array_sums, numerics, reference
from warpsim.sums.arithmetic.kernels.variants import SPECIAL, ZERO
from warpsim.sums.arithmetic.planes import planes
from warpsim.sums.execution.pipeline import rule_for

MNEMONICS = (
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_90a"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "sm_80"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "sm_90a"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0", "sm_120a"),
)
FORMS = [warpsim.decode(mnemonic, target=target) for mnemonic, target in MNEMONICS]
SPARSE = FORMS[3]


def operands_of(form: Instruction, cases: int = 3, rows: int = 5, columns: int = 7) -> Operands:
    """Cases of random codes, among them infinities and NaN, and as many of numbers near each other."""
    rng = np.random.default_rng(cases)

    def codes(element: Format, *shape: int) -> Any:
        near = nasty.near(element, (cases, *shape), 3, rng, middle=0 if element.bits == 32 else None)
        return np.concatenate([nasty.random_codes(element, (cases, *shape), rng), near])

    where = None
    if form.sparse:
        where = nasty.columns(form, nasty.indices(form, (2 * cases, rows), rng, ordered=False))
    scale = form.scale
    return Operands(
        product=form.product,
        a=codes(form.a, rows, form.stored_k),
        b=codes(form.b, form.shape.k, columns),
        c=codes(form.c, rows, columns),
        columns=where,
        scale_a=None if scale is None else codes(scale, rows, 1),
        scale_b=None if scale is None else codes(scale, 1, columns),
    )


@pytest.mark.parametrize("columns", [7, 4])  # more columns than cases, and more cases than columns
@pytest.mark.parametrize(("elements", "widest"), [(1, 1), (24, 5), (300, 8), (1 << 15, 1 << 12)])
@pytest.mark.parametrize("form", FORMS, ids=nasty.name)
def test_blocks_of_any_size_give_the_bits_of_the_reference(
    form: Instruction, elements: int, widest: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_sums, "_ELEMENTS", elements)
    monkeypatch.setattr(array_sums, "_WIDEST", widest)
    operands, rule = operands_of(form, columns=columns), rule_for(form)
    assert array_sums.serves(operands, rule)
    found, expected = array_sums.compute(operands, rule), reference.compute(operands, rule)
    assert found.dtype == expected.dtype
    assert not nasty.difference(form, operands, found, expected)


def test_metadata_that_names_an_element_twice_is_left_to_sums_of_integers() -> None:
    operands, rule = operands_of(SPARSE), rule_for(SPARSE)
    columns = np.array(operands.columns)
    columns[2, 1, 4] = columns[2, 1, 5]
    changed = replace(operands, columns=columns)
    assert not array_sums.serves(changed, rule)
    found = numerics.compute_uncompiled(changed, rule)
    assert not nasty.difference(SPARSE, changed, found, reference.compute(changed, rule))


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_codes_of_16_bits_are_decoded_as_planes_have_them(name: str) -> None:
    element = FORMATS[name]
    codes = np.arange(1 << 16, dtype=np.uint16)
    split = planes(codes, element)
    values, exponents = array_planes.decoded(codes.reshape(256, 256).T, element, False)
    finite = split.special == 0
    expected = np.where(split.significand == 0, ZERO, split.exponent)
    assert np.array_equal(exponents.T.reshape(-1), np.where(finite, expected, SPECIAL))
    with np.errstate(invalid="ignore"):
        exact = codes.view(element.dtype).astype(np.float32)
    found = values.T.reshape(-1)
    assert np.array_equal(found[finite].view(np.uint32), exact[finite].view(np.uint32))
    assert np.array_equal(found[~finite], exact[~finite], equal_nan=True)


def test_rules_that_are_no_fused_sums_are_left_to_others() -> None:
    form = warpsim.decode("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", target="sm_80")
    zeros: Any = {
        name: np.zeros((1, *form.matrix_shape(name)), form.format(name).code_dtype) for name in "abc"
    }
    assert not array_sums.serves(Operands(product=form.product, **zeros), rule_for(form))
