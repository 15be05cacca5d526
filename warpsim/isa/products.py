"""Matrix products: what one instruction computes, wherever its operands lie.

``Product`` says shape, formats and modifiers; a mnemonic states it (mma, wgmma), or a descriptor that the
instruction reads while it runs. ``Operands`` are its numbers and the hinge of the package: everything before
them knows lanes, registers and memories and no floating point, everything after them knows numbers and no
lanes. Does not know spellings, targets or places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .formats import Format
from .sparsity import Pattern

Codes = npt.NDArray[Any]  # unsigned integers: the bits of the elements


@dataclass(frozen=True, slots=True)
class Shape:
    """``m x n x k`` of one instruction; for sparse forms k counts logical columns."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How an element lies in a word: the bits it occupies and the code's lowest bit in them."""

    bits: int
    shift: int = 0


@dataclass(frozen=True, kw_only=True)
class Product:
    """``D = A x B + C`` of one shape, with the formats and modifiers that decide its result.

    ``operation`` names the arithmetic in the table of rules; ``products`` is the number of independent
    matrix products (4 for m8n8k4 f16). ``negated`` and ``transposed`` state for A and for B whether every
    sign is flipped, and whether the elements of a tile in shared memory run along M or N instead of K.
    PTX ISA 9.1, sections 9.7.14.5 "mma", 9.7.15.5.2 "wgmma.mma_async"; the instruction descriptor of
    tcgen05.mma, section 9.7.16, has the same fields.
    """

    shape: Shape
    a: Format
    b: Format
    c: Format
    d: Format
    operation: str
    kind: str = ""
    pattern: Pattern | None = None
    scale: Format | None = None
    scale_chunks: int = 0
    satfinite: bool = False
    rounding: str = ""
    bit_operation: str = ""
    products: int = 1
    negated: tuple[bool, bool] = (False, False)
    transposed: tuple[bool, bool] = (False, False)

    @cached_property
    def _hash(self) -> int:
        words = (
            self,
            self.operation,
            self.kind,
            self.pattern,
            self.scale_chunks,
            self.rounding,
            self.negated,
        )
        return crc32(" ".join(map(str, words)).encode())  # the same in every process: products are pickled

    def __hash__(self) -> int:
        return self._hash  # computed once: caches look a product up in every call

    def __str__(self) -> str:
        return f"{self.shape} {self.d}.{self.a}.{self.b}.{self.c}"

    @property
    def sparse(self) -> bool:
        """Whether A is stored compressed, with metadata."""
        return self.pattern is not None

    @property
    def stored_k(self) -> int:
        """Columns of A that are stored."""
        return self.shape.k * self.pattern.stored // self.pattern.chunk if self.pattern else self.shape.k

    @property
    def multiplications(self) -> int:
        """Products of two elements that one execution sums."""
        return self.products * self.shape.m * self.shape.n * self.stored_k

    def format(self, operand: str) -> Format:
        """Return the element format of operand a, b, c or d."""
        formats: dict[str, Format] = {"a": self.a, "b": self.b, "c": self.c, "d": self.d}
        return formats[operand]

    def matrix_shape(self, operand: str) -> tuple[int, int]:
        """Return rows and columns of operand a, b, c or d as it is stored (A compressed where sparse)."""
        m, n, k = self.shape.m, self.shape.n, self.shape.k
        return {"a": (m, self.stored_k), "b": (k, n), "c": (m, n), "d": (m, n)}[operand]

    def row_bytes(self, operand: str) -> int:
        """Return the bytes that a row of A, as it is stored, or a column of B takes in shared memory."""
        k = self.stored_k if operand == "a" else self.shape.k
        return k * self.storage(operand).bits // 8

    def storage(self, operand: str) -> Storage:
        """Return how an element of a, b, c or d lies in a register.

        f8f6f4 kinds give each multiplicand a byte (PTX ISA 9.1, section 9.7.14.5 "Matrix fragments").
        """
        element = self.format(operand)
        if self.kind.endswith("f8f6f4") and operand in "ab":
            return Storage(bits=8, shift=element.container_shift)
        return Storage(bits=element.bits)

    def with_pattern(self, pattern: Pattern) -> Product:
        """Return the product with a compressed A."""
        return replace(self, pattern=pattern)

    def with_immediates(self, negated: tuple[bool, bool], transposed: tuple[bool, bool]) -> Product:
        """Return the product of a statement whose immediates flip signs of A and B or transpose them."""
        if negated == transposed == (False, False):
            return self
        signs = (self.negated[0] != negated[0], self.negated[1] != negated[1])
        majors = (self.transposed[0] != transposed[0], self.transposed[1] != transposed[1])
        return replace(self, negated=signs, transposed=majors)


@dataclass(frozen=True, kw_only=True)
class Operands:
    """Numbers ready for arithmetic; leading axes already merged into one batch axis.

    ``a (batch, m, s)``, ``b (batch, k, n)``, ``c (batch, m, n)`` are codes, whose signs are already flipped
    where the product is ``negated``. ``columns (batch, m, s)`` is the logical column of each stored element
    of A, None where A is dense. Scales are codes: ``scale_a (batch, m, chunks)`` and ``scale_b (batch,
    chunks, n)``.
    """

    product: Product
    a: Codes
    b: Codes
    c: Codes
    columns: npt.NDArray[np.intp] | None = None
    scale_a: Codes | None = None
    scale_b: Codes | None = None
