"""The scalar kernels, compiled when first called; those that ``uncompiled`` has too, and binary64's."""

from __future__ import annotations

from .._jit import Array, Operands, Output, Planes, kernel
from .binary64 import ROUNDINGS, multiply_add_chain
from .rounding import Number, packed, rounded, shifted

__all__ = ["ROUNDINGS", "fused_sum", "integer_sum", "multiply_add_chain", "scaled_groups"]

Rule = tuple[int, int, int, int, int]
GroupOperands = tuple[Array, Array, Planes, Array]  # a, b, c, columns
GroupRule = tuple[int, int, int, int, int, int, int]
Place = tuple[int, int, int]

_LOWEST = -1 << 20  # below every exponent
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


# --- the truncated fused dot-product-add, chained over steps ----------------------------------------


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


# --- exactly summed groups, each with its own scale: the 4-bit block-scaled forms -------------------


@kernel
def scaled_groups(
    operands: GroupOperands, scales: tuple[Planes, Planes], rule: GroupRule, output: Output, codes: Array
) -> None:
    """Write the code of every D element into ``codes (batch, m, n)``.

    ``operands = (a, b, c, columns)``: ``a (batch, m, s)`` and ``b (batch, k, n)`` are integers in units that
    make a product an integer times 2**-product_bits. ``scales``: of a ``(significand, exponent, special)`` of
    shape (batch, m, chunks), of b (batch, chunks, n); ``chunk`` logical columns share a scale. ``rule =
    (group, fraction bits, exponent floor, product bits, fraction bits of two scales, of c, chunk)``.
    """
    batches, m, n = codes.shape
    for batch in range(batches):
        for i in range(m):
            for j in range(n):
                number = _element_of_groups(operands, scales, (batch, i, j), rule, output)
                codes[batch, i, j] = packed(number, output)


@kernel
def _element_of_groups(
    operands: GroupOperands, scales: tuple[Planes, Planes], place: Place, rule: GroupRule, output: Output
) -> Number:
    _, fraction_bits, floor, _, _, c_bits, _ = rule
    c = operands[2]
    value, exponent, special = c[0][place], c[1][place], c[2][place]
    if _meets_nan(scales, place):
        special = 2
    if special:
        return value, output[3], special
    top = max(floor, exponent if value != 0 else _LOWEST)
    top = _aligned_groups(operands, scales, place, rule, top)
    kept = shifted(abs(value), fraction_bits - c_bits + exponent - top)
    total = kept if value > 0 else -kept
    total += _total_of_groups(operands, scales, place, rule, top)
    return rounded(total, top - fraction_bits, output)


@kernel
def _meets_nan(scales: tuple[Planes, Planes], place: Place) -> bool:
    """Return whether a scale of the element's row or column is NaN."""
    batch, i, j = place
    found = False
    for q in range(scales[0][0].shape[2]):
        found |= scales[0][2][batch, i, q] != 0 or scales[1][2][batch, q, j] != 0
    return found


@kernel
def _aligned_groups(
    operands: GroupOperands, scales: tuple[Planes, Planes], place: Place, rule: GroupRule, top: int
) -> int:
    """Return the largest of ``top`` and the exponents of the groups that have a product other than 0."""
    a, b, _, columns = operands
    of_a, of_b = scales
    batch, i, j = place
    group, chunk = rule[0], rule[6]
    for start in range(0, columns.shape[2], group):
        q = columns[batch, i, start] // chunk
        if of_a[0][batch, i, q] * of_b[0][batch, q, j] == 0:
            continue
        for s in range(start, start + group):
            if a[batch, i, s] * b[batch, columns[batch, i, s], j] != 0:
                top = max(top, of_a[1][batch, i, q] + of_b[1][batch, q, j])
                break
    return top


@kernel
def _total_of_groups(
    operands: GroupOperands, scales: tuple[Planes, Planes], place: Place, rule: GroupRule, top: int
) -> int:
    """Return the sum of the groups times their scales, each truncated toward zero."""
    a, b, _, columns = operands
    of_a, of_b = scales
    batch, i, j = place
    group, fraction_bits, _, product_bits, scale_bits, _, chunk = rule
    total = 0
    for start in range(0, columns.shape[2], group):
        q = columns[batch, i, start] // chunk
        partial = 0
        for s in range(start, start + group):
            partial += a[batch, i, s] * b[batch, columns[batch, i, s], j]
        partial *= of_a[0][batch, i, q] * of_b[0][batch, q, j]
        exponent = of_a[1][batch, i, q] + of_b[1][batch, q, j]
        term = shifted(abs(partial), fraction_bits - product_bits - scale_bits + exponent - top)
        total += term if partial > 0 else -term
    return total


# --- exact integer sums and bit counts --------------------------------------------------------------


@kernel
def integer_sum(
    operands: tuple[Array, Array, Array, Array], saturate: bool, exclusive: bool, result: Array
) -> None:
    """Write ``c + sum(a * b)`` as int64 codes modulo 2**32 into ``result (batch, m, n)``.

    ``operands = (a, b, c, columns)``. ``saturate`` clamps the final sum to 32 bits first. ``exclusive``
    adds ``a XOR b`` in place of the product, which for bits is AND.
    """
    a, b, c, columns = operands
    batches, m, n = result.shape
    for batch in range(batches):
        for i in range(m):
            for j in range(n):
                total = c[batch, i, j]
                for s in range(columns.shape[2]):
                    x, y = a[batch, i, s], b[batch, columns[batch, i, s], j]
                    total += x ^ y if exclusive else x * y
                if saturate:
                    total = min(max(total, _LOW), _HIGH)
                result[batch, i, j] = total & 0xFFFFFFFF
