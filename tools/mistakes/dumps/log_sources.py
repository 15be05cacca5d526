"""What people bring together by hand: files that contradict each other, whole D in one column, logs without
matrices, metadata as decimals. Each is read, or refused with the files and lines at which it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tools.mistakes.case import F16, SPARSE
from tools.mistakes.judging import Brought, Case

from .packings import e_of, two_of_four
from .step_logs import Run, brought, lines

LIST: list[Case] = []


def source(name: str, names: str, *, asked: bool = False, right: bool = False) -> Callable[[Any], Any]:
    """Register a function that makes what a user brings."""

    def register(make: Callable[[np.random.Generator], Brought]) -> Any:
        LIST.append(Case(name=name, make=make, names=names, asked=asked, right=right))
        return make

    return register


def stepped(run: Run, left_out: Any = lambda name, step: False, **names: Any) -> str:
    """Return 'step 3 lane 5 a[2] = 0x…' of all names, without what is left out."""
    return "\n".join(
        f"step {step} {line}"
        for step in range(len(run.a))
        for name, each in names.items()
        if not left_out(name, step)
        for line in lines(name, each[step])
    )


def rows_of(matrix: Any) -> str:
    """Return a line for each row."""
    return "\n".join(" ".join(f"{v:g}" for v in row) for row in matrix.tolist())


# --- files that contradict each other ---------------------------------------------------------------------


@source(
    "a of six steps beside A.txt of eight",
    r"a\.txt, lines 2 to 774\) has 6 steps.*6, 7 are missing.*A\.txt, lines 1 to 16, 16 x 128\) has 8",
    asked=True,
)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = "\n".join(line for s in range(6) for line in (f"mma {s}:", *lines("a", run.a[s])))
    return Brought(form=F16, texts={"A": rows_of(run.A), "a": text})


@source(
    "a log of ten steps beside B.npy of eight",
    r"b\.txt, lines 2 to 650\) has 10 steps.*B\.npy, 128 x 8\) has 8",
    asked=True,
)
def _(rng: Any) -> Brought:
    long, run = Run(rng, 10), Run(rng)
    text = "\n".join(line for s in range(10) for line in (f"mma {s}:", *lines("b", long.b[s])))
    return Brought(form=F16, arrays={"B": run.B}, texts={"b": text})


@source("one file of a and b beside A with fewer columns than B has rows", r"(?s)A\.npy.*B\.npy", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, a=run.a, b=run.b, acc=run.accumulators())
    return Brought(
        form=F16, arrays={"A": run.A[:, :112], "B": run.B}, texts={"log.txt": text}, words=("log.txt",)
    )


@source(
    "a of step 4 is missing, b of step 4 is there",
    r"log\.txt: step 4 is missing: a .*step 3 from line 961 and step 5 from line 1473",
    asked=True,
)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, lambda name, step: (name, step) == ("a", 4), a=run.a, b=run.b, acc=run.accumulators())
    return brought(run, {"log.txt": text}, "log.txt")


@source("the log begins with step 1: a stopped buffer", r"log\.txt.*step 0|step 0.*log\.txt", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, lambda name, step: step == 0, a=run.a, b=run.b, acc=run.accumulators())
    return brought(run, {"log.txt": text}, "log.txt")


@source("the log ends before the last step", r"log\.txt.*step 7|step 7.*log\.txt", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, lambda name, step: step == 7, a=run.a, b=run.b, acc=run.accumulators())
    return brought(run, {"log.txt": text}, "log.txt")


@source(
    "step 5 is missing: the lines before and after are named",
    r"step 5.*line \d+.*line \d+|:\d+.*:\d+.*step 5",
    asked=True,
)
def _(rng: Any) -> Brought:
    run = Run(rng)
    return brought(run, {"log.txt": stepped(run, lambda name, step: step == 5, a=run.a)}, "log.txt")


@source("lane 7 lacks a[2] in step 3", r"(?s)(lane 7.*step 3|step 3.*lane 7).*a", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, a=run.a)
    kept = [line for line in text.splitlines() if not line.startswith("step 3 lane 7 a[2]")]
    return brought(run, {"log.txt": "\n".join(kept)}, "log.txt")


@source(
    "warps 0 and 1 in one log, by name", r"warp 0.*line 1\b.*warp 1.*line 129|line 1\b.*line 129", asked=True
)
def _(rng: Any) -> Brought:
    run = Run(rng, 1)
    text = [f"warp {w} {line}" for w in (0, 1) for line in lines("a", run.a[0])]
    return Brought(form=F16, arrays={"A": run.A}, texts={"a": "\n".join(text)})


@source(
    "two dumps after one another, A of one tile",
    r"line 1\b.*line 129.*two readings.*tiles.*warps.*A\.npy, 16 x 16",
    asked=True,
)
def _(rng: Any) -> Brought:
    run = Run(rng, 2)
    text = [line for s in (0, 1) for line in lines("a", run.a[s])]
    return Brought(form=F16, arrays={"A": run.A[:, :16]}, texts={"a": "\n".join(text)})


@source("two warps with the same A, A of two tiles along k", r"(?s)two readings.*steps.*warps", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng, 2)
    text = lines("a", run.a[0]) * 2
    return Brought(form=F16, arrays={"A": run.A}, texts={"a": "\n".join(text)})


@source(
    "two steps after one another without headings, A of two tiles along k", r"all 2 steps|every step|holds"
)
def _(rng: Any) -> Brought:
    run = Run(rng, 2)
    text = [line for s in (0, 1) for line in lines("a", run.a[s])]
    return Brought(form=F16, arrays={"A": run.A}, texts={"a": "\n".join(text)})


@source("d of two warps interleaved, one D", r"(?s)two readings.*warps", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng, 1)
    d = run.accumulators()[0]
    e = d[::-1]
    pairs = zip(lines("d", d), lines("d", e), strict=True)
    text = "\n".join(line for pair in pairs for line in pair)
    return Brought(form=F16, arrays={"A": run.A, "B": run.B}, texts={"d": text})


# --- whole D ----------------------------------------------------------------------------------------------


def _whole(rng: Any) -> tuple[Any, Any, Any]:
    A = rng.integers(-64, 64, (32, 48)).astype(np.float16) / np.float16(16)
    B = rng.integers(-64, 64, (48, 24)).astype(np.float16) / np.float16(16)
    return A, B, A.astype(np.float32) @ B.astype(np.float32)


def _product(rng: Any, spelled: Callable[[Any], str], *words: str) -> Brought:
    A, B, D = _whole(rng)
    return Brought(form=F16, arrays={"A": A, "B": B}, texts={"D": spelled(D)}, words=words)


def flat(D: Any, order: str = "C", width: int = 1) -> str:
    """Return numbers in the order of memory."""
    cells = [f"{v:.9g}" for v in D.ravel(order=order).tolist()]
    return "\n".join(" ".join(cells[at : at + width]) for at in range(0, len(cells), width))


@source("D 32 x 24 in one column, row-major stated", "as expected")
def _(rng: Any) -> Brought:
    return _product(rng, flat, "--format", "row-major")


@source("D 32 x 24 in one column, column-major stated", "as expected")
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: flat(D, "F"), "--format", "column-major")


@source("D 32 x 24 in one column, no order stated", r"(?s)two readings.*row-major.*column-major", asked=True)
def _(rng: Any) -> Brought:
    return _product(rng, flat)


@source("D 32 x 24 in one line, row-major stated", "as expected")
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: flat(D, width=768), "--format", "row-major")


@source("D 32 x 24 transposed, column-major stated", "as expected")
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: rows_of(D.T), "--format", "column-major")


@source("D 32 x 24 transposed, no order stated", r"(?s)two readings.*transposed", asked=True)
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: rows_of(D.T))


@source("D 32 x 24 as D[i] = v", "as expected")
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: "\n".join(f"D[{i}] = {v:.9g}" for i, v in enumerate(D.ravel().tolist())))


@source("D 32 x 24 as a JSON list of numbers, row-major stated", "as expected")
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: repr(D.ravel().tolist()), "--format", "row-major")


@source("D of 700 numbers in one column", r"(?s)700.*32 x 24", asked=True)
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: "\n".join(flat(D).splitlines()[:700]), "--format", "row-major")


@source("D of 20 rows of 24", r"(?s)D\.txt.*20.*A\.npy.*32", asked=True)
def _(rng: Any) -> Brought:
    return _product(rng, lambda D: rows_of(D[:20]))


# --- fragments of B ---------------------------------------------------------------------------------------


@source("b and acc of all steps beside A alone: step 3 lost its B", r"step 3|step 4")
def _(rng: Any) -> Brought:
    run = Run(rng)
    acc = run.accumulators()
    d = [*acc[:3], acc[2], *acc[4:]]
    text = stepped(run, b=run.b, acc=d)
    return Brought(form=F16, arrays={"A": run.A}, texts={"log.txt": text}, words=("log.txt",))


@source(
    "a, b and acc of all steps without matrices, all right", r"all 8 steps|every step|as expected", right=True
)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, a=run.a, b=run.b, acc=run.accumulators())
    return Brought(form=F16, texts={"log.txt": text}, words=("log.txt",))


@source("a, b and acc of all steps without matrices, cleared in step 4", r"step 4.*clear")
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, a=run.a, b=run.b, acc=run.accumulators(4))
    return Brought(form=F16, texts={"log.txt": text}, words=("log.txt",))


@source("b and acc beside A, all right", r"all 8 steps|every step|as expected", right=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = stepped(run, b=run.b, acc=run.accumulators())
    return Brought(form=F16, arrays={"A": run.A}, texts={"log.txt": text}, words=("log.txt",))


@source("b.x and b.y of a uint2 in every step, without .trans in step 5", r"step 5.*B.*trans")
def _(rng: Any) -> Brought:
    run = Run(rng)
    run.load_b(5, lambda k, n: run.B[80 + n + k // 8 * 8, k % 8])
    text = [
        f"k={s} lane={i} b.x=0x{b[i][0]:08x} b.y=0x{b[i][1]:08x}"
        for s, b in enumerate(run.b)
        for i in range(32)
    ]
    return brought(run, {"log.txt": "\n".join(text)}, "log.txt")


@source("frag_b[0] as halves in decimals, all right", r"all 8 steps|every step|holds", right=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = [
        f"kt {s} lane {i} frag_b: " + " ".join(f"{v:g}" for v in b[i].view(np.float16).tolist())
        for s, b in enumerate(run.b)
        for i in range(32)
    ]
    return brought(run, {"log.txt": "\n".join(text)}, "log.txt")


# --- metadata in decimals ---------------------------------------------------------------------------------


def _metadata(rng: Any, spelled: Callable[[int, int], str], wrong: bool = False) -> Brought:
    A, kept = two_of_four(rng, 16, 32)
    e = e_of(lambda r, g: kept[r ^ (8 * wrong), g, 0] | kept[r ^ (8 * wrong), g, 1] << 2)
    text = "\n".join(spelled(i, int(word)) for i, word in enumerate(np.asarray(e).reshape(-1).tolist()))
    return Brought(form=SPARSE, arrays={"A": A}, texts={"e": text})


@source("e as %u after 'lane N e ='", r"holds|all \d+ words|as it should", right=True)
def _(rng: Any) -> Brought:
    return _metadata(rng, lambda i, word: f"lane {i} e = {word}")


@source("e as %d, negative", r"holds|all \d+ words|as it should", right=True)
def _(rng: Any) -> Brought:
    return _metadata(rng, lambda i, word: f"lane {i} e = {word - (word >> 31 << 32)}")


@source("e as numbers alone, a line for each lane", r"holds|all \d+ words|as it should", right=True)
def _(rng: Any) -> Brought:
    return _metadata(rng, lambda i, word: f"{word}")


@source("e as %u, rows g and g + 8 exchanged", r"rows g and g \+ 8 exchanged")
def _(rng: Any) -> Brought:
    return _metadata(rng, lambda i, word: f"lane {i} meta={word}", wrong=True)


@source(
    "e of eight digits, of which none is a letter", r"(?s)two readings.*0x.*decimal|hexadecimal", asked=True
)
def _(rng: Any) -> Brought:
    A, _ = two_of_four(rng, 16, 32)
    text = "\n".join(f"lane {i} e = {44444444 + i % 4 * 50000000 // 100}" for i in range(32))
    return Brought(form=SPARSE, arrays={"A": A}, texts={"e": text})


@source("e = 4294967296, one more than a word has", r"e\.txt.*line 6\b|line 6.*32 bits", asked=True)
def _(rng: Any) -> Brought:
    return _metadata(rng, lambda i, word: f"lane {i} e = {word if i != 5 else 1 << 32}")
