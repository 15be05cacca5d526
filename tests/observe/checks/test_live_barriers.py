"""What may happen to the memory of an mbarrier between its init and its inval, and what is a warning."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.programs.launch.launching import LaunchReport, load_text

TEXT = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in) {
.reg .b32 %r<4>, %own; .reg .b64 %in, %d<2>; .reg .pred %first, %p;
.shared .align 128 .b8 tile[256]; .shared .align 8 .b64 full;
ld.param.u64 %in, [in];
mov.u32 %own, %tid.x; setp.eq.u32 %first, %own, 0;
@%first mbarrier.init.shared.b64 [full], 1;
@%first mbarrier.init.shared.b64 [tile+16], 32;
@%first fence.proxy.async.shared::cta;
bar.sync 0;
{body}
ret;
}
"""
BRING = """@%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 256, [full];
again: mbarrier.try_wait.parity.shared.b64 %p, [full], 0;
@!%p bra again;"""
END = "@%first mbarrier.inval.shared.b64 [tile+16];\nbar.warp.sync 0xffffffff;\n"
USE = "mbarrier.arrive.shared.b64 %d0, [tile+16];\nmbarrier.test_wait.shared.b64 %p, [tile+16], %d0;\n"
STORE = "@%first st.shared.v4.b32 [tile+{at}], {{%r0, %r0, %r0, %r0}};\n"


def launch(body: str, schedule: str | int) -> LaunchReport:
    text = TEXT.replace("{body}", "mov.u32 %r0, 7;\n" + body)
    return load_text(text)["k"](2, 32, [np.arange(64, dtype=np.uint32)], schedule=schedule, checks="warn")


@pytest.mark.parametrize("schedule", ["program", "latest", 1])
@pytest.mark.parametrize(
    "body",
    [
        USE, END + STORE.format(at=16), STORE.format(at=32) + STORE.format(at=0),
        END + "@%first mbarrier.init.shared.b64 [tile+16], 1;",
        END + "fence.proxy.async.shared::cta;\n" + BRING,
        "ld.shared.b64 %d1, [tile+16];",
    ],
)  # fmt: skip
def test_what_is_right(body: str, schedule: str | int) -> None:
    assert launch(body, schedule).hazards == ()


@pytest.mark.parametrize("schedule", ["program", "latest", 1])
@pytest.mark.parametrize(
    ("body", "what"),
    [
        (STORE.format(at=16), "st.shared.v4.b32 overwrites the mbarrier at 0x10 "),
        ("@%first st.shared.b8 [tile+23], %r0;", "st.shared.b8 overwrites the mbarrier at 0x10 "),
        ("@%first red.shared.add.u32 [tile+20], 1;", "red.shared.add.u32 overwrites the mbarrier at 0x10 "),
        (BRING, ".global.mbarrier::complete_tx::bytes overwrites the mbarrier at 0x10 "),
        ("@%first mbarrier.init.shared.b64 [tile+16], 1;", "init.shared.b64 initialises the mbarrier at "),
    ],
)  # fmt: skip
def test_what_is_a_warning(body: str, what: str, schedule: str | int) -> None:
    (told,) = launch(body, schedule).hazards
    assert (told.kind, told.severity) == ("mbarrier", "warning")
    assert what in told.message
    assert told.other is not None
    assert told.other.line == 10


def test_it_is_told_once() -> None:
    (told,) = launch(STORE.format(at=16) * 2, "program").hazards
    assert "which that of line 10 has begun and mbarrier.inval has not ended: PTX leaves open" in told.message
