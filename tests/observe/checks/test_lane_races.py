"""Lanes of one warp that touch the same shared memory, which nothing orders, and random programs of them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.helpers.compilation import loops_at_once, no_loops
from warpsim.base.errors import UndefinedBehavior
from warpsim.observe.checks.findings import LaunchFinding
from warpsim.programs.launch.launching import load_text

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<9>; .shared .align 4 .b8 s[256];
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r1, 2; mov.u32 %r4, s;
add.u32 %r5, %r4, %r3; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %r2, 16; cvt.u64.u32 %d2, %r3;
add.u64 %d1, %d1, %d2;
"""
WRITE_BY_ONE = "@!%p1 bra NEXT;\nadd.u32 %r6, %r1, 7;\nst.shared.u32 [%r5], %r6;\nNEXT:\n"
STORE = "add.u32 %r6, %r1, 7;\nst.shared.u32 [%r5], %r6;\n"
READ = (
    "and.b32 %r7, %r3, 128;\nadd.u32 %r7, %r7, %r4;\nld.shared.u32 %r8, [%r7];\nst.global.u32 [%d1], %r8;\n"
)
READ_BY_MOST = f"setp.lt.u32 %p3, %r2, 4;\n@%p3 bra LAST;\n{READ}LAST:\n"
NEIGHBOUR = "xor.b32 %r7, %r5, 4;\nld.shared.u32 %r8, [%r7];\nst.global.u32 [%d1], %r8;\n"
HALVES = "xor.b32 %r7, %r5, 64;\nld.shared.u32 %r8, [%r7];\nst.global.u32 [%d1], %r8;\n"
MASKS = "selp.u32 %r9, 0x0000ffff, 0xffff0000, %p2;\nbar.warp.sync %r9;\n"
FLAG = """@!%p1 bra OTHERS;
st.shared.u32 [%r4], 7;
membar.cta;
st.volatile.shared.u32 [%r4+4], 1;
OTHERS:
ld.volatile.shared.u32 %r9, [%r4+4];
setp.eq.u32 %p4, %r9, 0;
@%p4 bra OTHERS;
membar.cta;
ld.shared.u32 %r8, [%r4];
st.global.u32 [%d1], %r8;
"""


def two_ways(one: str, other: str) -> str:
    """Half a warp does one, the other half the other."""
    return f"@%p2 bra NEXT;\n{one};\nret;\nNEXT: {other};\n"


def run(body: str, threads: int = 64, **options: object) -> np.ndarray:
    found = np.zeros(threads, np.uint32)
    load_text(f"{HEAD}{body}ret; }}")["k"](1, threads, [found], **options)
    return found


def findings(body: str, threads: int = 64, **options: object) -> list[LaunchFinding]:
    arguments = [np.zeros(threads, np.uint32)]
    report = load_text(f"{HEAD}{body}ret; }}")["k"](1, threads, arguments, checks="warn", **options)
    return [found for found in report.hazards if found.kind == "race"]


@pytest.mark.parametrize("read", [READ, READ_BY_MOST])
def test_one_lane_writes_and_others_read(read: str) -> None:
    with pytest.raises(UndefinedBehavior) as raised:
        run(WRITE_BY_ONE + read)
    lane, line = (1, 15) if read == READ else (4, 17)
    assert raised.value.message == (
        "race: ld.shared.u32 reads byte 0x0 of shared memory (s), which lane 0 of the same warp has written "
        f"at line 11 without a bar.warp.sync in between [CTA (0, 0, 0), warp 0, lane {lane}]"
    )
    assert raised.value.location is not None
    assert raised.value.location.line == line
    assert raised.value.finding.fix == f"put bar.warp.sync (__syncwarp()) between line 11 and line {line}"


@pytest.mark.parametrize("schedule", ["program", "latest", "earliest", 1, 2])
@pytest.mark.parametrize("read", [READ, NEIGHBOUR, HALVES])
def test_lanes_exchange_side_by_side(read: str, schedule: str | int) -> None:
    """No lane has taken another path: since Volta that orders nothing."""
    (race,) = findings(STORE + read, schedule=schedule)
    assert (race.severity, race.location.line) == ("error", 12 if read != READ else 13)
    assert race.other is not None
    assert race.other.line == 10


