"""Exchange between lanes against the manual's pseudo code, lane by lane; who waits for whom; deadlocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.lane_kernels import run
from warpsim.base.errors import Fault, IllegalInstruction, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

Words = npt.NDArray[Any]
THREADS, CTAS = 96, 3
COUNT = THREADS * CTAS


@pytest.fixture
def random(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, request.node.name)))


def words(random: np.random.Generator, bits: int = 32, few: bool = False) -> Words:
    top = 3 if few else 2**bits - 1
    return random.integers(0, top, COUNT, dtype=f"u{bits // 8}", endpoint=True)


def tiled(random: np.random.Generator) -> Words:
    """Masks that split each warp into groups of random lanes; each lane has that of its group."""
    masks = np.zeros(COUNT, np.uint32)
    for warp in range(COUNT // 32):
        group = random.integers(0, random.integers(1, 5), 32)
        for lane in range(32):
            masks[warp * 32 + lane] = sum(1 << other for other in range(32) if group[other] == group[lane])
    return masks


def members(masks: Words, lane: int) -> list[int]:
    """The numbers, in the grid, of the lanes that a lane's mask names."""
    return [lane // 32 * 32 + bit for bit in range(32) if int(masks[lane]) >> bit & 1]


# --- oracles ----------------------------------------------------------------------------------------


def slow_shuffle(mode: str, a: Words, b: Words, c: Words, masks: Words) -> tuple[list[int], list[int]]:
    d, p = [], []
    for thread in range(COUNT):
        lane, warp = thread % 32, thread // 32 * 32
        bval, cval, segment = int(b[thread]) & 31, int(c[thread]) & 31, int(c[thread]) >> 8 & 31
        most, least = (lane & segment) | (cval & ~segment & 31), lane & segment
        j = {
            "up": lane - bval,
            "down": lane + bval,
            "bfly": lane ^ bval,
            "idx": least | (bval & ~segment & 31),
        }[mode]
        inside = j >= most if mode == "up" else j <= most
        j = j if inside else lane
        d.append(int(a[warp + j]) if int(masks[thread]) >> j & 1 else 0)
        p.append(int(inside))
    return d, p


VOTES: dict[str, Callable[[list[bool]], bool]] = {
    "all": all,
    "any": any,
    "uni": lambda votes: len(set(votes)) == 1,
}


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def fold(name: str, values: list[int], kind: str) -> int:
    order: Any = signed if kind == "s32" else int
    total = values[0]
    for value in values[1:]:
        total = {
            "add": (total + value) % 2**32,
            "min": min(total, value, key=order),
            "max": max(total, value, key=order),
            "and": total & value,
            "or": total | value,
            "xor": total ^ value,
        }[name]
    return total


# --- shfl ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("clamp", ["any", "warp"])
def test_shuffle(mode: str, clamp: str, random: np.random.Generator) -> None:
    a, b, c, m = words(random), words(random), words(random), tiled(random)
    if clamp == "warp":
        c[:] = 0 if mode == "up" else 0x1F
        m[:] = 0xFFFF_FFFF
    body = f"shfl.sync.{mode}.b32 %d|%p0, %a, %b, %c, %m; selp.u32 %e, 1, 0, %p0;"
    found = run(body, {"a": a, "b": b, "c": c, "m": m}, {"d": 32, "e": 32}, threads=THREADS, ctas=CTAS)
    d, p = slow_shuffle(mode, a, b, c, m)
    assert found["d"].tolist() == d
    assert found["e"].tolist() == p


def test_shuffle_of_old(random: np.random.Generator) -> None:
    a, b = words(random), words(random)
    body = "shfl.bfly.b32 %d, %a, %b, 31; shfl.down.b32 %e|%p0, %a, 3, 0x1f;"
    found = run(body, {"a": a, "b": b}, {"d": 32, "e": 32}, threads=THREADS, ctas=CTAS, target="sm_70")
    everyone, limit, three = (np.full(COUNT, x, np.uint32) for x in (0xFFFF_FFFF, 31, 3))
    assert found["d"].tolist() == slow_shuffle("bfly", a, b, limit, everyone)[0]
    assert found["e"].tolist() == slow_shuffle("down", a, three, limit, everyone)[0]


def test_shuffle_of_old_is_gone() -> None:
    module = load_text(
        ".version 6.4\n.target sm_70\n.entry k() { .reg .b32 %r<3>; shfl.idx.b32 %r1, %r2, 0, 31; }"
    )
    with pytest.raises(IllegalInstruction, match=r"shfl without \.sync is not in PTX 6\.4 and later"):
        module["k"](1, 32)


# --- vote, match, redux, elect ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["all", "any", "uni", "ballot"])
@pytest.mark.parametrize("negated", ["", "!"])
def test_vote(mode: str, negated: str, random: np.random.Generator) -> None:
    a, m = (words(random) % 5 == 0).astype(np.uint32), tiled(random)
    take = "vote.sync.ballot.b32 %d" if mode == "ballot" else f"vote.sync.{mode}.pred %p1"
    body = f"setp.ne.u32 %p0, %a, 0; {take}, {negated}%p0, %m;"
    body += "" if mode == "ballot" else " selp.u32 %d, 1, 0, %p1;"
    found = run(body, {"a": a, "m": m}, {"d": 32}, threads=THREADS, ctas=CTAS)["d"]
    for lane in range(COUNT):
        named = members(m, lane)
        votes = [bool(a[one]) != bool(negated) for one in named]
        wanted = (
            sum(1 << one % 32 for one, vote in zip(named, votes, strict=True) if vote)
            if mode == "ballot"
            else int(VOTES[mode](votes))
        )
        assert int(found[lane]) == wanted


@pytest.mark.parametrize("bits", [32, 64])
def test_match(bits: int, random: np.random.Generator) -> None:
    a, m = words(random, bits, few=True), tiled(random)
    a[:32] = 7
    body = (
        f"match.any.sync.b{bits} %d, %a, %m; match.all.sync.b{bits} %e|%p0, %a, %m; selp.u32 %f, 1, 0, %p0;"
    )
    found = run(body, {"a": a, "m": m}, {"d": 32, "e": 32, "f": 32}, threads=THREADS, ctas=CTAS)
    for lane in range(COUNT):
        same = [one for one in members(m, lane) if a[one] == a[lane]]
        alike = same == members(m, lane)
        assert int(found["d"][lane]) == sum(1 << one % 32 for one in same)
        assert int(found["e"][lane]) == (int(m[lane]) if alike else 0)
        assert int(found["f"][lane]) == alike


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32")),
        *((name, "b32") for name in ("and", "or", "xor")),
    ],
)
def test_reduction(name: str, kind: str, random: np.random.Generator) -> None:
    a, m = words(random), tiled(random)
    found = run(
        f"redux.sync.{name}.{kind} %d, %a, %m;", {"a": a, "m": m}, {"d": 32}, threads=THREADS, ctas=CTAS
    )
    assert found["d"].tolist() == [
        fold(name, [int(a[one]) for one in members(m, lane)], kind) for lane in range(COUNT)
    ]


