"""What a statement says is read once, and where it stands only for an error; warps multiply together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import IllegalInstruction, UndefinedBehavior
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.machine.opcodes.matrix import mma
from warpsim.machine.run import engines
from warpsim.observe.recording.matrix_events import Event
from warpsim.programs.interactive.machines import Machine, Warp, Warpgroup
from warpsim.ptx import source, statements
from warpsim.ptx.parser import parse
from warpsim.sums.execution.pipeline import execute_inputs
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace

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
SHARED = "st.shared.b32 [t+16384], 7; {} ld.shared.b32 %q0, [t+16384]; bar.warp.sync 0xffffffff;"
ORDER = "wgmma.fence.sync.aligned; fence.proxy.async;"
CLOSE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.sync 0;"

Counts = Counter[str]


def descriptor(start: int) -> int:
    return int(
        canonical_descriptor(
            start, TileShape(mn=64, k=16, element_bits=16, major="K"), swizzle="none"
        ).encode()
    )


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
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
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
    count(mma, "bind_statement")
    count(source.Source, "location")
    return seen


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        (Warp, f"{MOVES} {SHARED.format('')} {MMA}"),
        (Warpgroup, f"{MOVES} {SHARED.format('bar.sync 0;')} {MMA} {ORDER} {WGMMA} {WGMMA} {CLOSE}"),
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
    assert next(iter(filled(Warp("sm_90a")).steps(program))).instruction.target == "sm_90a"
    assert next(iter(filled(Warp("sm_80")).steps(program))).instruction.target == "sm_80"
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

    def counted(form: Any, inputs: Any, **settings: Any) -> Any:
        calls.append(inputs.registers["a"].shape)
        return execute_inputs(form, inputs, **settings)

    monkeypatch.setattr(engines, "execute_inputs", counted)
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
