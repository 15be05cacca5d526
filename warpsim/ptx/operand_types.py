"""Which registers and constants every operand of every statement takes, as ptxas 13.0 has it.

Knows types by their names ("b32"), and when registers of several types may stand in one vector; does not
know how operands are written or what is declared. PTX ISA 9.1, sections 9.7.14.5.14 "mma", 9.7.14.6.3
"mma.sp", 9.7.15.5.2 "wgmma.mma_async", 9.7.9.7 "mov", 9.7.9.8 "ld" and 9.7.9.11 "st".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from ..isa.instruction import Instruction

TypeSet = frozenset[str]

# Type of register -> bits of it in one lane: all there are.
REGISTER_BITS = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8,
    "b16": 16, "u16": 16, "s16": 16, "f16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64,
    "b128": 128,
}  # fmt: skip

# --- matrix instructions ---------------------------------------------------------------------------

# What constants in a vector count as; they take the width of their neighbours.
INTEGER, FLOAT = "integer constants", "float constants"
_AMONG_REGISTERS = {  # bits of the vector's registers -> kind of constant -> type
    16: {"integer": INTEGER, "f32": FLOAT, "f64": FLOAT},
    32: {"integer": INTEGER, "f32": "f32", "f64": FLOAT},
    64: {"integer": INTEGER, "f32": FLOAT, "f64": FLOAT},
}

_B32 = frozenset({"b32"})
_S32 = frozenset({"b32", "u32", "s32"})
_F32 = frozenset({"b32", "f32"})
_F16X2 = frozenset({"b32", "f16x2"})
_ANY_32 = _S32 | _F32 | _F16X2
_ANY_64 = frozenset({"b64", "u64", "s64", "f64", INTEGER, FLOAT})
_IDS = frozenset({"b16", "u16", "s16", INTEGER})
_S64 = frozenset({"b64", "u64", "s64"})
_PRED = frozenset({"pred"})


class _Row(NamedTuple):
    """Types that an operand takes in some forms; words apart by blanks, an empty column stands for all."""

    families: str
    operands: str
    forms: str  # operations or shapes
    element: str
    types: TypeSet

    def applies(self, form: Instruction, operand: str, element: str) -> bool:
        columns = (
            (self.families, {form.family.name}),
            (self.operands, {operand}),
            (self.forms, {form.operation, str(form.shape)}),
            (self.element, {element}),
        )
        return all(not words or found & {*words.split()} for words, found in columns)


_TABLE = (  # the first row that applies
    #    families          operands                     operations or shapes    element  types
    _Row("mma mma.sp",     "a b",                       "f16 m8n8k4.f16",       "",      _F16X2),
    _Row("mma mma.sp",     "a b",                       "mxf8f6f4 mxf4",        "",      _B32),
    _Row("mma",            "a b",                       "bf16 tf32",            "",      _B32),
    _Row("mma",            "a b",                       "f64",                  "",      _ANY_64),
    _Row("mma",            "a b",                       "m8n8k16",              "",      _S32),
    _Row("mma mma.sp",     "a b",                       "",                     "",      _ANY_32),
    _Row("wgmma wgmma.sp", "a",                         "integer b1",           "",      _ANY_32),
    _Row("wgmma wgmma.sp", "a",                         "",                     "",      _F16X2),
    _Row("mma.sp",         "c d",                       "f16 bf16 tf32",        "f32",   _ANY_32),
    _Row("mma mma.sp",     "c d",                       "f8f6f4",               "f32",   _F32 | {FLOAT}),
    _Row("",               "c d",                       "",                     "f32",   _F32),
    _Row("",               "c d",                       "",                     "f16",   _F16X2),
    _Row("",               "c d",                       "",                     "s32",   _S32 | {INTEGER}),
    _Row("",               "c d",                       "",                     "f64",   _ANY_64),
    _Row("wgmma.sp",       "e",                         "",                     "",      _ANY_32),
    _Row("",               "e",                         "",                     "",      _S32 | _F16X2),
    _Row("",               "scale_a scale_b",           "",                     "",      _ANY_32),
    _Row("",               "ids_a ids_b",               "",                     "",      _IDS),
    _Row("",               "a_descriptor b_descriptor", "",                     "",      _S64),
    _Row("",               "scale_d",                   "",                     "",      _PRED),
)  # fmt: skip
GUARD_TYPES = _PRED


@lru_cache(maxsize=4096)
def operand_types(form: Instruction, operand: str) -> TypeSet:
    """Return the types that an operand may have, as a vector or as a single register.

    Operands are a, b, c, d, e, scale_a, scale_b, ids_a, ids_b, a_descriptor, b_descriptor and scale_d.
    """
    element = form.format(operand).name if operand in "abcd" else ""
    return next(row.types for row in _TABLE if row.applies(form, operand, element))


# --- vectors ---------------------------------------------------------------------------------------
#
# A vector has one type. Where its elements agree it is theirs; where they differ it is untyped bits,
# and then they must be of kin: .b32 goes with every type of its width, signed with unsigned integers
# and both with integer constants, floats with float constants. An operand takes certain types. So
# `{u32, b32}` may stand in places where `{u32, u32}` may not.

_KIN = (
    {"u16", "s16", "u32", "s32", "u64", "s64", INTEGER},
    {"f16", "f32", "f64", FLOAT},
)


def width(name: str) -> int:
    """Return bits of a register of the type; 0 for constants, and for vector registers, which suit no
    operand.
    """
    return REGISTER_BITS.get(name, 0)


@cache
def width_of(types: TypeSet) -> int:
    """Return bits of the registers that an operand of these types takes."""
    return max(map(width, types))


def constant_type(kind: str, bits: int) -> str:
    """Return what a constant counts as in a vector of registers of so many bits."""
    return _AMONG_REGISTERS[bits][kind]


@cache
def kin(first: str, second: str) -> bool:
    """Return whether elements of two types may stand in one vector; vector registers never do."""
    if "." in first + second or len({width(first), width(second)} - {0}) > 1:
        return False
    untyped = first.startswith("b") or second.startswith("b")
    return first == second or untyped or any({first, second} <= group for group in _KIN)


def vector_type(types: Sequence[str]) -> str:
    """Return the type of a vector whose elements are of kin."""
    return types[0] if len(set(types)) == 1 else f"b{max(map(width, types))}"


@cache
def together(types: tuple[str, ...]) -> str | None:
    """Return the type of a vector with elements of these types; None where they make no vector."""
    return vector_type(types) if all(kin(before, kind) for before, kind in pairwise(types)) else None


@cache
def suit(types: tuple[str | None, ...], allowed: TypeSet) -> bool:
    """Return whether registers of these types (None: not declared) make a vector that an operand may be.

    Remembered, for a trace has few different vectors of types.
    """
    kinds = tuple(kind for kind in types if kind is not None)
    return len(kinds) == len(types) and together(kinds) in allowed


# --- mov, ld, st, ldmatrix, stmatrix ---------------------------------------------------------------

CONSTANT_NAMES = {"integer": "an integer constant", "f32": "an f32 constant", "f64": "a float constant"}
CONSTANT_TYPES = {  # kind of constant -> types of mov and st that take it
    "integer": ("pred", "b8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"),
    "f32": ("b32", "f32", "f64"),
    "f64": ("b64", "f32", "f64"),
}
VARIABLE_TYPES = frozenset(  # of a mov that takes the address of a variable
    {"b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"}
)
ADDRESS_TYPES = _S32 | _S64  # of the register in an address [r+16]
MATRIX_TYPES = _ANY_32  # of the registers of ldmatrix and stmatrix


@cache
def moved_types(kind: str) -> TypeSet:
    """Return the registers that a mov of a type takes: those of its width, as .b types take and go with
    any.
    """
    return frozenset(
        name
        for name in REGISTER_BITS
        if width(name) == width(kind)
        and (name == kind or "b" in (name[0], kind[0]) or (_is_integer(name) and _is_integer(kind)))
    ) | ({"f16x2"} if kind in ("u32", "s32") else set())


_BITS_OF_KINDS = {  # types of instructions that no register has
    "bf16": frozenset({"b16"}),
    "bf16x2": _B32,
    "u16x2": _F16X2,
    "s16x2": _F16X2,
    "f32x2": frozenset({"b64"}),
}


@cache
def computed_types(kind: str) -> TypeSet:
    """Return the registers that an instruction computing with a type takes: those of a mov, where any have
    it.
    """
    return _BITS_OF_KINDS.get(kind) or moved_types(kind)


@cache
def accessed_types(kind: str) -> TypeSet:
    """Return the registers that ld, st and cvt of a type take: as wide at least, and of its sort."""
    wide = [name for name in REGISTER_BITS if width(name) >= width(kind)]
    if kind[0] == "f":
        return frozenset(name for name in wide if name == kind or name[0] == "b")
    return frozenset(name for name in wide if kind[0] == "b" or name not in ("f16", "f32", "f64"))


def _is_integer(name: str) -> bool:
    return name[0] in "us"
