"""Files that are kept for the next process: in the user's cache, each behind the digest of its content.

A file that is damaged or cannot be read is as good as none, and where none can be written nothing is kept.
The oldest go when all together take too much. Knows names and bytes; does not know what they are.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..folders import temporary_folder, user_cache

_DIGEST_BYTES = hashlib.sha256().digest_size


class KeptFiles:
    """Files of one folder, by name; ``most`` is the number of bytes that they may take together."""

    def __init__(self, folder: str, most: int) -> None:
        self.folder, self.most = folder, most

    def find(self, name: str) -> bytes | None:
        """Return the content of a file, None where there is none or it is damaged."""
        try:
            content = (user_cache(self.folder) / name).read_bytes()
        except OSError:
            return None
        digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return content if hashlib.sha256(content).digest() == digest else None

    def any(self) -> bool:
        """Return whether any file is kept."""
        try:
            with os.scandir(user_cache(self.folder)) as files:
                return next(files, None) is not None
        except OSError:
            return False

    def keep(self, name: str, content: bytes) -> None:
        """Keep a file, if that is possible."""
        try:
            folder = user_cache(self.folder)
            self._make_room(folder, len(content))
            _place(folder / name, hashlib.sha256(content).digest() + content)
        except OSError:
            return

    def _make_room(self, folder: Path, size: int) -> None:
        """Remove the files that were kept first, until there is room for some bytes."""
        kept = [(status.st_mtime, status.st_size, file.path) for file, status in _statuses(folder)]
        total = sum(bytes_ for _, bytes_, _ in kept) + size
        for _, bytes_, path in sorted(kept):
            if total <= self.most:
                break
            os.unlink(path)
            total -= bytes_


def _place(file: Path, content: bytes) -> None:
    """Write a file that is whole from its first moment; raises OSError, and leaves nothing then."""
    with temporary_folder(file.parent) as folder:
        written = folder / file.name
        written.touch(mode=0o600)
        written.write_bytes(content)
        os.replace(written, file)


def _statuses(folder: Path) -> list[tuple[os.DirEntry[str], os.stat_result]]:
    with os.scandir(folder) as files:
        return [(file, file.stat()) for file in files if file.is_file(follow_symlinks=False)]
