"""Write random f16 matrices A.npy (m, k) and B.npy (k, n): ``python tools/example_matrices.py M N K``."""

from __future__ import annotations

import sys

import numpy as np


def main(m: int, n: int, k: int) -> None:
    """Write both into the current folder; the same sizes give the same matrices."""
    rng = np.random.default_rng(0)
    np.save("A.npy", rng.standard_normal((m, k)).astype(np.float16))
    np.save("B.npy", rng.standard_normal((k, n)).astype(np.float16))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
