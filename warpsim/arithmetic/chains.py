"""Rules without a panel kernel, computed a vector of columns at a time: f64, m8n8k4 in software, 4-bit forms.

Takes operands of any number of instructions along k, whose steps follow each other; C and D then have the
same format. Knows formats and rules; does not know lanes. Where the compiler, the CPU or a rule's numbers do
not allow it (``applies``), numerics computes the same bits element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..isa.formats import FORMATS, Format
from ..isa.products import Codes, Operands, Product
from ..isa.rules import FusedMultiplyAdd, Rule, ScaledGroups, SoftwareQuad
from . import group_products
from .kernels._jit import interpreted
from .kernels.chains import fused_chain, half_quad_chain, quad_chain
from .kernels.hardware import has_fused, rounding
from .kernels.scalar.binary64 import ROUNDINGS
from .planes import canonical


def applies(product: Product, rule: Rule) -> bool:
    """Return whether ``compute`` takes this rule here."""
    able = _ABLE.get(type(rule))
    return able is not None and not interpreted() and able(product, rule)


def compute(operands: Operands, rule: Rule) -> Codes:
    """Return codes of D ``(batch, m, n)``, for a rule that ``applies``; the caller sets the default
    environment.
    """
    return _RULES[type(rule)](operands, rule)


# --- f64 -----------------------------------------------------------------------------------------------


def _has_fused(product: Product, rule: FusedMultiplyAdd) -> bool:
    return has_fused()


def _multiply_add(operands: Operands, rule: FusedMultiplyAdd) -> Codes:
    a, b = (np.ascontiguousarray(codes).view(np.float64) for codes in (operands.a, operands.b))
    result = np.array(operands.c, order="C").view(np.float64)
    with rounding(ROUNDINGS[operands.product.rounding]):
        fused_chain(a, b, result)
    return canonical(result, operands.product.d)


# --- m8n8k4 in software --------------------------------------------------------------------------------


def _always(product: Product, rule: SoftwareQuad) -> bool:
    return True


def _quads(operands: Operands, rule: SoftwareQuad) -> Codes:
    product = operands.product
    a, b = _single(operands.a, product.a), _single(operands.b, product.b)
    result = _single(operands.c, product.c)
    half = product.d is FORMATS["f16"]
    (half_quad_chain if half else quad_chain)(a, b, result)
    with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
        return canonical(result.astype(product.d.dtype), product.d)


def _single(codes: Codes, element: Format) -> npt.NDArray[np.float32]:
    """Return values of f16 or f32 codes, in a new array."""
    with np.errstate(invalid="ignore"):
        return np.array(np.ascontiguousarray(codes).view(element.dtype).astype(np.float32), order="C")


_ABLE: dict[type[Rule], Callable[[Product, Any], bool]] = {
    FusedMultiplyAdd: _has_fused,
    SoftwareQuad: _always,
    ScaledGroups: group_products.applies,
}
_RULES: dict[type[Rule], Callable[[Operands, Any], Codes]] = {
    FusedMultiplyAdd: _multiply_add,
    SoftwareQuad: _quads,
    ScaledGroups: group_products.compute,
}
