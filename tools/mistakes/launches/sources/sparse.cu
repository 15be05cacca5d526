// target: sm_80
// D = A B, A 2:4 sparse f16: 16 x 8 of D for a warp; e has a word a lane for each m16n8k32 step; b is N x K.
#include "common.cuh"

extern "C" __global__ void sparse(const __half* a, const word* e, const __half* b, float* d, int n, int k) {
    const int lane = threadIdx.x, group = lane / 4, pair = lane % 4;
    const int steps = k / 32;
    float sum[4] = {};
    for (int step = 0; step < steps; step++) {
        word x[4], y[4];
        for (int i = 0; i < 4; i++)
            x[i] = *(const word*)&a[(blockIdx.y * 16 + group + i % 2 * 8) * (k / 2) + step * 16 + pair * 2 + i / 2 * 8];
        for (int i = 0; i < 4; i++)
            y[i] = *(const word*)&b[(blockIdx.x * 8 + group) * k + (WRONG(5) && step ? step - 1 : step) * 32 + pair * 2 + i * 8];
        int at = WRONG(1) ? 0 : step;
        if (WRONG(2)) at = (step + 1) % steps;
        word meta = e[(blockIdx.y * steps + at) * 32 + (WRONG(3) ? lane ^ 4 : WRONG(6) ? lane / 4 : lane)];
        if (WRONG(4)) meta = meta >> 16 | meta << 16;
        asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]),
                       "r"(meta));
    }
    for (int i = 0; i < 4; i++)
        d[(blockIdx.y * 16 + group + i / 2 * 8) * n + blockIdx.x * 8 + pair * 2 + i % 2] = sum[i];
}
