"""What Linux says of client processes, and gives of them: memory, files, ancestors.

Knows /proc; does not know calls.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from ...base.errors import TraceError
from ...base.files.opening import open_input
from .error_codes import CudaError
from .messages import Channel, Gone

_PIECE = 16 << 20  # bytes that are read at once
_PR_SET_CHILD_SUBREAPER = 36
_X86_64, _INTERPRETER = 62, 3  # of ELF: e_machine, and p_type of what names the loader
_MACHINES = {3: "32-bit x86", 40: "32-bit Arm", 183: "aarch64", 243: "RISC-V", 21: "POWER"}


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
        parts, left = list[bytes](), size
        try:
            while left and (not parts or parts[-1]):  # by pieces: a size may be nonsense
                parts.append(os.pread(self._file, min(left, _PIECE), address + size - left))
                left -= len(parts[-1])
        except (OSError, OverflowError):
            pass
        if left:
            self._raise_unmapped(address, size)
        return b"".join(parts)

    def _raise_unmapped(self, address: int, size: int) -> NoReturn:
        """Raise CudaError for bytes that the client has not mapped, Gone where it has left."""
        if not alive(self._process):
            raise Gone
        raise CudaError("InvalidValue", f"{size} bytes at {address:#x}: the program has not mapped them")

    def read_into(self, channel: Channel, address: int, target: npt.NDArray[np.uint8]) -> None:
        """Read bytes into an array. Raises CudaError."""
        if self._file is None:
            target[:] = np.frombuffer(channel.get(address, target.size), np.uint8)
            return
        self._transfer_all(_library().process_vm_readv, address, target)

    def write(self, channel: Channel, address: int, content: bytes | npt.NDArray[np.uint8]) -> None:
        """Write bytes; raises CudaError where the client cannot write there."""
        if self._file is None:
            channel.put(address, bytes(content))
        else:
            self._transfer_all(_library().process_vm_writev, address, np.frombuffer(content, np.uint8))

    def _transfer_all(self, move: Any, address: int, part: npt.NDArray[np.uint8]) -> None:
        """Read or write all of an array. Raises CudaError."""
        local, remote = _Vector(part.ctypes.data, part.size), _Vector(address, part.size)
        done = move(self._process, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        if done != part.size:
            self._raise_unmapped(address, part.size)

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


def program_of(process: int) -> str:
    """Return the file that a process executes, or ""."""
    try:
        return os.readlink(f"/proc/{process}/exe")
    except OSError:
        return ""


def _maps(process: int) -> list[str]:
    try:
        with open(f"/proc/{process}/maps") as file:
            return file.readlines()
    except OSError:
        return []


def working_folder(process: int) -> Path:
    """Return the folder that the names of files of a process count from. Raises OSError."""
    return Path(os.readlink(f"/proc/{process}/cwd"))


def ancestors(process: int) -> Iterator[int]:
    """Yield a process, its parent, and so on."""
    while process > 1:
        yield process
        try:
            process = int(_state(process)[1])
        except (OSError, ValueError, IndexError):
            return


def descendants(process: int) -> set[int]:
    """Return the children of a process, and their children."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError, IndexError):
            children.setdefault(int(_state(int(name))[1]), []).append(int(name))
    found, left = set[int](), [process]
    while left:
        left += children.get(left.pop(), ())
        found.update(left)
    return found


def _state(process: int) -> list[str]:
    """Return what Linux says of a process behind its name: a letter, the parent, ... Raises OSError."""
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()


def alive(process: int) -> bool:
    """Return whether a process is there, and no zombie."""
    try:
        return _state(process)[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return False
    except OSError:  # such as too many open files, which says nothing of the process
        return True


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
        with open_input(path, sys.maxsize, regular=True) as file:
            return file.read(2) == b"#!" and b"python" in file.readline(256)
    except (OSError, TraceError):
        return False


def why_unfit(program: str) -> str | None:
    """Return why a program cannot be a client: it is for another machine, or for a loader that is not
    glibc's; None where nothing speaks against it.
    """
    path = shutil.which(program)
    machine, loader = (None, "") if path is None else _executable(path)
    if machine not in (None, _X86_64):
        name = _MACHINES.get(machine, f"machine {machine} of ELF")
        return f"it is a program for {name}, and this machine is x86-64"
    if "ld-musl" in loader:
        return "it is linked with musl, and clients load libraries of glibc: compile it with glibc"
    return None


def _executable(path: str) -> tuple[int | None, str]:
    """Return machine and loader of an ELF file; None for other files, and "" for no loader."""
    machine = None
    with (
        suppress(OSError, struct.error, ValueError, TraceError),
        open_input(path, sys.maxsize, regular=True) as file,
    ):
        head = file.read(64)
        if head[:4] == b"\x7fELF":
            (machine,) = struct.unpack_from("<H", head, 18)
            return machine, _loader(file, head) if machine == _X86_64 else ""
    return machine, ""


def _loader(file: BinaryIO, head: bytes) -> str:
    """Return what loads a program, by its segments (System V ABI, "program header"). Raises struct.error."""
    (place,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
    file.seek(place)
    table = file.read(size * count)
    for first in range(0, len(table), size):
        if table[first] == _INTERPRETER:
            file.seek(struct.unpack_from("<Q", table, first + 8)[0])
            return file.read(256).partition(b"\0")[0].decode(errors="replace")
    return ""