NASTY = np.array(
    [
        0,
        1 << 31,
        0x7F80_0000,
        0xFF80_0000,
        0x7FC0_0001,
        0xFFFF_FFFF,
        0x7F80_0001,
        1,
        0x8000_0001,
        0x3F80_0000,
    ],
    np.uint32,
)


def slow_float(name: str, values: list[int], absolute: bool, propagate: bool) -> int:
    values = [value & 0x7FFF_FFFF if absolute else value for value in values]
    numbers = [value for value in values if value & 0x7FFF_FFFF <= 0x7F80_0000]
    if not numbers or (propagate and len(numbers) < len(values)):
        return 0x7FFF_FFFF

    def place(value: int) -> int:
        return value if value < 1 << 31 else (1 << 31) - 1 - value

    return (min if name == "min" else max)(numbers, key=place)


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("absolute", ["", ".abs"])
@pytest.mark.parametrize("nan", ["", ".NaN"])
def test_float_reduction(name: str, absolute: str, nan: str, random: np.random.Generator) -> None:
    a, m = words(random), tiled(random)
    a[::3] = random.choice(NASTY, a[::3].size)
    a[32:64] = 0xFFC0_0000  # a warp of NaN
    body = f"redux.sync.{name}{absolute}{nan}.f32 %d, %a, %m;"
    found = run(body, {"a": a, "m": m}, {"d": 32}, threads=THREADS, ctas=CTAS)["d"]
    assert found.tolist() == [
        slow_float(name, [int(a[one]) for one in members(m, lane)], bool(absolute), bool(nan))
        for lane in range(COUNT)
    ]


