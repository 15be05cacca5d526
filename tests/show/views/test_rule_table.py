"""The numbers of every rule by chip and family: ``warpsim.rules`` and ``warpsim info --rules``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import pytest

import warpsim
from warpsim.isa.families import tcgen05
from warpsim.isa.rules import FusedSum, ScaledGroups
from warpsim.show.cli import main
from warpsim.show.views import rule_table
from warpsim.sums.rule_programs.rule_operations import Operation
from warpsim.sums.rule_programs.rule_templates import program_of
from warpsim.workbench.explanation.information import rule_on

EMULATED = warpsim.RuleRow(
    target="sm_90a",
    cards=("H100", "H200", "H20", "GH200"),
    family="mma",
    operation="f8f6f4",
    types=("e4m3", "e5m2"),
    d="f32",
    rule="EmulatedF8",
    k=32,
    length=16,
    group=1,
    steps=3,
    fraction_bits=25,
    exponent_floor=-133,
    accumulators=("f32 of 24 bits",),
    rounding=("toward zero", "to nearest even"),
    subnormals="kept",
    nan="7fffffff",
    converted="f16",
    evidence={"inferred": 16},
    chips=(),
)
NATIVE = replace(
    EMULATED,
    family="wgmma",
    rule="FusedSum",
    length=32,
    steps=1,
    fraction_bits=13,
    accumulators=("f32 of 14 bits",),
    rounding=("toward zero",),
    converted="",
    evidence={},
)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main(["info", "--rules", *arguments])
    out, err = capsys.readouterr()
    assert (caught.value.code, err) == (0, "")
    return out


@cache
def rows(target: str | None = None) -> dict[tuple[str, str, str, str], warpsim.RuleRow]:
    return {(row.family, row.operation, row.d, row.target): row for row in warpsim.rules(target)}


def test_the_record_of_a_rule() -> None:
    """fp8 of H100: emulated in f16 by mma, and summed with 13 fraction bits by wgmma."""
    found = rows("H100")
    assert found["mma", "f8f6f4", "f32", "sm_90a"] == EMULATED
    native = found["wgmma", "f8f6f4", "f32", "sm_90a"]
    assert replace(native, evidence={}, chips=()) == NATIVE
    assert list(native.evidence) == ["validated", "inferred"]
    assert native.chips == ("H100", "H200")


def test_records_of_rules_that_align_nothing() -> None:
    found = rows()
    chain = found["mma", "f64", "f64", "sm_90"]
    assert (chain.k, chain.length, chain.steps, chain.fraction_bits) == (16, 1, 16, None)
    assert chain.rounding == ("to nearest even", "toward zero", "down", "up")
    bits = found["mma", "b1", "s32", "sm_80"]
    assert (bits.length, bits.rounding, bits.subnormals, bits.nan) == (256, ("modulo 2**32",), None, None)
    software = found["mma", "m8n8k4.f16", "f16", "sm_80"]
    assert software.accumulators == ("f32 of 24 bits", "f16 of 11 bits")
    groups = found["tcgen05", "nvf4.groups_of_4", "f32", "sm_100a"]
    assert (groups.length, groups.group, groups.fraction_bits, groups.exponent_floor) == (64, 4, 35, None)


def _forms() -> Iterator[tuple[warpsim.Instruction, str]]:
    for form in (*warpsim.instructions(), *tcgen05.typical(), *tcgen05.reported()):
        yield from ((form, target) for target in form.targets)


def test_every_form_on_every_target_has_its_row() -> None:
    """The numbers read from programs are those of the rules, which are written apart from them."""
    needed = set()
    for form, target in _forms():
        row, rule = rows()[form.family.rules, form.operation, form.d.name, target], rule_on(form, target)
        needed.add((row.family, row.operation, row.d, row.target))
        assert form.stored_k <= row.k
        assert {form.a.name, form.b.name} <= set(row.types)
        assert rule.evidence.label in row.evidence
        if isinstance(rule, FusedSum):
            assert (row.length, row.steps) == (min(rule.length, row.k), rule.steps(row.k))
            assert row.accumulators == (f"{rule.output.format} of {rule.output.precision} bits",)
        if isinstance(rule, ScaledGroups):
            assert (row.length, row.group) == (row.k, rule.group)
    assert needed == set(rows())


def test_subnormal_numbers_that_are_lost() -> None:
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90a")
    program = program_of(rule_on(form, "sm_90a").bare, form.product)

    def flushed(*names: str) -> Any:
        def change(each: Operation) -> tuple[Operation, ...]:
            flushes = each.name == "read" and each.values[0] in names
            return (replace(each, given=(*each.given, "zero")) if flushes else each,)

        return rule_table._subnormals(program.rewritten(change), form.product)

    assert [flushed(), flushed("a"), flushed("a", "c")] == ["kept", "lost in A", "lost in A and C"]


def test_families_that_differ_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = printed(capsys, "--target", "h100").splitlines()
    assert header.split()[:3] == ["family", "operation", "A,"]
    assert all(line.endswith("  sm_90a (H100, H200, H20, GH200)") for line in lines[:-2])
    assert lines[-1] == (
        "sm_90a (H100, H200, H20, GH200): the bits of f8f6f4 into f32 depend on the family: mma converts to "
        "f16, sums 16 products, keeps 25 fraction bits, rounds to f32 of 24 bits; wgmma sums 32 products, "
        "keeps 13 fraction bits, rounds to f32 of 14 bits"
    )
    assert " into f16 " in lines[-2]
    assert "depend on the family" not in printed(capsys, "--target", "A100")


def test_rows_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    form = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
    document = json.loads(printed(capsys, "--json", form, "--target", "H100"))
    (row,) = document["rules"]
    assert document["errors"] == []
    expected = replace(NATIVE, types=("e4m3",), evidence={"validated": 1, "inferred": 1})
    chips = ["H100", "H200"]
    assert row == json.loads(json.dumps(asdict(expected))) | {"chips": chips}


def test_an_unknown_card() -> None:
    with pytest.raises(warpsim.IllegalInstruction, match=r"unknown target .H10.; .*; is it sm_90a\?"):
        warpsim.rules("H10")
