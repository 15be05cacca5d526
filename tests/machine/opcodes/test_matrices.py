"""mma in a launched kernel gives the bits of warpsim.execute, whatever the number of warps and CTAs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from tests.helpers.kernel_texts import kernel, registers, run
from warpsim.base.errors import NotModelled, UndefinedBehavior
from warpsim.machine.grid import Launch, symbols_of
from warpsim.machine.grid import run as run_launch
from warpsim.machine.host.arguments import arguments_of
from warpsim.machine.load.program import load_module
from warpsim.machine.run.events import MatrixExecution, Observer
from warpsim.machine.run.schedules import Schedule
from warpsim.machine.run.wave import Wave
from warpsim.machine.state.device import Device
from warpsim.programs.launch.launching import load_text

Array = npt.NDArray[Any]

FORMS = (
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"),
    ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "sm_75"),
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_70"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_80"),
    ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", "sm_80"),
    ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "sm_80"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89"),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_80"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "sm_90a"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "sm_90a"),
    ("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32", "sm_120a"),
    (
        "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e5m2.f32.ue8m0",
        "sm_120a",
    ),
    (
        "mma.sp::ordered_metadata.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X"
        ".m16n8k128.row.col.f32.e2m1.e2m1.f32.ue4m3",
        "sm_120a",
    ),
)
TWO_OF_FOUR, ONE_OF_TWO = (0x4, 0x8, 0xC, 0x9, 0xD, 0xE), (0x4, 0xE)


def _metadata(random: np.random.Generator, form: Any, lanes: int) -> Array:
    """Legal metadata words."""
    nibbles = random.choice(ONE_OF_TWO if form.a.name == "tf32" else TWO_OF_FOUR, (lanes, 8)).astype(
        np.uint32
    )
    if form.a.bits == 4 and form.kind:  # pairs, of which any two that ascend
        nibbles = random.choice(TWO_OF_FOUR, (lanes, 8)).astype(np.uint32)
    words = (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(axis=1, dtype=np.uint32)
    return np.asarray(words[:, None], np.uint32)


def _inputs(form: Any, lanes: int, seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, count in form.registers.items():
        bits = form.register_bits if name in "abcd" else 32
        words = (
            random.integers(0, 1 << bits, (lanes, count), np.uint64, endpoint=False) if bits < 64 else None
        )
        if words is None:
            words = random.integers(0, 1 << 63, (lanes, count)).astype(np.uint64) << np.uint64(1)
        found[name] = words.astype(f"u{bits // 8}")
    if "e" in found:
        found["e"] = _metadata(random, form, lanes)
    found.pop("d")
    return found


def _statement(text: str, form: Any, ids: tuple[str, str] = ("", "")) -> str:
    operands = [registers(name, form.registers[name]) for name in "dabc"]
    if form.sparse:
        operands += ["%e0", "0"]
    if form.scale:
        operands += ["%scale_a0", ids[0] or "{0, 1}", "%scale_b0", ids[1] or "{0, 2}"]
    return f"{text} {', '.join(operands)};"


@pytest.mark.parametrize(
    ("text", "target", "ctas", "threads"),
    [*((*form, 3, 96) for form in FORMS), (*FORMS[0], 40, 64), (*FORMS[0], 1, 32)],
)
def test_a_launched_mma_is_execute(text: str, target: str, ctas: int, threads: int) -> None:
    form = warpsim.decode(text, target=target)
    inputs = _inputs(form, ctas * threads, seed=ctas)
    outputs = {"d": (form.registers["d"], f"u{form.register_bits // 8}")}
    found = run(target, ctas, threads, inputs, outputs, _statement(text, form))["d"]
    by_warp = {name: one.reshape(-1, 32, one.shape[-1]) for name, one in inputs.items()}
    ids = {"thread_id_a": 1, "thread_id_b": 2} if form.scale else {}
    expected = warpsim.execute(form, **by_warp, **ids)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_scale_ids_may_be_registers() -> None:
    text, target = FORMS[-2]
    form = warpsim.decode(text, target=target)
    inputs = _inputs(form, 64, seed=7)
    ids = "mov.b16 %byte, 2; mov.b16 %thread, 1;\n"
    body = ids + _statement(text, form, ("{%byte, %thread}", "{3, %thread}"))
    more = {"extra": ".reg .b16 %byte, %thread;"}
    found = run(target, 2, 32, inputs, {"d": (4, "u4")}, body, **more)["d"]
    by_warp = {name: one.reshape(2, 32, -1) for name, one in inputs.items()}
    expected = warpsim.execute(form, **by_warp, byte_id_a=2, thread_id_a=1, byte_id_b=3, thread_id_b=1)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("ids", [("{%byte, 0}", "{0, 2}"), ("{0, 1}", "{0, %byte}")])
@pytest.mark.parametrize("text", [FORMS[-2][0], FORMS[-1][0]])
def test_scale_ids_agree_in_all_lanes(text: str, ids: tuple[str, str]) -> None:
    """The error points at the ids of A or of B, whichever differ."""
    form = warpsim.decode(text, target="sm_120a")
    body = "cvt.u16.u32 %byte, %lane;\n" + _statement(text, form, ids)
    with pytest.raises(NotModelled) as caught:
        run(
            "sm_120a",
            1,
            32,
            _inputs(form, 32, seed=7),
            {"d": (4, "u4")},
            body,
            extra=".reg .b16 %byte;",
        )
    assert caught.value.message == "%byte differs between lanes; scale ids are modelled where all lanes agree"
    assert caught.value.location is not None
    wrong = next(one for one in ids if "%byte" in one)
    assert caught.value.location.text[caught.value.location.column - 1 :].startswith(wrong)


def test_constants_and_sinks() -> None:
    text, target = FORMS[0]
    form = warpsim.decode(text, target=target)
    inputs = _inputs(form, 32, seed=3)
    body = (
        f"{text} {{%d0, _, %d2, _}}, {registers('a', 4)}, {registers('b', 2)}, {{%c0, 0f3F800000, %c2, %c3}};"
    )
    found = run(target, 1, 32, inputs, {"d": (4, "u4")}, "mov.b32 %d1, 7; mov.b32 %d3, 9;" + body)["d"]
    inputs["c"][:, 1] = 0x3F800000
    expected = warpsim.execute(form, **inputs)
    expected[:, 1], expected[:, 3] = 7, 9
    np.testing.assert_array_equal(found, expected)


GUARDED = """
    shr.u32 %warp, %own, 5;
    setp.eq.u32 %odd, %warp, 1;
    mov.b32 %d0, 5; mov.b32 %d1, 5; mov.b32 %d2, 5; mov.b32 %d3, 5;
