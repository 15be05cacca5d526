"""Operands that are computed from D: attention with planted mistakes, and what the experiments tell apart."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.launch_mistakes.kernels import KERNELS, compiled
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.verdicts.computed.attention_models import attention, running_attention
from warpsim.workbench.diagnosis.verdicts.computed.row_statistics import _matching
from warpsim.workbench.diagnosis.verdicts.computed.traced_elements import Codes, packed
from warpsim.workbench.diagnosis.verdicts.statement_chains import split_registers

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


def verdict(mistake: int, *defines: str, name: str = "attention") -> Any:
    prepared = KERNELS[name]()
    kernel = load_text(compiled(name, mistake, defines), f"{name}.ptx")[name]
    rest = prepared.arguments, prepared.expected, prepared.tolerance
    return warpsim.why(kernel, prepared.grid, prepared.block, *rest)


@needs_nvcc
def test_registers_of_p_in_the_order_of_d() -> None:
    found = verdict(1)
    assert "is computed from S, D of the products of attention_param_0 and attention_param_1" in found.cause
    assert "registers a1 and a2 hold each other's elements of S" in found.cause
    assert "with the operand put right, every output is as expected" in found.causes[0].evidence
    assert found.operand == "a"
    assert found.source is not None
    assert "ex2" in "".join(what for what, _ in found.causes[0].also)


@needs_nvcc
def test_sums_rescaled_by_the_factor_of_another_row() -> None:
    found = verdict(6)
    assert found.cause.startswith(
        "the sums are rescaled by the factor of another row: for rows of the tile, the halves are exchanged"
    )
    assert found.source is not None
    assert found.source.line == 49
    assert found.causes[0].evidence.endswith(
        "attention computed with it is the output, without it what is expected"
    )


@needs_nvcc
@pytest.mark.parametrize("defines", [(), ("-DHALVES=1",)], ids=["f32", "f16"])
def test_p_as_operand_b_of_s_in_f32_and_f16(defines: tuple[str, ...]) -> None:
    found = verdict(1, *defines, name="attention_turned")
    assert found.operand == "b"
    assert "k halves of S are exchanged: k 0..7 of the tile holds 8..15" in found.cause
    assert found.causes[0].evidence.endswith(
        "what operand b follows; with the operand put right, every output is as expected"
    )


@needs_nvcc
def test_the_scale_of_p_in_operand_b() -> None:
    found = verdict(3, "-DHALVES=1", name="attention_turned")
    assert found.cause.startswith("the scale of softmax is missing")
    assert "attention_turned_param_0" in found.cause


@needs_nvcc
def test_p_as_operand_b_is_right() -> None:
    assert verdict(0, "-DHALVES=1", name="attention_turned").as_expected


def test_registers_of_inline_assembly_have_names_without_a_sign() -> None:
    assert split_registers("{low,high}, %r4") == ({"low", "high"}, {"%r4"})
    assert split_registers("%f1, low") == ({"%f1"}, {"low"})
    assert split_registers("%r1, %tid.x, 0f3F800000, -12") == ({"%r1"}, {"%tid"})


def test_a_running_maximum_gives_attention_and_its_mistakes_do_not() -> None:
    random = np.random.default_rng(5)
    matrices = tuple(random.standard_normal((rows, 16)) for rows in (32, 48, 48))
    own, columns = np.arange(16), np.ones((1, 8), np.intp)
    right = attention(*matrices, 0.5)
    factors = own[:, None] * columns
    assert np.allclose(running_attention(matrices, 0.5, 16, own, factors), right, rtol=1e-12)
    assert np.allclose(running_attention(matrices, 0.5, 48, own, -2 * factors**0), right, rtol=1e-12)
    others = [(own ^ 8, factors), (own, factors ^ 8), (own, np.full_like(factors, -2))]
    found = [running_attention(matrices, 0.5, 16, maxima, by) for maxima, by in others]
    assert all((np.abs(wrong - right) > 1e-3).mean() > 0.25 for wrong in found)
    assert not np.allclose(found[1], found[2])


def test_codes_differ_and_rows_are_balanced() -> None:
    codes = Codes({3: (16, 8), 7: (16, 8), 9: (16, 8)}, warps=4)
    seen = [
        codes.code(pc, (0, 0, 0, warp, time)) for pc in (3, 7, 9) for warp in range(4) for time in range(4)
    ]
    assert len(np.unique(np.stack(seen))) == 3 * 4 * 4 * 128
    for run in range(codes.runs):
        assert (codes.high(run, 7, (0, 0, 0, 2, 1)).sum(axis=1) == 4).all()


def test_bits_of_runs_are_packed() -> None:
    bits = np.array([[[1, 0]], [[1, 1]], [[0, 1]]], bool)
    assert packed(bits).tolist() == [[3, 6]]


def test_rows_are_recognised_by_their_exponents() -> None:
    exponents = np.random.default_rng(0).random((4, 8))
    order = np.array([3, 1, 7, 0])
    series = np.concatenate(
        [exponents[:, order] + 0.5, np.zeros((4, 1)), np.random.default_rng(1).random((4, 1))], 1
    )
    assert _matching(series, exponents, series).tolist() == [3, 1, 7, 0, -2, -1]
