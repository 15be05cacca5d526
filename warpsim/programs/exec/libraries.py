"""The libraries that a client process loads in place of NVIDIA's: libcuda, libcudart and libnvJitLink.

A library of our own, libwarpsim, is beside them, for what Python clients say. agent.c is compiled at the
first use by the host's C compiler and kept in the user's cache, with the digests of all files, by which what
is missing or changed is found and compiled again. Which functions each library exports is read from tables/,
which tools/cuda_tables writes; a function is its library and its place there. Does not know what functions
do.
"""

from __future__ import annotations

import hashlib
import pkgutil
import platform
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from ...base.errors import WarpsimError, present
from ...base.folders import (
    home_cache,
    locked,
    private_cache,
    temporary_folder,
    unlock,
    user_cache,
    why_unloadable,
    why_untrusted,
)
from ..launch.command import run_compiler

_SONAMES = {  # in the order of the numbers of libraries
    "driver": "libcuda.so.1",
    "runtime_12": "libcudart.so.12",
    "runtime_13": "libcudart.so.13",
    "jit_linker_12": "libnvJitLink.so.12",
    "jit_linker_13": "libnvJitLink.so.13",
    "own": "libwarpsim.so.1",
}
_TABLES = tuple(_SONAMES)
_AGENT = "agent.c"
RUNTIMES = (_SONAMES["runtime_13"], _SONAMES["runtime_12"])
# what libcusparse asks for, and not what programs do, whose PTX then goes to the driver
JIT_LINKERS = (_SONAMES["jit_linker_12"], _SONAMES["jit_linker_13"])
TRITON_PTXAS = "triton-ptxas"
FOR_PYTHON = "python"  # the folder of what Python programs load at their start
_PYTHON_FILES = {
    "sitecustomize.py": "client_python.py",
    "warpsim_torch.py": "client_torch.py",
}
_PTXAS = """#!/bin/sh
# Stands in for ptxas under Triton: keeps the PTX in place of a cubin.
case "$1" in --version) echo "ptxas: release 13.0, V13.0.48"; exit 0;; esac
while [ $# -gt 0 ]; do
    case "$1" in -o) output="$2"; shift;; *.ptx) input="$1";; esac
    shift
done
cp "$input" "$output"
"""
_DRIVER_LINK = "libcuda.so"
_DIGESTS = "digests"  # a line for each file: its SHA-256, its mode, and its name
_RETURN_TEXT = ("cudaGetErrorName", "cudaGetErrorString")
_LIBRARY_SHIFT = 16  # of the library's number in the number of a function
_ENTRY_BYTES = 16  # of an exported function
_STUB = """.balign 16
.globl {name}
.type {name},@function
{name}: endbr64
movl ${number},%r11d
jmp *warpsim_enter@GOTPCREL(%rip)
.size {name},.-{name}
"""


class HostError(WarpsimError):
    """The machine cannot run clients: no C compiler, or no Linux on x86-64."""


def _own_file(name: str) -> bytes:
    """Return a file of this package, which may lie in a zip archive."""
    return present(pkgutil.get_data(__package__, name), name)


@cache
def table(name: str) -> tuple[str, ...]:
    """Return the lines of a table."""
    return tuple(_own_file(f"tables/{name}.txt").decode().splitlines())


def function_named(number: int) -> tuple[str, str]:
    """Return library ("driver", "runtime_12", ...) and name of a function. Raises IndexError."""
    library = _TABLES[number >> _LIBRARY_SHIFT]
    return library, table(library)[number & (1 << _LIBRARY_SHIFT) - 1]


def driver_place(name: str) -> int | None:
    """Return how many bytes behind the driver's first function one of a name lies, or None."""
    places = _driver_places()
    return places[name] * _ENTRY_BYTES if name in places else None


@cache
def _driver_places() -> dict[str, int]:
    return {name: place for place, name in enumerate(table("driver"))}


