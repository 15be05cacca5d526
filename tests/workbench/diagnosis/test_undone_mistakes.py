"""Verdicts on operands that every execution reads in another way, and on arguments in the wrong order.

The kernels load whole registers, of a few instructions along k, from arrays; so what they are given is what a
host that packs fragments has written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim import Verdict
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.verdicts.launch_causes import operand_registers

STEPS = 2
MMA = "mma.sync.aligned"
MX = f"{MMA}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
S8, U8 = (f"{MMA}.m16n8k32.row.col.s32.{a}.s8.s32" for a in ("s8", "u8"))
S4 = f"{MMA}.m16n8k64.row.col.s32.s4.s4.s32"
XOR, AND = (f"{MMA}.m16n8k256.row.col.s32.b1.b1.s32.{how}.popc" for how in ("xor", "and"))
E4M3, E5M2 = (f"{MMA}.m16n8k32.row.col.f32.e4m3.{b}.f32" for b in ("e4m3", "e5m2"))
E2M1 = f"{MMA}.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e4m3.f32"
E3M2 = f"{MMA}.kind::f8f6f4.m16n8k32.row.col.f32.e3m2.e2m1.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
TF32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"


def kernel_text(form: warpsim.Instruction, immediates: str) -> str:
    """PTX that executes a form on words of arrays: lane after lane, a step after a step."""
    names = [name for name in ("a", "b", "e", "scale_a", "scale_b") if name in form.registers]
    counts = {name: form.registers[name] for name in names}
    lines = [f".version 8.8\n.target {form.target}\n.address_size 64\n.visible .entry words("]
    lines.append(", ".join(f".param .u64 {name}" for name in (*names, "d")))
    lines.append(
        ")\n{ .reg .b32 %a<9>, %b<9>, %e<9>, %scale_a<9>, %scale_b<9>, %d<9>, %r<4>; .reg .b64 %p<9>;"
    )
    lines.append("mov.u32 %r0, %tid.x;")
    lines += [f"mov.b32 %d{i}, 0;" for i in range(form.registers["d"])]
    for step in range(STEPS):
        for name, count in counts.items():
            lines.append(
                f"ld.param.u64 %p0, [{name}]; mul.wide.u32 %p1, %r0, {4 * count}; add.s64 %p0, %p0, %p1;"
            )
            lines += [f"ld.global.b32 %{name}{i}, [%p0+{128 * count * step + 4 * i}];" for i in range(count)]
        groups = [f"{{{', '.join(f'%{name}{i}' for i in range(form.registers[name]))}}}" for name in "dab"]
        lines.append(f"{form.mnemonic} {', '.join(groups)}, {groups[0]}{immediates};")
    lines.append("ld.param.u64 %p0, [d]; mul.wide.u32 %p1, %r0, 16; add.s64 %p0, %p0, %p1;")
    lines += [f"st.global.b32 [%p0+{4 * i}], %d{i};" for i in range(form.registers["d"])]
    return "\n".join([*lines, "ret; }"])


def words(form: warpsim.Instruction, seed: int = 3) -> dict[str, Any]:
    """Random operands of the steps, whose sums are exact."""
    random = np.random.default_rng(seed)
    found = {}
    for name in (name for name in ("a", "b", "scale_a", "scale_b") if name in form.registers):
        shape = (STEPS, 32, form.registers[name])
        found[name] = random.integers(0, 1 << 32, shape, np.uint32)
        if name in "ab" and form.format(name).is_float:
            shape = (STEPS, *form.matrix_shape(name))
            matrix = random.integers(-3, 4, shape).astype(form.format(name).dtype)
            found[name] = np.stack([warpsim.pack(form, name, each) for each in matrix])
        elif name.startswith("scale"):
            found[name] = (found[name] & np.uint32(0x07070707)) + np.uint32(0x7C7C7C7C)
    if "e" in form.registers:
        A = random.standard_normal((STEPS, form.shape.m, form.shape.k)).astype(form.a.dtype)
        kept = (warpsim.compress(warpsim.prune(each, form), form)[1] for each in A)
        found["e"] = np.stack([warpsim.pack_metadata(form, indices, selector=0) for indices in kept])
    return found


def results(form: warpsim.Instruction, given: dict[str, Any], **settings: Any) -> Any:
    d = np.zeros((32, form.registers["d"]), np.uint32)
    for step in range(STEPS):
        now = {name: array[step] for name, array in given.items()}
        d = warpsim.execute(form, c=d, **now, **settings)
    return d


def verdict(
    mnemonic: str, target: str, given: dict[str, Any], expected: Any, immediates: str = ""
) -> Verdict:
    form = warpsim.decode(mnemonic, target=target)
    kernel = load_text(kernel_text(form, immediates), "words.ptx")["words"]
    args = [*given.values(), np.zeros((32, form.registers["d"]), np.uint32)]
    return warpsim.why(kernel, 1, 32, args, {len(args) - 1: expected})


@pytest.mark.parametrize(
    ("used", "meant", "target", "said"),
    [
        (S8, U8, "sm_80", "type of A u8 instead of s8"),
        (XOR, AND, "sm_80", "bit operation and instead of xor"),
        (E4M3, E5M2, "sm_89", "type of B e5m2 instead of e4m3"),
    ],
)
def test_another_instruction_is_meant(used: str, meant: str, target: str, said: str) -> None:
    form = warpsim.decode(meant, target=target)
    given = words(form)
    found = verdict(used, target, given, results(form, given))
    assert found.kind == "instruction"
    assert found.cause.endswith(said)
    assert found.fix == f"use {meant}, or convert the operands"
    assert found.location is not None
    assert found.location.text.lstrip().startswith(used)


def nibbles_exchanged(x: Any) -> Any:
    return (x & np.uint32(0x0F0F0F0F)) << np.uint32(4) | x >> np.uint32(4) & np.uint32(0x0F0F0F0F)


def fields_exchanged(x: Any) -> Any:
    return (x & np.uint32(0x33333333)) << np.uint32(2) | x >> np.uint32(2) & np.uint32(0x33333333)


def unshifted(x: Any) -> Any:
    return x >> np.uint32(2)


def shifted_up(x: Any) -> Any:
    return x << np.uint32(2)


def as_indices(x: Any) -> Any:
    return x >> np.uint32(3) & np.uint32(0x11111111)


@pytest.mark.parametrize(
    ("mnemonic", "target", "role", "change", "said"),
    [
        (S4, "sm_80", "b", nibbles_exchanged, "B: nibbles of each byte exchanged"),
        (SPARSE, "sm_80", "e", fields_exchanged, "indices of each field exchanged"),
        (E2M1, "sm_120a", "a", unshifted, "elements 2 bits too low in their bytes"),
        (E3M2, "sm_120a", "a", shifted_up, "elements 2 bits too high in their bytes"),
        (E3M2, "sm_120a", "b", shifted_up, "elements 2 bits too high in their bytes"),
        (TF32, "sm_90a", "e", as_indices, "indices 0 and 1 written as fields"),
    ],
)
def test_a_host_that_packs_words_in_another_order(
    mnemonic: str, target: str, role: str, change: Any, said: str
) -> None:
    form = warpsim.decode(mnemonic, target=target)
    given = words(form)
    expected = results(form, given)
    packed = {**given, role: change(given[role])}
    found = verdict(mnemonic, target, packed, expected, ", %e0, 0" * form.sparse)
    assert found.kind == "registers held"
    assert said in found.cause
    assert "every output is as expected" in found.causes[0].evidence
    assert found.location is not None
    assert "ld.global" in found.location.text


@pytest.mark.parametrize(("half", "said"), [(0x1000, "cvt.rna"), (0xFFF, "cvt.rn")])
def test_f32_that_no_cvt_has_rounded(half: int, said: str) -> None:
    form = warpsim.decode(f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32", target="sm_80")
    random = np.random.default_rng(5)
    given = {
        name: random.standard_normal((STEPS, 32, form.registers[name])).astype(np.float32).view(np.uint32)
        for name in "ab"
    }
    bit = {name: words >> np.uint32(13) & np.uint32(half == 0xFFF) for name, words in given.items()}
    rounded = {
        name: words + np.uint32(half) + bit[name] & np.uint32(0xFFFFE000) for name, words in given.items()
    }
    found = verdict(form.mnemonic, "sm_80", given, results(form, rounded))
    assert found.cause.startswith("operands a and b of the matrix instruction: A and B: f32 not rounded to")
    assert f"tf32 ({said})" in found.cause


def test_immediates_that_name_other_lanes_and_bytes() -> None:
    form = warpsim.decode(SPARSE, target="sm_80")
    given = words(form)
    given["e"][:, 2::4] = given["e"][:, 3::4] = np.uint32(0x44444444)  # of selector 1
    found = verdict(SPARSE, "sm_80", given, results(form, given), ", %e0, 1")
    assert "operand e of the matrix instruction: selector 0 meant" in found.cause
    form = warpsim.decode(MX, target="sm_120a")
    given = words(form)
    immediates = ", {%scale_a0}, {0, 0}, {%scale_b0}, {1, 0}"
    found = verdict(MX, "sm_120a", given, results(form, given), immediates)
    assert "byte id off by +1" in found.cause
    assert found.operand == "scale_b"
    assert results(form, given, byte_id_b=1).tobytes() != results(form, given).tobytes()


def test_the_registers_of_an_operand_are_read_off_the_text() -> None:
    scaled = "{%f0}, {%a0}, {%b0}, {%f0}, {%s0}, {0, 1}, {%s1}, {0, 0}"
    assert operand_registers(scaled, "scale_a") == ["%s0"]
    assert operand_registers(scaled, "scale_b") == ["%s1"]
    assert operand_registers("[%r0], %rd1, %p", "scale_a") == []


def test_a_launch_that_another_mistake_explains_no_better_stays_without_a_cause() -> None:
    form = warpsim.decode(S8, target="sm_80")
    given = words(form)
    expected = results(form, given)
    expected[3, 1] += np.uint32(1)
    found = verdict(S8, "sm_80", given, expected)
    assert (found.kind, len(found.errors)) == ("", 1)


# --- arguments -----------------------------------------------------------------------------------------

SIMT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 d, .param .u32 m, .param .u32 n)
{ .reg .b64 %p<9>; .reg .b32 %r<9>; .reg .f64 %x<9>; .reg .pred %q;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r6, %ctaid.y; shl.b32 %r2, %r1, 3; shl.b32 %r7, %r6, 3;
  shr.u32 %r3, %r0, 2; and.b32 %r4, %r0, 3; add.u32 %r2, %r2, %r3; add.u32 %r3, %r7, %r3;
  ld.param.u32 %r6, [n];
  ld.param.u64 %p0, [a]; mad.lo.u32 %r5, %r2, 4, %r4; mul.wide.u32 %p1, %r5, 8; add.s64 %p0, %p0, %p1;
  ld.global.f64 %x0, [%p0];
  ld.param.u64 %p0, [b]; mad.lo.u32 %r5, READ; mul.wide.u32 %p1, %r5, 8; add.s64 %p0, %p0, %p1;
  ld.global.f64 %x1, [%p0];
  mov.f64 %x2, 0.0; mov.f64 %x3, 0.0;
  mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%x2, %x3}, {%x0}, {%x1}, {%x2, %x3};
  shl.b32 %r4, %r4, 1; add.u32 %r4, %r4, %r7;
  ld.param.u64 %p0, [d]; mad.lo.u32 %r5, %r2, %r6, %r4; mul.wide.u32 %p1, %r5, 8; add.s64 %p0, %p0, %p1;
  st.global.f64 [%p0], %x2; st.global.f64 [%p0+8], %x3; ret; }
"""


