"""Files: read text and ``.npz`` archives without trusting them, write archives atomically.

Knows sizes, headers and dtypes; does not know what the arrays mean.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..errors import Location, TraceError
from .opening import open_input
from .read_files import note_input
from .replacing import replacing

Arrays = dict[str, npt.NDArray[Any]]

LARGEST_TEXT = 1 << 26  # bytes
LARGEST_LOG = 1 << 34  # bytes of a text that is read line by line
LARGEST_ARCHIVE = 1 << 28  # bytes of all arrays together, unpacked
LARGEST_OPERAND = 1 << 30  # bytes of an .npy file that is converted as a whole
LARGEST_ARRAY = 1 << 32  # bytes of an .npy file for the memory of a device
MOST_MEMBERS = 1 << 12  # arrays of an archive: each takes half a millisecond, however small
_LARGEST_DIRECTORY = MOST_MEMBERS << 8  # bytes of the directory of a zip file
_HEAD = 1 << 12  # bytes in which the header of an array lies
_UNREADABLE = b"'<f1'"  # what NumPy writes of ml_dtypes.float8_e5m2, and does not read

_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_KINDS = {"u": "unsigned integers", "b": "bool", "i": "integers", "f": "floats", "U": "text"}


def read_text(path: Path) -> str:
    """Return the text of a file; bytes that are not UTF-8 become lone surrogates, which a parser reports.

    Raises TraceError for more than 64 MiB, OSError.
    """
    return read_content(path).decode("utf-8", errors="surrogateescape")


def read_stdin() -> str:
    """Return the text on stdin, decoded as read_text decodes a file."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise TraceError("stdin is closed", Location("<stdin>", 1))
    note_input(sys.stdin)
    content: bytes = stream.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise TraceError(f"more than {LARGEST_TEXT:,} bytes of text", Location("<stdin>", 1))
    return content.decode("utf-8", errors="surrogateescape")


def read_content(path: Path) -> bytes:
    """Return the bytes of a file or pipe. Raises TraceError for more than 64 MiB, OSError."""
    with open_input(path, LARGEST_TEXT) as file:
        return file.read()


def check_text_file(path: str | Path) -> None:
    """Raise TraceError unless a text that another program reads is a regular file of at most 64 MiB.

    Raises OSError.
    """
    open_input(path, LARGEST_TEXT, regular=True).close()


def read_arrays(path: Path, kinds: str = "ub") -> Arrays:
    """Return the arrays of an ``.npz`` file: unsigned integers or bools, never pickles, at most 256 MiB
    unpacked.

    ``kinds`` may admit other dtypes. The headers are checked before anything is unpacked. Raises TraceError.
    """
    try:
        with open_archive(path, LARGEST_ARCHIVE + MOST_MEMBERS * _HEAD) as archive, warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of headers written by Python 2
            return _read_members(archive, kinds)
    except (FileNotFoundError, IsADirectoryError):
        raise TraceError("no such file").named(path) from None
    except TraceError as error:
        raise error.named(path) from None
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds for a broken file
        raise unreadable(error, "npz").named(path) from None


def unreadable(error: Exception, kind: str) -> TraceError:
    """Return the error of a file that a library cannot read as arrays of that kind."""
    reason = str(error).partition("\n")[0] or type(error).__name__
    return TraceError(f"cannot be read as an .{kind} file: {reason}")


@contextmanager
def open_archive(path: Path, largest: int) -> Iterator[zipfile.ZipFile]:
    """Yield a zip file of at most ``largest`` bytes, its directory read. Raises TraceError, OSError, and what
    zipfile raises for a broken file.
    """
    with open_input(path, largest, regular=True) as file:
        bounded: Any = _Directory(file)
        with zipfile.ZipFile(bounded) as archive:
            bounded.read = file.read
            yield archive


class _Directory:
    """A file at the directory of a zip archive, which may claim any size and is read at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes; raises TraceError for more than a directory has."""
        if size > _LARGEST_DIRECTORY:
            raise TraceError(f"its directory claims {size:,} bytes, more than {_LARGEST_DIRECTORY:,}")
        return self._file.read(size)


