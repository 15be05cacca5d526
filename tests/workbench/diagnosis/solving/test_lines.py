"""Lines of operands solved from D alone: made-up problems, whose tables must come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from warpsim.workbench.diagnosis.solving.lines import (
    least_squares,
    meet,
    metadata_row,
    pieces,
    taken,
    units,
)


@dataclass(frozen=True)
class Made:
    """An operand A ``(lines, size)`` that meets ``other (size, elements)``; ``table`` is what was read."""

    values: Any
    where: Any
    T: Any
    near: Any
    W: Any


@dataclass(frozen=True)
class Field:
    name: str
    size: int


@dataclass(frozen=True)
class Lanes:
    """Places of a 16 x 16 tile by lane, register and half."""

    fields = (Field("lane", 32), Field("register", 4), Field("half", 2))

    @property
    def coordinates(self) -> Any:
        row, column = np.divmod(np.arange(256), 16)
        lane = row % 8 * 4 + column % 8 // 2
        return np.stack([lane, row // 8 + column // 8 * 2, column % 2], axis=1)

    def at(self, coordinates: Any) -> Any:
        lane, register, half = np.moveaxis(coordinates, -1, 0)
        return (lane // 4 + register % 2 * 8) * 16 + lane % 4 * 2 + half + register // 2 * 8


def made(table: Any, elements: int, seed: int = 0, noise: float = 1e-6) -> Made:
    rng = np.random.default_rng(seed)
    a, other = rng.standard_normal((16, 16)), rng.standard_normal((16, elements))
    values = np.append(a.reshape(-1), 0.0)
    where = np.arange(256).reshape(16, 16)
    d = taken(values, table)[where] @ other + noise * rng.uniform(-1, 1, (16, elements))
    near = np.full(d.shape, 2 * noise)
    return Made(values, where, d, near, np.broadcast_to(other, (16, 16, elements)))


def of_lanes(lanes: Any) -> Any:
    """Return the table of a permutation of lanes; -1: nothing."""
    view = Lanes()
    moved = view.coordinates.copy()
    held = np.asarray(lanes)[moved[:, 0]]
    moved[:, 0] = held
    return np.where(held < 0, -1, view.at(np.maximum(moved, 0)))


@pytest.mark.parametrize("seed", range(4))
def test_every_permutation_of_lanes_is_solved_from_d_alone(seed: int) -> None:
    table = of_lanes(np.random.default_rng(seed).permutation(32))
    found = units(made(table, 8, seed), Lanes(), ("lane",))
    assert np.array_equal(found, table)


def test_lanes_that_hold_nothing_are_solved() -> None:
    lanes = np.arange(32)
    lanes[[3, 17]] = -1
    assert np.array_equal(units(made(of_lanes(lanes), 8), Lanes(), ("lane",)), of_lanes(lanes))


def test_registers_that_differ_from_line_to_line_are_solved() -> None:
    """Each line may follow another rule: rows 0 to 7 exchange registers 0 and 2, the others keep theirs."""
    view = Lanes()
    moved = view.coordinates.copy()
    moved[:, 1] = np.where(moved[:, 1] % 2 == 0, moved[:, 1] ^ 2, moved[:, 1])
    assert np.array_equal(units(made(view.at(moved), 8), view, ("register",)), view.at(moved))


def test_random_places_are_no_permutation_of_lanes() -> None:
    table = np.random.default_rng(5).permutation(256)
    assert units(made(table, 8), Lanes(), ("lane",)) is None


def test_units_with_too_many_options_are_not_tried() -> None:
    assert units(made(np.arange(256), 8), Lanes(), ("lane", "register", "half")) is None


def test_halves_of_lines_that_follow_different_rules_are_solved() -> None:
    row, column = np.divmod(np.arange(256), 16)
    table = np.where(column < 8, row * 16 + (column ^ 8), (row ^ 1) * 16 + (column ^ 4))
    assert np.array_equal(pieces(made(table, 8), 1), table)
    assert pieces(made(np.random.default_rng(1).permutation(256), 8), 1) is None


@pytest.mark.parametrize("seed", range(3))
def test_values_are_solved_where_elements_suffice(seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 257, 256)
    problem = made(table, 24, seed)
    found = least_squares(problem)
    assert found is not None
    off = np.abs(found.values - problem.values[table])
    assert (off <= found.bound).all()
    assert found.bound.max() < 1e-3


def test_lines_with_too_few_elements_or_rank_have_no_values() -> None:
    assert least_squares(made(np.arange(256), 15)) is None
    problem = made(np.arange(256), 24)
    flat = np.array(problem.W)
    flat[:, 3] = flat[:, 2]
    assert least_squares(Made(problem.values, problem.where, problem.T, problem.near, flat)) is None


def test_pairs_that_meet_are_those_that_sum() -> None:
    rng = np.random.default_rng(3)
    low, high = rng.standard_normal((200, 5)), rng.standard_normal((300, 5))
    target, near = low[17] + high[250], np.full(5, 1e-9)
    assert list(meet(low, high, target, near)) == [(17, 250)]
    assert not list(meet(low, high, target + 1e-6, near))


@pytest.mark.parametrize("stored", [8, 16])
def test_all_codes_of_a_row_of_metadata_are_tried(stored: int) -> None:
    rng = np.random.default_rng(stored)
    look = rng.standard_normal((stored, 8, 4))
    own, read = rng.integers(0, 4, (2, stored))
    target = look[np.arange(stored), :, read].sum(axis=0)
    assert np.array_equal(metadata_row(look, target, np.full(8, 1e-6), own), read)
    assert metadata_row(look, target + 1, np.full(8, 1e-6), own) is None


def test_of_several_rows_of_metadata_the_nearest_is_taken() -> None:
    """A stored element that is zero adds nothing, whatever its index: it keeps its own."""
    rng = np.random.default_rng(7)
    look = rng.standard_normal((8, 8, 4))
    look[5] = 0
    own, read = np.zeros(8, int), rng.integers(0, 4, 8)
    found = metadata_row(look, look[np.arange(8), :, read].sum(axis=0), np.full(8, 1e-6), own)
    assert np.array_equal(np.delete(found, 5), np.delete(read, 5))
    assert found[5] == 0


def test_long_rows_of_metadata_are_not_tried() -> None:
    assert metadata_row(np.zeros((32, 8, 4)), np.zeros(8), np.ones(8), np.zeros(32, int)) is None
