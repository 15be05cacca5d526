"""``.npz``: the canonical file of a vector set, a member for each array, and the manifest as a string.

``numpy.load`` opens it, ``json.loads(str(archive["manifest"]))`` reads the manifest. Sets of any size are
read in parts: the members are unpacked side by side, a few megabytes at a time.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from ....base.errors import OperandError, TraceError
from ....base.files.archives import (
    Streamed,
    array_header,
    array_members,
    open_archive,
    text_of,
    unreadable,
    write_arrays,
)
from ....isa.instruction import Instruction
from ..parted import Array, SetInParts, read_block
from ..sets import Spec, VectorSet, part_cases
from .manifest import Manifest, manifest_from, manifest_of

MANIFEST = "manifest"
LARGEST_MANIFEST = 1 << 28  # bytes
_REST = 1 << 20  # bytes of a manifest without labels, at most
_CHARACTER = np.dtype("U1").itemsize
COMPRESSED_BYTES = 1 << 26  # larger sets are stored uncompressed: compressing takes longer than computing


@dataclass(frozen=True, kw_only=True)
class NpzFormat:
    """The reader and writer of ``.npz`` files."""

    name: str = "npz"
    suffixes: tuple[str, ...] = (".npz",)
    summary: str = "NumPy archive, the canonical form"

    def write(self, path: Path, vectors: SetInParts) -> None:
        """Write a set atomically. Raises OperandError for labels that are too long together."""
        self.check_labels(vectors.labels, len(vectors))
        specs = vectors.specs()
        streams = {name: Streamed(*spec, vectors.blocks(name)) for name, spec in specs.items()}
        manifest = np.array(json.dumps(manifest_of(vectors)))
        size = sum(prod(shape) * dtype.itemsize for dtype, shape in specs.values())
        write_arrays(path, {MANIFEST: manifest, **streams}, compressed=size <= COMPRESSED_BYTES)

    def check_labels(self, labels: Sequence[str], cases: int) -> None:
        """Raise OperandError if ``cases`` labels do not fit into a manifest; these are the first of them."""
        size = _CHARACTER * sum(len(json.dumps(label)) + len(", ") for label in labels)
        if labels and size * (cases // len(labels)) > LARGEST_MANIFEST - _REST:
            raise OperandError(
                f"the labels of {cases:,} cases take {size * cases // len(labels):,} bytes: a set has "
                f"at most {LARGEST_MANIFEST - _REST:,}; make several, each with a seed of its own"
            )

    def read(self, path: Path) -> VectorSet:
        """Return the set in a file; raises TraceError, OSError."""
        found = self.in_parts(path)
        found.manifest.check_size()
        (vectors,) = found.parts(len(found))
        return vectors

    def in_parts(self, path: Path) -> NpzSet:
        """Return the set in a file, which is read in parts; raises TraceError, OSError."""
        with _unpacking(path), open_archive(path, sys.maxsize) as archive:
            members = _members(archive)
            manifest = manifest_from(_manifest_text(archive, members))
            if missing := manifest.arrays.keys() ^ (members.keys() - {MANIFEST}):
                name = min(missing)
                raise TraceError(f"array {name!r} is in the {_location_text(name in members)}")
            for name in manifest.arrays:
                _stream(archive, manifest, name).close()
        return NpzSet(path=path, manifest=manifest)


@dataclass(frozen=True, kw_only=True, eq=False)
class NpzSet:
    """A set in a file, of any size: its manifest is in memory, its arrays are read in parts."""

    path: Path
    manifest: Manifest

    def __len__(self) -> int:
        return self.manifest.cases

    @property
    def instruction(self) -> Instruction:
        """The instruction on its target."""
        return self.manifest.instruction

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What computed d."""
        return self.manifest.provenance

    @property
    def seed(self) -> int | None:
        """The seed of its cases."""
        return self.manifest.seed

    @property
    def title(self) -> str:
        """How the cases were chosen."""
        return self.manifest.title

    @property
    def labels(self) -> tuple[str, ...]:
        """A description for each case, or none."""
        return self.manifest.labels

    def constants(self) -> dict[str, int]:
        """Return the immediates that are the same in all cases."""
        return dict(self.manifest.immediates)

    def specs(self) -> dict[str, Spec]:
        """Return dtype and shape of every array, in the order of files."""
        return {name: entry.spec for name, entry in self.manifest.arrays.items()}

    def blocks(self, name: str, cases: int | None = None) -> Iterator[Array]:
        """Yield an array in pieces of so many cases; its hash is compared after the last. Raises TraceError,
        OSError.
        """
        for (block,) in self._read([name], cases or part_cases(self.specs())):
            yield block

    def parts(self, cases: int | None = None) -> Iterator[VectorSet]:
        """Yield the set in parts of so many cases; the hashes are compared after the last. Raises TraceError,
        OSError.
        """
        names, start = list(self.manifest.arrays), 0
        for blocks in self._read(names, cases or part_cases(self.specs())):
            with _unpacking(self.path):
                part = self.manifest.assemble(dict(zip(names, blocks, strict=True)), start)
            yield part
            start += len(part)

    def _read(self, names: list[str], step: int) -> Iterator[list[Array]]:
        """Yield the next elements of several arrays."""
        hashes = [hashlib.sha256() for _ in names]
        with ExitStack() as stack:
            with _unpacking(self.path):
                archive = stack.enter_context(open_archive(self.path, sys.maxsize))
                streams = [stack.enter_context(_stream(archive, self.manifest, name)) for name in names]
            for start in range(0, len(self), step):
                with _unpacking(self.path):
                    blocks = [
                        self._block(name, stream, min(step, len(self) - start))
                        for name, stream in zip(names, streams, strict=True)
                    ]
                for digest, block in zip(hashes, blocks, strict=True):
                    digest.update(block.data)
                yield blocks
        with _unpacking(self.path):
            for name, digest in zip(names, hashes, strict=True):
                self.manifest.check_hash(name, digest.hexdigest())

    def _block(self, name: str, stream: IO[bytes], count: int) -> Array:
        try:
            return read_block(stream, self.manifest.arrays[name].spec, count)
        except EOFError:
            raise TraceError(f"array {name!r} ends early") from None


