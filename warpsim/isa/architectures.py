"""Targets sm_70 to sm_121f: PTX versions, limits, features, and how each sums products, with evidence.

Pure data and its lookup; no arithmetic. A target states only the rules, limits and features that differ from
its parent's: a new chip is one record here. Sources, by the short names used in the evidence texts:

* Khattak and Mikaitis: "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004, and the
  published outputs of their MATLAB-tensor-core repository, which the tests replay.
* MMA-Sim: arXiv 2511.10909 and PyPI mmasim 2.1.1, whose authors report bit equality with V100, T4,
  A100, RTX 4090, H100, B200 and RTX PRO 6000.
* Fasi et al.: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021.
* B200 harness: sf-tensor/tcgen05 (MIT), whose authors run tcgen05.mma.cta_group::1 on a B200, m 64 n 8 (with
  block scales m 128 n 8), and report 46 paths, dense and sparse, of a million cases each without a mismatch
  to a model that equals these rules on what was asked (72 published words, which the tests replay, and
  645,120 random outputs of 15 forms), but for C of -0 with products that are all 0: it returns C.
* RTX PRO 6000 model: RTXPRO6000TC.m of MATLAB-tensor-core at commit b12b5a7, without published outputs. It is
  their model of B200, which equals the rules of sm_120 for f16, bf16, tf32, and fp8 into f32.
* emulation_sys: huweim/emulation_sys at commit a80531a, probes of A100, RTX 4090, H100 and RTX 5090 of a few
  sums. Widths, truncation and groups agree with the rules here: for f16 24 bits on A100 and RTX 4090, 25 on
  H100 and RTX 5090, 13 for fp8 of wgmma. Its 25 bits of mxf4nvf4 on RTX 5090, against 35 here, are not
  decided by what it compares: 2^24 + 1/2 + 1/2 is the same with both.
* SASS: the instructions that ptxas 13.0 emits for the form, read from the disassembly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, cached_property

from .comparisons import REPORTS, Evidence, Issued, Use, documented, inferred, reported, validated
from .features import Feature
from .products import Product
from .rules import (
    RN_F16,
    RZ_E8M13,
    RZ_F32,
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Output,
    Rule,
    ScaledGroups,
    ScaledQuads,
    SoftwareQuad,
)
from .warps import WARP

_RESERVED = 1024  # bytes of shared memory of a CTA that the system takes, from sm_80 on

# --- records -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a CTA and a multiprocessor of a chip can have at most; sizes of shared memory in KiB.

    ``shared_kib`` is that of a CTA which asks for it (cudaFuncAttributeMaxDynamicSharedMemorySize).
    Source: CUDA programming guide 13.0, "Technical Specifications per Compute Capability". It has no
    capabilities 7.0 (that column is of guide 12.9), 8.8 and 10.7; those of 8.8 and 10.7 are inferred to be
    their parents'.
    """

    shared_kib: int
    multiprocessor_shared_kib: int
    multiprocessor_threads: int
    multiprocessor_ctas: int
    static_shared_kib: int = 48
    registers: int = 64 * 1024  # of a multiprocessor, and of a CTA; 32 bits each
    thread_registers: int = 255
    threads: int = 1024  # of a CTA
    local_kib: int = 512  # of a thread
    portable_cluster: int = 8  # CTAs of a cluster on every chip with clusters
    cluster: int = 16  # CTAs of a cluster where the host allows a size that is not portable
    parameter_bytes: int = 32764  # of a kernel
    early_parameter_bytes: int = (
        4352  # the same before PTX 8.1 (PTX ISA 9.1, section 5.1.6 "Parameter State Space")
    )

    @property
    def shared_bytes(self) -> int:
        """Return the most bytes of shared memory of a CTA."""
        return self.shared_kib * 1024

    def ctas_of_multiprocessor(self, threads: int, shared_bytes: int) -> int:
        """Return the CTAs that a multiprocessor can have at a time; 0 where it cannot have any.

        Registers are not counted: those of PTX are not those that ptxas allocates.
        """
        if threads < 1 or threads > self.threads or shared_bytes > self.shared_bytes:
            return 0
        by_threads = self.multiprocessor_threads // (-(-threads // WARP) * WARP)
        by_shared = self.multiprocessor_shared_kib * 1024 // (shared_bytes + _RESERVED)
        return min(by_threads, by_shared, self.multiprocessor_ctas)

    @property
    def local_bytes(self) -> int:
        """Return the most bytes of local memory of a thread."""
        return self.local_kib * 1024


