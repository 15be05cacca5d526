"""Mistakes around one instruction that kernel authors tell of, beyond those of instruction.py.

Metadata reordered twice or of another selector, stale registers, zero points, padded and swizzled tiles,
warps, and anything on some lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import E4M3, F16, MXF8, S8, SPARSE, SPARSE_S8, TF32, WGMMA, One, numbers, one
from tools.mistakes.judging import Brought, Case, Records, said

from .instruction import LANES, mistake, put
from .warpgroups import loaded, stored

LIST: list[Case] = []
BF16_HOPPER = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90"


def known(name: str, form: Any, names: str | Records) -> Callable[[Any], Any]:
    """Register a function from operands (and a generator) to D."""
    return mistake(name, form, names, listed=LIST)


def words(name: str, form: Any, operand: str, names: str | Records, change: Callable[[Any], Any]) -> None:
    """Register a mistake that changes the registers of one operand."""
    known(name, form, names)(lambda x, rng: x.run(**{operand: change(x.registers[operand])}))


def matrix(name: str, form: Any, operand: str, names: str | Records, change: Callable[[Any], Any]) -> None:
    """Register a mistake that changes a whole matrix."""
    known(name, form, names)(
        lambda x, rng: x.run(**{operand.lower(): x.packed(operand.lower(), change(getattr(x, operand)))})
    )


# --- metadata ------------------------------------------------------------------------------------------


# k64: lane l has word l % 4 // 2 of row l / 4 + 8 * (l % 2), of two words in a row; reordering puts it there
REORDERED = 2 * (LANES // 4 + 8 * (LANES % 2)) + LANES % 4 // 2
words(
    "E reordered twice",
    SPARSE_S8,
    "e",
    said("e", "renumbered", each=16, **{"as": "matrix", "from": "registers"}),
    lambda e: e[REORDERED],
)


@known("the words of selector 1, selector 0", SPARSE, said("e", "xor", field="selector", by=1))
def _(x: One, rng: Any) -> Any:
    e = x.registers["e"]
    both = e | np.roll(one(SPARSE, rng).registers["e"], 2, axis=0)
    D = x.run(e=both, selector=1)
    return Brought(form=SPARSE, arrays=x.registers | {"e": both, "d": D})


words(
    "e: fields of eight bits, not four",
    SPARSE_S8,
    "e",
    said("e", "spread", field="index", width=2),
    lambda e: (
        (e & np.uint32(0xF))
        | (e & np.uint32(0xF0)) << np.uint32(4)
        | (e & np.uint32(0xF00)) << np.uint32(8)
        | (e & np.uint32(0xF000)) << np.uint32(12)
    ),
)
words(
    "e: bytes in the other order",
    SPARSE_S8,
    "e",
    said("e", "xor", field="index", by=12),
    lambda e: e.byteswap(),
)
words(
    "e: only lanes 0-15 rotated by a lane",
    SPARSE_S8,
    "e",
    said("e", "rotated", field="lane", by=1) + said("e", "where", field="lane", bit=4, **{"is": 0}),
    lambda e: put(e, slice(0, 16), np.roll(e, -1, axis=0)[:16]),
)
words(
    "e: lane 4 has lane 0's word, k64",
    SPARSE_S8,
    "e",
    said("e", "copied", field="lane", at=4, **{"from": 0}),
    lambda e: put(e, 4, e[0]),
)


@known("metadata of the tile before, of four tiles", SPARSE, said("e", "tile", by=-1))
def _(x: One, rng: Any) -> Any:
    tiles = [one(SPARSE, rng) for _ in range(4)]
    arrays = {name: np.stack([t.registers[name] for t in tiles]) for name in "abce"}
    d = np.stack([t.run(e=tiles[i - 1].registers["e"]) for i, t in enumerate(tiles)])
    return Brought(form=SPARSE, arrays=arrays | {"d": d})


# --- stale, repeated, zero ------------------------------------------------------------------------------


@known(
    "a2 is the one of the tile before",
    F16,
    (*said("a", "tile", by=-1), *said("a", "where", field="register", value=2)),
)
def _(x: One, rng: Any) -> Any:
    tiles = [one(F16, rng) for _ in range(4)]
    arrays = {name: np.stack([t.registers[name] for t in tiles]) for name in "abc"}
    d = []
    for i, t in enumerate(tiles):
        a = t.registers["a"].copy()
        a[:, 2] = tiles[i - 1].registers["a"][:, 2]
        d.append(t.run(a=a))
    return Brought(form=F16, arrays=arrays | {"d": np.stack(d)})


words(
    "b1 is zero",
    F16,
    "b",
    said("b", "zero") + said("b", "where", field="register", bit=0, **{"is": 1}),
    lambda b: put(b, np.s_[:, 1], 0),
)
words(
    "lanes 16-31 of C are zero",
    F16,
    "c",
    said("c", "zero") + said("c", "where", field="lane", bit=4, **{"is": 1}),
    lambda c: put(c, slice(16, 32), 0),
)
words(
    "lanes 24-31 of A are zero",
    F16,
    "a",
    said("a", "zero") + said("a", "where", field="lane", **{"from": 24}),
    lambda a: put(a, slice(24, 32), 0),
)
words(
    "the last lane of B is zero",
    F16,
    "b",
    said("b", "zero") + said("b", "where", field="lane", value=31),
    lambda b: put(b, 31, 0),
)
words(
    "quad 2's A repeats quad 1's",
    F16,
    "a",
    said("a", "copied", field="quad", at=2),
    lambda a: put(a, slice(8, 12), a[4:8]),
)
words(
    "16-bit halves of B exchanged on even lanes",
    F16,
    "b",
    (*said("b", "xor", field="slot"), *said("b", "where", field="lane", bit=0)),
    lambda b: put(b, slice(0, 32, 2), b[::2] << np.uint32(16) | b[::2] >> np.uint32(16)),
)
words(
    "A of the next lane on odd lanes only",
    F16,
    "a",
    said("a", "rotated", field="lane", by=1) + said("a", "where", field="lane", bit=0, **{"is": 1}),
    lambda a: put(a, slice(1, 32, 2), np.roll(a, -1, axis=0)[1::2]),
)
words(
    "lane pairs of A exchanged on lanes 16-31",
    S8,
    "a",
    said("a", "bit added", first=["lane", 1], second=["lane", 4]),
    lambda a: put(a, slice(16, 32), a[LANES[16:] ^ 2]),
)

# --- rows, strides, swizzles ---------------------------------------------------------------------------

matrix(
    "rows of A rotated by five",
    F16,
    "A",
    said("a", "rotated", field="row", by=5),
    lambda A: np.roll(A, -5, axis=0),
)
matrix(
    "columns of B rotated by two",
    S8,
    "B",
    said("b", "rotated", field="column", by=2),
    lambda B: np.roll(B, -2, axis=1),
)
matrix(
    "k of B rotated by 8",
    E4M3,
    "B",
    said("b", "rotated", field="row", by=8),
    lambda B: np.roll(B, -8, axis=0),
)
matrix(
    "B's columns written with a stride of 24, read with 16",
    F16,
    "B",
    said("b", "row stride", stride=24),
    lambda B: np.stack([np.resize(B.T, 8 * 24)[c * 24 : c * 24 + 16] for c in range(8)]).T,
)
matrix(
    "A's rows read with a stride of 24",
    F16,
    "A",
    said("a", "row stride", stride=24),
    lambda A: np.stack([np.resize(A, 16 * 24)[r * 24 : r * 24 + 16] for r in range(16)]),
)
matrix(
    "B swizzled: chunk xor column bit 1",
    F16,
    "B",
    said("b", "bit added", first=["16-byte chunk", 0], second=["column", 1]),
    lambda B: np.stack([np.roll(B[:, c], 8 * (c >> 1 & 1)) for c in range(8)], axis=1),
)
matrix(
    "A swizzled: chunk xor row bit 0",
    S8,
    "A",
    said("a", "bit added", first=["16-byte chunk", 0], second=["row", 0]),
    lambda A: np.stack([np.roll(A[r], 16 * (r & 1)) for r in range(16)]),
)
matrix(
    "fp8 P's k undone twice in B",
    E4M3,
    "B",
    said("b", "renumbered", **{"from": "accumulators"}),
    lambda B: B[[p % 4 // 2 * 8 + p // 4 % 4 * 2 + p % 2 + p // 16 * 16 for p in range(32)]],
)

# --- values --------------------------------------------------------------------------------------------


@known("zero point of B not subtracted", S8, r"B: zero point")
def _(x: One, rng: Any) -> Any:
    B = (x.B // 2).astype(np.int8)
    d = x.run(b=x.packed("b", (B - 11).astype(np.int8)))
    return Brought(form=S8, arrays=x.registers | {"b": x.packed("b", B), "d": d})


@known("zero points of A and B not subtracted", S8, r"A and B: zero points|zero points")
def _(x: One, rng: Any) -> Any:
    A, B = (x.A // 2).astype(np.int8), (x.B // 2).astype(np.int8)
    d = x.run(a=x.packed("a", (A + 5).astype(np.int8)), b=x.packed("b", (B - 3).astype(np.int8)))
    return Brought(form=S8, arrays=x.registers | {"a": x.packed("a", A), "b": x.packed("b", B), "d": d})


@known("products eight times too large", TF32, said("a", "times", factor=8))
def _(x: One, rng: Any) -> Any:
    return x.run(a=x.packed("a", x.A * np.float32(8)))


@known("C a quarter too small", F16, said("c", "times", factor=0.25))
def _(x: One, rng: Any) -> Any:
    return x.run(c=x.packed("c", x.C * np.float32(0.25)))


@known("two k8 instead of one k16, bf16", BF16_HOPPER, r"m16n8k8")
def _(x: One, rng: Any) -> Any:
    half = warpsim.decode(BF16_HOPPER[0].replace("k16", "k8"), target="sm_90")
    D = warpsim.matmul(half, x.A[:, :8], x.B[:8], x.C)
    return warpsim.matmul(half, x.A[:, 8:], x.B[8:], D)


# --- C and D -------------------------------------------------------------------------------------------


def stored_as(name: str, names: str | Records, change: Callable[[Any, One], Any], form: Any = F16) -> None:
    """Register a mistake that changes the registers of D."""
    known(name, form, names)(lambda x, rng: change(x.run(), x))


stored_as(
    "s32 D stored as lane * 4",
    said("d", "renumbered", each=4, **{"as": "matrix", "from": "registers"}),
    lambda d, x: d.reshape(16, 8).view(np.int32),
    S8,
)
stored_as(
    "D of rows 8-15 stored twice",
    said("d", "copied", field="row block of 8", at=0),
    lambda d, x: d[:, [2, 3, 2, 3]],
)
stored_as(
    "odd lanes store their pair the wrong way round",
    said("d", "swapped", field="place", first=2, second=3),
    lambda d, x: np.where(LANES[:, None] % 2 == 1, d[:, [1, 0, 3, 2]], d),
)
stored_as(
    "lanes 16-31 did not store D",
    said("d", "zero") + said("d", "where", field="lane", bit=4, **{"is": 1}),
    lambda d, x: put(d, slice(16, 32), 0),
)
stored_as(
    "D of the tile stored transposed",
    said("d", "nested", field="row", other="column"),
    lambda d, x: np.ascontiguousarray(warpsim.unpack(x.instruction, "d", d).T).reshape(16, 8),
)


# --- warpgroups ----------------------------------------------------------------------------------------


class Group:
    """One wgmma: A and B in swizzled tiles of 128 bytes of k in shared memory."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.form = warpsim.decode(WGMMA[0], target=WGMMA[1])
        self.A, self.B = (numbers(rng, self.form.a, (64, 64)) for _ in range(2))
        self.C = numbers(rng, self.form.c, (64, 64))
        self.memory = np.concatenate(
            [stored(self.A)[: 64 * 128], stored(self.B)[: 64 * 128], np.zeros(8192, np.uint8)]
        )
        self.arguments: dict[str, Any] = {
            "c": warpsim.pack(self.form, "c", self.C),
            "shared": self.memory,
            "a_desc": self.descriptor(0),
            "b_desc": self.descriptor(64 * 128),
        }

    @staticmethod
    def descriptor(start: int, stride: int = 1024, swizzle: int = 1) -> int:
        """Return the descriptor as in the manual's figure: address >> 4, LBO 1, SBO >> 4, swizzle."""
        return (start >> 4) & 0x3FFF | 1 << 16 | (stride >> 4) << 32 | swizzle << 62

    def computed(self, a: Any, b: Any) -> Any:
        """Return D of A (64, 16) and B (64, 16 of k)."""
        return warpsim.matmul(self.form, a, np.ascontiguousarray(b.T), self.C)


