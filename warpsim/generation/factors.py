"""What every output of a batch is made of: its pairs of factors, their products, C, and block scales.

Operands are decoded once, and each output has its own row of factors: whoever looks at some outputs alone
takes those rows (``chosen``). Knows which element of A meets which of B; does not know how they are summed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import present
from ..isa.architectures import EmulatedF8, Rule
from ..isa.formats import FORMATS, Format
from ..isa.instruction import Instruction, Operands
from .arithmetic import FINITE, Array, Numbers, bit_length, decode, product

F16 = FORMATS["f16"]
_WORD = 30  # fraction bits of factors whose products an int64 holds


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Exact numbers of every output, ``(tiles, m, n)`` or, of chosen outputs, ``(outputs,)``.

    ``a`` and ``b`` have an axis of stored columns more, as the rule aligns them; so have ``products``,
    without block scales, and ``scales``, the product of both. ``c`` has none.
    """

    instruction: Instruction
    a: Numbers
    b: Numbers
    products: Numbers
    c: Numbers
    scales: Numbers | None

    def chosen(self, outputs: Array) -> Factors:
        """Some of the outputs, by a mask; ``(outputs, stored)``."""
        scales = None if self.scales is None else self.scales[outputs]
        numbers = {name: getattr(self, name)[outputs] for name in ("a", "b", "products", "c")}
        return replace(self, scales=scales, **numbers)

    @property
    def subnormal(self) -> Array:
        """Outputs with a subnormal factor, or a subnormal C."""
        a, b, c = self.instruction.a, self.instruction.b, self.instruction.c
        factors = is_subnormal(self.a, a).any(-1) | is_subnormal(self.b, b).any(-1)
        flags: Array = factors | is_subnormal(self.c, c)
        return flags


def factors_of(operands: Operands, rule: Rule) -> Factors:
    """The factors of every output of a batch of operands."""
    form = operands.instruction
    a, b = (_factor(operands, side, rule) for side in "ab")
    scales = None if form.scale is None else _scales(operands)
    c = decode(operands.c, form.c)
    return Factors(instruction=form, a=a, b=b, products=product(a, b), c=c, scales=scales)


def paired(values: Array, operands: Operands, side: str) -> Array:
    """An array like A ``(tiles, m, stored)`` or B ``(tiles, k, n)`` as ``(tiles, m, n, stored)``: the factor
    of each product."""
    tiles, rows, stored = operands.a.shape
    columns = operands.b.shape[2]
    if side == "a":
        return np.broadcast_to(values[:, :, None], (tiles, rows, columns, stored))
    if operands.columns is None:
        return np.broadcast_to(values.transpose(0, 2, 1)[:, None], (tiles, rows, columns, stored))
    tile, column = np.arange(tiles)[:, None, None, None], np.arange(columns)[None, None, :, None]
    return values[tile, operands.columns[:, :, None, :], column]


def _factor(operands: Operands, side: str, rule: Rule) -> Numbers:
    element = operands.instruction.format(side)
    numbers = decode(getattr(operands, side), element)
    if isinstance(rule, EmulatedF8):
        numbers = as_f16(numbers, element)
    if element.fraction_bits > _WORD:
        numbers = numbers.exact()
    return Numbers(**{name: paired(array, operands, side) for name, array in vars(numbers).items()})


def as_f16(numbers: Numbers, element: Format) -> Numbers:
    """Exactly the same numbers; what was subnormal in a smaller format has its leading one in front."""
    room = element.fraction_bits + 1 - bit_length(np.abs(numbers.significand))
    exponent = np.maximum(numbers.exponent - room, F16.minimum_exponent)
    return replace(numbers, exponent=np.where(numbers.nonzero, exponent, F16.minimum_exponent))


def is_subnormal(numbers: Numbers, element: Format) -> Array:
    """Which decoded numbers of a format are subnormal."""
    small = np.abs(numbers.significand) < 1 << element.fraction_bits
    flags: Array = small & numbers.nonzero & (numbers.special == FINITE)
    return flags.astype(np.bool_)


def flushed(numbers: Numbers, element: Format) -> Numbers:
    """Subnormal numbers as zeros (no chip reads them so)."""
    kept = np.where(is_subnormal(numbers, element), 0, numbers.significand)
    return replace(numbers, significand=kept)


def _scales(operands: Operands) -> Numbers:
    """scale_a * scale_b of each product, ``(tiles, m, n, stored)``."""
    instruction = operands.instruction
    scale = present(instruction.scale, "scale")
    scale_a = present(operands.scale_a, "scale a")
    scale_b = present(operands.scale_b, "scale b")
    a: Any = decode(scale_a, scale)[:, :, None, :]
    b: Any = decode(scale_b.swapaxes(1, 2), scale)[:, None, :, :]
    both = product(a, b)  # (tiles, m, n, chunks)
    stored = operands.a.shape[2]
    chunk = np.arange(stored) * instruction.scale_chunks // stored
    return both[..., chunk]
