"""The traces in traces/: they pass, can be written again, ptxas takes them, and no bit of them is idle."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import ptxas
from tests.helpers.families import sample
from warpsim.base.files.archives import read_arrays, write_arrays
from warpsim.workbench.traces.reading import Trace, read_trace
from warpsim.workbench.traces.running import run_trace

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "traces"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.ptx"))]
NO_CHIP = {"sm_70"}  # ptxas 13.0 has dropped it


def trace(name: str) -> Trace:
    return read_trace(FOLDER / f"{name}.ptx")


def test_there_are_traces_of_every_family_and_pattern() -> None:
    forms = {event.instruction for name in NAMES for event in run_trace(trace(name)).events}
    assert {form.family.name for form in forms} == {"mma", "mma.sp", "wgmma", "wgmma.sp"}
    assert {str(form.pattern) for form in forms} == {"None", "1:2", "2:4", "4:8"}
    assert {form.variant for form in forms} == {"", "sp", "sp::ordered_metadata"}
    assert {form.scale_vector for form in forms} == {"", "1X", "2X", "4X"}


@pytest.mark.parametrize(("name", "engine"), sample(product(NAMES, ("kernel", "reference")), 3))
def test_every_trace_passes_with_both_engines(name: str, engine: Any) -> None:
    run = run_trace(trace(name), engine=engine)
    assert run.passed
    assert run.events
    written = {register for event in run.events for register in event.bound.d}
    checked = {load.registers.partition("_")[0] for load in run.trace.loads.values() if load.expected}
    assert checked == {str(register).partition("_")[0] for register in written}


def test_no_word_of_what_is_expected_is_trivial() -> None:
    """Each trace expects many different words, so that it does not pass by accident."""
    for name in NAMES:
        for load in trace(name).loads.values():
            if load.expected:
                assert len(np.unique(load.words)) > 0.4 * load.words.size, name


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    script = [sys.executable, str(ROOT / "tools" / "generate_traces.py"), str(folder)]
    subprocess.run(script, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_traces_are_what_the_tool_writes(regenerated: Path, name: str) -> None:
    assert (regenerated / f"{name}.ptx").read_bytes() == (FOLDER / f"{name}.ptx").read_bytes()
    fresh, kept = read_arrays(regenerated / f"{name}.npz"), read_arrays(FOLDER / f"{name}.npz")
    assert fresh.keys() == kept.keys()
    assert all(np.array_equal(fresh[key], kept[key]) for key in fresh)
    assert all(fresh[key].dtype == kept[key].dtype for key in fresh)


def test_the_tool_writes_every_trace(regenerated: Path) -> None:
    written = {path.name for path in regenerated.iterdir()}
    assert written == {path.name for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".md"}


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize("name", NAMES)
def test_ptxas_takes_every_trace(tmp_path: Path, name: str) -> None:
    target = trace(name).target
    if target in NO_CHIP:
        pytest.skip(f"no ptxas that is known generates code for {target}")
    body = (FOLDER / f"{name}.ptx").read_text()
    text = f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k() {{\n{body}\nret;\n}}\n"
    (tmp_path / "k.ptx").write_text(text)
    command = [str(ptxas.program()), f"-arch={target}", "k.ptx", "-o", "k.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FLIPPED = [
    "mma_m16n8k16_f16",
    "mma_m16n8k32_s8_u8",
    "mma_m16n8k8_f64",
    "mma_m8n8k4_f16_volta",
    "mma_sp_m16n8k32_f16",
    "mma_sp_m16n8k16_tf32",
    "mma_sp_m16n8k128_mxf4nvf4",
    "wgmma_m64n24k16_bf16",
    "wgmma_sp_m64n8k64_f8",
]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", FLIPPED)
def test_any_flipped_bit_is_reported_where_it_is(tmp_path: Path, name: str, seed: int) -> None:
    """One bit of one expected array: the register, lane, row and column are found by unpacking it."""
    random = np.random.default_rng([seed, *name.encode()])
    arrays = read_arrays(FOLDER / f"{name}.npz")
    key = str(random.choice(sorted(key for key in arrays if key.startswith("d"))))
    lane, index = (int(random.integers(size)) for size in arrays[key].shape)
    bit = int(random.integers(8 * arrays[key].dtype.itemsize))
    expected = arrays[key].copy()
    expected[lane, index] ^= expected.dtype.type(1 << bit)
    write_arrays(tmp_path / f"{name}.npz", arrays | {key: expected})
    shutil.copy(FOLDER / f"{name}.ptx", tmp_path)

    run = run_trace(read_trace(tmp_path / f"{name}.ptx"))
    (check,) = [check for check in run.checks if not check.passed]
    assert (check.registers, check.different) == (f"%{key}_<{expected.shape[1]}>", 1)
    first = check.first
    assert first is not None
    assert (first.lane, first.register) == (lane, f"%{key}_{index}")
    assert (first.expected, first.actual) == (int(expected[lane, index]), int(arrays[key][lane, index]))

    (form,) = {event.instruction for event in run.events if first.register in event.bound.d}
    codes = np.dtype(f"u{form.d.bits // 8}")
    right, wrong = (warpsim.unpack(form, "d", words) for words in (arrays[key], expected))
    ((*product, row, column),) = np.argwhere(right.view(codes) != wrong.view(codes))
    element = first.element
    assert element is not None
    assert (element.row, element.column) == (row, column)
    assert element.product == (product[0] if product else None)
    place = (*product, row, column)
    assert (element.expected, element.actual) == (str(wrong[place]), str(right[place]))
    assert element.bits[0] <= bit <= element.bits[1]


@pytest.mark.parametrize("name", ["mma_sp_m16n8k32_f16", "mma_m16n8k32_mxf8f6f4"])
def test_flipped_inputs_are_noticed_too(tmp_path: Path, name: str) -> None:
    """One bit of every byte of the first A, B or C: only the D that comes of it differs."""
    arrays = read_arrays(FOLDER / f"{name}.npz")
    shutil.copy(FOLDER / f"{name}.ptx", tmp_path)
    for key in ("a0t0", "b0t0", "c0"):
        changed = arrays[key].copy()
        changed ^= changed.dtype.type(0x04040404)
        write_arrays(tmp_path / f"{name}.npz", arrays | {key: changed})
        run = run_trace(read_trace(tmp_path / f"{name}.ptx"))
        assert [check.registers.partition("_")[0] for check in run.checks if not check.passed] == ["%d0"]
