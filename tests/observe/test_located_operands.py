"""Operands that are computed values themselves: the mistake is located in what computes them, and proven."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.helpers.families import each_of
from warpsim.observe.algebra.locating.located_record import Located
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.located_launches import answer_of
from warpsim.workbench.diagnosis.verdicts.repeated_launch import RepeatedLaunch

Array = np.ndarray[Any, Any]


def _f32(value: float) -> str:
    return f"0f{struct.unpack('<I', struct.pack('<f', value))[0]:08X}"


HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k({params})
{{
.reg .pred %q<4>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .f32 %f<128>; .reg .b64 %rd<16>; .reg .b64 %p<8>;
{loads}
mov.u32 %r0, %tid.x;
"""


@dataclass(frozen=True)
class Kernel:
    """A body behind pointers ``%p0`` to ``%pN`` and the lane ``%r0``; threads, arguments and reference."""

    body: str
    threads: int
    arguments: Callable[[np.random.Generator], list[Array]]
    reference: Callable[..., Any]

    def text(self, old: str, new: str) -> str:
        """Return the PTX, with one mistake."""
        assert self.body.count(old) >= 1, old
        pointers = range(len(self.arguments(np.random.default_rng(1))))
        params = ", ".join(f".param .u64 a{each}" for each in pointers)
        loads = "\n".join(f"ld.param.u64 %p{each}, [a{each}];" for each in pointers)
        return HEAD.format(params=params, loads=loads) + self.body.replace(old, new, 1) + "\nret;\n}\n"

    def answer(self, old: str, new: str) -> tuple[str, Located | None]:
        """Return the answer of a launch with a mistake, and where it is located."""
        kernel = load_text(self.text(old, new))["k"]
        args = self.arguments(np.random.default_rng(1))
        sizes = {"grid": 1, "block": self.threads}
        launch = RepeatedLaunch(kernel=kernel, sizes=sizes, args=args, options={}, before={})
        found = answer_of(launch, self.reference)
        return found.equivalence.answer, found.located


def _loaded(to: str, pointer: int, offset: int, stride: int, kind: str = "f32") -> str:
    """Return the load of an element: ``stride`` bytes a lane."""
    return f"mad.wide.u32 %rd0, %r0, {stride}, %p{pointer}; ld.global.{kind} {to}, [%rd0+{offset}];\n"


# --- an operand of mma, rotated as positions are ------------------------------------------------------


