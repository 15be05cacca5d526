"""Cases of the whole program: threads, warpgroups, trace text, start-up, and no compiler."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import warpsim
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.ptx.binding import bind
from warpsim.ptx.decode import bind_statement
from warpsim.ptx.parser import parse

from .measure import Result, best

ROOT = Path(__file__).parent.parent.parent
_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_WGMMA = "wgmma.mma_async.sp.sync.aligned.m64n256k32.f32.f16.f16"


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A case that measures itself: seconds and the figure of the goal."""

    name: str
    unit: str
    goal: float | None
    measure: Callable[[int], tuple[float, float]]

    def run(self, repeat: int) -> Result:
        """Measure it."""
        seconds, figure = self.measure(repeat)
        return Result(name=self.name, seconds=seconds, figure=figure, unit=self.unit, goal=self.goal)


def _threads(repeat: int) -> tuple[float, float]:
    form, rng = warpsim.decode(_F16, target="sm_90a"), np.random.default_rng(1)
    a, b = (rng.standard_normal((2048, 2048)).astype(np.float16) for _ in "ab")
    clock = time.perf_counter
    one, two = (best(lambda n=n: warpsim.gemm(form, a, b, threads=n), repeat, clock) for n in (1, 2))
    return two, one / two


def _packing(repeat: int) -> tuple[float, float]:
    """Time the decoding of both operands, as a share of the product."""
    from warpsim.sums.arithmetic.panels import Problem, decoded_a, decoded_b
    from warpsim.sums.arithmetic.plans import plan_of
    from warpsim.sums.execution.pipeline import rule_for

    form, rng = warpsim.decode(_F16, target="sm_90a"), np.random.default_rng(1)
    a, b = (rng.standard_normal((1024, 1024)).astype(np.float16) for _ in "ab")
    plan, out = plan_of(form.product, rule_for(form)), np.zeros((1024, 1024), np.float32)
    codes = a.view(np.uint16), b.view(np.uint16)
    problem = Problem(plan=plan, a=codes[0], b=codes[1], out=out, bounds=np.array([0, plan.passes(64)]))
    width = plan.variant.stride

    def decode() -> None:
        decoded_a(problem, 0, 1024)
        for first in range(0, 1024, width):
            decoded_b(problem, first, width, width)

    share = best(decode, repeat)
    return share, 100 * share / best(lambda: warpsim.gemm(form, a, b, threads=1), repeat)


