"""``warpsim launch --trace-mma``, ``--break`` and ``--watch``, and the verbs that take a recording."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner, Result
from tests.helpers.recorded import LOOP, MMA_LINE, recording
from warpsim.base.errors import TraceError
from warpsim.base.files.archives import read_arrays, write_arrays
from warpsim.show.cli import cli
from warpsim.workbench.vectors.formats.manifest import digest_of
from warpsim.workbench.vectors.formats.recording import is_recording, read_recording, write_recording
from warpsim.workbench.vectors.recordings import Recording

DENSE = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@cache
def whole() -> Recording:
    """A right recording, which no test changes."""
    return recording()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


def launch(*arguments: object) -> Result:
    options = (
        "--entry",
        "loop",
        "--grid",
        "2,2",
        "--block",
        64,
        "--checks",
        "off",
        "--arg",
        "zeros:f32:64x4",
    )
    return run("launch", "loop.ptx", *options, *arguments)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("loop.ptx").write_text(LOOP)
    write_recording("whole.npz", whole())
    return tmp_path


def _wrong() -> Recording:
    """The recording with another bit in D of its sixth event."""
    events = list(whole().events)
    d = events[5].d.copy()
    d[7, 2] ^= 4
    events[5] = replace(events[5], d=d)
    return replace(whole(), events=tuple(events))


# --- files -----------------------------------------------------------------------------------------


def test_a_recording_comes_back_whole() -> None:
    found = read_recording("whole.npz")
    assert is_recording("whole.npz")
    assert not is_recording("loop.ptx")
    assert (found.kernel, found.file, found.target) == ("loop", "loop.ptx", "sm_80")
    assert len(found.events) == len(whole().events) == 32
    for ours, theirs in zip(whole().events, found.events, strict=True):
        assert str(ours) == str(theirs)
        assert ours.statement.location().column == theirs.statement.location().column
        assert (ours.statement, ours.bound, ours.pc, ours.time) == (
            theirs.statement,
            theirs.bound,
            theirs.pc,
            theirs.time,
        )
        assert ours.inputs.selector == theirs.inputs.selector
        np.testing.assert_array_equal(ours.d, theirs.d)
        for name, words in ours.inputs.registers.items():
            np.testing.assert_array_equal(words, theirs.inputs.registers[name])


def test_the_same_recording_gives_the_same_bytes() -> None:
    write_recording("again.npz", read_recording("whole.npz"))
    assert Path("again.npz").read_bytes() == Path("whole.npz").read_bytes()


def test_launch_writes_what_python_records() -> None:
    done = launch("--trace-mma", "own.npz")
    assert done.return_value == 0
    assert "  32 matrix instructions recorded in own.npz\n" in done.stdout
    assert Path("own.npz").read_bytes() == Path("whole.npz").read_bytes()


def test_a_launch_that_fails_leaves_what_came_before() -> None:
    Path("loop.ptx").write_text(LOOP.replace("st.global.v4.f32 [%base]", "st.global.v4.f32 [%base+4096]"))
    done = launch("--trace-mma", "own.npz")
    assert done.return_value == 3
    assert len(read_recording("own.npz").events) == 32
    said = f"an error stopped the launch, and the recording ends there: {read_recording('own.npz').error}"
    assert "loop.ptx:22" in said
    assert said in run("verify", "own.npz").stdout
    assert said in run("run", "own.npz", "--show", "none").stdout
    assert read_recording("whole.npz").error == ""


def test_a_recording_says_what_was_selected() -> None:
    assert launch("--trace-mma", "own.npz", "--select", "cta=1,0 warp=1").return_value == 0
    found = read_recording("own.npz")
    assert (len(found.events), found.selection) == (4, "cta=1,0,0 warp=1")


def _changed(change: Any) -> None:
    """Write ``bad.npz``, the recording after a change of its manifest and arrays."""
    arrays = dict(read_arrays(Path("whole.npz"), kinds="uiU"))
    manifest = json.loads(str(arrays["manifest"]))
    change(manifest, arrays)
    write_arrays(Path("bad.npz"), arrays | {"manifest": np.array(json.dumps(manifest))})


def _set(path: str, value: Any) -> Any:
    """A change of one entry of the manifest, by its path."""
    *inner, last = path.split("/")

    def change(manifest: Any, arrays: Any) -> None:
        for name in inner:
            manifest = manifest[int(name)] if isinstance(manifest, list) else manifest[name]
        manifest[last] = value

    return change


def _flip(manifest: Any, arrays: Any) -> None:
    arrays["0.d"] = arrays["0.d"] ^ np.uint32(1)


def _extra(manifest: Any, arrays: Any) -> None:
    arrays["7.d"] = arrays["0.d"]


def _without_last(manifest: Any, arrays: Any) -> None:
    """What an interrupted launch once left: fewer executions, each with its digest."""
    last = manifest["statements"].pop()
    assert last["line"] == 20
    for name in [name for name in arrays if name.startswith("1.")]:
        del arrays[name]


def _moved(manifest: Any, arrays: Any) -> None:
    arrays["0.where"][0, 5] += np.uint64(1)
    manifest["statements"][0]["where"]["sha256"] = digest_of(arrays["0.where"])


def _short(manifest: Any, arrays: Any) -> None:
    del arrays["1.where"]


BROKEN: dict[str, tuple[Any, str]] = {
    "schema": (_set("schema", 1), "manifest: schema 1, but this version reads schema 2: record"),
    "target": (_set("target", "sm_1"), "manifest: unknown target 'sm_1'; known are sm_70"),
    "grid": (_set("grid", [1, 0, 1]), "manifest: grid is three positive integers"),
    "provenance": (_set("provenance", {}), "manifest: the kind of provenance is one of model, hardware"),
    "unknown": (_set("more", 1), "manifest: unknown key 'more'; the keys are schema, kind, kernel"),
    "unknown of a statement": (_set("statements/0/more", 1), "statement 0: unknown key 'more'"),
    "line": (_set("statements/0/line", 0), "statement 0: line is a number of at most 4,194,304"),
    "far line": (_set("statements/0/line", 1 << 40), "statement 0: line is a number of at most 4,194,304"),
    "text": (_set("statements/0/text", "ret; ret;"), "statement 0: 'ret; ret;' is not one statement"),
    "no text": (_set("statements/1/text", "{"), "the statements are not PTX:"),
    "another": (_set("statements/0/text", "ret;"), "statement 0:"),
    "smaller grid": (_set("grid", [1, 2, 1]), "statement 0: event 6 has x 1: the launch has none such"),
    "smaller block": (_set("block", [32, 1, 1]), "statement 0: event 1 has warp 1: the launch has none such"),
    "selector": (_set("statements/1/vectors/immediates/selector", 9), "statement 1: manifest: selector"),
    "changed data": (_flip, "statement 0: array 'd' does not have the SHA-256 of the manifest"),
    "more arrays": (_extra, "array '7.d' is of no statement"),
    "fewer statements": (
        _without_last,
        "the manifest says 32 events, but the file has 24: it is not the whole",
    ),
    "fewer words": (
        _set("words", 4000),
        "the manifest says 4000 words, but the file has 4,096: it is not the",
    ),
    "a word for a count": (_set("events", "all"), "the manifest says 'all' events, but the file has 32"),
    "another time": (_moved, "the manifest has SHA-256 "),
    "another error": (_set("error", "none"), "the manifest has SHA-256 "),
    "another kernel": (_set("kernel", "pool"), "the manifest has SHA-256 "),
    "another digest": (_set("sha256", 5), "the manifest has SHA-256 "),
    "fewer arrays": (_short, "statement 1: array 'where' is in the manifest, but not in the file"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_readers_believe_nothing(name: str) -> None:
    change, message = BROKEN[name]
    _changed(change)
    with pytest.raises(TraceError) as caught:
        read_recording("bad.npz")
    assert str(caught.value).startswith(f"bad.npz: {message}")


# --- verbs -----------------------------------------------------------------------------------------


def test_run_executes_every_event_again() -> None:
    done = run("run", "whole.npz", "--show", "none")
    assert done.return_value == 0
    assert done.stdout == (
        "whole.npz: sm_80, kernel loop, 32 matrix instructions\n"
        "  line 15: 24 executions, 3,072 words as recorded\n"
        "  line 20: 8 executions, 1,024 words as recorded\n"
        "  passed: 32 matrix instructions, 4,096 words compared bit by bit\n"
    )


def test_run_shows_the_last_event() -> None:
    lines = run("run", "whole.npz").stdout.splitlines()
    assert lines[1:3] == ["  CTA (1, 1, 0), warp 1, step 0:", f"  line 20: {SPARSE}"]
    assert lines[6] == "  0  42  42  42  42  42  42  42  42"


def test_run_as_data() -> None:
    (found,) = json.loads(run("run", "whole.npz", "--json").stdout)["runs"]
    assert (found["kernel"], found["grid"], found["passed"]) == ("loop", [2, 2, 1], True)
    assert [one["line"] for one in found["statements"]] == [15, 20]
    assert found["events"][3] == {"line": 15, "source": None, "cta": [0, 0, 0], "warp": 1, "step": 1}


def test_verify_names_the_place_of_what_differs() -> None:
    write_recording("wrong.npz", _wrong())
    done = run("verify", "wrong.npz")
    assert done.return_value == 1
    assert (
        f"  {DENSE} on sm_80: 1 of 3,072 words differ, in 1 of 24 cases\n"
        "    case 5 (line 15, CTA (0, 0, 0), warp 1, step 2): lane 7, register d2: "
        "expected 0x41c00004, got 0x41c00000; D[9,6]: expected 24.000008, got 24.0\n"
    ) in done.stdout
    assert run("verify", "whole.npz").return_value == 0


def test_explain_takes_the_event_that_is_selected() -> None:
    done = run("explain", "whole.npz", "--element", "9,6", "--select", "cta=1,0 warp=1 line=15 step=2")
    assert done.return_value == 0
    assert done.stdout.startswith(
        "loop.ptx:15: event 0 of 1: CTA (1, 0, 0), warp 1, step 2\n"
        "D[9,6] = 0x41c00000 = 24 in T7 %d2[31..0]\n"
    )


def test_explain_of_what_is_not_there() -> None:
    done = run("explain", "whole.npz", "--element", "0,0", "--select", "cta=9")
    assert done.return_value == 3
    assert done.stderr == "whole.npz: error: cta=9,0,0: none of the 32 recorded events is selected\n"


def test_lint_looks_at_sparse_statements() -> None:
    done = run("lint", "whole.npz", "--select", "cta=0 warp=0")
    assert done.return_value == 0
    assert done.stdout.splitlines()[:2] == [
        f"loop.ptx:20: {SPARSE}: selector 1",
        "  note: tile 0: selector 1 ignores lane 0 of each quad, which hold data [ignored-lanes]",
    ]
    assert run("lint", "whole.npz", "--select", "line=15").stdout == "no sparse instruction\n"


def test_diff_of_two_recordings() -> None:
    write_recording("wrong.npz", _wrong())
    assert run("diff", "whole.npz", "whole.npz").stdout == "equal, bit for bit: 32 matrix instructions\n"
    done = run("diff", "whole.npz", "wrong.npz")
    assert done.return_value == 1
    assert done.stdout == (
        "1 of 32 matrix instructions differ\n"
        "  line 15, CTA (0, 0, 0), warp 1, step 2: 1 of 128 words of D differ, from the same operands\n"
        "the first that differs by itself: line 15, CTA (0, 0, 0), warp 1, step 2, event 5\n"
        "  D of the first is right for what was read, D of the second is not\n"
        "  the second's D against what both read:\n"
        f"    {DENSE} on sm_80\n"
        "      D differs: 1 of 128 elements (by more than 1 ulp)\n"
    ) + _rest(done.stdout)


def _rest(text: str) -> str:
    """What the search says."""
    return text[text.index("      where: ") :]


def test_diff_says_what_was_read_otherwise_and_what_is_missing() -> None:
    first, second, *rest = whole().events
    registers = {**second.inputs.registers, "a": second.inputs.registers["a"] ^ np.uint32(1)}
    second = replace(second, inputs=replace(second.inputs, registers=registers))
    write_recording("other.npz", replace(whole(), events=(first, second, *rest[:-1])))
    assert run("diff", "whole.npz", "other.npz").stdout == (
        "1 of 31 matrix instructions differ\n"
        "  line 15, CTA (0, 0, 0), warp 1, step 0: 0 of 128 words of D differ, which read another a\n"
        "  1 in the first only; first: line 20, CTA (1, 1, 0), warp 1, step 0\n"
        "the first that differs by itself: line 15, CTA (0, 0, 0), warp 1, step 0, event 1\n"
        "  a: 64 of 64 words differ, in lanes 0 to 31\n"
        "  D of the first is right for what was read, D of the second is not\n"
    )


def test_diff_against_expected_registers() -> None:
    np.save("d.npy", np.stack([event.d for event in _wrong().events if event.line == MMA_LINE]))
    done = run("diff", "whole.npz", "d=d.npy", "--select", "line=15", "--singles")
    assert done.return_value == 1
    assert done.stdout.splitlines()[:3] == [
        "loop.ptx:15: CTA (0, 0, 0), warp 1, step 2: the expected D against what was read",
        f"  {DENSE} on sm_80",
        "    D differs: 1 of 128 elements (by more than 1 ulp)",
    ]
    assert run("diff", "whole.npz", "d=d.npy", "--select", "line=20").stderr == (
        "whole.npz: error: D has 24 tiles, but 8 events are selected: expected one each\n"
    )


def test_diff_of_a_recording_alone() -> None:
    write_recording("wrong.npz", _wrong())
    assert run("diff", "whole.npz").stdout == "every D is as expected, bit for bit\n"
    assert run("diff", "wrong.npz", "--singles").stdout.startswith(
        f"loop.ptx:15: {DENSE}: 1 of 24 cases differ\n"
    )


def test_view_shows_the_launch() -> None:
    done = run("view", "whole.npz", "--select", "warp=1")
    assert done.return_value == 0
    assert done.stdout == "whole.html: 16 instructions, 0.2 MB\n"
    page = Path("whole.html").read_text()
    assert "16 matrix instructions of kernel loop, grid" in page
    assert page.count('class="of-warp"') == 0
    assert 'id="timeline"' in page
    write_recording("old.npz", replace(whole(), timeline=None))
    assert run("view", "old.npz", "--select", "warp=1").return_value == 0
    old = Path("old.html").read_text()
    assert old.count('class="of-warp"') == 4
    assert '<button type="button" tabindex="-1" data-index="15"' in old
    assert "<small>CTA (0, 0, 0), warp 1, step 2</small>" in page


def test_a_page_is_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsim.show.report.overview.MOST_EVENTS", 31)
    write_recording("many.npz", whole())
    done = run("view", "many.npz")
    assert done.return_value == 3
    assert done.stderr == (
        "many.npz: error: the recording has 32 matrix instructions, but a page shows 31: "
        "select fewer, by cta=, warp=, line= or step=\n"
    )


# --- stops -----------------------------------------------------------------------------------------

LANE = """loop.ptx:15: CTA (1, 0, 0), warp 1, step 1: \
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, \
{%b0}, {%d0, %d1, %d2, %d3};
  A (16 x 8, f16) in %a0, %a1:
    %a0  0x40003c00  A[1,2] = 1, A[1,3] = 2
    %a1  0x3c003c00  A[9,2] = 1, A[9,3] = 1
  B (8 x 8, f16) in %b0:
    %b0  0x3c003c00  B[2,1] = 1, B[3,1] = 1
  C (16 x 8, f32) in %d0, %d1, %d2, %d3:
    %d0  0x41400000  C[1,2] = 12
    %d1  0x41400000  C[1,3] = 12
    %d2  0x41000000  C[9,2] = 8
    %d3  0x41000000  C[9,3] = 8
  D (16 x 8, f32) in %d0, %d1, %d2, %d3:
    %d0  0x41c00000  D[1,2] = 24
    %d1  0x41c00000  D[1,3] = 24
    %d2  0x41800000  D[9,2] = 16
    %d3  0x41800000  D[9,3] = 16
