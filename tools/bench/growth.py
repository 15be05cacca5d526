"""What grows with the size of a program: ``python -m tools.bench.growth [--only TEXT] [--most N]``.

Prints a Markdown table with a row for each kind of program. A row has microseconds of the processor and bytes
of memory for each unit (a loop of the host program, a statement, a CTA, a lane) at several sizes. Where they
rise along the row, a cost is superlinear. Each size is a process of its own, short programs the least of
three; what the smallest program takes is subtracted. ``--most`` leaves out larger sizes.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry kernel(.param .u64 place)\n"
_REGISTERS = "{ .reg .b64 %d<3>; .reg .b32 %r<10>; ld.param.u64 %d0, [place]; mov.u32 %r1, %ctaid.x;\n"
_OWN_WORD = (
    "mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r3, %r1, %r3, %r2; mul.wide.u32 %d1, %r3, 4;\n"
    "add.u64 %d1, %d1, %d0;\n"
)
_CALLS, _STATEMENTS, _CTAS, _LANES = (
    (250, 2_000, 20_000),
    (12_500, 50_000, 200_000, 400_000),
    (15_625, 125_000, 1_000_000),
    (9_600, 76_800, 614_400),
)

_SHORT = 15_625  # units of a program whose time is that of its start


# --- host programs ---------------------------------------------------------------------------------------


class _Host:
    """A host program of the CUDA runtime, under ``warpsim exec``: two streams, an event, 16 MiB."""

    def __init__(self) -> None:
        self.runtime = ctypes.CDLL("libcudart.so.13")
        self.memory, self.first, self.second, self.event = (ctypes.c_void_p() for _ in range(4))
        self.call("cudaMalloc", ctypes.byref(self.memory), ctypes.c_size_t(16 << 20))
        for stream in (self.first, self.second):
            self.call("cudaStreamCreate", ctypes.byref(stream))
        self.call("cudaEventCreateWithFlags", ctypes.byref(self.event), 2)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.runtime, name)(*arguments)
        assert not code, f"{name} returns {code}"

    def fill(self, stream: ctypes.c_void_p, place: int = 0) -> None:
        """Fill 256 bytes."""
        target = ctypes.c_void_p((self.memory.value or 0) + 256 * place)
        self.call("cudaMemsetAsync", target, 1, ctypes.c_size_t(256), stream)

    def hand_over(self, of: ctypes.c_void_p, to: ctypes.c_void_p) -> None:
        """Let a stream wait for another."""
        self.call("cudaEventRecord", self.event, of)
        self.call("cudaStreamWaitEvent", to, self.event, 0)


def _streams(host: _Host, turn: int) -> None:
    stream = ctypes.c_void_p()
    host.call("cudaStreamCreate", ctypes.byref(stream))
    host.fill(stream, turn)
    host.call("cudaStreamDestroy", stream)


def _racing_streams(host: _Host, turn: int) -> None:
    stream = ctypes.c_void_p()
    host.call("cudaStreamCreate", ctypes.byref(stream))
    host.fill(stream)
    host.call("cudaStreamDestroy", stream)


def _chained_streams(host: _Host, turn: int) -> None:
    stream = ctypes.c_void_p()
    host.call("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
    host.call("cudaStreamWaitEvent", stream, host.event, 0)
    host.fill(stream)
    host.call("cudaEventRecord", host.event, stream)
    host.call("cudaStreamDestroy", stream)


def _one_stream(host: _Host, turn: int) -> None:
    host.fill(host.first, turn)


def _events(host: _Host, turn: int) -> None:
    for of, to in ((host.first, host.second), (host.second, host.first)):
        host.fill(of)
        host.hand_over(of, to)


def _synchronised(host: _Host, turn: int) -> None:
    host.fill(host.first, turn)
    host.call("cudaStreamSynchronize", host.first)


# --- launches --------------------------------------------------------------------------------------------


def _launch(body: str, ctas: int, threads: int, words: int) -> None:
    import numpy as np

    import warpsim

    kernel = warpsim.load(f"{_HEAD}{_REGISTERS}{body} ret; }}")["kernel"]
    kernel(ctas, threads, [np.zeros(words, np.uint32)])


def _straight(count: int) -> None:
    """Launch a warp that executes so many statements, none of them twice."""
    lines = (f"add.u32 %r{4 + place % 6}, %r{4 + (place + 1) % 6}, {place % 1000};" for place in range(count))
    start = "".join(f"mov.u32 %r{place}, %r1;" for place in range(4, 10))
    _launch(f"{_OWN_WORD}{start}\n" + "\n".join(lines) + "\nst.global.u32 [%d1], %r4;", 1, 32, 32)


def _ctas(count: int) -> None:
    """Launch CTAs of a warp that change a word each."""
    body = f"{_OWN_WORD} ld.global.u32 %r4, [%d1]; add.u32 %r4, %r4, %r1; st.global.u32 [%d1], %r4;"
    _launch(body, max(count, 1), 32, 32 * max(count, 1))


def _one_address(statement: str) -> Callable[[int], None]:
    """Return the launch of lanes that change one word."""
    return lambda count: _launch(f"{_OWN_WORD} {statement}", max(count // 256, 1), 256, 32)


# --- measuring -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kind of program: a loop of a host program, or a launch of a size."""

    name: str
    sizes: tuple[int, ...]
    loop: Callable[[_Host, int], None] | None = None
    launch: Callable[[int], None] | None = None

    def run(self, size: int) -> None:
        """Do it here."""
        if self.launch is not None:
            self.launch(size)
        if self.loop is not None:
            host = _Host()
            for turn in range(size):
                self.loop(host, turn)


