"""Accesses through a pointer that end in another allocation, and what may lead there rightly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import UndefinedBehavior
from warpsim.machine.state.device import Device
from warpsim.observe.checks.bounds.pointer_terms import POINTER_TERMS
from warpsim.observe.checks.findings import LaunchFinding
from warpsim.programs.launch.launching import load_text

HEAD = """.version 8.6
.target sm_90
.address_size 64
.global .align 8 .b8 table[64];
.global .align 8 .b8 other[1024];
.visible .entry k(.param .u64 B, .param .u64 D, .param .u64 out, .param .u64 s,
.param .align 8 .b8 pair[16]) {
.reg .b32 %r<20>; .reg .b64 %rd<30>; .reg .pred %p<9>; .shared .align 16 .b8 tile[512];
ld.param.u64 %rd1, [B]; ld.param.u64 %rd2, [D]; ld.param.u64 %rd3, [out]; ld.param.u64 %rd8, [s];
cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd3, %rd3; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;
cvt.u64.u32 %rd4, %r2; add.s64 %rd3, %rd3, %rd4; mov.u32 %r4, tile; add.u32 %r4, %r4, %r2;
"""
AWAY = 512  # bytes from B, which has 128, to D: beginnings are multiples of 256 bytes, and a gap is between
LANES = "add.s64 %rd5, %rd1, %rd4;\n"
LOAD = "ld.global.u32 %r9, [%rd5]; st.global.u32 [%rd3], %r9;\n"
LOOP = f"""mov.u32 %r5, 0; add.s64 %rd5, %rd1, %rd4;
NEXT: ld.global.u32 %r9, [%rd5]; mad.lo.u32 %r10, %r9, 3, %r5; xor.b32 %r10, %r10, %r9;
st.global.u32 [%rd3], %r10; add.u32 %r5, %r5, 1; setp.gt.u32 %p2, %r5, 300; selp.b64 %rd6, {AWAY}, 0, %p2;
add.s64 %rd5, %rd5, %rd6; setp.lt.u32 %p1, %r5, 302; @%p1 bra NEXT;
"""
WRONG = {
    "offset": f"{LANES}ld.global.u32 %r9, [%rd5+{AWAY}];",
    "store": f"{LANES}st.global.u32 [%rd5+{AWAY}], %r1;",
    "generic": f"add.s64 %rd6, %rd4, {AWAY}; ld.param.u64 %rd7, [B]; add.s64 %rd5, %rd7, %rd6; "
    "ld.u32 %r9, [%rd5];",
    "atomic": f"add.s64 %rd5, %rd1, {AWAY}; atom.global.add.u32 %r9, [%rd5], 1;",
    "reduction": f"add.s64 %rd5, %rd1, {AWAY}; red.global.add.u32 [%rd5], 1;",
    "mad.wide": f"mad.wide.u32 %rd5, %r1, 4, %rd1; ld.global.u32 %r9, [%rd5+{AWAY}];",
    "mad.lo": f"mad.lo.s64 %rd5, %rd4, 1, %rd1; ld.global.u32 %r9, [%rd5+{AWAY}];",
    "stride": f"mad.lo.s64 %rd5, %rd8, {AWAY}, %rd1; ld.global.u32 %r9, [%rd5];",
    "index": f"ld.global.u32 %r9, [%rd1]; mad.wide.u32 %rd5, %r9, {AWAY}, %rd1; ld.global.u32 %r9, [%rd5];",
    "one of two ways": f"{LANES}@%p1 mov.u64 %rd5, %rd1; ld.global.u32 %r9, [%rd5+{AWAY}];",
    "aligned": f"and.b64 %rd5, %rd1, -16; or.b64 %rd5, %rd5, {AWAY}; ld.global.u32 %r9, [%rd5];",
    "a struct": f"ld.param.v2.u64 {{%rd6, %rd7}}, [pair]; ld.global.u32 %r9, [%rd7+{AWAY}];",
    "cp.async": f"{LANES}add.s64 %rd5, %rd5, {AWAY}; cp.async.ca.shared.global [%r4], [%rd5], 4;",
    "a loop": LOOP,
}
RIGHT = {
    "inside": LANES + LOAD,
    "difference": f"sub.s64 %rd7, %rd2, %rd1; {LANES}add.s64 %rd5, %rd5, %rd7; {LOAD}",
    "in elements": f"sub.s64 %rd7, %rd2, %rd1; shr.s64 %rd7, %rd7, 2; shl.b64 %rd7, %rd7, 2; {LANES}"
    f"add.s64 %rd5, %rd5, %rd7; {LOAD}",
    "negated": f"sub.s64 %rd7, %rd1, %rd2; {LANES}sub.s64 %rd5, %rd5, %rd7; {LOAD}",
    "one of two": "setp.lt.u32 %p1, %r1, 7; selp.b64 %rd5, %rd1, %rd2, %p1; "
    f"add.s64 %rd5, %rd5, %rd4; {LOAD}",
    "swapped": f"{LANES}mov.u64 %rd5, %rd2; {LOAD}",
    "packed": f"mov.b64 {{%r6, %r7}}, %rd1; add.cc.u32 %r6, %r6, {AWAY}; addc.u32 %r7, %r7, 0; "
    f"mov.b64 %rd5, {{%r6, %r7}}; {LOAD}",
    "halves": "cvt.u32.u64 %r6, %rd2; cvt.u32.u64 %r7, %rd1; sub.u32 %r6, %r6, %r7; cvt.s64.s32 %rd6, %r6; "
    f"add.s64 %rd5, %rd1, %rd6; {LOAD}",
    "through shared memory": f"st.shared.u64 [tile], %rd2; bar.sync 0; ld.shared.u64 %rd5, [tile]; {LOAD}",
    "through a table": f"mov.u64 %rd6, table; st.global.u64 [%rd6], %rd2; ld.global.u64 %rd5, [%rd6]; {LOAD}",
    "distance in memory": "mov.u64 %rd6, table; sub.s64 %rd7, %rd2, %rd1; st.global.u64 [%rd6], %rd7; "
    f"ld.global.u64 %rd7, [%rd6]; add.s64 %rd5, %rd1, %rd7; {LOAD}",
}


def launch(body: str, **options: Any) -> list[LaunchFinding]:
    """Launch with B of 32 words of one, and behind it D of 64; ``pair`` holds 1 and the pointer B."""
    device = Device("sm_90")
    module = load_text(f"{HEAD}{body}\nret; }}")
    b, d = device.array(np.ones(32, np.uint32), "B"), device.array(np.full(64, 9, np.uint32), "D")
    out = device.array(np.zeros(32, np.uint32), "out")
    assert d.address - b.address == AWAY
    pair = np.array([1, b.address], np.uint64).tobytes()
    scalar = options.pop("scalar", 1)
    report = module["k"](1, 32, [b, d, out, scalar, pair], device=device, **{"checks": "warn"} | options)
    return [found for found in report.hazards if found.kind == "out of bounds"]


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_a_pointer_leaves_its_allocation(body: str) -> None:
    (found,) = launch(body)
    assert found.severity == "error"
    assert " of the D of 256 bytes at 0x200000000200 through a pointer to the B of 128 bytes" in found.message


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_may_lie_anywhere(body: str) -> None:
    assert not launch(body)


def test_the_message() -> None:
    with pytest.raises(UndefinedBehavior) as raised:
        launch(WRONG["offset"], checks="error")
    assert raised.value.message == (
        "ld.global.u32 reads byte 0 of the D of 256 bytes at 0x200000000200 through a pointer to the B of "
        "128 bytes at 0x200000000000, 384 bytes past its end [CTA (0, 0, 0), warp 0, lane 0]"
    )
    assert not launch(WRONG["offset"], checks="off")


def test_before_the_beginning() -> None:
    """A pointer to D, and what lies before it."""
    (found,) = launch(f"sub.s64 %rd5, %rd2, {AWAY}; ld.global.u32 %r9, [%rd5];")
    assert "reads byte 0 of the B of 128 bytes" in found.message
    assert f"a pointer to the D of 256 bytes at 0x200000000200, {AWAY} bytes before it" in found.message


def test_variables_of_the_module_are_allocations() -> None:
    (found,) = launch("mov.u64 %rd5, table; ld.global.u32 %r9, [%rd5+512];")
    assert "reads byte 0 of the other of 1024 bytes" in found.message
    assert "a pointer to the table of 64 bytes" in found.message
    assert len(launch("ld.global.u32 %r9, [table+512];")) == 1


@pytest.mark.parametrize("size", [1, 4, 16])
def test_a_parameter_may_be_the_distance(size: int) -> None:
    """An argument that leads from one array to the other, in bytes or elements, says where to go."""
    body = f"mad.lo.s64 %rd5, %rd8, {size}, %rd1; {LOAD}"
    assert not launch(body, scalar=AWAY // size)
    assert len(launch(f"mad.lo.s64 %rd5, %rd8, {AWAY + 4}, %rd1; {LOAD}")) == 1


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("sign", ["add", "sub"])
def test_the_distance_may_have_four_bytes_and_a_sign(sign: str, half: int) -> None:
    """As an int of a struct; it may be subtracted. Halves of pointers are not distances."""
    offset = f"ld.param.u32 %r5, [s+{4 * half}]; mul.wide.s32 %rd6, %r5, 4; "
    body = f"{offset}{sign}.s64 %rd5, %rd1, %rd6; {LOAD}"
    for distance, found in ((AWAY // 4, 0), (AWAY // 4 + 1, 1)):
        words = np.full(2, 99, np.int32)
        words[half] = distance if sign == "add" else -distance
        assert len(launch(body, scalar=int(words.view(np.int64)[0]))) == found


def test_parts_of_a_range_of_addresses_lead_to_each_other() -> None:
    """As cuMemMap maps them into one range, with a hole between."""
    device = Device("sm_90")
    b, d = (device.array(np.ones(32, np.uint32), name) for name in "BD")
    out = device.array(np.zeros(32, np.uint32), "out")
    memory = device.memory
    memory.allocations[:2] = [replace(part, reserved=b.address) for part in memory.allocations[:2]]
    module = load_text(f"{HEAD}{WRONG['offset']}\nret; }}")
    report = module["k"](1, 32, [b, d, out, 1, bytes(16)], device=device)
    assert not [found for found in report.hazards if found.kind == "out of bounds"]


def test_a_bulk_copy_leaves_its_array() -> None:
    body = """.shared .align 8 .b64 bar; mov.u32 %r6, bar; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [%r6], 1; bar.sync 0; add.s64 %rd5, %rd1, OFFSET; mov.u32 %r7, tile;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 64;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd5], 64, [%r6];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0; @!%p2 bra WAIT;"""
    (found,) = launch(body.replace("OFFSET", str(AWAY)))
    assert found.message.startswith(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes reads byte 0 of"
    )
    assert not launch(body.replace("OFFSET", "64"))


def test_terms_of_registers() -> None:
    """A sum has each of its terms once; what is multiplied, or there in some ways only, in any way."""
    body = """mul.lo.s64 %rd5, %rd8, 3; add.s64 %rd6, %rd1, %rd5; add.s64 %rd7, %rd6, %rd8;
    ld.global.u32 %r9, [%rd6]; ld.global.u32 %r9, [%rd7]; ld.global.u32 %r9, [%rd12];"""
    entry = load_text(f"{HEAD}{body}\nret; }}")["k"].module.entry("k")
    terms = POINTER_TERMS.of(entry)
    loads = [pc for pc, record in enumerate(entry.code) if record.statement.modifiers == ("global", "u32")]
    assert [terms.of(pc) for pc in loads] == [({0: True, 24: False},), ({0: True, 24: False},), ({},)]
