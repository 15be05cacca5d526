"""Instructions: a spelling, a product and places.

``Spelling`` is what the text says, on a target; ``Instruction`` adds the ``Product`` that it computes, which
the mnemonic states (mma, wgmma) or a descriptor in a register does (``Spelling.described``); its family says
where each operand may lie (``Placement``). ``Row`` is a line of a family's table. No arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Generic, TypeVar
from zlib import crc32

from ..base.errors import OperandError, present
from .displayed import Displayed
from .formats import Format
from .layouts.field_layout import FieldLayout
from .layouts.fragment_layout import Layout
from .operand_places.placements import (
    BehindDescriptor,
    Inputs,
    InRegisters,
    MetadataRegisters,
    Placement,
    Registers,
    ScaleRegisters,
    SharedTile,
)
from .products import Codes, Operands, Product, Shape, Storage
from .sparsity import Pattern
from .warps import WARP


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a family's table: the forms are the product of its lists.

    ``accumulators`` lists ``D.C`` pairs, ``multiplicands`` the types that A and B may each have.
    ``operation`` names the arithmetic in the table of rules; ``scales`` lists (scale vector, scale type)
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


# --- families ----------------------------------------------------------------------------------------


def in_registers(instruction: Instruction, operand: str) -> Placement:
    """Return the registers of an operand, in the layout of the family."""
    return Registers(
        operand=operand,
        element=instruction.format(operand),
        lanes=instruction.lanes,
        matrix=instruction.matrix_shape(operand),
        fragment=partial(instruction.family.fragment, instruction, operand),
        storage=instruction.storage(operand),
        register_bits=instruction.register_bits,
        products=instruction.products,
    )


def metadata_in_registers(instruction: Instruction, operand: str) -> Placement:
    """Return the registers of the metadata, in the layout of the family."""
    fields = partial(present(instruction.family.metadata, "metadata"), instruction)
    return MetadataRegisters(operand=operand, lanes=instruction.lanes, fields=fields)


def scales_in_registers(instruction: Instruction, operand: str) -> Placement:
    """Return the registers of the scales of A or B."""
    lines = instruction.shape.m if operand == "scale_a" else instruction.shape.n
    chunks = instruction.scale_chunks
    return ScaleRegisters(operand=operand, lanes=instruction.lanes, lines=lines, chunks=chunks)


def in_shared_memory(instruction: Instruction, operand: str) -> Placement:
    """Return the tile of A or B in shared memory, its rows along M or N."""
    rows, columns = instruction.matrix_shape(operand)
    if operand == "b":
        rows, columns = columns, rows
    return SharedTile(operand=operand, element=instruction.format(operand), rows=rows, columns=columns)


def accepts_all(instruction: Instruction, inputs: Inputs) -> None:
    """Accept every input: what a family without settings of its own checks."""


Place = Callable[["Instruction", str], Placement]
METADATA: Mapping[str, tuple[Place, ...]] = {"e": (metadata_in_registers,)}
REGISTERS: Mapping[str, tuple[Place, ...]] = {
    **dict.fromkeys("abcd", (in_registers,)),
    **dict.fromkeys(("scale_a", "scale_b"), (scales_in_registers,)),
}


@dataclass(frozen=True, kw_only=True)
class Family:
    """An instruction family: its opcode, its lanes, its table, and where its operands lie.

    A mnemonic is the opcode, the fixed ``modifiers``, and the qualifiers of the form; ``types`` are the
    operands whose types it spells, in order. ``places`` lists the places that each operand may have.

    ``fragment(instruction, operand)`` is the layout of an operand in registers;
    ``metadata(instruction, selector)`` the layout of the metadata fields. ``rules`` names its rules in the
    table of rules. ``check`` raises for inputs that the form does not take. ``product(spelling,
    descriptor)`` reads the product from a descriptor, for families whose mnemonic does not state it;
    ``having`` is the targets that have it; ``arranged`` sorts the inputs of those by place, and ``adjusted``
    applies their settings to operands.
    ``fields`` are the metadata fields with a meaning, None for those of the variant. ``one_thread`` says that
    a thread executes it: the lanes are then those of tensor memory.
    """

    name: str
    opcode: str
    lanes: int
    rules: str
    rows: tuple[Row, ...]
    fragment: Callable[[Instruction, str], Layout]
    places: Mapping[str, tuple[Place, ...]]
    metadata: Callable[[Instruction, int], FieldLayout] | None = None
    check: Callable[[Instruction, Inputs], None] = accepts_all
    product: Callable[[Spelling, int], Product] | None = None
    having: Callable[[Product], frozenset[str]] | None = None
    arranged: Callable[[Instruction, Inputs], Inputs] | None = None
    adjusted: Callable[[Instruction, Inputs, Operands], Operands] | None = None
    modifiers: tuple[str, ...] = ()
    types: str = "dabc"
    fields: frozenset[int] | None = None
    one_thread: bool = False

    @property
    def reads_tiles(self) -> bool:
        """Whether an operand may lie in shared memory, behind a matrix descriptor."""
        return any(in_shared_memory in places for places in self.places.values())

    def __hash__(self) -> int:
        return hash(self.name)  # names are unique, and caches look a family up in every call

    def __repr__(self) -> str:
        return f"<family {self.name}>"  # the tables would fill screens


# --- instructions ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """What the text of an instruction says, on one target (None: not yet chosen, enough for layouts).

    ``mnemonic`` is the canonical spelling, in PTX's order of qualifiers. ``since`` is the first PTX version
    with the form.
    """

    mnemonic: str
    target: str | None
    family: Family
    since: tuple[int, int]
    targets: frozenset[str]
    a_layout: str = "row"
    b_layout: str = "col"
    variant: str = ""
    scale_vector: str = ""

    def __hash__(self) -> int:
        return hash((self.mnemonic, self.target))

    def __repr__(self) -> str:
        return f"<{self.mnemonic} on {self.target or 'any target'}>"

    def __str__(self) -> str:
        return self.mnemonic

    @property
    def lanes(self) -> int:
        """Lanes that hold the operands: they execute the instruction, or are those of tensor memory."""
        return self.family.lanes

    @property
    def warps(self) -> int:
        """Warps that execute the instruction together: 4 for a warpgroup, 1 where a thread does."""
        return 1 if self.family.one_thread else self.family.lanes // WARP

    @cached_property
    def issue(self) -> str:
        """The words that say how the instruction is issued, those of its kind and .sp apart; "" where the
        mnemonic states the product.
        """
        if self.family.product is None:
            return ""
        words, _, rest = self.mnemonic.partition(".kind::")
        return words.replace(".sp", "") + ".ashift" * ("ashift" in rest)

    @property
    def ordered(self) -> bool:
        """Whether metadata indices must ascend."""
        return self.variant == "sp::ordered_metadata"

    def described(self, descriptor: int) -> Instruction:
        """Return the instruction whose product a descriptor states; raises what the family raises."""
        return _describe(self, descriptor)


T = TypeVar("T")
P = TypeVar("P", bound="Registers | SharedTile | MetadataRegisters | ScaleRegisters | InRegisters")


class Fact(Generic[T]):
    """A fact of the product that callers read from the instruction: looked up once, then an attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instruction: Instruction, owner: type | None = None) -> T:
        fact: T = getattr(instruction.product, self.name)
        instruction.__dict__[self.name] = fact
        return fact


