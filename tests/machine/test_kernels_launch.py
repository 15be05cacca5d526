"""The kernels of traces/kernels, launched: every bit of what they leave is what it must be."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import kernel_cases, ptxas
from tests.helpers.families import sample, usual
from tests.helpers.kernel_cases import FOLDER
from tests.helpers.kernel_products import Array, Case
from tools import generate_kernels
from warpsim.base.errors import WarpsimError
from warpsim.programs.launch import fidelity
from warpsim.programs.launch.launching import LoadedModule, load_text

GUARDED = (
    *("sum_all", "ragged_f16 33x17x19 normal", "chained_scan of 3 CTAs"),
    *("dense_f16 normal", "sparse_s8 normal", "sparse_product normal"),
)
UNORDERED = (
    *("sum_all", "largest", "chained_scan of 3 CTAs", "locked_sum", "last_adds", "neighbours of 20 CTAs"),
    *("cluster_sum", "cluster_histogram", "cluster_argmax"),
    *("softmax", "called", "interpret", "ragged_f16 33x17x19 normal", "split_k_s32 normal"),
    *("dense_f16 normal", "sparse_tf32 normal", "sparse_nvf4 normal", "sparse_product normal"),
    *("tensor_ring of parts of tiles", "tensor_split"),
    *("tensor_f16", "tensor_sparse_f16", "tensor_mxf8", "tensor_nvf4"),
    *("tensor_s8", "tensor_sparse_e4m3", "tensor_copied_metadata", "tensor_stationary_f16"),
    *("tensor_persistent", "tensor_stream_k"),
    *("cooperative_f16", "multicast_f16", "pingpong_f16", "cooperative_sparse_f16"),
    *("warpgroup_f16 normal", "warpgroup_sparse_f16 normal", "warpgroup_e4m3 normal"),
)
LABELLED = {
    "bias_gelu normal": {"tanh.approx.f32"},
    "softmax": {"ex2.approx.f32"},
    "bias_relu normal": set(),
    "sparse_product normal": set(),
    "called": set(),
}
FILES = sorted(path.name for path in FOLDER.glob("*.ptx"))


@cache
def module(file: str) -> LoadedModule:
    return load_text((FOLDER / file).read_text(), file)


def launched(module: LoadedModule, case: Case, **options: Any) -> dict[int, Array]:
    """What a launch leaves in the arrays among its arguments, by the index of the parameter."""
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    options |= {"shared_bytes": case.shared_bytes, "cluster": case.cluster}
    report = module[case.entry](case.grid, case.block, case.passed(given), **options)
    assert not [found for found in report.hazards if found.severity != "note"]
    return {index: one for index, one in enumerate(given) if isinstance(one, np.ndarray)}


def _by_kernel(names: Iterable[str]) -> list[str]:
    """Choose each kernel with one or two of its kinds of data, of which the next kernel has the others."""
    data = groupby(names, key=lambda name: re.sub(r" (integers|normal|codes)$", "", name))
    kinds = (list(each) for _, each in data)
    return [name for number, each in enumerate(kinds) for name in sample(each, 2, number % len(each))]


def check(case: Case, **options: Any) -> None:
    left = launched(module(case.file), case, **options)
    for index, array in left.items():
        expected = case.expected.get(index, case.arguments[index])
        np.testing.assert_array_equal(array, expected.view(array.dtype), str(index))


@pytest.mark.parametrize("name", _by_kernel(kernel_cases.NAMES))
def test_a_kernel_leaves_every_bit_as_expected(name: str) -> None:
    check(kernel_cases.case(name))


def test_a_commit_to_a_generic_address_of_32_bits_is_one_to_shared_memory() -> None:
    """ptxas compiles both to the same, which the fidelity says."""
    case = kernel_cases.case("tensor_f16")
    text = (FOLDER / case.file).read_text()
    narrow = text.replace("arrive::one.shared::cluster.b64 [%r", "arrive::one.b64 [%r")
    assert narrow != text
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    report = load_text(narrow)[case.entry](
        case.grid, case.block, case.passed(given), shared_bytes=case.shared_bytes
    )
    for index, expected in case.expected.items():
        np.testing.assert_array_equal(given[index], expected.view(given[index].dtype))
    assert any("compiles it to the same" in each.note for each in report.fidelity.classes)


@pytest.mark.parametrize("seed", range(usual(1, 3)))
@pytest.mark.parametrize("name", sample(UNORDERED, 2))
def test_no_result_depends_on_the_schedule(name: str, seed: int) -> None:
    check(kernel_cases.case(name), schedule=seed)


@pytest.mark.parametrize("name", LABELLED)
def test_only_approximate_functions_are_approximate(name: str) -> None:
    case = kernel_cases.case(name)
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    kernel = module(case.file)[case.entry]
    report = kernel(case.grid, case.block, given, shared_bytes=case.shared_bytes)
    found = {one.mnemonic for one in report.fidelity["approximate"]}
    assert found == LABELLED[name]


def test_what_is_no_matrix_instruction_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """wgmma.fence and others of its opcode: advice on their modifiers takes half a millisecond each."""
    asked, resolve = list[str](), fidelity.resolve
    monkeypatch.setattr(fidelity, "resolve", lambda *form: asked.append(form[0]) or resolve(*form))
    fidelity._form.cache_clear()
    case = kernel_cases.case("warpgroup_f16 normal")
    for times in (4, 0):  # the product, the fence, the commit and the wait
        asked.clear()
        check(case)
        assert len(asked) == times


@pytest.mark.parametrize(
    "name",
    [kernel_cases.BENCHMARK, kernel_cases.WARPGROUP_BENCHMARK, kernel_cases.PIPELINE_BENCHMARK],
)
def test_the_benchmark_kernels_at_their_full_size(name: str) -> None:
    check(kernel_cases.case(name))


@pytest.mark.parametrize("name", GUARDED)
def test_every_barrier_and_wait_is_missed_where_it_is_taken_out(name: str) -> None:
    """Barriers by the check of races; waits for copies by the check of those in flight, and by the result."""
    case = kernel_cases.case(name)
    text = (FOLDER / case.file).read_text()
    start = text.index(f".entry {case.entry}(")
    places = list(re.compile(r"bar\.sync[^;]*;|cp\.async\.wait_group[^;]*;").finditer(text, start))
    stop = text.find(".entry ", start + 1)
    places = [place for place in places if stop < 0 or place.start() < stop]
    assert places
    for place in places:
        without = load_text(text[: place.start()] + text[place.end() :], case.file)
        if place[0].startswith("bar"):
            with pytest.raises(WarpsimError, match=r"race: .* without a barrier in between"):
                launched(without, case)
            continue
        with pytest.raises(WarpsimError, match=r"while the cp\.async of line \d+ is in flight"):
            launched(without, case)
        left = launched(without, case, checks="off")
        assert any((left[index] != expected).any() for index, expected in case.expected.items())


MISSING = {  # a statement of a kernel with wgmma, and one of the rules that its absence breaks
    "fence.proxy.async": {"proxy-fence"},
    "wgmma.fence": {"first-fence", "fence"},
    "wgmma.commit_group": {"uncommitted"},
    "wgmma.wait_group": {"accumulator-in-flight"},
    "bar.sync": {"race"},
}


@pytest.mark.parametrize("entry", ["warpgroup_f16", "warpgroup_sparse_f16", "warpgroup_e4m3"])
def test_every_statement_that_orders_wgmma_is_missed(entry: str) -> None:
    case = kernel_cases.case(f"{entry} normal")
    text = (FOLDER / case.file).read_text()
    start = text.index(f".entry {entry}(")
    stop = text.find(".entry ", start + 1) % (len(text) + 1)
    places = list(re.compile("|".join(rf"{name}[^;]*;" for name in MISSING)).finditer(text, start, stop))
    assert {name for name in MISSING for place in places if place[0].startswith(name)} == set(MISSING)
    assert findings(module(case.file), case) == set()
    for place in places:
        (rules,) = (rules for name, rules in MISSING.items() if place[0].startswith(name))
        without = load_text(text[: place.start()] + text[place.end() :], case.file)
        assert findings(without, case) & rules, place[0]


def findings(module: LoadedModule, case: Case) -> set[str]:
    """The rules that a launch breaks."""
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    kernel = module[case.entry]
    report = kernel(case.grid, case.block, given, shared_bytes=case.shared_bytes, checks="warn")
    return {one.kind for one in report.hazards}


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
    found = {(case.file, case.entry) for case in map(kernel_cases.case, kernel_cases.NAMES)}
    assert found == {(file, entry) for file in FILES for entry in module(file).entries}


@pytest.mark.parametrize("file", FILES)
def test_nothing_in_a_kernel_is_left_out(file: str) -> None:
    assert module(file).problems == ()


@pytest.mark.parametrize("file", FILES)
def test_the_text_names_no_place_of_a_machine(file: str) -> None:
    assert not re.search(r"/(home|tmp|usr|work|root|builds?)/|INTERNAL", (FOLDER / file).read_text())


@pytest.mark.parametrize("file", sample(FILES, 3))
def test_compiling_again_changes_nothing(file: str) -> None:
    if reason := generate_kernels.missing():
        pytest.skip(reason)
    assert generate_kernels.compiled((FOLDER / file).with_suffix(".cu")) == (FOLDER / file).read_text()


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize("file", FILES)
def test_ptxas_takes_the_text(file: str, tmp_path: Path) -> None:
    """nvcc does not look into inline assembly."""
    command = [
        str(ptxas.program()),
        f"-arch={module(file).target}",
        str(FOLDER / file),
        "-o",
        str(tmp_path / "cubin"),
    ]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_every_source_has_its_text() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.cu")) == [Path(name).stem for name in FILES]
