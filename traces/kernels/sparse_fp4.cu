// target: sm_120a
// Compressed A times B of e2m1 with block scales in ue4m3 (nvf4) or ue8m0 (mxf4): consumer Blackwell.
//
// scale_a (m, steps) and scale_b (n, steps): a word a row and step. Four ue4m3 bytes are the scales of the four
// quarters of the step; two ue8m0 bytes, in the lower half, those of its two halves. Lane 4 r of a warp has
// the scales of row r of A and lane 4 r + 1 those of row r + 8; lane 4 c has those of column c of B.
#include "sparse.cuh"

#define SCALED_PRODUCT(NAME, FORM)                                                                           \
    struct NAME {                                                                                            \
        static const int depth = 128;                                                                        \
        const word *scale_a, *scale_b;                                                                       \
        __device__ __forceinline__ void operator()(float (&d)[4], const word (&a)[4], const word (&b)[4],    \
                                                   word e, int row, int column, int step, int steps) const { \
            const int lane = threadIdx.x % 32;                                                               \
            const word x = scale_a[(row + lane / 4 + lane % 2 * 8) * steps + step];                          \
            const word y = scale_b[(column + lane / 4) * steps + step];                                      \
            asm volatile("mma.sp::ordered_metadata.sync.aligned." FORM                                       \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0, " \
                         "%13, {%15, %15}, %14, {%15, %15};"                                                 \
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                    \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]),      \
                           "r"(b[3]), "r"(e), "r"(x), "r"(y), "n"(0));                                       \
        }                                                                                                    \
    };

SCALED_PRODUCT(ProductNvf4, "m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3")
SCALED_PRODUCT(ProductMxf4, "m16n8k128.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0")

#define SCALED_KERNEL(NAME, PRODUCT)                                                                         \
    extern "C" __global__ void __launch_bounds__(64)                                                         \
        NAME(const byte* a, const word* e, const byte* b, float* d, const word* scale_a, const word* scale_b, \
             int n, int k) {                                                                                 \
        sparse_tiles(a, e, b, d, n, k, PRODUCT{scale_a, scale_b});                                           \
    }

SCALED_KERNEL(sparse_nvf4, ProductNvf4)
SCALED_KERNEL(sparse_mxf4, ProductMxf4)
