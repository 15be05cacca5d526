"""A keeper of logs: prints of D by other programs, with few digits, in other orders, and texts that lack
things.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.mistakes.case import F16, one
from tools.mistakes.judging import Brought

from .listing import Listing

LIST = Listing()


def printed(rng: Any, spell: Any, name: str = "D.txt", swap: bool = False) -> Brought:
    """Return a right instruction, and its D as a text."""
    p = one(F16, rng)
    a = p.registers["a"][:, [0, 2, 1, 3]] if swap else p.registers["a"]
    return Brought(form=F16, arrays=p.registers, texts={name: spell(p.result(a=a).astype(np.float64))})


def nine(x: float) -> str:
    """Return a number with nine digits."""
    return f"{x:.9g}"


def rows(D: Any, cell: str, between: str, end: str = "\n") -> str:
    """Return rows of cells."""
    return end.join(between.join(cell % x for x in row) for row in D.tolist())


@LIST.mistake("LaTeX: bmatrix", r"as expected")
def _(rng: Any) -> Brought:
    return printed(
        rng, lambda D: "\\begin{bmatrix}\n" + rows(D, "%.9g", " & ", " \\\\\n") + " \\\\\n\\end{bmatrix}\n"
    )


@LIST.mistake("LaTeX: $D = \\left(\\begin{array}{cccccccc} …", r"as expected")
def _(rng: Any) -> Brought:
    head = "$D = \\left(\\begin{array}{cccccccc}\n"
    return printed(rng, lambda D: head + rows(D, "%.9g", "&", "\\\\\n") + "\n\\end{array}\\right)$")


@LIST.mistake("one number in each line", r"as expected|two readings", asked=True)
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: "\n".join(nine(x) for x in D.reshape(-1)))


@LIST.mistake("flat: D[17] = v", r"as expected")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: "\n".join(f"D[{i}] = {x:.9g}" for i, x in enumerate(D.reshape(-1))))


@LIST.mistake("flat, several to a line: D[0]=v D[1]=v", r"as expected")
def _(rng: Any) -> Brought:
    return printed(
        rng,
        lambda D: "\n".join(
            " ".join(f"D[{8 * i + j}]={x:.9g}" for j, x in enumerate(row)) for i, row in enumerate(D)
        ),
    )


@LIST.mistake("D transposed: 8 lines of 16 numbers", r"(transpos|column).*", asked=True)
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D.T, "%.9g", " "))


@LIST.mistake('printf("%f") of a right kernel', r"as expected|equal to the digits")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D, "%f", " "))


@LIST.mistake('printf("%g") of a right kernel, six digits', r"as expected|equal to the digits")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D, "%g", " "))


@LIST.mistake('printf("%.3f") of a kernel with a1 and a2 exchanged', r"A: regist")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D, "%.3f", "\t"), swap=True)


@LIST.mistake("Markdown with an alignment row and an index", r"as expected")
def _(rng: Any) -> Brought:
    head = "|   | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |\n|:--|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    return printed(
        rng,
        lambda D: (
            head
            + "\n".join(f"| **{i}** | " + " | ".join(nine(x) for x in row) + " |" for i, row in enumerate(D))
        ),
    )


@LIST.mistake("a spreadsheet: TSV with columns A to H and rows 1 to 16", r"as expected")
def _(rng: Any) -> Brought:
    head = "\t" + "\t".join("ABCDEFGH") + "\n"
    return printed(
        rng,
        lambda D: head + "\n".join(f"{i + 1}\t" + "\t".join(nine(x) for x in row) for i, row in enumerate(D)),
    )


@LIST.mistake("a spreadsheet of another country: decimal commas, semicolons", r"as expected")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D, "%.9g", ";").replace(".", ","))


@LIST.mistake("Fortran: 1.25D+00", r"as expected")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D, "%17.9E", "").replace("E", "D"))


@LIST.mistake("Mathematica: {{…}, {…}} with *^", r"as expected")
def _(rng: Any) -> Brought:
    def spell(D: Any) -> str:
        cell = lambda x: nine(x).replace("e", "*^")  # noqa: E731
        return "{" + ", ".join("{" + ", ".join(map(cell, row)) + "}" for row in D.tolist()) + "}"

    return printed(rng, spell)


@LIST.mistake(
    "Julia: 8 columns after '16\u00d78 Matrix{Float32}:', with dots", r"summary|left out|missing", asked=True
)
def _(rng: Any) -> Brought:
    return printed(
        rng,
        lambda D: (
            "16\u00d78 Matrix{Float32}:\n"
            + rows(D[:4], " %.6g", " ")
            + "\n  ⋮\n"
            + rows(D[12:], " %.6g", " ")
        ),
    )


@LIST.mistake("Julia: [1.0 2.0; 3.0 4.0]", r"as expected")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: "Float32[" + rows(D, "%.9g", " ", "; ") + "]")


@LIST.mistake("Eigen with brackets: [1, 2]\\n[3, 4]", r"as expected")
def _(rng: Any) -> Brought:
    return printed(
        rng, lambda D: "\n".join("[" + ", ".join(nine(x) for x in row) + "]" for row in D.tolist())
    )


@LIST.mistake(
    "numpy.savetxt in Fortran order: one line of 128, column after column", r"two readings|order", asked=True
)
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: " ".join(nine(x) for x in D.T.reshape(-1)))


@LIST.mistake("std::hexfloat, eight to a line", r"as expected")
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: "\n".join(" ".join(float(x).hex() for x in row) for row in D.tolist()))


@LIST.mistake("a log in which D has 15 rows", r"row|shape|15", asked=True)
def _(rng: Any) -> Brought:
    return printed(rng, lambda D: rows(D[:15], "%.9g", " "))