# fmt: off
CASES = (
    Case(name="stream create, memset of other bytes, destroy", sizes=_CALLS, loop=_streams),
    Case(name="stream create, memset of the same bytes, destroy: races", sizes=_CALLS, loop=_racing_streams),
    Case(name="stream create, wait for the one before, memset, destroy", sizes=_CALLS, loop=_chained_streams),
    Case(name="one stream, memset of other bytes", sizes=_CALLS, loop=_one_stream),
    Case(name="two streams, memset of the same bytes in turns, by events", sizes=_CALLS, loop=_events),
    Case(name="one stream, memset, synchronise", sizes=_CALLS, loop=_synchronised),
    Case(name="statements of a warp, each executed once", sizes=_STATEMENTS, launch=_straight),
    Case(name="CTAs of a warp, 128 bytes of an array each", sizes=_CTAS, launch=_ctas),
    Case(name="lanes, atom.add on one address", sizes=_LANES,
         launch=_one_address("atom.global.add.u32 %r4, [%d0], 1;")),
    Case(name="lanes, atom.exch on one address", sizes=_LANES,
         launch=_one_address("atom.global.exch.b32 %r4, [%d0], %r3;")),
    Case(name="lanes, atom.cas on one address", sizes=_LANES,
         launch=_one_address("add.u32 %r5, %r3, 1; atom.global.cas.b32 %r4, [%d0], %r3, %r5;")),
)
# fmt: on


def measured(case: Case, size: int) -> tuple[float, int]:
    """Return seconds of the processor, and bytes at most of a process, of a program of a size."""
    command = [sys.executable, "-m", "tools.bench.growth", "--run", case.name, str(size)]
    if case.loop is not None:
        command = [sys.executable, "-m", "warpsim", "exec", "--quiet", *command]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{case.name}, size {size}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def least(case: Case, size: int) -> tuple[float, int]:
    """Return seconds and bytes as measured does: of a program of a few seconds the least of three."""
    seconds, memory = zip(*(measured(case, size) for _ in range(3 if size <= _SHORT else 1)), strict=True)
    return min(seconds), min(memory)


def row(case: Case, most: int) -> str:
    """Return the row of a case: time and memory of a unit at each size."""
    seconds, memory = least(case, 0)
    figures = []
    for size in (size for size in case.sizes if size <= most):
        spent, kept = least(case, size)
        each = max(spent - seconds, 0) / size * 1e6
        figures.append(f"{size:,}: {each:,.3g} us, {max(kept - memory, 0) / size:,.0f} B")
    return f"| {case.name} | {' | '.join(figures + [''] * (4 - len(figures)))} |"


def main() -> int:
    """Print the table, or run one program."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.growth", description=__doc__)
    parser.add_argument("--only", default="", help="the cases whose name contains this")
    parser.add_argument("--most", type=int, default=1 << 40, help="the largest size")
    parser.add_argument("--run", nargs=2, metavar=("NAME", "SIZE"), help="run one program here")
    options = parser.parse_args()
    if options.run:
        name, size = options.run
        next(case for case in CASES if case.name == name).run(int(size))
        return 0
    print("| each | size: time, memory | | | |\n|---|---|---|---|---|")
    for case in CASES:
        if options.only in case.name:
            print(row(case, options.most), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
