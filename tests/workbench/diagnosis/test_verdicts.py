"""Verdicts: a mistake planted in a kernel is named first, at the statement that makes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import warpsim
from tests.helpers import kernel_cases
from tests.helpers.families import sample
from warpsim import OperandError, Verdict
from warpsim.programs.launch.array_agreement import agreement
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.verdicts.output_errors import output_error

ROOT = Path(__file__).parents[3] / "traces" / "kernels"
SOURCE = (ROOT / "dense_tiles.ptx").read_text()
RING = (ROOT / "bulk_ring.ptx").read_text()


def matrices() -> list[Any]:
    random = np.random.default_rng(0)
    A, B = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    return [A, B, np.zeros((64, 64), np.float32), np.uint32(64), np.uint32(64)]


@cache
def intact() -> np.ndarray:
    args = matrices()
    load_text(SOURCE)["dense_f16"]((2, 2), 64, args)
    return args[2]


@pytest.fixture
def right() -> np.ndarray:
    return intact()


def changed(*edits: tuple[int, str, str], source: str = SOURCE) -> str:
    lines = source.split("\n")
    for number, old, new in edits:
        assert old in lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old, new, 1)
    return "\n".join(lines)


def verdict(text: str, expected: Any, tolerance: float = 1e-3, **options: Any) -> Verdict:
    kernel = load_text(text, "kernel.ptx")["dense_f16"]
    return warpsim.why(kernel, (2, 2), 64, matrices(), {2: expected}, tolerance, **options)


@cache
def of_edits(*edits: tuple[int, str, str]) -> Verdict:
    """Return the verdict on the kernel with these edits, which several tests ask."""
    return verdict(changed(*edits), intact())


@pytest.mark.parametrize(
    ("edit", "kind", "line", "operand"),
    sample(
        [
            ((220, ".trans", ""), "transposed", 220, "b"),
            ((223, "%r77, %r78, %r79", "%r77, %r79, %r78"), "registers", 214, "a"),
            ((226, "%r84, %r85", "%r85, %r84"), "order", 220, "b"),
            ((226, "%r84, %r85", "%r82, %r83"), "repeated", 226, "a"),
            ((239, "%rd63, %rd5", "%rd63, 0"), "operand", 197, "b"),
            ((158, ", 32", ", 16"), "operand", 223, "b"),
            ((211, "bar.sync", "//bar.sync"), "race", 220, ""),
            ((209, "wait_group 1", "wait_group 2"), "in flight", 214, ""),
            ((240, ", 32", ", 64"), "Fault", 193, ""),
            ((284, "%f144", "%f143"), "moved", 284, ""),
            ((166, "0f00000000", "0f3F800000"), "missing", 284, ""),
        ],
        2,
    ),
    ids=str,
)
def test_the_first_line_names_the_mistake(
    edit: tuple[int, str, str], kind: str, line: int, operand: str
) -> None:
    found = of_edits(edit)
    assert (found.kind, found.operand) == (kind, operand)
    assert found.location is not None
    assert found.location.line == line
    but = "outputs as expected, but " * found.outputs_as_expected
    assert str(found).startswith(f"verdict: {but}kernel.ptx:{line}:")


def test_a_cause_is_proven_before_it_is_claimed() -> None:
    found = of_edits((220, ".trans", ""))
    assert found.formula == "dense_f16_param_0 @ dense_f16_param_1"
    assert found.causes[0].evidence.startswith("proven")
    two = of_edits((220, ".trans", ""), (223, "%r77, %r78, %r79", "%r77, %r79, %r78"))
    assert {cause.kind for cause in two.causes} == {"registers", "transposed"}
    another = of_edits((220, ".trans", ""), (166, "0f00000000", "0f3F800000"))
    assert another.causes[0].kind == "transposed"
    assert another.causes[0].evidence.startswith("proven for ")  # elements whose accumulator begins at zero


def test_stores_of_an_operand_are_not_those_of_another() -> None:
    """Both tiles are in shared memory, and the instruction reads them through descriptors."""
    path = Path(__file__).parents[3] / "traces" / "mistakes" / "wrong_swizzle.ptx"
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    d, product = np.zeros((64, 64), np.float32), a.astype(np.float64) @ b.T.astype(np.float64)
    found = warpsim.why(
        load_text(path.read_text(), path.name)["product"], 1, 128, [a, b, d], {2: product}, 1e-2
    )
    assert (found.operand, found.location is not None) == ("b", True)
    assert found.location.quoted().startswith("st.shared")
    assert 221 < found.location.line < 392  # copy_tile(right, b, …), inlined


def test_a_race_says_what_is_missing_and_where() -> None:
    found = of_edits((211, "bar.sync", "//bar.sync"))
    assert found.fix == "put bar.sync (__syncthreads()) between line 209 and line 220"
    assert (found.outputs_as_expected, found.as_expected) == (True, False)
    assert found.notes[0].startswith("under this schedule the outputs are as expected all the same")
    flight = of_edits((209, "wait_group 1", "wait_group 2"))
    assert flight.fix.startswith("put cp.async.wait_group, with fewer groups that may be in flight, and then")


def test_a_race_with_both_statements_named_is_not_looked_for_under_other_schedules(right: np.ndarray) -> None:
    """Each execution calls progress with all CTAs done."""
    done = list[tuple[int, int]]()
    found = verdict(changed((211, "bar.sync", "//bar.sync")), right, progress=lambda *at: done.append(at))
    assert found.kind == "race"
    assert done.count((4, 4)) == 1


def test_the_statements_on_the_way_of_the_data() -> None:
    (cause,) = of_edits((223, "%r77, %r78, %r79", "%r77, %r79, %r78")).causes
    assert [(what, where.line) for what, where in cause.also] == [
        ("writes the shared memory that is read", 76),
        ("writes the shared memory that is read", 193),
        ("the matrix instruction", 223),
    ]


def test_what_is_no_formula_is_not_guessed(right: np.ndarray) -> None:
    random = np.random.default_rng(8).standard_normal(right.shape).astype(np.float32)
    found = verdict(SOURCE, random)
    assert (found.causes, found.formula) == ((), "")
    assert "verdict: outputs are wrong; no cause was found" in str(found)
    assert "--reference FILE.py:FUNCTION" in found.notes[-1]


def test_a_float32_reference_without_a_tolerance_differs_by_rounding_only() -> None:
    A, B, *_ = matrices()
    expected = A.astype(np.float32) @ B.astype(np.float32)
    found = verdict(SOURCE, expected, 0.0)
    assert (found.kind, found.as_expected) == ("rounding", False)
    assert "differs by rounding only: largest " in found.cause
    assert found.causes[0].evidence.startswith("proven: the kernel computes")


def test_an_operand_that_is_wrong_in_any_order_comes_before_its_race(right: np.ndarray) -> None:
    """The wait is right, the stage is another: that its bytes are in flight is the consequence."""
    found = verdict(changed((212, "%r118;", "%r118; xor.b32 %r81, %r81, 2048;")), right)
    assert (found.kind, found.operand) == ("stage", "a")
    assert found.causes[0].evidence.startswith("proven")
    assert "is in flight" in found.causes[0].symptoms[-1]


def test_a_right_launch(right: np.ndarray) -> None:
    found = verdict(SOURCE, right, 0.0)
    assert found.as_expected
    assert str(found) == "verdict: nothing is wrong; 1 output is as expected"


def test_warnings_are_shown_where_nothing_is_wrong_with_the_outputs() -> None:
    one = agreement(np.ones(2), np.ones(2), 0.0)
    verdict = Verdict(
        causes=(), errors=(), agreements={"a": one, "b": one}, notes=("k.ptx:4:1: no wgmma.fence",)
    )
    assert str(verdict).splitlines() == [
        "verdict: nothing is wrong; 2 outputs are as expected",
        "note: k.ptx:4:1: no wgmma.fence",
    ]


def test_type_checkers_know_what_a_report_returns() -> None:
    hints = get_type_hints(warpsim.LaunchReport.why, localns={"Verdict": Verdict})
    assert hints["return"] is Verdict


def test_a_report_says_why_and_changes_nothing(right: np.ndarray) -> None:
    args = matrices()
    report = load_text(changed((226, "%r84, %r85", "%r82, %r83")))["dense_f16"]((2, 2), 64, args)
    after = args[2].copy()
    found = report.why({"dense_f16_param_2": right}, tolerance=1e-3)
    assert "are multiplied again" in found.cause
    assert found.errors[0].pattern == "columns c with c mod 32 in {8, 9, 10, 11, 12, 13, 14, 15}"
    assert np.array_equal(args[2], after)


def test_arguments_in_device_buffers(right: np.ndarray) -> None:
    device = warpsim.Device("sm_80")
    A, B, D, *sizes = matrices()
    buffers = [device.array(A), device.array(B), device.empty(D.shape, D.dtype)]
    kernel = load_text(changed((220, ".trans", "")), "kernel.ptx")["dense_f16"]
    found = warpsim.why(kernel, (2, 2), 64, [*buffers, *sizes], {2: right}, 1e-3)
    assert "every 8x8 matrix of the tile of dense_f16_param_1 is transposed" in found.cause
    assert found.causes[0].evidence.startswith("proven")
    assert not buffers[2].get().any()  # nothing was written
    report = kernel((2, 2), 64, [*buffers, *sizes], device=device)
    after = buffers[2].get()
    assert report.why({2: right}, tolerance=1e-3).cause == found.cause
    assert np.array_equal(buffers[2].get(), after)


def test_a_buffer_is_as_it_was_before_the_launch() -> None:
    """Sums that are added to what is there: a second execution begins from the first content."""
    case = kernel_cases.case("split_k_f32 normal")
    kernel = load_text((ROOT / case.file).read_text(), case.file)[case.entry]
    device = warpsim.Device("sm_80")
    arguments = [device.array(value) if isinstance(value, np.ndarray) else value for value in case.arguments]
    report = kernel(case.grid, case.block, arguments, device=device)
    assert report.why(dict(case.expected), 1e-3).as_expected


def ring_verdict(line: int, old: str, new: str) -> Verdict:
    random = np.random.default_rng(1)
    args: list[Any] = [random.standard_normal((32, 64)).astype(np.float16) for _ in range(2)]
    args += [np.zeros((32, 32), np.float32), np.uint32(32), np.uint32(32), np.uint32(64)]
    right = [*args[:2], args[2].copy(), *args[3:]]
    load_text(RING)["bulk_ring"](1, 96, right)
    kernel = load_text(changed((line, old, new), source=RING), "ring.ptx")["bulk_ring"]
    return warpsim.why(kernel, 1, 96, args, {2: right[2]})


def test_another_schedule_says_more_than_a_deadlock_does() -> None:
    found = ring_verdict(230, "%r225", "1")  # a wrong parity
    assert found.kind != "Deadlock"
    assert "overwrites stages of shared memory" in found.cause
    assert any("deadlock" in symptom for symptom in found.causes[0].symptoms)


def test_an_expect_tx_that_is_too_small_is_found_though_the_output_is_right() -> None:
    found = ring_verdict(152, "%r204", "2048")
    assert found.errors == ()
    assert "of shared memory, which cp.async.bulk" in found.cause


def test_an_array_in_place_of_another() -> None:
    found = ring_verdict(168, "%rd33", "%rd32")
    assert (found.kind, found.operand) == ("operand", "a")
    assert "bulk_ring_param_0[8, 32] stands where the reference has bulk_ring_param_1[8, 32]" in found.cause


def test_a_variable_that_is_never_reached_is_no_array(right: np.ndarray) -> None:
    kernel = load_text(SOURCE)["dense_f16"]
    with pytest.raises(OperandError, match=r"expected\[4\]: no array argument; they are 0 dense_f16_param_0"):
        warpsim.why(kernel, (2, 2), 64, matrices(), {4: right})
    with pytest.raises(OperandError, match=r"expected\[2\] has shape \(8, 8\)"):
        warpsim.why(kernel, (2, 2), 64, matrices(), {2: right[:8, :8]})
    with pytest.raises(OperandError, match="bits are compared unless there is a tolerance"):
        warpsim.why(kernel, (2, 2), 64, matrices(), {2: right.astype(np.float64)})
    with pytest.raises(OperandError, match="expected a number from 0 to below 1"):
        warpsim.why(kernel, (2, 2), 64, matrices(), {2: right}, tolerance=1.0)


def test_patterns_of_places() -> None:
    expected = np.zeros((32, 16), np.float32)
    for place, told in (
        ((slice(8, 16), slice(None)), "rows 8 to 15"),
        ((slice(None), 3), "column 3 alone"),
        ((np.arange(32) % 8 == 5, slice(None)), "rows r with r mod 8 in {5}"),
        ((slice(None), slice(None)), "all of it"),
    ):
        given = expected.copy()
        given[place] = 1
        error = output_error(0, "D", given, expected, 0.0)
        assert error is not None
        assert error.pattern == told


def test_sums_of_atomics_whose_order_is_open_are_right_within_the_tolerance() -> None:
    case = kernel_cases.case("split_k_f32 normal")
    kernel = load_text((ROOT / case.file).read_text(), case.file)[case.entry]
    arguments = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    found = warpsim.why(kernel, case.grid, case.block, case.passed(arguments), dict(case.expected), 1e-3)
    assert found.as_expected


SCALED = """\
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 scale[4];
.visible .entry scaled(.param .u64 out)
{
  .reg .b64 %a; .reg .b32 %t; .reg .f32 %x, %y;
  ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %a;
  ld.const.f32 %x, [scale];
  ld.global.f32 %y, [%a]; mul.f32 %y, %y, %x; st.global.f32 [%a], %y; ret;
}
"""


def test_a_variable_that_was_never_set_is_the_cause_of_wrong_outputs() -> None:
    module = load_text(SCALED)
    values = np.arange(32, dtype=np.float32)
    found = warpsim.why(module["scaled"], 1, 32, [values], {0: 3 * values})
    assert found.kind == "uninitialised"
    assert found.location.line == 9
    assert found.causes[0].message.startswith("ld.const.f32 reads 4 bytes of scale, a .const variable")
    assert 'module.symbol("scale").set' in found.fix
    assert found.formula == "3 * out"
    assert found.notes == ()  # the warning is not repeated
    right = warpsim.why(module["scaled"], 1, 32, [values], {0: 0 * values})
    assert right.as_expected


def test_what_is_nearest_is_said_where_nothing_is_proven() -> None:
    values = np.arange(32, dtype=np.float32)
    found = warpsim.why(
        load_text(SCALED.replace("scale[4]", "scale[4] = {0}"))["scaled"], 1, 32, [values], {0: 3 * values}
    )
    assert found.formula == "3 * out"
    assert [(cause.kind, cause.location.line) for cause in found.causes if cause.location] == [
        ("unknown", 10)
    ]
    assert found.causes[0].evidence.startswith("suspected")
