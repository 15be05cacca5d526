"""Logic, shifts and bits: and or xor not cnot lop3 shl shr shf bfi bfe szext bmsk popc clz brev bfind fns.

Knows what PTX ISA 9.0, sections 9.7.1 and 9.7.8, says and the spellings that ptxas 13.0 takes; predicates are
bool lanes. Bytes are moved by prmt, in permutations.py. NumPy's shifts by the width or more give zero, or the
sign of signed numbers, which is what PTX's clamped shifts give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...bind.value_types import bits_of
from ..operation import Operation, Row, Values
from .words import UNSIGNED, is_signed, number_dtype, signed, unsigned

_BITS = ("b16", "b32", "b64")
_LOGIC = ("pred", *_BITS)
_SHIFTED_RIGHT = (*_BITS, "u16", "u32", "u64", "s16", "s32", "s64")
_FIELDS = ("u32", "u64", "s32", "s64")

_ONES = 0xFFFFFFFF


def _operation(
    result: str, sources: tuple[str, ...], compute: Callable[..., Values], limited: tuple[int, ...] = ()
) -> Operation:
    return Operation(
        results=(result,),
        sources=sources,
        compute=lambda *values: (compute(*values),),
        bytes=limited,
    )


# --- logic ---------------------------------------------------------------------------------------


def _bitwise(function: Any) -> Callable[[str], Operation]:
    return lambda type_name: _operation(type_name, (type_name,) * 2, function)


def _complement(type_name: str) -> Operation:
    return _operation(type_name, (type_name,), np.invert)


def _is_zero(type_name: str) -> Operation:
    return _operation(type_name, (type_name,), lambda a: (a == 0).astype(a.dtype))


# What two words make, by the four bits of its truth table: bit 2 * b + c is the result for those two.
_PAIRS: tuple[Callable[[Values, Values], Values], ...] = (
    lambda b, c: b ^ b,
    lambda b, c: ~(b | c),
    lambda b, c: ~b & c,
    lambda b, c: ~b,
    lambda b, c: b & ~c,
    lambda b, c: ~c,
    lambda b, c: b ^ c,
    lambda b, c: ~(b & c),
    lambda b, c: b & c,
    lambda b, c: ~(b ^ c),
    lambda b, c: c,
    lambda b, c: ~b | c,
    lambda b, c: b,
    lambda b, c: b | ~c,
    lambda b, c: b | c,
    lambda b, c: b | ~b,
)


def looked_up(a: Values, b: Values, c: Values, table: Values) -> Values:
    """Return, bit by bit, the bit of ``table`` with the number made of a (4), b (2) and c (1).

    A table of shape () is split by a into two of b and c, which takes about a fifth of the steps.
    """
    if table.ndim:
        return _looked_up_each(a, b, c, table)
    entries = int(table)
    where_set, where_clear = _PAIRS[entries >> 4 & 15](b, c), _PAIRS[entries & 15](b, c)
    return where_clear ^ (a & (where_set ^ where_clear))


def _looked_up_each(a: Values, b: Values, c: Values, table: Values) -> Values:
    found: Values = np.zeros((), np.uint32)
    for entry in range(8):
        chosen = np.negative((table >> entry) & 1)  # all bits set where the table has a 1
        pattern = [value if entry & bit else ~value for value, bit in ((a, 4), (b, 2), (c, 1))]
        found = found | (pattern[0] & pattern[1] & pattern[2] & chosen)
    return found


def _lop3(type_name: str) -> Operation:
    return Operation(
        results=("b32",), sources=("b32",) * 4, compute=lambda *values: (looked_up(*values),), constants=(3,)
    )


def _lop3_combined(combine: str, type_name: str) -> Operation:
    function = np.logical_or if combine == "or" else np.logical_and

    def compute(a: Values, b: Values, c: Values, table: Values, q: Values) -> tuple[Values, Values]:
        result = looked_up(a, b, c, table)
        return result, function(result != 0, q)

    return Operation(
        results=("b32", "pred"), sources=(*("b32",) * 4, "pred"), compute=compute, constants=(3,)
    )


# --- shifts --------------------------------------------------------------------------------------


def _amounts(bits: int, dtype: npt.DTypeLike) -> Callable[[Values], Values]:
    """Return what makes of amounts those of a dtype, at most so many bits; constants are found in a list."""
    known = [np.array(amount, dtype) for amount in range(bits + 1)]
    return lambda b: np.minimum(b, bits).astype(dtype) if b.ndim else known[min(int(b), bits)]


def _shift_left(type_name: str) -> Operation:
    amounts = _amounts(bits := bits_of(type_name), UNSIGNED[bits])
    return _operation(type_name, (type_name, "u32"), lambda a, b: np.left_shift(a, amounts(b)))


def _shift_right(type_name: str) -> Operation:
    dtype = number_dtype(type_name)
    amounts = _amounts(bits_of(type_name), dtype)

    def compute(a: Values, b: Values) -> Values:
        return unsigned(np.right_shift(a.view(dtype), amounts(b)))

    return _operation(type_name, (type_name, "u32"), compute)


def _funnel(side: str, mode: str, type_name: str) -> Operation:
    """Return the upper word of ``b:a`` shifted left, or its lower word shifted right."""

    def compute(a: Values, b: Values, c: Values) -> Values:
        both = (b.astype(np.uint64) << 32) | a
        amount = np.minimum(c, 32) if mode == "clamp" else c & 31
        shifted: Values = (both << amount) >> 32 if side == "l" else both >> amount
        return shifted.astype(np.uint32)

    return _operation("b32", ("b32", "b32", "u32"), compute)


# --- fields --------------------------------------------------------------------------------------


def _low_ones(count: Values, dtype: np.dtype[Any]) -> Values:
    """Return words whose ``count`` lowest bits are set; all where it is the width or more."""
    unit = np.ones((), dtype)
    ones: Values = np.subtract(np.left_shift(unit, count.astype(dtype)), unit)
    return ones


def _merged(inside: Values, outside: Values, mask: Values) -> Values:
    """Return the bits of ``inside`` where the mask is set, and of ``outside`` elsewhere."""
    return np.bitwise_or(inside & mask, outside & ~mask)


def _insert(type_name: str) -> Operation:
    dtype = UNSIGNED[bits_of(type_name)]

    def compute(a: Values, b: Values, c: Values, d: Values) -> Values:
        position, length = (c & 0xFF).astype(dtype), d & 0xFF
        mask = np.left_shift(_low_ones(length, dtype), position)
        return _merged(np.left_shift(a, position), b, mask)

    return _operation(type_name, (type_name, type_name, "u32", "u32"), compute, limited=(2, 3))


def _extract(type_name: str) -> Operation:
    """Return the field moved down; of signed types its upper bit (the word's, where it is cut) fills the
    rest.
    """
    dtype, bits = number_dtype(type_name), bits_of(type_name)

    def compute(a: Values, b: Values, c: Values) -> Values:
        position, length = np.minimum(b & 0xFF, bits).astype(dtype), np.minimum(c & 0xFF, bits)
        mask = _low_ones(length, UNSIGNED[bits])
        moved = unsigned(np.right_shift(a.view(dtype), position))
        if not is_signed(type_name):
            return moved & mask
        sign = np.right_shift(moved, np.maximum(length, 1).astype(UNSIGNED[bits]) - 1) & (length != 0)
        return _merged(moved, np.negative(sign), mask)

    return _operation(type_name, (type_name, "u32", "u32"), compute, limited=(1, 2))


def _sign_extend(mode: str, type_name: str) -> Operation:
    """Return the low b bits of a, extended by the uppermost of them (.s32) or by zeros."""

    def compute(a: Values, b: Values) -> Values:
        kept = np.minimum(b, 32) if mode == "clamp" else b & 31
        mask = _low_ones(kept, UNSIGNED[32])
        if type_name == "u32":
            return a & mask
        sign = (a >> ((np.maximum(kept, 1) - 1) & 31)) & (kept != 0)
        return _merged(a, np.negative(sign), mask)

    return _operation(type_name, (type_name, "u32"), compute)


def _mask(mode: str, type_name: str) -> Operation:
    """Return the operation that sets b bits from bit a upwards; those beyond bit 31 are dropped."""

    def compute(a: Values, b: Values) -> Values:
        position, width = (a, b) if mode == "clamp" else (a & 31, b & 31)
        return np.left_shift(_low_ones(width, UNSIGNED[32]), position)

    return _operation("u32", ("u32", "u32"), compute)


# --- counts and positions ------------------------------------------------------------------------


def highest_one(values: Values) -> Values:
    """Return the number of the highest bit set, as uint32; 0xffffffff where none is.

    Halves the word at each step.
    """
    bits = values.dtype.itemsize * 8
    found = np.zeros((), np.uint32)
    rest = values
    step = bits // 2
    while step:
        above = (rest >> step) != 0
        found = found | np.where(above, np.uint32(step), np.uint32(0))
        rest = np.where(above, rest >> step, rest)
        step //= 2
    return np.where(values == 0, np.uint32(_ONES), found)


def _population(type_name: str) -> Operation:
    return _operation("u32", (type_name,), lambda a: np.bitwise_count(a).astype(np.uint32))


def _leading_zeros(type_name: str) -> Operation:
    top = bits_of(type_name) - 1
    return _operation("u32", (type_name,), lambda a: np.subtract(np.uint32(top), highest_one(a)))


def _find(shift: str, type_name: str) -> Operation:
    top = np.uint32(bits_of(type_name) - 1)

    def compute(a: Values) -> Values:
        found = highest_one(np.where(signed(a) < 0, ~a, a) if is_signed(type_name) else a)
        return np.where(found == _ONES, found, np.subtract(top, found)) if shift else found

    return _operation("u32", (type_name,), compute)


def _reverse(type_name: str) -> Operation:
    steps = {"b32": (1, 2, 4, 8, 16), "b64": (1, 2, 4, 8, 16, 32)}[type_name]
    ones = (1 << bits_of(type_name)) - 1

    def compute(a: Values) -> Values:
        for step in steps:
            low = ones // ((1 << step) + 1)  # the lower of each two groups of bits
            a = ((a >> step) & low) | ((a & low) << step)
        return a

    return _operation(type_name, (type_name,), compute)


def _find_set(type_name: str) -> Operation:
    """Return the number of the |offset|-th bit set from bit base upwards, or downwards where offset is
    negative.

    For the offset -2**31 the manual's loop finds none; ptxas's code for sm_90 would give 0.
    """

    def compute(mask: Values, base: Values, offset: Values) -> Values:
        down = signed(offset) < 0
        count = np.abs(signed(offset))
        bits = (np.right_shift(mask, np.uint32(bit)) & 1 for bit in range(32))
        found: Values = np.array(_ONES, np.uint32)
        ones = [(bit, is_one != 0) for bit, is_one in enumerate(bits)]
        for wanted, order in ((~down, ones), (down, ones[::-1])):
            found = _nth_set_bit(order, base, count, wanted, found)
        at_base = np.where((np.right_shift(mask, base) & 1) != 0, base, np.uint32(_ONES))
        return np.where(offset == 0, at_base, found)

    return _operation("b32", ("b32", "b32", "b32"), compute)


def _nth_set_bit(
    order: list[tuple[int, Values]], base: Values, count: Values, wanted: Values, found: Values
) -> Values:
    """Return the bit where the count of bits set from base, in this order of bits, reaches ``count``; else
    ``found``.
    """
    rising = order[0][0] == 0
    seen = np.zeros((), np.int32)
    for bit, is_one in order:
        counts = is_one & ((base <= bit) if rising else ((base >= bit) & (base < 32)))
        seen = np.add(seen, counts, dtype=np.int32)
        found = np.where(wanted & counts & (seen == count), np.uint32(bit), found)
    return found


_and, _or, _xor = _bitwise(np.bitwise_and), _bitwise(np.bitwise_or), _bitwise(np.bitwise_xor)
_MODES = ("clamp", "wrap")
_WORDS = ("u32", "s32")
_LONG = ("b32", "b64")

# fmt: off
ROWS: tuple[Row, ...] = (
    Row(opcode="and",   slots=(_LOGIC,),                    build=_and),
    Row(opcode="or",    slots=(_LOGIC,),                    build=_or),
    Row(opcode="xor",   slots=(_LOGIC,),                    build=_xor),
    Row(opcode="not",   slots=(_LOGIC,),                    build=_complement),
    Row(opcode="cnot",  slots=(_BITS,),                     build=_is_zero),
    Row(opcode="lop3",  slots=(("b32",),),                  build=_lop3, since=(4, 3)),
    Row(opcode="lop3",  slots=(("or", "and"), ("b32",)),    build=_lop3_combined, since=(8, 2)),
    Row(opcode="shl",   slots=(_BITS,),                     build=_shift_left),
    Row(opcode="shr",   slots=(_SHIFTED_RIGHT,),            build=_shift_right),
    Row(opcode="shf",   slots=(("l", "r"), _MODES, ("b32",)), build=_funnel, since=(3, 1)),
    Row(opcode="bfi",   slots=(_LONG,),                     build=_insert, since=(2, 0)),
    Row(opcode="bfe",   slots=(_FIELDS,),                   build=_extract, since=(2, 0)),
    Row(opcode="szext", slots=(_MODES, _WORDS),             build=_sign_extend, since=(7, 6)),
    Row(opcode="bmsk",  slots=(_MODES, ("b32",)),           build=_mask, since=(7, 6)),
    Row(opcode="popc",  slots=(_LONG,),                     build=_population, since=(2, 0)),
    Row(opcode="clz",   slots=(_LONG,),                     build=_leading_zeros, since=(2, 0)),
    Row(opcode="brev",  slots=(_LONG,),                     build=_reverse, since=(2, 0)),
    Row(opcode="bfind", slots=(("", "shiftamt"), _FIELDS),  build=_find, since=(2, 0)),
    Row(opcode="fns",   slots=(("b32",),),                  build=_find_set, since=(6, 0)),
)
# fmt: on