RuleKey = tuple[str, str, str]  # family of the rule (mma or wgmma), operation, format of D
Rules = tuple[tuple[RuleKey, Rule], ...]


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One ``.target``: its parent, first PTX version, and what differs from the parent's.

    ``same_chip`` marks the a and f spellings of a chip, which inherit evidence as it stands.
    ``added`` are features that the parent lacks; ``own_limits`` is None where the parent's hold.
    ``unsorted`` lists the operations whose plain ``.sp`` metadata ptxas passes unsorted to a chip
    on which descending indices were never tried. ``sparse`` says why sparse forms are believed to follow
    the dense rules, "" where it is the parent's reason.
    """

    name: str
    since: tuple[int, int]
    parent: Architecture | None = None
    same_chip: bool = False
    rules: Rules = ()
    added: frozenset[Feature] = frozenset()
    own_limits: Limits | None = None
    unsorted: frozenset[str] | None = None
    sparse: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def number(self) -> int:
        """Return the compute capability times ten: 90 for sm_90a."""
        return int(self.name.removeprefix("sm_").rstrip("af"))

    @property
    def suffix(self) -> str:
        """Return "a" or "f" where the target has only forms of one chip or family, else ""."""
        return self.name.removeprefix(f"sm_{self.number}")

    @cached_property
    def table(self) -> dict[RuleKey, Rule]:
        """Return all rules of the target, its ancestors' included."""
        inherited = self.parent.table if self.parent else {}
        if self.parent and not self.same_chip:
            inherited = {key: _as_on(rule, self.parent) for key, rule in inherited.items()}
        return inherited | dict(self.rules)

    @cached_property
    def features(self) -> frozenset[Feature]:
        """Return all features of the target, its ancestors' included."""
        return self.added | (self.parent.features if self.parent else frozenset())

    @cached_property
    def limits(self) -> Limits:
        """Return the target's limits, its own or its parent's."""
        if self.own_limits is not None:
            return self.own_limits
        assert self.parent is not None, f"{self} has no limits"
        return self.parent.limits

    @property
    def static_shared_bytes(self) -> int:
        """Return the most bytes of shared memory that a kernel may declare, as ptxas 13.5 counts them.

        Targets of one chip, such as sm_90a, allow all that a CTA can have.
        """
        return self.limits.shared_bytes if self.suffix == "a" else self.limits.static_shared_kib * 1024

    @property
    def unsorted_operations(self) -> frozenset[str]:
        """Return the operations with which descending plain ``.sp`` metadata is not modelled."""
        if self.unsorted is not None or self.parent is None:
            return self.unsorted or frozenset()
        return self.parent.unsorted_operations

    @property
    def sparse_reason(self) -> str:
        """Return why sparse forms are believed to follow the dense rules."""
        return self.sparse or (self.parent.sparse_reason if self.parent else _SPARSE)


def _as_on(rule: Rule, parent: Architecture) -> Rule:
    if rule.evidence.basis is not None or rule.evidence.label == "documented":
        return rule
    return replace(rule, evidence=inferred(f"as on {parent}", basis=rule.evidence))


_ALIKE = "sparse sums grouped over stored columns like dense sums"
_SPARSE = f"{_ALIKE}; no sparse outputs of this chip have been published"
_SPARSE_AS_REPORTED = f"{_ALIKE}, as those of tcgen05.mma.sp, reported of B200"

# --- rules of several targets --------------------------------------------------------------------------

Why = Callable[[str, str], Evidence]  # types of A and B, separated by spaces, and of D


def _validation(target: str, composed: str, family: str = "mma", detail: str = "Khattak and Mikaitis") -> Why:
    return lambda factors, d: validated(target, family, factors.split(), d, detail, composed=composed)


