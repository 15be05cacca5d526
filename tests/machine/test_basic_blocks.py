"""Basic blocks that are compiled give what the interpreter gives: bits, counts, findings, errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.helpers.kernel_cases import FOLDER as KERNELS
from tests.helpers.kernel_cases import case
from tests.helpers.random_programs import VARIABLES, as_ptx, random_program
from warpsim.base.errors import Fault, OperandError, WarpsimError
from warpsim.machine.native.objects import available
from warpsim.machine.run import basic_blocks, execute, native_blocks
from warpsim.machine.run.basic_blocks import STATEMENTS
from warpsim.machine.run.events import Observer
from warpsim.machine.run.native_blocks import Native
from warpsim.machine.run.wave import Record
from warpsim.programs.launch.launching import load_text

Taken = Callable[[], Any]  # makes a launch from its beginning, and returns all that it gives

_HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Compile every basic block when its first statement has been executed once; collect those that run."""
    if not available():
        pytest.skip("there is no LLVM of version 20 or newer here")
    ran, native = list[tuple[int, int]](), Native.run

    def run_native(basic_block: Native, wave: Any, path: Any, first: int) -> bool:
        if done := native(basic_block, wave, path, first):
            ran.append((first, wave.code[first].basic_block.past))
        return done

    monkeypatch.setenv(STATEMENTS, "compiled")
    monkeypatch.setattr(execute, "HOT", 1)
    monkeypatch.setattr(basic_blocks, "HOT", 1)
    monkeypatch.setattr(native_blocks, "COLD", 1)
    monkeypatch.setattr(Native, "run", run_native)
    return ran


def _both(monkeypatch: pytest.MonkeyPatch, launch: Taken) -> None:
    """Compare what a launch gives when interpreted, when it finds what to compile, and when compiled."""
    monkeypatch.setenv(STATEMENTS, "interpreted")
    interpreted = launch()
    monkeypatch.setenv(STATEMENTS, "compiled")
    assert launch() == interpreted
    assert launch() == interpreted


