"""Vector sets: what belongs to one, how it is cut, and that D is what each case gives by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpsim
from tests.helpers.example_sets import arguments, example, kinds_of_form, sparse_form, unexecuted
from warpsim.workbench.vectors import sets as module
from warpsim.workbench.vectors.sets import VectorSet, expected, immediates_of, make_vectors

FORM = sparse_form()
DENSE = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
WARPGROUP = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", target="sm_90a")
SCALED = warpsim.decode(
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    target="sm_120a",
)


# --- execution -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [FORM, DENSE, WARPGROUP, SCALED], ids=str)
def test_d_is_what_every_case_gives_by_itself(form):
    vectors = example(form, 5)
    for case in range(5):
        given = {name: array[case] for name, array in vectors.arrays().items() if name != "d"}
        single = {name: int(value) if np.ndim(value) == 0 and name in vectors.immediates else value
                  for name, value in given.items()}  # fmt: skip
        alone = warpsim.execute(form, engine="reference", **single, **vectors.constants())
        assert np.array_equal(alone, vectors.d[case])


def test_expected_does_not_read_d():
    vectors = example(FORM, 3)
    assert np.array_equal(expected(replace(vectors, d=vectors.d ^ 1)), vectors.d)


def test_the_model_says_that_it_made_a_set():
    vectors = example(FORM, 1, seed=7)
    assert vectors.provenance["kind"] == "model"
    assert vectors.provenance["version"] == warpsim.__version__
    assert vectors.provenance["evidence"] == str(warpsim.evidence(FORM))
    assert vectors.seed == 7


def test_metadata_without_a_meaning_is_an_error_unless_asked_for():
    given = arguments(FORM, 2, 0) | {"e": np.zeros((2, 32, 1), np.uint32)}
    with pytest.raises(warpsim.UndefinedBehavior, match="indices 0, 0 are equal"):
        make_vectors(FORM, **given)
    assert len(make_vectors(FORM, undefined="fallback", **given)) == 2


# --- parts -----------------------------------------------------------------------------------------


def test_parts_have_equal_immediates_and_cover_every_case_once(monkeypatch):
    vectors = unexecuted(FORM, 40)
    monkeypatch.setattr(module, "PART_BYTES", 9 * module.case_bytes(vectors))
    seen = []
    for part in vectors.inputs(3, 33):
        cases = np.arange(40)[part.cases]
        assert len(cases) <= 9
        assert set(vectors.immediates["selector"][cases]) == {part.arguments["selector"]}
        assert np.array_equal(part.arguments["a"], vectors.registers["a"][cases])
        seen += cases.tolist()
    assert sorted(seen) == list(range(3, 33))


def test_cases_of_constant_immediates_are_not_copied():
    vectors = unexecuted(FORM, 4, immediates={"selector": 1})
    (part,) = vectors.inputs()
    assert part.arguments["selector"] == 1
    assert part.arguments["a"].base is vectors.registers["a"]


def test_the_parts_of_a_set_together_are_the_set(monkeypatch):
    vectors = unexecuted(FORM, 10)
    monkeypatch.setattr(module, "PART_BYTES", 4 * module.case_bytes(vectors))
    parts = list(vectors.parts())
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sum((part.labels for part in parts), ()) == vectors.labels
    for name, array in vectors.arrays().items():
        assert np.array_equal(np.concatenate([part.arrays()[name] for part in parts]), array)


def test_a_case_is_as_large_as_its_arrays():
    assert module.case_bytes(unexecuted(FORM, 3)) == 32 * 4 * (4 + 4 + 4 + 1 + 4) + 1


# --- what belongs to a set -------------------------------------------------------------------------


def test_every_kind_of_form_has_sets():
    forms = list(kinds_of_form())
    assert {form.family.name for form in forms} == {"mma", "mma.sp", "wgmma", "wgmma.sp"}
    for form in forms:
        vectors = unexecuted(form, 2)
        assert len(vectors) == 2
        assert list(vectors.arrays())[-1] == "d"


@pytest.mark.parametrize(
    ("form", "legal"),
    [
        (DENSE, {}),
        (FORM, {"selector": (0, 1)}),
        (SCALED, {"byte_id_a": (0, 2), "thread_id_a": (0, 1),
                  "byte_id_b": (0, 2), "thread_id_b": (0, 1, 2, 3)}),
        (WARPGROUP, {"scale_d": (0, 1), "imm_scale_a": (-1, 1), "imm_scale_b": (-1, 1),
                     "imm_trans_a": (0, 1), "imm_trans_b": (0, 1)}),
    ],
    ids=str,
)  # fmt: skip
def test_immediates_are_those_of_the_form(form, legal):
    assert {name: tuple(values) for name, values in immediates_of(form).items()} == legal


WORDS = np.zeros((2, 32, 4), np.uint32)
WRONG = [
    ({"instruction": replace(FORM, target=None)}, f"{FORM} has no target: decode it with target='sm_…'"),
    ({"d": WORDS[:0]}, "a vector set has at least one case"),
    ({"d": WORDS[:1]}, "a has shape (2, 32, 4), but in this vector set it is (1, 32, 4)"),
    ({"d": WORDS.astype(np.uint64)}, "d has dtype uint64, but in a vector set it is uint32"),
    ({"registers": {"a": WORDS, "b": WORDS, "e": WORDS[..., :1]}}, f"a vector set of {FORM} needs c"),
    ({"registers": {"a": WORDS, "b": WORDS, "c": WORDS, "e": WORDS}},
     "e has shape (2, 32, 4), but in this vector set it is (2, 32, 1)"),
    ({"registers": {"f": WORDS}}, f"{FORM} has no operand f; it takes a, b, c, d, e, selector"),
    ({"immediates": {"selector": 2}}, "selector is one of 0, 1, not 2"),
    ({"immediates": {"selector": np.array([0, 257])}}, "selector is one of 0, 1, not 257"),
    ({"immediates": {"selector": np.zeros(2)}}, "selector has dtype float64, but it is an integer"),
    ({"immediates": {"selector": np.zeros(3, int)}},
     "selector has shape (3,), but in this vector set it is (2,)"),
    ({"immediates": {"scale_d": 1}}, f"{FORM} has no immediate scale_d; it has selector"),
    ({"shared": np.zeros((2, 8), np.uint8)},
     f"{FORM} has no operand shared; it takes a, b, c, d, e, selector"),
    ({"labels": ("x",)}, "1 labels for 2 cases: expected one each, or none"),
    ({"labels": ("x", "y\n")}, "'y\\n': title and labels are printable text on one line"),
    ({"title": "\x1b[2J"}, "'\\x1b[2J': title and labels are printable text on one line"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_does_not_belong_to_a_set_is_refused(change, message):
    with pytest.raises(warpsim.OperandError) as caught:
        unexecuted(FORM, 2, **change)
    assert str(caught.value) == message


def test_a_of_a_warpgroup_is_in_registers_or_behind_a_descriptor():
    given = unexecuted(WARPGROUP, 2, seed=1)
    a, word = np.zeros((2, 128, 4), np.uint32), np.zeros(2, np.uint64)
    both = {"registers": given.registers | {"a": a}, "descriptors": {"a_desc": word, "b_desc": word}}
    neither = {"registers": {"c": given.registers["c"]}, "descriptors": {"b_desc": word}}
    for change, message in (
        (both, "takes A in registers .a. or behind a descriptor .a_desc., not both"),
        (neither, "needs a$"),
    ):
        with pytest.raises(warpsim.OperandError, match=message):
            replace(given, **change)


def test_c_may_be_left_out_where_scale_d_is_0():
    given = unexecuted(WARPGROUP, 2)
    registers = {name: words for name, words in given.registers.items() if name != "c"}
    assert "c" not in replace(given, registers=registers, immediates={"scale_d": 0}).arrays()
    with pytest.raises(warpsim.OperandError, match=r"needs c$"):
        replace(given, registers=registers)


def test_shared_memory_is_no_larger_than_that_of_a_cta():
    given = unexecuted(WARPGROUP, 1)
    with pytest.raises(warpsim.OperandError, match=r"shared has shape \(1, 232449\)"):
        replace(given, shared=np.zeros((1, 232449), np.uint8))


def test_sets_are_compared_by_identity():
    one: VectorSet = unexecuted(FORM, 1)
    assert one != unexecuted(FORM, 1)


def test_what_a_debugger_shows_is_short() -> None:
    """repr of a form had the tables of its whole family, 18,000 characters."""
    form = warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", target="sm_80")
    vectors, coverage = warpsim.corner_vectors(form, count=50)
    assert repr(form) == f"<{form.mnemonic} on sm_80>"
    assert repr(form.family) == "<family mma>"
    assert repr(vectors) == f"<VectorSet: 50 cases of {form!r}>"
    hit = len(coverage.reachable) - len(coverage.missed)
    assert repr(coverage) == (f"<Coverage: 50 cases of {form!r} hit {hit} of {len(coverage.reachable)} bins>")
