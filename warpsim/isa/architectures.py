"""Targets sm_70 to sm_121f: their PTX versions, what they have, and how each sums products, with evidence.

Pure data and its lookup; no arithmetic. A target states only the rules that differ from its parent's, and
the features that its parent lacks: a new chip is one record here. Sources, by the short names used in the
evidence texts:

* KM: Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004, and the
  published outputs of their MATLAB-tensor-core repository, which the tests replay.
* MMA-Sim: arXiv 2511.10909 and PyPI mmasim 2.1.1, whose authors report bit equality with V100, T4,
  A100, RTX 4090, H100, B200 and RTX PRO 6000.
* FHMP: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021.
* SASS: the instructions that ptxas 13.0 emits for the form, read from the disassembly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

# --- evidence ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Why a rule is believed: ``validated`` with chips and outputs compared, or ``inferred`` and why."""

    label: str
    detail: str
    chips: str = ""
    outputs: int = 0

    def __str__(self) -> str:
        if self.label == "validated":
            return f"validated on {self.chips}: {self.outputs:,} outputs equal ({self.detail})"
        return f"{self.label}: {self.detail}"


def _validated(chips: str, outputs: int, detail: str = "KM") -> Evidence:
    return Evidence(label="validated", detail=detail, chips=chips, outputs=outputs)


def _inferred(detail: str) -> Evidence:
    return Evidence(label="inferred", detail=detail)


# --- rules: how one D element comes out of its products --------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Output:
    """How an exact sum becomes a code: the format, its significant bits and the rounding."""

    format: str
    precision: int
    nearest: bool  # to nearest, ties to even; otherwise toward zero


RZ_F32 = Output(format="f32", precision=24, nearest=False)
RZ_E8M13 = Output(format="f32", precision=14, nearest=False)  # the low 10 bits of the f32 are zero
RN_F16 = Output(format="f16", precision=11, nearest=True)


_NO_EVIDENCE = Evidence(label="", detail="")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One way to compute ``d = sum(a * b) + c``; subclasses hold its parameters.

    Whoever treats rules by their class has a table with all of them, called RULES where it computes.
    """

    evidence: Evidence

    @property
    def aligned(self) -> FusedSum | ScaledGroups | None:
        """The aligned sum that the rule is or is made of; None where nothing is aligned."""
        return None

    @property
    def bare(self) -> Rule:
        """The numbers of the rule, without the reasons to believe them."""
        return replace(self, evidence=_NO_EVIDENCE)

    def realigned(self, **numbers: Any) -> Rule:
        """The rule with other numbers in its aligned sum."""
        return replace(self, **numbers)


@dataclass(frozen=True, kw_only=True)
class FusedSum(Rule):
    """Truncated fused dot-product-add, in steps of at most ``length`` products.

    Every product and the accumulator are aligned to the largest exponent among them (at least
    ``exponent_floor``), cut toward zero ``fraction_bits`` below it, and added exactly; then
    ``output`` rounds. Steps run over ascending stored columns, each rounded sum being the next
    step's accumulator. Block scales, where there are any, add to the exponents of the products.
    """

    length: int
    fraction_bits: int
    output: Output
    exponent_floor: int

    @property
    def aligned(self) -> FusedSum:
        """Itself."""
        return self


@dataclass(frozen=True, kw_only=True)
class EmulatedF8(Rule):
    """What ptxas makes of fp8 where only wgmma multiplies fp8: two f16 MMAs and an addition of C.

    The operands become f16 (exactly). The first step sums the columns with ``k % 4`` in 0, 1 from
    zero, the second continues with those in 2, 3; then C is added in round to nearest even.
    """

    step: FusedSum

    @property
    def aligned(self) -> FusedSum:
        """What sums the products of each half."""
        return self.step

    @property
    def bare(self) -> Rule:
        """The numbers of the rule and of its step."""
        return replace(self, step=replace(self.step, evidence=_NO_EVIDENCE), evidence=_NO_EVIDENCE)

    def realigned(self, **numbers: Any) -> Rule:
        """The rule with other numbers in its step."""
        return replace(self, step=replace(self.step, **numbers))


@dataclass(frozen=True, kw_only=True)
class ScaledGroups(Rule):
    """4-bit block-scaled MMA: exact sums of ``group`` products, each aligned by its scales' exponent."""

    group: int
    fraction_bits: int
    output: Output
    exponent_floor: int

    @property
    def aligned(self) -> ScaledGroups:
        """Itself."""
        return self


