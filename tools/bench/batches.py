"""Cases of many instructions executed from registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.instruction import Instruction
from warpsim.sums.execution.compilation_budget import PROCESS

from .measure import Result, best

_MANY = 4096


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Executions of one instruction: ``count`` at once, timed by the instruction."""

    name: str
    mnemonic: str
    target: str
    count: int
    goal: float | None
    data: str = "clean"

    def run(self, repeat: int) -> Result:
        """Time kernels: NumPy has computed what it computes before they are loaded."""
        PROCESS.compiled.add(warpsim.decode(self.mnemonic, target=self.target).product)
        function = _execution(warpsim.decode(self.mnemonic, target=self.target), self.count, self.data)
        calls = max(1, 1000 // self.count)
        seconds = best(lambda: _repeated(function, calls), repeat) / calls
        if self.count == 1:
            return Result(name=self.name, seconds=seconds, figure=seconds * 1e6, unit="us", goal=self.goal)
        figure = self.count / seconds / 1e6
        return Result(name=self.name, seconds=seconds, figure=figure, unit="M a second", goal=self.goal)


def _repeated(function: Callable[[], Any], calls: int) -> None:
    for _ in range(calls):
        function()


def _execution(form: Instruction, count: int, data: str) -> Callable[[], Any]:
    rng = np.random.default_rng(1)
    words = {}
    for operand in "abc":
        if data == "random bits":
            size = (count, form.lanes, form.registers[operand])
            words[operand] = rng.integers(0, 1 << 32, size, np.uint32)
            continue
        matrix = rng.standard_normal((count, *form.matrix_shape(operand)))
        if data == "subnormals":
            matrix *= 2.0 ** form.format(operand).minimum_exponent
        words[operand] = warpsim.pack(form, operand, matrix.astype(form.format(operand).dtype))
    if form.pattern is not None:
        shape = (count, form.shape.m, form.shape.k // form.pattern.chunk, form.pattern.choices)
        units = np.sort(np.argsort(rng.random(shape))[..., : form.pattern.kept]).astype(np.uint8)
        words["e"] = warpsim.pack_metadata(form, units.reshape(*shape[:2], -1))
    if count == 1:  # as a program calls it for one warp
        alone = {operand: registers[0] for operand, registers in words.items()}
        return lambda: warpsim.execute(form, **alone)
    return lambda: warpsim.execute(form, **words, threads=1)


_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k{}.row.col.f32.{}.{}.f32"
_DENSE = "mma.sync.aligned.m16n8k{}.row.col.f32.{}.{}.f32"


def batch_cases() -> Iterator[Batch]:
    """Yield every case, with its goal: millions a second, or microseconds for one."""
    f16 = ("f16", "f16")
    rows = (
        ("mma.sp m16n8k32 f16 (sm_90a)", _SPARSE.format(32, *f16), "sm_90a", 1.0),
        ("mma.sp m16n8k32 f16 (sm_80)", _SPARSE.format(32, *f16), "sm_80", 1.0),
        ("mma.sp m16n8k16 tf32 (sm_90a)", _SPARSE.format(16, "tf32", "tf32"), "sm_90a", None),
        ("mma.sp m16n8k64 e4m3 (sm_89)", _SPARSE.format(64, "e4m3", "e4m3"), "sm_89", None),
        ("mma m16n8k16 f16 (sm_90a)", _DENSE.format(16, *f16), "sm_90a", None),
        ("mma m16n8k16 bf16 (sm_80)", _DENSE.format(16, "bf16", "bf16"), "sm_80", None),
        ("mma m16n8k8 tf32 (sm_80)", _DENSE.format(8, "tf32", "tf32"), "sm_80", None),
        ("mma m16n8k32 e4m3 (sm_90a)", _DENSE.format(32, "e4m3", "e4m3"), "sm_90a", None),
    )
    for name, mnemonic, target, goal in rows:
        yield Batch(name=name, mnemonic=mnemonic, target=target, count=_MANY, goal=goal)
    name, mnemonic, target, _ = rows[0]
    for data, goal in (("subnormals", 0.8), ("random bits", 0.8)):
        yield Batch(
            name=f"{name}, {data}", mnemonic=mnemonic, target=target, count=_MANY, goal=goal, data=data
        )
    yield Batch(name=f"one {name}", mnemonic=mnemonic, target=target, count=1, goal=5.0)
