"""Vectors of registers under one name: ptxas 13.0 takes the same, and elements keep their places."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import ptxas
from tests.helpers.lane_kernels import run
from warpsim.base.errors import NotModelled
from warpsim.programs.launch.launching import load_text

REGISTERS = (
    ".reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .v4 .f32 %f<3>; .reg .v2 .u32 %u<3>; "
    ".reg .v4 .b32 %b<3>; .reg .v2 .b64 %w<3>; .reg .v4 .b16 %s<3>;"
)
STATEMENTS = (
    "ld.global.v4.f32 %f1, [%d1];",
    "ld.global.v4.b32 %f1, [%d1];",
    "ld.global.v4.f32 {%f1.x, %f1.y, %f1.z, %f1.w}, [%d1];",
    "ld.global.v2.f32 %f1, [%d1];",
    "ld.global.v4.u32 %u1, [%d1];",
    "ld.global.f32 %f1, [%d1];",
    "ld.global.v2.b64 %w1, [%d1];",
    "st.global.v4.f32 [%d1], %f1;",
    "st.global.v2.u32 [%d1], %f1;",
    "mov.v4.f32 %f1, %f2;",
    "mov.v4.b32 %f1, %b2;",
    "mov.v2.f32 %f1, %f2;",
    "mov.f32 %f1, %f2;",
    "mov.v2.u32 %u1, {%r1, %r2};",
    "mov.v2.u32 {%r1, %r2}, %u1;",
    "mov.v2.u32 {%r1, %r2}, {%r2, 7};",
    "mov.v2.u32 %u1, {%r1, %r2, %r3, %r4};",
    "mov.v2.b64 %w1, %w2;",
    "mov.v4.b64 {%d1, %d2, %d3, %d4}, {%d1, %d2, %d3, %d4};",
    "mov.v4.b16 %s1, %s2;",
    "mov.v2.pred %u1, %u2;",
    "mov.v8.u32 %u1, %u2;",
    "mov.v4.u32 %b1, %ctaid;",
    "mov.v4.b32 {%r1, %r2, %r3, %r4}, %tid;",
    "mov.v2.u32 %u1, %tid;",
    "mov.b64 %d1, %u1;",
    "mov.b64 %u1, %d1;",
    "mov.u64 %d1, %u1;",
    "mov.b64 %d1, %s1;",
    "mov.b32 %r1, %u1.y;",
    "mov.b32 %r1, %u1.g;",
    "mov.b32 %b1.a, %b1.b;",
    "add.u32 %u1.x, %u1.y, %r1;",
    "add.u32 %u1, %u1, %r1;",
)


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
def test_legality() -> None:
    said = ptxas.verdicts(STATEMENTS, target="sm_90", declarations=REGISTERS)
    differ = []
    for one, verdict in zip(STATEMENTS, said, strict=True):
        text = f".version 9.0\n.target sm_90\n.address_size 64\n.entry k() {{ {REGISTERS}\n{one}\n}}"
        problems = load_text(text).problems
        if bool(problems) != bool(verdict):
            differ.append((one, verdict, *map(str, problems)))
    assert differ == []


def test_a_constant_for_a_vector_is_not_modelled() -> None:
    text = f".version 9.0\n.target sm_90\n.entry k() {{ {REGISTERS}\nmov.v2.u32 %u1, 5;\n}}"
    (problem,) = load_text(text).problems
    assert isinstance(problem, NotModelled)
    assert problem.message == "'mov.v2.u32' of a constant is not modelled"


@pytest.mark.parametrize(
    ("body", "order"),
    [
        ("mov.v4.b32 %v2, %v1;", (0, 1, 2, 3)),
        ("mov.v4.b32 %v2, {%v1.w, %v1.z, %v1.y, %v1.x};", (3, 2, 1, 0)),
        ("mov.v4.b32 %v1, {%v1.y, %v1.x, %v1.a, %v1.b}; mov.v4.b32 %v2, %v1;", (1, 0, 3, 2)),
        (
            "mov.v2.b32 %u, {%v1.r, %v1.g}; mov.b64 %y2, %u; mov.b64 {%v2.z, %v2.w}, %y2; mov.v2.b32 "
            "{%v2.x, %v2.y}, {%v1.z, %v1.w};",
            (2, 3, 0, 1),
        ),
    ],
)
def test_elements_keep_their_places(body: str, order: tuple[int, ...]) -> None:
    given = np.random.default_rng(5).integers(0, 2**32, (70, 4), np.uint32)
    found = np.zeros_like(given)
    text = f""".reg .v4 .b32 %v<3>; .reg .v2 .b32 %u;
    mad.wide.u32 %y0, %n, 16, %buffer0; mad.wide.u32 %y1, %n, 16, %buffer1;
    ld.global.v4.b32 %v1, [%y0]; {body} st.global.v4.u32 [%y1], %v2;"""
    run(text, {}, {}, threads=70, buffers=[given, found])
    np.testing.assert_array_equal(found, given[:, order])


def test_special_registers_are_vectors() -> None:
    text = """.version 9.0
.target sm_90
.address_size 64
.entry k(.param .u64 p) { .reg .v4 .u32 %v; .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [p];
mov.v4.u32 %v, %tid; mad.lo.u32 %r, %v.y, 3, %v.x; mad.wide.u32 %d, %r, 16, %d;
st.global.v4.u32 [%d], %v; }"""
    found = np.full((6, 4), 9, np.uint32)
    load_text(text)["k"](1, (3, 2), [found])
    np.testing.assert_array_equal(found, [[x, y, 0, 0] for y in range(2) for x in range(3)])
