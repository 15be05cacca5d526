"""Inputs that tell models apart: short, and ready to run."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest

import warpsim
from tests.helpers import ptxas
from warpsim.show.cli import main
from warpsim.sums.arithmetic import numerics, reference
from warpsim.workbench.generation.coverage.vector_coverage import gathered
from warpsim.workbench.generation.probes import probe
from warpsim.workbench.generation.separation import model_of
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
MXF8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e5m2.e4m3.f32.ue8m0"
ARRAYS = ("a", "b", "c", "columns", "scale_a", "scale_b")
CASES = (  # instruction, models, terms that are not zero of the shortest case: C and products
    (F16, "sm_80", "sm_90", 2),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_80", "sm_80:length=16", 3),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80", "sm_80:exponent_floor=-133", 2),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90", "sm_120", 2),
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_70", "sm_80", 2),
    ("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "sm_90a", "sm_90a:fraction_bits=14", 2),
)


@pytest.mark.parametrize(("mnemonic", "first", "second", "terms"), CASES)
def test_models_are_told_apart_by_short_inputs(mnemonic, first, second, terms):
    found = warpsim.separate(warpsim.decode(mnemonic), first, second, count=3)
    assert found is not None
    sizes = [len(products) + (c != 0) for c, products in found.terms]
    assert sizes == sorted(sizes)
    assert sizes[0] <= terms
    assert (found.first != found.second).all()
    d = warpsim.unpack(found.vectors.instruction, "d", found.vectors.d)
    corner = d.reshape(len(found.vectors), -1)[:, 0].view(found.models[0].instruction.d.code_dtype)
    assert np.array_equal(corner, found.first)


@pytest.mark.parametrize(("mnemonic", "first", "second"), [case[:3] for case in CASES])
def test_probes_run_and_fail_on_the_other_target(mnemonic, first, second, tmp_path):
    from warpsim.base.files.archives import write_arrays

    found = warpsim.separate(warpsim.decode(mnemonic), first, second, count=2)
    text, arrays = probe(found.vectors, "data.npz")
    (tmp_path / "probe.ptx").write_text(text)
    write_arrays(tmp_path / "data.npz", arrays)
    trace = read_trace(tmp_path / "probe.ptx")
    assert run_trace(trace).passed
    if ":" not in second:
        assert not any(check.passed for check in run_trace(trace, target=second).checks)


def test_equal_models_are_not_told_apart():
    assert warpsim.separate(warpsim.decode(F16), "sm_90", "sm_100") is None


def test_the_first_model_decides_d_even_with_changed_numbers():
    found = warpsim.separate(warpsim.decode(F16), "sm_90:fraction_bits=20", "sm_90", count=1)
    d = warpsim.unpack(found.vectors.instruction, "d", found.vectors.d)[0, 0, 0]
    assert d.view(np.uint32) == found.first[0] != found.second[0]
    assert found.vectors.provenance["rule"] == "sm_90:fraction_bits=20"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "sm_80:digits=3",
            "model 'sm_80:digits=3': 'digits=3' is not a PARAMETER=NUMBER; "
            "parameters are length, fraction_bits, exponent_floor",
        ),
        (
            "sm_80:length=x",
            "model 'sm_80:length=x': 'length=x' is not a PARAMETER=NUMBER; "
            "parameters are length, fraction_bits, exponent_floor",
        ),
        ("sm_80:length=0", "model 'sm_80:length=0': length is 1 to 64, not 0"),
        ("sm_80:length=-3", "model 'sm_80:length=-3': length is 1 to 64, not -3"),
        ("sm_80:fraction_bits=49", "model 'sm_80:fraction_bits=49': fraction_bits is 0 to 48, not 49"),
        (
            "sm_80:exponent_floor=" + 30 * "9",
            f"model 'sm_80:exponent_floor={30 * '9'}': exponent_floor is -1000 to 1000, not {20 * '9'}",
        ),
    ],
)
def test_a_model_that_is_none_is_named(model, message):
    with pytest.raises(warpsim.OperandError) as caught:
        warpsim.separate(warpsim.decode(F16), model, "sm_80")
    assert str(caught.value) == message


@pytest.mark.parametrize("change", ["length=1", "length=64", "fraction_bits=48", "fraction_bits=0"])
@pytest.mark.parametrize("mnemonic", [F16, MXF8])
def test_numbers_that_are_taken_are_computed_exactly(mnemonic, change):
    """At the ends of what is legal the kernel still gives what plain integers give."""
    model = model_of(warpsim.decode(mnemonic), f"sm_120a:{change}")
    vectors = warpsim.generate_vectors(model.instruction, count=60)
    for part in vectors.inputs():
        operands = gathered(model.instruction, part)
        one = replace(
            operands, **{x: getattr(operands, x)[:4] for x in ARRAYS if getattr(operands, x) is not None}
        )
        assert np.array_equal(numerics.compute(one, model.rule), reference.compute(one, model.rule))


def test_a_is_in_registers_where_that_is_asked_for():
    mnemonic, models = CASES[-1][0], CASES[-1][1:3]
    found = warpsim.separate(mnemonic, *models, count=1, a_in="registers")
    assert found is not None
    assert {"a", "c"} == found.vectors.registers.keys()
    assert warpsim.verify(found.vectors).passed
    with pytest.raises(warpsim.OperandError, match="count is 0: a vector set has at least one case"):
        warpsim.separate(mnemonic, *models, count=0)


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing())
@pytest.mark.parametrize(("mnemonic", "first", "second"), [case[:3] for case in CASES if case[1] != "sm_70"])
def test_ptxas_assembles_probes(mnemonic, first, second, tmp_path):
    found = warpsim.separate(mnemonic, first, second, count=2)
    text, _ = probe(found.vectors, "data.npz")
    kernel = f".version 9.0\n.target {first}\n.address_size 64\n.visible .entry probe() {{\n{text}ret;\n}}\n"
    (tmp_path / "probe.ptx").write_text(kernel)
    command = [
        str(ptxas.program()),
        f"-arch={first}",
        str(tmp_path / "probe.ptx"),
        "-o",
        str(tmp_path / "probe.cubin"),
    ]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


def test_the_command_writes_a_set_and_a_trace(tmp_path, capsys):
    path = tmp_path / "probe.npz"
    arguments = ["vectors", F16, "--kind", "separate", "--between", "sm_80", "sm_90", "-n", "2"]
    with pytest.raises(SystemExit) as finished:
        main([*arguments, "-o", str(path)])
    out = capsys.readouterr().out
    assert finished.value.code == 0
    assert out.splitlines()[0].startswith("case 0: ")
    assert out.splitlines()[-1] == f"wrote {path.with_suffix('.ptx.npz')}"
    assert run_trace(read_trace(path.with_suffix(".ptx"))).passed
    with pytest.raises(SystemExit) as finished:
        main(["vectors", F16, "--kind", "separate", "--between", "sm_90", "sm_100"])
    assert finished.value.code == 1
    assert capsys.readouterr().out == "no corner case separates sm_90 and sm_100\n"


def test_a_trace_of_too_many_cases_is_refused():
    vectors = warpsim.generate_vectors(F16, target="sm_80", count=65)
    with pytest.raises(warpsim.OperandError, match="a trace has at most 64 cases, not 65"):
        probe(vectors, "data.npz")