def libraries() -> Path:
    """Return the folder of the libraries, compiled at the first use. Raises HostError."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise HostError(
            f"warpsim exec runs programs of Linux on x86-64, and this is {platform.system()} on "
            f"{platform.machine()}"
        )
    name, cache = f"exec-{_digest()}", Path(home_cache())
    try:
        cache = user_cache()
        unfit = why_unloadable(cache)
        return _intact_folder((private_cache(unfit) if unfit else cache) / name)
    except OSError as error:
        reason = f"{error.filename or cache}: {error.strerror}"
    return _intact_folder(private_cache(reason) / name)


def _digest() -> str:
    files = (_AGENT, *_PYTHON_FILES.values(), "libraries.py")
    content = [_STUB.encode(), *map(_own_file, files)]
    content += ["\n".join(table(name)).encode() for name in _TABLES]
    return hashlib.sha256(b"\0".join(content)).hexdigest()[:16]


def _intact_folder(folder: Path) -> Path:
    """Return the folder of the libraries, compiled where it is damaged. Raises HostError, OSError."""
    if not _is_whole(folder):
        lock = locked(str(folder.parent))  # another process may be compiling the same
        try:
            if not _is_whole(folder):
                _compile(folder)
        finally:
            unlock(lock)
    return folder


def _is_whole(folder: Path) -> bool:
    """Return whether a folder is trusted, and has all files as they were written."""
    try:
        return not why_untrusted(folder) and (folder / _DIGESTS).read_text() == _digests(folder)
    except (OSError, ValueError):
        return False


def _digests(folder: Path) -> str:
    """Return the digests of files, by the names that a folder of libraries has. Raises OSError."""
    own = [*_SONAMES.values(), _DRIVER_LINK, TRITON_PTXAS]
    files = [(folder / name, name) for name in (*own, *(f"{FOR_PYTHON}/{name}" for name in _PYTHON_FILES))]
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.stat().st_mode:o} {name}\n"
        for file, name in files
    )


def _compile(folder: Path) -> None:
    """Compile the libraries beside their final place, and move them there together.

    Raises HostError, OSError.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise HostError(
            "warpsim exec compiles a small C file at its first use: no cc, gcc or clang is on PATH"
        )
    with temporary_folder(folder.parent) as place:
        build = place / "libraries"
        build.mkdir(mode=0o700)
        for library in _TABLES:
            _compile_library(compiler, build, library)
        (build / TRITON_PTXAS).write_text(_PTXAS)
        (build / TRITON_PTXAS).chmod(0o700)
        (build / _DRIVER_LINK).symlink_to(_SONAMES["driver"])
        (build / FOR_PYTHON).mkdir(mode=0o700)
        for file, source in _PYTHON_FILES.items():
            (build / FOR_PYTHON / file).write_bytes(_own_file(source))
        (build / _DIGESTS).write_text(_digests(build))
        with suppress(FileNotFoundError):
            folder.rename(place / "damaged")
        build.rename(folder)


def _compile_library(compiler: str, build: Path, library: str) -> None:
    soname = _SONAMES[library]
    source, versions = build / f"{library}.S", build / f"{library}.map"
    source.write_text("\n".join(_assembly(library)))
    versions.write_text(f"{soname} {{ global: *; }};\n")
    more = [str(source), "-Wl,-z,now", "-pthread"]
    if library == "driver":
        agent = build / _AGENT
        agent.write_bytes(_own_file(_AGENT))
        more.append(str(agent))
    else:
        more += [str(build / _SONAMES["driver"]), "-Wl,-rpath,$ORIGIN", f"-Wl,--version-script={versions}"]
    _compiled(compiler, build / soname, more)


def _compiled(compiler: str, path: Path, options: list[str]) -> None:
    """Compile a shared library. Raises HostError."""
    command = [compiler, "-O2", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", str(path), *options]
    done = run_compiler(command, path.parent)
    if done.returncode:
        raise HostError(f"{compiler} cannot compile the agent:\n{done.stderr.strip()}")


def _texts() -> Iterator[str]:
    """Yield the numbers of functions that return a text, and not a code, 0 last: what the agent reads."""
    numbers = [
        (library << _LIBRARY_SHIFT) + table(name).index(function)
        for library, name in enumerate(_TABLES)
        for function in _RETURN_TEXT
        if function in table(name)
    ]
    yield ".section .rodata\n.balign 4\n.globl warpsim_texts\n.hidden warpsim_texts\nwarpsim_texts:"
    yield f".long {', '.join(map(str, numbers))}, 0\n.text\n.balign 16"


def _assembly(library: str) -> Iterator[str]:
    """Yield the exported functions of a library; all have the same size."""
    yield ".text\n.balign 16"
    if library == "driver":
        yield from _texts()
        yield ".globl warpsim_first\n.hidden warpsim_first\nwarpsim_first:"
    first = _TABLES.index(library) << _LIBRARY_SHIFT
    for place, name in enumerate(table(library)):
        yield _STUB.format(name=name, number=first + place)
    yield '.section .note.GNU-stack,"",@progbits\n'
