"""Generated vector sets: every kind for every sort of form, the same from the same seed, fully covered."""

from __future__ import annotations

import json

import numpy as np
import pytest

import warpsim
from warpsim.show.cli import main
from warpsim.workbench.generation.cases.corners import theme_chunk, themes_of
from warpsim.workbench.generation.cases.exhaustive import plan_of
from warpsim.workbench.generation.cases.placement import legal_fields
from warpsim.workbench.generation.cases.themes_operands import largest, scale_extremes, zero_scales
from warpsim.workbench.generation.coverage.bins import arithmetic_bins
from warpsim.workbench.generation.coverage.vector_coverage import empty_coverage, gathered
from warpsim.workbench.generation.sums.limits import limits_of
from warpsim.workbench.vectors.formats import read_vectors
from warpsim.workbench.vectors.sets import expected

MMA = "mma.sync.aligned"
F16 = f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16"
MXF4 = f"{MMA}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
FORMS = (  # one for each sort of arithmetic and of operands
    (f"{MMA}.m8n8k4.row.col.f16.f16.f16.f16", "sm_70"),
    (f"{MMA}.m8n8k4.col.row.f32.f16.f16.f16", "sm_80"),
    (F16, "sm_80"),
    (f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90"),
    (f"{MMA}.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89"),
    (f"{MMA}.m16n8k16.row.col.f16.e5m2.e4m3.f16", "sm_100"),
    (f"{MMA}.m8n8k4.row.col.rm.f64.f64.f64.f64", "sm_80"),
    (f"{MMA}.m16n8k32.row.col.satfinite.s32.s4.u4.s32", "sm_80"),
    (f"{MMA}.m8n8k128.row.col.s32.b1.b1.s32.and.popc", "sm_80"),
    (f"{MMA}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e3m2.e2m1.f32.ue8m0", "sm_120a"),
    (MXF4, "sm_120a"),
    (SPARSE, "sm_90"),
    ("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"),
    ("mma.sp.sync.aligned.m16n8k64.row.col.s32.u8.s8.s32", "sm_80"),
    (WGMMA, "sm_90a"),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k64.f16.e4m3.e5m2", "sm_90a"),
    ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", "sm_90a"),
)
SLOW = (4, 5, 9, 15, 16)  # of FORMS: python -m tools.corner_coverage covers them, and all others
COVERED = [form for index, form in enumerate(FORMS) if index not in SLOW]


@pytest.mark.parametrize(("mnemonic", "target"), COVERED)
def test_corner_vectors_cover_everything_that_can_be_reached(mnemonic, target):
    vectors, found = warpsim.corner_vectors(mnemonic, target=target)
    assert found.missed == []
    assert found.complete
    assert set(found.hits) == set(found.reachable)
    assert found.cases == len(vectors) < 1500


@pytest.mark.parametrize(("mnemonic", "target"), FORMS)
def test_d_is_what_the_registers_give(mnemonic, target):
    """The first cases again from their registers, by the reference engine."""
    vectors = warpsim.generate_vectors(mnemonic, target=target, count=3, seed=2)
    assert len(vectors) == 3
    assert np.array_equal(expected(vectors, "reference"), vectors.d)


@pytest.mark.parametrize("kind", ["corner", "random"])
def test_sets_are_the_same_however_many_cases_are_asked_for(kind):
    long = warpsim.generate_vectors(SPARSE, target="sm_90", kind=kind, count=200, seed=7)
    short = warpsim.generate_vectors(SPARSE, target="sm_90", kind=kind, count=150, seed=7)
    for name, array in short.arrays().items():
        assert np.array_equal(array, long.arrays()[name][:150]), name
    other = warpsim.generate_vectors(SPARSE, target="sm_90", kind=kind, count=150, seed=8)
    assert not np.array_equal(other.registers["a"], short.registers["a"])


def test_chunks_do_not_depend_on_each_other():
    form = warpsim.decode(F16, target="sm_80")
    first, second = (theme_chunk(form, "corner", 5, index) for index in (0, 1))
    together = warpsim.generate_vectors(F16, target="sm_80", seed=5, count=len(first) + len(second))
    assert np.array_equal(together.d[len(first) :], second.d)
    assert not np.array_equal(first.registers["a"], second.registers["a"])


def test_cases_are_labelled_with_their_themes():
    form = warpsim.decode(F16, target="sm_80")
    vectors = theme_chunk(form, "corner", 0, 0)
    names = tuple(theme.__name__.replace("_", " ") for theme in themes_of(form, "corner"))
    assert vectors.labels[: len(names)] == names
    assert vectors.title == "corner"
    assert vectors.seed == 0


def test_random_vectors_have_no_infinity_and_no_nan_among_operands():
    vectors = warpsim.generate_vectors(F16, target="sm_80", kind="random", count=60)
    for side in "abc":
        matrix = warpsim.unpack(F16, side, vectors.registers[side]).astype(np.float64)
        assert np.isfinite(matrix).all()


def test_every_output_of_a_directed_tile_is_a_case():
    """The gaps of a tile hold in all its outputs: most outputs of the theme lose or keep a last bit."""
    form = warpsim.decode(F16, target="sm_90")
    vectors = theme_chunk(form, "corner", 0, 0)
    gaps = [case for case, label in enumerate(vectors.labels) if label == "gaps"]
    found = empty_coverage(form)
    for case in gaps:
        found.add(vectors.part(case, case + 1))
    outputs = sum(hits.outputs for name, hits in found.hits.items() if name.startswith("gap "))
    assert outputs > len(gaps) * 16 * 8 * 0.8


# --- exhaustive --------------------------------------------------------------------------------------


def test_exhaustive_vectors_have_every_pair_in_every_place():
    mnemonic = f"{MMA}.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    vectors = warpsim.generate_vectors(mnemonic, target="sm_120a", kind="exhaustive")
    plan = plan_of(vectors.instruction)
    assert len(vectors) == plan.cases == 64 * 2 + 2 * 16 * 32
    assert str(plan) == (
        "all 16 x 16 pairs of e2m1 and e2m1 codes in each of 64 positions, C zero; "
        "all 256 x 256 pairs of ue8m0 scales in each of 2 chunks"
    )
    a = warpsim.unpack(mnemonic, "a", vectors.registers["a"][:128]).view(np.uint8)
    b = warpsim.unpack(mnemonic, "b", vectors.registers["b"][:128]).view(np.uint8)
    seen = {
        (k, int(x), int(y))
        for k in range(64)
        for case in range(2 * k, 2 * k + 2)
        for x in a[case, :, k]
        for y in b[case, k, :]
    }
    assert len(seen) == 64 * 256


def test_exhaustive_scales_are_all_pairs():
    vectors = warpsim.generate_vectors(MXF4, target="sm_120a", kind="exhaustive")
    scales = vectors.part(vectors.labels.index("pairs of scales"))
    seen = set()
    for part in scales.inputs():
        operands = gathered(scales.instruction, part)
        for chunk in range(4):
            a, b = operands.scale_a[:, :, chunk, None], operands.scale_b[:, chunk, None, :]
            seen |= set(((chunk << 16) | (a.astype(int) & 127) << 8 | (b & 127)).ravel().tolist())
    assert len(seen) == 4 * 128 * 128


def test_what_is_too_large_is_refused():
    with pytest.raises(warpsim.OperandError) as caught:
        warpsim.generate_vectors(F16, target="sm_80", kind="exhaustive")
    assert str(caught.value) == (
        "f16 has 2**16 codes: exhaustive vectors are for formats of at most 8 bits; use --kind corner"
    )
    mnemonic = f"{MMA}.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    message = r"^exhaustive vectors of .* are 1152 cases, not 5: all 16"
    with pytest.raises(warpsim.OperandError, match=message):
        warpsim.generate_vectors(mnemonic, target="sm_120a", kind="exhaustive", count=5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "nice"}, "unknown kind 'nice'; known are random, corner, exhaustive"),
        ({"count": 0}, "count is 0: a vector set has at least one case"),
        ({"a_in": "global"}, "a_in 'global': A of wgmma lies in 'shared' memory or in 'registers'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(warpsim.OperandError) as caught:
        warpsim.generate_vectors(F16, target="sm_80", **arguments)
    assert str(caught.value) == message


def test_a_target_is_needed():
    with pytest.raises(warpsim.OperandError, match="has no target: vectors hold the D of one chip"):
        warpsim.generate_vectors(F16)


# --- placement and coverage --------------------------------------------------------------------------


def test_wgmma_takes_a_from_registers_too():
    vectors = warpsim.generate_vectors(WGMMA, target="sm_90a", count=30, a_in="registers")
    assert "a" in vectors.registers
    assert "a_desc" not in vectors.descriptors
    assert np.array_equal(expected(vectors.part(0, 2), "reference"), vectors.d[:2])
    assert (vectors.varying()["imm_trans_a"] == 0).all()


def test_every_selector_occurs_in_chunks_of_single_rounds():
    """A large tile leaves one case a theme to a chunk: its selector is any of them."""
    mnemonic = "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.bf16.bf16"
    vectors = theme_chunk(warpsim.decode(mnemonic, target="sm_90a"), "corner", 0, 0, "registers")
    assert len(vectors) < 40
    assert set(vectors.varying()["selector"].tolist()) == {0, 1}


def test_metadata_not_known_to_work_is_not_generated():
    """Descending plain .sp pairs of bf16 are not modelled on sm_100, but on sm_90 they are."""
    mnemonic = "mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    assert len(legal_fields(warpsim.decode(mnemonic, target="sm_90"))) == 12
    assert len(legal_fields(warpsim.decode(mnemonic, target="sm_100"))) == 6
    assert len(warpsim.generate_vectors(mnemonic, target="sm_100", count=20)) == 20


def test_coverage_is_measured_on_the_registers():
    """A set of zeros hits next to nothing, whatever its labels say."""
    from warpsim.workbench.vectors.sets import make_vectors

    form = warpsim.decode(F16, target="sm_80")
    words = {
        name: np.zeros((1, 32, count), np.uint32) for name, count in form.registers.items() if name != "d"
    }
    found = warpsim.coverage(make_vectors(form, title="corner", labels=("gaps",), **words))
    assert sorted(found.hits) == ["a: +0", "b: +0", "c: +0", "result: +zero"]
    assert not found.complete
    assert len(found.missed) == len(found.reachable) - 4


def test_a_case_that_hits_a_bin_in_two_steps_is_one_case():
    """m16n8k16 is two steps on sm_80. C alone, 1, sets the alignment of both, in all 128 outputs."""
    form = warpsim.decode(F16, target="sm_80")
    words = {
        name: np.zeros((1, 32, count), np.uint32) for name, count in form.registers.items() if name != "d"
    }
    words["c"][:] = 0x3F800000
    hits = warpsim.coverage(warpsim.make_vectors(form, **words)).hits["alignment: set by C alone"]
    assert (hits.cases, hits.outputs) == (1, 128)


def test_no_bin_is_hit_by_more_cases_than_there_are():
    vectors, found = warpsim.corner_vectors(F16, target="sm_80")
    assert max(hits.cases for hits in found.hits.values()) <= len(vectors)
    assert max(hits.outputs for hits in found.hits.values()) <= len(vectors) * 128


def test_reasons_for_what_is_unreachable():
    bins = arithmetic_bins(limits_of(warpsim.decode(F16, target="sm_80")))
    assert bins["alignment: set by the exponent floor"] == (
        "products have exponents from -28, above the floor of -132"
    )
    assert bins["a: +Inf"] == ""
    narrow = f"{MMA}.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32"
    bins = arithmetic_bins(limits_of(warpsim.decode(narrow, target="sm_120a")))
    assert bins["a: +Inf"] == "e2m1 has no Inf"
    assert bins["gap F: product below product"] == "exponents differ by 4 at most, not by 25"


# --- command line --------------------------------------------------------------------------------------


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as finished:
        main(arguments)
    out, err = capsys.readouterr()
    return int(finished.value.code or 0), out, err


def test_vectors_are_written_and_covered(tmp_path, capsys):
    path = tmp_path / "corner.npz"
    code, out, err = run(["vectors", SPARSE, "--target", "sm_90", "-o", str(path), "--coverage"], capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    vectors = read_vectors(path)
    assert lines[0] == f"{path}: {len(vectors)} corner cases of {SPARSE} on sm_90"
    assert lines[1].startswith(f"coverage of {len(vectors)} cases: ")
    code, again, _ = run(["vectors", str(path), "--coverage"], capsys)
    assert code == 0
    assert again.splitlines() == lines[1:]


def test_few_cases_miss_bins_and_say_so(capsys):
    code, out, _ = run(["vectors", F16, "--target", "sm_80", "-n", "2", "--coverage", "--json"], capsys)
    document = json.loads(out)
    assert code == 1
    assert document["cases"] == 2
    assert document["coverage"]["complete"] is False
    assert "a: NaN" in document["coverage"]["missed"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([F16, "--target", "sm_80"], 2, "nothing to do: give -o FILE, --coverage, or both"),
        ([F16, "--kind", "separate"], 2, "--kind separate needs --between A B, the two models"),
        ([F16, "--coverage"], 3, "has no target: vectors hold the D of one chip"),
        ([F16, "--target", "sm_80", "--kind", "exhaustive", "--coverage"], 3, "f16 has 2**16 codes"),
        (["mma.what", "--target", "sm_80", "--coverage"], 3, "error"),
        (
            [F16, "--target", "sm_80", "--kind", "random", "-n", "1" + 20 * "0", "-o", "x.npz"],
            3,
            "100000000000000000000 cases of 1,792 bytes: a set has at most 4,793,490; "
            "make several, each with a seed of its own",
        ),
        (
            [F16, "--target", "sm_80", "-n", "1", "-o", "no/such/x.npz"],
            3,
            "no/such/x.npz: error: No such file or directory",
        ),
        (
            [F16, "--target", "sm_90", "--kind", "separate", "--between", "sm_80", "sm_90"],
            2,
            "--target sm_90: a set of separate is for the chip of the first model",
        ),
        (
            [F16, "--kind", "separate", "--between", "sm_80", "sm_90", "--coverage"],
            2,
            "--coverage is for the other kinds, or for the file that separate writes",
        ),
        (
            [__file__, "--target", "sm_90", "--coverage"],
            2,
            "is a file: it takes -o, --format, --bench, --coverage and --json alone",
        ),
    ],
)
def test_mistakes_have_exit_codes(arguments, code, message, capsys):
    got, out, err = run(["vectors", *arguments], capsys)
    assert (got, out) == (code, "")
    assert message in err


@pytest.mark.parametrize("theme", [scale_extremes, zero_scales])
@pytest.mark.parametrize(("mnemonic", "target"), [FORMS[9], FORMS[10]])
def test_themes_of_scales_draft_the_ends_of_scales(mnemonic, target, theme):
    form = warpsim.decode(mnemonic, target=target)
    draft = theme(limits_of(form), 16, np.random.default_rng(0))
    for codes in (draft.scale_a, draft.scale_b):
        assert {0, largest(form.scale)} <= set(codes.ravel().tolist())
        assert codes.dtype == form.scale.code_dtype
