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

from ..errors import present
from ..isa.formats import FORMATS, Format
from ..isa.products import Codes, Operands, Product
from ..isa.rules import FusedMultiplyAdd, Rule, ScaledGroups, SoftwareQuad
from .kernels._jit import interpreted
from .kernels.chains import fused_chain, half_quad_chain, quad_chain
from .kernels.group_chains import fits, group_chain
from .kernels.hardware import has_fused, rounding
from .kernels.scalar.binary64 import ROUNDINGS
from .planes import Planes, canonical, planes

_LOWEST_FLOOR = -600  # below, powers of two that align to it would be subnormal


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


# --- 4-bit block-scaled forms --------------------------------------------------------------------------


def _groups_fit(product: Product, rule: ScaledGroups) -> bool:
    terms = product.stored_k // rule.group + 1
    largest = _largest(product.a) * _largest(product.b)
    scale_bits = 2 * present(product.scale, "scale").fraction_bits
    whole = rule.output.format == "f32" and product.stored_k % rule.group == 0
    if not whole or rule.exponent_floor < _LOWEST_FLOOR:
        return False
    return fits(rule.group, largest, scale_bits, rule.fraction_bits, terms)


def _units(codes: Codes, element: Format) -> npt.NDArray[np.int16]:
    """Return the values in units of the format's smallest subnormal number."""
    number = planes(codes, element)
    return np.ascontiguousarray(number.significand << (number.exponent - element.minimum_exponent), np.int16)


def _largest(element: Format) -> int:
    every = planes(np.arange(1 << element.bits, dtype=element.code_dtype), element)
    return int(np.max(np.abs(every.significand) << (every.exponent - element.minimum_exponent)))


def _groups(operands: Operands, rule: ScaledGroups) -> Codes:
    product = operands.product
    scale = present(product.scale, "scale")
    codes = (present(operands.scale_a, "scale a"), present(operands.scale_b, "scale b"))
    scales = (_arrays(planes(codes[0], scale)), _arrays(planes(codes[1], scale)))
    product_bits = sum(x.fraction_bits - x.minimum_exponent for x in (product.a, product.b))
    numbers = (
        product.stored_k,
        rule.group,
        product.shape.k // product.scale_chunks,
        rule.fraction_bits,
        rule.exponent_floor,
        product_bits + 2 * scale.fraction_bits,
        rule.output.precision,
    )
    a, b, result = (
        _units(operands.a, product.a),
        _units(operands.b, product.b),
        _single(operands.c, product.c),
    )
    group_chain((a, b, _columns(operands)), scales, numbers, rule.output.nearest, result)
    return canonical(result, product.d)


def _columns(operands: Operands) -> npt.NDArray[np.intp]:
    if operands.columns is not None:
        return np.ascontiguousarray(operands.columns)
    return np.ascontiguousarray(np.broadcast_to(np.arange(operands.a.shape[2]), operands.a.shape))


def _arrays(number: Planes) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    return (
        np.ascontiguousarray(number.significand, np.int32),
        np.ascontiguousarray(number.exponent),
        np.ascontiguousarray(number.special),
    )


_ABLE: dict[type[Rule], Callable[[Product, Any], bool]] = {
    FusedMultiplyAdd: _has_fused,
    SoftwareQuad: _always,
    ScaledGroups: _groups_fit,
}
_RULES: dict[type[Rule], Callable[[Operands, Any], Codes]] = {
    FusedMultiplyAdd: _multiply_add,
    SoftwareQuad: _quads,
    ScaledGroups: _groups,
}
