"""The author of a kernel who put printf into it: few lanes, several warps, steps in their own words."""

from __future__ import annotations

from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import F16, MXF8, SPARSE, one
from tools.mistakes.dumps.packings import two_of_four
from tools.mistakes.judging import Brought

from .listing import Listing
from .register_reader import a_words, bits

LIST = Listing()
LANES = range(32)


def spelled(words: Any, cell: str) -> list[str]:
    """Return a line for each register of each lane."""
    return [cell.format(lane=i, reg=r, word=int(w)) for i in LANES for r, w in enumerate(words[i].tolist())]


@LIST.mistake(
    "if (lane == 5) printf: a0 to a3 of a single lane", r"31 lanes|lanes? 0|one lane|lane 5", asked=True
)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    words = [f"a{r} = {w:08x}" for r, w in enumerate(p.registers["a"][5].tolist())]
    return Brought(form=F16, arrays={"A": p.A}, texts={"a": "lane 5: " + " ".join(words)})


@LIST.mistake(
    "metadata of steps 0 to 3: step 2 and 3 have those of step 1", r"step 2.*step 1", locates=r"step"
)
def _(rng: Any) -> Brought:
    A, e = _sparse_steps(rng)
    text = []
    for step, at in enumerate((0, 1, 1, 1)):
        text.append(f"---- ktile {step} ----")
        text += [f"T{lane}: meta = {int(e[at][lane, 0])}" for lane in LANES]
    return Brought(form=SPARSE, arrays={"A": A}, texts={"e": "\n".join(text)})


@LIST.mistake(
    "metadata: rows g and g + 8 exchanged in every step", r"row.*(8|exchanged)", locates=r"metadata|e "
)
def _(rng: Any) -> Brought:
    A, e = _sparse_steps(rng, rows=[*range(8, 16), *range(8)])
    text = [f"[it {s}] tid={lane} e={int(e[s][lane, 0]):#010x}" for s in range(4) for lane in LANES]
    return Brought(form=SPARSE, arrays={"A": A}, texts={"e": "\n".join(text)})


def _sparse_steps(rng: Any, rows: Any = None) -> tuple[Any, list[Any]]:
    """Return A (16, 128) two of four, and the metadata registers of its four steps."""
    form = warpsim.decode(SPARSE[0], target=SPARSE[1])
    A, _ = two_of_four(rng, 16, 128)
    read = A if rows is None else A[rows]
    _, indices = warpsim.compress(read.reshape(16, 4, 32).swapaxes(0, 1).copy(), form)
    return A, list(warpsim.pack_metadata(form, indices))


@LIST.mistake(
    "scale words: bytes of the four k steps from the highest down", r"byte.*(revers|order)|revers.*byte"
)
def _(rng: Any) -> Brought:
    scales = rng.integers(110, 140, (16, 4)).astype(np.uint8)
    lane = np.arange(32)
    row = lane // 4 + 8 * (lane % 2)
    words = sum(scales[row, 3 - byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
    words = np.where(lane % 4 < 2, words, 0)
    text = "\n".join(f"lane {i}: sfa {int(w):08x}" for i, w in enumerate(words))
    return Brought(
        form=MXF8, arrays={"SCALE_A": scales}, texts={"scale_a.txt": text}, words=("scale_a=scale_a.txt",)
    )


@LIST.mistake("D[row][col] from half of the registers: c0 and c2 only", r"(64|missing|lack)", asked=True)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    D = p.result()
    text = [f"D[{r}][{c}]={D[r, c]:.9g}" for r in range(16) for c in range(0, 8, 2)]
    return Brought(form=F16, arrays=p.registers, texts={"D": "\n".join(text)})


@LIST.mistake(
    "two warps, threads 0 to 63: warp 1 loads the rows of warp 0", r"warp 1|rows? 0|lane 32|lanes 32"
)
def _(rng: Any) -> Brought:
    A = rng.standard_normal((32, 16)).astype(np.float16)
    words = a_words(lambda r, c: bits(A)[r, c])
    text = [
        f"thread {32 * warp + lane}: a{r}=0x{int(words[lane, r]):08x}"
        for warp in range(2)
        for lane in LANES
        for r in range(4)
    ]
    return Brought(form=F16, arrays={"A": A}, texts={"a": "\n".join(text)})


@LIST.mistake(
    "acc of each step with six digits: a1 and a3 are zero in step 3", r"step 3.*(A|row)", locates=r"step 3"
)
def _(rng: Any) -> Brought:
    A, B = rng.standard_normal((16, 80)).astype(np.float16), rng.standard_normal((80, 8)).astype(np.float16)
    form = warpsim.decode(F16[0], target=F16[1])
    acc, text = np.zeros((16, 8), np.float32), ["launching gemm<<<1,32>>>"]
    for step in range(5):
        a = A[:, 16 * step : 16 * step + 16].copy()
        if step == 3:
            a[8:] = 0
        acc = warpsim.gemm(form, a, B[16 * step : 16 * step + 16], acc)
        words = warpsim.pack(form, "d", acc).view(np.float32)
        text += [
            f"k={step} tid {i} acc: " + " ".join(f"{x:f}" for x in row)
            for i, row in enumerate(words.tolist())
        ]
    return Brought(
        form=F16, arrays={"A": A, "B": B}, texts={"dump.txt": "\n".join(text)}, words=("dump.txt",)
    )


@LIST.mistake(
    "the kernel ran for two tiles: lane 4's a1 is printed with two values", r"line \d+.*line \d+", asked=True
)
def _(rng: Any) -> Brought:
    p, q = one(F16, rng), one(F16, rng)
    text = spelled(p.registers["a"], "lane {lane} a{reg}: {word:#010x}")
    text += spelled(q.registers["a"], "lane {lane} a{reg}: {word:#010x}")
    return Brought(form=F16, arrays={"A": p.A}, texts={"a": "\n".join(text)})