@dataclass(frozen=True, kw_only=True)
class FusedMultiplyAdd(Rule):
    """f64: a chain of IEEE fused multiply-adds over ascending k, starting from C."""


@dataclass(frozen=True, kw_only=True)
class SoftwareQuad(Rule):
    """m8n8k4 f16 on sm_80 and later: FFMA and FADD in f32, round to nearest even.

    f32 result: ``c + fma(a3,b3, fma(a2,b2, fma(a1,b1, fma(a0,b0, +0))))``; f16 result:
    ``f16((c + fma(a3,b3, a2*b2)) + fma(a1,b1, a0*b0))``.
    """


@dataclass(frozen=True, kw_only=True)
class IntegerSum(Rule):
    """Exact integers; the result wraps modulo 2**32, or clamps once at the end under .satfinite."""


@dataclass(frozen=True, kw_only=True)
class BitCount(Rule):
    """b1: C plus the number of ones in ``a AND b`` or ``a XOR b``."""


def _fused(length: int, fraction_bits: int, output: Output, base: int, evidence: Evidence) -> FusedSum:
    # KM and MMA-Sim 2.1.1 agree on the floor: it follows the generation's own fraction bits (base).
    floor = 4 - base if output.format == "f16" else -108 - base
    return FusedSum(
        length=length,
        fraction_bits=fraction_bits,
        output=output,
        exponent_floor=floor,
        evidence=evidence,
    )


# --- targets ---------------------------------------------------------------------------------------


class Feature(Enum):
    """What some targets have and others lack: groups of forms, and instructions. PTX ISA 9.1, the
    "Target ISA Notes" of each instruction; targets are those that ptxas 13.0 accepts."""

    QUAD_MMA = "m8n8k4 of f16"
    INTEGER_MMA = "m16n8k8 of f16, m8n8 of integers and of bits under xor"
    LDMATRIX = "ldmatrix"
    WIDE_MMA = "m16n8 of 16-bit and tf32 floats, integers and bits, m8n8k4 of f64, and mma.sp of the same"
    FP8_MMA = "8-bit floats without a kind"
    STMATRIX = "stmatrix"
    PROXY_FENCE = "fence.proxy.async"
    F64_MMA = "m16n8 of f64"
    WGMMA = "wgmma"
    KINDS = ".kind::f8f6f4 of 8-bit floats"
    NARROW_KINDS = "every .kind: 6-bit and 4-bit floats and block scales too"
    SPARSE_F4 = "mma.sp of 4-bit kinds"


RuleKey = tuple[str, str, str]  # family of the rule (mma or wgmma), operation, format of D


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One ``.target``: its parent, first PTX version, and what differs from the parent's: rules, features.

    ``same_chip`` marks the a and f spellings of a chip, which inherit evidence as it stands.
    ``added`` are features that the parent lacks.
    ``unsorted`` lists the operations whose plain ``.sp`` metadata ptxas hands on unsorted to a chip
    on which nobody has tried descending indices.
    """

    name: str
    since: tuple[int, int]
    parent: Architecture | None = None
    same_chip: bool = False
    rules: tuple[tuple[RuleKey, Rule], ...] = ()
    added: frozenset[Feature] = frozenset()
    unsorted: frozenset[str] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def number(self) -> int:
        """Compute capability times ten: 90 for sm_90a."""
        return int(self.name.removeprefix("sm_").rstrip("af"))

    @cached_property
    def table(self) -> dict[RuleKey, Rule]:
        """All rules of the target, its ancestors' included."""
        inherited = self.parent.table if self.parent else {}
        if self.parent and not self.same_chip:
            inherited = {key: _as_on(rule, self.parent) for key, rule in inherited.items()}
        return inherited | dict(self.rules)

    @cached_property
    def features(self) -> frozenset[Feature]:
        """All features of the target, its ancestors' included."""
        return self.added | (self.parent.features if self.parent else frozenset())

    @property
    def unsorted_operations(self) -> frozenset[str]:
        """Operations with which descending plain ``.sp`` metadata is not modelled."""
        if self.unsorted is not None or self.parent is None:
            return self.unsorted or frozenset()
        return self.parent.unsorted_operations