@dataclass(frozen=True, kw_only=True)
class Instruction(Displayed, Spelling):
    """One legal form: a spelling with its product; the family gives the places of the operands.

    ``descriptor`` is the word that states the product, None where the mnemonic does.
    """

    product: Product
    descriptor: int | None = None

    @cached_property
    def _hash(self) -> int:
        words = f"{self.mnemonic} {self.target} {self.descriptor}"
        return crc32(words.encode())  # the same in every process: instructions are pickled

    def __hash__(self) -> int:
        return self._hash  # computed once: caches look an instruction up in every call

    __repr__ = Spelling.__repr__

    shape = Fact[Shape]()
    a = Fact[Format]()
    b = Fact[Format]()
    c = Fact[Format]()
    d = Fact[Format]()
    operation = Fact[str]()
    kind = Fact[str]()
    pattern = Fact[Pattern | None]()
    sparse = Fact[bool]()
    stored_k = Fact[int]()
    scale = Fact[Format | None]()
    scale_chunks = Fact[int]()
    satfinite = Fact[bool]()
    rounding = Fact[str]()
    bit_operation = Fact[str]()
    products = Fact[int]()

    def format(self, operand: str) -> Format:
        """Return the element format of operand a, b, c or d."""
        return self.product.format(operand)

    def matrix_shape(self, operand: str) -> tuple[int, int]:
        """Return rows and columns of operand a, b, c or d as it is stored (A compressed where sparse)."""
        return self.product.matrix_shape(operand)

    def storage(self, operand: str) -> Storage:
        """Return how an element of a, b, c or d lies in a register."""
        return self.product.storage(operand)

    # Places.

    @property
    def register_bits(self) -> int:
        """Width of a register: 64 for f64, otherwise 32."""
        return 64 if self.product.a.bits == 64 else 32

    @cached_property
    def registers(self) -> dict[str, int]:
        """Registers of each operand in one lane."""
        return {name: self.held(name).words for name in self.operands if self.has_registers(name)}

    @property
    def operands(self) -> tuple[str, ...]:
        """The operands of the form: a, b, c, d, and where it has them e, scale_a and scale_b."""
        return (*"abcd", *(("e",) if self.sparse else ()), *(("scale_a", "scale_b") if self.scale else ()))

    def places(self, operand: str) -> tuple[Placement, ...]:
        """Return the places that an operand may have."""
        return _places(self, operand)

    def place(self, operand: str, inputs: Inputs) -> Placement:
        """Return the place in which the inputs give an operand."""
        places = _places(self, operand)
        return next((place for place in places if place.holds(inputs)), places[-1])

    def tiles(self, inputs: Inputs) -> dict[str, BehindDescriptor]:
        """Return the tiles of A and B that the inputs have behind descriptors."""
        places = {operand: self.place(operand, inputs) for operand in "ab"}
        return {operand: place for operand, place in places.items() if isinstance(place, BehindDescriptor)}

    def gathered_tile(self, operand: str, inputs: Inputs) -> Codes:
        """Return codes ``(..., rows, columns)`` of A or B as they lie in shared memory, no sign flipped."""
        product = self.product.with_immediates(inputs.negate, inputs.transposed)
        codes: Codes = self.tiles(inputs)[operand].gather(inputs, product)
        return codes

    def has_registers(self, operand: str) -> bool:
        """Return whether an operand may lie in registers."""
        return any(place.lanes for place in _places(self, operand))

    def has_tile(self, operand: str) -> bool:
        """Return whether operand a, b, c or d may lie in shared memory, behind a descriptor."""
        return any(isinstance(place, BehindDescriptor) for place in _places(self, operand))

    @property
    def reads_tiles(self) -> bool:
        """Whether an operand lies in shared memory in some of its forms."""
        return self.has_tile("b")

    def in_registers(self, operand: str) -> Registers:
        """Return the registers of operand a, b, c or d; raises OperandError where it has none."""
        return self._place_of_kind(operand, Registers)

    def in_shared_memory(self, operand: str) -> SharedTile:
        """Return the tile of A or B in shared memory; raises OperandError where it has none."""
        return self._place_of_kind(operand, SharedTile)

    def held(self, operand: str) -> InRegisters:
        """Return the registers of any operand; raises OperandError where it has none."""
        return self._place_of_kind(operand, InRegisters)

    @property
    def metadata(self) -> MetadataRegisters:
        """The registers of the metadata; raises OperandError where the form has none."""
        return self._place_of_kind("e", MetadataRegisters)

    def scales(self, side: str) -> ScaleRegisters:
        """Return the registers of the scales of a or b; raises OperandError where the form has none."""
        return self._place_of_kind(f"scale_{side}", ScaleRegisters)

    def _place_of_kind(self, operand: str, kind: type[P]) -> P:
        for place in _places(self, operand):
            if isinstance(place, kind):
                return place
        raise OperandError(f"{self} has no {kind.__name__} of operand {operand}")

    # Metadata.

    @cached_property
    def metadata_words(self) -> int:
        """Lanes of a quad that one selector reads: 1, 2 or 4 (0 for dense forms)."""
        if not self.pattern:
            return 0
        chunks = 16 * self.shape.k // self.pattern.chunk  # of the 16 rows that one warp covers
        return chunks // (8 * 8)  # eight quads, eight 4-bit fields a word

    @cached_property
    def selectors(self) -> tuple[int, ...]:
        """Legal sparsity selectors; empty for dense forms, 0 where an instruction descriptor has another."""
        if self.sparse and self.descriptor is not None:
            return (0,)
        return tuple(range(4 // self.metadata_words)) if self.sparse else ()


@lru_cache(maxsize=4096)
def _describe(spelling: Spelling, descriptor: int) -> Instruction:
    if spelling.family.product is None:
        raise AssertionError(f"{spelling}: the mnemonic states the product")
    product = spelling.family.product(spelling, descriptor)
    own: dict[str, Any] = {name: getattr(spelling, name) for name in Spelling.__dataclass_fields__}
    if spelling.family.having is not None:
        own["targets"] &= spelling.family.having(product)
    return Instruction(**own, product=product, descriptor=descriptor)


@lru_cache(maxsize=1 << 14)
def _places(instruction: Instruction, operand: str) -> tuple[Placement, ...]:
    return tuple(place(instruction, operand) for place in instruction.family.places.get(operand, ()))
