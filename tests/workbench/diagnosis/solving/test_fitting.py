"""Values by place: unseen dumps, judged by the places of their elements, and what must not be claimed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tools.mistakes.grammar.dumps import DUMPS, Dump
from tools.mistakes.grammar.judged import brought, outcome
from warpsim.workbench.diagnosis.solving.fitting import NOWHERE, fit
from warpsim.workbench.diagnosis.solving.views import ACCUMULATORS, NOTHING, whole_views

BY_NAME = {row.name: row for row in DUMPS}


@pytest.mark.parametrize("row", DUMPS, ids=lambda row: row.name)
def test_unseen_dumps_are_explained_by_their_places(row: Dump) -> None:
    held, values, element = brought(row)
    found = outcome(row, held, fit(held, values), values, element)
    assert found == row.expect


def test_the_best_map_is_left_out_where_it_is_not_asked_for() -> None:
    held, values, _ = brought(BY_NAME["eight places elsewhere"])
    assert not fit(held, values, located=False).fits


def test_accumulators_of_a_whole_a_are_counted_line_by_line() -> None:
    """As its matrix is: else the order of a step is no renumbering of the matrix."""
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3", target="sm_90a")
    (view,) = (each for each in whole_views(form, "a", (64, 128)) if each.name == ACCUMULATORS)
    assert np.array_equal(view.order // 128, np.arange(64 * 128) // 128)


def test_places_that_leave_a_map_have_their_sources() -> None:
    held, values, element = brought(BY_NAME["eight places elsewhere"])
    (found,) = fit(held, values).fits
    moved = np.flatnonzero(element != np.arange(256))
    assert np.array_equal(found.rest, moved)
    assert np.array_equal(found.others, element[moved])
    assert found.share == 1 - len(moved) / 256


def test_values_that_stand_nowhere_and_zeros_are_told_apart() -> None:
    held, values, _ = brought(BY_NAME["lane ^ 7"])
    values = held.values[:256].copy()
    values[[3, 100]] = 1000.0, 0.0
    (found,) = fit(held, values).fits
    assert found.rest.tolist() == [3, 100]
    assert found.others.tolist() == [NOWHERE, NOTHING]


def test_two_maps_are_split_by_a_predicate() -> None:
    held, values, _ = brought(BY_NAME["lane 5 zero"])
    (found,) = fit(held, values).fits
    zero, own = found.pieces
    assert (zero.source.kind, own.atom.kind) == ("zero", "unchanged")
    assert [each.facts for each in zero.within] == [{"field": "lane", "size": 32, "value": 5}]
    assert [each.inside for each in own.within] == [False]


@pytest.mark.parametrize("seed", range(3))
def test_a_permutation_of_lanes_without_a_rule_is_listed(seed: int) -> None:
    held, _, _ = brought(BY_NAME["lane ^ 7"])
    view = held.views[0]
    order = np.random.default_rng(seed).permutation(32)
    moved = view.coordinates.copy()
    moved[:, 0] = order[moved[:, 0]]
    (found,) = fit(held, held.values[view.at(moved)]).fits
    assert found.units == ("lane", tuple(order.tolist()))
    assert found.kind == "units"


def test_few_values_do_not_make_a_map() -> None:
    held, _, _ = brought(BY_NAME["lane ^ 4, few values"])
    rng = np.random.default_rng(8)
    assert not fit(held, rng.integers(-2, 3, 256).astype(float)).fits


def test_a_constant_matrix_says_nothing_for_certain() -> None:
    held, _, _ = brought(BY_NAME["lane ^ 7"])
    same = type(held)(
        views=held.views, sources=held.sources[:1], values=np.append(np.ones(256), 0.0), places=held.places
    )
    found = fit(same, np.ones(256)).fits
    assert not any(each.certain for each in found)


def test_values_are_known_within_a_bound() -> None:
    held, values, _ = brought(BY_NAME["bits of the lane reversed"])
    off = values + np.random.default_rng(2).uniform(-1e-5, 1e-5, 256)
    assert fit(held, off).fits == ()
    (found,) = fit(held, off, 1e-5).fits
    assert found.kind == "bits"


def test_nan_and_infinities_are_values() -> None:
    held, _, _ = brought(BY_NAME["lane ^ 7"])
    values: Any = held.values.copy()
    values[[5, 9]] = np.nan, np.inf
    pool = type(held)(views=held.views, sources=held.sources, values=values, places=held.places)
    found = fit(pool, values[:256]).fits
    assert [each.kind for each in found] == ["own"]
