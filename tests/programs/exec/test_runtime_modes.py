"""A client in C of the runtime under ``warpsim exec``: objects, managed variables, graphs, placed memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
PRINTED = {
    # two objects of PTX that share names: 1 + (2 + 7) + 100 + 5; the virtual chip; a parameter; too many CTAs
    "linked": "0 115 75 0 8 720",
    # what a kernel leaves of 3 before the host asks for the address; of 4 from the host; cudaMemoryType
    "managed": "30 40 3",
    # a launch; edges, roots, which; what nodes are made of; changed; disabled; a copy less a node is no
    # update; an update; a child; edges that are not there, and are again; a file that cannot be written; a
    # free of no address
    "graphs": "115 2 1 1 1 1 1 1 118 2 0 0 910 2 0 115 3 115 1 0 304 1",
    # of two graphs and two nodes; a node that is taken for a graph; no node
    "numbers": "0 0 1 1 1 400 400",
    # used and first pools of managed memory; not for pinned; what a kernel leaves for the host; its most
    # bytes; an attribute that is set at first; memory of the host
    "pools": "0 0 1 1 1 112 3 1 1 1",
    # what the next node comes after; memory of the graph in two launches; a call that ends the capture
    "captured": "1 1 0 0 224 900 901",
    # sizes; without access, with it; it is gone; the bytes of the handle; not twice; whole ranges; too large
    "placed": "1 0 1 0 3 1 22 1 1 0 0 2",
    # ... preferred locations: none; a node of the host, and as an attribute of one number; none. A prefetch;
    # accesses by two; prefetches of two stretches, the last to the device; no place for the first; discarded;
    # synchronous copies are asked for, which is kept
    "hints": "1 -1 -2 64 1 3 9 1 9 9 0 3 3 -1 -2 2 0 -1 -2 0 0 1 0 1 0 0 1 1",
}


@pytest.fixture(scope="module")
def done(run: Run, runtime_modes: Path) -> Any:
    return run(command=(str(runtime_modes),))


@pytest.mark.parametrize("mode", PRINTED)
def test_what_a_client_of_the_runtime_prints(done: Any, mode: str) -> None:
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert lines[mode] == PRINTED[mode], done.stderr


def test_calls_that_fail_say_why(done: Any) -> None:
    text = "\n".join(message for _, message in done.findings())
    assert "9000 CTAs of a cooperative launch, at most 8192 run at a time" in text
    assert "kinds or dependencies of nodes have changed" in text
    assert "is in a range of reserved addresses, where cuMemMap and cuMemSetAccess give no access" in text
    assert "cuMemAddressReserve: a range of 1099511627776 addresses: at most 2147483648" in text
    assert "a call that no capture allows has ended the capture" in text
    assert "cudaFuncGetParamInfo" not in text  # programs look for the last parameter by its error
    assert "/nowhere/graph.dot: No such file or directory" in text
    assert "mistake of warpsim" not in done.stderr


def test_what_was_discarded_is_read(done: Any) -> None:
    """Of two launches that read managed memory, one reads what the program had discarded."""
    found = [message for kind, message in done.findings("warning") if kind == "uninitialised"]
    assert len(found) == 1, found
    assert "were never written" in found[0]


def test_work_of_streams_is_done_in_the_order_that_a_schedule_chooses(run: Run, runtime_modes: Path) -> None:
    """Runs with and without an event between streams, each under program, random:1 and latest."""
    script = f"{runtime_modes} streams ordered; {runtime_modes} streams"
    done = run(command=("sh", "-c", script), options=("--schedules", "3"))
    assert done.stdout == f"{3 * 0x01010101 + 112} 9\n" * 2
    found = dict(done.findings())
    assert set(found) == {"stream race", "InvalidConfiguration", "schedule"}
    assert (
        "copy 2 to the host (cudaMemcpyAsync, 4 bytes) gives other bytes under --schedule"
        in found["schedule"]
    )
    assert "mistake of warpsim" not in done.stderr


def test_a_schedule_that_finds_the_other_order(run: Run, runtime_modes: Path) -> None:
    """The second program ends without waiting: its launch is executed, and stops at an address of nothing."""
    script = f"{runtime_modes} streams; {runtime_modes} ends"
    done = run(command=("sh", "-c", script), options=("--schedule", "latest"))
    assert (done.code, done.stdout) == (0, "112 9\n")
    assert {"stream race", "IllegalAddress"} <= set(dict(done.findings()))
