"""The long comparison of golden models in C: kinds of dot products, every pair of codes, wrong models."""

from __future__ import annotations

from pathlib import Path

import pytest

import warpsim
from tests.workbench.models.test_golden_models import needs_cc
from tools.soak.models import MACHINES, compare, compiled, every_pair, lines, source_of
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs.rule_templates import program_of

F4 = warpsim.decode(
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    target="sm_120a",
)
HERE = {name: machine for name, machine in MACHINES.items() if machine.is_here()}


@needs_cc
def test_a_model_and_a_wrong_model(tmp_path: Path) -> None:
    """On every machine that is here: compilers with both sanitizers, 32 bits, big endian."""
    program = program_of(rule_for(F4).bare, F4.product)
    text, models = source_of(program), {}
    for name, machine in HERE.items():
        (tmp_path / name).mkdir()
        models[name] = compiled(text, tmp_path / name, machine)
    right = compare(program, [F4], models, 20, 1)
    assert (right.differences, right.random, right.pairs) == (0, 20, 2 * 40 * 256)
    assert right.corners > 10
    assert right.referenced > 80
    step = "unit0 = top0 - kept_bits;"
    assert step in text
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    name, machine = next(iter(HERE.items()))
    many = compiled(text.replace(step, "unit0 = top0 - kept_bits + 1;"), wrong, machine)
    found = compare(program, [F4], {name: many}, 20)
    assert found.differences > 0
    assert found.first.startswith(f"{name}, ")
    assert "scale" in found.first
    assert [*lines([right, found])][-1].split()[-1] == f"{found.differences:,}"


@needs_cc
def test_a_read_past_an_array_ends_the_comparison(tmp_path: Path) -> None:
    name = next((name for name in ("gcc", "clang") if name in HERE), "")
    if not name:
        pytest.skip("no compiler has the sanitizers")
    program = program_of(rule_for(F4).bare, F4.product)
    text = source_of(program)
    read = "for (i = 0; i < 64; i++) A[i] = read_e2m1(a[i]);"
    assert read in text
    past = text.replace(read, f"{read}\n  A[0].m += a[64];")
    many = compiled(past, tmp_path, HERE[name])
    with pytest.raises(RuntimeError, match="stack-buffer-overflow"):
        compare(program, [F4], {name: many}, 20)


def test_every_pair_of_narrow_codes() -> None:
    dots = next(every_pair(F4))
    places = (dots.a != 0) | (dots.b != 0)
    assert {tuple(row) for row in zip(dots.a.max(1).tolist(), dots.b.max(1).tolist(), strict=True)} == {
        (a, b) for a in range(16) for b in range(16)
    }
    assert places.any(0).sum() == F4.stored_k
    wide = warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", target="sm_80")
    assert not list(every_pair(wide))
