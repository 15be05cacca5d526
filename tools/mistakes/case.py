"""Forms of instructions, and operands of one as they should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.judging import Brought

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"
F16_HOPPER = F16[0], "sm_90"
F16_K8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_80"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "sm_80"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_90a"
SPARSE_S8 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "sm_90a"
SPARSE_TF32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "sm_90a"
WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "sm_90a"
WGMMA_WIDE = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", "sm_90a"
WGMMA_E4M3 = "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3", "sm_90a"
WGMMA_S8 = "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8", "sm_90a"
WGMMA_TF32 = "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32", "sm_90a"
WGMMA_SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16", "sm_90a"
_SCALED = "mma.sync.aligned.m16n8{}.row.col.kind::{}.block_scale{}.f32.{}.f32.{}"
MXF8 = _SCALED.format("k32", "mxf8f6f4", "", "e4m3.e4m3", "ue8m0"), "sm_120a"
MXF4 = _SCALED.format("k64", "mxf4", "", "e2m1.e2m1", "ue8m0"), "sm_120a"
NVF4 = _SCALED.format("k64", "mxf4nvf4", ".scale_vec::4X", "e2m1.e2m1", "ue4m3"), "sm_120a"

Arrays = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class One:
    """One instruction's operands as they should be: matrices, and the registers of them."""

    form: tuple[str, str]
    A: Any
    B: Any
    C: Any
    registers: Arrays
    indices: Any = None

    @property
    def instruction(self) -> Any:
        """The form on its target."""
        return warpsim.decode(self.form[0], target=self.form[1])

    def run(self, **changed: Any) -> Any:
        """Return D's registers, computed with the ``changed`` registers."""
        return warpsim.execute(self.instruction, **self.registers | changed, undefined="fallback")

    def result(self, **changed: Any) -> Any:
        """Return D as a matrix."""
        return warpsim.unpack(self.instruction, "d", self.run(**changed))

    def packed(self, operand: str, matrix: Any) -> Any:
        """Return the registers of a matrix."""
        return warpsim.pack(self.instruction, operand, matrix)

    def brought(self, d: Any, **other: Any) -> Brought:
        """Return the command line of the registers and this D: registers ``(32, …)`` or a matrix."""
        name = "D" if d.shape[-2] != 32 else "d"
        return Brought(form=self.form, arrays=self.registers | {name: d} | other)


def numbers(rng: np.random.Generator, element: Any, shape: tuple[int, ...]) -> Any:
    """Draw the values that kernels are tested with: normally distributed, or small integers."""
    if not element.is_float:
        low = -100 if element.signed else 0
        return rng.integers(low, 100, shape).astype(element.dtype)
    return rng.standard_normal(shape).astype(element.dtype)


def one(form: tuple[str, str], rng: np.random.Generator) -> One:
    """Draw random operands of a form."""
    instruction = warpsim.decode(form[0], target=form[1])
    m, n, k = instruction.shape.m, instruction.shape.n, instruction.shape.k
    A = numbers(rng, instruction.a, (m, k))
    B, C = numbers(rng, instruction.b, (k, n)), numbers(rng, instruction.c, (m, n))
    registers, indices = {}, None
    values = A
    if instruction.sparse:
        A = warpsim.prune(A, instruction)
        values, indices = warpsim.compress(A, instruction)
        registers["e"] = warpsim.pack_metadata(instruction, indices)
    for name, matrix in (("a", values), ("b", B), ("c", C)):
        registers[name] = warpsim.pack(instruction, name, matrix)
    return One(form=form, A=A, B=B, C=C, registers=registers, indices=indices)