def _evidence_for_all(evidence: Evidence) -> Why:
    return lambda factors, d: evidence


def _fused_sum(length: int, fraction_bits: int, output: Output, base: int, evidence: Evidence) -> FusedSum:
    # Both sources agree on the floor: it follows the generation's own fraction bits (base).
    floor = 4 - base if output.format == "f16" else -108 - base
    return FusedSum(
        length=length,
        fraction_bits=fraction_bits,
        output=output,
        exponent_floor=floor,
        evidence=evidence,
    )


def _scaled_groups(evidence: Evidence) -> ScaledGroups:
    return ScaledGroups(group=16, fraction_bits=35, output=RZ_F32, exponent_floor=-139, evidence=evidence)


_B200 = reported("sf-tensor/tcgen05", "B200", REPORTS)
_NVF4 = Evidence(
    label="inferred",
    covers_sparse=True,
    detail="as mxf4; a public model of B200 sums groups of 4 products where products dominate: it differs "
    "in 1 of 40,000 outputs whose scales differ by more than 2^27, and in none of others",
)
_QUADS = ScaledQuads(
    group=4,
    outranked=16,
    fraction_bits=35,
    product_bits=39,
    output=RZ_F32,
    evidence=inferred(
        "the model of sf-tensor/tcgen05, whose authors report 1,000,000 B200 outputs equal; no "
        "published output separates it from groups of 16"
    ),
)
_DEPTH_96 = inferred("groups of 16 products, as with K 64; no published output has K 96")
_MMASIM = "MMA-Sim's authors report bit equality with"
_EXACT = documented("exact integers that wrap, as PTX defines")
_SATURATED = inferred("exact integers, as PTX defines; saturation once at the end is PTX's wording")
_FMA = inferred(f"PTX: each step an IEEE fma; k ascending, C first: {_MMASIM} the chips, Fasi et al. on A100")


def _volta(why: Why) -> Rules:
    return (
        (("mma", "m8n8k4.f16", "f32"), _fused_sum(4, 23, RZ_F32, 23, why("f16", "f32"))),
        (("mma", "m8n8k4.f16", "f16"), _fused_sum(4, 23, RN_F16, 23, why("f16", "f16"))),
    )


def _ampere(why: Why) -> Rules:
    return (
        (("mma", "f16", "f32"), _fused_sum(8, 24, RZ_F32, 24, why("f16", "f32"))),
        (("mma", "f16", "f16"), _fused_sum(8, 24, RN_F16, 24, why("f16", "f16"))),
        (("mma", "bf16", "f32"), _fused_sum(8, 24, RZ_F32, 24, why("bf16", "f32"))),
        (("mma", "tf32", "f32"), _fused_sum(4, 24, RZ_F32, 24, why("tf32", "f32"))),
    )


def _hopper(family: str, why: Why) -> Rules:
    return (
        ((family, "f16", "f32"), _fused_sum(16, 25, RZ_F32, 25, why("f16", "f32"))),
        ((family, "f16", "f16"), _fused_sum(16, 25, RN_F16, 25, why("f16", "f16"))),
        ((family, "bf16", "f32"), _fused_sum(16, 25, RZ_F32, 25, why("bf16", "f32"))),
        ((family, "tf32", "f32"), _fused_sum(8, 25, RZ_F32, 25, why("tf32", "f32"))),
    )


def _warpgroups(family: str) -> Rules:
    f8 = _validation("sm_90a", f"{_MMASIM} H100", family, "Khattak and Mikaitis; no C")(_F8, "f32")
    return (
        *_hopper(family, _evidence_for_all(_H_WGMMA)),
        ((family, "f8f6f4", "f32"), _fused_sum(32, 13, RZ_E8M13, 25, f8)),
        ((family, "f8f6f4", "f16"), _fused_sum(32, 13, RN_F16, 25, _H_WGMMA)),
        ((family, "integer", "s32"), IntegerSum(evidence=_EXACT)),
        ((family, "b1", "s32"), BitCount(evidence=_EXACT)),
    )


