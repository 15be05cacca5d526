// target: sm_80
// Rotary embedding of queries and keys, halves of a head as in GPT-NeoX, and their scores; queries begin at an offset.
#include "pieces.cuh"

const int DIM = 32, HALF = 16, PITCH = 40;

INLINE void rotate(half* to, const half* from, const float* cosine, const float* sine, int position) {
#pragma unroll 1
    for (int each = threadIdx.x; each < 16 * HALF; each += 32) {
        const int row = each / HALF, column = each % HALF;
        const float c = cosine[(position + row) * HALF + column];
        const float s = sine[(position + row) * HALF + column];
        const float first = __half2float(from[row * DIM + column]);
        const float second = __half2float(from[row * DIM + column + HALF]);
        to[row * PITCH + column] = __float2half(first * c - second * s);
        to[row * PITCH + column + HALF] = __float2half(second * c + first * s);
    }
}

extern "C" __global__ void rope(const half* q, const half* k, const float* cosine, const float* sine, float* scores,
                                int queries, int keys, int offset, float scale) {
    __shared__ alignas(16) half qs[16 * PITCH], ks[16 * PITCH];
    const int lane = threadIdx.x, head = blockIdx.z, row0 = blockIdx.y * 16, column0 = blockIdx.x * 16;
    rotate(qs, q + (head * queries + row0) * DIM, cosine, sine, offset + row0);
    rotate(ks, k + (head * keys + column0) * DIM, cosine, sine, column0);
    __syncwarp();
    float d[2][4] = {};
#pragma unroll 1
    for (int step = 0; step < DIM; step += 16) {
        u32 a[4];
        load_a(a, &qs[lane % 16 * PITCH + step + lane / 16 * 8]);
        for (int part = 0; part < 2; part++) {
            const half* right = &ks[(part * 8 + lane / 4) * PITCH + step + lane % 4 * 2];
            multiply(d[part], a, word(right), word(right + 8));
        }
    }
    for (int part = 0; part < 2; part++)
        for (int each = 0; each < 4; each++) {
            const int row = row0 + lane / 4 + each / 2 * 8, column = column0 + part * 8 + lane % 4 * 2 + each % 2;
            scores[(head * queries + row) * keys + column] = d[part][each] * scale;
        }
}
