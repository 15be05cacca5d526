"""``.npz``: the canonical file of a vector set, a member for each array, and the manifest as a string.

``numpy.load`` opens it, ``json.loads(str(archive["manifest"]))`` reads the manifest. Sets of any size are
read in parts: the members are unpacked side by side, a few megabytes at a time.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ...errors import TraceError
from ...files.archives import array_header, array_members, open_archive, unreadable, write_arrays
from ..sets import PART_BYTES, VectorSet
from .manifest import Manifest, manifest_from, manifest_of

MANIFEST = "manifest"
LARGEST_MANIFEST = 1 << 26  # bytes
COMPRESSED_BYTES = 1 << 26  # larger sets are stored uncompressed: compressing takes longer than computing


@dataclass(frozen=True, kw_only=True)
class NpzFormat:
    """The reader and writer of ``.npz`` files."""

    name: str = "npz"
    suffixes: tuple[str, ...] = (".npz",)
    summary: str = "NumPy archive, the canonical form"

    def write(self, path: Path, vectors: VectorSet) -> None:
        """Write a set atomically."""
        arrays = {name: np.ascontiguousarray(array) for name, array in vectors.arrays().items()}
        manifest = np.array(json.dumps(manifest_of(vectors)))
        size = sum(array.nbytes for array in arrays.values())
        write_arrays(path, {MANIFEST: manifest, **arrays}, compressed=size <= COMPRESSED_BYTES)

    def read(self, path: Path) -> VectorSet:
        """Return the set in a file; raises TraceError, OSError."""
        with opened(path) as source:
            source.manifest.check_size()
            (vectors,) = source.parts(source.manifest.cases)
        return vectors

    def parts(self, path: Path) -> Iterator[VectorSet]:
        """Yield the set in a file in parts, without ever holding the whole; raises TraceError, OSError."""
        with opened(path) as source:
            yield from source.parts()


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """An open set: its manifest, and its arrays as streams that stand at their first element."""

    manifest: Manifest
    streams: dict[str, IO[bytes]]

    @property
    def cases_a_part(self) -> int:
        """Number of cases in some megabytes."""
        size = sum(entry.nbytes for entry in self.manifest.arrays.values()) // self.manifest.cases
        return max(1, PART_BYTES // size)

    def parts(self, cases: int | None = None) -> Iterator[VectorSet]:
        """Yield the set in parts of so many cases, in order; the hashes are compared after the last part.

        Raises TraceError.
        """
        step = cases or self.cases_a_part
        hashes = {name: hashlib.sha256() for name in self.streams}
        for start in range(0, self.manifest.cases, step):
            count = min(step, self.manifest.cases - start)
            arrays = {name: self._next(name, count) for name in self.streams}
            for name, array in arrays.items():
                hashes[name].update(array.data)
            yield self.manifest.assemble(arrays, start)
        for name, digest in hashes.items():
            self.manifest.check_hash(name, digest.hexdigest())

    def _next(self, name: str, count: int) -> npt.NDArray[Any]:
        """Return the next elements of an array along its first axis."""
        entry = self.manifest.arrays[name]
        array = np.empty((count, *entry.shape[1:]), entry.dtype.newbyteorder("<"))
        rest = memoryview(array.data).cast("B")
        with _unpacking():
            while len(rest):
                size = self.streams[name].readinto(rest)  # type: ignore[attr-defined]
                if not size:
                    raise TraceError(f"array {name!r} ends early")
                rest = rest[size:]
        return array.astype(entry.dtype, copy=False)


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Yield the set in an ``.npz`` file, to be read in parts, its headers checked. Raises TraceError,
    OSError.
    """
    with ExitStack() as stack:
        with _unpacking():
            archive = stack.enter_context(open_archive(path, sys.maxsize))
            members = _members(archive)
            manifest = manifest_from(_manifest_text(archive, members))
            if missing := manifest.arrays.keys() ^ (members.keys() - {MANIFEST}):
                name = min(missing)
                raise TraceError(f"array {name!r} is in the {_where(name in members)}")
            streams = {name: stack.enter_context(archive.open(members[name])) for name in manifest.arrays}
            for name, stream in streams.items():
                _check_stream(stream, members[name].file_size, manifest, name)
        yield Source(manifest=manifest, streams=streams)


def read_manifest(path: Path) -> str:
    """Return the text of a file's manifest; raises TraceError, OSError."""
    with _unpacking(), open_archive(path, sys.maxsize) as archive:
        return _manifest_text(archive, _members(archive))


def is_set(path: Path) -> bool:
    """Return whether a file is an ``.npz`` file with the manifest of a vector set."""
    try:
        with _unpacking(), open_archive(path, sys.maxsize) as archive:
            return f"{MANIFEST}.npy" in archive.namelist()
    except (OSError, TraceError):
        return False


def _where(in_file: bool) -> str:
    return "file, but not in the manifest" if in_file else "manifest, but not in the file"


@contextmanager
def _unpacking() -> Iterator[None]:
    """Convert, in the block, what zipfile, zlib and NumPy raise for a broken file to a TraceError."""
    try:
        yield
    except TraceError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # of the file, not its content
            raise
        raise unreadable(error, "npz") from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members = array_members(archive)
    if MANIFEST not in members:
        raise TraceError("an .npz file without a manifest is no vector set")
    return members


def _manifest_text(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> str:
    member = members[MANIFEST]
    if member.file_size > LARGEST_MANIFEST:
        raise TraceError(f"the manifest has {member.file_size:,} bytes, more than {LARGEST_MANIFEST:,}")
    with archive.open(member) as file:
        shape, _, _ = array_header(file, member.file_size, "the manifest", "U")
    if shape:
        raise TraceError(f"the manifest has shape {shape}, not that of one string")
    with archive.open(member) as file:
        return str(np.lib.format.read_array(file, allow_pickle=False))


def _check_stream(stream: IO[bytes], size: int, manifest: Manifest, name: str) -> None:
    shape, by_column, dtype = array_header(stream, size, f"array {name!r}", "ui")
    if (dtype, shape) != manifest.arrays[name].spec:
        entry = manifest.arrays[name]
        raise TraceError(
            f"array {name!r} is {dtype} {shape}, but the manifest says {entry.dtype} {entry.shape}"
        )
    if by_column and len(shape) > 1:
        raise TraceError(f"array {name!r} is stored column by column; vector sets go row by row")
