"""wgmma in a launched kernel gives the bits of warpsim.execute, whatever the CTAs and the schedule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpsim
from tests.helpers.warpgroup_kernels import COMMIT, FENCE, WAIT, Case
from warpsim.base.errors import Fault, NotModelled, UndefinedBehavior
from warpsim.programs.interactive.machines import Warpgroup
from warpsim.programs.launch.launching import load_text

_DENSE, _SPARSE = "wgmma.mma_async.sync.aligned.", "wgmma.mma_async.sp.sync.aligned."
SIMPLE = Case(text=f"{_DENSE}m64n8k16.f32.f16.f16")

CASES = (
    SIMPLE,
    Case(text=f"{_DENSE}m64n16k16.f16.f16.f16", a_in_registers=True, swizzle="32B"),
    Case(text=f"{_DENSE}m64n24k16.f32.bf16.bf16", imm_scale=(-1, 1), imm_trans=(1, 0)),
    Case(text=f"{_DENSE}m64n64k16.f32.f16.f16", swizzle="128B", imm_trans=(1, 1)),
    Case(text=f"{_DENSE}m64n16k16.f32.f16.f16", a_in_registers=True, imm_trans=(0, 1), imm_scale=(1, -1)),
    Case(text=f"{_DENSE}m64n8k8.f32.tf32.tf32", swizzle="32B"),
    Case(text=f"{_DENSE}m64n8k8.f32.tf32.tf32", a_in_registers=True, scale_d="0"),
    Case(text=f"{_DENSE}m64n32k32.f32.e4m3.e5m2", ctas=5),
    Case(text=f"{_DENSE}m64n8k32.f16.e5m2.e4m3", a_in_registers=True, threads=256),
    Case(text=f"{_DENSE}m64n8k32.s32.s8.u8", scale_d="0"),
    Case(text=f"{_DENSE}m64n16k32.s32.u8.u8.satfinite", a_in_registers=True),
    Case(text=f"{_DENSE}m64n8k256.s32.b1.b1.and.popc"),
    Case(text=f"{_DENSE}m64n256k16.f32.f16.f16", swizzle="128B", threads=384),
    Case(text=f"{_SPARSE}m64n8k32.f32.f16.f16", selector=1),
    Case(text=f"{_SPARSE}m64n16k32.f16.f16.f16", a_in_registers=True),
    Case(text=f"{_SPARSE}m64n8k16.f32.tf32.tf32", a_in_registers=True, selector=1),
    Case(text=f"{_SPARSE}m64n8k64.f32.e4m3.e4m3", swizzle="64B"),
    Case(text=f"{_SPARSE}m64n8k64.s32.s8.s8.satfinite", a_in_registers=True, threads=256),
)


def name_of(case: Case) -> str:
    return f"{case.text.partition('aligned.')[2]} {'R' if case.a_in_registers else 'S'} {case.swizzle}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_launched_wgmma_is_execute(case: Case) -> None:
    inputs = case.inputs(seed=1)
    found, report = case.launch(inputs)
    np.testing.assert_array_equal(found, case.executed(inputs))
    assert not [one for one in report.hazards if one.severity == "error"]


@pytest.mark.parametrize("schedule", ["earliest", "latest", 1, 2, 3])
@pytest.mark.parametrize("case", [CASES[0], CASES[8], CASES[13]], ids=name_of)
def test_no_schedule_changes_a_bit(case: Case, schedule: str | int) -> None:
    inputs = case.inputs(seed=2)
    found, _ = case.launch(inputs, schedule=schedule)
    np.testing.assert_array_equal(found, case.executed(inputs))


def test_a_launch_and_a_warpgroup_agree() -> None:
    case = replace(CASES[1], ctas=1)
    inputs = case.inputs(seed=3)
    machine = Warpgroup(shared_bytes=case.descriptors()[1])
    machine.shared.data[:] = np.ascontiguousarray(inputs["m"]).view(np.uint8).reshape(-1)
    machine["%d<4>"], machine["%a<4>"], machine["%w<2>"] = inputs["d"], inputs["a"], inputs["w"]
    machine.run(f"{FENCE}{case.statement()}{COMMIT}{WAIT}")
    np.testing.assert_array_equal(case.launch(inputs)[0], machine["%d<4>"])


@pytest.mark.parametrize("lines", [0, 1, 3])
def test_tiles_and_patterns_may_begin_elsewhere(lines: int) -> None:
    """Memory, tiles and patterns some lines of 128 bytes further on; with base offset 0, tiles alone."""
    case = replace(SIMPLE, swizzle="32B")
    inputs = case.inputs(seed=7)
    expected = case.executed(inputs)
    moved = dict(inputs)
    memory = np.roll(inputs["m"].reshape(-1), 32 * lines)
    moved["m"] = memory.reshape(inputs["m"].shape)
    moved["w"] = inputs["w"] + np.uint64(8 * lines | lines << 49)
    found, report = case.launch(moved)
    np.testing.assert_array_equal(found, expected)
    warnings = [one.message for one in report.hazards if one.kind == "descriptor"]
    assert len(warnings) == (lines > 0)
    moved["w"] = inputs["w"] + np.uint64(8 * lines)  # base offset 0: common, and no warning
    moved["m"] = memory.reshape(inputs["m"].shape)
    assert not [one for one in case.launch(moved)[1].hazards if one.kind == "descriptor"]
    if lines == 1:
        assert "reads a tile whose start address" in warnings[0]
        assert "base offset 1 places 128 bytes behind multiples of 256 bytes" in warnings[0]


# --- predicates and guards ---------------------------------------------------------------------------


@pytest.mark.parametrize(("operand", "value", "scale_d"), [("%p", 1, 1), ("%p", 0, 0), ("!%p", 1, 0)])
def test_scale_d_may_be_a_predicate(operand: str, value: int, scale_d: int) -> None:
    around = {"before": f"setp.eq.u32 %p, {value}, 1;\n{FENCE}"}
    case = replace(SIMPLE, scale_d=operand, around=around)
    inputs = case.inputs(seed=4)
    np.testing.assert_array_equal(case.launch(inputs)[0], case.executed(inputs, scale_d))


def test_warpgroups_may_differ_in_scale_d_and_descriptors() -> None:
    """Each by its own; one call for those that agree."""
    around = {"before": f"setp.ge.u32 %p, %own, 128;\n{FENCE}"}
    case = replace(SIMPLE, scale_d="%p", around=around, threads=256)
    inputs = case.inputs(seed=5)
    found, _ = case.launch(inputs)
    second = (np.arange(case.lanes) // 128 % 2 == 1)[:, None]
    expected = np.where(second, case.executed(inputs, 1), case.executed(inputs, 0))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("scale_d", "label", "said"),
    [
        ("0", "exact", "validated on H100, H200: "),
        ("1", "inferred", "with C, compared without C"),
        ("%p", "inferred", "where C is not added: validated on H100, H200"),
    ],
)
def test_evidence_is_that_of_what_was_added(scale_d: str, label: str, said: str) -> None:
    """fp8 is compared without C alone; the third case adds it in one of two warpgroups."""
    around = {"before": f"setp.ge.u32 %p, %own, 128;\n{FENCE}"}
    case = Case(text=f"{_DENSE}m64n8k32.f32.e4m3.e4m3", scale_d=scale_d, around=around, threads=256)
    _, report = case.launch(case.inputs(seed=7))
    (kind,) = [one for one in report.fidelity.classes if one.mnemonic.startswith("wgmma.mma")]
    assert kind.fidelity == label
    assert said in kind.note


def test_only_warpgroups_whose_guard_holds() -> None:
    case = replace(SIMPLE, threads=256)
    inputs = case.inputs(seed=6)
    text = case.statement()
    around = {"before": f"setp.ge.u32 %p, %own, 128;\n{FENCE}"}
    found = np.zeros((case.lanes, 4), np.uint32)
    source = replace(case, around=around).source(inputs, {"x": found}).replace(text, f"@%p {text}")
    load_text(source)["k"](case.ctas, case.threads, [*inputs.values(), found])
    second = (np.arange(case.lanes) // 128 % 2 == 1)[:, None]
    np.testing.assert_array_equal(found, np.where(second, case.executed(inputs), inputs["d"]))


# --- warps that come one after the other -------------------------------------------------------------

_LATE = """
    shr.u32 %at, %own, 5;
    setp.ne.u32 %p, %at, {warp};
    @%p bra ARRIVED;
    mov.u32 %at, 0;
