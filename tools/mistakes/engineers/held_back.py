"""Twenty-five mistakes written last, after the code was done and before any of its answers to them was seen.

The figure for mistakes that ``diff`` has not seen. Their expressions are not amended.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tools.mistakes.case import F16, S8, SPARSE, one
from tools.mistakes.judging import Brought

from .kernel_author import Gemm
from .listing import Listing
from .log_keeper import printed, rows
from .quantizer import brought, integers, product
from .register_reader import a_words, b_words, bits

LIST = Listing()


@LIST.mistake(
    "A padded by 24 halves in memory, read as dense", r"A.*(stride|leading|pad)", locates=r"A is wrong"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 96)
    memory = np.zeros((64, 120), np.float16)
    memory[:, :96] = g.A
    return g.brought(g.run(A=memory.reshape(-1)[: 64 * 96].reshape(64, 96)))


@LIST.mistake(
    "a loop over k that starts at 1 with the pipeline primed twice: step 0 twice, the last never",
    r"0.*twice[\s\S]*(5|last).*(left out|missing)|(left out|missing)[\s\S]*twice",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 48, 32, 96)
    order = np.r_[0:16, 0:80]
    return g.brought(g.run(np.ascontiguousarray(g.A[:, order]), np.ascontiguousarray(g.B[order])))


@LIST.mistake(
    "the epilogue divides by the row sum of another row", r"row.*(factor|scale)|(factor|scale).*row"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 64)
    g.C[:] = 0
    scale = rng.uniform(0.3, 3, (64, 1)).astype(np.float32)
    return g.brought(g.run() / np.roll(scale, 1, axis=0))


@LIST.mistake(
    "int8 weights are used without their scale along k: groups of 64", r"(k|steps?).*(times|factor|scale)"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 128)
    q = rng.integers(-100, 100, g.B.shape)
    g.B = (q * np.repeat([0.0625, 0.125], 64)[:, None]).astype(np.float16)
    return g.brought(g.run(B=q.astype(np.float16)))


@LIST.mistake("warp 1 of four along m writes over warp 3's rows", r"rows?|tile", locates=r"tile|row")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 32, 64)
    D = g.run()
    D[48:64], D[16:32] = D[16:32].copy(), 0
    return g.brought(D)


@LIST.mistake(
    "s8: B's zero point of 3 is added and not subtracted, so every weight is 6 more", r"B.*(6|zero point)"
)
def _(rng: Any) -> Brought:
    A, B, C = integers(rng, S8, 64, 48, 64)
    return brought(S8, A, B, C, product(A, B.astype(np.int64) + 6))


@LIST.mistake("the bias is added before the scale of 0.125 instead of after it", r"0\.125", locates=r"C")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    products = g.run(C=g.C * 0)
    right = (g.A.astype(np.float32) * np.float32(0.125)).astype(np.float16)
    g.A = right
    return g.brought((products + g.C) * np.float32(0.125))


@LIST.mistake("tf32: B goes through bf16 on its way", r"B.*bf16")
def _(rng: Any) -> Brought:
    form = warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", target="sm_80")
    A, B = rng.standard_normal((32, 64)).astype(np.float32), rng.standard_normal((64, 16)).astype(np.float32)
    A, B = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (A, B))
    C = np.zeros((32, 16), np.float32)
    D = warpsim.gemm(form, A, B.astype(ml_dtypes.bfloat16).astype(np.float32), C)
    return Brought(form=(form.mnemonic, "sm_80"), arrays={"A": A, "B": B, "C": C, "D": D})


@LIST.mistake(
    "columns of D are stored in pairs the wrong way round: 1 0 3 2",
    r"column.*(xor 1|\^ 1|exchanged)|exchanged.*column",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run()[:, np.arange(32) ^ 1])


@LIST.mistake(
    "A's global loads stop at row 40 of 64: the rest is zero", r"A.*(row|zero)|rows? 40", locates=r"row|tile"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 32, 48)
    A = g.A.copy()
    A[40:] = 0
    return g.brought(g.run(A=A))


@LIST.mistake(
    "the second of two k halves of every step is multiplied with the first half of B", r"B.*k", locates=r"B"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 96, 32, 64)
    B = g.B.reshape(4, 2, 8, 32).copy()
    B[:, 1] = B[:, 0]
    return g.brought(g.run(B=B.reshape(64, 32)))


@LIST.mistake("GELU is applied twice", r"GELU")
def _(rng: Any) -> Brought:
    from math import erf

    g = Gemm(rng)
    g.A, g.C = (g.A / 4).astype(np.float16), g.C / 4
    below = np.vectorize(lambda x: 0.5 * (1 + erf(x / 2**0.5)))
    D = g.run().astype(np.float64)
    D = D * below(D)
    return g.brought((D * below(D)).astype(np.float32))


@LIST.mistake("D is a batch of two: the second batch's A was used", r"A|none", locates=r"A is wrong")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 32, 80, 64)
    other = rng.standard_normal((32, 64)).astype(np.float16)
    return g.brought(g.run(A=other))


@LIST.mistake(
    "two mistakes: A read with a stride of K + 16, and C counted twice",
    r"A.*(stride|leading)[\s\S]*C",
    locates=r"A.*stride|C twice",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 48, 32, 64)
    memory = np.concatenate([g.A.reshape(-1), np.zeros(2000, np.float16)])
    A = memory[np.arange(48)[:, None] * 80 + np.arange(64)]
    return g.brought(g.run(A=A) + g.C)


@LIST.mistake(
    "a sparse A: the second k half of B is read in both halves", r"B.*k|B.*(step|half)", locates=r"B"
)
def _(rng: Any) -> Brought:
    form = warpsim.decode(SPARSE[0], target=SPARSE[1])
    A = warpsim.prune(rng.standard_normal((64, 64)).astype(np.float16), form)
    B, C = rng.standard_normal((64, 16)).astype(np.float16), np.zeros((64, 16), np.float32)
    D = warpsim.gemm(form, A, np.concatenate([B[32:], B[32:]]), C)
    return Brought(form=SPARSE, arrays={"A": A, "B": B, "C": C, "D": D})


@LIST.mistake(
    "split in four along k, and the atomic add of part 2 is lost in rows 16 to 31",
    r"(step|k).*(left out|missing)",
    locates=r"tile|rows 16",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 32, 64)
    D = g.run()
    D[16:32] -= g.run(g.A[:, 32:48].copy(), g.B[32:48].copy(), g.C * 0)[16:32]
    return g.brought(D)


# --- registers ---


@LIST.mistake(
    "a: ldmatrix of rows r ^ 1, as a bank-conflict trick was half undone", r"lane|row", locates=r"A"
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    code = bits(p.A)
    return p.brought(p.run(a=a_words(lambda r, c: code[r ^ 1, c])))


@LIST.mistake(
    "b: k and k + 1 of every pair exchanged, C doubled", r"B: 16-bit halves.*\+|\+.*B: 16-bit halves"
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    code = bits(p.B)
    return p.brought(p.run(b=b_words(lambda k, n: code[k ^ 1, n]), c=p.packed("c", 2 * p.C)))


@LIST.mistake(
    "a dump of A 64 x 64: rows are 4 apart instead of adjacent", r"row|stride", locates=r"A: row = "
)
def _(rng: Any) -> Brought:
    A = rng.standard_normal((64, 64)).astype(np.float16)
    code = bits(A)
    return Brought(form=F16, arrays={"A": A, "a": a_words(lambda r, c: code[4 * r, c])})


@LIST.mistake(
    "a dump of B 32 x 16 that is the transposed tile of the second column", r"transposed", locates=r"B"
)
def _(rng: Any) -> Brought:
    B = rng.standard_normal((32, 16)).astype(np.float16)
    code = bits(B)
    return Brought(form=F16, arrays={"B": B, "b": b_words(lambda k, n: code[(k & 8) + n, 8 + (k & 7)])})


# --- prints ---


@LIST.mistake("Octave with 'Columns 1 through 4' and a factor", r"as expected")
def _(rng: Any) -> Brought:
    def spell(D: Any) -> str:
        return (
            "D =\n\n Columns 1 through 4:\n\n"
            + rows(D[:, :4], "%14.7f", " ")
            + "\n\n Columns 5 through 8:\n\n"
            + rows(D[:, 4:], "%14.7f", " ")
            + "\n"
        )

    return printed(rng, spell)


@LIST.mistake("an Excel paste: quotation marks and tabs", r"as expected")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D, '"%.9g"', "\t"))


@LIST.mistake("reStructuredText grid table", r"as expected")
def _(rng: Any) -> Brought:
    line = "+" + "----------------+" * 8
    return printed(
        rng,
        lambda D: "\n".join([line, *(f"| {' | '.join(f'{x:14.9g}' for x in row)} |\n{line}" for row in D)]),
    )


@LIST.mistake("LaTeX with units: tabular with a header row", r"as expected")
def _(rng: Any) -> Brought:
    head = "\\begin{tabular}{rrrrrrrr}\n\\toprule\n0&1&2&3&4&5&6&7\\\\\n\\midrule\n"
    return printed(
        rng, lambda D: head + rows(D, "%.9g", " & ", " \\\\\n") + "\\\\\n\\bottomrule\n\\end{tabular}"
    )


@LIST.mistake("printf of D(i, j) in Fortran with D exponents, column after column", r"as expected")
def _(rng: Any) -> Brought:
    return printed(
        rng,
        lambda D: "\n".join(
            f" D({i + 1:2d},{j + 1}) = {D[i, j]:.9E}".replace("E", "D") for j in range(8) for i in range(16)
        ),
    )
