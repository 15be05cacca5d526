"""Initial values in nested braces: which ptxas 13.0 takes, and what lies where."""

from __future__ import annotations

import pytest

from tests.helpers import ptxas
from warpsim.programs.launch.launching import load_text

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
TAKEN = {
    ".u8 a[2][3] = {{1,2,3},{4,5,6}};": [1, 2, 3, 4, 5, 6],
    ".u8 a[2][3] = {{1},{2,3}};": [1, 2, 3, 0, 0, 0],  # ptxas puts them in a row
    ".u8 a[2][2][2] = {{{1},{2}},{{3}}};": [1, 2, 3, 0, 0, 0, 0, 0],
    ".u8 a[][3] = {{1},{2,3}};": [1, 2, 3, 0, 0, 0],
    ".u8 a[] = {1,2,3};": [1, 2, 3],
    ".v2 .u8 a = {5,6};": [5, 6],
    ".v2 .u8 a[2] = {{5,6},{7,8}};": [5, 6, 7, 8],
    ".u8 a[2][3] = {{},{2}};": [2, 0, 0, 0, 0, 0],
    ".u8 a[2][3] = {};": [0, 0, 0, 0, 0, 0],
    ".u8 a = 7;": [7],
}
REFUSED = {
    ".u8 a[2][3] = {1,2,3,4};": "a: 4 initial values where there is room for 2",
    ".u8 a[2][3] = {1,{2,3}};": "a: expected braces around the initial value '1'",
    ".u8 a[2][3] = {{1,2,3,4},{5}};": "a: 4 initial values where there is room for 3",
    ".u8 a[3] = {{1},{2}};": "a: expected no braces around the initial value '{1}'",
    ".u8 a = {7};": "a: expected no braces around the initial value '{7}'",
}


def module(text: str) -> str:
    return f"{HEAD}.visible .global {text}\n.visible .entry k() {{ ret; }}\n"


@pytest.mark.parametrize("text", TAKEN)
def test_what_lies_where(text: str) -> None:
    loaded = load_text(module(text))
    assert loaded.problems == ()
    (variable,) = loaded.module.variables
    assert list(variable.initial) == TAKEN[text]
    assert variable.size == len(TAKEN[text])


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    (problem,) = load_text(module(text)).problems
    assert problem.message == REFUSED[text]


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
def test_ptxas_takes_the_same() -> None:
    lines = [".global " + text for text in (*TAKEN, *REFUSED)]
    head = "ret; }\n.entry other() {"  # declarations of variables in .global stand in kernels, too
    verdicts = [ptxas.verdicts([line], target="sm_80", declarations=head)[0] for line in lines]
    assert [one is None for one in verdicts] == [True] * len(TAKEN) + [False] * len(REFUSED)
