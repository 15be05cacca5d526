"""Whether this platform computes the same bits as every other: digests of results, as committed or not.

    python -m tools.digests                        writes tools/digests/digests.txt
    python -m tools.digests --check [--few]        compares with it; --few is a selection that takes seconds
    python -m tools.digests --check --only WORD    compares those whose names have it, such as f64 or gemm
    python -m tools.digests --check --root FOLDER  any of these under an emulator of another CPU

What is digested are the results of every distinct arithmetic through every function that computes, and of
every scalar opcode on nasty values (tests/helpers/environments.py and opcode_results.py); no text, whose
words may change. NUMBA_DISABLE_JIT=1 compares the interpreted kernels, NUMBA_CPU_NAME=generic those for any
CPU. FOLDER is the root of a system for the other CPU, as tools/digests/other_cpu.sh makes it: Python in
usr/bin, and in site the packages.

Exit code: 0 if nothing differs, 1 if something does.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from .digests_file import PATH, Digests, committed, differences, write

ROOT = Path(__file__).parents[2]
LIBRARIES = ("numpy", "ml_dtypes", "numba", "llvmlite")


def computed(every: bool, word: str = "") -> Digests:
    """Return the digest of each result that is no text and has a word in its name, computed now."""
    from tests.helpers.environments import all_jobs, digest

    results = ((name, job()) for name, job in all_jobs(every) if word in name)
    return {name: digest(result) for name, result in results if not isinstance(result, str)}


def platform_line() -> str:
    """Return CPU, Python and libraries that compute."""
    from warpsim.sums.arithmetic.kernels._jit import interpreted

    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    cpu = os.environ.get("NUMBA_CPU_NAME", "this CPU")
    kernels = "interpreted" if interpreted() else f"compiled for {cpu}"
    python = f"Python {platform.python_version()}"
    return f"{sys.platform} on {platform.machine()}, {python}, {libraries}, kernels {kernels}"


def check(every: bool, word: str = "") -> int:
    """Print what differs; 1 if anything does."""
    print(platform_line(), flush=True)
    found, expected = computed(every, word), committed()
    lines = differences(found, expected)
    lines += [f"{name}: not computed" for name in expected if every and word in name and name not in found]
    for line in lines:
        print(line)
    print(f"{len(found)} digests, {len(lines)} different")
    return int(bool(lines))


def emulated(root: Path, emulator: str, words: list[str]) -> int:
    """Return the exit code of the same command, run by the Python of another system."""
    pythons = sorted(root.glob("usr/bin/python3.[0-9][0-9]"))
    if not pythons:
        raise SystemExit(f"{root} has no Python in usr/bin")
    site = root / "site"
    environment = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    command = [emulator, "-L", root, pythons[-1], "-m", "tools.digests", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Write, compare, or start what compares."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.digests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--few", action="store_true", help="with --check: a selection")
    parser.add_argument("--only", default="", metavar="WORD", help="with --check: names that have it")
    parser.add_argument("--root", type=Path, help="with --check: of a system for another CPU")
    parser.add_argument("--emulator", default="qemu-aarch64", help="what runs its programs")
    given = parser.parse_args()
    if not given.check:
        write(computed(every=True))
        print(f"{len(committed())} digests in {PATH.relative_to(ROOT)}")
        return 0
    if given.root:
        words = ["--check", "--only", given.only, *["--few"] * given.few]
        return emulated(given.root.resolve(), given.emulator, words)
    return check(not given.few, given.only)


if __name__ == "__main__":
    sys.exit(main())
