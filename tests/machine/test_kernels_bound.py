"""What is bound when: a kernel as it is taken, a module with device functions at once."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """\
.visible .entry {name}(.param .u64 out)
{{
  .reg .b64 %rd<2>; .reg .b32 %r<2>;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, {value}; {more} st.global.u32 [%rd0], %r0; ret;
}}
"""
BROKEN = KERNEL.format(name="broken", value=3, more="mul.lo.q32 %r0, %r0, 1;")
GOOD = [KERNEL.format(name=name, value=value, more="") for name, value in (("one", 1), ("two", 2))]


def run(module: warpsim.LoadedModule, name: str) -> int:
    out = np.zeros(1, np.uint32)
    module[name](1, 1, [out])
    return int(out[0])


def test_a_kernel_is_bound_when_it_is_taken() -> None:
    module = warpsim.load(HEAD + GOOD[0] + BROKEN + GOOD[1])
    assert module.module.bound == []
    assert run(module, "two") == 2
    assert module.module.bound == ["two"]
    assert run(module, "one") == 1
    assert module.module.bound == ["two", "one"]
    assert run(module, "two") == 2


def test_problems_are_those_of_the_whole_text_in_its_order() -> None:
    other = BROKEN.replace("broken", "also")
    module = warpsim.load(HEAD + BROKEN + GOOD[0] + other)
    with pytest.raises(warpsim.WarpsimError) as caught:
        module["also"]
    assert caught.value.location.line > 10
    assert [problem.location.line for problem in module.problems] == [7, 17]
    with pytest.raises(warpsim.WarpsimError) as caught:
        module["broken"]
    assert caught.value.location.line == 7


CALLING = """\
.visible .entry {name}(.param .u64 out)
{{
  .reg .b64 %rd<3>; .reg .b32 %r<2>;
  {{ .param .b32 value; {call} ld.param.b32 %r0, [value]; }}
  ld.param.u64 %rd0, [out]; st.global.u32 [%rd0], %r0; ret;
}}
"""
FUNCTION = (
    ".func (.param .b32 value) {name}() {{ .reg .b32 %r<2>; {body} st.param.b32 [value], %r0; ret; }}\n"
)
PROTOTYPE = "P: .callprototype (.param .b32 _) _ ();"


def five(name: str) -> str:
    return FUNCTION.format(name=name, body="mov.u32 %r0, 5;")


def calling(name: str, function: str) -> str:
    return CALLING.format(name=name, call=f"call (value), {function}, ();")


def test_a_kernel_is_bound_with_the_functions_that_it_may_call() -> None:
    declared = ".func (.param .b32 value) third();\n"
    inner = FUNCTION.format(
        name="second", body="{ .param .b32 v; call (v), third, (); ld.param.b32 %r0, [v]; }"
    )
    broken = FUNCTION.format(name="fourth", body="mul.lo.q32 %r0, %r0, 1;")
    kernels = calling("a", "first") + calling("b", "second") + calling("c", "fourth")
    text = HEAD + declared + five("first") + inner + kernels + GOOD[0] + five("third") + broken
    module = warpsim.load(text)
    assert run(module, "b") == 5
    assert module.module.bound == ["third", "second", "b"]
    assert run(module, "a") == 5
    assert run(module, "one") == 1
    assert module.module.bound == ["third", "second", "b", "first", "a", "one"]
    with pytest.raises(warpsim.WarpsimError, match="q32"):
        module["c"]
    assert len(module.problems) == 1
    assert run(module, "b") == 5
    assert [problem.location.line for problem in warpsim.load(text).problems] == [
        problem.location.line for problem in module.problems
    ]


def test_observers_may_ask_for_statements_with_a_problem() -> None:
    """Taint and formulas observe all statements of a module, also those of kernels that are not launched."""
    module = warpsim.load(HEAD + BROKEN + GOOD[0])
    with pytest.raises(warpsim.WarpsimError):
        module["broken"]
    verdict = warpsim.why(module["one"], 1, 1, [np.zeros(1, np.uint32)], reference=lambda out: np.ones(1))
    assert verdict.outputs_as_expected


def test_functions_that_are_called_by_address_are_bound() -> None:
    table = ".global .u64 table[2] = {first, second};\n"
    by_address = CALLING.format(
        name="k",
        call=f"mov.u64 %rd1, table; ld.global.u64 %rd2, [%rd1+8]; {PROTOTYPE} call (value), %rd2, (), P;",
    )
    unnamed = CALLING.format(
        name="u", call=f"ld.param.u64 %rd2, [out]; {PROTOTYPE} call (value), %rd2, (), P;"
    )
    module = warpsim.load(HEAD + five("first") + five("second") + table + by_address + unnamed + GOOD[0])
    assert run(module, "k") == 5
    assert "one" not in module.module.bound
    module = warpsim.load(HEAD + five("first") + five("second") + unnamed + GOOD[0])
    with pytest.raises(warpsim.WarpsimError, match="no function has the address"):
        run(module, "u")
    assert module.module.bound == ["first", "second", "u"]


def test_a_module_whose_functions_declare_shared_memory_is_bound_at_once() -> None:
    """Where its variables lie does not depend on the kernel that is taken first."""
    function = ".func nothing() { .shared .align 8 .b8 own[64]; ret; }\n"
    assert warpsim.load(HEAD + GOOD[0] + function + GOOD[1]).module.bound == ["one", "nothing", "two"]
    function = ".func nothing() { .reg .b32 %r<2>; ld.shared.b32 %r0, [0]; st.shared::cta.b32 [%r0], 1; }\n"
    assert warpsim.load(HEAD + GOOD[0] + function + GOOD[1]).module.bound == []


def test_the_counts_of_a_launch_fit_what_is_bound_then() -> None:
    module = warpsim.load(HEAD + GOOD[0] + GOOD[1])
    first = module["one"]
    module["two"]
    out = np.zeros(1, np.uint32)
    report = first(1, 1, [out])
    assert report.fidelity.counts["exact"] == 4


def test_parameters_are_known_before_a_kernel_is_bound() -> None:
    text = HEAD + ".visible .entry k(.param .u8 a, .param .align 8 .b8 b[12], .param .u64 c) { ret; }\n"
    module = warpsim.load(text)
    before = module.parameters("k")
    assert [(one.name, one.offset, one.bytes) for one in before] == [("a", 0, 1), ("b", 8, 12), ("c", 24, 8)]
    assert module.module.bound == []
    assert module["k"].parameters == before
