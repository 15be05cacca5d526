"""What people bring, for warpsim/show/cli/FIRST_HOUR.md: ``python tools/first_hour.py`` writes it here.

``kernel/``: decimals of a Hopper kernel whose descriptor of B is not advanced along k, and of the mended one.
``rtl/``: a log of a sparse unit that loses metadata. ``numerics/``: A and B of a product for two chips.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import warpsim

WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "sm_90a"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "sm_90a"


def rows(matrix: Any, spelled: str) -> str:
    """Return a line for each row, as printf writes it."""
    return "\n".join(" ".join(spelled % value for value in row) for row in matrix.tolist()) + "\n"


def kernel(folder: Path) -> None:
    """Write A (64, 128), B (128, 64) and D with four decimals; a stage of 64 along k is four instructions."""
    form, rng = warpsim.decode(WGMMA[0], target=WGMMA[1]), np.random.default_rng(0)
    A = rng.standard_normal((64, 128)).astype(np.float16)
    B = rng.standard_normal((128, 64)).astype(np.float16)
    first = np.arange(128) // 64 * 64 + np.arange(128) % 16  # of each stage, in every step
    for name, matrix in (("A", A), ("B", B)):
        (folder / f"{name}.txt").write_text(rows(matrix, "%.6g"))
    (folder / "D.txt").write_text(rows(warpsim.gemm(form, A, B[first]), "%.4f"))
    (folder / "D_mended.txt").write_text(rows(warpsim.gemm(form, A, B), "%.4f"))


def unit(folder: Path) -> None:
    """Write a log of registers, D being that of a unit whose lanes 16 to 31 read no metadata."""
    form, rng = warpsim.decode(SPARSE[0], target=SPARSE[1]), np.random.default_rng(0)
    A = warpsim.prune(rng.integers(-100, 100, (16, 64)).astype(np.int8), form)
    values, indices = warpsim.compress(A, form)
    words = {
        "a": warpsim.pack(form, "a", values),
        "b": warpsim.pack(form, "b", rng.integers(-100, 100, (64, 8)).astype(np.int8)),
        "c": np.zeros((32, 4), np.uint32),
        "e": warpsim.pack_metadata(form, indices),
    }
    read = words["e"] * (np.arange(32) < 16).astype(np.uint32)[:, None]
    words["d"] = warpsim.execute(form, **words | {"e": read}, undefined="fallback")
    lines = [
        f"[{1000 + at}ns] t{lane:02d}.{name}{register} <= {word:08x}"
        for at, (name, held) in enumerate(words.items())
        for lane, registers in enumerate(held.tolist())
        for register, word in enumerate(registers)
    ]
    (folder / "unit.log").write_text("\n".join(lines) + "\n")


def numerics(folder: Path) -> None:
    """Write A (64, 256) and B (256, 64) in f16, and what a loop in float32 on a processor makes of them."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((64, 256)).astype(np.float16)
    B = rng.standard_normal((256, 64)).astype(np.float16)
    sums = np.zeros((64, 64), np.float32)
    for k in range(256):  # in order, each product and each sum rounded: the same on every machine
        sums += A[:, k : k + 1].astype(np.float32) * B[k].astype(np.float32)
    for name, matrix in (("A", A), ("B", B), ("cpu", sums)):
        np.save(folder / f"{name}.npy", matrix)


def main() -> None:
    """Write all of it."""
    for name, write in (("kernel", kernel), ("rtl", unit), ("numerics", numerics)):
        folder = Path(name)
        folder.mkdir(exist_ok=True)
        write(folder)


if __name__ == "__main__":
    main()
