"""The vocabulary: shapes, table rows, families, instructions and the operands of one execution.

Frozen records without arithmetic. ``Operands`` is the hinge of the package: whatever stands before
it knows lanes and registers and no floating point, whatever stands behind it knows numbers and no
lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .formats import Format
from .layouts.field_layout import FieldLayout
from .layouts.fragment_layout import Layout
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
class Row:
    """One line of a family's table: the forms are the product of its lists.

    ``accumulators`` lists ``D.C`` pairs, ``multiplicands`` the types that A and B may each have.
    ``operation`` names the arithmetic in architectures; ``scales`` lists (scale vector, scale type)
    spellings; the empty string stands for a qualifier that is left out.
    """

    shape: Shape
    accumulators: tuple[str, ...]
    multiplicands: tuple[str, ...]
    operation: str
    since: tuple[int, int]
    targets: frozenset[str]
    variants: tuple[str, ...] = ("",)
    layouts: tuple[tuple[str, str], ...] = (("row", "col"),)
    kind: str = ""
    scales: tuple[tuple[str, str], ...] = (("", ""),)
    satfinite: tuple[bool, ...] = (False,)
    roundings: tuple[str, ...] = ("",)
    bit_operation: str = ""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How one element lies in a register: the bits it occupies and the code's lowest bit in them."""

    bits: int
    shift: int = 0


@dataclass(frozen=True, kw_only=True)
class Family:
    """An instruction family: its opcode, its lanes, its table, its layouts and how it reads operands.

    A mnemonic is the opcode, the fixed ``modifiers``, and the qualifiers of the form; ``types`` are the
    operands whose types it spells, in order. ``gather`` turns inputs into numbers.

    ``fragment(instruction, operand)`` is the layout of an operand in registers, ``operands`` the names
    of those that live there; ``metadata(instruction, selector)`` the layout of the metadata fields.
    ``rules`` names its rules in architectures.
    """

    name: str
    opcode: str
    lanes: int
    rules: str
    rows: tuple[Row, ...]
    fragment: Callable[[Instruction, str], Layout]
    gather: Callable[[Instruction, Inputs], Operands]
    metadata: Callable[[Instruction, int], FieldLayout] | None = None
    operands: str = "abcd"
    modifiers: tuple[str, ...] = ()
    types: str = "dabc"

    def __hash__(self) -> int:
        return hash(self.name)  # names are unique, and hashing is on the way of every call

    def __repr__(self) -> str:
        return f"<family {self.name}>"  # its tables would fill screens


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One legal form, on one target (None: not yet chosen, enough for layouts).

    ``mnemonic`` is the canonical spelling, PTX's order of qualifiers. ``products`` is the number of
    independent matrix products (4 for m8n8k4 f16). ``since`` is the first PTX version with the form.
    """

    mnemonic: str
    target: str | None
    family: Family
    shape: Shape
    a: Format
    b: Format
    c: Format
    d: Format
    operation: str
    since: tuple[int, int]
    targets: frozenset[str]
    a_layout: str = "row"
    b_layout: str = "col"
    variant: str = ""
    kind: str = ""
    scale_vector: str = ""
    scale: Format | None = None
    scale_chunks: int = 0
    satfinite: bool = False
    rounding: str = ""
    bit_operation: str = ""
    products: int = 1
    pattern: Pattern | None = None

    def __hash__(self) -> int:
        return hash((self.mnemonic, self.target))

    def __repr__(self) -> str:
        return f"<{self.mnemonic} on {self.target or 'any target'}>"

    def __str__(self) -> str:
        return self.mnemonic

    @property
    def sparse(self) -> bool:
        """Whether A is stored compressed, with metadata."""
        return self.pattern is not None

    @property
    def ordered(self) -> bool:
        """Whether metadata indices must ascend."""
        return self.variant == "sp::ordered_metadata"

    @property
    def stored_k(self) -> int:
        """Columns of A that are stored."""
        return self.shape.k * self.pattern.stored // self.pattern.chunk if self.pattern else self.shape.k

    def format(self, operand: str) -> Format:
        """The element format of operand a, b, c or d."""
        formats: dict[str, Format] = {"a": self.a, "b": self.b, "c": self.c, "d": self.d}
        return formats[operand]

    def matrix_shape(self, operand: str) -> tuple[int, int]:
        """Rows and columns of operand a, b, c or d as it is stored (A compressed where sparse)."""
        m, n, k = self.shape.m, self.shape.n, self.shape.k
        return {"a": (m, self.stored_k), "b": (k, n), "c": (m, n), "d": (m, n)}[operand]

    def storage(self, operand: str) -> Storage:
        """How an element of a, b, c or d lies in a register.

        f8f6f4 kinds give each multiplicand a byte (PTX ISA 9.1, section 9.7.14.5 "Matrix fragments").
        """
        element = self.format(operand)
        if self.kind.endswith("f8f6f4") and operand in "ab":
            return Storage(bits=8, shift=element.container_shift)
        return Storage(bits=element.bits)

    @property
    def register_bits(self) -> int:
        """Width of a register: 64 for f64, otherwise 32."""
        return 64 if self.a.bits == 64 else 32

    @cached_property
    def registers(self) -> dict[str, int]:
        """Registers of each operand in one lane."""
        counts = {name: self._register_count(name) for name in self.family.operands}
        if self.sparse:
            counts["e"] = 1
        if self.scale:
            counts |= {"scale_a": 1, "scale_b": 1}
        return counts

    def _register_count(self, operand: str) -> int:
        rows, columns = self.matrix_shape(operand)
        bits = rows * columns * self.products * self.storage(operand).bits
        return bits // (self.family.lanes * self.register_bits)

    @cached_property
    def metadata_words(self) -> int:
        """Lanes of a quad that one selector reads: 1, 2 or 4 (0 for dense forms)."""
        if not self.pattern:
            return 0
        chunks = 16 * self.shape.k // self.pattern.chunk  # of the 16 rows that one warp covers
        return chunks // (8 * 8)  # eight quads, eight 4-bit fields a word

    @cached_property
    def selectors(self) -> tuple[int, ...]:
        """Legal sparsity selectors; empty for dense forms."""
        return tuple(range(4 // self.metadata_words)) if self.sparse else ()


class ScaleSelectors(NamedTuple):
    """Which byte and which thread of a quad supply the block scales of A and B."""

    byte_id_a: int = 0
    thread_id_a: int = 0
    byte_id_b: int = 0
    thread_id_b: int = 0


NO_SCALE_SELECTORS = ScaleSelectors()


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything one execution reads, as the instruction's operands give it.

    ``registers`` are arrays ``(..., lanes, registers)`` by operand. ``literal`` executes metadata that
    PTX leaves undefined, or whose effect is unknown, by reading every field as it stands. For wgmma:
    ``shared (..., bytes)`` uint8, 64-bit matrix descriptors of A (None: in registers) and B, and the
    immediates; ``scale_d`` false means that D is not read.
    """

    registers: dict[str, npt.NDArray[Any]]
    selector: int = 0
    scale_selectors: ScaleSelectors = NO_SCALE_SELECTORS
    literal: bool = False
    shared: npt.NDArray[np.uint8] | None = None
    a_descriptor: npt.NDArray[np.uint64] | None = None
    b_descriptor: npt.NDArray[np.uint64] | None = None
    scale_d: bool = True
    negate: tuple[bool, bool] = (False, False)  # of A, of B: imm-scale -1
    transposed: tuple[bool, bool] = (False, False)  # of A, of B: imm-trans 1, MN-major

    @classmethod
    def plain(cls, registers: dict[str, npt.NDArray[Any]], selector: int, literal: bool) -> Inputs:
        """What an instruction of registers and a selector reads; a microsecond less than Inputs(...)."""
        inputs = object.__new__(cls)
        inputs.__dict__.update(_PLAIN, registers=registers, selector=selector, literal=literal)
        return inputs

    @property
    def warp_level(self) -> bool:
        """Whether there is nothing in it that only wgmma has."""
        return (
            self.a_descriptor is self.b_descriptor is self.shared is None
            and self.scale_d
            and self.negate == self.transposed == (False, False)
        )


