"""Every verb with every kind of input in which a file is none: pipes, links, devices, folders, sparse files.

Each combination of a verb, a suffix and a kind is tried once, on the first valid input that has it. The time
limits of pipes are half a second.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from warpsim.base.files import opening

from .case import Case
from .seeds import seeds
from .trial import try_case

_SPARSE = 1 << 33  # bytes
_PATIENCE = 0.5


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(_SPARSE)


def _sparse_array(path: Path) -> None:
    header = b"\x93NUMPY\1\0\x76\0{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % (
        _SPARSE - 128
    )
    with path.open("wb") as file:
        file.write(header.ljust(127) + b"\n")
        file.truncate(_SPARSE)


def _socket(path: Path) -> None:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


PLACES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "silent pipe": os.mkfifo,
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "noise": lambda path: path.symlink_to("/dev/urandom"),
    "nothing": lambda path: path.symlink_to("/dev/null"),
    "dangling link": lambda path: path.symlink_to("none"),
    "loop of links": lambda path: path.symlink_to(path.name),
    "folder": lambda path: path.mkdir(),
    "socket": _socket,
    "sparse file": _sparse,
    "sparse array": _sparse_array,
}


def place_cases() -> Iterator[tuple[str, Case]]:
    """Yield the combinations, each with its kind."""
    known = set[tuple[str, str, str]]()
    for seed in seeds():
        for name in seed.files:
            for kind in PLACES:
                key = (seed.command[0], Path(name).suffix, kind)
                if key not in known:
                    known.add(key)
                    files = {other: content for other, content in seed.files.items() if other != name}
                    yield kind, replace(seed, files=files, places={name: kind})


def try_places(most: int | None = None) -> int:
    """Try them all, or the first; return 1 if anything was found."""
    opening._PATIENCE = opening._SILENCE = _PATIENCE
    finds, codes = 0, Counter[int]()
    for number, (kind, case) in enumerate(place_cases()):
        if number == most:
            break
        verdict = try_case(case)
        codes[verdict.code] += 1
        if verdict.problem:
            finds += 1
            print(f"--- {kind}: {verdict.problem} ({verdict.seconds:.1f} s): {' '.join(case.command)!r}")
            print(verdict.said[-800:], flush=True)
    counts = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    print(f"{sum(codes.values())} links and pipes, {finds} finds; exit codes: {counts}")
    return int(finds > 0)
