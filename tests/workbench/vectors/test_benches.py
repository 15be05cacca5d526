"""Benches of SystemVerilog under Icarus Verilog: what they compare, where their package finds elements."""

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
from tests.helpers.example_sets import example, kinds_of_form, sparse_form, unexecuted
from tests.helpers.sv_simulation import filled_in, simulate
from warpsim.base.errors import OperandError
from warpsim.base.files.read_files import inputs_kept
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.fragments import gather
from warpsim.show.cli import cli
from warpsim.sums.execution.inputs import inputs_by_name
from warpsim.workbench.vectors.benches import sv_expressions, write_bench
from warpsim.workbench.vectors.benches.sv_layout import package_lines
from warpsim.workbench.vectors.formats import read_vectors
from warpsim.workbench.vectors.sets import VectorSet

FORM = sparse_form()
FORMS = {
    "four products": ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", "sm_70"),
    "f64": ("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "sm_90a"),
    "tf32": ("mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "sm_80"),
    "b1": ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc", "sm_80"),
    "s4": ("mma.sp.sync.aligned.m16n8k128.row.col.s32.s4.u4.s32", "sm_80"),
    "e4m3": ("mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32", "sm_89"),
    "e2m1 in bytes": ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e2m1.e3m2.f16", "sm_120a"),
    "mxf4": (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
        "sm_120a",
    ),
    "nvf4, sparse": (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
        ".f32.e2m1.e2m1.f32.ue4m3",
        "sm_120a",
    ),
    "wgmma": ("wgmma.mma_async.sync.aligned.m64n24k16.f16.f16.f16", "sm_90a"),
    "wgmma, sparse": ("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3", "sm_90a"),
    "wgmma, b1": ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", "sm_90a"),
}
EXPECTING = """
  logic [31:0] words [0:{words} - 1];
  int which = 0;
  initial $readmemh("cases.hex", words);
  always @(posedge clock) begin
    done <= start;
    if (start) begin
      for (int i = 0; i < {d_words}; i++)
        d[32 * i +: 32] = words[which * {case} + {d_offset} + i];
      {fault}
      which = which + 1;
    end
  end
endmodule
"""


def form_of(name: str) -> warpsim.Instruction:
    mnemonic, target = FORMS[name]
    return warpsim.decode(mnemonic, target=target)


def expecting(folder: Path, fault: str = "") -> None:
    """Make the device one that returns the D of the file, but for a fault."""
    text = (folder / "cases.svh").read_text()
    value = {name: int(number) for name, number in re.findall(r"int (\w+) = (-?\d+);", text)}
    filled_in(
        folder,
        EXPECTING.format(
            words=value["CASES"] * value["CASE_WORDS"],
            case=value["CASE_WORDS"],
            d_words=value["D_WORDS"],
            d_offset=value["D_OFFSET"],
            fault=fault,
        ),
    )


# --- what the bench compares -----------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_a_bench_counts_what_differs(name: str, tmp_path: Path) -> None:
    vectors = unexecuted(form_of(name), 3)
    d = vectors.d.copy()
    same = vectors.registers["c"] if vectors.instruction.c == vectors.instruction.d else np.zeros_like(d)
    d[1] = same[1]
    d[2, ::3] = same[2, ::3]
    vectors = replace(vectors, d=d)
    written = write_bench(tmp_path / "cases.hex", vectors)
    run = simulate(tmp_path, written.command, "+show=1")
    wrong = int((d != same).sum())
    lines = run.stdout.splitlines()
    digits = vectors.instruction.register_bits // 4
    assert (run.returncode, run.stderr) == (1, "")
    assert lines[:3] == [
        f"case 0, lane 0, register d0: expected {d[0, 0, 0]:0{digits}x}, got {same[0, 0, 0]:0{digits}x}",
        f"and {wrong - 1} more",
        f"FAILED: {wrong} of {d.size} registers of D differ, in 2 of 3 cases",
    ]


@pytest.mark.parametrize("name", FORMS)
def test_a_device_that_is_right_passes_and_one_wrong_bit_is_reported(name: str, tmp_path: Path) -> None:
    vectors = unexecuted(form_of(name), 3)
    written = write_bench(tmp_path / "cases.hex", vectors)
    expecting(tmp_path)
    run = simulate(tmp_path, written.command)
    passed = f"passed: 3 cases, {vectors.d.size} registers of D as expected\n"
    assert (run.returncode, run.stdout, run.stderr) == (0, passed, "")
    _, lanes, registers = vectors.d.shape
    lane, register, bits = lanes - 3, registers - 1, vectors.instruction.register_bits
    place = (lane * registers + register) * bits + bits - 1
    expecting(tmp_path, f"if (which == 1) d[{place}] = ~d[{place}];")
    run = simulate(tmp_path, written.command)
    word = int(vectors.d[1, lane, register])
    assert run.returncode == 1
    assert run.stdout.splitlines()[:2] == [
        f"case 1, lane {lane}, register d{register}: expected {word:0{bits // 4}x}, "
        f"got {word ^ 1 << bits - 1:0{bits // 4}x}",
        f"FAILED: 1 of {vectors.d.size} registers of D differ, in 1 of 3 cases",
    ]


def test_an_unknown_bit_differs(tmp_path: Path) -> None:
    written = write_bench(tmp_path / "cases.hex", unexecuted(FORM, 2))
    expecting(tmp_path, "if (which == 1) d[32] = 1'bx;")
    run = simulate(tmp_path, written.command)
    assert run.returncode == 1
    assert "FAILED: 1 of 256 registers of D differ, in 1 of 2 cases\n" in run.stdout


def test_a_device_may_take_its_time_and_another_name(tmp_path: Path) -> None:
    """Done comes five clocks after start; the inputs are still there."""
    vectors = unexecuted(FORM, 3)
    vectors = replace(vectors, d=vectors.registers["c"])
    written = write_bench(tmp_path / "cases.hex", vectors)
    filled_in(
        tmp_path,
        "  logic [4:0] busy = 0;\n  assign done = busy[4];\n"
        "  always @(posedge clock) begin busy <= {busy[3:0], start}; if (busy[3]) d <= c; end\nendmodule\n",
    )
    path = tmp_path / "cases_dut.sv"
    path.write_text(path.read_text().replace("module cases_dut", "module another"))
    command = written.command.replace("iverilog", "iverilog -DWARPSIM_DUT=another")
    run = simulate(tmp_path, command)
    assert (run.returncode, run.stdout) == (0, "passed: 3 cases, 384 registers of D as expected\n")
    run = simulate(tmp_path, command, "+timeout=3")
    assert run.returncode == 1
    assert run.stdout.splitlines()[:2] == [
        "case 0: not done within 3 clocks",
        "FAILED: 0 of 0 registers of D differ, in 0 of 0 cases",
    ]


def test_a_combinational_device_is_done_at_once(tmp_path: Path) -> None:
    vectors = unexecuted(FORM, 3)
    written = write_bench(tmp_path / "cases.hex", replace(vectors, d=vectors.registers["c"]))
    filled_in(tmp_path, "  assign d = c;\n  assign done = start;\nendmodule\n")
    assert simulate(tmp_path, written.command).returncode == 0


def test_vectors_that_are_not_there_or_end_early_fail(tmp_path: Path) -> None:
    written = write_bench(tmp_path / "cases.hex", unexecuted(FORM, 2))
    expecting(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "cases.hex"
    content = path.read_text()
    assert simulate(tmp_path, written.command).returncode == 0
    path.rename(tmp_path / "elsewhere/x.hex")
    run = simulate(tmp_path, written.command)
    assert run.returncode == 1
    assert "cases.hex: 1090 of 1090 words are missing" in run.stdout
    path.write_text("\n".join(content.splitlines()[:-1]) + "\n")
    assert "cases.hex: 1 of 1090 words are missing" in simulate(tmp_path, written.command).stdout
    path.write_text(content)
    assert simulate(tmp_path, written.command, "+vectors=elsewhere/x.hex").returncode == 0


# --- what the package says -------------------------------------------------------------------------


def printer(vectors: VectorSet) -> str:
    """A device that prints every element, column and scale of its inputs."""
    form, arrays = vectors.instruction, vectors.arrays()
    elements = {name: f"{name}_element({name}, row, column)" for name in "abc"}
    for side in "ab":
        if f"{side}_desc" in arrays:
            major = f"imm_trans_{side}[0]" if form.a.bits == 16 else "1'b0"
            elements[side] = f"{side}_element(shared, {side}_desc, {major}, row, column)"
    body = "".join(_printed(one, name.upper(), name) for name, one in elements.items())
    if form.sparse:
        body += _printed("a_column(e, row, column, {29'b0, selector[2:0]})", "A", "columns")
    for side, along in (("a", "row"), ("b", "column")) if form.scale else ():
        other = "column" if side == "a" else "row"
        ids = f"{other}, {{30'b0, byte_id_{side}[1:0]}}, {{30'b0, thread_id_{side}[1:0]}}"
        rows, columns = ("M", "SCALES") if side == "a" else ("SCALES", "N")
        value = f"scale_{side}_element(scale_{side}, {along}, {ids})"
        body += _printed(value, "", f"scale_{side}", rows, columns)
    return f"  always @(posedge clock) begin done <= start; if (start) begin\n{body}  end end\nendmodule\n"


def _printed(value: str, operand: str, name: str, rows: str = "", columns: str = "") -> str:
    return (
        f"    for (int row = 0; row < {rows or operand + '_ROWS'}; row++)\n"
        f"      for (int column = 0; column < {columns or operand + '_COLUMNS'}; column++)\n"
        f'        $display("{name} %h", {value});\n'
    )


def check_package(vectors: VectorSet, folder: Path) -> None:
    """Raise AssertionError unless the package finds what executing gathers."""
    form = vectors.instruction
    written = write_bench(folder / "cases.hex", vectors)
    filled_in(folder, printer(vectors))
    run = simulate(folder, written.command, "+show=0")
    assert run.stderr == ""
    printed: dict[str, list[int]] = {}
    for name, word in re.findall(r"^(a|b|c|columns|scale_a|scale_b) (\w+)$", run.stdout, re.MULTILINE):
        printed.setdefault(name, []).append(int(word, 16))
    gathered: dict[str, list[Any]] = {}
    for case in range(len(vectors)):
        [part] = vectors.inputs(case, case + 1)
        operands = gather(form, inputs_by_name(dict(part.arguments)))
        for name in printed:
            gathered.setdefault(name, []).extend(np.ravel(getattr(operands, name)).tolist())
    assert printed == gathered
    assert {"a", "b", "c"} <= printed.keys()


@pytest.mark.parametrize("name", FORMS)
def test_the_package_finds_every_element(name: str, tmp_path: Path) -> None:
    form = form_of(name)
    vectors = unexecuted(form, 2)
    more: dict[str, Any] = {"thread_id_a": np.array([1, 0])} if form.scale else {}
    if form.scale_chunks in (1, 2):
        more |= {"byte_id_a": np.array([0, 2]), "byte_id_b": 2}
    if form.family.opcode == "wgmma":
        more["scale_d"] = np.array([1, 1])
    check_package(replace(vectors, immediates={**vectors.immediates, **more}), tmp_path)


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
def test_the_package_finds_tiles_of_every_layout(swizzle: Any, major: Any, tmp_path: Path) -> None:
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16", target="sm_90a")
    vectors, descriptors = unexecuted(form, 1), {}
    for side, start in (("a", 4096), ("b", 0)):
        word = canonical_descriptor(
            start, TileShape(mn=64, k=16, element_bits=16, major=major), swizzle=swizzle
        )
        descriptors[f"{side}_desc"] = np.full(1, word.encode(), np.uint64)
    vectors = replace(
        vectors,
        registers={"c": vectors.registers["c"]},
        descriptors=descriptors,
        shared=np.random.default_rng(1).integers(0, 256, (1, 1 << 14), np.uint8),
        immediates=dict.fromkeys(("imm_trans_a", "imm_trans_b"), int(major == "MN")),
    )
    check_package(vectors, tmp_path)


def test_every_kind_of_form_has_a_package() -> None:
    """Deriving a formula proves it; it raises where one does not fit."""
    for form in kinds_of_form():
        assert [*package_lines("p", unexecuted(form, 1))][-1] == "endpackage"


def test_what_is_no_bit_map_is_refused() -> None:
    row, column = np.indices((8, 8))
    assert (
        sv_expressions.expression(row % 4 * 8 + column, ("row", "column"))
        == "((row & 3) << 3) | (column & 7)"
    )
    for values in (row + column, row ^ column, row * 3, row * 8 + column + 1):
        with pytest.raises(AssertionError, match="no bit map of row, column"):
            sv_expressions.expression(values, ("row", "column"))


def test_a_device_that_multiplies_passes(tmp_path: Path) -> None:
    """An integer product, sparse, written with the functions of the package alone."""
    form = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", target="sm_80")
    written = write_bench(tmp_path / "cases.hex", example(form, 4))
    path = tmp_path / "cases_dut.sv"
    text = path.read_text()
    returned = re.search(r" +element = .*\n", text)
    assert returned
    body = (
        "    element = c_element(c, row, column);\n"
        "    for (int i = 0; i < A_COLUMNS; i++)\n"
        "      element = element + 32'($signed(a_element(a, row, i)))\n"
        "          * 32'($signed(b_element(b, a_column(e, row, i, 32'(selector)), column)));\n"
    )
    path.write_text(text.replace(returned[0], body))
    run = simulate(tmp_path, written.command)
    assert (run.returncode, run.stdout) == (0, "passed: 4 cases, 512 registers of D as expected\n")


def test_shared_memory_need_not_be_whole_words(tmp_path: Path) -> None:
    vectors = unexecuted(form_of("wgmma"), 1)
    assert vectors.shared is not None
    written = write_bench(tmp_path / "cases.hex", replace(vectors, shared=vectors.shared[:, :8189]))
    filled_in(tmp_path, '  always @(posedge clock) if (start) $display("%h", shared);\nendmodule\n')
    run = simulate(tmp_path, written.command, "+timeout=2")
    assert run.stderr == ""
    assert run.stdout.splitlines()[0] == vectors.shared[0, 8188::-1].tobytes().hex()


def test_immediates_that_a_set_leaves_out_have_their_defaults(tmp_path: Path) -> None:
    vectors = unexecuted(form_of("wgmma"), 1)
    assert vectors.immediates.keys() == {"scale_d"}
    written = write_bench(tmp_path / "cases.hex", vectors)
    names = ("imm_scale_a", "imm_scale_b", "imm_trans_a", "imm_trans_b", "scale_d")
    filled_in(
        tmp_path,
        f'  always @(posedge clock) if (start) $display("{"%0d " * 5}", {", ".join(names)});\nendmodule\n',
    )
    printed = simulate(tmp_path, written.command, "+timeout=2").stdout.splitlines()[0]
    assert printed.split() == ["1", "1", "0", "0", str(int(vectors.varying()["scale_d"][0]))]


# --- files -----------------------------------------------------------------------------------------


def test_a_device_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a set.mem"
    names = {f"a set{end}" for end in (".mem", ".svh", "_layout.sv", "_dut.sv", "_bench.sv")}
    written = write_bench(path, unexecuted(FORM, 2))
    assert {one.name for one in tmp_path.iterdir()} == names
    assert (len(written.made), written.kept) == (3, ())
    (tmp_path / "a set_dut.sv").write_text("mine")
    (tmp_path / "a set_bench.sv").write_text("mine")
    written = write_bench(path, unexecuted(FORM, 3))
    assert ([one.name for one in written.made], written.kept) == (
        ["a set_layout.sv", "a set_bench.sv"],
        (tmp_path / "a set_dut.sv",),
    )
    assert (tmp_path / "a set_dut.sv").read_text() == "mine"
    assert (tmp_path / "a set_bench.sv").read_text() != "mine"
    assert len(read_vectors(path)) == 3


def test_names_with_spaces_work(tmp_path: Path) -> None:
    written = write_bench(tmp_path / "2 $ets; &.hex", unexecuted(FORM, 2))
    assert "FAILED: " in simulate(tmp_path, written.command).stdout


@pytest.mark.parametrize("name", ["é.hex", 'a".hex', "a\\b.hex", "100%d.hex", "a\nb.hex"])
def test_names_that_readmemh_cannot_open_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OperandError, match="name it in ASCII without quotes, backslashes, percent signs"):
        write_bench(tmp_path / name, unexecuted(FORM, 1))
    assert [*tmp_path.iterdir()] == []


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    (tmp_path / "cases_bench.sv").mkdir()
    with pytest.raises(OSError, match=r"cases_bench\.sv"):
        write_bench(tmp_path / "cases.hex", unexecuted(FORM, 1))
    assert [one.name for one in tmp_path.iterdir()] == ["cases_bench.sv"]


# --- the command -----------------------------------------------------------------------------------


def invoke(*words: str) -> Any:
    return CliRunner().invoke(cli, ["vectors", *words], standalone_mode=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_writes_a_bench_and_says_how_to_run_it(here: Path) -> None:
    shown = invoke(FORM.mnemonic, "--target", "sm_90a", "--kind", "random", "-n", "2", "-o", "x.hex",
                   "--bench", "sv").stdout  # fmt: skip
    command = "iverilog -g2012 -s x_bench -o x.vvp x.svh x_layout.sv x_dut.sv x_bench.sv && vvp x.vvp"
    assert shown == (
        f"x.hex: 2 random cases of {FORM.mnemonic} on sm_90a\n"
        f"wrote x_layout.sv\nwrote x_dut.sv\nwrote x_bench.sv\nrun: {command}\n"
    )
    assert f"//   {command}\n" in Path("x_bench.sv").read_text()
    with inputs_kept():
        assert invoke("x.hex", "-o", "x.hex", "--bench", "sv").return_value == 3
    document = json.loads(invoke("x.hex", "-o", "y.mem", "--bench", "sv", "--json").stdout)
    files = ["y_layout.sv", "y_dut.sv", "y_bench.sv"]
    assert document["bench"] == {"files": files, "kept": [], "command": command.replace("x", "y")
                                 .replace("yverilog", "xverilog")}  # fmt: skip
    assert (
        "kept y_dut.sv, which was there already\n" in invoke("x.hex", "-o", "y.mem", "--bench", "sv").stdout
    )


def test_the_command_goes_where_the_bench_is(here: Path) -> None:
    Path("a b").mkdir()
    shown = invoke(FORM.mnemonic, "--target", "sm_90a", "--kind", "random", "-n", "2", "-o", "a b/x.hex",
                   "--bench", "sv").stdout  # fmt: skip
    command = shown.splitlines()[-1].removeprefix("run: ")
    assert command.startswith("cd 'a b' && iverilog -g2012 ")
    assert "FAILED: " in simulate(here, command).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "a.npz"], "a bench reads a file of format readmemh (.hex, .mem), not 'a.npz'"),
        (
            ["-o", "a.hex", "--format", "csv"],
            "a bench reads a file of format readmemh (.hex, .mem), not 'a.hex'",
        ),
    ],
)
def test_a_bench_goes_with_readmemh(words: list[str], message: str, here: Path) -> None:
    result = invoke(FORM.mnemonic, "--target", "sm_90a", "--bench", "sv", *words)
    assert (result.return_value, result.stderr) == (3, f"vectors: error: {message}\n")
    assert [*here.iterdir()] == []


def test_a_bench_needs_a_file(here: Path) -> None:
    result = invoke(FORM.mnemonic, "--target", "sm_90a", "--bench", "sv", "--coverage")
    assert str(result.exception) == "--bench goes beside a file of vectors: give -o FILE.hex"


def test_cases_that_separate_models_have_a_bench(here: Path) -> None:
    form = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    shown = invoke(form, "--kind", "separate", "--between", "sm_80", "sm_90", "-n", "1", "-o", "p.hex",
                   "--bench", "sv").stdout  # fmt: skip
    assert shown.endswith("x_bench.sv && vvp p.vvp\n".replace("x_", "p_"))
    assert "wrote p.hex\nwrote p.ptx\nwrote p.ptx.npz\nwrote p_layout.sv\n" in shown
