"""Files: reading text and ``.npz`` archives without trusting them, writing archives whole or not at all.

Knows sizes, headers and dtypes; does not know what the arrays mean.
"""

from __future__ import annotations

import errno
import os
import warnings
import zipfile
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .errors import Location, TraceError

Arrays = dict[str, npt.NDArray[Any]]

LARGEST_TEXT = 1 << 26  # bytes
LARGEST_ARCHIVE = 1 << 28  # bytes of all arrays together, unpacked

_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_text(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 become lone surrogates, for a parser to complain about.

    Raises TraceError for more than 64 MiB, OSError.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise TraceError(f"more than {LARGEST_TEXT:,} bytes of text", Location(str(path), 1))
    return content.decode("utf-8", errors="surrogateescape")


def read_arrays(path: Path) -> Arrays:
    """The arrays of an ``.npz`` file: unsigned integers or bools, never pickles, at most 256 MiB unpacked.

    What the headers claim is checked before anything is unpacked. Raises TraceError.
    """
    if not path.is_file():
        raise TraceError(f"{path}: no such file")
    try:
        with warnings.catch_warnings():  # NumPy warns of headers written by Python 2
            warnings.simplefilter("error")
            with zipfile.ZipFile(path) as archive:
                return _read_members(archive, path)
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


def _read_members(archive: zipfile.ZipFile, path: Path) -> Arrays:
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
            _check_header(file, member.file_size, f"{path}: array {name!r}")
        with archive.open(member) as file:
            arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


def _check_header(file: IO[bytes], size: int, what: str) -> None:
    """The dtype can be trusted, and the shape is that of the bytes that follow."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADER_READERS:
        raise TraceError(f"{what} has .npy version {version[0]}.{version[1]}, not 1.0 or 2.0")
    shape, _, dtype = _HEADER_READERS[version](file)
    if dtype.kind not in "ub":
        raise TraceError(f"{what} has dtype {dtype}, not unsigned integers or bool")
    claimed = prod(shape) * dtype.itemsize
    held = size - file.tell()
    if claimed != held:
        raise TraceError(f"{what} claims {claimed:,} bytes, but has {held:,}")


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write an ``.npz`` file whole or not at all: under a temporary name, then renamed. Raises OSError.

    The same arrays always give the same bytes.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
