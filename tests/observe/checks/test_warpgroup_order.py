"""Broken ordering rules of wgmma in launches: found as a Warpgroup finds them, and seen in the bits."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import ptxas
from tests.helpers.warpgroup_kernels import COMMIT, FENCE, VISIBLE, WAIT, Case
from warpsim.base.errors import UndefinedBehavior
from warpsim.machine.run.events import Observer, observers_of
from warpsim.observe.checks.wgmma.warpgroup_order import WarpgroupOrder
from warpsim.programs.interactive.machines import Warpgroup
from warpsim.programs.launch.launching import load_text

DENSE = "wgmma.mma_async.sync.aligned."
CASE = Case(text=f"{DENSE}m64n8k16.f32.f16.f16", a_in_registers=True, threads=256)
PAIR = CASE.statement()
WIDER = PAIR.replace("n8", "n16").replace("%d3}", "%d3, %y0, %y1, %y2, %y3}")
SPARSE = Case(text="wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", a_in_registers=True)

# What stands around a wgmma, and the rules that are broken, in their order.
BROKEN: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "no proxy fence": ({"visible": "bar.sync 0;"}, ("proxy-fence",)),
    "a proxy fence of global memory": (
        {"visible": "fence.proxy.async.global; bar.sync 0;"},
        ("proxy-fence",),
    ),
    "a store behind the proxy fence": (
        {"visible": f"{VISIBLE} st.shared.b32 [%at], %m0; bar.sync 0;"},
        ("proxy-fence",),
    ),
    "no wgmma.fence": ({"before": ""}, ("first-fence",)),
    "D written behind the fence": ({"before": f"{FENCE} mov.b32 %d0, 0;"}, ("fence",)),
    "A read behind the fence": ({"before": f"{FENCE} st.shared.b32 [%at], %a1; {VISIBLE}"}, ("fence",)),
    "no commit": ({"after": WAIT}, ("uncommitted", "accumulator-in-flight")),
    "no wait": ({"after": COMMIT}, ("accumulator-in-flight", "unwaited")),
    "a wait for too little": (
        {"after": f"{COMMIT} {COMMIT} wgmma.wait_group.sync.aligned 2;"},
        ("accumulator-in-flight", "unwaited"),
    ),
    "A overwritten": ({"after": f"{COMMIT} mov.b32 %a0, 0; {WAIT}"}, ("fragment-in-flight",)),
    "A read": (
        {"after": f"{COMMIT} st.shared.b32 [%at], %a3; {WAIT}"},
        ("shared-in-flight", "fragment-in-flight"),
    ),
    "a stage overwritten": (
        {"after": f"{COMMIT} st.shared.b32 [%at], %own; {WAIT}"},
        ("shared-in-flight",),
    ),
    "the same accumulators again": ({"after": f"{PAIR} {COMMIT} {WAIT}"}, ()),
    "another shape without a fence": (
        {"after": f"{COMMIT} {WAIT} {WIDER} {COMMIT} {WAIT}", "declared": ".reg .b32 %y<4>;"},
        ("fence-between",),
    ),
}


# Of these, what ptxas mends, so that a launch executes it and warns; and what ptxas 13.0 says of it.
MENDED: dict[str, set[str]] = {
    "no wgmma.fence": {"C7519"},
    "D written behind the fence": set(),  # a constant, which is written before the fence
    "no commit": set(),  # its wait stands behind the wgmma all the same
    "no wait": {"C7517"},
    "a wait for too little": {"C7514", "C7517"},
    "A overwritten": set(),  # another register, without a message
}


def expected_of(name: str) -> list[str]:
    """The rules that a launch finds broken: nothing is left in flight where ptxas waits for D."""
    found = set(BROKEN[name][1])
    return sorted(found - {"unwaited"} if "accumulator-in-flight" in found else found)


def rules(case: Case, **options: object) -> list[str]:
    """The rules that a launch breaks, apart from those of memory."""
    _, report = case.launch(case.inputs(seed=1), checks="warn", **options)
    return [one.kind for one in report.hazards if one.kind not in ("race", "register")]


@pytest.mark.parametrize("name", BROKEN)
def test_rules_in_a_launch(name: str) -> None:
    around, _ = BROKEN[name]
    assert sorted(set(rules(replace(CASE, around=around)))) == expected_of(name)


@pytest.mark.parametrize("schedule", ["program", "latest", 3])
@pytest.mark.parametrize("name", MENDED)
def test_what_ptxas_mends_is_executed_and_a_warning(name: str, schedule: str | int) -> None:
    """The bits are those of the mended code, whatever the schedule, and with checks or without."""
    case = replace(CASE, around=BROKEN[name][0])
    inputs = case.inputs(seed=11)
    expected = CASE.executed(inputs)
    if name == "D written behind the fence":
        expected = CASE.executed(inputs | {"d": inputs["d"] * np.array([0, 1, 1, 1], np.uint32)})
    found, report = case.launch(inputs, schedule=schedule)
    np.testing.assert_array_equal(found, expected)
    assert {one.severity for one in report.hazards} == {"warning"}
    assert any("ptxas" in one.message for one in report.hazards)
    np.testing.assert_array_equal(case.launch(inputs, schedule=schedule, checks="off")[0], expected)


@pytest.mark.parametrize(
    "name", sorted(BROKEN.keys() - MENDED.keys() - {"nothing", "the same accumulators again"})
)
def test_what_ptxas_does_not_mend_is_an_error(name: str) -> None:
    case = replace(CASE, around=BROKEN[name][0])
    with pytest.raises(UndefinedBehavior):
        case.launch(case.inputs(seed=11))


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize("name", BROKEN)
def test_ptxas_says_that_it_mends(name: str, tmp_path: Path) -> None:
    """Release 13.5 says nothing of fences that it inserts."""
    case = replace(CASE, around=BROKEN[name][0])
    inputs = case.inputs(seed=1)
    (tmp_path / "k.ptx").write_text(case.source(inputs, {"x": np.zeros((case.lanes, 4), np.uint32)}))
    command = [str(ptxas.program()), "-arch=sm_90a", "k.ptx", "-o", "k.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    said = set(re.findall(r"C75\d\d", done.stderr + done.stdout))
    assert said == MENDED.get(name, set()) - ({"C7519"} if ptxas.release() == "13.5" else set())


def test_a_wait_that_ptxas_inserts_frees_the_stage() -> None:
    """D is read, so the wgmma is done when its tile is overwritten, as it is on a chip."""
    stored = f"{COMMIT} mov.b32 %x0, %d0; st.shared.b32 [%at], %own; {WAIT}"
    case = replace(CASE, around={"after": stored})
    inputs = case.inputs(seed=12)
    for schedule in ("program", "latest"):
        found, report = case.launch(inputs, schedule=schedule)
        np.testing.assert_array_equal(found, CASE.executed(inputs))
        assert [one.kind for one in report.hazards] == ["accumulator-in-flight"]


def test_a_copy_of_d_in_flight_is_no_a() -> None:
    """ptxas 12.9 and 13.0 read the accumulators themselves as A, and wait for nothing."""
    other = PAIR.replace("%d", "%y")
    copied = f"{COMMIT} mov.b32 %a0, %d0; {FENCE} {other} {COMMIT} {WAIT}"
    case = replace(CASE, around={"after": copied, "declared": ".reg .b32 %y<4>;"})
    with pytest.raises(
        UndefinedBehavior, match=r"%a0, which is A here, was copied from the accumulators of a "
    ):
        case.launch(case.inputs(seed=13))
    changed = replace(
        case, around={**case.around, "after": copied.replace("mov.b32 %a0, %d0", "add.u32 %a0, %d0, 1")}
    )
    report = changed.launch(case.inputs(seed=13))[1]
    assert {one.severity for one in report.hazards} == {"warning"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_warpgroup_says_the_same(name: str) -> None:
    """Both have the rules of registers from one place, but not those of shared memory."""
    around, expected = BROKEN[name]
    case = replace(CASE, around=around, ctas=1, threads=128)
    inputs = case.inputs(seed=1)
    made = {"x": np.zeros((128, 4), np.uint32)}
    text = case.source(inputs, made)
    body = text[text.index("mul.lo.u32 %at") : text.index("cvta.to") if "cvta.to" in text else None]
    body = body[: body.index("mov.b32 %x3, %d3;") + len("mov.b32 %x3, %d3;")]
    body = body.replace("mul.lo.u32 %at", "// mul.lo.u32 %at")
    if "global" in name:
        pytest.skip("a Warpgroup has no such fence")
    machine = Warpgroup(shared_bytes=case.descriptors()[1], hazards="warn")
    words = inputs["m"].shape[1]
    machine["%own"] = np.arange(128, dtype=np.uint32)
    machine["%at"] = 4 * words * np.arange(128, dtype=np.uint32)
    for array, values in inputs.items():
        machine[f"%{array}<{values.shape[1]}>"] = values
    machine["%y<4>"] = np.zeros((128, 4), np.uint32)
    machine["%x<4>"] = np.zeros((128, 4), np.uint32)
    machine.run(body)
    machine.finish()
    found = {one.rule for one in machine.hazards if one.rule != "barrier"}
    assert found == set(expected)


def test_metadata_in_flight_is_a_warning() -> None:
    case = replace(SPARSE, around={"after": f"{COMMIT} mov.b32 %e0, 0; {WAIT}"})
    _, report = case.launch(case.inputs(seed=2))
    assert [(one.kind, one.severity) for one in report.hazards] == [("metadata-in-flight", "warning")]


@pytest.mark.parametrize("schedule", ["program", "earliest", "latest", 3])
@pytest.mark.parametrize("name", ["nothing", "no wait", "a stage overwritten", "no proxy fence"])
def test_rules_do_not_depend_on_the_schedule(name: str, schedule: str | int) -> None:
    case = replace(CASE, around=BROKEN[name][0], threads=128)
    assert sorted(set(rules(case, schedule=schedule))) == expected_of(name)


def test_only_the_warpgroup_that_is_wrong() -> None:
    """Cohorts part where one warpgroup does something else."""
    body = f"setp.ge.u32 %p, %own, 128; {COMMIT} @!%p bra JOIN; mov.b32 %a0, 0; JOIN: {WAIT}"
    case = replace(CASE, around={"after": body})
    _, report = case.launch(case.inputs(seed=3), checks="warn")
    (finding,) = report.hazards
    assert finding.kind == "fragment-in-flight"
    assert finding.message.endswith("[CTA (0, 0, 0), warpgroup 1]")


def test_a_finding_as_a_user_sees_it() -> None:
    case = replace(CASE, around={"after": f"\n{COMMIT}\nmov.b32 %a0, 0;\n{WAIT}"}, ctas=1, threads=128)
    text = str(case.launch(case.inputs(seed=4))[1].hazards[0]).splitlines()
    lines = [line for line in text if line.startswith("k.ptx")]
    wgmma, mov = (line.split(":")[1] for line in (lines[1], lines[0]))
    assert int(mov) == int(wgmma) + 3
    assert lines == [
        f"k.ptx:{mov}:1: warning: %a0 is written while the wgmma that reads it as A is in flight: no "
        "wgmma.wait_group has followed the commit (1 group pending, N = 0 covers it); ptxas takes another "
        "register for what is written, or serialises every wgmma of the function (C7513) "
        "[CTA (0, 0, 0), warpgroup 0]",
        f"k.ptx:{wgmma}:1: note: this wgmma is still in flight",
        f"k.ptx:{mov}:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:{mov}",
    ]


def test_descriptors_that_differ() -> None:
    case = replace(CASE, ctas=1, threads=128)
    inputs = case.inputs(seed=5)
    inputs["w"][64:, 1] += 8
    message = r"b-desc must be the same in the whole warpgroup, but is 0x\w+ in warp 0 and 0x\w+ in warp 2"
    with pytest.raises(UndefinedBehavior, match=message):
        case.launch(inputs)
    found, _ = case.launch(inputs, checks="off")
    np.testing.assert_array_equal(found, case.executed(inputs))  # those of the first lane


def test_a_store_of_another_warpgroup_needs_its_own_fence() -> None:
    """The warpgroup that reads, or the warps that wrote, but nobody else."""
    second = f"{VISIBLE} setp.ge.u32 %p, %own, 128; @%p st.shared.b32 [%at], %own;"
    around = {"before": f"{FENCE} @%p bra OVER;", "after": f"{COMMIT} {WAIT} OVER:"}
    for fence, expected in (
        ("@%p fence.proxy.async; bar.sync 0;", []),
        ("bar.sync 0; @!%p fence.proxy.async;", []),
        ("bar.sync 0;", ["proxy-fence"]),
    ):
        case = replace(CASE, around={**around, "visible": second + fence})
        assert rules(case) == expected, fence
    other = f"setp.ge.u32 %p, %own, 128; setp.ge.u32 %q, %own, 256; {VISIBLE}"
    other += "@%q st.shared.b32 [%at], %own; "
    for fence, expected in (
        ("bar.sync 0; @!%q fence.proxy.async;", []),  # the reader has a fence
        ("@!%q fence.proxy.async; bar.sync 0;", ["proxy-fence"]),  # which nothing orders behind the store
        ("setp.eq.u32 %q, %at, 99999; @%q fence.proxy.async; bar.sync 0;", ["proxy-fence"]),
    ):
        third = replace(CASE, threads=384, around={**around, "visible": other + fence})
        assert rules(third) == expected, fence


# --- what happens ------------------------------------------------------------------------------------


def test_what_comes_too_early_is_seen_when_a_wgmma_completes_late() -> None:
    case = replace(CASE, around=BROKEN["a stage overwritten"][0])
    inputs = case.inputs(seed=6)
    intact = CASE.executed(inputs)
    np.testing.assert_array_equal(case.launch(inputs, checks="off")[0], intact)
    late, _ = case.launch(inputs, checks="off", schedule="latest")
    assert (late != intact).any()


# --- what tiles hold -----------------------------------------------------------------------------------

_STORES = "st.shared.b32 [%at], %m0;"


def found(case: Case, **options: Any) -> list[tuple[str, str]]:
    """Kind and severity of each finding."""
    report = case.launch(case.inputs(seed=7), checks="warn", **options)[1]
    return [(one.kind, one.severity) for one in report.hazards]


def test_bytes_that_nobody_wrote() -> None:
    case = replace(CASE, threads=128, ctas=1)
    inputs = case.inputs(seed=8)
    inputs["w"][:, 1] += 0x10  # 256 bytes further on, past the tile
    made = {"x": np.zeros((128, 4), np.uint32)}
    text = case.source(inputs, made).replace(_last_store(case), "")
    report = load_text(text, "k.ptx")["k"](1, 128, [*inputs.values(), made["x"]], checks="warn")
    (finding,) = report.hazards
    assert (finding.kind, finding.severity) == ("uninitialised", "warning")
    assert " reads byte 0x" in finding.message
    assert "was never written [CTA (0, 0, 0), warpgroup 0]; with other bytes there" in finding.message


def _last_store(case: Case) -> str:
    words = case.inputs(seed=8)["m"].shape[1]
    return f"st.shared.b32 [%at+{4 * words - 4}], %m{words - 1};\n"


def test_a_barrier_between_stores_and_a_wgmma() -> None:
    """Between warps of one warpgroup it is a warning: the steps of PTX ISA 9.1, 9.7.15, name none."""
    none = {"visible": "fence.proxy.async;"}
    assert found(replace(CASE, threads=128, around=none)) == [("race", "warning")]
    assert found(replace(CASE, threads=256, around=none)) == [("race", "error")]
    assert found(replace(CASE, threads=256)) == []


def test_a_barrier_between_a_wgmma_and_the_next_stores() -> None:
    after = f"{COMMIT} {WAIT} st.shared.b32 [%at], %own;"
    assert found(replace(CASE, threads=128, around={"after": after})) == [("race", "warning")]
    assert found(replace(CASE, threads=256, around={"after": after})) == [("race", "error")]
    after = f"{COMMIT} {WAIT} bar.sync 0; st.shared.b32 [%at], %own;"
    assert found(replace(CASE, threads=256, around={"after": after})) == []


def test_a_barrier_between_the_wait_and_the_next_stores() -> None:
    """One that stands before the wait says nothing of the others' wgmma, which may still be reading."""
    store, end = "st.shared.b32 [%at], %own;", f"{COMMIT} {WAIT}"
    early = f"{COMMIT} bar.sync 0; {WAIT} {store}"
    assert found(replace(CASE, threads=128, around={"after": early})) == [("race", "warning")]
    assert found(replace(CASE, threads=128, around={"after": f"{end} bar.sync 0; {store}"})) == []


