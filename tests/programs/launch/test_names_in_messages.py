"""Names of variables in findings, faults and listings: those of C++, or of the PTX where these are wanted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.machine.bind.scope import Variable
from warpsim.machine.bind.variable_names import place_name
from warpsim.ptx.symbols import names_shown, shown_variable
from warpsim.show.cli import cli

KERNEL = "_Z4bodyILi1EEvPjPKj"  # void body<1>(unsigned int*, unsigned int const*)
FULL = "_ZZ4bodyILi1EEvPjPKjE4full"
TILE = "_ZZ4bodyILi1EEvPjPKjE4tile"
TEXT = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry {KERNEL}(.param .u64 {KERNEL}_param_0, .param .u64 {KERNEL}_param_1)
{{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .pred %p<2>;
    .shared .align 4 .b8 {TILE}[256];
    .shared .align 8 .b8 {FULL}[16];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, {TILE};
    add.s32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    xor.b32 %r5, %r4, 128;
    BODY
    ret;
}}
"""
RACE = TEXT.replace("BODY", "ld.shared.u32 %r6, [%r5];")
STUCK = TEXT.replace(
    "BODY",
    f"""
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    mov.u32 %r7, {FULL};
    mbarrier.init.shared.b64 [%r7], 1;
    mbarrier.init.shared.b64 [%r7+8], 1;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r7+8], 0;
    @!%p1 bra WAIT;
DONE:
    """,
)
OUTSIDE = TEXT.replace(
    "BODY",
    f"ld.param.u64 %rd1, [{KERNEL}_param_1]; ld.global.u32 %r6, [%rd1+4096]; st.shared.u32 [%r4], %r6;",
)


def launched(text: str) -> str:
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    with pytest.raises(warpsim.WarpsimError) as caught:
        warpsim.load(text)["body<1>"](1, 64, arrays)
    return str(caught.value.message)


@pytest.mark.parametrize(
    ("text", "wanted", "mangled"),
    [
        (RACE, "byte 0x80 of shared memory (tile+128), which another warp", f"({TILE}+128)"),
        (STUCK, "phase 1 of the mbarrier full[1], which lacks 1 of 1 arrivals", f"the mbarrier {FULL}[1],"),
        (OUTSIDE, "past the end of body_param_1 of 256 bytes", f"past the end of {KERNEL}_param_1 of 256"),
    ],
)
def test_messages_have_names_of_cpp(text: str, wanted: str, mangled: str) -> None:
    assert wanted in launched(text)
    with names_shown(mangled=True):
        assert mangled in launched(text)
    assert wanted in launched(text)


def test_arguments_are_named() -> None:
    kernel = warpsim.load(RACE)[KERNEL]
    with pytest.raises(warpsim.OperandError, match=r"parameters: body_param_0 \(\.u64\), body_param_1 \("):
        kernel(1, 64, [1])
    with pytest.raises(warpsim.OperandError, match=r"parameter 1, body_param_1 \(\.u64, 8 bytes\): "):
        kernel(1, 64, [np.zeros(64, np.uint32), 1.5])


def variable(name: str, **fields: int | tuple[int, ...] | bool) -> Variable:
    return Variable(**{"name": name, "space": "shared", "size": 64, "alignment": 4, "offset": 0, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "address", "mbarrier", "wanted"),
    [
        ({"element": 4, "extents": (16,)}, 8, False, "x[2]"),
        ({"element": 4, "extents": (4, 4)}, 27, False, "x[1][2]+3"),
        ({"element": 8, "size": 8}, 4, True, "x+4"),
        ({}, 0, False, "x"),
        ({}, 8, True, "x+8"),
        ({"alignment": 8}, 8, True, "x[1]"),
        ({"alignment": 8}, 12, True, "x[1]+4"),
        ({"alignment": 8, "size": 8}, 0, True, "x"),
        ({"alignment": 128}, 8, True, "x+8"),  # a structure, perhaps
        ({"dynamic": True, "size": 0}, 0, False, None),
        ({}, 64, False, None),
    ],
)
def test_elements_are_named_where_their_size_is_known(
    fields: dict[str, int], address: int, mbarrier: bool, wanted: str | None
) -> None:
    assert place_name([variable("x", **fields)], address, mbarrier=mbarrier) == wanted


def test_equal_names_of_two_functions_are_told_apart() -> None:
    two = [variable("_ZZ3onevE4tile"), variable("_ZZ3twovE4tile", offset=64)]
    assert [place_name(two, address) for address in (4, 68)] == ["one()::tile+4", "two()::tile+4"]


@pytest.mark.parametrize(
    ("symbol", "wanted"),
    [
        ("plain_param_0", "plain_param_0"),
        ("_Z5shiftPi_param_12", "shift_param_12"),
        ("_ZN2ns4coefE", "ns::coef"),
        ("_ZN12_GLOBAL__N_16bufferE", "buffer"),
        ("", ""),
    ],
)
def test_variables_and_parameters(symbol: str, wanted: str) -> None:
    assert shown_variable(symbol) == wanted


def output(*arguments: str) -> str:
    """Return what a command prints, or the message of its usage error."""
    done = CliRunner().invoke(cli, list(arguments), standalone_mode=False)
    return getattr(done.exception, "message", done.output)


@pytest.mark.parametrize("mangled", [False, True])
def test_command_lines(tmp_path: Path, mangled: bool) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(RACE)
    option = ["--mangled"] if mangled else []
    name = KERNEL if mangled else "void body<1>(unsigned int*, unsigned int const*)"
    assert f": {name}; " in output("check", str(path), *option)
    listing = output("launch", str(path), *option)
    assert f"  {name}\n    0 {KERNEL if mangled else 'body'}_param_0: .u64, 8 bytes" in listing
    arguments = ("--block", "64", "--arg", "zeros:u32:64", "--arg", "zeros:u32:64", "--checks", "warn")
    done = output("launch", str(path), "--entry", "body", *arguments, *option)
    assert f"{path}: {name} on sm_90" in done
    assert f"({TILE if mangled else 'tile'}+128)" in done
