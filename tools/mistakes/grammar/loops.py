"""Loops along k: a row states the sizes, how D came about, and the kind of cause with its facts.

``made`` gets the instruction, A, B, C and the steps ``[(A_s, B_s), ...]``; it returns D. ``kind`` is that of
the cause, with the facts that it must have; an empty kind: nothing may be claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import warpsim
from tools.mistakes.users.loops import chained, cut

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32@sm_80"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32@sm_80"


class Product(NamedTuple):
    """One product of ``m x n`` and so many steps."""

    name: str
    made: Callable[..., Any]
    kind: str
    facts: dict[str, Any]
    size: tuple[int, int, int] = (32, 32, 4)
    form: str = F16


def _of(order: list[tuple[int, int]]) -> Callable[..., Any]:
    """Return a loop whose steps read A and B of these steps."""
    return lambda f, A, B, C, s: chained(f, [(s[a][0], s[b][1]) for a, b in order], C)


def _with(a: Callable[[Any], Any] = lambda x: x, b: Callable[[Any], Any] = lambda x: x) -> Callable[..., Any]:
    """Return a loop over other matrices."""
    return lambda f, A, B, C, s: chained(f, cut(f, np.ascontiguousarray(a(A)), np.ascontiguousarray(b(B))), C)


def _held(words: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a loop whose A is packed into other registers in every step of every tile."""

    def made(f: Any, A: Any, B: Any, C: Any, s: Any) -> Any:
        read = A.copy()
        for i in range(0, len(A), f.shape.m):
            for k in range(0, A.shape[1], f.shape.k):
                tile = warpsim.pack(f, "a", np.ascontiguousarray(A[i : i + f.shape.m, k : k + f.shape.k]))
                read[i : i + f.shape.m, k : k + f.shape.k] = warpsim.unpack(f, "a", words(tile))
        return chained(f, cut(f, read, B), C)

    return made


def _tile(f: Any, A: Any, B: Any, C: Any, s: Any) -> Any:
    D = chained(f, s, C)
    D[16:32, :8] = chained(f, [(a[16:32], b[:, :8]) for a, b in (s[0], s[1], s[3])], C[16:32, :8])
    return D


def _cleared(at: int) -> Callable[..., Any]:
    return lambda f, A, B, C, s: chained(f, s[at:], np.zeros_like(C))


def _noise(f: Any, A: Any, B: Any, C: Any, s: Any) -> Any:
    return np.random.default_rng(9).standard_normal(C.shape).astype(C.dtype)


