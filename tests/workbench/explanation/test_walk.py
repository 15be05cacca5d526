"""One element of a product, instruction after instruction: the codes are those of gemm cut short."""

from __future__ import annotations

import json

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim import OperandError
from warpsim.show.cli import cli
from warpsim.show.views.explanation_documents import walk_document, walk_page
from warpsim.workbench.explanation.walk import walk_product

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((20, 70)).astype(np.float16), RNG.standard_normal((70, 9)).astype(np.float16)
C = RNG.standard_normal((20, 9)).astype(np.float32)


def codes(target: str, row: int, column: int) -> list[int]:
    cut = [warpsim.gemm(F16, A[:, :k], B[:k], C, target=target) for k in (16, 32, 48, 64, 70)]
    return [int(one.view(np.uint32)[row, column]) for one in cut]


def test_accumulators_are_those_of_gemm_and_targets_part_where_they_first_differ() -> None:
    for row, column in ((0, 0), (17, 8), (19, 3), (5, 5)):
        found = walk_product(F16, row, column, A, B, C, targets=["sm_80", "sm_90"])
        wanted = {target: codes(target, row, column) for target in ("sm_80", "sm_90")}
        assert {name: list(one) for name, one in found.codes.items()} == wanted
        apart = [i for i, (x, y) in enumerate(zip(*wanted.values(), strict=True)) if x != y]
        assert found.parting == (apart[0] if apart else None)
        assert [each.code for each in found.shown.explanations] == [one[found.at] for one in wanted.values()]


def test_one_target_and_a_chosen_instruction() -> None:
    found = walk_product(F16, 3, 4, A, B, targets=["sm_80"], at=2)
    assert found.shown.code == found.codes["sm_80"][2]
    assert "2 *" in str(found)
    assert json.loads(json.dumps(walk_document(found)))["instruction"] == 2
    assert "D[3,4] of a product" in walk_page(found)
    with pytest.raises(OperandError, match="instruction 5: there are 0 to 4 along k"):
        walk_product(F16, 3, 4, A, B, targets=["sm_80"], at=5)
    with pytest.raises(OperandError, match=r"D has no element \[20, 0\]"):
        walk_product(F16, 20, 0, A, B, targets=["sm_80"])


def test_explain_walks_on_the_command_line(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", A)
    np.save("B.npy", B)
    given = ["explain", F16, "A=A.npy", "B=B.npy", "--element", "5,5", "--target", "sm_80,sm_90"]
    result = CliRunner().invoke(cli, given, standalone_mode=False)
    assert result.return_value == 0
    assert f"D[5,5] of a product, 5 instructions of {F16}" in result.output
    assert "sm_80 and sm_90 part at instruction" in result.output
