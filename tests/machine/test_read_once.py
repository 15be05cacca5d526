"""What a statement says is read once, and where it stands only for an error; shared memory is copied if need be."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.errors import IllegalInstruction, UndefinedBehavior
from warpsim.execution.pipeline import execute_inputs
from warpsim.isa.descriptor import canonical_descriptor
from warpsim.machine import machine as machines
from warpsim.machine import shared_memory
from warpsim.machine.machine import Event, Machine, Warp
from warpsim.machine.shared_memory import SharedMemory
from warpsim.machine.warpgroup import Warpgroup
from warpsim.ptx import source, statements
from warpsim.ptx.parser import parse
from warpsim.traces.reading import read_trace
from warpsim.traces.running import run_trace

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, "
MMA += "{%b0, %b1}, {%d0, %d1, %d2, %d3};"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, "
SPARSE += "{%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%d0, %d1, %d2, %d3}, %e, 0;"
ACCUMULATOR = "{" + ", ".join(f"%c{i}" for i in range(32)) + "}"
WGMMA = f"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {ACCUMULATOR}, %x, %y, %p, 1, 1, 0, 0;"
DECLARED = (
    ".reg .b32 %a<4>, %b<4>, %e, %at, %q<2>; .reg .b64 %x, %y, %l; .reg .f32 %c<32>, %d<4>; .reg .pred %p;"
)
MOVES = "mov.b32 %q0, %a1; @%p mov.b32 %q1, 5; mov.b64 %l, {%q0, %q1}; mov.b64 {_, %q1}, %l; mov.u32 %at, t;"
SHARED = "st.shared.b32 [t+16384], 7; ld.shared.b32 %q0, [t+16384]; bar.warp.sync 0xffffffff;"
ORDER = "wgmma.fence.sync.aligned; fence.proxy.async;"
CLOSE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.sync 0;"

Counts = Counter[str]


def descriptor(start: int) -> int:
    return int(canonical_descriptor(start, mn=64, k=16, element_bits=16, major="K", swizzle="none").encode())


def filled(machine: Machine, seed: int = 0) -> Machine:
    """A machine whose operands are random, and all of whose lanes hold %p."""
    random = np.random.default_rng(seed)
    for name, count in (("%a", 4), ("%b", 4), ("%d", 4), ("%c", 32)):
        words = random.standard_normal((machine.lanes, count, 2)).astype(np.float16).view(np.uint32)[..., 0]
        machine.load(f"{name}<{count}>", words)
    machine.load("%p", True)
    machine.load("%e", 0x44444444)
    machine.load("%x", np.uint64(descriptor(0)))
    machine.load("%y", np.uint64(descriptor(4096)))
    return machine


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """How often text is read, bound, and looked for in its lines."""
    seen: Counts = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*arguments: Any, **settings: Any) -> Any:
            seen[name] += 1
            return original(*arguments, **settings)

        monkeypatch.setattr(owner, name, counted)

    count(statements, "read_instruction")
    count(statements, "parse_operands")
    count(machines, "bind_statement")
    count(source.Source, "location")
    yield seen


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        (Warp, f"{MOVES} {SHARED} {MMA}"),
        (Warpgroup, f"{MOVES} {SHARED} {MMA} {ORDER} {WGMMA} {WGMMA} {CLOSE}"),
    ],
)
def test_executing_again_reads_nothing(counts: Counts, machine: type[Machine], text: str) -> None:
    made = machine("sm_90a")
    made.run(f"{DECLARED} .shared .align 16 .b8 t[16400];")
    made["%q1"] = 0
    program = parse(text).statements
    first = [step.d for step in filled(made).steps(program) if isinstance(step, Event)]
    assert counts["bind_statement"] == len(first)
    # Each operand text is read for its statement, once, and no place is asked for.
    assert counts["parse_operands"] == sum(
        isinstance(one, statements.InstructionStatement) and one.operand_text is not None for one in program
    )
    assert counts["read_instruction"] == counts["location"] == 0
    counts.clear()
    again = [step.d for step in filled(made).steps(program) if isinstance(step, Event)]
    assert counts.total() == 0
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


def test_a_trace_of_wgmma_reads_each_statement_once(counts: Counts, tmp_path: Path) -> None:
    words = "\n".join(f"//! load {name} = {descriptor(at):#x}" for name, at in (("%x", 0), ("%y", 4096)))
    text = (
        f"//! target sm_90a\n//! warpgroup\n{DECLARED}\n{words}\n//! load %p = 0x1\n//! load %c<32> = 0x0\n"
    )
    path = tmp_path / "t.ptx"
    path.write_text(f"{text}{ORDER}\n" + f"{WGMMA}\n" * 16 + f"{CLOSE}\n//! expect %c<32> = 0x0\n")
    trace = read_trace(path)
    counts.clear()
    assert run_trace(trace).passed
    assert counts["bind_statement"] == 16
    assert counts["read_instruction"] == 0
    counts.clear()
    assert run_trace(trace).passed
    assert counts["bind_statement"] == counts["parse_operands"] == counts["read_instruction"] == 0


def test_other_types_targets_and_versions_are_bound_anew() -> None:
    program = parse(MMA).statements
    assert [*filled(Warp("sm_90a")).steps(program)][0].instruction.target == "sm_90a"
    assert [*filled(Warp("sm_80")).steps(program)][0].instruction.target == "sm_80"
    with pytest.raises(IllegalInstruction, match="is not on sm_75"):
        [*filled(Warp("sm_75")).steps(program)]
    declared = Warp("sm_80")
    declared.run(".reg .b64 %a<4>; .reg .b32 %b<2>; .reg .f32 %d<4>;")
    with pytest.raises(IllegalInstruction, match=r"a takes .* registers, but %a0 is \.b64"):
        [*declared.steps(program)]
    declared.version = (6, 0)
    with pytest.raises(IllegalInstruction, match="PTX"):
        [*declared.steps(program)]


def test_a_mov_of_a_variable_and_of_a_register_of_that_name() -> None:
    program = parse("mov.u32 %r, t;").statements
    machine = Warp("sm_80")
    machine.run(".shared .b8 s[48], t[4];")
    assert [*machine.steps(program)] == []
    assert machine["%r"].tolist() == [48] * 32
    other = Warp("sm_80")
    other["t"] = 7
    assert [*other.steps(program)] == []
    assert other["%r"].tolist() == [7] * 32


# --- mma of several warps --------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize("warps", [(0, 1, 2, 3), (1, 3), (2,)])
def test_warps_multiply_together(
    monkeypatch: pytest.MonkeyPatch, engine: Any, warps: tuple[int, ...]
) -> None:
    calls: list[tuple[int, ...]] = []

    def counted(form: Any, inputs: Any, *rest: Any) -> Any:
        calls.append(inputs.registers["a"].shape)
        return execute_inputs(form, inputs, *rest)

    monkeypatch.setattr(machines, "execute_inputs", counted)
    group = filled(Warpgroup(engine=engine))
    before = group["%d<4>"].copy()
    group["%p"] = np.isin(np.arange(128) // 32, warps)
    (event,) = group.run(f"@%p {MMA}")
    assert calls == [(len(warps), 32, 4)]
    assert event.warps == warps
    assert [first for first, _, _ in event.executions()] == [32 * warp for warp in warps]
    expected = before.copy()
    for first, inputs, d in event.executions():
        expected[first : first + 32] = execute_inputs(event.instruction, inputs, "reference")
        assert np.array_equal(d, expected[first : first + 32])
    assert np.array_equal(group["%d<4>"], expected)
    idle = ~np.isin(np.arange(128) // 32, warps)
    assert not event.d[idle].any()


def test_which_warp_is_in_error() -> None:
    group = filled(Warpgroup())
    group["%e"] = np.where(np.arange(128) == 64, 0x40, 0x44444444)
    with pytest.raises(UndefinedBehavior) as caught:
        group.run(SPARSE, "k.ptx")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"k.ptx:1:{1 + SPARSE.index('%e')}: error: warp 2: metadata field ")
    assert " in lane 0, " in lines[0]


# --- shared memory as it was -----------------------------------------------------------------------


class Watched:
    """NumPy, with comparisons of whole arrays counted."""

    def __init__(self) -> None:
        self.comparisons = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def array_equal(self, first: Any, second: Any) -> bool:
        self.comparisons += 1
        return np.array_equal(first, second)


def test_memory_that_nobody_can_have_written_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    monkeypatch.setattr(shared_memory, "np", watched)
    group = filled(Warpgroup())
    events = group.run(f"{ORDER} {WGMMA * 8} {CLOSE}")
    assert watched.comparisons == 0
    assert len({id(event.inputs.shared) for event in events}) == 1
    group.shared.data[0] = 1
    events = group.run(f"{ORDER} {WGMMA * 8} {CLOSE}")
    assert watched.comparisons == 1


WRITES = {
    "an element": lambda data: data.__setitem__(3, 9),
    "a view": lambda data: data[2:].view(np.uint16).reshape(2, -1).__setitem__((0, 0), 9),
    "copyto": lambda data: np.copyto(data, 9),
    "out": lambda data: np.add(data, 9, out=data),
    "fill": lambda data: data.fill(9),
    "flat": lambda data: data.flat.__setitem__(3, 9),
    "memoryview": lambda data: memoryview(data).__setitem__(3, 9),
    "frombuffer": lambda data: np.frombuffer(data, np.uint32).__setitem__(3, 9),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("kept", [True, False])
def test_whatever_is_written_is_seen(write: Any, kept: bool) -> None:
    memory = SharedMemory(64)
    held = memory.data if kept else None
    before = memory.snapshot()
    write(memory.data if held is None else held)
    after = memory.snapshot()
    assert not before.any()
    assert after.any()
    assert np.array_equal(after, memory.data)
    assert memory.snapshot() is after


@pytest.mark.parametrize(
    "derive",
    [
        lambda data: data[4:],
        lambda data: data.view(np.uint16)[::2],
        lambda data: np.asarray(data)[8:].reshape(7, 8).T,
        lambda data: np.frombuffer(memoryview(data), np.uint8),
        lambda data: np.lib.stride_tricks.as_strided(data, (8,), (1,)),
        lambda data: data.flat,
        memoryview,
    ],
)
def test_a_part_that_is_kept_can_write_at_any_time(derive: Any) -> None:
    memory = SharedMemory(64)
    part = derive(memory.data)
    for value in (1, 2, 3):
        before = memory.snapshot()
        index = (0, 0) if getattr(part, "ndim", 1) == 2 else 0
        part[index] = value
        assert memory.snapshot() is not before
        assert value in memory.snapshot()


def test_stores_and_views_are_seen_and_equal_bytes_are_one_copy() -> None:
    memory = SharedMemory(64)
    first = memory.snapshot()
    memory.store([8], np.array([5], np.uint32), 4)
    second = memory.snapshot()
    memory.view(0, 4)[:] = 1
    third = memory.snapshot()
    memory.view(0, 4)[:] = 1
    assert memory.snapshot() is third
    assert [int(one.sum()) for one in (first, second, third)] == [0, 5, 9]
    assert not any(one.flags.writeable for one in (first, second, third))


def test_a_copy_of_a_memory_is_another_memory() -> None:
    memory = SharedMemory(64)
    held = memory.data
    other = copy.deepcopy(memory)
    other.data[0] = 1
    assert not held.any()
    assert not memory.snapshot().any()
    held[1] = 1
    assert other.snapshot().tolist()[:3] == [1, 0, 0]


@pytest.mark.parametrize("kept", [True, False])
def test_events_hold_the_memory_of_their_moment(kept: bool) -> None:
    group, random = filled(Warpgroup(shared_bytes=8192, hazards="off")), np.random.default_rng(1)
    held = group.shared.data if kept else None
    events, memories = [], []
    for _ in range(3):
        data = group.shared.data if held is None else held
        data.view(np.float16)[:] = random.standard_normal(4096)
        memories.append(data.copy())
        del data
        events += group.run(WGMMA)
    group.shared.data[:] = 0
    group["%c<32>"] = np.float32(0)
    for event, memory in zip(events, memories, strict=True):
        assert np.array_equal(event.inputs.shared, memory)
        assert np.array_equal(execute_inputs(event.instruction, event.inputs, "reference"), event.d)


# --- a warp with shared memory ---------------------------------------------------------------------


def test_a_warp_loads_matrices_as_the_warps_of_a_warpgroup_do() -> None:
    text = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0, %r1, %r2, %r3}, [%at];"
    text += "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%to], {%r3, %r1}; ld.shared.v2.b32 {%u, %v}, [%to];"
    memory = np.random.default_rng(2).integers(0, 256, 1024).astype(np.uint8)
    warp, group = Warp("sm_90a", 1024), Warpgroup(shared_bytes=1024, hazards="off")
    for machine in (warp, group):
        machine.write_shared(0, memory)
        lanes = np.arange(machine.lanes) % 32
        machine["%at"], machine["%to"] = 16 * lanes, 512 + 16 * lanes
        machine.run(text)
    assert np.array_equal(warp.shared.data, group.shared.data)
    for name in ("%r<4>", "%u", "%v"):
        assert np.array_equal(warp[name], group[name][:32])
    rows = memory[:128].view(np.uint16).reshape(8, 8)
    assert warp["%r0"].view(np.uint16).reshape(8, 4, 2).reshape(8, 8).T.tolist() == rows.tolist()


def test_memory_and_registers_of_a_warp_feed_a_product() -> None:
    """What a kernel of one warp does: tiles in shared memory, ldmatrix, mma."""
    form = warpsim.decode(MMA.partition(" ")[0], target="sm_80")
    random = np.random.default_rng(3)
    a, b = (
        random.standard_normal((16, 16)).astype(np.float16),
        random.standard_normal((16, 8)).astype(np.float16),
    )
    warp = Warp("sm_80", 1024)
    warp.run(".shared .align 16 .b8 ta[512], tb[256];")
    warp.write_shared("ta", a)
    warp.write_shared("tb", b)
    lane = np.arange(32)
    warp["%at"] = (lane % 16) * 32 + (lane // 16) * 16
    warp["%bt"] = 512 + (lane % 16) * 16
    warp["%d<4>"] = np.float32(0)
    (event,) = warp.run(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%at];"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%b0, %b1}, [%bt]; bar.warp.sync 0xffffffff;" + MMA
    )
    expected = warpsim.matmul(form, a, b)
    assert np.array_equal(warpsim.unpack(form, "d", event.d).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("machine", [Warp, Warpgroup])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bar.warp.sync;", "bar.warp.sync takes one operand, the mask of its lanes"),
        ("bar.warp.sync.aligned -1;", "bar.warp.sync takes one operand, the mask of its lanes"),
        ("bar.warp.sync 1.5;", "the mask is a 32-bit register or an integer constant, not '0d3FF8000000000000'"),
        ("bar.warp.sync %laneid;", "bar.warp.sync does not take special registers"),
        (".reg .f32 %f; bar.warp.sync %f;", "bar.warp.sync does not take %f, which is .f32"),
        (".reg .b64 %f; bar.warp.sync %f;", "bar.warp.sync does not take %f, which is .b64"),
        (".reg .b32 %f; bar.warp.sync %f;", "register %f is read, but nothing has been written to it"),
        ("bar.warp.sync 0xfffffffe;", "lane 0 is not in its mask 0xfffffffe"),
        ("@%p bar.warp.sync -1;", "lane 0 waits with mask 0xffffffff for lane 4, which does not come with it"),
        (".version 5.0\nbar.warp.sync -1;", "bar.warp.sync needs PTX 6.0, but the version is 5.0"),
    ],
)  # fmt: skip
def test_barriers_of_a_warp_that_are_refused(machine: type[Machine], text: str, message: str) -> None:
    made = machine("sm_90a")
    made["%p"] = np.arange(made.lanes) % 32 < 4
    with pytest.raises(warpsim.WarpsimError) as caught:
        made.run(text)
    assert caught.value.message == message


@pytest.mark.parametrize("machine", [Warp, Warpgroup])
def test_barriers_of_a_warp(machine: type[Machine]) -> None:
    made = machine("sm_80")
    made["%p"] = np.arange(made.lanes) % 32 < 4
    made["%m"] = np.where(np.arange(made.lanes) % 32 < 4, 0xF, 0xFFFFFFF0)
    made.run("bar.warp.sync -1; @%p bar.warp.sync 15; @!%p bar.warp.sync 0xfffffff0; bar.warp.sync %m;")


def test_what_a_warp_leaves_to_a_warpgroup() -> None:
    warp = Warp("sm_90a")
    with pytest.raises(
        warpsim.NotModelled, match=r"'bar\.sync' is not modelled; a warp executes .* and bar\.warp"
    ):
        warp.run("bar.sync 0;")
    with pytest.raises(warpsim.NotModelled, match=r"'wgmma' is not modelled; a warp executes"):
        warp.run("wgmma.fence.sync.aligned;")
