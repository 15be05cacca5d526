"""Calls that ptxas refuses, and their neighbours that it takes; parameters that are only read or written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.helpers import ptxas
from tools.legality.modules import Changed, said
from warpsim.base.errors import WarpsimError
from warpsim.programs.launch.launching import load_text

_FUNCTIONS = """.version 9.0
.target sm_90a
.address_size 64
.func f(.param .b32 x) { ret; }
.func n() { ret; }
.func (.param .b32 o) g(.param .b32 x, .param .b64 y) { ret; }
.func open(.param .b32 x, .param .align 8 .b8 y[]) { ret; }
.func bytes(.param .align 4 .b8 x[8]) { ret; }
.func (.reg .b32 o) registers(.reg .b32 i) { mov.b32 o, i; ret; }
.visible .entry kernel() { ret; }
"""
_KERNEL = """.visible .entry k(.param .b32 p) {
.reg .b32 %r<4>; .reg .b64 %d<3>;
.param .b32 a; .param .b64 b; .param .b32 r; .param .f32 e; .param .align 8 .b8 s[8];
.param .align 4 .b8 t[8];
q: .callprototype (.param .b32 _) _ (.param .b32 _);
{ .reg .b32 %u; hidden: .callprototype _ (.param .b32 _); }
L: %s
ret;
}
"""
_REFUSED = (
    ("call f, (a, b);", "f has 1 argument, and this call 2"),
    ("call g, (a);", "g has 2 arguments, and this call 1"),
    ("call g, (a, b);", "g has 1 result, and this call 0"),
    ("call (r), n;", "n has 0 results, and this call 1"),
    ("call f, (b);", "b is 8 bytes aligned to 8, but the call takes 4 bytes aligned to 4"),
    ("call f, (t);", "t is 8 bytes aligned to 4, an array, but the call takes 4 bytes aligned to 4"),
    (
        "call bytes, (s);",
        "s is 8 bytes aligned to 8, an array, but the call takes 8 bytes aligned to 4, an array",
    ),
    (
        "call open, (a, t);",
        "t is 8 bytes aligned to 4, an array, but the call takes any, aligned to 8, an array",
    ),
    ("call kernel;", "kernel is a kernel: call takes functions"),
    ("call k, (a);", "k is a kernel: call takes functions"),
    ("call f, (a), q;", "a call by name takes no prototype, as 'q'"),
    ("call %d1, (a);", "a call by address ends in a .callprototype or .calltargets: its label is missing"),
    ("call %d1, (a), nope;", "expected a .callprototype or .calltargets before this, not 'nope'"),
    ("call %d1, (a), L;", "expected a .callprototype or .calltargets before this, not 'L'"),
    ("call %d1, (a), hidden;", "expected a .callprototype or .calltargets before this, not 'hidden'"),
    ("call %d1, (a), later; later: .callprototype _ (.param .b32 _);", "before this, not 'later'"),
    ("t1: .branchtargets L; call %d1, (a), t1;", "expected a .callprototype or .calltargets before this"),
    ("call %d1, (a), q;", "the prototype has 1 result, and this call 0"),
    ("t2: .calltargets f, g; mov.u64 %d1, f; call %d1, (a), t2;", "g has 2 arguments, and this call 1"),
    ("bra q;", ""),
    ("st.param.b32 [p], 1;", "p is a parameter of this function: it is only read"),
    ("ld.b32 %r1, [p];", "p is in .param, not in .generic"),
    ("red.add.u32 [p], 1;", "p is in .param, not in .generic"),
)
_TAKEN = (
    "call f, (a);",
    "call n;",
    "call n, ();",
    "call (r), g, (a, b);",
    "call f, (e);",
    "call bytes, (t);",
    "call open, (a);",
    "call open, (a, s);",
    "call (r), %d1, (a), q;",
    "t2: .calltargets f; mov.u64 %d1, f; call %d1, (a), t2;",
    "st.param.b32 [a], 1;",
    "ld.param.b32 %r1, [p];",
)
_IN_FUNCTIONS = (
    (
        ".func h(.param .b32 i) { st.param.b32 [i], 1; ret; }",
        "i is a parameter of this function: it is only read",
    ),
    (
        ".func (.param .b32 o) h() { .reg .b32 %v; ld.param.b32 %v, [o]; ret; }",
        "o is a result of this function: it is only written",
    ),
    (
        ".func h(.param .b32 i) { call f, (i); ret; }",
        "i is a parameter of this function, which call does not",
    ),
)


def _problem(text: str) -> str:
    try:
        module = load_text(text)
        for name in module.entries:
            module[name]
    except WarpsimError as error:
        return error.message
    return "; ".join(problem.message for problem in module.problems)


def _kernel(statement: str) -> str:
    return _FUNCTIONS + _KERNEL.replace("%s", statement)


@pytest.mark.parametrize(("statement", "said"), _REFUSED)
def test_calls_that_are_refused(statement: str, said: str) -> None:
    found = _problem(_kernel(statement))
    assert found
    assert said in found


@pytest.mark.parametrize("statement", _TAKEN)
def test_calls_that_are_taken(statement: str) -> None:
    assert not _problem(_kernel(statement))


@pytest.mark.parametrize(("function", "said"), _IN_FUNCTIONS)
def test_parameters_of_functions(function: str, said: str) -> None:
    assert said in _problem(_FUNCTIONS + function)


def test_values_in_registers_are_not_dropped() -> None:
    """A function of registers, called with .param, left what its register held before."""
    assert "registers takes or returns registers" in _problem(_kernel("call (r), registers, (a);"))


@pytest.mark.skipif(bool(ptxas.missing()), reason="no ptxas")
def test_ptxas_agrees() -> None:
    taken = _FUNCTIONS + "".join(
        _KERNEL.replace("entry k", f"entry k{number}").replace("%s", statement)
        for number, statement in enumerate(_TAKEN)
    )
    refused = [_kernel(statement) for statement, _ in _REFUSED]
    refused += [_FUNCTIONS + text for text, _ in _IN_FUNCTIONS]
    cases = [Changed(name="calls", line="", text=text) for text in (taken, *refused)]
    with ThreadPoolExecutor(2) as pool:
        assert [not why for why in pool.map(said, cases)] == [True, *[False] * len(refused)]
