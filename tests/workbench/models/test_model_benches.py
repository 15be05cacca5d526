"""Benches of golden models: bins as coverage counts them, mistakes named, and the same under Verilator."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import warpsim
from tests.helpers import nasty
from tests.helpers.families import WHOLE, sample, usual
from tests.workbench.models.test_golden_models import F16, FORMS, needs_cc
from warpsim.isa.fragments import indices_of, signed
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.isa.rules import ScaledQuads
from warpsim.isa.sparsity import stored_columns
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs.program_rewrites import rewrites
from warpsim.sums.rule_programs.rule_interpreter import run
from warpsim.sums.rule_programs.rule_operations import Program
from warpsim.sums.rule_programs.value_ranges import ranges_of
from warpsim.workbench.generation.coverage.observations import observations
from warpsim.workbench.generation.sums.rewrite_words import rewrite_words
from warpsim.workbench.models.c_bench import CBench
from warpsim.workbench.models.c_model import CModel, check_name
from warpsim.workbench.models.corner_tiles import Tiles, tiles_of
from warpsim.workbench.models.model_files import cases_of, files_of, write_model

STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function"]
SANE = ["-fsanitize=undefined,address", "-fno-sanitize-recover"]
QUADS = next(form for form in FORMS if isinstance(rule_for(form), ScaledQuads))
needs_verilator = pytest.mark.skipif(not shutil.which("verilator"), reason="verilator is not on the path")

DRIVER = """#include "golden_bench.c"
#include <stdlib.h>
@DECLARED@
int main(int count, char **words) {
  int mistake = atoi(words[1]), cases = atoi(words[2]), at, row, column;
  word_t left[STORED], right[STORED]@SCALES@;
  const char *line;
  for (at = 0; at < cases; at++) {
    golden_stimulate(1, at, @WRITTEN@);
    golden(@PASSED@, d);
    for (row = 0; mistake && row < ROWS; row++)
      for (column = 0; column < COLUMNS; column++) {
        element(@ELEMENT@, row, column, left, right@GIVEN@);
        put_d(d, row, column, golden_planted(mistake, left, right, c_code(c, row, column)@GIVEN@, 0));
      }
    golden_score(at, @PASSED@, d);
    while (*(line = golden_line())) puts(line);
  }
  golden_end();
  while (*(line = golden_line())) puts(line);
  for (at = 0; count > 3 && at < BINS; at++) printf("bin|%s|%lld\\n", bins[at].name, bins[at].outputs);
  for (at = 0; count > 3 && at < MISTAKES; at++)
    printf("shown|%d|%s\\n", weighed[at].shown, mistakes[at].name);
  return 0;
}
"""


def driven(form: Instruction, folder: Path) -> CBench:
    """Compile a bench with a program that runs it: mistake, cases, anything to print bins."""
    model = CModel("golden", form, rule_for(form))
    bench = CBench(model, tiles_of(form))
    inputs = model.inputs
    sized = [(x, f"[{x.words}]" if x.is_array else "") for x in model.arguments]
    declared = "\n".join(f"static {x.type} {x.name}{size};" for x, size in sized)
    text = DRIVER.replace("@DECLARED@", declared)
    for key, value in {
        "SCALES": ", scales_a[STORED], scales_b[STORED]" if form.scale else "",
        "GIVEN": ", scales_a, scales_b" if form.scale else "",
        "WRITTEN": ", ".join(x.name if x.is_array else f"&{x.name}" for x in inputs),
        "PASSED": ", ".join(x.name for x in inputs),
        "ELEMENT": ", ".join(x.name for x in inputs if x.name != "c"),
    }.items():
        text = text.replace(f"@{key}@", value)
    files = {"golden.h": model.header(), "golden.c": model.source()}
    files |= {"golden_bench.h": bench.header(), "golden_bench.c": bench.source()}
    files |= {"golden_tables.h": bench.data(), "drive.c": text}
    write_model(folder, files, force=False)
    command = ["gcc", *STRICT, *SANE, "-o", "drive", "drive.c"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not ended.stderr, ended.stderr[:2000]
    return bench


def drive(folder: Path, *words: str) -> list[str]:
    ended = subprocess.run(["./drive", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


@needs_cc
@pytest.mark.parametrize("form", sample(FORMS, 8, FORMS.index(QUADS)), ids=nasty.name)
def test_bins_count_as_coverage_does(form: Instruction, tmp_path: Path) -> None:
    bench = driven(form, tmp_path)
    tiles = len(bench.tiles.themes)
    lines = drive(tmp_path, "0", str(tiles), "bins")
    assert f"{tiles} cases, 0 of " in lines[0]
    counts = {line.split("|")[1]: int(line.split("|")[2]) for line in lines if line.startswith("bin|")}
    expected = observed(form, bench.tiles)
    assert {name: counts[name] for name in bench.bins} == {name: expected[name] for name in bench.bins}


def observed(form: Instruction, tiles: Tiles) -> Counter[str]:
    """Outputs in each bin of coverage, of tiles as they were drafted."""
    arrays = {name: codes.reshape(-1, *codes.shape[2:]) for name, codes in tiles.codes.items()}
    columns = None
    if form.pattern is not None:
        columns = stored_columns(indices_of(form, arrays["e"]), form.pattern)
    for side, negated in zip("ab", form.product.negated, strict=True):
        arrays[side] = signed(arrays[side], form.format(side), negated)
    found: Counter[str] = Counter()
    for at in range(len(arrays["a"])):
        one = {name: codes[at : at + 1] for name, codes in arrays.items() if name != "e"}
        of_row = None if columns is None else columns[at : at + 1]
        hits: dict[str, int] = {}
        for name, mask in observations(form, Operands(product=form.product, columns=of_row, **one)):
            hits[name] = mask | hits[name] if name in hits else mask
        found.update({name: int(mask.sum()) for name, mask in hits.items()})  # type: ignore[attr-defined]
    return found


@needs_cc
@pytest.mark.parametrize("form", sample([FORMS[3], FORMS[0], FORMS[5], FORMS[9]], 4), ids=nasty.name)
def test_cases_made_at_run_time_hit_every_bin_and_name_every_mistake(
    form: Instruction, tmp_path: Path
) -> None:
    bench = driven(form, tmp_path)
    cases = str(len(bench.tiles.themes) + 100)
    lines = drive(tmp_path, "0", cases, "bins")
    assert f"coverage: {len(bench.bins) + len(bench.settings)} of" in "\n".join(lines)
    shown = [line.split("|")[1:] for line in lines if line.startswith("shown|")]
    assert [name for _, name in shown] == [name for name, _ in bench.wrong]
    assert sum(flag == "1" for flag, _ in shown) > len(shown) // 2
    for number, (flag, name) in enumerate(shown, 1):
        if number % usual(32, 4):
            continue
        lines = drive(tmp_path, str(number), cases)
        named = [
            line
            for line in lines
            if line == f"every output is that of the rule with one step rewritten: {name}"
        ]
        assert bool(named) == (flag == "1"), name


@needs_cc
@pytest.mark.parametrize("form", sample([FORMS[0], FORMS[2], FORMS[9]], 3), ids=nasty.name)
def test_wrong_programs_in_c_are_those_in_python(form: Instruction, tmp_path: Path) -> None:
    """Of elements of the first tiles; without alignments that bound no term, of which C keeps 61 bits."""
    bench = driven(form, tmp_path)
    checked = 0
    for number, (name, wrong) in enumerate(bench.wrong, 1):
        if number % 5 or not is_bounded(wrong):
            continue
        lines = [line for line in drive(tmp_path, str(number), "12") if line.startswith("case ")]
        checked += len(lines)
        assert bench.model.dot.program != wrong, name
        for line in lines[:4]:
            case, row, column = (int(part) for part in _numbers(line))
            codes = element_codes(bench, case, row, column)
            got = int(line.partition("got ")[2].partition(";")[0], 16)
            assert run(wrong, codes)[wrong.result] == got, (name, line)
    assert checked > 30


def is_bounded(program: Program) -> bool:
    """Whether alignment bounds every term of a program."""
    try:
        return bool(ranges_of(program).parts)
    except OverflowError:
        return False


def _numbers(line: str) -> tuple[str, str, str]:
    place = line.partition("D[")[2].partition("]")[0].split(",")
    return line.split()[1], place[0], place[1]


def element_codes(bench: CBench, case: int, row: int, column: int) -> dict[str, list[int]]:
    """The codes of an element of a drafted tile, as a program reads them."""
    form, codes = bench.form, bench.tiles.codes
    product, row_in = divmod(row, form.shape.m)
    k = list(range(form.stored_k))
    if form.pattern is not None:
        k = stored_columns(indices_of(form, codes["e"][case, product]), form.pattern)[row_in].tolist()
    found = {
        "a": codes["a"][case, product, row_in].tolist(),
        "b": codes["b"][case, product, k, column].tolist(),
        "c": [int(codes["c"][case, product, row_in, column])],
    }
    if form.scale:
        chunk = [each * form.scale_chunks // form.shape.k for each in k]
        found["scale_a"] = codes["scale_a"][case, product, row_in, chunk].tolist()
        found["scale_b"] = codes["scale_b"][case, product, chunk, column].tolist()
    return found


# --- SystemVerilog ---------------------------------------------------------------------------------


UNIT = Path(__file__).resolve().parents[3] / "traces" / "units" / "dot_unit.sv"
DOWN, FLUSHED, ZEROS = (
    "kept0[16] is -3, not -2: terms rounded down",
    "subnormal operands read as zero",
    "zeros counted in the alignment",
)


def bench_of(folder: Path, unit: str) -> Callable[..., tuple[int, str]]:
    """Build a bench under Verilator, with another dot product where ``unit`` is its text."""
    form = warpsim.decode(F16, target="sm_90a")
    model = CModel("golden", form, rule_for(form))
    files = files_of(model, cases_of(model))
    if unit:
        files["golden_unit.sv"] = unit + files["golden_unit.sv"].partition("endmodule")[2]
    write_model(folder, files, force=False)
    built = subprocess.run(
        ["make", "-s", "obj_dir/golden_tb"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr[-2000:]

    def ran(*words: str) -> tuple[int, str]:
        command = ["./obj_dir/golden_tb", "+cases=100", *words]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout

    code, said = ran("+shown")
    assert code == 0, said
    assert "passed: 100 cases" in said
    return ran


@needs_cc
@needs_verilator
def test_a_unit_by_hand_is_right_and_its_mistakes_are_named(tmp_path: Path) -> None:
    """Mistakes are mended one after another, as the first report says; the last is named by all outputs."""
    ran = bench_of(tmp_path, UNIT.read_text())
    reports = {}
    for seeded in (7, 3, 2, 4):
        code, said = ran(f"+wrong={seeded}", "+shown")
        assert code != 0
        reports[seeded] = said
    first = {
        seeded: next(line for line in said.splitlines() if "D[" in line) for seeded, said in reports.items()
    }
    assert DOWN in first[7]
    assert "dot 256: expected 3f798003, got 34400000; P_value[5] is 0, expected 510976" in reports[3]
    assert f"top0 is -28, not -126: {ZEROS}" in first[2]
    every = "every output is that of the rule with one step rewritten:"
    assert f"{every} {ZEROS}" in reports[2]
    assert f"{every} terms rounded down" in reports[4]
    assert every not in reports[7]
    assert FLUSHED in ran("+wrong=1", "+shown")[1]


@needs_cc
@needs_verilator
@pytest.mark.skipif(not WHOLE, reason="another bench is built; WARPSIM_TEST_ALL=1")
def test_a_bench_under_verilator_names_a_planted_mistake(tmp_path: Path) -> None:
    ran = bench_of(tmp_path, "")
    form = warpsim.decode(F16, target="sm_90a")
    names = [name for name, _ in CBench(CModel("golden", form, rule_for(form)), tiles_of(form)).wrong]
    assert names[0] == "-1 fraction bits: alignment keeps 24 fraction bits"
    code, said = ran("+mistake=1", "+shown")
    assert code != 0
    assert "every output is that of the rule with one step rewritten: -1 fraction bits" in said
    assert "case 0 (gaps), lane " in said
    assert "unit0 is " in said
    shown = [line for line in said.splitlines() if line.startswith("dot ")]
    assert shown
    assert "; unit0 is " in shown[0]


def test_the_nearest_precisions_are_wrong_programs() -> None:
    form = warpsim.decode(F16, target="sm_90a")
    bench = CBench(CModel("golden", form, rule_for(form)), tiles_of(form))
    found = [name for name, _ in bench.wrong if name.startswith("results of ")]
    assert found == [f"results of {bits} bits" for bits in range(23, 7, -1)]


def test_names_inside_a_bench_are_refused() -> None:
    form = FORMS[0]
    for name in ("drawn", "step", "element"):
        with pytest.raises(warpsim.OperandError, match="a name inside the model"):
            check_name(name, form, rule_for(form))


@pytest.mark.parametrize("form", FORMS, ids=nasty.name)
def test_a_bench_is_code_of_some_length_and_tables_of_every_rewrite(form: Instruction) -> None:
    bench = CBench(CModel("golden", form, rule_for(form)), Tiles(themes=(), codes={}))
    assert bench.source().count("\n") < 1_500
    every = {
        words
        for each in rewrites(rule_for(form).bare, form.product)
        if (words := rewrite_words(bench.limits, each)) != "alignment after the sum"
    }
    assert every - {name for name, _ in bench.wrong} == set()
