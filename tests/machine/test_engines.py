"""Launches with another engine for matrix instructions, and with metadata that has no meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from warpsim.base.errors import OperandError, UndefinedBehavior
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.programs.interactive.machines import Warp, Warpgroup
from warpsim.programs.launch.launching import load_text
from warpsim.show.cli import main

Array = npt.NDArray[Any]
SPARSE = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TEXT = f""".version 9.0
.target sm_80
.address_size 64
.entry k(.param .u64 p, .param .u32 e) {{
.reg .b32 %r<9>; .reg .f32 %f<5>; .reg .b64 %d; ld.param.u64 %d, [p]; ld.param.u32 %r7, [e];
mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 12345; and.b32 %r2, %r2, 0x3FFF3FFF; not.b32 %r3, %r2;
and.b32 %r3, %r3, 0x3FFF3FFF;
mov.b32 %f1, 0f3F800000;
{SPARSE} {{%f1, %f2, %f3, %f4}}, {{%r2, %r3}}, {{%r3, %r2}}, {{%f1, %f1, %f1, %f1}}, %r7, 0x0;
mad.wide.u32 %d, %r1, 16, %d; st.global.v4.f32 [%d], {{%f1, %f2, %f3, %f4}};
}}
"""
LEGAL = 0x44444444


def found(metadata: int = LEGAL, **modes: Any) -> Array:
    d = np.zeros((64, 4), np.float32)
    load_text(TEXT)["k"](1, 64, [d, metadata], **modes)
    return d.view(np.uint32)


def test_engines_agree() -> None:
    assert found().any()
    np.testing.assert_array_equal(found(), found(engine="reference"))


def test_a_function_computes() -> None:
    asked = list[tuple[str, tuple[int, ...]]]()

    def engine(form: Instruction, inputs: Inputs) -> Array:
        asked.append((form.mnemonic, inputs.registers["a"].view(np.uint16).shape))  # viewed as halves
        return np.broadcast_to(np.arange(4, dtype=np.uint32), (2, 32, 4)).copy()

    np.testing.assert_array_equal(found(engine=engine), np.tile(np.arange(4, dtype=np.uint32), (64, 1)))
    assert asked == [(SPARSE, (2, 32, 4))]


def test_metadata_without_a_meaning() -> None:
    with pytest.raises(UndefinedBehavior) as caught:
        found(0)
    place = caught.value.location
    assert place is not None
    assert place.text[place.column - 1 :].startswith("%r7, 0x0;")
    assert caught.value.message.endswith("[CTA (0, 0, 0), warp 0]")
    literal = found(0, undefined="fallback")
    np.testing.assert_array_equal(literal, found(0, undefined="fallback", engine="reference"))


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        ({"engine": "gpu"}, "engine='gpu': expected 'kernel' or 'reference', or a function"),
        ({"undefined": "off"}, "undefined='off': expected 'error' or 'fallback'"),
        (
            {"engine": lambda form, inputs: inputs.registers["a"]},
            f"the engine returns uint32 (2, 32, 2) for {SPARSE}: expected uint32 (2, 32, 4)",
        ),
        (
            {"engine": lambda form, inputs: None},
            f"the engine returns NoneType for {SPARSE}: expected uint32 (2, 32, 4)",
        ),
    ],
)
def test_messages(modes: dict[str, Any], message: str) -> None:
    with pytest.raises(OperandError) as caught:
        found(**modes)
    assert caught.value.message == message


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(TEXT)
    saved = tmp_path / "d.npy"
    words = ["launch", str(tmp_path / "k.ptx"), "--entry", "k", "--block", "64", "--arg", "zeros:f32:64x4"]
    words += ["--arg", "i32:0", "--save", f"0={saved}", "--engine", "reference"]
    for more, code in (([], 3), (["--allow-undefined"], 0)):
        with pytest.raises(SystemExit) as done:
            main([*words, *more])
        assert done.value.code == code
    np.testing.assert_array_equal(np.load(saved).view(np.uint32), found(0, undefined="fallback"))


def test_warps_and_traces_ask_a_function_too() -> None:
    def engine(form: Instruction, inputs: Inputs) -> Array:
        return inputs.registers["c"] + np.uint32(1)

    dense = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    text = f"{dense} {{%d0, %d1, %d2, %d3}}, {{%a, %a, %a, %a}}, {{%a, %a}}, {{%c0, %c1, %c2, %c3}};"
    for machine in (Warp("sm_90a", engine=engine), Warpgroup(engine=engine)):
        machine["%a"], machine["%c<4>"] = 0, np.arange(4 * machine.lanes).reshape(-1, 4)
        (event,) = machine.run(text)
        np.testing.assert_array_equal(machine["%d<4>"], machine["%c<4>"] + 1)
        np.testing.assert_array_equal(event.d, machine["%d<4>"])
        assert machine.engine_name == "function"
    warp = Warp("sm_90a", engine=lambda form, inputs: 5)  # type: ignore[arg-type, return-value]
    warp["%a"], warp["%c<4>"] = 0, 0
    with pytest.raises(OperandError, match=r"the engine returns int for mma.*: expected uint32 \(32, 4\)"):
        warp.run(text)


@pytest.mark.parametrize("scale", [0, 1])
def test_a_function_gets_d_as_it_was_whatever_scale_d_says(scale: int) -> None:
    def engine(form: Instruction, inputs: Inputs) -> Array:
        assert inputs.scale_d == bool(scale)
        return inputs.registers["c"] ^ np.uint32(5)

    registers = ", ".join(f"%d{i}" for i in range(4))
    body = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{registers}}}, %x, %x, {scale}, 1, 1, 0, 0;"
    order = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    group = Warpgroup(engine=engine)
    group["%d<4>"], group["%x"] = 7, np.uint64(0)
    group.run(f"wgmma.fence.sync.aligned; {body} {order}")
    assert set(group["%d<4>"].ravel().tolist()) == {7 ^ 5}
    moves = " ".join(f"mov.b32 %d{i}, 7;" for i in range(4))
    text = f""".version 8.5
.target sm_90a
.address_size 64
.entry k(.param .u64 p) {{ .reg .b64 %x, %p; .reg .f32 %d<4>; .reg .b32 %t; .shared .align 128 .b8 s[8192];
mov.b64 %x, 0; {moves.replace("7", "0f00000007")} wgmma.fence.sync.aligned; {body} {order}
ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %p, %t, 16, %p;
st.global.v4.f32 [%p], {{{registers}}}; }}"""
    d = np.zeros((128, 4), np.uint32)
    load_text(text)["k"](1, 128, [d], engine=engine, checks="off")
    assert set(d.ravel().tolist()) == {7 ^ 5}
