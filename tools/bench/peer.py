"""The same dot products in PyPI's ``mmasim`` 2.1.1, where it is installed (``pip install '.[bench]'``).

Before anything is timed, the outputs of both are compared bit by bit. It has no sparse forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim
from warpsim.isa.instruction import Instruction

from .measure import Result, best

Matrix = npt.NDArray[Any]
_DOTS = (1024, 4096)  # of a call, at one of which its batches are fastest
_SIZE = 1024  # of the products that our time is taken from
_BATCH = 4096  # instructions that execute takes at once


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A form that both have: what is timed, on the same operands."""

    qualifiers: str  # as mmasim spells them
    target: str
    architecture: str  # mmasim's word for the target

    @cached_property
    def form(self) -> Instruction:
        """The instruction here."""
        shape, _, types = self.qualifiers.partition(".")
        return warpsim.decode(f"mma.sync.aligned.{shape}.row.col.{types}", target=self.target)

    @cached_property
    def peer(self) -> Any:
        """The instruction there, on one thread."""
        import torch
        from mmasim.nv_ptx import MMA

        torch.set_num_threads(1)
        return MMA(self.architecture, self.qualifiers)

    def random(self, operand: str, *shape: int) -> Matrix:
        """Return normally distributed numbers of an operand's type."""
        rng = np.random.default_rng(ord(operand))
        dtype: Any = self.form.format(operand).dtype
        if self.form.format(operand).name == "tf32":
            return (rng.standard_normal(shape, np.float32).view(np.uint32) & 0xFFFFE000).view(np.float32)
        return rng.standard_normal(shape).astype(dtype)

    def dots(self, count: int) -> tuple[Matrix, Matrix, Matrix]:
        """Return factors (count, k) and (count, k), and C (count,)."""
        k = self.form.shape.k
        return self.random("a", count, k), self.random("b", count, k), self.random("c", count)

    # Seconds of one product, each way.

    def by_call(self, repeat: int) -> float:
        """One of its instructions a call, as its users call it."""
        m, n, k = self.form.shape.m, self.form.shape.n, self.form.shape.k
        shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
        tile = [_tensor(self.random(name, *shape)) for name, shape in shapes.items()]
        return best(lambda: self.peer(*tile), 10 * repeat) / (m * n * k)

    def by_dots(self, repeat: int) -> float:
        """Return its fastest batch of dot products."""
        times = []
        for count in _DOTS:
            operands = [_tensor(x) for x in self.dots(count)]
            times.append(best(lambda: self.peer.dpa(*operands), 3 * repeat) / operands[0].numel())  # noqa: B023
        return min(times)

    def by_product(self, repeat: int) -> float:
        """Return ours, in a whole product."""
        A, B = self.random("a", _SIZE, _SIZE), self.random("b", _SIZE, _SIZE)
        return best(lambda: warpsim.gemm(self.form, A, B, threads=1), repeat) / _SIZE**3

    def by_execute(self, repeat: int) -> float:
        """Return ours, in a batch of instructions, from registers to registers."""
        shape, words = self.form.shape, {}
        for name in "abc":
            matrix = self.random(name, _BATCH, *self.form.matrix_shape(name))
            words[name] = warpsim.pack(self.form, name, matrix)
        seconds = best(lambda: warpsim.execute(self.form, **words, threads=1), repeat)
        return seconds / (_BATCH * shape.m * shape.n * shape.k)

    def check(self) -> None:
        """Raise AssertionError unless the bits are the same on both sides."""
        shape = self.form.shape
        tiles = _DOTS[0] // (shape.m * shape.n)
        A, B, C = (self.random(name, tiles, *self.form.matrix_shape(name)) for name in "abc")
        ours = warpsim.matmul(self.form, A, B, C, threads=1)
        left = np.repeat(A, shape.n, axis=1).reshape(-1, shape.k)
        right = np.tile(B.swapaxes(1, 2), (1, shape.m, 1)).reshape(-1, shape.k)
        theirs = self.peer.dpa(_tensor(left), _tensor(right), _tensor(C.reshape(-1))).numpy()
        if not np.array_equal(_bits(theirs), _bits(ours.reshape(-1))):
            raise AssertionError(f"{self.qualifiers} on {self.target}: mmasim has other bits")


def _bits(matrix: Matrix) -> Matrix:
    return matrix.view(f"u{matrix.dtype.itemsize}")


def _tensor(matrix: Matrix) -> Any:
    """PyTorch's tensor of the same elements, types of ml_dtypes among them."""
    import torch

    matrix = np.ascontiguousarray(matrix)
    if matrix.dtype.kind != "V":
        return torch.from_numpy(matrix)
    kind = {"bfloat16": torch.bfloat16}.get(matrix.dtype.name) or getattr(torch, matrix.dtype.name)
    return torch.from_numpy(matrix.view(f"i{matrix.dtype.itemsize}")).view(kind)


Way = Callable[[Subject, int], float]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Time of a product in mmasim divided by ours."""

    name: str
    subject: Subject
    theirs: Way
    ours: Way
    goal: float | None

    def run(self, repeat: int) -> Result:
        """Compare bits, then time both, one thread each."""
        self.subject.check()
        theirs, ours = self.theirs(self.subject, repeat), self.ours(self.subject, repeat)
        seconds = theirs * _SIZE**3
        return Result(name=self.name, seconds=seconds, figure=theirs / ours, unit="x faster", goal=self.goal)


_SUBJECTS = (
    ("f16", "m16n8k16.f32.f16.f16.f32", "sm_90a", "Hopper"),
    ("f16", "m16n8k16.f32.f16.f16.f32", "sm_80", "Ampere"),
    ("bf16", "m16n8k16.f32.bf16.bf16.f32", "sm_90a", "Hopper"),
    ("tf32", "m16n8k8.f32.tf32.tf32.f32", "sm_90a", "Hopper"),
    ("f16 to f16", "m16n8k16.f16.f16.f16.f16", "sm_80", "Ampere"),
    ("e4m3", "m16n8k32.f32.e4m3.e4m3.f32", "sm_89", "Ada Lovelace"),
    ("e4m3", "m16n8k32.f32.e4m3.e4m3.f32", "sm_120a", "RTX Blackwell"),
    ("f64", "m16n8k16.f64.f64.f64.f64", "sm_90a", "Hopper"),
)


def peer_cases() -> Iterator[Peer]:
    """Yield every case, where the package is there."""
    if find_spec("mmasim") is None:
        return
    first = "than mmasim 2.1.1, "
    for kind, qualifiers, target, architecture in _SUBJECTS:
        subject = Subject(qualifiers=qualifiers, target=target, architecture=architecture)
        what = f"{kind} ({target})"
        batches = {"name": f"{first}its fastest batches: {what}", "theirs": Subject.by_dots, "goal": None}
        if kind == "f16":
            yield Peer(
                name=f"{first}an instruction a call: {what}",
                subject=subject,
                theirs=Subject.by_call,
                ours=Subject.by_product,
                goal=2000.0,
            )
        yield Peer(subject=subject, ours=Subject.by_product, **batches)  # type: ignore[arg-type]
        if kind != "f64":  # whose batches are products
            batches["name"] = f"{first}its fastest batches: {what}, by execute"
            yield Peer(subject=subject, ours=Subject.by_execute, **batches)  # type: ignore[arg-type]
