"""What has filled allocations: the last writes of each byte, by calls and by kernels; origins by number."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from warpsim.base.errors import OperandError
from warpsim.machine.host.device import Device
from warpsim.machine.state.spaces import Allocation
from warpsim.programs.exec.clients.access_log import ByteMask
from warpsim.programs.exec.fills import Fills
from warpsim.programs.exec.host_launch import HostLaunch
from warpsim.programs.launch.launching import load_text
from warpsim.show.cli.exec import exec as verb
from warpsim.show.cli.host_looking import HostLooking
from warpsim.show.cli.host_origins import HostOrigins
from warpsim.workbench.diagnosis.origins.element_origins import find_allocation_origins

ALLOCATION = Allocation(address=0x2000_0000_0000, size=100, name="allocation #1")


def test_writes_that_are_written_again_are_forgotten() -> None:
    fills = Fills()
    assert fills.text(ALLOCATION) == "nothing"
    fills.note(ALLOCATION, "one", 10, 20)
    assert fills.text(ALLOCATION) == "one (bytes 10 to 29)"
    fills.note(ALLOCATION, "two", 20, 20)
    assert fills.text(ALLOCATION) == "one (bytes 10 to 29), then two (bytes 20 to 39)"
    fills.note(ALLOCATION, "three", 0, 100)
    assert fills.text(ALLOCATION) == "three"
    fills.forget(ALLOCATION)
    assert fills.of(ALLOCATION) == ()


def test_rows_of_a_copy_are_a_stretch() -> None:
    fills = Fills()
    for row in range(20):
        fills.note(ALLOCATION, "copy", 5 * row, 3)
    assert fills.text(ALLOCATION) == "copy (bytes 0 to 97)"


def test_only_the_last_are_shown() -> None:
    fills = Fills()
    for place in range(5):
        fills.note(ALLOCATION, f"w{place}", 10 * place, 5)
    assert fills.text(ALLOCATION).startswith("2 earlier, then w2 (bytes 20 to 24), then ")


@pytest.mark.parametrize("width", [1, 4, 8, 32])
def test_bytes_that_a_launch_touches(width: int) -> None:
    """Stretches over the bounds of blocks, of words and of ranges, against a set of bytes."""
    size = 1 << 18
    random = np.random.default_rng(width)
    mask, expected = ByteMask(size), np.zeros(size + 2, np.bool_)
    offsets = random.integers(0, size // width, 40) * width
    mask.add(offsets, width)
    for first, past in ((65530, 65540), (131072, 131073), (size - 3, size), (10, 10)):
        mask.add_range(first, past)
        expected[1 + first : 1 + past] = True
    for offset in offsets.tolist():
        expected[1 + offset : 1 + offset + width] = True
    edges = np.flatnonzero(expected[1:] != expected[:-1]) + 0x2000_0000_0000
    assert [place for stretch in mask.stretches() for place in stretch] == edges.tolist()


# --- kernels, and the allocations that a launch begins with -------------------------------------------

STORES = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry stores(.param .u64 p, .param .u64 q)
{
    .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p0;
    ld.param.u64 %rd0, [p];
    ld.param.u64 %rd1, [q];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, 4;
    setp.lt.u32 %p0, %r0, 16;
    add.s64 %rd3, %rd0, %rd2;
    add.s64 %rd4, %rd1, %rd2;
    selp.b64 %rd5, %rd3, %rd4, %p0;
    ld.global.u32 %r1, [%rd3];
    st.global.u32 [%rd5+64], %r1;
    mov.b32 %r2, 0;
    mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r3, %r4}, {%r1, %r1}, {%r1}, {%r2, %r2};
    ret;
}
"""


def launch_on(device: Device) -> HostLaunch:
    module = load_text(STORES, "stores.ptx")
    for number in (1, 2):
        device.array(np.arange(64, dtype=np.uint32), f"allocation #{number}")
    pointers = [each.address.to_bytes(8, "little") for each in device.memory.allocations]
    return HostLaunch(
        module=module,
        kernel=module["stores"],
        grid=(1, 1, 1),
        block=(32, 1, 1),
        parameters=pointers,
        device=device,
    )


def looked_at(origins: str, launch: HostLaunch) -> HostLooking:
    """What is left when the launch is executed twice."""
    asked = HostOrigins.given(origins, None, once=True)
    looking = HostLooking(trace_mma=None, breaks=(), selection=None, kernel=None, launch=None, origins=asked)
    for _ in range(2):
        with looking.at(launch) as observers:
            launch.kernel(
                launch.grid, launch.block, launch.parameters, device=launch.device, observers=observers
            )
    with looking.at(launch):
        pass
    return looking


def test_kernels_fill_the_allocations_that_they_store_to() -> None:
    """Half of the lanes of a store write to one allocation, half to the other; tags are not left behind."""
    launch = launch_on(Device("sm_80"))
    looking = looked_at("all", launch)
    one, two = launch.device.memory.allocations
    assert launch.fills.text(one) == "kernel stores (bytes 64 to 127)"
    assert launch.fills.text(two) == "kernel stores (bytes 128 to 191)"
    content = launch.device.memory.bytes_of(one).view(np.uint32)
    assert content[:40].tolist() == [*range(16), *range(16), *range(32, 40)]
    (found,) = looking.document()["origins"]
    assert [each["allocation"] for each in found["buffers"]] == ["allocation #1"]
    assert found["filled"] == {"#1": "nothing"}


def test_an_allocation_that_is_not_there() -> None:
    lines = list(looked_at("A=1,#7", launch_on(Device("sm_80"))).lines())
    assert lines == ["origins: launch 1, stores: #7 is not an allocation now: there are #1, #2"]


def test_too_many_bytes_to_follow() -> None:
    launch = launch_on(Device("sm_80"))
    huge = {"A": Allocation(address=0x2000_0000_0000, size=1 << 40)}
    with pytest.raises(OperandError, match="at most 268,435,456 can be followed"):
        find_allocation_origins(launch.kernel, (1, 32, None), launch.parameters, huge, launch.device)


def test_help_names_the_option() -> None:
    assert "--origins all|NUMBER" in CliRunner().invoke(verb, ["--help"]).output
