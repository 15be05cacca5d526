"""Peak memory of one large product: ``python -m tools.bench.memory [--size 8192] [--threads N]``.

Prints what the process needed beyond the operands and the result, all of which are held in memory. The goal
for an f16 product of 8192 cubed is 512 MiB.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

import warpsim

_MNEMONIC = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def main() -> int:
    """Multiply, and compare the peak with the arrays."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.memory", description=__doc__)
    parser.add_argument("--size", type=int, default=8192, help="m = n = k")
    parser.add_argument("--threads", type=int, help="default: all cores")
    options = parser.parse_args()
    size, rng = options.size, np.random.default_rng(1)
    A, B = np.empty((size, size), np.float16), np.empty((size, size), np.float16)
    for matrix in (A, B):
        for row in matrix:
            row[:] = rng.standard_normal(size)
    start = time.perf_counter()
    D = warpsim.gemm(_MNEMONIC, A, B, target="sm_90a", threads=options.threads)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    arrays = (A.nbytes + B.nbytes + D.nbytes) / (1 << 20)
    rest = f"arrays {arrays:.0f} MiB, rest {peak - arrays:.0f} MiB"
    print(f"{size} cubed: {seconds:.1f} s; peak {peak:.0f} MiB, {rest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