def _emulated_f8(f32: Evidence, f16: Evidence) -> Rules:
    return (
        (("mma", "f8f6f4", "f32"), EmulatedF8(step=_fused_sum(16, 25, RZ_F32, 25, f32), evidence=f32)),
        (("mma", "f8f6f4", "f16"), EmulatedF8(step=_fused_sum(16, 25, RN_F16, 25, f16), evidence=f16)),
    )


# --- targets ---------------------------------------------------------------------------------------

_F8 = "e4m3 e5m2"
SM_70 = Architecture(
    name="sm_70",
    since=(6, 0),
    added=frozenset({Feature.QUAD_MMA}),
    rules=_volta(_validation("sm_70", f"{_MMASIM} V100")),
    own_limits=Limits(
        shared_kib=96, multiprocessor_shared_kib=96, multiprocessor_threads=2048, multiprocessor_ctas=32
    ),
)
_T4 = inferred(f"{_MMASIM} T4; Fasi et al. on T4")
SM_75 = Architecture(
    name="sm_75",
    since=(6, 3),
    parent=SM_70,
    added=frozenset(
        {Feature.INTEGER_MMA, Feature.LDMATRIX, Feature.APPROXIMATIONS, Feature.INTEGER_PACKING}
        | {Feature.L2_PREFETCH_SIZES}
    ),
    own_limits=Limits(
        shared_kib=64, multiprocessor_shared_kib=64, multiprocessor_threads=1024, multiprocessor_ctas=16
    ),
    rules=(
        *_volta(_evidence_for_all(_T4)),
        (("mma", "f16", "f32"), _fused_sum(8, 24, RZ_F32, 24, _T4)),
        (("mma", "f16", "f16"), _fused_sum(8, 24, RN_F16, 24, _T4)),
        (("mma", "integer", "s32"), IntegerSum(evidence=_EXACT)),
        (("mma", "b1", "s32"), BitCount(evidence=_EXACT)),
    ),
)
_SOFTWARE = SoftwareQuad(evidence=inferred("SASS: a software routine of FFMA, FADD and shuffles"))
SM_80 = Architecture(
    name="sm_80",
    since=(7, 0),
    parent=SM_75,
    added=frozenset(
        {Feature.WIDE_MMA, Feature.CP_ASYNC, Feature.MBARRIER, Feature.REDUX, Feature.CACHE_POLICIES}
        | {Feature.BF16_FMA, Feature.F16_CLAMPS, Feature.TF32_ROUNDING, Feature.RESERVED_SHARED}
    ),
    own_limits=Limits(
        shared_kib=163, multiprocessor_shared_kib=164, multiprocessor_threads=2048, multiprocessor_ctas=32
    ),
    rules=(
        *_ampere(_validation("sm_80", f"{_MMASIM} A100")),
        (("mma", "m8n8k4.f16", "f32"), _SOFTWARE),
        (("mma", "m8n8k4.f16", "f16"), _SOFTWARE),
        (("mma", "f64", "f64"), FusedMultiplyAdd(evidence=_FMA)),
    ),
)
_XORSIGN = frozenset({Feature.XORSIGN})
SM_86 = Architecture(
    name="sm_86",
    since=(7, 1),
    parent=SM_80,
    added=_XORSIGN,
    rules=_ampere(_validation("sm_86", "as on sm_80")),
    own_limits=Limits(
        shared_kib=99, multiprocessor_shared_kib=100, multiprocessor_threads=1536, multiprocessor_ctas=16
    ),
)
SM_87 = Architecture(
    name="sm_87",
    since=(7, 4),
    parent=SM_80,
    added=_XORSIGN,
    own_limits=Limits(
        shared_kib=163, multiprocessor_shared_kib=164, multiprocessor_threads=1536, multiprocessor_ctas=16
    ),
)
SM_88 = Architecture(name="sm_88", since=(7, 3), parent=SM_80, added=_XORSIGN)
_ADA = _XORSIGN | {Feature.FP8_MMA, Feature.FP8_CONVERSIONS}
_COMPARED_ADA = _validation("sm_89", f"{_MMASIM} RTX 4090")
SM_89 = Architecture(
    name="sm_89",
    since=(7, 8),
    parent=SM_80,
    added=_ADA,
    own_limits=Limits(
        shared_kib=99, multiprocessor_shared_kib=100, multiprocessor_threads=1536, multiprocessor_ctas=24
    ),
    rules=(
        *_ampere(_COMPARED_ADA),
        (("mma", "f8f6f4", "f32"), _fused_sum(16, 13, RZ_E8M13, 24, _COMPARED_ADA(_F8, "f32"))),
        (("mma", "f8f6f4", "f16"), _fused_sum(16, 13, RN_F16, 24, _COMPARED_ADA(_F8, "f16"))),
    ),
)
_HOPPER = frozenset(
    {Feature.F64_MMA, Feature.STMATRIX, Feature.BF16_ARITHMETIC, Feature.TF32_NEAREST, Feature.OUT_OF_BOUNDS}
    | {Feature.INTEGER_PAIRS, Feature.CLUSTERS, Feature.AGGREGATE_SHARED, Feature.ELECT}
    | {Feature.DEPENDENT_LAUNCH, Feature.PROXY_FENCE, Feature.SPLIT_FENCES, Feature.BULK_COPY}
    | {Feature.TENSOR_COPY, Feature.MBARRIER_TRANSACTIONS, Feature.VECTOR_ATOMICS, Feature.MULTIMEM}
)
_SAME_CODE = "SASS: two f16 MMAs and an addition of C, whatever the types and k"
_H_WGMMA = inferred(f"{_MMASIM} H100; the numbers of mma.sync on the same chip")
SM_90 = Architecture(
    name="sm_90",
    since=(7, 8),
    parent=SM_80,
    added=_ADA | _HOPPER,
    own_limits=Limits(
        shared_kib=227, multiprocessor_shared_kib=228, multiprocessor_threads=2048, multiprocessor_ctas=32
    ),
    rules=(
        *_hopper("mma", _validation("sm_90", f"{_MMASIM} H100")),
        *_emulated_f8(
            inferred("SASS: the same code as on sm_100, of which outputs of B200 were compared"),
            _validation("sm_90", _SAME_CODE)(_F8, "f16"),
        ),
    ),
)
SM_90A = Architecture(
    name="sm_90a",
    since=(8, 0),
    parent=SM_90,
    same_chip=True,
    added=frozenset({Feature.WGMMA, Feature.SETMAXNREG, Feature.TENSORMAP_REPLACE}),
    rules=_warpgroups("wgmma"),
)
# The a and f spellings enable the kinds. Sparse 4-bit kinds are a's alone.
_FAMILY = frozenset(
    {Feature.KINDS, Feature.SETMAXNREG, Feature.TENSORMAP_REPLACE, Feature.BYTE_MATRICES}
    | {Feature.NARROW_CONVERSIONS, Feature.LAUNCH_MULTICAST}
)
_REPLACED = _FAMILY | {Feature.REPLACED_ATOMS}
_DATACENTER = _FAMILY | {Feature.TCGEN05}
_PAIRED = _DATACENTER | _REPLACED | {Feature.CTA_PAIRS}
_SCALED_D, _REDUCTION = Feature.TENSOR_SCALED_D, Feature.TENSOR_REDUCTION
_VECTORS, _INTEGERS = Feature.TENSOR_VECTORS, Feature.TENSOR_INTEGERS
_B200_F = _PAIRED | {Feature.FLOAT_REDUX, _SCALED_D}
_B200_A = _B200_F | {Feature.STOCHASTIC_ROUNDING, _VECTORS}
_RUBIN_F = _DATACENTER | {_SCALED_D, _REDUCTION}
_GEFORCE_F = _REPLACED | {Feature.NARROW_KINDS}
_GEFORCE_A = _GEFORCE_F | {Feature.SPARSE_F4}
_BLACKWELL = frozenset(
    {Feature.F32_PAIRS, Feature.MIXED_SUMS, Feature.THREE_SOURCES, Feature.TF32_SATURATION}
    | {Feature.WIDE_VECTORS, Feature.BYTE_MASKS, Feature.ASYNC_RELEASE, Feature.GATHER4}
    | {Feature.WIDE_ATOMS, Feature.BULK_STORE, Feature.LAUNCH_CONTROL}
)
_B_F8 = _validation("sm_100", _SAME_CODE)


