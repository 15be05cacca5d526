"""Every exact floating-point form against the slow oracle, on nasty and random sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.families import each_of, usual
from tests.helpers.float_samples import sources
from tests.helpers.slow_floats import KINDS, evaluate, extremum
from warpsim.machine.bind.value_types import dtype_of
from warpsim.machine.opcodes.floating import halves, minmax, rounded
from warpsim.machine.opcodes.floating import singles as floating
from warpsim.machine.opcodes.operation import Operation, Row

EXACT_ROWS = (*floating.ROWS, *halves.ROWS, *rounded.ROWS)


def forms(rows: tuple[Row, ...]) -> list[Any]:
    """Parameters: opcode, modifiers and operation of every form."""
    seen: dict[str, Any] = {}
    for row in rows:
        for choice in row.forms():
            operation = row.build(*choice)
            name = ".".join([row.opcode, *filter(None, choice)]) + f"-{len(operation.sources)}"
            assert name not in seen
            seen[name] = pytest.param(row.opcode, choice, operation, id=name)
    return list(seen.values())


def lanes(operation: Operation, count: int) -> tuple[list[list[int]], list[int]]:
    """Bits of sources, one list an element, and of the results; values of x2 types are split."""
    scalars = [name.removesuffix("x2") for name in operation.sources]
    columns = sources(scalars, count, seed=len(scalars))
    if operation.sources[0].endswith("x2"):
        if len(columns[0]) % 2:
            columns = [column[1:] for column in columns]
        shift = np.uint64(KINDS[scalars[0]].bits)
        words = [column[0::2] | column[1::2] << shift for column in columns]
    else:
        words = columns
    arrays = [word.astype(dtype_of(name)) for word, name in zip(words, operation.sources, strict=True)]
    (result,) = operation.compute(*arrays)
    assert result.dtype == dtype_of(operation.results[0])
    found = result.astype(np.uint64)
    if operation.results[0].endswith("x2"):
        mask = np.uint64((1 << int(shift)) - 1)
        found = np.stack([found & mask, found >> shift], axis=1).reshape(-1)
    return np.stack(columns, axis=1).tolist(), found.tolist()


def differences(
    operation: Operation, sources: list[list[int]], found: list[int], wanted: list[int]
) -> list[str]:
    return [
        f"{' '.join(map(hex, words))}: {have:#x}, not {want:#x}"
        for words, have, want in zip(sources, found, wanted, strict=True)
        if have != want
    ][:5]


@pytest.mark.parametrize(("opcode", "choice", "operation"), forms(EXACT_ROWS))
def test_arithmetic(opcode: str, choice: tuple[str, ...], operation: Operation) -> None:
    rows, found = lanes(operation, usual(300, 800) if "f64" in choice else usual(150, 400))
    kinds = [name.removesuffix("x2") for name in operation.sources]
    result = operation.results[0].removesuffix("x2")
    mode = next((modifier for modifier in choice if modifier in ("rn", "rz", "rm", "rp")), "rn")
    clamp = next((modifier for modifier in choice if modifier in ("sat", "relu")), "")
    ftz = "ftz" in choice and result != "f64"  # rcp.rn.ftz.f64 flushes nothing
    wanted = [evaluate(opcode, row, kinds, result, mode, ftz, clamp) for row in rows]
    if "oob" in choice:
        wanted = [0 if 0x7FF7 in row else bits for row, bits in zip(rows, wanted, strict=True)]
    assert differences(operation, rows, found, wanted) == []


@pytest.mark.parametrize(
    ("opcode", "choice", "operation"), [p for p in forms(minmax.ROWS) if p.values[0] in ("min", "max")]
)
def test_minimum_and_maximum(opcode: str, choice: tuple[str, ...], operation: Operation) -> None:
    rows, found = lanes(operation, 600)
    name = operation.results[0].removesuffix("x2")
    wanted = [extremum(opcode, row, name, set(choice)) for row in rows]
    assert differences(operation, rows, found, wanted) == []


@pytest.mark.parametrize(
    ("opcode", "choice", "operation"), [p for p in forms(minmax.ROWS) if p.values[0] in ("abs", "neg")]
)
def test_sign(opcode: str, choice: tuple[str, ...], operation: Operation) -> None:
    rows, found = lanes(operation, 600)
    name = operation.results[0].removesuffix("x2")
    kind = KINDS[name]

    def wanted(bits: int) -> int:
        if bits & (kind.sign - 1) > kind.infinity:
            return bits | 1 << 51 if name == "f64" else kind.nan
        if "ftz" in choice and not bits & kind.infinity:
            bits &= kind.sign
        return bits & ~kind.sign if opcode == "abs" else bits ^ kind.sign

    assert differences(operation, rows, found, [wanted(*row) for row in rows]) == []
    if operation.sources[0] in ("f16", "bf16"):
        (every,) = operation.compute(np.arange(1 << 16, dtype=np.uint16))
        assert every.tolist() == [wanted(bits) for bits in range(1 << 16)]


def test_a_source_out_of_bounds_gives_zero() -> None:
    operation = next(row for row in halves.ROWS if "oob" in row.slots[1]).build("rn", "oob", "", "f16x2")
    one, outside = np.uint32(0x3C003C00), np.array([0x3C007FF7], np.uint32)
    (result,) = operation.compute(outside, np.array([one]), np.array([one]))
    assert result.tolist() == [0x40000000]


@each_of([parameters.values for parameters in forms((*EXACT_ROWS, *minmax.ROWS))])
def test_one_value_for_all_lanes(opcode: str, choice: tuple[str, ...], operation: Operation) -> None:
    rng = np.random.default_rng(5)
    arrays = [rng.integers(0, 2**63, 8).astype(dtype_of(name)) for name in operation.sources]
    (all_single,) = operation.compute(*(array[0].reshape(()) for array in arrays))
    (last_single,) = operation.compute(*arrays[:-1], arrays[-1][0].reshape(()))
    (plain,) = operation.compute(*arrays[:-1], np.repeat(arrays[-1][:1], 8))
    assert all_single.shape == ()
    assert all_single == plain[0]
    assert np.array_equal(np.broadcast_to(last_single, plain.shape), plain)


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("opcode", ["add", "mul"])
def test_every_half_with_another(opcode: str, name: str) -> None:
    operation = next(row for row in halves.ROWS if row.opcode == opcode and name in row.slots[-1]).build(
        "rn", "", "", name
    )
    every = np.arange(1 << 16, dtype=np.uint16)
    others = np.random.default_rng(9).permutation(every)
    (found,) = operation.compute(every, others)
    rows = np.stack([every, others], axis=1).tolist()
    assert (
        differences(
            operation, rows, found.tolist(), [evaluate(opcode, row, [name] * 2, name) for row in rows]
        )
        == []
    )


# What ptxas 13.0 leaves of instructions whose sources are constants.
FOLDED = [
    ("mul", ("", "ftz", "", "f32"), (0x3F7FFFFF, 0x00800000), 0),  # 2^-126 (1 - 2^-24), which f32 rounds up
    ("mul", ("", "ftz", "", "f32"), (0x20000400, 0x1FFFF800), 0x00800000),  # 2^-126 (1 - 2^-26)
    ("add", ("", "", "sat", "f32"), (0x80000000, 0x80000000), 0),
    ("min", ("", "", "", "", "f32"), (0x00000000, 0x80000000), 0x80000000),
    ("min", ("", "NaN", "", "", "f32"), (0x7F812345, 0x7F912345), 0x7FFFFFFF),
    ("max", ("", "", "", "", "f32"), (0xFFC12345, 0x3F800000), 0x3F800000),
    ("min", ("", "", "", "", "f64"), (0, 1 << 63), 1 << 63),
]


@pytest.mark.parametrize(("opcode", "choice", "words", "wanted"), FOLDED)
def test_as_ptxas_folds_constants(
    opcode: str, choice: tuple[str, ...], words: tuple[int, ...], wanted: int
) -> None:
    rows = (row for row in (*floating.ROWS, *minmax.ROWS) if row.opcode == opcode and choice in row.forms())
    operation = next(rows).build(*choice)
    kinds = zip(operation.sources, words, strict=True)
    (found,) = operation.compute(*(np.array(word, dtype_of(name)) for name, word in kinds))
    assert int(found) == wanted
