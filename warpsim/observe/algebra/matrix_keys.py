"""Matrix instructions on keys: operands gathered by the placements of the instruction, products by fields;
redux, and tcgen05.ld, of whose registers ld.red takes the least or greatest.

A is gathered as it is stored; where it is sparse it becomes a matrix with zeros, since metadata are values.
Block scales multiply A and B. Knows placements; does not know how an opcode spells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.families.tcgen05_operands import zero_mask
from ...isa.formats import Format
from ...isa.fragments import gathered_columns
from ...isa.layouts.tensor_memory import LANES, TRANSFERS
from ...isa.operand_places.placements import BehindDescriptor, Registers, ScaleRegisters
from ...isa.operand_places.tensor_placements import DescribedTile, TensorCells
from ...isa.warps import WARP
from ...machine.opcodes.tensor.tensor_places import Place as TensorPlace
from ...machine.run.events import MatrixExecution
from ...machine.run.wave import Wave
from ...machine.state.lanes import Lanes
from ...machine.state.tensor_cells import byte_places
from ...ptx.operands import Address
from .fragment_keys import Fragments, exclusive
from .key_store import KeyStore, Turn, spread, tensor_bytes
from .keys.constant_keys import two_to
from .keys.finite_fields import Keys, add, hashed, matmul, mul, neg, total
from .keys.key_cells import Cells
from .keys.key_reading import numbers
from .provenance import Product
from .rules.keyed_statements import Statement, element_of
from .rules.rule_calls import Values, chosen, magnitude, unwrapped

_U = np.uint64
_FRAGMENTS = 64  # whose keys are known: a fragment is multiplied with several others


class Matrices:
    """The matrix instructions of an observer."""

    def __init__(self, algebra: KeyStore) -> None:
        self.algebra = algebra
        self.fragments = Fragments(algebra)
        self._turns = dict[int, Turn]()  # by statement: its last execution

    def executed(self, turn: Turn) -> bool | None:
        """Execute a statement; the event that a product is done has the rest."""
        algebra, statement = self.algebra, turn.statement
        self._turns[statement.pc] = turn
        if statement.opcode == "wmma":
            self.fragments.begin(turn)
        changed, together = algebra.execute(turn)
        if together is None:
            return changed
        if statement.opcode == "wmma":
            self.fragments.executed(turn, together)
        elif statement.opcode == "tcgen05" and statement.modifiers[0] == "ld":
            tensor_loaded(algebra, turn, together)
        return changed

    def multiplied(self, wave: Wave, execution: MatrixExecution) -> None:
        """Compute and write the keys of D."""
        work = MatrixOperands(self.algebra, self._turns[execution.pc], execution)
        if not work.keyed():
            self.algebra.forget(work.turn, work.numbers_of("d"), work.lanes)
            return
        inputs = execution.inputs
        a, b = work.multiplicands()
        power = inputs.tensor.scale_input_d
        c = work.matrix("c") if inputs.scale_d else None
        c = mul(c, two_to(np.array(-power))) if c is not None and power else c
        d = matmul(a, b) if c is None else add(matmul(a, b), c)
        if self.algebra.provenance is not None:
            c = np.zeros_like(d) if c is None else c
            self.algebra.provenance.order.append(Product(execution.pc, a, b, c, d))
        work.write(d)

    def reduced(self, statement: Statement, cells: Cells, bits: Any, lanes: Lanes) -> Cells:
        """Return the cells of redux: sums, or chosen values, of the lanes of each warp that are there."""
        kind = statement.modifiers[-1]
        element = element_of("u32" if kind == "b32" else kind)
        keys = self.algebra.reader.read(cells, bits, element.kind, element.size).reshape(-1, WARP)
        values = numbers(bits, element.kind, element.size).reshape(-1, WARP)
        there = lanes.mask.reshape(-1, WARP)
        if "add" in statement.modifiers:
            sums = np.where(there, values.astype(np.int64), 0).sum(1)
            held = sums.astype(f"{'i' if element.kind == 's' else 'u'}{element.size}")
            found = total(np.where(there, keys, _U(0)), 1)
            found = unwrapped(found, sums.astype(np.float64), held, element.size)
        elif "min" in statement.modifiers or "max" in statement.modifiers:
            greatest = "max" in statement.modifiers
            edge = -np.inf if greatest else np.inf
            pairs = [
                (keys[:, i], np.where(there[:, i], values[:, i].astype(float), edge)) for i in range(WARP)
            ]
            found = chosen(pairs, greatest=greatest)
        else:
            found = hashed(".".join(statement.modifiers), *np.where(there, keys, _U(0)).T)
        return Cells.of(np.repeat(found, WARP), element.kind, element.size)


class MatrixOperands:
    """The operands of one execution of a matrix instruction, and where D goes."""

    def __init__(self, algebra: KeyStore, turn: Turn, execution: MatrixExecution) -> None:
        self.algebra, self.turn, self.execution = algebra, turn, execution
        self.wave, self.statement, self.reader = turn.wave, turn.statement, algebra.reader
        self.form, self.inputs, self.count = execution.instruction, execution.inputs, len(execution.warps)
        self.warps = (execution.warps[:, None] + np.arange(self.form.warps)).reshape(-1)
        self.product = self.form.product.with_immediates(self.inputs.negate, self.inputs.transposed)
        self.index = (self.warps[:, None] * WARP + np.arange(WARP)).reshape(-1)  # lanes, by execution
        self.every = len(self.index) == self.wave.lanes and bool((np.diff(self.warps) == 1).all())

    @cached_property
    def lanes(self) -> Lanes:
        """The lanes of all executions."""
        mask = np.zeros(self.wave.lanes, np.bool_)
        mask[self.index] = True
        return Lanes(mask)

    # --- where operands lie ---

    def numbers_of(self, role: str) -> Sequence[int]:
        """Return the registers of an operand."""
        known, bound = self.statement.roles, self.execution.record.matrix
        if role not in known:
            names = getattr(bound, role, None)
            if names is None and role == "c":
                names = getattr(bound, "d", None)
            given = (names,) if isinstance(names, str) else names or ()
            known[role] = [self.statement.number(each) if isinstance(each, str) else -1 for each in given]
        return known[role]

    def keyed(self) -> bool:
        """Return whether any operand may have keys: of memory it is not looked at."""
        if not all(isinstance(self.form.place(role, self.inputs), Registers) for role in "ab"):
            return True
        registers = self.algebra.registers(self.turn.frame)
        roles = ("a", "b", "c") + (("scale_a", "scale_b") if self.form.scale else ())
        return any(number in registers for role in roles for number in self.numbers_of(role))

    # --- operands ---

    def multiplicands(self) -> tuple[Keys, Keys]:
        """Return A ``(executions, m, k)`` with its zeros, and B ``(executions, k, n)``, scales included."""
        a, b = self.matrix("a"), self.matrix("b")
        if mask := self.inputs.tensor.zero_column_mask:
            b = np.where(zero_mask(self.form, mask), _U(0), b)
        a = neg(a) if self.product.negated[0] else a
        b = neg(b) if self.product.negated[1] else b
        if self.form.sparse:
            columns = gathered_columns(self.form, self.inputs)
            assert columns is not None
            dense = np.zeros((*a.shape[:-1], self.product.shape.k), _U)
            np.put_along_axis(dense, np.broadcast_to(columns, a.shape), a, -1)
            a = dense
        if self.form.bit_operation == "xor":
            return exclusive(a, b)
        if not self.form.scale:
            return a, b
        each = self.product.shape.k // self.form.scale_chunks
        scale_a, scale_b = self._scales("scale_a"), self._scales("scale_b")
        return mul(a, np.repeat(scale_a, each, -1)), mul(b, np.repeat(scale_b.swapaxes(-1, -2), each, -2))

    def matrix(self, role: str) -> Keys:
        """Return the keys ``(executions, rows, columns)`` of an operand where it lies."""
        place = self.form.place(role, self.inputs)
        if isinstance(place, Registers):
            return self._of_registers(place, role)
        if isinstance(place, BehindDescriptor):
            return self._in_memory(self.tile_addresses(place, role), role)
        assert isinstance(place, TensorCells)
        return self._of_tensor_memory(place, role, self.product.format(role))

    def cells(self, numbers_: Sequence[int]) -> Cells | None:
        """Return the cells of registers of the lanes that execute, those of the first register first."""
        held = [self.algebra.registers(self.turn.frame).get(number) for number in numbers_]
        if not self.every:
            held = [None if each is None else each.of_lanes(self.index) for each in held]
        return Cells.beside(held, self.form.register_bits // 8, len(self.index))

    def _of_registers(self, place: Registers, role: str) -> Keys:
        """Return the keys of a fragment, kept for registers that hold the same cells: these never change."""
        registers = self.algebra.registers(self.turn.frame)
        held = [registers.get(number) for number in self.numbers_of(role)]
        known, key = self.algebra.fragments, (self.form, role, *map(id, held))
        kept = role in "ab" and self.every and all(each is not None for each in held)
        if not kept:
            return self._fragment(place, role)
        if key not in known:
            if len(known) >= _FRAGMENTS:
                del known[next(iter(known))]
            known[key] = held, self._fragment(place, role)
        return known[key][1]

    def _fragment(self, place: Registers, role: str) -> Keys:
        words = np.moveaxis(self.inputs.registers[role], -1, 0).reshape(-1)
        storage, element = place.storage, self.product.format(role)
        per = place.register_bits // storage.bits
        cells = self.cells(self.numbers_of(role))
        if cells is None and storage.shift and storage.bits > element.bits:
            words = words >> words.dtype.type(storage.shift)
        found = self.reader.elements(cells, words, element, per).reshape(per, -1, self.count, place.lanes)
        values = np.ascontiguousarray(found.transpose(2, 3, 1, 0)).reshape(self.count, place.lanes, -1)
        matrix = place.layout.collect(values)
        return matrix.reshape(self.count, place.products, *place.matrix) if place.products > 1 else matrix

    def tile_addresses(self, place: BehindDescriptor, role: str) -> npt.NDArray[np.int64]:
        """Return ``(executions, rows, columns)``: the byte of the wave's shared memory at which each element
        of a tile begins.
        """
        words = self.inputs.descriptor(role)
        assert words is not None
        stride, cta = self.wave.memories.shared_stride, self.wave.cta[WARP * self.execution.warps]
        tiles = {
            word: place.element_addresses(word, self.inputs, self.product)
            for word in dict.fromkeys(words.tolist())
        }
        addresses = np.stack([tiles[word] for word in words.tolist()]).astype(np.int64)
        if isinstance(place, DescribedTile):
            size = self.inputs.shared.shape[-1] // place.ctas  # type: ignore[union-attr]
            cta = np.array(self._ctas())[addresses // size]
            return np.asarray(addresses % size + cta * stride)
        return np.asarray(addresses + cta[:, None, None] * stride)

    def _ctas(self) -> tuple[int, ...]:
        own = int(self.wave.cta[WARP * int(self.execution.warps[0])])
        if self.form.lanes <= LANES or not self.form.family.one_thread:
            return (own,)
        first = own - own % self.wave.cluster.count + (own % self.wave.cluster.count & ~1)
        return (first, first + 1)

    def _in_memory(self, addresses: npt.NDArray[np.int64], role: str) -> Keys:
        """Return the keys of elements at bytes of shared memory ``(executions, rows, columns)``."""
        element, data = self.product.format(role), self.wave.memories.shared
        size, flat = max(element.bits, 8) // 8, np.ascontiguousarray(addresses).reshape(-1)
        cells = self.algebra.read(self.wave, self.statement.pc, data, flat, size)
        bits = np.ascontiguousarray(data[flat[:, None] + np.arange(size)]).view(f"u{size}")[:, 0]
        found = self.reader.elements(cells, bits, element, max(8 // element.bits, 1))
        found = found.reshape(-1, *addresses.shape)
        if element.bits != 4:  # of two that share a byte those along K are next to each other
            return np.asarray(found[0])
        along = np.arange(addresses.shape[1 if role == "b" else 2]) & 1
        return np.asarray(np.where((along[:, None] if role == "b" else along) == 1, found[1], found[0]))

    def _tensor_offsets(self, place: TensorCells, role: str) -> npt.NDArray[np.int64]:
        """Return ``(rows, columns)``: the first bytes of the cells of an operand in tensor memory."""
        where = TensorPlace.of(self.execution.addresses["d" if role == "c" else role])
        lane, column, _ = place.index
        cta = np.array(self._ctas())[lane // LANES]
        lanes = lane % LANES + where.lane
        return byte_places(0, cta * LANES + lanes, column + where.column)[..., 0].astype(np.int64)

    def _of_tensor_memory(self, place: TensorCells, role: str, element: Format) -> Keys:
        offsets, (lane, column, bit) = self._tensor_offsets(place, role), place.index
        cells = self.algebra.memory(tensor_bytes(self.wave)).load(offsets.reshape(-1), 4)
        bits = np.ascontiguousarray(self.inputs.registers[role][0][lane, column]).reshape(-1)
        step = max(element.bits, 8) if element.bits != 4 else 4
        slots = self.reader.elements(cells, bits, element, 32 // step)
        slot = bit.reshape(-1).astype(np.intp) // step
        first = int(slot[0])
        found = slots[first] if (slot == first).all() else slots[slot, np.arange(len(slot))]
        return found.reshape(1, *offsets.shape)

    def _scales(self, role: str) -> Keys:
        place, element, ids = self.form.place(role, self.inputs), self.form.scale, self.inputs.scale_selectors
        assert element is not None
        if isinstance(place, TensorCells):
            return self._of_tensor_memory(place, role, element)
        assert isinstance(place, ScaleRegisters)
        byte, thread = getattr(ids, f"byte_id_{place.side}"), getattr(ids, f"thread_id_{place.side}")
        lanes = (np.arange(self.count)[:, None] * WARP + place.lanes_of(thread)).reshape(-1)
        cells = self.cells(self.numbers_of(role))
        bits = np.ascontiguousarray(self.inputs.registers[role][..., 0]).reshape(-1)[lanes]
        found = self.reader.elements(None if cells is None else cells.of_lanes(lanes), bits, element, 4)
        return found[byte : byte + place.chunks].T.reshape(self.count, -1, place.chunks)

    # --- D ---

    def write(self, d: Keys) -> None:
        """Write the keys of D where its values are."""
        place, element = self.form.place("d", self.inputs), self.product.d
        kind, size = element.name if element.is_float else "s", element.bits // 8
        if isinstance(place, TensorCells):
            kept = ~self.inputs.tensor.disabled(place.lanes)[place.index[0]]
            cells = Cells.of(d[0][kept], kind, size).resized(4)
            memory, offsets = self.algebra.memory(tensor_bytes(self.wave)), self._tensor_offsets(place, "d")
            memory.store(offsets[kept], 4, cells, self.statement.pc)
            return
        assert isinstance(place, Registers)
        if place.products > 1:
            d = d.reshape(self.count, place.products * d.shape[-2], d.shape[-1])
        values = np.moveaxis(place.layout.distribute(d), -1, 0).reshape(-1, len(self.index))
        if not self.every:
            full = np.zeros((len(values), self.wave.lanes), _U)
            full[:, self.index] = values
            values = full
        numbers_ = self.numbers_of("d")
        per = len(values) // len(numbers_)
        for j, number in enumerate(numbers_):
            cells = Cells.of(values[j * per : (j + 1) * per], kind, size)
            self.algebra.put(self.turn, number, cells, self.lanes)


# --- tcgen05.ld ---------------------------------------------------------------------------------------


def tensor_loaded(algebra: KeyStore, turn: Turn, lanes: Lanes) -> None:
    """Write the registers of tcgen05.ld and ld.red."""
    wave, statement = turn.wave, turn.statement
    memory, (cells, packed) = algebra.memory(tensor_bytes(wave)), transfer_of(statement)
    address = statement.operands[1 + ("red" in statement.modifiers)]
    assert isinstance(address, Address)
    base = statement.source(address.base).value(turn.frame, wave.lanes, "b32")
    offsets = np.zeros((len(lanes.warps), *cells.shape[:2]), np.int64)
    for place, warp in enumerate(lanes.warps.tolist()):
        where = place_of(wave, warp, int(base[WARP * warp]) + address.offset)
        own = cells[..., 0] + where.lane, cells[..., 1] + where.column
        offsets[place] = byte_places(int(wave.cta[WARP * warp]), *own)[..., 0]
    warps = Lanes(np.repeat(lanes.mask[::WARP], WARP))
    for place, number in enumerate(statement.numbers(0)):
        here = np.ascontiguousarray(offsets[..., place]).reshape(-1)
        found = memory.load(here, 4)
        if packed:
            halves = [memory.load(here + 4 * half, 2) for half in (0, 1)]
            full = [each or Cells.empty(2, len(here)) for each in halves]
            found = Cells.joined(full) if any(halves) else None
        algebra.put(turn, number, spread(found, warps, wave.lanes), lanes)
    if "red" in statement.modifiers:
        _reduce(algebra, turn, lanes)


def _reduce(algebra: KeyStore, turn: Turn, lanes: Lanes) -> None:
    statement, registers = turn.statement, algebra.registers(turn.frame)
    (target,), words = statement.numbers(1), statement.modifiers
    element, pairs = element_of(words[-1]), list[tuple[Keys, Values]]()
    for number in statement.numbers(0):
        bits = turn.frame.values[number]
        assert bits is not None
        values = numbers(bits, element.kind, element.size)
        keys = algebra.reader.read(registers.get(number), bits, element.kind, element.size)
        pairs.append((magnitude(keys, values), np.abs(values)) if "abs" in words else (keys, values))
    name = "max" if "max" in words else "min"
    found = chosen(pairs, greatest=name == "max")
    if registers.keys().isdisjoint(statement.numbers(0)):
        algebra.put(turn, target, None, lanes)
        return
    algebra.put(turn, target, Cells.of(found, element.kind, element.size), lanes)
    algebra.made(turn, name, found[lanes.index], (keys[lanes.index] for keys, _ in pairs), lanes.index)


def place_of(wave: Wave, warp: int, address: int) -> TensorPlace:
    """Return the place that a warp addresses: its own lanes, where the address leaves them out."""
    where, quarter = TensorPlace.of(address), int(wave.thread[WARP * warp]) // WARP % 4
    return where if where.lane // 32 == quarter else where._replace(lane=where.lane + 32 * quarter)


def transfer_of(statement: Statement) -> tuple[npt.NDArray[np.intp], bool]:
    """Return ``(32, registers, 2)``: lane and column of each register of tcgen05.ld, and whether halves are
    packed."""
    words = statement.modifiers
    name = next(word for word in words if word in TRANSFERS)
    count = int(next(word[1:] for word in words if word[0] == "x" and word[1:].isdigit()))
    last = 2 + ("red" in words)
    offset = getattr(statement.operands[last], "value", 0) if len(statement.operands) > last else 0
    cells, packed = TRANSFERS[name].cells(count, offset), "pack::16b" in words
    return np.stack([cells[..., 0], cells[..., 1] * (1 + packed)], axis=-1), packed
