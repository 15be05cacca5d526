"""Functions that call themselves without end, or deep and with an end."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.base.errors import Fault, StackOverflow
from warpsim.machine.run.memories import Memories
from warpsim.programs.exec.error_codes import error_of
from warpsim.programs.launch.launching import LaunchableKernel, load_text

CALL = "{{ .param .b32 x; .param .b32 y; st.param.b32 [x], {given}; call.uni (y), {name}, (x); {end} }}"
TEXT = """.version 8.3
.target sm_80
.address_size 64
.func (.param .b32 r) f(.param .b32 n);
.func (.param .b32 r) g(.param .b32 n) {{
.local .b8 room[{bytes}]; .reg .b32 %a<3>;
ld.param.b32 %a0, [n]; st.local.b32 [room], %a0;
{to_f}
st.param.b32 [r], %a2; ret;
}}
.func (.param .b32 r) f(.param .b32 n) {{
.reg .b32 %a<4>; .reg .pred %p;
ld.param.b32 %a0, [n];
sub.s32 %a1, %a0, 1; mov.b32 %a2, 0;
setp.eq.s32 %p, %a0, 0;
@%p bra done;
{to_g}
add.s32 %a2, %a2, %a0;
done: st.param.b32 [r], %a2; ret;
}}
.visible .entry k(.param .u64 out, .param .u32 n) {{
.reg .b32 %a<3>; .reg .b64 %p; .reg .b32 %t;
ld.param.u64 %p, [out]; ld.param.u32 %a0, [n];
{to_f}
mov.u32 %t, %tid.x; mad.wide.u32 %p, %t, 4, %p;
st.global.u32 [%p], %a2; ret;
}}
"""


def kernel(size: int) -> LaunchableKernel:
    """A kernel whose f calls g, which has so many bytes, and g calls f, until n is 0: the sum of 1 to n."""
    end = "ld.param.b32 %a2, [y];"
    to_f = CALL.format(given="%a0", name="f", end=end)
    to_g = CALL.format(given="%a1", name="g", end=end)
    return load_text(TEXT.format(bytes=size, to_f=to_f, to_g=to_g), "deep.ptx")["k"]


def test_deep_calls_return() -> None:
    out = np.zeros(64, np.uint32)
    kernel(512)((1,), 64, [out, np.uint32(200)])
    assert (out == 200 * 201 // 2).all()


def test_calls_without_end_are_a_stack_overflow() -> None:
    """Frames of 8,208 bytes and more in 524,288: the 64th of g would end behind them."""
    with pytest.raises(StackOverflow) as caught:
        kernel(8192)((1,), 32, [np.zeros(32, np.uint32), np.uint32(-1 & 0xFFFFFFFF)])
    text = str(caught.value)
    assert text.startswith("deep.ptx:17:56: error: stack overflow: g is called in a chain of 128 calls: ")
    assert "a thread has 524,288 bytes of local memory [CTA (0, 0, 0), warp 0" in text
    assert isinstance(caught.value, Fault)
    assert (error_of(caught.value).name, error_of(caught.value).sticky) == ("HardwareStackError", True)


def test_frames_of_many_lanes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsim.machine.opcodes.control.stack._MOST_KEPT", 1 << 20)
    with pytest.raises(StackOverflow, match=r"64 lanes keep 1,048,576 bytes for returns at most"):
        kernel(16)((1,), 64, [np.zeros(64, np.uint32), np.uint32(1 << 20)])


def test_local_memory_grows_in_large_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Growing by each frame copies all before it: quadratic in the depth."""
    sizes = set()
    reserve = Memories.reserve_local

    def noted(self: Memories, size: int) -> None:
        reserve(self, size)
        sizes.add(self.local_stride)

    monkeypatch.setattr(Memories, "reserve_local", noted)
    kernel(64)((1,), 32, [np.zeros(32, np.uint32), np.uint32(500)])
    assert max(sizes) > 1000 * 16
    assert len(sizes) < 40


def test_an_address_behind_what_is_used_is_outside() -> None:
    """Local memory has room to grow, which no address reaches."""
    text = TEXT.replace("st.local.b32 [room], %a0", "mov.b32 %a2, room; st.local.b32 [%a2+{beyond}], %a0")
    end = "ld.param.b32 %a2, [y];"
    to_f = CALL.format(given="%a0", name="f", end=end)
    to_g = CALL.format(given="%a1", name="g", end=end)
    module = load_text(text.format(bytes=64, to_f=to_f, to_g=to_g, beyond=128), "deep.ptx")
    with pytest.raises(Fault, match=r"leaves local memory of \d+ bytes"):
        module["k"]((1,), 32, [np.zeros(32, np.uint32), np.uint32(40)])
