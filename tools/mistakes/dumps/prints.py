"""A right D as people print it: every print must be read as that D, or asked back where it has two readings.

``names`` of a readable print is that D is as expected; of an ambiguous print, that both readings are given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import F16, One, one
from tools.mistakes.judging import Brought, Case

LIST: list[Case] = []
RIGHT = r"as expected"


def print_of(name: str, operand: str = "D", names: str = RIGHT, file: str = "txt") -> Callable[[Any], Any]:
    """Register a function from D, or its registers as floats ``(32, 4)``, to a text."""

    def register(spelled: Callable[[Any], str]) -> Any:
        def make(rng: np.random.Generator) -> Brought:
            given: One = one(F16, rng)
            d = given.run()
            value = warpsim.unpack(given.instruction, "d", d) if operand == "D" else d.view(np.float32)
            arrays = {"A": given.A, "B": given.B, "C": given.C}
            return Brought(form=F16, arrays=arrays, texts={f"{operand}.{file}": spelled(value)})

        LIST.append(Case(name=name, make=make, names=names, hints=names, asked=names != RIGHT))
        return spelled

    return register


def exact(value: Any) -> str:
    """All digits of an f32."""
    return f"{value:.9g}"


def nested(D: Any, spell: Callable[[Any], str] = exact, pair: str = "[]", comma: str = ", ") -> str:
    """Rows in brackets."""
    rows = [pair[0] + comma.join(map(spell, row)) + pair[1] for row in D.tolist()]
    return pair[0] + (comma.strip() + "\n ").join(rows) + pair[1]


# --- PyTorch, NumPy, pandas, MATLAB, Julia, R -----------------------------------------------------------


@print_of("print(tensor) of PyTorch")
def _(D: Any) -> str:
    rows = ["[" + ", ".join(f"{v:8.4f}" for v in row) + "]" for row in D.tolist()]
    return "tensor([" + ",\n        ".join(rows) + "])"


@print_of("print(tensor) on cuda:0 with grad")
def _(D: Any) -> str:
    rows = ["[" + ", ".join(f"{v:8.4f}" for v in row) + "]" for row in D.tolist()]
    return (
        "tensor(["
        + ",\n        ".join(rows)
        + "], device='cuda:0',\n       dtype=torch.float32, grad_fn=<MmBackward0>)"
    )


@print_of("print(tensor) of large numbers: 1.0000e+03 in front is a factor")
def _(D: Any) -> str:
    rows = ["[" + ", ".join(f"{v:11.4e}" for v in row) + "]" for row in D.tolist()]
    return "tensor([" + ",\n        ".join(rows) + "])"


@print_of("repr of a NumPy array")
def _(D: Any) -> str:
    return repr(D)


@print_of("np.array2string after 'D ='")
def _(D: Any) -> str:
    return "D =\n" + np.array2string(D, precision=9)


@print_of("D = in one line, as pdb prints it")
def _(D: Any) -> str:
    return "D = " + re.sub(r"\s+", " ", repr(D))


@print_of("np.savetxt")
def _(D: Any) -> str:
    return "\n".join(" ".join(f"{v:.18e}" for v in row) for row in D.tolist())


@print_of("pandas with index and columns")
def _(D: Any) -> str:
    lines = ["    " + " ".join(f"{c:>9}" for c in range(8))]
    lines += [f"{r:<3} " + " ".join(f"{v:9.6f}" for v in row) for r, row in enumerate(D.tolist())]
    return "\n".join(lines)


@print_of("pandas to_csv", file="csv")
def _(D: Any) -> str:
    lines = [",".join(["", *map(str, range(8))])]
    return "\n".join([*lines, *(",".join([str(r), *map(exact, row)]) for r, row in enumerate(D.tolist()))])


@print_of("CSV with headers c0 … c7 and a row index", file="csv")
def _(D: Any) -> str:
    lines = [",".join(["row", *(f"c{c}" for c in range(8))])]
    return "\n".join([*lines, *(",".join([str(r), *map(exact, row)]) for r, row in enumerate(D.tolist()))])


@print_of("MATLAB D = with two blocks of columns")
def _(D: Any) -> str:
    text = ["", "D =", ""]
    for first, last in ((0, 5), (5, 8)):
        text += [f"  Columns {first + 1} through {last}", ""]
        text += ["  " + "  ".join(f"{v:8.4f}" for v in row[first:last]) for row in D.tolist()] + [""]
    return "\n".join(text)


@print_of("MATLAB with a common factor")
def _(D: Any) -> str:
    text = ["D =", "", "   1.0e+03 *", ""]
    return "\n".join([*text, *("  " + "  ".join(f"{v / 1000:12.9f}" for v in row) for row in D.tolist())])


@print_of("MATLAB source: D = [ 1 2; 3 4 ];")
def _(D: Any) -> str:
    return "D = [" + ";\n     ".join(" ".join(map(exact, row)) for row in D.tolist()) + "];"


@print_of("Julia's 16\u00d78 Matrix{Float32}:")
def _(D: Any) -> str:
    return "16\u00d78 Matrix{Float32}:\n" + "\n".join(" " + "  ".join(map(exact, row)) for row in D.tolist())


@print_of("R with [1,] and [,1]")
def _(D: Any) -> str:
    head = "      " + " ".join(f"{f'[,{c + 1}]':>9}" for c in range(8))
    rows = [f"{f'[{r + 1},]':>5} " + " ".join(f"{v:9.6f}" for v in row) for r, row in enumerate(D.tolist())]
    return "\n".join([head, *rows])


# --- C, debuggers, JSON ---------------------------------------------------------------------------------


@print_of("C initialiser")
def _(D: Any) -> str:
    return (
        "static const float D[16][8] = "
        + nested(D, lambda v: f"{v:.9g}f" if "." in f"{v:.9g}" else f"{v:.9g}", "{}")
        + ";"
    )


@print_of("cuda-gdb: $1 = {{…}}")
def _(D: Any) -> str:
    return "(cuda-gdb) print D\n$1 = " + nested(D, exact, "{}").replace("\n ", " ")


@print_of("cuda-gdb with <repeats 3 times>: D's rows of registers", "d")
def _(d: Any) -> str:
    return "\n".join(
        f"(cuda-gdb) p d\n${i + 1} = {{{', '.join(map(exact, row))}}}" for i, row in enumerate(d.tolist())
    )


@print_of("JSON object {'D': rows}", file="json")
def _(D: Any) -> str:
    return json.dumps({"shape": [16, 8], "dtype": "float32", "D": D.astype(float).tolist()})


@print_of("JSON list of {lane, reg, value}", "d", file="json")
def _(d: Any) -> str:
    return json.dumps([{"lane": i, "reg": r, "value": float(d[i, r])} for i in range(32) for r in range(4)])


@print_of("JSON lines {row, col, val}", file="json")
def _(D: Any) -> str:
    return "\n".join(
        json.dumps({"row": r, "col": c, "val": float(D[r, c])}) for r in range(16) for c in range(8)
    )


@print_of("Python dict {(0, 0): v}")
def _(D: Any) -> str:
    return repr({(r, c): float(D[r, c]) for r in range(16) for c in range(8)})


# --- one element to a line ----------------------------------------------------------------------------------


@print_of("D[i][j] = v")
def _(D: Any) -> str:
    return "\n".join(f"D[{r}][{c}] = {exact(D[r, c])}" for r in range(16) for c in range(8))


@print_of("D[i, j]: v, several to a line")
def _(D: Any) -> str:
    return "\n".join(" ".join(f"D[{r}, {c}]: {exact(D[r, c])}" for c in range(8)) for r in range(16))


@print_of("D(i,j) = v from 1 on, column after column (Fortran)")
def _(D: Any) -> str:
    return "\n".join(f" D( {r + 1}, {c + 1}) = {exact(D[r, c])}" for c in range(8) for r in range(16))


@print_of("triples: row col value")
def _(D: Any) -> str:
    return "\n".join(f"{r} {c} {exact(D[r, c])}" for r in range(16) for c in range(8))


@print_of("triples: lane reg value", "d")
def _(d: Any) -> str:
    return "\n".join(f"{i} {r} {exact(d[i, r])}" for i in range(32) for r in range(4))


@print_of("CSV lane,reg,value", "d", file="csv")
def _(d: Any) -> str:
    return "\n".join(["lane,reg,value", *(f"{i},{r},{exact(d[i, r])}" for i in range(32) for r in range(4))])


@print_of("CSV reg,lane,value, headers in another order", "d", file="csv")
def _(d: Any) -> str:
    return "\n".join(["reg,lane,value", *(f"{r},{i},{exact(d[i, r])}" for r in range(4) for i in range(32))])


@print_of("CSV lane,d0,d1,d2,d3", "d", file="csv")
def _(d: Any) -> str:
    return "\n".join(["lane,d0,d1,d2,d3", *(",".join([str(i), *map(exact, d[i])]) for i in range(32))])


@print_of("CSV row,col,value with blanks", file="csv")
def _(D: Any) -> str:
    return "\n".join(
        ["row, col, value", *(f"{r}, {c}, {exact(D[r, c])}" for r in range(16) for c in range(8))]
    )


@print_of("row 3 col 5: v, as printf in the epilogue")
def _(D: Any) -> str:
    order = np.random.default_rng(2).permutation(128)
    return "\n".join(f"row {i // 8} col {i % 8}: {exact(D[i // 8, i % 8])}" for i in order)


# --- lanes ------------------------------------------------------------------------------------------------


@print_of("shuffled lanes: lane=7 d={…}", "d")
def _(d: Any) -> str:
    order = np.random.default_rng(3).permutation(32)
    return "\n".join(f"lane={i} d={{{', '.join(map(exact, d[i]))}}}" for i in order)


@print_of("tid=37 of warp 1", "d")
def _(d: Any) -> str:
    return "\n".join(f"tid={i + 32} d[{r}]={exact(d[i, r])}" for i in range(32) for r in range(4))


@print_of("[block (0,0,0) thread (5,0,0)] d0=…", "d")
def _(d: Any) -> str:
    return "\n".join(
        f"[block (0,0,0), thread ({i},0,0)] " + " ".join(f"d{r}={exact(v)}" for r, v in enumerate(d[i]))
        for i in range(32)
    )


@print_of("threadIdx.x=5: four values", "d")
def _(d: Any) -> str:
    return "\n".join(f"threadIdx.x={i}: " + " ".join(map(exact, d[i])) for i in range(32))


@print_of("warp 0 lane 5: acc0 … acc3", "d")
def _(d: Any) -> str:
    return "\n".join(
        f"warp 0 lane {i:2}: " + " ".join(f"acc{r}={exact(v)}" for r, v in enumerate(d[i])) for i in range(32)
    )


@print_of("a log with other lines around and between", "d")
def _(d: Any) -> str:
    text = [
        "[INFO] 12:00:01 launching gemm<<<1, 32>>>",
        "max error 0.0123, checking 1 tile",
        "WARNING: clock is 1410 MHz",
    ]
    for i in range(32):
        text.append(
            f"lane {i}: d0={exact(d[i, 0])} d1={exact(d[i, 1])} d2={exact(d[i, 2])} d3={exact(d[i, 3])}"
        )
        if i % 10 == 3:
            text.append("[DEBUG] sync took 3 us")
    return "\n".join([*text, "done in 0.12 ms", "PASSED 0 of 1"])


@print_of("a log around a matrix")
def _(D: Any) -> str:
    rows = "\n".join(" ".join(f"{v:12.6f}" for v in row) for row in D.tolist())
    return f"Device 0: NVIDIA H100\nTime: 0.031 ms\nResult matrix D (16 x 8):\n{rows}\nChecksum: 12.5\n"


@print_of("hex without 0x and without leading zeros", "d")
def _(d: Any) -> str:
    return "\n".join(
        f"lane {i}: " + " ".join(f"{w:x}" for w in d.view(np.uint32)[i].tolist()) for i in range(32)
    )


@print_of("Markdown table")
def _(D: Any) -> str:
    head = ["| | " + " | ".join(f"{c}" for c in range(8)) + " |", "|---" * 9 + "|"]
    return "\n".join(
        [*head, *(f"| {r} | " + " | ".join(map(exact, row)) + " |" for r, row in enumerate(D.tolist()))]
    )


# --- with two readings: asked back, both given ------------------------------------------------------------

ASKED = r"(two|both) readings?[\s\S]*(D=[\s\S]*d=|d=[\s\S]*D=)"


@print_of("16 rows of 8 numbers given as registers d=", "d", ASKED)
def _(d: Any) -> str:
    return "\n".join(" ".join(map(exact, row)) for row in d.reshape(16, 8))


@print_of("32 lines of 4 numbers given as the matrix D=", "D", ASKED)
def _(D: Any) -> str:
    return "\n".join(" ".join(map(exact, row)) for row in D.reshape(32, 4))


@print_of(
    "triples without headers whose indices fit both (lane, reg) and (row, col)",
    "d",
    r"(two|both) readings?",
)
def _(d: Any) -> str:
    return "\n".join(f"{i % 16} {i // 16} {exact(v)}" for i, v in enumerate(d.reshape(-1)))


@print_of("PyTorch's summary with dots", names=r"\.\.\.|elided|summar|left out")
def _(D: Any) -> str:
    with np.printoptions(threshold=10, edgeitems=2):
        return repr(D)
