"""Maps that no list had, and pairs of causes."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tools.mistakes.grammar.injected import inputs_of, of_grammar, random_setting, sampled_forms
from warpsim.workbench.diagnosis.library.setting import Setting
from warpsim.workbench.diagnosis.search.cases import outcome, probe
from warpsim.workbench.diagnosis.search.diagnose import diagnose_inputs
from warpsim.workbench.diagnosis.solving.linear_operands import Tile
from warpsim.workbench.diagnosis.solving.pairs import elements

FORM = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
LANE, REGISTER = np.arange(32)[:, None], np.arange(4)
REVERSED = np.array([int(f"{lane:05b}"[::-1], 2) for lane in range(32)])[:, None]
MAPS = {
    "A: lanes i and i ^ 7 exchanged": (LANE ^ 7, REGISTER),
    "A: lanes in reverse order": (LANE ^ 31, REGISTER),
    "A: bits of the lane in the order (4, 3, 2, 1, 0), lowest first": (REVERSED, REGISTER),
    "A: lane i holds lane 5 * i mod 32": (5 * LANE % 32, REGISTER),
    "A: swizzled: lane ^ (register & 3)": (LANE ^ REGISTER, REGISTER),
}


def registers(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrices = {"a": (16, 16), "b": (16, 8), "c": (16, 8)}
    return {
        name: warpsim.pack(FORM, name, rng.standard_normal(shape).astype(FORM.format(name).dtype))
        for name, shape in matrices.items()
    }


@pytest.mark.parametrize("name", MAPS)
def test_five_maps_are_named(name: str) -> None:
    given = registers(0)
    moved = {"a": given["a"][np.broadcast_arrays(*MAPS[name])[0], MAPS[name][1]]}
    found = warpsim.diagnose(FORM, **given, d=warpsim.execute(FORM, **given | moved), most=1)
    (match,) = found.matches
    assert match.simplest.names == (name,)


def test_two_operands_are_solved_together() -> None:
    given = registers(1)
    moved = {"a": given["a"][np.arange(32) ^ 5], "c": given["c"] * np.uint32(0)}
    found = warpsim.diagnose(FORM, **given, d=warpsim.execute(FORM, **given | moved))
    assert ("A: lanes i and i ^ 5 exchanged", "C: not added") in {
        cause.names for match in found.matches for cause in match.equivalent
    }


def test_an_operand_and_d_are_solved_together() -> None:
    given = registers(2)
    d = warpsim.execute(FORM, **given | {"b": given["b"][np.arange(32) ^ 9]})[np.arange(32) ^ 18]
    found = warpsim.diagnose(FORM, **given, d=d)
    operands = [tuple(each.operands for each in match.simplest.mistakes) for match in found.matches]
    assert (("b",), ("d",)) in operands


def test_noise_and_the_right_d_have_no_cause() -> None:
    given = registers(3)
    noise = np.random.default_rng(0).standard_normal((32, 4)).astype(np.float32).view(np.uint32)
    assert not warpsim.diagnose(FORM, **given, d=noise).found
    assert warpsim.diagnose(FORM, **given, d=warpsim.execute(FORM, **given)).as_expected


def test_elements_that_rounding_explains_are_no_probes_of_pairs() -> None:
    """Every pair would agree with them: the engine would be given the cheapest, one after the other."""
    given = registers(3)
    expected = warpsim.execute(FORM, **given)
    near, far = expected.copy(), expected.copy()
    near[5, 1] += 1
    far[5, 1] ^= 1 << 31
    held = {name: words[None] for name, words in given.items()}
    for actual, found in ((near, set()), (far, {(1, 3)})):
        tile = Tile(Setting(instruction=FORM), held, (actual[None], expected[None]), 0)
        places = elements(tile, tile.actual != tile.expected, 1e-3)
        assert {at for at in places if tile.actual[0][at] != tile.expected[0][at]} == found


@pytest.mark.parametrize("seed", sample([86, 87], 2))
def test_a_map_in_some_places_beside_many_that_come_near(seed: int) -> None:
    """Sums that are no numbers agree with none that is; where many agree with a probe, another decides."""
    rng = np.random.default_rng([4711, seed])
    forms = list(sampled_forms().values())
    families = sorted({form.family.name for form in forms})
    own = [form for form in forms if form.family.name == families[seed % len(families)]]
    form = own[int(rng.integers(len(own)))]
    setting = random_setting(form, rng)
    rng.random()
    mistake = of_grammar(setting, rng)
    given = probe(setting, 1, seed)
    d = outcome(setting, given, [mistake])
    found = diagnose_inputs(setting.instruction, inputs_of(setting, given), d, most=1)
    assert found.matches[0].simplest.mistakes[0].records == mistake.records
