"""Arguments and results of the kernels of Triton and Numba in traces/kernels: what a launch takes and leaves.

Knows grids, arguments and expectations, which NumPy and ``warpsim.gemm`` compute; does not know how kernels
are compiled or executed. Everything is seeded.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim

FOLDER = Path(__file__).parents[2] / "traces" / "kernels"
Array = npt.NDArray[Any]
_HEADING = re.compile(r"// .* (sm_\w+), (\d+) threads, (\d+) bytes of shared memory\n")


@dataclass(frozen=True, kw_only=True)
class CompiledCase:
    """One launch: ``check`` takes the arguments afterwards; ``constants`` are tl.constexpr's."""

    compiler: str
    file: str
    entry: str
    grid: int | tuple[int, ...]
    arguments: Sequence[Any]
    check: Callable[[Sequence[Any]], None]
    constants: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    block: tuple[int, ...] = ()  # of Numba's
    target: str = "sm_80"
    ctas: int = 1  # of a program of Triton's
    scratch: int = 0  # bytes of global memory that each CTA of Triton's has
    warned: str = ""  # what the findings say, which are warnings

    @property
    def source(self) -> Path:
        """The Python file; the PTX text lies beside it."""
        return FOLDER / self.compiler / f"{self.file}.py"

    @property
    def text(self) -> str:
        """The committed PTX text."""
        return self.source.with_suffix(".ptx").read_text()

    def function(self) -> Any:
        """The function itself, of a file that needs its compiler."""
        specification = importlib.util.spec_from_file_location(f"{self.compiler}_{self.file}", self.source)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return getattr(module, self.entry)


def heading(text: str) -> tuple[str, int, int]:
    """Target, threads and bytes of shared memory, as the first line of a PTX text says."""
    match = _HEADING.match(text)
    assert match is not None
    return match[1], int(match[2]), int(match[3])


def _bits(expected: Array, place: int) -> Callable[[Sequence[Any]], None]:
    def check(given: Sequence[Any]) -> None:
        word = f"u{expected.dtype.itemsize}"
        np.testing.assert_array_equal(given[place].view(word), expected.view(word))

    return check


def _matmul() -> CompiledCase:
    """Any f16 numbers, and sizes that are no multiples of the tiles: the chain of one mma after the other."""
    rng = np.random.default_rng(1)
    m, n, k = 80, 72, 100
    a = (rng.normal(size=(m, k)) * 10.0 ** rng.integers(-3, 3, (m, k))).astype(np.float16)
    b = rng.normal(size=(k, n)).astype(np.float16)
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    padded = 128 - k  # Triton's tiles go on to 128 with zeros
    expected = warpsim.gemm(form, np.pad(a, ((0, 0), (0, padded))), np.pad(b, ((0, padded), (0, 0))))
    return CompiledCase(
        compiler="triton",
        file="matmul",
        entry="matmul",
        grid=(2, 2),
        arguments=(a, b, np.zeros((m, n), np.float32), m, n, k),
        check=_bits(np.asarray(expected), 2),
        constants={"TILE_M": 64, "TILE_N": 64, "TILE_K": 32},
        options={"num_stages": 3},
    )


def _softmax() -> CompiledCase:
    x = np.random.default_rng(2).normal(size=(6, 200)).astype(np.float32) * 4

    def check(given: Sequence[Any]) -> None:
        power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        expected = power / power.sum(1, keepdims=True)
        wrong = np.abs(given[1] / expected - 1)  # ex2.approx and div.full say 2 ulp each
        assert wrong.max() < 1e-5
        assert np.unique(given[1]).size > 1000

    return CompiledCase(
        compiler="triton",
        file="softmax",
        entry="softmax",
        grid=6,
        arguments=(x, np.zeros_like(x), 200),
        check=check,
        constants={"WIDTH": 256},
    )


def _queue() -> CompiledCase:
    values = np.random.default_rng(3).integers(-1000, 1000, (13, 128)).astype(np.int32)
    return CompiledCase(
        compiler="triton",
        file="queue",
        entry="locked_rows",
        grid=5,
        arguments=(values, np.zeros(128, np.int32), np.zeros(1, np.int32), 13),
        check=_bits(values.sum(0, dtype=np.int32), 1),
        constants={"WIDTH": 128},
    )


def _roles() -> CompiledCase:
    """As many tiles as programs, and more: the maps have edges inside of tiles."""
    rng = np.random.default_rng(6)
    m, n, k = 136, 200, 136
    a, b = (rng.normal(size=shape).astype(np.float16) for shape in ((m, k), (n, k)))
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", target="sm_90a")
    padded = ((0, 0), (0, 192 - k))  # Triton's tiles go on to 192 with zeros
    expected = np.asarray(warpsim.gemm(form, np.pad(a, padded), np.ascontiguousarray(np.pad(b, padded).T)))
    return CompiledCase(
        compiler="triton",
        file="roles",
        entry="roles",
        grid=5,
        arguments=(a, b, np.zeros((m, n), np.float16), m, n, k),
        check=_bits(expected.astype(np.float16), 2),
        constants={"TILE_M": 64, "TILE_N": 64, "TILE_K": 64, "PROGRAMS": 5},
        options={"num_stages": 2},
        target="sm_90a",
        scratch=512,
        warned="no registers move",
    )


def _clusters() -> CompiledCase:
    values = np.random.default_rng(7).integers(-(2**31), 2**31, (5, 900)).astype(np.int32)
    return CompiledCase(
        compiler="triton",
        file="clusters",
        entry="clusters",
        grid=5,
        arguments=(values, np.zeros(5, np.int32), 900),
        check=_bits(values.sum(1, dtype=np.int32), 1),
        constants={"WIDTH": 1024},
        options={"num_ctas": 2},
        target="sm_90a",
        ctas=2,
    )


def _axpy() -> CompiledCase:
    x, y = np.random.default_rng(4).normal(size=(2, 1000)).astype(np.float32)
    fused = (np.float64(np.float32(0.75)) * x + y).astype(np.float32)  # a * x is exact in f64
    return CompiledCase(
        compiler="numba",
        file="axpy",
        entry="axpy",
        grid=4,
        block=(256,),
        arguments=(np.zeros_like(x), np.float32(0.75), x, y),
        check=_bits(fused, 0),
    )


def _tiles() -> CompiledCase:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((50, 70), (70, 40)))
    return CompiledCase(
        compiler="numba",
        file="tiles",
        entry="tiles",
        grid=(3, 4),
        block=(16, 16),
        arguments=(a, b, np.zeros((50, 40), np.float32)),
        check=_bits(a @ b, 2),
    )


_MAKERS = {"triton": (_matmul, _softmax, _queue, _roles, _clusters), "numba": (_axpy, _tiles)}
BY_COMPILER = {compiler: {make.__name__[1:]: make for make in some} for compiler, some in _MAKERS.items()}
CASES = BY_COMPILER["triton"] | BY_COMPILER["numba"]