SPIN:
    add.u32 %at, %at, 1;
    setp.lt.u32 %q, %at, 20;
    @%q bra SPIN;
ARRIVED:
"""


@pytest.mark.parametrize("schedule", ["program", "earliest", "latest", 1])
@pytest.mark.parametrize("warp", [0, 3, 5])
def test_warps_of_a_warpgroup_wait_for_each_other(warp: int, schedule: str | int) -> None:
    around = {"before": _LATE.format(warp=warp) + FENCE}
    case = replace(SIMPLE, threads=256, around=around)
    inputs = case.inputs(seed=7)
    found, _ = case.launch(inputs, schedule=schedule)
    np.testing.assert_array_equal(found, case.executed(inputs))


def test_a_warp_that_never_comes() -> None:
    before, after = f"{FENCE} setp.ge.u32 %p, %own, 96; @%p bra MISSED;", f"MISSED: {COMMIT}{WAIT}"
    case = replace(SIMPLE, ctas=1, around={"before": before, "after": after})
    with pytest.raises(Fault, match=r"deadlock: .*, warp 0, lane 0 and 95 more .* for warp 3 of its "):
        case.launch(case.inputs(seed=8))


def test_a_warp_that_has_exited() -> None:
    around = {"before": f"{FENCE} setp.ge.u32 %p, %own, 96; @%p exit;"}
    case = replace(SIMPLE, ctas=1, around=around)
    message = (
        r"32 of the 128 threads of the warpgroup have exited, or were never started "
        r"\[CTA \(0, 0, 0\), warpgroup 0\]"
    )
    with pytest.raises(UndefinedBehavior, match=message):
        case.launch(case.inputs(seed=9))


@pytest.mark.parametrize("schedule", ["program", "latest", 1])
def test_a_warp_beside_a_warpgroup(schedule: str | int) -> None:
    """CTAs of five warps: the last one is not a whole warpgroup, and does not multiply."""
    before, after = f"setp.ge.u32 %p, %own, 128; @%p bra OVER; {FENCE}", f"{COMMIT} {WAIT} OVER:"
    case = replace(SIMPLE, threads=160, ctas=3, around={"before": before, "after": after})
    inputs = case.inputs(seed=10)
    found, _ = case.launch(inputs, schedule=schedule)
    memories = np.ascontiguousarray(inputs["m"]).reshape(3, -1).view(np.uint8)
    a, b = case.descriptors()[0]
    c = inputs["d"].reshape(3, 160, 4)
    multiplied = warpsim.execute(
        case.form,
        c=np.ascontiguousarray(c[:, :128]),
        a_desc=np.full(3, a, np.uint64),
        b_desc=np.full(3, b, np.uint64),
        shared=memories,
    )
    np.testing.assert_array_equal(found.reshape(3, 160, 4)[:, :128], multiplied)
    np.testing.assert_array_equal(found.reshape(3, 160, 4)[:, 128:], c[:, 128:])


def test_a_wgmma_of_too_few_threads() -> None:
    case = replace(SIMPLE, threads=96, ctas=1)
    message = (
        r"wgmma\.fence\.sync\.aligned: 32 of the 128 threads of the warpgroup have exited, or were never"
    )
    with pytest.raises(UndefinedBehavior, match=message):
        case.launch(case.inputs(seed=11))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (1 << 14, "reserved bits 14 set"),
        (0x3FFF, "outside the 3072 bytes of memory|no multiple"),
    ],
)
def test_descriptors_that_lead_nowhere(word: int, said: str) -> None:
    case = replace(SIMPLE, ctas=1)
    inputs = case.inputs(seed=12)
    inputs["w"][:, 1] = word
    with pytest.raises((UndefinedBehavior, NotModelled), match=said) as caught:
        case.launch(inputs)
    assert "[CTA (0, 0, 0), warpgroup 0]" in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.text[caught.value.location.column - 1 :].startswith("%w1")


def test_metadata_without_a_meaning() -> None:
    case = replace(CASES[13], ctas=2)
    inputs = case.inputs(seed=13)
    inputs["e"][128 + 6, 0] = 0xFFFFFFFF
    with pytest.raises(UndefinedBehavior) as caught:
        case.launch(inputs)
    assert "[CTA (1, 0, 0), warp 0]" in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.text[caught.value.location.column - 1 :].startswith("%e0")
    hazards = case.launch(inputs, undefined="fallback")[1].hazards
    (message,) = (found.message for found in hazards if found.kind == "undefined metadata")
    assert "in lane 6, " in message
    assert "[CTA (1, 0, 0), warp 0]; its row of D reaches a result" in message
