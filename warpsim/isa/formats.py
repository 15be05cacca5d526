"""Element formats: one row each; everything else about a format is derived from its row.

Knows how wide a code is, where its exponent and fraction lie, which codes are Inf and NaN and which
NumPy or ml_dtypes dtype holds it. Does not know how codes lie in registers (see families) nor how they
are rounded (see arithmetic). Encodings: IEEE 754 for f16, f32 and f64; PTX ISA 9.1, section 5.2.3
"Alternate Floating-Point Data Formats" for the rest; OCP MX specification 1.0 for the scale formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .features import Feature


class Specials(Enum):
    """Which of a format's largest magnitudes are not finite numbers; the values are names for documents."""

    INFINITIES = "infinities"  # all bits of the exponent field set: Inf with fraction 0, NaN with any other
    ONE_NAN = "one NaN"  # every bit but the sign set
    NONE = "none"  # finite numbers only


@dataclass(frozen=True, kw_only=True)
class Format:
    """One element format.

    ``bits`` is the width of a code; ``dtype`` is what matrices of the format are made of.
    ``exponent_bits == 0`` marks an integer. ``container_shift`` is where the lowest bit of a
    narrower code sits when an instruction gives each element a whole byte. ``written_nan`` is the NaN
    that sums give, where it is not the code with every bit set but the sign. ``since`` is the first PTX
    version with the type, ``feature`` what a chip must have, None for every chip: no form of the type is
    older, or on other chips.
    """

    name: str
    bits: int
    dtype: np.dtype[Any]
    specials: Specials
    exponent_bits: int = 0
    fraction_bits: int = 0
    signed: bool = True
    container_shift: int = 0
    written_nan: int | None = None
    since: tuple[int, int] = (1, 0)
    feature: Feature | None = None

    def __post_init__(self) -> None:
        used = self.signed + self.exponent_bits + self.fraction_bits
        if self.is_float and used > self.bits:
            raise AssertionError(f"{self.name}: {used} bits of fields in {self.bits}")
        if self.specials is not Specials.NONE and not self.is_float:
            raise AssertionError(f"{self.name}: an integer format with {self.specials.value}")
        if self.has_infinity and not self.fraction_bits:
            raise AssertionError(f"{self.name}: no fraction bits to distinguish a NaN from an Inf")

    def __hash__(self) -> int:
        return hash(self.name)  # names are unique, and hashing is on the way of every call

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether the format has an exponent."""
        return self.exponent_bits > 0

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """The unsigned dtype that holds one code: uint8, uint16, uint32 or uint64."""
        return np.dtype(f"u{self.dtype.itemsize}")

    @property
    def mask(self) -> int:
        """All bits of a code."""
        return (1 << self.bits) - 1

    @property
    def ignored_bits(self) -> int:
        """Low bits of a code that the multiplier never sees: 13 for tf32, otherwise 0."""
        return self.bits - self.signed - self.exponent_bits - self.fraction_bits if self.is_float else 0

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def minimum_exponent(self) -> int:
        """Exponent of the smallest normal number, which subnormal numbers share."""
        return 1 - self.bias if self.fraction_bits else -self.bias

    @property
    def sign_bit(self) -> int:
        """The code's sign bit, or 0 where there is none."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def has_infinity(self) -> bool:
        """Whether some code is an Inf."""
        return self.specials is Specials.INFINITIES

    @property
    def has_nan(self) -> bool:
        """Whether some code is a NaN."""
        return self.specials is not Specials.NONE

    @property
    def has_zero(self) -> bool:
        """Whether an exponent field of 0 means zero and subnormal numbers; without fractions it does not."""
        return not self.is_float or self.fraction_bits > 0

    @property
    def canonical_nan(self) -> int:
        """The NaN that tensor cores write; an AssertionError where no code is a NaN."""
        if not self.has_nan:
            raise AssertionError(f"{self.name} has no NaN")
        return self.mask & ~self.sign_bit if self.written_nan is None else self.written_nan

    @cached_property
    def infinity(self) -> int:
        """The code of +Inf; an AssertionError where no code is an Inf."""
        if not self.has_infinity:
            raise AssertionError(f"{self.name} has no Inf")
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits + self.ignored_bits

    @cached_property
    def largest_finite(self) -> int:
        """The code of the largest finite number; of a float without its ignored bits set."""
        full = self.mask & ~self.sign_bit
        if self.has_infinity:
            return self.infinity - (1 << self.ignored_bits)
        return full - 1 if self.has_nan else full


