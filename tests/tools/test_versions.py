"""The command that tries the lowest and newest versions: what it reads, asks uv and tells."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tools import versions
from tools.versions import Outcome

OK = Outcome(python="3.11.7", which="lowest", versions="numpy 2.1.0", tests="7 passed", digests="9 digests")


def test_what_pyproject_says() -> None:
    details = versions.project()
    assert versions.oldest_minor(details) == 11
    names = ["numpy", "ml_dtypes", "numba", "llvmlite", "click", "cxxfilt", "rich", "jinja2"]
    assert versions.direct(details) == names
    assert set(versions.EXTRAS) <= details["optional-dependencies"].keys()


def test_pythons_that_are_claimed_are_those_that_tests_ran_on() -> None:
    """Debian's newest were among the classifiers, and on no machine."""
    page = (versions.ROOT / "tools" / "digests" / "README.md").read_text()
    stated = re.search(r"Tests run on Python ([\d., and]+), which `pyproject.toml` claims", page)
    assert stated is not None
    names = (line.rpartition(":: ") for line in versions.project()["classifiers"])
    claimed = [minor for kind, _, minor in names if kind.startswith("Programming Language") and "." in minor]
    assert re.findall(r"3\.\d+", stated[1]) == claimed


def test_every_dependency_has_a_lowest_version() -> None:
    details = versions.project()
    extras = details["optional-dependencies"]
    wanted = [*details["dependencies"], *(one for name in versions.EXTRAS for one in extras[name])]
    assert all(">=" in text for text in wanted)


def test_every_test_that_it_runs_is_there() -> None:
    assert all((versions.ROOT / one).exists() for one in versions.SMOKE)


def test_the_last_python_is_the_last_with_a_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "compiled_for", lambda python: python < "3.14")
    assert list(versions.supported()) == ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize(("failed", "missing", "code"), [(0, 0, 0), (1, 0, 1), (1, 1, 1), (0, 1, 2)])
def test_what_is_told(failed: bool, missing: bool, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [OK, Outcome(python="3.15.2", which="newest", tests="1 failed", failed=True)][: 1 + failed]
    assert versions.told(outcomes, ["3.14"] * missing) == code
    lines = capsys.readouterr().out.splitlines()
    assert [line[:6] for line in lines] == ["ok    ", *["FAILED"] * failed, *["Python"] * missing]
    assert all(part in lines[0] for part in ("3.11.7", "lowest", "numpy 2.1.0", "7 passed", "9 digests"))


def test_the_output_of_a_process_is_shown_and_its_last_line_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    said = versions.said(tmp_path, "-c", "print('one'); print('two'); raise SystemExit(3)")
    assert said == (3, "two")
    assert capsys.readouterr().out == "one\ntwo\n"


def test_what_cannot_be_installed_has_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(versions, "uv", lambda: ["false"])
    outcome = versions.tried(tmp_path, sys.executable, "lowest", [])
    assert (outcome.failed, outcome.tests) == (True, "cannot be installed")


def test_nothing_tried_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Without uv no Python is known."""
    assert versions.told([], []) == 2
    assert "nothing was tried" in capsys.readouterr().out
