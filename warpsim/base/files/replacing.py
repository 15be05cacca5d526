"""Write files atomically: whole or not at all, under a temporary name first.

A replaced file keeps its permissions, and a symbolic link stays a link: its target is replaced. Temporary
names begin with ".warpsim-" and end in ".partial"; no two are the same, in any thread or process. The file is
locked while it is written: those that killed processes left are removed. Does not know what is written.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from secrets import token_hex

from ..folders import locked, unlock, unlocked
from .read_files import check_output

__all__ = ["replacing", "together"]

_Written = list[tuple[Path, Path, int]]  # path under the temporary name, final path, the lock's descriptor
_TEMPORARY = re.compile(r"\.warpsim-\d+-[0-9a-f]{16}\.partial")
_waiting: ContextVar[_Written | None] = ContextVar("_waiting", default=None)


@contextmanager
def together() -> Iterator[None]:
    """Move the files of a block to their final names at its end, if it does not raise: all of them, or none.

    Nothing is replaced before everything has been written, so that a full disk leaves all files as they were.
    Raises OSError. Blocks inside it are part of it.
    """
    if _waiting.get() is not None:
        yield
        return
    written: _Written = []
    token = _waiting.set(written)
    try:
        yield
        for temporary, final, _ in written:
            _keep_mode(temporary, final)
        for temporary, final, _ in written:
            temporary.replace(final)
    finally:
        _waiting.reset(token)
        for temporary, _, lock in written:
            temporary.unlink(missing_ok=True)
            unlock(lock)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside a file, which replaces the file if the block does not raise.

    So files are written whole or not at all. Raises OSError, and TraceError where the file is an input of a
    command line.
    """
    with together():
        final = _place(path)
        with suppress(OSError):
            _tidy(final.parent)
        temporary = final.with_name(f".warpsim-{os.getpid()}-{token_hex(8)}.partial")
        lock = -1
        try:
            lock = locked(str(temporary), os.O_CREAT)
            yield temporary
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            unlock(lock)
            if (
                isinstance(error, OSError)
                and error.errno
                and error.filename in (None, str(temporary), temporary)
            ):
                error.filename = str(path)  # what is written does not know: the disk is full
            raise
        waiting = _waiting.get()
        assert waiting is not None, "the block has been left in another context"
        waiting.append((temporary, final, lock))


@cache
def _tidy(folder: Path) -> None:
    """Remove files of this user under temporary names that no process locks. Raises OSError."""
    with os.scandir(folder) as entries:
        left = [each.path for each in entries if _TEMPORARY.fullmatch(each.name)]
    for path in left:
        with suppress(OSError), unlocked(path):
            os.unlink(path)


def _place(path: Path) -> Path:
    """Return the file to be written, at the end of symbolic links. Raises OSError if there cannot be such a
    file.
    """
    check_output(path)
    final = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(final.stat().st_mode):  # a loop of links or a name too long raises here
            raise OSError(errno.EINVAL, "not a regular file", str(path))
    return final


def _keep_mode(temporary: Path, final: Path) -> None:
    with suppress(FileNotFoundError):
        temporary.chmod(stat.S_IMODE(final.stat().st_mode))
