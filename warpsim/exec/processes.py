"""What Linux says of client processes, and gives of them: memory, files, ancestors.

Knows /proc; does not know calls.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .error_codes import CudaError
from .messages import Channel

_PR_SET_CHILD_SUBREAPER = 36


class _Vector(ctypes.Structure):
    """struct iovec of Linux."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


@cache
def _library() -> ctypes.CDLL:
    """Return the C library, with what copies between processes."""
    library = ctypes.CDLL(None)
    for name in ("process_vm_readv", "process_vm_writev"):
        function = getattr(library, name)
        function.restype = ctypes.c_ssize_t
        function.argtypes = [ctypes.c_int, *[ctypes.c_void_p, ctypes.c_ulong] * 2, ctypes.c_ulong]
    return library


class HostMemory:
    """The memory of a client's own process, by way of Linux, or, where that is refused, of its agent."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(f"/proc/{process}/mem", os.O_RDWR | os.O_CLOEXEC)

    def read(self, channel: Channel, address: int, size: int) -> bytes:
        """Return bytes; raises CudaError where the client has not mapped them."""
        if self._file is None:
            return channel.get(address, size)
        try:
            found = os.pread(self._file, size, address)
        except (OSError, OverflowError):
            found = b""
        if len(found) != size:
            raise CudaError("InvalidValue", f"{size} bytes at {address:#x}: the program has not mapped them")
        return found

    def read_into(self, channel: Channel, address: int, target: npt.NDArray[np.uint8]) -> None:
        """Read bytes into an array. Raises CudaError."""
        if self._file is None:
            target[:] = np.frombuffer(channel.get(address, target.size), np.uint8)
            return
        self._all(_library().process_vm_readv, address, target)

    def write(self, channel: Channel, address: int, content: bytes | npt.NDArray[np.uint8]) -> None:
        """Write bytes; raises CudaError where the client cannot write there."""
        if self._file is None:
            channel.put(address, bytes(content))
        else:
            self._all(_library().process_vm_writev, address, np.frombuffer(content, np.uint8))

    def _all(self, move: Any, address: int, part: npt.NDArray[np.uint8]) -> None:
        """Read or write all of an array. Raises CudaError."""
        local, remote = _Vector(part.ctypes.data, part.size), _Vector(address, part.size)
        done = move(self._process, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        if done != part.size:
            message = f"{part.size} bytes at {address:#x}: the program has not mapped them"
            raise CudaError("InvalidValue", message)

    def close(self) -> None:
        """Let go of the process."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def file_at(process: int, address: int) -> str:
    """Return the file whose code or data lies at an address of a process; "the program" for none."""
    for line in _maps(process):
        bounds, *rest = line.split(maxsplit=5)
        first, past = (int(bound, 16) for bound in bounds.split("-"))
        if first <= address < past and len(rest) == 5:
            return rest[4].strip()
    return "the program"


def _maps(process: int) -> list[str]:
    try:
        with open(f"/proc/{process}/maps") as file:
            return file.readlines()
    except OSError:
        return []


def working_folder(process: int) -> Path:
    """Return the folder that the names of files of a process count from. Raises OSError."""
    return Path(os.readlink(f"/proc/{process}/cwd"))


def descends_from(process: int, ancestor: int) -> bool:
    """Return whether a process is a child of another, or a child's child."""
    while process > 1:
        if process == ancestor:
            return True
        try:
            with open(f"/proc/{process}/stat") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def alive(process: int) -> bool:
    """Return whether a process is there, and no zombie."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def adopt_orphans() -> None:
    """Become the parent of processes whose parent ends: they stay descendants."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def runs_python(program: str) -> bool:
    """Return whether a program is Python, or a script that begins with its name."""
    path = shutil.which(program)
    if path is None:
        return False
    if Path(os.path.realpath(path)).name.startswith("python"):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!" and b"python" in file.readline(256)
    except OSError:
        return False
