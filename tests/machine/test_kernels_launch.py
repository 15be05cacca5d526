"""The kernels of traces/kernels, launched: every bit of what they leave is what it must be."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from tests.helpers import kernel_cases
from tests.helpers.kernel_cases import FOLDER, Case
from tools import generate_kernels
from warpsim.machine.launching import LoadedModule, load_text

FILES = sorted(path.name for path in FOLDER.glob("*.ptx"))


@cache
def module(file: str) -> LoadedModule:
    return load_text((FOLDER / file).read_text(), file)


def check(case: Case) -> None:
    kernel = module(case.file)[case.entry]
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    kernel(case.grid, case.block, given, shared_bytes=case.shared_bytes)
    for index, before in enumerate(case.arguments):
        if isinstance(before, np.ndarray):
            expected = case.expected.get(index, before)
            np.testing.assert_array_equal(given[index], expected.view(given[index].dtype), str(index))


@pytest.mark.parametrize("name", kernel_cases.NAMES)
def test_a_kernel_leaves_every_bit_as_expected(name: str) -> None:
    check(kernel_cases.case(name))


def test_the_benchmark_kernel_at_its_full_size() -> None:
    check(kernel_cases.case(kernel_cases.BENCHMARK))


def test_no_expectation_is_trivial() -> None:
    for name in kernel_cases.NAMES:
        case = kernel_cases.case(name)
        assert case.expected, name
        for index, expected in case.expected.items():
            assert expected.shape == np.shape(case.arguments[index]), name
        assert any(
            not np.array_equal(expected, case.arguments[index]) for index, expected in case.expected.items()
        ), name


def test_every_entry_is_launched() -> None:
    launched = {(case.file, case.entry) for case in map(kernel_cases.case, kernel_cases.NAMES)}
    assert launched == {(file, entry) for file in FILES for entry in module(file).entries}


@pytest.mark.parametrize("file", FILES)
def test_nothing_in_a_kernel_is_left_out(file: str) -> None:
    assert module(file).problems == ()


@pytest.mark.parametrize("file", FILES)
def test_the_text_names_no_place_of_a_machine(file: str) -> None:
    assert not re.search(r"/(home|tmp|usr|work|root|builds?)/|INTERNAL", (FOLDER / file).read_text())


@pytest.mark.parametrize("file", FILES)
def test_compiling_again_changes_nothing(file: str) -> None:
    if reason := generate_kernels.missing():
        pytest.skip(reason)
    assert generate_kernels.compiled((FOLDER / file).with_suffix(".cu")) == (FOLDER / file).read_text()


def test_every_source_has_its_text() -> None:
    assert [path.stem for path in sorted(FOLDER.glob("*.cu"))] == [name.removesuffix(".ptx") for name in FILES]