loop.ptx:17: CTA (1, 0, 0), warp 1, step 1 writes %i: add.u32 %i, %i, 1;
  lane  %i .u32       %i after
  5     0x00000001 1  0x00000002 2
"""


def test_what_a_lane_holds_at_a_line_and_where_a_register_is_written() -> None:
    select = "cta=1 warp=1 step=1"
    done = launch("--break", 15, "--watch", "%i", "--lane", 5, "--select", select)
    assert done.return_value == 0
    assert done.stdout.startswith(f"{LANE}loop.ptx: loop on sm_80\n")


def test_registers_of_other_statements_lane_by_lane() -> None:
    done = launch("--break", 18)
    assert done.stdout.startswith(
        "loop.ptx:18: CTA (0, 0, 0), warp 0, step 0: setp.lt.u32 %q, %i, 3;\n"
        "  lane   %q .pred  %q after  %i .u32\n"
        "  0..31  ?         true      0x00000001 1\n"
        "loop.ptx: loop on sm_80\n"
    )


def test_operands_as_matrices() -> None:
    lines = launch("--break", 20).stdout.splitlines()
    titles = [line for line in lines if line.endswith(":") and line.startswith("  ")]
    assert titles == [
        "  A (16 x 8, stored, f16) in %a0, %a1:",
        "  metadata (selector 1, indices) in %e:",
        "  B (16 x 8, f16) in %b0, %b1:",
        "  C (16 x 8, f32) in %d0, %d1, %d2, %d3:",
        "  D (16 x 8, f32) in %d0, %d1, %d2, %d3:",
    ]
    assert lines[2:4] == ["       0  1  2  3  4  5  6  7", "    0  1  2  1  2  1  2  1  2"]


def test_stops_as_data() -> None:
    (stop,) = json.loads(launch("--break", 17, "--json").stdout)["stops"]
    assert (stop["line"], stop["cta"], stop["warp"], stop["step"]) == (17, [0, 0, 0], 0, 0)
    assert stop["registers"]["%i"][:2] == ["0x00000000"] * 2
    assert stop["after"]["%i"][:2] == ["0x00000001"] * 2


def test_what_never_happens_is_said() -> None:
    done = launch("--break", 20, "--select", "step=4")
    assert done.stderr == "warpsim: note: line 20 was not executed by step=4\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--break", 14), "no statement begins at line 14; the nearest are at 13 and 15"),
        (("--watch", "%nix"), "no function has a register %nix"),
        (("--lane", 5), "--lane goes with --break or --watch"),
        (("--select", "warp=1"), "--select goes with --trace-mma, --timeline, --break or --watch"),
    ],
)
def test_what_cannot_be_looked_at(arguments: tuple[object, ...], message: str) -> None:
    done = launch(*arguments)
    assert isinstance(done.exception, click.UsageError)
    assert done.exception.message == message


def test_a_wrong_selection_points_at_the_word() -> None:
    done = launch("--break", 15, "--select", "warp=1 lin=15")
    assert isinstance(done.exception, click.BadParameter)
    assert done.exception.message == (
        "unknown field 'lin'; known are cta, warp, line, step\n    warp=1 lin=15\n           ^~~"
    )


def test_select_is_for_recordings() -> None:
    for verb in (("lint",), ("diff",), ("view",), ("explain", "--element", "0,0")):
        done = run(*verb, "loop.ptx", "--select", "warp=1")
        assert isinstance(done.exception, click.UsageError)
        assert done.exception.message == "--select chooses from a recording"


def test_a_break_at_a_statement_of_another_kernel_that_cannot_be_executed() -> None:
    text = LOOP + "\n.visible .entry other()\n{\n.reg .b32 %r;\nnope.u32 %r, 1;\nret;\n}\n"
    Path("loop.ptx").write_text(text)
    line = 1 + text[: text.index("nope")].count("\n")
    done = launch("--break", line, "--watch", "%r")
    assert done.return_value == 0, done.output
    assert f"line {line} was not executed" in done.stderr
    refused = run("launch", "loop.ptx", "--entry", "other", "--grid", 1, "--block", 32, "--break", line)
    assert refused.return_value == 3
    assert "PTX has no opcode 'nope'" in refused.output
