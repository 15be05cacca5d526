"""Recordings of tcgen05.mma: files, masks, descriptors and addresses; verify and diff of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.described_products import Product, mnemonic
from tests.helpers.tensor_core import Run
from tests.helpers.tensor_core_products import mxf8
from tests.helpers.tensor_pipeline_products import pair
from warpsim.base.errors import TraceError
from warpsim.observe.recording.recorder import LaunchEvent
from warpsim.show.cli.differing import of_recording
from warpsim.sums.execution.pipeline import execute_inputs
from warpsim.workbench.diagnosis.recordings.divergence import compare_recordings, first_divergence
from warpsim.workbench.diagnosis.search.tensor_search import changes
from warpsim.workbench.vectors.formats.recording import read_recording, write_recording
from warpsim.workbench.vectors.outcomes import verify
from warpsim.workbench.vectors.recordings import Recording
from warpsim.workbench.vectors.sets import make_vectors


def recording(*events: LaunchEvent) -> Recording:
    return Recording(
        kernel="k", file="k.ptx", target="sm_100a", grid=(2, 1, 1), block=(192, 1, 1), events=events
    )


def launched(case: Any, schedule: str = "program") -> tuple[LaunchEvent, ...]:
    kernel = warpsim.load(f"traces/kernels/{case.file}")[case.entry]
    given = case.passed(case.arguments)
    options = {"shared_bytes": case.shared_bytes, "cluster": case.cluster, "schedule": schedule}
    events: tuple[LaunchEvent, ...] = kernel(case.grid, case.block, given, record=True, **options).events
    return events


def masked(**words: int) -> Run:
    """A product of half of the lanes from lane 16 on, with words of disable-output-lane."""
    run = Product(mnemonic("f16"), m=64, n=16).run()
    run.statement = run.statement.replace("r4, enable", "r4, {r8, r9, r10, r11}, enable")
    run.cells = np.roll(run.cells, 16, axis=1)
    run.words |= {"r0": 16 << 16, "r8": 0, "r9": 0, "r10": 0, "r11": 0, **words}
    return run


@pytest.fixture(scope="module")
def scaled() -> tuple[LaunchEvent, ...]:
    return launched(mxf8(np.random.default_rng(0), size=(128, 64, 128)))


@pytest.fixture(scope="module")
def paired() -> tuple[LaunchEvent, ...]:
    return launched(pair(np.random.default_rng(0), k=128))


@pytest.fixture(scope="module")
def lanes() -> tuple[LaunchEvent, ...]:
    """The same statement: no lane disabled; some, with D read; some, with D not read."""
    disabled = {"r8": 1 << 16, "r9": 5, "r10": 1 << 31}
    runs = masked(), masked(**disabled), masked(**disabled, r5=0)
    return tuple(replace(run.report(record=True).events[0], index=index) for index, run in enumerate(runs))


def same(first: LaunchEvent, second: LaunchEvent) -> None:
    """Both events read the same, at the same places, and made the same."""
    assert (first.where, first.addresses) == (second.where, second.addresses)
    assert first.inputs.tensor == second.inputs.tensor
    assert first.inputs.registers.keys() == second.inputs.registers.keys()
    np.testing.assert_array_equal(execute_inputs(second.instruction, second.inputs), first.d)


def test_a_recording_comes_back_and_passes(scaled: Any, paired: Any, lanes: Any, tmp_path: Path) -> None:
    for number, events in enumerate((scaled, paired, lanes)):
        path = tmp_path / f"{number}.npz"
        whole = recording(*events)
        write_recording(path, whole)
        back = read_recording(path)
        for first, second in zip(whole.events, back.events, strict=True):
            same(first, second)
        assert compare_recordings(whole, back).equal
        outcome = verify(path)
        assert (outcome.passed, outcome.tally.cases) == (True, len(events))


def test_masks_are_arrays_of_a_set(lanes: Any) -> None:
    (item,) = recording(*lanes).sets()
    words = item.vectors.masks["disable_output_lane"]
    assert (words.dtype, words.shape) == (np.uint32, (3, 1, 4))
    # Bits of lanes 16, 32, 34 and 95, counted from lane 16 on.
    own = [1 | 1 << 16 | 1 << 18, 0, 1 << 15, 0]
    assert words[:, 0].tolist() == [[0] * 4, own, own]
    assert item.vectors.varying()["enable_input_d"].tolist() == [1, 1, 0]
    assert len(list(item.vectors.inputs())) == 3


def test_each_descriptor_of_a_statement_is_a_set() -> None:
    events = []
    for number, d_type in enumerate((1, 0)):
        run = Product(mnemonic("f16"), n=16, d_type=d_type).run()
        events.append(replace(run.report(record=True).events[0], index=number))
    found = list(recording(*events).sets())
    assert [str(item.vectors.instruction.d) for item in found] == ["f16", "f32"]
    assert len({item.pc for item in found}) == 1


def test_a_zero_column_mask_is_a_word_of_a_case(tmp_path: Path) -> None:
    run = Product(mnemonic("f16", ws=True), m=32, n=64).run()
    run.statement = run.statement.replace("enable;", "enable, q6;")
    run.words["q6"] = 1 << 39 | 2 << 40 | 3 << 48
    (event,) = run.report(record=True).events
    write_recording(tmp_path / "w.npz", recording(event))
    (back,) = read_recording(tmp_path / "w.npz").events
    same(event, back)
    assert back.inputs.tensor.zero_column_mask == run.words["q6"]
    assert verify(tmp_path / "w.npz").passed


@pytest.mark.parametrize("suffix", [".npz", ".jsonl", ".h", ".hex", ".csv", ".tv"])
def test_masks_go_through_every_format(suffix: str, lanes: Any, tmp_path: Path) -> None:
    (item,) = recording(*lanes[:2]).sets()
    path = tmp_path / f"set{suffix}"
    warpsim.write_vectors(path, item.vectors)
    back = warpsim.read_vectors(path)
    for name, array in item.vectors.arrays().items():
        np.testing.assert_array_equal(back.arrays()[name], array)
    assert verify(path).passed


def test_masks_of_made_sets_are_checked(lanes: Any) -> None:
    (item,) = recording(*lanes[:2]).sets()
    given = dict(item.vectors.arrays())
    del given["d"]
    again = make_vectors(item.vectors.instruction, **given, **item.vectors.constants())
    np.testing.assert_array_equal(again.d, item.vectors.d)
    with pytest.raises(warpsim.WarpsimError, match=r"disable_output_lane has shape \(2, 1, 3\)"):
        make_vectors(
            item.vectors.instruction,
            **given | {"disable_output_lane": given["disable_output_lane"][..., :3]},
            **item.vectors.constants(),
        )
    with pytest.raises(warpsim.WarpsimError, match="has no operand zero_column_mask"):
        make_vectors(
            item.vectors.instruction,
            **given,
            zero_column_mask=np.zeros(2, np.uint64),
            **item.vectors.constants(),
        )


def test_diff_names_what_it_names_for_a_single_execution(scaled: Any) -> None:
    name = "SBO of B's descriptor is 1024 where 512 fits"
    made = next(change for change in changes(scaled[1].instruction, scaled[1].inputs) if change.name == name)
    wrong = replace(scaled[1], d=execute_inputs(made.instruction, made.inputs))
    whole, other = recording(*scaled), recording(scaled[0], wrong, *scaled[2:])
    ((title, found),) = of_recording(other, 2)
    assert "1 of 1 cases differ" in title
    assert f"{name}: the result matches bit for bit" in found.lines()
    parted = first_divergence(compare_recordings(whole, other), whole, other)
    assert parted is not None
    assert (parted.made, parted.diagnosis.matches[0]) == ((True, False), name)


def test_verify_names_lane_column_and_element(scaled: Any) -> None:
    d = scaled[0].d.copy()
    d[77, 5] ^= 1
    (item,) = recording(replace(scaled[0], d=d)).sets()
    (mismatch,) = verify(item.vectors).tally.first
    assert str(mismatch).startswith("case 0: lane 77, column 5: expected 0x")
    assert "; D[77,5]: expected " in str(mismatch)


def test_addresses_of_a_file_are_not_trusted(scaled: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    write_recording(path, recording(*scaled[:1]))
    with np.load(path) as archive:
        members = dict(archive)
    for operands, message in (
        (["d", "d", "scale_a"], "addresses: operands is an array of different names"),
        (["d", "scale_a"], "addresses is uint32"),
        (["d", "scale_a", "e"], "not all are read from tensor memory"),
        ("d", "addresses: operands is an array of different names"),
    ):
        document = json.loads(str(members["manifest"]))
        document["statements"][0]["addresses"]["operands"] = operands
        np.savez(path, **members | {"manifest": np.array(json.dumps(document))})
        with pytest.raises(TraceError, match=message):
            read_recording(path)
