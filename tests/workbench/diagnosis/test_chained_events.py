"""``diff`` of traces whose instructions add to one D: where the mistake is, and what only follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.chained_traces import ChainedTrace, chained
from tests.helpers.command_runner import CliRunner, Result
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.show.cli import cli
from warpsim.workbench.diagnosis.recordings.event_chains import (
    chain_before,
    diagnose_chain,
    predecessors,
    reproduces_d,
)
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace

RNG = np.random.default_rng(5)
STEPS = 5


def _floats(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def _small(*shape: int) -> Any:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def _scales(name: str) -> Any:
    """Words of four scales each, near 1."""
    first = {"ue8m0": 124, "ue4m3": 48}[name]
    return RNG.integers(first, first + 8, (STEPS, 32, 1, 4)).astype(np.uint8).view(np.uint32)[..., 0]


TRACES = {
    "f16": chained(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "sm_80",
        _floats(STEPS, 16, 16).astype(np.float16),
        _floats(STEPS, 16, 8).astype(np.float16),
        _floats(16, 8).astype(np.float32),
    ),
    "f64": chained(
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        "sm_80",
        _floats(STEPS, 8, 4),
        _floats(STEPS, 4, 8),
        _floats(8, 8),
    ),
    "s8": chained(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        "sm_80",
        _small(STEPS, 16, 32),
        _small(STEPS, 32, 8),
        RNG.integers(-1000, 1000, (16, 8)).astype(np.int32),
    ),
    "sparse": chained(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "sm_90",
        _floats(STEPS, 16, 32).astype(np.float16),
        _floats(STEPS, 32, 8).astype(np.float16),
        _floats(16, 8).astype(np.float32),
    ),
}
TRACES |= {
    name: chained(
        f"{form}.f32.{a}.{b}.f32.{scale}",
        "sm_120a",
        RNG.integers(0, 1 << bits, (STEPS, 16, k)).astype(np.uint8),
        RNG.integers(0, 1 << bits, (STEPS, k, 8)).astype(np.uint8),
        _floats(16, 8).astype(np.float32),
        scale_a=_scales(scale),
        scale_b=_scales(scale),
    )
    for name, form, k, bits, a, b, scale in (
        (
            "mxf8",
            "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale",
            32,
            6,
            "e2m3",
            "e3m2",
            "ue8m0",
        ),
        (
            "nvf4",
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X",
            64,
            4,
            "e2m1",
            "e2m1",
            "ue4m3",
        ),
        (
            "sparse mxf4",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.scale_vec::2X",
            128,
            4,
            "e2m1",
            "e2m1",
            "ue8m0",
        ),
    )
}


def diff(path: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["diff", str(path), *options], standalone_mode=False)


def _stale(trace: ChainedTrace, at: int) -> dict[str, Any]:
    """B of an instruction is that of the one before it."""
    b = trace.registers["b"].copy()
    b[at] = b[at - 1]
    return {"b": b}


@pytest.mark.parametrize("name", TRACES)
def test_of_a_d_at_the_end_the_instruction_is_found(name: str, tmp_path: Path) -> None:
    trace = TRACES[name]
    path = trace.write(tmp_path / "t.ptx", {STEPS - 1: trace.run(**_stale(trace, 2))[-1]})
    done = diff(path)
    assert done.return_value == 1
    assert f"events 0 to {STEPS - 1}, which add to one D: the expected D against what was read" in done.stdout
    assert "step 2 reads B of step 1" in done.stdout
    assert done.stdout.count("the expected D against") == 1


@pytest.mark.parametrize("name", TRACES)
def test_of_every_d_only_the_first_is_searched_and_the_others_follow(name: str, tmp_path: Path) -> None:
    trace = TRACES[name]
    b = trace.registers["b"].copy()
    b[2] = b[2][:, ::-1] if b.shape[-1] > 1 else np.roll(b[2], 4, axis=0)
    expected = dict(enumerate(trace.run(b=b)))
    done = diff(trace.write(tmp_path / "t.ptx", expected), "--singles")
    assert done.return_value == 1
    titles = [line for line in done.stdout.splitlines() if "the expected D against" in line]
    assert len(titles) == 1
    assert ": event 2: the expected D against what was read" in titles[0]
    assert "matches bit for bit" in done.stdout
    last = "2 more Ds are as expected where they start from the D expected before"
    assert done.stdout.splitlines()[-1] == last


def test_two_mistakes_are_two(tmp_path: Path) -> None:
    trace = TRACES["f16"]
    b = trace.registers["b"].copy()
    b[1], b[3] = b[1][:, ::-1], b[3][:, ::-1]
    done = diff(trace.write(tmp_path / "t.ptx", dict(enumerate(trace.run(b=b)))), "--singles")
    titles = [line for line in done.stdout.splitlines() if "the expected D against" in line]
    assert ["event 1:" in titles[0], "event 3, after the D expected of event 2:" in titles[1]] == [True, True]
    assert len(titles) == 2
    assert done.stdout.count("matches bit for bit") >= 2


def test_the_stretch_begins_behind_the_last_d_that_is_known(tmp_path: Path) -> None:
    """D of event 1 is as expected, that of 4 is not, and those between are not checked."""
    trace = TRACES["f16"]
    b = trace.registers["b"].copy()
    b[3] = b[3][:, ::-1]
    wrong = trace.run(b=b)
    done = diff(trace.write(tmp_path / "t.ptx", {1: trace.run()[1], 4: wrong[4]}))
    assert "events 2 to 4, which add to one D: " in done.stdout
    assert "matches bit for bit: B: row blocks of 8 2 and 3 exchanged" in done.stdout  # step 1 of the chain


def test_for_programs(tmp_path: Path) -> None:
    trace = TRACES["f16"]
    b = trace.registers["b"].copy()
    b[2] = b[2][:, ::-1]
    done = diff(trace.write(tmp_path / "t.ptx", dict(enumerate(trace.run(b=b)))), "--singles", "--json")
    first, last = json.loads(done.stdout)["subjects"]
    assert first["subject"].endswith("event 2: the expected D against what was read")
    assert last == {"subject": "", "as_expected": False, "followed": 2}


def test_what_follows_what(tmp_path: Path) -> None:
    trace = TRACES["sparse"]
    events = run_trace(read_trace(trace.write(tmp_path / "t.ptx", {}))).events
    before = predecessors(events)
    assert before == [None, 0, 1, 2, 3]
    whole = chain_before(events, before, 4, {})
    assert whole.events == (0, 1, 2, 3, 4)
    assert reproduces_d(events, whole, events[4].d)
    wrong = trace.run(**_stale(trace, 2))
    known = chain_before(events, before, 4, {3: wrong[3]})
    assert known.events == (4,)
    assert reproduces_d(events, known, wrong[4])
    assert not reproduces_d(events, whole, wrong[4])
    assert diagnose_chain(events, known, wrong[4]) is None
    found = diagnose_chain(events, whole, wrong[4])
    assert found is not None
    assert found.steps == 5
    assert any("step 2 reads B of step 1" in one.name for one in found.matches)


def test_an_expected_d_that_no_mistake_makes(tmp_path: Path) -> None:
    trace = TRACES["f16"]
    d = trace.run()[-1] ^ np.uint32(0x00300000)
    done = diff(trace.write(tmp_path / "t.ptx", {STEPS - 1: d}), "--singles")
    assert done.return_value == 1
    titles = [line for line in done.stdout.splitlines() if "the expected D against" in line]
    assert ["events 0 to 4" in titles[0], "event 4:" in titles[1]] == [True, True]


def test_of_wgmma() -> None:
    """B lies in shared memory, and a step that reads the tile of the one before it is found."""
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", target="sm_90a")
    group = warpsim.Warpgroup()
    words = [warpsim.pack(form, "a", _floats(64, 16).astype(np.float16)) for _ in range(STEPS)]
    wrong = list[str]()
    lines = ["wgmma.fence.sync.aligned;"]
    for at, a in enumerate(words):
        group[f"%a{at}_<4>"] = a
        where = canonical_descriptor(
            1024 * at, TileShape(mn=8, k=16, element_bits=16, major="K"), swizzle="none"
        )
        store_tile(group.shared.data, where, _floats(8, 16).astype(np.float16).view(np.uint16), major="K")
        group[f"%b{at}"] = np.uint64(where.encode())
        registers = "{%d0, %d1, %d2, %d3}"
        a_names = ", ".join(f"%a{at}_{one}" for one in range(4))
        lines.append(f"{form.mnemonic} {registers}, {{{a_names}}}, %b{at}, {int(at > 0)}, 1, 1, 0;")
        wrong.append(lines[-1].replace("%b2", "%b1"))
    end = ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    group["%d<4>"] = np.zeros((128, 4), np.uint32)
    events = group.run("\n".join(lines + end))
    d = group.run("\n".join([lines[0], *wrong, *end]))[-1].d
    found = chain_before(events, predecessors(events), STEPS - 1, {})
    assert found.events == tuple(range(STEPS))
    diagnosis = diagnose_chain(events, found, d)
    assert diagnosis is not None
    assert diagnosis.steps == STEPS
    assert [str(one) for one in diagnosis.matches]
    assert all("step 2" in one.name for one in diagnosis.matches)
