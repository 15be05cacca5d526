"""``warpsim layout``: text, files, JSON of every question, colours on a terminal, and usage."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import xml.etree.ElementTree as ET

import click
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli
from warpsim.show.views.layouts.layout import layout_document, layout_lines

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
FORM = warpsim.decode(SPARSE)


def run(*arguments):
    return CliRunner().invoke(cli, ["layout", *map(str, arguments)], standalone_mode=False)


@pytest.mark.parametrize("operand", [None, "a", "e"])
@pytest.mark.parametrize("notation", ["ptx", "cute"])
def test_text(operand, notation):
    chosen = ["--operand", operand] if operand else []
    lines = layout_lines(FORM, operand, selector=1, notation=notation)
    text = run(SPARSE, *chosen, "--notation", notation, "--selector", 1).output
    assert text.splitlines() == lines
    assert warpsim.draw_layout(SPARSE, operand, selector=1, notation=notation) == "\n".join(lines)


@pytest.mark.parametrize("name", ["figures.svg", "figures.html"])
def test_files(tmp_path, name):
    result = run(SPARSE, "--operand", "e", "--selector", 1, "-o", tmp_path / name)
    assert (result.return_value, result.output) == (0, "")
    text = (tmp_path / name).read_text()
    drawn = warpsim.draw_layout(SPARSE, "e", selector=1, format=name.rpartition(".")[2])
    assert text.rstrip("\n") == drawn.rstrip("\n")
    if name.endswith("svg"):
        assert ET.fromstring(text).tag.endswith("svg")


def test_python_refuses_other_formats():
    with pytest.raises(warpsim.OperandError, match="format 'png': expected 'text', 'svg' or 'html'"):
        warpsim.draw_layout(SPARSE, format="png")


def test_a_lane_of_all_operands():
    every = run(SPARSE, "--lane", 5).output
    parts = [run(SPARSE, "--lane", 5, "--operand", operand).output for operand in "abcde"]
    assert every == "".join(parts)
    places = json.loads(run(SPARSE, "--lane", 5, "--json").output)["places"]
    assert {place["operand"] for place in places} == set("abcde")
    assert len(places) == len(every.splitlines())


def test_json_of_every_question():
    assert json.loads(run(SPARSE, "--json").output) == json.loads(json.dumps(layout_document(FORM)))
    element = json.loads(run(SPARSE, "--operand", "d", "--element", "3,5", "--json").output)
    place = warpsim.find_element(SPARSE, "d", 3, 5)
    assert (element["place"]["lane"], element["place"]["register"]) == (place.lane, place.register) == (14, 1)
    found = warpsim.find_sources(SPARSE, 3, 5)
    assert [one["lane"] for one in element["feeds"]["a"]] == [one.lane for one in found.a]
    assert len(element["feeds"]["metadata"]) == 8
    lane = json.loads(run(SPARSE, "--operand", "a", "--lane", 5, "--register", 2, "--json").output)
    held = warpsim.find_lane(SPARSE, "a", 5, 2)
    assert [(one["row"], one["column"]) for one in lane["places"]] == [(one.row, one.column) for one in held]
    error = json.loads(run(SPARSE, "--operand", "a", "--element", "99,0", "--json").stdout)
    assert error["errors"][0]["kind"] == "OperandError"


def test_tiles_in_shared_memory(tmp_path):
    tile = ("--operand", "b", "--swizzle", "64B")
    assert "n \\ k |  0..7  | 8..15  | 16..23 | 24..31" in run(WGMMA, *tile).output
    assert run(WGMMA, *tile, "--element", "9,3").output == "B[9,3]: byte 0x00c2 from the start of the tile\n"
    assert json.loads(run(WGMMA, *tile, "--element", "9,3", "--json").output)["address"] == 0xC2
    assert json.loads(run(WGMMA, *tile, "--json").output)["addresses"][3][9] == 0xC2
    assert "k \\ n" in run(WGMMA, "--operand", "b", "--swizzle", "none", "--major", "MN").output
    for name in ("tile.svg", "tile.html"):
        assert run(WGMMA, *tile, "-o", tmp_path / name).return_value == 0
        assert "swizzle 64B" in (tmp_path / name).read_text()
    assert run(SPARSE, *tile).return_value == 3


def terminal(*arguments: str, **environment: str) -> str:
    """What the command writes to a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "warpsim", "layout", *arguments]
    settings = {"TERM": "xterm-256color", "COLUMNS": "90", "COLORTERM": "truecolor", **environment}
    with subprocess.Popen(command, stdout=slave, env=os.environ | settings) as process:
        os.close(slave)
        written = b""
        while True:
            try:
                block = os.read(master, 1 << 16)
            except OSError:
                break
            if not block:
                break
            written += block
        process.wait()
    os.close(master)
    return written.decode()


@pytest.mark.parametrize(
    "arguments", [(SPARSE, "--operand", "e"), (WGMMA, "--operand", "b", "--swizzle", "64B")]
)
def test_colours_on_a_terminal_only(arguments):
    assert "\x1b[" in terminal(*arguments)
    assert "\x1b[" not in terminal(*arguments, NO_COLOR="1")
    assert "\x1b[" not in run(*arguments).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--element", "1,1", "--lane", "0"], "--element and --lane are two questions: give one of them"),
        (["--element", "0,0"], "--element needs --operand"),
        (["--register", "0"], "--register needs --lane and --operand"),
        (["--register", "0", "--lane", "0"], "--register needs --lane and --operand"),
        (["--operand", "a", "--element", "x"], "--element 'x': expected ROW,COLUMN such as 3,17"),
        (["-o", "x.gif"], "--out x.gif: its name ends in .svg, .png, .pdf, .tex, .html"),
        (
            ["-o", "x.svg", "--notation", "cute"],
            "--out writes all figures: leave --element, --lane, --json and --notation out",
        ),
        (
            ["--swizzle", "32B"],
            "--swizzle goes with --operand a or b: a tile in shared memory, without lanes",
        ),
    ],
)
def test_usage(arguments, message):
    result = run(SPARSE, *arguments)
    assert isinstance(result.exception, click.UsageError)
    assert result.exception.message == message
