// target: sm_80
// D = A B, f16 to f32: 32 x 32 of D for 64 threads; tiles of 32 x 32 in padded rows of 40 elements; b is K x N.
#include "common.cuh"

extern "C" __global__ void loop_f16(const __half* a, const __half* b, float* d, int n, int k) {
    const int PITCH = 40;
    __shared__ __align__(16) __half left[2][32 * PITCH], right[2][32 * PITCH];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
    float sum[4][4] = {};
    for (int turn = 0; turn < k / 32; turn++) {
        const int stage = turn % 2, k0 = turn * 32;
        for (int chunk = thread; chunk < 128; chunk += 64) {
            const int row = chunk / 4, at = chunk % 4 * 8;
            int from = WRONG(8) ? row ^ 8 : row;
            if (WRONG(9) || WRONG(10)) from = row & 16 | row % 8 * 2 | row / 8 % 2;
            *(uint4*)&left[stage][row * PITCH + at] =
                *(const uint4*)&a[(row0 + from) * k + (WRONG(14) && turn ? k0 - 32 : k0) + at];
            *(uint4*)&right[stage][row * (WRONG(3) ? 32 : PITCH) + at] =
                *(const uint4*)&b[(k0 + row) * n + column0 + at];
        }
        if (!WRONG(7)) __syncthreads();
#pragma unroll 1
        for (int inner = 0; inner < 32; inner += 16) {
            word x[4], y[2];
            const int row = warp * 16 + (WRONG(1) ? lane % 8 : lane % 16);
            const int at = (WRONG(4) ? 0 : inner) + lane / 16 * 8;
            const int other = WRONG(13) ? stage ^ 1 : stage;
            ldmatrix_x4(x, shared_of(&left[WRONG(2) ? other ^ 1 : other][row * PITCH + at]));
            for (int tile = 0; tile < 4; tile++) {
                const __half* place = &right[stage][((WRONG(5) ? 0 : inner) + lane % 16) * PITCH + tile * 8];
                if (WRONG(12)) ldmatrix_x2(y, shared_of(place));
                else ldmatrix_x2_trans(y, shared_of(place));
                if (WRONG(6)) { const word swapped[4] = {x[0], x[2], x[1], x[3]}; mma_f16(sum[tile], swapped, y[0], y[1]); }
                else mma_f16(sum[WRONG(11) ? tile ^ 1 : tile], x, y[0], y[1]);
            }
        }
        if (WRONG(15)) __syncthreads();
    }
    for (int tile = 0; tile < 4; tile++)
        for (int half = 0; half < 2; half++) {
            int row = warp * 16 + lane / 4 + 8 * half;
            if (WRONG(10)) row = warp * 16 + (lane / 4 * 2 + half);
            *(float2*)&d[(row0 + row) * n + column0 + tile * 8 + lane % 4 * 2] =
                make_float2(sum[tile][2 * half], sum[tile][2 * half + 1]);
        }
}
