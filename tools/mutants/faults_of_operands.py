# ruff: noqa: E501  (lines of source stand as they are, and a fault is a row)
"""Faults of operands: signs, subnormal numbers, ignored bits, what sparse A meets, immediates, selectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Operands
from warpsim.workbench.generation.sums.limits import Limits

from . import proofs
from .behaviour import Behaviour, Proof, Where, both, everywhere, floats, integers, never

Change = Callable[[Any, Format], Any]


def _read(name: str, side: str, change: Change, where: Where = everywhere, proof: Proof = never) -> Behaviour:
    def operands(given: Operands) -> Operands:
        element = given.product.format(side)
        return replace(given, **{side: change(getattr(given, side), element).astype(element.code_dtype)})

    return Behaviour(name=name, operands=operands, where=where, proof=proof)


def _magnitude(codes: Any, element: Format) -> Any:
    return codes & element.code_dtype.type(element.mask & ~element.sign_bit)


def _sign(codes: Any, element: Format) -> Any:
    return codes & element.code_dtype.type(element.sign_bit)


def _subnormal(codes: Any, element: Format) -> Any:
    kept = _magnitude(codes, element) >> element.ignored_bits
    return (kept > 0) & (kept < 1 << element.fraction_bits)


def _flushed(codes: Any, element: Format) -> Any:
    return np.where(_subnormal(codes, element), _sign(codes, element), codes)


def _negative_flushed(codes: Any, element: Format) -> Any:
    return np.where(_subnormal(codes, element) & (_sign(codes, element) > 0), _sign(codes, element), codes)


def _smallest_flushed(codes: Any, element: Format) -> Any:
    smallest = _magnitude(codes, element) >> element.ignored_bits == 1
    return np.where(smallest, _sign(codes, element), codes)


def _subnormals_with_leading_one(codes: Any, element: Format) -> Any:
    one = element.code_dtype.type(1 << (element.ignored_bits + element.fraction_bits))
    return np.where(_subnormal(codes, element), codes | one, codes)


def _largest_subnormal_is_normal(codes: Any, element: Format) -> Any:
    full = _magnitude(codes, element) >> element.ignored_bits == (1 << element.fraction_bits) - 1
    return np.where(full, codes + element.code_dtype.type(1 << element.ignored_bits), codes)


def _without_sign(codes: Any, element: Format) -> Any:
    return _magnitude(codes, element)


def _positive_zeros(codes: Any, element: Format) -> Any:
    return np.where(_magnitude(codes, element) == 0, codes.dtype.type(0), codes)


def _without_last_bit(codes: Any, element: Format) -> Any:
    bit = element.code_dtype.type(1 << element.ignored_bits)
    finite = _magnitude(codes, element) < _top(element)
    return np.where(finite, codes & ~bit, codes)


def _top(element: Format) -> int:
    return ((1 << element.exponent_bits) - 1) << (element.ignored_bits + element.fraction_bits)


def _rounds_ignored_bits(codes: Any, element: Format) -> Any:
    half = element.code_dtype.type(1 << (element.ignored_bits - 1))
    return np.where(_magnitude(codes, element) < _top(element), codes + half, codes)


def _smallest_binade_missing(codes: Any, element: Format) -> Any:
    """Read the smallest normal numbers as subnormal numbers."""
    field = _magnitude(codes, element) >> (element.ignored_bits + element.fraction_bits)
    one = element.code_dtype.type(1 << (element.ignored_bits + element.fraction_bits))
    return np.where(field == 1, codes & ~one, codes)


def has_fractions(side: str) -> Where:
    """Select the forms in which an operand has subnormal numbers."""
    return lambda limits: limits.instruction.a.is_float and limits.instruction.format(side).fraction_bits > 0


def ignores_bits(limits: Limits) -> bool:
    """Select the forms of tf32."""
    return limits.instruction.a.ignored_bits > 0


_SIDES = tuple(
    fault
    for side in "abc"
    for fault in (
        _read(f"subnormal {side.upper()} is zero", side, _flushed, has_fractions(side)),
        _read(f"negative subnormal {side.upper()} is zero", side, _negative_flushed, has_fractions(side)),
        _read(f"the smallest subnormal {side.upper()} is zero", side, _smallest_flushed, has_fractions(side), proofs.last_bit(side)),
        _read(f"subnormal {side.upper()} has a leading one", side, _subnormals_with_leading_one, has_fractions(side)),
        _read(f"the largest subnormal {side.upper()} is normal", side, _largest_subnormal_is_normal, has_fractions(side)),
        _read(f"the smallest normal {side.upper()} is subnormal", side, _smallest_binade_missing, has_fractions(side)),
        _read(f"{side.upper()} has no sign", side, _without_sign, floats),
        _read(f"the last bit of {side.upper()} is not read", side, _without_last_bit, floats, proofs.last_bit(side)),
    )
)  # fmt: skip
FLOATS = (
    *_SIDES,
    _read("-0 of C is +0", "c", _positive_zeros, both(floats, lambda limits: limits.step is None and not proofs.positive_zeros(limits)), never),
    _read("ignored bits of A round it", "a", _rounds_ignored_bits, ignores_bits),
    _read("ignored bits of B round it", "b", _rounds_ignored_bits, ignores_bits),
)  # fmt: skip

# --- which elements meet ---------------------------------------------------------------------------


def _columns(name: str, change: Callable[[Any, int], Any], where: Where = everywhere) -> Behaviour:
    def operands(given: Operands) -> Operands:
        return replace(given, columns=change(given.columns, given.b.shape[1]))

    return Behaviour(
        name=name, operands=operands, where=both(lambda limits: limits.instruction.sparse, where)
    )


def _pairs(limits: Limits) -> bool:
    """Select the forms whose sparsity stores two elements or more of each chunk."""
    pattern = limits.instruction.pattern
    return pattern is not None and pattern.stored > 1


def _two_of_four(limits: Limits) -> bool:
    """Select the forms of 2:4 sparsity in which each stored element has a column of its own."""
    pattern = limits.instruction.pattern
    return pattern is not None and (pattern.stored, pattern.chunk) == (2, 4)


def _placed(name: str, side: str, change: Callable[[Any], Any], where: Where = everywhere) -> Behaviour:
    def operands(given: Operands) -> Operands:
        return replace(given, **{side: np.ascontiguousarray(change(getattr(given, side)))})

    return Behaviour(name=name, operands=operands, where=where)


def _leak(given: Operands) -> Operands:
    """Make a NaN of B reach C of its outputs, whether the metadata selects it or not."""
    element, c = given.product.b, given.product.c
    magnitude = _magnitude(given.b, element).astype(np.uint64) >> np.uint64(element.ignored_bits)
    limit = (
        element.infinity >> element.ignored_bits if element.has_infinity else (1 << (element.bits - 1)) - 2
    )
    nan = (magnitude > limit).any(1)[:, None, :]
    return replace(given, c=np.where(nan, c.code_dtype.type(c.canonical_nan), given.c))


PLACES = (
    _columns("metadata not read: the first columns of each chunk", lambda x, k: np.broadcast_to(np.arange(x.shape[-1]) * k // x.shape[-1], x.shape).copy()),
    _columns("metadata of the next row", lambda x, k: np.roll(x, 1, 1)),
    _columns("metadata of the row eight below", lambda x, k: np.roll(x, 8, 1)),
    _columns("columns of a pair exchanged", lambda x, k: x.reshape(*x.shape[:-1], -1, 2)[..., ::-1].reshape(x.shape), _pairs),
    _columns("the second of a pair follows the first", lambda x, k: np.stack([x[..., ::2], np.minimum(x[..., ::2] + 1, x[..., ::2] | 3)], -1).reshape(x.shape), _two_of_four),
    _columns("the first of a pair has no highest bit", lambda x, k: np.stack([x[..., ::2] & ~2, x[..., 1::2]], -1).reshape(x.shape), _two_of_four),
    _columns("chunks in reversed order", lambda x, k: x[..., ::-1].copy()),
    _columns("the last chunk reads the first", lambda x, k: np.concatenate([x[..., :-2], x[..., :2]], -1)),
    Behaviour(name="a NaN of B that nothing selects", operands=_leak, where=lambda limits: limits.instruction.sparse and limits.instruction.b.has_nan and limits.instruction.b.is_float),
    _placed("rows of A exchanged", "a", lambda x: x[:, ::-1]),
    _placed("columns of B exchanged", "b", lambda x: x[..., ::-1]),
    _placed("neighbouring columns of A exchanged", "a", lambda x: x.reshape(*x.shape[:-1], -1, 2)[..., ::-1].reshape(x.shape)),
    _placed("columns of C exchanged", "c", lambda x: x[..., ::-1]),
    _placed("the last column of A reads the one before", "a", lambda x: np.concatenate([x[..., :-1], x[..., -2:-1]], -1)),
)  # fmt: skip

# --- immediates and selectors --------------------------------------------------------------------------


def _gathered(name: str, change: Callable[[Instruction, Inputs], Inputs], where: Where) -> Behaviour:
    return Behaviour(name=name, inputs=change, where=where)


def warpgroup(limits: Limits) -> bool:
    """Select the forms of wgmma."""
    return not limits.instruction.has_registers("b")


def _selectors(limits: Limits) -> bool:
    return len(limits.instruction.selectors) > 1


def _scaled(limits: Limits) -> bool:
    return limits.instruction.scale is not None


def _ids(name: str, where: Where = _scaled, **fixed: Callable[[Any], int]) -> Behaviour:
    def change(instruction: Instruction, inputs: Inputs) -> Inputs:
        ids = inputs.scale_selectors
        return replace(inputs, scale_selectors=ids._replace(**{x: f(ids) for x, f in fixed.items()}))

    return _gathered(name, change, where)


def _next_selector(instruction: Instruction, inputs: Inputs) -> Inputs:
    return replace(inputs, selector=(inputs.selector + 1) % len(instruction.selectors))


SETTINGS = (
    _gathered("the selector is not read", lambda form, x: replace(x, selector=0, literal=True), _selectors),
    _gathered("the next selector", lambda form, x: replace(_next_selector(form, x), literal=True), _selectors),
    _gathered("scale-d is not read", lambda form, x: replace(x, scale_d=True), warpgroup),
    _gathered("scale-d is zero", lambda form, x: replace(x, scale_d=False), warpgroup),
    _gathered("imm-scale of A is not read", lambda form, x: replace(x, negate=(False, x.negate[1])), both(warpgroup, floats)),
    _gathered("imm-scale of B is not read", lambda form, x: replace(x, negate=(x.negate[0], False)), both(warpgroup, floats)),
    _gathered("imm-scale of A is B's", lambda form, x: replace(x, negate=(x.negate[1], x.negate[1])), both(warpgroup, floats)),
    _gathered("imm-scales cancel", lambda form, x: replace(x, negate=(x.negate[0] and not x.negate[1], x.negate[1] and not x.negate[0])), lambda limits: False),
    _ids("byte of scale A is not read", byte_id_a=lambda ids: 0, where=lambda limits: _scaled(limits) and limits.instruction.scale_chunks < 4),
    _ids("byte of scale B is not read", byte_id_b=lambda ids: 0, where=lambda limits: _scaled(limits) and limits.instruction.scale_chunks < 4),
    _ids("thread of scale A is not read", thread_id_a=lambda ids: 0),
    _ids("thread of scale B is not read", thread_id_b=lambda ids: 0),
)  # fmt: skip

# --- integers and bits ---------------------------------------------------------------------------------


def _signed(side: str) -> Where:
    return both(integers, lambda limits: limits.instruction.format(side).signed)


def _ends(codes: Any, element: Format) -> Any:
    return np.where(codes == element.sign_bit, codes + codes.dtype.type(1), codes)


INTEGERS = tuple(
    fault
    for side in "ab"
    for fault in (
        _read(f"the smallest {side.upper()} is one larger", side, _ends, _signed(side)),
        _read(f"{side.upper()} loses its last bit", side, lambda codes, element: codes & ~codes.dtype.type(1), integers),
        _read(f"{side.upper()} loses its highest bit", side, lambda codes, element: codes & codes.dtype.type(element.mask >> 1), integers),
    )
)  # fmt: skip

OPERANDS = (*FLOATS, *PLACES, *(x for x in SETTINGS if x.name != "imm-scales cancel"), *INTEGERS)
