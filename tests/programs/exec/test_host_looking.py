"""``warpsim exec --trace-mma --break``: what is observed of the launches of a host program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import warpsim
from warpsim.programs.exec.host_launch import HostLaunch
from warpsim.programs.launch.launching import load_text
from warpsim.show.cli.exec import exec as verb
from warpsim.show.cli.host_looking import HostLooking
from warpsim.workbench.vectors.formats.recording import read_recording

Run = Callable[..., Any]
SOURCE = (Path(__file__).parent / "programs.cu").read_text().splitlines()
STORE = next(number for number, line in enumerate(SOURCE, 1) if "p[i] = value + i" in line)
ABSENT = len(SOURCE) + 100


@pytest.fixture(scope="module")
def observed(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("observed") / "new"
    breaks = ("--break", f"programs.cu:{STORE}", "--break", f"programs.cu:{ABSENT}")
    origins = ("--origins", "all", "--fragment", "1:a")
    return folder, run("managed", "tensor", options=("--trace-mma", str(folder), *breaks, *origins))


def test_matrix_instructions_are_recorded_by_launch(observed: Any) -> None:
    """The file is of the third launch, since two others multiply nothing; D is of the host's data."""
    folder, done = observed
    assert [path.name for path in folder.iterdir()] == ["0003-product.npz"]
    recording = read_recording(folder / "0003-product.npz")
    (event,) = recording.events
    a = (np.arange(256) % 7 - 3).reshape(16, 16).astype(np.float16)
    b = (np.arange(128) % 5 - 2).reshape(8, 16).T.astype(np.float16)
    assert (recording.target, recording.grid, recording.block) == ("sm_80", (1, 1, 1), (32, 1, 1))
    assert np.array_equal(warpsim.unpack(event.instruction, "a", event.inputs.registers["a"]), a)
    assert np.array_equal(
        warpsim.unpack(event.instruction, "d", event.d), a.astype(np.float32) @ b.astype(np.float32)
    )
    assert [(each["launch"], each["events"]) for each in done.report["recordings"]] == [(3, 1)]
    assert "1 matrix instruction recorded in" in done.stderr


def test_origins_by_allocation(observed: Any) -> None:
    """Rows are as long as the tiles say, D is left out, and the memory is as before: "products right"."""
    _, done = observed
    (found,) = done.report["origins"]
    assert found["launch"] == "launch 3, product(__half const*, __half const*, float*)"
    places = [(each["allocation"], each["shape"], each["used"]) for each in found["buffers"]]
    assert places == [("allocation #3", [16, 32], 1.0), ("allocation #4", [8, 32], 1.0)]
    assert found["filled"] == {
        "#3": "call 1 of cudaMemcpy, of host memory",
        "#4": "call 2 of cudaMemcpy, of host memory",
    }
    assert found["findings"] == []
    assert {each["operand"]: each["buffer"] for each in found["operands"]} == {
        "a": "#3",
        "b": "#4",
        "c": None,
    }
    assert "a: from #3, row = r, column = k" in done.stderr
    assert "b: from #4, row = n, column = k" in done.stderr
    assert "--fragment 1:a: the operands are " in done.stderr


def test_a_line_stops_once_in_all_launches(observed: Any) -> None:
    _, done = observed
    assert (done.code, done.stdout) == (0, "7 38 -1 131 31\nproducts right\n")
    assert [stop["launch"] for stop in done.report["stops"]] == [1]
    assert done.stderr.count(f"programs.cu:{STORE} (") == 1
    assert f"programs.cu:{ABSENT} was not executed" in done.stderr


def test_one_launch_of_a_kernel(run: Run, tmp_path: Path) -> None:
    """The second launch of fill stops, and product, which multiplies, is not observed."""
    chosen = ("--kernel", "fill", "--launch", "2", "--break", f"programs.cu:{STORE}", "--trace-mma")
    done = run("tensor", "managed", options=(*chosen, str(tmp_path)))
    assert [stop["launch"] for stop in done.report["stops"]] == [2]
    assert not list(tmp_path.iterdir())
    assert f"recorded in {tmp_path}: no launch that was observed executes mma, wgmma" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kernel", "fill"), "--kernel goes with --trace-mma, --break, --origins or --reference"),
        (("--launch", "1"), "--launch goes with --trace-mma, --break, --origins or --reference"),
        (("--origins", "all", "--select", "cta=0"), "--select goes with --trace-mma or --break"),
        (("--fragment", "1:a"), "--fragment goes with --origins"),
        (("--origins", "A=first"), "--origins A=first: expected the number of an allocation, from 1 on"),
        (("--origins", "0"), "--origins 0=0: expected the number of an allocation, from 1 on"),
        (("--origins", "A=1,A=2"), "--origins A=1,A=2: expected names"),
        (("--break", "12"), "it goes with --kernel"),
        (("--trace-mma", "/dev/null/folder"), "--trace-mma /dev/null/folder: Not a directory"),
    ],
)
def test_options_that_do_not_go_together(options: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(verb, [*options, "./programs"])
    assert done.exit_code == 2
    assert message in done.output


PRODUCT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry product()
{
    .reg .b32 %r<5>;
    mov.b32 %r0, 0;
    mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r0, %r0}, {%r0}, {%r0, %r0};
    ret;
}
"""


def test_a_full_disk_is_an_error(run: Run, tmp_path: Path) -> None:
    """It was said that no launch multiplies matrices, with exit code 0."""
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path)],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("only root mounts a small disk")
    try:
        (tmp_path / "large").write_bytes(bytes(4096))
        done = run("tensor", options=("--trace-mma", str(tmp_path)))
        assert [path.name for path in tmp_path.iterdir()] == ["large"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert (done.code, done.stdout) == (3, "products right\n")
    reason = f"error: 1 recording could not be written to {tmp_path}: No space left on device"
    assert reason in done.stderr.splitlines()
    assert "nothing is recorded" not in done.stderr
    assert [each["error"] for each in done.report["unwritten"]] == ["No space left on device"]


def caused_by(cause: type[BaseException]) -> SystemError:
    """What Numba makes of an exception that a signal raises in a compiled function."""
    error = SystemError("returned a result with an exception set")
    error.__cause__ = cause()
    return error


@pytest.mark.parametrize(
    ("stop", "written"),
    [
        (KeyboardInterrupt(), 0),
        (SystemExit(), 0),
        (caused_by(SystemExit), 0),
        (caused_by(KeyError), 1),
        (ValueError(), 1),
    ],
)
def test_an_interrupted_launch_is_not_recorded(stop: BaseException, written: int, tmp_path: Path) -> None:
    module = load_text(PRODUCT, "product.ptx")
    kernel = module["product"]
    looking = HostLooking(trace_mma=tmp_path, breaks=(), selection=None, kernel=None, launch=None)

    def stopped(observers: Any) -> None:
        kernel(1, 32, observers=observers)
        raise stop

    launch = HostLaunch(module=module, kernel=kernel, grid=(1, 1, 1), block=(32, 1, 1))
    with pytest.raises(type(stop)), looking.at(launch) as observers:
        stopped(observers)
    assert len(list(tmp_path.iterdir())) == len(looking.recordings) == written
