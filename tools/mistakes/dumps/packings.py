"""Register dumps beside a matrix, packed as people pack: each loader is written by hand, lane by lane.

Nothing here uses the layouts or the mistakes of warpsim: a loader returns the elements of each register in
the words of its author, and the matrix is what the author says was loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tools.mistakes.case import E4M3, F16, S8, SPARSE
from tools.mistakes.judging import Brought, Case

LIST: list[Case] = []
F16_TILE = (16, 16)
S4 = "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "sm_80"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120a"
Loader = Callable[[int], Sequence[Sequence[Any]]]  # lane -> elements of each register, lowest bits first


def packing(name: str, names: str, hints: str = "") -> Callable[[Any], Any]:
    """Register a function that makes what a user brings."""

    def register(make: Callable[[np.random.Generator], Brought]) -> Any:
        LIST.append(Case(name=name, make=make, names=names, hints=hints or names))
        return make

    return register


def words(loader: Loader, bits: int, lanes: int = 32) -> Any:
    """Return the registers ``(lanes, registers)`` of a loader whose elements are codes of so many bits."""
    mask = (1 << bits) - 1
    return np.array(
        [
            [
                sum((int(code) & mask) << (bits * at) for at, code in enumerate(register))
                for register in loader(lane)
            ]
            for lane in range(lanes)
        ],
        np.uint32,
    )


def f16(rng: np.random.Generator, *shape: int) -> Any:
    """Return normal numbers."""
    return rng.standard_normal(shape).astype(np.float16)


def bits_of(matrix: Any) -> Any:
    """Return the codes of a matrix."""
    return matrix.view(f"u{matrix.dtype.itemsize}")


def beside(matrix: Any, dump: Any, name: str = "a", form: tuple[str, str] = F16) -> Brought:
    """Return a matrix and the dump of its operand."""
    return Brought(form=form, arrays={name.upper(): matrix, name: dump})


def a_of(code: Callable[[int, int], Any]) -> Any:
    """Return A of m16n8k16 by the row and column that a kernel takes for those of the manual."""

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[code(g + 8 * (i & 1), 2 * t + h + 8 * (i >> 1)) for h in (0, 1)] for i in range(4)]

    return words(loader, 16)


def b_of(code: Callable[[int, int], Any]) -> Any:
    """Return B of m16n8k16, by k and n."""

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[code(2 * t + h + 8 * i, g) for h in (0, 1)] for i in range(2)]

    return words(loader, 16)


# --- pairs, halves, registers -----------------------------------------------------------------------------


@packing("a packed as (c0, c2), (c1, c3)", r"(column|k|c).*(exchang|bit|2\s*\W?\s*h)", "A\\[")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        first = 4 * (t >> 1) + (t & 1)  # lanes t share four columns: even lanes c0, c2; odd lanes c1, c3
        return [[a[g + 8 * (i & 1), first + 2 * h + 8 * (i >> 1)] for h in (0, 1)] for i in range(4)]

    return beside(A, words(loader, 16))


@packing(
    "a loaded as uint2: four neighbours of a row to a lane", r"column.*4\s*\W?\s*t|k.*4\s*\W?\s*t", "A\\["
)
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[a[g + 8 * (i & 1), 4 * t + 2 * (i >> 1) + h] for h in (0, 1)] for i in range(4)]

    return beside(A, words(loader, 16))


@packing(
    "halves of every word exchanged (make_half2(y, x))", r"halves|half-?words|slots? exchanged|neighbours"
)
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[r, c ^ 1]))


@packing(
    "a1 and a2 exchanged (matrices of ldmatrix.x4 in Z order)", r"regist\w+.*(1 and 2|k first|0, 2, 1, 3)"
)
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[r % 8 + c // 8 * 8, c % 8 + r // 8 * 8]))


@packing("s8: bytes of a word in big-endian order", r"byte")
def _(rng: Any) -> Brought:
    A = rng.integers(-100, 100, (16, 32)).astype(np.int8)
    a = bits_of(A)

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[a[g + 8 * (i & 1), 4 * t + 3 - h + 16 * (i >> 1)] for h in range(4)] for i in range(4)]

    return beside(A, words(loader, 8), form=S8)


@packing("s4: nibbles of a byte exchanged", r"nibble")
def _(rng: Any) -> Brought:
    A = rng.integers(-8, 8, (16, 64)).astype(np.int8)

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[A[g + 8 * (i & 1), 8 * t + (h ^ 1) + 32 * (i >> 1)] for h in range(8)] for i in range(4)]

    return beside(A.astype(ml_dtypes.int4), words(loader, 4), form=S4)


@packing(
    "s4: AWQ order, 0 2 4 6 1 3 5 7",
    r"0, 2, 4, 6, 1, 3, 5, 7|0, 4, 1, 5, 2, 6, 3, 7|AWQ|interleav",
    "nibble|B\\[",
)
def _(rng: Any) -> Brought:
    B = rng.integers(-8, 8, (64, 8)).astype(np.int8)
    awq = (0, 2, 4, 6, 1, 3, 5, 7)

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[B[8 * t + awq[h] + 32 * i, g] for h in range(8)] for i in range(2)]

    return beside(B.astype(ml_dtypes.int4), words(loader, 4), "b", S4)


@packing("b: b1 repeats b0", r"(b1|register 1).*(b0|register 0)|repeat|k 0 to 7|8\W*i")
def _(rng: Any) -> Brought:
    B = f16(rng, 16, 8)
    b = bits_of(B)
    return beside(B, b_of(lambda k, n: b[k % 8, n]), "b")


# --- ldmatrix -----------------------------------------------------------------------------------------------


@packing("b: .trans forgotten on a row-major B", r"\.?trans")
def _(rng: Any) -> Brought:
    B = f16(rng, 16, 8)
    b = bits_of(B)
    return beside(B, b_of(lambda k, n: b[n + k // 8 * 8, k % 8]), "b")


@packing("a: .trans where it should not be", r"\.?trans")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[c % 8 + r // 8 * 8, r % 8 + c // 8 * 8]))


@packing("a: ldmatrix rows from lane % 8 only", r"rows? (8|r).*(0|rows 0)|repeat|row\W.*%? ?8|g\b")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[r % 8, c]))


@packing(
    "a: x4 addresses miss the column half: lanes 16-31 add nothing", r"repeat|(k|column).*(0 to 7|8)|regist"
)
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[r, c % 8]))


@packing("a: ldmatrix.x2 for .x4, upper registers stale zeros", r"(regist|a2|k|columns?).*(zero|not written)")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[r, c] if c < 8 else 0))


@packing("a of k step 2 of 16 x 64, swizzled on the store only", r"swizzl|xor|\^")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 64)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[r, ((c // 8 + 4) ^ (r % 8)) * 8 + c % 8]))


@packing("a of a 16 x 32 tile, 64-byte swizzle read as 128-byte", r"swizzl|xor|\^")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 32)
    a = bits_of(A)
    return beside(A, a_of(lambda r, c: a[r, ((c // 8) ^ (r >> 1 & 3)) * 8 + c % 8]))


# --- addresses ---------------------------------------------------------------------------------------------


@packing("a: rows padded by 8 on the load only", r"stride|24")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    memory = np.concatenate([bits_of(A).reshape(-1), rng.integers(0, 1 << 16, 512).astype(np.uint16)])
    return beside(A, a_of(lambda r, c: memory[r * 24 + c]))


@packing("a: rows padded by 8 on the store only", r"stride|pad|16\W+r|r\W+16")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    memory = np.zeros((16, 24), np.uint16)
    memory[:, :16] = bits_of(A)
    flat = memory.reshape(-1)
    return beside(A, a_of(lambda r, c: flat[r * 16 + c]))


@packing("a: lda is N", r"stride|8\W+r|r\W+8")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    flat = bits_of(A).reshape(-1)
    return beside(A, a_of(lambda r, c: flat[r * 8 + c]))


@packing("a: a column-major read", r"transpos|column-major")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    return beside(A, a_of(lambda r, c: bits_of(A)[c, r]))


@packing("b: a PyTorch weight [N][K] read as [K][N]", r"stride|transpos|column-major|\[N\]\[K\]|order")
def _(rng: Any) -> Brought:
    B = f16(rng, 16, 8)
    flat = np.ascontiguousarray(bits_of(B).T).reshape(-1)
    return beside(B, b_of(lambda k, n: flat[k * 8 + n]), "b")


@packing("a: one row down (base pointer off by lda)", r"row.*\+ ?1|one (row )?down|next row")
def _(rng: Any) -> Brought:
    A = f16(rng, 32, 16)
    return beside(A, a_of(lambda r, c: bits_of(A)[r + 1, c]))


@packing("a: one element on (misaligned vector load)", r"(column|k|c).*\+ ?1|one on|next")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 32)
    return beside(A, a_of(lambda r, c: bits_of(A)[r, c + 1]))


# --- lanes --------------------------------------------------------------------------------------------------


@packing("a: lane % 8 is the row, lane / 8 the column pair", r"row.*(lane|l) ?(%|&|mod)|g\b.*t\b|lane")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)

    def loader(lane: int) -> Any:
        g, t = lane % 8, lane // 8
        return [[a[g + 8 * (i & 1), 2 * t + h + 8 * (i >> 1)] for h in (0, 1)] for i in range(4)]

    return beside(A, words(loader, 16))


@packing("a: wavefront habits: lane % 16 is the row, four k to a lane", r"row.*(lane|l).*16|lane", "A\\[")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    a = bits_of(A)
    return beside(
        A,
        words(
            lambda lane: [[a[lane % 16, lane // 16 * 8 + 2 * i + h] for h in (0, 1)] for i in range(4)], 16
        ),
    )


@packing("a: lanes 16-31 hold what lanes 0-15 should", r"lane")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    right = a_of(lambda r, c: bits_of(A)[r, c])
    return beside(A, right[np.arange(32) ^ 16])


@packing("a: one lane is garbage, the rest right", r"lane 13")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    right = a_of(lambda r, c: bits_of(A)[r, c])
    right[13] = rng.integers(0, 1 << 32, 4)
    return beside(A, right)


@packing("a: exchanged halves and garbage in lane 0", r"halves|half-?words|neighbours", "A\\[")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    dump = a_of(lambda r, c: bits_of(A)[r, c ^ 1])
    dump[0] = rng.integers(0, 1 << 32, 4)
    return beside(A, dump)


# --- another tile, step, operand, type ----------------------------------------------------------------------


@packing("a of 16 x 128: this is k step 5", r"step 5")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 128)
    return beside(A, a_of(lambda r, c: bits_of(A)[r, c + 80]))


@packing("a of 64 x 16: warp 2's rows", r"rows? 32")
def _(rng: Any) -> Brought:
    A = f16(rng, 64, 16)
    return beside(A, a_of(lambda r, c: bits_of(A)[r + 32, c]))


@packing(
    "a of 16 x 64: rows 8 to 15 are of the next k step",
    r"rows? (8|r).*(step|\+ ?16)|(step|\+ ?16).*rows? (8|r)",
)
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 64)
    return beside(A, a_of(lambda r, c: bits_of(A)[r, c + 16 * (r >= 8)]))


@packing("b holds A", r"\bA\[|holds A|\bof A\b")
def _(rng: Any) -> Brought:
    A, B = f16(rng, 16, 16), f16(rng, 16, 8)
    b = b_of(lambda k, n: bits_of(A)[n, k])
    return Brought(form=F16, arrays={"A": A, "B": B, "b": b})


@packing("a as bf16 where the form has f16", r"bf16")
def _(rng: Any) -> Brought:
    A = f16(rng, 16, 16)
    other = bits_of(A.astype(np.float32).astype(ml_dtypes.bfloat16))
    return beside(A, a_of(lambda r, c: other[r, c]))


@packing("a as e5m2 where the form has e4m3", r"e5m2")
def _(rng: Any) -> Brought:
    A = rng.standard_normal((16, 32)).astype(ml_dtypes.float8_e5m2).astype(np.float32)
    own, other = A.astype(ml_dtypes.float8_e4m3fn), bits_of(A.astype(ml_dtypes.float8_e5m2))

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[other[g + 8 * (i & 1), 4 * t + h + 16 * (i >> 1)] for h in range(4)] for i in range(4)]

    return beside(own, words(loader, 8), form=E4M3)


@packing("s8 as u8 with a zero point of 128 (x ^ 0x80)", r"0x80|128|zero point|sign bit")
def _(rng: Any) -> Brought:
    A = rng.integers(-100, 100, (16, 32)).astype(np.int8)
    a = bits_of(A) ^ 0x80

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[a[g + 8 * (i & 1), 4 * t + h + 16 * (i >> 1)] for h in range(4)] for i in range(4)]

    return beside(A, words(loader, 8), form=S8)


@packing("Marlin's 0x6400 | q without the subtraction", r"1024|1032|0x6400|offset|zero point")
def _(rng: Any) -> Brought:
    q = rng.integers(0, 16, (16, 8))
    B = (q - 8).astype(np.float16)
    b = 0x6400 | q
    return beside(B, b_of(lambda k, n: b[k, n]), "b")


@packing("c is stored as f16 pairs, the form wants f32", r"f16")
def _(rng: Any) -> Brought:
    C = f16(rng, 16, 8).astype(np.float32)
    c = bits_of(C.astype(np.float16))

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[c[g, 2 * t], c[g, 2 * t + 1]], [c[g + 8, 2 * t], c[g + 8, 2 * t + 1]], [0], [0]]

    return beside(C, words(loader, 16), "c")


@packing("c: ldc 8 read as 16", r"stride|16\W+r|r\W+16")
def _(rng: Any) -> Brought:
    C = rng.standard_normal((16, 8)).astype(np.float32)
    memory = np.concatenate([bits_of(C).reshape(-1), rng.integers(0, 1 << 32, 128).astype(np.uint32)])

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[memory[(g + 8 * (i >> 1)) * 16 + 2 * t + (i & 1)]] for i in range(4)]

    return beside(C, words(loader, 32), "c")


@packing(
    "D as the epilogue stored it, and d: columns 2 t and 2 t + 1 exchanged", r"column|neighbours|exchang"
)
def _(rng: Any) -> Brought:
    D = rng.standard_normal((16, 8)).astype(np.float32)
    d = bits_of(D)

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[d[g + 8 * (i >> 1), 2 * t + 1 - (i & 1)]] for i in range(4)]

    return beside(D, words(loader, 32), "d")


# --- few values ---------------------------------------------------------------------------------------------


@packing("a of -2..2, rows 0-7 and 8-15 exchanged", r"rows?.*(8|halves)")
def _(rng: Any) -> Brought:
    A = rng.integers(-2, 3, (16, 16)).astype(np.float16)
    return beside(A, a_of(lambda r, c: bits_of(A)[r ^ 8, c]))


@packing("a of 0 and 1, transposed blocks", r"\.?trans")
def _(rng: Any) -> Brought:
    A = rng.integers(0, 2, (16, 16)).astype(np.float16)
    return beside(A, a_of(lambda r, c: bits_of(A)[c % 8 + r // 8 * 8, r % 8 + c // 8 * 8]))


@packing("a whose rows are all alike: which row is not known", r"ambig|also|as well|cannot|equal|alike")
def _(rng: Any) -> Brought:
    A = np.repeat(f16(rng, 1, 16), 16, axis=0)
    return beside(A, a_of(lambda r, c: bits_of(A)[(r + 3) % 16, c ^ 1]))


@packing("a of arange, loaded with a stride of 18", r"stride|18")
def _(rng: Any) -> Brought:
    A = np.arange(256).reshape(16, 16).astype(np.float16)
    memory = np.concatenate([bits_of(A).reshape(-1), np.zeros(512, np.uint16)])
    return beside(A, a_of(lambda r, c: memory[r * 18 + c]))


# --- sparse -------------------------------------------------------------------------------------------------


def two_of_four(rng: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Return a pruned matrix, and the kept columns of each group."""
    A, kept = np.zeros((rows, columns), np.float16), np.zeros((rows, columns // 4, 2), int)
    for r in range(rows):
        for g in range(columns // 4):
            kept[r, g] = sorted(rng.choice(4, 2, replace=False))
            A[r, 4 * g + kept[r, g]] = rng.standard_normal(2)
    return A, kept


def e_of(field: Callable[[int, int], int]) -> Any:
    """Return metadata of m16n8k32 f16, selector 0: lanes t = 0, 1 of a quad; rows g, g + 8 in a word."""

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        if t > 1:
            return [[0]]
        return [[field(g + 8 * (j >> 2), 4 * t + (j & 3)) for j in range(8)]]

    return words(loader, 4)


def compressed(A: Any, kept: Any, first: Callable[[Any], Any] = lambda pair: pair) -> Any:
    """Return registers a of m16n8k32 from the kept values."""
    rows = A.shape[0]
    stored = np.array([[A[r, 4 * g + i] for g in range(8) for i in first(kept[r, g])] for r in range(rows)])
    return a_of(lambda r, c: bits_of(stored)[r, c])


@packing(
    "groups with one non-zero keep their zero in another place", r"(together|hold).*A|zero.*(place|elsewhere)"
)
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 32)
    for r in range(16):
        for g in range(0, 8, 3):
            A[r, 4 * g + kept[r, g, 1]] = 0
            kept[r, g] = (kept[r, g, 0] - 1, kept[r, g, 0]) if kept[r, g, 0] else (0, 3)
    dump = compressed(A, kept)
    return Brought(
        form=SPARSE,
        arrays={"A": A, "a": dump, "e": e_of(lambda r, g: kept[r, g, 0] | kept[r, g, 1] << 2)},
    )


@packing("the two values of each group exchanged", r"group|halves|half-?words|values|neighbours")
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 32)
    return Brought(
        form=SPARSE,
        arrays={
            "A": A,
            "a": compressed(A, kept, lambda pair: pair[::-1]),
            "e": e_of(lambda r, g: kept[r, g, 0] | kept[r, g, 1] << 2),
        },
    )


@packing("e: rows g and g + 8 exchanged", r"rows?.*8|half-?words|halves")
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 32)
    return Brought(
        form=SPARSE, arrays={"A": A, "e": e_of(lambda r, g: kept[r ^ 8, g, 0] | kept[r ^ 8, g, 1] << 2)}
    )


