"""Register dumps: a row states the form, the operand, the matrix and which element each place holds.

``take`` gets arrays of lane, register, slot, row and column of every place. It returns row and column of the
element that the kernel loaded; outside of the matrix it loaded zero. The expected places are what ``take``
returns; ``expect`` states how much of it must be found: a rule, parts of it, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Taken = tuple[Any, Any]


class Dump(NamedTuple):
    """One dump: ``values`` are distinct codes, normal numbers, or a few small integers."""

    name: str
    form: str
    operand: str
    size: tuple[int, int]
    take: Callable[[Any, Any, Any, Any, Any], Taken]
    expect: str = "rule"
    values: str = "normal"


F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32@sm_80"
K8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32@sm_80"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32@sm_80"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32@sm_89"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32@sm_80"
WG = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16@sm_90a"


def layout(lane: Any, register: Any, slot: Any) -> Taken:
    """Return row and column of A of m16n8k16."""
    return lane // 4 + register % 2 * 8, lane % 4 * 2 + slot + register // 2 * 8


def b_layout(lane: Any, register: Any, slot: Any) -> Taken:
    """Return row and column of B of m16n8k16."""
    return lane % 4 * 2 + slot + register * 8, lane // 4


def _random(seed: int) -> Callable[..., Taken]:
    order = np.random.default_rng(seed).permutation(256)
    return lambda n, i, h, r, c: np.divmod(order[r * 16 + c], 16)


def _some(seed: int, count: int) -> Callable[..., Taken]:
    wrong = np.random.default_rng(seed).choice(256, count, replace=False)

    def take(n: Any, i: Any, h: Any, r: Any, c: Any) -> Taken:
        bad = np.isin(r * 16 + c, wrong)
        return np.where(bad, (r * 7 + c * 3) % 16, r), np.where(bad, (c * 5 + r + 3) % 16, c)

    return take


A, WIDE, BIG = (16, 16), (16, 64), (64, 128)
DUMPS: tuple[Dump, ...] = (
    Dump("lane ^ 7", F16, "a", A, lambda n, i, h, r, c: layout(n ^ 7, i, h)),
    Dump("lane ^ 31", F16, "a", A, lambda n, i, h, r, c: layout(n ^ 31, i, h)),
    Dump(
        "bits of the lane reversed",
        *(F16, "a", A),
        lambda n, i, h, r, c: layout(sum((n >> b & 1) << 4 - b for b in range(5)), i, h),
    ),
    Dump("5 * lane mod 32", F16, "a", A, lambda n, i, h, r, c: layout(5 * n % 32, i, h)),
    Dump("lane ^ register", F16, "a", A, lambda n, i, h, r, c: layout(n ^ i, i, h)),
    Dump("lane + 3 mod 32", F16, "a", A, lambda n, i, h, r, c: layout((n + 3) % 32, i, h)),
    Dump("lane - 1, zero before", F16, "a", A, lambda n, i, h, r, c: layout(np.where(n, n - 1, 999), i, h)),
    Dump("register 3 - i", F16, "a", A, lambda n, i, h, r, c: layout(n, 3 - i, h)),
    Dump("registers rotated", F16, "a", A, lambda n, i, h, r, c: layout(n, (i + 1) % 4, h)),
    Dump("register 2 everywhere", F16, "a", A, lambda n, i, h, r, c: layout(n, i * 0 + 2, h)),
    Dump("halves exchanged in odd lanes", F16, "a", A, lambda n, i, h, r, c: layout(n, i, h ^ n % 2)),
    Dump(
        "registers 0 and 1 exchanged in lanes 16 on",
        *(F16, "a", A),
        lambda n, i, h, r, c: layout(n, np.where(n >= 16, i ^ 1, i), h),
    ),
    Dump("half and bit 0 of the thread", F16, "a", A, lambda n, i, h, r, c: layout(n & 30 | h, i, n & 1)),
    Dump("half and bit 0 of the register", F16, "a", A, lambda n, i, h, r, c: layout(n, i & 2 | h, i & 1)),
    Dump("transposed", F16, "a", A, lambda n, i, h, r, c: (c, r)),
    Dump("blocks of 8 transposed", F16, "a", A, lambda n, i, h, r, c: (r & 8 | c & 7, c & 8 | r & 7)),
    Dump("blocks of 4 transposed", F16, "a", A, lambda n, i, h, r, c: (r & 12 | c & 3, c & 12 | r & 3)),
    Dump("rows reversed", F16, "a", A, lambda n, i, h, r, c: (15 - r, c)),
    Dump("columns reversed", F16, "a", A, lambda n, i, h, r, c: (r, 15 - c)),
    Dump("skew: column + row", F16, "a", A, lambda n, i, h, r, c: (r, (c + r) % 16)),
    Dump("row clamped at 9", F16, "a", A, lambda n, i, h, r, c: (np.minimum(r, 9), c)),
    Dump("row stride 24 written, 16 read", F16, "a", A, lambda n, i, h, r, c: _strided(r * 16 + c, 24, 16)),
    Dump("row stride 17 read", F16, "a", WIDE, lambda n, i, h, r, c: np.divmod(r * 65 + c, 64)),
    Dump("base off by 3", F16, "a", WIDE, lambda n, i, h, r, c: (r, c + 3)),
    Dump("base off by 5 rows", F16, "a", BIG, lambda n, i, h, r, c: (r + 5, c)),
    Dump("the next k step", F16, "a", WIDE, lambda n, i, h, r, c: (r, c + 16)),
    Dump("row tile 2, k step 3", F16, "a", BIG, lambda n, i, h, r, c: (r + 32, c + 48)),
    Dump("k halves of two steps", F16, "a", WIDE, lambda n, i, h, r, c: (r, c + c // 8 * 16)),
    Dump("rows 8 on of the next step", F16, "a", WIDE, lambda n, i, h, r, c: (r, c + r // 8 * 16)),
    Dump("swizzle of 128 bytes", F16, "a", WIDE, lambda n, i, h, r, c: (r, c ^ (r % 8) * 8)),
    Dump("swizzle of 64 bytes", F16, "a", WIDE, lambda n, i, h, r, c: (r, c ^ (r // 2 % 4) * 8)),
    Dump("column bit 1 ^= row bit 2", F16, "a", A, lambda n, i, h, r, c: (r, c ^ (r >> 2 & 1) * 2)),
    Dump("columns 7 * c mod 16", F16, "a", A, lambda n, i, h, r, c: (r, 7 * c % 16)),
    Dump("rows 3 * r + 1 mod 16", F16, "a", A, lambda n, i, h, r, c: ((3 * r + 1) % 16, c)),
    Dump("rows interleaved", F16, "a", A, lambda n, i, h, r, c: (r % 2 * 8 + r // 2, c)),
    Dump("columns interleaved by 4", F16, "a", A, lambda n, i, h, r, c: (r, c % 4 * 4 + c // 4)),
    Dump("upper triangle zero", F16, "a", A, lambda n, i, h, r, c: (np.where(c > r, 999, r), c)),
    Dump("columns 12 on zero", F16, "a", A, lambda n, i, h, r, c: (r, np.where(c >= 12, 999, c))),
    Dump("lane 5 zero", F16, "a", A, lambda n, i, h, r, c: (np.where(n == 5, 999, r), c)),
    Dump(
        "one register of lane 9 stale", F16, "a", A, lambda n, i, h, r, c: (r, c ^ ((n == 9) & (i == 2)) * 8)
    ),
    Dump("eight places elsewhere", F16, "a", A, _some(1, 8), "parts"),
    Dump("forty places elsewhere", F16, "a", A, _some(2, 40), "parts"),
    Dump("a random order", F16, "a", A, _random(3), "none"),
    Dump("lane ^ 4, few values", F16, "a", A, lambda n, i, h, r, c: layout(n ^ 4, i, h), "rule", "few"),
    Dump("the next k step, few values", F16, "a", WIDE, lambda n, i, h, r, c: (r, c + 16), "rule", "few"),
    Dump("b: lane ^ 12", F16, "b", (16, 8), lambda n, i, h, r, c: b_layout(n ^ 12, i, h)),
    Dump("b: rows and columns exchanged", F16, "b", (16, 16), lambda n, i, h, r, c: (c, r)),
    Dump("b: registers exchanged", F16, "b", (16, 8), lambda n, i, h, r, c: b_layout(n, 1 - i, h)),
    Dump("b: k + 8 of the next step", F16, "b", (64, 8), lambda n, i, h, r, c: (r + r // 8 * 8, c)),
    Dump("b: stored n-major", F16, "b", (16, 8), lambda n, i, h, r, c: np.divmod(c * 16 + r, 8)),
    Dump("a of k8: columns exchanged in pairs", K8, "a", (16, 8), lambda n, i, h, r, c: (r, c ^ 2)),
    Dump("s8 a: bytes reversed", S8, "a", (16, 32), lambda n, i, h, r, c: (r, c ^ 3)),
    Dump(
        "s8 a: bytes 1 and 2 exchanged",
        S8,
        "a",
        (16, 32),
        lambda n, i, h, r, c: (r, c & 28 | c % 2 * 2 | c // 2 % 2),
    ),
    Dump("s8 b: k halves exchanged", S8, "b", (32, 8), lambda n, i, h, r, c: (r ^ 16, c)),
    Dump("e4m3 a: 16-bit pairs exchanged", E4M3, "a", (16, 32), lambda n, i, h, r, c: (r, c ^ 2)),
    Dump("tf32 a: threads reversed", TF32, "a", (16, 8), lambda n, i, h, r, c: (r, c ^ 3)),
    Dump("d: warps exchanged", WG, "d", (64, 64), lambda n, i, h, r, c: (r ^ 32, c)),
    Dump(
        "d: columns bit 3 and bit 4",
        WG,
        "d",
        (64, 64),
        lambda n, i, h, r, c: (r, c & 39 | (c >> 3 & 1) << 4 | (c >> 4 & 1) << 3),
    ),
    Dump(
        "d: rows 8 on zero in warp 2",
        WG,
        "d",
        (64, 64),
        lambda n, i, h, r, c: (np.where((n // 32 == 2) & (r % 16 >= 8), 999, r), c),
    ),
    Dump("d: transposed", WG, "d", (64, 64), lambda n, i, h, r, c: (c, r)),
)


def _strided(flat: Any, written: int, wide: int) -> Taken:
    """Return the element at a flat address of rows that were written further apart."""
    row, column = np.divmod(flat, written)
    return row, np.where(column < wide, column, 999)
