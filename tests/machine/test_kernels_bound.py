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


def test_a_module_with_device_functions_is_bound_at_once() -> None:
    function = ".func nothing() { ret; }\n"
    module = warpsim.load(HEAD + GOOD[0] + function + GOOD[1])
    assert module.module.bound == ["one", "nothing", "two"]


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
