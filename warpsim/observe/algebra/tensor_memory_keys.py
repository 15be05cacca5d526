"""tcgen05.ld on keys: cells of tensor memory become registers; ld.red takes the least or greatest of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...isa.layouts.tensor_memory import TRANSFERS
from ...isa.warps import WARP
from ...machine.opcodes.tensor.tensor_places import Place
from ...machine.run.wave import Wave
from ...machine.state.lanes import Lanes
from ...machine.state.tensor_cells import byte_places
from ...ptx.operands import Address
from .key_store import KeyStore, Turn, spread, tensor_bytes
from .keys.finite_fields import Keys
from .keys.key_cells import Cells
from .keys.key_reading import numbers
from .rules.keyed_statements import Statement, element_of
from .rules.rule_calls import Values, chosen, magnitude


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
    """Write the register that gets the least or greatest of those that a lane has loaded."""
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


def place_of(wave: Wave, warp: int, address: int) -> Place:
    """Return the place that a warp addresses: its own lanes, where the address leaves them out."""
    where, quarter = Place.of(address), int(wave.thread[WARP * warp]) // WARP % 4
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
