"""The long comparison of golden models in C: kinds of dot products, every pair of codes, wrong models."""

from __future__ import annotations

from pathlib import Path

import warpsim
from tests.workbench.models.test_golden_models import COMPILERS, needs_cc
from tools.soak.models import COMPILERS as CHECKED
from tools.soak.models import compare, compiled, every_pair, lines, source_of
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs.rule_templates import program_of

F4 = warpsim.decode(
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    target="sm_120a",
)
FLAGS = next(each for each in CHECKED if not COMPILERS or each[0] == COMPILERS[0])


@needs_cc
def test_a_model_and_a_wrong_model(tmp_path: Path) -> None:
    program = program_of(rule_for(F4).bare, F4.product)
    many = compiled(source_of(program), tmp_path, FLAGS)
    right = compare(program, [F4], many, 20, 1)
    assert (right.differences, right.random, right.pairs) == (0, 20, 2 * 40 * 256)
    assert right.corners > 10
    assert right.referenced > 80
    text = source_of(program)
    step = "unit0 = top0 - kept_bits;"
    assert step in text
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    many = compiled(text.replace(step, "unit0 = top0 - kept_bits + 1;"), wrong, FLAGS)
    found = compare(program, [F4], many, 20)
    assert found.differences > 0
    assert "scale" in found.first
    assert [*lines([right, found])][-1].split()[-1] == f"{found.differences:,}"


def test_every_pair_of_narrow_codes() -> None:
    dots = next(every_pair(F4))
    places = (dots.a != 0) | (dots.b != 0)
    assert {tuple(row) for row in zip(dots.a.max(1).tolist(), dots.b.max(1).tolist(), strict=True)} == {
        (a, b) for a in range(16) for b in range(16)
    }
    assert places.any(0).sum() == F4.stored_k
    wide = warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", target="sm_80")
    assert not list(every_pair(wide))
