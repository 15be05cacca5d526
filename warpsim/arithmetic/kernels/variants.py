"""Which fused sums there are kernels for, and the numbers that their fast and exact ways agree on."""

from __future__ import annotations

from dataclasses import dataclass

ZERO, SPECIAL = -8000, 16000  # exponents of zero and of Inf and NaN; their sums stay in int16
NO_TERM = 2 * ZERO  # the exponent of an accumulator that is zero
ALL_ZERO = -3000  # above every maximum over zeros, below every other
LOWEST, HIGHEST = -100, 120  # maxima for which fast is proven
SCALE_LIMIT = 600  # above every sum of two block scales' exponents
INT32_SAFE = (1 << 31) - (1 << 27)  # a sum that leaves room for the accumulator
CANONICAL_NAN = 0x7FFFFFFF
F16_LARGEST, F16_LOWEST = 65504.0, -14


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What is compiled into a kernel: lanes, products a step, steps a pass and how results come out.

    ``stride``: columns from one row of a panel of B to the next. ``half``: results are rounded to f16, to
    nearest, otherwise to f32, toward zero. ``emulated``: the steps of a pass start from zero, and their
    sum is added to C in round to nearest. ``scaled``: the products of a pass have a block scale.
    ``sparse``: rows of B are selected.
    """

    width: int
    stride: int
    length: int
    steps: int
    half: bool = False
    emulated: bool = False
    scaled: bool = False
    sparse: bool = False

    @property
    def products(self) -> int:
        """Products of a pass."""
        return self.length * self.steps

    @property
    def code(self) -> int:
        """The variant as an integer, which Numba takes for a constant."""
        flags = self.half | self.emulated << 1 | self.scaled << 2 | self.sparse << 3
        return flags | self.width << 4 | self.length << 12 | self.steps << 20 | self.stride << 24

    @staticmethod
    def of(code: int) -> Variant:
        """The inverse of ``code``; higher bits are ignored."""
        return Variant(
            half=bool(code & 1),
            emulated=bool(code & 2),
            scaled=bool(code & 4),
            sparse=bool(code & 8),
            width=code >> 4 & 255,
            length=code >> 12 & 255,
            steps=code >> 20 & 15,
            stride=code >> 24 & 4095,
        )
