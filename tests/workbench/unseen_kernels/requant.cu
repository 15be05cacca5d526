// target: sm_80
// Batched int8 products, quantised again as in CUTLASS and TensorRT: zero point of A, bias, scale and zero point of D.
#include "pieces.cuh"

extern "C" __global__ void requant(const s8* a, const s8* b, const int* sums_b, const int* bias, const float* scale,
                                   s8* d, int m, int n, int k, int zero_a, int zero_d) {
    const int lane = threadIdx.x, batch = blockIdx.z, row = blockIdx.y * 16 + lane / 4, column = blockIdx.x * 8;
    a += batch * m * k, b += batch * n * k, d += batch * m * n;
    int sums[4] = {};
#pragma unroll 1
    for (int at = lane % 4 * 4; at < k; at += 32) {
        const s8* left = a + row * k + at;
        const s8* right = b + (column + lane / 4) * k + at;
        const u32 words[4] = {word(left), word(left + 8 * k), word(left + 16), word(left + 8 * k + 16)};
        multiply_s8(sums, words, word(right), word(right + 16));
    }
    for (int each = 0; each < 4; each++) {
        const int to_row = row + each / 2 * 8, to = column + lane % 4 * 2 + each % 2;
        const int corrected = sums[each] - zero_a * sums_b[batch * n + to] + bias[to];
        const int rounded = __float2int_rn(corrected * scale[to]) + zero_d;
        d[to_row * n + to] = max(-128, min(127, rounded));
    }
}
