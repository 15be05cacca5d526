// target: sm_80
// 2:4 sparse weights as cuSPARSELt has them: mma.sp, a bias of each row, relu, f16.
#include "pieces.cuh"

INLINE void multiply_sparse(float (&d)[4], const u32 (&a)[4], const u32 (&b)[4], u32 e) {
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(e));
}

// a holds m x k / 2 stored values, e two bits for each of them, 16 values a word; b holds n rows of k.
extern "C" __global__ void sparse24(
    const half* a, const u32* e, const half* b, const half* bias, half* d, int m, int n, int k) {
    const int lane = threadIdx.x, row = blockIdx.y * 16 + lane / 4, column = blockIdx.x * 8, pair = lane % 4 * 2;
    float sums[4] = {};
#pragma unroll 1
    for (int step = 0; step < k / 32; step++) {
        const half* left = a + row * (k / 2) + step * 16 + pair;
        const half* right = b + (column + lane / 4) * k + step * 32 + pair;
        const u32 stored[4] = {word(left), word(left + 8 * (k / 2)), word(left + 8), word(left + 8 * (k / 2) + 8)};
        const u32 dense[4] = {word(right), word(right + 8), word(right + 16), word(right + 24)};
        const u32 upper = e[row * (k / 32) + step] >> lane % 2 * 16 & 0xFFFF;
        const u32 lower = e[(row + 8) * (k / 32) + step] >> lane % 2 * 16 & 0xFFFF;
        multiply_sparse(sums, stored, dense, upper | lower << 16);
    }
    for (int side = 0; side < 2; side++) {
        const float shift = __half2float(bias[row + side * 8]);
        const float first = fmaxf(sums[2 * side] + shift, 0.f);
        const float second = fmaxf(sums[2 * side + 1] + shift, 0.f);
        *reinterpret_cast<half2*>(d + (row + side * 8) * n + column + pair) = __floats2half2_rn(first, second);
    }
}