def read_manifest(path: Path) -> str:
    """Return the text of a file's manifest; raises TraceError, OSError."""
    with _unpacking(path), open_archive(path, sys.maxsize) as archive:
        return _manifest_text(archive, _members(archive))


def is_set(path: Path) -> bool:
    """Return whether a file is an ``.npz`` file with the manifest of a vector set."""
    try:
        with _unpacking(path), open_archive(path, sys.maxsize) as archive:
            return f"{MANIFEST}.npy" in archive.namelist()
    except (OSError, TraceError):
        return False


def _location_text(in_file: bool) -> str:
    return "file, but not in the manifest" if in_file else "manifest, but not in the file"


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    """Convert, in the block, what zipfile, zlib and NumPy raise for a broken file to a TraceError."""
    try:
        yield
    except TraceError as error:
        raise error.named(path) from None
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # of the file, not its content
            raise
        raise unreadable(error, "npz").named(path) from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members = array_members(archive)
    if MANIFEST not in members:
        raise TraceError("an .npz file without a manifest is not a vector set")
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
        return text_of(np.lib.format.read_array(file, allow_pickle=False), "the manifest")


def _stream(archive: zipfile.ZipFile, manifest: Manifest, name: str) -> IO[bytes]:
    """Return an array of an archive at its first element, its header checked. Raises TraceError."""
    member = archive.getinfo(f"{name}.npy")
    stream, entry = archive.open(member), manifest.arrays[name]
    shape, by_column, dtype = array_header(stream, member.file_size, f"array {name!r}", "ui")
    if (dtype, shape) != entry.spec:
        raise TraceError(
            f"array {name!r} is {dtype} {shape}, but the manifest says {entry.dtype} {entry.shape}"
        )
    if by_column and len(shape) > 1:
        raise TraceError(f"array {name!r} is stored column by column; vector sets go row by row")
    return stream