def _as_on(rule: Rule, parent: Architecture) -> Rule:
    evidence = rule.evidence
    if evidence.label == "validated" or not evidence.detail.startswith("as on "):
        evidence = _inferred(f"as on {parent} ({evidence})")
    return replace(rule, evidence=evidence)


_MMASIM = "MMA-Sim's authors report bit equality with"
_EXACT = _inferred("exact integers, as PTX defines; saturation once at the end is PTX's wording")
_EXACT_BITS = _inferred("exact integers, as PTX defines")
_FMA = _inferred(f"PTX: each step an IEEE fma; k ascending, C first: {_MMASIM} the chips, FHMP on A100")


def _volta(evidence_f32: Evidence, evidence_f16: Evidence) -> tuple[tuple[RuleKey, Rule], ...]:
    return (
        (("mma", "m8n8k4.f16", "f32"), _fused(4, 23, RZ_F32, 23, evidence_f32)),
        (("mma", "m8n8k4.f16", "f16"), _fused(4, 23, RN_F16, 23, evidence_f16)),
    )


def _ampere(
    f16_f32: Evidence, f16_f16: Evidence, bf16: Evidence, tf32: Evidence
) -> tuple[tuple[RuleKey, Rule], ...]:
    return (
        (("mma", "f16", "f32"), _fused(8, 24, RZ_F32, 24, f16_f32)),
        (("mma", "f16", "f16"), _fused(8, 24, RN_F16, 24, f16_f16)),
        (("mma", "bf16", "f32"), _fused(8, 24, RZ_F32, 24, bf16)),
        (("mma", "tf32", "f32"), _fused(4, 24, RZ_F32, 24, tf32)),
    )


def _hopper(
    family: str, f16_f32: Evidence, f16_f16: Evidence, bf16: Evidence, tf32: Evidence
) -> tuple[tuple[RuleKey, Rule], ...]:
    return (
        ((family, "f16", "f32"), _fused(16, 25, RZ_F32, 25, f16_f32)),
        ((family, "f16", "f16"), _fused(16, 25, RN_F16, 25, f16_f16)),
        ((family, "bf16", "f32"), _fused(16, 25, RZ_F32, 25, bf16)),
        ((family, "tf32", "f32"), _fused(8, 25, RZ_F32, 25, tf32)),
    )


def _emulated_f8(f32: Evidence, f16: Evidence) -> tuple[tuple[RuleKey, Rule], ...]:
    return (
        (
            ("mma", "f8f6f4", "f32"),
            EmulatedF8(step=_fused(16, 25, RZ_F32, 25, f32), evidence=f32),
        ),
        (
            ("mma", "f8f6f4", "f16"),
            EmulatedF8(step=_fused(16, 25, RN_F16, 25, f16), evidence=f16),
        ),
    )


