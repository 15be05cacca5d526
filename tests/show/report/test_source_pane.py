"""The sources of a recorded launch: kept in the recording, and beside the matrices of the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.base.errors import TraceError
from warpsim.observe.recording.listing import ListedLine, listing_of
from warpsim.show.cli import cli
from warpsim.show.report.launches import source_documents
from warpsim.workbench.vectors.formats.recording import read_recording, write_recording
from warpsim.workbench.vectors.formats.recording_parts import listing_document, listing_from

SOURCE = [f"// line {number} <b>" for number in range(1, 31)]
MMA = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
    "{%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r1}, {%f1, %f1, %f1, %f1};"
)
TEXT = f"""\
.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z1kPf(.param .u64 out) {{
    .reg .b32 %r<9>; .reg .f32 %f<9>;
    .loc 1 20 1
    mov.u32 %r1, 0; mov.u32 %r2, 0; mov.f32 %f1, 0f00000000;
    .loc 1 9 1, function_name $n1, inlined_at 1 20 1
    {MMA}
    {MMA}
    .loc 1 28 1
    ret;
}}
.file 1 "FOLDER/k.cu"
"""


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text("\n".join(SOURCE))
    Path("k.ptx").write_text(TEXT.replace("FOLDER", str(tmp_path)))
    arguments = ["launch", "k.ptx", "--entry", "k", "--block", "64", "--arg", "hex:b64:0x0"]
    done = CliRunner().invoke(cli, [*arguments, "--trace-mma", "k.npz"], standalone_mode=False)
    assert done.exception is None, done.exception
    Path("k.cu").unlink()
    return read_recording("k.npz")


def test_lines_around_matrix_instructions_are_kept(recording: Any) -> None:
    assert [each.line for each in recording.listing] == [*range(6, 13), *range(17, 24)]
    assert [each.text for each in recording.listing] == [SOURCE[each.line - 1] for each in recording.listing]
    statements = {each.line: each.statements for each in recording.listing if each.statements}
    assert statements.keys() == {9, 20}
    assert statements[9] == ((9, MMA), (10, MMA))
    assert [line for line, _ in statements[20]] == [7, 7, 7]


def test_lines_know_their_instructions(recording: Any) -> None:
    (file,) = source_documents(recording)
    lines = {each["line"]: each for each in file["lines"]}
    assert file["file"] == "k.cu"
    assert lines[9]["instructions"] == lines[20]["instructions"] == [0, 1, 2, 3]
    assert [each["instructions"] for each in lines[9]["statements"]] == [[0, 1], [2, 3]]
    assert [each["instructions"] for each in lines[20]["statements"]] == [[], [], []]
    assert [line for line, each in lines.items() if each["gap"]] == [6, 17]


def test_the_page_has_sources_statements_and_matrices(recording: Any) -> None:
    warpsim.view(recording).save("k.html")
    html = Path("k.html").read_text()
    pane = html[html.index('<section id="source"') : html.index('<div id="shown"')]
    assert html.index('<div class="beside">') < html.index('<section id="source"')
    number = r'<span class="number">(\d+)</span>'
    assert re.findall(number + r"(?:<button[^>]*>)?<code>// line (\d+) &lt;b&gt;</code>", pane) == [
        (str(each.line), str(each.line)) for each in recording.listing
    ]
    listed = re.findall(r'data-line="(\d+)" data-instructions="([\d ]*)">', pane)
    assert listed == [("7", ""), ("7", ""), ("7", ""), ("9", "0 1"), ("10", "2 3")]
    assert 'data-instructions="0 1 2 3" data-statements="3 4"' in pane
    document = json.loads(re.search(r'id="document">(.*?)</script>', html)[1])  # type: ignore[index]
    assert document["instructions"][0]["source"] == "k.cu:9"
    assert document["launch"]["kernel"] == "k(float*)"
    warpsim.view(replace(recording, listing=())).save("k.html")
    assert '<section id="source"' not in Path("k.html").read_text()


def test_kernels_without_sources_have_no_listing(recording: Any) -> None:
    text = "\n".join(line for line in TEXT.split("\n") if ".loc" not in line)
    module = warpsim.load(text)
    report = module["k"](1, 32, [None], record=True)
    assert listing_of(module.module.code, report.events) == ()


@pytest.mark.parametrize("change", ["none", "line", "text", "statement", "keys", "many"])
def test_listings_are_not_trusted(change: str) -> None:
    good = listing_document((ListedLine(file="k.cu", line=3, text="x", statements=((7, "ret;"),), more=2),))
    assert listing_document(listing_from(json.loads(json.dumps(good)))) == good
    wrong: dict[str, Any] = {
        "none": None,
        "line": [good[0] | {"line": -1}],
        "text": [good[0] | {"text": 7}],
        "statement": [good[0] | {"statements": [[7]]}],
        "keys": [{"file": "k.cu"}],
        "many": good * 1001,
    }
    with pytest.raises(TraceError, match=r"^listing"):
        listing_from(wrong[change])


def test_a_recording_without_a_listing_is_read(recording: Any) -> None:
    write_recording("again.npz", replace(recording, listing=()))
    again = read_recording("again.npz")
    assert again.listing == ()
    assert np.array_equal(again.events[0].d, recording.events[0].d)
