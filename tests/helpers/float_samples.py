"""Sources that break floating-point arithmetic: bits of every class, and those that meet at the edges.

Knows bit fields only, never how a result is computed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.helpers.slow_floats import KINDS

Bits = npt.NDArray[np.uint64]


def nasty(name: str) -> list[int]:
    """Bits of zeros, subnormals, the smallest and largest, powers of two, infinities and NaN, both signs."""
    kind = KINDS[name]
    step = 1 << kind.precision - 1
    one = kind.bias * step
    magnitudes = {0, 1, 2, 3, step // 2, step - 1, step, step + 1, 2 * step, 3 * step - 1}
    magnitudes |= {one - step, one - 1, one, one + 1, one + step // 2, one + step - 1, one + step}
    magnitudes |= {one + 2 * step + 1, one - kind.precision * step, one + kind.precision * step, one // 2}
    magnitudes |= {one // 2 + 1, one // 2 // step * step - 1, (one + kind.infinity) // 2 // step * step}
    magnitudes |= {kind.infinity - step, kind.infinity - 1, kind.infinity, kind.infinity + 1}
    magnitudes |= {kind.infinity + step // 2 | 5, kind.sign - 1}
    return sorted(magnitudes | {magnitude | kind.sign for magnitude in magnitudes})


def random(name: str, count: int, rng: np.random.Generator) -> Bits:
    """Bits of which half are uniform, and half are close to 1.0 and have few fraction bits set."""
    kind = KINDS[name]
    bits = rng.integers(0, 1 << kind.bits, count, np.uint64)
    field = rng.integers(
        kind.bias - min(2 * kind.precision, kind.bias - 1), kind.bias + kind.precision, count
    )
    fraction = rng.integers(0, 1 << kind.precision - 1, count, np.uint64)
    fraction &= rng.integers(0, 1 << kind.precision - 1, count, np.uint64)
    sign = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(kind.bits - 1)
    near = sign | field.astype(np.uint64) << np.uint64(kind.precision - 1) | fraction
    return np.where(rng.integers(0, 2, count) == 0, bits, near)


def sources(names: list[str], count: int, seed: int) -> list[Bits]:
    """Columns of bits, one a source: up to ``count`` nasty ones against each other, and ``count`` random."""
    rng = np.random.default_rng([seed, len(names)])
    edges = [np.array(nasty(name), np.uint64) for name in names]
    total = int(np.prod([len(edge) for edge in edges]))
    chosen = rng.permutation(total)[:count] if total > count else np.arange(total)
    index = np.unravel_index(chosen, [len(edge) for edge in edges])
    crossed = [edge[where] for edge, where in zip(edges, index, strict=True)]
    return [
        np.concatenate([column, random(name, count, rng)])
        for column, name in zip(crossed, names, strict=True)
    ]
