"""Values that come of unwritten bytes: where they get nowhere, a launch with other bytes leaves the same."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.programs.launch.test_unwritten_reads import TEXT
from warpsim.isa.fragments import metadata_map
from warpsim.isa.instruction import Instruction
from warpsim.machine.grid import Launch
from warpsim.observe.checks.findings import LaunchFinding
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.repeated import repetition, taint

READ = "ld.shared.b32 %r2, [%a]; "
STORED = "@%p st.global.b32 [%y], %r3;"


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What is said of each launch: whether nothing that it leaves is open."""
    found, closed = list[bool](), taint.none_leaks
    monkeypatch.setattr(taint, "none_leaks", lambda *given: found.append(closed(*given)) or found[-1])
    return found


def launched(text: str, threads: int = 32, **options: Any) -> list[LaunchFinding]:
    x, y = np.arange(max(threads, 32), dtype=np.uint32), np.zeros(max(threads, 32), np.uint32)
    report = load_text(text)["k"](1, threads, [x, y], **options)
    return [each for each in report.hazards if each.kind == "uninitialised"]


def in_kernel(body: str) -> str:
    return TEXT.format(body=body).replace(
        ".reg .pred %p, %q;", ".reg .pred %p, %q, %s; .reg .b32 %z<40>; .reg .b64 %b;"
    )


Seen = tuple[str, str, str]


def seen(finding: LaunchFinding) -> Seen:
    """What a proof and executions with other bytes have in common: kind, severity and place."""
    return finding.kind, finding.severity, str(finding.location)


def twice(text: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[list[Seen], list[Seen]]:
    """The findings of a launch, and those of one that is always executed again."""
    first = launched(text, **options)
    with monkeypatch.context() as patch:
        patch.setattr(taint, "none_leaks", lambda *given: False)
        again = launched(text, **options)
    assert not any(each.influence == "none" for each in again)
    return [*map(seen, first)], [*map(seen, again)]


CLOSED = {
    "a register": "add.u32 %r3, %r2, 1;" + STORED,
    "another lane's bytes": (
        "st.shared.b32 [%a], %r2; bar.sync 0; xor.b32 %r4, %a, 4; ld.shared.b32 %r3, [%r4];" + STORED
    ),
    "written again": "mov.u32 %r2, 7; st.global.b32 [%y], %r2;",
    "bytes written again": READ
    + "st.shared.b32 [%a], %r2; st.shared.b32 [%a], 1; "
    + READ
    + "st.global.b32 [%y], %r2;",
    "words of 64 bits": (
        "mov.u32 %r3, tile; mov.b64 %o, {%r2, %r2}; mov.b64 %b, {%t, %t};"
        "bar.warp.sync -1; setp.ne.u32 %q, %t, 0; @%q bra END;"
        "st.shared.v2.b64 [%r3], {%o, %b}; ld.shared.v2.b32 {%r4, %r5}, [%r3+8];"
        "st.global.b32 [%y], %r5; END:"
    ),
    "a part of a vector": (
        "mov.u32 %r3, tile; bar.warp.sync -1; setp.ne.u32 %q, %t, 0; @%q bra END;"
        "st.shared.v2.b32 [%r3], {%r2, %t}; ld.shared.v2.b32 {%r4, %r5}, [%r3]; st.global.b32 [%y], %r5; END:"
    ),
    "a loop that it does not count": (
        "mov.u32 %r4, 0; LOOP: add.u32 %r3, %r2, %r3; add.u32 %r4, %r4, 1; setp.lt.u32 %q, %r4, 12;"
        "@%q bra LOOP;" + STORED
    ),
    "a copy into shared memory": (
        "cp.async.ca.shared.global [%a], [%x], 4; cp.async.commit_group; cp.async.wait_group 0;"
        "ld.shared.b32 %r3, [%a]; st.global.b32 [%y], %r3;"
    ),
    "a predicate that selects": "setp.gt.u32 %q, %r2, 9; selp.b32 %r3, 1, 2, %q;" + STORED,
    "another lane": "shfl.sync.bfly.b32 %r3, %r2, 3, 31, -1;" + STORED,
    "rows of a matrix": (
        "mov.u32 %r6, tile; shl.b32 %r4, %t, 4; and.b32 %r4, %r4, 112; add.u32 %r4, %r4, %r6;"
        "bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r4];" + STORED
    ),
    "a counter": "atom.global.add.u32 %r3, [%y], 1;",
    "local memory": "mov.u32 %r6, own; st.local.b32 [%r6], %r2; ld.local.b32 %r3, [%r6];" + STORED,
    "a matrix that is stored": (
        "and.b32 %r4, %t, 1; shl.b32 %r4, %r4, 4; mov.u32 %r3, tile; add.u32 %r4, %r4, %r3;"
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r2};"
    ),
}
OPEN = {
    "a stored value of another lane": "shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;" + STORED,
    "the number of a lane": "shfl.sync.idx.b32 %r3, %t, %r2, 31, -1;",
    "local memory that is never written": "mov.u32 %r6, own; ld.local.b32 %r3, [%r6];" + STORED,
    "rows of a matrix": (
        "mov.u32 %r6, tile; shl.b32 %r4, %t, 4; and.b32 %r4, %r4, 112; add.u32 %r4, %r4, %r6;"
        "bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r4]; setp.lt.u32 %q, %t, 21;"
        "@%q st.global.b32 [%y], %r3;"
    ),
    "a result": "st.global.b32 [%y], %r2;",
    "a product with zero": "mul.lo.u32 %r3, %r2, 0; st.global.b32 [%y], %r3;",
    "a guard": "setp.gt.u32 %q, %r2, 9; @%q mov.u32 %r3, 1;",
    "a guard of nothing": "setp.gt.u32 %q, %r2, 9; @%q add.u32 %r3, %r3, 1;",
    "a branch": "setp.gt.u32 %q, %r2, 9; @%q bra NEXT; NEXT:",
    "the end of all lanes": "or.b32 %r2, %r2, 1; setp.ne.u32 %q, %r2, 0; @%q exit;",
    "an address": "and.b32 %r3, %r2, 0; add.u32 %r3, %r3, %a; ld.shared.b32 %r4, [%r3];",
    "an address of a store": "and.b32 %r3, %r2, 0; add.u32 %r3, %r3, %a; st.shared.b32 [%r3], %t;",
    "a vote": "setp.gt.u32 %q, %r2, 9; vote.sync.any.pred %s, %q, -1;",
    "a barrier with a predicate": "setp.gt.u32 %q, %r2, 9; barrier.cta.red.popc.u32 %r3, 0, %q;",
    "bytes of another lane": (
        "st.shared.b32 [%a], %r2; bar.sync 0; xor.b32 %r4, %a, 60; ld.shared.b32 %r3, [%r4];" + STORED
    ),
    "a sum": "red.global.add.u32 [%y], %r2;",
    "a sum in shared memory": "red.shared.add.u32 [%a], 1;",
    "a carry": "add.cc.u32 %r3, %r2, %r2; addc.u32 %r4, 0, 0; st.global.b32 [%y], %r4;",
    "a copy": "and.b32 %r3, %r2, 0; cp.async.ca.shared.global [%a], [%x], 4, %r3; cp.async.wait_all;",
}


