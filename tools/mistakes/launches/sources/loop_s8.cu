// target: sm_80
// D = A B, s8 to s32: 16 x 8 of D for a warp; b is N x K; fragments straight from global memory.
#include "common.cuh"

extern "C" __global__ void loop_s8(const signed char* a, const signed char* b, int* d, int n, int k) {
    const int lane = threadIdx.x, group = lane / 4, pair = lane % 4;
    int sum[4] = {};
    for (int k0 = 0; k0 < k; k0 += 32) {
        word x[4], y[2];
        for (int i = 0; i < 4; i++) {
            int row = blockIdx.y * 16 + group + (WRONG(1) ? i / 2 : i % 2) * 8;
            int at = k0 + pair * 4 + (WRONG(1) ? i % 2 : i / 2) * 16;
            if (WRONG(2)) at = k0 + pair * 8 + i / 2 * 4;
            x[i] = *(const word*)&a[row * k + at];
            if (WRONG(3)) x[i] = __byte_perm(x[i], 0, 0x0123);
        }
        for (int i = 0; i < 2; i++)
            y[i] = *(const word*)&b[(blockIdx.x * 8 + group) * k + (WRONG(4) ? 0 : k0) + pair * 4 + i * 16];
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." 
#if MISTAKE == 5
                     "u8.s8"
#else
                     "s8.s8"
#endif
                     ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
    for (int i = 0; i < 4; i++) {
        const int row = blockIdx.y * 16 + group + i / 2 * 8, column = blockIdx.x * 8 + pair * 2 + i % 2;
        d[row * n + column] = sum[i];
    }
}
