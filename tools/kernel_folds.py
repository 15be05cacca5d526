"""Search compiled sums for what LLVM selects wrongly: ``python -m tools.kernel_folds [FOLDER]``.

Compiles the kernels of a target, or takes those that Numba's cache in a FOLDER has, and looks in the object
of each for a VPTERNLOG with a mask, to which LLVM 20 to 22 may give the table of another order of operands
(warpsim/machine/native/wrong_folds.py). In the optimised code it looks for what is selected so: the choice of
a lane between x and some bits, of a constant mask, of x and y. Prints counts and what was found; exit code 1
where anything was.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm

from warpsim.machine.native.wrong_folds import WRONG_FOLDS

_DEFINED = re.compile(r"^\s*(%[\w.]+) = (\w+) (.*)$", re.MULTILINE)
_CHOICE = re.compile(r"<\d+ x i1> \S+, <[^>]*> (%[\w.]+), <[^>]*> (%[\w.]+)")
_OPERANDS = re.compile(r"(?:disjoint )?<[^>]*> (\S+), (.*)$")


def searched(folder: Path) -> tuple[Counter[str], list[str]]:
    """Return counts of kernels, bytes and choices of lanes, and what was found, with the file of each."""
    counts, found = Counter[str](), list[str]()
    for file in sorted(folder.rglob("*.nbc")):
        content, bitcode = _parts(file)
        counts += Counter({"kernels": 1, "bytes": len(content)})
        places = [match.start() for match in WRONG_FOLDS["VPTERNLOG with a mask"].finditer(content)]
        found += [f"{file.name}: {content[at : at + 11].hex(' ')} at byte {at:#x}" for at in places]
        text = str(llvm.parse_bitcode(bitcode))
        for function in text.split("\ndefine ")[1:]:
            counts["choices of lanes"] += len(_CHOICE.findall(function))
            found += [f"{file.name}: {line}" for line in chosen_bits(function)]
    return counts, found


def _parts(file: Path) -> tuple[bytes, bytes]:
    """Return the object and the code of a file of the cache, as Numba's CodeLibrary serializes itself."""
    _, kind, parts = pickle.loads(file.read_bytes())[0]
    assert kind == "object", f"{file} has {kind}"
    return parts


def chosen_bits(function: str) -> Iterator[str]:
    """Yield choices, lane by lane, between x and what has bits of x, in the text of a function."""
    defined = {name: (instruction, rest) for name, instruction, rest in _DEFINED.findall(function)}
    for name, (instruction, rest) in defined.items():
        choice = _CHOICE.match(rest) if instruction == "select" else None
        for whole, other in () if choice is None else (choice.groups(), choice.groups()[::-1]):
            if other in _masked(defined, whole):
                yield f"{name} = select {rest}"


def _masked(defined: dict[str, tuple[str, str]], name: str) -> set[str]:
    """Return the two vectors whose bits, of constant masks, are united in a value, or magnitude and sign."""
    instruction, rest = defined.get(name, ("", ""))
    if instruction == "bitcast":
        return _masked(defined, rest.partition("> ")[2].split()[0])
    if "@llvm.copysign." in rest:
        signs = re.findall(r"> (%[\w.]+)", rest)
        return {*signs} if len(signs) == 2 else set()  # the bits of a constant need no mask
    united = _OPERANDS.match(rest) if instruction in ("or", "xor") else None
    parts = [] if united is None else [defined.get(part, ("", "")) for part in united.groups()]
    operands = [_OPERANDS.match(more) for kind, more in parts if kind == "and"]
    masked = [item[1] for item in operands if item is not None and not item[2].startswith("%")]
    return {*masked} if len(masked) == 2 else set()


def main() -> int:
    """Compile, search, and print what there is."""
    parser = argparse.ArgumentParser(prog="python -m tools.kernel_folds", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="a cache of Numba, in place of a target")
    parser.add_argument("--target", help="whose kernels are compiled; all targets without it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.folder is None:
            os.environ["NUMBA_CACHE_DIR"] = folder
            import warpsim

            warpsim.warmup(given.target)
        counts, found = searched(given.folder or Path(folder))
    print(", ".join(f"{count:,} {name}" for name, count in counts.items()) or "no kernels")
    print("\n".join(found) or "no VPTERNLOG with a mask, and no choice that becomes one")
    return int(bool(found) or not counts)


if __name__ == "__main__":
    sys.exit(main())
