"""The truncated fused dot-product-add, chained over steps."""

from __future__ import annotations

from .._jit import Array, Operands, Output, kernel
from .rounding import Number, packed, rounded, shifted

Rule = tuple[int, int, int, int, int]
Place = tuple[int, int, int]

_LOWEST = -1 << 20  # below every exponent


@kernel
def _special(a: int, b: int, a_special: int, b_special: int) -> tuple[int, int]:
    """Return the product of an Inf or NaN factor: NaN as (0, 2), or Inf as (its sign, 1)."""
    if a_special == 2 or b_special == 2 or a == 0 or b == 0:
        return 0, 2
    return (1 if (a > 0) == (b > 0) else -1), 1


@kernel
def _merge(sign: int, special: int, other_sign: int, other_special: int) -> tuple[int, int]:
    """Return the sum of two special (or finite, 0) terms: NaN wins, opposite infinities make a NaN."""
    if special == 0 or other_special == 2:
        return other_sign, other_special
    if special == 1 and other_special == 1 and sign != other_sign:
        return 0, 2
    return sign, special


@kernel
def fused_sum(operands: Operands, rule: Rule, output: Output, codes: Array) -> None:
    """Write the code of every D element into ``codes (batch, m, n)``.

    ``operands = (a, b, c, columns)``: ``a = (significand, exponent, special)`` of shape (batch, m, s), ``b``
    (batch, k, n), ``c`` (batch, m, n), ``columns`` (batch, m, s); step s multiplies stored column s with row
    ``columns[..., s]`` of b. ``rule = (length, fraction bits, exponent floor, fraction bits of a product,
    fraction bits of c)``.
    """
    batches, m, n = codes.shape
    for batch in range(batches):
        for i in range(m):
            for j in range(n):
                codes[batch, i, j] = packed(_element(operands, (batch, i, j), rule, output), output)


@kernel
def _element(operands: Operands, place: Place, rule: Rule, output: Output) -> Number:
    length, fraction_bits, floor, product_bits, c_bits = rule
    c, stored = operands[2], operands[3].shape[2]
    value, exponent, special = c[0][place], c[1][place], c[2][place]
    value_bits = c_bits
    for start in range(0, stored, length):
        span = (start, min(start + length, stored))
        top = max(floor, exponent if value != 0 else _LOWEST)
        sign = value if special == 1 else 0
        sign, special, top = _aligned(operands, place, span, (sign, special, top))
        if special:
            value, exponent = sign, output[3]
            continue
        kept = shifted(abs(value), fraction_bits - value_bits + exponent - top)
        total = kept if value > 0 else -kept
        total += _total(operands, place, span, fraction_bits - product_bits - top)
        value, exponent, special = rounded(total, top - fraction_bits, output)
        value_bits = output[1]
    return value, exponent, special


@kernel
def _aligned(operands: Operands, place: Place, span: tuple[int, int], start: Number) -> Number:
    """Return sign and kind of the special terms (kind 0: none), and the largest exponent of the products.

    ``start`` are those of the accumulator.
    """
    a, b, _, columns = operands
    batch, i, j = place
    sign, special, top = start
    for s in range(span[0], span[1]):
        k = columns[batch, i, s]
        x, y = a[0][batch, i, s], b[0][batch, k, j]
        x_special, y_special = a[2][batch, i, s], b[2][batch, k, j]
        if x_special or y_special:
            term_sign, term_special = _special(x, y, x_special, y_special)
            sign, special = _merge(sign, special, term_sign, term_special)
        elif x != 0 and y != 0:
            top = max(top, a[1][batch, i, s] + b[1][batch, k, j])
    return sign, special, top


@kernel
def _total(operands: Operands, place: Place, span: tuple[int, int], scale: int) -> int:
    """Return the sum of the products times 2**scale, each truncated toward zero."""
    a, b, _, columns = operands
    batch, i, j = place
    total = 0
    for s in range(span[0], span[1]):
        k = columns[batch, i, s]
        product = a[0][batch, i, s] * b[0][batch, k, j]
        term = shifted(abs(product), scale + a[1][batch, i, s] + b[1][batch, k, j])
        total += term if product > 0 else -term
    return total