@pytest.mark.parametrize(("target", "legal"), [("sm_100f", True), ("sm_103a", True), ("sm_120a", False)])
def test_float_reduction_is_of_one_family(target: str, legal: bool) -> None:
    text = (
        f".version 9.0\n.target {target}\n.entry k() {{ .reg .b32 %r<3>; redux.sync.min.f32 %r1, %r2, -1; }}"
    )
    assert (load_text(text).problems == ()) == legal


def test_elect_and_activemask(random: np.random.Generator) -> None:
    m = tiled(random)
    body = """elect.sync %d|%p0, %m; selp.u32 %e, 1, 0, %p0; setp.lt.u32 %p1, %lane, 5;
    @%p1 activemask.b32 %f; @!%p1 activemask.b32 %f;"""
    found = run(body, {"m": m}, {"d": 32, "e": 32, "f": 32}, threads=THREADS, ctas=CTAS)
    for lane in range(COUNT):
        leader = members(m, lane)[0] % 32
        assert (int(found["d"][lane]), int(found["e"][lane])) == (leader, int(lane % 32 == leader))
        assert int(found["f"][lane]) == (0x1F if lane % 32 < 5 else 0xFFFF_FFE0)


# --- who is there -----------------------------------------------------------------------------------

PARTED = """setp.lt.u32 %p0, %lane, %k;
@%p0 bra LOW;
add.u32 %a, %a, 100; bra MEET;
LOW: add.u32 %a, %a, 1;
MEET: shfl.sync.idx.b32 %d, %a, %b, 31, -1;"""


