"""Statements one by one on machines: ``python -m tools.bench.statements [--repeat 7]``.

Prints microseconds of one statement that has run before, as in a loop, or of one whole trace of 16 wgmma; the
second column counts how often that reads text of an instruction again. Times are the best of several, thread
CPU time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.programs.interactive.machines import Machine, Warp, Warpgroup
from warpsim.ptx import statements
from warpsim.ptx.parser import parse
from warpsim.workbench.traces.reading import Trace, read_trace
from warpsim.workbench.traces.running import run_trace

from .measure import best

_MMA = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    " {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3};"
)
_WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
_ACCUMULATOR = ", ".join(f"%d{i}" for i in range(32))
_MULTIPLY = f"{_WGMMA} {{{_ACCUMULATOR}}}, %a, %b, 1, 1, 1, 0, 0;"
_BYTES = 16384
_CALLS = 20


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is run again and again, as it is now and as it should be: microseconds."""

    name: str
    goal: float
    run: Callable[[], object]
    calls: int = _CALLS

    def line(self, repeat: int) -> str:
        """Return the case, measured."""
        seconds = best(self.repeated, repeat) / self.calls
        return f"{self.name:36} {seconds * 1e6:10.1f} us  {readings(self.run):5} readings  [{self.goal:g}]"

    def repeated(self) -> None:
        """Run the calls that are timed together."""
        for _ in range(self.calls):
            self.run()


def readings(run: Callable[[], object]) -> int:
    """Return how often the text of an instruction is read while something runs."""
    read, count = statements.read_instruction, 0

    def counted(*arguments: object) -> object:
        nonlocal count
        count += 1
        return read(*arguments)  # type: ignore[arg-type]

    statements.read_instruction = counted  # type: ignore[assignment]
    try:
        run()
    finally:
        statements.read_instruction = read
    return count


def _again(machine: Machine, text: str, file: str = "bench") -> Callable[[], object]:
    """Return runs the statements of a text, which is read once."""
    program = parse(text, file).statements
    return lambda: [*machine.steps(program)]


def _with_registers(machine: Machine) -> Machine:
    """Return a machine with the operands of an mma, and one more."""
    for name in ("a<4>", "b<2>", "c<4>", "%r"):
        machine[name] = np.uint32(0x3C003C00)
    machine["%z"] = 4 * np.arange(machine.lanes)
    return machine


def _descriptors() -> dict[str, int]:
    places = {"%a": (0, 64), "%b": (8192, 64)}
    return {
        name: int(
            canonical_descriptor(
                at, TileShape(mn=mn, k=16, element_bits=16, major="K"), swizzle="none"
            ).encode()
        )
        for name, (at, mn) in places.items()
    }


def _multiplying() -> Callable[[], object]:
    machine = Warpgroup(shared_bytes=232448)
    machine.shared.data.view(np.uint16)[:_BYTES] = 0x3C00
    for name, word in _descriptors().items():
        machine[name] = np.uint64(word)
    machine["%d<32>"] = np.float32(0)
    machine.run("wgmma.fence.sync.aligned;")
    return _again(machine, _MULTIPLY)


def trace_text() -> str:
    """Return a trace of 16 wgmma that accumulate into the same registers."""
    words = "\n".join(f"//! load {name} = {word:#x}" for name, word in _descriptors().items())
    return "\n".join(
        (
            "//! target sm_90a\n//! warpgroup",
            f".reg .b64 %a, %b; .reg .f32 %d<32>;\n{words}\n//! load %d<32> = 0x0",
            "wgmma.fence.sync.aligned;",
            *[_MULTIPLY] * 16,
            "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n//! expect %d<32> = 0x0\n",
        )
    )


def _trace(folder: Path) -> Trace:
    path = folder / "wgmmas.ptx"
    path.write_text(trace_text())
    return read_trace(path)


def cases(folder: Path) -> Iterator[Case]:
    """Yield every case; ``folder`` is for a file of its own."""
    warp, warpgroup = _with_registers(Warp("sm_90a")), _with_registers(Warpgroup())
    trace = _trace(folder)
    yield Case(name="mov.b32, warp", goal=5, run=_again(warp, "mov.b32 %s, %r;"))
    yield Case(name="mov.b32, warpgroup", goal=10, run=_again(warpgroup, "mov.b32 %s, %r;"))
    yield Case(name="add.u32, warp", goal=5, run=_again(warp, "add.u32 %s, %r, 1;"))
    yield Case(name="add.u32, warpgroup", goal=10, run=_again(warpgroup, "add.u32 %s, %r, 1;"))
    yield Case(name="ld.shared.b32, warp", goal=40, run=_again(warp, "ld.shared.b32 %s, [%z+16];"))
    yield Case(name="mma m16n8k16, warp", goal=30, run=_again(warp, _MMA))
    yield Case(name="mma m16n8k16, four warps", goal=60, run=_again(warpgroup, _MMA))
    yield Case(name="wgmma m64n64k16 f16", goal=250, run=_multiplying())
    yield Case(name="trace of 16 wgmma, read before", goal=6000, calls=1, run=lambda: run_trace(trace))


def main() -> int:
    """Measure and print every case."""
    import tempfile

    parser = argparse.ArgumentParser(prog="python -m tools.bench.statements", description=__doc__)
    parser.add_argument("--repeat", type=int, default=20, help="times each case is run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            print(case.line(options.repeat), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
