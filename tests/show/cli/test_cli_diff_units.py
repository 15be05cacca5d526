"""``warpsim diff SET.npz d=LOG``: the results of a unit under test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli
from warpsim.workbench.generation.generate import generate_vectors
from warpsim.workbench.vectors.formats import write_vectors

FORM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("unit")
    vectors = generate_vectors(warpsim.decode(FORM, target="sm_80"), kind="random", count=4)
    write_vectors(found / "set.npz", vectors)
    np.save(found / "right.npy", vectors.d)
    np.save(found / "inverted.npy", vectors.d ^ np.uint32(1 << 31))
    np.save(found / "mixed.npy", vectors.d[:, :, [1, 0, 3, 2]])
    return found


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["diff", *arguments], standalone_mode=False)


def test_right_results(folder: Path) -> None:
    done = run(str(folder / "set.npz"), f"d={folder / 'right.npy'}")
    assert done.return_value == 0
    assert "all 512 known outputs are as expected, bit for bit" in done.output


def test_the_fault_is_named(folder: Path) -> None:
    done = run(str(folder / "set.npz"), f"d={folder / 'inverted.npy'}")
    assert done.return_value == 1
    assert "explained, every known output, wrong and right: bit 31 of D is inverted" in done.output


def test_misplaced_results_are_the_search_of_dumps(folder: Path) -> None:
    done = run(str(folder / "set.npz"), f"d={folder / 'mixed.npy'}", "--json")
    assert done.return_value == 1
    unit, misplaced = json.loads(done.output)["subjects"]
    assert unit["explanations"] == []
    assert unit["wrong_outputs"] > 400
    assert misplaced["matches"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["D=right.npy"], 3, "of a vector set give the results of a unit: d=FILE"),
        (["d=absent.log"], 3, "absent.log"),
    ],
)
def test_bad_input(folder: Path, arguments: list[str], code: int, message: str) -> None:
    given = [text.replace("=", f"={folder}/") if "=" in text else text for text in arguments]
    done = run(str(folder / "set.npz"), *given)
    assert done.return_value == code
    assert message in done.output + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["d=right.npy", "d=mixed.npy"], "the results of one unit"),
        (["d=right.npy", "--target", "sm_90a"], "--target go with a mnemonic"),
    ],
)
def test_bad_usage(folder: Path, arguments: list[str], message: str) -> None:
    given = [text.replace("=", f"={folder}/") for text in arguments]
    assert message in str(run(str(folder / "set.npz"), *given).exception)
