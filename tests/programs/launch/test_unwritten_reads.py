"""Reads of bytes that were never written: a warning where something depends on them, else a note."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.observe.checks.findings import LaunchFinding
from warpsim.programs.launch.repeated import repetition, taint

TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{{
  .shared .b32 tile[32]; .local .b32 own[4];
  .reg .b64 %x, %y, %o; .reg .b32 %t, %a, %r<8>; .reg .pred %p, %q;
  ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %x, %x, %o; add.u64 %y, %y, %o;
  shl.b32 %a, %t, 2; mov.u32 %r0, tile; add.u32 %a, %a, %r0;
  setp.lt.u32 %p, %t, 20;
  @%p ld.global.b32 %r1, [%x];
  @%p st.shared.b32 [%a], %r1;
  {body}
  ret;
}}
"""
Y_DIFFERS = "y of 128 bytes at 0x200000000200 holds other values in {} bytes, from byte 80 on"
READ = "ld.shared.b32 %r2, [%a]; add.u32 %r3, %r2, 1;"


def findings(body: str, x: Any = None, **options: Any) -> list[LaunchFinding]:
    """The findings about unwritten bytes."""
    x = np.arange(32, dtype=np.uint32) if x is None else x
    y = np.zeros(32, np.uint32)
    report = warpsim.load(TEXT.format(body=body))["k"](1, 32, [x, y], **options)
    return [one for one in report.hazards if one.kind == "uninitialised"]


@pytest.mark.parametrize("schedule", ["program", "latest", 5])
def test_what_is_never_used_is_a_note(schedule: str | int) -> None:
    """Whole rows are read and added to, as tiles at a border are; only those that are there are stored."""
    (found,) = findings(READ + "@%p st.global.b32 [%y], %r3;", schedule=schedule)
    assert found.severity == "note"
    assert found.message == (
        "ld.shared.b32 reads 4 bytes at 0x50 of shared memory (tile[20]) that were never written "
        "[CTA (0, 0, 0), warp 0, lane 20]; proved: no result depends on them, as the values that "
        "come of them reach none"
    )
    assert found.influence == "none"


RARE = {
    "an equal value": "setp.eq.u32 %q, %r2, 1; selp.b32 %r4, 1, 2, %q; st.global.b32 [%y], %r4;",
    "a maximum": "max.s32 %r4, %r2, 2147483000; st.global.b32 [%y], %r4;",
    "a NaN": "mov.b32 %f1, %r2; "
    "testp.notanumber.f32 %q, %f1; selp.b32 %r4, 1, 2, %q; st.global.b32 [%y], %r4;",
    "a barrier": "setp.eq.u32 %q, %r2, 5; bar.red.or.pred %q, 0, %q; selp.b32 %r4, 1, 2, %q; "
    "st.global.b32 [%y], %r4;",
}


@pytest.mark.parametrize("use", RARE.values(), ids=RARE)
def test_what_other_fillings_do_not_change_is_not_said_to_be_proved(use: str) -> None:
    """Each of these depends on the bytes, but only where they hold a rare value."""
    text = TEXT.replace(".reg .pred %p, %q;", ".reg .pred %p, %q; .reg .f32 %f1;")
    x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    kernel = warpsim.load(text.format(body="ld.shared.b32 %r2, [%a];" + use))["k"]
    for how in ("two other fillings", "another filling"):
        (found,) = (one for one in kernel(1, 32, [x, y]).hazards if one.kind == "uninitialised")
        assert (found.severity, found.influence) == ("note", "none seen")
        assert found.message.endswith(f"; with {how} the results were the same")


@pytest.mark.parametrize(
    ("use", "differs"),
    [
        ("st.global.b32 [%y], %r3;", Y_DIFFERS.format(48)),
        (
            "and.b32 %r3, %r3, 1; @%p st.global.b32 [%y], %r3; @!%p st.global.b32 [%y], %r3;",
            Y_DIFFERS.format(2),
        ),
        (
            "shr.b32 %r4, %r2, 30; setp.ne.u32 %q, %r4, 0; @%q bra OVER; bra END; "
            "OVER: add.u32 %r5, %t, 1; END:",
            "statements are executed more or less often",
        ),
        (
            "and.b32 %r4, %r2, 0xffffc; cvt.u64.u32 %o, %r4; add.u64 %y, %y, %o; ld.global.b32 %r5, [%y];",
            "the launch ends with an error: ",
        ),
        ("setp.gt.u32 %q, %r2, 99; @%q trap;", "the launch ends with an error: "),
    ],
    ids=["a result", "a bit of a result", "a branch", "an address", "a trap"],
)
def test_what_something_depends_on_is_a_warning(use: str, differs: str) -> None:
    """The message says what depends on the bytes."""
    (found, *_) = findings(READ + use)
    assert (found.severity, found.influence) == ("warning", "seen")
    assert f"; with other bytes there {differs}" in found.message


