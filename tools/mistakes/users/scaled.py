"""Mistakes of loops along k with block scales: which step, row, byte and lane a scale is taken from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import MXF4, MXF8, NVF4, numbers
from tools.mistakes.judging import Brought, Case, Records, said

LIST: list[Case] = []


class Product:
    """A, B, C with scales ``(m, chunks)`` and ``(chunks, n)``, step by step."""

    def __init__(self, form: Any, A: Any, B: Any, C: Any, SA: Any, SB: Any) -> None:
        self.form, self.A, self.B, self.C, self.SA, self.SB = form, A, B, C, SA, SB
        self.steps = A.shape[1] // form.shape.k

    def cut(self) -> list[tuple[Any, Any, Any, Any]]:
        """Return A, B and the scales of every step."""
        k, chunks = self.form.shape.k, self.form.scale_chunks
        return [
            (
                self.A[:, i * k : i * k + k],
                self.B[i * k : i * k + k],
                self.SA[:, i * chunks : i * chunks + chunks],
                self.SB[i * chunks : i * chunks + chunks],
            )
            for i in range(self.steps)
        ]

    def chained(self, steps: Any, C: Any = None) -> Any:
        """Return D of these steps: D of each is C of the next."""
        D = self.C if C is None else C
        for a, b, sa, sb in steps:
            D = warpsim.gemm(self.form, a, b, D, scale_a=sa, scale_b=sb)
        return D

    def taking(self, order_a: Callable[[int], int], order_b: Callable[[int], int]) -> Any:
        """Return D where every step takes the scales of the steps ``order_a`` and ``order_b``."""
        steps = self.cut()
        return self.chained(
            [(a, b, steps[order_a(i)][2], steps[order_b(i)][3]) for i, (a, b, _, _) in enumerate(steps)]
        )

    def scaled(self, change_a: Callable[[Any], Any], change_b: Callable[[Any], Any]) -> Any:
        """Return D where the scales of every step are changed in the same way."""
        return self.chained([(a, b, change_a(sa), change_b(sb)) for a, b, sa, sb in self.cut()])


def same(x: Any) -> Any:
    """Return the argument unchanged."""
    return x


def scaled(
    name: str, names: str | Records, *, form: Any = MXF8, m: int = 16, n: int = 8, steps: int = 8
) -> Callable[[Any], Any]:
    """Register a function from a product and a generator to D."""

    def register(made: Callable[[Product, Any], Any]) -> Any:
        def make(rng: np.random.Generator) -> Brought:
            one = warpsim.decode(form[0], target=form[1])
            k, chunks = one.shape.k * steps, one.scale_chunks * steps
            A, B = numbers(rng, one.a, (m, k)), numbers(rng, one.b, (k, n))
            C = numbers(rng, one.c, (m, n))
            low, high = (120, 134) if one.scale_chunks < 4 else (40, 72)
            SA = rng.integers(low, high, (m, chunks)).astype(np.uint8)
            SB = rng.integers(low, high, (chunks, n)).astype(np.uint8)
            x = Product(one, A, B, C, SA, SB)
            given = {"A": A.view(np.uint8), "B": B.view(np.uint8), "C": C, "scale_a": SA, "scale_b": SB}
            return Brought(form=form, arrays=given | {"D": made(x, rng)})

        LIST.append(Case(name=name, make=make, names=names))
        return made

    return register


# --- steps ---------------------------------------------------------------------------------------------


@scaled("scales of A of the step before", said("scales of a", "sources", order=[0, 0, 1, 2, 3, 4, 5, 6]))
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: max(i - 1, 0), lambda i: i)


@scaled(
    "scales of B of the next step", said("scales of b", "sources", order=[1, 2, 3, 4, 5, 6, 7, 7]), form=MXF4
)
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: i, lambda i: min(i + 1, 7))


@scaled("scales of A loaded once", said("scales of a", "sources", order=[0, 0, 0, 0, 0, 0, 0, 0]), form=NVF4)
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: 0, lambda i: i)


@scaled("the byte id of A is not advanced", said("scales of a", "sources", order=[0, 0, 0, 0, 4, 4, 4, 4]))
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: i // 4 * 4, lambda i: i)


@scaled("the byte id of B runs backwards", said("scales of b", "sources", order=[3, 2, 1, 0, 7, 6, 5, 4]))
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: i, lambda i: i ^ 3)


@scaled("the byte id of B is one too high", said("scales of b", "sources", order=[1, 2, 3, 0, 5, 6, 7, 4]))
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: i, lambda i: i // 4 * 4 + (i + 1) % 4)


@scaled(
    "the words of scales of A are those of the next four steps",
    said("scales of a", "sources", order=[4, 5, 6, 7, 0, 1, 2, 3]),
)
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: (i + 4) % 8, lambda i: i)


@scaled(
    "step 4 has the scales of step 3, of A and B",
    said("scales of a and scales of b", "sources", order=[0, 1, 2, 3, 3, 5, 6, 7]),
    form=MXF4,
)
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: 3 if i == 4 else i, lambda i: 3 if i == 4 else i)


@scaled(
    "step 2 has B's scales of step 1",
    said("scales of b", "sources", order=[0, 1, 1, 3, 4, 5, 6, 7]),
    form=NVF4,
)
def _(x: Product, rng: Any) -> Any:
    return x.taking(lambda i: i, lambda i: 1 if i == 2 else i)


@scaled("step 5 left out", said("", "steps", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0], c=1.0))
def _(x: Product, rng: Any) -> Any:
    steps = x.cut()
    return x.chained(steps[:5] + steps[6:])


@scaled("step 1 twice", said("", "steps", weights=[1.0, 2.0, 1.0, 1.0], c=1.0), form=NVF4, steps=4)
def _(x: Product, rng: Any) -> Any:
    steps = x.cut()
    return x.chained([*steps[:2], steps[1], *steps[2:]])


@scaled(
    "A of the next step, its scales right", said("a", "sources", order=[1, 2, 3, 4, 5, 6, 7, 7]), form=MXF4
)
def _(x: Product, rng: Any) -> Any:
    steps = x.cut()
    return x.chained([(steps[min(i + 1, 7)][0], b, sa, sb) for i, (_, b, sa, sb) in enumerate(steps)])


# --- places --------------------------------------------------------------------------------------------


@scaled("scales of A and B exchanged", said("", "candidate"), steps=4)
def _(x: Product, rng: Any) -> Any:
    def crossed(sa: Any, sb: Any) -> tuple[Any, Any]:
        # every lane of a quad holds the scales of B's column, lanes 2 and 3 the rows of lanes 0 and 1
        return sb.T[np.arange(16) % 8], sa[np.arange(8)].T

    return x.chained([(a, b, *crossed(sa, sb)) for a, b, sa, sb in x.cut()])


@scaled("scales of A are one", said("scales of a", "scale of 1"), form=MXF4, steps=4)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(lambda s: np.full_like(s, 127), same)


@scaled(
    "rows g and g + 8 of the scales of A exchanged", said("scales of a", "xor", field="lane", by=1), steps=4
)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(lambda s: np.roll(s, 8, axis=0), same)


@scaled("scales of B of the next column", r"scales of B: (lane group|columns)", form=NVF4, steps=4)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(same, lambda s: np.roll(s, -1, axis=1))


@scaled(
    "the first chunk's scale of B for both",
    r"scales of B: (the first chunk|byte id 0's elements in every byte id)",
    form=MXF4,
    steps=4,
)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(same, lambda s: np.repeat(s[:1], 2, axis=0))


@scaled(
    "chunks of the scales of A exchanged", said("scales of a", "xor", field="byte", by=1), form=MXF4, steps=4
)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(lambda s: s[:, ::-1], same)


@scaled(
    "scales of A in reverse along k16", said("scales of a", "xor", field="byte", by=3), form=NVF4, steps=4
)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(lambda s: s[:, ::-1], same)


@scaled(
    "scales of A of the other tile of 32 rows",
    said("scales of a", "sources", tiles=[1, 0]),
    m=32,
    n=16,
    steps=4,
)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(lambda s: np.roll(s, 16, axis=0), same)


@scaled("one scale of A for all rows", said("scales of a", "constant", field="lane", value=0), steps=4)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(lambda s: np.repeat(s[:1], 16, axis=0), same)


@scaled("the bias of the scales is 128", said("scales of a", "exponent off", by=-1), form=MXF4, steps=4)
def _(x: Product, rng: Any) -> Any:
    return x.scaled(lambda s: s - np.uint8(1), same)


@scaled(
    "scales of A of lanes 16-31 are zero",  # as if these rows of A were
    r"the same as: scales of A of rows 4-7, 12-15 zero",
    form=NVF4,
    steps=4,
)
def _(x: Product, rng: Any) -> Any:
    def cleared(s: Any) -> Any:
        s = s.copy()
        s[[4, 5, 6, 7, 12, 13, 14, 15]] = 0
        return s

    return x.scaled(cleared, same)


@scaled(
    "scale of row 5 is that of row 4",
    said("scales of a", "copied", field="lane", at=20, **{"from": 16}),
    steps=4,
)
def _(x: Product, rng: Any) -> Any:
    def repeated(s: Any) -> Any:
        s = s.copy()
        s[5] = s[4]
        return s

    return x.scaled(repeated, same)


# --- C, the epilogue, and operands themselves ----------------------------------------------------------


@scaled("C forgotten", said("", "c", weights=[1.0, 1.0, 1.0, 1.0], c=0.0), steps=4)
def _(x: Product, rng: Any) -> Any:
    return x.chained(x.cut(), np.zeros_like(x.C))


@scaled("global scale of nvfp4 forgotten", r"D is 0\.125 times", form=NVF4, steps=4)
def _(x: Product, rng: Any) -> Any:
    return x.chained(x.cut(), np.zeros_like(x.C)) * np.float32(0.125)


@scaled("e2m1: nibbles of each byte exchanged in A", said("a", "xor", field="slot", by=1), form=MXF4, steps=4)
def _(x: Product, rng: Any) -> Any:
    return x.chained(
        [(a.reshape(16, -1, 2)[..., ::-1].reshape(a.shape), b, sa, sb) for a, b, sa, sb in x.cut()]
    )


@scaled(
    "a1 and a2 exchanged in every step", said("a", "swapped", field="register", first=1, second=2), steps=4
)
def _(x: Product, rng: Any) -> Any:
    def swapped(a: Any) -> Any:
        return warpsim.unpack(x.form, "a", warpsim.pack(x.form, "a", a)[:, [0, 2, 1, 3]])

    return x.chained([(swapped(a), b, sa, sb) for a, b, sa, sb in x.cut()])
