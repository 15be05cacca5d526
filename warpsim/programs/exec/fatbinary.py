"""Fat binaries: the PTX and SASS that nvcc puts into a program, in containers of several entries.

    wrapper     u32 magic, u32 version, u64 address of the container, u64 address of those of the objects that
                were linked (version 2), 0 behind the last; what __cudaRegisterFatBinary gets
    container   u32 magic, u16 version, u16 bytes of the header, u64 bytes of the entries
    entry       u16 kind, u16, u32 bytes of the header, u64 bytes of the payload, ... (measured)

PTX is plain, LZ4 or zstd. Knows bytes; does not know modules or clients.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from ...base.errors import WarpsimError

WRAPPER_MAGIC = 0x4662_43B1
MAGIC = 0xBA55_ED50
_LTO_MAGIC = 0x7F4E43ED  # of NVVM IR, as nvrtcGetLTOIR gives it
WRAPPER_BYTES, HEADER_BYTES = 24, 16
_PTX = 1
_LZ4, _ZSTD = 0x2000, 0x8000  # of an entry's flags
_LEAST_ENTRY = 64  # bytes of an entry's header
_MOST = 1 << 30  # bytes of unpacked PTX


class FatBinaryError(WarpsimError):
    """Bytes that are not a fat binary, or PTX that cannot be unpacked."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry: ``chip`` is the number of its target, 80 for sm_80; ``content`` may be packed."""

    ptx: bool
    chip: int
    flags: int
    content: bytes
    unpacked_bytes: int

    def text(self) -> bytes:
        """Return the PTX. Raises FatBinaryError."""
        try:
            return self._unpack().rstrip(b"\0")
        except FatBinaryError:
            raise
        except Exception as error:  # zstandard and lz4 have kinds of their own
            raise FatBinaryError(f"its PTX cannot be unpacked: {error}") from None

    def _unpack(self) -> bytes:
        if self.flags & _ZSTD:
            return _unpacked_zstd(self.content, self.unpacked_bytes)
        return _unpacked_lz4(self.content, self.unpacked_bytes) if self.flags & _LZ4 else self.content


def container_bytes(header: bytes) -> int:
    """Return the bytes of a container, header included, from its first 16. Raises FatBinaryError."""
    magic, _, size, entries = struct.unpack_from("<IHHQ", header.ljust(HEADER_BYTES, b"\0"))
    if magic == _LTO_MAGIC:
        raise FatBinaryError("it is code for link-time optimisation: compile to PTX")
    if magic != MAGIC:
        raise FatBinaryError(f"no fat binary begins with {magic:#x}")
    return int(size + entries)


def containers(content: bytes) -> Iterator[bytes]:
    """Yield the containers of bytes that have one behind the other. Raises FatBinaryError."""
    place = 0
    if not content:
        raise FatBinaryError("it has no bytes")
    while place < len(content):
        size = container_bytes(content[place : place + HEADER_BYTES])
        if size < HEADER_BYTES:
            raise FatBinaryError(f"its container has {size} bytes, header included")
        yield content[place : place + size]
        place += size


def entries_of(content: bytes) -> Iterator[Entry]:
    """Yield the entries of a container. Raises FatBinaryError."""
    total = container_bytes(content)
    place = struct.unpack_from("<H", content.ljust(HEADER_BYTES, b"\0"), 6)[0]
    while place + _LEAST_ENTRY <= min(total, len(content)):
        kind, header = struct.unpack_from("<HxxI", content, place)
        size, packed = struct.unpack_from("<QI", content, place + 8)
        chip = struct.unpack_from("<I", content, place + 28)[0]
        flags, unpacked = struct.unpack_from("<Q8xQ", content, place + 40)
        if header < _LEAST_ENTRY or place + header + size > len(content):
            raise FatBinaryError(f"the entry at byte {place} leaves its container of {len(content)} bytes")
        first = place + header
        compressed = flags & (_LZ4 | _ZSTD)
        payload = content[first : first + (packed if compressed and packed else size)]
        yield Entry(ptx=kind == _PTX, chip=chip, flags=flags, content=payload, unpacked_bytes=unpacked)
        place = first + size


def best_ptx(entries: list[Entry], chip: int) -> Entry | None:
    """Return the PTX of the highest chip that is not above the given number; None where there is none."""
    fitting = [entry for entry in entries if entry.ptx and entry.chip <= chip]
    return max(fitting, key=lambda entry: entry.chip, default=None)


def _unpacked_zstd(content: bytes, size: int) -> bytes:
    limit = _checked(size)
    try:
        library = import_module("compression.zstd")  # of Python from 3.14 on
    except ImportError:
        library = None
    if library is not None:
        return bytes(library.decompress(content))
    found = _needed("zstandard", "zstd")
    return bytes(found.ZstdDecompressor().decompress(content, max_output_size=limit))


def _unpacked_lz4(content: bytes, size: int) -> bytes:
    return bytes(_needed("lz4.block", "LZ4").decompress(content, uncompressed_size=_checked(size)))


def _checked(size: int) -> int:
    if not 0 < size <= _MOST:
        raise FatBinaryError(f"PTX of {size} bytes: at most {_MOST}")
    return size


def _needed(module: str, what: str):  # type: ignore[no-untyped-def]
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise FatBinaryError(
            f"the program's PTX is packed with {what}: install warpsim[exec], which brings {package}, or "
            "compile with nvcc -Xfatbin --compress-mode=none (nvcc 12: --no-compress)"
        ) from None
