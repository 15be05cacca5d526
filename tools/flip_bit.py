"""Copy a trace and flip one bit of its data: ``python tools/flip_bit.py TRACE ARRAY FOLDER [--seed N]``.

For trying out how a difference is reported; which word and bit is flipped follows from the seed.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

from warpsim.base.files.archives import read_arrays, write_arrays


def flip(trace: Path, array: str, folder: Path, seed: int = 0) -> None:
    """Write the trace and its data into the folder, with one bit of the array flipped."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = read_arrays(trace.with_suffix(".npz"))
    words = arrays[array] = arrays[array].copy()
    random = np.random.default_rng(seed)
    place = random.integers(words.size)
    words.flat[place] ^= words.dtype.type(1 << int(random.integers(8 * words.dtype.itemsize)))
    write_arrays(folder / trace.with_suffix(".npz").name, arrays)
    shutil.copy(trace, folder / trace.name)


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and flip."""
    parser = argparse.ArgumentParser(description="Copy a trace and flip one bit of its data.")
    parser.add_argument("trace", type=Path)
    parser.add_argument("array", help="name of the array in the .npz file, such as d0")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    flip(given.trace, given.array, given.folder, given.seed)


if __name__ == "__main__":
    main()
