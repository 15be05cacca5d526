"""The pytest plugin: options, marks, the fixture ``simulator``; what JUnit files and the end of a run say.

Installed with the package as the entry point ``warpsim``; imports nothing of it before a test asks for the
fixture, so that other tests start as fast as without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .simulator import Settings, Simulator

_FAIL_ON = ("note", "warning", "error", "never")
_FIXTURE = "simulator"
_PACKAGE = Path(__file__).parents[2]
_SIMULATOR = pytest.StashKey[Any]()  # of a test: its simulator
_MARKS = (
    "chips(*names): run the test once for each chip, such as sm_80 and sm_90a; simulator.chip is the chip",
    "findings(severity): the least severity that fails this test: note, warning, error or never",
    "schedules(count): repeat each launch of this test under so many other schedules",
)
_INI = (
    ("warpsim_chip", "the chip of tests without the mark chips", ""),
    ("warpsim_fail_on", f"the least severity of findings that fails: {', '.join(_FAIL_ON)}", "warning"),
    ("warpsim_schedules", "how many other schedules each launch is repeated under", "0"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line and of the ini file."""
    group = parser.getgroup("warpsim", "kernels that warpsim executes")
    group.addoption("--warpsim-chip", metavar="CHIP", help=f"{_INI[0][1]}, such as sm_90a")
    group.addoption("--warpsim-fail-on", choices=_FAIL_ON, help=f"{_INI[1][1]} (warning)")
    group.addoption(
        "--warpsim-schedules",
        type=int,
        metavar="N",
        help="repeat each launch under N other schedules; findings and other outputs fail the test",
    )
    group.addoption(
        "--warpsim-no-why", action="store_true", help="do not search for the cause of wrong outputs"
    )
    for name, text, default in _INI:
        parser.addini(name, text, default=default)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and refuse settings that cannot be."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)
    _severity(_option(config, "fail_on"), "warpsim_fail_on=")
    _schedules(_option(config, "schedules"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each chip of its mark."""
    mark = metafunc.definition.get_closest_marker("chips")
    if mark is not None and _FIXTURE in metafunc.fixturenames:
        metafunc.parametrize(_FIXTURE, mark.args, indirect=True, ids=[str(name) for name in mark.args])


@pytest.fixture
def simulator(request: pytest.FixtureRequest) -> Simulator:
    """Kernels of one test: load, launch, launch_triton, launch_numba, assert_equal, assert_ulp, assert_close.

    A launch fails the test with findings (--warpsim-fail-on); ``simulator.chip`` is the chip of the mark
    ``chips``.
    """
    from ...base.errors import WarpsimError
    from .simulator import Simulator

    problem = ""
    try:
        made = Simulator(_settings(request))
    except (WarpsimError, pytest.UsageError) as error:
        problem = f"simulator: {error}"
    if problem:  # outside of the handler: pytest prints what was being handled, too
        pytest.fail(problem, pytrace=False)
    request.node.stash[_SIMULATOR] = made
    return made


def _settings(request: pytest.FixtureRequest) -> Settings:
    """Return what marks, the command line and the ini file ask for, in this order."""
    from ...ptx.qualifiers import check_target
    from .simulator import Settings

    config, node = request.config, request.node
    chip = getattr(request, "param", None) or _option(config, "chip") or None
    if chip is not None:
        check_target(chip)
    return Settings(
        chip=chip,
        fail_on=_severity(_mark_argument(node, "findings", _option(config, "fail_on"))),
        schedules=_schedules(_mark_argument(node, "schedules", _option(config, "schedules"))),
        explain=not config.getoption("--warpsim-no-why"),
        folder=Path(request.path).parent,
    )


def _option(config: pytest.Config, name: str) -> Any:
    """Return an option of the command line, or that of the ini file."""
    given = config.getoption(f"warpsim_{name}")
    return config.getini(f"warpsim_{name}") if given is None else given


def _mark_argument(node: Any, name: str, otherwise: Any) -> Any:
    """Return the argument of a mark. Raises UsageError for a mark without it."""
    mark = node.get_closest_marker(name)
    if mark is None:
        return otherwise
    if len(mark.args) != 1:
        raise pytest.UsageError(f"the mark {name} takes one argument, and is given {len(mark.args)}")
    return mark.args[0]


def _severity(given: Any, where: str = "findings: ") -> str:
    """Return a severity of findings. Raises UsageError."""
    if given not in _FAIL_ON:
        raise pytest.UsageError(f"{where}{given!r}: expected one of {', '.join(_FAIL_ON)}")
    return str(given)


def _schedules(given: Any) -> int:
    """Return the number of other schedules. Raises UsageError."""
    try:
        count = int(given)
    except ValueError:
        count = -1
    if count < 0:
        raise pytest.UsageError(f"schedules: expected a number of 0 or more, and found {given!r}")
    return count


# --- what is left of a test ----------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Give the report of a test, and so a JUnit file, what its launches were; an error ends at the test."""
    made = item.stash.get(_SIMULATOR, None)
    if made is not None and call.when == "call":
        item.user_properties.extend(made.properties())
    if made is not None and call.excinfo is not None and not item.config.getoption("fulltrace"):
        _drop_own_frames(call.excinfo.value)
    yield


def _drop_own_frames(error: BaseException) -> None:
    """Leave out the frames of this package below the last line of a test, where an error is the user's."""
    from ...base.errors import WarpsimError

    frame, last = error.__traceback__, None
    while frame is not None:
        last = last if Path(frame.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE) else frame
        frame = frame.tb_next
    if isinstance(error, WarpsimError) and last is not None:
        last.tb_next = None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print launches, fidelity and findings of all tests, in one line."""
    reports = [report for stats in terminalreporter.stats.values() for report in stats]
    noted = [dict(report.user_properties) for report in reports if getattr(report, "when", "") == "call"]
    tests = [properties for properties in noted if "warpsim_launches" in properties]
    if not tests:
        return
    launches = sum(int(test["warpsim_launches"]) for test in tests)
    parts = [f"{_count_text(launches, 'launch', 'launches')} in {_count_text(len(tests), 'test', 'tests')}"]
    for name in ("fidelity", "findings"):
        parts.append(f"{name}: {_sum_of_counts(test[f'warpsim_{name}'] for test in tests) or 'none'}")
    terminalreporter.write_line(f"warpsim: {'; '.join(parts)}")


def _count_text(count: int, single: str, several: str) -> str:
    return f"{count:,} {single if count == 1 else several}"


def _sum_of_counts(texts: Iterator[str]) -> str:
    """Return the sum of texts such as "exact 12, inferred 3"."""
    counts = Counter[str]()
    for text in texts:
        for part in filter(None, text.split(", ")):
            name, _, count = part.rpartition(" ")
            if name:
                counts[name] += int(count)
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
