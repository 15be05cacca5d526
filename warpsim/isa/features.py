"""Features: what some targets have and others lack, as forms and opcodes ask for it.

A row of an opcode or of an instruction family names a feature; the record of a chip says whether it has it
(architectures.py). Source: PTX ISA 9.1, the "Target ISA Notes" of each instruction, as ptxas 13.0 has them.
"""

from __future__ import annotations

from enum import Enum


class Feature(Enum):
    """A group of forms that some targets lack; the value says which forms these are."""

    QUAD_MMA = "m8n8k4 of f16"

    # Turing
    INTEGER_MMA = "m16n8k8 of f16, m8n8 of integers and of bits under xor; wmma of integers and bits"
    LDMATRIX = "ldmatrix and movmatrix of b16"
    APPROXIMATIONS = "tanh; ex2 of f16"
    INTEGER_PACKING = "cvt.pack"
    L2_PREFETCH_SIZES = "ld with .L2::64B and .L2::128B"

    # Ampere
    WIDE_MMA = "m16n8 of 16-bit and tf32 floats, integers and bits; m8n8k4 of f64; mma.sp, wmma of the same"
    CP_ASYNC = "cp.async"
    MBARRIER = "mbarrier"
    REDUX = "redux.sync of integers"
    CACHE_POLICIES = "createpolicy, .L2::cache_hint, .L2::256B, applypriority, discard, prefetch.L2::evict_*"
    BF16_FMA = "fma, min, max, abs and neg of bf16; cvt between bf16 and f32"
    F16_CLAMPS = ".relu of f16; min and max of f16; .NaN of f32"
    TF32_ROUNDING = "cvt.rna.tf32"
    RESERVED_SHARED = "%reserved_smem_offset"
    XORSIGN = "min and max with .xorsign.abs"

    # Ada and Hopper
    FP8_MMA = "mma of 8-bit floats without a kind"
    FP8_CONVERSIONS = "cvt of e4m3x2 and e5m2x2"
    STMATRIX = "stmatrix of b16"
    F64_MMA = "m16n8 of f64"
    BF16_ARITHMETIC = "add, sub, mul, set, atom, ex2 and tanh of bf16; cvt between bf16 and more types"
    TF32_NEAREST = "cvt.rn.tf32 and cvt.rz.tf32"
    OUT_OF_BOUNDS = "fma.oob"
    INTEGER_PAIRS = "add, min and max of 16-bit pairs; integer .relu"
    CLUSTERS = "clusters: mapa, getctarank, barrier.cluster, .cluster, .shared::cluster, their directives"
    AGGREGATE_SHARED = "%aggr_smem_size"
    ELECT = "elect.sync"
    DEPENDENT_LAUNCH = "griddepcontrol"
    PROXY_FENCE = "fence.proxy.async"
    SPLIT_FENCES = "fence.acquire and fence.release"
    BULK_COPY = "cp.async.bulk, st.async and red.async of shared memory"
    TENSOR_COPY = "cp.async.bulk.tensor, fence.proxy.tensormap, tensormap.cp_fenceproxy"
    MBARRIER_TRANSACTIONS = "mbarrier with try_wait, expect_tx, complete_tx, counts, .cluster and .relaxed"
    VECTOR_ATOMICS = "atom and red of vectors and of b128"
    MULTIMEM = "multimem"
    WGMMA = "wgmma"
    SETMAXNREG = "setmaxnreg"
    TENSORMAP_REPLACE = "tensormap.replace"

    # Blackwell
    KINDS = ".kind::f8f6f4 of 8-bit floats"
    NARROW_KINDS = "every .kind: 6-bit and 4-bit floats and block scales too"
    SPARSE_F4 = "mma.sp of 4-bit kinds"
    F32_PAIRS = "add, sub, mul and fma of f32x2"
    MIXED_SUMS = "add, sub and fma of f32 with f16 or bf16"
    THREE_SOURCES = "min and max of three f32"
    TF32_SATURATION = "cvt.rn.satfinite.tf32"
    WIDE_VECTORS = "ld and st of 256 bits; .L2::evict_* of ld and st"
    BYTE_MASKS = "cp.async.bulk with .cp_mask"
    ASYNC_RELEASE = "st.async and red.async of global memory"
    GATHER4 = "cp.async.bulk.tensor to .shared::cta with .tile::gather4 or .im2col::w"
    WIDE_ATOMS = "tensor maps with atoms of more than 16 bytes and elements with gaps"
    BULK_STORE = "st.bulk"
    LAUNCH_CONTROL = "clusterlaunchcontrol"
    LAUNCH_MULTICAST = "clusterlaunchcontrol with .multicast::cluster::all"
    BYTE_MATRICES = "ldmatrix and stmatrix of 8-bit, 6-bit and 4-bit elements"
    NARROW_CONVERSIONS = "cvt of 6-bit and 4-bit floats and of ue8m0"
    CTA_PAIRS = "cp.async.bulk.tensor with .cta_group, and the modes that sm_120 lacks"
    STOCHASTIC_ROUNDING = "cvt.rs"
    FLOAT_REDUX = "redux.sync of f32"
    REPLACED_ATOMS = "tensormap.replace of .swizzle_atomicity and of packed element types"
    REPLACED_SWIZZLE_96B = "tensormap.replace with the swizzle mode of 96 bytes"
    TCGEN05 = "tcgen05"
    TENSOR_INTEGERS = "tcgen05.mma of kind::i8"
    TENSOR_VECTORS = "tcgen05.mma with .scale_vec, sparse 4-bit kinds of tcgen05.mma, tcgen05.shift"
    TENSOR_SCALED_D = "tcgen05.mma with scale-input-d"
    TENSOR_REDUCTION = "tcgen05.ld.red"
    TENSOR_DEPTH_96 = "tcgen05.mma with a K of 96"
