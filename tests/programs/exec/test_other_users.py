"""Other users of the machine: ``warpsim exec`` neither obeys them nor executes what they planted."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsim.base import folders
from warpsim.programs.exec.libraries import HostError, libraries
from warpsim.programs.exec.serving.remote import Remote, prepared, usual_folder

ROOT = Path(__file__).parents[3]
OTHER = 65534
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes processes of other users")
LISTENS = """
import os, socket, sys
folder, user = sys.argv[1], int(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(folder + "/socket")
os.chmod(folder + "/socket", 0o600)
if sys.argv[3] == "theirs":
    os.chown(folder, user, -1)
    os.chown(folder + "/socket", user, -1)
    os.chmod(folder, 0o755)
os.setuid(user)
listener.listen(8)
print("listens", flush=True)
while True:
    connection, _ = listener.accept()
    print("received", len(connection.recv(4096)), flush=True)
"""
CLIENT = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"


@contextmanager
def fake_server(folder: Path, user: int, whose: str = "theirs") -> Iterator[list[str]]:
    """Run what listens in a folder as another user; yield what it has received, once it has ended."""
    folder.mkdir(mode=0o700)
    words = [sys.executable, "-c", LISTENS, str(folder), str(user), whose]
    child, received = subprocess.Popen(words, stdout=subprocess.PIPE, text=True), list[str]()
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "listens\n"
        yield received
    finally:
        child.kill()
        received += child.communicate()[0].splitlines()


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``warpsim exec``."""
    return subprocess.run(
        [sys.executable, "-m", "warpsim", "exec", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


# --- sockets -----------------------------------------------------------------------------------------


@as_root
@pytest.mark.parametrize("whose", ["theirs", "own"])
def test_a_server_of_another_user_is_not_connected_to(whose: str, tmp_path: Path) -> None:
    """Also where folder and socket are this user's own, and only the process that listens is not."""
    with fake_server(tmp_path / "place", OTHER, whose) as received:
        done = command("--connect", "--server", str(tmp_path / "place"), sys.executable, "-c", CLIENT)
        with pytest.raises(HostError, match=f"belongs to user {OTHER}"), Remote(tmp_path / "place"):
            pass
    assert (done.returncode, done.stdout) == (3, "")
    assert f"belongs to user {OTHER}" in done.stderr
    assert set(received) <= {"received 0"}


@as_root
@pytest.mark.parametrize("whose", ["theirs", "own"])
def test_the_agent_obeys_no_other_user(whose: str, tmp_path: Path) -> None:
    """A fake server could order system calls, and calls of any function."""
    environment = {
        "LD_LIBRARY_PATH": str(libraries()),
        "WARPSIM_EXEC_SOCKET": str(tmp_path / "place" / "socket"),
    }
    with fake_server(tmp_path / "place", OTHER, whose) as received:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert done.stdout == "100\n"  # CUDA_ERROR_NO_DEVICE
    assert done.stderr.count("warpsim exec: refused: ") == 1
    assert set(received) <= {"received 0"}


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_both_ends_refuse_a_folder_of_more_than_one_user(mode: int, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
        listener.listen()
        place.chmod(mode)
        reason = f"{place} has mode {mode:o}: the folder of a server is yours, and of mode 700"
        for use in (prepared, Remote):
            with pytest.raises(HostError, match=re.escape(reason)):
                use(place).__enter__()


def test_links_are_refused(tmp_path: Path) -> None:
    place, link = tmp_path / "place", tmp_path / "link"
    place.mkdir(mode=0o700)
    link.symlink_to(place)
    for use in (prepared, Remote):
        with pytest.raises(HostError, match="link is a link"):
            use(link).__enter__()
    (place / "socket").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostError, match="socket is not a socket: refused"):
        Remote(place).__enter__()


@as_root
def test_the_usual_folder_is_of_this_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose HOME belongs to another user: the server has a place all the same."""
    for name in ("run", "cache"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert usual_folder() == tmp_path / "run" / "warpsim-exec"
    os.chown(tmp_path / "run", OTHER, -1)
    assert usual_folder() == tmp_path / "cache" / "warpsim" / "warpsim-exec"
    os.chown(tmp_path / "cache", OTHER, -1)
    assert usual_folder() == Path("/tmp/warpsim-exec-0")


# --- libraries ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a cache that has libraries."""
    folder = tmp_path_factory.mktemp("cache")
    done = command("--chip", "sm_80", sys.executable, "-c", CLIENT, XDG_CACHE_HOME=str(folder))
    assert done.stdout == "0\n"
    return folder / "warpsim"


@pytest.fixture
def cache(compiled: Path, tmp_path: Path) -> Path:
    """A cache with libraries of its own."""
    shutil.copytree(compiled, tmp_path / "warpsim", symlinks=True)
    (place,) = (tmp_path / "warpsim").glob("exec-*")
    return place


def test_libraries_are_of_this_user_alone(cache: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in (cache, cache.parent)} == {0o700}


def test_what_others_planted_is_not_executed(cache: Path, tmp_path: Path) -> None:
    (cache / "python" / "sitecustomize.py").write_text("print('planted')")
    (cache / "digests").unlink(missing_ok=True)
    cache.parent.chmod(0o777)
    done = command("--chip", "sm_80", sys.executable, "-c", CLIENT, XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert done.stderr.count(f"{cache.parent} has mode 777, so that other users can write there") == 1


@as_root
def test_nor_what_lies_in_the_current_folder_of_a_user_without_home(cache: Path, tmp_path: Path) -> None:
    place = tmp_path / "~" / ".cache" / "warpsim"
    place.mkdir(parents=True)
    cache.rename(place / cache.name)
    (place / cache.name / "python" / "sitecustomize.py").write_text("print('planted')")
    script = (
        "import os, sys; from warpsim.programs.exec.libraries import libraries; os.setuid(12345); "
        "os.environ.pop('HOME'); os.environ.pop('XDG_CACHE_HOME', 0); print(libraries())"
    )
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.lchown(path, 12345, -1)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).parts[:2] == ("/", "tmp")
    assert str(tmp_path) not in done.stdout
    assert done.stderr.count("this user has no home folder") == 1


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("libcuda.so.1", "removed"),
        ("libcudart.so.13", "changed"),
        ("python/sitecustomize.py", "changed"),
        ("digests", "removed"),
        ("libcuda.so", "removed"),
        ("triton-ptxas", "not executable"),
        ("", "a file"),
        ("", "a link"),
    ],
)
def test_damaged_libraries_are_compiled_again(name: str, damage: str, cache: Path, tmp_path: Path) -> None:
    """A cleaner of temporary files removed one: every test found no GPU, with exit code 0."""
    if damage == "removed":
        (cache / name).unlink()
    elif damage == "not executable":
        (cache / name).chmod(0o600)
    elif not name:
        shutil.rmtree(cache)
        (cache.write_text("") if damage == "a file" else cache.symlink_to(tmp_path / "absent"))
    else:
        (cache / name).write_bytes((cache / name).read_bytes()[:-1])
    done = command("--chip", "sm_80", sys.executable, "-c", CLIENT, XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert {path.name for path in cache.parent.iterdir()} == {cache.name}
    assert (cache / "libcuda.so").exists()
    assert os.access(cache / "triton-ptxas", os.X_OK)


def test_a_cache_without_permission_to_execute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """As on a file system that is mounted noexec: every program found no GPU."""
    usual = os.statvfs

    def statvfs(path: str | Path) -> object:
        found = usual(path)
        is_cache = Path(path).is_relative_to(tmp_path)
        return SimpleNamespace(f_flag=found.f_flag | os.ST_NOEXEC) if is_cache else found

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cached in (folders._trusted_or_private, folders._private_folder):
        cached.cache_clear()
    assert not libraries().is_relative_to(tmp_path)
    assert "is mounted without permission to execute files" in str(recwarn.pop(RuntimeWarning).message)


def test_a_program_that_is_another_user_is_told_so(tmp_path: Path) -> None:
    """It cannot look into the folder of the server: that is not a reason to say that there is none."""
    if os.geteuid():
        pytest.skip("only root changes the user")
    loads = f"import ctypes, os; ctypes.CDLL('libcuda.so.1'); os.setuid({OTHER}); "
    done = command("/usr/bin/env", "python3", "-c", loads + CLIENT)
    assert done.stdout == "100\n"
    assert "warpsim exec: refused: " in done.stderr


def test_a_name_that_separates_folders_of_libraries(tmp_path: Path) -> None:
    done = command("--chip", "sm_80", sys.executable, "-c", CLIENT, XDG_CACHE_HOME=str(tmp_path / "a:b"))
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert "has ':' in its name" in done.stderr


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--error-exitcode", "9"), 9)])
def test_a_run_without_a_call_of_cuda_says_so(options: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = command(*options, sys.executable, "-c", "print('no GPU: tests skipped')")
    assert (done.returncode, done.stdout) == (code, "no GPU: tests skipped\n")
    assert "no function of CUDA was called" in done.stderr
    assert command(*options, "false").returncode == 1
    called = command(*options, sys.executable, "-c", CLIENT)
    assert called.returncode == 0
    assert "no function of CUDA" not in called.stderr
