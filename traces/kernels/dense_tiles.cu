// target: sm_80
// A times B with ldmatrix (.trans where B is stored row by row), double-buffered cp.async and mma.
#include "dense.cuh"

#define DENSE_KERNEL(NAME, VALUE, PRODUCT)                                                                   \
    extern "C" __global__ void __launch_bounds__(64)                                                         \
        NAME(const byte* a, const byte* b, VALUE* d, int n, int k) {                                         \
        dense_product(a, b, d, n, k, PRODUCT());                                                             \
    }

DENSE_KERNEL(dense_f16, float, DenseF16)
DENSE_KERNEL(dense_bf16, float, DenseBf16)
DENSE_KERNEL(dense_tf32, float, DenseTf32)
DENSE_KERNEL(dense_s8, int, DenseS8)
