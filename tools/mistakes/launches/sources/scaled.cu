// target: sm_120a
// D = A B, e4m3 with a ue8m0 scale for 32 k (mxf8): 16 x 8 of D for a warp; b is N x K; scales are rows x (k / 32)
// bytes, four k steps to a word.
#include "common.cuh"

extern "C" __global__ void scaled(const unsigned char* a, const unsigned char* b, const unsigned char* scale_a,
                                  const unsigned char* scale_b, float* d, int n, int k) {
    const int lane = threadIdx.x, group = lane / 4, pair = lane % 4, steps = k / 32;
    float sum[4] = {};
    for (int first = 0; first < steps; first += 4) {
        const int row = blockIdx.y * 16 + group + (WRONG(3) ? (1 - lane % 2) : lane % 2) * 8;
        const word left = *(const word*)&scale_a[row * steps + (WRONG(1) ? 0 : first)];
        const word right = *(const word*)&scale_b[(blockIdx.x * 8 + (WRONG(4) ? lane % 8 : group)) * steps + first];
#pragma unroll
        for (int inner = 0; inner < 4; inner++) {
            word x[4], y[2];
            const int k0 = (first + inner) * 32;
            for (int i = 0; i < 4; i++)
                x[i] = *(const word*)&a[(blockIdx.y * 16 + group + i % 2 * 8) * k + k0 + pair * 4 + i / 2 * 16];
            for (int i = 0; i < 2; i++)
                y[i] = *(const word*)&b[(blockIdx.x * 8 + group) * k + k0 + pair * 4 + i * 16];
            const word at_a = (left >> 8 * (WRONG(2) ? 0 : inner)) & 255, at_b = (right >> 8 * inner) & 255;
            asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32."
#if MISTAKE == 5
                         "e5m2.e4m3"
#else
                         "e4m3.e4m3"
#endif
                         ".f32.ue8m0 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "
                         "%10, {0, 0}, %11, {0, 0};"
                         : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(at_a), "r"(at_b));
        }
    }
    for (int i = 0; i < 4; i++)
        d[(blockIdx.y * 16 + group + i / 2 * 8) * n + blockIdx.x * 8 + pair * 2 + i % 2] = sum[i];
}
