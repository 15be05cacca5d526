"""Lint: silent on good registers of every sparse form, and each planted defect is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim import OperandError
from warpsim.isa.instruction import Instruction
from warpsim.workbench.diagnosis.linting.lint import Finding, lint

FORMS = tuple(
    form
    for form in warpsim.instructions("sm_120a")
    if form.sparse and form.ordered and not form.satfinite and form.b is form.a and form.lanes == 32
)
PREFIX = "mma.sp::ordered_metadata.sync.aligned.m16n8k"


def form(spelled: str, target: str = "sm_120a") -> Instruction:
    return warpsim.decode(PREFIX + spelled, target=target)


F16 = form("32.row.col.f32.f16.f16.f32")
F16_K16 = form("16.row.col.f32.f16.f16.f32")
S8 = form("64.row.col.s32.s8.s8.s32")
TF32 = form("16.row.col.f32.tf32.tf32.f32")
E2M1 = form("64.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32")
E3M2 = form("64.row.col.kind::f8f6f4.f32.e3m2.e3m2.f32")


def good(instruction: Instruction, selector: int = 0, seed: int = 0) -> dict[str, Any]:
    """Arguments of lint for a random A without zeros among its stored values: e, a, b and matrix."""
    rng = np.random.default_rng(seed)
    element, shape = instruction.a, instruction.shape
    # two codes that are finite and not zero in every format
    codes = rng.choice([1, 3], (shape.m, shape.k)).astype(element.code_dtype) << element.ignored_bits
    keep = rng.permuted(
        np.tile([1, 2, 3, 4][: pattern(instruction).choices], (shape.m, chunks(instruction), 1)), axis=2
    )
    kept = np.repeat(keep <= pattern(instruction).kept, pattern(instruction).unit, axis=2).reshape(
        codes.shape
    )
    matrix = np.where(kept, codes, codes.dtype.type(0))
    values, indices = warpsim.compress(matrix, instruction)
    return {
        "e": warpsim.pack_metadata(instruction, indices, selector=selector),
        "a": warpsim.pack(instruction, "a", values),
        "b": warpsim.pack(
            instruction, "b", rng.integers(0, 2, (shape.k, shape.n)).astype(instruction.b.code_dtype)
        ),
        "matrix": matrix,
        "selector": selector,
    }


def pattern(instruction: Instruction) -> Any:
    assert instruction.pattern is not None
    return instruction.pattern


def chunks(instruction: Instruction) -> int:
    return int(instruction.shape.k // pattern(instruction).chunk)


def rules(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule for finding in findings]


# --- silence -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("instruction", FORMS, ids=str)
def test_silent_on_good_data(instruction: Instruction) -> None:
    for selector in instruction.selectors:
        for seed in range(5):
            assert lint(instruction, **good(instruction, selector, seed)) == ()


def test_tiles_and_parts_may_be_left_out() -> None:
    cases = [good(F16, seed=seed) for seed in range(6)]
    e, a = (np.stack([case[name] for case in cases]).reshape(2, 3, 32, -1) for name in ("e", "a"))
    assert lint(F16, e=e, a=a) == ()
    assert lint(F16, a=a) == ()
    assert lint(F16) == ()
    e[1, 2, 4] = 0
    (finding,) = lint(F16, e=e, a=a)
    assert (finding.rule, finding.lane, finding.tile) == ("empty-word", 4, (1, 2))
    assert str(finding).startswith("error: tile (1, 2): lane 4: the metadata word is 0")


# --- fields --------------------------------------------------------------------------------------------


def planted(instruction: Instruction, field: int, place: int) -> tuple[dict[str, Any], Any]:
    """Good registers but for one field, and the row of metadata_map that it sits in."""
    case = good(instruction)
    where = warpsim.metadata_map(instruction, 0)[place]
    lane, bit = int(where[0]), np.uint32(where[1])
    case["e"][lane, 0] &= ~np.uint32(15 << int(bit))
    case["e"][lane, 0] |= np.uint32(field) << bit
    return {"e": case["e"], "a": case["a"]}, where


@pytest.mark.parametrize("instruction", [F16, S8], ids=str)
@pytest.mark.parametrize("field", range(16))
def test_every_field_value(instruction: Instruction, field: int) -> None:
    first, second = field & 3, field >> 2
    expected = [] if first < second else ["equal-indices" if first == second else "descending-indices"]
    for place in (0, 37, 127):
        case, where = planted(instruction, field, place)
        findings = lint(instruction, **case)
        assert rules(findings) == expected
        for finding in findings:
            low = int(where[1])
            assert (finding.lane, finding.bits) == (where[0], (low, low + 3))
            assert (finding.row, finding.chunk) == (where[3], where[4])
            assert finding.severity == "error"


@pytest.mark.parametrize("field", range(16))
def test_tf32_nibbles(field: int) -> None:
    case, _ = planted(TF32, field, 17)
    assert rules(lint(TF32, **case)) == ([] if field in (0b0100, 0b1110) else ["tf32-field"])


def test_field_message() -> None:
    case, _ = planted(F16, 0b0101, 5)
    (finding,) = lint(F16, **case)
    assert str(finding) == (
        "error: lane 1, bits 7..4 (row 0, chunk 5): field 0b0101 (indices 1, 1) is undefined "
        "[equal-indices]; name two different units"
    )


def test_stored_zeros_hide_an_undefined_field() -> None:
    case, _ = planted(F16, 0b0000, 5)
    values = np.array(warpsim.unpack(F16, "a", case["a"]))
    values[0, 10:12] = [0.0, -0.0]
    findings = lint(F16, e=case["e"], a=warpsim.pack(F16, "a", values))
    assert rules(findings) == ["equal-indices", "padding-index"]
    assert "its stored values are zero, so that results do not show it" in findings[0].message
    assert "2 of 256 stored units are zero (first: row 0, chunk 5, unit 0)" in findings[1].message


@pytest.mark.parametrize(("target", "expected"), [("sm_80", []), ("sm_100", ["descending-indices"])])
def test_descending_plain_sp_that_ptxas_does_not_sort(target: str, expected: list[str]) -> None:
    plain = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", target=target)
    case, _ = planted(plain, 0b0001, 5)
    found = lint(plain, **case, version=(8, 4))
    assert rules(found) == expected
    assert all(finding.severity == "warning" for finding in found)


# --- words and lanes -----------------------------------------------------------------------------------


def test_selector_out_of_range() -> None:
    (finding,) = lint(F16, e=good(F16)["e"], selector=2)
    assert (finding.rule, finding.severity) == ("selector", "error")
    assert "m16n8k32" in finding.message


@pytest.mark.parametrize("instruction", [F16, F16_K16], ids=str)
def test_metadata_in_lanes_that_are_ignored(instruction: Instruction) -> None:
    for used in instruction.selectors:
        for other in instruction.selectors:
            e = good(instruction, other)["e"]
            if used == other:
                continue
            findings = lint(instruction, e=e, selector=used)
            (finding,) = (finding for finding in findings if finding.rule == "ignored-lanes")
            assert finding.severity == "error"
            assert finding.fix == f"selector {other} reads these lanes"
            shared = lint(instruction, e=e | good(instruction, used)["e"], selector=used)
            assert [(finding.rule, finding.severity) for finding in shared] == [("ignored-lanes", "note")]


@pytest.mark.parametrize("instruction", [F16, S8, TF32], ids=str)
def test_broadcast_word(instruction: Instruction) -> None:
    words = good(instruction)["e"].reshape(8, 4)
    for thread in range(instruction.metadata_words):
        e = np.repeat(words[:, thread : thread + 1], 4, axis=1).reshape(32, 1)
        found = [finding for finding in lint(instruction, e=e) if finding.rule != "ignored-lanes"]
        assert [(finding.rule, finding.severity) for finding in found] == [("broadcast-word", "warning")]


@pytest.mark.parametrize(
    ("instruction", "selector", "lanes"),
    [(F16, 0, "lanes 0, 1"), (F16, 1, "lanes 2, 3"), (TF32, 0, "lanes 0, 1"), (S8, 0, "all lanes")],
)
def test_only_lanes_that_are_read_are_said_to_agree(
    instruction: Instruction, selector: int, lanes: str
) -> None:
    """The lanes that the selector ignores hold other words, or none."""
    words = good(instruction, selector)["e"].reshape(8, 4)
    first = selector * instruction.metadata_words
    read = range(first, first + instruction.metadata_words)
    e = np.where(np.isin(np.arange(4), read), words[:, first : first + 1], 0).reshape(32, 1).astype(np.uint32)
    (found,) = [each for each in lint(instruction, e=e, selector=selector) if each.rule == "broadcast-word"]
    assert found.message.startswith(f"{lanes} of each quad hold the same metadata word")


def test_uniform_metadata_is_only_noted() -> None:
    e = np.full((32, 1), 0x44444444, np.uint32)
    found = lint(S8, e=e)
    assert [(finding.rule, finding.severity) for finding in found] == [("broadcast-word", "note")]
    assert "hides errors of the layout" in found[0].message


def test_one_lane_read_may_be_broadcast() -> None:
    words = good(F16_K16)["e"].reshape(8, 4)
    e = np.repeat(words[:, :1], 4, axis=1).reshape(32, 1)
    assert {finding.rule for finding in lint(F16_K16, e=e)} == {"ignored-lanes"}


def test_k64_as_two_k32() -> None:
    words = good(S8)["e"].reshape(8, 4)
    words[:, 2:] = words[:, :2]
    (finding,) = lint(S8, e=words.reshape(32, 1))
    assert finding.rule == "two-k-halves"
    assert "k64 metadata is not two k32 blocks" in finding.fix


@pytest.mark.parametrize("instruction", [F16, S8], ids=str)
def test_metadata_of_one_row_half_only(instruction: Instruction) -> None:
    where = warpsim.metadata_map(instruction, 0)
    for half in (0, 1):
        e = good(instruction)["e"]
        for lane, bit, _, row, _ in where.tolist():
            if row // 8 == half:
                e[lane, 0] &= ~np.uint32(15 << bit)
        found = lint(instruction, e=e)
        (finding,) = (finding for finding in found if finding.rule == "row-half")
        assert f"rows {'g + 8' if half else 'g'} have no legal metadata" in finding.message
        others = {finding.rule for finding in found} - {"row-half"}
        assert others == ({"equal-indices"} if instruction is F16 else {"empty-word"})


def test_plain_sp_of_wgmma_has_no_other_spelling() -> None:
    form = warpsim.decode("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", target="sm_90a")
    e = np.full((128, 1), 0x44444444, np.uint32)
    assert [one for one in lint(form, e=e, selector=0) if one.rule == "plain-sp"] == []


def test_plain_sp_is_noted_from_ptx_8_5() -> None:
    plain = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_90a")
    case = {name: good(plain)[name] for name in ("e", "a")}
    assert lint(plain, **case, version=(8, 4)) == ()
    (finding,) = lint(plain, **case)
    assert (finding.rule, finding.severity) == ("plain-sp", "note")
    assert finding.fix == f"write {F16.mnemonic}"
    e = case["e"]
    e[0, 0] = e[0, 0] & ~np.uint32(15) | np.uint32(0b0001)
    assert lint(plain, e=e)[0].fix == f"sort the pairs and write {F16.mnemonic}"


# --- containers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("instruction", [E2M1, E3M2], ids=str)
def test_container_padding(instruction: Instruction, operand: str) -> None:
    case = good(instruction)
    case[operand][7, 1] |= np.uint32(0x80 << 16)
    (finding,) = lint(instruction, **case)
    assert (finding.rule, finding.severity, finding.lane) == ("container-padding", "warning", 7)
    assert finding.bits == ((2, 5) if instruction is E2M1 else (0, 5))


def test_e2m1_in_the_wrong_bits() -> None:
    case = good(E2M1)
    (finding,) = lint(E2M1, e=case["e"], b=case["b"] >> np.uint32(2))
    assert (finding.rule, finding.severity) == ("container-padding", "error")
    assert finding.fix == "the code sits in bits 5..2: shift the words left by 2"


# --- against logical A ---------------------------------------------------------------------------------


def halves_exchanged(instruction: Instruction, e: Any) -> Any:
    if instruction.storage("a").bits >= 16:
        return e >> np.uint32(16) | e << np.uint32(16)
    return e[np.arange(32) ^ 1]


@pytest.mark.parametrize("with_values", [True, False])
@pytest.mark.parametrize("instruction", [F16, F16_K16, TF32, S8, E3M2], ids=str)
def test_rows_of_the_wrong_half(instruction: Instruction, with_values: bool) -> None:
    case = good(instruction)
    case["e"] = halves_exchanged(instruction, case["e"])
    if not with_values:
        del case["a"]
    (finding,) = lint(instruction, **case)
    assert (finding.rule, finding.severity) == ("row-half", "error")
    assert "rows g and g + 8" in finding.fix


def test_k64_arranged_as_for_f16() -> None:
    """Four chunks of both row halves in a word, lanes along k: the 16-bit arrangement, prolonged."""
    case = good(S8)
    fields = np.zeros((16, 16), np.uint32)
    for lane, bit, _, row, chunk in warpsim.metadata_map(S8, 0).tolist():
        fields[row, chunk] = case["e"][lane, 0] >> np.uint32(bit) & np.uint32(15)
    e = np.zeros((32, 1), np.uint32)
    for row in range(16):
        for chunk in range(16):
            e[4 * (row % 8) + chunk // 4, 0] |= fields[row, chunk] << np.uint32(row // 8 * 16 + chunk % 4 * 4)
    (finding,) = lint(S8, e=e, matrix=case["matrix"])
    assert finding.rule == "arrangement"
    assert "k64 metadata is not two k32 blocks" in finding.fix


def test_values_rearranged() -> None:
    case = good(F16)
    case["a"] = case["a"][:, [0, 2, 1, 3]]
    (finding,) = lint(F16, **case)
    assert (finding.rule, finding.severity) == ("arrangement", "error")
    assert finding.message == "logical A comes out if A: registers run along k first is undone"


@pytest.mark.parametrize("step", [1, -1, 4, -4])
def test_lint_and_diff_name_a_shift_of_lanes_alike(step: int) -> None:
    case = good(S8, seed=3)
    shifted = np.roll(case["e"], -step, axis=0)  # lane l has what belongs in lane l + step
    found = [one for one in lint(S8, **case | {"e": shifted}) if one.rule == "arrangement"]
    assert any(f"belongs in lane {'+' if step > 0 else '-'} {abs(step)}" in one.fix for one in found)
    registers = {name: case[name] for name in "aeb"}
    wrong = warpsim.execute(S8, **registers | {"e": shifted}, c=np.zeros((32, 4), np.uint32))
    (match,) = warpsim.diagnose(S8, d=wrong, **registers).matches
    assert match.simplest.advice in [one.fix for one in found]


def test_a_value_is_lost() -> None:
    case = good(F16)
    row, column = (int(x) for x in np.argwhere(case["matrix"] == 0)[9])
    case["matrix"][row, column] = 1
    (finding,) = lint(F16, e=case["e"], matrix=case["matrix"])
    assert (finding.rule, finding.row, finding.chunk) == ("lost-value", row, column // 4)
    assert f"A[{row}, {column}] is not zero" in finding.message
    assert lint(F16, e=case["e"], a=case["matrix"]) == (finding,)


def test_a_value_is_another() -> None:
    case = good(F16)
    case["a"][3, 0] ^= np.uint32(1)
    (finding,) = lint(F16, **case)
    assert finding.rule == "stored-values"


# --- arguments -----------------------------------------------------------------------------------------


def test_arguments_are_checked() -> None:
    with pytest.raises(OperandError, match="is dense"):
        lint("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    with pytest.raises(OperandError, match="e has shape"):
        lint(F16, e=np.zeros((16, 1), np.uint32))
    with pytest.raises(OperandError, match="do not broadcast"):
        lint(F16, e=np.zeros((2, 32, 1), np.uint32), a=np.zeros((3, 32, 4), np.uint32))


def test_a_warpgroup_with_rows_of_the_wrong_half() -> None:
    form = warpsim.decode("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", target="sm_90a")
    matrix = warpsim.prune(np.random.default_rng(0).standard_normal((64, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(matrix, form)
    good = {"a": warpsim.pack(form, "a", values), "e": warpsim.pack_metadata(form, indices)}
    assert not [finding for finding in lint(form, **good, matrix=matrix) if finding.severity == "error"]
    halves = indices.reshape(4, 2, 8, -1)[:, ::-1].reshape(64, -1)
    found = lint(form, **good | {"e": warpsim.pack_metadata(form, halves)}, matrix=matrix)
    assert "logical A comes out if metadata: rows g and g + 8 exchanged is undone" in [
        one.message for one in found
    ]
    moved = np.roll(good["e"], 32, axis=0)
    assert "logical A comes out if metadata: warp off by -1 is undone" in [
        one.message for one in lint(form, **good | {"e": moved}, matrix=matrix)
    ]