SM_70 = Architecture(
    name="sm_70",
    since=(6, 0),
    added=frozenset({Feature.QUAD_MMA}),
    rules=_volta(_validated("V100", 2500), _validated("V100", 2500)),
)
_T4 = _inferred(f"{_MMASIM} T4; FHMP on T4")
SM_75 = Architecture(
    name="sm_75",
    since=(6, 3),
    parent=SM_70,
    added=frozenset({Feature.INTEGER_MMA, Feature.LDMATRIX}),
    rules=(
        *_volta(_T4, _T4),
        (("mma", "f16", "f32"), _fused(8, 24, RZ_F32, 24, _T4)),
        (("mma", "f16", "f16"), _fused(8, 24, RN_F16, 24, _T4)),
        (("mma", "integer", "s32"), IntegerSum(evidence=_EXACT)),
        (("mma", "b1", "s32"), BitCount(evidence=_EXACT_BITS)),
    ),
)
_SOFTWARE = SoftwareQuad(evidence=_inferred("SASS: a software routine of FFMA, FADD and shuffles"))
SM_80 = Architecture(
    name="sm_80",
    since=(7, 0),
    parent=SM_75,
    added=frozenset({Feature.WIDE_MMA}),
    rules=(
        *_ampere(
            _validated("A100", 2500, "KM; one group; the chain of groups from MMA-Sim"),
            _validated("A100", 2500, "KM; one group; the chain of groups from MMA-Sim"),
            _validated("A100", 2500, "KM; one group; the chain of groups from MMA-Sim"),
            _validated("A100", 2500, "KM; one group; the chain of groups from MMA-Sim"),
        ),
        (("mma", "m8n8k4.f16", "f32"), _SOFTWARE),
        (("mma", "m8n8k4.f16", "f16"), _SOFTWARE),
        (("mma", "f64", "f64"), FusedMultiplyAdd(evidence=_FMA)),
    ),
)
_A2 = _validated("A2", 2500, "KM; one group; the chain of groups as on sm_80")
SM_86 = Architecture(name="sm_86", since=(7, 1), parent=SM_80, rules=_ampere(_A2, _A2, _A2, _A2))
SM_87 = Architecture(name="sm_87", since=(7, 4), parent=SM_80)
SM_88 = Architecture(name="sm_88", since=(7, 3), parent=SM_80)
_ADA = _validated("L40S, RTX Ada", 5000, "KM; one group; the chain of groups as on sm_80")
_ADA_F8 = _validated("L40S, RTX Ada", 10000, "KM; the chain of groups included")
_RTX_ADA_F8 = _validated("RTX Ada", 5000, "KM; the chain of groups included")
SM_89 = Architecture(
    name="sm_89",
    since=(7, 8),
    parent=SM_80,
    added=frozenset({Feature.FP8_MMA}),
    rules=(
        *_ampere(_ADA, _ADA, _ADA, _ADA),
        (("mma", "f8f6f4", "f32"), _fused(16, 13, RZ_E8M13, 24, _ADA_F8)),
        (("mma", "f8f6f4", "f16"), _fused(16, 13, RN_F16, 24, _RTX_ADA_F8)),
    ),
)
_H = _validated("H100, H200", 5000)
_H_F8 = _validated("H100, H200", 10000)
_H_WGMMA = _inferred(f"{_MMASIM} H100; the numbers of mma.sync on the same chip")
SM_90 = Architecture(
    name="sm_90",
    since=(7, 8),
    parent=SM_80,
    added=frozenset({Feature.FP8_MMA, Feature.F64_MMA, Feature.STMATRIX, Feature.PROXY_FENCE}),
    rules=(
        *_hopper("mma", _H, _H, _H, _H),
        *_emulated_f8(_inferred("SASS; the same code as on sm_100, validated on B200"), _H_F8),
    ),
)
SM_90A = Architecture(
    name="sm_90a",
    since=(8, 0),
    parent=SM_90,
    same_chip=True,
    added=frozenset({Feature.WGMMA}),
    rules=(
        *_hopper("wgmma", _H_WGMMA, _H_WGMMA, _H_WGMMA, _H_WGMMA),
        (
            ("wgmma", "f8f6f4", "f32"),
            _fused(32, 13, RZ_E8M13, 25, _validated("H100, H200", 10000, "KM; C = 0")),
        ),
        (("wgmma", "f8f6f4", "f16"), _fused(32, 13, RN_F16, 25, _H_WGMMA)),
        (("wgmma", "integer", "s32"), IntegerSum(evidence=_EXACT)),
        (("wgmma", "b1", "s32"), BitCount(evidence=_EXACT_BITS)),
    ),
)
# The a and f spellings enable the kinds. Sparse 4-bit kinds are a's alone.
_DATACENTER = frozenset({Feature.KINDS})
_GEFORCE_F = _DATACENTER | {Feature.NARROW_KINDS}
_GEFORCE_A = _GEFORCE_F | {Feature.SPARSE_F4}
_B = _validated("B200", 2500)
_B_F8 = _validated("B200", 5000)
SM_100 = Architecture(
    name="sm_100",
    since=(8, 6),
    parent=SM_90,
    rules=(*_hopper("mma", _B, _B, _B, _B), *_emulated_f8(_B_F8, _B_F8)),
    # ptxas sorts f16 and integer pairs in software here, and fp8 on its way to f16; a 1:2 field has no order.
    unsorted=frozenset({"bf16"}),
)
SM_100A = Architecture(name="sm_100a", since=(8, 6), parent=SM_100, same_chip=True, added=_DATACENTER)
SM_100F = Architecture(name="sm_100f", since=(8, 8), parent=SM_100, same_chip=True, added=_DATACENTER)
SM_103 = Architecture(name="sm_103", since=(8, 8), parent=SM_100)
SM_103A = Architecture(name="sm_103a", since=(8, 8), parent=SM_103, same_chip=True, added=_DATACENTER)
SM_103F = Architecture(name="sm_103f", since=(8, 8), parent=SM_103, same_chip=True, added=_DATACENTER)
SM_107 = Architecture(name="sm_107", since=(9, 4), parent=SM_100)
SM_107A = Architecture(name="sm_107a", since=(9, 4), parent=SM_107, same_chip=True, added=_DATACENTER)
SM_107F = Architecture(name="sm_107f", since=(9, 4), parent=SM_107, same_chip=True, added=_DATACENTER)
SM_110 = Architecture(name="sm_110", since=(9, 0), parent=SM_100)
SM_110A = Architecture(name="sm_110a", since=(9, 0), parent=SM_110, same_chip=True, added=_DATACENTER)
SM_110F = Architecture(name="sm_110f", since=(9, 0), parent=SM_110, same_chip=True, added=_DATACENTER)
_RTX = _inferred(f"{_MMASIM} RTX PRO 6000")
SM_120 = Architecture(
    name="sm_120",
    since=(8, 7),
    parent=SM_100,
    rules=(
        *_hopper("mma", _RTX, _RTX, _RTX, _RTX),
        (("mma", "f8f6f4", "f32"), _fused(32, 25, RZ_F32, 25, _RTX)),
        (("mma", "f8f6f4", "f16"), _fused(32, 25, RN_F16, 25, _RTX)),
        (("mma", "mxf8f6f4", "f32"), _fused(32, 25, RZ_F32, 25, _RTX)),
        (
            ("mma", "mxf4", "f32"),
            ScaledGroups(group=16, fraction_bits=35, output=RZ_F32, exponent_floor=-139, evidence=_RTX),
        ),
    ),
    unsorted=frozenset({"bf16", "f8f6f4"}),
)
SM_120A = Architecture(name="sm_120a", since=(8, 7), parent=SM_120, same_chip=True, added=_GEFORCE_A)
SM_120F = Architecture(name="sm_120f", since=(8, 8), parent=SM_120, same_chip=True, added=_GEFORCE_F)
SM_121 = Architecture(name="sm_121", since=(8, 8), parent=SM_120)
SM_121A = Architecture(name="sm_121a", since=(8, 8), parent=SM_121, same_chip=True, added=_GEFORCE_A)
SM_121F = Architecture(name="sm_121f", since=(8, 8), parent=SM_121, same_chip=True, added=_GEFORCE_F)

