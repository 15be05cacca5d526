"""The kernels of traces/formulas: arguments of a seed, and their references, which lie beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parents[2] / "traces" / "formulas"
_REFERENCES = run_path(str(FOLDER / "references.py"))


class Formula(NamedTuple):
    """A kernel's reference, its arguments by a generator, and the sizes of its launch."""

    reference: Callable[..., Any]
    arguments: Callable[[np.random.Generator], list[Any]]
    sizes: dict[str, Any]
    mistakes: range  # numbers of the mistakes that can be planted


def _weights(random: np.random.Generator) -> list[Any]:
    n, k = 32, 128
    return [
        random.standard_normal((16, k)).astype(np.float16),
        random.integers(0, 256, (k // 2, n)).astype(np.uint8),
        random.integers(0, 16, (k // 32, n)).astype(np.uint8),
        (random.random((k // 32, n)) + 0.5).astype(np.float16),
        np.zeros((16, n), np.float32),
        n,
        k,
    ]


def _rows(random: np.random.Generator) -> list[Any]:
    arrays = [random.standard_normal((20, 8)).astype(np.float32) for _ in range(3)]
    return [*arrays, np.zeros((20, 8), np.float32), 20, 0.35]


def _words(random: np.random.Generator) -> list[Any]:
    a, b = (random.integers(-(2**31), 2**31, (rows, 8)).astype(np.int32) for rows in (12, 20))
    scale = (random.random(20) * 4e-3 + 2e-3).astype(np.float32)
    return [a, b, scale, np.zeros((12, 20), np.int8), 12, 20, 32]


FORMULAS: dict[str, Formula] = {
    "dequantised": Formula(_REFERENCES["dequantised"], _weights, {"grid": 4, "block": 32}, range(1, 6)),
    "causal_rows": Formula(_REFERENCES["causal_rows"], _rows, {"grid": 1, "block": 32}, range(6, 10)),
    "requantised": Formula(
        _REFERENCES["requantised"], _words, {"grid": (2, 2), "block": (16, 8)}, range(10, 13)
    ),
}