def product(read: str = "%r4, %r6, %r3", **changed: Any) -> Verdict:
    """B (4, n) is read in column ctaid.y; ``changed`` are arguments of the launch."""
    random = np.random.default_rng(0)
    m, n = 32, changed.pop("n", 16)
    A, B = random.integers(-4, 5, (m, 4)).astype(float), random.integers(-4, 5, (4, n)).astype(float)
    given = {"a": A, "b": B, "d": np.zeros((m, n)), "m": m, "n": n} | changed.pop("args", {})
    kernel = load_text(SIMT.replace("READ", read), "product.ptx")["product"]
    assert product_is_right(kernel, A, B) or read != "%r4, %r6, %r3"
    return warpsim.why(kernel, changed.get("grid", (m // 8, n // 8)), 32, [*given.values()], {2: A @ B})


def product_is_right(kernel: Any, A: Any, B: Any) -> bool:
    d = np.zeros((len(A), B.shape[1]))
    kernel((len(A) // 8, B.shape[1] // 8), 32, [A, B, d, *d.shape])
    return bool((d == A @ B).all())


def test_arguments_and_axes_of_the_grid_that_are_exchanged() -> None:
    found = product(args={"m": 16, "n": 32})
    assert found.cause == (
        "argument 3 (m = 16) and argument 4 (n = 32) are exchanged: the other way round every output is as "
        "expected"
    )
    found = product(grid=(2, 4))
    assert found.cause == (
        "x and y of the grid (2, 4, 1) are exchanged: with (4, 2, 1) every output is as expected"
    )
    assert len(found.causes) > 1  # beyond the end of an array, which ends the launch


LAST_CTA = """.version 8.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 d)
{ .reg .b64 %p<2>; .reg .b32 %r<4>;
  ld.param.u64 %p0, [d]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.wide.u32 %p1, %r1, 4, %p0;
  st.global.b32 [%p1], %r0; ret; }
"""


def test_axes_that_the_kernel_does_not_read_are_not_exchanged() -> None:
    """With (1, 3, 1) all CTAs do the work of the first: that makes outputs right, and is not a mistake."""
    kernel = load_text(LAST_CTA, "last.ptx")["last"]
    found = warpsim.why(kernel, (3, 1), 32, [np.zeros(32, np.int32)], {0: np.zeros(32, np.int32)})
    assert found.errors
    assert found.kind != "argument"


def test_arrays_of_other_sizes_that_are_exchanged() -> None:
    """The first reads beyond its end, which ends the launch."""
    random = np.random.default_rng(0)
    A, B = random.integers(-4, 5, (32, 4)).astype(float), random.integers(-4, 5, (4, 16)).astype(float)
    found = product(args={"a": B, "b": A})
    assert found.cause == (
        "argument 0 (a) and argument 1 (b) are exchanged: the other way round every output is as expected"
    )


def test_a_matrix_that_is_read_as_its_transpose() -> None:
    found = product("%r3, 4, %r4", n=16)
    assert (found.kind, found.operand) == ("stride", "b")
    assert found.causes[0].evidence.startswith("proven")
    assert found.location is not None
    assert "ld.global.f64 %x1" in found.location.text
