"""Files: reading text and ``.npz`` archives without trusting them, writing archives whole or not at all.

Knows sizes, headers and dtypes; does not know what the arrays mean.
"""

from __future__ import annotations

import errno
import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..errors import Location, TraceError

Arrays = dict[str, npt.NDArray[Any]]

LARGEST_TEXT = 1 << 26  # bytes
LARGEST_ARCHIVE = 1 << 28  # bytes of all arrays together, unpacked

_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_KINDS = {"u": "unsigned integers", "b": "bool", "i": "integers", "f": "floats", "U": "text"}


def read_text(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 become lone surrogates, for a parser to complain about.

    Raises TraceError for more than 64 MiB, OSError.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise TraceError(f"more than {LARGEST_TEXT:,} bytes of text", Location(str(path), 1))
    return content.decode("utf-8", errors="surrogateescape")


def read_arrays(path: Path, kinds: str = "ub") -> Arrays:
    """The arrays of an ``.npz`` file: unsigned integers or bools, never pickles, at most 256 MiB unpacked.

    ``kinds`` may admit other dtypes. What the headers claim is checked before anything is unpacked. Raises
    TraceError.
    """
    if not path.is_file():
        raise TraceError(f"{path}: no such file")
    try:
        with warnings.catch_warnings():  # NumPy warns of headers written by Python 2
            warnings.simplefilter("error")
            with zipfile.ZipFile(path) as archive:
                return _read_members(archive, path, kinds)
    except TraceError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds for what is broken
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise TraceError(f"{path}: cannot be read as an .npz file: {reason}") from None


def read_array(path: Path) -> npt.NDArray[Any]:
    """The array of an ``.npy`` file, of any dtype without pickles. Raises TraceError, OSError."""
    with path.open("rb") as file:
        try:
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False, max_header_size=4096)
        except Exception as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise TraceError(f"{path}: cannot be read as an .npy file: {reason}") from None
    return array


def _read_members(archive: zipfile.ZipFile, path: Path, kinds: str) -> Arrays:
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if size > LARGEST_ARCHIVE:
        raise TraceError(f"{path}: {size:,} bytes unpacked, more than {LARGEST_ARCHIVE:,}")
    arrays: Arrays = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename:
            raise TraceError(f"{path}: member {name!r} is not an array (.npy)")
        if name in arrays:
            raise TraceError(f"{path}: array {name!r} is there twice")
        with archive.open(member) as file:
            array_header(file, member.file_size, f"{path}: array {name!r}", kinds)
        with archive.open(member) as file:
            arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


def array_header(
    file: IO[bytes], size: int, what: str, kinds: str = "ub"
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and dtype of the array in a file of ``size`` bytes, now at its data.

    The dtype can be trusted, and the shape is that of the bytes that follow. Raises TraceError.
    """
    version = np.lib.format.read_magic(file)
    if version not in _HEADER_READERS:
        raise TraceError(f"{what} has .npy version {version[0]}.{version[1]}, not 1.0 or 2.0")
    shape, by_column, dtype = _HEADER_READERS[version](file)
    if dtype.kind not in kinds:
        names = " or ".join(_KINDS[kind] for kind in kinds)
        raise TraceError(f"{what} has dtype {dtype}, not {names}")
    claimed = prod(shape) * dtype.itemsize
    held = size - file.tell()
    if claimed != held:
        raise TraceError(f"{what} claims {claimed:,} bytes, but has {held:,}")
    return shape, by_column, dtype


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside a file, which takes its place if the block does not raise.

    So files are written whole or not at all. Raises OSError.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_arrays(path: Path, arrays: Arrays, *, compressed: bool = True) -> None:
    """Write an ``.npz`` file whole or not at all. Raises OSError.

    The same arrays always give the same bytes.
    """
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an ``.npy`` file whole or not at all. Raises OSError."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file whole or not at all, a line feed after every line. Raises OSError."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file one by one, without their ends; bytes that are not UTF-8 as in read_text.

    Raises TraceError for a line of more than 64 MiB, OSError.
    """
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        number = 0
        while line := file.readline(LARGEST_TEXT + 1):
            number += 1
            if len(line) > LARGEST_TEXT:
                raise TraceError(
                    f"a line of more than {LARGEST_TEXT:,} characters", Location(str(path), number)
                )
            yield line.removesuffix("\n")
