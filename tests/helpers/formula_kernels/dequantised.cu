// target: sm_80
// D = A W: weights of 4 bits along k, eight to a word, with a scale and a zero point a column for 32 rows of k.
//
// A warp makes 16 x 8 of D. a (m, k) f16, words (n, k / 8), scales f16 and zeros (k / 32, n), d f32.
#include <cuda_fp16.h>

typedef unsigned int word;

__device__ __forceinline__ word pack(__half low, __half high) {
    const __half2 both = __halves2half2(low, high);
    return *reinterpret_cast<const word*>(&both);
}

__device__ __forceinline__ __half weight(word q, int zero, __half scale) {
    return __hmul(__int2half_rn(static_cast<int>(q & 15) - zero), scale);
}

extern "C" __global__ void __launch_bounds__(32)
    dequantised(const __half* a, const word* words, const __half* scales, const unsigned char* zeros, float* d, int n, int k) {
    const int lane = threadIdx.x, row = blockIdx.y * 16 + lane / 4, pair = lane % 4 * 2, column = blockIdx.x * 8 + lane / 4;
    float sums[4] = {};
#pragma unroll 1
    for (int step = 0; step < k; step += 16) {
        const int group = step / 32;
        const __half scale = scales[group * n + column];
        const int zero = zeros[group * n + column];
        const word low = words[(column * k + step) / 8] >> 4 * pair;
        const word high = words[(column * k + step) / 8 + 1] >> 4 * pair;
        word left[4];
        for (int i = 0; i < 4; i++)
            left[i] = *reinterpret_cast<const word*>(a + (row + i % 2 * 8) * k + step + pair + i / 2 * 8);
        const word first = pack(weight(low, zero, scale), weight(low >> 4, zero, scale));
        const word second = pack(weight(high, zero, scale), weight(high >> 4, zero, scale));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(first), "r"(second));
    }
    for (int i = 0; i < 4; i++) d[(row + i / 2 * 8) * n + blockIdx.x * 8 + pair + i % 2] = sums[i];
}
