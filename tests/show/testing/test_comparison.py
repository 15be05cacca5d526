"""What tests compare: bits, ulps and values of every dtype, against plain Python; and what they say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsim import OperandError
from warpsim.show.testing import KernelFailure
from warpsim.show.testing.comparison import lines_of, wrong_bits, wrong_ulps, wrong_values
from warpsim.show.testing.simulator import Settings, Simulator

KERNELS = Path(__file__).parents[3] / "traces" / "kernels"
FLOATS = (
    *(np.float16, np.float32, np.float64, ml_dtypes.bfloat16),
    *(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu),
    *(ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn, ml_dtypes.float4_e2m1fn),
)
SMALL = [dtype for dtype in FLOATS if np.dtype(dtype).itemsize == 1]


def compare() -> Simulator:
    return Simulator(Settings())


@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: np.dtype(dtype).name)
def test_ulps_of_small_floats_count_values(dtype: Any) -> None:
    """All pairs of a small dtype: their distance is that of their places in the sorted list of values."""
    every = np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8).view(dtype)
    finite = every[np.isfinite(every.astype(np.float64))]
    values = sorted(set(finite.astype(np.float64).tolist()))
    place = {value: at for at, value in enumerate(values)}
    x, y = (side.reshape(-1) for side in np.meshgrid(finite, finite))
    apart = [
        abs(place[first] - place[second])
        for first, second in zip(x.astype(np.float64).tolist(), y.astype(np.float64).tolist(), strict=True)
    ]
    for most in (0, 1, 5):
        assert (wrong_ulps(x, y, most) == (np.array(apart) > most)).all()


@pytest.mark.parametrize("dtype", FLOATS[:4], ids=lambda dtype: np.dtype(dtype).name)
def test_ulps_of_wide_floats(dtype: Any) -> None:
    smallest = np.array([1], f"i{np.dtype(dtype).itemsize}").view(dtype)
    one, above = np.ones(1, dtype), np.nextafter(np.ones(1, dtype), np.array([2], dtype))
    assert not wrong_ulps(one, above, 1).any()
    assert wrong_ulps(one, above, 0).all()
    assert not wrong_ulps(smallest, -smallest, 2).any()
    assert wrong_ulps(smallest, -smallest, 1).all()
    assert not wrong_ulps(np.zeros(1, dtype), -np.zeros(1, dtype), 0).any()
    infinite, none = np.array([math.inf], dtype), np.array([math.nan], dtype)
    largest = np.array([ml_dtypes.finfo(dtype).max], dtype)
    assert wrong_ulps(largest, infinite, 100).all()
    assert wrong_ulps(infinite, none, 100).all()
    assert wrong_ulps(one, none, 1 << 62).all()
    assert not wrong_ulps(none, none, 0).any()
    assert not wrong_ulps(infinite, infinite, 0).any()
    assert wrong_ulps(largest, -largest, 1).all()


def test_bits_tell_zeros_and_nans_apart() -> None:
    words = np.array([0, 0x80000000, 0x7FC00000, 0x7FC00001], np.uint32)
    assert wrong_bits(words.view(np.float32), words[::-1].view(np.float32)).all()
    assert not wrong_bits(words.view(np.float32), words.view(np.float32)).any()


def test_values_within_a_tolerance() -> None:
    x = np.array([1.0, 100.0, math.nan, math.inf, 0.0], np.float32)
    y = np.array([1.01, 101.0, math.nan, math.inf, 0.001], np.float32)
    assert wrong_values(x, y, 0.02, 0.0).tolist() == [False, False, False, False, True]
    assert not wrong_values(x, y, 0.02, 0.01).any()
    assert wrong_values(x.astype(ml_dtypes.bfloat16), y, 0.0, 0.0).tolist() == [
        True,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.assert_equal(np.zeros(2), np.zeros(3)), r"shape \(2,\), but expected has \(3,\)"),
        (
            lambda one: one.assert_equal(np.zeros(2), np.zeros(2, np.float32)),
            "bits are compared in one dtype",
        ),
        (lambda one: one.assert_ulp(np.zeros(2, int), np.zeros(2, int), 1), "int64 has no ulps"),
        (lambda one: one.assert_ulp(np.zeros(2), np.zeros(2), -1), "most=-1"),
        (lambda one: one.assert_ulp(np.zeros(2), np.zeros(2), 0.5), "most=0.5"),
        (lambda one: one.assert_close(np.zeros(2), np.zeros(2), math.nan), "rtol=nan"),
        (lambda one: one.assert_equal([[1], [2, 3]], np.zeros(2)), "list is not an array"),
        (lambda one: one.launch(None, 1, 1, fail_on="all"), "fail_on='all': expected one of note"),
        (lambda one: one.launch(None, 1, 1, schedules=-1), "schedules=-1"),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(OperandError, match=message):
        call(compare())


def test_failures_say_where() -> None:
    x = np.zeros((64, 64), np.float32)
    y = x.copy()
    y[8:16] = np.float32(3e-45)
    with pytest.raises(KernelFailure) as failed:
        compare().assert_equal(x, y)
    assert str(failed.value).splitlines() == [
        "the output: 512 of 4,096 elements differ; rows 8 to 15",
        *(f"  [8, {at}]: 0.0 (0x00000000), expected {y[8, 0]} (0x00000002), 2 ulp" for at in range(4)),
        "  and 508 more",
    ]
    y[20, 3] = math.nan  # no longer a product of rows and columns: a map shows it
    lines = list(lines_of("d", x, y, wrong_bits(x, y), ""))
    assert lines[1] == "  each sign is 8 x 2 elements: . right, + some wrong, # all wrong"
    assert [line.strip() for line in lines[2:6]] == ["." * 32, "#" * 32, ".+" + "." * 30, "." * 32]
    with pytest.raises(KernelFailure, match="the output: 1 of 1 elements differ; all of it"):
        compare().assert_equal(np.float32(1), np.float32(2))
    compare().assert_equal([1, 2], [1, 2])


def test_a_wrong_output_of_a_launch_names_its_cause() -> None:
    """The kernel sums over half of k: tiles of A and B are never read."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    d, expected = np.zeros((64, 64), np.float32), a.astype(np.float32) @ b.astype(np.float32)
    found = Simulator(Settings(folder=KERNELS))
    kernel = found.load("dense_tiles.ptx")["dense_f16"]
    found.launch(kernel, (2, 2), 64, [a, b, d, 64, 64])
    with pytest.raises(KernelFailure, match=r"argument 2, \w+: [\d,]+ of 4,096 elements differ") as failed:
        found.assert_equal(d, expected)
    assert "verdict: " in str(failed.value)
    assert "  evidence: proven" in str(failed.value)
    assert "  fix: " in str(failed.value)
    quiet = Simulator(Settings(explain=False))
    quiet.reports = found.reports
    with pytest.raises(KernelFailure) as failed:
        quiet.assert_equal(d, expected)
    assert "verdict" not in str(failed.value)
    found.launch(kernel, (2, 2), 64, [a, b, np.zeros_like(d), 64, 128])
    with pytest.raises(KernelFailure) as failed:  # an earlier launch: its inputs may have changed
        found.assert_equal(d, expected)
    assert "argument 2" in str(failed.value)
    assert "verdict" not in str(failed.value)
