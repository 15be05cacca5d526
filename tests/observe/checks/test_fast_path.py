"""Loops over accesses say and know what NumPy does: of kernels as they are, and with order left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import kernel_cases
from tests.helpers.compilation import loops_at_once, no_loops
from tests.helpers.families import sample, usual
from tests.helpers.kernel_products import Case
from warpsim.base.errors import WarpsimError
from warpsim.machine.grid import Launch, sizes_of
from warpsim.machine.run.events import Observer, observers_of
from warpsim.machine.run.pending import Pending, Stretches
from warpsim.machine.run.schedules import Schedule
from warpsim.machine.run.wave import Wave
from warpsim.machine.state.device import Device
from warpsim.machine.state.lanes import DivergentPath, Lanes
from warpsim.machine.state.memory_access import MemoryAccess
from warpsim.machine.state.spaces import padded
from warpsim.observe.checks import fast_path
from warpsim.observe.checks.copy_order import CopyOrder
from warpsim.observe.checks.fast_path.accesses import Accesses
from warpsim.observe.checks.findings import Findings
from warpsim.observe.checks.memory_checks import CopiesInFlight, UninitialisedReads
from warpsim.observe.checks.order import Order
from warpsim.observe.checks.shadow import OPERATION, Shadow, has, record, times, whose
from warpsim.observe.checks.shared_races import Races
from warpsim.programs.launch.launching import load_text

_ORDERING = re.compile(r"^\s*(@!?\S+\s+)?(bar\.|barrier\.|cp\.async\.wait|mbarrier\.try_wait|fence|membar)")
KERNELS = (
    *("sum_all", "largest", "last_adds", "cluster_sum", "cluster_histogram", "softmax", "interpret"),
    *("sparse_product normal", "dense_f16 normal", "ragged_f16 33x17x19 normal", "split_k_s32 normal"),
    *("warpgroup_f16 normal", "cooperative_f16", "tensor_f16", "tensor_ring of parts of tiles"),
)


class _Waves(Observer):
    """Keeps what is known of the memories of waves, as it is when lanes exit."""

    def __init__(self) -> None:
        self.known: list[dict[str, bytes]] = []

    def exit(self, wave: Wave, path: Any, lanes: Any) -> None:
        """Keep the tables."""
        shadows = [held for held in _held(wave) if isinstance(held, Shadow)]
        self.known += [_tables(shadow) for shadow in shadows]


def _held(wave: Wave) -> Iterator[Any]:
    for observer in observers_of(wave):
        order = getattr(observer, "order", None)
        if order is not None and order.ready:
            yield from order.shadows.of.values()
            return


def _tables(shadow: Shadow) -> dict[str, bytes]:
    """Whatever decides what is said of later accesses."""
    filled = {name: getattr(shadow, name).tobytes() for name in ("wrote", "filled", "flying")}
    rows = {name: _rows(getattr(shadow, name)) for name in ("writes", "reads")}
    return filled | rows | {"widths": shadow.widths.tobytes()}


def _rows(latest: Any) -> bytes:
    """Rows to the last in which there is anything: others may be there or not."""
    return bytes(latest[: 1 + int(np.max(np.flatnonzero(latest.any(axis=1)), initial=-1))].tobytes())


def said(case: Case, text: str, **options: Any) -> tuple[list[str], list[dict[str, bytes]], list[bytes]]:
    """What a launch says, what is known at the ends of lanes, and what it leaves."""
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    waves, messages = _Waves(), list[str]()
    entry = load_text(text, case.file)[case.entry]
    options |= {"shared_bytes": case.shared_bytes, "cluster": case.cluster, "checks": "warn"}
    with suppress(WarpsimError):
        try:
            report = entry(case.grid, case.block, case.passed(given), observers=[waves], **options)
            messages = [str(found) for found in report.hazards]
        except WarpsimError as error:
            messages = [*(str(found) for found in error.earlier), str(error)]
    return messages, waves.known, [value.tobytes() for value in given if isinstance(value, np.ndarray)]


@cache
def texts(file: str) -> list[str]:
    """A kernel as it is, and without each statement that orders something."""
    lines = (kernel_cases.FOLDER / file).read_text().split("\n")
    ordering = [place for place, line in enumerate(lines) if _ORDERING.match(line)]
    without = ["\n".join([*lines[:place], "", *lines[place + 1 :]]) for place in ordering]
    return ["\n".join(lines), *without]


@pytest.mark.parametrize("name", sample(KERNELS, 2))
def test_the_same_is_said_and_known(name: str) -> None:
    """A kernel as it is under two schedules, and without a statement under one of them in turn."""
    case = kernel_cases.case(name)
    intact, *others = texts(case.file)[: usual(2, 6)]
    for text, schedule in zip([intact, intact, *others], cycle(("program", 2)), strict=False):
        with no_loops():
            expected = said(case, text, schedule=schedule, most_statements=20_000)
        with loops_at_once():
            assert said(case, text, schedule=schedule, most_statements=20_000) == expected


# --- accesses at random -------------------------------------------------------------------------------

TEXT = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
  .shared .align 16 .b8 tile[12288]; .local .b8 own[64];
  .reg .b32 %r<4>;
  ld.shared.b32 %r0, [tile]; st.shared.b32 [tile], %r0; ld.volatile.shared.b32 %r1, [tile];
  st.volatile.shared.b32 [tile], %r1; atom.shared.add.u32 %r2, [tile], 1; ret;
}
"""
CTAS, WARPS, BYTES = 2, 3, 12288
MBARRIER = BYTES - 16  # where the mbarrier of a CTA is


