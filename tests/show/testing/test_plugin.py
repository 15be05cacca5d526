"""The pytest plugin: a file of tests run by pytest itself, its failures, its JUnit file and its options."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.show.testing.kernels_under_test import ORDERED, RACE, RIGHT, TESTS, UNWRITTEN

pytest_plugins = "pytester"
OUTCOMES = {
    "test_right[sm_80]": "passed",
    "test_right[sm_90a]": "passed",
    "test_race": "failed",
    "test_unwritten": "failed",
    "test_unwritten_is_allowed": "passed",
    "test_wrong": "failed",
    "test_order": "failed",
    "test_order_of_one_launch": "passed",
    "test_arguments": "failed",
    "test_file": "failed",
    "test_without_kernels": "passed",
}


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with tests of kernels, and pytest as the plugin's entry point makes it."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = pytester.mkdir("kernels")
    (folder / "test_reversed.py").write_text(TESTS)
    texts = {"right": RIGHT, "race": RACE, "unwritten": UNWRITTEN, "ordered": ORDERED}
    for name, text in texts.items():
        (folder / f"{name}.ptx").write_text(text)
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "warpsim.show.testing.plugin", "--strict-markers", *options)


def failures(text: str) -> dict[str, str]:
    """Return what pytest prints of each test that failed."""
    parts = re.split(r"^_{4,} (\S+) _{4,}$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_a_file_of_tests(project: pytest.Pytester) -> None:
    result = run(project, "--junitxml=results.xml", "--warpsim-schedules=1")
    text = result.stdout.str()
    cases = {case.get("name"): case for case in ElementTree.parse("results.xml").iter("testcase")}
    seen = {name: "passed" if case.find("failure") is None else "failed" for name, case in cases.items()}
    assert seen == OUTCOMES
    shown = failures(text)
    assert "race: ld.shared.u32 reads byte 0xfc of shared memory (tile[63])" in shown["test_race"]
    assert "note: the other access" in shown["test_race"]
    assert "warning" in shown["test_unwritten"]
    assert "argument 0, x: 8 of 64 elements differ; elements 8 to 15" in shown["test_wrong"]
    assert "[8]: 55, expected 56" in shown["test_wrong"]
    assert "outputs depend on the schedule" in shown["test_order"]
    assert "0 arguments, but the kernel has 1 parameters: x (.u64)" in shown["test_arguments"]
    assert "nowhere.ptx: No such file" in shown["test_file"]
    for name, part in shown.items():  # the line of the test, and no frame of this package
        assert not re.search(r"warpsim/\w+/.*\.py:\d+", part), name
        assert re.search(r"test_reversed\.py:\d+: \w+", part), name
    properties = {item.get("name"): item.get("value") for item in cases["test_race"].iter("property")}
    assert properties["warpsim_launches"] == "1"
    assert properties["warpsim_findings"] == "error 1"
    assert re.fullmatch(r"exact \d+", properties["warpsim_fidelity"] or "")
    chips = [item.get("value") for item in cases["test_right[sm_90a]"].iter("property")]
    assert chips[0] == "sm_90a"
    assert not list(cases["test_without_kernels"].iter("property"))
    counted = r"^warpsim: 8 launches in 8 tests; fidelity: exact \d+, [\w ']+ \d+; findings: "
    assert re.search(counted, text, re.MULTILINE)


def test_options_decide_what_fails(project: pytest.Pytester) -> None:
    chosen = "test_race or test_unwritten"
    run(project, "-k", chosen, "--warpsim-fail-on=never").assert_outcomes(passed=3, deselected=8)
    run(project, "-k", chosen, "--warpsim-fail-on=error").assert_outcomes(passed=2, failed=1, deselected=8)
    project.makeini("[pytest]\nwarpsim_fail_on = never\nwarpsim_chip = sm_89\n")
    run(project, "-k", chosen).assert_outcomes(passed=3, deselected=8)


@pytest.mark.parametrize(
    ("options", "ini", "message"),
    [
        (("--warpsim-schedules=-1",), "", "expected a number of 0 or more, and found -1"),
        (("--warpsim-fail-on=all",), "", "invalid choice: 'all'"),
        ((), "warpsim_fail_on = all", "warpsim_fail_on='all': expected one of note, warning, error, never"),
        ((), "warpsim_schedules = many", "expected a number of 0 or more, and found 'many'"),
        (("--warpsim-chip=sm_79", "-k", "test_race"), "", "sm_79"),
    ],
)
def test_wrong_settings_are_refused(
    project: pytest.Pytester, options: tuple[str, ...], ini: str, message: str
) -> None:
    project.makeini(f"[pytest]\n{ini}\n")
    result = run(project, *options)
    assert result.ret != 0
    assert message in result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_the_page_shows_tests_that_run(project: pytest.Pytester) -> None:
    """The example of the page runs as it stands, and its workflow runs what the page says."""
    page = Path(__file__).parents[3] / "warpsim" / "show" / "testing" / "README.md"
    blocks = re.findall(r"```(\w+)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    example = next(code for language, code in blocks if language == "py")
    workflow = next(code for language, code in blocks if language == "yaml")
    assert re.findall(r"- run: (.*)", workflow) == [
        "pip install warpsim pytest",
        "pytest --warpsim-schedules 4 --junitxml results.xml",
    ]
    (Path.cwd() / "kernels" / "test_reversed.py").write_text(example)
    source = page.parents[3] / "traces" / "kernels" / "dense_tiles.ptx"
    (Path.cwd() / "kernels" / "dense_tiles.ptx").write_text(source.read_text())
    run(project, "--warpsim-schedules=1").assert_outcomes(passed=2)


MISTAKEN = """
import pytest

def test_kernel(simulator):
    simulator.load("right.ptx")["nope"]

@pytest.mark.chips("sm_1")
def test_chip(simulator): ...

@pytest.mark.findings("loud")
def test_severity(simulator): ...

def test_its_own(simulator):
    assert "0 launches" in repr(simulator)
    raise ValueError("mine")
"""


def test_mistakes_are_said_without_frames_of_the_package(project: pytest.Pytester) -> None:
    (project.path / "kernels" / "test_reversed.py").write_text(MISTAKEN)
    text = run(project).stdout.str()
    for words in (
        "NoSuchKernel: no kernel 'nope'; the kernels are",
        "simulator: unknown target 'sm_1'; known are",
        "simulator: findings: 'loud': expected one of note, warning, error, never",
        "ValueError: mine",
    ):
        assert words in text
    assert "2 failed, 2 errors" in text
    assert "During handling" not in text
    assert not re.search(r"(plugin|launching|program|qualifiers)\.py:\d+", text)
