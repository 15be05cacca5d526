"""Origins of fragments of wmma, and verdicts on mistakes in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import kernel_cases
from warpsim.programs.launch.launching import load_text
from warpsim.show.views.origins import fragment_lines, origin_lines
from warpsim.workbench.diagnosis.origins.element_origins import Origins, find_origins

M, N, K = 32, 32, 48
KERNEL = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)
{
  .reg .b64 %a, %b, %d; .reg .b32 %x<8>, %y<8>, %t, %u, %step; .reg .f32 %s<8>; .reg .pred %p;
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %d, [d];
  mov.u32 %t, %ctaid.y; mul.lo.u32 %u, %t, 1536; cvt.u64.u32 %a0, %u; add.u64 %a, %a, %a0;
  mul.lo.u32 %u, %t, 2048; cvt.u64.u32 %a0, %u; add.u64 %d, %d, %a0;
  mov.u32 %t, %ctaid.x; mul.lo.u32 %u, %t, 32; cvt.u64.u32 %a0, %u; add.u64 %b, %b, %a0;
  mul.lo.u32 %u, %t, 64; cvt.u64.u32 %a0, %u; add.u64 %d, %d, %a0;
  mov.f32 %s0, 0f00000000; mov.f32 %s1, %s0; mov.f32 %s2, %s0; mov.f32 %s3, %s0;
  mov.f32 %s4, %s0; mov.f32 %s5, %s0; mov.f32 %s6, %s0; mov.f32 %s7, %s0;
  mov.u32 %step, 0;
LOOP:
  wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}, [%a], 48;
  wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {%y0, %y1, %y2, %y3, %y4, %y5, %y6, %y7}, [%b], 32;
  wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7},
    {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}, {%y0, %y1, %y2, %y3, %y4, %y5, %y6, %y7},
    {%s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7};
  add.u64 %a, %a, 32;
  add.u64 %b, %b, 1024;
  add.u32 %step, %step, 1; setp.lt.u32 %p, %step, 3; @%p bra LOOP;
  wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d], {%s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7}, 32;
  ret;
}
""".replace(".reg .b64 %a,", ".reg .b64 %a, %a0,")


def arguments() -> list[Any]:
    random = np.random.default_rng(0)
    A, B = (random.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    return [A, B, np.zeros((M, N), np.float32)]


def changed(*edits: tuple[str, str]) -> Any:
    text = KERNEL
    for before, after in edits:
        assert before in text
        text = text.replace(before, after, 1)
    return load_text(text, "k.ptx")["k"]


def origins(*edits: tuple[str, str]) -> Origins:
    return find_origins(changed(*edits), (2, 2), 32, arguments(), {"A": 0, "B": 1})


def test_every_element_of_both_arrays_arrives() -> None:
    found = origins()
    assert found.findings == ()
    assert found.unexplained == ()
    assert [found.used(one) for one in found.buffers] == [1.0, 1.0]
    formulas = {one.role: one.formulas for one in found.operands if one.formulas}
    assert formulas["a"] == (
        "row = 16 * ctaid.y + r, column = 16 * step + k (100.0% of the elements that are moved)",
    )
    assert formulas["b"] == (
        "row = 16 * step + k, column = 16 * ctaid.x + n (100.0% of the elements that are moved)",
    )


def test_what_a_user_sees() -> None:
    found = origins()
    lines = list(origin_lines(found))
    assert "no inconsistency found" in lines[0]
    assert any("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32, 12 executions" in line for line in lines)
    (b,) = (one for one in found.operands if one.role == "b")
    shown = list(fragment_lines(b, 1))
    assert shown[1].split() == ["n", "k", "from"]
    assert shown[3].split() == ["0", "1", "B[17,", "0]"]


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            (("load.b.sync.aligned.row", "load.b.sync.aligned.col"), (".row.row.m16", ".row.col.m16")),
            "the tile of B is transposed: it lies row_major where col_major is loaded",
        ),
        ((("add.u64 %a, %a, 32", "add.u64 %a, %a, 0"),), "A is of columns 0..15 where B of rows 16..31"),
        (
            (("[%a], 48;", "[%a], 40;"),),
            "A's row stride is 40 elements as it is read, the data was written with 48",
        ),
        (
            (("add.u64 %a, %a, 32", "add.u64 %a, %a, 0"), ("add.u64 %b, %b, 1024", "add.u64 %b, %b, 0")),
            "A of columns 0..15 and B of rows 0..15 are multiplied again",
        ),
    ],
)
def test_mistakes_are_named(edits: tuple[tuple[str, str], ...], expected: str) -> None:
    assert origins(*edits).findings[0].message.startswith(expected)


