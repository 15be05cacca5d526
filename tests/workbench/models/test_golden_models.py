"""Golden models in C, compiled strictly: the D of kernels and reference, and the trace of programs."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from tests.helpers.dot_codes import ARITHMETICS, QUADS, codes_of
from tests.helpers.families import sample
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import Rule
from warpsim.show.cli import main
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs.rule_interpreter import Number, run
from warpsim.sums.rule_programs.rule_templates import program_of
from warpsim.sums.rule_programs.value_ranges import Ranges, ranges_of
from warpsim.workbench.models.c_model import CModel
from warpsim.workbench.models.model_files import cases_of, files_of, write_model
from warpsim.workbench.models.own_units import unit_rule

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
CHECKED = {  # clang's runtime is a package of its own, which a trap does not need
    "gcc": "-O1 -Werror -fsanitize=undefined,address -fno-sanitize-recover",
    "clang": "-O1 -Werror -fsanitize=undefined -fsanitize-trap=undefined",
}
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
DENSE_BF16 = "tcgen05.mma.cta_group::1.kind::f16"
FORMS = [  # one of each kind of rule, place, pattern and word
    warpsim.decode(F16, target="sm_80"),
    warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", target="sm_70"),
    warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", target="sm_80"),
    warpsim.decode("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16", target="sm_90a"),
    warpsim.decode("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rm", target="sm_90a"),
    warpsim.decode("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s4.u4.s32", target="sm_80"),
    warpsim.decode("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", target="sm_80"),
    warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", target="sm_90a"
    ),
    warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", target="sm_80"),
    warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
        ".f32.e2m1.e2m1.f32.ue4m3",
        target="sm_120a",
    ),
    warpsim.decode(
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e3m2.e2m1.f32.ue8m0",
        target="sm_120a",
    ),
    warpsim.decode("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2", target="sm_90a"),
    warpsim.decode(DENSE_BF16, target="sm_100a", idesc=0x08100490 | 1 << 13),
    QUADS,
]
needs_cc = pytest.mark.skipif(not COMPILERS or not shutil.which("make"), reason="no C compiler, or no make")


def written(form: Instruction, folder: Path, *, rule: Rule | None = None, **options: Any) -> CModel:
    model = CModel("golden", form, rule or rule_for(form))
    write_model(folder, files_of(model, cases_of(model, **options)), force=False)
    return model


def made(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "-s", "-C", str(folder), "check", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_cc
@pytest.mark.parametrize("form", sample(FORMS, 4), ids=nasty.name)
def test_the_cases_of_a_model_are_right(form: Instruction, tmp_path: Path) -> None:
    written(form, tmp_path)
    compiler = COMPILERS[len(str(form)) % len(COMPILERS)]
    ended = made(tmp_path, f"CC={compiler}", f"CFLAGS={CHECKED[compiler]}")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert " 0 of " in ended.stdout


MACHINES = {  # other machines: the compiler, and what runs its programs
    "32 bits": ("gcc -m32", ""),
    "big endian": ("s390x-linux-gnu-gcc -static", "qemu-s390x"),
}


def compiles(compiler: str, folder: Path) -> bool:
    (folder / "empty.c").write_text('#include <stdio.h>\nint main(void) { return puts("") < 0; }\n')
    command = [*compiler.split(), "-o", "empty", "empty.c"]
    return bool(shutil.which(command[0])) and not subprocess.run(command, cwd=folder, check=False).returncode


@needs_cc
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("form", sample([FORMS[3], FORMS[4], FORMS[8], FORMS[9]], 2, 1), ids=nasty.name)
def test_other_machines_compute_the_same(form: Instruction, machine: str, tmp_path: Path) -> None:
    compiler, runs = MACHINES[machine]
    if not compiles(compiler, tmp_path) or (runs and not shutil.which(runs)):
        pytest.skip(f"no {compiler}, or no {runs}")
    written(form, tmp_path)
    command = [*compiler.split(), *STRICT, "-O2", "-o", "check", "golden.c", "golden_check.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    command = [*runs.split(), "./check"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert " 0 of " in ended.stdout


@needs_cc
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not on the path")
def test_cmake_checks_a_model(tmp_path: Path) -> None:
    written(FORMS[0], tmp_path)
    for command in ("cmake -S . -B build", "cmake --build build", "ctest --test-dir build"):
        ended = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout
    assert "100% tests passed" in ended.stdout


@needs_cc
def test_a_wrong_word_is_seen(tmp_path: Path) -> None:
    model = written(FORMS[0], tmp_path)
    cases = tmp_path / "golden_cases.h"
    text = cases.read_text()
    head, d = text.split("case_d", 1)
    assert model.dot.word == "uint32_t"
    cases.write_text(
        head + "case_d" + re.sub(r"\{0x(\w+),", lambda found: f"{{0x{int(found[1], 16) ^ 1:x},", d, count=1)
    )
    ended = made(tmp_path)
    assert ended.returncode != 0
    assert "case 0, lane 0, register 0: expected" in ended.stdout
    assert "1 of 8192 words wrong" in ended.stdout


@needs_cc
@pytest.mark.parametrize(
    ("form", "changes"),
    [
        (FORMS[0], "length=4,precision=14,rounding=nearest"),
        (FORMS[0], "fraction_bits=21,exponent_floor=-20"),
        (QUADS, "group=3"),  # of 64 products: the last group has fewer
    ],
    ids=str,
)
def test_a_unit_of_ones_own(form: Instruction, changes: str, tmp_path: Path) -> None:
    rule = unit_rule(rule_for(form), changes)
    assert rule.bare != rule_for(form).bare
    model = written(form, tmp_path, rule=rule, own_numbers=True)
    assert "Evidence: none" in model.header()
    assert made(tmp_path).returncode == 0


@needs_cc
@pytest.mark.parametrize("form", [FORMS[0], FORMS[3], FORMS[4], FORMS[9], QUADS], ids=nasty.name)
def test_every_intermediate_is_that_of_the_program(form: Instruction, tmp_path: Path) -> None:
    dot, trace_of = library(form, tmp_path)
    program, compared = program_of(rule_for(form).bare, form.product), 0
    ranges = ranges_of(program)
    for seed, make in enumerate(nasty.makers(form)):
        for codes in codes_of(form, make(form, 6, np.random.default_rng(seed))):
            expected, found = run(program, codes), trace_of()
            assert dot(codes, ctypes.byref(found)) == expected[program.result]
            if any(getattr(found, name) for name, _ in found._fields_ if name.startswith("special")):
                continue  # Inf and NaN decide, whatever is kept
            compared += 1
            for name, _ in found._fields_:
                if not name.startswith("special"):
                    here = getattr(found, name)
                    assert (list(here) if hasattr(here, "__len__") else here) == of_field(
                        name, expected, ranges
                    ), name
    assert compared > 40


def of_field(name: str, expected: dict[str, Any], ranges: Ranges) -> Any:
    """The value of a field of the trace, from the values of the program."""
    whole, _, part = name.rpartition("_")

    def in_units(number: Number) -> int:
        (fraction,) = {each.fraction for each in ranges.parts[whole]}
        return number.signed << number.scale - number.exponent + fraction

    parts: dict[str, Callable[[Number], int]] = {
        "value": in_units,
        "exponent": lambda number: number.exponent,
        "high": lambda number: abs(in_units(number)) >> 64,
        "low": lambda number: abs(in_units(number)) % (1 << 64),
        "negative": lambda number: number.negative,
    }
    return [parts[part](each) for each in expected[whole]] if part in parts else expected[name]


def library(form: Instruction, folder: Path) -> tuple[Callable[..., int], type[ctypes.Structure]]:
    """NAME_dot, which takes codes by name and a trace, and the type of the trace."""
    model = written(form, folder)
    subprocess.run(
        [COMPILERS[0], *STRICT, "-shared", "-fPIC", "-o", "golden.so", "golden.c"], cwd=folder, check=True
    )
    loaded = ctypes.CDLL(str(folder / "golden.so"))
    types = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "uint64_t": ctypes.c_uint64}
    fields = [
        (each.name, types[each.type] * each.count if each.count > 1 else types[each.type])
        for each in model.dot.fields
    ]
    trace = type("Trace", (ctypes.Structure,), {"_fields_": fields})

    word = ctypes.c_uint64 if model.dot.word == "uint64_t" else ctypes.c_uint32

    def dot(codes: dict[str, list[int]], out: Any) -> int:
        given = [
            (word * each.count)(*codes[each.name]) if each.count > 1 else word(codes[each.name][0])
            for each in model.dot.program.inputs
        ]
        loaded.golden_dot.restype = word
        return int(loaded.golden_dot(*given, out))

    return dot, trace


@needs_cc
def test_the_model_is_freestanding(tmp_path: Path) -> None:
    """No floating point, no data, no calls but its own; its header and wrapper are C++, too."""
    model = written(FORMS[7], tmp_path)
    assert set(re.findall(r"#include <(.*?)>", model.header() + model.source())) == {"stdint.h"}
    assert not re.search(r"\b(float|double|malloc|static const)\b", model.source())
    subprocess.run([COMPILERS[0], *STRICT, "-c", "golden.c"], cwd=tmp_path, check=True)
    symbols = subprocess.run(
        ["nm", "golden.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[-2] for line in symbols.splitlines()} <= {"T", "t"}
    if shutil.which("g++"):
        (tmp_path / "use.cpp").write_text(
            '#include "golden.hpp"\nint main() { return golden_model::execute({}, {}, {}, {}, 0)[0] != 0; }\n'
        )
        command = ["g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "use.cpp", "golden.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
        subprocess.run(["./a.out"], cwd=tmp_path, check=True)


def test_every_arithmetic_has_a_datapath_of_62_bits() -> None:
    programs = {program_of(rule_for(form).bare, form.product) for form in ARITHMETICS}
    widths = {
        ranges.width(at.result)
        for each in programs
        for ranges in [ranges_of(each)]
        for at in each.named("total")
    }
    assert (min(widths), max(widths)) == (20, 49)
    assert len(programs) == 196


def test_terms_left_out_of_the_alignment_have_no_width() -> None:
    program = program_of(rule_for(FORMS[0]).bare, FORMS[0].product)
    top = next(program.named("top"))
    wrong = program.rewritten(
        lambda at: (type(at)(at.result, at.name, ("P", "P"), at.given) if at == top else at,)
    )
    with pytest.raises(OverflowError, match="C takes no part in the alignment"):
        ranges_of(wrong)


# --- the verb --------------------------------------------------------------------------------------


@pytest.fixture
def verb(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def command(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["model", *words])
        return int(ended.value.code or 0), "".join(capsys.readouterr())

    return command


def test_files_are_kept_without_force(verb: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    words = (F16, "--target", "H100", "--name", "f16", "-o", str(tmp_path))
    assert verb(*words)[0] == 0
    (tmp_path / "f16.c").write_text("mine")
    (tmp_path / "f16.hpp").unlink()
    code, said = verb(*words)
    assert code == 3
    assert "f16.h is there already" in said
    assert (tmp_path / "f16.c").read_text() == "mine"
    assert not (tmp_path / "f16.hpp").exists()
    assert verb(*words, "--force")[0] == 0
    assert (tmp_path / "f16.c").read_text() != "mine"


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--name", "1f"], 2, "identifier"),
        (["--name", "length"], 3, "length is a name inside the model"),
        (["--name", "stdint"], 3, "stdint is a name inside the model"),
        (["--name", "class"], 3, "class is a name inside the model"),
        (["--unit", "precision=25"], 3, "1 to 24"),
        (["--unit", "rounding=up"], 3, "nearest or zero"),
        (["--unit", "width=3"], 3, "length, fraction_bits, exponent_floor, precision, rounding"),
        (["--target", "sm_75"], 3, "sm_75"),
    ],
)
def test_bad_input_writes_nothing(
    verb: Callable[..., tuple[int, str]], options: list[str], code: int, says: str, tmp_path: Path
) -> None:
    ended, said = verb(F16, "--target", "sm_80", "--name", "f16", "-o", str(tmp_path / "new"), *options)
    assert ended == code, said
    assert says in said
    assert not (tmp_path / "new").exists()
