"""What a launch leaves undone in arrays: parts unwritten, bytes written twice, elements of another type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from warpsim.observe.checks.findings import LaunchFinding

TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{{
  .reg .b64 %x, %y, %o<4>; .reg .b32 %t, %c, %r<8>; .reg .b16 %h<4>; .reg .f32 %f<4>; .reg .pred %p;
  ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %r0, %c, 32, %t;
  mul.wide.u32 %o1, %r0, 2; mul.wide.u32 %o2, %r0, 4; mul.wide.u32 %o3, %t, 4;
  {body}
  ret;
}}
"""


def findings(body: str, x: Any, y: Any, grid: int = 2, **options: Any) -> list[LaunchFinding]:
    kernel = warpsim.load(TEXT.format(body=body))["k"]
    return list(kernel(grid, 32, [x, y], checks="warn", **options).hazards)


def kinds(found: Sequence[LaunchFinding]) -> list[tuple[str, str]]:
    return [(one.kind, one.severity) for one in found]


WORD = "add.u64 %x, %x, %o2; ld.global.b32 %r1, [%x]; add.u64 %y, %y, %o2; st.global.b32 [%y], %r1;"
HALF = "add.u64 %x, %x, %o1; ld.global.b16 %h1, [%x]; add.u64 %y, %y, %o1; st.global.b16 [%y], %h1;"


# --- unwritten -----------------------------------------------------------------------------------------


def test_elements_that_no_thread_writes() -> None:
    x, y = np.ones((8, 10), np.float32), np.zeros((8, 10), np.float32)
    (found,) = findings(WORD, x, y)
    assert (found.kind, found.severity, found.location.line) == ("unwritten", "note", 10)
    assert found.message == (
        "16 of 80 elements of y (float32 (8, 10)) were never written, the first of them [6, 4]; "
        "st.global.b32 is the first that writes there"
    )


def test_arrays_that_are_written_whole_or_not_at_all() -> None:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    assert findings(WORD, x, y) == []
    assert findings("ld.global.b32 %r1, [%x];", x, np.zeros(99, np.float32)) == []
    assert findings("", x, y) == []


def test_an_update_in_place_is_no_output() -> None:
    """What is not written holds values, or the kernel reads the array, or changes it by atomics."""
    x = np.ones(64, np.float32)
    assert findings(WORD, x, np.arange(80, dtype=np.float32)) == []
    read = WORD.replace("st.global", "ld.global.b32 %r2, [%y]; st.global")
    assert findings(read, x, np.zeros(80, np.float32)) == []
    again = WORD + "ld.global.b32 %r2, [%y];"
    assert kinds(findings(again, x, np.zeros(80, np.float32))) == [("unwritten", "note")]
    added = "add.u64 %y, %y, %o2; red.global.add.u32 [%y], 1;"
    assert findings(added, x, np.zeros(80, np.uint32)) == []


def test_a_buffer_and_a_part_of_it() -> None:
    device = warpsim.Device("sm_80")
    x, y = device.array(np.ones(64, np.float32)), device.empty(80, np.float32)
    assert kinds(findings(WORD, x, y, device=device)) == [("unwritten", "note")]
    assert findings(WORD, x, y.at(64), device=device)[0].message.startswith("16 of 80 elements of y (float32")


def test_no_checks_no_findings() -> None:
    kernel = warpsim.load(TEXT.format(body=WORD))["k"]
    x, y = np.ones(64, np.float32), np.zeros(80, np.float32)
    assert kernel(2, 32, [x, y], checks="off").hazards == ()


# --- twice ---------------------------------------------------------------------------------------------

TWICE = "add.u64 %y, %y, %o3; st.global.b32 [%y], {value};"


