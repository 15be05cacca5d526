"""Host programs under ``warpsim exec``: what they print, their exit codes, and the report.

The modes that are right share a process, since most of the time of a run is its start.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
RIGHT = {  # mode -> what it prints
    "vectors": "thread 3\n1000 right\n",
    "tensor": "products right\n",
    "managed": "7 38 -1 131 31\n",
    "graphs": "0 3 36\n",
    "threads": "2016 2080 2144 2208\n",
    "copies": "512 9 2 59 3\n",
    "device": "1 warpsim sm_80 8.0 166912 166912 8\n",
    "ordered": "",
}


@pytest.fixture(scope="module")
def right(run: Run) -> Any:
    return run(*RIGHT)


@pytest.mark.parametrize("mode", RIGHT)
def test_what_a_right_program_prints(right: Any, mode: str) -> None:
    assert RIGHT[mode] in right.stdout


def test_a_right_program_has_no_finding(right: Any) -> None:
    assert (right.code, right.stdout) == (0, "".join(RIGHT.values())), right.stderr
    assert not right.findings()
    assert not right.findings("warning")


def test_launches_are_counted_by_kernel(right: Any) -> None:
    launches = {kernel["kernel"]: kernel["launches"] for kernel in right.report["kernels"]}
    fill = "fill(int*, int, int)"
    assert launches == {
        "add(float const*, float const*, float*, int)": 1,
        "product(__half const*, __half const*, float*)": 1,
        fill: 2 + 3 + 20 + 3,  # managed, graphs, threads, ordered
    }
    assert all(kernel["statements"] and kernel["fidelity"]["exact"] for kernel in right.report["kernels"])
    assert re.search(rf"{re.escape(fill)} +28 ", right.stderr)


def test_errors_are_those_of_cuda(run: Run) -> None:
    """Codes by value; the last error belongs to its thread; after a fault every call fails."""
    done = run("errors", options=("--error-exitcode", "9"))
    assert done.stdout.split() == ["2", "2", "0", "1", "0", "1", "9", "1", "1", "700", "700"]
    assert done.code == 9
    kinds = [kind for kind, _ in done.findings()]
    assert kinds == ["call", "call", "InvalidConfiguration", "call", "IllegalAddress"]
    assert "336 bytes past the end of allocation #1 of 64 bytes" in done.findings()[1][1]


def test_a_forgotten_copy(run: Run) -> None:
    done = run("forgotten")
    assert (done.code, done.stdout) == (0, "700\n")
    assert [kind for kind, _ in done.findings()] == ["IllegalAddress"]
    assert [kind for kind, _ in done.findings("warning")] == ["uninitialised"]
    assert "copies 128 bytes of 128 to the host that nothing has written" in done.findings("warning")[0][1]
    assert "parameter 0 is 0x7f" in done.findings("note")[0][1]


def test_races_of_a_kernel_and_of_streams(run: Run) -> None:
    done = run("race", "streams")
    assert done.code == 0
    assert [kind for kind, _ in done.findings()] == ["race", "stream race"]
    assert "byte 128 of allocation #2 of 256 bytes" in done.findings()[1][1]
    race = done.report["findings"][0]
    assert race["place"].endswith("programs.cu:35") or "programs.cu" in race["place"]


def test_fork_and_exec_and_a_client_that_dies(run: Run) -> None:
    done = run("forks")
    assert sorted(done.stdout.splitlines()) == sorted(["7 38 -1 131 31", "parent 2, child 0"]), done.stderr
    done = run("dies")
    assert (done.code, done.stdout) == (0, RIGHT["vectors"])


def test_a_launch_that_takes_too_long(run: Run) -> None:
    done = run("limit", options=("--limit", "0.5"))
    assert done.stdout == "702\n"
    assert [kind for kind, _ in done.findings()] == ["LaunchTimeout"]


def test_a_function_that_is_not_there_is_named_once(run: Run) -> None:
    done = run("lacking", options=("--trace-calls",))
    assert (done.code, done.stdout) == (0, "801 801 \n")
    assert done.stderr.count("cudaMallocArray is not there") == 1
    assert done.stderr.count("cudaMallocArray()") == 2  # of the trace
    assert done.report["not_there"] == ["cudaMallocArray"]


def test_exit_codes_of_programs(run: Run) -> None:
    false, kill = shutil.which("false"), shutil.which("sh")
    assert run(command=(str(false),)).code == 1
    assert run(command=(str(kill), "-c", "kill -9 $$")).code == 128 + 9
    done = run(command=("./no-such-program",))
    assert done.code == 3
    assert done.stderr == "warpsim exec: error: ./no-such-program: No such file or directory\n"