def group(name: str, names: str | Records) -> Callable[[Any], Any]:
    """Register a function from a wgmma to D."""

    def register(made: Callable[[Group, Any], Any]) -> Any:
        def make(rng: np.random.Generator) -> Brought:
            x = Group(rng)
            return Brought(
                form=WGMMA,
                arrays={n: y for n, y in x.arguments.items() if n[1:] != "_desc"} | {"D": made(x, rng)},
                words=tuple(f"{n}={x.arguments[n]:#x}" for n in ("a_desc", "b_desc")),
            )

        LIST.append(Case(name=name, make=make, names=names))
        return made

    return register


@group(
    "B's start address without >> 4, against the expected D",
    said("b", "descriptor", start_address=[16384, 1024]),
)
def _(x: Group, rng: Any) -> Any:
    D = x.computed(x.A[:, :16], x.B[:, :16])
    b = x.memory[64 * 128 : 2 * 64 * 128].copy()
    x.memory[1024 : 1024 + 64 * 128] = b  # A's tile is moved behind it
    x.memory[1024 + 64 * 128 : 1024 + 2 * 64 * 128] = stored(x.A)[: 64 * 128]
    x.arguments["a_desc"] = x.descriptor(1024 + 64 * 128)
    x.arguments["b_desc"] = x.descriptor(1024) & ~0x3FFF | 1024
    return D


