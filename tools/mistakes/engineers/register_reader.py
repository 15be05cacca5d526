"""A reader of registers: dumps of one instruction, or beside matrices, packed lane by lane by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.mistakes.case import E4M3, F16, MXF8, S8, one
from tools.mistakes.judging import Brought

from .listing import Listing

LIST = Listing()


def bits(matrix: Any) -> Any:
    """Return 16-bit codes."""
    return np.ascontiguousarray(matrix).view(np.uint16).astype(np.uint32)


def a_words(element: Any) -> Any:
    """Return a0 to a3 of m16n8k16 from a function of row and column, by the manual's formulas."""
    out = np.zeros((32, 4), np.uint32)
    for lane in range(32):
        for i in range(8):
            row = lane // 4 + (8 if i in (2, 3, 6, 7) else 0)
            column = lane % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)
            out[lane, i // 2] |= np.uint32(int(element(row, column)) << 16 * (i & 1))
    return out


def b_words(element: Any) -> Any:
    """Return b0 and b1 of m16n8k16."""
    out = np.zeros((32, 2), np.uint32)
    for lane in range(32):
        for i in range(4):
            row = lane % 4 * 2 + (i & 1) + (8 if i >= 2 else 0)
            out[lane, i // 2] |= np.uint32(int(element(row, lane // 4)) << 16 * (i & 1))
    return out


@LIST.mistake("stmatrix with .trans: blocks of D transposed", r"D: 8 x 8 blocks transposed|D.*transposed")
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    D = p.result().copy()
    D[:8], D[8:] = D[:8].T.copy(), D[8:].T.copy()
    return p.brought(D.astype(np.float32))


@LIST.mistake(
    "B's fragments are loaded as A's: row and column roles exchanged for half of k",
    r"B.*(transpos|k halves|register|lane)",
    locates=r"B",
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    code = bits(p.B)
    wrong = b_words(lambda k, n: code[n + (k & 8), k % 8])
    return p.brought(p.run(b=wrong))


@LIST.mistake(
    "rows of ldmatrix from lane / 16 and lane % 16 exchanged: matrices 1 and 2 in each other's place",
    r"A: regist.*",
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    code = bits(p.A)
    wrong = a_words(lambda r, c: code[r % 8 + (c & 8), c % 8 + (r & 8)])
    return p.brought(p.run(a=wrong))


@LIST.mistake("a dump of A: the upper eight rows are those of the next 16", r"row", locates=r"row")
def _(rng: Any) -> Brought:
    A = rng.standard_normal((64, 32)).astype(np.float16)
    code = bits(A)
    dump = a_words(lambda r, c: code[r if r < 8 else r + 16, c])
    return Brought(form=F16, arrays={"A": A, "a": dump})


@LIST.mistake(
    "a dump of A whose values are 0 to 3, 512 x 512: k step 3 of rows 32 to 47, halves exchanged",
    r"halves",
    locates=r"k step 3|column",
)
def _(rng: Any) -> Brought:
    A = rng.integers(0, 4, (512, 512)).astype(np.float16)
    code = bits(A)
    dump = a_words(lambda r, c: code[32 + r, 48 + (c ^ 1)])
    return Brought(form=F16, arrays={"A": A, "a": dump})


@LIST.mistake("fp8 words of A have their 16-bit halves exchanged", r"A: 16-bit halves")
def _(rng: Any) -> Brought:
    p = one(E4M3, rng)
    a = p.registers["a"]
    return p.brought(p.run(a=(a >> 16 | a << 16).astype(np.uint32)))


@LIST.mistake(
    "scales of A in a dump: rows g and g + 8 exchanged",
    r"scale.*(rows g and g \+ 8|exchanged)|scales of A.*(row|lane)",
)
def _(rng: Any) -> Brought:
    scales = rng.integers(110, 140, (16, 1)).astype(np.uint8)
    lane = np.arange(32)
    row = lane // 4 + 8 * (1 - lane % 2)
    words = np.where(lane % 4 < 2, scales[row, 0], 0).astype(np.uint32)[:, None]
    return Brought(form=MXF8, arrays={"scale_a": words, "SCALE_A": scales})


@LIST.mistake(
    "s8 dump of B: lane / 4 is k and lane % 4 the column", r"lane|transpos|row", locates=r"B: (row|column)"
)
def _(rng: Any) -> Brought:
    B = rng.integers(-128, 128, (32, 8)).astype(np.int8)
    code = B.view(np.uint8).astype(np.uint32)
    dump = np.zeros((32, 2), np.uint32)
    for at in range(32):
        for i in range(8):
            k, n = at // 4 * 4 + i % 4, at % 4 + 4 * (i // 4)
            dump[at, i // 4] |= np.uint32(int(code[k, n]) << 8 * (i % 4))
    return Brought(form=S8, arrays={"B": B, "b": dump})


@LIST.mistake(
    "lanes are numbered by the row of a 2-D block: lane l holds lane l ^ 8 of A",
    r"lane.*8|lane group|\^ 8",
    locates=r"A",
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    return p.brought(p.run(a=p.registers["a"][np.arange(32) ^ 8]))


@LIST.mistake(
    "accumulators go through f16 between two instructions: C is rounded",
    r"C.*f16|f16.*C|round",
    locates=r"roundings",
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    C = p.C.astype(np.float16).astype(np.float32)
    return p.brought(p.run(c=p.packed("c", C)))


@LIST.mistake(
    "two mistakes: registers 1 and 2 of A exchanged, and C forgotten",
    r"A: regist.*\+.*C|accum.*\+.*A|A: .*\+",
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    return p.brought(p.run(a=p.registers["a"][:, [0, 2, 1, 3]], c=p.registers["c"] * 0))


@LIST.mistake("the dump of A holds the values truncated to bf16", r"bf16", locates=r"A")
def _(rng: Any) -> Brought:
    A = rng.standard_normal((16, 16)).astype(np.float16)
    cut = (A.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float16)
    code = bits(cut)
    return Brought(form=F16, arrays={"A": A, "a": a_words(lambda r, c: code[r, c])})