def test_a_later_wait_takes_nothing_from_a_barrier_behind_an_earlier_one() -> None:
    """A ring of stages: what the barrier has said of the first group holds behind the wait for the second."""
    known, store = f"{COMMIT} {WAIT} bar.sync 0;", "st.shared.b32 [%at], %own;"
    case = replace(CASE, threads=128)
    assert found(replace(case, around={"after": f"{known} {COMMIT} {WAIT} {store}"})) == []
    again = f"{known} {FENCE} {CASE.statement()} {COMMIT} {WAIT} {store}"
    assert found(replace(case, around={"after": again})) == [("race", "warning")]


def test_a_copy_in_flight() -> None:
    copy = f"cp.async.ca.shared.global [%at], [%base], 4; cp.async.commit_group; {VISIBLE}"
    done = "cp.async.wait_group 0;"
    case = replace(CASE, threads=128, ctas=1)
    assert ("in flight", "error") in found(replace(case, around={"visible": copy}))
    late = copy.replace("fence", f"{done} fence")
    assert found(replace(case, around={"visible": late})) == []


def test_modules_without_wgmma_pay_nothing() -> None:
    """Where no statement is a wgmma, the observer takes itself out."""
    case = replace(CASE, ctas=1, threads=128)
    inputs = case.inputs(seed=9)
    made = {"x": np.zeros((128, 4), np.uint32)}
    text = case.source(inputs, made)
    seen: list[type] = []

    class Looking(Observer):
        def exit(self, wave: Any, path: Any, lanes: Any) -> None:
            seen.extend(type(one) for one in observers_of(wave))

    for body in (text, text.replace(case.statement(), "")):
        load_text(body)["k"](1, 128, [*inputs.values(), made["x"]], observers=[Looking()], checks="warn")
    assert seen.count(WarpgroupOrder) == 1
