"""``--break FILE:LINE``: which statements a line of a source stops at, and what is printed there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim import OperandError
from warpsim.base.errors import SourceLine
from warpsim.observe.stops.debugger import Debugger, WarpStop
from warpsim.observe.stops.stop_places import SourcePlace, break_of, statements_at
from warpsim.show.cli import cli
from warpsim.show.views.timelines.timeline import captions
from warpsim.workbench.vectors.formats.recording import read_recording
from warpsim.workbench.vectors.formats.recording_parts import source_document, source_from

MMA = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
    "{%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r1}, {%f1, %f1, %f1, %f1};"
)
# twice(x) at a.cuh:3 calls add(x) at a.cuh:9; k.cu calls twice at lines 5 and 6, in a loop of two at line 4
TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<9>; .reg .pred %p<2>; .reg .f32 %f<9>;
    .loc 1 4 1
    mov.u32 %r1, 0; mov.u32 %r2, 0;
LOOP:
    .loc 1 5 1
    .loc 2 3 1, function_name $n0, inlined_at 1 5 1
    add.u32 %r1, %r1, 1;
    .loc 2 9 1, function_name $n1, inlined_at 2 3 1
    add.u32 %r1, %r1, 2;
    add.u32 %r1, %r1, 3;
    .loc 2 3 1, function_name $n0, inlined_at 1 6 1
    add.u32 %r1, %r1, 4;
    .loc 2 9 1, function_name $n1, inlined_at 2 3 1
    add.u32 %r1, %r1, 5;
    .loc 1 4 9
    add.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 2; @%p1 bra LOOP;
    .loc 1 7 1
    mov.f32 %f1, 0f00000000;
    MMA
    mov.f32 %f1, 0f00000000;
    MMA
    ret;
}
.file 1 "/nowhere/k.cu"
.file 2 "/nowhere/lib/a.cuh"
""".replace("MMA", MMA)


def stopped(*breaks: str, text: str = TEXT, **options: Any) -> list[tuple[int, int]]:
    """Return line and execution of each stop of warp 0."""
    stops = list[WarpStop]()
    debugger = Debugger(show=stops.append, breaks=[break_of(each) for each in breaks], **options)
    warpsim.load(text)["k"](1, 32, [None], observers=[debugger], checks="off")
    return [(stop.line, stop.index) for stop in stops]


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("k.cu:4", [7, 20]),  # where each run begins
        ("k.cu:5", [11]),  # with what is inlined there
        ("a.cuh:3", [11, 16]),  # each place where it is inlined
        ("lib/a.cuh:9", [13, 18]),
        ("/nowhere/k.cu:6", [16]),
        ("k.cu:7", [23, 25]),  # the matrix instructions
    ],
)
def test_statements_of_a_line(place: str, lines: list[int]) -> None:
    module = warpsim.load(TEXT).module
    module.bind()
    wanted = break_of(place)
    assert isinstance(wanted, SourcePlace)
    assert [
        module.code[number].statement.location().line for number in statements_at(module.code, wanted)
    ] == lines


def test_calls_of_calls_are_known() -> None:
    module = warpsim.load(TEXT).module
    module.bind()
    source = (
        next(each for each in module.code if each.statement.location().line == 18).statement.location().source
    )
    assert source is not None
    assert source.inlined_at is not None
    assert [str(source), str(source.inlined_at), str(source.inlined_at.inlined_at)] == [
        "/nowhere/lib/a.cuh:9",
        "/nowhere/lib/a.cuh:3",
        "/nowhere/k.cu:6",
    ]


