"""``warpsim launch --timeline``: the picture that is written, and what cannot be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner, Result
from tests.helpers.kernel_cases import FOLDER
from warpsim.base.files.read_files import inputs_kept
from warpsim.observe.recording.recorder import Recorder
from warpsim.observe.recording.timeline import TimelineRecorder
from warpsim.show.cli import cli

ARRAYS = ("random:f16:32x64:1", "random:f16:32x64:2", "zeros:f32:32x32", "u32:32", "u32:32", "u32:64")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(FOLDER / "bulk_ring.ptx", tmp_path)
    return tmp_path


def launch(*options: str, file: str = "bulk_ring.ptx") -> Result:
    given = [part for one in ARRAYS for part in ("--arg", one)]
    where = ("--entry", "bulk_ring", "--grid", "1", "--block", "96")
    return CliRunner().invoke(cli, ["launch", file, *where, *given, *options], standalone_mode=False)


def texts(path: Path) -> list[str]:
    return [one.text or "" for one in ElementTree.parse(path).iter() if one.tag.endswith("}text")]


def test_the_picture_is_written(folder: Path) -> None:
    done = launch("--timeline", "ring.svg", "--schedule", "latest")
    assert done.return_value == 0
    assert done.stdout.splitlines()[-1] == "  33 events drawn in ring.svg"
    found = texts(folder / "ring.svg")
    assert found[:2] == ["bulk_ring of bulk_ring.ptx", "sm_90a, grid 1 x 1 x 1, schedule latest"]
    assert [f"warp {warp}" for warp in range(3)] == [one for one in found if one.startswith("warp ")][:3]


def test_the_same_for_programs(folder: Path) -> None:
    done = launch("--timeline", "ring.svg", "--json", "--select", "warp=2")
    document = json.loads(done.stdout)
    assert document["timeline"]["file"] == "ring.svg"
    assert document["timeline"]["events"] == 9
    assert "sm_90a, grid 1 x 1 x 1, schedule program, warp=2 only" in texts(folder / "ring.svg")


def test_a_launch_that_fails_is_drawn(folder: Path) -> None:
    text = (folder / "bulk_ring.ptx").read_text().split("\n")
    left = "\n".join("" if "mbarrier.arrive.expect_tx" in line else line for line in text)
    (folder / "stuck.ptx").write_text(left)
    done = launch("--timeline", "stuck.svg", "--checks", "off", file="stuck.ptx")
    assert done.return_value == 3
    assert "deadlock" in done.stderr
    assert "does not end" in texts(folder / "stuck.svg")


def test_nothing_is_selected(folder: Path) -> None:
    done = launch("--timeline", "none.svg", "--select", "cta=7")
    assert done.return_value == 0
    assert done.stdout.splitlines()[-1] == "  nothing is drawn in none.svg: no event is selected"
    assert not (folder / "none.svg").exists()


def test_more_events_than_a_timeline_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch ended there, and its results were lost."""
    init = TimelineRecorder.__init__
    monkeypatch.setattr(
        TimelineRecorder, "__init__", lambda self, *given, **named: init(self, *given, limit=20, **named)
    )
    done = launch("--timeline", "ring.svg", "--save", "2=d.npy", "--expect", "2=whole.npy", "--json")
    assert done.return_value == 3  # whole.npy is not there
    launch("--save", "2=whole.npy")
    done = launch("--timeline", "ring.svg", "--save", "2=d.npy", "--expect", "2=whole.npy")
    assert done.return_value == 0
    assert np.load(folder / "d.npy").any()
    assert [one.strip() for one in done.stdout.splitlines()[2:4]] == [
        "20 events drawn in ring.svg",
        "there are more events than a timeline has: --select fewer for those after them",
    ]
    found = texts(folder / "ring.svg")
    assert "only the first 20 events: what was under way then has no end here" in found
    document = json.loads(launch("--timeline", "ring.svg", "--json").stdout)
    assert document["timeline"] == {"file": "ring.svg", "events": 20, "whole": False}
    document = json.loads(launch("--timeline", "ring.svg", "--json", "--select", "warp=2").stdout)
    assert document["timeline"] == {"file": "ring.svg", "events": 9, "whole": True}


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_a_launch_that_is_interrupted_writes_nothing(
    interruption: type[BaseException], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran until then was written as the recording of the launch."""
    (folder / "kept.npz").write_bytes(b"of another launch")
    before = set(folder.iterdir())
    matrix, recorded = Recorder.matrix, list[int]()

    def interrupted(self: Recorder, *given: Any) -> None:
        matrix(self, *given)
        recorded.append(len(self.events()))
        raise interruption

    monkeypatch.setattr(Recorder, "matrix", interrupted)
    for file in ("new.npz", "kept.npz"):
        done = launch("--timeline", "ring.svg", "--save", "2=d.npy", "--trace-mma", file)
        assert not done.stdout
        assert recorded.pop() > 0
    assert set(folder.iterdir()) == before
    assert (folder / "kept.npz").read_bytes() == b"of another launch"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("none/ring.svg",), "--timeline none/ring.svg: there is no folder none"),
        (
            ("ring.gif",),
            "--timeline ring.gif: a figure is written to a file that ends in .svg, .png, .pdf, .tex",
        ),
        (("ring.svg", "--origins", "A=0,B=1"), "--origins draws nothing: --timeline does not go with it"),
    ],
)
def test_what_is_refused_before_the_launch(options: tuple[str, ...], said: str) -> None:
    done = launch("--timeline", *options)
    assert isinstance(done.exception, click.UsageError)
    assert done.exception.message == said


def test_no_picture_replaces_an_input(folder: Path) -> None:
    shutil.copy(folder / "bulk_ring.ptx", folder / "kernel.svg")
    before = (folder / "kernel.svg").read_text()
    with inputs_kept():
        done = launch("--timeline", "kernel.svg", file="kernel.svg")
    assert done.return_value == 3
    assert "kernel.svg is one of the inputs, which this would replace: write to another file" in done.stderr
    assert (folder / "kernel.svg").read_text() == before
