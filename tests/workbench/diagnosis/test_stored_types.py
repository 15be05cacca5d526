"""D in the type in which a kernel stores it, ragged products, and two mistakes in one loop."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import warpsim
from tests.helpers.families import sample
from tools.mistakes.case import F16
from tools.mistakes.dumps import stored_types
from tools.mistakes.judging import Case, answered
from warpsim.isa.formats import FORMATS
from warpsim.show.cli import cli
from warpsim.workbench.diagnosis import diagnose_product
from warpsim.workbench.diagnosis.dumps.dump_comparison import TYPES, Stored, stored_as

FORM = warpsim.decode(F16[0], target=F16[1])
F32 = FORMATS["f32"]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("mistake", sample(stored_types.LIST, 2), ids=lambda each: each.name)
def test_results_of_other_people_are_named(mistake: Case) -> None:
    found, _, text = answered(mistake)
    assert found == "named", text


def test_a_right_result_has_no_explanations() -> None:
    _, _, text = answered(stored_types.LIST[0])
    assert "matches" not in text


def test_relu_alone_is_no_mistake_of_the_loop() -> None:
    (mistake,) = [each for each in stored_types.LIST if each.name == "ReLU, stored as f16"]
    assert "matches" not in answered(mistake)[2]


def test_rounding_is_that_of_python() -> None:
    """struct rounds to f16 by itself, to nearest even."""
    values = RNG.standard_normal(500).astype(np.float32) * np.float32(1e3)
    codes = values.view(np.uint32)
    wanted = [struct.unpack("<e", struct.pack("<e", float(value)))[0] for value in values]
    rounded = Stored(FORMATS["f16"]).rounded(codes, F32)
    assert rounded.view(np.float32).tolist() == wanted
    assert (Stored(FORMATS["f16"]).settled(codes, rounded, F32) == rounded).all()


@pytest.mark.parametrize("name", TYPES)
def test_a_number_is_within_the_spread_of_what_was_rounded(name: str) -> None:
    stored = Stored(FORMATS[name])
    values = RNG.standard_normal(500).astype(np.float32)
    rounded = stored.rounded(values.view(np.uint32), F32).view(np.float32).astype(np.float64)
    assert (np.abs(rounded - values) <= stored.spread(rounded)).all()


@pytest.mark.parametrize("name", TYPES)
def test_the_type_is_known_by_the_numbers(name: str) -> None:
    values = RNG.standard_normal(200).astype(np.float32)
    narrow = values.astype(FORMATS[name].dtype).astype(np.float32)
    found = stored_as(narrow.view(np.uint32), values.view(np.uint32), F32)
    assert found is not None
    assert found.format.name == name


def test_no_type_is_guessed_of_numbers_that_need_none() -> None:
    small = np.arange(200, dtype=np.float32).view(np.uint32)
    assert stored_as(small, small, F32) is None
    assert (
        stored_as(np.zeros(200, np.uint32), RNG.standard_normal(200).astype(np.float32).view(np.uint32), F32)
        is None
    )


def product(m: int = 28, n: int = 12, k: int = 48) -> tuple[Any, ...]:
    A, B = RNG.integers(-8, 9, (m, k)).astype(np.float16), RNG.integers(-8, 9, (k, n)).astype(np.float16)
    return A, B, RNG.integers(-64, 65, (m, n)).astype(np.float32)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda A, B, C, P: P([0, 1, 2]) + C, ""),
        (lambda A, B, C, P: P([1, 2]) + 2 * C, "step 0 left out (missing); C twice"),
        (lambda A, B, C, P: P([0, 1, 1, 2]), "step 1 twice; C not added (forgotten)"),
    ],
)
def test_pairs_are_exact_in_ragged_tiles(change: Any, name: str) -> None:
    A, B, C = product()

    def partial(steps: list[int]) -> Any:
        return sum(
            A[:, 16 * s : 16 * s + 16].astype(float) @ B[16 * s : 16 * s + 16].astype(float) for s in steps
        )

    D = change(A, B, C, partial).astype(np.float32)
    found = diagnose_product(FORM, A, B, D, C)
    names = [each.name for each in found.matches]
    assert name in names if name else not names


def command(folder: Path, D: Any, *more: str) -> Any:
    A, B, C = product()
    for letter, array in zip("ABCD", (A, B, C, D), strict=True):
        np.save(folder / f"{letter}.npy", array)
    words = ["diff", F16[0], "--target", F16[1], *(f"{x}={folder}/{x}.npy" for x in "ABCD")]
    return CliRunner().invoke(cli, [*words, *more], standalone_mode=False)


def test_the_type_of_bytes_is_asked_for(tmp_path: Path) -> None:
    result = command(tmp_path, np.ones((28, 12), ml_dtypes.float8_e4m3fn))
    assert result.return_value == 3
    assert "elements of 1 bytes: state their type by --type, e4m3 or e5m2" in result.stderr


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_bytes_of_a_type_that_is_stated(tmp_path: Path, dtype: Any) -> None:
    name = "e4m3" if dtype is ml_dtypes.float8_e4m3fn else "e5m2"
    result = command(tmp_path, np.ones((28, 12), dtype), "--type", name)
    assert f"D is known to {name}, in which it was stored" in result.output
