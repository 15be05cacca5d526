"""``warpsim verify``, ``warpsim convert`` and ``warpsim info --evidence``: output, files and exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import warpsim
from tests.helpers.example_sets import arguments, example, sparse_form
from tools.bench import verify as bench
from warpsim.isa.families import tcgen05
from warpsim.show.cli import main
from warpsim.workbench.vectors.formats import FORMATS, read_vectors, write_vectors
from warpsim.workbench.vectors.sets import make_vectors

FORM = sparse_form()
TRACE = Path(__file__).parents[3] / "traces" / "mma_sp_m16n8k32_f16.ptx"
FAILING = "//! target sm_90a\n.reg .b32 %r;\n//! load %r = 0x5\n//! expect %r = 0x7\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder with a good set, a bad one and a trace that fails."""
    monkeypatch.chdir(tmp_path)
    good = example(FORM, 3, labels=("first", "second", "third"))
    write_vectors("good.npz", good)
    d = good.d.copy()
    d[1, 14, 1] ^= np.uint32(1 << 23)
    d[2, 0, 0] ^= np.uint32(1)
    d[2, 0, 1] ^= np.uint32(1)
    bench = {"kind": "hardware", "chip": "NVIDIA H100"}
    write_vectors("bad.npz", replace(good, d=d, provenance=bench))
    given = arguments(FORM, 2, 0) | {"e": np.zeros((2, 32, 1), np.uint32)}
    write_vectors("undefined.npz", make_vectors(FORM, undefined="fallback", **given))
    (tmp_path / "fail.ptx").write_text(FAILING)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*given: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(given))
        assert isinstance(caught.value.code, int)
        return (caught.value.code, *capsys.readouterr())

    return command


def value(case: int, flipped: int) -> str:
    """D[3,5] of a case of the good set, with bits flipped."""
    d = read_vectors("good.npz").d[case]
    return str(warpsim.unpack(FORM, "d", d ^ np.uint32(flipped))[3, 5])


# --- verify ----------------------------------------------------------------------------------------


def test_what_is_as_expected_is_counted(run):
    code, out, err = run("verify", "good.npz", str(TRACE))
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"good.npz: 384 words as expected (by model: warpsim {warpsim.__version__})"
    assert out.splitlines()[1] == f"{TRACE}: 384 words as expected"
    summary = [line.split() for line in out.splitlines() if line.startswith(FORM.mnemonic)]
    assert summary == [[FORM.mnemonic, "sm_90a", "2", "5", "512", "0"]]
    assert out.endswith("passed: 2 of 2 files, 768 words compared bit by bit\n")


def test_a_difference_is_explained(run):
    code, out, err = run("verify", "bad.npz", "--show", "2")
    word = int(read_vectors("good.npz").d[1, 14, 1])
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[:2] == [
        "bad.npz: 3 of 384 words differ (by hardware: NVIDIA H100)",
        f"  {FORM} on sm_90a: 3 of 384 words differ, in 2 of 3 cases",
    ]
    assert lines[2] == (
        f"    case 1 (second): lane 14, register d1: expected {word ^ 1 << 23:#010x}, got {word:#010x}; "
        f"D[3,5]: expected {value(1, 1 << 23)}, got {value(1, 0)}"
    )
    assert lines[3].startswith("    case 2 (third): lane 0, register d0: expected ")
    assert lines[4] == "    and 1 more word"
    assert lines[-1] == "FAILED: 0 of 1 files, 384 words compared bit by bit"


def test_json_holds_everything(run):
    code, out, _ = run("verify", "good.npz", "bad.npz", "fail.ptx", "none.npz", "--json")
    document = json.loads(out)
    assert (code, document["passed"]) == (3, False)
    good, bad, trace = document["files"]
    assert (good["file"], good["kind"], good["passed"]) == ("good.npz", "vectors", True)
    assert bad["provenance"] == {"kind": "hardware", "chip": "NVIDIA H100"}
    (item,) = bad["instructions"]
    assert (item["mnemonic"], item["target"], item["evidence"]["label"]) == (str(FORM), "sm_90a", "inferred")
    assert (item["cases"], item["different_cases"], item["different_words"]) == (3, 2, 3)
    first = item["first"][0]
    assert (first["case"], first["label"], first["lane"], first["register"]) == (1, "second", 14, "d1")
    assert (first["row"], first["column"]) == (3, 5)
    assert (trace["kind"], trace["instructions"][0]["first"][0]["line"]) == ("trace", 4)
    assert document["summary"][0]["words"] + document["summary"][1]["words"] == 2 * 384 + 32
    assert document["errors"][0]["file"] == "none.npz"


