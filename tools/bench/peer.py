"""The same dot products in PyPI's ``mmasim`` 2.1.1, where it is installed (``pip install '.[bench]'``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim

from .measure import Result, best

Matrix = npt.NDArray[Any]
_MNEMONIC = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_DOTS = 1024  # at which its batches are fastest


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Time of a product in mmasim divided by ours, ours in a whole product of 1024 cubed."""

    name: str
    target: str
    architecture: str  # mmasim's word for the target
    batched: bool  # many dot products a call, or one instruction, as its users call it
    goal: float | None

    def run(self, repeat: int) -> Result:
        """Time both, one thread each."""
        form, size = warpsim.decode(_MNEMONIC, target=self.target), 1024
        rng = np.random.default_rng(1)
        A, B = (rng.standard_normal((size, size)).astype(np.float16) for _ in "AB")
        theirs = self._theirs(A[:_DOTS, :16], B[:_DOTS, :16], repeat)
        ours = best(lambda: warpsim.gemm(form, A, B, threads=1), repeat) / size**3
        seconds = theirs * size**3
        return Result(name=self.name, seconds=seconds, figure=theirs / ours, unit="x faster", goal=self.goal)

    def _theirs(self, a: Matrix, b: Matrix, repeat: int) -> float:
        """Seconds of one of its products."""
        import torch
        from mmasim.nv_ptx import MMA

        torch.set_num_threads(1)
        peer = MMA(self.architecture, "m16n8k16.f32.f16.f16.f32")
        left, right = torch.from_numpy(a.copy()), torch.from_numpy(b.copy())
        if self.batched:
            zero = torch.zeros(_DOTS)
            return best(lambda: peer.dpa(left, right, zero), 3 * repeat) / left.numel()
        tile = left[:16], right[:8].T.contiguous(), torch.zeros(16, 8)
        return best(lambda: peer(*tile), 10 * repeat) / (16 * 8 * 16)


def peer_cases() -> Iterator[Peer]:
    """Every case, where the package is there."""
    if find_spec("mmasim") is None:
        return
    for target, architecture in (("sm_90a", "Hopper"), ("sm_80", "Ampere")):
        yield Peer(
            name=f"than mmasim 2.1.1, an instruction a call ({target})",
            target=target,
            architecture=architecture,
            batched=False,
            goal=2000.0,
        )
        yield Peer(
            name=f"than mmasim 2.1.1, its fastest batches ({target})",
            target=target,
            architecture=architecture,
            batched=True,
            goal=None,
        )
