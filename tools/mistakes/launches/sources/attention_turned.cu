// target: sm_80
// O^T = V^T P^T with P = softmax(Q K^T / 8): a warp has 16 rows of Q and all 16 keys; P is operand b, straight from the
// registers of S. q, k are row by row with 64 columns, v is V^T row by row (64 x 16), o is O^T (64 x length of q).
// HALVES: S is f16, and so is the accumulator.
#include "common.cuh"

extern "C" __global__ void attention_turned(const __half* q, const __half* k, const __half* v, float* o, int queries) {
    const int DEPTH = 64, KEYS = 16;
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4, row0 = blockIdx.x * 16;
    float score[2][4] = {};
    for (int tile = 0; tile < 2; tile++) {
#if HALVES
        word sums[2] = {0, 0};
#endif
        for (int step = 0; step < 4; step++) {
            word x[4], y[2];
            for (int i = 0; i < 4; i++)
                x[i] = *(const word*)&q[(row0 + group + i % 2 * 8) * DEPTH + step * 16 + pair * 2 + i / 2 * 8];
            for (int i = 0; i < 2; i++)
                y[i] = *(const word*)&k[(tile * 8 + group) * DEPTH + step * 16 + pair * 2 + i * 8];
#if HALVES
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                : "+r"(sums[0]), "+r"(sums[1]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
#else
            mma_f16(score[tile], x, y[0], y[1]);
#endif
        }
#if HALVES
        for (int half = 0; half < 2; half++) {
            const float2 both = __half22float2(*(__half2*)&sums[half]);
            score[tile][2 * half] = both.x, score[tile][2 * half + 1] = both.y;
        }
#endif
    }
    const float scale = WRONG(3) ? 1.0f : 0.125f;
    for (int half = 0; half < 2; half++) {
        float most = -1e30f, total = 0;
        for (int i = 0; i < 4; i++) most = fmaxf(most, score[i / 2][2 * half + i % 2] * scale);
        for (int by = 1; by < 4; by *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, by));
        for (int i = 0; i < 4; i++) total += score[i / 2][2 * half + i % 2] = __expf(score[i / 2][2 * half + i % 2] * scale - most);
        for (int by = 1; by < 4; by *= 2) total += __shfl_xor_sync(~0u, total, by);
        for (int i = 0; i < 4; i++) score[i / 2][2 * half + i % 2] /= total;
    }
    for (int half = 0; half < 2; half++) {
        word p[2];
        for (int i = 0; i < 2; i++) {
            const int tile = WRONG(1) ? 1 - i : i;
            __half2 both = __floats2half2_rn(score[tile][2 * half], score[tile][2 * half + 1]);
            if (WRONG(2)) both = __floats2half2_rn(score[tile][2 * half + 1], score[tile][2 * half]);
            p[i] = *(word*)&both;
        }
        for (int part = 0; part < 4; part++) {
            word x[4];
            for (int i = 0; i < 4; i++)
                x[i] = *(const word*)&v[(part * 16 + group + i % 2 * 8) * KEYS + pair * 2 + i / 2 * 8];
            float out[4] = {};
            mma_f16(out, x, p[0], p[1]);
            for (int i = 0; i < 4; i++)
                o[(part * 16 + group + i / 2 * 8) * queries + row0 + half * 8 + pair * 2 + i % 2] = out[i];
        }
    }
}
