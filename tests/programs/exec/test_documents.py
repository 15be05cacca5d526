"""What a server and those who connect to it send each other, where it is wrong, huge or incomplete."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from warpsim.programs.exec.libraries import HostError, libraries
from warpsim.programs.exec.messages import Channel, Gone, check_document
from warpsim.programs.exec.serving import server as serving
from warpsim.programs.exec.serving.remote import Remote, version
from warpsim.programs.exec.serving.runs import Run
from warpsim.programs.exec.serving.server import Server
from warpsim.programs.exec.serving.visits import visit
from warpsim.programs.exec.settings import Settings, settings_of
from warpsim.programs.exec.tally import Tally

ROOT = Path(__file__).parents[3]
NESTED = b"[" * 200_000
WHOLE = Tally(program="p", notice=print, progress=print).whole_document()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name is short enough for a socket, of mode 700."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def raw(channel: socket.socket, content: bytes) -> None:
    channel.sendall(struct.pack("<Q", len(content)) + content)


@pytest.mark.parametrize(
    "settings",
    [
        *(None, [], "x", {"chip": None}, {"limit": float("nan")}, {"memory_bytes": -1}, {"resident": 0}),
        *({"schedule": "often"}, {"checks": "never"}, {"undefined": ""}, {"chip": ["sm_80"]}, {"": 1}),
    ],
)
def test_wrong_settings_are_refused(settings: Any, short: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Server(print, visitor=visit, folder=short), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(short / "socket"))
        channel = Channel(connection)
        channel.ask()
        channel.send_document(version())
        channel.send_document({"settings": settings, "program": "p"})
        assert channel.receive_item()[0] == "refused"
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("content", [NESTED, b"\xff", b"1" * 5000, b'"settings"', b"null", b"[1]"])
def test_nonsense_leaves_the_server_as_it_was(
    content: bytes, short: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Server(print, visitor=visit, folder=short):
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(short / "socket"))
                channel = Channel(connection)
                channel.ask()
                raw(connection, content)
                with suppress(Gone, OSError):
                    channel.send_document({})
                    connection.shutdown(socket.SHUT_WR)
                    assert channel.receive_item()[0] == "refused"
    assert "Traceback" not in capfd.readouterr().err


def test_two_runs_of_a_process_end_in_any_order() -> None:
    """The end of the first removed the second, whose own end failed."""
    server = Server(print, visitor=visit)
    first, second = (
        Run(settings=Settings(), tally=Tally(program="p", notice=print, progress=print), trace=print)
        for _ in range(2)
    )
    one, other = server.serving(1, first), server.serving(1, second)
    for context in (one, other):
        context.__enter__()
    one.__exit__(None, None, None)
    assert server.runs == {1: second}
    other.__exit__(None, None, None)
    assert not server.runs


def test_large_documents_take_time_in_proportion() -> None:
    """256 MiB took 155 s; 64 MiB in pieces of 4 KiB, as a slow client sends them, take less than 5."""
    here, there = socket.socketpair()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    content = b'"' + b"x" * (64 << 20) + b'"'
    writer = threading.Thread(target=raw, args=(there, content))
    start = time.process_time()
    writer.start()
    assert len(Channel(here).receive_document()) == 64 << 20
    writer.join()
    assert time.process_time() - start < 5
    here.close()
    there.close()


def test_a_request_has_a_bound() -> None:
    here, there = socket.socketpair()
    with here, there:
        raw_size = struct.pack("<Q", 1 << 20)
        there.sendall(raw_size)
        with pytest.raises(Gone):
            Channel(here).receive_document(1 << 19)


@pytest.mark.parametrize(
    ("tally", "message"),
    [
        ({}, "the document has no 'kernels'"),
        (3, "the document: expected dict, given int"),
        ({**WHOLE, "kernels": [{"kernel": "k"}]}, "['kernels'][0] has no 'launches'"),
        ({**WHOLE, "calls": {"a": "b"}}, "['calls']['a']: expected int, given str"),
        ({**WHOLE, "copies": {"found": True, "made": [[1]]}}, "expected 6 elements, given 1"),
        ({**WHOLE, "copies": {"found": True, "made": [["", "x", "", {}, 0, False]]}}, "fromhex"),
    ],
)
def test_an_incomplete_summary_is_an_error_with_a_name(short: Path, tally: Any, message: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(short / "socket"))
    listener.listen()

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            channel = Channel(connection)
            channel.receive()
            channel.receive_document()
            channel.receive_document()
            channel.send_document(["ready", None])
            channel.send_document(["unknown", {}])
            channel.receive_document()
            channel.send_document(["tally", tally])

    thread = threading.Thread(target=answer)
    thread.start()
    run = Run(settings=Settings(), tally=Tally(program="p", notice=print, progress=print), trace=print)
    with Remote(short) as remote, pytest.raises(HostError, match="sent no whole summary") as raised:
        remote.run(run, ["true"])
    thread.join()
    listener.close()
    assert message in str(raised.value)


def test_patterns() -> None:
    check_document({"a": [1, 2.5], "b": ["x", {"y": 3}]}, {"a": [float], "b": (str, {str: int})})
    for wrong, message in ((True, "expected int, given bool"), ("1", "expected int, given str")):
        with pytest.raises(ValueError, match=f"^the document: {message}$"):
            check_document(wrong, int)


def test_settings_that_are_no_table() -> None:
    with pytest.raises(ValueError, match="is not a setting"):
        settings_of({"limit": -1.0})


# --- folders -------------------------------------------------------------------------------------------


def test_a_long_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with Server(print) as server:
        assert len(os.fsencode(server.folder / "socket")) <= 107
        assert server.folder.stat().st_mode & 0o777 == 0o700
    assert not server.folder.exists()
    assert not list(long.iterdir())
    monkeypatch.setattr(serving, "has_short_name", lambda folder: False)
    with pytest.raises(HostError, match="no folder for a socket: expected a writable folder"):
        Server(print).__enter__()


FROM_AN_ARCHIVE = """
from warpsim.show.cli import main
from warpsim.workbench.models.c_model import own_text
assert "module" in own_text("unit.sv")
main(["exec", "--report", "r.json", "true"])
"""


def test_exec_under_a_long_tmpdir_and_from_a_zip_archive(tmp_path: Path) -> None:
    """Bazel's folders are longer than 107 bytes; a wheel may lie on the path as it is."""
    wheel, long = tmp_path / "warpsim.whl", tmp_path / ("x" * 120)
    long.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in (ROOT / "warpsim").rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(ROOT))
    environment = {**os.environ, "PYTHONPATH": str(wheel), "TMPDIR": str(long)}
    command = [sys.executable, "-c", FROM_AN_ARCHIVE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["exit_code"] == 0
    assert libraries().name in {each.name for each in libraries().parent.iterdir()}