@pytest.mark.parametrize("use", CLOSED.values(), ids=CLOSED)
def test_where_open_values_get_nowhere_no_launch_is_executed_again(
    use: str, verdicts: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found is what a launch that is executed again finds."""
    launches = list[Launch]()
    executed = repetition.run
    monkeypatch.setattr(repetition, "run", lambda launch: launches.append(launch) or executed(launch))
    text = in_kernel(READ + use)
    text = text.replace(".target sm_80", ".target sm_90") if "stmatrix" in use else text
    assert {(each.severity, each.influence) for each in launched(text)} == {("note", "none")}
    assert (verdicts, len(launches)) == ([True], 1)
    launches.clear()
    first, again = twice(text, monkeypatch)
    assert first == again
    assert len(launches) == 1 + 2  # with taint, and with other bytes


@pytest.mark.parametrize("use", OPEN.values(), ids=OPEN)
def test_where_open_values_get_out_the_launch_is_executed_again(
    use: str, verdicts: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing depends on them: what is not followed is not a proof."""
    text = in_kernel(READ + use)
    first, again = twice(text, monkeypatch)
    assert first == again
    assert verdicts == [False]


@pytest.mark.parametrize(("cluster", "processes"), [(None, 1), (2, 1), (None, 2)])
@pytest.mark.parametrize("use", ["add.u32 %r3, %r2, 1;" + STORED, OPEN["a result"]], ids=["closed", "open"])
def test_what_was_not_followed_is_no_proof(use: str, cluster: int | None, processes: int) -> None:
    """Waves of clusters are not, nor those that other processes execute."""
    text = in_kernel(READ + use).replace(".target sm_80", ".target sm_90")
    x, y = np.zeros(1 << 13, np.uint32), np.zeros(1 << 13, np.uint32)
    report = load_text(text)["k"](256, 32, [x, y], cluster=cluster, processes=processes, checks="warn")
    severities = {each.severity for each in report.hazards if each.kind == "uninitialised"}
    assert severities == {"warning" if use == OPEN["a result"] else "note"}


def test_a_long_launch_is_not_followed(verdicts: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys take several times what checks take: other bytes are tried."""
    monkeypatch.setattr(taint, "_MOST_STATEMENTS", 10)
    found = launched(in_kernel(READ + CLOSED["a register"]))
    assert [(each.severity, each.influence) for each in found] == [("note", "none seen")]
    assert verdicts == [False]


def test_lanes_that_part_are_followed_each(verdicts: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """The upper half of a warp overwrites what is open; the lower half does not, and stores it."""
    body = READ + "setp.lt.u32 %q, %t, {}; @%q bra OVER; mov.u32 %r2, 5; OVER: st.global.b32 [%y], %r2;"
    for count, closed in ((20, True), (21, False)):
        verdicts.clear()
        first, again = twice(in_kernel(body.format(count)), monkeypatch)
        assert first == again
        assert verdicts == [closed]


def test_matrices_that_lanes_reach_apart_are_not_followed(verdicts: list[bool]) -> None:
    """Lanes of a warp come to an ldmatrix from two sides: those that are there last execute it for all."""
    body = READ + (
        "mov.u32 %r6, tile; setp.lt.u32 %q, %t, 9; @%q bra OTHER; add.u32 %r5, %r5, 1; OTHER: "
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r6]; " + STORED
    )
    assert {each.severity for each in launched(in_kernel(body), schedule=3)} <= {"note"}
    assert len(verdicts) == 1


# --- programs at random -----------------------------------------------------------------------------------

_COMPUTING = (
    "add.u32 {0}, {1}, {2};",
    "and.b32 {0}, {1}, {2};",
    "mov.b32 {0}, {1};",
    "mad.lo.u32 {0}, {1}, {2}, {0};",
    "@%p mov.b32 {0}, {1};",
    "@!%p add.u32 {0}, {1}, 3;",
    "setp.lt.u32 %s, {1}, {2}; selp.b32 {0}, {1}, {2}, %s;",
    "st.shared.b32 [%a], {1};",
    "ld.shared.b32 {0}, [%a];",
    "xor.b32 %r6, %a, 4; ld.shared.b32 {0}, [%r6];",
    "xor.b32 %r6, %a, 64; ld.shared.b32 {0}, [%r6];",
    "bar.sync 0; xor.b32 %r6, %a, 32; ld.shared.b32 {0}, [%r6]; bar.sync 0;",
    "@%p st.global.b32 [%y], {1};",
    "setp.lt.u32 %q, %t, {3}; @%q bra L{4}; mov.u32 {0}, {1}; L{4}:",
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{{0}, %r7}}, [%z39]; mov.b32 {1}, %r7;",
    "shfl.sync.bfly.b32 {0}, {1}, {3}, 31, -1;",
    "mov.u32 %r6, own; st.local.b32 [%r6], {1}; ld.local.b32 {0}, [%r6];",
    "mov.u32 %r6, own; ld.local.b32 {0}, [%r6+4];",
    "atom.shared.add.u32 {0}, [%a], 1;",
    "@%p red.shared.add.u32 [%a], {1};",
)
_FREE = tuple(f"%z{number}" for number in range(6))


def program(seed: int) -> str:
    """A kernel that computes with what it has not written, and stores some of it."""
    random = Random(seed)
    lines = ["mov.u32 %r6, tile; and.b32 %z39, %t, 7; shl.b32 %z39, %z39, 4; add.u32 %z39, %z39, %r6;"]
    lines += [f"mov.u32 {name}, {number};" for number, name in enumerate(_FREE)]
    for number in range(random.randint(3, 14)):
        names = (random.choice(_FREE), random.choice(_FREE), random.choice(_FREE))
        lines.append(random.choice(_COMPUTING).format(*names, random.randint(0, 31), number))
    lines.append(f"{random.choice(('', '@%p '))}st.global.b32 [%y], {random.choice(_FREE)};")
    return in_kernel("\n".join(lines))


def test_programs_that_leave_nothing_open_leave_the_same_with_other_bytes(
    verdicts: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof against executions with other bytes: it may miss something, and never says too much."""
    differing = 0
    for seed in range(120):
        first, again = twice(program(seed), monkeypatch, checks="warn")
        assert first == again, seed
        differing += ("uninitialised", "warning") in {each[:2] for each in again}
    assert verdicts.count(True) > 40
    assert differing > 20


# --- matrices -----------------------------------------------------------------------------------------------

FORMS = (
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 0, "sm_90a"),
    ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 0, "sm_90a"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 0, "sm_90a"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 0, "sm_80"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 0, "sm_89"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", 0, "sm_120a"),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 0, "sm_90a"),
    ("mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32", 0, "sm_80"),
    ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 0, "sm_80"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 0, "sm_90a"),
    ("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", 0, "sm_90a"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 0, "sm_90a"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 1, "sm_90a"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", 0, "sm_89"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", 0, "sm_90a"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 1, "sm_80"),
)
OTHERS = ((0x3C003C00, 0x12345678, 0xBADC0DE5), (0xDDDDDDDD, 0xAAAAAAAA))  # bits; of metadata, legal after


