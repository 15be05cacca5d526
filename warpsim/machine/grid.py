"""Launching a kernel: CTAs in waves, one after the other or taking turns, on the memory of a device.

Knows grids, blocks and how many CTAs go together; does not know text or arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from .device import Device
from .program import Entry, Module
from .spaces import DEVICE_BASE, Bytes
from .wave import WARP, Dimensions, Wave

LANES = 1024  # of a wave: about what fits the caches
QUANTUM = 2_000_000  # statements of a wave before others get a turn: it may wait for them
_MOST_THREADS = 1024
_MOST_SHARED = 227 * 1024
_LIMITS = (2**31 - 1, 65535, 65535)


def dimensions(given: int | Sequence[int], what: str, limits: Dimensions) -> Dimensions:
    """Up to three positive integers as three; raises OperandError."""
    values = (given,) if isinstance(given, int | np.integer) else tuple(given)
    if not 1 <= len(values) <= 3 or not all(isinstance(one, int | np.integer) for one in values):
        raise OperandError(f"{what} {given!r}: expected one to three integers")
    x, y, z = (*(int(one) for one in values), 1, 1)[:3]
    for one, limit in zip((x, y, z), limits, strict=True):
        if not 1 <= one <= limit:
            raise OperandError(f"{what} {(x, y, z)}: each is 1 to {limit}")
    return x, y, z


def check_block(entry: Entry, block: Dimensions) -> None:
    """A block that the kernel can have; raises OperandError."""
    threads = block[0] * block[1] * block[2]
    if threads > _MOST_THREADS:
        raise OperandError(f"block {block} has {threads} threads: at most {_MOST_THREADS}")
    if entry.block is not None and block != entry.block:
        raise OperandError(f"block {block}: the kernel says .reqntid {entry.block}")
    if entry.most_threads is not None and threads > entry.most_threads:
        raise OperandError(
            f"block {block} has {threads} threads: the kernel says .maxntid {entry.most_threads}"
        )


def symbols_of(device: Device, module: Module) -> dict[str, int]:
    """The addresses of the module's variables on a device, where they are put when first asked for."""
    known = device.symbols.get(id(module))
    if known is None:
        known = {}
        for variable in module.variables:
            allocation = device.memory.allocate(max(variable.size, 1), variable.name, variable.alignment)
            known[variable.name] = allocation.address
            content = np.frombuffer(variable.initial, np.uint8)
            device.memory.bytes_of(allocation)[: content.size] = content
        device.symbols[id(module)] = known
    return known


def launch(
    module: Module,
    entry: Entry,
    device: Device,
    grid: Dimensions,
    block: Dimensions,
    parameters: Bytes,
    *,
    shared_bytes: int = 0,
    observers: Callable[[], Sequence[Any]] = tuple,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Execute every CTA of a grid. Raises what statements raise, and Fault."""
    total = entry.static_shared_bytes + shared_bytes
    if not shared_bytes >= 0 or total > _MOST_SHARED:
        raise OperandError(f"{total} bytes of shared memory: a CTA has at most {_MOST_SHARED}")
    symbols = symbols_of(device, module)
    count = grid[0] * grid[1] * grid[2]

    def make(ctas: npt.NDArray[np.int64]) -> Wave:
        wave = Wave(
            entry,
            ctas=ctas,
            grid=grid,
            block=block,
            memory=device.memory,
            parameters=parameters,
            shared_bytes=total,
            observers=observers(),
        )
        wave.kept["symbols"] = symbols
        return wave

    done = 0
    pending: list[Wave] = []  # waves that have used up their turn
    for ctas in _shares(grid, count, block):
        wave = make(ctas)
        if wave.run(QUANTUM):
            done += len(ctas)
            if progress:
                progress(done, count)
        else:
            pending.append(wave)
    while pending:
        pending = [wave for wave in pending if not wave.run(QUANTUM)]
        if progress:
            progress(count - sum(len(wave.ctas) for wave in pending), count)


def _shares(grid: Dimensions, count: int, block: Dimensions) -> Iterator[npt.NDArray[np.int64]]:
    """Coordinates of the CTAs of each wave, in the order x, y, z."""
    lanes = -(-block[0] * block[1] * block[2] // WARP) * WARP
    together = max(LANES // lanes, 1)
    for first in range(0, count, together):
        number = np.arange(first, min(first + together, count))
        x, y = number % grid[0], number // grid[0] % grid[1]
        yield np.stack([x, y, number // (grid[0] * grid[1])], axis=1)


__all__ = ["DEVICE_BASE", "LANES", "check_block", "dimensions", "launch", "symbols_of"]
