"""A copy of the checkout in which one file at a time is changed, so that subprocesses see the change too.

Times of files are kept: bytecode and Numba's cache stay good for what has not changed. Folders that no mutant
changes are links.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .mutant import ROOT, Mutant

_COPIED = ("warpsim", "tests")  # tests find the checkout by their own paths
_LINKED = ("tools", "traces", "pyproject.toml", "README.md")


def copy_tree(folder: Path) -> None:
    """Fill an empty folder with the checkout."""
    for name in _COPIED:
        shutil.copytree(ROOT / name, folder / name)
    for name in _LINKED:
        (folder / name).symlink_to(ROOT / name)


@contextmanager
def changed(folder: Path, mutant: Mutant) -> Iterator[None]:
    """Yield the copy has the mutant's line; afterwards the file is as it was, its times too. Raises Stale."""
    path = folder / mutant.file
    content, times = path.read_bytes(), path.stat()
    path.write_text(mutant.applied(content.decode()), encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
