"""Plans of matrix products: how a rule becomes passes of a compiled kernel, and the constants that decode a
format.

Knows formats, rules and the CPU's features; does not know where operands lie, nor how a panel is summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ...base.errors import present
from ...isa.formats import FORMATS, Format
from ...isa.products import Product
from ...isa.rules import EmulatedF8, FusedSum, Rule
from .fused_rules import applies as applies
from .fused_rules import order_of, step_of
from .kernels import decode
from .kernels.hardware import has_roundings
from .kernels.llvm.floors import MOST_FRACTION_BITS
from .kernels.variants import LIFT_LOW, NARROWEST, WIDEST, Variant
from .planes import planes

LANES = 64  # the width of a panel is a multiple of them


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How an instruction's rule becomes passes of a kernel.

    ``order``: the stored column of a pass for each of its products. For sparse A, ``units`` and ``bases``
    give the unit of the pass that each product belongs to and the start of that unit's chunk.
    """

    product: Product
    variant: Variant
    numbers: tuple[int, int, int]
    order: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    bases: npt.NDArray[np.int64]
    unit: int

    @property
    def products(self) -> int:
        """Products of a pass."""
        return self.variant.products

    @property
    def depth(self) -> int:
        """Rows of B of a pass."""
        return self.products * (2 if self.variant.sparse else 1)

    @property
    def exponents(self) -> npt.DTypeLike:
        """Dtype of the planes of exponents."""
        return np.uint8 if self.variant.compact else np.int16

    def passes(self, instructions: int) -> int:
        """Return passes of a number of instructions along k."""
        return instructions * self.product.stored_k // self.products


def plan_of(product: Product, rule: Rule, columns: int | None = None) -> Plan:
    """Return the plan of a rule that ``applies``, for panels of so many ``columns``; None: the best plan for
    many columns.
    """
    emulated = isinstance(rule, EmulatedF8)
    step = present(step_of(rule), "step")
    stored = product.stored_k
    length = stored // 2 if emulated else min(step.length, stored)
    sparse = product.pattern is not None
    steps = 2 if emulated else 1
    bytewise = columns is None and product.scale is None
    compact = bytewise and are_narrow(product)
    relative = bytewise and not compact and steps == 1 and length % 4 == 0 and step.output.format == "f32"
    stride = columns or _stride(length * steps, sparse, compact or relative)
    lanes = LANES if length <= 8 and not sparse else LANES // 2
    variant = Variant(
        width=min(lanes, stride & -stride),
        stride=stride,
        length=length,
        steps=steps,
        half=step.output.format == "f16",
        emulated=emulated,
        scaled=product.scale is not None,
        sparse=sparse,
        compact=compact,
        relative=relative,
        short=step.output.precision < 24 and step.output.format == "f32",
        floored=compact and not emulated and _has_floors(product, step),
    )
    order = np.array(order_of(product, rule)[: variant.products])
    chunk, kept, unit = _pattern(product)
    return Plan(
        product=product,
        variant=variant,
        numbers=(step.fraction_bits, step.exponent_floor, step.output.precision),
        order=order,
        units=order // unit,
        bases=order // (kept * unit) * chunk + order % unit,
        unit=unit,
    )


def _stride(products: int, sparse: bool, bytewise: bool) -> int:
    """Return columns of a panel: a pass of its planes, at 5 or 6 bytes, should stay in the first-level
    cache, of 48 KiB.
    """
    if bytewise and not sparse:
        return 512 if products <= 8 else 256
    rows = products if bytewise else products * (1 + sparse)
    return 256 if rows <= 16 else 128


def are_narrow(product: Product) -> bool:
    """Return whether the exponents of A and B are those of f16 at most, in which other formats may be
    stored: they fit bytes.
    """
    return all(
        element.minimum_exponent >= NARROWEST and element.bias <= WIDEST for element in (product.a, product.b)
    )


def _has_floors(product: Product, step: FusedSum) -> bool:
    """Return whether kernels.floors computes the sums, on a CPU with embedded rounding."""
    formats = product.a, product.b
    lowest = min(element.minimum_exponent - element.fraction_bits for element in formats)
    return step.fraction_bits <= MOST_FRACTION_BITS and lowest >= -LIFT_LOW and has_roundings()


def _pattern(product: Product) -> tuple[int, int, int]:
    """Return elements of a chunk, units kept of it and elements of a unit (1, 1, 1 for dense A)."""
    pattern = product.pattern
    return (pattern.chunk, pattern.kept, pattern.unit) if pattern else (1, 1, 1)


@cache
def coding_of(element: Format, *, as_half: bool = False, shift: int = 0, lift: int = 0) -> decode.Coding:
    """Return the constants with which kernels.decode decodes a format: ``as_half``, with the exponents of
    f16.

    ``shift``: the lowest bit of the code in its byte; ``lift`` is added to exponents in planes of bytes.
    """
    ignored = element.ignored_bits
    magnitude = (element.mask & ~element.sign_bit) & ~((1 << ignored) - 1)
    special = planes(np.arange(1 << min(element.bits, 16)).astype(element.code_dtype), element).special
    first = int(np.argmax(special != 0)) if element.bits <= 16 else magnitude & ~0x7FFFFF
    return (
        element.bits + shift,
        shift,
        magnitude,
        element.fraction_bits + ignored,
        element.bias,
        first or 1 << 30,
        FORMATS["f16"].minimum_exponent if as_half else element.minimum_exponent,
        lift,
    )