STEPS, SOURCE, START, OPERAND, VALUES, SUMS, RESULT = (
    *("steps", "sources", "c", "operand", "values", "sums", "result"),
)
LARGE = (64, 64, 4)
LOOPS: tuple[Product, ...] = (
    Product("step 1 left out", _of([(0, 0), (2, 2), (3, 3)]), STEPS, {"weights": (1, 0, 1, 1)}),
    Product("steps 1 and 3 left out", _of([(0, 0), (2, 2)]), STEPS, {"weights": (1, 0, 1, 0)}),
    Product(
        "step 2 three times",
        _of([(0, 0), (1, 1), (2, 2), (2, 2), (2, 2), (3, 3)]),
        STEPS,
        {"weights": (1, 1, 3, 1)},
    ),
    Product(
        "step 0 twice, step 3 never", _of([(0, 0), (0, 0), (1, 1), (2, 2)]), STEPS, {"weights": (2, 1, 1, 0)}
    ),
    Product(
        "B one step behind, the first repeated",
        _of([(0, 0), (1, 0), (2, 1), (3, 2)]),
        SOURCE,
        {"operand": "B", "order": (0, 0, 1, 2)},
    ),
    Product(
        "A of step 3 in step 1",
        _of([(0, 0), (3, 1), (2, 2), (3, 3)]),
        SOURCE,
        {"operand": "A", "order": (0, 3, 2, 3)},
    ),
    Product(
        "A in the order 1, 3, 0, 2",
        _of([(1, 0), (3, 1), (0, 2), (2, 3)]),
        SOURCE,
        {"operand": "A", "order": (1, 3, 0, 2)},
    ),
    Product(
        "B of stages exchanged",
        _of([(0, 2), (1, 3), (2, 0), (3, 1)]),
        SOURCE,
        {"operand": "B", "order": (2, 3, 0, 1)},
    ),
    Product(
        "B not advanced in pairs",
        _of([(0, 0), (1, 0), (2, 2), (3, 2)]),
        SOURCE,
        {"operand": "B", "order": (0, 0, 2, 2)},
    ),
    Product(
        "sixteen steps, A not advanced in fours",
        _of([(i // 4 * 4, i) for i in range(16)]),
        SOURCE,
        {"operand": "A", "order": tuple(i // 4 * 4 for i in range(16))},
        (32, 32, 16),
    ),
    Product(
        "sixteen steps, step 11 left out",
        _of([(i, i) for i in range(16) if i != 11]),
        STEPS,
        {"weights": tuple(int(i != 11) for i in range(16))},
        (32, 32, 16),
    ),
    Product("step 2 left out of one tile", _tile, STEPS, {"weights": (1, 1, 0, 1), "rows": 16}),
    Product(
        "row tiles of A exchanged",
        _with(a=lambda A: np.roll(A, 16, axis=0)),
        SOURCE,
        {"operand": "A", "tiles": (1, 0)},
    ),
    Product(
        "column tiles of B in the order 2, 3, 0, 1",
        _with(b=lambda B: np.roll(B, 16, axis=1)),
        SOURCE,
        {"operand": "B", "tiles": (2, 3, 0, 1)},
    ),
    Product(
        "all row tiles of A are the first",
        _with(a=lambda A: np.concatenate([A[:16]] * 2)),
        SOURCE,
        {"operand": "A", "tiles": (0, 0)},
    ),
    Product(
        "C times -0.5",
        lambda f, A, B, C, s: chained(f, s, (C * -0.5).astype(C.dtype)),
        START,
        {"weight": -0.5},
    ),
    Product("C left out", lambda f, A, B, C, s: chained(f, s, np.zeros_like(C)), START, {"weight": 0}),
    Product("C transposed", lambda f, A, B, C, s: chained(f, s, np.ascontiguousarray(C.T)), START, {}),
    Product("C one row further", lambda f, A, B, C, s: chained(f, s, np.roll(C, -1, axis=0)), START, {}),
    Product("accumulators cleared before step 2", _cleared(2), STEPS, {"weights": (0, 0, 1, 1)}),
    Product("D transposed", lambda f, A, B, C, s: np.ascontiguousarray(chained(f, s, C).T), RESULT, {}),
    Product("rows of D reversed", lambda f, A, B, C, s: chained(f, s, C)[::-1].copy(), RESULT, {}),
    Product(
        "D in tiles of 16 x 8 one after another",
        lambda f, A, B, C, s: chained(f, s, C).reshape(2, 16, 4, 8).swapaxes(1, 2).reshape(32, 32),
        RESULT,
        {},
    ),
    Product(
        "D stored with a stride of 40",
        lambda f, A, B, C, s: np.pad(chained(f, s, C), [(0, 0), (0, 8)]).reshape(-1)[:1024].reshape(32, 32),
        RESULT,
        {},
    ),
    Product(
        "lane ^ 5 of A in every step",
        _held(lambda w: w[..., np.arange(32) ^ 5, :]),
        OPERAND,
        {"operand": "A"},
    ),
    Product("lanes of A reversed in every step", _held(lambda w: w[..., ::-1, :]), OPERAND, {"operand": "A"}),
    Product(
        "registers of A rotated in every step",
        _held(lambda w: w[..., [1, 2, 3, 0]]),
        OPERAND,
        {"operand": "A"},
    ),
    Product(
        "A read by columns", _with(a=lambda A: A.reshape(-1).reshape(64, 32).T), OPERAND, {"operand": "A"}
    ),
    Product(
        "B in rows of 40, read in rows of 32",
        _with(b=lambda B: np.pad(B, [(0, 0), (0, 8)]).reshape(-1)[: 64 * 32].reshape(64, 32)),
        OPERAND,
        {"operand": "B"},
    ),
    Product(
        "A swizzled by rows",
        _with(a=lambda A: A[np.arange(64)[:, None], np.arange(64) ^ (np.arange(64) % 8 * 8)[:, None]]),
        OPERAND,
        {"operand": "A"},
        LARGE,
    ),
    Product(
        "B: k pairs exchanged", _with(b=lambda B: B[np.arange(64) ^ 1]), OPERAND, {"operand": "B"}, LARGE
    ),
    Product(
        "B transposed in blocks of 8",
        _with(b=lambda B: B.reshape(8, 8, 8, 8).transpose(0, 3, 2, 1).reshape(64, 64)),
        OPERAND,
        {"operand": "B"},
        LARGE,
    ),
    Product(
        "k 5 of A zero",
        _with(a=lambda A: np.where(np.arange(64) == 5, 0, A).astype(A.dtype)),
        OPERAND,
        {"operand": "A"},
        LARGE,
    ),
    Product(
        "A truncated to bf16",
        _with(
            a=lambda A: (A.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(A.dtype)
        ),
        VALUES,
        {"operand": "A"},
        LARGE,
    ),
    Product("B without its sign", _with(b=np.abs), VALUES, {"operand": "B"}),
    Product(
        "A times a scale of each row",
        lambda f, A, B, C, s: (
            chained(f, s, np.zeros_like(C)) * np.linspace(0.5, 2, 32, dtype=np.float32)[:, None]
        ),
        RESULT,
        {"rank": 1},
    ),
    Product("steps from the last to the first", lambda f, A, B, C, s: chained(f, s[::-1], C), SUMS, {}),
    Product("split in two along k", lambda f, A, B, C, s: warpsim.gemm(f, A, B, C, split_k=2), SUMS, {}),
    Product("noise", _noise, "", {}),
    Product(
        "integers, step 2 twice",
        _of([(0, 0), (1, 1), (2, 2), (2, 2), (3, 3)]),
        STEPS,
        {"weights": (1, 1, 2, 1)},
        (32, 32, 4),
        S8,
    ),
)