@pytest.mark.parametrize(
    "between",
    [
        "bar.warp.sync -1;",
        "bar.warp.sync 0xffffffff;",
        "bar.sync 0;",
        "barrier.sync 1, 64;",
        "bar.red.or.pred %p5, 0, %p1;",
    ],
)
def test_what_orders_lanes(between: str) -> None:
    for body in (WRITE_BY_ONE + between + READ, f"{STORE}{between}\n{NEIGHBOUR}"):
        assert not findings(body)
    assert run(f"{WRITE_BY_ONE}{between}\n{READ}").tolist() == [7] * 32 + [39] * 32


@pytest.mark.parametrize(
    "between", ["shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;", "vote.sync.any.pred %p5, %p1, -1;"]
)
def test_what_makes_lanes_wait_and_is_not_promised_to_order_memory(between: str) -> None:
    (race,) = findings(f"{STORE}{between}\n{NEIGHBOUR}")
    assert (race.severity, race.message) == (
        "warning",
        "race: ld.shared.u32 reads byte 0x4 of shared memory (s+4), which lane 1 of the same warp has "
        "written at line 10 with only .sync statements in between that PTX does not promise to order memory "
        "[CTA (0, 0, 0), warp 0, lane 0]",
    )
    assert run(f"{STORE}{between}\n{NEIGHBOUR}")[:2].tolist() == [8, 7]


@pytest.mark.parametrize("between", ["membar.cta;", "fence.acq_rel.cta;", "activemask.b32 %r9;"])
def test_what_orders_nothing(between: str) -> None:
    """A fence without strong accesses around it synchronises with none."""
    (race,) = findings(f"{STORE}{between}\n{NEIGHBOUR}")
    assert race.severity == "error"


def test_a_flag_orders_lanes() -> None:
    assert not findings(FLAG, 32)


def test_members_of_a_mask_are_ordered_and_no_others() -> None:
    assert not findings(STORE + MASKS + NEIGHBOUR)
    (race,) = findings(STORE + MASKS + HALVES)
    assert (race.severity, race.location.line) == ("error", 14)


def test_order_is_passed_on_from_mask_to_mask() -> None:
    """Lanes 0 to 15 meet, then lanes 8 to 23: what lane 0 has stored is before what lane 20 reads."""
    first = "setp.lt.u32 %p4, %r2, 16;\n@%p4 bar.warp.sync 0x0000ffff;\n"
    other = "setp.ge.u32 %p5, %r2, 8;\nsetp.lt.and.u32 %p5, %r2, 24, %p5;\n@%p5 bar.warp.sync 0x00ffff00;\n"
    read = "setp.eq.u32 %p6, %r2, 20;\n@%p6 ld.shared.u32 %r8, [%r4];\n"
    assert not findings(WRITE_BY_ONE + first + other + read, 32)
    assert len(findings(WRITE_BY_ONE + other + first + read, 32)) == 1


@pytest.mark.parametrize(
    "body",
    [
        f"{WRITE_BY_ONE}@%p1 ld.shared.u32 %r8, [%r5];\n",  # what a lane has written itself
        f"{STORE}ld.shared.u32 %r8, [%r5];\nst.shared.u32 [%r5], %r8;\n",
        two_ways("st.shared.u32 [%r5], 1", "st.shared.u32 [%r5], 2"),  # places of their own
        two_ways("st.shared.u32 [%r4], 1", "st.shared.u32 [%r4], 1"),  # the same value
        "st.shared.u32 [%r4], 5;\nld.shared.u32 %r8, [%r4];\n",  # all lanes have written what they read
        "st.shared.u32 [%r4], %r1;\n",  # one of the values stays
        two_ways("st.volatile.shared.u32 [%r4], 1", "st.volatile.shared.u32 [%r4], 2"),
        two_ways("atom.shared.add.u32 %r8, [%r4], 1", "atom.shared.add.u32 %r8, [%r4], 2"),
        "atom.shared.add.u32 %r8, [%r4], 1;\natom.shared.add.u32 %r8, [%r4], 1;\n",
    ],
)
def test_no_race(body: str) -> None:
    assert not findings(f"st.shared.u32 [%r5], 0;\nbar.sync 0;\n{body}", 32)


def test_two_ways_write() -> None:
    body = "@%p2 bra NEXT;\nst.shared.u32 [%r4], 1;\nret;\nNEXT: st.shared.u32 [%r4], 2;\n"
    (race,) = findings(body, 32)
    assert (
        "writes byte 0x0 of shared memory (s), which several lanes of the same warp have written"
        in race.message
    )


