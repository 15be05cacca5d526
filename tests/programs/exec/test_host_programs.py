"""Host programs under ``warpsim exec``: what they print, their exit codes, and the report.

The modes that are right share a process, since most of the time of a run is its start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROOT = Path(__file__).parents[3]
RIGHT = {  # mode -> what it prints
    "vectors": "thread 3\n1000 right\n",
    "tensor": "products right\n",
    "managed": "7 38 -1 131 31\n",
    "graphs": "0 3 36 71 81\n",
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
        fill: 2 + 5 + 20 + 3,  # managed, graphs, threads, ordered
    }
    assert all(kernel["statements"] and kernel["fidelity"]["exact"] for kernel in right.report["kernels"])
    assert re.search(rf"{re.escape(fill)} +30 ", right.stderr)


@pytest.fixture(scope="module")
def wrong(run: Run, programs: Path) -> Any:
    """Programs with mistakes, a process each, in a run; lines of the shell begin with "=" and a name."""
    modes = ("errors", "forgotten", "race streams", "limit", "lacking")
    script = "; ".join(f"echo ={mode}; {programs} {mode}" for mode in modes)
    options = ("--error-exitcode", "9", "--limit", "0.5", "--trace-calls")
    return run(options=options, command=("sh", "-c", script))


def printed(done: Any, mode: str) -> str:
    found: str = done.stdout.partition(f"={mode}\n")[2].partition("=")[0]
    return found


def test_errors_are_those_of_cuda(wrong: Any) -> None:
    """Codes by value; the last error belongs to its thread; a fault is known to the next call, and to all."""
    codes = [int(word) for word in printed(wrong, "errors").split()]
    assert codes == [2, 2, 0, 1, 0, 1, 9, 1, 1, 0, 700, 700, 700]
    assert wrong.code == 9
    findings = dict(wrong.findings())
    assert findings["InvalidConfiguration"].endswith("block (2000, 1, 1): x is 1 to 1024")
    texts = "\n".join(message for kind, message in wrong.findings() if kind == "call")
    assert "336 bytes past the end of allocation #1 of 64 bytes" in texts
    assert "cudaFree: cudaErrorInvalidValue: 0x1234 is memory of the host" in texts


def test_a_forgotten_copy(wrong: Any) -> None:
    assert printed(wrong, "forgotten") == "700\n"
    assert "IllegalAddress" in dict(wrong.findings())
    assert (
        "copies 128 bytes of 128 to the host that nothing has written"
        in dict(wrong.findings("warning"))["uninitialised"]
    )
    assert "parameter 0 is 0x7f" in dict(wrong.findings("note"))["host pointer"]


def test_races_of_a_kernel_and_of_streams(wrong: Any) -> None:
    kinds = [kind for kind, _ in wrong.findings()]
    assert (kinds.count("race"), kinds.count("stream race")) == (1, 1)
    assert "byte 128 of allocation #2 of 256 bytes" in dict(wrong.findings())["stream race"]
    race = next(each for each in wrong.report["findings"] if each["kind"] == "race")
    assert (race["kernel"], race["place"].rpartition("/")[2]) == ("reversed(int*)", "programs.cu:35")


def test_a_launch_that_takes_too_long(wrong: Any) -> None:
    assert printed(wrong, "limit") == "702\n"
    assert "stopped at this statement" in dict(wrong.findings())["LaunchTimeout"]


def test_a_function_that_is_not_there_is_named_once(wrong: Any) -> None:
    assert printed(wrong, "lacking") == "801 801 \n"
    assert wrong.stderr.count("cudaDeviceRegisterAsyncNotification is not there") == 1
    assert wrong.stderr.count("cudaDeviceRegisterAsyncNotification()") == 2  # of the trace
    assert wrong.report["not_there"] == ["cudaDeviceRegisterAsyncNotification"]


def test_fork_and_exec_and_a_client_that_dies(run: Run, programs: Path) -> None:
    done = run(command=("sh", "-c", f"{programs} forks; {programs} dies"))
    lines = ["7 38 -1 131 31", "parent 2, child 0", *RIGHT["vectors"].splitlines()]
    assert sorted(done.stdout.splitlines()) == sorted(lines), done.stderr
    assert done.report["processes"] >= 4
    assert not done.findings()


def test_exit_codes_of_programs(run: Run) -> None:
    assert run(command=("sh", "-c", "kill -9 $$")).code == 128 + 9
    done = run(command=("./no-such-program",))
    assert done.code == 3
    assert done.stderr == "warpsim exec: error: ./no-such-program: No such file or directory\n"


def test_a_result_that_depends_on_the_schedule(run: Run) -> None:
    """In copies to the host, and in memory that the host reads without one."""
    done = run("tensor", "shown", "order", options=("--schedules", "2"))
    assert (done.code, done.stdout) == (0, "products right\n")
    assert [kind for kind, _ in done.findings()] == ["schedule", "schedule"]
    (_, shown), (_, copied) = done.findings()
    assert "memory that the host reads (cudaDeviceSynchronize, managed allocation #4 of 128 bytes" in shown
    assert "copy 2 to the host (cudaMemcpy, 128 bytes) gives other bytes" in copied


def test_the_page_shows_what_a_run_prints(run: Run) -> None:
    """Less seconds, which are never the same."""
    page = (ROOT / "warpsim/programs/exec/README.md").read_text()
    shown = page.partition("./programs race streams\n```\n\n```\n")[2].partition("\n```")[0]
    done = run("race", "streams")
    assert without_seconds(done.stderr.replace(f"{ROOT}/", "")) == without_seconds(shown)


def without_seconds(text: str) -> list[str]:
    return re.sub(r" +\d+\.\d\d$", "", text.strip(), flags=re.MULTILINE).splitlines()
