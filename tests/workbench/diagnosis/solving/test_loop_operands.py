"""Operands of loops read from elsewhere: unseen loops, judged by kind and facts, and what is not claimed."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tools.mistakes.grammar.judged import diagnosed, loop_outcome
from tools.mistakes.grammar.loops import LOOPS, Product
from warpsim.isa.codes import codes_of
from warpsim.workbench.diagnosis.solving.loop_operands import LoopOperands
from warpsim.workbench.diagnosis.solving.product_loops import Given, Loop

EQUAL = {"k 5 of A zero": "as k"}  # D does not tell which operand is zero at that k
LOCATED = {"A times a scale of each row"}
TAKEN = [  # of every kind
    row
    for kind in dict.fromkeys(row.kind for row in LOOPS)
    for row in sample([each for each in LOOPS if each.kind == kind][: 9 if kind == "operand" else None], 3)
]
F16 = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row.name)
def test_unseen_loops_are_named_by_kind_and_facts(row: Product) -> None:
    wanted = "located" if row.name in LOCATED else EQUAL.get(row.name, "named" if row.kind else "none")
    assert loop_outcome(row, diagnosed(row)) == wanted


def test_lines_with_few_elements_are_screened() -> None:
    """One tile of 16 x 8 with k of 80: nothing can be solved by least squares."""
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((16, 80)).astype(np.float16), rng.standard_normal((80, 8)).astype(np.float16)
    read = np.zeros_like(A)
    for at in range(0, 80, 16):
        words = warpsim.pack(F16, "a", np.ascontiguousarray(A[:, at : at + 16]))
        read[:, at : at + 16] = warpsim.unpack(F16, "a", words[np.arange(32) ^ 5])
    loop = Loop(F16, Given(A=A, B=B))
    right, wrong = (codes_of(warpsim.gemm(F16, M, B), F16.d, "D") for M in (A, read))
    first, *_ = LoopOperands(loop, (right, wrong), np.full((16, 8), 1e-4))
    assert (first.kind, first.facts["operand"], first.facts["map"]) == ("operand", "A", "xor")
    assert np.array_equal(first.computed[0](), loop.tiles_of(wrong))


def test_a_map_in_some_places_only() -> None:
    """Rows from 8 on of A hold zero at k 16 and beyond: a predicate of one view, and zero."""
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((16, 64)).astype(np.float16), rng.standard_normal((64, 8)).astype(np.float16)
    read = np.where(np.arange(16)[:, None] >= 11, 0, A).astype(np.float16)
    loop = Loop(F16, Given(A=A, B=B))
    right, wrong = (codes_of(warpsim.gemm(F16, M, B), F16.d, "D") for M in (A, read))
    found = list(LoopOperands(loop, (right, wrong), np.full((16, 8), 1e-4)))
    assert any(one.facts["operand"] == "A" and one.facts["values"] == "zero" for one in found)
