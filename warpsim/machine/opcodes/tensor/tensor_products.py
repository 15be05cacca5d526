"""One tcgen05.mma: what it reads and writes, found when it is issued, and the product, when it completes.

Knows descriptors, cells and shared memory of one or two CTAs; the arithmetic is that of execution. PTX ISA
9.3, section 9.7.17.10 "tcgen05.mma instructions".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ....base.errors import NotModelled, UndefinedBehavior, WarpsimError, located, present
from ....isa.descriptors.instruction_descriptor import InstructionDescriptor
from ....isa.element_packing import codes_of_bytes, codes_of_cells
from ....isa.families.tcgen05 import Form, letter_of, spelling_of
from ....isa.families.tcgen05_operands import check_shift, layout_of, scaled_down, shifted_rows, zero_mask
from ....isa.fragments import columns_of, signed
from ....isa.instruction import Instruction
from ....isa.layouts.tensor_memory import (
    BIT,
    COLUMN,
    CTA,
    LANE,
    LANES,
    TensorLayout,
    accumulator,
    metadata,
    multiplicand,
)
from ....isa.products import Codes, Operands
from ....isa.rules import Rule
from ....sums.execution.pipeline import rule_for
from ...run.pending import Stretches
from ...run.wave import Record, Wave
from ...state.lanes import DivergentPath
from ...state.tensor_cells import Block
from ...state.undefined_metadata import UNDEFINED_METADATA, MetadataOperand
from .copies import check_pair, ctas_of
from .source_tiles import Tile, checked_tile
from .tensor_places import TENSOR_MEMORY, Place, check_columns, check_lane
from .touched_cells import blocks_of, without_lanes

Mask = npt.NDArray[np.bool_]
_REPEATED = "every quarter of the lanes needs a copy, as tcgen05.cp with .warpx4 makes"
_SCALES_BY = "let tcgen05.cp.32x128b.warpx4 of this thread copy them, or tcgen05.st and tcgen05.wait::st"
_WRITERS = {
    "D": "let the first tcgen05.mma into D have a false enable-input-d",
    "A": "put tcgen05.st and tcgen05.wait::st of it before, or a tcgen05.cp of this thread",
    "metadata": "put tcgen05.st and tcgen05.wait::st of it before, or a tcgen05.cp of this thread",
}
Cells = tuple[int, slice, slice]  # of a CTA: lanes and columns


@dataclass(frozen=True, kw_only=True)
class Given:
    """The operands of one thread's tcgen05.mma, as its registers hold them; None for those without.

    ``a`` is a descriptor or, where ``a_in_memory``, an address of tensor memory. ``disabled (lanes,)`` are
    bits of the CTAs' lanes, 128 each.
    """

    d: int
    a: int
    a_in_memory: bool
    b: int
    word: int
    enabled: bool
    metadata: int = 0
    scale_a: int = 0
    scale_b: int = 0
    disabled: int = 0
    zero_columns: int = 0
    scale_d: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Described:
    """What a form and an instruction descriptor make: the instruction and its places in tensor memory."""

    instruction: Instruction
    form: Form
    descriptor: InstructionDescriptor
    letter: str
    d: TensorLayout

    @property
    def ctas(self) -> int:
        """CTAs of the group."""
        return self.form.ctas


@lru_cache(maxsize=512)
def described(form: Form, word: int, target: str) -> Described:
    """Return what a word makes of a form. Raises OperandError, with the field, and NotModelled."""
    instruction = spelling_of(form, target).described(word)
    letter = letter_of(form, instruction.shape.m)
    return Described(
        instruction=instruction,
        form=form,
        descriptor=InstructionDescriptor.decode(word, form.kind.name),
        letter=letter,
        d=accumulator(letter, instruction.shape.n),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """An operand in tensor memory: its layout, and the address at which it begins."""

    name: str
    layout: TensorLayout
    place: Place

    def index(self, ctas: tuple[int, ...], copy: int = 0) -> tuple[npt.NDArray[np.intp], ...]:
        """Return CTA, lane and column of every element of a copy, ``(rows, columns)`` each."""
        cells = self.layout.cells
        cta = np.array(ctas)[cells[..., CTA]]
        return cta, cells[..., LANE] + copy + self.place.lane, cells[..., COLUMN] + self.place.column

    def blocks(self, ctas: tuple[int, ...]) -> Iterator[tuple[tuple[slice, slice], Cells]]:
        """Yield rows and columns of the matrix with the cells where they lie, of an element a cell."""
        for rows, columns, cta, lane, column in self.layout.blocks:
            first, left = lane + self.place.lane, column + self.place.column
            lanes = slice(first, first + rows.stop - rows.start)
            yield (rows, columns), (ctas[cta], lanes, slice(left, left + columns.stop - columns.start))


# --- what an instruction touches ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Multiplication:
    """One tcgen05.mma, checked: ``a`` and ``b`` are tiles ``(rows of a CTA, bytes)`` in each CTA's shared
    memory, ``a`` None where A lies in tensor memory.
    """

    record: Record
    pc: int
    lane: int
    ctas: tuple[int, ...]
    given: Given
    made: Described
    d: Part
    b: Tile
    a: Tile | None = None
    a_part: Part | None = None
    metadata: Part | None = None
    scales: tuple[Part, Part] | None = None

    def reads(self, wave: Wave) -> tuple[Stretches, ...]:
        """Return the bytes of shared memory that it reads."""
        tiles = [tile for tile in (self.a, self.b) if tile is not None]
        return tuple(piece for tile in tiles for piece in tile.stretches(wave, self.ctas))

    def touched(self) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
        """Return the cells of tensor memory that it reads and those of D, which it writes."""
        reads: list[Block] = []
        for part in (self.a_part, self.metadata, *(self.scales or ())):
            if part is not None:
                both = self.scales is not None and part is self.scales[1]
                reads += blocks_of(part.name, part.layout, part.place, self.ctas, everywhere=both)
        d = blocks_of("D", self.d.layout, self.d.place, self.ctas)
        return tuple(reads), without_lanes(d, self.given.disabled, self.ctas)

    # --- completion ---

    def run(self, wave: Wave) -> Codes:
        """Read the operands, multiply, write D, and return its codes ``(m, n)``.

        Raises UndefinedBehavior for cells never written.
        """
        with located(self.record.statement.location):
            try:
                codes = self._product(wave)
            except (UndefinedBehavior, NotModelled) as error:
                error.message += f" [{wave.describe_lane(self.lane)}]"
                raise
        codes = codes.reshape(codes.shape[-2:])
        if self.metadata is not None and wave.modes.literal:
            codes = self._followed(wave, codes)
        self._write(wave, codes)
        return codes

    def _followed(self, wave: Wave, codes: Codes) -> Codes:
        """Return D, having kept which of its rows come from metadata that PTX leaves undefined."""
        form, known = self.made.instruction, UNDEFINED_METADATA.of(wave)
        operand = MetadataOperand(self.pc, self.record.statement.location)
        lane = self.lane
        rows = known.keep(form, self._fields(wave), None, operand, lambda execution: wave.describe_lane(lane))
        return codes if rows is None else known.others(codes, rows[0][:, None], form.d)

    def _product(self, wave: Wave) -> Codes:
        if wave.modes.interposed is not None:
            return wave.modes.interposed.tensor_product(wave, self)
        return wave.modes.multiply(self.operands(wave), self._rule(wave))

    def _rule(self, wave: Wave) -> Rule:
        """Return the rule of the product, and note the statement where its bits are not known for sure."""
        rule = rule_for(self.made.instruction)
        if rule.evidence.label not in ("validated", "documented"):
            wave.infer(self.pc, str(rule.evidence))
        return rule

    def operands(self, wave: Wave) -> Operands:
        """Return the numbers to multiply. Raises UndefinedBehavior for cells never written."""
        form = self.made.instruction
        a = self._tile(wave, self.a, "a") if self.a is not None else self._a_cells(wave)
        b = self._tile(wave, self.b, "b")
        if self.given.zero_columns:
            b[zero_mask(form, self.given.zero_columns)] = 0
        scale_a, scale_b = self._scale_codes(wave)
        return Operands(
            product=form.product,
            a=signed(a, form.a, form.product.negated[0])[None],
            b=np.ascontiguousarray(signed(b, form.b, form.product.negated[1]).T)[None],
            c=self._accumulator(wave)[None],
            columns=self._columns(wave),
            scale_a=scale_a,
            scale_b=scale_b,
        )

    def _tile(self, wave: Wave, tile: Tile, operand: str) -> Codes:
        """Return codes ``(rows, k)`` of a tile, the rows of the even CTA first."""
        data = [tile.bytes(wave, cta) for cta in self.ctas]
        whole = data[0] if len(data) == 1 else np.concatenate(data)
        return codes_of_bytes(whole, self.made.instruction.product, operand)

    def _a_cells(self, wave: Wave) -> Codes:
        part = present(self.a_part, "A in tensor memory")
        product = self.made.instruction.product
        slots = 32 // product.storage("a").bits
        below = shifted_rows(product.shape.m, len(self.ctas)) if self.made.form.shifted else slice(None)
        cta, lane, column = (index[:, ::slots] for index in part.index(self.ctas))
        words = self._read_copies(wave, part, (cta, lane, column))
        return codes_of_cells(words, product, "a")[below]

    def _accumulator(self, wave: Wave) -> Codes:
        """Return codes of C: D as it is, scaled, or 0 where it is not read."""
        form = self.made.instruction
        if not self.given.enabled:
            return np.zeros((form.shape.m, form.shape.n), form.c.code_dtype)
        memory, disabled = TENSOR_MEMORY.of(wave), self._disabled() if self.given.disabled else None
        codes = np.empty((form.shape.m, form.shape.n), form.c.code_dtype)
        for here, cells in self.d.blocks(self.ctas):
            known = memory.written[cells] if disabled is None else memory.written[cells] | disabled[here]
            if not known.all():
                unknown = ~memory.written[self.d.index(self.ctas)] & ~self._disabled()
                raise self._unwritten(self.d, unknown, "the accumulator D, which is read")
            codes[here] = memory.cells[cells]  # the codes of f16 are the lower halves
        power = self.given.scale_d
        return scaled_down(codes, power, form.c.name) if power else codes

    def _columns(self, wave: Wave) -> npt.NDArray[np.intp] | None:
        """Return the logical columns of stored elements; None for a dense form."""
        if self.metadata is None:
            return None
        form, fields = self.made.instruction, self._fields(wave)
        return columns_of(form, fields, None, literal=wave.modes.literal)[None]

    def _fields(self, wave: Wave) -> npt.NDArray[np.uint8]:
        """Return fields of metadata ``(m, chunks)``."""
        part = present(self.metadata, "metadata")
        words = self._read_copies(wave, part, part.index(self.ctas))
        return (words >> part.layout.cells[..., BIT].astype(np.uint32) & np.uint32(15)).astype(np.uint8)

    def _scale_codes(self, wave: Wave) -> tuple[Codes | None, Codes | None]:
        if self.scales is None:
            return None, None
        a, b = (self._factors(wave, part) for part in self.scales)
        if len(self.ctas) == 2:
            self._check_peer(wave, self.scales[1], b)
        return a[None], np.ascontiguousarray(b.T)[None]

    def _check_peer(self, wave: Wave, part: Part, codes: Codes) -> None:
        """Raise UndefinedBehavior where the odd CTA of a pair has other factors of B than the even CTA."""
        differing = self._factors(wave, part, self.ctas[::-1]) != codes
        if differing.any():
            row, factor = (int(number) for number in np.argwhere(differing)[0])
            raise UndefinedBehavior(
                f"{part.name}: factor {factor} of column {row} of B is another in the odd CTA of the pair: "
                "both CTAs need the factors of all N columns"
            )

    def _factors(self, wave: Wave, part: Part, ctas: tuple[int, ...] = ()) -> Codes:
        """Return codes ``(rows, factors)``."""
        shifts = part.layout.cells[..., BIT].astype(np.uint32)
        mask = np.uint32(present(self.made.instruction.scale, "scale").mask)
        words = self._read_copies(wave, part, part.index(ctas or self.ctas), mask << shifts)
        return (words >> shifts & mask).astype(np.uint8)

    def _read_copies(
        self,
        wave: Wave,
        part: Part,
        index: tuple[npt.NDArray[np.intp], ...],
        bits: npt.NDArray[np.uint32] | None = None,
    ) -> npt.NDArray[np.uint32]:
        """Return the words of an operand, of which all copies must be written and the same in some bits."""
        memory, (cta, lane, column) = TENSOR_MEMORY.of(wave), index
        first = memory.cells[cta, lane, column]
        for copy in part.layout.copies:
            unknown = ~memory.written[cta, lane + copy, column]
            if unknown.any():
                raise self._unwritten(part, unknown, part.name, index, copy)
            differing = memory.cells[cta, lane + copy, column] ^ first
            differing = differing if bits is None else differing & bits
            if differing.any():
                row, place = (int(number) for number in np.argwhere(differing)[0])
                raise UndefinedBehavior(
                    f"{part.name}: lane {int(lane[row, place]) + copy}, column {int(column[row, place])} "
                    f"holds other bits than lane {int(lane[row, place])}, which it repeats: {_REPEATED}"
                )
        return first

    def _unwritten(
        self,
        part: Part,
        unknown: Mask,
        what: str,
        index: tuple[npt.NDArray[np.intp], ...] | None = None,
        copy: int = 0,
    ) -> UndefinedBehavior:
        row, place = (int(number) for number in np.argwhere(unknown)[0])
        _, lane, column = part.index(self.ctas) if index is None else index
        return UndefinedBehavior(
            f"{what}: lane {int(lane[row, place]) + copy}, column {int(column[row, place])} of tensor memory "
            f"was never written: {_REPEATED if copy else _WRITERS.get(part.name, _SCALES_BY)}"
        )

    # --- D ---

    def _disabled(self) -> Mask:
        """Return ``(m, n)``: elements of D whose lanes the statement disables."""
        cells = self.d.layout.cells
        bits = np.array([self.given.disabled >> bit & 1 for bit in range(LANES * len(self.ctas))], np.bool_)
        off: Mask = bits[cells[..., CTA] * LANES + cells[..., LANE] + self.d.place.lane]
        return off

    def _write(self, wave: Wave, codes: Codes) -> None:
        memory = TENSOR_MEMORY.of(wave)
        kept = ~self._disabled() if self.given.disabled else None
        for here, cells in self.d.blocks(self.ctas):
            where = np.True_ if kept is None else kept[here]
            np.copyto(memory.cells[cells], codes[here], where=where)
            np.copyto(memory.written[cells], np.True_, where=where)


# --- checks ------------------------------------------------------------------------------------------


def prepared(
    wave: Wave, path: DivergentPath, lane: int, form: Form, given: Given, target: str
) -> Multiplication:
    """Return the multiplication of one thread, checked.

    Raises UndefinedBehavior for descriptors (with field, value and legal values), Fault for places,
    NotModelled.
    """
    try:
        made = described(form, given.word, target)
        if given.zero_columns:
            zero_mask(made.instruction, given.zero_columns)
    except WarpsimError as error:
        raise wave.operand_error(error, wave.describe_lane(lane)) from None
    check_pair(wave, path, lane, form.ctas)
    look = _Look(wave=wave, path=path, lane=lane, ctas=ctas_of(wave, lane, form.ctas), made=made, given=given)
    parts = look.parts()
    return Multiplication(
        record=wave.code[path.pc],
        pc=path.pc,
        lane=lane,
        ctas=look.ctas,
        given=given,
        made=made,
        d=parts["D"],
        a=None if given.a_in_memory else look.tile("a", given.a),
        b=look.tile("b", given.b),
        a_part=parts.get("A"),
        metadata=parts.get("metadata"),
        scales=(parts["scale factors of A"], parts["scale factors of B"]) if form.factors else None,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Look:
    """The places of one thread's operands, being checked."""

    wave: Wave
    path: DivergentPath
    lane: int
    ctas: tuple[int, ...]
    made: Described
    given: Given

    def tile(self, operand: str, word: int) -> Tile:
        """Return the tile of A or B in the shared memory of each CTA."""
        product = self.made.instruction.product
        side = "ab".index(operand)
        rows = (product.shape.m, product.shape.n)[side] // len(self.ctas)
        major = "MN" if product.transposed[side] else "K"
        size = max(product.format(operand).bits, 8) // 8
        used = 16 * product.format(operand).bits // product.storage(operand).bits
        shape = (rows, product.row_bytes(operand), size, major, used)
        return checked_tile(self.wave, self.path, self.lane, word, shape)

    def parts(self) -> dict[str, Part]:
        """Return the operands in tensor memory by name; raises Fault and NotModelled."""
        made, given, form = self.made, self.given, self.made.form
        product, letter = made.instruction.product, made.letter
        wanted: list[tuple[str, TensorLayout | None, int]] = [("D", made.d, given.d)]
        if given.a_in_memory:
            if form.shifted:
                self._check_shift()
            if product.transposed[0]:
                raise self._undefined("A in tensor memory is K-major, but its descriptor says transpose A")
            wanted.append(("A", multiplicand(letter, product.stored_k, product.storage("a").bits), given.a))
        if product.pattern is not None:
            chunks = product.shape.k // product.pattern.chunk
            first = given.metadata + made.descriptor.selector
            wanted.append(("metadata", metadata(letter, product.storage("a").bits, chunks), first))
        if form.factors:
            for operand, address in (("scale_a", given.scale_a), ("scale_b", given.scale_b)):
                name = f"scale factors of {operand[-1].upper()}"
                wanted.append((name, layout_of(made.instruction, operand), address))
        found = {name: self._part(name, layout, address) for name, layout, address in wanted}
        self._check_apart(found)
        return found

    def _part(self, name: str, layout: TensorLayout | None, address: int) -> Part:
        """Return an operand at an address; half layouts take lane 0 or 16, and D, A and metadata the same."""
        if layout is None:
            raise self._not_modelled(
                f"{name} of layout {self.made.letter} with these shapes is known in figures only"
            )
        if name.startswith("scale") and address >> 30:
            raise self._undefined(f"bits 31:30 of the address of the {name} are {address >> 30}; legal: 0")
        place = Place.of(address)
        legal = (0, 16) if layout.half and self.made.d.half else (0,)
        if name in ("A", "metadata") and self.made.d.half:
            legal = (Place.of(self.given.d).lane,)
        check_lane(self.wave, self.path, self.lane, name, place.lane, legal)
        stretch = (name, place.column, place.column + layout.width)
        check_columns(self.wave, self.path, self.lane, self.ctas, stretch)
        return Part(name=name, layout=layout, place=place)

    def _check_shift(self) -> None:
        """Raise UndefinedBehavior for rows that .ashift does not have, NotModelled for a sparse A."""
        try:
            check_shift(self.made.instruction)
        except WarpsimError as error:
            raise self.wave.operand_error(error, self.wave.describe_lane(self.lane)) from None

    def _check_apart(self, parts: dict[str, Part]) -> None:
        """Raise UndefinedBehavior where D lies over another operand of the same instruction."""
        columns = {
            name: range(part.place.column, part.place.column + part.layout.width)
            for name, part in parts.items()
        }
        for name, own in columns.items():
            both = range(max(own.start, columns["D"].start), min(own.stop, columns["D"].stop))
            if name != "D" and both and self._same_lanes(parts["D"], parts[name]):
                raise self._undefined(f"D and {name} overlap in columns {both.start}..{both.stop - 1}")

    def _same_lanes(self, d: Part, other: Part) -> bool:
        own = set(np.unique(d.layout.cells[..., LANE] + d.place.lane).tolist())
        lanes = np.unique(other.layout.cells[..., LANE] + other.place.lane)
        return any(int(lane) + copy in own for lane in lanes for copy in other.layout.copies)

    def _undefined(self, message: str) -> UndefinedBehavior:
        return UndefinedBehavior(f"{message} [{self.wave.describe_lane(self.lane)}]")

    def _not_modelled(self, message: str) -> NotModelled:
        return NotModelled(f"{message} [{self.wave.describe_lane(self.lane)}]")
