// target: sm_80
// A linear layer with adapters of rank 16, as in Punica: y = x w' + scale (x a') b', an adapter for each 16 tokens.
#include "pieces.cuh"

typedef __nv_bfloat16 bf16;
const int RANK = 16;

INLINE u32 pair(float x, float y) {
    __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
    return reinterpret_cast<u32&>(both);
}

extern "C" __global__ void lora(const bf16* x, const bf16* w, const bf16* a, const bf16* b, const int* adapters,
                                float* y, int n, int k, float scale) {
    const int lane = threadIdx.x, row = blockIdx.y * 16 + lane / 4, column = blockIdx.x * 16, two = lane % 4 * 2;
    const int adapter = adapters[blockIdx.y];
    a += adapter * RANK * k, b += adapter * n * RANK;
    float base[2][4] = {}, down[2][4] = {};
#pragma unroll 1
    for (int at = two; at < k; at += 16) {
        const bf16* left = x + row * k + at;
        const u32 words[4] = {word(left), word(left + 8 * k), word(left + 8), word(left + 8 * k + 8)};
        for (int part = 0; part < 2; part++) {
            const bf16* right = w + (column + part * 8 + lane / 4) * k + at;
            const bf16* adapted = a + (part * 8 + lane / 4) * k + at;
            multiply_bf16(base[part], words, word(right), word(right + 8));
            multiply_bf16(down[part], words, word(adapted), word(adapted + 8));
        }
    }
    const u32 low[4] = {pair(down[0][0] * scale, down[0][1] * scale), pair(down[0][2] * scale, down[0][3] * scale),
                        pair(down[1][0] * scale, down[1][1] * scale), pair(down[1][2] * scale, down[1][3] * scale)};
    for (int part = 0; part < 2; part++) {
        const bf16* right = b + (column + part * 8 + lane / 4) * RANK + two;
        multiply_bf16(base[part], low, word(right), word(right + 8));
        float* to = y + row * n + column + part * 8 + two;
        *reinterpret_cast<float2*>(to) = make_float2(base[part][0], base[part][1]);
        *reinterpret_cast<float2*>(to + 8 * n) = make_float2(base[part][2], base[part][3]);
    }
}
