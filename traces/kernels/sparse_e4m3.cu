// target: sm_89
// Compressed A times B of e4m3, summed in f32: the FP8 tensor cores of Ada.
#include "sparse.cuh"

SPARSE_PRODUCT(ProductE4m3, 64, float, "f", "m16n8k64.row.col.f32.e4m3.e4m3.f32")

SPARSE_KERNEL(sparse_e4m3, float, ProductE4m3)
