"""Write a.npy (64, 64), b.npy (64, 64; N x K) and their product d.npy: ``python tools/example_product.py``.

Elements are small integers, so that the product is exact in f32 however it is summed.
"""

from __future__ import annotations

import numpy as np


def main() -> None:
    """Write all three into the current folder, always the same."""
    a, b = np.random.default_rng(1).integers(-8, 9, (2, 64, 64)).astype(np.float16)
    np.save("a.npy", a)
    np.save("b.npy", b)
    np.save("d.npy", a.astype(np.float32) @ b.astype(np.float32).T)


if __name__ == "__main__":
    main()
