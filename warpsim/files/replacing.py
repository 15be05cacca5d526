"""Writing files whole or not at all, under a temporary name first.

What is replaced keeps its permissions, and a symbolic link stays one: the file that it leads to is replaced.
Temporary names begin with ".warpsim-" and end in ".partial"; no two are the same, in any thread or process.
Does not know what is written.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from secrets import token_hex

from .inputs import check_output

__all__ = ["replacing", "together"]

_Written = list[tuple[Path, Path]]  # under the temporary name, and where it goes
_waiting: ContextVar[_Written | None] = ContextVar("_waiting", default=None)


@contextmanager
def together() -> Iterator[None]:
    """A block whose files take their places at its end, if it does not raise: all of them, or none.

    Nothing is replaced before everything has been written, so that a full disk leaves all files as they were.
    Raises OSError. Blocks in it are part of it.
    """
    if _waiting.get() is not None:
        yield
        return
    written: _Written = []
    token = _waiting.set(written)
    try:
        yield
        for temporary, final in written:
            _keep_mode(temporary, final)
        for temporary, final in written:
            temporary.replace(final)
    finally:
        _waiting.reset(token)
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside a file, which takes its place if the block does not raise.

    So files are written whole or not at all. Raises OSError, and TraceError where the file is an input of a
    command line.
    """
    with together():
        final = _place(path)
        temporary = final.with_name(f".warpsim-{os.getpid()}-{token_hex(8)}.partial")
        try:
            yield temporary
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        waiting = _waiting.get()
        assert waiting is not None, "the block has been left in another context"
        waiting.append((temporary, final))


def _place(path: Path) -> Path:
    """The file to be written, at the end of symbolic links. Raises OSError where there can be none."""
    check_output(path)
    final = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(final.stat().st_mode):  # a loop of links or a name too long raises here
            raise OSError(errno.EINVAL, "not a regular file", str(path))
    return final


def _keep_mode(temporary: Path, final: Path) -> None:
    with suppress(FileNotFoundError):
        temporary.chmod(stat.S_IMODE(final.stat().st_mode))
