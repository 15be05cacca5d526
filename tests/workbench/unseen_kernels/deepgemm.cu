// target: sm_90a
// DeepGEMM: e4m3 by wgmma, scales of blocks of 128 along k, sums promoted block by block; a warp loads by TMA.
#include "pieces.cuh"

const int STAGES = 2, M = 64, N = 32, K = 128;

struct Stage {
    alignas(1024) u8 a[M * K];
    alignas(1024) u8 b[N * K];
};

extern "C" __global__ void __launch_bounds__(160)
    deepgemm(const __grid_constant__ Map a, const __grid_constant__ Map b, const float* scale_a, const float* scale_b,
             __nv_bfloat16* d, int m, int n, int k) {
    __shared__ Stage stages[STAGES];
    __shared__ u64 full[STAGES], empty[STAGES];
    const int blocks = k / K, row0 = blockIdx.y * M, column0 = blockIdx.x * N;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(full[stage], 1);
            initialise(empty[stage], 128);
        }
        publish_barriers();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128)
            for (int block = 0; block < blocks; block++) {
                const int stage = block % STAGES;
                wait_for(empty[stage], (block / STAGES & 1) ^ 1);
                expect(full[stage], sizeof(stages[0].a) + sizeof(stages[0].b));
                load_box(stages[stage].a, a, block * K, row0, full[stage]);
                load_box(stages[stage].b, b, block * K, column0, full[stage]);
            }
        return;
    }
    const int row = row0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, pairs = threadIdx.x % 4 * 2;
    float sums[16] = {};
#pragma unroll 1
    for (int block = 0; block < blocks; block++) {
        const int stage = block % STAGES;
        const float right = scale_b[blockIdx.x * blocks + block];
        const float upper = scale_a[block * m + row] * right;
        const float lower = scale_a[block * m + row + 8] * right;
        float part[16];
        wait_for(full[stage], block / STAGES & 1);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < K / 32; step++)
            wgmma_e4m3(part, tile(stages[stage].a + step * 32), tile(stages[stage].b + step * 32), step > 0);
        wgmma_commit();
        wgmma_wait();
        arrive(empty[stage]);
#pragma unroll
        for (int each = 0; each < 16; each++) sums[each] += (each / 2 % 2 ? lower : upper) * part[each];
    }
#pragma unroll
    for (int each = 0; each < 16; each += 2) {
        const int to = (row + each / 2 % 2 * 8) * n + column0 + each / 4 * 8 + pairs;
        *reinterpret_cast<__nv_bfloat162*>(d + to) = __floats2bfloat162_rn(sums[each], sums[each + 1]);
    }
}
