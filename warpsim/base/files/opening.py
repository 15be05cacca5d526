"""Open inputs: every file that a user names is opened here, so that no read waits or goes on for ever.

A regular file may have as many bytes as its kind of content allows. A pipe or a terminal is read where the
content is text, up to the same number of bytes; a named pipe has a time limit. Other devices are refused.
Links are followed. Knows descriptors; does not know contents.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO

from ..errors import TraceError
from .read_files import note_input

_PATIENCE = 10.0  # seconds until a program has to open a named pipe for writing
_SILENCE = 60.0  # seconds between two writes to a named pipe
_NULL = 1, 3  # major and minor number of /dev/null on Linux


def open_input(path: str | Path, largest: int, *, regular: bool = False) -> BinaryIO:
    """Return an input, open for reading at most ``largest`` bytes; ``regular`` refuses pipes and terminals.

    Raises OSError, and TraceError for a larger file, for a device, and, while reading, for a named pipe that
    no program opens within 10 seconds, or writes to within 60.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)  # never waits
    except ValueError:  # a NUL in the name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    try:
        status = os.fstat(descriptor)
        kind = _kind(status, descriptor)
        if kind != "a regular file" and (regular or kind == "a device"):
            expected = "a regular file" if regular else "a file or a pipe"
            raise TraceError(f"expected {expected}, given {kind}").named(path)
        if status.st_size > largest:
            raise _too_large(path, largest)
        note_input(descriptor)
        if regular:
            return open(descriptor, "rb")
        is_named_pipe = kind == "a pipe" and os.path.exists(os.path.realpath(path))
        return io.BufferedReader(_Stream(descriptor, path, largest, has_time_limit=is_named_pipe))
    except BaseException:
        os.close(descriptor)
        raise


def _kind(status: os.stat_result, descriptor: int) -> str:
    """Return what a descriptor refers to; raises OSError for a folder."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISREG(mode):
        return "a regular file"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "a pipe"
    if os.isatty(descriptor):
        return "a terminal"
    return "an empty device" if (os.major(status.st_rdev), os.minor(status.st_rdev)) == _NULL else "a device"


def _too_large(path: str | Path, largest: int) -> TraceError:
    return TraceError(f"more than {largest:,} bytes").named(path)


class _Stream(io.RawIOBase):
    """The bytes of a file whose size may be unknown."""

    def __init__(self, descriptor: int, path: str | Path, largest: int, *, has_time_limit: bool) -> None:
        self._descriptor, self._path, self._largest, self._read = descriptor, path, largest, 0
        self._limit = _PATIENCE if has_time_limit else None
        if not has_time_limit:
            os.set_blocking(descriptor, True)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._limit is not None:
            self._wait(self._limit)
            self._limit = _SILENCE
        size = os.readv(self._descriptor, [buffer])
        self._read += size
        if self._read > self._largest:
            raise _too_large(self._path, self._largest)
        return size

    def _wait(self, seconds: float) -> None:
        """Wait for bytes or the end of a named pipe."""
        ready = select.poll()
        ready.register(self._descriptor, select.POLLIN)
        if not ready.poll(1000 * seconds):
            what = "opened for writing" if self._limit == _PATIENCE else "written to"
            raise TraceError(f"a named pipe that no program has {what} within {seconds:g} s").named(
                self._path
            )