_PLAIN = dict(vars(Inputs(registers={})))
_BATCHED = ("shared", "a_descriptor", "b_descriptor")  # with an axis of executions in front, where not None


def part_of(inputs: Inputs, chosen: Any) -> Inputs:
    """The inputs of one execution of a batch, by its number, or of some, by a mask."""
    registers = {name: words[chosen] for name, words in inputs.registers.items()}
    more = {name: value[chosen] for name in _BATCHED if (value := getattr(inputs, name)) is not None}
    return replace(inputs, registers=registers, **more)


def arrays_of(inputs: Inputs) -> Iterator[npt.NDArray[Any]]:
    """Every array that the inputs hold."""
    yield from inputs.registers.values()
    yield from (value for name in _BATCHED if (value := getattr(inputs, name)) is not None)


@dataclass(frozen=True, kw_only=True)
class Operands:
    """Numbers in, ready for arithmetic; leading axes already merged into one batch axis.

    ``a (batch, m, s)``, ``b (batch, k, n)``, ``c (batch, m, n)`` are codes. ``columns (batch, m, s)``
    is the logical column of each stored element of A, None where A is dense. Scales are codes:
    ``scale_a (batch, m, chunks)`` and ``scale_b (batch, chunks, n)``.
    """

    instruction: Instruction
    a: Codes
    b: Codes
    c: Codes
    columns: npt.NDArray[np.intp] | None = None
    scale_a: Codes | None = None
    scale_b: Codes | None = None
