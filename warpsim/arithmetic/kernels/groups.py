"""Sums of exactly summed groups, each with its own scale: the 4-bit block-scaled forms."""

from __future__ import annotations

from ._jit import Array, Output, Planes, kernel
from .rounding import packed, rounded, shifted

_LOWEST = -1 << 20


@kernel
def scaled_groups(
    a: Array,
    b: Array,
    columns: Array,
    scale_a: Planes,
    scale_b: Planes,
    c: Planes,
    rule: tuple[int, int, int, int, int, int, int],
    output: Output,
    codes: Array,
) -> None:
    """Write the code of every D element into ``codes (batch, m, n)``.

    ``a (batch, m, s)`` and ``b (batch, k, n)`` are integers in units that make a product an integer
    times 2**-product_bits. ``scale_a = (significand, exponent, special)`` of shape (batch, m, chunks)
    and ``scale_b`` (batch, chunks, n); ``chunk`` logical columns share a scale. ``rule = (group,
    fraction bits, exponent floor, product bits, fraction bits of two scales, of c, chunk)``.
    """
    group, fraction_bits, floor, product_bits, scale_bits, c_bits, chunk = rule
    precision, out_bits, emin, emax, nearest = output
    batches, m, n = codes.shape
    stored = columns.shape[2]
    for batch in range(batches):
        for i in range(m):
            for j in range(n):
                value, exponent = c[0][batch, i, j], c[1][batch, i, j]
                special = c[2][batch, i, j]
                for q in range(scale_a[0].shape[2]):
                    if scale_a[2][batch, i, q] or scale_b[2][batch, q, j]:
                        special = 2
                if special:
                    codes[batch, i, j] = packed(value, emax, special, out_bits, emin, emax)
                    continue
                top = max(floor, exponent if value != 0 else _LOWEST)
                for start in range(0, stored, group):
                    q = columns[batch, i, start] // chunk
                    empty = scale_a[0][batch, i, q] * scale_b[0][batch, q, j] == 0
                    for s in range(start, start + group):
                        if empty:
                            break
                        if a[batch, i, s] * b[batch, columns[batch, i, s], j] != 0:
                            top = max(top, scale_a[1][batch, i, q] + scale_b[1][batch, q, j])
                            break
                total = shifted(abs(value), fraction_bits - c_bits + exponent - top)
                total = total if value > 0 else -total
                for start in range(0, stored, group):
                    q = columns[batch, i, start] // chunk
                    partial = 0
                    for s in range(start, start + group):
                        partial += a[batch, i, s] * b[batch, columns[batch, i, s], j]
                    partial *= scale_a[0][batch, i, q] * scale_b[0][batch, q, j]
                    term_exponent = scale_a[1][batch, i, q] + scale_b[1][batch, q, j]
                    shift = fraction_bits - product_bits - scale_bits + term_exponent - top
                    term = shifted(abs(partial), shift)
                    total += term if partial > 0 else -term
                value, exponent, special = rounded(
                    total, top - fraction_bits, precision, out_bits, emin, emax, nearest
                )
                codes[batch, i, j] = packed(value, exponent, special, out_bits, emin, emax)
