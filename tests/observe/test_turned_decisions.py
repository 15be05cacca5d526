"""Decisions that rounding, range or wrapping turns in a kernel are no other formulas; other decisions are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.helpers.formulas import compared, kernel_of, repeatable
from warpsim.observe.algebra.equivalence import Equivalence
from warpsim.workbench.diagnosis.verdicts.why import verdict_of

Function = Callable[..., Any]
_F16 = "cvt.rn.f16.f32 %h, {0}; cvt.f32.f16 {0}, %h; "  # rounds a register to f16
_BF16 = "cvt.rn.bf16.f32 %h, {0}; cvt.f32.bf16 {0}, %h; "
_TO_S32 = "cvt.rni.s32.f32 %i, %t; "
_CLAMP = "min.s32 %i, %i, 127; max.s32 %i, %i, -128; cvt.rn.f32.s32 %d, %i;"


class Benign(NamedTuple):
    """Statements that compute a function but for values, of numbers about so large; of sums near 0 where the
    scale is negative: the nearer, the closer it is to 0.
    """

    statements: str
    function: Function
    scale: float = 1.0
    kind: str = "f32"


BENIGN = {
    "clamp behind an overflow of f16": Benign(
        _F16.format("%a") + "min.f32 %t, %a, 0f42FE0000; max.f32 %d, %t, 0fC3000000;",
        lambda a, b, c: np.clip(a, -128, 127), 1e5,
    ),
    "scaled clamp behind an overflow of f16": Benign(
        _F16.format("%a") + "mul.f32 %t, %a, 0f3A000000; " + _TO_S32 + _CLAMP,
        lambda a, b, c: np.clip(np.rint(a * 2.0**-11), -128, 127), 1e5,
    ),
    "ReLU of a sum that f16 rounds": Benign(
        "cvt.rn.f16.f32 %h, %a; cvt.rn.f16.f32 %g, %b; add.f16 %h, %h, %g; cvt.f32.f16 %t, %h;"
        " max.f32 %d, %t, 0f00000000;",
        lambda a, b, c: np.maximum(a + b, 0), -1,
    ),
    "ReLU in f16 of a sum": Benign(
        "cvt.rn.f16x2.f32 %i, %a, %b; mov.b32 {%h, %g}, %i; add.f16 %h, %h, %g; mov.b16 %g, 0;"
        " max.f16 %h, %h, %g; cvt.f32.f16 %d, %h;",
        lambda a, b, c: np.maximum(a + b, 0), -1,
    ),
    "leaky ReLU of a sum that bf16 rounds": Benign(
        _BF16.format("%a") + _BF16.format("%b") + "add.f32 %t, %a, %b; mul.f32 %c, %t, 0f3DCCCCCD;"
        " setp.gt.f32 %p, %t, 0f00000000; selp.f32 %d, %t, %c, %p;",
        lambda a, b, c: np.where(a + b > 0, a + b, 0.1 * (a + b)), -1,
    ),
    "predicated epilogue of a rounded sum": Benign(
        _F16.format("%a") + _F16.format("%b") + "add.f32 %d, %a, %b; setp.lt.f32 %p, %d, 0f00000000;"
        " @%p mul.f32 %d, %d, 0f3F000000;",
        lambda a, b, c: np.where(a + b < 0, (a + b) / 2, a + b), -1,
    ),
    "branch on a rounded sum": Benign(
        _F16.format("%a") + _F16.format("%b") + "add.f32 %d, %a, %b; setp.lt.f32 %p, %d, 0f00000000;"
        " @!%p bra $done; mul.f32 %d, %d, 0f3F000000;\n$done:",
        lambda a, b, c: np.where(a + b < 0, (a + b) / 2, a + b), -1,
    ),
    "index of the greater of rounded numbers": Benign(
        _BF16.format("%a") + "neg.f32 %b, %b; " + _BF16.format("%b")
        + "setp.gt.f32 %p, %a, %b; selp.f32 %d, 0f3F800000, 0f00000000, %p;",
        lambda a, b, c: np.where(a > -b, 1.0, 0.0), -1,
    ),
    "greater of numbers rounded to bf16": Benign(
        _BF16.format("%a") + "neg.f32 %b, %b; " + _BF16.format("%b") + "max.f32 %d, %a, %b;",
        lambda a, b, c: np.maximum(a, -b), -1,
    ),
    "greater of packed numbers": Benign(
        ".reg .b32 %j; neg.f32 %b, %b; cvt.rn.f16x2.f32 %j, %a, %b; mov.b32 {%h, %g}, %j;"
        " mov.b32 %i, {%g, %h}; max.f16x2 %i, %i, %j; mov.b32 {%h, %g}, %i; cvt.f32.f16 %d, %h;",
        lambda a, b, c: np.maximum(a, -b), -1,
    ),
    "greatest in bf16, of numbers that round to one": Benign(
        ".reg .b32 %j; neg.f32 %b, %b; cvt.rn.bf16x2.f32 %j, %a, %b; mov.b32 {%h, %g}, %j;"
        " mov.b32 %i, {%g, %h}; max.bf16x2 %i, %i, %j; shl.b32 %i, %i, 16; mov.b32 %d, %i;",
        lambda a, b, c: np.maximum(a, -b), -8,
    ),
    "element at the greatest index in bf16": Benign(
        "neg.f32 %t, %b; cvt.rn.bf16.f32 %h, %a; cvt.rn.bf16.f32 %g, %t; setp.gt.bf16 %p, %h, %g;"
        " selp.f32 %d, %a, %b, %p;",
        lambda a, b, c: np.take_along_axis(
            np.stack([a, b], 1), np.argmax(np.stack([a, -b], 1), axis=1, keepdims=True), 1
        )[:, 0],
        -8,
    ),
    "greatest index in bf16": Benign(
        "neg.f32 %t, %b; cvt.rn.bf16.f32 %h, %a; cvt.rn.bf16.f32 %g, %t; setp.gt.bf16 %p, %h, %g;"
        " selp.f32 %d, 0f00000000, 0f3F800000, %p;",
        lambda a, b, c: np.argmax(np.stack([a, -b]), axis=0), -8,
    ),
    "element at an index of rows": Benign(
        "neg.f32 %t, %b; cvt.rn.bf16.f32 %h, %a; cvt.rn.bf16.f32 %g, %t; setp.gt.bf16 %p, %h, %g;"
        " selp.f32 %d, %a, %b, %p;",
        lambda a, b, c: np.stack([a, b])[np.argmax(np.stack([a, -b]), axis=0), np.arange(64)], -8,
    ),
    "second greatest of three": Benign(
        "neg.f32 %b, %b; " + _BF16.format("%a") + _BF16.format("%b")
        + "max.f32 %t, %a, %b; min.f32 %d, %a, %b; min.f32 %t, %t, %c; max.f32 %d, %d, %t;",
        lambda a, b, c: np.maximum(np.minimum(a, -b), np.minimum(np.maximum(a, -b), c)), -1,
    ),
    "softcap": Benign(
        "mul.f32 %t, %a, 0f3DCCCCCD; tanh.approx.f32 %t, %t; mul.f32 %d, %t, 0f41200000;",
        lambda a, b, c: 10 * np.tanh(a / 10), 8,
    ),
    "quantised with ties": Benign(
        "mul.f32 %t, %a, 0f41000000; " + _TO_S32 + _CLAMP,
        lambda a, b, c: np.clip(np.rint(a / 0.125), -128, 127), 16,
    ),
    "quantised and taken back": Benign(
        "mul.f32 %t, %a, 0f41000000; cvt.rni.f32.f32 %t, %t; min.f32 %t, %t, 0f42FE0000; "
        "max.f32 %t, %t, 0fC2FE0000; mul.f32 %d, %t, 0f3E000000;",
        lambda a, b, c: np.clip(np.rint(a * 8), -127, 127) * 0.125, 16,
    ),
    "quantised by the greatest magnitude": Benign(
        "abs.f32 %t, %a; abs.f32 %d, %b; max.f32 %t, %t, %d; mul.f32 %t, %t, 0f3C010204;"
        " div.rn.f32 %d, %a, %t; cvt.rni.f32.f32 %d, %d; mul.f32 %d, %d, %t;",
        lambda a, b, c: np.rint(a / (np.maximum(np.abs(a), np.abs(b)) / 127))
        * (np.maximum(np.abs(a), np.abs(b)) / 127),
    ),
    "mask of -inf": Benign(
        "setp.gt.f32 %p, %c, 0f00000000; selp.f32 %t, %a, 0fFF800000, %p; max.f32 %d, %t, %b;",
        lambda a, b, c: np.maximum(np.where(c > 0, a, -np.inf), b),
    ),
    "exponential of a mask": Benign(
        "setp.gt.f32 %p, %c, 0f00000000; selp.f32 %t, %a, 0fFF800000, %p; ex2.approx.f32 %d, %t;",
        lambda a, b, c: np.exp2(np.where(c > 0, a, -np.inf)),
    ),
    "greatest of negative zeros": Benign(
        "mul.f32 %t, %a, 0f80000000; max.f32 %t, %t, 0f80000000; add.f32 %d, %t, %b;",
        lambda a, b, c: np.maximum(a * -0.0, -0.0) + b,
    ),
    "sign of a product that underflows": Benign(
        "cvt.rn.f16.f32 %h, %a; mul.f16 %h, %h, %h; mul.f16 %h, %h, %h; mov.b16 %g, 0; max.f16 %h, %h, %g;"
        " cvt.f32.f16 %d, %h;",
        lambda a, b, c: np.maximum(a * a * a * a, 0), 1e-2,
    ),
    "ReLU before a factor, of numbers that underflow": Benign(
        "mul.f32 %t, %a, 0f38D1B717; cvt.rn.f16.f32 %h, %t; mov.b16 %g, 0; max.f16 %h, %h, %g;"
        " cvt.f32.f16 %d, %h;",
        lambda a, b, c: np.maximum(a, 0) * 1e-4, 1e-3,
    ),
    "magnitude of a rounded sum": Benign(
        _F16.format("%a") + _F16.format("%b") + "add.f32 %t, %a, %b; abs.f32 %d, %t;",
        lambda a, b, c: np.abs(a + b), -1,
    ),
    "saturating conversion for a clamp": Benign(
        "cvt.rni.sat.s8.f32 %i, %a; cvt.s32.s8 %i, %i; cvt.rn.f32.s32 %d, %i;",
        lambda a, b, c: np.clip(np.rint(a), -128, 127), 200,
    ),
    "saturating conversion that the function leaves out": Benign(
        "cvt.rni.sat.s8.f32 %i, %a; cvt.s32.s8 %i, %i; cvt.rn.f32.s32 %d, %i;",
        lambda a, b, c: np.rint(a), 200,
    ),
    "e4m3 that saturates": Benign(
        "cvt.rn.satfinite.e4m3x2.f32 %h, %a, %b; cvt.rn.f16x2.e4m3x2 %i, %h; mov.b32 {%h, %g}, %i;"
        " cvt.f32.f16 %d, %g;",
        lambda a, b, c: a, 600,
    ),
    "e4m3 and a maximum": Benign(
        "cvt.rn.satfinite.e4m3x2.f32 %h, %a, %b; cvt.rn.f16x2.e4m3x2 %i, %h; mov.b32 {%h, %g}, %i;"
        " cvt.f32.f16 %t, %g; max.f32 %d, %t, %c;",
        lambda a, b, c: np.maximum(a, c), 600,
    ),
    "tf32 and a maximum": Benign(
        "neg.f32 %b, %b; cvt.rna.tf32.f32 %i, %a; mov.b32 %a, %i; cvt.rna.tf32.f32 %i, %b; mov.b32 %b, %i;"
        " max.f32 %d, %a, %b;",
        lambda a, b, c: np.maximum(a, -b), -1,
    ),
    "exponential that overflows, bounded": Benign(
        "ex2.approx.f32 %t, %a; mul.f32 %t, %t, 0f0D800000; min.f32 %d, %t, %c;",
        lambda a, b, c: np.minimum(np.exp2(a) * 2.0**-100, c), 200,
    ),
    "sigmoid in f16": Benign(
        "mul.f32 %t, %a, 0fBFB8AA3B; cvt.rn.f16.f32 %h, %t; ex2.approx.f16 %h, %h; cvt.f32.f16 %t, %h;"
        " add.f32 %t, %t, 0f3F800000; rcp.approx.f32 %d, %t;",
        lambda a, b, c: 1 / (1 + np.exp(-a)), 20,
    ),
    "softplus with a bound": Benign(
        "mul.f32 %t, %a, 0f3FB8AA3B; ex2.approx.f32 %t, %t; add.f32 %t, %t, 0f3F800000;"
        " lg2.approx.f32 %t, %t; mul.f32 %t, %t, 0f3F317218; "
        + _BF16.format("%a") + "setp.gt.f32 %p, %a, 0f41A00000; selp.f32 %d, %a, %t, %p;",
        lambda a, b, c: np.where(a > 20, a, np.log(1 + np.exp(a))), 40,
    ),
    "hard swish in f16": Benign(
        "cvt.rn.f16.f32 %h, %a; cvt.f32.f16 %a, %h; add.f32 %t, %a, 0f40400000; max.f32 %t, %t, 0f00000000;"
        " min.f32 %t, %t, 0f40C00000; mul.f32 %t, %t, %a; mul.f32 %d, %t, 0f3E2AAAAB;",
        lambda a, b, c: a * np.clip(a + 3, 0, 6) / 6, 4,
    ),
    "no number behind an overflow": Benign(
        _F16.format("%a") + "sub.f32 %t, %a, %a; max.f32 %t, %t, 0fC0000000; add.f32 %d, %t, %b;",
        lambda a, b, c: np.maximum(a - a, -2) + b, 1e5,
    ),
    "early rounding of terms": Benign(
        "".join(map(_F16.format, ("%a", "%b", "%c")))
        + "add.f32 %t, %a, %b; cvt.rn.f16.f32 %h, %t; cvt.f32.f16 %t, %h; add.f32 %t, %t, %c;"
        " max.f32 %d, %t, 0f00000000;",
        lambda a, b, c: np.maximum(a + b + c, 0), -1,
    ),
    "greatest of a warp, of rounded numbers": Benign(
        ".reg .f32 %r; cvt.rn.f16.f32 %h, %a; cvt.f32.f16 %t, %h; "
        + "".join(f"shfl.sync.bfly.b32 %r, %t, {n}, 31, -1; max.f32 %t, %t, %r; " for n in (16, 8, 4, 2, 1))
        + "sub.f32 %d, %a, %t;",
        lambda a, b, c: a - np.repeat(np.max(a.reshape(2, 32), axis=1), 32),
    ),
    "parts of a sum by atomics, ReLU": Benign(
        ".reg .u64 %z; ld.param.u64 %z, [pd]; add.u64 %z, %z, %o; " + _F16.format("%a") + _F16.format("%b")
        + "red.global.add.f32 [%z], %a; red.global.add.f32 [%z], %b; ld.global.f32 %t, [%z];"
        " max.f32 %d, %t, 0f00000000;",
        lambda a, b, c: np.maximum(a + b, 0), -1,
    ),
    "factor by way of an integer division": Benign(
        "mul.f32 %t, %a, 0f3E124925; min.f32 %d, %t, %b;", lambda a, b, c: np.minimum(a / 7, b)
    ),
    "product that wraps, clamped": Benign(
        "mul.lo.s32 %t, %a, %b; min.s32 %t, %t, 127; max.s32 %d, %t, -128;",
        lambda a, b, c: np.clip(a * b, -128, 127), 1 << 20, "s32",
    ),
    "requantised integers": Benign(
        "mad.lo.s32 %t, %a, %b, %c; cvt.rn.f32.s32 %f, %t; mul.f32 %f, %f, 0f3A83126F;"
        " cvt.rni.s32.f32 %t, %f; add.s32 %t, %t, -3; min.s32 %t, %t, 127; max.s32 %d, %t, -128;",
        lambda a, b, c: np.clip(np.rint((a * b + c) * 0.001) - 3, -128, 127), 400, "s32",
    ),
    "requantised integers by way of f16": Benign(
        "mad.lo.s32 %t, %a, %b, %c; cvt.rn.f16.s32 %h, %t; cvt.f32.f16 %f, %h; mul.f32 %f, %f, 0f3A83126F;"
        " cvt.rni.s32.f32 %t, %f; add.s32 %t, %t, -3; min.s32 %t, %t, 127; max.s32 %d, %t, -128;",
        lambda a, b, c: np.clip(np.rint((a * b + c) * 0.001) - 3, -128, 127), 400, "s32",
    ),
    "difference that wraps, its magnitude": Benign(
        "sub.s32 %t, %a, %b; abs.s32 %d, %t;", lambda a, b, c: np.abs(a - b), 1 << 31, "s32",
    ),
    "difference of unsigned numbers, at least 0": Benign(
        "sub.s32 %t, %a, %b; max.s32 %d, %t, 0;", lambda a, b, c: np.maximum(a - b, 0), 1 << 20, "s32",
    ),
}  # fmt: skip


def _arrays(case: Benign) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    if case.kind == "s32":
        most = int(case.scale)
        return [random.integers(-most, most, 64, dtype=np.int64).astype(np.int32) for _ in range(3)]
    a, b, c = (random.standard_normal(64) * abs(case.scale) for _ in range(3))
    if case.scale < 0:  # sums near 0, whose signs rounding turns
        b = -a * (1 + c * abs(case.scale) * 2**-14)
    elif case is BENIGN["quantised with ties"]:
        a = np.rint(a * 16) / 16
    return [each.astype(np.float32) for each in (a, b, c)]


def _found(case: Benign, function: Function | None = None) -> Equivalence:
    """Compare the kernel of a case with its function, or with another."""
    arrays = _arrays(case)
    kernel = kernel_of(case.statements, case.kind, "sm_90a")
    return compared(kernel, [*arrays, np.zeros_like(arrays[0])], function or case.function)


@pytest.mark.parametrize("name", BENIGN)
def test_values_make_no_other_formulas(name: str) -> None:
    found = _found(BENIGN[name])
    assert found.answer != "other", str(found)
    assert not found.uninterpreted


PARTED = {
    "scaled clamp behind an overflow of f16": "cvt.rn.f16.f32 makes ",
    "requantised integers by way of f16": "cvt.rn.f16.s32 makes ",
    "saturating conversion that the function leaves out": "cvt.rni.sat.s8.f32 makes ",
    "e4m3 that saturates": "cvt.rn.satfinite.e4m3x2.f32 makes -448 where the formula has ",
    "product that wraps, clamped": "mul.lo.s32 makes ",
    "difference that wraps, its magnitude": "sub.s32 makes ",
}


@pytest.mark.parametrize("name", PARTED)
def test_the_statement_out_of_range_is_named(name: str) -> None:
    found = _found(BENIGN[name])
    assert found.answer == "equal"
    assert found.outputs[0].turned.any()
    assert str(found.parted[0]).startswith(PARTED[name]), found.parted
    assert "by range" in str(found)
    assert f"values part at {found.parted[0].location}" in str(found)


def test_rounding_that_turns_a_sign_is_said() -> None:
    found = _found(BENIGN["branch on a rounded sum"])
    assert (found.answer, found.parted) == ("equal", ())
    assert "the kernel's values decide 34 otherwise than the reference's, by rounding" in str(found)
    assert found.document()["outputs"][0]["turned"] == found.outputs[0].turned.sum() > 0


WRONG: list[tuple[str, Function]] = [
    ("scaled clamp behind an overflow of f16", lambda a, b, c: np.clip(np.rint(a * 2.0**-11), -100, 100)),
    ("ReLU of a sum that f16 rounds", lambda a, b, c: np.minimum(a + b, 0)),
    ("branch on a rounded sum", lambda a, b, c: np.where(a + b > 0, (a + b) / 2, a + b)),
    ("saturating conversion for a clamp", lambda a, b, c: np.clip(np.rint(a), -127, 100)),
    ("e4m3 that saturates", lambda a, b, c: b),
    ("requantised integers", lambda a, b, c: np.clip(np.rint((a * b + c) * 0.001) - 2, -128, 127)),
]


@pytest.mark.parametrize(("name", "function"), WRONG, ids=[name for name, _ in WRONG])
def test_other_decisions_stay_other_formulas(name: str, function: Function) -> None:
    assert _found(BENIGN[name], function).answer == "other"


def test_a_value_out_of_range_is_the_cause() -> None:
    case = BENIGN["requantised integers by way of f16"]
    arrays = _arrays(case)
    launch = repeatable(kernel_of(case.statements, case.kind, "sm_90a"), [*arrays, np.zeros(64, np.int32)])
    found = verdict_of(launch, {}, 0.0, lambda a, b, c, d: {3: case.function(a, b, c)})
    assert (found.kind, found.cause.partition(" ")[0]) == ("range", "cvt.rn.f16.s32"), str(found)
