"""Directives of tile compilers: .language, .hidden parameters, intermediate lines and source."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.helpers import ptxas
from warpsim.base.errors import PtxError, WarpsimError
from warpsim.programs.launch.launching import load_text
from warpsim.ptx.parser import parse
from warpsim.ptx.sections import files_of
from warpsim.ptx.statements import Directive, Kernel, VariableDeclaration

JUDGE = ptxas.bundled("nvidia-cuda-nvcc", "ptxas")
NEW = JUDGE is not None and ptxas.release(JUDGE) == "13.5"
BLOCK = """.code_block {
.ir_name: "x"
.sourceFileName: 1
.source_begin
foo } { ; " /* .func
.source_end x
.source_end
}
"""
FILE, SECTION = '.file 1 "a"\n', ".nv_intermediate_source_section {\n%s}\n"


def entry(parameters: str = "", tuning: str = "", body: str = "") -> str:
    return f".visible .entry k({parameters}) {tuning} {{ {body} ret; }}\n"


def function(tuning: str = "", parameters: str = "") -> str:
    return f".func f({parameters}) {tuning} {{ ret; }}\n" + entry()


def source(block: str = BLOCK) -> str:
    return FILE + SECTION % block + entry()


TAKEN = (
    *(entry(tuning=f".language {n}") for n in ("0", "7", "10", "0x7", "0b1", "7U")),
    *(entry(tuning=f".language {n}") for n in ("1,2", '"tile ir"', '"PTX", 7')),
    *(entry(tuning=text) for text in (".language 7 .language 3", ".maxntid 128 .language 7 .minnctapersm 1")),
    *(function(text) for text in (".language 7", ".noreturn .language 7", ".local_maxnreg 32 .language 7")),
    *(
        entry(text)
        for text in (
            ".hidden .param .b32 x", ".hidden .param .align 64 .b8 x[128]",
            ".hidden .align 64 .param .b8 x[128]",
            ".hidden .param .b32 x, .param .b32 y, .hidden .param .f64 z",
            ".hidden .param .u64 .ptr .global .align 16 x",
        )
    ),
    *(entry(body=f".loc_intermediate {text}\n") for text in ("1 2 3", "9 2 3")),
    FILE + entry(body=".loc 1 2 3 .loc_intermediate 1 2 3 .reg .b32 %r; add.s32 %r, %r, %r;\n"),
    source(), source(BLOCK * 2), source(""), FILE + SECTION % BLOCK + SECTION % BLOCK + entry(),
    source(BLOCK.replace("\n.source_end\n", "\n   .source_end  \n")), source(BLOCK.replace(": 1", ": 0x1")),
    source(BLOCK.replace(".ir_name", "// c\n/* x */ .ir_name")), source(BLOCK.replace('"x"', '"x\ny"')),
    FILE + entry() + SECTION % BLOCK,
)  # fmt: skip
REFUSED = {
    entry(tuning=".language 11"): ".language 11: expected 0 to 10",
    entry(tuning=".language 1, 11"): ".language 11: expected 0 to 10",
    entry(tuning=".language WARP_SZ"): ".language WARP_SZ: expected 0 to 10",
    entry(tuning='.language "tile"'): '.language "tile": expected 0 to 10',
    entry(tuning=".language -1"): "expected '{' or ';', found '.language'",
    entry(tuning=".language"): "expected '{' or ';', found '.language'",
    entry(tuning=".language 7,"): "found ','",
    function(".language 7 .noreturn"): ".noreturn stands before .language",
    function(".language 7 .language 7"): ".language is there twice",
    ".func g() .language 7;" + entry(): ".language belongs to a function with a body",
    ".entry g() .language 7;" + entry(): ".language belongs to a kernel with a body",
    entry(body=".language 7"): "PTX has no directive '.language'",
    ".language 7\n" + entry(): "PTX has no directive '.language'",
    entry(".param .hidden .b32 x"): "the type '.hidden'",
    entry(".align 64 .hidden .param .b8 x[128]"): "expected '.param' or '.reg', found '.hidden'",
    entry(".hidden .hidden .param .b32 x"): "expected '.param', found '.hidden'",
    function(parameters=".hidden .param .b32 x"): "x: .hidden is for parameters of kernels",
    function(parameters=".hidden .reg .b32 x"): "expected '.param', found '.reg'",
    entry(body=".hidden .param .b32 x;"): "PTX has no directive '.hidden'",
    ".hidden .global .b32 x;" + entry(): "PTX has no directive '.hidden'",
    entry(body=".loc_intermediate 1 2 3, function_name a, inlined_at 1 2 3\n"): "found ','",
    entry(body=".loc_intermediate 1 2 3;\n"): "found ';'",
    entry(body=".loc_intermediate 1 2\n"): "expected file, line and column",
    FILE + ".loc_intermediate 1 2 3\n" + entry(): ".loc_intermediate stands in functions, not in modules",
    source(".code_block { }\n"): "expected '.ir_name:', found '}'",
    source(BLOCK.replace(":", "")): "expected '.ir_name:', found '.ir_name'",
    source(BLOCK.replace('.ir_name: "x"\n', "")): "expected '.ir_name:', found '.sourceFileName'",
    source(BLOCK.replace(".sourceFileName: 1\n", "")): "expected '.sourceFileName:', found '.source_begin'",
    source(BLOCK.replace('"x"', "x")): "expected a name in quotes, found 'x'",
    source(
        BLOCK.replace(".source_begin\n", ".source_begin foo\n")
    ): "expected '.source_begin' at the end of a line",
    source(
        BLOCK.replace("\n.source_end\n}", "\n.source_end }")
    ): "expected '.source_begin' at the end of a line",
    source(BLOCK.replace(": 1", ": 2")): ".sourceFileName: 2: no .file before it has this number",
    SECTION % BLOCK + FILE + entry(): ".sourceFileName: 1: no .file before it has this number",
    FILE + entry(body=SECTION % BLOCK): ".nv_intermediate_source_section stands in modules, not in functions",
}
EARLY = {
    entry(tuning=".language 7"): ("9.1", "9.2", ".language needs PTX 9.2"),
    entry(".hidden .param .b32 x"): ("8.7", "8.8", "x: .hidden needs PTX 8.8"),
    entry(body=".loc_intermediate 1 2 3\n"): ("9.3", "9.4", ".loc_intermediate needs PTX 9.4"),
    source(): ("9.3", "9.4", ".nv_intermediate_source_section needs PTX 9.4"),
}
CASES = [
    *(("9.5", text, "") for text in TAKEN),
    *(("9.5", text, said) for text, said in REFUSED.items()),
    *((early, text, said) for text, (early, _, said) in EARLY.items()),
    *((since, text, "") for text, (_, since, _) in EARLY.items()),
]


def module(version: str, text: str) -> str:
    return f".version {version}\n.target sm_90a\n.address_size 64\n{text}"


def refused(version: str, text: str) -> str:
    """Return why a module is refused, "" where it is not."""
    try:
        problems: list[WarpsimError] = load_text(module(version, text)).problems
    except PtxError as error:
        problems = [error]
    assert all(problem.location for problem in problems)
    return "; ".join(problem.message for problem in problems)


@pytest.mark.parametrize(("version", "text", "said"), CASES)
def test_what_is_taken(version: str, text: str, said: str) -> None:
    found = refused(version, text)
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.skipif(not NEW, reason="there is no ptxas 13.5")
def test_ptxas_judges_the_same(tmp_path: Path) -> None:
    path = tmp_path / "module.ptx"
    command = [str(JUDGE), "-arch=sm_90a", "-o", str(tmp_path / "module.cubin"), str(path)]
    for version, text, said in CASES:
        path.write_text(module(version, text))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (not said), text + done.stderr + done.stdout


def test_what_is_kept() -> None:
    parameters = ".param .b32 y, .hidden .param .align 64 .b8 x[128]"
    program = parse(
        module(
            "9.5",
            FILE + SECTION % (BLOCK * 2) + entry(parameters, ".language 7", "\n.loc_intermediate 1 2 3\n"),
        )
    )
    (section,) = [
        each for each in program.statements if isinstance(each, Directive) and each.name.startswith("nv_")
    ]
    assert files_of(section.text) == [1, 1]
    kernel = program.statements[-1]
    assert isinstance(kernel, Kernel)
    assert [each.hidden for each in kernel.parameters if isinstance(each, VariableDeclaration)] == [
        False,
        True,
    ]
    assert kernel.body is not None
    assert [each.text for each in kernel.body if isinstance(each, Directive)] == ["1 2 3"]


def test_intermediate_source_may_be_long() -> None:
    text = source(BLOCK.replace("foo", "foo .source_end bar\n" * 200_000))
    assert refused("9.5", text) == ""
    assert "a line of '.source_end' alone" in refused("9.5", text.replace("\n.source_end\n", "\n"))
