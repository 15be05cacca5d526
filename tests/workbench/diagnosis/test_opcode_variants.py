"""Verdicts on statements that should be another form of their opcode: rounding, signedness, comparison."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim import Verdict
from warpsim.programs.launch.launching import load_text

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry convert(.param .u64 x, .param .u64 y, .param .u32 n)
{ .reg .b64 %p<4>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .f16 %h<2>; .reg .pred %q;
  mov.u32 %r0, %tid.x; ld.param.u32 %r1, [n]; COMPARE %q, %r0, %r1; @!%q bra DONE;
  ld.param.u64 %p0, [x]; mad.wide.u32 %p0, %r0, 4, %p0; ld.global.b32 %r2, [%p0];
  CONVERT
  ld.param.u64 %p1, [y]; mad.wide.u32 %p1, %r0, 4, %p1; st.global.f32 [%p1], %f1;
DONE: ret; }
.visible .entry other()
{ .reg .f16 %h<2>; .reg .f32 %f<2>; mov.f32 %f0, 0f00000000; cvt.rz.f16.f32 %h0, %f0; ret; }
"""
TO_HALF = "mov.b32 %f0, %r2; cvt.ROUND.f16.f32 %h0, %f0; cvt.f32.f16 %f1, %h0;"
FROM_INTEGER = "cvt.rn.f32.u32 %f1, %r2; mul.f32 %f1, %f1, 0f3D800000;"


def text(convert: str, compare: str = "setp.lt.u32") -> str:
    return TEXT.replace("COMPARE", compare).replace("CONVERT", convert)


def verdict(source: str, x: np.ndarray, expected: np.ndarray) -> Verdict:
    kernel = load_text(source, "convert.ptx")["convert"]
    return warpsim.why(kernel, 1, 64, [x, np.zeros(64, np.float32), 48], {1: expected})


def values() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(64).astype(np.float32)


def converted(x: np.ndarray) -> np.ndarray:
    found = np.zeros(64, np.float32)
    found[:48] = x[:48].astype(np.float16)
    return found


@pytest.mark.parametrize(("given", "meant"), [("rz", "rn"), ("rp", "rn")])
def test_another_rounding(given: str, meant: str) -> None:
    assert verdict(text(TO_HALF.replace("ROUND", meant)), values(), converted(values())).as_expected
    found = verdict(text(TO_HALF.replace("ROUND", given)), values(), converted(values()))
    assert found.kind == "statement"
    assert found.cause == (
        f"with cvt.{meant}.f16.f32 in the place of cvt.{given}.f16.f32 every output is as expected"
    )
    assert found.fix == f"use cvt.{meant}.f16.f32"
    assert found.location is not None
    assert found.location.line == 8


def test_integers_that_are_read_without_their_sign() -> None:
    x = np.random.default_rng(1).integers(-1000, 1000, 64).astype(np.int32)
    expected = np.zeros(64, np.float32)
    expected[:48] = x[:48] / 16
    found = verdict(text(FROM_INTEGER), x, expected)
    assert found.cause == "with cvt.rn.f32.s32 in the place of cvt.rn.f32.u32 every output is as expected"


def test_a_bound_that_is_compared_the_other_way() -> None:
    found = verdict(text(TO_HALF.replace("ROUND", "rn"), "setp.gt.u32"), values(), converted(values()))
    assert "in the place of setp.gt.u32 every output is as expected" in found.cause


def test_few_elements_that_rounding_may_make_right_are_not_explained() -> None:
    expected = converted(values())
    expected[7] = np.nextafter(np.float16(expected[7]), np.float16(9))
    assert verdict(text(TO_HALF.replace("ROUND", "rn")), values(), expected).cause == ""


def test_a_warning_of_several_statements_stands_once() -> None:
    kernel = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 d)
{ .reg .b64 %p; .reg .b32 %r<4>; ld.param.u64 %p, [d];
  st.global.b32 [%p], %r0;
  st.global.b32 [%p+4], %r1;
  st.global.b32 [%p+8], %r2; ret; }
"""
    d = np.ones(3, np.uint32)
    found = warpsim.why(load_text(kernel, "k.ptx")["k"], 1, 1, [d], {0: np.array([0, 0, 5], np.uint32)})
    notes = [note for note in found.notes if "never written" in note]
    assert len(notes) == 1
    assert notes[0].endswith(" (also lines 7, 8)")


# Sums of squares of rows, of columns up to the row's number and a window.
SUMS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 x, .param .u64 y, .param .u32 rows, .param .u32 columns, .param .u32 window)
{ .reg .b64 %p<4>; .reg .b32 %r<8>; .reg .f32 %f<2>; .reg .pred %q<3>;
  mov.u32 %r0, %tid.x; ld.param.u32 %r1, [rows]; ld.param.u32 %r2, [columns]; ld.param.u32 %r3, [window];
  ld.param.u64 %p0, [x]; ld.param.u64 %p1, [y]; setp.ge.u32 %q0, %r0, %r1; @%q0 bra DONE;
  mul.lo.u32 %r4, %r0, %r2; mad.wide.u32 %p2, %r4, 4, %p0; mov.f32 %f0, 0f00000000; mov.u32 %r5, 0;
LOOP: ld.global.f32 %f1, [%p2]; add.u32 %r6, %r0, %r3; sub.u32 %r7, %r2, 4;
  setp.le.u32 %q1, %r5, %r6; selp.f32 %f1, %f1, 0f00000000, %q1; fma.rn.f32 %f0, %f1, %f1, %f0;
  add.u32 %r5, %r5, 1; add.u64 %p2, %p2, 4;
  setp.lt.u32 %q2, %r5, %r2; @%q2 bra LOOP;
  mad.wide.u32 %p3, %r0, 4, %p1; st.global.f32 [%p3], %f0;
DONE: ret; }
"""


def sums(x, y, rows, columns, window):  # type: ignore[no-untyped-def]
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return np.where(column <= row + window, x * x, 0).sum(1)


@pytest.mark.parametrize(
    ("old", "new", "line", "fix", "window"),
    [
        ("setp.le.u32 %q1", "setp.lt.u32 %q1", 10, "use setp.le.u32", 5),
        ("%q2, %r5, %r2;", "%q2, %r5, %r1;", 12, "compare with 24 (columns)", 5),
        ("%q2, %r5, %r2;", "%q2, %r5, %r7;", 12, "compare with 24 (columns)", 5),
        ("%q0, %r0, %r1;", "%q0, %r0, 19;", 7, "use setp.gt.u32", 5),
        ("%q1, %r5, %r6;", "%q1, %r5, 20;", 10, "check this bound", 24),  # 24 does, and so do 23 and 25
        ("add.u32 %r5, %r5, 1;", "add.u32 %r5, %r5, 2;", 0, "", 5),
    ],
    ids=["a mask", "another number", "a bound that is computed", "rows", "any larger bound", "no comparison"],
)
def test_comparisons_that_decide_the_terms_of_a_sum(
    old: str, new: str, line: int, fix: str, window: int
) -> None:
    """A mask and the end of a loop are named where the kernel with another comparison is the reference."""
    assert SUMS.count(old) == 1
    x = np.random.default_rng(0).standard_normal((20, 24)).astype(np.float32)
    kernel = load_text(SUMS.replace(old, new), "sums.ptx")["sums"]
    found = warpsim.why(kernel, 1, 32, [x, np.zeros(20, np.float32), 20, 24, window], reference=sums)
    first = found.causes[0]
    assert (first.kind == "comparison") == bool(line)
    if line:
        assert first.location is not None
        assert (first.location.line, first.fix) == (line, fix)
        assert first.evidence.startswith("proven")
