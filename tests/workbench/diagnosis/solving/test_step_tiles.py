"""Steps and tiles of loops solved from D: made-up products, whose weights must come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsim.workbench.diagnosis.solving.step_tiles import Mixture, Tiles, mixture, ordered, simple, weights
from warpsim.workbench.diagnosis.solving.step_words import k_text, line_text, order_text, weights_text

R, S, C, M, K, N = 2, 4, 3, 16, 8, 8
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((R, S, M, K)), RNG.standard_normal((S, C, K, N))
C_ = RNG.standard_normal((R, M, C * N))


def product(theta: Any, of_c: float = 1.0, noise: float = 1e-6, seed: int = 1) -> Tiles:
    """Return the tiles of a D that is made by plain loops."""
    d = of_c * C_ + noise * np.random.default_rng(seed).uniform(-1, 1, C_.shape)
    for r, s, p, u in np.argwhere(theta).tolist():
        for c in range(C):
            d[r, :, c * N : c * N + N] += theta[r, s, p, u] * (A[p, u] @ B[s, c])
    return Tiles(a=A, b=B, c=C_, d=d, near=np.full(d.shape, 4 * noise))


def right() -> Any:
    theta = np.zeros((R, S, R, S))
    for r, s in np.ndindex(R, S):
        theta[r, s, r, s] = 1
    return theta


@pytest.mark.parametrize("steps", [(1, 0, 1, 1), (1, 3, 1, 1), (0, 0, 1, 0), (2, 1, 0.5, -1)])
def test_weights_of_steps_are_solved(steps: tuple[float, ...]) -> None:
    theta = right() * np.array(steps)[None, :, None, None]
    found = mixture(product(theta, of_c=-0.5))
    assert found is not None
    assert np.array_equal(found.own, [steps, steps])
    assert np.array_equal(found.c, [-0.5, -0.5])


def test_a_step_left_out_in_one_row_of_tiles() -> None:
    theta = right()
    theta[1, 2] = 0
    found = mixture(product(theta))
    assert found is not None
    assert np.array_equal(found.own, [[1, 1, 1, 1], [1, 1, 0, 1]])


@pytest.mark.parametrize("order", [(0, 0, 1, 2), (3, 1, 0, 2), (0, 0, 0, 0), (-1, 1, 2, 3)])
def test_a_of_other_steps_is_solved(order: tuple[int, ...]) -> None:
    theta = np.zeros((R, S, R, S))
    for r, s in np.ndindex(R, S):
        if order[s] >= 0:
            theta[r, s, r, order[s]] = 1
    found = mixture(product(theta))
    assert found is not None
    sources = found.sources
    assert sources is not None
    assert np.array_equal(sources[:, :, 1], [order, order])


def test_b_of_other_steps_is_solved() -> None:
    order = (0, 0, 1, 2)
    theta = np.zeros((R, S, R, S))
    for r, s in np.ndindex(R, S):
        theta[r, order[s], r, s] = 1
    found = mixture(product(theta))
    assert found is not None
    assert found.sources is None
    assert np.array_equal(found.partners, [order, order])


def test_tiles_of_other_rows_are_solved() -> None:
    theta = np.zeros((R, S, R, S))
    for r, s in np.ndindex(R, S):
        theta[r, s, 1 - r, (s + 1) % S] = 1
    found = mixture(product(theta))
    assert found is not None
    sources = found.sources
    assert sources is not None
    assert np.array_equal(sources[0], [[1, 1], [1, 2], [1, 3], [1, 0]])
    assert found.own is None
    assert found.partners is None


def test_a_d_of_something_else_has_no_weights() -> None:
    d = product(right()).d
    d[0, 3, 5] += 1e-4
    assert mixture(Tiles(a=A, b=B, c=C_, d=d, near=np.full(d.shape, 4e-6))) is None


def test_weights_of_every_k_are_solved() -> None:
    """Steps of a single k: an operand that is scaled, or zero, at some k."""
    of_k = RNG.integers(0, 4, S * K).astype(float)
    scaled = A * of_k.reshape(S, 1, K)[None]
    d = C_ + np.stack(
        [sum(scaled[r, s] @ B[s].swapaxes(0, 1).reshape(K, -1) for s in range(S)) for r in range(R)]
    )
    found = mixture(Tiles(a=A, b=B, c=C_, d=d, near=np.full(d.shape, 1e-6)).of_every_k, kinds=1)
    assert found is not None
    assert np.array_equal(found.own, [of_k])


def test_a_step_left_out_in_some_rows_of_a_tile() -> None:
    tiles = product(right())
    tiles.d[0, 4:12] -= A[0, 1, 4:12] @ B[1].swapaxes(0, 1).reshape(K, -1)
    assert mixture(tiles) is None
    found = mixture(tiles.of_lines, kinds=1)
    assert found is not None
    assert found.own is not None
    assert np.array_equal(np.flatnonzero((found.own != 1).any(axis=1)), np.arange(4, 12))
    assert np.array_equal(found.own[5], [1, 0, 1, 1])
    assert line_text(found.own, "row") == "step 1 left out (missing) in rows 4-11"


def test_elements_that_are_not_finite_are_left_out() -> None:
    tiles = product(right())
    tiles.d[0, 0, 0] = np.inf
    found = mixture(tiles)
    assert found is not None
    assert np.array_equal(found.own, np.ones((R, S)))


def test_the_transposed_product_has_the_same_weights() -> None:
    theta = right() * np.array([1, 0, 2, 1])[None, :, None, None]
    found = mixture(product(theta).turned)
    assert found is not None
    assert np.array_equal(found.own, [(1, 0, 2, 1)] * C)


def test_equations_that_decide_nothing_have_no_weights() -> None:
    parts = RNG.standard_normal((6, 10))
    assert weights(parts, parts.sum(axis=0), np.full(10, 1e-9)) is None
    same = np.concatenate([parts[:2], parts[:1]])
    assert weights(same, same.sum(axis=0), np.full(10, 1e-9)) is None
    found = weights(parts[:3], parts[:3].sum(axis=0) - parts[1], np.full(10, 1e-9))
    assert found is not None
    assert found.theta.tolist() == [1, 0, 1]


def test_weights_are_the_simplest_fractions_within_their_error() -> None:
    assert simple(0.4999, 1e-3) == 0.5
    assert simple(1 / 3, 1e-9) == pytest.approx(1 / 3)
    assert simple(0.7071, 1e-6) == 0.7071


def test_orders_of_a_grammar_are_tried_where_weights_are_too_many() -> None:
    rng = np.random.default_rng(2)
    parts = rng.standard_normal((16, 16, 40))
    orders = np.array([np.arange(16), np.arange(16) // 4 * 4, np.arange(16) ^ 3, np.arange(16) - 1])
    rest = sum(parts[s, s - 1] for s in range(1, 16))
    assert ordered(parts, rest, np.full(40, 1e-9), orders).tolist() == [3]
    assert ordered(parts, rest + 1, np.full(40, 1e-9), orders).tolist() == []


def test_a_mixture_of_fractions_has_no_sources() -> None:
    theta = right()
    theta[0, 1, 0, 1] = 0.5
    found = Mixture(theta=theta, c=np.ones(R))
    assert found.sources is None
    assert found.partners is None


@pytest.mark.parametrize(
    ("weights_", "of_c", "text"),
    [
        ((1, 0, 1, 1), 1, "step 1 left out (missing)"),
        ((1, 1, 0, 0), 1, "steps 2, 3 left out (missing): the loop ends early"),
        ((0, 0, 1, 1), 1, "steps 0, 1 left out (missing): the loop starts late"),
        ((1, 1, 2, 1), 0, "step 2 twice; C not added (forgotten)"),
        ((0, 0, 0, 1), 0, "accumulators cleared (reset) before step 3, or in every step (scale-d)"),
        ((0.5, 0.5, 0.5), 1, "A·B is taken times 0.5 (alpha)"),
        ((1, 1), -0.5, "C times -0.5 (beta)"),
        (
            (0.125, 0.25, 0.5),
            1,
            "a scale of 0.5 is applied in the loop, after every step, and not once in the end",
        ),
    ],
)
def test_weights_have_sentences(weights_: Any, of_c: float, text: str) -> None:
    assert weights_text(list(weights_), of_c).startswith(text)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ((0, 0, 1, 2), "every step reads B of the previous step"),
        ((1, 2, 3, 0), "every step reads B of the next step, around the end"),
        ((0, 0, 0, 0), "every step reads B of step 0"),
        ((0, 3, 2, 3), "step 1 reads B of step 3"),
        ((0, 2, 1, 3), "steps 1 and 2 read each other's B"),
        ((3, 2, 1, 0), "steps read B in reverse order"),
        ((1, 3, 0, 2), "steps read B of steps 1, 3, 0, 2"),
        ((-1, 0, 1, 2), "every step reads B of the previous step, and zero beyond the end"),
        (
            (0, 0, 0, 0, 4, 4, 4, 4),
            "every step reads B of the first step of its stage of 4 steps (not advanced)",
        ),
        ((0, 1, 2, 3, 0, 1, 2, 3), "every stage of 4 steps reads B of the first stage"),
        ((3, 2, 1, 0, 7, 6, 5, 4), "every step reads B of its stage of 4 steps in reverse"),
        ((0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7), "steps 4 to 11 read B of 4 steps before"),
    ],
)
def test_orders_have_sentences(order: Any, text: str) -> None:
    assert order_text(order, "B") == text


def test_weights_of_k_have_sentences() -> None:
    own = np.ones(64)
    own[16:24] = 0
    assert k_text(own) == "k 16 to 23 left out (missing)"
    assert k_text(np.tile([1, 1, 0, 1], 16)) == "k % 4 in 2 left out (missing)"
    assert k_text(np.arange(1, 65) / 8).startswith("every k has a factor of its own, from 0.125 to 8")
