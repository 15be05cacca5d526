"""Two recordings: the first instruction that differs by itself, why, and what only follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner, Result
from tests.helpers.families import sample
from tests.helpers.kernel_cases import FOLDER, case
from warpsim.observe.recording.recorder import LaunchEvent
from warpsim.programs.launch.launching import load_text
from warpsim.show.cli import cli
from warpsim.sums.execution.pipeline import execute_inputs
from warpsim.workbench.diagnosis.recordings import divergence
from warpsim.workbench.diagnosis.recordings.divergence import Divergence, compare_recordings, first_divergence
from warpsim.workbench.vectors.formats.recording import write_recording
from warpsim.workbench.vectors.recordings import Recording

KERNELS = (
    *("dense_f16 normal", "sparse_f16 normal", "dense_s8 normal", "sparse_mxf4 normal"),
    "warpgroup_f16 normal",
)


@cache
def recording(name: str, target: str | None = None) -> Recording:
    one = case(name)
    module = load_text((FOLDER / one.file).read_text(), one.file, target)
    options: dict[str, Any] = {"shared_bytes": one.shared_bytes, "checks": "off", "record": "cta=0"}
    events = module[one.entry](one.grid, one.block, one.passed(one.arguments), **options).events
    sizes = {"grid": (64, 64, 1), "block": (512, 1, 1)}
    return Recording(kernel=one.entry, file=one.file, target=module.target, events=events, **sizes)


def _again(event: LaunchEvent, registers: Mapping[str, Any]) -> LaunchEvent:
    inputs = replace(event.inputs, registers={**event.inputs.registers, **registers})
    return replace(event, inputs=inputs, d=execute_inputs(event.instruction, inputs))


def _chain(whole: Recording) -> list[int]:
    """Events of one statement by one warp, each adding to the D of the one before."""
    first = whole.events[0]
    found = [at for at, one in enumerate(whole.events) if (one.pc, one.warp) == (first.pc, first.warp)]
    assert len(found) > 2
    return found


def changed(whole: Recording, at: int, registers: Mapping[str, Any]) -> Recording:
    """The recording with one instruction that reads something else, and all that add to it."""
    events = list(whole.events)
    made = {events[at].d.tobytes(): (events[at].warp, _again(events[at], registers))}
    events[at] = made[events[at].d.tobytes()][1]
    for number in range(at + 1, len(events)):
        one = events[number]
        c = one.inputs.registers.get("c")
        warp, before = made.get(b"" if c is None else c.tobytes(), (None, one))
        if warp == one.warp:
            events[number] = _again(one, {"c": before.d})
            made[one.d.tobytes()] = (warp, events[number])
    return replace(whole, events=tuple(events))


def parted(first: Recording, second: Recording, most: int = 1) -> Divergence:
    found = first_divergence(compare_recordings(first, second), first, second, most)
    assert found is not None
    return found


@pytest.mark.parametrize("name", KERNELS[:4])
def test_a_stale_operand_is_that_of_another_step(name: str) -> None:
    whole = recording(name)
    one, two, *rest = _chain(whole)
    found = parted(whole, changed(whole, two, {"b": whole.events[one].inputs.registers["b"]}))
    assert found.numbers == (two, two)
    assert found.difference.operands == ("b",)
    (change,) = found.changes
    assert change.known == f"line {whole.events[one].line}, {whole.events[one].place}"
    assert found.made == (True, True)
    assert found.diagnosis is None  # what it is, is known
    assert (found.follows, found.apart) == (len(rest), ())


@pytest.mark.parametrize("name", KERNELS[:4])
def test_another_arrangement_is_searched_for(name: str) -> None:
    whole = recording(name)
    _, two, *rest = _chain(whole)
    b = whole.events[two].inputs.registers["b"]
    found = parted(whole, changed(whole, two, {"b": b[:, ::-1].copy()}))
    assert found.subject == "the second's D against what the first read"
    assert found.diagnosis is not None
    assert found.diagnosis.found
    assert found.follows == len(rest)


@pytest.mark.parametrize("name", sample(KERNELS, 4))
def test_another_result_of_the_same_operands(name: str) -> None:
    whole = recording(name)
    at = _chain(whole)[1]
    events = list(whole.events)
    d = events[at].d.copy()
    d[3, 1] ^= 1
    events[at] = replace(events[at], d=d)
    wrong = replace(whole, events=tuple(events))
    found = parted(whole, wrong)
    assert (found.difference.operands, found.made) == ((), (True, False))
    assert found.subject == "the second's D against what both read"
    assert found.element is not None
    assert (found.follows, found.apart) == (0, ())
    back = parted(wrong, whole)
    assert (back.made, back.subject) == ((False, True), "the first's D against what both read")
    assert parted(wrong, whole, 0).made == back.made


def test_chips_part_at_the_first_that_differs_from_the_same_operands() -> None:
    first, second = (recording("dense_f16 normal", target) for target in ("sm_80", "sm_90"))
    found = parted(first, second)
    assert (found.difference.operands, found.made, found.diagnosis) == ((), (True, True), None)
    assert found.difference.first.index == 0
    assert found.follows > 0
    everything = compare_recordings(first, second).differences
    assert found.follows + len(found.apart) + 1 == len(everything)
    assert all(one.operands == () or one.operands != ("c",) or not one.words for one in found.apart)


def test_two_mistakes_are_two() -> None:
    whole = recording("dense_f16 normal")
    _, two, three, *_ = _chain(whole)
    b = [whole.events[at].inputs.registers["b"] ^ np.uint32(0x10) for at in (two, three)]
    wrong = changed(changed(whole, two, {"b": b[0]}), three, {"b": b[1]})
    found = parted(whole, wrong)
    assert found.numbers == (two, two)
    assert [one.first.index for one in found.apart] == [whole.events[three].index]


def test_what_is_equal_does_not_part() -> None:
    whole = recording("dense_f16 normal")
    assert first_divergence(compare_recordings(whole, whole), whole, whole) is None


# --- the command line ------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    whole = recording("dense_f16 normal")
    one, two, *_ = _chain(whole)
    stale = {"b": whole.events[one].inputs.registers["b"]}
    write_recording("whole.npz", whole)
    write_recording("stale.npz", changed(whole, two, stale))
    write_recording("sm_90.npz", recording("dense_f16 normal", "sm_90"))
    return tmp_path


def diff(*options: str) -> Result:
    return CliRunner().invoke(cli, ["diff", "whole.npz", *options], standalone_mode=False)


def test_the_verb_tells_it(files: Path) -> None:
    done = diff("stale.npz")
    assert done.return_value == 1
    lines = done.stdout.splitlines()
    at = next(
        number for number, line in enumerate(lines) if line.startswith("the first that differs by itself")
    )
    assert "CTA (0, 0, 0), warp 0, step 1, event " in lines[at]
    assert lines[at + 1].startswith("  b: ")
    assert "; the second has what the first reads in line 223, CTA (0, 0, 0), warp 0, step 0" in lines[at + 1]
    assert lines[at + 2] == "  both D are right for what was read"
    assert lines[at + 3] == "  3 others differ by nothing but accumulators that had parted before"


def test_the_command_that_explains_two_chips_runs(files: Path) -> None:
    line = next(one for one in diff("sm_90.npz").stdout.splitlines() if "the chips part here" in one)
    command = line.partition(": warpsim ")[2].split()
    done = CliRunner().invoke(cli, command, standalone_mode=False)
    assert done.return_value == 0
    assert "chips first differ at step" in done.stdout


def test_the_same_for_programs(files: Path) -> None:
    document = json.loads(diff("stale.npz", "--json").stdout)
    first = document["first"]
    assert (first["operands"], first["as_modelled"], first["follows"]) == (["b"], [True, True], 3)
    assert first["changes"][0]["known"].endswith("warp 0, step 0")
    assert json.loads(diff("whole.npz", "--json").stdout)["first"] is None


def test_what_is_no_recording(files: Path) -> None:
    Path("other.npz").write_bytes(b"PK")
    assert diff("other.npz").return_value == 3


def test_descriptors_differ_where_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A and B in shared memory: the same descriptor of the same bytes is not a difference."""

    def event(b: int, tile: int = 0, a: int | None = None) -> Any:
        inputs = SimpleNamespace(
            a_descriptor=None if a is None else np.uint64(a),
            b_descriptor=np.uint64(b),
            scale_d=True,
            negate=(False, False),
            transposed=(False, False),
            tensor=None,
        )
        return SimpleNamespace(inputs=inputs, tile=np.full(4, tile))

    monkeypatch.setattr(divergence, "_tile", lambda event, side: event.tile)
    assert list(divergence._tiles(event(7), event(7))) == []
    assert list(divergence._tiles(event(7), event(8))) == ["b-desc"]
    assert list(divergence._tiles(event(7), event(7, tile=1))) == ["b"]
    assert list(divergence._tiles(event(7, a=1), event(7))) == ["a-desc"]