@group("B's swizzle mode is 64B", said("b", "descriptor", swizzle=["128B", "64B"]))
def _(x: Group, rng: Any) -> Any:
    return x.computed(x.A[:, :16], loaded(x.memory, 64, 8192, 32, np.float16, swizzle="64B"))


@group("A read a k step too far", said("a", "descriptor", start_address=[0, 32]))
def _(x: Group, rng: Any) -> Any:
    return x.computed(x.A[:, 16:32], x.B[:, :16])


@group("warps 0 and 1 exchanged in D", said("d", "swapped", field="warp", first=0, second=1))
def _(x: Group, rng: Any) -> Any:
    return x.computed(x.A[:, :16], x.B[:, :16]).reshape(4, 16, 64)[[1, 0, 2, 3]].reshape(64, 64)


@group("warps exchanged in pairs in C", said("c", "xor", field="warp", by=1))
def _(x: Group, rng: Any) -> Any:
    x.C = x.C.reshape(4, 16, 64)[[1, 0, 3, 2]].reshape(64, 64)
    return x.computed(x.A[:, :16], x.B[:, :16])


@group(
    "lanes 0-15 of every warp did not store D",
    said("d", "zero") + said("d", "where", field="lane", bit=4, **{"is": 0}),
)
def _(x: Group, rng: Any) -> Any:
    D = x.computed(x.A[:, :16], x.B[:, :16]).reshape(8, 8, 64).copy()
    D[:, :4] = 0
    return D.reshape(64, 64)


@group("C times 2 of a wgmma", said("c", "times", factor=2.0))
def _(x: Group, rng: Any) -> Any:
    x.C = x.C * np.float32(2)
    return x.computed(x.A[:, :16], x.B[:, :16])


@known(
    "scale bytes of lanes 0-15 rotated",
    MXF8,
    said("scale_a", "xor", field="byte", by=1) + said("scale_a", "where", field="lane", bit=4, **{"is": 0}),
)
def _(x: One, rng: Any) -> Any:
    scales = {
        n: rng.integers(120, 134, (32, 4)).astype(np.uint8).view(np.uint32) for n in ("scale_a", "scale_b")
    }
    s = scales["scale_a"]
    d = x.run(
        **scales | {"scale_a": np.where(LANES[:, None] < 16, s >> np.uint32(8) | s << np.uint32(24), s)}
    )
    return Brought(form=MXF8, arrays=x.registers | scales | {"d": d})
