"""Walks with the D that came out: who makes it, where it parts, which change of one instruction makes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner, Result
from warpsim import OperandError
from warpsim.show.cli import cli
from warpsim.show.views.explanation_documents import walk_document, walk_page
from warpsim.workbench.explanation.walk import walk_product
from warpsim.workbench.explanation.walk_text import summary_lines

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
RNG = np.random.default_rng(12)
A, B = RNG.standard_normal((20, 112)).astype(np.float16), RNG.standard_normal((112, 13)).astype(np.float16)
C = RNG.standard_normal((20, 13)).astype(np.float32)
STEPS, DEPTH = 7, 16


def gemm(a: Any = A, b: Any = B, c: Any = C, target: str = "sm_80") -> Any:
    return warpsim.gemm(F16, a, b, c, target=target)


def walk(came: Any, **options: Any) -> Any:
    return walk_product(F16, 17, 9, A, B, C, came, **{"targets": ["sm_80", "sm_90"], **options})


def accumulators(change: Callable[[int, Any], Any] = lambda at, c: c) -> Any:
    """D after every instruction; ``change`` has what one starts from, by its number."""
    found, c = [], C
    for at in range(STEPS):
        k = slice(at * DEPTH, (at + 1) * DEPTH)
        c = gemm(A[:, k], B[k], change(at, c))
        found.append(c)
    return np.stack(found)


# --- who makes it ----------------------------------------------------------------------------------


def test_d_of_another_chip_is_that_of_the_chip() -> None:
    found = walk(gemm(target="sm_90"))
    assert found.outcome.makes == ("sm_90",)
    assert found.outcome.search is None
    assert found.outcome.tile["sm_90"] == found.outcome.size == 4 * 5  # of D, in the corner of a grid
    assert found.at == found.parting
    assert "  it is that of sm_90, not of sm_80" in "\n".join(summary_lines(found))


# --- what of one instruction makes it ----------------------------------------------------------------

WITHOUT = {at: np.r_[: at * DEPTH, (at + 1) * DEPTH : STEPS * DEPTH] for at in range(STEPS)}


def _twice(at: int) -> Any:
    k = np.r_[: (at + 1) * DEPTH, at * DEPTH : STEPS * DEPTH]
    return gemm(A[:, k], B[k])


def _stale(matrix: Any, at: int, other: int, axis: int) -> Any:
    found = matrix.copy()
    here, there = (slice(x * DEPTH, (x + 1) * DEPTH) for x in (at, other))
    if axis:
        found[:, here] = matrix[:, there]
    else:
        found[here] = matrix[there]
    return found


def _without_k(k: int) -> Any:
    found = A.copy()
    found[:, k] = 0
    return found


CHANGES: dict[str, tuple[Callable[[], Any], int | None, str]] = {
    "left out": (lambda: gemm(A[:, WITHOUT[4]], B[WITHOUT[4]]), 4, "left out"),
    "twice": (lambda: _twice(2), 2, "executed twice"),
    "A of the next": (lambda: gemm(_stale(A, 3, 4, 1)), 3, "reads A of instruction 4"),
    "B of the one before": (lambda: gemm(A, _stale(B, 5, 4, 0)), 5, "reads B of instruction 4"),
    "a k": (lambda: gemm(_without_k(83)), 5, "without its k 3, 83 of the product"),
    "C": (lambda: gemm(c=None), 0, "from zero: C is not added"),
    "lost": (lambda: gemm(A[:, 48:], B[48:], None), 3, "from zero: the accumulators before it are lost"),
    "restarted": (lambda: gemm(A[:, 48:], B[48:]), 3, "from C again: what was before it is lost"),
    "early": (lambda: gemm(A[:, :64], B[:64]), 3, "is the last: the loop ends early"),
    "order": (lambda: gemm(A.reshape(20, 7, 16)[:, ::-1].reshape(20, 112),
                           B.reshape(7, 16, 13)[::-1].reshape(112, 13)), None, "k in descending order"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_one_instruction_is_found(name: str) -> None:
    came, at, words = CHANGES[name]
    found = walk(came(), targets=["sm_80"])
    best = found.outcome.search.changes[0]
    assert (best.at, best.name, best.tile) == (at, words, found.outcome.size)
    assert found.at == (STEPS - 1 if at is None else at)


def test_a_change_on_the_second_target_is_found_there() -> None:
    found = walk(gemm(A[:, WITHOUT[4]], B[WITHOUT[4]], target="sm_90"))
    assert (found.outcome.on, found.outcome.search.changes[0].at) == ("sm_90", 4)


def test_one_instruction_on_another_chip() -> None:
    rows = [gemm(A[:, :48], B[:48])]
    rows.append(gemm(A[:, 48:64], B[48:64], rows[-1], "sm_90"))
    rows.append(gemm(A[:, 64:], B[64:], rows[-1]))
    row, column = np.argwhere(rows[-1] != gemm())[0].tolist()
    found = walk_product(F16, row, column, A, B, C, rows[-1], targets=["sm_80"])
    assert any((one.at, one.name) == (3, "computed as on sm_90") for one in found.outcome.search.changes)


def test_what_nothing_makes_is_said() -> None:
    came = gemm()
    came[17, 9] += 1
    found = walk(came)
    assert not found.outcome.search.fitting
    text = "\n".join(summary_lines(found))
    assert "of its tile 19 of 20 elements are as they came out" in text
    assert "only the end is known: what the accumulator was in between is not, nor where it parted" in text
    assert "warpsim diff looks into lanes and registers" in text


# --- every accumulator -----------------------------------------------------------------------------


def test_accumulators_part_where_one_is_changed() -> None:
    def cleared(at: int, c: Any) -> Any:
        return np.zeros_like(c) if at == 4 else c

    found = walk(accumulators(cleared), targets=["sm_80"])
    assert found.outcome.parting == {"sm_80": 4}
    assert found.at == 4
    best = found.outcome.search.changes[0]
    assert (best.at, best.name) == (4, "from zero: the accumulators before it are lost")
    assert "from the accumulators that came out, sm_80 differs at instruction 4" in str(found)


def test_what_follows_a_wrong_accumulator_is_no_other_parting() -> None:
    came = accumulators()
    came[3:, 17, 9] = np.float32(7)  # never changes again: wrong at 3, and at all later ones, which add
    assert walk(came, targets=["sm_80"]).outcome.parting == {"sm_80": 3}
    right = walk(accumulators())
    assert right.outcome.makes == ("sm_80",)
    assert right.outcome.parting["sm_90"] == right.at


# --- families --------------------------------------------------------------------------------------


def _halves(shape: tuple[int, ...]) -> Any:
    return (RNG.integers(-8, 9, shape) / 2).astype(np.float32)


def _case(name: str) -> tuple[str, str, dict[str, Any], int]:
    """Mnemonic, target, matrices of five instructions, and the depth of one."""
    if name == "f64":
        given = {"A": RNG.standard_normal((8, 20)), "B": RNG.standard_normal((20, 8))}
        return "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_80", given, 4
    if name == "s8":
        given = {"A": RNG.integers(-128, 128, (16, 160)).astype(np.int8)}
        given["B"] = RNG.integers(-128, 128, (160, 8)).astype(np.int8)
        return "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "sm_80", given, 32
    if name == "sparse":
        mnemonic = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
        dense = RNG.standard_normal((5, 16, 32)).astype(np.float16)
        pruned = warpsim.prune(dense, warpsim.decode(mnemonic, target="sm_90"))
        given = {"A": np.concatenate(list(pruned), axis=1)}
        given["B"] = RNG.standard_normal((160, 8)).astype(np.float16)
        return mnemonic, "sm_90", given, 32
    if name == "f16 result":
        mnemonic = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
        given = {"A": RNG.standard_normal((16, 80)).astype(np.float16)}
        given["B"] = RNG.standard_normal((80, 8)).astype(np.float16)
        return mnemonic, "sm_90", given, 16
    if name == "b1":
        mnemonic = "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc"
        bits = {"A": RNG.integers(0, 2, (8, 640)), "B": RNG.integers(0, 2, (640, 8))}
        return mnemonic, "sm_80", {key: value.astype(bool) for key, value in bits.items()}, 128
    if name == "wgmma":
        mnemonic = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16"
        given = {"A": RNG.standard_normal((64, 80)).astype(np.float16)}
        given["B"] = RNG.standard_normal((80, 16)).astype(np.float16)
        return mnemonic, "sm_90a", given, 16
    mnemonic = (
        "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0"
    )
    given = {"A": RNG.integers(0, 16, (16, 320)).astype(np.uint8)}
    given["B"] = RNG.integers(0, 16, (320, 8)).astype(np.uint8)
    given["scale_a"] = RNG.integers(124, 131, (16, 10)).astype(np.uint8)
    given["scale_b"] = RNG.integers(124, 131, (10, 8)).astype(np.uint8)
    return mnemonic, "sm_120a", given, 64


FAMILIES = ("f64", "s8", "sparse", "f16 result", "b1", "wgmma", "block scales")


def _cut(given: dict[str, Any], depth: int, steps: list[int]) -> dict[str, Any]:
    """The same product of some of its instructions."""
    k = np.concatenate([np.arange(at * depth, (at + 1) * depth) for at in steps])
    found = {"A": given["A"][:, k], "B": given["B"][k]}
    if "scale_a" in given:
        each = given["scale_a"].shape[1] // 5
        chunks = np.concatenate([np.arange(at * each, (at + 1) * each) for at in steps])
        found |= {"scale_a": given["scale_a"][:, chunks], "scale_b": given["scale_b"][chunks]}
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_walks_and_finds_what_is_left_out(name: str) -> None:
    mnemonic, target, given, depth = _case(name)
    whole = warpsim.gemm(mnemonic, **given, target=target)
    row, column = whole.shape[0] - 3, whole.shape[1] - 2
    found = walk_product(mnemonic, row, column, **given, D=whole, targets=[target])
    assert found.outcome.makes == (target,)
    cuts = [
        warpsim.gemm(mnemonic, **_cut(given, depth, list(range(at + 1))), target=target) for at in range(5)
    ]
    assert [f"{code:x}" for code in found.codes[target]] == [
        f"{int(one[row, column].view(f'u{one.itemsize}')):x}" for one in cuts
    ]
    came = warpsim.gemm(mnemonic, **_cut(given, depth, [0, 1, 3, 4]), target=target)
    lacking = walk_product(mnemonic, row, column, **given, D=came, targets=[target])
    best = lacking.outcome.search.changes[0]
    assert (best.at, best.name, best.tile) == (2, "left out", lacking.outcome.size)
    assert lacking.at == 2
    parted = walk_product(mnemonic, row, column, **given, D=np.stack(cuts), targets=[target])
    assert parted.outcome.parting == {target: None}


# --- bad inputs ------------------------------------------------------------------------------------

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "D": ({"D": C[:5]}, "D has shape (5, 13), but A and B make (20, 13), or (7, 20, 13) after every "),
    "C": ({"C": C.T.copy()}, "C has shape (13, 20), but A and B make it (20, 13)"),
    "axes": ({"A": A[None]}, "A has 3 axes, but a matrix has 2"),
    "depth": ({"B": B[:-1]}, "A is (20, 112) and B is (111, 13): k is 112 and 111"),
    "type": ({"D": C.astype(np.float64)}, None),
    "scales": ({"scale_a": np.ones((20, 4), np.uint8)}, "has no block scales"),
    "element": ({"row": 20}, "D has no element [20, 9]: A is (20, 112), B is (112, 13)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name: str) -> None:
    given, message = BAD[name]
    all_of = {"row": 17, "column": 9, "A": A, "B": B, "C": C} | given
    with pytest.raises(OperandError) as raised:
        walk_product(F16, targets=["sm_80"], **all_of)
    assert message is None or message in raised.value.message


def test_scales_must_be_given_and_fit() -> None:
    mnemonic, target, given, _ = _case("block scales")
    with pytest.raises(OperandError, match="has block scales: give scale_a= and scale_b="):
        walk_product(mnemonic, 0, 0, given["A"], given["B"], targets=[target])
    with pytest.raises(OperandError, match=r"scale_a has shape \(16, 9\), but A and B make it \(16, 10\)"):
        walk_product(mnemonic, 0, 0, **(given | {"scale_a": given["scale_a"][:, :9]}), targets=[target])


def test_accumulators_of_another_type_make_no_chain() -> None:
    mixed = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16"
    a, b = np.zeros((8, 8), np.float16), np.zeros((8, 8), np.float16)
    with pytest.raises(OperandError, match="D of one instruction is not C of the next"):
        walk_product(mixed, 0, 0, a, b, targets=["sm_70"])


# --- the command line ------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, array in (("A", A), ("B", B), ("C", C), ("D", gemm(A[:, WITHOUT[4]], B[WITHOUT[4]]))):
        np.save(f"{name}.npy", array)
    np.save("all.npy", accumulators())
    return tmp_path


def explain(*options: str) -> Result:
    given = ("explain", F16, "A=A.npy", "B=B.npy", "C=C.npy", "--element", "17,9", "--target", "sm_80")
    return CliRunner().invoke(cli, [*given, *options], standalone_mode=False)


def test_the_verb_tells_it(files: Path) -> None:
    done = explain("D=D.npy")
    assert done.return_value == 0
    assert "D[17,9] of a product, 7 instructions of" in done.stdout
    assert "4            64..79  left out       20 of 20" in done.stdout
    assert "instruction 4, k from 64 on:" in done.stdout
    assert "it is that of sm_80" in explain("D=all.npy").stdout


def test_the_same_for_programs_and_as_a_page(files: Path) -> None:
    outcome = json.loads(explain("D=D.npy", "--json").stdout)["outcome"]
    assert outcome["changes"][0] == {"name": "left out", "at": 4, "tile": 20}
    assert (outcome["makes"], outcome["parting"], outcome["fitting"]) == ([], None, 1)
    assert outcome["tile"] == {"equal": {"sm_80": 0}, "of": 20}
    assert json.loads(explain("D=all.npy", "--json").stdout)["outcome"]["parting"] == {"sm_80": None}
    assert explain("D=D.npy", "--html", "page.html").return_value == 0
    assert "left out" in Path("page.html").read_text()
    found = walk(gemm(), targets=["sm_80"])
    assert json.loads(json.dumps(walk_document(found)))["outcome"]["makes"] == ["sm_80"]
    assert "what came out" in walk_page(found)


def test_d_of_one_instruction_is_taken_too(files: Path) -> None:
    np.save("A1.npy", A[:16, :16])
    np.save("B1.npy", B[:16, :8])
    np.save("D1.npy", gemm(A[:16, :16], B[:16, :8], None))
    given = ("explain", F16, "A=A1.npy", "B=B1.npy", "D=D1.npy", "--element", "3,4", "--target", "sm_80")
    done = CliRunner().invoke(cli, list(given), standalone_mode=False)
    assert "D[3,4] of a product, 1 instruction of" in done.stdout
    assert "it is that of sm_80" in done.stdout


def test_operands_that_do_not_fit(files: Path) -> None:
    done = CliRunner().invoke(cli, ["explain", F16, "D=D.npy", "--element", "0,0", "--target", "sm_80"])
    assert done.exit_code == 2
    np.save("D.npy", C[:3])
    done = explain("D=D.npy")
    assert done.return_value == 3
    assert "D has shape (3, 13)" in done.stderr


def test_codes_of_a_format_without_a_name_in_numpy(files: Path) -> None:
    mnemonic = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    a = RNG.standard_normal((16, 96)).astype(ml_dtypes.float8_e4m3fn)
    b = RNG.standard_normal((96, 8)).astype(ml_dtypes.float8_e4m3fn)
    whole = warpsim.gemm(mnemonic, a, b, target="sm_120a")
    found = walk_product(mnemonic, 2, 3, a, b, D=whole, targets=["sm_120a"])
    assert found.outcome.makes == ("sm_120a",)
