"""Plain ``.sp`` metadata means what the code says that ptxas makes of it, for every form and selector.

From sm_100 on the chip takes ordered metadata only, and ptxas calls helpers that sort the fields, and the
values with them. Their machine code is executed here, lane by lane (tests/helpers/sass.py), up to the ordered
instruction; the sums are warpsim's on both sides. One descending pair is handed on as it is: indices 2, 1
(0b0110). A unit whose first place reaches rows 0 to 2 and whose second reaches 1 to 3 needs no sorting there,
and that is how the instruction is executed for this field.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import warpsim
from tests.helpers import ptxas, sass
from tests.helpers.families import sample
from warpsim import Instruction
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.fragments import known_fields, write_fields

MISSING = ptxas.missing() or ("" if ptxas.disassembler() else "nvdisasm is not installed")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING or "ptxas and nvdisasm are there")

TARGET = "sm_100a"
FORMS = [form for form in warpsim.instructions(TARGET, "9.0") if form.variant == "sp"]
WORDS = 16  # of a lane's row
ASCENDING = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110}
TWO_ONE = 0b0110


def kernel(form: Instruction, selector: int) -> str:
    """An entry of one instruction, whose lanes load its registers from their rows and store D to others."""
    names = {name: [f"{name}{i}" for i in range(form.registers[name])] for name in ("a", "b", "c", "e")}
    flat = [register for registers in names.values() for register in registers]
    vectors = ", ".join(f"{{{', '.join(names[name])}}}" for name in ("c", "a", "b", "c"))
    lines = [
        f".visible .entry {entry(form, selector)}(.param .u64 from, .param .u64 to) {{",
        f".reg .b32 {', '.join(flat)}, lane; .reg .b64 source, sink, place;",
        "ld.param.u64 source, [from]; ld.param.u64 sink, [to]; mov.u32 lane, %tid.x;",
        f"mul.wide.u32 place, lane, {4 * WORDS}; add.u64 source, source, place; add.u64 sink, sink, place;",
        *(f"ld.global.b32 {register}, [source+{4 * i}];" for i, register in enumerate(flat)),
        f"{form.mnemonic} {vectors}, e0, {selector};",
        *(f"st.global.b32 [sink+{4 * i}], {register};" for i, register in enumerate(names["c"])),
        "ret; }",
    ]
    return "\n".join(lines)


def entry(form: Instruction, selector: int) -> str:
    return f"k{FORMS.index(form)}_{selector}"


@cache
def program() -> sass.Program:
    """All kernels, as one module."""
    kernels = [kernel(form, selector) for form in FORMS for selector in form.selectors]
    ptx = "\n".join([f".version 8.7\n.target {TARGET}\n.address_size 64", *kernels])
    with TemporaryDirectory() as folder:
        return sass.parsed(sass.disassembled(ptx, TARGET, Path(folder)))


def operands(form: Instruction, selector: int, seed: int) -> dict[str, np.ndarray]:
    """Registers with numbers of a size, and metadata of fields with a meaning, garbage beside them."""
    rng = np.random.default_rng([seed, selector])
    pattern = form.pattern
    assert pattern is not None
    shape = (form.shape.m, form.shape.k // pattern.chunk)
    fields = rng.choice(np.flatnonzero(known_fields(form)).astype(np.uint8), shape)
    used = write_fields(form, np.full(shape, 15, np.uint8), selector)
    garbage = rng.integers(0, 1 << 32, used.shape, dtype=np.uint32) & ~used
    words = {name: rng.integers(0, 1 << 32, (32, form.registers[name]), dtype=np.uint32) for name in "abc"}
    if form.a.is_float:
        for name in "abc":
            element = form.format(name)
            values = rng.standard_normal((32, form.registers[name] * 32 // element.bits)).astype(
                element.dtype
            )
            words[name] = np.ascontiguousarray(values).view(np.uint32)
    return {**words, "e": write_fields(form, fields, selector) | garbage}


def executed(form: Instruction, selector: int, given: dict[str, np.ndarray]) -> np.ndarray:
    row = np.concatenate([given[name] for name in "abce"], axis=1)
    warp = sass.Warp(row, np.zeros((32, WORDS), np.uint32), TARGET)
    sass.run(program(), entry(form, selector), warp)
    assert warp.fields <= ASCENDING | {TWO_ONE}
    return warp.outputs[:, : form.registers["d"]]


@pytest.mark.parametrize("form", sample(FORMS, 3), ids=str)
def test_every_form_and_selector(form: Instruction) -> None:
    for selector in form.selectors:
        given = operands(form, selector, 14)
        ours = warpsim.execute(form, **given, selector=selector)
        assert np.array_equal(executed(form, selector, given), ours), selector
        other = {**given, "e": write_fields(form, np.full(fields_shape(form), 0b1110, np.uint8), selector)}
        assert not np.array_equal(warpsim.execute(form, **other, selector=selector), ours)  # it matters


def fields_shape(form: Instruction) -> tuple[int, int]:
    assert form.pattern is not None
    return form.shape.m, form.shape.k // form.pattern.chunk


def calls_a_sorter(form: Instruction) -> bool:
    steps = program().steps[program().labels[entry(form, 0)] :]
    ours = steps[: next(place for place, step in enumerate(steps) if step.opcode == "EXIT")]
    return any("mma_mdata" in one for step in ours for one in step.operands)


def test_what_ptxas_sorts_is_what_has_a_meaning() -> None:
    """Helpers for all but bf16, whose descending fields are not modelled, and tf32, whose name one place."""
    sorted_ = {form.operation for form in FORMS if calls_a_sorter(form)}
    unsorted = ARCHITECTURES[TARGET].unsorted_operations
    assert sorted_ | unsorted | {"tf32"} == {form.operation for form in FORMS}
    assert not sorted_ & (unsorted | {"tf32"})