def _depth_96() -> Rules:
    """Return the rules of tcgen05.mma with K of 96."""
    return (
        (("tcgen05", "mxf4_k96", "f32"), _scaled_groups(_DEPTH_96)),
        (("tcgen05", "nvf4_k96", "f32"), _scaled_groups(_DEPTH_96)),
        (("tcgen05", "nvf4_k96.groups_of_4", "f32"), _QUADS),
    )


def _tensor(evidence: Evidence, *, integers: bool = False) -> Rules:
    """Return the rules of tcgen05.mma: all products of an instruction and C are summed at once."""
    wide = (("tcgen05", "integer", "s32"), IntegerSum(evidence=_EXACT))
    return (
        *_hopper("tcgen05", _evidence_for_all(evidence)),
        (("tcgen05", "f8f6f4", "f32"), _fused_sum(32, 25, RZ_F32, 25, evidence)),
        (("tcgen05", "f8f6f4", "f16"), _fused_sum(32, 25, RN_F16, 25, evidence)),
        (("tcgen05", "mxf8f6f4", "f32"), _fused_sum(32, 25, RZ_F32, 25, evidence)),
        (("tcgen05", "mxf4", "f32"), _scaled_groups(evidence)),
        (("tcgen05", "nvf4", "f32"), _scaled_groups(_NVF4)),
        (("tcgen05", "nvf4.groups_of_4", "f32"), _QUADS),
        *((wide,) if integers else ()),
    )


