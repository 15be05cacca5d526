"""Inputs that tell models apart: short, and ready to run."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim.cli import main
from warpsim.generation.probes import probe
from warpsim.traces import read_trace, run_trace

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
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
    from warpsim.archives import write_arrays

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
            "model 'sm_80:digits=3': 'digits=3' is no PARAMETER=NUMBER; "
            "parameters are length, fraction_bits, exponent_floor",
        ),
        (
            "sm_80:length=x",
            "model 'sm_80:length=x': 'length=x' is no PARAMETER=NUMBER; "
            "parameters are length, fraction_bits, exponent_floor",
        ),
    ],
)
def test_a_model_that_is_none_is_named(model, message):
    with pytest.raises(warpsim.OperandError) as caught:
        warpsim.separate(warpsim.decode(F16), model, "sm_80")
    assert str(caught.value) == message


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
