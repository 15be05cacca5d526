"""Registers of every type in scalar statements of a kernel: taken where ptxas 13.0 takes them."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest

from tests.helpers import ptxas
from warpsim.programs.launch.launching import load_text
from warpsim.ptx.operand_types import REGISTER_BITS

TYPES = [name for name in REGISTER_BITS if name != "b128"]
DECLARATIONS = " ".join(f".reg .{name} %q{name}_<4>;" for name in TYPES) + " .reg .b64 %a;"
STATEMENTS = [  # {} is a register of each type; the others have the right one
    *("add.s32 {}0, {}1, {}2;", "add.u64 {}0, {}1, {}2;", "and.b32 {}0, {}1, {}2;", "and.b64 {}0, {}1, {}2;"),
    *("add.f32 {}0, {}1, {}2;", "add.f64 {}0, {}1, {}2;", "min.u16 {}0, {}1, {}2;", "and.b16 {}0, {}1, {}2;"),
    *("add.f16 {}0, {}1, {}2;", "add.f16x2 {}0, {}1, {}2;", "fma.rn.bf16 {}0, {}1, {}2, {}1;"),
    *("fma.rn.bf16x2 {}0, {}1, {}2, {}1;", "add.u16x2 {}0, {}1, {}2;", "max.s16x2 {}0, {}1, {}2;"),
    *("add.rn.f32x2 {}0, {}1, {}2;", "cvt.s32.s16 {}0, %qs16_1;", "cvt.s32.s16 %qs32_0, {}1;"),
    *("cvt.u8.u32 {}0, %qu32_1;", "cvt.f32.f16 %qf32_0, {}1;", "cvt.rn.f16.f32 {}0, %qf32_1;"),
    *("cvt.f64.f32 %qf64_0, {}1;", "cvt.u64.u32 %qu64_0, {}1;", "mov.u32 {}0, {}1;", "mov.f32 {}0, {}1;"),
    *("ld.global.u8 {}0, [%a];", "ld.global.b16 {}0, [%a];", "ld.global.f32 {}0, [%a];"),
    *("ld.global.u32 {}0, [%a];", "st.global.f32 [%a], {}0;", "st.global.b32 [%a], {}0;"),
    *("st.global.s16 [%a], {}0;", "mov.b64 {}0, {}1;"),
]
HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"


def taken(lines: list[str]) -> set[str]:
    """The statements that a kernel can be loaded with."""
    text = HEAD + f".visible .entry k() {{ {DECLARATIONS}\n" + "\n".join(lines) + "\n}"
    wrong = {problem.location.line for problem in load_text(text).problems if problem.location}
    return {line for number, line in enumerate(lines, 5) if number not in wrong}


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing())
def test_what_ptxas_takes() -> None:
    lines = [re.sub(r"\{\}", f"%q{name}_", one) for one in STATEMENTS for name in TYPES]
    verdicts = ptxas.verdicts(lines, target="sm_100a", declarations=DECLARATIONS, version="9.0")
    assembled = {line for line, error in zip(lines, verdicts, strict=True) if error is None}
    assert taken(lines) ^ assembled == set()
    assert all(any(line.startswith(one.split()[0]) for line in assembled) for one in STATEMENTS)


_IN_VECTORS = [  # $ is a register of a type, @ of another
    *("ld.global.v2.u32 {$0, @1}, [%a];", "ld.global.v2.f32 {$0, @1}, [%a];"),
    *("st.global.v2.b16 [%a], {$0, @1};", "st.global.v2.f64 [%a], {$0, @1};"),
    *("mov.b64 %qb64_3, {$0, @1};", "mov.b32 {$0, @1}, %qb32_3;", "mov.v2.f32 {$0, @1}, {@2, $3};"),
    *("red.global.add.v2.f32 [%a], {$0, @1};", "red.global.add.noftz.v2.f16x2 [%a], {$0, @1};"),
    *("ldmatrix.sync.aligned.m8n8.x2.b16 {$0, @1}, [%a];", "st.global.v2.u32 [%a], {$0, 7};"),
]


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing())
def test_vectors_of_two_types() -> None:
    """A vector has one type: that of its elements, or bits where they differ and are of kin."""
    types = [one for one in TYPES if one != "pred"]  # which ptxas takes for tiles
    pairs = [pair for pair in product(types, types) if REGISTER_BITS[pair[0]] == REGISTER_BITS[pair[1]]]
    texts = [(text, *pair) for text in _IN_VECTORS for pair in (*pairs, ("u32", "b64"), ("b32", "u16"))]
    chosen = Random("vectors").sample(texts, 300)
    lines = [text.replace("$", f"%q{one}_").replace("@", f"%q{other}_") for text, one, other in chosen]
    lines = list(dict.fromkeys(lines))
    verdicts = ptxas.verdicts(lines, target="sm_100a", declarations=DECLARATIONS, version="9.0")
    assembled = {line for line, error in zip(lines, verdicts, strict=True) if error is None}
    assert taken(lines) ^ assembled == set()
    assert assembled
