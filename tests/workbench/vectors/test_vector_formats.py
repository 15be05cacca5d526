"""Files of vector sets: every format holds all of every set, and malformed files are refused."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import subprocess
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.example_sets import example, kinds_of_form, sparse_form, unexecuted
from tests.helpers.families import sample
from warpsim.base.errors import OperandError, TraceError
from warpsim.show.cli import main
from warpsim.workbench.generation.cases.assembly import joined_sets
from warpsim.workbench.vectors.formats import FORMATS, format_of, npz, read_vectors, write_vectors
from warpsim.workbench.vectors.formats.manifest import manifest_from, manifest_of
from warpsim.workbench.vectors.parted import SpooledSet
from warpsim.workbench.vectors.sets import VectorSet

FORM = sparse_form()
VOLTA = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", target="sm_70")
WARPGROUP = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", target="sm_90a")
TEXTS = [one for one in FORMATS if one.name != "npz"]


def bits_of(path: Path, vectors: VectorSet) -> bytes:
    write_vectors(path, vectors)
    return path.read_bytes()


# --- all of a set ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", sample(kinds_of_form(), 3), ids=lambda form: f"{form} {form.target}")
def test_every_format_gives_back_every_bit(form, tmp_path):
    for seed in (0, 1) if form.family.opcode == "wgmma" else (0,):  # A in shared memory and in registers
        vectors = unexecuted(form, 2, seed)
        bits = bits_of(tmp_path / "a.npz", vectors)
        for one in FORMATS:
            path = tmp_path / f"a{one.suffixes[0]}"
            write_vectors(path, vectors)
            assert bits_of(tmp_path / "b.npz", read_vectors(path)) == bits, one.name


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_shared_memory_need_not_be_whole_words(one, tmp_path):
    vectors = unexecuted(WARPGROUP, 2)
    assert vectors.shared is not None
    vectors = replace(vectors, shared=vectors.shared[:, :8189])
    path = tmp_path / f"a{one.suffixes[0]}"
    write_vectors(path, vectors)
    assert np.array_equal(read_vectors(path).shared, vectors.shared)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_what_is_read_is_what_was_written(one, tmp_path):
    vectors = example(FORM, 3, title="αβγ", labels=("one", "two */", "three"))
    path = tmp_path / f"set{one.suffixes[-1].upper()}"
    write_vectors(path, vectors)
    found = read_vectors(path)
    assert (found.instruction, found.seed, found.title) == (FORM, 0, "αβγ")
    assert (found.labels, found.provenance) == (vectors.labels, vectors.provenance)
    assert found.arrays().keys() == vectors.arrays().keys()
    for name, array in vectors.arrays().items():
        assert found.arrays()[name].dtype == array.dtype
        assert np.array_equal(found.arrays()[name], array)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_parts_are_the_set_in_order(one, tmp_path, monkeypatch):
    vectors = unexecuted(FORM, 7)
    path = tmp_path / f"set{one.suffixes[0]}"
    write_vectors(path, vectors)
    monkeypatch.setattr("warpsim.workbench.vectors.sets.PART_BYTES", 3 * 2177)
    parts = list(one.in_parts(path).parts())
    assert [len(part) for part in parts] == [3, 3, 1]
    assert [label for part in parts for label in part.labels] == list(vectors.labels)
    for name, array in vectors.arrays().items():
        assert np.array_equal(np.concatenate([part.arrays()[name] for part in parts]), array)


def test_npz_opens_with_numpy_alone(tmp_path):
    vectors = unexecuted(FORM, 2, immediates={"selector": 1})
    write_vectors(tmp_path / "set.npz", vectors)
    with np.load(tmp_path / "set.npz", allow_pickle=False) as archive:
        manifest = json.loads(str(archive["manifest"]))
        assert list(archive) == ["manifest", "a", "b", "c", "e", "d"]
        assert np.array_equal(archive["d"], vectors.d)
    assert manifest["schema"] == 1
    assert manifest["mnemonic"] == FORM.mnemonic
    assert manifest["immediates"] == {"selector": 1}
    assert manifest["arrays"]["d"].keys() == {"dtype", "shape", "sha256"}


def test_large_sets_are_stored_and_small_ones_packed(tmp_path, monkeypatch):
    vectors = unexecuted(FORM, 2)
    vectors = replace(vectors, d=np.zeros_like(vectors.d))
    small = bits_of(tmp_path / "set.npz", vectors)
    monkeypatch.setattr(npz, "COMPRESSED_BYTES", 100)
    large = bits_of(tmp_path / "set.npz", vectors)
    assert len(large) > len(small) + 900
    assert bits_of(tmp_path / "again.npz", read_vectors(tmp_path / "set.npz")) == large


# --- what others make of the files -----------------------------------------------------------------


def test_a_compiler_reads_the_c_header(tmp_path):
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    vectors = unexecuted(FORM, 3)
    write_vectors(tmp_path / "2 sets.h", vectors)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "2 sets.h"\n#include "2 sets.h"\n'
        "int main(void) { for (int i = 0; i < V2_SETS_CASES; i++)\n"
        'printf("%d %x %x\\n", v2_sets_selector[i], v2_sets_a[i][5][2], v2_sets_d[i][31][3]); }\n'
    )
    command = [compiler, "-std=c99", "-Wall", "-Werror", "-pedantic", "main.c", "-o", "main"]
    subprocess.run(command, check=True, cwd=tmp_path)
    printed = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    arrays = vectors.arrays()
    assert printed == "".join(
        f"{arrays['selector'][i]} {arrays['a'][i, 5, 2]:x} {arrays['d'][i, 31, 3]:x}\n" for i in range(3)
    )


BENCH = """\
`include "cases.svh"
module bench;
  import cases_vectors::*;
  logic [31:0] memory [0:CASES * CASE_WORDS - 1];
  initial begin
    $readmemh("cases.hex", memory);
    for (int i = 0; i < CASES; i++)
      $display("%0d %h %h", memory[i * CASE_WORDS + SELECTOR_OFFSET],
               memory[i * CASE_WORDS + A_OFFSET + 5 * A_REGISTERS + 2],
               memory[i * CASE_WORDS + D_OFFSET + 31 * D_REGISTERS + 3]);
  end
endmodule
"""


def test_a_simulator_reads_the_hex_file_and_its_package(tmp_path):
    compiler = shutil.which("iverilog") or pytest.skip("no Icarus Verilog")
    vectors = unexecuted(FORM, 3)
    write_vectors(tmp_path / "cases.hex", vectors)
    (tmp_path / "bench.sv").write_text(BENCH)
    subprocess.run([compiler, "-g2012", "-o", "bench", "bench.sv"], check=True, cwd=tmp_path)
    run = subprocess.run(["vvp", "bench"], check=True, cwd=tmp_path, capture_output=True, text=True)
    arrays = vectors.arrays()
    assert run.stdout == "".join(
        f"{arrays['selector'][i]} {arrays['a'][i, 5, 2]:08x} {arrays['d'][i, 31, 3]:08x}\n" for i in range(3)
    )


def test_a_hex_file_may_say_its_addresses(tmp_path):
    vectors = unexecuted(FORM, 2)
    bits = bits_of(tmp_path / "a.npz", vectors)
    path = tmp_path / "a.hex"
    write_vectors(path, vectors)
    text = path.read_text().replace("// case 1:", "@221 // case 1:")
    path.write_text(text)
    assert bits_of(tmp_path / "b.npz", read_vectors(path)) == bits
    path.write_text(text.replace("@221", "@222"))
    with pytest.raises(TraceError, match="address '@222', but the next word is @221"):
        read_vectors(path)


def test_a_dot_product_is_a_line_of_codes(tmp_path):
    form = warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", target="sm_80")
    a = np.arange(128, dtype=np.float16).reshape(1, 16, 8)
    b, c = np.eye(8, dtype=np.float16)[None] * 2, np.ones((1, 16, 8), np.float32)
    words = {name: warpsim.pack(form, name, matrix) for name, matrix in (("a", a), ("b", b), ("c", c))}
    write_vectors(tmp_path / "a.tv", warpsim.make_vectors(form, **words))
    lines = [line for line in (tmp_path / "a.tv").read_text().splitlines() if not line.startswith("#")]
    row, column = 3, 1
    fields = lines[8 * row + column].split()
    assert fields[:8] == [f"{code:04x}" for code in a[0, row].view(np.uint16)]
    assert fields[8:16] == ["0000", "4000", *["0000"] * 6]
    assert np.array([int(word, 16) for word in fields[16:]], np.uint32).view(np.float32).tolist() == [1, 51]


# --- writing whole or not at all -------------------------------------------------------------------


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_a_file_that_cannot_be_finished_is_left_as_it_was(one, tmp_path, monkeypatch):
    path = tmp_path / f"set{one.suffixes[0]}"
    path.write_text("before")
    broken = unexecuted(VOLTA, 2)
    monkeypatch.setattr(VectorSet, "arrays", _failing(VectorSet.arrays, one.name == "npz"))
    with pytest.raises(RuntimeError):
        write_vectors(path, broken)
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []
    assert path.read_text() == "before"


def _failing(arrays: Callable[[VectorSet], Any], at_once: bool) -> Callable[[VectorSet], Any]:
    """``arrays`` that fail when they are asked for again, after the manifest was made."""
    calls = iter(range(100))

    def fail(vectors: VectorSet) -> Any:
        if next(calls) >= (0 if at_once else 1):
            raise RuntimeError
        return arrays(vectors)

    return fail


def test_a_format_that_is_none_is_refused():
    with pytest.raises(
        OperandError, match=r"^unknown format 'x'; known are npz, readmemh, testfloat, c, csv, jsonl$"
    ):
        format_of(Path("a.npz"), "x")
    with pytest.raises(
        OperandError, match=r"^unknown format suffix '.txt' of 'a.txt'; known are .npz, .hex, .mem, "
    ):
        format_of(Path("a.txt"))
    assert format_of(Path("a.txt"), "csv").name == "csv"


# --- malformed text --------------------------------------------------------------------------------


def edited(tmp_path: Path, suffix: str, form: Any, old: str, new: str) -> tuple[Path, int]:
    """A file in which the first place of a text was edited, and the line of that place."""
    path = tmp_path / f"set{suffix}"
    write_vectors(path, unexecuted(form, 2))
    text = path.read_text()
    at = text.index(old)
    path.write_text(text[:at] + new + text[at + len(old) :])
    return path, text.count("\n", 0, at) + 1


EDITS = [
    (".hex", "// {", "// [", 0, "expected a line of the manifest, which begins with '// {'"),
    (".hex", "// warpsim", "/ warpsim", 0, "this is not a readmemh file of a vector set: expected "
        "'// warpsim"),
    (".hex", '"cases": 2', '"cases": 3', -4, "manifest: a has shape (2, 32, 4), but in this vector set it"),
    (".hex", '"schema": 1,', '"schema": 1', -1, "the manifest is not JSON: Expecting ',' delimiter"),
    (".hex", " // a T1\n", "0 // a T1\n", 0, " is not a word of 8 hexadecimal digits"),
    (".hex", " // a T1\n", " zzzzzzzz // a T1\n", 0, "'zzzzzzzz' is not a word of 8 hexadecimal digits"),
    (".hex", " // d T31\n", " 00000000 00000000 00000000 00000000\n", 0, "a case has 545 words, but case 0"),
    (".csv", "case,lane,a0", "case,line,a0", 0, "expected the columns case,lane,a0,a1,a2,a3,b0,"),
    (".csv", "\n0,5,", "\n0,6,", 1, "expected case 0, lane 5"),
    (".csv", "\n0,5,", "\n0,5,,", 1, "21 cells, expected 20"),
    (".csv", "\n0,5,", "\n0,5,g", 1, " is not a word of 8 hexadecimal digits"),
    (".jsonl", '{"case": 1,', '{"case": 2,', 0, "expected case 1"),
    (".jsonl", '{"case": 1,', '{"case": 1, "x": 2,', 0, "expected an object of a, b, c, case, d, e, label, "),
    (".jsonl", '{"case": 1,', '{"case": 1', 0, "no JSON: Expecting ',' delimiter"),
    (".jsonl", '"a": [["', '"a": [["00000000", "', 0, "a has the shape [32, 4] in every case"),
    (".jsonl", '"a": [["', '"a": [[1, "', 0, "the words of a are strings of hexadecimal digits"),
    (".jsonl", '{"schema": 1,', '{"schema": 2,', 0, "manifest: schema 2, but this version reads schema 1"),
    (".h", "set_a[2]", "set_x[2]", 0, "expected 'static const uint32_t ..._a[2][32][4] = {'"),
    (".h", "{{0x", "{{", 0, " is not a word such as 0x...u"),
    (".h", "{{0x", "{{0x0u, 0x", 0, "5 elements, expected a row of 4"),
    (".h", "};\nstatic", "\nstatic", 0, "expected '};': a has 256 elements"),
    (".h", "#endif", "#define x", 0, "expected '#endif': all arrays are read"),
    (".tv", "# case 1:", "# case 2:", 0, "expected '# case 1'"),
    (".tv", "#= e ", "#= f ", 0, "expected '#= e WORDS'"),
    (".tv", "#= e ", "#= e 0", 0, " is not a word of 8 hexadecimal digits"),
    (".tv", "#= e ", "#= e 00000000 ", 0, "33 words, expected 32"),
    (".tv", "# case 1:", "#^ e 0\n# case 1:", 0, "unknown operand 'e' of a '#^' line"),
    (".tv", "#= selector 0", "#= selector 7", 0, "case 0: selector is one of 0, 1, not 112"),
]  # fmt: skip


@pytest.mark.parametrize(("suffix", "old", "new", "offset", "message"), EDITS)
def test_a_malformed_file_is_refused_with_its_line(tmp_path, suffix, old, new, offset, message):
    path, line = edited(tmp_path, suffix, FORM, old, new)
    with pytest.raises(TraceError) as caught:
        read_vectors(path)
    assert message in caught.value.message
    assert caught.value.location is not None
    assert (caught.value.location.file, caught.value.location.line) == (str(path), line + offset)


@pytest.mark.parametrize("one", TEXTS, ids=lambda one: one.name)
def test_a_file_that_ends_early_is_refused(one, tmp_path):
    path = tmp_path / f"set{one.suffixes[0]}"
    write_vectors(path, unexecuted(VOLTA, 2))
    lines = path.read_text().splitlines(keepends=True)
    for count in {0, 1, min(5, len(lines) - 1), len(lines) // 2, len(lines) - 1}:
        path.write_text("".join(lines[:count]))
        with pytest.raises(TraceError, match=rf"^{path}:{max(count, 1)}:"):
            read_vectors(path)


@pytest.mark.parametrize("one", TEXTS, ids=lambda one: one.name)
def test_a_file_that_goes_on_is_refused(one, tmp_path):
    path = tmp_path / f"set{one.suffixes[0]}"
    write_vectors(path, unexecuted(VOLTA, 1))
    text = path.read_text()
    path.write_text(text + "\n \n")
    read_vectors(path)
    path.write_text(text + "00000000\n")
    with pytest.raises(TraceError, match="expected the end of the file: all cases are read"):
        read_vectors(path)


@pytest.mark.parametrize("suffix", [".hex", ".csv", ".jsonl", ".h"])
def test_a_changed_bit_is_found_by_the_hash(tmp_path, suffix):
    path = tmp_path / f"set{suffix}"
    vectors = unexecuted(FORM, 1)
    write_vectors(path, vectors)
    word = f"{vectors.d[0, 7, 1]:08x}"
    path.write_text(path.read_text().replace(word, f"{vectors.d[0, 7, 1] ^ 1:08x}"))
    with pytest.raises(TraceError, match=rf"^{path}:1:1: error: array 'd' has SHA-256 \w+, but the manifest"):
        read_vectors(path)


def test_a_line_that_contradicts_others_is_refused(tmp_path):
    path = tmp_path / "set.tv"
    write_vectors(path, unexecuted(FORM, 1))
    lines = path.read_text().splitlines(keepends=True)
    first = next(index for index, line in enumerate(lines) if line.startswith("#= selector")) + 1
    row = lines[first + 9].split(" ")
    row[0] = f"{int(row[0], 16) ^ 1:04x}"  # a of D[1,1], which is also that of D[1,0]
    path.write_text("".join([*lines[: first + 9], " ".join(row), *lines[first + 10 :]]))
    with pytest.raises(TraceError, match=rf"^{path}:{first + 10}:1: error: this line contradicts others"):
        read_vectors(path)


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "set.csv"
    write_vectors(path, unexecuted(FORM, 1))
    monkeypatch.setattr("warpsim.base.files.archives.LARGEST_TEXT", 4000)
    assert len(read_vectors(path)) == 1
    path.write_text(path.read_text().replace("\n0,5,", "\n" + "0" * 4001))
    with pytest.raises(TraceError, match=r":\d\d:1: error: a line of more than 4,000 characters$"):
        read_vectors(path)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
@pytest.mark.parametrize("form", [FORM, VOLTA, WARPGROUP], ids=lambda form: form.shape)
def test_whatever_is_in_a_file_it_is_read_or_refused(one, form, tmp_path):
    """Bytes changed, taken out and put in at random never end in any other error."""
    path = tmp_path / f"set{one.suffixes[0]}"
    vectors = unexecuted(form, 1)
    write_vectors(path, vectors)
    whole, dice, refused = path.read_bytes(), random.Random(0), 0
    for turn in range(60):
        data = bytearray(whole)
        at = dice.randrange(min(len(data), 2500) if turn % 2 else len(data))
        data[at : at + dice.choice((0, 1, 20))] = dice.choices(
            b'0aF,{}[]" \n-@/*#\0\xff', k=dice.choice((0, 1, 5))
        )
        path.write_bytes(data)
        try:
            assert np.array_equal(read_vectors(path).d, vectors.d)
        except TraceError:
            refused += 1
    assert refused > 20


# --- malformed archives ----------------------------------------------------------------------------


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array, **options), allow_pickle=True)
    return file.getvalue()


ZEROS = np.zeros((2, 32, 4), np.uint32)
GOOD = manifest_of(unexecuted(FORM, 2))


def changed(**keys: Any) -> bytes:
    return npy(json.dumps({**GOOD, **keys}))


def without(key: str) -> bytes:
    return npy(json.dumps({name: value for name, value in GOOD.items() if name != key}))


MEMBERS = [
    ({"manifest.npy": None}, "an .npz file without a manifest is not a vector set"),
    ({"manifest.npy": npy(np.array(["x"]))}, "the manifest has shape (1,), not that of one string"),
    ({"manifest.npy": npy(np.uint8(3))}, "the manifest has dtype uint8, not text"),
    ({"manifest.npy": npy("x")}, "the manifest is not JSON: Expecting value: line 1 column 1 (char 0)"),
    ({"manifest.npy": npy("[" * 100000)}, "the manifest is not JSON: "),
    (
        {"manifest.npy": npy(np.array([0x5B, 0x110000], np.uint32).view("U2")[0:1].reshape(()))},
        "the manifest is no text: character 1 has code 0x110000",
    ),
    (
        {"manifest.npy": npy(np.array([0xD800], ">u4").view(">U1").reshape(()))},
        "the manifest is no text: character 0 has code 0xd800",
    ),
    ({"manifest.npy": npy("[]")}, "the manifest is not a JSON object"),
    ({"manifest.npy": without("title")}, "manifest: title is missing"),
    ({"manifest.npy": changed(extra=1)}, "manifest: unknown key 'extra'; the keys are schema, mnemonic, "),
    ({"manifest.npy": changed(cases="2")}, 'manifest: cases is an integer, not "2"'),
    ({"manifest.npy": changed(cases=True)}, "manifest: cases is an integer, not true"),
    ({"manifest.npy": changed(cases=0)}, "manifest: a vector set has at least one case"),
    ({"manifest.npy": changed(seed=1.5)}, "manifest: seed is an integer or null, not 1.5"),
    ({"manifest.npy": changed(target="sm_1")}, "manifest: unknown target 'sm_1'; known are sm_70, "),
    ({"manifest.npy": changed(mnemonic="mma")}, "manifest: "),
    ({"manifest.npy": changed(mnemonic=FORM.mnemonic + ";")}, "manifest: 'mma.sp::ordered_metadata"),
    ({"manifest.npy": changed(target="sm_70")}, f"manifest: {FORM} is not on sm_70"),
    ({"manifest.npy": changed(provenance={})}, "manifest: the kind of provenance is one of model, hardware"),
    ({"manifest.npy": changed(labels=["a"])}, "manifest: 1 labels for 2 cases"),
    ({"manifest.npy": changed(labels=[1, 2])}, "manifest: labels are strings"),
    ({"manifest.npy": changed(labels=["a", "\n"])}, "manifest: '\\n': title and labels are printable text"),
    ({"manifest.npy": changed(immediates={"selector": 0.5})},
     "manifest: immediate selector is a small integer, not 0.5"),
    ({"manifest.npy": changed(immediates={"x": 1})}, f"manifest: {FORM} has no immediate x; it has selector"),
    ({"manifest.npy": changed(arrays={"a": 1})}, "manifest: array 'a' is an object of dtype, "),
    ({"manifest.npy": changed(arrays={"a": {"dtype": "O", "shape": [], "sha256": ""}})},
     "manifest: the dtype of array 'a' is one of uint8, int8, uint32, uint64"),
    ({"manifest.npy": changed(arrays={"a": {"dtype": "int8", "shape": [-1], "sha256": ""}})},
     "manifest: the shape of array 'a' is an array of sizes"),
    ({"manifest.npy": changed(arrays={})}, f"manifest: a vector set of {FORM} needs a"),
    ({"a.npy": None}, "array 'a' is in the manifest, but not in the file"),
    ({"f.npy": npy(ZEROS)}, "array 'f' is in the file, but not in the manifest"),
    ({"a.txt": b"x"}, "member 'a.txt' is not an array (.npy)"),
    ({"a.npy": npy(ZEROS)}, "array 'a' has SHA-256 "),
    ({"a.npy": npy(ZEROS.astype(">u4"))}, "array 'a' is >u4 (2, 32, 4), but the manifest says uint32"),
    ({"a.npy": npy(ZEROS[:1])}, "array 'a' is uint32 (1, 32, 4), but the manifest says uint32 (2, 32, 4)"),
    ({"a.npy": npy(np.asfortranarray(ZEROS))}, "array 'a' is stored column by column"),
    ({"a.npy": npy(ZEROS.astype(object))}, "array 'a' has dtype object, not unsigned integers or integers"),
    ({"a.npy": npy(ZEROS)[:-4]}, "array 'a' claims 1,024 bytes, but has 1,020"),
    ({"a.npy": npy(ZEROS)[:20]}, "cannot be read as an .npz file: "),
    ({"a.npy": b""}, "cannot be read as an .npz file: "),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), MEMBERS)
def test_an_archive_that_is_no_set_is_refused(tmp_path, change, message):
    path = tmp_path / "set.npz"
    write_vectors(path, unexecuted(FORM, 2))
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        for name, data in (members(path) | change).items():
            if data is not None:
                archive.writestr(name, data)
    for read in (read_vectors, lambda path: [*format_of(path).in_parts(path).parts()]):
        with pytest.raises(TraceError) as caught:
            read(tmp_path / "bad.npz")
        assert message in str(caught.value)
    assert str(_error(tmp_path / "bad.npz")).startswith(f"{tmp_path / 'bad.npz'}: ")


def _error(path: Path) -> TraceError:
    with pytest.raises(TraceError) as caught:
        read_vectors(path)
    return caught.value


def test_bytes_that_are_no_archive_are_refused(tmp_path):
    path = tmp_path / "set.npz"
    write_vectors(path, unexecuted(FORM, 2))
    data = path.read_bytes()
    middle = len(data) // 2
    for content in (b"", b"PK", data[:middle], data[:middle] + b"\0" * 40 + data[middle + 40 :]):
        path.write_bytes(content)
        with pytest.raises(TraceError):
            read_vectors(path)
    with pytest.raises(OSError, match="No such file"):
        read_vectors(tmp_path / "none.npz")


def test_a_set_that_is_too_large_to_be_read_at_once_is_only_read_in_parts(tmp_path, monkeypatch):
    path = tmp_path / "set.npz"
    write_vectors(path, unexecuted(FORM, 2))
    monkeypatch.setattr("warpsim.workbench.vectors.formats.manifest.LARGEST_SET", 4353)
    with pytest.raises(TraceError, match="the arrays have 4,354 bytes, but at most 4,353 are read at once"):
        read_vectors(path)
    assert sum(len(part) for part in format_of(path).in_parts(path).parts()) == 2


def test_parts_hold_no_more_than_a_part(tmp_path, monkeypatch):
    """The whole is never unpacked: what is read at a time is as much as a part has."""
    write_vectors(tmp_path / "set.npz", unexecuted(FORM, 6))
    monkeypatch.setattr("warpsim.workbench.vectors.sets.PART_BYTES", 2 * 2177)
    sizes = []
    original = npz.read_block

    def counted(stream: Any, spec: Any, count: int) -> Any:
        sizes.append(count)
        return original(stream, spec, count)

    monkeypatch.setattr(npz, "read_block", counted)
    parts = format_of(Path("a.npz")).in_parts(tmp_path / "set.npz").parts()
    next(parts)
    assert sizes == [2] * 6
    parts.close()  # type: ignore[attr-defined]


# --- sets of any size ------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_a_spooled_set_is_written_as_one_in_memory(one, tmp_path, monkeypatch):
    """The parts differ in length, and vary in an immediate only together."""
    monkeypatch.setattr("warpsim.workbench.vectors.sets.PART_BYTES", 3 * 2177)
    halves = [
        unexecuted(FORM, 4, immediates={"selector": 0}),
        unexecuted(FORM, 3, immediates={"selector": 1}),
    ]
    whole = joined_sets(halves)
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with SpooledSet(tmp_path) as spooled:
        for half in halves:
            spooled.add(half)
        assert spooled.specs() == whole.specs()
        assert (len(spooled), spooled.labels) == (len(whole), whole.labels)
        one.write(tmp_path / "one" / f"s{one.suffixes[0]}", spooled)
        one.write(tmp_path / "other" / f"s{one.suffixes[0]}", whole)
    assert not [path for path in tmp_path.iterdir() if path.is_file()]
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_labels_that_are_too_long_are_refused_before_cases_are_made(tmp_path, monkeypatch, capsys):
    form = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    made = list[int]()
    monkeypatch.setattr(npz, "LARGEST_MANIFEST", npz._REST + 40_000)
    monkeypatch.setattr(SpooledSet, "add", lambda self, part: made.append(len(part)))
    with pytest.raises(SystemExit) as caught:
        main(["vectors", form, "--target", "sm_80", "-n", "2000", "-o", str(tmp_path / "a.npz")])
    found = capsys.readouterr().err
    assert caught.value.code == 3
    assert re.search(r"the labels of 2,000 cases take 9\d,\d{3} bytes: a set has at most 40,000; make", found)
    assert not made
    monkeypatch.undo()
    monkeypatch.setattr(npz, "LARGEST_MANIFEST", npz._REST + 40_000)
    with pytest.raises(SystemExit) as caught:
        main(["vectors", form, "--target", "sm_80", "-n", "800", "-o", str(tmp_path / "a.npz")])
    assert caught.value.code == 0
    assert len(read_vectors(tmp_path / "a.npz")) == 800
    with pytest.raises(OperandError, match="the labels of 3 cases take 108,048 bytes"):
        write_vectors(tmp_path / "b.npz", replace(unexecuted(FORM, 3, 0), labels=("x" * 9_000,) * 3))
    assert os.listdir(tmp_path) == ["a.npz"]


def test_one_part_keeps_its_constants(tmp_path):
    part = unexecuted(FORM, 4, immediates={"selector": 1})
    with SpooledSet(tmp_path) as spooled:
        spooled.add(part)
        assert spooled.constants() == {"selector": 1}
        (again,) = spooled.parts()
    assert again.specs() == part.specs()


@pytest.mark.parametrize("suffix", ["npz", "hex", "h"])
def test_memory_does_not_grow_with_a_set(suffix, tmp_path, monkeypatch):
    """Sets of 10 and of 40 parts take the same, whatever is done with them."""
    monkeypatch.setattr("warpsim.workbench.vectors.sets.PART_BYTES", 8 * 2177)
    peaks = []
    for count in (10, 40):
        path = tmp_path / f"s{count}.npz"
        with SpooledSet(tmp_path) as spooled:
            for _ in range(count):
                spooled.add(replace(unexecuted(FORM, 8), labels=()))
            tracemalloc.start()
            write_vectors(path, spooled)
            read = format_of(path).in_parts(path)
            format_of(Path(f"a.{suffix}")).write(tmp_path / f"again.{suffix}", read)
            assert sum(len(part) for part in read.parts()) == len(spooled) == 8 * count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize("broken", ["changed", "cut"])
def test_a_conversion_of_a_broken_set_leaves_nothing(broken, tmp_path):
    vectors = unexecuted(FORM, 3)
    write_vectors(tmp_path / "s.npz", vectors)
    content = members(tmp_path / "s.npz")
    data = content["d.npy"]
    content["d.npy"] = data[:-1] + b"x" if broken == "changed" else data[:-4]
    with zipfile.ZipFile(tmp_path / "s.npz", "w") as archive:
        for name, item in content.items():
            archive.writestr(name, item)
    with pytest.raises(TraceError, match=r"s\.npz: array 'd' (has SHA-256|claims)"):
        write_vectors(tmp_path / "t.npz", format_of(tmp_path / "s.npz").in_parts(tmp_path / "s.npz"))
    assert [path.name for path in tmp_path.iterdir()] == ["s.npz"]


def test_a_manifest_is_read_as_it_is_written():
    vectors = unexecuted(FORM, 2)
    manifest = manifest_from(json.dumps(manifest_of(vectors)))
    assert (manifest.instruction, manifest.cases, manifest.labels) == (FORM, 2, vectors.labels)
