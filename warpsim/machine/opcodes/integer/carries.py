"""Integers longer than a register: add.cc addc sub.cc subc mad.cc madc.

Knows the condition code CC.CF as a bool a lane, which passes from one instruction to the next; not where it
is kept. PTX ISA 9.0, section 9.7.2; the manual has 64 bits since 4.3, but ptxas 13.0 asks that of .cc alone.

After a subtraction the manual calls CC.CF the borrow. In the code of ptxas 13.0 (disassembled for sm_75,
sm_90 and sm_100a; folded constants agree) it is the carry of ``a + ~b + 1``, set where nothing is borrowed,
and subc adds it to ``a + ~b``. Chains of one kind do not differ; addc after sub.cc does: it gets the carry
here.
"""

from __future__ import annotations

import numpy as np

from ..operation import Operation, Row, Values, nowhere
from ..scalar import CARRY
from .integers import product_half

_TYPES = ("u32", "s32")
_LONG = ("u64", "s64")
_ALL = _TYPES + _LONG
_HALVES = ("lo", "hi")


def _sum(a: Values, b: Values, carry: Values) -> tuple[Values, Values]:
    """Return ``a + b + carry`` and its carry."""
    partial = np.add(a, b)
    total = np.add(partial, carry)
    return total, (partial < a) | (total < partial)


def _add_first(written: str, type_name: str) -> Operation:
    def compute(a: Values, b: Values) -> tuple[Values, Values]:
        total = np.add(a, b)
        return total, total < a

    return Operation(results=(type_name,), sources=(type_name,) * 2, compute=compute, writes_carry=True)


def _add_next(written: str, type_name: str) -> Operation:
    writes = written == "cc"
    return Operation(
        results=(type_name,),
        sources=(type_name,) * 2,
        compute=_sum if writes else lambda a, b, carry: (np.add(np.add(a, b), carry),),
        reads_carry=True,
        writes_carry=writes,
    )


def _subtract_first(written: str, type_name: str) -> Operation:
    return Operation(
        results=(type_name,),
        sources=(type_name,) * 2,
        compute=lambda a, b: (np.subtract(a, b), a >= b),
        fidelity="inferred",
        note=CARRY,
        writes_carry=True,
        borrows=True,
        where=nowhere,
    )


def _subtract_next(written: str, type_name: str) -> Operation:
    writes = written == "cc"

    def compute(a: Values, b: Values, carry: Values) -> tuple[Values, ...]:
        return _sum(a, ~b, carry) if writes else (np.add(np.add(a, ~b), carry),)

    return Operation(
        results=(type_name,),
        sources=(type_name,) * 2,
        compute=compute,
        fidelity="inferred",
        note=CARRY,
        reads_carry=True,
        writes_carry=writes,
        borrows=True,
        where=nowhere,
    )


def _multiply_add_first(half: str, written: str, type_name: str) -> Operation:
    product = product_half(half, type_name)

    def compute(a: Values, b: Values, c: Values) -> tuple[Values, Values]:
        total = np.add(product(a, b), c)
        return total, total < c

    return Operation(results=(type_name,), sources=(type_name,) * 3, compute=compute, writes_carry=True)


def _multiply_add_next(half: str, written: str, type_name: str) -> Operation:
    product, writes = product_half(half, type_name), written == "cc"

    def compute(a: Values, b: Values, c: Values, carry: Values) -> tuple[Values, ...]:
        both = _sum(product(a, b), c, carry)
        return both if writes else both[:1]

    return Operation(
        results=(type_name,), sources=(type_name,) * 3, compute=compute, reads_carry=True, writes_carry=writes
    )


# fmt: off
ROWS: tuple[Row, ...] = (
    Row(opcode="add",  slots=(("cc",), _TYPES),          build=_add_first,          since=(1, 2)),
    Row(opcode="add",  slots=(("cc",), _LONG),           build=_add_first,          since=(4, 3)),
    Row(opcode="addc", slots=(("",), _ALL),              build=_add_next,           since=(1, 2)),
    Row(opcode="addc", slots=(("cc",), _TYPES),          build=_add_next,           since=(1, 2)),
    Row(opcode="addc", slots=(("cc",), _LONG),           build=_add_next,           since=(4, 3)),
    Row(opcode="sub",  slots=(("cc",), _TYPES),          build=_subtract_first,     since=(1, 2)),
    Row(opcode="sub",  slots=(("cc",), _LONG),           build=_subtract_first,     since=(4, 3)),
    Row(opcode="subc", slots=(("",), _ALL),              build=_subtract_next,      since=(1, 2)),
    Row(opcode="subc", slots=(("cc",), _TYPES),          build=_subtract_next,      since=(1, 2)),
    Row(opcode="subc", slots=(("cc",), _LONG),           build=_subtract_next,      since=(4, 3)),
    Row(opcode="mad",  slots=(_HALVES, ("cc",), _TYPES), build=_multiply_add_first, since=(3, 0)),
    Row(opcode="mad",  slots=(_HALVES, ("cc",), _LONG),  build=_multiply_add_first, since=(4, 3)),
    Row(opcode="madc", slots=(_HALVES, ("",), _ALL),     build=_multiply_add_next,  since=(3, 0)),
    Row(opcode="madc", slots=(_HALVES, ("cc",), _TYPES), build=_multiply_add_next,  since=(3, 0)),
    Row(opcode="madc", slots=(_HALVES, ("cc",), _LONG),  build=_multiply_add_next,  since=(4, 3)),
)
# fmt: on
