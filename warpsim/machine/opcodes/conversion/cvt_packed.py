"""``cvt`` to and from packed elements (x2, x4), ``.rs`` with its random bits, and ``cvt.pack``.

Knows where elements lie in a register and which random bits each element uses. Does not know how an element
is rounded (codes, elements). PTX ISA 9.0, sections 9.7.9.21 "cvt" and 9.7.9.22 "cvt.pack". The first source,
or the upper part of a packed source, always is the upper part of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ....isa.features import Feature
from ...bind.value_types import dtype_of
from ..operation import Operation, Row, looked_up
from .codes import LAYOUTS, Layout, Random
from .cvt import RELU, SATFINITE, lanewise, register
from .elements import Array, Modifiers, Step, format_conversion, stochastic

_PLACES = {6: 8}  # bits of an element's place where they are not those of its code: fp6 has a byte


def _element(packed: str) -> tuple[Layout, int, int]:
    """Return the element format of a packed type, how many elements there are, and the bits of the place of
    each.
    """
    name, count = packed[:-2], int(packed[-1])
    layout = LAYOUTS[name]
    return layout, count, _PLACES.get(layout.bits, layout.bits)


def _packed(codes: list[Array], place: int, dtype: np.dtype[Any]) -> Array:
    """Return codes, the uppermost first, side by side."""
    result = codes[0].astype(dtype)
    for code in codes[1:]:
        result = result << dtype.type(place) | code.astype(dtype)
    return result


def _parts(values: Array, layout: Layout, count: int, place: int) -> list[Array]:
    """Return the codes in a register, the uppermost first; bits beside them are passed over."""
    kind = values.dtype.type
    shifts = range((count - 1) * place, -1, -place)
    mask = kind((1 << layout.bits) - 1)
    return [(values >> kind(shift) & mask).astype(layout.dtype) for shift in shifts]


def _modifiers(rounding: str, relu: str, satfinite: str) -> Modifiers:
    return Modifiers(rounding=rounding, relu=bool(relu), satfinite=bool(satfinite))


def _from_pair(rounding: str, satfinite: str, relu: str, result: str, source: str) -> Operation:
    """Return two f32 to two elements."""
    layout, _, place = _element(result)
    step = format_conversion(LAYOUTS[source], layout, _modifiers(rounding, relu, satfinite))
    dtype = dtype_of(register(result))
    return Operation(
        results=(register(result),),
        sources=(source, source),
        compute=lanewise(lambda a, b: _packed([step(a), step(b)], place, dtype)),
    )


def _from_packed(rounding: str, satfinite: str, relu: str, result: str, source: str) -> Operation:
    """Return elements of one format to as many of another; by a table where the source has up to 16 bits."""
    from_layout, count, from_place = _element(source)
    layout, _, place = _element(result)
    step = format_conversion(from_layout, layout, _modifiers(rounding, relu, satfinite))
    dtype = dtype_of(register(result))

    def convert(values: Array) -> Array:
        return _packed([step(x) for x in _parts(values, from_layout, count, from_place)], place, dtype)

    whole = _tabulated(convert, dtype_of(register(source)))
    return Operation(results=(register(result),), sources=(register(source),), compute=lanewise(whole))


def _tabulated(convert: Step, source: np.dtype[Any]) -> Step:
    if source.itemsize > 2:
        return convert

    @cache
    def table() -> Array:
        return convert(np.arange(1 << 8 * source.itemsize).astype(source))

    return lambda values: looked_up(table(), values)


# --- stochastic rounding ---------------------------------------------------------------------------

_RANDOM_NOTE = (
    "PTX says which half of rbits is whose and that a carry decides; that the bits are added to the "
    "uppermost bits cut off, and that in x4 the first of a pair takes its half reversed, is what others "
    "report of a B200"
)


def _reversed(halves: Array) -> Array:
    """16-bit values, their bits in the opposite order."""
    result = np.zeros_like(halves)
    for bit in range(16):
        result |= (halves >> np.uint64(bit) & np.uint64(1)) << np.uint64(15 - bit)
    return result


def _shares_of_two(bits: Array) -> list[Array]:
    """Return the random bits of two elements, the upper one first."""
    return [bits >> np.uint64(16), bits & np.uint64(0xFFFF)]


def _shares_of_four(bits: Array) -> list[Array]:
    upper, lower = _shares_of_two(bits)
    return [_reversed(upper), upper, _reversed(lower), lower]


def _shares_of_nibbles(bits: Array) -> list[Array]:
    """Return four shares: the first pair's of the upper bytes of both halves, the second's of the lower
    bytes.
    """
    low, high = np.uint64(0x00FF), np.uint64(0xFF00)
    upper = bits >> np.uint64(8) & low | bits >> np.uint64(16) & high
    lower = bits & low | bits >> np.uint64(8) & high
    return [_reversed(upper), upper, _reversed(lower), lower]


_Shares = Callable[[Array], list[Array]]

# How rbits are shared out, and how many bits of its share an element uses.
_SHARES: dict[str, tuple[_Shares, int]] = {
    "f16x2": (_shares_of_two, 13),
    "bf16x2": (_shares_of_two, 16),
    "e4m3x4": (_shares_of_four, 16),
    "e5m2x4": (_shares_of_four, 16),
    "e2m3x4": (_shares_of_four, 16),
    "e3m2x4": (_shares_of_four, 16),
    "e2m1x4": (_shares_of_nibbles, 16),
}


def _random(rounding: str, relu: str, satfinite: str, result: str, source: str) -> Operation:
    """Return two or four f32 and rbits to as many elements."""
    layout, count, place = _element(result)
    step = stochastic(LAYOUTS[source], layout, _modifiers(rounding, relu, satfinite))
    shares, used = _SHARES[result]
    dtype, mask = dtype_of(register(result)), np.uint64((1 << used) - 1)

    def convert(*sources: Array) -> Array:
        random = [Random(bits=share & mask, count=used) for share in shares(sources[-1].astype(np.uint64))]
        pairs = zip(sources[:-1], random, strict=True)
        return _packed([step(codes, bits) for codes, bits in pairs], place, dtype)

    return Operation(
        results=(register(result),),
        sources=(source,) * count + ("b32",),
        compute=lanewise(convert),
        fidelity="inferred",
        note=_RANDOM_NOTE,
        vector=count if count > 2 else 0,
    )


# --- cvt.pack --------------------------------------------------------------------------------------


def _clamped(values: Array, target: str) -> Array:
    """Signed 32-bit values clamped to a type of 2 to 16 bits, as its bits in uint32."""
    signed, bits = target[0] == "s", int(target[1:])
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - signed)) - 1
    clamped = np.clip(values.view(np.int32), np.int32(low), np.int32(high))
    return clamped.view(np.uint32) & np.uint32((1 << bits) - 1)


def _pack(pack: str, sat: str, result: str, source: str) -> Operation:
    bits = np.uint32(int(result[1:]))
    return Operation(
        results=("b32",),
        sources=("s32", "s32"),
        compute=lanewise(lambda a, b: _clamped(a, result) << bits | _clamped(b, result)),
    )


def _pack_above(pack: str, sat: str, result: str, source: str, rest: str) -> Operation:
    """Return the two clamped values below the low bits of ``c``."""
    bits, two = np.uint32(int(result[1:])), np.uint32(2 * int(result[1:]))

    def convert(a: Array, b: Array, c: Array) -> Array:
        return c << two | _clamped(a, result) << bits | _clamped(b, result)

    return Operation(results=("b32",), sources=("s32", "s32", "b32"), compute=lanewise(convert))


# --- rows ------------------------------------------------------------------------------------------


def _row(slots: tuple[tuple[str, ...], ...], build: Callable[..., Operation], **more: Any) -> Row:
    return Row(opcode="cvt", slots=slots, build=build, any_order=True, **more)


def _halves(rounding: str, relu: str, satfinite: str, result: str, source: str) -> Operation:
    return _from_pair(rounding, satfinite, relu, result, source)


def _scales(rounding: str, satfinite: str, result: str, source: str) -> Operation:
    build = _from_pair if source == "f32" else _from_packed
    return build(rounding, satfinite, "", result, source)


def _widened(rounding: str, relu: str, result: str, source: str) -> Operation:
    return _from_packed(rounding, "", relu, result, source)


def _scales_widened(rounding: str, result: str, source: str) -> Operation:
    return _from_packed(rounding, "", "", result, source)


_HALVES, _RN_RZ, _F32 = ("f16x2", "bf16x2"), ("rn", "rz"), ("f32",)
_FP8, _FP6_FP4 = ("e4m3x2", "e5m2x2"), ("e2m1x2", "e2m3x2", "e3m2x2")
_FOURS = ("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4")
_RN, _RZ_RP, _SATFINITE = ("rn",), ("rz", "rp"), ("satfinite",)
_SCALED = ("f32", "bf16x2")

# PTX 7.8 has the fp8 forms for sm_90 alone, and 8.1 for sm_89 too.
# The manual has e2m1x2.f16x2 only from PTX 9.1 on; ptxas 13.0 accepts it from 8.6 on.
_FMA, _FROM_FP8, _PACKING = Feature.BF16_FMA, Feature.FP8_CONVERSIONS, Feature.INTEGER_PACKING
_NARROW, _STOCHASTIC = Feature.NARROW_CONVERSIONS, Feature.STOCHASTIC_ROUNDING
ROWS: tuple[Row, ...] = (
    _row((_RN_RZ, RELU, ("",), _HALVES, _F32), _halves, since=(7, 0), feature=_FMA),
    _row((_RN_RZ, RELU, _SATFINITE, _HALVES, _F32), _halves, since=(8, 1), feature=_FMA),
    _row((_RN, _SATFINITE, RELU, _FP8, _F32), _from_pair, since=(7, 8), feature=_FROM_FP8),
    _row((_RN, _SATFINITE, RELU, _FP8, ("f16x2",)), _from_packed, since=(7, 8), feature=_FROM_FP8),
    _row((_RN, RELU, ("f16x2",), _FP8), _widened, since=(7, 8), feature=_FROM_FP8),
    _row((_RN, _SATFINITE, RELU, _FP6_FP4, _F32), _from_pair, since=(8, 6), feature=_NARROW),
    _row((_RN, _SATFINITE, RELU, ("e2m1x2",), ("f16x2",)), _from_packed, since=(8, 6), feature=_NARROW),
    _row((_RN, RELU, ("f16x2",), _FP6_FP4), _widened, since=(8, 6), feature=_NARROW),
    _row((_RZ_RP, SATFINITE, ("ue8m0x2",), _SCALED), _scales, since=(8, 6), feature=_NARROW),
    _row((_RN, ("bf16x2",), ("ue8m0x2",)), _scales_widened, since=(8, 6), feature=_NARROW),
    _row((("rs",), RELU, SATFINITE, _HALVES, _F32), _random, since=(8, 7), feature=_STOCHASTIC),
    _row((("rs",), RELU, _SATFINITE, _FOURS, _F32), _random, since=(8, 7), feature=_STOCHASTIC),
    Row(
        opcode="cvt",
        slots=(("pack",), ("sat",), ("u16", "s16"), ("s32",)),
        build=_pack,
        since=(6, 5),
        feature=_PACKING,
    ),
    Row(
        opcode="cvt",
        slots=(("pack",), ("sat",), ("u8", "s8"), ("s32",), ("b32",)),
        build=_pack_above,
        since=(6, 5),
        feature=_PACKING,
    ),
    Row(
        opcode="cvt",
        slots=(("pack",), ("sat",), ("u4", "s4", "u2", "s2"), ("s32",), ("b32",)),
        build=_pack_above,
        since=(6, 5),
        feature=_PACKING,
    ),
)  # fmt: skip
