"""The examples of the page on dumps: ``python tools/example_log.py``.

Writes whole matrices A and B of four steps along k, a dump of A that was swizzled on the store only, a log
of all steps whose step 2 reads B of step 1, and D as a kernel stores it in f16, with C forgotten.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import warpsim
from warpsim.base.files.archives import write_array, write_lines

MNEMONIC = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
STEPS = 4


def main() -> None:
    """Write the files into this folder."""
    form, random = warpsim.decode(MNEMONIC, target="sm_80"), np.random.default_rng(22)
    A, B = (
        random.standard_normal((16, 64)).astype(np.float16),
        random.standard_normal((64, 8)).astype(np.float16),
    )
    C = random.standard_normal((16, 8)).astype(np.float32)
    chunks = A.reshape(16, 8, 8)
    swizzled = np.stack([chunks[row, np.arange(8) ^ row % 8] for row in range(16)]).reshape(16, 64)
    write_array(Path("dump.npy"), warpsim.pack(form, "a", swizzled[:, 16:32]))
    a, b = A.reshape(16, STEPS, 16).swapaxes(0, 1), B.reshape(STEPS, 16, 8)
    read = b[[0, 1, 1, 3]]
    acc, lines = np.zeros((32, 4), np.uint32), []
    for step in range(STEPS):
        registers = {"a": warpsim.pack(form, "a", a[step]), "b": warpsim.pack(form, "b", read[step])}
        acc = warpsim.execute(form, c=acc, **registers)
        values = acc.view(np.float32)
        for lane in range(32):
            lines.append(
                f"kt={step} lane={lane} " + " ".join(f"acc{i}={v:.9g}" for i, v in enumerate(values[lane]))
            )
    write_lines(Path("steps.log"), ["launching <<<1, 32>>>", *lines, "done in 0.02 ms"])
    D = warpsim.gemm(form, A, B)
    for name, array in (("A", A), ("B", B), ("C", C), ("D", D.astype(np.float16))):
        write_array(Path(f"{name}.npy"), array)


if __name__ == "__main__":
    main()
