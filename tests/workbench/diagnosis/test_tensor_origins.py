"""Origins of tcgen05.mma: elements, metadata and factors by places that are written out once more here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.helpers import kernel_cases, tensor_core_products
from tests.helpers.tensor_core import metadata_field
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.origins.element_origins import OperandOrigins, Origins, find_origins

Change = tuple[str, str]
A_WORDS, B_WORDS = (11, 13, 15, 17), (12, 14, 16, 18)  # registers of descriptors in tensor_stored
STORED_WORD, STORED_FORM = 4611756662049538048, 135266320  # 128B, SBO 1024, LBO 16; 128 x 64 of f16


@cache
def origins_of(name: str, *changes: Change) -> Origins:
    """Origins of a kernel of traces/kernels, its PTX changed."""
    case = kernel_cases.case(name)
    text = (kernel_cases.FOLDER / case.file).read_text()
    start = text.index(f".entry {name}(")
    own = text[start:]
    for old, new in changes:
        assert old in own
        own = own.replace(old, new, 1)
    kernel = load_text(text[:start] + own, case.file)[case.entry]
    inputs: dict[str, Any] = {
        f"input {index}": index
        for index, value in enumerate(case.arguments)
        if isinstance(value, np.ndarray) and index not in case.expected
    }
    arguments = case.passed(list(case.arguments))
    return find_origins(kernel, case.grid, case.block, arguments, inputs, case.shared_bytes, case.cluster)


def in_time(origins: Origins, role: str) -> Iterator[tuple[int, int, OperandOrigins]]:
    """Yield the executions of CTA (0, 0, 0) in order: their number, their place in the operand, and it."""
    found = [
        (int(time), event, operand)
        for operand in origins.operands
        if operand.role == role
        for event, time in enumerate(operand.operand.given.times)
        if not operand.operand.places[event, :3].any()
    ]
    found.sort(key=lambda item: item[0])
    for number, (_, event, operand) in enumerate(found):
        yield number, event, operand


@pytest.mark.parametrize(("role", "tall"), [("scale_a", 128), ("scale_b", 64)])
def test_factors_are_bytes_of_their_blocks(role: str, tall: int) -> None:
    """Row r of block (tile, step) lies at byte r % 32 * 16 + r // 32 * 4 + factor, and in lane r % 32."""
    seen = 0
    for number, event, operand in in_time(origins_of("tensor_mxf8"), role):
        step, factor = divmod(number, 4)
        for row in range(tall):
            cell = row // 32 * 128 + row % 32  # lanes of the first column, then those of the next
            byte = operand.index[event, cell, factor]
            assert byte == step * 512 + row % 32 * 16 + row // 32 * 4 + factor, (number, row)
        seen += 1
    assert seen == 16


@pytest.mark.parametrize("size", [(128, 64, 2048), (128, 128, 4096)])
def test_blocks_of_factors_in_padded_matrices_are_right(size: tuple[int, int, int]) -> None:
    """Blocks of 128 lines and 4 factors, as cuBLAS and CUTLASS have them, in arrays (lines, k / 32): the axis
    along which words move with k has lines of the tile, too.
    """
    case = tensor_core_products.mxf8(np.random.default_rng(1), size=size)
    arguments = list(case.arguments)
    for place in (1, 3):
        blocks = arguments[place]
        arguments[place] = blocks.reshape(len(blocks) * 128, size[2] // 32)
    kernel = load_text((kernel_cases.FOLDER / case.file).read_text(), case.file)[case.entry]
    passed = case.passed(arguments)
    kernel(case.grid, case.block, passed, case.shared_bytes)
    (place, expected), *_ = case.expected.items()
    assert np.array_equal(arguments[place], expected)
    inputs = {"A": 0, "scales of A": 1, "B": 2, "scales of B": 3}
    found = find_origins(kernel, case.grid, case.block, passed, inputs, case.shared_bytes, case.cluster)
    assert not found.findings
    assert {operand.role for operand in found.operands} >= {"scale_a", "scale_b"}


def test_metadata_are_words_of_their_lanes() -> None:
    """As tcgen05.cp takes them: 16 bytes of every row, a word for each instruction of a step."""
    seen = 0
    for number, event, operand in in_time(origins_of("tensor_copied_metadata"), "e"):
        for row, chunk in ((0, 0), (27, 6), (3, 6), (126, 1)):
            _, lane, column, bit = metadata_field("D", 16, row, chunk)
            step, word = divmod(4 * number, 16)
            assert column == 0
            assert operand.index[event, lane, bit // 8] == step * 2048 + lane * 16 + word + bit // 8
        seen += 1
    assert seen == 8


def test_a_pair_has_rows_of_both_ctas() -> None:
    for role, rows in (("a", 256), ("b", 64)):
        for number, event, operand in in_time(origins_of("tensor_pair"), role):
            assert operand.index.shape[1:] == (rows, 16)
            expected = np.arange(rows)[:, None] * 320 + 16 * number + np.arange(16)
            assert np.array_equal(operand.index[event], expected)


def test_a_in_tensor_memory_is_computed_and_d_a_result() -> None:
    origins = origins_of("tensor_attention")
    kinds = {
        (operand.role, tuple(name for name, n in operand.counts.items() if n)) for operand in origins.operands
    }
    assert ("a", ("computed",)) in kinds
    assert ("c", ("a result",)) in kinds


# --- mistakes --------------------------------------------------------------------------------------------


def _words(registers: tuple[int, ...], value: int) -> tuple[Change, ...]:
    return tuple(
        (f"%rd{number}, %rd{number + 8}, {STORED_WORD}", f"%rd{number}, %rd{number + 8}, {value}")
        for number in registers
    )


NONE, SBO_512 = STORED_WORD & ~(7 << 61), STORED_WORD ^ 0x60 << 32
EXCHANGED = STORED_WORD & ~(0x3FFF << 32 | 0x3FFF << 16) | 1 << 32 | 64 << 16


@pytest.mark.parametrize(
    ("operand", "changes", "said"),
    [
        ("a", _words(A_WORDS, NONE), "the swizzle of the descriptor is none where 128B fits"),
        ("b", _words(B_WORDS, SBO_512), "SBO of the descriptor is 512 where 1024 fits"),
        ("a", _words(A_WORDS, EXCHANGED), "SBO of the descriptor is 16 where 1024 fits"),
        (
            "b",
            ((f"{STORED_FORM};", f"{STORED_FORM | 1 << 16};"),),
            "the tile lies K-major in shared memory, but transpose B (bit 16 of the instruction descriptor) "
            "is 1",
        ),
    ],
)
def test_a_descriptor_that_does_not_fit(operand: str, changes: tuple[Change, ...], said: str) -> None:
    found = [finding for finding in origins_of("tensor_stored", *changes).findings if finding.fit]
    assert found
    for finding in found:
        assert (finding.kind, finding.operand) == ("descriptor", operand)
        assert finding.message.startswith(f"{said} (the tile that is multiplied lies at start 0x")
