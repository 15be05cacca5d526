"""The fast engine: operands in, result codes out.

Turns codes into planes, hands them to the kernel of the rule (compiled, or kernels.uncompiled for little
work), and returns codes. Knows formats and rules; no lanes. ``reference.compute`` has the same signature and
shares no code with it. Numba is imported when a kernel is compiled, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import present
from ...isa.codes import integers, values_of
from ...isa.formats import FORMATS, Format
from ...isa.products import Codes, Operands
from ...isa.rules import (
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Output,
    Rule,
    ScaledGroups,
    ScaledQuads,
    SoftwareQuad,
)
from . import array_sums
from .kernels.scalar import uncompiled
from .planes import Planes, canonical, converted, planes
from .quads import scaled_quads

_F16, _F32 = FORMATS["f16"], FORMATS["f32"]


@in_default_environment
def compute(operands: Operands, rule: Rule) -> Codes:
    """Return codes of D, ``(batch, m, n)``, as the rule computes them."""
    from . import chains
    from .kernels.scalar import compiled

    if chains.applies(operands.product, rule):
        codes = chains.compute(operands, rule)
    else:
        codes = RULES[type(rule)](operands, rule, compiled)
    return codes.astype(operands.product.d.code_dtype)


_AT_ONCE = 1 << 18  # products, which bounds the temporary arrays of uncompiled sums


def needs_compiler(rule: Rule) -> bool:
    """Return whether only a compiled kernel can compute the rule."""
    return isinstance(rule, FusedMultiplyAdd)


@in_default_environment
def compute_uncompiled(operands: Operands, rule: Rule) -> Codes:
    """Return the result of ``compute`` with NumPy alone, for a rule that needs no compiler; slower, but
    without delay.
    """
    if array_sums.serves(operands, rule):
        return array_sums.compute(operands, rule)
    result = np.empty(operands.c.shape, operands.product.d.code_dtype)
    for some in _shares(operands):
        part = cases(operands, some)
        result[some] = RULES[type(rule)](part, rule, uncompiled)
    return result


def _shares(operands: Operands) -> Iterator[slice]:
    """Return the batch in parts."""
    count, m, stored = operands.a.shape
    each = max(1, _AT_ONCE // (m * stored * operands.b.shape[2]))
    return (slice(first, first + each) for first in range(0, count, each))


def cases(operands: Operands, some: slice) -> Operands:
    """Return some cases of a batch."""
    names = ("a", "b", "c", "columns", "scale_a", "scale_b")
    arrays = {name: getattr(operands, name) for name in names}
    parts: dict[str, Any] = {name: x if x is None else x[some] for name, x in arrays.items()}
    return replace(operands, **parts)


def _columns(operands: Operands) -> npt.NDArray[np.intp]:
    if operands.columns is not None:
        return np.ascontiguousarray(operands.columns)
    return np.ascontiguousarray(np.broadcast_to(np.arange(operands.a.shape[2]), operands.a.shape))


def _arrays(number: Planes) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    return (
        np.ascontiguousarray(number.significand),
        np.ascontiguousarray(number.exponent),
        np.ascontiguousarray(number.special),
    )


def _output(output: Output) -> tuple[int, int, int, int, bool]:
    result = FORMATS[output.format]
    return output.precision, result.fraction_bits, result.minimum_exponent, result.bias, output.nearest


def _scaled(number: Planes, scale: Planes, axis: int) -> Planes:
    """Return planes with the single scale of each row or column added to the exponents."""
    exponent = number.exponent + np.take(scale.exponent, [0], axis)
    special = np.maximum(number.special, np.take(scale.special, [0], axis))
    return replace(number, exponent=exponent, special=special)


def _fused_codes(operands: Operands, rule: FusedSum, kernels: ModuleType) -> Codes:
    product = operands.product
    a, b = planes(operands.a, product.a), planes(operands.b, product.b)
    if product.scale and operands.scale_a is not None and operands.scale_b is not None:
        a = _scaled(a, planes(operands.scale_a, product.scale), 2)
        b = _scaled(b, planes(operands.scale_b, product.scale), 1)
    return _fused_planes(a, b, planes(operands.c, product.c), _columns(operands), rule, kernels)


def _fused_planes(
    a: Planes, b: Planes, c: Planes, columns: npt.NDArray[np.intp], rule: FusedSum, kernels: ModuleType
) -> Codes:
    codes = np.empty(c.significand.shape, np.int64)
    numbers = (
        rule.length,
        rule.fraction_bits,
        rule.exponent_floor,
        a.fraction_bits + b.fraction_bits,
        c.fraction_bits,
    )
    kernels.fused_sum((_arrays(a), _arrays(b), _arrays(c), columns), numbers, _output(rule.output), codes)
    return codes


def _emulated_f8(operands: Operands, rule: EmulatedF8, kernels: ModuleType) -> Codes:
    product = operands.product
    stored = operands.a.shape[2]
    order = np.argsort(np.arange(stored) % 4 // 2, kind="stable")  # k % 4 in 0, 1 first, then 2, 3
    a = planes(converted(operands.a[..., order], product.a, _F16), _F16)
    b = planes(converted(operands.b, product.b, _F16), _F16)
    zero = planes(np.zeros_like(operands.c), product.c)
    step = replace(rule.step, length=stored // 2)
    columns = np.ascontiguousarray(_columns(operands)[..., order])
    total = _fused_planes(a, b, zero, columns, step, kernels)
    return _add(operands.c, total.astype(product.c.code_dtype), product.c)


def _add(x: Codes, y: Codes, element: Format) -> Codes:
    """Return IEEE addition of f32 or f16 codes, to nearest even; every NaN becomes the canonical NaN.

    NumPy adds f16 in f32 and rounds again, which is harmless: 24 bits are twice 11 and two more.
    """
    with np.errstate(all="ignore"):
        return canonical(x.view(element.dtype) + y.view(element.dtype), element)


def _groups(operands: Operands, rule: ScaledGroups, kernels: ModuleType) -> Codes:
    product = operands.product
    scale = present(product.scale, "scale")
    scale_a = present(operands.scale_a, "scale a")
    scale_b = present(operands.scale_b, "scale b")
    a, b = planes(operands.a, product.a), planes(operands.b, product.b)
    c = planes(operands.c, product.c)
    codes = np.empty(operands.c.shape, np.int64)
    numbers = (
        rule.group,
        rule.fraction_bits,
        rule.exponent_floor,
        a.fraction_bits + b.fraction_bits - product.a.minimum_exponent - product.b.minimum_exponent,
        2 * scale.fraction_bits,
        c.fraction_bits,
        product.shape.k // product.scale_chunks,
    )
    matrices = (
        _fixed_point(a, product.a),
        _fixed_point(b, product.b),
        _arrays(c),
        _columns(operands),
    )
    scales = (_arrays(planes(scale_a, scale)), _arrays(planes(scale_b, scale)))
    kernels.scaled_groups(matrices, scales, numbers, _output(rule.output), codes)
    return codes


def _quads(operands: Operands, rule: ScaledQuads, kernels: ModuleType) -> Codes:
    return scaled_quads(operands, rule)


def _fixed_point(number: Planes, element: Format) -> npt.NDArray[np.int64]:
    """Return the values in units of the format's smallest subnormal."""
    return np.ascontiguousarray(number.significand << (number.exponent - element.minimum_exponent))


