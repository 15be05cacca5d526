"""wgmma of a launch in recordings and at stops: what was read is enough to compute D again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import kernel_cases
from tests.helpers.kernel_cases import FOLDER
from tests.helpers.warpgroup_kernels import COMMIT, FENCE, WAIT, Case
from warpsim.base.errors import OperandError
from warpsim.isa.instruction import Instruction
from warpsim.observe.recording.recorder import Recorder
from warpsim.observe.stops.debugger import Debugger, WarpStop
from warpsim.programs.launch.launching import LaunchReport, load_text
from warpsim.show.views.stops import stop_document, stop_lines
from warpsim.sums.execution.pipeline import execute_inputs
from warpsim.workbench.diagnosis.recordings.divergence import compare_recordings
from warpsim.workbench.vectors.formats.recording import read_recording, write_recording
from warpsim.workbench.vectors.recordings import Recording
from warpsim.workbench.vectors.sets import expected

CASE = Case(text="wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", threads=256)
KERNELS = ("warpgroup_f16 normal", "warpgroup_sparse_f16 normal", "warpgroup_e4m3 normal")


def recorded(name: str, **options: Any) -> LaunchReport:
    case = kernel_cases.case(name)
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    kernel = load_text((FOLDER / case.file).read_text(), case.file)[case.entry]
    return kernel(case.grid, case.block, given, **({"record": True} | options))


def recording(report: LaunchReport, ctas: int, threads: int) -> Recording:
    return Recording(
        kernel="k",
        file="k.ptx",
        target="sm_90a",
        grid=(ctas, 1, 1),
        block=(threads, 1, 1),
        events=report.events,
    )


@pytest.mark.parametrize("schedule", ["program", "latest", 5])
@pytest.mark.parametrize("name", KERNELS)
def test_events_have_what_was_read(name: str, schedule: str | int) -> None:
    events = recorded(name, schedule=schedule).events
    assert len(events) == {"warpgroup_f16 normal": 72, "warpgroup_sparse_f16 normal": 36}.get(name, 96)
    for event in events:
        assert list(event.own_warps) == [event.warp, event.warp + 1, event.warp + 2, event.warp + 3]
        np.testing.assert_array_equal(execute_inputs(event.instruction, event.inputs), event.d)


def test_each_warpgroup_counts_for_itself() -> None:
    events = recorded("warpgroup_e4m3 normal", record="cta=1,1 warp=6 line=1772").events
    assert [(event.warp, event.index) for event in events] == [(4, 0), (4, 1), (4, 2)]
    assert str(events[2]).startswith("line 1772, CTA (1, 1, 0), warps 4 to 7, step 2: wgmma.mma_async")


def test_memory_behind_the_tiles_is_not_recorded() -> None:
    (event,) = recorded("warpgroup_f16 normal", record="cta=0,0 line=505 step=0").events
    assert event.inputs.shared is not None
    assert event.inputs.shared.size == 16384
    case = replace(CASE, around={"declared": ".shared .align 16 .b8 more[8192];"})
    _, report = case.launch(case.inputs(seed=1), record=True)
    assert {event.inputs.shared.size for event in report.events} == {2048 + 256}  # type: ignore[union-attr]


def test_a_recording_is_bounded() -> None:
    recorder = Recorder(limit_bytes=100_000)
    with pytest.raises(OperandError, match=r"the recording has more than 100,000 bytes after \d+ matrix"):
        recorded("warpgroup_f16 normal", record=False, observers=[recorder])


@pytest.mark.parametrize(
    "case",
    [
        CASE,
        replace(CASE, a_in_registers=True, imm_scale=(-1, 1), imm_trans=(0, 1)),
        replace(CASE, scale_d="%p", around={"before": f"setp.ge.u32 %p, %own, 128;\n{FENCE}"}),
        replace(CASE, scale_d="0"),
        Case(text="wgmma.mma_async.sp.sync.aligned.m64n16k64.s32.s8.u8", selector=0),
        Case(text="wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", a_in_registers=True),
    ],
    ids=["plain", "immediates", "scale-d differs", "scale-d 0", "sparse", "bits"],
)
def test_files_keep_everything(case: Case, tmp_path: Path) -> None:
    _, report = case.launch(case.inputs(seed=2), record=True)
    written = recording(report, case.ctas, case.threads)
    write_recording(tmp_path / "r.npz", written)
    found = read_recording(tmp_path / "r.npz")
    assert len(found.events) == case.ctas * case.threads // 128
    assert compare_recordings(written, found).equal
    for one in found.sets():
        np.testing.assert_array_equal(expected(one.vectors), one.vectors.d)
    for event in found.events:
        np.testing.assert_array_equal(execute_inputs(event.instruction, event.inputs), event.d)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"m": (520, 1)}, "which read another b"),
        ({"m": (0, 0)}, "which read another a"),
        ({"d": (0, 2)}, "which read another c"),
        ({"w": (slice(0, 128), 1)}, "which read another b-desc"),
    ],
)
def test_what_differs_between_two_launches(changed: dict[str, Any], said: str) -> None:
    case = replace(CASE, threads=128, ctas=1)
    first = case.inputs(seed=3)
    second = {name: array.copy() for name, array in first.items()}
    for name, place in changed.items():
        flat = second[name].reshape(-1) if name == "m" else second[name]
        at = place[0] if name == "m" else place
        flat[at] ^= flat.dtype.type(0x08 if name == "w" else 0x100)
    one, two = (recording(case.launch(x, record=True, checks="off")[1], 1, 128) for x in (first, second))
    (difference,) = compare_recordings(one, two).differences
    assert said in str(difference)


# --- stops -------------------------------------------------------------------------------------------


def stops(case: Case, statement: str, **options: Any) -> list[WarpStop]:
    inputs = case.inputs(seed=4)
    made = np.zeros((case.lanes, case.form.registers["d"]), np.uint32)
    text = case.source(inputs, {"x": made})
    line = next(n for n, one in enumerate(text.splitlines(), 1) if one.startswith(statement))
    found: list[WarpStop] = []
    debugger = Debugger(show=found.append, breaks=[line])
    load_text(text)["k"](case.ctas, case.threads, [*inputs.values(), made], observers=[debugger], **options)
    return found


@pytest.mark.parametrize("schedule", ["program", "latest"])
def test_a_stop_shows_operands_and_result(schedule: str) -> None:
    (stop,) = stops(CASE, "wgmma.mma", schedule=schedule)
    assert stop.place == "CTA (0, 0, 0), warps 0 to 3, step 0"
    lines = [line for line in stop_lines(stop) if line.endswith(":")]
    assert lines == [
        f"  A (64 x 16, f16) in shared memory, a-desc {CASE.descriptors()[0][0]:#018x}:",
        f"  B (16 x 8, f16) in shared memory, b-desc {CASE.descriptors()[0][1]:#018x}:",
        "  C (64 x 8, f32) in %d0, %d1, %d2, %d3:",
        "  D (64 x 8, f32) in %d0, %d1, %d2, %d3:",
    ]
    shown = list(stop_lines(stop, lane=127))
    assert any("D[63," in line for line in shown)
    document = stop_document(stop)
    assert document["operands"]["b-desc"] == f"{CASE.descriptors()[0][1]:#018x}"
    assert len(document["operands"]["d"]) == 128


def test_fences_and_waits_are_stops_too() -> None:
    case = replace(CASE, around={"after": f"{COMMIT}\n{WAIT}"})
    (stop,) = stops(case, "wgmma.wait_group")
    assert list(stop_lines(stop))[1:] == ["  no registers"]


# --- engines -----------------------------------------------------------------------------------------


def test_an_engine_of_the_user_computes_wgmma() -> None:
    asked: list[tuple[str, tuple[int, ...]]] = []

    def engine(form: Instruction, inputs: Any) -> Any:
        asked.append((form.mnemonic, inputs.b_descriptor.shape))
        return np.full((len(inputs.b_descriptor), 128, 4), 7, np.uint32)

    found, _ = CASE.launch(CASE.inputs(seed=5), engine=engine)
    assert (found == 7).all()
    assert asked == [(CASE.form.mnemonic, (4,))]
    with pytest.raises(OperandError, match=r"expected uint32 \(4, 128, 4\)"):
        CASE.launch(CASE.inputs(seed=5), engine=lambda form, inputs: np.zeros((128, 4), np.uint32))


def test_the_reference_engine() -> None:
    inputs = CASE.inputs(seed=6)
    np.testing.assert_array_equal(CASE.launch(inputs, engine="reference")[0], CASE.executed(inputs))