def test_junit_has_a_suite_a_file(run, folder):
    code, _, _ = run("verify", "good.npz", "bad.npz", "undefined.npz", "--junit", "report.xml")
    assert code == 3
    root = ElementTree.parse("report.xml").getroot()
    assert [suite.get("name") for suite in root] == ["good.npz", "bad.npz", "undefined.npz"]
    counts = [(s.get("tests"), s.get("failures"), s.get("errors")) for s in root]
    assert counts == [("1", "0", "0"), ("1", "1", "0"), ("1", "0", "1")]
    failure = root.find("testsuite[2]/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "3 of 384 words differ, in 2 of 3 cases"
    assert failure.text is not None
    assert failure.text.count("\n") == 2
    error = root.find("testsuite[3]/testcase/error")
    assert error is not None
    assert error.get("type") == "UndefinedBehavior"


def test_xml_holds_what_a_file_name_may_be(run, folder):
    name = "a\x01<&\udcff.npz"
    try:
        (folder / name).write_bytes((folder / "good.npz").read_bytes())
    except (OSError, UnicodeError):
        pytest.skip("no such file names here")
    assert run("verify", name, "--junit", "report.xml")[0] == 0
    assert ElementTree.parse("report.xml").getroot()[0].get("name") == "a?<&?.npz"


def test_a_report_that_cannot_be_written_is_a_failure(run):
    code, _, err = run("verify", "good.npz", "--junit", "none/report.xml")
    assert (code, err) == (3, "none/report.xml: error: No such file or directory\n")


def test_undefined_metadata_is_an_error_or_read_literally(run):
    code, out, err = run("verify", "undefined.npz")
    assert code == 3
    assert err.startswith("undefined.npz: error: case 0: metadata field 0b0000 in lane ")
    assert out == "FAILED: 0 of 1 files, 0 words compared bit by bit\n"
    assert run("verify", "undefined.npz", "--allow-undefined")[0] == 0


@pytest.mark.parametrize("options", [("--engine", "reference"), ("--jobs", "1"), ("--jobs", "3")])
def test_every_way_of_executing_finds_the_same(run, options):
    assert run("verify", "bad.npz", *options) == run("verify", "bad.npz")


def test_another_target_is_another_chip(run):
    code, out, _ = run("verify", "good.npz", "--target", "sm_80")
    assert code == 1
    assert " on sm_80: " in out
    code, _, err = run("verify", "good.npz", "--target", "sm_75")
    assert (code, err) == (3, f"good.npz: error: {FORM} is not on sm_75; it is on sm_80 and later\n")


def test_other_files_are_still_verified(run):
    code, out, err = run("verify", "none.npz", "good.txt", "good.npz")
    assert code == 3
    assert err.splitlines()[0] == "none.npz: error: No such file or directory"
    assert err.splitlines()[1].startswith(
        "good.txt: error: unknown format suffix '.txt' of 'good.txt'; known are .npz, "
    )
    assert "good.npz: 384 words as expected" in out
    assert out.endswith("FAILED: 1 of 3 files, 384 words compared bit by bit\n")


def test_progress_is_for_terminals_only(folder):
    """Results on stdout are the same; where stderr is a terminal, the progress is shown there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "warpsim", "verify", "good.npz", "bad.npz"]
    shown: list[bytes] = []
    reader = Thread(target=lambda: shown.extend(_until_closed(ours)), daemon=True)
    reader.start()  # a terminal that nobody reads would stop the process
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=False, timeout=60)
    os.close(theirs)
    reader.join(timeout=10)
    os.close(ours)
    assert (done.returncode, b"verifying" in b"".join(shown)) == (1, True)
    piped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (piped.stdout, piped.stderr) == (done.stdout, "")


def _until_closed(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):  # that is how Linux says that nobody writes any more
        while data := os.read(terminal, 1 << 16):
            yield data


# --- convert ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_converting_there_and_back_gives_the_same_file(run, folder, one):
    suffix = one.suffixes[0]
    code, out, err = run("convert", "good.npz", f"copy{suffix}")
    assert (code, out, err) == (0, f"copy{suffix}: 3 cases of {FORM} on sm_90a\n", "")
    assert run("convert", f"copy{suffix}", "back.npz")[0] == 0
    assert (folder / "back.npz").read_bytes() == (folder / "good.npz").read_bytes()
    assert run("verify", f"copy{suffix}")[0] == 0


def test_formats_may_be_named(run):
    code, out, _ = run("convert", "good.npz", "rows.txt", "--to", "csv", "--json")
    assert (code, json.loads(out)["cases"]) == (0, 3)
    assert run("convert", "rows.txt", "rows.jsonl", "--from", "csv")[0] == 0
    code, _, err = run("convert", "rows.txt", "rows.npz", "--from", "x")
    assert (code, err) == (
        3, "rows.txt: error: unknown format 'x'; known are npz, readmemh, testfloat, c, csv, jsonl\n",
    )  # fmt: skip


def test_the_help_names_every_format(run):
    _, out, _ = run("convert", "--help")
    for one in FORMATS:
        assert f"  {one.name:10} {' '.join(one.suffixes)} " in out


def test_a_malformed_file_is_refused_with_its_line(run, folder):
    run("convert", "good.npz", "a.csv")
    lines = (folder / "a.csv").read_text().splitlines()
    number = next(index for index, line in enumerate(lines, 1) if line.startswith("1,4,"))
    lines[number - 1] = "1,4,xyz"
    (folder / "a.csv").write_text("\n".join(lines))
    code, out, err = run("convert", "a.csv", "b.npz")
    assert (code, out) == (3, "")
    assert err == f"a.csv:{number}:1: error: 3 cells, expected 20\n    1,4,xyz\n    ^\n"


# --- info --evidence -------------------------------------------------------------------------------


def test_evidence_is_a_table_of_operations_and_targets(run):
    code, out, _ = run("info", "--evidence")
    rows = [re.split(r"  +", line) for line in out.splitlines()]
    assert code == 0
    assert rows[0] == [
        "family",
        "operation",
        "D",
        "A.B.C",
        "k",
        "evidence",
        "outputs",
        "differ",
        "chips",
        "targets",
    ]
    assert ["mma", "f16", "f32", "f16.f16.f32", "8", "validated", "2,500", "0", "A100", "sm_80"] in rows
    assert [
        "mma.sp",
        "f16",
        "f32",
        "f16.f16.f32",
        "8, 16",
        "inferred",
        "-",
        "-",
        "-",
        "sm_80 and later",
    ] in rows


def test_evidence_as_data_has_every_form_on_every_target(run):
    _, out, _ = run("info", "--evidence", "--json")
    rows = json.loads(out)["evidence"]
    pairs = {(form, row["target"]) for row in rows for form in row["forms"]}
    forms = [*warpsim.instructions(), *tcgen05.typical(), *tcgen05.reported()]
    assert pairs == {(str(form), target) for form in forms for target in form.targets}
    for row in rows:
        if row["family"].startswith("tcgen05"):
            assert row["label"] in ("documented", "reported", "inferred")
            continue  # its mnemonic does not state the product
        told = warpsim.evidence(row["forms"][-1], row["target"], with_c=row["with_c"])
        assert (row["label"], row["chips"], row["outputs"]) == (told.label, told.chips, told.outputs)
        assert row["differences"] == (0 if told.outputs else None)


def test_evidence_of_one_form(run):
    code, out, _ = run("info", "--evidence", str(FORM), "--target", "sm_90a")
    assert code == 0
    assert out.splitlines()[1:] == [
        "mma.sp  f16        f32  f16.f16.f32  16  inferred  -        -       -      sm_90a",
        f"sm_90a: {warpsim.evidence(FORM, 'sm_90a')}",
    ]


def test_evidence_of_one_form_says_why_and_of_all_forms_does_not(run):
    form = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
    _, out, _ = run("info", "--evidence", form, "--target", "sm_90a")
    with_c, without = (str(warpsim.evidence(form, "sm_90a", with_c=added)) for added in (True, False))
    assert sorted(out.splitlines()[3:]) == [f"sm_90a without C: {without}", f"sm_90a: {with_c}"]
    assert "compared without C" in with_c
    _, table, _ = run("info", "--evidence")
    assert "compared without C" not in table


# --- info --promises -------------------------------------------------------------------------------


def test_promises_are_a_page(run):
    code, out, err = run("info", "--promises")
    assert (code, err) == (0, "")
    assert out.startswith("guaranteed        holds for every input")
    assert "\nWhat is refused\n  not modelled " in out
    assert "tests/" not in out


def test_promises_as_data(run):
    code, out, _ = run("info", "--promises", "--json", str(FORM), "--target", "sm_90a")
    document = json.loads(out)
    assert (code, document["errors"]) == (0, [])
    assert document.keys() == {"labels", "promises", "errors"}
    left = {*document["labels"]} - {one["label"] for one in document["promises"]}
    assert left == {"documented", "validated", "reported"}
    assert [one["what"] for one in document["promises"] if one["section"] == "Matrix instructions"] == [
        "mma.sp of f16 (f16.f16.f32 to f32, k 16) on sm_90a: sparse sums grouped over stored columns "
        "like dense sums; "
        "no sparse outputs of this chip have been published"
    ]


# --- the benchmark ---------------------------------------------------------------------------------


def test_the_set_of_the_benchmark_is_one_like_any_other(run, folder, monkeypatch):
    """Written block by block, it has the bytes of its arrays and the D of the model."""
    monkeypatch.setattr(bench, "BLOCK", 4)
    bench.write_set(folder / "bench.npz", 10)
    assert len(read_vectors("bench.npz")) == 10
    code, out, _ = run("verify", "bench.npz", "--engine", "reference")
    assert (code, "bench.npz: 1,280 words as expected" in out) == (0, True)
