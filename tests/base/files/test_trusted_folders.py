"""Folders that other users could change are not used; folders that killed processes left are removed."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from warpsim.base import folders
from warpsim.base.files import replacing as writing
from warpsim.base.files.archives import write_content
from warpsim.base.files.kept import KeptFiles
from warpsim.base.folders import temporary_folder, user_cache, why_unloadable, why_untrusted

ROOT = Path(__file__).parents[3]
OTHER = 65534  # another user than this
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes files of other users"
)
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has other permissions")


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Let each test decide anew which folders are trusted, and which have been tidied."""
    for known in (folders._trusted_or_private, folders._tidy, writing._tidy):
        known.cache_clear()


def folder(path: Path, mode: int = 0o700, owner: int = -1) -> Path:
    path.mkdir()
    path.chmod(mode)
    os.chown(path, owner, -1)
    return path


# --- which folders are trusted -----------------------------------------------------------------------


def test_a_folder_of_this_user_is_trusted(tmp_path: Path) -> None:
    assert why_untrusted(folder(tmp_path / "own")) == ""
    assert why_untrusted(folder(tmp_path / "own" / "inner", 0o755)) == ""


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o1777])
def test_a_folder_that_others_write_is_not(mode: int, tmp_path: Path) -> None:
    shared = folder(tmp_path / "shared", mode)
    assert why_untrusted(shared).startswith(f"{shared} has mode {mode:o}, so that other users")


def test_nor_a_folder_below_one_that_others_write(tmp_path: Path) -> None:
    """They could rename it, and put another in its place; in a folder as /tmp they cannot."""
    shared = folder(tmp_path / "shared", 0o777)
    inner = folder(shared / "inner")
    assert why_untrusted(inner) == why_untrusted(shared) != ""
    shared.chmod(0o1777)
    assert why_untrusted(inner) == ""


def test_a_link_is_not(tmp_path: Path) -> None:
    target, link = folder(tmp_path / "target"), tmp_path / "link"
    link.symlink_to(target)
    folder(target / "inner")
    assert why_untrusted(link) == f"{link} is a link"
    assert why_untrusted(link / "inner") == "", "a link above, which only this user can change"
    target.chmod(0o777)
    assert why_untrusted(link / "inner") == why_untrusted(target) != ""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert why_untrusted(tmp_path / "a" / "inner").endswith("too many links")


def test_the_folder_above_a_link_is_that_above_its_target(tmp_path: Path) -> None:
    """As the system takes it: by names alone another folder would be checked than is used."""
    shared, own = folder(tmp_path / "shared", 0o777), folder(tmp_path / "own")
    folder(shared / "inner")
    (own / "link").symlink_to(shared / "inner")
    folder(own / "cache")
    folder(shared / "cache")
    assert why_untrusted(own / "link" / ".." / "cache") == why_untrusted(shared) != ""
    (shared / "inner" / "up").symlink_to("../cache")
    assert why_untrusted(f"{own}/link/up/../cache/") == why_untrusted(shared)
    assert why_untrusted(f"{own}/cache/../cache/") == ""


def test_what_is_no_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert why_untrusted(tmp_path / "file") == f"{tmp_path / 'file'} is not a folder"
    assert why_untrusted(tmp_path / "absent") == f"{tmp_path / 'absent'}: No such file or directory"


@as_root
def test_nor_what_belongs_to_another_user(tmp_path: Path) -> None:
    theirs = folder(tmp_path / "theirs", owner=OTHER)
    own = folder(theirs / "own")
    assert why_untrusted(theirs) == why_untrusted(own) == f"{theirs} belongs to user {OTHER}"
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    os.lchown(link, OTHER, -1)
    assert why_untrusted(link / "theirs") == f"{link} belongs to user {OTHER}"


@as_root
def test_beside_code_those_write_who_write_the_code(tmp_path: Path) -> None:
    """Root in a checkout of another user, as in a container: the source is as much theirs as its cache."""
    code = folder(tmp_path / "code", 0o755, OTHER)
    cache = folder(code / "__pycache__", 0o755, OTHER)
    assert why_untrusted(cache, code) == ""
    cache.chmod(0o777)
    assert why_untrusted(cache, code).startswith(f"{cache} has mode 777")
    code.chmod(0o777)
    assert why_untrusted(cache, code) == ""
    os.chown(cache, OTHER - 1, -1)
    assert why_untrusted(cache, code) == f"{cache} belongs to user {OTHER - 1}"


def test_names_that_separate_folders(tmp_path: Path) -> None:
    assert why_unloadable(folder(tmp_path / "a-b,c")) == ""
    assert "has ':' in its name" in why_unloadable(folder(tmp_path / "a:b"))
    assert "has ' ' in its name" in why_unloadable(folder(tmp_path / "a b"))


