"""Every rule of scalar opcodes: a kernel of one statement computes the NumPy function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from tests.helpers.formulas import compared, kernel_of
from warpsim.machine.opcodes import rows
from warpsim.observe.algebra.equivalence import Equivalence

Function = Callable[..., Any]
NO_MEANING = {"addc", "madc", "subc"}  # a carry links two statements


def test_opcodes_have_meanings() -> None:
    lacking = {opcode for opcode, known in rows().items() if not all(row.meaning for row in known)}
    assert lacking == NO_MEANING


FLOATS: list[tuple[str, Function]] = [
    ("add.f32 %d, %a, %b;", lambda a, b, c: a + b),
    ("sub.f32 %d, %a, %b;", lambda a, b, c: a - b),
    ("mul.f32 %d, %a, %b;", lambda a, b, c: a * b),
    ("fma.rn.f32 %d, %a, %b, %c;", lambda a, b, c: a * b + c),
    ("neg.f32 %d, %a;", lambda a, b, c: -a),
    ("abs.f32 %d, %a;", lambda a, b, c: np.abs(a)),
    ("copysign.f32 %d, %a, %b;", lambda a, b, c: np.copysign(b, a)),
    ("min.f32 %d, %a, %b;", lambda a, b, c: np.minimum(a, b)),
    ("max.f32 %d, %a, %b;", lambda a, b, c: np.maximum(a, b)),
    ("max.f32 %d, %a, 0f00000000;", lambda a, b, c: np.maximum(a, 0)),
    ("div.rn.f32 %d, %a, %b;", lambda a, b, c: a / b),
    ("rcp.rn.f32 %d, %a;", lambda a, b, c: 1 / a),
    ("ex2.approx.f32 %d, %a;", lambda a, b, c: np.exp2(a)),
    ("add.f32 %t, %a, %b; ex2.approx.f32 %d, %t;", lambda a, b, c: np.exp2(a) * np.exp2(b)),
    ("abs.f32 %t, %a; sqrt.rn.f32 %d, %t;", lambda a, b, c: np.sqrt(np.abs(a))),
    ("abs.f32 %t, %a; rsqrt.approx.f32 %d, %t;", lambda a, b, c: 1 / np.sqrt(np.abs(a))),
    ("abs.f32 %t, %a; lg2.approx.f32 %d, %t;", lambda a, b, c: np.log2(np.abs(a))),
    ("tanh.approx.f32 %d, %a;", lambda a, b, c: np.tanh(a)),
    ("sin.approx.f32 %d, %a;", lambda a, b, c: np.sin(a)),
    ("cos.approx.f32 %d, %a;", lambda a, b, c: np.cos(a)),
    ("cvt.rni.f32.f32 %d, %a;", lambda a, b, c: np.rint(a)),
    ("cvt.rmi.f32.f32 %d, %a;", lambda a, b, c: np.floor(a)),
    ("cvt.rzi.s32.f32 %i, %a; cvt.rn.f32.s32 %d, %i;", lambda a, b, c: np.trunc(a)),
    ("cvt.rn.f16.f32 %h, %a; cvt.f32.f16 %d, %h;", lambda a, b, c: a),
    ("cvt.sat.f32.f32 %d, %a;", lambda a, b, c: np.clip(a, 0, 1)),
    ("add.sat.f32 %d, %a, %b;", lambda a, b, c: np.clip(a + b, 0, 1)),
    ("setp.gt.f32 %p, %a, %b; selp.f32 %d, %a, %c, %p;", lambda a, b, c: np.where(a > b, a, c)),
    ("mul.f32 %t, %a, 0f3D372713; add.f32 %d, %t, %b;", lambda a, b, c: 0.044715 * a + b),
    ("mul.f32 %t, %a, 0f3FB8AA3B; ex2.approx.f32 %d, %t;", lambda a, b, c: np.exp(a)),
    ("mul.f32 %t, %a, 0f3E38AA3B; ex2.approx.f32 %d, %t;", lambda a, b, c: np.exp(a * 0.125)),
    ("shfl.sync.bfly.b32 %d, %a, 1, 31, -1;", lambda a, b, c: a.reshape(-1, 2)[:, ::-1].reshape(-1)),
    ("mov.b32 %i, %a; xor.b32 %i, %i, -2147483648; mov.b32 %d, %i;", lambda a, b, c: -a),
    ("mov.b32 %i, %a; and.b32 %i, %i, 2147483647; mov.b32 %d, %i;", lambda a, b, c: np.abs(a)),
    ("mov.b32 %i, %a; and.b32 %i, %i, -8192; mov.b32 %d, %i;", lambda a, b, c: a),
    (
        "cvt.rn.f16x2.f32 %i, %a, %b; fma.rn.f16x2 %i, %i, %i, %i; mov.b32 {%h, %g}, %i; cvt.f32.f16 %d, %h;",
        lambda a, b, c: b * b + b,
    ),
    (
        "cvt.rn.bf16x2.f32 %i, %a, %b; shl.b32 %i, %i, 16; mov.b32 %d, %i;",
        lambda a, b, c: b,
    ),
    ("cvt.rn.bf16x2.f32 %i, %a, %b; and.b32 %i, %i, -65536; mov.b32 %d, %i;", lambda a, b, c: a),
    (
        "cvt.rn.satfinite.e4m3x2.f32 %h, %a, %b; cvt.rn.f16x2.e4m3x2 %i, %h; mov.b32 {%h, %g}, %i;"
        " cvt.f32.f16 %d, %g;",
        lambda a, b, c: a,
    ),
]


@pytest.mark.parametrize(("text", "function"), FLOATS, ids=[text for text, _ in FLOATS])
def test_float_statements_compute_functions(text: str, function: Function) -> None:
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal(64).astype(np.float32) for _ in range(3))
    found = compared(kernel_of(text, "f32", "sm_100a"), [a, b, c, np.zeros(64, np.float32)], function)
    assert (found.answer, found.close or "e4m3" in text, dict(found.uninterpreted)) == ("equal", True, {})


INTEGERS: list[tuple[str, Function]] = [
    ("add.s32 %d, %a, %b;", lambda a, b, c: a + b),
    ("sub.s32 %d, %a, %b;", lambda a, b, c: a - b),
    ("mul.lo.s32 %d, %a, %b;", lambda a, b, c: a * b),
    ("mad.lo.s32 %d, %a, %b, %c;", lambda a, b, c: a * b + c),
    ("neg.s32 %d, %a;", lambda a, b, c: -a),
    ("abs.s32 %d, %a;", lambda a, b, c: np.abs(a)),
    ("min.s32 %d, %a, %b;", lambda a, b, c: np.minimum(a, b)),
    ("max.s32 %d, %a, 0;", lambda a, b, c: np.maximum(a, 0)),
    ("sad.s32 %d, %a, %b, %c;", lambda a, b, c: np.abs(a - b) + c),
    ("and.b32 %d, %a, 255;", lambda a, b, c: a & 255),
    ("or.b32 %d, %a, %b;", lambda a, b, c: a | b),
    ("xor.b32 %d, %a, %b;", lambda a, b, c: a ^ b),
    ("shl.b32 %d, %a, 3;", lambda a, b, c: a * 8),
    ("shr.s32 %d, %a, 5;", lambda a, b, c: a >> 5),
    ("shr.u32 %t, %a, 8; and.b32 %d, %t, 15;", lambda a, b, c: a >> 8 & 15),
    ("bfe.u32 %d, %a, 4, 4;", lambda a, b, c: a >> 4 & 15),
    ("bfe.s32 %d, %a, 0, 8;", lambda a, b, c: (a & 127) - (a & 128)),
    ("bfi.b32 %d, %a, %b, 8, 8;", lambda a, b, c: b - (b >> 8 & 255) * 256 + (a & 255) * 256),
    ("lop3.b32 %d, %a, 15, 64, 234;", lambda a, b, c: a & 15 | 64),
    ("prmt.b32 %t, %a, 0, 17409; and.b32 %d, %t, 65535;", lambda a, b, c: (a >> 8 & 255) + (a & 255) * 256),
    ("cvt.s32.s8 %d, %a;", lambda a, b, c: (a & 127) - (a & 128)),
    ("cvt.u32.u8 %d, %a;", lambda a, b, c: a & 255),
    ("shf.r.wrap.b32 %t, %a, %b, 16; and.b32 %d, %t, 65535;", lambda a, b, c: a >> 16 & 65535),
    ("redux.sync.add.s32 %d, %a, -1;", lambda a, b, c: np.repeat(a.reshape(2, 32).sum(1), 32)),
    ("div.s32 %t, %a, %b; mov.b32 %d, %a;", lambda a, b, c: a),
    ("selp.b32 %d, %a, %b, %q;", lambda a, b, c: a),
    ("dp4a.s32.s32 %d, %a, %b, %c;", lambda a, b, c: _dot(a, b) + c),
]


def _bytes(x: Any, place: int) -> Any:
    byte = x >> 8 * place
    return (byte & 127) - (byte & 128)


def _dot(a: Any, b: Any) -> Any:
    return sum(_bytes(a, place) * _bytes(b, place) for place in range(4))


@pytest.mark.parametrize(("text", "function"), INTEGERS, ids=[text for text, _ in INTEGERS])
def test_integer_statements_compute_functions(text: str, function: Function) -> None:
    random = np.random.default_rng(0)
    a, b, c = (random.integers(-(1 << 14), 1 << 14, 64).astype(np.int32) for _ in range(3))
    b[b == 0] = 1
    found = compared(kernel_of(text, "s32", "sm_90a"), [a, b, c, np.zeros(64, np.int32)], function)
    assert (found.answer, found.close, dict(found.uninterpreted)) == ("equal", True, {})


def test_half_made_of_bits() -> None:
    """0x6400 | nibble is the f16 1024 + nibble."""
    text = "and.b32 %t, %a, 15; or.b32 %t, %t, 25600; cvt.u16.u32 %h, %t; cvt.f32.f16 %f, %h; mov.b32 %d, %f;"
    a = np.arange(64, dtype=np.int32) * 977
    arrays = [a, a, a, np.zeros(64, np.float32)]
    found = compared(kernel_of(text, "s32", "sm_80"), arrays, lambda a, b, c: (a & 15) + 1024)
    assert found.answer == "equal"


LENGTHENED = [
    ("and.b32 %i, %a, -65536;", 1),
    ("shl.b32 %i, %a, 16;", 0),
    ("mov.b16 %h, 0; mov.b32 {_, %g}, %a; mov.b32 %i, {%h, %g};", 1),
    ("mov.b32 {%h, %g}, %a; cvt.u32.u16 %i, %h; shl.b32 %i, %i, 16;", 0),
    ("mov.b32 {%h, %g}, %a; cvt.s32.s16 %i, %g; shl.b32 %i, %i, 16;", 1),
    ("prmt.b32 %i, %a, 0, 0x3244;", 1),
]


def _of_codes(text: str, reference: Function) -> Equivalence:
    text = f"{text} mov.b32 %f, %i; add.f32 %f, %f, %f; mov.b32 %d, %f;"
    codes = np.random.default_rng(1).standard_normal(128).astype(ml_dtypes.bfloat16).view(np.uint16)
    arrays = [codes, codes.copy(), codes.copy(), np.zeros(64, np.float32)]
    return compared(kernel_of(text, "b32", "sm_80"), arrays, reference)


@pytest.mark.parametrize(("text", "place"), LENGTHENED, ids=[text for text, _ in LENGTHENED])
def test_halves_above_zeros_are_bf16(text: str, place: int) -> None:
    assert _of_codes(text, lambda a, b, c: 2 * a.reshape(-1, 2)[:, place]).answer == "equal"
    assert _of_codes(text, lambda a, b, c: 2 * a.reshape(-1, 2)[:, 1 - place]).answer == "other"


def test_floats_of_an_unknown_type_are_undecided() -> None:
    found = _of_codes(
        "mov.b32 {%h, %g}, %a; mov.b32 %i, {%g, %h};", lambda a, b, c: 2 * a.reshape(-1, 2)[:, 0]
    )
    assert found.answer == "undecided"
    assert "made of the integers of pa, of no known type" in str(found)


def test_wrong_statement_is_another_formula() -> None:
    random = np.random.default_rng(0)
    arrays = [*(random.standard_normal(64).astype(np.float32) for _ in range(3)), np.zeros(64, np.float32)]
    for text, function in FLOATS:
        other = compared(
            kernel_of(text, "f32", "sm_100a"), arrays, lambda a, b, c, f=function: f(a, b, c) + c
        )
        assert other.answer == "other", text


def test_uninterpreted_opcodes_are_counted() -> None:
    text = "mul.hi.s32 %d, %a, %b;"
    a = np.arange(1, 65, dtype=np.int32) << 20
    arrays = [a, a, a, np.zeros(64, np.int32)]
    found = compared(kernel_of(text, "s32", "sm_80"), arrays, lambda a, b, c: (a * b) // (1 << 32))
    assert (found.answer, dict(found.uninterpreted)) == ("undecided", {"mul": 1})


def test_wrapped_integers_are_named() -> None:
    a = np.full(64, 1 << 30, np.int32)
    arrays = [a, a, a, np.zeros(64, np.int32)]
    found = compared(kernel_of("add.s32 %d, %a, %b;", "s32", "sm_80"), arrays, lambda a, b, c: a + b)
    assert found.answer == "equal"
    assert "integers wrap at" in str(found)


def test_by_value() -> None:
    """tanh written out as (e^2x - 1) / (e^2x + 1) is not a law of a field: it is recognised by its values."""
    text = (
        "mul.f32 %t, %a, 0f4038AA3B; ex2.approx.f32 %t, %t; add.f32 %d, %t, 0f3F800000;"
        " sub.f32 %t, %t, 0f3F800000; div.rn.f32 %d, %t, %d;"
    )
    a = np.linspace(0.3, 2, 64).astype(np.float32)
    arrays = [a, a, a, np.zeros(64, np.float32)]
    found = compared(kernel_of(text, "f32", "sm_80"), arrays, lambda a, b, c: np.tanh(a))
    assert found.answer == "equal"
    assert "tanh at" in found.by_value[0]


assert warpsim
