"""Rules without a panel kernel, computed a vector of columns at a time: f64, m8n8k4 in software, 4-bit forms.

Takes operands of any number of instructions along k, whose steps follow each other; C and D then have the
same format. Knows formats and rules; does not know lanes. Where the compiler, the CPU or a rule's numbers do
not allow it (``applies``), numerics computes the same bits element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.formats import FORMATS, Format
from ...isa.products import Codes, Operands, Product
from ...isa.rules import FusedMultiplyAdd, Rule, ScaledGroups, SoftwareQuad
from . import group_products
from .kernels._jit import interpreted
from .kernels.chains import chain_kernel, half_quad_chain
from .kernels.hardware import has_fused, rounding
from .kernels.llvm.chain_blocks import LANES, ROWS
from .kernels.scalar.binary64 import ROUNDINGS
from .planes import canonical

Floats = npt.NDArray[Any]


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
    a, b, c = (np.ascontiguousarray(codes).view(np.float64) for codes in (operands.a, operands.b, operands.c))
    with rounding(ROUNDINGS[operands.product.rounding]):
        result = _continue_chains("f64", a, b, c)
    return canonical(result, operands.product.d)


_VECTORS = 4  # of a block's columns


def _continue_chains(kind: str, a: Floats, b: Floats, c: Floats) -> Floats:
    """Return ``c (batch, m, n)`` continued by the chains of ``a (batch, m, k)`` and ``b (batch, k, n)``."""
    batch, depth, n = b.shape
    m, vectors = c.shape[1], min(_VECTORS, -(-n // LANES[kind]))
    width, height = vectors * LANES[kind], -(-c.shape[1] // ROWS) * ROWS
    panels = -(-n // width)
    columns, rows = panels * width - n, height - m
    a = np.pad(a, ((0, 0), (0, rows), (0, 0))) if rows else a
    b = np.pad(b, ((0, 0), (0, 0), (0, columns))) if columns else b
    b = b.reshape(batch, depth, panels, width).swapaxes(1, 2)
    result = np.zeros((batch, height, panels * width), c.dtype)
    result[:, :m, :n] = c
    shape = height, panels, depth
    _chain(kind, vectors)(np.ravel(a), np.ravel(b), result.reshape(-1), shape)
    return result[:, :m, :n]


@cache
def _chain(kind: str, vectors: int) -> Callable[..., None]:
    return chain_kernel(kind, vectors)


# --- m8n8k4 in software --------------------------------------------------------------------------------


def _always(product: Product, rule: SoftwareQuad) -> bool:
    return True


def _quads(operands: Operands, rule: SoftwareQuad) -> Codes:
    product = operands.product
    a, b = _single(operands.a, product.a), _single(operands.b, product.b)
    result = _single(operands.c, product.c)
    if product.d is FORMATS["f16"]:
        half_quad_chain(a, b, result)
    else:
        result = _continue_chains("f32", a, b, result)
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
