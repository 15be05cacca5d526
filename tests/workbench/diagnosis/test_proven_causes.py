"""Verdicts by algebra with expected values alone: the formula is found, and the statement that leaves it."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample, usual
from tools.mistakes.launches.kernels import KERNELS, compiled
from warpsim import Verdict
from warpsim.programs.launch.launching import load_text

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
SOURCE = (Path(__file__).parents[3] / "traces" / "kernels" / "dense_tiles.ptx").read_text()
ROW = "or.b32  	%r128, %r125, %r127;"
COLUMN = "and.b32  	%r130, %r129, 6;"
TILE = "shl.b32 	%r131, %r4, 5;"
STORE = "st.global.f32 	[%rd59], %f144;"


@cache
def matrices() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    left, right = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    return left, right


def product() -> np.ndarray:
    A, B = matrices()
    return A.astype(np.float64) @ B.astype(np.float64)


def found(expected: np.ndarray, *edits: tuple[str, str], sizes: tuple[Any, ...] = (64, 64)) -> Verdict:
    text = SOURCE
    for before, after in edits:
        assert before in text
        text = text.replace(before, after, 1)
    args = [*matrices(), np.zeros((64, 64), np.float32), *sizes]
    return warpsim.why(load_text(text, "k.ptx")["dense_f16"], (2, 2), 64, args, {2: expected}, 1e-3)


def mistake(name: str, number: int, *defines: str) -> Verdict:
    prepared = KERNELS[name]()
    kernel = load_text(compiled(name, number, defines), f"{name}.ptx")[name]
    rest = prepared.arguments, prepared.expected, prepared.tolerance
    return warpsim.why(kernel, prepared.grid, prepared.block, *rest)


# --- where elements are stored ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "moved"),
    sample(
        [
            ((ROW, f"{ROW} xor.b32 %r128, %r128, 3;"), "index 0: xor 3"),
            ((COLUMN, f"{COLUMN} xor.b32 %r130, %r130, 4;"), "index 1: xor 4"),
            ((TILE, f"{TILE} xor.b32 %r131, %r131, 32;"), "index 1: xor 32"),
            ((STORE, STORE.replace("%f144", "%f143")), "index 1: +1"),
        ],
        2,
    ),
)
def test_elements_that_are_stored_elsewhere(edit: tuple[str, str], moved: str) -> None:
    verdict = found(product(), edit)
    assert (verdict.kind, verdict.operand) == ("moved", "")
    assert moved in verdict.cause
    assert verdict.location is not None
    assert verdict.location.quoted().startswith("st.global.f32")
    assert verdict.causes[0].evidence.startswith("proven")


@needs_nvcc
def test_rows_of_a_in_an_order_that_d_has_not() -> None:
    """Any order of rows is right in itself: D shows that it is not stored so."""
    verdict = mistake("loop_f16", 9)
    assert verdict.kind == "moved"
    assert any(place.quoted().startswith("ldmatrix") for _, place in verdict.causes[0].also)


# --- factors, addends, activations ---------------------------------------------------------------------


def halved() -> str:
    text = SOURCE[: SOURCE.index("dense_bf16")]
    text = re.sub(r"(st\.global\.f32[^,;]*, (%f\d+);)", r"mul.f32 \2, \2, 0f3F000000; \1", text)
    return text[: text.rindex("}") + 1]


def test_a_factor_that_is_too_much() -> None:
    verdict = found(product(), (SOURCE, halved()))
    proven = re.match(r"proven for ([\d,]+) of 4,096 wrong elements", verdict.causes[0].evidence)
    assert proven is not None
    assert int(proven[1].replace(",", "")) > usual(50, 500)
    assert verdict.kind in ("extra", "missing", "operand")
    assert "0.5" in verdict.cause
    assert verdict.location is not None
    assert verdict.location.quoted().startswith("mul.f32")


def test_the_expected_values_have_a_factor_and_an_addend() -> None:
    _, B = matrices()
    verdict = found(64 * product())
    assert verdict.formula == "product = dense_f16_param_0 @ dense_f16_param_1; 64 * product"
    assert verdict.kind == "missing"
    assert "64" in verdict.cause
    added = found(product() + B.astype(np.float64))
    assert added.formula.endswith("product + dense_f16_param_1")
    assert (added.kind, added.location is not None) == ("missing", True)
    place = r"\[(\d+, \d+)\]"
    assert re.search(rf"product{place}: dense_f16_param_1\[\1\] is not added", added.cause)


def test_what_no_formula_explains_is_not_claimed() -> None:
    expected = product() + matrices()[1]
    expected[5, 7] += 1
    verdict = found(expected)
    assert (verdict.formula, verdict.causes) == ("", ())


@needs_nvcc
@pytest.mark.parametrize(
    ("number", "kind", "said"),
    sample(
        [
            (13, "missing", "is not multiplied by staged_param_6"),
            (14, "operand", "0 stands where the reference has staged_param_2["),
            (15, "operand", "(index 1: -1)"),
        ],
        2,
    ),
)
def test_epilogues(number: int, kind: str, said: str) -> None:
    verdict = mistake("staged", number)
    assert verdict.kind == kind
    assert said in verdict.cause
    assert verdict.source is not None
    assert verdict.source.line == 62
    assert verdict.formula.endswith("staged_param_6 * product + staged_param_2")


# --- computed operands -----------------------------------------------------------------------------------


@needs_nvcc
@pytest.mark.parametrize(
    ("name", "number", "defines", "kind", "said"),
    sample(
        [
            ("attention", 7, (), "rescaling", "an operand is not rescaled"),
            ("attention_turned", 1, (), "operand", "index 1: xor 8"),
            ("attention_turned", 2, ("-DHALVES=1",), "operand", "index 1: xor 1"),
            ("attention_turned", 3, ("-DHALVES=1",), "missing", "is not multiplied by 0.125"),
        ],
        3,
    ),
)
def test_attention(name: str, number: int, defines: tuple[str, ...], kind: str, said: str) -> None:
    verdict = mistake(name, number, *defines)
    assert "softmax" in verdict.formula
    assert verdict.kind == kind
    assert said in verdict.cause
    assert verdict.source is not None
    assert verdict.causes[0].evidence.startswith("proven")


@needs_nvcc
def test_attention_that_is_right() -> None:
    assert mistake("attention_turned", 0, "-DHALVES=1").as_expected


# --- types -----------------------------------------------------------------------------------------------


@needs_nvcc
@pytest.mark.parametrize(
    ("name", "number", "holds", "read"),
    [("loop_s8", 5, "int8", "u8"), ("loop_bf16", 1, "f16", "bf16"), ("scaled", 5, "e4m3", "e5m2")],
)
def test_an_array_that_is_read_as_another_type(name: str, number: int, holds: str, read: str) -> None:
    verdict = mistake(name, number)
    assert (verdict.kind, verdict.operand) == ("type", "a")
    assert verdict.cause.endswith(f"{name}_param_0 holds {holds}, but is read as {read}")
    assert verdict.location is not None