@pytest.mark.parametrize(
    ("read", "whom"),
    [
        ("@%p1 ld.shared.u32 %r8, [%r4];\n", "lane 0 of the same warp has"),
        ("ld.shared.u32 %r8, [%r4];\n", "several lanes of the same warp have"),
        ("@%p2 ld.shared.u32 %r8, [%r4];\n@!%p2 ld.shared.u32 %r8, [%r4];\n", "several lanes"),
    ],
)
def test_a_read_before_a_write(read: str, whom: str) -> None:
    write = "setp.eq.u32 %p3, %r2, 31;\n@%p3 st.shared.u32 [%r4], 5;\n"
    before = "st.shared.u32 [%r5], 0;\nbar.sync 0;\n"
    (race,) = findings(before + read + write, 32)
    assert f"writes byte 0x0 of shared memory (s), which {whom}" in race.message
    assert not findings(f"{before}{read}bar.warp.sync -1;\n{write}", 32)


def test_it_is_found_in_every_schedule() -> None:
    for seed in range(3):
        with pytest.raises(UndefinedBehavior, match=r"of the same warp ha(s|ve) "):
            run(WRITE_BY_ONE + READ_BY_MOST, schedule=seed)


def test_it_may_be_listed_or_left() -> None:
    assert run(WRITE_BY_ONE + READ, checks="off").tolist() == [7] * 32 + [39] * 32
    assert run(WRITE_BY_ONE + READ, checks="warn").tolist() == [7] * 32 + [39] * 32


# --- random programs ------------------------------------------------------------------------------------

Step = tuple[str, frozenset[int], int]  # what lanes do, and to which word


def _program(random: Random, *, masks: bool) -> list[Step]:
    """Eight steps or so: one lane stores, some load, some meet."""
    found = list[Step]()
    for _ in range(random.randrange(3, 12)):
        what = random.choice(["st", "ld", "ld", "meet"])
        lanes = frozenset(random.sample(range(32), random.choice([1, 2, 5])))
        if what == "st":
            lanes = frozenset([min(lanes)])
        if what == "meet" and not masks:
            lanes = frozenset(range(32))
        found.append((what, lanes, random.randrange(2)))
    return found


def _text(program: list[Step]) -> str:
    """One statement a line, from line 11 on, each behind a line with its guard."""
    lines = ["mov.u32 %r10, 1;\nshl.b32 %r10, %r10, %r2;\n"]
    for number, (what, lanes, word) in enumerate(program):
        mask = sum(1 << lane for lane in lanes)
        lines.append(f"and.b32 %r11, %r10, {mask}; setp.ne.u32 %p7, %r11, 0;\n")
        statement = {
            "st": f"st.shared.u32 [%r4+{4 * word}], {number + 1};",
            "ld": f"ld.shared.u32 %r8, [%r4+{4 * word}];",
            "meet": f"bar.warp.sync {mask};",
        }[what]
        lines.append(f"@%p7 {statement}\n")
    return "".join(lines)


def _races(program: list[Step]) -> set[tuple[int, int]]:
    """Pairs of steps that are in a race: by the events that each lane knows of, step by step."""
    known = [set[tuple[int, int]]() for _ in range(32)]
    found = set[tuple[int, int]]()
    done = list[tuple[int, int]]()  # steps and lanes
    for number, (what, lanes, word) in enumerate(program):
        if what == "meet":
            together = set().union(*(known[lane] for lane in lanes))
            for lane in lanes:
                known[lane] = set(together)
            continue
        for lane in lanes:
            for before, other in done:
                kind, _, place = program[before]
                if place == word and "st" in (kind, what) and (before, other) not in known[lane]:
                    found.add((before, number))
        done += [(number, lane) for lane in lanes]
        for lane in lanes:
            known[lane].add((number, lane))
    return found


@pytest.mark.parametrize("looks", [no_loops, loops_at_once])
@pytest.mark.parametrize("masks", [False, True])
def test_random_programs(looks: object, masks: bool) -> None:
    """Nothing is found that is not a race; and with masks of whole warps something wherever there is any."""
    random, racy = Random(1), 0
    for _ in range(60):
        program = _program(random, masks=masks)
        expected = _races(program)
        with looks():  # type: ignore[operator]
            found = findings(_text(program), 32)
        pairs = {
            ((race.other.line - 12) // 2, (race.location.line - 12) // 2) for race in found if race.other
        }
        assert pairs <= expected, program
        if not masks:
            assert bool(pairs) == bool(expected), program
        racy += bool(expected)
    assert 10 < racy < 55
