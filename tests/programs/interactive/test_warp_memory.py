"""What a warp does with its shared memory, and its barrier."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim.programs.interactive.machines import Machine, Warp, Warpgroup

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, "
MMA += "{%b0, %b1}, {%d0, %d1, %d2, %d3};"


def test_a_warp_loads_matrices_as_the_warps_of_a_warpgroup_do() -> None:
    text = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0, %r1, %r2, %r3}, [%at];"
    text += "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%to], {%r3, %r1}; ld.shared.v2.b32 {%u, %v}, [%to];"
    memory = np.random.default_rng(2).integers(0, 256, 1024).astype(np.uint8)
    warp, group = Warp("sm_90a", 1024), Warpgroup(shared_bytes=1024, hazards="off")
    for machine in (warp, group):
        machine.write_shared(0, memory)
        lanes = np.arange(machine.lanes) % 32
        machine["%at"], machine["%to"] = 16 * lanes, 512 + 16 * lanes
        machine.run(text)
    assert np.array_equal(warp.shared.data, group.shared.data)
    for name in ("%r<4>", "%u", "%v"):
        assert np.array_equal(warp[name], group[name][:32])
    rows = memory[:128].view(np.uint16).reshape(8, 8)
    assert warp["%r0"].view(np.uint16).reshape(8, 4, 2).reshape(8, 8).T.tolist() == rows.tolist()


def test_memory_and_registers_of_a_warp_feed_a_product() -> None:
    """What a kernel of one warp does: tiles in shared memory, ldmatrix, mma."""
    form = warpsim.decode(MMA.partition(" ")[0], target="sm_80")
    random = np.random.default_rng(3)
    a, b = (
        random.standard_normal((16, 16)).astype(np.float16),
        random.standard_normal((16, 8)).astype(np.float16),
    )
    warp = Warp("sm_80", 1024)
    warp.run(".shared .align 16 .b8 ta[512], tb[256];")
    warp.write_shared("ta", a)
    warp.write_shared("tb", b)
    lane = np.arange(32)
    warp["%at"] = (lane % 16) * 32 + (lane // 16) * 16
    warp["%bt"] = 512 + (lane % 16) * 16
    warp["%d<4>"] = np.float32(0)
    (event,) = warp.run(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%at];"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%b0, %b1}, [%bt]; bar.warp.sync 0xffffffff;" + MMA
    )
    expected = warpsim.matmul(form, a, b)
    assert np.array_equal(warpsim.unpack(form, "d", event.d).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("machine", [Warp, Warpgroup])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bar.warp.sync;", "bar.warp.sync takes 1 operand, but 0 are given"),
        ("bar.warp.sync.aligned -1;", "bar has no modifier .aligned here"),
        ("bar.warp.sync 1.5;", ".u32 does not take a float constant, as 0d3FF8000000000000"),
        ("bar.warp.sync %laneid;", "bar does not take special registers: mov reads %laneid"),
        (".reg .f32 %f; bar.warp.sync %f;", "bar.warp.sync takes .u32 here, but %f is .f32"),
        (".reg .b64 %f; bar.warp.sync %f;", "bar.warp.sync takes .u32 here, but %f is .b64"),
        (".reg .b32 %f; bar.warp.sync %f;", "register %f is read, but nothing has been written to it"),
        ("bar.warp.sync 0xfffffffe;",
         "bar.warp.sync: the lane is not a member of its own mask 0xfffffffe [{}lane 0]"),
        ("@%p bar.warp.sync -1;",
         "bar.warp.sync waits for lanes 4-31 of its warp, members of its mask 0xffffffff, which do not all "
         "come with it [{}lane 0 and {} more]"),
        (".version 5.0\nbar.warp.sync -1;", "bar.warp.sync needs PTX 6.0, but the version is 5.0"),
    ],
)  # fmt: skip
def test_barriers_of_a_warp_that_are_refused(machine: type[Machine], text: str, message: str) -> None:
    made = machine("sm_90a")
    made["%p"] = np.arange(made.lanes) % 32 < 4
    with pytest.raises(warpsim.WarpsimError) as caught:
        made.run(text)
    several = made.lanes > 32
    assert caught.value.message == message.format("warp 0, " * several, 15 if several else 3)


@pytest.mark.parametrize("machine", [Warp, Warpgroup])
def test_barriers_of_a_warp(machine: type[Machine]) -> None:
    made = machine("sm_80")
    made["%p"] = np.arange(made.lanes) % 32 < 4
    made["%m"] = np.where(np.arange(made.lanes) % 32 < 4, 0xF, 0xFFFFFFF0)
    made.run("bar.warp.sync -1; @%p bar.warp.sync 15; @!%p bar.warp.sync 0xfffffff0; bar.warp.sync %m;")


def test_what_a_warp_leaves_to_a_warpgroup() -> None:
    warp = Warp("sm_90a")
    with pytest.raises(warpsim.NotModelled, match=r"a warpgroup executes it, and not a warp"):
        warp.run("wgmma.fence.sync.aligned;")