"""


def test_only_warps_whose_guard_holds() -> None:
    text, target = FORMS[0]
    form = warpsim.decode(text, target=target)
    inputs = _inputs(form, 192, seed=4)
    body = f"{GUARDED}@%odd {_statement(text, form)}"
    more = {"extra": ".reg .b32 %warp; .reg .pred %odd;"}
    found = run(target, 2, 96, inputs, {"d": (4, "u4")}, body, **more)["d"].reshape(2, 3, 32, 4)
    by_warp = {name: one.reshape(2, 3, 32, -1) for name, one in inputs.items()}
    expected = warpsim.execute(form, **by_warp)
    np.testing.assert_array_equal(found[:, 1], expected[:, 1])
    assert (found[:, [0, 2]] == 5).all()


DIVERGED = """
    and.b32 %half, %own, 16;
    setp.eq.u32 %low, %half, 0;
    @%low bra after;
    add.u32 %c0, %c0, 0;
after:
"""


def test_lanes_that_parted_meet_at_the_mma() -> None:
    text, target = FORMS[0]
    form = warpsim.decode(text, target=target)
    inputs = _inputs(form, 64, seed=5)
    more = {"extra": ".reg .b32 %half; .reg .pred %low;"}
    found = run(target, 1, 64, inputs, {"d": (4, "u4")}, DIVERGED + _statement(text, form), **more)["d"]
    by_warp = {name: one.reshape(2, 32, -1) for name, one in inputs.items()}
    np.testing.assert_array_equal(found.reshape(2, 32, 4), warpsim.execute(form, **by_warp))


def test_an_error_names_the_warp() -> None:
    text, target = FORMS[9]
    form = warpsim.decode(text, target=target)
    inputs = _inputs(form, 4 * 64, seed=6)
    inputs["e"][3 * 32 :] = 0
    with pytest.raises(UndefinedBehavior, match=r"\[CTA \(1, 0, 0\), warp 1\]") as raised:
        run(target, 4, 64, inputs, {"d": (4, "u4")}, _statement(text, form))
    assert raised.value.location is not None
    assert "mma.sp" in raised.value.location.text


def test_a_warp_that_is_not_whole() -> None:
    text, target = FORMS[0]
    form = warpsim.decode(text, target=target)
    with pytest.raises(UndefinedBehavior, match="lanes 8-31 of the warp have exited, or were never started"):
        run(target, 1, 40, _inputs(form, 40, seed=8), {"d": (4, "u4")}, _statement(text, form))


def test_a_register_is_written_once() -> None:
    text, target = FORMS[0]
    body = f"{text} {{%d0, %d0, %d2, %d3}}, {registers('a', 4)}, {registers('b', 2)}, {registers('c', 4)};"
    empty = {name: np.zeros((32, n), np.uint32) for name, n in (("a", 4), ("b", 2), ("c", 4))}
    problems = load_text(kernel(target, empty, {"d": empty["c"]}, body)).problems
    assert ["%d0 is written twice" in str(one) for one in problems] == [True]


class _Watcher(Observer):
    """Keeps what it is notified of matrix instructions."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[int, ...], list[int]]] = []

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        warps, form = execution.warps, execution.instruction
        assert execution.inputs.registers["a"].shape == (len(warps), 32, form.registers["a"])
        self.seen.append((execution.record.statement.mnemonic, execution.d.shape, warps.tolist()))


def test_observers_are_told() -> None:
    text, target = FORMS[0]
    form = warpsim.decode(text, target=target)
    arrays = {name: np.zeros((192, count), np.uint32) for name, count in form.registers.items()}
    d = arrays.pop("d")
    more = {"extra": ".reg .b32 %warp; .reg .pred %odd;"}
    module = load_module(kernel(target, arrays, {"d": d}, f"{GUARDED}@%odd {_statement(text, form)}", **more))
    entry, device, watcher = module.entry("k"), Device(target), _Watcher()
    given = [device.array(one) for one in (*arrays.values(), d)]
    arguments = arguments_of(device, entry.parameters, entry.parameter_bytes, given)
    launch = Launch(
        module=module,
        entry=entry,
        device=device,
        grid=(2, 1, 1),
        block=(96, 1, 1),
        parameters=arguments.content,
        schedule=Schedule("program"),
        observers=lambda: [watcher],
    )
    symbols_of(device, module)
    run_launch(launch)
    assert watcher.seen == [(text, (2, 32, 4), [1, 4])]