SM_100 = Architecture(
    name="sm_100",
    since=(8, 6),
    parent=SM_90,
    added=_BLACKWELL,
    rules=(
        *_hopper("mma", _validation("sm_100", f"{_MMASIM} B200")),
        *_emulated_f8(_B_F8(_F8, "f32"), _B_F8(_F8, "f16")),
    ),
    # ptxas sorts f16 and integer pairs in software here, and fp8 on its way to f16; a 1:2 field has no order.
    unsorted=frozenset({"bf16"}),
    sparse=_SPARSE_AS_REPORTED,
)
SM_100A = Architecture(
    name="sm_100a",
    since=(8, 6),
    parent=SM_100,
    same_chip=True,
    added=_B200_A | {_INTEGERS},
    rules=_tensor(_B200, integers=True),
)
SM_100F = Architecture(
    name="sm_100f",
    since=(8, 8),
    parent=SM_100,
    same_chip=True,
    added=_B200_F,
    rules=_tensor(_B200),
)
_AS_B200 = replace(_B200, label="inferred", detail="as on sm_100a", basis=_B200)
SM_103 = Architecture(name="sm_103", since=(8, 8), parent=SM_100)
SM_103A = Architecture(
    name="sm_103a",
    since=(8, 8),
    parent=SM_103,
    same_chip=True,
    added=_B200_A | {Feature.REPLACED_SWIZZLE_96B, _REDUCTION, Feature.TENSOR_DEPTH_96},
    rules=(*_tensor(_AS_B200), *_depth_96()),
)
SM_103F = Architecture(
    name="sm_103f",
    since=(8, 8),
    parent=SM_103,
    same_chip=True,
    added=_B200_F | {_REDUCTION, Feature.TENSOR_DEPTH_96},
    rules=(*_tensor(_AS_B200), *_depth_96()),
)
SM_107 = Architecture(name="sm_107", since=(9, 4), parent=SM_100)
SM_107A = Architecture(
    name="sm_107a",
    since=(9, 4),
    parent=SM_107,
    same_chip=True,
    added=_RUBIN_F | {_VECTORS},
    rules=_tensor(_AS_B200),
)
SM_107F = Architecture(
    name="sm_107f", since=(9, 4), parent=SM_107, same_chip=True, added=_RUBIN_F, rules=_tensor(_AS_B200)
)
SM_110 = Architecture(
    name="sm_110",
    since=(9, 0),
    parent=SM_100,
    own_limits=Limits(
        shared_kib=227, multiprocessor_shared_kib=228, multiprocessor_threads=1536, multiprocessor_ctas=24
    ),
)
_THOR_F = _PAIRED | {_REDUCTION}
SM_110A = Architecture(
    name="sm_110a",
    since=(9, 0),
    parent=SM_110,
    same_chip=True,
    added=_THOR_F | {_VECTORS, _INTEGERS},
    rules=_tensor(_AS_B200, integers=True),
)
SM_110F = Architecture(
    name="sm_110f", since=(9, 0), parent=SM_110, same_chip=True, added=_THOR_F, rules=_tensor(_AS_B200)
)
_RTX = inferred(f"{_MMASIM} RTX PRO 6000")
_RTX_KM = inferred(f"{_MMASIM} RTX PRO 6000; the model of Khattak and Mikaitis equals the rule")
_RTX_F16 = inferred(
    f"{_MMASIM} RTX PRO 6000; the model of Khattak and Mikaitis equals the rule; emulation_sys states its "
    "width and truncation on RTX 5090"
)
_RTX_F8 = inferred(f"{_MMASIM} RTX PRO 6000; the model of Khattak and Mikaitis equals the rule for fp8")
_RTX_F4 = inferred(
    f"{_MMASIM} RTX PRO 6000; emulation_sys states a width of 25 bits on RTX 5090, of a sum that "
    "has the same bits with 35"
)
SM_120 = Architecture(
    name="sm_120",
    since=(8, 7),
    parent=SM_100,
    own_limits=Limits(
        shared_kib=99, multiprocessor_shared_kib=100, multiprocessor_threads=1536, multiprocessor_ctas=24
    ),
    rules=(
        *_hopper("mma", lambda a, d: _RTX_F16 if (a, d) == ("f16", "f32") else _RTX_KM),
        (("mma", "f8f6f4", "f32"), _fused_sum(32, 25, RZ_F32, 25, _RTX_F8)),
        (("mma", "f8f6f4", "f16"), _fused_sum(32, 25, RN_F16, 25, _RTX)),
        (("mma", "mxf8f6f4", "f32"), _fused_sum(32, 25, RZ_F32, 25, _RTX)),
        (("mma", "mxf4", "f32"), _scaled_groups(_RTX_F4)),
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

# Cards and the target with all instructions of their chip. Source: NVIDIA, "CUDA GPU Compute Capability".
CARDS: dict[str, str] = {
    **dict.fromkeys(("V100", "TITAN V"), "sm_70"),
    **dict.fromkeys(("T4", "RTX 2080", "RTX 2080 Ti"), "sm_75"),
    **dict.fromkeys(("A100", "A30"), "sm_80"),
    **dict.fromkeys(("A10", "A40", "RTX 3080", "RTX 3090", "RTX A6000"), "sm_86"),
    **dict.fromkeys(("Orin", "Jetson AGX Orin"), "sm_87"),
    **dict.fromkeys(("L4", "L40", "L40S", "RTX 4080", "RTX 4090", "RTX 6000 Ada"), "sm_89"),
    **dict.fromkeys(("H100", "H200", "H20", "GH200"), "sm_90a"),
    **dict.fromkeys(("B200", "GB200"), "sm_100a"),
    **dict.fromkeys(("B300", "GB300"), "sm_103a"),
    **dict.fromkeys(("Thor", "Jetson T5000", "Jetson T4000"), "sm_110a"),
    **dict.fromkeys(("RTX 5080", "RTX 5090", "RTX PRO 6000"), "sm_120a"),
    **dict.fromkeys(("GB10", "DGX Spark"), "sm_121a"),
}


# The most of any target: what a program may ask for where its chip is not known.
LARGEST = Limits(
    shared_kib=max(chip.limits.shared_kib for chip in ARCHITECTURES.values()),
    multiprocessor_shared_kib=max(chip.limits.multiprocessor_shared_kib for chip in ARCHITECTURES.values()),
    multiprocessor_threads=max(chip.limits.multiprocessor_threads for chip in ARCHITECTURES.values()),
    multiprocessor_ctas=max(chip.limits.multiprocessor_ctas for chip in ARCHITECTURES.values()),
)


def target_of_card(name: str) -> str | None:
    """Return the target of a card, in any case, spaces and dashes left out: ``rtx4090``; None if unknown."""
    return {_plain(card): target for card, target in CARDS.items()}.get(_plain(name))


def near_target(text: str) -> str | None:
    """Return the target that a wrong name is nearest to, as sm_90a for ``90a``; None where none is near."""
    plain, cards = _plain(text), {_plain(card): target for card, target in CARDS.items()}
    number = re.match(r"(?:compute|sm)?(?=\d)", plain)
    if number is None:
        return next((cards[card] for card in get_close_matches(plain, cards, n=1, cutoff=0.75)), None)
    return next(iter(get_close_matches(f"sm_{plain[number.end() :]}", ARCHITECTURES, n=1, cutoff=0.75)), None)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def has(target: str, feature: Feature) -> bool:
    """Return whether a target has a feature."""
    return feature in ARCHITECTURES[target].features


def targets_with(*features: Feature) -> frozenset[str]:
    """Return the names of the targets that have all the features."""
    return frozenset(name for name, target in ARCHITECTURES.items() if target.features.issuperset(features))


def targets_text(names: Iterable[str], later: str = "and later") -> str:
    """Return targets in order, as ``sm_80 and later`` where every later target is among them."""
    every = list(ARCHITECTURES)
    listed = [name for name in every if name in names]
    if len(listed) > 1 and listed == every[every.index(listed[0]) :]:
        return f"{listed[0]} {later}"
    return ", ".join(listed)


@cache
def least_targets(feature: Feature) -> str:
    """Return the least targets with a feature in words: ``sm_90 or higher``, ``sm_100f or sm_103f``."""
    least = dict[int, str]()
    found = [ARCHITECTURES[name] for name in targets_with(feature)]
    for target in sorted(found, key=lambda target: ("", "f", "a").index(target.suffix)):
        least.setdefault(target.number, target.name)
    numbers = sorted({target.number for target in ARCHITECTURES.values()})
    listed = [least[number] for number in sorted(least)]
    if len(listed) > 1 and sorted(least) == numbers[numbers.index(min(least)) :]:
        return f"{listed[0]} or higher"
    return " or ".join(listed)


@cache
def rule_of(target: str, family: str, product: Product, *, with_c: bool = True, words: str = "") -> Rule:
    """Return the rule of a product on a target, with the evidence for its types and k, with or without C.

    ``words`` say how the instruction is issued (``Spelling.issue``): others report outputs of one way alone.
    Sparse forms follow the dense rule, labelled inferred unless others report sparse outputs; so does what
    was not compared itself. Integer and 1-bit sums do not depend on any grouping and keep their evidence.
    """
    rule = ARCHITECTURES[target].table[(family, product.operation, product.d.name)]
    if rule.evidence.label == "documented":
        return replace(rule, evidence=_SATURATED) if product.satfinite else rule
    k = product.stored_k
    types = {"a": product.a.name, "b": product.b.name, "c": product.c.name}
    known = rule.evidence.basis or rule.evidence
    m, n = product.shape.m, product.shape.n
    issued = Issued(words, product.operation, m, n) if known.reports else None  # else no more objects
    use = Use(**types, k=k, steps=rule.steps(k), with_c=with_c, issued=issued)
    return _with_evidence(target, rule, use, product.sparse)


@cache
def _with_evidence(target: str, rule: Rule, use: Use, sparse: bool) -> Rule:
    """Return the rule with the evidence of a use: the same object for all products with this use."""
    evidence = rule.evidence.of(use)
    if sparse and not evidence.covers_sparse:
        evidence = inferred(f"{ARCHITECTURES[target].sparse_reason}; dense rule {evidence}")
    return rule if evidence is rule.evidence else replace(rule, evidence=evidence)
