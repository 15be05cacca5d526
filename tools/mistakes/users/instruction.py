"""Mistakes around one instruction: registers, lanes, rows, metadata, arithmetic, and what is done with D."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import (
    E4M3,
    F16,
    F16_HOPPER,
    F16_K8,
    S8,
    SPARSE,
    SPARSE_S8,
    SPARSE_TF32,
    TF32,
    One,
    one,
)
from tools.mistakes.judging import Brought, Case, Records, said

LIST: list[Case] = []
LANES = np.arange(32)


def mistake(
    name: str, form: tuple[str, str], names: str | Records, listed: list[Case] = LIST
) -> Callable[[Any], Any]:
    """Register a function from operands (and a generator) to D."""

    def register(made: Callable[[One, np.random.Generator], Any]) -> Any:
        def make(rng: np.random.Generator) -> Brought:
            given = one(form, rng)
            result = made(given, rng)
            return result if isinstance(result, Brought) else given.brought(result)

        listed.append(Case(name=name, make=make, names=names))
        return made

    return register


def changed(words: Any, change: Callable[[Any], None]) -> Any:
    """Return a copy to which ``change`` was applied."""
    copy = words.copy()
    change(copy)
    return copy


def put(words: Any, where: Any, value: Any) -> Any:
    """Return a copy with ``value`` at the places ``where``."""
    copy = words.copy()
    copy[where] = value
    return copy


# --- metadata ----------------------------------------------------------------------------------------


def metadata(name: str, form: Any, names: str | Records, change: Callable[[Any], Any]) -> None:
    """Register a mistake that changes the words of E alone."""
    mistake(name, form, names)(lambda x, rng: x.run(e=change(x.registers["e"])))


metadata(
    "e shifted left by one index",
    SPARSE,
    said("e", "shifted", field="index", by=-1),
    lambda e: e << np.uint32(2),
)
metadata(
    "e shifted right by one field",
    SPARSE,
    said("e", "shifted", field="index", by=2),
    lambda e: e >> np.uint32(4),
)
metadata(
    "e shifted left by a field, k64",
    SPARSE_S8,
    said("e", "shifted", field="index", by=-2),
    lambda e: e << np.uint32(4),
)
metadata(
    "e: lower half-word only",
    SPARSE,
    said("e", "zero") + said("e", "where", field="half-word", bit=0, **{"is": 1}),
    lambda e: e & np.uint32(0xFFFF),
)
metadata(
    "e: upper half-word only",
    SPARSE,
    said("e", "zero") + said("e", "where", field="half-word", bit=0, **{"is": 0}),
    lambda e: e & np.uint32(0xFFFF0000),
)
metadata(
    "e: lower half in both",
    SPARSE,
    said("e", "copied", field="half-word", at=1),
    lambda e: e & np.uint32(0xFFFF) | e << np.uint32(16),
)
metadata(
    "e: only lane 12 is zero",
    SPARSE,
    said("e", "zero") + said("e", "where", field="lane", value=12),
    lambda e: put(e, 12, 0),
)
metadata(
    "e: lanes 16-31 zero",
    SPARSE,
    said("e", "zero") + said("e", "where", field="lane", bit=4, **{"is": 1}),
    lambda e: put(e, slice(16, 32), 0),
)
metadata(
    "e: lane 8 has lane 4's word",
    SPARSE,
    said("e", "copied", field="lane", at=8, **{"from": 4}),
    lambda e: put(e, 8, e[4]),
)
metadata(
    "e of the next lane", SPARSE, said("e", "rotated", field="lane", by=1), lambda e: np.roll(e, -1, axis=0)
)
metadata(
    "e: lane = group + 8 * thread",
    SPARSE_S8,
    said("e", "nested", field="thread", other="quad"),
    lambda e: e[LANES % 4 * 8 + LANES // 4],
)
metadata(
    "e: group of lanes of the next row",
    SPARSE,
    said("e", "rotated", field="quad", by=1),
    lambda e: np.roll(e, -4, axis=0),
)


@mistake(
    "e in memory order, not reordered",
    SPARSE,
    said("e", "renumbered", each=32, **{"as": "selected lanes", "from": "matrix"}),
)
def _(x: One, rng: Any) -> Any:
    words = warpsim.convert_metadata(x.indices, 16, 32, x.instruction, source="indices", target="words")
    flat = np.asarray(words).reshape(16, -1).astype(np.uint32)
    rows = flat[:, 0] | (flat[:, 1] << 16 if flat.shape[1] > 1 else 0)
    e = np.zeros((32, 1), np.uint32)
    for lane in range(32):
        e[lane] = rows[lane // 4 * 2 + lane % 2]  # row after row, a word each
    return x.run(e=e)


@mistake("tf32 metadata written as 0 and 1", SPARSE_TF32, said("e", "indices as fields"))
def _(x: One, rng: Any) -> Any:
    fields = np.asarray(x.indices).reshape(16, -1)
    good = warpsim.metadata_map(x.instruction, 0)
    e = np.zeros((32, 1), np.uint32)
    for lane, low, _, row, chunk in good.tolist():
        e[lane] |= np.uint32(int(fields[row, chunk]) << low)
    return x.run(e=e)


@mistake("e of the other tile of two", SPARSE, said("e", "tile", by=1))
def _(x: One, rng: Any) -> Any:
    tiles = [one(SPARSE, rng) for _ in range(2)]
    arrays = {name: np.stack([t.registers[name] for t in tiles]) for name in "abce"}
    d = np.stack([t.run(e=o.registers["e"]) for t, o in zip(tiles, tiles[::-1], strict=True)])
    return Brought(form=SPARSE, arrays=arrays | {"d": d})


# --- registers, lanes, rows --------------------------------------------------------------------------


def registers(name: str, form: Any, operand: str, names: str | Records, change: Callable[[Any], Any]) -> None:
    """Register a mistake that changes the registers of one operand."""
    mistake(name, form, names)(lambda x, rng: x.run(**{operand: change(x.registers[operand])}))


registers(
    "a1 and a2 exchanged",
    F16,
    "a",
    said("a", "swapped", field="register", first=1, second=2),
    lambda a: a[:, [0, 2, 1, 3]],
)
registers(
    "a2 is zero",
    F16,
    "a",
    said("a", "zero") + said("a", "where", field="register", value=2),
    lambda a: put(a, np.s_[:, 2], 0),
)
registers(
    "a3 is a copy of a1",
    F16,
    "a",
    said("a", "copied", field="register", at=3, **{"from": 1}),
    lambda a: put(a, np.s_[:, 3], a[:, 1]),
)
registers(
    "b1 is a copy of b0",
    F16,
    "b",
    said("b", "copied", field="register", at=1, **{"from": 0}),
    lambda b: put(b, np.s_[:, 1], b[:, 0]),
)
registers(
    "lane 7's A is zero",
    F16,
    "a",
    said("a", "zero") + said("a", "where", field="lane", value=7),
    lambda a: put(a, 7, 0),
)
registers(
    "lane 3 has lane 2's B",
    F16,
    "b",
    said("b", "copied", field="lane", at=3, **{"from": 2}),
    lambda b: put(b, 3, b[2]),
)
registers(
    "lanes 16-31 exchange a0 and a1",
    F16,
    "a",
    said("a", "bit added", first=["register", 0], second=["lane", 4]),
    lambda a: put(a, slice(16, 32), a[16:, [1, 0, 3, 2]]),
)
registers(
    "odd lanes exchange b0 and b1",
    F16,
    "b",
    said("b", "bit added", first=["register", 0], second=["lane", 0]),
    lambda b: put(b, slice(1, 32, 2), b[1::2, ::-1]),
)
registers(
    "A not rearranged in lane 0",
    F16,
    "a",
    said("a", "copied", field="lane", at=0, **{"from": 1}),
    lambda a: put(a, 0, a[1]),
)
registers(
    "halves of A's words exchanged on lanes 0-15",
    F16,
    "a",
    said("a", "xor", field="slot", by=1) + said("a", "where", field="lane", bit=4, **{"is": 0}),
    lambda a: put(a, slice(16), a[:16] << np.uint32(16) | a[:16] >> np.uint32(16)),
)


def matrix(name: str, form: Any, operand: str, names: str | Records, change: Callable[[Any], Any]) -> None:
    """Register a mistake that changes A, B or C as a matrix."""
    mistake(name, form, names)(
        lambda x, rng: x.run(**{operand.lower(): x.packed(operand.lower(), change(getattr(x, operand)))})
    )


matrix(
    "row 5 of A is zero",
    F16,
    "A",
    said("a", "zero") + said("a", "where", field="row", value=5),
    lambda A: put(A, 5, 0),
)
matrix(
    "row 9 of A repeats row 8",
    F16,
    "A",
    said("a", "copied", field="row", at=9, **{"from": 8}),
    lambda A: put(A, 9, A[8]),
)
matrix(
    "column 3 of B is zero",
    F16,
    "B",
    said("b", "zero") + said("b", "where", field="column", value=3),
    lambda B: put(B, np.s_[:, 3], 0),
)
matrix(
    "rows of A one down", F16, "A", said("a", "rotated", field="row", by=15), lambda A: np.roll(A, 1, axis=0)
)
matrix(
    "rows of A three up", S8, "A", said("a", "rotated", field="row", by=3), lambda A: np.roll(A, -3, axis=0)
)
matrix(
    "columns of B one on",
    F16,
    "B",
    said("b", "rotated", field="column", by=7),
    lambda B: np.roll(B, 1, axis=1),
)
matrix(
    "k of A one on", F16, "A", said("a", "rotated", field="column", by=1), lambda A: np.roll(A, -1, axis=1)
)
matrix(
    "A transposed",
    F16,
    "A",
    said("a", "transposed", first=["row", 0], second=["column", 0], width=4),
    lambda A: np.ascontiguousarray(A.T),
)
matrix(
    "A's rows read with a stride of 18",
    F16,
    "A",
    said("a", "row stride", stride=18),
    lambda A: np.stack([np.resize(A, 16 * 18)[r * 18 : r * 18 + 16] for r in range(16)]),
)
matrix(
    "A swizzled: chunk xor row bit 2",
    F16,
    "A",
    said("a", "bit added", first=["16-byte chunk", 0], second=["row", 2]),
    lambda A: np.stack([np.roll(A[r], 8 * (r >> 2 & 1)) for r in range(16)]),
)
matrix(
    "fp8 P from accumulators, k permuted",
    E4M3,
    "A",
    said("a", "renumbered", each=1, **{"as": "matrix", "from": "accumulators"}),
    lambda A: A[:, [(p % 4 // 2 * 8 + p // 4 % 4 * 2 + p % 2 + p // 16 * 16) for p in range(32)]],
)
matrix(
    "C addressed as lane * 4",
    F16,
    "C",
    said("c", "renumbered", each=4, **{"as": "registers", "from": "matrix"}),
    lambda C: lane_times_four(C),
)
matrix(
    "C is the bias along the wrong axis",
    F16,
    "C",
    said("c", "nested", field="column", other="row"),
    lambda C: np.resize(C, (8, 16)).T.copy(),
)


def lane_times_four(C: Any) -> Any:
    """Return the C that results where lane l loads elements 4 l to 4 l + 3."""
    form = warpsim.decode(F16[0], target=F16[1])
    return warpsim.unpack(form, "c", C.reshape(32, 4).view(np.uint32))


# --- arithmetic --------------------------------------------------------------------------------------


@mistake("two k8 instead of one k16", F16_HOPPER, r"m16n8k8|numerics of .*sm_80")
def _(x: One, rng: Any) -> Any:
    half = warpsim.decode(F16_K8[0], target=F16_HOPPER[1])
    D = warpsim.matmul(half, x.A[:, :8], x.B[:8], x.C)
    return warpsim.matmul(half, x.A[:, 8:], x.B[8:], D)


@mistake("zero point of A not subtracted", S8, r"A: zero point")
def _(x: One, rng: Any) -> Any:
    # the user says what A should be; the kernel read A + 17
    A = (x.A // 2).astype(np.int8)
    registers = x.registers | {"a": x.packed("a", A)}
    d = x.run(a=x.packed("a", (A + 17).astype(np.int8)))
    return Brought(form=S8, arrays=registers | {"d": d})


@mistake("D twice as large", F16, said("d", "times", factor=2))
def _(x: One, rng: Any) -> Any:
    return (x.result() * np.float32(2)).astype(np.float32)


@mistake("products a quarter", F16, said("a", "times", factor=0.25))
def _(x: One, rng: Any) -> Any:
    return x.run(a=x.packed("a", (x.A * np.float16(0.25)).astype(np.float16)))


@mistake("tf32 not rounded", TF32, said("ab", "tf32", **{"to even": False}))
def _(x: One, rng: Any) -> Any:
    words = x.registers["a"]
    half = np.uint32(0x1000)
    return x.run(a=words + half & np.uint32(0xFFFFE000), b=x.registers["b"] + half & np.uint32(0xFFFFE000))


@mistake("right mistake, D one bit off", F16, r"A: (registers run along k first|registers 1 and 2)")
def _(x: One, rng: Any) -> Any:
    d = x.run(a=x.registers["a"][:, [0, 2, 1, 3]])
    return d ^ np.uint32(1)


@mistake("right mistake, D computed in float64", F16, r"B: k halves exchanged|B: registers 0 and 1")
def _(x: One, rng: Any) -> Any:
    B = np.concatenate([x.B[8:], x.B[:8]])
    exact = x.A.astype(np.float64) @ B.astype(np.float64) + x.C
    return exact.astype(np.float32)


# --- C and D -----------------------------------------------------------------------------------------


def stored(name: str, names: str | Records, change: Callable[[Any, One], Any], form: Any = F16) -> None:
    """Register a mistake that changes D as a matrix."""
    mistake(name, form, names)(lambda x, rng: change(x.result(), x).astype(np.float32))


stored(
    "D stored as lane * 4",
    said("d", "renumbered", each=4, **{"as": "matrix", "from": "registers"}),
    lambda D, x: x.run().reshape(16, 8).view(np.float32),
)
stored(
    "D's rows permuted by their bits",
    said("d", "bits", field="row"),
    lambda D, x: D[[int(f"{r:04b}"[::-1], 2) for r in range(16)]],
)
stored(
    "D's columns even, then odd",
    said("d", "interleaved", field="column"),
    lambda D, x: D[:, [0, 2, 4, 6, 1, 3, 5, 7]],
)
stored(
    "D anyhow permuted",
    r"permut",
    lambda D, x: np.random.default_rng(5).permutation(D.reshape(-1)).reshape(16, 8),
)
stored("D through ReLU", said("d", "positive"), lambda D, x: np.maximum(D, 0))
stored(
    "D rounded to bf16",
    said("d", "rounded", to="bf16"),
    lambda D, x: (
        (D.view(np.uint32) + 0x7FFF + (D.view(np.uint32) >> 16 & 1) & 0xFFFF0000)
        .astype(np.uint32)
        .view(np.float32)
    ),
)
stored(
    "D rounded to f16", said("d", "rounded", to="f16"), lambda D, x: D.astype(np.float16).astype(np.float32)
)
stored(
    "one value of D in all of row 4",
    said("d", "constant", field="column", value=0) + said("d", "where", field="row", value=4),
    lambda D, x: put(D, 4, D[4, 0]),
)


@mistake("C added twice", F16, said("c", "times", factor=2))
def _(x: One, rng: Any) -> Any:
    return x.run(c=x.packed("c", x.C + x.C))


@mistake("half of C added", F16, r"C .*(times|scaled).*(0\.5|1/2)|beta")
def _(x: One, rng: Any) -> Any:
    return x.run(c=x.packed("c", x.C / np.float32(2)))


@mistake("C is garbage", F16, r"C.*(garbage|not what|another|something else)")
def _(x: One, rng: Any) -> Any:
    return x.run(c=x.packed("c", rng.standard_normal((16, 8)).astype(np.float32) * np.float32(50)))


@mistake("C is 1 everywhere", F16, r"C.*1\b")
def _(x: One, rng: Any) -> Any:
    return x.run(c=x.packed("c", np.ones((16, 8), np.float32)))
