"""Files: read text and ``.npz`` archives without trusting them, write archives atomically.

Knows sizes, headers and dtypes; does not know what the arrays mean.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from ..errors import Location, TraceError
from .named_pipes import open_input
from .read_files import note_input
from .replacing import replacing

Arrays = dict[str, npt.NDArray[Any]]

LARGEST_TEXT = 1 << 26  # bytes
LARGEST_ARCHIVE = 1 << 28  # bytes of all arrays together, unpacked
LARGEST_ARRAY = 1 << 32  # bytes of an .npy file
MOST_MEMBERS = 1 << 12  # arrays of an archive: each takes half a millisecond, however small

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
    content = stream.read(LARGEST_TEXT + 1)
    return _limited(content, "<stdin>").decode("utf-8", errors="surrogateescape")


def read_content(path: Path) -> bytes:
    """Return the bytes of a file, which may be an endless device.

    Raises TraceError for more than 64 MiB and for a pipe that nothing is written to, OSError.
    """
    with open(path, "rb", opener=open_input) as file:
        note_input(file)
        return _limited(file.read(LARGEST_TEXT + 1), str(path))


def _limited(content: bytes, name: str) -> bytes:
    if len(content) > LARGEST_TEXT:
        raise TraceError(f"more than {LARGEST_TEXT:,} bytes of text", Location(name, 1))
    return content


def read_arrays(path: Path, kinds: str = "ub") -> Arrays:
    """Return the arrays of an ``.npz`` file: unsigned integers or bools, never pickles, at most 256 MiB
    unpacked.

    ``kinds`` may admit other dtypes. The headers are checked before anything is unpacked. Raises TraceError.
    """
    if not os.path.isfile(path):  # a name that is too long raises no error here
        raise TraceError("no such file").named(path)
    try:
        with warnings.catch_warnings():  # NumPy warns of headers written by Python 2
            warnings.simplefilter("error")
            with path.open("rb") as file, zipfile.ZipFile(file) as archive:
                note_input(file)
                return _read_members(archive, kinds)
    except TraceError as error:
        raise error.named(path) from None
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds for a broken file
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise TraceError(f"cannot be read as an .npz file: {reason}").named(path) from None


_UNREADABLE, _HEAD = b"'<f1'", 128


def read_array(path: Path) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` file, of any dtype without pickles, at most 4 GiB.

    Raises TraceError, OSError.
    """
    if not is_regular(path):
        raise TraceError("it is no regular file").named(path)
    with path.open("rb") as file:
        note_input(file)
        try:
            source = _check_array_file(file, "the array")
            array: npt.NDArray[Any] = np.lib.format.read_array(
                source, allow_pickle=False, max_header_size=4096
            )
        except TraceError as error:
            raise error.named(path) from None
        except Exception as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise TraceError(f"cannot be read as an .npy file: {reason}").named(path) from None
    return array


def is_regular(path: Path) -> bool:
    """Return whether opening a file ends, as that of a pipe may not. Raises OSError where there is none."""
    return stat.S_ISREG(path.stat().st_mode)


def _check_array_file(file: IO[bytes], what: str) -> IO[bytes]:
    """Return the file at its beginning. Raise TraceError unless a header states the size that the file holds,
    so that no header fills the memory.
    """
    status = os.fstat(file.fileno())
    if status.st_size > LARGEST_ARRAY:
        raise TraceError(f"{what} has {status.st_size:,} bytes, more than {LARGEST_ARRAY:,}")
    if _UNREADABLE in file.read(_HEAD):  # what NumPy writes of ml_dtypes.float8_e5m2, and does not read
        file.seek(0)
        file = io.BytesIO(file.read().replace(_UNREADABLE, b"'|V1'", 1))
    file.seek(0)
    _, _, dtype = array_header(file, status.st_size, what, "")
    if dtype.hasobject:
        raise TraceError(f"{what} has dtype {dtype}: pickled objects are not read")
    file.seek(0)
    return file


def _read_members(archive: zipfile.ZipFile, kinds: str) -> Arrays:
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if size > LARGEST_ARCHIVE:
        raise TraceError(f"{size:,} bytes unpacked, more than {LARGEST_ARCHIVE:,}")
    if len(members) > MOST_MEMBERS:
        raise TraceError(f"{len(members):,} arrays, more than {MOST_MEMBERS:,}")
    arrays: Arrays = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename:
            raise TraceError(f"member {name!r} is not an array (.npy)")
        if name in arrays:
            raise TraceError(f"array {name!r} is there twice")
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


def write_arrays(path: Path, arrays: Arrays, *, compressed: bool = True) -> None:
    """Write an ``.npz`` file atomically: whole or not at all. Raises OSError.

    The same arrays always give the same bytes.
    """
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
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


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file without their ends; bytes that are not UTF-8 as in read_text.

    Raises TraceError for a line of more than 64 MiB and for a pipe that nothing is written to, OSError.
    """
    with open(path, encoding="utf-8", errors="surrogateescape", opener=open_input) as file:
        note_input(file)
        number = 0
        while line := file.readline(LARGEST_TEXT + 1):
            number += 1
            if len(line) > LARGEST_TEXT:
                raise TraceError(
                    f"a line of more than {LARGEST_TEXT:,} characters", Location(str(path), number)
                )
            yield line.removesuffix("\n")
