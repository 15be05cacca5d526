"""Register traces: logs of NVBit and CUTracer read back into sets, and what they lack told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.example_sets import example, sparse_form
from warpsim.base.errors import TraceError
from warpsim.isa.sass_names import name_of
from warpsim.show.cli import main
from warpsim.workbench.vectors.formats import read_vectors
from warpsim.workbench.vectors.register_traces import read_register_trace
from warpsim.workbench.vectors.register_traces.sass_forms import ZERO, forms_by_name, parse
from warpsim.workbench.vectors.sets import VectorSet

SPARSE = sparse_form()
DENSE = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90a")
INTEGER = warpsim.decode("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", target="sm_90a")
FIRST = {"d": 4, "a": 8, "b": 12, "c": 20, "e": 24}  # registers that the operands begin at


# --- logs as the tools write them ------------------------------------------------------------------


def operands(form: warpsim.Instruction) -> list[str]:
    return ["d", "a", "b", "c", *(["e"] if form.sparse else [])]


def sass_of(vectors: VectorSet, case: int) -> str:
    """The disassembly of one case, every operand at its place; IMMA spells rows and columns."""
    names = [f"R{FIRST[name]}" for name in operands(vectors.instruction)]
    if name_of(vectors.instruction).startswith("IMMA"):
        names[1:3] = [f"{names[1]}.reuse.ROW", f"{names[2]}.COL"]
    if vectors.instruction.sparse:
        names.append(f"{int(vectors.immediates['selector'][case]):#x}")
    return f"{name_of(vectors.instruction)} {', '.join(names)}"


def values_of(vectors: VectorSet, case: int, *, after: bool = False) -> dict[int, np.ndarray]:
    """Every register of a case, before it (D is then something else) or after."""
    found = {}
    for name in operands(vectors.instruction):
        words = vectors.d if name == "d" else vectors.registers[name]
        words = words[case] ^ np.uint32(0 if after or name != "d" else 0xFFFFFFFF)
        found |= {FIRST[name] + index: words[:, index] for index in range(words.shape[1])}
    return found


def text_record(sass: str, values: list[np.ndarray], warp: int = 0, prefix: str = "", pad: str = "") -> str:
    lines = [f"{prefix}CTA 0,0,0 - warp {warp} - {sass} ;:"]
    for index, lanes in enumerate(values):
        cells = (
            f"Reg{index}_T{lane:{'02d' if pad else 'd'}}: {word:#010x} " for lane, word in enumerate(lanes)
        )
        lines.append(f"{pad}* {''.join(cells)}")
    return "\n".join(lines) + "\n\n"


def text_log(vectors: VectorSet, *, after: bool = False, reads: bool = False, **style: Any) -> str:
    """A log of all cases; with ``reads``, a store of every register of D follows each."""
    log = "------\nKernel k - grid size 1,1,1\n"
    for case in range(len(vectors)):
        values = list(values_of(vectors, case, after=after).values())
        log += text_record(sass_of(vectors, case), values, **style)
        if reads:
            done = values_of(vectors, case, after=True)
            stored = [done[FIRST["d"] + index] for index in range(vectors.d.shape[2])]
            log += text_record("STG.E.128 [R2.64+0x10], R4", stored, **style)
    return log


def json_log(vectors: VectorSet, *, after: bool = False) -> str:
    table, lines = {}, []
    for case in range(len(vectors)):
        values = values_of(vectors, case, after=after)
        table[str(case)] = {"sass": sass_of(vectors, case) + " ;", "regs": list(values)}
        record = {"type": "reg_trace", "ctx": "0x1", "cta": [0, 0, 0], "warp": 0, "opcode_id": case,
                  "grid_launch_id": 0, "regs": [lanes.tolist() for lanes in values.values()]}  # fmt: skip
        lines.append(json.dumps(record))
    head = {"type": "kernel_metadata", "instructions": table}
    return "\n".join([json.dumps(head), '{"type": "mem_addr_trace"}', *lines]) + "\n"


def written(tmp_path: Path, text: str, name: str = "log.txt") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


def assert_same(found: VectorSet, vectors: VectorSet) -> None:
    assert found.instruction == vectors.instruction
    for name, array in vectors.arrays().items():
        assert np.array_equal(found.arrays()[name], array), name


# --- what is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [SPARSE, DENSE, INTEGER], ids=str)
@pytest.mark.parametrize("style", [{}, {"prefix": "CTX 0x5a46d0 - ", "pad": "  "}], ids=["NVBit", "CUTracer"])
def test_a_second_log_gives_d(tmp_path, form, style):
    vectors = example(form, 3)
    before = written(tmp_path, text_log(vectors, **style))
    after = written(tmp_path, text_log(vectors, after=True, **style), "after.txt")
    trace = read_register_trace(before, "sm_90a", after=after, chip="NVIDIA H100")
    assert (trace.instructions, trace.missing) == (3, {})
    assert_same(trace.sets[0], vectors)
    assert trace.sets[0].provenance["chip"] == "NVIDIA H100"
    assert trace.sets[0].labels[0] == "line 3, CTA 0,0,0 warp 0"


@pytest.mark.parametrize("form", [SPARSE, DENSE, INTEGER], ids=str)
def test_ndjson_with_a_table_of_instructions_is_read(tmp_path, form):
    vectors = example(form, 3)
    before = written(tmp_path, json_log(vectors), "b.ndjson")
    after = written(tmp_path, json_log(vectors, after=True), "a.ndjson")
    (found,) = read_register_trace(before, "sm_90a", after=after).sets
    assert_same(found, vectors)


def test_d_is_taken_from_the_next_instruction_that_reads_it(tmp_path):
    vectors = example(SPARSE, 3)
    (found,) = read_register_trace(written(tmp_path, text_log(vectors, reads=True)), "sm_90a").sets
    assert_same(found, vectors)


def test_a_register_that_was_overwritten_is_not_taken_for_d(tmp_path):
    """Between the instruction and the store, R5 is written by something that names it only as its result."""
    vectors = example(DENSE, 1)
    done = values_of(vectors, 0, after=True)
    stored = [done[4], done[5] + np.uint32(1), done[6], done[7]]
    log = text_log(vectors) + text_record("MOV R5, 0x1", []) + text_record("STG.E.128 [R2.64], R4", stored)
    trace = read_register_trace(written(tmp_path, log), "sm_90a")
    assert trace.sets == ()
    assert trace.missing == {"D was never seen whole after the instruction": 1}


def test_warps_are_kept_apart(tmp_path):
    one, two = example(DENSE, 1, seed=1), example(DENSE, 1, seed=2)
    stores = [
        text_log(vectors, reads=True, warp=warp).split("\n\n") for warp, vectors in enumerate((one, two))
    ]
    mixed = "\n\n".join(record for pair in zip(*stores, strict=True) for record in pair)
    (found,) = read_register_trace(written(tmp_path, mixed), "sm_90a").sets
    assert np.array_equal(found.d, np.concatenate([one.d, two.d]))
    assert [label.rpartition(" ")[2] for label in found.labels] == ["0", "1"]


def test_rz_is_zero_however_many_values_the_log_has_for_it(tmp_path):
    vectors = example(DENSE, 1)
    zero = vectors.registers["c"] * np.uint32(0)
    given = {**vectors.registers, "c": zero}
    d = warpsim.execute(DENSE, **given)
    rest = [*given["a"][0].T, *given["b"][0].T]
    for zeros in (4, 1, 0):
        log = text_record(f"{name_of(DENSE)} R4, R8, R12, RZ", [*zero[0].T, *rest, *zero[0].T[:zeros]])
        log += text_record("STG.E.128 [R2.64], R4", list(d[0].T))
        (found,) = read_register_trace(written(tmp_path, log), "sm_90a").sets
        assert np.array_equal(found.registers["c"], zero)
        assert np.array_equal(found.d, d)


def test_metadata_that_descends_is_taken_as_plain_sp(tmp_path):
    plain = warpsim.decode(str(SPARSE).replace("::ordered_metadata", ""), target="sm_90a")
    vectors = example(plain, 2)
    swapped = {**vectors.registers, "e": np.full((2, 32, 1), 0x11111111, np.uint32)}
    from warpsim.workbench.vectors.sets import make_vectors

    vectors = make_vectors(plain, **swapped, selector=vectors.immediates["selector"])
    (found,) = read_register_trace(written(tmp_path, text_log(vectors, reads=True)), "sm_90a").sets
    assert_same(found, vectors)


def test_one_register_an_operand_is_not_enough(tmp_path):
    """What the tools record as they come."""
    vectors = example(SPARSE, 2)
    log = "".join(
        text_record(sass_of(vectors, case), [values_of(vectors, case)[FIRST[name]] for name in "dabce"])
        for case in range(2)
    )
    trace = read_register_trace(written(tmp_path, log), "sm_90a")
    assert trace.sets == ()
    assert trace.missing == {"HMMA.SP.16832.F32: 1 of the 4 registers of a are in the log": 2}


def test_what_is_not_read_is_counted(tmp_path):
    log = text_record("QMMA.SF.16832.F32.E4M3.E4M3.E8 R4, R8, R12, R20, R24, R25, UR4", [])
    log += text_record("HMMA.884.F32.F32.STEP0 R4, R8, R12, R20", [])
    trace = read_register_trace(written(tmp_path, log + text_record("FADD R4, R5, R6", [])), "sm_90a")
    assert (trace.instructions, list(trace.missing.values())) == (2, [1, 1])


@pytest.mark.parametrize("selector", ["0x2", "R3"])
def test_a_selector_that_is_none_is_counted(tmp_path, selector):
    vectors = example(SPARSE, 1, selector=1)
    log = text_record(
        f"{name_of(SPARSE)} R4, R8, R12, R20, R24, {selector}", list(values_of(vectors, 0).values())
    )
    trace = read_register_trace(written(tmp_path, log), "sm_90a")
    assert trace.sets == ()
    assert sum(trace.missing.values()) == 1


# --- SASS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "mnemonic", "name"),
    [
        ("sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "HMMA.16816.F32"),
        ("sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "HMMA.1688.F32.TF32"),
        ("sm_80", "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "HMMA.SP.16832.F32.BF16"),
        (
            "sm_80",
            "mma.sp.sync.aligned.m16n8k128.row.col.satfinite.s32.u4.s4.s32",
            "IMMA.SP.168128.U4.S4.SAT",
        ),
        ("sm_75", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "IMMA.8816.S8.S8"),
        ("sm_80", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "BMMA.168256.AND.POPC"),
        ("sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "QMMA.16832.F32.E4M3.E5M2"),
    ],
)
def test_names_are_those_of_nvdisasm(target, mnemonic, name):
    form = warpsim.decode(mnemonic, target=target)
    assert name_of(form) == name
    assert mnemonic in map(str, forms_by_name(target)[name])


def test_forms_of_one_name_differ_in_nothing_that_a_log_shows():
    for target in ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_120a"):
        for named in forms_by_name(target).values():
            assert len({(str(one.registers), one.shape, one.a, one.b, one.c, one.d) for one in named}) == 1
            rules = {(one.kind, one.variant) for one in named}
            assert len(rules) == len(named)


def test_sass_is_taken_apart():
    found = parse("@!P0 IMMA.SP.16832.S8.S8 R4, R4.reuse.ROW, R6.COL, RZ, R0, 0x1 ;")
    assert found is not None
    assert (found.name, found.registers, found.immediate) == ("IMMA.SP.16832.S8.S8", (4, 4, 6, ZERO, 0), 1)
    assert parse("STG.E.128 [R2.64+0x10], R4").registers == (4,)
    assert parse("") is None


# --- malformed logs --------------------------------------------------------------------------------


def test_malformed_logs_are_refused_with_the_line(tmp_path):
    text = text_log(example(DENSE, 1))
    for old, new, message in (
        ("Reg1_T5:", "Reg2_T5:", "expected the values of Reg1 in lanes T0 to T31"),
        ("Reg1_T31: ", "Reg1_T32: ", "expected the values of Reg1 in lanes T0 to T31"),
    ):
        path = written(tmp_path, text.replace(old, new))
        with pytest.raises(TraceError, match=rf"^{re.escape(str(path))}:5:1: error: {message}"):
            read_register_trace(path, "sm_90a")
    good = json_log(example(DENSE, 1)).splitlines()
    for bad in ("{", "[]", '{"type": "reg_trace"}', good[2].replace('"regs": [[', '"regs": [[1, '),
                good[2].replace('"regs": [[', '"regs_indices": [1], "regs": [['),
                good[2].replace('"regs": [[', '"regs": [[-1, ')):  # fmt: skip
        path = written(tmp_path, f"{good[0]}\n{bad}\n")
        with pytest.raises(TraceError, match=rf"^{re.escape(str(path))}:2:1: error: "):
            read_register_trace(path, "sm_90a")


# --- the command line ------------------------------------------------------------------------------


def replayed(capsys: Any, *arguments: object) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["replay", *map(str, arguments)])
    return (caught.value.code, *capsys.readouterr())


def test_replay_names_the_first_lane_that_differs(tmp_path, capsys):
    vectors = example(SPARSE, 2)
    vectors.d[1, 14, 1] ^= np.uint32(1 << 23)
    log = written(tmp_path, text_log(vectors, reads=True))
    code, out, err = replayed(
        capsys, log, "--target", "sm_90a", "--chip", "NVIDIA H100", "--out", tmp_path / "sets"
    )
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == f"{log}: 1 of 256 words differ (by hardware: NVIDIA H100)"
    assert re.match(
        r"    case 1 \(line 28, CTA 0,0,0 warp 0\): lane 14, register d1: expected .* D\[3,5\]: ", lines[2]
    )
    (file,) = (tmp_path / "sets").iterdir()
    assert_same(read_vectors(file), vectors)
    code, out, _ = replayed(capsys, log, "--target", "sm_90a", "--json")
    assert (code, json.loads(out)["instructions"], json.loads(out)["missing"]) == (1, 2, {})


def test_replay_says_how_to_record_what_is_missing(tmp_path, capsys):
    vectors = example(DENSE, 1)
    log = written(tmp_path, text_log(vectors))
    code, out, err = replayed(capsys, log, "--target", "sm_90a")
    assert code == 4
    assert out == ("not compared: 1 of 1 matrix instructions: D was never seen whole after the instruction\n")
    assert err.startswith(
        f"{log}: nothing to compare\nIn the tool's loop over operands, record every register"
    )
    assert replayed(capsys, tmp_path / "none", "--target", "sm_90a")[0] == 3
    assert replayed(capsys, log)[0] == 2


def test_what_is_no_log_is_refused(tmp_path, capsys):
    for text in ("", "case,lane,a0\n0,0,deadbeef\n", '{"type": "else"}\n'):
        log = written(tmp_path, text)
        code, out, err = replayed(capsys, log, "--target", "sm_90a")
        assert (code, out) == (3, "")
        reason = "not an NVBit or CUTracer register log: it has no record"
        assert err.startswith(f"{log}:1:1: error: {reason}")
    with pytest.raises(warpsim.IllegalInstruction, match="unknown target 'sm_1'; known are sm_70"):
        warpsim.read_register_trace(str(log), "sm_1")


def test_names_stand_for_forms_of_a_warp_in_registers() -> None:
    """Neither wgmma, nor m8n8k4, nor f64, nor block scales."""
    for target in ("sm_70", "sm_90a", "sm_120a"):
        for name, known in forms_by_name(target).items():
            for form in known:
                assert form.mnemonic.startswith("mma."), name
                assert form.products == 1, name
                assert form.a.name != "f64", name
                assert form.scale is None, name
