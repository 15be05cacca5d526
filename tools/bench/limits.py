"""Say what limits the sums of whole products here: ``python -m tools.bench.limits [--size 1024]``.

For each family the operations that a product needs, what a loop of nothing else reaches (bare_loops), and
what ``gemm`` reaches, in billions of products a second of one thread; ratios to NumPy's float32 ``matmul``
are those of ``python -m tools.bench``. Prints the table of limits.md in this folder.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
os.environ.pop("OPENBLAS_CORETYPE", None)  # BLAS has kernels for this processor, not for another

import sys
from datetime import UTC, datetime

from warpsim.sums.arithmetic.kernels.hardware import has_roundings

from .bare_loops import COLUMNS, LOOPS, PRODUCTS, ROUNDS, bare_loop
from .measure import best, matmul_seconds
from .processor import machine
from .products import product_cases

_BYTES = "2 mul, cut, add; bytes"
# case of tools.bench -> operations of a product; loops of bare_loops and how often a product passes each
FAMILIES: dict[str, tuple[str, dict[str, float]]] = {
    "f16 to f32, 16 fused (sm_90a)": (_BYTES, {"cut": 1, "largest": 1}),
    "f16 to f32, 8 fused (sm_80)": (_BYTES, {"cut": 1, "largest": 1}),
    "bf16, 16 fused (sm_90a)": (_BYTES, {"cut": 1, "largest": 1}),
    "bf16, 8 fused (sm_80)": (_BYTES, {"cut": 1, "largest": 1}),
    "tf32, 8 fused (sm_90a)": (_BYTES, {"cut": 1, "largest": 1}),
    "tf32, 4 fused (sm_80)": (_BYTES, {"cut": 1, "largest": 1}),
    "f16 to f16, 16 fused (sm_90a)": (_BYTES, {"cut": 1, "largest": 1}),
    "f16 to f16, 8 fused (sm_80)": (_BYTES, {"cut": 1, "largest": 1}),
    "e4m3 to f32, F 25, 32 fused (sm_120a)": (_BYTES, {"cut": 1, "largest": 1}),
    "e4m3 to f32, F 13, 16 fused (sm_89)": ("fma; bytes; 3 of bytes", {"floored": 1, "largest": 2.5}),
    "e4m3 to f32, emulated (sm_90a)": (_BYTES, {"cut": 1, "largest": 1}),
    "f16 2:4 to f32, 16 fused (sm_90a)": (f"half of: {_BYTES}", {"cut": 0.5, "largest": 0.5}),
    "f16 2:4 to f32, from the matrix (sm_90a)": (f"half of: {_BYTES}", {"cut": 0.5, "largest": 0.5}),
    "f64 (sm_90)": ("fma", {"fused": 1}),
    "f16 m8n8k4 in software (sm_80)": ("mul, 1.25 add", {"quads": 1}),
    "mxf4 (sm_120a)": ("mul, add of words", {"words": 1}),
    "nvf4 (sm_120a)": ("mul, add of words", {"words": 1}),
    "s8": ("a quarter of a dot of bytes", {"octets": 1}),
}


def _rates() -> dict[str, float]:
    """Return billions of products a second of each bare loop that this processor has."""
    rates = {}
    for name, (*_, each, embedded, _) in LOOPS.items():
        if embedded and not has_roundings():
            continue
        loop = bare_loop(name)
        rates[name] = PRODUCTS * COLUMNS * ROUNDS * each / best(loop, 15) / 1e9
    return rates


def _rows(size: int, repeat: int) -> list[str]:
    rates = _rates()
    yardstick = size**3 / matmul_seconds(size, repeat) / 1e9
    rows = [f"| NumPy's float32 `matmul` | | | {yardstick:.1f} | | 1 | |"]
    cases = {case.name: case for case in product_cases(size)}
    for name, (operations, loops) in FAMILIES.items():
        result = cases[name].run(repeat)
        ours = size**3 / result.seconds / 1e9
        missing = not loops.keys() <= rates.keys()
        bare = 0.0 if missing else 1 / sum(share / rates[loop] for loop, share in loops.items())
        limit = "" if missing else f"{bare:.1f} | {ours:.1f} | {ours / bare:.2f}"
        figures = limit or f" | {ours:.1f} | "
        rows.append(f"| {name} | {operations} | {figures} | {result.figure:.3f} | {result.goal or ''} |")
    return rows


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.limits", description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="m = n = k of the products")
    parser.add_argument("--repeat", type=int, default=7, help="times each case is run")
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine()}\n")
    print("| family | operations of a product | bare loops | `gemm` | of them | x matmul | goal |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for row in _rows(options.size, options.repeat):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
