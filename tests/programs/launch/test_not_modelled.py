"""Legal PTX that nobody executes is refused when a kernel is loaded, with its place and its reason."""

from __future__ import annotations

import pytest

import warpsim
from warpsim.base.errors import NotModelled
from warpsim.programs.launch.launching import load_text

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
OUTSIDE = ".extern .func beyond(.param .b64 x);\n"
FLOATS = ", ".join(f"f{index}" for index in range(8))
WORDS = ", ".join(f"r{index}" for index in range(8))
REGISTERS = ".reg .f32 f<8>; .reg .b32 r<8>; .reg .b32 d<4>; .reg .b64 x;\n"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            f"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 {{d0, d1, d2, d3}}, {{{WORDS}}}, {{{WORDS}}}, "
            f"{{{FLOATS}}};",
            "wmma.mma with C of f32 and D of f16: where it rounds is not known",
        ),
        ("{ .param .b64 x0; call beyond, (x0); }", "the function beyond has no body here"),
        ("call beyond, (x);", "call passes 'x', which is not a .param variable of this function"),
    ],
)
def test_statements(statement: str, message: str) -> None:
    text = f"{HEAD}{OUTSIDE}.visible .entry k() {{\n{REGISTERS}{statement}\nret; }}"
    problems = load_text(text).problems
    assert [type(one) for one in problems] == [NotModelled]
    assert problems[0].message == message
    assert problems[0].location is not None
    assert problems[0].location.line == 7


def test_wmma_without_an_mma_like_it() -> None:
    statement = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 "
    statement += f"{{{FLOATS}}}, {{{WORDS}}}, {{{WORDS}}}, {{{FLOATS}}};"
    text = HEAD.replace("9.0", "6.4").replace("sm_90a", "sm_70")
    (problem,) = load_text(f"{text}.visible .entry k() {{\n{REGISTERS}{statement}\nret; }}").problems
    assert isinstance(problem, NotModelled)
    assert problem.message == "wmma.mma of f16 on sm_70: it has no mma like it"


@pytest.mark.parametrize("opcode", ["spcompress", "spdecompress", "wmma"])
def test_single_matrix_instructions(opcode: str) -> None:
    with pytest.raises(NotModelled, match=f"^<string>:1:1: error: {opcode} instructions are not modelled"):
        warpsim.decode(f"{opcode}.sync.aligned")


@pytest.mark.parametrize("machine", [warpsim.Warp, warpsim.Warpgroup])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mapa.shared::cluster.u32 %at, %at, 0; ld.shared::cluster.u32 %r, [%at];", 7),
        ("mapa.shared::cluster.u32 %at, %at, 0; getctarank.shared::cluster.u32 %r, %at;", 0),
        ("barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r, 5;", 5),
        ("griddepcontrol.wait; setmaxnreg.inc.sync.aligned.u32 232; brkpt; mov.u32 %r, %ctaid.x;", 0),
        ("stacksave.u64 %s; alloca.u64 %p, 16; st.local.u32 [%p], 9; ld.local.u32 %r, [%p];", 9),
        ("alloca.u64 %p, 16; cvta.local.u64 %s, %p; st.u32 [%s], 3; ld.u32 %r, [%s];", 3),
    ],
)
def test_what_needs_only_a_cta_executes_without_a_launch(
    machine: type[warpsim.Warp], text: str, value: int
) -> None:
    made = machine("sm_90a")
    made.run(".reg .b32 %r, %at; .reg .b64 %s, %p; .shared .b32 t; mov.u32 %at, t; st.shared.u32 [t], 7;")
    made.run(f"bar.sync 0; {text}")
    assert set(made["%r"].tolist()) == {value}


def test_a_trap_of_a_warp() -> None:
    with pytest.raises(warpsim.Fault, match=r"^<string>:1:1: error: trap \[lane 0 and 31 more\]"):
        warpsim.Warp("sm_80").run("trap;")