class Looked:
    """A wave, and the observers that look at its accesses."""

    def __init__(self) -> None:
        module = load_text(TEXT).module
        entry, device = module.entry("k"), Device("sm_90")
        sizes = sizes_of(entry, CTAS, 32 * WARPS, None, 0, "sm_90")
        launch = Launch(
            module=module, entry=entry, device=device, parameters=padded(0), schedule=Schedule("program"),
            **vars(sizes),
        )  # fmt: skip
        self.wave = next(launch.waves())
        self.wave.native = True
        self.findings = Findings(mode="warn")
        self.order = Order(self.findings)
        accesses = Accesses(self.order)
        self.races = Races(self.findings, accesses)
        self.reads = UninitialisedReads(self.findings, accesses)
        self.flying = CopiesInFlight(self.findings, accesses)
        self.clocks = self.order.prepare(self.wave)
        self.copies = CopyOrder(self.findings, self.order)
        self.copies.active = True
        self.flight: list[Pending] = []
        self.multiplied = 0

    def issues(self, pc: int, lane: int, ranges: Any) -> None:
        """A lane issues an operation that will write there, and signal the mbarrier of its CTA."""
        mask = np.zeros(CTAS * WARPS * 32, np.bool_)
        mask[lane] = True
        path = DivergentPath(pc, self.wave.frame, Lanes(mask))
        pending = Pending(
            record=self.wave.code[pc], lane=lane, kind="bulk copy", complete=lambda: None,
            writes=(Stretches(space="shared", ranges=ranges),),
            signals=((lane // 96 * BYTES + MBARRIER, 16),),
        )  # fmt: skip
        for observer in (self.copies, self.order):
            observer.issued(self.wave, path, pending)
        self.flight.append(pending)

    def lands(self, warps: Any) -> None:
        """The oldest operation is complete, as some warps of its CTA know."""
        pending = self.flight.pop(0)
        ((offset, _),) = pending.signals
        for observer in (self.copies, self.order):
            observer.bytes_came(self.wave, pending, offset, True)
        self.clocks.acquire(warps, self.order.barrier_at(offset).over)

    def multiplies(self, cta: int, offsets: Any, waits: bool) -> None:
        """Operations of a CTA's first lane read chunks, and its warps wait for them, perhaps."""
        shadow, lanes = self.order.shared(self.wave), np.array([cta * 96])
        self.multiplied += 1
        records = record(self.multiplied, 2, self.clocks.groups_of("wgmma", lanes)[:, None], OPERATION)
        key = offsets.tobytes()
        shadow.tiles(key, lambda: offsets)
        shadow.take_later(key, np.array([[1 + cta]]), records)
        if waits:
            warps = np.arange(WARPS) + WARPS * cta
            self.clocks.complete_groups("wgmma", lanes, warps, np.array([self.multiplied]))

    def sees(self, verb: str, pc: int, mask: Any, offsets: Any, size: int, words: Any) -> None:
        """Lanes access shared memory."""
        lanes = Lanes(mask)
        path = DivergentPath(pc, self.wave.frame, lanes)
        access = MemoryAccess(path, lanes, self.wave.memories.shared, offsets, size, words)
        for observer in (self.reads, self.flying, self.races):
            getattr(observer, verb)(self.wave, access)

    def known(self) -> tuple[Any, ...]:
        """What is known, reads included: of these some may have been forgotten that all warps know of."""
        shadow = self.order.shared(self.wave)
        fresh = np.zeros(0) if not len(shadow.reads) else self.order.fresh(shadow, shadow.reads)
        read = shadow.read[: len(fresh)]
        taken = shadow.taken_of(1 + CTAS).tobytes(), shadow.takes[: 1 + CTAS].tobytes()
        seen = np.where(fresh[:, shadow.pages(np.arange(read.shape[1]))], read, 0) if len(read) else read
        return _tables(shadow), taken, _rows(seen), [str(found) for found in self.findings.found]


def _access(rng: np.random.Generator, parted: bool = False) -> tuple[str, int, Any, Any, int, Any]:
    """An access of whole warps, or of some lanes of them, mostly in the memories of their CTAs."""
    verb = str(rng.choice(["load", "load", "store", "store", "atomic", "copying", "landed"]))
    warps = rng.random(CTAS * WARPS) < rng.choice([0.2, 0.6, 1.0])
    warps[rng.integers(CTAS * WARPS)] = True
    mask = np.repeat(warps, 32)
    if parted and rng.random() < 0.1:
        mask &= rng.random(mask.size) < rng.choice([0.1, 0.9])
        mask[rng.integers(mask.size)] = True
    index = np.flatnonzero(mask)
    size, rounds = (
        int(rng.choice([1, 2, 4, 8, 16, 32], p=[0.01, 0.04, 0.3, 0.25, 0.3, 0.1])),
        rng.integers(1, 4),
    )
    lanes = np.tile(index, rounds)
    spread = int(rng.choice([256, 1024, BYTES]))
    step = lanes % 96 * size * rng.integers(0, 3) + rng.integers(
        0, spread, 1 if rng.random() < 0.7 else lanes.size
    )
    offsets = lanes // 96 * BYTES + step % (BYTES // size * size) // size * size
    words = rng.integers(0, 2, (lanes.size, size)).astype(np.uint8) if rng.random() < 0.7 else None
    pc = {"load": rng.choice([0, 2]), "atomic": 4}.get(verb, rng.choice([1, 3]))
    return verb, int(pc), mask, offsets, size, words


@pytest.mark.parametrize("seed", range(usual(6, 18)))
def test_accesses_at_random_are_known_alike(seed: int) -> None:
    """Barriers of CTAs come in between, and warps that learn what another has done, and lanes that converge:
    those of some seeds are apart at times.
    """
    rng = np.random.default_rng(seed)
    one, other = Looked(), Looked()
    often = rng.choice([0.1, 0.4, 0.8])
    for _ in range(120):
        if rng.random() < often:
            cta, warp = rng.integers(CTAS), rng.integers(WARPS)
            for looked in (one, other):
                here = np.arange(WARPS) + WARPS * cta
                if often > 0.2:
                    looked.clocks.meet(here[None])
                else:
                    looked.clocks.acquire(here[:1], looked.clocks.release(here[warp : warp + 1]))
        if seed >= 12 and rng.random() < 0.3:
            for looked in (one, other):
                looked.order.converge(looked.wave, np.ones(CTAS * WARPS * 32, np.bool_))
        access = _access(rng, parted=seed >= 12)
        with no_loops():
            one.sees(*access)
        with loops_at_once():
            other.sees(*access)
        assert one.known() == other.known()
    assert any("race" in message for message in one.known()[3])


@pytest.mark.parametrize("verbs", [("load", "store"), ("store", "load"), ("store", "store")])
def test_lanes_that_were_apart_are_looked_at_more_closely(verbs: tuple[str, str]) -> None:
    """Half a warp reads or writes what the whole warp then accesses: a race, but where they converge."""
    whole = np.arange(CTAS * WARPS * 32) < 32
    half = np.arange(CTAS * WARPS * 32) < 16
    for converges in (False, True):
        looked = Looked()
        with loops_at_once():
            looked.sees("store", 1, whole, np.arange(32) * 16 + 4096, 16, None)
            looked.sees(verbs[0], 1, half, np.arange(16) * 16, 16, np.zeros((16, 16), np.uint8))
            if converges:
                looked.order.converge(looked.wave, whole)
            looked.sees(verbs[1], 0, whole, np.arange(32)[::-1] * 16, 16, np.ones((32, 16), np.uint8))
        assert any(found.kind == "race" for found in looked.findings.found) != converges


def test_a_read_of_lanes_that_were_apart_stays_until_they_meet() -> None:
    """Half a warp reads, the whole warp reads the same, and then other lanes store: the first read may come
    later.
    """
    whole, half = np.arange(CTAS * WARPS * 32) < 32, np.arange(CTAS * WARPS * 32) < 16
    for looks in (no_loops, loops_at_once):
        looked = Looked()
        with looks():
            looked.sees("store", 1, whole, np.arange(32) * 16, 16, None)
            looked.order.converge(looked.wave, whole)
            looked.sees("load", 0, half, np.arange(16) * 16, 16, None)
            looked.sees("load", 2, whole, np.arange(32) * 16, 16, None)
            looked.sees("store", 1, whole, np.arange(32)[::-1] * 16, 16, np.ones((32, 16), np.uint8))
        assert [found.kind for found in looked.findings.found] == ["race"], looks.__name__


def _does(rng: np.random.Generator) -> tuple[str, tuple[Any, ...]]:
    """An access, an operation that writes or reads, or the end of one."""
    what = rng.choice(["sees", "issues", "issues", "issues", "lands", "lands", "multiplies"])
    cta = int(rng.integers(CTAS))
    warps = np.flatnonzero(rng.random(WARPS) < 0.7) + WARPS * cta
    first, count = int(rng.integers(0, 300)) * 32, int(rng.choice([1, 2, 64, 256]))
    past = min(first + 16 * count, MBARRIER)
    if what == "sees":
        return what, _access(rng)
    if what == "issues":
        return what, (int(rng.choice([1, 3])), 96 * cta + 32 * int(rng.integers(WARPS)),
                      np.array([[first, past]]) + BYTES * cta)  # fmt: skip
    if what == "lands":
        return what, (warps,)
    return what, (cta, np.arange(first, past, 16)[None] + BYTES * cta, bool(rng.random() < 0.7))


@pytest.mark.parametrize("seed", range(usual(4, 12)))
def test_operations_at_random_are_known_alike(seed: int) -> None:
    """Warps store and load beside them, and know of what has landed, some of them."""
    rng = np.random.default_rng(seed)
    one, other = Looked(), Looked()
    for _ in range(150):
        verb, event = _does(rng)
        if verb == "lands" and not one.flight:
            continue
        meets, proxy = rng.random() < 0.5, rng.random() < 0.5
        for looked, how in ((one, no_loops), (other, loops_at_once)):
            if meets:
                looked.clocks.meet(np.arange(WARPS * CTAS).reshape(CTAS, -1))
            if proxy:
                looked.clocks.fence_proxy(np.arange(WARPS * CTAS))
            with how():
                getattr(looked, verb)(*event)
        assert one.known() == other.known()
    kinds = {found.kind for found in one.findings.found}
    assert {"overwritten early"} <= kinds


@pytest.mark.parametrize("seed", range(6))
def test_what_is_known_of_tiles(seed: int) -> None:
    """A few kinds of cells, and readers that know of some operations and not of others."""
    rng, wave = np.random.default_rng(seed), Looked().wave
    for _ in range(100):
        shadow, rows = Shadow(BYTES), int(rng.integers(1, 4))
        kinds = [0, *(record(time, 1, owner, OPERATION) for time in (3, 5) for owner in (7, 8))]
        kinds += [record(4, 1, 65, 0)] * bool(rng.integers(2))
        shadow.wrote[:] = rng.choice(kinds, shadow.wrote.size)
        shadow.filled[:], shadow.flying[:] = rng.random((2, shadow.wrote.size)) < [[0.99], [0.01]]
        known = rng.integers(3, 6, (rows, 9)).astype(np.int32)
        cells = rng.integers(0, shadow.wrote.size, (rows, int(rng.choice([1, 3, 40]))))
        with loops_at_once():
            found = fast_path.tiles(wave, shadow, known, cells)
        wrote, operation = shadow.wrote[cells], has(shadow.wrote[cells], OPERATION)
        component = np.where(operation, whose(wrote), whose(wrote) // 32)
        late = (wrote != 0) & (times(wrote) > known[np.arange(rows)[:, None], component])
        assert found == (
            (shadow.filled[cells] == 0).any(), shadow.flying[cells].any(),
            ((wrote != 0) & ~operation).any(), (late & operation).any(), (late & ~operation).any(),
        )  # fmt: skip


class Counted:
    """The loops, of which each call is counted by the name of the loop."""

    def __init__(self, loops: Any) -> None:
        self.loops, self.calls = loops, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.loops, name)
        if not callable(found) or isinstance(found, type):
            return found

        def call(*given: Any) -> Any:
            self.calls[name] += 1
            return found(*given)

        return call


class Accessed(Observer):
    """Counts accesses of shared memory."""

    def __init__(self) -> None:
        self.calls = Counter[str]()

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Count it."""
        self.calls["load"] += access.memory is wave.memories.shared

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Count it."""
        self.calls["store"] += access.memory is wave.memories.shared

    copying = landed = store


def test_an_access_is_looked_at_once_for_all_rules() -> None:
    """A pipeline of cp.async and ldmatrix: no rule goes through the words again, and no read to its table."""
    case, accessed = kernel_cases.case("sparse_product normal"), Accessed()
    launch = load_text((kernel_cases.FOLDER / case.file).read_text())[case.entry]
    operands = case.grid, case.block, case.passed(case.arguments), case.shared_bytes
    with loops_at_once():
        launch(*operands)
        counted = vars(fast_path.LOOPS)["found"] = Counted(fast_path.LOOPS.found)
        launch(*operands, observers=[accessed])
    assert counted.calls["load"] == accessed.calls["load"] > 0
    assert counted.calls["store"] == accessed.calls["store"] > 0
    assert not counted.calls.keys() & {"all_are", "all_become", "note_reads"}


# --- reads that are in no table yet -------------------------------------------------------------------

READ_THEN_STORED = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{{
  .shared .align 16 .b8 tile[4096];
  .reg .b32 %r<8>; .reg .pred %p0;
  mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.u32 %r3, %r2, %r1;
  setp.ge.u32 %p0, %r0, 32;
  st.shared.u32 [%r3], %r0; {meet}
  {read}
  bar.sync 0;
  add.u32 %r4, %r1, 128; and.b32 %r4, %r4, 255; add.u32 %r4, %r2, %r4;
  st.shared.u32 [%r4], %r5;
  ret;
}}
"""
_FAR = "mapa.shared::cluster.u32 %r7, %r3, 0; ld.shared::cluster.u32 %r5, [%r7];"
READS = {
    "of own CTA": ("bar.sync 0;", "ld.shared.u32 %r5, [%r3];", False),
    "of another CTA": ("barrier.cluster.arrive; barrier.cluster.wait;", _FAR, True),
    "of lanes that end": ("bar.sync 0;", "ld.shared.u32 %r5, [%r3]; @%p0 ret;", False),
    "of some warps": ("bar.sync 0;", "@%p0 ld.shared.u32 %r5, [%r3];", False),
}


@pytest.mark.parametrize("which", READS)
def test_a_barrier_forgets_reads_of_which_all_warps_know(which: str) -> None:
    """And no others: CTA 1 reads memory of CTA 0, where no barrier of a CTA orders the two."""
    meet, read, races = READS[which]
    entry = load_text(READ_THEN_STORED.format(meet=meet, read=read))["k"]
    for looks in (no_loops, loops_at_once):
        with looks():
            report = entry(2, 64, cluster=2, checks="warn")
        kinds = {found.kind for found in report.hazards if found.severity == "error"}
        assert ("race" in kinds) == races, looks.__name__


@pytest.mark.parametrize(("is_there", "few", "many"), [(True, 300, 700), (False, 3_000, 5_000)])
def test_accesses_of_few_words_bring_loops_soon(
    is_there: bool, few: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls around an access cost as much as two thousand words: a few hundred accesses are worth loading
    loops that are kept, where Numba is loaded, and thousands are where it is not.
    """
    monkeypatch.setattr(fast_path, "_are_kept", lambda: True)
    monkeypatch.setattr(fast_path, "import_module", lambda *name: SimpleNamespace(compile_all=lambda: None))
    monkeypatch.setattr(fast_path, "sys", SimpleNamespace(modules={"numba": None} if is_there else {}))
    loops = fast_path._Loops()
    loops.refused = False
    assert few < next(count for count in range(10_000) if loops.after(32)) < many