def test_the_first_stop_of_a_line_is_shown_and_all_that_are_selected() -> None:
    assert stopped("a.cuh:9") == [(13, 0)]
    everything = warpsim.observe.recording.selection.selection_of("warp=0")
    assert stopped("a.cuh:9", selection=everything) == [(13, 0), (18, 0), (13, 1), (18, 1)]
    assert stopped("k.cu:7", "13", selection=everything) == [(13, 0), (13, 1), (23, 0), (25, 0)]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("k.cu:1", "no statement comes from k.cu:1; the nearest lines with statements are 4 and 5"),
        (
            "b.cu:1",
            "b.cu:1: no statement comes from that file; the PTX names /nowhere/k.cu, /nowhere/lib/a.cuh",
        ),
        ("cu:4", "cu:4: no statement comes from that file"),
        ("0", "0: expected a line of the PTX, as in 120, or of a source, as in gemm.cu:153"),
        ("k.cu:", "k.cu:: expected a line of the PTX"),
        ("k.cu:0", "k.cu:0: expected a line of the PTX"),
    ],
)
def test_lines_that_are_not_there(place: str, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        stopped(place)
    assert caught.value.message.startswith(message)


def test_a_text_without_lines_says_how_to_get_them() -> None:
    text = "\n".join(line for line in TEXT.split("\n") if ".loc" not in line and ".file" not in line)
    with pytest.raises(
        OperandError, match=r"^k.cu:4: the PTX names no lines of a source; nvcc -lineinfo writes"
    ):
        stopped("k.cu:4", text=text)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(TEXT.replace("/nowhere", str(tmp_path)))
    Path("k.cu").write_text("".join(f"line {number}\n" for number in range(1, 9)))
    options = ["launch", "k.ptx", "--entry", "k", "--block", "32", "--arg", "hex:b64:0x0", "--lane", "3"]

    def run(place: str) -> Any:
        return CliRunner().invoke(cli, [*options, "--break", place], standalone_mode=False)

    assert run("k.cu:5").output.startswith(
        "lib/a.cuh:3 (k.ptx:11): CTA (0, 0, 0), warp 0, step 0: add.u32 %r1, %r1, 1;\n"
        "    inlined at k.cu:5\n"
        "    line 5\n"
        "  lane  %r1 .b32    %r1 after\n"
        "  3     0x00000000  0x00000001\n"
    )
    assert "no statement comes from k.cu:2" in str(run("k.cu:2").exception)
    assert "as in gemm.cu:153" in str(run("k.cu:x").exception)


def test_recordings_and_timelines_name_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(TEXT.replace("/nowhere", str(tmp_path)))
    Path("k.cu").write_text("".join(f"line {number}\n" for number in range(1, 9)))

    def run(*arguments: str) -> str:
        return CliRunner().invoke(cli, list(arguments), standalone_mode=False).output

    launch = ("launch", "k.ptx", "--entry", "k", "--block", "32", "--arg", "hex:b64:0x0")
    run(*launch, "--trace-mma", "k.npz", "--timeline", "k.svg")
    Path("k.cu").unlink()  # a recording keeps what it quotes
    events = read_recording("k.npz").events
    assert [str(event.source) for event in events] == ["k.cu:7", "k.cu:7"]
    assert str(events[0]).startswith("k.cu:7 (line 23), CTA (0, 0, 0), warp 0, step 0: mma")
    assert events[0].location.excerpt().startswith("    line 7\n")
    assert "  k.cu:7 (line 23): 1 execution, 128 words as recorded" in run("run", "k.npz")
    assert "k.cu:7 (lines 23, 25): 2 times, first mma.sync" in Path("k.svg").read_text()
    strip = read_recording("k.npz").timeline.strips[0]
    assert captions(strip) == ("2x mma, k.cu:7", "2x mma", "7")


def test_calls_are_kept_in_recordings() -> None:
    call = SourceLine("a.cu", 3, 5, "f();")
    source = SourceLine("b.cuh", 7, 0, "\tg();", call)
    assert source_from(json.loads(json.dumps(source_document(source)))) == source
    for wrong in (
        None,
        {},
        source_document(source) | {"line": 0},
        source_document(source) | {"file": "a\nb"},
    ):
        with pytest.raises(warpsim.TraceError, match=r"^source: "):
            source_from(wrong)
    for _ in range(100):
        source = SourceLine("b.cuh", 7, inlined_at=source)
    assert str(source_from(source_document(source))) == "b.cuh:7"
