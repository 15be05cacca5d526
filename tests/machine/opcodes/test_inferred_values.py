"""Statements that are exact but for some values: reports call them inferred where these values come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim

_NAN, _QUIET = 0x7F800001, 0x7FC00000
_CASES: dict[str, tuple[str, str, list[tuple[tuple[int, int], bool]]]] = {  # statements, words, if inferred
    "div_s32": (
        "div.s32 %r3, %r1, %r2;",
        "quotient",
        [((7, -2), False), ((7, 0), True), ((-(2**31), -1), True)],
    ),
    "div_u32": (
        "div.u32 %r3, %r1, %r2;",
        "quotient",
        [((7, 2), False), ((7, 0), True), ((-(2**31), -1), False)],
    ),
    "rem_s32": ("rem.s32 %r3, %r1, %r2;", "remainder", [((7, 2), False), ((-7, 2), True), ((7, 0), True)]),
    "rem_u32": ("rem.u32 %r3, %r1, %r2;", "remainder", [((-7, 2), False), ((7, 0), True)]),
    "same_kind": ("sub.cc.u32 %r3, %r1, %r2; subc.u32 %r3, %r1, %r2;", "CC.CF", [((1, 2), False)]),
    "addc_after_sub": ("sub.cc.u32 %r3, %r1, %r2; addc.u32 %r3, %r1, %r2;", "CC.CF", [((1, 2), True)]),
    "subc_after_add": ("add.cc.u32 %r3, %r1, %r2; subc.u32 %r3, %r1, %r2;", "CC.CF", [((1, 2), True)]),
    "madc_after_add": ("add.cc.u32 %r3, %r1, %r2; madc.lo.u32 %r3, %r1, %r2, 1;", "CC.CF", [((1, 2), False)]),
    "bf16": (
        "cvt.u16.u32 %h1, %r1; cvt.f32.bf16 %r3, %h1;",
        "unspecified",
        [((0x3F80, 0), False), ((0x7F80, 0), False), ((0x7FA0, 0), True)],
    ),
    "tf32": (
        "mov.b32 %f1, %r1; cvt.rna.satfinite.tf32.f32 %r3, %f1;",
        "integer code",
        [((0x3F800000, 0), False), ((0x7F800000, 0), False), ((_NAN, 0), True)],
    ),
    "add_f64": (
        "mov.b64 %d1, {%r3, %r1}; mov.b64 %d2, {%r3, %r2}; add.f64 %d1, %d1, %d2; mov.b64 {%r4, %r3}, %d1;",
        "bits of NaN results",
        [((0x3FF00000, 0x7FF00000), False), ((0xFFF00000, 0x7FF00000), True), ((0x7FF80000, 0), True)],
    ),
    "red_f64": (
        "mov.b64 %d1, {%r3, %r1}; red.global.add.f64 [%rd1+16], %d1;",
        "as of add.f64",
        [((0x3FF00000, 0), False), ((0x7FF80000, 0), True)],
    ),
    "red_min": (
        "red.global.min.noftz.v2.f16x2 [%rd1+16], {%r1, %r2};",
        "pass over a NaN",
        [
            ((0x3C003C00, 0x3C003C00), False),
            ((0x7E003C00, 0x3C003C00), True),
            ((0x80003C00, 0x3C003C00), True),
        ],
    ),
    "red_half": (
        "red.global.add.noftz.f16x2 [%rd1+16], %r1;",
        "",
        [((0x7E003C00, 0), False)],
    ),
}
_BODY = """
.visible .entry {name}(.param .u64 words)
{{
  .reg .b64 %rd<3>; .reg .b32 %r<6>; .reg .b16 %h<3>; .reg .f32 %f<3>; .reg .f64 %d<3>;
  ld.param.u64 %rd1, [words]; mov.b32 %r3, 0;
  ld.global.b32 %r1, [%rd1]; ld.global.b32 %r2, [%rd1+4];
  {body}
  st.global.b32 [%rd1+8], %r3;
  ret;
}}
"""


@pytest.fixture(scope="module")
def module() -> Any:
    kernels = (_BODY.format(name=name, body=body) for name, (body, _, _) in _CASES.items())
    return warpsim.load(".version 9.0\n.target sm_90\n.address_size 64\n" + "".join(kernels))


def _launched(module: Any, name: str, given: tuple[int, int]) -> tuple[list[Any], np.ndarray[Any, Any]]:
    words = np.array([*(word & 0xFFFFFFFF for word in given), 0, 0, 0, 0, 0, 0], np.uint32)
    report = module[name](1, 1, [words], checks="off")
    return [kind for kind in report.fidelity.classes if kind.fidelity != "exact"], words


@pytest.mark.parametrize("name", _CASES)
def test_values_that_are_inferred(module: Any, name: str) -> None:
    _, why, cases = _CASES[name]
    for given, inferred in cases:
        kinds, _ = _launched(module, name, given)
        assert [kind.fidelity for kind in kinds] == ["inferred"] * inferred, given
        assert all(why in kind.note for kind in kinds)


def test_a_lane_that_is_off_does_not_count() -> None:
    body = "setp.ne.u32 %p, %r2, 0; @%p div.u32 %r3, %r1, %r2;"
    text = _BODY.format(name="guarded", body=".reg .pred %p; " + body)
    module = warpsim.load(".version 9.0\n.target sm_90\n.address_size 64\n" + text)
    assert not _launched(module, "guarded", (7, 0))[0]


def test_what_is_inferred_is_computed_as_ptxas_does(module: Any) -> None:
    for name, given, result in (
        ("div_u32", (7, 0), 0xFFFFFFFF),
        ("rem_s32", (-7, 2), 0xFFFFFFFF),
        ("rem_u32", (7, 0), 0xFFFFFFFF),
        ("addc_after_sub", (1, 2), 3),  # nothing is carried where something is borrowed
        ("subc_after_add", (1, 2), 0xFFFFFFFE),  # 1 + ~2
        ("bf16", (0x7FA0, 0), 0x7FA00000),
        ("tf32", (_NAN, 0), 0x7F7FE000),
        ("tf32", (_QUIET, 0), 0x7FBFE000),
    ):
        assert _launched(module, name, given)[1][2] == result, (name, given)
