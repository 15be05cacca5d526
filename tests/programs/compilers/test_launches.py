"""Kernels of Triton and Numba: their committed PTX always runs, and anew where the compilers are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.compiled_cases import BY_COMPILER, CASES, FOLDER, CompiledCase, heading
from warpsim.observe.checks.findings import LaunchFinding
from warpsim.programs.compilers.numba_kernels import numba_arguments
from warpsim.programs.launch.launching import load_text

pytestmark = pytest.mark.filterwarnings("default")  # what the compilers warn of is theirs


def fresh(case: CompiledCase) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]


@pytest.mark.parametrize("name", CASES)
def test_the_committed_text_runs(name: str) -> None:
    case = CASES[name]()
    module, given = load_text(case.text, f"{name}.ptx"), fresh(case)
    assert module.problems == ()
    target, threads, shared_bytes = heading(case.text)
    assert module.target == target
    kernel = module[module.entries[0]]
    arguments = _with_scratch(case, given) if case.compiler == "triton" else numba_arguments(given)
    grid = np.multiply(case.grid, case.ctas).tolist()
    cluster = case.ctas if case.ctas > 1 else None
    report = kernel(grid, case.block or threads, arguments, shared_bytes, cluster=cluster)
    _check_findings(case, report.hazards)
    case.check(given)


def _with_scratch(case: CompiledCase, given: list[Any]) -> list[Any]:
    """Arguments, with the memory that Triton's launcher adds."""
    ctas = case.ctas * int(np.prod(case.grid))
    return [*given, np.zeros(case.scratch * ctas, np.uint8) if case.scratch else None, None]


def _check_findings(case: CompiledCase, hazards: Sequence[LaunchFinding]) -> None:
    """There are none, or those that are known to be warnings."""
    assert bool(hazards) == bool(case.warned)
    for one in hazards:
        assert one.severity == "warning"
        assert case.warned in one.message


@pytest.mark.parametrize("schedule", ["latest", 1])
@pytest.mark.parametrize("name", ["roles", "clusters"])
def test_every_schedule_gives_the_same(name: str, schedule: str | int) -> None:
    case = CASES[name]()
    given, (_, threads, shared_bytes) = fresh(case), heading(case.text)
    kernel = load_text(case.text, f"{name}.ptx")[case.entry]
    grid, cluster = np.multiply(case.grid, case.ctas).tolist(), case.ctas if case.ctas > 1 else None
    report = kernel(
        grid, threads, _with_scratch(case, given), shared_bytes, cluster=cluster, schedule=schedule
    )
    _check_findings(case, report.hazards)
    case.check(given)


@pytest.mark.parametrize("name", BY_COMPILER["triton"])
def test_triton_compiles_and_it_runs(name: str) -> None:
    pytest.importorskip("triton")
    case = CASES[name]()
    given = fresh(case)
    report = warpsim.launch_triton(
        case.function(), case.grid, given, case.constants, target=case.target, **case.options
    )
    _check_findings(case, report.hazards)
    case.check(given)


@pytest.mark.parametrize("name", BY_COMPILER["numba"])
def test_numba_compiles_and_it_runs(name: str) -> None:
    case = CASES[name]()
    given = fresh(case)
    try:
        report = warpsim.launch_numba(case.function(), case.grid, case.block, given)
    except warpsim.OperandError as error:
        pytest.skip(str(error))
    assert report.hazards == ()
    case.check(given)


@pytest.mark.parametrize("name", CASES)
def test_the_text_names_no_place_of_a_machine(name: str) -> None:
    assert not re.search(r"/(home|tmp|usr|work|root|builds?)/", CASES[name]().text)


def test_every_source_has_its_text_and_is_launched() -> None:
    sources = set(FOLDER.glob("*/*.py"))
    cases = [(compiler, make()) for compiler, some in BY_COMPILER.items() for make in some.values()]
    assert all(case.compiler == compiler for compiler, case in cases)
    assert sources == {case.source for _, case in cases}
    assert {path.with_suffix(".ptx") for path in sources} == set(FOLDER.glob("*/*.ptx"))


@pytest.mark.skipif(find_spec("triton") is not None, reason="Triton is here")
def test_without_triton_the_error_says_what_is_missing() -> None:
    class Function:
        params = ()
        arg_names = ()

    with pytest.raises(warpsim.OperandError, match=r"Triton is needed: pip install 'warpsim\[triton\]'"):
        warpsim.launch_triton(Function(), 1, [])
