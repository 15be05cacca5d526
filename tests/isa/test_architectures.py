"""A chip is one record: what targets have follows from it, and no other file names chips."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import warpsim
from warpsim.isa.architectures import ARCHITECTURES, Architecture, Feature, targets_text, targets_with
from warpsim.isa.families import forms
from warpsim.report.explorer.sass import SEEN

PACKAGE = Path(warpsim.__file__).parent
EVERY = list(ARCHITECTURES)
# A second statement of what PTX ISA 9.1's "Target ISA Notes" say: from a target on, or these alone.
NOTES: dict[Feature, str] = {
    Feature.QUAD_MMA: "sm_70 and later",
    Feature.INTEGER_MMA: "sm_75 and later",
    Feature.LDMATRIX: "sm_75 and later",
    Feature.WIDE_MMA: "sm_80 and later",
    Feature.FP8_MMA: "sm_89 and later",
    Feature.STMATRIX: "sm_90 and later",
    Feature.PROXY_FENCE: "sm_90 and later",
    Feature.F64_MMA: "sm_90 and later",
    Feature.WGMMA: "sm_90a",
    Feature.KINDS: "sm_100a, sm_100f, sm_103a, sm_103f, sm_107a, sm_107f, sm_110a, sm_110f, sm_120a, "
    "sm_120f, sm_121a, sm_121f",
    Feature.NARROW_KINDS: "sm_120a, sm_120f, sm_121a, sm_121f",
    Feature.SPARSE_F4: "sm_120a, sm_121a",
}


# The first PTX version with which ptxas 13.0 takes an empty kernel for a target.
FIRST_VERSIONS = {
    "6.3": "sm_75",
    "7.0": "sm_80",
    "7.1": "sm_86",
    "7.3": "sm_88",
    "7.4": "sm_87",
    "7.8": "sm_89 sm_90",
    "8.0": "sm_90a",
    "8.6": "sm_100 sm_100a",
    "8.7": "sm_120 sm_120a",
    "8.8": "sm_100f sm_103 sm_103a sm_120f sm_121 sm_121a",
    "9.0": "sm_110 sm_110a",
}


@pytest.mark.parametrize("version", FIRST_VERSIONS)
def test_targets_begin_with_their_versions(version: str) -> None:
    found = {name for name, one in ARCHITECTURES.items() if ".".join(map(str, one.since)) == version}
    assert set(FIRST_VERSIONS[version].split()) <= found


@pytest.mark.parametrize("feature", Feature, ids=lambda feature: feature.name)
def test_features_are_where_the_manual_has_them(feature: Feature) -> None:
    assert targets_text(targets_with(feature)) == NOTES[feature]


def test_parents_come_before_their_children_and_lack_what_these_add() -> None:
    for name, architecture in ARCHITECTURES.items():
        parent = architecture.parent
        assert parent is None or EVERY.index(parent.name) < EVERY.index(name)
        assert parent is None or not parent.features & architecture.added, f"{name} adds what it inherits"


def test_a_target_has_rules_for_all_its_forms_and_no_others() -> None:
    for name, architecture in ARCHITECTURES.items():
        here = [form for form in forms().values() if name in form.targets]
        wanted = {(form.family.rules, form.operation, form.d.name) for form in here}
        assert wanted <= set(architecture.table), name


def test_a_new_chip_has_what_its_parent_has() -> None:
    chip = Architecture(name="sm_130", since=(9, 9), parent=ARCHITECTURES["sm_120a"])
    assert chip.features == ARCHITECTURES["sm_120a"].features
    assert set(chip.table) == set(ARCHITECTURES["sm_120a"].table)


def test_targets_in_words() -> None:
    assert targets_text(EVERY) == "sm_70 and later"
    assert targets_text(EVERY[-3:], "or higher") == f"{EVERY[-3]} or higher"
    assert targets_text(EVERY[-1:]) == EVERY[-1]
    assert targets_text(["sm_80", "sm_75"]) == "sm_75, sm_80"


# --- chip names in other files -----------------------------------------------------------------------

# The target of a Warpgroup that names none, and of CUDA C, Triton and Numba without one; and those of which
# names in SASS were seen.
DEFAULT = {
    "host/warpgroup.py": {"sm_90a"},
    "host/loading.py": {"sm_80"},
    "compilers/triton_kernels.py": {"sm_80"},
    "compilers/numba_kernels.py": {"sm_80"},
    "report/explorer/sass.py": set(SEEN),
}


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_other_file_names_chips() -> None:
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        found = {one for one in _strings(path) if one in ARCHITECTURES}
        assert place == "isa/architectures.py" or found == DEFAULT.get(place, set()), place
