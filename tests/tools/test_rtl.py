"""The RTL kit: the unit's sums are warpsim's in a real simulator, and every deliberate fault is caught."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tools.rtl.__main__ import main
from tools.rtl.bins import BINS
from tools.rtl.configuration import Configuration, NoSuchUnit, configure, standard
from tools.rtl.coverage import Coverage, Tally, from_json, telling
from tools.rtl.directed import cases
from tools.rtl.events import Event
from tools.rtl.faults import FAULTS, Fault
from tools.rtl.model import steps_of
from tools.rtl.plain import wrong_clocks
from tools.rtl.report import Result
from tools.rtl.scoreboard import build, verdict
from tools.rtl.simulation import FILES, HDL, faulty_text, missing, simulate, sources
from tools.rtl.stimulus import DotProduct, beats, from_vectors

HALF = "mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16"
BF16 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
UNITS = standard()
NAMES = [unit.name for unit in UNITS]
simulated = pytest.mark.skipif(bool(missing("icarus")), reason=missing("icarus"))


def made_up(unit: Configuration) -> list[DotProduct]:
    return cases(unit, seed=0, random_cases=0, repeats=1)


def registers(unit: Configuration, dots: list[DotProduct]) -> np.ndarray:
    """D of each dot product by warpsim.matmul: eight at a time, on the diagonal of one instruction."""
    form = unit.instruction
    m, n, k = form.shape.m, form.shape.n, form.shape.k
    results = []
    for start in range(0, len(dots), n):
        some = dots[start : start + n]
        a = np.zeros((m, form.stored_k), form.a.code_dtype)
        b, c = np.zeros((k, n), form.b.code_dtype), np.zeros((m, n), form.c.code_dtype)
        indices = np.tile(np.array([0, 1], np.uint8), (m, form.stored_k // 2))
        for place, dot in enumerate(some):
            a[place], b[:, place], c[place, place] = dot.a, dot.b, dot.c
            indices[place] = [column % 4 for column in dot.columns]
        given = (a, indices) if form.sparse else a
        d = warpsim.matmul(form, given, b, c, undefined="fallback")
        results += [int(d.view(form.d.code_dtype)[place, place]) for place in range(len(some))]
    return np.array(results)


# --- the scoreboard and its coverage ---------------------------------------------------------------


@pytest.mark.parametrize("unit", [unit for unit in UNITS if not unit.changes], ids=str)
def test_the_scoreboard_expects_what_the_public_interface_computes(unit: Configuration) -> None:
    dots = made_up(unit)
    assert [steps_of(unit, dot)[-1].code for dot in dots] == registers(unit, dots).tolist()


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_cases_reach_every_reachable_bin_and_no_other(unit: Configuration) -> None:
    coverage = Coverage(units=["sound"], enough=1)
    for dot in made_up(unit):
        for clock, step in enumerate(steps_of(unit, dot)):
            coverage.sample(
                Event(configuration=unit, dot=dot, clock=clock, step=step), [step.code], step.code
            )
    hit = {place.name for place in BINS if coverage.bins[place.name]}
    assert hit == {place.name for place in BINS if not place.unreachable(unit)}
    assert not list(Result(configuration=unit, coverage=coverage, whole=True).complaints())


def test_what_is_missed_or_wrong_is_said() -> None:
    unit = UNITS[0]
    dot = made_up(unit)[0]
    event = Event(configuration=unit, dot=dot, clock=0, step=steps_of(unit, dot)[0])
    coverage = Coverage(units=["sound", "a fault"], enough=1)
    coverage.sample(event, [event.code ^ 1, event.code], event.code)
    coverage.bins["largest: the exponent floor"] += 1
    complaints = list(Result(configuration=unit, coverage=coverage, whole=True).complaints())
    wrong = f"first {dot.label}: {event.code ^ 1:#x}, not {event.code:#x}"
    assert complaints[0] == f"1 of 1 sums are wrong, {wrong}"
    assert "bin 'chain: partial sum, Inf' was missed" in complaints
    floor = "no product is below the floor, 2^-132"
    assert f"bin 'largest: the exponent floor' was hit, but is held to be unreachable: {floor}" in complaints
    assert complaints[-1] == "fault 'a fault' was not caught"


def test_the_bin_that_tells_a_fault_best_has_its_errors_and_few_others() -> None:
    seen = Counter({"broad": 100, "right": 10, "narrow": 1})
    tally = Tally(wrong=8, bins=Counter({"broad": 8, "right": 8, "narrow": 1}), seen=seen)
    assert [name for _, name, _, _ in telling(tally)] == ["right", "narrow", "broad"]


def test_coverage_survives_the_file_and_retires_what_was_caught() -> None:
    unit = UNITS[0]
    dot = made_up(unit)[0]
    event = Event(configuration=unit, dot=dot, clock=0, step=steps_of(unit, dot)[0])
    coverage = Coverage(units=["sound", "fault"], enough=2)
    for _ in range(3):
        coverage.sample(event, [event.code, event.code + 1], event.code)
    copy = from_json(coverage.as_json())
    assert (copy.clocks, copy.tallies[0].wrong, copy.tallies[1].wrong) == (3, 0, 2)
    assert [copy.active(0), copy.active(1)] == [True, False]
    score, _, wrong, seen = telling(copy.tallies[1])[0]
    assert (score, wrong, seen) == (1, 2, 2)


# --- operands on the ports -------------------------------------------------------------------------


def test_elements_lie_at_their_index_times_their_width() -> None:
    unit = configure(BF16, "sm_80")
    random = Random(1)
    a, b = [random.getrandbits(16) for _ in range(8)], [random.getrandbits(16) for _ in range(16)]
    columns = [0, 1, 6, 7, 9, 11, 12, 15]
    (beat,) = beats(unit, DotProduct("", a, b, columns, 5))
    assert [beat.a >> 16 * i & 0xFFFF for i in range(8)] == a
    assert [beat.b >> 16 * i & 0xFFFF for i in range(16)] == b
    assert (beat.first, beat.c, beat.metadata) == (1, 5, 0b1100_1101_1110_0100)


def test_a_chain_gives_each_clock_its_half() -> None:
    unit = configure(HALF, "sm_80")
    first, second = beats(
        unit, DotProduct("", range(16), range(32), [4 * (i // 2) + i % 2 for i in range(16)], 7)
    )
    assert (first.first, second.first) == (1, 0)
    assert (first.a & 0xFFFF, second.a & 0xFFFF) == (0, 8)
    assert (first.b & 0xFFFF, second.b & 0xFFFF) == (0, 16)


def test_a_vector_set_becomes_its_dot_products(tmp_path: Path) -> None:
    from warpsim.workbench.vectors.formats import write_vectors
    from warpsim.workbench.vectors.sets import make_vectors

    form = warpsim.decode(HALF, target="sm_80")
    generator = np.random.default_rng(3)
    words = {
        name: generator.integers(0, 1 << 32, (2, 32, count), np.uint32)
        for name, count in form.registers.items()
        if name in "abc"
    }
    indices = np.tile(np.array([3, 1], np.uint8), (2, 16, 8))
    e = warpsim.pack_metadata(form, indices, selector=1)
    write_vectors(tmp_path / "set.npz", make_vectors(form, **words, e=e, selector=1, title="two"))
    instruction, dots = from_vectors(tmp_path / "set.npz")
    assert (instruction, len(dots)) == (form, 2 * 16 * 8)
    assert dots[9].label == "case 0, D[1,1]"
    assert dots[9].fields() == [0b0111] * 8
    unit = configure(HALF, "sm_80")
    assert [steps_of(unit, dot)[-1].code for dot in dots] == [dot.expected for dot in dots]


# --- configurations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mnemonic", "target", "changes", "message"),
    [
        (
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_90", {},
            "the unit makes fused sums; mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 on sm_90 is a "
            "FusedMultiplyAdd",
        ),
        (
            "mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90", {},
            "the unit selects 2 of 4 elements; mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32"
            ".tf32.f32 is 1:2 sparse",
        ),
        (HALF, "sm_80", {"length": 3}, f"length 3: an even divisor of the 16 products of {HALF}"),
        (HALF, "sm_80", {"fraction_bits": 0}, "fraction_bits 0: from 1 to 40"),
        (HALF, "sm_80", {"precision": 12}, "precision 12: from 2 to all the bits of f16"),
        (HALF, "sm_80", {"exponent_floor": -64}, "exponent_floor -64: less than 64 from zero"),
    ],
)  # fmt: skip
def test_what_the_unit_cannot_do_is_refused(
    mnemonic: str, target: str, changes: dict[str, int], message: str
) -> None:
    with pytest.raises(NoSuchUnit) as caught:
        configure(mnemonic, target, **changes)
    assert str(caught.value) == message


def test_parameters_are_the_rules() -> None:
    parameters = configure("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89").parameters
    assert parameters == {
        "SPARSE": 0, "L": 16, "F": 13, "EXPONENT_FLOOR": -132,
        "A_EXPONENT_BITS": 4, "A_FRACTION_BITS": 3, "A_SPECIALS": 2,
        "B_EXPONENT_BITS": 5, "B_FRACTION_BITS": 2, "B_SPECIALS": 1,
        "D_EXPONENT_BITS": 8, "D_FRACTION_BITS": 23, "PRECISION": 14, "NEAREST": 0,
    }  # fmt: skip


# --- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_one_change_that_some_unit_shows(fault: Fault) -> None:
    assert fault.applied(sources())[fault.file] != sources()[fault.file]
    assert any(not fault.unseen(unit) for unit in UNITS)
    assert faulty_text(fault, "_faulty").count("_faulty #(") == 5 + 6  # five modules, six instances of them


# --- in a simulator --------------------------------------------------------------------------------


@simulated
@pytest.mark.parametrize("unit", [UNITS[2], UNITS[3], UNITS[4]], ids=NAMES[2:])
def test_every_sum_of_the_unit_is_the_models(unit: Configuration, tmp_path: Path) -> None:
    """Beside it, the faults that the next test cannot show."""
    faults = [fault for fault in FAULTS if fault.unseen(UNITS[1]) and not fault.unseen(unit)]
    coverage = simulate(unit, tmp_path, faults=faults, cases=0, repeats=1, enough=1)
    assert coverage.clocks > 500
    assert not list(Result(configuration=unit, coverage=coverage, whole=True).complaints())


@simulated
def test_every_fault_is_caught(tmp_path: Path) -> None:
    """In the unit that shows nearly all of them: subnormal f16 results to nearest, 2:4, two clocks."""
    unit = UNITS[1]
    faults = [fault for fault in FAULTS if not fault.unseen(unit)]
    assert len(FAULTS) - len(faults) == 1
    coverage = simulate(unit, tmp_path, faults=faults, cases=0, repeats=1, enough=1)
    assert not list(Result(configuration=unit, coverage=coverage, whole=True).complaints())


@simulated
def test_a_wrong_word_in_a_vector_set_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import replace

    from warpsim.workbench.vectors.formats import write_vectors
    from warpsim.workbench.vectors.sets import make_vectors

    form = warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", target="sm_80")
    generator = np.random.default_rng(5)
    words = {
        name: generator.integers(0, 1 << 32, (1, 32, count), np.uint32)
        for name, count in form.registers.items()
        if name != "d"
    }
    good = make_vectors(form, **words)
    flipped = good.d.copy()
    flipped[0, 5, 0] ^= 1
    write_vectors(tmp_path / "good.npz", good)
    write_vectors(tmp_path / "bad.npz", replace(good, d=flipped))
    assert main(["--vectors", str(tmp_path / "good.npz")]) == 0
    assert "128 sums, 0 wrong" in capsys.readouterr().out
    assert main(["--vectors", str(tmp_path / "bad.npz")]) == 1
    assert "1 of 128 sums are wrong, first case 0, D[1,2]: " in capsys.readouterr().out


def test_without_a_simulator_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.rtl.simulation.find_spec", lambda name: True)
    monkeypatch.setattr("tools.rtl.simulation.shutil.which", lambda name: None)
    assert main([]) == 4
    assert capsys.readouterr().err == "cannot check: iverilog is not on the path: apt-get install iverilog\n"


# --- linters and synthesis -------------------------------------------------------------------------


def parameter_sets() -> list[dict[str, int]]:
    return [dict(unit.parameters) for unit in UNITS]


@pytest.mark.skipif(not shutil.which("verilator"), reason="verilator is not on the path")
@pytest.mark.parametrize("parameters", parameter_sets(), ids=NAMES)
def test_verilator_has_nothing_to_warn_of(parameters: dict[str, int]) -> None:
    options = [f"-G{name}={value}" for name, value in parameters.items()]
    paths = [str(HDL / name) for name in FILES]
    command = ["verilator", "--lint-only", "-Wall", "--top-module", "tensor_dot", *options, *paths]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("yosys"), reason="yosys is not on the path")
def test_yosys_synthesizes_it_with_one_register_of_state() -> None:
    paths = " ".join(str(HDL / name) for name in FILES)
    script = f"read_verilog -sv {paths}; hierarchy -check -top tensor_dot; proc; opt; check -assert; stat"
    finished = subprocess.run(["yosys", "-p", script], capture_output=True, text=True, check=True)
    hierarchy = finished.stdout[finished.stdout.rindex("=== design hierarchy ===") :]
    assert "$dff                            1\n" in hierarchy
    assert "latch" not in hierarchy


# --- without cocotb --------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("iverilog"), reason="iverilog is not on the path")
def test_plain_vectors_catch_faults_under_icarus(tmp_path: Path) -> None:
    unit = UNITS[1]
    names = ("no exponent floor", "F is one less", "negative underflow is -0")
    faults = [fault for fault in FAULTS if fault.name in names]
    clocks, (sound, *wrong) = wrong_clocks(unit, faults, tmp_path, "icarus")
    assert (clocks, sound, len(wrong)) == (1342, 0, 3)
    assert all(0 < count < clocks // 2 for count in wrong)


@pytest.mark.skipif(not shutil.which("verilator"), reason="verilator is not on the path")
def test_the_written_scoreboard_shows_and_names_faults(tmp_path: Path) -> None:
    names = {
        "zeros count in the maximum": ("top0", "zeros counted in the alignment"),
        "F is one less": ("kept0[8]", "-1 fraction bits: alignment keeps 23 fraction bits"),
        "rounding is the other one": ("d1", "results rounded toward zero"),
    }
    names = dict(sample(names.items(), 3, 1))
    faults = [fault for fault in FAULTS if fault.name in names]
    build(UNITS[1], faults, tmp_path)
    assert verdict(tmp_path, 0, 20) == (0, "", "")
    found = {fault.name: verdict(tmp_path, number, 40) for number, fault in enumerate(faults, 1)}
    assert all(each.wrong for each in found.values())
    assert {name: each[1:] for name, each in found.items()} == names
