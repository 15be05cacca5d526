"""Launches on a cluster of worker processes: the same bytes, findings and counts as here."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import ClusterError, Fault, OperandError, UndefinedBehavior
from warpsim.machine.state.device import Device
from warpsim.programs.launch.launching import load_text

distributed = pytest.importorskip("distributed", reason="the extra warpsim[distributed] is not installed")

HEAD = """.version 8.0
.target sm_80
.address_size 64
.global .u32 factor = 3;
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3; ld.global.u32 %r6, [factor];
"""
SCALED = "ld.global.u32 %r4, [%d1];\nmul.lo.u32 %r4, %r4, %r6;\nst.global.u32 [%d2], %r4;\nret; }"
CTAS, THREADS = 100, 128


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two workers of one thread, each a process."""
    options: dict[str, Any] = {
        "host": "127.0.0.1",
        "dashboard_address": ":0",
        "silence_logs": logging.CRITICAL,
    }
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit=None, **options
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def run(body: str, **options: Any) -> tuple[np.ndarray, Any]:
    given = np.arange(CTAS * THREADS, dtype=np.uint32)
    found = np.full(CTAS * THREADS, 7, np.uint32)
    return found, load_text(HEAD + body)["k"](CTAS, THREADS, [given, found], **options)


@pytest.mark.parametrize("schedule", ["program", 3])
def test_the_same_as_here(client: Any, schedule: str | int) -> None:
    calls: list[tuple[int, int]] = []
    here, report = run(SCALED, schedule=schedule)
    there, other = run(
        SCALED, schedule=schedule, scheduler=client, progress=lambda done, total: calls.append((done, total))
    )
    assert here.tolist() == there.tolist() == [3 * one for one in range(CTAS * THREADS)]
    assert report.hazards == other.hazards == ()
    assert calls[-1] == (CTAS, CTAS)
    labels = [(one.mnemonic, one.fidelity, one.statements) for one in report.fidelity.classes]
    assert labels == [(one.mnemonic, one.fidelity, one.statements) for one in other.fidelity.classes]


def test_what_is_written_with_what_was_there_counts(client: Any) -> None:
    """The last CTA writes zeros, which were there before, where an earlier one has written others."""
    body = f"setp.eq.u32 %p1, %r1, {CTAS * THREADS - 1};\nld.param.u64 %d2, [out];\n"
    body += "mov.u32 %r4, %ctaid.x;\nsub.u32 %r4, 99, %r4;\nst.global.u32 [%d2], %r4;\nret; }"
    there, _ = run(body, scheduler=client, checks="off")
    assert there[0] == 0
    assert there[1:].tolist() == [7] * (CTAS * THREADS - 1)


def test_ctas_that_read_what_others_write(client: Any) -> None:
    body = SCALED.replace("ld.global.u32 %r4, [%d1];", "ld.param.u64 %d1, [out];\nld.global.u32 %r4, [%d1];")
    with pytest.raises(
        UndefinedBehavior, match=r"byte 0 of the .* is written by some CTAs and read by others"
    ):
        run(body, scheduler=client)


def test_findings_and_faults_come_back(client: Any) -> None:
    device = Device("sm_80")
    given, found = device.empty(CTAS * THREADS, np.uint32), device.empty(CTAS * THREADS, np.uint32)
    report = load_text(HEAD + SCALED)["k"](CTAS, THREADS, [given, found], scheduler=client)
    assert [one.kind for one in report.hazards] == ["uninitialised"]
    assert found.get().tolist() == [0] * (CTAS * THREADS)
    short = np.zeros(50 * THREADS, np.uint32)
    with pytest.raises(Fault, match="past the end of"):
        load_text(HEAD + SCALED)["k"](
            CTAS, THREADS, [short, np.zeros(CTAS * THREADS, np.uint32)], scheduler=client
        )


def test_kernels_that_communicate_stay_here(client: Any) -> None:
    with pytest.raises(OperandError, match="the module has atomics, fences or ordered accesses"):
        run("red.global.add.u32 [%d2], 1;\nret; }", scheduler=client)
    with pytest.raises(OperandError, match="record, observers and engines"):
        run(SCALED, scheduler=client, record=True)


def test_no_cluster() -> None:
    with pytest.raises(ClusterError):
        run(SCALED, scheduler="nowhere")


def test_what_cannot_be_spread_is_refused_before_anybody_is_asked() -> None:
    """Nobody listens there."""
    waiting = SCALED.replace("ret;", "atom.global.add.u32 %r5, [%d2], 1; ret;")
    nowhere = "tcp://127.0.0.1:9"
    with pytest.raises(OperandError, match=r"atomics, fences or ordered accesses.*without scheduler"):
        run(waiting, scheduler=nowhere)
    with pytest.raises(OperandError, match="record, observers and engines of the caller stay here"):
        run(SCALED, scheduler=nowhere, record=True)
