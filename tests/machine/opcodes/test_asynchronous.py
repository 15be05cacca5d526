"""cp.async: copies land when their group is waited for, lane by lane, and not before."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.kernel_texts import kernel, run
from warpsim.base.errors import Fault, IllegalInstruction
from warpsim.machine.grid import Launch, symbols_of
from warpsim.machine.grid import run as run_launch
from warpsim.machine.host.arguments import arguments_of
from warpsim.machine.load.program import load_module
from warpsim.machine.opcodes.asynchronous.cp_async import flights
from warpsim.machine.run.events import Observer
from warpsim.machine.run.schedules import Schedule
from warpsim.machine.state.device import Device
from warpsim.programs.launch.launching import load_text

Array = npt.NDArray[Any]
CTAS, THREADS = 2, 64
SHARED = {"shared": 8192, "extra": ".reg .b32 %to, %word; .reg .b64 %from; .reg .pred %p;"}
# Each lane has 64 bytes of shared memory of its own, and 64 bytes of the array "src".
OWN = """
    shl.b32 %to, %own, 6;
    ld.param.u64 %from, [p0];
    mul.wide.u32 %row, %lane, 64;
    add.u64 %from, %from, %row;
"""


def _run(body: str, count: int, words: dict[str, Array] | None = None) -> tuple[Array, Array]:
    """Outputs (lanes, count) and the words of the source (lanes, 16)."""
    source = np.random.default_rng(3).integers(1, 1 << 32, (CTAS * THREADS, 16)).astype(np.uint32)
    inputs = {"src": source, **(words or {})}
    outputs = {"d": (count, np.uint32)}  # reads that come too early are looked at
    found = run("sm_90a", CTAS, THREADS, inputs, outputs, f"{OWN}\n{body}", checks="off", **SHARED)
    return found["d"], source


def _copy(place: int, size: int = 4, more: str = "", cache: str = "ca") -> str:
    return f"cp.async.{cache}.shared.global [%to+{4 * place}], [%from+{4 * place}], {size}{more};\n"


def _read(place: int, into: int) -> str:
    return f"ld.shared.b32 %d{into}, [%to+{4 * place}];\n"


COMMIT, WAIT_ALL = "cp.async.commit_group;\n", "cp.async.wait_all;\n"


def _wait(count: int) -> str:
    return f"cp.async.wait_group {count};\n"


@pytest.mark.parametrize(("size", "cache"), [(4, "ca"), (8, "ca"), (16, "ca"), (16, "cg")])
def test_sizes(size: int, cache: str) -> None:
    reads = "".join(_read(place, place) for place in range(8))
    d, source = _run(_copy(0, size, "", cache) + COMMIT + _wait(0) + reads, 8)
    np.testing.assert_array_equal(d[:, : size // 4], source[:, : size // 4])
    assert not d[:, size // 4 :].any()


def test_groups_land_in_their_order() -> None:
    groups = "".join(_copy(place) + COMMIT for place in range(3)) + _copy(3)
    reads = "".join(_read(place, place) for place in range(4))
    for waits, landed in (("", 0), (_wait(3), 0), (_wait(2), 1), (_wait(1), 2), (_wait(0), 3), (WAIT_ALL, 4)):
        d, source = _run(groups + waits + reads, 4)
        np.testing.assert_array_equal(d[:, :landed], source[:, :landed])
        assert not d[:, landed:].any()


def test_lanes_have_groups_of_their_own() -> None:
    """Odd lanes commit one group more, so that one more has landed when at most one is in flight."""
    body = (
        _copy(0)
        + COMMIT
        + "and.b32 %word, %own, 1; setp.eq.u32 %p, %word, 1;\n@!%p bra after;\n"
        + _copy(1)
        + COMMIT
        + "after:\n"
        + _wait(1)
        + _read(0, 0)
        + _read(1, 1)
    )
    d, source = _run(body, 2)
    odd = np.arange(CTAS * THREADS) % 2 == 1
    np.testing.assert_array_equal(d[:, 0], np.where(odd, source[:, 0], 0))
    assert not d[:, 1].any()


def test_only_lanes_that_wait() -> None:
    body = _copy(0) + COMMIT + "setp.lt.u32 %p, %own, 10;\n@%p " + _wait(0) + _read(0, 0)
    d, source = _run(body, 1)
    waited = np.arange(CTAS * THREADS) % THREADS < 10
    np.testing.assert_array_equal(d[:, 0], np.where(waited, source[:, 0], 0))


def test_the_source_is_read_at_once() -> None:
    body = _copy(0) + "st.global.b32 [%from], 7;\n" + COMMIT + _wait(0) + _read(0, 0)
    source = np.random.default_rng(3).integers(1, 1 << 32, (CTAS * THREADS, 16)).astype(np.uint32)
    np.testing.assert_array_equal(_run(body, 1)[0], source[:, :1])


@pytest.mark.parametrize("size", [4, 8, 16])
def test_bytes_beyond_the_source_are_zero(size: int) -> None:
    counts = (np.arange(CTAS * THREADS, dtype=np.uint32) * 5 % (size + 1))[:, None]
    ones = "".join(f"st.shared.b32 [%to+{4 * place}], -1;\n" for place in range(4))
    reads = "".join(_read(place, place) for place in range(size // 4))
    d, source = _run(ones + _copy(0, size, ", %n0") + COMMIT + _wait(0) + reads, size // 4, {"n": counts})
    bytes_ = source[:, : size // 4].copy().view(np.uint8)
    bytes_[np.arange(size) >= counts] = 0
    np.testing.assert_array_equal(d.view(np.uint8), bytes_)


@pytest.mark.parametrize("negated", ["", "!"])
def test_a_predicate_ignores_the_source(negated: str) -> None:
    """A source that is ignored need not be there."""
    body = (
        "setp.lt.u32 %p, %own, 20; st.shared.b32 [%to], -1;\n"
        + f"@{'!' if negated else ''}%p mov.u64 %from, 0;\n"
        + _copy(0, 4, f", {negated}%p")
        + COMMIT
        + _wait(0)
        + _read(0, 0)
    )
    d, source = _run(body, 1)
    ignored = (np.arange(CTAS * THREADS) % THREADS < 20) != bool(negated)
    np.testing.assert_array_equal(d[:, 0], np.where(ignored, 0, source[:, 0]))


def test_hints_change_nothing() -> None:
    copy = "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%to], [%from], 16, %row;\n"
    d, source = _run(copy + COMMIT + _wait(0) + _read(3, 0), 1)
    np.testing.assert_array_equal(d[:, 0], source[:, 3])


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("add.u32 %to, %to, 4;" + _copy(0, 8), Fault, "is not a multiple of 8"),
        ("add.u64 %from, %from, 8;" + _copy(0, 16, ", 3"), Fault, "is not a multiple of 16"),
        ("mov.u64 %from, 64;" + _copy(0), Fault, "is in no allocation"),
        ("mov.u32 %word, 5;" + _copy(0, 4, ", %word"), Fault, "the source size 5 is above the size 4"),
        (_copy(0, 12), IllegalInstruction, "the size is 4 or 8 or 16, not '12'"),
        (_copy(0, 8, "", "cg"), IllegalInstruction, "the size is 16, not '8'"),
        (_copy(0, 4, ", 5"), IllegalInstruction, "the source size 5 is not in 0 to 4"),
        ("cp.async.wait_group %own;", IllegalInstruction, "the number of groups is an integer constant"),
    ],
)
def test_mistakes(body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _run(body, 1)


class _Watcher(Observer):
    """Reads of bytes that a copy is still under way to."""

    def __init__(self) -> None:
        self.news: list[tuple[str, int, int]] = []
        self.early = 0
        self.left: list[int] = []

    def copying(self, wave: Any, access: Any) -> None:
        self.news.append(("copying", access.lanes.count, access.size))

    def landed(self, wave: Any, access: Any) -> None:
        self.news.append(("landed", access.lanes.count, access.size))

    def load(self, wave: Any, access: Any) -> None:
        if access.memory is wave.memories.shared:
            self.early += sum(int(np.isin(access.offsets, one.offsets).sum()) for one in flights(wave))

    def exit(self, wave: Any, path: Any, lanes: Any) -> None:
        self.left = [one.lanes.count for one in flights(wave)]


def test_observers() -> None:
    arrays = {"src": np.zeros((64, 16), np.uint32)}
    body = f"{OWN}\n{_copy(0)}{COMMIT}{_copy(4, 16)}{COMMIT}{_wait(1)}{_read(0, 0)}{_read(4, 0)}"
    module = load_module(kernel("sm_80", arrays, {"d": arrays["src"][:, :1]}, body, **SHARED))
    entry, device, watcher = module.entry("k"), Device("sm_80"), _Watcher()
    given = [device.array(arrays["src"]), device.array(arrays["src"][:, :1])]
    arguments = arguments_of(device, entry.parameters, entry.parameter_bytes, given)
    launch = Launch(
        module=module,
        entry=entry,
        device=device,
        grid=(1, 1, 1),
        block=(64, 1, 1),
        parameters=arguments.content,
        shared_bytes=entry.static_shared_bytes,
        schedule=Schedule("program"),
        observers=lambda: [watcher],
    )
    symbols_of(device, module)
    run_launch(launch)
    assert watcher.news == [("copying", 64, 4), ("copying", 64, 16), ("landed", 64, 4)]
    assert watcher.early == 64
    assert watcher.left == [64]


def test_availability() -> None:
    text = kernel("sm_75", {}, {"d": np.zeros((1, 2), np.uint32)}, COMMIT)
    with pytest.raises(IllegalInstruction, match="is not on sm_75: it needs sm_80 or higher"):
        load_text(text)["k"]
