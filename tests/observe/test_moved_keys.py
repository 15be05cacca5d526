"""Statements that move keys: functions, local memory, atomics, shuffles under divergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.formulas import compared, kernel_of, repeatable
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.reference_runs import equivalence_of

_FUNCTIONS = """
.version 8.0
.target sm_80
.address_size 64
.func (.param .f32 result) squared(.param .f32 given, .param .u32 depth)
{
 .reg .f32 %x, %y; .reg .u32 %n; .reg .pred %p; .local .align 4 .f32 kept[8];
 ld.param.f32 %x, [given]; ld.param.u32 %n, [depth];
 st.local.f32 [kept+16], %x;
 setp.eq.u32 %p, %n, 0;
 @%p bra last;
 sub.u32 %n, %n, 1;
 { .param .f32 in; .param .u32 left; .param .f32 out;
   st.param.f32 [in], %x; st.param.u32 [left], %n;
   call (out), squared, (in, left);
   ld.param.f32 %y, [out]; }
 ld.local.f32 %x, [kept+16];
 add.f32 %y, %y, %x;
 bra done;
last:
 mul.f32 %y, %x, %x;
done:
 st.param.f32 [result], %y;
 ret;
}
.visible .entry k(.param .u64 pa, .param .u64 pd)
{
 .reg .u64 %x, %o; .reg .u32 %n; .reg .f32 %a, %d;
 mov.u32 %n, %tid.x; mul.wide.u32 %o, %n, 4;
 ld.param.u64 %x, [pa]; add.u64 %x, %x, %o; ld.global.f32 %a, [%x];
 { .param .f32 in; .param .u32 left; .param .f32 out;
   st.param.f32 [in], %a; st.param.u32 [left], 3;
   call (out), squared, (in, left);
   ld.param.f32 %d, [out]; }
 ld.param.u64 %x, [pd]; add.u64 %x, %x, %o; st.global.f32 [%x], %d;
 ret;
}
"""


def test_functions_and_local_memory_pass_keys() -> None:
    a = np.linspace(1, 2, 64).astype(np.float32)
    found = compared(load_text(_FUNCTIONS)["k"], [a, np.zeros(64, np.float32)], lambda a: a * a + 3 * a)
    assert (found.answer, found.close) == ("equal", True), str(found)
    assert compared(load_text(_FUNCTIONS)["k"], [a, a], lambda a: a * a + 2 * a).answer == "other"


def _summed(values: Any) -> Any:
    return np.concatenate([values.sum(keepdims=True), np.zeros_like(values)[1:]])


ATOMICS: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("red.global.add.f32 [%y], %a;", "f32", _summed),
    ("atom.global.add.f32 %t, [%y], %a;", "f32", _summed),
    ("red.global.add.u32 [%y], %a;", "s32", _summed),
    ("atom.global.max.s32 %t, [%y], %a;", "s32", lambda a: np.concatenate([a.max(keepdims=True), 0 * a[1:]])),
    ("atom.global.exch.b32 %t, [%y], %a;", "s32", lambda a: np.concatenate([a[-1:], 0 * a[1:]])),
]


@pytest.mark.parametrize(("text", "kind", "function"), ATOMICS, ids=[text for text, *_ in ATOMICS])
def test_atomics_of_all_lanes_at_one_place(text: str, kind: str, function: Callable[[Any], Any]) -> None:
    dtype = np.float32 if kind == "f32" else np.int32
    a = (np.random.default_rng(1).integers(1, 100, 64)).astype(dtype)
    arrays = [a, a, np.zeros(64, dtype), np.zeros(64, dtype)]
    kernel = kernel_of(f"ld.param.u64 %y, [pc]; {text} mov.b32 %d, %a;", kind, "sm_80")
    launch = repeatable(kernel, arrays)
    found = equivalence_of(launch, lambda a, b, c, d: {2: function(a), 3: a}).equivalence
    assert (found.answer, found.close) == ("equal", True), str(found)
    wrong = equivalence_of(launch, lambda a, b, c, d: {2: function(2 * a), 3: a}).equivalence
    assert wrong.answer == "other"


def test_lanes_that_diverge_keep_their_keys() -> None:
    text = (
        "setp.lt.u32 %p, %n, 20; @%p mul.f32 %d, %a, %b; @!%p add.f32 %d, %a, %b;"
        " @%p bra over; neg.f32 %d, %d; over:"
    )
    a, b, c = (np.random.default_rng(n).standard_normal(64).astype(np.float32) for n in range(3))
    kernel = kernel_of(text, "f32", "sm_80")

    def right(a: Any, b: Any, c: Any) -> Any:
        return np.where(np.arange(64) < 20, a * b, -(a + b))

    assert compared(kernel, [a, b, c, np.zeros(64, np.float32)], right).answer == "equal"

    def wrong(a: Any, b: Any, c: Any) -> Any:
        return np.where(np.arange(64) < 21, a * b, -(a + b))

    found = compared(kernel, [a, b, c, np.zeros(64, np.float32)], wrong)
    assert np.flatnonzero(found.outputs[0].other).tolist() == [20]


def test_elements_that_are_never_stored_are_said() -> None:
    text = "setp.ge.u32 %p, %n, 60; @%p exit; mov.f32 %d, %a;"
    a = np.linspace(1, 2, 64).astype(np.float32)
    arrays = [a, a, a, np.zeros(64, np.float32)]
    found = compared(kernel_of(text, "f32", "sm_80"), arrays, lambda a, b, c: a)
    assert found.answer == "other"
    assert "the first at [60]: elements 60 to 63" in str(found)
    assert "4 of them were never stored" in str(found)
