"""The README's example, a sparse kernel whose rows 8 to 15 are garbage: ``python tools/example_dump.py``.

Writes ``traces/dumps/rows_8_15.npz``, the matrices A and B that the kernel should multiply, and
``traces/dumps/rows_8_15.txt``, what a printf in the kernel prints: the registers of every lane.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import warpsim
from warpsim.base.files.archives import write_arrays, write_lines
from warpsim.workbench.inputs.register_text import word_lines

MNEMONIC = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


def main(folder: Path) -> None:
    """Write both files; the kernel loads A's registers 1 and 3 each in place of the other."""
    form, random = warpsim.decode(MNEMONIC, target="sm_90a"), np.random.default_rng(8)
    A = warpsim.prune(random.standard_normal((16, 32)).astype(np.float16), form)
    B = random.standard_normal((32, 8)).astype(np.float16)
    values, indices = warpsim.compress(A, form)
    registers = {
        "a": warpsim.pack(form, "a", values)[:, [0, 3, 2, 1]],
        "b": warpsim.pack(form, "b", B),
        "c": np.zeros((32, 4), np.uint32),
        "e": warpsim.pack_metadata(form, indices),
    }
    d = warpsim.execute(form, **registers)
    write_arrays(folder / "rows_8_15.npz", {"A": A, "B": B})
    write_lines(folder / "rows_8_15.txt", word_lines(a=registers["a"], e=registers["e"], d=d))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "traces" / "dumps"))
