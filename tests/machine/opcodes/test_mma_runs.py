"""mma one behind another leave what each by itself leaves: bits, counts, findings, errors."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.families import usual
from warpsim.base.errors import WarpsimError
from warpsim.machine.opcodes.matrix import mma_runs
from warpsim.machine.run import basic_blocks, execute
from warpsim.machine.run.basic_blocks import STATEMENTS
from warpsim.machine.run.events import MatrixExecution, Observer
from warpsim.machine.run.mma_batches import MmaBatch
from warpsim.machine.run.wave import Wave
from warpsim.programs.launch.launching import load_text

FORMS = (
    ("sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 32),
    ("sm_80", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 32),
    ("sm_80", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", 32),
    ("sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 32),
    ("sm_80", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 64),
    ("sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 32),
    ("sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 32),
    ("sm_80", "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 32),
    ("sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 32),
    ("sm_80", "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", 32),
    ("sm_90", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 32),
    ("sm_120a", "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32", 32),
)
SPARSE = next(form for form in FORMS if "ordered_metadata" in form[1])
POOL = 64  # registers that statements read and write


def _vector(random: Random, count: int, *, apart: bool) -> str:
    names = random.sample(range(POOL), count) if apart else [random.randrange(POOL) for _ in range(count)]
    return "{" + ", ".join(f"%v{name}" for name in names) + "}"


def text(random: Random, form: tuple[str, str, int], count: int, more: str = "") -> str:
    """A kernel that loads a pool of registers, multiplies at random, twice, and stores the pool."""
    target, mnemonic, bits = form
    held = warpsim.decode(mnemonic, target=target).registers
    lines = []
    for _ in range(count):
        d = _vector(random, held["d"], apart=True)
        operands = [d, *(_vector(random, held[role], apart=False) for role in "ab")]
        operands.append(d if random.random() < 0.5 else _vector(random, held["c"], apart=False))
        if "e" in held:
            operands += [f"%m{random.randrange(2)}", "0"]
        lines.append(f"{mnemonic} {', '.join(operands)};")
        if random.random() < 0.05:
            lines.append("mov.u32 %r0, %r0;")
    size = bits // 8
    loads = "\n".join(f"ld.global.b{bits} %v{place}, [%x + {32 * size * place}];" for place in range(POOL))
    stores = "\n".join(f"st.global.b{bits} [%x + {32 * size * place}], %v{place};" for place in range(POOL))
    lines = "\n".join(lines)
    return f""".version 8.7
.target {target}
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 m)
{{
  .reg .b64 %x, %m, %o; .reg .b{bits} %v<{POOL}>; .reg .b32 %m<2>, %r<4>; .reg .pred %p;
  ld.param.u64 %x, [x]; ld.param.u64 %m, [m];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; and.b32 %r2, %r0, 31; shr.u32 %r0, %r0, 5;
  mov.u32 %r3, %ntid.x; shr.u32 %r3, %r3, 5; mad.lo.u32 %r0, %r1, %r3, %r0;
  mul.wide.u32 %o, %r2, 4; add.u64 %m, %m, %o; ld.global.b32 %m0, [%m]; ld.global.b32 %m1, [%m + 128];
  mul.lo.u32 %r1, %r0, {32 * size * POOL}; mad.lo.u32 %r1, %r2, {size}, %r1;
  cvt.u64.u32 %o, %r1; add.u64 %x, %x, %o;
{loads}
  mov.u32 %r3, 0;
AGAIN:
{lines}
{more}
  add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 3; @%p bra AGAIN;
{stores}
  ret;
}}
"""


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements each run had that was executed at once."""
    found, run = list[int](), MmaBatch.run

    def noting(members: MmaBatch, *given: Any) -> bool:
        if done := run(members, *given):
            found.append(members.past - members.first)
        return done

    monkeypatch.setattr(MmaBatch, "run", noting)
    monkeypatch.setattr(execute, "HOT", 1)
    monkeypatch.setattr(basic_blocks, "HOT", 1)
    return found


def left(kernel: Any, arrays: list[Any], block: int, **options: Any) -> Any:
    """What a launch leaves and says."""
    given = [array.copy() for array in arrays]
    try:
        report = kernel(2, block, given, **options)
    except WarpsimError as error:
        return [array.tobytes() for array in given], str(error)
    return [array.tobytes() for array in given], list(map(str, report.hazards)), report.fidelity


def compare(
    monkeypatch: pytest.MonkeyPatch, source: str, arrays: list[Any], block: int, **options: Any
) -> None:
    """Compare a launch whose statements are interpreted with one of runs."""
    target = source.split(".target ")[1].split()[0]
    kernel = load_text(source, target=target)["k"]
    monkeypatch.setenv(STATEMENTS, "interpreted")
    expected = left(kernel, arrays, block, **options)
    monkeypatch.setenv(STATEMENTS, "compiled")
    assert left(kernel, arrays, block, **options) == expected
    assert left(kernel, arrays, block, **options) == expected


def arrays_for(
    rng: np.random.Generator, bits: int, block: int, nibbles: Any = (4, 8, 9, 12, 13, 14)
) -> list[Any]:
    """A pool for each warp, of any bits, and two words of metadata a lane."""
    pool = rng.integers(0, 1 << 32, (2 * block // 32, POOL, 32 * bits // 32), np.uint32)
    fields = rng.choice(nibbles, (64, 8)).astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))
    return [pool, fields.sum(axis=1, dtype=np.uint32)]


