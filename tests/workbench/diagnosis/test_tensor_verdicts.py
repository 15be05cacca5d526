"""What why() says of mistakes in kernels of tcgen05, made by a change of their PTX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import warpsim
from tests.helpers import tensor_core_products
from tests.helpers.kernel_cases import FOLDER
from tests.helpers.kernel_products import Case
from tests.helpers.tensor_pipeline_products import stored
from warpsim.programs.launch.launching import load_text

WORD, FORM = 4611756662049538048, 135266320  # 128B, SBO 1024, LBO 16; 128 x 64 of f16
A_WORDS = tuple(
    (f"%rd{a}, %rd{a + 8}, {WORD}", f"%rd{a}, %rd{a + 8}, {WORD & ~(7 << 61)}") for a in (11, 13, 15, 17)
)
Changes = tuple[tuple[str, str], ...]
SHORT = partial(stored, k=128)


def verdict(
    make: Callable[[np.random.Generator], Case], changes: Changes, **other: object
) -> warpsim.Verdict:
    """The verdict on a kernel with changes of its PTX."""
    case = make(np.random.default_rng(3))
    if other:
        case = replace(case, **other)  # type: ignore[arg-type]
    text = (FOLDER / case.file).read_text()
    start = text.index(f".entry {case.entry}(")
    own = text[start:]
    for old, new in changes:
        assert old in own
        own = own.replace(old, new, 1)
    kernel = load_text(text[:start] + own, case.file)[case.entry]
    arguments = case.passed(list(case.arguments))
    return warpsim.why(
        kernel, case.grid, case.block, arguments, case.expected, shared_bytes=case.shared_bytes
    )


@pytest.mark.parametrize(
    ("changes", "kind", "operand", "said"),
    [
        (A_WORDS, "descriptor", "a", "the swizzle of the descriptor is none where 128B fits"),
        (((f"{FORM};", f"{FORM | 1 << 14};"),), "sign", "b", "every sign of B is flipped"),
        (
            (("%rd11, %rd12, %r81, adds;", "%rd11, %rd12, %r81, 0;"),),
            "accumulate",
            "d",
            "enable-input-d is false within a sum: what was accumulated before is lost in 1 of 8 executions",
        ),
    ],
)
def test_what_is_wrong_is_named(changes: Changes, kind: str, operand: str, said: str) -> None:
    found = verdict(SHORT, changes)
    assert (found.kind, found.operand) == (kind, operand)
    assert said in found.cause
    assert found.location is not None
    assert "tcgen05.mma" in found.location.text


@pytest.mark.parametrize(
    ("word", "said", "fix"),
    [
        (
            FORM | 1 << 7 | 1 << 10,
            "the type of A and of B is bf16 and bf16 where f16 fits",
            "bits 9:7 and 0 into",
        ),
        (FORM & ~(3 << 4), "the type of D is f16 where f32 fits", "put 1 into bits 5:4"),
        (FORM & ~(63 << 17) | 4 << 17, "N is 32 where 64 fits", "put 8 into bits 22:17"),
    ],
)
def test_fields_of_the_instruction_descriptor(word: int, said: str, fix: str) -> None:
    found = verdict(SHORT, ((f"{FORM};", f"{word};"),))
    assert found.kind == "instruction descriptor"
    assert found.cause == f"{said}, by the instruction descriptor {word:#010x}"
    assert fix in found.fix


def test_a_step_that_is_left_out_is_the_difference() -> None:
    """k is 192 in the arrays, and 128 for the loop."""
    case = tensor_core_products.f16(np.random.default_rng(4), size=(128, 64, 192))
    found = verdict(lambda rng: case, (), arguments=(*case.arguments[:4], 128))
    assert found.kind == "missing term"
    assert "(index 1: 128 to 191)" in found.cause
    assert any("is used: 0..127 of 192" in note for note in found.notes)


def test_a_right_kernel_is_right() -> None:
    assert verdict(SHORT, ()).as_expected