def _float(
    name: str, bits: int, fields: tuple[int, int], specials: Specials, dtype: npt.DTypeLike, **more: Any
) -> Format:
    exponent, fraction = fields
    return Format(
        name=name,
        bits=bits,
        dtype=np.dtype(dtype),
        specials=specials,
        exponent_bits=exponent,
        fraction_bits=fraction,
        **more,
    )


def _integer(name: str, bits: int, dtype: npt.DTypeLike, signed: bool, **more: Any) -> Format:
    return Format(name=name, bits=bits, dtype=np.dtype(dtype), specials=Specials.NONE, signed=signed, **more)


_IEEE, _ONE_NAN, _FINITE = Specials
_WIDE: dict[str, Any] = {"since": (7, 0), "feature": Feature.WIDE_MMA}
_FP8: dict[str, Any] = {"since": (7, 8), "feature": Feature.FP8_CONVERSIONS}
_NARROW: dict[str, Any] = {"since": (8, 6), "feature": Feature.NARROW_CONVERSIONS}
_SUB_BYTE: dict[str, Any] = {"since": (6, 3), "feature": Feature.INTEGER_MMA}
_F64_NAN = 0x7FF8_0000_0000_0000  # the default NaN: the NaN that the f64 unit writes is not published

_ROWS = (
    #       name   bits (exponent, fraction)
    _float("f64", 64, (11, 52), _IEEE, np.float64, written_nan=_F64_NAN),
    _float("f32", 32, (8, 23), _IEEE, np.float32),
    _float("tf32", 32, (8, 10), _IEEE, np.float32, **_WIDE),
    _float("f16", 16, (5, 10), _IEEE, np.float16),
    _float("bf16", 16, (8, 7), _IEEE, ml_dtypes.bfloat16, **_WIDE),
    _float("e4m3", 8, (4, 3), _ONE_NAN, ml_dtypes.float8_e4m3fn, **_FP8),
    _float("e5m2", 8, (5, 2), _IEEE, ml_dtypes.float8_e5m2, **_FP8),
    _float("e3m2", 6, (3, 2), _FINITE, ml_dtypes.float6_e3m2fn, **_NARROW),
    _float("e2m3", 6, (2, 3), _FINITE, ml_dtypes.float6_e2m3fn, **_NARROW),
    _float("e2m1", 4, (2, 1), _FINITE, ml_dtypes.float4_e2m1fn, container_shift=2, **_NARROW),
    _float("ue8m0", 8, (8, 0), _ONE_NAN, ml_dtypes.float8_e8m0fnu, signed=False, **_NARROW),
    # bit 7 of a byte of ue4m3 is unused
    _float("ue4m3", 7, (4, 3), _ONE_NAN, ml_dtypes.float8_e4m3fn, signed=False, **_NARROW),
    _integer("s32", 32, np.int32, True),
    _integer("s8", 8, np.int8, True),
    _integer("u8", 8, np.uint8, False),
    _integer("s4", 4, ml_dtypes.int4, True, **_SUB_BYTE),
    _integer("u4", 4, ml_dtypes.uint4, False, **_SUB_BYTE),
    _integer("b1", 1, np.bool_, False, **_SUB_BYTE),
)

FORMATS: dict[str, Format] = {row.name: row for row in _ROWS}


def floats_of(*widths: int) -> tuple[str, ...]:
    """Return names of the signed floating-point formats of these widths, in the order of the table.

    The multiplicands of a kind: a new format of a width is one of them by its row.
    """
    return tuple(row.name for row in _ROWS if row.is_float and row.signed and row.bits in widths)


def integers_of(width: int) -> tuple[str, ...]:
    """Return names of the integer formats of a width."""
    return tuple(row.name for row in _ROWS if not row.is_float and row.bits == width)
