"""Which files have been read, so that no output replaces one of them by mistake.

Only a block that asks for it looks: a command line, where ``-o`` over an input is a slip. A program that
reads a file and writes it again means what it does. Knows identities of files, whatever they are called; does
not know what is in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import TraceError

__all__ = ["check_output", "inputs_kept", "note_input"]

_seen: set[tuple[int, int]] | None = None  # device and inode of files that were read; None: nobody asked


@contextmanager
def inputs_kept() -> Iterator[None]:
    """A block in which no output may replace a file that has been read in it, under whatever name."""
    global _seen
    before, _seen = _seen, set()
    try:
        yield
    finally:
        _seen = before


def note_input(source: Any) -> None:
    """A file that is read: an open one, or its path. What has no file, as text in memory, does not count."""
    if _seen is None:
        return
    with suppress(OSError, ValueError, AttributeError):
        status = os.stat(source.fileno() if hasattr(source, "fileno") else source)
        _seen.add((status.st_dev, status.st_ino))


def check_output(path: Path) -> None:
    """Raise TraceError where writing a file would replace one that has been read."""
    if not _seen:
        return
    with suppress(OSError, ValueError):
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in _seen and not os.path.isdir(path):
            raise TraceError(f"{path} is one of the inputs, which this would replace: write to another file")
