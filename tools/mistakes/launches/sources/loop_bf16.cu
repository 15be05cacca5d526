// target: sm_80
// D = A B of 16-bit elements: 16 x 8 of D for a warp; b is N x K; mistake 1 reads f16 as bf16, 2 permutes k alike.
#include "common.cuh"

extern "C" __global__ void loop_bf16(const unsigned short* a, const unsigned short* b, float* d, int n, int k) {
    const int lane = threadIdx.x, group = lane / 4, pair = lane % 4;
    float sum[4] = {};
    for (int k0 = 0; k0 < k; k0 += 16) {
        word x[4], y[2];
        for (int i = 0; i < 4; i++) {
            const int row = blockIdx.y * 16 + group + i % 2 * 8;
            x[i] = *(const word*)&a[row * k + k0 + (WRONG(2) || WRONG(3) ? pair * 4 + i / 2 * 2 : pair * 2 + i / 2 * 8)];
        }
        for (int i = 0; i < 2; i++)
            y[i] = *(const word*)&b[(blockIdx.x * 8 + group) * k + k0 + (WRONG(2) ? pair * 4 + i * 2 : pair * 2 + i * 8)];
        if (WRONG(4)) k0 += 16;
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32."
#if MISTAKE == 1
                     "bf16.bf16"
#else
                     "f16.f16"
#endif
                     ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
    for (int i = 0; i < 4; i++)
        d[(blockIdx.y * 16 + group + i / 2 * 8) * n + blockIdx.x * 8 + pair * 2 + i % 2] = sum[i];
}
