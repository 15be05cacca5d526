"""The truncated fused dot-product-add, chained over steps."""

from __future__ import annotations

from ._jit import Array, Output, Planes, kernel
from .rounding import packed, rounded, shifted

_LOWEST = -1 << 20  # below every exponent


@kernel
def _special(a: int, b: int, a_special: int, b_special: int) -> tuple[int, int]:
    """Return what a product with an Inf or NaN factor is: NaN as (0, 2), or Inf as (its sign, 1)."""
    if a_special == 2 or b_special == 2 or a == 0 or b == 0:
        return 0, 2
    return (1 if (a > 0) == (b > 0) else -1), 1


@kernel
def _merge(sign: int, special: int, other_sign: int, other_special: int) -> tuple[int, int]:
    """Return two special (or finite, 0) terms added: NaN wins, opposite infinities make one."""
    if special == 0 or other_special == 2:
        return other_sign, other_special
    if special == 1 and other_special == 1 and sign != other_sign:
        return 0, 2
    return sign, special


@kernel
def fused_sum(
    a: Planes,
    b: Planes,
    columns: Array,
    c: Planes,
    rule: tuple[int, int, int, int, int],
    output: Output,
    codes: Array,
) -> None:
    """Write the code of every D element into ``codes (batch, m, n)``.

    ``a = (significand, exponent, special)`` of shape (batch, m, s), ``b`` (batch, k, n), ``c``
    (batch, m, n), ``columns`` (batch, m, s); step s multiplies stored column s with row
    ``columns[..., s]`` of b. ``rule = (length, fraction bits, exponent floor, fraction bits of a
    product, fraction bits of c)``; ``output`` is rounded's last five arguments.
    """
    length, fraction_bits, floor, product_bits, c_bits = rule
    precision, out_bits, emin, emax, nearest = output
    batches, m, n = codes.shape
    stored = columns.shape[2]
    for batch in range(batches):
        for i in range(m):
            for j in range(n):
                value = c[0][batch, i, j]
                exponent = c[1][batch, i, j]
                special = c[2][batch, i, j]
                value_bits = c_bits
                for start in range(0, stored, length):
                    stop = min(start + length, stored)
                    top = max(floor, exponent if value != 0 else _LOWEST)
                    sign = value if special == 1 else 0
                    for s in range(start, stop):
                        k = columns[batch, i, s]
                        x, y = a[0][batch, i, s], b[0][batch, k, j]
                        x_special, y_special = a[2][batch, i, s], b[2][batch, k, j]
                        if x_special or y_special:
                            term_sign, term_special = _special(x, y, x_special, y_special)
                            sign, special = _merge(sign, special, term_sign, term_special)
                        elif x != 0 and y != 0:
                            top = max(top, a[1][batch, i, s] + b[1][batch, k, j])
                    if special:
                        value, exponent = sign, emax
                        continue
                    total = shifted(abs(value), fraction_bits - value_bits + exponent - top)
                    total = total if value > 0 else -total
                    for s in range(start, stop):
                        k = columns[batch, i, s]
                        product = a[0][batch, i, s] * b[0][batch, k, j]
                        term_exponent = a[1][batch, i, s] + b[1][batch, k, j]
                        term = shifted(abs(product), fraction_bits - product_bits + term_exponent - top)
                        total += term if product > 0 else -term
                    value, exponent, special = rounded(
                        total, top - fraction_bits, precision, out_bits, emin, emax, nearest
                    )
                    value_bits = out_bits
                codes[batch, i, j] = packed(value, exponent, special, out_bits, emin, emax)
