"""Printouts that people bring: the same mistake (a1 and a2 exchanged) behind each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import F16, S8, SPARSE, One, one
from tools.mistakes.judging import Brought, Case

LIST: list[Case] = []
FOUND = r"A: registers (run along k first|1 and 2)"
FORMAT = "lane {lane} {name}[{reg}] = {hex}"


def printout(name: str, form: Any = F16, names: str = FOUND) -> Callable[[Any], Any]:
    """Register a function from operands and the wrong D (registers) to texts, words and arrays."""

    def register(made: Callable[[One, Any], Brought]) -> Any:
        def make(rng: np.random.Generator) -> Brought:
            given = one(form, rng)
            order = [0, 2, 1, 3]
            return made(given, given.run(a=given.registers["a"][:, order]))

        LIST.append(Case(name=name, make=make, names=names))
        return made

    return register


def as_matrices(
    x: One, d: Any, texts: dict[str, str], *, words: tuple[str, ...] = (), form: Any = F16
) -> Brought:
    """Return the command line of the matrices, some of them as text."""
    arrays = {"A": x.A, "B": x.B, "C": x.C}
    return Brought(
        form=form, arrays={n: y for n, y in arrays.items() if n not in texts}, texts=texts, words=words
    )


def as_registers(x: One, texts: dict[str, str], *, words: tuple[str, ...] = ()) -> Brought:
    """Return the command line of the registers, some of them as text."""
    arrays = {name: y for name, y in x.registers.items() if name not in texts}
    return Brought(form=x.form, arrays=arrays, texts=texts, words=words)


def rows(matrix: Any, spelled: str) -> str:
    """Return the text of a matrix, a line for each row."""
    return "\n".join(" ".join(spelled % value for value in row) for row in matrix.tolist())


def D_of(x: One, d: Any) -> Any:
    """Return D as a matrix."""
    return warpsim.unpack(x.instruction, "d", d)


@printout("D as rows of %.9g")
def _(x: One, d: Any) -> Brought:
    return as_matrices(x, d, {"D": rows(D_of(x, d), "%.9g")})


@printout("D as rows of %f")
def _(x: One, d: Any) -> Brought:
    return as_matrices(x, d, {"D": rows(D_of(x, d), "%f")})


@printout("D as rows of %8.3f")
def _(x: One, d: Any) -> Brought:
    return as_matrices(x, d, {"D": rows(D_of(x, d), "%8.3f")})


@printout("A, B, C and D as %.4f")
def _(x: One, d: Any) -> Brought:
    pairs = (("A", x.A), ("B", x.B), ("C", x.C), ("D", D_of(x, d)))
    return as_matrices(x, d, {name: rows(matrix, "%.4f") for name, matrix in pairs})


@printout("D as NumPy prints it")
def _(x: One, d: Any) -> Brought:
    return as_matrices(x, d, {"D": str(D_of(x, d))})


@printout("D as hexadecimal floats (%a)")
def _(x: One, d: Any) -> Brought:
    return as_matrices(x, d, {"D": "\n".join(" ".join(v.hex() for v in row) for row in D_of(x, d).tolist())})


@printout("D as CSV with a header of columns")
def _(x: One, d: Any) -> Brought:
    lines = [",".join(f"{v:.9g}" for v in row) for row in D_of(x, d).tolist()]
    return as_matrices(x, d, {"D.csv": "\n".join([",".join(f"n{i}" for i in range(8)), *lines])})


@printout("D as JSON")
def _(x: One, d: Any) -> Brought:
    return as_matrices(x, d, {"D.json": json.dumps(D_of(x, d).tolist())})


@printout("d as lane 0 reg 0 = 0x…")
def _(x: One, d: Any) -> Brought:
    lines = [f"lane {lane} reg {reg} = 0x{d[lane, reg]:08x}" for lane in range(32) for reg in range(4)]
    return as_registers(x, {"d": "\n".join(lines)})


@printout("d as T0: decimals")
def _(x: One, d: Any) -> Brought:
    values = d.view(np.float32)
    lines = [f"T{lane}: " + " ".join(f"{v:.9g}" for v in values[lane].tolist()) for lane in range(32)]
    return as_registers(x, {"d": "\n".join(lines)})


@printout("d as thread 0: d[0] = decimal, as lanes come")
def _(x: One, d: Any) -> Brought:
    values = d.view(np.float32)
    lines = [
        f"thread {lane}: d[{reg}] = {values[lane, reg]:.9g}" for reg in range(4) for lane in range(31, -1, -1)
    ]
    return as_registers(x, {"d": "\n".join(lines)})


@printout("d as signed integers", S8)
def _(x: One, d: Any) -> Brought:
    values = d.view(np.int32)
    return as_registers(
        x, {"d": "\n".join(f"lane {i}: " + " ".join(map(str, values[i].tolist())) for i in range(32))}
    )


@printout("a as unsigned integers (%u)")
def _(x: One, d: Any) -> Brought:
    text = "\n".join(f"T{i}: " + " ".join(map(str, x.registers["a"][i].tolist())) for i in range(32))
    return as_registers(
        x, {"a": text, "d": "\n".join(f"T{i}: " + " ".join(f"{w:#010x}" for w in d[i]) for i in range(32))}
    )


@printout("a printf of one's own")
def _(x: One, d: Any) -> Brought:
    lines = [
        f"lane {i} {name}[{r}] = {w:x}"
        for name, words in (x.registers | {"d": d}).items()
        for i in range(32)
        for r, w in enumerate(words[i].tolist())
    ]
    return Brought(form=x.form, texts={"dump.txt": "\n".join(lines)}, words=("--format", FORMAT, "dump.txt"))


@printout("another printf of one's own")
def _(x: One, d: Any) -> Brought:
    lines = [
        f"[{name} r{r} @ {i}] <{w:#x}>"
        for name, words in (x.registers | {"d": d}).items()
        for i in range(32)
        for r, w in enumerate(words[i].tolist())
    ]
    return Brought(
        form=x.form,
        texts={"dump.txt": "\n".join(lines)},
        words=("--format", "[{name} r{reg} @ {lane}] <{hex}>", "dump.txt"),
    )


@printout("the name that nvdisasm prints")
def _(x: One, d: Any) -> Brought:
    return Brought(form=("HMMA.16816.F32", "sm_80"), arrays=x.registers | {"d": d})


@printout("a matrix and a dump of A, no D", names="registers 1 and 2 exchanged")
def _(x: One, d: Any) -> Brought:
    return Brought(form=F16, arrays={"A": x.A, "a": x.registers["a"][:, [0, 2, 1, 3]]})


@printout(
    "a matrix and a dump of E with lanes of both selectors",
    SPARSE,
    r"metadata: selector 1 meant|selector 1|lane off by",
)
def _(x: One, d: Any) -> Brought:
    form = x.instruction
    other = warpsim.pack_metadata(form, x.indices, 1)
    return Brought(
        form=SPARSE,
        arrays={
            "A": x.A,
            "e": x.registers["e"] | other,
            "B": x.B,
            "C": x.C,
            "D": warpsim.unpack(form, "d", x.run(e=np.roll(x.registers["e"] | other, -1, axis=0))),
        },
    )


@printout("two instructions in one dump")
def _(x: One, d: Any) -> Brought:
    again = one(F16, np.random.default_rng(9))
    lines = []
    for step, (given, result) in enumerate(
        ((x, d), (again, again.run(a=again.registers["a"][:, [0, 2, 1, 3]])))
    ):
        lines.append(f"mma {step}:")
        for name, words in (given.registers | {"d": result}).items():
            lines += [f"lane {i}: {name} = " + " ".join(f"{w:#010x}" for w in words[i]) for i in range(32)]
    return Brought(form=F16, texts={"dump.txt": "\n".join(lines)}, words=("dump.txt",))
