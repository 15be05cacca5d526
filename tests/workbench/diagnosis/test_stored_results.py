"""Verdicts on what becomes of a product: ReLU, bias, factor, and elements that are not stored."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim import Verdict
from warpsim.programs.launch.launching import load_text

ROWS, COLUMNS = 32, 24
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 bias, .param .u64 d)
{ .reg .b64 %p<9>; .reg .b32 %r<20>, %a<4>, %b<2>; .reg .f32 %d<4>, %x<4>;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.x; shr.u32 %r3, %r0, 2; and.b32 %r4, %r0, 3;
  shl.b32 %r5, %r1, 4; add.u32 %r5, %r5, %r3; shl.b32 %r6, %r2, 3; add.u32 %r7, %r6, %r3;
  ld.param.u64 %p0, [a]; mad.lo.u32 %r8, %r5, 8, %r4; mad.wide.u32 %p0, %r8, 4, %p0;
  ld.global.b32 %a0, [%p0]; ld.global.b32 %a1, [%p0+256]; ld.global.b32 %a2, [%p0+16];
  ld.global.b32 %a3, [%p0+272];
  ld.param.u64 %p1, [b]; mad.lo.u32 %r8, %r7, 8, %r4; mad.wide.u32 %p1, %r8, 4, %p1;
  ld.global.b32 %b0, [%p1]; ld.global.b32 %b1, [%p1+16];
  mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1},
    {%d0, %d1, %d2, %d3};
  shl.b32 %r9, %r4, 1; add.u32 %r9, %r9, %r6;
"""
STORE = """  add.u32 %r10, %r5, ROW; add.u32 %r11, %r9, COLUMN;
  ld.param.u64 %p2, [bias]; mad.wide.u32 %p2, AT, 4, %p2; ld.global.f32 %x0, [%p2];
  MAKE
  ld.param.u64 %p3, [d]; mad.lo.u32 %r12, %r10, 24, %r11; mad.wide.u32 %p3, %r12, 4, %p3;
  st.global.f32 [%p3], %x1;
"""
ADD = "add.f32 %x1, VALUE, %x0;"
RELU = "max.f32 %x1, %x1, 0f00000000;"
BEFORE = f"max.f32 %x1, VALUE, 0f00000000; {ADD.replace('VALUE', '%x1')}"


def kernel_text(make: str = ADD, at: str = "%r11", half: int = 8, column: str = "%ctaid.x") -> str:
    stores = ""
    for i in range(4):
        store = STORE.replace("ROW", str(i // 2 * half)).replace("COLUMN", str(i % 2))
        stores += store.replace("MAKE", make).replace("AT", at).replace("VALUE", f"%d{i}")
    return HEAD.replace("%ctaid.x", column) + stores + "ret; }"


def matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(4)
    A, B = (random.integers(-3, 4, (size, 16)).astype(np.float16) for size in (ROWS, COLUMNS))
    return A, B, random.integers(-20, 20, ROWS).astype(np.float32)


def product() -> np.ndarray:
    A, B, _ = matrices()
    found: np.ndarray = A.astype(np.float32) @ B.astype(np.float32).T
    return found


def verdict(text: str, expected: np.ndarray) -> Verdict:
    kernel = load_text(text, "product.ptx")["product"]
    args: list[Any] = [*matrices(), np.zeros((ROWS, COLUMNS), np.float32)]
    return warpsim.why(kernel, (COLUMNS // 8, ROWS // 16), 32, args, {3: expected.astype(np.float32)}, 1e-6)


def test_the_kernel_that_is_right() -> None:
    expected = product() + matrices()[2][:COLUMNS]
    assert verdict(kernel_text(), expected).as_expected
    assert verdict(kernel_text(f"{ADD} {RELU}"), np.maximum(expected, 0)).as_expected


@pytest.mark.parametrize(
    ("make", "cut", "kind", "statement"),
    [
        (BEFORE, "after", "order", "max.f32"),
        (f"{ADD} {RELU}", "before", "missing", "add.f32"),
        (ADD, "after", "missing", "st.global.f32"),
        (f"{ADD} {RELU}", "nowhere", "extra", "max.f32"),
    ],
)
def test_a_relu_in_another_place(make: str, cut: str, kind: str, statement: str) -> None:
    bias = matrices()[2][:COLUMNS]
    wanted = {
        "after": np.maximum(product() + bias, 0),
        "before": np.maximum(product(), 0) + bias,
        "nowhere": product() + bias,
    }
    found = verdict(kernel_text(make), wanted[cut])
    assert "product + bias[:24]" in found.formula
    assert ("relu" in found.formula) == (cut != "nowhere")
    assert found.kind == kind
    assert "max" in found.cause
    assert found.location is not None
    assert found.location.quoted().startswith(statement)


def test_a_bias_by_row_and_with_a_relu() -> None:
    expected = product() + matrices()[2][:COLUMNS]
    for make, wanted in ((ADD, expected), (f"{ADD} {RELU}", np.maximum(expected, 0))):
        found = verdict(kernel_text(make, at="%r10"), wanted)
        assert found.kind == "operand"
        assert found.cause.startswith("bias[")
        assert found.location is not None
        assert found.location.quoted().startswith("ld.global.f32")


def test_a_factor_whose_digits_are_wrong() -> None:
    """0.0883383 for the inverse of the root of 128: D shows factors to six digits, the output to more."""
    wrong = struct.pack(">f", 0.0883383).hex()
    found = verdict(kernel_text(f"mul.f32 %x1, VALUE, 0f{wrong};"), product() / np.sqrt(128))
    assert found.kind == "operand"
    assert found.cause.startswith("0.0883383 stands where the reference has 0.0883882")


# --- elements that are not stored ------------------------------------------------------------------


def test_rows_that_are_stored_over_others() -> None:
    expected = product() + matrices()[2][:COLUMNS]
    found = verdict(kernel_text(half=4), expected)
    assert found.kind == "moved"
    assert found.location is not None
    assert found.location.text.lstrip().startswith("st.global.f32")


def test_tiles_that_several_ctas_store() -> None:
    """ctaid.y stands for both axes: columns 16 to 23 are of none, and no product is blamed."""
    expected = product() + matrices()[2][:COLUMNS]
    found = verdict(kernel_text(column="%ctaid.y"), expected)
    assert found.kind == "never stored"
    assert "all 512 wrong elements" in found.causes[0].evidence


def test_what_is_meant_to_stay_is_not_blamed() -> None:
    """An output that is larger than what is stored, as expected there, and wrong elsewhere."""
    kernel = load_text(kernel_text(), "product.ptx")["product"]
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    expected[:16] = (product() + matrices()[2][:COLUMNS])[:16]
    expected[3, 5] += 1
    args: list[Any] = [*matrices(), np.zeros((ROWS, COLUMNS), np.float32)]
    found = warpsim.why(kernel, (COLUMNS // 8, 1), 32, args, {3: expected}, 1e-6)
    assert found.kind != "unwritten"
