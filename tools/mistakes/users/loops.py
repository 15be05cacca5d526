"""Mistakes of loops along k: a whole A, a whole B and one D of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import F16, SPARSE, Arrays, numbers
from tools.mistakes.judging import Brought, Case, Records, said

LIST: list[Case] = []
Step = tuple[Any, Any]  # A (m, k of one instruction) and B of one step


def loop(
    name: str,
    names: str | Records,
    *,
    m: int = 16,
    n: int = 8,
    steps: int = 8,
    form: Any = F16,
    listed: list[Case] = LIST,
) -> Callable[[Any], Any]:
    """Register a function from (form, A, B, C, rng) to D."""

    def register(made: Callable[..., Any]) -> Any:
        def make(rng: np.random.Generator) -> Brought:
            instruction = warpsim.decode(form[0], target=form[1])
            k = instruction.shape.k * steps
            A, B = numbers(rng, instruction.a, (m, k)), numbers(rng, instruction.b, (k, n))
            A = warpsim.prune(A, instruction) if instruction.sparse else A
            C = numbers(rng, instruction.c, (m, n))
            given: Arrays = {"A": A, "B": B, "C": C}
            return Brought(form=form, arrays=given | {"D": made(instruction, A, B, C, rng)})

        listed.append(Case(name=name, make=make, names=names))
        return made

    return register


def cut(form: Any, A: Any, B: Any) -> list[Step]:
    """Return A and B of each step."""
    k = form.shape.k
    return [(A[:, i : i + k], B[i : i + k]) for i in range(0, A.shape[1], k)]


def chained(form: Any, steps: list[Step], C: Any) -> Any:
    """Return what a kernel computes of these steps: D of each is C of the next."""
    D = C
    for a, b in steps:
        D = warpsim.gemm(form, a, b, D)
    return D


def swapped(form: Any, a: Any) -> Any:
    """Return A with registers 1 and 2 exchanged."""
    words = warpsim.pack(form, "a", a)
    return warpsim.unpack(form, "a", words[:, [0, 2, 1, 3]])


@loop("a1 and a2 exchanged in every step", said("a", "swapped", field="register", first=1, second=2))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, [(swapped(form, a), b) for a, b in cut(form, A, B)], C)


@loop("b0 and b1 exchanged in every step", said("b", "xor", field="register", by=1))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, [(a, np.roll(b, 8, axis=0)) for a, b in cut(form, A, B)], C)


@loop(
    "a1 and a2 exchanged in step 3",
    said("a", "swapped", field="register", first=1, second=2) + said("a", "where", field="k step", value=3),
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    steps[3] = swapped(form, steps[3][0]), steps[3][1]
    return chained(form, steps, C)


@loop("step 5 left out", said("", "steps", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0], c=1.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    del steps[5]
    return chained(form, steps, C)


@loop("the first step left out", said("", "steps", weights=[0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], c=1.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[1:], C)


@loop(
    "the last two steps left out", said("", "steps", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0], c=1.0)
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[:-2], C)


@loop("step 2 twice", said("", "steps", weights=[1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0], c=1.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    return chained(form, [*steps[:3], steps[2], *steps[3:]], C)


@loop("step 4 reads A of step 3", said("a", "sources", order=[0, 1, 2, 3, 3, 5, 6, 7]))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    steps[4] = steps[3][0], steps[4][1]
    return chained(form, steps, C)


@loop("every step reads B of the next", said("b", "sources", order=[1, 2, 3, 4, 5, 6, 7, 0]))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    return chained(form, [(a, steps[(i + 1) % 8][1]) for i, (a, _) in enumerate(steps)], C)


@loop("every step reads the first A", said("a", "sources", order=[0, 0, 0, 0, 0, 0, 0, 0]))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    return chained(form, [(steps[0][0], b) for _, b in steps], C)


@loop("the tail of k left out", said("", "steps", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], c=1.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    A, B = A[:, :120], B[:120]
    return chained(form, cut(form, A, B)[:-1], C)


@loop(
    "accumulators cleared at step 4",
    said("", "steps", weights=[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], c=0.0),
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[4:], np.zeros_like(C))


@loop("C forgotten", said("", "c", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], c=0.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), np.zeros_like(C))


@loop("C twice", said("", "c", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], c=2.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), C) + C


@loop("C garbage", r"C.*(garbage|something else|not what)")
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), (rng.standard_normal((16, 8)) * 40).astype(np.float32))


@loop("C added in the end, not in the beginning", said("", "sums"))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), np.zeros_like(C)) + C


@loop("half of C (beta)", said("", "c", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], c=0.5))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), np.zeros_like(C)) + np.float32(0.5) * C


@loop("scaled by an eighth (alpha)", r"(times|scaled|alpha).*(0\.125|1/8)")
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), C) * np.float32(0.125)


@loop("ReLU in the epilogue", r"ReLU|relu")
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return np.maximum(chained(form, cut(form, A, B), C), 0)


@loop("a bias of each column added", r"bias|each column|per column")
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), C) + rng.integers(-8, 8, 8).astype(np.float32)


@loop("split in two along k", said("", "sums"))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return warpsim.gemm(form, A, B, C, split_k=2)


@loop("steps in descending order", said("", "sums"))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[::-1], C)


@loop(
    "rows of A's tiles exchanged within the block",
    said("a", "sources", tiles=[1, 0, 3, 2]),
    m=64,
    n=32,
    steps=4,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A.reshape(4, 16, -1)[[1, 0, 3, 2]].reshape(A.shape), B), C)


@loop("one warp tile of D is its neighbour's", r"tile", m=64, n=32, steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    D = chained(form, cut(form, A, B), C)
    D[16:32, 8:16] = D[16:32, 16:24]
    return D


@loop(
    "a1 and a2 exchanged, 128 x 128 x 64",
    said("a", "swapped", field="register", first=1, second=2),
    m=128,
    n=128,
    steps=4,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    tiles = [swapped(form, a) for a in A.reshape(8, 16, 4, 16).swapaxes(1, 2).reshape(32, 16, 16)]
    wrong = np.stack(tiles).reshape(8, 4, 16, 16).swapaxes(1, 2).reshape(A.shape)
    return chained(form, cut(form, wrong, B), C)


@loop("metadata of the step before", said("metadata", "sources", order=[0, 0, 1, 2]), form=SPARSE, steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    D, before = C, None
    for a, b in cut(form, A, B):
        values, indices = warpsim.compress(a, form)
        D = warpsim.matmul(form, (values, indices if before is None else before), b, D)
        before = indices
    return D
