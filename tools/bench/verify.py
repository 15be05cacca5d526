"""Time and memory of ``warpsim verify``: ``python -m tools.bench.verify [--cases 1000000] [--json FILE]``.

Writes a set of that many cases of mma.sp m16n8k32 f16 to a temporary file (2.2 GB for a million), then runs
``warpsim verify`` on it in a process of its own. Goals for a million: 60 seconds on two cores, 1 GiB at most.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim
from warpsim.workbench.vectors.formats.manifest import manifest_of
from warpsim.workbench.vectors.sets import make_vectors

MNEMONIC = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
TARGET = "sm_90a"
BLOCK = 1 << 15  # cases that are generated at a time
GOALS = {"seconds": 60.0, "mebibytes": 1024.0}

_ORDERED = np.array([4, 8, 9, 12, 13, 14], np.uint8)  # two ascending indices


# --- the set ---------------------------------------------------------------------------------------


def words(name: str, block: int, cases: int) -> npt.NDArray[np.uint32]:
    """Return registers of an operand for one block of cases: values from 2**-7 to 2**1, legal metadata."""
    rng = np.random.default_rng([block, ord(name)])
    count = warpsim.decode(MNEMONIC, target=TARGET).registers[name]
    shape = (cases, 32, count)
    if name == "e":
        fields = _ORDERED[rng.integers(0, 6, (cases, 32, 1, 8), np.uint8)].astype(np.uint32)
        return np.bitwise_or.reduce(fields << np.arange(0, 32, 4, dtype=np.uint32), axis=-1)
    bits = rng.integers(0, 1 << 32, shape, np.uint32)
    if name == "c":
        return bits & np.uint32(0x83FFFFFF) | np.uint32(0x3C000000)
    return bits & np.uint32(0x9FFF9FFF) | np.uint32(0x20002000)


def blocks(name: str, cases: int) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield an array of the set, a block at a time."""
    form = warpsim.decode(MNEMONIC, target=TARGET)
    for block, start in enumerate(range(0, cases, BLOCK)):
        count = min(BLOCK, cases - start)
        if name == "d":
            inputs = {operand: words(operand, block, count) for operand in "abce"}
            yield warpsim.execute(form, **inputs)
        else:
            yield words(name, block, count)


def write_set(path: Path, cases: int) -> None:
    """Write the whole set uncompressed, with at most a block of it in memory."""
    form = warpsim.decode(MNEMONIC, target=TARGET)
    one = make_vectors(form, title="benchmark", selector=0, **{name: words(name, 0, 1) for name in "abce"})
    manifest = manifest_of(one) | {"cases": cases, "arrays": {}}
    with zipfile.ZipFile(path, "w") as archive:
        for name in "abced":
            shape = (cases, *one.arrays()[name].shape[1:])
            digest = hashlib.sha256()
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {"descr": "<u4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, header)
                for block in blocks(name, cases):
                    member.write(block.data)
                    digest.update(block.data)
            entry = {"dtype": "uint32", "shape": list(shape), "sha256": digest.hexdigest()}
            manifest["arrays"][name] = entry
        with archive.open("manifest.npy", "w") as member:
            np.lib.format.write_array(member, np.array(json.dumps(manifest)))


# --- the measurement -------------------------------------------------------------------------------


def measured(path: Path, jobs: int) -> dict[str, Any]:
    """Return seconds and peak memory of ``warpsim verify`` on a file, after a small one has warmed up the
    caches.
    """
    small = path.with_name("small.npz")
    write_set(small, 256)
    command = [sys.executable, "-m", "warpsim", "verify", "--json", "--jobs", str(jobs)]
    subprocess.run([*command, str(small)], check=True, stdout=subprocess.DEVNULL)
    start = time.perf_counter()
    finished = subprocess.run([*command, str(path)], check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    document = json.loads(finished.stdout)
    assert document["passed"]
    return {"cases": document["summary"][0]["cases"], "seconds": seconds, "mebibytes": peak, "jobs": jobs}


def main() -> int:
    """Write the set, measure, print; 1 if a goal for a million cases is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.verify", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2, help="threads that execute")
    parser.add_argument("--json", type=Path, help="where to write the result")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.npz"
        write_set(path, options.cases)
        result = measured(path, options.jobs)
    print(
        f"{result['cases']:,} cases verified in {result['seconds']:.1f} s [60], "
        f"peak {result['mebibytes']:.0f} MiB [1024]"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return int(any(result[name] > goal for name, goal in GOALS.items()))


if __name__ == "__main__":
    sys.exit(main())