def test_the_first_launch_is_tried_with_two_fillings_and_others_with_one_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where open values are not followed to their end."""
    executed, seeds = repetition.run, list[int | None]()
    monkeypatch.setattr(taint, "none_leaks", lambda *given: False)
    monkeypatch.setattr(repetition, "run", lambda launch: seeds.append(launch.fill) or executed(launch))
    kernel = warpsim.load(TEXT.format(body=READ))["k"]
    x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    for _ in range(3):
        assert "note" in {one.severity for one in kernel(1, 32, [x, y]).hazards}
    assert seeds == [1, 2, 3, 4]


def test_local_memory_and_buffers_count_too() -> None:
    local = "mov.u32 %r6, own; ld.local.b32 %r7, [%r6];"
    assert [one.severity for one in findings(local)] == ["note"]
    assert [one.severity for one in findings(local + "st.global.b32 [%y], %r7;")] == ["warning"]
    device = warpsim.Device("sm_80")
    for use, severity in (("", "note"), ("st.global.b32 [%y], %r7;", "warning")):
        x = device.empty(32, np.uint32)
        y = device.array(np.zeros(32, np.uint32))
        kernel = warpsim.load(TEXT.format(body="ld.global.b32 %r7, [%x];" + use))["k"]
        found = [one for one in kernel(1, 32, [x, y], device=device).hazards if one.kind == "uninitialised"]
        assert {one.severity for one in found} == {severity}


def test_the_memory_of_the_launch_is_left_alone() -> None:
    """Also atomics and what was there before: the trials have memories of their own."""
    device = warpsim.Device("sm_80")
    x, y = device.array(np.arange(32, dtype=np.uint32)), device.array(np.full(32, 7, np.uint32))
    kernel = warpsim.load(TEXT.format(body=READ + "red.global.add.u32 [%y], 1;"))["k"]
    kernel(1, 32, [x, y], device=device)
    np.testing.assert_array_equal(y.get(), np.full(32, 8, np.uint32))


def test_what_a_launch_prints_once_is_printed_once() -> None:
    assert findings(READ, checks="off") == []


HEAP = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 result) malloc (.param .b64 size);
.visible .entry k(.param .u64 x, .param .u64 y)
{
  .reg .b64 %x, %y, %o, %h; .reg .b32 %t, %r<4>;
  ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %y, %y, %o;
  { .param .b64 size; .param .b64 result;
    st.param.b64 [size], 64;
    call.uni (result), malloc, (size);
    ld.param.b64 %h, [result]; }
  ld.global.b32 %r1, [%x]; and.b32 %r2, %r1, 0;
  st.global.b32 [%h], %r2; st.global.b32 [%y], %t;
  ret;
}
"""


@pytest.mark.parametrize("room", [64, 100_000, 3_000_000])
def test_malloc_gives_the_trials_the_same_places(room: int) -> None:
    """Whether the memory has to grow for the heap or not: the trials begin with as much in use."""
    device = warpsim.Device("sm_80")
    device.empty(room)
    x, y = device.empty(8, np.uint32), device.array(np.zeros(32, np.uint32))
    report = warpsim.load(HEAP)["k"](1, 32, [x, y], device=device)
    assert [one.severity for one in report.hazards if one.kind == "uninitialised"] == ["note"]


def test_buffers_far_apart_are_filled_and_compared_each() -> None:
    """Between them is what nothing has allocated, which is neither copied nor compared."""
    device = warpsim.Device("sm_80")
    x = device.empty(32, np.uint32)
    device.empty(1 << 20)
    y = device.array(np.zeros(32, np.uint32))
    device.memory.free(device.memory.allocations[1].address)
    assert len(device.memory.spans()) == 2
    body = "ld.global.b32 %r7, [%x]; and.b32 %r7, %r7, 3; st.global.b32 [%y], %r7;"
    report = warpsim.load(TEXT.format(body=body))["k"](1, 32, [x, y], device=device)
    found = [one.message for one in report.hazards if one.kind == "uninitialised"]
    assert found
    assert all("with other bytes there" in each and "holds other values in" in each for each in found)
