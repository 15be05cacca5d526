"""Every fault of the lists is caught on forms that it concerns, or proven to be none: a sample of forms."""

from __future__ import annotations

from dataclasses import replace

import pytest

import warpsim
from tools.mutants.behaviour import Behaviour, Edit
from tools.mutants.injection import faulty_sums
from tools.mutants.page import page
from tools.mutants.trials_of_types import BEHAVIOURS, forms, try_form
from warpsim.workbench.generation.sums.limits import limits_of

MMA = "mma.sync.aligned"
SAMPLE = (  # small sets, of every class of rule: python -m tools.mutants.every_type tries all pairs of types
    (f"{MMA}.m8n8k4.row.row.f16.f16.f16.f16", "sm_70"),
    (f"{MMA}.m8n8k4.row.row.f16.f16.f16.f16", "sm_80"),
    (f"{MMA}.m8n8k4.row.col.f64.f64.f64.f64", "sm_80"),
    (f"{MMA}.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "sm_75"),
    (f"{MMA}.m8n8k16.row.col.satfinite.s32.s8.s8.s32", "sm_75"),
    (f"{MMA}.m16n8k16.row.col.f32.e5m2.e4m3.f32", "sm_90"),
)


def test_there_are_enough_faults_and_each_has_its_name():
    assert len(BEHAVIOURS) >= 150
    assert len({fault.name for fault in BEHAVIOURS}) == len(BEHAVIOURS)


def test_every_fault_concerns_some_form():
    every = [limits_of(form) for form in forms()]
    assert [fault.name for fault in BEHAVIOURS if not any(map(fault.where, every))] == []


def test_every_line_that_faults_change_is_there():
    for fault in BEHAVIOURS:
        if fault.edits and not callable(fault.edits):
            assert faulty_sums(fault.edits).summed


@pytest.mark.parametrize(("mnemonic", "target"), SAMPLE)
def test_the_default_set_of_a_form_catches_its_faults(mnemonic, target):
    verdicts = try_form(mnemonic, target)
    assert verdicts.survived == ()
    assert verdicts.contradicted == ()
    assert len(verdicts.caught) > 15


@pytest.mark.parametrize(
    ("mnemonic", "fault"),
    [
        (f"{MMA}.m16n8k32.row.col.kind::f8f6f4.f16.e3m2.e4m3.f16", "the first product is not cut"),
        (f"{MMA}.m16n8k32.row.col.kind::f8f6f4.f16.e2m1.e3m2.f16", "products of 2 and more align by"),
        (
            f"{MMA}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
            "sums of one unit vanish",
        ),
    ],
)
def test_what_once_survived_has_bins(mnemonic, fault):
    """Formats of small range, where chance alone caught these before there were bins of them."""
    verdicts = try_form(mnemonic, "sm_120a", only=fault)
    assert (len(verdicts.caught), verdicts.survived, verdicts.contradicted) == (1, (), ())


def test_an_edit_has_to_change_one_place():
    with pytest.raises(ValueError, match=r"summing\.py: 'no such line' occurs 0 times"):
        faulty_sums((Edit(module="summing", old="no such line", new=""),))


def test_what_is_no_fault_is_not_caught():
    """The same lines: it is the fault that is caught, and nothing else."""
    from tools.mutants import trials_of_types

    same = Behaviour(name="none", edits=(Edit(module="summing", old="_ALL_BITS = 38", new="_ALL_BITS = 38"),))
    kept = trials_of_types.BEHAVIOURS
    trials_of_types.BEHAVIOURS = (same, replace(same, name="read", edits=(), operands=lambda x: x))
    try:
        assert try_form(*SAMPLE[0]).survived == ("none", "read")
    finally:
        trials_of_types.BEHAVIOURS = kept


def test_the_page_counts():
    form = {"mnemonic": "mma", "target": "sm_80", "cases": 10, "caught": {"x": 3}, "proven": {"y": "why"}}
    now = [form | {"survived": []}]
    before = [form | {"caught": {}, "survived": ["x", "y"]}]
    text = page(now, before, "a command")
    assert "2 faults, 1 forms, 10 cases: 2 faults on forms, **1 caught, 1 proven to be none" in text
    assert "Before, on 1 of the forms, 1 survived." in text
    assert "- y: why (1 form)." in text


def test_forms_have_every_pair_of_types():
    pairs = {
        (form.a, form.b) for target in ("sm_75", "sm_90a", "sm_120a") for form in warpsim.instructions(target)
    }
    assert {(form.a, form.b) for form in forms()} >= pairs