def read_array(path: Path, largest: int = LARGEST_OPERAND) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` file, of any dtype without pickles, at most ``largest`` bytes.

    Raises TraceError, OSError.
    """
    with _array_file(path, largest) as (file, shape, by_column, dtype):
        array = np.fromfile(file, dtype, prod(shape))
        return array.reshape(shape[::-1]).T if by_column else array.reshape(shape)


def map_array(path: Path) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` file, mapped copy-on-write and not read. Raises TraceError, OSError."""
    with _array_file(path, sys.maxsize) as (file, shape, by_column, dtype):
        if not prod(shape):
            return np.empty(shape, dtype)
        return np.memmap(file, dtype, "c", file.tell(), shape, "F" if by_column else "C")


@contextmanager
def _array_file(path: Path, largest: int) -> Iterator[tuple[BinaryIO, tuple[int, ...], bool, np.dtype[Any]]]:
    """Yield an ``.npy`` file at its elements, and its header, which states the size that the file holds.

    What the block raises becomes a TraceError.
    """
    with open_input(path, largest, regular=True) as file:
        try:
            head = file.read(_HEAD)
            beginning = io.BytesIO(head.replace(_UNREADABLE, b"'|V1'", 1))
            size = os.fstat(file.fileno()).st_size
            shape, by_column, dtype = array_header(beginning, size, "the array", "")
            if dtype.hasobject:
                raise TraceError(f"the array has dtype {dtype}: pickled objects are not read")
            file.seek(beginning.tell())
            yield file, shape, by_column, dtype
        except TraceError as error:
            raise error.named(path) from None
        except Exception as error:
            raise unreadable(error, "npy").named(path) from None


def array_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive by the names of their arrays. Raises TraceError."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name == member.filename:
            raise TraceError(f"member {name!r} is not an array (.npy)")
        if name in members:
            raise TraceError(f"array {name!r} is there twice")
        check_printable(name)
        members[name] = member
    return members


def check_printable(name: str) -> None:
    """Raise TraceError for the name of an array that breaks lines, or moves the cursor of a terminal."""
    if not name.isprintable():
        raise TraceError(f"array {name[:40]!r}: expected a name of printable characters")


def _read_members(archive: zipfile.ZipFile, kinds: str) -> Arrays:
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if size > LARGEST_ARCHIVE:
        raise TraceError(f"{size:,} bytes unpacked, more than {LARGEST_ARCHIVE:,}")
    if len(members) > MOST_MEMBERS:
        raise TraceError(f"{len(members):,} arrays, more than {MOST_MEMBERS:,}")
    arrays: Arrays = {}
    for name, member in array_members(archive).items():
        with archive.open(member) as file:
            array_header(file, member.file_size, f"array {name!r}", kinds)
        with archive.open(member) as file:
            arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


def array_header(
    file: IO[bytes], size: int, what: str, kinds: str = "ub"
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first, and dtype of the array in a file of ``size`` bytes at its
    data.

    The dtype is safe, and the shape fits the bytes that follow; without ``kinds`` any dtype is allowed.
    Raises TraceError.
    """
    version = np.lib.format.read_magic(file)
    if version not in _HEADER_READERS:
        raise TraceError(f"{what} has .npy version {version[0]}.{version[1]}, not 1.0 or 2.0")
    shape, by_column, dtype = _HEADER_READERS[version](file)
    if kinds and dtype.kind not in kinds:
        names = " or ".join(_KINDS[kind] for kind in kinds)
        raise TraceError(f"{what} has dtype {dtype}, not {names}")
    claimed = prod(shape) * dtype.itemsize
    held = size - file.tell()
    if claimed != held:
        raise TraceError(f"{what} claims {claimed:,} bytes, but has {held:,}")
    return shape, by_column, dtype


def text_of(array: npt.NDArray[Any], what: str) -> str:
    """Return the one string of an array of text.

    NumPy takes any 32 bits for a character; the interpreter fails on those that Unicode does not have.
    Raises TraceError.
    """
    codes = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    wrong = np.flatnonzero((codes > sys.maxunicode) | (codes >> 11 == 0xD800 >> 11))
    if len(wrong):
        raise TraceError(f"{what} is no text: character {wrong[0]} has code {int(codes[wrong[0]]):#x}")
    return str(array)


class Streamed(NamedTuple):
    """An array that is written in pieces along its first axis, and never whole in memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Iterable[npt.NDArray[Any]]

    def write(self, file: Any) -> None:
        """Write it as an ``.npy`` file, as NumPy does."""
        descr = np.lib.format.dtype_to_descr(self.dtype)
        header = {"descr": descr, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in self.blocks:
            file.write(np.ascontiguousarray(block, self.dtype).data)


def write_arrays(
    path: Path, arrays: Mapping[str, npt.NDArray[Any] | Streamed], *, compressed: bool = True
) -> None:
    """Write an ``.npz`` file atomically: whole or not at all. Raises OSError.

    The same arrays always give the same bytes.
    """
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if isinstance(array, Streamed):
                    array.write(member)
                else:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an ``.npy`` file atomically: whole or not at all. Raises OSError."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        # NumPy counts the elements that did not fit a file, and does not say why
        plain = cast(IO[bytes], SimpleNamespace(write=file.write))
        np.lib.format.write_array(plain, np.asanyarray(array), allow_pickle=False)


# File names may be any bytes; bytes that are not text arrive here as lone surrogates.
_TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file atomically, with a line feed after every line. Raises OSError."""
    with replacing(path) as temporary, temporary.open("w", **_TEXT) as file:
        file.writelines(f"{line}\n" for line in lines)


def write_content(path: Path, content: bytes) -> None:
    """Write a file atomically: whole or not at all. Raises OSError."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(content)


def read_lines(path: Path, largest: int = LARGEST_LOG) -> Iterator[str]:
    """Yield the lines of a text file without their ends; bytes that are not UTF-8 as in read_text.

    Raises TraceError for more than 16 GiB or ``largest`` bytes and for a line of more than 64 MiB, OSError.
    """
    with TextIOWrapper(open_input(path, largest), encoding="utf-8", errors="surrogateescape") as file:
        number = 0
        while line := file.readline(LARGEST_TEXT + 1):
            number += 1
            if len(line) > LARGEST_TEXT:
                raise TraceError(
                    f"a line of more than {LARGEST_TEXT:,} characters", Location(str(path), number)
                )
            yield line.removesuffix("\n")