def _given(report: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Bytes of arrays, findings and classes of a launch."""
    content = [array.tobytes() for array in arrays if isinstance(array, np.ndarray)]
    return content, list(map(str, report.hazards)), report.fidelity


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("schedule", ["program", "random:1"])
def test_random_programs(
    seed: int, schedule: str, at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(f"basic blocks {seed}")
    kernel = load_text(as_ptx(random_program(random)))["run"]
    block, grid = random.choice([1, 33, 96]), random.choice([1, 3])
    values = np.random.default_rng(seed).integers(0, 1 << 32, (grid * block, VARIABLES), np.uint32)
    values[: len(values) // 2] &= 7

    def launch() -> Any:
        given = values.copy()
        return _given(kernel(grid, block, [given], schedule=schedule), [given])

    _both(monkeypatch, launch)
    assert at_once


@pytest.mark.parametrize("name", ["softmax", "sum_all", "called"])
def test_kernels(name: str, at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    known = case(name)
    kernel = load_text((KERNELS / known.file).read_text())[known.entry]

    def launch() -> Any:
        given = [item.copy() if isinstance(item, np.ndarray) else item for item in known.arguments]
        options: dict[str, Any] = {"cluster": known.cluster, "checks": "warn"}
        report = kernel(known.grid, known.block, known.passed(given), known.shared_bytes, **options)
        return _given(report, given)

    _both(monkeypatch, launch)
    assert at_once


_LOOP = """.visible .entry k(.param .u64 out, .param .u32 times) {
.reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p, %q;
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; ld.param.u32 %r1, [times]; mov.u32 %r2, 0;
BODY
st.global.u32 [%d1], %r2; ret; }"""


def _loop(body: str) -> Any:
    address = "mul.wide.u32 %d2, %r0, 4;\nadd.u64 %d1, %d0, %d2;\n"
    return load_text(_HEAD + _LOOP.replace("BODY", address + body))["k"]


_ROUNDS = """AGAIN:
add.u32 %r2, %r2, %r0; xor.b32 %r2, %r2, 5; INSIDE
sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0;
@%p bra AGAIN;"""


def test_negated_predicates(at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A predicate of a statement, and its opposite."""
    inside = (
        "setp.lt.u32 %p, %r0, 9; setp.ge.and.u32 %q, %r0, 4, !%p; selp.b32 %r5, 3, 8, %q; "
        "add.u32 %r2, %r2, %r5;"
    )
    kernel = _loop(_ROUNDS.replace("INSIDE", inside))

    def launch() -> Any:
        out = np.zeros(32, np.uint32)
        return _given(kernel(1, 32, [out, 9]), [out])

    _both(monkeypatch, launch)
    assert at_once


def test_limit_counts_statements(at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit is reached at the same statement, in the same words."""
    kernel = _loop(_ROUNDS.replace("INSIDE", ""))

    def launch() -> Any:
        with pytest.raises(Fault, match="not ended after 1,000 statements") as caught:
            kernel(1, 32, [np.zeros(32, np.uint32), 100_000], most_statements=1000)
        return str(caught.value)

    _both(monkeypatch, launch)
    assert at_once


def test_clock_counts_statements(at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """%clock between two basic blocks sees all statements before it."""
    kernel = _loop(_ROUNDS.replace("INSIDE", "mov.u32 %r5, %clock; add.u32 %r2, %r2, %r5;"))

    def launch() -> Any:
        out = np.zeros(64, np.uint32)
        return _given(kernel(1, 64, [out, 9]), [out])

    _both(monkeypatch, launch)
    assert at_once


def test_register_never_written_is_found(
    at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A basic block that reads what no lane, or not each of them, has written is interpreted."""
    kernel = _loop(
        "setp.lt.u32 %q, %r0, 3;\n@%q mov.u32 %r7, 1;\n"
        + _ROUNDS.replace("INSIDE", "add.u32 %r2, %r2, %r7; add.u32 %r2, %r2, %r8;")
    )

    def launch() -> Any:
        out = np.zeros(32, np.uint32)
        return _given(kernel(1, 32, [out, 4], checks="warn"), [out])

    _both(monkeypatch, launch)
    found = launch()[1]
    assert sum("reads a register that was never written" in text for text in found) == 2


def test_fault_names_its_statement(at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that goes wrong between two basic blocks."""
    inside = "add.u64 %d1, %d1, 4; ld.global.u32 %r5, [%d1]; add.u32 %r2, %r2, %r5; mov.u32 %r6, %r2;"
    kernel = _loop(_ROUNDS.replace("INSIDE", inside))

    def launch() -> Any:
        with pytest.raises(WarpsimError, match=r"ld\.global\.u32: address") as caught:
            kernel(1, 32, [np.zeros(64, np.uint32), 1000])
        return str(caught.value), caught.value.location

    _both(monkeypatch, launch)
    assert at_once


class _Watching(Observer):
    """Notes each execution of the second statement of a loop, by a record in its place."""

    def __init__(self) -> None:
        self.seen = 0

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Replace the record."""

        def noted(record: Record) -> Record:
            step = record.step

            def watched(*given: Any) -> bool | None:
                self.seen += 1
                return step(*given)

            return record.stepping(watched)

        return [noted(record) if record.statement.opcode == "xor" else record for record in code]


def test_replaced_records_are_executed(at_once: list[tuple[int, int]]) -> None:
    """An observer that has put a record in place of another is called every time."""
    kernel, out = _loop(_ROUNDS.replace("INSIDE", "")), np.zeros(32, np.uint32)
    for _ in range(2):
        kernel(1, 32, [out, 9])
    compiled = set(at_once)
    at_once.clear()
    watching = _Watching()
    kernel(1, 32, [out, 9], observers=[watching])
    assert watching.seen == 9
    assert at_once
    assert set(at_once) <= compiled  # the others still are


def test_long_basic_blocks_follow_each_other(
    at_once: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(basic_blocks, "LONGEST", 16)
    kernel = _loop("\n".join(f"mad.lo.u32 %r2, %r2, {number}, %r0;" for number in range(1, 60)))

    def launch() -> Any:
        out = np.zeros(32, np.uint32)
        return _given(kernel(1, 32, [out, 0]), [out])

    _both(monkeypatch, launch)
    lengths = [past - first for first, past in at_once]
    assert lengths.count(16) >= 3
    assert sum(lengths) > 58


def test_small_launches_compile_nothing() -> None:
    kernel, out = _loop(_ROUNDS.replace("INSIDE", "add.u32 %r2, %r2, 1; " * 2)), np.zeros(32, np.uint32)
    kernel(1, 32, [out, 2])
    assert not any(record.basic_block for record in kernel.entry.code)
    kernel(1, 32, [out, 20])
    assert any(record.basic_block for record in kernel.entry.code)


def test_other_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATEMENTS, "fast")
    with pytest.raises(OperandError, match="WARPSIM_STATEMENTS='fast': expected 'compiled', 'interpreted'"):
        _loop("")(1, 32, [np.zeros(32, np.uint32), 1])
