"""The files that were read, so that no output replaces an input by mistake.

Only a block that asks for it checks this: on a command line, ``-o`` over an input is a mistake. A program
that reads a file and then writes it does so on purpose. Knows identities of files, under any name; does not
know what is in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import TraceError

__all__ = ["check_output", "inputs_kept", "note_input"]

_seen: set[tuple[int, int]] | None = None  # device and inode of files that were read; None: not recorded


@contextmanager
def inputs_kept() -> Iterator[None]:
    """Refuse, in a block, outputs that replace a file that was read in it, under any name."""
    global _seen
    before, _seen = _seen, set()
    try:
        yield
    finally:
        _seen = before


def note_input(source: Any) -> None:
    """Record a file that is read, open or by its path. An input without a file, as text in memory, does not
    count.
    """
    if _seen is None:
        return
    with suppress(OSError, ValueError, AttributeError):
        status = os.stat(source.fileno() if hasattr(source, "fileno") else source)
        _seen.add((status.st_dev, status.st_ino))


def check_output(path: Path) -> None:
    """Raise TraceError where writing a file would replace a file that was read."""
    if not _seen:
        return
    with suppress(OSError, ValueError):
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in _seen and not os.path.isdir(path):
            raise TraceError(f"{path} is one of the inputs, which this would replace: write to another file")
