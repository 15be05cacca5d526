"""Write the tables of warpsim/programs/exec from the headers and libraries of CUDA toolkits.

    python -m tools.cuda_tables 12=/path/to/cuda-12.9 13=/path/to/cuda-13.5 [--check]

Each folder has ``include`` and ``lib`` (or ``lib64``), with libcudart and libnvJitLink. Names of functions,
numbers of error codes and attributes, and places of the fields of cudaDeviceProp are facts of the public
interface; ``offsetof`` is asked of the host's C compiler. What cudaGetErrorString returns is asked of the
newest runtime, which needs no device for that. The driver's names are those that cuda.h of the newest toolkit
declares, and their forms for the stream of a thread. ``--check`` writes nothing, and fails where a table
would change. tables/own.txt, of our own library, is written by hand.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

TABLES = Path(__file__).parent.parent.parent / "warpsim" / "programs" / "exec" / "tables"
_ENUMERATIONS = {
    "cudaError": "runtime_errors",
    "cudaError_enum": "driver_errors",
    "CUdevice_attribute_enum": "device_attributes",
}
_PROFILER = {"cuProfilerStart", "cuProfilerStop"}  # of cudaProfiler.h, which wheels lack
_OF_A_VERSION = re.compile(r"_\d+_\d+$")  # functions of nvJitLink that NVIDIA's own libraries ask for
_MEMBER = re.compile(r"^\s*((?:cuda|CU_|CUDA_)\w+)\s*=\s*(0[xX][0-9a-fA-F]+|\d+)", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Write every table, or compare; return the exit code."""
    folders = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    tables = dict(_tables({version: Path(folder) for version, folder in folders.items()}))
    stale = [name for name, text in tables.items() if _held(name) != text]
    if "--check" in arguments:
        print("\n".join(f"{name}: differs" for name in stale) or f"{len(tables)} tables, none differs")
        return bool(stale)
    for name, text in tables.items():
        (TABLES / name).write_text(text)
    print("\n".join(f"{name}: {text.count(chr(10))} lines" for name, text in tables.items()))
    return 0


def _held(name: str) -> str:
    path = TABLES / name
    return path.read_text() if path.exists() else ""


def _tables(folders: dict[str, Path]) -> Iterator[tuple[str, str]]:
    for version, folder in folders.items():
        yield f"runtime_{version}.txt", _lines(_exported(_library(folder, "libcudart")))
        linker = (name for name in _exported(_library(folder, "libnvJitLink")) if _OF_A_VERSION.search(name))
        yield f"jit_linker_{version}.txt", _lines(linker)
        yield f"properties_{version}.txt", _lines(_fields(folder / "include"))
    newest = folders[max(folders)]
    include = newest / "include"
    yield "error_texts.txt", _lines(_texts(_library(newest, "libcudart"), include / "driver_types.h"))
    yield "driver.txt", _lines(_declared(include))
    for enumeration, name in _ENUMERATIONS.items():
        headers = [include / "cuda.h", include / "driver_types.h"]
        yield f"{name}.txt", _lines(_members(enumeration, headers))


def _library(folder: Path, name: str) -> Path:
    """Return the file of a library in a toolkit."""
    return next(path for part in ("lib", "lib64") for path in folder.glob(f"{part}/{name}.so.*"))


def _texts(library: Path, header: Path) -> Iterator[str]:
    """Yield "number text" of each error code: what cudaGetErrorString of a runtime returns."""
    text_of = ctypes.CDLL(str(library)).cudaGetErrorString
    text_of.restype = ctypes.c_char_p
    for row in _members("cudaError", [header]):
        number = row.rpartition(" ")[2]
        yield f"{number} {text_of(int(number)).decode()}"


def _lines(rows: Iterator[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def _exported(library: Path) -> Iterator[str]:
    """Yield the functions that a runtime exports."""
    command = ["nm", "-D", "--defined-only", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    yield from sorted(
        {row.split()[2].partition("@")[0] for row in text.splitlines() if row.split()[1] == "T"}
    )


def _declared(include: Path) -> Iterator[str]:
    """Yield the functions of the driver: those declared, those that macros make of them, by stream or not."""
    text = (include / "cuda.h").read_text()
    declared = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu\w+)\s*\(", text))
    macros = dict(re.findall(r"#\s*define\s+(cu[A-Z]\w+)\s+(cu\w+)\s*$", text, re.MULTILINE))
    by_stream = re.findall(r"#\s*define\s+(cu[A-Z]\w+)\s+__CUDA_API_(PTDS|PTSZ)\((\w+)\)", text)
    names = declared | set(macros.values()) | _PROFILER
    for _, form, target in by_stream:
        names |= {target, f"{target}_{form.lower()}"}
    yield from sorted(names)


def _members(enumeration: str, headers: list[Path]) -> Iterator[str]:
    """Yield "name number" of each member of an enumeration, the first name of a number."""
    text = "".join(re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL) for header in headers)
    found = re.search(rf"enum\s+(?:__device_builtin__\s+)?{enumeration}\s*\{{(.*?)\}}", text, re.DOTALL)
    assert found, enumeration
    known = set[int]()
    for name, number in _MEMBER.findall(found[1]):
        if int(number, 0) not in known:
            known.add(int(number, 0))
            yield f"{name} {int(number, 0)}"


def _fields(include: Path) -> Iterator[str]:
    """Yield "field offset bytes" of cudaDeviceProp, and its size in the first line."""
    text = re.sub(r"/\*.*?\*/", "", (include / "driver_types.h").read_text(), flags=re.DOTALL)
    body = re.search(r"struct\s+__device_builtin__\s+cudaDeviceProp\s*\{(.*?)\n\}", text, re.DOTALL)
    assert body, "cudaDeviceProp"
    names = re.findall(r"(\w+)\s*(?:\[[^\]]*\])?\s*;", body[1])
    rows = "".join(
        f'printf("{name} %zu %zu\\n", offsetof(T, {name}), sizeof(((T*)0)->{name}));' for name in names
    )
    program = (
        "#include <stddef.h>\n#include <stdio.h>\n#include <driver_types.h>\n"
        "typedef struct cudaDeviceProp T;\n"
        f'int main(void) {{ printf("- 0 %zu\\n", sizeof(T)); {rows} return 0; }}'
    )
    with TemporaryDirectory() as folder:
        source, result = Path(folder) / "fields.c", Path(folder) / "fields"
        source.write_text(program)
        subprocess.run(["cc", f"-I{include}", str(source), "-o", str(result)], check=True)
        yield from subprocess.run([result], capture_output=True, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