def _rotated() -> str:
    """Return an mma of m16n8k8: A is ``x[:, :8] * c - x[:, 8:] * s``, of f32 arrays."""
    lines = ["shr.u32 %r1, %r0, 2; and.b32 %r2, %r0, 3; shl.b32 %r3, %r2, 3;\n"]
    for half in (0, 1):
        lines.append(
            f"add.u32 %r4, %r1, {8 * half}; mad.lo.u32 %r5, %r4, 64, %r3; mad.lo.u32 %r6, %r4, 32, %r3;"
        )
        lines.append("cvt.u64.u32 %rd1, %r5; cvt.u64.u32 %rd2, %r6; add.u64 %rd3, %p0, %rd1;")
        lines.append("add.u64 %rd4, %p1, %rd2; add.u64 %rd5, %p2, %rd2;")
        for each in (0, 1):
            a, b = 10 * half + 5 * each, 4 * each
            lines.append(f"ld.global.f32 %f{a}, [%rd3+{b}]; ld.global.f32 %f{a + 1}, [%rd3+{32 + b}];")
            lines.append(f"ld.global.f32 %f{a + 2}, [%rd4+{b}]; ld.global.f32 %f{a + 3}, [%rd5+{b}];")
            lines.append(f"mul.f32 %f{a + 4}, %f{a + 1}, %f{a + 3};")
            lines.append(f"neg.f32 %f{a + 4}, %f{a + 4};")
            lines.append(f"fma.rn.f32 %f{a + 4}, %f{a}, %f{a + 2}, %f{a + 4};")
        lines.append(f"cvt.rn.f16x2.f32 %r{10 + half}, %f{10 * half + 9}, %f{10 * half + 4};")
    lines.append(
        "shl.b32 %r7, %r0, 2; cvt.u64.u32 %rd6, %r7; add.u64 %rd6, %p3, %rd6; ld.global.b32 %r12, [%rd6];"
    )
    lines.append("mov.f32 %f30, 0f00000000;")
    lines.append("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
    lines.append("{%f40, %f41, %f42, %f43}, {%r10, %r11}, {%r12}, {%f30, %f30, %f30, %f30};")
    lines.append("mad.lo.u32 %r8, %r1, 32, %r3; cvt.u64.u32 %rd7, %r8; add.u64 %rd7, %p4, %rd7;")
    lines.append("st.global.v2.f32 [%rd7], {%f40, %f41}; st.global.v2.f32 [%rd7+256], {%f42, %f43};")
    return "\n".join(lines)


ROTATED = Kernel(
    body=_rotated(),
    threads=32,
    arguments=lambda random: [
        *(random.standard_normal(shape).astype(np.float32) for shape in ((16, 16), (16, 8), (16, 8))),
        random.standard_normal((8, 8)).astype(np.float16),
        np.zeros((16, 8), np.float32),
    ],
    reference=lambda x, c, s, w, d: (x[:, :8] * c - x[:, 8:] * s) @ w.T,
)


# --- both operands of mma, of pairs of columns ---------------------------------------------------------


def _pair(into: int, row: str, place: int) -> str:
    """Return a value of a fragment, ``x[row, k] * c[row, k] - x[row, k + 8] * s[row, k]``, in a register."""
    a = into + 1
    return f"""
mad.lo.u32 %r4, %r2, 2, {place}; mul.lo.u32 %r5, %r4, %r20; mad.lo.u32 %r5, {row}, 64, %r5;
mad.lo.u32 %r6, {row}, 32, %r3; cvt.u64.u32 %rd1, %r5; cvt.u64.u32 %rd2, %r6; cvt.u64.u32 %rd6, %r21;
add.u64 %rd3, %p0, %rd1; add.u64 %rd4, %p1, %rd2; add.u64 %rd5, %p2, %rd2; add.u64 %rd6, %rd3, %rd6;
ld.global.f32 %f{a}, [%rd3]; ld.global.f32 %f{a + 1}, [%rd6];
ld.global.f32 %f{a + 2}, [%rd4+{4 * place}]; ld.global.f32 %f{a + 3}, [%rd5+{4 * place}];
mul.f32 %f{into}, %f{a + 1}, %f{a + 3}; neg.f32 %f{into}, %f{into};
fma.rn.f32 %f{into}, %f{a}, %f{a + 2}, %f{into};"""


def _paired() -> str:
    """Return an mma of m16n8k8 whose A and B are rows of one array, rotated."""
    lines = ["shr.u32 %r1, %r0, 2; and.b32 %r2, %r0, 3; shl.b32 %r3, %r2, 3; add.u32 %r7, %r1, 8;"]
    lines.append("mov.u32 %r20, 4; mov.u32 %r21, 32; // columns")
    for number, row in enumerate(("%r1", "%r7", "%r1")):
        lines += [_pair(10 * number, row, 0), _pair(10 * number + 5, row, 1)]
        lines.append(f"cvt.rn.f16x2.f32 %r{10 + number}, %f{10 * number + 5}, %f{10 * number};")
    lines.append("mov.f32 %f50, 0f00000000;")
    lines.append("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
    lines.append("{%f40, %f41, %f42, %f43}, {%r10, %r11}, {%r12}, {%f50, %f50, %f50, %f50};")
    lines.append("mad.lo.u32 %r8, %r1, 32, %r3; cvt.u64.u32 %rd7, %r8; add.u64 %rd7, %p3, %rd7;")
    lines.append("st.global.v2.f32 [%rd7], {%f40, %f41}; st.global.v2.f32 [%rd7+256], {%f42, %f43};")
    return "\n".join(lines)


def _of_pairs(x: Any, c: Any, s: Any, d: Any) -> Any:
    left = x[:, :8] * c - x[:, 8:] * s
    return left @ left[:8].T


PAIRED = Kernel(
    body=_paired(),
    threads=32,
    arguments=lambda random: [
        *(random.standard_normal(shape).astype(np.float32) for shape in ((16, 16), (16, 8), (16, 8))),
        np.zeros((16, 8), np.float32),
    ],
    reference=_of_pairs,
)

# --- two sums of the same factors ----------------------------------------------------------------------

TURNED = Kernel(
    body="".join(_loaded(f"%f{each}", each, 0, 4) for each in range(6))
    + """
mul.f32 %f6, %f1, %f3; neg.f32 %f6, %f6; fma.rn.f32 %f6, %f0, %f2, %f6; // cosine, sine
mul.f32 %f7, %f1, %f2; fma.rn.f32 %f7, %f0, %f3, %f7;
ex2.approx.f32 %f6, %f6; ex2.approx.f32 %f7, %f7; mul.f32 %f8, %f6, %f4; fma.rn.f32 %f8, %f7, %f5, %f8;
mad.wide.u32 %rd1, %r0, 4, %p6; st.global.f32 [%rd1], %f8;""",
    threads=8,
    arguments=lambda random: [
        *(random.standard_normal(8).astype(np.float32) for _ in range(6)),
        np.zeros(8, np.float32),
    ],
    reference=lambda x, z, c, s, u, v, y: np.exp2(x * c - z * s) * u + np.exp2(z * c + x * s) * v,
)

# --- a factor of all terms of a sum ---------------------------------------------------------------------


def _normed() -> str:
    lines = [_loaded(f"%f{k}", 0, 4 * k, 32) + f"ld.global.f32 %f{8 + k}, [%p1+{4 * k}];" for k in range(8)]
    lines.append("mul.f32 %f20, %f0, %f0;")
    lines += [f"fma.rn.f32 %f20, %f{k}, %f{k}, %f20;" for k in range(1, 8)]
    lines.append(f"mul.f32 %f20, %f20, {_f32(0.125)};")
    lines.append("ld.global.f32 %f21, [%p2]; add.f32 %f20, %f20, %f21;\nrsqrt.approx.f32 %f22, %f20;")
    lines.append("mov.f32 %f23, 0f00000000;")
    lines += [f"mul.f32 %f24, %f{k}, %f22; fma.rn.f32 %f23, %f24, %f{8 + k}, %f23;" for k in range(8)]
    lines.append("mad.wide.u32 %rd1, %r0, 4, %p3; st.global.f32 [%rd1], %f23;")
    return "\n".join(lines)


NORMED = Kernel(
    body=_normed(),
    threads=8,
    arguments=lambda random: [
        *(random.standard_normal(shape).astype(np.float32) for shape in ((8, 8), (8,))),
        np.full(1, 0.01, np.float32),
        np.zeros(8, np.float32),
    ],
    reference=lambda x, w, eps, y: (x * (1 / np.sqrt((x * x).mean(1) + eps[0]))[:, None]) @ w,
)


# --- a value that is used twice ---------------------------------------------------------------------------

GATED = Kernel(
    body=_loaded("%f0", 0, 0, 4)
    + _loaded("%f1", 1, 0, 4)
    + _loaded("%f2", 2, 0, 4)
    + f"""
add.f32 %f3, %f0, %f2;
mul.f32 %f4, %f3, {_f32(-1.0)};
mul.f32 %f5, %f4, {_f32(1.4426950408889634)};
ex2.approx.f32 %f6, %f5;
add.f32 %f7, %f6, {_f32(1.0)};
div.rn.f32 %f8, %f3, %f7;
mul.f32 %f9, %f8, %f1;
mad.wide.u32 %rd1, %r0, 4, %p3; st.global.f32 [%rd1], %f9;""",
    threads=16,
    arguments=lambda random: [
        *(random.standard_normal(16).astype(np.float32) for _ in range(3)),
        np.zeros(16, np.float32),
    ],
    reference=lambda gate, up, bias, y: (gate + bias) / (1 + np.exp(-(gate + bias))) * up,
)


# --- sums of products of integers, with scales of blocks --------------------------------------------------


def _blocks() -> str:
    lines = ["mov.f32 %f9, 0f00000000;"]
    for block in range(3):
        lines.append(_loaded("%r1", 0, 4 * block, 12, "b32") + f"ld.global.b32 %r2, [%p1+{4 * block}];")
        lines.append(
            f"mov.u32 %r4, 0;\ndp4a.s32.s32 %r3, %r1, %r2, %r4; cvt.rn.f32.s32 %f0, %r3; // block {block}"
        )
        lines.append(f"ld.global.f32 %f2, [%p3+{4 * block}];")
        lines.append(_loaded("%f1", 2, 4 * block, 12) + "mul.f32 %f3, %f1, %f2;")
        lines.append(f"ld.global.f32 %f4, [%p4+{4 * block}]; mul.f32 %f5, %f4, {_f32(-8.0)};")
        lines.append("fma.rn.f32 %f9, %f3, %f0, %f9; fma.rn.f32 %f9, %f1, %f5, %f9;")
    lines.append("mad.wide.u32 %rd1, %r0, 4, %p5; st.global.f32 [%rd1], %f9;")
    return "\n".join(lines)


BLOCKS = Kernel(
    body=_blocks(),
    threads=8,
    arguments=lambda random: [
        random.integers(-127, 128, (8, 3, 4)).astype(np.int8),
        random.integers(-127, 128, (3, 4)).astype(np.int8),
        *(random.standard_normal(shape).astype(np.float32) for shape in ((8, 3), (3,), (3,))),
        np.zeros(8, np.float32),
    ],
    reference=lambda a, b, da, db, s, y: (da * ((a * b).sum(-1) * db - 8 * s)).sum(-1),
)


# --- floats made of bits ----------------------------------------------------------------------------------

NIBBLES = Kernel(
    body=_loaded("%r1", 0, 0, 4, "b32")
    + _loaded("%f9", 2, 0, 4)
    + """
mad.wide.u32 %rd3, %r0, 4, %p1; ld.global.b32 %r2, [%rd3];
and.b32 %r3, %r1, 0xF0; or.b32 %r4, %r3, 0x6400; cvt.u16.u32 %h0, %r4;
and.b32 %r5, %r2, 15; cvt.rn.f32.u32 %f1, %r5; neg.f32 %f1, %f1;
add.f32 %f1, %f1, """
    + _f32(-64.0)
    + """;
cvt.f32.f16 %f0, %h0;
fma.rn.f32 %f2, %f0, """
    + _f32(0.0625)
    + """, %f1;
mul.f32 %f3, %f2, %f9;
mad.wide.u32 %rd1, %r0, 4, %p3; st.global.f32 [%rd1], %f3;""",
    threads=8,
    arguments=lambda random: [
        *(random.integers(0, 2**32, 8).astype(np.uint32) for _ in range(2)),
        random.standard_normal(8).astype(np.float32),
        np.zeros(8, np.float32),
    ],
    reference=lambda q, zero, scale, y: ((q >> 4 & 15) - (zero & 15)) * scale,
)


# --- clamps -------------------------------------------------------------------------------------------------

CLAMPED = Kernel(
    body=_loaded("%r1", 0, 0, 4, "b32")
    + """
add.s32 %r2, %r1, 5;
min.s32 %r3, %r2, 127;
max.s32 %r4, %r3, -128;
cvt.u64.u32 %rd1, %r0; add.u64 %rd1, %rd1, %p1; st.global.u8 [%rd1], %r4;""",
    threads=32,
    arguments=lambda random: [
        random.integers(-200, 200, 32).astype(np.int32),
        np.zeros(32, np.int8),
    ],
    reference=lambda x, y: np.clip(x + 5, -128, 127),
)

# --- a decision that wrong values turn ---------------------------------------------------------------

LEAKY = Kernel(
    body=_loaded("%f0", 0, 0, 8)
    + _loaded("%f1", 0, 4, 8)
    + f"""
ld.global.f32 %f2, [%p1+0];
ld.global.f32 %f3, [%p1+4];
mul.f32 %f4, %f0, %f2; fma.rn.f32 %f4, %f1, %f3, %f4;
mul.f32 %f5, %f4, {_f32(0.25)};
setp.gt.f32 %q0, %f4, 0f00000000; selp.f32 %f6, %f4, %f5, %q0;
mad.wide.u32 %rd1, %r0, 4, %p2; st.global.f32 [%rd1], %f6;""",
    threads=32,
    arguments=lambda random: [
        *(random.standard_normal(shape).astype(np.float32) for shape in ((32, 2), (3,))),
        np.zeros(32, np.float32),
    ],
    reference=lambda x, w, y: np.where(x @ w[:2] > 0, x @ w[:2], x @ w[:2] * 0.25),
)

KERNELS = {
    "rotated": ROTATED, "paired": PAIRED, "turned": TURNED, "normed": NORMED, "gated": GATED,
    "blocks": BLOCKS, "nibbles": NIBBLES, "clamped": CLAMPED, "leaky": LEAKY,
}  # fmt: skip

SCALED = "mul.f32 %f3, %f1, %f2;\nld.global.f32 %f4, [%p4+4]; mul.f32 %f5, %f4,"
AGAIN = "fma.rn.f32 %f9, %f1, %f5, %f9;"  # in two halves

# kernel, old, new -> kind, statement, what is found, what the reference has
CASES = [
    ("rotated", "neg.f32 %f4, %f4;", "", "operation", "fma.rn.f32 %f4", "", "-"),
    ("rotated", "%f2, [%rd4+0]", "%f2, [%p1+0]", "operand", "%f2", "c[0, 0]", "c["),
    ("rotated", "ld.global.f32 %f12, [%rd4+0]; ld.global.f32 %f13, [%rd5+0]",
     "ld.global.f32 %f12, [%rd5+0]; ld.global.f32 %f13, [%rd4+0]", "operand", "%f14", "", ""),
    ("paired", "%r20, 4; mov.u32 %r21, 32", "%r20, 8; mov.u32 %r21, 4",
     "operand", "ld.global.f32", "x[", "x["),
    ("turned", "mul.f32 %f6,", "mov.f32 %f9, %f2; mov.f32 %f2, %f3; mov.f32 %f3, %f9; mul.f32 %f6,",
     "operand", "%f", ("c[", "s["), ("s[", "c[")),
    ("normed", _f32(0.125), _f32(0.25), "operand", "mul.f32 %f20, %f20", "0.25", "0.125"),
    ("normed", "fma.rn.f32 %f20, %f7, %f7, %f20;", "", "missing", "mul.f32 %f20, %f20", "fma(", "("),
    ("gated", "mul.f32 %f4, %f3,", "mul.f32 %f4, %f1,", "operand", "mul.f32 %f4", "up[", "(+"),
    ("gated", "mul.f32 %f4, %f3,", "mul.f32 %f4, %f0,", "operand", "mul.f32 %f4", "gate[", "(+"),
    ("gated", _f32(-1.0), _f32(-1.702), "operand", "mul.f32 %f4", "-1.702", "-1"),
    ("gated", "ex2.approx.f32 %f6, %f5", "ex2.approx.f32 %f6, %f4", "operation", "ex2.approx", "", "exp"),
    ("blocks", "%r2, [%p1+4]", "%r2, [%p1+8]", "operand", "%r2, [%p1+8]", "b[2", "b[1"),
    ("blocks", "%f2, [%p3+4]", "%f2, [%p3+8]", "operand", "%f2, [%p3+8]", "db[2]", "db[1]"),
    ("blocks", "%f1, [%rd0+4]", "%f1, [%rd0+0]", "operand", "%f1, [%rd0+0]", "da[", "da["),
    ("blocks", f"%f1, [%rd0+4];\n{SCALED} {_f32(-8.0)};", f"%f1, [%rd0+0];\n{SCALED} {_f32(-4.0)};{AGAIN}",
     "operand", "%f1, [%rd0+0]", "da[", "da["),
    ("blocks", "fma.rn.f32 %f9, %f1, %f5, %f9;", 2 * "fma.rn.f32 %f9, %f1, %f5, %f9; ",
     "extra term", "fma.rn.f32 %f9, %f1, %f5, %f9;", "da[", "0"),
    ("nibbles", "mad.wide.u32 %rd3, %r0, 4, %p1;", "xor.b32 %r9, %r0, 1; mad.wide.u32 %rd3, %r9, 4, %p1;",
     "operand", "%r2, 15", "(zero[5] & 15)", "(zero[4] & 15)"),
    ("nibbles", _f32(-64.0), _f32(-72.0), "operand", "add.f32 %f1", "-72", "-64"),
    ("nibbles", "and.b32 %r5, %r2, 15;", "and.b32 %r5, %r2, 15; add.u32 %r5, %r5, 1;",
     "extra", "add.u32 %r5", "(zero", ""),
    ("leaky", "%f3, [%p1+4]", "%f3, [%p1+8]", "operand", "%f3, [%p1+8]", "w[2]", "w[1]"),
    ("gated", "mul.f32 %f9, %f8, %f1;", "mul.f32 %f9, %f8, %f1; mul.f32 %f9, %f9, %f2;",
     "extra", "mul.f32 %f9, %f9, %f2", "", ""),
    ("clamped", "%r3, -128", "%r3, -127", "operand", "max.s32 %r4", "-127", "-128"),
    ("clamped", "max.s32 %r4, %r3, -128;", "mov.b32 %r4, %r3;", "missing", "st.global.u8", "", "-128"),
]  # fmt: skip


@each_of(KERNELS)
def test_intact_kernels_are_equal(name: str) -> None:
    assert KERNELS[name].answer("", "") == ("equal", None)


@each_of(CASES)
def test_mistakes_in_computed_operands_are_located(
    name: str,
    old: str,
    new: str,
    kind: str,
    statement: str,
    found: str | tuple[str, ...],
    wanted: str | tuple[str, ...],
) -> None:
    answer, place = KERNELS[name].answer(old, new)
    assert (answer, place is not None) == ("other", True)
    assert place is not None
    assert (place.certainty, place.kind) == ("proven", kind), (place.message, place.evidence)
    at = place.loaded or place.location
    assert at is not None
    assert statement in at.text, (at.text, place.message)
    has = place.operation if kind == "operation" else place.wanted
    assert place.found.startswith(found), place.message
    assert has.startswith(wanted), place.message


@each_of(
    [
        ("nibbles", "and.b32 %r3, %r1, 0xF0;", "and.b32 %r3, %r1, 0x1F0;", "fma"),
        ("blocks", "%r2, [%p1+4];", "%r2, [%p1+4]; and.b32 %r2, %r2, 0x7F7F7F7F;", "dp4a"),
    ]
)
def test_terms_that_the_reference_lacks_prove_nothing(name: str, old: str, new: str, at: str) -> None:
    """To take them away, and to add those that are missing, puts any sum right."""
    answer, place = KERNELS[name].answer(old, new)
    assert (answer, place is not None and place.proven) == ("other", False)
    assert place is not None
    assert place.location is not None
    assert at in place.location.text, place.message


def test_an_operand_without_a_name_is_located() -> None:
    _, place = BLOCKS.answer("%r2, [%p1+4];", "%r2, [%p1+4]; and.b32 %r2, %r2, 0x7F7F7F7F;")
    assert place is not None
    assert (place.kind, place.certainty, place.wanted[:4]) == ("unknown", "located", "b[1,")


# --- two products of the same operands --------------------------------------------------------------------


def _gated() -> str:
    """Return two mma of m16n8k8: ``(x @ gate.T + 1) * (x @ up.T)``."""
    lines = ["shr.u32 %r1, %r0, 2; and.b32 %r2, %r0, 3; shl.b32 %r3, %r2, 2; mad.lo.u32 %r4, %r1, 16, %r3;"]
    lines += ["cvt.u64.u32 %rd1, %r4; add.u64 %rd1, %p0, %rd1; mov.f32 %f0, 0f00000000;"]
    lines += ["ld.global.b32 %r10, [%rd1]; ld.global.b32 %r11, [%rd1+128];"]
    for number, first in ((1, 10), (2, 20)):
        lines += [
            f"mad.wide.u32 %rd{number + 1}, %r0, 4, %p{number};",
            f"ld.global.b32 %r{first + 2}, [%rd{number + 1}];",
        ]
        d = ", ".join(f"%f{first + each}" for each in range(4))
        lines += ["mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"]
        lines += [f"{{{d}}}, {{%r10, %r11}}, {{%r{first + 2}}}, {{%f0, %f0, %f0, %f0}};"]
    for each in range(4):
        lines += [f"add.f32 %f{10 + each}, %f{10 + each}, 0f3F800000;"]
        lines += [f"mul.f32 %f{30 + each}, %f{10 + each}, %f{20 + each};"]
    lines += [
        "mad.lo.u32 %r8, %r1, 32, %r3; add.u32 %r8, %r8, %r3; cvt.u64.u32 %rd7, %r8; add.u64 %rd7, %p3, %rd7;"
    ]
    lines += ["st.global.v2.f32 [%rd7], {%f30, %f31}; st.global.v2.f32 [%rd7+256], {%f32, %f33};"]
    return "\n".join(lines)


GATED = Kernel(
    body=_gated(),
    threads=32,
    arguments=lambda random: [
        *(random.standard_normal(shape).astype(np.float16) for shape in ((16, 8), (8, 8), (8, 8))),
        np.zeros((16, 8), np.float32),
    ],
    reference=lambda x, gate, up, y: (x @ gate.T + 1) * (x @ up.T),
)


def test_an_operand_of_the_second_of_two_equal_products_is_named() -> None:
    """The product that a use takes has the operand of the other: its load is wrong, not the use."""
    assert GATED.answer("%f0", "%f0")[0] == "equal"
    answer, found = GATED.answer("%rd3, %r0, 4, %p2", "%rd3, %r0, 4, %p1")
    assert answer == "other"
    assert found is not None
    assert (found.kind, found.certainty, found.operand) == ("operand", "proven", "b")
    assert found.fix.startswith("take up[")
    assert found.loaded is not None
    assert "%r22" in found.loaded.text


def test_a_use_that_takes_the_other_of_two_products_is_named() -> None:
    """The product that it should take is there: the use is wrong."""
    answer, found = GATED.answer("mul.f32 %f30, %f10, %f20", "mul.f32 %f30, %f10, %f21")
    assert answer == "other"
    assert found is not None
    assert (found.kind, found.certainty) != ("operand", "proven") or "mul.f32 %f30" in found.location.text  # type: ignore[union-attr]
