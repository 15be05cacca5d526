"""A client in C of driver and runtime under ``warpsim exec``: contexts, options, memory, reset, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.workbench.vectors.formats.recording import read_recording

Run = Callable[..., Any]
PRINTED = {
    # no context; two is current, a launch of one's kernel; the stream is of one; a copy to two; the value;
    # memory, module and stream are gone; the parameter of a kernel, without a context and in one
    "contexts": "201 1 0 1 0 7 7 1 400 400 7 1 201 201 0 8 0 1 1",
    # registers, of the limit; logs; invalid PTX, whose log is cut to its room; the same for libraries
    "options": "0 1 2 '' '' 1 218 1 23 2 0 1",
    # twice; another address; type, place; 1100 + 3; what lies beside; as they were, after it; not from its
    # middle on; a context goes
    "registered": "0 712 0 1 1 1 0 1103 99 1153 0 1153 7 9 713 1 1 0 7 9",
    # memory is free, limits are as at first; handles are gone; variables begin again
    "reset": "0 1 1 1 400 400 400 0 4",
    # the object is there until the executable graph is destroyed, and then a release is an error; between
    # them an update that is refused, whose graph then goes with its own
    "objects": "0 0 0 0 910 0 1 1 1",
    # flags; a reference of the executable; destroyed once. An allocation's parameters; the copied node; the
    # object of a graph in a graph, and in a copy of that; an allocation of nothing; edges of a node to itself
    # and to another graph; a node beside an allocation stays; of two attributes, the most bytes are reset
    "nests": "1 0 1 1 48 1 1 0 0 0 0 1 1 1 1 1 0 1",
    # the graph of a capture. Parameters of a copy are read: sides, pitches, sizes. A capture to a graph with
    # a node: its end gives that graph, with a node more, behind the first; what both leave; a node of another
    "captured": "0 0 1 0 0 0 0 1 1 1 1 0 0 1 2 1 1 7 6 9 1",
    # a library; what is none; the result; a launch of two CTAs that wait for each other; what they leave;
    # threads of a block below a limit, and without; shared memory that is not asked for with an attribute;
    # an attribute, one of a later driver, and one of no kernel
    "linked": "0 218 0 0 0 0 60 50 64 1024 49152 0 1 400",
    # loaded; its kernel is there; and cannot be launched
    "nested": "0 0 218",
    "refused": "801 801 801 801 801 801",
}


@pytest.fixture(scope="module")
def done(run: Run, driver_modes: Path) -> Any:
    return run(command=(str(driver_modes),))


@pytest.mark.parametrize("mode", PRINTED)
def test_what_a_client_of_the_driver_prints(done: Any, mode: str) -> None:
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert lines[mode] == PRINTED[mode], done.stderr


def test_refusals_say_why_once(done: Any) -> None:
    lines = [line for line in done.stderr.splitlines() if "is not there: it returns" in line]
    assert [line.partition("exec: ")[2].partition(" ")[0] for line in lines] == [
        "cudaMallocArray",
        "cudaCreateTextureObject",
        "cudaFreeArray",
        "cudaMemcpy2DToArray",
        "cudaIpcGetMemHandle",
    ]
    assert all("since tex, tld4, suld and sust are not executed" in line for line in lines[:4])
    assert "each has a device of its own" in lines[4]
    assert "mistake of warpsim" not in done.stderr


def test_a_call_without_a_context_is_a_finding(done: Any) -> None:
    messages = [message for _, message in done.findings()]
    assert "cuMemAlloc_v2: no context is current in this thread" in "\n".join(messages)


def test_a_kernel_that_launches_kernels_is_refused_by_name(done: Any) -> None:
    (message,) = (message for _, message in done.findings() if "__cudaCDP2LaunchDeviceV2_ptsz" in message)
    assert message.endswith("\nkernels do not launch kernels here: launch them from the host")


def test_ctas_that_share_a_multiprocessor_and_what_they_multiply(
    run: Run, driver_modes: Path, tmp_path: Path
) -> None:
    """Two CTAs with 256 columns each of one tensor memory; D of tcgen05.mma is sums of 16 ones.

    Behind it a graph whose kernels have clusters of two CTAs and of one.
    """
    options = ("--chip", "sm_100a", "--resident", "2", "--trace-mma", str(tmp_path))
    done = run(command=(str(driver_modes), "columns"), options=options)
    assert done.stdout == "columns 0 1 257\nclusters 0 0 2 2 2 1 1\n", done.stderr
    recording = read_recording(tmp_path / "0001-columns.npz")
    assert [event.cta for event in recording.events] == [(0, 0, 0), (1, 0, 0)]
    for event in recording.events:
        assert (warpsim.unpack(event.instruction, "d", event.d) == np.full((128, 16), 16, np.float32)).all()
