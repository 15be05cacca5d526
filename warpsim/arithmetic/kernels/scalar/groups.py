"""Sums of exactly summed groups, each with its own scale: the 4-bit block-scaled forms."""

from __future__ import annotations

from .._jit import Array, Output, Planes, kernel
from .rounding import Number, packed, rounded, shifted

_LOWEST = -1 << 20
Operands = tuple[Array, Array, Planes, Array]  # a, b, c, columns
Rule = tuple[int, int, int, int, int, int, int]
Place = tuple[int, int, int]


@kernel
def scaled_groups(
    operands: Operands, scales: tuple[Planes, Planes], rule: Rule, output: Output, codes: Array
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
                number = _element(operands, scales, (batch, i, j), rule, output)
                codes[batch, i, j] = packed(number, output)


@kernel
def _element(
    operands: Operands, scales: tuple[Planes, Planes], place: Place, rule: Rule, output: Output
) -> Number:
    _, fraction_bits, floor, _, _, c_bits, _ = rule
    c = operands[2]
    value, exponent, special = c[0][place], c[1][place], c[2][place]
    if _meets_nan(scales, place):
        special = 2
    if special:
        return value, output[3], special
    top = max(floor, exponent if value != 0 else _LOWEST)
    top = _aligned(operands, scales, place, rule, top)
    kept = shifted(abs(value), fraction_bits - c_bits + exponent - top)
    total = kept if value > 0 else -kept
    total += _total(operands, scales, place, rule, top)
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
def _aligned(operands: Operands, scales: tuple[Planes, Planes], place: Place, rule: Rule, top: int) -> int:
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
def _total(operands: Operands, scales: tuple[Planes, Planes], place: Place, rule: Rule, top: int) -> int:
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