@packing("e of the next k step, of A 16 x 64", r"step 1|\+ ?8")
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 64)
    return Brought(
        form=SPARSE, arrays={"A": A, "e": e_of(lambda r, g: kept[r, g + 8, 0] | kept[r, g + 8, 1] << 2)}
    )


@packing("e: fields of a row in descending order", r"field|chunk|group|nibble")
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 32)

    def field(r: int, g: int) -> int:
        h = g & 4 | 3 - (g & 3)
        return int(kept[r, h, 0] | kept[r, h, 1] << 2)

    return Brought(form=SPARSE, arrays={"A": A, "e": e_of(field)})


@packing("e: row-major words dealt to lanes 0, 1, 2 … of the readers", r"row|memory order|lane")
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 32)
    codes = (kept[..., 0] | kept[..., 1] << 2).reshape(-1)  # 16 rows of 8 fields

    def loader(lane: int) -> Any:
        g, t = lane >> 2, lane & 3
        return [[codes[(2 * g + t) * 8 + j] for j in range(8)]] if t < 2 else [[0]]

    return Brought(form=SPARSE, arrays={"A": A, "e": words(loader, 4)})


def check() -> None:
    """Hold the hand-written loaders against the layouts, once."""
    A = np.arange(256).reshape(16, 16).astype(np.float16)
    form = warpsim.decode(F16[0], target=F16[1])
    assert np.array_equal(a_of(lambda r, c: bits_of(A)[r, c]), warpsim.pack(form, "a", A))
