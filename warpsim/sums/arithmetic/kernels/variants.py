"""The variants of fused sums that have kernels, and the numbers that their fast and exact ways share."""

from __future__ import annotations

from dataclasses import dataclass

ZERO, SPECIAL = -8000, 16000  # exponents of zero and of Inf and NaN; their sums stay in int16
NO_TERM = 2 * ZERO  # the exponent of an accumulator that is zero
ALL_ZERO = -3000  # above every maximum over zeros, below every other
LOWEST, HIGHEST = -100, 120  # maxima for which fast is proven
# Planes of bytes hold exponents with 63 (A) or 64 (B) added, so that sums have f32's bias: 0 for zero; Inf
# and NaN have a number that stays the largest when an exponent is added and the sum is cut to a byte.
BYTE_ZERO, BYTE_SPECIAL = 0, 255
LIFT_A, LIFT_B = 63, 64
NARROWEST, WIDEST = -14, 15  # exponents of formats that have planes of bytes
BYTE_LOWEST = WIDEST + LIFT_B + 1  # above every sum with a zero, below every other
BYTE_HIGHEST = HIGHEST + 127
FLOORED_HIGHEST = 127 + 100  # above which there is no float32 whose last place is that of the sum
# Planes of lowest bits, bytes too: the exponent of a factor's lowest bit with LIFT_LOW added, and OTHER_SIGN
# to those of A that are negative and of B that are positive. Sums wrap to a byte: they are below MOST_LOW for
# the negative products alone. Zeros have LOW_ZERO, with which no sum is below MOST_LOW.
LIFT_LOW, OTHER_SIGN, LOW_ZERO, MOST_LOW = 16, 128, 96, 63
# Planes of distances, bytes: how far below the bound of its row (A) or column (B) of a step an exponent is,
# MOST_DISTANT where that is more, or zero. Bounds are bytes, 0 or more, with these numbers added, so that
# their sum has f32's bias: it is UNBOUNDED where it would be more, and with Inf or NaN.
MOST_DISTANT = 255
BOUND_A, BOUND_B = 0, 127
UNBOUNDED = 255
NOTHING = -200  # the largest exponent up to which products sum to less than half of f32's smallest number
SCALE_LIMIT = 600  # above every sum of two block scales' exponents
INT32_SAFE = (1 << 31) - (1 << 27)  # a sum that leaves room for the accumulator
CANONICAL_NAN = 0x7FFFFFFF
F16_LARGEST, F16_LOWEST = 65504.0, -14


@dataclass(frozen=True, kw_only=True)
class Variant:
    """The constants of a kernel: lanes, products a step, steps a pass and the rounding of results.

    ``stride``: columns from one row of a panel of B to the next. ``half``: results are rounded to f16, to
    nearest, otherwise to f32, toward zero. ``emulated``: the steps of a pass start from zero, and their sum
    is added to C in round to nearest. ``scaled``: the products of a pass have a block scale. ``sparse``: rows
    of B are selected. ``compact``: planes of exponents are of bytes. ``floored``: compact, products are of at
    most 8 bits, there are planes of their factors' lowest bits, and the CPU adds them with a rounding of its
    own (see floors). ``relative``: passes are of one step, whose exponents (int16) have planes of distances,
    and bounds in the place of scales. ``short``: results are f32 of fewer than 24 bits.
    """

    width: int
    stride: int
    length: int
    steps: int
    half: bool = False
    emulated: bool = False
    scaled: bool = False
    sparse: bool = False
    compact: bool = False
    floored: bool = False
    relative: bool = False
    short: bool = False

    @property
    def products(self) -> int:
        """Products of a pass."""
        return self.length * self.steps

    @property
    def bytewise(self) -> bool:
        """Whether the largest exponents of all columns are found first, as bytes."""
        return self.compact or self.relative

    @property
    def code(self) -> int:
        """The variant as an integer, which Numba takes for a constant."""
        flags = self.half | self.emulated << 1 | self.scaled << 2 | self.sparse << 3
        flags |= self.short << 18 | self.relative << 19 | self.floored << 22 | self.compact << 23
        return flags | self.width << 4 | self.length << 12 | self.steps << 20 | self.stride << 24

    @staticmethod
    def of(code: int) -> Variant:
        """Return the inverse of ``code``; higher bits are ignored."""
        return Variant(
            half=bool(code & 1),
            emulated=bool(code & 2),
            scaled=bool(code & 4),
            sparse=bool(code & 8),
            width=code >> 4 & 255,
            length=code >> 12 & 63,
            short=bool(code >> 18 & 1),
            relative=bool(code >> 19 & 1),
            floored=bool(code >> 22 & 1),
            compact=bool(code >> 23 & 1),
            steps=code >> 20 & 3,
            stride=code >> 24 & 4095,
        )