# Every record above, in order: a chip after its parent, and after every earlier chip.
ARCHITECTURES: dict[str, Architecture] = {
    record.name: record for record in tuple(vars().values()) if isinstance(record, Architecture)
}


def targets_with(*features: Feature) -> frozenset[str]:
    """The names of the targets that have all the features."""
    return frozenset(name for name, target in ARCHITECTURES.items() if target.features.issuperset(features))


def targets_text(names: Iterable[str], later: str = "and later") -> str:
    """Targets in order, ``sm_80 and later`` where every later one is among them."""
    every = list(ARCHITECTURES)
    listed = [name for name in every if name in names]
    if len(listed) > 1 and listed == every[every.index(listed[0]) :]:
        return f"{listed[0]} {later}"
    return ", ".join(listed)


_SPARSE = "sparse sums grouped over stored columns like the dense ones; nobody has published sparse outputs"


def rule_of(target: str, family: str, operation: str, result: str, *, sparse: bool) -> Rule:
    """The rule of an operation on a target. Sparse forms follow the dense rule, labelled inferred.

    Integer and 1-bit sums do not depend on any grouping and keep their evidence.
    """
    rule = ARCHITECTURES[target].table[(family, operation, result)]
    if sparse and not isinstance(rule, (IntegerSum, BitCount)):
        evidence = rule.evidence
        return replace(rule, evidence=_inferred(f"{_SPARSE}; dense rule {evidence}"))
    return rule
