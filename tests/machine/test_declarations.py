"""Declarations that ptxas refuses: initial values where there are none or of another type, variables of a
module in spaces of functions, and directives that kernels do not have.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.helpers import ptxas
from warpsim.host.launching import load_text

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
ANOTHER = "the initial value '{}' of z is of another type than .{}"
VALUES = {  # declarations in .global, and what is wrong with them
    ".b8 z = 1.5;": None,
    ".b64 z = 0f3F800000;": None,
    ".u32 z = -1;": None,
    ".f32 z = 0d3FF0000000000000;": None,
    ".f32 z[3] = {};": None,
    ".f16 z[2] = {};": None,
    ".u32 z = 1.5;": ANOTHER.format("1.5", "u32"),
    ".s64 z[2] = {1, 0f3F800000};": ANOTHER.format("0f3F800000", "s64"),
    ".f32 z = 1;": ANOTHER.format("1", "f32"),
    ".f64 z[2] = {1.0, 2};": ANOTHER.format("2", "f64"),
    ".f16 z = 1.5;": ANOTHER.format("1.5", "f16"),
    ".f16x2 z = 0x1;": ANOTHER.format("0x1", "f16x2"),
}
OF_MODULES = {
    ".const .u32 z = 1;": None,
    ".shared .u32 z;": None,
    ".shared .u32 z = 1;": "z: no variable in .shared has initial values",
    ".local .u32 z;": "z: .local is declared in functions, not in modules",
    ".param .u32 z;": "z: .param is declared in functions, not in modules",
    ".reg .u32 z;": "registers are declared in functions, not in modules",
}
OF_FUNCTIONS = {
    ".local .u32 z;": None,
    ".param .u32 z;": None,
    ".global .u32 z = 1;": None,
    ".local .u32 z = 1;": "z: no variable in .local has initial values",
    ".shared .u32 z[2] = {1, 2};": "z: no variable in .shared has initial values",
    ".param .u32 z = 1;": "z: no variable in .param has initial values",
}
OF_KERNELS = {
    ".maxntid 32 .minnctapersm 2": None,
    '.pragma "no.such";': None,
    ".local_maxnreg 32": None,
    ".nope": "kernels have no directive .nope",
    ".maxntid 32 .noreturn": "kernels have no directive .noreturn",
    ".maxntid 1.5": "kernels have no directive .5",
}
CASES = {
    **{f".global {text}\n.entry k() {{ ret; }}\n": said for text, said in VALUES.items()},
    **{f"{text}\n.entry k() {{ ret; }}\n": said for text, said in OF_MODULES.items()},
    **{f".entry k() {{\n{text}\nret; }}\n": said for text, said in OF_FUNCTIONS.items()},
    **{f".entry k() {text} {{ ret; }}\n": said for text, said in OF_KERNELS.items()},
}


@pytest.mark.parametrize("text", CASES)
def test_what_is_refused(text: str) -> None:
    found = [problem.message for problem in load_text(HEAD + text).problems]
    assert found == ([] if CASES[text] is None else [CASES[text]])


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
def test_ptxas_refuses_the_same(tmp_path: Path) -> None:
    path = tmp_path / "module.ptx"
    command = [str(ptxas.program()), "-arch=sm_90a", "-o", str(tmp_path / "module.cubin"), str(path)]
    taken = []
    for text in CASES:
        path.write_text(HEAD + text)
        taken.append(subprocess.run(command, capture_output=True, check=False).returncode == 0)
    assert taken == [said is None for said in CASES.values()]
