"""Every compiled kernel, compiled ahead of its first use and left in Numba's cache on disk.

Knows which instructions share a kernel; the kernels compile themselves when they are called, here with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...base.environment import in_default_environment
from ...base.errors import present
from ...isa.architectures import ARCHITECTURES
from ...isa.descriptors.packed_tiles import canonical_descriptor
from ...isa.instruction import Instruction
from ...isa.memory import SHARED_BYTES
from ...isa.operand_places.placements import Inputs
from ...isa.products import Operands
from ...isa.rules import BitCount, IntegerSum, Rule
from ...isa.sparsity import stored_columns
from ..arithmetic import chains, numerics
from ..arithmetic.kernels._jit import interpreted
from ..arithmetic.kernels.batches import COLUMNS
from ..arithmetic.plans import applies, plan_of
from ..execution import fused_registers, matrix_kernels
from ..execution.compilation_budget import PROCESS, CompilationBudget
from ..execution.interface import instructions
from ..execution.pipeline import rule_for
from ..execution.recipes import applies_to_registers, joined_plan, narrow_plan, register_plan
from .gemm import gemm

_MANY = 8  # times the columns of an instruction
Job = tuple[str, Callable[[], object]]  # what it is for, and the call that compiles


@in_default_environment
def warmup(target: str | None = None, progress: Callable[[int, int], None] | None = None) -> int:
    """Compile the kernels of a target, or of all; how many there are.

    They stay in Numba's cache (NUMBA_CACHE_DIR, or beside the package), so that no later process waits for
    them; in this process, they execute all instructions of the target from now on. ``progress`` is called
    before each with its number and the number of all. Raises IllegalInstruction for an unknown
    target.
    """
    jobs = [] if interpreted() else list(_jobs(target))
    if jobs:
        PROCESS.compiled.update(form.product for form in instructions(target))
    for number, (_, job) in enumerate(jobs):
        if progress is not None:
            progress(number, len(jobs))
        job()
    return len(jobs)


def _jobs(target: str | None) -> Iterator[Job]:
    """One job a kernel."""
    seen: set[Any] = set()
    for name in [target] if target else ARCHITECTURES:
        for form in instructions(name):
            for key, job in _of(form, rule_for(form)):
                if key not in seen:
                    seen.add(key)
                    yield f"{form.mnemonic} on {form.target}", job


def _of(form: Instruction, rule: Rule) -> Iterator[tuple[Any, Callable[[], object]]]:
    """Yield the kernels that an instruction can run on, each with a key that distinguishes it."""
    dtypes = tuple(form.format(operand).code_dtype for operand in "abc")
    yield (
        ("scalar", type(rule), form.d if chains.applies(form.product, rule) else None),
        partial(_scalar, form, rule),
    )
    if isinstance(rule, IntegerSum | BitCount):
        yield ("integers", bool(form.bit_operation), form.satfinite), partial(_integers, form)
    if not applies(form.product, rule):
        return
    narrow = narrow_plan(form.product, rule, form.shape.n).variant
    yield ("panel", plan_of(form.product, rule).variant, *dtypes), partial(_panel, form)
    yield ("matrices", narrow, *dtypes), partial(_matrices, form, rule)
    if applies_to_registers(form.product, rule):
        bits = form.storage("a").bits
        registers = register_plan(form.product, rule, form.shape.n).variant
        yield ("registers", registers, bits), partial(_registers, form)
        if not form.reads_tiles and form.shape.n == COLUMNS:
            yield (
                ("joined", joined_plan(form.product, rule).variant, bits),
                partial(_warm_joined_kernel, form),
            )


def _zeros(form: Instruction) -> Operands:
    """One case of nothing but zeros."""
    arrays: dict[str, Any] = {
        operand: np.zeros((1, *form.matrix_shape(operand)), form.format(operand).code_dtype)
        for operand in "abc"
    }
    if form.pattern:
        units = np.tile(np.arange(form.pattern.kept), form.stored_k // form.pattern.stored)
        columns = stored_columns(units.astype(np.uint8)[None], form.pattern)
        arrays["columns"] = np.broadcast_to(columns, arrays["a"].shape)
    if form.scale:
        arrays["scale_a"] = np.zeros((1, form.shape.m, form.scale_chunks), np.uint8)
        arrays["scale_b"] = np.zeros((1, form.scale_chunks, form.shape.n), np.uint8)
    return Operands(product=form.product, **arrays)


def _scalar(form: Instruction, rule: Rule) -> None:
    zeros = _zeros(form)
    numerics.compute(zeros, rule)
    if chains.applies(form.product, rule):  # products of many columns may have a kernel of their own
        arrays = {name: getattr(zeros, name) for name in ("b", "c", "scale_b")}
        wide: dict[str, Any] = {n: x if x is None else np.repeat(x, _MANY, 2) for n, x in arrays.items()}
        numerics.compute(replace(zeros, **wide), rule)


def _matrices(form: Instruction, rule: Rule) -> None:
    matrix_kernels.compute_matrices(_zeros(form), rule)


def _panel(form: Instruction) -> None:
    zeros = _zeros(form)
    given = {"scale_a": zeros.scale_a, "scale_b": zeros.scale_b}
    scales: dict[str, Any] = {name: codes[0] for name, codes in given.items() if codes is not None}
    a: Any = zeros.a[0]
    if form.pattern:
        units = np.tile(np.arange(form.pattern.kept), form.stored_k // form.pattern.stored)
        a = a, np.broadcast_to(units.astype(np.uint8), (form.shape.m, len(units)))
    gemm(form, a, zeros.b[0], zeros.c[0], threads=1, **scales)


def _integers(form: Instruction) -> None:
    """Compute a product with a C at its limit in one row, and in a single element of another."""
    a = np.zeros(form.matrix_shape("a"), form.a.code_dtype)
    c = np.zeros((form.shape.m, 64), np.int32)
    c[0] = c[1, 0] = np.iinfo(np.int32).max
    units: Any = a
    if form.pattern:
        kept = np.tile(np.arange(form.pattern.kept), form.stored_k // form.pattern.stored)
        units = a, np.broadcast_to(kept.astype(np.uint8), (form.shape.m, len(kept)))
    gemm(form, units, np.zeros((form.shape.k, 64), form.b.code_dtype), c, threads=1)


def _registers(form: Instruction) -> None:
    fused_registers.execute(form, _with_tiles(form, _zero_registers(form, ())))


def _warm_joined_kernel(form: Instruction) -> None:
    inputs = Inputs(registers=_zero_registers(form, (fused_registers.JOINED,)))
    call = present(fused_registers.fused_call(form, inputs), "call")
    fused_registers.run(call, 1, CompilationBudget(many=0))


def _zero_registers(form: Instruction, cases: tuple[int, ...]) -> dict[str, Any]:
    shapes = {name: (*cases, form.lanes, count) for name, count in form.registers.items() if name != "d"}
    registers = {name: np.zeros(shape, np.uint32) for name, shape in shapes.items()}
    if "e" in registers:
        registers["e"][...] = 0x44444444
    return registers


def _with_tiles(form: Instruction, registers: dict[str, Any]) -> Inputs:
    if not form.reads_tiles:
        return Inputs(registers=registers)
    word = canonical_descriptor(0, form.in_shared_memory("b").shape(), swizzle="none").encode()
    return Inputs(
        registers=registers,
        shared=np.zeros(SHARED_BYTES, np.uint8),
        b_descriptor=np.array(word, np.uint64),
    )
