# ruff: noqa: E501  (lines of source stand as they are, and a fault is a row)
"""Faults of infinities and NaNs: which of several wins, what they meet, and what codes mean them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from warpsim.isa.formats import Format
from warpsim.isa.products import Operands
from warpsim.workbench.generation.cases.corner_codes import is_special
from warpsim.workbench.generation.sums.limits import Limits, largest

from . import proofs
from .behaviour import Behaviour, Edit, Proof, Where, aligned, both, floats, never

_KEPT = '    with np.errstate(invalid="ignore"):\n        total = kept.sum(-1)\n'
_CODE = "    if change.flush_results:\n        code = np.where(done.subnormal, 0, code)\n    return Step("
_TIMES = "        return Terms(value=x.value * y.value, exponent=x.exponent + y.exponent)\n"
_INVALID = "    invalid = (special == INFINITE) & (significand == 0)\n"
_LINE = "    special, negative = _special_of(total)\n"


def infinite(*sides: str) -> Where:
    """Select the forms in which one of these operands has infinities."""
    return lambda limits: any(limits.instruction.format(side).has_infinity for side in sides)


def nans(*sides: str) -> Where:
    """Select the forms in which one of these operands has NaNs."""
    return lambda limits: (
        limits.instruction.a.is_float and any(limits.instruction.format(side).has_nan for side in sides)
    )


def _factors(name: str, value: str, significand: str, where: Where) -> Behaviour:
    """Return a fault of the product of x and y: ``value`` for terms, the line ``significand`` for Numbers."""
    edits = (
        Edit(
            module="terms",
            old=_TIMES,
            new=f"        value = x.value * y.value\n        value = {value}\n"
            "        return Terms(value=value, exponent=x.exponent + y.exponent)\n",
        ),
        Edit(module="exact_numbers", old=_INVALID, new=_INVALID + f"    {significand}\n"),
    )
    return Behaviour(name=name, edits=edits, where=both(floats, where))


_infinite_products = infinite("a", "b")


def _kept(name: str, lines: str, where: Where = _infinite_products, proof: Proof = never) -> Behaviour:
    """Return a fault whose ``lines`` change the terms of an aligned sum before they are added."""
    edit = Edit(module="summing", old=_KEPT, new=f"    {lines}\n{_KEPT}")
    return Behaviour(name=name, edits=(edit,), where=both(aligned, where), proof=proof)


_INF = "np.isinf(kept)"
_C = "(np.arange(kept.shape[-1]) == kept.shape[-1] - 1)"
_MEETING = (
    _factors(
        "Inf * 0 is Inf",
        "np.where(np.isinf(x.value) & (y.value == 0), x.value, value)",
        "invalid = invalid & (x.special != INFINITE); significand = np.where((x.special == INFINITE) & (significand == 0), x.significand, significand)",
        infinite("a"),
    ),
    _factors(
        "0 * Inf is Inf",
        "np.where(np.isinf(y.value) & (x.value == 0), y.value, value)",
        "invalid = invalid & (y.special != INFINITE); significand = np.where((y.special == INFINITE) & (significand == 0), y.significand, significand)",
        infinite("b"),
    ),
    _factors(
        "Inf * 0 is 0",
        "np.where(np.isinf(x.value) & (y.value == 0), 0.0, value)",
        "special = np.where(invalid & (x.special == INFINITE), FINITE, special); invalid = invalid & (special != FINITE)",
        infinite("a"),
    ),
    _factors(
        "0 * Inf is 0",
        "np.where(np.isinf(y.value) & (x.value == 0), 0.0, value)",
        "special = np.where(invalid & (y.special == INFINITE), FINITE, special); invalid = invalid & (special != FINITE)",
        infinite("b"),
    ),
    _factors(
        "NaN * 0 is 0",
        "np.where(np.isnan(x.value) & (y.value == 0), 0.0, value)",
        "special = np.where((x.special == NOT_A_NUMBER) & (y.significand == 0), FINITE, special)",
        nans("a"),
    ),
    _factors(
        "0 * NaN is 0",
        "np.where(np.isnan(y.value) & (x.value == 0), 0.0, value)",
        "special = np.where((y.special == NOT_A_NUMBER) & (x.significand == 0), FINITE, special)",
        nans("b"),
    ),
    _factors(
        "NaN * Inf is Inf",
        "np.where(np.isnan(x.value) & np.isinf(y.value), y.value, value)",
        "special = np.where((x.special == NOT_A_NUMBER) & (y.special == INFINITE), INFINITE, special)",
        both(nans("a"), infinite("b")),
    ),
    _factors(
        "Inf * NaN is Inf",
        "np.where(np.isnan(y.value) & np.isinf(x.value), x.value, value)",
        "special = np.where((y.special == NOT_A_NUMBER) & (x.special == INFINITE), INFINITE, special)",
        both(nans("b"), infinite("a")),
    ),
    _factors(
        "Inf * negative is +Inf",
        "np.where(np.isinf(value), np.abs(value), value)",
        "significand = np.where(special == INFINITE, np.abs(significand), significand)",
        infinite("a", "b"),
    ),
    _factors(
        "Inf * negative of B keeps A's sign",
        "np.where(np.isinf(value) & np.isinf(x.value), np.copysign(value, x.value), value)",
        "significand = np.where((x.special == INFINITE) & (significand != 0), np.abs(significand) * np.sign(x.significand), significand)",
        infinite("a"),
    ),
    _kept(
        "+Inf and -Inf make the first of them",
        "infs = "
        + _INF
        + "; both = infs.any(-1, keepdims=True) & ~np.isnan(kept).any(-1, keepdims=True); kept = np.where(both & infs & (np.cumsum(infs, -1) > 1), 0, kept)",
    ),
    _kept(
        "+Inf and -Inf make +Inf",
        "kept = np.where((kept == np.inf).any(-1, keepdims=True) & (kept == -np.inf), 0, kept)",
    ),
    _kept(
        "+Inf and -Inf make -Inf",
        "kept = np.where((kept == -np.inf).any(-1, keepdims=True) & (kept == np.inf), 0, kept)",
    ),
    _kept(
        "+Inf product and -Inf product make +Inf",
        f"kept = np.where((kept[..., :-1] == np.inf).any(-1, keepdims=True) & (kept == -np.inf) & ~{_C}, 0, kept)",
    ),
    _kept(
        "+Inf product against C = -Inf is +Inf",
        f"kept = np.where((kept[..., :-1] == np.inf).any(-1, keepdims=True) & (kept == -np.inf) & {_C}, 0, kept)",
    ),
    _kept(
        "+Inf product against C = -Inf is -Inf",
        f"kept = np.where((kept[..., -1:] == -np.inf) & (kept == np.inf) & ~{_C}, 0, kept)",
    ),
    _kept(
        "-Inf product against C = +Inf is +Inf",
        f"kept = np.where((kept[..., -1:] == np.inf) & (kept == -np.inf) & ~{_C}, 0, kept)",
    ),
    _kept(
        "-Inf product against C = +Inf is -Inf",
        f"kept = np.where((kept[..., :-1] == -np.inf).any(-1, keepdims=True) & (kept == np.inf) & {_C}, 0, kept)",
    ),
    _kept(
        "two infinities of one sign are NaN",
        f"kept = np.where(({_INF}.sum(-1, keepdims=True) > 1) & {_INF}, np.nan, kept)",
    ),
    _kept(
        "two Inf products of one sign are NaN",
        f"kept = np.where((np.isinf(kept[..., :-1]).sum(-1, keepdims=True) > 1) & {_INF}, np.nan, kept)",
    ),
    _kept(
        "an Inf product and C = Inf of one sign are NaN",
        f"kept = np.where(np.isinf(kept[..., :-1]).any(-1, keepdims=True) & np.isinf(kept) & {_C}, np.nan, kept)",
    ),
    _kept("Inf beats NaN", f"kept = np.where({_INF}.any(-1, keepdims=True) & np.isnan(kept), 0, kept)"),
    _kept(
        "an Inf product beats a NaN of C",
        f"kept = np.where(np.isinf(kept[..., :-1]).any(-1, keepdims=True) & np.isnan(kept) & {_C}, 0, kept)",
    ),
    _kept(
        "C = Inf beats NaN products",
        f"kept = np.where(np.isinf(kept[..., -1:]) & np.isnan(kept) & ~{_C}, 0, kept)",
        where=nans("a", "b"),
        proof=proofs.finite_partial,
    ),
    _kept(
        "a NaN product of the last place is lost",
        "kept[..., -2] = np.where(np.isnan(kept[..., -2]), 0, kept[..., -2])",
        where=nans("a", "b"),
    ),
    _kept(
        "an Inf product of the first place is lost",
        "kept[..., 0] = np.where(np.isinf(kept[..., 0]), 0, kept[..., 0])",
    ),
)
# Inf beats what an invalid product makes, and not the NaNs of operands: these are told apart by an exponent.
_MARK = (
    "        invalid = (np.isinf(x.value) & (y.value == 0)) | (np.isinf(y.value) & (x.value == 0))\n"
    "        return Terms(value=x.value * y.value, exponent=np.where(invalid, np.int16(-3000), x.exponent + y.exponent))\n"
)


def _invalid(name: str, line: str, where: Where = _infinite_products) -> Behaviour:
    edits = (
        Edit(module="terms", old=_TIMES, new=_MARK),
        Edit(module="summing", old=_KEPT, new=f"    invalid = terms.exponent < -2500\n    {line}\n{_KEPT}"),
    )
    plain = lambda limits: limits.instruction.scale is None  # noqa: E731  (scales would move the mark)
    return Behaviour(name=name, edits=edits, where=both(aligned, where, plain))


_INVALID_PRODUCTS = (
    _invalid(
        "Inf beats Inf * 0", "kept = np.where(invalid & np.isinf(kept).any(-1, keepdims=True), 0, kept)"
    ),
    _invalid(
        "an Inf product beats Inf * 0",
        "kept = np.where(invalid & np.isinf(kept[..., :-1]).any(-1, keepdims=True), 0, kept)",
    ),
    _invalid(
        "C = Inf beats Inf * 0",
        "kept = np.where(invalid & np.isinf(kept[..., -1:]), 0, kept)",
        where=both(infinite("a", "b"), lambda limits: not limits.emulated),
    ),
    _invalid("Inf * 0 is lost beside a NaN of nothing else", "kept = np.where(invalid, 0, kept)"),
)


def _result(name: str, line: str, where: Where = floats) -> Behaviour:
    old = "    return np.where(\n        special == NOT_A_NUMBER,"
    return Behaviour(
        name=name, edits=(Edit(module="exact_numbers", old=old, new=f"    {line}\n{old}"),), where=where
    )


_CODES = (
    Behaviour(
        name="NaN with a sign",
        edits=(
            Edit(
                module="exact_numbers",
                old="element.canonical_nan, np.where",
                new="element.canonical_nan | element.sign_bit, np.where",
            ),
        ),
        where=floats,
    ),
    Behaviour(
        name="NaN without its last bits",
        edits=(
            Edit(
                module="exact_numbers",
                old="element.canonical_nan, np.where",
                new="element.canonical_nan & ~1, np.where",
            ),
        ),
        where=both(floats, lambda limits: limits.instruction.d.canonical_nan & 1 == 1),
    ),
    _result("-Inf is written as +Inf", "infinite = infinite & ~infinite.dtype.type(element.sign_bit)"),
    _result("Inf is written as the largest number", "infinite = infinite - infinite.dtype.type(1)"),
)


def _read(
    name: str, side: str, change: Callable[[Any, Format], Any], where: Where, proof: Proof = never
) -> Behaviour:
    """Return a fault that reads the codes of an operand as ``change`` makes them."""

    def operands(given: Operands) -> Operands:
        form = given.product
        element = form.scale if side.startswith("scale") else form.format(side)
        return replace(given, **{side: change(getattr(given, side), element).astype(element.code_dtype)})

    return Behaviour(name=name, operands=operands, where=both(floats, where), proof=proof)


def _split(codes: Any, element: Format) -> tuple[Any, Any]:
    sign = codes & element.code_dtype.type(element.sign_bit)
    return sign, codes ^ sign


def _nan(codes: Any, element: Format) -> Any:
    _, magnitude = _split(codes, element)
    return (
        (magnitude >> element.ignored_bits) > (element.infinity >> element.ignored_bits)
        if element.has_infinity
        else is_special(codes, element)
    )


def _inf(codes: Any, element: Format) -> Any:
    return is_special(codes, element) & ~_nan(codes, element)


def _nan_is_inf(codes: Any, element: Format) -> Any:
    return np.where(
        _nan(codes, element), _split(codes, element)[0] | element.code_dtype.type(element.infinity), codes
    )


def _nan_is_largest(codes: Any, element: Format) -> Any:
    top = element.code_dtype.type(largest(element) << element.ignored_bits)
    return np.where(_nan(codes, element), _split(codes, element)[0] | top, codes)


def _inf_is_largest(codes: Any, element: Format) -> Any:
    top = element.code_dtype.type(largest(element) << element.ignored_bits)
    return np.where(_inf(codes, element), _split(codes, element)[0] | top, codes)


def _negative_nan_is_largest(codes: Any, element: Format) -> Any:
    return np.where(_split(codes, element)[0] > 0, _nan_is_largest(codes, element), codes)


def _signaling_is_inf(codes: Any, element: Format) -> Any:
    quiet = (codes >> (element.ignored_bits + element.fraction_bits - 1)) & 1
    return np.where(_nan(codes, element) & (quiet == 0), _nan_is_inf(codes, element), codes)


def _largest_is_nan(codes: Any, element: Format) -> Any:
    _, magnitude = _split(codes, element)
    nan = (
        element.code_dtype.type(element.infinity | 1 << (element.ignored_bits + element.fraction_bits - 1))
        if element.has_infinity
        else element.code_dtype.type(element.mask & ~element.sign_bit)
    )
    return np.where(magnitude >> element.ignored_bits == largest(element), nan, codes)


def _scale_nans(limits: Limits) -> bool:
    return limits.instruction.scale is not None


_READ = (
    *(
        _read(f"NaN of {side.upper()} is read as Inf", side, _nan_is_inf, both(nans(side), infinite(side)))
        for side in "abc"
    ),
    *(
        _read(f"NaN of {side.upper()} is read as the largest number", side, _nan_is_largest, nans(side))
        for side in "abc"
    ),
    *(
        _read(
            f"NaN of {side.upper()} with a sign is read as the largest number",
            side,
            _negative_nan_is_largest,
            nans(side),
        )
        for side in "abc"
    ),
    *(
        _read(
            f"signaling NaN of {side.upper()} is read as Inf",
            side,
            _signaling_is_inf,
            both(nans(side), infinite(side)),
        )
        for side in "abc"
    ),
    *(
        _read(f"Inf of {side.upper()} is read as the largest number", side, _inf_is_largest, infinite(side))
        for side in "abc"
    ),
    *(
        _read(f"the largest number of {side.upper()} is read as NaN", side, _largest_is_nan, nans(side))
        for side in "abc"
    ),
    _read("NaN of scale A is read as the largest scale", "scale_a", _nan_is_largest, _scale_nans),
    _read("NaN of scale B is read as the largest scale", "scale_b", _nan_is_largest, _scale_nans),
)

SPECIALS = (*_MEETING, *_INVALID_PRODUCTS, *_CODES, *_READ)
