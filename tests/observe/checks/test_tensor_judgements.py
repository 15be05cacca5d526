"""Orders of tensor memory that kernels of others rely on: what is an error, a warning, and nothing at all.

Each kernel is a few statements of two warps that reach the same lanes, or of two warps of a CTA.
"""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.base.errors import Fault
from warpsim.programs.launch.launching import LaunchReport, load_text

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 results) {
.reg .b32 tid, warp, base, v0, v1;
.reg .b64 q0;
.reg .pred first, second, p;
.shared .b32 address;
mov.u32 tid, %tid.x;
shr.u32 warp, tid, 5;
setp.eq.u32 first, warp, 0;
setp.eq.u32 second, warp, 4;
ld.param.u64 q0, [results];
mad.wide.u32 q0, tid, 4, q0;
"""
ALLOC = "@first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 32;\n"
READ = "bar.sync 0;\nld.shared.b32 base, [address];\n"
FREE = "@first tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, 32;\n"
ST = "tcgen05.st.sync.aligned.32x32b.x1.b32 [base], {tid};\n"
LD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [base];\n"
WAIT_ST, WAIT_LD = "tcgen05.wait::st.sync.aligned;\n", "tcgen05.wait::ld.sync.aligned;\n"
TURN = "bar.sync 1, 64;\n"


def launched(body: str, threads: int = 160, **options: object) -> tuple[LaunchReport, np.ndarray]:
    found = np.zeros(threads, np.uint32)
    report = load_text(HEAD + body + "ret;\n}\n")["k"](1, threads, [found], checks="warn", **options)
    return report, found


def between(first: str, second: str) -> LaunchReport:
    """What warps 0 and 4, which reach the same lanes, do around a barrier of the two."""
    filled = f"@!first bra filled;\n{ST}{WAIT_ST}filled:\nbar.sync 0;\n"
    roles = f"@!first bra other;\n{first}bra done;\nother:\n@!second bra done;\n{second}done:\n"
    return launched(ALLOC + READ + filled + roles + "bar.sync 0;\n" + FREE)[0]


LATE = "waits for it too late, behind the barrier or arrival that orders the two"


@pytest.mark.parametrize(
    ("first", "second", "kind", "severity", "phrase"),
    [
        (ST + WAIT_ST + TURN, TURN + LD, None, "", ""),
        (ST + TURN, TURN + LD, "read early", "error", "warp 0 has not waited for it"),
        (ST + TURN + WAIT_ST, TURN + LD, "read early", "error", f"warp 0 {LATE}"),
        (ST + WAIT_ST, LD, "read early", "error", "no barrier orders this behind tcgen05.wait::st of warp 0"),
        (LD + TURN, TURN + ST, "overwritten early", "warning", "only a use of its registers says"),
        (
            LD + TURN + WAIT_LD,
            TURN + ST,
            "overwritten early",
            "warning",
            f"{LATE}, so that only a use",
        ),
        (LD + WAIT_LD, ST, "overwritten early", "error", "no barrier orders this behind tcgen05.wait::ld"),
    ],
)
def test_a_wait_counts_where_a_barrier_follows_it(
    first: str, second: str, kind: str | None, severity: str, phrase: str
) -> None:
    """Of a load a use of its registers may take the place of its wait; of a store nothing does."""
    whole = between(first, second + WAIT_ST)
    found = [one for one in whole.hazards if one.kind in ("read early", "overwritten early")]
    assert [(one.kind, one.severity) for one in found] == ([(kind, severity)] if kind else [])
    assert all(phrase in one.message for one in found)
    wait = (WAIT_LD if LD in first else WAIT_ST).removesuffix(";\n")
    assert all(one.fix.startswith(f"put {wait} ") for one in found)


RELAXED = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
ALONE = "mov.u32 base, 0;\n@first bra over;\n" + ST + WAIT_ST + "over:\n"


def test_columns_are_there_once_their_allocation_has_happened() -> None:
    """A relaxed barrier makes no value visible, but says that all before it is done; none says nothing."""
    report, _ = launched(ALLOC + RELAXED + ALONE + RELAXED + FREE, 64)
    assert [one.kind for one in report.hazards] == ["unspecified"]  # the address has no lanes of the warp
    report, _ = launched(ALLOC + ALONE + FREE, 64)
    assert {"not allocated yet", "deallocated early"} <= {one.kind for one in report.hazards}
    report, _ = launched(ALLOC + RELAXED + READ.removeprefix("bar.sync 0;\n") + RELAXED + FREE, 64)
    assert [one.kind for one in report.hazards] == ["race"]  # of the address, which is a value


PAIR = """.reg .b64 tile;
.reg .b32 rank;
.shared .align 128 .b8 bytes[4096];
mov.u32 rank, %cluster_ctarank;
mov.u64 tile, bytes;
shr.u64 tile, tile, 4;
or.b64 tile, tile, 0x400800080000;
add.u32 rank, rank, tid;
setp.eq.u32 p, rank, 0;
"""
COPY = "@p tcgen05.cp.cta_group::2.128x256b [base], tile;\n"
CLUSTER = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"


@pytest.mark.parametrize("barrier", ["", RELAXED, CLUSTER])
def test_the_other_cta_of_a_pair_must_have_allocated(barrier: str) -> None:
    """A barrier of the CTA alone says nothing of columns in the other.

    Of two copies to the same cells the second follows the first, in the other CTA as well: no note.
    """
    body = (PAIR + ALLOC + READ + barrier + COPY + COPY + CLUSTER + FREE).replace("group::1", "group::2")
    hazards = load_text(HEAD + body + "ret;\n}\n")["k"](2, 32, [None], cluster=2, checks="warn").hazards
    found = [one for one in hazards if one.kind == "not allocated yet"]
    assert len(found) == (barrier == "")
    assert "issue order" not in {one.kind for one in hazards}
    for one in found:
        assert one.severity == "warning"
        assert "writes columns 0..7, lanes 0..127 of tensor memory of CTA rank 1" in one.message
        assert "the pair need not be ready" in one.message
        assert "barrier.cluster.arrive and barrier.cluster.wait" in one.fix


def test_an_address_without_lanes_is_that_of_the_warps_own() -> None:
    """Statements of all warps, of which three leave out their lanes: one warning; other lanes are none."""
    body = ALLOC + READ + ST + WAIT_ST + LD + WAIT_LD + "st.global.b32 [q0], v0;\nbar.sync 0;\n" + FREE
    report, found = launched(body, 128)
    assert found.tolist() == list(range(128))
    (warning,) = report.hazards
    assert (warning.kind, warning.severity) == ("unspecified", "warning")
    assert warning.message.startswith(
        "tcgen05.st.sync.aligned.32x32b.x1.b32 takes these lanes: the address has lane 0, but warp 1 of the "
        "CTA reaches lanes 32..63, and chips are reported to ignore the bits of the warp: PTX leaves"
    )
    (why,) = {one.note for one in report.fidelity.classes if "tcgen05.ld" in one.mnemonic}
    assert "DeepGEMM" in why
    with pytest.raises(Fault, match=r"the address has lane 64, but warp 0 of the CTA reaches lanes 0..31"):
        launched(body.replace("[base], {tid}", f"[base+{64 << 16}], {{tid}}"), 128)