def _multiply_add(operands: Operands, rule: FusedMultiplyAdd, kernels: ModuleType) -> Codes:
    codes = np.empty(operands.c.shape, np.int64)
    a, b, c = (np.ascontiguousarray(x).view(np.int64) for x in (operands.a, operands.b, operands.c))
    kernels.multiply_add_chain(a, b, c, kernels.ROUNDINGS[operands.product.rounding], codes)
    return codes.view(np.uint64)


def _quad(operands: Operands, rule: SoftwareQuad, kernels: ModuleType) -> Codes:
    """Compute f32 arithmetic in float64, each operation rounded once.

    A product of two f16 is exact in f32, and so is its float64 sum with an f32 up to one rounding to 53 bits,
    which a second rounding to 24 cannot change (53 is twice 24 and two more).
    """
    product = operands.product
    a = values_of(operands.a, product.a).transpose(2, 0, 1)[..., None]
    b = values_of(operands.b, product.b).transpose(1, 0, 2)[:, :, None]
    c = values_of(operands.c, product.c)
    with np.errstate(all="ignore"):
        p = a * b
        if product.d is _F16:
            value = _f32(_f32(c + _f32(p[2] + p[3])) + _f32(p[0] + p[1])).astype(np.float16)
        else:
            chain = _f32(_f32(_f32(p[0] + 0.0) + p[1]) + p[2])
            value = _f32(c + _f32(chain + p[3])).astype(np.float32)
    return canonical(value, product.d)


def _f32(value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return value.astype(np.float32).astype(np.float64)


def _integer(operands: Operands, rule: IntegerSum | BitCount, kernels: ModuleType) -> Codes:
    product = operands.product
    codes = np.empty(operands.c.shape, np.int64)
    a, b, c = (
        np.ascontiguousarray(integers(getattr(operands, name), product.format(name))) for name in "abc"
    )
    exclusive = product.bit_operation == "xor"
    kernels.integer_sum((a, b, c, _columns(operands)), product.satfinite, exclusive, codes)
    return codes


RULES: dict[type[Rule], Callable[[Operands, Any, ModuleType], Codes]] = {
    FusedSum: _fused_codes,
    EmulatedF8: _emulated_f8,
    ScaledGroups: _groups,
    ScaledQuads: _quads,
    FusedMultiplyAdd: _multiply_add,
    SoftwareQuad: _quad,
    IntegerSum: _integer,
    BitCount: _integer,
}
