"""Declarations that ptxas refuses: initial values where there are none or of another type, variables of a
module in spaces of functions, and directives that kernels do not have.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.helpers import ptxas
from warpsim.base.errors import NotModelled, PtxError
from warpsim.programs.launch.launching import load_text

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
    ".align 8 .u32 z;": None,
    ".u32 z[WARP_SZ];": None,
    ".u64 z = WARP_SZ+1;": None,
    ".f32;": None,
    ".v2 .f64 z;": None,
    ".u32 z[];": "z has no elements: only .extern variables of a module have []",
    ".u32 z[2] = {1,};": "z: an initial value is missing",
    ".u32 z = 1 2;": "the initial value '1 2' of z is neither a constant expression nor an address",
    ".u64 z = z;": "z starts with the address of z, which is not declared before it",
    ".u64 a, z = a;": "z starts with the address of a, which is not declared before it",
    ".u32 a; .global .u64 z = generic (a) + 4;": None,
    ".u32 a; .global .u8 z = 0xff(a);": None,
    ".u32 a; .global .u8 z = 0xf0(a);": "the mask 0xf0 of z: expected 0xFF at one byte of eight",
    ".u32 a; .global .f32 z = a;": "z of .f32 starts with an address: expected .u32 or .u64",
    ".u32 k;": "k is a variable, too",
}
OF_MODULES = {
    ".const .u32 z = 1;": None,
    ".shared .u32 z;": None,
    ".align 8 .global .u32 z;": None,
    ".attribute(.managed) .global .u32 z;": None,
    ".extern .shared .u32 z[];": None,
    ".extern .global .u32 z = 1;": "z: no .extern variable has initial values",
    ".common .shared .u32 z;": "z: .common variables lie in .global, not in .shared",
    ".const .b8 y[40000]; .const .b8 z[40000];": "80000 bytes in .const: a module has at most 65536",
    ".func f() .maxntid 2 { ret; }": "functions have no directive .maxntid",
    ".func f() .noreturn .abi_preserve 4 .abi_preserve_control 2 .local_maxnreg 24 { ret; }": None,
    ".func f() .abi_preserve 238 { ret; }": ".abi_preserve 238: at most 237",
    ".func f() .abi_preserve_control 12 { ret; }": ".abi_preserve_control 12: at most 11",
    ".func f() .abi_preserve 4 .noreturn { ret; }": ".noreturn stands before .abi_preserve",
    ".func f() .local_maxnreg 24 .abi_preserve 4 { ret; }": ".abi_preserve stands before .local_maxnreg",
    ".func f() .abi_preserve 4 .abi_preserve 4 { ret; }": ".abi_preserve is there twice",
    ".func (.param .u32 r) f() .noreturn { ret; }": ".noreturn is for functions without results",
    ".extern .func f(.param .align 256 .b8 x[4]);": None,
    ".func f(.param .align 256 .b8 x[4]) { ret; }": (
        "x has alignment 256: expected a power of two, 128 at most"
    ),
    ".func f(.param .align 3 .align 4 .b8 x[4]);": (
        "x has alignment 3: expected a power of two, 65536 at most"
    ),
    ".global .align 0 .align 4 .b8 z[4];": "z has alignment 0: expected a power of two, 65536 at most",
    ".func a(.param .b32 x); .func f(.param .align 4 .b32 y) { ret; } .alias a, f;": None,
    ".func a(.param .u32 x); .func f(.param .b32 x) { ret; } .alias a, f;": (
        "a has other parameters than f, or only one function is .noreturn"
    ),
    ".func a(.param .align 8 .b32 x); .func f(.param .b32 x) { ret; } .alias a, f;": (
        "a has other parameters than f, or only one function is .noreturn"
    ),
    ".func a(); .func f() .noreturn { ret; } .alias a, f;": (
        "a has other parameters than f, or only one function is .noreturn"
    ),
    ".func a(); .weak .func f() { ret; } .alias a, f;": "f has no alias: it is .weak",
    ".func a(); .extern .func f(); .alias a, f;": "f has no alias: it is .extern",
    ".func a(); .entry f() { ret; } .alias a, f;": "f has no alias: it is .entry",
    ".func a(); .func f() { ret; } .alias a, f; .alias a, f;": "a is an alias already",
    ".func a(); .func f() { ret; } .alias a, f; .func a() { ret; }": "a is an alias, too",
    ".func f() { ret; } .func f() { ret; }": "f has two bodies",
    ".func f(.param .u32 x); .func f(.param .u64 x) { ret; }": (
        "f is declared otherwise before: other parameters, or another kind"
    ),
    ".func f(.param .u64 .ptr x) { ret; }": "x: .ptr is for parameters of kernels",
    ".extern .func f() { ret; }": "f is .extern and has a body",
    ".address_size 64": "a module begins with .version, .target and .address_size, in this order",
    '.pragma "frequency 2";': 'the pragma "frequency 2" stands in functions, not in modules',
    ".shared .u32 z = 1;": "z: no variable in .shared has initial values",
    ".local .u32 z;": "z: .local is declared in functions, not in modules",
    ".param .u32 z;": "z: .param is declared in functions, not in modules",
    ".reg .u32 z;": "registers are declared in functions, not in modules",
}
OF_FUNCTIONS = {
    ".local .u32 z;": None,
    ".param .u32 z;": None,
    ".global .u32 z = 1;": None,
    ".reg .v2 .b64 %x;": None,
    ".reg .b32;": None,
    ".extern .shared .u32 z[];": "z: .extern is for variables of a module",
    ".param .v2 .u32 z;": "z: nothing in .param has the type .v2 .u32",
    ".local .u32 z[];": "z has no elements: only .extern variables of a module have []",
    ".address_size 64": ".address_size stands in modules, not in functions",
    ".local .u32 z = 1;": "z: no variable in .local has initial values",
    ".shared .u32 z[2] = {1, 2};": "z: no variable in .shared has initial values",
    ".param .u32 z = 1;": "z: no variable in .param has initial values",
    ".param .align 128 .b8 z[4][4];": None,
    ".param .align 256 .b8 z[4];": "z has alignment 256: expected a power of two, 128 at most",
    ".param .align 0 .b8 z[4];": "z has alignment 0: expected a power of two, 128 at most",
    '.pragma "frequency 0x10", "used_bytes_mask 0", "no.such 1";': None,
    '.pragma "nounroll", "frequency x";': "the pragma \"frequency\" takes a number, not 'x'",
    '.pragma "frequency 0";': "the pragma \"frequency\" takes a number, not '0'",
    '.pragma "used_bytes_mask";': "the pragma \"used_bytes_mask\" takes a number, not ''",
    "A: .branchtargets L, later; L: later:": None,
    "A: .branchtargets L, none; L:": ".branchtargets: none is not a label",
    "A: .branchtargets k; L:": ".branchtargets: k is not a label",
    "{ L: } A: .branchtargets L;": ".branchtargets: L is not a label",
    "L: membar.gl; .branchtargets L;": ".branchtargets has no label before it, which would name it",
    "A: .calltargets L; L:": ".calltargets: L is not a function",
    "A: .calltargets none;": ".calltargets: none is not a function",
    ".callprototype _ ();": ".callprototype has no label before it, which would name it",
    "A: .callprototype (.param .b32 _) _ (.param .b32 x, .param .align 8 .b8 _[8]);": None,
    "A: .callprototype (.reg .b32 _, .reg .pred %p) _ (.param .f16x2 _) .abi_preserve 4;": None,
    "A: .callprototype _ () .noreturn .abi_preserve_control 2;": None,
    "A: .callprototype (.param .b32 _) _ () .noreturn;": ".noreturn is for functions without results",
    "A: .callprototype (.param .b32 _, .param .b32 _) _;": "several results of a function are registers",
    "A: .callprototype _ (.param .b8 _[], .param .b32 _);": (
        "_ has no elements: only the last parameter of a function may have []"
    ),
    "A: .callprototype _ (.param .align 3 .b8 _[4]);": (
        "_ has alignment 3: expected a power of two, 65536 at most"
    ),
    "A: .callprototype _ () .maxntid 32;": "functions have no directive .maxntid",
    "A: .callprototype _ () .local_maxnreg 24;": "prototypes have no directive .local_maxnreg",
}
OF_KERNELS = {
    ".maxntid 32 .minnctapersm 2": None,
    '.pragma "no.such";': None,
    ".local_maxnreg 32": None,
    ".maxntid 0x20 .minnctapersm WARP_SZ": None,
    ".reqntid 32, 1U": None,
    ".maxntid 0": ".maxntid 0: each number is at least 1",
    ".maxnreg 0": ".maxnreg 0: each number is at least 1",
    ".maxnreg 4294967296": ".maxnreg 4294967296: each number has 32 bits at most",
    ".maxntid 1, 2, 3, 4": ".maxntid takes 1 to 3 numbers, not 4",
    ".reqntid 32 .maxntid 64": ".reqntid and .maxntid do not go together",
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


TEXTS = {  # what is not PTX at all
    ".func .align 8 f();": "'.align' is for variables",
    ".func f(.param .b8 x[4][4]);": "x has 2 dimensions: a parameter has 1 at most",
    ".entry e() { A: .callprototype f (.param .b32 _); }": "expected the name _, found 'f'",
    ".entry e() { A: .callprototype _ (.b32 _); }": "expected '.param' or '.reg', found '.b32'",
    ".entry e() { A: .callprototype _ (.param .b32); }": "expected a variable name, found ')'",
    ".entry e() { A: .callprototype _ (.param .b32 _), ; }": "expected ';', found ','",
    ".global .v4 .f64 z;": "no vector of 4 .f64: it has at most 128 bits",
    ".global .u32 WARP_SZ;": "WARP_SZ is a constant, and no name",
    ".pragma;": ".pragma takes words in quotes",
    ".alias f;": ".alias takes two names",
    ".const .attribute(.managed) .u32 z;": "'.managed' is an attribute of .global variables",
}
HEADS = {  # of whole modules, and what is wrong with them
    ".version 7.8\n.target sm_80\n": None,
    ".version 7.9\n.target sm_80\n": "there is no PTX 7.9 known here: the newest is 9.5",
    ".version 8.0\n.target sm_80, texmode_unified\n": None,
    ".version 6.0\n.target sm_20\n": None,
    ".version 1.4\n.target sm_10, map_f64_to_f32\n": None,
    ".version 6.0\n.target sm_20, map_f64_to_f32\n": "unknown option 'map_f64_to_f32' of .target: known are "
    "texmode_unified, texmode_independent, debug",
    ".version 8.0\n.target sm_80, nope\n": (
        "unknown option 'nope' of .target: known are texmode_unified, texmode_independent, debug"
    ),
    ".version 8.0\n.target sm_80\n.address_size 32\n": (
        "addresses of 32 bits are not supported: ptxas takes them no more"
    ),
}


@pytest.mark.parametrize("text", HEADS)
def test_heads_of_modules(text: str) -> None:
    """PTX of chips that are not simulated is loaded for a chip that is asked for."""
    target = None if "sm_80" in text else "sm_80"
    found = [problem.message for problem in load_text(text + ".entry k() { ret; }", target=target).problems]
    assert found == ([] if HEADS[text] is None else [HEADS[text]])


@pytest.mark.parametrize("text", TEXTS)
def test_what_does_not_parse(text: str) -> None:
    with pytest.raises(PtxError) as caught:
        load_text(HEAD + text + "\n.entry k() { ret; }\n")
    assert caught.value.message == TEXTS[text]


def test_textures_are_legal_and_not_modelled() -> None:
    (problem,) = load_text(HEAD + ".global .texref z;\n.entry k() { ret; }\n").problems
    assert isinstance(problem, NotModelled)


@pytest.mark.parametrize("text", CASES)
def test_what_is_refused(text: str) -> None:
    found = [problem.message for problem in load_text(HEAD + text).problems]
    assert found == ([] if CASES[text] is None else [CASES[text]])


EARLY = {  # directives with the PTX version and the target before theirs, and what they need
    (".abi_preserve 4", "8.8", "sm_90"): ".abi_preserve needs PTX 9.0",
    (".abi_preserve_control 2", "9.0", "sm_75"): ".abi_preserve_control needs sm_80 or higher, not sm_75",
    (".local_maxnreg 24", "8.7", "sm_75"): ".local_maxnreg needs PTX 8.8",
    (".local_maxnreg 24", "8.8", "sm_75"): None,
    ('"used_bytes_mask 1"', "8.2", "sm_75"): 'the pragma "used_bytes_mask" needs PTX 8.3',
    ('"enable_smem_spilling"', "8.6", "sm_75"): 'the pragma "enable_smem_spilling" needs PTX 8.7',
    ('"frequency 1"', "8.8", "sm_75"): 'the pragma "frequency" needs PTX 9.0',
}


@pytest.mark.parametrize("what", EARLY)
def test_directives_have_a_first_version(what: tuple[str, str, str]) -> None:
    directive, version, target = what
    body = f".pragma {directive}; ret;" if directive.startswith('"') else "ret;"
    tuning = "" if directive.startswith('"') else directive
    text = f".version {version}\n.target {target}\n.address_size 64\n.func f() {tuning} {{ {body} }}"
    found = [problem.message for problem in load_text(text).problems]
    assert found == ([] if EARLY[what] is None else [EARLY[what]])


@pytest.mark.skipif(bool(ptxas.missing_first()), reason=ptxas.missing_first() or "there is a ptxas")
def test_ptxas_refuses_the_same(tmp_path: Path) -> None:
    """Modules of several kinds in one run each; what links is not asked for."""
    path = tmp_path / "module.ptx"
    command = [str(ptxas.program()), "-arch=sm_90a", "-c", "-o", str(tmp_path / "module.cubin"), str(path)]
    taken = []
    end = "\n.entry k() { ret; }\n"
    modules = {HEAD + text: said for text, said in CASES.items()}
    modules |= {HEAD + text + end: said for text, said in TEXTS.items()}
    for text in modules:
        path.write_text(text)
        taken.append(subprocess.run(command, capture_output=True, check=False).returncode == 0)
    assert taken == [said is None for said in modules.values()]
