"""Folders that no other user can change, and folders of this process alone.

What lies in a cache is executed, and what answers on a socket is obeyed: both only where no other user can
write. Where the user's cache is not such a folder, a private folder replaces it for this process. Private
folders are locked while they are in use, so that a later process removes those that a killed process left.

Knows owners, modes and locks; does not know what is in the folders.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # that are followed, as Linux does
_NAME = re.compile(r"\.warpsim-[a-z0-9_]{8}\.private")
_SEPARATORS = frozenset(":; \t\n$")  # in lists of folders that the dynamic loader reads (ld.so(8))
_LONGEST = 60  # bytes of a folder for private folders: the name of a socket has 107 in all (unix(7))


def why_untrusted(folder: str | Path, code: str | Path | None = None) -> str:
    """Return how another user could change the content of a folder; "" where none could.

    The folder is not a link. The folder and all above it belong to this user or root, and no others may write
    there; in a folder with the sticky bit, as /tmp, others may write beside what is checked. A folder beside
    code is as trusted as ``code``, the folder of its source: the same users may write there.
    """
    if not hasattr(os, "geteuid"):
        return ""
    path = os.fspath(folder).rstrip("/") or "/"
    path = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    if code is not None:
        return _why_other_than(path, os.stat(code))
    if os.path.islink(path):
        return f"{path} is a link"
    return _why(path) or _why_shared(path, os.lstat(path))


def _why_other_than(path: str, code: os.stat_result) -> str:
    """Return how a user could change a folder beside code, but not the code."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a link"
    if status.st_uid not in (os.geteuid(), 0, code.st_uid):
        return f"{path} belongs to user {status.st_uid}"
    return _why_shared(path, status, code.st_mode if status.st_gid == code.st_gid else code.st_mode & ~0o020)


def _why(path: str) -> str:
    """Return how another user could replace an absolute path: "" where all that leads to it is trusted.

    Links are followed as the system does, which takes ``..`` behind a link for the folder above its target.
    """
    place, left, links = "/", [each for each in reversed(path.split("/")) if each], 0
    while not (reason := _why_replaced(place)) and left:
        name = left.pop()
        place = os.path.dirname(place) if name == ".." else os.path.normpath(os.path.join(place, name))
        if not os.path.islink(place):
            continue
        if (owner := os.lstat(place).st_uid) not in (os.geteuid(), 0):
            return f"{place} belongs to user {owner}"
        links += 1
        if links > _MOST_LINKS:
            return f"{path}: too many links"
        target = os.readlink(place)
        left += [each for each in reversed(target.split("/")) if each]
        place = "/" if target.startswith("/") else os.path.dirname(place)
    return reason


def _why_replaced(path: str) -> str:
    """Return how another user could change what is in a folder that is not a link, or replace a file."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    if status.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to user {status.st_uid}"
    return "" if status.st_mode & stat.S_ISVTX else _why_shared(path, status)


def _why_shared(path: str, status: os.stat_result, allowed: int = 0) -> str:
    if not stat.S_ISDIR(status.st_mode):
        return f"{path} is not a folder"
    if status.st_mode & _OTHERS_WRITE & ~allowed:
        return f"{path} has mode {stat.S_IMODE(status.st_mode):o}, so that other users can write there"
    return ""


def made(folder: Path) -> Path:
    """Make a folder, and what is missing above it, of mode 700; return it. Raises OSError."""
    if not folder.is_dir():
        if folder.parent != folder:
            made(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    return folder


# --- the user's cache ----------------------------------------------------------------------------------


def user_cache(part: str = "") -> Path:
    """Return the folder of the user's cache that is warpsim's, or a part of it; it is made where needed.

    Where another user could change it, it is a folder of this process, which a warning says once.
    Raises OSError where the folder cannot be made. Source: XDG Base Directory Specification.
    """
    return _trusted_or_private(home_cache(), part)


def home_cache() -> str:
    """Return the name of the user's cache, "" where there is none: relative names do not count."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "warpsim") if os.path.isabs(base) else ""


@lru_cache(maxsize=16)
def _trusted_or_private(name: str, part: str) -> Path:
    reason = why_untrusted(made(Path(name, part))) if name else "this user has no home folder"
    return private_cache(reason, part) if reason else Path(name, part)


def private_cache(reason: str, part: str = "") -> Path:
    """Return a folder of this process in place of the user's cache; a warning gives the first reason."""
    if not _private_folder.cache_info().currsize:
        _say(reason)
    return made(_private_folder() / "cache" / part)


def _say(reason: str) -> None:
    with suppress(RuntimeWarning):  # a filter that makes errors of warnings: the folder works all the same
        warnings.warn(
            f"{reason}: what is compiled is kept in a private folder, for this process alone "
            "(XDG_CACHE_HOME names another cache)",
            RuntimeWarning,
            stacklevel=2,
        )


@cache
def _private_folder() -> Path:
    stack, process = ExitStack(), os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # forks have it, too
            stack.close()

    atexit.register(remove)
    return stack.enter_context(temporary_folder())


# --- folders for a while -------------------------------------------------------------------------------


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder of mode 700, which is removed at the end of the block; ``parent`` has it.

    What killed processes left beside it is removed, too. Raises OSError.
    """
    place = str(parent or _temporary_place())
    with suppress(OSError):
        _tidy(place)
    folder, lock = _new_folder(place)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        unlock(lock)


def why_unloadable(folder: str | Path) -> str:
    """Return why programs cannot load libraries from a folder; "" where they can."""
    for letter in sorted(_SEPARATORS.intersection(str(folder))):
        return f"{folder} has {letter!r} in its name, which separates folders of libraries"
    if os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
        return f"{folder} is mounted without permission to execute files"
    return ""


def _temporary_place() -> str:
    """Return the folder for temporary files: the first that is trusted, and fit for libraries, sockets."""
    usual = tempfile.gettempdir()
    if not hasattr(os, "geteuid"):
        return usual
    for place in (usual, "/tmp", "/dev/shm"):
        fits = os.access(place, os.W_OK) and len(os.fsencode(place)) <= _LONGEST
        if fits and not _why(place) and not why_unloadable(place):
            return place
    return usual


def _new_folder(place: str) -> tuple[str, int]:
    """Make a folder; return it, and its lock."""
    while True:
        folder = tempfile.mkdtemp(prefix=".warpsim-", suffix=".private", dir=place)
        with suppress(FileNotFoundError):  # another process has removed it before it was locked
            lock = locked(folder)
            if os.path.isdir(folder):
                return folder, lock
            unlock(lock)


@cache
def _tidy(place: str) -> None:
    """Remove folders of this user that no process locks. Raises OSError."""
    with os.scandir(place) as entries:
        found = [each.path for each in entries if _NAME.fullmatch(each.name) and each.is_dir()]
    for folder in found:
        with suppress(OSError), unlocked(folder):
            shutil.rmtree(folder, ignore_errors=True)


def locked(path: str, flags: int = 0) -> int:
    """Open a file or folder, and lock it while the descriptor that is returned is open; -1 on Windows.

    Raises OSError.
    """
    if fcntl is None:  # Windows has no such locks, and replaces no file that is open
        return -1
    descriptor = os.open(path, os.O_RDONLY | flags, 0o666)
    with suppress(OSError):  # a file system without locks: no process removes what is left there
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def unlock(lock: int) -> None:
    """Close what ``locked`` returned."""
    if lock >= 0:
        os.close(lock)


@contextmanager
def unlocked(path: str) -> Iterator[None]:
    """Lock a file or folder of this user for a block of code. Raises OSError where another process does."""
    if fcntl is None:
        raise OSError("this system has no locks")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
