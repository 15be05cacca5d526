"""tcgen05.ld on keys: cells of tensor memory become registers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...isa.layouts.tensor_memory import TRANSFERS
from ...isa.warps import WARP
from ...machine.opcodes.tensor.tensor_places import Place
from ...machine.run.wave import Wave
from ...machine.state.lanes import DivergentPath, Lanes
from ...machine.state.tensor_cells import byte_places
from ...ptx.operands import Address
from .key_store import KeyStore, tensor_bytes
from .keys.key_cells import cells_of_rows
from .rules.keyed_statements import Statement


def tensor_loaded(
    algebra: KeyStore, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement
) -> None:
    """Write the registers of tcgen05.ld."""
    memory = algebra.memory(tensor_bytes(wave))
    cells, packed = transfer_of(statement)
    address = statement.operands[1]
    assert isinstance(address, Address)
    base = statement.source(address.base).value(path.frame, wave.lanes, "b32")
    numbers = statement.numbers(0)
    keys = np.zeros((wave.lanes, len(numbers), 4), np.uint64)
    tags = np.zeros(keys.shape, np.uint16)
    for warp in lanes.warps.tolist():
        where = place_of(wave, warp, int(base[WARP * warp]) + address.offset)
        here = byte_places(
            int(wave.cta[WARP * warp]), cells[..., 0] + where.lane, cells[..., 1] + where.column
        )
        if packed:
            here = np.concatenate([here[..., :2], here[..., :2] + 4], axis=-1)
        rows = slice(WARP * warp, WARP * warp + WARP)
        keys[rows], tags[rows] = memory.keys[here], memory.tags[here]
    for place, number in enumerate(numbers):
        algebra.put(
            wave, path.frame, lanes, number, cells_of_rows(keys[:, place], tags[:, place], statement.pc)
        )


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
    offset = getattr(statement.operands[2], "value", 0) if len(statement.operands) > 2 else 0
    cells, packed = TRANSFERS[name].cells(count, offset), "pack::16b" in words
    return np.stack([cells[..., 0], cells[..., 1] * (1 + packed)], axis=-1), packed