@pytest.mark.parametrize("seed", range(usual(2, 4)))
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[1].split("aligned.")[1])
def test_runs_at_random(
    form: tuple[str, str, int], seed: int, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registers that depend on each other part a run; some D are written twice."""
    random, rng = Random(f"{form} {seed}"), np.random.default_rng(seed)
    block = random.choice([32, 96])
    arrays = arrays_for(rng, form[2], block)
    arrays[0][::2, ::2] &= 0x807F_80FF  # half of these are zero or subnormal in most formats
    compare(
        monkeypatch, text(random, form, 40), arrays, block, undefined=random.choice(["error", "fallback"])
    )
    assert ran
    assert max(ran) > 1


@pytest.mark.parametrize("most", [1, 64])
def test_batches_of_few_lanes(most: int, ran: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mma_runs, "_MOST", 64 * most)
    arrays = arrays_for(np.random.default_rng(0), 32, 96)
    compare(monkeypatch, text(Random(1), FORMS[0], 30), arrays, 96)
    assert ran


@pytest.mark.parametrize("undefined", ["error", "fallback"])
@pytest.mark.parametrize("seed", range(3))
def test_metadata_without_a_meaning(
    seed: int, undefined: str, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error or the finding is that of the first statement and warp, whose rows have other values then."""
    random, rng = Random(seed), np.random.default_rng(seed)
    arrays = arrays_for(rng, 32, 64, nibbles=range(16))
    compare(monkeypatch, text(random, SPARSE, 30), arrays, 64, undefined=undefined)
    assert bool(ran) == (undefined == "fallback")


_REST = "{%v7, %v8}, {%v0, %v1, %v2, %v3};"
AMONG = (
    "@%p bra SOME; SOME:",  # %p is not written at first
    f"{FORMS[0][1]} {{%v0, %v1, %v2, _}}, {{%v3, %v4, %v5, %v6}}, {_REST}",
    f"{FORMS[0][1]} {{%v0, %v1, %v2, %v9}}, {{%v3, %v4, %v5, 0}}, {_REST}",
    f"setp.eq.u32 %p, %r2, 40; @!%p {FORMS[0][1]} {{%v0, %v1, %v2, %v9}}, {{%v3, %v4, %v5, %v6}}, {_REST}",
)


@pytest.mark.parametrize("more", AMONG)
@pytest.mark.parametrize("schedule", ["program", "random:1"])
def test_others_among_them(more: str, schedule: str, ran: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_for(np.random.default_rng(3), 32, 96)
    compare(monkeypatch, text(Random(2), FORMS[0], 20, more), arrays, 96, schedule=schedule)


def test_lanes_that_are_not_all_there(ran: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A block with half a warp is undefined, and exited warps leave the others to the interpreter."""
    arrays = arrays_for(np.random.default_rng(4), 32, 96)
    compare(monkeypatch, text(Random(5), FORMS[0], 20), arrays, 80)
    assert not ran
    leaves = text(Random(5), FORMS[0], 20).replace(
        "AGAIN:\n", "AGAIN:\n setp.eq.u32 %p, %r0, 1; @%p exit;\n", 1
    )
    compare(monkeypatch, leaves, arrays, 96)


PARTIAL = f"""{{ .reg .b32 %w<10>;
setp.lt.u32 %p, %r2, 16; @%p mov.b32 %w0, 1; @%p mov.b32 %w9, 2;
{FORMS[0][1]} {{%w0, %w1, %w2, %w3}}, {{%v1, %v2, %v3, %v4}}, {_REST}
{FORMS[0][1]} {{%w4, %w5, %w6, %w7}}, {{%READ, %v3, %v4, %v5}}, {_REST}
add.u32 %v0, %v0, %w0; xor.b32 %v1, %v1, %w7; }}"""


@pytest.mark.parametrize(("read", "together"), [("%v2", [2]), ("%w9", [])])
def test_registers_that_some_lanes_have_written(
    read: str, together: list[int], ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may write them, and does not mind those of others; it does not read them."""
    more = PARTIAL.replace("%READ", read)
    arrays = arrays_for(np.random.default_rng(3), 32, 96)
    source = text(Random(2), FORMS[0], 0, more)
    assert ("never written" in str(left(load_text(source)["k"], arrays, 96)[1])) == (read == "%w9")
    ran.clear()
    compare(monkeypatch, source, arrays, 96)
    assert sorted(set(ran)) == together


def test_runs_begin_with_the_first_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other basic blocks have to be compiled, and wait until they are hot."""
    found, run = list[bool](), MmaBatch.run
    monkeypatch.setattr(MmaBatch, "run", lambda *given: found.append(run(*given)) or found[-1])
    source = text(Random(6), FORMS[0], 0, PARTIAL.replace("%READ", "%v2"))
    compare(
        monkeypatch, source.replace("@%p bra AGAIN;", ""), arrays_for(np.random.default_rng(5), 32, 64), 64
    )
    assert found == [True, True]  # of two launches


class _Watcher(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[int, bytes]] = []

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Keep D."""
        self.seen.append((execution.pc, execution.d.tobytes()))


def test_observers_of_each_see_each(ran: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, kernel = (
        arrays_for(np.random.default_rng(5), 32, 64),
        load_text(text(Random(6), FORMS[0], 20))["k"],
    )
    seen = []
    for way in ("interpreted", "compiled"):
        monkeypatch.setenv(STATEMENTS, way)
        watcher = _Watcher()
        left(kernel, arrays, 64, observers=[watcher])
        seen.append(watcher.seen)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 60
    assert not ran