def words_of(mnemonic: str, count: int, random: np.random.Generator) -> Any:
    """Registers of an operand: small numbers of wide formats, and small bytes of others."""
    for name, dtype, bits in ((".f64", np.float64, np.uint64), (".tf32", np.float32, np.uint32)):
        if name in mnemonic:
            return random.integers(1, 9, (32, count)).astype(dtype).view(bits)
    return random.integers(0, 8, (32, count)).astype(np.uint32) * 0x0101


def kernel_of(form: Instruction, selector: int, hole: tuple[str, int, int]) -> str:
    """A kernel that loads the operands of a product from shared memory, of which a word was never written."""
    bits, lines, lists, slot = form.register_bits, list[str](), dict[str, str](), 0
    for role in ("d", *(name for name in "abce" if name in form.registers)):
        size = bits if role in "d" or bits == 64 else 32
        names = [f"%{role}{size}_{number}" for number in range(form.registers[role])]
        lists[role] = names[0] if role == "e" else f"{{{', '.join(names)}}}"
        lines += [f".reg .{'f' if size == 64 else 'b'}{size} {', '.join(names)};"]
        for number, name in enumerate(names) if role != "d" else ():
            at, missing = slot * 32 * size // 8, (role, number) == hole[:2]
            guard = f"setp.ne.u32 %q, %t, {hole[2]}; @%q " if missing else ""
            lines += [f"ld.global.b{size} {name}, [%x+{at}]; {guard}st.shared.b{size} [%s+{at}], {name};"]
            lines += [f"ld.shared.b{size} {name}, [%s+{at}];"]
            slot += 1
    given = ", ".join(lists[role] for role in "dabc")
    more = f", {lists['e']}, 0x{selector:x}" if "e" in lists else ""
    return f"""
.version 8.8
.target {form.target}
.address_size 64
.visible .entry k(.param .u64 x) {{
  .shared .align 16 .b8 tile[8192]; .reg .b64 %x, %o; .reg .b32 %t, %s; .reg .pred %q;
  ld.param.u64 %x, [x]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, {bits // 8}; add.u64 %x, %x, %o;
  mov.u32 %s, tile; mad.lo.u32 %s, %t, {bits // 8}, %s;
  {chr(10).join(lines)}
  {form.mnemonic} {given}{more};
  ret; }}
"""


