"""The budget of a diagnosis: statements decide where a search ends, no clock does."""

from __future__ import annotations

import ast
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import warpsim
from warpsim import Verdict
from warpsim.base.errors import Fault, WarpsimError
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.origins.element_origins import find_origins
from warpsim.workbench.diagnosis.verdicts.repeated_launch import STATEMENTS, Budget

WHY = import_module("warpsim.workbench.diagnosis.verdicts.why")  # the function has its name
# Restated as shr.s32, or with another comparison, the loop does not end.
PARITIES = """.version 8.0
.target sm_80
.address_size 64
.visible .entry parities(.param .u64 out, .param .u32 seed)
{ .reg .pred %p; .reg .b32 %r<10>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [out]; ld.param.u32 %r9, [seed];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.lo.u32 %r5, %r4, 2654435761; or.b32 %r5, %r5, 0x80000000; mov.u32 %r6, 0;
LOOP:
  and.b32 %r7, %r5, 1; add.u32 %r6, %r6, %r7; shr.u32 %r5, %r5, 1; setp.ne.u32 %p, %r5, 0; @%p bra LOOP;
  add.u32 %r6, %r6, %r9;
  mul.wide.u32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r6; ret; }
"""
# The number of steps is data: another value in its place has up to 2 ** 32 of them.
STEPS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry steps(.param .u64 a, .param .u64 count, .param .u64 out)
{ .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<4>;
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [count]; ld.param.u64 %d3, [out];
  ld.global.u32 %r1, [%d2]; mov.u32 %r2, %tid.x; mad.wide.u32 %d1, %r2, 4, %d1; ld.global.u32 %r3, [%d1];
  mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
LOOP:
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r3, %r3}, {%r3},
    {%f0, %f1, %f2, %f3};
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra LOOP;
  mad.wide.u32 %d3, %r2, 4, %d3; st.global.f32 [%d3], %f0; ret; }
"""


def parities() -> Verdict:
    kernel = load_text(PARITIES, "parities.ptx")["parities"]
    expected = np.random.default_rng(1).integers(0, 2**32, (256, 128), np.uint32)
    return warpsim.why(kernel, 256, 128, [np.zeros((256, 128), np.uint32), 5], {0: expected})


def test_a_form_with_an_endless_loop_ends_at_the_budget() -> None:
    """It ran a milliard statements before, a quarter of an hour for each such form."""
    found = parities()
    assert not found.causes
    assert found.errors[0].count > 32_000
    assert found.notes[-1] == (
        "not executed to the end: 3 of other forms of statements (budget of 400,000 statements)"
    )


def test_a_search_that_ends_at_the_budget_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found until then is said: the causes that other searches find, and outputs."""
    monkeypatch.setattr(WHY, "Budget", partial(Budget, 2_000))
    found = parities()
    assert found.errors[0].count > 32_000
    assert (
        "not tried: the rest of further schedules, other forms of statements (budget of 2,000 statements)"
    ) in found.notes
    assert str(found).endswith("\n".join(f"note: {note}" for note in found.notes))


def test_a_cause_is_found_though_an_earlier_search_used_up_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve numbers can be exchanged in 66 ways; each search leaves half to those after it."""
    numbers = "".join(f", .param .u32 n{index}" for index in range(12))
    text = PARITIES.replace(", .param .u32 seed", f", .param .u32 seed{numbers}")
    text = text.replace("mul.lo.u32 %r5", "mul.lo.u32 %r8, %r4, 977; mul.lo.u32 %r5")
    begin, end = text.index("LOOP:"), text.index("add.u32 %r6, %r6, %r9")
    text = text[:begin] + text[end:].replace("add.u32 %r6, %r6, %r9", "add.u32 %r6, %r8, %r9")
    arguments = [np.zeros((256, 128), np.uint32), 5, *range(10, 22)]
    kernels = [
        load_text(each, "p.ptx")["parities"] for each in (text, text.replace("lo.u32 %r8", "hi.u32 %r8"))
    ]
    expected = arguments[0].copy()
    whole = sum(kernels[0](256, 128, [expected, *arguments[1:]]).fidelity.counts.values())
    monkeypatch.setattr(WHY, "Budget", partial(Budget, 60 * whole))
    found = warpsim.why(kernels[1], 256, 128, arguments, {0: expected})
    assert found.cause == "with mul.lo.u32 in the place of mul.hi.u32 every output is as expected"
    assert f"not tried: the rest of arguments exchanged (budget of {60 * whole:,} statements)" in found.notes


def test_a_loop_whose_steps_are_data_ends() -> None:
    kernel = load_text(STEPS, "steps.ptx")["steps"]
    given = [np.ones(64, np.float16), np.array([3], np.uint32), np.zeros(32, np.float32)]
    found = warpsim.why(kernel, 1, 32, given, {2: np.full(32, 7, np.float32)})
    assert found.errors[0].count == 32
    origins = find_origins(kernel, 1, 32, given, ("a", "count"), most_statements=10_000)
    assert "depends on values in a, count" in str(origins.dependences[0])


def test_no_diagnosis_reads_a_clock() -> None:
    """What is said must not depend on the machine, nor on what else it does."""
    folder = Path(str(WHY.__file__)).parents[1]
    read = [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and {"time", "datetime"} & {getattr(node, "module", None), *(alias.name for alias in node.names)}
    ]
    assert read == []


def test_a_search_leaves_half_to_those_after_it() -> None:
    budget = Budget(1_000)
    budget.spend(100)  # the launch itself
    assert (budget.whole, budget.left, budget.most) == (100, 1_000, 400)
    with budget.search("first"):
        spent = 0
        while budget.allows():
            budget.spend(100)
            spent += 100
        assert spent == 500
    with budget.search("second"):
        budget.spend(200)
        assert not budget.allows()  # 50 are its own, 250 are kept
    assert budget.allows()
    assert [*budget.notes()] == ["not tried: the rest of first, second (budget of 1,000 statements)"]


def test_an_execution_larger_than_the_budget_is_not_begun() -> None:
    budget = Budget()
    budget.spend(STATEMENTS + 1)
    assert not budget.allows()
    assert budget.left == STATEMENTS


@pytest.mark.parametrize("most", [None, 50_000])
def test_an_error_says_how_many_statements_were_executed(most: int | None) -> None:
    text = PARITIES.replace("ret; }", "mov.u64 %d3, 64; st.global.u32 [%d3], %r6; ret; }")
    kernel = load_text(text, "parities.ptx")["parities"]
    right = load_text(PARITIES, "parities.ptx")["parities"]
    arguments = [np.zeros((256, 128), np.uint32), 5]
    waves = sum(right(256, 128, arguments, checks="off").fidelity.counts.values())
    with pytest.raises(WarpsimError) as caught:
        kernel(256, 128, arguments, checks="off", most_statements=most)
    assert 0 < caught.value.executed <= waves
    with pytest.raises(Fault) as ended:
        right(256, 128, arguments, checks="off", most_statements=100)
    assert 100 <= ended.value.executed < 200  # statements in a row are executed together
