"""Attributes, pragmas of kernels and expressions in initial values: as ptxas takes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import warpsim
from tests.helpers import ptxas

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
TAKEN = (
    ".global .attribute(.managed) .align 4 .u32 m = 3;",
    ".global .align 4 .attribute(.managed) .u32 m = 3;",
    ".global .attribute( .managed , .managed ) .u32 m;",
    ".visible .global .attribute(.managed) .u32 m;",
    '.visible .entry k() .pragma "nounroll"; { ret; }',
    '.visible .entry k() .maxntid 32 .pragma "nounroll"; .minnctapersm 1 { ret; }',
    ".func .attribute(.unified(1,2)) f() { ret; }",
    ".global .u64 x = 4; .global .u64 y = x+2*4;",
    ".global .u64 x = 4; .global .u64 y = generic(x)+(1<<3);",
    ".global .u64 x = 4; .global .u64 y = generic(x)+8-4;",
)
REFUSED = (
    ".const .attribute(.managed) .u32 m = 3;",
    ".shared .attribute(.managed) .u32 m;",
    ".global .attribute(.foo) .u32 m;",
    ".global .u32 .attribute(.managed) m;",
    '.visible .entry k() .pragma "nounroll" { ret; }',
    ".func f() .attribute(.unified(1,2)) { ret; }",
    ".global .u64 x = 4; .global .u64 y = 4+x;",
    ".global .u64 x = 4; .global .u64 y = x-x;",
    ".global .u64 x = 4; .global .u64 y = x+1.0;",
    ".global .u64 x = 4; .global .u64 y = generic(x+4);",
    ".global .u64 y = there;",
)


def loads(text: str) -> bool:
    try:
        return not warpsim.load(HEAD + text + "\n").problems
    except warpsim.WarpsimError:
        return False


@pytest.mark.parametrize("text", TAKEN)
def test_what_loads(text: str) -> None:
    assert loads(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not(text: str) -> None:
    assert not loads(text)


def test_an_address_with_an_expression() -> None:
    text = HEAD + ".global .u32 x[8]; .global .u64 y = generic(x)+(1<<3)-4;\n.visible .entry k() { ret; }\n"
    module = warpsim.load(text)
    assert module.symbol("y").get() == module.symbol("x").address + 4


def test_a_managed_variable_of_another_space_names_the_attribute() -> None:
    with pytest.raises(warpsim.PtxError) as caught:
        warpsim.load(HEAD + ".const .attribute(.managed) .u32 m;\n")
    assert str(caught.value) == (
        "<string>:4:19: error: '.managed' is an attribute of .global variables\n"
        "    .const .attribute(.managed) .u32 m;\n"
        "                      ^~~~~~~~"
    )


def assembles(text: str, folder: Path) -> bool:
    path = folder / "module.ptx"
    path.write_text(HEAD + text + "\n")
    command = [ptxas.program(), "-arch=sm_90a", "-c", "-o", str(folder / "module.cubin"), str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize("text", [*TAKEN, *REFUSED])
def test_ptxas_says_the_same(text: str, tmp_path: Path) -> None:
    assert assembles(text, tmp_path) == (text in TAKEN)
