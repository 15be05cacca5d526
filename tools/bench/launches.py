"""Whole kernels: ``python -m tools.bench.launches [--repeat 3] [--profile CASE]``.

Prints the seconds of a launch without checks, and the figure of a goal: a 512 x 512 x 512 2:4 product by
mma.sp, a dense one by wgmma, integer code of 32 warps in warp instructions, what matrix instructions cost
beside batched execution of the same number, how the time grows with CTAs; what statements cost that are
compiled in basic blocks beside those that are interpreted; and what other schedules cost, with checks and
without, and checks themselves. Wall-clock times, the best of several, all in one run: compare the ratios.
What is compiled, schedules and checks are measured in time of the processor, in turns.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import os
import pstats
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import warpsim
from tests.helpers import kernel_cases
from warpsim.machine.run.basic_blocks import HOT, STATEMENTS
from warpsim.machine.run.native_blocks import COLD
from warpsim.programs.launch.launching import LaunchableKernel, load_text

from .measure import Result, best

Key = tuple[str, str]  # how checks are set, and a schedule

_HEAD = ".version 9.0\n.target sm_80\n.address_size 64\n"
_STRAIGHT = 2000  # statements of straight integer code
_CHAIN = 500  # mma after mma
_SCHEDULES = ("program", "earliest", "latest", "random:1", "random:2")
_MIXED = ("add.s32 %r{0}, %r{1}, %r{2};", "xor.b32 %r{0}, %r{1}, %r{2};", "shl.b32 %r{0}, %r{1}, 3;")
_MORE = (
    "mad.lo.s32 %r{0}, %r{1}, %r{2}, %r{0};",
    "and.b32 %r{0}, %r{1}, 1023;",
    "sub.s32 %r{0}, %r{1}, %r{2};",
)
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
# A warp makes 16 x 8 of D = A B of a size, without shared memory; B is its columns one after the other.
_NAIVE = f"""{_HEAD}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d, .param .u32 size)
{{
.reg .b32 %r<32>; .reg .b64 %l<16>; .reg .f32 %f<4>; .reg .pred %p;
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; shr.u32 %r3, %r2, 2; and.b32 %r4, %r2, 3;
mov.u32 %r5, %ctaid.y; shl.b32 %r5, %r5, 6; mad.lo.u32 %r5, %r1, 16, %r5; add.u32 %r5, %r5, %r3;
mov.u32 %r6, %ctaid.x; shl.b32 %r6, %r6, 3; add.u32 %r7, %r6, %r3; shl.b32 %r8, %r4, 1;
ld.param.u64 %l0, [a]; ld.param.u64 %l1, [b]; ld.param.u64 %l2, [d]; ld.param.u32 %r9, [size];
mad.lo.u32 %r10, %r5, %r9, %r8; mul.wide.u32 %l3, %r10, 2; add.u64 %l4, %l0, %l3;
shl.b32 %r11, %r9, 4; cvt.u64.u32 %l5, %r11; add.u64 %l6, %l4, %l5;
mad.lo.u32 %r12, %r7, %r9, %r8; mul.wide.u32 %l7, %r12, 2; add.u64 %l8, %l1, %l7;
mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.u32 %r13, 0;
LOOP:
ld.global.b32 %r20, [%l4]; ld.global.b32 %r21, [%l6]; ld.global.b32 %r22, [%l4+16];
ld.global.b32 %r23, [%l6+16]; ld.global.b32 %r24, [%l8]; ld.global.b32 %r25, [%l8+16];
{_MMA} {{%f0, %f1, %f2, %f3}}, {{%r20, %r21, %r22, %r23}}, {{%r24, %r25}}, {{%f0, %f1, %f2, %f3}};
add.u64 %l4, %l4, 32; add.u64 %l6, %l6, 32; add.u64 %l8, %l8, 32; add.u32 %r13, %r13, 16;
setp.lt.u32 %p, %r13, %r9;
@%p bra LOOP;
add.u32 %r14, %r6, %r8; mad.lo.u32 %r15, %r5, %r9, %r14; mul.wide.u32 %l9, %r15, 4; add.u64 %l10, %l2, %l9;
shl.b32 %r16, %r9, 5; cvt.u64.u32 %l11, %r16; add.u64 %l12, %l10, %l11;
st.global.v2.f32 [%l10], {{%f0, %f1}}; st.global.v2.f32 [%l12], {{%f2, %f3}};
ret;
}}
"""


def _kernel(body: str, registers: str) -> LaunchableKernel:
    text = f"{_HEAD}.visible .entry k(.param .u64 out)\n{{\n{registers}\n{body}\nret;\n}}\n"
    return load_text(text)["k"]


def straight() -> LaunchableKernel:
    """Integer code without branches, 16 registers that all depend on the thread."""
    lines = [f"mov.u32 %r{item}, %tid.x;" for item in range(16)]
    patterns = (*_MIXED, *_MORE)
    for number in range(_STRAIGHT - 16):
        places = number % 16, (number * 5 + 1) % 16, (number * 7 + 3) % 16
        lines.append(patterns[number % len(patterns)].format(*places))
    return _kernel("\n".join(lines), ".reg .b32 %r<16>;")


def chain() -> LaunchableKernel:
    """One mma after another on the same registers."""
    lines = [f"mov.b32 %r{item}, 0x3c003800;" for item in range(6)]
    lines += [f"mov.f32 %f{item}, 0f00000000;" for item in range(4)]
    d = "{%f0, %f1, %f2, %f3}"
    lines += [f"{_MMA} {d}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {d};"] * _CHAIN
    return _kernel("\n".join(lines), ".reg .b32 %r<6>;\n.reg .f32 %f<4>;")


def _launch(kernel: LaunchableKernel, grid: int, block: int) -> Callable[[], object]:
    return lambda: kernel(grid, block, [None], checks="off")


def _product(
    name: str = kernel_cases.BENCHMARK, schedule: str = "program", checks: str = "off"
) -> Callable[[], object]:
    case = kernel_cases.case(name)
    kernel = load_text((kernel_cases.FOLDER / case.file).read_text())[case.entry]

    def run() -> None:
        given = [
            argument.copy() if isinstance(argument, np.ndarray) else argument for argument in case.arguments
        ]
        options: dict[str, Any] = {"schedule": schedule, "checks": checks, "cluster": case.cluster}
        kernel(case.grid, case.block, case.passed(given), case.shared_bytes, **options)

    return run


def naive(size: int, checks: str = "off") -> Callable[[], object]:
    """Return a launch of a dense product whose warps load A and B from global memory, word by word."""
    kernel = load_text(_NAIVE)["k"]
    rng = np.random.default_rng(size)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in "ab")
    d = np.zeros((size, size), np.float32)
    options: dict[str, Any] = {"checks": checks}
    return lambda: kernel((size // 8, size // 64), 128, [a, b, d, size], **options)


def _in_turns(runs: Mapping[Key, Callable[[], object]], repeat: int) -> dict[Key, float]:
    """Return the least time of the processor that each takes; they take turns, for other work may come and
    go.
    """
    times: dict[Key, float] = {}
    for _ in range(repeat + 1):
        for key, run in runs.items():
            start = time.process_time()
            run()
            times[key] = min(times.get(key, math.inf), time.process_time() - start)
    return times


def _schedules(repeat: int) -> Iterator[Result]:
    """Other schedules beside "program", and checks beside none."""
    for name in (kernel_cases.PIPELINE_BENCHMARK, kernel_cases.WARPGROUP_BENCHMARK):
        kernel, modes = name.partition(" ")[0], {"checks": "error", "no checks": "off"}
        keys = [(mode, schedule) for mode in modes for schedule in _SCHEDULES]
        runs = {(mode, schedule): _product(name, schedule, modes[mode]) for mode, schedule in keys}
        times = _in_turns(runs, repeat)
        program = times["checks", "program"]
        yield Result(name=f"{kernel} with checks", seconds=program, figure=program, unit="s", goal=5)
        ratio = program / times["no checks", "program"]
        yield Result(name=f"{kernel} checks", seconds=program, figure=ratio, unit="x no checks", goal=2)
        for mode, schedule in keys:
            ratio = times[mode, schedule] / times[mode, "program"]
            title = f"{kernel} {schedule}, {mode}"
            if schedule != "program":
                yield Result(
                    name=title, seconds=times[mode, schedule], figure=ratio, unit="x program", goal=2
                )


def _by(way: str, run: Callable[[], object]) -> Callable[[], None]:
    """Return a launch whose statements are "compiled" or "interpreted"."""

    def chosen() -> None:
        before = os.environ.get(STATEMENTS)
        os.environ[STATEMENTS] = way
        try:
            run()
        finally:
            del os.environ[STATEMENTS]
            os.environ |= {} if before is None else {STATEMENTS: before}

    return chosen


def _ways(repeat: int) -> Iterator[Result]:
    """Statements that are compiled beside those that are interpreted, and checks of a 2:4 product."""
    integers = straight()
    launches = {
        "integers": _launch(integers, 1, 1024),
        "2:4 product": _product(),
        "2:4 product with checks": _product(checks="error"),
    }
    for run in launches.values():
        for _ in range(HOT + 2 * COLD):  # until machine code is made, which the cache may lack
            run()
    keys = [(name, way) for name in launches for way in ("compiled", "interpreted")]
    times = _in_turns({(name, way): _by(way, launches[name]) for name, way in keys}, repeat)
    for name in launches:
        seconds = times[name, "compiled"]
        ratio = seconds / times[name, "interpreted"]
        yield Result(name=f"{name}, compiled", seconds=seconds, figure=ratio, unit="x interpreted", goal=1)
    rate = 32 * _STRAIGHT / (seconds := times["integers", "compiled"]) / 1e6
    yield Result(name="integers, compiled", seconds=seconds, figure=rate, unit="M a second", goal=30)
    seconds = times["2:4 product with checks", "compiled"]
    ratio = seconds / times["2:4 product", "compiled"]
    yield Result(name="2:4 product checks", seconds=seconds, figure=ratio, unit="x no checks", goal=1.4)


def _batched(warps: int) -> Callable[[], object]:
    """Return the mma of the chain for so many warps, by one call of execute each."""
    form: Any = warpsim.decode(_MMA, target="sm_80")
    a, b = (np.full((warps, 32, count), 0x3C003800, np.uint32) for count in (4, 2))

    def run() -> None:
        c = np.zeros((warps, 32, 4), np.uint32)
        for _ in range(_CHAIN):
            c = warpsim.execute(form, a=a, b=b, c=c)

    return run


def cases(repeat: int) -> list[Result]:
    """Return every measurement."""

    def seconds(function: Callable[[], object]) -> float:
        return best(function, repeat, time.perf_counter)

    product, wgmma = seconds(_product()), seconds(_product(kernel_cases.WARPGROUP_BENCHMARK))
    integers, matrices = straight(), chain()
    warp_rate = 32 * _STRAIGHT / (whole := seconds(_launch(integers, 1, 1024))) / 1e6
    few = 32 * _STRAIGHT / (many_ctas := seconds(_launch(integers, 32, 32))) / 1e6
    launched, batched = seconds(_launch(matrices, 4, 256)), seconds(_batched(32))
    plain, checked = seconds(naive(512)), seconds(naive(512, "error"))
    large, large_checked = seconds(naive(1024)), seconds(naive(1024, "error"))
    one, eight = seconds(_launch(integers, 32, 256)), seconds(_launch(integers, 256, 256))
    return [
        Result(name="f16 2:4 product of 512", seconds=product, figure=product, unit="s", goal=0.03),
        Result(name="f16 product of 512 by wgmma", seconds=wgmma, figure=wgmma, unit="s", goal=5),
        Result(name="naive f16 product of 512", seconds=plain, figure=plain, unit="s", goal=0.05),
        Result(name="the same with checks", seconds=checked, figure=checked, unit="s", goal=0.08),
        Result(name="naive f16 product of 1,024", seconds=large, figure=large, unit="s", goal=1),
        Result(name="with checks", seconds=large_checked, figure=large_checked, unit="s", goal=1.4),
        Result(
            name="integers, 1 CTA of 32 warps", seconds=whole, figure=warp_rate, unit="M a second", goal=2
        ),
        Result(name="integers, 32 CTAs of 1 warp", seconds=many_ctas, figure=few, unit="M a second", goal=2),
        Result(
            name="mma of 32 warps", seconds=launched, figure=batched / launched, unit="x batched", goal=0.5
        ),
        Result(name="8 times the CTAs", seconds=eight, figure=eight / one / 8, unit="x linear", goal=1.1),
        *_ways(repeat),
        *_schedules(repeat),
    ]


def main() -> int:
    """Print the table, or the profile of one case."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.launches", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--profile", choices=("product", "integers", "mma"))
    given = parser.parse_args()
    if given.profile:
        made = {"product": _product, "integers": lambda: _launch(straight(), 1, 1024)}
        run = made.get(given.profile, lambda: _launch(chain(), 4, 256))()
        run()
        profile = cProfile.Profile()
        profile.runcall(run)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return 0
    for case in cases(given.repeat):
        print(
            f"{case.name:40} {case.seconds * 1e3:10.1f} ms {case.figure:8.2f} {case.unit:13} [{case.goal:g}]"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
