"""``warpsim demo``: a verdict and a page from the package alone, in a checkout and in a wheel."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.helpers.families import WHOLE
from warpsim.show.cli import main

ROOT = Path(__file__).parents[3]
WRITTEN = {"a.npy", "b.npy", "d.npy", "launch.html", "launch.npz", "launch.txt"}
KERNEL = {"wrong_swizzle.cu", "wrong_swizzle.ptx"}
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
INCLUDED = BUILD["targets"]["wheel"]["force-include"]


def exit_code(*arguments: object) -> object:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    return left.value.code


def test_a_verdict_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, before = tmp_path / "new" / "folder", Path.cwd()
    assert exit_code("demo", "-o", folder) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"$ cd {folder}\n$ warpsim launch wrong_swizzle.ptx ")
    assert "verdict: wrong_swizzle.cu:18 (wrong_swizzle.ptx:310:2)" in shown
    assert "const uint4" in shown
    assert {path.name for path in folder.iterdir()} == WRITTEN | KERNEL
    assert "<html" in (folder / "launch.html").read_text()
    assert "4 matrix instructions recorded" in (folder / "launch.txt").read_text()
    assert Path.cwd() == before


@pytest.mark.skipif(not WHOLE, reason="as long as the other; WARPSIM_TEST_ALL=1")
def test_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("demo", "--json", "-o", tmp_path / "made") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["page"] == str(tmp_path / "made" / "launch.html")
    assert Path(document["kernel"]).is_file()
    assert document["causes"][0]["kind"] == "swizzle"


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.npy").write_text("mine")
    assert exit_code("demo", "-o", tmp_path) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert exit_code("demo", "-o", tmp_path / "file" / "folder") == 3
    assert "Not a directory" in capsys.readouterr().err


def test_a_wheel_has_the_kernel(tmp_path: Path) -> None:
    """As hatch builds it, by the table of pyproject.toml: an archive without traces, run as it is."""
    wheel = tmp_path / "warpsim.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in (ROOT / "warpsim").rglob("*.py"):
            archive.write(path, path.relative_to(ROOT))
        for source, place in INCLUDED.items():
            archive.write(ROOT / source, place)
    code = "import warpsim.show.cli.demo as d, pathlib; print(d._filled(pathlib.Path('made')))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(wheel)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(tmp_path / "made"), done.stderr
    assert {path.name for path in (tmp_path / "made").iterdir()} == KERNEL | {"a.npy", "b.npy", "d.npy"}
