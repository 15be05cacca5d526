"""What every output of a batch is made of: its pairs of factors, their products, C, and block scales.

Operands are decoded once, and each output has its own row of factors: a look at some outputs alone
takes those rows (``chosen``). Knows which element of A meets which of B; does not know how they are summed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....base.errors import present
from ....isa.formats import FORMATS, Format
from ....isa.products import Operands, Product
from ....isa.rules import EmulatedF8, Rule
from .exact_numbers import Array, decode, product
from .terms import Terms, terms_of, times

F16 = FORMATS["f16"]
_WORD = 30  # fraction bits of factors whose products an int64 holds


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Exact numbers of every output, ``(tiles, m, n)`` or, of chosen outputs, ``(outputs,)``.

    Terms where the rule aligns sums, otherwise Numbers. ``a`` and ``b`` have an axis of stored columns
    more, as the rule reads them; so have ``products``, without block scales, and ``scales``, the product of
    both. ``c`` has none. Of chosen outputs the factors may be left out.
    """

    product: Product
    a: Any
    b: Any
    products: Any
    c: Any
    scales: Terms | None

    def chosen(self, outputs: Array, *, whole: bool) -> Factors:
        """Return some of all outputs, by a mask; with their factors if ``whole``."""
        names = ("products", "c", "a", "b") if whole else ("products", "c")
        numbers = np.flatnonzero(outputs)
        found = {name: getattr(self, name).chosen(numbers) for name in names}
        scales = None if self.scales is None else self.scales.chosen(numbers)
        return replace(self, **{"a": None, "b": None, "scales": scales} | found)

    @property
    def subnormal(self) -> Array:
        """Outputs with a subnormal factor, or a subnormal C."""
        form = self.product
        factors = self.a.subnormal(form.a).any(-1) | self.b.subnormal(form.b).any(-1)
        flags: Array = factors | self.c.subnormal(form.c)
        return flags


def factors_of(operands: Operands, rule: Rule) -> Factors:
    """Return the factors of every output of a batch of operands."""
    form, aligned = operands.product, rule.aligned is not None
    a, b = (_factor(operands, side, rule) for side in "ab")
    scales = None if form.scale is None else _scales(operands)
    c = decode(operands.c, form.c)
    return Factors(
        product=form,
        a=a,
        b=b,
        products=times(a, b).outermost if aligned else product(a, b),
        c=terms_of(c) if aligned else c,
        scales=scales,
    )


def broadcast_factors(values: Array, operands: Operands, side: str) -> Array:
    """Return an array like A ``(tiles, m, stored)`` or B ``(tiles, k, n)`` as ``(tiles, m, n, stored)``:
    the factor of each product."""
    tiles, rows, stored = operands.a.shape
    columns = operands.b.shape[2]
    if side == "a":
        return np.broadcast_to(values[:, :, None], (tiles, rows, columns, stored))
    if operands.columns is None:
        return np.broadcast_to(values.transpose(0, 2, 1)[:, None], (tiles, rows, columns, stored))
    tile, column = np.arange(tiles)[:, None, None, None], np.arange(columns)[None, None, :, None]
    return values[tile, operands.columns[:, :, None, :], column]


def _factor(operands: Operands, side: str, rule: Rule) -> Any:
    element = operands.product.format(side)
    numbers: Any = decode(getattr(operands, side), element)
    if rule.aligned is not None:
        numbers = terms_of(numbers)
        if isinstance(rule, EmulatedF8):
            numbers = as_f16(numbers)
    elif element.fraction_bits > _WORD:
        numbers = numbers.exact()
    kind = type(numbers)
    return kind(**{name: broadcast_factors(array, operands, side) for name, array in vars(numbers).items()})


def as_f16(numbers: Terms) -> Terms:
    """Return the same values as f16: subnormal numbers of a smaller format have leading 1 bits in front."""
    lifted = numbers.lifted(F16.minimum_exponent)
    return replace(lifted, exponent=np.where(lifted.nonzero, lifted.exponent, F16.minimum_exponent))


def as_stored(numbers: Terms, element: Format) -> Terms:
    """Return the same values with the exponents that their codes have in a format."""
    return numbers.lifted(element.minimum_exponent)


def _scales(operands: Operands) -> Terms:
    """Return scale_a * scale_b of each product, ``(tiles, m, n, stored)``."""
    form = operands.product
    scale = present(form.scale, "scale")
    scale_a = present(operands.scale_a, "scale a")
    scale_b = present(operands.scale_b, "scale b")
    a = terms_of(decode(scale_a, scale))[:, :, None, :]
    b = terms_of(decode(scale_b.swapaxes(1, 2), scale))[:, None, :, :]
    both = times(a, b)  # (tiles, m, n, chunks)
    stored = operands.a.shape[2]
    chunk = np.arange(stored) * form.scale_chunks // stored
    return both[..., chunk].outermost