def test_lanes_that_parted_meet(random: np.random.Generator) -> None:
    a, b, k = words(random) >> 1, words(random), words(random, few=True) * 11
    found = run(PARTED, {"a": a, "b": b, "k": k}, {"d": 32}, threads=THREADS, ctas=CTAS)["d"]
    lanes = np.arange(COUNT) % 32
    after = a + np.where(lanes < k, 1, 100).astype(np.uint32)
    assert found.tolist() == after[np.arange(COUNT) // 32 * 32 + b % 32].tolist()


def test_lanes_wait_for_others_that_go_on_first(random: np.random.Generator) -> None:
    """Lanes jump over the statement, and come back to it: the others must not go on without them."""
    a = words(random)
    body = """mov.u32 %t2, 0; setp.lt.u32 %p0, %lane, 7;
    @%p0 bra LATE;
    AGAIN: shfl.sync.bfly.b32 %d, %a, 1, 31, -1; setp.eq.u32 %p1, %t2, 0;
    bra END;
    LATE: add.u32 %t2, %t2, 1; setp.lt.u32 %p2, %t2, 9; @%p2 bra LATE; bra AGAIN;
    END:"""
    found = run(body, {"a": a}, {"d": 32}, threads=THREADS, ctas=CTAS)["d"]
    assert found.tolist() == a[np.arange(COUNT) ^ 1].tolist()


def test_groups_go_on_without_each_other(random: np.random.Generator) -> None:
    """Each half of a warp has its own mask, and a loop of its own length around the statement."""
    a, m = words(random), np.where(np.arange(COUNT) % 32 < 16, 0xFFFF, 0xFFFF_0000).astype(np.uint32)
    turns = np.where(np.arange(COUNT) % 32 < 16, 3, 5).astype(np.uint32)
    body = """LOOP: redux.sync.add.u32 %d, %a, %m; mov.b32 %a, %d; sub.u32 %k, %k, 1;
    setp.ne.u32 %p0, %k, 0; @%p0 bra LOOP;"""
    found = run(body, {"a": a, "m": m, "k": turns}, {"d": 32}, threads=THREADS, ctas=CTAS)["d"]
    halves = a.reshape(-1, 16)
    for half in range(halves.shape[0]):
        total = int(halves[half].sum(dtype=np.uint64))
        wanted = total * 16 ** (2 + half % 2 * 2) % 2**32
        assert found.reshape(-1, 16)[half].tolist() == [wanted] * 16


def test_members_that_have_exited_do_not_count(random: np.random.Generator) -> None:
    a = words(random)
    body = "setp.gt.u32 %p0, %lane, 20; @%p0 ret; redux.sync.add.u32 %d, %a, -1;"
    found = run(body, {"a": a}, {"d": 32}, threads=THREADS, ctas=CTAS)["d"].reshape(-1, 32)
    wanted = a.reshape(-1, 32)[:, :21].sum(axis=1, dtype=np.uint64).astype(np.uint32)
    assert (found[:, :21] == wanted[:, None]).all()
    assert not found[:, 21:].any()


def test_members_that_exit_later_are_not_waited_for(random: np.random.Generator) -> None:
    a = words(random)
    body = """setp.gt.u32 %p0, %lane, 20; @%p0 bra OUT; redux.sync.add.u32 %d, %a, -1; bra END;
    OUT: ret;
    END:"""
    found = run(body, {"a": a}, {"d": 32}, threads=THREADS, ctas=CTAS)["d"].reshape(-1, 32)
    wanted = a.reshape(-1, 32)[:, :21].sum(axis=1, dtype=np.uint64).astype(np.uint32)
    assert (found[:, :21] == wanted[:, None]).all()


def test_the_last_warp_may_be_short(random: np.random.Generator) -> None:
    a = random.integers(0, 2**31, 40, dtype=np.uint32)
    found = run("redux.sync.max.u32 %d, %a, -1;", {"a": a}, {"d": 32}, threads=40)["d"]
    assert found.tolist() == [int(a[:32].max())] * 32 + [int(a[32:].max())] * 8


def test_lanes_that_never_come() -> None:
    body = """setp.lt.u32 %p0, %lane, 4; @%p0 redux.sync.add.u32 %d, %lane, -1;
    bar.sync 0;"""
    message = (
        r"deadlock: no lane can continue \(barrier 0 has 28 of 32 threads\); waiting: "
        r".*CTA \(0, 0, 0\), warp 0, "
        r"lane 0 and 3 more at .* for lanes 4-31 of its warp, members of its mask 0xffffffff"
    )
    with pytest.raises(Fault, match=message):
        run(body, {}, {"d": 32}, threads=32)


def test_a_lane_outside_its_own_mask() -> None:
    message = (
        r"redux\.sync\.add\.u32: the lane is not a member of its own mask 0x3 \[CTA .*, warp 0, lane 2\]"
    )
    with pytest.raises(UndefinedBehavior, match=message):
        run("redux.sync.add.u32 %d, %lane, 3;", {}, {"d": 32}, threads=32)


def test_different_masks_never_meet() -> None:
    body = "setp.eq.u32 %p1, %lane, 3; selp.b32 %t2, 7, 15, %p1; redux.sync.add.u32 %d, %lane, %t2;"
    with pytest.raises(UndefinedBehavior, match="not a member of its own mask 0x7"):
        run(body, {}, {"d": 32}, threads=4)
    body = "setp.eq.u32 %p1, %lane, 3; selp.b32 %t2, 13, 15, %p1; redux.sync.add.u32 %d, %lane, %t2;"
    with pytest.raises(Fault, match="deadlock"):
        run(body, {}, {"d": 32}, threads=4)
