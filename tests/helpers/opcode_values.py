"""Nasty values of every width, and operations run on them in every way that their promises cover.

Knows what Operation promises of its functions; knows no opcode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random

import numpy as np

from warpsim.machine.bind.value_types import bits_of, dtype_of
from warpsim.machine.opcodes.operation import Operation, Row

# All sources of a lane, the carry last, as Python integers; all results likewise.
Reference = Callable[..., tuple[int, ...]]

SEED = 20
_SMALL = {"pred": [0, 1]}
# Patterns of 16-bit and wider floating numbers: infinities, NaNs of both kinds, subnormals, their neighbours.
_FLOATS = {
    "f16": (0x7C00, 0x7C01, 0x7E00, 0x7BFF, 0x0400, 0x03FF, 0x0001, 0x3C00),
    "bf16": (0x7F80, 0x7F81, 0x7FC0, 0x7F7F, 0x0080, 0x007F, 0x0001, 0x3F80),
    "f32": (0x7F800000, 0x7F800001, 0x7FC00000, 0x7F7FFFFF, 0x00800000, 0x007FFFFF, 1, 0x3F800000),
    "f64": tuple(
        code << 48 | low for code, low in
        ((0x7FF0, 0), (0x7FF0, 1), (0x7FF8, 0), (0x7FEF, 2**48 - 1), (0x0010, 0), (0x000F, 2**48 - 1), (0, 1),
         (0x3FF0, 0))
    ),
}  # fmt: skip


@cache
def nasty(type_name: str) -> list[int]:
    """Values that break arithmetic, of one element of a type."""
    if type_name in _SMALL:
        return _SMALL[type_name]
    bits = bits_of(type_name)
    if type_name in _FLOATS:
        return [
            0,
            1 << (bits - 1),
            *(code | sign << (bits - 1) for code in _FLOATS[type_name] for sign in (0, 1)),
        ]
    powers = [(1 << power) + change for power in range(0, bits, 4) for change in (-1, 0, 1)]
    limits = [(1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1]
    stripes = [int("5" * (bits // 4), 16), int("a" * (bits // 4), 16), 31, 32, 33, 63, 64, 65, 3]
    return sorted({value % (1 << bits) for value in (*powers, *limits, *stripes)})


@cache
def _element(type_name: str) -> tuple[str, int, list[int]]:
    """The element of a pair, if it is a pair; bits and nasty values of an element."""
    element, _, pair = type_name.partition("x")
    return element if pair else "", bits_of(element), nasty(element)


def _some(random: Random, type_name: str) -> int:
    element, bits, known = _element(type_name)
    if element:
        return _some(random, element) | _some(random, element) << bits
    kind = random.random()
    if kind < 0.6:
        return random.choice(known)
    if kind < 0.75:
        return random.randrange(min(1 << bits, 70))
    return random.getrandbits(bits)


def lanes_of(operation: Operation, seed: str, count: int = 600) -> list[tuple[int, ...]]:
    """Sources of many lanes, the carry last; two sources meet often in the same value."""
    random = Random(f"{SEED} {seed}")
    types = (*operation.sources, *(("pred",) if operation.reads_carry else ()))
    lanes = []
    for _ in range(count):
        lane = [_some(random, type_name) for type_name in types]
        if len(types) > 1 and types[0] == types[1] and random.random() < 0.15:
            lane[1] = lane[0]
        lanes.append(tuple(lane))
    return lanes


def arrays_of(operation: Operation, lanes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """The lanes' sources as the operation takes them, one array a source."""
    types = (*operation.sources, *(("pred",) if operation.reads_carry else ()))
    return [
        np.array(column, dtype_of(name)) for column, name in zip(zip(*lanes, strict=True), types, strict=True)
    ]


def check_operation(operation: Operation, reference: Reference, lanes: Sequence[tuple[int, ...]]) -> None:
    """Every lane as the reference has it; dtypes; sources untouched; constants of shape () broadcast."""
    arrays = arrays_of(operation, lanes)
    kept = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    results = operation.compute(*arrays)
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, kept, strict=True))
    types = (*operation.results, *(("pred",) if operation.writes_carry else ()))
    assert [result.dtype for result in results] == [dtype_of(name) for name in types]
    assert [result.shape for result in results] == [(len(lanes),)] * len(types)
    found = list(zip(*(result.tolist() for result in results), strict=True))
    wrong = [
        (list(map(hex, lane)), list(map(hex, got)), list(map(hex, wanted)))
        for lane, got in zip(lanes, found, strict=True)
        if tuple(map(int, got)) != (wanted := tuple(map(int, reference(*lane))))
    ]
    assert not wrong, f"{len(wrong)} of {len(lanes)} lanes; sources, result, reference: {wrong[:5]}"
    _check_broadcast(operation, arrays, lanes, found)


def _check_broadcast(
    operation: Operation,
    arrays: list[np.ndarray],
    lanes: Sequence[tuple[int, ...]],
    found: list[tuple[int, ...]],
) -> None:
    """Sources of shape () give what full ones do: each alone, and all together."""
    for place in range(len(arrays)):
        mixed = [array[:8] if other != place else array[3] for other, array in enumerate(arrays)]
        full = [array[:8] if other != place else np.full(8, array[3]) for other, array in enumerate(arrays)]
        for left, right in zip(
            operation.compute(*(np.asarray(source) for source in mixed)),
            operation.compute(*full),
            strict=True,
        ):
            assert np.array_equal(np.broadcast_to(left, (8,)), right)
            assert left.dtype == right.dtype
    for lane in range(min(40, len(lanes))):
        alone = operation.compute(*(np.array(array[lane]) for array in arrays))
        assert all(np.shape(result) == () for result in alone)
        assert tuple(int(result) for result in alone) == tuple(map(int, found[lane]))


def operations(rows: Sequence[Row]) -> Iterator[tuple[str, tuple[str, ...], Operation]]:
    """Opcode, written modifiers and operation of every form."""
    for row in rows:
        for choice in row.forms():
            yield row.opcode, tuple(filter(None, choice)), row.build(*choice)


def number(value: int, type_name: str) -> int:
    """The number that the bits of an integer type stand for."""
    bits = bits_of(type_name)
    return value - (1 << bits) if type_name.startswith("s") and value >> (bits - 1) else value
