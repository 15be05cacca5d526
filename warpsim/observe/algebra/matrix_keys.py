"""Matrix instructions on keys: operands gathered by the placements of the instruction, products by fields.

A is gathered as it is stored; where it is sparse it becomes a matrix with zeros, since metadata are values.
Block scales multiply A and B. Knows placements; does not know how an opcode spells them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.families.tcgen05_operands import zero_mask
from ...isa.fragments import gathered_columns
from ...isa.instruction import Instruction
from ...isa.layouts.tensor_memory import LANES
from ...isa.operand_places.placements import BehindDescriptor, Registers, ScaleRegisters
from ...isa.operand_places.tensor_placements import DescribedTile, TensorCells
from ...isa.warps import WARP
from ...machine.opcodes.tensor.tensor_places import Place as TensorPlace
from ...machine.run.events import MatrixExecution
from ...machine.run.wave import Step, Wave
from ...machine.state.lanes import DivergentPath, Frame, Lanes
from ...machine.state.tensor_cells import byte_places
from .fragment_keys import Fragments
from .key_store import KeyStore, tensor_bytes
from .keys.constant_keys import two_to
from .keys.finite_fields import Keys, add, hashed, matmul, mul, neg, total
from .keys.key_cells import PAIRED, Cells, MemoryCells, cells_of_rows, tag_of
from .keys.key_reading import numbers
from .provenance import Product, place_of_wave
from .rules.keyed_statements import Element, Statement, element_of
from .rules.rule_calls import chosen, unwrapped
from .tensor_memory_keys import tensor_loaded

_U = np.uint64


class Matrices:
    """The matrix instructions of an observer."""

    def __init__(self, algebra: KeyStore) -> None:
        self.algebra = algebra
        self.fragments = Fragments(algebra)
        self._frames = dict[int, Frame]()  # by statement: the frame that executes it

    def executed(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        """Execute a statement; the event that a product is done has the rest."""
        algebra, frame = self.algebra, path.frame
        self._frames[statement.pc] = frame
        algebra.accesses.clear()
        if statement.opcode == "wmma":
            self.fragments.begin(frame, statement)
        changed = inner(wave, path, lanes)
        kind = statement.modifiers[0] if statement.modifiers else ""
        together = algebra.together or (None if changed else lanes)
        if statement.opcode == "tcgen05" and kind == "ld" and "red" not in statement.modifiers:
            if together is not None:
                tensor_loaded(algebra, wave, path, together, statement)
        elif statement.opcode == "tcgen05" and kind == "ld" and together is not None:
            algebra.uninterpreted["tcgen05"] += 1
            algebra.forget(wave, frame, together, statement.writes)
        elif statement.opcode == "wmma" and together is not None:
            self.fragments.executed(wave, frame, together, statement)
        return changed

    def multiplied(self, wave: Wave, execution: MatrixExecution) -> None:
        """Compute and write the keys of D."""
        statement = self.algebra.statement(execution.pc)
        work = MatrixOperands(self.algebra, wave, execution, self._frames[execution.pc], statement)
        if not work.keyed():
            work.forget()
            return
        form, inputs = execution.instruction, execution.inputs
        a, b = work.multiplicands()
        c = work.accumulator() if inputs.scale_d else np.zeros(execution.d.shape[:1] + _shape(form, "d"), _U)
        power = inputs.tensor.scale_input_d
        d = add(matmul(a, b), mul(c, key_of_power(-power)) if power else c)
        if self.algebra.provenance is not None:
            self.algebra.provenance.product(
                Product(execution.pc, a, b, c, d, execution.warps, place_of_wave(wave))
            )
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
        return Cells.of(np.repeat(found, WARP), element.kind, element.size, statement.pc)


def key_of_power(power: int) -> Keys:
    """Return the key of 2 ** power."""
    return two_to(np.array(power))


def _shape(form: Instruction, operand: str) -> tuple[int, ...]:
    shape = form.product.matrix_shape(operand)
    return (form.products, *shape) if form.products > 1 else shape


class MatrixOperands:
    """The operands of one execution of a matrix instruction, and where D goes."""

    def __init__(
        self, algebra: KeyStore, wave: Wave, execution: MatrixExecution, frame: Frame, statement: Statement
    ) -> None:
        self.algebra, self.wave, self.execution, self.frame = algebra, wave, execution, frame
        self.form, self.inputs, self.statement = execution.instruction, execution.inputs, statement
        self.count = len(execution.warps)
        each = self.form.warps
        self.warps = (execution.warps[:, None] + np.arange(each)).reshape(-1)
        self.product = self.form.product.with_immediates(self.inputs.negate, self.inputs.transposed)
        self.ctas = self._ctas()

    def _ctas(self) -> tuple[int, ...]:
        """Return the CTAs of the wave that a tcgen05.mma works in."""
        own = int(self.wave.cta[WARP * int(self.execution.warps[0])])
        if self.form.lanes <= LANES or not self.form.family.one_thread:
            return (own,)
        first = own - own % self.wave.cluster.count + (own % self.wave.cluster.count & ~1)
        return (first, first + 1)

    # --- where operands lie ---

    def numbers_of(self, role: str) -> Sequence[int]:
        """Return the registers of an operand."""
        bound = self.execution.record.matrix
        names = getattr(bound, role, None) if bound is not None else None
        if names is None and role == "c":
            names = getattr(bound, "d", None)
        given = (names,) if isinstance(names, str) else names or ()
        return [self.statement.number(name) if isinstance(name, str) else -1 for name in given]

    def keyed(self) -> bool:
        """Return whether any operand may have keys: of memory it is not looked at."""
        if not all(isinstance(self._place(role), Registers) for role in "ab"):
            return True
        registers = self.algebra.registers(self.frame)
        roles = ("a", "b", "c") + (("scale_a", "scale_b") if self.form.scale else ())
        return any(number in registers for role in roles for number in self.numbers_of(role))

    def forget(self) -> None:
        """Let D have no keys."""
        self.algebra.forget(self.wave, self.frame, self.lanes(), self.numbers_of("d"))

    def lanes(self) -> Lanes:
        """Return the lanes that execute."""
        mask = np.zeros(self.wave.lanes, np.bool_)
        mask.reshape(-1, WARP)[self.warps] = True
        return Lanes(mask)

    def _place(self, role: str) -> Any:
        return self.form.place(role, self.inputs)

    # --- operands ---

    def multiplicands(self) -> tuple[Keys, Keys]:
        """Return A ``(executions, m, k)`` with its zeros, and B ``(executions, k, n)``, scales included."""
        a, b = self.matrix("a"), self.matrix("b")
        if mask := self.inputs.tensor.zero_column_mask:
            b = np.where(zero_mask(self.form, mask), np.uint64(0), b)
        a = neg(a) if self.product.negated[0] else a
        b = neg(b) if self.product.negated[1] else b
        if self.form.sparse:
            columns = gathered_columns(self.form, self.inputs)
            assert columns is not None
            dense = np.zeros((*a.shape[:-1], self.product.shape.k), _U)
            np.put_along_axis(dense, np.broadcast_to(columns, a.shape), a, -1)
            a = dense
        return self._scaled(a, b) if self.form.scale else (a, b)

    def _scaled(self, a: Keys, b: Keys) -> tuple[Keys, Keys]:
        chunks = self.form.scale_chunks
        each = self.product.shape.k // chunks
        scale_a, scale_b = self.scales("scale_a"), self.scales("scale_b")
        return mul(a, np.repeat(scale_a, each, -1)), mul(b, np.repeat(scale_b.swapaxes(-1, -2), each, -2))

    def accumulator(self) -> Keys:
        """Return C ``(executions, m, n)``."""
        return self.matrix("c")

    def matrix(self, role: str) -> Keys:
        """Return the keys ``(executions, rows, columns)`` of an operand where it lies."""
        place = self._place(role)
        if isinstance(place, Registers):
            return self._of_registers(place, role)
        if isinstance(place, BehindDescriptor):
            return self._of_tile(place, role)
        return self._of_tensor_memory(place, role)

    def _of_registers(self, place: Registers, role: str) -> Keys:
        words = self.inputs.registers[role]
        registers = self.algebra.registers(self.frame)
        storage = place.storage
        per = place.register_bits // storage.bits
        values = np.empty((self.count, place.lanes, len(self.numbers_of(role)), per), _U)
        for j, number in enumerate(self.numbers_of(role)):
            cells = registers.get(number)
            cells = cells if cells is None or self._every() else cells.of_lanes(self.index())
            bits = np.ascontiguousarray(words[..., j]).reshape(-1)
            values[:, :, j] = (
                self._elements(cells, bits, role, per).reshape(per, self.count, -1).transpose(1, 2, 0)
            )
        found = place.layout.collect(values.reshape(self.count, place.lanes, -1))
        return found.reshape(self.count, place.products, *place.matrix) if place.products > 1 else found

    def index(self) -> npt.NDArray[np.intp]:
        """Return the lanes that execute, execution by execution."""
        return (self.warps[:, None] * WARP + np.arange(WARP)).reshape(-1)

    def _every(self) -> bool:
        """Return whether all warps of the wave execute, in their order."""
        return len(self.warps) * WARP == self.wave.lanes and bool((np.diff(self.warps) == 1).all())

    def _elements(self, cells: Cells | None, bits: Any, role: str, per: int) -> Keys:
        """Return ``(elements, lanes)``: the numbers in a register, the lowest first."""
        element, reader = self.product.format(role), self.algebra.reader
        storage = self.product.storage(role)
        if storage.bits >= 8:
            kind, size, _ = (
                element_of(element.name)
                if element.is_float
                else Element(element.name[0], element.bits // 8, 1)
            )
            if storage.bits > element.bits:
                bits = bits >> bits.dtype.type(storage.shift) if cells is None and storage.shift else bits
            return np.stack(
                [reader.multiplied(cells, bits, kind, size, size * place) for place in range(per)]
            )
        if storage.bits == 4:
            kind = PAIRED if element.is_float else element.name[0]
            pairs = [reader.nibbles(cells, bits, kind, byte) for byte in range(per // 2)]
            return np.concatenate(pairs)
        rows, known = reader.rows(cells, bits, per // 8)
        return np.where(known[:, None], rows, hashed("bits", rows)).T

    def _of_tile(self, place: BehindDescriptor, role: str) -> Keys:
        """Return the keys of a tile in shared memory, ``(executions, rows, columns)``."""
        memory = self.algebra.memory(self.wave.memories.shared)
        return np.stack([self._in_memory(memory, each, role) for each in self.tile_addresses(place, role)])

    def tile_addresses(self, place: BehindDescriptor, role: str) -> Iterator[npt.NDArray[Any]]:
        """Yield the byte ``(rows, columns)`` of the wave's shared memory at which each element of a tile
        begins, execution by execution.
        """
        word = self.inputs.descriptor(role)
        assert word is not None
        stride = self.wave.memories.shared_stride
        for execution in range(self.count):
            addresses = place.element_addresses(int(word[execution]), self.inputs, self.product)
            if isinstance(place, DescribedTile):
                size = self.inputs.shared.shape[-1] // place.ctas  # type: ignore[union-attr]
                yield addresses % size + np.array(self.ctas)[addresses // size] * stride
            else:
                yield addresses + int(self.wave.cta[WARP * int(self.execution.warps[execution])]) * stride

    def _in_memory(self, memory: MemoryCells, addresses: Any, role: str) -> Keys:
        """Return the keys of elements at bytes of shared memory."""
        element, reader = self.product.format(role), self.algebra.reader
        size = max(element.bits, 8) // 8
        flat = np.ascontiguousarray(addresses).reshape(-1).astype(np.int64)
        keys, tags = memory.load(flat, size)
        self.algebra.note_writers(self.statement.pc, memory.writers_of(flat, size))
        self.algebra.copied(self.wave, self.statement.pc, memory.data, (keys, tags))
        cells = cells_of_rows(keys, tags)
        bits = np.ascontiguousarray(memory.data[flat[:, None] + np.arange(size)]).view(f"u{size}")[:, 0]
        if element.bits >= 8:
            kind = element_of(element.name).kind if element.is_float else element.name[0]
            return reader.multiplied(cells, bits, kind, size).reshape(addresses.shape)
        if element.bits == 4:
            pairs = reader.nibbles(cells, bits, PAIRED if element.is_float else element.name[0], 0)
            along = np.arange(addresses.shape[0 if role == "b" else 1]) & 1
            odd = np.broadcast_to(along[:, None] if role == "b" else along, addresses.shape).reshape(-1)
            chosen_: Keys = np.where(odd == 1, pairs[1], pairs[0]).reshape(addresses.shape)
            return chosen_
        if element.bits == 1:
            rows, _ = reader.rows(cells, bits, 1)
            return rows.reshape(addresses.shape)
        return hashed(f"packed {element}", reader.read(cells, bits, "u", 1)).reshape(addresses.shape)

    def _tensor_rows(self, place: TensorCells, role: str) -> npt.NDArray[np.intp]:
        """Return ``(rows, columns, 4)``: the bytes of the cells of an operand in tensor memory."""
        where = TensorPlace.of(self.execution.addresses["d" if role == "c" else role])
        lane, column, _ = place.index
        cta = np.array(self.ctas)[lane // LANES]
        lanes = lane % LANES + where.lane
        return byte_places(0, cta * LANES + lanes, column + where.column)

    def _of_tensor_memory(self, place: TensorCells, role: str) -> Keys:
        memory = self.algebra.memory(tensor_bytes(self.wave))
        bytes_ = self._tensor_rows(place, role)
        shape = bytes_.shape[:2]
        keys, tags = memory.keys[bytes_].reshape(-1, 4), memory.tags[bytes_].reshape(-1, 4)
        bits = self._words(place, role).reshape(-1)
        slot = place.index[2].reshape(-1).astype(np.intp)
        cells = cells_of_rows(keys, tags)
        element = (
            self.product.format("c" if role == "c" else role[-1])
            if not role.startswith("scale")
            else self.form.scale
        )
        assert element is not None
        found = np.zeros(len(bits), _U)
        for lowest in np.unique(slot).tolist():
            some = np.flatnonzero(slot == lowest)
            part = None if cells is None else cells.of_lanes(some)
            found[some] = self._slot(part, bits[some], element, lowest)
        return found.reshape(1, *shape)

    def _words(self, place: TensorCells, role: str) -> Any:
        lane, column, _ = place.index
        words = self.inputs.registers[role][0]
        return np.ascontiguousarray(words[lane, column])

    def _slot(self, cells: Cells | None, bits: Any, element: Any, lowest: int) -> Keys:
        """Return the keys of elements at a bit of their words."""
        reader = self.algebra.reader
        if element.bits < 8 and element.is_float and element.bits == 4:
            pair: Keys = reader.nibbles(cells, bits, PAIRED, lowest // 8)[lowest // 4 & 1]
            return pair
        kind = element_of(element.name).kind if element.is_float else element.name[0]
        return reader.read(cells, bits, kind, max(element.bits, 8) // 8, lowest // 8)

    def scales(self, role: str) -> Keys:
        """Return the keys of block scales ``(executions, lines, chunks)``."""
        place = self._place(role)
        if not isinstance(place, ScaleRegisters):
            return self._of_tensor_memory(place, role)
        ids = self.inputs.scale_selectors
        byte, thread = getattr(ids, f"byte_id_{place.side}"), getattr(ids, f"thread_id_{place.side}")
        (number,) = self.numbers_of(role)
        cells = self.algebra.registers(self.frame).get(number)
        lanes = place.lanes_of(thread)
        index = (self.warps[:, None] * WARP + lanes).reshape(-1)
        bits = np.ascontiguousarray(self.inputs.registers[role][:, lanes, 0]).reshape(-1)
        part = None if cells is None else cells.of_lanes(index)
        assert self.form.scale is not None
        kind = element_of(self.form.scale.name).kind
        found = [self.algebra.reader.read(part, bits, kind, 1, byte + chunk) for chunk in range(place.chunks)]
        return np.stack(found, axis=-1).reshape(self.count, len(lanes), place.chunks)

    # --- D ---

    def write(self, d: Keys) -> None:
        """Write the keys of D where its values are."""
        place = self._place("d")
        element = self.product.d
        kind = element.name if element.is_float else "s"
        size = element.bits // 8
        if isinstance(place, Registers):
            self._to_registers(place, d, kind, size)
        else:
            self._to_tensor_memory(place, d[0], kind, size)

    def _to_registers(self, place: Registers, d: Keys, kind: str, size: int) -> None:
        if place.products > 1:
            d = d.reshape(self.count, place.products * d.shape[-2], d.shape[-1])
        values = place.layout.distribute(d)  # (executions, lanes, values)
        numbers_ = self.numbers_of("d")
        per = values.shape[-1] // len(numbers_)
        lanes, index = self.lanes(), self.index()
        for j, number in enumerate(numbers_):
            parts = []
            for place_ in range(per):
                keys = np.zeros(self.wave.lanes, _U)
                keys[index] = values[..., j * per + place_].reshape(-1)
                parts.append(Cells.of(keys, kind, size, self.statement.pc))
            self.algebra.put(self.wave, self.frame, lanes, number, Cells.joined(parts, self.statement.pc))

    def _to_tensor_memory(self, place: TensorCells, d: Keys, kind: str, size: int) -> None:
        memory = self.algebra.memory(tensor_bytes(self.wave))
        bytes_ = self._tensor_rows(place, "d")
        kept = ~self.inputs.tensor.disabled(place.lanes)[place.index[0]]
        here = bytes_[kept]
        tag = tag_of(kind, size)
        tags = np.array([tag + byte if byte < size else 0 for byte in range(4)], np.uint16)
        memory.keys[here] = np.where(tags != 0, d[kept][:, None], _U(0))
        memory.tags[here] = tags
        memory.writers[here] = self.statement.pc