@pytest.mark.parametrize(("mnemonic", "selector", "target"), FORMS)
def test_results_come_of_what_changes_them(
    mnemonic: str, selector: int, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lane of an operand with other bits: what is another in D is tainted by that lane's word."""
    form, random, made = warpsim.decode(mnemonic, target=target), np.random.default_rng(1), list[Any]()
    given = {role: words_of(mnemonic, form.registers[role], random) for role in "abc"}
    if form.sparse:
        given["e"] = np.full((32, 1), 0x44444444, np.uint32)
    options: dict[str, Any] = {"selector": selector} if form.sparse else {}
    monkeypatch.setattr(taint.MatrixOperands, "write", lambda self, d: made.append(d[0]))
    before = warpsim.execute(form, **given, **options)
    words = np.concatenate([np.ascontiguousarray(given[role].T).ravel() for role in given])
    for role in given:
        lanes = metadata_map(form, selector)[:, 0] if role == "e" else np.arange(32)
        register, lane = form.registers[role] - 1, int(random.choice(lanes))
        changed = np.zeros(form.matrix_shape("d"), np.bool_)
        for other in OTHERS[role == "e"]:
            own = given[role].copy()
            own[lane, register] ^= own.dtype.type(other)
            after = warpsim.execute(form, **given | {role: own}, **options)
            changed |= warpsim.unpack(form, "d", before) != warpsim.unpack(form, "d", after)
        text = kernel_of(form, selector, (role, register, lane))
        load_text(text)["k"](
            1, 32, [words], observers=[taint.TaintTracker()], checks="off", undefined="fallback"
        )
        tainted = made.pop() != 0
        assert not (changed & ~tainted).any(), role
        assert 0 < tainted.sum() <= tainted.size // 2, role


SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
ONES = "{%z0, %z0, %z0, %z0}"
# 16 rows of A, of which some are written, times ones; the sum, in other registers, through shared memory.
TILE = f"""
  and.b32 %r6, %t, 15; shl.b32 %r4, %r6, 5; shr.u32 %r5, %t, 4; shl.b32 %r5, %r5, 4; add.u32 %r4, %r4, %r5;
  mov.u32 %r5, rows; add.u32 %r4, %r4, %r5; setp.lt.u32 %s, %r6, WRITTEN; mov.b32 %z0, 0x3C003C00;
  @%s st.shared.v4.b32 [%r4], {ONES}; bar.sync 0;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%z1, %z2, %z3, %z4}}, [%r4]; mov.b32 %z5, METADATA;
  {SPARSE} {{%z11, %z12, %z13, %z14}}, {{%z1, %z2, %z3, %z4}}, {ONES}, {ONES}, %z5, 0x0;
  mov.b32 %z5, 0x44444444;
  {SPARSE} {{%z12, %z11, %z14, %z13}}, {ONES}, {ONES}, {{%z11, %z12, %z13, %z14}}, %z5, 0x0;
  mov.u32 %r5, out; mad.lo.u32 %r6, %t, 16, %r5; st.shared.v4.b32 [%r6], {{%z11, %z12, %z13, %z14}};
  bar.sync 0; xor.b32 %r7, %t, 3; mad.lo.u32 %r6, %r7, 16, %r5; shr.u32 %r7, %t, 2;
  ld.shared.v4.b32 {{%z21, %z22, %z23, %z24}}, [%r6]; setp.lt.u32 %q, %r7, USED;
  @%q st.global.b32 [%y], %z21; @%q st.global.b32 [%y+128], %z22;
  add.u32 %r7, %r7, 8; setp.lt.u32 %q, %r7, USED;
  @%q st.global.b32 [%y+256], %z23; @%q st.global.b32 [%y+384], %z24;
"""
UNDEFINED = "setp.eq.u32 %q, %t, 28; selp.b32 %r3, 0x00004444, 0x44444444, %q;"  # in row 15
UNWRITTEN = "mov.u32 %r5, tile; ld.shared.b32 %r2, [%r5+120]; and.b32 %r2, %r2, 0x11111111;"
UNWRITTEN += "or.b32 %r2, %r2, 0x44444444;"  # 0100 or, of equal indices, 0101


@pytest.mark.parametrize(
    ("written", "metadata", "used", "undefined", "closed"),
    [
        (12, "0x44444444", 12, "fallback", True),  # rows behind the matrix
        (12, "0x44444444", 13, "fallback", False),
        (5, "0x44444444", 5, "fallback", True),
        (5, "0x44444444", 9, "fallback", False),
        (16, "%r3", 15, "fallback", True),
        (16, "%r3", 16, "fallback", False),
        (14, "%r3", 14, "fallback", True),  # and both
        (14, "%r3", 15, "fallback", False),
        (16, "%r2", 0, "fallback", True),  # metadata that were never written
        (16, "%r2", 1, "fallback", False),
        (16, "%r2", 0, "error", False),  # which then may be an error
    ],
)
def test_rows_of_a_product_that_are_not_stored(
    written: int,
    metadata: str,
    used: int,
    undefined: Any,
    closed: bool,
    verdicts: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is stored of a product is what says whether rows matter that nothing has written."""
    body = TILE.replace("WRITTEN", str(written)).replace("METADATA", metadata).replace("USED", str(used))
    text = in_kernel(UNDEFINED + UNWRITTEN + body).replace(".version 8.0", ".version 8.5")
    text = text.replace(".shared .b32 tile", ".shared .align 16 .b8 rows[512], out[512]; .shared .b32 tile")

    def found() -> list[LaunchFinding]:
        x, y = np.arange(32, dtype=np.uint32), np.zeros((4, 32), np.uint32)
        return [*load_text(text)["k"](1, 32, [x, y], undefined=undefined).hazards]

    first = found()
    monkeypatch.setattr(taint, "none_leaks", lambda *given: False)
    again = found()
    if closed:  # what is proved of rows of undefined metadata needs no note
        assert {each.influence for each in first if each.kind == "uninitialised"} == {"none"}
        assert "undefined metadata" not in {each.kind for each in first}
        again = [each for each in again if each.kind != "undefined metadata"]
    assert [*map(seen, first)] == [*map(seen, again)]
    assert verdicts == [closed]