@pytest.mark.parametrize("lanes", [2, 4000])
def test_ctas_that_write_different_values(lanes: int) -> None:
    """In one wave, by one statement, and in several."""
    y = np.zeros(32, np.uint32)
    (found,) = findings(TWICE.format(value="%c"), np.zeros(1, np.uint32), y, grid=lanes)
    assert (found.kind, found.severity, found.location.line) == ("written twice", "warning", 10)
    assert "st.global.b32 writes byte 0 of the k_param_1 of 128 bytes" in found.message.replace(
        "y of", "k_param_1 of"
    )
    assert "nothing orders them, and either may stay [CTA (" in found.message


def test_ctas_that_write_the_same_value_or_are_ordered() -> None:
    x, y = np.zeros(1, np.uint32), np.zeros(32, np.uint32)
    assert findings(TWICE.format(value="%t"), x, y, grid=300) == []
    assert findings(TWICE.format(value="%c") + " membar.gl;", x, y, grid=300) == []
    assert findings(WORD, np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)) == []


def test_a_thread_may_write_again() -> None:
    body = "add.u64 %y, %y, %o2; st.global.b32 [%y], %t; st.global.b32 [%y], %c;"
    assert findings(body, np.zeros(1, np.uint32), np.zeros(64, np.uint32)) == []


_VECTOR = "st.global.v4.b32 [%y+16], {%r1, %r1, %r1, %r1};"
_BYTE = "st.global.b8 [%y+21], %c;"


@pytest.mark.parametrize(("first", "second"), [(_VECTOR, _BYTE), (_BYTE, _VECTOR)])
def test_ctas_that_write_words_of_several_sizes(first: str, second: str) -> None:
    """A byte into a vector of another CTA, and a vector over a byte: the byte where both meet is named."""
    body = f"setp.eq.u32 %p, %c, 0; mov.b32 %r1, 0x02020202; @%p {first} @!%p {second}"
    found = findings(body, np.zeros(1, np.uint32), np.ones(12, np.uint32))
    (twice,) = [one.message for one in found if one.kind == "written twice"]
    assert twice.startswith(f"{second.split()[0]} writes byte 21 of")


# --- element types -----------------------------------------------------------------------------------------


def test_halves_of_floats() -> None:
    x, y = np.ones(64, np.float32), np.zeros(32, np.float32)
    first, second = findings(HALF, x, y)
    assert kinds((first, second)) == [("element type", "warning")] * 2
    assert first.message == (
        "ld.global.b16 takes 2 bytes at a time of x (float32 (64,)), whose elements have 4, and no statement "
        "takes a whole element: the kernel expects an array of another type"
    )
    assert kinds(findings(HALF, x, np.zeros(64, np.float32))) == [("element type", "warning")] * 2 + [
        ("unwritten", "note")
    ]


def test_doubles_for_a_kernel_of_floats() -> None:
    found = findings(WORD, np.ones(64), np.zeros(64, np.float32))
    assert kinds(found) == [("element type", "warning")]
    assert "ld.global.b32 takes 4 bytes at a time of x (float64 (64,))" in found[0].message


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.uint32])
def test_packed_elements_are_normal(dtype: Any) -> None:
    """Words of halves and bytes; and integers, which hold anything."""
    count = 256 // np.dtype(dtype).itemsize
    assert findings(WORD, np.ones(count, dtype), np.zeros(count, dtype)) == []
    assert findings(HALF, np.ones(count // 2, dtype), np.zeros(count // 2, dtype)) == []


def test_vectors_and_bytes_say_nothing_of_the_type() -> None:
    wide = (
        "mul.wide.u32 %o2, %r0, 16; add.u64 %x, %x, %o2; add.u64 %y, %y, %o2;"
        "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%x]; st.global.v4.b32 [%y], {%r1, %r2, %r3, %r4};"
    )
    assert findings(wide, np.ones(128), np.zeros(128)) == []
    bytewise = (
        "cvt.u64.u32 %o2, %r0; add.u64 %x, %x, %o2; add.u64 %y, %y, %o2;"
        "ld.global.u8 %h1, [%x]; st.global.u8 [%y], %h1;"
    )
    assert findings(bytewise, np.ones(16, np.float32), np.zeros(16, np.float32)) == []
