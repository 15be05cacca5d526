"""Sources for cvt: codes of up to 16 bits in steps, and nasty and random ones beyond."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers.families import usual
from warpsim.machine.bind.value_types import bits_of, dtype_of
from warpsim.machine.opcodes.operation import Operation

Array = npt.NDArray[Any]
SEED = 20
STEPS = {1: 1, 2: usual(5, 1)}  # between codes of a type of so many bytes: an odd one meets all low bits

# Bits of a float that some result cuts off.
_CUTS = {32: (23, 22, 21, 20, 16, 13), 64: (52, 49, 45, 42, 29)}
_FIELDS = {32: (8, 23), 64: (11, 52)}


@cache
def codes_of_float(bits: int) -> Array:
    """Both signs, exponents around everything that happens, fractions around every tie; and random ones."""
    exponent_bits, fraction_bits = _FIELDS[bits]
    middle = (1 << (exponent_bits - 1)) - 1
    near = [*range(-30, 20), 30, 31, 32, 33, 61, 62, 63, 64, 65]
    edges = (-151, -150, -149, -148, -140, -134, -133, -128, -127, -126, -125, 126, 127, 128)
    exponents = {0, 1, 2, 2 * middle - 1, 2 * middle, 2 * middle + 1, *(middle + x for x in (*near, *edges))}
    ones = (1 << fraction_bits) - 1
    fractions = {0, 1, ones, ones - 1, 1 << (fraction_bits - 1)}
    for cut in _CUTS[bits]:
        half = 1 << (cut - 1)
        fractions |= {x & ones for base in (0, 1 << cut, ones >> cut << cut) for x in
                      (base + half - 1, base + half, base + half + 1, base + 1)}  # fmt: skip
    grid = [e << fraction_bits | f for e in exponents if 0 <= e <= 2 * middle + 1 for f in fractions]
    codes = np.array(grid, dtype=f"u{bits // 8}")
    if bits == 64:
        codes = np.concatenate([codes, _flush_limits()])
    sign = codes.dtype.type(1 << (bits - 1))
    rng = np.random.default_rng(SEED)
    codes = rng.permutation(np.concatenate([codes, codes | sign]))
    grid, rest = usual(900, 2500), usual(150, 500)
    return np.concatenate([codes[:grid], _random(bits, rest), _of_ordinary_size(bits, rest)])


def _flush_limits() -> Array:
    limits = [0x3810_0000_0000_0000, 0x380F_FFFF_F000_0000, 0x380F_FFFF_E000_0000]
    return np.array([x + d for x in limits for d in (-1, 0, 1)], dtype=np.uint64)


def _random(bits: int, count: int) -> Array:
    rng = np.random.default_rng(SEED + bits)
    return rng.integers(0, 1 << bits, count, dtype=f"u{bits // 8}")


def _of_ordinary_size(bits: int, count: int) -> Array:
    rng = np.random.default_rng(SEED)
    numbers = rng.normal(size=count) * 2.0 ** rng.integers(-20, 35, count)
    return numbers.astype(f"f{bits // 8}").view(f"u{bits // 8}")


@cache
def integers(bits: int) -> Array:
    """Around every power of two and half-way between the floats there."""
    values = {0, 1, 2, 3, (1 << bits) - 1, (1 << bits) - 2}
    for power in range(2, bits + 1):
        for below in (0, 8, 9, 11, 12, 24, 25, 26, 53, 54, 55):
            part = 1 << max(power - below, 0)
            values |= {(1 << power) + d + s * part for d in (-1, 0, 1) for s in (-1, 0, 1)}
    kept = np.array(sorted(x & ((1 << bits) - 1) for x in values), dtype=f"u{bits // 8}")
    kept = np.random.default_rng(SEED).permutation(np.unique(np.concatenate([kept, ~kept])))
    return np.concatenate([kept[: usual(900, 2500)], _random(bits, usual(100, 300))])


def values_of(type_name: str, meaning: str) -> Array:
    """Bits of a register type; ``meaning`` is the instruction's type."""
    bits = bits_of(type_name)
    if bits <= 16:
        return np.arange(0, 1 << bits, STEPS[bits // 8]).astype(dtype_of(type_name))
    if meaning in ("f32", "f64"):
        return codes_of_float(bits)
    if meaning in ("f16x2", "bf16x2"):
        return _pairs()
    return integers(bits)


def _pairs() -> Array:
    """Half of the 16-bit codes, or all of them, in one half or the other."""
    codes = np.random.default_rng(SEED).permutation(np.arange(1 << 16, dtype=np.uint32))
    lower, upper = codes.reshape(2, -1)[:, : usual(1 << 13, 1 << 15)]
    return lower | upper << np.uint32(16)


def sources_of(operation: Operation, modifiers: tuple[str, ...]) -> tuple[Array, ...]:
    """One array a source, all of one length."""
    meaning = "s32" if modifiers[0] == "pack" else modifiers[-1]
    rng = np.random.default_rng(SEED)
    arrays = []
    for place, name in enumerate(operation.sources):
        is_bits = place > 0 and name == "b32"
        values = _random(32, 4000) if is_bits else values_of(name, meaning)
        arrays.append(rng.permutation(values) if place else values)
    length = min(len(x) for x in arrays)
    return tuple(x[:length] for x in arrays)
