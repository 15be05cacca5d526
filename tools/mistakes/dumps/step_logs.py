"""Logs of a loop along k, as printf in a kernel leaves them, beside the whole A and B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tools.mistakes.case import F16, SPARSE
from tools.mistakes.judging import Brought, Case

from .packings import a_of, b_of, bits_of, e_of, two_of_four

LIST: list[Case] = []
STEPS = 8


def log(name: str, names: str, hints: str = "", asked: bool = False) -> Callable[[Any], Any]:
    """Register a function that makes what a user brings."""

    def register(make: Callable[[np.random.Generator], Brought]) -> Any:
        LIST.append(Case(name=name, make=make, names=names, hints=hints or names, asked=asked))
        return make

    return register


class Run:
    """A kernel of eight steps: what it loaded in each, and its accumulators after each."""

    def __init__(self, rng: Any, steps: int = STEPS) -> None:
        self.A = rng.integers(-64, 64, (16, 16 * steps)).astype(np.float16) / np.float16(16)
        self.B = rng.integers(-64, 64, (16 * steps, 8)).astype(np.float16) / np.float16(16)
        a, b = bits_of(self.A), bits_of(self.B)
        self.a = [a_of(lambda r, c, s=s: a[r, 16 * s + c]) for s in range(steps)]
        self.b = [b_of(lambda k, n, s=s: b[16 * s + k, n]) for s in range(steps)]
        self.used_a = [self.A[:, 16 * s : 16 * s + 16] for s in range(steps)]
        self.used_b = [self.B[16 * s : 16 * s + 16] for s in range(steps)]

    def load_a(self, step: int, element: Callable[[int, int], Any]) -> None:
        """Load other elements in a step."""
        self.used_a[step] = np.array([[element(r, c) for c in range(16)] for r in range(16)], np.float16)
        codes = bits_of(self.used_a[step])
        self.a[step] = a_of(lambda r, c: codes[r, c])

    def load_b(self, step: int, element: Callable[[int, int], Any]) -> None:
        """Load other elements of B."""
        self.used_b[step] = np.array([[element(k, n) for n in range(8)] for k in range(16)], np.float16)
        codes = bits_of(self.used_b[step])
        self.b[step] = b_of(lambda k, n: codes[k, n])

    def accumulators(self, cleared: int = -1) -> list[Any]:
        """Return registers of D after each step; exact: the numbers are small."""
        total, found = np.zeros((16, 8)), []
        for step, (a, b) in enumerate(zip(self.used_a, self.used_b, strict=True)):
            total = (0 if step == cleared else total) + a.astype(np.float64) @ b.astype(np.float64)
            found.append(acc_of(total.astype(np.float32)))
        return found


def acc_of(D: Any) -> Any:
    """Return the accumulators of m16n8, by hand."""
    d = bits_of(np.ascontiguousarray(D))
    return np.array(
        [[d[(lane >> 2) + 8 * (i >> 1), 2 * (lane & 3) + (i & 1)] for i in range(4)] for lane in range(32)],
        np.uint32,
    )


def lines(named: str, words: Any) -> list[str]:
    """Return lane 5 a[2] = 0x… for all lanes."""
    return [f"lane {i} {named}[{r}] = 0x{w:08x}" for i in range(32) for r, w in enumerate(words[i].tolist())]


def headed(run: Run, heading: str, **names: Any) -> str:
    """Return a line for each step, and the registers of all lanes after it."""
    text = []
    for step in range(len(run.a)):
        text.append(heading.format(step))
        for name, each in names.items():
            text += lines(name, each[step])
    return "\n".join(text)


def brought(run: Run, texts: dict[str, str], *words: str, **arrays: Any) -> Brought:
    """Return the whole A and B beside texts."""
    return Brought(form=F16, arrays={"A": run.A, "B": run.B} | arrays, texts=texts, words=words)


@log("a=steps.txt of A 16 x 128, all right", r"all (8 )?steps|hold.*steps|every step")
def _(rng: Any) -> Brought:
    run = Run(rng)
    return Brought(form=F16, arrays={"A": run.A}, texts={"a": headed(run, "mma {}:", a=run.a)})


@log("a and b of all steps in one file, step 3 reads A of step 2", r"step 3.*A.*step 2")
def _(rng: Any) -> Brought:
    run = Run(rng)
    run.load_a(3, lambda r, c: run.A[r, 32 + c])
    return brought(run, {"dump.txt": headed(run, "k = {}", a=run.a, b=run.b)}, "dump.txt")


@log("the step in every line: step=3 lane=5 a1=0x…, b without .trans in step 5", r"step 5.*B.*trans")
def _(rng: Any) -> Brought:
    run = Run(rng)
    run.load_b(5, lambda k, n: run.B[80 + n + k // 8 * 8, k % 8])
    text = [
        f"step={s} lane={i} {name}{r}=0x{w:08x}"
        for s in range(STEPS)
        for name, each in (("a", run.a), ("b", run.b))
        for i in range(32)
        for r, w in enumerate(each[s][i].tolist())
    ]
    return brought(run, {"dump.txt": "\n".join(text)}, "dump.txt")


@log("a format with {step}, lines of all lanes interleaved", r"step 2.*A.*(regist|1 and 2)")
def _(rng: Any) -> Brought:
    run = Run(rng)
    run.load_a(2, lambda r, c: run.A[r % 8 + c // 8 * 8, 32 + c % 8 + r // 8 * 8])
    text = [
        f"[k{s}] T{i:02d} {name}{r} -> {w:08x}"
        for s in range(STEPS)
        for i in range(32)
        for name, each in (("a", run.a), ("b", run.b))
        for r, w in enumerate(each[s][i].tolist())
    ]
    np.random.default_rng(1).shuffle(text)
    return brought(
        run, {"dump.txt": "\n".join(text)}, "--format", "[k{step}] T{lane} {name}{reg} -> {hex}", "dump.txt"
    )


@log("acc after every step, cleared in step 4", r"step 4.*(clear|reset|zero|C )")
def _(rng: Any) -> Brought:
    run = Run(rng)
    return brought(
        run, {"dump.txt": headed(run, "step {}", a=run.a, b=run.b, acc=run.accumulators(4))}, "dump.txt"
    )


@log("acc only, as decimals: step 6 used B of step 5", r"step 6.*B.*step 5|step 6.*step 5.*B")
def _(rng: Any) -> Brought:
    run = Run(rng)
    run.load_b(6, lambda k, n: run.B[80 + k, n])
    text = []
    for s, acc in enumerate(run.accumulators()):
        text += [
            f"iter {s} lane {i} acc[{r}] = {v:.9g}"
            for i in range(32)
            for r, v in enumerate(acc[i].view(np.float32).tolist())
        ]
    return brought(run, {"dump.txt": "\n".join(text)}, "dump.txt")


@log("c0..c3 is the accumulator of every step, all right", r"all (8 )?steps|every step|as expected")
def _(rng: Any) -> Brought:
    run = Run(rng)
    acc = run.accumulators()
    text = "\n".join(
        f"step {s} lane {i}: " + " ".join(f"c{r}=0x{w:08x}" for r, w in enumerate(acc[s][i].tolist()))
        for s in range(STEPS)
        for i in range(32)
    )
    return brought(run, {"dump.txt": text}, "dump.txt")


@log(
    "A (16,128), B (128,8) and the registers d= of the end: a1 and a2 exchanged",
    r"A: registers 1 and 2 exchanged(?!.*(step|tile))",
)
def _(rng: Any) -> Brought:
    run = Run(rng)
    for s in range(STEPS):
        run.load_a(s, lambda r, c, s=s: run.A[r % 8 + c // 8 * 8, 16 * s + c % 8 + r // 8 * 8])
    return brought(run, {}, d=run.accumulators()[-1])


@log("a as a 3-D .npy of steps, stale from step 6 on", r"step 6.*step 5")
def _(rng: Any) -> Brought:
    run = Run(rng)
    for s in (6, 7):
        run.load_a(s, lambda r, c: run.A[r, 80 + c])
    return Brought(form=F16, arrays={"A": run.A, "a": np.stack(run.a)})


@log("a 3-D e beside A 16 x 128 (sparse), step 2 has step 1's", r"step 2.*(step 1)")
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 128)
    e = [e_of(lambda r, g, s=s: kept[r, 8 * s + g, 0] | kept[r, 8 * s + g, 1] << 2) for s in (0, 1, 1, 3)]
    return Brought(form=SPARSE, arrays={"A": A, "e": np.stack(e)})


@log("one step too few in the log", r"7.*steps|steps.*(missing|7)", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = [line for s in range(7) for line in (f"mma {s}:", *lines("a", run.a[s]))]
    return Brought(form=F16, arrays={"A": run.A}, texts={"a": "\n".join(text)})


@log("step 4 is missing in the middle of a log", r"step 4.*missing|missing.*step 4", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    text = [
        f"step {s} lane {i} a[{r}] = 0x{w:08x}"
        for s in range(STEPS)
        if s != 4
        for i in range(32)
        for r, w in enumerate(run.a[s][i].tolist())
    ]
    return Brought(form=F16, arrays={"A": run.A}, texts={"a": "\n".join(text)})


@log("both operands wrong from different steps on: the first is named", r"step 1.*B.*|B.*step 1")
def _(rng: Any) -> Brought:
    run = Run(rng)
    run.load_b(1, lambda k, n: run.B[k, n])
    run.load_a(5, lambda r, c: run.A[r, 64 + c])
    return brought(
        run, {"dump.txt": headed(run, "# step {}\nkt={}".replace("{}", "{0}"), a=run.a, b=run.b)}, "dump.txt"
    )


@log("a dump of steps beside an A whose shape does not fit them", r"(shape|rows|12).*", asked=True)
def _(rng: Any) -> Brought:
    run = Run(rng)
    return Brought(form=F16, arrays={"A": run.A[:12, :100], "a": np.stack(run.a)})