def _warpgroups(repeat: int) -> tuple[float, float]:
    """Return products a second of wgmma from registers and shared memory, relative to the sparse whole
    product.
    """
    form, rng, count = warpsim.decode(_WGMMA, target="sm_90a"), np.random.default_rng(1), 64
    A = warpsim.prune(rng.standard_normal((count, 64, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(A, form)
    operands = {
        "a": warpsim.pack(form, "a", values),
        "e": warpsim.pack_metadata(form, indices),
        "c": warpsim.pack(form, "c", rng.standard_normal((count, 64, 256)).astype(np.float32)),
        "shared": rng.standard_normal((count, 8192)).astype(np.float16).view(np.uint8),
        "b_desc": canonical_descriptor(0, form.in_shared_memory("b").shape(), swizzle="none").encode(),
    }
    seconds = best(lambda: warpsim.execute(form, threads=1, **operands), repeat)
    sparse = warpsim.decode(_SPARSE, target="sm_90a")
    left = warpsim.compress(
        warpsim.prune(rng.standard_normal((1024, 1024)).astype(np.float16), sparse), sparse
    )
    right = rng.standard_normal((1024, 1024)).astype(np.float16)
    whole = best(lambda: warpsim.gemm_sparse(sparse, *left, right, threads=1), repeat)
    return seconds, (count * 64 * 256 * 32 / seconds) / (1024**3 / whole)


def _text(lines: int, names: int) -> str:
    """Return lines of mma.sp whose registers come round after so many."""

    def vector(stem: str, count: int, i: int) -> str:
        return "{" + ", ".join(f"%{stem}{(i * count + j) % names}" for j in range(count)) + "}"

    return "\n".join(
        f"{_SPARSE} {vector('f', 4, i)}, {vector('r', 4, i)}, {vector('q', 4, i)}, {vector('f', 4, i)}, "
        f"%r{i % names}, 0x0;"
        for i in range(lines)
    )


def _parsing(repeat: int) -> tuple[float, float]:
    text = _text(50_000, 256)
    seconds = best(lambda: parse(text), repeat)
    return seconds, 50 / seconds


def _binding(repeat: int) -> tuple[float, float]:
    """Time parsing, and checking every operand of every statement against its form."""
    text = _text(20_000, 256)

    def check() -> None:
        for statement in parse(text).statements:
            bind_statement(statement, "sm_90a", (9, 0), None, bind)  # type: ignore[arg-type]

    seconds = best(check, repeat)
    return seconds, 20 / seconds


def _command(*arguments: str) -> Callable[[int], tuple[float, float]]:
    def measure(repeat: int) -> tuple[float, float]:
        command = [sys.executable, "-m", "warpsim", *arguments]
        seconds = best(
            lambda: subprocess.run(command, check=True, capture_output=True, cwd=ROOT),
            repeat,
            time.perf_counter,
        )
        return seconds, seconds

    return measure


def _fresh(*arguments: str) -> Callable[[int], tuple[float, float]]:
    """Processor time of a command that finds no compiled kernels."""

    def measure(repeat: int) -> tuple[float, float]:
        command = [sys.executable, "-m", "warpsim", *arguments]
        times = []
        for _ in range(min(repeat, 3)):
            with tempfile.TemporaryDirectory() as folder:
                before = _of_children()
                environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
                subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)
                times.append(_of_children() - before)
        return min(times), min(times)

    return measure


def _of_children() -> float:
    """Return seconds that the processors have spent on processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


_WITHOUT = """
import time, numpy as np, warpsim
form = warpsim.decode({mnemonic!r}, target="sm_90a")
a, b = (np.random.default_rng(i).standard_normal((512, 512)).astype(np.float16) for i in (1, 2))
times = []
for _ in range({repeat}):
    start = time.thread_time()
    warpsim.gemm(form, a, b, threads=1)
    times.append(time.thread_time() - start)
print(min(times))
"""


def _without_jit(repeat: int) -> tuple[float, float]:
    script = _WITHOUT.format(mnemonic=_F16, repeat=min(repeat, 3))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT)
    seconds = float(done.stdout)
    return seconds, 512**3 / seconds / 1e9


def whole_cases() -> Iterator[Whole]:
    """Yield every case, with its goal; those of commands are the shorter the better."""
    trace = "traces/mma_sp_m16n8k32_f16.ptx"
    yield Whole(name="two threads, 2048 cubed", unit="x one", goal=1.8, measure=_threads)
    yield Whole(name="decoding A and B", unit="% of product", goal=5.0, measure=_packing)
    yield Whole(name="wgmma.sp m64n256k32 f16, 64 at once", unit="x product", goal=0.6, measure=_warpgroups)
    yield Whole(name="trace text, mma.sp lines", unit="k lines/s", goal=150.0, measure=_parsing)
    yield Whole(name="trace text, operands checked", unit="k lines/s", goal=None, measure=_binding)
    yield Whole(name="warpsim --help", unit="s", goal=0.25, measure=_command("--help"))
    yield Whole(name="warpsim run, warm cache", unit="s", goal=0.7, measure=_command("run", trace))
    every = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "traces").glob("*.ptx"))]
    cold = "warpsim run, nothing compiled yet (processor)"
    yield Whole(name=cold, unit="s", goal=3.0, measure=_fresh("run", trace))
    yield Whole(name="and all traces (processor)", unit="s", goal=20.0, measure=_fresh("run", *every))
    yield Whole(name="without JIT, f16", unit="G products/s", goal=0.2, measure=_without_jit)
