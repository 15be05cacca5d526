"""A chip is one record: what targets have follows from it, and no other file names chips."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import warpsim
from tools.house import nodes
from warpsim.isa.architectures import (
    ARCHITECTURES,
    Architecture,
    least_targets,
    rule_of,
    targets_text,
    targets_with,
)
from warpsim.isa.families import _forms_of, forms
from warpsim.isa.families.mma import MMA
from warpsim.isa.features import Feature
from warpsim.isa.formats import FORMATS
from warpsim.show.report.explorer.sass import SEEN
from warpsim.sums.execution.pipeline import evidence

PACKAGE = Path(warpsim.__file__).parent
EVERY = list(ARCHITECTURES)
# A second statement of what PTX ISA 9.1's "Target ISA Notes" say: from a target on, or these alone.
_FAMILIES = (
    "sm_100a, sm_100f, sm_103a, sm_103f, sm_107a, sm_107f, sm_110a, sm_110f, "
    "sm_120a, sm_120f, sm_121a, sm_121f"
)
_REPLACED = "sm_100a, sm_100f, sm_103a, sm_103f, sm_110a, sm_110f, sm_120a, sm_120f, sm_121a, sm_121f"
NOTES: dict[str, tuple[Feature, ...]] = {
    "sm_70 and later": (Feature.QUAD_MMA,),
    "sm_75 and later": (
        *(Feature.INTEGER_MMA, Feature.LDMATRIX, Feature.APPROXIMATIONS, Feature.INTEGER_PACKING),
        Feature.L2_PREFETCH_SIZES,
    ),
    "sm_80 and later": (
        *(Feature.WIDE_MMA, Feature.CP_ASYNC, Feature.MBARRIER, Feature.REDUX, Feature.CACHE_POLICIES),
        *(Feature.BF16_FMA, Feature.F16_CLAMPS, Feature.TF32_ROUNDING, Feature.RESERVED_SHARED),
    ),
    "sm_86 and later": (Feature.XORSIGN,),
    "sm_89 and later": (Feature.FP8_MMA, Feature.FP8_CONVERSIONS),
    "sm_90 and later": (
        *(Feature.STMATRIX, Feature.F64_MMA, Feature.BF16_ARITHMETIC, Feature.TF32_NEAREST),
        *(Feature.OUT_OF_BOUNDS, Feature.INTEGER_PAIRS, Feature.CLUSTERS, Feature.AGGREGATE_SHARED),
        *(Feature.ELECT, Feature.DEPENDENT_LAUNCH, Feature.PROXY_FENCE, Feature.SPLIT_FENCES),
        *(Feature.BULK_COPY, Feature.TENSOR_COPY, Feature.MBARRIER_TRANSACTIONS, Feature.VECTOR_ATOMICS),
        Feature.MULTIMEM,
    ),
    "sm_100 and later": (
        *(Feature.F32_PAIRS, Feature.MIXED_SUMS, Feature.THREE_SOURCES, Feature.TF32_SATURATION),
        *(Feature.WIDE_VECTORS, Feature.BYTE_MASKS, Feature.ASYNC_RELEASE, Feature.GATHER4),
        *(Feature.WIDE_ATOMS, Feature.BULK_STORE, Feature.LAUNCH_CONTROL),
    ),
    "sm_90a": (Feature.WGMMA,),
    f"sm_90a, {_FAMILIES}": (Feature.SETMAXNREG, Feature.TENSORMAP_REPLACE),
    _FAMILIES: (
        *(Feature.KINDS, Feature.BYTE_MATRICES, Feature.NARROW_CONVERSIONS),
        Feature.LAUNCH_MULTICAST,
    ),
    "sm_120a, sm_120f, sm_121a, sm_121f": (Feature.NARROW_KINDS,),
    "sm_120a, sm_121a": (Feature.SPARSE_F4,),
    "sm_100a, sm_100f, sm_103a, sm_103f, sm_110a, sm_110f": (Feature.CTA_PAIRS,),
    "sm_100a, sm_100f, sm_103a, sm_103f, sm_107a, sm_107f, sm_110a, sm_110f": (Feature.TCGEN05,),
    "sm_100a, sm_110a": (Feature.TENSOR_INTEGERS,),
    "sm_100a, sm_103a, sm_107a, sm_110a": (Feature.TENSOR_VECTORS,),
    "sm_100a, sm_100f, sm_103a, sm_103f, sm_107a, sm_107f": (Feature.TENSOR_SCALED_D,),
    "sm_103a, sm_103f, sm_107a, sm_107f, sm_110a, sm_110f": (Feature.TENSOR_REDUCTION,),
    "sm_100a, sm_100f, sm_103a, sm_103f": (Feature.FLOAT_REDUX,),
    "sm_100a, sm_103a": (Feature.STOCHASTIC_ROUNDING,),
    "sm_103a, sm_103f": (Feature.TENSOR_DEPTH_96,),
    "sm_103a": (Feature.REPLACED_SWIZZLE_96B,),
    _REPLACED: (Feature.REPLACED_ATOMS,),
}
# A second statement of the CUDA programming guide's "Technical Specifications per Compute Capability": KiB of
# shared memory of a CTA and of a multiprocessor, threads and CTAs of a multiprocessor.
LIMITS = {
    "sm_70": (96, 96, 2048, 32),
    "sm_75": (64, 64, 1024, 16),
    "sm_80": (163, 164, 2048, 32),
    "sm_86": (99, 100, 1536, 16),
    "sm_87": (163, 164, 1536, 16),
    "sm_89": (99, 100, 1536, 24),
    "sm_90": (227, 228, 2048, 32),
    "sm_100": (227, 228, 2048, 32),
    "sm_103": (227, 228, 2048, 32),
    "sm_110": (227, 228, 1536, 24),
    "sm_120": (99, 100, 1536, 24),
    "sm_121": (99, 100, 1536, 24),
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
    assert [words for words, features in NOTES.items() if feature in features] == [
        targets_text(targets_with(feature))
    ]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_limits_are_those_of_the_guide(name: str) -> None:
    target = ARCHITECTURES[name]
    known = LIMITS.get(f"sm_{target.number}")
    here = target.limits
    found = (
        here.shared_kib,
        here.multiprocessor_shared_kib,
        here.multiprocessor_threads,
        here.multiprocessor_ctas,
    )
    assert known is None or known == found
    assert here.shared_bytes <= here.multiprocessor_shared_kib * 1024
    assert (here.static_shared_kib, here.registers, here.threads) == (48, 65536, 1024)


def test_the_least_targets_with_a_feature() -> None:
    assert least_targets(Feature.CLUSTERS) == "sm_90 or higher"
    assert least_targets(Feature.SETMAXNREG) == "sm_90a or higher"
    assert least_targets(Feature.WGMMA) == "sm_90a"
    assert least_targets(Feature.BYTE_MATRICES) == "sm_100f or higher"
    assert least_targets(Feature.CTA_PAIRS) == "sm_100f or sm_103f or sm_110f"
    assert least_targets(Feature.STOCHASTIC_ROUNDING) == "sm_100a or sm_103a"


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


def test_evidence_is_that_of_the_types_compared() -> None:
    """A type that was not compared with a chip does not inherit the label of its neighbours."""
    product = warpsim.decode("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", target="sm_89").product
    rule = rule_of("sm_89", "mma", product)
    assert (rule.evidence.label, rule.evidence.outputs) == ("validated", 5_000)
    new = replace(FORMATS["e4m3"], name="e3m4")
    other = rule_of("sm_89", "mma", replace(product, b=new))
    assert (other.evidence.label, other.evidence.outputs) == ("inferred", 0)
    assert "A e4m3 by B e3m4, compared with e4m3" in other.evidence.detail
    assert other.bare == rule.bare


@pytest.mark.parametrize(
    ("mnemonic", "target", "label", "reason"),
    [
        (
            "m16n8k16.row.col.f32.f16.f16.f32",
            "sm_80",
            "inferred",
            "modelled as 2 steps of k = 8",
        ),
        ("m16n8k8.row.col.f32.f16.f16.f32", "sm_80", "validated", ""),
        ("m16n8k8.row.col.f32.f16.f16.f32", "sm_90", "inferred", "k = 8, compared with k = 16"),
        (
            "m16n8k16.row.col.f32.f16.f16.f32",
            "sm_87",
            "inferred",
            "as on sm_80 (inferred: modelled as 2 steps of k = 8",
        ),
        (
            "m16n8k32.row.col.f32.e4m3.e5m2.f32",
            "sm_89",
            "inferred",
            "e4m3 by e5m2, compared with equal types",
        ),
        ("m16n8k16.row.col.f32.e4m3.e4m3.f32", "sm_89", "inferred", "k = 16, compared with k = 32"),
        ("m8n8k4.row.col.f32.f16.f16.f16", "sm_70", "inferred", "C f16, compared with C f32"),
        ("m16n8k32.row.col.s32.s8.s8.s32", "sm_90", "documented", "exact integers that wrap"),
        ("m16n8k32.row.col.satfinite.s32.s8.s8.s32", "sm_90", "inferred", "saturation once at the end"),
    ],
)
def test_what_is_composed_is_inferred_and_says_of_what(
    mnemonic: str, target: str, label: str, reason: str
) -> None:
    known = warpsim.evidence(f"mma.sync.aligned.{mnemonic}", target)
    assert (known.label, bool(known.outputs)) == (label, label == "validated")
    assert reason in known.detail


def test_wgmma_of_f8_is_validated_without_c_alone() -> None:
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", target="sm_90a")
    assert "with C, compared without C" in warpsim.evidence(form).detail
    assert warpsim.evidence(form).label == "inferred"
    assert warpsim.evidence(form, with_c=False).label == "validated"


def test_forms_are_no_older_than_their_types() -> None:
    """A new type of 8 bits joins the rows of its neighbours, and neither their version, chips nor label."""
    new = replace(FORMATS["e4m3"], name="e3m4", since=(9, 9), feature=Feature.NARROW_KINDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FORMATS, "e3m4", new)
        row = next(row for row in MMA.rows if "e4m3" in row.multiplicands and not row.kind)
        found = list(_forms_of(MMA, replace(row, multiplicands=(*row.multiplicands, "e3m4"))))
    mine = [form for form in found if new in (form.a, form.b)]
    assert len(mine) == 5 * len(row.accumulators)
    assert {form.since for form in mine} == {(9, 9)}
    assert {form.targets for form in mine} == {row.targets & targets_with(Feature.NARROW_KINDS)}
    assert {form.since for form in found if form not in mine} == {row.since}
    here = [replace(form, target="sm_89") for form in found]
    assert {evidence(form).label for form in here if form.a is new or form.b is new} == {"inferred"}
    known = [form for form in here if form.a is form.b is not new and form.shape.k == 32]
    assert {evidence(form).label for form in known} <= {"validated"}


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
    "programs/interactive/machines.py": {"sm_90a"},
    "programs/launch/loading.py": {"sm_80"},
    "programs/compilers/triton_kernels.py": {"sm_80"},
    "programs/compilers/numba_kernels.py": {"sm_80"},
    "show/testing/simulator.py": {"sm_80"},
    "show/report/explorer/sass.py": set(SEEN),
}


def _strings(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_other_file_names_chips() -> None:
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        found = {one for one in _strings(path) if one in ARCHITECTURES}
        records = ("isa/architectures.py", "isa/comparisons.py")  # chips, and the outputs compared with them
        assert place in records or found == DEFAULT.get(place, set()), place
