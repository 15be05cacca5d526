"""``warpsim launch --why``: the verdict first, exit codes, options that do not go with it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli

KERNELS = Path(__file__).parents[3] / "traces" / "kernels"
ARGUMENTS = ("--entry", "dense_f16", "--grid", "2,2", "--block", "64", "--arg", "random:f16:64x64:1", "--arg")
ARGUMENTS += ("random:f16:64x64:2", "--arg", "zeros:f32:64x64", "--arg", "u32:64", "--arg", "u32:64")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("why")
    run(KERNELS / "dense_tiles.ptx", "--save", f"2={found / 'right.npy'}")
    lines = (KERNELS / "dense_tiles.ptx").read_text().split("\n")
    lines[225] = lines[225].replace("%r84, %r85", "%r82, %r83")
    (found / "wrong.ptx").write_text("\n".join(lines))
    np.save(found / "near.npy", np.load(found / "right.npy") * np.float32(1.001))
    return found


def run(file: Path, *arguments: str) -> Any:
    return CliRunner().invoke(cli, ["launch", str(file), *ARGUMENTS, *arguments], standalone_mode=False)


def test_the_verdict(folder: Path) -> None:
    done = run(folder / "wrong.ptx", "--expect", f"2={folder / 'right.npy'}", "--why")
    assert done.return_value == 1
    assert done.output.startswith(
        f"verdict: {folder / 'wrong.ptx'}:226:2: operand a of the matrix instruction"
    )


def test_json(folder: Path) -> None:
    done = run(folder / "wrong.ptx", "--expect", f"2={folder / 'right.npy'}", "--why", "--json")
    document = json.loads(done.output)
    assert document["causes"][0]["kind"] == "repeated"
    assert document["outputs"][0]["different"] == 1024


def test_a_right_launch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each execution moves the progress bar."""
    watched = list[tuple[int, int]]()
    show = contextmanager(lambda description: iter([lambda *at: watched.append(at)]))
    monkeypatch.setattr("warpsim.show.cli.launch.watching", show)
    done = run(KERNELS / "dense_tiles.ptx", "--expect", f"2={folder / 'right.npy'}", "--why")
    assert (done.return_value, done.output) == (0, "verdict: nothing is wrong; 1 output is as expected\n")
    assert watched.count((4, 4)) == 3  # its own schedule and two more


@pytest.mark.parametrize(("tolerance", "code"), [("1e-2", 0), ("1e-5", 1)])
def test_a_tolerance_without_why(folder: Path, tolerance: str, code: int) -> None:
    done = run(KERNELS / "dense_tiles.ptx", "--expect", f"2={folder / 'near.npy'}", "--tolerance", tolerance)
    assert done.return_value == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--why", "--save", "2=out.npy"), "--why writes nothing"),
        (("--why", "--expect", "3=right.npy"), "no array argument"),
        (("--tolerance", "1"), "not in the range"),
    ],
)
def test_bad_usage(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    given = [text.replace("right.npy", str(folder / "right.npy")) for text in arguments]
    assert message in str(run(KERNELS / "dense_tiles.ptx", *given).exception)
    assert not Path("out.npy").exists()