# --- the user's cache --------------------------------------------------------------------------------


def test_a_cache_is_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    before = os.umask(0o002)
    try:
        made = user_cache("part")
    finally:
        os.umask(before)
    assert made == tmp_path / "home" / "cache" / "warpsim" / "part"
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")} == {0o700}


def test_a_relative_cache_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert user_cache() == tmp_path / "home" / ".cache" / "warpsim"


IN_A_PROCESS = """
import os, sys
from warpsim.base.files.kept import KeptFiles
from warpsim.base.folders import user_cache
{before}
kept = KeptFiles("machine-code", 1 << 20)
print(kept.find("planted"))
kept.keep("own", b"content")
place = user_cache("machine-code")
print(kept.find("own"), oct(os.stat(place).st_mode & 0o777), place)
"""


def in_a_process(environment: dict[str, str], cwd: Path, before: str = "") -> tuple[list[str], str]:
    """Use the cache in a process of its own: what it prints, and its warnings."""
    words = [sys.executable, "-c", IN_A_PROCESS.format(before=before)]
    kept = {name: text for name, text in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    environment = {**kept, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(words, env=environment, cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr


def plant(cache: Path) -> None:
    """Put a file into a cache as it is kept there."""
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "planted").write_bytes(hashlib.sha256(b"code").digest() + b"code")


@pytest.mark.parametrize("part", [".", "warpsim", "warpsim/machine-code"])
def test_nothing_is_taken_from_a_cache_that_others_write(part: str, tmp_path: Path) -> None:
    plant(tmp_path / "cache" / "warpsim" / "machine-code")
    (tmp_path / "cache").chmod(0o700)
    lines, said = in_a_process({"XDG_CACHE_HOME": str(tmp_path / "cache")}, tmp_path)
    assert (lines[0], said) == ("b'code'", "")
    (tmp_path / "cache" / part).chmod(0o777)
    lines, said = in_a_process({"XDG_CACHE_HOME": str(tmp_path / "cache")}, tmp_path)
    content, mode, place = lines[1].rsplit(" ", 2)
    assert (lines[0], content, mode) == ("None", "b'content'", "0o700")
    assert not Path(place).exists(), "the private folder goes with the process"
    assert said.count("has mode 777, so that other users can write there: what is compiled") == 1


@as_root
def test_a_user_without_home_takes_nothing_from_the_current_folder(tmp_path: Path) -> None:
    plant(tmp_path / "~" / ".cache" / "warpsim" / "machine-code")
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 12345, -1)
    lines, said = in_a_process({}, tmp_path, before="os.setuid(12345)")
    assert lines[0] == "None"
    assert said.count("this user has no home folder: what is compiled is kept in a private folder") == 1


def test_an_error_of_a_warning_does_not_stop_the_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders._private_folder.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder(tmp_path / "shared", 0o777)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = KeptFiles("notes", 1 << 20)
        kept.keep("a", b"b")
        assert kept.find("a") == b"b"
    assert not any((tmp_path / "shared" / "warpsim" / "notes").iterdir())


# --- what killed processes left ----------------------------------------------------------------------

LEAVES = """
import os, sys, time
from pathlib import Path
from warpsim.base.files.replacing import replacing
from warpsim.base.folders import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder, replacing(Path(sys.argv[1], "out")) as file:
    (folder / "inner").write_text("x")
    file.write_text("x")
    print("there", flush=True)
    time.sleep(60)
"""


def test_a_folder_that_is_removed_before_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, made = tempfile.mkdtemp, list[str]()

    def removed_once(**words: str) -> str:
        made.append(usual(**words))
        if len(made) == 1:
            os.rmdir(made[0])  # as a process does that tidies
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", removed_once)
    with temporary_folder(tmp_path) as place:
        assert [str(place)] == made[1:]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """And not before: another process may use it."""
    words = [sys.executable, "-c", LEAVES, str(tmp_path)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        assert child.stdout is not None
        child.stdout.readline()
        before = sorted(os.listdir(tmp_path))
        assert [name.rpartition(".")[2] for name in before] in (
            ["partial", "private"],
            ["private", "partial"],
        )
        _use(tmp_path)
        assert sorted(os.listdir(tmp_path)) == sorted([*before, "mine"])
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    (tmp_path / ".warpsim-mine").mkdir()  # not by its name
    folders._tidy.cache_clear()
    writing._tidy.cache_clear()
    _use(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".warpsim-mine", "mine"]


def _use(place: Path) -> None:
    """Write a file and make a folder in a place."""
    with temporary_folder(place) as inner:
        assert inner.stat().st_mode & 0o777 == 0o700
    write_content(place / "mine", b"")