SKIPPED = (
    "  wmma.mma.sync",
    "  mov.u32 %t, %ctaid.y; xor.b32 %u, %step, 1; or.b32 %u, %u, %t; setp.eq.u32 %p, %u, 0; @%p bra NEXT;\n"
    "  wmma.mma.sync",
)
EVERY_SECOND = (
    ("add.u64 %a, %a, 32", "add.u64 %a, %a, 64"),
    ("add.u64 %b, %b, 1024", "add.u64 %b, %b, 2048"),
    ("%step, 3", "%step, 2"),
)


@pytest.mark.parametrize(
    ("edits", "messages"),
    [
        (
            (("mul.lo.u32 %u, %t, 32;", "mul.lo.u32 %u, %t, 0;"),),
            [
                "no matrix instruction is given columns 16..31 of B: 2 warps multiply the same columns with "
                "the same rows of A (warp 0 of CTAs (0, 0, 0), (1, 0, 0))"
            ],
        ),
        (
            EVERY_SECOND,
            [
                "no matrix instruction is given columns 16..31 of A or rows 16..31 of B: these k are left "
                "out between others"
            ],
        ),
        (
            (SKIPPED, ("  add.u64 %a, %a, 32", "NEXT:\n  add.u64 %a, %a, 32")),
            [
                "no matrix instruction is given rows 0..15, columns 16..31 of A, though it is given other k "
                "of these rows and B of this k: D lacks their products"
            ],
        ),
        (  # a triangle: the first rows have fewer k
            (
                (
                    "setp.lt.u32 %p, %step, 3",
                    "mov.u32 %t, %ctaid.y; add.u32 %t, %t, 2; setp.lt.u32 %p, %step, %t",
                ),
            ),
            [],
        ),
        ((("%step, 3", "%step, 2"),), []),  # the arrays are larger along k
    ],
)
def test_unused_elements_are_findings(edits: tuple[tuple[str, str], ...], messages: list[str]) -> None:
    found = origins(*edits)
    assert [one.message for one in found.findings] == messages
    assert {one.kind for one in found.findings} <= {"unused"}
    assert found.unexplained  # it is never said that they fit together


@pytest.mark.parametrize("name", [name for name in kernel_cases.NAMES if name.startswith("rounded_")])
def test_right_kernels_have_no_findings(name: str) -> None:
    case = kernel_cases.case(name)
    kernel = load_text((kernel_cases.FOLDER / case.file).read_text())[case.entry]
    found = find_origins(kernel, case.grid, case.block, case.arguments, {"A": 0, "B": 1})
    assert found.findings == ()
    assert [found.used(one) for one in found.buffers] == [1.0, 1.0]


def test_the_verdict_names_the_load() -> None:
    args = arguments()
    right = arguments()
    changed()((2, 2), 32, right)
    wrong = changed(("load.b.sync.aligned.row", "load.b.sync.aligned.col"), (".row.row.m16", ".row.col.m16"))
    found = warpsim.why(wrong, (2, 2), 32, args, {2: right[2]}, 1e-3)
    assert "operand b of the matrix instruction: the tile of b is transposed" in found.cause
    assert found.location is not None
    assert found.location.line == 17
    assert found.operand == "b"
    assert found.fix == "load it with the other of .row and .col (row_major and col_major)"


def test_the_verdict_names_columns_that_are_never_used() -> None:
    right = arguments()
    changed()((2, 2), 32, right)
    wrong = changed(("mul.lo.u32 %u, %t, 32;", "mul.lo.u32 %u, %t, 0;"))
    found = warpsim.why(wrong, (2, 2), 32, arguments(), {2: right[2]}, 1e-3)
    assert "columns 16..31 of b: 2 warps multiply the same columns" in found.cause
    assert (found.kind, found.operand) == ("unused", "b")
    assert "index 1: -16" in found.causes[0].symptoms[0]


def test_c_in_the_registers_of_d_is_read_before_it_is_written() -> None:
    found = warpsim.why(changed(), (2, 2), 32, arguments(), reference=lambda a, b, d: a @ b)
    assert found.as_expected
