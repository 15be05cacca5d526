"""Named pipes as inputs: opening one waits until a program opens it for writing, and here not for ever.

Knows how to open; does not read. What a program that has opened the pipe then takes to write is its own.
"""

from __future__ import annotations

import os
import stat
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from pathlib import Path
from threading import Thread

from ..errors import TraceError

_PATIENCE = 10.0  # seconds until a program has to write to it


def open_input(path: str | Path, flags: int) -> int:
    """Return a descriptor of an input: an ``opener`` of ``open``. Raises OSError.

    Raises TraceError for a named pipe that no program opens for writing within 10 seconds.
    """
    if not _is_named_pipe(path):
        return os.open(path, flags)
    opened = Future[int]()
    Thread(target=_open, args=(opened, path, flags), daemon=True).start()
    try:
        return opened.result(_PATIENCE)
    except TooLate:
        _give_up(opened, path)
    raise TraceError(f"a named pipe that no program has opened for writing within {_PATIENCE:g} s").named(
        Path(path)
    )


def _is_named_pipe(path: str | Path) -> bool:
    """Return whether opening may wait: not for what a shell hands over, which has no name in any folder."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode) and os.path.exists(os.path.realpath(path))
    except (OSError, ValueError):  # what is wrong, opening says
        return False


def _open(opened: Future[int], path: str | Path, flags: int) -> None:
    try:
        opened.set_result(os.open(path, flags))
    except BaseException as error:
        opened.set_exception(error)


def _give_up(opened: Future[int], path: str | Path) -> None:
    """End the thread that waits, by being for a moment the program that it waits for."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        os.close(opened.result(_PATIENCE))
