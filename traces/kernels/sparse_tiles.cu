// target: sm_80
// Compressed A times B with ldmatrix, double-buffered cp.async and mma.sp, for the elements of Ampere.
#include "sparse.cuh"

SPARSE_PRODUCT(ProductF16, 32, float, "f", "m16n8k32.row.col.f32.f16.f16.f32")
SPARSE_PRODUCT(ProductBf16, 32, float, "f", "m16n8k32.row.col.f32.bf16.bf16.f32")
SPARSE_PRODUCT(ProductTf32, 16, float, "f", "m16n8k16.row.col.f32.tf32.tf32.f32")
SPARSE_PRODUCT(ProductS8, 64, int, "r", "m16n8k64.row.col.s32.s8.s8.s32")
SPARSE_PRODUCT(ProductS4, 128, int, "r", "m16n8k128.row.col.s32.s4.s4.s32")

SPARSE_KERNEL(sparse_f16, float, ProductF16)
SPARSE_KERNEL(sparse_bf16, float, ProductBf16)
SPARSE_KERNEL(sparse_tf32, float, ProductTf32)
SPARSE_KERNEL(sparse_s8, int, ProductS8)
SPARSE_KERNEL(sparse_s4, int, ProductS4)
